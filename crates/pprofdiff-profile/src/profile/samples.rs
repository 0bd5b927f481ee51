//! Access to a profile's samples, decoded directly from the message.
//!
//! A [`Sample`] is a reference to its profile and slices of the inflated buffer: its location ids, values and labels.
//! Creating it only finds these slices. Each access decodes the ids, values or labels again. Measurements showed that
//! this is cheaper than columns, which would be filled once and mostly read once.

use std::ops::Range;

use super::ids::Ids;
use super::wire::{self, Fields, SampleParts};
use super::{BASE_LABEL, Profile, StringId};
use crate::cancellation::ByteCheckpointer;
use crate::parallel;

/// One sample of a profile.
#[derive(Clone, Copy)]
pub struct Sample<'p> {
    profile: &'p Profile,
    parts: SampleParts<'p>,
}

impl std::fmt::Debug for Sample<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sample").finish_non_exhaustive()
    }
}

/// One label of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Label {
    /// The string of the key.
    pub key: StringId,
    /// The value.
    pub value: LabelValue,
}

/// The value of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LabelValue {
    /// A string.
    Text(StringId),
    /// A number and its unit. The unit is empty if the file does not declare one.
    Number(i64, StringId),
}

/// Consecutive samples in the buffer of one profile. The range is meaningless in any other profile.
#[derive(Debug, Clone)]
pub struct SampleRange(Range<usize>);

impl SampleRange {
    /// Returns the size of the samples in bytes.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }
}

impl Profile {
    /// Iterates over the samples in the file's order.
    pub fn samples(&self) -> impl Iterator<Item = Sample<'_>> {
        let mut rest = &self.data[self.samples.clone()];
        let mut pace = ByteCheckpointer::default();
        std::iter::from_fn(move || {
            pace.left(rest.len());
            self.next_sample(&mut rest)
        })
    }

    /// Returns the range of all samples.
    pub fn sample_range(&self) -> SampleRange {
        SampleRange(self.samples.clone())
    }

    /// Splits all samples into ranges for parallel work, in order. Small profiles yield few ranges, because more
    /// threads would not pay off.
    pub fn sample_ranges(&self) -> Vec<SampleRange> {
        split(&self.data, self.samples.clone(), self.n_samples).into_iter().map(SampleRange).collect()
    }

    /// Calls `f` with each sample in a range of this profile. Inner loops use this function instead of
    /// [`Profile::samples`].
    #[inline(always)]
    pub fn for_each_sample<'p>(&'p self, range: &SampleRange, mut f: impl FnMut(Sample<'p>)) {
        let mut rest = self.data.get(range.0.clone()).unwrap_or_default();
        let mut pace = ByteCheckpointer::default();
        while let Some(sample) = self.next_sample(&mut rest) {
            pace.left(rest.len());
            f(sample);
        }
    }

    /// Takes the next sample off the front of the remaining fields.
    #[inline(always)]
    fn next_sample<'p>(&'p self, rest: &mut &'p [u8]) -> Option<Sample<'p>> {
        while let Some((&key, tail)) = rest.split_first() {
            if key == 2 << 3 | 2 {
                // Loading has checked every field, so `?` never ends the iteration early.
                let (len, n) = wire::varint(tail)?;
                let (message, after) = tail[n..].split_at_checked(len as usize)?;
                *rest = after;
                return Some(Sample { profile: self, parts: SampleParts::new(message, self.usual_samples) });
            }
            // Another field between samples, or a sample with a key in a longer encoding than necessary.
            let mut fields = Fields::new(rest, 0);
            let (field, value) = fields.next().ok()??;
            *rest = &rest[fields.offset()..];
            if let (2, wire::Value::Bytes(message)) = (field, value) {
                return Some(Sample { profile: self, parts: SampleParts::any(message) });
            }
        }
        None
    }
}

/// Splits the part of a message that contains `n` records into roughly equal ranges at record boundaries. Returns one
/// range if the caller has a single thread. Also returns one range if there are fewer than 131,072 records, which do
/// not justify the additional pass.
pub(super) fn split(data: &[u8], part: Range<usize>, n: usize) -> Vec<Range<usize>> {
    let n_parts = parallel::parts(n, 1 << 16);
    let mut parts = Vec::with_capacity(n_parts);
    let mut start = part.start;
    let mut fields = Fields::new(&data[part.clone()], part.start);
    for i in 1..n_parts {
        let end = part.start + part.len() / n_parts * i;
        while fields.offset() < end {
            // Stop at a malformed field. Reading this part will report it.
            let Ok(Some(_)) = fields.next() else { break };
        }
        parts.push(start..fields.offset());
        start = fields.offset();
    }
    parts.push(start..part.end);
    parts
}

