//! What the page shows of one sample type, as columns that its script reads: both flame graphs, the table with callers
//! and callees, the call graph.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::columns::Numbers;
use super::names::Names;
use pprofdiff::edges::{Edge, Edges, Relation};
use pprofdiff::explain::Explanation;
use pprofdiff::flame::{Flame, FlameFrame, FlameNode};
use pprofdiff::graph::Graph;
use pprofdiff::random::HashMap;
use pprofdiff::work::paced;
use pprofdiff::{Frames, Measure, Pair, Sort, Top, TopRow};

/// Callers, and callees, of one function that the page has at most: of the thousand costliest, and of the others.
/// Edges are most of a large page, and few of them are ever looked at.
const MAX_EDGES: [usize; 2] = [12, 2];
const COSTLIEST: usize = 1000;
/// Frames beside the total: how many rose, and how many fell.
const MOVERS: usize = 5;

/// What of a view is no more than chance, if that is known.
pub(super) struct Chance<'a> {
    pub(super) e: &'a Explanation,
    /// By what the view's new values are multiplied.
    pub(super) factor: f64,
    /// How many runs the values of each side are sums of.
    pub(super) runs: [f64; 2],
    /// How much the total changed, where that is certain: a frame that has most of it changed, too.
    pub(super) whole: Option<i64>,
}

impl Chance<'_> {
    fn is_chance(&self, p: Pair) -> bool {
        let [base, new] = self.runs;
        if self.whole.is_some_and(|whole| p.delta() as f64 / whole as f64 > 0.5) {
            return false;
        }
        self.e.is_chance(p.base as f64 / base, p.new as f64 / self.factor / new)
    }

    /// Which nodes of a flame graph are, as [`bits`].
    pub(super) fn of_flame(&self, flame: &Flame) -> String {
        // Many frames have all that their caller has, which comes before them.
        let mut last: Option<(Pair, bool)> = None;
        let mut is_chance = |p: Pair| match last {
            Some((known, is_chance)) if known == p => is_chance,
            _ => {
                let is_chance = self.is_chance(p);
                last = Some((p, is_chance));
                is_chance
            }
        };
        let is_frame = |n: &FlameNode| !matches!(n.frame, FlameFrame::Pruned);
        bits(flame.nodes.iter().map(|n| is_frame(n) && is_chance(n.cum)))
    }

    /// How much of a frame is chance, by its size: the least growth of one with 1, 2, 4, 8 ... events, and how much
    /// growth is that of the work.
    pub(super) fn sizes(&self, total: Pair) -> Value {
        let event = self.e.noise.event;
        let sizes =
            (0..63).map(|i| event * (1u64 << i) as f64).take_while(|size| *size > 0.0 && *size < total.base as f64);
        let digits = |factor: f64| (factor * 1e4).round() / 1e4;
        let least: Vec<f64> = sizes.map(|size| digits(self.e.least_growth(size / self.runs[0]))).collect();
        json!({"event": event, "least": least, "work": self.e.scale.factor})
    }
}

/// A bit for each of some values, in base64: a byte for eight, the first of them the lowest bit.
pub(super) fn bits(values: impl Iterator<Item = bool>) -> String {
    let mut bytes = Vec::new();
    for (i, value) in values.enumerate() {
        if i % 8 == 0 {
            bytes.push(0);
        }
        bytes[i / 8] |= u8::from(value) << (i % 8);
    }
    STANDARD.encode(bytes)
}

/// The frames whose own cost changed most in one direction; of one profile, those that cost most. Own cost, since these
/// changes add up to that of the total; by cum, the first would be callers of each other.
///
/// `top` is by flat, largest change first.
pub(super) fn movers(top: &Top, which: fn(i64) -> bool) -> Vec<TopRow> {
    top.rows.iter().filter(|r| which(r.flat.delta())).take(MOVERS).copied().collect()
}

/// These frames with both values.
pub(super) fn mover_rows(rows: &[TopRow], frames: &Frames, names: &mut Names) -> Value {
    rows.iter().map(|r| json!([names.id(frames, r.frame), r.flat.base.to_string(), r.flat.new.to_string()])).collect()
}

/// int64 as text: JavaScript's numbers end at 2^53.
pub(super) fn pair(p: Pair) -> Value {
    json!([p.base.to_string(), p.new.to_string()])
}

