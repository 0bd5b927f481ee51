//! What columns hold: strings that are kept once, numbers, lists of strings.

use std::hash::BuildHasher;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::stored;
use pprofdiff::random::{HashMap, RandomState};

/// Strings by their numbers among distinct ones, which columns may share; each may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "stored::Texts")]
pub struct Texts {
    pub(super) distinct: Arc<Distinct>,
    /// The number of each string; [`MISSING`] if there is none.
    pub(super) numbers: Vec<u32>,
}

pub(super) const MISSING: u32 = u32::MAX;

/// Strings in one buffer, by number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Distinct {
    pub bytes: String,
    /// Where each ends in `bytes`.
    pub ends: Vec<usize>,
}

impl Distinct {
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

/// Strings from this length on are kept once, however many rows have them: a profile has each of its strings once, and
/// must not grow without bound by becoming a table. Looking up shorter ones would cost more than their copies, unless it
/// is the row before that has the same.
const LONG: usize = 256;

impl Texts {
    /// The string at `index`; `None` if it is missing.
    pub fn get(&self, index: usize) -> Option<&str> {
        self.distinct.get(self.numbers[index])
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// All strings in order.
    pub fn iter(&self) -> impl Iterator<Item = Option<&str>> {
        (0..self.len()).map(|i| self.get(i))
    }

    /// The strings of the given rows, without a copy of their bytes.
    pub(crate) fn shared(&self, rows: impl Iterator<Item = usize>) -> Texts {
        Texts { distinct: self.distinct.clone(), numbers: rows.map(|i| self.numbers[i]).collect() }
    }
}

impl<S: AsRef<str>> FromIterator<Option<S>> for Texts {
    fn from_iter<I: IntoIterator<Item = Option<S>>>(items: I) -> Texts {
        let items = items.into_iter();
        let mut distinct = Distinct::default();
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
                let known = alike.iter().flat_map(|alike| alike.iter()).find(|&&n| distinct.get(n) == Some(text));
                last = known.copied().unwrap_or_else(|| {
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

/// A list of strings in each row, by their numbers in a dictionary of distinct strings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "stored::Lists")]
pub struct Lists {
    /// Row `i` is `ids[ends[i - 1]..ends[i]]`.
    pub ends: Vec<usize>,
    /// Indexes into `dictionary`.
    pub ids: Vec<u32>,
    /// The distinct strings.
    pub dictionary: Arc<Texts>,
}

impl Lists {
    /// The strings of one row.
    pub fn get(&self, row: usize) -> impl DoubleEndedIterator<Item = &str> {
        self.numbers(row).iter().map(|&id| self.dictionary.get(id as usize).unwrap_or_default())
    }

    /// The strings of one row, by their indexes in `dictionary`.
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
    /// Values of one sample type by those of another; `None` where the other is 0.
    Ratio(Vec<Option<f64>>),
}

impl Data {
    /// Number of rows.
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
    /// Nothing.
    Missing,
    /// A string.
    Text(&'a str),
    /// A whole number.
    Int(i128),
    /// A ratio.
    Ratio(f64),
    /// A row's list of strings: the column, and the row.
    List(&'a Lists, usize),
}
