//! A part of one profile as a message: chosen samples with values of one's own, and only what they refer to.
//!
//! Records keep their content and are numbered in the order of first use, as Go's own writers do: the bytes are
//! deterministic, ids are as small as can be, and things that are used together lie together, which compresses well.
//! All buffers are kept from one message to the next, so a series of messages allocates for the largest alone.

use super::wire::put;
use super::{LabelValue, NONE, Profile, Sample, StringId};

/// Numbers the entries of a table in the order of first use.
#[derive(Default)]
struct Numbers {
    of: Vec<u32>,
    used: Vec<u32>,
}

impl Numbers {
    fn reset(&mut self, n: usize) {
        self.of.clear();
        self.of.resize(n, NONE);
        self.used.clear();
    }

    /// The number of an entry, from 0.
    #[inline]
    fn get(&mut self, index: u32) -> u64 {
        let number = &mut self.of[index as usize];
        if *number == NONE {
            *number = self.used.len() as u32;
            self.used.push(index);
        }
        u64::from(*number)
    }
}

/// Numbers locations, and keeps each number as the bytes it is written as: up to five in the low bytes and their count
/// in the highest, so that writing a stack is a load and a store a location, without a branch on the length.
#[derive(Default)]
struct LocationIds {
    codes: Vec<u64>,
    used: Vec<u32>,
}

impl LocationIds {
    fn reset(&mut self, n: usize) {
        self.codes.clear();
        self.codes.resize(n, 0);
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

/// What the message says of itself; the other fields are those of the profile it is a part of.
pub(crate) struct About<'a> {
    pub duration_nanos: i64,
    /// Follows the profile's own comments.
    pub comment: &'a str,
}

/// Writes one message after the other: [`Extract::begin`], any number of [`Extract::sample`], [`Extract::finish`].
#[derive(Default)]
pub(crate) struct Extract {
    out: Vec<u8>,
    /// The record that is being built, and what is inside it.
    message: Vec<u8>,
    inner: Vec<u8>,
    stack: Vec<u8>,
    strings: Numbers,
    functions: Numbers,
    mappings: Numbers,
    locations: LocationIds,
}

impl Extract {
    /// Begins a message with the sample types of `p`.
    pub(crate) fn begin(&mut self, p: &Profile) {
        self.out.clear();
        self.strings.reset(p.n_strings());
        self.functions.reset(p.n_functions());
        self.mappings.reset(p.mappings().len());
        self.locations.reset(p.n_locations());
        self.strings.get(0);
        for t in p.value_types() {
            self.value_type(1, t.kind, t.unit);
        }
        if !p.mappings().is_empty() {
            // By convention the first mapping is the main binary, so it stays whether it is used or not.
            self.mappings.get(0);
        }
    }

    fn string(&mut self, id: StringId) -> u64 {
        self.strings.get(id.0)
    }

    /// Appends the record as a field and clears it.
    fn end_record(&mut self, field: u32) {
        put::bytes(&mut self.out, field, &self.message);
        self.message.clear();
    }

    fn value_type(&mut self, field: u32, kind: StringId, unit: StringId) {
        for (number, id) in [(1, kind), (2, unit)] {
            let id = self.string(id);
            put::int(&mut self.message, number, id);
        }
        self.end_record(field);
    }

