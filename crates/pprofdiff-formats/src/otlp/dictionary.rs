//! The dictionary of an OTLP message: finds and validates the records of its tables, and supplies them to the writer of
//! `profile.proto`.

use super::attributes::AttributeRole;
use super::{NOTHING, OtlpMessage, each_number};
use pprofdiff_profile::columns::{Mapping, NONE, StringId};
use pprofdiff_profile::samples::LabelValue;
use pprofdiff_profile::shared::Tables;
use pprofdiff_profile::shared::wire::{Fields, Value};
use pprofdiff_profile::{Error, Result};

/// The dictionary's tables, by their field numbers.
pub(super) const MAPPINGS: usize = 1;
pub(super) const LOCATIONS: usize = 2;
pub(super) const FUNCTIONS: usize = 3;
pub(super) const STRINGS: usize = 5;
pub(super) const ATTRIBUTES: usize = 6;
pub(super) const STACKS: usize = 7;
pub(super) const TABLES: [&str; 8] = ["", "mapping", "location", "function", "link", "string", "attribute", "stack"];

impl<'a> OtlpMessage<'a> {
    /// Records the offsets of all records in the dictionary, and counts the links.
    pub(super) fn find_records(&mut self, dictionary: Fields<'a>) -> Result<()> {
        let mut counts = [0usize; 8];
        let mut fields = dictionary.clone();
        while let Some((field, value)) = fields.next().map_err(|e| e.in_record(|| "dictionary".into()))? {
            if (1..8).contains(&field) {
                value.bytes().map_err(|e| e.in_record(|| TABLES[field as usize].to_owned()).at(fields.offset()))?;
                counts[field as usize] += 1;
            }
        }
        // Links are counted, but not read.
        self.n_links = std::mem::take(&mut counts[4]) as u64;
        self.tables = counts.map(Vec::with_capacity);
        let mut fields = dictionary;
        loop {
            let start = fields.offset();
            let Some((field, _)) = fields.next()? else { return Ok(()) };
            if (1..8).contains(&field) && field != 4 {
                self.tables[field as usize].push(start as u32);
            }
        }
    }

    /// Returns a record's content and its offset. An index without a record, such as 0 in an empty table, returns an
    /// empty record.
    pub(super) fn bytes(&self, table: usize, index: u32) -> (&'a [u8], usize) {
        let Some(&start) = self.tables[table].get(index as usize) else { return (&[], 0) };
        let start = start as usize;
        let mut fields = Fields::new(&self.data[start..], start);
        match fields.next() {
            Ok(Some((_, Value::Bytes(bytes)))) => (bytes, fields.offset() - bytes.len()),
            _ => (&[], start),
        }
    }

