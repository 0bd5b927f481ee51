//! A loaded profile: one inflated buffer, plus columns that point into it.
//!
//! ```text
//! inflate -> decode (over wire) -> Profile -> samples, encode, merge
//! ```
//!
//! Files are read above this crate. Readers of other formats encode a profile.proto message, with `builder` or
//! `message`.
//!
//! Loading validates the whole profile before it returns, so later passes over a [`Profile`] cannot fail on its
//! content.
//!
//! Strings are slices of the inflated buffer. The tables of functions, locations and lines are columns with dense
//! indexes from 0. Samples stay encoded in the buffer, and [`Profile::samples`] decodes them on demand. Each decoding
//! costs one pass over varints, but a decoded copy would be several times as large as the tables. Decoding a message
//! makes no separate allocation for any sample, location or string.

pub mod builder;
pub mod columns;
mod decode;
mod encode;
mod ids;
mod inflate;
mod label_cache;
#[cfg(feature = "libdeflate")]
mod libdeflate;
mod memo;
mod merge;
mod message;
#[cfg(feature = "proto")]
pub mod proto;
mod renamed;
mod sampled;
pub mod samples;
mod symbolize;
mod types;
mod unnamed;
#[doc(hidden)]
pub mod wire;
#[cfg(any(test, all(feature = "ruzstd", not(feature = "zstd"))))]
mod zstd_in_rust;

use std::any::Any;
use std::sync::Arc;

pub(crate) use columns::*;
pub use encode::{Compression, WriteOptions, pack};
pub use inflate::{inflate, inflate_file, inflate_slice, is_packed, unzstd};
pub(crate) use label_cache::LabelCache;
pub use memo::Memo;
pub(crate) use memo::Numbers;
pub use merge::{
    MergePart, MergedFields, Merger, SampleOrder, SampleSelection, merge, merge_as, merge_bytes, merge_weighted,
    with_default_type,
};
pub use message::{About, MessageWriter, Tables};
pub use sampled::Sampled;
pub(crate) use samples::{Label, LabelValue, Sample};
pub use symbolize::{FoundLine, Symbolizer, Text};
pub use types::{CommonType, common_types, common_types_of_sides, default_type};

use crate::error::{Error, ErrorKind, Result};
use crate::random::HashSet;
use crate::redact::Secrets;
use crate::window::TimeWindow;

/// A loaded, validated profile.
///
/// Threads can share a profile freely, because nothing changes it after loading. The crate `pprofdiff-formats` loads
/// profiles from files, bytes and readers.
#[derive(Debug)]
pub struct Profile {
    name: String,
    data: Vec<u8>,
    /// Offset in `data` of each string's length prefix.
    strings: Vec<u32>,
    sample_types: Vec<ValueType>,
    mappings: Vec<Mapping>,
    functions: Functions,
    locations: Locations,
    location_ids: ids::Ids,
    /// The range of `data` that contains all samples. Other fields may lie between them.
    samples: std::ops::Range<usize>,
    n_samples: usize,
    totals: Vec<Total>,
    header: Header,
    /// True if a sample carries [`BASE_LABEL`], so the profile is a diff that was written as a profile.
    is_diff: bool,
    /// True if the input looks like a diff, but its format cannot show whether it is one.
    may_be_diff: bool,
    has_labels: bool,
    /// True if each sample message consists of locations, values and labels, in this order, and no other fields.
    usual_samples: bool,
    /// Remarks from loading, which [`Profile::warnings`] shows to the user.
    notes: Vec<String>,
    /// Statistics about the samples behind each sample type. Empty if the format does not list samples.
    sampled: Vec<Sampled>,
    /// The time window of the recording that was read.
    window: Option<TimeWindow>,
    /// See [`Profile::attachment`].
    attachment: Option<Arc<dyn Any + Send + Sync>>,
}

/// The warning for folded stacks that look like a diff.
pub(crate) const DOUBTFUL_SIDES: &str = "each line ends in two numbers, as difffolded.pl writes a diff, and the second one was \
    read; --input-format folded2 reads them as base and new, and --input-format folded declares a single side";

impl Profile {
    /// Returns the file name, or the name that the caller gave.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the sample types as (type, unit), in the file's order.
    pub fn sample_types(&self) -> Vec<(String, String)> {
        self.sample_types.iter().map(|t| (self.text(t.kind), self.text(t.unit))).collect()
    }

