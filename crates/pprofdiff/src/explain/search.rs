//! The search: which few sets of stacks, each with a factor of its own, and which scale explain the difference, so that
//! what is left is no more than chance.
//!
//! Each row is expected to have `scale x factor` times as much on the new side as on the base. A set that has more or
//! less than its rows' expectations, by more than chance and the noise between runs allow, is a cause; its rows'
//! factors are multiplied by what it lacks, and the search goes on.

use super::rows::{Kind, Rows};
use super::sets::{Key, Sets};
use crate::statistics::counts::{
    LEVEL, Measured, between_run_variance, deviance, least_growth, median, penalised, threshold, variance_of_ratios,
    weighted_median, with_power,
};
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::work::{Pace, paced};

/// The variance of the log of a set's ratio between runs, of which `tau2` is known. What one side does not have at all did
/// not wander there: a new function is no noisier than was known before. Where inlining makes frames come and go, it is
/// noisier.
pub(super) fn variance_of(rows: &Rows, tau2: f64, [b, n]: [f64; 2]) -> f64 {
    let tau2 = match (b <= 0.0 || n <= 0.0, rows.runtime.cut_system) {
        (false, _) => tau2,
        (true, false) => tau2.min(known_variance(rows.kind)),
        (true, true) => tau2.max(FLICKER * FLICKER),
    };
    between_run_variance(tau2, rows.m)
}

/// What frames that compilers inline by chance differ by between builds, as a standard deviation of the log.
const FLICKER: f64 = 0.3;
/// A set within an added one that holds this part of it, and nothing of the base, is what was added.
pub(super) const NEARLY_ALL: f64 = 0.9;

/// The work of a search (see [`Work`]), and how much more of it there is for each byte of the profiles.
const MOST_WORK: u64 = 1 << 26;
const WORK_OF_BYTE: u64 = 64;
/// The most causes.
const MOST_CAUSES: usize = 6;
/// A cause that says nearly the same as "more work everywhere": the least by which it must be better, and the part of
/// the base that it must have to be confused with it.
const MARGIN: f64 = 6.0;
const CONFUSABLE: f64 = 0.5;
/// What a scale other than one costs more than a cause, and how far from one is usual, as a standard deviation of its
/// log.
const PRICE_OF_SCALE: f64 = 3.0;
const USUAL_SCALE: f64 = 0.35;
/// The same where benchmarks choose how often they run.
const USUAL_OF_BENCHMARKS: f64 = 2.0;
/// No function says more of the scale than this part of all, and of what they say this part must agree with one that is not
/// one.
const MOST_OF_SCALE: f64 = 0.1;
const AGREEING: f64 = 0.5;
/// The same of locks: who waits for one that is held longer does not wait for the others meanwhile.
const AGREEING_LOCKS: f64 = 0.9;
/// What is nearer to a scale than this, as a logarithm, agrees with it whatever the noise.
const NEAR_SCALE: f64 = 0.1;
/// The deviance that the stacks which no cause touches must have together for a scale.
const SCALE_DEVIANCE: f64 = 9.0;
/// Ratios of so many sets show how much a pair differs by itself.
const MOST_RATIOS: usize = 2_000;

/// The least that a lock's delay is said to differ by between runs, as a standard deviation of the log; and the fewest locks
/// that a threshold is for: a program has few that matter.
const QUIETEST_LOCK: f64 = 0.1;
const FEWEST_LOCKS: usize = 10;

/// What is known of noise before anything is measured: a frame's standard deviation between equal runs, as a part of
/// its value. From equal builds of the programs that this was written with (docs/explain.md).
struct Prior {
    tau: f64,
    /// The least that a pair of runs is taken for, and the number of frames that show that it was quieter.
    floor: f64,
    trust: f64,
    /// The number of frames that outweigh the prior.
    shrink: f64,
}

fn prior(kind: Kind) -> Prior {
    match kind {
        Kind::Sampled => Prior { tau: 0.07, floor: 0.06, trust: 60.0, shrink: 30.0 },
        Kind::Heap => Prior { tau: 0.02, floor: 0.01, trust: 40.0, shrink: 30.0 },
        Kind::Delay => Prior { tau: 0.95, floor: 0.5, trust: 12.0, shrink: 12.0 },
    }
}

