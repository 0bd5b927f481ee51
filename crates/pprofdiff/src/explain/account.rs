//! From what the search found to an account: every stack belongs to one cause at most, and what is said of a cause is what
//! its stacks measure. So with the amount of work, what answers to causes elsewhere and the rest, causes add up to the whole
//! difference, in the sample type's unit:
//!
//! ```text
//! new - base = (scale - 1) base  +  sum over causes of (new - scale base)  +  the same of consequences  +  of the rest
//! ```
//!
//! The search decides which sets are causes, and in which order; nothing that it lacks or expects is said.

use std::collections::BTreeMap;

use super::answer::Account;
use super::rows::{Kind, Rows, Stacks};
use super::search::{Found, NEARLY_ALL, known_variance, variance_of};
use super::sets::{Key, Sets};
use super::story::{CauseKind, Description, Draft, Story};
use super::told::rounded;
use crate::statistics::counts::{LEVEL, between_run_variance, deviance, penalised};
use crate::statistics::distributions::{normal_tail, student_tail};
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::work::paced;

/// What a cause is named by must have changed as a whole by this part of the cause, or the name says something false.
const LEAST_OF_WHOLE: f64 = 0.35;
/// What the penalised deviance of something that nothing touched exceeds one time in a hundred.
const CERTAIN: f64 = 6.63;
/// Garbage is a cause's from this part of what is allocated more or less.
const LEAST_OF_GARBAGE: f64 = 0.1;
/// A caller calls one function instead of another if they have this part of its cost.
const INSTEAD: f64 = 0.5;
/// A candidate that is no cause is named from this part of the total.
const WORTH_A_NAME: f64 = 0.02;
/// Numbers of runs that are advised.
const FEWEST_RUNS: f64 = 3.0;
const MOST_RUNS: f64 = 20.0;
/// Of a function's own change, calls are the cause that have more than this part of it.
const MOSTLY: f64 = 0.5;

/// Stacks with the names of the base, before calls were left out of them that one side has inlined or that changed places.
pub(super) struct Uncut {
    stacks: Stacks,
    values: Vec<[f64; 2]>,
    /// By frame: true if it is part of its callers on one side.
    pub is_folded: Vec<bool>,
}

impl Uncut {
    pub(super) fn of(rows: &Rows) -> Uncut {
        let mut stacks = Stacks::default();
        (0..rows.rows.len()).for_each(|row| {
            stacks.push(rows.stack(row).iter().copied());
        });
        let values = rows.rows.iter().map(|row| row.v).collect();
        Uncut { stacks, values, is_folded: vec![false; rows.names.len()] }
    }

    /// What both sides have of stacks.
    fn sum(&self, holds: impl Fn(&[u32]) -> bool) -> [f64; 2] {
        let mut sum = [0.0; 2];
        for (_, v) in paced((0..).zip(&self.values)).filter(|(stack, _)| holds(self.stacks.get(*stack))) {
            sum = [sum[0] + v[0], sum[1] + v[1]];
        }
        sum
    }

    /// What a plain table has of a function, or of the calls of it.
    fn of_function(&self, function: u32, caller: Option<u32>) -> [f64; 2] {
        match caller {
            Some(caller) => self.sum(|stack| stack.windows(2).any(|w| (w[0], w[1]) == (caller, function))),
            None => self.sum(|stack| stack.contains(&function)),
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
    pub v: [f64; 2],
    pub score: f64,
    /// Functions of which the cause's own name has stacks, too, which belong to other causes.
    pub others: Vec<u32>,
    /// The parts that it is made up of, with what they have of its stacks.
    pub parts: Vec<(Description, [f64; 2])>,
}

/// What causes are measured with.
pub(super) struct Books<'a> {
    pub rows: &'a Rows,
    pub sets: &'a Sets,
    pub found: &'a Found,
    pub uncut: &'a Uncut,
    /// The least change that is a cause, as a part of the total.
    pub min_effect: f64,
    /// What all of the new side would have to all of the base if both did the same work, or what is given.
    pub exposure: f64,
    /// What it has more by the amount of work; the exposure where nothing is done.
    pub scale: f64,
}

impl Books<'_> {
    fn sum(&self, rows: &[u32]) -> [f64; 2] {
        let of = |side: usize| rows.iter().map(|&row| self.rows.rows[row as usize].v[side]).sum();
        [of(0), of(1)]
    }

