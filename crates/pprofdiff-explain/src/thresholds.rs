//! All thresholds of `explain`: every number on which a statement depends, in the order of the stages that use them.
//!
//! Each constant has its unit and its source. "Tuned on injected faults" and "tuned on real upgrades" name the cases of
//! docs/explain.md, "How often it is right". "Judgment" means that nobody measured the number when it was chosen.
//! tests/thresholds/pins.csv lists what pins each number: how many answers of
//! tests/corpus/explained.txt change with a lower and a higher value, and other tests. `tests/thresholds.py` measures it,
//! also for other pairs of profiles.
//!
//! Limits of memory and work are in the modules whose data they limit. Levels that `explain` shares with checks and
//! tables are in [`pprofdiff::shared::statistics::counts`]. The numbers behind the events of samples, and the known
//! deviations between equal runs, are in the engine's `events`.

// Evidence: which stacks, labels and sets are compared.

/// Minimum number of events of a set. A set with fewer events cannot be a cause.
/// Unit: events. Source: formula: five events on one side have a deviance of 6.9, below every threshold of a single
/// pair.
pub(super) const MIN_EVENTS_OF_SET: f64 = 5.0;
/// Maximum part of both sides in a set that may be a cause. A change of a larger set may be a different amount of work,
/// so the search considers it only if that amount is given.
/// Unit: fraction of each side. Source: docs/explain.md, Candidates.
pub(super) const MAX_PART_OF_SIDES_IN_SET: f64 = 0.9;
/// Additional penalised deviance that a set with a label needs, compared with a function. Many labels increase it
/// further, by [`DEVIANCE_PER_LOG_OF_CANDIDATES`].
/// Unit: deviance. Source: tuned on injected faults.
pub(super) const PRICE_OF_LABEL_SET: f64 = 4.0;
/// Price of choosing one of many candidates, per natural logarithm of their number.
/// Unit: deviance. Source: formula: a deviance is twice a log likelihood, and one of M candidates takes ln M (minimum
/// description length, Rissanen 1978).
pub(super) const DEVIANCE_PER_LOG_OF_CANDIDATES: f64 = 2.0;
/// Minimum number of events, on both sides together, of a set that estimates noise, and of a function that may agree
/// with an amount of work.
/// Unit: events. Source: tuned on injected faults.
pub(super) const MIN_TELLING_EVENTS: f64 = 20.0;
/// Minimum number of values of a label's key. One value distinguishes no parts of the work.
/// Unit: values. Source: formula.
pub(super) const MIN_LABEL_VALUES: usize = 2;
/// Maximum number of values of a label's key. Keys with more values identify samples rather than parts of the work.
/// Unit: values. Source: tuned on injected faults.
pub(super) const MAX_LABEL_VALUES: usize = 50;
/// Minimum part of the cost of a key in values that both sides have. Otherwise the key names the build.
/// Unit: fraction of the cost of the key. Source: tuned on injected faults.
pub(super) const MIN_COMMON_PART_OF_LABELS: f64 = 0.5;
/// Maximum part of a key's events in values that distinguish the runs of a side. Otherwise the key names the run.
/// Unit: fraction of the events of the key. Source: judgment.
pub(super) const MAX_PART_OF_LABELS_OF_RUNS: f64 = 0.5;
/// Maximum probability that a run lacks a value by chance, if the value distinguishes the runs of a side. The number of
/// the key's values and of the runs multiplies it, because any of them could be missing.
/// Unit: probability. Source: judgment.
pub(super) const MAX_P_OF_LABEL_MISSING_BY_CHANCE: f64 = 0.001;
/// Maximum part of background in both sides together. If there is more, background work is what the program does, so it
/// counts as foreground.
/// Unit: fraction of both sides. Source: tuned on injected faults.
pub(super) const MAX_BACKGROUND_PART: f64 = 0.7;
/// Minimum deviance of a function whose light stacks are kept whole.
/// Unit: deviance. Source: judgment (profiles of 50,000 stacks per side).
pub(super) const MIN_DEVIANCE_OF_CHANGED_FUNCTION: f64 = 10.0;
/// Minimum change of a function whose light stacks are kept whole.
/// Unit: fraction of the total. Source: formula: half of [`DEFAULT_MIN_EFFECT`].
pub(super) const MIN_PART_OF_CHANGED_FUNCTION: f64 = 0.001;
/// Minimum part of a side in stacks that begin with frames of its recorder. The runtime's own threads may lack them.
/// Unit: fraction of the side. Source: judgment.
pub(super) const MIN_PART_WITH_RECORDERS_ROOT: f64 = 0.9;
/// Minimum part of a side in stacks that end with frames of its recorder.
/// Unit: fraction of the side. Source: judgment.
pub(super) const MIN_PART_WITH_RECORDERS_LEAF: f64 = 0.999;
/// Minimum number of callers of a recorder's leaf. A program's own new function may have two or three callers, which
/// may be all functions in a small profile.
/// Unit: functions. Source: judgment.
pub(super) const MIN_CALLERS_OF_RECORDERS_LEAF: usize = 4;
/// Maximum number of frames that a stack may lose at one end.
/// Unit: frames. Source: judgment.
pub(super) const MAX_RECORDERS_FRAMES_OF_STACK: usize = 32;
/// Maximum number of distinct frames to remove at one end. More frames suggest functions of the program under other
/// names.
/// Unit: frames. Source: judgment.
pub(super) const MAX_FRAMES_OF_RECORDER: usize = 16;
/// Minimum part of each side below a benchmark runner, for the program to be a benchmark.
/// Unit: fraction of the foreground. Source: judgment.
pub(super) const MIN_PART_BELOW_BENCHMARK: f64 = 0.5;

