//! The model of one scale: causes with their factors, what they leave of each set, and the greedy search for them.

use super::noise::{Variances, variance_of};
use crate::explain::evidence::rows::{Kind, Rows};
use crate::explain::evidence::sets::{Key, Set, Sets};
use crate::statistics::counts::{between_run_variance, deviance, penalised};
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::work::paced;

/// A set within an added one that holds this part of it, and nothing of the base, is what was added.
pub(in crate::explain) const NEARLY_ALL: f64 = 0.9;

/// The work of a search (see [`Work`]), and how much more of it there is for each byte of the profiles.
const MAX_WORK: u64 = 1 << 26;

const WORK_OF_BYTE: u64 = 64;

/// What a function's callers, or calls of it, must explain of what its own cost does to be as good.
const PART_OF_CALLERS: f64 = 0.92;

/// The most causes.
const MAX_CAUSES: usize = 6;

/// A cause: a set of [`Sets`], and the factor that its rows have beside those of the others.
#[derive(Debug, Clone, Copy)]
pub(in crate::explain) struct Fit {
    pub set: usize,
    pub factor: f64,
    /// Change of the set's value given the causes before it, in that of the base's runs.
    pub delta: f64,
}

/// The sets' sums as a model of the rows expects them.
pub(super) struct Sums {
    pub(super) b: f64,
    pub(super) n: f64,
    /// Expected ratio of the sides.
    pub(super) r: f64,
}

pub(super) struct Model<'a> {
    pub(super) rows: &'a Rows,
    pub(super) sets: &'a Sets,
    pub(super) scale: f64,
    pub(super) threshold: f64,
    pub(super) floor: f64,
    /// True if the amount of work is known, so that all of it may be a cause.
    pub(super) is_given: bool,
    /// Those of [`may_change`]: before there are causes, no other is one.
    pub(super) candidates: &'a [u32],
    pub(super) tau2: Variances,
    /// Of each row.
    pub(super) factor: Vec<f64>,
    /// The causes that are applied, in their order.
    pub(super) applied: Vec<Applied>,
    /// The sets that have rows of these. Those of all other sets are made of the sets' values when asked: there may be a
    /// hundred thousand.
    pub(super) touched: Vec<Touched>,
    /// The place of each set in `touched`, or [`NONE`].
    pub(super) place: Vec<u32>,
    pub(super) work: Work,
}

/// The sets that may change by so much at any scale: by a part `floor` of both sides' mean.
///
/// At a scale `s` the change of a set, `n - s b`, is at least `floor (s B + N) / 2` of totals `B` and `N`, and at most the larger
/// of `n` and `s b`. So the larger of `n` and `b` is at least `floor / 2` of the smaller total.
pub(super) fn may_change(sets: &Sets, total: [f64; 2], floor: f64) -> Vec<u32> {
    // Digits may decide elsewhere.
    let least = floor * total[0].min(total[1]) / 2.0 * (1.0 - 1e-6);
    let large = paced((0..).zip(&sets.sets)).filter(|(_, of)| of.values[0].max(of.values[1]) >= least);
    large.map(|(set, _)| set).collect()
}

/// A set that has rows of causes, and what its rows add up to as their factors change.
pub(super) struct Touched {
    set: u32,
    /// The number of causes that were applied when its sums were changed last.
    by: u32,
    /// Its values together.
    all: f64,
    sums: Part,
}

/// A cause that is applied, with all that takes it back: so causes that begin as the last ones are applied once.
pub(super) struct Applied {
    fit: Fit,
    /// Its rows, with the factors that they had.
    factors: Vec<(u32, f64)>,
    /// How many sets were touched, and what was known of those that were touched again, by their places.
    touched: usize,
    before: Vec<(u32, u32, Part)>,
}

/// What a search has done and may do: ranges of candidates that were made, and places of the tree of calls that were looked
/// at as factors are applied to rows.
#[derive(Debug, Clone, Copy)]
pub(in crate::explain) struct Work {
    pub done: u64,
    pub(super) most: u64,
}

