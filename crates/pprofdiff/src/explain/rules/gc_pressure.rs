//! Garbage collection belongs to who makes garbage.

use super::{Find, Findings, Rule};
use crate::explain::account::{Books, Entry};
use crate::statistics::counts::LEVEL;

pub(super) const RULE: Rule = Rule {
    name: "gc_pressure",
    needs: "a runtime of which it is known what collects and what allocates",
    says: "about how much of garbage collection is a cause's, by what it allocates",
    find: Find::Causes(find),
};

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
        let allocates = |row: &u32| self.rows.has(*row as usize, |class| class.allocates);
        let open = (0..self.rows.rows.len() as u32).filter(|&row| !self.rows.rows[row as usize].background);
        let all: Vec<u32> = open.filter(allocates).collect();
        let (of_all, collected) = (self.delta(self.sum(&all)), self.delta(self.garbage()));
        let tau2 = self.found.tau * self.found.tau;
        if of_all * collected <= 0.0 || self.deviance_of(&all, tau2) <= LEVEL {
            return vec![None; entries.len()];
        }
        let of_own = |entry: &Entry| {
            let own: Vec<u32> = entry.rows.iter().copied().filter(allocates).collect();
            self.delta(self.sum(&own)) / of_all
        };
        let parts: Vec<f64> = entries.iter().map(of_own).collect();
        let given = parts.iter().filter(|part| **part > 0.0).sum::<f64>().max(1.0);
        let garbage = |part: f64| (part > MIN_PART_OF_GARBAGE).then(|| collected * part / given);
        parts.into_iter().map(garbage).collect()
    }
}
