//! The engine of `explain`: finds the few causes that explain why two sides differ, and estimates how large a change
//! must be to be detected. A table of differences shows symptoms. `explain` reports only changes that exceed chance.
//!
//! ```text
//! runs of two sides -> rows (stacks by numbers) -> rules (names matched across builds) -> sets (candidates)
//!   -> search (causes and scale, by noise) -> attribution (cost that moved, changes that are one cause)
//!   -> account (how the causes add up) -> Explanation
//! ```
//!
//! docs/explain.md documents the guarantees and the measured accuracy.

mod account;
mod agreement;
mod answer;
mod attribution;
mod chance;
mod evidence;
mod naming;
mod related;
mod rules;
mod search;
mod shared;
mod statements;
mod target;
mod thresholds;

use serde::{Deserialize, Serialize};

use crate::diff::{Diff, Granularity, Measure, Moves, Normalize, Pair, Query, Summary};
use crate::runtimes::{self, UserRules};
use crate::sampling::Model;
use crate::{Error, Result};
use account::Books;
use agreement::independent_witnesses;
pub use answer::{
    Account, Cause, CauseKind, CauseLabel, CausePart, CostSplit, Evidence, Explanation, Extent, KnownRuntime, MoveKind,
    Moved, NearestCandidate, NoiseEstimate, ProgramShare, Rewrite, ScaleRule, Verdict, WorkScale,
};
use evidence::names::FrameTexts;
use evidence::read::ReadRuns;
pub(crate) use evidence::read::by_chance;
use evidence::recorded;
use evidence::rows::{StackRows, ValueKind};
use pprofdiff_profile::cancellation;
use pprofdiff_profile::random::HashMap;
pub(crate) use rules::parts::package_of;
use rules::renamed::RenamedFunction;
use rules::{Findings, MatchedNames};
pub use rules::{RULES, Rule};
pub use statements::{HeldState, MainFactor, Quantity, Remainder};
use std::sync::Arc;
pub(crate) use target::group_of;
use target::{ALLOCATED, COUNTS, WALL, is_level_among};

use attribution::{Attribution, CostShift};
use evidence::sets::Sets;
use naming::{Naming, ShownNames, clones, rounded};
use search::SearchBudget;
use shared::SharedInputs;
use thresholds::{
    DEFAULT_MIN_EFFECT, MAX_DIFFERENCE_OF_EQUAL_SIDES, MAX_DISTANCE_OF_EQUAL_WORK, MAX_FOLDED_SHIFTS,
    MAX_NOTICED_FOR_MOVED_COST, MAX_NOTICED_FOR_NO_CHANGE, MAX_OPS_RATIO, MAX_P_OF_CERTAIN_TOTAL,
    MAX_P_OF_LIKELY_TOTAL, MAX_REPORTED_NOISE, MAX_REST_OF_NO_CHANGE, MIN_PART_OF_SHOWN_MOVE,
    MIN_REST_OF_LIKELY_CHANGE, MIN_UNATTRIBUTED_PART, MIN_WITNESSES, REPORTED_FRAMES_OF_TOTAL,
};

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
        let settings = runtimes::Settings::from_toml(text)?;
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

impl Diff {
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
    pub fn explain(&self, query: &Query, beside: &[String], options: &ExplainOptions) -> Result<Explanation> {
        // A duplicate of a run counts once.
        let noise_runs = self.different_runs(options.noise_runs);
        let options = &ExplainOptions { noise_runs, ..options.clone() };
        let user_rules = self.check_explain(query, options)?;
        let target = self.explain_target(query.sample_type.as_deref(), beside)?;
        cancellation::begin_phase("explaining");
        let selection = self.select_with(query, &Moves::default())?;
        let shared = SharedInputs::new(&selection, &user_rules, options)?;
        // If the user chose no sample type and the default is memory in use, the allocations are a second question.
        let position_of = |name: &str| self.sample_types().iter().position(|(kind, _)| kind == name);
        let is_heap = query.sample_type.is_none() && beside.is_empty() && target.kind == ValueKind::Heap;
        let allocated = position_of(ALLOCATED).filter(|number| is_heap && *number != target.number);
        let (first, also) = match allocated.map(|number| self.target_of(number)) {
            // Explains both at the same time if that takes little memory.
            Some(also) if self.n_samples() <= FEW_SAMPLES => {
                let [first, also] = shared.explain_both([&target, &also], [true, false])?;
                (first, Some(also))
            }
            also => (shared.explain(&target, true)?, also.map(|also| shared.explain(&also, false)).transpose()?),
        };
        drop(shared);
        let mut explanation = first;
        if query.sample_type.is_none() {
            Arc::make_mut(&mut explanation.summary).warnings.splice(0..0, self.type_to_explain().1);
        }
        explanation.also.extend(also);
        self.explain_heap(query, options, &mut explanation)?;
        Ok(explanation)
    }

