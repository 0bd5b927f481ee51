//! Source lines with what they cost: functions by a regular expression, line by line, both sides.
//!
//! The cost of a line of the base belongs to the same statement of the new side, whatever its number has become
//! there. So where the texts of both builds are at hand, their lines are aligned by a text diff, which looks at
//! whole files and not at the indentation; lines that only one build has are deleted or inserted. Without texts,
//! or with those of one side only, lines are matched by their numbers.
//!
//! This floor reads no files: the texts come from a [`Sources`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::pattern;
use super::top::Sort;
use super::{Diff, Granularity, Pair, Query, Status, Summary, View, identity};
use crate::error::Result;
use crate::profile::{NONE, StringId};

/// Where a listing gets its texts from. `()` has none.
pub trait Sources {
    /// The text of a file of one side's build, by the path in the profile; `None` if it is not to be had.
    fn find(&self, base: bool, path: &str) -> Option<SourceText>;

    /// The path without the prefix that its build left, for matching the sides and for display.
    fn trimmed<'p>(&self, path: &'p str) -> &'p str {
        path
    }
}

impl Sources for () {
    fn find(&self, _base: bool, _path: &str) -> Option<SourceText> {
        None
    }
}

/// The text of a source file.
#[derive(Debug, Clone)]
pub struct SourceText {
    /// Where it was found, for people.
    pub place: String,
    /// What it says.
    pub text: Arc<str>,
}

/// What became of a line between the builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineChange {
    /// Both builds have it, or nobody knows.
    Same,
    /// Only the new build has it.
    Inserted,
    /// Only the base has it.
    Deleted,
}

impl LineChange {
    /// The change as results spell it.
    pub fn name(self) -> &'static str {
        match self {
            LineChange::Same => "same",
            LineChange::Inserted => "inserted",
            LineChange::Deleted => "deleted",
        }
    }
}

/// A line of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number in the base; `None` if the base does not have it, or if this is a single profile.
    pub base: Option<i64>,
    /// Its number in the new side.
    pub new: Option<i64>,
    /// What became of it.
    pub change: LineChange,
    /// What it says, that of the new side if both have it; `None` without sources.
    pub text: Option<String>,
    /// What it cost itself.
    pub flat: Pair,
    /// What it cost with all that it calls.
    pub cum: Pair,
}

/// A function in a file.
#[derive(Debug, Clone)]
pub struct Routine {
    /// The function.
    pub name: String,
    /// Its file, trimmed: that of the new side, if the builds name it differently. `None` if the profiles do not say.
    pub file: Option<String>,
    /// Where the texts were found: of the base, and of the new side.
    pub places: (Option<String>, Option<String>),
    /// What it cost itself.
    pub flat: Pair,
    /// What it cost with all that it called; a sample counts once, so lines may add up to more.
    pub cum: Pair,
    /// What happened to it.
    pub status: Status,
    /// Its lines in order: with texts, whole stretches of them; without, those with samples.
    pub lines: Vec<Line>,
    /// What a user should know before trusting the lines.
    pub notes: Vec<String>,
}

/// Functions, line by line.
#[derive(Debug, Clone)]
pub struct Listing {
    /// What the listing is of.
    pub summary: Arc<Summary>,
    /// Ordered by |delta| of cum descending, then by that of flat, then by name and file.
    pub routines: Vec<Routine>,
}

/// Lines to show before and after those with samples, where the function's first line is not known.
const MARGIN: i64 = 5;

/// One side of a routine while it is collected.
#[derive(Default)]
struct Side {
    /// Its path, as in the profile.
    path: Option<Arc<str>>,
    /// flat and cum by line.
    lines: BTreeMap<i64, (i64, i64)>,
    /// Where the function begins; 0 if nobody says.
    start: i64,
    cum: i64,
}

impl Side {
    fn flat(&self) -> i64 {
        self.lines.values().map(|(flat, _)| flat).sum()
    }

