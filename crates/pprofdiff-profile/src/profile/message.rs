//! Encodes profile messages. A message contains samples, the table records that these samples need, and the first
//! mapping. Its fields follow the order that Go's encoder uses.
//!
//! Records are numbered in the order of first use, like Go's own writers do. The bytes are therefore deterministic, the
//! ids are as small as possible, and records that are used together are stored together, which compresses well.
//!
//! All buffers are reused from one message to the next, so a sequence of messages allocates only for its largest
//! message.

use super::wire::put;
use super::{Header, Label, LabelValue, Mapping, NONE, Numbers, Profile, StringId};
use crate::cancellation::Checkpointer;

/// The number of a stack's locations to encode at a time.
const STACK_CHUNK: usize = 1024;

/// Tables of the records that samples refer to, addressed by dense indexes.
pub trait Tables {
    /// Returns the numbers of strings, functions, mappings and locations.
    fn sizes(&self) -> [usize; 4];
    /// Returns a string's bytes.
    fn string(&self, id: StringId) -> &[u8];
    /// Returns a function's name, system name and file, and its first line.
    fn function(&self, index: u32) -> ([StringId; 3], i64);
    /// Returns a mapped binary.
    fn mapping(&self, index: u32) -> Mapping;
    /// Returns a location's mapping (or `NONE`), its address, and whether it is folded.
    fn location(&self, index: u32) -> (u32, u64, bool);
    /// Calls `f` with the function, line and column of each line of a location, innermost first.
    fn for_each_line(&self, location: u32, f: impl FnMut(u32, i64, i64));
}

impl Tables for Profile {
    fn sizes(&self) -> [usize; 4] {
        [self.n_strings(), self.n_functions(), self.mappings.len(), self.n_locations()]
    }

    fn string(&self, id: StringId) -> &[u8] {
        self.string(id)
    }

    fn function(&self, index: u32) -> ([StringId; 3], i64) {
        let (f, i) = (&self.functions, index as usize);
        ([f.name[i], f.system_name[i], f.file[i]], f.start_line[i])
    }

    fn mapping(&self, index: u32) -> Mapping {
        self.mappings[index as usize]
    }

    fn location(&self, index: u32) -> (u32, u64, bool) {
        let (l, i) = (&self.locations, index as usize);
        (l.mapping[i], l.address[i], l.folded[i])
    }

    fn for_each_line(&self, location: u32, mut f: impl FnMut(u32, i64, i64)) {
        let l = &self.locations;
        for i in l.lines(location).map(|line| line as usize) {
            f(l.line_function[i], l.line_number[i], l.line_column[i]);
        }
    }
}

/// IDs of locations, each stored in its encoded form: up to five bytes of varint in the low bytes, and their count in
/// the highest byte. Writing a stack therefore takes one load and one store per location, without a branch on the
/// length.
#[derive(Default)]
struct LocationIds {
    codes: Vec<u64>,
    used: Vec<u32>,
}

impl LocationIds {
    fn reset(&mut self, n: usize) {
        if n > self.codes.len() {
            self.codes = vec![0; n];
        } else {
            self.used.iter().for_each(|&index| self.codes[index as usize] = 0);
        }
        self.used.clear();
    }

    #[inline(always)]
    fn get(&mut self, index: u32) -> u64 {
        match self.codes[index as usize] {
            0 => self.assign(index),
            code => code,
        }
    }

    #[cold]
    fn assign(&mut self, index: u32) -> u64 {
        self.used.push(index);
        let (mut id, mut code, mut len) = (self.used.len() as u64, 0, 0);
        while id >= 0x80 {
            code |= (id & 0x7f | 0x80) << (8 * len);
            (id, len) = (id >> 7, len + 1);
        }
        code |= id << (8 * len) | (len + 1) << 56;
        self.codes[index as usize] = code;
        code
    }
}

/// The message fields that the tables do not determine.
#[derive(Debug)]
pub struct About<'a> {
    /// The header of the profile.
    pub header: &'a Header,
    /// Replaces the header's duration.
    pub duration_nanos: i64,
    /// An additional comment, after the header's comments.
    pub comment: Option<&'a str>,
}

