//! Compares a fleet: many pairs, such as one per service or per build. Reports which pairs changed by more than chance,
//! and which causes several pairs share.
//!
//! ```text
//! pair -> Explanation -> PairCauses (its largest causes: little, however large its profiles) -> Fleet -> Ranking
//! ```
//!
//! Among many pairs, some seem to have a cause by chance. Changed pairs are therefore selected by the false discovery
//! rate over all pairs (Benjamini and Hochberg). A change that is too small to be significant in any pair can be
//! significant in all pairs together.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use common::{CommonEvidence, FlatChange, flat_changes};
use pprofdiff::advice::word;
use pprofdiff::shared::statistics::rank::false_discoveries;
use pprofdiff::{Diff, Error, Pair, Result, Sort, Summary};
use pprofdiff_explain::{Cause, CauseKind, Explanation, Verdict, package_of};
use pprofdiff_profile::canonical::canonical;

pub use common::CommonChange;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::short_lists::sort_by;

/// The default false discovery rate among the pairs that are reported as changed.
pub const FDR: f64 = 0.05;

/// The maximum number of causes to keep per pair. Smaller causes do not matter among many pairs.
const MAX_CAUSES: usize = 5;

/// The maximum number of pairs that a shared cause names.
const MAX_NAMED: usize = 10;

/// The maximum number of pairs with an account: the pairs with the largest changes. An account takes some KB.
const MAX_ACCOUNTS: usize = 300;

/// A cause of a pair, or of several pairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FleetCause {
    /// See [`Cause::function`].
    pub function: Option<String>,
    /// See [`Cause::caller`].
    pub caller: Option<String>,
    /// See [`Cause::callee`].
    pub callee: Option<String>,
    /// The kind of change.
    pub kind: CauseKind,
    /// The cost of its stacks per run of the base, in the sample type's unit.
    pub base: f64,
    /// The cost of its stacks per run of the new side, not scaled to equal work.
    pub new: f64,
    /// See [`Cause::delta`].
    pub delta: f64,
    /// See [`Cause::share`].
    pub share: f64,
    /// A sentence that describes the cause.
    pub sentence: String,
}

impl FleetCause {
    /// Returns the key that equal causes of different pairs share: the canonical names of the function and of its
    /// callee, and the direction. The caller is not part of the key, because each service calls a library from its own
    /// functions. Returns `None` for a cause without a function, such as a label, which belongs to a single pair.
    fn key(&self) -> Option<CauseKey> {
        let name = |function: &Option<String>| function.as_deref().map(|name| canonical(name).into_owned());
        Some(CauseKey { function: name(&self.function)?, callee: name(&self.callee), grew: self.delta > 0.0 })
    }

    /// Returns the package of the caller. Returns `None` if the cause has no caller.
    fn caller_package(&self) -> Option<String> {
        self.caller.as_deref().map(|caller| package_of(caller).into_owned())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CauseKey {
    function: String,
    callee: Option<String>,
    grew: bool,
}

/// The data that a fleet keeps about a pair.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PairCauses {
    summary: Arc<Summary>,
    /// The sample types that all profiles of the pair have.
    sample_types: Vec<String>,
    verdict: Verdict,
    /// The p-value of the most significant cause: the probability that any candidate of the pair reaches its score by
    /// chance. 1 without causes.
    p: f64,
    causes: Vec<FleetCause>,
    sentence: String,
    account: Option<String>,
    changes: Vec<FlatChange>,
}

impl PairCauses {
    /// Summarizes a pair and its explanation. `say` describes a cause, `sentence` describes the pair in one line, and
    /// `account` describes it in full. `account` is only called if there are causes.
    ///
    /// # Errors
    /// Returns the errors of [`Diff::measure`].
    pub fn from_explanation(
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
        let top = pprofdiff_explain::measure(diff, &summary.query)?.top(Sort::Flat);
        let changes = flat_changes(&top, e.noise.event, &causes);
        let sample_types = diff.sample_types().into_iter().map(|(name, _)| name).collect();
        Ok(PairCauses { summary, sample_types, verdict: e.verdict, p, causes, sentence, account, changes })
    }

