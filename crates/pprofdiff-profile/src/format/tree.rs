//! Calls as a tree, for formats that have one or that repeat their stacks: a node stands for the stack from the root to
//! it, stacks that are equal are one node, and values are added up there before they become samples.
//!
//! Stacks of a tree may be far larger than the tree: a chain of a million calls stands for half a trillion frames. A
//! [`StackBudget`] bounds them by the size of what is read.

use std::hash::Hash;

use crate::builder::{LocationId, ProfileBuilder};
use crate::error::{Error, ErrorKind, Result};
use crate::interner::Interner;
use crate::profile::Label;
use crate::random::RandomState;

/// How many frames and values the samples of an input may have altogether: in any input of less than some MB so many,
/// and in a larger one so many for each byte. Text in which each stack is spelled out has fewer.
const FRAMES: usize = 4 << 20;
const BYTES_A_FRAME: usize = 2;

/// What is left of what the samples of an input may have.
#[derive(Debug)]
pub(super) struct StackBudget {
    most: usize,
    left: usize,
}

impl StackBudget {
    /// For an input of so many bytes.
    pub fn for_input(size: usize) -> StackBudget {
        let most = FRAMES + size / BYTES_A_FRAME;
        StackBudget { most, left: most }
    }

    /// Takes what a sample needs.
    pub fn take(&mut self, frames: usize, values: usize) -> Result<()> {
        match self.left.checked_sub(frames.saturating_add(values)) {
            Some(left) => self.left = left,
            None => {
                let detail = format!(
                    "its stacks have more than {} frames and values altogether, the most that are read of a profile of \
                     this size; take a profile of less depth",
                    self.most
                );
                return Err(Error::new(ErrorKind::Limit, detail));
            }
        }
        Ok(())
    }
}

/// What is left of what names may take that are written once and stand in many records: each time they are looked up or put
/// together anew. In any input so many bytes, and in a large one so many for each of its own.
#[derive(Debug)]
pub(super) struct TextBudget(usize);

const TEXT: usize = 16 << 20;
const TEXT_A_BYTE: usize = 2;

impl TextBudget {
    /// For an input of so many bytes.
    pub fn for_input(size: usize) -> TextBudget {
        TextBudget(TEXT.saturating_add(size.saturating_mul(TEXT_A_BYTE)))
    }

    /// Takes what a name needs.
    pub fn take(&mut self, bytes: usize) -> Result<()> {
        match self.0.checked_sub(bytes) {
            Some(left) => self.0 = left,
            None => {
                return Err(Error::new(ErrorKind::Limit, "its names are longer than is read of an input of its size"));
            }
        }
        Ok(())
    }
}

/// A tree with a value for each node. Its roots are told apart by an `R`: what is counted, and labels.
#[derive(Debug)]
pub(super) struct Tree<R> {
    roots: Interner<R, RandomState>,
    /// Parent and location of each node; the parent of a root is [`ROOT`], its other number that of its `R`.
    nodes: Interner<(u32, u32), RandomState>,
    values: Vec<i64>,
}

const ROOT: u32 = u32::MAX;

/// A node of a [`Tree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node(u32);

impl<R: Copy + Eq + Hash> Tree<R> {
    /// Without nodes.
    pub fn new() -> Tree<R> {
        Tree { roots: Interner::default(), nodes: Interner::default(), values: Vec::new() }
    }

    /// A root, which stands for a stack without frames.
    pub fn root(&mut self, root: R) -> Node {
        let number = self.roots.number(root);
        Node(self.nodes.number((ROOT, number)))
    }

    /// What a node calls at a location.
    pub fn child(&mut self, parent: Node, location: LocationId) -> Node {
        Node(self.nodes.number((parent.0, location.0)))
    }

    /// What calls a node; a root itself.
    pub fn parent(&self, node: Node) -> Node {
        match self.nodes.values[node.0 as usize].0 {
            ROOT => node,
            parent => Node(parent),
        }
    }

    /// The location of a node; a root has none.
    pub fn location(&self, node: Node) -> Option<LocationId> {
        let (parent, location) = self.nodes.values[node.0 as usize];
        (parent != ROOT).then_some(LocationId(location))
    }

    /// Adds to the value of a node.
    ///
    /// # Errors
    /// The sum does not fit.
    pub fn add(&mut self, node: Node, value: i64) -> Result<()> {
        let at = node.0 as usize;
        if self.values.len() <= at {
            self.values.resize(self.nodes.values.len(), 0);
        }
        self.values[at] = self.values[at].checked_add(value).ok_or_else(too_large)?;
        Ok(())
    }

    /// Calls `f` for each node that has a value, with its root, its stack from the leaf, and the value. `f` may change the
    /// stack.
    ///
    /// # Errors
    /// Those of `f`; there is no [`StackBudget`] for stacks with `n_types` values.
    pub fn each_stack(
        &self,
        n_types: usize,
        budget: &mut StackBudget,
        mut f: impl FnMut(R, &mut Vec<LocationId>, i64) -> Result<()>,
    ) -> Result<()> {
        let mut leaf_first = Vec::new();
        for (node, &value) in (0u32..).zip(&self.values).filter(|(_, value)| **value != 0) {
            leaf_first.clear();
            let (mut parent, mut what) = self.nodes.values[node as usize];
            while parent != ROOT {
                leaf_first.push(LocationId(what));
                (parent, what) = self.nodes.values[parent as usize];
            }
            budget.take(leaf_first.len(), n_types)?;
            f(self.roots.values[what as usize], &mut leaf_first, value)?;
        }
        Ok(())
    }

