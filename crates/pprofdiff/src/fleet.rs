//! A fleet: many pairs, a service or a build each, and one answer. Which changed by more than chance, and which causes several
//! of them share.
//!
//! ```text
//! pair -> Explanation -> PairCauses (its largest causes: little, however large its profiles) -> Fleet -> Ranking
//! ```
//!
//! Of many pairs some have a cause by chance alone, so pairs are told by the rate of false discoveries among those that are
//! named (Benjamini and Hochberg), over all that were compared. What is too small for any of them may show in all together.

mod common;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::diff::matching::canonical;
use crate::diff::{Pair, Sort, Summary};
use crate::explain::{Cause, CauseKind, Explanation, Verdict, package_of};
use crate::statistics::rank::false_discoveries;
use crate::{Diff, Error, Result};
use common::{Evidence, OwnChange, own_changes};

pub use common::CommonChange;
use pprofdiff_profile::random::HashMap;

/// The rate of false discoveries among the pairs that are said to have changed, unless another is asked for.
pub const FDR: f64 = 0.05;

/// The causes that are kept of a pair. What is smaller is no news among many pairs.
const MAX_CAUSES: usize = 5;

/// The names of pairs that are kept of a cause that many share.
const MAX_NAMED: usize = 10;

/// The pairs whose accounts are kept: those of the largest changes. Each is some KB.
const MAX_ACCOUNTS: usize = 300;

/// A cause of one pair, or of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FleetCause {
    /// As [`Cause::function`].
    pub function: Option<String>,
    /// As [`Cause::caller`].
    pub caller: Option<String>,
    /// As [`Cause::callee`].
    pub callee: Option<String>,
    /// What kind of change it is.
    pub kind: CauseKind,
    /// What its stacks cost in a run of the base.
    pub base: f64,
    /// The same of the new side.
    pub new: f64,
    /// As [`Cause::delta`].
    pub delta: f64,
    /// As [`Cause::share`].
    pub share: f64,
    /// What is said of it.
    pub sentence: String,
}

impl FleetCause {
    /// What causes have in common that are one: the function and what it calls, without what compilers number anew, and
    /// the direction. Not who calls it: a library is called by each service's own functions. A label is of one pair's own.
    fn key(&self) -> Option<Key> {
        let name = |of: &Option<String>| of.as_deref().map(|name| canonical(name).into_owned());
        Some(Key { function: name(&self.function)?, callee: name(&self.callee), grew: self.delta > 0.0 })
    }

    /// The package of its caller.
    fn caller_package(&self) -> Option<String> {
        self.caller.as_deref().map(|caller| package_of(caller).into_owned())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    function: String,
    callee: Option<String>,
    grew: bool,
}

/// What is kept of a pair.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PairCauses {
    summary: Arc<Summary>,
    verdict: Verdict,
    /// How probable the surest of its causes is by chance.
    p: f64,
    causes: Vec<FleetCause>,
    sentence: String,
    account: Option<String>,
    changes: Vec<OwnChange>,
}

impl PairCauses {
    /// Of a pair and its explanation, with what is said of a cause and, in a line and as an account, of the whole. The account
    /// is asked for if there are causes.
    ///
    /// # Errors
    /// As [`Diff::measure`].
    pub fn of(
        diff: &Diff,
        e: &Explanation,
        say: impl Fn(&Cause) -> String,
        sentence: String,
        account: impl FnOnce() -> Option<String>,
    ) -> Result<PairCauses> {
        let surest = e.causes.iter().map(|cause| cause.score).fold(0.0, f64::max);
        let causes = e.causes.iter().take(MAX_CAUSES).map(|cause| FleetCause {
            function: cause.function.clone(),
            caller: cause.caller.clone(),
            callee: cause.callee.clone(),
            kind: cause.kind,
            base: cause.evidence.base.value,
            new: cause.evidence.new.value,
            delta: cause.delta,
            share: cause.share,
            sentence: say(cause),
        });
        let p = if e.causes.is_empty() { 1.0 } else { e.noise.p_of(surest) };
        let account = if e.causes.is_empty() { None } else { account() };
        let (summary, causes) = (e.summary.clone(), causes.collect::<Vec<_>>());
        let top = diff.measure(&summary.query)?.top(Sort::Flat);
        let changes = own_changes(&top, e.noise.event, &causes);
        Ok(PairCauses { summary, verdict: e.verdict, p, causes, sentence, account, changes })
    }

    /// How much its causes change.
    fn size(&self) -> f64 {
        size(&self.causes)
    }
}

