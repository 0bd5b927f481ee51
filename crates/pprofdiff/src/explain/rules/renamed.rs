//! Functions that have another name on the new side. That needs evidence in the names: an equal cost alone is none.
//!
//! 1. Packages under another path (`gopkg.in/yaml.v2` and `yaml.v3`), by the names that they share.
//! 2. Functions whose last names agree, with the same callers or callees, and a like cost.
//! 3. Functions of one package with the same callers and callees and the same cost, if just one is in question.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::{Find, Rule};
use crate::explain::evidence::costs::Costs;
use crate::explain::evidence::rows::{Name, Rows};
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::work::{self, paced};

/// The most frames of one side that are compared by their neighbours, the costliest first.
const MAX_RENAMED: usize = 200;
/// The most callers and callees that a frame is compared by.
const MAX_NEIGHBOURS: usize = 200;
/// Callers or callees are the same if they share this part.
const LIKE: f64 = 0.5;
/// What callers and callees share on average where no name says anything.
const ALIKE: f64 = 0.6;
/// Costs within this factor are alike, as parts of their sides.
const LIKE_COST: f64 = 2.0;
/// Packages are one if they share so many names, and this part of those of the larger.
const SHARED_NAMES: usize = 2;
const SHARED_PART: f64 = 0.3;
/// A name that more packages of the new side have says nothing.
const MAX_PACKAGES: usize = 32;

/// What V8's names of regular expressions begin with.
const REGULAR_EXPRESSION: &str = "RegExp: ";

/// Those of functions without a name.
const ANONYMOUS: &str = "(anonymous) ";

/// A function that has another name on the new side.
#[derive(Debug, Clone, Copy)]
pub(in crate::explain) struct Renamed {
    pub old: u32,
    pub new: u32,
    /// What it costs with all below it, on either side.
    pub cost: [f64; 2],
}

/// A name as its parts.
#[derive(Debug, PartialEq)]
struct Parts {
    /// The path of its package or module.
    package: String,
    /// Receiver or type, and name: what packages share whatever their path. Without type arguments.
    local: String,
    /// The last name alone, in lower case: a function may be exported now, or no more.
    last: String,
}

/// The path of a name's package or module.
pub(crate) fn package_of(name: &str) -> Cow<'_, str> {
    // What a module of Node exports is of no package that is named so.
    Some(package(name)).filter(|package| package != "exports").unwrap_or_default()
}

/// The package of a name, as [`Parts::of`] has it: of most names a part of their text.
fn package(name: &str) -> Cow<'_, str> {
    let (mut tail, mut last, mut is_plain) = (0, b'/', true);
    for (byte, at) in name.bytes().zip(1..) {
        match byte {
            b'[' | b'<' | b']' | b'>' | b':' => is_plain = false,
            // An empty segment, the first of the tail too.
            b'.' if matches!(last, b'.' | b'/') => is_plain = false,
            b'/' => tail = at,
            _ => {}
        }
        last = byte;
    }
    if !is_plain || last == b'.' || name.starts_with(ANONYMOUS) {
        return Parts::of(name).package.into();
    }
    // Up to the first segment that is a type, or else the last.
    let mut begin = tail;
    for (_, at) in name.bytes().zip(1..).skip(tail).filter(|(byte, _)| *byte == b'.') {
        if is_type(&name[begin..]) {
            break;
        }
        begin = at;
    }
    name[..begin].strip_suffix('.').unwrap_or(&name[..begin]).into()
}

/// True of the part of a path that is a receiver or a type.
fn is_type(segment: &str) -> bool {
    segment.starts_with('(') || segment.starts_with(char::is_uppercase)
}

/// Text without what stands in brackets, at any depth; of what is only in brackets, that.
fn without_arguments(text: &str) -> String {
    let (mut kept, mut depth) = (String::new(), 0usize);
    for c in text.chars() {
        match c {
            '[' | '<' => depth += 1,
            ']' | '>' => depth = depth.saturating_sub(1),
            c if depth == 0 => kept.push(c),
            _ => {}
        }
    }
    kept
}

