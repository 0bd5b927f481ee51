//! From the runs of both sides to rows: which stacks are heavy, each of which is a row, and what the lighter ones share with
//! these.

use super::labels::Labels;
use super::rows::{Cell, Kind, Name, Row, Rows, RunValues, Stacks};
use super::samples::{DEEPEST, OfRun, Part, Run};
use super::weights::{Beginnings, Weight, fitting, heavy, mix};
use crate::diff::matching::{Variants, canonical_of};
use crate::diff::order::Order;
use crate::diff::stacks::Keys;
use crate::diff::top::LeftOut;
use crate::diff::{Frames, Measure, Sort, State, Walk};
use crate::runtimes::{Asked, Class, Runtime, UserRules, classify, is_library};
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::interner::{Found, Index, Interner};
use pprofdiff_profile::parallel;
use pprofdiff_profile::random::{HashMap, HashSet};
use pprofdiff_profile::work::paced;

/// The frames of stacks are kept in an eighth of the bytes of the profiles and so many more, while they are read.
const ROOM: usize = 12 << 20;
/// Where no rows share calls, the tree of these and its sets take about 50 bytes for each frame, so rows have this many
/// frames together, or one for so many bytes of the profiles: half of them the heavy stacks, half the lighter ones.
const FRAMES: usize = 1 << 20;
const BYTES_OF_FRAME: usize = 16;

/// The columns that are read together.
pub(in crate::explain) struct Columns<'m> {
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
    /// True of what there is, and not of what is done.
    pub is_level: bool,
    /// What the user says of the program's own runtime.
    pub own: &'m UserRules,
}

/// Reads samples by their frames' canonical numbers.
pub(in crate::explain) struct Reader<'m> {
    pub kind: Kind,
    runtime: &'static Runtime,
    names: &'m [Name],
    /// By frame.
    pub canonical: &'m [u32],
    has_background: bool,
}

impl Reader<'_> {
    /// Makes a stack what the search sees of it, leaf first: without artefacts of profiling and, where they are inlined by
    /// chance, without system frames below the program's last.
    #[inline(always)]
    pub(in crate::explain) fn shorten(&self, stack: &mut Vec<u32>) {
        let class = |f: u32| self.names[f as usize].class;
        let mut leaf = stack.iter().take_while(|&&f| class(f).artefact).count().min(stack.len().saturating_sub(1));
        if self.runtime.trim_library_leaves {
            leaf += stack[leaf..].iter().position(|&f| !class(f).system).unwrap_or(0);
        }
        if leaf > 0 {
            stack.drain(..leaf);
        }
        stack.truncate(DEEPEST);
        if self.runtime.trim_library_leaves {
            stack.dedup();
        }
    }

    fn is_background(&self, stack: &[u32]) -> bool {
        let class = |f: &u32| self.names[*f as usize].class;
        let waits = || stack.last().is_some_and(|f| class(f).own_waits);
        // What has no stack may be anything.
        self.has_background
            && !stack.is_empty()
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
    /// [`NONE`] unless no heavy stack begins with it, and of what has no stack.
    root: u32,
    labels: u32,
}

