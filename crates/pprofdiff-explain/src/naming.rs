//! From numbers to names: turns the engine's results into the public types of an explanation.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::account::CauseEntry;
use super::answer::{Cause, CauseLabel, CausePart, CostSplit, Evidence, Extent, MoveKind, Moved, ProgramShare};
use super::attribution::{CauseKind, Description};
use super::evidence::rows::StackRows;
use super::selfcheck::ExcludedFunctions;
use super::thresholds::{MIN_PART_IGNORED, MIN_PART_IN_CALLEES, MIN_PART_OF_SHOWN_MOVE};
use pprofdiff::shared::ValueKind;
use pprofdiff_profile::advice::{exactly, exactly_any};
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::short_lists::sort_by;

/// Maximum number of program functions that are listed for a cause in a library.
const MAX_WITHIN: usize = 5;
/// Maximum number of functions of the runtime that the command of a cause ignores.
const MAX_CONSEQUENCES: usize = 12;
/// Maximum number of functions of the runtime that are listed as parts of a function's own cost.
const MAX_RUNTIME_CALLEES: usize = 2;

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

    /// Returns the parts of a cause. A function's own cost includes the functions of the runtime that it calls. If they
    /// have a visible part of its change, the parts are the function itself, then these functions, largest change first.
    fn parts(&self, entry: &CauseEntry) -> Vec<(Description, [f64; 2])> {
        let subject = &entry.subject;
        let is_own = subject.kind == CauseKind::Own && subject.label.is_none() && self.rows.kind != ValueKind::Delay;
        let Some(function) = subject.function.filter(|_| is_own && entry.parts.is_empty()) else {
            return entry.parts.clone();
        };
        let (mut own, mut by_callee, mut sum) = ([0.0; 2], BTreeMap::<u32, [f64; 2]>::new(), [0.0; 2]);
        let add = |sum: &mut [f64; 2], v: [f64; 2]| *sum = [sum[0] + v[0], sum[1] + v[1]];
        for &row in &entry.rows {
            let (stack, v) = (self.rows.stack(row as usize), self.rows.rows[row as usize].values);
            let callee = stack.iter().rposition(|&frame| frame == function).and_then(|place| stack.get(place + 1));
            add(callee.map_or(&mut own, |callee| by_callee.entry(*callee).or_default()), v);
            add(&mut sum, v);
        }
        let delta = self.delta(entry.values);
        let is_of_rows = (self.delta(sum) - delta).abs() <= MIN_PART_IN_CALLEES * delta.abs();
        if !is_of_rows || (self.delta(own) - delta).abs() <= MIN_PART_IN_CALLEES * delta.abs() {
            return Vec::new();
        }
        let mut callees: Vec<(u32, [f64; 2])> = by_callee.into_iter().collect();
        sort_by(&mut callees, |a, b| self.delta(b.1).abs().total_cmp(&self.delta(a.1).abs()));
        let itself = Description { function: Some(function), ..Description::all(CauseKind::Own) };
        let callee = |(callee, v): (u32, [f64; 2])| {
            let all = Description::all(CauseKind::Calls);
            (Description { function: Some(callee), caller: Some(function), ..all }, v)
        };
        let listed = callees.into_iter().filter(|(_, v)| self.delta(*v) != 0.0).take(MAX_RUNTIME_CALLEES).map(callee);
        std::iter::once((itself, own)).chain(listed).collect()
    }

    /// Returns the functions of the runtime whose cost is a consequence of causes elsewhere, such as garbage collection,
    /// in stacks that a cause's name covers. The account lists their cost separately, so they are not part of the cause.
    /// Returns at most [`MAX_CONSEQUENCES`], largest first, and none if their cost is negligible beside the cause.
    fn consequences(&self, entry: &CauseEntry) -> Vec<u32> {
        let subject = &entry.subject;
        let Some(function) = subject.function.filter(|_| subject.kind != CauseKind::Own) else { return Vec::new() };
        let is_named = |stack: &[u32]| match (subject.caller, subject.callee) {
            (_, Some(callee)) => stack.windows(2).any(|call| call == [function, callee]),
            (Some(caller), None) => stack.windows(2).any(|call| call == [caller, function]),
            (None, None) => stack.contains(&function),
        };
        let is_own = |frame: u32| entry.rows.iter().any(|&row| self.rows.stack(row as usize).contains(&frame));
        let mut costs: BTreeMap<u32, f64> = BTreeMap::new();
        for (i, row) in self.rows.rows.iter().enumerate().skip(self.rows.n_front()) {
            let stack = self.rows.stack(i);
            let first = stack.iter().find(|&&frame| self.rows.names[frame as usize].class.background);
            if let Some(&frame) = first.filter(|_| is_named(stack)) {
                *costs.entry(frame).or_default() += row.values[0] + row.values[1];
            }
        }
        let mut rest: f64 = costs.values().sum();
        let mut costs: Vec<(u32, f64)> = costs.into_iter().filter(|(frame, _)| !is_own(*frame)).collect();
        sort_by(&mut costs, |a, b| b.1.total_cmp(&a.1));
        costs.truncate(MAX_CONSEQUENCES);
        let is_visible = |(_, cost): &(u32, f64)| {
            let all = rest;
            rest -= cost;
            all > MIN_PART_IGNORED * (entry.values[0] + entry.values[1])
        };
        costs.into_iter().take_while(is_visible).map(|(frame, _)| frame).collect()
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
    /// `excluded` is the result of [`PlainTable::excluded`](super::selfcheck::PlainTable::excluded).
    pub(super) fn cause(&self, entry: &CauseEntry, split: Option<[f64; 4]>, excluded: ExcludedFunctions) -> Cause {
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
        // The rest of a function may consist of unrelated changes, whose counts and sizes do not belong together.
        let split = split.filter(|_| !excluded.is_partial).map(|s| {
            let [count, unit, count_factor, unit_factor] = s.map(rounded);
            CostSplit { count, unit, count_factor, unit_factor }
        });
        let whole = self.scale * self.total[0] / self.rows.runs[1] as f64;
        let functions = spellings(entry.subject.function);
        let ExcludedFunctions { is_partial, without, ignored } = excluded;
        let without = without.into_iter().map(|frame| self.shown.name_for(frame, delta)).collect();
        let ignored: Vec<u32> = ignored.into_iter().chain(self.consequences(entry)).collect();
        let others: Vec<String> = ignored.iter().flat_map(|&frame| self.shown.spellings(frame)).collect();
        let function = name(entry.subject.function);
        Cause {
            caller: name(entry.subject.caller),
            callee: name(entry.subject.callee),
            without,
            is_partial,
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
            parts: self.parts(entry).iter().map(part).collect(),
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
                ignore: (!others.is_empty()).then(|| exactly_any(&others)),
                functions,
                callers: spellings(entry.subject.caller),
                callees: spellings(entry.subject.callee),
            },
            code: None,
            commits: None,
            place: None,
            function,
        }
    }
}
