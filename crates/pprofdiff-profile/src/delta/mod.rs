//! Computes the change between two snapshots of a cumulative profile.
//!
//! ```text
//! snapshot -> digest of each sample -> row (from the last snapshot, or new) -> values minus previous values -> message
//! ```
//!
//! Go's heap, mutex and block profiles count from the start of the process. The delta of two snapshots is a profile of
//! the time between them: cumulative sample types are subtracted, and all other types (gauges, such as memory in use)
//! have the newer snapshot's values. Samples that become zero are dropped, together with all data that only they refer
//! to. The order and all other fields are the newer snapshot's, except that the duration is the time between the
//! snapshots and a comment is added. [`DeltaComputer`] keeps only a digest and the counters of each sample of the older
//! snapshot, a fraction of the snapshot's memory.
//!
//! This module depends on profiles only, not on diffs or reports.

mod identity;
mod memory;

use std::borrow::Cow;
use std::fmt;

use crate::error::{Error, ErrorKind, Result};
use crate::profile::{About, LabelCache, MessageWriter, Profile, WriteOptions, pack};
use crate::random::HashMap;
use identity::SampleIdentity;
use memory::SnapshotMemory;

/// The names of sample types that count from the start of the process: the names in Go's runtime, and Pyroscope's names
/// for the same types.
pub const CUMULATIVE: &[&str] = &[
    "alloc_objects",
    "alloc_space",
    "contentions",
    "delay",
    "mutex_count",
    "mutex_duration",
    "block_count",
    "block_duration",
];

/// The action if a counter went down, or if more than half of a counter's sum vanished with its samples. Either means
/// that the process (or its profiler) was restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnReset {
    /// Fails with an error of kind [`ErrorKind::Reset`]. A stream keeps the last snapshot.
    #[default]
    Error,
    /// Returns the values of the new snapshot unchanged: the activity of the new process since its start.
    Pass,
    /// Treats counters that went down as unchanged.
    Clamp,
}

/// Options for computing deltas.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DeltaOptions {
    /// The names of the cumulative sample types; all other types are gauges. Each given name must occur in the
    /// snapshots. Defaults to [`CUMULATIVE`]; at least one of these types must occur.
    pub cumulative: Option<Vec<String>>,
    /// The action after a restart.
    pub on_reset: OnReset,
}

impl DeltaOptions {
    /// Treats exactly these sample types as cumulative.
    #[must_use]
    pub fn with_cumulative(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.cumulative = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the action after a restart.
    #[must_use]
    pub fn with_on_reset(mut self, on_reset: OnReset) -> Self {
        self.on_reset = on_reset;
        self
    }
}

/// The treatment of one sample type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Treatment {
    /// The name of the sample type.
    pub sample_type: String,
    /// The unit of the sample type.
    pub unit: String,
    /// True if the type was subtracted, false if it has the newer snapshot's values.
    pub cumulative: bool,
}

/// The evidence for a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reset {
    /// Counters went down in samples that both snapshots have, or a new sample has a negative counter.
    Decreased {
        /// The number of these samples.
        samples: usize,
        /// The sample type of the first decrease.
        sample_type: String,
        /// The counter's value in the older snapshot.
        before: i64,
        /// The counter's value in the newer snapshot.
        after: i64,
    },
    /// Samples vanished, and with them more than half of a sample type's sum.
    Vanished {
        /// The number of vanished samples with nonzero counters.
        samples: usize,
        /// The number of all samples with nonzero counters in the older snapshot.
        of: usize,
        /// The first sample type that lost more than half of its sum.
        sample_type: String,
        /// The sum of the absolute values of the vanished samples' counters.
        gone: i64,
        /// The sum of the absolute values of all counters in the older snapshot.
        counted: i64,
    },
}

impl fmt::Display for Reset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reset::Decreased { samples, sample_type, before, after } => {
                let s = if *samples == 1 { "" } else { "s" };
                write!(f, "counters went down in {samples} sample{s} ({sample_type} from {before} to {after})")
            }
            Reset::Vanished { samples, of: all_samples, sample_type, gone, counted } => write!(
                f,
                "{samples} of the {all_samples} samples that had counted something are gone, with {gone} of {counted} \
                 of {sample_type}"
            ),
        }
    }
}

