//! The input of the search: distinct stacks with what they cost on both sides and in each run, by dense numbers.
//!
//! Names are made canonical and numbered in their order, and rows are sorted by those numbers, so nothing that follows
//! depends on the order of runs, samples or threads.

use std::collections::{BTreeSet, HashMap};

use super::names::canonical;
use super::runtime::{Class, Runtime, classify};
use crate::diff::{Frames, Measure, State, Walk};
use pprofdiff_profile::columns::StringId;
use pprofdiff_profile::interner::{Interner, Sequences};
use pprofdiff_profile::samples::{LabelValue, Sample};

/// The most stacks that are looked at by themselves; of further ones, what they share with these.
const MOST_ROWS: usize = 20_000;
/// The most frames of a stack, from its leaf.
const DEEPEST: usize = 256;
/// What a label must have to say which part of the work something belongs to: so many values.
const MOST_VALUES: usize = 50;

/// What values are measured by, from which follows how many events stand behind one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Samples at intervals, as of time: a sample is an event.
    Sampled,
    /// Allocations, sampled by their size and written as if all had been seen.
    Heap,
    /// Waiting (locks, blocking), sampled and multiplied by the fraction.
    Delay,
}

/// A canonical name.
pub(super) struct Name {
    pub text: String,
    pub class: Class,
    /// The names that are called so here, with what each costs on both sides.
    pub shown: Vec<(String, [f64; 2])>,
}

/// A distinct stack with its labels, and sums over a side's runs.
#[derive(Debug, Clone)]
pub(super) struct Row {
    stack: u32,
    /// The number of its label set.
    pub labels: u32,
    /// Answers to causes elsewhere.
    pub background: bool,
    /// Values of both sides.
    pub v: [f64; 2],
    /// What is counted, such as allocations.
    pub c: [f64; 2],
    /// Events of both sides.
    pub e: [f64; 2],
    /// The sampling variance of the values, both sides together.
    pub q: f64,
}

type Stacks = Sequences<u32, State>;

pub(super) struct Rows {
    pub kind: Kind,
    /// Number of runs of either side.
    pub m: [usize; 2],
    pub runtime: &'static Runtime,
    pub names: Vec<Name>,
    pub rows: Vec<Row>,
    /// The values of the runs, those of the base first, row after row.
    pub runs: Vec<f64>,
    /// Texts of labels, and the sets of them that stacks have.
    pub labels: Vec<(String, String)>,
    pub label_sets: Vec<Vec<u32>>,
    /// The number of distinct stacks that were cut to what they share with heavier ones.
    pub pruned: usize,
    stacks: Stacks,
}

/// The columns that are read together.
pub(super) struct Columns<'m> {
    /// What is explained.
    pub value: &'m Measure,
    /// What counts it.
    pub count: Option<&'m Measure>,
    /// Of a heap, its bytes.
    pub bytes: Option<&'m Measure>,
    pub kind: Kind,
    /// What the runtime does answers to causes elsewhere: of time on a processor, and of waiting for locks. Of a wall
    /// clock
    /// and of goroutines it is how the program waits.
    pub has_background: bool,
}

