//! The data of one sample type on the page, as columns for its script: both flame graphs, the table with callers and
//! callees, and the call graph.

use std::cmp::Reverse;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::columns::PageNumbers;
use crate::names::PageNames;
use pprofdiff::cancellation::checkpointed;
use pprofdiff::edges::{Edge, Edges, Relation};
use pprofdiff::flame::{Flame, FlameFrame, FlameNode};
use pprofdiff::graph::Graph;
use pprofdiff::random::HashMap;
use pprofdiff::{Frames, Measure, Pair, Sort, Top, TopRow};
use pprofdiff_explain::Explanation;

/// The maximum number of callers, and of callees, per function: for the [`COSTLIEST`] functions, and for all other functions.
/// Edges are the largest part of a large page, and readers look at few of them.
const MAX_EDGES: [usize; 2] = [12, 2];
/// The number of functions with the largest cum cost that have the higher maximum of edges.
const COSTLIEST: usize = 1000;
/// The maximum number of frames that rose most next to the total, and of frames that fell most.
const MOVERS: usize = 5;

/// Decides which values of a view are within chance.
pub(crate) struct ChanceMarker<'a> {
    pub(crate) e: &'a Explanation,
    /// The factor of the view's new values.
    pub(crate) factor: f64,
    /// The number of runs that the values of each side are sums of.
    pub(crate) runs: [f64; 2],
    /// The change of the total if it is certain, otherwise `None`. A frame with more than half of this change changed,
    /// too, so its values are never within chance.
    pub(crate) whole: Option<i64>,
}

impl ChanceMarker<'_> {
    /// Returns true if the difference of a value's two sides is within chance. The explanation compares means of runs
    /// without normalization, so sums are divided by the number of runs, and new values by the factor.
    fn is_chance(&self, p: Pair) -> bool {
        let [base, new] = self.runs;
        if self.whole.is_some_and(|whole| p.delta() as f64 / whole as f64 > 0.5) {
            return false;
        }
        self.e.is_chance(p.base as f64 / base, p.new as f64 / self.factor / new)
    }

    /// Returns the nodes of a flame graph that are within chance, as [`bits`].
    pub(crate) fn of_flame(&self, flame: &Flame) -> String {
        // Many frames have the same value as their caller, which precedes them, so reuse the last result.
        let mut last: Option<(Pair, bool)> = None;
        let mut is_chance = |p: Pair| match last {
            Some((last_value, is_chance)) if last_value == p => is_chance,
            _ => {
                let is_chance = self.is_chance(p);
                last = Some((p, is_chance));
                is_chance
            }
        };
        let is_frame = |n: &FlameNode| !matches!(n.frame, FlameFrame::Pruned);
        bits(flame.nodes.iter().map(|n| is_frame(n) && is_chance(n.cum)))
    }

    /// Returns the noise of frames by size, as JSON: `event` is the value of one event, `least` the smallest growth
    /// beyond chance of a frame with 1, 2, 4, 8 ... events (below the base's total), and `work` the growth of the
    /// amount of work.
    pub(crate) fn sizes(&self, total: Pair) -> Value {
        let event = self.e.noise.event;
        let sizes =
            (0..63).map(|i| event * (1u64 << i) as f64).take_while(|size| *size > 0.0 && *size < total.base as f64);
        let digits = |factor: f64| (factor * 1e4).round() / 1e4;
        let least: Vec<f64> = sizes.map(|size| digits(self.e.least_growth(size / self.runs[0]))).collect();
        json!({"event": event, "least": least, "work": self.e.scale.factor})
    }
}

/// Packs booleans into bits in base64, eight per byte, starting with the lowest bit.
pub(crate) fn bits(values: impl Iterator<Item = bool>) -> String {
    let mut bytes = Vec::new();
    for (i, value) in values.enumerate() {
        if i % 8 == 0 {
            bytes.push(0);
        }
        bytes[i / 8] |= u8::from(value) << (i % 8);
    }
    STANDARD.encode(bytes)
}

/// Returns the frames whose own cost changed most in one direction, or for a single profile the frames with the largest
/// own cost. Changes of own costs add up to the change of the total. By cum cost, the first frames would be callers of
/// each other.
///
/// `top` must be sorted by flat, largest change first.
pub(crate) fn movers(top: &Top, is_direction: fn(i64) -> bool) -> Vec<TopRow> {
    top.rows.iter().filter(|r| is_direction(r.flat.delta())).take(MOVERS).copied().collect()
}

