//! Tests of chance in checks: several runs, sampling events, small frames, and frames that a profiler shows at random.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{CPU, Dir, corpus, profile, sampled, second};

/// Exceeding a limit is a failure unless chance explains it.
#[test]
fn a_limit_fails_only_if_chance_does_not_explain_the_excess() {
    let d = Dir::new("chance");
    let write = |name: &str, runs: &[i64]| {
        for (i, ms) in runs.iter().enumerate() {
            d.write(&format!("{name}{i}"), sampled(&[("work", *ms)]));
        }
    };
    write("b", &[1000, 1010, 990, 1005, 995]);
    write("more", &[1100, 1110, 1090, 1105, 1095]);
    write("overlap", &[1000, 1100, 1110, 1090, 1105]);
    write("some", &[1150]);
    write("twice", &[2000]);
    write("base", &[1000, 1500, 700]);
    write("new", &[1250, 1875, 875]);
    let five = |name: &str| -> Vec<String> {
        let names = |name: &str| (0..5).map(|i| format!("{name}{i}")).collect::<Vec<_>>();
        [vec!["--base".to_owned()], names("b"), vec!["--new".to_owned()], names(name)].concat()
    };
    let (more, overlap) = (five("more"), five("overlap"));
    let strings = |args: &[&str]| args.iter().map(|&arg| arg.to_owned()).collect::<Vec<String>>();
    let three = strings(&["--base", "base0", "base1", "base2", "--new", "new0", "new1", "new2"]);
    let (pass, fail, error, inconclusive) = (0, 1, 2, 3);
    for (files, rule, more, code) in [
        // One run per side: assumes the noise between runs of other programs.
        (strings(&["b0", "some0"]), "total>+10%", None, inconclusive),
        (strings(&["b0", "some0"]), "total>+10%", Some("--strict"), fail),
        (strings(&["b0", "some0"]), "total>+20%", None, pass),
        (strings(&["b0", "twice0"]), "total>+10%", None, fail),
        (strings(&["b0", "some0"]), "total>1.1s", None, inconclusive),
        (strings(&["b0", "twice0"]), "total>1.1s", None, fail),
        (strings(&["b0", "b0"]), "flat:regex=work>99%", None, inconclusive),
        // Several runs show their own noise.
        (more.clone(), "total>+5%", None, fail),
        (more.clone(), "total>+50ms", None, fail),
        (more.clone(), "total>+15%", None, pass),
        (overlap.clone(), "total>900ms", None, fail),
        (overlap, "total>1050ms", None, inconclusive),
        // A rule that requires a decrease, which did not happen.
        (more.clone(), "total>-20%", None, fail),
        // Pairing removes the noise that both runs of a pair share.
        (three.clone(), "total>+10%", None, inconclusive),
        (three, "total>+10%", Some("--paired"), fail),
        (strings(&["--base", "b0", "--new", "b0", "b1"]), "total>+10%", Some("--paired"), error),
        // A single run cannot rule out a growth of 5 %.
        (strings(&["b0", "b1"]), "total>+5%", None, pass),
        (strings(&["b0", "b1"]), "total>+5%", Some("--require-power"), inconclusive),
        (strings(&["b0", "b1"]), "total>+100%", Some("--require-power"), pass),
    ] {
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let args = [&files[..], &["--fail-on", rule], more.as_slice()].concat();
        let out = d.run_with_chance(&args);
        assert_eq!(out.status.code(), Some(code), "{args:?} {}", String::from_utf8_lossy(&out.stdout));
    }
    let (_, json) = d.json_with_chance(&["b0", "some0", "--fail-on", "total>+10%"]);
    let (rule, finding) = (&json["rules"][0], &json["rules"][0]["findings"][0]);
    let needed = finding["runs_needed"].as_u64().unwrap();
    assert!((3..20).contains(&needed), "{finding}");
    assert!(finding["p_adjusted"].as_f64().unwrap() > 0.01 && rule["detectable"].as_f64().unwrap() > 15.0, "{rule}");
    let out = d.run_with_chance(&["b0", "some0", "--fail-on", "total>+10%"]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("within chance (p = 0."), "{text}");
    assert!(text.contains(&format!("about {needed} runs per side would be enough")), "{text}");
    assert!(text.contains(" would have failed"), "{text}");
    // A second rule halves the limit of the p-value, and the p-value stays.
    let rules = ["b0", "some0", "--fail-on", "total>+10%", "--fail-on", "flat:regex=work>+10%"];
    let (_, both) = d.json_with_chance(&rules);
    let p = |json: &Value| json["rules"][0]["findings"][0]["p_adjusted"].as_f64().unwrap();
    assert_eq!(p(&both), p(&json));
    let limit = |json: &Value| json["rules"][0]["p_limit"].as_f64().unwrap();
    assert_eq!((limit(&json), limit(&both), &both["rules"][0]["family"]), (0.01, 0.005, &2.into()));
}

