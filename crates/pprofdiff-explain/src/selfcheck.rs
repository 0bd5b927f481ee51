//! The check of an answer before it is given: recomputes from a plain table of both sides what sentences will state, and
//! corrects or drops what the table contradicts. The rules before this module have their own guards, so it should find
//! nothing. It is kept plain for this reason: it knows functions with their costs, and nothing about sets, noise or moves.
//!
//! The table adds up the stacks after functions were renamed, and before frames were removed or stacks were cut.

use std::cell::OnceCell;

use super::account::{CauseEntry, Uncut};
use super::attribution::CauseKind;
use super::evidence::rows::StackRows;
use super::thresholds::{
    MAX_DIFFERENCE_FROM_NAMED, MAX_DIFFERENCE_WITHOUT_OTHERS, MAX_EXCESS_OVER_FUNCTIONS, MIN_CHANGE_OF_NAMED_WHOLE,
};
use pprofdiff_profile::cancellation::checkpointed;

/// The functions of other causes that the amount of a cause excludes.
pub(super) struct ExcludedFunctions {
    /// True if the amount differs visibly from the change of everything that the cause's name covers.
    pub is_partial: bool,
    /// The functions without which a plain table shows the amount. Empty if no such functions are known.
    pub without: Vec<u32>,
    /// The functions without which a plain table comes nearest to the amount.
    pub ignored: Vec<u32>,
}

/// A plain table: the cost of each function on both sides.
pub(super) struct PlainTable<'a> {
    rows: &'a StackRows,
    uncut: &'a Uncut,
    /// By function: its own cost, and its cost with its callees. Most answers need no more than the costs of a few
    /// functions, so all costs are added up on first use.
    all: OnceCell<[Vec<[f64; 2]>; 2]>,
    /// The expected ratio of all new runs to all base runs.
    scale: f64,
}

