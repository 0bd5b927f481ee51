//! What each label's values cost: the tags report, with both sides.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use super::tags::number_units;
use super::{Pair, Status, Summary, View};
use crate::profile::LabelValue;

/// One value of one label key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelRow {
    /// The label's key.
    pub key: String,
    /// Its value; a number in digits.
    pub value: String,
    /// The number, if it is one, for ordering and printing.
    pub number: Option<i64>,
    /// The unit of a numeric label, as pprof guesses it; `None` for a string label.
    pub unit: Option<String>,
    /// What the samples with this label cost.
    pub weight: Pair,
    /// What happened to it.
    pub status: Status,
}

/// The values of all labels.
#[derive(Debug, Clone)]
pub struct Labels {
    /// What the table is of.
    pub summary: Arc<Summary>,
    /// By key, then |delta| descending, then value.
    pub rows: Vec<LabelRow>,
}

/// A label's key and value: bytes, or a number.
type Key<'p> = (&'p [u8], Result<&'p [u8], i64>);

impl View {
    /// What the samples with each label value cost. A sample with several labels counts for each.
    pub fn labels(&self) -> Labels {
        let (base, new) = self.sides(|base| self.label_sums(base));
        let mut sums: HashMap<Key<'_>, (Pair, bool, bool)> = HashMap::new();
        for (key, value) in base {
            sums.insert(key, (Pair { base: value, new: 0 }, true, false));
        }
        for (key, value) in new {
            let entry = sums.entry(key).or_default();
            (entry.0.new, entry.2) = (self.scale.apply(value), true);
        }
        let units = number_units(self.walks.iter().map(|w| &*w.member.profile));
        let mut rows: Vec<LabelRow> = sums
            .into_iter()
            .map(|((key, value), (weight, in_base, in_new))| LabelRow {
                key: String::from_utf8_lossy(key).into_owned(),
                value: value.map_or_else(|n| n.to_string(), |v| String::from_utf8_lossy(v).into_owned()),
                number: value.err(),
                unit: value.is_err().then(|| units.get(key).cloned().unwrap_or_default()),
                weight,
                status: Status::new(in_base, in_new, weight.delta() == 0),
            })
            .collect();
        rows.sort_by(|a, b| {
            let delta = |r: &LabelRow| Reverse(r.weight.delta().unsigned_abs());
            a.key
                .cmp(&b.key)
                .then_with(|| delta(a).cmp(&delta(b)))
                .then_with(|| (a.number, &a.value).cmp(&(b.number, &b.value)))
        });
        Labels { summary: self.summary().clone(), rows }
    }

    fn label_sums(&self, base: bool) -> HashMap<Key<'_>, i64> {
        let mut sums: HashMap<Key<'_>, i64> = HashMap::new();
        for walk in self.walks.iter().filter(|w| w.member.base == base) {
            let p = &*walk.member.profile;
            walk.each(|weight, _, sample| {
                for l in sample.labels() {
                    let value = match l.value {
                        LabelValue::Text(t) => Ok(p.string(t)),
                        LabelValue::Number(n, _) => Err(n),
                    };
                    *sums.entry((p.string(l.key), value)).or_default() += weight;
                }
            });
        }
        sums
    }
}