    /// Adds a sample of the profile that the message was begun with.
    pub(crate) fn sample(&mut self, sample: &Sample<'_>, values: &[i64]) {
        let (locations, stack) = (&mut self.locations, &mut self.stack);
        let (mut len, mut n) = (0, 0);
        sample.each_location(|l| {
            let code = locations.get(l);
            if len + 8 > stack.len() {
                stack.resize(2 * stack.len() + 64, 0);
            }
            stack[len..len + 8].copy_from_slice(&code.to_le_bytes());
            len += (code >> 56) as usize;
            n += 1;
        });
        repeated(&mut self.message, 1, n, &self.stack[..len]);
        self.inner.clear();
        values.iter().for_each(|&v| put::varint(&mut self.inner, v as u64));
        repeated(&mut self.message, 2, values.len(), &self.inner);
        for label in sample.all_labels() {
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

    /// Ends the message with the tables and the other fields.
    pub(crate) fn finish(&mut self, p: &Profile, about: &About<'_>) {
        self.tables(p);
        self.strings_and_header(p, about);
    }

    /// The message that was ended last.
    pub(crate) fn written(&self) -> &[u8] {
        &self.out
    }

    pub(crate) fn into_written(self) -> Vec<u8> {
        self.out
    }

    /// Mappings, locations, functions. Mappings are written before the locations that refer to them, so those are
    /// numbered first.
    fn tables(&mut self, p: &Profile) {
        let columns = p.locations();
        for &location in &self.locations.used {
            let mapping = columns.mapping[location as usize];
            if mapping != NONE {
                self.mappings.get(mapping);
            }
        }
        for i in 0..self.mappings.used.len() {
            let m = p.mappings()[self.mappings.used[i] as usize];
            let (file, build_id) = (self.string(m.file), self.string(m.build_id));
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
            let l = location as usize;
            let mapping = if columns.mapping[l] == NONE { 0 } else { self.mappings.get(columns.mapping[l]) + 1 };
            put::int(&mut self.message, 1, i as u64 + 1);
            put::int(&mut self.message, 2, mapping);
            put::int(&mut self.message, 3, columns.address[l]);
            for line in columns.lines(location) {
                let line = line as usize;
                self.inner.clear();
                put::int(&mut self.inner, 1, self.functions.get(columns.line_function[line]) + 1);
                put::int(&mut self.inner, 2, columns.line_number[line] as u64);
                put::int(&mut self.inner, 3, columns.line_column[line] as u64);
                put::bytes(&mut self.message, 4, &self.inner);
            }
            put::int(&mut self.message, 5, u64::from(columns.folded[l]));
            self.end_record(4);
        }
        let columns = p.functions();
        for i in 0..self.functions.used.len() {
            let f = self.functions.used[i] as usize;
            let strings = [columns.name[f], columns.system_name[f], columns.file[f]].map(|s| self.string(s));
            put::int(&mut self.message, 1, i as u64 + 1);
            for (field, string) in (2..).zip(strings) {
                put::int(&mut self.message, field, string);
            }
            put::int(&mut self.message, 5, columns.start_line[f] as u64);
            self.end_record(5);
        }
    }

    fn strings_and_header(&mut self, p: &Profile, about: &About<'_>) {
        let h = p.header();
        // The strings' numbers must be taken before the table is written, which comes first.
        let [drop_frames, keep_frames, default_sample_type, doc_url] =
            [h.drop_frames, h.keep_frames, h.default_sample_type, h.doc_url].map(|s| self.strings.get(s));
        let period_type = h.period_type.map(|t| (self.string(t.kind), self.string(t.unit)));
        self.inner.clear();
        for &comment in &h.comments {
            put::varint(&mut self.inner, self.strings.get(comment.0));
        }
        put::varint(&mut self.inner, self.strings.used.len() as u64);
        let out = &mut self.out;
        for &s in &self.strings.used {
            put::bytes(out, 6, p.string(StringId(s)));
        }
        put::bytes(out, 6, about.comment.as_bytes());
        put::int(out, 7, drop_frames);
        put::int(out, 8, keep_frames);
        put::int(out, 9, h.time_nanos as u64);
        put::int(out, 10, about.duration_nanos as u64);
        if let Some((kind, unit)) = period_type {
            put::int(&mut self.message, 1, kind);
            put::int(&mut self.message, 2, unit);
            put::bytes(out, 11, &self.message);
            self.message.clear();
        }
        put::int(out, 12, h.period as u64);
        repeated(out, 13, h.comments.len() + 1, &self.inner);
        put::int(out, 14, default_sample_type);
        put::int(out, 15, doc_url);
    }
}

/// A repeated integer field of `n` numbers that are varints already: packed, unless that takes more room.
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