    /// The change of values beside the amount of work, in those of the new runs.
    fn delta(&self, [base, new]: [f64; 2]) -> f64 {
        new - self.scale * base
    }

    /// The penalised deviance of rows of a set.
    fn score(&self, set: usize, rows: &[u32]) -> f64 {
        let v = self.sum(rows);
        let q: f64 = rows.iter().map(|&row| self.rows.rows[row as usize].q).sum();
        let w = (q / (v[0] + v[1]).max(1e-300)).max(1e-300);
        let [b, n] = v.map(|v| v / w);
        if b + n <= 0.0 {
            return 0.0;
        }
        penalised(b, n, self.scale, variance_of(self.rows, self.found.tau2[set], [b, n]))
    }

    /// True if rows of a set are a cause by themselves.
    fn is_cause(&self, set: usize, rows: &[u32]) -> bool {
        let total = self.rows.total();
        let floor = self.min_effect * (self.scale * total[0] + total[1]) / 2.0;
        self.delta(self.sum(rows)).abs() > floor && self.score(set, rows) > self.found.need + self.sets.sets[set].price
    }

    /// Gives each stack to the narrowest of the causes that hold it; of equals to the first. What is no cause by the stacks
    /// that it has then, or what a plain table contradicts, is none, and its stacks are the others'.
    pub(super) fn settle(&self, mut drafts: Vec<Draft>) -> Vec<Entry> {
        loop {
            let width = |draft: &Draft| {
                let [base, new] = self.sum(&draft.rows);
                self.scale * base + new
            };
            let mut order: Vec<usize> = (0..drafts.len()).collect();
            order.sort_by(|&a, &b| width(&drafts[b]).total_cmp(&width(&drafts[a])).then(b.cmp(&a)));
            let mut owner = vec![NONE; self.rows.rows.len()];
            for draft in order {
                drafts[draft].rows.iter().for_each(|&row| owner[row as usize] = draft as u32);
            }
            let own = |draft: usize| -> Vec<u32> {
                drafts[draft].rows.iter().copied().filter(|&row| owner[row as usize] == draft as u32).collect()
            };
            let others = |draft: usize| -> Vec<u32> {
                let owners = drafts[draft].rows.iter().map(|&row| owner[row as usize] as usize);
                let mut others: Vec<u32> =
                    owners.filter(|of| *of != draft).filter_map(|of| drafts[of].of.function).collect();
                others.sort_unstable();
                others.dedup();
                others
            };
            let entries: Vec<Option<Entry>> = (0..drafts.len())
                .map(|draft| {
                    let entry = self.entry(&drafts[draft], own(draft))?;
                    // To leave out a function that is in its own stacks would leave these out.
                    let is_own =
                        |frame: &u32| entry.rows.iter().any(|&row| self.rows.stack(row as usize).contains(frame));
                    let others = others(draft).into_iter().filter(|frame| !is_own(frame)).collect();
                    Some(Entry { others, ..entry })
                })
                .collect();
            let size = |draft: &usize| drafts[*draft].delta.abs();
            let missing = (0..drafts.len()).filter(|&draft| entries[draft].is_none());
            match missing.min_by(|a, b| size(a).total_cmp(&size(b))) {
                Some(draft) => drafts.remove(draft),
                None => break entries.into_iter().flatten().collect(),
            };
        }
    }

    /// Where a caller has a call of one function that came and of one that went, that is one cause, with what both come to: the
    /// caller calls the one instead of the other. Unless they come to nothing that the caller feels. Of several the largest.
    pub(super) fn replace(&self, mut entries: Vec<Entry>) -> Vec<Entry> {
        loop {
            entries.sort_by(|a, b| self.delta(b.v).abs().total_cmp(&self.delta(a.v).abs()));
            let numbers = || 0..entries.len();
            let pairs = numbers().flat_map(|a| numbers().map(move |b| (a, b)));
            let both = |(a, b): (usize, usize)| Some((a, b, self.replaced(&entries[a], &entries[b])?));
            let Some((a, b, both)) = pairs.filter_map(both).next() else { return entries };
            entries.remove(a.max(b));
            entries.remove(a.min(b));
            entries.push(both);
        }
    }

