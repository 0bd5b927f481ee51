//! OTLP samples: infers their numbering, decodes them, and sums equal samples.

use super::dictionary::STACKS;
use super::{BEFORE, CURRENT, Numbering, OtlpMessage, each_number, fixed64, too_large};
use pprofdiff_profile::TimeWindow;
use pprofdiff_profile::columns::{Header, NONE};
use pprofdiff_profile::interner::Sequences;
use pprofdiff_profile::random::RandomState;
use pprofdiff_profile::shared::Timeline;
use pprofdiff_profile::shared::wire::{Fields, Value, for_each_int};
use pprofdiff_profile::{Error, Result};

impl<'a> OtlpMessage<'a> {
    /// Infers the numbering of the samples. Returns `None` if the samples mean the same in both numberings, because
    /// none has a field that was renumbered.
    ///
    /// # Errors
    /// A sample fits no numbering, or all samples fit both with different meanings.
    pub(super) fn numbering(&self) -> Result<Option<Numbering>> {
        let (mut scratch, mut differ) = (Vec::new(), false);
        for profile in 0..self.profiles.len() {
            let mut fields = self.profile(profile);
            let mut number = 0u64;
            while let Some((field, value)) = fields.next()? {
                if field != 2 {
                    continue;
                }
                let sample = fields.message(value)?;
                let start = sample.offset();
                let mut fits = |n: Numbering| self.sample(sample.clone(), n, true, &mut scratch);
                match (fits(CURRENT), fits(BEFORE)) {
                    (Ok(_), Ok(_)) => {}
                    (Ok(_), Err(_)) => return Ok(Some(CURRENT)),
                    (Err(_), Ok(_)) => return Ok(Some(BEFORE)),
                    (Err(current), Err(before)) => {
                        let detail = format!(
                            "it fits no numbering of OTLP profiles: not 1.10 and later ({}), not 1.8 and 1.9 ({}); to \
                             choose one anyway, name it: --input-format otlp or --input-format otlp-1.9",
                            current.detail(),
                            before.detail(),
                        );
                        let record = || format!("profile {profile}, sample {number}");
                        return Err(Error::malformed(detail).in_record(record).at(start));
                    }
                }
                if !differ {
                    let mut sample = sample.clone();
                    while let Some((field, _)) = sample.next()? {
                        differ |= (2..=4).contains(&field);
                    }
                }
                number += 1;
            }
        }
        if differ {
            let detail = "the samples fit two numberings of OTLP profiles, with different meanings; name the right one: \
                          --input-format otlp (protocol 1.10 and later) or --input-format otlp-1.9 (1.8 and 1.9)";
            return Err(Error::malformed(detail));
        }
        Ok(None)
    }

