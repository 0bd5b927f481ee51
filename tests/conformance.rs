//! Compares the output of the command with pprof, run live: the `go tool pprof` of the toolchain, and google/pprof of
//! November 2026. For every pair of the corpus, every sample type, granularity and filter, the tests compare all rows
//! of `top`, all edges of `peek` and all sums of `labels`, for each side and for the diff. By default, each filter of a
//! pair is tested with one sample type and some granularities (see [`questions`]); nightly runs test all combinations.
//!
//! The comparison does not use the engine's code. Both tools get options and produce reports, which are compared as
//! multisets of rows. The module `exceptions` lists the cases in which pprof is wrong. The whole run takes a minute and
//! a half on two cores. `go` must be installed.

#![allow(clippy::unwrap_used)]

#[path = "conformance/command.rs"]
mod command;
#[path = "conformance/compiler.rs"]
mod compiler;
#[path = "conformance/examine.rs"]
mod examine;
#[path = "conformance/exceptions.rs"]
mod exceptions;
#[path = "conformance/generated.rs"]
mod generated;
#[path = "conformance/newest.rs"]
mod newest;
#[path = "conformance/pairs.rs"]
mod pairs;
#[path = "conformance/pictures.rs"]
mod pictures;
#[path = "conformance/pprof.rs"]
mod pprof;
#[path = "conformance/pprof_compat.rs"]
mod pprof_compat;
#[path = "conformance/profile.rs"]
mod profile;
#[path = "conformance/question.rs"]
mod question;
#[path = "conformance/reports.rs"]
mod reports;
#[path = "conformance/rows.rs"]
mod rows;
#[path = "conformance/units.rs"]
mod units;
#[path = "conformance/written.rs"]
mod written;

use std::collections::{BTreeMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use examine::{Log, examine, examine_sums};
use pairs::Pair;
use pprof::{Subject, Version};
use question::{Granularity, Question};

/// Number of worker threads. The tools take most of the time, and two of them at once leave a small machine usable.
const WORKERS: usize = 2;

/// A pair with fewer compared rows than this fails, because the comparison must have stopped working. The smallest pair
/// of the corpus compares twice as many rows, the largest 60 times as many.
const LEAST_ROWS_PER_PAIR: usize = 2_000;

/// Generates one pair per seed. Each takes five seconds. `PPROFDIFF_GENERATED` sets the number of pairs.
fn generated_pairs() -> Vec<Pair> {
    generated::pairs(std::env::var("PPROFDIFF_GENERATED").map_or(4, |n| n.parse().unwrap()))
}

/// Returns true if PPROFDIFF_QUESTIONS=all, as in nightly runs: every combination is tested, which takes four times as
/// long.
fn is_exhaustive() -> bool {
    std::env::var("PPROFDIFF_QUESTIONS").is_ok_and(|setting| setting == "all")
}

/// Number of granularities per filter.
const GRANULARITIES_PER_FILTER: usize = 2;

/// The names of the filters, and a granularity.
type FilterCombination = (Vec<&'static str>, &'static str);

fn filter_combination(question: &Question) -> FilterCombination {
    (question.choices.iter().map(|choice| choice.name).collect(), question.granularity.name())
}

/// Selects the questions for each pair: every question without filters, plus each filter with one sample type and a few
/// granularities. The sample types rotate. Each filter gets the granularities with which it has been tested least
/// often.
fn questions(pairs: &[Pair]) -> Vec<Vec<Question>> {
    let (mut asked, mut turn) = (BTreeMap::<FilterCombination, usize>::new(), 0);
    let mut of_pair = |pair: &Pair| {
        let (mut chosen, filtered): (Vec<_>, Vec<_>) =
            pair.questions().into_iter().partition(|question| is_exhaustive() || question.choices.is_empty());
        let mut of_filters: BTreeMap<String, BTreeMap<FilterCombination, Vec<Question>>> = BTreeMap::new();
        for question in filtered {
            let of_filter = of_filters.entry(format!("{:?}", question.choices)).or_default();
            of_filter.entry(filter_combination(&question)).or_default().push(question);
        }
        for of_filter in of_filters.into_values() {
            let mut kinds: Vec<(FilterCombination, Vec<Question>)> = of_filter.into_iter().collect();
            kinds.sort_by_key(|(combination, _)| asked.get(combination).copied());
            for (combination, mut of_types) in kinds.into_iter().take(GRANULARITIES_PER_FILTER) {
                *asked.entry(combination).or_default() += 1;
                turn += 1;
                chosen.push(of_types.swap_remove(turn % of_types.len()));
            }
        }
        chosen
    };
    pairs.iter().map(&mut of_pair).collect()
}

#[test]
fn each_filter_is_tested_at_each_granularity() {
    for pairs in [corpus(), generated_pairs()] {
        let asked: HashSet<FilterCombination> = questions(&pairs).iter().flatten().map(filter_combination).collect();
        let all: HashSet<FilterCombination> =
            pairs.iter().flat_map(Pair::questions).map(|question| filter_combination(&question)).collect();
        let missing: Vec<&FilterCombination> = all.difference(&asked).collect();
        assert!(missing.is_empty() && all.len() > 50, "{missing:?} of {}", all.len());
    }
}

fn corpus() -> Vec<Pair> {
    let pairs = pairs::in_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus"));
    assert!(!pairs.is_empty(), "no pairs in tests/corpus");
    pairs
}

/// Calls `work` for each item on several threads, and merges their logs. A panic counts as a difference, so that one
/// bad report does not hide the others.
fn examine_each<T: Sync>(items: &[T], work: impl Fn(&T, &mut Log) + Sync) -> Log {
    let (next, whole) = (AtomicUsize::new(0), Mutex::new(Log::default()));
    let version = pprof::version();
    let in_turn = || {
        pprof::with_version(version, || {
            while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                let mut log = Log::default();
                let worked = catch_unwind(AssertUnwindSafe(|| work(item, &mut log)));
                if let Err(panic) = worked {
                    let message = panic.downcast_ref::<String>().cloned();
                    log.differences.push(message.unwrap_or_else(|| "a panic without a message".into()));
                }
                whole.lock().unwrap().add(log);
            }
        });
    };
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(in_turn);
        }
    });
    whole.into_inner().unwrap()
}

