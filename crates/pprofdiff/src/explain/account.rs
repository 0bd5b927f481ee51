//! From what the search found to an account: every stack belongs to one cause at most, and what is said of a cause is what
//! its stacks measure. So with the amount of work, what answers to causes elsewhere and the rest, causes add up to the whole
//! difference, in the sample type's unit:
//!
//! ```text
//! new - base = (scale - 1) base  +  sum over causes of (new - scale base)  +  the same of consequences  +  of the rest
//! ```
//!
//! The search decides which sets are causes, and in which order; nothing that it lacks or expects is said.

use std::sync::OnceLock;

use super::answer::Account;
use super::attribution::{Attribution, CauseCandidate, CauseKind, Description};
use super::evidence::rows::{Kind, Rows, Stacks};
use super::evidence::sets::{Key, Sets, grouped};
use super::naming::rounded;
use super::search::{Found, known_variance, variance_of};
use crate::statistics::counts::{LEVEL, between_run_variance, penalised};
use crate::statistics::distributions::{normal_tail, student_tail};
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::work::paced;

/// What a cause is named by must have changed as a whole by this part of the cause, or the name says something false.
pub(super) const MIN_PART_OF_WHOLE: f64 = 0.35;
/// What the penalised deviance of something that nothing touched exceeds one time in a hundred.
const CERTAIN: f64 = 6.63;

/// What is left of a difference is large from this part of the total, and more than sampling explains from this deviance.
const LARGE_REST: f64 = 0.1;
const MORE_THAN_SAMPLING: f64 = 9.0;

/// Stacks with the names of the base, before calls were left out of them that one side has inlined or that changed places.
#[derive(Default)]
pub(super) struct Uncut {
    pub stacks: Stacks,
    pub values: Vec<[f64; 2]>,
    /// By frame: true if it is part of its callers on one side.
    pub is_folded: Vec<bool>,
    /// By frame: the stacks that have it, once they are asked for.
    of_frames: OnceLock<(Vec<u32>, Vec<usize>)>,
}

impl Uncut {
    pub(super) fn of(rows: &Rows) -> Uncut {
        let mut stacks = Stacks::with_room_for(&rows.stacks);
        (0..rows.rows.len()).for_each(|row| {
            stacks.push(rows.stack(row).iter().copied());
        });
        let values = rows.rows.iter().map(|row| row.values).collect();
        Uncut { stacks, values, is_folded: vec![false; rows.names.len()], of_frames: OnceLock::new() }
    }

    /// The stacks that have a function, in order, with what both sides have of each.
    pub(super) fn stacks_of(&self, function: u32) -> impl Iterator<Item = (&[u32], [f64; 2])> {
        let (stacks, ends) = self.of_frames.get_or_init(|| {
            let pairs =
                || (0..self.stacks.len() as u32).flat_map(|i| self.stacks.get(i).iter().map(move |&f| (f as usize, i)));
            grouped(self.is_folded.len(), pairs)
        });
        let stacks = &stacks[ends[function as usize]..ends[function as usize + 1]];
        // Of recursion once.
        paced(stacks.chunk_by(|a, b| a == b).map(|of| (self.stacks.get(of[0]), self.values[of[0] as usize])))
    }

    /// What both sides have of those stacks with a function that `holds` says.
    pub(super) fn sum(&self, function: u32, holds: impl Fn(&[u32]) -> bool) -> [f64; 2] {
        let of = self.stacks_of(function).filter(|(stack, _)| holds(stack));
        of.fold([0.0; 2], |sum, (_, v)| [sum[0] + v[0], sum[1] + v[1]])
    }

    /// What a plain table has of a function, or of the calls of it.
    pub(super) fn of_function(&self, function: u32, caller: Option<u32>) -> [f64; 2] {
        match caller {
            Some(caller) => self.sum(function, |stack| stack.windows(2).any(|w| (w[0], w[1]) == (caller, function))),
            None => self.sum(function, |_| true),
        }
    }
}

/// A cause as its stacks measure it.
pub(super) struct Entry {
    /// The set whose noise it has.
    pub set: usize,
    pub of: Description,
    /// The stacks that no other cause has.
    pub rows: Vec<u32>,
    /// What they have in all runs of either side.
    pub values: [f64; 2],
    pub score: f64,
    /// Functions of which the cause's own name has stacks, too, which belong to other causes.
    pub others: Vec<u32>,
    /// The parts that it is made up of, with what they have of its stacks.
    pub parts: Vec<(Description, [f64; 2])>,
    /// How much of the change of garbage collection is its, in all runs of the new side.
    pub garbage: Option<f64>,
}

impl Entry {
    /// Without any stacks.
    pub(super) fn of(set: usize, of: Description) -> Entry {
        let (rows, others, parts) = (Vec::new(), Vec::new(), Vec::new());
        Entry { set, of, rows, values: [0.0; 2], score: 0.0, others, parts, garbage: None }
    }
}