// Work: the ratio of work between the sides, and what agrees with it.

/// "More work everywhere" may explain a difference nearly as well as a cause does. The result is ambiguous if the
/// causes are better than any scale without causes by less than this.
/// Unit: deviance. Source: tuned on injected faults.
pub(super) const MAX_GAIN_OF_AMBIGUOUS_CAUSES: f64 = 6.0;
/// Minimum part of the base in a cause that more work everywhere may explain.
/// Unit: fraction of the base. Source: tuned on injected faults.
pub(super) const MIN_BASE_PART_OF_AMBIGUOUS_CAUSE: f64 = 0.5;
/// Price of a cause in the comparison of scales, in addition to [`DEVIANCE_PER_LOG_OF_CANDIDATES`].
/// Unit: deviance. Source: tuned on injected faults.
pub(super) const PRICE_OF_CAUSE: f64 = 3.0;
/// Price of a scale that differs from the exposure, in addition to the price of a cause and to the square of its
/// logarithm over [`DEVIATION_OF_LOG_SCALE`].
/// Unit: deviance. Source: tuned on injected faults.
pub(super) const PRICE_OF_SCALE: f64 = 3.0;
/// Usual standard deviation of the logarithm of a scale.
/// Unit: natural logarithm. Source: tuned on injected faults.
pub(super) const DEVIATION_OF_LOG_SCALE: f64 = 0.35;
/// Like [`DEVIATION_OF_LOG_SCALE`], for benchmarks, which choose their number of iterations, and for a scale that
/// nearly all functions agree on.
/// Unit: natural logarithm. Source: tuned on real upgrades.
pub(super) const DEVIATION_OF_LOG_SCALE_OF_BENCHMARKS: f64 = 2.0;
/// Maximum weight of one function in the evidence for a scale.
/// Unit: fraction of the weight. Source: docs/explain.md, Search.
pub(super) const MAX_WEIGHT_OF_FUNCTION: f64 = 0.1;
/// Minimum weight of functions that agree with a scale that differs from the exposure. Below it, the exposure is
/// unknown, too.
/// Unit: fraction of the weight. Source: docs/explain.md, Search.
pub(super) const MIN_AGREEING_WEIGHT: f64 = 0.5;
/// Like [`MIN_AGREEING_WEIGHT`], for locks. It is higher, because a thread that waits longer for one lock waits less
/// for other locks meanwhile.
/// Unit: fraction of the weight. Source: docs/explain.md, Search.
pub(super) const MIN_AGREEING_WEIGHT_OF_LOCKS: f64 = 0.9;
/// Minimum weight of functions that agree with a scale, for any scale to count as usual.
/// Unit: fraction of the weight. Source: tuned on real upgrades.
pub(super) const MIN_UNANIMOUS_WEIGHT: f64 = 0.8;
/// Minimum number of functions, for any scale to count as usual.
/// Unit: functions. Source: tuned on real upgrades.
pub(super) const MIN_UNANIMOUS_FUNCTIONS: usize = 5;
/// Maximum distance of the ratio of a function that agrees with a scale, whatever the noise.
/// Unit: natural logarithm. Source: documentation of `WorkScale::agree`.
pub(super) const MAX_LOG_DISTANCE_OF_AGREEMENT: f64 = 0.1;
/// Maximum distance of a scale from the growth of object counts.
/// Unit: natural logarithm. Source: tuned on real upgrades.
pub(super) const MAX_LOG_DISTANCE_FROM_OBJECTS: f64 = 0.1;
/// Minimum deviance of the untouched stacks together, before their ratio is tried as a scale.
/// Unit: deviance. Source: tuned on injected faults.
pub(super) const MIN_DEVIANCE_OF_SCALE_OF_REST: f64 = 9.0;
/// Minimum part of each side in stacks without causes, before their ratio is tried as a scale.
/// Unit: fraction of the side. Source: judgment.
pub(super) const MIN_UNTOUCHED_PART: f64 = 0.05;
/// Minimum number of functions that together count as evidence for an amount of work.
/// Unit: functions. Source: docs/explain.md, What you can rely on.
pub(super) const MIN_WITNESSES: usize = 3;
/// Minimum number of events of such a function, on both sides together.
/// Unit: events. Source: judgment.
pub(super) const MIN_EVENTS_OF_WITNESS: f64 = 20.0;
/// Minimum part of the functions that agree with the scale of the search. If most functions changed, some agree with
/// any amount of work by accident.
/// Unit: fraction of the functions. Source: docs/explain.md, What you can rely on.
pub(super) const MIN_AGREEING_PART_OF_FUNCTIONS: f64 = 0.5;
/// Maximum change of a function that counts as unchanged, even if chance explains more.
/// Unit: fraction of the larger side. Source: judgment.
pub(super) const MAX_CHANGE_OF_EVEN_FUNCTION: f64 = 0.5;
/// Maximum distance of a factor of work from 1 that counts as the same work.
/// Unit: factor. Source: rounding error.
pub(super) const MAX_DISTANCE_OF_EQUAL_WORK: f64 = 1e-6;

// Noise: the variation between equal runs.

