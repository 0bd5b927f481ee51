//! The search: finds the few sets of stacks (each with a factor of its own) and the scale that explain the difference,
//! so that the rest is within chance.
//!
//! Each row is expected to have `scale x factor` times its base value on the new side. A set that deviates from its
//! rows' expectations by more than chance and the noise between runs allow is a cause. Its rows' factors are then
//! multiplied by the missing ratio, and the search continues.

mod model;
mod noise;

use super::thresholds::{
    DEVIANCE_PER_LOG_OF_CANDIDATES, DEVIATION_OF_LOG_SCALE, DEVIATION_OF_LOG_SCALE_OF_BENCHMARKS,
    MAX_CHANGE_OF_EVEN_FUNCTION, MAX_GAIN_OF_AMBIGUOUS_CAUSES, MAX_LOG_DISTANCE_FROM_OBJECTS,
    MAX_LOG_DISTANCE_OF_AGREEMENT, MAX_WEIGHT_OF_FUNCTION, MIN_AGREEING_PART_OF_FUNCTIONS, MIN_AGREEING_WEIGHT,
    MIN_AGREEING_WEIGHT_OF_LOCKS, MIN_BASE_PART_OF_AMBIGUOUS_CAUSE, MIN_DEVIANCE_OF_SCALE_OF_REST,
    MIN_P_OF_TOTAL_BY_CHANCE, MIN_TELLING_EVENTS, MIN_UNANIMOUS_FUNCTIONS, MIN_UNANIMOUS_WEIGHT, MIN_UNTOUCHED_PART,
    MIN_WITNESSES, PRICE_OF_CAUSE, PRICE_OF_SCALE, REPORTED_FRAMES_OF_TOTAL,
};
use crate::evidence::rows::StackRows;
use crate::evidence::sets::Sets;
use model::{ScaleModel, may_change};
pub(crate) use model::{SearchBudget, SetFit};
pub(super) use noise::is_replicated;
pub(crate) use noise::{Variances, variance_of};
use noise::{measured, threshold_of, variance_of_lengths, variance_of_runs, variance_with_lengths};
use pprofdiff::shared::statistics::counts::{
    LEVEL, between_run_variance, deviance, least_growth, median, penalised, weighted_median, with_power,
};
use pprofdiff::shared::statistics::distributions::student_tail;
use pprofdiff::shared::{ValueKind, known_variance};

/// The result of a search.
pub(crate) struct SearchResult {
    /// The expected value of an unchanged stack in all new runs, divided by its value in all base runs: the ratio of
    /// the amounts of work times the ratio of the numbers of runs.
    pub scale: f64,
    pub fits: Vec<SetFit>,
    /// True if more work everywhere explains the difference nearly as well as the causes.
    pub ambiguous: bool,
    /// True if the functions do not agree on any amount of work.
    pub unknown: bool,
    /// The variance between runs of each set.
    pub tau2: Variances,
    /// The typical standard deviation between runs of a function's own cost.
    pub tau: f64,
    pub threshold: f64,
    /// The standard deviation, by chance, of the logarithm of the growth of a frame with a tenth of the total; and the
    /// least growth of such a frame that would be detected, as a factor less one.
    pub deviation: f64,
    pub noticed: f64,
    /// The number of functions whose own cost agrees with the scale, and the number of functions with more than 20
    /// events, which are enough to decide.
    pub agree: usize,
    pub n_telling: usize,
    /// The degrees of freedom of the measured noise. `None` if noise was estimated from one pair.
    pub degrees: Option<u32>,
}

impl SearchResult {
    /// Returns true if a function's values at equal work differ by no more than chance, and by less than half of the
    /// larger value. `event` is the result of [`StackRows::event`], which reads all rows.
    pub(crate) fn is_even(&self, rows: &StackRows, event: f64, scale: f64, [base, new]: [f64; 2]) -> bool {
        let (event, expected) = (event.max(1e-300), scale * base);
        let variance = between_run_variance(self.tau * self.tau, rows.runs);
        (new - expected).abs() < MAX_CHANGE_OF_EVEN_FUNCTION * new.max(expected)
            && penalised(base / event, new / event, scale, variance) < LEVEL
    }
}

