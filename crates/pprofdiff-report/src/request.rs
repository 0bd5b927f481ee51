//! A request says everything that is asked of a diff or a profile; its answer is a [`Report`].
//!
//! A request can be stored and sent: it is what a verb of the command parses to, what a method in Python builds, what a
//! task of an executor carries and what a batch repeats. The inputs are no part of it.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::format::Format;
use crate::report::Report;
use crate::view::{self, Matched, Of, Question, View};
#[cfg(feature = "check")]
use pprofdiff::check::{How, Rules};
use pprofdiff::random::HashSet;

use pprofdiff::series::Series;
use pprofdiff::{Diff, Error, Granularity, LoadOptions, Query, Result, Selection, work};

/// What is asked: of what (filters, granularity, sample type, normalization), and which view.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// What to look at, and how.
    pub query: Query,
    /// Which view of it.
    pub view: View,
}

/// The limits of a check, as users write them; see [`Rules`].
#[cfg(feature = "check")]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CheckOptions {
    /// The text of a `pprofdiff.toml`.
    pub config: Option<String>,
    /// Rules besides those of the configuration.
    pub fail_on: Vec<String>,
    /// The part of the total below which frames are ignored, such as `0.5%`.
    pub floor: Option<String>,
    /// How limits are applied.
    #[serde(default)]
    pub how: How,
}

#[cfg(feature = "check")]
impl CheckOptions {
    /// The rules that they stand for.
    ///
    /// # Errors
    /// An invalid configuration or rule.
    pub fn rules(&self) -> Result<Rules> {
        let mut rules = self.config.as_deref().map_or_else(|| Ok(Rules::default()), Rules::from_toml)?;
        self.fail_on.iter().try_for_each(|rule| rules.fail_on(rule))?;
        self.floor.as_ref().map_or(Ok(()), |floor| rules.set_floor(floor))?;
        rules.how = self.how;
        Ok(rules)
    }
}

/// The names, of three at most, that have most of a text's pairs of letters, and at least two of three.
fn nearest(text: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    const MAX_NAMES: usize = 3;
    const MAX_BYTES: usize = 200;
    let pairs = |text: &str| -> HashSet<[u8; 2]> {
        let letters: Vec<u8> = text.bytes().filter(u8::is_ascii_alphanumeric).map(|b| b.to_ascii_lowercase()).collect();
        letters.windows(2).map(|pair| [pair[0], pair[1]]).collect()
    };
    let wanted = pairs(text);
    let near = names.filter(|name| name.len() <= MAX_BYTES).filter_map(|name| {
        let own = pairs(&name);
        let shared = wanted.intersection(&own).count();
        (shared > 0 && 3 * shared >= 2 * wanted.len()).then_some((Reverse(shared), own.len(), name))
    });
    let mut near: Vec<_> = near.collect();
    near.sort_unstable();
    near.into_iter().map(|(_, _, name)| name).take(MAX_NAMES).collect()
}

impl Request {
    /// Another view of the same question.
    pub fn asking(&self, view: View) -> Request {
        Request { view, ..self.clone() }
    }

    /// What to say where the expression of a view matches nothing, most likely by mistake: with the names most like it.
    ///
    /// # Errors
    /// Those of the answer.
    pub fn unmatched(&self, report: &Report, diff: &Diff) -> Result<Option<String>> {
        let (Some(regex), Some(Matched { what, .. })) = (self.view.regex(), &self.view.spec().matched) else {
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
        let measure = diff.measure(&self.query.clone().with_granularity(Granularity::Functions))?;
        let frames = measure.frames();
        let near = nearest(regex, (0..frames.len() as u32).map(|frame| frames.name(frame)));
        let near = if near.is_empty() { String::new() } else { format!("; like it are {}", near.join(", ")) };
        Ok(Some(format!("no {what} matches {regex:?}{near}")))
    }

    /// Which view is asked for, as errors say it.
    fn asked(&self) -> String {
        let of = match &self.view {
            View::Top { significant: true, .. } => " of significant rows",
            _ if self.query.extra_sample_types.is_empty() => "",
            _ => " of several sample types",
        };
        format!("{}{of}", self.view.name())
    }

    /// The query of what is asked of one sample type.
    ///
    /// # Errors
    /// Several sample types.
    pub fn of_one_type(&self) -> Result<&Query> {
        match self.query.extra_sample_types.is_empty() {
            true => Ok(&self.query),
            false => Err(Error::query(format!("{} shows one sample type at a time", self.view.name()))),
        }
    }

    /// The request whose answer a format writes: where it shows another view of the same question (a call graph for the
    /// table of frames), that one.
    ///
    /// # Errors
    /// A format that can't show what is asked; the error names those that can.
    pub fn for_format(&self, format: &Format) -> Result<Request> {
        match (format.shows)(self) {
            Some(request) => Ok(request),
            None => {
                let can = Format::all().iter().filter(|f| (f.shows)(self).is_some());
                let can: Vec<&str> = can.map(|f| f.name).collect();
                let (format, asked) = (format.name, self.asked());
                Err(Error::query(format!("{asked} can't be written as {format}; it can as {}", can.join(", "))))
            }
        }
    }

    /// The answer.
    ///
    /// # Errors
    /// A question that has no answer: an unknown sample type, a bad regular expression, a normalization by zero.
    pub fn answer(&self, diff: &Diff) -> Result<Report> {
        self.answer_with(diff, |query| diff.select(query))
    }

    /// As [`Request::answer`], with a selection that the caller may have kept.
    ///
    /// # Errors
    /// As [`Request::answer`].
    pub fn answer_with(&self, diff: &Diff, select: impl Fn(&Query) -> Result<Selection>) -> Result<Report> {
        let spec = self.view.spec();
        self.query.check_scope(spec.name, spec.scope)?;
        work::begin_phase("comparing");
        if spec.of == Of::OneType {
            self.of_one_type()?;
        }
        self.view.answer(&Question { query: &self.query, diff, select: &select })
    }

    /// The answer of many builds, which were loaded by this request's query, and are loaded again so where that is needed.
    ///
    /// # Errors
    /// A view of a diff; as [`Series::explain`].
    pub fn answer_series(&self, series: &Series, load: &LoadOptions) -> Result<Report> {
        self.view.answer_series(series, load)
    }
}