/// Several rules share the error rate of the check. The answer states the p-value and the limit that it was compared
/// with, in every format.
#[test]
fn another_rule_makes_a_failure_inconclusive_only_if_the_answer_says_so() {
    let d = Dir::new("holm");
    let sides = [corpus("story-cpu.base.pb.gz"), corpus("story-cpu.new.pb.gz")];
    let sides = sides.each_ref().map(|side| side.to_str().unwrap());
    d.write("optional.toml", "[check]\nrules = [{ fail_on = \"flat:regex=no_such_frame>+5%\", optional = true }]\n");
    let check = |rules: &[&str], more: &[&str]| {
        let rules: Vec<&str> = rules.iter().flat_map(|rule| ["--fail-on", rule]).collect();
        let out = d.run_with_chance(&[&sides[..], &rules, more].concat());
        (out.status.code().unwrap(), String::from_utf8(out.stdout).unwrap())
    };
    let total = "total>+20%";
    let (code, text) = check(&[total], &[]);
    assert!(code == 1 && text.contains("+54.2%  p = 0.005, limit 0.01\n"), "{text}");
    // These rules are certain, repeat the hypothesis, or compare nothing.
    let many = ["total>+10%", "total>+100ms", "cum:regex=^logmill/names.compare$>+5%", "cum:any>+100%", "total>+20%"];
    let (code, text) = check(&[&[total], &many[..]].concat(), &["--config", "optional.toml"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("\nfail          total>+20%  cpu, 1 compared\n"), "{text}");
    assert!(text.contains("+54.2%  p = 0.005, limit 0.01\n"), "{text}");
    // Two rules that could have failed, and did not.
    let others = [total, "flat:regex=compare>+5%", "flat:regex=Classify>+5%"];
    let said = "p = 0.005, limit 0.0033 of 3 rules, Holm";
    for format in ["text", "markdown", "github", "junit"] {
        let (code, text) = check(&others, &["--format", format]);
        assert_eq!(code, 3, "{text}");
        assert!(text.contains(said) && text.contains("as the only rule it would fail"), "{format}: {text}");
    }
    let (_, json) = d.json_with_chance(&[&sides[..], &["--fail-on", total, "--fail-on", others[1]]].concat());
    assert_eq!((&json["rules"][0]["p_limit"], &json["rules"][0]["family"]), (&0.005.into(), &2.into()), "{json}");
    let (_, sarif) = check(&[total, "cum:any>+5%"], &["--format", "sarif"]);
    assert!(sarif.contains("p = 0.005, limit 0.01\\nwhy"), "{sarif}");
    assert!(sarif.contains(" among 78 frames, limit 0."), "{sarif}");
}

/// A typo in an expression must not turn the gate off.
#[test]
fn a_rule_that_matches_no_frame_does_not_pass() {
    let d = Dir::new("unmatched");
    d.write("a", sampled(&[("work", 1000), ("gone", 500)]));
    d.write("b", sampled(&[("work", 1000)]));
    let rule = "flat:regex=wrok>+5%";
    for rule in [rule, "cum:each=wrok>+5%", "cum:regex=wrok>5%"] {
        for strict in [&["--strict"][..], &[]] {
            let (code, json) = d.json_with_chance(&[&["a", "b", "--fail-on", rule], strict].concat());
            assert_eq!((code, &json["verdict"], &json["exit_code"]), (4, &"unmatched".into(), &4.into()), "{json}");
            assert!(json["warnings"].to_string().contains("matches no frame of either side; correct"), "{json}");
        }
    }
    for format in ["text", "markdown", "github", "junit", "sarif"] {
        let out = d.run_with_chance(&["a", "b", "--fail-on", rule, "--format", format]);
        let text = String::from_utf8(out.stdout).unwrap();
        assert_eq!(out.status.code(), Some(4), "{text}");
        assert!(text.contains("matches no frame of either side; correct its expression"), "{format}: {text}");
        if format == "sarif" {
            let log: serde_sarif::sarif::Sarif = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_value(&log).unwrap(), serde_json::from_str::<Value>(&text).unwrap());
        }
    }
    let code = |args: &[&str]| d.run_with_chance(&[&["a", "b", "--fail-on"], args].concat()).status.code();
    // A failure outranks the other rule, which outranks an inconclusive rule.
    assert_eq!(code(&[rule, "--fail-on", "total>+1%", "--fail-on", "flat:regex=gone>-99%"]), Some(4));
    assert_eq!(code(&[rule, "--fail-on", "flat:regex=work>-90%"]), Some(1));
    // A function that one side lacks has been compared.
    assert_eq!(code(&["flat:regex=gone>+5%"]), Some(0));
    d.write("pprofdiff.toml", "[check]\nrules = [{ fail_on = \"flat:regex=wrok>+5%\", optional = true }]\n");
    let out = d.run_with_chance(&["a", "b"]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success() && text.starts_with("warning: the rule \"flat:regex=wrok>+5%\" matches no"), "{text}");
}