/// Returns the weighted median of the growth of the functions' object counts. More work allocates more objects, but no
/// larger objects. Returns `None` if objects are not counted, and if no function has objects on both sides.
fn growth_of_objects(rows: &StackRows, sets: &Sets, telling: &[(usize, f64, f64)]) -> Option<f64> {
    if rows.kind != ValueKind::Heap {
        return None;
    }
    let ratio = |&(set, _, weight): &(usize, f64, f64)| {
        let counts = |side: usize| sets.rows(set).map(|row| rows.rows[row as usize].counts[side]).sum::<f64>();
        let (base, new) = (counts(0), counts(1));
        (base > 0.0 && new > 0.0).then(|| (new / base, weight))
    };
    let ratios: Vec<(f64, f64)> = telling.iter().filter_map(ratio).collect();
    (!ratios.is_empty()).then(|| weighted_median(ratios))
}

/// The evidence for a scale: the ratios of the functions' own costs.
struct ScaleEvidence<'a> {
    rows: &'a StackRows,
    sets: &'a Sets,
    tau2: &'a Variances,
    /// The variance between runs that includes the variation of their lengths. `None` for one pair, and if the number
    /// of operations was given.
    tau2_with_lengths: Option<Variances>,
    /// The expected ratio of the sides: the ratio of the numbers of runs, and of operations if given.
    exposure: f64,
    /// True if only the exposure is a possible scale.
    is_fixed: bool,
    is_benchmark: bool,
    /// The set of each function, its ratio, and its weight.
    telling: Vec<(usize, f64, f64)>,
    object_growth: Option<f64>,
}

