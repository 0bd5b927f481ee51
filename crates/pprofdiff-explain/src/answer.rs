//! The parts of an [`Explanation`], as callers and JSON see them.

use super::thresholds::{MAX_P_OF_CERTAIN_RUNS, MAX_P_OF_CERTAIN_TOTAL};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use super::attribution::CauseKind;
use crate::commits::RankedCommits;
use pprofdiff::Summary;
use pprofdiff::advice::exactly_any;
use pprofdiff::list::CodeChange;
use pprofdiff::shared::SourceLocation;
use pprofdiff::shared::statistics::counts::chance_of;

/// The overall result of an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// At least one change exceeds chance; [`Explanation::causes`] lists such changes.
    Change,
    /// No change was found, and it is unlikely that a large change stayed undetected: the sides are equal, or growth of
    /// a frame with a tenth of the total would be detected from a factor of 2 on (of 4, if cost only moved between
    /// functions; see [`NoiseEstimate::noticed`]).
    None,
    /// The profiles do not decide whether anything changed: too much noise, a change of the total without a cause, or a
    /// cause that a different amount of work would explain as well ([`Explanation::suspects`]).
    Inconclusive,
}

impl Verdict {
    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Change => "change",
            Verdict::None => "none",
            Verdict::Inconclusive => "inconclusive",
        }
    }
}

/// How [`WorkScale::factor`] was determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ScaleRule {
    /// The caller gave the number of operations of each side ([`ExplainOptions::ops`](super::ExplainOptions::ops)). The
    /// factor is their ratio, new divided by base.
    #[serde(rename = "ops given")]
    Given,
    /// The profiles count calls, and the entry functions were called equally often on both sides ([`WorkScale::calls`]).
    /// An entry function is called several times by functions that ran once, for example once per request by `main`.
    #[serde(rename = "calls counted")]
    Counted,
    /// The factor is 1: either all values are equal on both sides, or the own costs of at least three functions that do
    /// not call each other are unchanged.
    #[serde(rename = "same work")]
    Same,
    /// The factor is not 1. It is the growth of the functions without a cause: enough of them grew by about the same
    /// factor.
    #[serde(rename = "frames agree")]
    Agree,
    /// The profiles do not determine the factor. The functions do not agree on one, too few functions have enough
    /// events, a single pair of profiles does not record the number of samples, or more work everywhere would explain
    /// the difference as well as a cause. The explanation assumes [`WorkScale::factor`], mostly 1. The number of
    /// operations would decide.
    #[serde(rename = "unknown")]
    Unknown,
    /// The factor is 1, because the sample type measures a level such as memory in use, which does not depend on the
    /// amount of work. If all of it grew by one factor, that growth is a cause.
    #[serde(rename = "level")]
    Level,
}

/// The amount of work (such as requests) of a new run, compared with a base run. More work raises the cost of all
/// functions by one factor, so this growth is no cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct WorkScale {
    /// The work of a new run divided by the work of a base run: 2 means that a new run did twice as much.
    pub factor: f64,
    /// How the factor was determined.
    pub rule: ScaleRule,
    /// The number of functions, out of `of`, whose own cost grew by this factor within chance or within 10%. For
    /// [`ScaleRule::Level`], the number that grew by the factor that fits the functions best, which may not be 1.
    pub agree: usize,
    /// The number of functions with enough events to estimate a factor from: more than 20, on both sides together.
    pub of: usize,
    /// The calls that count the work, for [`ScaleRule::Counted`]. `None` for other rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<CountedWork>,
    /// A different amount of work, from another sample type of the same runs. Neither is certain then. `None` if they agree,
    /// if both are only assumed, and without heap profiles of the same runs
    /// ([`ExplainOptions::heap`](super::ExplainOptions::heap)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disputed: Option<DisputedWork>,
}

/// Another amount of work, as another sample type of the same runs shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct DisputedWork {
    /// The other sample type.
    pub sample_type: String,
    /// Its [`WorkScale::factor`].
    pub factor: f64,
    /// Its [`WorkScale::rule`].
    pub rule: ScaleRule,
}

