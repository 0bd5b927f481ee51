//! What each label's values cost: the tags report, with both sides.
//!
//! A label is a few bytes of a profile, and a row here; so a row holds numbers, and a text is kept once.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::Arc;

use super::tags::number_units;
use super::texts::{self, TextInterner};
use super::{Measure, Pair, Status, Summary};
use pprofdiff_profile::Profile;
use pprofdiff_profile::columns::StringId;
use pprofdiff_profile::interner::Interner;
use pprofdiff_profile::random::{HashMap, QualityState};
use pprofdiff_profile::samples::LabelValue;

/// One value of one label key; see [`Labels::key`] and [`Labels::value`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LabelRow {
    key: u32,
    value: Value,
    sides: (bool, bool),
    /// What happened to it.
    pub status: Status,
    /// What the samples with this label cost.
    pub weight: Pair,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Value {
    Text(u32),
    Number(i64),
}

/// The values of all labels.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Labels {
    /// What the table is of.
    pub summary: Arc<Summary>,
    /// By key, then |delta| descending, then value.
    pub rows: Vec<LabelRow>,
    texts: TextInterner,
    /// Most bytes of a key, and of a unit, that rows show: any number of rows can have one of a megabyte.
    longest_key: usize,
    /// Of the keys of numbers, as pprof guesses them.
    units: HashMap<Vec<u8>, String>,
}

impl Labels {
    /// A row's key. Where many rows share a very long one, it loses its middle.
    pub fn key(&self, row: &LabelRow) -> Cow<'_, str> {
        match self.texts.get(row.key) {
            key if key.len() <= self.longest_key => String::from_utf8_lossy(key),
            key => texts::shortened(key, self.longest_key, row.key).into(),
        }
    }

    /// A row's value; a number in digits.
    pub fn value(&self, row: &LabelRow) -> Cow<'_, str> {
        match row.value {
            Value::Text(text) => String::from_utf8_lossy(self.texts.get(text)),
            Value::Number(number) => number.to_string().into(),
        }
    }

    /// A row's value, if it is a number.
    pub fn number(&self, row: &LabelRow) -> Option<i64> {
        match row.value {
            Value::Text(_) => None,
            Value::Number(number) => Some(number),
        }
    }

    /// The unit of a number, as pprof guesses it; `None` for a text.
    pub fn unit(&self, row: &LabelRow) -> Option<Cow<'_, str>> {
        self.number(row)?;
        // Without a unit of its own a number has its key for one.
        let unit = self.units.get(self.texts.get(row.key)).map_or("", String::as_str);
        Some(match unit.len() <= self.longest_key {
            true => unit.into(),
            false => texts::shortened(unit.as_bytes(), self.longest_key, row.key).into(),
        })
    }
}

/// The numbers of one profile's texts among those of several profiles: a text is looked up by its content once.
#[derive(Default)]
pub(crate) struct KnownTexts(HashMap<StringId, u32, QualityState>);

impl KnownTexts {
    pub(crate) fn id(&mut self, p: &Profile, text: StringId, texts: &mut TextInterner) -> u32 {
        *self.0.entry(text).or_insert_with(|| texts.number(p.string(text)))
    }
}

impl Measure {
    /// What the samples with each label value cost. A sample with several labels counts for each.
    pub fn labels(&self) -> Labels {
        let mut texts = TextInterner::default();
        let mut rows: Vec<LabelRow> = Vec::new();
        let mut numbers: Interner<(u32, Value), QualityState> = Interner::default();
        for walk in self.walks() {
            let (p, base) = (&*walk.input.profile, walk.input.base);
            let mut known = KnownTexts::default();
            walk.for_each_sample(|weight, sample| {
                for label in walk.labels(&sample) {
                    let key = known.id(p, label.key, &mut texts);
                    let value = match label.value {
                        LabelValue::Text(text) => Value::Text(known.id(p, text, &mut texts)),
                        LabelValue::Number(number, _) => Value::Number(number),
                    };
                    let number = numbers.number((key, value)) as usize;
                    if number == rows.len() {
                        let (sides, weight) = ((false, false), Pair::default());
                        rows.push(LabelRow { key, value, sides, status: Status::Same, weight });
                    }
                    let row = &mut rows[number];
                    match base {
                        true => (row.weight.base, row.sides.0) = (row.weight.base + weight, true),
                        false => (row.weight.new, row.sides.1) = (row.weight.new + weight, true),
                    }
                }
            });
        }
        drop(numbers);
        for row in &mut rows {
            row.weight = self.scales.apply(row.weight);
            row.status = Status::new(row.sides.0, row.sides.1, row.weight.delta() == 0);
        }
        let delta = |r: &LabelRow| Reverse(r.weight.delta().unsigned_abs());
        let text = |id: u32| texts.get(id);
        rows.sort_unstable_by(|a, b| {
            let by_key = || if a.key == b.key { std::cmp::Ordering::Equal } else { text(a.key).cmp(text(b.key)) };
            let by_value = || match (a.value, b.value) {
                (Value::Text(a), Value::Text(b)) => text(a).cmp(text(b)),
                (Value::Number(a), Value::Number(b)) => a.cmp(&b),
                (Value::Text(_), Value::Number(_)) => std::cmp::Ordering::Less,
                (Value::Number(_), Value::Text(_)) => std::cmp::Ordering::Greater,
            };
            by_key().then_with(|| delta(a).cmp(&delta(b))).then_with(by_value)
        });
        let units = number_units(self.walks().map(|w| &*w.input.profile));
        let all = rows.iter().map(|r| 2 * texts.get(r.key).len()).fold(0, usize::saturating_add);
        let longest_key = texts::longest(self.profile_bytes(), all, 2 * rows.len());
        Labels { summary: self.summary().clone(), rows, texts, longest_key, units }
    }
}