    /// Who calls what, of a call that came or went.
    fn one_sided_call(entry: &Entry) -> Option<(u32, u32, CauseKind)> {
        let of = &entry.of;
        if of.label.is_some() || !entry.parts.is_empty() {
            return None;
        }
        match (of.kind, of.caller, of.function, of.callee) {
            (CauseKind::Added | CauseKind::Removed, Some(caller), Some(function), None) => {
                Some((caller, function, of.kind))
            }
            (_, _, Some(function), Some(callee)) if entry.v[0] <= 0.0 => Some((function, callee, CauseKind::Added)),
            (_, _, Some(function), Some(callee)) if entry.v[1] <= 0.0 => Some((function, callee, CauseKind::Removed)),
            _ => None,
        }
    }

    fn replaced(&self, added: &Entry, removed: &Entry) -> Option<Entry> {
        let (came, went) = (Self::one_sided_call(added)?, Self::one_sided_call(removed)?);
        if (came.0, came.2, went.2) != (went.0, CauseKind::Added, CauseKind::Removed) {
            return None;
        }
        let caller = came.0;
        let v = [added.v[0] + removed.v[0], added.v[1] + removed.v[1]];
        let mut rows: Vec<u32> = added.rows.iter().chain(&removed.rows).copied().collect();
        rows.sort_unstable();
        let change = self.delta(v);
        let whole = self.delta(self.uncut.of_function(caller, None)) * change.signum();
        let plain = |function: u32, caller: Option<u32>, kind: CauseKind| Description {
            kind,
            function: Some(function),
            caller,
            label: None,
            callee: None,
            chain: Vec::new(),
        };
        let part = |(caller, callee, kind): (u32, u32, CauseKind)| plain(callee, Some(caller), kind);
        let parts = vec![(part(came), added.v), (part(went), removed.v)];
        let set = if change > 0.0 { added.set } else { removed.set };
        let others = added.others.iter().chain(&removed.others).copied().collect();
        let is_felt = whole >= LEAST_OF_WHOLE * change.abs() && self.is_cause(set, &rows);
        let of = plain(caller, None, CauseKind::Calls);
        is_felt.then(|| Entry { set, of, v, score: self.score(set, &rows), others, parts, rows })
    }

