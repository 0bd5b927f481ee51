//! The sampling model of a sample type in one profile: how many samples a value stands for, and the evidence for it.
//!
//! ```text
//! Profile + sample type -> Basis (events of each sample's value) -> Sampling (in the results of `info`, `explain`,
//! `check`)
//! ```
//!
//! Every test of chance needs a number of events. Go's profiles state it by a column or a period. Other producers state
//! it by the weights of their samples or by a common step of all values, or omit it. If a profile omits it, the model
//! is *unknown*, and statistics give no p-value: a value of 50 ms may be 5 samples or 50,000.
//!
//! This module makes all decisions about sampling, once for each input of a diff. They use the header and at most
//! 16,384 samples of a profile.

use std::hash::BuildHasher;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::diff::{Diff, Input, Measure};
use crate::target::group_of;
use pprofdiff_profile::random::{HashSet, RandomState};
use pprofdiff_profile::units;
use pprofdiff_profile::{Profile, Sampled, samples};

/// The maximum number of samples of a profile that are examined for a common step and for proportional counts.
const MAX_EXAMINED: usize = 1 << 14;
/// The maximum number of columns to try as a count of the samples of another column.
const MAX_COUNTING: usize = 3;
/// The minimum number of positive values from which a common step is inferred. With fewer values, a common divisor is
/// more often a coincidence: eight random numbers have a common divisor above 1 once in 250 tries.
const MIN_VALUES: usize = 8;
/// The minimum common step of counts. Multiples of a smaller number are counts of samples that happen to be round.
const MIN_STEP_OF_COUNTS: u64 = 100_000;
/// The maximum median of a column that counts samples. Most stacks are rare, so a larger median means other values.
const MAX_USUAL_COUNT: u64 = 100_000;
/// The minimum number of bytes per stack that suggests sampled allocations: half of the usual rate, 512 KiB.
const MIN_SAMPLED_SPACE: u64 = 256 << 10;
/// The shortest credible time between two samples, in nanoseconds: no kernel samples more than 100,000 times a second.
const SHORTEST_PERIOD: f64 = 10_000.0;
/// The conditions for a column that counts the samples of another column. At least this part of the value must be in
/// samples whose value per count is within this factor of the average.
const PROPORTIONAL_PART: f64 = 0.8;
const PROPORTIONAL_FACTOR: f64 = 4.0;
/// The maximum ratio between the sampling rates of sides with the same recording settings.
const SAME_RATE: f64 = 1.25;
/// The number of events behind a complete count of one. A single goroutine counts for much more than a single sample,
/// because the count is complete. The variation between runs limits its effect.
const CERTAIN: f64 = 100.0;

/// The sample types of Go that are complete counts.
const COMPLETE: [&str; 3] = ["goroutine", "goroutineleak", "threadcreate"];
/// The names of columns that count samples, best first. Other such names end in "samples".
const COUNTS: [&str; 2] = ["samples", "sample"];
/// The column that counts allocations in memory profiles of JAX and XLA. They record every allocation.
const ALL_ALLOCATIONS: &str = "allocations";
/// The columns that count every call, in profiles of instrumented programs and of cProfile.
const ALL_CALLS: [&str; 2] = ["calls", "primitive calls"];
/// The columns of callgrind that count every event: instructions, reads, writes, misses of the simulated caches, branches,
/// and calls of the kernel.
const ALL_EVENTS: [&str; 16] = [
    "Ir", "Dr", "Dw", "I1mr", "D1mr", "D1mw", "ILmr", "DLmr", "DLmw", "I2mr", "D2mr", "D2mw", "Bc", "Bcm", "Bi", "Bim",
];

/// Returns true for a sample type that counts every call or event of a run. Equal programs with equal inputs repeat these
/// counts, unlike a snapshot such as the number of goroutines.
#[doc(hidden)]
pub fn counts_every_event(kind: &str, unit: &str) -> bool {
    unit == "count" && (ALL_CALLS.contains(&kind) || ALL_EVENTS.contains(&kind))
}

/// Returns true for the sample type that counts every call, at the frame that was called.
#[doc(hidden)]
pub fn counts_every_call(kind: &str, unit: &str) -> bool {
    unit == "count" && kind == ALL_CALLS[0]
}
/// The column of instructions in profiles of valgrind. It simulates the processor, so all its counts are complete.
const ALL_INSTRUCTIONS: &str = "Ir";

