//! The tree while it grows, entry by entry. Pieces of the entries grow at the same time, on the caller's pool, and are joined to
//! what would have grown of all: each begins with the frames of the entry before it, whose places are an earlier piece's.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::super::edges::Calls;
use super::build::Entries;
use super::{Arrival, Chain, Step};
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::parallel;
use pprofdiff_profile::work::paced;

/// Places are numbers, and so are edges, of which there are fewer; two bits are for marks.
const MAX_PLACES: usize = Arrival::NO_EDGE as usize;
/// The fewest entries that are worth a piece.
const MIN_ENTRIES: usize = 1 << 14;
/// More of them are no faster where it matters: each has the edges that it meets, and with four a pair of 132 MB a side has no
/// room.
const MAX_PIECES: usize = 2;
/// Bytes that a piece grows by before the others know.
const UNTOLD: usize = 1 << 16;

/// A place while the frames above it are on the way.
#[derive(Clone, Copy)]
struct Above {
    place: u32,
    /// The entry that it was made for; [`NONE`] where an earlier piece made it.
    entry: u32,
    has_changes: bool,
}

/// Where the frames of an entry begin that the one before it does not have.
struct Branch {
    place: u32,
    /// The place that it branches off, or [`NONE`].
    above: u32,
    entry: u32,
}

