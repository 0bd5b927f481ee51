//! Wrappers: functions that one side has between a caller and a callee which the opposite side calls directly. The cost
//! of the callee then seems to appear below the wrapper and to disappear below the caller, although only the route
//! changed. The frames in between are removed from the stacks of such routes, so that the callee compares with itself and
//! the wrapper keeps only its other cost.
//!
//! `rules/inlined` removes functions that are nothing but a wrapper, on all stacks. This module looks at the candidates of
//! a search, and so finds wrappers that also have cost of their own.

use std::collections::BTreeMap;
use std::ops::Range;

use super::attribution::{CauseCandidate, CauseKind};
use super::evidence::costs::FrameCosts;
use super::evidence::rows::StackRows;
use super::thresholds::{
    MAX_DIFFERENCE_OF_ROUTES, MIN_EVENTS_OF_INLINED, MIN_PART_OF_DIRECT_CALLS, MIN_PART_OF_ROUTES,
};
use pprofdiff::shared::statistics::counts::LEVEL;
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::random::HashSet;
use pprofdiff_profile::short_lists::sort_by;

/// The caller and the callee of a wrapper.
type Route = (u32, u32);

/// A wrapper with the routes through it.
pub(super) struct Wrapper {
    /// The side that has the wrapper.
    pub side: usize,
    /// The first function in between on the route with the most cost, with the ends of this route.
    pub frame: u32,
    pub caller: u32,
    pub callee: u32,
    /// The first function in between on the opposite side, if frames took the place of others there.
    pub instead_of: Option<u32>,
    /// The cost of all routes, in all runs of the side.
    pub value: f64,
    routes: HashSet<Route>,
    /// The callers whose routes have frames in between on both sides. Stacks that end in such frames are folded, too:
    /// their cost replaces the opposite side's.
    replaced_below: HashSet<u32>,
    /// By frame: a bit for the side, if only one side has the frame.
    only_on: Vec<u8>,
}

/// Returns a wrapper that explains a considerable part of an added or removed candidate, largest candidate first.
/// `only_on` returns the result of [`one_sided_frames`]. `scale` is the expected ratio of all new runs to all base runs.
pub(super) fn wrapper<'r>(
    rows: &StackRows,
    only_on: impl FnOnce() -> &'r [u8],
    candidates: &[CauseCandidate],
    scale: f64,
) -> Option<Wrapper> {
    let is_one_sided = |candidate: &&CauseCandidate| {
        candidate.subject.label.is_none() && matches!(candidate.subject.kind, CauseKind::Added | CauseKind::Removed)
    };
    let mut one_sided: Vec<&CauseCandidate> = candidates.iter().filter(is_one_sided).collect();
    sort_by(&mut one_sided, |a, b| b.delta.abs().total_cmp(&a.delta.abs()));
    if one_sided.is_empty() {
        return None;
    }
    let only_on = only_on();
    one_sided.into_iter().find_map(|candidate| wrapper_of(rows, candidate, only_on, scale))
}

fn wrapper_of(rows: &StackRows, candidate: &CauseCandidate, only_on: &[u8], scale: f64) -> Option<Wrapper> {
    let side = usize::from(candidate.subject.kind == CauseKind::Added);
    let (mut routed, recursive) = routes_of(rows, candidate, side, only_on);
    if routed.is_empty() {
        return None;
    }
    let calls = RouteCalls::new(rows, routed.keys().copied(), side, only_on);
    let event = rows.event();
    routed.retain(|route, _| calls.is_rerouted(*route, side, scale, event, recursive.contains(route)));
    let value: f64 = routed.values().map(|(value, _)| value).sum();
    let (&(caller, callee), &(_, frame)) = routed.iter().max_by(|a, b| a.1.0.total_cmp(&b.1.0).then(b.0.cmp(a.0)))?;
    let all: f64 = candidate.rows.iter().map(|&row| rows.rows[row as usize].values[side]).sum();
    if value <= MIN_PART_OF_ROUTES * all {
        return None;
    }
    let is_replaced = |route: &&Route| calls.by_route[*route].between[1 - side] > 0.0;
    Some(Wrapper {
        side,
        frame,
        caller,
        callee,
        instead_of: calls.first_opposite_frame((caller, callee)),
        value,
        replaced_below: routed.keys().filter(is_replaced).map(|(caller, _)| *caller).collect(),
        routes: routed.keys().copied().collect(),
        only_on: only_on.to_vec(),
    })
}

/// Returns the routes of a candidate, each with its cost there and the first function in between, and those whose callee
/// is recursive.
fn routes_of(
    rows: &StackRows,
    candidate: &CauseCandidate,
    side: usize,
    only_on: &[u8],
) -> (BTreeMap<Route, (f64, u32)>, HashSet<Route>) {
    let mut routed: BTreeMap<Route, (f64, u32)> = BTreeMap::new();
    let mut recursive: HashSet<Route> = HashSet::default();
    for &row in &candidate.rows {
        let (stack, values) = (rows.stack(row as usize), rows.rows[row as usize].values);
        for_each_chain(stack, sides_of(values), only_on, |side_of_chain, chain| {
            if let Some(&callee) = stack.get(chain.end).filter(|_| side_of_chain == side) {
                let route = routed.entry((stack[chain.start - 1], callee)).or_insert((0.0, stack[chain.start]));
                route.0 += values[side];
                if stack.iter().filter(|&&frame| frame == callee).count() > 1 {
                    recursive.insert((stack[chain.start - 1], callee));
                }
            }
        });
    }
    (routed, recursive)
}

/// The cost of a route by side: of direct calls, and of calls with frames in between.
#[derive(Clone, Copy, Default)]
struct RouteCost {
    direct: [f64; 2],
    between: [f64; 2],
}

