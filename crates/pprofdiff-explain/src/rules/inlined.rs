//! Functions that are inlined into their callers on one side. Neighbours identify them: on that side, their callees
//! appear directly below their callers.

use std::collections::BTreeMap;

use super::{Find, Rule};
use crate::evidence::costs::FrameCosts;
use crate::evidence::rows::StackRows;
use crate::thresholds::{MIN_PART_BELOW_CALLERS, MIN_PART_BETWEEN_NEIGHBOURS};
use crate::wrapped::{for_each_chain, one_sided_frames, sides_of};
use pprofdiff::shared::State;
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::random::HashMap;

pub(super) const RULE: Rule = Rule {
    name: "inlined",
    needs: "a function that one side lacks, whose callees are called by its callers there",
    says: "\"A now calls B through W\", or the reverse",
    find: Find::Fold(|names| inlined(&names.rows, &names.costs)),
};

/// A function that is inlined into its caller on the opposite side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InlinedCall {
    /// The side with the function; the opposite side inlines it.
    pub side: usize,
    pub frame: u32,
    pub caller: u32,
    /// The function that `caller` calls directly on the opposite side. `None` if the function's own cost is part of its
    /// callers' own cost there.
    pub callee: Option<u32>,
    pub value: f64,
    /// The own cost of the function and of its callers together, by side, in all runs of the side. `None` with a callee.
    pub own_costs: Option<[f64; 2]>,
    /// True if the function is directly below the caller, and false if another function of its side is in between.
    pub is_first: bool,
    /// True if the caller's own cost also differs by the same amount in the opposite direction. This is stronger
    /// evidence than names and neighbours.
    pub is_balanced: bool,
}

/// Finds frames that one side lacks, while their callees appear directly below their callers on that side.
fn inlined(rows: &StackRows, costs: &FrameCosts) -> Vec<InlinedCall> {
    // By side and frame: the value of each pair of caller and callee around the frame.
    let mut around: BTreeMap<(usize, u32), BTreeMap<(u32, u32), f64>> = BTreeMap::new();
    let only_on = one_sided_frames(rows, costs);
    let mut is_first = vec![false; rows.names.len()];
    // The frames and routes of the current stack.
    let mut counted: Vec<(u32, (u32, u32))> = Vec::new();
    let has_any = only_on.iter().any(|sides| *sides != 0);
    for (i, row) in checkpointed(rows.rows.iter().enumerate()).filter(|_| has_any) {
        let stack = rows.stack(i);
        counted.clear();
        for_each_chain(stack, sides_of(row.values), &only_on, |side, chain| {
            is_first[stack[chain.start] as usize] = true;
            if let Some(&callee) = stack.get(chain.end) {
                let mut frames = stack[chain.clone()].to_vec();
                frames.sort_unstable();
                frames.dedup();
                let pair = (stack[chain.start - 1], callee);
                // A recursive route counts once per stack.
                frames.retain(|frame| !counted.contains(&(*frame, pair)));
                counted.extend(frames.iter().map(|frame| (*frame, pair)));
                for frame in frames {
                    let pairs = around.entry((side, frame)).or_default();
                    *pairs.entry(pair).or_default() += row.values[side];
                }
            }
        });
    }
    let mut direct: HashMap<(u32, u32), [f64; 2], State> =
        around.values().flat_map(|pairs| pairs.keys().map(|&pair| (pair, [0.0; 2]))).collect();
    if direct.is_empty() {
        return Vec::new();
    }
    let mut is_caller = vec![false; rows.names.len()];
    direct.keys().for_each(|pair| is_caller[pair.0 as usize] = true);
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    for (i, row) in checkpointed(rows.rows.iter().enumerate()) {
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
    let mut inlined = Vec::new();
    for ((side, frame), pairs) in around {
        let below: f64 = pairs.values().sum();
        let gain = |pair| direct.get(pair).map_or(0.0, |v| (v[1 - side] - v[side]).max(0.0));
        let moved: f64 = pairs.iter().map(|(pair, v)| v.min(gain(pair))).sum();
        let value = costs.cost(frame, side);
        let main_pair = pairs.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
        if let Some((&(caller, callee), &routed)) = main_pair
            && below > MIN_PART_BETWEEN_NEIGHBOURS * value
            && moved > MIN_PART_BELOW_CALLERS * below
        {
            let (callee, value) = (Some(callee), routed);
            inlined.push(InlinedCall {
                side,
                frame,
                caller,
                callee,
                value,
                own_costs: None,
                is_first: is_first[frame as usize],
                is_balanced: false,
            });
        }
    }
    inlined
}