    /// Returns the fields of a profile.
    pub(super) fn profile(&self, number: usize) -> Fields<'a> {
        let start = self.profiles[number].0 as usize;
        let mut fields = Fields::new(&self.data[start..], start);
        let message = fields.next().ok().flatten().and_then(|(_, value)| fields.message(value).ok());
        message.unwrap_or(Fields::new(&[], start))
    }

    /// Returns a sample's stack and value, and sets `attributes` to its attributes. With `strict`, which is used to
    /// infer the numbering, it also requires that the writer packs all repeated numbers (most writers) or none
    /// (async-profiler), and that links exist in the dictionary.
    fn sample(
        &self,
        mut fields: Fields<'a>,
        numbering: Numbering,
        strict: bool,
        attributes: &mut Vec<u32>,
    ) -> Result<(u32, i64)> {
        attributes.clear();
        let (mut stack, mut sum, mut n_values, mut n_times, mut packed) = (0, 0i64, 0u64, 0u64, None);
        loop {
            let start = fields.offset();
            let Some((field, value)) = fields.next()? else { break };
            let is_repeated = field == 5 || field == numbering.values || field == numbering.attributes;
            if strict && is_repeated {
                let is_packed = matches!(value, Value::Bytes(_));
                if packed.replace(is_packed).is_some_and(|previous| previous != is_packed) {
                    return Err(Error::malformed("some of its numbers are packed and some are not"));
                }
            }
            if field == 1 {
                stack = self.index(STACKS, value.varint()?)?;
            } else if field == 5 {
                n_times += match value {
                    Value::Bytes(bytes) if bytes.len() % 8 == 0 => bytes.len() as u64 / 8,
                    Value::Fixed if fixed64(self.data, start, fields.offset()).is_some() => 1,
                    _ => return Err(Error::malformed("its timestamps are not numbers of 64 bits")),
                };
            } else if field == numbering.values {
                for_each_int(value, |v| {
                    n_values += 1;
                    sum = sum.checked_add(v as i64).ok_or_else(too_large)?;
                    Ok(())
                })?;
            } else if field == numbering.attributes {
                self.read_attributes(value, attributes)?;
            } else if field == numbering.link {
                let link = value.varint()?;
                if strict && link != 0 && link >= self.n_links {
                    return Err(Error::malformed(format!("it refers to link {link}, but there are {}", self.n_links)));
                }
            }
        }
        match (n_values, n_times) {
            (0, 0) => Err(Error::malformed("it has no values and no timestamps")),
            (0, _) => Ok((stack, n_times as i64)),
            (_, 0) => Ok((stack, sum)),
            _ if n_values == n_times => Ok((stack, sum)),
            _ => Err(Error::malformed(format!(
                "it has {n_values} values and {n_times} timestamps; a sample with both must have the same number of \
                 each"
            ))),
        }
    }

    /// Calls `f` with each timestamp of a sample, in nanoseconds since 1970.
    fn each_time(&self, mut sample: Fields<'_>, mut f: impl FnMut(i64)) -> Result<()> {
        loop {
            let start = sample.offset();
            let Some((field, value)) = sample.next()? else { return Ok(()) };
            if field == 5 {
                let number = |nanos: u64| i64::try_from(nanos).unwrap_or(i64::MAX);
                if let Value::Bytes(packed) = value {
                    packed.as_chunks().0.iter().for_each(|bytes| f(number(u64::from_le_bytes(*bytes))));
                }
                fixed64(self.data, start, sample.offset()).into_iter().for_each(|nanos| f(number(nanos)));
            }
        }
    }

    /// Adds the samples of a profile to the sums of `column`. Samples outside the time window are left out.
    pub(super) fn add_samples(
        &self,
        profile: usize,
        numbering: Numbering,
        column: u32,
        context: u32,
        mut window: Option<&mut OtlpWindow>,
        samples: &mut OtlpSamples,
    ) -> Result<()> {
        let (mut attributes, mut key) = (Vec::new(), Vec::new());
        let mut fields = self.profile(profile);
        let mut number = 0u64;
        while let Some((field, value)) = fields.next()? {
            if field != 2 {
                continue;
            }
            let mut add = || {
                let sample = fields.message(value)?;
                let start = sample.offset();
                let read = self.sample(sample.clone(), numbering, false, &mut attributes);
                let (stack, mut value) = read.map_err(|e| e.at(start))?;
                if let Some(window) = &mut window {
                    match window.value(self, sample, numbering).map_err(|e| e.at(start))? {
                        Some(part) => value = part,
                        None => return Ok(()),
                    }
                }
                attributes.sort_unstable();
                attributes.dedup();
                key.clear();
                key.extend_from_slice(&[context, stack]);
                key.extend_from_slice(&attributes);
                samples.add(&key, column, value).map_err(|e| e.at(start))
            };
            add().map_err(|e| e.in_record(|| format!("profile {profile}, sample {number}")))?;
            number += 1;
        }
        Ok(())
    }
}

