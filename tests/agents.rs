//! The command for agents: token budgets, and agent mode.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Output, Stdio};

use pprofdiff_report::tokens;

use crate::cli::{corpus, failure, stdout, story, temp};

/// Commands whose output is text.
fn commands() -> Vec<Vec<String>> {
    let [base, new] = story();
    let both = [base.as_str(), new.as_str()];
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let pairs = corpus("faults/freight/base-*.cpu.pb.gz");
    let others = corpus("faults/freight/calls-*.cpu.pb.gz");
    let builds = corpus("series/heap-*.pb.gz");
    let views = ["diff", "top", "tree", "stacks", "traces", "labels", "explain", "info", "raw", "comments"];
    let mut all: Vec<Vec<String>> = views.iter().map(|view| words(&[&[*view], &both[..]].concat())).collect();
    all.extend(["peek", "list", "roots"].map(|view| words(&[&[view, "compare"], &both[..]].concat())));
    all.extend([
        words(&["top", &new]),
        words(&["--explain", &base, &new]),
        words(&["check", "--fail-on", "cum:any>+50000%", &base, &new]),
        words(&["series", &builds]),
        words(&["series", &builds, "--rows", "movers", "--explain"]),
        words(&["batch", &pairs, &others]),
        words(&["batch", &pairs, &others, "--rank"]),
    ]);
    all
}

#[test]
fn every_text_and_markdown_output_fits_its_budget() {
    let (mut n_shortened, mut n_markdown) = (0, 0);
    for command in commands() {
        for format in ["text", "markdown"] {
            for budget in [50, 130, 400, 1500] {
                let budget_text = budget.to_string();
                let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
                args.extend(["--budget", &budget_text]);
                if !["raw", "comments"].contains(&args[0]) {
                    args.extend(["--format", format]);
                }
                let output = Command::new(env!("CARGO_BIN_EXE_pprofdiff")).args(&args).output().unwrap();
                let error = String::from_utf8_lossy(&output.stderr).into_owned();
                if error.contains("can't be written as markdown") || error.contains("--explain needs") {
                    assert_eq!(format, "markdown", "{args:?}");
                    continue;
                }
                let text = String::from_utf8(output.stdout).unwrap();
                // A check may fail.
                assert!(matches!(output.status.code(), Some(0 | 1 | 3)) && error.is_empty(), "{args:?}: {error}");
                assert!(tokens(&text) <= budget, "{args:?} has {} tokens:\n{text}", tokens(&text));
                n_shortened += usize::from(text.contains("set a larger --budget"));
                n_markdown += usize::from(format == "markdown");
            }
        }
    }
    assert!(n_shortened > 60 && n_markdown > 40, "{n_shortened} {n_markdown}");
}

#[test]
fn a_shortened_table_counts_the_omitted_rows_and_a_larger_budget_shows_them() {
    let [base, new] = story();
    let rows = |text: &str| text.lines().skip_while(|line| !line.starts_with("flat:")).skip(1).count();
    let short = stdout(&[&base, &new, "--budget", "400"]);
    let last = short.lines().last().unwrap();
    let (left, advice) = last.split_once(" frames more: ").unwrap();
    assert_eq!(advice, "set a larger --budget");
    let all = stdout(&[&base, &new, "--budget", "100000"]);
    // More rows than the default number of 20 rows.
    assert_eq!(rows(&all), rows(&short) - 1 + left.parse::<usize>().unwrap());
    assert!(rows(&all) > 20, "{all}");
    assert_eq!(all, stdout(&[&base, &new, "-n", "0"]));
    // An explicit number of rows stays the maximum.
    assert_eq!(stdout(&[&base, &new, "-n", "3", "--budget", "100000"]), stdout(&[&base, &new, "-n", "3"]));
}

#[test]
fn data_refuses_a_budget_before_any_input_is_read() {
    for (args, why) in [
        (&["top", "absent.pb", "--format", "csv"][..], "csv is data; limit its rows with -n"),
        (&["explain", "absent.pb", "absent.pb", "--format", "json"], "json is always written whole"),
        (&["series", "absent-*.pb", "-o", "x.html"], "html is always written whole"),
        (&["batch", "absent-*.pb", "absent2-*.pb", "--format", "jsonl"], "jsonl is always written whole"),
        (&["check", "a.pb", "b.pb", "--fail-on", "total>+5%", "--format", "sarif"], "sarif is always written whole"),
    ] {
        let message = failure(&[args, &["--budget", "500"]].concat());
        assert!(message.contains("--budget shortens text and Markdown") && message.contains(why), "{message}");
    }
}

const VARIABLES: [&str; 6] =
    ["AI_AGENT", "CLAUDECODE", "CURSOR_AGENT", "GEMINI_CLI", "CODEX_THREAD_ID", "CODEX_SANDBOX"];

