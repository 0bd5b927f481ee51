//! The candidates of the search: sets of stacks with a name, such as a function's own cost, or everything below one
//! call.

use std::ops::Range;

use super::calls::CallTree;
use super::rows::StackRows;
use super::set_builder::{SetBuilder, Spans};
use crate::thresholds::{DEVIANCE_PER_LOG_OF_CANDIDATES, MIN_TELLING_EVENTS, PRICE_OF_LABEL_SET};
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::columns::NONE;

/// The name of a set of stacks. Among names of equal sets, the first variant here is preferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum SetKey {
    /// Stacks whose innermost function outside the system is this function: its own cost, including the system
    /// functions it calls.
    Own(u32),
    /// Stacks with a call of the second function by the first function. A call between two system functions below the
    /// program counts only in stacks that return to the program below it.
    Edge(u32, u32),
    /// Stacks that contain the function, which is not a system function.
    Node(u32),
    /// Stacks that end in the function. System functions have such a set only for stacks without any other function.
    Leaf(u32),
    /// Stacks with the label.
    Label(u32),
    /// Stacks with the label that contain the function, which is not a system function.
    LabelNode(u32, u32),
}

impl SetKey {
    /// Returns the function that names the set.
    pub(crate) fn frame(self) -> Option<u32> {
        match self {
            Self::Own(f) | Self::Edge(_, f) | Self::Node(f) | Self::Leaf(f) | Self::LabelNode(_, f) => Some(f),
            Self::Label(_) => None,
        }
    }

    pub(crate) fn is_label(self) -> bool {
        matches!(self, SetKey::Label(_) | SetKey::LabelNode(..))
    }

    /// Returns the class of the set. Noise is estimated separately for each class.
    pub(crate) fn class(self) -> usize {
        match self {
            SetKey::Own(_) | SetKey::Leaf(_) => 0,
            SetKey::Edge(..) | SetKey::Node(_) => 1,
            SetKey::Label(_) | SetKey::LabelNode(..) => 2,
        }
    }
}

/// A set of stacks.
pub(crate) struct Set {
    pub key: SetKey,
    /// The range of its ranges of members: `Sets::ranges[start..end]`.
    pub(super) start: u32,
    pub(super) end: u32,
    /// The values of both sides.
    pub values: [f64; 2],
    /// The value of one event.
    pub event: f64,
    /// True if the set has more than 90% of both sides. A change of such a set may be a different amount of work.
    pub whole: bool,
    /// The price of the set: its penalised deviance must exceed the threshold plus this price. 0 except for labels.
    pub price: f64,
}

impl Set {
    pub(super) fn ranges(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Returns true if the set has enough events to estimate noise.
    pub(crate) fn tells(&self) -> bool {
        let events = self.values.map(|value| value / self.event.max(1e-300));
        events[0] + events[1] > MIN_TELLING_EVENTS
    }
}

/// The sets that can estimate noise.
pub(crate) struct Telling {
    /// The sets with enough events, by class, in order, without sets that have nearly all of both sides.
    pub by_class: [Vec<u32>; 3],
    /// The number of sets that are a function's own cost, whatever their number of events. These are the first sets.
    pub n_own: u32,
}

pub(crate) struct Sets {
    pub sets: Vec<Set>,
    pub telling: Telling,
    /// Further names of sets, by set.
    other_names: Vec<(u32, SetKey)>,
    /// Ranges of members. Ranges of one set are in order and do not overlap.
    ranges: Vec<Range<u32>>,
    tree: CallTree,
    /// By node: the set of its function, which contains the node's members. [`NONE`] if the function has too few events
    /// for a set, or the same rows as an earlier set.
    node_sets: Vec<u32>,
    /// By node of the tree of all rows: the set of the call that leads to it.
    node_call_sets: Vec<u32>,
    /// By member: sets in addition to the sets of its nodes. These are the sets of the innermost program function and
    /// of the leaf, or the set of the label.
    member_sets: Vec<[u32; 2]>,
    /// By row: its members in the lists of labels, `label_members[ends[row]..ends[row + 1]]`.
    label_members: Vec<u32>,
    ends: Vec<usize>,
}

/// Ranges of rows by a frame of each row, or [`NONE`].
struct RowSpans<'a>(&'a [u32]);