/// Standard deviation, between builds, of the logarithm of a frame's cost if compilers inline by chance.
/// Unit: natural logarithm. Measured: 0.15 loses one right answer and 0.6 loses two, and each corrects two others
/// (tests/explain_faults.rs, tests/upgrades.rs).
pub(super) const DEVIATION_OF_FLICKERING_FRAMES: f64 = 0.3;
/// Known noise before any measurement, by the kind of values.
/// Unit: natural logarithm (`floor`), frames (`trust`, `shrink`). Source: equal builds of the programs that the engine
/// was developed with (docs/statistics.md, Check).
#[derive(Clone, Copy)]
pub(super) struct Prior {
    /// Minimum noise of one pair. It decreases linearly with the number of measured frames, and is zero from `trust`
    /// frames on. For delays, `shrink` sets a higher minimum up to the same number.
    pub(super) floor: f64,
    pub(super) trust: f64,
    /// The number of measured frames from which on the known deviation is no longer a minimum. With fewer frames, the minimum
    /// decreases linearly.
    pub(super) shrink: f64,
}
pub(super) const PRIOR_OF_SAMPLES: Prior = Prior { floor: 0.06, trust: 60.0, shrink: 30.0 };
pub(super) const PRIOR_OF_HEAP: Prior = Prior { floor: 0.01, trust: 40.0, shrink: 30.0 };
pub(super) const PRIOR_OF_DELAYS: Prior = Prior { floor: 0.5, trust: 12.0, shrink: 12.0 };
/// Standard deviation of a cost that only moved between functions, if each instruction is counted: a call of its own costs
/// a few instructions.
/// Unit: natural logarithm. Source: judgment.
pub(super) const DEVIATION_OF_MOVED_COUNTS: f64 = 0.005;
/// Maximum difference between the cost per call of a cause's stacks and of the function in a plain table. With more, other
/// causes have a part of the function's stacks, and the cost of a call is not stated.
/// Unit: fraction. Source: judgment.
pub(super) const MAX_DIFFERENCE_OF_UNIT_COST: f64 = 0.005;

/// Weight of the prior in the estimate of a pair's noise.
/// Unit: frames. Source: tuned on injected faults.
pub(super) const WEIGHT_OF_PRIOR_TAU: f64 = 10.0;
/// A pair counts as noisy if the number of frames that differ exceeds its expectation by this many standard deviations.
/// Unit: standard deviations. Measured: 1 makes a known fault inconclusive (tests/explain_faults.rs).
/// docs/statistics.md, By producer, also rejects lower thresholds.
pub(super) const MIN_DEVIATIONS_OF_NOISY_PAIR: f64 = 2.0;
/// Minimum standard deviation, between runs, of the logarithm of a lock's delay.
/// Unit: natural logarithm. Measured: 0.2 makes four right answers about locks inconclusive (tests/upgrades.rs).
pub(super) const MIN_TAU_OF_LOCK: f64 = 0.1;
/// Minimum number of locks that the threshold assumes. A program has few locks that matter.
/// Unit: locks. Source: judgment.
pub(super) const MIN_TESTED_LOCKS: usize = 10;
/// Minimum number of functions and calls that the threshold of counts assumes. Real changes of counts exceed it by far.
/// Unit: functions. Source: benches/counting.py, equal builds of a program with random hashes.
pub(super) const MIN_TESTED_COUNTS: usize = 1_000;
/// Minimum number of events of a set that contributes to the common variance of several runs.
/// Unit: events. Source: tuned on injected faults.
pub(super) const MIN_EVENTS_FOR_COMMON_VARIANCE: f64 = 30.0;
/// Minimum number of such sets. With fewer, the variance of smaller sets or of other programs takes their place.
/// Unit: sets. Measured: 4 makes a right answer inconclusive (catalog in tests/upgrades.rs).
pub(super) const MIN_SETS_FOR_COMMON_VARIANCE: usize = 5;
/// Bounds between small, medium and large sets of calls, which have common variances of their own. Large sets are
/// quieter, because more functions average out.
/// Unit: events. Source: tuned on injected faults.
pub(super) const STRATA_OF_EVENTS: [f64; 2] = [100.0, 400.0];
/// Minimum length of a run, compared with the mean of its side, by which its values are divided.
/// Unit: fraction of the mean. Source: judgment.
pub(super) const MIN_RELATIVE_LENGTH_OF_RUN: f64 = 0.05;
/// Minimum number of sets that estimate a pair's noise. With fewer, only the prior counts.
/// Unit: sets. Measured: 12 makes three right answers wrong (tests/explain_faults.rs).
pub(super) const MIN_FRAMES_FOR_TAU_OF_PAIR: usize = 6;
/// Noise is reported for a frame with the total divided by this number.
/// Unit: frames. Source: docs/explain.md, An example.
pub(super) const REPORTED_FRAMES_OF_TOTAL: f64 = 10.0;

// Search: which sets are causes.

/// Weight of the deviance of a function's callers and calls, compared with the function's own cost.
/// Unit: factor. Source: tuned on real upgrades.
pub(super) const WEIGHT_OF_CALLERS: f64 = 0.92;
/// Maximum number of causes.
/// Unit: causes. Source: docs/explain.md, Search.
pub(super) const MAX_CAUSES_OF_SEARCH: usize = 6;
/// Maximum number of passes over all causes after each new cause, which drop or exchange causes.
/// Unit: passes. Source: tuned on injected faults.
pub(super) const MAX_EXCHANGES_PER_CAUSE: usize = 3;
/// Minimum part of an added or removed set in a narrower set that the opposite side lacks, for the narrower set to be
/// the cause.
/// Unit: fraction of the set. Source: judgment.
pub(super) const MIN_PART_OF_ADDITION: f64 = 0.9;
/// Minimum part of a change of waiting in the stacks of one function, for the function to be the holder of the lock.
/// Minimum part of the stacks of that function in the change.
/// Unit: fraction. Measured: 0.82 and 0.95 each name a wrong holder (cpp-held and go-held in tests/upgrades.rs).
pub(super) const MIN_PART_OF_LOCK_HOLDER: f64 = 0.9;

