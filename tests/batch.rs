//! Tests of `pprofdiff batch`: pairs from directories, patterns and manifests. Bad pairs are reported, and no pair is
//! lost.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use pprofdiff::WriteOptions;
use pprofdiff::builder::ProfileBuilder;
use pprofdiff::samples::{Label, LabelValue};
use serde_json::Value;

fn corpus(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus").join(file)
}

fn pprofdiff(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
    command.current_dir(dir).stdin(Stdio::null()).args(args).output().unwrap()
}

/// Creates two directory trees with two good pairs, one broken pair, and one file without a partner on each side.
fn trees(test: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("pprofdiff-batch-{test}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    for (side, branch) in [("base", "main"), ("new", "branch")] {
        for (service, pair) in [("api", "story-cpu"), ("db", "go-mutex")] {
            std::fs::create_dir_all(dir.join(branch).join(service)).unwrap();
            let file = dir.join(branch).join(service).join("cpu.pb.gz");
            std::fs::copy(corpus(&format!("{pair}.{side}.pb.gz")), file).unwrap();
        }
        for service in ["bad", side] {
            std::fs::create_dir_all(dir.join(branch).join(service)).unwrap();
            std::fs::write(dir.join(branch).join(service).join("cpu.pb.gz"), b"\x1f\x8b broken").unwrap();
        }
        std::fs::write(dir.join(branch).join(".hidden"), "").unwrap();
    }
    std::fs::write(
        dir.join("m.csv"),
        "name,base,new\napi,main/api/cpu.pb.gz,branch/api/cpu.pb.gz\nbad,main/bad/cpu.pb.gz,branch/bad/cpu.pb.gz\n\
         none,missing,missing\nshort,x\ndb,main/db/cpu.pb.gz,branch/db/cpu.pb.gz\n",
    )
    .unwrap();
    std::fs::write(
        dir.join("m.jsonl"),
        "{\"name\":\"api\",\"base\":[\"main/api/cpu.pb.gz\"],\"new\":\"branch/api/cpu.pb.gz\"}\nnonsense\n\
         {\"name\":\"db\",\"base\":\"main/db/cpu.pb.gz\",\"new\":\"branch/db/cpu.pb.gz\"}\n",
    )
    .unwrap();
    dir
}

/// Returns the pairs of a run in order, with true for failed pairs. Checks that good pairs have the same rows as a
/// single diff.
fn outcomes(dir: &Path, args: &[&str]) -> Vec<(String, bool)> {
    let out = pprofdiff(dir, &[&["batch"], args, &["--format", "jsonl", "-n", "0"]].concat());
    let stderr = String::from_utf8(out.stderr).unwrap();
    let lines: Vec<Value> =
        String::from_utf8(out.stdout).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let outcomes: Vec<_> =
        lines.iter().map(|l| (l["pair"].as_str().unwrap().to_owned(), l.get("error").is_some())).collect();
    let failed = outcomes.iter().filter(|(_, failed)| *failed).count();
    assert_eq!(out.status.code(), Some(if failed > 0 { 2 } else { 0 }), "{stderr}");
    assert_eq!(stderr.lines().count(), failed + usize::from(failed > 0), "a line a failure, and how many: {stderr}");
    for line in lines.iter().filter(|l| l.get("error").is_none()) {
        let name = line["pair"].as_str().unwrap().split('/').next().unwrap();
        let side = |side: &str| format!("{side}/{name}/cpu.pb.gz");
        let alone = pprofdiff(dir, &[&side("main"), &side("branch"), "--format", "json"]);
        let alone: Value = serde_json::from_slice(&alone.stdout).unwrap();
        for key in ["rows", "rows_total", "total_base", "total_new", "sample_type"] {
            assert_eq!(line[key], alone[key], "{name}: {key}");
        }
    }
    outcomes
}

