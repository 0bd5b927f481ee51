//! Evidence that cost moved between two functions: there is a call between them, their names are alike, or both call
//! the same functions. A common caller and opposite changes do not count, because any two siblings may have them.

use std::collections::BTreeMap;

use super::evidence::rows::{Row, StackRows};
use super::rules::parts::{Parts, module};
use super::thresholds::{MIN_OVERLAP_OF_SAME_CALLEES, MIN_PART_OF_STACKS_WITH_CALL};
use pprofdiff_profile::cancellation::checkpointed;

/// The relation of a function that gained cost to a function that lost a similar amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CostRelation {
    /// There is a call between the functions: code moved between them.
    Call,
    /// One function is above the other in most stacks of one of them, without a direct call: it calls the other
    /// indirectly.
    Above,
    /// Their names are alike, or they have similar callees.
    Likeness,
    /// A function appeared and its counterpart disappeared, without evidence that they are the same.
    Replacement,
    /// At most a common caller.
    Nothing,
}

/// A function and the stacks with its change of cost.
#[derive(Clone, Copy)]
pub(super) struct Changed<'a> {
    pub function: u32,
    pub rows: &'a [u32],
}

impl CostRelation {
    pub(super) fn between(rows: &StackRows, gained: Changed<'_>, lost: Changed<'_>) -> CostRelation {
        let calls = |func: Changed<'_>, caller: u32, callee: u32| {
            have_most(rows, func.rows, |stack| is_call(rows, stack, caller, callee))
        };
        let wraps =
            |func: Changed<'_>, top: u32, lower: u32| have_most(rows, func.rows, |stack| is_above(stack, top, lower));
        match (gained.function, lost.function) {
            (a, b) if calls(gained, b, a) || calls(lost, a, b) => CostRelation::Call,
            (a, b) if [gained, lost].iter().any(|func| wraps(*func, a, b) || wraps(*func, b, a)) => CostRelation::Above,
            (a, b) => CostRelation::without_call(rows, a, b),
        }
    }

    /// Returns the relation of two functions that do not call each other.
    fn without_call(rows: &StackRows, gained: u32, lost: u32) -> CostRelation {
        if are_alike(rows, gained, lost) {
            return CostRelation::Likeness;
        }
        // Few stacks contain one of the functions. One search for both finds them faster than a search of each stack.
        let has_either = rows.stacks.with_either(gained, lost);
        let with_either = || checkpointed(&rows.rows).filter(|row| has_either[row.stack as usize]);
        match () {
            () if have_the_same_callees(rows, with_either(), gained, lost) => CostRelation::Likeness,
            () if !with_either().any(|row| is_elsewhere(rows, row, gained, lost)) => CostRelation::Replacement,
            () => CostRelation::Nothing,
        }
    }
}

/// Returns true if only the new side has `gained`, and only the base has `lost`.
pub(super) fn is_replaced(rows: &StackRows, gained: u32, lost: u32) -> bool {
    !checkpointed(&rows.rows).any(|row| is_elsewhere(rows, row, gained, lost))
}

/// Returns true if a row has `gained` on the base, or `lost` on the new side.
fn is_elsewhere(rows: &StackRows, row: &Row, gained: u32, lost: u32) -> bool {
    let has = |frame: u32| rows.stacks.get(row.stack).contains(&frame);
    row.values[0] > 0.0 && has(gained) || row.values[1] > 0.0 && has(lost)
}

/// Returns true if stacks with most of the cost of these rows satisfy `has`.
fn have_most(rows: &StackRows, subset: &[u32], has: impl Fn(&[u32]) -> bool) -> bool {
    let cost = |row: u32| rows.rows[row as usize].values.iter().sum::<f64>();
    let all: f64 = subset.iter().map(|&row| cost(row)).sum();
    let have: f64 =
        checkpointed(subset.iter()).filter(|row| has(rows.stack(**row as usize))).map(|&row| cost(row)).sum();
    have > MIN_PART_OF_STACKS_WITH_CALL * all
}

/// Returns true if a stack contains a call of `callee` by `caller`. System frames between them are skipped.
fn is_call(rows: &StackRows, stack: &[u32], caller: u32, callee: u32) -> bool {
    let mut before = None;
    stack.iter().any(|&frame| {
        let is_call = before == Some(caller) && frame == callee;
        before = if rows.is_system(frame) && frame != caller { before } else { Some(frame) };
        is_call
    })
}

/// Returns true if one function is above another in a stack.
fn is_above(stack: &[u32], upper: u32, lower: u32) -> bool {
    let upper = stack.iter().position(|&frame| frame == upper);
    upper.is_some_and(|upper| stack[upper + 1..].contains(&lower))
}

/// Returns true if two functions of one module have similar names, beyond implementing a method of the same interface.
/// Other libraries have functions of the same name (`decode`, `write`).
fn are_alike(rows: &StackRows, a: u32, b: u32) -> bool {
    let [a, b] = [a, b].map(|frame| Parts::parse(&rows.names[frame as usize].text));
    module(&a.package) == module(&b.package) && a.is_alike(&b) && !a.may_implement(&b, rows.runtime.name == "go")
}

/// Returns true if two functions call the same functions of the program, with similar shares of cost. `with_either` has
/// the rows that contain one of the functions.
fn have_the_same_callees<'r>(rows: &StackRows, with_either: impl Iterator<Item = &'r Row>, a: u32, b: u32) -> bool {
    let mut callees: BTreeMap<u32, [f64; 2]> = BTreeMap::new();
    for row in with_either {
        for call in rows.stacks.get(row.stack).windows(2) {
            let index = [a, b].iter().position(|&frame| frame == call[0]);
            if let Some(index) = index.filter(|_| rows.names[call[1] as usize].class.program) {
                callees.entry(call[1]).or_default()[index] += row.values[0] + row.values[1];
            }
        }
    }
    let sums = [0, 1].map(|index| callees.values().map(|v| v[index]).sum::<f64>());
    let shares = callees.values().map(|v| (v[0] / sums[0]).min(v[1] / sums[1]));
    sums.iter().all(|sum| *sum > 0.0) && shares.sum::<f64>() > MIN_OVERLAP_OF_SAME_CALLEES
}
