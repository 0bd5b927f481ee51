//! The events behind the values of each run: the way in which a sample type was measured decides how many events a
//! sample stands for, and how much equal runs of other programs vary.
//!
//! ```text
//! sample type and its pair (`target`) -> columns of both sides -> runs with their basis -> events of each sample
//! ```
//!
//! `runs` and `explain` weigh samples by these rules, so that a check and an explanation agree about chance.

use crate::Result;
use crate::diff::{Measure, Walk};
use crate::sampling::{Basis, events_of_exact};
use crate::target::{COUNTS, WALL};
use pprofdiff_profile::parallel;
use pprofdiff_profile::samples::Sample;

/// The way values were measured. It determines the number of events behind a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Samples at intervals, such as CPU time. Each sample is an event.
    Sampled,
    /// Allocations, sampled by size and scaled up to all allocations.
    Heap,
    /// Waiting (locks, blocking), sampled and scaled up by the sampling fraction.
    Delay,
    /// Calls or instructions, all of them counted. Equal runs of most programs count the same.
    Counted,
}

/// The measures that are read together.
pub struct Columns<'m> {
    /// The explained measure.
    pub value: &'m Measure,
    /// The measure that counts what `value` measures, if there is one.
    pub count: Option<&'m Measure>,
    /// The bytes of a heap profile, from which the number of sampled objects follows. `None` for other profiles.
    pub bytes: Option<&'m Measure>,
    /// The way `value` was measured.
    pub kind: ValueKind,
    /// True if the runtime's work is a consequence of causes elsewhere: for CPU time, and for waiting for locks. For
    /// wall-clock time and goroutines, it is how the program waits.
    pub has_background: bool,
    /// The number of A/A runs at the end of the base.
    pub learned: usize,
    /// True if the sample type measures a level instead of activity.
    pub is_level: bool,
    /// The value that a sample represents on the base and on the new side, if the sides were sampled at different
    /// rates.
    pub rates: Option<[f64; 2]>,
    /// The variance between equal runs of other programs, of the logarithm of a cost.
    pub known_variance: f64,
}

impl std::fmt::Debug for Columns<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Columns").finish_non_exhaustive()
    }
}

/// Returns the number of events that one heap object represents. `size` is in units of the sampling rate. An object is
/// sampled with `p = 1 - exp(-size)`. The number of objects also varies, so an object counts as `p` events. Large
/// objects in use are an exception: they certainly exist, and only sampling is random, so they count as `p / (1 - p)`
/// events. Allocations always count as `p` events: large buffers do not grow with the amount of work and would be
/// reported as causes (in two of eight cases of a web shop that differed only in the amount of work).
fn events_of_object(size: f64, is_level: bool) -> f64 {
    if is_level && size > MIN_SIZE_OF_CERTAIN_OBJECT {
        size.exp_m1().min(MAX_EVENTS_OF_CERTAIN_OBJECT)
    } else {
        -(-size).exp_m1()
    }
}
/// Minimum size of an object in use that certainly exists, whether or not it was sampled.
/// Unit: sampling rates. Source: docs/explain.md, Events. Test: not pinned.
const MIN_SIZE_OF_CERTAIN_OBJECT: f64 = 3.0;
/// Maximum number of events that an object in use counts as.
/// Unit: events. Source: docs/explain.md, Events. Test: not pinned.
const MAX_EVENTS_OF_CERTAIN_OBJECT: f64 = 100.0;
/// The number of events behind each counted call or instruction. It is so large that a count which differs by one is never
/// chance. More would cost precision: the largest runs have 1e12 instructions.
/// Unit: events. Source: `a_single_call_more_is_a_cause` in tests/counted.rs. Test: not pinned.
const EVENTS_OF_COUNTED: f64 = 10_000.0;
/// The number of waits to assume for a record of delays without a count. Only several runs show how much they vary.
/// Unit: events. No source recorded. Test: not pinned.
const EVENTS_OF_UNCOUNTED_DELAY: f64 = 100.0;
/// Variance of a delay, compared with the variance of a value with the same number of events.
/// Unit: factor. Source: formula: delays are about exponential, so their squares have twice the mean. Test: not pinned.
const VARIANCE_OF_DELAY: f64 = 2.0;

/// A profile with the information about its sampling.
pub struct SampledRun<'m> {
    /// The samples.
    pub walk: Walk<'m>,
    count: Option<Walk<'m>>,
    bytes: Option<Walk<'m>>,
    /// The side; `None` for A/A runs, which only estimate noise.
    pub side: Option<usize>,
    /// The run's column in the values of each run: first the base's, then the new side's, then the A/A runs.
    pub column: usize,
    /// The greatest common divisor of all counts, which is the inverse of the sampling fraction.
    step: u64,
    /// True if the sample type measures a level instead of activity.
    is_level: bool,
    /// The basis for the number of events behind a value.
    basis: Basis,
    /// True if the number of samples is unknown, and the basis is nominal.
    is_unknown: bool,
    /// Factor for values, if the samples were taken at another rate than the base's.
    times: f64,
    /// The number of samples that count as one event, if the opposite side was sampled less often.
    coarse: f64,
}

