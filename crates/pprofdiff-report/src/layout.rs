//! Lays out the nodes and calls of a call graph's picture. This file assigns levels, `order` orders the points of each
//! level, and `position` assigns coordinates. The levels determine the cost of both later steps, so the cost is known
//! and limited before they run.
//!
//! A call has a point on each level that it passes, plus one for its label between two levels. A hundred nodes that all
//! call each other would have half a million points, and nobody can follow so many lines. Calls are therefore laid out,
//! heaviest first, until the budget is used up.
//!
//! For the same levels, the result equals the layout of the crate dagre, and a test compares both. Earlier versions
//! used dagre, but it identifies points by strings and took half the time of a small profile's page. Here, points are
//! numbers and lines are stored in arrays.

mod layers;
mod order;
mod position;

use layers::Layered;
use order::order;
use position::position;
use pprofdiff::cancellation;

pub(super) type LayoutPoint = (f64, f64);

/// A call from one node to another.
pub(super) struct LayoutEdge {
    pub from: usize,
    pub to: usize,
    /// The weight relative to other calls. Heavy calls are kept short and straight.
    pub weight: u32,
}

/// The points of a call's line, from caller to callee, and the centre of its label.
pub(super) struct EdgeRoute {
    pub points: Vec<LayoutPoint>,
    pub label: LayoutPoint,
}

/// The remaining budget for layouts. One budget can cover several pictures.
#[derive(Debug)]
pub struct LayoutBudget {
    /// The remaining number of points of calls.
    points: i64,
    /// The remaining sum of the squared numbers of points per level.
    squares: i64,
}

/// The maximum number of points of all calls in one picture. A real profile's graph of 80 nodes has a few hundred.
const MAX_POINTS: i64 = 4000;
/// The maximum sum of the squared numbers of points and nodes per level in one picture.
const MAX_SQUARES: i64 = 400_000;
/// Consecutive points of a call's line are merged if both coordinates differ by less than this.
const SAME_POINT: f64 = 1e-4;
/// The maximum number of steps towards shorter calls is the number of nodes times this. Each step costs a pass over the
/// graph. Real graphs need less than one step per node.
const STEPS: usize = 4;

/// The calls that fit into the budget, with the resulting levels of the nodes.
pub(super) struct Chosen {
    /// The indices of the chosen calls in the list of all calls, ascending.
    pub calls: Vec<usize>,
    levels: NodeLevels,
}

impl LayoutBudget {
    /// Creates the budget for this number of pictures.
    pub fn for_pictures(pictures: i64) -> LayoutBudget {
        LayoutBudget { points: MAX_POINTS * pictures, squares: MAX_SQUARES * pictures }
    }

    /// Returns true if the rest of the budget is too small for a useful picture: less than a quarter of the budget of
    /// one picture.
    pub fn is_used_up(&self) -> bool {
        self.points < MAX_POINTS / 4 || self.squares < MAX_SQUARES / 4
    }

    /// Returns the budget that remains after a layout of these levels, or `None` if the layout does not fit. A single
    /// layout never gets more than the budget of one picture.
    fn remaining_after(&self, levels: &NodeLevels) -> Option<LayoutBudget> {
        let (points, squares) = levels.cost();
        let fits = points <= MAX_POINTS.min(self.points) && squares <= MAX_SQUARES.min(self.squares);
        fits.then(|| LayoutBudget { points: self.points - points, squares: self.squares - squares })
    }
}