    /// What a function calls instead of what it called, if these two have most of its cost: the call that came and the one
    /// that went. `v` is what its cause has, which must be nearly all of it.
    fn instead(&self, function: u32, v: [f64; 2]) -> Option<Vec<(Description, [f64; 2])>> {
        let mut of: BTreeMap<u32, [f64; 2]> = BTreeMap::new();
        let mut whole = [0.0; 2];
        for (stack, v) in paced((0..).zip(&self.uncut.values)) {
            let stack = self.uncut.stacks.get(stack);
            let Some(at) = stack.iter().rposition(|&frame| frame == function) else { continue };
            whole = [whole[0] + v[0], whole[1] + v[1]];
            // What is part of the function on one side is no other call.
            if let Some(&callee) = stack[at + 1..].iter().find(|&&frame| !self.uncut.is_folded[frame as usize]) {
                let sum = of.entry(callee).or_default();
                *sum = [sum[0] + v[0], sum[1] + v[1]];
            }
        }
        let most = |side: usize| {
            let only = of.iter().filter(|(_, v)| v[1 - side] <= 0.0 && v[side] > INSTEAD * whole[side]);
            only.max_by(|a, b| a.1[side].total_cmp(&b.1[side]).then(b.0.cmp(a.0)))
        };
        let is_all = (0..2).all(|side| v[side] > NEARLY_ALL * whole[side] && whole[side] > 0.0);
        let ((&came, &new), (&went, &base)) = (most(1).filter(|_| is_all)?, most(0)?);
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

    /// What comes nearest to a cause: of the sets that are more than chance by themselves the one that explains most.
    pub(super) fn candidate(&self, story: &Story<'_>) -> Option<Entry> {
        let total = self.rows.total();
        let floor = WORTH_A_NAME * (self.scale * total[0] + total[1]) / 2.0;
        let explains = |set: usize| {
            let of = &self.sets.sets[set];
            let [b, n] = of.v.map(|v| v / of.w.max(1e-300));
            let is_large = !of.whole && self.delta(of.v).abs() > floor && b + n > 0.0;
            let variance = variance_of(self.rows, self.found.tau2[set], [b, n]);
            let is_some = is_large && penalised(b, n, self.scale, variance) - of.price > LEVEL;
            is_some.then(|| deviance(b, n, self.scale) - of.price)
        };
        let all = paced(0..self.sets.len()).filter_map(|set| Some((explains(set)?, set)));
        let (_, set) = all.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))?;
        let draft = story.draft(set, self.delta(self.sets.sets[set].v) / self.scale);
        let rows = draft.rows.clone();
        self.said(&draft, rows)
    }

    /// About how many runs a side show a cause of this score: what is chance falls with their number.
    pub(super) fn runs_needed(&self, score: f64) -> Option<usize> {
        let m = self.rows.m.into_iter().max().unwrap_or(1) as f64;
        let runs = (m * self.found.need / score.max(1e-9)).ceil().max(m + 1.0).max(FEWEST_RUNS);
        (runs <= MOST_RUNS).then_some(runs as usize)
    }

    /// Where all of what is in use grew by one factor, that is a cause; `of_work` is what the search took for the amount of
    /// work. The stacks are those that no other cause has.
    pub(super) fn level(&self, entries: &[Entry], of_work: f64) -> Option<Entry> {
        let mut is_open: Vec<bool> = self.rows.rows.iter().map(|row| !row.background).collect();
        entries.iter().flat_map(|entry| &entry.rows).for_each(|&row| is_open[row as usize] = false);
        // What the search took for causes did not grow as the others did.
        let fits = self.found.fits.iter().flat_map(|fit| self.sets.rows(fit.set));
        fits.for_each(|row| is_open[row as usize] = false);
        let rows: Vec<u32> = (0..self.rows.rows.len() as u32).filter(|&row| is_open[row as usize]).collect();
        let v = self.sum(&rows);
        let of = Description {
            kind: CauseKind::Calls,
            function: None,
            caller: None,
            label: None,
            callee: None,
            chain: Vec::new(),
        };
        let is_one = (of_work / self.scale).ln().abs() < 1e-6;
        let (score, parts, others) = (self.found.need, Vec::new(), Vec::new());
        (!is_one && v[0] > 0.0 && v[1] > 0.0).then_some(Entry { set: 0, of, rows, v, score, others, parts })
    }

    /// A cause of these stacks of a draft, if they make one and what it would say is true.
    fn entry(&self, draft: &Draft, rows: Vec<u32>) -> Option<Entry> {
        if self.is_cause(draft.set, &rows) { self.said(draft, rows) } else { None }
    }

    /// What is said of these stacks of a draft, if it is true.
    fn said(&self, draft: &Draft, mut rows: Vec<u32>) -> Option<Entry> {
        let mut of = draft.of.clone();
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
        let goes_along = |whole: [f64; 2]| self.delta(whole) * change.signum() >= LEAST_OF_WHOLE * change.abs();
        if let (CauseKind::Own, Some(function)) = (of.kind, of.function) {
            self.name_callee(&mut of, function, draft.set, &mut rows);
            let is_own =
                |stack: &[u32]| stack.iter().rev().find(|&&frame| !self.rows.is_system(frame)) == Some(&function);
            let is_leaf = |stack: &[u32]| stack.last() == Some(&function);
            if of.kind == CauseKind::Own && !goes_along(self.uncut.sum(|stack| is_own(stack) || is_leaf(stack))) {
                of.kind = CauseKind::Calls;
            }
        }
        if let (None, Some(function)) = (of.label, of.function) {
            let whole = match of.callee {
                Some(callee) => self.uncut.of_function(callee, Some(function)),
                // What is its own, or one of its callers, says so of all calls of it.
                None if of.kind == CauseKind::Own => self.sum(&draft.rows),
                None => self.uncut.of_function(function, of.caller),
            };
            let one_sided = match of.kind {
                CauseKind::Added => Some(whole[0]),
                CauseKind::Removed => Some(whole[1]),
                _ => None,
            };
            // Where stacks end at the program's last function, not all calls of the system's are known.
            let is_known = !(self.rows.runtime.cut_system && self.rows.is_system(function));
            if one_sided.is_some_and(|other| other > 0.0 || !is_known) {
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
        } else if !goes_along(self.sum(&draft.rows)) {
            return None;
        }
        let v = self.sum(&rows);
        // A label, or a chain of calls, that one side has all but nothing of came or went only if it has nothing.
        let is_false = of.kind == CauseKind::Added && v[0] > 0.0 || of.kind == CauseKind::Removed && v[1] > 0.0;
        of.kind = if is_false { CauseKind::Calls } else { of.kind };
        let instead = of.function.filter(|_| of.label.is_none() && of.callee.is_none() && draft.parts.is_empty());
        if let Some(parts) = instead.and_then(|function| self.instead(function, self.sum(&rows))) {
            let kind = if of.kind == CauseKind::Own { CauseKind::Calls } else { of.kind };
            let (v, of, score) = (self.sum(&rows), Description { kind, ..of }, self.score(draft.set, &rows));
            return Some(Entry { set: draft.set, of, v, score, others: Vec::new(), parts, rows });
        }
        let parts = draft.parts.iter().map(|(part, of_part)| {
            let own: Vec<u32> = of_part.iter().copied().filter(|row| rows.binary_search(row).is_ok()).collect();
            (part.clone(), self.sum(&own))
        });
        let parts = parts.filter(|(_, v)| v[0] + v[1] > 0.0).collect();
        Some(Entry { set: draft.set, of, v, score: self.score(draft.set, &rows), others: Vec::new(), parts, rows })
    }

    /// Where a function's own change is mostly that of one function of the system that it calls, these calls are the cause; if
    /// it is that of several, the function is no dearer by itself. Who waits for a lock always does so in the system.
    fn name_callee(&self, of: &mut Description, function: u32, set: usize, rows: &mut Vec<u32>) {
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

    /// How much of a change is that of the count, and how much that of each: logarithms of the factors, which add up
    /// exactly (LMDI, Ang 2004). Only where count and cost are two measurements.
    pub(super) fn split(&self, entry: &Entry) -> Option<[f64; 4]> {
        if self.rows.kind == Kind::Sampled {
            return None;
        }
        let c = [0, 1].map(|s| entry.rows.iter().map(|&r| self.rows.rows[r as usize].c[s]).sum::<f64>());
        let v = entry.v;
        if c.iter().chain(&v).any(|x| *x <= 0.0) {
            return None;
        }
        let count = c[1] / c[0] / self.scale;
        let unit = (v[1] / c[1]) / (v[0] / c[0]);
        let whole = (count * unit).ln();
        (whole.abs() > 1e-6).then(|| [count.ln() / whole, unit.ln() / whole, count, unit])
    }

    /// What garbage collection costs, where it answers to causes elsewhere.
    fn garbage(&self) -> [f64; 2] {
        let collects = |row: &u32| {
            self.rows.rows[*row as usize].background && self.rows.has(*row as usize, |class| class.collects)
        };
        self.sum(&(0..self.rows.rows.len() as u32).filter(collects).collect::<Vec<_>>())
    }

    /// How much of the change of garbage collection is each cause's, in all runs of the new side: as much of it as of the
    /// change of what is allocated. Nothing where that went the other way, or where it is no more than chance; together no
    /// more than there is.
    pub(super) fn garbage_of(&self, entries: &[Entry]) -> Vec<Option<f64>> {
        let allocates = |row: &u32| self.rows.has(*row as usize, |class| class.allocates);
        let open = (0..self.rows.rows.len() as u32).filter(|&row| !self.rows.rows[row as usize].background);
        let all: Vec<u32> = open.filter(allocates).collect();
        let (of_all, collected) = (self.delta(self.sum(&all)), self.delta(self.garbage()));
        let tau2 = self.found.tau * self.found.tau;
        if of_all * collected <= 0.0 || self.deviance_of(&all, tau2) <= LEVEL {
            return vec![None; entries.len()];
        }
        let of_own = |entry: &Entry| {
            let own: Vec<u32> = entry.rows.iter().copied().filter(allocates).collect();
            self.delta(self.sum(&own)) / of_all
        };
        let parts: Vec<f64> = entries.iter().map(of_own).collect();
        let given = parts.iter().filter(|part| **part > 0.0).sum::<f64>().max(1.0);
        let garbage = |part: f64| (part > LEAST_OF_GARBAGE).then(|| collected * part / given);
        parts.into_iter().map(garbage).collect()
    }

    /// The whole difference by where it belongs, of a mean run of the new side.
    pub(super) fn account(&self, entries: &[Entry]) -> Account {
        let [m0, m1] = self.rows.m.map(|m| m as f64);
        let [base, new] = self.rows.total();
        let mut is_open: Vec<bool> = self.rows.rows.iter().map(|row| !row.background).collect();
        let background = |row: &&u32| self.rows.rows[**row as usize].background;
        let all: Vec<u32> = (0..self.rows.rows.len() as u32).collect();
        let background: Vec<u32> = all.iter().filter(background).copied().collect();
        entries.iter().flat_map(|entry| &entry.rows).for_each(|&row| is_open[row as usize] = false);
        let open: Vec<u32> = all.into_iter().filter(|&row| is_open[row as usize]).collect();
        let delta = new / m1 - base / m0;
        let work = (self.scale / m1 - 1.0 / m0) * base;
        let causes = entries.iter().map(|entry| self.delta(entry.v)).sum::<f64>() / m1;
        let consequences = self.delta(self.sum(&background)) / m1;
        // Rounded as all that is said; what is left is what these leave.
        let [delta, work, causes, consequences] = [delta, work, causes, consequences].map(rounded);
        let tau2 = self.tau2_of_all();
        Account {
            delta,
            work,
            causes,
            consequences,
            garbage: rounded(self.delta(self.garbage()) / m1),
            rest: rounded(delta - work - causes - consequences),
            by_chance: self.deviance_of(&open, tau2) < LEVEL,
            // What answers to causes elsewhere varies as single functions do.
            consequences_by_chance: self.deviance_of(&background, self.found.tau * self.found.tau) < CERTAIN,
            p: self.p_of_total().map(rounded),
        }
    }

    /// How probable the difference of the totals is by chance, two-sided: of several runs by what these differ by (Student's),
    /// of one pair by what is known of other programs.
    fn p_of_total(&self) -> Option<f64> {
        let (m, total) = (self.rows.m, self.rows.total());
        let q: f64 = self.rows.rows.iter().map(|row| row.q).sum();
        let w = (q / (total[0] + total[1]).max(1e-300)).max(1e-300);
        if total.iter().any(|total| *total <= 0.0) {
            return None;
        }
        let mut runs = vec![0.0; self.rows.runs_of_row()];
        for row in 0..self.rows.rows.len() {
            self.rows.runs.of(row).iter().for_each(|cell| runs[cell.column as usize] += cell.value);
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
        let value = |set: &usize| self.sets.sets[*set].v[0] + self.sets.sets[*set].v[1];
        let widest = wide.max_by(|a, b| value(a).total_cmp(&value(b)).then(b.cmp(a)));
        widest.map_or(self.found.tau * self.found.tau, |set| self.found.tau2[set])
    }

    /// The penalised deviance of rows together, which differ between runs by such a variance.
    fn deviance_of(&self, rows: &[u32], tau2: f64) -> f64 {
        let v = self.sum(rows);
        let q: f64 = rows.iter().map(|&row| self.rows.rows[row as usize].q).sum();
        let w = (q / (v[0] + v[1]).max(1e-300)).max(1e-300);
        let [b, n] = v.map(|v| v / w);
        if b + n > 0.0 { penalised(b, n, self.scale, between_run_variance(tau2, self.rows.m)) } else { 0.0 }
    }
}
