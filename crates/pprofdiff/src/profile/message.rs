//! A merge's result as a message: only what the remaining samples refer to, in Go's order of fields.
//!
//! Everything is numbered in the order of first use, so the bytes are deterministic, and things that are
//! used together lie together, which compresses well.

use super::NONE;
use super::merge::{MergedSample, Merger};
use super::wire::put;

/// The fields that are no tables; strings are indexes of [`Merger::strings`].
pub(super) struct MergedHeader {
    pub drop_frames: u32,
    pub keep_frames: u32,
    pub time_nanos: i64,
    pub duration_nanos: i64,
    pub period_type: Option<(u32, u32)>,
    pub period: i64,
    pub comments: Vec<u32>,
    pub default_sample_type: u32,
    pub doc_url: u32,
}

/// Numbers things in the order of first use.
pub(super) struct Order {
    ids: Vec<u32>,
    used: Vec<u32>,
}

impl Order {
    fn new(n: usize) -> Order {
        Order { ids: vec![NONE; n], used: Vec::new() }
    }

    /// The number of `index`, from 0.
    pub(super) fn get(&mut self, index: u32) -> u64 {
        let id = &mut self.ids[index as usize];
        if *id == NONE {
            *id = self.used.len() as u32;
            self.used.push(index);
        }
        u64::from(*id)
    }
}

/// The message that a merge becomes: only what the remaining samples refer to, in Go's order of fields.
pub(super) struct Output<'m, 'p> {
    merger: &'m Merger<'p>,
    pub out: Vec<u8>,
    /// The record that is being built, and what is inside it.
    message: Vec<u8>,
    inner: Vec<u8>,
    strings: Order,
    functions: Order,
    pub mappings: Order,
    locations: Order,
}

impl<'m, 'p> Output<'m, 'p> {
    pub(super) fn new(merger: &'m Merger<'p>) -> Self {
        let mut strings = Order::new(merger.strings.len());
        strings.get(0);
        Output {
            out: Vec::new(),
            message: Vec::new(),
            inner: Vec::new(),
            strings,
            functions: Order::new(merger.functions.len()),
            mappings: Order::new(merger.mappings.len()),
            locations: Order::new(merger.locations.len()),
            merger,
        }
    }

    /// Appends `message` as a field and clears it.
    fn end_record(&mut self, field: u32) {
        put::bytes(&mut self.out, field, &self.message);
        self.message.clear();
    }

    pub(super) fn value_type(&mut self, field: u32, kind: u32, unit: u32) {
        put::int(&mut self.message, 1, self.strings.get(kind));
        put::int(&mut self.message, 2, self.strings.get(unit));
        self.end_record(field);
    }

    pub(super) fn sample(&mut self, s: &MergedSample, values: &[i64]) {
        let ids = self.merger.stacks[s.locations.clone()].iter().map(|&l| self.locations.get(l) + 1);
        put::packed(&mut self.message, 1, ids, &mut self.inner);
        put::packed(&mut self.message, 2, values.iter().map(|&v| v as u64), &mut self.inner);
        for l in &self.merger.labels[s.labels.clone()] {
            self.inner.clear();
            put::int(&mut self.inner, 1, self.strings.get(l.key));
            if l.numeric {
                put::int(&mut self.inner, 3, l.value as u64);
                put::int(&mut self.inner, 4, self.strings.get(l.unit));
            } else {
                put::int(&mut self.inner, 2, self.strings.get(l.value as u32));
            }
            put::bytes(&mut self.message, 3, &self.inner);
        }
        self.end_record(2);
    }

    /// Mappings, locations and functions. Locations may use further mappings, so those are written
    /// after all locations were numbered.
    pub(super) fn tables(&mut self) {
        let merger = self.merger;
        for i in 0..self.locations.used.len() {
            let mapping = merger.locations[self.locations.used[i] as usize].mapping;
            if mapping != NONE {
                self.mappings.get(mapping);
            }
        }
        for i in 0..self.mappings.used.len() {
            let m = merger.mappings[self.mappings.used[i] as usize];
            let (file, build_id) = (self.strings.get(m.file), self.strings.get(m.build_id));
            for (field, v) in [(1, i as u64 + 1), (2, m.start), (3, m.limit), (4, m.offset), (5, file), (6, build_id)] {
                put::int(&mut self.message, field, v);
            }
            for bit in 0..4 {
                put::int(&mut self.message, 7 + bit, u64::from(m.flags >> bit & 1));
            }
            self.end_record(3);
        }
        for i in 0..self.locations.used.len() {
            let l = &merger.locations[self.locations.used[i] as usize];
            let mapping = if l.mapping == NONE { 0 } else { self.mappings.get(l.mapping) + 1 };
            put::int(&mut self.message, 1, i as u64 + 1);
            put::int(&mut self.message, 2, mapping);
            put::int(&mut self.message, 3, l.address);
            for line in &merger.lines[l.lines.clone()] {
                self.inner.clear();
                put::int(&mut self.inner, 1, self.functions.get(line.function) + 1);
                put::int(&mut self.inner, 2, line.number as u64);
                put::int(&mut self.inner, 3, line.column as u64);
                put::bytes(&mut self.message, 4, &self.inner);
            }
            put::int(&mut self.message, 5, u64::from(l.folded));
            self.end_record(4);
        }
        for i in 0..self.functions.used.len() {
            let f = merger.functions[self.functions.used[i] as usize];
            let strings = [f.name, f.system_name, f.file].map(|s| self.strings.get(s));
            put::int(&mut self.message, 1, i as u64 + 1);
            put::int(&mut self.message, 2, strings[0]);
            put::int(&mut self.message, 3, strings[1]);
            put::int(&mut self.message, 4, strings[2]);
            put::int(&mut self.message, 5, f.start_line as u64);
            self.end_record(5);
        }
    }

    pub(super) fn strings_and_header(&mut self, h: &MergedHeader) {
        // The strings' numbers must be taken before the table is written, which comes first.
        let drop_frames = self.strings.get(h.drop_frames);
        let keep_frames = self.strings.get(h.keep_frames);
        let period_type = h.period_type.map(|(kind, unit)| (self.strings.get(kind), self.strings.get(unit)));
        let comments: Vec<u64> = h.comments.iter().map(|&c| self.strings.get(c)).collect();
        let default_sample_type = self.strings.get(h.default_sample_type);
        let doc_url = self.strings.get(h.doc_url);
        for &s in &self.strings.used {
            put::bytes(&mut self.out, 6, self.merger.strings[s as usize]);
        }
        let out = &mut self.out;
        put::int(out, 7, drop_frames);
        put::int(out, 8, keep_frames);
        put::int(out, 9, h.time_nanos as u64);
        put::int(out, 10, h.duration_nanos as u64);
        if let Some((kind, unit)) = period_type {
            self.inner.clear();
            put::int(&mut self.inner, 1, kind);
            put::int(&mut self.inner, 2, unit);
            put::bytes(out, 11, &self.inner);
        }
        put::int(out, 12, h.period as u64);
        put::packed(out, 13, comments.into_iter(), &mut self.inner);
        put::int(out, 14, default_sample_type);
        put::int(out, 15, doc_url);
    }
}