    /// Returns the sample type that was measured.
    pub fn sample_type(&self) -> &str {
        &self.summary.sample_type
    }

    /// Returns true if all profiles of the pair have this sample type.
    fn has(&self, sample_type: &str) -> bool {
        self.sample_types.iter().any(|name| name == sample_type)
    }

    /// Returns the magnitude of the sum of its causes.
    fn size(&self) -> f64 {
        sum(&self.causes).abs()
    }
}

/// A pair of a fleet.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RankedPair {
    /// The name of the pair.
    pub pair: String,
    /// The pair's keys, such as its service.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub keys: BTreeMap<String, String>,
    /// The mean total of a run of the base.
    pub total_base: i64,
    /// The mean total of a run of the new side.
    pub total_new: i64,
    /// The new total minus the base total.
    pub total_delta: i64,
    /// The verdict on this pair alone.
    pub verdict: Verdict,
    /// The verdict as one sentence.
    pub sentence: String,
    /// The false discovery rate at which the pair is significant (q-value). 1 if it has no cause.
    pub q: f64,
    /// The sum of the deltas of `causes`. Changed pairs are sorted by its magnitude. The amount of work does not change
    /// it, in contrast to `total_delta`.
    pub causes_delta: f64,
    /// The largest causes. Empty if the pair did not change significantly at [`Ranking::fdr`], even if it has causes on
    /// its own.
    pub causes: Vec<FleetCause>,
    /// The full description of the pair. `None` except for the changed pairs with the largest changes.
    #[serde(skip)]
    pub account: Option<String>,
}

/// Returns the sum of the changes of causes.
fn sum(causes: &[FleetCause]) -> f64 {
    causes.iter().map(|cause| cause.delta).sum()
}

/// A cause that several pairs share.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SharedCause {
    /// The canonical name of the function.
    pub function: String,
    /// The canonical name of the system function, if the function's calls of it changed ([`Cause::callee`]).
    pub callee: Option<String>,
    /// The package of the callers. `None` if a pair's cause has no caller, and if the callers are in several packages.
    pub caller_package: Option<String>,
    /// The number of changed pairs with this cause.
    pub pairs: usize,
    /// The names of the first pairs, sorted by the size of the change, descending.
    pub named: Vec<String>,
    /// The cost of its stacks in all these pairs, summed, each per run of the base.
    pub base: f64,
    /// The cost of its stacks in all these pairs, summed, each per run of the new side.
    pub new: f64,
    /// The sum of its deltas in these pairs ([`Cause::delta`]).
    pub delta: f64,
    /// `delta` divided by the sum of the base totals of all compared pairs. 0 if that sum is zero.
    pub share: f64,
    /// The sentence of the pair with the largest change.
    pub sentence: String,
}

/// A pair that could not be compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FailedPair {
    /// The name of the pair.
    pub pair: String,
    /// The error message.
    pub error: String,
}

/// Collects pairs. Without a sample type in the query, each pair is measured in its profiles' default. The ranking then
/// has the default of most pairs; [`Fleet::to_measure_again`] finds the pairs that have it besides another default.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Fleet {
    pairs: Vec<FleetPair>,
    failed: Vec<FailedPair>,
    /// The number of pairs with an account.
    accounts: usize,
    /// The number of pairs that were measured again in the sample type of the ranking.
    replaced: usize,
    /// The number of pairs that failed when they were measured again. They are among the failed pairs.
    #[serde(default)]
    failed_again: usize,
    /// The evidence of small changes that pairs share, by sample type.
    evidence: BTreeMap<String, CommonEvidence>,
}

/// A pair that was compared.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct FleetPair {
    /// The number of pairs that were added before it, including failed pairs.
    position: usize,
    name: String,
    keys: BTreeMap<String, String>,
    causes: PairCauses,
}

