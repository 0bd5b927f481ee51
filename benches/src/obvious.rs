//! The table of functions by the simplest implementation: prost messages, strings, and a HashMap. Benchmarks measure it
//! as a peer, and check the engine's results against it.

use std::collections::{HashMap, HashSet};
use std::io::{Error, Read, Result};
use std::path::Path;

use pprofdiff::proto;
use prost::Message;

/// Returns [base flat, new flat, base cum, new cum] of each function, by name, for the last sample type.
///
/// # Errors
/// Returns an error if a file cannot be read, or is no profile.
pub fn table<P: AsRef<Path>>(paths: &[P; 2]) -> Result<HashMap<String, [i64; 4]>> {
    let mut rows: HashMap<String, [i64; 4]> = HashMap::new();
    for (side, path) in paths.iter().enumerate() {
        let bytes = std::fs::read(path)?;
        let mut raw = Vec::new();
        flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut raw)?;
        let p = proto::Profile::decode(&raw[..]).map_err(Error::other)?;
        let functions: HashMap<u64, String> = p
            .function
            .iter()
            .map(|f| (f.id, String::from_utf8_lossy(&p.string_table[f.name as usize]).into_owned()))
            .collect();
        let locations: HashMap<u64, &proto::Location> = p.location.iter().map(|l| (l.id, l)).collect();
        for s in &p.sample {
            let Some(&value) = s.value.last().filter(|&&v| v != 0) else { continue };
            let stack: Vec<&String> = s
                .location_id
                .iter()
                .flat_map(|id| locations[id].line.iter().map(|l| &functions[&l.function_id]))
                .collect();
            if let Some(&leaf) = stack.first() {
                rows.entry(leaf.clone()).or_default()[side] += value;
            }
            for name in stack.into_iter().collect::<HashSet<_>>() {
                rows.entry(name.clone()).or_default()[2 + side] += value;
            }
        }
    }
    Ok(rows)
}
