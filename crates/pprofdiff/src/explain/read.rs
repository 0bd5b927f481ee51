//! Reading both sides into rows. Samples are looked at once to know which stacks are heavy, and again to add them up: the
//! heavy ones each by itself, what is lighter as far as it shares the calls of these.

use super::labels::Labels;
use super::rows::{Cell, Kind, Name, Row, Rows, RunValues, Stacks};
use super::runtime::{Class, Own, Runtime, classify};
use super::weights::{Beginnings, Weights, fitting, tie};
use crate::diff::matching::canonical;
use crate::diff::stacks::Keys;
use crate::diff::top::LeftOut;
use crate::diff::{Frames, Innermost, Measure, SampleLocations, SampleVisitor, Sort, State, Walk};
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::interner::{Found, Index, Interner};
use pprofdiff_profile::parallel;
use pprofdiff_profile::random::{HashMap, HashSet};
use pprofdiff_profile::samples::Sample;
use pprofdiff_profile::work::paced;

/// The most frames of a stack, from its leaf.
const DEEPEST: usize = 256;
/// Sets take about 32 bytes for each frame of each row, so rows have this many frames together, or one for so many bytes
/// of the profiles: half of them the heavy stacks, half the lighter ones.
const FRAMES: usize = 1 << 20;
const BYTES_OF_FRAME: usize = 16;

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
    /// clock and of goroutines it is how the program waits.
    pub has_background: bool,
    /// How many profiles at the end of the base are runs of equal builds.
    pub learned: usize,
    /// What the user says of the program's own runtime.
    pub own: &'m Own,
}

/// One profile, and what it counts for.
pub(super) struct Run<'m> {
    walk: Walk<'m>,
    count: Option<Walk<'m>>,
    bytes: Option<Walk<'m>>,
    /// The side, unless only noise is learned from it.
    pub side: Option<usize>,
    /// Its column in [`Rows::runs`].
    column: usize,
    /// What all counts are multiples of: the fraction that was sampled.
    step: u64,
    /// True if its values are counts themselves.
    is_counted: bool,
}

/// What one sample adds to its row.
#[derive(Clone, Copy, Default)]
struct Part {
    value: f64,
    count: f64,
    events: f64,
    variance: f64,
}

impl std::ops::AddAssign for Part {
    fn add_assign(&mut self, other: Part) {
        self.value += other.value;
        self.count += other.count;
        self.events += other.events;
        self.variance += other.variance;
    }
}

/// The distinct stacks of a profile, by numbers.
pub(super) struct Distinct {
    pub hashes: Vec<u128>,
    /// What decides between stacks of equal weight: the same in whatever order samples and files come.
    pub ties: Vec<u64>,
    pub values: Vec<f64>,
    /// The number of its frames that may count.
    pub depths: Vec<u16>,
    /// The place of the first sample that has the stack.
    pub first: Vec<u32>,
    /// Of each sample.
    pub of_sample: Vec<u32>,
}

/// Reads samples by their frames' canonical numbers.
struct Reader<'m> {
    kind: Kind,
    runtime: &'static Runtime,
    names: &'m [Name],
    /// By frame.
    canonical: &'m [u32],
    labels: &'m Labels,
    has_background: bool,
}

/// Shows each sample that costs something and has a stack. `wants` says of which places the frames are needed; of others
/// they are empty.
struct Visitor<'c, 'm, W, F> {
    walk: &'c Walk<'m>,
    canonical: &'c [u32],
    innermost: Vec<Innermost>,
    frames: Vec<u32>,
    place: usize,
    wants: W,
    each: F,
}

impl<'m, W: FnMut(usize) -> bool, F: FnMut(usize, f64, &mut Vec<u32>, &Sample<'m>)> SampleVisitor<'m>
    for Visitor<'_, 'm, W, F>
{
    #[inline(always)]
    fn sample(&mut self, value: i64, locations: impl SampleLocations, sample: Sample<'m>) {
        if value <= 0 || locations.leaf().is_none() {
            return;
        }
        let Visitor { walk, canonical, innermost, frames, place, wants, each } = self;
        frames.clear();
        if wants(*place) {
            locations.for_each(|l| walk.push_frames(innermost[l as usize], l, frames));
            frames.iter_mut().for_each(|frame| *frame = canonical[*frame as usize]);
        }
        each(*place, value as f64, frames, &sample);
        *place += 1;
    }
}

