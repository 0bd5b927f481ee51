//! The data of one sample type on the page, as columns for its script: both flame graphs, the table with callers and
//! callees, and the call graph.

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
    let node_code = |n: &FlameNode| {
        let node_code = match n.frame {
            FlameFrame::Root => 0,
            FlameFrame::Pruned => 1,
            FlameFrame::Frame(f) => id(f) + 2,
        };
        node_code * 4 + u64::from(n.sides.0) + 2 * u64::from(n.sides.1)
    };
    let nodes = &flame.nodes;
    let node_code: PageNumbers = nodes.iter().map(node_code).collect();
    let depth: PageNumbers = nodes.iter().map(|n| u64::from(n.depth)).collect();
    let mut parents = Vec::with_capacity(nodes.len());
    let mut path: Vec<usize> = Vec::new();
    for (i, n) in nodes.iter().enumerate() {
        path.truncate(n.depth as usize);
        parents.push(path.last().copied());
        path.push(i);
    }
    let differences_from_parent = |value: &dyn Fn(&FlameNode) -> i64| {
        let differences =
            nodes.iter().zip(&parents).map(|(n, p)| p.map_or(0, |p| value(&nodes[p])).wrapping_sub(value(n)));
        differences.collect::<PageNumbers>().base64()
    };
    let mut columns = json!({
        "nodes": nodes.len(),
        "what": node_code.base64(),
        "depth": depth.base64(),
        "base": differences_from_parent(&|n| n.cum.base),
        "new": differences_from_parent(&|n| n.cum.new),
        "max": differences_from_parent(&|n| n.width.max),
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
        columns["base_width"] = differences_from_parent(&|n| n.width.base).into();
        columns["new_width"] = differences_from_parent(&|n| n.width.new).into();
        columns["delta_width"] = differences_from_parent(&|n| n.width.delta).into();
    }
    columns
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
        top.sort(Sort::Cum);
        let mut drawn = vec![false; top.frames.len()];
        // All graphs belong to the same view, so their frames have the same numbers as those of the table.
        for node in graphs.iter().flat_map(|g| &g.nodes) {
            if let FlameFrame::Frame(f) = node.frame {
                drawn[f as usize] = true;
            }
        }
        let mut rows: Vec<&TopRow> = top.rows.iter().collect();
        rows.sort_by_key(|r| std::cmp::Reverse((drawn[r.frame as usize], magnitude(r.cum))));
        let n_drawn = rows.iter().filter(|r| drawn[r.frame as usize]).count();
        rows.truncate(max_rows.max(n_drawn));
        rows.sort_by_key(|r| std::cmp::Reverse(magnitude(r.cum)));
        let mut in_table = vec![false; top.frames.len()];
        rows.iter().for_each(|r| in_table[r.frame as usize] = true);

        // Only compute and sort the edges of frames in the table.
        let all_rows = top.rows.len();
        let nodes: Vec<TopRow> = top.rows.iter().filter(|r| in_table[r.frame as usize]).copied().collect();
        let rows: Vec<TopRow> = rows.into_iter().copied().collect();
        top.rows = nodes;
        PageFrames { rows, all_rows, in_table, edges: view.edges_of(top) }
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
            let [mut shown, mut all, mut other, mut base, mut new] = [const { Vec::<i64>::new() }; 5];
            for (i, row) in checkpointed(rows.iter().enumerate()) {
                let group = edges_by_frame.get(&row.frame).copied().unwrap_or_default();
                let mut group: Vec<_> = group.iter().filter(|e| e.relation == wanted_relation).collect();
                all.push(group.len() as i64);
                group.retain(|e| in_table[e.other as usize]);
                group.sort_by_key(|e| std::cmp::Reverse(magnitude(e.weight)));
                group.truncate(MAX_EDGES[usize::from(i >= COSTLIEST)]);
                shown.push(group.len() as i64);
                other.extend(group.iter().map(|e| names.id(frames, e.other) as i64));
                base.extend(group.iter().map(|e| e.weight.base));
                new.extend(group.iter().map(|e| e.weight.new));
            }
            let column = |v: Vec<i64>| v.into_iter().collect::<PageNumbers>().base64();
            json!({"shown": column(shown), "all": column(all), "other": column(other), "base": column(base), "new": column(new)})
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

/// Returns the larger magnitude of both sides.
fn magnitude(p: Pair) -> u64 {
    p.base.unsigned_abs().max(p.new.unsigned_abs())
}

/// Returns the ids of the frames of the call graph's nodes, in the order of the nodes in the picture.
pub(crate) fn drawn_frames(graph: &Graph, names: &mut PageNames) -> Vec<u64> {
    graph.nodes.iter().map(|n| names.id(&graph.frames, n.frame)).collect()
}