impl<'a> ScaleEvidence<'a> {
    fn new(
        rows: &'a StackRows,
        sets: &'a Sets,
        tau2: &'a Variances,
        exposure: f64,
        is_fixed: bool,
        is_given: bool,
        is_replicated: bool,
    ) -> ScaleEvidence<'a> {
        let ratio = |j: usize| {
            let (set, w) = (&sets.sets[j], sets.sets[j].event);
            let [b, n] = set.values;
            (b > 0.0 && n > 0.0).then(|| (j, n / b, b * n / (b + n) / w))
        };
        let mut telling: Vec<(usize, f64, f64)> = (0..sets.telling.n_own as usize).filter_map(ratio).collect();
        let max_weight = MAX_WEIGHT_OF_FUNCTION * telling.iter().map(|(_, _, weight)| weight).sum::<f64>();
        telling.iter_mut().for_each(|(_, _, weight)| *weight = weight.min(max_weight));
        // For one pair, object counts are as uncertain as bytes.
        let object_growth = if is_fixed || !is_replicated { None } else { growth_of_objects(rows, sets, &telling) };
        let is_benchmark = rows.is_benchmark();
        let tau2_with_lengths = (is_replicated && !is_given).then(|| variance_with_lengths(rows, sets));
        ScaleEvidence { rows, sets, tau2, tau2_with_lengths, exposure, is_fixed, is_benchmark, telling, object_growth }
    }

    /// Returns the variance between runs that a scale must exceed. At the exposure, the lengths of the runs remain in the
    /// difference between the sides, so they remain in its noise. At another scale, they are divided out of both.
    fn variance_at(&self, scale: f64) -> &Variances {
        let is_exposure = (scale / self.exposure).ln().abs() < 1e-9;
        self.tau2_with_lengths.as_ref().filter(|_| is_exposure).unwrap_or(self.tau2)
    }

    /// Returns true if a function's own cost agrees with a scale.
    fn agrees(&self, set: usize, scale: f64) -> bool {
        let set_data = &self.sets.sets[set];
        let [b, n] = set_data.values.map(|v| v / set_data.event.max(1e-300));
        let is_near = (n / b / scale).ln().abs() < MAX_LOG_DISTANCE_OF_AGREEMENT;
        let variance = || between_run_variance(self.tau2.variance(self.sets, set), self.rows.runs);
        is_near || penalised(b, n, scale, variance()) < LEVEL
    }

    /// Returns the weight of the functions that agree with a scale, as a fraction.
    fn agreeing(&self, scale: f64) -> f64 {
        let agreeing_weight =
            |&(set, _, weight): &(usize, f64, f64)| if self.agrees(set, scale) { weight } else { 0.0 };
        self.telling.iter().map(agreeing_weight).sum::<f64>()
            / self.telling.iter().map(|(_, _, weight)| weight).sum::<f64>().max(1e-300)
    }

    /// Returns the scales to try first.
    fn starts(&self) -> Vec<f64> {
        let mut starts = vec![self.exposure];
        if !self.is_fixed {
            let front = self.rows.front();
            let ratios: Vec<_> = self.telling.iter().map(|&(_, ratio, weight)| (ratio, weight)).collect();
            if !ratios.is_empty() {
                starts.push(weighted_median(ratios));
            }
            if front[0] > 0.0 && front[1] > 0.0 {
                starts.push(front[1] / front[0]);
            }
        }
        starts
    }

    /// Returns true if a scale other than the exposure lacks evidence. `agreed` is the weight that agrees with it.
    fn is_denied(&self, scale: f64, agreed: f64) -> bool {
        // A benchmark chooses its number of iterations, so a scale only needs the agreement of the exposure.
        let min_agreed = || match self.rows.kind {
            ValueKind::Delay => MIN_AGREEING_WEIGHT_OF_LOCKS,
            _ if self.is_benchmark => self.agreeing(self.exposure).min(MIN_AGREEING_WEIGHT),
            _ => MIN_AGREEING_WEIGHT,
        };
        let is_unlike_objects = |growth: f64| (scale / growth).ln().abs() > MAX_LOG_DISTANCE_FROM_OBJECTS;
        !self.is_fixed
            && (scale / self.exposure).ln().abs() > 1e-9
            && (agreed < min_agreed()
                || self.object_growth.is_some_and(is_unlike_objects)
                || !self.is_benchmark && (!self.do_functions_agree(scale) || self.is_within_runs(scale)))
    }

    /// Returns true if the lengths of the runs of one side differ as much as this scale. Then the machine may explain the
    /// scale.
    fn is_within_runs(&self, scale: f64) -> bool {
        let m = self.rows.runs;
        if m.iter().any(|&m| m < 2) {
            return false;
        }
        let tau2 = variance_of_lengths(self.rows);
        let deviations = (scale / self.exposure).ln().abs() / between_run_variance(tau2, m).sqrt().max(1e-300);
        2.0 * student_tail(deviations, (m[0] + m[1] - 2) as u32) > MIN_P_OF_TOTAL_BY_CHANCE
    }

    /// Returns the sets of the functions with enough events to tell a scale.
    fn telling_functions(&self) -> impl Iterator<Item = usize> {
        self.telling.iter().map(|(set, _, _)| *set).filter(|&set| self.sets.sets[set].tells())
    }

    /// Returns true if several functions with enough events agree with a scale, and more than half of such functions.
    /// Few functions may agree by accident.
    fn do_functions_agree(&self, scale: f64) -> bool {
        let agreeing = self.telling_functions().filter(|&set| self.agrees(set, scale)).count();
        is_majority(agreeing, self.telling_functions().count())
    }

    /// Returns the price of a scale. `price` is the price of a cause.
    fn price_of_scale(&self, scale: f64, agreed: f64, price: f64) -> f64 {
        let away = (scale / self.exposure).ln();
        // If nearly all functions agree on it, any amount of work is usual.
        let is_unanimous =
            !self.is_fixed && self.telling.len() >= MIN_UNANIMOUS_FUNCTIONS && agreed > MIN_UNANIMOUS_WEIGHT;
        let is_usual = is_unanimous || self.is_benchmark;
        let usual = if is_usual { DEVIATION_OF_LOG_SCALE_OF_BENCHMARKS } else { DEVIATION_OF_LOG_SCALE };
        if away.abs() < 1e-9 { 0.0 } else { price + PRICE_OF_SCALE + (away / usual).powi(2) }
    }
}