/// The kind of knowledge about the number of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Model {
    /// The profile states the number of samples behind a value.
    Counted,
    /// The value is a complete count without sampling.
    Exact,
    /// The profile omits the number of samples.
    Unknown,
}

/// The sampling model of a sample type, in one profile or on one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Sampling {
    /// The kind of knowledge about the number of samples.
    pub model: Model,
    /// The evidence, such as "counted by samples" or "one per 10ms, the period".
    pub by: String,
    /// The average value of a sample, in the unit of the sample type. For heap profiles with a sampling rate, the rate
    /// in bytes. 0 if neither is known.
    pub event: f64,
    /// The number of samples. `None` for complete counts, for unknown numbers, and for heap and contention profiles, in
    /// which the number of events is derived for each sample.
    pub samples: Option<f64>,
}

/// The rule that derives the events behind a value from the value and its sample. Sizes are in the unit of the profile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Basis {
    /// A column of the profile counts the events.
    Column(usize),
    /// The value is the number of events.
    Own,
    /// Each event has this value.
    Size(f64),
    /// Allocations, sampled once in this number of bytes on average.
    Heap(f64),
    /// Contentions, sampled at a rate that their column of counts shows.
    Delay,
    /// Allocations, all of them recorded.
    Objects,
    /// A complete count without sampling.
    Exact,
    /// The profile omits the number of events.
    Unknown,
}

/// A basis, with the evidence for it.
#[derive(Debug, Clone)]
pub(crate) struct KnownBasis {
    basis: Basis,
    by: String,
    /// The reason for ignoring the period that the profile states; `None` if no period was ignored.
    rejected: Option<String>,
}

/// A summary of the examined values of one column: the magnitudes of all nonzero values. Every field is 0 if there are
/// none.
#[derive(Default)]
struct ColumnSummary {
    nonzero: usize,
    /// The greatest common divisor.
    step: u64,
    smallest: u64,
    median: u64,
}

impl ColumnSummary {
    fn new(profile: &Profile, column: usize) -> ColumnSummary {
        let magnitudes = profile.samples().take(MAX_EXAMINED).map(|sample| sample.value(column).unsigned_abs());
        let mut values: Vec<u64> = magnitudes.filter(|value| *value > 0).collect();
        values.sort_unstable();
        ColumnSummary {
            nonzero: values.len(),
            step: values.iter().fold(0, |step, &value| gcd(step, value)),
            smallest: values.first().copied().unwrap_or(0),
            median: values.get(values.len() / 2).copied().unwrap_or(0),
        }
    }

