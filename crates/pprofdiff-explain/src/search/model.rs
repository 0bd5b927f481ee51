//! The model of one scale: the causes with their factors, the unexplained rest of each set, and the greedy search.

use super::noise::{Variances, variance_of};
use crate::evidence::rows::StackRows;
use crate::evidence::sets::{Set, SetKey, Sets};
use crate::thresholds::{
    MAX_CAUSES_OF_SEARCH, MAX_EXCHANGES_PER_CAUSE, MAX_OPPOSITE_PART_OF_ONE_SIDED, MIN_PART_OF_ADDITION,
    MIN_PART_OF_LOCK_HOLDER, WEIGHT_OF_CALLERS,
};
use pprofdiff::shared::ValueKind;
use pprofdiff::shared::statistics::counts::{between_run_variance, deviance, penalised};
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::random::HashMap;

/// The minimum budget of a search, in the unit of [`SearchBudget::done`], and the budget that each byte of the profiles
/// adds.
const MAX_WORK: u64 = 1 << 26;
const WORK_OF_BYTE: u64 = 64;

/// A cause: a set of [`Sets`], and the factor of its rows in addition to the factors of earlier causes. The factor is
/// infinite for a set without base values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SetFit {
    pub set: usize,
    pub factor: f64,
    /// The change of the set's value given the earlier causes, in values of the base's runs.
    pub delta: f64,
}

/// A set's events, and their expectation by the current factors.
pub(super) struct SetEvents {
    pub(super) b: f64,
    pub(super) n: f64,
    /// The expected ratio of the sides, new divided by base.
    pub(super) r: f64,
}

/// A scale with the causes that are applied to it.
pub(super) struct ScaleModel<'a> {
    pub(super) rows: &'a StackRows,
    pub(super) sets: &'a Sets,
    pub(super) scale: f64,
    pub(super) threshold: f64,
    pub(super) floor: f64,
    /// True if the amount of work was given. Then a change of everything may be a cause.
    pub(super) is_given: bool,
    /// The result of [`may_change`]: only these sets can be the first cause.
    pub(super) candidates: &'a [u32],
    pub(super) tau2: Variances,
    /// The factor of each row: its expected growth at equal work, 1 without a cause. 0 and infinity mark rows that a
    /// cause explains as one-sided.
    pub(super) factor: Vec<f64>,
    /// The applied causes, in order.
    pub(super) applied: Vec<Applied>,
    /// The sets that share rows with the applied causes. All other sets are computed on demand from their values,
    /// because there may be a hundred thousand.
    pub(super) touched: Vec<Touched>,
    /// By set: its position in `touched`, or [`NONE`].
    pub(super) place: Vec<u32>,
    pub(super) work: SearchBudget,
}

/// Returns the sets that can change enough to be a cause at any scale: by `floor` as a fraction of both sides' mean.
///
/// At a scale `s` the change of a set, `n - s b`, must be at least `floor (s B + N) / 2` for the totals `B` and `N`. It
/// is at most the larger of `n` and `s b`. Therefore the larger of `n` and `b` is at least `floor / 2` of the smaller
/// total.
pub(super) fn may_change(sets: &Sets, total: [f64; 2], floor: f64) -> Vec<u32> {
    // Keeps sets within rounding error of the limit. The exact test decides later.
    let least = floor * total[0].min(total[1]) / 2.0 * (1.0 - 1e-6);
    let large =
        checkpointed((0..).zip(&sets.sets)).filter(|(_, set_data)| set_data.values[0].max(set_data.values[1]) >= least);
    large.map(|(set, _)| set).collect()
}

/// A set that shares rows with causes, and the sums of its rows by their current factors.
pub(super) struct Touched {
    set: u32,
    /// The number of causes that were applied when the sums last changed.
    by: u32,
    /// The value of both sides together.
    all: f64,
    sums: SetSums,
}

/// An applied cause with the data that undoes it. Undoing allows lists of causes with a common prefix to share work.
pub(super) struct Applied {
    fit: SetFit,
    /// The cause's rows with their earlier factors.
    factors: Vec<(u32, f64)>,
    /// The length of `touched` before this cause, and the earlier state of sets that were touched again: position,
    /// number of causes, sums.
    touched: usize,
    before: Vec<(u32, u32, SetSums)>,
}

