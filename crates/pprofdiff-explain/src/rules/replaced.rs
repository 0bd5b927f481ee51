//! A caller that calls one function instead of another. The added call and the removed call become one cause with its
//! net change.

use std::collections::BTreeMap;

use super::{Find, Findings, Rule};
use crate::account::{Books, CauseEntry};
use crate::attribution::{CauseKind, Description};
use crate::thresholds::{
    MAX_DIFFERENCE_OF_SWAP, MIN_CHANGE_OF_NAMED_WHOLE, MIN_PART_OF_REPLACED_CALL, MIN_PART_OF_REPLACED_CALLER,
    MIN_PART_OF_SMALLER_CALL,
};
use pprofdiff::shared::statistics::counts::LEVEL;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::short_lists::sort_by;

/// A caller that calls one function instead of another, at the same cost.
pub(crate) struct Exchange {
    pub caller: u32,
    pub came: u32,
    pub went: u32,
    /// The cost of the added calls, in all runs of the new side.
    pub value: f64,
}

pub(super) const RULE: Rule = Rule {
    name: "replaced",
    needs: "a caller that gained one call and lost another",
    says: "\"A calls B instead of C\", with both changes",
    find: Find::Causes(find),
};

fn find(books: &Books<'_>, findings: &mut Findings) {
    let (causes, exchanges) = books.without_exchanges(std::mem::take(&mut findings.causes));
    findings.exchanges = exchanges;
    findings.causes = books.replace(causes);
}

