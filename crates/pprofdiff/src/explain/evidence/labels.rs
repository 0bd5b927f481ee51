//! The labels that say which part of the work a sample belongs to, and those of them that there is room for as candidates.

use std::collections::BTreeSet;
use std::ops::Range;

use super::rows::Rows;
use super::samples::{OfRun, Run};
use crate::diff::labels::KnownTexts;
use crate::diff::texts::TextInterner;
use crate::diff::{State, Walk};
use pprofdiff_profile::columns::{NONE, StringId};
use pprofdiff_profile::interner::{Interner, Sequences};
use pprofdiff_profile::random::{FastState, HashMap};
use pprofdiff_profile::samples::{LabelValue, Sample};
use pprofdiff_profile::work::paced;

/// What a label must have to say which part of the work something belongs to: so many values.
const MAX_VALUES: usize = 50;

/// Labels by their numbers: in the order of their keys, then of their values.
#[derive(Default)]
pub(in crate::explain) struct LabelTexts {
    /// The texts of key and value.
    labels: Vec<(u32, u32)>,
    texts: TextInterner,
}

impl LabelTexts {
    pub(in crate::explain) fn len(&self) -> usize {
        self.labels.len()
    }

    /// So many labels without texts.
    #[cfg(test)]
    pub(in crate::explain) fn of_number(n: u32) -> LabelTexts {
        LabelTexts { labels: (0..n).map(|label| (label, label)).collect(), texts: TextInterner::default() }
    }

    /// A label's key and value.
    pub(in crate::explain) fn get(&self, label: u32) -> (String, String) {
        let text = |text: u32| String::from_utf8_lossy(self.texts.get(text)).into_owned();
        let (key, value) = self.labels[label as usize];
        (text(key), text(value))
    }
}

/// The labels of a run, by its own numbers.
#[derive(Default)]
pub(in crate::explain) struct RunLabels {
    /// (key, value) of each.
    pairs: Interner<(StringId, StringId), FastState>,
    /// How many values each key has.
    n_values: HashMap<StringId, usize, FastState>,
    /// The sets that samples have, each in ascending order.
    sets: Sequences<u32, FastState>,
    set: Vec<u32>,
}

impl RunLabels {
    /// The number of a sample's set of labels, of which `texts` are those that are texts. A key that has too many values is left
    /// out from then on.
    pub(super) fn set_of(&mut self, texts: &[(StringId, StringId)]) -> u32 {
        let RunLabels { pairs, n_values, sets, set } = self;
        set.clear();
        for &ids in texts {
            let known = pairs.values.len();
            let of_key = n_values.entry(ids.0).or_insert(0);
            if *of_key > MAX_VALUES {
                continue;
            }
            let number = pairs.number(ids);
            *of_key += usize::from(pairs.values.len() > known);
            set.push(number);
        }
        set.sort_unstable();
        set.dedup();
        sets.number(set)
    }
}

/// The labels that say which part of the work a sample belongs to.
pub(in crate::explain) struct Labels {
    pub texts: LabelTexts,
    /// The empty one first; in the order of their texts.
    pub sets: Vec<Vec<u32>>,
    /// By run: from its own numbers of sets.
    of_run: Vec<Vec<u32>>,
}

