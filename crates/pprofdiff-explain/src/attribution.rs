//! From sets to causes: separates cost that only moved from causes, merges causes that are one, and describes each
//! cause.

use super::answer::MoveKind;
use super::evidence::rows::StackRows;
use super::evidence::sets::{SetKey, Sets};
use super::related::{Changed, CostRelation, is_replaced};
use super::search::SearchResult;
use super::thresholds::{
    DEVIATION_OF_MOVED_COUNTS, MAX_CHANGE_OF_EVEN_SUM, MAX_CHANGE_OF_SHIFT_PLACE, MAX_DIFFERENCE_OF_COUNTERPART,
    MAX_DIFFERENCE_OF_SIBLINGS, MAX_DIFFERENCE_OF_SWAP, MAX_ERRORS_OF_SILENT_PLACE, MAX_OPPOSITE_PART_OF_ONE_SIDED,
    MAX_OVERLAP_OF_MERGED, MAX_PART_OF_PLACE, MAX_SIZE_OF_SHIFT_PLACE, MAX_SIZE_OF_SHIFT_PLACE_WITHOUT_LEAVES,
    MIN_CHANGE_OF_NAMED_WHOLE, MIN_DEVIANCE_OF_COUNTERPART, MIN_ERRORS_OF_SHIFT, MIN_MEASURED_PART_OF_CANDIDATE,
    MIN_PART_INSIDE_MERGED_SET, MIN_PART_INSIDE_PLACE, MIN_PART_OF_MERGED_SET, MIN_PART_OF_PARTNER,
    PENALTY_OF_PARTNER_OUTSIDE,
};
use pprofdiff::shared::statistics::counts;
use pprofdiff::shared::{ValueKind, known_variance};
use pprofdiff_profile::short_lists::sort_by;

/// The kind of change of a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CauseKind {
    /// The function's own cost: its own code, or the system functions that it calls.
    #[serde(rename = "self")]
    Own,
    /// The cost of the function with its callees: it is called more or less often, or a call costs more or less. Labels
    /// and levels without a function have this kind, too.
    Calls,
    /// A function, call or label that only the new side has.
    Added,
    /// A function, call or label that only the base has.
    Removed,
}

impl CauseKind {
    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            CauseKind::Own => "self",
            CauseKind::Calls => "calls",
            CauseKind::Added => "added",
            CauseKind::Removed => "removed",
        }
    }
}

/// The name of a set of stacks: function, caller, label and kind of change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Description {
    pub kind: CauseKind,
    pub function: Option<u32>,
    pub caller: Option<u32>,
    pub label: Option<u32>,
    /// The callee, if the function's calls of it changed.
    pub callee: Option<u32>,
    /// Called functions with the same stacks, from the root.
    pub chain: Vec<u32>,
}

impl Description {
    /// Describes all stacks together.
    pub(super) fn all(kind: CauseKind) -> Description {
        Description { kind, function: None, caller: None, label: None, callee: None, chain: Vec::new() }
    }
}

/// A result of the search that may become a cause.
#[derive(Debug, Clone)]
pub(super) struct CauseCandidate {
    pub set: usize,
    /// The set's rows, in order.
    pub rows: Vec<u32>,
    pub subject: Description,
    /// The change that the search attributes to this set, given the remaining causes, in values of all base
    /// runs together.
    pub delta: f64,
    /// The merged sets with their rows.
    pub parts: Vec<(Description, Vec<u32>)>,
}

/// Cost that moved within a set. Stacks are then truncated at the frame `inside`, so that the move becomes invisible.
pub(super) struct CostShift {
    /// The rows to truncate, in order.
    pub rows: Vec<u32>,
    /// The frames that gained and lost cost, and the frame that contains both.
    pub gained: u32,
    pub lost: u32,
    pub inside: u32,
    pub amount: f64,
    /// The kind of move in reports. `None` if the move is not reported: one function only wraps the other, inlining
    /// differs between runs of one build, or the functions have at most a common caller.
    pub how: Option<MoveKind>,
    /// True if the cost of the frame that contains both changed by no more than chance, and by less than
    /// [`MAX_CHANGE_OF_EVEN_SUM`] of the amount.
    pub even: bool,
}