/// The tree while it grows.
pub(super) struct Growing {
    pub steps: Vec<Step>,
    pub arrivals: Vec<Arrival>,
    /// A bit for each place: a chain begins there.
    begins: Vec<u64>,
    branches: Vec<Branch>,
    pub changes: Vec<(u32, u32, bool)>,
    /// The way to the last entry.
    way: Vec<Above>,
    pub calls: Calls,
    /// How often each frame, and each edge, is on the way.
    frames: Vec<u32>,
    edges: Vec<u32>,
    /// How many of the first places are an earlier piece's.
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
            way: Vec::new(),
            calls: Calls::below(n_frames),
            frames: vec![0; n_frames],
            edges: Vec::new(),
            outer: 0,
        }
    }

    /// All entries in this order; `None` where they take more than `room` bytes.
    pub(super) fn grow(entries: &Entries, order: &[u32], n_frames: usize, room: usize) -> Option<Growing> {
        let parts = parallel::parts(order.len(), MIN_ENTRIES).min(MAX_PIECES);
        Growing::grow_in_some(entries, order, n_frames, room, order.len().div_ceil(parts).max(1))
    }

    /// The same in pieces of so many entries, or in one where those do not fit: each has the edges that it meets.
    fn grow_in_some(entries: &Entries, order: &[u32], n_frames: usize, room: usize, some: usize) -> Option<Growing> {
        match Growing::grow_in_pieces(entries, order, n_frames, room, some) {
            None if some < order.len() => Growing::grow_in_pieces(entries, order, n_frames, room, order.len()),
            grown => grown,
        }
    }

    /// The same of pieces of so many entries; `None` where the pieces do not fit.
    fn grow_in_pieces(
        entries: &Entries,
        order: &[u32],
        n_frames: usize,
        room: usize,
        at_a_time: usize,
    ) -> Option<Growing> {
        let starts: Vec<usize> = (0..order.len()).step_by(at_a_time).collect();
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
            let (mut told, mut all) = (0, 0);
            for (&entry, i) in paced(order[start..].iter().take(at_a_time).zip(start as u32..)) {
                let steps = entries.steps(entry);
                let bytes = growing.bytes_with(steps.len());
                if all + bytes.saturating_sub(told) > room || growing.steps.len() + steps.len() > MAX_PLACES {
                    return None;
                }
                if bytes >= told + UNTOLD {
                    all = used.fetch_add(bytes - told, Relaxed) + bytes - told;
                    told = bytes;
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

    /// Adds an entry; `last` are the steps of the one before it.
    fn add(&mut self, last: &[u32], steps: &[u32], entry: u32) {
        let mut common = 0;
        for (&before, &step) in last.iter().zip(steps) {
            if before >> 1 != step >> 1 {
                break;
            }
            if before != step {
                self.change(common, entry, Step(before), Step(step));
            }
            common += 1;
        }
        if common == steps.len() {
            // The same frames again; how they are inlined differs.
            return;
        }
        if let Some(other) = self.way.get(common) {
            let place = other.place as usize;
            self.begins[place / 64] |= 1 << (place % 64);
        }
        for above in self.way.drain(common..) {
            let place = above.place as usize;
            self.frames[self.steps[place].frame() as usize] -= 1;
            let edge = self.arrivals[place].edge();
            if edge != Arrival::NO_EDGE {
                self.edges[edge as usize] -= 1;
            }
        }
        let above = self.way.last().map_or(NONE, |above| above.place);
        let start = self.steps.len();
        self.branches.push(Branch { place: start as u32, above, entry });
        let mut caller = common.checked_sub(1).map_or(NONE, |before| steps[before] >> 1);
        for &step in &steps[common..] {
            let (step, place) = (Step(step), self.steps.len());
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
            self.way.push(Above { place: place as u32, entry, has_changes: false });
            caller = frame;
        }
        self.begins.resize(self.steps.len().div_ceil(64), 0);
        self.begins[start / 64] |= 1 << (start % 64);
    }

    /// Notes that a frame on the way is inlined from this entry on, or no longer.
    #[cold]
    fn change(&mut self, depth: usize, entry: u32, before: Step, now: Step) {
        let above = &mut self.way[depth];
        if !above.has_changes {
            above.has_changes = true;
            self.changes.push((above.place, above.entry, !before.is_inlined()));
            self.steps[above.place as usize] = Step(now.0 | 1);
        }
        self.changes.push((above.place, entry, !now.is_inlined()));
    }

    /// What it takes with a stack more of so many frames: also chains that are not made yet, of which there are at most two
    /// an entry.
    fn bytes_with(&self, frames: usize) -> usize {
        (self.steps.len() + frames) * (size_of::<Step>() + size_of::<Arrival>())
            + self.way.len().max(frames) * size_of::<Above>()
            + self.branches.len() * (size_of::<Branch>() + 2 * size_of::<Chain>())
            + self.changes.len() * size_of::<(u32, u32, bool)>()
            + self.edges.len() * 32
    }

    /// Pieces that follow each other, as one with so many places.
    fn joined(mut pieces: Vec<Growing>, places: usize) -> Growing {
        // Edges have their numbers in the order in which they come.
        let mut calls = std::mem::replace(&mut pieces[0].calls, Calls::below(0));
        let mut number = |pair: &(u32, u32)| calls.id(pair.0, pair.1) as u32;
        let edges: Vec<Vec<u32>> =
            pieces.iter().map(|piece| paced(piece.calls.pairs()).map(&mut number).collect()).collect();
        let (mut way, mut offset): (Vec<Above>, usize) = (Vec::new(), 0);
        let mut found = Vec::with_capacity(pieces.len());
        for (piece, edges) in pieces.into_iter().zip(edges) {
            let joint = Joint { outer: way, offset, edges };
            way = piece.way.iter().map(|above| joint.above(above)).collect();
            offset += piece.steps.len() - piece.outer;
            found.push((piece, joint));
        }
        // The first piece is as it was.
        let later: Vec<_> = found.iter_mut().skip(1).collect();
        parallel::each(later, |(piece, joint)| joint.rename(piece));
        let mut all = Growing { calls, way, ..Growing::new(0) };
        all.steps.reserve_exact(places);
        all.arrivals.reserve_exact(places);
        all.begins.resize(places.div_ceil(64), 0);
        for (piece, joint) in paced(found) {
            let Growing { steps, arrivals, begins, branches, changes, outer, .. } = piece;
            for (i, &word) in paced(begins.iter().enumerate()) {
                let mut word = word;
                while word != 0 {
                    let place = joint.place(i as u32 * 64 + word.trailing_zeros()) as usize;
                    all.begins[place / 64] |= 1 << (place % 64);
                    word &= word - 1;
                }
            }
            // Those of an earlier piece say inlined, too, if they are from here on.
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

    /// The chains, and what stands behind the last.
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
                // A chain ends where the next one begins.
                let ends_at = |chain: usize| chains.get(chain + 1).map_or(start, |next: &Chain| next.start) - 1;
                let mut ended = Vec::new();
                while let Some(&chain) = open.last()
                    && ends_at(chain) != above
                {
                    ended.push(chain);
                    open.pop();
                }
                ended.into_iter().for_each(|chain| chains[chain].end = number as u32);
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

/// How the numbers of a piece become those of all.
struct Joint {
    /// The way to the entry before it: the first places.
    outer: Vec<Above>,
    /// How many places are before its own.
    offset: usize,
    /// By edge.
    edges: Vec<u32>,
}

impl Joint {
    fn place(&self, place: u32) -> u32 {
        match self.outer.get(place as usize) {
            Some(above) => above.place,
            None => place - self.outer.len() as u32 + self.offset as u32,
        }
    }

    /// A place on the way.
    fn above(&self, above: &Above) -> Above {
        match self.outer.get(above.place as usize) {
            Some(outer) => Above { has_changes: outer.has_changes || above.has_changes, ..*outer },
            None => Above { place: self.place(above.place), ..*above },
        }
    }

    fn rename(&self, piece: &mut Growing) {
        for arrival in paced(&mut piece.arrivals) {
            if arrival.edge() != Arrival::NO_EDGE {
                let edge = self.edges[arrival.edge() as usize];
                *arrival = Arrival::new(edge, arrival.is_first_edge(), arrival.is_first_frame());
            }
        }
        for Branch { place, above, .. } in paced(&mut piece.branches) {
            *place = self.place(*place);
            *above = if *above == NONE { NONE } else { self.place(*above) };
        }
        // What an earlier piece has noted of a place is said there.
        let outer = |place: u32| self.outer.get(place as usize);
        piece
            .changes
            .retain(|&(place, entry, _)| entry != NONE || outer(place).is_some_and(|above| !above.has_changes));
        for (place, entry, _) in paced(&mut piece.changes) {
            *entry = if *entry == NONE { outer(*place).map_or(NONE, |above| above.entry) } else { *entry };
            *place = self.place(*place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::order::Order;
    use super::super::build::Entries;
    use super::Growing;

    /// All that a tree is made of.
    type Parts = (Vec<(u32, u32)>, Vec<u64>, Vec<(u32, u32, u32)>, Vec<(u32, u32, bool)>, Vec<(u32, u32)>);

    fn parts(mut of: Growing) -> Parts {
        of.changes.sort_unstable();
        let steps = of.steps.iter().zip(&of.arrivals).map(|(step, arrival)| (step.0, arrival.0)).collect();
        let branches = of.branches.iter().map(|branch| (branch.place, branch.above, branch.entry)).collect();
        (steps, of.begins, branches, of.changes, of.calls.into_pairs())
    }

    #[test]
    fn pieces_grow_to_the_tree_of_all_entries() {
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
            let order = Order::new(3, 1, |entry| entries.steps(entry)).sorted(entries.len());
            let grow =
                |at_a_time: usize| Growing::grow_in_pieces(&entries, &order, 3, usize::MAX, at_a_time).map(parts);
            let wanted = grow(usize::MAX);
            changed += wanted.as_ref().map_or(0, |wanted| wanted.3.len());
            for at_a_time in [1, 2, 3, 7, 30] {
                assert!(grow(at_a_time) == wanted, "{n} entries, {at_a_time} at a time");
            }
        }
        assert!(changed > 1000);
    }

    #[test]
    fn what_has_no_room_does_not_grow() {
        let mut entries = Entries::new(1, usize::MAX);
        for i in 0..100u32 {
            entries.number(u128::from(i), &[2 * i, 2, 4, 6]);
        }
        let order: Vec<u32> = (0..100).collect();
        let grows = |room, at_a_time| Growing::grow_in_pieces(&entries, &order, 100, room, at_a_time).is_some();
        for at_a_time in [10, 100] {
            assert!(grows(1 << 20, at_a_time) && !grows(1 << 10, at_a_time), "{at_a_time} at a time");
        }
        let least = (1..1 << 20).find(|&room| grows(room, 100)).unwrap_or(0);
        assert!(!grows(least, 10));
        let grown = |some| Growing::grow_in_some(&entries, &order, 100, least, some).map(parts);
        assert!(grown(10).is_some() && grown(10) == grown(100));
    }
}
