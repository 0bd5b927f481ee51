//! How many samples stand behind a value, and how that is known: the sampling model of a sample type in one profile.
//!
//! ```text
//! Profile + sample type -> Basis (events of each sample's value) -> Sampling (what `info`, `explain` and `check` report)
//! ```
//!
//! Every test of chance needs a number of events. Go's profiles state it by a column or a period; other producers state it
//! by the weights of their samples, by a common step of all values, or not at all. A profile that states nothing is
//! *unknown*: statistics then give no p-value, because a value of 50 ms may be 5 samples or 50,000.
//!
//! All decisions are made here, from the header and at most 16,384 samples of a profile, once for each input of a diff.

use std::hash::BuildHasher;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::diff::{Diff, Input, Measure};
use crate::explain::group_of;
use pprofdiff_profile::random::{HashSet, RandomState};
use pprofdiff_profile::units;
use pprofdiff_profile::{Profile, Sampled, samples};

/// The maximum number of samples of a profile that are examined for a common step and for proportional counts.
const MAX_EXAMINED: usize = 1 << 14;
/// The maximum number of columns that are tried as counts of another.
const MAX_COUNTING: usize = 3;
/// The minimum number of values above 0 from which a common step is inferred. Eight random numbers have a common divisor
/// above 1 once in 250 tries.
const MIN_VALUES: usize = 8;
/// Counts that are all multiples of a smaller number than this are counts of samples that happen to be round.
const MIN_STEP_OF_COUNTS: u64 = 100_000;
/// Where half of many stacks have more than this number, the values are not counts of samples: most stacks are rare.
const MAX_USUAL_COUNT: u64 = 100_000;
/// Where each stack has at least this number of bytes, allocations were sampled: half of the usual rate, 512 KiB.
const MIN_SAMPLED_SPACE: u64 = 256 << 10;
/// The shortest credible time between two samples, in nanoseconds: no kernel samples more than 100,000 times a second.
const SHORTEST_PERIOD: f64 = 10_000.0;
/// A column counts the samples of another one if samples with at least this part of the value are worth the average of a
/// sample, within this factor.
const PROPORTIONAL_PART: f64 = 0.8;
const PROPORTIONAL_FACTOR: f64 = 4.0;
/// Sides whose samples are worth different amounts, by more than this factor, were recorded differently.
const SAME_RATE: f64 = 1.25;
/// The number of events that a complete count of one is taken for. Nothing was sampled, so a single goroutine counts for much
/// more than a single sample; how much runs differ limits it.
const CERTAIN: f64 = 100.0;

/// Sample types of Go that count everything there is.
const COMPLETE: [&str; 3] = ["goroutine", "goroutineleak", "threadcreate"];
/// Names of columns that count samples, best first; others end in "samples".
const COUNTS: [&str; 2] = ["samples", "sample"];
/// The column that counts allocations in memory profiles of JAX and XLA, which record all of them.
const ALL_ALLOCATIONS: &str = "allocations";
/// The column that counts calls in profiles of instrumented programs, which record all of them.
const ALL_CALLS: &str = "calls";

/// What is known of the number of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Model {
    /// The profile says how many samples a value stands for.
    Counted,
    /// Nothing was sampled: the value is a complete count.
    Exact,
    /// The profile does not say.
    Unknown,
}

/// The sampling model of a sample type, in one profile or on one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Sampling {
    /// What is known.
    pub model: Model,
    /// How it is known, such as "counted by samples" or "one per 10ms, the period".
    pub by: String,
    /// The average value of a sample, in the unit of the sample type; 0 unless samples are counted.
    pub event: f64,
    /// The number of samples; `None` unless samples are counted.
    pub samples: Option<f64>,
}

/// How the events behind a value follow from the value and its sample. Values of `event` are in the unit of the profile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Basis {
    /// A column of the profile counts them.
    Column(usize),
    /// The value is their number.
    Own,
    /// Each is worth this much.
    Size(f64),
    /// Allocations, sampled once in this number of bytes on average.
    Heap(f64),
    /// Contentions, sampled once in a number of them, which their column of counts shows.
    Delay,
    /// Allocations, of which each was recorded.
    Objects,
    /// Nothing was sampled.
    Exact,
    /// The profile does not say.
    Unknown,
}

