//! From numbers to names: what was found, as an answer says it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::account::Entry;
use super::answer::{Cause, CauseLabel, Evidence, Extent, How, Moved, Part, Split, Within};
use super::attribution::Description;
use super::evidence::rows::Rows;
use pprofdiff_profile::advice::{exactly, exactly_any};
use pprofdiff_profile::random::HashMap;

/// The most functions of the program that a cause in a library is told of.
const MAX_WITHIN: usize = 5;
/// The least part of a side that is told of where cost moved by a match of names.
pub(super) const MIN_SHOWN: f64 = 0.01;

/// Numbers that people and machines compare: nine digits, so that no order of additions shows.
pub(super) fn rounded(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return if x.is_finite() { 0.0 } else { x };
    }
    let digits = 10f64.powi(8 - x.abs().log10().floor() as i32);
    if digits.is_finite() && digits > 0.0 { (x * digits).round() / digits } else { x }
}

/// The names that results show.
pub(super) struct Shown<'a> {
    pub rows: &'a Rows,
    pub renamed: HashMap<u32, u32>,
}

impl Shown<'_> {
    /// The costliest of the names that are called so: on the new side, or else on the base.
    pub(super) fn name(&self, frame: u32) -> String {
        self.of_side(self.renamed.get(&frame).copied().unwrap_or(frame), 1)
    }

    /// The name on the side that has more of it, beside the amount of work.
    fn of_change(&self, frame: u32, delta: f64) -> String {
        if delta < 0.0 { self.of_side(frame, 0) } else { self.name(frame) }
    }

    pub(super) fn of_side(&self, frame: u32, first: usize) -> String {
        let name = &self.rows.names[frame as usize];
        if let [(text, _)] = &name.shown[..] {
            return text.to_string();
        }
        let of = |side: usize| {
            let there = name.shown.iter().filter(|(_, cost)| cost[side] > 0.0);
            there.max_by(|a, b| a.1[side].total_cmp(&b.1[side]).then(b.0.cmp(&a.0))).map(|(text, _)| text.to_string())
        };
        of(first).or_else(|| of(1 - first)).unwrap_or_else(|| name.text.to_string())
    }

    /// All that it is called on either side.
    fn spelled(&self, frame: u32) -> Vec<String> {
        let numbers = std::iter::once(frame).chain(self.renamed.get(&frame).copied());
        let names = numbers.map(|f| &self.rows.names[f as usize]);
        let spelled = names.flat_map(|name| match &name.shown[..] {
            [] => vec![name.text.to_string()],
            shown => shown.iter().map(|(text, _)| text.to_string()).collect(),
        });
        spelled.collect()
    }
}

/// Parts of functions that a compiler gave names of their own on one side only.
pub(super) fn clones(rows: &Rows, total: [f64; 2], of_run: impl Fn(usize, f64) -> f64) -> Vec<Moved> {
    let mut moved = Vec::new();
    for name in rows.names.iter().filter(|name| name.shown.len() > 1) {
        for (text, cost) in &*name.shown {
            for side in [0, 1].into_iter().filter(|&s| cost[s] > MIN_SHOWN * total[s] && cost[1 - s] <= 0.0) {
                let is_part = text.strip_prefix(&*name.text).is_some_and(|rest| rest.starts_with('.'));
                let on_both = |other: &&(Arc<str>, [f64; 2])| other.0 != *text && other.1.iter().all(|c| *c > 0.0);
                if let Some((other, _)) = name.shown.iter().find(on_both).filter(|_| is_part) {
                    let (function, from) = if side == 1 { (text, other) } else { (other, text) };
                    let (function, from, how) = (function.to_string(), from.to_string(), How::Clone);
                    let delta = of_run(side, cost[side]);
                    moved.push(Moved {
                        function,
                        from,
                        how,
                        delta,
                        cost: None,
                        even: false,
                        inside: None,
                        packages: None,
                    });
                }
            }
        }
    }
    moved
}

/// Causes with their names.
pub(super) struct Naming<'a> {
    pub rows: &'a Rows,
    pub shown: &'a Shown<'a>,
    pub total: [f64; 2],
    /// Of all runs of the new side to those of the base.
    pub scale: f64,
}

