//! Functions that were renamed, inlined or outlined between the builds, found by their neighbours. Names that compilers
//! number are made equal before (`diff::matching`).

use std::collections::BTreeMap;

use super::rows::Rows;
use crate::diff::State;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::work::{self, paced};

/// The most frames of one side that are tried as another's new name, the costliest first.
const MOST_RENAMED: usize = 200;

/// The most callers and callees that a frame is compared by.
const MOST_NEIGHBOURS: usize = 200;

/// What each frame costs with all below it, on both sides.
pub(super) struct Costs(Vec<[f64; 2]>);

impl Costs {
    pub(super) fn new(rows: &Rows) -> Costs {
        let mut costs = vec![[0.0; 2]; rows.names.len()];
        let mut seen = vec![u32::MAX; rows.names.len()];
        for (i, row) in paced(rows.rows.iter().enumerate()) {
            for &frame in rows.stack(i) {
                let frame = frame as usize;
                if seen[frame] != i as u32 {
                    seen[frame] = i as u32;
                    costs[frame][0] += row.v[0];
                    costs[frame][1] += row.v[1];
                }
            }
        }
        Costs(costs)
    }

    fn of(&self, frame: u32, side: usize) -> f64 {
        self.0[frame as usize][side]
    }

    /// The frames that only one side has.
    fn only(&self, side: usize) -> impl Iterator<Item = (f64, u32)> {
        let here = self.0.iter().zip(0..).filter(move |(v, _)| v[side] > 0.0 && v[1 - side] <= 0.0);
        here.map(move |(v, frame)| (v[side], frame))
    }
}

/// A function that has another name on the new side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Renamed {
    pub old: u32,
    pub new: u32,
    /// What it costs under the new name, with all below it.
    pub cost: f64,
}

/// Frames that only one side has, of the same cost among the same callers and callees: a neighbour that is itself
/// one-sided counts as unknown. The best match first, one to one.
pub(super) fn renamed(rows: &Rows, costs: &Costs) -> Vec<Renamed> {
    let (total, event) = (rows.total(), rows.event());
    let only = |side: usize| {
        let is_large = |v: f64| v > (0.003 * total[side]).max(5.0 * event);
        let mut only: Vec<(f64, u32)> =
            costs.only(side).filter(|&(v, frame)| is_large(v) && !rows.is_system(frame)).collect();
        only.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        only.truncate(MOST_RENAMED);
        only.into_iter().map(|(_, f)| f).collect::<Vec<u32>>()
    };
    let only = [only(0), only(1)];
    if only.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    // For each frame the shares of its callers (true) and callees; u32::MAX is an unknown one.
    type Neighbours = BTreeMap<(bool, u32), f64>;
    let near: [HashMap<u32, Neighbours>; 2] = [0, 1].map(|side| {
        let mut near: HashMap<u32, Neighbours> = only[side].iter().map(|&f| (f, Neighbours::new())).collect();
        for (i, row) in paced(rows.rows.iter().enumerate()).filter(|(_, row)| row.v[side] > 0.0) {
            let stack = rows.stack(i);
            for (j, frame) in stack.iter().enumerate() {
                let Some(neighbours) = near.get_mut(frame) else { continue };
                let name = |at: Option<&u32>| match at {
                    Some(f) if only[side].contains(f) => u32::MAX,
                    Some(f) => *f,
                    None => u32::MAX - 1,
                };
                let caller = name(j.checked_sub(1).and_then(|j| stack.get(j)));
                let share = row.v[side] / costs.of(*frame, side);
                *neighbours.entry((true, caller)).or_default() += share;
                *neighbours.entry((false, name(stack.get(j + 1)))).or_default() += share;
            }
        }
        // Those that make up most of it are enough, whatever a profile has.
        for neighbours in near.values_mut().filter(|n| n.len() > MOST_NEIGHBOURS) {
            let mut all: Vec<_> = std::mem::take(neighbours).into_iter().collect();
            all.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            neighbours.extend(all.into_iter().take(MOST_NEIGHBOURS));
        }
        near
    });
    let mut pairs = Vec::new();
    for &old in &only[0] {
        work::poll();
        for &new in &only[1] {
            let (a, b) = (&near[0][&old], &near[1][&new]);
            let common = |callers: bool| -> f64 {
                let both = a.iter().filter(|((caller, _), _)| *caller == callers);
                both.filter_map(|(key, share)| Some(share.min(*b.get(key)?))).sum()
            };
            let (up, down) = (common(true), common(false));
            let overlap = (up + down) / 2.0;
            let (va, vb) = (costs.of(old, 0), costs.of(new, 1));
            let ratio = (vb / total[1] / (va / total[0])).ln().abs();
            let deviation = (event / va + event / vb + 0.02).sqrt();
            if overlap > 0.6 && up > 0.5 && ratio < 3.0 * deviation && va + vb > 24.0 * event {
                pairs.push((overlap - ratio / deviation / 10.0, Renamed { old, new, cost: vb }));
            }
        }
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1.old, a.1.new).cmp(&(b.1.old, b.1.new))));
    let mut found: Vec<Renamed> = Vec::new();
    for (_, pair) in pairs {
        if found.iter().all(|known| known.old != pair.old && known.new != pair.new) {
            found.push(pair);
        }
    }
    found
}

/// A function that is part of its caller on the other side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inlined {
    /// The side that has it.
    pub side: usize,
    pub frame: u32,
    pub caller: u32,
    pub value: f64,
    /// The caller's own cost differs by as much the other way: more than names and neighbours say so.
    pub is_balanced: bool,
}

/// Functions that one side has and that call little: their caller has as much less of its own as they have, as when a
/// part of it was made a function. [`inlined`] finds those that call others.
pub(super) fn split_off(rows: &Rows, costs: &Costs) -> Vec<Inlined> {
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
        for (frame, callers) in callers {
            let most = callers.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
            let Some((&caller, &part)) = most.filter(|(caller, _)| !only.contains_key(caller)) else { continue };
            let share = |frame: u32, side: usize| own[frame as usize][side] / total[side];
            let (here, lost) = (share(frame, side), share(caller, 1 - side) - share(caller, side));
            if part < 0.6 * only[&frame] || lost <= 0.0 {
                continue;
            }
            let one = |side: usize| event / total[side];
            let deviation = (one(side) / here + one(1 - side) / share(caller, 1 - side) + 0.02).sqrt();
            if (lost / here).ln().abs() < 3.0 * deviation {
                found.push(Inlined { side, frame, caller, value: only[&frame], is_balanced: true });
            }
        }
    }
    found
}

/// Frames that one side lacks while what they call hangs directly under their callers there.
pub(super) fn inlined(rows: &Rows, costs: &Costs) -> Vec<Inlined> {
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