impl std::fmt::Debug for SampledRun<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SampledRun").finish_non_exhaustive()
    }
}

/// The contribution of one sample to its row.
#[derive(Clone, Copy, Default)]
pub struct SampleSums {
    /// The value.
    pub value: f64,
    /// The count, such as allocations.
    pub count: f64,
    /// The number of events.
    pub events: f64,
    /// The sampling variance of the value.
    pub variance: f64,
}

impl std::fmt::Debug for SampleSums {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SampleSums").finish_non_exhaustive()
    }
}

impl std::ops::AddAssign for SampleSums {
    #[inline]
    fn add_assign(&mut self, other: SampleSums) {
        self.value += other.value;
        self.count += other.count;
        self.events += other.events;
        self.variance += other.variance;
    }
}

impl SampledRun<'_> {
    /// Returns the mean value of one event, given the sums of all samples with a positive value; 0 if the number of
    /// samples is unknown, or without positive values.
    pub fn event(&self, sum: SampleSums) -> f64 {
        if !self.is_unknown && sum.value > 0.0 { sum.variance / sum.value } else { 0.0 }
    }

    /// Returns the contribution of a sample, with the number of events behind it.
    #[inline]
    pub fn part(&self, kind: ValueKind, v: f64, sample: &Sample<'_>) -> SampleSums {
        let value_in = |walk: &Option<Walk<'_>>| walk.as_ref().map(|walk| walk.value(sample) as f64);
        let counted = value_in(&self.count).map(|c| c.max(1.0));
        let v = v * self.times;
        let events = match self.basis {
            Basis::Column(column) => (sample.value(column).unsigned_abs() as f64).max(1.0),
            Basis::Own => v,
            Basis::Size(event) => (v / event).max(1.0),
            Basis::Heap(rate) => match (counted, value_in(&self.bytes)) {
                (Some(c), Some(bytes)) if bytes > 0.0 => {
                    (c * events_of_object(bytes / c / rate, self.is_level)).max(1e-9)
                }
                _ => (v / rate).max(1.0),
            },
            Basis::Delay => counted.unwrap_or(1.0) / self.step.max(1) as f64,
            Basis::Objects => counted.unwrap_or(v),
            Basis::Exact if kind == ValueKind::Counted => v * EVENTS_OF_COUNTED,
            Basis::Exact => events_of_exact(counted.unwrap_or(v)),
            // For delays only: other values with an unknown number of samples have a nominal basis.
            Basis::Unknown => EVENTS_OF_UNCOUNTED_DELAY,
        };
        let events = events / self.coarse;
        let variance = v * v / events * if kind == ValueKind::Delay { VARIANCE_OF_DELAY } else { 1.0 };
        // Without a count, the number of waits is unknown.
        let count = counted.unwrap_or(if kind == ValueKind::Delay { 0.0 } else { events });
        SampleSums { value: v, count, events, variance }
    }
}

/// Returns the profiles, in the order of their files.
pub fn runs<'m>(columns: &Columns<'m>) -> Vec<SampledRun<'m>> {
    let [n_base, n_new] = [true, false].map(|base| columns.value.walks_of(base).count());
    let m = [n_base - columns.learned, n_new];
    let mut next = [0, m[0], m[0] + m[1]];
    let walks = |measure: Option<&'m Measure>| measure.map(|m| m.walks().collect::<Vec<_>>());
    let (mut counts, mut bytes) = (walks(columns.count), walks(columns.bytes));
    let mut take_beside = |i: usize| {
        let take_walk = |walks: &mut Option<Vec<Walk<'m>>>| walks.as_mut().map(|walks| walks.swap_remove(i));
        (take_walk(&mut counts), take_walk(&mut bytes))
    };
    let walks: Vec<Walk<'m>> = columns.value.walks().collect();
    // Starts with the last, so that `swap_remove` keeps the remaining walks in place.
    let taken: Vec<_> = (0..walks.len()).rev().map(&mut take_beside).collect();
    let run = |(walk, (count, bytes)): (Walk<'m>, (Option<Walk<'m>>, Option<Walk<'m>>))| {
        let side = usize::from(!walk.input.base);
        let side = if walk.input.base && next[0] == m[0] { None } else { Some(side) };
        let column = &mut next[side.unwrap_or(2)];
        let column = std::mem::replace(column, *column + 1);
        let mut step = 0;
        if let (ValueKind::Delay, Some(count)) = (columns.kind, &count) {
            walk.for_each_sample(|_, sample| step = gcd(step, count.value(&sample).unsigned_abs()));
        }
        let basis = columns.value.basis(walk.index);
        let is_unknown = basis == Basis::Unknown;
        let basis = if is_unknown && columns.kind != ValueKind::Delay { nominal(&walk) } else { basis };
        let (basis, times, coarse) = at_common_rate(basis, columns.rates, usize::from(!walk.input.base));
        let is_level = columns.is_level;
        SampledRun { walk, count, bytes, side, column, step, is_level, basis, is_unknown, times, coarse }
    };
    walks.into_iter().zip(taken.into_iter().rev()).map(run).collect()
}

