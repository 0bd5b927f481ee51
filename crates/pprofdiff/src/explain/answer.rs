//! What an explanation consists of, as callers and JSON see it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use super::attribution::CauseKind;
use super::{SURE, SURE_OF_RUNS};
use crate::commits::RankedCommits;
use crate::diff::Summary;
use crate::statistics::counts::chance_of;

/// What is said of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Something changed, and the causes say what.
    Change,
    /// Nothing changed that could be told from chance, and what matters would have been noticed.
    None,
    /// These samples can't tell.
    Inconclusive,
}

impl Verdict {
    /// As results spell it.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Change => "change",
            Verdict::None => "none",
            Verdict::Inconclusive => "inconclusive",
        }
    }
}

/// How the amount of work on the two sides was found.
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
    /// Functions agree on no amount, so that it is taken for the same; the number of operations would tell.
    #[serde(rename = "unknown")]
    Unknown,
    /// What is in use is no work: all of it that grew by one factor is a cause.
    #[serde(rename = "level")]
    Level,
}

/// How much work a run of the new side did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct WorkScale {
    /// Work of a new run by that of a base run.
    pub factor: f64,
    /// How it was found.
    pub rule: ScaleRule,
    /// Functions whose own cost changed by no more than that and chance.
    pub agree: usize,
    /// Functions that have enough events to tell.
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

/// A cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Cause {
    /// The function; `None` if all that has the label changed.
    pub function: Option<String>,
    /// What calls it, where the change is that of one call.
    pub caller: Option<String>,
    /// Only samples with this label changed.
    pub label: Option<CauseLabel>,
    /// What the function calls, if it is these calls that changed: what it is of the language's runtime or library.
    pub callee: Option<String>,
    /// Of a function of a library: which functions of the program come to it, those with the largest change first. Their
    /// deltas add up to the cause's, but for stacks without a function of the program.
    pub program: Vec<Within>,
    /// What kind of change it is.
    pub kind: CauseKind,
    /// By how much a run of the new side has more than the base's at its work: `new - scale base` of the values in
    /// `evidence`, in the sample type's unit. No stack belongs to two causes, so deltas add up ([`Account`]).
    pub delta: f64,
    /// The delta as a part of the base's total at the work of the new side.
    pub share: f64,
    /// By what its cost was multiplied, beside the amount of work; `None` if there was none.
    pub factor: Option<f64>,
    /// How far it is from chance: the penalised deviance, to be compared with [`Noise::need`].
    pub score: f64,
    /// Functions that have the same stacks, from the root.
    pub chain: Vec<String>,
    /// What changed within it, if several causes were found to be this one; each of the cause's stacks alone.
    pub parts: Vec<Part>,
    /// How much of it is that of the count, where cost and count are both measured.
    pub split: Option<Split>,
    /// About how much of the change of garbage collection is this cause's, by what it allocates more or less; it is no part of
    /// `delta`, but of the account's consequences.
    pub garbage: Option<f64>,
    /// What it was found in.
    pub evidence: Evidence,
    /// Which commits reach it, where that was asked ([`Diff::rank_commits`](crate::Diff::rank_commits)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commits: Option<RankedCommits>,
}

/// How much of a cause is of one function of the program.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Within {
    /// The function.
    pub function: String,
    /// As [`Cause::delta`].
    pub delta: f64,
}

/// A part of a cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Part {
    /// The function.
    pub function: Option<String>,
    /// What calls it.
    pub caller: Option<String>,
    /// What kind of change it is.
    pub kind: CauseKind,
    /// As [`Cause::delta`].
    pub delta: f64,
}

/// A change as a product of two. The parts `count` and `unit` add up to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Split {
    /// The part of the change that more or fewer of them make.
    pub count: f64,
    /// The part that each of them makes by costing more or less.
    pub unit: f64,
    /// So many times as many.
    pub count_factor: f64,
    /// Each so many times as much.
    pub unit_factor: f64,
}

