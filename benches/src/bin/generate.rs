//! Writes the benchmark profiles to `target/bench-data`, and prints a table of their contents.
//!
//! Existing files are kept, unless a different version of the generator wrote them.

use std::path::Path;

use pprofdiff::LoadOptions;
use pprofdiff_benches::{L, M, S, many_pairs, pair, real_pair, series};

fn describe(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let p = pprofdiff::open(path, &LoadOptions::default())?;
    let mb = |n: u64| n as f64 / 1e6;
    let mut steps = 0;
    p.samples().for_each(|sample| sample.for_each_location(|_| steps += 1));
    println!(
        "| {} | {} | {} | {} | {:.1} | {:.2} | {:.2} |",
        path.file_name().unwrap_or_default().to_string_lossy(),
        p.n_samples(),
        p.n_locations(),
        p.n_functions(),
        f64::from(steps) / p.n_samples() as f64,
        mb(p.inflated_size() as u64),
        mb(std::fs::metadata(path)?.len())
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("| file | samples | locations | functions | depth | inflated MB | gz MB |\n|---|---|---|---|---|---|---|");
    for size in [S, M, L] {
        for path in pair(size, 1)? {
            describe(&path)?;
        }
    }
    for path in series(M)?.iter().chain(&real_pair()) {
        describe(path)?;
    }
    many_pairs()?;
    Ok(())
}
