//! How a listing is made: functions of both sides are grouped, their lines summed, and the texts of both builds aligned.
//!
//! A listing's totals count a sample once a function. pprof adds up the cum of its lines, which counts recursion twice.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::inlined::only_inlined;
use super::{Line, LineChange, Routine, SourceCode, SourceText, is_start};
use crate::Result;
use crate::diff::alignment::{MAX_PAIRS, Row, align};
use crate::diff::matching::Moves;
use crate::diff::top::Sort;
use crate::diff::{Diff, Granularity, Measure, Pair, Query, Status, Summary, identity};
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::columns::StringId;
use pprofdiff_profile::random::{HashMap, HashSet};

/// Lines to show before and after those with samples, where the function's first line is not known.
const MARGIN: i64 = 5;

/// What the source lines of all routines of a listing may take, in bytes. Functions of a profile can overlap, so a
/// listing could otherwise be as long as functions times lines.
const MAX_TEXT_BYTES: usize = 64 << 20;

/// One side of a routine while it is collected.
#[derive(Default)]
struct Side {
    /// Its path, as sources are asked for it.
    path: Option<Arc<str>>,
    /// flat and cum by line.
    lines: BTreeMap<i64, (i64, i64)>,
    /// Where the function begins; 0 if it is not known.
    start: i64,
    cum: i64,
}

impl Side {
    fn flat(&self) -> i64 {
        self.lines.values().map(|(flat, _)| flat).sum()
    }

    /// The lines to show, if there are some with samples.
    fn range(&self) -> Option<RangeInclusive<i64>> {
        let (first, last) = (*self.lines.first_key_value()?.0, *self.lines.last_key_value()?.0);
        let before = first.saturating_sub(MARGIN);
        let start = if self.start > 0 { self.start.min(first) } else { before };
        Some(start..=last.saturating_add(MARGIN))
    }

    /// The lines with samples, without those that the profile does not know, which it numbers 0.
    fn known(&self) -> impl Iterator<Item = i64> + '_ {
        self.lines.range(1..).map(|(&n, _)| n)
    }
}

/// Which group a function belongs to.
#[derive(Default)]
struct Numbers<'a> {
    /// Of names, those of their texts.
    names: HashMap<&'a [u8], u32>,
    /// Of trimmed paths.
    files: HashMap<String, u32>,
    /// Of groups, by those of name and file.
    groups: HashMap<(u32, u32), u32>,
}

#[derive(Default)]
struct Group {
    /// The number of the name's text.
    name_id: u32,
    name: String,
    /// Trimmed; that of the new side if the sides differ.
    file: String,
    /// That of the base, if it is another one.
    base_file: Option<String>,
    base: Side,
    new: Side,
}

impl Group {
    fn flat(&self) -> Pair {
        Pair { base: self.base.flat(), new: self.new.flat() }
    }

    fn cum(&self) -> Pair {
        Pair { base: self.base.cum, new: self.new.cum }
    }
}

