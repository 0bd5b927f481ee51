//! One profile: a single inflated buffer, and columns that point into it.
//!
//! ```text
//! input -> inflate -> decode (over wire) -> Profile -> samples, encode, merge
//! ```
//!
//! What a [`Profile`] holds is validated as a whole before loading returns, so nothing that works on
//! one can fail on its content later. Strings are slices of the inflated buffer. The tables of
//! functions, locations and lines are columns with dense indexes from 0; samples stay on the wire
//! and are read from there when they are needed ([`Profile::samples`]), which costs one pass over
//! varints and saves a copy several times the size of the tables. Nothing is allocated per sample,
//! location or string.

pub mod builder;
pub mod columns;
mod decode;
mod encode;
mod ids;
mod inflate;
mod input;
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
pub(crate) mod wire;
#[cfg(any(test, all(feature = "ruzstd", not(feature = "zstd"))))]
mod zstd_in_rust;

use std::path::Path;

pub(crate) use columns::*;
pub use encode::{Compression, WriteOptions, pack};
pub(crate) use inflate::{inflate_slice, is_packed, unzstd};
pub use input::LoadOptions;
pub use memo::Memo;
pub(crate) use memo::Numbers;
pub(crate) use merge::merge_as;
pub use merge::{Fields, Merger, Part, Selection, merge, merge_weighted};
pub(crate) use message::{About, MessageWriter, Tables};
pub use sampled::Sampled;
pub(crate) use samples::{Label, LabelValue, Sample};
pub(crate) use symbolize::Symbolizer;
pub use symbolize::{FoundLine, Text};
pub use types::{CommonType, common_types, common_types_of_sides, default_type};

#[cfg(feature = "binary")]
use crate::binary::Binaries;
use crate::error::{Error, ErrorKind, Result};
use crate::random::HashSet;
use crate::redact::Secrets;
use crate::window::TimeWindow;

/// A loaded, validated profile.
///
/// Shared between threads freely; every view of it reads the same buffer. Load one with
/// [`Profile::open`], [`Profile::from_bytes`] or [`Profile::from_reader`].
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
    /// The part of `data` that holds all samples (and perhaps other fields between them).
    samples: std::ops::Range<usize>,
    n_samples: usize,
    totals: Vec<Total>,
    header: Header,
    /// Some sample carries [`BASE_LABEL`]: the profile is a diff that was written.
    is_diff: bool,
    /// Its format does not show whether it has two sides.
    may_be_diff: bool,
    has_labels: bool,
    /// True if each sample is locations, values, labels, in this order and nothing else.
    usual_samples: bool,
    /// What a user should know of how it was loaded.
    notes: Vec<String>,
    /// By sample type: the samples that the reader saw; empty if the format does not list them.
    sampled: Vec<Sampled>,
    /// The part of the recording that was read.
    window: Option<TimeWindow>,
    /// Where the binaries of its mappings are.
    #[cfg(feature = "binary")]
    binaries: Binaries,
}

/// Describes folded stacks that look like a diff.
pub(crate) const DOUBTFUL_SIDES: &str = "each line ends in two numbers, as difffolded.pl writes a diff, and the second one was \
    read; --input-format folded2 reads both as base and new, and --input-format folded says that there is one side";

impl Profile {
    /// Loads a file: gzip, zstd or raw, in any format of [`InputFormat`](crate::input::InputFormat).
    ///
    /// # Errors
    /// The operating system's, and everything that makes a profile invalid, with the file's name, the
    /// record, the byte offset in the inflated data and what to do about it.
    pub fn open(path: impl AsRef<Path>, options: &LoadOptions) -> Result<Profile> {
        input::open(path.as_ref(), options)
    }

    /// Loads a profile from memory, as [`Profile::open`] a file's content. `name` stands for it in errors and reports.
    ///
    /// # Errors
    /// As [`Profile::open`].
    pub fn from_bytes(name: &str, bytes: &[u8], options: &LoadOptions) -> Result<Profile> {
        input::from_bytes(name, bytes, options)
    }

