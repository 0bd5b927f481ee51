//! What happened between two snapshots of a growing profile.
//!
//! ```text
//! snapshot -> digest of each sample -> row (found in the last snapshot, or new) -> values less what they were -> message
//! ```
//!
//! Go's heap, mutex and block profiles count from the start of the process. The delta of two snapshots is a profile of
//! the time between them: cumulative sample types are subtracted, all others (gauges: what is in use) are those of the
//! newer snapshot. Samples that come to zero go, with everything that only they referred to; the order is the newer
//! snapshot's, and so are all other fields. Of the older snapshot a digest and the counters of each sample are enough
//! ([`DeltaComputer`]), so a stream of snapshots is held in a fraction of one.
//!
//! This module knows profiles, and neither diffs nor reports.

mod identity;
mod memory;

use std::borrow::Cow;
use std::fmt;

use crate::error::{Error, ErrorKind, Result};
use crate::profile::{About, MessageWriter, Profile, WriteOptions, pack};
use crate::random::HashMap;
use identity::Identity;
use memory::Memory;

/// The sample types that are known to count from the start of the process: those of Go's runtime, and the names that
/// Pyroscope gives to them.
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

/// What to do when a counter went down, or more than half of what it had counted is gone with its samples: either means
/// that the process (or its profiler) was restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnReset {
    /// An error of kind [`ErrorKind::Reset`]; a stream stays at the last snapshot.
    #[default]
    Error,
    /// The delta is the new snapshot as it is: what the new process did since its start.
    Pass,
    /// Counters that went down count as unchanged.
    Clamp,
}

/// How deltas are made.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DeltaOptions {
    /// The names of the sample types that are cumulative; all others are gauges. [`CUMULATIVE`] unless given, of which
    /// one must occur in the snapshots. A name that is given must occur.
    pub cumulative: Option<Vec<String>>,
    /// What to do after a restart.
    pub on_reset: OnReset,
}

impl DeltaOptions {
    /// With the sample types of these names as cumulative, and no others.
    #[must_use]
    pub fn with_cumulative(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.cumulative = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// With this done after a restart.
    #[must_use]
    pub fn with_on_reset(mut self, on_reset: OnReset) -> Self {
        self.on_reset = on_reset;
        self
    }
}

/// How one sample type was treated.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Treatment {
    /// The sample type's name.
    pub sample_type: String,
    /// Its unit.
    pub unit: String,
    /// Subtracted (true), or as in the newer snapshot.
    pub cumulative: bool,
}

/// How a restart showed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reset {
    /// In samples that both snapshots have.
    Decreased {
        /// In how many.
        samples: usize,
        /// The sample type of the first of them.
        sample_type: String,
        /// What it had counted.
        before: i64,
        /// What it counts now.
        after: i64,
    },
    /// With samples that are gone, more than half of what a sample type had counted is gone.
    Vanished {
        /// How many of those that had counted something are gone.
        samples: usize,
        /// How many there were.
        of: usize,
        /// The first sample type of which more than half is gone.
        sample_type: String,
        /// What the samples that are gone had counted.
        gone: i64,
        /// What all had counted.
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
            Reset::Vanished { samples, of, sample_type, gone, counted } => write!(
                f,
                "{samples} of the {of} samples that had counted something are gone, with {gone} of {counted} of \
                 {sample_type}"
            ),
        }
    }
}

/// The delta of two snapshots, as a message in the computer's memory.
#[derive(Debug)]
#[non_exhaustive]
pub struct Delta<'c> {
    message: Cow<'c, [u8]>,
    /// How each sample type was treated, in the snapshot's order. The written profile says it in its last comment.
    pub treatments: Vec<Treatment>,
    /// True if there was no snapshot before, so that this is the snapshot as it is.
    pub first: bool,
    /// What went down, if something did and [`DeltaOptions::on_reset`] is not to fail. The last comment says this too.
    pub reset: Option<Reset>,
    /// Number of samples that are left.
    pub samples: usize,
    /// Number of samples that had counted something before and are not in the newer snapshot. What they counted is not
    /// in the delta; the last comment says how many they are.
    pub vanished: usize,
}

