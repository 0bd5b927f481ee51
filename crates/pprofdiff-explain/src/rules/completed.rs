//! A cause that names a function whose other stacks changed as well. The search attributes to a cause the stacks that
//! explain most, which may be a part of the function, such as its own cost above rewritten code. A sentence about the
//! function must state the change of all of its stacks.
//!
//! A compiler may inline a callee into a function, so that the callee's cost becomes the function's own cost. Such a change
//! of the own cost is stated together with the callees, or listed as a move if the sum did not change.

use super::{Find, Findings, Rule};
use crate::account::{Books, CauseEntry};
use crate::attribution::{CauseKind, Description};
use crate::evidence::sets::SetKey;
use crate::thresholds::{
    FACTOR_OF_LEFTOVER, MAX_DIFFERENCE_FROM_NAMED, MAX_EXCHANGED_PART, MIN_PART_MOVED_FROM_CALLEES,
    MIN_PART_OF_INLINED_CALLEE, MIN_PART_OF_LISTED_CALLEE,
};
use pprofdiff::shared::statistics::counts::LEVEL;
use pprofdiff_profile::random::HashSet;
use pprofdiff_profile::short_lists::sort_by;

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
        let absorbed = books.absorbed_callee(&entry).filter(|absorbed| {
            let mut others = open.iter().chain(&completed).filter(|other| !absorbed.is_of_exchange(other));
            !others.any(|other| books.is_inside(other, absorbed.caller))
        });
        if let Some(absorbed) = &absorbed {
            open.retain(|other| !absorbed.is_of_exchange(other));
            completed.retain(|other| !absorbed.is_of_exchange(other));
        }
        let other_rows: HashSet<u32> = open.iter().chain(&completed).flat_map(|other| &other.rows).copied().collect();
        match absorbed {
            Some(absorbed) => {
                let whole = books.with_callees(entry, &other_rows);
                findings.absorbed.extend(whole.is_none().then_some(absorbed));
                completed.extend(whole);
            }
            None => completed.extend(books.completed(entry, &other_rows)),
        }
    }
    completed.reverse();
    for i in 0..completed.len() {
        let excluded = books.excluded_functions(&completed, i);
        let cause = &mut completed[i];
        cause.others.extend(excluded);
        cause.others.sort_unstable();
        cause.others.dedup();
    }
    // A small rest of a function belongs to the remainder.
    let [base, new] = books.rows.total();
    let least = FACTOR_OF_LEFTOVER * books.min_effect * (books.scale * base + new) / 2.0;
    completed.retain(|cause| cause.others.is_empty() || books.delta(cause.values).abs() >= least);
    completed.iter_mut().for_each(|cause| books.list_callees_of_wrapper(cause));
    findings.causes = completed;
}

/// A callee whose cost moved into its caller's own cost, or out of it.
pub(crate) struct AbsorbedCallee {
    pub caller: u32,
    pub callee: u32,
    /// The side that calls it, or calls it more.
    pub side: usize,
    /// The callee's cost below the caller, in all runs of this side.
    pub value: f64,
    /// The caller's own cost and the callee's cost below it together, by side, in all runs of the side.
    pub cost: [f64; 2],
}

impl AbsorbedCallee {
    /// Returns true for a cause that is about the same exchange.
    fn is_of_exchange(&self, cause: &CauseEntry) -> bool {
        let subject = &cause.subject;
        (subject.caller, subject.function) == (Some(self.caller), Some(self.callee))
            || (subject.function, subject.callee) == (Some(self.caller), Some(self.callee))
    }
}