/// The work that a search has done, and its limit: the number of candidate ranges that were created, plus the number of
/// call tree nodes that were visited to apply factors to rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchBudget {
    pub done: u64,
    pub(super) limit: u64,
}

impl SearchBudget {
    /// Returns the budget for profiles of this size. When it is used up, the search stops exchanging causes and stops
    /// trying other scales.
    pub(crate) fn new(profile_bytes: usize) -> SearchBudget {
        SearchBudget { done: 0, limit: MAX_WORK.saturating_add(WORK_OF_BYTE * profile_bytes as u64) }
    }

    pub(crate) fn add(&mut self, rows: usize) {
        self.done += rows as u64;
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.done > self.limit
    }
}

/// Maximum number of rounds of the greedy search. A round adds a cause, and may drop or exchange others, so there may be
/// more rounds than causes.
const MAX_ROUNDS: usize = 2 * MAX_CAUSES_OF_SEARCH;

/// Number of rows whose changed factors are propagated up the tree of calls together.
const ROWS_AT_ONCE: usize = 1 << 10;

/// A row's contribution to the sums of a set: base, new, expected base, expected new.
type SetSums = [f64; 4];

/// Returns how much a set's deviance counts. Callers of a changed function may explain slightly more by chance, so
/// their deviance counts a little less than the function's own.
fn worth(set: &Set, deviance: f64) -> f64 {
    let part = if matches!(set.key, SetKey::Own(_)) { 1.0 } else { WEIGHT_OF_CALLERS };
    part * deviance - set.price
}

