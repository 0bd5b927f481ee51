//! What sentences may state: the questions that words and pictures ask of an explanation. The engine answers them, so
//! that all numbers that statements depend on are in `thresholds`, and words only choose among answers.

use super::answer::{Account, Cause, CostSplit, Explanation, NearestCandidate, NoiseEstimate, ProgramShare, ScaleRule};
use super::answer::{Rewrite, Verdict, WorkScale};
use super::thresholds::{
    MAX_ADVISED_RUNS, MAX_DISTANCE_OF_EQUAL_WORK, MAX_P_OF_CERTAIN_TOTAL, MAX_P_OF_TOTAL_WITH_CAUSE,
    MAX_REST_BESIDE_CONSEQUENCES, MAX_SMALL_REST, MIN_CONSEQUENCES_AS_ALL, MIN_GARBAGE_LISTED,
    MIN_NET_PART_FOR_PERCENTAGES, MIN_NOTICED_FOR_NOTHING, MIN_P_OF_TOTAL_BY_CHANCE, MIN_PART_LISTED,
    MIN_PART_NAMED_ALONE, MIN_REWRITTEN_PART_OF_REST,
};
use pprofdiff::sampling::{Model, Sampling};
use pprofdiff::shared::{counts_every_event, is_delay, is_level};
use pprofdiff::units;

/// Sample types that count CPU work. Sentences about them use the same verb as for time.
const SPENT: [&str; 6] = ["samples", "sample", "cpu", "cycles", "instructions", "Ir"];

/// The result of comparing the account's remainder with noise. The remainder is the part of the difference of the
/// totals that neither work nor causes nor consequences explain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remainder {
    /// The number of samples is unknown, and so is the noise.
    Unknown,
    /// The remainder is large and exceeds sampling error, but runs may differ by as much, or the noise of frames is
    /// unknown, or the values are exact counts whose variation is unknown.
    Unexplained,
    /// Chance explains the remainder.
    Noise,
    /// The remainder is larger than chance explains.
    Real,
    /// The remainder is small beside the causes, so its chance does not matter.
    Small,
    /// Most of the remainder is in rewritten code, which has no causes of its own.
    Rewritten,
}

/// The quantity that a sample type measures, as far as its sentences differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Allocations, all of which count.
    Allocated,
    /// A state, such as memory in use or goroutines.
    Held,
    /// Waits, such as for locks.
    Waited,
    /// A time, or events of CPU work.
    Spent,
    /// Another quantity.
    Other,
}

/// The state that a sample type measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldState {
    /// The number of goroutines.
    Goroutines,
    /// The number of threads.
    Threads,
    /// The number of objects.
    Objects,
    /// Bytes of memory, or another state.
    Memory,
}

/// The part of a [`CostSplit`] that explains nearly all of the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MainFactor {
    /// The count.
    Count,
    /// The cost per unit.
    Unit,
}

impl Explanation {
    /// Returns true if the number of samples is unknown on at least one side, and neither replicates nor A/A runs show
    /// the noise.
    pub fn is_uncounted(&self) -> bool {
        !self.noise.is_replicated() && self.summary.sampling.iter().flatten().any(|side| side.model == Model::Unknown)
    }

    /// Returns true if both sides are exact counts (nothing was sampled) with too few snapshots to show how much
    /// snapshots differ.
    pub fn is_exact(&self) -> bool {
        let is_exact = |sides: &[Sampling; 2]| sides.iter().all(|side| side.model == Model::Exact);
        !self.noise.is_replicated() && self.summary.sampling.as_ref().is_some_and(is_exact)
    }

    /// Returns true if the sample type counts every call or instruction, which equal runs of most programs repeat.
    pub fn counts_each_event(&self) -> bool {
        let (kind, unit) = (&self.summary.sample_type, &self.summary.unit);
        counts_every_event(kind, unit) && self.summary.sampling.iter().flatten().all(|side| side.model == Model::Exact)
    }

    /// Compares the remainder of the account with the noise.
    pub fn remainder(&self) -> Remainder {
        match () {
            () if self.is_uncounted() => Remainder::Unknown,
            () if !self.is_rest_chance() && self.is_rest_small() => Remainder::Small,
            () if self.is_rest_rewritten() => Remainder::Rewritten,
            () if (self.is_rest_chance() || self.is_exact()) && self.account.unexplained => Remainder::Unexplained,
            () if self.is_rest_chance() => Remainder::Noise,
            () if self.noise.detects_nothing() => Remainder::Unexplained,
            () => Remainder::Real,
        }
    }

