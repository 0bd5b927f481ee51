//! The parts of an [`Explanation`], as callers and JSON see them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use super::attribution::CauseKind;
use super::{SURE, SURE_OF_RUNS};
use crate::commits::RankedCommits;
use crate::diff::Summary;
use crate::statistics::counts::chance_of;

/// The overall result of an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Something changed, and the causes say what.
    Change,
    /// No change exceeds chance, and a change that matters would have been detected.
    None,
    /// The samples do not decide whether anything changed.
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

/// The basis of the estimate of how much work the two sides did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ScaleRule {
    /// The number of operations was given.
    #[serde(rename = "ops given")]
    Given,
    /// Both sides did the same.
    #[serde(rename = "same work")]
    Same,
    /// Frames that no cause touches grew by one factor.
    #[serde(rename = "frames agree")]
    Agree,
    /// The functions do not agree on a factor, so the sides are compared as if they did the same work. The number of
    /// operations would decide.
    #[serde(rename = "unknown")]
    Unknown,
    /// The sample type measures what is in use, which does not depend on the amount of work. If all of it grew by one
    /// factor, that is a cause.
    #[serde(rename = "level")]
    Level,
}

/// The amount of work of a new run, compared with a base run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct WorkScale {
    /// The work of a new run divided by the work of a base run.
    pub factor: f64,
    /// The basis of the factor.
    pub rule: ScaleRule,
    /// The number of functions whose own cost changed by this factor, within chance.
    pub agree: usize,
    /// The number of functions with enough events to estimate a factor.
    pub of: usize,
}

/// A label of samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CauseLabel {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// A cause of the difference.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Cause {
    /// The function; `None` if everything with the label changed.
    pub function: Option<String>,
    /// The caller, if only this call changed.
    pub caller: Option<String>,
    /// The label, if only samples with this label changed.
    pub label: Option<CauseLabel>,
    /// The callee in the language's runtime or library, if the function's calls of it changed.
    pub callee: Option<String>,
    /// For a function of a library: the nearest functions of the program above it, largest change first. Their deltas
    /// add up to the cause's delta, except for stacks without a function of the program.
    pub program: Vec<ProgramShare>,
    /// The kind of change.
    pub kind: CauseKind,
    /// The change per run at equal work: `new - scale base` of the values in `evidence`, in the sample type's unit. No
    /// stack belongs to two causes, so the deltas add up ([`Account`]).
    pub delta: f64,
    /// The delta as a fraction of the base's total, scaled to the work of the new side.
    pub share: f64,
    /// The factor between the costs of both sides at equal work; `None` if the base cost is zero.
    pub factor: Option<f64>,
    /// The penalised deviance, which measures the distance from chance. A cause must exceed [`Noise::need`].
    pub score: f64,
    /// Functions with the same stacks, from the root.
    pub chain: Vec<String>,
    /// The changes that were merged into this cause. Each part measures only the cause's own stacks.
    pub parts: Vec<CausePart>,
    /// The share of count and unit cost in the change, if the profile measures both.
    pub split: Option<CostSplit>,
    /// The approximate change of garbage collection that this cause's allocations explain. It is not part of `delta`:
    /// it belongs to the account's consequences.
    pub garbage: Option<f64>,
    /// The stacks that show the cause.
    pub evidence: Evidence,
    /// The commits that may have changed the function, after [`Diff::rank_commits`](crate::Diff::rank_commits).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commits: Option<RankedCommits>,
}

/// The share of a function of the program in a cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ProgramShare {
    /// The function.
    pub function: String,
    /// The change, as in [`Cause::delta`].
    pub delta: f64,
}

/// A change that is part of a cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CausePart {
    /// The function.
    pub function: Option<String>,
    /// The caller.
    pub caller: Option<String>,
    /// The kind of change.
    pub kind: CauseKind,
    /// The change, as in [`Cause::delta`].
    pub delta: f64,
}

/// A change as the product of two factors. The fractions `count` and `unit` add up to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CostSplit {
    /// The fraction of the change that a different count explains.
    pub count: f64,
    /// The fraction of the change that a different cost per unit explains.
    pub unit: f64,
    /// The new count divided by the base count, at equal work.
    pub count_factor: f64,
    /// The new cost per unit divided by the base cost per unit.
    pub unit_factor: f64,
}