    /// Returns the common step if enough values show it, and if it is at least `least` and at least 2.
    fn step(&self, least: u64) -> Option<u64> {
        (self.nonzero >= MIN_VALUES && self.step >= least.max(2)).then_some(self.step)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns true for a step in nanoseconds to which times are rounded: 1, 2 or 5 of a decimal place below a millisecond,
/// a millisecond, or a second or more.
fn is_resolution(step: f64) -> bool {
    let leading = step / 10f64.powf(step.log10().floor());
    let is_round = [1.0, 2.0, 5.0].iter().any(|digit| (leading - digit).abs() < 1e-9);
    (is_round && step < 1e6) || step == 1e6 || step >= 1e9
}

/// A profile with one of its sample types.
struct Typed<'p> {
    profile: &'p Profile,
    column: usize,
    kind: String,
    unit: String,
    /// All sample types.
    types: Vec<(String, String)>,
}

impl<'p> Typed<'p> {
    fn new(profile: &'p Profile, column: usize) -> Typed<'p> {
        let types = profile.sample_types();
        let (kind, unit) = types.get(column).cloned().unwrap_or_default();
        Typed { profile, column, kind, unit, types }
    }

    fn has(&self, name: &str) -> bool {
        self.types.iter().any(|(kind, _)| kind == name)
    }

    fn nanos(&self) -> Option<f64> {
        let unit = units::find(&self.unit)?;
        unit.same_family(units::find("nanoseconds")?).then(|| unit.factor() as f64)
    }

    /// Decides the basis. The most direct evidence comes first.
    fn decide(&self) -> KnownBasis {
        let decided = |basis, by: String| KnownBasis { basis, by, rejected: None };
        if COMPLETE.contains(&self.kind.as_str()) {
            return decided(Basis::Exact, format!("{} is a complete count", self.kind));
        }
        if ALL_CALLS.contains(&self.kind.as_str()) && self.unit == "count" {
            return decided(Basis::Exact, "calls are counted, not sampled".to_owned());
        }
        if self.unit == "count" && self.types.iter().any(|(kind, unit)| kind == ALL_INSTRUCTIONS && unit == "count") {
            return decided(Basis::Exact, "valgrind counts all events".to_owned());
        }
        if let Some(event) = self.profile.sampled(self.column).and_then(|sampled| sampled.event()) {
            return decided(Basis::Size(event), "each sample states its weight".to_owned());
        }
        if let Some((column, name)) = self.counting_column() {
            return decided(Basis::Column(column), format!("counted by {name}"));
        }
        if self.unit == "count" {
            return self.decide_count();
        }
        let (period, rejected) = match self.period() {
            Ok(period) => (period, None),
            Err(why) => (None, Some(why)),
        };
        let values = ColumnSummary::new(self.profile, self.column);
        // Allocators round memory sizes, so a common step of memory reveals no sampling rate.
        let step = self.nanos().and_then(|nanos| {
            let shortest = (SHORTEST_PERIOD / nanos).ceil() as u64;
            values.step(shortest).filter(|step| !is_resolution(*step as f64 * nanos))
        });
        let display = |value: f64| units::show_real(value, &self.unit);
        match (period, step) {
            // A common step of all values that exceeds the period proves that the period is not the distance between
            // samples.
            (Some(period), Some(step)) if (step as f64) > 1.5 * period => decided(
                Basis::Size(step as f64),
                format!("one per {}, the common step of all values", display(step as f64)),
            ),
            (Some(period), _) => decided(Basis::Size(period), format!("one per {}, the period", display(period))),
            (None, Some(step)) => {
                let by = format!("one per {}, the common step of all values", display(step as f64));
                KnownBasis { basis: Basis::Size(step as f64), by, rejected }
            }
            (None, None) => {
                if let Some(event) = self.repeated() {
                    return decided(Basis::Size(event), "every sample is a separate record".to_owned());
                }
                let by = match &rejected {
                    Some(why) => why.clone(),
                    None => format!("no period, {}, no common step of {}", self.why_uncounted(), self.kind),
                };
                KnownBasis { basis: Basis::Unknown, by, rejected }
            }
        }
    }

    /// Decides the basis of a column of counts that no other column counts.
    fn decide_count(&self) -> KnownBasis {
        let decided = |basis, by: String| KnownBasis { basis, by, rejected: None };
        let rejected = match self.period() {
            Ok(Some(period)) => return decided(Basis::Size(period), format!("one per {period}, the period")),
            Ok(None) => None,
            Err(why) => Some(why),
        };
        // Objects are sampled by their bytes, so a sample type of bytes would be present.
        if self.kind.ends_with("objects") {
            let by = format!("allocations are sampled by bytes, which the profile lacks for {}", self.kind);
            return KnownBasis { basis: Basis::Unknown, by, rejected };
        }
        let values = ColumnSummary::new(self.profile, self.column);
        if let Some(step) = values.step(MIN_STEP_OF_COUNTS) {
            return decided(Basis::Size(step as f64), format!("one per {step}, the common step of all values"));
        }
        let max_median = if values.nonzero >= MIN_VALUES { MAX_USUAL_COUNT } else { 10 * MAX_USUAL_COUNT };
        if values.median > max_median {
            let by = format!("half of the stacks have {} or more, too many for numbers of samples", values.median);
            return KnownBasis { basis: Basis::Unknown, by, rejected };
        }
        KnownBasis { basis: Basis::Own, by: format!("counted by {}", self.kind), rejected }
    }

    /// Returns the column that counts the samples of this column, with its name. A column with the same stem comes
    /// first, such as `cpu-samples` for `cpu-time`. Its counts must be about proportional to the values. Returns `None`
    /// for a column that counts samples itself.
    fn counting_column(&self) -> Option<(usize, &str)> {
        // A column of samples needs no other column as its count.
        let is_samples = self.unit == "count" && self.count_rank(&self.kind).is_some();
        let column = self.counts().into_iter().find(|&i| !is_samples && self.is_proportional(i))?;
        Some((column, &self.types[column].0))
    }

    /// Says why no column counts the samples of this one.
    fn why_uncounted(&self) -> String {
        match self.counts().first() {
            Some(&column) => format!("values are not proportional to {}", self.types[column].0),
            None => "no column that counts samples".to_owned(),
        }
    }

    /// Returns the rank of a name as a count of this column's samples, the best first. Returns `None` for other names.
    fn count_rank(&self, name: &str) -> Option<usize> {
        let stem = |name: &str| name.split(['-', '_', '.']).next().unwrap_or_default().to_owned();
        match COUNTS.iter().position(|count| *count == name) {
            Some(place) => Some(1 + place),
            None if is_samples(name) && stem(name) == stem(&self.kind) => Some(0),
            None if is_samples(name) => Some(1 + COUNTS.len()),
            None => None,
        }
    }

    /// Returns the columns that may count the samples of this column, the best first.
    fn counts(&self) -> Vec<usize> {
        let is_count = |i: usize| i != self.column && self.types[i].1 == "count";
        let mut columns: Vec<(usize, usize)> = (0..self.types.len())
            .filter(|&i| is_count(i))
            .filter_map(|i| Some((self.count_rank(&self.types[i].0)?, i)))
            .collect();
        columns.sort_unstable();
        columns.truncate(MAX_COUNTING);
        columns.into_iter().map(|(_, column)| column).collect()
    }

    /// Returns the average value of a sample if most stacks occur several times. The producer then did not add its
    /// samples up, so each record is one sample. Returns `None` for fewer than eight samples.
    fn repeated(&self) -> Option<f64> {
        let state = RandomState::default();
        let (mut rows, mut sampled) = (0, Sampled::default());
        let mut seen: HashSet<(u64, u64)> = HashSet::default();
        for sample in self.profile.samples().take(MAX_EXAMINED) {
            let mut stack: Vec<u32> = Vec::new();
            sample.for_each_location(|location| stack.push(location));
            seen.insert((state.hash_one(&stack), state.hash_one(sample.labels().collect::<Vec<_>>())));
            rows += 1;
            sampled.add(sample.value(self.column));
        }
        (rows >= MIN_VALUES && 2 * seen.len() <= rows).then(|| sampled.event()).flatten()
    }

    /// Returns true if most of the value is in samples with about the average value per count.
    fn is_proportional(&self, counts: usize) -> bool {
        let examined = || {
            let pair = |sample: samples::Sample<'_>| {
                let value = sample.value(self.column).unsigned_abs() as f64;
                (value, sample.value(counts).unsigned_abs() as f64)
            };
            self.profile.samples().take(MAX_EXAMINED).map(pair).filter(|(value, _)| *value > 0.0)
        };
        let (value, count) = examined().fold((0.0, 0.0), |(v, c), (value, count)| (v + value, c + count));
        if value <= 0.0 || count <= 0.0 {
            return false;
        }
        let average = value / count;
        let is_near = |(value, count): &(f64, f64)| {
            let ratio = value / count / average;
            (1.0 / PROPORTIONAL_FACTOR..=PROPORTIONAL_FACTOR).contains(&ratio)
        };
        examined().filter(is_near).map(|(value, _)| value).sum::<f64>() >= PROPORTIONAL_PART * value
    }

