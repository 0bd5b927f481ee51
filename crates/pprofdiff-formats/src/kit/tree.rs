//! A call tree, for formats that store one and for formats that repeat their stacks.
//!
//! A node stands for the stack from the root to that node, so equal stacks share a node. Values are summed in the nodes
//! before they become samples.
//!
//! The stacks of a tree can be far larger than the tree: a chain of a million calls stands for half a trillion frames.
//! A [`StackBudget`] limits the stacks in proportion to the size of the input.

use std::hash::Hash;

use pprofdiff_profile::builder::{LocationId, ProfileBuilder};
use pprofdiff_profile::interner::Interner;
use pprofdiff_profile::random::RandomState;
use pprofdiff_profile::samples::Label;
use pprofdiff_profile::{Error, ErrorKind, Result};

/// The samples of an input may have `FRAMES + size / BYTES_A_FRAME` frames and values altogether, where `size` is the
/// size of the input in bytes. Text formats that write each stack in full stay below this limit, because a frame takes
/// at least a character and a separator.
const FRAMES: usize = 4 << 20;
const BYTES_A_FRAME: usize = 2;

/// The number of frames and values that the samples of an input may still have.
#[derive(Debug)]
pub struct StackBudget {
    limit: usize,
    left: usize,
}

impl StackBudget {
    /// Returns the budget for an input of `size` bytes.
    pub fn for_input(size: usize) -> StackBudget {
        let limit = FRAMES + size / BYTES_A_FRAME;
        StackBudget { limit, left: limit }
    }

    /// Subtracts the frames and values of a sample.
    ///
    /// # Errors
    /// The limit is exceeded.
    pub fn take(&mut self, frames: usize, values: usize) -> Result<()> {
        match self.left.checked_sub(frames.saturating_add(values)) {
            Some(left) => self.left = left,
            None => {
                let detail = format!(
                    "its stacks have more than {} frames and values altogether, the limit for a profile of this size; \
                     record a profile with a smaller stack depth",
                    self.limit
                );
                return Err(Error::new(ErrorKind::Limit, detail));
            }
        }
        Ok(())
    }
}

/// The number of bytes that names may still take. Formats may write a name once and use it in many records; each use
/// that looks the name up or builds it again is counted. Any input may use [`TEXT`] bytes, and [`TEXT_A_BYTE`] more for
/// each byte of the input.
#[derive(Debug)]
pub struct TextBudget(usize);

const TEXT: usize = 16 << 20;
const TEXT_A_BYTE: usize = 2;

impl TextBudget {
    /// Returns the budget for an input of `size` bytes.
    pub fn for_input(size: usize) -> TextBudget {
        TextBudget(TEXT.saturating_add(size.saturating_mul(TEXT_A_BYTE)))
    }

    /// Subtracts the bytes of a name.
    ///
    /// # Errors
    /// The limit is exceeded.
    pub fn take(&mut self, bytes: usize) -> Result<()> {
        match self.0.checked_sub(bytes) {
            Some(left) => self.0 = left,
            None => {
                return Err(Error::new(ErrorKind::Limit, "its names are too long altogether for an input of its size"));
            }
        }
        Ok(())
    }
}

/// A call tree with a value in each node. The key `R` of a root holds the sample type and the labels of its samples.
#[derive(Debug)]
pub struct ValueTree<R> {
    roots: Interner<R, RandomState>,
    /// The parent and the location of each node. The parent of a root is [`ROOT`], and its second number is the index
    /// of its key in `roots`.
    nodes: Interner<(u32, u32), RandomState>,
    /// The value of each node. Nodes after the end have the value 0.
    values: Vec<i64>,
}

const ROOT: u32 = u32::MAX;

/// A node of a [`ValueTree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeNode(u32);

impl<R: Copy + Eq + Hash> ValueTree<R> {
    /// Returns a tree without nodes.
    pub fn new() -> ValueTree<R> {
        ValueTree { roots: Interner::default(), nodes: Interner::default(), values: Vec::new() }
    }

    /// Returns the root with this key. It stands for a stack without frames.
    pub fn root(&mut self, root: R) -> TreeNode {
        let number = self.roots.number(root);
        TreeNode(self.nodes.number((ROOT, number)))
    }

    /// Returns the child of `parent` at `location`, and creates it if necessary.
    pub fn child(&mut self, parent: TreeNode, location: LocationId) -> TreeNode {
        TreeNode(self.nodes.number((parent.0, location.0)))
    }