// Attribution: cost that moved, and causes that are one.

/// Maximum value of the side with less, for a set to count as added or removed.
/// Unit: fraction of the opposite side's value. Source: tuned on injected faults.
pub(super) const MAX_OPPOSITE_PART_OF_ONE_SIDED: f64 = 0.02;
/// Maximum part of both sides in a set that locates a change.
/// Unit: fraction of each side. Source: tuned on injected faults.
pub(super) const MAX_PART_OF_PLACE: f64 = 0.7;
/// Minimum part of two causes in a set around them, for them to be merged.
/// Unit: fraction of the set. Source: tuned on injected faults.
pub(super) const MIN_PART_OF_MERGED_SET: f64 = 0.6;
/// Minimum part of each of the two causes inside that set.
/// Unit: fraction of the cause. Source: tuned on injected faults.
pub(super) const MIN_PART_INSIDE_MERGED_SET: f64 = 0.8;
/// Maximum overlap of the two causes.
/// Unit: fraction of the smaller cause. Source: tuned on injected faults.
pub(super) const MAX_OVERLAP_OF_MERGED: f64 = 0.2;
/// Maximum change of a set within which a candidate's cost moved.
/// Unit: fraction of the candidate's change. Source: tuned on injected faults.
pub(super) const MAX_CHANGE_OF_SHIFT_PLACE: f64 = 0.35;
/// Minimum change of a candidate whose cost moved within a set, compared with the error of the set.
/// Unit: standard errors. Source: tuned on injected faults.
pub(super) const MIN_ERRORS_OF_SHIFT: f64 = 3.0;
/// Maximum change of a set that does not feel an added or removed function, if library leaves are trimmed.
/// Unit: standard errors. Source: tuned on injected faults.
pub(super) const MAX_ERRORS_OF_SILENT_PLACE: f64 = 2.5;
/// Minimum change of the stacks of a candidate whose cost moved, compared with the change that the search attributes to
/// it.
/// Unit: fraction of the change. Source: judgment.
pub(super) const MIN_MEASURED_PART_OF_CANDIDATE: f64 = 0.5;
/// Minimum part of the stacks of a candidate inside a set, for the set to be around it.
/// Unit: fraction of the candidate. Source: formula: all, except for rounding errors.
pub(super) const MIN_PART_INSIDE_PLACE: f64 = 0.999;
/// Maximum size of a set around a change that is informative, compared with the change.
/// Unit: factor. Source: tuned on injected faults.
pub(super) const MAX_SIZE_OF_SHIFT_PLACE: f64 = 10.0;
/// Like [`MAX_SIZE_OF_SHIFT_PLACE`], if library leaves are trimmed.
/// Unit: factor. Source: tuned on injected faults.
pub(super) const MAX_SIZE_OF_SHIFT_PLACE_WITHOUT_LEAVES: f64 = 30.0;
/// Minimum change in the opposite direction of the counterpart of a candidate.
/// Unit: fraction of the candidate's change. Source: judgment.
pub(super) const MIN_PART_OF_PARTNER: f64 = 0.5;
/// Penalty of a counterpart outside the set, times its part outside.
/// Unit: relative difference of the changes. Source: judgment.
pub(super) const PENALTY_OF_PARTNER_OUTSIDE: f64 = 0.3;
/// Maximum difference of a gain and a loss that are the same cost.
/// Unit: fraction of the gain. Source: judgment.
pub(super) const MAX_DIFFERENCE_OF_COUNTERPART: f64 = 0.4;
/// Minimum deviance of such a loss.
/// Unit: deviance. Source: judgment.
pub(super) const MIN_DEVIANCE_OF_COUNTERPART: f64 = 6.0;
/// Maximum difference of the sizes of two opposite causes in one set, if they are to cancel out.
/// Unit: fraction of the larger. Source: judgment.
pub(super) const MAX_DIFFERENCE_OF_SIBLINGS: f64 = 0.15;
/// Maximum difference of the sizes of a swap's two changes.
/// Unit: fraction of the larger. Source: tuned on injected faults.
pub(super) const MAX_DIFFERENCE_OF_SWAP: f64 = 0.25;
/// Maximum change of a sum that is unchanged.
/// Unit: fraction of the cost that moved within it. Source: tuned on injected faults.
pub(super) const MAX_CHANGE_OF_EVEN_SUM: f64 = 0.5;
/// Maximum number of cost shifts to fold before giving up.
/// Unit: shifts. Source: tuned on injected faults.
pub(super) const MAX_FOLDED_SHIFTS: usize = 16;
/// Minimum overlap of the callees of two functions, weighted by cost, for them to count as the same.
/// Unit: fraction of the cost. Source: judgment.
pub(super) const MIN_OVERLAP_OF_SAME_CALLEES: f64 = 0.5;
/// Minimum part of the cost of stacks with a property, for the stacks to have it.
/// Unit: fraction of the cost. Source: judgment.
pub(super) const MIN_PART_OF_STACKS_WITH_CALL: f64 = 0.5;

// Rules: each with its name in `RULES`.

