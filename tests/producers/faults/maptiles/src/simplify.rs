//! Removes invisible points (Douglas and Peucker 1973).

use crate::land::Point;

#[inline(never)]
pub fn simplify(ring: &[Point], least: f64) -> Vec<Point> {
    let mut keep = vec![false; ring.len()];
    keep[0] = true;
    keep[ring.len() - 1] = true;
    split(ring, 0, ring.len() - 1, least, &mut keep);
    ring.iter().zip(keep).filter_map(|(point, keep)| keep.then_some(*point)).collect()
}

/// Keeps the point farthest from the line between two others, and splits there; recursive.
fn split(ring: &[Point], from: usize, to: usize, least: f64, keep: &mut [bool]) {
    let (at, distance) = farthest(ring, from, to);
    if distance > least {
        keep[at] = true;
        split(ring, from, at, least, keep);
        split(ring, at, to, least, keep);
    }
}

#[inline(never)]
fn farthest(ring: &[Point], from: usize, to: usize) -> (usize, f64) {
    let mut found = (from, 0.0);
    for i in from + 1..to {
        let distance = distance(ring[i], ring[from], ring[to]);
        if distance > found.1 {
            found = (i, distance);
        }
    }
    found
}

/// Returns the distance of a point to the line between two others.
fn distance(point: Point, a: Point, b: Point) -> f64 {
    let (dx, dy) = (b.x - a.x, b.y - a.y);
    let length = (dx * dx + dy * dy).sqrt();
    if length < 1e-9 {
        return ((point.x - a.x).powi(2) + (point.y - a.y).powi(2)).sqrt();
    }
    ((point.x - a.x) * dy - (point.y - a.y) * dx).abs() / length
}