    /// Returns the parent of a node; the parent of a root is the root itself.
    pub fn parent(&self, node: TreeNode) -> TreeNode {
        match self.nodes.values[node.0 as usize].0 {
            ROOT => node,
            parent => TreeNode(parent),
        }
    }

    /// Returns the location of a node, or `None` for a root.
    pub fn location(&self, node: TreeNode) -> Option<LocationId> {
        let (parent, location) = self.nodes.values[node.0 as usize];
        (parent != ROOT).then_some(LocationId(location))
    }

    /// Adds to the value of a node.
    ///
    /// # Errors
    /// The sum does not fit in an int64.
    pub fn add(&mut self, node: TreeNode, value: i64) -> Result<()> {
        let index = node.0 as usize;
        if self.values.len() <= index {
            self.values.resize(self.nodes.values.len(), 0);
        }
        self.values[index] = self.values[index].checked_add(value).ok_or_else(too_large)?;
        Ok(())
    }

    /// Calls `f` for each node with a value other than zero. The arguments are the key of the root, the stack from the
    /// leaf, and the value. `f` may change the stack.
    ///
    /// # Errors
    /// The stacks with `n_types` values each exceed the budget, or `f` fails.
    pub fn each_stack(
        &self,
        n_types: usize,
        budget: &mut StackBudget,
        mut f: impl FnMut(R, &mut Vec<LocationId>, i64) -> Result<()>,
    ) -> Result<()> {
        let mut leaf_first = Vec::new();
        for (node, &value) in (0u32..).zip(&self.values).filter(|(_, value)| **value != 0) {
            leaf_first.clear();
            let (mut parent, mut location) = self.nodes.values[node as usize];
            while parent != ROOT {
                leaf_first.push(LocationId(location));
                (parent, location) = self.nodes.values[parent as usize];
            }
            budget.take(leaf_first.len(), n_types)?;
            f(self.roots.values[location as usize], &mut leaf_first, value)?;
        }
        Ok(())
    }

    /// Adds a sample to the builder, with `n_types` values, for each node with a value other than zero. `sample` maps
    /// the key of a root to the index of its sample type and to the sign of its values (1 or -1), and adds the labels.
    ///
    /// # Errors
    /// The stacks exceed the budget, a value does not fit in an int64, or the builder refuses a sample.
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

/// Returns the error for a sum that does not fit in an int64.
pub fn too_large() -> Error {
    Error::malformed("its values add up to more than an int64 holds")
}

/// Formats each sample for comparison in tests: its stack from the root, with known lines and columns, then its labels
/// and values.
#[cfg(test)]
pub fn rows(p: &pprofdiff_profile::Profile) -> Vec<String> {
    let (functions, locations) = (p.functions(), p.locations());
    let sample = |s: pprofdiff_profile::samples::Sample<'_>| {
        let mut frames = Vec::new();
        s.for_each_location(|l| {
            // Views name a frame without a symbol after its mapping in the same way.
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
            pprofdiff_profile::samples::LabelValue::Text(text) => format!(" {}={}", p.text(label.key), p.text(text)),
            pprofdiff_profile::samples::LabelValue::Number(n, _) => format!(" {}={n}", p.text(label.key)),
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
    fn equal_stacks_are_one_sample_and_roots_stay_separate() {
        let mut b = ProfileBuilder::new();
        b.sample_type("a", "count");
        b.sample_type("b", "count");
        let locations = ["x", "y"].map(|name| {
            let function = b.function(name, "", 0);
            let line = b.line(function, 0);
            b.location(None, 0, &[line]).unwrap()
        });
        let mut tree = ValueTree::new();
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
        let mut tree = ValueTree::new();
        let mut node = tree.root(0usize);
        tree.add(node, i64::MAX).unwrap();
        assert!(tree.add(node, 1).unwrap_err().to_string().contains("more than an int64 holds"));
        b.sample_type("a", "count");
        let location = b.location(None, 1, &[]).unwrap();
        for _ in 0..3000 {
            node = tree.child(node, location);
            tree.add(node, 1).unwrap();
        }
        // The tree has 4.5 million frames.
        let error = tree.write(&mut b, 1, &mut StackBudget::for_input(0), |root, _| (root, 1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        assert!(tree.write(&mut b, 1, &mut StackBudget::for_input(1 << 20), |root, _| (root, 1)).is_ok());
    }
}