/// A side can be a folder or a quoted pattern.
#[test]
fn a_folder_or_a_pattern_is_the_runs_of_a_side() {
    let d = Dir::new("folders");
    for (side, ms) in [("base", 1000), ("new", 2000)] {
        std::fs::create_dir_all(d.0.join(side)).unwrap();
        std::fs::create_dir_all(d.0.join(side).join("logs")).unwrap();
        d.write(&format!("{side}/.hidden"), "no profile");
        (0..3).for_each(|i| d.write(&format!("{side}/{i}.pb"), sampled(&[("work", ms + i)])));
    }
    for sides in [
        &["base", "new"][..],
        &["base/", "new/*.pb"],
        &["base/[0-2].pb", "new"],
        &["--base", "base/*.pb", "--new", "new/0.pb", "new/[12].pb"],
    ] {
        let (code, json) = d.json_with_chance(&[sides, &["--fail-on", "total>+5%"]].concat());
        let finding = &json["rules"][0]["findings"][0];
        let runs = |side: &str| finding[side]["values"].as_array().unwrap().len();
        assert_eq!((code, runs("base"), runs("new")), (1, 3, 3), "{json}");
    }
    for (base, message) in
        [("bsae/*", "no file matches \"bsae/*\""), ("base/logs", "base/logs: this directory has no files")]
    {
        let out = d.run_with_chance(&[base, "new", "--fail-on", "total>+5%"]);
        let error = String::from_utf8(out.stderr).unwrap();
        assert!(out.status.code() == Some(2) && error.contains(message), "{error}");
    }
}

#[test]
fn small_frames_fail_only_on_large_growth_and_are_inconclusive_below() {
    let d = Dir::new("frames");
    let names: Vec<String> = (0..40).map(|i| format!("f{i}")).collect();
    // f0 has one second. The others have 25 samples each, which vary between 15 and 35 by chance.
    let side = |changed: &[(usize, i64)], noise: i64| {
        let cost = |i: usize| match changed.iter().find(|(frame, _)| *frame == i) {
            Some((_, ms)) => *ms,
            None if i == 0 => 1000,
            None => 25 + noise * (i as i64 * 7 % 11 - 5),
        };
        sampled(&names.iter().enumerate().map(|(i, name)| (name.as_str(), cost(i))).collect::<Vec<_>>())
    };
    d.write("base", side(&[], 0));
    d.write("equal", side(&[], 2));
    d.write("small", side(&[(3, 250)], 2));
    d.write("large", side(&[(0, 2500)], 2));
    let rule = ["--fail-on", "flat:any>+20%"];
    let check = |new: &str| d.json_with_chance(&[&["base", new][..], &rule].concat());
    let failed = |json: &Value| -> Vec<String> {
        let findings = json["rules"][0]["findings"].as_array().unwrap();
        findings.iter().filter(|f| f["outcome"] == "fail").map(|f| f["frame"].as_str().unwrap().to_owned()).collect()
    };
    let (code, json) = check("equal");
    assert_eq!((code, json["rules"][0]["too_small"].as_u64()), (3, Some(40)), "{json}");
    assert!(failed(&json).is_empty(), "{json}");
    assert_eq!(d.run(&[&["base", "equal"][..], &rule].concat()).status.code(), Some(1), "limits alone");
    for (new, frame) in [("small", "f3"), ("large", "f0")] {
        let (code, json) = check(new);
        assert_eq!((code, failed(&json)), (1, vec![frame.to_owned()]), "{json}");
        // A failing frame is not counted among the frames whose growth chance could explain.
        assert_eq!(json["rules"][0]["too_small"].as_u64(), Some(39), "{json}");
    }
    let text = d.run_with_chance(&[&["base", "small"][..], &rule].concat()).stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("40 compared, 39 with noise above the limit\n"), "{text}");
}