impl Spans for RowSpans<'_> {
    #[inline(always)]
    fn for_each(&self, mut each: impl FnMut(u32, Range<u32>)) {
        let rows = self.0.iter().zip(0..).filter(|(frame, _)| **frame != NONE);
        rows.for_each(|(&frame, row)| each(frame, row..row + 1));
    }
}

/// Ranges of members below each call.
struct CallSpans<'a>(&'a CallTree);

impl Spans for CallSpans<'_> {
    #[inline(always)]
    fn for_each(&self, mut each: impl FnMut(u32, Range<u32>)) {
        self.0.for_each_call(|call, members, _| each(call, members));
    }
}

/// Ranges of members below each function.
struct FunctionSpans<'a>(&'a CallTree);

impl Spans for FunctionSpans<'_> {
    #[inline(always)]
    fn for_each(&self, mut each: impl FnMut(u32, Range<u32>)) {
        self.0.for_each_function(|frame, members, _| each(frame, members));
    }
}

/// Ranges of members with each label.
struct LabelSpans<'a>(&'a CallTree);

impl Spans for LabelSpans<'_> {
    fn for_each(&self, mut each: impl FnMut(u32, Range<u32>)) {
        let labels = (0..).zip(&self.0.label_ranges).filter(|(_, members)| !members.is_empty());
        labels.for_each(|(label, members)| each(label, members.clone()));
    }
}

/// Ranges of members with a label below each function. Functions have consecutive numbers per label.
struct LabelFunctionSpans<'a> {
    tree: &'a CallTree,
    label: usize,
    number_of: &'a [u32],
}

impl Spans for LabelFunctionSpans<'_> {
    #[inline(always)]
    fn for_each(&self, mut each: impl FnMut(u32, Range<u32>)) {
        self.tree.for_each_function_of(self.label, |frame, members, _| each(self.number_of[frame as usize], members));
    }
}

/// A node while its members are being summed up.
struct OpenNode<const N: usize> {
    node: u32,
    all: [f64; N],
    /// The sum over stacks that return to the program at this node, or below it.
    came_back: [f64; N],
}

