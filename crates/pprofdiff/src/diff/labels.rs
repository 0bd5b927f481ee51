//! The cost of each label value on both sides: pprof's tags report.
//!
//! A label takes only a few bytes in a profile, but a row in this table. A row therefore stores numbers, and each text
//! is stored once.

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

/// A value of a label key; see [`Labels::key`] and [`Labels::value`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LabelRow {
    key: u32,
    value: RowValue,
    sides: (bool, bool),
    /// Whether both sides have the label value, and whether its sums differ.
    pub status: Status,
    /// The sum of the samples with this label.
    pub weight: Pair,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum RowValue {
    Text(u32),
    /// A number and its unit. The sides may use different units, so 16 bytes and 16 kilobytes are two values.
    Number(i64, u32),
}

/// The values of all labels.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Labels {
    /// The header of the measure.
    pub summary: Arc<Summary>,
    /// The rows, sorted by key, then by |delta| descending, then by value.
    pub rows: Vec<LabelRow>,
    texts: TextInterner,
    /// The maximum length in bytes of a key and of a unit in a row. Without a limit, many rows could show one key of a
    /// megabyte.
    longest_key: usize,
}

impl Labels {
    /// Returns a row's key. If many rows share a very long key, it loses its middle.
    pub fn key(&self, row: &LabelRow) -> Cow<'_, str> {
        self.shown(row.key)
    }

    fn shown(&self, text: u32) -> Cow<'_, str> {
        match self.texts.get(text) {
            bytes if bytes.len() <= self.longest_key => String::from_utf8_lossy(bytes),
            bytes => texts::shortened(bytes, self.longest_key, text).into(),
        }
    }

    /// Returns a row's value. A number is formatted with digits.
    pub fn value(&self, row: &LabelRow) -> Cow<'_, str> {
        match row.value {
            RowValue::Text(text) => String::from_utf8_lossy(self.texts.get(text)),
            RowValue::Number(number, _) => number.to_string().into(),
        }
    }

    /// Returns a row's value, if it is a number.
    pub fn number(&self, row: &LabelRow) -> Option<i64> {
        match row.value {
            RowValue::Text(_) => None,
            RowValue::Number(number, _) => Some(number),
        }
    }

    /// Returns the unit of a number: its own unit, or the unit that pprof guesses for its key. Returns `None` for a
    /// text.
    pub fn unit(&self, row: &LabelRow) -> Option<Cow<'_, str>> {
        match row.value {
            RowValue::Text(_) => None,
            RowValue::Number(_, unit) => Some(self.shown(unit)),
        }
    }
}

/// A cache of one profile's texts by their number in the table of all profiles. It avoids hashing a text repeatedly.
#[doc(hidden)]
#[derive(Default)]
pub struct KnownTexts(HashMap<StringId, u32, QualityState>);

impl std::fmt::Debug for KnownTexts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnownTexts").finish_non_exhaustive()
    }
}

impl KnownTexts {
    #[inline]
    pub fn id(&mut self, p: &Profile, text: StringId, texts: &mut TextInterner) -> u32 {
        *self.0.entry(text).or_insert_with(|| texts.number(p.string(text)))
    }
}

impl Measure {
    /// Returns the sum of the samples with each label value. A sample with several labels counts for each of them.
    pub fn labels(&self) -> Labels {
        let mut texts = TextInterner::default();
        let mut rows: Vec<LabelRow> = Vec::new();
        let mut numbers: Interner<(u32, RowValue), QualityState> = Interner::default();
        let units = number_units(self.walks().map(|w| &*w.input.profile));
        let mut guessed: HashMap<u32, u32> = HashMap::default();
        for walk in self.walks() {
            let (p, base) = (&*walk.input.profile, walk.input.base);
            let mut text_numbers = KnownTexts::default();
            walk.for_each_sample(|weight, sample| {
                for label in walk.labels(&sample) {
                    let key = text_numbers.id(p, label.key, &mut texts);
                    let value = match label.value {
                        LabelValue::Text(text) => RowValue::Text(text_numbers.id(p, text, &mut texts)),
                        LabelValue::Number(number, unit) if p.string(unit).is_empty() => {
                            let unit = guessed.entry(key).or_insert_with(|| {
                                texts.number(units.get(p.string(label.key)).map_or(&[], |unit| unit.as_bytes()))
                            });
                            RowValue::Number(number, *unit)
                        }
                        LabelValue::Number(number, unit) => {
                            RowValue::Number(number, text_numbers.id(p, unit, &mut texts))
                        }
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
                (RowValue::Text(a), RowValue::Text(b)) => text(a).cmp(text(b)),
                (RowValue::Number(a, a_unit), RowValue::Number(b, b_unit)) => {
                    a.cmp(&b).then_with(|| text(a_unit).cmp(text(b_unit)))
                }
                (RowValue::Text(_), RowValue::Number(..)) => std::cmp::Ordering::Less,
                (RowValue::Number(..), RowValue::Text(_)) => std::cmp::Ordering::Greater,
            };
            by_key().then_with(|| delta(a).cmp(&delta(b))).then_with(by_value)
        });
        let length = |r: &LabelRow| {
            let unit = if let RowValue::Number(_, unit) = r.value { texts.get(unit).len() } else { 0 };
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

    /// Creates a profile with one sample of value 5 for each numeric label `bytes`, given as number and unit.
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

    /// Returns the rows: the number with its unit, and its sums in the base and on the new side.
    fn rows(base: &[(i64, &str)], new: &[(i64, &str)]) -> Vec<(String, i64, i64)> {
        let diff = Diff::between(profile(base), profile(new)).unwrap();
        let labels = diff.measure(&Query::default()).unwrap().labels();
        let number = |row| format!("{} {}", labels.value(row), labels.unit(row).unwrap());
        labels.rows.iter().map(|row| (number(row), row.weight.base, row.weight.new)).collect()
    }

    #[test]
    fn equal_numbers_with_different_units_are_different_rows() {
        let row = |number: &str, base, new| (number.to_owned(), base, new);
        let units = rows(&[(16, "bytes"), (32, "bytes")], &[(16, "kilobytes"), (32, "bytes")]);
        assert_eq!(units, [row("16 bytes", 5, 0), row("16 kilobytes", 0, 5), row("32 bytes", 5, 5)]);
        // A number without a unit gets the unit of its key, as in pprof.
        assert_eq!(rows(&[(16, "kilobytes")], &[(16, "")]), [row("16 kilobytes", 5, 5)]);
    }
}
