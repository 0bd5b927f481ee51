//! Adds functions and lines that were found in binaries to a profile's message.
//!
//! The records of locations and mappings get additional fields at their end, and new functions and strings are appended
//! to their tables. All other bytes stay unchanged, so a symbolized profile still contains everything that was read.
//! Views and writers treat it like any other profile.

use super::wire::{Fields, put};
use super::{Profile, StringId};
use crate::error::{Error, ErrorKind, Result};
use crate::interner::{Interner, Sequences};
use crate::random::{HashMap, RandomState};

/// A text in a binary. The number identifies the text, so that equal texts need no comparison.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    /// The number of the text. Equal texts of one binary have equal numbers.
    pub number: u32,
    /// The bytes of the text.
    pub bytes: &'a [u8],
}

/// A source line that was found for an address.
#[derive(Debug, Clone, Copy)]
pub struct FoundLine<'a> {
    /// The function's human-readable name.
    pub name: Text<'a>,
    /// The function's name in the linker's symbol table.
    pub system_name: Text<'a>,
    /// The source file's path; empty if unknown.
    pub file: Text<'a>,
    /// The line number; 0 if unknown.
    pub line: u32,
    /// The column; 0 if unknown.
    pub column: u32,
    /// The first line of the function; 0 if unknown.
    pub start_line: u32,
}

/// A collection of the lines that were found, which [`Symbolizer::finish`] adds to the profile's message.
#[derive(Default)]
pub struct Symbolizer {
    strings: Sequences<u8, RandomState>,
    /// The numbers of strings, by binary and text number. A text that many locations share is hashed only once.
    string_numbers: HashMap<(usize, u32), u32>,
    functions: Interner<([u32; 3], u32), RandomState>,
    lines: HashMap<u32, Vec<(u32, u32, u32)>>,
    /// The new flags of each mapping with symbolized locations, as in [`Mapping`](super::Mapping).
    flags: HashMap<u32, u8>,
}

impl std::fmt::Debug for Symbolizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Symbolizer").finish_non_exhaustive()
    }
}

impl Symbolizer {
    /// Adds lines to a location without lines, with the innermost inlined function first. `binary` is any
    /// number that identifies the binary of the texts.
    pub fn add<'a>(
        &mut self,
        profile: &Profile,
        location: u32,
        binary: usize,
        lines: impl Iterator<Item = FoundLine<'a>>,
    ) {
        let mut flags = 0;
        let lines: Vec<_> = lines
            .map(|l| {
                let has = |text: Text<'_>| u8::from(!text.bytes.is_empty());
                flags |= has(l.name) | has(l.file) << 1 | u8::from(l.line != 0) << 2;
                let mut number = |text: Text<'_>| self.strings.number(text.bytes);
                let strings = [l.name, l.system_name, l.file]
                    .map(|text| *self.string_numbers.entry((binary, text.number)).or_insert_with(|| number(text)));
                (self.functions.number((strings, l.start_line)), l.line, l.column)
            })
            .collect();
        if lines.is_empty() {
            return;
        }
        // Flag 8 (has_inline_frames) means that the profile would contain inlined functions if there were any.
        *self.flags.entry(profile.locations.mapping[location as usize]).or_default() |= flags | 8;
        self.lines.insert(location, lines);
    }

    /// Returns the number of locations that received lines.
    pub fn n_locations(&self) -> usize {
        self.lines.len()
    }

    /// Returns the profile with the collected lines.
    ///
    /// # Errors
    /// Fails if the profile would exceed `limit` bytes, or if its function ids leave no gap for the new functions.
    pub fn finish(self, profile: Profile, limit: u64) -> Result<Profile> {
        if self.lines.is_empty() {
            return Ok(profile);
        }
        let message = self.message(&profile)?;
        if message.len() as u64 > limit {
            let detail = format!(
                "with the names of its functions, the profile has {} bytes, more than the limit of {limit}",
                message.len()
            );
            return Err(Error::new(ErrorKind::Limit, detail));
        }
        let Profile { name, notes, sampled, may_be_diff, .. } = profile;
        let profile = Profile::decode(&name, message)?.with_notes(notes).with_sampled(sampled);
        Ok(Profile { may_be_diff, ..profile })
    }

    /// Encodes the message of `profile` with the additional fields and records.
    fn message(&self, profile: &Profile) -> Result<Vec<u8>> {
        let first_string = profile.n_strings() as u64;
        let string = |number: u32| match self.strings.get(number).is_empty() {
            true => u64::from(StringId::EMPTY.0),
            false => first_string + u64::from(number),
        };
        let first_function = free_ids(&profile.data, self.functions.values.len())?;
        let (mut out, mut inner) = (Vec::with_capacity(profile.data.len()), Vec::new());
        let mut record = Vec::new();
        let (mut location, mut mapping) = (0, 0);
        let mut fields = Fields::new(&profile.data, 0);
        loop {
            let start = fields.offset();
            let Some((field, value)) = fields.next()? else { break };
            match field {
                3 => {
                    if let Some(flags) = self.flags.get(&mapping) {
                        record.extend_from_slice(value.bytes()?);
                        (0..4).filter(|bit| flags >> bit & 1 == 1).for_each(|bit| put::int(&mut record, 7 + bit, 1));
                    }
                    mapping += 1;
                }
                4 => {
                    if let Some(lines) = self.lines.get(&location) {
                        record.extend_from_slice(value.bytes()?);
                        for &(function, line, column) in lines {
                            put::int(&mut inner, 1, first_function + u64::from(function));
                            put::int(&mut inner, 2, u64::from(line));
                            put::int(&mut inner, 3, u64::from(column));
                            put::bytes(&mut record, 4, &inner);
                            inner.clear();
                        }
                    }
                    location += 1;
                }
                _ => {}
            }
            if record.is_empty() {
                out.extend_from_slice(&profile.data[start..fields.offset()]);
            } else {
                put::bytes(&mut out, field as u32, &record);
                record.clear();
            }
        }
        for (i, &(strings, start_line)) in self.functions.values.iter().enumerate() {
            put::int(&mut record, 1, first_function + i as u64);
            for (field, text) in (2..).zip(strings) {
                put::int(&mut record, field, string(text));
            }
            put::int(&mut record, 5, u64::from(start_line));
            put::bytes(&mut out, 5, &record);
            record.clear();
        }
        for number in 0..self.strings.len() as u32 {
            put::bytes(&mut out, 6, self.strings.get(number));
        }
        Ok(out)
    }
}

/// Returns the first of `n` consecutive ids that no function uses.
fn free_ids(data: &[u8], n: usize) -> Result<u64> {
    let mut ids = Vec::new();
    let mut fields = Fields::new(data, 0);
    while let Some((field, value)) = fields.next()? {
        if field == 5 {
            let [id] = fields.message(value)?.numbers()?;
            ids.push(id);
        }
    }
    ids.sort_unstable();
    let has_gap = |last: u64, next: u64| next - last > n as u64;
    let ends = ids.iter().copied().chain([u64::MAX]);
    let gap = std::iter::once(0).chain(ids.iter().copied()).zip(ends).find(|&(last, next)| has_gap(last, next));
    gap.map(|(last, _)| last + 1).ok_or_else(|| Error::new(ErrorKind::Limit, "no ids are left for more functions"))
}