/// The value of one event in each run, in the order of the profiles; 0 where that is not known.
pub(in crate::explain) fn event_of_runs(columns: &Columns<'_>) -> Vec<f64> {
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
    pub(in crate::explain) fn read(columns: &Columns<'_>) -> Rows {
        let (runtime, names, canonical) = names_of(columns.value.frames(), columns.own, Some(columns));
        let runs = runs(columns);
        let Columns { kind, has_background, learned, .. } = *columns;
        let reader = Reader { kind, runtime, names: &names, canonical: &canonical, has_background };
        let keys = Keys::new();
        let bytes = columns.value.profile_bytes();
        let of_each = ROOM / runs.len().max(1);
        let read = |run: &Run<'_>| {
            let room = run.walk.input.profile.inflated_size() / 8 + of_each;
            OfRun::read(run, &reader, &keys, room)
        };
        let read = parallel::map(&runs, read);
        let labels = Labels::new(&runs, &read);
        let frames = (bytes / BYTES_OF_FRAME).max(FRAMES) / 2;
        let m = [Some(0), Some(1)].map(|side| runs.iter().filter(|run| run.side == side).count());
        let mut found = Collected { reader: &reader, stacks: Stacks::default(), rows: Vec::new() };
        let (of_runs, pruned) = {
            let distinct = Distinct::new(&runs, &read, &labels);
            let (row_of, beginnings, pruned) = found.heavy(&runs, &read, &distinct, frames);
            let sums = |i: &usize| distinct.sums(&runs[*i], *i, &read[*i], &reader, &row_of, &beginnings);
            let mut sums = parallel::map(&(0..runs.len()).collect::<Vec<_>>(), sums);
            found.lighten(&runs, &mut sums, &beginnings, frames);
            (found.add_up(&runs, sums, m.iter().all(|&m| m > 1) || learned > 1), pruned)
        };
        let mut negative = [0.0; 2];
        let of_sides = runs.iter().zip(&read).filter_map(|(run, of)| Some((run.side?, of.negative)));
        of_sides.for_each(|(side, sum)| negative[side] += sum);
        let sides = if pruned > 0 { sides(&runs, &read, &canonical, names.len()) } else { Vec::new() };
        drop(read);
        let Collected { stacks, rows, .. } = found;
        let (label_sets, labels) = (labels.sets, labels.texts);
        let mut read = Rows {
            kind,
            runs: m,
            learned,
            runtime,
            names,
            rows,
            run_values: of_runs,
            labels,
            label_sets,
            keys_of_labels: 0,
            keys_left_out: 0,
            pruned,
            negative,
            sides,
            stacks,
        };
        let sum =
            |of: fn(&Row) -> bool| read.rows.iter().filter(|r| of(r)).map(|r| r.values[0] + r.values[1]).sum::<f64>();
        if sum(|r| r.background) > MAX_BACKGROUND * sum(|_| true) {
            read.rows.iter_mut().for_each(|r| r.background = false);
        }
        read.arrange();
        read.fit_labels(bytes);
        read
    }
}

/// The distinct stacks with labels of all runs.
struct Distinct {
    /// By run and its own number of a row: the number among all.
    of_run: Vec<Vec<u32>>,
    weights: Vec<Weight>,
    /// The stack of each, and its set of labels.
    rows: Vec<(u32, u32)>,
    /// By stack: the first run that has it, and its number there.
    first: Vec<(u32, u32)>,
}

