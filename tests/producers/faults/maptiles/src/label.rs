//! Places the names of shapes so that they do not overlap.

use crate::land::Point;
use crate::raster::{dot, Picture};

struct Name {
    text: String,
    x: f64,
    y: f64,
}

pub struct Names {
    placed: Vec<Name>,
}

const HEIGHT: f64 = 9.0;

impl Names {
    pub fn new() -> Names {
        Names { placed: Vec::new() }
    }

    /// Places a name near the middle of a ring, above or below other names.
    #[inline(never)]
    pub fn place(&mut self, text: &str, ring: &[Point]) {
        let n = ring.len() as f64;
        let x = ring.iter().map(|p| p.x).sum::<f64>() / n - width(text) / 2.0;
        let y = ring.iter().map(|p| p.y).sum::<f64>() / n;
        for step in 0..40 {
            let away = f64::from(step / 2) * 2.0;
            let name = Name { text: text.into(), x, y: if step % 2 == 0 { y + away } else { y - away } };
            if !self.placed.iter().any(|other| covers(&name, other)) {
                self.placed.push(name);
                return;
            }
        }
    }

    #[inline(never)]
    pub fn draw(&self, picture: &mut Picture) {
        for name in &self.placed {
            for (i, letter) in name.text.bytes().enumerate() {
                glyph(picture, name.x as i32 + 6 * i as i32, name.y as i32, letter);
            }
        }
    }
}

fn width(text: &str) -> f64 {
    6.0 * text.len() as f64
}

fn covers(a: &Name, b: &Name) -> bool {
    (a.y - b.y).abs() < HEIGHT && a.x < b.x + width(&b.text) && b.x < a.x + width(&a.text)
}

/// A letter of five by seven dots; made up, as the map is.
#[inline(never)]
fn glyph(picture: &mut Picture, x: i32, y: i32, letter: u8) {
    let mut bits = u64::from(letter).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for row in 0..7 {
        for column in 0..5 {
            if bits & 1 == 1 {
                dot(picture, x + column, y + row, 0);
            }
            bits = bits.rotate_right(1);
        }
    }
}
