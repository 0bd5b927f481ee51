//! The account: turns the results of the search into causes whose deltas add up. Each stack belongs to at most one
//! cause, and a cause reports only what its stacks measure. Together with the amount of work, the consequences of
//! causes elsewhere, and the rest, the causes add up to the whole difference, in the sample type's unit:
//!
//! ```text
//! new - base = (scale - 1) base  +  sum over causes of (new - scale base)  +  the same of consequences  +  of the rest
//! ```
//!
//! The search selects the causes and their order. Its model's expected values are never reported.

use std::ops::Range;
use std::sync::OnceLock;

use super::answer::Account;
use super::attribution::{Attribution, CauseCandidate, CauseKind, Description};
use super::evidence::rows::{StackList, StackRows};
use super::evidence::sets::{SetKey, Sets};
use super::naming::rounded;
use super::search::{SearchResult, variance_of};
use super::thresholds::{
    MAX_DEVIANCE_OF_UNCHANGED_CONSEQUENCES, MAX_P_OF_CERTAIN_TOTAL, MIN_CHANGE_OF_NAMED_WHOLE,
    MIN_DEVIANCE_OF_UNEXPLAINED_REST, MIN_P_OF_REMAINDER_BY_CHANCE, MIN_UNEXPLAINED_REST,
};
use pprofdiff::shared::statistics::counts::{LEVEL, between_run_variance, penalised};
use pprofdiff::shared::statistics::distributions::{normal_tail, student_tail};
use pprofdiff::shared::{ValueKind, known_variance};
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::short_lists::sort_by;

/// The original stacks with the base's names, before rules removed inlined calls, cost that moved and the inside of
/// rewritten code. They show whether a cause's name is true for everything that it covers.
#[derive(Default)]
pub(super) struct Uncut {
    stacks: StackList,
    /// By row: the number of its stack.
    stack_of: Vec<u32>,
    /// By row: the values of both sides.
    pub values: Vec<[f64; 2]>,
    /// By row: true for garbage collection, scheduling and locks.
    is_background: Vec<bool>,
    /// By frame: true if the frame is inlined into its callers on one side.
    pub is_folded: Vec<bool>,
    /// By frame: the ranges of rows that contain it. Built on first use.
    rows_by_frame: OnceLock<RowsByFrame>,
}

/// The rows that contain each frame, as ranges: a frame that a stack shares with its predecessor continues a range.
/// Neighbouring stacks share most of their frames.
struct RowsByFrame {
    /// By frame: `ranges[ends[frame]..ends[frame + 1]]`, in the order of their start. Below a recursive call, a range
    /// is within an earlier one.
    ranges: Vec<Range<u32>>,
    ends: Vec<usize>,
}

impl RowsByFrame {
    fn new(uncut: &Uncut) -> RowsByFrame {
        let n_rows = uncut.stack_of.len();
        let mut last: &[u32] = &[];
        let common_with_last = |row: usize| {
            let stack = uncut.stack(row);
            let common = last.iter().zip(stack).take_while(|(a, b)| a == b).count();
            last = stack;
            common as u32
        };
        let common: Vec<u32> = checkpointed(0..n_rows).map(common_with_last).collect();
        let new_frames = |row: usize| &uncut.stack(row)[common[row] as usize..];
        let mut ends = vec![0; uncut.is_folded.len() + 1];
        for frame in (0..n_rows).flat_map(new_frames) {
            ends[*frame as usize + 1] += 1;
        }
        (1..ends.len()).for_each(|i| ends[i] += ends[i - 1]);
        let mut ranges = vec![0..n_rows as u32; ends.last().copied().unwrap_or(0)];
        // The range of each frame of the current stack.
        let (mut next, mut path): (Vec<usize>, Vec<usize>) = (ends.clone(), Vec::new());
        for row in checkpointed(0..n_rows) {
            path.drain(common[row] as usize..).for_each(|range| ranges[range].end = row as u32);
            for &frame in new_frames(row) {
                let range = next[frame as usize];
                next[frame as usize] += 1;
                ranges[range].start = row as u32;
                path.push(range);
            }
        }
        RowsByFrame { ranges, ends }
    }