/// Chooses the calls to lay out and reduces the budget by their cost. The heaviest call to each node comes first, then
/// all other calls by weight; the result is the beginning of this order that fits into the budget. `edges` must be
/// sorted by descending weight and must not contain calls from a node to itself. The work is bounded for any number of
/// calls among a few hundred nodes. If no call fits, the result has no calls and the budget stays.
pub(super) fn choose(n_nodes: usize, edges: &[LayoutEdge], budget: &mut LayoutBudget) -> Chosen {
    // The heaviest call to each node comes before all others, so that few nodes are cut off from their callers.
    let mut reached = vec![false; n_nodes];
    let (mut order, more): (Vec<usize>, Vec<usize>) =
        (0..edges.len()).partition(|&i| !std::mem::replace(&mut reached[edges[i].to], true));
    order.extend(more);
    let first = |n: usize| {
        let mut calls = order[..n].to_vec();
        calls.sort_unstable();
        let levels = NodeLevels::new(n_nodes, calls.iter().map(|&i| &edges[i]));
        Chosen { calls, levels }
    };
    // More calls have more points, except in rare cases, so search for the largest number of calls by bisection. Each
    // call has at least one point, so more than `MAX_POINTS` calls cannot fit.
    let mut unfit = order.len().min(MAX_POINTS as usize) + 1;
    let mut chosen = first(unfit - 1);
    let mut left = budget.remaining_after(&chosen.levels);
    if left.is_none() {
        chosen = first(0);
        unfit -= 1;
        while chosen.calls.len() + 1 < unfit {
            let more = first(chosen.calls.len().midpoint(unfit));
            match budget.remaining_after(&more.levels) {
                Some(rest) => (chosen, left) = (more, Some(rest)),
                None => unfit = more.calls.len(),
            }
        }
    }
    if let Some(left) = left {
        *budget = left;
    }
    chosen
}

/// A call that leads down. Calls that close a cycle would lead up and are reversed.
#[derive(Clone, Copy)]
struct DownwardCall {
    upper: usize,
    lower: usize,
    weight: u32,
    /// True if the call was reversed, so that `lower` is the caller.
    turned: bool,
}

/// The level of each node, 0 at the top, and the calls, each from one level to a deeper one.
struct NodeLevels {
    of_node: Vec<usize>,
    calls: Vec<DownwardCall>,
}

impl NodeLevels {
    fn new<'a>(n: usize, edges: impl Iterator<Item = &'a LayoutEdge>) -> NodeLevels {
        let (calls, topological) = without_cycles(n, edges);
        let mut tree = SimplexTree::new(n, &calls, &topological);
        for _ in 0..STEPS * n {
            cancellation::checkpoint();
            if !tree.step(&calls) {
                break;
            }
        }
        let top = tree.level[1..].iter().min().copied().unwrap_or(0);
        NodeLevels { of_node: tree.level[1..].iter().map(|l| (l - top) as usize).collect(), calls }
    }

    /// Returns the cost of a layout: the number of points of calls, and the sum of the squared numbers of points and
    /// nodes per level.
    fn cost(&self) -> (i64, i64) {
        let deepest = self.of_node.iter().max().copied().unwrap_or(0);
        // Even levels contain nodes, and the odd level below each contains labels. A call has a point on each level
        // strictly between its nodes. The counts are differences from the level above.
        let mut changes = vec![0i64; 2 * deepest + 2];
        for c in &self.calls {
            changes[2 * self.of_node[c.upper] + 1] += 1;
            changes[2 * self.of_node[c.lower]] -= 1;
        }
        let mut nodes = vec![0i64; changes.len()];
        self.of_node.iter().for_each(|&level| nodes[2 * level] += 1);
        let (mut points, mut squares, mut passing) = (0i64, 0i64, 0i64);
        for (change, nodes) in changes.iter().zip(&nodes) {
            passing += change;
            points += passing;
            squares += (passing + nodes).pow(2);
        }
        (points, squares)
    }
}

