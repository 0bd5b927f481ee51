//! From numbers to names: what was found, as an answer says it.

use super::answer::{Cause, CauseLabel, Evidence, Extent, How, Moved, Part, Split};
use super::rows::Rows;
use super::story::{Description, Draft};
use pprofdiff_profile::advice::exactly;
use pprofdiff_profile::random::HashMap;

/// The least part of a side that is told of where cost moved by a match of names.
pub(super) const TOLD: f64 = 0.01;

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

    pub(super) fn of_side(&self, frame: u32, first: usize) -> String {
        let name = &self.rows.names[frame as usize];
        if let [(text, _)] = &name.shown[..] {
            return text.clone();
        }
        let of = |side: usize| {
            let there = name.shown.iter().filter(|(_, cost)| cost[side] > 0.0);
            there.max_by(|a, b| a.1[side].total_cmp(&b.1[side]).then(b.0.cmp(&a.0))).map(|(text, _)| text.clone())
        };
        of(first).or_else(|| of(1 - first)).unwrap_or_else(|| name.text.clone())
    }

    /// All that it is called on either side.
    fn spelled(&self, frame: u32) -> Vec<String> {
        let numbers = std::iter::once(frame).chain(self.renamed.get(&frame).copied());
        numbers.flat_map(|f| &self.rows.names[f as usize].shown).map(|(text, _)| text.clone()).collect()
    }
}

/// Parts of functions that a compiler gave names of their own on one side only.
pub(super) fn clones(rows: &Rows, total: [f64; 2], of_run: impl Fn(usize, f64) -> f64) -> Vec<Moved> {
    let mut moved = Vec::new();
    for name in rows.names.iter().filter(|name| name.shown.len() > 1) {
        for (text, cost) in &name.shown {
            for side in [0, 1].into_iter().filter(|&s| cost[s] > TOLD * total[s] && cost[1 - s] <= 0.0) {
                let is_part = text.strip_prefix(name.text.as_str()).is_some_and(|rest| rest.starts_with('.'));
                let on_both = |other: &&(String, [f64; 2])| other.0 != *text && other.1.iter().all(|c| *c > 0.0);
                if let Some((other, _)) = name.shown.iter().find(on_both).filter(|_| is_part) {
                    let (function, from) = if side == 1 { (text, other) } else { (other, text) };
                    let (function, from, how) = (function.clone(), from.clone(), How::Clone);
                    moved.push(Moved { function, from, how, delta: of_run(side, cost[side]), inside: None });
                }
            }
        }
    }
    moved
}

/// Drafts with their names.
pub(super) struct Told<'a> {
    pub rows: &'a Rows,
    pub shown: &'a Shown<'a>,
    pub total: [f64; 2],
}

impl Told<'_> {
    fn names(&self, of: &Description) -> (Option<String>, Option<String>) {
        let name = |frame: Option<u32>| frame.map(|f| self.shown.name(f));
        (name(of.function), name(of.caller))
    }

    pub(super) fn cause(&self, draft: &Draft, split: Option<[f64; 4]>) -> Cause {
        let (function, caller) = self.names(&draft.of);
        let spelled = |frame: Option<u32>| frame.map_or_else(Vec::new, |f| self.shown.spelled(f));
        let delta = draft.delta / self.rows.m[0] as f64;
        let extent = |side: usize| {
            let rows = || draft.rows.iter().map(|&r| &self.rows.rows[r as usize]).filter(|r| r.v[side] > 0.0);
            Extent {
                stacks: rows().count(),
                events: rounded(rows().map(|r| r.e[side]).sum()),
                value: rounded(rows().map(|r| r.v[side]).sum::<f64>() / self.rows.m[side] as f64),
            }
        };
        let label = draft.of.label.map(|label| {
            let (key, value) = self.rows.labels.get(label);
            CauseLabel { key, value }
        });
        let parts = draft.parts.iter().map(|(of, delta)| {
            let (function, caller) = self.names(of);
            Part { function, caller, kind: of.kind, delta: rounded(delta / self.rows.m[0] as f64) }
        });
        let split = split.map(|s| {
            let [count, unit, count_factor, unit_factor] = s.map(rounded);
            Split { count, unit, count_factor, unit_factor }
        });
        Cause {
            caller,
            label,
            kind: draft.of.kind,
            delta: rounded(delta),
            share: if self.total[0] > 0.0 { rounded(draft.delta / self.total[0]) } else { 0.0 },
            factor: draft.factor.is_finite().then(|| rounded(draft.factor)),
            score: rounded(draft.score),
            chain: draft.of.chain.iter().map(|&f| self.shown.name(f)).collect(),
            parts: parts.collect(),
            split,
            evidence: Evidence {
                base: extent(0),
                new: extent(1),
                pattern: function.as_deref().map(exactly),
                functions: spelled(draft.of.function),
                callers: spelled(draft.of.caller),
            },
            function,
        }
    }
}