impl Sets {
    pub(crate) fn new(rows: &StackRows) -> Sets {
        let tree = CallTree::new(rows);
        let mut builder = SetBuilder::new(rows, &tree);
        let (n_rows, n_frames) = (rows.n_front() as u32, rows.names.len());
        // The innermost function of each row outside the system, and its leaf. A system function as the leaf counts
        // only if the row has no other function. Truncated rows that do not show their own function have neither.
        let seen_frames = |row: u32| if rows.rows[row as usize].is_below { &[] } else { rows.stack(row as usize) };
        let own_function = |row: u32| seen_frames(row).iter().rev().copied().find(|&frame| !rows.is_system(frame));
        let owns: Vec<u32> = checkpointed(0..n_rows).map(|row| own_function(row).unwrap_or(NONE)).collect();
        let last_frame = |row: u32| seen_frames(row).last().copied();
        let leaf = |row: u32| last_frame(row).filter(|&leaf| owns[row as usize] == NONE || !rows.is_system(leaf));
        let leaves: Vec<u32> = checkpointed(0..n_rows).map(|row| leaf(row).unwrap_or(NONE)).collect();
        // Adds keys in the order of preference, because the first key of equal sets becomes the name.
        let own_sets = builder.add(&tree, n_frames, SetKey::Own, &RowSpans(&owns));
        let n_own = builder.sets.len() as u32;
        let edge = |number: u32| {
            let (caller, callee) = tree.edges[number as usize];
            SetKey::Edge(caller, callee)
        };
        let call_sets = builder.add(&tree, tree.edges.len(), edge, &CallSpans(&tree));
        let function_sets = builder.add(&tree, n_frames, SetKey::Node, &FunctionSpans(&tree));
        let leaf_sets = builder.add(&tree, n_frames, SetKey::Leaf, &RowSpans(&leaves));
        let n_plain = builder.sets.len();
        let n_labels = tree.label_ranges.len();
        let label_sets = builder.add(&tree, n_labels, SetKey::Label, &LabelSpans(&tree));
        let (mut node_sets, mut node_call_sets) = (vec![NONE; tree.nodes.len()], vec![NONE; tree.places.len()]);
        tree.for_each_function(|frame, _, node| node_sets[node as usize] = function_sets[frame as usize]);
        tree.for_each_call(|edge, _, node| node_call_sets[node as usize] = call_sets[edge as usize]);
        // The numbers of functions within a label, and a bit per function that occurs with the label.
        let mut number_of = vec![NONE; n_frames];
        let (mut is_present, mut frames) = (vec![0u64; n_frames.div_ceil(64)], Vec::new());
        for label in 0..n_labels {
            tree.for_each_function_of(label, |frame, _, _| is_present[frame as usize / 64] |= 1 << (frame % 64));
            frames.clear();
            for (word, word_index) in is_present.iter_mut().zip(0..) {
                while *word != 0 {
                    frames.push(64 * word_index + word.trailing_zeros());
                    *word &= *word - 1;
                }
            }
            frames.iter().zip(0..).for_each(|(&frame, number)| number_of[frame as usize] = number);
            let key = |number: u32| SetKey::LabelNode(label as u32, frames[number as usize]);
            let spans = LabelFunctionSpans { tree: &tree, label, number_of: &number_of };
            let sets_of_functions = builder.add(&tree, frames.len(), key, &spans);
            tree.for_each_function_of(label, |frame, _, node| {
                node_sets[node as usize] = sets_of_functions[number_of[frame as usize] as usize];
            });
        }
        let set_of = |sets_of_keys: &[u32], key: u32| if key == NONE { NONE } else { sets_of_keys[key as usize] };
        let end_sets = |(&own_key, &leaf): (&u32, &u32)| [set_of(&own_sets, own_key), set_of(&leaf_sets, leaf)];
        let mut member_sets: Vec<[u32; 2]> = owns.iter().zip(&leaves).map(end_sets).collect();
        for (members, &set) in tree.label_ranges.iter().zip(&label_sets) {
            member_sets.extend(members.clone().map(|_| [set, NONE]));
        }
        let SetBuilder { mut sets, other_names, ranges, .. } = builder;
        let order = grouped(sets.len(), || other_names.iter().zip(0..).map(|((set, _), i)| (*set as usize, i))).0;
        let other_names = order.into_iter().map(|i| other_names[i as usize]).collect();
        let labelled = sets.len() - n_plain;
        let price_of_label = PRICE_OF_LABEL_SET
            + DEVIANCE_PER_LOG_OF_CANDIDATES * (labelled as f64 / n_plain.max(1) as f64).max(1e-9).ln().max(0.0);
        sets.iter_mut().filter(|s| s.key.is_label()).for_each(|s| s.price = price_of_label);
        let label_pairs = || (n_rows as usize..tree.members.len()).map(|i| (tree.members[i] as usize, i as u32));
        let (label_members, ends) = grouped(rows.rows.len(), label_pairs);
        let mut by_class: [Vec<u32>; 3] = Default::default();
        for (set, set_data) in (0..).zip(&sets).filter(|(_, set_data)| set_data.tells() && !set_data.whole) {
            by_class[set_data.key.class()].push(set);
        }
        let telling = Telling { by_class, n_own };
        Sets { sets, telling, other_names, ranges, tree, node_sets, node_call_sets, member_sets, label_members, ends }
    }