    /// Loads a profile from a reader, to its end, as [`Profile::open`] a file.
    ///
    /// # Errors
    /// As [`Profile::open`].
    pub fn from_reader(name: &str, reader: impl std::io::Read, options: &LoadOptions) -> Result<Profile> {
        input::from_reader(name, reader, options)
    }

    /// The file's name, or the name that the caller gave.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The sample types as (type, unit), in the file's order.
    pub fn sample_types(&self) -> Vec<(String, String)> {
        self.sample_types.iter().map(|t| (self.text(t.kind), self.text(t.unit))).collect()
    }

    /// The sample type that a view shows unless told otherwise: the file's default if it names one, else the last.
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

    /// Number of samples, as written (duplicates count).
    pub fn n_samples(&self) -> usize {
        self.n_samples
    }

    /// Number of locations.
    pub fn n_locations(&self) -> usize {
        self.locations.len()
    }

    /// Number of functions.
    pub fn n_functions(&self) -> usize {
        self.functions.name.len()
    }

    /// Size of the inflated message in bytes.
    pub fn inflated_size(&self) -> usize {
        self.data.len()
    }

    /// When the profile was taken, in nanoseconds since 1970; 0 if it does not say.
    pub fn time_nanos(&self) -> i64 {
        self.header.time_nanos
    }

    /// For how long it was taken, in nanoseconds; 0 if it does not say.
    pub fn duration_nanos(&self) -> i64 {
        self.header.duration_nanos
    }

    /// The period's type and unit, if there is one.
    pub fn period_type(&self) -> Option<(String, String)> {
        self.header.period_type.map(|t| (self.text(t.kind), self.text(t.unit)))
    }

    /// Events between two samples, in the unit of [`Profile::period_type`].
    pub fn period(&self) -> i64 {
        self.header.period
    }

    /// Free text that the producer left.
    pub fn comments(&self) -> Vec<String> {
        self.header.comments.iter().map(|&c| self.text(c)).collect()
    }

    /// A link to documentation of the profile's type; empty if there is none.
    pub fn doc_url(&self) -> String {
        self.text(self.header.doc_url)
    }

    /// The file names of the mapped binaries, in the file's order.
    pub fn mapping_files(&self) -> Vec<String> {
        self.mappings.iter().map(|m| self.text(m.file)).collect()
    }

    /// Sum of the magnitudes of a sample type's values, before any filter.
    pub fn total(&self, sample_type: usize) -> Option<i64> {
        self.totals.get(sample_type).map(|t| t.magnitude)
    }

    /// True if this is a diff that was written as a profile (its base's samples are labelled).
    pub fn is_diff(&self) -> bool {
        self.is_diff
    }

    /// Returns true if this profile was read as one side and looks like a diff: folded stacks whose lines all end in two
    /// numbers.
    pub fn may_be_diff(&self) -> bool {
        self.may_be_diff
    }

