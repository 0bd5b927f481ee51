//! Invariants of a check's verdict over thousands of random cases. A pass means that no limit is exceeded. Neither a
//! stricter limit nor another rule turns a failure into a pass. Another rule makes a failure inconclusive only if the
//! answer names the correction. Adding a run does not hide a large change, but may
//! bring a small one within the limit. A simple computation from the drawn values decides whether a limit is exceeded.

use std::collections::BTreeMap;
use std::sync::Arc;

use pprofdiff::check::{CheckPolicy, Outcome, Rules};
use pprofdiff::{Diff, Profile, Query};
use pprofdiff_explain::{ExplainOptions, ExplainedCheck};
use pprofdiff_report::Report;

use crate::synthetic::{profile, stacks};
use crate::verdict::Random;

/// The minimum share of the total, in percent, for a frame to be compared: the default of rules on each frame.
const FLOOR: f64 = 1.0;

impl Random {
    /// Returns a number between 0 and 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.below(1 << 30) as f64 + 0.5) / (1u64 << 30) as f64
    }

    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    pub(crate) fn poisson(&mut self, mean: f64) -> i64 {
        if mean > 100.0 {
            return (mean + mean.sqrt() * self.normal()).round().max(0.0) as i64;
        }
        let (mut n, mut product) = (0, self.uniform());
        while product > (-mean).exp() {
            n += 1;
            product *= self.uniform();
        }
        n
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// A program to draw runs from: the expected samples of each function in a run of the base and of the new side, and the
/// variance between runs.
struct Population {
    means: [Vec<f64>; 2],
    tau: f64,
}

impl Population {
    fn random(random: &mut Random) -> Population {
        let functions = 2 + random.below(20);
        let samples = random.one_of(&[100.0, 400.0, 2000.0, 10_000.0]);
        let weights: Vec<f64> = (0..functions).map(|_| (2.0 * random.normal()).exp()).collect();
        let total: f64 = weights.iter().sum();
        let base: Vec<f64> = weights.iter().map(|weight| samples * weight / total).collect();
        let part = random.one_of(&[0.0, 0.2, 1.0]);
        let mut factor = || match random.uniform() < part {
            true => random.one_of(&[0.0, 0.5, 1.1, 1.3, 2.0, 3.3, 7.0]),
            false => 1.0,
        };
        let changed: Vec<f64> = base.iter().map(|mean| mean * factor()).collect();
        // If hardly any samples are expected, the new side would have no profiles, so it does not change.
        let new = if changed.iter().sum::<f64>() < 5.0 { base.clone() } else { changed };
        Population { means: [base, new], tau: random.one_of(&[0.0, 0.02, 0.07, 0.2, 0.5]) }
    }

    /// Draws the samples of each function in one run.
    fn draw(&self, side: usize, random: &mut Random) -> Vec<i64> {
        let mut one = |mean: &f64| {
            let mean = mean * (self.tau * random.normal()).exp();
            random.poisson(mean)
        };
        self.means[side].iter().map(&mut one).collect()
    }

    /// Draws runs that have samples, because a side of empty profiles is an error.
    fn runs(&self, side: usize, n: usize, random: &mut Random) -> Vec<Vec<i64>> {
        let mut run = || loop {
            let drawn = self.draw(side, random);
            if drawn.iter().sum::<i64>() > 0 {
                return drawn;
            }
        };
        (0..n).map(|_| run()).collect()
    }
}

/// Converts a run to a profile: function i is `pkg.f<i>`, called by `main.main`, with samples of 10 ms.
fn profile_of_run(run: &[i64]) -> Arc<Profile> {
    let names: Vec<String> = (0..run.len()).map(|i| format!("pkg.f{i}")).collect();
    let samples = names.iter().zip(run).filter(|(_, n)| **n > 0);
    let samples: Vec<_> =
        samples.map(|(name, &n)| (vec!["main.main", name.as_str()], vec![n, n * 10_000_000])).collect();
    profile(&stacks(&[("samples", "count"), ("cpu", "nanoseconds")], &samples))
}

fn check(base: &[Vec<i64>], new: &[Vec<i64>], rules: &[String], how: CheckPolicy) -> ExplainedCheck {
    let [base, new] = [base, new].map(|side| side.iter().map(|run| profile_of_run(run)).collect::<Vec<_>>());
    let mut all = Rules::default();
    rules.iter().for_each(|rule| all.fail_on(rule).unwrap());
    all.policy = how;
    pprofdiff_explain::check(&all, &ExplainOptions::default(), &Diff::new(&base, &new).unwrap(), &Query::default())
        .unwrap()
}

fn median(mut values: Vec<i64>) -> f64 {
    values.sort_unstable();
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) as f64 / 2.0
}