/// The variance between equal runs that is known before anything is measured.
pub(super) fn known_variance(kind: Kind) -> f64 {
    prior(kind).tau.powi(2)
}

/// What a wall clock shows differs more between equal runs than what a processor does: a frame waits for the others.
const OF_WALL: f64 = 0.15;

/// The variance between equal runs of a sample type, of which nothing but that is known.
pub(super) fn known_variance_of(kind: Kind, is_wall: bool) -> f64 {
    if is_wall { OF_WALL * OF_WALL } else { known_variance(kind) }
}

/// What the estimate of a pair's noise is drawn towards the prior by, in frames.
const PULL: f64 = 10.0;

/// A cause: a set of [`Sets`], and the factor that its rows have beside those of the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fit {
    pub set: usize,
    pub factor: f64,
    /// Change of the set's value given the causes before it, in that of the base's runs.
    pub delta: f64,
}

/// What the search found.
pub(super) struct Found {
    /// Of all runs of a side to those of the other.
    pub scale: f64,
    pub fits: Vec<Fit>,
    /// True if more work everywhere says nearly the same as the causes.
    pub ambiguous: bool,
    /// True if functions do not agree on any amount of work.
    pub unknown: bool,
    /// Variance between runs of each set.
    pub tau2: Vec<f64>,
    /// The typical standard deviation between runs of a function's own cost.
    pub tau: f64,
    pub need: f64,
    /// What a frame with a tenth of the total seems to have grown by though it did not: the standard deviation of the
    /// log. And the least growth of such a frame that would be noticed, as a factor less one.
    pub deviation: f64,
    pub noticed: f64,
    /// Frames that agree with the scale, of those that say anything.
    pub agree: usize,
    pub of: usize,
}

impl Found {
    /// True if a function's values differ by no more than chance beside the amount of work, and by less than half of it.
    pub(super) fn is_even(&self, rows: &Rows, scale: f64, [base, new]: [f64; 2]) -> bool {
        let (event, expected) = (rows.event().max(1e-300), scale * base);
        let variance = between_run_variance(self.tau * self.tau, rows.m);
        (new - expected).abs() < 0.5 * new.max(expected)
            && penalised(base / event, new / event, scale, variance) < LEVEL
    }
}

/// The sets' sums as a model of the rows expects them.
struct Sums {
    b: f64,
    n: f64,
    /// Expected ratio of the sides.
    r: f64,
}

struct Model<'a> {
    rows: &'a Rows,
    sets: &'a Sets,
    scale: f64,
    need: f64,
    floor: f64,
    /// True if the amount of work is known, so that all of it may be a cause.
    is_given: bool,
    tau2: Vec<f64>,
    /// Of each row.
    factor: Vec<f64>,
    /// Of each set what its rows add up to, kept as the factors change.
    sums: Vec<Part>,
    /// The rows whose factor isn't one, and the sets that have such rows.
    changed: Vec<u32>,
    touched: Vec<u32>,
    is_touched: Vec<bool>,
    work: Work,
}

/// What a search has done and may do: ranges of candidates that were made, and places of the tree of calls that were looked
/// at as factors are applied to rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    pub done: u64,
    most: u64,
}

impl Work {
    /// The most that two sides of so many bytes may take: beyond that causes are not exchanged for others, and no other
    /// scale is tried.
    pub(super) fn of(profile_bytes: usize) -> Work {
        Work { done: 0, most: MOST_WORK.saturating_add(WORK_OF_BYTE * profile_bytes as u64) }
    }

    pub(super) fn add(&mut self, rows: usize) {
        self.done += rows as u64;
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.done > self.most
    }
}

/// What a row adds to the sums of a set: base, new, and what is expected of each of its total.
type Part = [f64; 4];