    /// Returns the period in the unit of the values. Returns `None` if the profile states no period for them, or if the
    /// period is a placeholder.
    ///
    /// # Errors
    /// Returns the reason if the stated period cannot be the distance between samples.
    fn period(&self) -> Result<Option<f64>, String> {
        let period = self.profile.period();
        let Some((kind, unit)) = self.profile.period_type() else {
            // A period without a type is accepted if all values are multiples of it.
            let step = || ColumnSummary::new(self.profile, self.column).step;
            let is_step = period > 1 && self.unit != "count" && step().is_multiple_of(period.unsigned_abs());
            return Ok(is_step.then_some(period as f64));
        };
        let is_named = kind == self.kind;
        let factor = if unit == self.unit && (is_named || unit != "count") {
            1.0
        } else {
            match (units::find(&unit), units::find(&self.unit)) {
                (Some(period_unit), Some(value_unit)) if unit != "count" && period_unit.same_family(value_unit) => {
                    period_unit.factor() as f64 / value_unit.factor() as f64
                }
                _ => return Ok(None),
            }
        };
        let in_unit = period as f64 * factor;
        let period_text = || format!("the profile's period of {period} {unit}");
        let total = self.profile.total(self.column).unwrap_or(0) as f64;
        match (period, self.nanos()) {
            (0, _) => Ok(None),
            (..0, _) => Err(format!("{} is negative", period_text())),
            (_, Some(nanos)) if in_unit * nanos < SHORTEST_PERIOD => {
                Err(format!("{} is too short to be credible", period_text()))
            }
            _ if in_unit > total && total > 0.0 => Err(format!("{} is larger than the total", period_text())),
            // Either every event was recorded, or the producer wrote 1 as a placeholder.
            (1, None) => Ok(None),
            _ => Ok(Some(in_unit)),
        }
    }
}

/// Decides the basis of a sample type of heap profiles, by the number of bytes per sample. `space` and `objects` are
/// the sample types of the bytes and of their number.
fn decide_heap(typed: &Typed<'_>, space: &str, objects: &str) -> KnownBasis {
    let decided = |basis, by: String| KnownBasis { basis, by, rejected: None };
    let is_of_bytes = match typed.profile.period_type() {
        Some((_, unit)) => {
            units::find(&unit).zip(units::find("bytes")).is_some_and(|(unit, bytes)| unit.same_family(bytes))
        }
        None => true,
    };
    let rate = if is_of_bytes { typed.profile.period() } else { 0 };
    match rate {
        ..=-1 => {
            let why = format!("the profile's period of {rate} is negative");
            return KnownBasis { basis: Basis::Unknown, by: why.clone(), rejected: Some(why) };
        }
        2.. => {
            let rate_text = units::show(rate, "bytes");
            return decided(Basis::Heap(rate as f64), format!("one allocation in {rate_text} is sampled"));
        }
        1 => return decided(Basis::Objects, "every allocation was recorded (period 1)".to_owned()),
        _ => {}
    }
    if let Some(event) = typed.profile.sampled(typed.column).and_then(|sampled| sampled.event()) {
        return decided(Basis::Size(event), "each allocation states its size".to_owned());
    }
    if typed.has(ALL_ALLOCATIONS) {
        return decided(Basis::Exact, "every allocation was recorded (period 0)".to_owned());
    }
    let column = |name: &str| typed.types.iter().position(|(kind, _)| kind == name);
    let space = column(space).unwrap_or(typed.column);
    let values = ColumnSummary::new(typed.profile, space);
    // Whole object sizes are no estimates.
    let objects = column(objects).unwrap_or(typed.column);
    let is_estimate = |sample: samples::Sample<'_>| {
        let [bytes, count] = [space, objects].map(|column| sample.value(column));
        count != 0 && bytes % count != 0
    };
    let are_estimates = || typed.profile.samples().take(MAX_EXAMINED).any(is_estimate);
    if values.smallest >= MIN_SAMPLED_SPACE && are_estimates() {
        let smallest = units::show_real(values.smallest as f64, "bytes");
        let why = format!("no sampling rate (period), but no stack has less than {smallest}, which suggests sampling");
        return decided(Basis::Unknown, why);
    }
    decided(
        Basis::Objects,
        "no sampling rate, and small allocations are present, so each counts as recorded".to_owned(),
    )
}