impl Diff {
    /// What `choose` takes of the functions whose names match; only what it asks for is looked up and aligned.
    pub(super) fn routines(
        &self,
        query: &Query,
        matches: &dyn Fn(&[u8]) -> bool,
        sources: &dyn SourceCode,
        choose: impl FnOnce(&mut dyn Iterator<Item = Routine>) -> Vec<Routine>,
    ) -> Result<(Arc<Summary>, Vec<Routine>)> {
        // Paths are trimmed here, since sources are looked for by more of them than is shown.
        let trim = &query.trim_path[..];
        self.find_sample_type(query.sample_type.as_deref())?;
        let query = Query { granularity: Granularity::Lines, trim_path: Vec::new(), ..query.clone() };
        // Lines are where they are written, whatever was inlined.
        let measure = self.select_with(&query, &Moves::default())?;
        let measure = measure.measure(query.sample_type.as_deref(), query.normalize)?;
        let frames = measure.frames();
        let rows = measure.top(Sort::Cum).rows;
        let mut numbers = Numbers::default();
        // By the numbers of their texts, since many functions may share a name or a path of a megabyte.
        let mut wanted: HashMap<u32, bool> = HashMap::default();
        // By the number of the path's text: what sources are asked for, what is shown, and the number of that.
        let mut paths: HashMap<u32, (Arc<str>, String, u32)> = HashMap::default();
        let mut groups: Vec<Group> = Vec::new();
        let mut group_of = vec![NONE; frames.len()];
        for row in &rows {
            let (name, path) = frames.texts_of(row.frame);
            let is_wanted = *wanted.entry(name).or_insert_with(|| {
                let bytes = frames.name_bytes(row.frame);
                let wanted = !bytes.is_empty() && matches(bytes);
                if wanted {
                    numbers.names.insert(bytes, name);
                }
                wanted
            });
            if !is_wanted {
                continue;
            }
            let (path, shown, file) = paths.entry(path).or_insert_with(|| {
                let path = frames.short(path);
                let shown = lossy(&identity::trimmed_path(path.as_bytes(), trim));
                let n = numbers.files.len() as u32;
                let file = *numbers.files.entry(shown.clone()).or_insert(n);
                (lossy(identity::without_prefix(path.as_bytes(), trim)).into(), shown, file)
            });
            let id = *numbers.groups.entry((name, *file)).or_insert_with(|| {
                let (name_id, file) = (name, shown.clone());
                groups.push(Group { name_id, name: frames.short(name), file, ..Group::default() });
                groups.len() as u32 - 1
            });
            group_of[row.frame as usize] = id;
            let group = &mut groups[id as usize];
            let line = frames.line(row.frame).unwrap_or(0);
            for (side, present, flat, cum) in [
                (&mut group.base, row.status != Status::Added, row.flat.base, row.cum.base),
                (&mut group.new, row.status != Status::Removed, row.flat.new, row.cum.new),
            ] {
                if present {
                    let sums = side.lines.entry(line).or_default();
                    *sums = (sums.0 + flat, sums.1 + cum);
                    side.path.get_or_insert_with(|| path.clone());
                }
            }
        }
        measure.starts(&numbers, &mut groups, trim);
        drop(numbers);
        measure.routine_sums(&group_of, &mut groups);
        // flat is a sum over lines, so it is not added up at each comparison.
        let sized = |g: Group| (Reverse(Sort::Cum.size(g.flat(), g.cum())), g);
        let mut groups: Vec<_> = join_moved(groups).into_iter().map(sized).collect();
        groups.sort_by(|(a_size, a), (b_size, b)| (a_size, &a.name, &a.file).cmp(&(b_size, &b.name, &b.file)));
        let mut texts = Texts::new(sources, self.is_two_sided());
        let mut routines = choose(&mut groups.into_iter().map(|(_, g)| texts.routine(g)));
        let names: HashSet<String> = routines.iter().map(|r| r.name.clone()).collect();
        let is_listed = |name: &[u8]| names.contains(&*String::from_utf8_lossy(name));
        let inlined = only_inlined(measure.walks().map(|walk| &*walk.input.profile), &is_listed);
        for r in &mut routines {
            let known = inlined.iter().find(|inlined| is_start(&inlined.function, &r.name));
            r.notes.extend(known.map(|inlined| format!("inlined wherever samples ran it, into {}", inlined.places())));
        }
        let mut summary = (**measure.summary()).clone();
        summary.query.trim_path = trim.to_vec();
        #[cfg(feature = "disasm")]
        let (routines, summary) = super::code::opened(&measure, routines, summary, trim)?;
        Ok((Arc::new(summary), routines))
    }
}

impl Measure {
    /// Looks up where each function begins.
    fn starts(&self, numbers: &Numbers<'_>, groups: &mut [Group], trim: &[String]) {
        for walk in self.walks() {
            let (p, functions) = (&walk.input.profile, walk.input.profile.functions());
            // By the profile's strings, each of which is looked up once.
            let mut names: HashMap<StringId, Option<u32>> = HashMap::default();
            let mut files: HashMap<StringId, Option<u32>> = HashMap::default();
            for (i, (&name, &file)) in functions.name.iter().zip(&functions.file).enumerate() {
                let start = functions.start_line[i];
                if start <= 0 {
                    continue;
                }
                let name = *names.entry(name).or_insert_with(|| numbers.names.get(p.string(name)).copied());
                // A path that was shortened is not found: a routine then shows some lines fewer.
                let file = *files.entry(file).or_insert_with(|| {
                    let path = identity::file_path(p.string(file), trim);
                    numbers.files.get(&*String::from_utf8_lossy(&path)).copied()
                });
                if let Some(id) = name.zip(file).and_then(|key| numbers.groups.get(&key).copied()) {
                    let group = &mut groups[id as usize];
                    let side = if walk.input.base { &mut group.base } else { &mut group.new };
                    side.start = if side.start == 0 { start } else { side.start.min(start) };
                }
            }
        }
    }

