//! Evaluates the formulas of a made-up spreadsheet, again and again, and writes
//! a CPU profile of that with the `pprof` crate. Usage: `sheet OUT.pb.gz`.
//!
//! Base is the program as it is. New is built with the feature `branch`: it
//! looks names up letter by letter in a list instead of in a map (slower), and
//! folds constants once after parsing (added; evaluation shrinks).

mod eval;
mod parse;

use pprof::protos::Message;
use std::{env, fs, io::Write, thread};

fn main() {
    let out = env::args().nth(1).expect("usage: sheet OUT");
    let guard = pprof::ProfilerGuardBuilder::default()
        .frequency(199)
        .blocklist(&["libc", "libgcc", "pthread", "vdso"])
        .build()
        .expect("a profiler");

    let recalculation = thread::Builder::new()
        .name("recalculate".into())
        .spawn(|| recalculate(16_000))
        .expect("a thread");
    let preview = recalculate(5_000);
    let sum = recalculation.join().expect("a result") + preview;

    let profile = guard
        .report()
        .build()
        .expect("a report")
        .pprof()
        .expect("a profile");
    let bytes = profile.encode_to_vec();
    fs::File::create(out)
        .and_then(|mut file| file.write_all(&bytes))
        .expect("a file");
    println!("sum of the sheet: {sum:.3}");
}

/// Parses and evaluates every cell of the sheet, as often as asked.
fn recalculate(rounds: usize) -> f64 {
    let names = eval::Names::new();
    let sheet: Vec<String> = (1..=12).map(formula).collect();
    let mut sum = 0.0;
    for _ in 0..rounds {
        for cell in &sheet {
            let tree = parse::parse(cell);
            #[cfg(feature = "branch")]
            let tree = eval::fold_constants(tree);
            for row in 0..8 {
                sum += eval::evaluate(&tree, &names, f64::from(row));
            }
        }
    }
    sum
}

/// A formula that nests deeper from cell to cell.
fn formula(depth: usize) -> String {
    let mut text = String::from("unit price * 2");
    for level in 0..depth {
        text = format!("({text} + (3 - {level}) * 0.5 * row) - tax rate * (1 + 2 * 4)");
    }
    text
}