/// The relation of a sample type to other types, as far as sampling depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// Time and anything else that is sampled at intervals.
    Sampled,
    /// Memory, with the names of its sample types for bytes and for objects.
    Heap(&'static str, &'static str),
    /// Waiting times, with or without a column that counts contentions.
    Delay { is_counted: bool },
}

fn decide_basis(typed: &Typed<'_>, group: Group) -> KnownBasis {
    let decided = |basis, by: &str| KnownBasis { basis, by: by.to_owned(), rejected: None };
    match group {
        Group::Heap(space, objects) => decide_heap(typed, space, objects),
        Group::Delay { is_counted: true } => decided(Basis::Delay, "by the number of contentions"),
        Group::Delay { is_counted: false } => match typed.profile.sampled(typed.column).and_then(|s| s.event()) {
            Some(event) => decided(Basis::Size(event), "each wait is listed"),
            None => decided(Basis::Unknown, "no column counts the waits"),
        },
        Group::Sampled => typed.decide(),
    }
}

/// The sampling knowledge about each input of a diff, by sample type. It is computed at the first use.
pub(crate) type KnownOfTypes = Arc<[OnceLock<Vec<KnownBasis>>]>;

/// Returns empty caches for a number of sample types.
pub(crate) fn nothing_known(sample_types: usize) -> KnownOfTypes {
    (0..sample_types).map(|_| OnceLock::new()).collect()
}