    /// Returns the index of the sample type that views show by default: the type that the file declares as its default,
    /// or else the last type. Returns `None` if there are no sample types.
    pub fn default_sample_type(&self) -> Option<usize> {
        let default = self.string(self.header.default_sample_type);
        self.find_sample_type(default).or(self.sample_types.len().checked_sub(1))
    }

    fn find_sample_type(&self, kind: &[u8]) -> Option<usize> {
        if kind.is_empty() {
            return None;
        }
        self.sample_types.iter().position(|t| self.string(t.kind) == kind)
    }

    /// Returns the number of samples in the file. Duplicates count separately.
    pub fn n_samples(&self) -> usize {
        self.n_samples
    }

    /// Returns the number of locations.
    pub fn n_locations(&self) -> usize {
        self.locations.len()
    }

    /// Returns the number of functions.
    pub fn n_functions(&self) -> usize {
        self.functions.name.len()
    }

    /// Returns the size of the inflated message in bytes.
    pub fn inflated_size(&self) -> usize {
        self.data.len()
    }

    /// Returns when the profile was recorded, in nanoseconds since 1970; 0 if unknown.
    pub fn time_nanos(&self) -> i64 {
        self.header.time_nanos
    }

    /// Returns the duration of the recording in nanoseconds; 0 if unknown.
    pub fn duration_nanos(&self) -> i64 {
        self.header.duration_nanos
    }

    /// Returns the type and unit of the sampling period, if the profile declares them.
    pub fn period_type(&self) -> Option<(String, String)> {
        self.header.period_type.map(|t| (self.text(t.kind), self.text(t.unit)))
    }

    /// Returns the sampling period: the number of events between two samples, in the unit of [`Profile::period_type`].
    pub fn period(&self) -> i64 {
        self.header.period
    }

    /// Returns the producer's free-text comments.
    pub fn comments(&self) -> Vec<String> {
        self.header.comments.iter().map(|&c| self.text(c)).collect()
    }

    /// Returns a link to documentation about this kind of profile, or an empty string.
    pub fn doc_url(&self) -> String {
        self.text(self.header.doc_url)
    }

    /// Returns the file names of the mapped binaries, in the file's order.
    pub fn mapping_files(&self) -> Vec<String> {
        self.mappings.iter().map(|m| self.text(m.file)).collect()
    }

    /// Returns the sum of the absolute values of a sample type, before any filter.
    pub fn total(&self, sample_type: usize) -> Option<i64> {
        self.totals.get(sample_type).map(|t| t.magnitude)
    }

    /// Returns true if this profile is a written diff, whose base samples carry a label.
    pub fn is_diff(&self) -> bool {
        self.is_diff
    }

    /// Returns true if this profile was read as one side but looks like a diff: folded stacks whose lines
    /// all end in two numbers.
    pub fn may_be_diff(&self) -> bool {
        self.may_be_diff
    }