impl<'a> Model<'a> {
    fn new(rows: &'a Rows, sets: &'a Sets, scale: f64, need: f64) -> Model<'a> {
        let (floor, is_given, tau2) = (0.0, false, Vec::new());
        let factor = vec![1.0; rows.rows.len()];
        let (changed, touched, is_touched) = (Vec::new(), Vec::new(), vec![false; sets.len()]);
        let work = Work::of(0);
        let mut model = Model {
            rows,
            sets,
            scale,
            need,
            floor,
            is_given,
            tau2,
            factor,
            sums: Vec::new(),
            changed,
            touched,
            is_touched,
            work,
        };
        model.sums = sets.sets.iter().map(|set| model.part(set.v, 1.0)).collect();
        model
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

    fn sums(&self, set: usize) -> Sums {
        self.sums_by(set, &self.sums[set])
    }

    fn sums_by(&self, set: usize, [b, n, eb, en]: &Part) -> Sums {
        let of = &self.sets.sets[set];
        // What is left of sums that were added and taken away again.
        let least = 1e-9 * (of.v[0] + of.v[1]);
        let w = of.w.max(1e-300);
        let known = |x: f64| if x > least { x } else { 0.0 };
        let (b, n, eb) = (known(*b), known(*n), known(*eb));
        Sums { b: b / w, n: n / w, r: if eb > 0.0 { en / eb } else { self.scale } }
    }

    fn variance(&self, set: usize, s: &Sums) -> f64 {
        variance_of(self.rows, self.tau2[set], [s.b, s.n])
    }

    /// The change of a set in values of the base.
    fn delta(&self, set: usize, s: &Sums) -> f64 {
        (s.n - s.r * s.b) / self.scale * self.sets.sets[set].w
    }

    /// The penalised deviance of a set.
    fn score(&self, set: usize) -> f64 {
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
        let need = self.need + of.price;
        let most = need.max(least + of.price);
        // Twice Pearson's statistic is never less than the deviance (KL <= chi squared), and needs no logarithm.
        let (t, p) = (s.b + s.n, s.r / (1.0 + s.r));
        if t <= 0.0 || 2.0 * (s.n - t * p).powi(2) <= most * t * p * (1.0 - p) {
            return None;
        }
        let raw = deviance(s.b, s.n, s.r);
        let passes = raw > most
            && self.delta(set, &s).abs() >= self.floor
            && penalised(s.b, s.n, s.r, self.variance(set, &s)) > need;
        passes.then_some(raw - of.price)
    }

    /// All sets that pass before there are causes, the one that explains most first.
    fn ranked(&self) -> Vec<(f64, usize)> {
        let mut all: Vec<_> =
            paced(0..self.sets.len()).filter_map(|set| Some((self.rank(set, f64::NEG_INFINITY)?, set))).collect();
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
            if !self.is_touched[set] && !without.contains(&set) {
                least = take(rank, set);
            }
        }
        for set in paced(&self.touched).map(|&set| set as usize) {
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
                let part = self.part(self.rows.rows[row as usize].v, self.factor[row as usize]);
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
        let mut pace = Pace::default();
        for (row, before) in rows.zip(before) {
            let v = self.rows.rows[row as usize].v;
            let (was, is) = (self.part(v, before), self.part(v, self.factor[row as usize]));
            self.changed.push(row);
            let looked_at = sets.for_each_of_row(row as usize, |other| {
                let sums = &mut self.sums[other];
                (0..4).for_each(|i| sums[i] += is[i] - was[i]);
                if !std::mem::replace(&mut self.is_touched[other], true) {
                    self.touched.push(other as u32);
                }
            });
            self.work.add(looked_at);
            pace.step(1 + looked_at);
        }
        fit
    }

    /// The factors of these causes, one after the other.
    fn refit(&mut self, causes: &[usize]) -> Vec<Fit> {
        self.changed.drain(..).for_each(|row| self.factor[row as usize] = 1.0);
        for set in paced(std::mem::take(&mut self.touched)) {
            self.is_touched[set as usize] = false;
            self.sums[set as usize] = self.part(self.sets.sets[set as usize].v, 1.0);
        }
        causes.iter().map(|&j| self.apply(j)).collect()
    }

