//! A program of which nearly all is one function. That this became cheaper, and that less of everything was done, is the same
//! by its samples.

use super::{Find, Findings, Rule};
use crate::explain::account::{Books, Entry};
use crate::explain::evidence::rows::Kind;
use crate::explain::evidence::sets::Key;
use crate::explain::search::NEARLY_ALL;
use pprofdiff_profile::work::paced;

pub(super) const RULE: Rule = Rule {
    name: "whole",
    needs: "a difference of the totals that is no chance, and that no cause explains",
    says: "either so many times as much work, or the one function costs more; the function alone if the sizes of allocations \
           changed, or its library was rewritten",
    find: Find::Causes(find),
};

/// Of a change of what is allocated, the part that is that of sizes, where it is no change of the amount of work.
const PART_OF_SIZE: f64 = 0.25;

fn find(books: &Books<'_>, findings: &mut Findings) {
    if books.is_given
        || (books.found.ambiguous && !books.is_level)
        || !books.account(&findings.causes).is_of_rest(books.rows.runs)
    {
        return;
    }
    let Some(entry) = books.whole() else { return };
    findings.causes.clear();
    // More work makes more allocations, and none larger, and no level higher; and what was rewritten is no coincidence.
    let size = books.split(&entry).filter(|_| books.rows.kind == Kind::Heap).map_or(0.0, |[_, size, ..]| size);
    match size > PART_OF_SIZE || books.is_rewritten || books.is_level {
        true => findings.causes.push(entry),
        false => findings.suspects.push(entry),
    }
}

impl Books<'_> {
    /// Where the whole changed for certain and no cause says so: the narrowest function of the program that has nearly all of
    /// it. That it did less, and that less was done everywhere, is the same by these samples.
    fn whole(&self) -> Option<Entry> {
        let of_all = self.delta(self.rows.front());
        let is_it = |set: &usize| {
            let of = &self.sets.sets[*set];
            let is_program = of.key.frame().is_some_and(|frame| self.rows.names[frame as usize].class.program);
            let is_function = matches!(of.key, Key::Own(_) | Key::Node(_)) && is_program;
            is_function && of.values[0] > 0.0 && of.values[1] > 0.0 && self.delta(of.values) / of_all > NEARLY_ALL
        };
        let size = |set: usize| self.sets.sets[set].values[0] + self.sets.sets[set].values[1];
        let narrowest = |a: &usize, b: &usize| size(*a).total_cmp(&size(*b)).then(a.cmp(b));
        let set = paced(0..self.sets.len()).filter(is_it).min_by(narrowest)?;
        let candidate = self.attribution.candidate(set, self.delta(self.sets.sets[set].values) / self.scale);
        let rows = candidate.rows.clone();
        self.said(&candidate, rows)
    }
}