/// How both sides call the callees of some routes.
struct RouteCalls {
    by_route: BTreeMap<Route, RouteCost>,
    /// By route and first function in between: the cost on the side opposite the candidate's.
    opposite: BTreeMap<(Route, u32), f64>,
}

impl RouteCalls {
    fn new(rows: &StackRows, routes: impl Iterator<Item = Route>, side: usize, only_on: &[u8]) -> RouteCalls {
        let mut by_route: BTreeMap<Route, RouteCost> = routes.map(|route| (route, RouteCost::default())).collect();
        let mut opposite: BTreeMap<(Route, u32), f64> = BTreeMap::new();
        let mut seen: Vec<Route> = Vec::new();
        for (i, row) in checkpointed(rows.rows.iter().enumerate()) {
            let stack = rows.stack(i);
            seen.clear();
            seen.extend(stack.windows(2).map(|call| (call[0], call[1])).filter(|call| by_route.contains_key(call)));
            seen.sort_unstable();
            seen.dedup();
            for call in &seen {
                if let Some(RouteCost { direct, .. }) = by_route.get_mut(call) {
                    *direct = [direct[0] + row.values[0], direct[1] + row.values[1]];
                }
            }
            for_each_chain(stack, sides_of(row.values), only_on, |chain_side, chain| {
                let callee = stack.get(chain.end);
                let Some(route) = callee.map(|callee| (stack[chain.start - 1], *callee)) else { return };
                if let Some(RouteCost { between, .. }) = by_route.get_mut(&route) {
                    between[chain_side] += row.values[chain_side];
                    if chain_side != side {
                        *opposite.entry((route, stack[chain.start])).or_default() += row.values[chain_side];
                    }
                }
            });
        }
        RouteCalls { by_route, opposite }
    }

    /// Returns true if direct calls on the opposite side became calls with frames in between on this side, or if the
    /// frames took the place of others. `event` is the mean value of an event.
    fn is_rerouted(&self, route: Route, side: usize, scale: f64, event: f64, is_recursive: bool) -> bool {
        let at_equal_work = |values: [f64; 2]| [values[0], values[1] / scale];
        let cost = self.by_route[&route];
        let (direct, between) = (at_equal_work(cost.direct), at_equal_work(cost.between));
        if between[1 - side] > 0.0 {
            let difference = (between[0] - between[1]).abs();
            // An event of the new side counts as 1 / scale events of the base, so the answer is the same if the sides
            // are swapped.
            let variance = event * (cost.between[0] + cost.between[1] / scale.powi(2));
            return difference < MAX_DIFFERENCE_OF_ROUTES * between[0].max(between[1])
                || difference.powi(2) < LEVEL * variance;
        }
        // In a recursion, the callee's other levels change the amounts.
        let is_all = cost.direct[1 - side] > MIN_EVENTS_OF_INLINED * event && direct[side] <= 0.0 && !is_recursive;
        is_all || direct[1 - side] - direct[side] > MIN_PART_OF_DIRECT_CALLS * between[side]
    }

    /// Returns the first function between caller and callee on the opposite side. If there are several, returns the one
    /// with the largest cost.
    fn first_opposite_frame(&self, route: Route) -> Option<u32> {
        let of_route = self.opposite.iter().filter(|((of, _), _)| *of == route);
        of_route.max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0))).map(|((_, frame), _)| *frame)
    }
}

impl Wrapper {
    /// Removes the frames in between from a stack with these values.
    pub(super) fn unwrap_stack(&self, stack: &mut Vec<u32>, values: [f64; 2]) {
        let mut removed: Vec<Range<usize>> = Vec::new();
        for_each_chain(stack, sides_of(values), &self.only_on, |_, chain| {
            let caller = stack[chain.start - 1];
            let is_removed = match stack.get(chain.end) {
                Some(&callee) => self.routes.contains(&(caller, callee)),
                None => self.replaced_below.contains(&caller),
            };
            if is_removed {
                removed.push(chain);
            }
        });
        removed.into_iter().rev().for_each(|chain| drop(stack.drain(chain)));
    }
}

/// Returns, by frame, a bit for the side if only one side has the frame. Rarely sampled frames count as common, because
/// a side may lack them by chance.
pub(super) fn one_sided_frames(rows: &StackRows, costs: &FrameCosts) -> Vec<u8> {
    let mut only_on = vec![0u8; rows.names.len()];
    let min_cost = MIN_EVENTS_OF_INLINED * rows.event();
    for side in [0, 1] {
        let large = costs.only(side).filter(|(v, _)| *v > min_cost);
        large.for_each(|(_, frame)| only_on[frame as usize] = 1 << side);
    }
    only_on
}

/// Returns a bit for each side that has values.
pub(super) fn sides_of(values: [f64; 2]) -> u8 {
    u8::from(values[0] > 0.0) | u8::from(values[1] > 0.0) << 1
}

/// Calls `found` with the side and the place of each chain of frames that only one of the stack's sides has, if another
/// frame is above it.
pub(super) fn for_each_chain(stack: &[u32], sides: u8, only_on: &[u8], mut found: impl FnMut(usize, Range<usize>)) {
    let side_bit = |place: usize| sides & only_on[stack[place] as usize];
    let mut place = 1;
    while place < stack.len() {
        let bit = side_bit(place);
        if bit == 0 {
            place += 1;
            continue;
        }
        let end = (place..stack.len()).find(|&later| side_bit(later) == 0).unwrap_or(stack.len());
        if side_bit(place - 1) == 0 {
            found(bit.trailing_zeros() as usize, place..end);
        }
        place = end;
    }
}