/// Returns true if enough functions agree to show an amount of work.
fn is_majority(agreeing: usize, functions: usize) -> bool {
    agreeing >= MIN_WITNESSES && agreeing as f64 > MIN_AGREEING_PART_OF_FUNCTIONS * functions as f64
}

/// The causes at the best scale so far.
struct BestScale<'a> {
    cost: f64,
    causes: Vec<usize>,
    model: ScaleModel<'a>,
}

/// The search over scales.
struct ScaleSearch<'a> {
    evidence: &'a ScaleEvidence<'a>,
    /// The result of [`may_change`].
    candidates: &'a [u32],
    threshold: f64,
    floor: f64,
    is_given: bool,
    is_replicated: bool,
    total: [f64; 2],
    /// The price of a cause.
    price: f64,
    /// The scales that were tried, rounded.
    tried: Vec<i64>,
    /// The minimum cost of a scale without causes.
    quiet: f64,
    best: Option<BestScale<'a>>,
}

impl<'a> ScaleSearch<'a> {
    /// Searches for causes at a scale. Returns the next scale to try, or `None` to stop.
    fn try_scale(&mut self, scale: f64, work: &mut SearchBudget) -> Option<f64> {
        let evidence = self.evidence;
        let rounded = (scale.ln() * 1000.0).round() as i64;
        if self.tried.contains(&rounded) || self.best.is_some() && work.is_used_up() {
            return None;
        }
        self.tried.push(rounded);
        let agreed = if evidence.is_fixed { 0.0 } else { evidence.agreeing(scale) };
        if evidence.is_denied(scale, agreed) {
            return None;
        }
        let floor = self.floor * (self.total[0] + self.total[1] / scale) / 2.0;
        let (rows, sets) = (evidence.rows, evidence.sets);
        let model = ScaleModel::new(rows, sets, self.candidates, scale, self.threshold);
        let (is_given, tau2) = (self.is_given, evidence.variance_at(scale).clone());
        let mut model = ScaleModel { floor, is_given, tau2, work: *work, ..model };
        let mut first = Vec::new();
        if !self.is_replicated {
            // Noise of one pair is estimated from the sets without causes, so the search runs twice.
            first = model.greedy();
            model.refit(&first);
            model.tau2 = model.variance_of_pair();
        }
        let causes = model.greedy();
        model.refit(&causes);
        *work = model.work;
        let cost = model.unexplained(evidence.tau2, self.price)
            + causes.len() as f64 * self.price
            + evidence.price_of_scale(scale, agreed, self.price);
        if causes.is_empty() {
            self.quiet = self.quiet.min(cost);
        }
        let mut touched = vec![false; rows.rows.len()];
        causes.iter().chain(&first).flat_map(|&j| sets.rows(j)).for_each(|r| touched[r as usize] = true);
        if self.best.as_ref().is_none_or(|best| cost < best.cost - 1e-9) {
            self.best = Some(BestScale { cost, causes, model });
        }
        self.scale_of_rest(&touched)
    }

    /// Returns the ratio of the stacks without causes, which show how much work was done, or the exposure if the ratio
    /// does not differ from it. Returns `None` if there are too few such stacks.
    fn scale_of_rest(&self, touched: &[bool]) -> Option<f64> {
        let ScaleEvidence { rows, exposure, is_fixed, .. } = *self.evidence;
        let rest = rows.rows.iter().zip(touched).filter(|(row, touched)| !row.background && !**touched);
        let (vb, vn, q) =
            rest.fold((0.0, 0.0, 0.0), |(b, n, q), (r, _)| (b + r.values[0], n + r.values[1], q + r.variance));
        if is_fixed || vb <= MIN_UNTOUCHED_PART * self.total[0] || vn <= MIN_UNTOUCHED_PART * self.total[1] {
            return None;
        }
        let event = q / (vb + vn);
        let evidence = deviance(vb / event, vn / event, exposure);
        let ratio = vn / vb;
        Some(if evidence > MIN_DEVIANCE_OF_SCALE_OF_REST { ratio } else { exposure })
    }
}