impl CostShift {
    /// Returns the number of frames to keep of a stack: the frames up to and including the first occurrence of the frame
    /// `inside`, or all frames if the stack does not contain it.
    pub(super) fn kept_frames(&self, stack: &[u32]) -> usize {
        stack.iter().position(|frame| *frame == self.inside).map_or(stack.len(), |position| position + 1)
    }
}

/// Two opposite changes that cancel out.
pub(super) struct Swap {
    pub gained: u32,
    pub lost: u32,
    pub amount: f64,
    pub how: MoveKind,
    /// The function that contains both, if this is a replacement.
    pub inside: Option<u32>,
    /// True if the sum of both changed by no more than chance.
    pub even: bool,
}

/// The interpretation of one search.
pub(super) struct Attribution<'a> {
    pub rows: &'a StackRows,
    pub sets: &'a Sets,
    pub search: &'a SearchResult,
    /// The total of each side.
    total: [f64; 2],
}

impl<'a> Attribution<'a> {
    pub(super) fn new(rows: &'a StackRows, sets: &'a Sets, search: &'a SearchResult) -> Attribution<'a> {
        Attribution { rows, sets, search, total: rows.total() }
    }

    pub(super) fn candidates(&self) -> Vec<CauseCandidate> {
        self.search.fits.iter().map(|fit| self.candidate(fit.set, fit.delta)).collect()
    }

    /// Creates a candidate from a set. `delta` is the change that the search attributes to the set, in values of all
    /// base runs.
    pub(super) fn candidate(&self, set: usize, delta: f64) -> CauseCandidate {
        CauseCandidate {
            set,
            rows: self.sets.rows(set).collect(),
            subject: self.describe(set, false),
            delta,
            parts: Vec::new(),
        }
    }

    /// Describes a set. A chain of calls gets the name of its first call that involves the program's own code, or of
    /// its deepest call if `deepest` is true.
    fn describe(&self, set: usize, deepest: bool) -> Description {
        let node = &self.sets.sets[set];
        let [b, n] = node.values;
        let sided = self.one_sided([b, n]);
        let kind = sided.unwrap_or(CauseKind::Calls);
        let plain =
            |function, kind| Description { kind, function, caller: None, label: None, callee: None, chain: Vec::new() };
        if let SetKey::Label(label) | SetKey::LabelNode(label, _) = node.key {
            return Description { label: Some(label), ..plain(node.key.frame(), kind) };
        }
        let mut edges: Vec<(u32, u32)> = Vec::new();
        for key in self.sets.names(set) {
            if let SetKey::Edge(a, b) = key {
                edges.push((*a, *b));
            }
        }
        // Orders the calls from the root, as in the set's first stack.
        if let Some(row) = self.sets.rows(set).next() {
            let stack = self.rows.stack(row as usize);
            let place = |edge: &(u32, u32)| stack.windows(2).position(|w| (w[0], w[1]) == *edge);
            edges.sort_by_key(place);
        }
        // Sentences do not name the functions of the runtime that start a program or a thread as callers.
        let starts = |frame: u32| self.rows.names[frame as usize].class.starts;
        edges.retain(|&(caller, callee)| !starts(caller) || self.rows.is_system(callee));
        let is_own = matches!(node.key, SetKey::Own(_) | SetKey::Leaf(_));
        let frame = node.key.frame();
        if is_own && sided.is_none() {
            let is_call = |&&(caller, callee): &&(u32, u32)| Some(callee) == frame && caller != callee;
            let caller = edges.iter().rev().find(is_call).map(|edge| edge.0);
            return Description { caller, ..plain(frame, CauseKind::Own) };
        }
        // A benchmark or server framework may contain the whole program, so its calls make poor names.
        let is_program = |frame: u32| self.rows.names[frame as usize].class.program;
        let above = edges.iter().position(|&(caller, callee)| is_program(caller) || is_program(callee));
        edges.drain(..above.unwrap_or(0));
        // If all stacks of a function are recursive, its calls of itself have the same stacks as the function.
        let has_all = |function: u32| {
            let rows = (0..self.rows.rows.len()).filter(|&row| self.rows.stack(row).contains(&function));
            rows.count() == self.sets.rows(set).count()
        };
        edges.retain(|&(caller, callee)| caller != callee || !has_all(callee));
        let chain: Vec<u32> = edges.iter().map(|e| e.1).collect();
        match if deepest { edges.last() } else { edges.first() } {
            Some(&(caller, function)) => Description { caller: Some(caller), chain, ..plain(Some(function), kind) },
            None => plain(frame, if is_own { sided.unwrap_or(CauseKind::Own) } else { kind }),
        }
    }

    /// Returns `Added` or `Removed` if one side has nearly none of these values, and otherwise `None`.
    fn one_sided(&self, [base, new]: [f64; 2]) -> Option<CauseKind> {
        match () {
            () if base < MAX_OPPOSITE_PART_OF_ONE_SIDED * new => Some(CauseKind::Added),
            () if new < MAX_OPPOSITE_PART_OF_ONE_SIDED * base => Some(CauseKind::Removed),
            () => None,
        }
    }

    fn value(&self, rows: &[u32], side: usize) -> f64 {
        rows.iter().map(|&r| self.rows.rows[r as usize].values[side]).sum()
    }

    /// Returns true if a set is small enough to locate a change.
    fn is_place(&self, set: usize) -> bool {
        let node = &self.sets.sets[set];
        !node.whole && (0..2).any(|s| node.values[s] < MAX_PART_OF_PLACE * self.total[s])
    }

    /// Returns the change of values at equal work, in values of the base's runs.
    fn change(&self, values: [f64; 2]) -> f64 {
        values[1] / self.search.scale - values[0]
    }

    /// Returns the value of a set on both sides together.
    fn size(&self, set: usize) -> f64 {
        self.sets.sets[set].values[0] + self.sets.sets[set].values[1]
    }

    /// Returns the standard error of the change of a set, from sampling and the known noise.
    fn error(&self, set: usize) -> f64 {
        let scale = self.search.scale;
        let variance = match self.rows.kind {
            ValueKind::Counted => DEVIATION_OF_MOVED_COUNTS * DEVIATION_OF_MOVED_COUNTS,
            kind => known_variance(kind),
        };
        let between = counts::between_run_variance(variance, self.rows.runs);
        let node = &self.sets.sets[set];
        let mean = (node.values[0] + node.values[1]) / 2.0;
        (node.event * (node.values[0] + node.values[1] / scale / scale) + between * mean * mean).sqrt()
    }

    /// Returns the largest candidate whose callers did not change with it: its cost moved within the smallest set
    /// around it (a cost shift, as in FBDetect). Returns `None` if there is no such candidate, or if its stacks end at that
    /// set already.
    pub(super) fn shift(&self, candidates: &[CauseCandidate]) -> Option<CostShift> {
        let mut order: Vec<&CauseCandidate> = candidates.iter().filter(|d| d.subject.label.is_none()).collect();
        sort_by(&mut order, |a, b| b.delta.abs().total_cmp(&a.delta.abs()));
        let can_fold = |shift: &CostShift| {
            shift.rows.iter().any(|&row| {
                let stack = self.rows.stack(row as usize);
                shift.kept_frames(stack) < stack.len()
            })
        };
        order.into_iter().find_map(|candidate| self.shift_of(candidate).filter(can_fold))
    }

    /// Returns the move of a candidate's cost. Returns `None` if its callers changed with it.
    fn shift_of(&self, candidate: &CauseCandidate) -> Option<CostShift> {
        let all = |r: usize| self.rows.rows[r].values[0] + self.rows.rows[r].values[1];
        let raw = self.change([0, 1].map(|s| self.value(&candidate.rows, s)));
        let size: f64 = candidate.rows.iter().map(|&r| all(r as usize)).sum();
        if raw.abs() < MIN_MEASURED_PART_OF_CANDIDATE * candidate.delta.abs() {
            return None;
        }
        let set = self.place_of_shift(candidate, raw, size)?;
        let inside = self.sets.sets[set].key.frame()?;
        let function = candidate.subject.function?;
        let values = self.sets.sets[set].values;
        let even = self.is_even(values, set) && self.change(values).abs() < MAX_CHANGE_OF_EVEN_SUM * raw.abs();
        let lost_in = self.partner(candidate, set, raw);
        let partner = lost_in.and_then(|p| self.sets.sets[p].key.frame()).filter(|&f| f != function);
        let relation = lost_in.zip(partner).map(|(set, function_of_set)| {
            let rows: Vec<u32> = self.sets.rows(set).collect();
            let (changed, opposite) =
                (Changed { function, rows: &candidate.rows }, Changed { function: function_of_set, rows: &rows });
            let (gained, lost) = if raw > 0.0 { (changed, opposite) } else { (opposite, changed) };
            CostRelation::between(self.rows, gained, lost)
        });
        let how = match relation {
            _ if partner == Some(inside) => Some(MoveKind::Shift),
            Some(CostRelation::Call | CostRelation::Likeness) | None => Some(MoveKind::Shift),
            Some(CostRelation::Replacement) => Some(MoveKind::Replaced),
            Some(CostRelation::Above) => None,
            // With unstable inlining, chance decides which of several functions a profile shows.
            Some(CostRelation::Nothing) if self.rows.runtime.unstable_inlining => None,
            // Siblings with opposite changes are separate causes, unless the set around both changed as well. Then
            // that set describes the change.
            Some(CostRelation::Nothing) if even || self.size(set) >= MAX_SIZE_OF_SHIFT_PLACE * size => return None,
            Some(CostRelation::Nothing) => None,
        };
        let rows = match how {
            // The replacement is one cause with the difference of the place, so nothing inside remains to be found.
            Some(MoveKind::Replaced) => self.sets.rows(set).collect(),
            _ => self.exchanged_rows(candidate, set, lost_in, raw)?,
        };
        let partner = partner.unwrap_or(inside);
        let (gained, lost) = if raw > 0.0 { (function, partner) } else { (partner, function) };
        Some(CostShift { rows, gained, lost, inside, amount: raw.abs(), how, even })
    }

    /// Returns the rows between which cost moved: all rows of the place if it did not change itself. If it changed more
    /// than that, another change is inside as well, so only the rows of the candidate and of its counterpart moved, and
    /// the search continues with the difference. Returns `None` for such a place without a counterpart.
    fn exchanged_rows(
        &self,
        candidate: &CauseCandidate,
        place: usize,
        counterpart: Option<usize>,
        raw: f64,
    ) -> Option<Vec<u32>> {
        let change = self.change(self.sets.sets[place].values).abs();
        let is_quiet =
            change < MAX_CHANGE_OF_SHIFT_PLACE * raw.abs() || change < MAX_ERRORS_OF_SILENT_PLACE * self.error(place);
        let place_rows = self.sets.rows(place);
        if is_quiet {
            return Some(place_rows.collect());
        }
        let counterpart: Vec<u32> = self.sets.rows(counterpart?).collect();
        let moved = |row: &u32| [&candidate.rows, &counterpart].iter().any(|rows| rows.binary_search(row).is_ok());
        Some(place_rows.filter(moved).collect())
    }

    /// Returns the smallest set around a candidate that did not change with it. `raw` is the change of the candidate's
    /// stacks, and `size` their value on both sides together.
    fn place_of_shift(&self, candidate: &CauseCandidate, raw: f64, size: f64) -> Option<usize> {
        let all = |r: u32| self.rows.rows[r as usize].values[0] + self.rows.rows[r as usize].values[1];
        let is_call = |j: usize| matches!(self.sets.sets[j].key, SetKey::Own(_) | SetKey::Edge(..) | SetKey::Node(_));
        let is_around = |&j: &usize| is_call(j) && self.is_place(j);
        let around = self.sets.around(&candidate.rows, all, MIN_PART_INSIDE_PLACE).into_iter().map(|(j, _)| j);
        let around: Vec<usize> = around.filter(is_around).collect();
        let change = |j: usize| self.change(self.sets.sets[j].values);
        let is_still = |&j: &usize| {
            change(j).abs() < MAX_CHANGE_OF_SHIFT_PLACE * raw.abs() && raw.abs() > MIN_ERRORS_OF_SHIFT * self.error(j)
        };
        let one_sided = matches!(candidate.subject.kind, CauseKind::Added | CauseKind::Removed);
        let mut within: Vec<usize> = around.iter().copied().filter(is_still).collect();
        if within.is_empty() && one_sided {
            // Appearing or disappearing frames do not matter if their callers do not feel the change.
            // A trimmed stack ends at a caller of the library, which has the cost if a frame disappears. The field about
            // unstable inlining decides worse: three more comparisons of upgrades without a cause name one, and one of
            // 124 loses its right cause.
            let trims_leaves = self.rows.runtime.trim_library_leaves;
            let is_silent = |&j: &usize| {
                change(j) * raw.signum() < MAX_CHANGE_OF_SHIFT_PLACE * raw.abs()
                    || trims_leaves && change(j).abs() < MAX_ERRORS_OF_SILENT_PLACE * self.error(j)
            };
            let limit = if trims_leaves { MAX_SIZE_OF_SHIFT_PLACE_WITHOUT_LEAVES } else { MAX_SIZE_OF_SHIFT_PLACE };
            within = around.iter().copied().filter(|j| is_silent(j) && self.size(*j) < limit * size).collect();
        }
        let smallest = |sets: Vec<usize>| sets.into_iter().min_by(|&a, &b| self.size(a).total_cmp(&self.size(b)));
        smallest(within).or_else(|| {
            // Otherwise, a one-sided change moved if a set around it also contains the decrease, beyond noise.
            let is_silent = |&j: &usize| change(j) * raw.signum() < MAX_CHANGE_OF_SHIFT_PLACE * raw.abs();
            let place = smallest(around.iter().copied().filter(is_silent).collect()).filter(|_| one_sided)?;
            let partner = self.partner(candidate, place, raw);
            partner.filter(|&p| self.is_counterpart(p, raw)).map(|_| place)
        })
    }

    /// Returns true if the values of a set, or of a part of it, differ by no more than chance at equal work.
    fn is_even(&self, v: [f64; 2], set: usize) -> bool {
        let [b, n] = v.map(|v| v / self.sets.sets[set].event.max(1e-300));
        let variance = counts::between_run_variance(self.search.tau2.variance(self.sets, set), self.rows.runs);
        counts::penalised(b, n, self.search.scale, variance) < counts::LEVEL
    }

    /// Returns the counterpart of a candidate inside a set: the function or call that changed in the opposite direction
    /// by about the same amount. Returns `None` if no change in the opposite direction exceeds half of the candidate's.
    fn partner(&self, candidate: &CauseCandidate, set: usize, raw: f64) -> Option<usize> {
        let change_and_value = |row: u32| {
            let [b, n] = self.rows.rows[row as usize].values;
            (row, [n / self.search.scale - b, b + n])
        };
        let rest = self.sets.rows(set).filter(|row| candidate.rows.binary_search(row).is_err());
        // By set: the change of its rows in `rest`, and their value.
        let mut sums = vec![[0.0; 2]; self.sets.len()];
        self.sets.add_up(&rest.map(change_and_value).collect::<Vec<_>>(), |set, [change, all]| {
            sums[set] = [sums[set][0] + change, sums[set][1] + all];
        });
        let mut best: Option<(f64, usize)> = None;
        for (j, &[inner, within]) in sums.iter().enumerate() {
            let key = self.sets.sets[j].key;
            if !matches!(key, SetKey::Own(_) | SetKey::Edge(..))
                || inner * -raw.signum() <= MIN_PART_OF_PARTNER * raw.abs()
            {
                continue;
            }
            let all = self.sets.sets[j].values[0] + self.sets.sets[j].values[1];
            let off = (inner.abs() - raw.abs()).abs() / raw.abs();
            let off = off + PENALTY_OF_PARTNER_OUTSIDE * (1.0 - within / all);
            if best.is_none_or(|(best_off, _)| off < best_off - 1e-9) {
                best = Some((off, j));
            }
        }
        Some(best?.1)
    }

    /// Returns true if a set changed by more than chance in the opposite direction of `raw`, and by about the same
    /// amount.
    fn is_counterpart(&self, set: usize, raw: f64) -> bool {
        let node = &self.sets.sets[set];
        let [b, n] = node.values.map(|v| v / node.event.max(1e-300));
        let lost = -(node.values[1] / self.search.scale - node.values[0]) / raw;
        let variance = counts::between_run_variance(self.search.tau2.variance(self.sets, set), self.rows.runs);
        (1.0 - MAX_DIFFERENCE_OF_COUNTERPART..1.0 + MAX_DIFFERENCE_OF_COUNTERPART).contains(&lost)
            && counts::penalised(b, n, self.search.scale, variance) > MIN_DEVIANCE_OF_COUNTERPART
    }

    /// Removes pairs of candidates that cancel out, have a similar size, and belong to related functions: code that
    /// moved. Returns the removed pairs, except if one function of a pair only wraps the other.
    pub(super) fn swaps(&self, candidates: &mut Vec<CauseCandidate>) -> Vec<Swap> {
        let mut swaps = Vec::new();
        'again: loop {
            for (i, up) in candidates.iter().enumerate().filter(|(_, d)| d.delta > 0.0 && d.subject.label.is_none()) {
                for (j, down) in
                    candidates.iter().enumerate().filter(|(_, d)| d.delta < 0.0 && d.subject.label.is_none())
                {
                    let (Some(gained), Some(lost)) = (up.subject.function, down.subject.function) else { continue };
                    let left = (up.delta + down.delta).abs() / up.delta.max(-down.delta);
                    let is_sided = |d: &CauseCandidate| matches!(d.subject.kind, CauseKind::Added | CauseKind::Removed);
                    let limit = if is_sided(up) || is_sided(down) {
                        MAX_DIFFERENCE_OF_SWAP
                    } else {
                        MAX_DIFFERENCE_OF_SIBLINGS
                    };
                    // The search's delta is conditional on the remaining causes. A swap needs stacks that cancel out
                    // themselves.
                    let [gain, loss] = self.changes_apart(up, down);
                    if gain <= 0.0 || loss >= 0.0 || (gain + loss).abs() > MAX_CHANGE_OF_EVEN_SUM * gain.max(-loss) {
                        continue;
                    }
                    let [came, went] = [(up, gained), (down, lost)]
                        .map(|(candidate, function)| Changed { function, rows: &candidate.rows });
                    let (how, inside) = match CostRelation::between(self.rows, came, went) {
                        CostRelation::Call if left < MAX_DIFFERENCE_OF_SWAP => (Some(MoveKind::Swap), None),
                        // The frame in between only wraps the cost below it.
                        CostRelation::Above if left < MAX_DIFFERENCE_OF_SWAP => (None, None),
                        CostRelation::Likeness if left < limit && self.have_place(up, down) => {
                            (Some(MoveKind::Swap), None)
                        }
                        CostRelation::Likeness | CostRelation::Replacement
                            if left < MAX_DIFFERENCE_OF_SIBLINGS && is_replaced(self.rows, gained, lost) =>
                        {
                            (Some(MoveKind::Replaced), self.narrowest_around(up, down))
                        }
                        _ => continue,
                    };
                    let mut both: Vec<u32> = up.rows.iter().chain(&down.rows).copied().collect();
                    both.sort_unstable();
                    both.dedup();
                    let even = self.is_even([0, 1].map(|side| self.value(&both, side)), up.set);
                    swaps.extend(how.map(|how| Swap { gained, lost, amount: up.delta, how, inside, even }));
                    candidates.remove(i.max(j));
                    candidates.remove(i.min(j));
                    continue 'again;
                }
            }
            return swaps;
        }
    }

