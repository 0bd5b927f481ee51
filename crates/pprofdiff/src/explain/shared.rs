//! Explanations of several sample types of one selection. They share its frames with what is known of their names, and two of
//! them read the samples once.

use super::asked::Asked;
use super::evidence::names::Texts;
use super::evidence::read::Look;
use super::evidence::rows::Rows;
use super::{ExplainOptions, Explanation, FEW_SAMPLES, Heap, explain};
use crate::Result;
use crate::diff::{Matching, Measure, Moves, Normalize, Query, Selection};
use crate::runtimes::{self, UserRules};
use pprofdiff_profile::{parallel, work};

/// What explanations of one selection share.
pub(super) struct Shared<'a> {
    selection: &'a Selection,
    options: &'a ExplainOptions,
    texts: Texts,
    /// What was allocated, of heap profiles of the same runs.
    heap: Option<Rows>,
}

impl<'a> Shared<'a> {
    pub fn new(selection: &'a Selection, own: &UserRules, options: &'a ExplainOptions) -> Result<Shared<'a>> {
        let allocations = |Heap(heap): &Heap| heap.allocations(selection.query(), own);
        let heap = options.heap.as_ref().map(allocations).transpose()?;
        let texts = Texts::of(selection.frames(), own, runtimes::Asked::All);
        Ok(Shared { selection, options, texts, heap })
    }

    /// Explains a sample type, and its garbage collection by the heap profiles if wanted.
    pub fn explain(&self, asked: &Asked, with_heap: bool) -> Result<Explanation> {
        let value = self.measure(asked)?;
        let explained = |look: Look<'_>| self.explain_look(&value, look, with_heap);
        asked
            .read(self.selection, &value, self.options.noise_runs, |columns| explained(Look::new(columns, &self.texts)))
    }

    /// The same of two sample types at the same time, which takes the memory of both.
    pub fn explain_both(&self, asked: [&Asked; 2], with_heap: [bool; 2]) -> Result<[Explanation; 2]> {
        let [a, b] = [self.measure(asked[0])?, self.measure(asked[1])?];
        let learned = self.options.noise_runs;
        asked[0].read(self.selection, &a, learned, |of_a| {
            asked[1].read(self.selection, &b, learned, |of_b| {
                let [first, second] = Look::both([of_a, of_b], &self.texts);
                let explained = |value, look, i: usize| self.explain_look(value, look, with_heap[i]);
                parallel::join(|| explained(&a, first, 0), || explained(&b, second, 1)).into()
            })
        })?
    }

    fn measure(&self, asked: &Asked) -> Result<Measure> {
        self.selection.measure_type(asked.number, Normalize::None)
    }

    fn explain_look(&self, value: &Measure, look: Look<'_>, with_heap: bool) -> Explanation {
        let heap = self.heap.as_ref().filter(|_| with_heap);
        explain(self.selection.diff(), value, look.rows(), heap, self.options)
    }
}

impl Selection {
    /// Explains sample types by their numbers in [`Diff::sample_types`](crate::Diff::sample_types): the first `most` of `types`
    /// that can be explained, each as [`Diff::explain`](crate::Diff::explain) does, not normalized. Cheaper than one by one.
    pub fn explain_types(&self, types: &[usize], most: usize, options: &ExplainOptions) -> Vec<(usize, Explanation)> {
        let query = Query { sample_type: None, normalize: Normalize::None, ..self.query().clone() };
        let Ok(own) = self.diff().check_explain(&query, options) else { return Vec::new() };
        work::begin_phase("explaining");
        // It finds by itself what moved.
        let of_exact = match query.matching {
            Matching::Moved => match self.diff().select_with(&query, &Moves::default()) {
                Ok(selection) => selection,
                Err(_) => return Vec::new(),
            },
            _ => self.clone(),
        };
        let Ok(shared) = Shared::new(&of_exact, &own, options) else { return Vec::new() };
        let mut explained: Vec<(usize, Explanation)> = Vec::new();
        let mut open = types;
        let at_once = if self.diff().n_samples() <= FEW_SAMPLES { 2 } else { 1 };
        while explained.len() < most && !open.is_empty() {
            let (some, rest) = open.split_at(at_once.min(most - explained.len()).min(open.len()));
            open = rest;
            let asked: Vec<Asked> = some.iter().map(|&number| self.diff().asked_of(number)).collect();
            let found: Vec<Option<Explanation>> = match &asked[..] {
                [a, b] => match shared.explain_both([a, b], [true; 2]) {
                    Ok(both) => both.map(Some).into(),
                    Err(_) => asked.iter().map(|asked| shared.explain(asked, true).ok()).collect(),
                },
                _ => asked.iter().map(|asked| shared.explain(asked, true).ok()).collect(),
            };
            for (&number, explanation) in some.iter().zip(found) {
                let Some(mut explanation) = explanation else { continue };
                if self.diff().explain_heap(&query, options, &mut explanation).is_ok() {
                    explained.push((number, explanation));
                }
            }
        }
        explained
    }
}
