//! Adds sorted entries to the tree, one by one. Pieces of the list of entries are processed in parallel on the caller's
//! pool, and the results are then joined to the tree that a single pass would build. Each piece starts with the frames
//! of the last entry of the previous piece. The places of these frames belong to an earlier piece.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::super::edges::Calls;
use super::build::Entries;
use super::{Arrival, Chain, TreeStep};
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::parallel;

/// The maximum number of places. The limit also holds for edges, which are fewer. Two bits of each number are flags.
const MAX_PLACES: usize = Arrival::NO_EDGE as usize;
/// The minimum number of entries that justifies another piece.
const MIN_ENTRIES: usize = 1 << 14;
/// The maximum number of pieces. Each piece stores all edges that it contains. More pieces are not faster for large
/// profiles, and four pieces exceed the memory limit for profiles of 132 MB per side.
const MAX_PIECES: usize = 2;
/// The number of bytes that a piece may grow by before it reports its size to the other pieces.
const UNREPORTED_BYTES: usize = 1 << 16;

/// A place on the current path from the root.
#[derive(Clone, Copy)]
struct Above {
    place: u32,
    /// The entry that created the place, or [`NONE`] if an earlier piece created it.
    entry: u32,
    has_changes: bool,
}

/// The start of the frames that an entry does not share with the previous entry.
struct Branch {
    place: u32,
    /// The place that the branch starts from, or [`NONE`] at the root.
    above: u32,
    entry: u32,
}

/// The tree during construction.
pub(super) struct Growing {
    pub steps: Vec<TreeStep>,
    pub arrivals: Vec<Arrival>,
    /// A bit for each place, set if a chain starts there.
    begins: Vec<u64>,
    branches: Vec<Branch>,
    pub changes: Vec<(u32, u32, bool)>,
    /// The path to the last entry.
    path: Vec<Above>,
    pub calls: Calls,
    /// The number of occurrences of each frame and of each edge on the path.
    frames: Vec<u32>,
    edges: Vec<u32>,
    /// The number of leading places that belong to earlier pieces.
    outer: usize,
}

impl Growing {
    fn new(n_frames: usize) -> Growing {
        Growing {
            steps: Vec::new(),
            arrivals: Vec::new(),
            begins: Vec::new(),
            branches: Vec::new(),
            changes: Vec::new(),
            path: Vec::new(),
            calls: Calls::below(n_frames),
            frames: vec![0; n_frames],
            edges: Vec::new(),
            outer: 0,
        }
    }

    /// Adds all entries in this order. Returns `None` if they exceed `room` bytes.
    pub(super) fn grow(entries: &Entries, order: &[u32], n_frames: usize, room: usize) -> Option<Growing> {
        let parts = parallel::parts(order.len(), MIN_ENTRIES).min(MAX_PIECES);
        Growing::grow_in_some(entries, order, n_frames, room, order.len().div_ceil(parts).max(1))
    }

    /// Like [`Growing::grow`], in pieces of `piece_len` entries. If the pieces do not fit, tries again with a single
    /// piece, which stores each edge only once.
    fn grow_in_some(
        entries: &Entries,
        order: &[u32],
        n_frames: usize,
        room: usize,
        piece_len: usize,
    ) -> Option<Growing> {
        match Growing::grow_in_pieces(entries, order, n_frames, room, piece_len) {
            None if piece_len < order.len() => Growing::grow_in_pieces(entries, order, n_frames, room, order.len()),
            grown => grown,
        }
    }

