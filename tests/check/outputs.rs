//! Tests of the outputs of a check: text, Markdown, annotations, JUnit, SARIF, and reports in other formats.

use std::process::{Command, Stdio};

use prost::Message;
use serde_json::Value;

use super::{CPU, Dir, corpus, profile, sampled, second, with_lines};

#[test]
fn all_outputs_have_the_same_findings() {
    let d = Dir::new("outputs");
    d.write("base", second(100));
    d.write("more", second(150));
    let args = ["base", "more", "--fail-on", "flat:any>+10%", "--fail-on", "total>+5%"];
    let with = |format: &str| {
        let out = d.run(&[&args[..], &["--format", format]].concat());
        assert_eq!(out.status.code(), Some(1), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let (text, markdown, github) = (with("text"), with("markdown"), with("github"));
    for (format, report) in [("text", &text), ("markdown", &markdown), ("github", &github)] {
        for word in ["enc/a", "100ms", "150ms", "+50ms"] {
            assert!(report.contains(word), "{format} lacks {word}: {report}");
        }
    }
    assert!(
        github.starts_with("::error title=fail flat%3Aany>+10%25::enc/a: 100ms -> 150ms  +50ms  +50%25  +"),
        "{github}"
    );
    let (_, json) = d.json(&args);
    assert_eq!((&json["schema"], &json["kind"]), (&"pprofdiff/1".into(), &"check".into()));
    assert_eq!((&json["verdict"], &json["exit_code"]), (&"fail".into(), &1.into()));
    assert_eq!((&json["rules"][0]["compared"], &json["rules"][0]["below_floor"]), (&2.into(), &0.into()));
    let out = d.run(&[&args[..], &["--report", "r.json", "--report", "r.md", "--report", "r.txt"]].concat());
    assert_eq!((out.status.code(), String::from_utf8(out.stdout).unwrap()), (Some(1), text.clone()));
    let read = |name: &str| std::fs::read_to_string(d.0.join(name)).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&read("r.json")).unwrap(), json);
    assert_eq!((read("r.md"), read("r.txt")), (markdown, text));
    // A reader that closes the pipe early does not change the verdict.
    let mut child = Command::new(env!("CARGO_BIN_EXE_pprofdiff"))
        .current_dir(&d.0)
        .args(["check", "--strict"])
        .args(args)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn markdown_fits_into_a_comment_and_names_are_escaped() {
    let d = Dir::new("long");
    let names: Vec<String> =
        (0..3000).map(|i| format!("main;pkg{i}.{}|`<b>\n::error::", "x".repeat(i % 400))).collect();
    let build = |v: i64| {
        let value = [v];
        profile(CPU, &names.iter().map(|n| (n.as_str(), &value[..])).collect::<Vec<_>>())
    };
    d.write("base", build(10));
    d.write("new", build(20));
    let rules: Vec<String> = (0..100).map(|i| format!("flat:any>+{i}%")).collect();
    let mut args = vec!["base", "new", "--floor", "0"];
    rules.iter().for_each(|r| args.extend(["--fail-on", r]));
    let run = |format: &str| {
        let out = d.run(&[&args[..], &["--format", format]].concat());
        assert_eq!(out.status.code(), Some(1), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let markdown = run("markdown");
    assert!(markdown.chars().count() < 65_000, "{}", markdown.chars().count());
    assert!(markdown.contains("2995 more fail") && markdown.contains(" of 100 rules shown"), "a cut is not said");
    assert!(!markdown.contains("<b>"));
    let github = run("github");
    assert!(github.lines().all(|l| l.starts_with("::error title=") || l.starts_with("fail")), "a name breaks a line");
    assert_eq!(github.lines().filter(|l| l.starts_with("::error")).count(), 10);
    assert!(run("text").lines().all(|l| !l.starts_with("::")));
}

#[test]
fn a_check_applies_to_the_selected_samples() {
    let d = Dir::new("selected");
    d.write("base", second(100));
    d.write("more", second(150));
    let rule = ["base", "more", "--fail-on", "cum:any>+10%"];
    let (code, all) = d.json(&rule);
    assert_eq!(code, 1, "{all}");
    let (code, without) = d.json(&[&rule[..], &["--ignore", "enc/a"]].concat());
    assert_eq!((code, &without["verdict"]), (0, &"pass".into()), "{without}");
}

/// A page, a picture or a profile shows the sides as the check compared them.
#[test]
fn reports_without_findings_show_the_compared_sides() {
    let d = Dir::new("compared");
    d.write("base", second(100));
    d.write("more", second(150));
    let reports = ["--report", "r.html", "--report", "r.svg", "--report", "r.pb.gz", "--report", "r.csv"];
    let args = ["base", "more", "--fail-on", "total>+5%", "--normalize", "2", "--ignore", "enc/a"];
    let (code, json) = d.json(&[&args[..], &reports].concat());
    assert_eq!((code, json["kind"].as_str()), (1, Some("check")));
    let read = |name: &str| std::fs::read_to_string(d.0.join(name)).unwrap();
    assert!(read("r.html").starts_with("<!doctype html>") && read("r.svg").starts_with("<svg"));
    // The table has the same sums, filtered and scaled.
    let command = || Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
    let stdout_of = |args: &[&str]| command().current_dir(&d.0).args(args).output().unwrap().stdout;
    let expected = stdout_of(&["base", "more", "--normalize", "2", "--ignore", "enc/a", "--format", "csv"]);
    assert_eq!(read("r.csv").into_bytes(), expected);
    let written = stdout_of(&["r.pb.gz", "--format", "csv", "--sort", "flat"]);
    let names = |csv: &[u8]| String::from_utf8(csv.to_vec()).unwrap().lines().count();
    assert_eq!(names(&written), names(&expected));
    assert!(!String::from_utf8(expected).unwrap().contains("enc/a"));
}

#[test]
fn causes_can_be_added_for_any_verdict() {
    let d = Dir::new("explain");
    let (base, new) = (corpus("story-cpu.base.pb.gz"), corpus("story-cpu.new.pb.gz"));
    let sides = [base.to_str().unwrap(), new.to_str().unwrap()];
    let rules =
        ["--fail-on", "total>+500%", "--fail-on", "flat:regex=canonical>+500%", "--fail-on", "samples:total>+500%"];
    let (code, json) = d.json(&[&sides[..], &rules[..2], &["--explain"]].concat());
    assert_eq!(code, 0);
    assert_eq!(json["rules"][0]["why"]["verdict"], "change", "{json}");
    assert!(d.json(&[&sides[..], &rules[..2]].concat()).1["rules"][0].get("why").is_none());
    // The causes are attached to failing rules, otherwise to the first rule of the sample type.
    let (_, json) = d.json(&[&sides[..], &rules, &["--explain"]].concat());
    let has_why: Vec<bool> = json["rules"].as_array().unwrap().iter().map(|rule| rule.get("why").is_some()).collect();
    assert_eq!(has_why, [false, true, true]);
    let out = d.run(&[&sides[..], &rules[..2], &["--explain", "--format", "markdown"]].concat());
    let markdown = String::from_utf8(out.stdout).unwrap();
    assert!(markdown.contains("Why:\n- `logmill/names.compare` (names.go:19) now calls"), "{markdown}");
}

/// A decrease, or a growth in other stacks, does not explain a finding.
#[test]
fn causes_explain_the_finding_of_their_rule() {
    let d = Dir::new("why");
    let write = |name: &str, a: i64, b: i64, c: i64| {
        let others: String = (0..20).map(|i| format!("main;other{i} 100\n")).collect();
        d.write(name, format!("{others}main;x;a {a}\nmain;y;b {b}\nmain;z;c {c}\n"));
    };
    write("base", 200, 900, 200);
    write("new", 2_000, 100, 1_200);
    let rules = ["total>+1%", "flat:each=^[ab]$>-95%", "cum:regex=^z$>+5%", "cum:regex=^y$>-95%", "flat:any>+10%"];
    let rules: Vec<&str> = rules.iter().flat_map(|rule| ["--fail-on", rule]).collect();
    let (code, json) = d.json(&[&["base", "new"], &rules[..]].concat());
    assert_eq!(code, 1);
    let whys = json["rules"].as_array().unwrap().iter().map(|rule| {
        let causes = rule["why"]["causes"].as_array().map_or(&[][..], Vec::as_slice);
        let names: Vec<&str> = causes.iter().map(|cause| cause["function"].as_str().unwrap()).collect();
        names.join(" ")
    });
    assert_eq!(whys.collect::<Vec<_>>(), ["a c", "a", "c", "", "a c"], "{json}");
    // Text for humans shows each cause once.
    let out = d.run(&[&["base", "new"], &rules[..]].concat());
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(text.lines().filter(|line| line.starts_with("  why: ")).count(), 2, "{text}");
}

/// A rule on any frame finds all frames on the path to the growth, and all frames below it.
#[test]
fn text_shows_only_the_outermost_findings() {
    let d = Dir::new("within");
    let write = |name: &str, grown: i64| {
        // Twelve handlers below one function, seven independent functions, and one that does not change. A frame above
        // these is not part of another finding.
        let below = (0..12).map(|i| format!("main;serve;handle;h{i} {}\n", grown * (i + 1)));
        let alone = (0..7).map(|i| format!("main;only{i} {}\n", grown * (100 + i)));
        let all = below.chain(alone).chain(["main;still 100000\n".to_owned()]).collect::<String>();
        d.write(name, all);
    };
    write("base", 10);
    write("new", 20);
    let rule = ["base", "new", "--fail-on", "cum:any>+50%", "--floor", "0"];
    let (_, json) = d.json(&rule);
    let findings = json["rules"][0]["findings"].as_array().unwrap();
    let failed = |within: Value| findings.iter().filter(|f| f["within"] == within).count();
    // serve and handle have the same cost. The inner one represents both.
    assert_eq!((findings.len(), failed(Value::Null), failed("handle".into())), (21, 8, 13), "{json}");
    let text = String::from_utf8(d.run(&rule).stdout).unwrap();
    let names: Vec<&str> =
        text.lines().filter(|l| l.starts_with("  fail")).map(|l| l.rsplit("  ").next().unwrap()).collect();
    assert_eq!(names, ["only6", "only5", "only4", "only3", "only2"], "{text}");
    assert!(text.contains("\n  16 more fail\n"), "{text}");
    let text = String::from_utf8(d.run(&[&rule[..], &["--ignore", "only"]].concat()).stdout).unwrap();
    assert!(text.contains("  handle\n  13 more fail, all in stacks of handle\n"), "{text}");
    let out = d.run(&[&rule[..], &["--format", "markdown"]].concat());
    assert!(String::from_utf8(out.stdout).unwrap().contains("\n16 more fail\n"));
}

/// A finding that is shown one by one, although it lies within another finding, is not counted again.
#[test]
fn the_number_of_findings_within_others_is_at_most_the_number_of_further_findings() {
    let d = Dir::new("counts");
    let sides = [corpus("story-cpu.base.pb.gz"), corpus("story-cpu.new.pb.gz")];
    let sides = sides.each_ref().map(|side| side.to_str().unwrap());
    let out = d.run_with_chance(&[&sides[..], &["--fail-on", "cum:any>+5%"]].concat());
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("\n  7 more fail, all in stacks of these\n"), "{text}");
    let numbers = |line: &str| -> Vec<usize> { line.split(' ').filter_map(|word| word.parse().ok()).collect() };
    for line in text.lines().filter(|line| line.contains(" of them in stacks of ")) {
        let numbers = numbers(line);
        assert!(numbers[1] <= numbers[0], "{text}");
    }
}

/// A small budget keeps the verdict and the failed rule.
#[test]
fn the_verdict_and_the_failed_rule_come_first_within_a_budget() {
    let d = Dir::new("budget");
    let sides = [corpus("story-cpu.base.pb.gz"), corpus("story-cpu.new.pb.gz")];
    let sides = sides.each_ref().map(|side| side.to_str().unwrap());
    let rules = ["flat:regex=no_such_frame>+5%", "flat:regex=compare>+5%", "cum:any>+5%", "total>+300%"];
    let rules: Vec<&str> = rules.iter().flat_map(|rule| ["--fail-on", rule]).collect();
    for (format, verdict, rule) in [
        ("text", "fail: cum:any>+5%\n", "fail: cum:any>+5%\n"),
        ("markdown", "### pprofdiff: fail: a limit is exceeded", "**❌ fail** `cum:any>+5%` (cpu, "),
    ] {
        for budget in ["50", "60", "100", "200", "400"] {
            let out = d.run_with_chance(&[&sides[..], &rules, &["--format", format, "--budget", budget]].concat());
            let text = String::from_utf8(out.stdout).unwrap();
            assert!(text.starts_with(verdict), "{budget}: {text}");
            let is_long = format == "markdown" && budget != "400";
            assert!(is_long || text.contains(rule), "{budget}: {text}");
        }
    }
}

/// Code scanning and annotations need paths in the repository.
#[test]
fn source_files_below_the_working_directory_have_relative_paths() {
    let d = Dir::new("absolute");
    let folder = d.0.canonicalize().unwrap();
    let file = folder.join("src/app.go").display().to_string();
    let build = |ms: i64| {
        let calls: &[(&str, i64)] = if ms > 0 { &[("main", 5), ("work", 12), ("slow", 30)] } else { &[("main", 7)] };
        let others: &[(&str, i64)] = &[("main", 5), ("work", 11), ("fast", 20)];
        let message = with_lines(&[(others, 2000), (calls, ms.max(1)), (&[("main", 6), ("other", 40)], 500)]);
        let mut profile = pprofdiff::proto::Profile::decode(&message[..]).unwrap();
        let is_file = |text: &&mut Vec<u8>| text.as_slice() == b"app.go";
        profile.string_table.iter_mut().filter(is_file).for_each(|text| *text = file.clone().into_bytes());
        profile.encode_to_vec()
    };
    d.write("base", build(0));
    d.write("new", build(1200));
    for (rule, place) in [("flat:any>+5%", "file=src/app.go,line="), ("total>+5%", "file=src/app.go,line=")] {
        let run = |format: &str| {
            let out = d.run(&["base", "new", "--fail-on", rule, "--format", format]);
            String::from_utf8(out.stdout).unwrap()
        };
        let github = run("github");
        assert!(github.starts_with(&format!("::error {place}")), "{github}");
        let sarif = run("sarif");
        assert!(sarif.contains("\"uri\": \"src/app.go\""), "{sarif}");
    }
    let out = d.run(&["base", "new", "--fail-on", "flat:any>+5%", "--format", "json"]);
    assert!(!String::from_utf8(out.stdout).unwrap().contains(&file));
}

/// GitHub shows at most ten warnings per step, so findings within chance share a notice.
#[test]
fn inconclusive_findings_are_one_warning_per_rule_and_one_notice() {
    let d = Dir::new("notices");
    let github = |base: &str, new: &str, rule: &str| {
        let sides = [corpus(base), corpus(new)];
        let sides = sides.each_ref().map(|side| side.to_str().unwrap());
        let out = d.run_with_chance(&[&sides[..], &["--fail-on", rule, "--format", "github"]].concat());
        assert_eq!(out.status.code(), Some(3));
        String::from_utf8(out.stdout).unwrap()
    };
    let commands = |text: &str| -> Vec<String> {
        text.lines().filter_map(|line| Some(line.strip_prefix("::")?.split(' ').next()?.to_owned())).collect()
    };
    let likely = github("go-labels-cpu.base.pb.gz", "go-labels-cpu.new.pb.gz", "cum:any>+5%");
    assert_eq!(commands(&likely), ["warning", "notice"], "{likely}");
    let [base, new] = ["base", "equal"].map(|build| format!("faults/freight/{build}-1.cpu.pb.gz"));
    let unlikely = github(&base, &new, "cum:any>+5%");
    assert_eq!(commands(&unlikely), ["notice"], "{unlikely}");
}

/// GitHub shows an annotation next to the line that it names.
#[test]
fn annotations_have_a_place_and_a_reason() {
    let d = Dir::new("annotated");
    let sides = [corpus("story-cpu.base.pb.gz"), corpus("story-cpu.new.pb.gz")];
    let sides = sides.each_ref().map(|side| side.to_str().unwrap());
    let out = d.run(&[&sides[..], &["--fail-on", "cum:each=compare>+5%", "--format", "github"]].concat());
    let text = String::from_utf8(out.stdout).unwrap();
    let line = text.lines().next().unwrap();
    assert!(line.starts_with("::error file=logmill/names/names.go,line="), "{text}");
    assert!(line.contains("%0Awhy: logmill/names.compare (names.go:19) now calls logmill/names.canonical: "), "{text}");
}

/// GitHub searches for mentions and links after it has parsed the Markdown, so escaping with a backslash does not help.
#[test]
fn markdown_contains_no_mentions_or_links() {
    let d = Dir::new("mentions");
    let strange = |v: i64| profile(&[("@octocat www.x.org http://x", "#1")], &[("main;@octocat #2", &[v])]);
    d.write("base", strange(10));
    d.write("@octocat #3", strange(90));
    let out = d.run(&["base", "@octocat #3", "--fail-on", "flat:any>+10%", "--format", "markdown"]);
    let markdown = String::from_utf8(out.stdout).unwrap();
    let text: String = markdown.split('`').step_by(2).collect();
    assert!(text.contains("(@&#8203;octocat www&#8203;.x.org http:&#8203;//x, "), "{markdown}");
    let text = text.replace("&#8203;", "\u{200b}");
    let is_plain = |mark: char| text.split(mark).skip(1).any(|rest| rest.starts_with(char::is_alphanumeric));
    assert!(!is_plain('@') && !is_plain('#'), "{markdown}");
}

#[test]
fn reports_that_cannot_be_written_are_errors() {
    let d = Dir::new("formats");
    d.write("base", second(100));
    for (option, message) in [
        (["--report", "f.docx"], "f.docx: unknown file extension"),
        (
            ["--format", "csv"],
            "check can't be written as csv; supported formats: text, json, markdown, github, junit, sarif",
        ),
        (["--sample-type", "cpu,wall"], "check shows one sample type at a time"),
    ] {
        let out = d.run(&[&["base", "base", "--fail-on", "total>+5%"], &option[..]].concat());
        let error = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{error}");
        assert!(error.contains(message), "{error}");
        assert!(!d.0.join(option[1]).exists());
    }
}

/// CI systems read the rules as test cases.
#[test]
fn junit_reports_rules_as_test_cases() {
    let d = Dir::new("junit");
    d.write("base", sampled(&[("a<b>&\"", 1000), ("c", 1000)]));
    d.write("new", sampled(&[("a<b>&\"", 3000), ("c", 1150)]));
    let rules = ["--fail-on", "flat:any>+20%", "--fail-on", "flat:regex=c>+10%", "--fail-on", "total>+500%"];
    let out = d.run_with_chance(&[&["base", "new", "--format", "junit"][..], &rules].concat());
    assert_eq!(out.status.code(), Some(1));
    let text = String::from_utf8(out.stdout).unwrap();
    let tree = roxmltree::Document::parse(&text).unwrap();
    let suite = tree.descendants().find(|n| n.has_tag_name("testsuite")).unwrap();
    assert_eq!(["tests", "failures", "skipped"].map(|name| suite.attribute(name).unwrap()), ["3", "1", "1"]);
    let cases: Vec<_> = suite.children().filter(|n| n.has_tag_name("testcase")).collect();
    let outcome_of = |i: usize| cases[i].children().find(roxmltree::Node::is_element);
    assert_eq!(cases[0].attribute("name"), Some("flat:any>+20%"));
    assert!(
        outcome_of(0).unwrap().has_tag_name("failure")
            && outcome_of(0).unwrap().text().unwrap().starts_with("a<b>&\": 1s -> 3s")
    );
    assert!(outcome_of(1).unwrap().has_tag_name("skipped") && outcome_of(2).is_none(), "{text}");
    let report = d.run_with_chance(&[&["base", "new", "--report", "r.xml"][..], &rules].concat());
    assert_eq!(report.status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(d.0.join("r.xml")).unwrap(), text);
}

/// The causes of a failure are in the reports that CI systems and code scanning show, with their source lines.
#[test]
fn junit_and_sarif_contain_the_causes_with_their_lines() {
    let d = Dir::new("causes");
    let sides = [corpus("story-cpu.base.pb.gz"), corpus("story-cpu.new.pb.gz")];
    let sides = sides.each_ref().map(|side| side.to_str().unwrap());
    let rules = ["--fail-on", "total>+5%", "--fail-on", "flat:each=names>+20%", "--fail-on", "total>+500%"];
    let run = |format: &str| {
        let out = d.run(&[&sides[..], &rules, &["--format", format]].concat());
        assert_eq!(out.status.code(), Some(1));
        String::from_utf8(out.stdout).unwrap()
    };
    let cause = "logmill/names.compare (logmill/names/names.go:19) now calls logmill/names.canonical: +1.39s (+73%)";
    // The line of the call, not the line where a function begins.
    let call = "logmill/names/names.go:19";
    let text = run("junit");
    let tree = roxmltree::Document::parse(&text).unwrap();
    let failures: Vec<_> = tree.descendants().filter(|n| n.has_tag_name("failure")).collect();
    assert_eq!(failures.len(), 2);
    let message = failures[0].attribute("message").unwrap();
    assert!(message.starts_with("cpu: 1.90s -> 2.93s") && !message.contains('\n'), "{message}");
    for failure in &failures {
        let body = failure.text().unwrap();
        assert!(body.starts_with(failure.attribute("message").unwrap()), "{body}");
        assert!(body.contains(&format!("\nwhy: {cause}")), "{body}");
    }
    let value: Value = serde_json::from_str(&run("sarif")).unwrap();
    let log: serde_sarif::sarif::Sarif = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(serde_json::to_value(&log).unwrap(), value);
    let results = value["runs"][0]["results"].as_array().unwrap();
    let total = &results[0];
    let message = total["message"]["text"].as_str().unwrap();
    assert!(message.starts_with("cpu: 1.90s -> 2.93s") && message.contains(&format!("\nwhy: {cause}")), "{message}");
    let (file, line) = call.split_once(':').unwrap();
    let place = serde_json::json!({
        "artifactLocation": {"uri": file},
        "region": {"startLine": line.parse::<i64>().unwrap()},
    });
    assert_eq!(total["locations"][0]["physicalLocation"], place);
    let related = &total["relatedLocations"][0];
    assert_eq!(related["physicalLocation"], place);
    assert_eq!(related["message"]["text"], cause);
    // A finding about another function does not repeat the causes of the rule's first finding.
    let of_function = |name: &str| {
        let is = |r: &&Value| r["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == name;
        results.iter().find(is).unwrap()
    };
    assert!(of_function("logmill/names.canonical").get("relatedLocations").is_some());
}

/// Paths of a standard library are relative as well, but they lead nowhere in the repository.
#[test]
fn sarif_leaves_out_files_that_the_checkout_does_not_have() {
    let d = Dir::new("foreign");
    let sides = [corpus("story-cpu.base.pb.gz"), corpus("story-cpu.new.pb.gz")];
    let sides = sides.each_ref().map(|side| side.to_str().unwrap());
    let addresses = || {
        let out = d.run(&[&sides[..], &["--fail-on", "flat:any>+20%", "--format", "sarif"]].concat());
        assert_eq!(out.status.code(), Some(1));
        let value: Value = serde_json::from_slice(&out.stdout).unwrap();
        let results = value["runs"][0]["results"].as_array().unwrap().iter();
        let places = |result: &Value| {
            let lists = ["locations", "relatedLocations"].map(|name| result[name].as_array().cloned());
            lists.into_iter().flatten().flatten().collect::<Vec<_>>()
        };
        let address = |place: Value| place["physicalLocation"]["artifactLocation"]["uri"].as_str().unwrap().to_owned();
        results.flat_map(places).map(address).collect::<std::collections::BTreeSet<_>>()
    };
    // Without a checkout, nothing is known about the files.
    assert!(["logmill/names/names.go", "strings/strings.go"].iter().all(|uri| addresses().contains(*uri)));
    std::fs::create_dir_all(d.0.join("logmill/names")).unwrap();
    std::fs::write(d.0.join("logmill/names/names.go"), "package names\n").unwrap();
    let new_profile = sides[1].trim_start_matches('/').to_owned();
    let mut known = addresses();
    // A result without a known line names the new profile.
    known.retain(|uri| !uri.ends_with(&new_profile));
    assert_eq!(known, ["logmill/names/names.go".to_owned()].into());
}

/// A rule about memory in use without a cause of its own gets the allocations of the functions that grew.
#[test]
fn a_rule_about_memory_in_use_gets_its_allocations_as_why() {
    let types =
        [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")];
    // `rows` keeps a few more objects, which chance can explain, and allocates ten times as many.
    let heap = |kept: i64, allocated: i64| {
        let others: Vec<String> = (0..12).map(|i| format!("main;f{i}")).collect();
        let of = |allocated: i64, kept: i64| [allocated, allocated * 65_536, kept, kept * 65_536];
        let rows = of(allocated, kept);
        let other = of(400, 60);
        let mut stacks: Vec<(&str, &[i64])> = others.iter().map(|stack| (stack.as_str(), &other[..])).collect();
        stacks.push(("main;rows", &rows));
        profile(&types, &stacks)
    };
    let d = Dir::new("in-use-why");
    d.write("base", heap(40, 400));
    d.write("new", heap(46, 4000));
    let (code, json) = d.json(&["base", "new", "--fail-on", "inuse_space:cum:any>+5%"]);
    let why = &json["rules"][0]["why"];
    assert_eq!((code, &why["sample_type"]), (1, &"alloc_space".into()), "{json}");
    let functions: Vec<_> = why["causes"].as_array().unwrap().iter().map(|cause| &cause["function"]).collect();
    assert_eq!(functions, ["rows"], "{json}");
    // A cause of the memory in use itself comes first.
    d.write("leak", heap(4000, 4400));
    let (_, json) = d.json(&["base", "leak", "--fail-on", "inuse_space:cum:any>+5%"]);
    assert_eq!(json["rules"][0]["why"]["sample_type"], "inuse_space", "{json}");
    assert_eq!(json["rules"][0]["why"]["causes"][0]["function"], "rows", "{json}");
}

/// The place of a cause is the line of the call with most of the change.
#[test]
fn a_cause_has_the_line_of_its_call() {
    let d = Dir::new("lines");
    // `work` calls `fast` in line 11, and `slow` in lines 12 and 13. `slow` itself executes lines 30 and 31.
    let build = |slow: [i64; 2]| {
        let mut stacks: Vec<(&[(&str, i64)], i64)> =
            vec![(&[("main", 5), ("work", 11), ("fast", 20)], 2000), (&[("main", 6), ("other", 40)], 500)];
        if slow != [0; 2] {
            stacks.push((&[("main", 5), ("work", 12), ("slow", 30)], slow[0]));
            stacks.push((&[("main", 5), ("work", 13), ("slow", 31)], slow[1]));
        }
        with_lines(&stacks)
    };
    d.write("base", build([0, 0]));
    d.write("new", build([300, 900]));
    let (code, json) = d.json(&["base", "new", "--fail-on", "total>+5%"]);
    assert_eq!(code, 1, "{json}");
    let causes = json["rules"][0]["why"]["causes"].as_array().unwrap();
    assert_eq!(causes.len(), 1, "{json}");
    assert_eq!(causes[0]["function"], "slow");
    assert_eq!(causes[0]["place"], serde_json::json!({"file": "app.go", "line": 13}));
    // The other way around, the line is that of the base. A check without a failure explains only if asked.
    let (code, json) = d.json(&["new", "base", "--fail-on", "total>+5%", "--explain"]);
    assert_eq!((code, &json["rules"][0]["why"]["causes"][0]["place"]["line"]), (0, &13.into()), "{json}");
}

/// GitHub shows ten errors per step. Rules that match no frame leave room for failures, and are counted.
#[test]
fn github_gets_at_most_ten_errors() {
    let d = Dir::new("ten-errors");
    let stacks: Vec<String> = (0..20).map(|i| format!("f{i}")).collect();
    let side = |ms: i64| sampled(&stacks.iter().map(|name| (name.as_str(), ms)).collect::<Vec<_>>());
    d.write("base", side(1000));
    d.write("new", side(9000));
    let rules: Vec<String> = (0..14).map(|i| format!("flat:regex=absent{i}>+5%")).collect();
    let run = |new: &str, more: &[&str]| {
        let rules = rules.iter().flat_map(|rule| ["--fail-on", rule]);
        let args: Vec<&str> =
            ["base", new, "--format", "github"].into_iter().chain(rules).chain(more.iter().copied()).collect();
        let github = String::from_utf8(d.run_with_chance(&args).stdout).unwrap();
        let errors: Vec<String> = github.lines().filter(|l| l.starts_with("::error")).map(str::to_owned).collect();
        (github, errors)
    };
    let (github, errors) = run("base", &[]);
    assert_eq!(errors.len(), 10, "{github}");
    assert!(errors[9].ends_with("::and 5 more rules that match no frame"), "{github}");
    let (github, errors) = run("new", &["--fail-on", "flat:any>+20%"]);
    assert_eq!(errors.len(), 10, "{github}");
    assert!(errors[4].ends_with("::and 10 more rules that match no frame"), "{github}");
    assert!(errors[9].ends_with("::and 16 more of outcome fail"), "{github}");
}

/// Code scanning reads findings as SARIF. Types generated from the standard's schema must parse the output, and contain
/// the findings.
#[test]
fn findings_are_sarif_results() {
    let d = Dir::new("sarif");
    d.write("base", sampled(&[("a\u{1b}[2J", 1000), ("b", 1000), ("c", 1000)]));
    d.write("new", sampled(&[("a\u{1b}[2J", 3000), ("b", 3000), ("c", 1150)]));
    d.write("pprofdiff.toml", "[[check.allow]]\nframe = \"^b$\"\nreason = \"on purpose\"\n");
    let rule = |rule: &'static str| ["--fail-on", rule];
    let rules = [rule("flat:any>+20%"), rule("flat:regex=c>+10%"), rule("total>+500%"), rule("total>+500%")].concat();
    let out = d.run_with_chance(&[&["base", "new", "--report", "r.sarif", "--format", "sarif"][..], &rules].concat());
    assert_eq!(out.status.code(), Some(1));
    assert_eq!(std::fs::read(d.0.join("r.sarif")).unwrap(), out.stdout);
    let log: serde_sarif::sarif::Sarif = serde_json::from_slice(&out.stdout).unwrap();
    let value: Value = serde_json::from_slice(&out.stdout).unwrap();
    // The output has no fields outside the schema: a round trip through its types loses nothing.
    assert_eq!(serde_json::to_value(&log).unwrap(), value);
    let run = &value["runs"][0];
    assert_eq!(run["tool"]["driver"]["rules"].as_array().unwrap().len(), 3);
    assert_eq!(run["tool"]["driver"]["rules"][1]["id"], "flat:regex=c>+10%");
    let results: Vec<&Value> = run["results"].as_array().unwrap().iter().collect();
    let alerts: Vec<[&str; 3]> = results
        .iter()
        .map(|r| {
            let subject = &r["locations"][0]["logicalLocations"][0]["fullyQualifiedName"];
            [&r["ruleId"], &r["kind"], subject].map(|v| v.as_str().unwrap())
        })
        .collect();
    // Every SARIF result is shown as an alert, so allowed, inconclusive and passing findings are omitted.
    assert_eq!(alerts, [["flat:any>+20%", "fail", "a\u{fffd}[2J"]]);
    assert_eq!(results[0]["level"], "error");
    // Messages are for humans: no control characters, and formatted values.
    let message = results[0]["message"]["text"].as_str().unwrap();
    assert!(message.contains("1s -> 3s") && !message.contains('\u{1b}'), "{message}");
    assert_eq!(results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "new");
}

/// CI systems merge the reports of several services, and tell them apart by the name: JUnit by suite and class, code
/// scanning by the category.
#[test]
fn a_name_tells_reports_apart() {
    let d = Dir::new("name");
    d.write("base", sampled(&[("a", 1000), ("b", 1000)]));
    d.write("new", sampled(&[("a", 3000), ("b", 1000)]));
    d.write("pprofdiff.toml", "[check]\nname = \"orders\"\nrules = [\"total>+5%\"]\n");
    let run = |args: &[&str]| {
        let out =
            d.run(&[&["base", "new", "--report", "r.sarif", "--report", "r.xml", "--report", "r.md"], args].concat());
        assert_eq!(out.status.code(), Some(1), "{}", String::from_utf8_lossy(&out.stderr));
        let sarif: Value = serde_json::from_slice(&std::fs::read(d.0.join("r.sarif")).unwrap()).unwrap();
        let typed: serde_sarif::sarif::Sarif = serde_json::from_value(sarif.clone()).unwrap();
        assert_eq!(serde_json::to_value(&typed).unwrap(), sarif);
        let read = |name: &str| std::fs::read_to_string(d.0.join(name)).unwrap();
        (sarif["runs"][0].clone(), read("r.xml"), read("r.md"), String::from_utf8(out.stdout).unwrap())
    };
    for (args, name) in [(&[][..], "orders"), (&["--name", "a & b"], "a & b")] {
        let escaped = name.replace('&', "&amp;");
        let (sarif, junit, markdown, text) = run(args);
        assert_eq!(sarif["automationDetails"]["id"], format!("pprofdiff/{name}/"));
        let result = &sarif["results"][0];
        assert!(result["message"]["text"].as_str().unwrap().starts_with(&format!("{name}: cpu: ")), "{result}");
        assert_eq!(result["partialFingerprints"]["rule/subject"], format!("{name}: total>+5% cpu"));
        assert!(junit.contains(&format!("<testsuite name=\"{escaped}\" ")), "{junit}");
        assert!(junit.contains(&format!("<testcase classname=\"{escaped}.cpu\" name=\"total")), "{junit}");
        assert!(markdown.starts_with(&format!("### pprofdiff {escaped}: fail")), "{markdown}");
        assert!(text.ends_with(&format!("\n{name}: fail: a limit is exceeded\n")), "{text}");
        let (_, json) = d.json(&[&["base", "new"], args].concat());
        assert_eq!(json["name"], name);
    }
    d.write("pprofdiff.toml", "[check]\nrules = [\"total>+5%\"]\n");
    let (sarif, junit, ..) = run(&[]);
    assert!(sarif.get("automationDetails").is_none());
    assert!(junit.contains("<testsuite name=\"pprofdiff check\" ") && junit.contains("classname=\"cpu\""), "{junit}");
    for bad in ["", "a/b", "a\nb"] {
        let out = d.run(&["base", "new", "--name", bad]);
        assert!(String::from_utf8_lossy(&out.stderr).contains("the name of a check must have"), "{bad:?}");
        assert_eq!(out.status.code(), Some(2));
    }
}

/// SARIF has the findings that text shows, and counts the others like text.
#[test]
fn sarif_and_text_show_the_same_findings() {
    let d = Dir::new("same-findings");
    let names: Vec<String> = (0..9).map(|i| format!("f{i}")).collect();
    let side = |ms: i64| sampled(&names.iter().map(|name| (name.as_str(), ms)).collect::<Vec<_>>());
    d.write("base", side(1000));
    d.write("new", side(9000));
    let out = d.run(&["base", "new", "--fail-on", "flat:any>+5%", "--fail-on", "total>+5%", "--report", "r.sarif"]);
    let text = String::from_utf8(out.stdout).unwrap();
    let sarif: Value = serde_json::from_slice(&std::fs::read(d.0.join("r.sarif")).unwrap()).unwrap();
    let shown = text.lines().filter(|line| line.starts_with("  fail ")).count();
    assert_eq!(sarif["runs"][0]["results"].as_array().unwrap().len(), shown);
    assert_eq!(shown, 6);
    assert!(text.contains("\n  4 more fail\n"), "{text}");
    let notes = &sarif["runs"][0]["invocations"][0]["toolExecutionNotifications"];
    let note = notes.as_array().unwrap().iter().find(|note| note["level"] == "note").unwrap();
    assert_eq!(note["message"]["text"], "4 more fail");
    assert_eq!(note["associatedRule"]["id"], "flat:any>+5%");
}

/// `--accept-findings` writes the failing findings to the allow-list: the same check passes, and a new finding fails.
#[test]
fn accepted_findings_pass_and_new_findings_fail() {
    let d = Dir::new("accept");
    d.write("base", sampled(&[("it's (a)", 1000), ("b", 1000), ("c", 1000)]));
    d.write("new", sampled(&[("it's (a)", 3000), ("b", 1000), ("c", 1000)]));
    d.write("newer", sampled(&[("it's (a)", 3000), ("b", 3000), ("c", 1000)]));
    d.write("pprofdiff.toml", "[check] # limits\nrules = [\"flat:any>+20%\"]");
    let run = |args: &[&str]| {
        let out = d.run(args);
        let text = String::from_utf8(out.stdout).unwrap() + &String::from_utf8(out.stderr).unwrap();
        (out.status.code().unwrap(), text)
    };
    let check = ["base", "new", "--fail-on", "flat:any>+20%", "--name", "orders"];
    assert_eq!(run(&check).0, 1);
    let (code, text) = run(&[&check[..], &["--accept-findings"]].concat());
    assert!(code == 0 && text.contains("pass") && !text.contains("a limit is exceeded"), "{text}");
    // The rule is in the file and on the command line, and its finding is accepted once.
    assert!(text.contains("added 1 finding to the allow-list of pprofdiff.toml"), "{text}");
    let file = std::fs::read_to_string(d.0.join("pprofdiff.toml")).unwrap();
    assert!(
        file.starts_with("[check] # limits\nrules = [\"flat:any>+20%\"]\n\n[[check.allow]]\nname = 'orders'\n"),
        "{file}"
    );
    assert!(file.contains("frame = \"^it's \\\\(a\\\\)$\"\nrule = 'flat:any>+20%'\nsample_type = 'cpu'\n"), "{file}");
    let (code, text) = run(&check);
    assert!(code == 0 && text.contains("(allowed: accepted: 1s -> 3s") && !text.contains("warning"), "{text}");
    // The allow-list covers what was accepted, and nothing else.
    assert_eq!(run(&["base", "newer", "--name", "orders"]).0, 1);
    let (code, text) = run(&["base", "newer", "--name", "orders", "--accept-findings"]);
    assert!(code == 0 && text.contains("added 1 finding to"), "{text}");
    assert_eq!(run(&["base", "newer", "--name", "orders"]).0, 0);
    // A total has no frame, so an exception would turn its rule off.
    let (code, text) = run(&["base", "new", "--fail-on", "total>+20%", "--name", "orders", "--accept-findings"]);
    assert!(code == 1 && text.contains("total>+20%: not accepted") && text.contains("nothing was added"), "{text}");
    // Another service has its own findings, and no warnings about entries of this one.
    let (code, text) = run(&["base", "new", "--name", "users"]);
    assert!(code == 1 && !text.contains("warning"), "{text}");
    // A check without a name does not use the entries, and says so.
    let (code, text) = run(&["base", "new"]);
    assert!(code == 1 && text.contains("this check has no name; pass --name orders"), "{text}");
    // An entry that allows nothing any more is reported to its own check.
    let (code, text) = run(&["base", "base", "--name", "orders"]);
    assert!(code == 0 && text.contains("\"^b$\" in the allow-list allowed nothing"), "{text}");
    let (code, text) = run(&["base", "base", "--name", "orders", "--accept-findings"]);
    assert!(code == 0 && text.contains("nothing was added to pprofdiff.toml"), "{text}");
    // A file that is not there yet is created, and an inline list is refused without a change.
    assert_eq!(run(&[&check[..], &["--config", "absent.toml", "--accept-findings"]].concat()).0, 2);
    std::fs::remove_file(d.0.join("pprofdiff.toml")).unwrap();
    assert_eq!(run(&[&check[..], &["--accept-findings"]].concat()).0, 0);
    assert!(std::fs::read_to_string(d.0.join("pprofdiff.toml")).unwrap().starts_with("[[check.allow]]\n"));
    let inline = "[check]\nallow = [{ frame = \"z\", reason = \"r\" }]\n";
    d.write("pprofdiff.toml", inline);
    let (code, text) = run(&[&check[..], &["--accept-findings"]].concat());
    assert!(code == 2 && text.contains("cannot add to the allow-list"), "{text}");
    assert_eq!(std::fs::read_to_string(d.0.join("pprofdiff.toml")).unwrap(), inline);
}

/// Services share one allow-list: an entry without a name may belong to another of them.
#[test]
fn a_shared_allow_list_warns_only_about_entries_of_the_check() {
    let d = Dir::new("shared-allow");
    d.write("base", sampled(&[("a", 1000)]));
    let entry = |keys: &str| format!("[[check.allow]]\nframe = \"a\"\nreason = \"r\"\n{keys}\n");
    d.write("pprofdiff.toml", [entry(""), entry("name = \"x\""), entry("sample_type = \"alloc_space\"")].concat());
    let warnings = |args: &[&str]| {
        let (_, json) = d.json(&[&["base", "base", "--fail-on", "flat:any>+5%"], args].concat());
        let warnings: Vec<String> =
            json["warnings"].as_array().unwrap().iter().map(|w| w.as_str().unwrap().to_owned()).collect();
        let count = |words: &str| warnings.iter().filter(|warning| warning.contains(words)).count();
        (count("allowed nothing"), count("is for the sample type alloc_space, which these profiles lack"))
    };
    // Without a name, the sample type may be misspelled. With a name, another check may need the entry.
    assert_eq!(warnings(&[]), (1, 1));
    assert_eq!(warnings(&["--name", "x"]), (1, 0));
    assert_eq!(warnings(&["--name", "y"]), (0, 0));
}

/// If all functions grew by the same factor, no cause concerns the rule, and the answer names the amount of work.
#[test]
fn a_rule_that_more_work_exceeds_says_so() {
    let d = Dir::new("more-work");
    let names: Vec<String> = (0..20).map(|i| format!("f{i}")).collect();
    let side =
        |ms: i64| sampled(&names.iter().zip(0..).map(|(name, i)| (&**name, ms + ms / 50 * i)).collect::<Vec<_>>());
    d.write("base", side(4000));
    d.write("new", side(8000));
    let out = d.run(&["base", "new", "--fail-on", "flat:any>+50%"]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(out.status.code(), Some(1), "{text}");
    assert!(text.contains("why: The new side did 2.00 times as much work"), "{text}");
    // With a factor, the rule compares at the amount of work that the user gave.
    let out = d.run(&["base", "new", "--fail-on", "flat:any>+50%", "--normalize", "1"]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.code() == Some(1) && !text.contains("as much work"), "{text}");
}
