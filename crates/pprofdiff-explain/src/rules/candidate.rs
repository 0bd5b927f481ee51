//! The nearest candidate, if no change qualifies as a cause, and the number of runs that would decide.

use super::{Find, Findings, Rule};
use crate::account::{Books, CauseEntry};
use crate::search::variance_of;
use crate::thresholds::{MAX_ADVISED_RUNS, MIN_ADVISED_RUNS, MIN_CHANGE_OF_CANDIDATE};
use pprofdiff::shared::statistics::counts::{LEVEL, deviance, penalised};
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::random::HashSet;

pub(super) const RULE: Rule = Rule {
    name: "candidate",
    needs: "no cause, and one change that would pass if it were the only one tested",
    says: "\"Best candidate: ...\", with the number of runs that would decide",
    find: Find::Causes(find),
};

fn find(books: &Books<'_>, findings: &mut Findings) {
    if findings.causes.is_empty() && findings.suspects.is_empty() && findings.candidate.is_none() {
        let is_absorbed = |entry: &CauseEntry| {
            findings.absorbed.iter().any(|absorbed| Some(absorbed.caller) == entry.subject.function)
        };
        findings.candidate = books.candidate().filter(|entry| !is_absorbed(entry));
    }
}

impl Books<'_> {
    /// Returns the nearest candidate: among the sets that changed by at least [`MIN_CHANGE_OF_CANDIDATE`] and would
    /// exceed chance if they were the only tested set, the set that explains most. Returns `None` if there is no such
    /// set, and if the name of the best one would be misleading.
    fn candidate(&self) -> Option<CauseEntry> {
        let total = self.rows.total();
        let floor = MIN_CHANGE_OF_CANDIDATE * (self.scale * total[0] + total[1]) / 2.0;
        let explains = |set: usize| {
            let set_data = &self.sets.sets[set];
            let [b, n] = set_data.values.map(|v| v / set_data.event.max(1e-300));
            let is_large = !set_data.whole && self.delta(set_data.values).abs() > floor && b + n > 0.0;
            let variance = variance_of(self.rows, self.search.tau2.variance(self.sets, set), [b, n]);
            let is_candidate = is_large && penalised(b, n, self.scale, variance) - set_data.price > LEVEL;
            is_candidate.then(|| deviance(b, n, self.scale) - set_data.price)
        };
        let explained = checkpointed(0..self.sets.len()).filter_map(|set| Some((explains(set)?, set)));
        let (_, set) = explained.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))?;
        let candidate = self.attribution.candidate(set, self.delta(self.sets.sets[set].values) / self.scale);
        let rows = candidate.rows.clone();
        let described = self.describe(&candidate, rows)?;
        // A candidate claims nothing, so a part of a function may be named even if the whole function changed less.
        Some(self.completed(described.clone(), &HashSet::default()).unwrap_or(described))
    }

    /// Returns the approximate number of runs per side that would confirm a cause with this score. Chance decreases
    /// with the number of runs. Returns `None` if more than [`MAX_ADVISED_RUNS`] are needed.
    pub(crate) fn runs_needed(&self, score: f64) -> Option<usize> {
        let m = self.rows.runs.into_iter().max().unwrap_or(1) as f64;
        let runs = (m * self.search.threshold / score.max(1e-9)).ceil().max(m + 1.0).max(MIN_ADVISED_RUNS);
        (runs <= MAX_ADVISED_RUNS).then_some(runs as usize)
    }
}
