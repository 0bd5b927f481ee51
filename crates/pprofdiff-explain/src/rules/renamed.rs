//! Functions that have another name on the new side. A rename needs evidence in the names, because an equal cost alone
//! is not enough.
//!
//! 1. Packages under another path (`gopkg.in/yaml.v2` and `yaml.v3`) are matched by the names that they share.
//! 2. Functions with the same last name are matched if they have the same callers or callees, and a similar cost.
//! 3. Methods are matched if another method moved from the same type to the same other type.
//! 4. Functions of one package with the same callers and the same cost are matched if there is exactly one possible
//!    pair, and their names or their callees are similar.
//!
//! Two implementations of one interface share the names of its methods, their type and their callers. Therefore these
//! similarities alone are not enough.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::parts::{Parts, module, package, segments};
use super::{Find, Rule};
use crate::evidence::costs::FrameCosts;
use crate::evidence::rows::{FrameName, StackRows};
use crate::thresholds::{
    COST_RATIOS_PER_OVERLAP, MAX_COST_RATIO_OF_RENAMED, MAX_DEVIATIONS_OF_EQUAL_COST, MAX_PACKAGES_OF_NAME,
    MIN_EVENTS_OF_RENAMED, MIN_EVENTS_OF_RENAMED_PAIR, MIN_MEAN_OVERLAP_OF_NEIGHBOURS, MIN_OVERLAP_OF_NEIGHBOURS,
    MIN_PART_OF_RENAMED, MIN_PART_OF_TELLING_CALLEES, MIN_SEGMENTS_OF_SUFFIX, MIN_SHARED_NAMES, MIN_SHARED_OWNERS,
    MIN_SHARED_PART_OF_PACKAGE, MIN_SHARED_PRIVATE_FUNCTIONS, VARIANCE_OF_EQUAL_COST,
};
use pprofdiff_profile::cancellation::{self, checkpointed};
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::short_lists::sort_by;

/// Maximum number of frames per side that are compared by their neighbours, costliest first.
const MAX_RENAMED: usize = 200;
/// Maximum number of passes over the frames. Each pass compares neighbours by the names that the last pass matched.
const MAX_PASSES: usize = 3;
/// Maximum number of callers and callees of a frame in the comparison.
const MAX_NEIGHBOURS: usize = 200;

/// A function with another name on the new side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RenamedFunction {
    pub old: u32,
    pub new: u32,
    /// The cost including callees, by side.
    pub cost: [f64; 2],
    /// True if the path of its package changed.
    pub with_package: bool,
}

pub(super) const RULE: Rule = Rule {
    name: "renamed",
    needs: "functions of one side only, in a package with another path, or with similar names and neighbours",
    says: "\"X is now called Y\", with both costs",
    find: Find::Rename(|names| renamed(&names.rows, &names.costs)),
};

/// Returns the renamed functions, as pairs.
fn renamed(rows: &StackRows, costs: &FrameCosts) -> Vec<RenamedFunction> {
    if (0..2).any(|side| costs.only(side).next().is_none()) {
        return Vec::new();
    }
    let mut matcher = RenameMatcher { rows, costs, pairs: Vec::new(), renamed: [BTreeMap::new(), BTreeMap::new()] };
    matcher.match_packages(&rows.names);
    // Callees may be renamed as well, and a pass only knows the renames of earlier passes.
    for _ in 0..MAX_PASSES {
        let n_pairs = matcher.pairs.len();
        matcher.match_neighbours();
        if matcher.pairs.len() == n_pairs {
            break;
        }
    }
    matcher.match_methods();
    matcher.pairs
}

/// The evidence in the paths of two packages that they are the same package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathRelation {
    /// The paths differ by a version, or the shorter path is a suffix of the longer path, as for a vendored package.
    Equal,
    /// The last segments agree, and the modules (host and owner) differ.
    Alike,
    /// The paths are not related, as for two packages of one module that implement the same interface.
    Unlike,
}

impl PathRelation {
    fn between(old: &str, new: &str) -> PathRelation {
        let (a, b) = (segments(old), segments(new));
        let is_suffix = a.len().min(b.len()) >= MIN_SEGMENTS_OF_SUFFIX && (a.ends_with(&b) || b.ends_with(&a));
        match () {
            () if a == b || is_suffix => PathRelation::Equal,
            () if a.last() == b.last() && module(old) != module(new) => PathRelation::Alike,
            () => PathRelation::Unlike,
        }
    }
}