/// The stacks of a cause, and patterns that select them in other views.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Evidence {
    /// The extent on the base.
    pub base: Extent,
    /// The extent on the new side.
    pub new: Extent,
    /// A regular expression that matches the function's names, for `peek` and filters.
    pub pattern: Option<String>,
    /// A regular expression for functions whose stacks belong to other causes.
    pub ignore: Option<String>,
    /// All names of the function in the profiles, because builds may spell it differently.
    #[serde(skip)]
    pub functions: Vec<String>,
    /// All names of the caller.
    #[serde(skip)]
    pub callers: Vec<String>,
    /// All names of the callee, if the cause has one.
    #[serde(skip)]
    pub callees: Vec<String>,
}

/// The amount of data behind a cause on one side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Extent {
    /// The number of distinct stacks.
    pub stacks: usize,
    /// The approximate number of events that the profiler observed.
    pub events: f64,
    /// The value per run.
    pub value: f64,
}

/// How cost moved to another function without changing the sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum MoveKind {
    /// The function has another name.
    Renamed,
    /// The compiler gave a part of the function a name of its own.
    Clone,
    /// The compiler inlined the function into its caller.
    Inlined,
    /// The compiler moved a part of the function into a function of its own.
    Outlined,
    /// Cost moved from one function to another.
    Shift,
    /// A function and its callee exchanged cost.
    Swap,
    /// One function appeared and another disappeared, without evidence that they are the same function.
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
    /// The function that has the cost now.
    pub function: String,
    /// The function that had the cost in the base.
    pub from: String,
    /// The kind of move.
    pub how: MoveKind,
    /// The amount that moved, per run.
    pub delta: f64,
    /// For a renamed function: its total cost, including callees, in a run of the base and of the new side.
    pub cost: Option<(f64, f64)>,
    /// True if a test shows that the sum did not change: it stayed within chance, and below half of `delta`.
    pub even: bool,
    /// The common caller.
    pub inside: Option<String>,
    /// The packages of both names, if the function's name changed because its package was renamed.
    #[serde(skip)]
    pub packages: Option<(String, String)>,
}

/// A library that was rewritten. The search for causes then stays above it, in functions that both sides have.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Rewrite {
    /// The package with most of the cost that disappeared.
    pub from: String,
    /// The package with most of the cost that appeared.
    pub to: String,
    /// The function that calls most of the rewritten code on both sides, if one does.
    pub below: Option<String>,
    /// The cost of stacks with a function that only their own side has, in a run of the base and of the new side.
    pub cost: (f64, f64),
    /// The number of functions that disappeared. Rarely sampled functions do not count, because they may be missing by
    /// chance.
    pub gone: usize,
    /// The number of functions that appeared, counted like `gone`.
    pub came: usize,
}

/// The parts of the whole difference, for a mean run, in the sample type's unit:
/// `delta = work + causes + consequences + rest`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Account {
    /// The new total minus the base total.
    pub delta: f64,
    /// The part that a different amount of work explains: `(scale - 1) base`.
    pub work: f64,
    /// The sum of the causes' deltas.
    pub causes: f64,
    /// The sum of the changes that are consequences of causes elsewhere: garbage collection, scheduling, locks.
    pub consequences: f64,
    /// The part of the consequences that is garbage collection.
    pub garbage: f64,
    /// The unexplained rest.
    pub rest: f64,
    /// True if the rest is within chance.
    pub by_chance: bool,
    /// True if the rest is large and exceeds sampling error. It may still be chance, because runs differ.
    pub unexplained: bool,
    /// True if the consequences are within chance.
    pub consequences_by_chance: bool,
    /// The p-value of the difference of the totals, if both sides do the same work. With several runs, it is based on
    /// how the totals of a side vary. For one pair, it is based on how other programs vary. `None` if a side is empty.
    pub p: Option<f64>,
}