    /// Adds all entries in pieces of `piece_len` entries. Returns `None` if the pieces do not fit.
    fn grow_in_pieces(
        entries: &Entries,
        order: &[u32],
        n_frames: usize,
        room: usize,
        piece_len: usize,
    ) -> Option<Growing> {
        let starts: Vec<usize> = (0..order.len()).step_by(piece_len).collect();
        let used = AtomicUsize::new(0);
        let pieces = parallel::map(&starts, |&start| {
            let mut growing = Growing::new(n_frames);
            let mut last: &[u32] = &[];
            if start > 0 {
                last = entries.steps(order[start - 1]);
                growing.add(&[], last, NONE);
                growing.branches.clear();
                growing.outer = growing.steps.len();
            }
            let (mut reported, mut total) = (0, 0);
            for (&entry, i) in checkpointed(order[start..].iter().take(piece_len).zip(start as u32..)) {
                let steps = entries.steps(entry);
                let bytes = growing.bytes_with(steps.len());
                if total + bytes.saturating_sub(reported) > room || growing.steps.len() + steps.len() > MAX_PLACES {
                    return None;
                }
                if bytes >= reported + UNREPORTED_BYTES {
                    total = used.fetch_add(bytes - reported, Relaxed) + bytes - reported;
                    reported = bytes;
                }
                growing.add(last, steps, i);
                last = steps;
            }
            Some(growing)
        });
        let mut pieces = pieces.into_iter().collect::<Option<Vec<_>>>()?;
        if pieces.len() > 1 {
            let bytes: usize = pieces.iter().map(|piece| piece.bytes_with(0)).sum();
            let places: usize = pieces.iter().map(|piece| piece.steps.len() - piece.outer).sum();
            return (bytes <= room && places <= MAX_PLACES).then(|| Growing::joined(pieces, places));
        }
        Some(pieces.pop().unwrap_or_else(|| Growing::new(n_frames)))
    }

    /// Adds an entry. `last` contains the steps of the previous entry.
    fn add(&mut self, last: &[u32], steps: &[u32], entry: u32) {
        let mut common = 0;
        for (&before, &step) in last.iter().zip(steps) {
            if before >> 1 != step >> 1 {
                break;
            }
            if before != step {
                self.change(common, entry, TreeStep(before), TreeStep(step));
            }
            common += 1;
        }
        if common == steps.len() {
            // The entry has the same frames as the last entry, with different inlining.
            return;
        }
        if let Some(other) = self.path.get(common) {
            let place = other.place as usize;
            self.begins[place / 64] |= 1 << (place % 64);
        }
        for above in self.path.drain(common..) {
            let place = above.place as usize;
            self.frames[self.steps[place].frame() as usize] -= 1;
            let edge = self.arrivals[place].edge();
            if edge != Arrival::NO_EDGE {
                self.edges[edge as usize] -= 1;
            }
        }
        let above = self.path.last().map_or(NONE, |above| above.place);
        let start = self.steps.len();
        self.branches.push(Branch { place: start as u32, above, entry });
        let mut caller = common.checked_sub(1).map_or(NONE, |before| steps[before] >> 1);
        for &step in &steps[common..] {
            let (step, place) = (TreeStep(step), self.steps.len());
            let frame = step.frame();
            let (mut edge, mut is_first_edge) = (Arrival::NO_EDGE, false);
            if caller != NONE && caller != frame {
                let number = self.calls.id(caller, frame);
                if number == self.edges.len() {
                    self.edges.push(0);
                }
                is_first_edge = self.edges[number] == 0;
                self.edges[number] += 1;
                edge = number as u32;
            }
            let on_way = &mut self.frames[frame as usize];
            let is_first_frame = *on_way == 0;
            *on_way += 1;
            self.steps.push(step);
            self.arrivals.push(Arrival::new(edge, is_first_edge, is_first_frame));
            self.path.push(Above { place: place as u32, entry, has_changes: false });
            caller = frame;
        }
        self.begins.resize(self.steps.len().div_ceil(64), 0);
        self.begins[start / 64] |= 1 << (start % 64);
    }

    /// Records that a frame on the path is inlined from this entry on, or called from this entry on.
    #[cold]
    fn change(&mut self, depth: usize, entry: u32, before: TreeStep, now: TreeStep) {
        let above = &mut self.path[depth];
        if !above.has_changes {
            above.has_changes = true;
            self.changes.push((above.place, above.entry, !before.is_inlined()));
            self.steps[above.place as usize] = TreeStep(now.0 | 1);
        }
        self.changes.push((above.place, entry, !now.is_inlined()));
    }

    /// Returns the size in bytes after adding a stack of `frames` frames. Includes the chains, which are created later.
    /// There are at most two chains per branch.
    fn bytes_with(&self, frames: usize) -> usize {
        (self.steps.len() + frames) * (size_of::<TreeStep>() + size_of::<Arrival>())
            + self.path.len().max(frames) * size_of::<Above>()
            + self.branches.len() * (size_of::<Branch>() + 2 * size_of::<Chain>())
            + self.changes.len() * size_of::<(u32, u32, bool)>()
            + self.edges.len() * 32
    }