    /// Calls `each` once with every set that contains a row. Returns the number of visited nodes.
    #[inline(always)]
    pub(crate) fn for_each_of_row(&self, row: usize, mut each: impl FnMut(usize)) -> usize {
        let mut n_visited = 0;
        if row >= self.tree.label_ranges.first().map_or(self.tree.members.len(), |label| label.start as usize) {
            return n_visited;
        }
        let labelled = &self.label_members[self.ends[row]..self.ends[row + 1]];
        for member in std::iter::once(row).chain(labelled.iter().map(|&member| member as usize)) {
            let mut visit = |set: u32| {
                if set != NONE {
                    each(set as usize);
                }
            };
            self.member_sets[member].into_iter().for_each(&mut visit);
            let mut node = self.tree.deepest[member];
            let mut came_back = false;
            while node != NONE {
                n_visited += 1;
                visit(self.node_sets[node as usize]);
                if let Some(place) = self.tree.places.get(node as usize) {
                    came_back |= place.is_own;
                    if came_back || !place.is_inner {
                        visit(self.node_call_sets[node as usize]);
                    }
                }
                node = self.tree.nodes[node as usize].parent;
            }
        }
        n_visited
    }

    /// Calls `each` with every set that contains some of these rows, and the sum over these rows. `rows` are in order.
    /// A set comes several times if rows reach it through several nodes. This visits each node of the tree once, for
    /// all rows below it. In contrast, [`Sets::for_each_of_row`] climbs to the root for each row. Returns the number of
    /// visited nodes.
    pub(crate) fn add_up<const N: usize>(
        &self,
        rows: &[(u32, [f64; N])],
        mut each: impl FnMut(usize, [f64; N]),
    ) -> usize {
        let n_rows = self.tree.label_ranges.first().map_or(self.tree.members.len(), |label| label.start as usize);
        let mut visit = |set: u32, part: [f64; N]| {
            if set != NONE {
                each(set as usize, part);
            }
        };
        let mut labelled: Vec<(u32, [f64; N])> = Vec::new();
        for &(row, part) in rows.iter().filter(|(row, _)| (*row as usize) < n_rows) {
            let members = &self.label_members[self.ends[row as usize]..self.ends[row as usize + 1]];
            labelled.extend(members.iter().map(|&member| (member, part)));
        }
        labelled.sort_unstable_by_key(|(member, _)| *member);
        let (mut open, mut path, mut n_visited): (Vec<OpenNode<N>>, Vec<u32>, usize) = (Vec::new(), Vec::new(), 0);
        let mut close = |open: &mut Vec<OpenNode<N>>, visit: &mut dyn FnMut(u32, [f64; N])| {
            let Some(OpenNode { node, all, mut came_back }) = open.pop() else { return };
            n_visited += 1;
            visit(self.node_sets[node as usize], all);
            if let Some(place) = self.tree.places.get(node as usize) {
                came_back = if place.is_own { all } else { came_back };
                let call_sum = if place.is_inner { came_back } else { all };
                if !place.is_inner || call_sum != [0.0; N] {
                    visit(self.node_call_sets[node as usize], call_sum);
                }
            }
            if let Some(above) = open.last_mut() {
                (0..N).for_each(|i| above.all[i] += all[i]);
                (0..N).for_each(|i| above.came_back[i] += came_back[i]);
            }
        };
        let unlabelled = rows.iter().filter(|(row, _)| (*row as usize) < n_rows);
        for &(member, part) in checkpointed(unlabelled.chain(&labelled)) {
            self.member_sets[member as usize].into_iter().for_each(|set| visit(set, part));
            while open.last().is_some_and(|last| self.tree.nodes[last.node as usize].end() <= member) {
                close(&mut open, &mut visit);
            }
            let last = open.last().map_or(NONE, |last| last.node);
            let mut node = self.tree.deepest[member as usize];
            while node != last && node != NONE {
                path.push(node);
                node = self.tree.nodes[node as usize].parent;
            }
            let none = [0.0; N];
            open.extend(path.drain(..).rev().map(|node| OpenNode { node, all: none, came_back: none }));
            if let Some(deepest) = open.last_mut().filter(|_| self.tree.deepest[member as usize] != NONE) {
                (0..N).for_each(|i| deepest.all[i] += part[i]);
            }
        }
        while !open.is_empty() {
            close(&mut open, &mut visit);
        }
        n_visited
    }

