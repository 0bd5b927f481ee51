//! A program with nearly all of its cost in one function. Samples alone cannot distinguish "this function became
//! cheaper" from "there was less work".

use super::{Find, Findings, Rule};
use crate::account::{Books, CauseEntry};
use crate::evidence::sets::SetKey;
use crate::thresholds::{MIN_PART_OF_SIZE, MIN_PART_OF_WHOLE_PROGRAM};
use pprofdiff::shared::ValueKind;
use pprofdiff_profile::cancellation::checkpointed;

pub(super) const RULE: Rule = Rule {
    name: "whole",
    needs: "totals that differ beyond noise, without a cause",
    says: "\"Either N times as much work, or ...\"; only the function if sizes of allocations changed or its library was rewritten",
    find: Find::Causes(find),
};

fn find(books: &Books<'_>, findings: &mut Findings) {
    if books.is_given
        || (books.search.ambiguous && !books.is_level)
        || !books.account(&findings.causes).is_of_rest(books.rows.runs)
    {
        return;
    }
    let Some(entry) = books.whole_program() else { return };
    findings.causes.clear();
    // More work causes more allocations, but no larger allocations and no higher level. A rewritten library is unlikely
    // to coincide with a different amount of work.
    let size = books.split(&entry).filter(|_| books.rows.kind == ValueKind::Heap).map_or(0.0, |[_, size, ..]| size);
    match size > MIN_PART_OF_SIZE || books.is_rewritten || books.is_level {
        true => findings.causes.push(entry),
        false => findings.suspects.push(entry),
    }
}

impl Books<'_> {
    /// Returns the narrowest function of the program that has nearly all of the change of the total. It is ambiguous,
    /// because less work everywhere would look the same. Returns `None` if no function that both sides have does, and
    /// if the function's name would be misleading ([`Books::describe`]).
    fn whole_program(&self) -> Option<CauseEntry> {
        let total_change = self.delta(self.rows.front());
        let is_whole = |set: &usize| {
            let set_data = &self.sets.sets[*set];
            let is_program = set_data.key.frame().is_some_and(|frame| self.rows.names[frame as usize].class.program);
            let is_function = matches!(set_data.key, SetKey::Own(_) | SetKey::Node(_)) && is_program;
            is_function
                && set_data.values[0] > 0.0
                && set_data.values[1] > 0.0
                && self.delta(set_data.values) / total_change > MIN_PART_OF_WHOLE_PROGRAM
        };
        let size = |set: usize| self.sets.sets[set].values[0] + self.sets.sets[set].values[1];
        let narrowest = |a: &usize, b: &usize| size(*a).total_cmp(&size(*b)).then(a.cmp(b));
        let set = checkpointed(0..self.sets.len()).filter(is_whole).min_by(narrowest)?;
        let candidate = self.attribution.candidate(set, self.delta(self.sets.sets[set].values) / self.scale);
        let rows = candidate.rows.clone();
        self.describe(&candidate, rows)
    }
}
