//! Tests of the command `explain`: text, JSON, Markdown, exit codes, and options.

use std::path::Path;
use std::process::{Command, Stdio};

use pprofdiff_explain::Verdict;
use serde_json::{Value, json};

use crate::explain::{corpus, explain, pairs};
use crate::synthetic::{profile, stacks};

#[test]
fn explanations_are_a_few_lines_of_text_or_json() {
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
        let out = command.current_dir(corpus("")).stdin(Stdio::null()).arg("explain").args(args).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (out.status.code().unwrap(), text(&out.stdout), text(&out.stderr))
    };
    let mut n_causes = 0;
    for pair in pairs() {
        let (base, new) = (format!("{pair}.base.pb.gz"), format!("{pair}.new.pb.gz"));
        let (code, text, error) = run(&[&base, &new]);
        assert_eq!((code, error.as_str()), (0, ""), "{pair}");
        // A heap has one paragraph for memory in use and one for allocations.
        for paragraph in text.split("\n\n") {
            assert!((3..=15).contains(&paragraph.lines().count()), "{pair}:\n{text}");
        }
        assert!(text.contains(" would be detected."), "{pair}:\n{text}");
        let (_, json, _) = run(&[&base, &new, "--format", "json"]);
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&json["schema"], &json["kind"]), (&"pprofdiff/1".into(), &"explain".into()));
        // The parts of a cause's sentence form its line of text.
        for (i, cause) in json["causes"].as_array().unwrap().iter().take(4).enumerate() {
            let pieces =
                cause["sentence"].as_array().unwrap().iter().flat_map(|piece| piece.as_object().unwrap().values());
            let sentence: String = pieces.map(|piece| piece.as_str().unwrap()).collect();
            assert!(text.contains(&format!("\n{}. {sentence}.\n", i + 1)), "{pair}: {sentence}\n{text}");
            n_causes += 1;
        }
        let (code, ..) = run(&[&base, &new, "--exit-code"]);
        let also = json["also"].as_array().into_iter().flatten();
        let verdicts: Vec<&str> = [&json].into_iter().chain(also).map(|e| e["verdict"].as_str().unwrap()).collect();
        let expected = match () {
            () if verdicts.contains(&"change") => 1,
            () if verdicts.contains(&"inconclusive") => 3,
            () => 0,
        };
        assert_eq!(code, expected, "{pair}");
    }
    assert!(n_causes > 5, "only {n_causes} causes");
    let (_, text, _) = run(&["story-cpu.base.pb.gz", "story-cpu.new.pb.gz"]);
    assert!(
        text.contains("1. logmill/names.compare (names.go:19) now calls logmill/names.canonical: +1.39s (+73%)."),
        "{text}"
    );
    let (_, text, _) = run(&["go-heap-ops.base.pb.gz", "go-heap-ops.new.pb.gz"]);
    assert!(text.contains("3.00 times as much work: its number of operations differs"), "{text}");
    let (_, text, _) = run(&["go-heap-ops.base.pb.gz", "go-heap-ops.new.pb.gz", "--ops", "1000,3000"]);
    assert!(text.contains("3.00 times as many operations, as given"), "{text}");
    // The command in a cause shows that cause.
    let (_, json, _) = run(&["story-cpu.base.pb.gz", "story-cpu.new.pb.gz", "--format", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let command = json["causes"][0]["evidence"]["command"].as_str().unwrap();
    let words =
        ["pprofdiff peek '^logmill/names\\.canonical$' story-cpu.base.pb.gz story-cpu.new.pb.gz --sample-type cpu"];
    assert_eq!([command], words);
    assert_eq!(json["causes"][0]["place"], json!({"file": "logmill/names/names.go", "line": 19}));
    // The commands ignore garbage collection, which the causes do not contain, so both show the same costs.
    for (step, next) in [("1", "2"), ("2", "3")] {
        let [base, new] = [step, next].map(|step| format!("upgrades/loops{step}.1.cpu.pb.gz"));
        let (_, json, _) = run(&[&base, &new, "--format", "json"]);
        let json: Value = serde_json::from_str(&json).unwrap();
        let cause = &json["causes"][0];
        let ignore = cause["evidence"]["ignore"].as_str().unwrap();
        let pattern = cause["evidence"]["pattern"].as_str().unwrap();
        let (code, peek, _) = self::command(&["peek", pattern, &base, &new, "--ignore", ignore, "--format", "json"]);
        assert_eq!(code, 0, "{peek}");
        let peek: Value = serde_json::from_str(&peek).unwrap();
        let row = peek["rows"].as_array().unwrap().iter().find(|row| row["other"] == cause["callee"]).unwrap();
        let shown = ["base", "new"].map(|side| row[side].as_f64());
        assert_eq!(["base", "new"].map(|side| cause["evidence"][side]["value"].as_f64()), shown, "{ignore}");
    }
    // If one file is compared with itself by labels, the command contains the file twice and the label filters.
    let file = "go-labels-cpu.new.pb.gz";
    let labels = ["--base-tagfocus", "endpoint=/walk", "--new-tagfocus", "endpoint=/sum"];
    let (_, text, _) = run(&[&[file, file][..], &labels].concat());
    let command = format!("{file} {file} {} --sample-type cpu --ignore ", labels.join(" "));
    assert!(text.contains(&command), "{text}");
    let pieces = json!([
        {"name": "logmill/names.compare"}, {"text": " (names.go:19) now calls "}, {"name": "logmill/names.canonical"}, {"text": ": "},
        {"amount": "+1.39s"}, {"text": " (+73%)"},
    ]);
    assert_eq!(json["causes"][0]["sentence"], pieces);
    // The same holds for a written diff, which already has both sides and cannot be one side of another.
    let written = std::env::temp_dir().join(format!("pprofdiff-explain it's {}.pb", std::process::id()));
    let written = written.to_str().unwrap();
    let mut diff = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
    assert!(diff.current_dir(corpus("")).args(STORY).args(["-o", written]).status().unwrap().success());
    let (_, text, _) = run(&[written]);
    let command = text.lines().find_map(|l| l.trim().strip_prefix("pprofdiff ")).unwrap();
    let script = format!("{} {command}", env!("CARGO_BIN_EXE_pprofdiff"));
    let shown = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(shown.status.success() && shown.stdout.starts_with(b"base"), "{script}: {shown:?}");
    // The file has only the difference, so profiles of one side can't be added.
    for (option, files) in [("--noise", &STORY[..1]), ("--with", &STORY)] {
        let (code, _, error) = run(&[&[written, option][..], files].concat());
        assert!(code == 2 && error.contains(&format!("{option} needs the profiles of both sides")), "{error}");
    }
    std::fs::remove_file(written).unwrap();
    for bad in
        [&["a.pb.gz", "b.pb.gz", "--ops", "3"][..], &["a", "b", "--min-effect", "200%"], &["story-cpu.base.pb.gz"]]
    {
        assert_eq!(run(bad).0, 2, "{bad:?}");
    }
}

/// Runs the command in the folder of the corpus, and returns its exit code, output and errors.
fn command(args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
    let out = command.current_dir(corpus("")).stdin(Stdio::null()).args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (out.status.code().unwrap(), text(&out.stdout), text(&out.stderr))
}

const STORY: [&str; 2] = ["story-cpu.base.pb.gz", "story-cpu.new.pb.gz"];
const CAUSE: &str = "logmill/names.compare (names.go:19) now calls logmill/names.canonical: +1.39s (+73%)";

#[test]
fn noise_runs_can_be_given_as_a_pattern() {
    let folder = "faults/freight";
    let pair = ["base-1.cpu.pb.gz", "calls-1.cpu.pb.gz"].map(|f| format!("{folder}/{f}"));
    let pattern = format!("{folder}/equal-*.cpu.pb.gz");
    let (code, text, error) = command(&["explain", &pair[0], &pair[1], "--noise", &pattern]);
    assert_eq!((code, error.as_str()), (0, ""));
    assert!(text.contains("Noise is measured between 3 runs of equal builds. A frame with 10%"), "{text}");
    assert!(text.contains("main.plan (main.go:71) spends more in freight/tariff.Make"), "{text}");
    let one = format!("{folder}/equal-1.cpu.pb.gz");
    let (code, _, error) = command(&["explain", &pair[0], &pair[1], "--noise", &one]);
    assert_eq!(code, 2);
    assert!(error.contains("two or more runs of equal builds"), "{error}");
}

#[test]
fn configuration_names_the_users_own_runtime_functions() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("explain-config-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let config = |text: &str| {
        let path = dir.join("pprofdiff.toml");
        std::fs::write(&path, text).unwrap();
        command(&["explain", STORY[0], STORY[1], "--config", path.to_str().unwrap()])
    };
    assert!(config("[check]\nrules = ['total>+5%']\n").1.contains(CAUSE));
    // The cost of system functions is attributed to their callers.
    let (_, text, _) = config("[explain]\nsystem = ['^logmill/names\\.', '^(strings|unicode)\\b']\n");
    assert!(text.contains("1. logmill/headers.tableInsensitive"), "{text}");
    let (_, text, _) = config("[explain]\nbackground = ['canonical$']\n");
    assert!(!text.contains(CAUSE) && text.contains("GC, scheduling and locks changed by +1.37s"), "{text}");
    // Other commands with causes read the configuration of the working directory.
    let pair = STORY.map(|file| corpus(file).display().to_string());
    let stdout_in_dir = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
        let out = command.current_dir(&dir).stdin(Stdio::null()).args(args).output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    };
    config("[explain]\nsystem = ['^logmill/names\\.', '^(strings|unicode)\\b']\n");
    let first = "logmill/headers.tableInsensitive";
    let closed = stdout_in_dir(&[&pair[0], &pair[1], "-n", "1", "--explain"]);
    assert!(closed.lines().last().unwrap().starts_with(&format!("explain: {first}")), "{closed}");
    let checked = stdout_in_dir(&["check", &pair[0], &pair[1], "--fail-on", "cum:any>+20%"]);
    assert!(checked.contains(&format!("  why: {first}")), "{checked}");
    let page = stdout_in_dir(&[&pair[0], &pair[1], "--format", "html"]);
    assert!(page.contains(&format!("<code>{first}</code>")) && !page.contains(CAUSE), "no page, or another cause");
    for (wrong, message) in
        [("[explain]\nsystem = ['[']\n", "system is invalid"), ("[explain]\nsystems = []\n", "line 2")]
    {
        let (code, _, error) = config(wrong);
        assert!(code == 2 && error.contains("pprofdiff.toml: ") && error.contains(message), "{error}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_line_budget_keeps_the_most_important_lines() {
    let with_budget = |budget: &str| command(&["explain", STORY[0], STORY[1], "--budget", budget]).1;
    let whole = command(&["explain", STORY[0], STORY[1]]).1;
    assert_eq!(with_budget("1000"), whole);
    let (mut lines, mut n_cut) = (whole.lines().count(), 0);
    for budget in [300, 250, 200, 150, 120, 110] {
        let text = with_budget(&budget.to_string());
        assert!(text.lines().count() <= lines && pprofdiff_report::tokens(&text) <= budget, "{budget}: {text}");
        lines = text.lines().count();
        // The remaining lines keep their order, begin with the answer, and end with the number of the others.
        let (kept, left) = match text.trim_end().rsplit_once('\n') {
            Some((kept, left)) if left.ends_with(" more: set a larger --budget") => (kept, Some(left)),
            _ => (text.as_str(), None),
        };
        let mut all = whole.lines();
        assert!(kept.lines().all(|line| all.any(|l| l == line)), "{text}");
        assert!(text.contains(CAUSE), "{text}");
        if let Some(left) = left {
            let omitted: usize = left.split(' ').next().unwrap().parse().unwrap();
            assert_eq!(omitted + kept.lines().count(), whole.lines().count(), "{text}");
            n_cut += 1;
        }
    }
    assert!(n_cut > 3 && lines == 3, "{lines}");
    let (code, _, error) = command(&["explain", STORY[0], STORY[1], "--budget", "49"]);
    assert!(code == 2 && error.contains("must be a number of tokens, at least 50"), "{error}");
}

#[test]
fn explanations_are_written_as_markdown_and_tables() {
    let args = |format| ["explain", STORY[0], STORY[1], "--format", format];
    let (_, markdown, _) = command(&args("markdown"));
    assert!(
        markdown.starts_with("**cpu**: 1.90s → 2.93s\n\n1. `logmill/names.compare` (names.go:19) now calls"),
        "{markdown}"
    );
    let (_, csv, _) = command(&args("csv"));
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("function,caller,callee,label,kind,base,new,delta,factor,score"));
    let first = "logmill/names.canonical,logmill/names.compare,,,added,0,1390000000,1390000000,,";
    assert!(lines.next().is_some_and(|line| line.starts_with(first)), "{csv}");
    assert_eq!(lines.count(), 1);
    let (code, _, error) = command(&args("svg"));
    assert_eq!(code, 2);
    assert!(error.contains("explain can't be written as svg"), "{error}");
}

