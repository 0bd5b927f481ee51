//! Compares options and outputs that are specific to pprof, and checks every option in its help.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use regex::Regex;

use crate::command::{self, Entry};
use crate::examine::Log;
use crate::exceptions::without_zeros;
use crate::pairs::{Input, Pair};
use crate::pictures;
use crate::pprof::{self, Subject};
use crate::profile;
use crate::question::{Choice, Granularity, Question};
use crate::reports;
use crate::rows::Row;

fn question(sample_type: &str, unit: &str, choices: Vec<Choice>) -> Question {
    Question { sample_type: sample_type.into(), unit: unit.into(), granularity: Granularity::Functions, choices }
}

/// Returns the sample types of one profile, with their units.
fn types(input: &Input) -> impl Iterator<Item = (&str, &str)> {
    input.profile.sample_types.iter().map(|listed_type| (listed_type.name.as_str(), listed_type.unit.as_str()))
}

/// Compares `-mean`: values divided by those of the first sample type, in the table of frames and at the calls.
pub fn examine_mean(pair: &Pair, log: &mut Log) {
    for input in [&pair.base, &pair.new] {
        for (sample_type, unit) in types(input) {
            let question = question(sample_type, unit, vec![Choice::switch("mean")]);
            let (subject, words) = (Subject::One(&input.path), question.to_pprof_args());
            let ours = command::ask(&["top"], subject, &question);
            let theirs = reports::top(&pprof::report("top", subject, &words));
            let rows = ours.entries.iter().map(|entry| entry.sums("flat", "cum"));
            let commands = || pprof::command_line("-top", subject, &words);
            // pprof shows frames whose means were truncated to zero, but not frames whose sums are zero.
            log.compare(without_zeros(rows), without_zeros(theirs.rows), commands);
            log.equal(ours.json["total"].as_i64().unwrap(), theirs.total, "total", commands);
            let edges = command::ask(&["tree"], subject, &question);
            // In pprof, `-peek` and `-tree` show sums at the calls, while `-dot` shows means.
            let words = [&words[..], &["-taghide=.".to_owned()]].concat();
            let (nodes, theirs) = pictures::read(&pprof::report_of_command_line("dot", subject, &words));
            // A frame whose samples cancel is not a node in pprof, and its calls are attributed to a node without a
            // name.
            let nodes: BTreeSet<String> = nodes.into_iter().map(|node| node.subject).collect();
            let ends = |edge: &&Entry| ["node", "other"].iter().all(|end| nodes.contains(&edge.text(end)));
            let calls = edges.entries.iter().filter(|edge| edge.text("relation") == "callee").filter(ends);
            let calls = calls.map(|edge| Row {
                subject: format!("{} -> {}", edge.text("node"), edge.text("other")),
                numbers: vec![edge.number("weight")],
            });
            let plain = |mut row: Row| {
                row.subject = row.subject.trim_end_matches(" (inline)").to_owned();
                row
            };
            log.compare(without_zeros(calls), without_zeros(theirs.into_iter().map(plain)), commands);
        }
    }
}

/// Compares `-drop_negative`: the same frames of a diff remain.
pub fn examine_without_negative(pair: &Pair, log: &mut Log) {
    let subject = Subject::Two { base: &pair.base.path, new: &pair.new.path };
    for (sample_type, unit) in pair.common_sample_types() {
        let question = question(&sample_type, &unit, vec![Choice::switch("drop_negative")]);
        let words = question.to_pprof_args();
        let commands = || pprof::command_line("-top", subject, &words);
        let ours = command::ask(&["top"], subject, &question);
        let theirs = reports::top(&pprof::report("top", subject, &words)).rows;
        log.compare(without_zeros(ours.entries.iter().map(|e| e.sums("flat_delta", "cum_delta"))), theirs, commands);
        let ours = command::ask(&["tree"], subject, &question);
        let edges = ours.entries.iter().map(|entry| entry.edge("delta"));
        let theirs = reports::graph(&pprof::report("peek .", subject, &words)).edges;
        // Nodes that cancel are rows in our output, but not in pprof's.
        let nodes: BTreeSet<String> = theirs.iter().map(|edge| node_of(&edge.subject)).collect();
        let edges = edges.filter(|edge| nodes.contains(&node_of(&edge.subject)));
        log.compare(without_zeros(edges), without_zeros(theirs), commands);
    }
}

