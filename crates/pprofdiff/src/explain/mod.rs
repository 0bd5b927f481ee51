//! Why two sides differ: the few causes that explain the difference, with what could not have been noticed. A table of
//! differences shows symptoms; this is silent where there is no more than chance.
//!
//! ```text
//! runs of two sides -> rows (stacks by numbers) -> rules (names matched across builds) -> sets (candidates)
//!   -> search (causes and scale, by noise) -> attribution (what moved, what is one cause) -> account (what they add up to)
//!   -> Explanation
//! ```
//!
//! docs/explain.md says what is promised and measured.

mod account;
mod agreement;
mod answer;
mod asked;
mod attribution;
mod chance;
mod evidence;
mod naming;
mod related;
mod rules;
mod search;
mod shared;

use serde::{Deserialize, Serialize};

use crate::diff::{Diff, Granularity, Measure, Moves, Normalize, Pair, Query, Summary};
use crate::runtimes::{self, UserRules};
use crate::sampling::Model;
use crate::{Error, Result};
use account::Books;
use agreement::{ENOUGH, independent_witnesses};
pub use answer::{
    Account, Candidate, Cause, CauseKind, CauseLabel, Evidence, Explanation, Extent, How, KnownRuntime, Moved, Noise,
    Part, Rewrite, ScaleRule, Split, Verdict, Within, WorkScale,
};
pub(crate) use asked::group_of;
use asked::{ALLOCATED, COUNTS, WALL, is_level_among};
use evidence::names::Texts;
use evidence::read::Look;
pub(crate) use evidence::read::by_chance;
use evidence::recorded;
use evidence::rows::{Kind, Rows};
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::work;
pub(crate) use rules::parts::package_of;
use rules::renamed::Renamed;
use rules::{Findings, Names};
pub use rules::{RULES, Rule};
use std::sync::Arc;

use attribution::{Attribution, Shift};
use evidence::sets::Sets;
use naming::{MIN_SHOWN, Naming, Shown, clones, rounded};
use search::Work;
use shared::Shared;

/// Where a frame with a tenth of the total would have been noticed that grew by so much, nothing is a verdict.
const PRACTICAL: f64 = 1.0;
/// With more than this nothing was noticed, whatever moved.
const UNNOTICED: f64 = 10.0;
/// A difference of the totals is certain that is by chance with less than this probability; of several runs this is enough,
/// whose own differences say what chance is.
const SURE: f64 = 0.001;
const SURE_OF_RUNS: f64 = 0.05;
/// A difference with less than this is likely, and what nothing explains of it is large from this part of the base's total.
const UNSURE: f64 = 0.1;
const LARGE_REST: f64 = 0.25;
/// From here on it is not said that nothing changed, however probable that is.
const VAST_REST: f64 = 1.0;
/// Of up to this part of a side that no function can have nothing is said.
const LITTLE: f64 = 0.01;
/// The most that noise is said to be: JSON has no infinity.
const MAX_SAID: f64 = 1e6;
/// The most that one side does more than the other.
const MAX_WORK: f64 = 1e9;
/// How often cost that moved is looked past.
const MAX_SHIFTS: usize = 8;

/// What may be said besides the profiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExplainOptions {
    /// How much was done in a run of either side (operations, requests), if it is known: `(base, new)`.
    pub ops: Option<(f64, f64)>,
    /// The least change that is a cause, as a part of the base's total.
    pub min_effect: f64,
    /// The last so many profiles of the base are no part of it: runs of equal builds, from which only noise is learned.
    pub noise_runs: usize,
    /// Functions that are no candidates for a cause, besides those that are known: what they do is done by their callers.
    /// Regular expressions, which are searched in names.
    pub system: Vec<String>,
    /// Functions whose cost answers to causes elsewhere, besides those that are known.
    pub background: Vec<String>,
    /// Heap profiles of the same runs.
    #[serde(skip)]
    pub heap: Option<Heap>,
    /// True if a test of the same runs found no change of the total, or is inconclusive. The explanation then offers no
    /// choice between more work and a cause, because both would change the total.
    #[serde(default)]
    pub undecided_total: bool,
}

/// Both sides' heap profiles, of the runs whose time is explained.
#[derive(Debug, Clone)]
pub struct Heap(Arc<Diff>);