    /// Returns the rows that contain a frame, in order.
    fn rows_of(&self, frame: u32) -> impl Iterator<Item = u32> {
        let mut end = 0;
        self.ranges[self.ends[frame as usize]..self.ends[frame as usize + 1]].iter().flat_map(move |range| {
            // A recursive function counts once per stack.
            let start = range.start.max(end);
            end = end.max(range.end);
            start..range.end
        })
    }
}

impl Uncut {
    pub(super) fn new(rows: &StackRows) -> Uncut {
        let values = rows.rows.iter().map(|row| row.values).collect();
        let is_background = rows.rows.iter().map(|row| row.background).collect();
        Uncut {
            stacks: rows.stacks.clone(),
            stack_of: rows.rows.iter().map(|row| row.stack).collect(),
            values,
            is_background,
            is_folded: vec![false; rows.names.len()],
            rows_by_frame: OnceLock::new(),
        }
    }

    /// Returns the stack of a row, root first.
    pub(super) fn stack(&self, row: usize) -> &[u32] {
        self.stacks.get(self.stack_of[row])
    }

    /// Returns the stacks that contain a function, in order, with the values of both sides.
    pub(super) fn stacks_of(&self, function: u32) -> impl Iterator<Item = (&[u32], [f64; 2])> {
        self.rows_of(function).map(|row| (self.stack(row as usize), self.values[row as usize]))
    }

    /// Returns the cost of one caller's calls of a function, without garbage collection, scheduling and locks.
    pub(super) fn foreground_cost(&self, function: u32, caller: u32) -> [f64; 2] {
        let is_call = |row: &u32| {
            !self.is_background[*row as usize]
                && self.stack(*row as usize).windows(2).any(|call| call == [caller, function])
        };
        self.rows_of(function).filter(is_call).fold([0.0; 2], |sum, row| {
            let v = self.values[row as usize];
            [sum[0] + v[0], sum[1] + v[1]]
        })
    }

    /// Returns the cost of everything that a cause's name covers, except for stacks with an excluded function, and without
    /// garbage collection, scheduling and locks. `None` for a label.
    pub(super) fn named_cost(&self, subject: &Description, excluded: &[u32]) -> Option<[f64; 2]> {
        let function = subject.function.filter(|_| subject.label.is_none())?;
        let call = match (subject.callee, subject.caller) {
            (Some(callee), _) => Some([function, callee]),
            (None, caller) => caller.map(|caller| [caller, function]),
        };
        let is_named = |row: &u32| {
            let stack = self.stack(*row as usize);
            !self.is_background[*row as usize]
                && call.is_none_or(|call| stack.windows(2).any(|pair| pair == call))
                && !stack.iter().any(|frame| excluded.contains(frame))
        };
        Some(self.rows_of(function).filter(is_named).fold([0.0; 2], |sum, row| {
            let v = self.values[row as usize];
            [sum[0] + v[0], sum[1] + v[1]]
        }))
    }

    /// Returns the rows that contain a function, in order.
    fn rows_of(&self, function: u32) -> impl Iterator<Item = u32> {
        checkpointed(self.rows_by_frame.get_or_init(|| RowsByFrame::new(self)).rows_of(function))
    }

    /// Returns the sum, by side, of a function's stacks for which `holds` returns true.
    pub(super) fn sum(&self, function: u32, holds: impl Fn(&[u32]) -> bool) -> [f64; 2] {
        let matching = self.stacks_of(function).filter(|(stack, _)| holds(stack));
        matching.fold([0.0; 2], |sum, (_, v)| [sum[0] + v[0], sum[1] + v[1]])
    }

    /// Returns the cost of a function, or of one caller's calls of it, as a plain table would show it.
    pub(super) fn function_cost(&self, function: u32, caller: Option<u32>) -> [f64; 2] {
        match caller {
            Some(caller) => self.sum(function, |stack| stack.windows(2).any(|w| (w[0], w[1]) == (caller, function))),
            None => self.sum(function, |_| true),
        }
    }
}