/// The pairs of a fleet by the size of their change, and the causes that they share.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Ranking {
    /// The header: the query, and the sums of all totals.
    #[serde(skip)]
    pub summary: Arc<Summary>,
    /// The maximum false discovery rate among the changed pairs.
    pub fdr: f64,
    /// The number of pairs that changed by more than chance. They come first in `pairs`.
    pub changed: usize,
    /// Changed pairs first, with the largest change by causes first, then unchanged pairs. Ties are sorted by the
    /// change of the totals, then by name.
    pub pairs: Vec<RankedPair>,
    /// Causes that at least two changed pairs share, the largest change first.
    pub shared: Vec<SharedCause>,
    /// Changes of a function's own cost that many pairs share, without pairs where the function is a cause. They are
    /// significant only in all these pairs together. The largest change comes first.
    pub common: Vec<CommonChange>,
    /// Pairs that could not be compared.
    pub failed: Vec<FailedPair>,
    /// The maximum number of rows that formats write per table, instead of their own limits.
    #[serde(skip)]
    pub rows: Option<usize>,
}

impl Fleet {
    /// Adds the result of a pair.
    pub fn push(&mut self, name: &str, causes: Result<PairCauses>) {
        self.push_with_keys(name, BTreeMap::new(), causes);
    }

    /// Adds the result of a pair that has keys, such as its service.
    pub fn push_with_keys(&mut self, name: &str, keys: BTreeMap<String, String>, causes: Result<PairCauses>) {
        match causes {
            Ok(mut causes) => {
                let evidence = self.evidence.entry(causes.sample_type().to_owned()).or_default();
                evidence.add(std::mem::take(&mut causes.changes));
                self.accounts += usize::from(causes.account.is_some());
                self.pairs.push(FleetPair { position: self.len(), name: name.to_owned(), keys, causes });
                // Removes accounts only occasionally, so that it costs almost nothing.
                if self.accounts >= 2 * MAX_ACCOUNTS {
                    self.keep_largest_accounts();
                }
            }
            Err(e) => self.failed.push(FailedPair { pair: name.to_owned(), error: e.to_string() }),
        }
    }

    /// Returns the sample type of the ranking: the type in which most pairs were measured. A tie goes to the type that
    /// more pairs have, then to the type of the earlier pair. Returns `None` if no pair could be compared.
    pub fn sample_type(&self) -> Option<&str> {
        let mut votes: Vec<(&str, usize)> = Vec::new();
        for pair in &self.pairs {
            let sample_type = pair.causes.sample_type();
            match votes.iter_mut().find(|(name, _)| *name == sample_type) {
                Some((_, count)) => *count += 1,
                None => votes.push((sample_type, 1)),
            }
        }
        let having = |name: &str| self.pairs.iter().filter(|pair| pair.causes.has(name)).count();
        let best = votes.iter().rev().max_by_key(|(name, count)| (*count, having(name)));
        best.map(|(name, _)| *name)
    }

    /// Returns the positions of the pairs that have the ranking's sample type, but were measured in another one. A
    /// position is the number of pairs that were added before the pair. The caller can measure these pairs again, and
    /// [replace](Fleet::replace) them; the ranking leaves out those that it does not replace.
    pub fn to_measure_again(&self) -> Vec<usize> {
        let Some(sample_type) = self.sample_type() else { return Vec::new() };
        let is_other = |pair: &&FleetPair| pair.causes.sample_type() != sample_type && pair.causes.has(sample_type);
        self.pairs.iter().filter(is_other).map(|pair| pair.position).collect()
    }

    /// Replaces the pair at a position of [`Fleet::to_measure_again`].
    pub fn replace(&mut self, position: usize, causes: Result<PairCauses>) {
        let Some(index) = self.pairs.iter().position(|pair| pair.position == position) else { return };
        let replaced = self.pairs.remove(index);
        self.accounts -= usize::from(replaced.causes.account.is_some());
        let kept = self.pairs.len();
        self.push_with_keys(&replaced.name, replaced.keys, causes);
        match self.pairs.get_mut(kept) {
            Some(pair) => {
                pair.position = position;
                self.replaced += 1;
            }
            None => self.failed_again += 1,
        }
    }

