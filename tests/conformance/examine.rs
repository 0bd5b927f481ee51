//! Asks both tools a question about a pair, and compares the complete answers.

use crate::command::{self, Answer, Entry};
use crate::exceptions::{ComparedRows, added_up, without_zeros};
use crate::pairs::{Input, Pair};
use crate::pprof::{self, Side, Subject};
use crate::question::{Granularity, Question};
use crate::reports::{self, Graph};
use crate::rows::{Row, compare};
use crate::units;

/// The number of comparisons, and the differences.
#[derive(Default)]
pub struct Log {
    pub comparisons: usize,
    pub rows: usize,
    pub differences: Vec<String>,
    /// If enabled, the compared rows: ours, then pprof's.
    pub kept: Option<Vec<(Vec<Row>, Vec<Row>)>>,
}

impl Log {
    /// Compares our rows with pprof's. `describe_commands` describes the two commands.
    pub fn compare(&mut self, ours: Vec<Row>, theirs: Vec<Row>, describe_commands: impl Fn() -> String) {
        if let Some(kept) = &mut self.kept {
            kept.push((ours.clone(), theirs.clone()));
        }
        self.comparisons += 1;
        self.rows += theirs.len();
        if let Err(difference) = compare(ours, theirs) {
            self.differences.push(format!("{}\n{difference}", describe_commands()));
        }
    }

    pub fn equal(&mut self, ours: i64, theirs: i64, subject: &str, describe_commands: impl Fn() -> String) {
        let row = |number| vec![Row { subject: subject.into(), numbers: vec![number] }];
        self.compare(row(ours), row(theirs), describe_commands);
    }

    pub fn print(&self, title: &str) {
        println!("{title}: {} comparisons, {} rows, {} differ", self.comparisons, self.rows, self.differences.len());
    }

    pub fn add(&mut self, other: Log) {
        self.comparisons += other.comparisons;
        self.rows += other.rows;
        self.differences.extend(other.differences);
    }
}

/// Makes all comparisons for a question: each side alone, and the diff.
pub fn examine(pair: &Pair, question: &Question, log: &mut Log) {
    let base = examine_one(&pair.base, question, log);
    let new = examine_one(&pair.new, question, log);
    examine_diff(pair, question, base, new, log);
}

/// Compares one profile: `top` and `peek`, and also `labels` at the default granularity (labels have no granularity).
/// Returns pprof's rows, for comparison with the columns of the diff.
fn examine_one(input: &Input, question: &Question, log: &mut Log) -> Graph {
    let unit = input.unit_of(&question.sample_type).expect("a sample type of both sides");
    // A report about a diff uses the finer unit of the two sides.
    let unit = if units::has_family(unit) { unit } else { &question.unit };
    let question = &Question { unit: unit.into(), ..question.clone() };
    let ours = Subject::One(&input.path);
    let theirs = Subject::One(input.for_pprof.at(question.granularity));
    let describe_commands = |view: &'static [&'static str], format: &'static str| {
        move || describe_commands(view, ours, &question.to_our_args(), format, theirs, &question.to_pprof_args())
    };

    let top = command::ask(&["top"], ours, question);
    let peek = peek_at_all(&top, ours, question);
    let shown = ComparedRows::new(&top.entries, ["flat", "cum"], &peek.entries, "weight");
    let graph = reports::graph(&ask_pprof("peek .", theirs, question));
    log.compare(shown.nodes.clone(), graph.nodes.clone(), describe_commands(&["top"], "-peek=."));
    let (edges, expected) = shown.edges(graph.edges.clone());
    log.compare(edges, expected, describe_commands(&["peek", "."], "-peek=."));

    // `-peek` prints the nodes of `-top` and the edges, so `-top` itself is only run for some questions.
    if question.granularity == Granularity::Functions || question.choices.is_empty() {
        let expected = reports::top(&ask_pprof("top", theirs, question));
        log.compare(shown.nodes, expected.rows, describe_commands(&["top"], "-top"));
        log.equal(total(&top, "total"), expected.total, "total", describe_commands(&["top"], "-top"));
    }
    if question.granularity == Granularity::Functions {
        let traces = command::ask(&["traces"], ours, question);
        let rows = added_up(traces.entries.iter().map(Entry::trace));
        let expected = added_up(reports::traces(&ask_pprof("traces", theirs, question)));
        log.compare(rows, expected, describe_commands(&["traces"], "-traces"));
        let labels = command::ask(&["labels"], ours, question);
        compare_labels(&labels, ours, theirs, question, "weight", None, log);
    }
    graph
}

