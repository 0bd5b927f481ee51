//! The data of columns: numbers, strings that are stored once, and lists of strings.

use std::hash::BuildHasher;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::stored;
use pprofdiff::random::{HashMap, RandomState};

/// A column of strings, stored as numbers of distinct strings. Several columns may share the distinct strings. A row's
/// string may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "stored::StoredTexts")]
pub struct Texts {
    pub(super) distinct: Arc<DistinctTexts>,
    /// The number of each row's string, or [`MISSING`].
    pub(super) numbers: Vec<u32>,
}

pub(super) const MISSING: u32 = u32::MAX;

/// Distinct strings in one buffer, identified by number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DistinctTexts {
    pub bytes: String,
    /// The end of each string in `bytes`.
    pub ends: Vec<usize>,
}

impl DistinctTexts {
    pub fn get(&self, number: u32) -> Option<&str> {
        let i = number as usize;
        let start = i.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.bytes.get(start..*self.ends.get(i)?)
    }

    pub fn push(&mut self, text: &str) -> u32 {
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len());
        self.ends.len() as u32 - 1
    }
}

/// The minimum length in bytes from which strings are stored once, independent of the number of rows. A profile stores
/// each string once, and without this limit a table could be much larger than its profile. For shorter strings a lookup
/// would cost more than a copy, so they are only shared with the previous row.
const LONG: usize = 256;

impl Texts {
    /// Returns the string at `index`, or `None` if it is missing.
    pub fn get(&self, index: usize) -> Option<&str> {
        self.distinct.get(self.numbers[index])
    }

    /// Returns the number of strings.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns true if the column is empty.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Returns all strings in order.
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
    /// Row `i` is `ids[ends[i - 1]..ends[i]]`.
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
    /// Line numbers.
    Line(Vec<Option<i64>>),
    /// Addresses.
    Address(Vec<Option<u64>>),
    /// Lists of strings.
    Lists(Lists),
    /// Ratios of two sample types; `None` where the divisor is 0.
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
pub enum Cell<'a> {
    /// A missing value.
    Missing,
    /// A string.
    Text(&'a str),
    /// An integer.
    Int(i128),
    /// A ratio.
    Ratio(f64),
    /// A list of strings: the column and the row.
    List(&'a Lists, usize),
}
