//! Token costs of texts, the places where texts are cut, and the guarantee that a larger budget never shows less.

#![allow(clippy::unwrap_used)]

use pprofdiff::list::SourceDirs;
use pprofdiff::{Diff, LoadOptions, Profile, Query, Sort};
use pprofdiff_series::fleet::Fleet;

use super::{MIN_BUDGET, TokenBudget, text_head};
use crate::explain::pair_causes;
use crate::tokens::tokens;
use crate::{CheckOptions, Format, Registry, Report, Request, View, ViewOptions};

#[test]
fn digits_signs_and_half_words_are_counted() {
    for (text, count) in
        [("", 0), ("a", 1), ("abc", 2), ("aBCd", 4), ("1234", 4), ("a b", 3), ("a   b", 4), ("::", 2), ("é", 2)]
    {
        assert_eq!(tokens(text), count, "{text:?}");
    }
}

#[test]
fn a_head_has_whole_lines_and_counts_the_missing_lines() {
    let text = &"a line of words\n".repeat(20);
    assert_eq!(text_head(text, tokens(text)), *text);
    assert_eq!(tokens("a line of words\n"), 11);
    let two_lines = "a line of words\na line of words\n18 lines more: ask with a larger budget\n";
    assert_eq!(text_head(text, tokens(two_lines)), two_lines);
    for text in [text, &"x".repeat(1000), &"é\n".repeat(100)] {
        for budget in 0..100 {
            assert!(tokens(&text_head(text, budget)) <= budget, "{budget}");
        }
    }
    assert_eq!(text_head(&"x".repeat(1000), 10), "xxxxxxxxxxxx...\n");
}

/// A deterministic pseudorandom generator.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn text(&mut self, letters: &[u8], length: u64) -> String {
        (0..length).map(|_| letters[self.below(letters.len() as u64) as usize] as char).collect()
    }

    /// Returns the name of a folder as `mktemp` makes it, or a longer name.
    fn folder(&mut self) -> String {
        let letters = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
        let parts = 1 + self.below(5);
        let part = |_| {
            let max_length = [3, 12, 40, 120][self.below(4) as usize];
            let length = 1 + self.below(max_length);
            format!("/{}", self.text(letters, length))
        };
        (0..parts).map(part).collect()
    }

    /// Builds a profile of some functions, with costs of many magnitudes. The new side has other costs and one more
    /// function.
    fn profile(&mut self, name: &str, seed: u64, is_new: bool) -> Profile {
        let mut shared = RandomNumbers(seed);
        let functions: Vec<String> = (0..3 + shared.below(20))
            .map(|i| {
                let length = 1 + shared.below(40);
                format!("main.{}{i}", shared.text(b"abcdefgh.ABC(*)", length))
            })
            .collect();
        let stacks = (0..5 + shared.below(30)).map(|i| {
            let stack: Vec<&str> = (0..1 + shared.below(5))
                .map(|_| functions[shared.below(functions.len() as u64) as usize].as_str())
                .collect();
            let cost = 10u64.pow(shared.below(8) as u32) * (1 + shared.below(9));
            let cost = if is_new { cost * (1 + self.below(3)) + i } else { cost };
            format!("{} {cost}\n", stack.join(";"))
        });
        let mut text: String = stacks.collect();
        text.push_str(if is_new { "main.run;main.added 50000\n" } else { "main.run 7000\n" });
        pprofdiff::from_bytes(name, text.as_bytes(), &LoadOptions::default()).unwrap()
    }
}

const BUDGETS: [usize; 14] = [100, 125, 150, 180, 220, 270, 330, 400, 500, 700, 1_000, 1_500, 2_500, 5_000];