/// The stacks of a cause, and how to look at them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Evidence {
    /// Of the base.
    pub base: Extent,
    /// Of the new side.
    pub new: Extent,
    /// An expression that finds the function by its name, for `peek` and filters.
    pub pattern: Option<String>,
    /// One that finds the functions whose stacks are other causes'.
    pub ignore: Option<String>,
    /// All names that the profiles have for the function: builds may spell it differently.
    #[serde(skip)]
    pub functions: Vec<String>,
    /// Those of its caller.
    #[serde(skip)]
    pub callers: Vec<String>,
    /// Those of what it calls, where that is the cause.
    #[serde(skip)]
    pub callees: Vec<String>,
}

/// How much was measured of something on one side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Extent {
    /// Distinct stacks.
    pub stacks: usize,
    /// Events that the profiler saw, about.
    pub events: f64,
    /// Their value in a run.
    pub value: f64,
}

/// How cost came to another function without a change of the sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// The function has another name.
    Renamed,
    /// A part of the function has a name of its own, which the compiler gave it.
    Clone,
    /// The compiler put the function into its caller.
    Inlined,
    /// The compiler put a part of the function into one of its own.
    Outlined,
    /// One function's cost became another's.
    Shift,
    /// Two functions of which one calls the other exchanged cost.
    Swap,
    /// A function came where another went, and nothing says that they are one.
    Replaced,
}

impl How {
    /// As results spell it.
    pub fn name(self) -> &'static str {
        match self {
            How::Renamed => "renamed",
            How::Clone => "clone",
            How::Inlined => "inlined",
            How::Outlined => "outlined",
            How::Shift => "shift",
            How::Swap => "swap",
            How::Replaced => "replaced",
        }
    }
}

/// Cost that has another name now.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Moved {
    /// Who has it now.
    pub function: String,
    /// Who had it.
    pub from: String,
    /// How it came there.
    pub how: How,
    /// How much, of a run.
    pub delta: f64,
    /// Of a function with another name: what it costs with all below it, in a run of the base and of the new side.
    pub cost: Option<(f64, f64)>,
    /// True if it was tested that the sum did not change: by no more than chance, and by less than half of what moved.
    pub even: bool,
    /// What both are part of.
    pub inside: Option<String>,
    /// The packages of a function that has another name because its package has.
    #[serde(skip)]
    pub packages: Option<(String, String)>,
}

/// A library that was rewritten. Causes are sought above it then, among what both sides have.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Rewrite {
    /// The package that most of what went is in.
    pub from: String,
    /// The package that most of what came is in.
    pub to: String,
    /// The function that calls most of it on both sides, if there is one.
    pub below: Option<String>,
    /// What stacks with functions that the other side has not cost, in a run of the base and of the new side.
    pub cost: (f64, f64),
    /// How many functions went, of those that were seen often enough to be missed.
    pub gone: usize,
    /// How many came.
    pub came: usize,
}

/// The whole difference by where it belongs, of a mean run, in the sample type's unit:
/// `delta = work + causes + consequences + rest`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Account {
    /// New total less that of the base.
    pub delta: f64,
    /// What the amount of work makes of it: `(scale - 1) base`.
    pub work: f64,
    /// The sum of the causes' deltas.
    pub causes: f64,
    /// That of what answers to causes elsewhere: garbage collection, scheduling, locks.
    pub consequences: f64,
    /// How much of that garbage collection is.
    pub garbage: f64,
    /// What is left.
    pub rest: f64,
    /// True if the rest is no more than chance.
    pub by_chance: bool,
    /// True if the rest is large, and more than sampling explains. If it may still be chance, only because runs differ.
    pub unexplained: bool,
    /// True if the consequences are.
    pub consequences_by_chance: bool,
    /// How probable such a difference of the totals is by chance where both sides do the same work, by what a side's totals
    /// differ by, or of one pair by what those of other programs do; `None` if a side has nothing.
    pub p: Option<f64>,
}

impl Account {
    /// True if the whole changed by more than chance, and most of that is left when causes are taken out.
    pub(super) fn is_of_rest(&self, runs: [usize; 2]) -> bool {
        let sure = if runs.iter().all(|&runs| runs > 1) { SURE_OF_RUNS } else { SURE };
        !self.by_chance && self.p.is_some_and(|p| p < sure) && self.rest.abs() > self.causes.abs()
    }