impl Naming<'_> {
    /// The change of a run of the new side.
    fn delta(&self, [base, new]: [f64; 2]) -> f64 {
        (new - self.scale * base) / self.rows.runs[1] as f64
    }

    /// Of a function that is not the program's, the nearest functions of the program above it.
    fn program(&self, entry: &Entry) -> Vec<Within> {
        let is_program = |frame: u32| self.rows.names[frame as usize].class.program;
        let Some(function) = entry.of.function.filter(|&function| !is_program(function)) else { return Vec::new() };
        let mut of: BTreeMap<u32, [f64; 2]> = BTreeMap::new();
        for &row in &entry.rows {
            let stack = self.rows.stack(row as usize);
            let at = stack.iter().rposition(|&frame| frame == function).unwrap_or(stack.len());
            if let Some(&caller) = stack[..at].iter().rev().find(|&&frame| is_program(frame)) {
                let (sum, v) = (of.entry(caller).or_default(), self.rows.rows[row as usize].values);
                *sum = [sum[0] + v[0], sum[1] + v[1]];
            }
        }
        let within = |(caller, v)| {
            let delta = self.delta(v);
            Within { function: self.shown.of_change(caller, delta), delta: rounded(delta) }
        };
        let mut all: Vec<Within> = of.into_iter().map(within).collect();
        all.sort_by(|a, b| b.delta.abs().total_cmp(&a.delta.abs()));
        all.truncate(MAX_WITHIN);
        all
    }

    /// An expression that finds a function by what it is called on either side.
    fn pattern(&self, frame: u32, shown: &str) -> String {
        match self.shown.renamed.contains_key(&frame) {
            true => exactly_any(&self.shown.spelled(frame)),
            false => exactly(shown),
        }
    }

    /// A cause with how its count and cost changed.
    pub(super) fn cause(&self, entry: &Entry, split: Option<[f64; 4]>) -> Cause {
        let delta = self.delta(entry.values);
        let name = |frame: Option<u32>| frame.map(|f| self.shown.of_change(f, delta));
        let spelled = |frame: Option<u32>| frame.map_or_else(Vec::new, |f| self.shown.spelled(f));
        let extent = |side: usize| {
            let rows = || entry.rows.iter().map(|&r| &self.rows.rows[r as usize]).filter(|r| r.values[side] > 0.0);
            Extent {
                stacks: rows().count(),
                events: rounded(rows().map(|r| r.events[side]).sum()),
                value: rounded(entry.values[side] / self.rows.runs[side] as f64),
            }
        };
        let label = entry.of.label.map(|label| {
            let (key, value) = self.rows.labels.get(label);
            CauseLabel { key, value }
        });
        let part = |(of, v): &(Description, [f64; 2])| {
            let delta = self.delta(*v);
            let name = |frame: Option<u32>| frame.map(|f| self.shown.of_change(f, delta));
            Part { function: name(of.function), caller: name(of.caller), kind: of.kind, delta: rounded(delta) }
        };
        let split = split.map(|s| {
            let [count, unit, count_factor, unit_factor] = s.map(rounded);
            Split { count, unit, count_factor, unit_factor }
        });
        let whole = self.scale * self.total[0] / self.rows.runs[1] as f64;
        let functions = spelled(entry.of.function);
        let others: Vec<String> = entry.others.iter().flat_map(|&frame| self.shown.spelled(frame)).collect();
        let function = name(entry.of.function);
        Cause {
            caller: name(entry.of.caller),
            callee: name(entry.of.callee),
            program: self.program(entry),
            label,
            kind: entry.of.kind,
            delta: rounded(delta),
            share: if whole > 0.0 { rounded(delta / whole) } else { 0.0 },
            factor: (entry.values[0] > 0.0).then(|| rounded(entry.values[1] / (self.scale * entry.values[0]))),
            score: rounded(entry.score),
            chain: entry.of.chain.iter().map(|&f| self.shown.of_change(f, delta)).collect(),
            parts: entry.parts.iter().map(part).collect(),
            split,
            garbage: entry.garbage.map(|garbage| rounded(garbage / self.rows.runs[1] as f64)),
            evidence: Evidence {
                base: extent(0),
                new: extent(1),
                pattern: entry.of.function.zip(function.as_deref()).map(|(frame, shown)| self.pattern(frame, shown)),
                ignore: (!entry.others.is_empty()).then(|| exactly_any(&others)),
                functions,
                callers: spelled(entry.of.caller),
                callees: spelled(entry.of.callee),
            },
            commits: None,
            function,
        }
    }
}
