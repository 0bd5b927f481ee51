//! Orders the points of each layer so that few lines cross (Sugiyama and others, "Methods for Visual Understanding of
//! Hierarchical System Structures"). Sweeps up and down move each point to the mean position of its neighbours on the
//! previous layer, until the number of crossings stops falling.

use super::layers::{LayerLine, Layered};

/// The number of consecutive sweeps after which the search stops, counted from the last sweep that reduced the
/// crossings, including that sweep.
const PATIENCE: usize = 4;

/// Returns the points of each layer from left to right.
pub(super) fn order(graph: &Layered) -> Vec<Vec<usize>> {
    let members = graph.members();
    let mut layers = first_order(graph, &members);
    let mut place = vec![0; graph.layer.len()];
    layers.iter().for_each(|layer| number(layer, &mut place));
    let mut best: Option<(u64, Vec<Vec<usize>>)> = None;
    let (mut sweep, mut in_vain) = (0, 0);
    while in_vain < PATIENCE {
        in_vain += 1;
        let is_biased = sweep % 4 >= 2;
        let mut arrange_layer = |layer: usize, lines: &[Vec<LayerLine>]| {
            layers[layer] = arrange(&members[layer], lines, &place, is_biased);
            number(&layers[layer], &mut place);
        };
        match sweep % 2 {
            0 => (0..graph.layers - 1).rev().for_each(|layer| arrange_layer(layer, &graph.below)),
            _ => (1..graph.layers).for_each(|layer| arrange_layer(layer, &graph.above)),
        }
        let crossings = layers.windows(2).map(|pair| crossings(graph, &pair[0], pair[1].len(), &place)).sum();
        let best_crossings = best.as_ref().map_or(u64::MAX, |(best_crossings, _)| *best_crossings);
        if crossings < best_crossings {
            in_vain = 1;
        }
        // A later order replaces an equally good one.
        if crossings <= best_crossings {
            best = Some((crossings, layers.clone()));
        }
        sweep += 1;
    }
    best.map_or(layers, |(_, layers)| layers)
}

/// Stores the position of each point of a layer, counted from the left, in `place`.
fn number(layer: &[usize], place: &mut [usize]) {
    layer.iter().enumerate().for_each(|(i, &point)| place[point] = i);
}

/// Returns the initial order of all layers: the order in which a depth-first search reaches the points. The search runs
/// downwards from each point of the first layer, then from the unreached points of the second layer, and so on.
fn first_order(graph: &Layered, members: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut layers = vec![Vec::new(); graph.layers];
    let mut is_known = vec![false; graph.layer.len()];
    let mut open = Vec::new();
    for &start in members.iter().flatten() {
        open.push(start);
        while let Some(point) = open.pop() {
            if !std::mem::replace(&mut is_known[point], true) {
                layers[graph.layer[point]].push(point);
                open.extend(graph.below[point].iter().rev().map(|line| line.0));
            }
        }
    }
    layers
}

/// Orders a layer by the weighted mean position of each point's neighbours on the layer that was ordered before.
/// `lines` are the lines to that layer. Ties are broken by point number, in descending order if `is_biased`. A point
/// without neighbours gets about the position that it has in `members`.
fn arrange(members: &[usize], lines: &[Vec<LayerLine>], place: &[usize], is_biased: bool) -> Vec<usize> {
    let (mut pulled, mut free) = (Vec::with_capacity(members.len()), Vec::new());
    for (i, &point) in members.iter().enumerate() {
        let (mut sum, mut weight) = (0.0, 0u32);
        for &(other, line_weight) in &lines[point] {
            sum += f64::from(line_weight) * place[other] as f64;
            weight += line_weight;
        }
        match weight {
            0 => free.push((i, point)),
            _ => pulled.push((sum / f64::from(weight), i, point)),
        }
    }
    pulled.sort_unstable_by(|a, b| {
        let by_number = if is_biased { b.1.cmp(&a.1) } else { a.1.cmp(&b.1) };
        a.0.total_cmp(&b.0).then(by_number)
    });
    let mut ordered = Vec::with_capacity(members.len());
    let mut free = free.into_iter().peekable();
    let mut add_free = |ordered: &mut Vec<usize>| {
        while let Some((_, point)) = free.next_if(|(i, _)| *i <= ordered.len()) {
            ordered.push(point);
        }
    };
    add_free(&mut ordered);
    for (.., point) in pulled {
        ordered.push(point);
        add_free(&mut ordered);
    }
    ordered
}

/// Returns the weighted number of crossings between a layer and the layer below, which has `n_lower` points. Each
/// crossing counts the product of both lines' weights. A tree holds prefix sums over positions (Barth and others,
/// "Simple and Efficient Bilayer Cross Counting").
fn crossings(graph: &Layered, upper: &[usize], n_lower: usize, place: &[usize]) -> u64 {
    // A binary indexed tree of the weights of the lines processed so far, by the position of their lower end, counted
    // from the right. A line crosses all processed lines whose lower end is further right.
    let mut sums = vec![0u64; n_lower + 1];
    let mut crossings = 0;
    let mut lines: Vec<(usize, u64)> = Vec::new();
    for &point in upper {
        lines.clear();
        lines.extend(graph.below[point].iter().map(|&(lower, weight)| (place[lower], u64::from(weight))));
        lines.sort_unstable();
        for &(lower_place, weight) in &lines {
            let from_right = n_lower - lower_place;
            let mut i = from_right - 1;
            while i > 0 {
                crossings += weight * sums[i];
                i &= i - 1;
            }
            let mut i = from_right;
            while i <= n_lower {
                sums[i] += weight;
                i += i & i.wrapping_neg();
            }
        }
    }
    crossings
}