#[test]
fn a_larger_budget_never_shows_fewer_lines_for_any_folder_name() {
    let registry = Registry::standard();
    let text = registry.format("text").unwrap();
    let mut numbers = RandomNumbers(1);
    let mut cut = 0;
    for folder in 0..200 {
        let dir = numbers.folder();
        let [base, new] = ["base", "new"].map(|side| format!("{dir}/cpu.{side}.folded"));
        let sides = [(&base, false), (&new, true)].map(|(name, is_new)| numbers.profile(name, folder, is_new));
        let [base_profile, new_profile] = sides;
        let diff = Diff::between(base_profile, new_profile).unwrap();
        let regex = || ".".to_owned();
        let rules = ["total>+5%", "cum:any>+1%", "flat:any>+1%"].map(str::to_owned).to_vec();
        for view in [
            View::Top { sort: Sort::Flat, limit: None, significant: false },
            View::Peek { regex: regex(), sort: Sort::Cum, limit: None },
            View::List { regex: regex(), sources: SourceDirs::default(), limit: None },
            View::Check(CheckOptions { fail_on: rules, ..CheckOptions::default() }),
            View::Explain(Default::default()),
            View::Info,
        ] {
            let request = Request { query: Query::default(), view };
            let report = request.for_format(text, &registry).unwrap().answer(&diff).unwrap();
            let call = format!("Next: tool {{\"diff\":\"d1\",\"regex\":\"{}\"}}", numbers.text(b"a.^$", 20));
            let shell = format!("{call} or in a shell: pprofdiff tool {base} {new}");
            let hint = "no source was found: set the folders with base_source and new_source";
            let endings = [
                "\nNext: tool\n".to_owned(),
                format!("\n{call}\n"),
                format!("\n{hint}\n\n{call}\n"),
                format!("\n{hint}\n\n{shell}\n"),
            ];
            let mut last = (0, String::new());
            for budget in BUDGETS {
                let answer = report.text_within(budget, &endings).unwrap();
                assert!(tokens(&answer) <= budget, "{} of {budget} tokens, {dir}:\n{answer}", tokens(&answer));
                assert!(answer.lines().last().is_some_and(|line| line.starts_with("Next: ")), "{answer}");
                let lines = answer.lines().count();
                let (before, shorter) = &last;
                assert!(lines >= *before, "{dir}: {budget} has {lines} lines after {before}\n{shorter}\n\n{answer}");
                cut += usize::from(answer.contains("more: ask with a larger budget"));
                last = (lines, answer);
            }
        }
    }
    assert!(cut > 3_000, "only {cut} answers were cut");
}

/// Budgets from the smallest, closer to each other where a token decides.
fn budgets() -> impl Iterator<Item = usize> {
    (MIN_BUDGET..200).step_by(3).chain((200..1000).step_by(41)).chain((1000..=5000).step_by(571))
}

/// Checks the texts of a report within all budgets. Returns the number of texts that lack parts, and the number of
/// minimal texts.
fn check_budgets(report: &Report, format: &Format, name: &str) -> (usize, usize) {
    let endings = [String::new(), "\nexplain: one line about the cause\n".to_owned()];
    let (mut lines, mut shortened, mut minimal) = (0, 0, 0);
    for budget in budgets() {
        let within = TokenBudget { tokens: budget, advice: "set a larger --budget", endings: &endings };
        let text = report.within(format, &within).unwrap();
        let name = format!("{name} as {} in {budget}", format.name);
        assert!(tokens(&text) <= budget, "{name} has {} tokens:\n{text}", tokens(&text));
        let n_lines = text.lines().filter(|line| !line.is_empty()).count();
        assert!(text.ends_with('\n') && n_lines >= lines, "{name} has fewer lines:\n{text}");
        lines = n_lines;
        // Only the minimal text contains a part of a line.
        let is_minimal = text.lines().any(|line| line.ends_with("..."));
        assert!(!is_minimal || lines == 1, "{name} cuts a line:\n{text}");
        shortened += usize::from(text.contains("more: set a larger --budget"));
        minimal += usize::from(is_minimal);
    }
    (shortened, minimal)
}