impl Rows {
    pub(super) fn read(columns: &Columns<'_>) -> Rows {
        let frames = columns.value.frames();
        let (runtime, names, canon) = names_of(frames);
        let mut names: Vec<Name> = names;
        let labels = Labels::read(columns.value);
        let m = [true, false].map(|base| columns.value.walks_of(base).count());
        let mut reader = Reader { raw: Stacks::default(), row: Vec::new(), rows: Vec::new(), runs: Vec::new() };
        let mut kept = Rows {
            kind: columns.kind,
            m,
            runtime,
            names: Vec::new(),
            rows: Vec::new(),
            runs: Vec::new(),
            labels: Vec::new(),
            label_sets: Vec::new(),
            pruned: 0,
            stacks: Stacks::default(),
        };
        let mut cost_of_name = vec![[0.0; 2]; canon.distinct];
        let mut next = [0, m[0]];
        let [counts, bytes] = [columns.count, columns.bytes].map(|other| other.map(|m| m.walks().collect::<Vec<_>>()));
        let mut numbers: Interner<(u32, u32), State> = Interner::default();
        for (i, walk) in columns.value.walks().enumerate() {
            let side = usize::from(!walk.input.base);
            let run = next[side];
            next[side] += 1;
            let of = |walks: &Option<Vec<Walk<'_>>>, sample: &Sample<'_>| {
                walks.as_ref().map(|walks| walks[i].value(sample) as f64)
            };
            let mut step = 0;
            if let (Kind::Delay, Some(counts)) = (columns.kind, &counts) {
                walk.for_each_sample(|_, sample| step = gcd(step, counts[i].value(&sample).unsigned_abs()));
            }
            let period = walk.input.profile.period() as f64;
            let by_count = columns.value.summary().unit == "count";
            let innermost = walk.innermost();
            let mut stack: Vec<u32> = Vec::new();
            let mut cut: Vec<u32> = Vec::new();
            walk.for_each(|value, locations, sample| {
                if value <= 0 || locations.is_empty() {
                    return;
                }
                let v = value as f64;
                let counted = of(&counts, &sample).map(|c| c.max(1.0));
                let events = match columns.kind {
                    Kind::Delay => counted.unwrap_or(1.0) / step.max(1) as f64,
                    Kind::Heap if period > 1.0 => match (counted, of(&bytes, &sample)) {
                        (Some(c), Some(bytes)) if bytes > 0.0 => (c * -(-bytes / c / period).exp_m1()).max(1e-9),
                        _ => (v / period).max(1.0),
                    },
                    _ => counted.unwrap_or(if by_count {
                        v
                    } else if period > 1.0 {
                        (v / period).max(1.0)
                    } else {
                        1.0
                    }),
                };
                stack.clear();
                stack.push(labels.set_of(&walk, &sample));
                for &l in locations {
                    walk.push_frames(innermost[l as usize], l, &mut stack);
                }
                for &frame in &stack[1..] {
                    cost_of_name[canon.raw[frame as usize] as usize][side] += v;
                }
                let raw = reader.raw.number(&stack) as usize;
                if raw == reader.row.len() {
                    cut.clear();
                    cut.extend(stack[1..].iter().map(|&f| canon.of[f as usize]));
                    kept.shorten(&names, &mut cut);
                    let number = numbers.number((kept.stacks.number(&cut), stack[0]));
                    reader.row.push(number);
                    if number as usize == reader.rows.len() {
                        let background = columns.has_background && kept.is_background(&names, &cut);
                        let (v, c, e) = ([0.0; 2], [0.0; 2], [0.0; 2]);
                        reader.rows.push(Row {
                            stack: kept.stacks.number(&cut),
                            labels: stack[0],
                            background,
                            v,
                            c,
                            e,
                            q: 0.0,
                        });
                        reader.runs.resize(reader.rows.len() * (m[0] + m[1]), 0.0);
                    }
                }
                let number = reader.row[raw] as usize;
                let row = &mut reader.rows[number];
                row.v[side] += v;
                row.c[side] += counted.unwrap_or(events);
                row.e[side] += events;
                row.q += v * v / events * if columns.kind == Kind::Delay { 2.0 } else { 1.0 };
                reader.runs[number * (m[0] + m[1]) + run] += v;
            });
        }
        (kept.rows, kept.runs) = (reader.rows, reader.runs);
        for ((text, canonical), cost) in canon.texts.into_iter().zip(cost_of_name) {
            if cost != [0.0; 2] {
                names[canonical as usize].shown.push((text, cost));
            }
        }
        for name in &mut names {
            name.shown.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        }
        (kept.names, kept.labels, kept.label_sets) = (names, labels.texts, labels.sets);
        kept.prune();
        kept.sort();
        let sum = |of: fn(&Row) -> bool| kept.rows.iter().filter(|r| of(r)).map(|r| r.v[0] + r.v[1]).sum::<f64>();
        if sum(|r| r.background) > 0.7 * sum(|_| true) {
            kept.rows.iter_mut().for_each(|r| r.background = false);
        }
        kept
    }

    /// A stack's frames, root first.
    pub(super) fn stack(&self, row: usize) -> &[u32] {
        self.stacks.get(self.rows[row].stack)
    }

    pub(super) fn is_system(&self, frame: u32) -> bool {
        self.names[frame as usize].class.system
    }

    /// The sums of both sides.
    pub(super) fn total(&self) -> [f64; 2] {
        [0, 1].map(|s| self.rows.iter().map(|r| r.v[s]).sum())
    }

    /// Those of what is not in the background.
    pub(super) fn front(&self) -> [f64; 2] {
        [0, 1].map(|s| self.rows.iter().filter(|r| !r.background).map(|r| r.v[s]).sum())
    }