    /// What a user should know about the input before trusting a view of it.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.notes.iter().map(|note| format!("{}: {note}", self.name)).collect();
        warnings.extend(self.may_be_diff.then(|| format!("{}: {DOUBTFUL_SIDES}", self.name)));
        warnings.extend(self.names_warning().map(|warning| format!("{}: {warning}", self.name)));
        // Rare, and without a warning a column would be missing silently.
        let mut seen: HashSet<_> = HashSet::default();
        if let Some(twice) = self.sample_types.iter().find(|t| !seen.insert(self.string(t.kind))) {
            let kind = self.text(twice.kind);
            warnings.push(format!("{}: sample type {kind} occurs more than once; the first one is shown", self.name));
        }
        warnings
    }

    /// A mapped binary as errors name it: `/usr/bin/x, build id 1234`, as far as it is known.
    pub fn mapping_words(&self, mapping: &Mapping) -> String {
        let (file, build_id) = (self.text(mapping.file), self.text(mapping.build_id));
        let file = if file.is_empty() { "a binary without a name" } else { &file };
        if build_id.is_empty() { file.to_owned() } else { format!("{file}, build id {build_id}") }
    }

    /// The same profile, with what else a user should know of how it was loaded.
    pub(crate) fn with_notes(mut self, mut notes: Vec<String>) -> Self {
        self.notes.append(&mut notes);
        self
    }

    /// Marks the profile as one that looks like a diff ([`Profile::may_be_diff`]).
    pub(crate) fn with_doubtful_sides(self) -> Self {
        Profile { may_be_diff: true, ..self }
    }

    /// Overwrites the secrets of a request with asterisks in this profile.
    pub(crate) fn without(mut self, secrets: &Secrets) -> Self {
        secrets.mask(&mut self.data);
        for text in self.notes.iter_mut().chain([&mut self.name]) {
            *text = secrets.redact(text).into_owned();
        }
        self
    }

    /// The same profile, as this part of a recording: of a copy, which has no times any more.
    pub fn with_window(self, window: Option<TimeWindow>) -> Self {
        Profile { window, ..self }
    }

    /// The same profile, with what a message does not say, of the profile that it is a part of: which part of the recording
    /// was read, and where binaries are.
    pub fn with_context_of(self, whole: &Profile) -> Self {
        Profile {
            window: whole.window.clone(),
            #[cfg(feature = "binary")]
            binaries: whole.binaries.clone(),
            ..self
        }
    }

    /// The part of the recording that was read, if not all of it was; as [`LoadOptions`] had it.
    pub fn window(&self) -> Option<&TimeWindow> {
        self.window.as_ref()
    }

    /// The same profile, with where the binaries of its mappings are.
    #[cfg(feature = "binary")]
    pub(crate) fn with_binaries(self, binaries: Binaries) -> Self {
        Profile { binaries, ..self }
    }

    /// Where the binaries of its mappings are, as [`LoadOptions`] had it.
    #[cfg(feature = "binary")]
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// Refuses a written diff where profiles are added up or subtracted: it is both sides in one, so any sum with it is
    /// wrong.
    pub fn one_sided(&self) -> Result<()> {
        if !self.is_diff {
            return Ok(());
        }
        let detail = "this is a written diff: it has both sides in it, so it can't be a side or a snapshot; show it by \
                      itself, or give the profiles that it was made of";
        Err(Error::new(ErrorKind::Incompatible, detail).in_input(&self.name))
    }

    /// The bytes of a string.
    pub fn string(&self, id: StringId) -> &[u8] {
        let at = self.strings[id.0 as usize] as usize;
        match wire::varint(&self.data[at..]) {
            Some((len, n)) => &self.data[at + n..at + n + len as usize],
            None => &[],
        }
    }

    /// The inflated message, which all strings are slices of.
    pub fn buffer(&self) -> &[u8] {
        &self.data
    }

    /// A string for display: what is not UTF-8 is replaced.
    pub fn text(&self, id: StringId) -> String {
        String::from_utf8_lossy(self.string(id)).into_owned()
    }

    /// Everything of the message that is not a table.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The sample types as strings' numbers, in the file's order.
    pub fn value_types(&self) -> &[ValueType] {
        &self.sample_types
    }

    /// The sums of each sample type.
    pub fn totals(&self) -> &[Total] {
        &self.totals
    }

    /// The table of functions.
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// The table of locations, with their lines.
    pub fn locations(&self) -> &Locations {
        &self.locations
    }

    /// What tells mapped binaries apart, wherever they are mapped: size in pages, offset, and the build id or else the
    /// file. pprof's key.
    pub fn mapping_key(&self, mapping: u32) -> (u64, u64, StringId) {
        let m = &self.mappings[mapping as usize];
        (m.size(), m.offset, if self.string(m.build_id).is_empty() { m.file } else { m.build_id })
    }

    /// The mapped binaries.
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// Number of strings.
    pub fn n_strings(&self) -> usize {
        self.strings.len()
    }

    /// True if a sample has labels.
    pub fn has_labels(&self) -> bool {
        self.has_labels
    }

    /// The file of a location's mapping; empty if it has none.
    pub fn mapping_file(&self, location: u32) -> StringId {
        match self.locations.mapping[location as usize] {
            NONE => StringId::EMPTY,
            m => self.mappings[m as usize].file,
        }
    }
}