/// Returns frames as JSON, each with its id and its own cost on both sides as text, like [`pair`].
pub(crate) fn mover_rows(rows: &[TopRow], frames: &Frames, names: &mut PageNames) -> Value {
    rows.iter().map(|r| json!([names.id(frames, r.frame), r.flat.base.to_string(), r.flat.new.to_string()])).collect()
}

/// Returns both sides of a value as text, because JavaScript's numbers are exact up to 2^53 only.
pub(crate) fn pair(p: Pair) -> Value {
    json!([p.base.to_string(), p.new.to_string()])
}

/// Returns a flame graph as columns, one node per row, depth first.
///
/// The column `what` identifies a node: 0 for the root, 1 for `(pruned)`, otherwise its frame + 2; times four, plus 1
/// if the base contains it, plus 2 if the new side contains it. Values are stored as differences from the parent's
/// value. Widths are omitted if they follow from the values of both sides; they do unless there are negative or scaled
/// values.
pub(crate) fn flame(flame: &Flame, names: &mut PageNames) -> Value {
    let mut ids = vec![None; flame.frames.len()];
    let mut id = |frame: u32| *ids[frame as usize].get_or_insert_with(|| names.id(&flame.frames, frame));
    let mut node_code = |n: &FlameNode| {
        let node_code = match n.frame {
            FlameFrame::Root => 0,
            FlameFrame::Pruned => 1,
            FlameFrame::Frame(f) => id(f) + 2,
        };
        node_code * 4 + u64::from(n.sides.0) + 2 * u64::from(n.sides.1)
    };
    let nodes = &flame.nodes;
    let (mut codes, mut depths) = (PageNumbers::with_capacity(nodes.len()), PageNumbers::with_capacity(nodes.len()));
    for n in nodes {
        codes.push(node_code(n));
        depths.push(u64::from(n.depth));
    }
    let [base, new, max] = differences_from_parent(nodes, |n| [n.cum.base, n.cum.new, n.width.max]);
    let mut columns = json!({
        "nodes": nodes.len(),
        "what": codes.base64(),
        "depth": depths.base64(),
        "base": base,
        "new": new,
        "max": max,
        "pruned": {
            "stacks": flame.pruned.stacks,
            "of": flame.pruned.of_stacks,
            "share": flame.pruned.width.max as f64 / nodes.first().map_or(1, |n| n.width.max).max(1) as f64,
            "widest": flame.pruned.widest,
        },
    });
    let follows = |n: &FlameNode| {
        let (w, double) = (n.width, |v: i64| i128::from(v) * 2);
        (w.base, w.new) == (n.cum.base, n.cum.new)
            && i128::from(w.base) + i128::from(w.new) + i128::from(w.delta) == double(w.max)
    };
    if !nodes.iter().all(follows) {
        let [base, new, delta] = differences_from_parent(nodes, |n| [n.width.base, n.width.new, n.width.delta]);
        columns["base_width"] = base.into();
        columns["new_width"] = new.into();
        columns["delta_width"] = delta.into();
    }
    columns
}

/// Returns columns of values in base64, each as the difference between the parent's value and the node's value. The
/// root's parent is 0.
fn differences_from_parent<const N: usize>(
    nodes: &[FlameNode],
    values: impl Fn(&FlameNode) -> [i64; N],
) -> [String; N] {
    let mut columns = [(); N].map(|()| PageNumbers::with_capacity(2 * nodes.len()));
    let mut path: Vec<[i64; N]> = Vec::new();
    for n in nodes {
        path.truncate(n.depth as usize);
        let (parent, own) = (path.last().copied().unwrap_or([0; N]), values(n));
        for (column, (parent, own)) in columns.iter_mut().zip(parent.into_iter().zip(own)) {
            column.push_signed(parent.wrapping_sub(own));
        }
        path.push(own);
    }
    columns.map(|column| column.base64())
}

/// The data of the table: all frames that the flame graphs show, and while the limit permits, the costliest of the
/// others. Each row has its costliest callers and callees among the frames in the table.
pub(crate) struct PageFrames {
    /// The rows, largest cum cost of either side first.
    rows: Vec<TopRow>,
    /// The number of rows before truncation.
    all_rows: usize,
    /// True for each frame that has a row.
    in_table: Vec<bool>,
    /// The callers and callees of the frames in the table, including frames that are not in the table.
    edges: Edges,
}

