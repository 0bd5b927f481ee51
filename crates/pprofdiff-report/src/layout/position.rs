//! Assigns coordinates to points on layers (Brandes and Köpf, "Fast and Simple Horizontal Coordinate Assignment"). A
//! point is aligned with the median of its neighbours, and aligned points form vertical blocks. Blocks are placed side
//! by side as close as their sizes permit. This is done four times, from the top and the bottom and from the left and
//! the right; each point gets the mean of the two middle results.

use super::LayoutPoint;
use super::layers::Layered;

/// The horizontal gap between two neighbouring nodes. Next to a bend, half of the node's gap and half of the bend's
/// apply.
const NODE_GAP: f64 = 22.0;
/// The horizontal gap between two neighbouring bends.
const BEND_GAP: f64 = 10.0;
/// The vertical gap between neighbouring layers. Two nodes on consecutive levels are two gaps apart, because a layer
/// for labels lies between them.
const LAYER_GAP: f64 = 17.0;

/// Returns the centre of each point. `layers` holds the points of each layer in order.
pub(super) fn position(graph: &Layered, layers: &[Vec<usize>]) -> Vec<LayoutPoint> {
    horizontal(graph, layers).into_iter().zip(vertical(graph, layers)).collect()
}

/// Returns the vertical centre of each point. A layer is as high as its highest point.
fn vertical(graph: &Layered, layers: &[Vec<usize>]) -> Vec<f64> {
    let mut ys = vec![0.0; graph.layer.len()];
    let mut top = 0.0;
    for layer in layers {
        let height = layer.iter().map(|&point| graph.size[point].1).fold(0.0, f64::max);
        layer.iter().for_each(|&point| ys[point] = top + height / 2.0);
        top += height + LAYER_GAP;
    }
    ys
}

/// Returns the horizontal centre of each point.
fn horizontal(graph: &Layered, layers: &[Vec<usize>]) -> Vec<f64> {
    let crossing = lines_across(graph, layers);
    let mut ways: Vec<Vec<f64>> = Vec::with_capacity(4);
    for from_bottom in [false, true] {
        for from_right in [false, true] {
            let mut layers = layers.to_vec();
            if from_bottom {
                layers.reverse();
            }
            if from_right {
                layers.iter_mut().for_each(|layer| layer.reverse());
            }
            let root = blocks(graph, &layers, from_bottom, &crossing);
            let mut xs = compact(graph, &layers, &root);
            if from_right {
                xs.iter_mut().for_each(|x| *x = -*x);
            }
            ways.push(xs);
        }
    }
    // Align all four results with the narrowest: left-aligned results at its left end, right-aligned at its right end.
    let mut narrowest = (f64::INFINITY, 0);
    for (way, xs) in ways.iter().enumerate() {
        let half = |point: usize| graph.size[point].0 / 2.0;
        let left = xs.iter().enumerate().map(|(point, x)| x - half(point)).fold(f64::INFINITY, f64::min);
        let right = xs.iter().enumerate().map(|(point, x)| x + half(point)).fold(f64::NEG_INFINITY, f64::max);
        if right - left < narrowest.0 {
            narrowest = (right - left, way);
        }
    }
    let ends = |xs: &[f64]| {
        let fold = |first, f: fn(f64, f64) -> f64| xs.iter().copied().fold(first, f);
        [fold(f64::INFINITY, f64::min), fold(f64::NEG_INFINITY, f64::max)]
    };
    let target = ends(&ways[narrowest.1]);
    for (way, xs) in ways.iter_mut().enumerate().filter(|(way, _)| *way != narrowest.1) {
        let shift = target[way % 2] - ends(xs)[way % 2];
        // Skip shifts within rounding error, so that exact positions stay exact.
        if shift.abs() > f64::EPSILON {
            xs.iter_mut().for_each(|x| *x += shift);
        }
    }
    let middle = |point: usize| {
        let mut sorted_xs = [0, 1, 2, 3].map(|way: usize| ways[way][point]);
        sorted_xs.sort_unstable_by(f64::total_cmp);
        f64::midpoint(sorted_xs[1], sorted_xs[2])
    };
    (0..graph.layer.len()).map(middle).collect()
}