#[test]
fn pairs_come_from_directories_patterns_and_manifests() {
    let dir = trees("kinds");
    let list = |names: &[(&str, bool)]| names.iter().map(|(n, bad)| ((*n).to_owned(), *bad)).collect::<Vec<_>>();
    let services = [("api", false), ("bad", true), ("base", true), ("db", false), ("new", true)];
    let files = services.map(|(name, bad)| (format!("{name}/cpu.pb.gz"), bad));
    assert_eq!(outcomes(&dir, &["main", "branch"]), files);
    assert_eq!(outcomes(&dir, &["main/*/cpu.pb.gz", "branch/*/cpu.pb.gz"]), list(&services));
    let out = pprofdiff(&dir, &["batch", "main/[ad]*/cpu.pb.gz", "branch/[ad]*/cpu.pb.gz", "-n1"]);
    let text = String::from_utf8(out.stdout).unwrap();
    let names: Vec<&str> = text.lines().filter(|l| !l.starts_with(' ')).filter_map(|l| l.split("  ").next()).collect();
    assert_eq!(names, ["a/pi", "d/b"]);
    let of_csv = [("api", false), ("bad", true), ("none", true), ("line 5", true), ("db", false)];
    assert_eq!(outcomes(&dir, &["m.csv"]), list(&of_csv));
    assert_eq!(outcomes(&dir, &["m.jsonl"]), list(&[("api", false), ("line 2", true), ("db", false)]));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn text_and_csv_list_all_pairs() {
    let dir = trees("formats");
    let out = pprofdiff(&dir, &["batch", "main", "branch", "-n", "2"]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(
        text.starts_with(
            "api/cpu.pb.gz  cpu 1.90s -> 2.93s  +1.03s  +54.2%\n    \
             flat 130ms -> 750ms  +620ms  x5.77  +32.63% of total  cum"
        ),
        "{text}"
    );
    assert!(text.contains("bad/cpu.pb.gz  failed\n"), "{text}");
    assert_eq!(text.lines().count(), 5 + 2 * 2);
    let out = pprofdiff(&dir, &["batch", "main", "branch", "-n", "2", "--format", "csv", "-o", "out.csv"]);
    assert!(out.stdout.is_empty());
    let csv = std::fs::read_to_string(dir.join("out.csv")).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("pair,error,name,file,"), "{csv}");
    // Two rows of each good pair, the broken pair, and the files without a partner.
    assert_eq!(lines.len(), 1 + 4 + 3);
    assert!(lines[1].starts_with("api/cpu.pb.gz,,indexbytebody,"), "{csv}");
    // A failed pair has as many fields as the others.
    let rows = csv_rows(&csv);
    let failed: Vec<&Vec<String>> = rows[1..].iter().filter(|row| !row[1].is_empty()).collect();
    let names: Vec<&str> = failed.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names, ["bad/cpu.pb.gz", "base/cpu.pb.gz", "new/cpu.pb.gz"]);
    assert!(failed.iter().all(|row| row.len() == rows[0].len() && row[2..].iter().all(String::is_empty)), "{csv}");
    std::fs::remove_dir_all(dir).unwrap();
}

/// Returns the fields of each line of CSV without line breaks in fields.
fn csv_rows(text: &str) -> Vec<Vec<String>> {
    let fields = |line: &str| {
        let (mut fields, mut quoted) = (vec![String::new()], false);
        for c in line.chars() {
            match c {
                '"' => quoted = !quoted,
                ',' if !quoted => fields.push(String::new()),
                _ => fields.last_mut().unwrap().push(c),
            }
        }
        fields
    };
    text.lines().map(fields).collect()
}