/// Fails with the first differences, and lists the reasons for accepted differences.
fn assert_equal(title: &str, log: &Log) {
    log.print(title);
    if !log.differences.is_empty() {
        let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.txt", title.replace(' ', "-")));
        std::fs::write(&all, log.differences.join("\n")).unwrap();
        let shown = log.differences.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
        panic!(
            "{title}: {} comparisons differ (all of them: {})\n{shown}\nallowed for:\n- {}",
            log.differences.len(),
            all.display(),
            exceptions::REASONS.join("\n- "),
        );
    }
}

#[test]
fn reports_about_the_corpus_equal_pprofs() {
    let mut whole = Log::default();
    let pairs = corpus();
    for (pair, questions) in pairs.iter().zip(questions(&pairs)) {
        let log = examine_each(&questions, |question, log| examine(pair, question, log));
        log.print(&pair.name);
        assert!(log.rows >= LEAST_ROWS_PER_PAIR, "{}: only {} rows were compared", pair.name, log.rows);
        whole.add(log);
    }
    assert_equal("the corpus", &whole);
}

/// Valid profiles with features that no profile of the corpus has.
#[test]
fn reports_about_generated_profiles_equal_pprofs() {
    let mut whole = Log::default();
    let pairs = generated_pairs();
    for (pair, questions) in pairs.iter().zip(questions(&pairs)) {
        let log = examine_each(&questions, |question, log| examine(pair, question, log));
        log.print(&pair.name);
        whole.add(log);
    }
    assert_equal("generated profiles", &whole);
    assert!(whole.rows >= LEAST_ROWS_PER_PAIR * pairs.len(), "only {} rows", whole.rows);
}

