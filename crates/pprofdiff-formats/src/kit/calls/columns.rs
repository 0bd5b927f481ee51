//! The costs of each component of a call graph, as columns: own costs of lines, and calls of
//! other components. The columns of a component add up to the calls of the component and the costs without a caller.

use super::cycles::{Cycles, GroupedIndexes};
use super::{Balance, CallGraph, share};

/// A cost of a function that goes to one line or one call.
#[derive(Debug, Clone, Copy)]
pub(super) struct CostColumn {
    pub function: u32,
    /// The line of the function.
    pub place: u32,
    pub target: CostTarget,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CostTarget {
    /// Own cost of the function.
    Own,
    /// Own cost of a called function, within calls of this function.
    OwnOf(u32),
    /// A call of a function of another component.
    Call(u32),
    /// Calls of a function of the same component. Only their number is known.
    Within(u32),
}

/// All columns of a graph, sorted by component, and what no stack has yet of their costs and counts.
pub(super) struct FlowColumns {
    pub columns: Vec<CostColumn>,
    pub of_component: GroupedIndexes,
    /// The costs whose every value is 0 or more. They flow from callers to callees.
    pub flows: Vec<usize>,
    /// The other numbers: counts, then costs with negative values. Each follows the flow of its column.
    pub follows: Vec<FollowingNumber>,
    /// The flows that remain, by column.
    pub flow: Vec<i64>,
    /// The sum of these, by component.
    pub total: Vec<i64>,
    /// The flows without a caller, by component.
    pub roots: Vec<i64>,
    /// The other numbers that remain, by column.
    pub follow: Vec<i64>,
    /// The flows of calls that cost more than the called component.
    pub lowered: Vec<i128>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum FollowingNumber {
    Count(usize),
    Cost(usize),
}

impl FlowColumns {
    /// Divides a graph into columns.
    pub fn new(graph: &CallGraph, cycles: &Cycles, balance: Balance) -> FlowColumns {
        let (n_costs, n_counts) = (graph.n_costs, graph.n_counts);
        let stride = n_counts + 2 * n_costs;
        let is_negative = |cost: usize| {
            let own = graph.own_costs.iter().skip(cost).step_by(n_costs.max(1)).any(|&c| c < 0);
            let calls = |part: usize| {
                graph.call_numbers.iter().skip(n_counts + part * n_costs + cost).step_by(stride).any(|&c| c < 0)
            };
            own || calls(0) || calls(1)
        };
        let (flows, negative): (Vec<usize>, Vec<usize>) = (0..n_costs).partition(|&cost| !is_negative(cost));
        let follows =
            (0..n_counts).map(FollowingNumber::Count).chain(negative.into_iter().map(FollowingNumber::Cost)).collect();
        let mut columns = FlowColumns {
            columns: Vec::new(),
            of_component: GroupedIndexes::group(0, std::iter::empty()),
            flows,
            follows,
            flow: Vec::new(),
            total: Vec::new(),
            roots: Vec::new(),
            follow: Vec::new(),
            lowered: Vec::new(),
        };
        columns.fill(graph, cycles);
        let components = columns.columns.iter().map(|column| cycles.component[column.function as usize]);
        columns.of_component = GroupedIndexes::group(cycles.n_components, components);
        columns.make_consistent(cycles, balance);
        columns
    }

    fn push(&mut self, column: CostColumn, costs: &[i64], counts: &[i64]) {
        self.columns.push(column);
        let is_within = matches!(column.target, CostTarget::Within(_));
        self.flow.extend(self.flows.iter().map(|&cost| if is_within { 0 } else { costs[cost] }));
        self.follow.extend(self.follows.iter().map(|follow| match *follow {
            FollowingNumber::Count(i) => counts.get(i).copied().unwrap_or(0),
            FollowingNumber::Cost(i) if matches!(column.target, CostTarget::Own | CostTarget::OwnOf(_)) => costs[i],
            FollowingNumber::Cost(_) => 0,
        }));
    }

