//! Where the nodes and calls of a call graph's picture lie: levels here, then the order on them (`order`) and coordinates
//! (`position`). What these cost follows from the levels; so it is known, and bounded, before anything is laid out.
//!
//! A call has a point on each level that it passes, and between two levels one more for its label: of a hundred nodes
//! that all call each other half a million points. Nobody follows so many lines; calls are therefore laid out as long as
//! there is room, the heaviest first.
//!
//! Points are numbers and their lines lie in arrays. It is what the crate dagre draws, which was asked once and which a
//! test still asks: it knows points by text, and took half the time of a small profile's page.

mod layers;
mod order;
mod position;

use layers::Layered;
use order::order;
use position::position;
use pprofdiff::work;

pub(super) type Point = (f64, f64);

/// A call from one node to another.
pub(super) struct Edge {
    pub from: usize,
    pub to: usize,
    /// Heavy calls are kept short and straight.
    pub weight: u32,
}

/// The points of a call's line, from caller to callee, and the middle of its label.
pub(super) struct EdgeRoute {
    pub points: Vec<Point>,
    pub label: Point,
}

/// What is left of the bounds on laying out.
pub(super) struct LayoutBudget {
    points: i64,
    squares: i64,
}

/// Most points that calls may have in all; a real profile's graph of 80 nodes has some hundred.
const MAX_POINTS: i64 = 4000;
/// Most that the squares of the levels' numbers of points may add up to.
const MAX_SQUARES: i64 = 400_000;
/// Points of a call's line that are nearer than this are one.
const SAME_POINT: f64 = 1e-4;
/// Steps towards shorter calls, for each node. Each costs a pass over the graph; real graphs take less than one.
const STEPS: usize = 4;

/// The calls that there is room for, and the levels of the nodes with them.
pub(super) struct Chosen {
    /// Their numbers, ascending.
    pub calls: Vec<usize>,
    levels: Levels,
}

impl LayoutBudget {
    /// For so many pictures, however large they are.
    pub(super) fn for_pictures(pictures: i64) -> LayoutBudget {
        LayoutBudget { points: MAX_POINTS * pictures, squares: MAX_SQUARES * pictures }
    }

    /// True if what is left is too little for a picture worth looking at.
    #[cfg(feature = "html")]
    pub(super) fn is_used_up(&self) -> bool {
        self.points < MAX_POINTS / 4 || self.squares < MAX_SQUARES / 4
    }

    /// Takes what a layout of these levels costs, if there is as much; one never has more than a picture's.
    fn takes(&self, levels: &Levels) -> Option<LayoutBudget> {
        let (points, squares) = levels.cost();
        let fits = points <= MAX_POINTS.min(self.points) && squares <= MAX_SQUARES.min(self.squares);
        fits.then(|| LayoutBudget { points: self.points - points, squares: self.squares - squares })
    }
}