    /// Adds a sample for each node that has a value, among `n_types` of the builder. `sample` says of a root which of
    /// them that is, by what its values are multiplied (1 or -1), and with which labels.
    ///
    /// # Errors
    /// There is no [`StackBudget`]; a value does not fit; the builder's.
    pub fn write(
        &self,
        builder: &mut ProfileBuilder,
        n_types: usize,
        budget: &mut StackBudget,
        mut sample: impl FnMut(R, &mut Vec<Label>) -> (usize, i64),
    ) -> Result<()> {
        let (mut labels, mut values) = (Vec::new(), vec![0; n_types]);
        self.each_stack(n_types, budget, |root, leaf_first, value| {
            labels.clear();
            let (column, sign) = sample(root, &mut labels);
            values[column] = value.checked_mul(sign).ok_or_else(too_large)?;
            builder.sample(leaf_first, &values, &labels)?;
            values[column] = 0;
            Ok(())
        })
    }
}

/// The error of sums.
pub(super) fn too_large() -> Error {
    Error::malformed("its values add up to more than an int64 holds")
}

/// What tests compare: each sample as its stack from the root with lines and columns that are known, labels, and values.
#[cfg(test)]
pub(super) fn rows(p: &crate::profile::Profile) -> Vec<String> {
    let (functions, locations) = (p.functions(), p.locations());
    let sample = |s: crate::samples::Sample<'_>| {
        let mut frames = Vec::new();
        s.for_each_location(|l| {
            // As views call it.
            if let (0, Some(mapping)) =
                (locations.lines(l).len(), p.mappings().get(locations.mapping[l as usize] as usize))
            {
                frames.push(format!("[{}]", p.text(mapping.file).rsplit('/').next().unwrap_or_default()));
            }
            for line in locations.lines(l).map(|line| line as usize) {
                let function = locations.line_function[line] as usize;
                let mut frame = p.text(functions.name[function]);
                let file = p.text(functions.file[function]);
                let (number, column) = (locations.line_number[line], locations.line_column[line]);
                if !file.is_empty() || number != 0 {
                    frame += &format!(" {file}:{number}");
                }
                if column != 0 {
                    frame += &format!(":{column}");
                }
                frames.push(frame);
            }
        });
        frames.reverse();
        let label = |label: Label| match label.value {
            crate::profile::LabelValue::Text(text) => format!(" {}={}", p.text(label.key), p.text(text)),
            crate::profile::LabelValue::Number(n, _) => format!(" {}={n}", p.text(label.key)),
        };
        let labels: String = s.all_labels().map(label).collect();
        let values: Vec<String> = (0..p.sample_types().len()).map(|i| s.value(i).to_string()).collect();
        format!("{}{labels}: {}", frames.join("|"), values.join(" "))
    };
    let mut rows: Vec<String> = p.samples().map(sample).collect();
    rows.sort_unstable();
    rows
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn equal_stacks_are_one_sample_and_roots_are_apart() {
        let mut b = ProfileBuilder::new();
        b.sample_type("a", "count");
        b.sample_type("b", "count");
        let locations = ["x", "y"].map(|name| {
            let function = b.function(name, "", 0);
            let line = b.line(function, 0);
            b.location(None, 0, &[line]).unwrap()
        });
        let mut tree = Tree::new();
        for (root, path, value) in [(0, "xy", 3), (1, "xy", 5), (0, "xy", 4), (0, "", 1), (0, "yx", 0), (1, "x", -2)] {
            let mut node = tree.root(root);
            for name in path.chars() {
                node = tree.child(node, locations[usize::from(name == 'y')]);
            }
            assert_eq!(tree.parent(node) == node, path.is_empty());
            tree.add(node, value).unwrap();
        }
        tree.write(&mut b, 2, &mut StackBudget::for_input(0), |root, _| (root, 1)).unwrap();
        let p = b.build("built").unwrap();
        let mut samples = Vec::new();
        for s in p.samples() {
            let mut frames = 0;
            s.for_each_location(|_| frames += 1);
            samples.push((frames, s.value(0), s.value(1)));
        }
        samples.sort_unstable();
        assert_eq!(samples, [(0, 1, 0), (1, 0, -2), (2, 0, 5), (2, 7, 0)]);
    }

    #[test]
    fn sums_and_frames_are_bounded() {
        let mut b = ProfileBuilder::new();
        let mut tree = Tree::new();
        let mut node = tree.root(0usize);
        tree.add(node, i64::MAX).unwrap();
        assert!(tree.add(node, 1).unwrap_err().to_string().contains("more than an int64 holds"));
        b.sample_type("a", "count");
        let location = b.location(None, 1, &[]).unwrap();
        for _ in 0..3000 {
            node = tree.child(node, location);
            tree.add(node, 1).unwrap();
        }
        // 4.5 million frames.
        let error = tree.write(&mut b, 1, &mut StackBudget::for_input(0), |root, _| (root, 1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        assert!(tree.write(&mut b, 1, &mut StackBudget::for_input(1 << 20), |root, _| (root, 1)).is_ok());
    }
}