    /// Causes, the one that explains most first; after each, every cause is tested given the others, and exchanged if
    /// another set now explains more, as long as there is work left.
    fn greedy(&mut self) -> Vec<usize> {
        let mut causes: Vec<usize> = Vec::new();
        self.refit(&causes);
        let ranked = self.ranked();
        // The exchange of one cause asks again what was asked before that cause was found.
        let mut known: HashMap<Vec<usize>, Option<(usize, f64)>> = HashMap::default();
        for _ in 0..MOST_CAUSES {
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
                    if self.score(j) < self.need {
                        causes = others;
                        changed = true;
                        continue;
                    }
                    let better = *known.entry(others).or_insert_with_key(|others| self.best(&ranked, others));
                    if let Some((better, rank)) = better {
                        let s = self.sums(j);
                        let own = deviance(s.b, s.n, s.r) - self.sets.sets[j].price;
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
    fn purest(&self, set: usize) -> usize {
        let of = &self.sets.sets[set];
        let side = usize::from(of.v[1] > of.v[0]);
        if of.v[1 - side] <= 0.0 || of.v[1 - side] > 0.02 * of.v[side] || of.key.is_label() {
            return set;
        }
        let mut inside = vec![0.0; self.rows.rows.len()];
        self.sets.rows(set).for_each(|r| inside[r as usize] = self.rows.rows[r as usize].v[side]);
        let inside = self.sets.sums(&inside);
        let is_pure = |j: &usize| {
            let s = &self.sets.sets[*j];
            let all = inside[*j] >= NEARLY_ALL * of.v[side] && inside[*j] >= s.v[side] * (1.0 - 1e-9);
            all && s.v[1 - side] <= 0.0 && !s.key.is_label()
        };
        let largest = |a: &usize, b: &usize| inside[*a].total_cmp(&inside[*b]).then(b.cmp(a));
        (0..self.sets.len()).filter(is_pure).max_by(largest).unwrap_or(set)
    }

    /// Of waiting for a lock: the function itself that holds it, if it has nearly all of the change of those who call it. So
    /// a lock is named by who holds it.
    fn holder(&self, set: usize) -> usize {
        let of = &self.sets.sets[set];
        if self.rows.kind != Kind::Delay || of.key.is_label() {
            return set;
        }
        // Of each set what the rows of this one have of it, and of the change.
        let (mut values, mut changes) = (vec![0.0; self.rows.rows.len()], vec![0.0; self.rows.rows.len()]);
        self.sets.rows(set).for_each(|r| {
            let [b, n] = self.rows.rows[r as usize].v;
            (values[r as usize], changes[r as usize]) = (b + n, n - self.scale * b);
        });
        let change = of.v[1] - self.scale * of.v[0];
        let (values, changes) = (self.sets.sums(&values), self.sets.sums(&changes));
        let holds = |j: &usize| {
            let is_within = values[*j] >= NEARLY_ALL * (self.sets.sets[*j].v[0] + self.sets.sets[*j].v[1]);
            matches!(self.sets.sets[*j].key, Key::Own(_)) && is_within && changes[*j] / change >= NEARLY_ALL
        };
        let most = |a: &usize, b: &usize| (changes[*a] / change).total_cmp(&(changes[*b] / change)).then(b.cmp(a));
        (0..self.sets.len()).filter(holds).max_by(most).unwrap_or(set)
    }

    /// The deviance that the causes leave, over the functions' own costs, each at most that of one more cause. By the
    /// noise that was known before, since a wrong scale must not excuse itself by the noise that it makes.
    fn left(&self, tau2: &[f64], cap: f64) -> f64 {
        let own = (0..self.sets.len()).filter(|&j| matches!(self.sets.sets[j].key, Key::Own(_)));
        paced(own)
            .map(|j| {
                let s = self.sums(j);
                if s.b + s.n <= 0.0 {
                    0.0
                } else {
                    penalised(s.b, s.n, s.r, between_run_variance(tau2[j], self.rows.m)).min(cap)
                }
            })
            .sum()
    }
}

/// How noise between runs is measured.
fn measured(rows: &Rows) -> Measured {
    let degrees = degrees_of_runs(rows);
    match rows.kind {
        Kind::Delay => Measured { degrees, prior: 0, fewest: FEWEST_LOCKS },
        Kind::Sampled | Kind::Heap => Measured::drawn(degrees),
    }
}

/// The degrees of freedom of the variances that runs of one build show, of a side or of equal builds.
fn degrees_of_runs(rows: &Rows) -> usize {
    [rows.m[0], rows.m[1], rows.learned].iter().map(|runs| runs.saturating_sub(1)).sum()
}

/// Variances between runs of each set, of replicates: pooled within sides, less what sampling makes, drawn towards the
/// median of sets of like size.
fn variance_of_runs(rows: &Rows, sets: &Sets) -> Vec<f64> {
    let m = rows.runs_of_row();
    let degrees = degrees_of_runs(rows) as f64;
    // Each run by its length and the machine's speed: no cause is inside a side. Of delays, what a run waits for is what
    // differs.
    let mut length = vec![0.0; m];
    for (i, _) in rows.rows.iter().enumerate().filter(|(_, row)| !row.background) {
        rows.runs.of(i).iter().for_each(|cell| length[cell.column as usize] += cell.value);
    }
    let ends = [0, rows.m[0], rows.m[0] + rows.m[1], m];
    let sides: Vec<_> = ends.windows(2).map(|w| w[0]..w[1]).filter(|side| !side.is_empty()).collect();
    for side in &sides {
        let mean = length[side.clone()].iter().sum::<f64>() / side.len() as f64;
        length[side.clone()].iter_mut().for_each(|x| *x = if mean > 0.0 { (*x / mean).max(0.05) } else { 1.0 });
        if rows.kind == Kind::Delay {
            length[side.clone()].fill(1.0);
        }
    }
    let mut of_columns: Vec<Vec<(u32, f64)>> = vec![Vec::new(); m];
    for row in paced(0..rows.rows.len()) {
        rows.runs.of(row).iter().for_each(|cell| of_columns[cell.column as usize].push((row as u32, cell.value)));
    }
    let mut excess = vec![0.0; sets.len()];
    for side in &sides {
        // Of each set the sum over the side's runs, and that of the squares.
        let mut sums = vec![[0.0; 2]; sets.len()];
        let mut of_rows = vec![0.0; rows.rows.len()];
        for (cells, length) in of_columns[side.clone()].iter().zip(&length[side.clone()]) {
            cells.iter().for_each(|&(row, value)| of_rows[row as usize] = value);
            let before = sets.before(|row| of_rows[row as usize]);
            for (j, [sum, squares]) in paced(sums.iter_mut().enumerate()) {
                let x = sets.sum(j, &before) / length;
                (*sum, *squares) = (*sum + x, *squares + x * x);
            }
            cells.iter().for_each(|&(row, _)| of_rows[row as usize] = 0.0);
        }
        let n = side.len() as f64;
        for (j, [sum, squares]) in sums.into_iter().enumerate() {
            let mean = sum / n;
            if mean > 0.0 {
                excess[j] += (squares - sum * mean) / (mean * mean) - (n - 1.0) * sets.sets[j].w / mean;
            }
        }
    }
    let each: Vec<f64> = excess.into_iter().map(|excess| excess / degrees).collect();
    if rows.kind == Kind::Delay {
        // Locks differ between equal runs by a hundredth or thirtyfold: what others do says nothing of one.
        return each.into_iter().map(|each| each.max(QUIETEST_LOCK * QUIETEST_LOCK)).collect();
    }
    let Prior { tau, shrink, .. } = prior(rows.kind);
    let prior = tau * tau;
    let events = |j: usize| (sets.sets[j].v[0] + sets.sets[j].v[1]) / sets.sets[j].w.max(1e-300);
    let mut tau2 = vec![prior; sets.len()];
    for class in 0..3 {
        let group: Vec<usize> = (0..sets.len()).filter(|&j| sets.sets[j].key.class() == class).collect();
        let large = group.iter().filter(|&&j| events(j) > 30.0).count() as f64;
        // Large sets are quieter than small ones: more functions average out in them.
        let strata = if class == 1 { vec![0.0, 100.0, 400.0, f64::INFINITY] } else { vec![0.0, f64::INFINITY] };
        let mut common = None;
        for bounds in strata.windows(2) {
            let within: Vec<usize> =
                group.iter().copied().filter(|&j| (bounds[0]..bounds[1]).contains(&events(j))).collect();
            let telling = within.iter().filter(|&&j| events(j) > 30.0 && !sets.sets[j].whole);
            let mut telling: Vec<f64> = telling.map(|&j| each[j]).collect();
            let known = common;
            let here = if telling.len() >= 5 { median(&mut telling).max(0.0) } else { known.unwrap_or(prior) };
            let here = here.max(prior * (1.0 - large / shrink).max(0.0));
            common = Some(here);
            for j in within {
                let d0 = f64::from(Measured::drawn(0).degrees());
                tau2[j] = ((d0 * here + degrees * each[j].max(0.0)) / (d0 + degrees)).max(here / 4.0);
            }
        }
    }
    tau2
}

impl Model<'_> {
    /// Variances between runs, of one pair: what makes the ratios of the sets that no cause touches those of chance,
    /// drawn towards what is known.
    fn variance_of_pair(&self) -> Vec<f64> {
        let Prior { tau, floor, trust, shrink } = prior(self.rows.kind);
        let prior = tau * tau;
        let sums: Vec<Sums> = (0..self.sets.len()).map(|j| self.sums(j)).collect();
        let tells = |j: &usize| sums[*j].b + sums[*j].n > 20.0;
        let all = || 0..self.sets.len();
        let frames = all().filter(|j| matches!(self.sets.sets[*j].key, Key::Own(_)) && tells(j)).count() as f64;
        let floor = floor * floor * (1.0 - frames / trust).max(0.0);
        let mut tau2 = vec![0.0; self.sets.len()];
        for class in 0..3 {
            let of_class = |j: &usize| self.sets.sets[*j].key.class() == class;
            let telling: Vec<usize> = all().filter(|j| of_class(j) && tells(j) && !self.sets.sets[*j].whole).collect();
            let untouched: Vec<usize> = telling.iter().copied().filter(|&j| !self.is_touched[j]).collect();
            let used = if untouched.len() > 5 { untouched } else { telling };
            let count = used.len() as f64;
            let mut estimate = 0.0;
            if used.len() > 5 {
                let step = used.len().div_ceil(MOST_RATIOS);
                let ratios: Vec<_> = used.iter().step_by(step).map(|&j| (sums[j].b, sums[j].n, sums[j].r)).collect();
                let found = variance_of_ratios(&ratios) / (1.0 / self.rows.m[0] as f64 + 1.0 / self.rows.m[1] as f64);
                estimate = (PULL * found.min(prior) + count * found) / (PULL + count);
            }
            let of_class = estimate.max(prior * (1.0 - count / shrink).max(0.0)).max(floor);
            all().filter(|j| self.sets.sets[*j].key.class() == class).for_each(|j| tau2[j] = of_class);
        }
        tau2
    }
}

/// True if noise between runs is measured, and not only estimated from the pair itself.
fn is_replicated(rows: &Rows) -> bool {
    rows.m.iter().all(|&m| m > 1) || rows.learned > 1
}

/// Bonferroni's threshold over the functions' own costs and the calls, of those that have the events to exceed it: what
/// can't be found is not tested (Tarone 1990).
fn threshold_of(rows: &Rows, sets: &Sets) -> f64 {
    let tested = sets.sets.iter().filter(|s| matches!(s.key, Key::Own(_) | Key::Edge(..)));
    // The most that a set can have: all of its events on one side, of which both were expected to have as much.
    let of_event = deviance(0.0, 1.0, 1.0);
    let most: Vec<f64> = tested.map(|s| (s.v[0] + s.v[1]) / s.w.max(1e-300) * of_event).collect();
    let can = |need: f64| most.iter().filter(|&&most| most > need).count();
    let measured = is_replicated(rows).then(|| measured(rows));
    let of = |candidates: usize| threshold(candidates, measured);
    // The fewest that are no fewer than can exceed the threshold of so many.
    let (mut low, mut high) = (0, most.len());
    while low < high {
        let middle = (low + high) / 2;
        if can(of(middle)) <= middle {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    of(low)
}

/// Finds causes and scale. `given` is the scale if the number of operations is known; `floor` the least change of a
/// cause, as a part
/// of the total.
pub(super) fn search(rows: &Rows, sets: &Sets, given: Option<f64>, floor: f64, work: &mut Work) -> Found {
    let runs = rows.m[1] as f64 / rows.m[0] as f64;
    let replicated = is_replicated(rows);
    let need = threshold_of(rows, sets);
    let known = known_variance(rows.kind);
    let tau2 = if replicated { variance_of_runs(rows, sets) } else { vec![known; sets.len()] };
    let total = rows.total();
    let own: Vec<usize> = (0..sets.len()).filter(|&j| matches!(sets.sets[j].key, Key::Own(_))).collect();
    let price = 2.0 * (sets.len().max(1) as f64).ln() + 3.0;
    let exposure = given.map_or(runs, |ops| runs * ops);
    let fixed = given.is_some() || rows.kind == Kind::Delay && !replicated;
    let is_benchmark = rows.is_benchmark();
    let usual = if is_benchmark { USUAL_OF_BENCHMARKS } else { USUAL_SCALE };
    let mut starts = vec![exposure];
    let ratio = |&j: &usize| {
        let (set, w) = (&sets.sets[j], sets.sets[j].w);
        let [b, n] = set.v;
        (b > 0.0 && n > 0.0).then(|| (j, n / b, b * n / (b + n) / w))
    };
    // What each function says, and with which weight.
    let mut telling: Vec<(usize, f64, f64)> = own.iter().filter_map(ratio).collect();
    let most = MOST_OF_SCALE * telling.iter().map(|(_, _, weight)| weight).sum::<f64>();
    telling.iter_mut().for_each(|(_, _, weight)| *weight = weight.min(most));
    let agreeing = |scale: f64| {
        let of = |&(j, _, weight): &(usize, f64, f64)| {
            let [b, n] = sets.sets[j].v.map(|v| v / sets.sets[j].w.max(1e-300));
            let is_near = (n / b / scale).ln().abs() < NEAR_SCALE;
            let agrees = is_near || penalised(b, n, scale, between_run_variance(tau2[j], rows.m)) < LEVEL;
            if agrees { weight } else { 0.0 }
        };
        telling.iter().map(of).sum::<f64>() / telling.iter().map(|(_, _, weight)| weight).sum::<f64>().max(1e-300)
    };
    if !fixed {
        let front = rows.front();
        let ratios: Vec<_> = telling.iter().map(|&(_, ratio, weight)| (ratio, weight)).collect();
        if !ratios.is_empty() {
            starts.push(weighted_median(ratios));
        }
        if front[0] > 0.0 && front[1] > 0.0 {
            starts.push(front[1] / front[0]);
        }
    }
    let mut tried: Vec<i64> = Vec::new();
    let mut quiet = f64::INFINITY;
    let mut best: Option<(f64, Vec<usize>, Model<'_>)> = None;
    for start in starts {
        let mut scale = start;
        for _ in 0..4 {
            let rounded = (scale.ln() * 1000.0).round() as i64;
            if tried.contains(&rounded) || best.is_some() && work.is_used_up() {
                break;
            }
            tried.push(rounded);
            // Of a benchmark one is as good as any.
            let least = match rows.kind {
                Kind::Delay => AGREEING_LOCKS,
                _ if is_benchmark => agreeing(exposure).min(AGREEING),
                _ => AGREEING,
            };
            if !fixed && (scale / exposure).ln().abs() > 1e-9 && agreeing(scale) < least {
                break;
            }
            let floor = floor * (total[0] + total[1] / scale) / 2.0;
            let of_scale = Model::new(rows, sets, scale, need);
            let mut model = Model { floor, is_given: given.is_some(), tau2: tau2.clone(), work: *work, ..of_scale };
            let mut first = Vec::new();
            if !replicated {
                // The noise of a pair is what causes leave, so they are looked for twice.
                first = model.greedy();
                model.refit(&first);
                model.tau2 = model.variance_of_pair();
            }
            let causes = model.greedy();
            model.refit(&causes);
            *work = model.work;
            let away = (scale / exposure).ln();
            let is_one = away.abs() < 1e-9;
            let of_scale = if is_one { 0.0 } else { price + PRICE_OF_SCALE + (away / usual).powi(2) };
            let cost = model.left(&tau2, price) + causes.len() as f64 * price + of_scale;
            if causes.is_empty() {
                quiet = quiet.min(cost);
            }
            let mut touched = vec![false; rows.rows.len()];
            causes.iter().chain(&first).flat_map(|&j| sets.rows(j)).for_each(|r| touched[r as usize] = true);
            if best.as_ref().is_none_or(|(known, ..)| cost < known - 1e-9) {
                best = Some((cost, causes, model));
            }
            // What no cause touches says how much work was done.
            let rest = rows.rows.iter().zip(&touched).filter(|(row, touched)| !row.background && !**touched);
            let (vb, vn, q) = rest.fold((0.0, 0.0, 0.0), |(b, n, q), (r, _)| (b + r.v[0], n + r.v[1], q + r.q));
            if fixed || vb <= 0.05 * total[0] || vn <= 0.05 * total[1] {
                break;
            }
            let event = q / (vb + vn);
            let evidence = deviance(vb / event, vn / event, exposure);
            let ratio = vn / vb;
            scale = if evidence > SCALE_DEVIANCE && (ratio / exposure).ln().abs() > 0.01 { ratio } else { exposure };
        }
    }
    let Some((cost, causes, mut model)) = best else {
        return Found {
            scale: exposure,
            fits: Vec::new(),
            ambiguous: false,
            unknown: false,
            tau2,
            tau: known.sqrt(),
            need,
            deviation: f64::INFINITY,
            noticed: f64::INFINITY,
            agree: 0,
            of: 0,
        };
    };
    let mut causes: Vec<usize> = causes.iter().map(|&j| model.holder(model.purest(j))).collect();
    causes.dedup();
    let fits = model.refit(&causes);
    let least = floor * (total[0] + total[1] / model.scale) / 2.0;
    let fits: Vec<Fit> = fits.into_iter().filter(|fit| fit.delta.abs() > least).collect();
    let confusable = |j: &usize| (0..2).all(|s| sets.sets[*j].v[s] > 0.0) && sets.sets[*j].v[0] > CONFUSABLE * total[0];
    let ambiguous = !fixed && quiet < cost + MARGIN && causes.iter().any(confusable);
    let mut typical: Vec<f64> = own.iter().map(|&j| model.tau2[j]).collect();
    let tau2 = if typical.is_empty() { 1.0 } else { median(&mut typical) };
    let mut events: Vec<f64> = own.iter().map(|&j| sets.sets[j].w).collect();
    let event = median(&mut events).max(1e-300);
    let front = rows.front();
    let tenth = ((front[0] + front[1]) / 2.0 / event / 10.0).max(1e-9);
    let variance = between_run_variance(tau2, rows.m);
    let far = with_power(need.sqrt(), replicated.then(|| measured(rows).degrees()));
    let noticed = least_growth(tenth, 1.0, variance, far);
    model.refit(&[]);
    let telling = own.iter().filter(|&&j| {
        let set = &sets.sets[j];
        (set.v[0] + set.v[1]) > 20.0 * set.w
    });
    let telling: Vec<usize> = telling.copied().collect();
    let agree = telling.iter().filter(|&&j| model.score(j) < LEVEL).count();
    Found {
        scale: model.scale,
        fits,
        ambiguous,
        unknown: !fixed
            && !telling.is_empty()
            && rows.kind != Kind::Delay
            && (model.scale / exposure).ln().abs() < 1e-9
            && agreeing(exposure) < AGREEING,
        tau2: model.tau2,
        tau: tau2.sqrt(),
        need,
        deviation: (2.0 / tenth + variance).sqrt(),
        noticed,
        agree,
        of: telling.len(),
    }
}