impl Parts {
    /// Of Go (`a.b/c.(*T).M`), Rust and C++ (`a::T::m`, `<a::T as b::U>::m`), Java (`a.b.T.m`), and names without a package.
    fn of(name: &str) -> Parts {
        // V8 names a regular expression by its text.
        if name.starts_with(REGULAR_EXPRESSION) {
            let (package, local) = (REGULAR_EXPRESSION.to_owned(), name.to_owned());
            return Parts { package, last: local.clone(), local };
        }
        // A function without a name is known by its file alone.
        if let Some(file) = name.strip_prefix(ANONYMOUS) {
            return Parts { package: file.to_owned(), last: name.to_owned(), local: name.to_owned() };
        }
        // An implementation of a trait belongs to its type.
        let implemented = name.strip_prefix('<').and_then(|rest| {
            let (of, method) = rest.rsplit_once(">::")?;
            let of = of.split_once(" as ").map_or(of, |(of, _)| of).trim_start_matches(['&', '*']);
            Some(format!("{of}::{method}"))
        });
        let name = without_arguments(implemented.as_deref().unwrap_or(name));
        let is_path = name.contains("::");
        // The name's end: all after the last slash, or all of a path of modules.
        let (head, tail) = match name.rfind('/').filter(|_| !is_path) {
            Some(at) => name.split_at(at + 1),
            None => ("", name.as_str()),
        };
        let separator = if is_path { "::" } else { "." };
        let segments: Vec<&str> = tail.split(separator).filter(|segment| !segment.is_empty()).collect();
        let end = segments.len().saturating_sub(1);
        let begin = segments.iter().position(|segment| is_type(segment)).unwrap_or(end).min(end);
        let local: Vec<&str> = segments[begin..].iter().map(|segment| segment.trim_matches(['(', ')', '*'])).collect();
        let (package, last) = (format!("{head}{}", segments[..begin].join(separator)), local.last().copied());
        let (last, local) = (last.unwrap_or_default(), local.join("."));
        // Many types have a method that Python itself calls.
        let last = if last.starts_with("__") && last.ends_with("__") { &local } else { last };
        Parts { package, last: last.to_lowercase(), local }
    }
}

/// A path without its version: paths that are then equal differ by that alone.
fn without_version(path: &str) -> String {
    path.split(['/', '.', '%']).filter(|part| !is_version(part)).collect::<Vec<_>>().join("/")
}

/// True of `v2`, and of `2ev2` (a dot as Go's symbols write it).
fn is_version(part: &str) -> bool {
    let part = part.strip_prefix("2e").unwrap_or(part);
    part.strip_prefix('v').is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

pub(super) const RULE: Rule = Rule {
    name: "renamed",
    needs: "functions that one side has alone, of packages or last names that agree, or with the same neighbours",
    says: "it is now called otherwise, with what it costs on both sides",
    find: Find::Rename(|names| renamed(&names.rows, &names.costs)),
};

/// The functions that were renamed, one to one.
fn renamed(rows: &Rows, costs: &Costs) -> Vec<Renamed> {
    if (0..2).any(|side| costs.only(side).next().is_none()) {
        return Vec::new();
    }
    let mut found = Found { costs, pairs: Vec::new(), renamed: [BTreeMap::new(), BTreeMap::new()] };
    found.of_packages(&rows.names);
    found.of_neighbours(rows);
    found.pairs
}

struct Found<'a> {
    costs: &'a Costs,
    pairs: Vec<Renamed>,
    /// By side: from a frame's name to what it is called in both, which is the base's.
    renamed: [BTreeMap<u32, u32>; 2],
}