fn node_of(edge: &str) -> String {
    edge.split(" -- ").next().unwrap().to_owned()
}

/// Compares `-relative_percentages`: the total is that of the filtered samples, of the base if there is one.
pub fn examine_relative(pair: &Pair, log: &mut Log) {
    let two = Subject::Two { base: &pair.base.path, new: &pair.new.path };
    let chosen = pair.questions().into_iter().filter(|question| {
        let filters = ["focus", "ignore", "tagfocus", "tagignore", "show_from"];
        question.granularity == Granularity::Functions && filters.iter().any(|filter| question.asks_for(filter))
    });
    for mut question in chosen {
        question.choices.push(Choice::switch("relative_percentages"));
        let words = question.to_pprof_args();
        for (subject, total) in [(two, "total_base"), (Subject::One(&pair.base.path), "total")] {
            let ours = command::ask(&["top"], subject, &question);
            let ours = ours.json[total].as_i64().unwrap();
            let text = pprof::report("top", subject, &words);
            // If nothing of the base remains, pprof uses the rest of both sides.
            if ours != 0 && !pair.base.profile.has_negative_values() {
                log.equal(ours, reports::top(&text).total, "total", || pprof::command_line("-top", subject, &words));
            }
        }
    }
}

/// Compares `-unit`: the texts of values.
pub fn examine_units(pair: &Pair, log: &mut Log) {
    for input in [&pair.base, &pair.new] {
        for (sample_type, unit) in types(input) {
            let units: &[&str] = match unit {
                "nanoseconds" | "microseconds" | "milliseconds" | "seconds" => {
                    &["ns", "us", "ms", "seconds", "hrs", "auto"]
                }
                "bytes" => &["bytes", "kilobytes", "MB", "GB", "auto"],
                // pprof prints any count with the requested unit.
                _ => continue,
            };
            for unit in units {
                let subject = Subject::One(&input.path);
                let ours = [format!("--sample-type={sample_type}"), format!("--unit={unit}"), "-n0".to_owned()];
                let theirs = [format!("-sample_index={sample_type}"), format!("-unit={unit}"), "-functions".to_owned()];
                let printed = command::printed(&["top"], subject, &ours);
                // flat, of total, cum, of total, name. The sum of percentages follows the second column.
                let rows = printed.lines().skip_while(|line| !line.trim_start().starts_with("flat ")).skip(1);
                let ours = rows.map(|line| texts(line, 2)).filter(|row| !row.contains("  0 0"));
                let report = pprof::report("top", subject, &theirs);
                let rows = report.lines().skip_while(|line| !line.trim_start().starts_with("flat ")).skip(1);
                let theirs_rows = rows.map(|line| texts(line, 3)).filter(|row| !row.contains("  0 0"));
                let row = |subject| Row { subject, numbers: Vec::new() };
                log.compare(ours.map(row).collect(), theirs_rows.map(row).collect(), || {
                    pprof::command_line("-top", subject, &theirs)
                });
            }
        }
    }
}

/// Returns the name of a row, with the texts of flat and cum. `cum` is the column of cum.
fn texts(line: &str, cum: usize) -> String {
    let mut rest = line;
    let mut columns = Vec::new();
    for _ in 0..cum + 2 {
        let (column, behind) = reports::word(rest);
        columns.push(column);
        rest = behind;
    }
    let name = rest.trim().trim_end_matches(" (inline)").trim_end_matches(" (partial-inline)");
    format!("{name}  {} {}", columns[0], columns[cum])
}