/// Exact sums, and sums with an unknown sampling method, are judged by the noise between runs.
#[test]
fn sums_without_a_period_are_judged_by_their_runs() {
    let d = Dir::new("sums");
    let write = |name: &str, runs: &[i64]| {
        let space = |kb: i64| profile(&[("space", "bytes")], &[("main", &[kb * 1000])]);
        runs.iter().enumerate().for_each(|(i, kb)| d.write(&format!("{name}{i}"), space(*kb)));
    };
    write("base", &[1000, 1002, 999, 1001, 1000]);
    write("new", &[1100, 1101, 1099, 1102, 1100]);
    let runs = ["--base", "base0", "base1", "base2", "base3", "base4", "--new", "new0", "new1", "new2", "new3", "new4"];
    let (code, json) = d.json_with_chance(&[&runs[..], &["--fail-on", "total>+5%"]].concat());
    assert_eq!(code, 1, "{json}");
    let (code, json) = d.json_with_chance(&["base0", "new0", "--fail-on", "total>+5%"]);
    assert_eq!(code, 3, "one run a side shows nothing of how much they differ: {json}");
}

#[test]
fn limits_of_every_kind_consider_chance() {
    let d = Dir::new("kinds");
    for (name, ms) in [("a", 1000), ("b", 1500), ("c", 700)] {
        d.write(name, sampled(&[("work", ms)]));
    }
    let code = |args: &[&str]| d.run_with_chance(args).status.code();
    // A limit on the new side alone does not use pairs, so the noise that pairs share remains.
    let pairs = ["--base", "a", "b", "c", "--new", "a", "b", "c", "--fail-on", "total>900ms"];
    assert_eq!(code(&[&pairs[..], &["--paired"]].concat()), Some(3));
    // A new frame with 6 events exceeds the limit, but the evidence is weak.
    d.write("without", sampled(&[("work", 1000)]));
    d.write("with", sampled(&[("work", 1000), ("other", 6)]));
    d.write("much", sampled(&[("work", 1000), ("other", 400)]));
    assert_eq!(code(&["without", "with", "--fail-on", "flat:any>+5ms", "--floor=0"]), Some(3));
    assert_eq!(
        code(&["without", "with", "--fail-on", "flat:any>+1ms", "--floor=0"]),
        Some(3),
        "exceeded, by less than chance makes"
    );
    assert_eq!(code(&["without", "much", "--fail-on", "flat:any>+20ms"]), Some(1));
    // Rare events may come in bursts, even if their number is improbable.
    d.write("rare", sampled(&[("work", 1000), ("other", 25)]));
    let text = String::from_utf8(d.run_with_chance(&["without", "rare", "--fail-on", "flat:any>+5ms"]).stdout).unwrap();
    assert!(text.contains("  inconclusive  0 -> 25ms") && text.contains("too few events to be sure (p "), "{text}");
    // For a required decrease, the number of runs is computed from the required value.
    d.write("less", sampled(&[("work", 900)]));
    let (code_of, json) = d.json_with_chance(&["a", "less", "--fail-on", "total>-20%", "--require-power"]);
    let rule = &json["rules"][0];
    assert_eq!((code_of, &rule["detectable"]), (3, &Value::Null), "{json}");
    assert!(rule["findings"][0]["runs_needed"].as_u64().is_some(), "{json}");
    d.write("gone", sampled(&[("other", 900)]));
    assert_eq!(code(&["a", "gone", "--fail-on", "cum:regex=work>-50%", "--require-power"]), Some(0));
    // Without any comparison, the output must not claim a detectable change.
    for args in
        [&["a", "a", "--fail-on", "cum:regex=absent>+5%"][..], &["a", "a", "--fail-on", "total>+5%", "--strict"]]
    {
        let text = String::from_utf8(d.run_with_chance(args).stdout).unwrap();
        assert!(!text.contains("would have"), "{text}");
    }
    // A growth within the limit passes without further conditions.
    let text = String::from_utf8(d.run_with_chance(&["a", "a", "--fail-on", "total>+500%"]).stdout).unwrap();
    // Half of the builds that grew by exactly the limit would have failed.
    let least: f64 = text
        .split_once("% would have failed nine times in ten, if runs differ as usual\n")
        .unwrap()
        .0
        .rsplit_once('+')
        .unwrap()
        .1
        .parse()
        .unwrap();
    assert!((510.0..900.0).contains(&least), "{text}");
}

