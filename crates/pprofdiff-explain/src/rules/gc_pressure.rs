//! Attributes the cost of garbage collection to the causes that create garbage.

use super::{Find, Findings, Rule};
use crate::account::{Books, CauseEntry};
use crate::evidence::rows::StackRows;
use crate::thresholds::{MIN_CHANGE_OF_HEAP, MIN_PART_OF_GARBAGE};
use pprofdiff::shared::statistics::counts::LEVEL;
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::random::HashMap;

pub(super) const RULE: Rule = Rule {
    name: "gc_pressure",
    needs: "a runtime whose allocator and collector are known",
    says: "\"plus about N of garbage collection\"",
    find: Find::Causes(find),
};

fn find(books: &Books<'_>, findings: &mut Findings) {
    let garbage = books.garbage_of(&findings.causes);
    findings.causes.iter_mut().zip(garbage).for_each(|(cause, garbage)| cause.garbage = garbage);
}

impl Books<'_> {
    /// Returns the cost of garbage collection that counts as a consequence, by side.
    pub(crate) fn garbage(&self) -> [f64; 2] {
        let collects = |row: &u32| {
            self.rows.rows[*row as usize].background && self.rows.has(*row as usize, |class| class.collects)
        };
        self.sum(&(0..self.rows.rows.len() as u32).filter(collects).collect::<Vec<_>>())
    }

    /// Returns each cause's share in the change of garbage collection, summed over all runs of the new side. The shares
    /// follow the change of allocations. All are `None` if allocations changed in the opposite direction, or too little
    /// to tell. A cause's share is `None` if it has at most [`MIN_PART_OF_GARBAGE`] of the change of allocations. Their
    /// sum never exceeds the change of garbage collection.
    fn garbage_of(&self, entries: &[CauseEntry]) -> Vec<Option<f64>> {
        let collected = self.delta(self.garbage());
        let allocated = match self.heap {
            Some(heap) => self.allocated_in(heap, entries),
            None => self.allocated_here(entries),
        };
        let Some((all, parts)) = allocated.filter(|(all, _)| all * collected > 0.0) else {
            return vec![None; entries.len()];
        };
        let parts: Vec<f64> = parts.iter().map(|part| part / all).collect();
        let given = parts.iter().filter(|part| **part > 0.0).sum::<f64>().max(1.0);
        let garbage = |part: f64| (part > MIN_PART_OF_GARBAGE).then(|| collected * part / given);
        parts.into_iter().map(garbage).collect()
    }

    /// Returns the change of the time that is spent on allocating, and each cause's part of this change. Returns `None`
    /// if the change is within chance.
    fn allocated_here(&self, entries: &[CauseEntry]) -> Option<(f64, Vec<f64>)> {
        let allocates = |row: &u32| self.rows.has(*row as usize, |class| class.allocates);
        let open = (0..self.rows.rows.len() as u32).filter(|&row| !self.rows.rows[row as usize].background);
        let all: Vec<u32> = open.filter(allocates).collect();
        let allocated = |entry: &CauseEntry| {
            let rows: Vec<u32> = entry.rows.iter().copied().filter(allocates).collect();
            self.delta(self.sum(&rows))
        };
        let is_sure = self.deviance_of(&all, self.search.tau * self.search.tau) > LEVEL;
        is_sure.then(|| (self.delta(self.sum(&all)), entries.iter().map(allocated).collect()))
    }

    /// Returns the change of allocations per run in heap profiles of the same runs, and each cause's part of this
    /// change. A stack with several causes counts for the innermost cause. Returns `None` if the heaps differ by at
    /// most [`MIN_CHANGE_OF_HEAP`].
    fn allocated_in(&self, heap: &StackRows, entries: &[CauseEntry]) -> Option<(f64, Vec<f64>)> {
        // `rows` have the base's names on both sides. In the heap profiles, each side has its own names.
        let text = |frame: u32| self.rows.names[frame as usize].text.as_ref();
        let base_names: HashMap<&str, &str> = self.renamed.iter().map(|(&old, &new)| (text(new), text(old))).collect();
        let mut numbers: HashMap<&str, u32> = HashMap::default();
        let mut common_numbers = Vec::with_capacity(heap.names.len());
        for name in checkpointed(&heap.names) {
            let next = numbers.len() as u32;
            let key = base_names.get(&*name.text).copied().unwrap_or(&name.text);
            common_numbers.push(*numbers.entry(key).or_insert(next));
        }
        let number = |frame: u32| numbers.get(text(frame)).copied();
        // The caller, if the cause is a single call, and the function.
        let calls: Vec<Option<(Option<u32>, u32)>> = entries
            .iter()
            .map(|entry| {
                let description = &entry.subject;
                let caller = description.caller.map(|caller| number(caller).ok_or(())).transpose().ok()?;
                Some((caller, description.function.filter(|_| description.label.is_none()).and_then(number)?))
            })
            .collect();
        let scale = self.scale * self.rows.runs[0] as f64 / self.rows.runs[1] as f64;
        let per_run = [0, 1].map(|side| 1.0 / heap.runs[side] as f64);
        let (mut all, mut before, mut parts) = (0.0, 0.0, vec![0.0; entries.len()]);
        for (i, row) in checkpointed(heap.rows.iter().enumerate()) {
            let [base, new] = [0, 1].map(|side| row.values[side] * per_run[side]);
            let delta = new - scale * base;
            let stack: Vec<u32> = heap.stack(i).iter().map(|&frame| common_numbers[frame as usize]).collect();
            (all, before) = (all + delta, before + scale * base);
            let place = |call: &Option<(Option<u32>, u32)>| {
                let (caller, function) = (*call)?;
                let is_call = |place: &usize| {
                    let above = place.checked_sub(1).map(|above| stack[above]);
                    stack[*place] == function && caller.is_none_or(|caller| above == Some(caller))
                };
                (0..stack.len()).rev().find(is_call)
            };
            let places = calls.iter().enumerate().filter_map(|(entry, call)| Some((place(call)?, entry)));
            if let Some((_, entry)) = places.max_by_key(|&(place, entry)| (place, std::cmp::Reverse(entry))) {
                parts[entry] += delta;
            }
        }
        (all.abs() > MIN_CHANGE_OF_HEAP * before).then_some((all, parts))
    }
}