impl Run<'_> {
    /// What a sample adds, with the events that stand behind it.
    fn part(&self, kind: Kind, v: f64, sample: &Sample<'_>) -> Part {
        let of = |walk: &Option<Walk<'_>>| walk.as_ref().map(|walk| walk.value(sample) as f64);
        let period = self.walk.input.profile.period() as f64;
        let counted = of(&self.count).map(|c| c.max(1.0));
        let by_period = || if period > 1.0 { (v / period).max(1.0) } else { 1.0 };
        let events = match kind {
            Kind::Delay => counted.unwrap_or(1.0) / self.step.max(1) as f64,
            Kind::Heap if period > 1.0 => match (counted, of(&self.bytes)) {
                (Some(c), Some(bytes)) if bytes > 0.0 => (c * -(-bytes / c / period).exp_m1()).max(1e-9),
                _ => by_period(),
            },
            _ if self.is_counted => counted.unwrap_or(v),
            _ => counted.unwrap_or_else(by_period),
        };
        let variance = v * v / events * if kind == Kind::Delay { 2.0 } else { 1.0 };
        Part { value: v, count: counted.unwrap_or(events), events, variance }
    }
}

impl<'m> Reader<'m> {
    fn visit<'w>(
        &self,
        run: &Run<'w>,
        wants: impl FnMut(usize) -> bool,
        each: impl FnMut(usize, f64, &mut Vec<u32>, &Sample<'w>),
    ) {
        let walk = &run.walk;
        let (innermost, frames, place) = (walk.innermost(), Vec::new(), 0);
        let mut visitor = Visitor { walk, canonical: self.canonical, innermost, frames, place, wants, each };
        walk.visit(&walk.input.profile.sample_range(), &mut visitor);
    }

    /// The distinct stacks of a run.
    fn distinct(&self, run: &Run<'_>, keys: &Keys) -> Distinct {
        let n = run.walk.input.profile.n_samples();
        let mut index = Index::with_capacity(n);
        let mut found = Distinct {
            hashes: Vec::with_capacity(n),
            ties: Vec::new(),
            values: Vec::new(),
            depths: Vec::new(),
            first: Vec::new(),
            of_sample: Vec::with_capacity(n),
        };
        self.visit(
            run,
            |_| true,
            |place, value, frames, sample| {
                let labels = self.labels.set_of(&run.walk, sample);
                let hash = keys.hash(labels, frames);
                let Distinct { hashes, ties, values, depths, first, of_sample } = &mut found;
                let of = |n: u32| hashes[n as usize];
                let number = index.find_or_insert(hash as u64, hashes.len(), |n| of(n) == hash, |n| of(n) as u64);
                if let Found::New(_) = number {
                    hashes.push(hash);
                    ties.push(tie(labels, frames));
                    values.push(0.0);
                    depths.push(frames.len().min(DEEPEST) as u16);
                    first.push(place as u32);
                }
                values[number.number() as usize] += value;
                of_sample.push(number.number());
            },
        );
        found
    }

