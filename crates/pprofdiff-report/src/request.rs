//! A [`Request`] describes a question about a diff or a profile: a query and a view. Its answer is a [`Report`].
//!
//! Requests can be serialized. The command parses its arguments into a request, methods of the Python package build
//! one, tasks of an executor carry one, and a batch repeats one for each pair. A request does not contain the inputs.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::histories::HistoriesReport;
use crate::report::Report;
use crate::similar::similar_names;
use crate::view::{self, MatchTarget, View, ViewContext, ViewInput};
use pprofdiff::{Diff, Error, Granularity, LoadOptions, Query, Result, Selection, cancellation};
use pprofdiff_series::Series;
use pprofdiff_series::histories::{Histories, RankedHistory};

/// A query together with the view to compute.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The data to look at: filters, granularity, sample type and normalization.
    pub query: Query,
    /// The view to compute.
    pub view: View,
}

impl Request {
    /// Returns the same query with another view.
    pub fn asking(&self, view: View) -> Request {
        Request { view, ..self.clone() }
    }

    /// Returns a warning if the view's expression matches nothing, which is most likely a typo. The warning suggests
    /// similar names, or for instructions states the reason if it is known. Returns `None` if the view has no
    /// expression, or if `report` has matches.
    ///
    /// # Errors
    /// Fails like [`measure`](pprofdiff_explain::measure), which finds the similar names.
    pub fn unmatched(&self, report: &Report, diff: &Diff) -> Result<Option<String>> {
        let (Some(regex), Some(MatchTarget { noun, .. })) = (self.view.regex(), &self.view.spec().matched) else {
            return Ok(None);
        };
        if !report.matches_nothing() {
            return Ok(None);
        }
        if let View::Disasm { .. } = self.view
            && let Some(why) = view::disasm::unmatched(diff, regex)?
        {
            return Ok(Some(why));
        }
        let measure = pprofdiff_explain::measure(diff, &self.query.clone().with_granularity(Granularity::Functions))?;
        let frames = measure.frames();
        let near = similar_names(regex, (0..frames.len() as u32).map(|frame| frames.name(frame)));
        let near = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) };
        Ok(Some(format!("no {noun} matches {regex:?}{near}")))
    }

    /// Returns the query of a view that supports a single sample type only.
    ///
    /// # Errors
    /// Fails if the query has several sample types.
    pub fn of_one_type(&self) -> Result<&Query> {
        match self.query.extra_sample_types.is_empty() {
            true => Ok(&self.query),
            false => Err(Error::query(format!("{} shows one sample type at a time", self.view.name()))),
        }
    }

    /// Rejects options of the query that the view does not support.
    ///
    /// # Errors
    /// Fails if an option outside the view's scope is set, and if a view of one sample type gets several.
    pub(crate) fn check_query(&self) -> Result<()> {
        let spec = self.view.spec();
        self.query.check_scope(spec.name, spec.scope)?;
        match spec.input {
            ViewInput::OneType => self.of_one_type().map(drop),
            _ => Ok(()),
        }
    }

    /// Computes the answer.
    ///
    /// # Errors
    /// Fails on an unknown sample type, an invalid regular expression, and on normalization by a total of zero. Also
    /// fails if the view does not support an option of the query or several sample types, if it is a view of many
    /// builds, and where the view itself fails.
    pub fn answer(&self, diff: &Diff) -> Result<Report> {
        self.answer_with(diff, |query| pprofdiff_explain::select(diff, query))
    }

    /// Computes the answer like [`Request::answer`]. `select` replaces [`select`](pprofdiff_explain::select), so that it can return a cached
    /// selection.
    ///
    /// # Errors
    /// Fails like [`Request::answer`].
    pub fn answer_with(&self, diff: &Diff, select: impl Fn(&Query) -> Result<Selection>) -> Result<Report> {
        self.check_query()?;
        cancellation::begin_phase("comparing");
        self.view.answer(&ViewContext { query: &self.query, diff, select: &select })
    }

    /// Computes the answer for many builds. The builds must have been loaded with this request's query. Shifts with
    /// explanations load the builds around each shift again.
    ///
    /// # Errors
    /// Fails if the view is a view of a diff, and like [`Series::explain`].
    pub fn answer_series(&self, series: &Series, load: &LoadOptions) -> Result<Report> {
        self.view.answer_series(series, load)
    }

    /// Computes the answer about each of several histories. `limit` is the maximum number of histories in text and
    /// Markdown.
    ///
    /// # Errors
    /// Fails if the view is not a table of many builds, and like [`Series::explain`].
    pub fn answer_histories(&self, histories: &Histories, limit: usize, load: &LoadOptions) -> Result<Report> {
        let table = |history: &RankedHistory| {
            let report = self.view.answer_history(history, histories.sort, load)?;
            report
                .table()
                .map(Cow::into_owned)
                .ok_or_else(|| Error::query("several histories need a view with a table"))
        };
        Ok(Report::Histories(Box::new(HistoriesReport::new(histories, limit, table)?)))
    }
}