/// A rule's limit, and a simple computation of a median's distance above it, in nanoseconds.
#[derive(Clone, Copy, Debug)]
enum Limit {
    Growth(i32),
    Increase(i32),
    Value(i32),
    Share(i32),
}

impl Limit {
    fn random(random: &mut Random) -> Limit {
        let size = random.one_of(&[0, 1, 5, 20, 50, 100, 300]);
        match random.below(4) {
            0 | 1 => Limit::Growth(random.one_of(&[size, size, size, -size])),
            2 => Limit::Increase(10 * size),
            _ => random.one_of(&[Limit::Value(100 * size), Limit::Share(size.min(90))]),
        }
    }

    /// Returns the limit in the syntax of a rule.
    fn text(self) -> String {
        match self {
            Limit::Growth(percent) => format!("{percent:+}%"),
            Limit::Increase(ms) => format!("{ms:+}ms"),
            Limit::Value(ms) => format!("{ms}ms"),
            Limit::Share(percent) => format!("{percent}%"),
        }
    }

    fn with(self, size: i32) -> Limit {
        match self {
            Limit::Growth(_) => Limit::Growth(size),
            Limit::Increase(_) => Limit::Increase(size),
            Limit::Value(_) => Limit::Value(size),
            Limit::Share(_) => Limit::Share(size),
        }
    }

    /// Returns the distance of the new side's samples above the limit. `totals` are the totals of the new side's runs.
    fn excess(self, base: &[i64], new: &[i64], totals: &[i64]) -> f64 {
        let (before, after) = (median(base.to_vec()), median(new.to_vec()));
        match self {
            Limit::Growth(percent) => after - before * (1.0 + f64::from(percent) / 100.0),
            Limit::Increase(ms) => after - before - f64::from(ms) / 10.0,
            Limit::Value(ms) => after - f64::from(ms) / 10.0,
            // Shares are compared by their median. The sign of the result is enough here.
            Limit::Share(percent) => {
                let mut above: Vec<f64> = new
                    .iter()
                    .zip(totals)
                    .map(|(&v, &total)| v as f64 / total as f64 - f64::from(percent) / 100.0)
                    .collect();
                above.sort_by(f64::total_cmp);
                above[(above.len() - 1) / 2] + above[above.len() / 2]
            }
        }
    }
}

/// The subject of a rule. The cum of `main.main` is the total, so `cum:any` compares it too.
#[derive(Clone, Copy, Debug)]
enum Subject {
    Total,
    FlatAny,
    CumAny,
    Each,
    Together,
}

const SUBJECTS: [Subject; 5] = [Subject::Total, Subject::FlatAny, Subject::CumAny, Subject::Each, Subject::Together];

impl Subject {
    fn rule(self, limit: Limit) -> String {
        let subject = match self {
            Subject::Total => "total",
            Subject::FlatAny => "flat:any",
            Subject::CumAny => "cum:any",
            Subject::Each => "flat:each=^pkg",
            Subject::Together => "cum:regex=^pkg",
        };
        format!("{subject}>{}", limit.text())
    }