/// The calls of a function that count the work of a run: its callers were called once, and it has most of the cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CountedWork {
    /// The function.
    pub function: String,
    /// The number of calls in a run of the base.
    pub base: f64,
    /// The number of calls in a run of the new side.
    pub new: f64,
}

/// A label of samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CauseLabel {
    /// The key of the label.
    pub key: String,
    /// The value of the label.
    pub value: String,
}

/// A cause of the difference.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Cause {
    /// The function that changed. `None` if all samples with the label changed or, without a label, if all memory in
    /// use (or another level) grew by one factor.
    pub function: Option<String>,
    /// The caller, if the cause covers only this caller's calls of the function. `None` if it covers all calls.
    pub caller: Option<String>,
    /// The label, if the cause covers only samples with this label.
    pub label: Option<CauseLabel>,
    /// The system function (of the language's runtime or standard library) that `function` calls directly, if the cause
    /// covers only these calls. `None` if the cause is not limited to one system function.
    pub callee: Option<String>,
    /// The functions of other causes below `function`, if the amount is visibly another one without them, and a plain table
    /// without them shows this amount. Otherwise empty.
    #[serde(skip)]
    pub without: Vec<String>,
    /// True if the amount is visibly another one than the change of everything that the names cover, because other causes
    /// are below `function`. Such a cause has no split, and a line only if it names a call.
    #[serde(skip)]
    pub(crate) is_partial: bool,
    /// For a function outside the program, such as a library's: up to five functions of the program that are nearest
    /// above it in the cause's stacks, largest change first. Empty for a function of the program. The deltas of all
    /// such functions add up to the cause's delta, except for stacks without a function of the program.
    pub program: Vec<ProgramShare>,
    /// The kind of change.
    pub kind: CauseKind,
    /// The change of the cause's stacks per run of the new side, at equal work, in the sample type's unit: `new -
    /// factor base`, from the values in `evidence` and [`WorkScale::factor`]. Positive if the new side costs more. No
    /// stack belongs to two causes, so the deltas add up ([`Account`]).
    pub delta: f64,
    /// The delta divided by the base's total at the new side's amount of work: 0.05 means 5% of the total. 0 if the
    /// base's total is zero.
    pub share: f64,
    /// The new cost of the cause's stacks divided by their base cost, at equal work: 1.5 means 50% more. `None` if the
    /// base cost is zero.
    pub factor: Option<f64>,
    /// The evidence against the null hypothesis that the cost of the cause's stacks is unchanged at equal work. It is a
    /// penalised deviance: roughly the square of the number of standard deviations between the sides, where the
    /// standard deviation includes sampling error and noise between runs. A cause found by the search exceeds
    /// [`NoiseEstimate::need`]. A [`NearestCandidate`] need not. Its score is 0 for a single pair of profiles without a number
    /// of samples, where chance is unknown.
    pub score: f64,
    /// The function that `function` is in front of, if `function` (or, with `callee`, `callee`) exists on one side only and
    /// its caller calls that function directly on the opposite side. `delta` is then the cost besides these calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wraps: Option<String>,
    /// The callees of consecutive calls that occur in exactly the same stacks, outermost first, so the samples do not
    /// show which of these calls changed. Leading calls that do not involve the program's own code are omitted. Empty if
    /// the cause was not found as a call, such as a function's own cost.
    pub chain: Vec<String>,
    /// The changes that make up this cause: merged neighbouring changes, the added and the removed call of a
    /// replacement, the system callees with the largest changes, or a function's own cost and its system callees. Empty for
    /// a single change. The deltas of the parts
    /// need not add up to the cause's delta.
    pub parts: Vec<CausePart>,
    /// How much of the change comes from a different count (such as allocations) and how much from a different cost per
    /// unit. `None` for values without a count of their own (such as CPU time), for a sample type that is a count
    /// itself, if a side has no value or no count, and if the value grew exactly like the work.
    pub split: Option<CostSplit>,
    /// The calls of the cause's function (or of `callee`, if it is set) from its caller, if the profiles count every call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<CountedCalls>,
    /// The approximate change of garbage collection, per run and in the unit of `delta`, that this cause's allocations
    /// explain. It is not part of `delta`: it belongs to [`Account::garbage`]. `None` if the cause explains at most a
    /// tenth of the change of allocations, or if allocations did not change in the direction of garbage collection,
    /// beyond chance.
    pub garbage: Option<f64>,
    /// The amount of data behind the cause, and patterns that select its stacks.
    pub evidence: Evidence,
    /// The difference between the function's instructions in both builds, for a cause of the kind [`CauseKind::Own`]. It
    /// is evidence, but not the reason: equal instructions can take longer if they are executed more often or on other
    /// data, or because of their place in memory. `None` for other causes, and unless the user named binaries for both
    /// sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeChange>,
    /// The commits that may have changed the function. `None` before `pprofdiff_commits::rank_commits`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commits: Option<RankedCommits>,
    /// The source line of the cause: the line of the call that changed, or the line of the function's own cost. It comes
    /// from the side that costs more, and is a line of the function that [`Cause::place_of`] returns. `None` unless one
    /// line has most of the change (two thirds), and if the profiles lack lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<SourceLocation>,
}