/// The typical noise of functions.
struct TypicalNoise {
    tau2: f64,
    /// See [`SearchResult::deviation`].
    deviation: f64,
    /// See [`SearchResult::noticed`].
    noticed: f64,
}

impl TypicalNoise {
    fn new(rows: &StackRows, sets: &Sets, variances: &Variances, threshold: f64, is_replicated: bool) -> TypicalNoise {
        let n_own = sets.telling.n_own as usize;
        let typical_sets = if n_own == 0 { 0..sets.len() } else { 0..n_own };
        let mut typical: Vec<f64> = typical_sets.map(|j| variances.variance(sets, j)).collect();
        let tau2 = if typical.is_empty() { 1.0 } else { median(&mut typical) };
        let mut events: Vec<f64> = (0..n_own).map(|j| sets.sets[j].event).collect();
        // The set of a function's own cost may have another name, such as a call with the same stacks.
        let event = if events.is_empty() { rows.event() } else { median(&mut events) }.max(1e-300);
        let front = rows.front();
        let tenth = ((front[0] + front[1]) / 2.0 / event / REPORTED_FRAMES_OF_TOTAL).max(1e-9);
        let variance = between_run_variance(tau2, rows.runs);
        let distance = with_power(threshold.sqrt(), is_replicated.then(|| measured(rows).degrees()));
        let noticed = least_growth(tenth, 1.0, variance, distance);
        TypicalNoise { tau2, deviation: (2.0 / tenth + variance).sqrt(), noticed }
    }
}

/// Finds the causes and the scale. `given` is the ratio of operations in one run, new divided by base, if it is known.
/// `floor` is the minimum change of a cause, as a fraction of the mean of both sides' totals at equal work.
pub(crate) fn search(
    rows: &StackRows,
    sets: &Sets,
    given: Option<f64>,
    floor: f64,
    work: &mut SearchBudget,
) -> SearchResult {
    let runs = rows.runs[1] as f64 / rows.runs[0] as f64;
    let is_replicated = is_replicated(rows);
    let threshold = threshold_of(rows, sets);
    let known_tau2 = known_variance(rows.kind);
    let tau2 = match is_replicated {
        true => variance_of_runs(rows, sets, given.is_some()),
        false => Variances::OfClasses([known_tau2; 3]),
    };
    let total = rows.total();
    let candidates = may_change(sets, total, floor);
    let price = DEVIANCE_PER_LOG_OF_CANDIDATES * (sets.len().max(1) as f64).ln() + PRICE_OF_CAUSE;
    let exposure = given.map_or(runs, |ops| runs * ops);
    let is_fixed = given.is_some() || rows.kind == ValueKind::Delay && !is_replicated;
    let evidence = ScaleEvidence::new(rows, sets, &tau2, exposure, is_fixed, given.is_some(), is_replicated);
    let mut scales = ScaleSearch {
        evidence: &evidence,
        candidates: &candidates,
        threshold,
        floor,
        is_given: given.is_some(),
        is_replicated,
        total,
        price,
        tried: Vec::new(),
        quiet: f64::INFINITY,
        best: None,
    };
    for start in evidence.starts() {
        let mut next = Some(start);
        while let Some(scale) = next {
            next = scales.try_scale(scale, work);
        }
    }
    let result = |scales: &mut ScaleSearch<'_>| {
        let quiet = scales.quiet;
        scales.best.take().map(|best| result_of(best, quiet, &evidence, threshold, floor, is_replicated))
    };
    let mut found = result(&mut scales);
    // The noise that the search measured may be smaller than the noise it assumed. If only half of the functions agree
    // then, the amount of work is unknown.
    let is_doubtful = |found: &SearchResult| {
        let is_exposure = (found.scale / exposure).ln().abs() < 1e-9;
        !is_fixed && !evidence.is_benchmark && !is_exposure && !is_majority(found.agree, found.n_telling)
    };
    if found.as_ref().is_some_and(is_doubtful) {
        (scales.tried, scales.quiet) = (Vec::new(), f64::INFINITY);
        scales.try_scale(exposure, work);
        found = result(&mut scales);
    }
    match found {
        Some(found) => found,
        None => SearchResult {
            scale: exposure,
            fits: Vec::new(),
            ambiguous: false,
            unknown: false,
            tau: known_tau2.sqrt(),
            threshold,
            deviation: f64::INFINITY,
            noticed: f64::INFINITY,
            agree: 0,
            n_telling: 0,
            degrees: None,
            tau2: tau2.clone(),
        },
    }
}

