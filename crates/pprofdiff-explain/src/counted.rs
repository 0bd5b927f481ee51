//! Adds counted calls to causes, if the profiles count each call at the frame that was called: callgrind, cProfile and
//! instrumented programs do. Samples leave open whether a function was called more or became slower; counts tell.

use super::answer::{CountedCalls, CountedWork, ScaleRule};
use super::naming::rounded;
use super::thresholds::{MAX_DIFFERENCE_OF_CALLS, MAX_DIFFERENCE_OF_UNIT_COST, MIN_PART_OF_ENTRIES};
use super::{Cause, CauseKind, ExplainOptions, Explanation};
use pprofdiff::shared::{CallSums, CalledFunction, Moves, counts_every_call, counts_every_event};
use pprofdiff::{Diff, Frames, Measure, Normalize, Query, Result, Selection};
use pprofdiff_profile::random::HashSet;

/// Returns the function whose calls explain a cause, and its caller if only this caller's calls belong to the cause.
fn called(cause: &Cause) -> Option<(&[String], Option<&[String]>)> {
    let Cause { evidence, label: None, wraps: None, .. } = cause else { return None };
    let some = |names: &[String]| !names.is_empty();
    match (&cause.callee, &cause.function) {
        (Some(_), Some(_)) => Some((&evidence.callees, Some(&evidence.functions))),
        // A call that replaces another has two functions.
        (None, Some(_)) if !cause.parts.iter().any(|part| part.kind == CauseKind::Removed) => {
            Some((&evidence.functions, Some(&evidence.callers[..]).filter(|callers| some(callers))))
        }
        _ => None,
    }
}

/// Returns the amount of work if the profiles count calls and the entry functions were called equally often on both sides.
/// Returns `None` if the calls differ: `main` may have more requests, or a new loop may make the same call twice, and the
/// number of calls does not distinguish them. Also returns `None` if the user gave the amount, if `cost` counts calls or
/// instructions itself, and if the entry functions do not have most of the cost or disagree.
///
/// # Errors
/// Fails only if the work was cancelled.
pub(super) fn counted_work(
    selection: &Selection,
    cost: &Measure,
    options: &ExplainOptions,
) -> Result<Option<CountedWork>> {
    let types = selection.diff().sample_types();
    let is_cost =
        |(kind, unit): &(String, String)| *kind == cost.summary().sample_type && !counts_every_event(kind, unit);
    let number = types.iter().position(|(kind, unit)| counts_every_call(kind, unit));
    let Some(number) = number.filter(|_| options.ops.is_none() && types.iter().any(is_cost)) else { return Ok(None) };
    let (entries, totals) = selection.measure_type(number, Normalize::None)?.entry_calls(cost, options.noise_runs);
    let agrees = |calls: [f64; 2]| (calls[1] / calls[0] - 1.0).abs() <= MAX_DIFFERENCE_OF_CALLS;
    let Some(first) = entries.first().filter(|first| agrees(first.calls)) else { return Ok(None) };
    let part = |side: usize| {
        let agreeing = entries.iter().filter(|entry| agrees(entry.calls)).map(|entry| entry.cum[side]).sum::<f64>();
        agreeing / totals[side].max(f64::MIN_POSITIVE)
    };
    let is_most = (0..2).all(|side| part(side) >= MIN_PART_OF_ENTRIES);
    Ok(is_most.then(|| CountedWork {
        function: selection.frames().name(first.frame).to_string(),
        base: rounded(first.calls[0]),
        new: rounded(first.calls[1]),
    }))
}

impl CountedWork {
    /// Sets the amount of work of an explanation that was made with this amount.
    pub(super) fn set_in(self, explanation: &mut Explanation) {
        if explanation.scale.rule == ScaleRule::Given {
            explanation.scale.rule = ScaleRule::Counted;
            explanation.scale.calls = Some(self);
        }
    }
}

/// Adds the numbers of calls to the causes of an explanation.
///
/// # Errors
/// Fails only if the work was cancelled.
pub(super) fn add_counted_calls(
    diff: &Diff,
    query: &Query,
    learned: usize,
    explanation: &mut Explanation,
) -> Result<()> {
    for also in &mut explanation.also {
        add_counted_calls(diff, query, learned, also)?;
    }
    let types = diff.sample_types();
    let Some(number) = types.iter().position(|(kind, unit)| counts_every_call(kind, unit)) else { return Ok(()) };
    let position = types.iter().position(|(kind, _)| *kind == explanation.summary.sample_type);
    let Some(cost) = position.filter(|cost| *cost != number) else { return Ok(()) };
    let (is_exact, factor, runs) = (explanation.counts_each_event(), explanation.scale.factor, explanation.noise.runs);
    let is_spent = explanation.is_spent();
    let Explanation { causes, suspects, candidate, .. } = explanation;
    let candidate = candidate.as_mut().map(|nearest| &mut nearest.cause);
    let mut causes: Vec<&mut Cause> = causes.iter_mut().chain(suspects).chain(candidate).collect();
    causes.retain(|cause| called(cause).is_some());
    if causes.is_empty() {
        return Ok(());
    }
    let selection = diff.select_with(query, &Moves::default())?;
    let [calls, cost] = [number, cost].map(|number| selection.measure_type(number, Normalize::None));
    let (calls, cost) = (calls?, cost?);
    let names = FrameNames::new(selection.frames());
    let functions = causes.iter().filter_map(|cause| called(cause)).map(|(function, caller)| CalledFunction {
        function: names.frames(function),
        caller: caller.map(|caller| names.frames(caller)),
    });
    let functions: Vec<CalledFunction> = functions.collect();
    for (cause, sums) in causes.iter_mut().zip(calls.call_sums(&cost, &functions, learned)) {
        cause.calls = counted(cause, sums, factor, [runs.0, runs.1], is_exact && is_spent);
    }
    Ok(())
}

/// The frames of a selection by name.
struct FrameNames<'a> {
    frames: &'a Frames,
}

impl<'a> FrameNames<'a> {
    fn new(frames: &'a Frames) -> FrameNames<'a> {
        FrameNames { frames }
    }

    fn frames(&self, names: &[String]) -> HashSet<u32> {
        let is_named = |frame: &u32| names.contains(&self.frames.name(*frame));
        (0..self.frames.len() as u32).filter(is_named).collect()
    }
}

/// Returns the calls of a cause per run. The factors are at equal work. The cost per call is stated only if a plain table
/// shows the same: other causes may own a part of the function's stacks.
fn counted(
    cause: &Cause,
    sums: [CallSums; 2],
    factor: f64,
    runs: [usize; 2],
    has_unit_cost: bool,
) -> Option<CountedCalls> {
    let [base, new] = [0, 1].map(|side| sums[side].calls / runs[side].max(1) as f64);
    if base + new <= 0.0 {
        return None;
    }
    let costs = [cause.evidence.base.value, cause.evidence.new.value];
    let is_plain = (0..2).all(|side| {
        let plain = if cause.kind == CauseKind::Own { sums[side].flat } else { sums[side].cum };
        let plain = plain / runs[side].max(1) as f64;
        (plain - costs[side]).abs() <= MAX_DIFFERENCE_OF_UNIT_COST * plain
    });
    let on_both = base > 0.0 && new > 0.0;
    let unit_factor = (costs[1] / new) / (costs[0] / base);
    Some(CountedCalls {
        base: rounded(base),
        new: rounded(new),
        count_factor: on_both.then(|| rounded(new / base / factor)),
        unit_factor: (has_unit_cost && on_both && is_plain && costs[0] > 0.0).then(|| rounded(unit_factor)),
    })
}