/// The part of a library's cause that is below one function of the program.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ProgramShare {
    /// The function of the program.
    pub function: String,
    /// The change, as in [`Cause::delta`].
    pub delta: f64,
    /// All names of the function in the profiles, because builds may spell it differently.
    #[serde(skip)]
    pub functions: Vec<String>,
}

/// The function that contains the line of a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceOf {
    /// The cause's function.
    Function,
    /// The caller of the cause's function.
    Caller,
    /// The function of the program that calls the library.
    Program,
}

impl Cause {
    /// Returns the function that contains [`Cause::place`]: for a library, the function of the program, whose lines the
    /// reader can change. Otherwise the function that makes the call or, for its own cost, the function itself.
    pub fn place_of(&self) -> PlaceOf {
        let is_callers = self.kind != CauseKind::Own && self.callee.is_none() && self.changed_call().is_none();
        let is_program = self.main_program().is_some_and(|program| self.caller.as_ref() != Some(&program.function));
        match () {
            () if is_program => PlaceOf::Program,
            () if is_callers && self.caller.is_some() => PlaceOf::Caller,
            () => PlaceOf::Function,
        }
    }

    /// Returns the first part of the cause that is a call by its function, such as the call that replaced another. `None` for
    /// a wrapper, whose caller changed.
    pub(super) fn changed_call(&self) -> Option<&CausePart> {
        let is_own = |part: &&CausePart| part.caller.is_some() && part.caller == self.function;
        self.parts.iter().find(is_own).filter(|_| self.wraps.is_none())
    }

    /// Returns a regular expression for `peek` in the reader's own code. For a cause in a library or a runtime, it
    /// matches the functions of the program that sentences name: the first if it has nearly all of the change,
    /// otherwise all. For other causes, it is the pattern of the evidence.
    pub fn own_pattern(&self) -> Option<String> {
        let shares = match self.main_program() {
            Some(main) => std::slice::from_ref(main),
            None => self.program.as_slice(),
        };
        match shares.iter().flat_map(|share| share.functions.iter().cloned()).collect::<Vec<_>>() {
            names if names.is_empty() => self.evidence.pattern.clone(),
            names => Some(exactly_any(&names)),
        }
    }
}

/// A change that is part of a cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CausePart {
    /// The function that changed.
    pub function: Option<String>,
    /// The caller, if the change covers only this caller's calls of the function.
    pub caller: Option<String>,
    /// The kind of change.
    pub kind: CauseKind,
    /// The change, as in [`Cause::delta`].
    pub delta: f64,
}