struct RenameMatcher<'a> {
    rows: &'a StackRows,
    costs: &'a FrameCosts,
    pairs: Vec<RenamedFunction>,
    /// By side: from a renamed frame to the frame of the base with the common name.
    renamed: [BTreeMap<u32, u32>; 2],
}

impl RenameMatcher<'_> {
    fn add(&mut self, old: u32, new: u32, with_package: bool) {
        if !self.renamed[0].contains_key(&old) && !self.renamed[1].contains_key(&new) {
            self.renamed[0].insert(old, old);
            self.renamed[1].insert(new, old);
            let cost = [self.costs.cost(old, 0), self.costs.cost(new, 1)];
            self.pairs.push(RenamedFunction { old, new, cost, with_package });
        }
    }

    /// Matches functions of packages with another path: packages that only one side has, by the number of names they
    /// share.
    fn match_packages(&mut self, names: &[FrameName]) {
        let packages: Vec<Cow<'_, str>> = checkpointed(names).map(|name| package(&name.text)).collect();
        // By package: the sides that have it. Most packages are on both sides and need no further work.
        let mut numbers: HashMap<&str, usize> = HashMap::default();
        let (mut package_numbers, mut sides, mut last) = (Vec::with_capacity(names.len()), Vec::new(), ("", 0));
        for (package, frame) in packages.iter().zip(0..) {
            if frame == 0 || last.0 != package {
                last = (package, *numbers.entry(package).or_insert(sides.len()));
            }
            package_numbers.push(last.1);
            sides.resize(numbers.len(), [false; 2]);
            (0..2).for_each(|side| sides[last.1][side] |= self.costs.cost(frame, side) > 0.0);
        }
        let by_package = |side: usize| {
            let mut by_package: BTreeMap<&str, BTreeMap<String, u32>> = BTreeMap::new();
            let is_only = |frame: &u32| {
                let package = &*packages[*frame as usize];
                !package.is_empty() && !sides[package_numbers[*frame as usize]][1 - side]
            };
            for frame in self.costs.on(side).filter(is_only) {
                let local = Parts::parse(&names[frame as usize].text).local;
                by_package.entry(&packages[frame as usize]).or_default().entry(local).or_insert(frame);
            }
            by_package
        };
        let packages_of = [by_package(0), by_package(1)];
        let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (package, names) in &packages_of[1] {
            names.keys().for_each(|name| by_name.entry(name).or_default().push(package));
        }
        let mut matches = Vec::new();
        for (old, names) in &packages_of[0] {
            cancellation::checkpoint();
            let mut shared: BTreeMap<&str, usize> = BTreeMap::new();
            // Names that many packages share are not distinctive, and would create too many pairs.
            let lists = names
                .keys()
                .filter_map(|name| by_name.get(name.as_str()))
                .filter(|list| list.len() <= MAX_PACKAGES_OF_NAME);
            let packages = lists.flatten();
            packages.for_each(|package| *shared.entry(package).or_default() += 1);
            for (new, count) in shared {
                let larger = names.len().max(packages_of[1][new].len());
                let is_enough = count >= MIN_SHARED_NAMES && count as f64 >= MIN_SHARED_PART_OF_PACKAGE * larger as f64;
                let paths = PathRelation::between(old, new);
                let is_version = segments(old) == segments(new);
                if is_version
                    || is_enough && (paths == PathRelation::Equal || self.is_one(paths, names, &packages_of[1][new]))
                {
                    matches.push((count, is_version, *old, new));
                }
            }
        }
        sort_by(&mut matches, |a, b| (b.0, b.1).cmp(&(a.0, a.1)).then((a.2, a.3).cmp(&(b.2, b.3))));
        let mut matched: [BTreeSet<&str>; 2] = Default::default();
        for (_, _, old, new) in matches {
            if matched[0].contains(old) || matched[1].contains(new) {
                continue;
            }
            matched[0].insert(old);
            matched[1].insert(new);
            for (name, &frame) in &packages_of[0][old] {
                if let Some(&new_frame) = packages_of[1][new].get(name) {
                    self.add(frame, new_frame, true);
                }
            }
            // Matches the remaining names without case, because the export of a type may have changed.
            let new_names: BTreeMap<String, u32> =
                packages_of[1][new].iter().map(|(name, &f)| (name.to_lowercase(), f)).collect();
            for (name, &frame) in &packages_of[0][old] {
                if let Some(&new_frame) = new_names.get(&name.to_lowercase()) {
                    self.add(frame, new_frame, true);
                }
            }
        }
    }

    /// Matches methods that moved from one type to another together with a renamed one, at any cost: `(*File).m` is
    /// `(*Sheet).m` if another method moved from `File` to `Sheet`.
    fn match_methods(&mut self) {
        let rows = self.rows;
        let parts = |frame: u32| Parts::parse(&rows.names[frame as usize].text);
        let moved = self.pairs.iter().filter(|pair| !pair.with_package).filter_map(|pair| {
            let (old, new) = (parts(pair.old), parts(pair.new));
            let is_of_types = !old.owner.is_empty() && !new.owner.is_empty() && old.owner != new.owner;
            (is_of_types && old.package == new.package).then_some((old.package, old.owner, new.owner))
        });
        let moved: BTreeSet<(String, String, String)> = moved.collect();
        if moved.is_empty() {
            return;
        }
        let methods = |side: usize| {
            let methods = checkpointed(self.costs.only(side)).map(|(_, frame)| {
                let Parts { package, owner, last, .. } = parts(frame);
                ((package, owner, last), frame)
            });
            methods.filter(|((_, owner, last), _)| !owner.is_empty() && !last.is_empty()).collect::<BTreeMap<_, _>>()
        };
        let (old, new) = (methods(0), methods(1));
        for ((package, owner, last), &frame) in &old {
            let types = moved.iter().filter(|(of, from, _)| (of, from) == (package, owner)).map(|(_, _, to)| to);
            let after = types.filter_map(|to| new.get(&(package.clone(), to.clone(), last.clone()))).next();
            if let Some(&after) = after {
                self.add(frame, after, false);
            }
        }
    }

    /// Returns true if the names that two packages share prove that they are the same, although their paths differ: the
    /// paths are alike or enough of the shared names are distinctive, and the shared functions have a similar cost.
    /// Implementations of one interface share its methods and often a constructor, but seldom their cost.
    fn is_one(&self, paths: PathRelation, old: &BTreeMap<String, u32>, new: &BTreeMap<String, u32>) -> bool {
        let shared = || old.iter().filter_map(|(name, &frame)| Some((frame, *new.get(name)?)));
        let (mut private, mut owners, mut costs) = (0, BTreeSet::new(), [0.0; 2]);
        for (before, after) in shared() {
            let parts = Parts::parse(&self.rows.names[before as usize].text);
            private += usize::from(parts.is_private_in_go());
            owners.insert(if parts.owner.is_empty() { parts.local } else { parts.owner });
            costs = [costs[0] + self.costs.cost(before, 0), costs[1] + self.costs.cost(after, 1)];
        }
        let are_distinctive = match self.rows.runtime.name == "go" {
            true => private >= MIN_SHARED_PRIVATE_FUNCTIONS,
            false => owners.len() >= MIN_SHARED_OWNERS,
        };
        (paths == PathRelation::Alike || are_distinctive)
            && self.log_ratio(costs).abs() < MAX_COST_RATIO_OF_RENAMED.ln()
    }

    /// Returns the logarithm of the ratio of two costs, new divided by base, each as a fraction of its side.
    fn log_ratio(&self, [base, new]: [f64; 2]) -> f64 {
        let total = self.rows.total();
        (new / total[1] / (base / total[0])).ln()
    }

    /// Returns the overlap of two functions' distinctive callees, from 0 to 1: functions of the program, or of the
    /// functions' own package. Calls of a standard library are not distinctive. Returns 0 if distinctive callees have
    /// little of a function's cost.
    fn common_callees(&self, near: [&Neighbours; 2], package_of_both: [&str; 2]) -> f64 {
        let is_telling = |frame: u32| {
            let name = &self.rows.names[frame as usize];
            name.class.program || package_of_both.contains(&&*package(&name.text)) && !name.class.system
        };
        let callees = |side: usize| {
            near[side].iter().filter(|((is_caller, frame), _)| !is_caller && *frame < END && is_telling(*frame))
        };
        let sums = [0, 1].map(|side| callees(side).map(|(_, share)| share).sum::<f64>());
        let common: f64 = callees(0).filter_map(|(key, share)| Some(share.min(*near[1].get(key)?))).sum();
        if sums.iter().all(|sum| *sum >= MIN_PART_OF_TELLING_CALLEES) { common / sums[0].max(sums[1]) } else { 0.0 }
    }

    /// Returns the costliest functions that only one side has and that are not matched yet.
    fn unmatched(&self, side: usize) -> Vec<u32> {
        let (total, event) = (self.rows.total(), self.rows.event());
        let is_large = |v: f64| v > (MIN_PART_OF_RENAMED * total[side]).max(MIN_EVENTS_OF_RENAMED * event);
        let is_open = |frame: u32| !self.rows.is_system(frame) && !self.renamed[side].contains_key(&frame);
        let mut only: Vec<(f64, u32)> =
            self.costs.only(side).filter(|&(v, frame)| is_large(v) && is_open(frame)).collect();
        only.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        only.truncate(MAX_RENAMED);
        only.into_iter().map(|(_, f)| f).collect()
    }

    /// Matches functions that only one side has by their callers and callees: functions with the same last name, or
    /// functions of the same package if there is exactly one possible pair.
    fn match_neighbours(&mut self) {
        let (rows, event) = (self.rows, self.rows.event());
        let only = [self.unmatched(0), self.unmatched(1)];
        if only.iter().any(Vec::is_empty) {
            return;
        }
        let functions = [0, 1].map(|side| {
            let mut near = neighbours(rows, self.costs, side, &only[side], &self.renamed[side]);
            let function = |&frame: &u32| OneSidedFunction {
                frame,
                parts: Parts::parse(&rows.names[frame as usize].text),
                near: near.remove(&frame).unwrap_or_default(),
                cost: self.costs.cost(frame, side),
            };
            only[side].iter().map(function).collect::<Vec<_>>()
        });
        let (mut by_name, mut by_package) = (Vec::new(), Vec::new());
        for old in &functions[0] {
            cancellation::checkpoint();
            for new in &functions[1] {
                let likeness = self.likeness(old, new, event);
                by_name.extend(likeness.rank_of_name.map(|rank| (rank, old.frame, new.frame)));
                if likeness.is_of_package {
                    by_package.push((old.frame, new.frame));
                }
            }
        }
        sort_by(&mut by_name, |a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        by_name.into_iter().for_each(|(_, old, new)| self.add(old, new, false));
        by_package.retain(|(old, new)| !self.renamed[0].contains_key(old) && !self.renamed[1].contains_key(new));
        for &(old, new) in &by_package {
            let shares_function = |pair: &&(u32, u32)| pair.0 == old || pair.1 == new;
            if by_package.iter().filter(shares_function).count() == 1 {
                self.add(old, new, false);
            }
        }
    }

    /// Compares the names, neighbours and costs of two functions.
    fn likeness(&self, old: &OneSidedFunction, new: &OneSidedFunction, event: f64) -> Likeness {
        let is_go = self.rows.runtime.name == "go";
        let (a, b, old_parts, new_parts) = (&old.near, &new.near, &old.parts, &new.parts);
        let common = |callers: bool| -> f64 {
            let both = a.iter().filter(|((caller, _), _)| *caller == callers);
            both.filter_map(|(key, share)| Some(share.min(*b.get(key)?))).sum()
        };
        let (up, down) = (common(true), common(false));
        let (va, vb) = (old.cost, new.cost);
        if va + vb <= MIN_EVENTS_OF_RENAMED_PAIR * event {
            return Likeness { rank_of_name: None, is_of_package: false };
        }
        let ratio = self.log_ratio([va, vb]).abs();
        let overlap = (up + down) / 2.0;
        let deviation = (event / va + event / vb + VARIANCE_OF_EQUAL_COST).sqrt();
        let have_callees =
            || self.common_callees([a, b], [&old_parts.package, &new_parts.package]) > MIN_OVERLAP_OF_NEIGHBOURS;
        let has_last = !old_parts.last.is_empty() && old_parts.last == new_parts.last;
        // Functions of two packages match only if nothing but the path distinguishes them, so their cost must be equal.
        let is_near = old_parts.package == new_parts.package || ratio < MAX_DEVIATIONS_OF_EQUAL_COST * deviation;
        // Libraries of other authors have functions of the same name (`decode`, `write`), so these need the same callees.
        let is_one_module = module(&old_parts.package) == module(&new_parts.package);
        let is_of_name = has_last
            && is_near
            && (up > MIN_OVERLAP_OF_NEIGHBOURS || down > MIN_OVERLAP_OF_NEIGHBOURS)
            && ratio < MAX_COST_RATIO_OF_RENAMED.ln()
            && (!old_parts.may_implement(new_parts, is_go) || have_callees())
            && (is_one_module || have_callees());
        let rank = overlap - ratio / MAX_COST_RATIO_OF_RENAMED.ln() / COST_RATIOS_PER_OVERLAP;
        // For names without a package, as in Python and C, the type takes its place. Names without a package and type
        // need the same callees.
        let called = || -> f64 {
            let both = a.iter().filter(|((is_caller, name), _)| !is_caller && *name < END);
            both.filter_map(|(key, share)| Some(share.min(*b.get(key)?))).sum()
        };
        let is_of_one = || {
            old_parts.owner == new_parts.owner && (!old_parts.owner.is_empty() || called() > MIN_OVERLAP_OF_NEIGHBOURS)
        };
        // Two siblings have a common caller, and may have the same cost.
        let are_alike = || old_parts.is_alike(new_parts);
        // Methods of two types with two names are not one function, although they may call the same.
        let may_be_same = || old_parts.owner == new_parts.owner || are_alike();
        let is_same = || have_callees() && may_be_same() || are_alike() && !old_parts.may_implement(new_parts, is_go);
        let is_one_package = old_parts.package == new_parts.package && (!old_parts.package.is_empty() || is_of_one());
        let is_of_package = is_one_package
            && overlap > MIN_MEAN_OVERLAP_OF_NEIGHBOURS
            && up > MIN_OVERLAP_OF_NEIGHBOURS
            && ratio < MAX_DEVIATIONS_OF_EQUAL_COST * deviation
            && is_same();
        Likeness { rank_of_name: is_of_name.then_some(rank), is_of_package }
    }
}