/// One is equal to itself alone: profiles are not compared here.
impl PartialEq for Heap {
    fn eq(&self, other: &Heap) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Default for ExplainOptions {
    fn default() -> ExplainOptions {
        let (system, background) = (Vec::new(), Vec::new());
        let (heap, undecided_total) = (None, false);
        ExplainOptions { ops: None, min_effect: 0.002, noise_runs: 0, system, background, heap, undecided_total }
    }
}

impl ExplainOptions {
    /// With the number of operations of a run of either side.
    #[must_use]
    pub fn with_ops(mut self, base: f64, new: f64) -> Self {
        self.ops = Some((base, new));
        self
    }

    /// With the least change that is a cause, as a part of the total.
    #[must_use]
    pub fn with_min_effect(mut self, part: f64) -> Self {
        self.min_effect = part;
        self
    }

    /// With the last so many profiles of the base as runs of equal builds, from which only noise is learned.
    #[must_use]
    pub fn with_noise_runs(mut self, runs: usize) -> Self {
        self.noise_runs = runs;
        self
    }

    /// With the heap profiles of the same runs: garbage collection is then that of those who allocate more there, and the
    /// heaps are explained beside ([`Explanation::also`]).
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

    /// With what the table `explain` of a `pprofdiff.toml` says of the program's own runtime: lists `system` and
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

/// Up to so many samples of all profiles an explanation is a second's work, and takes little memory: several are made at the
/// same time, and one that nobody asked for beside a table.
pub const FEW_SAMPLES: usize = 200_000;

impl Diff {
    /// Says why the sides differ. The profiles of a side are runs of the same program, and are kept apart. Without a
    /// sample type, that of [`Diff::default_sample_type`], or the first one with values if that has none; of a heap what was allocated is explained beside it
    /// ([`Explanation::also`]). `beside` may name the type that counts it.
    ///
    /// # Errors
    /// One profile alone; an unknown sample type, or two that do not belong together; a granularity other than
    /// functions; a normalization, since the scale is found; numbers of operations that are not positive; heap profiles
    /// that do not say what was allocated.
    pub fn explain(&self, query: &Query, beside: &[String], options: &ExplainOptions) -> Result<Explanation> {
        // A repeated run counts once.
        let noise_runs = self.different_runs(options.noise_runs);
        let options = &ExplainOptions { noise_runs, ..options.clone() };
        let own = self.check_explain(query, options)?;
        let asked = self.asked(query.sample_type.as_deref(), beside)?;
        work::begin_phase("explaining");
        let selection = self.select_with(query, &Moves::default())?;
        let shared = Shared::new(&selection, &own, options)?;
        // Of a heap whose type was not chosen what was allocated is another question than what is left of it.
        let named = |name: &str| self.sample_types().iter().position(|(kind, _)| kind == name);
        let is_heap = query.sample_type.is_none() && beside.is_empty() && asked.kind == Kind::Heap;
        let allocated = named(ALLOCATED).filter(|number| is_heap && *number != asked.number);
        let (first, also) = match allocated.map(|number| self.asked_of(number)) {
            // Both at the same time where that takes little memory.
            Some(also) if self.n_samples() <= FEW_SAMPLES => {
                let [first, also] = shared.explain_both([&asked, &also], [true, false])?;
                (first, Some(also))
            }
            also => (shared.explain(&asked, true)?, also.map(|also| shared.explain(&also, false)).transpose()?),
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

    /// Checks that this can be explained. Gives the program's own rules.
    fn check_explain(&self, query: &Query, options: &ExplainOptions) -> Result<UserRules> {
        if !self.is_two_sided() {
            return Err(Error::query("explain compares two sides; there is only one profile"));
        }
        if query.normalize != Normalize::None {
            return Err(Error::query("explain finds by itself how much more was done; if it is known, give --ops"));
        }
        if query.granularity != Granularity::Functions {
            return Err(Error::query("explain names functions; other granularities are not supported"));
        }
        let ops = options.ops.map(|(base, new)| new / base);
        if ops.is_some_and(|ops| !(ops.is_finite() && ops > 0.0)) {
            return Err(Error::query("numbers of operations are positive"));
        }
        if ops.is_some_and(|ops| !(1.0 / MAX_WORK..=MAX_WORK).contains(&ops)) {
            return Err(Error::query("no run does a thousand million times as many operations as another"));
        }
        if !(0.0..1.0).contains(&options.min_effect) {
            return Err(Error::query("the least effect is a part of the total, from 0 to 1"));
        }
        if options.noise_runs == 1 || options.noise_runs >= self.base().count() {
            return Err(Error::query("noise is learned from two runs of equal builds or more, besides the base"));
        }
        UserRules::new(&options.system, &options.background)
    }

    /// Explains the heap profiles of the same runs beside an explanation.
    fn explain_heap(&self, query: &Query, options: &ExplainOptions, beside: &mut Explanation) -> Result<()> {
        let Some(Heap(heap)) = &options.heap else { return Ok(()) };
        let query = Query { sample_type: None, ..query.clone() };
        let options = ExplainOptions { heap: None, noise_runs: 0, ..options.clone() };
        let mut of_heap = heap.explain(&query, &[], &options)?;
        let also = std::mem::take(&mut of_heap.also);
        beside.also.push(of_heap);
        beside.also.extend(also);
        Ok(())
    }

    /// What was allocated, of heap profiles.
    fn allocations(&self, query: &Query, own: &UserRules) -> Result<Rows> {
        let Some(number) = self.sample_types().iter().position(|(kind, _)| kind == ALLOCATED) else {
            let name = self.base().next().map_or("", |profile| profile.name());
            return Err(Error::query(format!("{name}: no heap profile that says what was allocated ({ALLOCATED})")));
        };
        if !self.is_two_sided() {
            return Err(Error::query("the heap is asked of both sides; there is only one profile"));
        }
        let query = Query { sample_type: None, ..query.clone() };
        let selection = self.select_with(&query, &Moves::default())?;
        let value = selection.measure_type(number, Normalize::None)?;
        let texts = Texts::of(selection.frames(), own, runtimes::Asked::All);
        self.asked_of(number).read(&selection, &value, 0, |columns| Look::new(columns, &texts).rows())
    }
}

/// How the values of a sample type came about: the value of one event in each run, in the order of the profiles, and the
/// variance between equal runs (of the log of a frame's cost) that other programs have.
pub(crate) fn sampling(measure: &Measure) -> Result<(Vec<f64>, f64)> {
    let selection = measure.selection();
    let asked = selection.diff().asked(Some(&measure.summary().sample_type), &[])?;
    let events = asked.read(selection, measure, 0, evidence::read::event_of_runs)?;
    // What counts samples counts those of the wall clock, if there is one.
    let types = selection.diff().sample_types();
    let own = types[asked.number].0.as_str();
    // `time` alone may be of any clock; fgprof writes it beside `samples`, and waits in it.
    let has = |names: &[&str]| types.iter().any(|t| names.contains(&t.0.as_str()));
    let is_wall = own == "wall"
        || own == "wall_samples"
        || has(&WALL) && has(&COUNTS) && (own == "time" || COUNTS.contains(&own));
    Ok((events, search::known_variance_of(asked.kind, is_wall)))
}

/// The most renamed or inlined functions that are named each, of what views follow.
const MAX_TOLD: usize = 5;

/// What moved between the sides, for views whose names follow it.
pub(crate) fn moves(diff: &Diff) -> Result<Moves> {
    // Of a heap by all that was allocated, which is more.
    let allocated = diff.sample_types().iter().position(|(kind, _)| kind == ALLOCATED);
    let asked = allocated.map_or_else(|| diff.asked(None, &[]), |number| Ok(diff.asked_of(number)))?;
    let selection = diff.select_with(&Query::default(), &Moves::default())?;
    let value = selection.measure_type(asked.number, Normalize::None)?;
    let texts = Texts::of(selection.frames(), &UserRules::default(), runtimes::Asked::All);
    let rows = asked.read(&selection, &value, 0, |columns| Look::new(columns, &texts).rows())?;
    let Names { rows, renamed, inlined, .. } = Names::matched(rows);
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
    for (said, how) in [(pairs, "under other names"), (calls, "inlined on one side")] {
        let more = said.len().saturating_sub(MAX_TOLD);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        if !said.is_empty() {
            let first = said.iter().take(MAX_TOLD).map(String::as_str).collect::<Vec<_>>().join("; ");
            moves.told.push(format!("matched {how}: {first}{more}"));
        }
    }
    Ok(moves)
}

fn explain(
    diff: &Diff,
    measure: &Measure,
    mut rows: Rows,
    heap: Option<&Rows>,
    options: &ExplainOptions,
) -> Explanation {
    let ops = options.ops.map(|(base, new)| new / base);
    let m = rows.runs;
    let runs = m[1] as f64 / m[0] as f64;
    let total = rows.total();
    let of_run = |side: usize, value: f64| rounded(value / m[side] as f64);
    let mut moved: Vec<Moved> = Vec::new();
    let equal = rows
        .rows
        .iter()
        .all(|r| (r.values[0] * m[1] as f64 - r.values[1] * m[0] as f64).abs() < 1e-9 * (r.values[0] + r.values[1]));
    let recorded = recorded::leave_out(&mut rows);
    let mut names = Names::matched(rows);
    let folded = std::mem::take(&mut names.inlined);
    let renamed = std::mem::take(&mut names.renamed);
    // Causes are sought above what was rewritten.
    names.cut();
    let Names { mut rows, uncut, rewritten, .. } = names;
    let is_shown = |pair: &&Renamed| (0..2).any(|side| pair.cost[side] > MIN_SHOWN * total[side]);
    let renamed_to: HashMap<u32, u32> = renamed.iter().map(|pair| (pair.old, pair.new)).collect();
    let shown = Shown { rows: &rows, renamed: renamed_to.clone() };
    for g in folded.iter().filter(|g| g.is_balanced || g.value > MIN_SHOWN * total[g.side]) {
        let (own, caller) = (shown.name(g.frame), shown.name(g.caller));
        let (function, from, how) =
            if g.side == 1 { (own, caller, How::Outlined) } else { (caller, own, How::Inlined) };
        moved.push(Moved {
            function,
            from,
            how,
            delta: of_run(g.side, g.value),
            cost: None,
            even: false,
            inside: None,
            packages: None,
        });
    }
    moved.extend(clones(&rows, total, of_run));
    let is_rewritten = rewritten.is_some();
    let rewrite = rewritten.map(|of| {
        let [from, to] = of.packages;
        let cost = (of_run(0, of.cost[0]), of_run(1, of.cost[1]));
        let below = of.below.map(|caller| shown.name(caller));
        Rewrite { from, to, below, cost, gone: of.functions[0], came: of.functions[1] }
    });
    let mut shifts = 0;
    let mut work = Work::of(measure.profile_bytes());
    let exposure = runs * ops.unwrap_or(1.0);
    let model = measure.sampling_model();
    // Several runs show by themselves how much values differ.
    let is_replicated = m.iter().all(|&m| m > 1) || rows.learned > 1;
    let is_uncounted = model == Model::Unknown && !is_replicated;
    // Of complete counts, one snapshot a side has no chance in it.
    let is_exact = model == Model::Exact && !is_replicated;
    let is_level = ops.is_none() && is_level_among(&diff.sample_types(), &measure.summary().sample_type);
    let (found, scale, findings, account, swaps, witnesses) = loop {
        work::poll();
        let sets = Sets::new(&rows);
        work.add(sets.places());
        let found = search::search(&rows, &sets, ops, options.min_effect, &mut work);
        let attribution = Attribution::new(&rows, &sets, &found);
        let mut candidates = attribution.candidates();
        let folds = |shift: &Shift| {
            let mut stacks = sets.rows(shift.set).map(|row| rows.stack(row as usize));
            shifts < MAX_SHIFTS && !work.is_used_up() && stacks.any(|stack| kept_of(stack, shift.inside) < stack.len())
        };
        if let Some(shift) = attribution.shift(&candidates).filter(folds) {
            shifts += 1;
            let shown = Shown { rows: &rows, renamed: renamed_to.clone() };
            let (function, from) = (shown.name(shift.gained), shown.name(shift.lost));
            let inside = Some(shown.name(shift.inside));
            let delta = of_run(0, shift.amount);
            match moved.iter_mut().find(|m| Some(m.how) == shift.how && m.function == function && m.from == from) {
                Some(known) => known.delta = known.delta.max(delta),
                // What moved and changed on the way is a change of what is around both.
                None => moved.extend(shift.how.filter(|_| shift.even).map(|how| {
                    let (cost, packages) = (None, None);
                    Moved { function, from, how, delta, cost, even: true, inside, packages }
                })),
            }
            let folded: Vec<u32> = sets.rows(shift.set).collect();
            // What is below only changed places.
            rows.regroup(|i, stack| {
                if folded.binary_search(&(i as u32)).is_ok() {
                    stack.truncate(kept_of(stack, shift.inside));
                }
            });
            continue;
        }
        let swaps = attribution.swaps(&mut candidates);
        let candidates = attribution.merge(candidates);
        let min_effect = options.min_effect;
        let scale = if is_level { exposure } else { found.scale };
        let books = Books {
            rows: &rows,
            sets: &sets,
            found: &found,
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
        let mut findings = if equal { Findings::default() } else { Findings::of(&books, books.settle(candidates)) };
        if options.undecided_total {
            findings.suspects.clear();
        }
        let account = books.account(&findings.causes);
        let mut account = account;
        if is_uncounted {
            // Nothing tells these from chance. The first of them is still the largest change.
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
        let split = |entry: account::Entry| (books.split(&entry), entry);
        let [causes, suspects] = [causes, suspects].map(|of| of.into_iter().map(split).collect::<Vec<_>>());
        let needed = |score: f64| if is_uncounted { None } else { books.runs_needed(score) };
        let candidate = candidate.map(|entry| (needed(entry.score), split(entry)));
        let witnesses = independent_witnesses(&rows, &sets, &found, scale);
        break (found, scale, (causes, suspects, candidate), account, swaps, witnesses);
    };
    let shown = Shown { rows: &rows, renamed: renamed_to };
    moved.extend(swaps.iter().map(|swap| Moved {
        function: shown.name(swap.gained),
        from: shown.name(swap.lost),
        how: swap.how,
        delta: of_run(0, swap.amount),
        cost: None,
        even: swap.even,
        inside: swap.inside.map(|caller| shown.name(caller)),
        packages: None,
    }));
    let of_sides = Shown { rows: &rows, renamed: HashMap::default() };
    let of_names = renamed.iter().filter(is_shown).map(|pair| Moved {
        function: of_sides.of_side(pair.new, 1),
        from: of_sides.of_side(pair.old, 0),
        how: How::Renamed,
        delta: of_run(1, pair.cost[1]),
        cost: Some((of_run(0, pair.cost[0]), of_run(1, pair.cost[1]))),
        even: found.is_even(&rows, scale, pair.cost),
        inside: None,
        packages: {
            let [from, to] =
                [pair.old, pair.new].map(|frame| package_of(&rows.names[frame as usize].text).into_owned());
            (pair.with_package && from != to).then_some((from, to))
        },
    });
    moved.splice(0..0, of_names.collect::<Vec<_>>());
    // Where inlining differs between builds, a function may seem to have moved to itself. Without a number of samples, only
    // names say that something moved.
    moved.retain(|m| m.function != m.from && !(is_uncounted && m.how != How::Renamed));
    let naming = Naming { rows: &rows, shown: &shown, total, scale };
    let is_count = measure.summary().unit == "count";
    let cause = |(split, entry): (Option<[f64; 4]>, account::Entry)| naming.cause(&entry, split.filter(|_| !is_count));
    let (causes, suspects, candidate) = findings;
    let mut candidate = candidate.map(|(runs, of)| Candidate { cause: cause(of), runs });
    let [causes, suspects] = [causes, suspects].map(|of| of.into_iter().map(cause).collect::<Vec<Cause>>());
    let sums = |side: usize| rows.rows.iter().filter(|r| r.background).map(|r| r.values[side]).sum::<f64>();
    let background = if total[0] > 0.0 { (sums(1) / scale - sums(0)) / total[0] } else { 0.0 };
    let factor = rounded(scale / runs);
    // Of exchanged sides both are as large.
    let less = (total[1] / m[1] as f64).min(factor * total[0] / m[0] as f64);
    // The nominal number of samples ranked the changes; it is no result.
    if let Some(candidate) = candidate.as_mut().filter(|_| is_uncounted) {
        let Evidence { base, new, .. } = &mut candidate.cause.evidence;
        (base.events, new.events, candidate.cause.score) = (0.0, 0.0, 0.0);
    }
    let (deviation, noticed, event) = match is_uncounted {
        true => (MAX_SAID, MAX_SAID, 0.0),
        false => (found.deviation.min(MAX_SAID), found.noticed.min(MAX_SAID), rows.event()),
    };
    let (all, rest) = (rows.all(), account.rest.abs());
    let verdict = match () {
        () if !causes.is_empty() => Verdict::Change,
        // Of complete counts, nothing on both sides is an answer.
        () if model == Model::Exact && equal => Verdict::None,
        () if (is_uncounted || is_exact) && !equal => Verdict::Inconclusive,
        () if total == [0.0; 2] => Verdict::Inconclusive,
        () if equal => Verdict::None,
        () if !suspects.is_empty() => Verdict::Inconclusive,
        // Where the whole changed for certain, something did.
        () if !account.by_chance && account.p.is_some_and(|p| p < SURE) => Verdict::Inconclusive,
        // Nor is it nothing where that is likely.
        () if account.p.is_some_and(|p| p < UNSURE) && rest > LARGE_REST * less => Verdict::Inconclusive,
        () if rest > VAST_REST * less || account.unexplained => Verdict::Inconclusive,
        // What was rewritten costs what it costs for an amount of work that only its callers know.
        () if is_rewritten && ops.is_none() => Verdict::Inconclusive,
        () if found.noticed < PRACTICAL => Verdict::None,
        // What moved is an answer, too, if little else could have gone unseen.
        () if !moved.is_empty() && found.noticed < UNNOTICED => Verdict::None,
        () => Verdict::Inconclusive,
    };
    let kind = measure.summary().sample_type.as_str();
    // What is said of the answer itself comes first: texts have room for one.
    let mut left_out: Vec<String> = rows.note_of_labels().into_iter().chain(recorded).collect();
    if work.is_used_up() {
        left_out.push("so many sets of stacks changed that not all ways to explain it were compared".to_owned());
    }
    left_out.extend(measure.sampling_warnings());
    left_out.extend(note_of_rest(rows.stackless(), all, kind, "have no stack, so no function has them"));
    left_out.extend(note_of_rest(rows.negative, all, kind, "are below 0, and of no cause"));
    let mut summary = Summary::clone(measure.summary());
    summary.warnings.splice(0..0, left_out.iter().cloned());
    summary.sampling = Some(measure.sampling());
    let noted = |side: usize| format!("nothing of {kind} was measured on the {} side", ["base", "new"][side]);
    if model != Model::Exact {
        summary.warnings.extend((0..2).filter(|&side| total[side] <= 0.0).map(noted));
    }
    let total = (of_run(0, all[0]), of_run(1, all[1]));
    summary.total = Pair { base: total.0.round() as i64, new: total.1.round() as i64 };
    // Runs of equal builds are no part of the base.
    summary.base = Some(diff.side(true, m[0]));
    let rule = match () {
        () if ops.is_some() => ScaleRule::Given,
        () if is_level => ScaleRule::Level,
        () if equal && found.of > 0 => ScaleRule::Same,
        () if found.unknown || found.of == 0 || !suspects.is_empty() || is_uncounted => ScaleRule::Unknown,
        // A few functions agree by accident, and where much was rewritten they are few.
        () if witnesses < ENOUGH && (is_rewritten || (factor - 1.0).abs() < 1e-6) => ScaleRule::Unknown,
        () if (factor - 1.0).abs() < 1e-6 => ScaleRule::Same,
        () => ScaleRule::Agree,
    };
    Explanation {
        summary: Arc::new(summary),
        folder: diff.folder().map(str::to_owned),
        total,
        verdict,
        scale: WorkScale { factor, rule, agree: found.agree, of: found.of },
        account,
        causes,
        rewrite,
        moved,
        suspects,
        candidate,
        background: rounded(background),
        noise: Noise {
            tau: rounded(found.tau),
            need: rounded(found.threshold),
            deviation: rounded(deviation),
            noticed: rounded(noticed),
            mde: rounded((noticed / 10.0).min(1.0)),
            runs: (m[0], m[1]),
            learned: rows.learned,
            event,
            degrees: found.degrees,
        },
        runtime: KnownRuntime { name: rows.runtime.name.to_owned(), source: rows.runtime.source.to_owned() },
        pruned: rows.pruned,
        left_out,
        work: work.done,
        also: Vec::new(),
    }
}

/// What is said of values that are in the rest alone.
fn note_of_rest(values: [f64; 2], all: [f64; 2], kind: &str, why: &str) -> Option<String> {
    let parts = [0, 1].map(|side| 100.0 * values[side] / all[side].max(f64::MIN_POSITIVE));
    let [base, new] = parts.map(f64::round);
    parts
        .iter()
        .any(|part| *part > 100.0 * LITTLE)
        .then(|| format!("{base}% of the base's and {new}% of the new side's {kind} {why}"))
}

/// How many frames of a stack are left if what is below a frame only changed places: up to the first time that it comes.
fn kept_of(stack: &[u32], inside: u32) -> usize {
    stack.iter().position(|frame| *frame == inside).map_or(stack.len(), |at| at + 1)
}