/// A change of cost, split into a change of the count and of the cost per unit. The fractions `count` and `unit` are
/// their parts of the logarithm of the change, so they add up to 1. A fraction is negative if its factor changed in the
/// opposite direction, and the opposite fraction is then greater than 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CostSplit {
    /// The fraction of the change that a different count explains.
    pub count: f64,
    /// The fraction of the change that a different cost per unit explains.
    pub unit: f64,
    /// The new count divided by the base count, at equal work: 2 means twice as many.
    pub count_factor: f64,
    /// The new cost per unit divided by the base cost per unit: 2 means that each unit costs twice as much.
    pub unit_factor: f64,
}

/// The number of calls behind a cause, counted and not sampled.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CountedCalls {
    /// The number of calls in a run of the base. It is not scaled to equal work.
    pub base: f64,
    /// The number of calls in a run of the new side.
    pub new: f64,
    /// The new number of calls divided by the base's, at equal work. `None` if a side has no calls.
    pub count_factor: Option<f64>,
    /// The new cost of a call divided by its base cost. `None` if a side has no calls, if the cost is not counted exactly, or
    /// if other causes have a part of the function's cost.
    pub unit_factor: Option<f64>,
}

/// The stacks of a cause, and patterns that select them in other views.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Evidence {
    /// The amount of data on the base.
    pub base: Extent,
    /// The amount of data on the new side.
    pub new: Extent,
    /// A regular expression for `peek` and filters. It matches the function's shown name, or all of its names if it was
    /// renamed. `None` if the cause has no function.
    pub pattern: Option<String>,
    /// A regular expression for functions to ignore in filters, because some stacks that match `pattern` do not belong to
    /// this cause: functions of other causes, and the garbage collection, scheduling and locks that [`Account`] lists
    /// separately. `None` if no stacks need to be ignored.
    pub ignore: Option<String>,
    /// All names of the function in the profiles, because builds may spell it differently. Empty if the cause has no
    /// function.
    #[serde(skip)]
    pub functions: Vec<String>,
    /// All names of the caller. Empty if the cause has no caller.
    #[serde(skip)]
    pub callers: Vec<String>,
    /// All names of the callee. Empty if the cause has no callee.
    #[serde(skip)]
    pub callees: Vec<String>,
}

/// The amount of data behind a cause on one side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Extent {
    /// The number of distinct stacks (with labels) that have a value on this side.
    pub stacks: usize,
    /// The approximate number of events (such as samples) that the profiler observed on this side, in all runs
    /// together. 0 in the candidate of a single pair of profiles without a number of samples, where it is unknown.
    pub events: f64,
    /// The value per run of this side, in the sample type's unit. It is not scaled to equal work.
    pub value: f64,
}

/// How cost moved from one function to another, or to another name, between the base and the new side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum MoveKind {
    /// The function has another name on the new side.
    Renamed,
    /// The compiler compiled a part of the function under a name of its own (the function's name with a suffix such as
    /// `.cold`) on one side only.
    Clone,
    /// The base has a function that the new side lacks: there, its caller calls its callee directly ([`Moved::callee`]), or
    /// the caller's own cost increased by its cost. A compiler may have inlined it.
    Inlined,
    /// The reverse of [`MoveKind::Inlined`]: the new side has a function between a caller and a callee, or a function
    /// whose cost is part of its caller's own cost in the base.
    Outlined,
    /// Cost moved between functions below [`Moved::inside`], and the cost of that function as a whole changed by no
    /// more than chance.
    Shift,
    /// The costs of two functions changed by about the same amount in opposite directions, and the functions are
    /// related: one calls the other, or their names or callees are alike.
    Swap,
    /// A function that only the new side has replaced a function that only the base has, at about the same cost.
    /// Nothing shows that they are the same function under two names.
    Replaced,
}

impl MoveKind {
    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            MoveKind::Renamed => "renamed",
            MoveKind::Clone => "clone",
            MoveKind::Inlined => "inlined",
            MoveKind::Outlined => "outlined",
            MoveKind::Shift => "shift",
            MoveKind::Swap => "swap",
            MoveKind::Replaced => "replaced",
        }
    }
}