impl Labels {
    /// Of keys with 2 to 50 values, of which most of the cost has values that both sides have: another key tells the
    /// sides or the samples apart, and not the work (a build, a process, a request).
    pub(in crate::explain) fn new(runs: &[Run<'_>], read: &[OfRun]) -> Labels {
        let mut texts = TextInterner::default();
        let mut pairs: Interner<(u32, u32), State> = Interner::default();
        let mut sums: Vec<[f64; 2]> = Vec::new();
        // Of each text, as a key.
        let mut values_of: Vec<usize> = Vec::new();
        let mut numbers: Vec<Vec<u32>> = Vec::new();
        for (run, of) in runs.iter().zip(read) {
            let (p, side) = (&run.walk.input.profile, usize::from(!run.walk.input.base));
            let mut known = KnownTexts::default();
            let mut number = |&(key, value): &(StringId, StringId)| {
                let key = known.id(p, key, &mut texts);
                let number = pairs.number((key, known.id(p, value, &mut texts)));
                values_of.resize(texts.len(), 0);
                if number as usize == sums.len() {
                    sums.push([0.0; 2]);
                    values_of[key as usize] += 1;
                }
                number
            };
            let own: Vec<u32> = of.labels.pairs.values.iter().map(&mut number).collect();
            for (&(_, set), part) in paced(of.rows.iter().zip(&of.parts)).filter(|_| !own.is_empty()) {
                of.labels.sets.get(set).iter().for_each(|&pair| sums[own[pair as usize] as usize][side] += part.value);
            }
            // By the run's own numbers of texts, so that no order of samples decides: what it left out has too many.
            for (&key, _) in of.labels.n_values.iter().filter(|(_, n)| **n > MAX_VALUES) {
                let key = known.id(p, key, &mut texts);
                values_of.resize(texts.len(), 0);
                values_of[key as usize] = usize::MAX / 2;
            }
            numbers.push(own);
        }
        // Of each key what all its values cost, and those that both sides have.
        let mut costs = vec![[0.0; 2]; texts.len()];
        for (&(key, _), &[base, new]) in pairs.values.iter().zip(&sums) {
            let [all, common] = &mut costs[key as usize];
            *all += base + new;
            *common += if base > 0.0 && new > 0.0 { base + new } else { 0.0 };
        }
        let is_kept = |key: u32| {
            let [all, common] = costs[key as usize];
            (2..=MAX_VALUES).contains(&values_of[key as usize]) && common > 0.5 * all
        };
        let texts_of_pair = |number: u32| pairs.values[number as usize];
        let mut kept: Vec<u32> = (0..sums.len() as u32).filter(|&number| is_kept(texts_of_pair(number).0)).collect();
        let of_pair = |(key, value): (u32, u32)| (texts.get(key), texts.get(value));
        kept.sort_unstable_by(|&a, &b| of_pair(texts_of_pair(a)).cmp(&of_pair(texts_of_pair(b))));
        let mut label_of = vec![NONE; sums.len()];
        kept.iter().zip(0..).for_each(|(&number, label)| label_of[number as usize] = label);
        // The sets of each run, of labels that are kept.
        let sets_of_run = |(of, own): (&OfRun, Vec<u32>)| -> Vec<Vec<u32>> {
            let label = |&pair: &u32| Some(label_of[own[pair as usize] as usize]).filter(|&label| label != NONE);
            let labels_of = |set: u32| {
                let mut labels: Vec<u32> = of.labels.sets.get(set).iter().filter_map(label).collect();
                labels.sort_unstable();
                labels.dedup();
                labels
            };
            paced(0..of.labels.sets.len() as u32).map(labels_of).collect()
        };
        let of_runs: Vec<Vec<Vec<u32>>> = read.iter().zip(numbers).map(sets_of_run).collect();
        let distinct: BTreeSet<&Vec<u32>> = of_runs.iter().flatten().filter(|set| !set.is_empty()).collect();
        let mut sets = vec![Vec::new()];
        sets.extend(distinct.into_iter().cloned());
        let number = |set: &Vec<u32>| sets.binary_search(set).map_or(0, |number| number as u32);
        let of_run = of_runs.iter().map(|of_run| of_run.iter().map(number).collect()).collect();
        let texts = LabelTexts { labels: kept.into_iter().map(texts_of_pair).collect(), texts };
        Labels { texts, sets, of_run }
    }

    /// The number of a run's own set of labels.
    pub(in crate::explain) fn set_of(&self, run: usize, own: u32) -> u32 {
        self.of_run[run].get(own as usize).copied().unwrap_or(0)
    }
}

/// A label is a candidate by itself and with each function that it is found with, so there are as many as labels times
/// functions times stacks, of which each alone may be in proportion. They have so many places together, or one for so many
/// bytes of the profiles: a node of a tree and a range of a set each, which are 28 bytes, 56 for each row, and 112 for each
/// candidate.
const PLACES: usize = 900_000;
const BYTES_OF_PLACE: usize = 28;
/// What a row takes besides its nodes, in places.
const ROW: usize = 2;
/// What a candidate takes besides its rows, in places.
const CANDIDATE: usize = 4;

/// One key's labels.
struct KeyOfLabels {
    /// Their numbers.
    labels: Range<usize>,
    /// The most places that they take.
    places: usize,
    /// The value that lies apart from most of it, as a part of both sides.
    apart: f64,
}

impl Rows {
    /// Counts the candidates that labels would make, and leaves out the keys that there is no room for, those that tell the
    /// least value apart first. What changed decides nothing: to choose by that would be a test without a price.
    pub(in crate::explain) fn fit_labels(&mut self, profile_bytes: usize) {
        let mut room = (profile_bytes / BYTES_OF_PLACE).max(PLACES);
        let mut keys = self.keys_of_labels();
        self.keys_of_labels = keys.len();
        if keys.iter().map(|key| key.places).fold(0, usize::saturating_add) <= room {
            return;
        }
        // Keys are in the order of their names, which the sort keeps for equals.
        keys.sort_by(|a, b| b.apart.total_cmp(&a.apart));
        let mut is_kept = vec![false; self.labels.len()];
        for key in keys {
            match room.checked_sub(key.places) {
                Some(rest) => (room, _) = (rest, is_kept[key.labels].fill(true)),
                None => self.keys_left_out += 1,
            }
        }
        self.label_sets.iter_mut().for_each(|set| set.retain(|&label| is_kept[label as usize]));
    }

