//! The answers of `explain` for many pairs of the corpus, in tests/corpus/explained.txt. They pin the thresholds of
//! `explain`: tests/thresholds/pins.csv names the pairs whose answer each threshold decides.
//!
//! To accept new answers: `UPDATE_GOLDENS=1 cargo test -p pprofdiff-cli --test engine explained::`. To add a pair, add
//! its line, which begins with `$ explain`.

use std::path::Path;
use std::sync::Arc;

use pprofdiff::{Diff, LoadOptions, Profile, Query, Sort};
use pprofdiff_explain::{Cause, ExplainOptions, Explanation};
use pprofdiff_report::{Registry, Report};

/// The inputs of an explanation, which are read once.
pub struct Question {
    diff: Diff,
    query: Query,
    ops: Option<(f64, f64)>,
    noise_runs: usize,
    heap: Option<Diff>,
}

impl Question {
    /// Reads the files that the options of a line name, relative to a folder. An option has one or more values.
    pub fn read(folder: &Path, line: &str) -> Question {
        let (mut query, mut ops, mut heap) = (Query::default(), None, None);
        let [mut base, mut new] = [const { Vec::new() }; 2];
        let open = |name: &&str| Arc::new(pprofdiff::open(folder.join(name), &LoadOptions::default()).unwrap());
        let mut noise: Vec<Arc<Profile>> = Vec::new();
        for option in line.split("--").skip(1) {
            let words: Vec<&str> = option.split_whitespace().collect();
            let (name, values) = words.split_first().unwrap();
            let files = || values.iter().map(open).collect::<Vec<_>>();
            match *name {
                "base" => base = files(),
                "new" => new = files(),
                "noise" => noise = files(),
                "with" => {
                    let heaps = files();
                    let (heap_base, heap_new) = heaps.split_at(heaps.len() / 2);
                    heap = Some(Diff::new(heap_base, heap_new).unwrap());
                }
                "ops" => {
                    let numbers: Vec<f64> = values.iter().map(|value| value.parse().unwrap()).collect();
                    ops = Some((numbers[0], numbers[1]));
                }
                "sample-type" => query = query.with_sample_type(values[0]),
                name => panic!("unknown option {name:?}"),
            }
        }
        let noise_runs = noise.len();
        base.extend(noise);
        Question { diff: Diff::new(&base, &new).unwrap(), query, ops, noise_runs, heap }
    }

    fn explained(&self) -> Explanation {
        let mut options = ExplainOptions::default().with_noise_runs(self.noise_runs);
        options.ops = self.ops;
        let options = self.heap.iter().fold(options, |options, heap| options.with_heap(heap.clone()));
        pprofdiff_explain::explain(&self.diff, &self.query, &[], &options).unwrap()
    }

    /// Answers the question as text and as JSON.
    pub fn answer(&self) -> [String; 2] {
        let report = Report::Explain(Box::new(self.explained()));
        ["text", "json"].map(|format| {
            let mut text = Vec::new();
            Registry::standard().format(format).unwrap().write(&report, &mut text, Default::default()).unwrap();
            String::from_utf8(text).unwrap()
        })
    }
}

/// Returns the file of answers with the current answers.
fn fresh(folder: &Path, text: &str) -> String {
    let questions: Vec<&str> = text.lines().filter(|line| line.starts_with("$ explain ")).collect();
    let head = text.split("\n$ explain ").next().unwrap();
    let section = |question: &&str| {
        let [text, _] = Question::read(folder, question).answer();
        // Commands that show a cause, and warnings about a file, contain the path of the folder.
        let has_path = |line: &&str| line.starts_with("   pprofdiff ") || line.starts_with("warning: ");
        let lines = text.lines().filter(|line| !has_path(line)).map(|line| format!("{line}\n"));
        format!("\n{question}\n{}", lines.collect::<String>())
    };
    format!("{head}{}", questions.iter().map(section).collect::<String>())
}

#[test]
fn the_answers_for_the_corpus_are_those_in_the_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
    let file = folder.join("explained.txt");
    let text = std::fs::read_to_string(&file).unwrap();
    let fresh = fresh(&folder, &text);
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&file, &fresh).unwrap();
        return;
    }
    let sections = |text: &str| text.split("\n$ explain ").map(str::to_owned).collect::<Vec<_>>();
    let different: Vec<String> = sections(&text)
        .iter()
        .zip(sections(&fresh))
        .filter(|(old, new)| *old != new)
        .map(|(old, new)| format!("was: {old}\nnow: {new}"))
        .collect();
    assert!(different.is_empty(), "{} answers:\n{}", different.len(), different.join("\n\n"));
    assert_eq!(text, fresh, "the first lines of tests/explained.rs say how to accept new answers");
}