/// Cost that moved from one function to another.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Moved {
    /// The function that has the cost on the new side.
    pub function: String,
    /// The function that had the cost in the base.
    pub from: String,
    /// The kind of move.
    pub how: MoveKind,
    /// The amount that moved per run, in the sample type's unit. Never negative. For a shift, swap or replacement, it
    /// is measured at the base's amount of work. For other kinds, it is the cost of the function or part that has its
    /// own name, on the new side if that side has it.
    pub delta: f64,
    /// For a renamed function: its total cost, including callees. For a function whose own cost is part of its caller's
    /// own cost on one side: the own costs of both together. Per run of the base and of the new side, not scaled to equal
    /// work. `None` for other moves.
    pub cost: Option<(f64, f64)>,
    /// True if a test does not reject that the cost is unchanged at equal work: it changed within chance, and by less
    /// than half of the amount that moved (or of the renamed function's cost). The tested cost is the sum of both
    /// functions for a swap, the function's own total for a rename, and the cost of the function `inside` for a shift.
    /// Shifts are reported only if this is true. False if the cost changed by more, and for clones, inlined and outlined
    /// functions, which are not tested.
    pub even: bool,
    /// The function that the caller calls directly on the side without `function` or `from`: that function is only in
    /// between. `None` unless it was inlined or outlined, and if its own cost is part of its caller's own cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callee: Option<String>,
    /// The function that contains both: the cost moved below it. `None` for all kinds except shifts and replacements,
    /// and for a replacement without such a function.
    pub inside: Option<String>,
    /// The packages of the old and the new name, if a renamed package gave the function its new name. Otherwise `None`.
    #[serde(skip)]
    pub packages: Option<(String, String)>,
}

/// A library that was rewritten: much of both sides' cost is in functions that the opposite side lacks. These functions
/// cannot be compared one by one, so stacks are cut where they begin, and causes are searched above, in functions that
/// both sides have.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Rewrite {
    /// The package with most of the cost in functions that only the base has.
    pub from: String,
    /// The package with most of the cost in functions that only the new side has.
    pub to: String,
    /// The function that calls most of the rewritten code on both sides. `None` if no single function does.
    pub below: Option<String>,
    /// The cost per run of the stacks with a function of `from` that only the base has, and of the stacks with a function
    /// of `to` that only the new side has, in the sample type's unit. It is not scaled to equal work.
    pub cost: (f64, f64),
    /// The number of functions of `from` that only the base has. Functions with few events do not count, because the new
    /// side may lack them by chance.
    pub gone: usize,
    /// The number of functions of `to` that only the new side has, counted like `gone`.
    pub came: usize,
}

/// The parts of the difference of the totals, per run, in the sample type's unit. Each part is new minus base, so it is
/// positive if the new side costs more: `delta = work + causes + consequences + rest`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Account {
    /// The mean total of a new run minus the mean total of a base run.
    pub delta: f64,
    /// The part that a different amount of work explains: `(factor - 1) base`, with [`WorkScale::factor`] and the
    /// base's mean total. All other parts are changes at equal work.
    pub work: f64,
    /// The sum of the deltas of [`Explanation::causes`].
    pub causes: f64,
    /// The change of the cost that is a consequence of causes elsewhere: garbage collection, scheduling, locks.
    pub consequences: f64,
    /// The part of `consequences` that is garbage collection.
    pub garbage: f64,
    /// The change of all other stacks.
    pub rest: f64,
    /// True if the rest is within chance: the hypothesis that its stacks are unchanged at equal work is not rejected at
    /// 5%, given sampling error and noise between runs. Always false with negative values, whose sampling error is
    /// unknown, and for a single pair of profiles with exact counts or without a number of samples.
    pub by_chance: bool,
    /// True if the rest is more than a tenth of the larger side's total and exceeds sampling error. It may still be
    /// chance, because runs differ. For a single pair of profiles with exact counts: true if the rest is not zero.
    pub unexplained: bool,
    /// True if the consequences are within chance: the hypothesis that their cost is unchanged at equal work is not
    /// rejected at 1%. Always false for a single pair of profiles with exact counts or without a number of samples.
    pub consequences_by_chance: bool,
    /// The two-sided p-value of the difference of the totals. The null hypothesis is that a run of each side costs the
    /// same or, if the numbers of operations were given, the same per operation. It does not use [`WorkScale::factor`].
    /// With several runs, chance is the variation of their totals, shrunk towards the variation of other programs.
    /// Otherwise, it is sampling error and the usual variation between runs of other programs. Tables show the same
    /// p-value. `None` if a side's total is zero, and for one pair without a number of samples.
    pub p: Option<f64>,
    /// Like `p`, without shrinking: with several runs on each side, only the variation of their totals. The rules of
    /// `explain` decide by it, because they compare it with the variation of these runs.
    #[serde(skip)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(super) own_p: Option<f64>,
}