    /// Joins consecutive pieces. `places` is their total number of places.
    fn joined(mut pieces: Vec<Growing>, places: usize) -> Growing {
        // Edges are numbered by their first occurrence.
        let mut calls = std::mem::replace(&mut pieces[0].calls, Calls::below(0));
        let mut number = |pair: &(u32, u32)| calls.id(pair.0, pair.1) as u32;
        let edges: Vec<Vec<u32>> =
            pieces.iter().map(|piece| checkpointed(piece.calls.pairs()).map(&mut number).collect()).collect();
        let (mut path, mut offset): (Vec<Above>, usize) = (Vec::new(), 0);
        let mut joints = Vec::with_capacity(pieces.len());
        for (piece, edges) in pieces.into_iter().zip(edges) {
            let joint = Joint { outer: path, offset, edges };
            path = piece.path.iter().map(|above| joint.above(above)).collect();
            offset += piece.steps.len() - piece.outer;
            joints.push((piece, joint));
        }
        // The numbers of the first piece do not change.
        let later: Vec<_> = joints.iter_mut().skip(1).collect();
        parallel::each(later, |(piece, joint)| joint.rename(piece));
        let mut all = Growing { calls, path, ..Growing::new(0) };
        all.steps.reserve_exact(places);
        all.arrivals.reserve_exact(places);
        all.begins.resize(places.div_ceil(64), 0);
        for (piece, joint) in checkpointed(joints) {
            let Growing { steps, arrivals, begins, branches, changes, outer, .. } = piece;
            for (i, &word) in checkpointed(begins.iter().enumerate()) {
                let mut word = word;
                while word != 0 {
                    let place = joint.place(i as u32 * 64 + word.trailing_zeros()) as usize;
                    all.begins[place / 64] |= 1 << (place % 64);
                    word &= word - 1;
                }
            }
            // A place of an earlier piece is also marked as inlined if it is inlined in a later piece.
            for (step, above) in steps.iter().zip(&joint.outer) {
                all.steps[above.place as usize].0 |= step.0 & 1;
            }
            all.steps.extend(&steps[outer..]);
            all.arrivals.extend(&arrivals[outer..]);
            all.branches.extend(branches);
            all.changes.extend(changes);
        }
        all
    }

    /// Returns the chains, and an end marker after the last chain.
    pub(super) fn chains(&self, n_entries: usize) -> Vec<Chain> {
        let mut chains: Vec<Chain> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        let mut branches = self.branches.iter().peekable();
        let mut entry = 0;
        for (i, &word) in self.begins.iter().enumerate() {
            let mut word = word;
            while word != 0 {
                let start = i as u32 * 64 + word.trailing_zeros();
                word &= word - 1;
                let above = match branches.next_if(|branch| branch.place == start) {
                    Some(branch) => {
                        entry = branch.entry;
                        branch.above
                    }
                    None => start - 1,
                };
                let number = chains.len();
                // A chain ends where the next chain starts.
                let ends_at = |chains: &[Chain], chain: usize| chains.get(chain + 1).map_or(start, |c| c.start) - 1;
                while let Some(&chain) = open.last()
                    && ends_at(&chains, chain) != above
                {
                    chains[chain].end = number as u32;
                    open.pop();
                }
                let parent = open.last().map_or(NONE, |&chain| chain as u32);
                chains.push(Chain { start, parent, end: 0, entry });
                open.push(number);
            }
        }
        let number = chains.len() as u32;
        open.into_iter().for_each(|chain| chains[chain].end = number);
        chains.push(Chain { start: self.steps.len() as u32, parent: NONE, end: number, entry: n_entries as u32 });
        chains
    }
}

/// Converts the numbers of a piece to numbers of the joined tree.
struct Joint {
    /// The path to the last entry before the piece, which is the piece's leading places.
    outer: Vec<Above>,
    /// The number of places before the piece's own places.
    offset: usize,
    /// The new number of each edge.
    edges: Vec<u32>,
}