impl PageFrames {
    /// Builds the table from all frames of a view. `graphs` are the flame graphs of the view. Their frames get a row
    /// even if there are more than `max_rows`.
    pub(crate) fn new(view: &Measure, mut top: Top, graphs: &[&Flame], max_rows: usize) -> PageFrames {
        let mut drawn = vec![false; top.frames.len()];
        // All graphs belong to the same view, so their frames have the same numbers as those of the table.
        for node in graphs.iter().flat_map(|g| &g.nodes) {
            if let FlameFrame::Frame(f) = node.frame {
                drawn[f as usize] = true;
            }
        }
        let rows = table_rows(&top, &drawn, max_rows);
        let mut in_table = vec![false; top.frames.len()];
        rows.iter().for_each(|r| in_table[r.frame as usize] = true);
        let all_rows = top.rows.len();
        // Only compute and sort the edges of frames in the table.
        top.rows = rows.clone();
        let edges = view.edges_of(top);
        PageFrames { rows, all_rows, in_table, edges }
    }

    /// Returns one bit per row, as [`bits`]: 1 if the value that `value` selects is within chance.
    pub(crate) fn chance(&self, chance: &ChanceMarker, value: impl Fn(&TopRow) -> Pair) -> String {
        bits(self.rows.iter().map(|row| chance.is_chance(value(row))))
    }

    /// Returns the columns, without the marks for chance.
    pub(crate) fn columns(&self, names: &mut PageNames) -> Value {
        let PageFrames { rows, all_rows, in_table, edges } = self;
        let frames = &edges.frames;
        // Edges are grouped by node, in the order of the nodes.
        let mut edges_by_frame: HashMap<u32, &[Edge]> = HashMap::default();
        for group in edges.edges.chunk_by(|a, b| a.node == b.node) {
            edges_by_frame.insert(group[0].node, group);
        }
        let relation = |wanted_relation: Relation, names: &mut PageNames| {
            let [mut shown, mut all, mut other, mut base, mut new] = [(); 5].map(|()| PageNumbers::default());
            let mut group: Vec<&Edge> = Vec::new();
            for (i, row) in checkpointed(rows.iter().enumerate()) {
                let of_node = edges_by_frame.get(&row.frame).copied().unwrap_or_default();
                // In a group, callers come before callees.
                let callees = of_node.partition_point(|e| e.relation == Relation::Caller);
                let of_relation = match wanted_relation {
                    Relation::Caller => &of_node[..callees],
                    Relation::Callee => &of_node[callees..],
                };
                all.push_signed(of_relation.len() as i64);
                group.clear();
                group.extend(of_relation.iter().filter(|e| in_table[e.other as usize]));
                group.sort_by_key(|e| Reverse(magnitude(e.weight)));
                group.truncate(MAX_EDGES[usize::from(i >= COSTLIEST)]);
                shown.push_signed(group.len() as i64);
                for e in &group {
                    other.push_signed(names.id(frames, e.other) as i64);
                    base.push_signed(e.weight.base);
                    new.push_signed(e.weight.new);
                }
            }
            let [shown, all, other, base, new] = [shown, all, other, base, new].map(|column| column.base64());
            json!({"shown": shown, "all": all, "other": other, "base": base, "new": new})
        };
        let column = |value: &dyn Fn(&TopRow) -> i64| rows.iter().map(value).collect::<PageNumbers>().base64();
        let frame: Vec<u64> = rows.iter().map(|r| names.id(frames, r.frame)).collect();
        let statuses = |r: &TopRow| r.status as i64;
        json!({
            "rows": rows.len(),
            "of": all_rows,
            "frame": frame.into_iter().collect::<PageNumbers>().base64(),
            "status": column(&statuses),
            "flat_base": column(&|r| r.flat.base),
            "flat_new": column(&|r| r.flat.new),
            "cum_base": column(&|r| r.cum.base),
            "cum_new": column(&|r| r.cum.new),
            "callers": relation(Relation::Caller, names),
            "callees": relation(Relation::Callee, names),
        })
    }
}

/// Returns the rows of the page's table, largest cum cost of either side first: all drawn frames, and while the limit
/// permits, the costliest of the others. Drawn frames come first among equal costs. The order of other equal costs is
/// the order by cum of tables.
fn table_rows(top: &Top, drawn: &[bool], max_rows: usize) -> Vec<TopRow> {
    // Rows are wide, so sorting moves their keys.
    let key = |(row, i): (&TopRow, u32)| {
        let [cum, flat] = Sort::Cum.size(row.flat, row.cum);
        (Reverse([u64::from(drawn[row.frame as usize]), magnitude(row.cum), cum, flat]), i)
    };
    let name = |row: u32| top.frames.order(top.rows[row as usize].frame);
    let mut keys: Vec<(Reverse<[u64; 4]>, u32)> = top.rows.iter().zip(0..).map(key).collect();
    let n_drawn = keys.iter().filter(|(Reverse([is_drawn, ..]), _)| *is_drawn == 1).count();
    let n = max_rows.max(n_drawn);
    if n < keys.len() {
        keys.select_nth_unstable_by(n, |a, b| a.0.cmp(&b.0).then_with(|| name(a.1).cmp(&name(b.1))));
        keys.truncate(n);
    }
    keys.iter_mut().for_each(|(Reverse(key), _)| key.swap(0, 1));
    keys.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| name(a.1).cmp(&name(b.1))));
    keys.iter().map(|&(_, i)| top.rows[i as usize]).collect()
}

