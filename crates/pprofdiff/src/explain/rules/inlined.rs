//! Functions that are part of their callers on the other side: inlined or outlined between the builds, found by their
//! neighbours and the costs of these.

use std::collections::BTreeMap;

use crate::diff::State;
use crate::explain::costs::Costs;
use crate::explain::rows::Rows;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::work::paced;

/// The least part of a function's cost that one of its callers must have to be looked at.
const PART_OF_CALLER: f64 = 0.1;

/// A function that is part of its caller on the other side.
#[derive(Debug, Clone, Copy)]
pub(in crate::explain) struct Inlined {
    /// The side that has it.
    pub side: usize,
    pub frame: u32,
    pub caller: u32,
    pub value: f64,
    /// The caller's own cost differs by as much the other way: more than names and neighbours say so.
    pub is_balanced: bool,
}

/// Functions that one side has and that call little: their callers have as much less of their own as they have, as when a
/// part of these was made a function. [`inlined`] finds those that call others.
pub(in crate::explain) fn split_off(rows: &Rows, costs: &Costs) -> Vec<Inlined> {
    let (total, event) = (rows.total(), rows.event());
    let mut own = vec![[0.0; 2]; rows.names.len()];
    let leaves = || rows.rows.iter().enumerate().filter_map(|(i, row)| Some((row, rows.stack(i).split_last()?)));
    for (row, (&leaf, _)) in leaves() {
        let own = &mut own[leaf as usize];
        (own[0], own[1]) = (own[0] + row.v[0], own[1] + row.v[1]);
    }
    let mut found = Vec::new();
    for side in [0, 1] {
        let is_large = |(cost, frame): &(f64, u32)| {
            *cost > (0.003 * total[side]).max(12.0 * event)
                && own[*frame as usize][side] > 0.6 * cost
                && !rows.is_system(*frame)
        };
        let only: HashMap<u32, f64> = costs.only(side).filter(is_large).map(|(cost, frame)| (frame, cost)).collect();
        let mut callers: BTreeMap<u32, BTreeMap<u32, f64>> = BTreeMap::new();
        for (row, (leaf, above)) in leaves().filter(|(_, (leaf, _))| only.contains_key(leaf)) {
            if let Some(&caller) = above.last() {
                *callers.entry(*leaf).or_default().entry(caller).or_default() += row.v[side];
            }
        }
        let share = |frame: u32, side: usize| own[frame as usize][side] / total[side];
        let lost_by = |caller: u32| share(caller, 1 - side) - share(caller, side);
        for (frame, callers) in callers {
            let most = callers.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
            let Some((&caller, _)) = most else { continue };
            let cost = only[&frame];
            let large = || callers.iter().filter(|(_, part)| **part > PART_OF_CALLER * cost).map(|(caller, _)| *caller);
            let known: f64 = large().map(|caller| callers[&caller]).sum();
            if known < 0.6 * cost || large().any(|caller| only.contains_key(&caller) || lost_by(caller) <= 0.0) {
                continue;
            }
            let (here, lost): (f64, f64) = (share(frame, side), large().map(lost_by).sum());
            let there: f64 = large().map(|caller| share(caller, 1 - side)).sum();
            let one = |side: usize| event / total[side];
            let deviation = (one(side) / here + one(1 - side) / there + 0.02).sqrt();
            if (lost / here).ln().abs() < 3.0 * deviation {
                found.push(Inlined { side, frame, caller, value: cost, is_balanced: true });
            }
        }
    }
    found
}

/// Frames that one side lacks while what they call hangs directly under their callers there.
pub(in crate::explain) fn inlined(rows: &Rows, costs: &Costs) -> Vec<Inlined> {
    let event = rows.event();
    // By side and frame: which caller and callee are around it, with the value of that.
    let mut around: BTreeMap<(usize, u32), BTreeMap<(u32, u32), f64>> = BTreeMap::new();
    for side in [0, 1] {
        let mut is_only = vec![false; rows.names.len()];
        let large = costs.only(side).filter(|(v, _)| *v > 5.0 * event);
        large.for_each(|(_, frame)| is_only[frame as usize] = true);
        if !is_only.contains(&true) {
            continue;
        }
        for (i, row) in paced(rows.rows.iter().enumerate()).filter(|(_, row)| row.v[side] > 0.0) {
            for w in rows.stack(i).windows(3) {
                let [above, frame, below] = [w[0], w[1], w[2]].map(|f| is_only[f as usize]);
                if frame && !above && !below {
                    *around.entry((side, w[1])).or_default().entry((w[0], w[2])).or_default() += row.v[side];
                }
            }
        }
    }
    let mut direct: HashMap<(u32, u32), [f64; 2], State> =
        around.values().flat_map(|pairs| pairs.keys().map(|&pair| (pair, [0.0; 2]))).collect();
    if direct.is_empty() {
        return Vec::new();
    }
    let mut is_caller = vec![false; rows.names.len()];
    direct.keys().for_each(|pair| is_caller[pair.0 as usize] = true);
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    for (i, row) in paced(rows.rows.iter().enumerate()) {
        pairs.clear();
        let calls = rows.stack(i).windows(2).filter(|w| is_caller[w[0] as usize]).map(|w| (w[0], w[1]));
        pairs.extend(calls.filter(|pair| direct.contains_key(pair)));
        pairs.sort_unstable();
        pairs.dedup();
        for pair in &pairs {
            if let Some(v) = direct.get_mut(pair) {
                (v[0], v[1]) = (v[0] + row.v[0], v[1] + row.v[1]);
            }
        }
    }
    let mut found = Vec::new();
    for ((side, frame), pairs) in around {
        let below: f64 = pairs.values().sum();
        let more = |pair| direct.get(pair).map_or(0.0, |v| (v[1 - side] - v[side]).max(0.0));
        let direct: f64 = pairs.iter().map(|(pair, v)| v.min(more(pair))).sum();
        let value = costs.of(frame, side);
        let most = pairs.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
        if let Some((&(caller, _), _)) = most
            && below > 0.6 * value
            && direct > 0.5 * below
        {
            found.push(Inlined { side, frame, caller, value, is_balanced: false });
        }
    }
    found
}