    /// Returns the changes of two candidates' stacks, in values of the base's runs. Common stacks count for the
    /// narrower candidate.
    fn changes_apart(&self, a: &CauseCandidate, b: &CauseCandidate) -> [f64; 2] {
        let size = |candidate: &CauseCandidate| self.value(&candidate.rows, 0) + self.value(&candidate.rows, 1);
        let is_narrower = size(a) <= size(b);
        let change = |candidate: &CauseCandidate, other: &CauseCandidate, has_all: bool| {
            let rows = candidate.rows.iter().copied().filter(|row| has_all || other.rows.binary_search(row).is_err());
            let rows: Vec<u32> = rows.collect();
            self.value(&rows, 1) / self.search.scale - self.value(&rows, 0)
        };
        [change(a, b, is_narrower), change(b, a, !is_narrower)]
    }

    /// Returns the function of the smallest set that contains both candidates. Returns `None` if no function contains
    /// both.
    fn narrowest_around(&self, a: &CauseCandidate, b: &CauseCandidate) -> Option<u32> {
        let all = |r: u32| self.rows.rows[r as usize].values[0] + self.rows.rows[r as usize].values[1];
        let both: Vec<u32> = a.rows.iter().chain(&b.rows).copied().collect();
        let around = self.sets.around(&both, all, MIN_PART_INSIDE_PLACE).into_iter().map(|(set, _)| set);
        let size = |set: &usize| self.sets.sets[*set].values[0] + self.sets.sets[*set].values[1];
        let smallest =
            around.filter(|set| !self.sets.sets[*set].key.is_label()).min_by(|a, b| size(a).total_cmp(&size(b)));
        smallest.and_then(|set| self.sets.sets[set].key.frame())
    }

