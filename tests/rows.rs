//! Tests of the rows of views as the command prints them: their order, runs and labels.

#![allow(clippy::unwrap_used)]

use serde_json::Value;

use crate::cli::{corpus, failure, json, run, stdout, story, temp};

/// Equal values in a row have the same text in all columns.
#[test]
fn equal_values_have_the_same_text() {
    let mut equal = 0;
    for name in ["story-cpu", "go-heap", "rust-cpu", "node-time", "go-mutex"] {
        let [base, new] = ["base", "new"].map(|side| corpus(&format!("{name}.{side}.pb.gz")));
        let args = ["top", &base, &new, "--sort", "flat", "-n", "1000"];
        let json: Value = serde_json::from_str(&stdout(&[&args[..], &["--format", "json"]].concat())).unwrap();
        let columns = ["flat_base", "flat_new", "flat_delta", "cum_base", "cum_new", "cum_delta"];
        let text = stdout(&args);
        let rows = text.lines().skip_while(|line| !line.starts_with("flat:")).skip(1);
        let mut n = 0;
        for (row, line) in json["rows"].as_array().unwrap().iter().zip(rows) {
            let cells: Vec<&str> = line.split_whitespace().collect();
            let mut seen = std::collections::HashMap::new();
            // The columns 3 and 4 are growth and share.
            for (column, cell) in columns.iter().zip([0, 1, 2, 5, 6, 7]) {
                let value = row[*column].as_i64().unwrap();
                let shown = cells[cell].trim_start_matches(['+', '-']);
                equal += usize::from(seen.insert(value.abs(), shown).is_some_and(|before| {
                    assert_eq!(before, shown, "{name}: {line}");
                    true
                }));
            }
            n += 1;
        }
        assert!(n > 5, "{text}");
    }
    assert!(equal > 500, "{equal}");
}

#[test]
fn vanished_samples_are_reported() {
    // A delta is not a later snapshot of the process.
    let snapshot = |i: usize| corpus(&format!("series/heap-{i:02}.pb.gz"));
    let (grown, out) = (temp("grown.pb.gz").display().to_string(), temp("gone.pb.gz").display().to_string());
    stdout(&["delta", &snapshot(3), &snapshot(4), "-o", &grown]);
    let run_delta = |policy: &[&str]| run(&[&["delta", &snapshot(4), &grown, "-o", &out], policy].concat());
    let line = String::from_utf8(run_delta(&[]).stderr).unwrap();
    assert!(line.contains("--on-reset pass"), "{line}");

    let [a, b] = [
        "1 sample that had counted something is gone; their counts are not in the delta",
        "1 sample that had counted something is gone",
    ];
    let (before, now) = (temp("three.pb").display().to_string(), temp("two.pb").display().to_string());
    std::fs::write(&before, mutex(&[("f", 3), ("g", 7), ("h", 5)])).unwrap();
    std::fs::write(&now, mutex(&[("g", 8), ("h", 5)])).unwrap();
    let output = run(&["delta", &before, &now, "-o", &out]);
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("pprofdiff: warning: {out}: {a}\n"));
    assert!(stdout(&["info", &out]).contains(b));
    // More than half of the counts vanished, which means a restart.
    std::fs::write(&now, mutex(&[("h", 6)])).unwrap();
    let line = failure(&["delta", &before, &now, "-o", &out]);
    assert!(line.contains("2 of the 3 samples that had counted something are gone, with 10 of 15 of delay"), "{line}");
    assert!(line.contains("--on-reset pass or --on-reset clamp"), "{line}");
    let output = run(&["delta", &before, &now, "-o", &out, "--on-reset", "pass"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("10 of 15 of delay: the process was restarted"));
    assert_eq!(json(&["top", &out, "--format", "json"])["total"], 6);
}