/// A flame graph as columns, a node a row, depth first.
///
/// What a node is: 0 the root, 1 `(pruned)`, else its frame + 2; times four, plus 1 if the base has it, plus 2 if
/// the new side has it. Values lack of the parent's. Widths that follow from the two values are left out,
/// which is all of them unless there are negative values or scaled ones.
pub(super) fn flame(flame: &Flame, names: &mut Names) -> Value {
    let mut ids = vec![None; flame.frames.len()];
    let mut id = |frame: u32| *ids[frame as usize].get_or_insert_with(|| names.id(&flame.frames, frame));
    let what = |n: &FlameNode| {
        let what = match n.frame {
            FlameFrame::Root => 0,
            FlameFrame::Pruned => 1,
            FlameFrame::Frame(f) => id(f) + 2,
        };
        what * 4 + u64::from(n.sides.0) + 2 * u64::from(n.sides.1)
    };
    let nodes = &flame.nodes;
    let what: Numbers = nodes.iter().map(what).collect();
    let depth: Numbers = nodes.iter().map(|n| u64::from(n.depth)).collect();
    let mut parents = Vec::with_capacity(nodes.len());
    let mut path: Vec<usize> = Vec::new();
    for (i, n) in nodes.iter().enumerate() {
        path.truncate(n.depth as usize);
        parents.push(path.last().copied());
        path.push(i);
    }
    let lacking = |value: &dyn Fn(&FlameNode) -> i64| {
        let lacks = nodes.iter().zip(&parents).map(|(n, p)| p.map_or(0, |p| value(&nodes[p])).wrapping_sub(value(n)));
        lacks.collect::<Numbers>().base64()
    };
    let mut columns = json!({
        "nodes": nodes.len(),
        "what": what.base64(),
        "depth": depth.base64(),
        "base": lacking(&|n| n.cum.base),
        "new": lacking(&|n| n.cum.new),
        "max": lacking(&|n| n.width.max),
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
        columns["base_width"] = lacking(&|n| n.width.base).into();
        columns["new_width"] = lacking(&|n| n.width.new).into();
        columns["delta_width"] = lacking(&|n| n.width.delta).into();
    }
    columns
}

/// What the table shows: the frames that the graphs show, and then the others as far as there is room, by their cost. With
/// each come its costliest callers and callees, out of those that the table has.
pub(super) struct Table {
    rows: Vec<TopRow>,
    /// How many rows there are without those that it has no room for.
    all_rows: usize,
    in_table: Vec<bool>,
    edges: Edges,
}

impl Table {
    /// Of a table by flat.
    pub(super) fn new(view: &Measure, mut top: Top, graphs: &[&Flame], most: usize) -> Table {
        top.sort(Sort::Cum);
        let mut drawn = vec![false; top.frames.len()];
        // All graphs are of one view, so their frames have the same numbers as the table's.
        for node in graphs.iter().flat_map(|g| &g.nodes) {
            if let FlameFrame::Frame(f) = node.frame {
                drawn[f as usize] = true;
            }
        }
        let mut rows: Vec<&TopRow> = top.rows.iter().collect();
        rows.sort_by_key(|r| std::cmp::Reverse((drawn[r.frame as usize], magnitude(r.cum))));
        let n_drawn = rows.iter().filter(|r| drawn[r.frame as usize]).count();
        rows.truncate(most.max(n_drawn));
        rows.sort_by_key(|r| std::cmp::Reverse(magnitude(r.cum)));
        let mut in_table = vec![false; top.frames.len()];
        rows.iter().for_each(|r| in_table[r.frame as usize] = true);

        // Of what is left out, no edges are put in order.
        let all_rows = top.rows.len();
        let nodes: Vec<TopRow> = top.rows.iter().filter(|r| in_table[r.frame as usize]).copied().collect();
        let rows: Vec<TopRow> = rows.into_iter().copied().collect();
        top.rows = nodes;
        Table { rows, all_rows, in_table, edges: view.edges_of(top) }
    }

    /// Which rows are chance by one of their values, as [`bits`].
    pub(super) fn chance(&self, chance: &Chance, value: impl Fn(&TopRow) -> Pair) -> String {
        bits(self.rows.iter().map(|row| chance.is_chance(value(row))))
    }

    /// As columns; what is chance is not known yet.
    pub(super) fn columns(&self, names: &mut Names) -> Value {
        let Table { rows, all_rows, in_table, edges } = self;
        let frames = &edges.frames;
        // Edges are grouped by node, in the order of the nodes.
        let mut of_frame: HashMap<u32, &[Edge]> = HashMap::default();
        for group in edges.edges.chunk_by(|a, b| a.node == b.node) {
            of_frame.insert(group[0].node, group);
        }
        let relation = |which: Relation, names: &mut Names| {
            let [mut shown, mut all, mut other, mut base, mut new] = [const { Vec::<i64>::new() }; 5];
            for (i, row) in paced(rows.iter().enumerate()) {
                let group = of_frame.get(&row.frame).copied().unwrap_or_default();
                let mut group: Vec<_> = group.iter().filter(|e| e.relation == which).collect();
                all.push(group.len() as i64);
                group.retain(|e| in_table[e.other as usize]);
                group.sort_by_key(|e| std::cmp::Reverse(magnitude(e.weight)));
                group.truncate(MAX_EDGES[usize::from(i >= COSTLIEST)]);
                shown.push(group.len() as i64);
                other.extend(group.iter().map(|e| names.id(frames, e.other) as i64));
                base.extend(group.iter().map(|e| e.weight.base));
                new.extend(group.iter().map(|e| e.weight.new));
            }
            let column = |v: Vec<i64>| v.into_iter().collect::<Numbers>().base64();
            json!({"shown": column(shown), "all": column(all), "other": column(other), "base": column(base), "new": column(new)})
        };
        let column = |value: &dyn Fn(&TopRow) -> i64| rows.iter().map(value).collect::<Numbers>().base64();
        let frame: Vec<u64> = rows.iter().map(|r| names.id(frames, r.frame)).collect();
        let statuses = |r: &TopRow| r.status as i64;
        json!({
            "rows": rows.len(),
            "of": all_rows,
            "frame": frame.into_iter().collect::<Numbers>().base64(),
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

fn magnitude(p: Pair) -> u64 {
    p.base.unsigned_abs().max(p.new.unsigned_abs())
}

/// The frames that the nodes of a call graph's picture are, in the order in which they are drawn.
pub(super) fn drawn_frames(graph: &Graph, names: &mut Names) -> Vec<u64> {
    graph.nodes.iter().map(|n| names.id(&graph.frames, n.frame)).collect()
}
