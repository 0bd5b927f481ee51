//! Garbage collection belongs to who makes garbage.

use super::{Find, Findings, Rule};
use crate::explain::account::{Books, Entry};
use crate::explain::evidence::rows::Rows;
use crate::statistics::counts::LEVEL;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::work::paced;

pub(super) const RULE: Rule = Rule {
    name: "gc_pressure",
    needs: "a runtime of which it is known what collects and what allocates",
    says: "about how much of garbage collection is a cause's, by what it allocates, in the heap profiles if they are given",
    find: Find::Causes(find),
};

/// Heaps that differ by less are alike.
const MIN_CHANGE_OF_HEAP: f64 = 0.02;

/// Garbage is a cause's from this part of what is allocated more or less.
const MIN_PART_OF_GARBAGE: f64 = 0.1;

fn find(books: &Books<'_>, findings: &mut Findings) {
    let garbage = books.garbage_of(&findings.causes);
    findings.causes.iter_mut().zip(garbage).for_each(|(cause, garbage)| cause.garbage = garbage);
}

impl Books<'_> {
    /// What garbage collection costs, where it answers to causes elsewhere.
    pub(in crate::explain) fn garbage(&self) -> [f64; 2] {
        let collects = |row: &u32| {
            self.rows.rows[*row as usize].background && self.rows.has(*row as usize, |class| class.collects)
        };
        self.sum(&(0..self.rows.rows.len() as u32).filter(collects).collect::<Vec<_>>())
    }

    /// How much of the change of garbage collection is each cause's, in all runs of the new side: as much of it as of the
    /// change of what is allocated. Nothing where that went the other way, or where it is no more than chance; together no
    /// more than there is.
    fn garbage_of(&self, entries: &[Entry]) -> Vec<Option<f64>> {
        let collected = self.delta(self.garbage());
        let allocated = match self.heap {
            Some(heap) => self.allocated_in(heap, entries),
            None => self.allocated_here(entries),
        };
        let Some((of_all, of_each)) = allocated.filter(|(of_all, _)| of_all * collected > 0.0) else {
            return vec![None; entries.len()];
        };
        let parts: Vec<f64> = of_each.iter().map(|own| own / of_all).collect();
        let given = parts.iter().filter(|part| **part > 0.0).sum::<f64>().max(1.0);
        let garbage = |part: f64| (part > MIN_PART_OF_GARBAGE).then(|| collected * part / given);
        parts.into_iter().map(garbage).collect()
    }

    /// The change of the time that is spent on allocating, and each cause's part of it.
    fn allocated_here(&self, entries: &[Entry]) -> Option<(f64, Vec<f64>)> {
        let allocates = |row: &u32| self.rows.has(*row as usize, |class| class.allocates);
        let open = (0..self.rows.rows.len() as u32).filter(|&row| !self.rows.rows[row as usize].background);
        let all: Vec<u32> = open.filter(allocates).collect();
        let of_own = |entry: &Entry| {
            let own: Vec<u32> = entry.rows.iter().copied().filter(allocates).collect();
            self.delta(self.sum(&own))
        };
        let is_sure = self.deviance_of(&all, self.found.tau * self.found.tau) > LEVEL;
        is_sure.then(|| (self.delta(self.sum(&all)), entries.iter().map(of_own).collect()))
    }

    /// The change of what heap profiles of the same runs say was allocated, in a run, and each cause's part of it: of stacks
    /// in several, that of the innermost.
    fn allocated_in(&self, heap: &Rows, entries: &[Entry]) -> Option<(f64, Vec<f64>)> {
        // Both sides' names are those of the base here; in the heaps each side has its own.
        let text = |frame: u32| self.rows.names[frame as usize].text.as_ref();
        let of_base: HashMap<&str, &str> = self.renamed.iter().map(|(&old, &new)| (text(new), text(old))).collect();
        let mut numbers: HashMap<&str, u32> = HashMap::default();
        let mut of_heap = Vec::with_capacity(heap.names.len());
        for name in paced(&heap.names) {
            let next = numbers.len() as u32;
            let key = of_base.get(&*name.text).copied().unwrap_or(&name.text);
            of_heap.push(*numbers.entry(key).or_insert(next));
        }
        let number = |frame: u32| numbers.get(text(frame)).copied();
        // The caller, if it is about one call, and the function.
        let calls: Vec<Option<(Option<u32>, u32)>> = entries
            .iter()
            .map(|entry| {
                let of = &entry.of;
                let caller = of.caller.map(|caller| number(caller).ok_or(())).transpose().ok()?;
                Some((caller, of.function.filter(|_| of.label.is_none()).and_then(number)?))
            })
            .collect();
        let scale = self.scale * self.rows.runs[0] as f64 / self.rows.runs[1] as f64;
        let per_run = [0, 1].map(|side| 1.0 / heap.runs[side] as f64);
        let (mut all, mut before, mut of_each) = (0.0, 0.0, vec![0.0; entries.len()]);
        for (i, row) in paced(heap.rows.iter().enumerate()) {
            let [base, new] = [0, 1].map(|side| row.values[side] * per_run[side]);
            let delta = new - scale * base;
            let stack: Vec<u32> = heap.stack(i).iter().map(|&frame| of_heap[frame as usize]).collect();
            (all, before) = (all + delta, before + scale * base);
            let place = |call: &Option<(Option<u32>, u32)>| {
                let (caller, function) = (*call)?;
                let is = |at: &usize| {
                    let above = at.checked_sub(1).map(|above| stack[above]);
                    stack[*at] == function && caller.is_none_or(|caller| above == Some(caller))
                };
                (0..stack.len()).rev().find(is)
            };
            let places = calls.iter().enumerate().filter_map(|(entry, call)| Some((place(call)?, entry)));
            if let Some((_, entry)) = places.max_by_key(|&(place, entry)| (place, std::cmp::Reverse(entry))) {
                of_each[entry] += delta;
            }
        }
        (all.abs() > MIN_CHANGE_OF_HEAP * before).then_some((all, of_each))
    }
}