/// One of many pairs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RankedPair {
    /// Its name.
    pub pair: String,
    /// The mean total of a run of the base.
    pub total_base: i64,
    /// That of the new side.
    pub total_new: i64,
    /// The difference.
    pub total_delta: i64,
    /// What is said of it alone.
    pub verdict: Verdict,
    /// The same in a line.
    pub sentence: String,
    /// The least rate of false discoveries at which it is among those that changed; 1 if it has no cause.
    pub q: f64,
    /// Its largest causes, of a pair that changed by more than chance.
    pub causes: Vec<FleetCause>,
    /// All that is said of it, of the largest of those that changed.
    #[serde(skip)]
    pub account: Option<String>,
}

/// How much causes change together.
fn size(causes: &[FleetCause]) -> f64 {
    causes.iter().map(|cause| cause.delta).sum::<f64>().abs()
}

/// A cause that several pairs have.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SharedCause {
    /// The function, without what compilers number anew.
    pub function: String,
    /// What it calls, if it is these calls that changed.
    pub callee: Option<String>,
    /// The package of its callers, if it is their calls that changed, in all of them.
    pub caller_package: Option<String>,
    /// The number of pairs that have it.
    pub pairs: usize,
    /// The first of these, those with the largest change first.
    pub named: Vec<String>,
    /// What its stacks cost in all of them, in a run of the base each.
    pub base: f64,
    /// The same of the new side.
    pub new: f64,
    /// The sum of its deltas.
    pub delta: f64,
    /// The sum as a part of all bases' totals.
    pub share: f64,
    /// What the first of these pairs says of it.
    pub sentence: String,
}

/// A pair that could not be compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FailedPair {
    /// Its name.
    pub pair: String,
    /// Why.
    pub error: String,
}

/// Many pairs as they come. All are of one sample type, that of the first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Fleet {
    pairs: Vec<(String, PairCauses)>,
    failed: Vec<FailedPair>,
    /// How many pairs have an account.
    accounts: usize,
    /// What pairs say together.
    evidence: Evidence,
}

/// Pairs by what changed, and what they share.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Ranking {
    /// What is compared: what was asked, and the sums of all totals.
    #[serde(skip)]
    pub summary: Arc<Summary>,
    /// The most of the pairs said to have changed that are so by chance.
    pub fdr: f64,
    /// How many pairs changed by more than chance: the first of all.
    pub changed: usize,
    /// Changed pairs first, with the largest change by causes first, then unchanged pairs. Ties are sorted by the
    /// change of the totals, then by name.
    pub pairs: Vec<RankedPair>,
    /// Causes that two pairs or more have, the largest change first.
    pub shared: Vec<SharedCause>,
    /// Changes of a function's own cost that many pairs share, of which each alone is no more than chance, the largest first.
    pub common: Vec<CommonChange>,
    /// What could not be compared.
    pub failed: Vec<FailedPair>,
    /// The maximum number of rows that formats write per table, instead of their own limits.
    #[serde(skip)]
    pub rows: Option<usize>,
}

impl Fleet {
    /// Takes what became of a pair. One of another sample type than the first is one that failed.
    pub fn push(&mut self, name: &str, found: Result<PairCauses>) {
        let of_first = |found: PairCauses| match self.pairs.first() {
            Some((_, first)) if first.summary.sample_type != found.summary.sample_type => {
                let (own, first) = (&found.summary.sample_type, &first.summary.sample_type);
                Err(Error::query(format!("{name}: is of {own}, other pairs of {first}; give --sample-type")))
            }
            _ => Ok(found),
        };
        match found.and_then(of_first) {
            Ok(mut found) => {
                self.evidence.add(std::mem::take(&mut found.changes));
                self.accounts += usize::from(found.account.is_some());
                self.pairs.push((name.to_owned(), found));
                // Now and then, so that it costs nothing.
                if self.accounts >= 2 * MAX_ACCOUNTS {
                    self.keep_largest_accounts();
                }
            }
            Err(e) => self.failed.push(FailedPair { pair: name.to_owned(), error: e.to_string() }),
        }
    }

    /// Lets go of accounts but the largest pairs'.
    fn keep_largest_accounts(&mut self) {
        let mut told: Vec<&mut PairCauses> =
            self.pairs.iter_mut().map(|(_, pair)| pair).filter(|pair| pair.account.is_some()).collect();
        told.sort_by(|a, b| b.size().total_cmp(&a.size()));
        self.accounts = told.len().min(MAX_ACCOUNTS);
        told.into_iter().skip(MAX_ACCOUNTS).for_each(|pair| pair.account = None);
    }

    /// The number of pairs that came.
    pub fn len(&self) -> usize {
        self.pairs.len() + self.failed.len()
    }

    /// True if none came.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of pairs that failed.
    pub fn failed(&self) -> usize {
        self.failed.len()
    }