/// The number of samples to assume for a run with an unknown number, to rank its changes. No verdict follows from it.
/// Unit: samples. No source recorded. Test: not pinned.
pub(crate) const NOMINAL_SAMPLES: f64 = 1_000.0;

/// Returns a basis that ranks the changes of a run with an unknown number of samples.
fn nominal(walk: &Walk<'_>) -> Basis {
    Basis::Size((walk.total() as f64 / NOMINAL_SAMPLES).max(1.0))
}

/// Returns the basis of a side, the factor for its counts, and the number of its samples that equal one sample of the
/// coarser side.
///
/// With ten times the samples, a stack with two samples on the coarser side has twenty samples on the finer side. The
/// search uses one value per event, so it treats the finer side like the coarser side. This loses at most half of the
/// information, and never reports a stack as new that the coarser side would have missed.
fn at_common_rate(basis: Basis, rates: Option<[f64; 2]>, side: usize) -> (Basis, f64, f64) {
    let Some(rates) = rates else { return (basis, 1.0, 1.0) };
    let coarsest = rates[0].max(rates[1]);
    match basis {
        Basis::Heap(_) | Basis::Objects => (Basis::Heap(coarsest), 1.0, 1.0),
        // Counts samples in units of the base's samples.
        Basis::Own => (basis, rates[side] / rates[0], coarsest / rates[0]),
        _ => (basis, 1.0, coarsest / rates[side]),
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns the mean value of one event in each run, in the order of the profiles; 0 if the number of samples is
/// unknown, or without positive values. With `before_filters`, samples that the filters remove count as well.
fn event_of_runs(columns: &Columns<'_>, before_filters: bool) -> Vec<f64> {
    parallel::map(&runs(columns), |run| {
        let mut sum = SampleSums::default();
        let add = |value: i64, sample: Sample<'_>| {
            if value > 0 {
                sum += run.part(columns.kind, value as f64, &sample);
            }
        };
        match before_filters {
            true => run.walk.for_each_sample_before_filters(add),
            false => run.walk.for_each_sample(add),
        }
        run.event(sum)
    })
}

/// Known standard deviations of a frame's cost between equal runs, before any measurement.
/// Unit: natural logarithm. Source: equal builds of the programs that the engine was developed with
/// (docs/statistics.md, Check). Test: not pinned.
const TAU_OF_SAMPLES: f64 = 0.07;
const TAU_OF_HEAP: f64 = 0.02;
const TAU_OF_DELAYS: f64 = 0.95;
/// Standard deviation of wall-clock values between equal runs. It is larger than for CPU time, because frames wait for
/// each other.
/// Unit: natural logarithm. Source: docs/statistics.md, Check. Test: not pinned.
const TAU_OF_WALL_CLOCK: f64 = 0.15;

/// Returns the known standard deviation of a frame's logarithmic cost between equal runs, before any measurement.
pub fn known_deviation(kind: ValueKind) -> f64 {
    match kind {
        ValueKind::Sampled => TAU_OF_SAMPLES,
        ValueKind::Heap => TAU_OF_HEAP,
        ValueKind::Delay => TAU_OF_DELAYS,
        ValueKind::Counted => 0.0,
    }
}

/// Returns the variance between equal runs before any measurement.
pub fn known_variance(kind: ValueKind) -> f64 {
    known_deviation(kind).powi(2)
}

/// Returns the variance between equal runs of a sample type before any measurement. `name` is one of `types`.
pub(crate) fn known_variance_of(kind: ValueKind, name: &str, types: &[(String, String)]) -> f64 {
    // A sample type that counts samples counts wall-clock samples if the profile has a wall-clock type. `time` without a
    // count may belong to any clock. fgprof writes `time` beside `samples` and includes waiting.
    let has = |names: &[&str]| types.iter().any(|t| names.contains(&t.0.as_str()));
    let is_wall = name == "wall"
        || name == "wall_samples"
        || has(&WALL) && has(&COUNTS) && (name == "time" || COUNTS.contains(&name));
    if is_wall { TAU_OF_WALL_CLOCK * TAU_OF_WALL_CLOCK } else { known_variance(kind) }
}

/// Returns how the values of a sample type were sampled: the value of one event in each run, in the order of the
/// profiles, and the known variance between equal runs of other programs (of the logarithm of a frame's cost).
pub fn sampling(measure: &Measure) -> Result<(Vec<f64>, f64)> {
    read_sampling(measure, false)
}

/// Like [`sampling`], with the samples that the filters remove.
pub(crate) fn sampling_before_filters(measure: &Measure) -> Result<(Vec<f64>, f64)> {
    read_sampling(measure, true)
}

fn read_sampling(measure: &Measure, before_filters: bool) -> Result<(Vec<f64>, f64)> {
    let selection = measure.selection();
    let target = selection.diff().explain_target(Some(&measure.summary().sample_type), &[])?;
    let read = |columns: &Columns<'_>| (event_of_runs(columns, before_filters), columns.known_variance);
    target.read(selection, measure, 0, read)
}
