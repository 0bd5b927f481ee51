//! The engine of `explain`: finds the few causes that explain why two sides differ, and estimates how large a change
//! must be to be detected. A table of differences shows symptoms. `explain` reports only changes that exceed chance.
//!
//! The stages in order, with their files (`stages` runs them):
//!
//! 1. **Collect rows**: `shared` and the engine's `target` choose sample types and columns; `evidence/read` turns the
//!    samples of all runs into rows, which are stacks by numbers (`evidence/rows`), and `evidence/recorded` drops a
//!    recorder's frames.
//! 2. **Match names**: the rules of names (`rules/renamed`, `inlined`, `outlined`, `rewritten`) give both sides the same
//!    names.
//! 3. **Build candidate sets**: `evidence/sets`, `evidence/set_builder`.
//! 4. **Estimate noise and scale**: `search/noise`, and the scales that `search` tries.
//! 5. **Search**: `search/model` finds the sets that are causes at each scale, and `search` the best scale.
//! 6. **Attribute**: `attribution`, `related` and `wrapped` recognize cost that moved and causes that are one. Cost that
//!    moved is folded, and the stages from 3 on are repeated.
//! 7. **Account**: `account` gives each stack to one cause, the rules of causes change the findings, `selfcheck` compares
//!    them with a plain table, and the parts add up.
//! 8. **Answer**: `agreement` counts the evidence for equal work, `naming` turns numbers into names, and `stages` decides
//!    the verdict (`answer`). `place` adds source lines, `counted` adds counted calls, `code` compares the instructions of both builds. `chance` tests single frames of views, and
//!    `statements` what sentences may say.
//!
//! All numbers that statements depend on are in `thresholds`.
//!
//! [`select`] and [`measure`] follow moved code for all views, and `check` adds causes to a check of the engine. The crate
//! reads profiles only through the engine's walks, and writes no text: reports are in `pprofdiff-report`. Many builds are
//! in `pprofdiff-series`, and the commits of a cause come from `pprofdiff-commits`.
//!
//! docs/explain.md documents the guarantees and the measured accuracy.

#![warn(missing_debug_implementations)]

mod account;
mod agreement;
mod answer;
mod attribution;
mod chance;
#[cfg(feature = "check")]
mod check;
mod code;
mod commits;
mod counted;
mod evidence;
mod naming;
mod place;
mod related;
mod rules;
mod search;
mod select;
mod selfcheck;
#[cfg(feature = "check")]
mod settings;
mod shared;
mod stages;
mod statements;
mod thresholds;
mod wrapped;

use serde::{Deserialize, Serialize};

pub use answer::{
    Account, Cause, CauseKind, CauseLabel, CausePart, CostSplit, CountedCalls, CountedWork, DisputedWork, Evidence,
    Explanation, Extent, KnownRuntime, MoveKind, Moved, NearestCandidate, NoiseEstimate, PlaceOf, ProgramShare,
    Rewrite, ScaleRule, Verdict, WorkScale,
};
pub use commits::{RankedCommit, RankedCommits, Reach};
use evidence::names::FrameTexts;
use evidence::read::ReadRuns;
use evidence::rows::StackRows;
use pprofdiff::shared::{ALLOCATED, Moves, UserRules, ValueKind};
use pprofdiff::{Diff, Error, Granularity, Measure, Normalize, Query, Result};
use pprofdiff_profile::cancellation;
use rules::MatchedNames;
#[doc(hidden)]
pub use rules::parts::package_of;
pub use rules::{RULES, Rule};
pub use statements::{HeldState, MainFactor, Quantity, Remainder};
use std::sync::Arc;

#[cfg(feature = "check")]
pub use check::{ExplainedCheck, ExplainedRule, check};
pub use select::{measure, select};
use shared::SharedInputs;
pub use shared::explain_types;
use stages::{CommonRows, Comparison, answer, interpret};
use thresholds::{DEFAULT_MIN_EFFECT, MAX_OPS_RATIO, MIN_DISPUTED_LOG_OF_WORK};