    fn allows(self, limit: Limit) -> bool {
        !matches!((self, limit), (Subject::Total, Limit::Share(_)))
    }

    /// Returns the subjects that the rule compares, each with its distance above the limit.
    fn excesses(self, limit: Limit, base: &[Vec<i64>], new: &[Vec<i64>]) -> BTreeMap<Option<String>, f64> {
        let column = |side: &[Vec<i64>], i: usize| side.iter().map(|run| run[i]).collect::<Vec<_>>();
        let totals = |side: &[Vec<i64>]| side.iter().map(|run| run.iter().sum()).collect::<Vec<i64>>();
        let (total_base, total_new) = (totals(base), totals(new));
        let mut all = BTreeMap::new();
        let is_of_each = matches!(self, Subject::FlatAny | Subject::CumAny | Subject::Each);
        if is_of_each {
            for i in 0..base[0].len() {
                let (b, n) = (column(base, i), column(new, i));
                let reaches =
                    |side: &[i64], total: &[i64]| 100.0 * median(side.to_vec()) >= FLOOR * median(total.to_vec());
                if b.iter().chain(&n).any(|&v| v != 0) && (reaches(&b, &total_base) || reaches(&n, &total_new)) {
                    all.insert(Some(format!("pkg.f{i}")), limit.excess(&b, &n, &total_new));
                }
            }
        }
        if !matches!(self, Subject::FlatAny | Subject::Each) {
            let name = is_of_each.then(|| "main.main".to_owned());
            all.insert(name, limit.excess(&total_base, &total_new, &total_new));
        }
        all
    }
}

/// One random case: a program, its runs, and a rule.
struct Case {
    base: Vec<Vec<i64>>,
    new: Vec<Vec<i64>>,
    subject: Subject,
    limit: Limit,
}

impl Case {
    fn random(random: &mut Random) -> Case {
        let population = Population::random(random);
        let (m, n) = (1 + random.below(4), 1 + random.below(4));
        let (base, new) = (population.runs(0, m, random), population.runs(1, n, random));
        loop {
            let (subject, limit) = (random.one_of(&SUBJECTS), Limit::random(random));
            if subject.allows(limit) {
                return Case { base, new, subject, limit };
            }
        }
    }

    fn check(&self, how: CheckPolicy) -> ExplainedCheck {
        check(&self.base, &self.new, &[self.subject.rule(self.limit)], how)
    }

    fn describe(&self) -> String {
        format!("{} of {:?} -> {:?}", self.subject.rule(self.limit), self.base, self.new)
    }
}

fn cases(seed: u64, n: usize) -> impl Iterator<Item = (Case, Random)> {
    let mut random = Random(seed);
    (0..n).map(move |_| (Case::random(&mut random), Random(random.below(usize::MAX) as u64 | 1)))
}

#[test]
#[ignore = "slow; `tests/run all` runs it"]
fn a_pass_means_that_no_limit_is_exceeded_and_the_worst_finding_comes_first() {
    let mut outcomes: BTreeMap<Outcome, usize> = BTreeMap::new();
    for (case, _) in cases(11, 2500) {
        let report = case.check(CheckPolicy::default());
        let excesses = case.subject.excesses(case.limit, &case.base, &case.new);
        let exceeding = excesses.iter().filter(|(_, excess)| **excess > 0.0).count();
        assert_eq!(report.verdict == Outcome::Pass, exceeding == 0, "{} {report:?}", case.describe());
        *outcomes.entry(report.verdict).or_default() += 1;
        let rule = &report.rules[0];
        assert_eq!(rule.compared, excesses.len(), "{}", case.describe());
        let reported = |f: &&pprofdiff::check::Finding| f.outcome != Outcome::Pass;
        assert_eq!(rule.findings.iter().filter(reported).count(), exceeding, "{}", case.describe());
        assert_eq!(report.exceeds_a_limit(), exceeding > 0);
        // Sorted by outcome, then by the excess over the limit.
        for pair in rule.findings.windows(2) {
            let key = |f: &pprofdiff::check::Finding| (f.outcome, f.excess);
            assert!(key(&pair[0]) >= key(&pair[1]), "{}", case.describe());
        }
        if matches!(case.limit, Limit::Share(_)) {
            continue;
        }
        for f in rule.findings.iter().filter(reported) {
            let excess = 1e7 * excesses[&f.frame];
            assert!((f.excess - excess).abs() <= 1e-6 * excess.abs().max(1e7), "{} {f:?}", case.describe());
        }
    }
    assert!(outcomes.len() == 3 && outcomes.values().all(|n| *n > 300), "the cases are lopsided: {outcomes:?}");
}

