//! `pprofdiff batch`: many pairs over all cores, in order and in bounded memory. What fails is said and stops nothing.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};
use pprofdiff::report::{PairFormat, PairWriter};
use pprofdiff::{Diff, LoadOptions, NamedPair, directory_pairs, manifest_pairs, map_pairs, pattern_pairs};

use crate::args::{BatchArgs, BatchFormat};
use crate::{Failure, Result, write_to};

type Pairs = (Box<dyn Iterator<Item = NamedPair> + Send>, Option<u64>);

pub fn run(args: &BatchArgs) -> Result<()> {
    let (pairs, count) = pairs(args)?;
    let (query, sort, n) = (args.query()?, args.sort(), args.rows());
    let threads = rayon::ThreadPoolBuilder::new().build();
    let pool = Arc::new(threads.map_err(|e| Failure::Message(format!("no threads can be started: {e}")))?);
    let options = LoadOptions::limited(args.inflated_limit)?;
    let bar = progress(count, "pairs");
    let format = match args.format {
        BatchFormat::Text => PairFormat::Text,
        BatchFormat::Jsonl => PairFormat::JsonLines,
        BatchFormat::Csv => PairFormat::Csv,
    };
    let mut writer = PairWriter::new(format);
    let table = move |diff: Diff| Ok(diff.view(&query)?.top(sort).table_head(n));
    let (mut done, mut failed) = (0_u64, 0_u64);
    write_to(args.output.as_deref(), |out| {
        for (name, result) in map_pairs(pool, pairs, options, table) {
            done += 1;
            bar.suspend(|| match result {
                Ok(table) => writer.pair(&name, &table, out),
                Err(e) => {
                    failed += 1;
                    let reason = e.to_string().replace(char::is_control, " ");
                    let _ = writeln!(io::stderr(), "pprofdiff: {reason}");
                    writer.error(&name, &e, out)
                }
            })?;
            bar.inc(1);
        }
        Ok(())
    })?;
    bar.finish_and_clear();
    match failed {
        0 => Ok(()),
        _ => Err(Failure::Message(format!("{failed} of {done} pairs failed"))),
    }
}

/// The pairs that the arguments name, and how many there are if that is known.
fn pairs(args: &BatchArgs) -> Result<Pairs> {
    let listed = |pairs: Vec<NamedPair>| -> Result<Pairs> {
        if pairs.is_empty() {
            return Err(Failure::Message("there are no files to compare".to_owned()));
        }
        let count = pairs.len() as u64;
        Ok((Box::new(pairs.into_iter()), Some(count)))
    };
    match args.pairs.as_slice() {
        [manifest] => Ok((manifest_pairs(Path::new(manifest))?, None)),
        [base, new] if Path::new(base).is_dir() && Path::new(new).is_dir() => {
            listed(directory_pairs(Path::new(base), Path::new(new))?)
        }
        [base, new] => listed(pattern_pairs(base, new)?),
        _ => Err(Failure::Message("name two directories, two patterns or a manifest".to_owned())),
    }
}

/// A bar on a terminal that nothing else is written to.
pub fn progress(count: Option<u64>, what: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let (bar, template) = match count {
        Some(count) => {
            (ProgressBar::new(count), format!("{{bar:40}} {{pos}}/{{len}} {what}, {{per_sec}}, {{eta}} left"))
        }
        None => (ProgressBar::no_length(), format!("{{spinner}} {{pos}} {what}, {{per_sec}}")),
    };
    bar.with_style(ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar()))
}