/// Reverses the calls that close a cycle: those that lead back to an open node of a depth-first search, which starts at
/// nodes without callers. Also returns the nodes in topological order.
fn without_cycles<'a>(n: usize, edges: impl Iterator<Item = &'a LayoutEdge>) -> (Vec<DownwardCall>, Vec<usize>) {
    #[derive(Clone, Copy, PartialEq)]
    enum VisitState {
        New,
        Open,
        Done,
    }
    let down = |l: &LayoutEdge| DownwardCall { upper: l.from, lower: l.to, weight: l.weight, turned: false };
    let mut calls: Vec<DownwardCall> = edges.map(down).collect();
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut called = vec![false; n];
    for (i, c) in calls.iter().enumerate() {
        out[c.upper].push(i);
        called[c.lower] = true;
    }
    let mut state = vec![VisitState::New; n];
    let mut finished = Vec::with_capacity(n);
    for start in (0..n).filter(|&v| !called[v]).chain(0..n) {
        if state[start] != VisitState::New {
            continue;
        }
        state[start] = VisitState::Open;
        let mut open = vec![(start, 0)];
        while let Some((v, next)) = open.last_mut() {
            let Some(&i) = out[*v].get(*next) else {
                state[*v] = VisitState::Done;
                finished.push(*v);
                open.pop();
                continue;
            };
            *next += 1;
            let c = &mut calls[i];
            match state[c.lower] {
                VisitState::New => {
                    state[c.lower] = VisitState::Open;
                    open.push((c.lower, 0));
                }
                VisitState::Open => (c.upper, c.lower, c.turned) = (c.lower, c.upper, true),
                VisitState::Done => {}
            }
        }
    }
    finished.reverse();
    (calls, finished)
}

/// The network simplex method for levels (Gansner and others, "A Technique for Drawing Directed Graphs"). The tree
/// consists of calls that span exactly one level. A step replaces a call of the tree with another call. This moves the
/// whole subtree below the call, and a step is done only if it makes calls shorter in total, weighted. Nodes are
/// numbered from 1. Node 0 is an artificial root with a call without weight to each node.
struct SimplexTree {
    /// The level of each node, 0 for the root.
    level: Vec<i64>,
    /// The parent of each node in the tree: the other end of the tree call that connects the node towards the root.
    parent: Vec<usize>,
    /// True if the node's parent is on the level above the node, false if it is on the level below.
    parent_above: Vec<bool>,
    /// The weight of the outgoing calls of each node minus the weight of its incoming calls. If it is positive, moving
    /// the node down makes calls shorter in total.
    pull: Vec<i64>,
}

impl SimplexTree {
    /// Creates a tree with each node on the highest possible level. `topological` must list callers before callees.
    fn new(n: usize, calls: &[DownwardCall], topological: &[usize]) -> SimplexTree {
        let mut level = vec![1; n + 1];
        level[0] = 0;
        let mut tree =
            SimplexTree { level, parent: vec![0; n + 1], parent_above: vec![true; n + 1], pull: vec![0; n + 1] };
        let mut from: Vec<Vec<usize>> = vec![Vec::new(); n];
        for c in calls {
            from[c.upper].push(c.lower);
            tree.pull[c.upper + 1] += i64::from(c.weight);
            tree.pull[c.lower + 1] -= i64::from(c.weight);
        }
        for &upper in topological {
            for &lower in &from[upper] {
                if tree.level[lower + 1] <= tree.level[upper + 1] {
                    tree.level[lower + 1] = tree.level[upper + 1] + 1;
                    tree.parent[lower + 1] = upper + 1;
                }
            }
        }
        tree
    }