/// A basis, and how it is known.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    basis: Basis,
    by: String,
    /// Why the period that the profile states is not used.
    rejected: Option<String>,
}

/// The magnitudes of the values of one column that are not 0, as far as they were examined.
#[derive(Default)]
struct Values {
    above: usize,
    /// The greatest common divisor.
    step: u64,
    smallest: u64,
    median: u64,
}

impl Values {
    fn of(profile: &Profile, column: usize) -> Values {
        let magnitudes = profile.samples().take(MAX_EXAMINED).map(|sample| sample.value(column).unsigned_abs());
        let mut values: Vec<u64> = magnitudes.filter(|value| *value > 0).collect();
        values.sort_unstable();
        Values {
            above: values.len(),
            step: values.iter().fold(0, |step, &value| gcd(step, value)),
            smallest: values.first().copied().unwrap_or(0),
            median: values.get(values.len() / 2).copied().unwrap_or(0),
        }
    }

    /// Returns the common step if it explains the values as multiples of one sample.
    fn step(&self, least: u64) -> Option<u64> {
        (self.above >= MIN_VALUES && self.step >= least.max(2)).then_some(self.step)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns true for a step in nanoseconds to which times are rounded: 1, 2 or 5 of a decimal place below a millisecond, a
/// millisecond, or a second.
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
    fn known(&self) -> Known {
        let known = |basis, by: String| Known { basis, by, rejected: None };
        if COMPLETE.contains(&self.kind.as_str()) {
            return known(Basis::Exact, format!("{} counts everything there is", self.kind));
        }
        if self.kind == ALL_CALLS && self.unit == "count" {
            return known(Basis::Exact, "calls are counted, not sampled".to_owned());
        }
        if let Some(event) = self.profile.sampled(self.column).and_then(|sampled| sampled.event()) {
            return known(Basis::Size(event), "each listed with its weight".to_owned());
        }
        if let Some((column, name)) = self.counting_column() {
            return known(Basis::Column(column), format!("counted by {name}"));
        }
        if self.unit == "count" {
            return self.known_count();
        }
        let (period, rejected) = match self.period() {
            Ok(period) => (period, None),
            Err(why) => (None, Some(why)),
        };
        let values = Values::of(self.profile, self.column);
        // Memory is a multiple of what an allocator rounds to, which says nothing of samples.
        let step = self.nanos().and_then(|nanos| {
            let shortest = (SHORTEST_PERIOD / nanos).ceil() as u64;
            values.step(shortest).filter(|step| !is_resolution(*step as f64 * nanos))
        });
        let shown = |value: f64| units::show_real(value, &self.unit);
        match (period, step) {
            // A period that is shorter than what all values are multiples of is not that of the samples.
            (Some(period), Some(step)) if (step as f64) > 1.5 * period => known(
                Basis::Size(step as f64),
                format!("one per {}, which all values are multiples of", shown(step as f64)),
            ),
            (Some(period), _) => known(Basis::Size(period), format!("one per {}, the period", shown(period))),
            (None, Some(step)) => {
                let by = format!("one per {}, which all values are multiples of", shown(step as f64));
                Known { basis: Basis::Size(step as f64), by, rejected }
            }
            (None, None) => {
                if let Some(event) = self.repeated() {
                    return known(Basis::Size(event), "each written by itself".to_owned());
                }
                let by = match &rejected {
                    Some(why) => why.clone(),
                    None => format!("no period, no column that counts samples, no common step of {}", self.kind),
                };
                Known { basis: Basis::Unknown, by, rejected }
            }
        }
    }

    /// Decides the basis of a column of counts that no other column counts.
    fn known_count(&self) -> Known {
        let known = |basis, by: String| Known { basis, by, rejected: None };
        let rejected = match self.period() {
            Ok(Some(period)) => return known(Basis::Size(period), format!("one per {period}, the period")),
            Ok(None) => None,
            Err(why) => Some(why),
        };
        // Objects are sampled by their bytes, which another sample type would have.
        if self.kind.ends_with("objects") {
            let by = format!("no bytes beside {}, by which allocations are sampled", self.kind);
            return Known { basis: Basis::Unknown, by, rejected };
        }
        let values = Values::of(self.profile, self.column);
        if let Some(step) = values.step(MIN_STEP_OF_COUNTS) {
            return known(Basis::Size(step as f64), format!("one per {step}, which all values are multiples of"));
        }
        let most = if values.above >= MIN_VALUES { MAX_USUAL_COUNT } else { 10 * MAX_USUAL_COUNT };
        if values.median > most {
            let by = format!("half of the stacks have {} and more, too much for numbers of samples", values.median);
            return Known { basis: Basis::Unknown, by, rejected };
        }
        Known { basis: Basis::Own, by: format!("which {} counts", self.kind), rejected }
    }

    /// Returns the column that counts the samples of this one, with its name: one of the same kind first, as `cpu-samples` is for
    /// `cpu-time`. Its counts must be about proportional to the values.
    fn counting_column(&self) -> Option<(usize, &str)> {
        let stem = |name: &str| name.split(['-', '_', '.']).next().unwrap_or_default().to_owned();
        let own_stem = stem(&self.kind);
        let rank = |name: &str| {
            let ends = is_samples(name);
            match COUNTS.iter().position(|count| *count == name) {
                Some(place) => Some(1 + place),
                None if ends && stem(name) == own_stem => Some(0),
                None if ends => Some(1 + COUNTS.len()),
                None => None,
            }
        };
        let is_count = |i: usize| i != self.column && self.types[i].1 == "count";
        let mut columns: Vec<(usize, usize)> =
            (0..self.types.len()).filter(|&i| is_count(i)).filter_map(|i| Some((rank(&self.types[i].0)?, i))).collect();
        columns.sort_unstable();
        columns.truncate(MAX_COUNTING);
        // What is counted already needs no other column.
        let is_samples = rank(&self.kind).is_some() && self.unit == "count";
        let found = columns.iter().find(|(_, i)| !is_samples && self.is_proportional(*i))?.1;
        Some((found, &self.types[found].0))
    }

    /// Returns the value of a sample if most stacks occur several times. The producer then did not add its samples up, so each
    /// record is one sample.
    fn repeated(&self) -> Option<f64> {
        let state = RandomState::default();
        let (mut rows, mut sampled) = (0, Sampled::default());
        let mut known: HashSet<(u64, u64)> = HashSet::default();
        for sample in self.profile.samples().take(MAX_EXAMINED) {
            let mut stack: Vec<u32> = Vec::new();
            sample.for_each_location(|location| stack.push(location));
            known.insert((state.hash_one(&stack), state.hash_one(sample.labels().collect::<Vec<_>>())));
            rows += 1;
            sampled.add(sample.value(self.column));
        }
        (rows >= MIN_VALUES && 2 * known.len() <= rows).then(|| sampled.event()).flatten()
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

    /// Returns the period in the unit of the values, if the profile states one for them.
    ///
    /// # Errors
    /// Why a stated period cannot be that of the samples.
    fn period(&self) -> Result<Option<f64>, String> {
        let period = self.profile.period();
        let Some((kind, unit)) = self.profile.period_type() else {
            // A period of nothing in particular is one of samples if all values are multiples of it.
            let step = || Values::of(self.profile, self.column).step;
            let is_step = period > 1 && self.unit != "count" && step().is_multiple_of(period.unsigned_abs());
            return Ok(is_step.then_some(period as f64));
        };
        let is_named = kind == self.kind;
        let own = if unit == self.unit && (is_named || unit != "count") {
            1.0
        } else {
            match (units::find(&unit), units::find(&self.unit)) {
                (Some(of_period), Some(own)) if unit != "count" && of_period.same_family(own) => {
                    of_period.factor() as f64 / own.factor() as f64
                }
                _ => return Ok(None),
            }
        };
        let in_unit = period as f64 * own;
        let stated = || format!("the period that the profile states, {period} {unit},");
        let total = self.profile.total(self.column).unwrap_or(0) as f64;
        match (period, self.nanos()) {
            (0, _) => Ok(None),
            (..0, _) => Err(format!("{} is negative", stated())),
            (_, Some(nanos)) if in_unit * nanos < SHORTEST_PERIOD => {
                Err(format!("{} is too short to be true", stated()))
            }
            _ if in_unit > total && total > 0.0 => Err(format!("{} is more than all values together", stated())),
            // Every event was recorded, or the producer wrote 1 because it had to write something.
            (1, None) => Ok(None),
            _ => Ok(Some(in_unit)),
        }
    }
}

/// Decides the basis of a sample type that heap profiles have: how many bytes are sampled once. `space` and
/// `objects` are the sample types of the bytes and of their number.
fn known_of_heap(typed: &Typed<'_>, space: &str, objects: &str) -> Known {
    let known = |basis, by: String| Known { basis, by, rejected: None };
    let is_of_bytes = match typed.profile.period_type() {
        Some((_, unit)) => {
            units::find(&unit).zip(units::find("bytes")).is_some_and(|(unit, bytes)| unit.same_family(bytes))
        }
        None => true,
    };
    let rate = if is_of_bytes { typed.profile.period() } else { 0 };
    match rate {
        ..=-1 => {
            let why = format!("the period that the profile states, {rate}, is negative");
            return Known { basis: Basis::Unknown, by: why.clone(), rejected: Some(why) };
        }
        2.. => {
            let shown = units::show(rate, "bytes");
            return known(Basis::Heap(rate as f64), format!("one allocation in {shown} is sampled"));
        }
        1 => return known(Basis::Objects, "every allocation was recorded (period 1)".to_owned()),
        _ => {}
    }
    if let Some(event) = typed.profile.sampled(typed.column).and_then(|sampled| sampled.event()) {
        return known(Basis::Size(event), "each listed with its size".to_owned());
    }
    if typed.has(ALL_ALLOCATIONS) {
        return known(Basis::Exact, "every allocation was recorded (period 0)".to_owned());
    }
    let column = |name: &str| typed.types.iter().position(|(kind, _)| kind == name);
    let space = column(space).unwrap_or(typed.column);
    let values = Values::of(typed.profile, space);
    // Whole sizes of objects are no estimates either.
    let objects = column(objects).unwrap_or(typed.column);
    let is_estimate = |sample: samples::Sample<'_>| {
        let [bytes, count] = [space, objects].map(|column| sample.value(column));
        count != 0 && bytes % count != 0
    };
    let are_estimates = || typed.profile.samples().take(MAX_EXAMINED).any(is_estimate);
    if values.smallest >= MIN_SAMPLED_SPACE && are_estimates() {
        let smallest = units::show_real(values.smallest as f64, "bytes");
        let why =
            format!("no sampling rate (period), and no stack has less than {smallest}, as if allocations were sampled");
        return known(Basis::Unknown, why);
    }
    known(
        Basis::Objects,
        "no rate is stated, and small allocations are there, so each is taken for recorded".to_owned(),
    )
}

/// How a sample type belongs to others, as far as sampling depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// Time and anything else that is sampled at intervals.
    Sampled,
    /// Memory, with the sample types that have its bytes and its objects.
    Heap(&'static str, &'static str),
    /// Waiting, which a column of contentions counts or nothing does.
    Delay { is_counted: bool },
}

