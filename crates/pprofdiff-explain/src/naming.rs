//! From numbers to names: turns the engine's results into the public types of an explanation.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::account::CauseEntry;
use super::answer::{Cause, CauseLabel, CausePart, CostSplit, Evidence, Extent, MoveKind, Moved, ProgramShare};
use super::attribution::Description;
use super::evidence::rows::StackRows;
use super::thresholds::MIN_PART_OF_SHOWN_MOVE;
use pprofdiff_profile::advice::{exactly, exactly_any};
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::short_lists::sort_by;

/// Maximum number of program functions that are listed for a cause in a library.
const MAX_WITHIN: usize = 5;

/// Rounds a result to nine digits, so that the order of additions does not show in comparisons.
pub(super) fn rounded(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return if x.is_finite() { 0.0 } else { x };
    }
    let digits = 10f64.powi(8 - x.abs().log10().floor() as i32);
    if digits.is_finite() && digits > 0.0 { (x * digits).round() / digits } else { x }
}

/// The names of frames in results. `renamed` maps a frame of the base to the frame with its name on the new side.
pub(super) struct ShownNames<'a> {
    pub rows: &'a StackRows,
    pub renamed: HashMap<u32, u32>,
}

impl ShownNames<'_> {
    /// Returns the frame's costliest original name on the new side, or on the base if the new side lacks it. For a
    /// renamed function, returns its new name.
    pub(super) fn name(&self, frame: u32) -> String {
        self.name_on(self.renamed.get(&frame).copied().unwrap_or(frame), 1)
    }

    /// Returns the name on the base if the cost decreased (`delta` is negative), and otherwise the name on the new
    /// side.
    fn name_for(&self, frame: u32, delta: f64) -> String {
        if delta < 0.0 { self.name_on(frame, 0) } else { self.name(frame) }
    }

    /// Returns the costliest original name on side `first`, or on the opposite side if `first` lacks it.
    pub(super) fn name_on(&self, frame: u32, first: usize) -> String {
        let name = &self.rows.names[frame as usize];
        if let [(text, _)] = &name.shown[..] {
            return text.to_string();
        }
        let costliest = |side: usize| {
            let present = name.shown.iter().filter(|(_, cost)| cost[side] > 0.0);
            present.max_by(|a, b| a.1[side].total_cmp(&b.1[side]).then(b.0.cmp(&a.0))).map(|(text, _)| text.to_string())
        };
        costliest(first).or_else(|| costliest(1 - first)).unwrap_or_else(|| name.text.to_string())
    }

    /// Returns all original names of a frame on both sides.
    fn spellings(&self, frame: u32) -> Vec<String> {
        let numbers = std::iter::once(frame).chain(self.renamed.get(&frame).copied());
        let names = numbers.map(|f| &self.rows.names[f as usize]);
        let spellings = names.flat_map(|name| match &name.shown[..] {
            [] => vec![name.text.to_string()],
            shown => shown.iter().map(|(text, _)| text.to_string()).collect(),
        });
        spellings.collect()
    }
}

/// Finds compiler-made clones: parts of a function that have a name of their own on only one side, while both sides
/// have the function.
pub(super) fn clones(rows: &StackRows, total: [f64; 2], per_run: impl Fn(usize, f64) -> f64) -> Vec<Moved> {
    let mut moved = Vec::new();
    for name in rows.names.iter().filter(|name| name.shown.len() > 1) {
        for (text, cost) in &*name.shown {
            for side in
                [0, 1].into_iter().filter(|&s| cost[s] > MIN_PART_OF_SHOWN_MOVE * total[s] && cost[1 - s] <= 0.0)
            {
                let is_part = text.strip_prefix(&*name.text).is_some_and(|rest| rest.starts_with('.'));
                let on_both = |whole: &&(Arc<str>, [f64; 2])| whole.0 != *text && whole.1.iter().all(|c| *c > 0.0);
                if let Some((whole, _)) = name.shown.iter().find(on_both).filter(|_| is_part) {
                    let (function, from) = if side == 1 { (text, whole) } else { (whole, text) };
                    let (function, from, how) = (function.to_string(), from.to_string(), MoveKind::Clone);
                    let delta = per_run(side, cost[side]);
                    moved.push(Moved {
                        function,
                        from,
                        how,
                        delta,
                        cost: None,
                        even: false,
                        inside: None,
                        callee: None,
                        packages: None,
                    });
                }
            }
        }
    }
    moved
}

/// Turns measured causes into results.
pub(super) struct Naming<'a> {
    pub rows: &'a StackRows,
    pub shown: &'a ShownNames<'a>,
    /// By wrapper that was removed from some stacks: the function behind it.
    pub wrapped: &'a HashMap<u32, u32>,
    pub total: [f64; 2],
    /// The expected ratio of all new runs to all base runs.
    pub scale: f64,
}