    /// What each routine cost with all that it called: a sample counts once, whatever its lines.
    fn routine_sums(&self, group_of: &[u32], groups: &mut [Group]) {
        let sums = self.sides(|base| {
            let mut sums = vec![(0u64, 0i64); groups.len()];
            let mut stamp = 0;
            self.for_each_stack(base, |value, stack| {
                stamp += 1;
                for &frame in stack {
                    if let Some((last, sum)) = sums.get_mut(group_of[frame as usize] as usize)
                        && *last != stamp
                    {
                        *last = stamp;
                        *sum += value;
                    }
                }
            });
            sums
        });
        for ((group, base), new) in groups.iter_mut().zip(sums.0).zip(sums.1) {
            let cum = self.scales.apply(Pair { base: base.1, new: new.1 });
            (group.base.cum, group.new.cum) = (cum.base, cum.new);
        }
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Brings a function's two sides together where the builds name its file differently (another folder, another version
/// in the path, a file that was renamed), as a table of functions does.
///
/// Of the files that only one side has, those that are called alike belong together if there is one of them on each
/// side; then, if there is one file left on each side, these two.
fn join_moved(groups: Vec<Group>) -> Vec<Group> {
    let mut by_name: BTreeMap<u32, Vec<Group>> = BTreeMap::new();
    for g in groups {
        by_name.entry(g.name_id).or_default().push(g);
    }
    let mut joined = Vec::new();
    for alike in by_name.into_values() {
        let mut by_file: BTreeMap<String, (Vec<Group>, Vec<Group>)> = BTreeMap::new();
        for g in alike {
            let file_name = || g.file.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
            match (g.base.lines.is_empty(), g.new.lines.is_empty()) {
                (false, true) => by_file.entry(file_name()).or_default().0.push(g),
                (true, false) => by_file.entry(file_name()).or_default().1.push(g),
                _ => joined.push(g),
            }
        }
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for mut sides in by_file.into_values() {
            joined.extend(join(&mut sides.0, &mut sides.1));
            old.append(&mut sides.0);
            new.append(&mut sides.1);
        }
        joined.extend(join(&mut old, &mut new));
        joined.extend(old.into_iter().chain(new));
    }
    joined
}

/// The one group of the base and the one of the new side as one, if there is one of each.
fn join(old: &mut Vec<Group>, new: &mut Vec<Group>) -> Option<Group> {
    if old.len() != 1 || new.len() != 1 {
        return None;
    }
    let (old, new) = old.pop().zip(new.pop())?;
    Some(Group { base: old.base, base_file: Some(old.file), ..new })
}

/// How lines are paired where no alignment says which belong together: line `n` of the base is line `n + by` of the new
/// side.
///
/// Both count from the line on which the function begins, if both profiles know it. Else a function may have moved as
/// the first of its lines that have samples did, or stayed where it was: whichever makes more lines with samples meet,
/// and in doubt it stayed.
struct Shift {
    by: i64,
    /// For people: what is paired with what.
    words: String,
}

impl Shift {
    fn from_group(g: &Group) -> Shift {
        let (base, new) = (&g.base, &g.new);
        let numbers = Shift { by: 0, words: "lines are paired by their numbers".to_owned() };
        let from = |place: &str, base: i64, new: i64| Shift {
            // Both are positive.
            by: new - base,
            words: format!("lines are paired by their offset from {place} ({base} -> {new})"),
        };
        if base.start > 0 && new.start > 0 {
            return if base.start == new.start {
                numbers
            } else {
                from("the function's first line", base.start, new.start)
            };
        }
        let Some((first_base, first_new)) = base.known().next().zip(new.known().next()) else { return numbers };
        let moved = from("the first line with samples", first_base, first_new);
        let meet =
            |by: i64| base.known().filter_map(|n| n.checked_add(by)).filter(|n| new.lines.contains_key(n)).count();
        if meet(moved.by) > meet(0) { moved } else { numbers }
    }
}

/// A text, and where its lines are.
struct Text {
    /// Tells it from other texts.
    id: usize,
    text: Arc<str>,
    /// Where each line begins, and where the last one ends.
    starts: Vec<usize>,
}

impl Text {
    fn new(id: usize, text: Arc<str>) -> Text {
        let mut starts = vec![0];
        starts.extend(text.split_inclusive('\n').scan(0, |end, line| {
            *end += line.len();
            Some(*end)
        }));
        Text { id, text, starts }
    }

    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// A line by its number, from 1.
    fn line(&self, number: i64) -> Option<&str> {
        let i = usize::try_from(number).ok()?;
        let line = self.text.get(*self.starts.get(i.checked_sub(1)?)?..*self.starts.get(i)?)?;
        let line = line.strip_suffix('\n').unwrap_or(line);
        Some(line.strip_suffix('\r').unwrap_or(line))
    }

    /// Those of these lines that the text has, by their indexes.
    fn clip(&self, range: Option<RangeInclusive<i64>>) -> std::ops::Range<usize> {
        let index = |n: i64| usize::try_from(n).unwrap_or(0).min(self.len());
        let range = range.map_or(0..0, |r| index(r.start().saturating_sub(1))..index(*r.end()));
        range.start..range.end.max(range.start)
    }

    /// About what these lines take in a listing, in bytes.
    fn cost(&self, range: Option<RangeInclusive<i64>>) -> usize {
        let range = self.clip(range);
        self.starts[range.end] - self.starts[range.start] + range.len() * size_of::<Line>()
    }
}

/// The lines of two texts, matched.
struct Aligned {
    /// The index of a line in each text, if it has one there, in the order of both.
    rows: Vec<Row>,
    /// In which row each line of the base is, and each of the new side.
    row_of: (Vec<u32>, Vec<u32>),
}

/// The numbers of a line on both sides.
type Numbered = (Option<i64>, Option<i64>);

/// Texts, each split once, and aligned once for all functions of a file.
struct Texts<'s> {
    sources: &'s dyn SourceCode,
    two_sided: bool,
    /// By the place, and by the address of the text, which several places may share.
    split: HashMap<String, Arc<Text>>,
    by_address: HashMap<usize, Arc<Text>>,
    /// By both texts; `None` if there is too much to align.
    aligned: HashMap<(usize, usize), Option<Arc<Aligned>>>,
    /// What is left of [`MAX_PAIRS`].
    pairs_left: u64,
    /// What is left of [`MAX_TEXT_BYTES`].
    left: usize,
}

impl<'s> Texts<'s> {
    fn new(sources: &'s dyn SourceCode, two_sided: bool) -> Texts<'s> {
        let (split, by_address, aligned) = Default::default();
        Texts { sources, two_sided, split, by_address, aligned, pairs_left: MAX_PAIRS, left: MAX_TEXT_BYTES }
    }

    /// The text of a side's file, and where it was found.
    fn find(&mut self, base: bool, own: &Side, other: &Side) -> Option<(String, Arc<Text>)> {
        // A side without samples of the function may still have its lines.
        let path = own.path.as_ref().or(other.path.as_ref()).filter(|p| !p.is_empty())?;
        let SourceText { place, text } = self.sources.find(base, path)?;
        // Places are for people, so two texts may have one.
        let split = match self.split.get(&place).filter(|known| known.text == text) {
            Some(known) => known.clone(),
            None => {
                // The map holds the text, so no other one gets its address.
                let address = text.as_ptr().addr();
                let split = self.by_address.entry(address).or_insert_with(|| Arc::new(Text::new(address, text)));
                self.split.insert(place.clone(), split.clone());
                split.clone()
            }
        };
        Some((place, split))
    }

    fn routine(&mut self, g: Group) -> Routine {
        let base = if self.two_sided { self.find(true, &g.base, &g.new) } else { None };
        let new = self.find(false, &g.new, &g.base);
        let (places, texts) = (
            (base.as_ref().map(|b| b.0.clone()), new.as_ref().map(|n| n.0.clone())),
            (base.map(|b| b.1), new.map(|n| n.1)),
        );
        let mut notes = Vec::new();
        if let Some(file) = g.base_file.as_ref().filter(|file| **file != g.file) {
            notes.push(format!("the base has it in {}", if file.is_empty() { "a file without a name" } else { file }));
        }
        let cost = |text: &Option<Arc<Text>>, side: &Side| text.as_ref().map_or(0, |t| t.cost(side.range()));
        let cost = cost(&texts.0, &g.base) + cost(&texts.1, &g.new);
        let whole = cost <= self.left;
        if whole {
            self.left -= cost;
        } else {
            notes.push("its source is left out, since the listing is too long: list fewer functions".to_owned());
        }
        let mut aligned = None;
        if let (Some(base), Some(new)) = &texts {
            let key = (base.id, new.id);
            let known =
                self.aligned.entry(key).or_insert_with(|| Aligned::new(base, new, &mut self.pairs_left).map(Arc::new));
            aligned = known.clone().map(|aligned| (aligned, base, new));
        }
        let numbers = match &aligned {
            Some((aligned, base, new)) => aligned.rows_of(&g, base, new, whole),
            None => self.by_offset(&g, &texts, whole, &mut notes),
        };
        let line = |(base, new): Numbered| {
            let text = |text: &Option<Arc<Text>>, n: Option<i64>| text.as_ref()?.line(n?).map(str::to_owned);
            let said = text(&texts.1, new).or_else(|| text(&texts.0, base));
            let change = match (base, new) {
                (None, Some(_)) if aligned.is_some() && said.is_some() => LineChange::Inserted,
                (Some(_), None) if aligned.is_some() && said.is_some() => LineChange::Deleted,
                _ => LineChange::Same,
            };
            line(&g, base, new, change, said.filter(|_| whole))
        };
        let lines = numbers.into_iter().map(line).collect();
        let unknown = |side: &Side, text: &Option<Arc<Text>>| {
            text.as_ref().zip(side.lines.last_key_value()).is_some_and(|(text, (&last, _))| last > text.len() as i64)
        };
        if unknown(&g.base, &texts.0) || unknown(&g.new, &texts.1) {
            let note = "the profile has lines that the source does not have: it is not the source of this build";
            notes.push(note.to_owned());
        }
        let (flat, cum) = (g.flat(), g.cum());
        let equal = flat.delta() == 0 && cum.delta() == 0;
        let status = Status::new(!g.base.lines.is_empty(), !g.new.lines.is_empty(), equal);
        Routine {
            base_file: g.base_file.filter(|file| *file != g.file),
            flat,
            cum,
            name: g.name,
            file: Some(g.file).filter(|f| !f.is_empty()),
            places,
            status,
            lines,
            instructions: Vec::new(),
            notes,
        }
    }

    /// The lines to show where nothing is aligned: with a text, whole stretches of it; else those with samples.
    fn by_offset(
        &self,
        g: &Group,
        texts: &(Option<Arc<Text>>, Option<Arc<Text>>),
        whole: bool,
        notes: &mut Vec<String>,
    ) -> Vec<Numbered> {
        let shift = Shift::from_group(g);
        let by = i128::from(shift.by);
        if self.two_sided {
            let why = match texts {
                (Some(_), Some(_)) => "the sources differ in too many lines to be compared",
                (None, Some(_)) => "no source of the base",
                (Some(_), None) => "no source of the new side",
                (None, None) => "no source of either side",
            };
            // Of a function that one side has there is nothing to pair.
            let pairs = g.base.known().next().is_some() && g.new.known().next().is_some();
            notes.push(if pairs { format!("{why}: {}", shift.words) } else { why.to_owned() });
        }
        // Places are lines of the new side, or where they would be.
        let old = g.base.known().map(|n| i128::from(n) + by);
        let mut places: BTreeSet<i128> = g.new.known().map(i128::from).chain(old).collect();
        if whole {
            for (text, own_by) in [(&texts.0, by), (&texts.1, 0)] {
                let Some(text) = text else { continue };
                for (range, by) in [(g.base.range(), by), (g.new.range(), 0)] {
                    // In the text's own numbers.
                    let moved = |n: i64| {
                        let n = (i128::from(n) + by - own_by).clamp(i64::MIN.into(), i64::MAX.into());
                        i64::try_from(n).unwrap_or_default()
                    };
                    let indexes = text.clip(range.map(|r| moved(*r.start())..=moved(*r.end())));
                    places.extend(indexes.map(|i| i as i128 + 1 + own_by));
                }
            }
        }
        // A side without samples and text has no lines.
        let has = |side: &Side, text: &Option<Arc<Text>>| !side.lines.is_empty() || text.is_some();
        let (in_base, in_new) = (self.two_sided && has(&g.base, &texts.0), has(&g.new, &texts.1));
        let number = |place: i128, has: bool| i64::try_from(place).ok().filter(|&n| has && n > 0);
        let known = places.into_iter().map(|place| (number(place - by, in_base), number(place, in_new)));
        let unknown: BTreeSet<i64> =
            [&g.base, &g.new].iter().flat_map(|s| s.lines.range(..1)).map(|(&n, _)| n).collect();
        let unknown = unknown.into_iter().map(|n| (in_base.then_some(n), in_new.then_some(n)));
        known.chain(unknown).collect()
    }
}

/// A line with its costs, by its number on each side.
fn line(g: &Group, base: Option<i64>, new: Option<i64>, change: LineChange, text: Option<String>) -> Line {
    let cost = |side: &Side, n: Option<i64>| n.and_then(|n| side.lines.get(&n)).copied().unwrap_or_default();
    let (b, n) = (cost(&g.base, base), cost(&g.new, new));
    let (flat, cum) = (Pair { base: b.0, new: n.0 }, Pair { base: b.1, new: n.1 });
    Line { base, new, change, text, flat, cum, instructions: Vec::new() }
}

impl Aligned {
    /// Matches the lines of two texts; `None` if there are more pairs of changed lines than are `left`. Whitespace
    /// around a line does not count: what moves into a block stays itself.
    fn new(base: &Text, new: &Text, left: &mut u64) -> Option<Aligned> {
        let [base, new] = [base, new].map(|text| text.text.lines().map(str::trim).collect::<Vec<_>>());
        let rows = align(&base, &new, left)?;
        let at = |side: fn(&Row) -> Option<u32>| -> Vec<u32> {
            rows.iter().zip(0..).filter(|(row, _)| side(row).is_some()).map(|(_, i)| i).collect()
        };
        let row_of = (at(|row| row.0), at(|row| row.1));
        Some(Aligned { rows, row_of })
    }

