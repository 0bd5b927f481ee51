//! A graph on layers, in which each line leads from one layer to the next: calls that pass layers have a bend on each.

use super::{Down, Point};

/// A line to a point of a neighbouring layer, and what it weighs.
pub(super) type Line = (usize, u32);

/// What lies on layers: a node, or a bend of a call. Points count through nodes, then [`Layered::bottom`], then the bends
/// of each call from the top.
pub(super) struct Layered {
    pub layers: usize,
    /// By point.
    pub layer: Vec<usize>,
    pub size: Vec<Point>,
    pub is_bend: Vec<bool>,
    /// The lines to the layer above, and below.
    pub above: Vec<Vec<Line>>,
    pub below: Vec<Vec<Line>>,
    /// A point without lines on the lowest layer, which keeps a place free there: pictures have always had it.
    pub bottom: usize,
    /// By call: its first bend, and that which has its label.
    pub bends: Vec<std::ops::Range<usize>>,
    pub labels: Vec<usize>,
}

impl Layered {
    /// Nodes on every second layer, so that there is one between two of them for labels.
    pub fn new(levels: &[usize], sizes: &[Point], calls: &[Down], labels: &[Point]) -> Layered {
        let lowest = 2 * levels.iter().max().copied().unwrap_or(0);
        let mut graph = Layered {
            layers: lowest + 1,
            layer: Vec::new(),
            size: Vec::new(),
            is_bend: Vec::new(),
            above: Vec::new(),
            below: Vec::new(),
            bottom: levels.len(),
            bends: Vec::with_capacity(calls.len()),
            labels: Vec::with_capacity(calls.len()),
        };
        for (&level, &size) in levels.iter().zip(sizes) {
            graph.push(2 * level, size, false);
        }
        graph.push(lowest, (0.0, 0.0), false);
        for (call, &size) in calls.iter().zip(labels) {
            let [upper, lower] = [call.upper, call.lower].map(|node| graph.layer[node]);
            let middle = upper.midpoint(lower);
            let first = graph.layer.len();
            let mut last = call.upper;
            for layer in upper + 1..lower {
                let bend = graph.push(layer, if layer == middle { size } else { (0.0, 0.0) }, true);
                graph.join(last, bend, call.weight);
                last = bend;
            }
            graph.join(last, call.lower, call.weight);
            graph.bends.push(first..graph.layer.len());
            graph.labels.push(first + middle - upper - 1);
        }
        graph
    }

    fn push(&mut self, layer: usize, size: Point, is_bend: bool) -> usize {
        self.layer.push(layer);
        self.size.push(size);
        self.is_bend.push(is_bend);
        self.above.push(Vec::new());
        self.below.push(Vec::new());
        self.layer.len() - 1
    }

    fn join(&mut self, upper: usize, lower: usize, weight: u32) {
        self.below[upper].push((lower, weight));
        self.above[lower].push((upper, weight));
    }

    /// The points of each layer, in the order of their numbers.
    pub fn members(&self) -> Vec<Vec<usize>> {
        let mut members = vec![Vec::new(); self.layers];
        self.layer.iter().enumerate().for_each(|(point, &layer)| members[layer].push(point));
        members
    }
}