impl<'a> ScaleModel<'a> {
    pub(super) fn new(
        rows: &'a StackRows,
        sets: &'a Sets,
        candidates: &'a [u32],
        scale: f64,
        threshold: f64,
    ) -> ScaleModel<'a> {
        let (floor, is_given, tau2) = (0.0, false, Variances::OfClasses([0.0; 3]));
        let factor = vec![1.0; rows.rows.len()];
        let (applied, touched, place) = (Vec::new(), Vec::new(), vec![NONE; sets.len()]);
        let work = SearchBudget::new(0);
        ScaleModel {
            rows,
            sets,
            candidates,
            scale,
            threshold,
            floor,
            is_given,
            tau2,
            factor,
            applied,
            touched,
            place,
            work,
        }
    }

    /// Returns the contribution of values under a factor. Rows that a cause explains as one-sided contribute nothing.
    fn part(&self, [b, n]: [f64; 2], factor: f64) -> SetSums {
        if factor == 0.0 || factor.is_infinite() {
            return [0.0; 4];
        }
        let odds = factor * self.scale;
        let p = odds / (1.0 + odds);
        [b, n, (b + n) * (1.0 - p), (b + n) * p]
    }

    pub(super) fn sums(&self, set: usize) -> SetEvents {
        match self.touched.get(self.place[set] as usize) {
            Some(Touched { sums, all, .. }) => self.sums_by(set, *all, sums),
            None => {
                let v = self.sets.sets[set].values;
                self.sums_by(set, v[0] + v[1], &self.part(v, 1.0))
            }
        }
    }

    /// Returns the number of a set's events that the causes do not explain as one-sided.
    pub(super) fn events(&self, set: usize) -> f64 {
        let sums = self.sums(set);
        sums.b + sums.n
    }

    /// Returns true if a cause shares rows with the set.
    pub(super) fn is_touched(&self, set: usize) -> bool {
        self.place[set] != NONE
    }

    fn sums_by(&self, set: usize, all: f64, sums: &SetSums) -> SetEvents {
        let w = self.sets.sets[set].event.max(1e-300);
        let [b, n, r] = self.without_rounding(all, sums);
        SetEvents { b: b / w, n: n / w, r }
    }

    /// Returns both sides' values and their expected ratio. Sums that cancelled out leave rounding errors, which become
    /// 0. Without expected values, the ratio is the scale.
    fn without_rounding(&self, all: f64, [b, n, eb, en]: &SetSums) -> [f64; 3] {
        let least = 1e-9 * all;
        let without_error = |x: f64| if x > least { x } else { 0.0 };
        let eb = without_error(*eb);
        [without_error(*b), without_error(*n), if eb > 0.0 { en / eb } else { self.scale }]
    }

    fn variance(&self, set: usize, s: &SetEvents) -> f64 {
        variance_of(self.rows, self.tau2.variance(self.sets, set), [s.b, s.n])
    }

    /// Returns the unexplained change of a set, in values of the base.
    fn delta(&self, set: usize, s: &SetEvents) -> f64 {
        (s.n - s.r * s.b) / self.scale * self.sets.sets[set].event
    }

    /// Returns the penalised deviance of a set, given the applied causes; 0 if these explain all of its events as
    /// one-sided.
    pub(super) fn score(&self, set: usize) -> f64 {
        let s = self.sums(set);
        if s.b + s.n > 0.0 { penalised(s.b, s.n, s.r, self.variance(set, &s)) } else { 0.0 }
    }

    /// Returns how much a set explains: its deviance, weighted by [`worth`], minus its price. Returns `None` if the
    /// unweighted deviance minus the price does not exceed `least`, if the set fails the test or changes less than the
    /// floor, and if it has nearly all of both sides while the amount of work is not given, because more work explains
    /// such a change. The penalised deviance tests whether there is a change, but saturates for many events. Therefore
    /// the plain deviance locates the change.
    fn rank(&self, set: usize, least: f64) -> Option<f64> {
        let set_data = &self.sets.sets[set];
        if set_data.whole && !self.is_given {
            return None;
        }
        let s = self.sums(set);
        if self.delta(set, &s).abs() < self.floor {
            return None;
        }
        let threshold = self.threshold + set_data.price;
        let limit = threshold.max(least + set_data.price);
        // Twice Pearson's statistic is at least the deviance (KL <= chi squared), and does not need a logarithm.
        let (t, p) = (s.b + s.n, s.r / (1.0 + s.r));
        if t <= 0.0 || 2.0 * (s.n - t * p).powi(2) <= limit * t * p * (1.0 - p) {
            return None;
        }
        let raw = deviance(s.b, s.n, s.r);
        let passes = raw > limit && penalised(s.b, s.n, s.r, self.variance(set, &s)) > threshold;
        passes.then_some(worth(set_data, raw))
    }

    /// Returns all sets that pass before any cause is applied, most explanatory first.
    fn ranked(&self) -> Vec<(f64, usize)> {
        let p = self.scale / (1.0 + self.scale);
        // Excludes most sets without a division. This is the test of `rank` on values instead of events, with a margin
        // for rounding errors: `rank` decides.
        let floor = self.floor * self.scale;
        let may_pass = |set_data: &Set| {
            let [b, n] = set_data.values;
            let limit = (self.threshold + set_data.price) * set_data.event * (b + n) * p * (1.0 - p);
            (n - self.scale * b).abs() >= floor * (1.0 - 1e-6)
                && 2.0 * (n - (b + n) * p).powi(2) >= limit * (1.0 - 1e-6)
        };
        let sets = checkpointed(self.candidates).map(|&set| set as usize);
        let sets = sets.filter(|&set| may_pass(&self.sets.sets[set]));
        let mut all: Vec<_> = sets.filter_map(|set| Some((self.rank(set, f64::NEG_INFINITY)?, set))).collect();
        all.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        all
    }

    /// Returns the set that explains most now and how much, among the sets that pass and are not in `without`. Only
    /// sets that share rows with causes differ from their result in `ranked`. Returns `None` if no set passes.
    fn best(&self, ranked: &[(f64, usize)], without: &[usize]) -> Option<(usize, f64)> {
        let mut best: Option<(f64, usize)> = None;
        let mut take = |rank: f64, set: usize| {
            // Among equals the first set wins, whatever the rounding errors.
            let is_better =
                best.is_none_or(|(top, first)| rank > top * (1.0 + 1e-9) || rank * (1.0 + 1e-9) >= top && set < first);
            best = if is_better { Some((rank, set)) } else { best };
            best.map_or(0.0, |(rank, _)| rank / (1.0 + 1e-9))
        };
        let mut least = f64::NEG_INFINITY;
        for &(rank, set) in checkpointed(ranked) {
            if rank < least {
                break;
            }
            if !self.is_touched(set) && !without.contains(&set) {
                least = take(rank, set);
            }
        }
        // Excludes most touched sets early, because they change too little.
        let floor = self.floor * self.scale * (1.0 - 1e-9);
        let may_pass = |Touched { all, sums, .. }: &&Touched| {
            let [b, n, r] = self.without_rounding(*all, sums);
            (n - r * b).abs() >= floor
        };
        let touched = checkpointed(&self.touched).filter(may_pass);
        for set in touched.map(|touched| touched.set as usize) {
            if let Some(rank) = self.rank(set, least).filter(|_| !without.contains(&set)) {
                least = take(rank, set);
            }
        }
        best.map(|(rank, set)| (set, rank))
    }

    /// Multiplies the factors of a set's rows by the ratio that makes the set's expectation true.
    fn apply(&mut self, set: usize) {
        let s = self.sums(set);
        let fit = SetFit {
            set,
            factor: if s.b > 0.0 { s.n / (s.b * s.r) } else { f64::INFINITY },
            delta: self.delta(set, &s),
        };
        let (sets, rows) = (self.sets, self.sets.rows(set));
        let factors: Vec<(u32, f64)> = rows.clone().map(|row| (row, self.factor[row as usize])).collect();
        let (by, n_touched, mut before) = (self.applied.len() as u32 + 1, self.touched.len(), Vec::new());
        // Rows with different factors need several steps to share the missing ratio.
        let mut step = fit.factor;
        for _ in 0..4 {
            let mut sums = [0.0; 4];
            for row in checkpointed(rows.clone()) {
                let k = &mut self.factor[row as usize];
                *k = if *k == 0.0 || k.is_infinite() { *k } else { *k * step };
                let part = self.part(self.rows.rows[row as usize].values, self.factor[row as usize]);
                sums.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
            }
            if step == 0.0 || step.is_infinite() {
                break;
            }
            let v = self.sets.sets[set].values;
            let s = self.sums_by(set, v[0] + v[1], &sums);
            step = if s.b > 0.0 && s.n > 0.0 { s.n / (s.b * s.r) } else { 1.0 };
            if (step - 1.0).abs() < 1e-3 {
                break;
            }
        }
        // Works on a limited number of rows at a time to save memory.
        let mut changes = Vec::with_capacity(ROWS_AT_ONCE);
        for rows in factors.chunks(ROWS_AT_ONCE) {
            changes.clear();
            changes.extend(rows.iter().map(|&(row, before)| {
                let v = self.rows.rows[row as usize].values;
                let (old_part, new_part) = (self.part(v, before), self.part(v, self.factor[row as usize]));
                (row, std::array::from_fn(|i| new_part[i] - old_part[i]))
            }));
            let n_visited = sets.add_up(&changes, |other, part: SetSums| {
                let place = self.place[other];
                if place == NONE {
                    self.place[other] = self.touched.len() as u32;
                    let v = sets.sets[other].values;
                    let [b, n, eb, en] = self.part(v, 1.0);
                    let sums = [b + part[0], n + part[1], eb + part[2], en + part[3]];
                    self.touched.push(Touched { set: other as u32, by, all: v[0] + v[1], sums });
                    return;
                }
                let touched = &mut self.touched[place as usize];
                if touched.by != by {
                    before.push((place, touched.by, touched.sums));
                    touched.by = by;
                }
                (0..4).for_each(|i| touched.sums[i] += part[i]);
            });
            self.work.add(n_visited);
        }
        self.applied.push(Applied { fit, factors, touched: n_touched, before });
    }

    /// Undoes the last cause.
    fn take_back(&mut self) {
        let Some(Applied { factors, touched, before, .. }) = self.applied.pop() else { return };
        for (row, factor) in checkpointed(factors) {
            self.factor[row as usize] = factor;
        }
        for (place, by, sums) in checkpointed(before) {
            self.touched[place as usize] = Touched { by, sums, ..self.touched[place as usize] };
        }
        for Touched { set, .. } in checkpointed(self.touched.drain(touched..)) {
            self.place[set as usize] = NONE;
        }
    }

    /// Applies exactly these causes, in order, and returns their factors.
    pub(super) fn refit(&mut self, causes: &[usize]) -> Vec<SetFit> {
        let is_same = |(applied, set): &(&Applied, &usize)| applied.fit.set == **set;
        let kept = self.applied.iter().zip(causes).take_while(is_same).count();
        while self.applied.len() > kept {
            self.take_back();
        }
        causes[kept..].iter().for_each(|&set| self.apply(set));
        self.applied.iter().map(|applied| applied.fit).collect()
    }

    /// Returns at most [`MAX_CAUSES_OF_SEARCH`] causes. Each new cause is the set that explains most given the causes
    /// so far. After each new cause, every cause is tested given the remaining causes: it is dropped if it no longer
    /// passes, and replaced if another set now explains more. Stops replacing when the budget is used up.
    pub(super) fn greedy(&mut self) -> Vec<usize> {
        let mut causes: Vec<usize> = Vec::new();
        self.refit(&causes);
        let ranked = self.ranked();
        // Exchanging causes often repeats a lookup, so results are cached by the list of causes.
        let mut cache: HashMap<Vec<usize>, Option<(usize, f64)>> = HashMap::default();
        // The lists of causes at the start of each round. Exchanging two causes can restore an earlier list, for example in
        // a heap profile where a call and a callee with smaller objects each explain most without the other. All later
        // rounds would then repeat, so a round that starts with an earlier list exchanges no causes.
        let mut earlier: Vec<Vec<usize>> = Vec::new();
        for _ in 0..MAX_ROUNDS {
            if causes.len() >= MAX_CAUSES_OF_SEARCH {
                break;
            }
            let is_repeated = earlier.contains(&causes);
            earlier.push(causes.clone());
            self.refit(&causes);
            let best = *cache.entry(causes.clone()).or_insert_with(|| self.best(&ranked, &causes));
            let Some((best, _)) = best else { break };
            causes.push(best);
            'exchange: for _ in 0..MAX_EXCHANGES_PER_CAUSE {
                let mut changed = false;
                for j in causes.clone() {
                    if self.work.is_used_up() {
                        break 'exchange;
                    }
                    let Some(slot) = causes.iter().position(|&c| c == j).filter(|_| causes.len() > 1) else { continue };
                    let remaining: Vec<usize> = causes.iter().copied().filter(|&c| c != j).collect();
                    self.refit(&remaining);
                    if self.score(j) < self.threshold {
                        causes = remaining;
                        changed = true;
                        continue;
                    }
                    if is_repeated {
                        continue;
                    }
                    let better = *cache.entry(remaining).or_insert_with_key(|remaining| self.best(&ranked, remaining));
                    if let Some((better, rank)) = better {
                        let s = self.sums(j);
                        let current = worth(&self.sets.sets[j], deviance(s.b, s.n, s.r));
                        if better != j && rank > current + 1e-6 {
                            causes[slot] = better;
                            changed = true;
                        }
                    }
                }
                if !changed {
                    break;
                }
            }
        }
        causes
    }

    /// For a cause that is nearly one-sided: returns the largest set within it that has nearly all of its value and is
    /// exactly one-sided. Returns any other cause unchanged, and a cause without such a set. If a rarely sampled caller
    /// now calls something new, the addition is the callee.
    pub(super) fn purest(&self, set: usize) -> usize {
        let whole_set = &self.sets.sets[set];
        let side = usize::from(whole_set.values[1] > whole_set.values[0]);
        if whole_set.values[1 - side] <= 0.0
            || whole_set.values[1 - side] > MAX_OPPOSITE_PART_OF_ONE_SIDED * whole_set.values[side]
            || whole_set.key.is_label()
        {
            return set;
        }
        let mut is_inside = vec![false; self.rows.rows.len()];
        self.sets.rows(set).for_each(|row| is_inside[row as usize] = true);
        let pure = checkpointed(self.sets.sets.iter().enumerate()).filter_map(|(j, set_data)| {
            let may_be = set_data.values[1 - side] <= 0.0
                && !set_data.key.is_label()
                && set_data.values[side] >= MIN_PART_OF_ADDITION * whole_set.values[side];
            let rows = || self.sets.rows(j).filter(|&row| is_inside[row as usize]);
            let inside = || rows().map(|row| self.rows.rows[row as usize].values[side]).sum::<f64>();
            let inside = may_be.then(inside)?;
            let is_pure = inside >= MIN_PART_OF_ADDITION * whole_set.values[side]
                && inside >= set_data.values[side] * (1.0 - 1e-9);
            is_pure.then_some((inside, j))
        });
        let largest = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1));
        pure.max_by(largest).map_or(set, |(_, j)| j)
    }

    /// For a function whose own cost is one-sided: returns the set of the function with its callees, if this set is
    /// one-sided as well. Otherwise returns the given set.
    pub(super) fn with_callees(&self, set: usize) -> usize {
        let own_set = &self.sets.sets[set];
        let SetKey::Own(function) = own_set.key else { return set };
        let side = usize::from(own_set.values[1] > 0.0);
        let is_one_sided = |set: &Set| set.values[1 - side] <= 0.0;
        let has_all = |j: &usize| {
            let other = &self.sets.sets[*j];
            let is_function = match other.key {
                SetKey::Node(callee) | SetKey::Edge(_, callee) => callee == function,
                _ => false,
            };
            is_function && is_one_sided(other) && other.values[side] >= own_set.values[side]
        };
        let larger = |a: &usize, b: &usize| {
            let value = |j: usize| self.sets.sets[j].values[side];
            value(*a).total_cmp(&value(*b)).then(b.cmp(a))
        };
        let whole_function = (0..self.sets.len()).filter(|_| is_one_sided(own_set)).filter(has_all).max_by(larger);
        whole_function.unwrap_or(set)
    }

    /// For waiting: returns the own cost of the function that holds the lock, if it has nearly all of the change,
    /// because locks are named after their holder. Otherwise returns the given set.
    pub(super) fn lock_holder(&self, set: usize) -> usize {
        let set_data = &self.sets.sets[set];
        if self.rows.kind != ValueKind::Delay || set_data.key.is_label() {
            return set;
        }
        // By set: the value and the change of the rows that it shares with the given set.
        let (mut values, mut changes) = (vec![0.0; self.rows.rows.len()], vec![0.0; self.rows.rows.len()]);
        self.sets.rows(set).for_each(|r| {
            let [b, n] = self.rows.rows[r as usize].values;
            (values[r as usize], changes[r as usize]) = (b + n, n - self.scale * b);
        });
        let change = set_data.values[1] - self.scale * set_data.values[0];
        let (values, changes) = (self.sets.sums(&values), self.sets.sums(&changes));
        let holds = |j: &usize| {
            let is_within =
                values[*j] >= MIN_PART_OF_LOCK_HOLDER * (self.sets.sets[*j].values[0] + self.sets.sets[*j].values[1]);
            matches!(self.sets.sets[*j].key, SetKey::Own(_))
                && is_within
                && changes[*j] / change >= MIN_PART_OF_LOCK_HOLDER
        };
        let larger = |a: &usize, b: &usize| (changes[*a] / change).total_cmp(&(changes[*b] / change)).then(b.cmp(a));
        (0..self.sets.len()).filter(holds).max_by(larger).unwrap_or(set)
    }

    /// Returns the deviance that the causes leave in the functions' own costs, capped for each function at the price of
    /// one more cause. `tau2` is the known noise, because a wrong scale must not excuse itself with the noise that it
    /// creates.
    pub(super) fn unexplained(&self, tau2: &Variances, cap: f64) -> f64 {
        checkpointed(0..self.sets.telling.n_own as usize)
            .map(|j| {
                let s = self.sums(j);
                if s.b + s.n <= 0.0 {
                    0.0
                } else {
                    penalised(s.b, s.n, s.r, between_run_variance(tau2.variance(self.sets, j), self.rows.runs)).min(cap)
                }
            })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{ScaleModel, Variances, may_change};
    use crate::evidence::sets::Sets;
    use crate::evidence::sets::tests::rows;
    use crate::thresholds::MIN_PART_OF_ADDITION;

    #[test]
    fn replaced_causes_leave_no_trace_in_the_model() {
        for seed in 0..60 {
            let rows = rows(seed);
            let sets = Sets::new(&rows);
            let all = may_change(&sets, [0.0; 2], 0.0);
            let mut model = ScaleModel::new(&rows, &sets, &all, 1.25, 4.0);
            let n = sets.len().max(1);
            let list =
                |i: usize| (0..i % 5).map(|place| (seed as usize * 7 + i / (place + 1) * 3 + place) % n).collect();
            for causes in (0..30).map(list).filter(|_: &Vec<usize>| sets.len() > 0) {
                let mut fresh = ScaleModel::new(&rows, &sets, &all, 1.25, 4.0);
                let fits = |all: Vec<super::SetFit>| all.iter().map(|f| (f.set, f.factor, f.delta)).collect::<Vec<_>>();
                assert_eq!(fits(model.refit(&causes)), fits(fresh.refit(&causes)), "{seed} {causes:?}");
                assert_eq!(model.factor, fresh.factor, "{seed} {causes:?}");
                for set in 0..sets.len() {
                    let [a, b] = [&model, &fresh].map(|model| (model.is_touched(set), model.sums(set)));
                    assert_eq!((a.0, a.1.b, a.1.n, a.1.r), (b.0, b.1.b, b.1.n, b.1.r), "{seed} {causes:?}");
                }
            }
        }
    }

    #[test]
    fn ranked_contains_every_set_that_passes() {
        let mut passed = 0;
        for seed in 0..400 {
            let rows = rows(seed);
            let sets = Sets::new(&rows);
            for (threshold, floor) in [(0.1, 0.0), (1.0, 5.0), (4.0, 20.0)] {
                // The search passes a fraction of the totals.
                let (scale, total) = (0.8, rows.total());
                let part = floor / ((total[0] + total[1] / scale) / 2.0).max(1e-300);
                let candidates = may_change(&sets, total, part);
                let model = ScaleModel::new(&rows, &sets, &candidates, scale, threshold);
                let model = ScaleModel { floor, tau2: Variances::OfClasses([0.001; 3]), ..model };
                let all = (0..sets.len()).filter(|&set| model.rank(set, f64::NEG_INFINITY).is_some());
                let mut ranked: Vec<usize> = model.ranked().into_iter().map(|(_, set)| set).collect();
                ranked.sort_unstable();
                passed += ranked.len();
                assert_eq!(ranked, all.collect::<Vec<_>>(), "{seed}");
            }
        }
        assert!(passed > 1000, "{passed}");
    }

    #[test]
    fn purest_is_the_largest_set_without_base_values() {
        let mut n_found = 0;
        for seed in 0..400 {
            let mut rows = rows(seed);
            // Makes most values one-sided.
            rows.rows.iter_mut().for_each(|row| row.values[0] *= f64::from(u8::from(row.stack % 8 == 0)) / 64.0);
            let sets = Sets::new(&rows);
            let all = may_change(&sets, [0.0; 2], 0.0);
            let model = ScaleModel::new(&rows, &sets, &all, 1.0, 4.0);
            for set in 0..sets.len() {
                let outer = &sets.sets[set];
                let is_open =
                    outer.values[0] > 0.0 && outer.values[0] <= 0.02 * outer.values[1] && !outer.key.is_label();
                let outer_rows: Vec<u32> = sets.rows(set).collect();
                let inside = |j: usize| {
                    sets.rows(j)
                        .filter(|row| outer_rows.contains(row))
                        .map(|row| rows.rows[row as usize].values[1])
                        .sum::<f64>()
                };
                let is_pure = |&j: &usize| {
                    let other = &sets.sets[j];
                    let all = inside(j) >= MIN_PART_OF_ADDITION * outer.values[1] && inside(j) >= other.values[1];
                    all && other.values[0] == 0.0 && !other.key.is_label()
                };
                let largest = |a: &usize, b: &usize| inside(*a).total_cmp(&inside(*b)).then(b.cmp(a));
                let expected = (0..sets.len()).filter(|_| is_open).filter(is_pure).max_by(largest);
                n_found += usize::from(expected.is_some());
                assert_eq!(model.purest(set), expected.unwrap_or(set), "{seed}");
            }
        }
        assert!(n_found > 10, "{n_found}");
    }
}