impl Distinct {
    fn new(runs: &[Run<'_>], read: &[OfRun], labels: &Labels) -> Distinct {
        let mut index = Index::with_capacity(read.iter().map(|of| of.hashes.len()).max().unwrap_or(0));
        let (mut hashes, mut first): (Vec<u128>, Vec<(u32, u32)>) = (Vec::new(), Vec::new());
        let mut rows: Interner<(u32, u32), State> = Interner::default();
        let mut weights: Vec<Weight> = Vec::new();
        let mut of_run = Vec::with_capacity(runs.len());
        for (i, (run, of)) in runs.iter().zip(read).enumerate() {
            let number = |(&hash, own): (&u128, u32)| {
                let hash_of = |n: u32| hashes[n as usize];
                let found =
                    index.find_or_insert(hash as u64, hashes.len(), |n| hash_of(n) == hash, |n| hash_of(n) as u64);
                if let Found::New(_) = found {
                    hashes.push(hash);
                    first.push((i as u32, own));
                }
                found.number()
            };
            let stacks: Vec<u32> = paced(of.hashes.iter().zip(0..)).map(number).collect();
            let row = |(&(stack, set), part): (&(u32, u32), &Part)| {
                let set = labels.set_of(i, set);
                let number = rows.number((stacks[stack as usize], set));
                if number as usize == weights.len() {
                    let tie = mix(of.ties[stack as usize] ^ u64::from(set));
                    weights.push(Weight { values: [0.0; 2], tie, depth: of.depths[stack as usize] });
                }
                if let Some(side) = run.side {
                    weights[number as usize].values[side] += part.value;
                }
                number
            };
            of_run.push(paced(of.rows.iter().zip(&of.parts)).map(row).collect());
        }
        Distinct { of_run, weights, rows: rows.values, first }
    }

    /// What a run adds up to; `row_of` is each heavy one's row, and [`NONE`] for the others.
    fn sums(
        &self,
        run: &Run<'_>,
        number: usize,
        of: &OfRun,
        reader: &Reader<'_>,
        row_of: &[u32],
        beginnings: &Beginnings,
    ) -> Sums {
        let mut sums = Sums { heavy: Vec::new(), light: HashMap::default() };
        let rows = &self.of_run[number];
        // Of each stack with a light row: where its beginning is found among those of heavy ones.
        let mut places: Vec<Option<(u32, u32)>> = vec![None; of.hashes.len()];
        let mut is_light = vec![false; of.hashes.len()];
        for (&row, &(stack, _)) in paced(rows.iter().zip(&of.rows)) {
            is_light[stack as usize] |= row_of[row as usize] == NONE;
        }
        let mut shared: HashMap<(u32, u32), Vec<u32>, State> = HashMap::default();
        let mut hashes = Vec::new();
        of.each_stack(
            run,
            reader,
            |stack| is_light[stack as usize],
            |stack, frames| {
                let (length, beginning) = beginnings.longest(frames, &mut hashes);
                let root = || frames.first().copied().unwrap_or(NONE);
                let place = if length == 0 { (NONE, root()) } else { (beginning, NONE) };
                places[stack as usize] = Some(place);
                shared.entry(place).or_insert_with(|| frames[..length.max(1).min(frames.len())].to_vec());
            },
        );
        for ((&row, &(stack, _)), &part) in paced(rows.iter().zip(&of.rows).zip(&of.parts)) {
            let heavy = row_of[row as usize];
            if heavy != NONE {
                sums.heavy.push((heavy, part));
            } else if let Some((beginning, root)) = places[stack as usize] {
                let key = LightKey { beginning, root, labels: self.rows[row as usize].1 };
                let stack = || shared.get(&(beginning, root)).cloned().unwrap_or_default();
                sums.light.entry(key).or_insert_with(|| (stack(), Part::default())).1 += part;
            }
        }
        sums
    }
}

/// Rows while they are collected.
struct Collected<'r, 'm> {
    reader: &'r Reader<'m>,
    stacks: Stacks,
    rows: Vec<Row>,
}

impl Collected<'_, '_> {
    /// Adds a row of a stack.
    fn push(&mut self, stack: u32, labels: u32) -> u32 {
        let background = self.reader.is_background(self.stacks.get(stack));
        self.rows.push(Row {
            stack,
            labels,
            background,
            values: [0.0; 2],
            counts: [0.0; 2],
            events: [0.0; 2],
            variance: 0.0,
        });
        self.rows.len() as u32 - 1
    }