    /// Returns the warnings that a user should read before trusting any view of this profile.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.notes.iter().map(|note| format!("{}: {note}", self.name)).collect();
        warnings.extend(self.may_be_diff.then(|| format!("{}: {DOUBTFUL_SIDES}", self.name)));
        warnings.extend(self.names_warning().map(|warning| format!("{}: {warning}", self.name)));
        // Duplicate types are rare, but without a warning their columns would be missing silently.
        let mut seen: HashSet<_> = HashSet::default();
        if let Some(twice) = self.sample_types.iter().find(|t| !seen.insert(self.string(t.kind))) {
            let kind = self.text(twice.kind);
            warnings.push(format!("{}: sample type {kind} occurs more than once; the first one is shown", self.name));
        }
        warnings
    }

    /// Describes a mapped binary for errors: `/usr/bin/x, build id 1234`. Omits the build ID if it is unknown.
    pub fn mapping_words(&self, mapping: &Mapping) -> String {
        let (file, build_id) = (self.text(mapping.file), self.text(mapping.build_id));
        let file = if file.is_empty() { "a binary without a name" } else { &file };
        if build_id.is_empty() { file.to_owned() } else { format!("{file}, build id {build_id}") }
    }

    /// Adds remarks from loading, which [`Profile::warnings`] shows to the user.
    #[doc(hidden)]
    pub fn with_notes(mut self, mut notes: Vec<String>) -> Self {
        self.notes.append(&mut notes);
        self
    }

    /// Marks the profile as a possible diff ([`Profile::may_be_diff`]).
    #[doc(hidden)]
    pub fn with_doubtful_sides(self) -> Self {
        Profile { may_be_diff: true, ..self }
    }

    /// Overwrites the secrets of a request with asterisks in this profile's data, notes and name.
    #[doc(hidden)]
    pub fn without(mut self, secrets: &Secrets) -> Self {
        secrets.mask(&mut self.data);
        for text in self.notes.iter_mut().chain([&mut self.name]) {
            *text = secrets.redact(text).into_owned();
        }
        self
    }

    /// Sets the time window that the profile covers. A copy of a part of a recording needs this, because the copy
    /// itself has lost the times.
    pub fn with_window(self, window: Option<TimeWindow>) -> Self {
        Profile { window, ..self }
    }

    /// Copies context from `whole`, the larger profile, into this part of it. An encoded profile cannot carry this
    /// context: the time window that was read, and the locations of binaries.
    pub fn with_context_of(self, whole: &Profile) -> Self {
        Profile { window: whole.window.clone(), attachment: whole.attachment.clone(), ..self }
    }

    /// Returns the time window that was read, as set in the loading options; `None` if the whole recording was read.
    pub fn window(&self) -> Option<&TimeWindow> {
        self.window.as_ref()
    }

    /// Sets the loader's attachment.
    #[doc(hidden)]
    pub fn with_attachment(self, attachment: Option<Arc<dyn Any + Send + Sync>>) -> Self {
        Profile { attachment, ..self }
    }

    /// Returns what the loader attached: the binaries that the user named, where listings of instructions find the code
    /// of the profile. A profile carries them because they belong to one side, and a view only gets profiles. They are
    /// opaque here, because the crate that reads binaries is above this one.
    #[doc(hidden)]
    pub fn attachment(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.attachment.as_deref()
    }

    /// Checks that profiles can be added to or subtracted from this profile.
    ///
    /// # Errors
    /// Fails for a written diff: it contains both sides, so a sum that includes it would be wrong.
    pub fn one_sided(&self) -> Result<()> {
        if !self.is_diff {
            return Ok(());
        }
        let detail = "this is a written diff: it contains both sides, so it can't be a side or a snapshot; show it by \
                      itself, or pass the profiles from which it was made";
        Err(Error::new(ErrorKind::Incompatible, detail).in_input(&self.name))
    }

    /// Returns the bytes of a string.
    pub fn string(&self, id: StringId) -> &[u8] {
        let offset = self.strings[id.0 as usize] as usize;
        match wire::varint(&self.data[offset..]) {
            Some((len, n)) => &self.data[offset + n..offset + n + len as usize],
            None => &[],
        }
    }

    /// Returns the inflated message. All strings are slices of it.
    pub fn buffer(&self) -> &[u8] {
        &self.data
    }

    /// Returns a string for display. Bytes that are not UTF-8 become replacement characters.
    pub fn text(&self, id: StringId) -> String {
        String::from_utf8_lossy(self.string(id)).into_owned()
    }

    /// Returns the fields of the message outside its tables.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the sample types as string IDs, in the file's order.
    pub fn value_types(&self) -> &[ValueType] {
        &self.sample_types
    }

    /// Returns the totals of each sample type.
    pub fn totals(&self) -> &[Total] {
        &self.totals
    }

    /// Returns the table of functions.
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Returns the table of locations, with their lines.
    pub fn locations(&self) -> &Locations {
        &self.locations
    }

    /// Returns the key that identifies a binary wherever it is mapped: the size in bytes, rounded up to pages of 4 KiB;
    /// the file offset; and the build ID or else the file name. pprof uses the same key.
    pub fn mapping_key(&self, mapping: u32) -> (u64, u64, StringId) {
        let m = &self.mappings[mapping as usize];
        (m.size(), m.offset, if self.string(m.build_id).is_empty() { m.file } else { m.build_id })
    }

    /// Returns the mapped binaries.
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// Returns the number of strings.
    pub fn n_strings(&self) -> usize {
        self.strings.len()
    }

    /// Returns true if any sample has a label in the file. Empty labels and the label [`BASE_LABEL`] count as well.
    pub fn has_labels(&self) -> bool {
        self.has_labels
    }

    /// Returns the file of a location's mapping; empty if the location is not mapped.
    pub fn mapping_file(&self, location: u32) -> StringId {
        match self.locations.mapping[location as usize] {
            NONE => StringId::EMPTY,
            m => self.mappings[m as usize].file,
        }
    }
}