/// The growth that would have failed is a statement about builds that the allow-list does not cover. With several runs,
/// it does not depend on an assumption about them.
#[test]
fn an_allowed_growth_would_not_have_failed() {
    let d = Dir::new("allowed-growth");
    for (name, work) in [("a", 1000), ("b", 1010), ("more", 1300)] {
        d.write(name, sampled(&[("main;work", work), ("main;other", 1000)]));
    }
    let text = |args: &[&str]| String::from_utf8(d.run_with_chance(args).stdout).unwrap();
    let rules = ["--fail-on", "cum:any>+20%", "--fail-on", "total>+20%"];
    let pair = text(&[&["a", "b"][..], &rules].concat());
    assert_eq!(pair.matches("would have failed nine times in ten, if runs differ as usual\n").count(), 2, "{pair}");
    let runs = text(&[&["--base", "a", "b", "--new", "a", "b"][..], &rules].concat());
    assert_eq!(runs.matches("would have failed nine times in ten\n").count(), 2, "{runs}");
    let allow = |entry: &str| d.write("pprofdiff.toml", format!("[[check.allow]]\n{entry}\nreason = \"on purpose\"\n"));
    allow("frame = \"work\"");
    let some = text(&[&["a", "more"][..], &rules].concat());
    assert!(some.contains("(allowed: on purpose)"), "{some}");
    assert_eq!(some.matches("as usual, unless the allow-list covers it\n").count(), 1, "{some}");
    allow("rule = \"total>+20%\"");
    let (_, json) = d.json_with_chance(&[&["a", "more"][..], &rules].concat());
    assert_eq!((json["rules"][0]["detectable"].is_null(), json["rules"][1]["detectable"].is_null()), (false, true));
}

/// Allowed findings on one stack are grouped as failures are.
#[test]
fn allowed_findings_lie_within_one_another() {
    let d = Dir::new("allowed-nested");
    d.write("base", sampled(&[("main;a;b;c", 100), ("main;other", 1000)]));
    d.write("new", sampled(&[("main;a;b;c", 3000), ("main;other", 1000)]));
    let within = |json: &Value| {
        let findings = json["rules"][0]["findings"].as_array().unwrap().clone();
        findings.iter().filter(|finding| !finding["within"].is_null()).count()
    };
    let (code, failed) = d.json_with_chance(&["base", "new", "--fail-on", "cum:any>+20%"]);
    d.write("pprofdiff.toml", "[[check.allow]]\nframe = \".\"\nreason = \"on purpose\"\n");
    let (allowed_code, allowed) = d.json_with_chance(&["base", "new", "--fail-on", "cum:any>+20%"]);
    assert_eq!((code, allowed_code), (1, 0), "{allowed}");
    assert!(within(&failed) > 0 && within(&allowed) == within(&failed), "{failed} {allowed}");
}