    /// The lines to show, if there are some with samples.
    fn range(&self) -> Option<(i64, i64)> {
        let (first, last) = (*self.lines.first_key_value()?.0, *self.lines.last_key_value()?.0);
        let before = first.saturating_sub(MARGIN);
        let start = if self.start > 0 { self.start.min(first) } else { before };
        Some((start, last.saturating_add(MARGIN)))
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
    name: String,
    file: String,
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
    /// The functions whose name matches, line by line. The query's granularity does not matter: it is `lines`.
    ///
    /// # Errors
    /// As [`Diff::view`], and a bad regular expression.
    pub fn list(&self, query: &Query, pattern: &str, sources: &dyn Sources) -> Result<Listing> {
        let regex = pattern::compile("list", pattern)?;
        let (summary, routines) = self.routines(query, &|name| regex.is_match(name), sources, |all| all.collect())?;
        Ok(Listing { summary, routines })
    }

    /// The first `n` functions of those that a text is found for, line by line. As [`Diff::list`] otherwise.
    ///
    /// # Errors
    /// As [`Diff::view`].
    pub fn list_with_sources(&self, query: &Query, n: usize, sources: &dyn Sources) -> Result<Listing> {
        let has_text = |r: &Routine| r.places != (None, None);
        let (summary, routines) =
            self.routines(query, &|_| true, sources, |all| all.filter(has_text).take(n).collect())?;
        Ok(Listing { summary, routines })
    }

    /// What `choose` takes of the functions whose names match; only what it asks for is looked up and aligned.
    fn routines(
        &self,
        query: &Query,
        matches: &dyn Fn(&[u8]) -> bool,
        sources: &dyn Sources,
        choose: impl FnOnce(&mut dyn Iterator<Item = Routine>) -> Vec<Routine>,
    ) -> Result<(Arc<Summary>, Vec<Routine>)> {
        let view = self.view(&Query { granularity: Granularity::Lines, ..query.clone() })?;
        let frames = &view.frames;
        let rows = view.top(Sort::Cum).rows;
        let mut numbers = Numbers::default();
        // By the numbers of their texts, since many functions may share a name or a path of a megabyte.
        let mut wanted: HashMap<u32, bool> = HashMap::new();
        let mut paths: HashMap<u32, (Arc<str>, u32)> = HashMap::new();
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
            let (path, file) = paths.entry(path).or_insert_with(|| {
                let path = frames.short(path);
                let n = numbers.files.len() as u32;
                let file = *numbers.files.entry(sources.trimmed(&path).to_owned()).or_insert(n);
                (path.into(), file)
            });
            let id = *numbers.groups.entry((name, *file)).or_insert_with(|| {
                let file = sources.trimmed(path).to_owned();
                groups.push(Group { name: frames.short(name), file, ..Group::default() });
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
        view.starts(&numbers, &mut groups, sources);
        drop(numbers);
        view.routine_sums(&group_of, &mut groups);
        // flat is a sum over lines, so it is not added up at each comparison.
        let sized = |g: Group| (Reverse(Sort::Cum.size(g.flat(), g.cum())), g);
        let mut groups: Vec<_> = join_moved(groups).into_iter().map(sized).collect();
        groups.sort_by(|(a_size, a), (b_size, b)| (a_size, &a.name, &a.file).cmp(&(b_size, &b.name, &b.file)));
        let mut texts = Texts { sources, aligned: HashMap::new(), two_sided: self.is_two_sided() };
        let routines = choose(&mut groups.into_iter().map(|(_, g)| texts.routine(g)));
        Ok((view.summary().clone(), routines))
    }
}

impl View {
    /// Looks up where each function begins.
    fn starts(&self, numbers: &Numbers<'_>, groups: &mut [Group], sources: &dyn Sources) {
        for walk in &self.walks {
            let (p, functions) = (&walk.member.profile, walk.member.profile.functions());
            // By the profile's strings, each of which is looked up once.
            let mut names: HashMap<StringId, Option<u32>> = HashMap::new();
            let mut files: HashMap<StringId, Option<u32>> = HashMap::new();
            for (i, (&name, &file)) in functions.name.iter().zip(&functions.file).enumerate() {
                let start = functions.start_line[i];
                if start <= 0 {
                    continue;
                }
                let name = *names.entry(name).or_insert_with(|| numbers.names.get(p.string(name)).copied());
                // A path that was shortened is not found: a routine then shows some lines fewer.
                let file = *files.entry(file).or_insert_with(|| {
                    let path = p.string(file);
                    let path = identity::clean_path(path).unwrap_or_else(|| path.to_vec());
                    numbers.files.get(sources.trimmed(&String::from_utf8_lossy(&path))).copied()
                });
                if let Some(id) = name.zip(file).and_then(|key| numbers.groups.get(&key).copied()) {
                    let group = &mut groups[id as usize];
                    let side = if walk.member.base { &mut group.base } else { &mut group.new };
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
            self.each_stack(base, |value, stack| {
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
            (group.base.cum, group.new.cum) = (base.1, self.scale.apply(new.1));
        }
    }
}

/// Brings a function's two sides together if the builds name its file differently (a version in the path, another
/// folder): if each side has it in one file only, and both are called alike.
fn join_moved(groups: Vec<Group>) -> Vec<Group> {
    let base_name = |g: &Group| g.file.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
    let mut by_name: BTreeMap<(String, String), Vec<Group>> = BTreeMap::new();
    for g in groups {
        by_name.entry((g.name.clone(), base_name(&g))).or_default().push(g);
    }
    let mut joined = Vec::new();
    for mut alike in by_name.into_values() {
        let one_sided = |g: &Group| g.base.lines.is_empty() != g.new.lines.is_empty();
        if let [a, b] = &mut alike[..]
            && one_sided(a)
            && one_sided(b)
            && a.base.lines.is_empty() != b.base.lines.is_empty()
        {
            if a.new.lines.is_empty() {
                std::mem::swap(a, b);
            }
            a.base = std::mem::take(&mut b.base);
            alike.truncate(1);
        }
        joined.extend(alike);
    }
    joined
}

/// A line of both texts: its index in each, if it has one.
type Aligned = Vec<(Option<u32>, Option<u32>)>;

/// Texts, aligned once for all functions of a file.
struct Texts<'s> {
    sources: &'s dyn Sources,
    aligned: HashMap<(String, String), Arc<Aligned>>,
    two_sided: bool,
}

impl Texts<'_> {
    fn routine(&mut self, g: Group) -> Routine {
        // A side without samples of the function may still have its lines.
        let path = |own: &Side, other: &Side| own.path.clone().or_else(|| other.path.clone()).filter(|p| !p.is_empty());
        let base_path = path(&g.base, &g.new).filter(|_| self.two_sided);
        let base = base_path.and_then(|p| self.sources.find(true, &p));
        let new = path(&g.new, &g.base).and_then(|p| self.sources.find(false, &p));
        let mut notes = Vec::new();
        let lines = match (&base, &new) {
            (Some(base), Some(new)) => {
                let key = (base.place.clone(), new.place.clone());
                let aligned = self.aligned.entry(key).or_insert_with(|| Arc::new(align(&base.text, &new.text))).clone();
                with_text(&g, Some(&base.text), Some(&new.text), &aligned, &mut notes)
            }
            (None, Some(text)) | (Some(text), None) => {
                if self.two_sided {
                    let missing = if base.is_none() { "base" } else { "new side" };
                    notes.push(format!("no source of the {missing}: lines are matched by their numbers"));
                }
                let n = text.text.lines().count() as u32;
                let both: Aligned = (0..n).map(|i| (self.two_sided.then_some(i), Some(i))).collect();
                let sides = if new.is_some() { (None, Some(&*text.text)) } else { (Some(&*text.text), None) };
                with_text(&g, sides.0, sides.1, &both, &mut notes)
            }
            (None, None) => {
                let numbers: BTreeSet<i64> = g.base.lines.keys().chain(g.new.lines.keys()).copied().collect();
                numbers.into_iter().map(|n| line(&g, self.two_sided.then_some(n), Some(n), None)).collect()
            }
        };
        let (flat, cum) = (g.flat(), g.cum());
        let equal = flat.delta() == 0 && cum.delta() == 0;
        let status = Status::new(!g.base.lines.is_empty(), !g.new.lines.is_empty(), equal);
        Routine {
            flat,
            cum,
            name: g.name,
            file: Some(g.file).filter(|f| !f.is_empty()),
            places: (base.map(|t| t.place), new.map(|t| t.place)),
            status,
            lines,
            notes,
        }
    }
}

/// A line with its costs, by its number on each side.
fn line(g: &Group, base: Option<i64>, new: Option<i64>, text: Option<String>) -> Line {
    let cost = |side: &Side, n: Option<i64>| n.and_then(|n| side.lines.get(&n)).copied().unwrap_or_default();
    let (b, n) = (cost(&g.base, base), cost(&g.new, new));
    Line {
        base,
        new,
        change: LineChange::Same,
        text,
        flat: Pair { base: b.0, new: n.0 },
        cum: Pair { base: b.1, new: n.1 },
    }
}

/// The lines of two texts, matched. Whitespace around a line does not count: what moves into a block stays itself.
fn align(base: &str, new: &str) -> Aligned {
    let base: Vec<&str> = base.lines().map(str::trim).collect();
    let new: Vec<&str> = new.lines().map(str::trim).collect();
    let mut aligned = Vec::with_capacity(new.len());
    let number = |i: usize| Some(i as u32);
    for op in capture_diff_slices(Algorithm::Myers, &base, &new) {
        match op {
            DiffOp::Equal { old_index, new_index, len } => {
                aligned.extend((0..len).map(|i| (number(old_index + i), number(new_index + i))));
            }
            DiffOp::Delete { old_index, old_len, .. } => {
                aligned.extend((old_index..old_index + old_len).map(|i| (number(i), None)));
            }
            DiffOp::Insert { new_index, new_len, .. } => {
                aligned.extend((new_index..new_index + new_len).map(|i| (None, number(i))));
            }
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                aligned.extend((old_index..old_index + old_len).map(|i| (number(i), None)));
                aligned.extend((new_index..new_index + new_len).map(|i| (None, number(i))));
            }
        }
    }
    aligned
}

/// The stretches of a text in which a routine lies. Samples on lines that the text does not have follow at the end, so
/// that no cost is lost.
fn with_text(
    g: &Group,
    base_text: Option<&str>,
    new_text: Option<&str>,
    aligned: &Aligned,
    notes: &mut Vec<String>,
) -> Vec<Line> {
    let (base_lines, new_lines): (Vec<&str>, Vec<&str>) =
        (base_text.unwrap_or_default().lines().collect(), new_text.unwrap_or_default().lines().collect());
    let within = |range: Option<(i64, i64)>, n: Option<i64>| {
        range.zip(n).is_some_and(|((first, last), n)| (first..=last).contains(&n))
    };
    let (base_range, new_range) = (g.base.range(), g.new.range());
    let mut lines = Vec::new();
    let mut last = (0, 0);
    for &(b, n) in aligned {
        let number = |i: Option<u32>| i.map(|i| i64::from(i) + 1);
        let (base, new) = (number(b), number(n));
        last = (base.unwrap_or(last.0), new.unwrap_or(last.1));
        if !within(base_range, base) && !within(new_range, new) {
            continue;
        }
        let text = n.and_then(|n| new_lines.get(n as usize)).or_else(|| base_lines.get(b? as usize));
        let mut line = line(g, base, new, text.map(|t| (*t).to_owned()));
        line.change = match (base, new, base_text.is_some() && new_text.is_some()) {
            (None, Some(_), true) => LineChange::Inserted,
            (Some(_), None, true) => LineChange::Deleted,
            _ => LineChange::Same,
        };
        lines.push(line);
    }
    // A line 0 is one that the profile does not know.
    let beyond =
        |side: &Side, last: i64| side.lines.keys().copied().filter(|&n| n < 1 || n > last).collect::<BTreeSet<i64>>();
    let (base_beyond, new_beyond) = (beyond(&g.base, last.0), beyond(&g.new, last.1));
    for &n in base_beyond.union(&new_beyond) {
        let on = |beyond: &BTreeSet<i64>| beyond.contains(&n).then_some(n);
        lines.push(line(g, on(&base_beyond), on(&new_beyond), None));
    }
    if base_beyond.iter().chain(&new_beyond).any(|&n| n > 0) {
        notes
            .push("the profile has lines that the source does not have: it is not the source of this build".to_owned());
    }
    lines
}