#[test]
fn names_and_units_of_a_profile_are_escaped_in_markdown() {
    let message = |cost: i64| {
        let mut all = vec![(vec!["main.main", "a|b`<img src=x>*", "f"], vec![cost, cost])];
        let names: Vec<String> = (0..30).map(|i| format!("f{i}")).collect();
        all.extend(names.iter().map(|name| (vec!["main.main", name], vec![9000, 9000])));
        profile(&stacks(&[("samples", "count"), ("<b>*x*", "<i>")], &all))
    };
    let e = explain(&[message(500)], &[message(15_000)]);
    assert_eq!(e.verdict, Verdict::Change);
    let format = pprofdiff_report::Registry::standard().format("markdown").unwrap();
    let mut out = Vec::new();
    let report = pprofdiff_report::Report::Explain(Box::new(e));
    format.write(&report, &mut out, pprofdiff_report::Style::default()).unwrap();
    let text = String::from_utf8(out).unwrap();
    // Text in code spans is shown literally.
    let outside: String = text.replace("\\`", "").split('`').step_by(2).collect();
    assert!(!outside.contains("<b>") && !outside.contains("<i>") && !outside.contains("<img"), "{text}");
    assert!(outside.contains("&lt;b&gt;\\*x\\*") && outside.contains("&lt;img src=x&gt;\\*"), "{text}");
}