/// Compares `-raw` and `-comments` line by line. See `exceptions::RAW_FRAMES`, `RAW_DURATION` and `RAW_BINARY`.
pub fn examine_outputs(pair: &Pair, log: &mut Log) {
    let (base, new) = (&*pair.base.path, &*pair.new.path);
    for subject in [Subject::One(base), Subject::One(new), Subject::Two { base, new }] {
        let of_one = matches!(subject, Subject::One(file) if profile::names_frames_to_drop(&profile::inflated(file)));
        for view in if of_one { &["comments"][..] } else { &["raw", "comments"] } {
            let ours = command::printed(&[*view], subject, &[]);
            let mut theirs = pprof::printed(view, subject);
            if ours.ends_with("\nMappings\n") {
                let invented = theirs.rfind("1: 0x0/0x0/0x0 ").expect("the binary that pprof invents");
                theirs.truncate(invented);
                theirs = theirs.replace(" M=1 ", " ");
            }
            let lines = |text: &str| -> Vec<Row> {
                let is_two = matches!(subject, Subject::Two { .. });
                let numbered = text.lines().enumerate().filter(|(_, line)| !(is_two && line.starts_with("Duration: ")));
                numbered.map(|(i, line)| Row { subject: format!("{i} {line}"), numbers: Vec::new() }).collect()
            };
            log.compare(lines(&ours), lines(&theirs), || pprof::command_line(&format!("-{view}"), subject, &[]));
        }
    }
}

/// A weighted sum of profiles is accepted by the Go compiler, and equals pprof's sum of repeated profiles.
pub fn examine_weights(pair: &Pair) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pgo");
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).display().to_string();
    let (base, new) = (pair.base.path.display().to_string(), pair.new.path.display().to_string());
    let (weighted, copies) = (path("weighted.pgo"), path("copies.pgo"));
    let merge = ["pprofdiff", "merge", &base, &new, "--weight", &format!("{base}=3"), "-o", &weighted];
    assert_eq!(pprofdiff_cli::run(merge.map(Into::into)), 0);
    pprof::go(&["tool", "pprof", "-proto", "-symbolize=none", &format!("-output={copies}"), &base, &base, &base, &new]);
    let edges = |file: &str| {
        let out = format!("{file}.txt");
        pprof::go(&["tool", "preprofile", "-i", file, "-o", &out]);
        std::fs::read_to_string(out).unwrap()
    };
    let (ours, theirs) = (edges(&weighted), edges(&copies));
    assert!(ours.lines().count() > 50, "{ours}");
    assert_eq!(ours, theirs);
}

/// Checks that docs/from-pprof.md lists every option of `go tool pprof -h`, and that each is accepted or gets a
/// specific error.
pub fn examine_help() {
    let help = pprof::help();
    let words = Regex::new(r"(?m)^ +-(\w+)").unwrap();
    let words: Vec<&str> = words.captures_iter(&help).map(|captures| captures.get(1).unwrap().as_str()).collect();
    assert!(words.len() > 80 && words.contains(&"diff_base") && words.contains(&"mean_delay"), "{words:?}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/from-pprof.md")).unwrap();
    // The first cell of a row lists the options, and the second must not be empty.
    let rows: Vec<(&str, &str)> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" | "))
        .filter(|(_, ours)| ours.trim_end_matches('|').trim().len() > 3)
        .collect();
    let is_told = |word: &str| rows.iter().any(|(theirs, _)| theirs.contains(&format!("`{word}`")));
    let missing: Vec<String> = words.iter().map(|word| format!("-{word}")).filter(|word| !is_told(word)).collect();
    assert!(missing.is_empty(), "docs/from-pprof.md does not know {missing:?}");
    let others = Regex::new(r"(?m)^   +\* ?|^ +(PPROF_\w+|profile\.pb\.gz|legacy_profile|http://host/profile|Binary|none|local|fastlocal|remote|force) ").unwrap();
    for option in others.captures_iter(&help).filter_map(|option| option.get(1)) {
        assert!(is_told(option.as_str()), "docs/from-pprof.md does not know {}", option.as_str());
    }
    let profile = root.join("tests/corpus/story-cpu.base.pb.gz").display().to_string();
    for word in words {
        // Also with a value, which switches do not accept unless it turns them on.
        for argument in [format!("-{word}"), format!("-{word}=1"), format!("-{word}=true")] {
            let output = Command::new(env!("CARGO_BIN_EXE_pprofdiff")).args([&argument, &profile]).output().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert!(!stderr.contains("unexpected argument"), "{argument}: {stderr}");
        }
    }
}