impl<'p> Sample<'p> {
    /// Calls `f` with the index of each of the sample's locations, leaf first.
    #[inline(always)]
    pub fn for_each_location(&self, mut f: impl FnMut(u32)) {
        let ids = &self.profile.location_ids;
        // Loading has checked that every id exists.
        let sequential = matches!(ids, Ids::Sequential(_));
        self.parts.locations.each(|id| f(if sequential { (id as u32).wrapping_sub(1) } else { look_up(ids, id) }));
    }

    /// Returns the indexes of the sample's locations, leaf first. Uses the memory of `buffer`.
    #[inline(always)]
    pub(crate) fn stack<'b>(&self, buffer: &'b mut Vec<u32>) -> &'b mut [u32] {
        if matches!(self.profile.location_ids, Ids::Sequential(_)) {
            return self.parts.locations.indexes(buffer);
        }
        buffer.clear();
        self.for_each_location(|l| buffer.push(l));
        buffer
    }

    /// Returns the index of the location at the leaf.
    #[inline(always)]
    pub fn leaf(&self) -> Option<u32> {
        self.profile.location_ids.get(self.parts.locations.first()?)
    }

    /// Calls `f` with each value, one for each sample type.
    #[inline(always)]
    pub fn for_each_value(&self, mut f: impl FnMut(i64)) {
        self.parts.values.each(|v| f(v as i64));
    }

    /// Returns the value of one sample type.
    #[inline(always)]
    pub fn value(&self, sample_type: usize) -> i64 {
        self.parts.values.nth(sample_type).unwrap_or(0) as i64
    }

    /// Iterates over the labels in the file's order. Like pprof, it skips empty labels (no string, zero, no unit). In a
    /// written diff, it also skips labels with the key `pprof::base`, which mark the base's samples.
    pub fn labels(&self) -> impl Iterator<Item = Label> + use<'p> {
        let p = self.profile;
        self.all_labels().filter(move |l| !p.is_diff || p.string(l.key) != BASE_LABEL.0)
    }

    /// Iterates over the labels like [`Sample::labels`], but includes the label that marks the base of a written diff.
    pub fn all_labels(&self) -> impl Iterator<Item = Label> + use<'p> {
        let mut fields = Fields::new(self.parts.labels, 0);
        std::iter::from_fn(move || {
            while let Ok(Some((field, value))) = fields.next() {
                if let (3, wire::Value::Bytes(message)) = (field, value)
                    && let Some(label) = label(message)
                {
                    return Some(label);
                }
            }
            None
        })
    }

    /// Returns encoded fields that include all labels. Samples of one profile with equal bytes have equal labels.
    #[inline(always)]
    pub(crate) fn encoded_labels(&self) -> &'p [u8] {
        self.parts.labels
    }

    /// Returns true if the sample belongs to the base of a written diff.
    pub fn is_base(&self) -> bool {
        let p = self.profile;
        p.is_diff
            && self.all_labels().any(|l| {
                matches!(l.value, LabelValue::Text(v) if p.string(l.key) == BASE_LABEL.0 && p.string(v) == BASE_LABEL.1)
            })
    }
}

/// Looks up an id. Kept out of the innermost loops, because most files have sequential ids and never call it.
#[cold]
#[inline(never)]
fn look_up(ids: &Ids, id: u64) -> u32 {
    ids.get(id).unwrap_or(0)
}

fn label(message: &[u8]) -> Option<Label> {
    let (mut key, mut text, mut number, mut unit) = (0, 0, 0, 0);
    let mut fields = Fields::new(message, 0);
    while let Ok(Some((field, value))) = fields.next() {
        let wire::Value::Varint(v) = value else { continue };
        match field {
            1 => key = v as u32,
            2 => text = v as u32,
            3 => number = v as i64,
            4 => unit = v as u32,
            _ => {}
        }
    }
    let value = match (text, number, unit) {
        (0, 0, 0) => return None,
        (0, number, unit) => LabelValue::Number(number, StringId(unit)),
        (text, ..) => LabelValue::Text(StringId(text)),
    };
    Some(Label { key: StringId(key), value })
}
