//! From entries to the tree: ordered by their frames, then chain by chain.

use super::super::edges::Calls;
use super::super::order::Order;
use super::build::Entries;
use super::{Arrival, Chain, Step, Tree};
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::work::paced;

/// Places are numbers, and so are edges, of which there are fewer; two bits are for marks.
const MAX_PLACES: usize = Arrival::NO_EDGE as usize;

/// A place while the frames above it are on the way.
struct Above {
    place: u32,
    /// The entry that it was made for.
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
struct Growing {
    steps: Vec<Step>,
    arrivals: Vec<Arrival>,
    /// A bit for each place: a chain begins there.
    begins: Vec<u64>,
    branches: Vec<Branch>,
    changes: Vec<(u32, u32, bool)>,
    /// The way to the last entry.
    way: Vec<Above>,
    calls: Calls,
    /// How often each frame, and each edge, is on the way.
    frames: Vec<u32>,
    edges: Vec<u32>,
}

impl Tree {
    /// The tree of these entries, `None` where it takes more than `room` bytes. Totals are the caller's to fill in.
    pub(super) fn of_entries(entries: &Entries, n_frames: usize, room: usize) -> Option<Tree> {
        let order = Order::new(n_frames, 1, |entry| entries.steps(entry)).sorted(entries.len());
        let mut growing = Growing {
            steps: Vec::new(),
            arrivals: Vec::new(),
            begins: Vec::new(),
            branches: Vec::new(),
            changes: Vec::new(),
            way: Vec::new(),
            calls: Calls::below(n_frames),
            frames: vec![0; n_frames],
            edges: Vec::new(),
        };
        let mut last: &[u32] = &[];
        for (i, &entry) in paced(order.iter().enumerate()) {
            let steps = entries.steps(entry);
            if growing.bytes_with(steps.len()) > room || growing.steps.len() + steps.len() > MAX_PLACES {
                return None;
            }
            growing.add(last, steps, i as u32);
            last = steps;
        }
        let chains = growing.chains(order.len());
        let Growing { steps, arrivals, calls, mut changes, .. } = growing;
        changes.sort_unstable();
        let (n, n_columns, words) = (order.len(), entries.n_columns, entries.words());
        let mut values = Vec::with_capacity(n * n_columns);
        let mut cancelled = Vec::new();
        for column in 0..n_columns {
            for (i, &entry) in order.iter().enumerate() {
                let value = entries.values[entry as usize * n_columns + column];
                let is_present = entries.present[entry as usize * words + column / 64] >> (column % 64) & 1 != 0;
                if value == 0 && is_present {
                    cancelled.push((column as u32, i as u32));
                }
                values.push(value);
            }
        }
        Some(Tree {
            steps,
            arrivals,
            chains,
            edges: calls.into_pairs(),
            changes,
            n_entries: n,
            values,
            cancelled,
            totals: Vec::new(),
            is_two_sided: false,
        })
    }
}

impl Growing {
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

    /// The chains, and what stands behind the last.
    fn chains(&self, n_entries: usize) -> Vec<Chain> {
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