/// Compares a new side that is the sum of several profiles.
pub fn examine_sums(pair: &Pair, question: &Question, log: &mut Log) {
    let for_pprof = |input: &'_ Input| input.for_pprof.at(question.granularity).to_path_buf();
    let (base, new) = (&*pair.base.path, &*pair.new.path);
    let (base_for_pprof, new_for_pprof) = (&*for_pprof(&pair.base), &*for_pprof(&pair.new));
    let ours = Subject::Several { base, new: &[new, base, new] };
    let theirs = Subject::Several { base: base_for_pprof, new: &[new_for_pprof, base_for_pprof, new_for_pprof] };
    examine_deltas(pair, ours, theirs, question, log);
}

/// Compares the deltas of `top` and `peek` with `-diff_base`. Returns our answers.
fn examine_deltas(pair: &Pair, ours: Subject, theirs: Subject, question: &Question, log: &mut Log) -> (Answer, Answer) {
    let describe_commands = |view: &'static [&'static str], format: &'static str| {
        move || describe_commands(view, ours, &question.to_our_args(), format, theirs, &question.to_pprof_args())
    };
    let top = command::ask(&["top"], ours, question);
    let peek = peek_at_all(&top, ours, question);
    let shown = ComparedRows::new(&top.entries, ["flat_delta", "cum_delta"], &peek.entries, "delta");
    let pprofs_top = reports::top(&ask_pprof("top", theirs, question));
    let (edges, expected) = shown.edges(reports::graph(&ask_pprof("peek .", theirs, question)).edges);
    log.compare(shown.nodes, pprofs_top.rows, describe_commands(&["top"], "-top"));
    log.compare(edges, expected, describe_commands(&["peek", "."], "-peek=."));
    // If the base's total is zero, pprof's percentages refer to the new side. See also `exceptions::MERGED_TOTALS`.
    if total(&top, "total_base") != 0 && !pair.base.profile.has_negative_values() {
        log.equal(total(&top, "total_base"), pprofs_top.total, "total_base", describe_commands(&["top"], "-top"));
    }
    for entry in &top.entries {
        check_status(entry, log);
    }
    (top, peek)
}

/// Compares two profiles: the deltas, and the columns of each side with pprof's rows for that side.
fn examine_diff(pair: &Pair, question: &Question, base: Graph, new: Graph, log: &mut Log) {
    let granularity = question.granularity;
    let ours = Subject::Two { base: &pair.base.path, new: &pair.new.path };
    let theirs = Subject::Two { base: pair.base.for_pprof.at(granularity), new: pair.new.for_pprof.at(granularity) };
    let describe_commands = |view: &'static [&'static str], format: &'static str, side: Option<Side>| {
        move || {
            let mut words = question.to_pprof_args();
            words.extend(side.map(|side| side.filter().to_string()));
            describe_commands(view, ours, &question.to_our_args(), format, theirs, &words)
        }
    };

    let (top, peek) = examine_deltas(pair, ours, theirs, question, log);

    // A tag filter can select the samples of one side in pprof's diff, unless the question already has a tag filter.
    let has_tag_filter = question.asks_for("tagfocus") || question.asks_for("tagignore");
    for (side, input, alone, [flat, cum, weight]) in [
        (Side::Base, &pair.base, base, ["flat_base", "cum_base", "base"]),
        (Side::New, &pair.new, new, ["flat_new", "cum_new", "new"]),
    ] {
        // The column of a side equals the rows of that side alone, except for the changes made by the diff: it shifts
        // addresses to those of the other side's binary, and converts to the finer unit.
        let unit = input.unit_of(&question.sample_type).unwrap();
        let same_alone = granularity != Granularity::Addresses && (unit == question.unit || !units::has_family(unit));
        let expected = match (same_alone, has_tag_filter) {
            (true, _) => Some(alone),
            (false, false) => Some(graph_of_side(theirs, question, side)),
            (false, true) => None,
        };
        if let Some(expected) = expected {
            let shown = ComparedRows::new(&top.entries, [flat, cum], &peek.entries, weight);
            let (edges, expected_edges) = shown.edges(expected.edges);
            log.compare(shown.nodes, expected.nodes, describe_commands(&["top"], "-peek=.", Some(side)));
            log.compare(
                without_zeros(edges),
                without_zeros(expected_edges),
                describe_commands(&["peek", "."], "-peek=.", Some(side)),
            );
        }
    }

    if granularity == Granularity::Functions {
        let labels = &command::ask(&["labels"], ours, question);
        compare_labels(labels, ours, theirs, question, "delta", None, log);
        if !has_tag_filter {
            compare_labels(labels, ours, theirs, question, "base", Some(Side::Base), log);
            compare_labels(labels, ours, theirs, question, "new", Some(Side::New), log);
        }
    }
    if [Granularity::Functions, Granularity::Lines].contains(&granularity) {
        let stacks = command::ask(&["stacks"], ours, question);
        let expected = reports::stacks(&ask_pprof("traces", theirs, question));
        for (column, expected) in [("base", expected.base), ("new", expected.new)] {
            let rows = added_up(stacks.entries.iter().map(|entry| entry.stack(column)));
            log.compare(rows, added_up(expected), describe_commands(&["stacks"], "-traces", None));
        }
    }
    // `tree` is another name for `peek .`.
    if question.choices.is_empty() {
        let tree = command::ask(&["tree"], ours, question);
        let edges = |answer: &Answer| answer.entries.iter().map(|entry| entry.edge("delta")).collect();
        log.compare(edges(&tree), edges(&peek), describe_commands(&["tree"], "-peek=.", None));
    }
}