fn run(args: &[String], agent: Option<(&str, &str)>, program: &[&str]) -> Output {
    let mut words = program.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    words.push(env!("CARGO_BIN_EXE_pprofdiff").to_owned());
    let mut command = Command::new(&words[0]);
    match program {
        [] => command.args(args),
        // `script` runs a command of a shell in a pseudoterminal.
        [_, options @ ..] => {
            let typed: Vec<String> =
                [&words[program.len()..], args].concat().iter().map(|arg| format!("'{arg}'")).collect();
            command.args(options).arg(typed.join(" ")).arg("/dev/null")
        }
    };
    for name in VARIABLES.iter().chain(&["OPENCODE", "COPILOT_CLI", "CLINE_ACTIVE", "NO_COLOR"]) {
        command.env_remove(name);
    }
    command.env("TERM", "xterm");
    command.envs(agent).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn an_agent_gets_the_same_answers_and_a_next_step_that_runs() {
    let mut n_steps = 0;
    for (i, args) in commands().into_iter().enumerate() {
        let person = run(&args, None, &[]);
        let agent = run(&args, Some((VARIABLES[i % VARIABLES.len()], "1")), &[]);
        assert_eq!((agent.status.code(), &agent.stdout), (person.status.code(), &person.stdout), "{args:?}");
        assert!(person.stderr.is_empty(), "{args:?}");
        // An empty variable counts as not set.
        assert!(run(&args, Some(("CLAUDECODE", "")), &[]).stderr.is_empty(), "{args:?}");
        let hint = String::from_utf8(agent.stderr).unwrap();
        if hint.is_empty() {
            continue;
        }
        let step = hint.trim_end().strip_prefix("pprofdiff: next: pprofdiff ").unwrap_or_else(|| panic!("{hint}"));
        let script = format!("{} {step}", env!("CARGO_BIN_EXE_pprofdiff"));
        let next = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert!(matches!(next.status.code(), Some(0 | 1 | 3)), "{step}: {}", String::from_utf8_lossy(&next.stderr));
        n_steps += 1;
    }
    assert!(n_steps >= 10, "{n_steps} commands suggest a next step");
    // Files and data have no next step.
    let [base, new] = story();
    for more in [&["--format", "json"][..], &["-o", "/dev/null", "--format", "text"]] {
        let args: Vec<String> = [&["top", &base, &new][..], more].concat().iter().map(|&arg| arg.to_owned()).collect();
        assert!(run(&args, Some(("AI_AGENT", "tests")), &[]).stderr.is_empty(), "{more:?}");
    }
}

/// The advice of an error contains names from untrusted input, so it is kept out of logs.
#[test]
fn an_agent_gets_the_advice_of_an_error() {
    let archive = temp("profiles.zip");
    std::fs::write(&archive, b"PK\x03\x04 and more").unwrap();
    let args = ["top".to_owned(), archive.display().to_string()];
    let errors = [None, Some(("AI_AGENT", "tests"))].map(|agent| {
        let output = run(&args, agent, &[]);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    });
    assert_eq!(errors.map(|error| error.contains("unzip -p ")), [false, true]);
}

#[test]
fn an_agent_gets_no_colours_in_a_terminal() {
    let terminal = ["script", "-qec"];
    if Command::new("script").arg("--version").output().is_err() {
        return;
    }
    let args: Vec<String> = ["top".to_owned()].into_iter().chain(story()).collect();
    let person = run(&args, None, &terminal).stdout;
    let agent = run(&args, Some(("CURSOR_AGENT", "1")), &terminal).stdout;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace('\r', "");
    let (person, agent) = (text(person), text(agent));
    assert!(person.contains("\x1b[") && person.contains("\nexplain: "), "{person}");
    let (answer, step) = agent.split_once("pprofdiff: next: ").unwrap();
    assert!(!agent.contains('\x1b') && step.starts_with("pprofdiff peek "), "{agent}");
    assert_eq!(answer, String::from_utf8(run(&args, None, &[]).stdout).unwrap());
}

#[test]
fn the_next_step_keeps_the_options_that_apply() {
    let [base, new] = story();
    let step = |args: &[&str]| {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        let stderr = String::from_utf8(run(&args, Some(("AI_AGENT", "tests")), &[]).stderr).unwrap();
        stderr.trim_end().strip_prefix("pprofdiff: next: ").unwrap_or_default().to_owned()
    };
    let both = format!("{base} {new}");
    let focused = ["--focus", "compare", "--hide-below", "1%"];
    let next = step(&[&["top", &base, &new, "-n", "3", "--sample-type", "cpu"][..], &focused].concat());
    assert!(next.starts_with("pprofdiff peek '^"), "{next}");
    assert!(!next.contains("hide-below") && !next.contains(" -n"), "{next}");
    let next = step(&["top", &base, &new, "--focus", "compare", "--match", "stable"]);
    assert!(next.contains(&both) && next.ends_with(" --match=stable --focus=compare"), "{next}");
    assert_eq!(step(&["peek", "names.compare$", &base, &new]), format!("pprofdiff list 'names.compare$' {both}"));
    assert_eq!(step(&["info", &base, &new]), format!("pprofdiff explain {both}"));
    assert_eq!(step(&["info", &new]), format!("pprofdiff top {new}"));
    let next = step(&["explain", "--base", &base, "--new", &new]);
    assert!(next.ends_with(&format!(" --base {base} --new {new} --sample-type cpu")), "{next}");
    // A next step that does not fit the budget is omitted.
    assert_eq!(step(&["peek", "names.compare$", &base, &new, "--budget", "60"]), "");
}