/// Returns the larger magnitude of both sides.
fn magnitude(p: Pair) -> u64 {
    p.base.unsigned_abs().max(p.new.unsigned_abs())
}

/// Returns the ids of the frames of the call graph's nodes, in the order of the nodes in the picture.
pub(crate) fn drawn_frames(graph: &Graph, names: &mut PageNames) -> Vec<u64> {
    graph.nodes.iter().map(|n| names.id(&graph.frames, n.frame)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::cmp::Reverse;

    use super::{PageNumbers, differences_from_parent, magnitude, table_rows};
    use pprofdiff::builder::ProfileBuilder;
    use pprofdiff::flame::FlameOptions;
    use pprofdiff::{Diff, Measure, Query, Sort, TopRow};

    /// A generator of pseudorandom numbers below a bound.
    fn random() -> impl FnMut(usize) -> usize {
        let mut seed = 1u32;
        move |below| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as usize % below
        }
    }

    /// A measure with few distinct costs, so that many rows are equal.
    fn measure(next: &mut impl FnMut(usize) -> usize) -> Measure {
        let mut profile = |name: &str| {
            let mut builder = ProfileBuilder::new();
            builder.sample_type("cpu", "nanoseconds");
            let mut frames = Vec::new();
            for i in 0..200 {
                let function = builder.function(format!("f{}", i * 7919 % 200), "", 0);
                let line = builder.line(function, 0);
                frames.push(builder.location(None, 0, &[line]).unwrap());
            }
            for _ in 0..500 {
                let stack = [frames[next(200)], frames[next(20)], frames[next(3)]];
                builder.sample(&stack, &[next(4) as i64 - 1], &[]).unwrap();
            }
            builder.build(name).unwrap()
        };
        Diff::between(profile("base"), profile("new")).unwrap().measure(&Query::default()).unwrap()
    }

    #[test]
    fn the_table_has_the_costliest_rows_and_all_drawn_frames() {
        let mut next = random();
        for max_rows in [0, 5, 50, 100, 150, 1000] {
            let mut top = measure(&mut next).top(Sort::Flat);
            let drawn: Vec<bool> = (0..top.frames.len()).map(|_| next(3) == 0).collect();
            let ours = table_rows(&top, &drawn, max_rows);
            // The plain form: stable sorts of all rows.
            top.sort(Sort::Cum);
            let mut rows: Vec<&TopRow> = top.rows.iter().collect();
            rows.sort_by_key(|r| Reverse((drawn[r.frame as usize], magnitude(r.cum))));
            let n_drawn = rows.iter().filter(|r| drawn[r.frame as usize]).count();
            rows.truncate(max_rows.max(n_drawn));
            rows.sort_by_key(|r| Reverse(magnitude(r.cum)));
            assert!(ours.iter().eq(rows), "{max_rows}");
        }
    }

    #[test]
    fn differences_from_parents_equal_those_by_index() {
        let flame = measure(&mut random()).flame(&FlameOptions::default());
        assert!(flame.nodes.len() > 300);
        let [base, new] = differences_from_parent(&flame.nodes, |n| [n.cum.base, n.cum.new]);
        // The plain form: the parent of a node is the last node before it that is one level higher.
        let nodes = &flame.nodes;
        let parent = |i: usize| nodes[..i].iter().rev().find(|n| n.depth + 1 == nodes[i].depth).map(|n| n.cum);
        let parents: Vec<_> = (0..nodes.len()).map(|i| parent(i).unwrap_or_default()).collect();
        let plain = |value: fn(pprofdiff::Pair) -> i64| {
            nodes
                .iter()
                .zip(&parents)
                .map(|(n, parent)| value(*parent) - value(n.cum))
                .collect::<PageNumbers>()
                .base64()
        };
        assert_eq!([base, new], [plain(|pair| pair.base), plain(|pair| pair.new)]);
    }
}