    /// Moves the pairs with another sample type than the ranking's to the failed pairs. Returns a sentence about the
    /// choice, unless all pairs were measured in the same type.
    fn keep_one_sample_type(&mut self) -> Option<String> {
        let sample_type = self.sample_type()?.to_owned();
        // A pair that failed when it was measured again has the sample type, but another default.
        let all = self.pairs.len() + self.failed_again;
        let (kept, others): (Vec<_>, Vec<_>) =
            self.pairs.drain(..).partition(|pair| pair.causes.sample_type() == sample_type);
        self.pairs = kept;
        if others.is_empty() && self.replaced + self.failed_again == 0 {
            return None;
        }
        let default = self.pairs.len().saturating_sub(self.replaced);
        let lacking: Vec<&FleetPair> = others.iter().filter(|pair| !pair.causes.has(&sample_type)).collect();
        let mut others_types: Vec<&str> = lacking.iter().map(|pair| pair.causes.sample_type()).collect();
        others_types.sort_unstable();
        others_types.dedup();
        // One ranking has one unit, so other products need a ranking of their own.
        let options: Vec<String> = others_types.iter().map(|name| format!("--sample-type {}", word(name))).collect();
        let advice = match options.as_slice() {
            [] => String::new(),
            [one] => format!("; to rank them, pass {one}"),
            several => format!("; to rank them, make a ranking for each: {}", several.join(" or ")),
        };
        let lacking = lacking.len();
        for FleetPair { name, causes, .. } in others {
            let types = causes.sample_types.join(", ");
            let error = match causes.has(&sample_type) {
                true => format!("{name}: its default sample type is {}, not {sample_type}", causes.sample_type()),
                false => format!("{name}: it lacks the sample type {sample_type}; it has {types}"),
            };
            self.failed.push(FailedPair { pair: name, error });
        }
        let lacking = match lacking {
            0 => "all pairs have it".to_owned(),
            1 => "1 pair lacks it and is not ranked".to_owned(),
            n => format!("{n} pairs lack it and are not ranked"),
        };
        Some(format!("the sample type is {sample_type}, the default of {default} of {all} pairs; {lacking}{advice}"))
    }

    /// Removes all accounts except those of the pairs with the largest changes.
    fn keep_largest_accounts(&mut self) {
        let mut with_account: Vec<&mut PairCauses> =
            self.pairs.iter_mut().map(|pair| &mut pair.causes).filter(|causes| causes.account.is_some()).collect();
        sort_by(&mut with_account, |a, b| b.size().total_cmp(&a.size()));
        self.accounts = with_account.len().min(MAX_ACCOUNTS);
        with_account.into_iter().skip(MAX_ACCOUNTS).for_each(|pair| pair.account = None);
    }

    /// Returns the number of pairs, including failed pairs.
    pub fn len(&self) -> usize {
        self.pairs.len() + self.failed.len()
    }

    /// Returns true if no pair was added.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of pairs that failed so far, without pairs whose sample type is not the ranking's.
    pub fn failed(&self) -> usize {
        self.failed.len()
    }