    /// What a run adds up to. `heavy_of` is the number of a place's heavy stack, [`NONE`] if it is a lighter one.
    fn sums(&self, run: &Run<'_>, heavy_of: impl Fn(usize) -> u32, heavy: usize, beginnings: &Beginnings) -> Sums {
        let mut hashes = Vec::new();
        let mut of_heavy = vec![Part::default(); heavy];
        let mut sums = Sums { heavy: Vec::new(), light: HashMap::default() };
        self.visit(
            run,
            |place| heavy_of(place) == NONE,
            |place, value, stack, sample| {
                let part = run.part(self.kind, value, sample);
                let heavy = heavy_of(place);
                if heavy != NONE {
                    of_heavy[heavy as usize] += part;
                    return;
                }
                self.shorten(stack);
                let (length, beginning) = beginnings.longest(stack, &mut hashes);
                let Some(&root) = stack.last() else { return };
                let root = if length == 0 { root } else { NONE };
                let key = LightKey { beginning, root, labels: self.labels.set_of(&run.walk, sample) };
                let shared = || stack.iter().rev().take(length.max(1)).copied().collect();
                sums.light.entry(key).or_insert_with(|| (shared(), Part::default())).1 += part;
            },
        );
        sums.heavy = (0..).zip(of_heavy).filter(|(_, part)| part.value > 0.0).collect();
        sums
    }

    /// Makes a stack what the search sees of it, leaf first: without artefacts of profiling and, where they are inlined by
    /// chance, without system frames below the program's last.
    fn shorten(&self, stack: &mut Vec<u32>) {
        let class = |f: u32| self.names[f as usize].class;
        let mut leaf = stack.iter().take_while(|&&f| class(f).artefact).count().min(stack.len().saturating_sub(1));
        if self.runtime.cut_system {
            leaf += stack[leaf..].iter().position(|&f| !class(f).system).unwrap_or(0);
        }
        if leaf > 0 {
            stack.drain(..leaf);
        }
        stack.truncate(DEEPEST);
        if self.runtime.cut_system {
            stack.dedup();
        }
    }

    fn is_background(&self, stack: &[u32]) -> bool {
        let class = |f: &u32| self.names[*f as usize].class;
        let waits = || stack.last().is_some_and(|f| self.names[*f as usize].text.starts_with("runtime."));
        self.has_background
            && (stack.iter().all(|f| class(f).system)
                || stack.iter().any(|f| class(f).background)
                || self.kind == Kind::Delay && waits())
    }
}

