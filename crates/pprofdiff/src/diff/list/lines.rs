//! Lists source lines: groups the functions of both sides, sums up their lines, and aligns the texts of both builds.
//!
//! The totals of a listing count a sample once per function. pprof adds up the cum of the lines, which counts recursion
//! twice.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::inlined::only_inlined;
use super::{LineChange, ListedLine, Routine, SourceCode, SourceText, is_start};
use crate::Result;
use crate::diff::alignment::{AlignedRow, MAX_PAIRS, align};
use crate::diff::matching::Moves;
use crate::diff::top::Sort;
use crate::diff::{Diff, Granularity, Measure, Pair, Query, Status, Summary, identity};
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::columns::StringId;
use pprofdiff_profile::random::{HashMap, HashSet};
use pprofdiff_profile::short_lists::sort_by;

/// The number of lines to show around lines with samples, after them and, if the function's first line is unknown,
/// before them.
const MARGIN: i64 = 5;

/// The maximum size of all source lines in a listing, in bytes. Functions of a profile can overlap, so without a limit
/// a listing could have as many lines as functions times lines.
const MAX_TEXT_BYTES: usize = 64 << 20;

/// One side of a routine during collection.
#[derive(Default)]
struct ListingSide {
    /// The path that is passed to the source of texts.
    path: Option<Arc<str>>,
    /// The (flat, cum) by line.
    lines: BTreeMap<i64, (i64, i64)>,
    /// The first line of the function, 0 if it is unknown.
    start: i64,
    cum: i64,
}

impl ListingSide {
    fn flat(&self) -> i64 {
        self.lines.values().map(|(flat, _)| flat).sum()
    }

    /// Returns the lines to show, if there are lines with samples.
    fn range(&self) -> Option<RangeInclusive<i64>> {
        let (first, last) = (*self.lines.first_key_value()?.0, *self.lines.last_key_value()?.0);
        let before = first.saturating_sub(MARGIN);
        let start = if self.start > 0 { self.start.min(first) } else { before };
        Some(start..=last.saturating_add(MARGIN))
    }

    /// Returns the lines with samples, without line 0, which stands for an unknown line.
    fn numbered_lines(&self) -> impl Iterator<Item = i64> + '_ {
        self.lines.range(1..).map(|(&n, _)| n)
    }
}

/// The numbers of groups, by function.
#[derive(Default)]
struct GroupIds<'a> {
    /// The number of a name's text, by name.
    names: HashMap<&'a [u8], u32>,
    /// The number of a trimmed path, by path.
    files: HashMap<String, u32>,
    /// The number of a group, by the numbers of its name and file.
    groups: HashMap<(u32, u32), u32>,
}

#[derive(Default)]
struct RoutineGroup {
    /// The number of the name's text.
    name_id: u32,
    name: String,
    /// The trimmed path, from the new side if the sides differ.
    file: String,
    /// The path in the base, if it is different.
    base_file: Option<String>,
    base: ListingSide,
    new: ListingSide,
}

impl RoutineGroup {
    fn flat(&self) -> Pair {
        Pair { base: self.base.flat(), new: self.new.flat() }
    }

    fn cum(&self) -> Pair {
        Pair { base: self.base.cum, new: self.new.cum }
    }
}