    /// Checks that `explain` supports the query and the options. Returns the program's own rules for runtime functions.
    fn check_explain(&self, query: &Query, options: &ExplainOptions) -> Result<UserRules> {
        if !self.is_two_sided() {
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
        if options.noise_runs == 1 || options.noise_runs >= self.base().count() {
            return Err(Error::query(
                "estimating noise needs two or more runs of equal builds in addition to the base",
            ));
        }
        UserRules::new(&options.system, &options.background)
    }

    /// Explains the heap profiles of the same runs, and appends the result and its own `also` to `beside.also`. Does
    /// nothing without heap profiles.
    fn explain_heap(&self, query: &Query, options: &ExplainOptions, beside: &mut Explanation) -> Result<()> {
        let Some(Heap(heap)) = &options.heap else { return Ok(()) };
        let query = Query { sample_type: None, ..query.clone() };
        let options = ExplainOptions { heap: None, noise_runs: 0, ..options.clone() };
        let mut heap_explanation = heap.explain(&query, &[], &options)?;
        let also = std::mem::take(&mut heap_explanation.also);
        beside.also.push(heap_explanation);
        beside.also.extend(also);
        Ok(())
    }

    /// Returns the rows of the allocations in a diff of heap profiles. Fails if the profiles do not record allocations,
    /// and if there is only one profile.
    fn allocations(&self, query: &Query, user_rules: &UserRules) -> Result<StackRows> {
        let Some(number) = self.sample_types().iter().position(|(kind, _)| kind == ALLOCATED) else {
            let name = self.base().next().map_or("", |profile| profile.name());
            return Err(Error::query(format!(
                "{name}: no sample type {ALLOCATED}; the heap profiles must record allocations"
            )));
        };
        if !self.is_two_sided() {
            return Err(Error::query("heap profiles are needed for both sides; there is only one profile"));
        }
        let query = Query { sample_type: None, ..query.clone() };
        let selection = self.select_with(&query, &Moves::default())?;
        let value = selection.measure_type(number, Normalize::None)?;
        let texts = FrameTexts::classify(selection.frames(), user_rules, runtimes::Asked::All);
        self.target_of(number).read(&selection, &value, 0, |columns| ReadRuns::new(columns, &texts).rows())
    }
}

/// Returns how the values of a sample type were sampled: the value of one event in each run, in the order of the
/// profiles, and the known variance between equal runs of other programs (of the logarithm of a frame's cost).
pub(crate) fn sampling(measure: &Measure) -> Result<(Vec<f64>, f64)> {
    let selection = measure.selection();
    let target = selection.diff().explain_target(Some(&measure.summary().sample_type), &[])?;
    let events = target.read(selection, measure, 0, evidence::read::event_of_runs)?;
    // A sample type that counts samples counts wall-clock samples if the profile has a wall-clock type.
    let types = selection.diff().sample_types();
    let name = types[target.number].0.as_str();
    // `time` without a count may belong to any clock. fgprof writes `time` beside `samples` and includes waiting.
    let has = |names: &[&str]| types.iter().any(|t| names.contains(&t.0.as_str()));
    let is_wall = name == "wall"
        || name == "wall_samples"
        || has(&WALL) && has(&COUNTS) && (name == "time" || COUNTS.contains(&name));
    Ok((events, search::known_variance_of(target.kind, is_wall)))
}

/// Maximum number of renamed functions, and of inlined functions, in a view's warnings.
const MAX_LISTED: usize = 5;

/// Returns the functions that were renamed or inlined between the sides, for views that match names across builds.
pub(crate) fn moves(diff: &Diff) -> Result<Moves> {
    // For heap profiles, use allocations: they cover more functions than memory in use.
    let allocated = diff.sample_types().iter().position(|(kind, _)| kind == ALLOCATED);
    let target = allocated.map_or_else(|| diff.explain_target(None, &[]), |number| Ok(diff.target_of(number)))?;
    let selection = diff.select_with(&Query::default(), &Moves::default())?;
    let value = selection.measure_type(target.number, Normalize::None)?;
    let texts = FrameTexts::classify(selection.frames(), &UserRules::default(), runtimes::Asked::All);
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

fn explain(
    diff: &Diff,
    measure: &Measure,
    mut rows: StackRows,
    heap: Option<&StackRows>,
    options: &ExplainOptions,
) -> Explanation {
    let ops = options.ops.map(|(base, new)| new / base);
    let m = rows.runs;
    let runs = m[1] as f64 / m[0] as f64;
    let total = rows.total();
    let per_run = |side: usize, value: f64| rounded(value / m[side] as f64);
    let mut moved: Vec<Moved> = Vec::new();
    let equal = rows.rows.iter().all(|r| {
        (r.values[0] * m[1] as f64 - r.values[1] * m[0] as f64).abs()
            < MAX_DIFFERENCE_OF_EQUAL_SIDES * (r.values[0] + r.values[1])
    });
    let recorded = recorded::leave_out(&mut rows);
    let mut names = MatchedNames::matched(rows);
    let folded = std::mem::take(&mut names.inlined);
    let renamed = std::mem::take(&mut names.renamed);
    // The search for causes stays above the code that was rewritten.
    names.cut();
    let MatchedNames { mut rows, uncut, rewritten, .. } = names;
    let is_shown = |pair: &&RenamedFunction| (0..2).any(|side| pair.cost[side] > MIN_PART_OF_SHOWN_MOVE * total[side]);
    let renamed_to: HashMap<u32, u32> = renamed.iter().map(|pair| (pair.old, pair.new)).collect();
    let shown = ShownNames { rows: &rows, renamed: renamed_to.clone() };
    for call in folded.iter().filter(|call| call.is_balanced || call.value > MIN_PART_OF_SHOWN_MOVE * total[call.side])
    {
        let (function_name, caller) = (shown.name(call.frame), shown.name(call.caller));
        let (function, from, how) = if call.side == 1 {
            (function_name, caller, MoveKind::Outlined)
        } else {
            (caller, function_name, MoveKind::Inlined)
        };
        moved.push(Moved {
            function,
            from,
            how,
            delta: per_run(call.side, call.value),
            cost: None,
            even: false,
            inside: None,
            packages: None,
        });
    }
    moved.extend(clones(&rows, total, per_run));
    let is_rewritten = rewritten.is_some();
    let rewrite = rewritten.map(|rewritten_code| {
        let [from, to] = rewritten_code.packages;
        let cost = (per_run(0, rewritten_code.cost[0]), per_run(1, rewritten_code.cost[1]));
        let below = rewritten_code.below.map(|caller| shown.name(caller));
        Rewrite { from, to, below, cost, gone: rewritten_code.functions[0], came: rewritten_code.functions[1] }
    });
    let mut shifts = 0;
    let mut work = SearchBudget::new(measure.profile_bytes());
    let exposure = runs * ops.unwrap_or(1.0);
    let model = measure.sampling_model();
    // With several runs, the variation between them replaces the estimate of noise.
    let is_replicated = m.iter().all(|&m| m > 1) || rows.learned > 1;
    let is_uncounted = model == Model::Unknown && !is_replicated;
    // Complete counts with one snapshot per side are not subject to chance.
    let is_exact = model == Model::Exact && !is_replicated;
    let is_level = ops.is_none() && is_level_among(&diff.sample_types(), &measure.summary().sample_type);
    let (result, scale, findings, account, swaps, witnesses) = loop {
        cancellation::checkpoint();
        let sets = Sets::new(&rows);
        work.add(sets.places());
        let result = search::search(&rows, &sets, ops, options.min_effect, &mut work);
        let attribution = Attribution::new(&rows, &sets, &result);
        let mut candidates = attribution.candidates();
        let folds = |shift: &CostShift| {
            let mut stacks = sets.rows(shift.set).map(|row| rows.stack(row as usize));
            shifts < MAX_FOLDED_SHIFTS
                && !work.is_used_up()
                && stacks.any(|stack| kept_frames(stack, shift.inside) < stack.len())
        };
        if let Some(shift) = attribution.shift(&candidates).filter(folds) {
            shifts += 1;
            let shown = ShownNames { rows: &rows, renamed: renamed_to.clone() };
            let (function, from) = (shown.name(shift.gained), shown.name(shift.lost));
            let inside = Some(shown.name(shift.inside));
            let delta = per_run(0, shift.amount);
            match moved.iter_mut().find(|m| Some(m.how) == shift.how && m.function == function && m.from == from) {
                Some(earlier) => earlier.delta = earlier.delta.max(delta),
                // If the sum of both functions changed as well, their caller changed: not a pure move.
                None => moved.extend(shift.how.filter(|_| shift.even).map(|how| {
                    let (cost, packages) = (None, None);
                    Moved { function, from, how, delta, cost, even: true, inside, packages }
                })),
            }
            let folded: Vec<u32> = sets.rows(shift.set).collect();
            // Below this frame, cost only changed places.
            rows.regroup(|i, stack| {
                if folded.binary_search(&(i as u32)).is_ok() {
                    stack.truncate(kept_frames(stack, shift.inside));
                }
            });
            continue;
        }
        let swaps = attribution.swaps(&mut candidates);
        let candidates = attribution.merge(candidates);
        let min_effect = options.min_effect;
        let scale = if is_level { exposure } else { result.scale };
        let books = Books {
            rows: &rows,
            sets: &sets,
            search: &result,
            attribution: &attribution,
            uncut: &uncut,
            heap,
            renamed: &renamed_to,
            min_effect,
            exposure,
            scale,
            is_given: ops.is_some(),
            is_level,
            is_rewritten,
        };
        let mut findings =
            if equal { Findings::default() } else { Findings::from_causes(&books, books.settle(candidates)) };
        if options.undecided_total {
            findings.suspects.clear();
        }
        let account = books.account(&findings.causes);
        let mut account = account;
        if is_uncounted {
            // Without a number of samples, causes cannot be distinguished from chance. The first is still the largest
            // change.
            let largest = findings.causes.drain(..).next().or_else(|| findings.suspects.drain(..).next());
            findings.candidate = largest.or(findings.candidate);
            findings.suspects.clear();
            account = Account { p: None, by_chance: false, consequences_by_chance: false, ..books.account(&[]) };
        }
        if is_exact {
            let unexplained = account.rest != 0.0;
            account = Account { by_chance: false, consequences_by_chance: false, unexplained, ..account };
        }
        let Findings { causes, suspects, candidate } = findings;
        let split = |entry: account::CauseEntry| (books.split(&entry), entry);
        let [causes, suspects] = [causes, suspects].map(|entries| entries.into_iter().map(split).collect::<Vec<_>>());
        let needed = |score: f64| if is_uncounted { None } else { books.runs_needed(score) };
        let candidate = candidate.map(|entry| (needed(entry.score), split(entry)));
        let witnesses = independent_witnesses(&rows, &sets, &result, scale);
        break (result, scale, (causes, suspects, candidate), account, swaps, witnesses);
    };
    let shown = ShownNames { rows: &rows, renamed: renamed_to };
    moved.extend(swaps.iter().map(|swap| Moved {
        function: shown.name(swap.gained),
        from: shown.name(swap.lost),
        how: swap.how,
        delta: per_run(0, swap.amount),
        cost: None,
        even: swap.even,
        inside: swap.inside.map(|caller| shown.name(caller)),
        packages: None,
    }));
    let names_of_sides = ShownNames { rows: &rows, renamed: HashMap::default() };
    let renamed_functions = renamed.iter().filter(is_shown).map(|pair| Moved {
        function: names_of_sides.name_on(pair.new, 1),
        from: names_of_sides.name_on(pair.old, 0),
        how: MoveKind::Renamed,
        delta: per_run(1, pair.cost[1]),
        cost: Some((per_run(0, pair.cost[0]), per_run(1, pair.cost[1]))),
        even: result.is_even(&rows, scale, pair.cost),
        inside: None,
        packages: {
            let [from, to] =
                [pair.old, pair.new].map(|frame| package_of(&rows.names[frame as usize].text).into_owned());
            (pair.with_package && from != to).then_some((from, to))
        },
    });
    moved.splice(0..0, renamed_functions.collect::<Vec<_>>());
    // If inlining differs between builds, a function may seem to have moved to itself. Without a number of samples,
    // only a match of names shows that cost moved.
    moved.retain(|m| m.function != m.from && !(is_uncounted && m.how != MoveKind::Renamed));
    let naming = Naming { rows: &rows, shown: &shown, total, scale };
    let is_count = measure.summary().unit == "count";
    let cause =
        |(split, entry): (Option<[f64; 4]>, account::CauseEntry)| naming.cause(&entry, split.filter(|_| !is_count));
    let (causes, suspects, candidate) = findings;
    let mut candidate =
        candidate.map(|(runs, split_and_entry)| NearestCandidate { cause: cause(split_and_entry), runs });
    let [causes, suspects] = [causes, suspects].map(|entries| entries.into_iter().map(cause).collect::<Vec<Cause>>());
    let sums = |side: usize| rows.rows.iter().filter(|r| r.background).map(|r| r.values[side]).sum::<f64>();
    let background = if total[0] > 0.0 { (sums(1) / scale - sums(0)) / total[0] } else { 0.0 };
    let factor = rounded(scale / runs);
    // The smaller side is the reference, so that exchanging the sides gives the same verdict.
    let less = (total[1] / m[1] as f64).min(factor * total[0] / m[0] as f64);
    // The nominal number of samples only ranked the changes, so it does not belong in the result.
    if let Some(candidate) = candidate.as_mut().filter(|_| is_uncounted) {
        let Evidence { base, new, .. } = &mut candidate.cause.evidence;
        (base.events, new.events, candidate.cause.score) = (0.0, 0.0, 0.0);
    }
    let (deviation, noticed, event) = match is_uncounted {
        true => (MAX_REPORTED_NOISE, MAX_REPORTED_NOISE, 0.0),
        false => (result.deviation.min(MAX_REPORTED_NOISE), result.noticed.min(MAX_REPORTED_NOISE), rows.event()),
    };
    let (all, rest) = (rows.all(), account.rest.abs());
    let verdict = match () {
        () if !causes.is_empty() => Verdict::Change,
        // For complete counts, "nothing on both sides" is an answer.
        () if model == Model::Exact && equal => Verdict::None,
        () if (is_uncounted || is_exact) && !equal => Verdict::Inconclusive,
        () if total == [0.0; 2] => Verdict::Inconclusive,
        () if equal => Verdict::None,
        () if !suspects.is_empty() => Verdict::Inconclusive,
        // The total certainly changed, so something changed.
        () if !account.by_chance && account.p.is_some_and(|p| p < MAX_P_OF_CERTAIN_TOTAL) => Verdict::Inconclusive,
        // A likely change of the total with a large unexplained rest rules out "nothing changed".
        () if account.p.is_some_and(|p| p < MAX_P_OF_LIKELY_TOTAL) && rest > MIN_REST_OF_LIKELY_CHANGE * less => {
            Verdict::Inconclusive
        }
        () if rest > MAX_REST_OF_NO_CHANGE * less || account.unexplained => Verdict::Inconclusive,
        // The cost of rewritten code is comparable only if the amount of work is known.
        () if is_rewritten && ops.is_none() => Verdict::Inconclusive,
        () if result.noticed < MAX_NOTICED_FOR_NO_CHANGE => Verdict::None,
        // Cost that moved is an answer, if only large changes could have stayed undetected.
        () if !moved.is_empty() && result.noticed < MAX_NOTICED_FOR_MOVED_COST => Verdict::None,
        () => Verdict::Inconclusive,
    };
    let kind = measure.summary().sample_type.as_str();
    // Warnings about the explanation itself come first, because text output has room for one.
    let mut left_out: Vec<String> = rows.note_of_labels().into_iter().chain(recorded).collect();
    if work.is_used_up() {
        left_out.push("too many sets of stacks changed to compare all ways to explain the difference".to_owned());
    }
    left_out.extend(measure.sampling_warnings());
    left_out.extend(rest_warning(rows.stackless(), all, kind, "a function: no stack"));
    left_out.extend(rest_warning(rows.negative, all, kind, "a cause: negative values"));
    let mut summary = Summary::clone(measure.summary());
    summary.warnings.splice(0..0, left_out.iter().cloned());
    summary.sampling = Some(measure.sampling());
    let missing_values = |side: usize| format!("the {} side has no {kind} values", ["base", "new"][side]);
    if model != Model::Exact {
        summary.warnings.extend((0..2).filter(|&side| total[side] <= 0.0).map(missing_values));
    }
    let total = (per_run(0, all[0]), per_run(1, all[1]));
    summary.total = Pair { base: total.0.round() as i64, new: total.1.round() as i64 };
    // The summary's base excludes the A/A runs.
    summary.base = Some(diff.side(true, m[0]));
    let rule = match () {
        () if ops.is_some() => ScaleRule::Given,
        () if is_level => ScaleRule::Level,
        () if equal && result.n_telling > 0 => ScaleRule::Same,
        () if result.unknown || result.n_telling == 0 || !suspects.is_empty() || is_uncounted => ScaleRule::Unknown,
        // Few functions may agree by accident, and much rewritten code leaves few functions.
        () if witnesses < MIN_WITNESSES && (is_rewritten || (factor - 1.0).abs() < MAX_DISTANCE_OF_EQUAL_WORK) => {
            ScaleRule::Unknown
        }
        () if (factor - 1.0).abs() < MAX_DISTANCE_OF_EQUAL_WORK => ScaleRule::Same,
        () => ScaleRule::Agree,
    };
    Explanation {
        summary: Arc::new(summary),
        folder: diff.folder().map(str::to_owned),
        total,
        verdict,
        scale: WorkScale { factor, rule, agree: result.agree, of: result.n_telling },
        account,
        causes,
        rewrite,
        moved,
        suspects,
        candidate,
        background: rounded(background),
        noise: NoiseEstimate {
            tau: rounded(result.tau),
            need: rounded(result.threshold),
            deviation: rounded(deviation),
            noticed: rounded(noticed),
            mde: rounded((noticed / REPORTED_FRAMES_OF_TOTAL).min(1.0)),
            runs: (m[0], m[1]),
            learned: rows.learned,
            event,
            degrees: result.degrees,
        },
        runtime: KnownRuntime { name: rows.runtime.name.to_owned(), source: rows.runtime.source.to_owned() },
        pruned: rows.pruned,
        left_out,
        work: work.done,
        also: Vec::new(),
    }
}

/// Returns a warning about values that cannot be attributed. Returns `None` if they are at most
/// [`MIN_UNATTRIBUTED_PART`] of each side.
fn rest_warning(values: [f64; 2], all: [f64; 2], kind: &str, why: &str) -> Option<String> {
    let parts = [0, 1].map(|side| 100.0 * values[side] / all[side].max(f64::MIN_POSITIVE));
    let [base, new] = parts.map(f64::round);
    parts
        .iter()
        .any(|part| *part > 100.0 * MIN_UNATTRIBUTED_PART)
        .then(|| format!("{base}% of the base's and {new}% of the new side's {kind} could not be attributed to {why}"))
}

/// Returns the number of frames to keep if cost below the frame `inside` only changed places: the frames up to and
/// including its first occurrence, or all frames if the stack does not contain it.
fn kept_frames(stack: &[u32], inside: u32) -> usize {
    stack.iter().position(|frame| *frame == inside).map_or(stack.len(), |position| position + 1)
}
