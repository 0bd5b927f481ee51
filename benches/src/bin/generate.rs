//! Writes the pairs to measure with to `target/bench-data`, and says what is in them.

use pprofdiff::{LoadOptions, Profile};
use pprofdiff_bench::{L, M, S, data_dir, pair};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("| file | samples | locations | functions | inflated MB | gz MB |\n|---|---|---|---|---|---|");
    for size in [S, M, L] {
        for path in pair(&data_dir(), size, 1)? {
            let p = Profile::open(&path, &LoadOptions::default())?;
            let mb = |n: u64| n as f64 / 1e6;
            println!(
                "| {} | {} | {} | {} | {:.2} | {:.2} |",
                path.file_name().unwrap_or_default().to_string_lossy(),
                p.n_samples(),
                p.n_locations(),
                p.n_functions(),
                mb(p.inflated_size() as u64),
                mb(std::fs::metadata(&path)?.len())
            );
        }
    }
    Ok(())
}