/// A function of a renamed package fails as a new function. A hint names the option that compares it with its old name.
#[test]
fn a_renamed_function_that_fails_is_not_called_new_without_a_hint() {
    let d = Dir::new("renamed-hint");
    let files = |build: &str| -> Vec<String> {
        let path = |run: usize| corpus(&format!("upgrades/invoices.{build}{run}.cpu.pb.gz")).display().to_string();
        (1..=3).map(path).collect()
    };
    let (base, new) = (files("a"), files("b"));
    let sides = [&["--base".to_owned()], &base[..], &["--new".to_owned()], &new].concat();
    let sides: Vec<&str> = sides.iter().map(String::as_str).collect();
    let stdout = |more: &[&str]| {
        let args = [&sides[..], &["--fail-on", "cum:any>+20%"], more].concat();
        String::from_utf8(d.run_with_chance(&args).stdout).unwrap()
    };
    let text = stdout(&[]);
    let hint = "fails as a new function, but it probably is github.com/mitchellh/mapstructure.";
    assert!(text.contains(hint) && text.contains("; pass --match moved to compare such functions\n"), "{text}");
    assert!(!stdout(&["--match", "moved"]).contains("--match moved"));
}

/// A part of a function that the compiler no longer inlines fails as a new function, too.
#[test]
fn an_outlined_function_that_fails_is_not_called_new_without_a_hint() {
    let d = Dir::new("outlined-hint");
    let others = ["a", "b", "c", "d", "e", "f"].map(|name| format!("main;{name}"));
    let with = |stacks: &[(&'static str, i64)]| {
        let others = others.iter().map(|stack| (stack.as_str(), 4000));
        sampled(&others.chain(stacks.iter().copied()).collect::<Vec<_>>())
    };
    d.write("base", with(&[("main;encode", 6000)]));
    d.write("new", with(&[("main;encode", 2000), ("main;encode;part", 4000)]));
    let text = String::from_utf8(d.run_with_chance(&["base", "new", "--fail-on", "flat:any>+20%"]).stdout).unwrap();
    let hint = "part fails as a new function, but its cost probably was a part of encode in the base";
    assert!(text.contains(hint), "{text}");
}

/// In some languages the inlined frame shown at the leaf is random. A function that really costs more is still
/// detected.
#[test]
fn a_randomly_shown_leaf_is_not_growth() {
    let d = Dir::new("leaf");
    let side = |leaf: &str, ms: i64| {
        let stack = format!("app::cancellation{leaf}");
        let others = ["app::a", "app::b", "core::c", "alloc::d", "core::e"];
        let mut all: Vec<(&str, i64)> = others.into_iter().map(|name| (name, 1000)).collect();
        all.push((&stack, ms));
        sampled(&all)
    };
    d.write("base", side(";core::num::abs", 500));
    d.write("flicker", side("", 500));
    d.write("dearer", side("", 5000));
    let check = |new: &str| d.json_with_chance(&["base", new, "--fail-on", "flat:any>+20%"]);
    let (code, json) = check("flicker");
    // Both frames exceed their limits. The result is neither a pass nor a failure.
    assert_eq!(code, 3, "{json}");
    assert!(json["rules"][0]["left_out"].as_u64().unwrap() >= 2, "{json}");
    let (code, json) = check("dearer");
    assert_eq!((code, &json["rules"][0]["findings"][0]["frame"]), (1, &"app::cancellation".into()), "{json}");
}

/// `check` and `explain` report the same detectable growth of a function with a tenth of the total, computed by one
/// function with the threshold of each. With fewer rules the detectable growth of a check is smaller.
#[test]
fn check_and_explain_compute_detectable_growth_alike() {
    let d = Dir::new("power");
    let files = |build: &str, runs: usize| -> Vec<String> {
        let path = |run: usize| corpus(&format!("faults/freight/{build}-{run}.cpu.pb.gz")).to_str().unwrap().to_owned();
        (1..=runs).map(path).collect()
    };
    for runs in [1, 3] {
        let (base, new) = (files("base", runs), files("equal", runs));
        let sides = [&["--base".to_owned()], &base[..], &["--new".to_owned()], &new].concat();
        let sides: Vec<&str> = sides.iter().map(String::as_str).collect();
        let check = |rules: &[&str]| d.json_with_chance(&[&sides[..], rules].concat()).1;
        let of_each = check(&["--fail-on", "cum:any>+5%", "--explain"]);
        let detectable = |json: &Value| json["rules"][0]["detectable"].as_f64().unwrap();
        let noise = &of_each["rules"][0]["why"]["noise"];
        let noticed = 100.0 * noise["noticed"].as_f64().unwrap();
        assert!((noticed / detectable(&of_each)).ln().abs() < 2f64.ln(), "{runs}: {noticed} {of_each}");
        assert!((noticed / 1000.0 - noise["mde"].as_f64().unwrap()).abs() < 1e-6 || noticed > 1000.0, "{noise}");
        // The detectable growth is several standard deviations of the noise.
        let far = (1.0 + noticed / 100.0).ln() / noise["deviation"].as_f64().unwrap();
        assert!((4.0..7.0).contains(&far), "{runs}: {far} {noise}");
        let two = check(&["--fail-on", "cum:any>+5%", "--fail-on", "total>+5%"]);
        assert!(detectable(&two) > detectable(&of_each), "{two}");
        let rules = sides.iter().copied().chain(["--fail-on", "cum:any>+5%", "--explain"]).collect::<Vec<_>>();
        let text = String::from_utf8(d.run_with_chance(&rules).stdout).unwrap();
        assert!(text.contains("of a typical frame with 10% of the total would have failed"), "{text}");
    }
}

/// If inlining varies by chance, checks of equal builds with one run per side do not fail, regardless of the shown
/// frames. A function that costs more is found.
#[test]
fn one_run_per_side_does_not_fail_if_inlining_varies() {
    let d = Dir::new("flicker");
    let path = |build: &str, run: usize| corpus(&format!("faults/maptiles/{build}-{run}.cpu.pb.gz"));
    let runs = |builds: &[&str]| -> Vec<PathBuf> {
        builds.iter().flat_map(|build| (1..4).map(move |run| path(build, run))).collect()
    };
    let check = |base: &Path, new: &Path| {
        let rules = ["--fail-on", "cum:any>+20%", "--fail-on", "flat:any>+20%"];
        d.json_with_chance(&[&[base.to_str().unwrap(), new.to_str().unwrap()], &rules[..]].concat())
    };
    for runs in [runs(&["base", "equal"]), runs(&["moved"]), runs(&["self"])] {
        for (base, new) in runs.iter().flat_map(|base| runs.iter().map(move |new| (base, new))) {
            let (code, json) = check(base, new);
            assert_ne!(code, 1, "{base:?} {new:?} {json}");
        }
    }
    // The matching is reported, as with `--match moved`.
    let (_, json) = check(&path("base", 1), &path("equal", 1));
    assert!(json["warnings"].to_string().contains("matched inlined on one side"), "{json}");
    // In `shown`, a function appears inside another that costs the same as before. In `dearer`, a function costs more.
    let side = |stacks: &[(&str, i64)]| {
        let others = [("app::a", 1000), ("core::c", 1000), ("alloc::d", 1000), ("core::e", 1000)];
        sampled(&[&others[..], stacks].concat())
    };
    d.write(
        "base",
        side(&[("app::outer;app::other", 200), ("app::outer;app::inner;app::leaf", 10), ("app::outer", 290)]),
    );
    d.write(
        "shown",
        side(&[("app::outer;app::other", 200), ("app::outer;app::inner;app::leaf", 290), ("app::outer", 10)]),
    );
    d.write(
        "dearer",
        side(&[("app::outer;app::other", 200), ("app::outer;app::inner;app::leaf", 2000), ("app::outer", 290)]),
    );
    assert_ne!(check(Path::new("base"), Path::new("shown")).0, 1);
    let (code, json) = check(Path::new("base"), Path::new("dearer"));
    let failed = |rule: usize| -> Vec<&str> {
        let all = json["rules"][rule]["findings"].as_array().unwrap();
        all.iter().filter(|f| f["outcome"] == "fail").filter_map(|f| f["frame"].as_str()).collect()
    };
    assert_eq!((code, failed(1)), (1, vec!["app::leaf"]), "{json}");
    assert!(failed(0).contains(&"app::inner"), "{json}");
}

/// Frames that the profiler inserts are compared only if a rule names them.
#[test]
fn artefacts_of_profiling_are_not_frames_of_the_program() {
    let d = Dir::new("artefacts");
    let side = |preempted: i64| {
        let program = ["main.run", "main.work", "runtime.mallocgc", "runtime.memmove", "strings.Index"];
        let mut all: Vec<(&str, i64)> = program.into_iter().map(|name| (name, 1000)).collect();
        all.push(("main.work;runtime.asyncPreempt", preempted));
        sampled(&all)
    };
    d.write("base", side(100));
    d.write("new", side(1000));
    let code = |rule: &str| d.run_with_chance(&["base", "new", "--fail-on", rule]).status.code();
    assert_eq!(code("flat:any>+20%"), Some(0));
    d.write("base2", side(120));
    d.write("new2", side(1100));
    assert_eq!(code("flat:each=^runtime.asyncPreempt$>+20%"), Some(1));
    // The table (also in JSON) gives the reason why such a frame is not reported.
    let table = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pprofdiff"));
        let output = command
            .current_dir(&d.0)
            .args(["--base", "base", "base2", "--new", "new", "new2"])
            .args(args)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let text = table(&[]);
    let row = text.lines().find(|line| line.ends_with(" runtime.asyncPreempt")).unwrap();
    assert!(row.contains(" profiling ") && !row.contains('~'), "{text}");
    assert!(text.contains("profiling or inlining: the frame's presence is itself random"), "{text}");
    let rows: Value = serde_json::from_str(&table(&["--format", "json"])).unwrap();
    let row_of = |name: &str| rows["rows"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone();
    assert_eq!(row_of("runtime.asyncPreempt")["left_out"], "profiling");
    assert_eq!(row_of("runtime.memmove")["left_out"], Value::Null);
}

/// With filters, every rule uses the total of the remaining samples. If no samples remain, the check does not pass.
#[test]
fn totals_are_those_of_the_filtered_samples() {
    let d = Dir::new("focused");
    // `enc/a` grows by half, and the rest decreases by the same amount.
    d.write("a.pb", second(200));
    d.write("b.pb", second(300));
    for (limit, focus, code) in [
        ("total>+5%", None, 0),
        ("total>+5%", Some("enc/a"), 1),
        ("total>+51%", Some("enc/a"), 0),
        // Shares refer to the unfiltered total, as in tables.
        ("cum:regex=enc/a>29%", Some("enc/a"), 1),
        ("cum:regex=enc/a>31%", Some("enc/a"), 0),
        ("total>+99ms", Some("enc/a"), 1),
        ("total>+100ms", Some("enc/a"), 0),
    ] {
        let focus = focus.map_or(vec![], |focus| vec!["--focus", focus]);
        let (actual, json) = d.json(&[&["a.pb", "b.pb", "--fail-on", limit], &focus[..]].concat());
        assert_eq!(actual, code, "{limit} {focus:?}: {json}");
    }
    let (_, json) = d.json(&["a.pb", "b.pb", "--fail-on", "total>+5%", "--ignore", "enc/a"]);
    let median_of = |side: &str| json["rules"][0]["findings"][0][side]["median"].as_i64();
    assert_eq!((median_of("base"), median_of("new")), (Some(800_000_000), Some(700_000_000)), "{json}");
    // With and without the test for chance.
    for rule in ["total>+5%", "flat:any>+5%", "cum:regex=a>+5%", "total>2s", "flat:each=b>30%"] {
        for strict in [&["--strict"][..], &[]] {
            let args = ["a.pb", "b.pb", "--fail-on", rule, "--focus", "nothing like it"];
            let (code, json) = d.json_with_chance(&[&args[..], strict].concat());
            assert_eq!((code, json["verdict"].as_str()), (3, Some("inconclusive")), "{rule}: {json}");
            assert!(json["warnings"].to_string().contains("the filters remove every sample of cpu"), "{json}");
        }
    }
    // A frame on one side only counts as removed or new.
    d.write("none.pb", profile(CPU, &[("main", &[1_000_000_000])]));
    let exit_code = |base: &str, new: &str| d.json(&[base, new, "--fail-on", "total>+5%", "--focus", "enc/a"]).0;
    assert_eq!((exit_code("a.pb", "none.pb"), exit_code("none.pb", "a.pb")), (0, 1));
}