    /// Moves the subtree with the largest gain per level, as far as its calls permit. Returns false if no move makes
    /// calls shorter.
    fn step(&mut self, calls: &[DownwardCall]) -> bool {
        let n = self.level.len();
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); n];
        (1..n).for_each(|v| children[self.parent[v]].push(v));
        let mut below = vec![0];
        let mut next = 0;
        while let Some(&v) = below.get(next) {
            below.extend(&children[v]);
            next += 1;
        }
        // Calls within a subtree cancel out.
        let mut pull = self.pull.clone();
        for &v in below.iter().skip(1).rev() {
            pull[self.parent[v]] += pull[v];
        }
        // A tree call already has the minimum length, so a node can only move away from the call's other end.
        let free = |v: &usize| if self.parent_above[*v] { pull[*v] > 0 } else { pull[*v] < 0 };
        let Some(leaving) = (1..n).filter(free).max_by_key(|&v| (pull[v].abs(), std::cmp::Reverse(v))) else {
            return false;
        };
        let down = pull[leaving] > 0;
        let mut moved = vec![false; n];
        let mut open = vec![leaving];
        while let Some(v) = open.pop() {
            moved[v] = true;
            open.extend(&children[v]);
        }
        // The call that limits the move: its moving end, its other end, and the distance that it permits.
        let ends = calls.iter().map(|c| (c.upper + 1, c.lower + 1)).chain((1..n).map(|v| (0, v)));
        let in_the_way = ends.filter(|&(upper, lower)| match down {
            true => moved[upper] && !moved[lower],
            false => !moved[upper] && moved[lower],
        });
        let room = |&(upper, lower): &(usize, usize)| self.level[lower] - self.level[upper] - 1;
        let Some(entering) = in_the_way.min_by_key(room) else { return false };
        let shift = room(&entering) * if down { 1 } else { -1 };
        (1..n).filter(|&v| moved[v]).for_each(|v| self.level[v] += shift);
        // The nodes below the removed call now hang on the inserted call. Reverse the parents on the path between both.
        let (mut v, mut parent) = if down { entering } else { (entering.1, entering.0) };
        let mut above = !down;
        loop {
            let (next, next_above) = (self.parent[v], self.parent_above[v]);
            (self.parent[v], self.parent_above[v]) = (parent, above);
            if v == leaving {
                return true;
            }
            (parent, v, above) = (v, next, !next_above);
        }
    }
}

/// Lays out nodes and the chosen calls. `sizes` are the sizes of all nodes, and `labels` the sizes of the chosen calls'
/// labels. Returns the centre of each node and the route of each chosen call.
pub(super) fn place(
    sizes: &[LayoutPoint],
    labels: &[LayoutPoint],
    chosen: &Chosen,
) -> (Vec<LayoutPoint>, Vec<EdgeRoute>) {
    cancellation::begin_phase("drawing");
    let NodeLevels { of_node: levels, calls } = &chosen.levels;
    let graph = Layered::new(levels, sizes, calls, labels);
    let layers = order(&graph);
    cancellation::checkpoint();
    let middles = position(&graph, &layers);
    // The upper left corner of all nodes and labels is the origin.
    let boxes = (0..=graph.bottom).chain(graph.labels.iter().copied());
    let (left, top) = boxes.fold((f64::INFINITY, f64::INFINITY), |(left, top), point| {
        let ((x, y), (width, height)) = (middles[point], graph.size[point]);
        (left.min(x - width / 2.0), top.min(y - height / 2.0))
    });
    let position_of = |point: usize| (middles[point].0 + (0.0 - left), middles[point].1 + (0.0 - top));
    let route = |((call, bends), &label): ((&DownwardCall, &std::ops::Range<usize>), &usize)| {
        let bends: Vec<LayoutPoint> = bends.clone().map(position_of).collect();
        let end = |node: usize, next: Option<&LayoutPoint>| {
            border(position_of(node), sizes[node], *next.unwrap_or(&position_of(node)))
        };
        let mut points = vec![end(call.upper, bends.first())];
        points.extend(&bends);
        points.push(end(call.lower, bends.last()));
        points.dedup_by(|a, b| (a.0 - b.0).abs() < SAME_POINT && (a.1 - b.1).abs() < SAME_POINT);
        if call.turned {
            points.reverse();
        }
        EdgeRoute { points, label: position_of(label) }
    };
    let routes = calls.iter().zip(&graph.bends).zip(&graph.labels).map(route).collect();
    ((0..sizes.len()).map(position_of).collect(), routes)
}