/// Settings of an explanation, and facts about the runs that profiles do not contain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExplainOptions {
    /// The number of operations (such as requests) in one run of each side: `(base, new)`. Only their ratio matters. If
    /// it is `None`, the ratio is estimated from the profiles.
    pub ops: Option<(f64, f64)>,
    /// Minimum change that is reported as a cause, as a fraction of the mean of both sides' totals at equal work. At
    /// least 0 and less than 1.
    pub min_effect: f64,
    /// The last `noise_runs` base profiles are A/A runs. They estimate noise and are excluded from the comparison.
    pub noise_runs: usize,
    /// Regular expressions for functions that cannot be causes, in addition to the known system functions. Their
    /// callers are reported instead. An expression may match anywhere in a name.
    pub system: Vec<String>,
    /// Regular expressions for functions whose cost is a consequence of causes elsewhere, in addition to the known
    /// functions.
    pub background: Vec<String>,
    /// Heap profiles of the same runs. They attribute garbage collection to the causes that allocate more, and get
    /// explanations of their own in [`Explanation::also`].
    #[serde(skip)]
    pub heap: Option<Heap>,
    /// True if a test of the same runs found no change of the total, or is inconclusive. The explanation then offers no
    /// choice between more work and a cause, because both would change the total.
    #[serde(default)]
    pub undecided_total: bool,
}

/// Heap profiles of the runs that are explained, for both sides.
#[derive(Debug, Clone)]
pub struct Heap(Arc<Diff>);

/// Compares identity: a heap equals only itself. The profiles are not compared.
impl PartialEq for Heap {
    fn eq(&self, other: &Heap) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Default for ExplainOptions {
    fn default() -> ExplainOptions {
        let (system, background) = (Vec::new(), Vec::new());
        let (heap, undecided_total) = (None, false);
        ExplainOptions {
            ops: None,
            min_effect: DEFAULT_MIN_EFFECT,
            noise_runs: 0,
            system,
            background,
            heap,
            undecided_total,
        }
    }
}

impl ExplainOptions {
    /// Sets the number of operations in one run of each side.
    #[must_use]
    pub fn with_ops(mut self, base: f64, new: f64) -> Self {
        self.ops = Some((base, new));
        self
    }

    /// Sets the minimum change that is reported as a cause, as a fraction of the mean of both sides' totals at equal
    /// work.
    #[must_use]
    pub fn with_min_effect(mut self, part: f64) -> Self {
        self.min_effect = part;
        self
    }

    /// Treats the last `runs` base profiles as A/A runs, which only estimate noise.
    #[must_use]
    pub fn with_noise_runs(mut self, runs: usize) -> Self {
        self.noise_runs = runs;
        self
    }

    /// Adds the heap profiles of the same runs. Garbage collection is then attributed to the causes that allocate more
    /// in these profiles. The heaps get explanations of their own in [`Explanation::also`].
    #[must_use]
    pub fn with_heap(mut self, heap: Diff) -> Self {
        self.heap = Some(Heap(Arc::new(heap)));
        self
    }

    /// Sets whether a test of the same runs left a change of the total undecided.
    #[must_use]
    pub fn with_undecided_total(mut self, is_undecided: bool) -> Self {
        self.undecided_total = is_undecided;
        self
    }