    /// Returns true if the remainder is small beside the causes.
    fn is_rest_small(&self) -> bool {
        !self.causes.is_empty() && self.account.rest.abs() < MAX_SMALL_REST * self.account.largest_part()
    }

    /// Returns true if the change of rewritten code explains most of the remainder.
    fn is_rest_rewritten(&self) -> bool {
        let net = |rewrite: &Rewrite| rewrite.cost.1 - self.scale.factor * rewrite.cost.0;
        self.rewrite.as_ref().is_some_and(|rewrite| net(rewrite) / self.account.rest > MIN_REWRITTEN_PART_OF_REST)
    }

    /// Returns true if the remainder of the account is within noise.
    fn is_rest_chance(&self) -> bool {
        // Without a cause, most of the difference of the totals is the remainder, so the p-value that the answer shows
        // also decides.
        self.account.by_chance || self.causes.is_empty() && self.may_total_be_chance()
    }

    /// Returns true if runs of equal builds may differ by as much as the remainder, although it exceeds sampling error.
    /// Returns false if the totals differ significantly and the remainder is most of that difference.
    pub fn may_runs_differ_as_much(&self) -> bool {
        self.is_rest_chance() && !self.is_exact() && (!self.causes.is_empty() || self.may_total_be_chance())
    }

    /// Returns true if the totals differ beyond chance at equal work, but no cause is known, and the rules of `explain` do
    /// not count the total as certainly changed.
    pub fn differs_only_in_total(&self) -> bool {
        let differs = self.account.p.is_some() && !self.may_total_be_chance();
        self.verdict == Verdict::Inconclusive && differs && self.scale.is_equal()
    }

    /// Returns true if the totals may differ only by chance.
    fn may_total_be_chance(&self) -> bool {
        self.account.p.is_some_and(|p| p > MIN_P_OF_TOTAL_BY_CHANCE)
    }

    /// Returns true if runs of one side differ by as much as the sides. The machine may then explain a different amount
    /// of work, because the p-value of the totals compares their difference with the variation between runs.
    pub fn is_work_within_runs(&self) -> bool {
        let is_within = self.account.own_p.is_some_and(|p| p > MIN_P_OF_TOTAL_BY_CHANCE);
        is_within && self.noise.runs.0.min(self.noise.runs.1) > 1
    }

    /// Returns true if the total certainly changed, and the remainder exceeds chance.
    pub fn is_total_certain(&self) -> bool {
        !self.account.by_chance && self.account.own_p.is_some_and(|p| p < MAX_P_OF_CERTAIN_TOTAL)
    }

    /// Returns true if the totals differ by more than chance. A frame that makes up most of the difference then
    /// changed, too. Returns false if nothing changed. With causes, also returns false for sides with different amounts
    /// of work, because work then explains a part of the totals' difference.
    pub fn has_total_changed(&self) -> bool {
        match self.verdict {
            Verdict::Inconclusive => self.is_total_certain(),
            Verdict::Change if self.scale.factor == 1.0 => {
                self.account.own_p.is_some_and(|p| p < MAX_P_OF_TOTAL_WITH_CAUSE)
            }
            _ => false,
        }
    }

    /// Returns true if garbage collection, scheduling and locks are all that changed: there is no cause, the change of
    /// the three exceeds chance and is large enough, and the remainder is within chance and small beside that change.
    pub fn is_all_consequences(&self) -> bool {
        let account = &self.account;
        self.causes.is_empty()
            && account.by_chance
            && !account.consequences_by_chance
            && account.rest.abs() < MAX_REST_BESIDE_CONSEQUENCES * account.consequences.abs()
            && account.consequences.abs() > MIN_CONSEQUENCES_AS_ALL * self.total.0.max(self.total.1)
    }

    /// Returns true if a part of the account other than a cause is large enough for a row of a picture, in which each
    /// cause is a part of its own.
    pub fn is_drawn(&self, part: f64) -> bool {
        let account = &self.account;
        let parts = [account.work, account.consequences, account.rest].into_iter();
        let parts = parts.chain(self.causes.iter().map(|cause| cause.delta));
        part.abs() > MIN_PART_LISTED * parts.fold(account.delta.abs(), |largest, part| largest.max(part.abs()))
    }