fn known(typed: &Typed<'_>, group: Group) -> Known {
    let known = |basis, by: &str| Known { basis, by: by.to_owned(), rejected: None };
    match group {
        Group::Heap(space, objects) => known_of_heap(typed, space, objects),
        Group::Delay { is_counted: true } => known(Basis::Delay, "by the number of contentions"),
        Group::Delay { is_counted: false } => match typed.profile.sampled(typed.column).and_then(|s| s.event()) {
            Some(event) => known(Basis::Size(event), "each wait is listed"),
            None => known(Basis::Unknown, "nothing counts the waits"),
        },
        Group::Sampled => typed.known(),
    }
}

/// What is known of each input of a diff, by sample type: decided once, when it is needed first.
pub(crate) type KnownOfTypes = Arc<[OnceLock<Vec<Known>>]>;

/// Returns empty caches for this number of sample types.
pub(crate) fn nothing_known(sample_types: usize) -> KnownOfTypes {
    (0..sample_types).map(|_| OnceLock::new()).collect()
}

impl Sampling {
    /// Returns the model of a profile's sample type, by its number.
    pub fn of_profile(profile: &Profile, sample_type: usize) -> Sampling {
        let types = profile.sample_types();
        let sum = |column: usize| profile.total(column).unwrap_or(0) as f64;
        let known = known(&Typed::new(profile, sample_type), group_of(&types, sample_type));
        Sampling::new(profile, (sample_type, 1), &known, sum)
    }

