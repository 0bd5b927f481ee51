//! Clips rings to a window, edge by edge (Sutherland and Hodgman 1974).

use crate::land::{Point, Window};

#[derive(Clone, Copy)]
enum Edge {
    Left(f64),
    Right(f64),
    Top(f64),
    Bottom(f64),
}

#[inline(never)]
pub fn clip(ring: &[Point], window: &Window) -> Vec<Point> {
    let (right, bottom) = (window.left + window.size, window.top + window.size);
    let edges = [Edge::Left(window.left), Edge::Right(right), Edge::Top(window.top), Edge::Bottom(bottom)];
    edges.iter().fold(ring.to_vec(), |ring, &edge| cut(&ring, edge))
}

#[inline(never)]
fn cut(ring: &[Point], edge: Edge) -> Vec<Point> {
    let mut kept = Vec::with_capacity(ring.len() + 8);
    for (i, &point) in ring.iter().enumerate() {
        let before = ring[(i + ring.len() - 1) % ring.len()];
        if inside(point, edge) != inside(before, edge) {
            kept.push(meet(before, point, edge));
        }
        if inside(point, edge) {
            kept.push(point);
        }
    }
    kept
}

fn inside(point: Point, edge: Edge) -> bool {
    match edge {
        Edge::Left(x) => point.x >= x,
        Edge::Right(x) => point.x <= x,
        Edge::Top(y) => point.y >= y,
        Edge::Bottom(y) => point.y <= y,
    }
}

/// Returns the intersection of the line from a to b with the edge.
fn meet(a: Point, b: Point, edge: Edge) -> Point {
    match edge {
        Edge::Left(x) | Edge::Right(x) => Point { x, y: a.y + (b.y - a.y) * (x - a.x) / (b.x - a.x) },
        Edge::Top(y) | Edge::Bottom(y) => Point { x: a.x + (b.x - a.x) * (y - a.y) / (b.y - a.y), y },
    }
}
