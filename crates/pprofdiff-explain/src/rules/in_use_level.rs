//! Memory in use (or another level) that grew everywhere by one factor. More work does not raise a level, so there is
//! more live data, or a proportional leak.

use super::{Find, Findings, Rule};
use crate::account::{Books, CauseEntry};
use crate::attribution::{CauseKind, Description};

pub(super) const RULE: Rule = Rule {
    name: "in_use_level",
    needs: "sample types of a state: memory in use, goroutines",
    says: "\"everything grew by the same factor\"",
    find: Find::Causes(find),
};

fn find(books: &Books<'_>, findings: &mut Findings) {
    let level = if books.is_level { books.level(&findings.causes) } else { None };
    findings.causes.extend(level);
}

impl Books<'_> {
    /// Returns a cause if everything in use grew, or shrank, by one factor. Its stacks are the stacks without another
    /// cause.
    fn level(&self, entries: &[CauseEntry]) -> Option<CauseEntry> {
        let mut is_open: Vec<bool> = self.rows.rows.iter().map(|row| !row.background).collect();
        entries.iter().flat_map(|entry| &entry.rows).for_each(|&row| is_open[row as usize] = false);
        // The candidates of the search did not grow like the rest, even if they did not become causes.
        let fits = self.search.fits.iter().flat_map(|fit| self.sets.rows(fit.set));
        fits.for_each(|row| is_open[row as usize] = false);
        let rows: Vec<u32> = (0..self.rows.rows.len() as u32).filter(|&row| is_open[row as usize]).collect();
        let v = self.sum(&rows);
        let description = Description::all(CauseKind::Calls);
        // The search attributed the common growth to the amount of work.
        let is_one = (self.search.scale / self.scale).ln().abs() < 1e-6;
        let entry = CauseEntry { rows, values: v, score: self.search.threshold, ..CauseEntry::new(0, description) };
        (!is_one && v[0] > 0.0 && v[1] > 0.0).then_some(entry)
    }
}
