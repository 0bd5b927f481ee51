//! Builds profiles record by record. Readers of other formats (such as `format/folded.rs`), other tools and tests use
//! this module.
//!
//! Strings, functions and locations are interned, so a caller may add equal records repeatedly. Mappings and samples
//! are kept as given. [`ProfileBuilder::build`] encodes a message and loads it, so a built profile passes the same
//! checks as a file. Records that no sample uses are omitted, except for the first mapping.

use super::message::{About, MessageWriter, Tables};
use super::{Header, Label, Mapping, NONE, Profile, Sampled, StringId, ValueType};
use crate::cancellation::Checkpointer;
use crate::error::{Error, Result};
use crate::interner::{Interner, Sequences};
use crate::random::RandomState;

/// The ID of a function in one [`ProfileBuilder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FunctionId(u32);

/// The ID of a mapping in one [`ProfileBuilder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MappingId(u32);

/// The ID of a location in one [`ProfileBuilder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LocationId(#[doc(hidden)] pub u32);

/// One line of a location: a function, and a position in its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct BuilderLine {
    /// The function.
    pub function: FunctionId,
    /// The line number; 0 if unknown.
    pub line: i64,
    /// The column; 0 if unknown.
    pub column: i64,
}

impl BuilderLine {
    /// Sets the column.
    #[must_use]
    pub fn with_column(mut self, column: i64) -> Self {
        self.column = column;
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct BuilderFunction {
    name: StringId,
    system_name: StringId,
    file: StringId,
    start_line: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct BuilderLocation {
    /// The index of the mapping; [`NONE`] if the location is not mapped.
    mapping: u32,
    address: u64,
    lines: u32,
}

/// A builder for a [`Profile`]. IDs are only valid in the builder that returned them. Another builder rejects them, or
/// uses them for different records.
///
/// ```
/// use pprofdiff_profile::builder::ProfileBuilder;
///
/// # fn main() -> pprofdiff_profile::Result<()> {
/// let mut b = ProfileBuilder::new();
/// b.sample_type("cpu", "nanoseconds");
/// let function = b.function("main.run", "run.go", 0);
/// let location = b.location(None, 0, &[b.line(function, 12)])?;
/// b.sample(&[location], &[10_000_000], &[])?;
/// let profile = b.build("made.pb.gz")?;
/// assert_eq!(profile.total(0), Some(10_000_000));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ProfileBuilder {
    strings: Sequences<u8, RandomState>,
    types: Vec<(StringId, StringId)>,
    mappings: Vec<Mapping>,
    functions: Interner<BuilderFunction, RandomState>,
    lines: Sequences<BuilderLine, RandomState>,
    locations: Interner<BuilderLocation, RandomState>,
    header: Header,
    samples: Vec<SampleEnds>,
    stacks: Vec<u32>,
    values: Vec<i64>,
    labels: Vec<Label>,
    sampled: Vec<Sampled>,
    pace: Checkpointer,
}

/// The ends of a sample's parts in the builder's arrays.
#[derive(Debug, Clone, Copy, Default)]
struct SampleEnds {
    stack: usize,
    values: usize,
    labels: usize,
}

impl Default for ProfileBuilder {
    fn default() -> ProfileBuilder {
        let mut strings = Sequences::default();
        // The first entry of every string table must be empty.
        strings.number(b"");
        ProfileBuilder {
            strings,
            types: Vec::new(),
            mappings: Vec::new(),
            functions: Interner::default(),
            lines: Sequences::default(),
            locations: Interner::default(),
            header: Header::default(),
            samples: Vec::new(),
            stacks: Vec::new(),
            values: Vec::new(),
            labels: Vec::new(),
            sampled: Vec::new(),
            pace: Checkpointer::default(),
        }
    }
}

impl ProfileBuilder {
    /// Creates a builder for an empty profile.
    pub fn new() -> ProfileBuilder {
        ProfileBuilder::default()
    }

    /// Returns the ID of a string for labels, mappings and headers. The string may contain any bytes.
    pub fn string(&mut self, text: impl AsRef<[u8]>) -> StringId {
        StringId(self.strings.number(text.as_ref()))
    }

    /// Adds a sample type, such as `("cpu", "nanoseconds")`. Every sample has a value for each sample type.
    pub fn sample_type(&mut self, kind: &str, unit: &str) {
        let t = (self.string(kind), self.string(unit));
        self.types.push(t);
    }

    /// Returns the fields outside the tables: times, period, comments, the default sample type. Create their strings
    /// with [`ProfileBuilder::string`].
    pub fn header(&mut self) -> &mut Header {
        &mut self.header
    }

    /// Sets the type and unit of the period, and the number of events between two samples.
    pub fn period(&mut self, kind: &str, unit: &str, period: i64) {
        let kind = ValueType { kind: self.string(kind), unit: self.string(unit) };
        (self.header.period_type, self.header.period) = (Some(kind), period);
    }

    /// Adds a mapped binary. The first mapping is the main binary.
    pub fn mapping(&mut self, mapping: Mapping) -> MappingId {
        self.mappings.push(mapping);
        MappingId(self.mappings.len() as u32 - 1)
    }

    /// Returns a mapping that was added, so that the caller can correct it.
    pub fn mapping_mut(&mut self, id: MappingId) -> Option<&mut Mapping> {
        self.mappings.get_mut(id.0 as usize)
    }

    /// Adds a function with its name, file and first line (0 if unknown).
    pub fn function(&mut self, name: impl AsRef<[u8]>, file: impl AsRef<[u8]>, start_line: i64) -> FunctionId {
        let name = name.as_ref();
        self.function_of_system(name, name, file.as_ref(), start_line)
    }

    /// Adds a function that has a different name in the linker's symbol table.
    #[doc(hidden)]
    pub fn function_of_system(&mut self, name: &[u8], system: &[u8], file: &[u8], start_line: i64) -> FunctionId {
        let [name, system_name, file] = [name, system, file].map(|text| self.string(text));
        FunctionId(self.functions.number(BuilderFunction { name, system_name, file, start_line }))
    }

    /// Returns a line of a function, without a column.
    pub fn line(&self, function: FunctionId, line: i64) -> BuilderLine {
        BuilderLine { function, line, column: 0 }
    }

    /// Adds a location with its address (0 if unknown) and its lines. The innermost inlined function comes first.
    ///
    /// # Errors
    /// Fails if this builder does not have the mapping or a function.
    pub fn location(&mut self, mapping: Option<MappingId>, address: u64, lines: &[BuilderLine]) -> Result<LocationId> {
        let is_own_mapping = mapping.is_none_or(|m| (m.0 as usize) < self.mappings.len());
        if !is_own_mapping || lines.iter().any(|l| l.function.0 as usize >= self.functions.values.len()) {
            return Err(foreign_id_error());
        }
        let lines = self.lines.number(lines);
        let location = BuilderLocation { mapping: mapping.map_or(NONE, |m| m.0), address, lines };
        Ok(LocationId(self.locations.number(location)))
    }

    /// Adds a sample with its locations (leaf first), one value per sample type, and labels.
    ///
    /// # Errors
    /// Fails if this builder does not have a location or string, or if the number of values differs from the number of
    /// sample types.
    pub fn sample(&mut self, locations: &[LocationId], values: &[i64], labels: &[Label]) -> Result<()> {
        if values.len() != self.types.len() {
            let (values, types) = (values.len(), self.types.len());
            return Err(Error::malformed(format!("a sample has {values} values, but there are {types} sample types")));
        }
        self.pace.step(1 + locations.len() / 16);
        let n_strings = self.strings.len();
        let strings = labels.iter().flat_map(|l| match l.value {
            super::LabelValue::Text(text) => [l.key, text],
            super::LabelValue::Number(_, unit) => [l.key, unit],
        });
        if locations.iter().any(|l| l.0 as usize >= self.locations.values.len())
            || strings.into_iter().any(|s| s.index() >= n_strings)
        {
            return Err(foreign_id_error());
        }
        self.stacks.extend(locations.iter().map(|l| l.0));
        self.values.extend_from_slice(values);
        self.labels.extend_from_slice(labels);
        self.samples.push(SampleEnds {
            stack: self.stacks.len(),
            values: self.values.len(),
            labels: self.labels.len(),
        });
        Ok(())
    }

    /// Sets statistics about the samples of a sample type (given by index), which a reader collects before it adds
    /// samples up by stack. They show how many samples a value represents.
    pub fn sampled(&mut self, sample_type: usize, sampled: Sampled) {
        if self.sampled.len() <= sample_type {
            self.sampled.resize(sample_type + 1, Sampled::default());
        }
        self.sampled[sample_type] = sampled;
    }

    /// Returns the number of samples so far.
    pub fn n_samples(&self) -> usize {
        self.samples.len()
    }

    /// Builds the profile and validates it. `name` identifies the profile in errors and reports.
    ///
    /// # Errors
    /// Fails if the profile is invalid.
    pub fn build(mut self, name: &str) -> Result<Profile> {
        let n_strings = self.strings.len();
        let h = &self.header;
        let period_type = h.period_type.map_or([StringId::EMPTY; 2], |t| [t.kind, t.unit]);
        let mappings = self.mappings.iter().flat_map(|m| [m.file, m.build_id]);
        let fixed = [h.drop_frames, h.keep_frames, h.default_sample_type, h.doc_url];
        let mut strings = fixed.into_iter().chain(period_type).chain(h.comments.iter().copied()).chain(mappings);
        if strings.any(|s| s.index() >= n_strings) {
            return Err(foreign_id_error().in_input(name));
        }
        let mut writer = MessageWriter::default();
        writer.begin(&self, self.types.iter().copied());
        let mut start = SampleEnds::default();
        for end in &self.samples {
            writer.begin_stack();
            self.stacks[start.stack..end.stack].iter().for_each(|&l| writer.location(l));
            let labels = self.labels[start.labels..end.labels].iter().copied();
            writer.sample(&self.values[start.values..end.values], labels);
            start = *end;
        }
        writer.finish(&self, &About { header: h, duration_nanos: h.duration_nanos, comment: None });
        let sampled = std::mem::take(&mut self.sampled);
        drop(self);
        let built = Profile::decode(name, writer.into_message()).map_err(|e| e.in_input(name))?;
        Ok(built.with_sampled(sampled))
    }
}

fn foreign_id_error() -> Error {
    Error::query("a record refers to a record that this builder does not have")
}

impl Tables for ProfileBuilder {
    fn sizes(&self) -> [usize; 4] {
        [self.strings.len(), self.functions.values.len(), self.mappings.len(), self.locations.values.len()]
    }

    fn string(&self, id: StringId) -> &[u8] {
        self.strings.get(id.0)
    }

    fn function(&self, index: u32) -> ([StringId; 3], i64) {
        let f = self.functions.values[index as usize];
        ([f.name, f.system_name, f.file], f.start_line)
    }

    fn mapping(&self, index: u32) -> Mapping {
        self.mappings[index as usize]
    }

    fn location(&self, index: u32) -> (u32, u64, bool) {
        let l = self.locations.values[index as usize];
        (l.mapping, l.address, false)
    }

    fn for_each_line(&self, location: u32, mut f: impl FnMut(u32, i64, i64)) {
        let lines = self.lines.get(self.locations.values[location as usize].lines);
        lines.iter().for_each(|l| f(l.function.0, l.line, l.column));
    }
}
