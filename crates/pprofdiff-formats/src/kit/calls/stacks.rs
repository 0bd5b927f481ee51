//! Cuts stacks from the columns of a call graph, the heaviest first, up to a budget.
//!
//! A context is a stack of callers with the cost that a component has there. Expanding a context divides its cost among
//! the columns of its component in proportion to their remaining costs. Costs are integers, and the last context of a
//! component takes what remains, so all sums are exact in any order of contexts.
//!
//! Graphs may have exponentially many stacks. After the budget, each remaining context takes the first columns with
//! enough cost, which needs at most one stack per column and context. Beyond a second limit, callers are left out.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::super::tree::too_large;
use super::columns::{CostColumn, CostTarget, FlowColumns, FollowingNumber};
use super::cycles::{Cycles, GroupedIndexes};
use super::{Balance, CallGraph, Estimate, LEFT_OUT, share};
use pprofdiff_profile::Result;
use pprofdiff_profile::cancellation::Checkpointer;
use pprofdiff_profile::interner::Interner;
use pprofdiff_profile::random::{HashMap, RandomState};

/// The number of contexts that are expanded in proportion: `CONTEXTS + size / BYTES_A_CONTEXT`.
const CONTEXTS: usize = 20_000;
const BYTES_A_CONTEXT: usize = 64;
/// The limits on the frames of all stacks: `FRAMES + size / BYTES_A_FRAME` for all, and half of it for contexts that are
/// expanded in proportion. Both are below the limit of [`super::super::tree::StackBudget`].
const FRAMES: usize = 2 << 20;
const BYTES_A_FRAME: usize = 4;
/// The limit of frames, divided by this number, is the limit of nodes without values while contexts are expanded in
/// proportion. Later, four times as many nodes are allowed. Most graphs stay far below these limits, because a context needs
/// few such nodes. If a cycle counts no calls, all callers in the cycle are such nodes, long before the first stack has
/// these callers as frames.
const FRAMES_A_NODE: usize = 8;
/// The limit on the columns that contexts are divided among: `WORK + size * WORK_A_BYTE`.
const WORK: usize = 32 << 20;
const WORK_A_BYTE: usize = 8;

const ROOT: u32 = u32::MAX;

/// A stack of callers, and the flows of a function that is called there.
struct CallContext {
    weight: f64,
    number: u32,
    /// The stack of the callers, as a node of `nodes`.
    node: u32,
    function: u32,
    flows: Vec<i64>,
}