    /// The answer, with at most this rate of false discoveries.
    ///
    /// # Errors
    /// No pair that could be compared; a rate that is none.
    pub fn ranking(mut self, fdr: f64) -> Result<Ranking> {
        if !(fdr > 0.0 && fdr < 1.0) {
            return Err(Error::query("the rate of false discoveries is between 0 and 1, such as 0.05"));
        }
        self.keep_largest_accounts();
        let Some((_, first)) = self.pairs.first() else {
            return Err(Error::query("there is no pair that could be compared"));
        };
        let mut summary = Summary::clone(&first.summary);
        // Files are too many to be named.
        (summary.total, summary.warnings) = (Pair::default(), Vec::new());
        summary.base.iter_mut().chain([&mut summary.new]).for_each(|side| side.paths.clear());
        for total in self.pairs.iter().map(|(_, pair)| pair.summary.total) {
            summary.total.base = summary.total.base.saturating_add(total.base);
            summary.total.new = summary.total.new.saturating_add(total.new);
        }
        let p: Vec<f64> = self.pairs.iter().map(|(_, pair)| pair.p).collect();
        let mut pairs: Vec<RankedPair> = self.pairs.into_iter().zip(false_discoveries(&p)).map(of_pair).collect();
        let is_changed = |pair: &RankedPair| pair.q <= fdr && !pair.causes.is_empty();
        pairs
            .iter_mut()
            .filter(|pair| !is_changed(pair))
            .for_each(|pair| (pair.causes, pair.account) = (Vec::new(), None));
        let size = |pair: &RankedPair| size(&pair.causes);
        pairs.sort_by(|a, b| {
            let by_causes = is_changed(b).cmp(&is_changed(a)).then_with(|| size(b).total_cmp(&size(a)));
            let by_total = b.total_delta.unsigned_abs().cmp(&a.total_delta.unsigned_abs());
            by_causes.then(by_total).then_with(|| a.pair.cmp(&b.pair))
        });
        let changed = pairs.iter().filter(|pair| is_changed(pair)).count();
        let shared = shared(&pairs[..changed], summary.total.base as f64);
        let common = self.evidence.common(fdr, summary.total.base as f64);
        Ok(Ranking { summary: Arc::new(summary), fdr, changed, pairs, shared, common, failed: self.failed, rows: None })
    }
}

fn of_pair(((name, pair), q): ((String, PairCauses), f64)) -> RankedPair {
    let total = pair.summary.total;
    RankedPair {
        pair: name,
        total_base: total.base,
        total_new: total.new,
        total_delta: total.delta(),
        verdict: pair.verdict,
        sentence: pair.sentence,
        q,
        causes: pair.causes,
        account: pair.account,
    }
}

/// The causes that two of these pairs have, or more.
fn shared(pairs: &[RankedPair], total: f64) -> Vec<SharedCause> {
    let mut groups: HashMap<Key, Vec<(&str, &FleetCause)>> = HashMap::default();
    for pair in pairs {
        for cause in &pair.causes {
            if let Some(key) = cause.key() {
                groups.entry(key).or_default().push((&pair.pair, cause));
            }
        }
    }
    let mut found: Vec<SharedCause> = Vec::new();
    for (key, mut of) in groups {
        of.sort_by(|a, b| b.1.delta.abs().total_cmp(&a.1.delta.abs()).then(a.0.cmp(b.0)));
        let mut named: Vec<&str> = of.iter().map(|(pair, _)| *pair).collect();
        // A pair may have a cause twice, in two chains of calls.
        let mut known = std::collections::BTreeSet::new();
        named.retain(|pair| known.insert(*pair));
        if named.len() < 2 {
            continue;
        }
        let sum = |value: fn(&FleetCause) -> f64| of.iter().map(|(_, cause)| value(cause)).sum::<f64>();
        let delta = sum(|cause| cause.delta);
        found.push(SharedCause {
            function: key.function,
            callee: key.callee,
            caller_package: of[0]
                .1
                .caller_package()
                .filter(|first| of.iter().all(|(_, cause)| cause.caller_package().as_ref() == Some(first))),
            pairs: named.len(),
            named: named.into_iter().take(MAX_NAMED).map(str::to_owned).collect(),
            base: sum(|cause| cause.base),
            new: sum(|cause| cause.new),
            delta,
            share: if total > 0.0 { delta / total } else { 0.0 },
            sentence: of[0].1.sentence.clone(),
        });
    }
    let order = |of: &SharedCause| (of.function.clone(), of.callee.clone());
    found.sort_by(|a, b| b.delta.abs().total_cmp(&a.delta.abs()).then_with(|| order(a).cmp(&order(b))));
    found
}
