//! Finds small changes that many pairs share. They are not significant in any single pair, but may be significant in
//! all pairs together.
//!
//! In each pair, a function's own cost on the new side is compared with its cost in the base, scaled to the new side's
//! amount of work. The difference is measured in standard deviations of counts, using square roots (Anscombe 1948). By
//! chance, it is equally likely to be above or below zero. If a function did not change, the sum of its differences
//! over all pairs, divided by the root of the sum of their squares, exceeds `z` with a probability of at most
//! `exp(-z²/2)` for any sizes of the differences (Hoeffding 1963). The sizes differ between pairs for other reasons, so
//! the bound must not depend on them. The false discovery rate among all functions is limited in the same way as among
//! pairs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::FleetCause;
use pprofdiff::Top;
use pprofdiff::shared::statistics::rank::false_discoveries;
use pprofdiff_profile::canonical::canonical;
use pprofdiff_profile::short_lists::sort_by;

/// The maximum number of functions to keep per pair: the functions with the highest cost.
const MAX_FUNCTIONS: usize = 200;
/// The minimum number of events of a function on both sides together. Below it, a pair is no evidence for the function.
const MIN_EVENTS: f64 = 20.0;
/// The maximum number of functions to keep over all pairs. Above it, functions that occur in a single pair are removed.
const MAX_KEPT: usize = 200_000;
/// The minimum number of pairs for a test of a function. Fewer pairs cannot agree by more than chance.
const MIN_PAIRS: usize = 8;

/// A change of a function's own cost that many pairs share, without pairs where the function is a cause. It is
/// significant only in all these pairs together.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CommonChange {
    /// The canonical name of the function.
    pub function: String,
    /// The number of pairs that contain the function, without pairs where it is a cause.
    pub pairs: usize,
    /// The function's own cost in the bases of these pairs, summed, each scaled to the amount of work of its new side.
    pub base: f64,
    /// The function's own cost on the new sides of these pairs, summed.
    pub new: f64,
    /// `new` minus `base`.
    pub delta: f64,
    /// `delta` divided by the sum of the base totals of all compared pairs. 0 if that sum is zero.
    pub share: f64,
    /// The false discovery rate, among all tested functions, at which the change is significant (q-value).
    pub q: f64,
}

/// The change of a function's own cost in one pair.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FlatChange {
    function: String,
    base: f64,
    new: f64,
    /// The difference in standard deviations of chance. Positive if the new side costs more.
    z: f64,
}

/// Returns the changes of functions that are not part of a cause and have at least [`MIN_EVENTS`] events, the costliest
/// functions first. `event` is the value of one profiled event. If it is unknown (0), the pair is no evidence, so the
/// list is empty.
pub(super) fn flat_changes(top: &Top, event: f64, causes: &[FleetCause]) -> Vec<FlatChange> {
    if event <= 0.0 {
        return Vec::new();
    }
    // Versions of a function with the same canonical name count as one function.
    let mut costs: BTreeMap<String, [f64; 2]> = BTreeMap::new();
    for row in &top.rows {
        let sides = [row.flat.base, row.flat.new].map(|value| value as f64 / event);
        if sides[0] >= 0.0 && sides[1] >= 0.0 && sides[0] + sides[1] > 0.0 {
            let sum = costs.entry(canonical(&top.frames.name(row.frame)).into_owned()).or_default();
            *sum = [sum[0] + sides[0], sum[1] + sides[1]];
        }
    }
    costs.retain(|_, [base, new]| *base + *new >= MIN_EVENTS);
    let work = amount_of_work(costs.values());
    let is_cause = |function: &String| {
        let mut names = causes.iter().flat_map(|cause| [&cause.function, &cause.callee]).flatten();
        names.any(|name| canonical(name) == *function)
    };
    let mut changes: Vec<FlatChange> = costs
        .into_iter()
        .filter(|(function, _)| !is_cause(function))
        .map(|(function, [base, new])| {
            let z = 2.0 * ((new + 0.375).sqrt() - (work * (base + 0.375)).sqrt()) / (1.0 + work).sqrt();
            FlatChange { function, base: base * work * event, new: new * event, z }
        })
        .collect();
    sort_by(&mut changes, |a, b| b.base.max(b.new).total_cmp(&a.base.max(a.new)));
    changes.truncate(MAX_FUNCTIONS);
    changes
}

/// Returns the new side's amount of work divided by the base's: the median growth of functions, weighted by cost. A few
/// changed functions do not affect it. Returns 1 if no function is on both sides.
fn amount_of_work<'a>(costs: impl Iterator<Item = &'a [f64; 2]>) -> f64 {
    let mut ratios: Vec<(f64, f64)> =
        costs.filter(|[base, new]| *base > 0.0 && *new > 0.0).map(|[base, new]| (new / base, base + new)).collect();
    sort_by(&mut ratios, |a, b| a.0.total_cmp(&b.0));
    let half = ratios.iter().map(|(_, cost)| cost).sum::<f64>() / 2.0;
    let mut below = 0.0;
    let median = ratios.iter().find(|(_, cost)| {
        below += cost;
        below >= half
    });
    median.map_or(1.0, |(ratio, _)| *ratio)
}

/// The evidence of all pairs, accumulated by function.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct CommonEvidence(BTreeMap<String, FunctionSums>);

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct FunctionSums {
    pairs: usize,
    base: f64,
    new: f64,
    z: f64,
    squares: f64,
}

impl CommonEvidence {
    pub(super) fn add(&mut self, changes: Vec<FlatChange>) {
        for change in changes {
            let sums = self.0.entry(change.function).or_default();
            sums.pairs += 1;
            sums.base += change.base;
            sums.new += change.new;
            sums.z += change.z;
            sums.squares += change.z * change.z;
        }
        if self.0.len() > MAX_KEPT {
            self.0.retain(|_, sums| sums.pairs > 1);
        }
    }

    /// Returns the significant changes, the largest difference first. `total` is the total of all bases.
    pub(super) fn common(&self, fdr: f64, total: f64) -> Vec<CommonChange> {
        let tested: Vec<(&String, &FunctionSums)> = self.0.iter().filter(|(_, sums)| sums.pairs >= MIN_PAIRS).collect();
        let p = |(_, sums): &(&String, &FunctionSums)| (2.0 * (-sums.z * sums.z / sums.squares / 2.0).exp()).min(1.0);
        let q = false_discoveries(&tested.iter().map(p).collect::<Vec<_>>());
        let to_change = |((function, sums), q): ((&String, &FunctionSums), f64)| CommonChange {
            function: function.clone(),
            pairs: sums.pairs,
            base: sums.base,
            new: sums.new,
            delta: sums.new - sums.base,
            share: if total > 0.0 { (sums.new - sums.base) / total } else { 0.0 },
            q,
        };
        // If a few large pairs disagree with most pairs, the sum does not represent the majority.
        let agrees = |(_, sums): &(&String, &FunctionSums)| (sums.new - sums.base) * sums.z > 0.0;
        let mut changes: Vec<CommonChange> =
            tested.into_iter().zip(q).filter(|(sums, q)| *q <= fdr && agrees(sums)).map(to_change).collect();
        sort_by(&mut changes, |a, b| b.delta.abs().total_cmp(&a.delta.abs()).then_with(|| a.function.cmp(&b.function)));
        changes
    }
}
