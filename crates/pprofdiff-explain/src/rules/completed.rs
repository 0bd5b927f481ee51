//! A cause that names a function whose other stacks changed as well. The search attributes to a cause the stacks that
//! explain most, which may be a part of the function, such as its own cost above rewritten code. A sentence about the
//! function must state the change of all of its stacks.

use super::{Find, Findings, Rule};
use crate::account::{Books, CauseEntry};
use crate::attribution::{CauseKind, Description};
use crate::evidence::sets::SetKey;
use crate::thresholds::{MAX_DIFFERENCE_FROM_NAMED, MAX_EXCHANGED_PART};
use pprofdiff::shared::statistics::counts::LEVEL;
use pprofdiff_profile::random::HashSet;

pub(super) const RULE: Rule = Rule {
    name: "completed",
    needs: "a cause of a function whose stacks outside of the cause changed, too",
    says: "the change of all stacks of the function that belong to no other cause",
    find: Find::Causes(find),
};

fn find(books: &Books<'_>, findings: &mut Findings) {
    let mut completed: Vec<CauseEntry> = Vec::new();
    let mut open = std::mem::take(&mut findings.causes);
    while let Some(entry) = open.pop() {
        let other_rows: HashSet<u32> = open.iter().chain(&completed).flat_map(|other| &other.rows).copied().collect();
        completed.extend(books.completed(entry, &other_rows));
    }
    completed.reverse();
    findings.causes = completed;
}

impl Books<'_> {
    /// Returns a cause with all stacks that its name covers, except for the rows of other causes. Returns a function's
    /// own cost, labels and replacements unchanged. Returns `None` if the whole does not qualify as a cause.
    pub(crate) fn completed(&self, entry: CauseEntry, other_rows: &HashSet<u32>) -> Option<CauseEntry> {
        let subject = &entry.subject;
        // A replacement is about two calls, not about all of the caller.
        let is_replacement = entry.parts.iter().any(|(part, _)| part.kind == CauseKind::Added)
            && entry.parts.iter().any(|(part, _)| part.kind == CauseKind::Removed);
        let is_of_function = subject.label.is_none() && subject.kind != CauseKind::Own && !is_replacement;
        let Some(function) = subject.function.filter(|_| is_of_function) else { return Some(entry) };
        if let Some(caller) = self.felt_by_caller(&entry, function) {
            let all = Description::all(CauseKind::Calls);
            let subject = Description { function: Some(caller), ..all };
            let mut above = CauseEntry { subject, parts: Vec::new(), ..entry };
            above.parts = self.plain_callees(&above);
            return self.completed(above, other_rows);
        }
        let is_named = |stack: &[u32]| match (subject.caller, subject.callee) {
            (_, Some(callee)) => stack.windows(2).any(|call| call == [function, callee]),
            (Some(caller), None) => stack.windows(2).any(|call| call == [caller, function]),
            (None, None) => stack.contains(&function),
        };
        // Most causes are sets of all stacks with their name.
        let is_whole = self.sets.names(entry.set).any(|key| match (*key, subject.caller, subject.callee) {
            (SetKey::Node(frame), None, None) => frame == function,
            (SetKey::Edge(a, b), Some(caller), None) => (a, b) == (caller, function),
            (SetKey::Edge(a, b), _, Some(callee)) => (a, b) == (function, callee),
            _ => false,
        });
        if is_whole {
            return Some(entry);
        }
        let all = (0u32..).zip(&self.rows.rows).filter(|(row, data)| !data.background && !other_rows.contains(row));
        let rows: Vec<u32> =
            all.filter(|(row, _)| is_named(self.rows.stack(*row as usize))).map(|(row, _)| row).collect();
        let (values, change) = (self.sum(&rows), self.delta(entry.values));
        let whole = self.delta(values);
        if (whole - change).abs() <= MAX_DIFFERENCE_FROM_NAMED * change.abs() {
            return Some(entry);
        }
        // The function was chosen for its strongest part, so one test decides whether the whole changed as well.
        if whole * change <= 0.0 || self.score(entry.set, &rows) < LEVEL {
            return None;
        }
        let kind = match subject.kind {
            CauseKind::Added if values[0] > 0.0 => CauseKind::Calls,
            CauseKind::Removed if values[1] > 0.0 => CauseKind::Calls,
            kind => kind,
        };
        let score = self.score(entry.set, &rows);
        Some(CauseEntry { values, score, rows, subject: Description { kind, ..subject.clone() }, ..entry })
    }

    /// Returns the caller of an added or removed call if most of the call's cost was exchanged with other cost of the
    /// caller. Then only the caller's change is true.
    fn felt_by_caller(&self, entry: &CauseEntry, function: u32) -> Option<u32> {
        let is_one_sided = matches!(entry.subject.kind, CauseKind::Added | CauseKind::Removed);
        // The sentence about a wrapper names the function behind it, and so the exchange.
        let is_told = self.wrapped.contains_key(&function);
        let caller = entry.subject.caller.filter(|_| is_one_sided && !is_told && entry.subject.callee.is_none())?;
        let call = self.delta(self.uncut.foreground_cost(function, caller)).abs();
        (self.delta(entry.values).abs() < (1.0 - MAX_EXCHANGED_PART) * call).then_some(caller)
    }
}