/// Large profiles of a real program, with a few questions each. pprof takes a quarter of a second per report at this
/// size.
#[test]
fn reports_about_the_go_compiler_equal_pprofs() {
    for pair in compiler::pairs() {
        let sample_type = &pair.common_sample_types().pop().unwrap().0;
        let is_chosen = |question: &Question| {
            let choice = question.choices.first().map_or("", |choice| choice.name);
            question.sample_type == *sample_type
                && match question.granularity {
                    Granularity::Functions => ["", "noinlines", "focus", "hide", "show_from"].contains(&choice),
                    Granularity::Lines => ["", "hide"].contains(&choice),
                    Granularity::Addresses => choice.is_empty(),
                    _ => false,
                }
                && question.choices.len() <= 1
        };
        let questions: Vec<Question> = pair.questions().into_iter().filter(is_chosen).collect();
        let log = examine_each(&questions, |question, log| examine(&pair, question, log));
        assert_equal(&pair.name, &log);
        assert!(log.rows >= 50 * LEAST_ROWS_PER_PAIR, "{}: only {} rows were compared", pair.name, log.rows);
    }
}

#[test]
fn several_files_per_side_are_summed_as_in_pprof() {
    let questions = |pair: &Pair, log: &mut Log| {
        for granularity in Granularity::ALL {
            examine_sums(pair, &pair.plain(granularity), log);
        }
    };
    assert_equal("several files", &examine_each(&corpus(), questions));
}

#[test]
fn call_graph_nodes_and_edges_equal_pprofs() {
    let log = examine_each(&corpus(), pictures::examine_graphs);
    assert_equal("call graphs", &log);
    assert!(log.rows >= 30_000, "only {} nodes and edges were compared", log.rows);
}

#[test]
fn call_graph_deltas_equal_pprofs() {
    let log = examine_each(&corpus(), pictures::examine_graph_of_diff);
    assert_equal("call graphs of diffs", &log);
    assert!(log.rows >= 2_000, "only {} nodes and edges were compared", log.rows);
}

/// Runs `examine` on each pair, and fails if it compared fewer than `least` rows.
fn assert_same(title: &str, pairs: &[Pair], least: usize, examine: fn(&Pair, &mut Log)) {
    let log = examine_each(pairs, examine);
    assert_equal(title, &log);
    assert!(log.rows >= least, "{title}: only {} rows were compared", log.rows);
}

fn corpus_and_generated() -> Vec<Pair> {
    corpus().into_iter().chain(generated_pairs()).collect()
}

#[test]
fn means_equal_pprofs() {
    assert_same("means", &corpus_and_generated(), 4_000, pprof_compat::examine_mean);
}

#[test]
fn drop_negative_omits_the_frames_that_pprof_omits() {
    assert_same("without negative", &corpus_and_generated(), 2_000, pprof_compat::examine_without_negative);
}

#[test]
fn relative_percentages_use_the_same_total_as_pprof() {
    assert_same("relative percentages", &corpus_and_generated(), 300, pprof_compat::examine_relative);
}

#[test]
fn values_in_a_given_unit_are_formatted_as_in_pprof() {
    assert_same("units", &corpus_and_generated(), 3_000, pprof_compat::examine_units);
}

/// Generated profiles are excluded: their ids have gaps, which pprof prints, while pprofdiff numbers from 1.
#[test]
fn raw_and_comments_equal_pprofs() {
    assert_same("raw and comments", &corpus(), 7_000, pprof_compat::examine_outputs);
}

/// Generated profiles are excluded: pprof trims graphs by a sum that negative values distort.
#[test]
fn call_tree_nodes_and_edges_equal_pprofs() {
    assert_same("call trees", &corpus(), 20_000, pictures::examine_call_trees);
}

#[test]
fn pgo_weights_equal_what_the_go_compiler_reads() {
    let pair = corpus().into_iter().find(|pair| pair.name == "story-cpu").expect("the story's profiles");
    pprof_compat::examine_weights(&pair);
}

#[test]
fn every_option_in_pprofs_help_is_known() {
    for version in VERSIONS {
        pprof::with_version(version, pprof_compat::examine_help);
    }
}

