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
    MAX_LOG_DISTANCE_OF_AGREEMENT, MAX_SCALES_PER_START, MAX_WEIGHT_OF_FUNCTION, MIN_AGREEING_WEIGHT,
    MIN_AGREEING_WEIGHT_OF_LOCKS, MIN_BASE_PART_OF_AMBIGUOUS_CAUSE, MIN_DEVIANCE_OF_SCALE_OF_REST,
    MIN_LOG_DISTANCE_OF_SCALE_OF_REST, MIN_TELLING_EVENTS, MIN_UNANIMOUS_FUNCTIONS, MIN_UNANIMOUS_WEIGHT,
    MIN_UNTOUCHED_PART, PRICE_OF_CAUSE, PRICE_OF_SCALE, REPORTED_FRAMES_OF_TOTAL,
};
use crate::explain::evidence::rows::{StackRows, ValueKind};
use crate::explain::evidence::sets::Sets;
use crate::statistics::counts::{
    LEVEL, between_run_variance, deviance, least_growth, median, penalised, weighted_median, with_power,
};
use model::{ScaleModel, may_change};
pub(in crate::explain) use model::{SearchBudget, SetFit};
pub(in crate::explain) use noise::{Variances, known_variance, known_variance_of, variance_of};
use noise::{is_replicated, measured, threshold_of, variance_of_runs};