/// `renamed`: minimum cost of a function.
/// Unit: fraction of the side. Source: tuned on injected faults.
pub(super) const MIN_PART_OF_RENAMED: f64 = 0.003;
/// `renamed`: minimum number of events of a function.
/// Unit: events. Source: tuned on injected faults.
pub(super) const MIN_EVENTS_OF_RENAMED: f64 = 5.0;
/// `renamed`: minimum number of events of both functions together.
/// Unit: events. Source: tuned on injected faults.
pub(super) const MIN_EVENTS_OF_RENAMED_PAIR: f64 = 24.0;
/// `renamed`: minimum overlap of callers or callees, for them to count as the same.
/// Unit: fraction of the cost. Source: tuned on injected faults.
pub(super) const MIN_OVERLAP_OF_NEIGHBOURS: f64 = 0.5;
/// `renamed`: minimum mean overlap of callers and callees if the names are not similar.
/// Unit: fraction of the cost. Source: tuned on injected faults.
pub(super) const MIN_MEAN_OVERLAP_OF_NEIGHBOURS: f64 = 0.6;
/// `renamed`: maximum ratio of similar costs, as fractions of their sides.
/// Unit: factor. Source: docs/explain.md, What you can rely on.
pub(super) const MAX_COST_RATIO_OF_RENAMED: f64 = 2.0;
/// `renamed`, `outlined`: maximum distance of equal costs.
/// Unit: standard deviations. Source: tuned on injected faults.
pub(super) const MAX_DEVIATIONS_OF_EQUAL_COST: f64 = 3.0;
/// `renamed`, `outlined`: variance of the logarithm of the ratio of equal costs, in addition to sampling error.
/// Unit: squared natural logarithm. Source: tuned on injected faults.
pub(super) const VARIANCE_OF_EQUAL_COST: f64 = 0.02;
/// `renamed`: the ratio of costs ranks pairs this many times less than their overlap.
/// Unit: factor. Source: judgment.
pub(super) const COST_RATIOS_PER_OVERLAP: f64 = 10.0;
/// `renamed`: minimum part of distinctive callees in a function's cost. Without it, a common callee with one sample
/// would make two methods of an interface a rename.
/// Unit: fraction of the cost. Measured: no answer of 1,218 pairs depends on it.
pub(super) const MIN_PART_OF_TELLING_CALLEES: f64 = 0.05;
/// `renamed`: minimum number of names that two packages share, if their paths differ by more than a version.
/// Unit: names. Source: tuned on injected faults.
pub(super) const MIN_SHARED_NAMES: usize = 2;
/// `renamed`: minimum part of the names of the larger package that both share.
/// Unit: fraction of the names. Source: judgment.
pub(super) const MIN_SHARED_PART_OF_PACKAGE: f64 = 0.3;
/// `renamed`: minimum number of shared functions that only their own package can call, for Go packages with unrelated
/// paths.
/// Unit: functions. Source: judgment.
pub(super) const MIN_SHARED_PRIVATE_FUNCTIONS: usize = 2;
/// `renamed`: minimum number of shared types and functions, for packages of other languages with unrelated paths.
/// Unit: types and functions. Source: judgment.
pub(super) const MIN_SHARED_OWNERS: usize = 3;
/// `renamed`: minimum number of segments of a path that is a suffix of another path.
/// Unit: segments. Source: judgment.
pub(super) const MIN_SEGMENTS_OF_SUFFIX: usize = 2;
/// `renamed`: maximum number of new packages with a name, for the name to be evidence.
/// Unit: packages. Source: judgment.
pub(super) const MAX_PACKAGES_OF_NAME: usize = 32;
/// `renamed`, moves: minimum part of the words of two similar names that both share.
/// Unit: fraction of the words. Source: judgment.
pub(super) const MIN_SHARED_PART_OF_WORDS: f64 = 0.5;
/// `inlined`: minimum number of events of a function.
/// Unit: events. Source: tuned on injected faults.
pub(super) const MIN_EVENTS_OF_INLINED: f64 = 5.0;
/// `inlined`: minimum part of a function's cost between a caller and a callee that both sides have.
/// Unit: fraction of the cost. Source: tuned on injected faults.
pub(super) const MIN_PART_BETWEEN_NEIGHBOURS: f64 = 0.6;
/// `inlined`: minimum part of that cost directly below the callers on the opposite side.
/// Unit: fraction of the cost. Source: tuned on injected faults.
pub(super) const MIN_PART_BELOW_CALLERS: f64 = 0.5;
/// Wrappers: minimum decrease of the direct calls on the side with frames in between.
/// Unit: fraction of the cost of the route, at equal work. Source: as [`MIN_PART_BELOW_CALLERS`].
pub(super) const MIN_PART_OF_DIRECT_CALLS: f64 = 0.5;
/// Wrappers: maximum difference of a route's costs if both sides have frames in between. If they differ more, one function
/// replaced another, which is a cause.
/// Unit: fraction of the larger cost, at equal work. Source: as [`MAX_CHANGE_OF_SHIFT_PLACE`].
pub(super) const MAX_DIFFERENCE_OF_ROUTES: f64 = 0.35;
/// Wrappers: minimum cost of the routes through a wrapper.
/// Unit: fraction of the candidate's cost. Source: tuned on real upgrades.
pub(super) const MIN_PART_OF_ROUTES: f64 = 0.1;
/// `outlined`: minimum cost of a function.
/// Unit: fraction of the side. Source: judgment.
pub(super) const MIN_PART_OF_OUTLINED: f64 = 0.003;
/// `outlined`: minimum number of events of a function.
/// Unit: events. Source: judgment.
pub(super) const MIN_EVENTS_OF_OUTLINED: f64 = 12.0;
/// `outlined`: minimum own cost of a function. A value below [`MIN_PART_OF_MAIN_CALLERS`] has no effect on the function
/// itself, because the shares of callers are shares of its own cost.
/// Unit: fraction of its cost. Source: formula: at least [`MIN_PART_OF_MAIN_CALLERS`].
pub(super) const MIN_OWN_PART_OF_OUTLINED: f64 = 0.6;
/// `outlined`: minimum share of a caller in a function's cost, for the caller to matter. Without it, a caller with one
/// sample would decide, because its own cost may increase by chance.
/// Unit: fraction of the cost. Measured: no answer of 1,218 pairs depends on it.
pub(super) const MIN_PART_OF_MAIN_CALLER: f64 = 0.1;
/// `outlined`: minimum share of all callers that matter.
/// Unit: fraction of the cost. Source: judgment.
pub(super) const MIN_PART_OF_MAIN_CALLERS: f64 = 0.6;
/// `outlined`: minimum decrease of the callers' own cost per run.
/// Unit: fraction of the function's own cost per run. Source: judgment.
pub(super) const MIN_DECREASE_OF_CALLERS: f64 = 0.5;
/// `rewritten`: minimum part of each side's cost in functions that the opposite side lacks.
/// Unit: fraction of the foreground. Source: tuned on injected faults.
pub(super) const MIN_REWRITTEN_PART: f64 = 0.3;
/// `rewritten`: minimum part in this cost of one package, and of the function that calls the rewritten code.
/// Unit: fraction of the cost. Source: judgment.
pub(super) const MIN_PART_OF_REWRITTEN_PACKAGE: f64 = 0.6;
/// `rewritten`: minimum part in the module's cost of a package that determines the module's name.
/// Unit: fraction of the cost. Source: tuned on real upgrades.
pub(super) const MIN_PART_OF_NAMED_PACKAGE: f64 = 0.1;
/// `rewritten`: minimum number of functions that only one side has.
/// Unit: functions. Source: judgment.
pub(super) const MIN_REWRITTEN_FUNCTIONS: usize = 5;
/// `rewritten`: minimum number of events of such a function.
/// Unit: events. Source: judgment.
pub(super) const MIN_EVENTS_OF_REWRITTEN_FUNCTION: f64 = 5.0;
/// `own_cost`: minimum part of calls in a function's own change, for the calls to be the cause.
/// Unit: fraction of the change. Source: judgment.
pub(super) const MIN_PART_OF_CALLEES_IN_OWN: f64 = 0.5;
/// `replaced`: minimum part in the caller's cost, on its side, of each of the two functions that replace one another.
/// Unit: fraction of the cost. Source: judgment.
pub(super) const MIN_PART_OF_REPLACED_CALL: f64 = 0.5;
/// `replaced`: minimum part of a cause in its function's cost, for the cause to be a replacement.
/// Unit: fraction of the cost. Source: judgment.
pub(super) const MIN_PART_OF_REPLACED_CALLER: f64 = 0.9;
/// `replaced`: two calls replace one another only if the smaller change has at least this part of the larger one.
/// Unit: fraction of the larger change. Source: judgment (memory that grew ten times beside a call that disappeared).
pub(super) const MIN_PART_OF_SMALLER_CALL: f64 = 0.1;
/// `nested`: maximum change of a cause that becomes a part of the cause around it.
/// Unit: fraction of the outer cause's change. Source: tuned on real upgrades.
pub(super) const MAX_PART_OF_NESTED: f64 = 0.34;
/// `nested`: minimum change of a callee that is listed.
/// Unit: fraction of the cause's change. Source: what a reader needs beside the table.
pub(super) const MIN_PART_OF_LISTED_CALLEE: f64 = 0.1;
/// `completed`: maximum part of an added or removed call that was exchanged with other cost of its caller.
/// Unit: fraction of the call. Source: what a reader accepts beside the table.
pub(super) const MAX_EXCHANGED_PART: f64 = 0.25;
/// `uneven_pair`: minimum score of one cause of a single pair, as a multiple of the threshold.
/// Unit: factor. Source: upgrades and equal builds of Python and Node (docs/explain.md, How often it is right).
pub(super) const FACTOR_OF_UNEVEN_PAIR: f64 = 1.5;
/// `completed`: minimum part of a function's own change that its callees' changes in the opposite direction make up, for
/// the cost to have moved between them.
/// Unit: fraction of the own change. Source: what a reader accepts beside the table.
pub(super) const MIN_PART_MOVED_FROM_CALLEES: f64 = 0.5;
/// `completed`: minimum part of a callee's cost below the function that came or went, for inlining to explain it.
/// Unit: fraction of the cost. Source: judgment.
pub(super) const MIN_PART_OF_INLINED_CALLEE: f64 = 0.5;
/// `completed`: maximum difference between a cause's change and the change of all stacks that its name covers.
/// Unit: fraction of the cause's change. Source: what a reader accepts beside the table.
pub(super) const MAX_DIFFERENCE_FROM_NAMED: f64 = 0.15;
/// `completed`: the same for a cause whose sentence names the functions that its amount excludes.
/// Unit: fraction of the cause's change. Source: what a reader accepts beside the table.
pub(super) const MAX_DIFFERENCE_WITHOUT_OTHERS: f64 = 0.03;
/// `completed`: minimum change of a cause of a function, besides other causes in it, as a multiple of the minimum effect.
/// Unit: factor. Source: judgment.
pub(super) const FACTOR_OF_LEFTOVER: f64 = 2.5;
/// `whole`: minimum part of the change of the total in one function.
/// Unit: fraction of the change. Source: judgment.
pub(super) const MIN_PART_OF_WHOLE_PROGRAM: f64 = 0.9;
/// `whole`: minimum share of allocation sizes in a change of allocated memory, for the change not to be a different
/// amount of work.
/// Unit: fraction of the logarithm of the change. Source: tuned on real upgrades.
pub(super) const MIN_PART_OF_SIZE: f64 = 0.25;
/// `candidate`: minimum change.
/// Unit: fraction of the total. Source: judgment.
pub(super) const MIN_CHANGE_OF_CANDIDATE: f64 = 0.02;
/// `candidate`: minimum number of runs per side that the advice names.
/// Unit: runs. Source: judgment.
pub(super) const MIN_ADVISED_RUNS: f64 = 3.0;
/// `candidate`: maximum number of runs per side that the advice names.
/// Unit: runs. Source: judgment.
pub(super) const MAX_ADVISED_RUNS: f64 = 20.0;
/// `gc_pressure`: minimum difference of heaps that are not equal.
/// Unit: fraction of the base. Source: judgment.
pub(super) const MIN_CHANGE_OF_HEAP: f64 = 0.02;
/// `gc_pressure`: minimum share of a cause in the change of allocations, for the cause to get a share in the change of
/// garbage collection.
/// Unit: fraction of the change. Source: judgment.
pub(super) const MIN_PART_OF_GARBAGE: f64 = 0.1;

