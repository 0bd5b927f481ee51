//! What is in use, and grew everywhere by one factor. No work makes it so: it is more live data, or a leak in proportion.

use super::{Find, Findings, Rule};
use crate::explain::account::{Books, Entry};
use crate::explain::attribution::{CauseKind, Description};

pub(super) const RULE: Rule = Rule {
    name: "in_use_level",
    needs: "a sample type of what there is: bytes in use, goroutines",
    says: "all of it grew alike",
    find: Find::Causes(find),
};

fn find(books: &Books<'_>, findings: &mut Findings) {
    let level = if books.is_level { books.level(&findings.causes) } else { None };
    findings.causes.extend(level);
}

impl Books<'_> {
    /// Where all of what is in use grew by one factor, that is a cause. The stacks are those that no other cause has.
    fn level(&self, entries: &[Entry]) -> Option<Entry> {
        let mut is_open: Vec<bool> = self.rows.rows.iter().map(|row| !row.background).collect();
        entries.iter().flat_map(|entry| &entry.rows).for_each(|&row| is_open[row as usize] = false);
        // What the search took for causes did not grow as the others did.
        let fits = self.found.fits.iter().flat_map(|fit| self.sets.rows(fit.set));
        fits.for_each(|row| is_open[row as usize] = false);
        let rows: Vec<u32> = (0..self.rows.rows.len() as u32).filter(|&row| is_open[row as usize]).collect();
        let v = self.sum(&rows);
        let of = Description::of_all(CauseKind::Calls);
        // The search took that for the amount of work.
        let is_one = (self.found.scale / self.scale).ln().abs() < 1e-6;
        let entry = Entry { rows, values: v, score: self.found.threshold, ..Entry::of(0, of) };
        (!is_one && v[0] > 0.0 && v[1] > 0.0).then_some(entry)
    }
}