/// The result of a search.
pub(in crate::explain) struct SearchResult {
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
    /// larger value.
    pub(in crate::explain) fn is_even(&self, rows: &StackRows, scale: f64, [base, new]: [f64; 2]) -> bool {
        let (event, expected) = (rows.event().max(1e-300), scale * base);
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

/// Finds the causes and the scale. `given` is the ratio of operations in one run, new divided by base, if it is known.
/// `floor` is the minimum change of a cause, as a fraction of the mean of both sides' totals at equal work.
pub(in crate::explain) fn search(
    rows: &StackRows,
    sets: &Sets,
    given: Option<f64>,
    floor: f64,
    work: &mut SearchBudget,
) -> SearchResult {
    let runs = rows.runs[1] as f64 / rows.runs[0] as f64;
    let replicated = is_replicated(rows);
    let threshold = threshold_of(rows, sets);
    let known_tau2 = known_variance(rows.kind);
    let tau2 = match replicated {
        true => variance_of_runs(rows, sets, given.is_some()),
        false => Variances::OfClasses([known_tau2; 3]),
    };
    let total = rows.total();
    let own_sets: Vec<usize> = (0..sets.telling.n_own as usize).collect();
    let candidates = may_change(sets, total, floor);
    let price = DEVIANCE_PER_LOG_OF_CANDIDATES * (sets.len().max(1) as f64).ln() + PRICE_OF_CAUSE;
    let exposure = given.map_or(runs, |ops| runs * ops);
    let fixed = given.is_some() || rows.kind == ValueKind::Delay && !replicated;
    let is_benchmark = rows.is_benchmark();
    let usual = if is_benchmark { DEVIATION_OF_LOG_SCALE_OF_BENCHMARKS } else { DEVIATION_OF_LOG_SCALE };
    let mut starts = vec![exposure];
    let ratio = |&j: &usize| {
        let (set, w) = (&sets.sets[j], sets.sets[j].event);
        let [b, n] = set.values;
        (b > 0.0 && n > 0.0).then(|| (j, n / b, b * n / (b + n) / w))
    };
    // Each function's ratio, and its weight.
    let mut telling: Vec<(usize, f64, f64)> = own_sets.iter().filter_map(ratio).collect();
    let max_weight = MAX_WEIGHT_OF_FUNCTION * telling.iter().map(|(_, _, weight)| weight).sum::<f64>();
    telling.iter_mut().for_each(|(_, _, weight)| *weight = weight.min(max_weight));
    let agrees = |j: usize, scale: f64| {
        let [b, n] = sets.sets[j].values.map(|v| v / sets.sets[j].event.max(1e-300));
        let is_near = (n / b / scale).ln().abs() < MAX_LOG_DISTANCE_OF_AGREEMENT;
        is_near || penalised(b, n, scale, between_run_variance(tau2.variance(sets, j), rows.runs)) < LEVEL
    };
    let agreeing = |scale: f64| {
        let agreeing_weight = |&(j, _, weight): &(usize, f64, f64)| if agrees(j, scale) { weight } else { 0.0 };
        telling.iter().map(agreeing_weight).sum::<f64>()
            / telling.iter().map(|(_, _, weight)| weight).sum::<f64>().max(1e-300)
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
    // For one pair, object counts are as uncertain as bytes.
    let object_growth = if fixed || !replicated { None } else { growth_of_objects(rows, sets, &telling) };
    let mut tried: Vec<i64> = Vec::new();
    let mut quiet = f64::INFINITY;
    let mut best: Option<(f64, Vec<usize>, ScaleModel<'_>)> = None;
    for start in starts {
        let mut scale = start;
        for _ in 0..MAX_SCALES_PER_START {
            let rounded = (scale.ln() * 1000.0).round() as i64;
            if tried.contains(&rounded) || best.is_some() && work.is_used_up() {
                break;
            }
            tried.push(rounded);
            // A benchmark chooses its number of iterations, so a scale only needs the agreement of the exposure.
            let min_agreed = match rows.kind {
                ValueKind::Delay => MIN_AGREEING_WEIGHT_OF_LOCKS,
                _ if is_benchmark => agreeing(exposure).min(MIN_AGREEING_WEIGHT),
                _ => MIN_AGREEING_WEIGHT,
            };
            let is_denied =
                || object_growth.is_some_and(|growth| (scale / growth).ln().abs() > MAX_LOG_DISTANCE_FROM_OBJECTS);
            let agreed = if fixed { 0.0 } else { agreeing(scale) };
            if !fixed && (scale / exposure).ln().abs() > 1e-9 && (agreed < min_agreed || is_denied()) {
                break;
            }
            let floor = floor * (total[0] + total[1] / scale) / 2.0;
            let model = ScaleModel::new(rows, sets, &candidates, scale, threshold);
            let mut model = ScaleModel { floor, is_given: given.is_some(), tau2: tau2.clone(), work: *work, ..model };
            let mut first = Vec::new();
            if !replicated {
                // Noise of one pair is estimated from the sets without causes, so the search runs twice.
                first = model.greedy();
                model.refit(&first);
                model.tau2 = model.variance_of_pair();
            }
            let causes = model.greedy();
            model.refit(&causes);
            *work = model.work;
            let away = (scale / exposure).ln();
            let is_one = away.abs() < 1e-9;
            // If nearly all functions agree on it, any amount of work is usual.
            let is_unanimous = !fixed && telling.len() >= MIN_UNANIMOUS_FUNCTIONS && agreed > MIN_UNANIMOUS_WEIGHT;
            let usual = if is_unanimous { DEVIATION_OF_LOG_SCALE_OF_BENCHMARKS } else { usual };
            let price_of_scale = if is_one { 0.0 } else { price + PRICE_OF_SCALE + (away / usual).powi(2) };
            let cost = model.unexplained(&tau2, price) + causes.len() as f64 * price + price_of_scale;
            if causes.is_empty() {
                quiet = quiet.min(cost);
            }
            let mut touched = vec![false; rows.rows.len()];
            causes.iter().chain(&first).flat_map(|&j| sets.rows(j)).for_each(|r| touched[r as usize] = true);
            if best.as_ref().is_none_or(|(best_cost, ..)| cost < best_cost - 1e-9) {
                best = Some((cost, causes, model));
            }
            // The stacks without causes show how much work was done.
            let rest = rows.rows.iter().zip(&touched).filter(|(row, touched)| !row.background && !**touched);
            let (vb, vn, q) =
                rest.fold((0.0, 0.0, 0.0), |(b, n, q), (r, _)| (b + r.values[0], n + r.values[1], q + r.variance));
            if fixed || vb <= MIN_UNTOUCHED_PART * total[0] || vn <= MIN_UNTOUCHED_PART * total[1] {
                break;
            }
            let event = q / (vb + vn);
            let evidence = deviance(vb / event, vn / event, exposure);
            let ratio = vn / vb;
            scale = if evidence > MIN_DEVIANCE_OF_SCALE_OF_REST
                && (ratio / exposure).ln().abs() > MIN_LOG_DISTANCE_OF_SCALE_OF_REST
            {
                ratio
            } else {
                exposure
            };
        }
    }
    let Some((cost, causes, mut model)) = best else {
        return SearchResult {
            scale: exposure,
            fits: Vec::new(),
            ambiguous: false,
            unknown: false,
            tau2,
            tau: known_tau2.sqrt(),
            threshold,
            deviation: f64::INFINITY,
            noticed: f64::INFINITY,
            agree: 0,
            n_telling: 0,
            degrees: None,
        };
    };
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
    let ambiguous = !fixed && quiet < cost + MAX_GAIN_OF_AMBIGUOUS_CAUSES && causes.iter().any(confusable);
    let typical_sets = if own_sets.is_empty() { 0..sets.len() } else { 0..own_sets.len() };
    let mut typical: Vec<f64> = typical_sets.map(|j| model.tau2.variance(sets, j)).collect();
    let tau2 = if typical.is_empty() { 1.0 } else { median(&mut typical) };
    let mut events: Vec<f64> = own_sets.iter().map(|&j| sets.sets[j].event).collect();
    // The set of a function's own cost may have another name, such as a call with the same stacks.
    let event = if events.is_empty() { rows.event() } else { median(&mut events) }.max(1e-300);
    let front = rows.front();
    let tenth = ((front[0] + front[1]) / 2.0 / event / REPORTED_FRAMES_OF_TOTAL).max(1e-9);
    let variance = between_run_variance(tau2, rows.runs);
    let distance = with_power(threshold.sqrt(), replicated.then(|| measured(rows).degrees()));
    let noticed = least_growth(tenth, 1.0, variance, distance);
    model.refit(&[]);
    let telling = own_sets.iter().filter(|&&j| {
        let set = &sets.sets[j];
        (set.values[0] + set.values[1]) > MIN_TELLING_EVENTS * set.event
    });
    let telling: Vec<usize> = telling.copied().collect();
    let agree = telling.iter().filter(|&&j| agrees(j, model.scale) || model.score(j) < LEVEL).count();
    SearchResult {
        scale: model.scale,
        fits,
        ambiguous,
        unknown: !fixed
            && !telling.is_empty()
            && rows.kind != ValueKind::Delay
            && (model.scale / exposure).ln().abs() < 1e-9
            && agreeing(exposure) < MIN_AGREEING_WEIGHT,
        tau2: model.tau2,
        tau: tau2.sqrt(),
        threshold,
        deviation: (2.0 / tenth + variance).sqrt(),
        noticed,
        agree,
        n_telling: telling.len(),
        degrees: replicated.then(|| measured(rows).degrees()),
    }
}