/// Of calls (the heaviest first, none from a node to itself) those that are laid out: the heaviest to each node, and then
/// as many more as there is room for. What it does is bounded for any number of calls among some hundred nodes.
pub(super) fn choose(n_nodes: usize, edges: &[Edge], budget: &mut LayoutBudget) -> Chosen {
    // What leads to a node comes first, so that few nodes are cut off from their callers.
    let mut reached = vec![false; n_nodes];
    let (mut order, more): (Vec<usize>, Vec<usize>) =
        (0..edges.len()).partition(|&i| !std::mem::replace(&mut reached[edges[i].to], true));
    order.extend(more);
    let first = |n: usize| {
        let mut calls = order[..n].to_vec();
        calls.sort_unstable();
        let levels = Levels::new(n_nodes, calls.iter().map(|&i| &edges[i]));
        Chosen { calls, levels }
    };
    // More calls have more points, but for rare cases; so by halving what is left.
    let mut unfit = order.len().min(MAX_POINTS as usize) + 1;
    let mut chosen = first(unfit - 1);
    let mut left = budget.takes(&chosen.levels);
    if left.is_none() {
        chosen = first(0);
        unfit -= 1;
        while chosen.calls.len() + 1 < unfit {
            let more = first(chosen.calls.len().midpoint(unfit));
            match budget.takes(&more.levels) {
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

/// A call that leads down: upwards calls, which close a cycle, are turned around.
#[derive(Clone, Copy)]
struct Down {
    upper: usize,
    lower: usize,
    weight: u32,
    turned: bool,
}

/// The level of each node, 0 at the top, and the calls as they lead down from one to a deeper one.
struct Levels {
    of: Vec<usize>,
    calls: Vec<Down>,
}

impl Levels {
    fn new<'a>(n: usize, edges: impl Iterator<Item = &'a Edge>) -> Levels {
        let (calls, topological) = without_cycles(n, edges);
        let mut tree = Tree::new(n, &calls, &topological);
        for _ in 0..STEPS * n {
            work::poll();
            if !tree.step(&calls) {
                break;
            }
        }
        let top = tree.level[1..].iter().min().copied().unwrap_or(0);
        Levels { of: tree.level[1..].iter().map(|l| (l - top) as usize).collect(), calls }
    }

    /// What a layout costs: points, and the squares of each level's.
    fn cost(&self) -> (i64, i64) {
        let deepest = self.of.iter().max().copied().unwrap_or(0);
        // Between two levels there is one for labels. As differences from the one above.
        let mut changes = vec![0i64; 2 * deepest + 2];
        for c in &self.calls {
            changes[2 * self.of[c.upper] + 1] += 1;
            changes[2 * self.of[c.lower]] -= 1;
        }
        let mut nodes = vec![0i64; changes.len()];
        self.of.iter().for_each(|&level| nodes[2 * level] += 1);
        let (mut points, mut squares, mut passing) = (0i64, 0i64, 0i64);
        for (change, nodes) in changes.iter().zip(&nodes) {
            passing += change;
            points += passing;
            squares += (passing + nodes).pow(2);
        }
        (points, squares)
    }
}

/// Turns those calls around that lead back to where the search came from, which starts at nodes that nobody calls. Also
/// gives the nodes in an order in which no call leads back.
fn without_cycles<'a>(n: usize, edges: impl Iterator<Item = &'a Edge>) -> (Vec<Down>, Vec<usize>) {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let down = |l: &Edge| Down { upper: l.from, lower: l.to, weight: l.weight, turned: false };
    let mut calls: Vec<Down> = edges.map(down).collect();
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut called = vec![false; n];
    for (i, c) in calls.iter().enumerate() {
        out[c.upper].push(i);
        called[c.lower] = true;
    }
    let mut state = vec![State::New; n];
    let mut finished = Vec::with_capacity(n);
    for start in (0..n).filter(|&v| !called[v]).chain(0..n) {
        if state[start] != State::New {
            continue;
        }
        state[start] = State::Open;
        let mut open = vec![(start, 0)];
        while let Some((v, next)) = open.last_mut() {
            let Some(&i) = out[*v].get(*next) else {
                state[*v] = State::Done;
                finished.push(*v);
                open.pop();
                continue;
            };
            *next += 1;
            let c = &mut calls[i];
            match state[c.lower] {
                State::New => {
                    state[c.lower] = State::Open;
                    open.push((c.lower, 0));
                }
                State::Open => (c.upper, c.lower, c.turned) = (c.lower, c.upper, true),
                State::Done => {}
            }
        }
    }
    finished.reverse();
    (calls, finished)
}

/// The network simplex method for levels (Gansner and others, "A Technique for Drawing Directed Graphs"): a tree of calls
/// that span one level each; taking a call out of it and putting another one in moves all nodes below the first, if that
/// makes calls shorter. Nodes count from 1 here: 0 is above all others, and calls each with no weight.
struct Tree {
    level: Vec<i64>,
    /// The other end of each node's call towards the root.
    parent: Vec<usize>,
    /// True if that is the upper end.
    parent_above: Vec<bool>,
    /// The weight of the calls from each node, less that of those to it.
    pull: Vec<i64>,
}

impl Tree {
    /// Each node as far up as it can be.
    fn new(n: usize, calls: &[Down], topological: &[usize]) -> Tree {
        let mut level = vec![1; n + 1];
        level[0] = 0;
        let mut tree = Tree { level, parent: vec![0; n + 1], parent_above: vec![true; n + 1], pull: vec![0; n + 1] };
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

    /// Moves the nodes that gain most by it. False if none does.
    fn step(&mut self, calls: &[Down]) -> bool {
        let n = self.level.len();
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); n];
        (1..n).for_each(|v| children[self.parent[v]].push(v));
        let mut below = vec![0];
        let mut next = 0;
        while let Some(&v) = below.get(next) {
            below.extend(&children[v]);
            next += 1;
        }
        // All calls inside of a subtree cancel.
        let mut pull = self.pull.clone();
        for &v in below.iter().skip(1).rev() {
            pull[self.parent[v]] += pull[v];
        }
        // A call in the tree holds back what would go nearer to its other end.
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
        // The first call that stands in the way: its end that moves, its other end, and how far it lets them.
        let ends = calls.iter().map(|c| (c.upper + 1, c.lower + 1)).chain((1..n).map(|v| (0, v)));
        let in_the_way = ends.filter(|&(upper, lower)| match down {
            true => moved[upper] && !moved[lower],
            false => !moved[upper] && moved[lower],
        });
        let room = |&(upper, lower): &(usize, usize)| self.level[lower] - self.level[upper] - 1;
        let Some(entering) = in_the_way.min_by_key(room) else { return false };
        let by = room(&entering) * if down { 1 } else { -1 };
        (1..n).filter(|&v| moved[v]).for_each(|v| self.level[v] += by);
        // What was below the call that left hangs on the one that came.
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

/// Lays out nodes and calls, whose labels are given, of these sizes. Gives the middle of each node, and the route of
/// each call.
pub(super) fn place(sizes: &[Point], labels: &[Point], chosen: &Chosen) -> (Vec<Point>, Vec<EdgeRoute>) {
    work::begin_phase("drawing");
    let Levels { of: levels, calls } = &chosen.levels;
    let graph = Layered::new(levels, sizes, calls, labels);
    let layers = order(&graph);
    work::poll();
    let middles = position(&graph, &layers);
    // From the corner of all nodes and labels.
    let boxes = (0..=graph.bottom).chain(graph.labels.iter().copied());
    let (left, top) = boxes.fold((f64::INFINITY, f64::INFINITY), |(left, top), point| {
        let ((x, y), (width, height)) = (middles[point], graph.size[point]);
        (left.min(x - width / 2.0), top.min(y - height / 2.0))
    });
    let at = |point: usize| (middles[point].0 + (0.0 - left), middles[point].1 + (0.0 - top));
    let route = |((call, bends), &label): ((&Down, &std::ops::Range<usize>), &usize)| {
        let bends: Vec<Point> = bends.clone().map(at).collect();
        let end = |node: usize, next: Option<&Point>| border(at(node), sizes[node], *next.unwrap_or(&at(node)));
        let mut points = vec![end(call.upper, bends.first())];
        points.extend(&bends);
        points.push(end(call.lower, bends.last()));
        points.dedup_by(|a, b| (a.0 - b.0).abs() < SAME_POINT && (a.1 - b.1).abs() < SAME_POINT);
        if call.turned {
            points.reverse();
        }
        EdgeRoute { points, label: at(label) }
    };
    let routes = calls.iter().zip(&graph.bends).zip(&graph.labels).map(route).collect();
    ((0..sizes.len()).map(at).collect(), routes)
}

/// Where the line from a box's middle to a point leaves the box.
fn border(middle: Point, size: Point, to: Point) -> Point {
    let (dx, dy) = (to.0 - middle.0, to.1 - middle.1);
    let (x, y) = (size.0 / 2.0, size.1 / 2.0);
    if (dx, dy) == (0.0, 0.0) {
        return middle;
    }
    // Above or below, or else at a side.
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

    /// The least sum of weight x length that any levels of five nodes have.
    fn shortest(calls: &[Down]) -> i64 {
        let levels = (0..5_usize.pow(5)).map(|all| std::array::from_fn::<_, 5, _>(|i| all / 5_usize.pow(i as u32) % 5));
        levels.filter_map(|levels| sum(calls, &levels)).min().unwrap_or(i64::MAX)
    }

    /// The sum of weight x length; `None` if a call does not lead down.
    fn sum(calls: &[Down], levels: &[usize]) -> Option<i64> {
        let length = |c: &Down| levels[c.lower].checked_sub(levels[c.upper]).filter(|&l| l > 0);
        calls.iter().map(|c| Some(length(c)? as i64 * i64::from(c.weight))).sum()
    }

    #[test]
    fn calls_lead_down_and_are_as_short_as_can_be() {
        let mut seed = 20;
        for _ in 0..300 {
            let edges: Vec<Edge> = (0..2 + random(&mut seed, 7))
                .map(|_| (random(&mut seed, 5), random(&mut seed, 4), 1 + random(&mut seed, 9) as u32))
                .map(|(from, other, weight)| Edge { from, to: (from + 1 + other) % 5, weight })
                .collect();
            let levels = Levels::new(5, edges.iter());
            for (call, edge) in levels.calls.iter().zip(&edges) {
                let (from, to) = if call.turned { (call.lower, call.upper) } else { (call.upper, call.lower) };
                assert_eq!((from, to), (edge.from, edge.to));
            }
            assert_eq!(sum(&levels.calls, &levels.of), Some(shortest(&levels.calls)));
            assert!(LayoutBudget::for_pictures(1).takes(&levels).is_some());
        }
    }

    #[test]
    fn only_what_closes_a_cycle_is_turned_around() {
        let edge = |(from, to)| Edge { from, to, weight: 1 };
        // Recursion between 1 and 2, below 0, whoever comes first.
        for ends in [[(0, 1), (1, 2), (2, 1)], [(2, 1), (1, 2), (0, 1)]] {
            let edges = ends.map(edge);
            let levels = Levels::new(3, edges.iter());
            assert_eq!(levels.of, [0, 1, 2]);
            let turned = levels.calls.iter().zip(ends).filter(|(c, _)| c.turned).map(|(_, ends)| ends);
            assert_eq!(turned.collect::<Vec<_>>(), [(2, 1)]);
        }
    }

    /// What dagre makes of the same nodes, calls and levels.
    #[allow(clippy::unwrap_used)]
    fn by_dagre(sizes: &[Point], labels: &[Point], levels: &Levels) -> (Vec<Point>, Vec<EdgeRoute>) {
        use dagre::graph::{Graph, GraphOptions};
        use dagre::layout::types::{LabelPos, Ranker};
        use dagre::{EdgeLabel, LayoutOptions, NodeLabel};
        // Two calls may run from one node to the other once one is turned around.
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
        // It takes our levels where each node hangs so far above one at the bottom.
        const BOTTOM: &str = "bottom";
        graph.set_node(BOTTOM.to_owned(), Some(NodeLabel::default()));
        let deepest = levels.of.iter().max().copied().unwrap_or(0);
        for (i, level) in levels.of.iter().enumerate() {
            let minlen = (deepest - level) as i32;
            let hangs = EdgeLabel { minlen, weight: 0, nesting_edge: true, ..EdgeLabel::default() };
            graph.set_edge(i.to_string(), BOTTOM.to_owned(), Some(hangs), None);
        }
        let (nodesep, edgesep, ranksep, ranker) = (22.0, 10.0, 34.0, Ranker::LongestPath);
        let options = LayoutOptions { nodesep, edgesep, ranksep, ranker, ..LayoutOptions::default() };
        dagre::layout(&mut graph, Some(options));
        let node = |i: usize| graph.node(&i.to_string()).and_then(|n| Some((n.x?, n.y?))).unwrap();
        let route = |(i, call): (usize, &Down)| {
            let e = graph.edge(&call.upper.to_string(), &call.lower.to_string(), Some(&i.to_string())).unwrap();
            let mut points: Vec<Point> = e.points.iter().map(|p| (p.x, p.y)).collect();
            if call.turned {
                points.reverse();
            }
            EdgeRoute { points, label: (e.x.unwrap(), e.y.unwrap()) }
        };
        ((0..sizes.len()).map(node).collect(), levels.calls.iter().enumerate().map(route).collect())
    }

    #[test]
    fn pictures_are_those_of_dagre() {
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
            let edges: Vec<Edge> =
                ends.iter().map(|&(from, to)| Edge { from, to, weight: 1 + random(&mut seed, 20) as u32 }).collect();
            let mut size = |_| (20.0 + random(&mut seed, 900) as f64 / 7.0, 12.0 + random(&mut seed, 300) as f64 / 9.0);
            let sizes: Vec<Point> = (0..n).map(&mut size).collect();
            let chosen = choose(n, &edges, &mut LayoutBudget::for_pictures(1));
            let labels: Vec<Point> = chosen.calls.iter().map(|&call| (size(call).0, 12.6)).collect();
            let (nodes, routes) = place(&sizes, &labels, &chosen);
            let (wanted_nodes, wanted_routes) = by_dagre(&sizes, &labels, &chosen.levels);
            assert_eq!(nodes, wanted_nodes, "picture {i}");
            let of = |routes: Vec<EdgeRoute>| routes.into_iter().map(|r| (r.points, r.label)).collect::<Vec<_>>();
            assert_eq!(of(routes), of(wanted_routes), "picture {i}");
        }
    }
}
