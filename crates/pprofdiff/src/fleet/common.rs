//! Small changes that many pairs share. No pair is sure of one by itself; together they may be.
//!
//! Of a pair, what a function costs itself is compared with the base at the new side's amount of work: in standard deviations
//! of counts, as roots (Anscombe 1948), in which chance is as likely above zero as below. If a function did not change, the sum
//! of its differences over all pairs, over the root of the sum of their squares, exceeds `z` with a probability of at most
//! `exp(-z²/2)` whatever their sizes are, which are what pairs differ by besides (Hoeffding 1963). The false ones among
//! all functions are bounded as those of pairs are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::FleetCause;
use crate::diff::Top;
use crate::diff::matching::canonical;
use crate::statistics::rank::false_discoveries;

/// The functions that are kept of a pair: those that cost most.
const MAX_FUNCTIONS: usize = 200;
/// The events of a function of both sides together without which a pair says nothing of it.
const MIN_EVENTS: f64 = 20.0;
/// The functions of all pairs that are kept: of more, those that one pair alone has had go.
const MAX_KEPT: usize = 200_000;
/// The pairs without which nothing is said of a function: fewer can't agree by more than chance.
const MIN_PAIRS: usize = 8;

/// A change that many pairs share, of which each alone is no more than chance.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CommonChange {
    /// The function, without what compilers number anew.
    pub function: String,
    /// The number of pairs that have it, those in which it is a cause aside.
    pub pairs: usize,
    /// What it cost itself in the bases of all of them, at the amounts of work of the new sides.
    pub base: f64,
    /// The same of the new sides.
    pub new: f64,
    /// The difference.
    pub delta: f64,
    /// The difference as a part of all bases' totals.
    pub share: f64,
    /// The least rate of false discoveries at which it is named.
    pub q: f64,
}

/// What a pair says of a function.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OwnChange {
    function: String,
    base: f64,
    new: f64,
    /// The difference in standard deviations of chance.
    z: f64,
}

/// What a pair says of the functions that no cause of it has; `event` is the value of one that the profiler saw.
pub(super) fn own_changes(top: &Top, event: f64, causes: &[FleetCause]) -> Vec<OwnChange> {
    if event <= 0.0 {
        return Vec::new();
    }
    // Versions of a function are one.
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
    let mut found: Vec<OwnChange> = costs
        .into_iter()
        .filter(|(function, _)| !is_cause(function))
        .map(|(function, [base, new])| {
            let z = 2.0 * ((new + 0.375).sqrt() - (work * (base + 0.375)).sqrt()) / (1.0 + work).sqrt();
            OwnChange { function, base: base * work * event, new: new * event, z }
        })
        .collect();
    found.sort_by(|a, b| b.base.max(b.new).total_cmp(&a.base.max(a.new)));
    found.truncate(MAX_FUNCTIONS);
    found
}

/// How much more the new side did: what functions grew by, the median by cost, which the few that changed do not move.
fn amount_of_work<'a>(costs: impl Iterator<Item = &'a [f64; 2]>) -> f64 {
    let mut ratios: Vec<(f64, f64)> =
        costs.filter(|[base, new]| *base > 0.0 && *new > 0.0).map(|[base, new]| (new / base, base + new)).collect();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = ratios.iter().map(|(_, cost)| cost).sum::<f64>() / 2.0;
    let mut below = 0.0;
    let median = ratios.iter().find(|(_, cost)| {
        below += cost;
        below >= half
    });
    median.map_or(1.0, |(ratio, _)| *ratio)
}

/// What all pairs say, as they come.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Evidence(BTreeMap<String, Sums>);

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Sums {
    pairs: usize,
    base: f64,
    new: f64,
    z: f64,
    squares: f64,
}

impl Evidence {
    pub(super) fn add(&mut self, changes: Vec<OwnChange>) {
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

    /// Those that are no chance, the largest difference first; `total` is that of all bases.
    pub(super) fn common(&self, fdr: f64, total: f64) -> Vec<CommonChange> {
        let told: Vec<(&String, &Sums)> = self.0.iter().filter(|(_, sums)| sums.pairs >= MIN_PAIRS).collect();
        let p = |(_, sums): &(&String, &Sums)| (2.0 * (-sums.z * sums.z / sums.squares / 2.0).exp()).min(1.0);
        let q = false_discoveries(&told.iter().map(p).collect::<Vec<_>>());
        let of = |((function, sums), q): ((&String, &Sums), f64)| CommonChange {
            function: function.clone(),
            pairs: sums.pairs,
            base: sums.base,
            new: sums.new,
            delta: sums.new - sums.base,
            share: if total > 0.0 { (sums.new - sums.base) / total } else { 0.0 },
            q,
        };
        // Where large pairs say the opposite of most, the sum is not what most say.
        let agrees = |(_, sums): &(&String, &Sums)| (sums.new - sums.base) * sums.z > 0.0;
        let mut found: Vec<CommonChange> =
            told.into_iter().zip(q).filter(|(of, q)| *q <= fdr && agrees(of)).map(of).collect();
        found.sort_by(|a, b| b.delta.abs().total_cmp(&a.delta.abs()).then_with(|| a.function.cmp(&b.function)));
        found
    }
}