    /// Returns all names of a set, preferred name first.
    pub(crate) fn names(&self, set: usize) -> impl Iterator<Item = &SetKey> {
        let first = self.other_names.partition_point(|other| (other.0 as usize) < set);
        let others = self.other_names[first..].iter().take_while(move |other| other.0 as usize == set);
        std::iter::once(&self.sets[set].key).chain(others.map(|(_, key)| key))
    }

    /// Returns the rows of a set, in order.
    pub(crate) fn rows(&self, set: usize) -> impl Iterator<Item = u32> + Clone {
        let members = |range: &Range<u32>| range.start as usize..range.end as usize;
        self.ranges[self.sets[set].ranges()]
            .iter()
            .flat_map(move |range| self.tree.members[members(range)].iter().copied())
    }

    /// Returns the amount of work that created the sets: the number of nodes and ranges.
    pub(crate) fn places(&self) -> usize {
        self.tree.nodes.len() + self.ranges.len()
    }

    /// Returns prefix sums over the members of a number per row: before each member, and the total.
    pub(crate) fn prefix_sums(&self, row_value: impl Fn(u32) -> f64) -> Vec<f64> {
        let mut sum = 0.0;
        let after = checkpointed(&self.tree.members).map(|&row| {
            sum += row_value(row);
            sum
        });
        std::iter::once(0.0).chain(after).collect()
    }

    /// Returns the sum over a set, from the prefix sums of [`Sets::prefix_sums`].
    pub(crate) fn sum(&self, set: usize, before: &[f64]) -> f64 {
        let range_sum = |range: &Range<u32>| before[range.end as usize] - before[range.start as usize];
        self.ranges[self.sets[set].ranges()].iter().map(range_sum).sum()
    }

    /// Returns the sums of a number per row over all sets.
    pub(crate) fn sums(&self, row_value: &[f64]) -> Vec<f64> {
        let before = self.prefix_sums(|row| row_value[row as usize]);
        checkpointed(0..self.sets.len()).map(|set| self.sum(set, &before)).collect()
    }