/// How many samples are gone, as comments and warnings say it.
fn gone(samples: usize) -> String {
    let samples_are =
        if samples == 1 { "sample that had counted something is" } else { "samples that had counted something are" };
    format!("{samples} {samples_are} gone")
}

impl Delta<'_> {
    /// The delta as a file's bytes. The same snapshots and options give the same bytes, always.
    ///
    /// # Errors
    /// A level that does not exist.
    pub fn to_bytes(&self, options: &WriteOptions) -> Result<Vec<u8>> {
        pack(&self.message, options)
    }

    /// The delta as a loaded profile, which costs checking it as any other; `name` stands for it in errors and reports.
    ///
    /// # Errors
    /// None that are known: what was written is valid.
    pub fn to_profile(&self, name: &str) -> Result<Profile> {
        Profile::decode(name, self.message.to_vec())
    }

    /// What a user should know before trusting the delta: that counters went down, or that samples are gone.
    pub fn warning(&self) -> Option<String> {
        match (&self.reset, self.vanished) {
            (Some(reset), _) => Some(format!("{reset}: the process was started anew")),
            (None, 0) => None,
            (None, n) => Some(format!("{}; what became of them is not in the delta", gone(n))),
        }
    }

    /// Size of the message in bytes.
    pub fn size(&self) -> usize {
        self.message.len()
    }
}

/// What happened between two snapshots, of which `prev` is the older.
///
/// # Errors
/// As [`DeltaComputer::update`].
pub fn delta(prev: &Profile, cur: &Profile, options: &DeltaOptions) -> Result<Delta<'static>> {
    let mut computer = DeltaComputer::new(options.clone());
    computer.start(prev)?;
    let Delta { message: _, treatments, first, reset, samples, vanished } = computer.update(cur)?;
    let message = Cow::Owned(computer.writer.into_message());
    Ok(Delta { message, treatments, first, reset, samples, vanished })
}

/// The deltas of a stream of snapshots.
///
/// It remembers 16 bytes and the cumulative values of each sample of the last snapshot: what vanished is forgotten.
/// All memory is used again, so after the largest snapshot nothing grows.
pub struct DeltaComputer {
    options: DeltaOptions,
    before: Option<Before>,
    identity: Identity,
    memory: Memory,
    /// For each row, its first sample, and its values, one for each sample type.
    first_sample: Vec<u32>,
    values: Vec<i64>,
    writer: MessageWriter,
}

/// What is remembered of the last snapshot beside its samples.
struct Before {
    name: String,
    time_nanos: i64,
    counters: Vec<Treatment>,
}

impl DeltaComputer {
    /// A computer that knows no snapshot yet.
    pub fn new(options: DeltaOptions) -> DeltaComputer {
        DeltaComputer {
            options,
            before: None,
            identity: Identity::new(),
            memory: Memory::default(),
            first_sample: Vec::new(),
            values: Vec::new(),
            writer: MessageWriter::default(),
        }
    }

    /// Takes a snapshot as the one before the next, and writes nothing. Whatever was known is forgotten.
    ///
    /// # Errors
    /// The options name a sample type that the snapshot does not have, or name none and nothing in the snapshot is
    /// known to be cumulative; the snapshot is a written diff.
    pub fn start(&mut self, snapshot: &Profile) -> Result<()> {
        let treatments = first_treatments(snapshot, &self.options)?;
        let columns = cumulative_columns(&treatments);
        self.before = None;
        self.read(snapshot);
        self.settle(&columns, treatments.len());
        self.commit(snapshot, &columns, &treatments);
        Ok(())
    }

