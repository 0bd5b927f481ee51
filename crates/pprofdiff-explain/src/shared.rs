//! Explanations of several sample types of one selection. They share its frames and the classification of names, and
//! two explanations read the samples only once.

use super::code::add_code_changes;
use super::counted::{add_counted_calls, counted_work};
use super::evidence::names::FrameTexts;
use super::evidence::read::ReadRuns;
use super::evidence::rows::StackRows;
use super::place::add_places;
use super::{ExplainOptions, Explanation, FEW_SAMPLES, Heap, allocations, check_explain, explain_heap, explain_rows};
use pprofdiff::shared::{ExplainTarget, Moves, UserRules};
use pprofdiff::{Matching, Measure, Normalize, Result, Selection};
use pprofdiff_profile::{cancellation, parallel};

/// The data that explanations of one selection share.
pub(super) struct SharedInputs<'a> {
    selection: &'a Selection,
    options: &'a ExplainOptions,
    texts: FrameTexts,
    /// The allocations in the heap profiles of the same runs.
    heap: Option<StackRows>,
}

impl<'a> SharedInputs<'a> {
    pub fn new(
        selection: &'a Selection,
        user_rules: &UserRules,
        options: &'a ExplainOptions,
    ) -> Result<SharedInputs<'a>> {
        let of_heap = |Heap(heap): &Heap| allocations(heap, selection.query(), user_rules);
        let heap = options.heap.as_ref().map(of_heap).transpose()?;
        let texts = FrameTexts::classify(selection.frames(), user_rules);
        Ok(SharedInputs { selection, options, texts, heap })
    }

    /// Explains a sample type. With `with_heap`, heap profiles attribute its garbage collection.
    pub fn explain(&self, target: &ExplainTarget, with_heap: bool) -> Result<Explanation> {
        let value = self.measure(target)?;
        let run = |reads: ReadRuns<'_>| self.explain_runs(&value, reads, with_heap);
        target
            .read(self.selection, &value, self.options.noise_runs, |columns| run(ReadRuns::new(columns, &self.texts)))?
    }

    /// Explains two sample types at the same time, which is faster and takes the memory of both. Fails if either fails.
    pub fn explain_both(&self, targets: [&ExplainTarget; 2], with_heap: [bool; 2]) -> Result<[Explanation; 2]> {
        let [a, b] = [self.measure(targets[0])?, self.measure(targets[1])?];
        let learned = self.options.noise_runs;
        targets[0].read(self.selection, &a, learned, |first_columns| {
            targets[1].read(self.selection, &b, learned, |second_columns| {
                let [first, second] = ReadRuns::both([first_columns, second_columns], &self.texts);
                let run = |value, reads, i: usize| self.explain_runs(value, reads, with_heap[i]);
                let (first, second) = parallel::join(|| run(&a, first, 0), || run(&b, second, 1));
                Ok([first?, second?])
            })
        })??
    }

    fn measure(&self, target: &ExplainTarget) -> Result<Measure> {
        self.selection.measure_type(target.number, Normalize::None)
    }

    fn explain_runs(&self, value: &Measure, reads: ReadRuns<'_>, with_heap: bool) -> Result<Explanation> {
        let heap = self.heap.as_ref().filter(|_| with_heap);
        let counted = counted_work(self.selection, value, self.options)?;
        let mut options = self.options.clone();
        options.ops = options.ops.or(counted.as_ref().map(|work| (work.base, work.new)));
        let mut explanation = explain_rows(self.selection.diff(), value, reads.rows(), heap, &options);
        counted.into_iter().for_each(|work| work.set_in(&mut explanation));
        Ok(explanation)
    }
}

/// Explains the first `max` of the sample types that can be explained, like [`explain`](super::explain)
/// without normalization. Skips sample types that fail. `types` are positions in
/// [`Diff::sample_types`](pprofdiff::Diff::sample_types), and the results contain them. Cheaper than one call per type.
/// Returns an empty list if the query or the options do not support explanations.
pub fn explain_types(
    selection: &Selection,
    types: &[usize],
    max: usize,
    options: &ExplainOptions,
) -> Vec<(usize, Explanation)> {
    let mut query = selection.query().clone().with_normalize(Normalize::None);
    query.sample_type = None;
    let Ok(user_rules) = check_explain(selection.diff(), &query, options) else { return Vec::new() };
    cancellation::begin_phase("explaining");
    // `explain` itself finds the cost that moved, so it needs unmatched names.
    let unmatched = match query.matching {
        Matching::Moved => match selection.diff().select_with(&query, &Moves::default()) {
            Ok(selection) => selection,
            Err(_) => return Vec::new(),
        },
        _ => selection.clone(),
    };
    let Ok(shared) = SharedInputs::new(&unmatched, &user_rules, options) else { return Vec::new() };
    let mut explained: Vec<(usize, Explanation)> = Vec::new();
    let mut remaining = types;
    let at_once = if selection.diff().n_samples() <= FEW_SAMPLES { 2 } else { 1 };
    while explained.len() < max && !remaining.is_empty() {
        let (next_types, rest) = remaining.split_at(at_once.min(max - explained.len()).min(remaining.len()));
        remaining = rest;
        let targets: Vec<ExplainTarget> = next_types.iter().map(|&number| selection.diff().target_of(number)).collect();
        let explanations: Vec<Option<Explanation>> = match &targets[..] {
            [a, b] => match shared.explain_both([a, b], [true; 2]) {
                Ok(both) => both.map(Some).into(),
                Err(_) => targets.iter().map(|target| shared.explain(target, true).ok()).collect(),
            },
            _ => targets.iter().map(|target| shared.explain(target, true).ok()).collect(),
        };
        let mut explanations: Vec<(usize, Explanation)> = next_types
            .iter()
            .zip(explanations)
            .filter_map(|(&number, explanation)| Some((number, explanation?)))
            .collect();
        if add_places(&unmatched, explanations.iter_mut().map(|(_, explanation)| explanation)).is_err() {
            continue;
        }
        for (number, mut explanation) in explanations {
            let with_calls = add_counted_calls(selection.diff(), &query, options.noise_runs, &mut explanation);
            let with_code = with_calls.and_then(|()| add_code_changes(selection.diff(), &query, &mut explanation));
            if with_code.and_then(|()| explain_heap(&query, options, &mut explanation)).is_ok() {
                explained.push((number, explanation));
            }
        }
    }
    explained
}