#[test]
fn labels_are_hidden_by_key_in_tables_and_written_files() {
    let labelled = corpus("go-labels-cpu.new.pb.gz");
    let keys = |args: &[&str]| {
        let rows = json(&[&["labels", "--format", "json"], args].concat())["rows"].as_array().unwrap().clone();
        rows.iter().map(|row| row["key"].as_str().unwrap().to_owned()).collect::<std::collections::BTreeSet<_>>()
    };
    let all = keys(&[&labelled]);
    assert!(all.len() > 1, "{all:?}");
    let one = all.first().unwrap().clone();
    let exactly = format!("^{one}$");
    let rest: std::collections::BTreeSet<_> = all.iter().filter(|key| **key != one).cloned().collect();
    assert_eq!(keys(&[&labelled, "--tagshow", &exactly]), [one.clone()].into());
    assert_eq!(keys(&[&labelled, "--taghide", &exactly]), rest);
    assert!(keys(&[&labelled, "--tagshow", &exactly, "--taghide", &exactly]).is_empty());
    // Stacks that differ only in a hidden label are merged.
    let stacks =
        |args: &[&str]| json(&[&["stacks", &labelled, "--format", "json"], args].concat())["rows_total"].clone();
    assert_eq!(stacks(&["--labels", "--taghide", "."]), stacks(&[]));
    assert_ne!(stacks(&["--labels"]), stacks(&[]));
    let out = temp("hidden.pb.gz").display().to_string();
    stdout(&["top", &labelled, "--taghide", &exactly, "--format", "pprof", "-o", &out]);
    assert_eq!(keys(&[&out]), rest);
    let warned = json(&["labels", &labelled, "--tagshow", "no such key", "--format", "json"]);
    assert_eq!(warned["warnings"][0], "tagshow \"no such key\" matched nothing");
    assert!(failure(&["labels", &labelled, "--taghide", "("]).contains("taghide"));
}

#[test]
fn traces_start_at_the_leaf() {
    let labelled = corpus("go-labels-cpu.new.pb.gz");
    let text = stdout(&["traces", &labelled, "-n", "1"]);
    let rows = json(&["traces", &labelled, "--format", "json", "-n", "1"])["rows"].clone();
    let texts = |column: &str| -> Vec<String> {
        rows[0][column].as_array().unwrap().iter().map(|t| t.as_str().unwrap().to_owned()).collect()
    };
    let (labels, mut frames) = (texts("labels"), texts("frames"));
    frames.reverse();
    assert!(!labels.is_empty() && frames.len() > 1);
    let ruler = "-----------+-------------------------------------------------------";
    let block: Vec<&str> = text.split(ruler).nth(1).unwrap().trim_matches('\n').lines().collect();
    let shown: Vec<String> = block[..labels.len()].iter().map(|l| l.trim().replace(":  ", "=")).collect();
    assert_eq!(shown, labels, "{text}");
    // The value comes before the leaf.
    assert!(block[labels.len()].trim_start().starts_with(|c: char| c.is_ascii_digit()), "{text}");
    let shown: Vec<&str> = block[labels.len()..].iter().map(|l| &l[13..]).collect();
    assert_eq!(shown, frames, "{text}");
    assert!(text.trim_end().ends_with(" stacks"), "{text}");
    let [base, new] = story();
    let two = stdout(&["traces", &base, &new, "-n", "1"]);
    let leaf = two.lines().skip_while(|l| !l.starts_with("---")).nth(1).unwrap();
    assert_eq!(leaf.split_whitespace().count(), 4, "{two}");
}

