//! Computes frames, edges, and the calls of a graph from the tree.

use super::super::Pair;
use super::super::edges::Calls;
use super::super::graph::{CallSum, MISSING};
use super::super::top::TopRow;
use super::{StackTree, TreeStep, TypeSums};

/// Up to this number of nodes, calls are looked up in a matrix instead of a hash table.
const FEW_NODES: usize = 512;

/// Adds a pair of sums to another pair.
fn add(to: &mut Pair, sum: Pair) {
    to.base += sum.base;
    to.new += sum.new;
}

impl StackTree {
    /// Returns the exact sums of each frame, and the sides that have it. The rows' numbers and statuses are not set
    /// yet.
    pub(in super::super) fn frame_sums(&self, sample_type: usize, n_frames: usize) -> (Vec<TopRow>, Vec<(bool, bool)>) {
        let (mut rows, mut present) = (vec![TopRow::EMPTY; n_frames], vec![(false, false); n_frames]);
        let sums = self.sums_of(sample_type);
        sums.for_each_chain(|chain, sum| {
            let places = self.places(chain);
            let sides = sum.sides();
            for (step, arrival) in self.steps[places.clone()].iter().zip(&self.arrivals[places.clone()]) {
                if arrival.is_first_frame() {
                    let frame = step.frame() as usize;
                    add(&mut rows[frame].cum, sum.weight);
                    present[frame] = (present[frame].0 | sides.0, present[frame].1 | sides.1);
                }
            }
            let leaf = self.steps[places.end - 1].frame();
            add(&mut rows[leaf as usize].flat, sums.ending(chain).weight);
        });
        (rows, present)
    }

    /// Returns the (caller, callee) of each edge that occurs in a sample, and its exact sums.
    pub(in super::super) fn edge_sums(&self, sample_type: usize) -> (Vec<(u32, u32)>, Vec<Pair>) {
        let mut weights = vec![(Pair::default(), false); self.edges.len()];
        self.sums_of(sample_type).for_each_chain(|chain, sum| {
            for arrival in self.arrivals[self.places(chain)].iter().filter(|arrival| arrival.is_first_edge()) {
                let (weight, is_taken) = &mut weights[arrival.edge() as usize];
                add(weight, sum.weight);
                *is_taken = true;
            }
        });
        let taken = self.edges.iter().zip(weights).filter(|(_, (_, is_taken))| *is_taken);
        taken.map(|(&edge, (weight, _))| (edge, weight)).unzip()
    }

    /// Returns the calls between the selected frames, with exact sums. `number` has an entry for each frame: its number
    /// among the selected frames, or [`MISSING`] for other frames.
    pub(in super::super) fn calls(&self, sample_type: usize, number: &[u32], n_nodes: usize) -> (Calls, Vec<CallSum>) {
        /// A chain on the current path.
        struct OpenChain {
            end: u32,
            /// The last selected frame on the path to the end of the chain, with a flag for frames below it that are
            /// not selected.
            caller: u32,
            is_residual: bool,
            /// The number of calls on the path before the chain.
            calls: usize,
        }
        let sums = self.sums_of(sample_type);
        let mut calls = Calls::below(n_nodes);
        let mut call_sums: Vec<CallSum> = Vec::new();
        // The numbers of calls by edge of the tree, and for few nodes also by both ends. This avoids most hash lookups.
        let mut by_edge = vec![MISSING; self.edges.len()];
        let mut by_ends = vec![MISSING; if n_nodes <= FEW_NODES { n_nodes * n_nodes } else { 0 }];
        let mut number_of = |caller: u32, callee: u32, edge: Option<u32>| {
            let slot = match edge {
                Some(edge) => by_edge.get_mut(edge as usize),
                None => by_ends.get_mut(caller as usize * n_nodes + callee as usize),
            };
            match slot {
                Some(slot) if *slot != MISSING => *slot as usize,
                slot => {
                    let id = calls.id(caller, callee);
                    slot.into_iter().for_each(|slot| *slot = id as u32);
                    id
                }
            }
        };
        // The calls on the path, and the number of times that each occurs. A call counts where it occurs first.
        let (mut path, mut times): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut open: Vec<OpenChain> = Vec::new();
        sums.for_each_chain(|i, sum| {
            while let Some(ended) = open.pop_if(|above| above.end <= i as u32) {
                path[ended.calls..].iter().for_each(|&call| times[call as usize] -= 1);
                path.truncate(ended.calls);
            }
            let (mut caller, mut is_residual) = open.last().map_or((MISSING, false), |o| (o.caller, o.is_residual));
            let before = path.len();
            let places = self.places(i);
            for (place, &step) in places.clone().zip(&self.steps[places]) {
                let callee = number[step.frame() as usize];
                if callee == MISSING {
                    is_residual = true;
                    continue;
                }
                if caller != MISSING && caller != callee {
                    let id = number_of(caller, callee, (!is_residual).then(|| self.arrivals[place].edge()));
                    if id == call_sums.len() {
                        call_sums.push(CallSum::default());
                        times.push(0);
                    }
                    if times[id] == 0 {
                        let call = &mut call_sums[id];
                        add(&mut call.weight, sum.weight);
                        call.residual |= is_residual;
                        call.called = call.called || self.is_called(&sums, place, step);
                    }
                    times[id] += 1;
                    path.push(id as u32);
                }
                (caller, is_residual) = (callee, false);
            }
            open.push(OpenChain { end: self.chains[i].end, caller, is_residual, calls: before });
        });
        (calls, call_sums)
    }

    /// Returns true if the frame of a place is called (not inlined) in a sample that passes through the place.
    fn is_called(&self, sums: &TypeSums<'_>, place: usize, step: TreeStep) -> bool {
        if !step.is_inlined() {
            return true;
        }
        let place = place as u32;
        let first = self.changes.partition_point(|change| change.0 < place);
        let changes = self.changes[first..].iter().take_while(|change| change.0 == place);
        let mut called_from = None;
        for &(_, entry, is_called) in changes {
            if let Some(from) = called_from
                && !sums.sum(from, entry).is_empty()
            {
                return true;
            }
            called_from = is_called.then_some(entry);
        }
        // Checks the entries up to the last entry beneath the place.
        called_from.is_some_and(|from| {
            let chain = self.chains.partition_point(|chain| chain.start <= place) - 1;
            let end = self.chains[self.chains[chain].end as usize].entry;
            !sums.sum(from, end).is_empty()
        })
    }
}
