//! Functions that were made of a part of their callers: these have as much less of their own.

use std::collections::BTreeMap;

use super::inlined::Inlined;
use super::{Find, Rule};
use crate::explain::evidence::costs::Costs;
use crate::explain::evidence::rows::Rows;
use pprofdiff_profile::random::HashMap;

pub(super) const RULE: Rule = Rule {
    name: "outlined",
    needs: "a function that one side lacks and that calls little, whose callers have as much more of their own there",
    says: "its cost is now its caller's, or the other way",
    find: Find::Fold(|names| outlined(&names.rows, &names.costs)),
};

/// The least part of a function's cost that one of its callers must have to be looked at.
const PART_OF_CALLER: f64 = 0.1;

/// The least part of a function's cost that its callers have more of a run on the other side, whatever parts of their sides are.
const PART_OF_RUN: f64 = 0.5;

/// Functions that one side has and that call little: their callers have as much less of their own as they have, as when a
/// part of these was made a function.
fn outlined(rows: &Rows, costs: &Costs) -> Vec<Inlined> {
    let (total, event) = (rows.total(), rows.event());
    let mut own = vec![[0.0; 2]; rows.names.len()];
    let leaves = || rows.rows.iter().enumerate().filter_map(|(i, row)| Some((row, rows.stack(i).split_last()?)));
    for (row, (&leaf, _)) in leaves() {
        let own = &mut own[leaf as usize];
        (own[0], own[1]) = (own[0] + row.values[0], own[1] + row.values[1]);
    }
    // By side: the functions that it has alone and that call little, with what they cost in all and below each caller.
    let sides = [0, 1].map(|side| {
        let is_large = |(cost, frame): &(f64, u32)| {
            *cost > (0.003 * total[side]).max(12.0 * event)
                && own[*frame as usize][side] > 0.6 * cost
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
    let mut found = Vec::new();
    for side in [0, 1] {
        let (only, callers) = &sides[side];
        // Where the caller calls another function there, this one may be that under another name.
        let has_other = |caller: u32| sides[1 - side].1.values().any(|callers| callers.contains_key(&caller));
        let share = |frame: u32, side: usize| own[frame as usize][side] / total[side];
        let lost_by = |caller: u32| share(caller, 1 - side) - share(caller, side);
        let of_run = |frame: u32, side: usize| own[frame as usize][side] / rows.runs[side] as f64;
        let lost_of_run = |caller: u32| of_run(caller, 1 - side) - of_run(caller, side);
        for (&frame, callers) in callers {
            let most = callers.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
            let Some((&caller, _)) = most else { continue };
            let cost = only[&frame];
            let large = || callers.iter().filter(|(_, part)| **part > PART_OF_CALLER * cost).map(|(caller, _)| *caller);
            let known: f64 = large().map(|caller| callers[&caller]).sum();
            if known < 0.6 * cost
                || large().any(|caller| only.contains_key(&caller) || has_other(caller) || lost_by(caller) <= 0.0)
            {
                continue;
            }
            let (here, lost): (f64, f64) = (share(frame, side), large().map(lost_by).sum());
            let there: f64 = large().map(|caller| share(caller, 1 - side)).sum();
            let one = |side: usize| event / total[side];
            let deviation = (one(side) / here + one(1 - side) / there + 0.02).sqrt();
            // A larger total makes the caller's part smaller though it does the same.
            let is_of_run = large().map(lost_of_run).sum::<f64>() > PART_OF_RUN * of_run(frame, side);
            if is_of_run && (lost / here).ln().abs() < 3.0 * deviation {
                found.push(Inlined { side, frame, caller, value: cost, is_balanced: true });
            }
        }
    }
    found
}