/// An answer that does not know the noise of its frames claims nothing about noise.
#[test]
fn no_answer_says_that_a_remainder_exceeds_an_unknown_noise() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/explained.txt");
    let text = std::fs::read_to_string(file).unwrap();
    // With --with, an answer has several paragraphs, each about one sample type.
    let unknown =
        |paragraph: &&str| paragraph.contains("noise is unknown") || paragraph.contains("Too little was measured");
    let unknown: Vec<&str> = text.split("\n\n").filter(unknown).collect();
    let wrong: Vec<&&str> = unknown.iter().filter(|paragraph| paragraph.contains("than noise")).collect();
    assert!(!unknown.is_empty() && wrong.is_empty(), "{} answers; {wrong:#?}", unknown.len());
}

/// Returns the change of a cause's function, or of the call that the cause names, in the table of its command.
fn change_in_table(diff: &Diff, e: &Explanation, cause: &Cause) -> f64 {
    let mut query = Query::default().with_sample_type(&e.summary.sample_type);
    query.filters.ignore.clone_from(&cause.evidence.ignore);
    let edges = diff.measure(&query).unwrap().edges(None, Sort::Cum).unwrap();
    let is = |frame: u32, name: &Option<String>| name.as_deref() == Some(&*edges.frames.name(frame));
    let delta = |base: i64, new: i64| new as f64 - e.scale.factor * base as f64;
    let (caller, function) = match &cause.callee {
        Some(_) => (&cause.function, &cause.callee),
        None => (&cause.caller, &cause.function),
    };
    if caller.is_none() {
        return edges
            .nodes
            .iter()
            .filter(|row| is(row.frame, function))
            .map(|row| delta(row.cum.base, row.cum.new))
            .sum();
    }
    let calls = edges.edges.iter().filter(|edge| edge.relation.name() == "callee");
    let calls = calls.filter(|edge| is(edge.node, caller) && is(edge.other, function));
    calls.map(|edge| delta(edge.weight.base, edge.weight.new)).sum()
}

/// A sentence with ", without X" states what its command shows: the change of the function without the stacks of X.
#[test]
fn amounts_without_other_functions_are_those_of_the_command() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
    let text = std::fs::read_to_string(folder.join("explained.txt")).unwrap();
    let has_words = |section: &&str| {
        section.lines().any(|line| line.starts_with(|c: char| c.is_ascii_digit()) && line.contains(", without "))
    };
    let (mut n, mut wrong) = (0, Vec::new());
    for section in text.split("\n$ explain ").skip(1).map(str::trim_end).filter(has_words) {
        let question = Question::read(&folder, section.lines().next().unwrap());
        let explained = question.explained();
        for e in std::iter::once(&explained).chain(&explained.also) {
            for cause in e.causes.iter().filter(|cause| !cause.without.is_empty()) {
                n += 1;
                let shown = change_in_table(&question.diff, e, cause);
                if (shown - cause.delta).abs() > 0.03 * cause.delta.abs() {
                    wrong.push(format!("{:?} without {:?}: {} is {shown}", cause.function, cause.without, cause.delta));
                }
            }
        }
    }
    assert!(n > 0 && wrong.is_empty(), "{n} causes; {}", wrong.join("\n"));
}

/// Each threshold has its row in the file of pins, and each row has its threshold. A row without an answer that changes
/// has a test, or says that it has none.
#[test]
fn every_threshold_has_a_row_with_its_pins() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let code = std::fs::read_to_string(root.join("crates/pprofdiff-explain/src/thresholds.rs")).unwrap();
    let pins = std::fs::read_to_string(root.join("tests/thresholds/pins.csv")).unwrap();
    let constants = code.lines().filter_map(|line| line.strip_prefix("pub(super) const ")?.split(':').next());
    let rows: Vec<Vec<&str>> = pins.lines().skip(1).map(|line| line.split(',').collect()).collect();
    // Structs and arrays have a row for each number.
    let mut listed: Vec<&str> = rows.iter().map(|row| row[0].split('.').next().unwrap()).collect();
    listed.dedup();
    assert_eq!(constants.collect::<Vec<_>>(), listed, "tests/thresholds.py pins writes the rows");
    let unpinned = |row: &&Vec<&str>| row[2] == "0" && row[4] == "0" && row[5].is_empty();
    let unpinned: Vec<&str> = rows.iter().filter(unpinned).map(|row| row[0]).collect();
    assert!(unpinned.is_empty(), "{unpinned:?} need a test, or the words \"no test\"");
}
