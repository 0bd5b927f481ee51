//! Draws the tiles of a made-up map, again and again, and writes a CPU profile of that with the `pprof` crate. It is
//! profiled as it is here and with each of the faults beside it; all draw the same number of tiles.
//! Usage: `maptiles OUT.pb [ROUNDS]`.

mod clip;
mod encode;
mod label;
mod land;
mod raster;
mod simplify;

use pprof::protos::Message;
use std::env;

fn main() {
    let out = env::args().nth(1).expect("usage: maptiles OUT [ROUNDS]");
    let rounds = env::args().nth(2).map_or(110, |n| n.parse().expect("a number of rounds"));
    let guard = pprof::ProfilerGuardBuilder::default()
        .frequency(199)
        .blocklist(&["libc", "libgcc", "pthread", "vdso"])
        .build()
        .expect("a profiler");
    let mut bytes = 0;
    for round in 0..rounds {
        bytes += draw_map(round);
    }
    let profile = guard.report().build().expect("a report").pprof().expect("a profile");
    std::fs::write(out, profile.encode_to_vec()).expect("a file");
    println!("{bytes} bytes of tiles");
}

/// Draws all tiles of the map.
#[inline(never)]
fn draw_map(round: u32) -> usize {
    let shapes = land::shapes(round % 4);
    let mut bytes = 0;
    for row in 0..4 {
        for column in 0..4 {
            bytes += draw_tile(&shapes, column, row).len();
        }
    }
    bytes
}

/// Draws the shapes of a tile, and compresses the picture.
#[inline(never)]
fn draw_tile(shapes: &[land::Shape], column: u32, row: u32) -> Vec<u8> {
    let window = land::Window::of(column, row);
    let mut picture = raster::Picture::new(256);
    let mut names = label::Names::new();
    for shape in shapes {
        if !land::is_ring(&shape.ring) {
            continue;
        }
        let ring = clip::clip(&shape.ring, &window);
        if ring.len() < 3 {
            continue;
        }
        let ring = simplify::simplify(&ring, 0.3);
        let ring = window.project(&ring);
        raster::fill(&mut picture, &ring, shape.shade);
        raster::outline(&mut picture, &ring, 20);
        names.place(&shape.name, &ring);
    }
    names.draw(&mut picture);
    encode::encode(&picture)
}