/// Returns the result of a search at its best scale. `quiet` is the minimum cost of a scale without causes.
fn result_of(
    best: BestScale<'_>,
    quiet: f64,
    evidence: &ScaleEvidence<'_>,
    threshold: f64,
    floor: f64,
    is_replicated: bool,
) -> SearchResult {
    let ScaleEvidence { rows, sets, exposure, is_fixed, .. } = *evidence;
    let total = rows.total();
    let BestScale { cost, causes, mut model } = best;
    let mut causes: Vec<usize> =
        causes.iter().map(|&j| model.lock_holder(model.with_callees(model.purest(j)))).collect();
    causes.dedup();
    let fits = model.refit(&causes);
    let min_delta = floor * (total[0] + total[1] / model.scale) / 2.0;
    let fits: Vec<SetFit> = fits.into_iter().filter(|fit| fit.delta.abs() > min_delta).collect();
    let confusable = |j: &usize| {
        (0..2).all(|s| sets.sets[*j].values[s] > 0.0)
            && sets.sets[*j].values[0] > MIN_BASE_PART_OF_AMBIGUOUS_CAUSE * total[0]
    };
    let typical = TypicalNoise::new(rows, sets, &model.tau2, threshold, is_replicated);
    model.refit(&[]);
    let telling = (0..sets.telling.n_own as usize).filter(|&j| {
        let set = &sets.sets[j];
        (set.values[0] + set.values[1]) > MIN_TELLING_EVENTS * set.event
    });
    let telling: Vec<usize> = telling.collect();
    let agree = telling.iter().filter(|&&j| evidence.agrees(j, model.scale) || model.score(j) < LEVEL).count();
    let is_one = (model.scale / exposure).ln().abs() < 1e-9;
    // If the amount of work is unknown, a cause with most of the program is more work just as well. Allocations of equal
    // builds differ less than CPU samples, so their causes remain causes.
    let is_unknown_work = !is_replicated
        && is_one
        && matches!(rows.kind, ValueKind::Sampled | ValueKind::Counted)
        && !is_majority(agree, telling.len());
    let largest = fits.iter().max_by(|a, b| a.delta.abs().total_cmp(&b.delta.abs()));
    let is_most = |j: &usize| {
        let is_on = |s: usize| sets.sets[*j].values[s] > MIN_BASE_PART_OF_AMBIGUOUS_CAUSE * total[s];
        sets.sets[*j].values.iter().all(|value| *value > 0.0) && is_on(0) && is_on(1)
    };
    let ambiguous = !is_fixed
        && (quiet < cost + MAX_GAIN_OF_AMBIGUOUS_CAUSES && causes.iter().any(confusable)
            || is_unknown_work && largest.is_some_and(|fit| is_most(&fit.set)));
    SearchResult {
        scale: model.scale,
        fits,
        ambiguous,
        unknown: !is_fixed
            && !telling.is_empty()
            && rows.kind != ValueKind::Delay
            && is_one
            && evidence.agreeing(exposure) < MIN_AGREEING_WEIGHT,
        tau2: model.tau2,
        tau: typical.tau2.sqrt(),
        threshold,
        deviation: typical.deviation,
        noticed: typical.noticed,
        agree,
        n_telling: telling.len(),
        degrees: is_replicated.then(|| measured(rows).degrees()),
    }
}