// Account: the rest, consequences, and small costs.

/// Minimum change of everything that a cause's name covers. Below it, the name would be misleading.
/// Unit: fraction of the cause's change. Source: docs/explain.md, What you can rely on: at most three times its size.
pub(super) const MIN_CHANGE_OF_NAMED_WHOLE: f64 = 0.35;
/// Maximum change of a cause, compared with the largest change of a function in its stacks.
/// Unit: factor. Source: formula: a set of stacks cannot change more than every function in it, except for changes of the
/// opposite sign in the same functions, which are causes of their own.
pub(super) const MAX_EXCESS_OVER_FUNCTIONS: f64 = 1.05;
/// Penalised deviance that unchanged consequences exceed by chance one time in a hundred.
/// Unit: deviance. Source: formula: 99 % quantile of chi-squared with one degree of freedom.
pub(super) const MAX_DEVIANCE_OF_UNCHANGED_CONSEQUENCES: f64 = 6.63;
/// Minimum rest that is unexplained, if it also exceeds [`MIN_DEVIANCE_OF_UNEXPLAINED_REST`].
/// Unit: fraction of the larger side's total. Source: docs/explain.md, The account.
pub(super) const MIN_UNEXPLAINED_REST: f64 = 0.1;
/// Minimum deviance, from sampling error alone, of a rest that is unexplained.
/// Unit: deviance. Source: formula: three standard deviations.
pub(super) const MIN_DEVIANCE_OF_UNEXPLAINED_REST: f64 = 9.0;
/// Minimum part of a side that cannot be attributed before a warning reports it.
/// Unit: fraction of the side. Source: judgment.
pub(super) const MIN_UNATTRIBUTED_PART: f64 = 0.01;
/// Minimum cost of a renamed, inlined or cloned function in results. Inlined functions whose caller's own cost changed
/// by the same amount are shown at any cost.
/// Unit: fraction of a side. Source: tuned on injected faults.
pub(super) const MIN_PART_OF_SHOWN_MOVE: f64 = 0.01;

