//! Labels that assign samples to parts of the work. Only labels within the memory limit become candidates.

use std::collections::BTreeSet;
use std::ops::Range;

use super::rows::StackRows;
use super::samples::{OfRun, Run};
use crate::thresholds::{
    MAX_LABEL_VALUES, MAX_P_OF_LABEL_MISSING_BY_CHANCE, MAX_PART_OF_LABELS_OF_RUNS, MIN_COMMON_PART_OF_LABELS,
    MIN_LABEL_VALUES,
};
use pprofdiff::shared::{KnownTexts, State, TextInterner, Walk};
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::columns::{NONE, StringId};
use pprofdiff_profile::interner::{Interner, Sequences};
use pprofdiff_profile::random::{FastState, HashMap};
use pprofdiff_profile::samples::{LabelValue, Sample};
use pprofdiff_profile::short_lists::sort_by;

/// Labels by number, in the order of their keys, then of their values.
#[derive(Default)]
pub(crate) struct LabelTexts {
    /// The texts of each label: key and value.
    labels: Vec<(u32, u32)>,
    texts: TextInterner,
}

impl LabelTexts {
    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// Creates `n` labels without texts.
    #[cfg(test)]
    pub(crate) fn with_len(n: u32) -> LabelTexts {
        LabelTexts { labels: (0..n).map(|label| (label, label)).collect(), texts: TextInterner::default() }
    }

    /// Returns the key and value of a label.
    pub(crate) fn get(&self, label: u32) -> (String, String) {
        let text = |text: u32| String::from_utf8_lossy(self.texts.get(text)).into_owned();
        let (key, value) = self.labels[label as usize];
        (text(key), text(value))
    }
}

/// The labels of one run. Numbers are local to the run.
#[derive(Default)]
pub(crate) struct RunLabels {
    /// The labels by number: (key, value).
    pairs: Interner<(StringId, StringId), FastState>,
    /// The number of values of each key.
    n_values: HashMap<StringId, usize, FastState>,
    /// The distinct sets of labels on samples, each in ascending order.
    sets: Sequences<u32, FastState>,
    set: Vec<u32>,
}

impl RunLabels {
    /// Returns the number of a sample's set of labels. `texts` are its labels with text values. Ignores a key as soon
    /// as it has too many values.
    pub(super) fn set_of(&mut self, texts: &[(StringId, StringId)]) -> u32 {
        let RunLabels { pairs, n_values, sets, set } = self;
        set.clear();
        for &ids in texts {
            let n_before = pairs.values.len();
            let n_of_key = n_values.entry(ids.0).or_insert(0);
            if *n_of_key > MAX_LABEL_VALUES {
                continue;
            }
            let number = pairs.number(ids);
            *n_of_key += usize::from(pairs.values.len() > n_before);
            set.push(number);
        }
        set.sort_unstable();
        set.dedup();
        sets.number(set)
    }
}

/// The labels of all runs that assign samples to parts of the work.
pub(crate) struct WorkLabels {
    pub texts: LabelTexts,
    /// The distinct sets of labels: first the empty set, then in the order of their texts.
    pub sets: Vec<Vec<u32>>,
    /// By run: from the run's numbers of sets to the common numbers.
    set_numbers: Vec<Vec<u32>>,
}

/// The first words of the states of goroutines in text dumps (Go 1.26, `runtime/runtime2.go`: `waitReasonStrings` and
/// `gStatusStrings`).
const GOROUTINE_STATES: [&str; 26] = [
    "GC ",
    "IO wait",
    "broken stub",
    "chan ",
    "cleanup wait",
    "coroutine",
    "copystack",
    "dead",
    "debug call",
    "dumping heap",
    "finalizer wait",
    "flushing proc",
    "force gc",
    "garbage collection",
    "idle",
    "leaked",
    "page trace",
    "panicwait",
    "preempted",
    "runnable",
    "running",
    "select",
    "semacquire",
    "sleep",
    "sync.",
    "syscall",
];
/// More states, with a rare or general beginning.
const OTHER_GOROUTINE_STATES: [&str; 9] = [
    "stopping the world",
    "synctest",
    "timer goroutine",
    "trace ",
    "update",
    "wait",
    "system goroutine",
    "???",
    "moribund",
];

fn is_goroutine_state(value: &[u8]) -> bool {
    GOROUTINE_STATES.iter().chain(&OTHER_GOROUTINE_STATES).any(|state| value.starts_with(state.as_bytes()))
}

