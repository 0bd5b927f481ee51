//! A library that was rewritten: much of both sides is in functions that the other side has not, and few packages have
//! them. Then the sum of these is said first, and causes are sought among what both sides have, above it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::parts::package_of;
use super::{Find, Rule};
use crate::explain::evidence::costs::Costs;
use crate::explain::evidence::rows::Rows;
use pprofdiff_profile::work::paced;

pub(super) const RULE: Rule = Rule {
    name: "rewritten",
    needs: "much of both sides in functions that the other has not, most of them of one package",
    says: "one package is now another, with what both cost; causes are sought above it, and the amount of work is unknown",
    find: Find::Cut(|names| rewritten(&names.rows, &names.costs)),
};

/// The least part of either side that is in functions which the other has not.
const REWRITTEN: f64 = 0.3;
/// The part of this that one package has.
const OF_PACKAGE: f64 = 0.6;

/// The fewest functions that one side has alone, with so many events each.
const MIN_FUNCTIONS: usize = 5;
const MIN_EVENTS: f64 = 5.0;

/// What was rewritten.
pub(in crate::explain) struct Rewritten {
    /// The package that has most of what went, and of what came.
    pub packages: [String; 2],
    /// The function that calls most of it on both sides.
    pub below: Option<u32>,
    /// What it costs on both sides, in stacks below what both have.
    pub cost: [f64; 2],
    /// How many functions went, and came, of those that were seen often enough to be missed.
    pub functions: [usize; 2],
}

/// If a library was rewritten: how, with the number of frames that each stack begins with which both sides have.
fn rewritten(rows: &Rows, costs: &Costs) -> Option<(Rewritten, Vec<usize>)> {
    // By frame: the side that has it alone.
    let mut alone: Vec<Option<usize>> = vec![None; rows.names.len()];
    for side in 0..2 {
        let frames = costs.only(side).map(|(_, frame)| frame).filter(|&frame| !rows.is_system(frame));
        frames.for_each(|frame| alone[frame as usize] = Some(side));
    }
    let mut packages: [BTreeMap<Cow<'_, str>, f64>; 2] = Default::default();
    let mut cost = [0.0; 2];
    let mut callers: [BTreeMap<u32, f64>; 2] = Default::default();
    let mut kept = Vec::with_capacity(rows.rows.len());
    for (i, row) in paced(rows.rows.iter().enumerate()) {
        let stack = rows.stack(i);
        // What answers to causes elsewhere is told by its frames.
        let found = stack.iter().map(|&frame| alone[frame as usize]).position(|side| side.is_some() && !row.background);
        kept.push(found.unwrap_or(stack.len()));
        let Some((at, side)) = found.and_then(|at| Some((at, alone[stack[at] as usize]?))) else { continue };
        *packages[side].entry(package_of(&rows.names[stack[at] as usize].text)).or_default() += row.values[side];
        cost[side] += row.values[side];
        if let Some(above) = at.checked_sub(1) {
            *callers[side].entry(stack[above]).or_default() += row.values[side];
        }
    }
    let is_main = |caller: &&u32| {
        let part = |side: usize| callers[side].get(*caller).is_some_and(|part| *part > OF_PACKAGE * cost[side]);
        part(0) && part(1)
    };
    let below = callers[0].keys().find(is_main).copied();
    let front = rows.front();
    let most = |side: usize| packages[side].iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
    let of = |side: usize| {
        let (package, part) = most(side)?;
        let is_much = cost[side] > REWRITTEN * front[side] && *part > OF_PACKAGE * cost[side];
        is_much.then(|| package.to_string())
    };
    let packages = [of(0)?, of(1)?];
    // Functions that were hardly seen may be missing by chance.
    let least = MIN_EVENTS * rows.event();
    let of_side = |side: usize| (0..).zip(&alone).filter(move |(_, only)| **only == Some(side)).map(|(frame, _)| frame);
    let functions = [0, 1].map(|side| of_side(side).filter(|&frame| costs.of(frame, side) > least).count());
    functions
        .iter()
        .all(|&count| count >= MIN_FUNCTIONS)
        .then_some((Rewritten { packages, below, cost, functions }, kept))
}