    /// The value of one event.
    pub(super) fn event(&self) -> f64 {
        let (q, v) = self.rows.iter().fold((0.0, 0.0), |(q, v), r| (q + r.q, v + r.v[0] + r.v[1]));
        if v > 0.0 { q / v } else { 0.0 }
    }

    /// Makes a stack, given leaf first, what the search sees of it: root first, without artefacts of profiling and,
    /// where they are inlined by chance, without system frames below the program's last.
    fn shorten(&self, names: &[Name], stack: &mut Vec<u32>) {
        let class = |f: u32| names[f as usize].class;
        let mut leaf = stack.iter().take_while(|&&f| class(f).artefact).count().min(stack.len().saturating_sub(1));
        if self.runtime.cut_system {
            leaf += stack[leaf..].iter().position(|&f| !class(f).system).unwrap_or(0);
        }
        stack.drain(..leaf);
        stack.truncate(DEEPEST);
        stack.reverse();
        if self.runtime.cut_system {
            stack.dedup();
        }
    }

    fn is_background(&self, names: &[Name], stack: &[u32]) -> bool {
        let class = |f: &u32| names[*f as usize].class;
        let waits = || stack.last().is_some_and(|f| names[*f as usize].text.starts_with("runtime."));
        stack.iter().all(|f| class(f).system)
            || stack.iter().any(|f| class(f).background)
            || self.kind == Kind::Delay && waits()
    }

    /// Gives rows other stacks, and adds up those that become the same. `change` gets a row's number and a copy of its
    /// stack.
    pub(super) fn regroup(&mut self, mut change: impl FnMut(usize, &mut Vec<u32>)) {
        let m = self.m[0] + self.m[1];
        let mut stacks = Stacks::default();
        let mut numbers: Interner<(u32, u32), State> = Interner::default();
        let mut rows: Vec<Row> = Vec::with_capacity(self.rows.len());
        let mut runs: Vec<f64> = Vec::with_capacity(self.runs.len());
        let mut stack = Vec::new();
        for (i, row) in self.rows.iter().enumerate() {
            stack.clear();
            stack.extend_from_slice(self.stacks.get(row.stack));
            change(i, &mut stack);
            let id = stacks.number(&stack);
            let number = numbers.number((id, row.labels)) as usize;
            let of_runs = &self.runs[i * m..][..m];
            if number == rows.len() {
                rows.push(Row { stack: id, ..row.clone() });
                runs.extend_from_slice(of_runs);
                continue;
            }
            let sum = &mut rows[number];
            for s in [0, 1] {
                sum.v[s] += row.v[s];
                sum.c[s] += row.c[s];
                sum.e[s] += row.e[s];
            }
            sum.q += row.q;
            runs[number * m..][..m].iter_mut().zip(of_runs).for_each(|(a, b)| *a += b);
        }
        (self.rows, self.runs, self.stacks) = (rows, runs, stacks);
    }

    /// Cuts all but the heaviest stacks to the longest part from the root that one of those has.
    fn prune(&mut self) {
        if self.rows.len() <= MOST_ROWS {
            return;
        }
        let total = self.total();
        let of = |x: f64, total: f64| if total > 0.0 { x / total } else { 0.0 };
        // Of equal weights by content, so that no order decides.
        let weight = |row: &Row| of(row.v[0], total[0]).max(of(row.v[1], total[1]));
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.select_nth_unstable_by(MOST_ROWS, |&a, &b| {
            let (x, y) = (&self.rows[a], &self.rows[b]);
            let by_content = || (self.stack(a), x.labels).cmp(&(self.stack(b), y.labels));
            weight(y).total_cmp(&weight(x)).then_with(by_content)
        });
        let mut children: HashMap<(u32, u32), u32, State> = HashMap::default();
        for &i in &order[..MOST_ROWS] {
            let mut node = 0;
            for &frame in self.stacks.get(self.rows[i].stack) {
                let next = children.len() as u32 + 1;
                node = *children.entry((node, frame)).or_insert(next);
            }
        }
        self.pruned = self.rows.len() - MOST_ROWS;
        self.regroup(|_, stack| {
            let mut node = 0;
            let kept = stack.iter().take_while(|frame| match children.get(&(node, **frame)) {
                Some(&next) => {
                    node = next;
                    true
                }
                None => false,
            });
            let kept = kept.count().max(1);
            stack.truncate(kept);
        });
    }

