//! Compares written diffs, opened by pprof and by our command, and normalized values, which both tools round.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::command;
use crate::examine::{Log, graph_of_side};
use crate::exceptions::without_zeros;
use crate::pairs::{Input, Pair};
use crate::pprof::{self, Side, Subject};
use crate::question::{Choice, Granularity, Question};
use crate::reports;
use crate::rows::Row;

/// `diff --format pprof` gives pprof the same values as `-diff_base` with the two files, and gives us the same values
/// as the two files.
pub fn examine_written_diff(pair: &Pair, log: &mut Log) {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("written-{}.pb.gz", pair.name));
    command::write_diff(&pair.base.path, &pair.new.path, &out);
    let (written, files) = (Subject::One(&out), Subject::Two { base: &pair.base.path, new: &pair.new.path });

    for (sample_type, unit) in pair.common_sample_types() {
        for granularity in Granularity::ALL {
            let question =
                &Question { sample_type: sample_type.clone(), unit: unit.clone(), granularity, choices: Vec::new() };
            let commands = || {
                let words = question.to_pprof_args();
                [files, written].map(|subject| pprof::command_line("-peek=.", subject, &words)).join("\n")
            };
            let [ours, theirs] = [written, files].map(|subject| {
                let report = |command| pprof::report(command, subject, &question.to_pprof_args());
                (reports::top(&report("top")), reports::graph(&report("peek .")))
            });
            log.compare(ours.0.rows, theirs.0.rows, commands);
            // See `exceptions::MERGED_TOTALS`.
            if !pair.base.profile.has_negative_values() {
                log.equal(ours.0.total, theirs.0.total, "total", commands);
            }
            log.compare(ours.1.edges, theirs.1.edges, commands);

            for view in [&["top"][..], &["peek", "."], &["stacks"], &["labels"]] {
                let rows = |subject| command::ask(view, subject, question).rows_as_text();
                log.compare(rows(written), rows(files), || {
                    let words = question.to_our_args();
                    [written, files].map(|subject| command::command_line(view, subject, &words)).join("\n")
                });
            }
        }
    }
}

/// Compares normalization to the base's total. pprof rounds each sample before it adds, and we round each sum. Each
/// sample may add half a unit of error in pprof, and our rounding adds another half.
pub fn examine_normalized(pair: &Pair, log: &mut Log) {
    let files = Subject::Two { base: &pair.base.path, new: &pair.new.path };
    for (sample_type, unit) in pair.common_sample_types() {
        let total = |pair: &Input| {
            let column =
                pair.profile.sample_types.iter().position(|listed_type| listed_type.name == sample_type).unwrap();
            pair.profile.samples.iter().map(|sample| sample.values[column]).sum::<i64>()
        };
        // A factor from or to zero is undefined: an error for us, zeros for pprof.
        if total(&pair.base) == 0 || total(&pair.new) == 0 {
            continue;
        }
        let question = |choice| Question {
            sample_type: sample_type.clone(),
            unit: unit.clone(),
            granularity: Granularity::Functions,
            choices: vec![choice],
        };
        let ours = command::ask(&["top"], files, &question(Choice::new("normalize", "total")));
        let theirs_asked = question(Choice::switch("normalize"));
        let graph = graph_of_side(files, &theirs_asked, Side::New);
        let delta = reports::top(&pprof::report("top", files, &theirs_asked.to_pprof_args())).rows;

        let deltas = ours.entries.iter().map(|entry| entry.sums("flat_delta", "cum_delta"));
        let news = ours.entries.iter().map(|entry| entry.sums("flat_new", "cum_new"));
        for (ours, theirs) in [(without_zeros(deltas), delta), (without_zeros(news), graph.nodes)] {
            log.comparisons += 1;
            log.rows += theirs.len();
            let (ours, theirs) = (by_name(ours), by_name(theirs));
            for name in ours.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
                let bound = pair.new.profile.samples_with(name) as f64 * 0.5 + 0.5;
                let numbers = |rows: &BTreeMap<String, Vec<i64>>| rows.get(name).cloned().unwrap_or(vec![0, 0]);
                let (ours, theirs) = (numbers(&ours), numbers(&theirs));
                if ours.iter().zip(&theirs).any(|(our, their)| (our - their).abs() as f64 > bound) {
                    log.differences.push(format!(
                        "{}\n{}\n  {name}: ours {ours:?}, pprof {theirs:?}, which may be {bound} apart",
                        command::command_line(
                            &["top"],
                            files,
                            &question(Choice::new("normalize", "total")).to_our_args()
                        ),
                        pprof::command_line("-top", files, &theirs_asked.to_pprof_args()),
                    ));
                }
            }
        }
    }
}

/// Sums rows with the same name. The error bound of the name covers their samples together.
fn by_name(rows: Vec<Row>) -> BTreeMap<String, Vec<i64>> {
    let mut sums: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for row in rows {
        let sum = sums.entry(row.subject).or_insert(vec![0; row.numbers.len()]);
        for (sum, number) in sum.iter_mut().zip(row.numbers) {
            *sum += number;
        }
    }
    sums
}

impl command::Answer {
    /// Returns our own rows as text, for comparing two of our answers. See `exceptions::MERGED_ROWS`.
    fn rows_as_text(&self) -> Vec<Row> {
        const SUMS: [&str; 6] = ["base", "new", "flat_base", "flat_new", "cum_base", "cum_new"];
        let is_zero = |json: &Value| SUMS.iter().all(|sum| json.get(*sum).is_none_or(|number| *number == 0));
        let rows = self.entries.iter().map(|entry| entry.json()).filter(|json| !is_zero(json));
        rows.map(|json| Row { subject: json.to_string(), numbers: vec![0] }).collect()
    }
}