/// What one run adds up to: of each heavy stack that it has, and of the lighter ones by what is left of them. The latter are known by
/// their beginning, or by their first frame if no heavy stack begins with it, and their labels.
struct Sums {
    heavy: Vec<(u32, Part)>,
    light: HashMap<LightKey, (Vec<u32>, Part), State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct LightKey {
    beginning: u32,
    /// [`NONE`] unless no heavy stack begins with it.
    root: u32,
    labels: u32,
}

/// The value of one event in each run, in the order of the profiles; 0 where that is not known.
pub(super) fn event_of_runs(columns: &Columns<'_>) -> Vec<f64> {
    parallel::map(&runs(columns), |run| {
        // Of sums without a count or a period it is not known; of what is recorded without exception it is nothing.
        let is_known = match columns.kind {
            Kind::Delay => true,
            Kind::Heap => run.walk.input.profile.period() > 1,
            Kind::Sampled => run.count.is_some() || run.is_counted || run.walk.input.profile.period() > 1,
        };
        if !is_known {
            return 0.0;
        }
        let mut sum = Part::default();
        run.walk.for_each_sample(|value, sample| {
            if value > 0 {
                sum += run.part(columns.kind, value as f64, &sample);
            }
        });
        if sum.value > 0.0 { sum.variance / sum.value } else { 0.0 }
    })
}

impl Rows {
    pub(super) fn read(columns: &Columns<'_>) -> Rows {
        let (runtime, mut names, canon) = names_of(columns.value.frames(), columns.own);
        name_costs(&mut names, &canon, columns);
        let labels = Labels::read(columns.value);
        let runs = runs(columns);
        let Columns { kind, has_background, learned, .. } = *columns;
        let reader = Reader { kind, runtime, names: &names, canonical: &canon.of, labels: &labels, has_background };
        let keys = Keys::new();
        let distinct = parallel::map(&runs, |run| reader.distinct(run, &keys));
        let frames = (columns.value.profile_bytes() / BYTES_OF_FRAME).max(FRAMES) / 2;
        let weights = Weights::new(&runs, &distinct, frames);
        let mut found =
            Collected { reader: &reader, stacks: Stacks::default(), rows: Vec::new(), row_of: Default::default() };
        let (row_of_heavy, beginnings) = found.heavy(&runs, &distinct, &weights);
        let all: Vec<usize> = (0..runs.len()).collect();
        let mut sums = parallel::map(&all, |&i| {
            let heavy_of = |place: usize| weights.heavy_of(i, distinct[i].of_sample[place]);
            reader.sums(&runs[i], heavy_of, row_of_heavy.len(), &beginnings)
        });
        let m = [Some(0), Some(1)].map(|side| runs.iter().filter(|run| run.side == side).count());
        found.lighten(&runs, &mut sums, &beginnings, frames);
        let of_runs = found.add_up(&runs, sums, &row_of_heavy);
        let Collected { stacks, rows, .. } = found;
        let (label_sets, labels, pruned) = (labels.sets, labels.texts, weights.light);
        let mut read = Rows {
            kind,
            m,
            learned,
            runtime,
            names,
            rows,
            runs: of_runs,
            labels,
            label_sets,
            keys_of_labels: 0,
            keys_left_out: 0,
            pruned,
            stacks,
        };
        read.sort();
        let sum = |of: fn(&Row) -> bool| read.rows.iter().filter(|r| of(r)).map(|r| r.v[0] + r.v[1]).sum::<f64>();
        if sum(|r| r.background) > MOST_BACKGROUND * sum(|_| true) {
            read.rows.iter_mut().for_each(|r| r.background = false);
        }
        read.fit_labels(columns.value.profile_bytes());
        read
    }
}

/// Rows while they are collected.
struct Collected<'r, 'm> {
    reader: &'r Reader<'m>,
    stacks: Stacks,
    rows: Vec<Row>,
    /// By stack and labels.
    row_of: Interner<(u32, u32), State>,
}

impl Collected<'_, '_> {
    fn row(&mut self, stack: &[u32], labels: u32) -> u32 {
        let id = self.stacks.number(stack);
        let number = self.row_of.number((id, labels));
        if number as usize == self.rows.len() {
            let background = self.reader.is_background(stack);
            self.rows.push(Row { stack: id, labels, background, v: [0.0; 2], c: [0.0; 2], e: [0.0; 2], q: 0.0 });
        }
        number
    }