/// A cause, as its stacks measure it.
#[derive(Clone)]
pub(super) struct CauseEntry {
    /// The set that determines the noise of this cause.
    pub set: usize,
    pub subject: Description,
    /// The stacks of this cause. No other cause has them.
    pub rows: Vec<u32>,
    /// The values of these stacks, summed over all runs of each side.
    pub values: [f64; 2],
    pub score: f64,
    /// Functions of other causes. Some stacks that match this cause's name belong to these causes.
    pub others: Vec<u32>,
    /// The merged parts of this cause, with their values within its stacks.
    pub parts: Vec<(Description, [f64; 2])>,
    /// The cause's share in the change of garbage collection, summed over all runs of the new side.
    pub garbage: Option<f64>,
}

impl CauseEntry {
    /// Returns true if a caller calls one function instead of another.
    pub(super) fn is_replacement(&self) -> bool {
        let has_part = |kind: CauseKind| self.parts.iter().any(|(part, _)| part.kind == kind);
        has_part(CauseKind::Added) && has_part(CauseKind::Removed)
    }

    /// Creates an entry without stacks.
    pub(super) fn new(set: usize, subject: Description) -> CauseEntry {
        let (rows, others, parts) = (Vec::new(), Vec::new(), Vec::new());
        CauseEntry { set, subject, rows, values: [0.0; 2], score: 0.0, others, parts, garbage: None }
    }
}

/// The context for measuring causes: the rows, the search's results and the options.
pub(super) struct Books<'a> {
    pub rows: &'a StackRows,
    pub sets: &'a Sets,
    pub search: &'a SearchResult,
    pub attribution: &'a Attribution<'a>,
    pub uncut: &'a Uncut,
    /// The allocations of the same runs, if their heap profiles were given.
    pub heap: Option<&'a StackRows>,
    /// By frame of the base: the frame with its name on the new side.
    pub renamed: &'a HashMap<u32, u32>,
    /// By wrapper that was removed from some stacks: the function behind it.
    pub wrapped: &'a HashMap<u32, u32>,
    /// Minimum change of a cause, as a fraction of the mean of both sides' totals at equal work.
    pub min_effect: f64,
    /// The expected ratio of all new runs to all base runs: the ratio of the numbers of runs, times `--ops` if given.
    pub exposure: f64,
    /// The ratio at the estimated amount of work; equal to `exposure` for a level, which does not depend on work.
    pub scale: f64,
    /// True if the amount of work was given.
    pub is_given: bool,
    /// True if the sample type measures a level instead of activity.
    pub is_level: bool,
    /// True if the number of samples is unknown, so causes are only the largest changes.
    pub is_uncounted: bool,
    /// True if a library was rewritten.
    pub is_rewritten: bool,
}

/// Returns the variance of the logarithm of sums between equal runs, given the sums of all base runs and then of all new
/// runs. Returns `None` for a side with one run.
fn variance_of_sums(sums: &[f64], runs: [usize; 2]) -> Option<f64> {
    let squares = |sums: &[f64]| {
        let mean = sums.iter().sum::<f64>() / sums.len() as f64;
        sums.iter().map(|x| (x / mean - 1.0).powi(2)).sum::<f64>()
    };
    let degrees = (runs[0] + runs[1] - 2) as f64;
    let is_replicated = runs.iter().all(|&runs| runs > 1);
    is_replicated.then(|| (squares(&sums[..runs[0]]) + squares(&sums[runs[0]..runs[0] + runs[1]])) / degrees)
}

/// Rounds a p-value to six digits. The last digits of small p-values depend on the order of the samples.
fn rounded_p(p: f64) -> f64 {
    let digits = 10f64.powi(5_i32.saturating_sub(p.log10().floor() as i32));
    if p > 0.0 && digits.is_finite() { (p * digits).round() / digits } else { p }
}

/// Returns the two-sided p-value of the logarithm of a ratio with this variance, by Student's t.
fn student(ratio: f64, variance: f64, runs: [usize; 2]) -> f64 {
    2.0 * student_tail(ratio.abs() / variance.sqrt(), (runs[0] + runs[1] - 2) as u32)
}