/// An encoder that writes messages one after another and reuses its buffers.
///
/// Call [`MessageWriter::begin`] first. For each stack, call [`MessageWriter::begin_stack`], then
/// [`MessageWriter::location`] for its locations and [`MessageWriter::sample`] for its samples. Call
/// [`MessageWriter::finish`] last. Pass the same tables to `begin` and `finish`; all indexes refer to these tables.
#[derive(Default)]
pub struct MessageWriter {
    out: Vec<u8>,
    /// The record that is being encoded.
    message: Vec<u8>,
    /// A nested message or the numbers of a repeated field, encoded before their length is known.
    inner: Vec<u8>,
    /// The encoded ids of the current stack's locations. Only the first `stack_len` bytes are valid, and they hold
    /// `n_locations` ids.
    stack: Vec<u8>,
    stack_len: usize,
    n_locations: usize,
    strings: Numbers,
    functions: Numbers,
    mappings: Numbers,
    locations: LocationIds,
    pace: Checkpointer,
}

impl std::fmt::Debug for MessageWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MessageWriter").finish_non_exhaustive()
    }
}

impl MessageWriter {
    /// Begins a message with its sample types, as (type, unit).
    pub fn begin(&mut self, tables: &impl Tables, types: impl Iterator<Item = (StringId, StringId)>) {
        self.out.clear();
        let [strings, functions, mappings, locations] = tables.sizes();
        self.strings.reset(strings);
        self.functions.reset(functions);
        self.mappings.reset(mappings);
        self.locations.reset(locations);
        self.strings.get(0);
        for (kind, unit) in types {
            self.value_type(kind, unit);
            self.end_record(1);
        }
        if mappings > 0 {
            // By convention the first mapping is the main binary, so it is kept even if no location uses it.
            self.mappings.get(0);
        }
    }

    /// Appends the current record to the output as a field, and clears the record.
    fn end_record(&mut self, field: u32) {
        put::bytes(&mut self.out, field, &self.message);
        self.message.clear();
    }

    fn value_type(&mut self, kind: StringId, unit: StringId) {
        put::int(&mut self.message, 1, self.strings.get(kind.0));
        put::int(&mut self.message, 2, self.strings.get(unit.0));
    }

    /// Begins a stack. The samples that follow have its locations.
    #[inline(always)]
    pub fn begin_stack(&mut self) {
        (self.stack_len, self.n_locations) = (0, 0);
    }

    /// Adds the next location of the stack, from leaf to root.
    #[inline(always)]
    pub fn location(&mut self, index: u32) {
        let code = self.locations.get(index);
        if self.stack_len + 8 > self.stack.len() {
            self.stack.resize(2 * self.stack.len() + 64, 0);
        }
        self.stack[self.stack_len..self.stack_len + 8].copy_from_slice(&code.to_le_bytes());
        self.stack_len += (code >> 56) as usize;
        self.n_locations += 1;
    }

    /// Begins a stack with the given locations, from leaf to root.
    #[inline]
    pub fn stack(&mut self, locations: &[u32]) {
        let ids = &mut self.locations;
        let mut len = 0;
        for chunk in locations.chunks(STACK_CHUNK) {
            // Each id is written as eight bytes, of which only its own bytes count. A chunk bounds the bytes that are
            // reserved too much.
            let needed = len + 8 * chunk.len();
            if needed > self.stack.len() {
                self.stack.resize(needed, 0);
            }
            let mut rest = &mut self.stack[len..needed];
            for &location in chunk {
                let code = ids.get(location);
                // The buffer is large enough, so the loop never ends early.
                let Some(bytes) = rest.first_chunk_mut() else { break };
                *bytes = code.to_le_bytes();
                rest = &mut rest[(code >> 56) as usize..];
            }
            len = needed - rest.len();
        }
        self.stack_len = len;
        self.n_locations = locations.len();
    }

    /// Adds a sample with the current stack.
    pub fn sample(&mut self, values: &[i64], labels: impl Iterator<Item = Label>) {
        self.pace.step(1 + self.n_locations / 16);
        repeated(&mut self.message, 1, self.n_locations, &self.stack[..self.stack_len]);
        self.inner.clear();
        put::varints(&mut self.inner, values);
        repeated(&mut self.message, 2, values.len(), &self.inner);
        for label in labels {
            self.inner.clear();
            put::int(&mut self.inner, 1, self.strings.get(label.key.0));
            match label.value {
                LabelValue::Text(text) => put::int(&mut self.inner, 2, self.strings.get(text.0)),
                LabelValue::Number(value, unit) => {
                    put::int(&mut self.inner, 3, value as u64);
                    put::int(&mut self.inner, 4, self.strings.get(unit.0));
                }
            }
            put::bytes(&mut self.message, 3, &self.inner);
        }
        self.end_record(2);
    }