// Verdict: whether anything changed.

/// Minimum change that is reported as a cause, unless the options give another.
/// Unit: fraction of the mean of both totals at equal work. Source: tuned on injected faults.
pub(super) const DEFAULT_MIN_EFFECT: f64 = 0.002;
/// Maximum ratio of the numbers of operations of two sides.
/// Unit: factor. Source: judgment.
pub(super) const MAX_OPS_RATIO: f64 = 1e9;
/// Maximum difference of rows of equal sides.
/// Unit: fraction of both values. Source: rounding error.
pub(super) const MAX_DIFFERENCE_OF_EQUAL_SIDES: f64 = 1e-9;
/// Cap for reported noise. JSON cannot represent infinity.
/// Unit: factor minus one. Source: judgment.
pub(super) const MAX_REPORTED_NOISE: f64 = 1e6;
/// Maximum [`NoiseEstimate::noticed`](super::NoiseEstimate::noticed) that permits the verdict "nothing changed": growth
/// of a frame with a tenth of the total.
/// Unit: factor minus one. Source: documentation of `Verdict::None`.
pub(super) const MAX_NOTICED_FOR_NO_CHANGE: f64 = 1.0;
/// Like [`MAX_NOTICED_FOR_NO_CHANGE`], if the explanation found cost that moved.
/// Unit: factor minus one. Source: documentation of `Verdict::None`.
pub(super) const MAX_NOTICED_FOR_MOVED_COST: f64 = 3.0;
/// Maximum p-value of a difference of the totals that is certain.
/// Unit: probability. Source: judgment.
pub(super) const MAX_P_OF_CERTAIN_TOTAL: f64 = 0.001;
/// Like [`MAX_P_OF_CERTAIN_TOTAL`], for several runs per side, because their own variation measures chance.
/// Unit: probability. Source: judgment.
pub(super) const MAX_P_OF_CERTAIN_RUNS: f64 = 0.05;
/// Minimum p-value of the remainder, if there are causes, for it to count as noise. The variation of the remainder's sum
/// between runs of one side gives this p-value.
/// Unit: probability. Source: upgrades: a parser that grew in each of three runs was called noise.
pub(super) const MIN_P_OF_REMAINDER_BY_CHANCE: f64 = 0.01;
/// Maximum p-value of a difference of the totals that is likely, which rules out "nothing changed" together with
/// [`MIN_REST_OF_LIKELY_CHANGE`]. It is more cautious than [`MIN_P_OF_TOTAL_BY_CHANCE`] of the words. With .05, no answer
/// of 898 pairs changes, but the case of the source would be "nothing changed".
/// Unit: probability. Source: tuned on real upgrades (three runs that differ 1.67-fold with p .06).
pub(super) const MAX_P_OF_LIKELY_TOTAL: f64 = 0.1;
/// Minimum p-value of a difference of the totals that chance may explain, in the sentences about the work and the
/// remainder. Between this number and [`MAX_P_OF_LIKELY_TOTAL`], a total is both likely changed and within noise. With .1, the
/// remainders of four comparisons of equal builds are called larger than noise.
/// Unit: probability. Source: judgment.
pub(super) const MIN_P_OF_TOTAL_BY_CHANCE: f64 = 0.05;
/// Minimum unexplained rest of a likely change of the total, which rules out "nothing changed".
/// Unit: fraction of the smaller side's total. Source: tuned on real upgrades.
pub(super) const MIN_REST_OF_LIKELY_CHANGE: f64 = 0.25;
/// Maximum unexplained rest of the verdict "nothing changed", whatever the p-value of the totals.
/// Unit: fraction of the smaller side's total. Source: judgment.
pub(super) const MAX_REST_OF_NO_CHANGE: f64 = 1.0;