    /// The keys of all labels, in the order of their names.
    fn keys_of_labels(&self) -> Vec<KeyOfLabels> {
        let front = self.front();
        let mut whole = 0.0;
        let (mut places, mut parts) = (vec![0usize; self.labels.len()], vec![0.0; self.labels.len()]);
        // The last row of each label: a place is taken where a row goes another way than that.
        let mut last = vec![NONE; self.labels.len()];
        for (i, row) in paced(self.rows.iter().enumerate()).filter(|(_, row)| !row.background) {
            let stack = self.stack(i);
            let functions_from =
                |common: usize| stack[common..].iter().filter(|&&frame| !self.is_system(frame)).count();
            let part: f64 = (0..2).map(|s| row.values[s] / front[s].max(1e-300)).sum();
            whole += part;
            for &label in &self.label_sets[row.labels as usize] {
                let before = std::mem::replace(&mut last[label as usize], i as u32);
                let before = if before == NONE { &[] } else { self.stack(before as usize) };
                let common = before.iter().zip(stack).take_while(|(a, b)| a == b).count();
                places[label as usize] += ROW + functions_from(common);
                parts[label as usize] += part;
            }
        }
        // No label has more candidates than places, nor than functions.
        let most = self.names.len() + 1;
        let of_label = |label: usize| places[label] + CANDIDATE * places[label].min(most);
        let mut start = 0;
        let key = |of_key: &[(u32, u32)]| {
            let labels = start..start + of_key.len();
            start = labels.end;
            let has: f64 = parts[labels.clone()].iter().sum();
            // What has no value of the key lies apart, too.
            let largest = parts[labels.clone()].iter().copied().fold(whole - has, f64::max);
            KeyOfLabels { places: labels.clone().map(of_label).sum(), apart: has.max(whole) - largest, labels }
        };
        self.labels.labels.chunk_by(|a, b| a.0 == b.0).map(key).collect()
    }

    /// What a user should know of the keys that were left out.
    pub(in crate::explain) fn note_of_labels(&self) -> Option<String> {
        let (left_out, of) = (self.keys_left_out, self.keys_of_labels);
        (left_out > 0).then(|| {
            format!(
                "labels: {left_out} of {of} keys were left out, which tell the least cost apart; to look at one of them, \
                 compare with --tagfocus KEY=VALUE"
            )
        })
    }
}

/// The labels of a sample that are texts.
pub(super) fn texts_of<'m>(
    walk: &Walk<'m>,
    sample: &Sample<'m>,
) -> impl Iterator<Item = (StringId, StringId)> + use<'m> {
    walk.labels(sample).filter_map(|label| match label.value {
        LabelValue::Text(text) => Some((label.key, text)),
        LabelValue::Number(..) => None,
    })
}