    /// Returns true if each side has several runs, and they vary so much that the totals may differ by chance.
    pub(super) fn is_within_runs(&self, runs: [usize; 2]) -> bool {
        runs.iter().all(|&runs| runs > 1) && self.p.is_some_and(|p| p >= SURE_OF_RUNS)
    }
}

/// What comes nearest to a cause where nothing is one.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Candidate {
    /// As a cause would be.
    #[serde(flatten)]
    pub cause: Cause,
    /// About how many runs a side would tell, if it is one; `None` if that is more than 20.
    pub runs: Option<usize>,
}

/// How much of a difference is chance here.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Noise {
    /// How much a function's own cost differs between equal runs: the standard deviation of its logarithm.
    pub tau: f64,
    /// The penalised deviance that a cause must exceed.
    pub need: f64,
    /// What chance alone makes a frame with a tenth of the total seem to grow by, counting and runs together: the standard
    /// deviation of the logarithm.
    pub deviation: f64,
    /// The least growth of such a frame that would have been noticed nine times in ten, as a factor less one.
    pub noticed: f64,
    /// The same as a part of the total, a tenth of that; 1 where it is more.
    pub mde: f64,
    /// Number of runs of the base and of the new side.
    pub runs: (usize, usize),
    /// Number of runs of equal builds from which noise was learned besides.
    pub learned: usize,
    /// The value of one event that the profiler saw, about; 0 if nothing was measured.
    #[serde(skip)]
    pub event: f64,
    /// The degrees of freedom of noise that was measured.
    #[serde(skip)]
    pub(super) degrees: Option<u32>,
}

impl Noise {
    /// Returns true if several runs of both sides, or of equal builds, show how much runs differ.
    pub fn is_replicated(&self) -> bool {
        self.runs.0.min(self.runs.1) > 1 || self.learned > 1
    }
}

impl Noise {
    /// How probable it is that of equal sides any candidate has such a score, or a higher one.
    pub fn p_of(&self, score: f64) -> f64 {
        chance_of(score, self.need, self.degrees)
    }
}

/// The runtime whose frames are told from the program's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct KnownRuntime {
    /// The language.
    pub name: String,
    /// Where what is known of it is from.
    pub source: String,
}

/// Why two sides differ.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Explanation {
    /// What is compared, and its totals: without runs of equal builds, and of what filters leave.
    #[serde(skip)]
    pub summary: Arc<Summary>,
    /// The folder that has these runs and no others, where it was named in their place.
    #[serde(skip)]
    pub folder: Option<String>,
    /// The mean total of a run of the base, and of the new side.
    #[serde(skip)]
    pub total: (f64, f64),
    /// What is said of the whole.
    pub verdict: Verdict,
    /// How much work a new run did.
    pub scale: WorkScale,
    /// How the difference of the totals adds up.
    pub account: Account,
    /// The causes, the largest change first. Empty unless the verdict is a change.
    pub causes: Vec<Cause>,
    /// The library that was rewritten, if most of either side is in functions that the other has not.
    pub rewrite: Option<Rewrite>,
    /// Cost that changed places.
    pub moved: Vec<Moved>,
    /// Causes that more work everywhere would explain nearly as well.
    pub suspects: Vec<Cause>,
    /// What comes nearest to a cause, if nothing else is said.
    pub candidate: Option<Candidate>,
    /// The change of what answers to causes elsewhere (garbage collection, scheduling, locks), as a part of the total.
    pub background: f64,
    /// How much of a difference is chance.
    pub noise: Noise,
    /// Which runtime's frames are told apart.
    pub runtime: KnownRuntime,
    /// Number of distinct stacks that were looked at only as far as heavier ones share them.
    pub pruned: usize,
    /// What there was no room for, in the words of its warnings: keys of labels, comparisons of causes.
    #[serde(skip)]
    pub left_out: Vec<String>,
    /// How much was done: places of the tree of calls and ranges of candidates that were made, and places that the search
    /// looked at.
    #[serde(skip)]
    pub work: u64,
    /// Why the sides differ in what belongs to it: of a heap whose sample type was not chosen, what was allocated; and the
    /// heaps of the same runs, where they were given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Explanation>,
}