impl PartialEq for CallContext {
    fn eq(&self, other: &CallContext) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for CallContext {}

impl PartialOrd for CallContext {
    fn partial_cmp(&self, other: &CallContext) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for CallContext {
    fn cmp(&self, other: &CallContext) -> Ordering {
        self.weight.total_cmp(&other.weight).then(other.number.cmp(&self.number))
    }
}

/// The shortest ways from a function of a cycle to other functions: for each of them, the function before it and the
/// place of its call.
type Ways = HashMap<u32, (u32, u32)>;

struct StackCutter<'g> {
    /// The graph, without its own costs and calls, which are columns now.
    graph: &'g CallGraph,
    component: &'g [u32],
    columns: FlowColumns,
    /// The columns [`CostTarget::Within`] of each function, most calls first.
    within: GroupedIndexes,
    /// The stacks, as nodes with a parent and a place. The parent of a group is [`ROOT`].
    nodes: Interner<(u32, u32), RandomState>,
    depths: Vec<u32>,
    /// The nodes with values, and the values: costs, then counts.
    rows: Interner<u32, RandomState>,
    values: Vec<i64>,
    /// The sum of the root flows, for weights.
    scale: Vec<f64>,
    /// The node of the heaviest callers of each function.
    usual: HashMap<u32, u32>,
    ways: HashMap<u32, Ways>,
    way_cells: usize,
    /// The nodes of callers in a cycle, by the node of the context and the function.
    on_ways: HashMap<(u32, u32), u32>,
    heap: BinaryHeap<CallContext>,
    n_contexts: u32,
    frames: usize,
    work: usize,
    pace: Checkpointer,
}

impl CallGraph {
    /// Calls `sample` for each stack, with its group, its places from the leaf, and its costs and counts.
    ///
    /// # Errors
    /// Own costs add up to more than an int64 holds, or `sample` fails.
    pub fn stacks(
        mut self,
        balance: Balance,
        mut sample: impl FnMut(u32, &[u32], &[i64]) -> Result<()>,
    ) -> Result<Estimate> {
        for cost in 0..self.n_costs {
            // No cost of a call can then be larger once it is lowered to the called function's cost.
            let own = self.own_costs.iter().skip(cost).step_by(self.n_costs);
            if own.map(|&cost| i128::from(cost.unsigned_abs())).sum::<i128>() > i64::MAX.into() {
                return Err(too_large());
            }
        }
        let n = self.functions.len();
        let cycles =
            Cycles::find(n, &GroupedIndexes::group(n, self.calls.values.iter().map(|call| call.0)), &self.calls.values);
        let columns = FlowColumns::new(&self, &cycles, balance);
        let n_values = self.n_costs + self.n_counts;
        // Large files need the memory.
        (self.own, self.own_costs) = (Interner::default(), Vec::new());
        (self.calls, self.call_numbers) = (Interner::default(), Vec::new());
        let mut stacks = StackCutter::new(&self, &cycles, columns);
        let estimate = stacks.run(&cycles);
        let StackCutter { nodes, rows, values, .. } = stacks;
        let mut places = Vec::new();
        for (i, &row) in rows.values.iter().enumerate() {
            places.clear();
            let (mut parent, mut place) = nodes.values[row as usize];
            while parent != ROOT {
                places.push(place);
                (parent, place) = nodes.values[parent as usize];
            }
            let values = &values[i * n_values..][..n_values];
            if values.iter().any(|&value| value != 0) {
                sample(place, &places, values)?;
            }
        }
        Ok(estimate)
    }
}

impl<'g> StackCutter<'g> {
    fn new(graph: &'g CallGraph, cycles: &'g Cycles, columns: FlowColumns) -> StackCutter<'g> {
        let n = graph.functions.len();
        let function_of = |column: &CostColumn| match column.target {
            CostTarget::Within(_) => column.function,
            // Other columns belong to a list of their own.
            _ => n as u32,
        };
        let mut within = GroupedIndexes::group(n + 1, columns.columns.iter().map(function_of));
        let n_follows = columns.follows.len();
        for function in 0..n as u32 {
            within.of_mut(function).sort_by_key(|&column| {
                std::cmp::Reverse(columns.follow.get(column as usize * n_follows).copied().unwrap_or(0))
            });
        }
        let n_flows = columns.flows.len();
        let scale = (0..n_flows)
            .map(|flow| columns.roots.iter().skip(flow).step_by(n_flows).map(|&root| root as f64).sum::<f64>().max(1.0))
            .collect();
        StackCutter {
            graph,
            component: &cycles.component,
            columns,
            within,
            nodes: Interner::default(),
            depths: Vec::new(),
            rows: Interner::default(),
            values: Vec::new(),
            scale,
            usual: HashMap::default(),
            ways: HashMap::default(),
            way_cells: 0,
            on_ways: HashMap::default(),
            heap: BinaryHeap::new(),
            n_contexts: 0,
            frames: 0,
            work: 0,
            pace: Checkpointer::default(),
        }
    }