/// The runs that have each label.
#[derive(Default)]
struct Presence {
    /// The number of runs of each side.
    runs: [usize; 2],
    /// By label and side: the number of runs with the label, and its events in them.
    by_label: Vec<[(usize, f64); 2]>,
    /// By label: its events in the current run.
    events: Vec<f64>,
}

impl Presence {
    fn add(&mut self, label: u32, events: f64) {
        self.events.resize(self.events.len().max(label as usize + 1), 0.0);
        self.events[label as usize] += events;
    }

    fn end_run(&mut self, side: usize) {
        self.runs[side] += 1;
        self.by_label.resize(self.by_label.len().max(self.events.len()), Default::default());
        for (sides, events) in self.by_label.iter_mut().zip(&mut self.events).filter(|(_, events)| **events > 0.0) {
            sides[side].0 += 1;
            sides[side].1 += std::mem::take(events);
        }
    }

    /// Returns the events of the label in all runs.
    fn events_of(&self, label: u32) -> f64 {
        self.by_label.get(label as usize).map_or(0.0, |sides| sides.iter().map(|(_, events)| events).sum())
    }

    /// Returns true if all runs of both sides have the label.
    fn is_in_all(&self, label: u32) -> bool {
        let is_in_all = |sides: &[(usize, f64); 2]| (0..2).all(|side| sides[side].0 == self.runs[side]);
        self.by_label.get(label as usize).is_some_and(is_in_all)
    }

    /// Returns true if a run lacks the label, although the other runs of its side have too many events for chance. Each
    /// of the key's values could be missing by chance in each run.
    fn tells_runs(&self, label: u32, n_values: usize) -> bool {
        let Some(sides) = self.by_label.get(label as usize) else { return false };
        let n_chances = (n_values * (self.runs[0] + self.runs[1])) as f64;
        sides.iter().zip(self.runs).any(|(&(present, events), runs)| {
            // A run that lacks the label has no events of it, so all events are in the other runs.
            (1..runs).contains(&present)
                && (-events / (runs - 1) as f64).exp() * n_chances < MAX_P_OF_LABEL_MISSING_BY_CHANCE
        })
    }
}

