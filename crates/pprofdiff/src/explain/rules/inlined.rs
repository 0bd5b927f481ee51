//! Functions that are part of their callers on the other side, found by their neighbours: what they call hangs directly under
//! their callers there.

use std::collections::BTreeMap;

use super::{Find, Rule};
use crate::diff::State;
use crate::explain::evidence::costs::Costs;
use crate::explain::evidence::rows::Rows;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::work::paced;

pub(super) const RULE: Rule = Rule {
    name: "inlined",
    needs: "a function that one side lacks, whose callees hang under its callers there",
    says: "its cost is now its caller's, or the other way",
    find: Find::Fold(|names| inlined(&names.rows, &names.costs)),
};

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

/// Frames that one side lacks while what they call hangs directly under their callers there.
fn inlined(rows: &Rows, costs: &Costs) -> Vec<Inlined> {
    let event = rows.event();
    // By side and frame: which caller and callee are around it, with the value of that.
    let mut around: BTreeMap<(usize, u32), BTreeMap<(u32, u32), f64>> = BTreeMap::new();
    // By frame: a bit for the side that has it alone.
    let mut only_on = vec![0u8; rows.names.len()];
    for side in [0, 1] {
        let large = costs.only(side).filter(|(v, _)| *v > 5.0 * event);
        large.for_each(|(_, frame)| only_on[frame as usize] = 1 << side);
    }
    let has_any = only_on.iter().any(|sides| *sides != 0);
    for (i, row) in paced(rows.rows.iter().enumerate()).filter(|_| has_any) {
        let sides = u8::from(row.values[0] > 0.0) | u8::from(row.values[1] > 0.0) << 1;
        let only = |frame: u32| only_on[frame as usize];
        let stack = rows.stack(i);
        // Few frames are on one side alone, so their neighbours are looked at last.
        for at in (1..stack.len().saturating_sub(1)).filter(|&at| sides & only(stack[at]) != 0) {
            let w = &stack[at - 1..=at + 1];
            let found = sides & only(w[1]) & !only(w[0]) & !only(w[2]);
            if found != 0 {
                let side = found.trailing_zeros() as usize;
                *around.entry((side, w[1])).or_default().entry((w[0], w[2])).or_default() += row.values[side];
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
                (v[0], v[1]) = (v[0] + row.values[0], v[1] + row.values[1]);
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
