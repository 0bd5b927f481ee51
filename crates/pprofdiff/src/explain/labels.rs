//! The labels that say which part of the work a sample belongs to.

use std::collections::BTreeSet;

use crate::diff::{Measure, Walk};
use pprofdiff_profile::columns::StringId;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::samples::{LabelValue, Sample};

/// What a label must have to say which part of the work something belongs to: so many values.
const MOST_VALUES: usize = 50;

/// The labels that say which part of the work a sample belongs to.
pub(super) struct Labels {
    pub texts: Vec<(String, String)>,
    /// For each profile: the number of a key and a value.
    numbers: Vec<HashMap<(StringId, StringId), u32>>,
    /// The empty one first; in the order of their texts.
    pub sets: Vec<Vec<u32>>,
    of_set: HashMap<Vec<u32>, u32>,
}

impl Labels {
    /// Of keys with 2 to 50 values, of which most of the cost has values that both sides have: another key tells the
    /// sides or the samples apart, and not the work (a build, a process, a request).
    pub(super) fn read(measure: &Measure) -> Labels {
        let mut keys: HashMap<String, HashMap<String, [f64; 2]>> = HashMap::default();
        let mut found: Vec<Vec<(StringId, StringId, String, String)>> = Vec::new();
        for walk in measure.walks() {
            let p = &walk.input.profile;
            let side = usize::from(!walk.input.base);
            let mut sums: HashMap<StringId, HashMap<StringId, f64>> = HashMap::default();
            if p.has_labels() {
                walk.for_each_sample(|value, sample| {
                    for (key, text) in texts_of(&walk, &sample) {
                        let values = sums.entry(key).or_default();
                        // Of a key with too many values it is known that it has too many.
                        if values.len() <= MOST_VALUES || values.contains_key(&text) {
                            *values.entry(text).or_default() += value as f64;
                        }
                    }
                });
            }
            let mut here = Vec::new();
            for (key, of_values) in sums {
                let name = p.text(key);
                let values = keys.entry(name.clone()).or_default();
                for (text, sum) in of_values {
                    let value = p.text(text);
                    values.entry(value.clone()).or_default()[side] += sum;
                    here.push((key, text, name.clone(), value));
                }
            }
            found.push(here);
        }
        keys.retain(|_, values| {
            let sum = |common: bool| -> f64 {
                let taken = values.values().filter(|v| !common || v[0] > 0.0 && v[1] > 0.0);
                taken.map(|v| v[0] + v[1]).sum()
            };
            (2..=MOST_VALUES).contains(&values.len()) && sum(true) > 0.5 * sum(false)
        });
        let all = keys.into_iter().flat_map(|(key, values)| values.into_keys().map(move |value| (key.clone(), value)));
        let mut texts: Vec<(String, String)> = all.collect();
        texts.sort_unstable();
        let of_text: HashMap<_, u32> = texts.iter().cloned().zip(0..).collect();
        let number = |(key, text, name, value)| Some(((key, text), *of_text.get(&(name, value))?));
        let numbers = found.into_iter().map(|here| here.into_iter().filter_map(number).collect()).collect();
        let mut labels = Labels { texts, numbers, sets: vec![Vec::new()], of_set: HashMap::default() };
        if labels.texts.is_empty() {
            return labels;
        }
        let mut sets = BTreeSet::new();
        for walk in measure.walks() {
            walk.for_each_sample(|_, sample| {
                let set = labels.of(&walk, &sample);
                if !set.is_empty() && !sets.contains(&set) {
                    sets.insert(set);
                }
            });
        }
        labels.sets.extend(sets);
        labels.of_set = labels.sets.iter().cloned().zip(0..).collect();
        labels
    }

    /// The numbers of a sample's labels, in order.
    fn of<'m>(&self, walk: &Walk<'m>, sample: &Sample<'m>) -> Vec<u32> {
        let numbers = &self.numbers[walk.index];
        let mut set: Vec<u32> = texts_of(walk, sample).filter_map(|pair| numbers.get(&pair).copied()).collect();
        set.sort_unstable();
        set.dedup();
        set
    }

    /// The number of a sample's set of labels.
    pub(super) fn set_of<'m>(&self, walk: &Walk<'m>, sample: &Sample<'m>) -> u32 {
        match self.texts.is_empty() {
            true => 0,
            false => self.of_set.get(&self.of(walk, sample)).copied().unwrap_or(0),
        }
    }
}

/// The labels of a sample that are texts.
fn texts_of<'m>(walk: &Walk<'m>, sample: &Sample<'m>) -> impl Iterator<Item = (StringId, StringId)> + use<'m> {
    walk.labels(sample).filter_map(|label| match label.value {
        LabelValue::Text(text) => Some((label.key, text)),
        LabelValue::Number(..) => None,
    })
}