impl Found<'_> {
    fn add(&mut self, old: u32, new: u32) {
        if !self.renamed[0].contains_key(&old) && !self.renamed[1].contains_key(&new) {
            self.renamed[0].insert(old, old);
            self.renamed[1].insert(new, old);
            self.pairs.push(Renamed { old, new, cost: [self.costs.of(old, 0), self.costs.of(new, 1)] });
        }
    }

    /// Functions of a package that has another path: paths that one side has, matched by how many names they share.
    fn of_packages(&mut self, names: &[Name]) {
        let packages: Vec<Cow<'_, str>> = paced(names).map(|name| package(&name.text)).collect();
        // By number of a package whether a side has it. Most are on both, and nothing else is asked of them.
        let mut numbers: HashMap<&str, usize> = HashMap::default();
        let (mut of_frames, mut sides, mut last) = (Vec::with_capacity(names.len()), Vec::new(), ("", 0));
        for (package, frame) in packages.iter().zip(0..) {
            if frame == 0 || last.0 != package {
                last = (package, *numbers.entry(package).or_insert(sides.len()));
            }
            of_frames.push(last.1);
            sides.resize(numbers.len(), [false; 2]);
            (0..2).for_each(|side| sides[last.1][side] |= self.costs.of(frame, side) > 0.0);
        }
        let of = |side: usize| {
            let mut of: BTreeMap<&str, BTreeMap<String, u32>> = BTreeMap::new();
            let is_only = |frame: &u32| {
                let package = &*packages[*frame as usize];
                !package.is_empty() && !sides[of_frames[*frame as usize]][1 - side]
            };
            for frame in self.costs.on(side).filter(is_only) {
                let local = Parts::of(&names[frame as usize].text).local;
                of.entry(&packages[frame as usize]).or_default().entry(local).or_insert(frame);
            }
            of
        };
        let of = [of(0), of(1)];
        let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (package, names) in &of[1] {
            names.keys().for_each(|name| by_name.entry(name).or_default().push(package));
        }
        let paths = of.iter().flat_map(|of| of.keys());
        let plain: BTreeMap<&str, String> = paced(paths).map(|path| (*path, without_version(path))).collect();
        let mut matches = Vec::new();
        for (old, names) in &of[0] {
            work::poll();
            let mut shared: BTreeMap<&str, usize> = BTreeMap::new();
            // What many packages have tells none apart, and there would be too many pairs.
            let lists =
                names.keys().filter_map(|name| by_name.get(name.as_str())).filter(|of| of.len() <= MAX_PACKAGES);
            let packages = lists.flatten();
            packages.for_each(|package| *shared.entry(package).or_default() += 1);
            for (new, count) in shared {
                let most = names.len().max(of[1][new].len());
                let is_enough = count >= SHARED_NAMES && count as f64 >= SHARED_PART * most as f64;
                let is_version = plain[old] == plain[new];
                if is_enough || is_version {
                    matches.push((count, is_version, *old, new));
                }
            }
        }
        matches.sort_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)).then((a.2, a.3).cmp(&(b.2, b.3))));
        let mut known: [BTreeSet<&str>; 2] = Default::default();
        for (_, _, old, new) in matches {
            if known[0].contains(old) || known[1].contains(new) {
                continue;
            }
            known[0].insert(old);
            known[1].insert(new);
            for (name, &frame) in &of[0][old] {
                if let Some(&other) = of[1][new].get(name) {
                    self.add(frame, other);
                }
            }
            // Of those that are left: a type may be exported now, or no more.
            let others: BTreeMap<String, u32> = of[1][new].iter().map(|(name, &f)| (name.to_lowercase(), f)).collect();
            for (name, &frame) in &of[0][old] {
                if let Some(&other) = others.get(&name.to_lowercase()) {
                    self.add(frame, other);
                }
            }
        }
    }

    /// Functions that only one side has, by their callers and callees: of the same last name, or of the same package if
    /// nothing else is in question.
    fn of_neighbours(&mut self, rows: &Rows) {
        let (total, event) = (rows.total(), rows.event());
        let only = |side: usize| {
            let is_large = |v: f64| v > (0.003 * total[side]).max(5.0 * event);
            let is_open = |frame: u32| !rows.is_system(frame) && !self.renamed[side].contains_key(&frame);
            let mut only: Vec<(f64, u32)> =
                self.costs.only(side).filter(|&(v, frame)| is_large(v) && is_open(frame)).collect();
            only.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            only.truncate(MAX_RENAMED);
            only.into_iter().map(|(_, f)| f).collect::<Vec<u32>>()
        };
        let only = [only(0), only(1)];
        if only.iter().any(Vec::is_empty) {
            return;
        }
        let parts = |side: usize| -> Vec<(u32, Parts)> {
            only[side].iter().map(|&frame| (frame, Parts::of(&rows.names[frame as usize].text))).collect()
        };
        let parts = [parts(0), parts(1)];
        let near = [0, 1].map(|side| neighbours(rows, self.costs, side, &only[side], &self.renamed[side]));
        let (mut of_name, mut of_package) = (Vec::new(), Vec::new());
        for &(old, ref of_old) in &parts[0] {
            work::poll();
            for &(new, ref of_new) in &parts[1] {
                let (a, b) = (&near[0][&old], &near[1][&new]);
                let common = |callers: bool| -> f64 {
                    let both = a.iter().filter(|((caller, _), _)| *caller == callers);
                    both.filter_map(|(key, share)| Some(share.min(*b.get(key)?))).sum()
                };
                let (up, down) = (common(true), common(false));
                let (va, vb) = (self.costs.of(old, 0), self.costs.of(new, 1));
                if va + vb <= 24.0 * event {
                    continue;
                }
                let ratio = (vb / total[1] / (va / total[0])).ln().abs();
                let overlap = (up + down) / 2.0;
                if of_old.last == of_new.last && (up > LIKE || down > LIKE) && ratio < LIKE_COST.ln() {
                    of_name.push((overlap - ratio / LIKE_COST.ln() / 10.0, old, new));
                }
                let deviation = (event / va + event / vb + 0.02).sqrt();
                // Of names without a package, as Python's and C's, the type says what they belong to; of those without either,
                // what they call must say so.
                let of_type = |parts: &Parts| parts.local.rsplit_once('.').map_or("", |(of, _)| of).to_owned();
                let called = || -> f64 {
                    let both = a.iter().filter(|((is_caller, name), _)| !is_caller && *name != END && *name != UNKNOWN);
                    both.filter_map(|(key, share)| Some(share.min(*b.get(key)?))).sum()
                };
                let is_of_one = || match of_type(of_old).as_str() {
                    "" => of_type(of_new).is_empty() && called() > LIKE,
                    of => of_type(of_new) == of,
                };
                let is_one_package = of_old.package == of_new.package && (!of_old.package.is_empty() || is_of_one());
                if is_one_package && overlap > ALIKE && up > LIKE && ratio < 3.0 * deviation {
                    of_package.push((old, new));
                }
            }
        }
        of_name.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        of_name.into_iter().for_each(|(_, old, new)| self.add(old, new));
        of_package.retain(|(old, new)| !self.renamed[0].contains_key(old) && !self.renamed[1].contains_key(new));
        for &(old, new) in &of_package {
            let others = |pair: &&(u32, u32)| pair.0 == old || pair.1 == new;
            if of_package.iter().filter(others).count() == 1 {
                self.add(old, new);
            }
        }
    }
}