impl Sampling {
    /// Returns the model of a profile's sample type, by its index.
    pub fn of_profile(profile: &Profile, sample_type: usize) -> Sampling {
        let types = profile.sample_types();
        let sum = |column: usize| profile.total(column).unwrap_or(0) as f64;
        let known_basis = decide_basis(&Typed::new(profile, sample_type), group_of(&types, sample_type));
        Sampling::new(profile, (sample_type, 1), &known_basis, sum)
    }

    /// Returns the model of a column. `times` converts its values to the common unit. `sum` returns the total of a
    /// column.
    fn new(
        profile: &Profile,
        (column, times): (usize, i64),
        known_basis: &KnownBasis,
        sum: impl Fn(usize) -> f64,
    ) -> Sampling {
        let KnownBasis { basis, by, .. } = known_basis.clone();
        let total = sum(column);
        let listed = profile.sampled(column).map(|sampled| sampled.samples as f64);
        let (model, samples) = match basis {
            Basis::Column(column) => (Model::Counted, Some(sum(column))),
            Basis::Own => (Model::Counted, Some(total)),
            Basis::Size(event) => (Model::Counted, Some(total / event)),
            Basis::Heap(_) | Basis::Delay | Basis::Objects => (Model::Counted, None),
            Basis::Exact => (Model::Exact, None),
            Basis::Unknown => (Model::Unknown, None),
        };
        let event = match (basis, samples) {
            (Basis::Heap(rate), _) => rate,
            (_, Some(samples)) if samples > 0.0 => total / samples * times as f64,
            _ => 0.0,
        };
        let samples = samples.map(|samples| listed.unwrap_or(samples));
        Sampling { model, by, event, samples }
    }

    /// Formats the model as one line of text: the number of samples, and the evidence.
    pub fn to_words(&self) -> String {
        match (self.model, self.samples) {
            (Model::Counted, Some(samples)) => format!("{samples:.0}, {}", self.by),
            (Model::Counted, None) => format!("counted, {}", self.by),
            (Model::Exact, _) => format!("exact, {}", self.by),
            (Model::Unknown, _) => format!("unknown number ({})", self.by),
        }
    }
}

impl Diff {
    /// Returns the sampling knowledge about each input's values of a sample type.
    pub(crate) fn known(&self, sample_type: usize) -> &[KnownBasis] {
        let (Some(place), Some(t)) = (self.known.get(sample_type), self.types.get(sample_type)) else { return &[] };
        let group = self.group(sample_type);
        let of_input = |input: &Input| decide_basis(&Typed::new(&input.profile, t.columns[input.index].0), group);
        place.get_or_init(|| self.inputs.iter().map(of_input).collect())
    }

    /// Returns the rule that derives events from the values of a sample type, for an input by its index. Event values
    /// are in the common unit.
    pub(crate) fn basis(&self, sample_type: usize, input: usize) -> Basis {
        let times = || self.inputs.get(input).zip(self.types.get(sample_type)).map_or(1, |(i, t)| t.columns[i.index].1);
        match self.known(sample_type).get(input).map(|known_basis| known_basis.basis) {
            Some(Basis::Size(event)) => Basis::Size(event * times() as f64),
            other => other.unwrap_or(Basis::Unknown),
        }
    }

    /// Returns the sampling model of a sample type on the base and on the new side. `sample_type` is an index into
    /// [`Diff::sample_types`]. The model of a side is unknown if it is unknown for one run, or if the side has no
    /// profile. The samples of a side are the sum over its runs; `None` if one run has none.
    pub fn sampling(&self, sample_type: usize) -> [Sampling; 2] {
        [true, false].map(|base| {
            let columns = self.types.get(sample_type).map(|t| &t.columns);
            let inputs = self.inputs.iter().zip(self.known(sample_type)).filter(|(input, _)| input.base == base);
            let of_input = |(input, known_basis): (&Input, &KnownBasis)| {
                let sum = |column: usize| input.total(column).magnitude as f64;
                Some(Sampling::new(&input.profile, columns?[input.index], known_basis, sum))
            };
            let mut all = inputs.filter_map(of_input);
            let none = || Sampling { model: Model::Unknown, by: "no profile".to_owned(), event: 0.0, samples: None };
            let Some(first) = all.next() else { return none() };
            all.fold(first, |side, run| match side.model {
                Model::Unknown => side,
                _ if run.model == Model::Unknown => run,
                _ => {
                    let samples = side.samples.zip(run.samples).map(|(a, b)| a + b);
                    let event = match (side.samples, run.samples) {
                        (Some(a), Some(b)) if a + b > 0.0 => (side.event * a + run.event * b) / (a + b),
                        _ => side.event.max(run.event),
                    };
                    Sampling { samples, event, ..side }
                }
            })
        })
    }