#[test]
#[ignore = "slow; `tests/run all` runs it"]
fn a_stricter_limit_never_passes_where_a_looser_limit_does_not() {
    for (case, mut random) in cases(12, 400) {
        let sizes: Vec<i32> = match case.limit {
            Limit::Growth(_) => vec![-90, -50, -5, 0, 1, 20, 100, 400],
            Limit::Share(_) => vec![0, 5, 20, 60, 90],
            _ => vec![0, 5, 50, 400, 4000, 40_000],
        };
        let how = CheckPolicy::default().with_require_power(random.below(2) == 0);
        let verdicts: Vec<Outcome> = sizes
            .iter()
            .map(|&size| check(&case.base, &case.new, &[case.subject.rule(case.limit.with(size))], how).verdict)
            .collect();
        for pair in verdicts.windows(2) {
            let [strict, loose] = pair else { continue };
            assert!(*strict != Outcome::Pass || *loose == Outcome::Pass, "{verdicts:?} {how:?} {}", case.describe());
            assert!(*loose != Outcome::Fail || *strict == Outcome::Fail, "{verdicts:?} {how:?} {}", case.describe());
        }
    }
}

/// Two runs of the base reveal little about noise that differs between functions. If all functions grew, a limit that
/// chance could exceed and a limit far above it must not have opposite verdicts.
#[test]
fn a_stricter_limit_does_not_pass_where_every_function_grew() {
    let mut random = Random(16);
    for case in 0..300 {
        let functions: Vec<(f64, f64)> = (0..10 + random.below(20))
            .map(|_| (20.0 + 180.0 * random.uniform(), random.one_of(&[0.0, 0.05, 0.4])))
            .collect();
        let factor = random.one_of(&[2.2, 3.3, 5.0]);
        let mut run = |factor: f64| -> Vec<i64> {
            let draw = |&(mean, tau): &(f64, f64)| {
                let mean = mean * factor * (tau * random.normal()).exp();
                random.poisson(mean)
            };
            functions.iter().map(draw).collect()
        };
        let (base, new) = (vec![run(1.0), run(1.0)], vec![run(factor)]);
        for size in [20, 50, 100] {
            let rule = Subject::Each.rule(Limit::Growth(size));
            let report = check(&base, &new, &[rule], CheckPolicy::default());
            assert_ne!(report.verdict, Outcome::Pass, "case {case}: {size} % of x{factor}: {base:?} {new:?}");
        }
    }
}

#[test]
#[ignore = "slow; `tests/run all` runs it"]
fn another_rule_never_turns_a_failure_into_a_pass() {
    for (case, mut random) in cases(13, 1000) {
        let alone = case.check(CheckPolicy::default()).verdict;
        let rule = case.subject.rule(case.limit);
        let others = (0..1 + random.below(5)).map(|_| {
            let subject = random.one_of(&SUBJECTS[1..]);
            subject.rule(Limit::random(&mut random))
        });
        let rules: Vec<String> = std::iter::once(rule).chain(others).collect();
        let report = check(&case.base, &case.new, &rules, CheckPolicy::default());
        assert!(alone == Outcome::Pass || report.verdict != Outcome::Pass, "{rules:?} {}", case.describe());
        assert_eq!(alone == Outcome::Pass, report.rules[0].outcome == Outcome::Pass, "{rules:?} {}", case.describe());
    }
}