    /// Adds the program's own runtime from the table `explain` of a `pprofdiff.toml`: the lists `system` and
    /// `background` of regular expressions.
    ///
    /// # Errors
    /// Invalid TOML, unknown keys, or an invalid expression.
    #[cfg(feature = "check")]
    pub fn with_config(mut self, text: &str) -> Result<Self> {
        let settings = settings::Settings::from_toml(text)?;
        self.system.extend(settings.system);
        self.background.extend(settings.background);
        UserRules::new(&self.system, &self.background).map(|_| self)
    }
}

/// Maximum number of samples in all profiles for a cheap explanation, which takes about a second and little memory.
/// Below this limit, several explanations run at the same time, and tables include one by default.
pub const FEW_SAMPLES: usize = 200_000;

/// Checks that `explain` supports the query. Callers that record profiles first can check it before they start.
///
/// # Errors
/// For a normalization, and for rows other than functions.
pub fn check_query(query: &Query) -> Result<()> {
    if query.normalize != Normalize::None {
        return Err(Error::query(
            "explain estimates the amount of work instead of normalizing; if it is known, give --ops",
        ));
    }
    if query.granularity != Granularity::Functions {
        return Err(Error::query("explain names functions; other granularities are not supported"));
    }
    Ok(())
}

/// Explains why the sides differ. The profiles of a side are runs of the same program and stay separate.
///
/// Without a sample type in the query, this explains [`Diff::default_sample_type`], or the first sample type with
/// values if the default has only zeros. If that is memory in use, [`Explanation::also`] explains the allocations.
/// `beside` may name the sample type that counts the explained one.
///
/// # Errors
/// Fails if there is only one profile, for an unknown sample type, for sample types that do not belong together,
/// for a granularity other than functions, and for a normalization (`explain` finds the scale itself). Fails for
/// options out of range: numbers of operations that are not positive or differ by more than a factor of 1e9, a
/// minimum effect outside of `0.0..1.0`, a single A/A run, A/A runs without another base profile, and invalid
/// regular expressions. Fails for heap profiles without allocations or with only one side.
pub fn explain(diff: &Diff, query: &Query, beside: &[String], options: &ExplainOptions) -> Result<Explanation> {
    // A duplicate of a run counts once.
    let noise_runs = diff.different_runs(options.noise_runs);
    let options = &ExplainOptions { noise_runs, ..options.clone() };
    let user_rules = check_explain(diff, query, options)?;
    let target = diff.explain_target(query.sample_type.as_deref(), beside)?;
    cancellation::begin_phase("explaining");
    let selection = diff.select_with(query, &Moves::default())?;
    let shared = SharedInputs::new(&selection, &user_rules, options)?;
    // If the user chose no sample type and the default is memory in use, the allocations are a second question.
    let position_of = |name: &str| diff.sample_types().iter().position(|(kind, _)| kind == name);
    let is_heap = query.sample_type.is_none() && beside.is_empty() && target.kind == ValueKind::Heap;
    let allocated = position_of(ALLOCATED).filter(|number| is_heap && *number != target.number);
    let (first, also) = match allocated.map(|number| diff.target_of(number)) {
        // Explains both at the same time if that takes little memory.
        Some(also) if diff.n_samples() <= FEW_SAMPLES => {
            let [first, also] = shared.explain_both([&target, &also], [true, false])?;
            (first, Some(also))
        }
        also => (shared.explain(&target, true)?, also.map(|also| shared.explain(&also, false)).transpose()?),
    };
    drop(shared);
    let mut explanation = first;
    if query.sample_type.is_none() {
        Arc::make_mut(&mut explanation.summary).warnings.splice(0..0, diff.type_to_explain().1);
    }
    explanation.also.extend(also);
    place::add_places(&selection, [&mut explanation])?;
    code::add_code_changes(diff, query, &mut explanation)?;
    counted::add_counted_calls(diff, query, options.noise_runs, &mut explanation)?;
    explain_heap(query, options, &mut explanation)?;
    Ok(explanation)
}

/// Checks that `explain` supports the query and the options. Returns the program's own rules for runtime functions.
fn check_explain(diff: &Diff, query: &Query, options: &ExplainOptions) -> Result<UserRules> {
    if !diff.is_two_sided() {
        return Err(Error::query("explain compares two sides; there is only one profile"));
    }
    check_query(query)?;
    let ops = options.ops.map(|(base, new)| new / base);
    if ops.is_some_and(|ops| !(ops.is_finite() && ops > 0.0)) {
        return Err(Error::query("the numbers of operations must be greater than zero"));
    }
    if ops.is_some_and(|ops| !(1.0 / MAX_OPS_RATIO..=MAX_OPS_RATIO).contains(&ops)) {
        return Err(Error::query("the numbers of operations must not differ by more than a factor of 1e9"));
    }
    if !(0.0..1.0).contains(&options.min_effect) {
        return Err(Error::query("the minimum effect must be a fraction of the total: at least 0 and less than 1"));
    }
    if options.noise_runs == 1 || options.noise_runs >= diff.base().count() {
        return Err(Error::query("estimating noise needs two or more runs of equal builds in addition to the base"));
    }
    UserRules::new(&options.system, &options.background)
}

/// Explains the heap profiles of the same runs, and appends the result and its own `also` to `beside.also`. Does
/// nothing without heap profiles.
fn explain_heap(query: &Query, options: &ExplainOptions, beside: &mut Explanation) -> Result<()> {
    let Some(Heap(heap)) = &options.heap else { return Ok(()) };
    let mut query = query.clone();
    query.sample_type = None;
    let options = ExplainOptions { heap: None, noise_runs: 0, ..options.clone() };
    let mut heap_explanation = explain(heap, &query, &[], &options)?;
    let also = std::mem::take(&mut heap_explanation.also);
    beside.also.push(heap_explanation);
    beside.also.extend(also);
    mark_disputes(beside);
    Ok(())
}

/// Marks the amounts of work that sample types of the same runs contradict.
fn mark_disputes(beside: &mut Explanation) {
    let shown = |e: &Explanation| {
        let is_found = matches!(e.scale.rule, ScaleRule::Same | ScaleRule::Agree | ScaleRule::Unknown);
        let (sample_type, factor, rule) = (e.summary.sample_type.clone(), e.scale.factor, e.scale.rule);
        is_found.then_some(DisputedWork { sample_type, factor, rule })
    };
    let all: Vec<DisputedWork> = std::iter::once(&*beside).chain(&beside.also).filter_map(shown).collect();
    let mark = |e: &mut Explanation| {
        let Some(own) = shown(e) else { return };
        let is_other = |other: &&DisputedWork| {
            let is_certain = [own.rule, other.rule].iter().any(|rule| *rule != ScaleRule::Unknown);
            is_certain && (other.factor / own.factor).ln().abs() > MIN_DISPUTED_LOG_OF_WORK
        };
        e.scale.disputed = all.iter().find(is_other).cloned();
    };
    mark(beside);
    beside.also.iter_mut().for_each(mark);
}

/// Returns the rows of the allocations in a diff of heap profiles. Fails if the profiles do not record allocations,
/// and if there is only one profile.
fn allocations(diff: &Diff, query: &Query, user_rules: &UserRules) -> Result<StackRows> {
    let Some(number) = diff.sample_types().iter().position(|(kind, _)| kind == ALLOCATED) else {
        let name = diff.base().next().map_or("", |profile| profile.name());
        return Err(Error::query(format!(
            "{name}: no sample type {ALLOCATED}; the heap profiles must record allocations"
        )));
    };
    if !diff.is_two_sided() {
        return Err(Error::query("heap profiles are needed for both sides; there is only one profile"));
    }
    let mut query = query.clone();
    query.sample_type = None;
    let selection = diff.select_with(&query, &Moves::default())?;
    let value = selection.measure_type(number, Normalize::None)?;
    let texts = FrameTexts::classify(selection.frames(), user_rules);
    diff.target_of(number).read(&selection, &value, 0, |columns| ReadRuns::new(columns, &texts).rows())
}

/// Maximum number of renamed functions, and of inlined functions, in a view's warnings.
const MAX_LISTED: usize = 5;

/// Returns the functions that were renamed or inlined between the sides, for views that match names across builds.
fn moves(diff: &Diff) -> Result<Moves> {
    // For heap profiles, use allocations: they cover more functions than memory in use.
    let allocated = diff.sample_types().iter().position(|(kind, _)| kind == ALLOCATED);
    let target = allocated.map_or_else(|| diff.explain_target(None, &[]), |number| Ok(diff.target_of(number)))?;
    let selection = diff.select_with(&Query::default(), &Moves::default())?;
    let value = selection.measure_type(target.number, Normalize::None)?;
    let texts = FrameTexts::classify(selection.frames(), &UserRules::default());
    let rows = target.read(&selection, &value, 0, |columns| ReadRuns::new(columns, &texts).rows())?;
    let MatchedNames { rows, renamed, inlined, .. } = MatchedNames::matched(rows);
    let mut moves = Moves::default();
    let name = |frame: u32| rows.names[frame as usize].text.to_string();
    let (mut pairs, mut calls) = (Vec::new(), Vec::new());
    for pair in &renamed {
        pairs.push(format!("{} of the base is {}", name(pair.old), name(pair.new)));
        moves.renamed.insert(name(pair.old), name(pair.new));
    }
    for call in &inlined {
        let side = ["base", "new side"][call.side];
        calls.push(format!("{} of the {side} is part of {}", name(call.frame), name(call.caller)));
        moves.folded[call.side].insert(name(call.frame));
    }
    for (texts, reason) in [(pairs, "under other names"), (calls, "inlined on one side")] {
        let more = texts.len().saturating_sub(MAX_LISTED);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        if !texts.is_empty() {
            let first = texts.iter().take(MAX_LISTED).map(String::as_str).collect::<Vec<_>>().join("; ");
            moves.warnings.push(format!("matched {reason}: {first}{more}"));
        }
    }
    Ok(moves)
}

/// Runs the stages for the rows of one sample type.
fn explain_rows(
    diff: &Diff,
    measure: &Measure,
    rows: StackRows,
    heap: Option<&StackRows>,
    options: &ExplainOptions,
) -> Explanation {
    let sides = Comparison::new(diff, measure, &rows, heap, options);
    let mut common = CommonRows::collect(&sides, rows);
    let mut work = sides.budget();
    let interpretation = interpret(&sides, &mut common, &mut work);
    answer(&sides, common, interpretation, &work)
}