impl Books<'_> {
    pub(super) fn sum(&self, rows: &[u32]) -> [f64; 2] {
        let side_sum = |side: usize| rows.iter().map(|&row| self.rows.rows[row as usize].values[side]).sum();
        [side_sum(0), side_sum(1)]
    }

    /// Returns the change at equal work, summed over the new runs.
    pub(super) fn delta(&self, [base, new]: [f64; 2]) -> f64 {
        new - self.scale * base
    }

    /// Returns the penalised deviance of some of a set's rows; 0 if they have no values.
    pub(super) fn score(&self, set: usize, rows: &[u32]) -> f64 {
        let v = self.sum(rows);
        let q: f64 = rows.iter().map(|&row| self.rows.rows[row as usize].variance).sum();
        let w = (q / (v[0] + v[1]).max(1e-300)).max(1e-300);
        let [b, n] = v.map(|v| v / w);
        if b + n <= 0.0 {
            return 0.0;
        }
        penalised(b, n, self.scale, variance_of(self.rows, self.search.tau2.variance(self.sets, set), [b, n]))
    }

    /// Returns true if some rows of a set qualify as a cause on their own: they changed by at least the minimum effect,
    /// and their score exceeds the threshold plus the set's price.
    pub(super) fn is_cause(&self, set: usize, rows: &[u32]) -> bool {
        let total = self.rows.total();
        let floor = self.min_effect * (self.scale * total[0] + total[1]) / 2.0;
        self.delta(self.sum(rows)).abs() > floor
            && self.score(set, rows) > self.search.threshold + self.sets.sets[set].price
    }

    /// Assigns each stack to the narrowest cause that contains it; among equals, to the first. Then drops the smallest
    /// candidate that no longer qualifies with its remaining stacks, or that a plain table contradicts, and repeats.
    /// The stacks of a dropped candidate go to the remaining candidates.
    pub(super) fn settle(&self, mut candidates: Vec<CauseCandidate>) -> Vec<CauseEntry> {
        loop {
            let width = |candidate: &CauseCandidate| {
                let [base, new] = self.sum(&candidate.rows);
                self.scale * base + new
            };
            let mut order: Vec<usize> = (0..candidates.len()).collect();
            sort_by(&mut order, |&a, &b| width(&candidates[b]).total_cmp(&width(&candidates[a])).then(b.cmp(&a)));
            let mut owner = vec![NONE; self.rows.rows.len()];
            for candidate in order {
                candidates[candidate].rows.iter().for_each(|&row| owner[row as usize] = candidate as u32);
            }
            let own_rows = |candidate: usize| -> Vec<u32> {
                candidates[candidate]
                    .rows
                    .iter()
                    .copied()
                    .filter(|&row| owner[row as usize] == candidate as u32)
                    .collect()
            };
            let others = |candidate: usize| -> Vec<u32> {
                let owners = candidates[candidate].rows.iter().map(|&row| owner[row as usize] as usize);
                let mut others: Vec<u32> = owners
                    .filter(|owner_number| *owner_number != candidate)
                    .filter_map(|owner_number| candidates[owner_number].subject.function)
                    .collect();
                others.sort_unstable();
                others.dedup();
                others
            };
            let entries: Vec<Option<CauseEntry>> = (0..candidates.len())
                .map(|candidate| {
                    let entry = self.entry(&candidates[candidate], own_rows(candidate))?;
                    // Ignoring a function that occurs in the cause's own stacks would hide these stacks as well.
                    let is_own =
                        |frame: &u32| entry.rows.iter().any(|&row| self.rows.stack(row as usize).contains(frame));
                    let others = others(candidate).into_iter().filter(|frame| !is_own(frame)).collect();
                    Some(CauseEntry { others, ..entry })
                })
                .collect();
            let size = |candidate: &usize| candidates[*candidate].delta.abs();
            let missing = (0..candidates.len()).filter(|&candidate| entries[candidate].is_none());
            match missing.min_by(|a, b| size(a).total_cmp(&size(b))) {
                Some(candidate) => candidates.remove(candidate),
                None => break entries.into_iter().flatten().collect(),
            };
        }
    }

    /// Returns the cause that a candidate makes of these stacks, if they qualify and its description is true.
    fn entry(&self, candidate: &CauseCandidate, rows: Vec<u32>) -> Option<CauseEntry> {
        if self.is_cause(candidate.set, &rows) { self.describe(candidate, rows) } else { None }
    }

    /// Describes these stacks of a candidate. Returns `None` if every description would be false.
    pub(super) fn describe(&self, candidate: &CauseCandidate, mut rows: Vec<u32>) -> Option<CauseEntry> {
        let mut description = self.on_behalf_of_caller(candidate.subject.clone());
        let change = self.delta(self.sum(&rows));
        let callees = self.describe_own(&mut description, candidate.set, change, &mut rows);
        if !self.make_true(&mut description, candidate, change) {
            return None;
        }
        let v = self.sum(&rows);
        // A set counts as added or removed with up to 2% on the opposite side. Reports need exactly zero.
        let is_false =
            description.kind == CauseKind::Added && v[0] > 0.0 || description.kind == CauseKind::Removed && v[1] > 0.0;
        description.kind = if is_false { CauseKind::Calls } else { description.kind };
        let instead = description
            .function
            .filter(|_| description.label.is_none() && description.callee.is_none() && candidate.parts.is_empty());
        if let Some(parts) = instead.and_then(|function| self.replacement(function, self.sum(&rows))) {
            let kind = if description.kind == CauseKind::Own { CauseKind::Calls } else { description.kind };
            let (v, score) = (self.sum(&rows), self.score(candidate.set, &rows));
            return Some(CauseEntry {
                values: v,
                score,
                parts,
                rows,
                ..CauseEntry::new(candidate.set, Description { kind, ..description })
            });
        }
        let parts = candidate.parts.iter().map(|(part, part_rows)| {
            let own_rows: Vec<u32> = part_rows.iter().copied().filter(|row| rows.binary_search(row).is_ok()).collect();
            (part.clone(), self.sum(&own_rows))
        });
        let parts = parts.filter(|(_, v)| v[0] + v[1] > 0.0).chain(callees).collect();
        Some(CauseEntry {
            values: v,
            score: self.score(candidate.set, &rows),
            parts,
            rows,
            ..CauseEntry::new(candidate.set, description)
        })
    }

    /// Names the caller of a system function, because the runtime works on behalf of its caller.
    fn on_behalf_of_caller(&self, description: Description) -> Description {
        if let (Some(function), Some(caller), None) = (description.function, description.caller, description.label)
            && self.rows.is_system(function)
            && !self.rows.is_system(caller)
        {
            return Description {
                function: Some(caller),
                callee: Some(function),
                caller: None,
                kind: CauseKind::Calls,
                ..description
            };
        }
        description
    }

    /// Returns true if everything that a name covers changed with the cause's change.
    fn goes_along(&self, whole: [f64; 2], change: f64) -> bool {
        self.delta(whole) * change.signum() >= MIN_CHANGE_OF_NAMED_WHOLE * change.abs()
    }

    /// Narrows a function's own cost to calls of the runtime if these changed. Returns the callees if several did.
    fn describe_own(
        &self,
        description: &mut Description,
        set: usize,
        change: f64,
        rows: &mut Vec<u32>,
    ) -> Vec<(Description, [f64; 2])> {
        let (CauseKind::Own, Some(function)) = (description.kind, description.function) else { return Vec::new() };
        self.name_callee(description, function, set, rows);
        let is_own = |stack: &[u32]| stack.iter().rev().find(|&&frame| !self.rows.is_system(frame)) == Some(&function);
        let is_leaf = |stack: &[u32]| stack.last() == Some(&function);
        if description.kind == CauseKind::Own
            && !self.goes_along(self.uncut.sum(function, |stack| is_own(stack) || is_leaf(stack)), change)
        {
            description.kind = CauseKind::Calls;
        }
        if description.kind != CauseKind::Calls || description.callee.is_some() {
            return Vec::new();
        }
        let callees = self.callees(function, rows);
        description.caller = description.caller.filter(|_| callees.is_empty());
        callees
    }

    /// Changes a description until a plain table does not contradict it. Returns false if no name is true.
    fn make_true(&self, description: &mut Description, candidate: &CauseCandidate, change: f64) -> bool {
        let (None, Some(function)) = (description.label, description.function) else {
            return self.goes_along(self.sum(&candidate.rows), change);
        };
        let whole = match description.callee {
            Some(callee) => self.uncut.function_cost(callee, Some(function)),
            // "self" describes all calls of the function, whoever calls it.
            None if description.kind == CauseKind::Own => self.sum(&candidate.rows),
            None => self.uncut.function_cost(function, description.caller),
        };
        let opposite = match description.kind {
            CauseKind::Added => Some(0),
            CauseKind::Removed => Some(1),
            _ => None,
        };
        let one_sided = opposite.map(|side| whole[side]);
        let is_cut = opposite.is_some_and(|side| self.rows.may_have(description.callee.unwrap_or(function), side));
        // If stacks end at the program's last function, some calls of system functions are missing.
        let is_known = !(self.rows.runtime.trim_library_leaves && self.rows.is_system(function));
        if is_cut || one_sided.is_some_and(|opposite| opposite > 0.0 || !is_known) {
            description.kind = CauseKind::Calls;
            // The own cost came or went, but the function did not. In sampled profiles, inlining may
            // hide one of them.
            let is_own = matches!(self.sets.sets[candidate.set].key, SetKey::Own(_) | SetKey::Leaf(_))
                && (description.caller, description.callee) == (None, None)
                && candidate.parts.is_empty()
                && (self.is_uncounted || self.rows.kind == ValueKind::Counted);
            if is_own && self.goes_along(self.uncut.sum(function, |stack| stack.last() == Some(&function)), change) {
                description.kind = CauseKind::Own;
                return true;
            }
        }
        if self.goes_along(whole, change) {
            return true;
        }
        // One side may have inlined part of the call. Then naming the callee alone is true.
        let is_callee_true = description.caller.is_some()
            && description.callee.is_none()
            && self.goes_along(self.uncut.function_cost(function, None), change);
        if is_callee_true {
            (description.caller, description.kind) = (None, CauseKind::Calls);
            description.chain.clear();
        }
        is_callee_true
    }

    /// Splits a change into the shares of count and unit cost: `[count share, unit share, count factor, unit factor]`.
    /// The logarithms of the factors add up exactly (LMDI, Ang 2004). Returns `None` for sampled values, where count
    /// and cost are one measurement, if the values are not those of the rows, if a count or value is not positive, and if the value grew exactly like the work,
    /// because shares of zero are undefined.
    pub(super) fn split(&self, entry: &CauseEntry) -> Option<[f64; 4]> {
        if matches!(self.rows.kind, ValueKind::Sampled | ValueKind::Counted) {
            return None;
        }
        // The counts belong to the rows, so the values must, too.
        let of_rows = self.sum(&entry.rows);
        if (0..2).any(|side| (of_rows[side] - entry.values[side]).abs() > 1e-6 * of_rows[side]) {
            return None;
        }
        let c = [0, 1].map(|s| entry.rows.iter().map(|&r| self.rows.rows[r as usize].counts[s]).sum::<f64>());
        let v = entry.values;
        if c.iter().chain(&v).any(|x| *x <= 0.0) {
            return None;
        }
        let count = c[1] / c[0] / self.scale;
        let unit = (v[1] / c[1]) / (v[0] / c[0]);
        let whole = (count * unit).ln();
        (whole.abs() > 1e-6).then(|| [count.ln() / whole, unit.ln() / whole, count, unit])
    }

    /// Returns the parts of the difference of the totals, per run. Parts at equal work are changes per run of the new
    /// side.
    pub(super) fn account(&self, entries: &[CauseEntry]) -> Account {
        let [m0, m1] = self.rows.runs.map(|m| m as f64);
        let [base, new] = self.rows.all();
        let mut is_open: Vec<bool> = self.rows.rows.iter().map(|row| !row.background).collect();
        let background = |row: &&u32| self.rows.rows[**row as usize].background;
        let all: Vec<u32> = (0..self.rows.rows.len() as u32).collect();
        let background: Vec<u32> = all.iter().filter(background).copied().collect();
        entries.iter().flat_map(|entry| &entry.rows).for_each(|&row| is_open[row as usize] = false);
        let open: Vec<u32> = all.into_iter().filter(|&row| is_open[row as usize]).collect();
        // A cause may state more or less than its rows, if some of its stacks were cut.
        let open_values = self.sum(&open);
        let stated =
            |side: usize| entries.iter().map(|entry| entry.values[side] - self.sum(&entry.rows)[side]).sum::<f64>();
        let rest_values = [0, 1].map(|side| open_values[side] - stated(side));
        let delta = new / m1 - base / m0;
        let work = (self.scale / m1 - 1.0 / m0) * base;
        let causes = entries.iter().map(|entry| self.delta(entry.values)).sum::<f64>() / m1;
        let consequences = self.delta(self.sum(&background)) / m1;
        // Rounds like all results. The rest is computed from the rounded parts, so that they add up.
        let [delta, work, causes, consequences] = [delta, work, causes, consequences].map(rounded);
        let tau2 = self.tau2_of_all();
        let rest = rounded(delta - work - causes - consequences);
        let (p, own_p) = (self.p_of_total().map(rounded_p), self.own_p_of_total().map(rounded));
        // If nearly all functions changed, their differences hide in the noise that is estimated from them. The totals
        // are compared with known noise, so a certain difference of theirs without a cause is not chance.
        let is_certain = entries.is_empty() && own_p.is_some_and(|p| p < MAX_P_OF_CERTAIN_TOTAL);
        let is_work = rest.abs() <= MIN_UNEXPLAINED_REST * (base / m0).max(new / m1);
        Account {
            delta,
            work,
            causes,
            consequences,
            garbage: rounded(self.delta(self.garbage()) / m1),
            rest,
            // The sampling error of negative values is unknown.
            by_chance: self.deviance(rest_values, self.event_of(&open), tau2) < LEVEL
                && (entries.is_empty()
                    || self.p_of_runs(&open, rest_values).is_none_or(|p| p >= MIN_P_OF_REMAINDER_BY_CHANCE))
                && self.rows.negative == [0.0; 2]
                && (!is_certain || is_work),
            unexplained: rest.abs() > MIN_UNEXPLAINED_REST * (base / m0).max(new / m1)
                && self.deviance_of(&open, 0.0) > MIN_DEVIANCE_OF_UNEXPLAINED_REST,
            // Consequences vary like the cost of a single function.
            consequences_by_chance: self.deviance_of(&background, self.search.tau * self.search.tau)
                < MAX_DEVIANCE_OF_UNCHANGED_CONSEQUENCES,
            p,
            own_p,
        }
    }

    /// Returns the two-sided p-value of the difference of the totals, which tables show as well. The null hypothesis is
    /// that the ratio of the totals is `exposure`. Returns `None` if a side's total is zero.
    fn p_of_total(&self) -> Option<f64> {
        let [m0, m1] = self.rows.runs.map(|m| m as f64);
        let is_positive = self.rows.total().iter().all(|total| *total > 0.0);
        is_positive.then(|| self.rows.total_runs.p_of_change(self.exposure * m0 / m1))
    }

    /// Returns [`Account::own_p`]. The null hypothesis is that the ratio of the totals is `exposure`. With several runs on
    /// both sides, their variation measures chance (Student's t). Otherwise, the known variance of other programs is
    /// used. Returns `None` if a side's total is zero.
    fn own_p_of_total(&self) -> Option<f64> {
        let (m, total) = (self.rows.runs, self.rows.total());
        let q: f64 = self.rows.rows.iter().map(|row| row.variance).sum();
        let w = (q / (total[0] + total[1]).max(1e-300)).max(1e-300);
        if total.iter().any(|total| *total <= 0.0) {
            return None;
        }
        let ratio = (total[1] / total[0] / self.exposure).ln();
        let sampling = w / total[0] + w / total[1];
        let p = match variance_of_sums(&self.rows.run_totals(), m) {
            Some(tau2) => student(ratio, between_run_variance(tau2, m).max(sampling), m),
            None => {
                let variance = between_run_variance(known_variance(self.rows.kind), m) + sampling;
                2.0 * normal_tail(ratio.abs() / variance.sqrt())
            }
        };
        Some(p.min(1.0))
    }

    /// Returns the two-sided p-value of the difference of two values at equal work. The sums of these rows show how much
    /// they vary between runs. Returns `None` for a side with one run or without values.
    fn p_of_runs(&self, rows: &[u32], values: [f64; 2]) -> Option<f64> {
        let m = self.rows.runs;
        let n = m[0] + m[1];
        let mut sums = vec![0.0; n];
        for &row in rows {
            let cells = self.rows.run_values.cells_of(row as usize).iter();
            cells.filter(|cell| (cell.column as usize) < n).for_each(|cell| sums[cell.column as usize] += cell.value);
        }
        if values.iter().chain(&self.sum(rows)).any(|value| *value <= 0.0) {
            return None;
        }
        let sampling = self.event_of(rows) * (1.0 / values[0] + 1.0 / values[1]);
        let variance = between_run_variance(variance_of_sums(&sums, m)?, m).max(sampling);
        Some(student((values[1] / values[0] / self.scale).ln(), variance, m))
    }

    /// Returns the variance between runs of the function or call with the most cost; the typical variance of functions
    /// if there is none.
    fn tau2_of_all(&self) -> f64 {
        let wide =
            (0..self.sets.len()).filter(|&set| matches!(self.sets.sets[set].key, SetKey::Node(_) | SetKey::Edge(..)));
        let value = |set: &usize| self.sets.sets[*set].values[0] + self.sets.sets[*set].values[1];
        let widest = wide.max_by(|a, b| value(a).total_cmp(&value(b)).then(b.cmp(a)));
        widest.map_or(self.search.tau * self.search.tau, |set| self.search.tau2.variance(self.sets, set))
    }

    /// Returns the penalised deviance of the sum of rows whose variance between runs is `tau2`; 0 if they have no
    /// values.
    pub(super) fn deviance_of(&self, rows: &[u32], tau2: f64) -> f64 {
        self.deviance(self.sum(rows), self.event_of(rows), tau2)
    }

    /// Returns the penalised deviance of two values whose variance between runs is `tau2`, at equal work; 0 if they are
    /// zero. `event` is the mean value of an event.
    fn deviance(&self, values: [f64; 2], event: f64, tau2: f64) -> f64 {
        let [b, n] = values.map(|v| v.max(0.0) / event);
        if b + n > 0.0 { penalised(b, n, self.scale, between_run_variance(tau2, self.rows.runs)) } else { 0.0 }
    }

    /// Returns the mean value of one event in some rows.
    fn event_of(&self, rows: &[u32]) -> f64 {
        let [base, new] = self.sum(rows);
        let q: f64 = rows.iter().map(|&row| self.rows.rows[row as usize].variance).sum();
        (q / (base + new).max(1e-300)).max(1e-300)
    }
}

#[cfg(test)]
mod tests {
    use super::super::evidence::sets::tests::rows;
    use super::Uncut;

    #[test]
    fn rows_of_a_function_are_the_rows_whose_stack_contains_it() {
        for seed in 0..200 {
            let rows = rows(seed);
            let uncut = Uncut::new(&rows);
            for frame in 0..rows.names.len() as u32 {
                let expected = (0..rows.rows.len() as u32).filter(|&row| rows.stack(row as usize).contains(&frame));
                assert!(uncut.rows_of(frame).eq(expected), "{seed}: {frame}");
            }
        }
    }
}