    /// Returns the warnings about the sampling of a sample type: different rates on the sides, and incredible periods.
    pub(crate) fn sampling_warnings(&self, sample_type: usize) -> Vec<String> {
        let Some(t) = self.types.get(sample_type) else { return Vec::new() };
        let mut warnings: Vec<String> = Vec::new();
        let inputs = self.inputs.iter().zip(self.known(sample_type));
        for (input, known_basis) in inputs.filter(|(input, _)| input.part != Some(true)) {
            if let Some(why) = &known_basis.rejected {
                warnings
                    .push(format!("{}: {why}, so the number of samples does not follow from it", input.profile.name()));
            }
        }
        if let Some([base, new]) = self.rates(sample_type).filter(|_| self.states_rates(sample_type)) {
            let often = base.max(new) / base.min(new);
            let [base, new] = [base, new].map(|rate| units::show_real(rate, self.unit_of_rate(sample_type)));
            let is_count = t.unit == "count" && self.unit_of_rate(sample_type) != "count";
            let consequence = if is_count { ", so numbers of samples are not comparable" } else { "" };
            warnings.push(format!(
                "the sides were sampled at different rates: a sample stands for {base} on the base and {new} on the new side \
                 ({often:.1} times){consequence}"
            ));
        }
        warnings
    }

    /// Returns true if the difference between rates follows from stated values, and not only from the average value of
    /// a sample. An average may differ without a difference in rates: a program that waits more has less CPU time per
    /// sample.
    fn states_rates(&self, sample_type: usize) -> bool {
        let Some(t) = self.types.get(sample_type) else { return false };
        let is_average = |(input, known_basis): (&Input, &KnownBasis)| {
            let is_column = matches!(known_basis.basis, Basis::Column(_));
            is_column || input.profile.sampled(t.columns[input.index].0).is_some()
        };
        let mut periods = self.inputs.iter().filter_map(|input| period_nanos(&input.profile));
        let first = periods.next().unwrap_or(0.0);
        periods.any(|period| period.max(first) > SAME_RATE * period.min(first))
            || !self.inputs.iter().zip(self.known(sample_type)).any(is_average)
    }

    /// Returns the value of a sample on the base and on the new side, if both are known and differ by more than the
    /// factor [`SAME_RATE`]. Each is the mean over the runs. For a column that counts samples, the value is the time
    /// between two samples. Returns `None` for a diff of one side, and for a written diff.
    pub(crate) fn rates(&self, sample_type: usize) -> Option<[f64; 2]> {
        if !self.is_two_sided() || self.inputs.iter().any(|input| input.part.is_some()) {
            return None;
        }
        let t = self.types.get(sample_type)?;
        let side = |base: bool| {
            let rate = |(input, known_basis): (&Input, &KnownBasis)| {
                let (column, times) = t.columns[input.index];
                match known_basis.basis {
                    Basis::Heap(rate) => Some(rate),
                    Basis::Objects if input.profile.period() == 1 => Some(1.0),
                    Basis::Size(event) => Some(event * times as f64),
                    Basis::Own if is_samples(&t.kind) => {
                        period_nanos(&input.profile).or_else(|| interval_nanos(&input.profile, column))
                    }
                    Basis::Column(counts) => {
                        let samples = input.total(counts).magnitude as f64;
                        Some(input.total(column).magnitude as f64 * times as f64 / samples).filter(|rate| *rate > 0.0)
                    }
                    _ => None,
                }
            };
            let inputs = self.inputs.iter().zip(self.known(sample_type)).filter(|(input, _)| input.base == base);
            let rates: Option<Vec<f64>> = inputs.map(rate).collect();
            let rates = rates?;
            Some(rates.iter().sum::<f64>() / rates.len().max(1) as f64)
        };
        let rates = [side(true)?, side(false)?];
        let ratio = rates[0].max(rates[1]) / rates[0].min(rates[1]);
        (ratio.is_finite() && ratio > SAME_RATE).then_some(rates)
    }