impl Books<'_> {
    /// Removes pairs of an added and a removed call of one caller at the same cost, largest first: the caller does not
    /// feel the exchange. Returns the other causes, and the exchanges.
    fn without_exchanges(&self, mut entries: Vec<CauseEntry>) -> (Vec<CauseEntry>, Vec<Exchange>) {
        sort_by(&mut entries, |a, b| self.delta(b.values).abs().total_cmp(&self.delta(a.values).abs()));
        let mut exchanges = Vec::new();
        loop {
            let numbers = || 0..entries.len();
            let pairs = numbers().flat_map(|a| numbers().map(move |b| (a, b)));
            let exchange = |(a, b): (usize, usize)| Some((a, b, self.exchange(&entries[a], &entries[b])?));
            let Some((a, b, exchange)) = pairs.filter_map(exchange).next() else { return (entries, exchanges) };
            exchanges.push(exchange);
            entries.remove(a.max(b));
            entries.remove(a.min(b));
        }
    }

    /// Returns the exchange of two calls of one caller at the same cost.
    fn exchange(&self, added: &CauseEntry, removed: &CauseEntry) -> Option<Exchange> {
        let (came, went) = (Self::one_sided_call(added)?, Self::one_sided_call(removed)?);
        if (came.0, came.2, went.2) != (went.0, CauseKind::Added, CauseKind::Removed) {
            return None;
        }
        let mut rows: Vec<u32> = added.rows.iter().chain(&removed.rows).copied().collect();
        rows.sort_unstable();
        let [gain, loss] = [added, removed].map(|entry| self.delta(entry.values).abs());
        let is_even = (gain - loss).abs() < MAX_DIFFERENCE_OF_SWAP * gain.max(loss);
        let value = added.values[1];
        (is_even && self.score(added.set, &rows) < LEVEL).then_some(Exchange {
            caller: came.0,
            came: came.1,
            went: went.1,
            value,
        })
    }

    /// Merges an added and a removed call of one caller into one cause with the sum of both. Keeps them separate if the
    /// sum does not change the caller's cost, or if one call is much larger: the sum would then hide the smaller change.
    /// Merges the largest pair first.
    fn replace(&self, mut entries: Vec<CauseEntry>) -> Vec<CauseEntry> {
        loop {
            sort_by(&mut entries, |a, b| self.delta(b.values).abs().total_cmp(&self.delta(a.values).abs()));
            let numbers = || 0..entries.len();
            let pairs = numbers().flat_map(|a| numbers().map(move |b| (a, b)));
            let both = |(a, b): (usize, usize)| Some((a, b, self.replaced(&entries[a], &entries[b])?));
            let Some((a, b, both)) = pairs.filter_map(both).next() else { return entries };
            entries.remove(a.max(b));
            entries.remove(a.min(b));
            entries.push(both);
        }
    }

    /// Returns caller, callee and kind of a cause that is an added or removed call, and `None` for other causes. A
    /// change of the calls of one system function is such a cause if one side lacks them.
    fn one_sided_call(entry: &CauseEntry) -> Option<(u32, u32, CauseKind)> {
        let description = &entry.subject;
        if description.label.is_some() || !entry.parts.is_empty() {
            return None;
        }
        match (description.kind, description.caller, description.function, description.callee) {
            (CauseKind::Added | CauseKind::Removed, Some(caller), Some(function), None) => {
                Some((caller, function, description.kind))
            }
            (_, _, Some(function), Some(callee)) if entry.values[0] <= 0.0 => {
                Some((function, callee, CauseKind::Added))
            }
            (_, _, Some(function), Some(callee)) if entry.values[1] <= 0.0 => {
                Some((function, callee, CauseKind::Removed))
            }
            _ => None,
        }
    }

    fn replaced(&self, added: &CauseEntry, removed: &CauseEntry) -> Option<CauseEntry> {
        let (came, went) = (Self::one_sided_call(added)?, Self::one_sided_call(removed)?);
        if (came.0, came.2, went.2) != (went.0, CauseKind::Added, CauseKind::Removed) {
            return None;
        }
        let [gain, loss] = [added, removed].map(|entry| self.delta(entry.values).abs());
        if gain.min(loss) < MIN_PART_OF_SMALLER_CALL * gain.max(loss) {
            return None;
        }
        let caller = came.0;
        let v = [added.values[0] + removed.values[0], added.values[1] + removed.values[1]];
        let mut rows: Vec<u32> = added.rows.iter().chain(&removed.rows).copied().collect();
        rows.sort_unstable();
        let change = self.delta(v);
        let whole = self.delta(self.uncut.function_cost(caller, None)) * change.signum();
        let plain = |function: u32, caller: Option<u32>, kind: CauseKind| Description {
            kind,
            function: Some(function),
            caller,
            label: None,
            callee: None,
            chain: Vec::new(),
        };
        let part = |(caller, callee, kind): (u32, u32, CauseKind)| plain(callee, Some(caller), kind);
        let parts = vec![(part(came), added.values), (part(went), removed.values)];
        let set = if change > 0.0 { added.set } else { removed.set };
        let others = added.others.iter().chain(&removed.others).copied().collect();
        let is_felt = whole >= MIN_CHANGE_OF_NAMED_WHOLE * change.abs() && self.is_cause(set, &rows);
        let description = plain(caller, None, CauseKind::Calls);
        is_felt.then(|| CauseEntry {
            values: v,
            score: self.score(set, &rows),
            others,
            parts,
            rows,
            ..CauseEntry::new(set, description)
        })
    }

    /// Returns the added and the removed call if a function calls one function instead of another, and both have most
    /// of its cost on their side. `v` are the values of the function's cause. Returns `None` if these are not nearly
    /// all of the function's cost, or if a side still calls the other side's function indirectly.
    pub(crate) fn replacement(&self, function: u32, v: [f64; 2]) -> Option<Vec<(Description, [f64; 2])>> {
        let mut by_callee: BTreeMap<u32, [f64; 2]> = BTreeMap::new();
        let mut whole = [0.0; 2];
        let mut below: HashMap<u32, [bool; 2]> = HashMap::default();
        for (stack, v) in self.uncut.stacks_of(function) {
            let Some(place) = stack.iter().rposition(|&frame| frame == function) else { continue };
            whole = [whole[0] + v[0], whole[1] + v[1]];
            // A frame that is inlined on one side does not count as another call.
            if let Some(&callee) = stack[place + 1..].iter().find(|&&frame| !self.uncut.is_folded[frame as usize]) {
                let sum = by_callee.entry(callee).or_default();
                *sum = [sum[0] + v[0], sum[1] + v[1]];
            }
            for frame in stack[place + 1..].iter().skip(1) {
                let present = below.entry(*frame).or_default();
                *present = [present[0] || v[0] > 0.0, present[1] || v[1] > 0.0];
            }
        }
        // A function that is still called indirectly on the opposite side was not replaced.
        let is_below = |frame: &u32, side: usize| below.get(frame).is_some_and(|present| present[side]);
        let main_callee = |side: usize| {
            let is_only = |frame: &u32, v: &[f64; 2]| v[1 - side] <= 0.0 && !is_below(frame, 1 - side);
            let only = by_callee
                .iter()
                .filter(|(frame, v)| is_only(frame, v) && v[side] > MIN_PART_OF_REPLACED_CALL * whole[side]);
            only.max_by(|a, b| a.1[side].total_cmp(&b.1[side]).then(b.0.cmp(a.0)))
        };
        let is_all = (0..2).all(|side| v[side] > MIN_PART_OF_REPLACED_CALLER * whole[side] && whole[side] > 0.0);
        let ((&came, &new), (&went, &base)) = (main_callee(1).filter(|_| is_all)?, main_callee(0)?);
        let part = |callee: u32, kind: CauseKind| Description {
            kind,
            function: Some(callee),
            caller: Some(function),
            label: None,
            callee: None,
            chain: Vec::new(),
        };
        Some(vec![(part(came, CauseKind::Added), new), (part(went, CauseKind::Removed), base)])
    }
}