/// A time window of a recording, which selects the timestamps to read.
pub(super) struct OtlpWindow {
    /// The time when the recording began, in nanoseconds since 1970.
    began: i64,
    pub(super) timeline: Timeline,
    /// The timestamps of the sample that is being read, and its values.
    times: Vec<i64>,
    values: Vec<i64>,
}

impl OtlpWindow {
    pub(super) fn new(message: &OtlpMessage<'_>, window: &TimeWindow, header: &Header) -> Result<OtlpWindow> {
        let mut began = header.time_nanos;
        if began == 0 {
            began = i64::MAX;
            for profile in 0..message.profiles.len() {
                let mut fields = message.profile(profile);
                while let Some((field, value)) = fields.next()? {
                    if field == 2 {
                        message.each_time(fields.message(value)?, |time| began = began.min(time))?;
                    }
                }
            }
        }
        Ok(OtlpWindow { began, timeline: Timeline::new(window, Some(began))?, times: Vec::new(), values: Vec::new() })
    }

    /// Returns the value of a sample inside the window, or `None` if all its timestamps are outside. The sample must
    /// have been validated.
    fn value(&mut self, message: &OtlpMessage<'_>, sample: Fields<'_>, numbering: Numbering) -> Result<Option<i64>> {
        self.times.clear();
        self.values.clear();
        message.each_time(sample.clone(), |time| self.times.push(time))?;
        if self.times.is_empty() {
            return Err(Error::query("it has no timestamps, so a time window cannot be selected"));
        }
        each_number(sample, numbering.values, |value| {
            self.values.push(value as i64);
            Ok(())
        })?;
        let mut sum = None;
        for (i, time) in self.times.iter().enumerate() {
            let since = time.checked_sub(self.began).ok_or_else(too_large)?;
            if self.timeline.contains(since) {
                // Without values, each timestamp counts 1. The sum of a part may overflow where the whole sum does not,
                // because values may be negative.
                let value = self.values.get(i).copied().unwrap_or(1);
                sum = Some(sum.unwrap_or(0i64).checked_add(value).ok_or_else(too_large)?);
            }
        }
        Ok(sum)
    }
}

/// The summed samples. Flat arrays save memory: samples may be as short as five bytes.
#[derive(Default)]
pub(super) struct OtlpSamples {
    /// Contexts of samples: the index of a resource, and the attributes of a profile.
    pub(super) contexts: Sequences<u32, RandomState>,
    /// Keys of samples: a context, a stack, and attributes.
    pub(super) keys: Sequences<u32, RandomState>,
    /// The index in `values` of each key's first value.
    first: Vec<u32>,
    values: Vec<SampleValue>,
}

struct SampleValue {
    value: i64,
    column: u32,
    /// The index of the key's next value, or [`NONE`]. A key has at most one value of each type.
    next: u32,
}

impl OtlpSamples {
    fn add(&mut self, key: &[u32], column: u32, value: i64) -> Result<()> {
        let number = self.keys.number(key) as usize;
        if number == self.first.len() {
            self.first.push(NONE);
        }
        let mut place = self.first[number];
        while place != NONE {
            let existing = &mut self.values[place as usize];
            if existing.column == column {
                existing.value = existing.value.checked_add(value).ok_or_else(too_large)?;
                return Ok(());
            }
            place = existing.next;
        }
        self.values.push(SampleValue { value, column, next: self.first[number] });
        self.first[number] = self.values.len() as u32 - 1;
        Ok(())
    }

    /// Returns a sample's key and its context.
    pub(super) fn key(&self, number: u32) -> (&[u32], &[u32]) {
        let key = self.keys.get(number);
        (key, self.contexts.get(key[0]))
    }

    /// Calls `f` with the column and the value of each value of a sample.
    pub(super) fn values(&self, number: u32, mut f: impl FnMut(u32, i64)) {
        let mut place = self.first[number as usize];
        while place != NONE {
            let value = &self.values[place as usize];
            f(value.column, value.value);
            place = value.next;
        }
    }
}