// Words: what a sentence states, lists or omits.

/// Minimum part of a change that one explanation covers, for it to be named as the only one: the count or the size of a
/// split, or the first function of the program above a library function.
/// Unit: fraction of the change. Source: tuned on injected faults.
pub(super) const MIN_PART_NAMED_ALONE: f64 = 0.85;
/// Minimum size of a change that is listed after the largest one if the number of samples is unknown.
/// Unit: fraction of the larger side's total. Source: judgment.
pub(super) const MIN_PART_OF_LISTED_CHANGE: f64 = 0.05;
/// Minimum part of a function's own change in the functions of the runtime that it calls, for a sentence to name them. The
/// plain table shows the own cost without them.
/// Unit: fraction of the change. Source: judgment.
pub(super) const MIN_PART_IN_CALLEES: f64 = 0.03;
/// Minimum part of both sides' cost in entry functions that agree on a ratio of calls, for this ratio to be the ratio of
/// work.
/// Unit: fraction of the total. Source: judgment.
pub(super) const MIN_PART_OF_ENTRIES: f64 = 0.6667;
/// Maximum difference of the ratios of calls that agree.
/// Unit: fraction of the ratio. Source: judgment.
pub(super) const MAX_DIFFERENCE_OF_CALLS: f64 = 0.005;
/// Minimum difference of the amounts of work that two sample types of the same runs show, for neither to be certain.
/// Unit: natural logarithm. Source: judgment (a fifth).
pub(super) const MIN_DISPUTED_LOG_OF_WORK: f64 = 0.2;
/// Minimum cost of garbage collection, scheduling and locks below a cause, for the cause's command to ignore them.
/// Unit: fraction of the cause's cost on both sides. Source: formula: amounts have three digits.
pub(super) const MIN_PART_IGNORED: f64 = 0.002;
/// A sentence names the source line of a cause if this part of the change is in the line.
/// Unit: fraction of the change. Source: judgment.
pub(super) const MIN_PART_OF_LINE: f64 = 0.6667;
/// Minimum size of a part of the account that is listed.
/// Unit: fraction of the largest part or of the difference of the totals, whichever is larger. Source: judgment.
pub(super) const MIN_PART_LISTED: f64 = 0.005;
/// Maximum rest that is small beside the causes.
/// Unit: fraction of the largest part. Source: what a reader needs.
pub(super) const MAX_SMALL_REST: f64 = 0.1;
/// Minimum change of rewritten code that is most of the rest.
/// Unit: fraction of the rest. Source: formula.
pub(super) const MIN_REWRITTEN_PART_OF_REST: f64 = 0.75;
/// Minimum size of a cause's garbage collection that is listed.
/// Unit: fraction of the cause. Source: judgment.
pub(super) const MIN_GARBAGE_LISTED: f64 = 0.005;
/// Minimum change of garbage collection, scheduling and locks to be "all that changed".
/// Unit: fraction of the larger total. Source: judgment.
pub(super) const MIN_CONSEQUENCES_AS_ALL: f64 = 0.02;
/// Maximum rest beside consequences that are "all that changed".
/// Unit: fraction of the consequences. Source: judgment.
pub(super) const MAX_REST_BESIDE_CONSEQUENCES: f64 = 0.5;
/// Minimum [`NoiseEstimate::noticed`](super::NoiseEstimate::noticed) at which nothing can be detected: a frame with a
/// tenth of the total would have to grow to a hundred times the total.
/// Unit: factor minus one. Source: judgment.
pub(super) const MIN_NOTICED_FOR_NOTHING: f64 = 1000.0;
/// Maximum p-value of a total that changed, in the colors of the page, if a cause was found. Without a cause,
/// [`MAX_P_OF_CERTAIN_TOTAL`] applies.
/// Unit: probability. Source: judgment.
pub(super) const MAX_P_OF_TOTAL_WITH_CAUSE: f64 = 0.01;
/// Minimum difference of the totals for percentages of it. If the parts cancel out, each could be thousands of percent
/// of the difference.
/// Unit: fraction of the sum of all parts' sizes. Source: judgment.
pub(super) const MIN_NET_PART_FOR_PERCENTAGES: f64 = 0.05;