/// Returns the point where the line from a box's centre (`middle`) to `to` leaves the box, or the centre if both are
/// equal.
fn border(middle: LayoutPoint, size: LayoutPoint, to: LayoutPoint) -> LayoutPoint {
    let (dx, dy) = (to.0 - middle.0, to.1 - middle.1);
    let (x, y) = (size.0 / 2.0, size.1 / 2.0);
    if (dx, dy) == (0.0, 0.0) {
        return middle;
    }
    // The line leaves through the top or bottom, or else through a side.
    let (x, y) = if dy.abs() * x > dx.abs() * y {
        let y = y.copysign(dy);
        (y * dx / dy, y)
    } else {
        let x = x.copysign(dx);
        (x, if dx == 0.0 { 0.0 } else { x * dy / dx })
    };
    (middle.0 + x, middle.1 + y)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(seed: &mut u64, below: u64) -> usize {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        (*seed % below) as usize
    }

    /// Returns the minimum sum of weight x length over all possible levels of five nodes.
    fn shortest(calls: &[DownwardCall]) -> i64 {
        let levels = (0..5_usize.pow(5)).map(|all| std::array::from_fn::<_, 5, _>(|i| all / 5_usize.pow(i as u32) % 5));
        levels.filter_map(|levels| sum(calls, &levels)).min().unwrap_or(i64::MAX)
    }

    /// Returns the sum of weight x length, or `None` if a call does not lead down.
    fn sum(calls: &[DownwardCall], levels: &[usize]) -> Option<i64> {
        let length = |c: &DownwardCall| levels[c.lower].checked_sub(levels[c.upper]).filter(|&l| l > 0);
        calls.iter().map(|c| Some(length(c)? as i64 * i64::from(c.weight))).sum()
    }

    #[test]
    fn calls_lead_down_and_have_minimal_length() {
        let mut seed = 20;
        for _ in 0..300 {
            let edges: Vec<LayoutEdge> = (0..2 + random(&mut seed, 7))
                .map(|_| (random(&mut seed, 5), random(&mut seed, 4), 1 + random(&mut seed, 9) as u32))
                .map(|(from, other, weight)| LayoutEdge { from, to: (from + 1 + other) % 5, weight })
                .collect();
            let levels = NodeLevels::new(5, edges.iter());
            for (call, edge) in levels.calls.iter().zip(&edges) {
                let (from, to) = if call.turned { (call.lower, call.upper) } else { (call.upper, call.lower) };
                assert_eq!((from, to), (edge.from, edge.to));
            }
            assert_eq!(sum(&levels.calls, &levels.of_node), Some(shortest(&levels.calls)));
            assert!(LayoutBudget::for_pictures(1).remaining_after(&levels).is_some());
        }
    }

    #[test]
    fn only_calls_that_close_a_cycle_are_reversed() {
        let edge = |(from, to)| LayoutEdge { from, to, weight: 1 };
        // Recursion between 1 and 2 below 0, with either order of the calls.
        for ends in [[(0, 1), (1, 2), (2, 1)], [(2, 1), (1, 2), (0, 1)]] {
            let edges = ends.map(edge);
            let levels = NodeLevels::new(3, edges.iter());
            assert_eq!(levels.of_node, [0, 1, 2]);
            let turned = levels.calls.iter().zip(ends).filter(|(c, _)| c.turned).map(|(_, ends)| ends);
            assert_eq!(turned.collect::<Vec<_>>(), [(2, 1)]);
        }
    }

    /// Returns dagre's layout of the same nodes, calls and levels.
    #[allow(clippy::unwrap_used)]
    fn by_dagre(
        sizes: &[LayoutPoint],
        labels: &[LayoutPoint],
        levels: &NodeLevels,
    ) -> (Vec<LayoutPoint>, Vec<EdgeRoute>) {
        use dagre::graph::{Graph, GraphOptions};
        use dagre::layout::types::{LabelPos, Ranker};
        use dagre::{EdgeLabel, LayoutOptions, NodeLabel};
        // Two calls may lead from one node to another after one was reversed.
        let options = GraphOptions { directed: true, multigraph: true, compound: false };
        let mut graph: Graph<NodeLabel, EdgeLabel> = Graph::with_options(options);
        for (i, &(width, height)) in sizes.iter().enumerate() {
            graph.set_node(i.to_string(), Some(NodeLabel { width, height, ..NodeLabel::default() }));
        }
        for (i, (call, &(width, height))) in levels.calls.iter().zip(labels).enumerate() {
            let (labelpos, weight) = (LabelPos::Center, call.weight as i32);
            let label = EdgeLabel { width, height, labelpos, weight, ..EdgeLabel::default() };
            graph.set_edge(call.upper.to_string(), call.lower.to_string(), Some(label), Some(&i.to_string()));
        }
        // Force our levels, which dagre does not accept as input: connect each node to a common node at the bottom by a
        // call of the matching length.
        const BOTTOM: &str = "bottom";
        graph.set_node(BOTTOM.to_owned(), Some(NodeLabel::default()));
        let deepest = levels.of_node.iter().max().copied().unwrap_or(0);
        for (i, level) in levels.of_node.iter().enumerate() {
            let minlen = (deepest - level) as i32;
            let hanging_edge = EdgeLabel { minlen, weight: 0, nesting_edge: true, ..EdgeLabel::default() };
            graph.set_edge(i.to_string(), BOTTOM.to_owned(), Some(hanging_edge), None);
        }
        let (nodesep, edgesep, ranksep, ranker) = (22.0, 10.0, 34.0, Ranker::LongestPath);
        let options = LayoutOptions { nodesep, edgesep, ranksep, ranker, ..LayoutOptions::default() };
        dagre::layout(&mut graph, Some(options));
        let node = |i: usize| graph.node(&i.to_string()).and_then(|n| Some((n.x?, n.y?))).unwrap();
        let route = |(i, call): (usize, &DownwardCall)| {
            let e = graph.edge(&call.upper.to_string(), &call.lower.to_string(), Some(&i.to_string())).unwrap();
            let mut points: Vec<LayoutPoint> = e.points.iter().map(|p| (p.x, p.y)).collect();
            if call.turned {
                points.reverse();
            }
            EdgeRoute { points, label: (e.x.unwrap(), e.y.unwrap()) }
        };
        ((0..sizes.len()).map(node).collect(), levels.calls.iter().enumerate().map(route).collect())
    }

    #[test]
    fn layouts_match_dagre() {
        let mut seed = 33;
        for i in 0..60 {
            let n = 1 + random(&mut seed, 2 + i / 2);
            let n_edges = random(&mut seed, 3 * n as u64);
            let mut ends: Vec<(usize, usize)> = Vec::new();
            for _ in 0..n_edges {
                let call = (random(&mut seed, n as u64), random(&mut seed, n as u64));
                if call.0 != call.1 && !ends.contains(&call) {
                    ends.push(call);
                }
            }
            let edges: Vec<LayoutEdge> = ends
                .iter()
                .map(|&(from, to)| LayoutEdge { from, to, weight: 1 + random(&mut seed, 20) as u32 })
                .collect();
            let mut size = |_| (20.0 + random(&mut seed, 900) as f64 / 7.0, 12.0 + random(&mut seed, 300) as f64 / 9.0);
            let sizes: Vec<LayoutPoint> = (0..n).map(&mut size).collect();
            let chosen = choose(n, &edges, &mut LayoutBudget::for_pictures(1));
            let labels: Vec<LayoutPoint> = chosen.calls.iter().map(|&call| (size(call).0, 12.6)).collect();
            let (nodes, routes) = place(&sizes, &labels, &chosen);
            let (dagre_nodes, dagre_routes) = by_dagre(&sizes, &labels, &chosen.levels);
            assert_eq!(nodes, dagre_nodes, "picture {i}");
            let route_parts =
                |routes: Vec<EdgeRoute>| routes.into_iter().map(|r| (r.points, r.label)).collect::<Vec<_>>();
            assert_eq!(route_parts(routes), route_parts(dagre_routes), "picture {i}");
        }
    }
}