#[test]
fn csv_has_the_pairs_that_failed_before_the_first_table_and_keys_by_name() {
    let dir = trees("failed-rows");
    let csv = |manifest: &str, more: &[&str]| {
        std::fs::write(dir.join("k.jsonl"), manifest).unwrap();
        let out = pprofdiff(&dir, &[&["batch", "k.jsonl", "-n", "1", "--format", "csv"], more].concat());
        String::from_utf8(out.stdout).unwrap()
    };
    let bad = r#"{"base": "main/bad/cpu.pb.gz", "new": "branch/bad/cpu.pb.gz", "name": "bad"}"#;
    let good = r#"{"base": "main/api/cpu.pb.gz", "new": "branch/api/cpu.pb.gz", "name": "api"}"#;
    let both = csv(&format!("{bad}\n{good}\n{bad}\n"), &[]);
    let names: Vec<String> = csv_rows(&both).into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(names, ["pair", "bad", "api", "bad"], "{both}");
    // Without any table, the columns of tables are unknown.
    let none = csv(&format!("{bad}\n"), &[]);
    assert!(none.starts_with("pair,error\nbad,") && none.lines().count() == 2, "{none}");
    let ranked = csv(&format!("{bad}\n{good}\n"), &["--rank"]);
    let rows = csv_rows(&ranked);
    assert_eq!(
        (&rows[0][..2], &rows[1][..2]),
        (&["pair", "error"].map(str::to_owned)[..], &["api", ""].map(str::to_owned)[..])
    );
    let last = rows.last().unwrap();
    assert!(last[0] == "bad" && last[1].contains("bad/cpu.pb.gz") && last.len() == rows[0].len(), "{ranked}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_missing_folder_is_named() {
    let dir = trees("missing-folder");
    let out = pprofdiff(&dir, &["batch", "main", "nosuch"]);
    let stderr = String::from_utf8(out.stderr).unwrap();
    assert!(stderr.contains("nosuch: there is no such file or folder"), "{stderr}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn every_view_works_for_many_pairs() {
    let dir = trees("views");
    let (main, branch) = ("main/api/cpu.pb.gz", "branch/api/cpu.pb.gz");
    let common = ["--noinlines", "--granularity", "lines", "--focus", "logmill/", "--normalize", "total"];
    for (view, verb) in [
        ("top", &["diff"][..]),
        ("tree", &["tree"]),
        ("stacks", &["stacks"]),
        ("traces", &["traces"]),
        ("labels", &["labels"]),
        ("peek=headers", &["peek", "headers"]),
        ("roots=headers", &["roots", "headers"]),
    ] {
        let args = ["batch", "main", "branch", "--format", "jsonl", "-n", "0", "--view", view];
        let out = pprofdiff(&dir, &[&args, &common[..]].concat());
        let lines = String::from_utf8(out.stdout).unwrap();
        let of_pair: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
        let alone = pprofdiff(&dir, &[verb, &[main, branch, "--format", "json"], &common[..]].concat());
        let alone: Value = serde_json::from_slice(&alone.stdout).unwrap();
        for key in ["rows", "rows_total", "total_base", "total_new", "filters", "normalize", "noinlines"] {
            assert_eq!(of_pair[key], alone[key], "{view}: {key}");
        }
        let text = pprofdiff(&dir, &[&["batch", "main", "branch", "--view", view, "-n1"], &common[..]].concat());
        let text = String::from_utf8(text.stdout).unwrap();
        assert!(text.starts_with("api/cpu.pb.gz  cpu ") && text.contains("db/cpu.pb.gz  "), "{view}: {text}");
    }
    // Causes are computed for functions.
    let causes = |args: &[&str]| String::from_utf8(pprofdiff(&dir, args).stdout).unwrap();
    let csv = causes(&["batch", "main", "branch", "--view", "explain", "--format", "csv"]);
    let alone = causes(&["explain", main, branch, "--format", "csv"]);
    let rows = |csv: &str| csv.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let of_pair: Vec<_> =
        rows(&csv).iter().filter_map(|row| Some(row.strip_prefix("api/cpu.pb.gz,,")?.to_owned())).collect();
    assert!(!of_pair.is_empty() && of_pair == rows(&alone), "{csv}\n{alone}");
    let text = causes(&["batch", "main", "branch", "--view", "explain"]);
    assert!(text.contains("added logmill/names.canonical from logmill/names.compare"), "{text}");
    let out = pprofdiff(&dir, &["batch", "main", "branch", "--view", "flame"]);
    assert!(
        String::from_utf8(out.stderr)
            .unwrap()
            .contains("top, tree, peek=RE, roots=RE, stacks, traces, labels, explain")
    );
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn ties_in_a_ranking_are_sorted_by_change_and_name_and_n_limits_the_rows() {
    let dir = std::env::temp_dir().join(format!("pprofdiff-ties-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    for side in ["main", "branch"] {
        std::fs::create_dir_all(dir.join(side)).unwrap();
        for i in 1..=30 {
            // All of these changes are within chance.
            let more = if side == "branch" { [(9, 50), (21, -20), (4, 20)] } else { [(0, 0); 3] };
            let more = more.iter().find(|(pair, _)| *pair == i).map_or(0, |(_, more)| *more);
            std::fs::write(dir.join(side).join(format!("s{i:02}.folded")), format!("main;a {}\n", 1000 + more))
                .unwrap();
        }
    }
    let pairs = |args: &[&str]| -> Vec<String> {
        let out = pprofdiff(&dir, &[&["batch", "main", "branch", "--rank"], args].concat());
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let text = String::from_utf8(out.stdout).unwrap();
        let name = |end: usize| text[end - 3..end].to_owned();
        text.match_indices(".folded").map(|(end, _)| name(end)).collect()
    };
    let all = pairs(&["-n", "0"]);
    assert_eq!((all.len(), &all[..6]), (30, &["s09", "s04", "s21", "s01", "s02", "s03"].map(String::from)[..]));
    assert!(all[3..].is_sorted(), "{all:?}");
    for (args, count) in [(&[][..], 20), (&["-n", "2"], 2), (&["-n", "25", "--format", "markdown"], 25)] {
        assert_eq!(pairs(args), all[..count], "{args:?}");
    }
    for format in ["csv", "json", "html"] {
        assert_eq!(pairs(&["--format", format]), all, "{format}");
        assert_eq!(pairs(&["--format", format, "-n", "0"]), all, "{format}");
        assert_eq!(pairs(&["--format", format, "-n", "3"]), all[..3], "{format}");
    }
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn pairs_are_ranked_in_one_answer() {
    let dir = trees("rank");
    for (side, name) in [("main", "story-cpu.base.pb.gz"), ("branch", "story-cpu.new.pb.gz")] {
        let folder = dir.join(side).join("again");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::copy(corpus(name), folder.join("cpu.pb.gz")).unwrap();
        std::fs::copy(corpus(name), folder.join("more.pb.gz")).unwrap();
    }
    let ranked = |format: &str| {
        let args = ["batch", "main/again", "branch/again", "--rank", "--format", format];
        let out = pprofdiff(&dir, &args);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let text = ranked("text");
    assert!(text.starts_with("2 of 2 pairs changed by more than chance (at most 5% of them falsely)\n"), "{text}");
    assert!(text.contains("Causes that several pairs share:"), "{text}");
    assert!(text.contains("q tests the causes: it is 1 without causes, even if the total changed:"), "{text}");
    let shared =
        "2 pairs; in cpu.pb.gz: logmill/names.compare (names.go:19) now calls logmill/names.canonical: +1.39s (+73%)";
    assert!(text.contains(shared), "{text}");
    let json: Value = serde_json::from_str(&ranked("json")).unwrap();
    assert_eq!(
        (&json["kind"], &json["changed"], &json["shared"][0]["pairs"]),
        (&"ranking".into(), &2.into(), &2.into())
    );
    assert_eq!(json["total_base"], 2 * 1_900_000_000_i64);
    assert_eq!(ranked("csv").lines().count(), 3);
    // Each pair and each cause can be expanded, with the account of `explain`.
    let html = ranked("html");
    let count = |fragment: &str| html.matches(fragment).count();
    let shared = json["shared"].as_array().unwrap().len();
    assert_eq!(
        (count("<details><summary><span class=\"of\">"), count("<ol class=\"account\">"), count("<a href=\"#pair-")),
        (2 + shared, 2, 2 * shared)
    );
    assert!(html.starts_with("<!doctype html>") && !html.contains("<script"), "{html}");
    assert!(ranked("markdown").contains("| cpu.pb.gz |") || ranked("markdown").contains("`cpu.pb.gz`"));
    // The same pairs, matched by keys of their paths.
    let by_keys =
        ["*/again/*.pb.gz", "--group", "file={2},branch={1}", "--base", "branch=main", "--new", "branch=branch"];
    let out = pprofdiff(&dir, &[&["batch", "--rank"][..], &by_keys].concat());
    assert_eq!(String::from_utf8_lossy(&out.stdout), text.replace(".pb.gz:", ":"));
    let out = pprofdiff(&dir, &[&["batch", "main"][..], &by_keys].concat());
    assert!(String::from_utf8_lossy(&out.stderr).contains("--group needs one pattern"));
    // An input is never overwritten, even if only a manifest names it.
    std::fs::write(
        dir.join("n.csv"),
        "base,new\nmain/again/cpu.pb.gz,out.json\nmain/again/cpu.pb.gz,branch/again/cpu.pb.gz\n",
    )
    .unwrap();
    std::fs::copy(corpus("story-cpu.new.pb.gz"), dir.join("out.json")).unwrap();
    let out = pprofdiff(&dir, &["batch", "n.csv", "--rank", "-o", "out.json"]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("the output is also an input"), "{out:?}");
    assert_eq!(std::fs::read(dir.join("out.json")).unwrap(), std::fs::read(corpus("story-cpu.new.pb.gz")).unwrap());
    // An unreadable file is reported, and the other pairs are ranked.
    std::fs::write(dir.join("main/again/more.pb.gz"), "no profile").unwrap();
    let out = pprofdiff(&dir, &["batch", "main/again", "branch/again", "--rank"]);
    let (output, errors) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert_eq!(out.status.code(), Some(2), "{errors}");
    assert!(
        output.contains("1 of 1 pair changed") && output.contains("failed: ") && errors.contains("1 of 2 pairs failed"),
        "{output} {errors}"
    );
    for (args, why) in [
        (&["--rank", "--fdr", "1"][..], "between 0 and 1"),
        (&["--rank", "--format", "svg"], "a ranking is written as"),
        (&["--rank", "--view", "top"], "cannot be used with"),
        (&["--fdr", "0.1"], "--rank"),
    ] {
        let out = pprofdiff(&dir, &[&["batch", "main/again", "branch/again"], args].concat());
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.code() == Some(2) && errors.contains(why), "{args:?} {errors}");
    }
}

/// Builds a profile with a labelled stack of this cost, and an unlabelled stack like those of runtime threads.
fn labelled(cost: i64, labels: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = ProfileBuilder::new();
    builder.sample_type("cpu", "nanoseconds");
    let [work, collect] = ["work", "collect"].map(|name| {
        let function = builder.function(name, "main.c", 1);
        let line = builder.line(function, 1);
        builder.location(None, 0, &[line]).unwrap()
    });
    let labels: Vec<Label> = labels
        .iter()
        .map(|(key, value)| Label {
            key: builder.string(key.as_bytes()),
            value: LabelValue::Text(builder.string(value.as_bytes())),
        })
        .collect();
    builder.sample(&[work], &[cost], &labels).unwrap();
    builder.sample(&[collect], &[1], &[]).unwrap();
    builder.build("made").unwrap().to_bytes(&WriteOptions::default()).unwrap()
}

#[test]
fn labels_can_be_used_as_keys() {
    let dir = trees("labels");
    let files = [("a", "v1", "5.10", 10), ("b", "v2", "5.10", 20), ("c", "v1", "6.1", 30), ("d", "v2", "6.1", 30)];
    for (name, version, kernel, cost) in files {
        let labels = [("version", version), ("kernel", kernel)];
        std::fs::write(dir.join(format!("main/api-{name}.pb.gz")), labelled(cost, &labels)).unwrap();
    }
    let keys = "service={1},version={version},on=Linux {kernel}";
    let run_with_keys = |pattern: &str, keys: &str| {
        let args = ["batch", pattern, "--group", keys, "--base", "version=v1", "--new", "version=v2"];
        pprofdiff(&dir, &[&args[..], &["--format", "jsonl", "--focus", "work"]].concat())
    };
    let out = run_with_keys("main/*-*.pb.gz", keys);
    let lines = String::from_utf8_lossy(&out.stdout).into_owned();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let deltas: Vec<_> =
        lines.iter().map(|pair| (pair["pair"].clone(), pair["rows"][0]["flat_delta"].clone())).collect();
    assert_eq!(deltas, [("api/Linux 5.10".into(), 10.into()), ("api/Linux 6.1".into(), 0.into())], "{lines:?} {out:?}");

    let refused = |name: &str, labels: &[(&str, &str)], why: &str| {
        std::fs::write(dir.join("main/api-x.pb.gz"), labelled(1, labels)).unwrap();
        let out = run_with_keys("main/*-*.pb.gz", keys);
        let errors = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(
            out.status.code() == Some(2) && errors.contains("api-x.pb.gz") && errors.contains(why),
            "{name}: {errors}"
        );
    };
    refused("none", &[("kernel", "6.1")], "no sample has the label version, which is used as a key");
    let two = [("version", "v1"), ("version", "v2"), ("kernel", "6.1")];
    refused("two", &two, "its samples have version=v1 and version=v2");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn files_of_a_side_are_runs_or_are_summed() {
    let dir = trees("sum");
    let copies =
        [("main/1.pb.gz", "base"), ("main/2.pb.gz", "new"), ("branch/1.pb.gz", "new"), ("branch/2.pb.gz", "new")];
    for (path, side) in copies {
        std::fs::copy(corpus(&format!("story-cpu.{side}.pb.gz")), dir.join(path)).unwrap();
    }
    let rows = |args: &[&str]| -> Value {
        let out = pprofdiff(&dir, &[args, &["-n", "5"]].concat());
        assert!(out.status.success(), "{out:?}");
        let first_rows = serde_json::from_slice::<Value>(&out.stdout).unwrap()["rows"].clone();
        assert_eq!(first_rows.as_array().unwrap().len(), 5);
        first_rows
    };
    let group = ["batch", "*/*.pb.gz", "--format", "jsonl", "--group", "side={1}"];
    let of_group = [&group[..], &["--base", "side=main", "--new", "side=branch"]].concat();
    let sides =
        ["--format", "json", "--base", "main/1.pb.gz", "main/2.pb.gz", "--new", "branch/1.pb.gz", "branch/2.pb.gz"];
    let added = rows(&[&of_group[..], &["--sum"]].concat());
    assert_eq!(added, rows(&[&sides[..], &["--sum"]].concat()));
    assert_ne!(added, rows(&of_group));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn inputs_without_pairs_are_one_line_errors() {
    let dir = trees("usage");
    for args in [&["main", "nowhere"][..], &["x*", "y*"], &["main/*", "branch/?"], &["missing.csv"], &["a[", "b["], &[]]
    {
        let out = pprofdiff(&dir, &[&["batch"], args].concat());
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
        assert!(out.stdout.is_empty());
    }
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn the_output_name_selects_the_format() {
    let dir = trees("chosen");
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    for name in ["out.csv", "out.jsonl", "out.txt"] {
        pprofdiff(&dir, &["batch", "main", "branch", "-o", name]);
    }
    assert!(read("out.csv").starts_with("pair,error,name,file,"));
    assert!(read("out.jsonl").lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    assert!(read("out.txt").contains("api/cpu.pb.gz  cpu "));
    for format in ["svg", "markdown"] {
        let out = pprofdiff(&dir, &["batch", "main", "branch", "--format", format]);
        let error = String::from_utf8(out.stderr).unwrap();
        assert!(
            error.contains(&format!("can't be written as {format}; supported formats: text, jsonl, csv")),
            "{error}"
        );
        assert_eq!(out.status.code(), Some(2));
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

/// Reading a pipe that a directory search found would block forever.
#[cfg(unix)]
#[test]
fn pipes_and_devices_found_by_a_search_are_errors() {
    let dir = trees("pipes");
    let pipe = |path: &str| {
        std::fs::create_dir_all(dir.join(path).parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(dir.join(path)).status().unwrap().success());
    };
    ["main/p/cpu.pb.gz", "branch/p/cpu.pb.gz", "main/q/cpu.pb.gz"].into_iter().for_each(pipe);
    std::fs::create_dir_all(dir.join("branch/q")).unwrap();
    std::fs::copy(dir.join("branch/db/cpu.pb.gz"), dir.join("branch/q/cpu.pb.gz")).unwrap();
    let services =
        [("api", false), ("bad", true), ("base", true), ("db", false), ("new", true), ("p", true), ("q", true)];
    let files = services.map(|(name, bad)| (format!("{name}/cpu.pb.gz"), bad));
    assert_eq!(outcomes(&dir, &["main", "branch"]), files);
    let names = services.map(|(name, bad)| (name.to_owned(), bad));
    assert_eq!(outcomes(&dir, &["main/*/cpu.pb.gz", "branch/*/cpu.pb.gz"]), names);
    let stderr_of = |args: &[&str]| String::from_utf8(pprofdiff(&dir, args).stderr).unwrap();
    let why = "main/q/cpu.pb.gz: a pipe or device, which is read only if its path is given directly";
    assert!(stderr_of(&["batch", "main", "branch"]).contains(why));
    // A series reports it as a failed build.
    let series = stderr_of(&["series", "main/[dqp]*/cpu.pb.gz"]);
    assert!(series.contains(why) && series.contains("2 of 3 builds failed"), "{series}");
    // A pipe that is named explicitly is read, which waits for a writer.
    for args in [
        &["batch", "main/q/cpu.pb.gz", "branch/db/cpu.pb.gz"][..],
        &["series", "main/q/cpu.pb.gz", "branch/db/cpu.pb.gz"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
        let run = command.current_dir(&dir).stdin(Stdio::null()).stdout(Stdio::piped()).args(args).spawn().unwrap();
        std::fs::write(dir.join("main/q/cpu.pb.gz"), std::fs::read(dir.join("main/db/cpu.pb.gz")).unwrap()).unwrap();
        assert!(run.wait_with_output().unwrap().status.success(), "{args:?}");
    }
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn an_error_names_the_pair_with_its_keys_and_files() {
    let dir = trees("named");
    let stderr_of = |args: &[&str]| String::from_utf8(pprofdiff(&dir, &[&["batch"], args].concat()).stderr).unwrap();
    let files = "(main/bad/cpu.pb.gz -> branch/bad/cpu.pb.gz): main/bad/cpu.pb.gz: ";
    let folders = stderr_of(&["main", "branch"]);
    assert!(folders.contains(&format!("pair bad/cpu.pb.gz {files}")), "{folders}");
    assert!(
        folders.contains("pair new/cpu.pb.gz: branch/new/cpu.pb.gz: there is no such file on the base"),
        "{folders}"
    );
    let patterns = stderr_of(&["main/*/cpu.pb.gz", "branch/*/cpu.pb.gz"]);
    assert!(patterns.contains(&format!("pair bad {files}")), "{patterns}");
    let group = ["*/*/cpu.pb.gz", "--group", "build={1},service={2}", "--base", "build=main", "--new", "build=branch"];
    let keys = "pair service=bad build_base=main build_new=branch";
    for rank in [&[][..], &["--rank"]] {
        let groups = stderr_of(&[&group[..], rank].concat());
        assert!(groups.contains(&format!("{keys} {files}")), "{groups}");
    }
    assert!(stderr_of(&["m.csv"]).contains("pair none (missing -> missing): missing: "));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn files_without_a_partner_have_their_own_exit_code() {
    let dir = trees("partners");
    let outcome = |args: &[&str]| {
        let out = pprofdiff(&dir, &[&["batch"], args].concat());
        let stderr = String::from_utf8(out.stderr).unwrap();
        (out.status.code().unwrap(), stderr.lines().last().unwrap_or_default().replace("pprofdiff: ", ""))
    };
    let [main, branch] = ["main/*/cpu.pb.gz", "branch/*/cpu.pb.gz"];
    let group = ["*/*/cpu.pb.gz", "--group", "build={1},service={2}", "--base", "build=main", "--new", "build=branch"];
    for args in [&[main, branch][..], &["main", "branch"], &group] {
        assert_eq!(outcome(args), (2, "1 of 5 pairs failed, and 2 lack a partner on the other side".to_owned()));
    }
    for side in ["main", "branch"] {
        std::fs::remove_dir_all(dir.join(side).join("bad")).unwrap();
    }
    let alone = "of 4 pairs, 2 lack a partner on the other side; all others were compared";
    for args in [&[main, branch][..], &["main", "branch"], &group] {
        assert_eq!(outcome(args), (1, alone.to_owned()), "{args:?}");
    }
    let rank = outcome(&["main/[an]*/cpu.pb.gz", "branch/[an]*/cpu.pb.gz", "--rank"]);
    assert_eq!(rank, (1, alone.replace("4 pairs, 2 lack", "2 pairs, 1 lacks")));
    // Without any pair, the pattern or folder is probably wrong.
    let (code, line) = outcome(&["main/base", "branch/nothing-alike/"]);
    assert_eq!(code, 2, "{line}");
    let (code, line) = outcome(&["main/base*/cpu.pb.gz", "branch/new*/cpu.pb.gz"]);
    assert_eq!(code, 2, "{line}");
    assert_eq!(outcome(&["main/[ad]*/cpu.pb.gz", "branch/[ad]*/cpu.pb.gz"]), (0, String::new()));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn the_keys_of_a_pair_are_columns_of_csv_and_jsonl() {
    let dir = trees("columns");
    let output = |args: &[&str]| {
        let out = pprofdiff(&dir, &[&["batch"], args].concat());
        String::from_utf8(out.stdout).unwrap()
    };
    let patterns = ["main/*/cpu.*.gz", "branch/*/cpu.*.gz", "-n", "1", "--format"];
    let csv = output(&[&patterns[..], &["csv"]].concat());
    assert!(csv.starts_with("pair,key_1,key_2,error,name,file,"), "{csv}");
    assert!(csv.contains("\napi/pb,api,pb,,indexbytebody,"), "{csv}");
    let lines = output(&[&patterns[..], &["jsonl"]].concat());
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Failed pairs have their keys as well.
    assert!(
        lines.iter().all(|line| line["keys"]["key_2"] == "pb"
            && line["pair"] == format!("{}/pb", line["keys"]["key_1"].as_str().unwrap())),
        "{lines:?}"
    );
    // A key keeps its name unless a column of the table has it.
    let keys = "build={1},name={2},kind={3}";
    let group =
        ["*/*/cpu.*.gz", "--group", keys, "--base", "build=@previous", "--new", "build=@latest", "-n", "1", "--format"];
    let csv = output(&[&group[..], &["csv"]].concat());
    assert!(
        csv.starts_with("pair,key_name,kind,build_base,build_new,error,name,file,")
            && csv.contains("\napi/pb,api,pb,branch,main,,indexbytebody,"),
        "{csv}"
    );
    // A ranking has the keys, too.
    let ranked: Vec<&str> = group[..group.len() - 3].iter().copied().chain(["--rank", "--format"]).collect();
    let csv = output(&[&ranked[..], &["csv"]].concat());
    assert!(csv.starts_with("pair,build_base,build_new,kind,name,error,function,"), "{csv}");
    let lines = output(&[&ranked[..], &["jsonl"]].concat());
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["kind"], &lines[0]["keys"]["build_new"]), (&"pairs".into(), &"main".into()), "{lines:?}");
    assert_eq!((lines[0]["pair"].clone(), lines.len()), (lines[0]["rows"][0]["pair"].clone(), 5));
    // The sums of all pairs belong to no line.
    assert!(lines[0]["unit"].is_string() && lines[0].get("total_base").is_none(), "{lines:?}");
    assert!(lines[4]["error"].is_string());
    let lines = output(&[&group[..], &["jsonl"]].concat());
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    let expected = serde_json::json!({"name": "api", "kind": "pb", "build_base": "branch", "build_new": "main"});
    assert_eq!(first["keys"], expected, "{first}");
    std::fs::remove_dir_all(dir).unwrap();
}

/// Builds a profile in which each of these sample types has the value of one stack.
fn typed(sample_types: &[&str], default: &str, values: &[i64]) -> Vec<u8> {
    let mut builder = ProfileBuilder::new();
    sample_types.iter().for_each(|name| {
        builder.sample_type(name, "count");
    });
    let default = builder.string(default);
    builder.header().default_sample_type = default;
    let function = builder.function("work", "main.c", 1);
    let line = builder.line(function, 1);
    let location = builder.location(None, 0, &[line]).unwrap();
    builder.sample(&[location], values, &[]).unwrap();
    builder.build("made").unwrap().to_bytes(&WriteOptions::default()).unwrap()
}

#[test]
fn a_ranking_has_the_default_sample_type_of_most_pairs() {
    let dir = std::env::temp_dir().join(format!("pprofdiff-majority-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    // The first pair has another type, and the second has the type of most pairs, but not as its default.
    let pairs = [
        ("a", vec!["lock"], "lock"),
        ("b", vec!["alloc", "inuse"], "alloc"),
        ("c", vec!["alloc", "inuse"], "inuse"),
        ("d", vec!["inuse"], "inuse"),
        ("e", vec!["inuse"], "inuse"),
    ];
    for (side, more) in [("main", 0), ("branch", 7)] {
        std::fs::create_dir_all(dir.join(side)).unwrap();
        for (name, types, default) in &pairs {
            let values: Vec<i64> = (1..=types.len() as i64).map(|i| 100 * i + more).collect();
            std::fs::write(dir.join(side).join(format!("{name}.pb.gz")), typed(types, default, &values)).unwrap();
        }
    }
    let out = pprofdiff(&dir, &["batch", "main", "branch", "--rank", "--format", "json"]);
    let json: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&json["sample_type"], json["pairs"].as_array().unwrap().len()), (&"inuse".into(), 4), "{json}");
    // 200 of each pair with two types, and 100 of each other pair.
    assert_eq!(json["total_base"], 2 * 200 + 2 * 100);
    assert_eq!(json["failed"][0]["pair"], "a.pb.gz");
    let choice = "the sample type is inuse, the default of 3 of 5 pairs; 1 pair lacks it and is not ranked; to rank them, \
                  pass --sample-type lock";
    assert!(json["warnings"][0].as_str().unwrap().starts_with(choice), "{json}");
    assert_eq!(out.status.code(), Some(2));
    for format in ["text", "markdown", "html"] {
        let out = pprofdiff(&dir, &["batch", "main", "branch", "--rank", "--format", format]);
        let text = String::from_utf8(out.stdout).unwrap();
        assert!(text.contains(choice), "{format}: {text}");
        assert!(text.contains("it lacks the sample type inuse; it has lock"), "{format}: {text}");
    }
    // A given type is not a choice.
    let out = pprofdiff(&dir, &["batch", "main", "branch", "--rank", "--format", "json", "--sample-type", "alloc"]);
    let json: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&json["sample_type"], &json["warnings"]), (&"alloc".into(), &Value::Array(Vec::new())), "{json}");
    std::fs::remove_dir_all(dir).unwrap();
}