impl Diff {
    /// Lists the matching functions that `choose` selects. Only the functions that it takes from the iterator are
    /// looked up and aligned.
    pub(super) fn routines(
        &self,
        query: &Query,
        matches: &dyn Fn(&[u8]) -> bool,
        sources: &dyn SourceCode,
        choose: impl FnOnce(&mut dyn Iterator<Item = Routine>) -> Vec<Routine>,
    ) -> Result<(Arc<Summary>, Vec<Routine>)> {
        // Paths are trimmed later, because the source lookup needs longer paths than the listing shows.
        let trim = &query.trim_path[..];
        self.find_sample_type(query.sample_type.as_deref())?;
        let query = Query { granularity: Granularity::Lines, trim_path: Vec::new(), ..query.clone() };
        // Lines belong to the function that contains them in the source, so inlining does not matter.
        let measure = self.select_with(&query, &Moves::default())?;
        let measure = measure.measure(query.sample_type.as_deref(), query.normalize)?;
        let frames = measure.frames();
        let rows = measure.top(Sort::Cum).rows;
        let mut numbers = GroupIds::default();
        // By the number of the name's text, because many functions may share a name or a path of a megabyte.
        let mut matching_names: HashMap<u32, bool> = HashMap::default();
        // By the number of the path's text: the path for the source lookup, the shown path, and the number of the shown
        // path.
        let mut paths: HashMap<u32, (Arc<str>, String, u32)> = HashMap::default();
        let mut groups: Vec<RoutineGroup> = Vec::new();
        let mut group_of = vec![NONE; frames.len()];
        for row in &rows {
            let (name, path) = frames.texts_of(row.frame);
            let is_match = *matching_names.entry(name).or_insert_with(|| {
                let bytes = frames.name_bytes(row.frame);
                let is_match = !bytes.is_empty() && matches(bytes);
                if is_match {
                    numbers.names.insert(bytes, name);
                }
                is_match
            });
            if !is_match {
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
                groups.push(RoutineGroup { name_id, name: frames.short(name), file, ..RoutineGroup::default() });
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
        // flat is a sum over lines, so it is computed once and not in each comparison.
        let sized = |g: RoutineGroup| (Reverse(Sort::Cum.size(g.flat(), g.cum())), g);
        let mut groups: Vec<_> = join_moved(groups).into_iter().map(sized).collect();
        sort_by(&mut groups, |(a_size, a), (b_size, b)| (a_size, &a.name, &a.file).cmp(&(b_size, &b.name, &b.file)));
        let mut texts = TextCache::new(sources, self.is_two_sided());
        let mut routines = choose(&mut groups.into_iter().map(|(_, g)| texts.routine(g)));
        let names: HashSet<String> = routines.iter().map(|r| r.name.clone()).collect();
        let is_listed = |name: &[u8]| names.contains(&*String::from_utf8_lossy(name));
        let inlined = only_inlined(measure.walks().map(|walk| &*walk.input.profile), &is_listed);
        for r in &mut routines {
            let entry = inlined.iter().find(|inlined| is_start(&inlined.function, &r.name));
            r.notes
                .extend(entry.map(|inlined| format!("inlined everywhere in the samples, into {}", inlined.places())));
        }
        let mut summary = (**measure.summary()).clone();
        summary.query.trim_path = trim.to_vec();
        #[cfg(feature = "disasm")]
        let (routines, summary) = super::code::opened(&measure, routines, summary, trim)?;
        Ok((Arc::new(summary), routines))
    }
}

impl Measure {
    /// Finds the first line of each function.
    fn starts(&self, numbers: &GroupIds<'_>, groups: &mut [RoutineGroup], trim: &[String]) {
        for walk in self.walks() {
            let (p, functions) = (&walk.input.profile, walk.input.profile.functions());
            // By string of the profile, so that each string is looked up once.
            let mut names: HashMap<StringId, Option<u32>> = HashMap::default();
            let mut files: HashMap<StringId, Option<u32>> = HashMap::default();
            for (i, (&name, &file)) in functions.name.iter().zip(&functions.file).enumerate() {
                let start = functions.start_line[i];
                if start <= 0 {
                    continue;
                }
                let name = *names.entry(name).or_insert_with(|| numbers.names.get(p.string(name)).copied());
                // A shortened path is not found. The routine then shows fewer lines.
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

    /// Computes the cum of each routine. A sample counts once, regardless of its lines.
    fn routine_sums(&self, group_of: &[u32], groups: &mut [RoutineGroup]) {
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

/// Joins the two sides of a function if the builds use different paths for its file (another folder, another version in
/// the path, a renamed file), as a table of functions does.
///
/// Applies only to files that exist on one side. If there is one file with the same file name on each side, they are
/// joined. After that, if one file remains on each side, these two are joined.
fn join_moved(groups: Vec<RoutineGroup>) -> Vec<RoutineGroup> {
    let mut by_name: BTreeMap<u32, Vec<RoutineGroup>> = BTreeMap::new();
    for g in groups {
        by_name.entry(g.name_id).or_default().push(g);
    }
    let mut joined = Vec::new();
    for alike in by_name.into_values() {
        let mut by_file: BTreeMap<String, (Vec<RoutineGroup>, Vec<RoutineGroup>)> = BTreeMap::new();
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

/// Joins the group of the base and the group of the new side, if there is exactly one of each.
fn join(old: &mut Vec<RoutineGroup>, new: &mut Vec<RoutineGroup>) -> Option<RoutineGroup> {
    if old.len() != 1 || new.len() != 1 {
        return None;
    }
    let (old, new) = old.pop().zip(new.pop())?;
    Some(RoutineGroup { base: old.base, base_file: Some(old.file), ..new })
}

/// The rule that pairs lines without an alignment: line `n` of the base is line `n + by` of the new side.
///
/// If both profiles record the first line of the function, lines are counted from it. Otherwise the function has either
/// moved like its first line with samples, or stayed in place. The assumption that pairs more lines with samples wins,
/// and a tie means that the function stayed.
struct LineShift {
    by: i64,
    /// A description of the rule, for notes.
    words: String,
}

impl LineShift {
    fn from_group(g: &RoutineGroup) -> LineShift {
        let (base, new) = (&g.base, &g.new);
        let numbers = LineShift { by: 0, words: "lines are paired by their numbers".to_owned() };
        let from = |place: &str, base: i64, new: i64| LineShift {
            // Both numbers are positive, so the difference does not overflow.
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
        let Some((first_base, first_new)) = base.numbered_lines().next().zip(new.numbered_lines().next()) else {
            return numbers;
        };
        let moved = from("the first line with samples", first_base, first_new);
        let meet = |by: i64| {
            base.numbered_lines().filter_map(|n| n.checked_add(by)).filter(|n| new.lines.contains_key(n)).count()
        };
        if meet(moved.by) > meet(0) { moved } else { numbers }
    }
}

/// A text, split into lines.
struct SplitText {
    /// An identifier that distinguishes texts.
    id: usize,
    text: Arc<str>,
    /// The start of each line, and the end of the last line.
    starts: Vec<usize>,
}

impl SplitText {
    fn new(id: usize, text: Arc<str>) -> SplitText {
        let mut starts = vec![0];
        starts.extend(text.split_inclusive('\n').scan(0, |end, line| {
            *end += line.len();
            Some(*end)
        }));
        SplitText { id, text, starts }
    }

    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns a line by its number, counted from 1.
    fn line(&self, number: i64) -> Option<&str> {
        let i = usize::try_from(number).ok()?;
        let line = self.text.get(*self.starts.get(i.checked_sub(1)?)?..*self.starts.get(i)?)?;
        let line = line.strip_suffix('\n').unwrap_or(line);
        Some(line.strip_suffix('\r').unwrap_or(line))
    }

    /// Returns the part of a range of line numbers that the text contains, as indexes.
    fn clip(&self, range: Option<RangeInclusive<i64>>) -> std::ops::Range<usize> {
        let index = |n: i64| usize::try_from(n).unwrap_or(0).min(self.len());
        let range = range.map_or(0..0, |r| index(r.start().saturating_sub(1))..index(*r.end()));
        range.start..range.end.max(range.start)
    }

    /// Returns the approximate size of a range of lines in a listing, in bytes.
    fn cost(&self, range: Option<RangeInclusive<i64>>) -> usize {
        let range = self.clip(range);
        self.starts[range.end] - self.starts[range.start] + range.len() * size_of::<ListedLine>()
    }
}

/// The aligned lines of two texts.
struct AlignedTexts {
    /// The index of a line in each text, `None` in a text without the line. In the order of both texts.
    rows: Vec<AlignedRow>,
    /// The row of each line of the base, and of each line of the new side.
    row_of: (Vec<u32>, Vec<u32>),
}

/// The numbers of a line on both sides.
type LineNumbers = (Option<i64>, Option<i64>);

/// A cache of texts. Each text is split once, and each pair of texts is aligned once for all functions of a file.
struct TextCache<'s> {
    sources: &'s dyn SourceCode,
    two_sided: bool,
    /// The texts by location, and by the memory address of the text, which several locations may share.
    split: HashMap<String, Arc<SplitText>>,
    by_address: HashMap<usize, Arc<SplitText>>,
    /// The alignments by both texts, `None` if the texts are too different.
    aligned: HashMap<(usize, usize), Option<Arc<AlignedTexts>>>,
    /// The rest of [`MAX_PAIRS`].
    pairs_left: u64,
    /// The rest of [`MAX_TEXT_BYTES`].
    left: usize,
}

impl<'s> TextCache<'s> {
    fn new(sources: &'s dyn SourceCode, two_sided: bool) -> TextCache<'s> {
        let (split, by_address, aligned) = Default::default();
        TextCache { sources, two_sided, split, by_address, aligned, pairs_left: MAX_PAIRS, left: MAX_TEXT_BYTES }
    }

    /// Returns the location and the text of a side's file.
    fn find(&mut self, base: bool, side: &ListingSide, other: &ListingSide) -> Option<(String, Arc<SplitText>)> {
        // A side without samples of the function may still contain its lines.
        let path = side.path.as_ref().or(other.path.as_ref()).filter(|p| !p.is_empty())?;
        let SourceText { place, text } = self.sources.find(base, path)?;
        // Locations are descriptions, so two texts may have the same location.
        let split = match self.split.get(&place).filter(|cached| cached.text == text) {
            Some(cached) => cached.clone(),
            None => {
                // The map keeps the text alive, so its address stays unique.
                let address = text.as_ptr().addr();
                let split = self.by_address.entry(address).or_insert_with(|| Arc::new(SplitText::new(address, text)));
                self.split.insert(place.clone(), split.clone());
                split.clone()
            }
        };
        Some((place, split))
    }

    fn routine(&mut self, g: RoutineGroup) -> Routine {
        let base = if self.two_sided { self.find(true, &g.base, &g.new) } else { None };
        let new = self.find(false, &g.new, &g.base);
        let (places, texts) = (
            (base.as_ref().map(|b| b.0.clone()), new.as_ref().map(|n| n.0.clone())),
            (base.map(|b| b.1), new.map(|n| n.1)),
        );
        let mut notes = Vec::new();
        if let Some(file) = g.base_file.as_ref().filter(|file| **file != g.file) {
            notes.push(format!(
                "in the base, its file is {}",
                if file.is_empty() { "a file without a name" } else { file }
            ));
        }
        let cost =
            |text: &Option<Arc<SplitText>>, side: &ListingSide| text.as_ref().map_or(0, |t| t.cost(side.range()));
        let cost = cost(&texts.0, &g.base) + cost(&texts.1, &g.new);
        let whole = cost <= self.left;
        if whole {
            self.left -= cost;
        } else {
            notes.push("its source is omitted, because the listing is too long; list fewer functions".to_owned());
        }
        let mut aligned = None;
        if let (Some(base), Some(new)) = &texts {
            let key = (base.id, new.id);
            let cached = self
                .aligned
                .entry(key)
                .or_insert_with(|| AlignedTexts::new(base, new, &mut self.pairs_left).map(Arc::new));
            aligned = cached.clone().map(|aligned| (aligned, base, new));
        }
        let numbers = match &aligned {
            Some((aligned, base, new)) => aligned.rows_of(&g, base, new, whole),
            None => self.by_offset(&g, &texts, whole, &mut notes),
        };
        let line = |(base, new): LineNumbers| {
            let text = |text: &Option<Arc<SplitText>>, n: Option<i64>| text.as_ref()?.line(n?).map(str::to_owned);
            let shown_text = text(&texts.1, new).or_else(|| text(&texts.0, base));
            let change = match (base, new) {
                (None, Some(_)) if aligned.is_some() && shown_text.is_some() => LineChange::Inserted,
                (Some(_), None) if aligned.is_some() && shown_text.is_some() => LineChange::Deleted,
                _ if aligned.is_some() => LineChange::Same,
                _ => LineChange::Unknown,
            };
            line(&g, base, new, change, shown_text.filter(|_| whole))
        };
        let lines = numbers.into_iter().map(line).collect();
        let unknown = |side: &ListingSide, text: &Option<Arc<SplitText>>| {
            text.as_ref().zip(side.lines.last_key_value()).is_some_and(|(text, (&last, _))| last > text.len() as i64)
        };
        if unknown(&g.base, &texts.0) || unknown(&g.new, &texts.1) {
            let note =
                "the profile has line numbers beyond the end of the source, so it is not the source of this build";
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
            code: None,
            notes,
        }
    }

    /// Returns the lines to show without an alignment. With a text, these are contiguous ranges, otherwise only lines
    /// with samples.
    fn by_offset(
        &self,
        g: &RoutineGroup,
        texts: &(Option<Arc<SplitText>>, Option<Arc<SplitText>>),
        whole: bool,
        notes: &mut Vec<String>,
    ) -> Vec<LineNumbers> {
        let shift = LineShift::from_group(g);
        let by = i128::from(shift.by);
        if self.two_sided {
            let why = match texts {
                (Some(_), Some(_)) => "the sources differ in too many lines to be compared",
                (None, Some(_)) => "no source of the base",
                (Some(_), None) => "no source of the new side",
                (None, None) => "no source of either side",
            };
            // If only one side has lines with samples, there are no pairs to describe.
            let pairs = g.base.numbered_lines().next().is_some() && g.new.numbered_lines().next().is_some();
            notes.push(if pairs { format!("{why}: {}", shift.words) } else { why.to_owned() });
        }
        // Places are line numbers on the new side. For lines that only the base has, they are the expected numbers.
        let old = g.base.numbered_lines().map(|n| i128::from(n) + by);
        let mut places: BTreeSet<i128> = g.new.numbered_lines().map(i128::from).chain(old).collect();
        if whole {
            for (text, text_shift) in [(&texts.0, by), (&texts.1, 0)] {
                let Some(text) = text else { continue };
                for (range, by) in [(g.base.range(), by), (g.new.range(), 0)] {
                    // Converts to the text's own line numbers.
                    let moved = |n: i64| {
                        let n = (i128::from(n) + by - text_shift).clamp(i64::MIN.into(), i64::MAX.into());
                        i64::try_from(n).unwrap_or_default()
                    };
                    let indexes = text.clip(range.map(|r| moved(*r.start())..=moved(*r.end())));
                    places.extend(indexes.map(|i| i as i128 + 1 + text_shift));
                }
            }
        }
        // A side without samples and without a text has no lines.
        let has = |side: &ListingSide, text: &Option<Arc<SplitText>>| !side.lines.is_empty() || text.is_some();
        let (in_base, in_new) = (self.two_sided && has(&g.base, &texts.0), has(&g.new, &texts.1));
        let number = |place: i128, has: bool| i64::try_from(place).ok().filter(|&n| has && n > 0);
        let numbered = places.into_iter().map(|place| (number(place - by, in_base), number(place, in_new)));
        let unnumbered: BTreeSet<i64> =
            [&g.base, &g.new].iter().flat_map(|s| s.lines.range(..1)).map(|(&n, _)| n).collect();
        let unnumbered = unnumbered.into_iter().map(|n| (in_base.then_some(n), in_new.then_some(n)));
        numbered.chain(unnumbered).collect()
    }
}

/// Returns a line with its costs, by its number on each side.
fn line(g: &RoutineGroup, base: Option<i64>, new: Option<i64>, change: LineChange, text: Option<String>) -> ListedLine {
    let cost = |side: &ListingSide, n: Option<i64>| n.and_then(|n| side.lines.get(&n)).copied().unwrap_or_default();
    let (b, n) = (cost(&g.base, base), cost(&g.new, new));
    let (flat, cum) = (Pair { base: b.0, new: n.0 }, Pair { base: b.1, new: n.1 });
    ListedLine { base, new, change, text, flat, cum, instructions: Vec::new() }
}

impl AlignedTexts {
    /// Aligns the lines of two texts. Returns `None` if there are more pairs of changed lines than `left`. Whitespace
    /// around a line is ignored, so a line that moves into a block stays the same line.
    fn new(base: &SplitText, new: &SplitText, left: &mut u64) -> Option<AlignedTexts> {
        let [base, new] = [base, new].map(|text| text.text.lines().map(str::trim).collect::<Vec<_>>());
        let rows = align(&base, &new, left)?;
        let rows_of_side = |side: fn(&AlignedRow) -> Option<u32>| -> Vec<u32> {
            rows.iter().zip(0..).filter(|(row, _)| side(row).is_some()).map(|(_, i)| i).collect()
        };
        let row_of = (rows_of_side(|row| row.0), rows_of_side(|row| row.1));
        Some(AlignedTexts { rows, row_of })
    }

    /// Returns the lines of a routine, or only the lines with samples if `whole` is false. Samples on lines that a text
    /// does not contain are added at the end, so that no cost is lost.
    fn rows_of(&self, g: &RoutineGroup, base: &SplitText, new: &SplitText, whole: bool) -> Vec<LineNumbers> {
        let sides = [(&g.base, base, &self.row_of.0), (&g.new, new, &self.row_of.1)];
        let mut shown: BTreeSet<u32> = BTreeSet::new();
        for (side, text, row_of) in sides {
            if whole {
                shown.extend(&row_of[text.clip(side.range())]);
            } else {
                shown.extend(side.numbered_lines().filter_map(|n| row_of.get(usize::try_from(n).ok()? - 1)));
            }
        }
        let number = |i: Option<u32>| i.map(|i| i64::from(i) + 1);
        let rows = shown.into_iter().map(|row| self.rows[row as usize]).map(|(b, n)| (number(b), number(n)));
        // Line 0 stands for an unknown line.
        let beyond = |(side, text, _): (&ListingSide, &SplitText, _)| -> BTreeSet<i64> {
            side.lines.keys().copied().filter(|&n| n < 1 || n > text.len() as i64).collect()
        };
        let [base_beyond, new_beyond] = sides.map(beyond);
        let on = |beyond: &BTreeSet<i64>, n: i64| beyond.contains(&n).then_some(n);
        let beyond = base_beyond.union(&new_beyond).map(|&n| (on(&base_beyond, n), on(&new_beyond, n)));
        rows.chain(beyond).collect()
    }
}