    /// Returns the rates in nanoseconds per sample for a sample type whose values are numbers of samples. Returns
    /// `None` for other sample types, and if the rates are about equal or unknown.
    #[cfg(feature = "check")]
    pub(crate) fn rates_of_counts(&self, sample_type: usize) -> Option<[f64; 2]> {
        self.rates(sample_type)
            .filter(|_| self.known(sample_type).iter().all(|known_basis| known_basis.basis == Basis::Own))
    }

    /// Returns the unit of [`Diff::rates`].
    fn unit_of_rate(&self, sample_type: usize) -> &str {
        let is_own = self.known(sample_type).first().is_some_and(|known_basis| known_basis.basis == Basis::Own);
        match self.group(sample_type) {
            Group::Heap(..) => "bytes",
            _ if is_own => "nanoseconds",
            _ => self.types.get(sample_type).map_or("", |t| &t.unit),
        }
    }
}

impl Measure {
    /// Returns the sampling model of both sides together: the less certain one.
    #[doc(hidden)]
    pub fn sampling_model(&self) -> Model {
        let [base, new] = self.sampling();
        match (base.model, new.model) {
            (Model::Unknown, _) | (_, Model::Unknown) => Model::Unknown,
            (Model::Exact, Model::Exact) => Model::Exact,
            _ => Model::Counted,
        }
    }

    /// Returns the rule that derives events from the values of an input ([`Diff::basis`]).
    pub(crate) fn basis(&self, input: usize) -> Basis {
        self.selection().diff().basis(self.sample_type, input)
    }

    /// Returns the sampling model of the base and of the new side ([`Diff::sampling`]).
    pub fn sampling(&self) -> [Sampling; 2] {
        self.selection().diff().sampling(self.sample_type)
    }

    /// Returns the warnings of [`Diff::sampling_warnings`], plus a warning if the number of samples is unknown.
    #[doc(hidden)]
    pub fn sampling_warnings(&self) -> Vec<String> {
        let warnings = self.selection().diff().sampling_warnings(self.sample_type);
        warnings.into_iter().chain(self.uncounted_warning()).collect()
    }

    /// Returns the warning about an unknown number of samples; `None` if the number is known on both sides.
    pub(crate) fn uncounted_warning(&self) -> Option<String> {
        let sampling = self.sampling();
        let unknown = sampling.iter().find(|side| side.model == Model::Unknown)?;
        let start = format!("the number of samples behind {} is unknown ({})", self.summary().sample_type, unknown.by);
        let is_single = [true, false].iter().any(|&base| self.walks_of(base).count() == 1);
        Some(match is_single {
            true => format!(
                "{start}, so one run per side cannot tell a change from chance; record several runs per side, or \
                 profiles that state a period or count their samples"
            ),
            false => format!(
                "{start}, so only the differences between runs show what chance does; profiles that state a period or \
                 count their samples would show smaller changes"
            ),
        })
    }
}

/// Returns the period between two samples in nanoseconds, if the profile states a credible one.
fn period_nanos(profile: &Profile) -> Option<f64> {
    let (_, unit) = profile.period_type()?;
    let (unit, nanos) = (units::find(&unit)?, units::find("nanoseconds")?);
    let period = profile.period() as f64 * unit.factor() as f64 / nanos.factor() as f64;
    (unit.same_family(nanos) && period >= SHORTEST_PERIOD).then_some(period)
}

/// Returns true if the name belongs to a column that counts samples.
fn is_samples(name: &str) -> bool {
    name.ends_with("samples") || name.ends_with("sample")
}

/// Returns the average time between two samples of a wall clock, if the profile contains both the time and the count.
fn interval_nanos(profile: &Profile, samples: usize) -> Option<f64> {
    let types = profile.sample_types();
    let wall = types.iter().position(|(kind, unit)| kind == "wall" && unit == "nanoseconds")?;
    let (time, samples) = (profile.total(wall)? as f64, profile.total(samples)? as f64);
    (time > 0.0 && samples > 0.0).then(|| time / samples)
}

/// The number of events behind a complete count.
pub(crate) fn events_of_exact(count: f64) -> f64 {
    count * CERTAIN
}
