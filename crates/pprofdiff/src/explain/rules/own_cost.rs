//! A function's own cost, or that of one function of the language's runtime or library that it calls.

use std::collections::BTreeMap;

use super::{Find, Rule};
use crate::explain::account::Books;
use crate::explain::attribution::{CauseKind, Description};
use crate::explain::evidence::rows::Kind;

pub(super) const RULE: Rule = Rule {
    name: "own_cost",
    needs: "stacks that end in a function, or below it in the runtime alone",
    says: "the function itself costs more, or spends more in one function of the runtime",
    find: Find::Search,
};

/// Of a function's own change, calls are the cause that have more than this part of it.
const MOSTLY: f64 = 0.5;
/// Callees that are named where several changed.
const MAX_CALLEES: usize = 3;

impl Books<'_> {
    /// Where a function's own change is mostly that of one function of the system that it calls, these calls are the cause; if
    /// it is that of several, the function itself costs no more. Who waits for a lock always does so in the system.
    pub(in crate::explain) fn name_callee(&self, of: &mut Description, function: u32, set: usize, rows: &mut Vec<u32>) {
        if self.rows.kind == Kind::Delay {
            return;
        }
        let callee_of = |row: u32| {
            let stack = self.rows.stack(row as usize);
            let at = stack.iter().rposition(|&frame| frame == function)?;
            stack.get(at + 1).copied()
        };
        let change = self.delta(self.sum(rows));
        let mut by_callee: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &row in rows.iter() {
            if let Some(callee) = callee_of(row) {
                by_callee.entry(callee).or_default().push(row);
            }
        }
        let part = |rows: &[u32]| self.delta(self.sum(rows)) / change;
        let all: f64 = by_callee.values().map(|rows| part(rows)).sum();
        if all <= MOSTLY {
            return;
        }
        let most = by_callee.into_iter().map(|(callee, rows)| (part(&rows), callee, rows));
        let most = most.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        of.kind = CauseKind::Calls;
        if let Some((part, callee, own)) = most
            && part > MOSTLY
            && self.is_cause(set, &own)
        {
            (of.callee, of.caller, *rows) = (Some(callee), None, own);
        }
    }

    /// What a function calls in these stacks, the largest change first.
    pub(in crate::explain) fn callees(&self, function: u32, rows: &[u32]) -> Vec<(Description, [f64; 2])> {
        let mut by_callee: BTreeMap<u32, [f64; 2]> = BTreeMap::new();
        for &row in rows {
            let stack = self.rows.stack(row as usize);
            let at = stack.iter().rposition(|&frame| frame == function);
            if let Some(&callee) = at.and_then(|at| stack.get(at + 1)) {
                let (sum, v) = (by_callee.entry(callee).or_default(), self.rows.rows[row as usize].values);
                *sum = [sum[0] + v[0], sum[1] + v[1]];
            }
        }
        let part = |(callee, v): (u32, [f64; 2])| {
            let of =
                Description { function: Some(callee), caller: Some(function), ..Description::of_all(CauseKind::Calls) };
            (of, v)
        };
        let mut parts: Vec<_> = by_callee.into_iter().map(part).collect();
        parts.sort_by(|a, b| self.delta(b.1).abs().total_cmp(&self.delta(a.1).abs()));
        parts.truncate(MAX_CALLEES);
        parts
    }
}