/// The rules of a check share its error rate. A rule may therefore become inconclusive, and the answer then names the
/// correction.
#[test]
fn another_rule_changes_a_verdict_only_if_the_answer_names_the_correction() {
    let (mut kept, mut corrected) = (0, 0);
    for (case, mut random) in cases(17, 1200) {
        let alone = case.check(CheckPolicy::default()).rules[0].outcome;
        if alone != Outcome::Fail {
            continue;
        }
        let others = (0..1 + random.below(5)).map(|_| {
            let subject = random.one_of(&SUBJECTS[1..]);
            subject.rule(Limit::random(&mut random))
        });
        let rules: Vec<String> = std::iter::once(case.subject.rule(case.limit)).chain(others).collect();
        let report = check(&case.base, &case.new, &rules, CheckPolicy::default());
        let (outcome, family) = (report.rules[0].outcome, report.rules[0].family);
        if outcome == alone {
            kept += 1;
            continue;
        }
        corrected += 1;
        assert_eq!(outcome, Outcome::Inconclusive);
        assert!(report.rules[0].p_limit.is_some_and(|limit| limit < 0.01), "{rules:?} {}", case.describe());
        let text = Report::Check(report).text_within(usize::MAX / 4, &[]).unwrap();
        assert!(text.contains(&format!(" of {family} rules, Holm")), "{text}");
    }
    assert!(kept > 100 && corrected > 0, "{kept} {corrected}");
}

/// A change far beyond the limit and the noise stays detected, even if more runs of the same program are added to
/// either side. This includes two runs.
#[test]
#[ignore = "slow; `tests/run all` runs it"]
fn another_run_of_the_same_program_never_hides_a_large_change() {
    let mut random = Random(14);
    for case in 0..200 {
        let functions = 4 + random.below(20);
        let base: Vec<f64> = (0..functions).map(|_| 200.0 + 800.0 * random.uniform()).collect();
        let factor = random.one_of(&[3.3, 7.0]);
        let new: Vec<f64> = base.iter().enumerate().map(|(i, v)| if i == 0 { v * factor } else { *v }).collect();
        let population = Population { means: [base, new], tau: random.one_of(&[0.0, 0.02, 0.07]) };
        let (all_base, all_new) = (population.runs(0, 5, &mut random), population.runs(1, 5, &mut random));
        let rule = random.one_of(&["flat:each=^pkg.f0$>+20%", "cum:any>+20%", "flat:regex=^pkg.f0$>+20%"]).to_owned();
        for (m, n) in [(1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (1, 3), (3, 2), (3, 3), (5, 1), (5, 5)] {
            let report = check(&all_base[..m], &all_new[..n], std::slice::from_ref(&rule), CheckPolicy::default());
            assert_eq!(report.verdict, Outcome::Fail, "case {case}, {m} and {n} runs: {rule} {report:?}");
        }
    }
}

/// The text next to an outcome is consistent with it: a growth within chance is smaller than the growth that would have
/// failed.
#[test]
fn a_growth_within_chance_is_smaller_than_the_growth_that_would_fail() {
    let mut seen = 0;
    for (case, _) in cases(15, 2500) {
        let is_of_one = matches!(case.subject, Subject::Total | Subject::Together);
        if !is_of_one || !matches!(case.limit, Limit::Growth(0..)) {
            continue;
        }
        let report = case.check(CheckPolicy::default());
        let rule = &report.rules[0];
        let f = &rule.findings[0];
        let (Some(least), Some(percent)) = (rule.detectable, f.percent) else { continue };
        if f.outcome == Outcome::Inconclusive {
            seen += 1;
            assert!(percent < least, "{percent} {least} {}", case.describe());
        }
    }
    assert!(seen > 40, "{seen}");
}