impl Account {
    /// Returns true if the rest exceeds chance, the total certainly changed ([`MAX_P_OF_CERTAIN_TOTAL`], or
    /// [`MAX_P_OF_CERTAIN_RUNS`] for several runs per side), and the rest is larger than all causes together. The part
    /// that the amount of work explains is not compared.
    pub(super) fn is_of_rest(&self, runs: [usize; 2]) -> bool {
        let sure = if runs.iter().all(|&runs| runs > 1) { MAX_P_OF_CERTAIN_RUNS } else { MAX_P_OF_CERTAIN_TOTAL };
        !self.by_chance && self.own_p.is_some_and(|p| p < sure) && self.rest.abs() > self.causes.abs()
    }

    /// Returns true if each side has several runs, and their variation explains the difference of the totals
    /// ([`MAX_P_OF_CERTAIN_RUNS`]). Returns false if `p` is `None`.
    pub(super) fn is_within_runs(&self, runs: [usize; 2]) -> bool {
        runs.iter().all(|&runs| runs > 1) && self.own_p.is_some_and(|p| p >= MAX_P_OF_CERTAIN_RUNS)
    }
}

/// The change that comes nearest to a cause if no change qualifies: more than chance if it were the only tested change,
/// but not among all tested changes. For a single pair of profiles without a number of samples, it is only the largest
/// change.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct NearestCandidate {
    /// The candidate, in the form of a cause.
    #[serde(flatten)]
    pub cause: Cause,
    /// The approximate number of runs per side that would decide whether the candidate is a cause. `None` if that is
    /// more than 20, and for a single pair of profiles without a number of samples.
    pub runs: Option<usize>,
}

/// The size of differences that chance explains: sampling error, and noise between equal runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct NoiseEstimate {
    /// The typical standard deviation, between equal runs, of the natural logarithm of a function's own cost: 0.07
    /// means about 7%. It does not include sampling error.
    pub tau: f64,
    /// The threshold for [`Cause::score`]. It is Bonferroni's: if nothing changed, the probability that any tested
    /// change exceeds it is at most 5% if noise was measured ([`NoiseEstimate::is_replicated`]), and 0.2% if it was estimated
    /// from one pair.
    pub need: f64,
    /// The standard deviation, by chance, of the natural logarithm of a ratio, new divided by base, for an unchanged
    /// frame with a tenth of the total: 0.3 means about 30%. It combines sampling error and noise between runs. At most
    /// 1e6, which also means unknown.
    pub deviation: f64,
    /// The minimum growth of a frame with a tenth of the total that is detected as a cause with a probability of 90%,
    /// as a factor minus 1: 0.5 means that growth of 50% is detected, and less may not be. At most 1e6, which also
    /// means unknown.
    pub noticed: f64,
    /// The minimum detectable effect: `noticed` as a fraction of the total. The frame has a tenth of the total, so this
    /// is a tenth of `noticed`, and at most 1.
    pub mde: f64,
    /// The number of runs of the base and of the new side.
    pub runs: (usize, usize),
    /// The number of additional A/A runs: equal runs that only estimate noise.
    pub learned: usize,
    /// The approximate value of one event (such as a sample) that the profiler observed, in the sample type's unit. 0
    /// if there are no values, and for a single pair of profiles without a number of samples.
    #[serde(skip)]
    pub event: f64,
    /// The degrees of freedom of the variance between runs. `None` if it was estimated from one pair.
    #[serde(skip)]
    pub(super) degrees: Option<u32>,
}

