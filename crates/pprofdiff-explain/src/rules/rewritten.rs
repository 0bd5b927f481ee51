//! A rewritten library: much of both sides' cost is in functions that the opposite side lacks, and few packages contain
//! them. Then the sum of these functions is reported first, and the search for causes stays above them, in functions
//! that both sides have.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::parts::{module, package_of};
use super::{Find, Rule};
use crate::evidence::costs::FrameCosts;
use crate::evidence::rows::{FrameName, StackRows};
use crate::thresholds::{
    MIN_EVENTS_OF_REWRITTEN_FUNCTION, MIN_PART_OF_NAMED_PACKAGE, MIN_PART_OF_REWRITTEN_PACKAGE,
    MIN_REWRITTEN_FUNCTIONS, MIN_REWRITTEN_PART,
};
use pprofdiff_profile::cancellation::checkpointed;

pub(super) const RULE: Rule = Rule {
    name: "rewritten",
    needs: "functions that the opposite side lacks, with much of the cost on both sides, most of them in one package",
    says: "\"Rewritten: A is now B\", with both costs; causes are searched above it, and the amount of work is unknown",
    find: Find::Cut(|names| rewritten(&names.rows, &names.costs)),
};

/// A rewritten library.
pub(crate) struct Rewritten {
    /// The common path of the module with most of the disappeared cost, and of the module with most of the added cost.
    pub packages: [String; 2],
    /// The function that calls most of the rewritten code on both sides. `None` if no single function does.
    pub below: Option<u32>,
    /// The cost of the stacks with such a function of this module, by side, in all runs of the side.
    pub cost: [f64; 2],
    /// The number of functions of this module that disappeared and appeared. Rarely sampled functions do not count.
    pub functions: [usize; 2],
}

/// A module with functions that the opposite side lacks.
#[derive(Default)]
struct ModuleCost<'a> {
    /// The cost of the stacks with such functions.
    cost: f64,
    /// The same, counted once for each of these functions in a stack, in total and by package.
    frames: f64,
    packages: BTreeMap<&'a str, f64>,
}

impl ModuleCost<'_> {
    /// Returns the longest path that the packages with most of the frames have in common.
    fn common_path(&self) -> String {
        let is_large = |part: f64| part > MIN_PART_OF_NAMED_PACKAGE * self.frames;
        let mut large = self.packages.iter().filter(|(_, part)| is_large(**part)).map(|(path, _)| *path);
        let Some(first) = large.next() else { return String::new() };
        let mut common = first;
        for path in large {
            let same = common.bytes().zip(path.bytes()).take_while(|(a, b)| a == b).count();
            let ends = |text: &str| same == text.len() || text[same..].starts_with(['/', '.', ':']);
            let end =
                if ends(common) && ends(path) { same } else { common[..same].rfind(['/', '.', ':']).unwrap_or(0) };
            common = common[..end].trim_end_matches([':', '.', '/']);
        }
        // Modules of one author may have nothing but the author in common.
        if common.is_empty() { first.to_owned() } else { common.to_owned() }
    }
}

/// Returns a rewritten library, and the number of frames that each stack keeps: the frames above the first frame that
/// the opposite side lacks. Returns `None` if such functions have too little of either side's cost, if they belong to
/// several packages, or if they are too few.
fn rewritten<'r>(rows: &'r StackRows, costs: &FrameCosts) -> Option<(Rewritten, Vec<usize>)> {
    // By frame: the side, if only one side has it.
    let mut alone: Vec<Option<usize>> = vec![None; rows.names.len()];
    for side in 0..2 {
        let frames = costs.only(side).map(|(_, frame)| frame).filter(|&frame| !rows.is_system(frame));
        frames.for_each(|frame| alone[frame as usize] = Some(side));
    }
    // By module: its packages, and the cost of the stacks whose deepest such function is in it.
    let package = |(name, side): (&'r FrameName, &Option<usize>)| side.map(|_| package_of(&name.text));
    let texts: Vec<Cow<'_, str>> =
        rows.names.iter().zip(&alone).map(|name| package(name).unwrap_or_default()).collect();
    let mut modules: [BTreeMap<Vec<&str>, ModuleCost<'_>>; 2] = Default::default();
    let mut cost = [0.0; 2];
    let mut callers: [BTreeMap<u32, f64>; 2] = Default::default();
    let mut kept = Vec::with_capacity(rows.rows.len());
    for (i, row) in checkpointed(rows.rows.iter().enumerate()) {
        let stack = rows.stack(i);
        // Background stacks are recognized by their frames, so they are not cut.
        let first = stack.iter().map(|&frame| alone[frame as usize]).position(|side| side.is_some() && !row.background);
        kept.push(first.unwrap_or(stack.len()));
        let Some((pos, side)) = first.and_then(|pos| Some((pos, alone[stack[pos] as usize]?))) else { continue };
        cost[side] += row.values[side];
        // The module with most of the frames is what was rewritten: the outermost function may only call it under a new
        // name, and the innermost may only be called.
        let mut seen: BTreeSet<Vec<&str>> = BTreeSet::new();
        for &frame in stack[pos..].iter().filter(|&&frame| alone[frame as usize] == Some(side)) {
            let package = &texts[frame as usize];
            let entry = modules[side].entry(module(package)).or_default();
            entry.frames += row.values[side];
            *entry.packages.entry(package).or_default() += row.values[side];
            if seen.insert(module(package)) {
                entry.cost += row.values[side];
            }
        }
        if let Some(above) = pos.checked_sub(1) {
            *callers[side].entry(stack[above]).or_default() += row.values[side];
        }
    }
    let is_main = |caller: &&u32| {
        let part = |side: usize| {
            callers[side].get(*caller).is_some_and(|part| *part > MIN_PART_OF_REWRITTEN_PACKAGE * cost[side])
        };
        part(0) && part(1)
    };
    let below = callers[0].keys().find(is_main).copied();
    let front = rows.front();
    let package_on = |side: usize| {
        let is_main = |module: &ModuleCost<'_>| module.cost > MIN_PART_OF_REWRITTEN_PACKAGE * cost[side];
        let modules = modules[side].iter().filter(|(_, cost)| is_main(cost));
        let (path, main) = modules.max_by(|a, b| a.1.frames.total_cmp(&b.1.frames))?;
        (cost[side] > MIN_REWRITTEN_PART * front[side]).then(|| (main.common_path(), main.cost, path))
    };
    let [(from, base, old_module), (to, new, new_module)] = [package_on(0)?, package_on(1)?];
    let (packages, cost) = ([from, to], [base, new]);
    // Rarely sampled functions may be missing by chance.
    let min_cost = MIN_EVENTS_OF_REWRITTEN_FUNCTION * rows.event();
    let frames_of_side =
        |side: usize| (0..).zip(&alone).filter(move |(_, only)| **only == Some(side)).map(|(frame, _)| frame);
    let sampled = |side: usize| frames_of_side(side).filter(move |&frame| costs.cost(frame, side) > min_cost);
    let is_large = (0..2).all(|side| sampled(side).count() >= MIN_REWRITTEN_FUNCTIONS);
    let functions = [(0, old_module), (1, new_module)]
        .map(|(side, path)| sampled(side).filter(|&frame| module(&texts[frame as usize]) == *path).count());
    is_large.then_some((Rewritten { packages, below, cost, functions }, kept))
}