/// A function that only one side has.
struct OneSidedFunction {
    frame: u32,
    parts: Parts,
    near: Neighbours,
    cost: f64,
}

/// The evidence that two functions are one.
struct Likeness {
    /// The rank among pairs with the same last name. `None` if the names or other evidence differ.
    rank_of_name: Option<f64>,
    /// True if the functions are of one package and alike.
    is_of_package: bool,
}

/// The shares in a frame's cost of its callers (`true`) and callees (`false`).
type Neighbours = BTreeMap<(bool, u32), f64>;

/// A neighbour that only one side has and that is not matched yet. Two such neighbours count as equal.
const UNKNOWN: u32 = u32::MAX;
/// The missing caller of a root frame, and the missing callee of a leaf.
const END: u32 = u32::MAX - 1;

/// Returns the neighbours of these frames, as frames of the base.
fn neighbours(
    rows: &StackRows,
    costs: &FrameCosts,
    side: usize,
    only: &[u32],
    renamed: &BTreeMap<u32, u32>,
) -> HashMap<u32, Neighbours> {
    let mut near: HashMap<u32, Neighbours> = only.iter().map(|&f| (f, Neighbours::new())).collect();
    for (i, row) in checkpointed(rows.rows.iter().enumerate()).filter(|(_, row)| row.values[side] > 0.0) {
        let stack = rows.stack(i);
        for (j, frame) in stack.iter().enumerate() {
            let Some(neighbours) = near.get_mut(frame) else { continue };
            let name = |neighbour: Option<&u32>| match neighbour {
                Some(f) => renamed.get(f).copied().unwrap_or(if only.contains(f) { UNKNOWN } else { *f }),
                None => END,
            };
            let caller = name(j.checked_sub(1).and_then(|j| stack.get(j)));
            let share = row.values[side] / costs.cost(*frame, side);
            *neighbours.entry((true, caller)).or_default() += share;
            *neighbours.entry((false, name(stack.get(j + 1)))).or_default() += share;
        }
    }
    // The largest neighbours make up most of the cost, and a limit bounds the work.
    for neighbours in near.values_mut().filter(|n| n.len() > MAX_NEIGHBOURS) {
        let mut all: Vec<_> = std::mem::take(neighbours).into_iter().collect();
        all.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        neighbours.extend(all.into_iter().take(MAX_NEIGHBOURS));
    }
    near
}