    /// Makes a row of each heavy stack, whose frames are those of the first run that has it. Gives the row of each distinct
    /// stack with labels ([`NONE`] if it is light), what heavy stacks begin with if there are light ones, and how many of
    /// these there are.
    fn heavy(
        &mut self,
        runs: &[Run<'_>],
        read: &[OfRun],
        distinct: &Distinct,
        frames: usize,
    ) -> (Vec<u32>, Beginnings, usize) {
        let heavy = heavy(&distinct.weights, frames);
        let mut stack_of = vec![NONE; distinct.first.len()];
        let mut is_wanted = vec![false; distinct.first.len()];
        heavy.iter().for_each(|&row| is_wanted[distinct.rows[row as usize].0 as usize] = true);
        // By run: which of all stacks are those that it is the first to have.
        let mut firsts: Vec<Vec<u32>> = read.iter().map(|of| vec![NONE; of.hashes.len()]).collect();
        for (&(run, own), stack) in distinct.first.iter().zip(0..).filter(|(_, stack)| is_wanted[*stack as usize]) {
            firsts[run as usize][own as usize] = stack;
        }
        for ((run, of), firsts) in runs.iter().zip(read).zip(firsts) {
            of.each_stack(
                run,
                self.reader,
                |own| firsts[own as usize] != NONE,
                |own, frames| {
                    stack_of[firsts[own as usize] as usize] = self.stacks.push(frames.iter().copied());
                },
            );
        }
        let mut row_of = vec![NONE; distinct.rows.len()];
        for &row in paced(&heavy) {
            let (stack, labels) = distinct.rows[row as usize];
            row_of[row as usize] = self.push(stack_of[stack as usize], labels);
        }
        let (mut beginnings, light) = (Beginnings::new(), distinct.rows.len() - heavy.len());
        if light > 0 {
            let order = Order::new(self.reader.names.len(), 0, |n| self.stacks.get(n)).sorted(self.stacks.len());
            paced(order).for_each(|stack| beginnings.add(self.stacks.get(stack)));
        }
        (row_of, beginnings, light)
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

    /// Adds up the runs; gives their values by row where noise `is_measured` by them.
    fn add_up(&mut self, runs: &[Run<'_>], sums: Vec<Sums>, is_measured: bool) -> RunValues {
        let mut cells = Vec::new();
        let mut row_of: HashMap<LightKey, u32, State> = HashMap::default();
        for (run, Sums { heavy, light }) in runs.iter().zip(sums) {
            let row = |(key, (stack, part)): (LightKey, (Vec<u32>, Part))| {
                let row = *row_of.entry(key).or_insert_with(|| {
                    let stack = self.stacks.push(stack);
                    self.push(stack, key.labels)
                });
                (row, part)
            };
            let light: Vec<_> = light.into_iter().map(row).collect();
            for (row, part) in paced(heavy.into_iter().chain(light)) {
                if is_measured {
                    cells.push(Cell { row, column: run.column as u32, value: part.value });
                }
                let Some(side) = run.side else { continue };
                let row = &mut self.rows[row as usize];
                row.values[side] += part.value;
                row.counts[side] += part.count;
                row.events[side] += part.events;
                row.variance += part.variance;
            }
        }
        RunValues::new(self.rows.len(), cells)
    }
}

/// With more background than this, it is what the program does.
const MAX_BACKGROUND: f64 = 0.7;

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
        let is_counted = columns.value.summary().unit == "count";
        Run { walk, count, bytes, side, column, step, is_level: columns.is_level, is_counted }
    };
    walks.into_iter().zip(taken.into_iter().rev()).map(run).collect()
}

/// Of each frame: why it is chance whether a profile has it, if it is. Profiling itself puts some there; and of inlined
/// library functions it is chance, in some languages, which one a profile shows, which is the second answer.
pub(crate) fn by_chance(frames: &Frames) -> crate::Result<(Vec<Option<LeftOut>>, bool)> {
    let own = UserRules::default();
    let (runtime, names, canonical) = names_of(frames, &own, None);
    let why = |class: Class| match class {
        Class { artefact: true, .. } => Some(LeftOut::Profiling),
        Class { system: true, .. } if runtime.unstable_inlining => Some(LeftOut::Inlining),
        _ => None,
    };
    Ok((canonical.iter().map(|&name| why(names[name as usize].class)).collect(), runtime.unstable_inlining))
}

/// The canonical names in their order, and by frame which it has. A text that frames share is looked at once. Of what is left
/// out alone, without columns, it is not asked what a name costs.
fn names_of(
    frames: &Frames,
    own: &UserRules,
    columns: Option<&Columns<'_>>,
) -> (&'static Runtime, Vec<Name>, Vec<u32>) {
    let asked = if columns.is_some() { Asked::All } else { Asked::LeftOut };
    let mut known: HashMap<u32, u32> = HashMap::default();
    let mut texts: Vec<String> = Vec::new();
    let mut raw = Vec::with_capacity(frames.len());
    // By file, whether it is of a library; by text, whether a function of that name is of none.
    let mut libraries: HashMap<u32, bool> = HashMap::default();
    let mut of_program: Vec<bool> = Vec::new();
    for frame in paced(0..frames.len() as u32) {
        let (name, file) = frames.texts_of(frame);
        let number = match known.get(&name) {
            Some(&number) => number,
            None => {
                let text = frames.short(name);
                let nameless = text.is_empty();
                texts.push(if nameless { frames.label(frame) } else { text });
                of_program.push(false);
                let number = texts.len() as u32 - 1;
                if !nameless {
                    known.insert(name, number);
                }
                number
            }
        };
        of_program[number as usize] |=
            asked == Asked::All && !*libraries.entry(file).or_insert_with(|| is_library(&frames.short(file)));
        raw.push(number);
    }
    let (runtime, classes) = classify(&texts, own, asked);
    let mut canonical: Vec<(String, Variants)> = paced(&texts).map(|text| canonical_of(text)).collect();
    let costs = columns.and_then(|columns| costs_of_shared(&canonical, &raw, columns));
    if let Some(costs) = &costs {
        keep_apart(&texts, &mut canonical, costs);
    }
    let mut order: Vec<u32> = (0..texts.len() as u32).collect();
    order.sort_unstable_by_key(|&i| &canonical[i as usize].0);
    let mut names: Vec<Name> = Vec::new();
    let mut of_text = vec![0; texts.len()];
    for i in order.iter().map(|&i| i as usize) {
        let text = &canonical[i].0;
        if names.last().is_none_or(|last| last.text != *text) {
            names.push(Name { text: text.clone(), class: Class::default(), shown: Vec::new() });
        }
        let number = names.len() - 1;
        let (class, other) = (&mut names[number].class, classes[i]);
        class.system |= other.system;
        class.background |= other.background;
        class.artefact |= other.artefact;
        class.own_waits |= other.own_waits;
        class.benchmark |= other.benchmark;
        class.collects |= other.collects;
        class.allocates |= other.allocates;
        class.program |= other.program && of_program[i];
        of_text[i] = number as u32;
    }
    let of = raw.iter().map(|&i| of_text[i as usize]).collect();
    let texts: Vec<(String, u32)> = texts.into_iter().zip(of_text).collect();
    show(&mut names, &texts, costs.as_deref());
    (runtime, names, of)
}

/// What each name costs on both sides, if some share a canonical one.
fn costs_of_shared(canonical: &[(String, Variants)], raw: &[u32], columns: &Columns<'_>) -> Option<Vec<[f64; 2]>> {
    let mut known: HashSet<&str> = HashSet::default();
    if paced(canonical).all(|(text, _)| known.insert(text)) {
        return None;
    }
    let runs = columns.value.walks_of(true).count() as f64;
    let of_base = (runs - columns.learned as f64) / runs.max(1.0);
    let mut costs = vec![[0.0; 2]; canonical.len()];
    for row in columns.value.top(Sort::Cum).rows {
        let cost = &mut costs[raw[row.frame as usize] as usize];
        *cost = [cost[0] + row.cum.base as f64 * of_base, cost[1] + row.cum.new as f64];
    }
    Some(costs)
}

/// Leaves names as they are where both sides have them, so that only what has no partner is looked for by another name.
fn keep_apart(texts: &[String], canonical: &mut [(String, Variants)], costs: &[[f64; 2]]) {
    let is_on_both = |i: usize| costs[i].iter().all(|&cost| cost != 0.0);
    let is_on_one = |i: usize| !is_on_both(i) && costs[i] != [0.0; 2];
    let mut changed: HashSet<String> = HashSet::default();
    for (i, (text, variants)) in paced(canonical.iter().enumerate()) {
        if *variants == Variants::Numbered && is_on_one(i) {
            changed.insert(text.clone());
        }
    }
    for (i, (text, variants)) in paced(canonical.iter_mut().enumerate()) {
        let is_kept = match variants {
            Variants::Own => is_on_both(i),
            Variants::Numbered => is_on_both(i) && !changed.contains(text.as_str()),
            Variants::One => false,
        };
        if is_kept {
            text.clone_from(&texts[i]);
        }
    }
}

/// Lists the names that each canonical one has, with their costs; of a name that is its own there is nothing to choose.
fn show(names: &mut [Name], texts: &[(String, u32)], costs: Option<&[[f64; 2]]>) {
    let mut sharing = vec![0u32; names.len()];
    texts.iter().for_each(|(_, name)| sharing[*name as usize] += 1);
    for (i, (text, name)) in texts.iter().enumerate() {
        let cost = costs.map_or([0.0; 2], |costs| costs[i]);
        if sharing[*name as usize] == 1 || cost != [0.0; 2] {
            names[*name as usize].shown.push((text.clone(), cost));
        }
    }
    names.iter_mut().for_each(|name| name.shown.sort_unstable_by(|a, b| a.0.cmp(&b.0)));
}

/// Of each canonical name whether a side has it.
fn sides(runs: &[Run<'_>], read: &[OfRun], canonical: &[u32], n_names: usize) -> Vec<[bool; 2]> {
    let mut sides = vec![[false; 2]; n_names];
    for (run, of) in paced(runs.iter().zip(read)) {
        let side = usize::from(!run.walk.input.base);
        run.for_each_used(of, canonical, |name| sides[name as usize][side] = true);
    }
    sides
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
