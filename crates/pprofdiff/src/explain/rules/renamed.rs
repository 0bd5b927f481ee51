//! Functions that have another name on the new side. That needs evidence in the names: an equal cost alone is none.
//!
//! 1. Packages under another path (`gopkg.in/yaml.v2` and `yaml.v3`), by the names that they share.
//! 2. Functions whose last names agree, with the same callers or callees, and a like cost.
//! 3. Functions of one package with the same callers and the same cost, if just one is in question, and if their names or
//!    their callees are alike.
//!
//! Two implementations of one interface share the names of its methods, their type and their callers, so these are no
//! evidence.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::parts::{Parts, module, package, segments};
use super::{Find, Rule};
use crate::explain::evidence::costs::Costs;
use crate::explain::evidence::rows::{Name, Rows};
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::work::{self, paced};

/// The most frames of one side that are compared by their neighbours, the costliest first.
const MAX_RENAMED: usize = 200;
/// The most passes over them: each matches functions by the neighbours that the last one matched.
const MAX_PASSES: usize = 3;
/// The most callers and callees that a frame is compared by.
const MAX_NEIGHBOURS: usize = 200;
/// Callers or callees are the same if they share this part.
const LIKE: f64 = 0.5;
/// What callers and callees share on average where no name says anything.
const ALIKE: f64 = 0.6;
/// Costs within this factor are alike, as parts of their sides.
const LIKE_COST: f64 = 2.0;
/// Callees that tell functions apart have at least this part of a function's cost.
const TELLING_CALLEES: f64 = 0.05;
/// Packages are one if they share so many names, and this part of those of the larger.
const SHARED_NAMES: usize = 2;
const SHARED_PART: f64 = 0.3;
/// Packages whose paths are not alike are one if they share so many functions that only their own package can call, or so
/// many types and functions in a language whose names do not say who can call them.
const SHARED_PRIVATE: usize = 2;
const SHARED_OWNERS: usize = 3;
/// Of two paths of which one ends with the other, the shorter has so many segments at least.
const SEGMENTS_OF_SUFFIX: usize = 2;
/// A name that more packages of the new side have says nothing.
const MAX_PACKAGES: usize = 32;

/// A function that has another name on the new side.
#[derive(Debug, Clone, Copy)]
pub(in crate::explain) struct Renamed {
    pub old: u32,
    pub new: u32,
    /// What it costs with all below it, on either side.
    pub cost: [f64; 2],
    /// True if its package has another path, and not the function alone.
    pub with_package: bool,
}

pub(super) const RULE: Rule = Rule {
    name: "renamed",
    needs: "functions that one side has alone: of one package under another path, or with like names and neighbours",
    says: "it is now called otherwise, with what it costs on both sides",
    find: Find::Rename(|names| renamed(&names.rows, &names.costs)),
};

/// The functions that were renamed, one to one.
fn renamed(rows: &Rows, costs: &Costs) -> Vec<Renamed> {
    if (0..2).any(|side| costs.only(side).next().is_none()) {
        return Vec::new();
    }
    let mut found = Found { rows, costs, pairs: Vec::new(), renamed: [BTreeMap::new(), BTreeMap::new()] };
    found.of_packages(&rows.names);
    // What a function calls may have other names as well, which the last pass matched.
    for _ in 0..MAX_PASSES {
        let known = found.pairs.len();
        found.of_neighbours();
        if found.pairs.len() == known {
            break;
        }
    }
    found.pairs
}

/// What the paths of two packages say about whether they are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Paths {
    /// They differ by a version, or one is the other below a further path, as a vendored package is.
    Equal,
    /// Their last segments agree, and they are of different modules: a module has another host or owner.
    Alike,
    /// Nothing, as of two packages of one module that implement the same interface.
    Unlike,
}

impl Paths {
    fn of(old: &str, new: &str) -> Paths {
        let (a, b) = (segments(old), segments(new));
        let is_suffix = a.len().min(b.len()) >= SEGMENTS_OF_SUFFIX && (a.ends_with(&b) || b.ends_with(&a));
        match () {
            () if a == b || is_suffix => Paths::Equal,
            () if a.last() == b.last() && module(old) != module(new) => Paths::Alike,
            () => Paths::Unlike,
        }
    }
}

struct Found<'a> {
    rows: &'a Rows,
    costs: &'a Costs,
    pairs: Vec<Renamed>,
    /// By side: from a frame's name to what it is called in both, which is the base's.
    renamed: [BTreeMap<u32, u32>; 2],
}