    /// Returns true if both candidates are in one set that is small enough to locate a change.
    fn have_place(&self, a: &CauseCandidate, b: &CauseCandidate) -> bool {
        let all = |r: u32| self.rows.rows[r as usize].values[0] + self.rows.rows[r as usize].values[1];
        let both: Vec<u32> = a.rows.iter().chain(&b.rows).copied().collect();
        let around = self.sets.around(&both, all, MIN_PART_INSIDE_PLACE);
        around.into_iter().any(|(j, _)| self.is_place(j) && !self.sets.sets[j].key.is_label())
    }

    /// Merges changes of one sign that make up most of a set around them. Calling the code of that set more or less
    /// often explains all of them at once.
    pub(super) fn merge(&self, candidates: Vec<CauseCandidate>) -> Vec<CauseCandidate> {
        let mut candidates = candidates;
        loop {
            // The sets that contain most of a candidate, on the side with more of it.
            let side_of = |candidate: &CauseCandidate| usize::from(candidate.delta > 0.0);
            let around = |d: &CauseCandidate| {
                self.sets.around(&d.rows, |r| self.rows.rows[r as usize].values[side_of(d)], MIN_PART_INSIDE_MERGED_SET)
            };
            let around: Vec<Vec<(usize, f64)>> = candidates.iter().map(around).collect();
            let mut best: Option<(f64, usize, usize, usize)> = None;
            for (i, a) in candidates.iter().enumerate().filter(|(_, d)| d.subject.label.is_none()) {
                for (j, b) in candidates.iter().enumerate().skip(i + 1).filter(|(_, d)| d.subject.label.is_none()) {
                    if side_of(a) != side_of(b) {
                        continue;
                    }
                    let side = side_of(a);
                    let (va, vb) = (self.value(&a.rows, side), self.value(&b.rows, side));
                    let common: Vec<u32> = a.rows.iter().copied().filter(|r| b.rows.binary_search(r).is_ok()).collect();
                    let both = self.value(&common, side);
                    if both > MAX_OVERLAP_OF_MERGED * va.min(vb) {
                        continue;
                    }
                    let changes = [a, b].map(|part| self.change([0, 1].map(|side| self.value(&part.rows, side))));
                    let least = MIN_CHANGE_OF_NAMED_WHOLE * (changes[0] + changes[1]).abs();
                    for &(k, _) in &around[i] {
                        let set = &self.sets.sets[k];
                        let value = set.values[side];
                        // A merged change must have the sign of its parts. If the set contains a change in the opposite
                        // direction, the merged change would hide both.
                        let change = self.change(set.values);
                        let has_sign = (change > 0.0) == (side == 1) && change.abs() >= least;
                        if has_sign
                            && around[j].binary_search_by_key(&k, |other| other.0).is_ok()
                            && !set.key.is_label()
                            && self.is_place(k)
                            && va + vb - both > MIN_PART_OF_MERGED_SET * value
                            && best.is_none_or(|(best_value, ..)| value < best_value * (1.0 - 1e-9))
                        {
                            best = Some((value, k, i, j));
                        }
                    }
                }
            }
            let Some((_, set, i, j)) = best else { return candidates };
            let (b, a) = (candidates.remove(j), candidates.remove(i));
            let node = &self.sets.sets[set];
            let (old_value, new_value) = (node.values[0], node.values[1] / self.search.scale);
            let parts = [&a, &b].into_iter().flat_map(|d| match d.parts.is_empty() {
                true => vec![(d.subject.clone(), d.rows.clone())],
                false => d.parts.clone(),
            });
            candidates.push(CauseCandidate {
                set,
                rows: self.sets.rows(set).collect(),
                subject: self.describe(set, true),
                delta: new_value - old_value,
                parts: parts.collect(),
            });
        }
    }
}