#[test]
fn several_files_per_side_are_runs_or_are_summed() {
    let path = |build: &str, i: u8| corpus(&format!("faults/freight/{build}-{i}.cpu.pb.gz"));
    let side = |build: &str| [1, 2, 3].map(|i| path(build, i));
    let (base, new) = (side("base"), side("calls"));
    let args = |more: &[&str]| -> Vec<String> {
        let side = |option: &str, files: &[String]| [&[option.to_owned()], files].concat();
        let more: Vec<String> = more.iter().map(|&arg| arg.to_owned()).collect();
        [side("--base", &base), side("--new", &new), more].concat()
    };
    let stdout_of = |more: &[&str]| stdout(&args(more).iter().map(String::as_str).collect::<Vec<_>>());
    let means = stdout_of(&["--sort", "cum"]);
    assert!(means.contains("base  mean of 3 runs: ") && means.contains("together\n"), "{means}");
    assert!(means.contains("cpu (nanoseconds): 4.02s -> 4.76s  +0.737s  +18.3%  p = 0.012 (Mann-Whitney 0.100;"));
    let sums = stdout_of(&["--sort", "cum", "--sum"]);
    assert!(
        sums.contains("base  sum of 3: ") && sums.contains("cpu (nanoseconds): 12.06s -> 14.27s  +2.21s  +18.3%\n")
    );
    // Only significant rows are left; the others are counted.
    let significant = stdout_of(&["--sort", "cum", "--significant"]);
    assert!(significant.contains(" of 222 frames;") && !significant.contains("  ~  "), "{significant}");
    assert!(means.contains("  ~  "), "{means}");
    // Views without significance refuse the option instead of ignoring it.
    for format in ["svg", "html", "folded", "pprof"] {
        let all = args(&["--significant", "--format", format, "-o", "/dev/null"]);
        let output = run(&all.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{format}");
    }
    let alone = run(&[base[0].as_str(), new[0].as_str(), "--sum"]);
    assert_eq!(alone.status.code(), Some(2));
}

/// Each side is compared with its own total, in the sort column.
#[test]
fn small_rows_are_hidden() {
    let [base, new] = story();
    let all = json(&[&base, &new, "--format", "json"]);
    for sort in ["flat", "cum"] {
        let shown = json(&[&base, &new, "--format", "json", "--sort", sort, "--hide-below", "5%"]);
        let share = |row: &Value, side: &str| {
            let total = all[format!("total_{side}")].as_f64().unwrap();
            100.0 * row[format!("{sort}_{side}")].as_f64().unwrap() / total
        };
        let expected: Vec<&Value> = all["rows"].as_array().unwrap().iter().collect();
        let expected: Vec<_> =
            expected.into_iter().filter(|row| share(row, "base").max(share(row, "new")) >= 5.0).collect();
        let rows = shown["rows"].as_array().unwrap();
        assert!(rows.len() == expected.len() && expected.iter().all(|row| rows.contains(row)), "{sort}: {rows:?}");
        assert!(!rows.is_empty() && shown["rows_total"] == all["rows_total"] && shown["hide_below"] == 5.0);
    }
    assert!(stdout(&[&base, &new, "--hide-below", "5"]).contains("hide_below=5"));
    assert!(failure(&["stacks", &base, &new, "--hide-below", "5"]).contains("stacks does not support --hide-below"));
    assert!(failure(&[&base, &new, "--hide-below", "500"]).contains("percentage from 0 to 100"));
}

/// Each sample with a matching frame belongs to one chain, which ends at the first match.
#[test]
fn roots_shows_the_chains_to_the_first_match() {
    let [base, new] = story();
    let roots = json(&["roots", "mallocgc", &base, &new, "--format", "json"]);
    let stacks = json(&["stacks", &base, &new, "--format", "json"]);
    let frames = |row: &Value| -> Vec<String> {
        row["frames"].as_array().unwrap().iter().map(|f| f.as_str().unwrap().to_owned()).collect()
    };
    let sum = |rows: &Value, side: &str, chain: &[String]| -> i64 {
        let rows = rows["rows"].as_array().unwrap().iter().filter(|row| frames(row).starts_with(chain));
        rows.map(|row| row[side].as_i64().unwrap()).sum()
    };
    let rows = roots["rows"].as_array().unwrap();
    assert!(rows.len() > 1, "{roots}");
    for row in rows {
        let chain = frames(row);
        let (last, callers) = chain.split_last().unwrap();
        assert!(last.contains("mallocgc") && !callers.iter().any(|f| f.contains("mallocgc")));
        for side in ["base", "new"] {
            assert_eq!(row[side].as_i64().unwrap(), sum(&stacks, side, &chain), "{chain:?}");
        }
    }
    assert!(stdout(&["roots", "mallocgc", &base, &new, "-n", "1"]).contains("stack"));
    assert!(failure(&["roots", "no such", &base, &new]).contains("no frame matches"));
}

/// The sort column comes first. Both sort orders are the same here.
#[test]
fn the_sort_column_comes_first() {
    let [base, new] = story();
    for (sort, first) in [("flat", "flat: base"), ("cum", "cum: base")] {
        for view in [&["-n", "1"][..], &["-n", "1", "--focus", "tableInsensitive$"]] {
            let text = stdout(&[&[&base, &new, "--sort", sort][..], view].concat());
            let head = text.lines().find(|line| line.ends_with("frame")).unwrap_or_default();
            assert!(head.trim_start().starts_with(first), "{text}");
        }
    }
}

/// Builds a profile of a cumulative counter, with one function per sample.
fn mutex(samples: &[(&str, i64)]) -> Vec<u8> {
    use pprofdiff::proto;
    use prost::Message as _;

    let texts = ["", "delay", "nanoseconds"].into_iter().chain(samples.iter().map(|(name, _)| *name));
    let ids = 1..=samples.len() as u64;
    proto::Profile {
        sample_type: vec![proto::ValueType { r#type: 1, unit: 2 }],
        sample: (ids.clone().zip(samples))
            .map(|(id, (_, v))| proto::Sample { location_id: vec![id], value: vec![*v], ..Default::default() })
            .collect(),
        location: (ids.clone())
            .map(|id| proto::Location {
                id,
                line: vec![proto::Line { function_id: id, ..Default::default() }],
                ..Default::default()
            })
            .collect(),
        function: ids.map(|id| proto::Function { id, name: id as i64 + 2, ..Default::default() }).collect(),
        string_table: texts.map(|t| t.as_bytes().to_vec()).collect(),
        ..Default::default()
    }
    .encode_to_vec()
}