impl Books<'_> {
    /// Returns the functions of other causes whose stacks match the name of a cause. The search attributed these stacks to
    /// the other causes before this cause got the stacks of its whole function.
    fn excluded_functions(&self, causes: &[CauseEntry], cause: usize) -> Vec<u32> {
        let subject = &causes[cause].subject;
        let is_whole = (subject.caller, subject.callee) == (None, None) && subject.kind != CauseKind::Own;
        let Some(function) = subject.function.filter(|_| is_whole && subject.label.is_none()) else {
            return Vec::new();
        };
        let others = causes.iter().enumerate().filter(|(other, _)| *other != cause);
        let below = others.filter(|(_, other)| self.is_inside(other, function));
        below.filter_map(|(_, other)| other.subject.function.filter(|&other| other != function)).collect()
    }

    /// Returns true if a cause has stacks with this function.
    fn is_inside(&self, cause: &CauseEntry, function: u32) -> bool {
        cause.rows.iter().any(|&row| self.rows.stack(row as usize).contains(&function))
    }

    /// Returns the callee whose cost became a function's own cost, or the reverse, as inlining does. The own cost changed,
    /// and callees that (nearly) appeared or disappeared below the function changed in the opposite direction, by most of
    /// that amount. If there are several such callees, returns the one with the largest change.
    fn absorbed_callee(&self, entry: &CauseEntry) -> Option<AbsorbedCallee> {
        let subject = &entry.subject;
        // The own cost of a function that had none may be described as an added call.
        let is_own =
            matches!(self.sets.sets[entry.set].key, SetKey::Own(_) | SetKey::Leaf(_)) && entry.parts.is_empty();
        let caller = subject.function.filter(|_| is_own)?;
        let own = self.delta(entry.values);
        let is_exchanged = |callee: &u32, values: [f64; 2]| {
            let ([base, new], change) = ([values[0] * self.scale, values[1]], self.delta(values));
            !self.rows.is_system(*callee)
                && change * own < 0.0
                && change.abs() > MIN_PART_OF_INLINED_CALLEE * base.max(new)
        };
        let callees = self.callees_in_table(caller, None);
        let exchanged: Vec<(u32, [f64; 2])> = callees
            .into_iter()
            .filter_map(|(callee, values)| Some((callee.filter(|callee| is_exchanged(callee, values))?, values)))
            .collect();
        let change: f64 = exchanged.iter().map(|(_, values)| self.delta(*values).abs()).sum();
        if change <= MIN_PART_MOVED_FROM_CALLEES * own.abs() {
            return None;
        }
        let size = |values: [f64; 2]| self.delta(values).abs();
        let (callee, values) =
            exchanged.into_iter().max_by(|a, b| size(a.1).total_cmp(&size(b.1)).then(b.0.cmp(&a.0)))?;
        let cost = [0, 1].map(|side| entry.values[side] + values[side]);
        let side = usize::from(own < 0.0);
        Some(AbsorbedCallee { caller, callee, side, value: values[side], cost })
    }

    /// Lists the other callees of a wrapper, because the sentence about a wrapper names only the function behind it.
    fn list_callees_of_wrapper(&self, cause: &mut CauseEntry) {
        let Some(function) = cause.subject.function.filter(|_| cause.parts.is_empty()) else { return };
        let Some(&wrapped) = self.wrapped.get(&function) else { return };
        let change = self.delta(cause.values);
        let others = self.callees_in_table(function, None).into_keys().flatten().filter(|&callee| callee != wrapped);
        let values = others.map(|callee| (callee, self.uncut.foreground_cost(callee, function)));
        let is_large =
            |values: [f64; 2]| self.delta(values) * change.signum() > MIN_PART_OF_LISTED_CALLEE * change.abs();
        let mut callees: Vec<(u32, [f64; 2])> = values.filter(|(_, values)| is_large(*values)).collect();
        sort_by(&mut callees, |a, b| self.delta(b.1).abs().total_cmp(&self.delta(a.1).abs()).then(a.0.cmp(&b.0)));
        let all = || Description { caller: Some(function), ..Description::all(CauseKind::Calls) };
        let part = |(callee, values)| (Description { function: Some(callee), ..all() }, values);
        cause.parts = callees.into_iter().map(part).collect();
    }

    /// Returns the change of a function with its callees, as a cause. Returns `None` if chance explains this change, or
    /// if it has no name.
    fn with_callees(&self, entry: CauseEntry, other_rows: &HashSet<u32>) -> Option<CauseEntry> {
        let function = entry.subject.function?;
        let all = (0u32..).zip(&self.rows.rows).filter(|(row, data)| !data.background && !other_rows.contains(row));
        let rows: Vec<u32> =
            all.filter(|(row, _)| self.rows.stack(*row as usize).contains(&function)).map(|(row, _)| row).collect();
        let (values, score) = (self.sum(&rows), self.score(entry.set, &rows));
        if score < LEVEL {
            return None;
        }
        let subject = Description { function: Some(function), ..Description::all(CauseKind::Calls) };
        let mut whole = CauseEntry { subject, values, score, rows, ..entry };
        whole.parts = self.plain_callees(&whole);
        Some(whole)
    }

    /// Returns a cause with all stacks that its name covers, except for the rows of other causes. Returns a function's
    /// own cost, labels and replacements unchanged. Returns `None` if the whole does not qualify as a cause.
    pub(crate) fn completed(&self, entry: CauseEntry, other_rows: &HashSet<u32>) -> Option<CauseEntry> {
        let subject = &entry.subject;
        // A replacement is about two calls, not about all of the caller.
        let is_of_function = subject.label.is_none() && subject.kind != CauseKind::Own && !entry.is_replacement();
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
        // The own cost of a function with nested callees lacks the callees that did not change, so its ratio is wrong even
        // if its change is right.
        let was_own = matches!(self.sets.sets[entry.set].key, SetKey::Own(_) | SetKey::Leaf(_));
        let is_near = (whole - change).abs() <= MAX_DIFFERENCE_FROM_NAMED * change.abs();
        if is_near && !was_own {
            return Some(entry);
        }
        // The function was chosen for its strongest part, so one test decides whether the whole changed as well.
        if whole * change <= 0.0 || self.score(entry.set, &rows) < LEVEL {
            return is_near.then_some(entry);
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