    /// Returns the model of a column, whose values are multiplied for the common unit. `sum` gives the total of a column.
    fn new(profile: &Profile, (column, times): (usize, i64), known: &Known, sum: impl Fn(usize) -> f64) -> Sampling {
        let Known { basis, by, .. } = known.clone();
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

    /// One line for people: what is known, and how.
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
    /// Returns what is known of each input's values of a sample type.
    pub(crate) fn known(&self, sample_type: usize) -> &[Known] {
        let (Some(place), Some(t)) = (self.known.get(sample_type), self.types.get(sample_type)) else { return &[] };
        let group = self.group(sample_type);
        let of_input = |input: &Input| known(&Typed::new(&input.profile, t.columns[input.index].0), group);
        place.get_or_init(|| self.inputs.iter().map(of_input).collect())
    }

    /// Returns how the events behind a sample type's values follow from them, in an input by its place among all. Values of
    /// events are in the common unit.
    pub(crate) fn basis(&self, sample_type: usize, input: usize) -> Basis {
        let times = || self.inputs.get(input).zip(self.types.get(sample_type)).map_or(1, |(i, t)| t.columns[i.index].1);
        match self.known(sample_type).get(input).map(|known| known.basis) {
            Some(Basis::Size(event)) => Basis::Size(event * times() as f64),
            other => other.unwrap_or(Basis::Unknown),
        }
    }

    /// Returns the sampling model of a sample type on the base and on the new side, by its number in [`Diff::sample_types`]. A
    /// side of several runs is unknown if one of them is; its samples are those of all of them.
    pub fn sampling(&self, sample_type: usize) -> [Sampling; 2] {
        [true, false].map(|base| {
            let columns = self.types.get(sample_type).map(|t| &t.columns);
            let inputs = self.inputs.iter().zip(self.known(sample_type)).filter(|(input, _)| input.base == base);
            let of_input = |(input, known): (&Input, &Known)| {
                let sum = |column: usize| input.total(column).magnitude as f64;
                Some(Sampling::new(&input.profile, columns?[input.index], known, sum))
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

    /// Returns the warnings about how a sample type was sampled: different rates on the sides, and periods that cannot be true.
    pub(crate) fn sampling_warnings(&self, sample_type: usize) -> Vec<String> {
        let Some(t) = self.types.get(sample_type) else { return Vec::new() };
        let mut warnings: Vec<String> = Vec::new();
        let inputs = self.inputs.iter().zip(self.known(sample_type));
        for (input, known) in inputs.filter(|(input, _)| input.part != Some(true)) {
            if let Some(why) = &known.rejected {
                warnings
                    .push(format!("{}: {why}, so it does not say how many samples there are", input.profile.name()));
            }
        }
        if let Some([base, new]) = self.rates(sample_type).filter(|_| self.states_rates(sample_type)) {
            let often = base.max(new) / base.min(new);
            let [base, new] = [base, new].map(|rate| units::show_real(rate, self.unit_of_rate(sample_type)));
            let is_count = t.unit == "count" && self.unit_of_rate(sample_type) != "count";
            let so = if is_count { ", so numbers of samples do not compare" } else { "" };
            warnings.push(format!(
                "the sides were sampled at different rates: a sample stands for {base} on the base and {new} on the new side \
                 ({often:.1} times){so}"
            ));
        }
        warnings
    }

    /// Returns true if different rates follow from what the profiles state, and not only from how much a sample was worth on
    /// average: a sample of a program that waits more has less CPU time.
    fn states_rates(&self, sample_type: usize) -> bool {
        let Some(t) = self.types.get(sample_type) else { return false };
        let is_average = |(input, known): (&Input, &Known)| {
            let is_column = matches!(known.basis, Basis::Column(_));
            is_column || input.profile.sampled(t.columns[input.index].0).is_some()
        };
        let mut periods = self.inputs.iter().filter_map(|input| period_nanos(&input.profile));
        let first = periods.next().unwrap_or(0.0);
        periods.any(|period| period.max(first) > SAME_RATE * period.min(first))
            || !self.inputs.iter().zip(self.known(sample_type)).any(is_average)
    }

    /// Returns what a sample stands for on the base and on the new side, if both are known and differ. A sample that is counted
    /// by itself stands for the profile's period.
    pub(crate) fn rates(&self, sample_type: usize) -> Option<[f64; 2]> {
        if !self.is_two_sided() || self.inputs.iter().any(|input| input.part.is_some()) {
            return None;
        }
        let t = self.types.get(sample_type)?;
        let side = |base: bool| {
            let rate = |(input, known): (&Input, &Known)| {
                let (column, times) = t.columns[input.index];
                match known.basis {
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

    /// Returns the rates of a sample type whose values are numbers of samples, if they differ.
    #[cfg(feature = "check")]
    pub(crate) fn rates_of_counts(&self, sample_type: usize) -> Option<[f64; 2]> {
        self.rates(sample_type).filter(|_| self.known(sample_type).iter().all(|known| known.basis == Basis::Own))
    }

    /// The unit of [`Diff::rates`].
    fn unit_of_rate(&self, sample_type: usize) -> &str {
        let is_own = self.known(sample_type).first().is_some_and(|known| known.basis == Basis::Own);
        match self.group(sample_type) {
            Group::Heap(..) => "bytes",
            _ if is_own => "nanoseconds",
            _ => self.types.get(sample_type).map_or("", |t| &t.unit),
        }
    }
}

impl Measure {
    /// Returns the sampling model of both sides together: the less certain one.
    pub(crate) fn sampling_model(&self) -> Model {
        let [base, new] = self.sampling();
        match (base.model, new.model) {
            (Model::Unknown, _) | (_, Model::Unknown) => Model::Unknown,
            (Model::Exact, Model::Exact) => Model::Exact,
            _ => Model::Counted,
        }
    }

    /// Returns how the events behind the values of an input follow from them ([`Diff::basis`]).
    pub(crate) fn basis(&self, input: usize) -> Basis {
        self.selection().diff().basis(self.sample_type, input)
    }

    /// Returns the sampling model of the base and of the new side ([`Diff::sampling`]).
    pub fn sampling(&self) -> [Sampling; 2] {
        self.selection().diff().sampling(self.sample_type)
    }

    /// Returns the warnings of [`Diff::sampling_warnings`], and one if the number of samples is not known.
    pub(crate) fn sampling_warnings(&self) -> Vec<String> {
        let warnings = self.selection().diff().sampling_warnings(self.sample_type);
        warnings.into_iter().chain(self.uncounted_warning()).collect()
    }

    /// Returns the warning about an unknown number of samples.
    pub(crate) fn uncounted_warning(&self) -> Option<String> {
        let sampling = self.sampling();
        let unknown = sampling.iter().find(|side| side.model == Model::Unknown)?;
        Some(format!(
            "the number of samples behind {} is not known ({}), so one run a side cannot tell a change from chance; a sample \
             type that counts samples, the profile's period, or several runs would",
            self.summary().sample_type,
            unknown.by
        ))
    }
}

/// Returns the period between two samples in nanoseconds, if the profile states a credible one.
fn period_nanos(profile: &Profile) -> Option<f64> {
    let (_, unit) = profile.period_type()?;
    let (unit, nanos) = (units::find(&unit)?, units::find("nanoseconds")?);
    let period = profile.period() as f64 * unit.factor() as f64 / nanos.factor() as f64;
    (unit.same_family(nanos) && period >= SHORTEST_PERIOD).then_some(period)
}

/// Returns true for names of columns that count samples.
fn is_samples(name: &str) -> bool {
    name.ends_with("samples") || name.ends_with("sample")
}

/// Returns the average time between two samples of a wall clock, if the profile has the time beside their number.
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