/// The delta of two snapshots, as an encoded message in the computer's memory.
#[derive(Debug)]
#[non_exhaustive]
pub struct Delta<'c> {
    message: Cow<'c, [u8]>,
    /// The treatment of each sample type, in the snapshot's order. The written profile has it in its last comment.
    pub treatments: Vec<Treatment>,
    /// True if there was no previous snapshot, so the delta is the whole snapshot.
    pub first: bool,
    /// The evidence for a restart, if there was one and [`DeltaOptions::on_reset`] allows it. It is also in the last
    /// comment.
    pub reset: Option<Reset>,
    /// The number of samples in the delta.
    pub samples: usize,
    /// The number of samples of the older snapshot that had nonzero counters and are missing in the newer snapshot.
    /// Their counts are not in the delta. The number is also in the last comment.
    pub vanished: usize,
}

/// Formats the number of vanished samples for comments and warnings.
fn describe_vanished(samples: usize) -> String {
    let samples_are =
        if samples == 1 { "sample that had counted something is" } else { "samples that had counted something are" };
    format!("{samples} {samples_are} gone")
}

impl Delta<'_> {
    /// Encodes the delta as a file. The same snapshots and options always give the same bytes.
    ///
    /// # Errors
    /// Returns an error if the compression level does not exist.
    pub fn to_bytes(&self, options: &WriteOptions) -> Result<Vec<u8>> {
        pack(&self.message, options)
    }

    /// Returns the delta as a loaded profile, validated like any other profile. `name` is its name in errors and
    /// reports.
    ///
    /// # Errors
    /// No error is known, because the written message is valid.
    pub fn to_profile(&self, name: &str) -> Result<Profile> {
        Profile::decode(name, self.message.to_vec())
    }

    /// Returns a warning for the user if counters went down or samples vanished.
    pub fn warning(&self) -> Option<String> {
        match (&self.reset, self.vanished) {
            (Some(reset), _) => Some(format!("{reset}: the process was restarted")),
            (None, 0) => None,
            (None, n) => Some(format!("{}; their counts are not in the delta", describe_vanished(n))),
        }
    }

    /// Returns the size of the message in bytes.
    pub fn size(&self) -> usize {
        self.message.len()
    }
}

/// Computes the change between two snapshots; `prev` is the older.
///
/// # Errors
/// Returns the errors of [`DeltaComputer::update`].
pub fn delta(prev: &Profile, cur: &Profile, options: &DeltaOptions) -> Result<Delta<'static>> {
    let mut computer = DeltaComputer::new(options.clone());
    computer.start(prev)?;
    let Delta { message: _, treatments, first, reset, samples, vanished } = computer.update(cur)?;
    let message = Cow::Owned(computer.writer.into_message());
    Ok(Delta { message, treatments, first, reset, samples, vanished })
}

/// Computes the deltas of a stream of snapshots.
///
/// Between two calls, it needs only a digest of 16 bytes and the cumulative values of each sample of the last snapshot;
/// vanished samples are forgotten. All buffers are reused, so nothing grows after the largest snapshot.
pub struct DeltaComputer {
    options: DeltaOptions,
    before: Option<PreviousSnapshot>,
    identity: SampleIdentity,
    memory: SnapshotMemory,
    /// The index of the first sample of each row. A row stands for all samples of the current snapshot with the same
    /// digest.
    first_sample: Vec<u32>,
    /// The values of each row, one per sample type.
    values: Vec<i64>,
    writer: MessageWriter,
}

impl fmt::Debug for DeltaComputer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaComputer").finish_non_exhaustive()
    }
}

/// The data of the last snapshot, except for its samples.
struct PreviousSnapshot {
    name: String,
    time_nanos: i64,
    counters: Vec<Treatment>,
}

impl DeltaComputer {
    /// Creates a computer without a snapshot.
    pub fn new(options: DeltaOptions) -> DeltaComputer {
        DeltaComputer {
            options,
            before: None,
            identity: SampleIdentity::new(),
            memory: SnapshotMemory::default(),
            first_sample: Vec::new(),
            values: Vec::new(),
            writer: MessageWriter::default(),
        }
    }

