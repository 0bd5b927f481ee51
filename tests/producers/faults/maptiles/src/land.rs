//! The shapes on the map.

#[derive(Clone, Copy)]
pub struct Point {
    pub x: f64,
    pub y: f64,
}

pub struct Shape {
    pub name: String,
    pub ring: Vec<Point>,
    pub shade: u8,
}

/// The part of the map that a tile shows; the map is 1000 wide and high.
pub struct Window {
    pub left: f64,
    pub top: f64,
    pub size: f64,
}

impl Window {
    pub fn of(column: u32, row: u32) -> Window {
        Window { left: f64::from(column) * 250.0, top: f64::from(row) * 250.0, size: 250.0 }
    }

    /// Converts to pixels of a picture.
    #[inline(never)]
    pub fn project(&self, ring: &[Point]) -> Vec<Point> {
        let scale = 256.0 / self.size;
        ring.iter().map(|p| Point { x: (p.x - self.left) * scale, y: (p.y - self.top) * scale }).collect()
    }
}

/// Generates lakes and woods with winding coasts.
#[inline(never)]
pub fn shapes(variant: u32) -> Vec<Shape> {
    let mut random = 7 + variant;
    let mut roll = move |sides: u32| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from((random >> 8) % sides)
    };
    (0..24)
        .map(|number| {
            let (x, y, radius) = (roll(1000), roll(1000), 50.0 + roll(70));
            let points = 150;
            let ring = (0..points).map(|i| {
                let (sine, cosine) = direction(f64::from(i) / f64::from(points));
                let radius = radius * (0.8 + roll(100) / 500.0);
                Point { x: x + radius * cosine, y: y + radius * sine }
            });
            Shape { ring: ring.collect(), name: format!("Lake number {number}"), shade: 60 + 8 * number }
        })
        .collect()
}

/// Returns sine and cosine of a part of a turn (Bhaskara's approximation).
fn direction(turn: f64) -> (f64, f64) {
    let half = |t: f64| 16.0 * t * (0.5 - t) / (1.25 - 4.0 * t * (0.5 - t));
    let sine = |t: f64| if t < 0.5 { 4.0 * half(t) } else { -4.0 * half(t - 0.5) };
    (sine(turn), sine((turn + 0.25) % 1.0))
}

/// Whether no side of the ring crosses one of the next sides.
#[inline(never)]
pub fn is_ring(ring: &[Point]) -> bool {
    let at = |i: usize| ring[i % ring.len()];
    for i in 0..ring.len() {
        for j in i + 2..i + 24 {
            if crosses(at(i), at(i + 1), at(j), at(j + 1)) {
                return false;
            }
        }
    }
    ring.len() > 2
}

#[inline(never)]
fn crosses(a: Point, b: Point, c: Point, d: Point) -> bool {
    turn(a, b, c) != turn(a, b, d) && turn(c, d, a) != turn(c, d, b)
}

/// Whether c lies to the left of the way from a to b.
fn turn(a: Point, b: Point, c: Point) -> bool {
    (b.x - a.x) * (c.y - a.y) > (b.y - a.y) * (c.x - a.x)
}