/// For each frame the shares of its callers (true) and callees.
type Neighbours = BTreeMap<(bool, u32), f64>;

/// A neighbour that only one side has and that nothing is known of, and the end of a stack.
const UNKNOWN: u32 = u32::MAX;
const END: u32 = u32::MAX - 1;

/// The neighbours of these frames, by the names that both sides have for them.
fn neighbours(
    rows: &Rows,
    costs: &Costs,
    side: usize,
    only: &[u32],
    renamed: &BTreeMap<u32, u32>,
) -> HashMap<u32, Neighbours> {
    let mut near: HashMap<u32, Neighbours> = only.iter().map(|&f| (f, Neighbours::new())).collect();
    for (i, row) in paced(rows.rows.iter().enumerate()).filter(|(_, row)| row.values[side] > 0.0) {
        let stack = rows.stack(i);
        for (j, frame) in stack.iter().enumerate() {
            let Some(neighbours) = near.get_mut(frame) else { continue };
            let name = |at: Option<&u32>| match at {
                Some(f) => renamed.get(f).copied().unwrap_or(if only.contains(f) { UNKNOWN } else { *f }),
                None => END,
            };
            let caller = name(j.checked_sub(1).and_then(|j| stack.get(j)));
            let share = row.values[side] / costs.of(*frame, side);
            *neighbours.entry((true, caller)).or_default() += share;
            *neighbours.entry((false, name(stack.get(j + 1)))).or_default() += share;
        }
    }
    // Those that make up most of it are enough, whatever a profile has.
    for neighbours in near.values_mut().filter(|n| n.len() > MAX_NEIGHBOURS) {
        let mut all: Vec<_> = std::mem::take(neighbours).into_iter().collect();
        all.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        neighbours.extend(all.into_iter().take(MAX_NEIGHBOURS));
    }
    near
}

#[cfg(test)]
mod tests {
    use super::{Parts, package, without_version};

    #[test]
    fn names_have_a_package_and_what_is_left_without_it() {
        let of = |name: &str| {
            let Parts { package, local, last } = Parts::of(name);
            [package, local, last].join(" | ")
        };
        let cases = [
            ("gopkg.in/yaml%2ev2.(*parser).parse", "gopkg.in/yaml%2ev2 | parser.parse | parse"),
            ("gopkg.in/yaml.v3.Unmarshal", "gopkg.in/yaml.v3 | Unmarshal | unmarshal"),
            ("main.sum[go.shape.int]", "main | sum | sum"),
            ("github.com/a/b.(*T[...]).M", "github.com/a/b | T.M | m"),
            ("pulldown_cmark::parse::Parser::next", "pulldown_cmark::parse | Parser.next | next"),
            ("<a::b::T<X> as core::iter::Iterator>::next", "a::b | T.next | next"),
            ("java.util.HashMap.get", "java.util | HashMap.get | get"),
            ("parseXml", " | parseXml | parsexml"),
            ("(anonymous) a/b.js", "a/b.js | (anonymous) a/b.js | (anonymous) a/b.js"),
            ("Markdown.__call__", " | Markdown.__call__ | markdown.__call__"),
        ];
        cases.iter().for_each(|(name, wanted)| assert_eq!(of(name), *wanted));
        let odd = [
            "a/b.c.D.e",
            "a/b.(*t).m",
            "a.b/c",
            "a/",
            "",
            "a..b",
            ".a",
            "a.",
            "a/.b.c",
            "A.b",
            "a.b.c",
            "f(int) const",
            "RegExp: a.b/C",
            "(anonymous namespace)::f",
            "a.(anonymous) b",
            "a/b.F.func1.2",
        ];
        for name in cases.iter().map(|(name, _)| *name).chain(odd) {
            assert_eq!(package(name), Parts::of(name).package, "{name}");
        }
        let is_version_of = |a: &str, b: &str| without_version(a) == without_version(b);
        assert!(is_version_of("gopkg.in/yaml%2ev2", "gopkg.in/yaml%2ev3"));
        assert!(is_version_of("encoding/json", "encoding/json/v2") && !is_version_of("a/b", "a/c"));
    }
}
