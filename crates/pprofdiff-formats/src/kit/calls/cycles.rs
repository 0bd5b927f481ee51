//! The cycles of a call graph: functions that call each other, directly or through others. Tarjan's algorithm, without
//! recursion, because chains of calls may be as long as the input.

use pprofdiff_profile::cancellation::Checkpointer;

/// The cycles of a graph. A function that no cycle contains is a component of its own.
pub(super) struct Cycles {
    /// The component of each function. A component that calls another one has the higher number.
    pub component: Vec<u32>,
    pub n_components: usize,
}

/// Rows of numbers in one array: the row `i` is `items[starts[i]..starts[i + 1]]`.
pub(super) struct GroupedIndexes {
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl GroupedIndexes {
    /// Groups the indexes of `keys` by key, in their order.
    pub fn group(n_lists: usize, keys: impl Iterator<Item = u32> + Clone) -> GroupedIndexes {
        let mut starts = vec![0; n_lists + 2];
        keys.clone().for_each(|key| starts[key as usize + 2] += 1);
        (2..starts.len()).for_each(|i| starts[i] += starts[i - 1]);
        let mut items = vec![0; starts[n_lists + 1] as usize];
        for (i, key) in (0..).zip(keys) {
            let end = &mut starts[key as usize + 1];
            items[*end as usize] = i;
            *end += 1;
        }
        starts.pop();
        GroupedIndexes { starts, items }
    }

    pub fn of(&self, list: u32) -> &[u32] {
        &self.items[self.starts[list as usize] as usize..self.starts[list as usize + 1] as usize]
    }

    pub fn of_mut(&mut self, list: u32) -> &mut [u32] {
        &mut self.items[self.starts[list as usize] as usize..self.starts[list as usize + 1] as usize]
    }
}

const NEW: u32 = u32::MAX;

impl Cycles {
    /// Finds the cycles of a graph with `n` functions. `calls_of` has the calls of each function, and `callees` the called
    /// function of each call.
    pub fn find(n: usize, calls_of: &GroupedIndexes, callees: &[(u32, u32, u32)]) -> Cycles {
        let (mut order, mut low, mut component) = (vec![NEW; n], vec![0; n], vec![NEW; n]);
        let (mut stack, mut path, mut pace) = (Vec::new(), Vec::new(), Checkpointer::default());
        let (mut next, mut n_components) = (0, 0);
        for root in 0..n as u32 {
            if order[root as usize] == NEW {
                path.push((root, 0));
            }
            while let Some((function, call)) = path.pop() {
                pace.step(1);
                let f = function as usize;
                if call == 0 {
                    (order[f], low[f]) = (next, next);
                    next += 1;
                    stack.push(function);
                } else {
                    let called = callees[calls_of.of(function)[call - 1] as usize].2 as usize;
                    low[f] = low[f].min(low[called]);
                }
                let mut descended = false;
                for (i, &edge) in calls_of.of(function).iter().enumerate().skip(call) {
                    let called = callees[edge as usize].2;
                    if order[called as usize] == NEW {
                        path.extend([(function, i + 1), (called, 0)]);
                        descended = true;
                        break;
                    } else if component[called as usize] == NEW {
                        low[f] = low[f].min(order[called as usize]);
                    }
                }
                if !descended && low[f] == order[f] {
                    while let Some(member) = stack.pop() {
                        component[member as usize] = n_components;
                        if member == function {
                            break;
                        }
                    }
                    n_components += 1;
                }
            }
        }
        Cycles { component, n_components: n_components as usize }
    }
}