    /// Returns the sets that contain more than the fraction `part` of the value of these rows, in ascending order, each
    /// with the value of these rows that it contains.
    pub(crate) fn around(&self, rows: &[u32], value: impl Fn(u32) -> f64, part: f64) -> Vec<(usize, f64)> {
        let mut row_values = vec![0.0; self.ends.len() - 1];
        rows.iter().for_each(|&row| row_values[row as usize] = value(row));
        let total: f64 = row_values.iter().sum();
        let before = self.prefix_sums(|row| row_values[row as usize]);
        let holds = |&(_, sum): &(usize, f64)| sum > part * total;
        let with_sum = |set: usize| (set, self.sum(set, &before));
        // A set needs the largest row to reach the fraction, so only the sets of this row qualify.
        match rows.iter().copied().max_by(|&a, &b| value(a).total_cmp(&value(b))) {
            Some(largest) if value(largest) > (1.0 - part) * total => {
                let mut sets = Vec::new();
                self.for_each_of_row(largest as usize, |set| sets.push(set));
                sets.sort_unstable();
                sets.into_iter().map(with_sum).filter(holds).collect()
            }
            _ => checkpointed(0..self.sets.len()).map(with_sum).filter(holds).collect(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.sets.len()
    }

    /// Returns the distinct calls in the rows outside the background, as pairs of caller and callee.
    pub(crate) fn calls(&self) -> &[(u32, u32)] {
        &self.tree.edges
    }
}

/// Sorts values by group, stably. Returns them with the end of each group.
pub(crate) fn grouped<I: Iterator<Item = (usize, u32)>>(
    groups: usize,
    pairs: impl Fn() -> I,
) -> (Vec<u32>, Vec<usize>) {
    let mut ends = vec![0; groups + 1];
    checkpointed(pairs()).for_each(|(group, _)| ends[group + 1] += 1);
    (1..ends.len()).for_each(|i| ends[i] += ends[i - 1]);
    let mut values = vec![0; ends[groups]];
    let mut next = ends.clone();
    checkpointed(pairs()).for_each(|(group, value)| {
        values[next[group]] = value;
        next[group] += 1;
    });
    (values, ends)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::weights::mix;
    use crate::thresholds::MIN_EVENTS_OF_SET;
    use std::collections::BTreeMap;

    use super::super::labels::LabelTexts;
    use super::super::rows::{FrameName, Row, RunValues, StackList, StackRows};
    use super::*;
    use pprofdiff::shared::{Asked, Class, UserRules, ValueKind, classify};

    const FRAMES: u64 = 7;
    const LABELS: u32 = 3;

    /// Creates random rows. Some frames are system frames, some rows are background, and some rows have labels.
    pub(crate) fn rows(seed: u64) -> StackRows {
        let mut state = seed;
        let mut below = |n: u64| {
            state = mix(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
            state % n
        };
        let n_system = below(FRAMES);
        let class = |frame| Class { system: frame < n_system, ..Class::default() };
        let name = |frame| FrameName { text: format!("f{frame}").into(), class: class(frame), shown: Box::default() };
        let names: Vec<FrameName> = (0..FRAMES).map(name).collect();
        let mut stacks = StackList::default();
        let n_rows = 1 + below(120);
        let row = |_| {
            let depth = below(9);
            let frames: Vec<u32> = (0..depth).map(|_| below(FRAMES) as u32).collect();
            let v = [below(4) as f64, below(4) as f64];
            let (labels, background, is_below) = (below(1 << LABELS) as u32, below(10) == 0, below(8) == 0);
            Row {
                stack: stacks.push(frames),
                labels,
                background,
                is_below,
                values: v,
                counts: v,
                events: v,
                variance: (v[0] + v[1]) / 4.0,
            }
        };
        let all: Vec<Row> = (0..n_rows).map(row).collect();
        let has = |set: u32, label: u32| set >> label & 1 == 1;
        let mut rows = StackRows {
            kind: ValueKind::Sampled,
            runs: [1, 1],
            learned: 0,
            runtime: classify::<&str>(&[], &UserRules::default(), Asked::All).0,
            names,
            run_values: RunValues::new(all.len(), Vec::new()),
            total_runs: Default::default(),
            rows: all,
            labels: LabelTexts::with_len(LABELS),
            label_sets: (0..1 << LABELS).map(|set| (0..LABELS).filter(|&label| has(set, label)).collect()).collect(),
            keys_of_labels: 0,
            keys_left_out: 0,
            pruned: 0,
            negative: [0.0; 2],
            sides: Vec::new(),
            stacks,
        };
        rows.arrange();
        rows
    }

    /// Computes the keys of a row directly from their definition.
    fn keys_of(rows: &StackRows, row: usize) -> Vec<SetKey> {
        let stack = rows.stack(row);
        let innermost = stack.iter().rposition(|&frame| !rows.is_system(frame));
        let leaf = stack.last().copied();
        // Below the innermost program function, only the first system function counts.
        let seen = &stack[..innermost.map_or(stack.len(), |innermost| (innermost + 2).min(stack.len()))];
        let functions = || seen.iter().copied().filter(|&frame| !rows.is_system(frame));
        let mut keys: Vec<SetKey> = innermost.map(|innermost| SetKey::Own(stack[innermost])).into_iter().collect();
        keys.extend(leaf.filter(|&leaf| innermost.is_none() || !rows.is_system(leaf)).map(SetKey::Leaf));
        if rows.rows[row].is_below {
            keys.clear();
        }
        keys.extend(seen.windows(2).map(|call| SetKey::Edge(call[0], call[1])));
        keys.extend(functions().map(SetKey::Node));
        for &label in &rows.label_sets[rows.rows[row].labels as usize] {
            keys.push(SetKey::Label(label));
            keys.extend(functions().map(|frame| SetKey::LabelNode(label, frame)));
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    #[test]
    fn sets_contain_exactly_the_rows_with_their_key() {
        for seed in 0..400 {
            let rows = rows(seed);
            let mut expected: BTreeMap<SetKey, Vec<u32>> = BTreeMap::new();
            for row in 0..rows.n_front() {
                for key in keys_of(&rows, row) {
                    expected.entry(key).or_default().push(row as u32);
                }
            }
            let sum =
                |set: &[u32], f: &dyn Fn(&Row) -> f64| set.iter().map(|&row| f(&rows.rows[row as usize])).sum::<f64>();
            expected.retain(|_, members| {
                let (all, q) = (sum(members, &|row| row.values[0] + row.values[1]), sum(members, &|row| row.variance));
                all > 0.0 && all >= MIN_EVENTS_OF_SET * q / all
            });
            let sets = Sets::new(&rows);
            let mut actual: BTreeMap<SetKey, Vec<u32>> = BTreeMap::new();
            for set in 0..sets.len() {
                let members: Vec<u32> = sets.rows(set).collect();
                assert_eq!(sets.sets[set].values, [0, 1].map(|side| sum(&members, &|row| row.values[side])), "{seed}");
                assert!(sets.names(set).is_sorted(), "{seed}: the preferred name comes first");
                for name in sets.names(set) {
                    assert!(actual.insert(*name, members.clone()).is_none(), "{seed}: {name:?} twice");
                }
            }
            assert_eq!(actual, expected, "{seed}");
            for row in 0..rows.rows.len() {
                let mut visited = Vec::new();
                sets.for_each_of_row(row, |set| visited.push(set));
                visited.sort_unstable();
                let holding = (0..sets.len()).filter(|&set| sets.rows(set).any(|other| other == row as u32));
                assert!(visited.into_iter().eq(holding), "{seed}: the sets of row {row}");
            }
            let some: Vec<u32> = (0..rows.rows.len() as u32).filter(|row| row % 3 == 0).collect();
            let value = |row: u32| rows.rows[row as usize].values[1];
            let set_sum = |set: usize| sets.rows(set).filter(|row| row % 3 == 0).map(value).sum::<f64>();
            let holds = |&set: &usize| set_sum(set) > 0.6 * some.iter().map(|&row| value(row)).sum::<f64>();
            let expected: Vec<(usize, f64)> = (0..sets.len()).filter(holds).map(|set| (set, set_sum(set))).collect();
            assert_eq!(sets.around(&some, value, 0.6), expected, "{seed}");
            // Adding all rows at once must equal adding them one by one. Values are small integers, so sums are exact.
            let parts: Vec<(u32, [f64; 2])> = some.iter().map(|&row| (row, [value(row), 1.0])).collect();
            let (mut at_once, mut one_by_one) = (BTreeMap::new(), BTreeMap::new());
            let add = |sums: &mut BTreeMap<usize, [f64; 2]>, set: usize, part: [f64; 2]| {
                let sum = sums.entry(set).or_insert([0.0; 2]);
                *sum = [sum[0] + part[0], sum[1] + part[1]];
            };
            sets.add_up(&parts, |set, part| add(&mut at_once, set, part));
            for (row, part) in &parts {
                sets.for_each_of_row(*row as usize, |set| add(&mut one_by_one, set, *part));
            }
            assert_eq!(at_once, one_by_one, "{seed}");
        }
    }

    #[test]
    fn small_values_survive_next_to_large_values() {
        let mut rows = rows(1);
        let row = |stack, v: f64, q| Row {
            stack,
            labels: 0,
            background: false,
            is_below: false,
            values: [v, 0.0],
            counts: [0.0; 2],
            events: [0.0; 2],
            variance: q,
        };
        let mut stacks = StackList::default();
        let large = stacks.push([5, 5]);
        rows.rows = vec![row(large, 1e14, 2e27)];
        for frame in 0..20 {
            let stack = stacks.push([5, 6, frame % 5, 6]);
            rows.rows.push(row(stack, 1e5, 2e10));
        }
        (rows.stacks, rows.run_values) = (stacks, RunValues::new(rows.rows.len(), Vec::new()));
        rows.names.iter_mut().for_each(|name| name.class = Class::default());
        rows.arrange();
        let sets = Sets::new(&rows);
        let own_set = (0..sets.len()).find(|&set| sets.names(set).any(|name| *name == SetKey::Own(6)));
        assert_eq!(own_set.map(|set| (sets.sets[set].values[0], sets.sets[set].event)), Some((2e6, 2e5)));
    }
}