impl Found<'_> {
    fn add(&mut self, old: u32, new: u32, with_package: bool) {
        if !self.renamed[0].contains_key(&old) && !self.renamed[1].contains_key(&new) {
            self.renamed[0].insert(old, old);
            self.renamed[1].insert(new, old);
            let cost = [self.costs.of(old, 0), self.costs.of(new, 1)];
            self.pairs.push(Renamed { old, new, cost, with_package });
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
                let paths = Paths::of(old, new);
                let is_version = segments(old) == segments(new);
                if is_version || is_enough && (paths == Paths::Equal || self.is_one(paths, names, &of[1][new])) {
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
                    self.add(frame, other, true);
                }
            }
            // Of those that are left: a type may be exported now, or no more.
            let others: BTreeMap<String, u32> = of[1][new].iter().map(|(name, &f)| (name.to_lowercase(), f)).collect();
            for (name, &frame) in &of[0][old] {
                if let Some(&other) = others.get(&name.to_lowercase()) {
                    self.add(frame, other, true);
                }
            }
        }
    }

    /// Returns true if what two packages share makes them one, though their paths are not equal. Implementations of one
    /// interface share its methods and often a constructor, and seldom their cost.
    fn is_one(&self, paths: Paths, old: &BTreeMap<String, u32>, new: &BTreeMap<String, u32>) -> bool {
        let shared = || old.iter().filter_map(|(name, &frame)| Some((frame, *new.get(name)?)));
        let (mut private, mut owners, mut costs) = (0, BTreeSet::new(), [0.0; 2]);
        for (before, after) in shared() {
            let parts = Parts::of(&self.rows.names[before as usize].text);
            private += usize::from(parts.is_private_in_go());
            owners.insert(if parts.owner.is_empty() { parts.local } else { parts.owner });
            costs = [costs[0] + self.costs.of(before, 0), costs[1] + self.costs.of(after, 1)];
        }
        let are_own = match self.rows.runtime.name == "go" {
            true => private >= SHARED_PRIVATE,
            false => owners.len() >= SHARED_OWNERS,
        };
        (paths == Paths::Alike || are_own) && self.log_ratio(costs).abs() < LIKE_COST.ln()
    }

    /// Returns the logarithm of the ratio of two costs, each as a part of its side.
    fn log_ratio(&self, [base, new]: [f64; 2]) -> f64 {
        let total = self.rows.total();
        (new / total[1] / (base / total[0])).ln()
    }

    /// Returns the part that two functions have in common of the callees that tell functions apart: functions of the program,
    /// or of the functions' own package. Much else calls a standard library.
    fn common_callees(&self, near: [&Neighbours; 2], package_of_both: [&str; 2]) -> f64 {
        let is_telling = |frame: u32| {
            let name = &self.rows.names[frame as usize];
            name.class.program || package_of_both.contains(&&*package(&name.text)) && !name.class.system
        };
        let callees = |of: usize| {
            near[of].iter().filter(|((is_caller, frame), _)| !is_caller && *frame < END && is_telling(*frame))
        };
        let sums = [0, 1].map(|of| callees(of).map(|(_, share)| share).sum::<f64>());
        let common: f64 = callees(0).filter_map(|(key, share)| Some(share.min(*near[1].get(key)?))).sum();
        if sums.iter().all(|sum| *sum >= TELLING_CALLEES) { common / sums[0].max(sums[1]) } else { 0.0 }
    }

    /// Functions that only one side has, by their callers and callees: of the same last name, or of the same package if
    /// nothing else is in question.
    fn of_neighbours(&mut self) {
        let (rows, is_go) = (self.rows, self.rows.runtime.name == "go");
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
                let ratio = self.log_ratio([va, vb]).abs();
                let overlap = (up + down) / 2.0;
                let deviation = (event / va + event / vb + 0.02).sqrt();
                let have_callees = || self.common_callees([a, b], [&of_old.package, &of_new.package]) > LIKE;
                let has_last = !of_old.last.is_empty() && of_old.last == of_new.last;
                // Functions of two packages are one only if nothing but their path tells them apart.
                let is_near = of_old.package == of_new.package || ratio < 3.0 * deviation;
                if has_last
                    && is_near
                    && (up > LIKE || down > LIKE)
                    && ratio < LIKE_COST.ln()
                    && (!of_old.may_implement(of_new, is_go) || have_callees())
                {
                    of_name.push((overlap - ratio / LIKE_COST.ln() / 10.0, old, new));
                }
                // Of names without a package, as Python's and C's, the type says what they belong to; of those without either,
                // what they call must say so.
                let called = || -> f64 {
                    let both = a.iter().filter(|((is_caller, name), _)| !is_caller && *name < END);
                    both.filter_map(|(key, share)| Some(share.min(*b.get(key)?))).sum()
                };
                let is_of_one = || of_old.owner == of_new.owner && (!of_old.owner.is_empty() || called() > LIKE);
                // Two siblings have a caller in common, and may have a cost.
                let is_same = || have_callees() || of_old.is_alike(of_new) && !of_old.may_implement(of_new, is_go);
                let is_one_package = of_old.package == of_new.package && (!of_old.package.is_empty() || is_of_one());
                if is_one_package && overlap > ALIKE && up > LIKE && ratio < 3.0 * deviation && is_same() {
                    of_package.push((old, new));
                }
            }
        }
        of_name.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        of_name.into_iter().for_each(|(_, old, new)| self.add(old, new, false));
        of_package.retain(|(old, new)| !self.renamed[0].contains_key(old) && !self.renamed[1].contains_key(new));
        for &(old, new) in &of_package {
            let others = |pair: &&(u32, u32)| pair.0 == old || pair.1 == new;
            if of_package.iter().filter(others).count() == 1 {
                self.add(old, new, false);
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