    /// The lines in which a routine lies, or only those with samples. Samples on lines that a text does not have follow
    /// at the end, so that no cost is lost.
    fn rows_of(&self, g: &Group, base: &Text, new: &Text, whole: bool) -> Vec<Numbered> {
        let sides = [(&g.base, base, &self.row_of.0), (&g.new, new, &self.row_of.1)];
        let mut shown: BTreeSet<u32> = BTreeSet::new();
        for (side, text, row_of) in sides {
            if whole {
                shown.extend(&row_of[text.clip(side.range())]);
            } else {
                shown.extend(side.known().filter_map(|n| row_of.get(usize::try_from(n).ok()? - 1)));
            }
        }
        let number = |i: Option<u32>| i.map(|i| i64::from(i) + 1);
        let rows = shown.into_iter().map(|row| self.rows[row as usize]).map(|(b, n)| (number(b), number(n)));
        // A line 0 is one that the profile does not know.
        let beyond = |(side, text, _): (&Side, &Text, _)| -> BTreeSet<i64> {
            side.lines.keys().copied().filter(|&n| n < 1 || n > text.len() as i64).collect()
        };
        let [base_beyond, new_beyond] = sides.map(beyond);
        let on = |beyond: &BTreeSet<i64>, n: i64| beyond.contains(&n).then_some(n);
        let beyond = base_beyond.union(&new_beyond).map(|&n| (on(&base_beyond, n), on(&new_beyond, n)));
        rows.chain(beyond).collect()
    }
}