fn ask_pprof(command: &str, subject: Subject, question: &Question) -> String {
    pprof::report(command, subject, &question.to_pprof_args())
}

/// Returns pprof's graph of one side of its diff.
pub fn graph_of_side(diff: Subject, question: &Question, side: Side) -> Graph {
    let mut words = question.to_pprof_args();
    words.push(side.filter().into());
    let graph = reports::graph(&pprof::report("peek .", diff, &words));
    let with_sign = |rows: Vec<Row>| match side {
        Side::Base => rows.into_iter().map(Row::negated).collect(),
        Side::New => rows,
    };
    Graph { nodes: with_sign(graph.nodes), edges: with_sign(graph.edges) }
}

/// Compares one column of `labels` with `-tags`. Both are converted to units in which every number is an integer.
fn compare_labels(
    labels: &Answer,
    ours: Subject,
    theirs: Subject,
    question: &Question,
    column: &str,
    side: Option<Side>,
    log: &mut Log,
) {
    let whole = &Question { unit: units::WHOLE.into(), ..question.clone() };
    let mut words = whole.to_pprof_args();
    words.extend(side.map(|side| side.filter().to_string()));
    let expected = reports::tags(&pprof::report("tags", theirs, &words)).into_iter();
    let expected = match side {
        Some(Side::Base) => without_zeros(expected.map(Row::negated)),
        _ => without_zeros(expected),
    };

    let rows = labels.entries.iter().map(|entry| {
        let mut row = entry.label(column, units::WHOLE);
        row.numbers[0] = units::whole(row.numbers[0], &question.unit);
        row
    });
    log.compare(without_zeros(rows), expected, || {
        describe_commands(&["labels"], ours, &question.to_our_args(), "-tags", theirs, &words)
    });
}

/// Runs `peek .`. In both tools this is an error if no frame is left.
fn peek_at_all(top: &Answer, subject: Subject, question: &Question) -> Answer {
    match top.entries.is_empty() {
        true => Answer { json: serde_json::Value::Null, entries: Vec::new() },
        false => command::ask(&["peek", "."], subject, question),
    }
}

/// Checks that the status of a row matches its numbers.
fn check_status(entry: &Entry, log: &mut Log) {
    let zero = |flat, cum| entry.number(flat) == 0 && entry.number(cum) == 0;
    let holds = match entry.text("status").as_str() {
        "added" => zero("flat_base", "cum_base"),
        "removed" => zero("flat_new", "cum_new"),
        "changed" => !zero("flat_delta", "cum_delta"),
        "same" => zero("flat_delta", "cum_delta"),
        _ => false,
    };
    let adds_up = ["flat", "cum"].iter().all(|sum| {
        let column = |side| entry.number(&format!("{sum}_{side}"));
        column("delta") == column("new") - column("base")
    });
    if !holds || !adds_up {
        log.differences.push(format!("the columns of a row contradict each other: {}", entry.json()));
    }
}

fn total(answer: &Answer, column: &str) -> i64 {
    answer.json[column].as_i64().unwrap_or_else(|| panic!("no {column} in {}", answer.json))
}

fn describe_commands(
    view: &[&str],
    ours: Subject,
    our_words: &[String],
    format: &str,
    theirs: Subject,
    pprof_words: &[String],
) -> String {
    format!("{}\n{}", command::command_line(view, ours, our_words), pprof::command_line(format, theirs, pprof_words))
}
