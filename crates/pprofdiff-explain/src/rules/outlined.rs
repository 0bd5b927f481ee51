//! Functions that a compiler split off from their callers. The callers' own cost decreased by the same amount.

use std::collections::BTreeMap;

use super::inlined::InlinedCall;
use super::{Find, Rule};
use crate::evidence::costs::FrameCosts;
use crate::evidence::rows::StackRows;
use crate::thresholds::{
    MAX_DEVIATIONS_OF_EQUAL_COST, MIN_DECREASE_OF_CALLERS, MIN_EVENTS_OF_OUTLINED, MIN_OWN_PART_OF_OUTLINED,
    MIN_PART_OF_MAIN_CALLER, MIN_PART_OF_MAIN_CALLERS, MIN_PART_OF_OUTLINED, VARIANCE_OF_EQUAL_COST,
};
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::random::HashMap;

pub(super) const RULE: Rule = Rule {
    name: "outlined",
    needs: "a function that one side lacks and that calls little, whose callers' own cost is higher by the same amount there",
    says: "its cost is now in its caller's own cost, or the reverse, with the sum of both",
    find: Find::Fold(|names| outlined(&names.rows, &names.costs)),
};

/// Finds functions without significant callees that only one side has, and whose cost equals a decrease of their
/// callers' own cost: a part of the callers may have become a function.
fn outlined(rows: &StackRows, costs: &FrameCosts) -> Vec<InlinedCall> {
    let (total, event) = (rows.total(), rows.event());
    let mut own_costs = vec![[0.0; 2]; rows.names.len()];
    let leaves = || rows.rows.iter().enumerate().filter_map(|(i, row)| Some((row, rows.stack(i).split_last()?)));
    for (row, (&leaf, _)) in leaves() {
        let own_cost = &mut own_costs[leaf as usize];
        (own_cost[0], own_cost[1]) = (own_cost[0] + row.values[0], own_cost[1] + row.values[1]);
    }
    // By side: the functions that only this side has and that call little, with their cost in total and below each
    // caller.
    let sides = [0, 1].map(|side| {
        let is_large = |(cost, frame): &(f64, u32)| {
            *cost > (MIN_PART_OF_OUTLINED * total[side]).max(MIN_EVENTS_OF_OUTLINED * event)
                && own_costs[*frame as usize][side] > MIN_OWN_PART_OF_OUTLINED * cost
                && !rows.is_system(*frame)
        };
        let only: HashMap<u32, f64> = costs.only(side).filter(is_large).map(|(cost, frame)| (frame, cost)).collect();
        let mut callers: BTreeMap<u32, BTreeMap<u32, f64>> = BTreeMap::new();
        for (row, (leaf, above)) in leaves().filter(|(_, (leaf, _))| only.contains_key(leaf)) {
            if let Some(&caller) = above.last() {
                *callers.entry(*leaf).or_default().entry(caller).or_default() += row.values[side];
            }
        }
        (only, callers)
    });
    let mut outlined: Vec<InlinedCall> = Vec::new();
    for side in [0, 1] {
        let (only, callers) = &sides[side];
        // If the caller also calls a new function on the opposite side, that may be the same function with another
        // name.
        let has_other = |caller: u32| sides[1 - side].1.values().any(|callers| callers.contains_key(&caller));
        let share = |frame: u32, side: usize| own_costs[frame as usize][side] / total[side];
        let lost_by = |caller: u32| share(caller, 1 - side) - share(caller, side);
        let own_per_run = |frame: u32, side: usize| own_costs[frame as usize][side] / rows.runs[side] as f64;
        let lost_per_run = |caller: u32| own_per_run(caller, 1 - side) - own_per_run(caller, side);
        for (&frame, callers) in callers {
            let main_caller = callers.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
            let Some((&caller, _)) = main_caller else { continue };
            let cost = only[&frame];
            let main_callers = || {
                callers.iter().filter(|(_, part)| **part > MIN_PART_OF_MAIN_CALLER * cost).map(|(caller, _)| *caller)
            };
            let explained: f64 = main_callers().map(|caller| callers[&caller]).sum();
            if explained < MIN_PART_OF_MAIN_CALLERS * cost
                || main_callers()
                    .any(|caller| only.contains_key(&caller) || has_other(caller) || lost_by(caller) <= 0.0)
            {
                continue;
            }
            let (share_here, lost): (f64, f64) = (share(frame, side), main_callers().map(lost_by).sum());
            let callers_share: f64 = main_callers().map(|caller| share(caller, 1 - side)).sum();
            let event_share = |side: usize| event / total[side];
            let deviation =
                (event_share(side) / share_here + event_share(1 - side) / callers_share + VARIANCE_OF_EQUAL_COST)
                    .sqrt();
            // A larger total reduces the callers' share although their cost is unchanged, so the cost per run must
            // decrease, too.
            let lost_enough =
                main_callers().map(lost_per_run).sum::<f64>() > MIN_DECREASE_OF_CALLERS * own_per_run(frame, side);
            if lost_enough && (lost / share_here).ln().abs() < MAX_DEVIATIONS_OF_EQUAL_COST * deviation {
                outlined.push(InlinedCall {
                    side,
                    frame,
                    caller,
                    callee: None,
                    value: cost,
                    own_costs: None,
                    is_first: true,
                    is_balanced: true,
                });
            }
        }
    }
    // Several functions may have been parts of one caller, and these call others, so the sum includes all of them.
    for call in &mut outlined {
        call.own_costs = Some(cost_of_parts(rows, costs, call.caller, call.side));
    }
    outlined
}

/// Returns the own cost of a function by side, with the cost of functions below it that only `side` has, up to the calls
/// of functions that both sides have.
fn cost_of_parts(rows: &StackRows, costs: &FrameCosts, function: u32, side: usize) -> [f64; 2] {
    let mut sum = [0.0; 2];
    for (i, row) in checkpointed(rows.rows.iter().enumerate()) {
        let stack = rows.stack(i);
        let Some(place) = stack.iter().rposition(|frame| *frame == function) else { continue };
        if stack[place + 1..].iter().all(|frame| costs.cost(*frame, 1 - side) <= 0.0) {
            sum = [sum[0] + row.values[0], sum[1] + row.values[1]];
        }
    }
    sum
}
