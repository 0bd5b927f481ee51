//! A function's own cost, or the cost of one runtime or library function that it calls.

use std::collections::BTreeMap;

use super::{Find, Rule};
use crate::account::Books;
use crate::attribution::{CauseKind, Description};
use crate::thresholds::MIN_PART_OF_CALLEES_IN_OWN;
use pprofdiff::shared::ValueKind;
use pprofdiff_profile::short_lists::sort_by;

pub(super) const RULE: Rule = Rule {
    name: "own_cost",
    needs: "stacks that end in a function, or below it only in the runtime",
    says: "\"X itself costs more\", \"X itself, with R, costs more\", or \"X spends more in R\" for a function R of the runtime",
    find: Find::Search,
};

/// Maximum number of callees that are listed if several changed.
const MAX_CALLEES: usize = 3;

impl Books<'_> {
    /// If a function's own change is mostly in system callees, its own code is not more expensive, so the kind becomes
    /// [`CauseKind::Calls`]. If it is mostly in one of them, whose calls qualify as a cause on their own, the cause is
    /// narrowed to these calls. Locks are an exception, because waiting always happens in a system function.
    pub(crate) fn name_callee(&self, description: &mut Description, function: u32, set: usize, rows: &mut Vec<u32>) {
        if self.rows.kind == ValueKind::Delay {
            return;
        }
        let callee_of = |row: u32| {
            let stack = self.rows.stack(row as usize);
            let place = stack.iter().rposition(|&frame| frame == function)?;
            stack.get(place + 1).copied()
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
        if all <= MIN_PART_OF_CALLEES_IN_OWN {
            return;
        }
        let largest = by_callee.into_iter().map(|(callee, rows)| (part(&rows), callee, rows));
        let largest = largest.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        description.kind = CauseKind::Calls;
        if let Some((part, callee, callee_rows)) = largest
            && part > MIN_PART_OF_CALLEES_IN_OWN
            && self.is_cause(set, &callee_rows)
        {
            (description.callee, description.caller, *rows) = (Some(callee), None, callee_rows);
        }
    }

    /// Returns the callees of a function in these stacks, largest change first, at most [`MAX_CALLEES`].
    pub(crate) fn callees(&self, function: u32, rows: &[u32]) -> Vec<(Description, [f64; 2])> {
        let mut by_callee: BTreeMap<u32, [f64; 2]> = BTreeMap::new();
        for &row in rows {
            let stack = self.rows.stack(row as usize);
            let place = stack.iter().rposition(|&frame| frame == function);
            if let Some(&callee) = place.and_then(|place| stack.get(place + 1)) {
                let (sum, v) = (by_callee.entry(callee).or_default(), self.rows.rows[row as usize].values);
                *sum = [sum[0] + v[0], sum[1] + v[1]];
            }
        }
        let part = |(callee, v): (u32, [f64; 2])| {
            let description =
                Description { function: Some(callee), caller: Some(function), ..Description::all(CauseKind::Calls) };
            (description, v)
        };
        let mut parts: Vec<_> = by_callee.into_iter().map(part).collect();
        sort_by(&mut parts, |a, b| self.delta(b.1).abs().total_cmp(&self.delta(a.1).abs()));
        parts.truncate(MAX_CALLEES);
        parts
    }
}