    fn fill(&mut self, graph: &CallGraph, cycles: &Cycles) {
        let (n_costs, n_counts) = (graph.n_costs, graph.n_counts);
        // The own costs that calls do not have yet.
        let mut own = vec![0; graph.functions.len() * n_costs];
        for (i, &(function, _)) in graph.own.values.iter().enumerate() {
            let costs = &graph.own_costs[i * n_costs..][..n_costs];
            own[function as usize * n_costs..]
                .iter_mut()
                .zip(costs)
                .for_each(|(sum, cost)| *sum = cost.saturating_add(*sum));
        }
        let mut taken = vec![0; own.len()];
        let mut inclusive = vec![0; n_costs];
        for (i, &(caller, place, callee)) in graph.calls.values.iter().enumerate() {
            let numbers = &graph.call_numbers[i * (n_counts + 2 * n_costs)..][..n_counts + 2 * n_costs];
            let (counts, costs) = numbers.split_at(n_counts);
            let (costs, own_costs) = costs.split_at(n_costs);
            inclusive.copy_from_slice(costs);
            if own_costs.iter().any(|&cost| cost != 0) {
                let start = callee as usize * n_costs;
                let is_within = cycles.component[caller as usize] == cycles.component[callee as usize];
                let part: Vec<i64> = (0..n_costs)
                    .map(|i| {
                        let room = own[start + i] - taken[start + i];
                        let most = if is_within { room } else { room.min(costs[i]) };
                        own_costs[i].clamp(0, most.max(0))
                    })
                    .collect();
                for (i, &cost) in part.iter().enumerate() {
                    taken[start + i] += cost;
                    inclusive[i] = inclusive[i].saturating_sub(cost);
                }
                self.push(CostColumn { function: caller, place, target: CostTarget::OwnOf(callee) }, &part, &[]);
            }
            let is_within = cycles.component[caller as usize] == cycles.component[callee as usize];
            let target = if is_within { CostTarget::Within(callee) } else { CostTarget::Call(callee) };
            self.push(CostColumn { function: caller, place, target }, &inclusive, counts);
        }
        let mut rest = vec![0; n_costs];
        for (i, &(function, place)) in graph.own.values.iter().enumerate() {
            rest.copy_from_slice(&graph.own_costs[i * n_costs..][..n_costs]);
            let taken = &mut taken[function as usize * n_costs..][..n_costs];
            for (cost, taken) in rest.iter_mut().zip(taken) {
                let part = (*taken).clamp(0, (*cost).max(0));
                (*cost, *taken) = (*cost - part, *taken - part);
            }
            self.push(CostColumn { function, place, target: CostTarget::Own }, &rest, &[]);
        }
    }

    /// Makes the cost of each component equal to the cost of its calls. Calls that cost more are lowered in proportion,
    /// and a component that costs more has the rest without a caller.
    fn make_consistent(&mut self, cycles: &Cycles, balance: Balance) {
        let n = self.flows.len();
        // Columns without a call belong to a list of their own.
        let called = |column: &CostColumn| match column.target {
            CostTarget::Call(callee) => cycles.component[callee as usize],
            _ => cycles.n_components as u32,
        };
        let calls_to = GroupedIndexes::group(cycles.n_components + 1, self.columns.iter().map(called));
        self.total = vec![0; cycles.n_components * n];
        self.roots = vec![0; cycles.n_components * n];
        self.lowered = vec![0; n];
        // Called components come first, so their callers see corrected costs.
        for component in 0..cycles.n_components as u32 {
            for flow in 0..n {
                let sum = |columns: &[u32], flows: &[i64]| {
                    columns.iter().map(|&column| i128::from(flows[column as usize * n + flow])).sum::<i128>()
                };
                // It is at most the sum of all own costs, which fits.
                let total = sum(self.of_component.of(component), &self.flow) as i64;
                let calls = calls_to.of(component);
                let cost = sum(calls, &self.flow);
                self.total[component as usize * n + flow] = total;
                let difference = i128::from(total) - cost;
                let is_near = difference.abs().saturating_mul(1_000_000) <= i128::from(total);
                let is_equal = match balance {
                    Balance::Exact => false,
                    Balance::Measured => is_near,
                    Balance::ByCounts => true,
                };
                if difference > 0 && !(is_equal && cost > 0) {
                    self.roots[component as usize * n + flow] = difference as i64;
                } else if difference != 0 {
                    self.lowered[flow] += if is_equal { 0 } else { -difference };
                    let (mut cost, mut left) = (cost, i128::from(total));
                    for &column in calls {
                        let call = &mut self.flow[column as usize * n + flow];
                        let before = i128::from(*call);
                        // Both factors are below 2^63.
                        *call = if cost > 0 { (before * left / cost) as i64 } else { 0 };
                        (cost, left) = (cost - before, left - i128::from(*call));
                    }
                }
            }
        }
    }

    /// Returns the part of a column's other numbers that goes with a part of its flow.
    pub fn follow_part(&self, column: u32, part: &[i64], whole: &[i64], out: &mut [i64]) {
        let n = self.follows.len();
        let numbers = &self.follow[column as usize * n..][..n];
        let weight = whole.iter().position(|&flow| flow > 0).map(|i| (part[i], whole[i]));
        for (out, &number) in out.iter_mut().zip(numbers) {
            *out = weight.map_or(0, |(part, whole)| share(part, number, whole));
        }
    }
}