impl Account {
    /// Returns true if the total changed by more than chance, and the causes leave most of the change unexplained.
    pub(super) fn is_of_rest(&self, runs: [usize; 2]) -> bool {
        let sure = if runs.iter().all(|&runs| runs > 1) { SURE_OF_RUNS } else { SURE };
        !self.by_chance && self.p.is_some_and(|p| p < sure) && self.rest.abs() > self.causes.abs()
    }

    /// Returns true if each side has several runs, and they vary enough to explain the difference of the totals.
    pub(super) fn is_within_runs(&self, runs: [usize; 2]) -> bool {
        runs.iter().all(|&runs| runs > 1) && self.p.is_some_and(|p| p >= SURE_OF_RUNS)
    }
}

/// The nearest candidate, if no change qualifies as a cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct NearestCandidate {
    /// The candidate, in the form of a cause.
    #[serde(flatten)]
    pub cause: Cause,
    /// The approximate number of runs per side that would decide; `None` if that is more than 20.
    pub runs: Option<usize>,
}

/// The size of differences that chance explains.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Noise {
    /// The standard deviation, between equal runs, of the logarithm of a function's own cost.
    pub tau: f64,
    /// The minimum penalised deviance of a cause.
    pub need: f64,
    /// The standard deviation, by chance, of the logarithm of the growth of a frame with a tenth of the total. It
    /// combines sampling error and the variation between runs.
    pub deviation: f64,
    /// The minimum growth of such a frame that is detected with a probability of 90%, as a factor less one.
    pub noticed: f64,
    /// `noticed` as a fraction of the total, which is a tenth of it; at most 1.
    pub mde: f64,
    /// The number of runs of the base and of the new side.
    pub runs: (usize, usize),
    /// The number of additional A/A runs that estimate noise.
    pub learned: usize,
    /// The approximate value of one event that the profiler observed; 0 if nothing was measured.
    #[serde(skip)]
    pub event: f64,
    /// The degrees of freedom, if noise was measured.
    #[serde(skip)]
    pub(super) degrees: Option<u32>,
}

impl Noise {
    /// Returns true if several runs of both sides, or A/A runs, measure the variation between runs.
    pub fn is_replicated(&self) -> bool {
        self.runs.0.min(self.runs.1) > 1 || self.learned > 1
    }
}

impl Noise {
    /// Returns the probability that any candidate reaches this score by chance if the sides are equal.
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
    /// The source of the facts about this runtime.
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
    /// The folder that the user named instead of files, if it contains exactly these runs.
    #[serde(skip)]
    pub folder: Option<String>,
    /// The mean total of a run of the base, and of the new side.
    #[serde(skip)]
    pub total: (f64, f64),
    /// The overall result.
    pub verdict: Verdict,
    /// The amount of work of a new run.
    pub scale: WorkScale,
    /// The parts of the difference of the totals.
    pub account: Account,
    /// The causes, largest change first. Empty unless the verdict is a change.
    pub causes: Vec<Cause>,
    /// The rewritten library, if much of both sides is in functions that the opposite side lacks.
    pub rewrite: Option<Rewrite>,
    /// Cost that moved between functions.
    pub moved: Vec<Moved>,
    /// Causes that more work everywhere would explain nearly as well.
    pub suspects: Vec<Cause>,
    /// The nearest candidate, if there are neither causes nor suspects.
    pub candidate: Option<NearestCandidate>,
    /// The change of consequences (garbage collection, scheduling, locks), as a fraction of the total.
    pub background: f64,
    /// The size of differences that chance explains.
    pub noise: Noise,
    /// The runtime whose frames are distinguished from the program's.
    pub runtime: KnownRuntime,
    /// The number of distinct stacks that were truncated to a prefix they share with heavier stacks.
    pub pruned: usize,
    /// Warnings about omitted work, such as keys of labels or comparisons of causes.
    #[serde(skip)]
    pub left_out: Vec<String>,
    /// A deterministic measure of the work: the number of call tree nodes and candidate ranges that were created, plus
    /// the nodes that the search visited.
    #[serde(skip)]
    pub work: u64,
    /// Further explanations. Memory in use as the default sample type adds the allocations. Heap profiles of the same
    /// runs add the heaps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Explanation>,
}
