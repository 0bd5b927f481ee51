//! Writes the profiles of a history: `builds DIRECTORY [NUMBER [FROM]]` writes `build-0.pb.gz` and so on, of size S.
//! NUMBER defaults to 1000. A function becomes more expensive at build [`STEP`](pprofdiff_benches::STEP).

use std::path::Path;

use pprofdiff_benches::{S, gzip, history};
use rayon::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let directory = Path::new(args.first().ok_or("builds DIRECTORY [NUMBER [FROM]]")?);
    let number = |position: usize, default: u64| args.get(position).map_or(Ok(default), |text| text.parse());
    let (builds, from) = (number(1, 1000)?, number(2, 0)?);
    std::fs::create_dir_all(directory)?;
    let write = |build| std::fs::write(directory.join(format!("build-{build}.pb.gz")), gzip(&history(S, build, 1)));
    Ok((from..from + builds).into_par_iter().try_for_each(write)?)
}