impl WorkLabels {
    /// Keeps keys with 2 to 50 values if more than half of their cost is in values that both sides have. Any other key,
    /// such as a build, a process or a request, distinguishes the sides or the samples instead of the work. Also drops
    /// keys if most of their events have values that distinguish the runs of a side, such as the time of the start. If
    /// fewer have, such as the round in which a leaked goroutine was started, keeps only the values that all runs have.
    /// Drops the state of goroutines and threads, because it is a consequence of their functions.
    pub(crate) fn new(runs: &[Run<'_>], read: &[OfRun], is_goroutines: bool) -> WorkLabels {
        let mut texts = TextInterner::default();
        let mut pairs: Interner<(u32, u32), State> = Interner::default();
        let mut sums: Vec<[f64; 2]> = Vec::new();
        // By text: the number of its values, if it is a key.
        let mut values_of: Vec<usize> = Vec::new();
        let mut numbers: Vec<Vec<u32>> = Vec::new();
        let mut presence = Presence::default();
        for (run, samples) in runs.iter().zip(read) {
            let (p, side) = (&run.sampled.walk.input.profile, usize::from(!run.sampled.walk.input.base));
            let mut known_texts = KnownTexts::default();
            let mut number = |&(key, value): &(StringId, StringId)| {
                let key = known_texts.id(p, key, &mut texts);
                let number = pairs.number((key, known_texts.id(p, value, &mut texts)));
                values_of.resize(texts.len(), 0);
                if number as usize == sums.len() {
                    sums.push([0.0; 2]);
                    values_of[key as usize] += 1;
                }
                number
            };
            let pair_numbers: Vec<u32> = samples.labels.pairs.values.iter().map(&mut number).collect();
            for (&(_, set), part) in
                checkpointed(samples.rows.iter().zip(&samples.parts)).filter(|_| !pair_numbers.is_empty())
            {
                samples.labels.sets.get(set).iter().for_each(|&pair| {
                    let number = pair_numbers[pair as usize];
                    sums[number as usize][side] += part.value;
                    presence.add(number, part.events);
                });
            }
            presence.end_run(side);
            // Uses the run's own numbers of texts, so that the order of samples does not matter: keys it ignored have
            // too many values.
            for (&key, _) in samples.labels.n_values.iter().filter(|(_, n)| **n > MAX_LABEL_VALUES) {
                let key = known_texts.id(p, key, &mut texts);
                values_of.resize(texts.len(), 0);
                values_of[key as usize] = usize::MAX / 2;
            }
            numbers.push(pair_numbers);
        }
        // By key: the cost of all its values, and of the values that both sides have.
        let mut costs = vec![[0.0; 2]; texts.len()];
        for (&(key, _), &[base, new]) in pairs.values.iter().zip(&sums) {
            let [all, common] = &mut costs[key as usize];
            *all += base + new;
            *common += if base > 0.0 && new > 0.0 { base + new } else { 0.0 };
        }
        let is_state = |key: u32| {
            let is_of_threads = |(_, value): &(u32, u32)| texts.get(*value).starts_with(b"STATE_");
            let is_of_goroutines = |(_, value): &(u32, u32)| is_goroutines && is_goroutine_state(texts.get(*value));
            let mut values = pairs.values.iter().filter(|(other, _)| *other == key);
            // A label of the program may have the same key, such as the state of an order.
            texts.get(key) == b"state" && values.all(|pair| is_of_threads(pair) || is_of_goroutines(pair))
        };
        // By key: the events of all its values, and of the values that distinguish the runs of a side.
        let mut events = vec![[0.0; 2]; texts.len()];
        for (&(key, _), number) in pairs.values.iter().zip(0..) {
            let [all, telling] = &mut events[key as usize];
            *all += presence.events_of(number);
            if presence.tells_runs(number, values_of[key as usize]) {
                *telling += presence.events_of(number);
            }
        }
        let is_kept = |key: u32| {
            let [all, common] = costs[key as usize];
            !is_state(key)
                && events[key as usize][1] <= MAX_PART_OF_LABELS_OF_RUNS * events[key as usize][0]
                && (MIN_LABEL_VALUES..=MAX_LABEL_VALUES).contains(&values_of[key as usize])
                && common > MIN_COMMON_PART_OF_LABELS * all
        };
        let texts_of_pair = |number: u32| pairs.values[number as usize];
        let is_of_all = |number: u32| events[texts_of_pair(number).0 as usize][1] <= 0.0 || presence.is_in_all(number);
        let mut kept: Vec<u32> =
            (0..sums.len() as u32).filter(|&number| is_kept(texts_of_pair(number).0) && is_of_all(number)).collect();
        let key_and_value = |(key, value): (u32, u32)| (texts.get(key), texts.get(value));
        kept.sort_unstable_by(|&a, &b| key_and_value(texts_of_pair(a)).cmp(&key_and_value(texts_of_pair(b))));
        let mut label_of = vec![NONE; sums.len()];
        kept.iter().zip(0..).for_each(|(&number, label)| label_of[number as usize] = label);
        // By run: its sets, reduced to the labels that are kept.
        let sets_of_run = |(samples, pair_numbers): (&OfRun, Vec<u32>)| -> Vec<Vec<u32>> {
            let label =
                |&pair: &u32| Some(label_of[pair_numbers[pair as usize] as usize]).filter(|&label| label != NONE);
            let labels_of = |set: u32| {
                let mut labels: Vec<u32> = samples.labels.sets.get(set).iter().filter_map(label).collect();
                labels.sort_unstable();
                labels.dedup();
                labels
            };
            checkpointed(0..samples.labels.sets.len() as u32).map(labels_of).collect()
        };
        let kept_sets: Vec<Vec<Vec<u32>>> = read.iter().zip(numbers).map(sets_of_run).collect();
        let distinct: BTreeSet<&Vec<u32>> = kept_sets.iter().flatten().filter(|set| !set.is_empty()).collect();
        let mut sets = vec![Vec::new()];
        sets.extend(distinct.into_iter().cloned());
        let number = |set: &Vec<u32>| sets.binary_search(set).map_or(0, |number| number as u32);
        let set_numbers = kept_sets.iter().map(|set_numbers| set_numbers.iter().map(number).collect()).collect();
        let texts = LabelTexts { labels: kept.into_iter().map(texts_of_pair).collect(), texts };
        WorkLabels { texts, sets, set_numbers }
    }

    /// Returns the common number of a run's set of labels.
    pub(crate) fn set_of(&self, run: usize, number: u32) -> u32 {
        self.set_numbers[run].get(number as usize).copied().unwrap_or(0)
    }
}

/// Lower bound of the memory limit for candidates with labels, in units. Each label is a candidate by itself and with
/// each function below it, so their number grows with labels, functions and stacks. A unit is a tree node and a range
/// of a set, which are 28 bytes. A row takes 56 bytes and a candidate 112 bytes in addition. The limit is [`PLACES`],
/// or one unit per [`BYTES_OF_PLACE`] of the profiles.
const PLACES: usize = 900_000;
const BYTES_OF_PLACE: usize = 28;
/// Memory of a row in addition to its nodes, in units.
const ROW: usize = 2;
/// Memory of a candidate in addition to its rows, in units.
const CANDIDATE: usize = 4;

/// The labels of one key.
struct KeyOfLabels {
    /// The range of their numbers.
    labels: Range<usize>,
    /// The maximum memory that they take, in units.
    places: usize,
    /// The value outside the key's largest label, as a sum of fractions of both sides.
    apart: f64,
}

impl StackRows {
    /// Counts the memory of candidates with labels. If it exceeds the limit, keeps keys in the order of the cost that
    /// they separate, largest first, and drops each key that does not fit into the rest of the limit. The change of
    /// cost does not matter: selecting by change would be a test without a price.
    pub(crate) fn fit_labels(&mut self, profile_bytes: usize) {
        let mut room = (profile_bytes / BYTES_OF_PLACE).max(PLACES);
        let mut keys = self.keys_of_labels();
        self.keys_of_labels = keys.len();
        if keys.iter().map(|key| key.places).fold(0, usize::saturating_add) <= room {
            return;
        }
        // Keys are in the order of their names. The stable sort preserves this order among equals.
        sort_by(&mut keys, |a, b| b.apart.total_cmp(&a.apart));
        let mut is_kept = vec![false; self.labels.len()];
        for key in keys {
            match room.checked_sub(key.places) {
                Some(rest) => (room, _) = (rest, is_kept[key.labels].fill(true)),
                None => self.keys_left_out += 1,
            }
        }
        self.label_sets.iter_mut().for_each(|set| set.retain(|&label| is_kept[label as usize]));
    }