#[test]
fn a_diff_ends_with_one_cause_and_a_failing_check_with_all() {
    let table = command(&[STORY[0], STORY[1], "-n", "3"]).1;
    // The line is not written to a pipe.
    assert!(!table.contains("explain:"), "{table}");
    let closed = command(&[STORY[0], STORY[1], "-n", "3", "--explain"]).1;
    assert_eq!(closed, format!("{table}\nexplain: {CAUSE} (and 1 more)\n"));
    // It uses the displayed sample type and granularity.
    let heap = ["go-heap-ops.base.pb.gz", "go-heap-ops.new.pb.gz", "--explain", "--granularity", "lines"];
    let text = command(&[&heap[..], &["--sample-type", "alloc_space", "--normalize", "total"]].concat()).1;
    assert!(
        text.trim_end()
            .lines()
            .last()
            .unwrap()
            .starts_with("explain: main.splitFields (heapops.go:61) now allocates in"),
        "{text}"
    );
    for format in ["json", "csv"] {
        assert_eq!(command(&[STORY[0], STORY[1], "--explain", "--format", format]).0, 2);
    }
    let check =
        |limit: &str| command(&["check", STORY[0], STORY[1], "--fail-on", limit, "--fail-on", "cpu:flat:any>+9%"]);
    let (code, text, _) = check("total>+10%");
    assert_eq!(code, 1);
    assert_eq!(text.matches(&format!("  why: {CAUSE}\n")).count(), 1, "{text}");
    let passed = command(&["check", STORY[0], STORY[1], "--fail-on", "total>+100%"]).1;
    assert!(!passed.contains("why:"), "{passed}");
    let json = command(&["check", STORY[0], STORY[1], "--fail-on", "cum:any>+10%", "--format", "json"]).1;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["rules"][0]["why"]["causes"][0]["function"], "logmill/names.canonical");
}