impl Naming<'_> {
    /// Returns the change per run of the new side, at equal work.
    fn delta(&self, [base, new]: [f64; 2]) -> f64 {
        (new - self.scale * base) / self.rows.runs[1] as f64
    }

    /// For a function outside the program: returns the nearest functions of the program above it, at most
    /// [`MAX_WITHIN`], largest change first. Returns an empty list for a function of the program.
    fn program(&self, entry: &CauseEntry) -> Vec<ProgramShare> {
        let is_program = |frame: u32| self.rows.names[frame as usize].class.program;
        let Some(function) = entry.subject.function.filter(|&frame| !is_program(frame)) else { return Vec::new() };
        let mut by_caller: BTreeMap<u32, [f64; 2]> = BTreeMap::new();
        for &row in &entry.rows {
            let stack = self.rows.stack(row as usize);
            let place = stack.iter().rposition(|&frame| frame == function).unwrap_or(stack.len());
            if let Some(&caller) = stack[..place].iter().rev().find(|&&frame| is_program(frame)) {
                let (sum, v) = (by_caller.entry(caller).or_default(), self.rows.rows[row as usize].values);
                *sum = [sum[0] + v[0], sum[1] + v[1]];
            }
        }
        let within = |(caller, v)| {
            let delta = self.delta(v);
            let (function, renamed) = (self.shown.name_for(caller, delta), &self.shown.renamed);
            let functions = match renamed.contains_key(&caller) {
                true => self.shown.spellings(caller),
                false => vec![function.clone()],
            };
            ProgramShare { function, delta: rounded(delta), functions }
        };
        let mut all: Vec<ProgramShare> = by_caller.into_iter().map(within).collect();
        sort_by(&mut all, |a, b| b.delta.abs().total_cmp(&a.delta.abs()));
        all.truncate(MAX_WITHIN);
        all
    }

    /// Returns a regular expression that matches all names of a renamed function on both sides, or else only the name
    /// that is shown.
    fn pattern(&self, frame: u32, shown: &str) -> String {
        match self.shown.renamed.contains_key(&frame) {
            true => exactly_any(&self.shown.spellings(frame)),
            false => exactly(shown),
        }
    }

    /// Turns a measured cause into a result. `split` is the result of [`Books::split`](super::account::Books::split).
    pub(super) fn cause(&self, entry: &CauseEntry, split: Option<[f64; 4]>) -> Cause {
        let delta = self.delta(entry.values);
        let name = |frame: Option<u32>| frame.map(|f| self.shown.name_for(f, delta));
        let spellings = |frame: Option<u32>| frame.map_or_else(Vec::new, |f| self.shown.spellings(f));
        let extent = |side: usize| {
            let rows = || entry.rows.iter().map(|&r| &self.rows.rows[r as usize]).filter(|r| r.values[side] > 0.0);
            Extent {
                stacks: rows().count(),
                events: rounded(rows().map(|r| r.events[side]).sum()),
                value: rounded(entry.values[side] / self.rows.runs[side] as f64),
            }
        };
        let label = entry.subject.label.map(|label| {
            let (key, value) = self.rows.labels.get(label);
            CauseLabel { key, value }
        });
        let part = |(description, v): &(Description, [f64; 2])| {
            let delta = self.delta(*v);
            let name = |frame: Option<u32>| frame.map(|f| self.shown.name_for(f, delta));
            CausePart {
                function: name(description.function),
                caller: name(description.caller),
                kind: description.kind,
                delta: rounded(delta),
            }
        };
        let split = split.map(|s| {
            let [count, unit, count_factor, unit_factor] = s.map(rounded);
            CostSplit { count, unit, count_factor, unit_factor }
        });
        let whole = self.scale * self.total[0] / self.rows.runs[1] as f64;
        let functions = spellings(entry.subject.function);
        let others: Vec<String> = entry.others.iter().flat_map(|&frame| self.shown.spellings(frame)).collect();
        let function = name(entry.subject.function);
        Cause {
            caller: name(entry.subject.caller),
            callee: name(entry.subject.callee),
            program: self.program(entry),
            label,
            kind: entry.subject.kind,
            delta: rounded(delta),
            share: if whole > 0.0 { rounded(delta / whole) } else { 0.0 },
            factor: (entry.values[0] > 0.0).then(|| rounded(entry.values[1] / (self.scale * entry.values[0]))),
            score: rounded(entry.score),
            wraps: {
                let added = entry.subject.callee.or(entry.subject.function).filter(|_| entry.values.contains(&0.0));
                name(added.and_then(|frame| self.wrapped.get(&frame).copied()))
            },
            chain: entry.subject.chain.iter().map(|&f| self.shown.name_for(f, delta)).collect(),
            parts: entry.parts.iter().map(part).collect(),
            split,
            calls: None,
            garbage: entry.garbage.map(|garbage| rounded(garbage / self.rows.runs[1] as f64)),
            evidence: Evidence {
                base: extent(0),
                new: extent(1),
                pattern: entry
                    .subject
                    .function
                    .zip(function.as_deref())
                    .map(|(frame, shown)| self.pattern(frame, shown)),
                ignore: (!entry.others.is_empty()).then(|| exactly_any(&others)),
                functions,
                callers: spellings(entry.subject.caller),
                callees: spellings(entry.subject.callee),
            },
            code: None,
            commits: None,
            #[cfg(feature = "check")]
            place: None,
            function,
        }
    }
}
