//! A small cause inside another one. Both are one cause with the sum of their changes, which is the change that a table
//! shows for the outer function. Otherwise the outer cause would state the change of its other stacks only.

use std::collections::BTreeMap;

use super::{Find, Findings, Rule};
use crate::account::{Books, CauseEntry};
use crate::attribution::{CauseKind, Description};
use crate::thresholds::{MAX_PART_OF_NESTED, MIN_PART_OF_LISTED_CALLEE};
use pprofdiff::shared::ValueKind;
use pprofdiff_profile::short_lists::sort_by;

/// Maximum number of calls below a cause's function until its change splits into several callees.
const MAX_DEPTH_OF_CALLEES: usize = 20;

pub(super) const RULE: Rule = Rule {
    name: "nested",
    needs: "a cause below the function of another cause, with a much smaller change",
    says: "the outer cause, \"including\" its callees with the largest changes",
    find: Find::Causes(find),
};

fn find(books: &Books<'_>, findings: &mut Findings) {
    let causes = &mut findings.causes;
    let size = |entry: &CauseEntry| books.delta(entry.values).abs();
    // Smallest first, so that a chain of nested causes ends in the outermost.
    sort_by(causes, |a, b| size(a).total_cmp(&size(b)));
    let mut inner = 0;
    while inner < causes.len() {
        let is_outer = |outer: &usize| *outer != inner && books.has_nested(&causes[*outer], &causes[inner]);
        // The narrowest outer cause.
        match (0..causes.len()).filter(is_outer).min_by(|a, b| size(&causes[*a]).total_cmp(&size(&causes[*b]))) {
            Some(outer) => {
                let merged = books.with_nested(&causes[outer], &causes[inner]);
                causes[outer] = merged;
                causes.remove(inner);
            }
            None => inner += 1,
        }
    }
}

impl Books<'_> {
    /// Returns true if a cause is small beside another one and all of its stacks are below that cause's function.
    fn has_nested(&self, outer: &CauseEntry, inner: &CauseEntry) -> bool {
        let (None, None, Some(function), Some(_)) =
            (outer.subject.label, inner.subject.label, outer.subject.function, inner.subject.function)
        else {
            return false;
        };
        let is_below = |stack: &[u32]| match (outer.subject.caller, outer.subject.callee) {
            (Some(caller), _) => stack.windows(2).any(|call| call == [caller, function]),
            (None, Some(callee)) => stack.windows(2).any(|call| call == [function, callee]),
            (None, None) => stack.contains(&function),
        };
        // In exact counts, any small change is a cause, and a function's own cost does not contain its callees' changes.
        let is_own_count = self.rows.kind == ValueKind::Counted && outer.subject.kind == CauseKind::Own;
        !is_own_count
            && self.delta(inner.values).abs() < MAX_PART_OF_NESTED * self.delta(outer.values).abs()
            && inner.rows.iter().all(|&row| is_below(self.rows.stack(row as usize)))
    }

    /// Returns the outer cause with the stacks of the inner one, which becomes a part.
    fn with_nested(&self, outer: &CauseEntry, inner: &CauseEntry) -> CauseEntry {
        let mut rows: Vec<u32> = outer.rows.iter().chain(&inner.rows).copied().collect();
        rows.sort_unstable();
        let values = [0, 1].map(|side| outer.values[side] + inner.values[side]);
        let parts = self.plain_callees(outer);
        let others = outer.others.iter().copied().filter(|frame| Some(*frame) != inner.subject.function).collect();
        let score = self.score(outer.set, &rows);
        // The amount now contains stacks of callees, so it exceeds the function's own cost.
        let is_own = outer.subject.kind == CauseKind::Own && self.rows.kind != ValueKind::Delay;
        let kind = if is_own { CauseKind::Calls } else { outer.subject.kind };
        CauseEntry {
            values,
            score,
            others,
            parts,
            rows,
            garbage: outer.garbage,
            ..CauseEntry::new(outer.set, Description { kind, ..outer.subject.clone() })
        }
    }

    /// Returns the callees with the largest changes below a cause's function, as a plain table shows them, largest first.
    /// Callees with small changes are left out. A callee with nearly all of the change explains no more than the function
    /// itself, so its callees take its place.
    pub(crate) fn plain_callees(&self, outer: &CauseEntry) -> Vec<(Description, [f64; 2])> {
        let Some(mut function) = outer.subject.function else { return Vec::new() };
        let mut caller = outer.subject.caller;
        let change = self.delta(outer.values).abs();
        let size = |values: [f64; 2]| self.delta(values).abs();
        let (mut path, mut above) = (vec![function], Vec::new());
        for _ in 0..MAX_DEPTH_OF_CALLEES {
            // `None` is the function's own cost.
            let mut callees: Vec<(Option<u32>, [f64; 2])> =
                self.callees_in_table(function, caller).into_iter().collect();
            callees.retain(|(_, values)| size(*values) > MIN_PART_OF_LISTED_CALLEE * change);
            sort_by(&mut callees, |a, b| size(b.1).total_cmp(&size(a.1)).then(a.0.cmp(&b.0)));
            // In a recursion, the callees' costs contain each other.
            if callees.iter().any(|(callee, _)| callee.is_some_and(|callee| path.contains(&callee))) {
                return above;
            }
            let part = |&(callee, values): &(Option<u32>, [f64; 2])| {
                let description = match callee {
                    Some(_) => {
                        let all = Description::all(CauseKind::Calls);
                        Description { function: callee, caller: Some(function), ..all }
                    }
                    None => Description { function: Some(function), ..Description::all(CauseKind::Own) },
                };
                (description, values)
            };
            above = callees.iter().map(part).collect();
            let [(Some(only), _)] = callees.as_slice() else { return above };
            path.push(*only);
            (caller, function) = (Some(function), *only);
        }
        above
    }

    /// Returns the costs of a function's callees and its own cost (`None`), for all callers or one of them. In a
    /// recursion, the callee of the outermost call has the cost, and calls of the function by itself are one call. The own
    /// cost is left out if other functions are between the calls, because a part of it is below these functions.
    pub(super) fn callees_in_table(&self, function: u32, caller: Option<u32>) -> BTreeMap<Option<u32>, [f64; 2]> {
        let mut by_callee: BTreeMap<Option<u32>, [f64; 2]> = BTreeMap::new();
        let mut is_recursive = false;
        for (stack, v) in self.uncut.stacks_of(function) {
            let is_call = |place: &usize| caller.is_none_or(|caller| *place > 0 && stack[*place - 1] == caller);
            let outermost = (0..stack.len()).filter(|place| stack[*place] == function).find(is_call);
            if let Some(outermost) = outermost {
                let after = (outermost..stack.len()).find(|&place| stack[place] != function).unwrap_or(stack.len());
                is_recursive |= stack[after..].contains(&function);
                let sum = by_callee.entry(stack.get(after).copied()).or_default();
                *sum = [sum[0] + v[0], sum[1] + v[1]];
            }
        }
        if is_recursive {
            by_callee.remove(&None);
        }
        by_callee
    }
}