    /// Ranks the pairs, with at most this false discovery rate.
    ///
    /// # Errors
    /// Fails if no pair could be compared, and if the rate is not between 0 and 1.
    pub fn ranking(mut self, fdr: f64) -> Result<Ranking> {
        if !(fdr > 0.0 && fdr < 1.0) {
            return Err(Error::query("the false discovery rate must be between 0 and 1, such as 0.05"));
        }
        let choice = self.keep_one_sample_type();
        self.keep_largest_accounts();
        let Some(first) = self.pairs.first() else {
            return Err(Error::query("no pair could be compared"));
        };
        let mut summary = Summary::clone(&first.causes.summary);
        let evidence = self.evidence.remove(&summary.sample_type).unwrap_or_default();
        // There are too many files to list.
        (summary.total, summary.warnings) = (Pair::default(), choice.into_iter().collect());
        summary.base.iter_mut().chain([&mut summary.new]).for_each(|side| side.paths.clear());
        for total in self.pairs.iter().map(|pair| pair.causes.summary.total) {
            summary.total.base = summary.total.base.saturating_add(total.base);
            summary.total.new = summary.total.new.saturating_add(total.new);
        }
        let p: Vec<f64> = self.pairs.iter().map(|pair| pair.causes.p).collect();
        let mut pairs: Vec<RankedPair> =
            self.pairs.into_iter().zip(false_discoveries(&p)).map(to_ranked_pair).collect();
        let is_changed = |pair: &RankedPair| pair.q <= fdr && !pair.causes.is_empty();
        pairs
            .iter_mut()
            .filter(|pair| !is_changed(pair))
            .for_each(|pair| (pair.causes, pair.account) = (Vec::new(), None));
        pairs.iter_mut().for_each(|pair| pair.causes_delta = sum(&pair.causes));
        let size = |pair: &RankedPair| pair.causes_delta.abs();
        sort_by(&mut pairs, |a, b| {
            let by_causes = is_changed(b).cmp(&is_changed(a)).then_with(|| size(b).total_cmp(&size(a)));
            let by_total = b.total_delta.unsigned_abs().cmp(&a.total_delta.unsigned_abs());
            by_causes.then(by_total).then_with(|| a.pair.cmp(&b.pair))
        });
        let changed = pairs.iter().filter(|pair| is_changed(pair)).count();
        let shared = shared(&pairs[..changed], summary.total.base as f64);
        let common = evidence.common(fdr, summary.total.base as f64);
        Ok(Ranking { summary: Arc::new(summary), fdr, changed, pairs, shared, common, failed: self.failed, rows: None })
    }
}

fn to_ranked_pair((FleetPair { name, keys, causes: pair, .. }, q): (FleetPair, f64)) -> RankedPair {
    let total = pair.summary.total;
    RankedPair {
        pair: name,
        keys,
        total_base: total.base,
        total_new: total.new,
        total_delta: total.delta(),
        verdict: pair.verdict,
        sentence: pair.sentence,
        q,
        causes: pair.causes,
        account: pair.account,
        causes_delta: 0.0,
    }
}

/// Returns the causes that at least two of these pairs share. `total` is the sum of the base totals of all pairs.
fn shared(pairs: &[RankedPair], total: f64) -> Vec<SharedCause> {
    let mut groups: HashMap<CauseKey, Vec<(&str, &FleetCause)>> = HashMap::default();
    for pair in pairs {
        for cause in &pair.causes {
            if let Some(key) = cause.key() {
                groups.entry(key).or_default().push((&pair.pair, cause));
            }
        }
    }
    let mut shared_causes: Vec<SharedCause> = Vec::new();
    for (key, mut causes) in groups {
        sort_by(&mut causes, |a, b| b.1.delta.abs().total_cmp(&a.1.delta.abs()).then(a.0.cmp(b.0)));
        let mut named: Vec<&str> = causes.iter().map(|(pair, _)| *pair).collect();
        // A pair may have a cause twice, in two call chains.
        let mut seen = std::collections::BTreeSet::new();
        named.retain(|pair| seen.insert(*pair));
        if named.len() < 2 {
            continue;
        }
        let sum = |value: fn(&FleetCause) -> f64| causes.iter().map(|(_, cause)| value(cause)).sum::<f64>();
        let delta = sum(|cause| cause.delta);
        shared_causes.push(SharedCause {
            function: key.function,
            callee: key.callee,
            caller_package: causes[0]
                .1
                .caller_package()
                .filter(|first| causes.iter().all(|(_, cause)| cause.caller_package().as_ref() == Some(first))),
            pairs: named.len(),
            named: named.into_iter().take(MAX_NAMED).map(str::to_owned).collect(),
            base: sum(|cause| cause.base),
            new: sum(|cause| cause.new),
            delta,
            share: if total > 0.0 { delta / total } else { 0.0 },
            sentence: causes[0].1.sentence.clone(),
        });
    }
    let order = |cause: &SharedCause| (cause.function.clone(), cause.callee.clone());
    sort_by(&mut shared_causes, |a, b| b.delta.abs().total_cmp(&a.delta.abs()).then_with(|| order(a).cmp(&order(b))));
    shared_causes
}
