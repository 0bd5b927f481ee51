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
    /// A number and its unit. Sides may have other units, so 16 bytes and 16 kilobytes are two values.
    Number(i64, u32),
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
}

impl Labels {
    /// A row's key. Where many rows share a very long one, it loses its middle.
    pub fn key(&self, row: &LabelRow) -> Cow<'_, str> {
        self.shown(row.key)
    }

    fn shown(&self, text: u32) -> Cow<'_, str> {
        match self.texts.get(text) {
            bytes if bytes.len() <= self.longest_key => String::from_utf8_lossy(bytes),
            bytes => texts::shortened(bytes, self.longest_key, text).into(),
        }
    }

    /// A row's value; a number in digits.
    pub fn value(&self, row: &LabelRow) -> Cow<'_, str> {
        match row.value {
            Value::Text(text) => String::from_utf8_lossy(self.texts.get(text)),
            Value::Number(number, _) => number.to_string().into(),
        }
    }

    /// A row's value, if it is a number.
    pub fn number(&self, row: &LabelRow) -> Option<i64> {
        match row.value {
            Value::Text(_) => None,
            Value::Number(number, _) => Some(number),
        }
    }

    /// Returns the unit of a number: its own, or else the one that pprof guesses for its key. Returns `None` for a text.
    pub fn unit(&self, row: &LabelRow) -> Option<Cow<'_, str>> {
        match row.value {
            Value::Text(_) => None,
            Value::Number(_, unit) => Some(self.shown(unit)),
        }
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
        let units = number_units(self.walks().map(|w| &*w.input.profile));
        let mut guessed: HashMap<u32, u32> = HashMap::default();
        for walk in self.walks() {
            let (p, base) = (&*walk.input.profile, walk.input.base);
            let mut known = KnownTexts::default();
            walk.for_each_sample(|weight, sample| {
                for label in walk.labels(&sample) {
                    let key = known.id(p, label.key, &mut texts);
                    let value = match label.value {
                        LabelValue::Text(text) => Value::Text(known.id(p, text, &mut texts)),
                        LabelValue::Number(number, unit) if p.string(unit).is_empty() => {
                            let unit = guessed.entry(key).or_insert_with(|| {
                                texts.number(units.get(p.string(label.key)).map_or(&[], |unit| unit.as_bytes()))
                            });
                            Value::Number(number, *unit)
                        }
                        LabelValue::Number(number, unit) => Value::Number(number, known.id(p, unit, &mut texts)),
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
                (Value::Number(a, a_unit), Value::Number(b, b_unit)) => {
                    a.cmp(&b).then_with(|| text(a_unit).cmp(text(b_unit)))
                }
                (Value::Text(_), Value::Number(..)) => std::cmp::Ordering::Less,
                (Value::Number(..), Value::Text(_)) => std::cmp::Ordering::Greater,
            };
            by_key().then_with(|| delta(a).cmp(&delta(b))).then_with(by_value)
        });
        let length = |r: &LabelRow| {
            let unit = if let Value::Number(_, unit) = r.value { texts.get(unit).len() } else { 0 };
            texts.get(r.key).len() + unit
        };
        let all = rows.iter().map(length).fold(0, usize::saturating_add);
        let longest_key = texts::longest(self.profile_bytes(), all, 2 * rows.len());
        Labels { summary: self.summary().clone(), rows, texts, longest_key }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use pprofdiff_profile::builder::ProfileBuilder;
    use pprofdiff_profile::samples::Label;

    use super::*;
    use crate::{Diff, Query};

    /// A profile of one sample of 5 for each label `bytes`, a number with a unit.
    fn profile(labels: &[(i64, &str)]) -> Profile {
        let mut builder = ProfileBuilder::new();
        builder.sample_type("space", "bytes");
        let key = builder.string("bytes");
        for &(number, unit) in labels {
            let value = LabelValue::Number(number, builder.string(unit));
            builder.sample(&[], &[5], &[Label { key, value }]).unwrap();
        }
        builder.build("made").unwrap()
    }

    /// Each row: the number with its unit, and what it costs in the base and the new side.
    fn rows(base: &[(i64, &str)], new: &[(i64, &str)]) -> Vec<(String, i64, i64)> {
        let diff = Diff::between(profile(base), profile(new)).unwrap();
        let labels = diff.measure(&Query::default()).unwrap().labels();
        let number = |row| format!("{} {}", labels.value(row), labels.unit(row).unwrap());
        labels.rows.iter().map(|row| (number(row), row.weight.base, row.weight.new)).collect()
    }

    #[test]
    fn numbers_of_other_units_are_other_rows() {
        let row = |number: &str, base, new| (number.to_owned(), base, new);
        let units = rows(&[(16, "bytes"), (32, "bytes")], &[(16, "kilobytes"), (32, "bytes")]);
        assert_eq!(units, [row("16 bytes", 5, 0), row("16 kilobytes", 0, 5), row("32 bytes", 5, 5)]);
        // A number without a unit has the unit of its key, as in pprof.
        assert_eq!(rows(&[(16, "kilobytes")], &[(16, "")]), [row("16 kilobytes", 5, 5)]);
    }
}