impl NoiseEstimate {
    /// Returns true if noise was measured: if both sides have several runs, or if there are several A/A runs.
    pub fn is_replicated(&self) -> bool {
        self.runs.0.min(self.runs.1) > 1 || self.learned > 1
    }
}

impl NoiseEstimate {
    /// Returns the probability that at least one of all tested changes reaches this [`Cause::score`] by chance if
    /// nothing changed.
    pub fn p_of(&self, score: f64) -> f64 {
        chance_of(score, self.need, self.degrees)
    }
}

/// The runtime whose frames `explain` distinguishes from the program's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct KnownRuntime {
    /// The language.
    pub name: String,
    /// The source of the facts about the runtime.
    pub source: String,
}

/// An explanation of why two sides differ.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Explanation {
    /// The compared profiles and their totals, after filters and without A/A runs.
    #[serde(skip)]
    pub summary: Arc<Summary>,
    /// The sample type, in a check whose rule is about another one: allocations explain why memory in use grew. `None` in
    /// all other explanations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_type: Option<String>,
    /// The folder that the user named instead of files, for commands in the output. `None` if the user named files, or
    /// if the folder also contains other runs.
    #[serde(skip)]
    pub folder: Option<String>,
    /// The mean total of a run of the base and of the new side, in the sample type's unit, not scaled to equal work.
    /// Negative values count by their magnitude.
    #[serde(skip)]
    pub total: (f64, f64),
    /// The overall result.
    pub verdict: Verdict,
    /// The amount of work of a new run, compared with a base run.
    pub scale: WorkScale,
    /// The parts of the difference of the totals.
    pub account: Account,
    /// The causes, largest change first. Empty unless the verdict is [`Verdict::Change`].
    pub causes: Vec<Cause>,
    /// The rewritten library, if much of both sides is in functions that the opposite side lacks.
    pub rewrite: Option<Rewrite>,
    /// Cost that moved between functions. Renamed functions come first.
    pub moved: Vec<Moved>,
    /// Changes, largest first, that are causes if the sides did the same work, but that more or less work everywhere
    /// would explain nearly as well. The verdict is [`Verdict::Inconclusive`] if there are suspects but no causes. If
    /// the number of samples is unknown: the large changes after the largest one, which is the candidate.
    pub suspects: Vec<Cause>,
    /// The change that comes nearest to a cause. `None` if there are causes, and if no change is near enough. The only
    /// case with suspects is an unknown number of samples.
    pub candidate: Option<NearestCandidate>,
    /// The change of consequences (garbage collection, scheduling, locks) at equal work, as a fraction of the base's
    /// total. 0 if the base's total is zero.
    pub background: f64,
    /// The size of differences that chance explains.
    pub noise: NoiseEstimate,
    /// The runtime whose frames are distinguished from the program's.
    pub runtime: KnownRuntime,
    /// The number of distinct stacks that were truncated to a prefix they share with heavier stacks.
    pub pruned: usize,
    /// Warnings about the explanation itself: labels and frames that are not compared, a search that ended early,
    /// values that belong to no function or cause, and sampling that differs between the sides or is unknown. The
    /// warnings of [`Explanation::summary`] contain them, too.
    #[serde(skip)]
    pub left_out: Vec<String>,
    /// A deterministic measure of the work: the number of call tree nodes and candidate ranges that were created, plus
    /// the nodes that the search visited.
    #[serde(skip)]
    pub work: u64,
    /// The number of causes that contradicted the plain table of both sides, and were corrected or dropped before the
    /// answer was given. Expected to be 0: each is a gap in the rules.
    #[serde(skip)]
    pub contradictions: usize,
    /// Further explanations of the same runs, each with its own verdict. If no sample type was chosen and the default
    /// is memory in use, this explains the allocations. If heap profiles were given
    /// ([`ExplainOptions::heap`](super::ExplainOptions::heap)), it explains these as well. Otherwise empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Explanation>,
}