const VERSIONS: [Version; 2] = [Version::Toolchain, Version::Newest];

/// Compares a fifth of each pair's questions with the newest pprof, and all behaviour that has changed since the
/// version in the toolchain.
#[test]
#[ignore = "slow; `tests/run all` runs it"]
fn output_equals_the_newest_pprof() {
    pprof::with_version(Version::Newest, || {
        let pairs = corpus_and_generated();
        let questions = questions(&pairs);
        let asked: Vec<(&Pair, &Question)> = pairs
            .iter()
            .zip(&questions)
            .flat_map(|(pair, all)| all.iter().step_by(5).map(move |q| (pair, q)))
            .collect();
        let mut log = examine_each(&asked, |(pair, question), log| examine(pair, question, log));
        let ask: [fn(&Pair, &mut Log); 5] = [
            pprof_compat::examine_mean,
            pprof_compat::examine_outputs,
            pictures::examine_callgrind,
            pictures::examine_listings,
            pictures::examine_graph_of_diff,
        ];
        for examine in ask {
            log.add(examine_each(&corpus(), examine));
        }
        assert_equal("the newest pprof", &log);
        assert!(log.rows >= 100_000, "only {} rows were compared", log.rows);
    });
}

/// Checks all behaviour that differs between the toolchain's pprof and the newest.
#[test]
fn output_equals_the_newest_pprof_where_versions_differ() {
    for version in VERSIONS {
        pprof::with_version(version, newest::examine_differences);
    }
}

#[test]
fn all_frames_equals_pprof() {
    let examine = || assert_same("all frames", &corpus_and_generated(), 100, newest::examine_all_frames);
    pprof::with_version(Version::Newest, examine);
    assert!(newest::CHANGED.load(Ordering::Relaxed) > 0, "no profile has frames that are dropped");
}

#[test]
fn callgrind_costs_and_calls_equal_pprofs() {
    let log = examine_each(&corpus(), pictures::examine_callgrind);
    assert_equal("callgrind", &log);
    assert!(log.rows >= 10_000, "only {} costs and calls were compared", log.rows);
}

#[test]
fn source_line_costs_equal_pprofs() {
    let log = examine_each(&corpus(), pictures::examine_listings);
    assert_equal("listings", &log);
    assert!(log.rows >= 500, "only {} lines were compared", log.rows);
}

#[test]
fn the_default_sample_type_equals_pprofs() {
    let compare = |pair: &Pair, log: &mut Log| {
        let (base, new) = (&*pair.base.path, &*pair.new.path);
        for subject in [Subject::One(base), Subject::One(new), Subject::Two { base, new }] {
            let ours: serde_json::Value = serde_json::from_str(&command::run(&["top"], subject, &[])).unwrap();
            let theirs = pprof::report_of_command_line("top", subject, &[]);
            let same = theirs.lines().any(|line| line.strip_prefix("Type: ") == ours["sample_type"].as_str());
            log.equal(same.into(), 1, "sample type", || command::command_line(&["top"], subject, &[]));
        }
    };
    assert_equal("default sample types", &examine_each(&corpus(), compare));
}