    pub(super) fn record(&self, table: usize, index: u32) -> Fields<'a> {
        let (bytes, origin) = self.bytes(table, index);
        Fields::new(bytes, origin)
    }

    /// Validates an index that was read. Index 0 is always valid.
    pub(super) fn index(&self, table: usize, v: u64) -> Result<u32> {
        let n = self.tables[table].len();
        if v < n as u64 || v == 0 {
            return Ok(v as u32);
        }
        let table_name = TABLES[table];
        Err(Error::malformed(format!("it refers to {table_name} {}, but there are {n}", v as i64)))
    }

    pub(super) fn string_index(&self, v: u64) -> Result<StringId> {
        self.index(STRINGS, v).map(StringId)
    }

    /// Returns the id of a text that is not necessarily in the dictionary.
    pub(super) fn text(&mut self, bytes: &[u8]) -> StringId {
        if bytes.is_empty() {
            return StringId::EMPTY;
        }
        StringId(self.n_strings() as u32 + self.texts.number(bytes))
    }

    /// Returns the id of a label's or type's text, given the index of a string in the dictionary.
    pub(super) fn canonical(&mut self, v: u64) -> Result<StringId> {
        let id = self.string_index(v)?;
        if let Some(&text) = self.canonical.get(&id.0) {
            return Ok(text);
        }
        let text = self.text(self.bytes(STRINGS, id.0).0);
        self.canonical.insert(id.0, text);
        Ok(text)
    }

    fn n_strings(&self) -> usize {
        self.tables[STRINGS].len().max(1)
    }

    /// Decodes the attributes, and checks that all indexes in the dictionary have records, so that later readers need
    /// not check them again. String 0 must be empty.
    pub(super) fn check_tables(&mut self) -> Result<()> {
        if !self.bytes(STRINGS, 0).0.is_empty() {
            return Err(Error::malformed("string 0 is not empty").at(self.bytes(STRINGS, 0).1));
        }
        self.attributes.number((NOTHING, AttributeRole::Label));
        self.attribute_ids = Vec::with_capacity(self.tables[ATTRIBUTES].len());
        for index in 0..self.tables[ATTRIBUTES].len() as u32 {
            let record = self.record(ATTRIBUTES, index);
            let offset = record.offset();
            let id = self.attribute(record);
            self.attribute_ids.push(id.map_err(|e| e.in_record(|| format!("attribute {index}")).at(offset))?);
        }
        for table in [MAPPINGS, LOCATIONS, FUNCTIONS, STACKS] {
            for index in 0..self.tables[table].len() as u32 {
                let record = self.record(table, index);
                let offset = record.offset();
                let check = match table {
                    MAPPINGS => self.check_mapping(record),
                    LOCATIONS => self.check_location(record),
                    FUNCTIONS => self.check_function(record),
                    _ => each_number(record, 1, |v| self.index(LOCATIONS, v).map(|_| ())),
                };
                check.map_err(|e| e.in_record(|| format!("{} {index}", TABLES[table])).at(offset))?;
            }
        }
        Ok(())
    }

    fn check_mapping(&self, record: Fields<'a>) -> Result<()> {
        let [_, _, _, file] = record.clone().numbers()?;
        self.string_index(file)?;
        each_number(record, 5, |v| self.index(ATTRIBUTES, v).map(|_| ()))
    }

    fn check_location(&self, record: Fields<'a>) -> Result<()> {
        let [mapping, _] = record.clone().numbers()?;
        self.index(MAPPINGS, mapping)?;
        let mut fields = record.clone();
        while let Some((field, value)) = fields.next()? {
            if field == 3 {
                let [function, _, _] = fields.message(value)?.numbers()?;
                self.index(FUNCTIONS, function)?;
            }
        }
        each_number(record, 4, |v| self.index(ATTRIBUTES, v).map(|_| ()))
    }

    fn check_function(&self, record: Fields<'a>) -> Result<()> {
        let [name, system_name, file, _] = record.numbers()?;
        [name, system_name, file].into_iter().try_for_each(|v| self.string_index(v).map(|_| ()))
    }
}

/// The dictionary in the form that the writer of `profile.proto` needs. Indexes are the dictionary's, except that
/// mappings start at 0: the dictionary's entry 0, "none", is left out.
impl Tables for OtlpMessage<'_> {
    fn sizes(&self) -> [usize; 4] {
        let n = |table: usize| self.tables[table].len();
        [self.n_strings() + self.texts.len(), n(FUNCTIONS).max(1), n(MAPPINGS).saturating_sub(1), n(LOCATIONS).max(1)]
    }

    fn string(&self, id: StringId) -> &[u8] {
        match id.0.checked_sub(self.n_strings() as u32) {
            Some(text) => self.texts.get(text),
            None => self.bytes(STRINGS, id.0).0,
        }
    }

    fn function(&self, index: u32) -> ([StringId; 3], i64) {
        let [name, system_name, file, line] = self.record(FUNCTIONS, index).numbers().unwrap_or_default();
        ([name, system_name, file].map(|s| StringId(s as u32)), line as i64)
    }

    fn mapping(&self, index: u32) -> Mapping {
        let record = self.record(MAPPINGS, index + 1);
        let [start, limit, offset, file] = record.clone().numbers().unwrap_or_default();
        let (mut flags, mut build_id, mut best) = (0, StringId::EMPTY, u8::MAX);
        self.attributes_of(record, 5, |role, value| match (role, value) {
            (AttributeRole::Flag(bit), _) => flags |= u8::from(self.is_true(value)) << bit,
            (AttributeRole::BuildId(rank), LabelValue::Text(text)) if rank < best => (best, build_id) = (rank, text),
            _ => {}
        });
        Mapping { start, limit, offset, file: StringId(file as u32), build_id, flags }
    }

    fn location(&self, index: u32) -> (u32, u64, bool) {
        let record = self.record(LOCATIONS, index);
        let [mapping, address] = record.clone().numbers().unwrap_or_default();
        let mut folded = false;
        self.attributes_of(record, 4, |role, value| folded |= role == AttributeRole::Folded && self.is_true(value));
        (if mapping == 0 { NONE } else { mapping as u32 - 1 }, address, folded)
    }

    fn for_each_line(&self, location: u32, mut f: impl FnMut(u32, i64, i64)) {
        let mut fields = self.record(LOCATIONS, location);
        while let Ok(Some((field, value))) = fields.next() {
            if let (3, Ok(line)) = (field, fields.message(value)) {
                let [function, line, column] = line.numbers().unwrap_or_default();
                f(function as u32, line as i64, column as i64);
            }
        }
    }
}