    /// Makes a row of each heavy stack, whose frames are read from the first run that has it.
    fn heavy(&mut self, runs: &[Run<'_>], distinct: &[Distinct], weights: &Weights) -> (Vec<u32>, Beginnings) {
        let mut rows = vec![NONE; weights.heavy];
        let mut beginnings = Beginnings::new();
        for (i, run) in runs.iter().enumerate() {
            let first = distinct[i].first.iter().zip(0..).map(|(&place, own)| (place, weights.heavy_of(i, own)));
            let mut wanted: Vec<(u32, u32)> =
                first.filter(|&(_, heavy)| heavy != NONE && rows[heavy as usize] == NONE).collect();
            if wanted.is_empty() {
                continue;
            }
            wanted.sort_unstable();
            let mut places = wanted.iter().map(|w| w.0 as usize).peekable();
            let mut wanted = wanted.iter();
            let is_next = |place: usize| places.next_if_eq(&place).is_some();
            self.reader.visit(run, is_next, |_, _, stack, sample| {
                if stack.is_empty() {
                    return;
                }
                let Some(&(_, heavy)) = wanted.next() else { return };
                self.reader.shorten(stack);
                stack.reverse();
                beginnings.add(stack);
                rows[heavy as usize] = self.row(stack, self.reader.labels.set_of(&run.walk, sample));
            });
        }
        (rows, beginnings)
    }

    /// Where what is left of lighter stacks has more frames than there is room for, all but the heaviest are cut further:
    /// to what these, the heavy stacks or all have.
    fn lighten(&self, runs: &[Run<'_>], sums: &mut [Sums], beginnings: &Beginnings, room: usize) {
        let all = || sums.iter().flat_map(|sums| sums.light.values()).map(|(stack, _)| stack.len());
        if all().sum::<usize>() <= room {
            return;
        }
        let mut weights: HashMap<LightKey, ([f64; 2], &[u32]), State> = HashMap::default();
        for (run, sums) in runs.iter().zip(&*sums) {
            for (key, (stack, part)) in paced(&sums.light) {
                let (weight, _) = weights.entry(*key).or_insert(([0.0; 2], stack));
                weight[run.side.unwrap_or(0)] += if run.side.is_some() { part.value } else { 0.0 };
            }
        }
        let total = [0, 1].map(|side| weights.values().map(|(weight, _)| weight[side]).sum::<f64>().max(1e-300));
        let weight = |of: &([f64; 2], &[u32])| (of.0[0] / total[0]).max(of.0[1] / total[1]);
        let mut order: Vec<_> = weights.iter().collect();
        // Of equal weights by content, so that no order decides.
        order.sort_unstable_by(|a, b| {
            weight(b.1).total_cmp(&weight(a.1)).then_with(|| (a.1.1, a.0.labels).cmp(&(b.1.1, b.0.labels)))
        });
        order.truncate(fitting(order.iter().map(|(_, (_, stack))| stack.len()), room));
        let kept: HashSet<LightKey, State> = order.into_iter().map(|(key, _)| *key).collect();
        drop(weights);
        for sums in sums {
            let mut light: HashMap<LightKey, (Vec<u32>, Part), State> = HashMap::default();
            for (mut key, (mut stack, part)) in paced(std::mem::take(&mut sums.light)) {
                if !kept.contains(&key) && key.root == NONE {
                    let numbers = beginnings.numbers(&stack);
                    let labels = key.labels;
                    let of = |length: &usize| LightKey { beginning: numbers[*length - 1], root: NONE, labels };
                    let length = (1..stack.len()).rev().find(|length| kept.contains(&of(length))).unwrap_or(1);
                    (key, _) = (of(&length), stack.truncate(length));
                }
                light.entry(key).or_insert_with(|| (stack, Part::default())).1 += part;
            }
            sums.light = light;
        }
    }

    /// Adds up the runs, and gives their values by row.
    fn add_up(&mut self, runs: &[Run<'_>], sums: Vec<Sums>, row_of_heavy: &[u32]) -> RunValues {
        let mut cells = Vec::new();
        for (run, Sums { heavy, light }) in runs.iter().zip(sums) {
            let heavy: Vec<_> = heavy.into_iter().map(|(n, part)| (row_of_heavy[n as usize], part)).collect();
            let light: Vec<_> =
                light.into_iter().map(|(key, (stack, part))| (self.row(&stack, key.labels), part)).collect();
            for (row, part) in paced(heavy.into_iter().chain(light)) {
                cells.push(Cell { row, column: run.column as u32, value: part.value });
                let Some(side) = run.side else { continue };
                let row = &mut self.rows[row as usize];
                row.v[side] += part.value;
                row.c[side] += part.count;
                row.e[side] += part.events;
                row.q += part.variance;
            }
        }
        RunValues::new(self.rows.len(), cells)
    }
}

/// With more background than this, it is what the program does.
const MOST_BACKGROUND: f64 = 0.7;

/// The profiles, in the order of their files.
fn runs<'m>(columns: &Columns<'m>) -> Vec<Run<'m>> {
    let [of_base, of_new] = [true, false].map(|base| columns.value.walks_of(base).count());
    let m = [of_base - columns.learned, of_new];
    let mut next = [0, m[0], m[0] + m[1]];
    let walks = |measure: Option<&'m Measure>| measure.map(|m| m.walks().collect::<Vec<_>>());
    let (mut counts, mut bytes) = (walks(columns.count), walks(columns.bytes));
    let mut take = |i: usize| {
        let of = |walks: &mut Option<Vec<Walk<'m>>>| walks.as_mut().map(|walks| walks.swap_remove(i));
        (of(&mut counts), of(&mut bytes))
    };
    let walks: Vec<Walk<'m>> = columns.value.walks().collect();
    // From the last on, so that each is at its place when it is taken.
    let taken: Vec<_> = (0..walks.len()).rev().map(&mut take).collect();
    let run = |(walk, (count, bytes)): (Walk<'m>, (Option<Walk<'m>>, Option<Walk<'m>>))| {
        let side = usize::from(!walk.input.base);
        let side = if walk.input.base && next[0] == m[0] { None } else { Some(side) };
        let column = &mut next[side.unwrap_or(2)];
        let column = std::mem::replace(column, *column + 1);
        let mut step = 0;
        if let (Kind::Delay, Some(count)) = (columns.kind, &count) {
            walk.for_each_sample(|_, sample| step = gcd(step, count.value(&sample).unsigned_abs()));
        }
        Run { walk, count, bytes, side, column, step, is_counted: columns.value.summary().unit == "count" }
    };
    walks.into_iter().zip(taken.into_iter().rev()).map(run).collect()
}

/// Of each frame: why it is chance whether a profile has it, if it is. Profiling itself puts some there; and of inlined
/// library functions it is chance, in some languages, which one a profile shows, which is the second answer.
pub(crate) fn by_chance(frames: &Frames) -> crate::Result<(Vec<Option<LeftOut>>, bool)> {
    let own = Own::new(&super::ExplainOptions::default())?;
    let (runtime, names, canon) = names_of(frames, &own);
    let why = |class: Class| match class {
        Class { artefact: true, .. } => Some(LeftOut::Profiling),
        Class { system: true, .. } if runtime.flickers => Some(LeftOut::Inlining),
        _ => None,
    };
    Ok((canon.of.iter().map(|&name| why(names[name as usize].class)).collect(), runtime.flickers))
}

/// From frames to canonical names.
struct Canon {
    /// By frame: its canonical name, and its name among the distinct ones.
    of: Vec<u32>,
    raw: Vec<u32>,
    /// The distinct names, each with its canonical one.
    texts: Vec<(String, u32)>,
}

/// The canonical names in their order, and which each frame has. A text that frames share is looked at once.
fn names_of(frames: &Frames, own: &Own) -> (&'static Runtime, Vec<Name>, Canon) {
    let mut known: HashMap<u32, u32> = HashMap::default();
    let mut texts: Vec<String> = Vec::new();
    let mut raw = Vec::with_capacity(frames.len());
    for frame in paced(0..frames.len() as u32) {
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
    let (runtime, classes) = classify(&texts, own);
    let canonical: Vec<String> = paced(&texts).map(|text| canonical(text)).collect();
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
    (runtime, names, Canon { of, raw, texts: texts.into_iter().zip(of_text).collect() })
}

/// What the names that share a canonical one cost on both sides; of a name that is its own there is nothing to choose.
fn name_costs(names: &mut [Name], canon: &Canon, columns: &Columns<'_>) {
    let mut sharing = vec![0u32; names.len()];
    canon.texts.iter().for_each(|(_, canonical)| sharing[*canonical as usize] += 1);
    let mut costs = vec![[0.0; 2]; canon.texts.len()];
    if sharing.iter().any(|&n| n > 1) {
        let runs = columns.value.walks_of(true).count() as f64;
        let of_base = (runs - columns.learned as f64) / runs.max(1.0);
        for row in columns.value.top(Sort::Cum).rows {
            let cost = &mut costs[canon.raw[row.frame as usize] as usize];
            *cost = [cost[0] + row.cum.base as f64 * of_base, cost[1] + row.cum.new as f64];
        }
    }
    for ((text, canonical), cost) in canon.texts.iter().zip(costs) {
        if sharing[*canonical as usize] == 1 || cost != [0.0; 2] {
            names[*canonical as usize].shown.push((text.clone(), cost));
        }
    }
    names.iter_mut().for_each(|name| name.shown.sort_unstable_by(|a, b| a.0.cmp(&b.0)));
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