    /// What happened since the last snapshot. The first one is passed on as it is (duplicate samples added up, zeros
    /// gone). The duration is the time between the two, or 0 if one of them does not say when it was taken.
    ///
    /// # Errors
    /// As [`DeltaComputer::start`]; a snapshot that is older than the last one or has other cumulative sample types;
    /// values that differ by more than an int64 holds; and, with [`OnReset::Error`], counters that went down, or
    /// of which more than half is gone with their samples. After an error the last snapshot is still the last one.
    pub fn update(&mut self, snapshot: &Profile) -> Result<Delta<'_>> {
        self.update_with(snapshot, self.options.on_reset)
    }

    /// The same, with another choice for counters that went down.
    ///
    /// # Errors
    /// As [`DeltaComputer::update`].
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
            let most = lost.counters.iter().position(|c| c.gone > c.of / 2);
            reset = match decreased {
                Some(Decrease { samples, column, before, after }) => Some(Reset::Decreased {
                    samples,
                    sample_type: treatments[column].sample_type.clone(),
                    before,
                    after,
                }),
                None => most.map(|i| Reset::Vanished {
                    samples: vanished,
                    of: lost.of,
                    sample_type: treatments[columns[i]].sample_type.clone(),
                    gone: lost.counters[i].gone as i64,
                    counted: lost.counters[i].of as i64,
                }),
            };
            if let (Some(reset), OnReset::Error) = (&reset, on_reset) {
                let detail = format!(
                    "{reset} since {}: the process was started anew; choose to pass the new snapshot on as it is, or to clamp",
                    before.name
                );
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
        for (index, sample) in p.samples().enumerate() {
            let row = self.memory.row(self.identity.sample(p, &sample));
            if row == self.first_sample.len() {
                self.first_sample.push(index as u32);
                sample.for_each_value(|v| self.values.push(v));
            } else {
                let mut sums = self.values[row * n..][..n].iter_mut();
                // Loading made sure that no sum over the samples overflows.
                sample.for_each_value(|v| sums.next().into_iter().for_each(|sum| *sum = sum.wrapping_add(v)));
            }
        }
    }

    /// Remembers all counters, and finds those that are lower than they were. What was not there was 0.
    fn settle(&mut self, columns: &[usize], n: usize) -> Option<Decrease> {
        let mut decreased: Option<Decrease> = None;
        for row in 0..self.first_sample.len() {
            let values = &self.values[row * n..][..n];
            let before = self.memory.before(row, columns.len());
            let was = |i: usize| before.map_or(0, |b| b[i]);
            if let Some(i) = (0..columns.len()).find(|&i| values[columns[i]] < was(i)) {
                let first = Decrease { samples: 0, column: columns[i], before: was(i), after: values[columns[i]] };
                decreased.get_or_insert(first).samples += 1;
            }
            self.memory.remember(columns.iter().map(|&c| values[c]));
        }
        decreased
    }

    /// Takes off what the counters were before; those that went down become 0.
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
                    let kind = &treatments[column].sample_type;
                    let detail = format!("the deltas of sample type {kind} add up to more than an int64 holds");
                    return Err(Error::new(ErrorKind::Incompatible, detail));
                };
                (*value, totals[i]) = (difference, total);
            }
        }
        Ok(())
    }

    /// Writes the rows that are not zero; returns how many.
    fn write(&mut self, p: &Profile, n: usize, about: &About<'_>) -> usize {
        self.writer.begin(p, p.value_types().iter().map(|t| (t.kind, t.unit)));
        let (mut row, mut written) = (0, 0);
        for (index, sample) in p.samples().enumerate() {
            if self.first_sample.get(row) != Some(&(index as u32)) {
                continue;
            }
            let values = &self.values[row * n..][..n];
            row += 1;
            if values.iter().any(|&v| v != 0) {
                self.writer.begin_stack();
                sample.for_each_location(|l| self.writer.location(l));
                self.writer.sample(values, sample.all_labels());
                written += 1;
            }
        }
        self.writer.finish(p, about);
        written
    }

    /// Makes the snapshot that was read the last one.
    fn commit(&mut self, p: &Profile, columns: &[usize], treatments: &[Treatment]) {
        self.memory.commit();
        let counters = columns.iter().map(|&c| treatments[c].clone()).collect();
        self.before = Some(Before { name: p.name().to_owned(), time_nanos: p.time_nanos(), counters });
    }
}