impl<'a> PlainTable<'a> {
    pub(super) fn new(rows: &'a StackRows, uncut: &'a Uncut, scale: f64) -> PlainTable<'a> {
        PlainTable { rows, uncut, all: OnceCell::new(), scale }
    }

    /// Returns the own costs of all functions, and their costs with callees.
    fn costs(&self) -> [Vec<[f64; 2]>; 2] {
        let n = self.uncut.is_folded.len();
        let (mut flat, mut cum) = (vec![[0.0; 2]; n], vec![[0.0; 2]; n]);
        let mut last = vec![u32::MAX; n];
        for (i, values) in checkpointed((0u32..).zip(&self.uncut.values)) {
            let stack = self.uncut.stack(i as usize);
            let add = |sum: &mut [f64; 2]| *sum = [sum[0] + values[0], sum[1] + values[1]];
            if let Some(&leaf) = stack.last() {
                add(&mut flat[leaf as usize]);
            }
            for &frame in stack {
                // A recursive function counts once per stack.
                if std::mem::replace(&mut last[frame as usize], i) != i {
                    add(&mut cum[frame as usize]);
                }
            }
        }
        [flat, cum]
    }

    /// Returns the change at equal work.
    fn change(&self, [base, new]: [f64; 2]) -> f64 {
        new - self.scale * base
    }

    /// Returns the cost that a cause's sentence names: of a function, of one caller's calls of it, or of its calls of one
    /// callee. `None` for a label.
    fn named_cost(&self, entry: &CauseEntry) -> Option<[f64; 2]> {
        let subject = &entry.subject;
        let function = subject.function.filter(|_| subject.label.is_none())?;
        Some(match (subject.callee, subject.caller) {
            (Some(callee), _) => self.uncut.function_cost(callee, Some(function)),
            (None, Some(caller)) => self.uncut.function_cost(function, Some(caller)),
            (None, None) => self.uncut.function_cost(function, None),
        })
    }

    /// Compares the amount of a cause with the change of everything that its name covers, which other causes may be below.
    pub(super) fn excluded(&self, entry: &CauseEntry) -> ExcludedFunctions {
        // Later rules may have added stacks of another cause's function to this cause.
        let is_own = |frame: &u32| entry.rows.iter().any(|&row| self.rows.stack(row as usize).contains(frame));
        let is_excluded = |frame: &u32| self.is_recorded(*frame) && !is_own(frame);
        let others: Vec<u32> = entry.others.iter().copied().filter(is_excluded).collect();
        let is_of_function = entry.subject.kind != CauseKind::Own && !entry.is_replacement();
        let stated = self.change(entry.values);
        let difference = |excluded: &[u32]| {
            let named = self.uncut.named_cost(&entry.subject, excluded)?;
            Some((self.change(named) - stated).abs() / stated.abs())
        };
        let Some((whole, rest)) = difference(&[]).zip(difference(&others)).filter(|_| is_of_function) else {
            return ExcludedFunctions { is_partial: false, without: Vec::new(), ignored: others };
        };
        let is_partial = !entry.others.is_empty() && whole > MAX_DIFFERENCE_FROM_NAMED;
        let is_listed = entry.parts.iter().any(|(part, _)| part.function.is_some_and(|part| others.contains(&part)));
        let is_true = is_partial && rest <= MAX_DIFFERENCE_WITHOUT_OTHERS && !is_listed;
        let without = if is_true { others.clone() } else { Vec::new() };
        ExcludedFunctions { is_partial, without, ignored: if rest <= whole { others } else { Vec::new() } }
    }

    /// Corrects a cause until the table agrees with its sentence. Returns `None` if the cause changed more than every
    /// function in its stacks: such a change is an artefact of the search. Adds the number of
    /// corrections to `contradictions`.
    pub(super) fn checked(&self, mut entry: CauseEntry, contradictions: &mut usize) -> Option<CauseEntry> {
        let Some(named) = self.named_cost(&entry) else { return Some(entry) };
        let change = self.change(entry.values);
        let is_larger = |largest: f64| change.abs() > MAX_EXCESS_OVER_FUNCTIONS * largest;
        if is_larger(self.change(named).abs()) && is_larger(self.largest_change(&entry)) {
            *contradictions += 1;
            return None;
        }
        self.restate_own_cost(&mut entry, contradictions);
        let kind = self.true_kind(&entry, named, change);
        *contradictions += usize::from(kind != entry.subject.kind && entry.subject.kind != CauseKind::Calls);
        entry.subject.kind = kind;
        // A part that did not change explains nothing.
        entry.parts.retain(|(_, values)| self.change(*values) != 0.0);
        Some(entry)
    }

    /// Gives a function's own cost the values of the table if its stacks have others: some were cut because their cost
    /// moved.
    fn restate_own_cost(&self, entry: &mut CauseEntry, contradictions: &mut usize) {
        let own = entry.subject.function.filter(|_| entry.subject.kind == CauseKind::Own && entry.parts.is_empty());
        let Some(function) = own else { return };
        let whole = self.own_cost(function);
        let (stated, change) = (self.change(entry.values), self.change(whole));
        let is_along = change * stated.signum() >= MIN_CHANGE_OF_NAMED_WHOLE * stated.abs();
        let is_less = stated.abs() > (1.0 + MAX_DIFFERENCE_FROM_NAMED) * change.abs();
        if is_along && is_less && entry.subject.caller.is_none() {
            *contradictions += 1;
            entry.values = whole;
        }
    }

    /// Corrects causes whose change is larger than the change of their whole function: they get the values of the function.
    /// Such a cause lacks stacks that were cut, because their cost moved. A cause keeps its values if another cause is in the
    /// same function, because both together may change less than one of them.
    pub(super) fn restate_excess(&self, causes: &mut [CauseEntry], contradictions: &mut usize) {
        for i in 0..causes.len() {
            let entry = &causes[i];
            let Some(function) = entry.subject.function.filter(|_| entry.subject.caller.is_none()) else { continue };
            let Some(named) = self.named_cost(entry).filter(|_| entry.subject.kind != CauseKind::Own) else { continue };
            let (stated, change) = (self.change(entry.values), self.change(named));
            let is_along = change * stated.signum() >= MIN_CHANGE_OF_NAMED_WHOLE * stated.abs();
            let is_inside = |row: &u32| self.rows.stack(*row as usize).contains(&function);
            let is_alone = || causes.iter().enumerate().all(|(j, other)| j == i || !other.rows.iter().any(is_inside));
            if is_along && stated.abs() > change.abs() * MAX_EXCESS_OVER_FUNCTIONS && is_alone() {
                *contradictions += 1;
                causes[i].values = named;
            }
        }
    }

    /// Returns the own cost of a function, with the system functions that it calls.
    fn own_cost(&self, function: u32) -> [f64; 2] {
        let is_own = |stack: &[u32]| stack.iter().rev().find(|&&frame| !self.rows.is_system(frame)) == Some(&function);
        self.uncut.sum(function, |stack| is_own(stack) || stack.last() == Some(&function))
    }

    /// Returns the kind that the table shows.
    fn true_kind(&self, entry: &CauseEntry, named: [f64; 2], change: f64) -> CauseKind {
        let subject = &entry.subject;
        match subject.kind {
            CauseKind::Added if named[0] > 0.0 => CauseKind::Calls,
            CauseKind::Removed if named[1] > 0.0 => CauseKind::Calls,
            CauseKind::Own | CauseKind::Calls if self.is_absent(entry, named, 0) => CauseKind::Added,
            CauseKind::Own | CauseKind::Calls if self.is_absent(entry, named, 1) => CauseKind::Removed,
            CauseKind::Own if !self.is_own(subject.function, change) => CauseKind::Calls,
            kind => kind,
        }
    }

    /// Returns false for a function that some stacks lack, because they end at the program's last function.
    fn is_recorded(&self, frame: u32) -> bool {
        !(self.rows.runtime.trim_library_leaves && self.rows.is_system(frame))
    }

    /// Returns true if a function without values on a side is certainly absent there: no stack was cut above it.
    fn is_absent(&self, entry: &CauseEntry, named: [f64; 2], side: usize) -> bool {
        let last = entry.subject.callee.or(entry.subject.function);
        let is_empty = named[side] <= 0.0 && entry.values[side] <= 0.0 && entry.parts.is_empty();
        is_empty && last.is_some_and(|frame| self.is_recorded(frame) && !self.rows.may_have(frame, side))
    }

    /// Returns true if the function's own cost, with the system functions that it calls, changed with the cause.
    fn is_own(&self, function: Option<u32>, change: f64) -> bool {
        let Some(function) = function else { return false };
        let is_along =
            |values: [f64; 2]| self.change(values) * change.signum() >= MIN_CHANGE_OF_NAMED_WHOLE * change.abs();
        is_along(self.uncut.sum(function, |stack| stack.last() == Some(&function))) || is_along(self.own_cost(function))
    }

    /// Returns the largest change of a function in a cause's stacks: of its own cost, or of its cost with callees.
    fn largest_change(&self, entry: &CauseEntry) -> f64 {
        let all = self.all.get_or_init(|| self.costs());
        let mut largest = 0.0f64;
        for &row in &entry.rows {
            for &frame in self.rows.stack(row as usize) {
                let [flat, cum] = [0, 1].map(|number| self.change(all[number][frame as usize]).abs());
                largest = largest.max(flat).max(cum);
            }
        }
        largest
    }
}

/// Returns true if cost may have moved between these functions: inside the function that contains both, if one does, the
/// first costs more and the second less, at equal work.
pub(super) fn has_moved(uncut: &Uncut, scale: f64, gained: u32, lost: u32, inside: Option<u32>) -> bool {
    let change = |function: u32| {
        let [base, new] = uncut.sum(function, |stack| inside.is_none_or(|inside| stack.contains(&inside)));
        new - scale * base
    };
    (Some(gained) == inside || change(gained) > 0.0) && (Some(lost) == inside || change(lost) < 0.0)
}