    /// Ends the message with the tables and the remaining fields.
    pub fn finish(&mut self, tables: &impl Tables, about: &About<'_>) {
        self.tables(tables);
        self.strings_and_header(tables, about);
    }

    /// Returns the last finished message.
    pub fn ended(&self) -> &[u8] {
        &self.out
    }

    /// Returns the last finished message and drops the writer's other buffers.
    pub fn into_message(self) -> Vec<u8> {
        self.out
    }

    /// Writes mappings, locations and functions. Mappings come before the locations that refer to them, so this
    /// function assigns all mapping ids first.
    fn tables(&mut self, tables: &impl Tables) {
        for &location in &self.locations.used {
            let (mapping, ..) = tables.location(location);
            if mapping != NONE {
                self.mappings.get(mapping);
            }
        }
        for i in 0..self.mappings.used.len() {
            let m = tables.mapping(self.mappings.used[i]);
            let (file, build_id) = (self.strings.get(m.file.0), self.strings.get(m.build_id.0));
            for (field, v) in [(1, i as u64 + 1), (2, m.start), (3, m.limit), (4, m.offset), (5, file), (6, build_id)] {
                put::int(&mut self.message, field, v);
            }
            for bit in 0..4 {
                put::int(&mut self.message, 7 + bit, u64::from(m.flags >> bit & 1));
            }
            self.end_record(3);
        }
        for i in 0..self.locations.used.len() {
            let location = self.locations.used[i];
            let (mapping, address, folded) = tables.location(location);
            let mapping = if mapping == NONE { 0 } else { self.mappings.get(mapping) + 1 };
            put::int(&mut self.message, 1, i as u64 + 1);
            put::int(&mut self.message, 2, mapping);
            put::int(&mut self.message, 3, address);
            tables.for_each_line(location, |function, line, column| {
                self.inner.clear();
                put::int(&mut self.inner, 1, self.functions.get(function) + 1);
                put::int(&mut self.inner, 2, line as u64);
                put::int(&mut self.inner, 3, column as u64);
                put::bytes(&mut self.message, 4, &self.inner);
            });
            put::int(&mut self.message, 5, u64::from(folded));
            self.end_record(4);
            self.pace.step(1);
        }
        for i in 0..self.functions.used.len() {
            let (strings, start_line) = tables.function(self.functions.used[i]);
            put::int(&mut self.message, 1, i as u64 + 1);
            for (field, string) in (2..).zip(strings) {
                put::int(&mut self.message, field, self.strings.get(string.0));
            }
            put::int(&mut self.message, 5, start_line as u64);
            self.end_record(5);
        }
    }

    fn strings_and_header(&mut self, tables: &impl Tables, about: &About<'_>) {
        let h = about.header;
        // Number all strings before the string table is written, because the table comes before the fields that refer
        // to these strings.
        let [drop_frames, keep_frames, default_sample_type, doc_url] =
            [h.drop_frames, h.keep_frames, h.default_sample_type, h.doc_url].map(|s| self.strings.get(s.0));
        if let Some(t) = h.period_type {
            self.value_type(t.kind, t.unit);
        }
        self.inner.clear();
        for &comment in &h.comments {
            put::varint(&mut self.inner, self.strings.get(comment.0));
        }
        if about.comment.is_some() {
            put::varint(&mut self.inner, self.strings.used.len() as u64);
        }
        let out = &mut self.out;
        for &s in &self.strings.used {
            put::bytes(out, 6, tables.string(StringId(s)));
        }
        if let Some(comment) = about.comment {
            put::bytes(out, 6, comment.as_bytes());
        }
        put::int(out, 7, drop_frames);
        put::int(out, 8, keep_frames);
        put::int(out, 9, h.time_nanos as u64);
        put::int(out, 10, about.duration_nanos as u64);
        if h.period_type.is_some() {
            put::bytes(out, 11, &self.message);
            self.message.clear();
        }
        put::int(out, 12, h.period as u64);
        repeated(out, 13, h.comments.len() + usize::from(about.comment.is_some()), &self.inner);
        put::int(out, 14, default_sample_type);
        put::int(out, 15, doc_url);
    }
}

/// Writes a repeated integer field with `n` numbers that are already encoded as varints. The field is packed, except
/// for a single number, which is smaller unpacked.
fn repeated(out: &mut Vec<u8>, field: u32, n: usize, varints: &[u8]) {
    match n {
        0 => {}
        1 => {
            put::varint(out, u64::from(field << 3));
            out.extend_from_slice(varints);
        }
        _ => put::bytes(out, field, varints),
    }
}
