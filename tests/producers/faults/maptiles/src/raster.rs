//! Pictures of grey pixels.

use crate::land::Point;

pub struct Picture {
    pub size: usize,
    pub pixels: Vec<u8>,
}

impl Picture {
    pub fn new(size: usize) -> Picture {
        Picture { size, pixels: vec![255; size * size] }
    }
}

/// Fills a ring, line by line.
#[inline(never)]
pub fn fill(picture: &mut Picture, ring: &[Point], shade: u8) {
    let mut meets = Vec::new();
    for line in 0..picture.size {
        meet_line(ring, line as f64 + 0.5, &mut meets);
        for pair in meets.chunks_exact(2) {
            let (from, to) = (pair[0].max(0.0), pair[1].min(picture.size as f64));
            span(picture, line, from as usize, to as usize, shade);
        }
    }
}

/// Returns the intersections of a ring's sides with a line, from left to right.
#[inline(never)]
fn meet_line(ring: &[Point], y: f64, meets: &mut Vec<f64>) {
    meets.clear();
    for (i, b) in ring.iter().enumerate() {
        let a = ring[(i + ring.len() - 1) % ring.len()];
        if (a.y <= y) != (b.y <= y) {
            meets.push(a.x + (b.x - a.x) * (y - a.y) / (b.y - a.y));
        }
    }
    meets.sort_by(f64::total_cmp);
}

fn span(picture: &mut Picture, line: usize, from: usize, to: usize, shade: u8) {
    for column in from..to {
        blend(&mut picture.pixels[line * picture.size + column], shade);
    }
}

/// Blends a shade into a pixel. Light is the square of a shade; its root is computed in steps (Newton).
#[inline(never)]
fn blend(pixel: &mut u8, shade: u8) {
    let light = (3 * u32::from(*pixel).pow(2) + 5 * u32::from(shade).pow(2)) / 8;
    let mut root = u32::from(*pixel).max(1);
    for _ in 0..2 {
        root = (root + light / root) / 2;
    }
    *pixel = root as u8;
}

/// Draws the sides of a ring (Bresenham 1965).
#[inline(never)]
pub fn outline(picture: &mut Picture, ring: &[Point], shade: u8) {
    for (i, b) in ring.iter().enumerate() {
        let a = ring[(i + ring.len() - 1) % ring.len()];
        line(picture, (a.x as i32, a.y as i32), (b.x as i32, b.y as i32), shade);
    }
}

#[inline(never)]
fn line(picture: &mut Picture, mut at: (i32, i32), to: (i32, i32), shade: u8) {
    let (dx, dy) = ((to.0 - at.0).abs(), -(to.1 - at.1).abs());
    let step = ((to.0 - at.0).signum(), (to.1 - at.1).signum());
    let mut error = dx + dy;
    loop {
        dot(picture, at.0, at.1, shade);
        if at == to {
            return;
        }
        let double = 2 * error;
        if double >= dy {
            error += dy;
            at.0 += step.0;
        }
        if double <= dx {
            error += dx;
            at.1 += step.1;
        }
    }
}

/// Draws a dot as wide as a pen.
pub fn dot(picture: &mut Picture, x: i32, y: i32, shade: u8) {
    for (x, y) in [(x, y), (x + 1, y), (x, y + 1)] {
        let size = picture.size as i32;
        if (0..size).contains(&x) && (0..size).contains(&y) {
            picture.pixels[(y * size + x) as usize] = shade;
        }
    }
}