    /// Stores a snapshot as the previous one, and writes nothing. Forgets all earlier snapshots.
    ///
    /// # Errors
    /// Returns an error if the options name a sample type that the snapshot lacks, if they name none and the snapshot
    /// has no type in [`CUMULATIVE`], or if the snapshot is a written diff.
    pub fn start(&mut self, snapshot: &Profile) -> Result<()> {
        let treatments = first_treatments(snapshot, &self.options)?;
        let columns = cumulative_columns(&treatments);
        self.before = None;
        self.read(snapshot);
        self.settle(&columns, treatments.len());
        self.commit(snapshot, &columns, &treatments);
        Ok(())
    }

    /// Computes the change since the last snapshot. The first snapshot is returned unchanged, except that duplicate
    /// samples are added up and zeros are dropped. The duration is the time between the two snapshots, or 0 if one of
    /// them has no time.
    ///
    /// # Errors
    /// Returns the errors of [`DeltaComputer::start`]. Also returns an error if the snapshot is older than the last
    /// one, if it has other cumulative sample types, or if a sum of differences exceeds an int64. With
    /// [`OnReset::Error`], a restart is an error. After an error, the last snapshot stays the same.
    pub fn update(&mut self, snapshot: &Profile) -> Result<Delta<'_>> {
        self.update_with(snapshot, self.options.on_reset)
    }

    /// Like [`DeltaComputer::update`], with another action after a restart.
    ///
    /// # Errors
    /// Returns the errors of [`DeltaComputer::update`].
    pub fn update_with(&mut self, snapshot: &Profile, on_reset: OnReset) -> Result<Delta<'_>> {
        let in_input = |e: Error| e.in_input(snapshot.name());
        let (treatments, columns, duration_nanos) = match &self.before {
            None => {
                let treatments = first_treatments(snapshot, &self.options)?;
                let columns = cumulative_columns(&treatments);
                (treatments, columns, snapshot.duration_nanos())
            }
            Some(before) => {
                let treatments = treatments(snapshot, &self.options)?;
                let columns = counter_columns(before, &treatments).map_err(in_input)?;
                (treatments, columns, time_between(before, snapshot).map_err(in_input)?)
            }
        };
        self.read(snapshot);
        let decreased = self.settle(&columns, treatments.len());
        let (mut reset, mut vanished) = (None, 0);
        if let Some(before) = &self.before {
            let lost = self.memory.vanished(columns.len());
            vanished = lost.samples;
            let reset_column = lost.counters.iter().position(|c| c.gone > c.total / 2);
            reset = match decreased {
                Some(Decrease { samples, column, before, after }) => Some(Reset::Decreased {
                    samples,
                    sample_type: treatments[column].sample_type.clone(),
                    before,
                    after,
                }),
                None => reset_column.map(|i| Reset::Vanished {
                    samples: vanished,
                    of: lost.total,
                    sample_type: treatments[columns[i]].sample_type.clone(),
                    gone: lost.counters[i].gone as i64,
                    counted: lost.counters[i].total as i64,
                }),
            };
            if let (Some(reset), OnReset::Error) = (&reset, on_reset) {
                // Interfaces add the name of the option that sets the policy.
                let detail = format!("{reset} since {}: the process was restarted", before.name);
                return Err(in_input(Error::new(ErrorKind::Reset, detail)));
            }
            if reset.is_none() || on_reset == OnReset::Clamp {
                self.subtract(&columns, &treatments).map_err(in_input)?;
            }
        }
        let first = self.before.is_none();
        let comment = comment(&treatments, first, reset.as_ref(), on_reset, vanished);
        let samples = self.write(
            snapshot,
            treatments.len(),
            &About { header: snapshot.header(), duration_nanos, comment: Some(&comment) },
        );
        self.commit(snapshot, &columns, &treatments);
        Ok(Delta { message: Cow::Borrowed(self.writer.ended()), treatments, first, reset, samples, vanished })
    }

    /// Finds the row of each sample, and adds up the values of each row.
    fn read(&mut self, p: &Profile) {
        self.identity.read(p);
        self.memory.begin();
        self.first_sample.clear();
        self.values.clear();
        let n = p.value_types().len();
        let mut label_cache = LabelCache::default();
        for (index, sample) in p.samples().enumerate() {
            let row = self.memory.row(self.identity.sample(p, &sample, &mut label_cache));
            if row == self.first_sample.len() {
                self.first_sample.push(index as u32);
                sample.for_each_value(|v| self.values.push(v));
            } else {
                let mut sums = self.values[row * n..][..n].iter_mut();
                // Loading has checked that no sum over the samples overflows.
                sample.for_each_value(|v| sums.next().into_iter().for_each(|sum| *sum = sum.wrapping_add(v)));
            }
        }
    }

    /// Stores all counters, and finds counters that are lower than before. A new sample started at 0, so a negative
    /// counter of it also counts as lower.
    fn settle(&mut self, columns: &[usize], n: usize) -> Option<Decrease> {
        let mut decreased: Option<Decrease> = None;
        for row in 0..self.first_sample.len() {
            let values = &self.values[row * n..][..n];
            let before = self.memory.before(row, columns.len());
            let previous = |i: usize| before.map_or(0, |b| b[i]);
            if let Some(i) = (0..columns.len()).find(|&i| values[columns[i]] < previous(i)) {
                let first = Decrease { samples: 0, column: columns[i], before: previous(i), after: values[columns[i]] };
                decreased.get_or_insert(first).samples += 1;
            }
            self.memory.remember(columns.iter().map(|&c| values[c]));
        }
        decreased
    }

    /// Subtracts the previous counters. Counters that went down become 0.
    fn subtract(&mut self, columns: &[usize], treatments: &[Treatment]) -> Result<()> {
        let n = treatments.len();
        let mut totals = vec![0i64; columns.len()];
        for row in 0..self.first_sample.len() {
            let before = self.memory.before(row, columns.len());
            for (i, &column) in columns.iter().enumerate() {
                let value = &mut self.values[row * n + column];
                let difference = value.checked_sub(before.map_or(0, |b| b[i])).map(|d| d.max(0));
                let total = difference.and_then(|d| totals[i].checked_add(d));
                let (Some(difference), Some(total)) = (difference, total) else {
                    let sample_type = &treatments[column].sample_type;
                    let detail = format!("the deltas of sample type {sample_type} add up to more than an int64 holds");
                    return Err(Error::new(ErrorKind::Incompatible, detail));
                };
                (*value, totals[i]) = (difference, total);
            }
        }
        Ok(())
    }

    /// Writes the rows that are not zero, and returns their number.
    fn write(&mut self, p: &Profile, n: usize, about: &About<'_>) -> usize {
        self.writer.begin(p, p.value_types().iter().map(|t| (t.kind, t.unit)));
        let (mut row, mut written, mut stack) = (0, 0, Vec::new());
        for (index, sample) in p.samples().enumerate() {
            if self.first_sample.get(row) != Some(&(index as u32)) {
                continue;
            }
            let values = &self.values[row * n..][..n];
            row += 1;
            if values.iter().any(|&v| v != 0) {
                self.writer.stack(sample.stack(&mut stack));
                self.writer.sample(values, sample.all_labels());
                written += 1;
            }
        }
        self.writer.finish(p, about);
        written
    }

    /// Makes the current snapshot the previous one.
    fn commit(&mut self, p: &Profile, columns: &[usize], treatments: &[Treatment]) {
        self.memory.commit();
        let counters = columns.iter().map(|&c| treatments[c].clone()).collect();
        self.before = Some(PreviousSnapshot { name: p.name().to_owned(), time_nanos: p.time_nanos(), counters });
    }
}