/// Returns the lines, as (upper, lower), that cross a line between two bends and are not between two bends themselves.
/// These lines do not form blocks, so that the bends of long calls can stay in one block and the calls straight. The
/// result is sorted.
fn lines_across(graph: &Layered, layers: &[Vec<usize>]) -> Vec<(usize, usize)> {
    let mut crossing = Vec::new();
    let mut place = vec![0; graph.layer.len()];
    for layer in layers {
        layer.iter().enumerate().for_each(|(i, &point)| place[point] = i);
    }
    for pair in layers.windows(2) {
        let (upper, lower) = (&pair[0], &pair[1]);
        // The upper end of the last line between bends, and the first lower point that was not examined yet.
        let (mut left, mut start) = (0, 0);
        for (i, &point) in lower.iter().enumerate() {
            let bend = graph.above[point].first().filter(|line| graph.is_bend[point] && graph.is_bend[line.0]);
            if bend.is_none() && i + 1 < lower.len() {
                continue;
            }
            let right = bend.map_or(upper.len(), |line| place[line.0]);
            for &point in &lower[start..=i] {
                for &(above, _) in &graph.above[point] {
                    let is_inner = graph.is_bend[above] && graph.is_bend[point];
                    if (place[above] < left || right < place[above]) && !is_inner {
                        crossing.push((above, point));
                    }
                }
            }
            (left, start) = (right, i + 1);
        }
    }
    crossing.sort_unstable();
    crossing
}

/// Aligns each point with a median neighbour on the previous layer, where neither another block nor a line in
/// `crossing` prevents it. Returns the first point of each point's block, which identifies the block.
fn blocks(graph: &Layered, layers: &[Vec<usize>], from_bottom: bool, crossing: &[(usize, usize)]) -> Vec<usize> {
    let lines = if from_bottom { &graph.below } else { &graph.above };
    let mut root: Vec<usize> = (0..graph.layer.len()).collect();
    let mut place = vec![0; graph.layer.len()];
    let mut neighbours: Vec<(usize, usize)> = Vec::new();
    for layer in layers {
        layer.iter().enumerate().for_each(|(i, &point)| place[point] = i);
        // Blocks must not cross, so the next point can only be aligned with a neighbour at this position or further
        // right.
        let mut first_free = 0;
        for &point in layer {
            neighbours.clear();
            neighbours.extend(lines[point].iter().map(|line| (place[line.0], line.0)));
            neighbours.sort_unstable();
            let n = neighbours.len();
            let middle = if n == 0 { 0..0 } else { (n - 1) / 2..n / 2 + 1 };
            for &(neighbour_place, other) in &neighbours[middle] {
                let line = if from_bottom { (point, other) } else { (other, point) };
                if root[point] == point && neighbour_place >= first_free && crossing.binary_search(&line).is_err() {
                    (root[point], first_free) = (root[other], neighbour_place + 1);
                }
            }
        }
    }
    root
}

/// Places blocks as close together as possible, and returns the horizontal centre of each point. First each block moves
/// as far left as its left neighbours permit, then as far right as its right neighbours permit.
fn compact(graph: &Layered, layers: &[Vec<usize>], root: &[usize]) -> Vec<f64> {
    let n = graph.layer.len();
    // The left and the right neighbours of each block, with the minimum distance between the centres.
    let (mut left, mut right) = (vec![Vec::<(usize, f64)>::new(); n], vec![Vec::<(usize, f64)>::new(); n]);
    let gap = |point: usize| if graph.is_bend[point] { BEND_GAP } else { NODE_GAP };
    for layer in layers {
        for pair in layer.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            let apart = graph.size[b].0 / 2.0 + gap(b) / 2.0 + gap(a) / 2.0 + graph.size[a].0 / 2.0;
            right[root[a]].push((root[b], apart));
            left[root[b]].push((root[a], apart));
        }
    }
    let mut order = Vec::with_capacity(n);
    let mut waits_for: Vec<usize> = left.iter().map(Vec::len).collect();
    let mut ready: Vec<usize> = (0..n).filter(|&block| waits_for[block] == 0).collect();
    while let Some(block) = ready.pop() {
        order.push(block);
        for &(other, _) in &right[block] {
            waits_for[other] -= 1;
            if waits_for[other] == 0 {
                ready.push(other);
            }
        }
    }
    let mut xs = vec![0.0f64; n];
    for &block in &order {
        xs[block] = left[block].iter().fold(0.0, |x, &(other, apart)| x.max(xs[other] + apart));
    }
    for &block in order.iter().rev() {
        if let Some(room) = right[block].iter().map(|&(other, apart)| xs[other] - apart).reduce(f64::min) {
            xs[block] = xs[block].max(room);
        }
    }
    (0..n).map(|point| xs[root[point]]).collect()
}