    fn run(&mut self, cycles: &Cycles) -> Estimate {
        let mut estimate = Estimate {
            functions: self.graph.functions.len(),
            is_lowered: self
                .columns
                .lowered
                .iter()
                .zip(&self.scale)
                .any(|(&lowered, scale)| lowered as f64 > scale / 100.0),
            left_out: vec![0; self.graph.n_costs],
            ..Estimate::default()
        };
        self.add_roots(cycles);
        let size = self.graph.size;
        let frames = self.max_frames();
        let is_within_budget = |stacks: &StackCutter<'_>| {
            (stacks.n_contexts as usize) < CONTEXTS + size / BYTES_A_CONTEXT
                && stacks.frames < frames / 2
                && stacks.nodes_without_values() < frames / FRAMES_A_NODE
                && stacks.work < WORK + size * WORK_A_BYTE
        };
        while is_within_budget(self)
            && let Some(context) = self.heap.pop()
        {
            self.expand(&context);
        }
        self.on_ways.clear();
        let rest = std::mem::take(&mut self.heap).into_sorted_vec();
        estimate.has_remainder = !rest.is_empty();
        let mut first = vec![0u32; cycles.n_components * self.columns.flows.len()];
        for context in rest.into_iter().rev() {
            if !self.take_first(context, &mut first) {
                break;
            }
        }
        self.finish(&mut estimate);
        let mut caller = vec![ROOT; self.graph.functions.len()];
        let mut is_shared = vec![false; caller.len()];
        for column in &self.columns.columns {
            if let CostTarget::Call(callee) = column.target {
                let first = &mut caller[callee as usize];
                is_shared[callee as usize] |= *first != ROOT && *first != column.function;
                *first = column.function;
            }
        }
        estimate.shared = is_shared.iter().filter(|&&is_shared| is_shared).count();
        let is_recursive = |function: &u32| !self.within.of(*function).is_empty();
        estimate.recursive = (0..self.graph.functions.len() as u32).filter(is_recursive).count();
        estimate
    }

    /// Adds a context for each component with costs without a caller, and a stack for counts without a caller.
    fn add_roots(&mut self, cycles: &Cycles) {
        let n_flows = self.columns.flows.len();
        // A cycle begins at a function with calls from outside of the input, or else at the function that the cycle itself
        // calls least often.
        let n_counts = self.graph.n_counts;
        let mut calls = vec![0i64; self.graph.functions.len()];
        for (column, target) in self.columns.columns.iter().enumerate() {
            if let CostTarget::Within(callee) = target.target
                && n_counts > 0
            {
                let count = self.columns.follow[column * self.columns.follows.len()];
                calls[callee as usize] = calls[callee as usize].saturating_add(count.max(1));
            }
        }
        let mut entries = vec![ROOT; cycles.n_components];
        for (function, &component) in (0..).zip(&cycles.component) {
            let entry = &mut entries[component as usize];
            let rank = |function: u32| {
                let uncalled = self.graph.uncalled.get(function as usize * n_counts).copied().unwrap_or(0);
                (std::cmp::Reverse(uncalled), calls[function as usize])
            };
            if *entry == ROOT || rank(function) < rank(*entry) {
                *entry = function;
            }
        }
        for (component, &function) in entries.iter().enumerate() {
            let flows = self.columns.roots[component * n_flows..][..n_flows].to_vec();
            if flows.iter().any(|&flow| flow > 0) {
                let node = self.group(function);
                self.push(node, function, flows);
            }
        }
        for function in 0..self.graph.functions.len() {
            let counts = self.graph.uncalled[function * n_counts..][..n_counts].to_vec();
            if counts.iter().any(|&count| count != 0) {
                let node = self.group(function as u32);
                let node = self.child(node, self.graph.functions[function].entry);
                let start = self.row(node) + self.graph.n_costs;
                add(&mut self.values[start..], &counts);
            }
        }
    }

    fn max_frames(&self) -> usize {
        FRAMES + self.graph.size / BYTES_A_FRAME
    }

    fn nodes_without_values(&self) -> usize {
        self.nodes.values.len() - self.rows.values.len()
    }

    fn group(&mut self, function: u32) -> u32 {
        self.node(ROOT, self.graph.functions[function as usize].group)
    }

    fn child(&mut self, parent: u32, place: u32) -> u32 {
        self.node(parent, place)
    }

    fn node(&mut self, parent: u32, place: u32) -> u32 {
        let node = self.nodes.number((parent, place));
        if node as usize == self.depths.len() {
            self.depths.push(if parent == ROOT { 0 } else { self.depths[parent as usize] + 1 });
        }
        node
    }

    /// Returns the start of a node's values.
    fn row(&mut self, node: u32) -> usize {
        let n_values = self.graph.n_costs + self.graph.n_counts;
        let start = self.rows.number(node) as usize * n_values;
        if start == self.values.len() {
            self.values.resize(start + n_values, 0);
            self.frames += self.depths[node as usize] as usize + n_values;
        }
        start
    }

    fn push(&mut self, node: u32, function: u32, flows: Vec<i64>) {
        let weight = flows.iter().zip(&self.scale).map(|(&flow, scale)| flow as f64 / scale).sum();
        self.usual.entry(function).or_insert(node);
        self.heap.push(CallContext { weight, number: self.n_contexts, node, function, flows });
        self.n_contexts += 1;
    }

    /// Adds parts of a column to the stack of `node`, which ends before the column's place. Returns the node of the
    /// column's place.
    fn take(&mut self, node: u32, column: CostColumn, flows: &[i64], follows: &[i64]) -> u32 {
        let node = self.child(node, column.place);
        let leaf = match column.target {
            CostTarget::Own => node,
            CostTarget::OwnOf(callee) | CostTarget::Call(callee) | CostTarget::Within(callee) => {
                if matches!(column.target, CostTarget::Call(_)) && follows.iter().all(|&follow| follow == 0) {
                    return node;
                }
                self.child(node, self.graph.functions[callee as usize].entry)
            }
        };
        let start = self.row(leaf);
        let values = &mut self.values[start..];
        if matches!(column.target, CostTarget::Own | CostTarget::OwnOf(_)) {
            for (&cost, &flow) in self.columns.flows.iter().zip(flows) {
                values[cost] = values[cost].saturating_add(flow);
            }
        }
        for (follow, &number) in self.columns.follows.iter().zip(follows) {
            let i = match *follow {
                FollowingNumber::Count(i) => self.graph.n_costs + i,
                FollowingNumber::Cost(i) => i,
            };
            values[i] = values[i].saturating_add(number);
        }
        node
    }

    /// Returns the nodes of the callers of the functions of a component, for a context of one of its functions.
    fn find_ways(&mut self, entry: u32) {
        if self.ways.contains_key(&entry) {
            return;
        }
        if self.way_cells > CONTEXTS * 50 + self.graph.size {
            self.ways.clear();
            self.way_cells = 0;
        }
        let mut ways = Ways::default();
        let mut queue = vec![entry];
        let mut next = 0;
        while let Some(&function) = queue.get(next) {
            next += 1;
            let calls = self.within.of(function);
            self.work += 1 + calls.len();
            for &column in calls {
                let CostColumn { place, target, .. } = self.columns.columns[column as usize];
                if let CostTarget::Within(callee) = target
                    && callee != entry
                    && !ways.contains_key(&callee)
                {
                    ways.insert(callee, (function, place));
                    queue.push(callee);
                }
            }
        }
        self.way_cells += ways.len() + 1;
        self.ways.insert(entry, ways);
    }

    /// Returns the node of the callers of a function in the same cycle as the entry of a context.
    fn callers(&mut self, node: u32, entry: u32, function: u32) -> u32 {
        if function == entry {
            return node;
        }
        self.find_ways(entry);
        let mut steps = Vec::new();
        let (mut at, mut callers) = (function, node);
        while let Some(&(before, place)) = self.ways.get(&entry).and_then(|ways| ways.get(&at)) {
            if let Some(&known) = self.on_ways.get(&(node, at)) {
                callers = known;
                break;
            }
            steps.push((at, place));
            at = before;
        }
        self.work += steps.len();
        for (function, place) in steps.into_iter().rev() {
            callers = self.child(callers, place);
            self.on_ways.insert((node, function), callers);
            self.usual.entry(function).or_insert(callers);
        }
        callers
    }

    /// Divides the flows of a context among the columns of its component.
    fn expand(&mut self, context: &CallContext) {
        let component = self.component[context.function as usize];
        let (n, n_follows) = (self.columns.flows.len(), self.columns.follows.len());
        let total = self.columns.total[component as usize * n..][..n].to_vec();
        let flows: Vec<i64> = context.flows.iter().zip(&total).map(|(&flow, &total)| flow.min(total)).collect();
        let list = self.columns.of_component.of(component).to_vec();
        self.work += list.len() * (n + 1);
        self.pace.step(list.len());
        self.on_ways.clear();
        let (mut sums, mut given) = (vec![0i64; n], vec![0i64; n]);
        let (mut part, mut whole, mut follows) = (vec![0; n], vec![0; n], vec![0; n_follows]);
        for column_number in list {
            let column = self.columns.columns[column_number as usize];
            if matches!(column.target, CostTarget::Within(_)) {
                self.columns.follow_part(column_number, &flows, &total, &mut follows);
                part.fill(0);
            } else {
                whole.copy_from_slice(&self.columns.flow[column_number as usize * n..][..n]);
                for i in 0..n {
                    // Rounding the running sum keeps each part within the column, and the parts add up.
                    sums[i] += whole[i];
                    let upto = share(sums[i], flows[i], total[i]);
                    part[i] = if flows[i] == total[i] { whole[i] } else { upto - given[i] };
                    given[i] = upto;
                }
                self.columns.follow_part(column_number, &part, &whole, &mut follows);
            }
            if part.iter().chain(&follows).all(|&number| number == 0) {
                continue;
            }
            if self.frames > self.max_frames() {
                // The callers of the remaining costs are left out.
                break;
            }
            self.subtract(column_number, &part, &follows);
            let callers = self.callers(context.node, context.function, column.function);
            let node = self.take(callers, column, &part, &follows);
            if let CostTarget::Call(callee) = column.target
                && part.iter().any(|&flow| flow > 0)
            {
                self.push(node, callee, part.clone());
            }
        }
        for (total, flow) in self.columns.total[component as usize * n..].iter_mut().zip(&flows) {
            *total -= flow;
        }
    }

    fn subtract(&mut self, column: u32, part: &[i64], follows: &[i64]) {
        let n = self.columns.flows.len();
        self.columns.flow[column as usize * n..].iter_mut().zip(part).for_each(|(flow, part)| *flow -= part);
        let n = self.columns.follows.len();
        self.columns.follow[column as usize * n..].iter_mut().zip(follows).for_each(|(all, part)| *all -= part);
    }

    /// Assigns the flows of a context to the first columns that remain. `first` has the first such column of each
    /// component. Returns false once the stacks have too many frames.
    fn take_first(&mut self, context: CallContext, first: &mut [u32]) -> bool {
        let (n, n_follows) = (self.columns.flows.len(), self.columns.follows.len());
        let (mut part, mut whole, mut follows) = (vec![0; n], vec![0; n], vec![0; n_follows]);
        let mut path: Vec<(u32, u32)> = Vec::new();
        // Another context has other nodes.
        self.on_ways.clear();
        for flow in 0..n {
            let mut left = context.flows[flow];
            while left > 0 {
                let is_over = self.frames > self.max_frames()
                    || self.nodes_without_values() > 4 * self.max_frames() / FRAMES_A_NODE
                    || self.work > 2 * (WORK + self.graph.size * WORK_A_BYTE);
                if is_over {
                    return false;
                }
                path.clear();
                let (mut node, mut function, mut amount) = (context.node, context.function, left);
                let is_complete = loop {
                    let component = self.component[function as usize];
                    let list = self.columns.of_component.of(component);
                    let first = &mut first[component as usize * n + flow];
                    let remains = |column: &u32| self.columns.flow[*column as usize * n + flow] > 0;
                    let skipped = list[*first as usize..].iter().take_while(|column| !remains(column)).count();
                    *first += skipped as u32;
                    self.work += skipped + 1;
                    let Some(&number) = list.get(*first as usize) else { break false };
                    amount = amount.min(self.columns.flow[number as usize * n + flow]);
                    let column = self.columns.columns[number as usize];
                    let callers = self.callers(node, function, column.function);
                    path.push((number, callers));
                    let CostTarget::Call(callee) = column.target else { break true };
                    node = self.child(callers, column.place);
                    function = callee;
                    self.usual.entry(callee).or_insert(node);
                };
                if !is_complete {
                    break;
                }
                self.frames += path.len();
                self.pace.step(path.len());
                for &(number, callers) in &path {
                    whole.copy_from_slice(&self.columns.flow[number as usize * n..][..n]);
                    part[flow] = amount;
                    // The first flow of a column decides about its other numbers.
                    self.columns.follow_part(number, &part, &whole, &mut follows);
                    self.subtract(number, &part, &follows);
                    self.take(callers, self.columns.columns[number as usize], &part, &follows);
                }
                part[flow] = 0;
                left -= amount;
            }
        }
        true
    }

    /// Adds stacks for all numbers that no stack has yet: counts of calls without costs, and costs beyond the budget.
    fn finish(&mut self, estimate: &mut Estimate) {
        let (n, n_follows) = (self.columns.flows.len(), self.columns.follows.len());
        let mut part = vec![0; n];
        for number in 0..self.columns.columns.len() {
            let column = self.columns.columns[number];
            let follows = self.columns.follow[number * n_follows..][..n_follows].to_vec();
            let is_own = matches!(column.target, CostTarget::Own | CostTarget::OwnOf(_));
            part.fill(0);
            if is_own {
                part.copy_from_slice(&self.columns.flow[number * n..][..n]);
            }
            let has_cost = part.iter().any(|&flow| flow > 0);
            if !has_cost && follows.iter().all(|&follow| follow == 0) {
                continue;
            }
            for (&cost, &flow) in self.columns.flows.iter().zip(&part) {
                estimate.left_out[cost] = estimate.left_out[cost].saturating_add(flow);
            }
            let usual = self.usual.get(&column.function).copied().filter(|_| !has_cost && self.frames < 2 * FRAMES);
            let node = usual.unwrap_or_else(|| {
                let group = self.group(column.function);
                if has_cost { self.child(group, LEFT_OUT) } else { group }
            });
            self.take(node, column, &part, &follows);
        }
    }
}

fn add(sums: &mut [i64], values: &[i64]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum = sum.saturating_add(*value));
}