impl Joint {
    fn place(&self, place: u32) -> u32 {
        match self.outer.get(place as usize) {
            Some(above) => above.place,
            None => place - self.outer.len() as u32 + self.offset as u32,
        }
    }

    /// Converts a place on the path.
    fn above(&self, above: &Above) -> Above {
        match self.outer.get(above.place as usize) {
            Some(outer) => Above { has_changes: outer.has_changes || above.has_changes, ..*outer },
            None => Above { place: self.place(above.place), ..*above },
        }
    }

    fn rename(&self, piece: &mut Growing) {
        for arrival in checkpointed(&mut piece.arrivals) {
            if arrival.edge() != Arrival::NO_EDGE {
                let edge = self.edges[arrival.edge() as usize];
                *arrival = Arrival::new(edge, arrival.is_first_edge(), arrival.is_first_frame());
            }
        }
        for Branch { place, above, .. } in checkpointed(&mut piece.branches) {
            *place = self.place(*place);
            *above = if *above == NONE { NONE } else { self.place(*above) };
        }
        // Drops an initial state that an earlier piece has already recorded.
        let outer = |place: u32| self.outer.get(place as usize);
        piece
            .changes
            .retain(|&(place, entry, _)| entry != NONE || outer(place).is_some_and(|above| !above.has_changes));
        for (place, entry, _) in checkpointed(&mut piece.changes) {
            *entry = if *entry == NONE { outer(*place).map_or(NONE, |above| above.entry) } else { *entry };
            *place = self.place(*place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::order::StackOrder;
    use super::super::build::Entries;
    use super::Growing;

    /// The complete data of a tree, for comparison.
    type TreeParts = (Vec<(u32, u32)>, Vec<u64>, Vec<(u32, u32, u32)>, Vec<(u32, u32, bool)>, Vec<(u32, u32)>);

    fn parts(mut growing: Growing) -> TreeParts {
        growing.changes.sort_unstable();
        let steps = growing.steps.iter().zip(&growing.arrivals).map(|(step, arrival)| (step.0, arrival.0)).collect();
        let branches = growing.branches.iter().map(|branch| (branch.place, branch.above, branch.entry)).collect();
        (steps, growing.begins, branches, growing.changes, growing.calls.into_pairs())
    }

    #[test]
    fn joined_pieces_equal_the_tree_of_a_single_pass() {
        let (mut seed, mut changed) = (1u32, 0);
        let mut next = |below: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) % below
        };
        for n in 0..120u64 {
            let mut entries = Entries::new(1, usize::MAX);
            for i in 0..n {
                // Some frames are inlined in some stacks.
                let steps: Vec<u32> = (0..1 + next(6)).map(|_| next(3) << 1 | u32::from(next(4) == 0)).collect();
                entries.number(u128::from(i), &steps);
            }
            let order = StackOrder::new(3, 1, |entry| entries.steps(entry)).sorted(entries.len());
            let grow =
                |piece_len: usize| Growing::grow_in_pieces(&entries, &order, 3, usize::MAX, piece_len).map(parts);
            let expected = grow(usize::MAX);
            changed += expected.as_ref().map_or(0, |expected| expected.3.len());
            for piece_len in [1, 2, 3, 7, 30] {
                assert!(grow(piece_len) == expected, "{n} entries, {piece_len} at a time");
            }
        }
        assert!(changed > 1000);
    }

    #[test]
    fn entries_that_exceed_the_room_are_refused_or_grown_in_one_piece() {
        let mut entries = Entries::new(1, usize::MAX);
        for i in 0..100u32 {
            entries.number(u128::from(i), &[2 * i, 2, 4, 6]);
        }
        let order: Vec<u32> = (0..100).collect();
        let grows = |room, piece_len| Growing::grow_in_pieces(&entries, &order, 100, room, piece_len).is_some();
        for piece_len in [10, 100] {
            assert!(grows(1 << 20, piece_len) && !grows(1 << 10, piece_len), "{piece_len} at a time");
        }
        let least = (1..1 << 20).find(|&room| grows(room, 100)).unwrap_or(0);
        assert!(!grows(least, 10));
        let grown = |piece_len| Growing::grow_in_some(&entries, &order, 100, least, piece_len).map(parts);
        assert!(grown(10).is_some() && grown(10) == grown(100));
    }
}