    /// Sorts rows by their names and labels.
    fn sort(&mut self) {
        let m = self.m[0] + self.m[1];
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_unstable_by(|&a, &b| {
            let (x, y) = (&self.rows[a], &self.rows[b]);
            let labels = || self.label_sets[x.labels as usize].cmp(&self.label_sets[y.labels as usize]);
            self.stacks.get(x.stack).cmp(self.stacks.get(y.stack)).then_with(labels)
        });
        self.runs = order.iter().flat_map(|&i| self.runs[i * m..][..m].iter().copied()).collect();
        self.rows = order.iter().map(|&i| self.rows[i].clone()).collect();
    }
}

/// Stacks as they are in the files, each with the row that it belongs to.
struct Reader {
    /// Each begins with the number of its labels.
    raw: Stacks,
    row: Vec<u32>,
    rows: Vec<Row>,
    runs: Vec<f64>,
}

/// From frames to canonical names.
struct Canon {
    /// By frame: its canonical name, and its name among the distinct ones.
    of: Vec<u32>,
    raw: Vec<u32>,
    distinct: usize,
    /// The distinct names, each with its canonical one.
    texts: Vec<(String, u32)>,
}

/// The canonical names in their order, and which each frame has. A text that frames share is looked at once.
fn names_of(frames: &Frames) -> (&'static Runtime, Vec<Name>, Canon) {
    let mut known: HashMap<u32, u32> = HashMap::new();
    let mut texts: Vec<String> = Vec::new();
    let mut raw = Vec::with_capacity(frames.len());
    for frame in 0..frames.len() as u32 {
        let (name, _) = frames.texts_of(frame);
        let number = match known.get(&name) {
            Some(&number) => number,
            None => {
                let text = frames.short(name);
                let nameless = text.is_empty();
                texts.push(if nameless { frames.label(frame) } else { text });
                let number = texts.len() as u32 - 1;
                if !nameless {
                    known.insert(name, number);
                }
                number
            }
        };
        raw.push(number);
    }
    let (runtime, classes) = classify(&texts);
    let canonical: Vec<String> = texts.iter().map(|text| canonical(text)).collect();
    let mut order: Vec<u32> = (0..texts.len() as u32).collect();
    order.sort_unstable_by_key(|&i| &canonical[i as usize]);
    let mut names: Vec<Name> = Vec::new();
    let mut of_text = vec![0; texts.len()];
    for i in order.iter().map(|&i| i as usize) {
        if names.last().is_none_or(|last| last.text != canonical[i]) {
            names.push(Name { text: canonical[i].clone(), class: Class::default(), shown: Vec::new() });
        }
        let number = names.len() - 1;
        let (class, other) = (&mut names[number].class, classes[i]);
        class.system |= other.system;
        class.background |= other.background;
        class.artefact |= other.artefact;
        of_text[i] = number as u32;
    }
    let of = raw.iter().map(|&i| of_text[i as usize]).collect();
    let distinct = texts.len();
    (runtime, names, Canon { of, raw, distinct, texts: texts.into_iter().zip(of_text).collect() })
}

/// The labels that say which part of the work a sample belongs to.
struct Labels {
    texts: Vec<(String, String)>,
    /// For each profile: the number of a key and a value.
    numbers: Vec<HashMap<(StringId, StringId), u32>>,
    /// The empty one first; in the order of their texts.
    sets: Vec<Vec<u32>>,
    of_set: HashMap<Vec<u32>, u32>,
}

impl Labels {
    /// Of keys with 2 to 50 values, of which most of the cost has values that both sides have: another key tells the
    /// sides or the samples apart, and not the work (a build, a process, a request).
    fn read(measure: &Measure) -> Labels {
        let mut keys: HashMap<String, HashMap<String, [f64; 2]>> = HashMap::new();
        let mut found: Vec<Vec<(StringId, StringId, String, String)>> = Vec::new();
        for walk in measure.walks() {
            let p = &walk.input.profile;
            let side = usize::from(!walk.input.base);
            let mut sums: HashMap<StringId, HashMap<StringId, f64>> = HashMap::new();
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
        let mut labels = Labels { texts, numbers, sets: vec![Vec::new()], of_set: HashMap::new() };
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
    fn set_of<'m>(&self, walk: &Walk<'m>, sample: &Sample<'m>) -> u32 {
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

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