/// Covers sides with different sample types, types in another order or listed twice, any default type, and sides of
/// several files.
#[test]
fn the_default_sample_type_of_sides_with_different_types_equals_pprofs() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("types");
    std::fs::create_dir_all(&folder).unwrap();
    let mut files = Vec::new();
    for types in ["a b c", "c b a", "a b", "b c x", "b", "a a b", "c a b c"] {
        for default in ["", "b", "c", "x"] {
            let names: Vec<&str> = types.split(' ').collect();
            let file = folder.join(format!("{}-{default}.pb", names.concat()));
            std::fs::write(&file, generated::with_types(&names, default)).unwrap();
            files.push((file, names.iter().collect::<HashSet<_>>().len() == names.len()));
        }
    }
    let pairs: Vec<(usize, usize)> =
        (0..files.len()).flat_map(|b| (0..files.len()).map(move |n| (b, n))).step_by(7).collect();
    let compare = |&(b, n): &(usize, usize), log: &mut Log| {
        let ((base, _), (new, new_once), (more, more_once)) = (&files[b], &files[n], &files[(b + n) % files.len()]);
        let several = [&**new, &**more];
        let mut subjects = vec![Subject::One(new), Subject::Two { base, new }];
        // A side with a repeated type is skipped here. pprof merges several files wrongly if a type occurs twice in one
        // of them and is missing in another: it treats the type as common to both.
        if *new_once && *more_once {
            subjects.push(Subject::Several { base, new: &several });
        }
        for subject in subjects {
            let ours: serde_json::Value = serde_json::from_str(&command::run(&["top"], subject, &[])).unwrap();
            let theirs = pprof::report_of_command_line("top", subject, &[]);
            let same = theirs.lines().any(|line| line.strip_prefix("Type: ") == ours["sample_type"].as_str());
            log.equal(same.into(), 1, "sample type", || command::command_line(&["top"], subject, &[]));
        }
    };
    assert_equal("default sample types of other types", &examine_each(&pairs, compare));
}

#[test]
fn a_written_diff_is_read_alike_by_pprof_and_pprofdiff() {
    let pairs: Vec<Pair> = corpus().into_iter().chain(generated_pairs()).collect();
    assert_equal("written diffs", &examine_each(&pairs, written::examine_written_diff));
}

#[test]
fn normalized_values_equal_pprofs_within_rounding() {
    let pairs = corpus();
    assert_equal("normalized", &examine_each(&pairs, written::examine_normalized));
}

/// To save time, the other tests run pprof in its interactive mode and call the command as a function. Users run both
/// as processes, with options on the command line. The output must be the same.
#[test]
fn both_tools_give_the_same_output_as_separate_processes() {
    let compare_processes = |pair: &Pair, log: &mut Log| {
        let subject = Subject::Two { base: &pair.base.path, new: &pair.new.path };
        let (questions, n) = (pair.questions(), if is_exhaustive() { 8 } else { 4 });
        for question in questions.iter().step_by(questions.len() / n + 1) {
            let words = question.to_pprof_args();
            for command in ["top", "peek .", "tags", "traces"] {
                let in_a_session = reports::rows(command, &pprof::report(command, subject, &words));
                let alone = reports::rows(command, &pprof::report_of_command_line(command, subject, &words));
                log.compare(in_a_session, alone, || pprof::command_line(command, subject, &words));
            }
            let words = question.to_our_args();
            for view in ["top", "tree", "labels", "stacks"] {
                let same = command::run(&[view], subject, &words) == command::run_binary(&[view], subject, &words);
                log.equal(same.into(), 1, view, || command::command_line(&[view], subject, &words));
            }
        }
    };
    assert_equal("as processes", &examine_each(&corpus(), compare_processes));
}

/// Changes one number in one report by one, for every comparison, and expects a difference. The change is made in the
/// tools' output, so this also detects a report that is parsed wrongly and compared with nothing.
#[test]
fn an_off_by_one_error_in_any_number_is_detected() {
    let pair = corpus().into_iter().find(Pair::has_labels).expect("a pair whose sides both have labels");
    let mut sound = Log { kept: Some(Vec::new()), ..Log::default() };
    examine(&pair, &pair.plain(Granularity::Functions), &mut sound);
    assert_equal("without an error", &sound);
    assert!(sound.comparisons >= 18, "only {} comparisons", sound.comparisons);

    for (ours, theirs) in sound.kept.unwrap() {
        assert!(!ours.is_empty(), "nothing to compare with {theirs:?}");
        for (row, number) in
            ours.iter().enumerate().flat_map(|(row, entry)| (0..entry.numbers.len()).map(move |n| (row, n)))
        {
            let mut wrong = ours.clone();
            wrong[row].numbers[number] += 1;
            let mut log = Log::default();
            log.compare(wrong, theirs.clone(), String::new);
            assert_eq!(log.differences.len(), 1, "an error in {} was not found", ours[row]);
        }
    }
}