#[test]
fn each_view_fits_each_budget_as_text_and_as_markdown() {
    let registry = Registry::standard();
    let mut numbers = RandomNumbers(7);
    let (mut shortened, mut minimal, mut n_reports) = (0, 0, 0);
    for seed in 0..6 {
        let dir = numbers.folder();
        let [base, new] =
            [false, true].map(|is_new| numbers.profile(&format!("{dir}/cpu.{is_new}.folded"), seed, is_new));
        let diff = Diff::between(base, new).unwrap();
        let rules = ["total>+5%", "cum:any>+1%", "flat:any>+1%"].map(str::to_owned).to_vec();
        let check = View::Check(CheckOptions { fail_on: rules, ..CheckOptions::default() });
        let options = || ViewOptions { regex: "main".to_owned(), ..ViewOptions::default() };
        let views = registry.views().iter().filter_map(|spec| spec.view.map(|view| view(options())));
        for view in views.chain([check, View::Comments, View::Raw]) {
            let name = view.name();
            for format in ["text", "markdown"].map(|format| registry.format(format).unwrap()) {
                let request = Request { query: Query::default(), view: view.clone() };
                let Ok(request) = request.for_format(format, &registry) else { continue };
                let Ok(report) = request.answer(&diff) else { continue };
                let (cut, least) = check_budgets(&report, format, name);
                (shortened, minimal, n_reports) = (shortened + cut, minimal + least, n_reports + 1);
            }
        }
    }
    assert!(n_reports > 100 && shortened > 2_500 && minimal < shortened, "{n_reports} {shortened} {minimal}");
}

#[test]
fn a_ranking_loses_rows_and_counts_them() {
    let registry = Registry::standard();
    let (mut numbers, mut fleet) = (RandomNumbers(3), Fleet::default());
    for seed in 0..30 {
        let [base, new] = [false, true].map(|is_new| numbers.profile("cpu.folded", seed, is_new));
        let diff = Diff::between(base, new).unwrap();
        fleet.push(&format!("pair {seed}"), pair_causes(&diff, &Query::default()));
    }
    let report = Report::Ranking(Box::new(fleet.ranking(0.05).unwrap()));
    for format in ["text", "markdown"].map(|format| registry.format(format).unwrap()) {
        let (shortened, _) = check_budgets(&report, format, "ranking");
        assert!(shortened > 10, "{shortened} texts of a ranking lack rows");
    }
    let within = TokenBudget { tokens: 600, advice: "set a larger --budget", endings: &[] };
    let text = report.within(registry.format("text").unwrap(), &within).unwrap();
    assert!(text.contains(" rows more: set a larger --budget\n"), "{text}");
}

#[test]
fn data_refuses_a_budget() {
    let registry = Registry::standard();
    for format in registry.formats() {
        match (format.name, format.check_budget()) {
            ("text" | "markdown", Ok(())) => {}
            (name, Err(e)) => assert!(e.to_string().contains(name) && e.to_string().contains("budget"), "{e}"),
            (name, Ok(())) => panic!("{name} accepts a budget"),
        }
    }
}

/// The first row of a table needs its head, which is long. Before them comes one line with the row's frame and cost.
#[test]
fn the_first_row_comes_before_warnings_and_the_head_of_a_table() {
    let mut numbers = RandomNumbers(7);
    let sides = [("base", false), ("new", true)].map(|(name, is_new)| numbers.profile(name, 3, is_new));
    let [base, new] = sides;
    let diff = Diff::between(base, new).unwrap();
    let text = Registry::standard();
    let text = text.format("text").unwrap();
    let peeked = |regex: &str| View::Peek { regex: regex.to_owned(), sort: Sort::Cum, limit: None };
    for view in [View::Top { sort: Sort::Flat, limit: None, significant: false }, peeked(".")] {
        let registry = Registry::standard();
        let request = Request { query: Query::default(), view }.for_format(text, &registry).unwrap();
        let Report::Table(mut table) = request.answer(&diff).unwrap() else { panic!("no table") };
        std::sync::Arc::make_mut(&mut table.summary).warnings = vec!["a warning".repeat(20), "another".to_owned()];
        let report = Report::Table(table);
        let answers: Vec<String> = budgets().map(|budget| report.text_within(budget, &[]).unwrap()).collect();
        let with_line = answers.iter().find(|text| text.lines().count() == 3).unwrap();
        let lines: Vec<&str> = with_line.lines().collect();
        let (name, values) = lines[1].split_once(": ").unwrap();
        assert!(!name.is_empty() && values.contains(" -> ") && !lines[1].contains("warning"), "{with_line}");
        assert!(lines[2].contains(" and 2 warnings more: ask with a larger budget"), "{with_line}");
        // The warnings come with the rows.
        let first_with_head = answers.iter().find(|text| text.contains("base  ")).unwrap();
        assert!(first_with_head.contains("warning: another\n"), "{first_with_head}");
    }
}