    /// Returns the keys of all labels, in the order of their names.
    fn keys_of_labels(&self) -> Vec<KeyOfLabels> {
        let front = self.front();
        let mut whole = 0.0;
        let (mut places, mut parts) = (vec![0usize; self.labels.len()], vec![0.0; self.labels.len()]);
        // The last row of each label. Only the frames that differ from this row become new nodes.
        let mut last = vec![NONE; self.labels.len()];
        for (i, row) in checkpointed(self.rows.iter().enumerate()).filter(|(_, row)| !row.background) {
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
        // A label has at most one candidate per node, and at most one per function.
        let max_candidates = self.names.len() + 1;
        let units_of_label = |label: usize| places[label] + CANDIDATE * places[label].min(max_candidates);
        let mut start = 0;
        let key = |key_labels: &[(u32, u32)]| {
            let labels = start..start + key_labels.len();
            start = labels.end;
            let has: f64 = parts[labels.clone()].iter().sum();
            // The cost without a value of the key counts as one more label.
            let largest = parts[labels.clone()].iter().copied().fold(whole - has, f64::max);
            KeyOfLabels { places: labels.clone().map(units_of_label).sum(), apart: has.max(whole) - largest, labels }
        };
        self.labels.labels.chunk_by(|a, b| a.0 == b.0).map(key).collect()
    }

    /// Returns a warning about dropped keys.
    pub(crate) fn note_of_labels(&self) -> Option<String> {
        let (left_out, total) = (self.keys_left_out, self.keys_of_labels);
        (left_out > 0).then(|| {
            format!(
                "labels: {left_out} of {total} keys were left out, because they separate the least cost; to look at one of \
                 them, compare with --tagfocus KEY=VALUE"
            )
        })
    }
}

/// Returns the labels of a sample that have text values.
pub(super) fn texts_of<'m>(
    walk: &Walk<'m>,
    sample: &Sample<'m>,
) -> impl Iterator<Item = (StringId, StringId)> + use<'m> {
    walk.labels(sample).filter_map(|label| match label.value {
        LabelValue::Text(text) => Some((label.key, text)),
        LabelValue::Number(..) => None,
    })
}
