//! The data of columns: numbers, strings that are stored once, and lists of strings.

use std::hash::BuildHasher;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::stored;
use pprofdiff::random::{HashMap, RandomState};

/// A column of strings, stored as numbers of strings in a shared buffer. Equal long strings and equal strings in
/// consecutive rows are stored once. Several columns may share the buffer. A row's string may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "stored::StoredTexts")]
pub struct Texts {
    pub(super) distinct: Arc<DistinctTexts>,
    /// The number of each row's string, or [`MISSING`].
    pub(super) numbers: Vec<u32>,
}

/// The number of a missing string.
pub(super) const MISSING: u32 = u32::MAX;

/// Strings in one buffer, identified by number. Short strings may occur more than once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DistinctTexts {
    pub bytes: String,
    /// The end of each string in `bytes`.
    pub ends: Vec<usize>,
}

impl DistinctTexts {
    /// Returns the string with this number, or `None` for [`MISSING`] and numbers out of range.
    pub fn get(&self, number: u32) -> Option<&str> {
        let i = number as usize;
        let start = i.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.bytes.get(start..*self.ends.get(i)?)
    }

    /// Appends a string, even if an equal string exists, and returns its number.
    pub fn push(&mut self, text: &str) -> u32 {
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len());
        self.ends.len() as u32 - 1
    }
}

/// The minimum length in bytes of strings that a column stores only once. A profile stores each string once, so a table
/// that repeats long strings in many rows could be much larger than its profile. For shorter strings a lookup would
/// cost more than a copy, so a row only shares its string with the previous row.
const LONG: usize = 256;

impl Texts {
    /// Returns the string at `index`, or `None` if it is missing. `index` must be below [`Texts::len`].
    pub fn get(&self, index: usize) -> Option<&str> {
        self.distinct.get(self.numbers[index])
    }

    /// Returns the number of rows, including rows without a string.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns true if the column has zero rows.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Returns the string of each row in order, with `None` for missing strings.
    pub fn iter(&self) -> impl Iterator<Item = Option<&str>> {
        (0..self.len()).map(|i| self.get(i))
    }

    /// Returns a column with the strings of these rows, without copying their bytes.
    pub(crate) fn shared(&self, rows: impl Iterator<Item = usize>) -> Texts {
        Texts { distinct: self.distinct.clone(), numbers: rows.map(|i| self.numbers[i]).collect() }
    }
}

impl<S: AsRef<str>> FromIterator<Option<S>> for Texts {
    fn from_iter<I: IntoIterator<Item = Option<S>>>(items: I) -> Texts {
        let items = items.into_iter();
        let mut distinct = DistinctTexts::default();
        let mut numbers = Vec::with_capacity(items.size_hint().0);
        let mut long: HashMap<u64, Vec<u32>> = HashMap::default();
        let state = RandomState::new();
        let mut last = MISSING;
        for item in items {
            let Some(text) = item.as_ref().map(AsRef::as_ref) else {
                numbers.push(MISSING);
                continue;
            };
            if distinct.get(last) != Some(text) {
                let mut alike = (text.len() >= LONG).then(|| long.entry(state.hash_one(text)).or_default());
                let existing = alike.iter().flat_map(|alike| alike.iter()).find(|&&n| distinct.get(n) == Some(text));
                last = existing.copied().unwrap_or_else(|| {
                    let number = distinct.push(text);
                    alike.iter_mut().for_each(|alike| alike.push(number));
                    number
                });
            }
            numbers.push(last);
        }
        Texts { distinct: Arc::new(distinct), numbers }
    }
}

/// A column of lists of strings, stored as indexes into a dictionary of distinct strings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "stored::StoredLists")]
pub struct Lists {
    /// The end of each row in `ids`: row `i` is `ids[ends[i - 1]..ends[i]]`, and row 0 starts at 0.
    pub ends: Vec<usize>,
    /// Indexes into `dictionary`.
    pub ids: Vec<u32>,
    /// The distinct strings.
    pub dictionary: Arc<Texts>,
}

impl Lists {
    /// Returns the strings of a row.
    pub fn get(&self, row: usize) -> impl DoubleEndedIterator<Item = &str> {
        self.numbers(row).iter().map(|&id| self.dictionary.get(id as usize).unwrap_or_default())
    }

    /// Returns the strings of a row as indexes into `dictionary`.
    pub fn numbers(&self, row: usize) -> &[u32] {
        let start = row.checked_sub(1).map_or(0, |i| self.ends[i]);
        &self.ids[start..self.ends[row]]
    }
}

/// The values of a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Data {
    /// Strings.
    Text(Texts),
    /// Values, in the unit of the summary.
    Value(Vec<i64>),
    /// Line numbers and other integers without a unit; `None` where a row has none.
    Line(Vec<Option<i64>>),
    /// Addresses; `None` where a row has none.
    Address(Vec<Option<u64>>),
    /// Lists of strings.
    Lists(Lists),
    /// Ratios and other real numbers, such as statistics; `None` where a number is not defined, as for a divisor of 0.
    Ratio(Vec<Option<f64>>),
}

impl Data {
    /// Returns the number of rows.
    pub(super) fn len(&self) -> usize {
        match self {
            Data::Text(texts) => texts.len(),
            Data::Value(values) => values.len(),
            Data::Line(lines) => lines.len(),
            Data::Address(addresses) => addresses.len(),
            Data::Lists(lists) => lists.ends.len(),
            Data::Ratio(ratios) => ratios.len(),
        }
    }
}

/// One value of a table.
#[derive(Debug)]
pub enum Cell<'a> {
    /// A missing value.
    Missing,
    /// A string.
    Text(&'a str),
    /// An integer.
    Int(i128),
    /// A real number.
    Ratio(f64),
    /// A list of strings: the column and the row.
    List(&'a Lists, usize),
}