/// Counters that went down: in how many samples, and the first of them.
struct Decrease {
    samples: usize,
    column: usize,
    before: i64,
    after: i64,
}

/// [`treatments`] of the first snapshot. That none of its types is cumulative is an error, unless the options name
/// them; it is reported now and not with the second snapshot.
fn first_treatments(snapshot: &Profile, options: &DeltaOptions) -> Result<Vec<Treatment>> {
    let treatments = treatments(snapshot, options)?;
    if options.cumulative.is_some() || treatments.iter().any(|t| t.cumulative) {
        return Ok(treatments);
    }
    let types: Vec<&str> = treatments.iter().map(|t| t.sample_type.as_str()).collect();
    let types = if types.is_empty() { "none".to_owned() } else { types.join(", ") };
    let detail = format!(
        "none of its sample types ({types}) is known to count from the start of the process, so there is nothing to \
         subtract; name those that do as cumulative"
    );
    Err(Error::new(ErrorKind::NotCumulative, detail).in_input(snapshot.name()))
}

/// How each sample type of a snapshot is treated.
fn treatments(snapshot: &Profile, options: &DeltaOptions) -> Result<Vec<Treatment>> {
    snapshot.one_sided()?;
    let types = snapshot.sample_types();
    if let Some(named) = &options.cumulative
        && let Some(unknown) = named.iter().find(|name| !types.iter().any(|(kind, _)| kind == *name))
    {
        let there: Vec<&str> = types.iter().map(|(kind, _)| kind.as_str()).collect();
        let detail =
            format!("there is no sample type {unknown:?} that could be cumulative; there are {}", there.join(", "));
        return Err(Error::query(detail).in_input(snapshot.name()));
    }
    let cumulative = |kind: &str| match &options.cumulative {
        Some(named) => named.iter().any(|name| name == kind),
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

/// Where the counters of the last snapshot are in this one, whose types may stand in another order.
fn counter_columns(before: &Before, treatments: &[Treatment]) -> Result<Vec<usize>> {
    // Of each counter its columns, which are several where a name occurs twice; the first is last.
    let mut left: HashMap<&Treatment, Vec<usize>> = HashMap::default();
    let now = cumulative_columns(treatments);
    now.iter().rev().for_each(|&c| left.entry(&treatments[c]).or_default().push(c));
    let columns = before.counters.iter().map(|counter| left.get_mut(counter)?.pop()).collect::<Option<Vec<usize>>>();
    columns.filter(|columns| columns.len() == now.len()).ok_or_else(|| {
        let list = |counters: &mut dyn Iterator<Item = &Treatment>| {
            let all: Vec<String> = counters.map(|t| format!("{} ({})", t.sample_type, t.unit)).collect();
            if all.is_empty() { "none".to_owned() } else { all.join(", ") }
        };
        let detail = format!(
            "its cumulative sample types are {}, those of {} are {}; are these snapshots of one process?",
            list(&mut treatments.iter().filter(|t| t.cumulative)),
            before.name,
            list(&mut before.counters.iter()),
        );
        Error::new(ErrorKind::Incompatible, detail)
    })
}

fn time_between(before: &Before, snapshot: &Profile) -> Result<i64> {
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

/// What the written profile says of how it was made.
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
        comment.push_str(&format!("; {}", gone(vanished)));
    }
    if let Some(reset) = reset {
        let done =
            if on_reset == OnReset::Clamp { "these count as unchanged" } else { "the snapshot is passed as it is" };
        comment.push_str(&format!("; {reset}, {done}"));
    }
    comment
}
