//! A peer: the table of functions with buffa's zero-copy views and a HashMap. `buffa-peer BASE NEW` prints the ten
//! functions that changed most, as JSON: [[name, delta of flat, delta of cum], ...]. With `--decode N FILE`, it decodes
//! the file N times and prints the least milliseconds without inflating.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::io::Read;
use std::time::Instant;

use buffa::DecodeOptions;

#[allow(clippy::all, missing_docs, unused_imports)]
mod proto {
    buffa::include_proto!("perftools.profiles");
}
use proto::__buffa::view::{LocationView, ProfileView};

/// Inflates a file.
fn inflate(path: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut raw = Vec::new();
    flate2::read::MultiGzDecoder::new(&std::fs::read(path)?[..]).read_to_end(&mut raw)?;
    Ok(raw)
}

/// Decodes a profile. The default limit for elements (32 MiB) refuses large profiles.
fn decode(raw: &[u8]) -> Result<ProfileView<'_>, Box<dyn Error>> {
    Ok(DecodeOptions::new().with_element_memory_limit(usize::MAX).decode_view(raw)?)
}

/// Adds one side's values: [base flat, new flat, base cum, new cum] of each function, for the last sample type.
fn add<'a>(rows: &mut HashMap<&'a str, [i64; 4]>, p: &ProfileView<'a>, side: usize) {
    let functions: HashMap<u64, &str> = p.function.iter().map(|f| (f.id, p.string_table[f.name as usize])).collect();
    let locations: HashMap<u64, &LocationView<'_>> = p.location.iter().map(|l| (l.id, l)).collect();
    for s in p.sample.iter() {
        let Some(&value) = s.value.last().filter(|&&v| v != 0) else { continue };
        let stack: Vec<&'a str> =
            s.location_id.iter().flat_map(|id| locations[id].line.iter().map(|l| functions[&l.function_id])).collect();
        if let Some(&leaf) = stack.first() {
            rows.entry(leaf).or_default()[side] += value;
        }
        for name in stack.into_iter().collect::<HashSet<_>>() {
            rows.entry(name).or_default()[2 + side] += value;
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, runs, path] = &args[..]
        && flag == "--decode"
    {
        let raw = inflate(path)?;
        let mut least = f64::INFINITY;
        for _ in 0..runs.parse()? {
            let start = Instant::now();
            std::hint::black_box(decode(&raw)?.sample.len());
            least = least.min(start.elapsed().as_secs_f64() * 1000.0);
        }
        println!("{least:.2}");
        return Ok(());
    }
    let [base, new] = &args[..] else { return Err("buffa-peer BASE NEW".into()) };
    let raw = [inflate(base)?, inflate(new)?];
    let profiles = [decode(&raw[0])?, decode(&raw[1])?];
    let mut rows = HashMap::new();
    for (side, p) in profiles.iter().enumerate() {
        add(&mut rows, p, side);
    }
    let mut rows: Vec<(&str, i64, i64)> = rows.into_iter().map(|(name, v)| (name, v[1] - v[0], v[3] - v[2])).collect();
    rows.sort_by(|a, b| b.1.abs().cmp(&a.1.abs()).then_with(|| a.0.cmp(b.0)));
    rows.truncate(10);
    println!("{}", serde_json::to_string(&rows)?);
    Ok(())
}