/// Counters that went down: the number of samples with such a counter, and the first decrease.
struct Decrease {
    samples: usize,
    column: usize,
    before: i64,
    after: i64,
}

/// Returns the [`treatments`] of the first snapshot. Fails early if none of its types is cumulative and the options
/// name none, instead of waiting for the second snapshot.
fn first_treatments(snapshot: &Profile, options: &DeltaOptions) -> Result<Vec<Treatment>> {
    let treatments = treatments(snapshot, options)?;
    if options.cumulative.is_some() || treatments.iter().any(|t| t.cumulative) {
        return Ok(treatments);
    }
    let types: Vec<&str> = treatments.iter().map(|t| t.sample_type.as_str()).collect();
    let types = if types.is_empty() { "none".to_owned() } else { types.join(", ") };
    let detail = format!(
        "none of its sample types ({types}) is known to count from the start of the process, so there is nothing to \
         subtract; name the cumulative types explicitly"
    );
    Err(Error::new(ErrorKind::NotCumulative, detail).in_input(snapshot.name()))
}

/// Returns the treatment of each sample type of a snapshot.
fn treatments(snapshot: &Profile, options: &DeltaOptions) -> Result<Vec<Treatment>> {
    snapshot.one_sided()?;
    let types = snapshot.sample_types();
    if let Some(names) = &options.cumulative
        && let Some(unknown) = names.iter().find(|name| !types.iter().any(|(kind, _)| kind == *name))
    {
        let available: Vec<&str> = types.iter().map(|(kind, _)| kind.as_str()).collect();
        let detail =
            format!("there is no sample type {unknown:?} to treat as cumulative; there are {}", available.join(", "));
        return Err(Error::query(detail).in_input(snapshot.name()));
    }
    let cumulative = |kind: &str| match &options.cumulative {
        Some(names) => names.iter().any(|name| name == kind),
        None => CUMULATIVE.contains(&kind),
    };
    Ok(types
        .into_iter()
        .map(|(sample_type, unit)| Treatment { cumulative: cumulative(&sample_type), sample_type, unit })
        .collect())
}

