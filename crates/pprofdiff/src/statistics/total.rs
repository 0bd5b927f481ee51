//! The test of a total: do the runs of both sides differ by more than equal builds do?
//!
//! Tables, checks and explanations show totals of the same runs, so all of them use this test. It depends only on the
//! totals of the runs and on the events behind them. It does not depend on the frames of a table, because granularity and
//! sort order would then change the p-value of the same total.

use super::growth::{RunEvents, Spread};

/// The maximum number of events per run. With more, counting noise is negligible, and the statistics would only lose
/// precision.
const MAX_EVENTS: f64 = 1e9;

/// Returns the value of one event on the base and on the new side: the mean over the runs with events. `events` has the
/// value of one event by run, 0 if it is unknown. A side without events has the value of the opposite side, and 1 if
/// neither has events. `largest` is the largest total of a run.
pub(crate) fn event_of_sides(events: [Vec<f64>; 2], largest: f64) -> [f64; 2] {
    let [base, new] = events.map(|events| {
        let known: Vec<f64> = events.into_iter().filter(|event| *event > 0.0).collect();
        known.iter().sum::<f64>() / known.len() as f64
    });
    let or = |event: f64, fallback: f64| [event, fallback].into_iter().find(|event| *event > 0.0).unwrap_or(1.0);
    [or(base, new), or(new, base)].map(|event| event.max(largest / MAX_EVENTS))
}

/// The total of each run in events.
#[derive(Debug, Clone, Default)]
pub struct TotalRuns {
    events: RunEvents,
    /// The ratio of events at equal costs.
    per_event: f64,
    known_variance: f64,
}

impl TotalRuns {
    /// Creates the runs from the totals of both sides and the value of one event in each run, which is 0 if it is
    /// unknown. `known_variance` is the variance between runs of other programs.
    pub fn new(mut totals: [Vec<f64>; 2], mut events: [Vec<f64>; 2], known_variance: f64) -> TotalRuns {
        // The order of the runs must not change the rounding of sums.
        totals.iter_mut().chain(&mut events).for_each(|values| values.sort_unstable_by(f64::total_cmp));
        let largest = totals.iter().flatten().copied().fold(0.0, f64::max);
        let event = event_of_sides(events, largest);
        let mut events = totals;
        for (totals, event) in events.iter_mut().zip(event) {
            totals.iter_mut().for_each(|total| *total = total.max(0.0) / event);
        }
        TotalRuns { events, per_event: event[0] / event[1], known_variance }
    }

    /// Returns the two-sided p-value of the difference between the sides. The null hypothesis is that the mean of the
    /// new side is the mean of the base times `ratio`.
    pub fn p_of_change(&self, ratio: f64) -> f64 {
        Spread::of_total(self.known_variance, false).p_of_change_of_one(&self.events, ratio * self.per_event)
    }
}
