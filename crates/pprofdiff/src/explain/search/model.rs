//! The model of one scale: causes with their factors, what they leave of each set, and the greedy search for them.

use super::noise::variance_of;
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
    pub(super) tau2: Vec<f64>,
    /// Of each row.
    pub(super) factor: Vec<f64>,
    /// The rows whose factor isn't one, and the sets that have such rows, with what their rows add up to as the factors
    /// change. Those of all other sets are made of the sets' values when asked: there may be a hundred thousand.
    pub(super) changed: Vec<u32>,
    pub(super) touched: Vec<(u32, Part)>,
    /// The place of each set in `touched`, or [`NONE`].
    pub(super) place: Vec<u32>,
    pub(super) work: Work,
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
    pub(super) fn new(rows: &'a Rows, sets: &'a Sets, scale: f64, threshold: f64) -> Model<'a> {
        let (floor, is_given, tau2) = (0.0, false, Vec::new());
        let factor = vec![1.0; rows.rows.len()];
        let (changed, touched, place) = (Vec::new(), Vec::new(), vec![NONE; sets.len()]);
        let work = Work::of(0);
        Model { rows, sets, scale, threshold, floor, is_given, tau2, factor, changed, touched, place, work }
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
            Some((_, sums)) => self.sums_by(set, sums),
            None => self.sums_by(set, &self.part(self.sets.sets[set].values, 1.0)),
        }
    }

    /// The events of a set that its sums have.
    #[inline(always)]
    pub(super) fn events(&self, set: usize) -> f64 {
        if self.is_touched(set) {
            let sums = self.sums(set);
            return sums.b + sums.n;
        }
        let of = &self.sets.sets[set];
        let w = of.event.max(1e-300);
        of.values[0] / w + of.values[1] / w
    }

    /// True if a cause has rows of the set.
    pub(super) fn is_touched(&self, set: usize) -> bool {
        self.place[set] != NONE
    }

    fn sums_by(&self, set: usize, [b, n, eb, en]: &Part) -> Sums {
        let of = &self.sets.sets[set];
        // What is left of sums that were added and taken away again.
        let least = 1e-9 * (of.values[0] + of.values[1]);
        let w = of.event.max(1e-300);
        let known = |x: f64| if x > least { x } else { 0.0 };
        let (b, n, eb) = (known(*b), known(*n), known(*eb));
        Sums { b: b / w, n: n / w, r: if eb > 0.0 { en / eb } else { self.scale } }
    }

    fn variance(&self, set: usize, s: &Sums) -> f64 {
        variance_of(self.rows, self.tau2[set], [s.b, s.n])
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
        let threshold = self.threshold + of.price;
        let most = threshold.max(least + of.price);
        // Twice Pearson's statistic is never less than the deviance (KL <= chi squared), and needs no logarithm.
        let (t, p) = (s.b + s.n, s.r / (1.0 + s.r));
        if t <= 0.0 || 2.0 * (s.n - t * p).powi(2) <= most * t * p * (1.0 - p) {
            return None;
        }
        let raw = deviance(s.b, s.n, s.r);
        let passes = raw > most
            && self.delta(set, &s).abs() >= self.floor
            && penalised(s.b, s.n, s.r, self.variance(set, &s)) > threshold;
        passes.then_some(worth(of, raw))
    }

    /// All sets that pass before there are causes, the one that explains most first.
    fn ranked(&self) -> Vec<(f64, usize)> {
        let p = self.scale / (1.0 + self.scale);
        // Most of them can't, which is seen without a division: by twice Pearson's statistic, as in `rank`, from values
        // instead of events. `rank` has the last word where digits decide.
        let may_pass = |of: &Set| {
            let [b, n] = of.values;
            let most = (self.threshold + of.price) * of.event * (b + n) * p * (1.0 - p);
            2.0 * (n - (b + n) * p).powi(2) > most * (1.0 - 1e-6)
        };
        let sets = paced(self.sets.sets.iter().enumerate()).filter(|(_, of)| may_pass(of));
        let mut all: Vec<_> = sets.filter_map(|(set, _)| Some((self.rank(set, f64::NEG_INFINITY)?, set))).collect();
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
        for set in paced(&self.touched).map(|(set, _)| *set as usize) {
            if let Some(rank) = self.rank(set, least).filter(|_| !without.contains(&set)) {
                least = take(rank, set);
            }
        }
        best.map(|(rank, set)| (set, rank))
    }

    /// Multiplies the factors of a set's rows by what makes its expectation true.
    fn apply(&mut self, set: usize) -> Fit {
        let s = self.sums(set);
        let fit =
            Fit { set, factor: if s.b > 0.0 { s.n / (s.b * s.r) } else { f64::INFINITY }, delta: self.delta(set, &s) };
        let (sets, rows) = (self.sets, self.sets.rows(set));
        let before: Vec<f64> = rows.clone().map(|row| self.factor[row as usize]).collect();
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
            let s = self.sums_by(set, &sums);
            step = if s.b > 0.0 && s.n > 0.0 { s.n / (s.b * s.r) } else { 1.0 };
            if (step - 1.0).abs() < 1e-3 {
                break;
            }
        }
        // Some rows at a time, so that what is kept of them is small.
        let (mut rows, mut changes) = (rows.zip(before), Vec::with_capacity(ROWS_AT_ONCE));
        loop {
            changes.clear();
            changes.extend(rows.by_ref().take(ROWS_AT_ONCE).map(|(row, before)| {
                let v = self.rows.rows[row as usize].values;
                let (was, is) = (self.part(v, before), self.part(v, self.factor[row as usize]));
                (row, std::array::from_fn(|i| is[i] - was[i]))
            }));
            if changes.is_empty() {
                break;
            }
            self.changed.extend(changes.iter().map(|(row, _)| *row));
            let looked_at = sets.add_up(&changes, |other, part: Part| {
                if self.place[other] == NONE {
                    self.place[other] = self.touched.len() as u32;
                    self.touched.push((other as u32, self.part(sets.sets[other].values, 1.0)));
                }
                let (_, sums) = &mut self.touched[self.place[other] as usize];
                (0..4).for_each(|i| sums[i] += part[i]);
            });
            self.work.add(looked_at);
        }
        fit
    }

    /// The factors of these causes, one after the other.
    pub(super) fn refit(&mut self, causes: &[usize]) -> Vec<Fit> {
        self.changed.drain(..).for_each(|row| self.factor[row as usize] = 1.0);
        for (set, _) in paced(std::mem::take(&mut self.touched)) {
            self.place[set as usize] = NONE;
        }
        causes.iter().map(|&j| self.apply(j)).collect()
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
            let may_be = s.values[1 - side] <= 0.0 && !s.key.is_label() && s.values[side] >= NEARLY_ALL * of.values[side];
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
    pub(super) fn left(&self, tau2: &[f64], cap: f64) -> f64 {
        let own = (0..self.sets.len()).filter(|&j| matches!(self.sets.sets[j].key, Key::Own(_)));
        paced(own)
            .map(|j| {
                let s = self.sums(j);
                if s.b + s.n <= 0.0 {
                    0.0
                } else {
                    penalised(s.b, s.n, s.r, between_run_variance(tau2[j], self.rows.runs)).min(cap)
                }
            })
            .sum()
    }
}
