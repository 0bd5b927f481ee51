//! A graph on layers whose lines connect neighbouring layers only. A call has a bend on each layer between its two
//! nodes.

use super::{DownwardCall, LayoutPoint};

/// A line, stored at one of its points: the other point, which is on a neighbouring layer, and the weight.
pub(super) type LayerLine = (usize, u32);

/// A graph on layers. A point is a node or a bend of a call. Points are numbered: first the nodes, then
/// [`Layered::bottom`], then the bends of each call from top to bottom.
pub(super) struct Layered {
    /// The number of layers: two per level of nodes, except for the last level.
    pub layers: usize,
    /// The layer of each point.
    pub layer: Vec<usize>,
    /// The size of each point: a node's box, a label, or 0 for bends without a label.
    pub size: Vec<LayoutPoint>,
    pub is_bend: Vec<bool>,
    /// The lines of each point to the layer above.
    pub above: Vec<Vec<LayerLine>>,
    /// The lines of each point to the layer below.
    pub below: Vec<Vec<LayerLine>>,
    /// A point without lines on the lowest layer. It reserves a place there, as in all earlier pictures.
    pub bottom: usize,
    /// The bends of each call.
    pub bends: Vec<std::ops::Range<usize>>,
    /// The bend of each call that carries the label, halfway between both nodes.
    pub labels: Vec<usize>,
}

impl Layered {
    /// Creates the graph with nodes on every second layer. The layers between them hold bends only, so each call has at
    /// least one bend for its label.
    pub fn new(levels: &[usize], sizes: &[LayoutPoint], calls: &[DownwardCall], labels: &[LayoutPoint]) -> Layered {
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

    /// Adds a point and returns its number.
    fn push(&mut self, layer: usize, size: LayoutPoint, is_bend: bool) -> usize {
        self.layer.push(layer);
        self.size.push(size);
        self.is_bend.push(is_bend);
        self.above.push(Vec::new());
        self.below.push(Vec::new());
        self.layer.len() - 1
    }

    /// Adds a line between two points on neighbouring layers.
    fn join(&mut self, upper: usize, lower: usize, weight: u32) {
        self.below[upper].push((lower, weight));
        self.above[lower].push((upper, weight));
    }

    /// Returns the points of each layer, in ascending order.
    pub fn members(&self) -> Vec<Vec<usize>> {
        let mut members = vec![Vec::new(); self.layers];
        self.layer.iter().enumerate().for_each(|(point, &layer)| members[layer].push(point));
        members
    }
}