fn cumulative_columns(treatments: &[Treatment]) -> Vec<usize> {
    (0..treatments.len()).filter(|&c| treatments[c].cumulative).collect()
}

/// Returns the columns of the last snapshot's counters in this snapshot, whose types may have another order.
fn counter_columns(before: &PreviousSnapshot, treatments: &[Treatment]) -> Result<Vec<usize>> {
    // The columns of each counter, in reverse order. A counter has several columns if its name occurs more than once
    // with the same unit.
    let mut unmatched: HashMap<&Treatment, Vec<usize>> = HashMap::default();
    let current_columns = cumulative_columns(treatments);
    current_columns.iter().rev().for_each(|&c| unmatched.entry(&treatments[c]).or_default().push(c));
    let columns =
        before.counters.iter().map(|counter| unmatched.get_mut(counter)?.pop()).collect::<Option<Vec<usize>>>();
    columns.filter(|columns| columns.len() == current_columns.len()).ok_or_else(|| {
        let list = |counters: &mut dyn Iterator<Item = &Treatment>| {
            let all: Vec<String> = counters.map(|t| format!("{} ({})", t.sample_type, t.unit)).collect();
            if all.is_empty() { "none".to_owned() } else { all.join(", ") }
        };
        let detail = format!(
            "its cumulative sample types are {}, but {} has {}; are these snapshots of the same process?",
            list(&mut treatments.iter().filter(|t| t.cumulative)),
            before.name,
            list(&mut before.counters.iter()),
        );
        Error::new(ErrorKind::Incompatible, detail)
    })
}

fn time_between(before: &PreviousSnapshot, snapshot: &Profile) -> Result<i64> {
    match (before.time_nanos, snapshot.time_nanos()) {
        (0, _) | (_, 0) => Ok(0),
        (before_nanos, nanos) if nanos < before_nanos => {
            let seconds = (i128::from(before_nanos) - i128::from(nanos)) as f64 / 1e9;
            let detail = format!("it was taken {seconds:.3} s before {}; give the older snapshot first", before.name);
            Err(Error::new(ErrorKind::Incompatible, detail))
        }
        (before, nanos) => Ok(nanos.saturating_sub(before)),
    }
}

/// Returns the comment in the written profile that describes how it was made.
fn comment(treatments: &[Treatment], first: bool, reset: Option<&Reset>, on_reset: OnReset, vanished: usize) -> String {
    let list = |cumulative| {
        let all = treatments.iter().filter(|t| t.cumulative == cumulative).map(|t| t.sample_type.as_str());
        let all: Vec<&str> = all.collect();
        if all.is_empty() { "none".to_owned() } else { all.join(" ") }
    };
    let mut comment = format!("pprofdiff delta: cumulative {}; gauges {}", list(true), list(false));
    if first {
        comment.push_str("; the first snapshot, as it is");
    }
    if vanished > 0 && !matches!(reset, Some(Reset::Vanished { .. })) {
        comment.push_str(&format!("; {}", describe_vanished(vanished)));
    }
    if let Some(reset) = reset {
        let action =
            if on_reset == OnReset::Clamp { "these count as unchanged" } else { "the snapshot is passed as it is" };
        comment.push_str(&format!("; {reset}, {action}"));
    }
    comment
}