impl Work {
    /// The most that two sides of so many bytes may take: beyond that causes are not exchanged for others, and no other
    /// scale is tried.
    pub(in crate::explain) fn of(profile_bytes: usize) -> Work {
        Work { done: 0, most: MAX_WORK.saturating_add(WORK_OF_BYTE * profile_bytes as u64) }
    }

    pub(in crate::explain) fn add(&mut self, rows: usize) {
        self.done += rows as u64;
    }

    pub(in crate::explain) fn is_used_up(&self) -> bool {
        self.done > self.most
    }
}

/// Rows whose changed factors go up the tree of calls together.
const ROWS_AT_ONCE: usize = 1 << 10;

/// What a row adds to the sums of a set: base, new, and what is expected of each of its total.
type Part = [f64; 4];

/// What a set's deviance is worth. Callers of what changed explain as much by chance: a little less counts for the function
/// itself.
fn worth(set: &Set, deviance: f64) -> f64 {
    let part = if matches!(set.key, Key::Own(_)) { 1.0 } else { PART_OF_CALLERS };
    part * deviance - set.price
}

impl<'a> Model<'a> {
    pub(super) fn new(rows: &'a Rows, sets: &'a Sets, candidates: &'a [u32], scale: f64, threshold: f64) -> Model<'a> {
        let (floor, is_given, tau2) = (0.0, false, Variances::OfClasses([0.0; 3]));
        let factor = vec![1.0; rows.rows.len()];
        let (applied, touched, place) = (Vec::new(), Vec::new(), vec![NONE; sets.len()]);
        let work = Work::of(0);
        Model { rows, sets, candidates, scale, threshold, floor, is_given, tau2, factor, applied, touched, place, work }
    }

    /// What values add under a factor. Rows that are only on one side because a cause says so are explained and say
    /// nothing more.
    fn part(&self, [b, n]: [f64; 2], factor: f64) -> Part {
        if factor == 0.0 || factor.is_infinite() {
            return [0.0; 4];
        }
        let odds = factor * self.scale;
        let p = odds / (1.0 + odds);
        [b, n, (b + n) * (1.0 - p), (b + n) * p]
    }

    pub(super) fn sums(&self, set: usize) -> Sums {
        match self.touched.get(self.place[set] as usize) {
            Some(Touched { sums, all, .. }) => self.sums_by(set, *all, sums),
            None => {
                let v = self.sets.sets[set].values;
                self.sums_by(set, v[0] + v[1], &self.part(v, 1.0))
            }
        }
    }

    /// The events of a set that causes leave to it.
    pub(super) fn events(&self, set: usize) -> f64 {
        let sums = self.sums(set);
        sums.b + sums.n
    }

    /// True if a cause has rows of the set.
    pub(super) fn is_touched(&self, set: usize) -> bool {
        self.place[set] != NONE
    }

    fn sums_by(&self, set: usize, all: f64, sums: &Part) -> Sums {
        let w = self.sets.sets[set].event.max(1e-300);
        let [b, n, r] = self.known(all, sums);
        Sums { b: b / w, n: n / w, r }
    }

    /// Values of both sides, and the ratio that is expected of them, without what is left of sums that were added and taken
    /// away again.
    fn known(&self, all: f64, [b, n, eb, en]: &Part) -> [f64; 3] {
        let least = 1e-9 * all;
        let known = |x: f64| if x > least { x } else { 0.0 };
        let eb = known(*eb);
        [known(*b), known(*n), if eb > 0.0 { en / eb } else { self.scale }]
    }

    fn variance(&self, set: usize, s: &Sums) -> f64 {
        variance_of(self.rows, self.tau2.of(self.sets, set), [s.b, s.n])
    }

    /// The change of a set in values of the base.
    fn delta(&self, set: usize, s: &Sums) -> f64 {
        (s.n - s.r * s.b) / self.scale * self.sets.sets[set].event
    }

    /// The penalised deviance of a set.
    pub(super) fn score(&self, set: usize) -> f64 {
        let s = self.sums(set);
        if s.b + s.n > 0.0 { penalised(s.b, s.n, s.r, self.variance(set, &s)) } else { 0.0 }
    }

    /// How much a set explains, if it passes: its deviance less its price. The deviance itself and not the penalised
    /// one, which says whether something is there but is blunt where many events are: it finds the place. Nothing if
    /// that is no more than `least`.
    fn rank(&self, set: usize, least: f64) -> Option<f64> {
        let of = &self.sets.sets[set];
        if of.whole && !self.is_given {
            return None;
        }
        let s = self.sums(set);
        if self.delta(set, &s).abs() < self.floor {
            return None;
        }
        let threshold = self.threshold + of.price;
        let most = threshold.max(least + of.price);
        // Twice Pearson's statistic is never less than the deviance (KL <= chi squared), and needs no logarithm.
        let (t, p) = (s.b + s.n, s.r / (1.0 + s.r));
        if t <= 0.0 || 2.0 * (s.n - t * p).powi(2) <= most * t * p * (1.0 - p) {
            return None;
        }
        let raw = deviance(s.b, s.n, s.r);
        let passes = raw > most && penalised(s.b, s.n, s.r, self.variance(set, &s)) > threshold;
        passes.then_some(worth(of, raw))
    }

    /// All sets that pass before there are causes, the one that explains most first.
    fn ranked(&self) -> Vec<(f64, usize)> {
        let p = self.scale / (1.0 + self.scale);
        // Most of them can't, which is seen without a division: as in `rank`, from values instead of events, which has the
        // last word where digits decide.
        let floor = self.floor * self.scale;
        let may_pass = |of: &Set| {
            let [b, n] = of.values;
            let most = (self.threshold + of.price) * of.event * (b + n) * p * (1.0 - p);
            (n - self.scale * b).abs() >= floor * (1.0 - 1e-6) && 2.0 * (n - (b + n) * p).powi(2) >= most * (1.0 - 1e-6)
        };
        let sets = paced(self.candidates).map(|&set| set as usize);
        let sets = sets.filter(|&set| may_pass(&self.sets.sets[set]));
        let mut all: Vec<_> = sets.filter_map(|set| Some((self.rank(set, f64::NEG_INFINITY)?, set))).collect();
        all.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        all
    }

    /// The set that explains most now, of those that pass. Only the sets that have rows of causes explain something else
    /// than before there were any (`ranked`).
    fn best(&self, ranked: &[(f64, usize)], without: &[usize]) -> Option<(usize, f64)> {
        let mut best: Option<(f64, usize)> = None;
        let mut take = |rank: f64, set: usize| {
            // Of equals the first, whatever the last digits say.
            let is_better =
                best.is_none_or(|(known, of)| rank > known * (1.0 + 1e-9) || rank * (1.0 + 1e-9) >= known && set < of);
            best = if is_better { Some((rank, set)) } else { best };
            best.map_or(0.0, |(rank, _)| rank / (1.0 + 1e-9))
        };
        let mut least = f64::NEG_INFINITY;
        for &(rank, set) in paced(ranked) {
            if rank < least {
                break;
            }
            if !self.is_touched(set) && !without.contains(&set) {
                least = take(rank, set);
            }
        }
        // Most change too little, which is seen without the set.
        let floor = self.floor * self.scale * (1.0 - 1e-9);
        let may_pass = |Touched { all, sums, .. }: &&Touched| {
            let [b, n, r] = self.known(*all, sums);
            (n - r * b).abs() >= floor
        };
        let touched = paced(&self.touched).filter(may_pass);
        for set in touched.map(|touched| touched.set as usize) {
            if let Some(rank) = self.rank(set, least).filter(|_| !without.contains(&set)) {
                least = take(rank, set);
            }
        }
        best.map(|(rank, set)| (set, rank))
    }

    /// Multiplies the factors of a set's rows by what makes its expectation true.
    fn apply(&mut self, set: usize) {
        let s = self.sums(set);
        let fit =
            Fit { set, factor: if s.b > 0.0 { s.n / (s.b * s.r) } else { f64::INFINITY }, delta: self.delta(set, &s) };
        let (sets, rows) = (self.sets, self.sets.rows(set));
        let factors: Vec<(u32, f64)> = rows.clone().map(|row| (row, self.factor[row as usize])).collect();
        let (by, n_touched, mut before) = (self.applied.len() as u32 + 1, self.touched.len(), Vec::new());
        // Rows of different factors share what is lacking in more than one step.
        let mut step = fit.factor;
        for _ in 0..4 {
            let mut sums = [0.0; 4];
            for row in paced(rows.clone()) {
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
        // Some rows at a time, so that what is kept of them is small.
        let mut changes = Vec::with_capacity(ROWS_AT_ONCE);
        for rows in factors.chunks(ROWS_AT_ONCE) {
            changes.clear();
            changes.extend(rows.iter().map(|&(row, before)| {
                let v = self.rows.rows[row as usize].values;
                let (was, is) = (self.part(v, before), self.part(v, self.factor[row as usize]));
                (row, std::array::from_fn(|i| is[i] - was[i]))
            }));
            let looked_at = sets.add_up(&changes, |other, part: Part| {
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
            self.work.add(looked_at);
        }
        self.applied.push(Applied { fit, factors, touched: n_touched, before });
    }

    /// Takes the last cause back.
    fn take_back(&mut self) {
        let Some(Applied { factors, touched, before, .. }) = self.applied.pop() else { return };
        for (row, factor) in paced(factors) {
            self.factor[row as usize] = factor;
        }
        for (place, by, sums) in paced(before) {
            self.touched[place as usize] = Touched { by, sums, ..self.touched[place as usize] };
        }
        for Touched { set, .. } in paced(self.touched.drain(touched..)) {
            self.place[set as usize] = NONE;
        }
    }

    /// The factors of these causes, one after the other.
    pub(super) fn refit(&mut self, causes: &[usize]) -> Vec<Fit> {
        let is_same = |(applied, set): &(&Applied, &usize)| applied.fit.set == **set;
        let kept = self.applied.iter().zip(causes).take_while(is_same).count();
        while self.applied.len() > kept {
            self.take_back();
        }
        causes[kept..].iter().for_each(|&set| self.apply(set));
        self.applied.iter().map(|applied| applied.fit).collect()
    }

    /// Causes, the one that explains most first; after each, every cause is tested given the others, and exchanged if
    /// another set now explains more, as long as there is work left.
    pub(super) fn greedy(&mut self) -> Vec<usize> {
        let mut causes: Vec<usize> = Vec::new();
        self.refit(&causes);
        let ranked = self.ranked();
        // The exchange of one cause asks again what was asked before that cause was found.
        let mut known: HashMap<Vec<usize>, Option<(usize, f64)>> = HashMap::default();
        for _ in 0..MAX_CAUSES {
            self.refit(&causes);
            let found = *known.entry(causes.clone()).or_insert_with(|| self.best(&ranked, &causes));
            let Some((found, _)) = found else { break };
            causes.push(found);
            'exchange: for _ in 0..3 {
                let mut changed = false;
                for j in causes.clone() {
                    if self.work.is_used_up() {
                        break 'exchange;
                    }
                    let Some(at) = causes.iter().position(|&c| c == j).filter(|_| causes.len() > 1) else { continue };
                    let others: Vec<usize> = causes.iter().copied().filter(|&c| c != j).collect();
                    self.refit(&others);
                    if self.score(j) < self.threshold {
                        causes = others;
                        changed = true;
                        continue;
                    }
                    let better = *known.entry(others).or_insert_with_key(|others| self.best(&ranked, others));
                    if let Some((better, rank)) = better {
                        let s = self.sums(j);
                        let own = worth(&self.sets.sets[j], deviance(s.b, s.n, s.r));
                        if better != j && rank > own + 1e-6 {
                            causes[at] = better;
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

    /// Of a cause that is nearly all on one side: the largest set within it that has nearly all of that, and nothing of
    /// the other side. A caller that was hardly seen before is not what was added, but what it calls now.
    pub(super) fn purest(&self, set: usize) -> usize {
        let of = &self.sets.sets[set];
        let side = usize::from(of.values[1] > of.values[0]);
        if of.values[1 - side] <= 0.0 || of.values[1 - side] > 0.02 * of.values[side] || of.key.is_label() {
            return set;
        }
        let mut is_inside = vec![false; self.rows.rows.len()];
        self.sets.rows(set).for_each(|row| is_inside[row as usize] = true);
        let pure = paced(self.sets.sets.iter().enumerate()).filter_map(|(j, s)| {
            let may_be =
                s.values[1 - side] <= 0.0 && !s.key.is_label() && s.values[side] >= NEARLY_ALL * of.values[side];
            let rows = || self.sets.rows(j).filter(|&row| is_inside[row as usize]);
            let inside = || rows().map(|row| self.rows.rows[row as usize].values[side]).sum::<f64>();
            let inside = may_be.then(inside)?;
            let is_pure = inside >= NEARLY_ALL * of.values[side] && inside >= s.values[side] * (1.0 - 1e-9);
            is_pure.then_some((inside, j))
        });
        let largest = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1));
        pure.max_by(largest).map_or(set, |(_, j)| j)
    }

    /// Of a function whose own cost came or went: the function with all that it calls, if that came or went as well.
    pub(super) fn whole(&self, set: usize) -> usize {
        let of = &self.sets.sets[set];
        let Key::Own(function) = of.key else { return set };
        let side = usize::from(of.values[1] > 0.0);
        let is_one_sided = |set: &Set| set.values[1 - side] <= 0.0;
        let has_all = |j: &usize| {
            let other = &self.sets.sets[*j];
            let is_function = match other.key {
                Key::Node(of) | Key::Edge(_, of) => of == function,
                _ => false,
            };
            is_function && is_one_sided(other) && other.values[side] >= of.values[side]
        };
        let most = |a: &usize, b: &usize| {
            let value = |j: usize| self.sets.sets[j].values[side];
            value(*a).total_cmp(&value(*b)).then(b.cmp(a))
        };
        let found = (0..self.sets.len()).filter(|_| is_one_sided(of)).filter(has_all).max_by(most);
        found.unwrap_or(set)
    }

    /// Of waiting for a lock: the function itself that holds it, if it has nearly all of the change of those who call it. So
    /// a lock is named by who holds it.
    pub(super) fn holder(&self, set: usize) -> usize {
        let of = &self.sets.sets[set];
        if self.rows.kind != Kind::Delay || of.key.is_label() {
            return set;
        }
        // Of each set what the rows of this one have of it, and of the change.
        let (mut values, mut changes) = (vec![0.0; self.rows.rows.len()], vec![0.0; self.rows.rows.len()]);
        self.sets.rows(set).for_each(|r| {
            let [b, n] = self.rows.rows[r as usize].values;
            (values[r as usize], changes[r as usize]) = (b + n, n - self.scale * b);
        });
        let change = of.values[1] - self.scale * of.values[0];
        let (values, changes) = (self.sets.sums(&values), self.sets.sums(&changes));
        let holds = |j: &usize| {
            let is_within = values[*j] >= NEARLY_ALL * (self.sets.sets[*j].values[0] + self.sets.sets[*j].values[1]);
            matches!(self.sets.sets[*j].key, Key::Own(_)) && is_within && changes[*j] / change >= NEARLY_ALL
        };
        let most = |a: &usize, b: &usize| (changes[*a] / change).total_cmp(&(changes[*b] / change)).then(b.cmp(a));
        (0..self.sets.len()).filter(holds).max_by(most).unwrap_or(set)
    }

    /// The deviance that the causes leave, over the functions' own costs, each at most that of one more cause. By the
    /// noise that was known before, since a wrong scale must not excuse itself by the noise that it makes.
    pub(super) fn left(&self, tau2: &Variances, cap: f64) -> f64 {
        paced(0..self.sets.telling.n_own as usize)
            .map(|j| {
                let s = self.sums(j);
                if s.b + s.n <= 0.0 {
                    0.0
                } else {
                    penalised(s.b, s.n, s.r, between_run_variance(tau2.of(self.sets, j), self.rows.runs)).min(cap)
                }
            })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{Model, NEARLY_ALL, Variances, may_change};
    use crate::explain::evidence::sets::Sets;
    use crate::explain::evidence::sets::tests::rows;

    #[test]
    fn causes_that_are_exchanged_leave_nothing_behind() {
        for seed in 0..60 {
            let rows = rows(seed);
            let sets = Sets::new(&rows);
            let all = may_change(&sets, [0.0; 2], 0.0);
            let mut model = Model::new(&rows, &sets, &all, 1.25, 4.0);
            let n = sets.len().max(1);
            let list = |i: usize| (0..i % 5).map(|at| (seed as usize * 7 + i / (at + 1) * 3 + at) % n).collect();
            for causes in (0..30).map(list).filter(|_: &Vec<usize>| sets.len() > 0) {
                let mut fresh = Model::new(&rows, &sets, &all, 1.25, 4.0);
                let fits =
                    |fits: Vec<super::Fit>| fits.iter().map(|fit| (fit.set, fit.factor, fit.delta)).collect::<Vec<_>>();
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
    fn sets_that_are_not_tested_would_not_pass() {
        let mut passed = 0;
        for seed in 0..400 {
            let rows = rows(seed);
            let sets = Sets::new(&rows);
            for (threshold, floor) in [(0.1, 0.0), (1.0, 5.0), (4.0, 20.0)] {
                // A part of the totals, as the search has it.
                let (scale, total) = (0.8, rows.total());
                let part = floor / ((total[0] + total[1] / scale) / 2.0).max(1e-300);
                let candidates = may_change(&sets, total, part);
                let of_scale = Model::new(&rows, &sets, &candidates, scale, threshold);
                let model = Model { floor, tau2: Variances::OfClasses([0.001; 3]), ..of_scale };
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
    fn what_was_added_is_the_largest_set_of_nothing_else() {
        let mut found = 0;
        for seed in 0..400 {
            let mut rows = rows(seed);
            // Nearly all on one side.
            rows.rows.iter_mut().for_each(|row| row.values[0] *= f64::from(u8::from(row.stack % 8 == 0)) / 64.0);
            let sets = Sets::new(&rows);
            let all = may_change(&sets, [0.0; 2], 0.0);
            let model = Model::new(&rows, &sets, &all, 1.0, 4.0);
            for set in 0..sets.len() {
                let of = &sets.sets[set];
                let is_open = of.values[0] > 0.0 && of.values[0] <= 0.02 * of.values[1] && !of.key.is_label();
                let own: Vec<u32> = sets.rows(set).collect();
                let inside = |j: usize| {
                    sets.rows(j)
                        .filter(|row| own.contains(row))
                        .map(|row| rows.rows[row as usize].values[1])
                        .sum::<f64>()
                };
                let is_pure = |&j: &usize| {
                    let other = &sets.sets[j];
                    let all = inside(j) >= NEARLY_ALL * of.values[1] && inside(j) >= other.values[1];
                    all && other.values[0] == 0.0 && !other.key.is_label()
                };
                let largest = |a: &usize, b: &usize| inside(*a).total_cmp(&inside(*b)).then(b.cmp(a));
                let wanted = (0..sets.len()).filter(|_| is_open).filter(is_pure).max_by(largest);
                found += usize::from(wanted.is_some());
                assert_eq!(model.purest(set), wanted.unwrap_or(set), "{seed}");
            }
        }
        assert!(found > 10, "{found}");
    }
}