/// What causes are measured with.
pub(super) struct Books<'a> {
    pub rows: &'a Rows,
    pub sets: &'a Sets,
    pub found: &'a Found,
    pub attribution: &'a Attribution<'a>,
    pub uncut: &'a Uncut,
    /// What the same runs allocated, if their heap profiles were given.
    pub heap: Option<&'a Rows>,
    /// By frame of the base: what it is called on the new side.
    pub renamed: &'a HashMap<u32, u32>,
    /// The least change that is a cause, as a part of the total.
    pub min_effect: f64,
    /// What all of the new side would have to all of the base if both did the same work, or what is given.
    pub exposure: f64,
    /// What it has more by the amount of work; the exposure where nothing is done.
    pub scale: f64,
    /// True if the amount of work is known.
    pub is_given: bool,
    /// True of what there is, and not of what is done.
    pub is_level: bool,
    /// True if a library was rewritten.
    pub is_rewritten: bool,
}

impl Books<'_> {
    pub(super) fn sum(&self, rows: &[u32]) -> [f64; 2] {
        let of = |side: usize| rows.iter().map(|&row| self.rows.rows[row as usize].values[side]).sum();
        [of(0), of(1)]
    }

    /// The change of values beside the amount of work, in those of the new runs.
    pub(super) fn delta(&self, [base, new]: [f64; 2]) -> f64 {
        new - self.scale * base
    }

    /// The penalised deviance of rows of a set.
    pub(super) fn score(&self, set: usize, rows: &[u32]) -> f64 {
        let v = self.sum(rows);
        let q: f64 = rows.iter().map(|&row| self.rows.rows[row as usize].variance).sum();
        let w = (q / (v[0] + v[1]).max(1e-300)).max(1e-300);
        let [b, n] = v.map(|v| v / w);
        if b + n <= 0.0 {
            return 0.0;
        }
        penalised(b, n, self.scale, variance_of(self.rows, self.found.tau2.of(self.sets, set), [b, n]))
    }

    /// True if rows of a set are a cause by themselves.
    pub(super) fn is_cause(&self, set: usize, rows: &[u32]) -> bool {
        let total = self.rows.total();
        let floor = self.min_effect * (self.scale * total[0] + total[1]) / 2.0;
        self.delta(self.sum(rows)).abs() > floor
            && self.score(set, rows) > self.found.threshold + self.sets.sets[set].price
    }

    /// Gives each stack to the narrowest of the causes that hold it; of equals to the first. What is no cause by the stacks
    /// that it has then, or what a plain table contradicts, is none, and its stacks are the others'.
    pub(super) fn settle(&self, mut candidates: Vec<CauseCandidate>) -> Vec<Entry> {
        loop {
            let width = |candidate: &CauseCandidate| {
                let [base, new] = self.sum(&candidate.rows);
                self.scale * base + new
            };
            let mut order: Vec<usize> = (0..candidates.len()).collect();
            order.sort_by(|&a, &b| width(&candidates[b]).total_cmp(&width(&candidates[a])).then(b.cmp(&a)));
            let mut owner = vec![NONE; self.rows.rows.len()];
            for candidate in order {
                candidates[candidate].rows.iter().for_each(|&row| owner[row as usize] = candidate as u32);
            }
            let own = |candidate: usize| -> Vec<u32> {
                candidates[candidate]
                    .rows
                    .iter()
                    .copied()
                    .filter(|&row| owner[row as usize] == candidate as u32)
                    .collect()
            };
            let others = |candidate: usize| -> Vec<u32> {
                let owners = candidates[candidate].rows.iter().map(|&row| owner[row as usize] as usize);
                let mut others: Vec<u32> =
                    owners.filter(|of| *of != candidate).filter_map(|of| candidates[of].of.function).collect();
                others.sort_unstable();
                others.dedup();
                others
            };
            let entries: Vec<Option<Entry>> = (0..candidates.len())
                .map(|candidate| {
                    let entry = self.entry(&candidates[candidate], own(candidate))?;
                    // To leave out a function that is in its own stacks would leave these out.
                    let is_own =
                        |frame: &u32| entry.rows.iter().any(|&row| self.rows.stack(row as usize).contains(frame));
                    let others = others(candidate).into_iter().filter(|frame| !is_own(frame)).collect();
                    Some(Entry { others, ..entry })
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

    /// A cause of these stacks of a candidate, if they make one and what it would say is true.
    fn entry(&self, candidate: &CauseCandidate, rows: Vec<u32>) -> Option<Entry> {
        if self.is_cause(candidate.set, &rows) { self.said(candidate, rows) } else { None }
    }

    /// What is said of these stacks of a candidate, if it is true.
    pub(super) fn said(&self, candidate: &CauseCandidate, mut rows: Vec<u32>) -> Option<Entry> {
        let mut of = candidate.of.clone();
        if let (Some(function), Some(caller), None) = (of.function, of.caller, of.label)
            && self.rows.is_system(function)
            && !self.rows.is_system(caller)
        {
            // What the runtime does is done by who calls it.
            of = Description {
                function: Some(caller),
                callee: Some(function),
                caller: None,
                kind: CauseKind::Calls,
                ..of
            };
        }
        let change = self.delta(self.sum(&rows));
        let goes_along = |whole: [f64; 2]| self.delta(whole) * change.signum() >= MIN_PART_OF_WHOLE * change.abs();
        let mut callees = Vec::new();
        if let (CauseKind::Own, Some(function)) = (of.kind, of.function) {
            self.name_callee(&mut of, function, candidate.set, &mut rows);
            let is_own =
                |stack: &[u32]| stack.iter().rev().find(|&&frame| !self.rows.is_system(frame)) == Some(&function);
            let is_leaf = |stack: &[u32]| stack.last() == Some(&function);
            if of.kind == CauseKind::Own
                && !goes_along(self.uncut.sum(function, |stack| is_own(stack) || is_leaf(stack)))
            {
                of.kind = CauseKind::Calls;
            }
            if of.kind == CauseKind::Calls && of.callee.is_none() {
                callees = self.callees(function, &rows);
                of.caller = of.caller.filter(|_| callees.is_empty());
            }
        }
        if let (None, Some(function)) = (of.label, of.function) {
            let whole = match of.callee {
                Some(callee) => self.uncut.of_function(callee, Some(function)),
                // What is its own, or one of its callers, says so of all calls of it.
                None if of.kind == CauseKind::Own => self.sum(&candidate.rows),
                None => self.uncut.of_function(function, of.caller),
            };
            let other = match of.kind {
                CauseKind::Added => Some(0),
                CauseKind::Removed => Some(1),
                _ => None,
            };
            let one_sided = other.map(|side| whole[side]);
            let is_cut = other.is_some_and(|side| self.rows.may_have(of.callee.unwrap_or(function), side));
            // Where stacks end at the program's last function, not all calls of the system's are known.
            let is_known = !(self.rows.runtime.trim_library_leaves && self.rows.is_system(function));
            if is_cut || one_sided.is_some_and(|other| other > 0.0 || !is_known) {
                of.kind = CauseKind::Calls;
            }
            if !goes_along(whole) {
                // A call may go through what one side has inlined; then what is called says it.
                let may =
                    of.caller.is_some() && of.callee.is_none() && goes_along(self.uncut.of_function(function, None));
                if !may {
                    return None;
                }
                (of.caller, of.kind) = (None, CauseKind::Calls);
                of.chain.clear();
            }
        } else if !goes_along(self.sum(&candidate.rows)) {
            return None;
        }
        let v = self.sum(&rows);
        // A label, or a chain of calls, that one side has all but nothing of came or went only if it has nothing.
        let is_false = of.kind == CauseKind::Added && v[0] > 0.0 || of.kind == CauseKind::Removed && v[1] > 0.0;
        of.kind = if is_false { CauseKind::Calls } else { of.kind };
        let instead = of.function.filter(|_| of.label.is_none() && of.callee.is_none() && candidate.parts.is_empty());
        if let Some(parts) = instead.and_then(|function| self.instead(function, self.sum(&rows))) {
            let kind = if of.kind == CauseKind::Own { CauseKind::Calls } else { of.kind };
            let (v, score) = (self.sum(&rows), self.score(candidate.set, &rows));
            return Some(Entry {
                values: v,
                score,
                parts,
                rows,
                ..Entry::of(candidate.set, Description { kind, ..of })
            });
        }
        let parts = candidate.parts.iter().map(|(part, of_part)| {
            let own: Vec<u32> = of_part.iter().copied().filter(|row| rows.binary_search(row).is_ok()).collect();
            (part.clone(), self.sum(&own))
        });
        let parts = parts.filter(|(_, v)| v[0] + v[1] > 0.0).chain(callees).collect();
        Some(Entry { values: v, score: self.score(candidate.set, &rows), parts, rows, ..Entry::of(candidate.set, of) })
    }

    /// How much of a change is that of the count, and how much that of each: logarithms of the factors, which add up
    /// exactly (LMDI, Ang 2004). Only where count and cost are two measurements.
    pub(super) fn split(&self, entry: &Entry) -> Option<[f64; 4]> {
        if self.rows.kind == Kind::Sampled {
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

    /// The whole difference by where it belongs, of a mean run of the new side.
    pub(super) fn account(&self, entries: &[Entry]) -> Account {
        let [m0, m1] = self.rows.runs.map(|m| m as f64);
        let [base, new] = self.rows.all();
        let mut is_open: Vec<bool> = self.rows.rows.iter().map(|row| !row.background).collect();
        let background = |row: &&u32| self.rows.rows[**row as usize].background;
        let all: Vec<u32> = (0..self.rows.rows.len() as u32).collect();
        let background: Vec<u32> = all.iter().filter(background).copied().collect();
        entries.iter().flat_map(|entry| &entry.rows).for_each(|&row| is_open[row as usize] = false);
        let open: Vec<u32> = all.into_iter().filter(|&row| is_open[row as usize]).collect();
        let delta = new / m1 - base / m0;
        let work = (self.scale / m1 - 1.0 / m0) * base;
        let causes = entries.iter().map(|entry| self.delta(entry.values)).sum::<f64>() / m1;
        let consequences = self.delta(self.sum(&background)) / m1;
        // Rounded as all that is said; what is left is what these leave.
        let [delta, work, causes, consequences] = [delta, work, causes, consequences].map(rounded);
        let tau2 = self.tau2_of_all();
        let rest = rounded(delta - work - causes - consequences);
        Account {
            delta,
            work,
            causes,
            consequences,
            garbage: rounded(self.delta(self.garbage()) / m1),
            rest,
            // Of negative values nobody knows.
            by_chance: self.deviance_of(&open, tau2) < LEVEL && self.rows.negative == [0.0; 2],
            unexplained: rest.abs() > LARGE_REST * (base / m0).max(new / m1)
                && self.deviance_of(&open, 0.0) > MORE_THAN_SAMPLING,
            // What answers to causes elsewhere varies as single functions do.
            consequences_by_chance: self.deviance_of(&background, self.found.tau * self.found.tau) < CERTAIN,
            p: self.p_of_total().map(rounded),
        }
    }

    /// How probable the difference of the totals is by chance, two-sided: of several runs by what these differ by (Student's),
    /// of one pair by what is known of other programs.
    fn p_of_total(&self) -> Option<f64> {
        let (m, total) = (self.rows.runs, self.rows.total());
        let q: f64 = self.rows.rows.iter().map(|row| row.variance).sum();
        let w = (q / (total[0] + total[1]).max(1e-300)).max(1e-300);
        if total.iter().any(|total| *total <= 0.0) {
            return None;
        }
        let mut runs = vec![0.0; self.rows.runs_of_row()];
        for row in 0..self.rows.rows.len() {
            self.rows.run_values.of(row).iter().for_each(|cell| runs[cell.column as usize] += cell.value);
        }
        let squares = |runs: &[f64]| {
            let mean = runs.iter().sum::<f64>() / runs.len() as f64;
            runs.iter().map(|x| (x / mean - 1.0).powi(2)).sum::<f64>()
        };
        let degrees = m[0] + m[1] - 2;
        let ratio = (total[1] / total[0] / self.exposure).ln();
        let sampling = w / total[0] + w / total[1];
        let p = match m.iter().all(|&m| m > 1) {
            true => {
                let tau2 = (squares(&runs[..m[0]]) + squares(&runs[m[0]..m[0] + m[1]])) / degrees as f64;
                2.0 * student_tail(ratio.abs() / between_run_variance(tau2, m).max(sampling).sqrt(), degrees as u32)
            }
            false => {
                let variance = between_run_variance(known_variance(self.rows.kind), m) + sampling;
                2.0 * normal_tail(ratio.abs() / variance.sqrt())
            }
        };
        Some(p.min(1.0))
    }

    /// The variance between runs of the widest of the sets.
    fn tau2_of_all(&self) -> f64 {
        let wide = (0..self.sets.len()).filter(|&set| matches!(self.sets.sets[set].key, Key::Node(_) | Key::Edge(..)));
        let value = |set: &usize| self.sets.sets[*set].values[0] + self.sets.sets[*set].values[1];
        let widest = wide.max_by(|a, b| value(a).total_cmp(&value(b)).then(b.cmp(a)));
        widest.map_or(self.found.tau * self.found.tau, |set| self.found.tau2.of(self.sets, set))
    }

    /// The penalised deviance of rows together, which differ between runs by such a variance.
    pub(super) fn deviance_of(&self, rows: &[u32], tau2: f64) -> f64 {
        let v = self.sum(rows);
        let q: f64 = rows.iter().map(|&row| self.rows.rows[row as usize].variance).sum();
        let w = (q / (v[0] + v[1]).max(1e-300)).max(1e-300);
        let [b, n] = v.map(|v| v / w);
        if b + n > 0.0 { penalised(b, n, self.scale, between_run_variance(tau2, self.rows.runs)) } else { 0.0 }
    }
}