    /// Returns true if the parts of the account cancel out, so that percentages of their sum make no sense.
    pub fn do_parts_cancel_out(&self) -> bool {
        let account = &self.account;
        let causes = self.causes.iter().map(|cause| cause.delta);
        let parts = [account.work].into_iter().chain(causes).chain([account.consequences, account.rest]);
        account.delta.abs() < MIN_NET_PART_FOR_PERCENTAGES * parts.map(f64::abs).sum::<f64>()
    }

    /// Returns the quantity that the sample type measures. A time that was split into a count and a length, as for this
    /// cause, measures waits: no other profiles have both a time and a count.
    pub fn quantity(&self, cause: &Cause) -> Quantity {
        match self.summary.sample_type.as_str() {
            kind if kind.starts_with("alloc") => Quantity::Allocated,
            kind if is_level(kind) => Quantity::Held,
            kind if kind.contains("contention") => Quantity::Waited,
            "space" if self.scale.rule == ScaleRule::Level => Quantity::Held,
            _ if self.is_delay(cause) => Quantity::Waited,
            _ if self.is_spent() => Quantity::Spent,
            _ => Quantity::Other,
        }
    }

    /// Returns true if the sample type is a time, or counts events of CPU work.
    pub fn is_spent(&self) -> bool {
        SPENT.contains(&self.summary.sample_type.as_str()) || self.is_time()
    }

    fn is_time(&self) -> bool {
        units::find(&self.summary.unit).zip(units::find("ns")).is_some_and(|(unit, ns)| unit.same_family(ns))
    }

    /// Returns true if the sample type measures the time of waits.
    pub fn is_delay(&self, cause: &Cause) -> bool {
        self.is_time() && (cause.split.is_some() || is_delay(&self.summary.sample_type))
    }

    /// Returns the state that the sample type measures, if it measures a state.
    pub fn held_state(&self) -> HeldState {
        match self.summary.sample_type.as_str() {
            kind if kind.starts_with("goroutine") => HeldState::Goroutines,
            kind if kind.starts_with("thread") => HeldState::Threads,
            kind if kind.ends_with("objects") => HeldState::Objects,
            _ => HeldState::Memory,
        }
    }
}

impl Account {
    /// Returns the size of the largest part or of the difference of the totals, whichever is larger. All causes
    /// together are one part.
    fn largest_part(&self) -> f64 {
        let parts = [self.work, self.causes, self.consequences, self.rest];
        parts.iter().fold(self.delta.abs(), |largest, part| largest.max(part.abs()))
    }

    /// Returns true if the totals are equal and all parts are 0.
    pub fn is_empty(&self) -> bool {
        self.largest_part() <= 0.0
    }

    /// Returns true if a part of the account is large enough to be listed in a sentence.
    pub fn is_listed(&self, part: f64) -> bool {
        part.abs() > MIN_PART_LISTED * self.largest_part()
    }
}

impl Cause {
    /// Returns the first of the program's functions if it has nearly all of the change. It is then named alone.
    pub fn main_program(&self) -> Option<&ProgramShare> {
        self.program.first().filter(|first| first.delta / self.delta > MIN_PART_NAMED_ALONE)
    }

    /// Returns the garbage collection if it is large enough to be listed.
    pub fn listed_garbage(&self) -> Option<f64> {
        self.garbage.filter(|garbage| garbage.abs() > MIN_GARBAGE_LISTED * self.delta.abs())
    }
}

impl CostSplit {
    /// Returns the part that explains nearly all of the change. Returns `None` if both matter.
    pub fn main_factor(&self) -> Option<MainFactor> {
        match () {
            () if self.count > MIN_PART_NAMED_ALONE => Some(MainFactor::Count),
            () if self.unit > MIN_PART_NAMED_ALONE => Some(MainFactor::Unit),
            () => None,
        }
    }
}

impl WorkScale {
    /// Returns true if the factor is 1, except for rounding errors.
    pub fn is_equal(&self) -> bool {
        (self.factor - 1.0).abs() < MAX_DISTANCE_OF_EQUAL_WORK
    }
}

impl NoiseEstimate {
    /// Returns true if too little was measured to detect any change.
    pub fn detects_nothing(&self) -> bool {
        self.noticed >= MIN_NOTICED_FOR_NOTHING
    }
}

impl NearestCandidate {
    /// The maximum of `runs`.
    pub const MAX_RUNS: usize = MAX_ADVISED_RUNS as usize;
}
