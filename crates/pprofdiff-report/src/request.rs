//! A request says everything that is asked of a diff or a profile; its answer is a [`Report`].
//!
//! A request can be stored and sent: it is what a verb of the command parses to, what a method in Python builds, what a
//! task of an executor carries and what a batch repeats. The inputs are no part of it.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::format::Format;
#[cfg(feature = "html")]
use crate::page::PageOptions;
use crate::report::Report;
use crate::view::{self, Of, Question, View};
#[cfg(feature = "check")]
use pprofdiff::check::{How, Rules};
use pprofdiff::explain::ExplainOptions;
use pprofdiff::graph::GraphOptions;
use pprofdiff::random::HashSet;

use pprofdiff::list::SourceDirs;
use pprofdiff::series::Series;
use pprofdiff::{Diff, Error, Granularity, LoadOptions, Query, Result, Selection, Sort, WriteOptions, work};

/// What is asked: of what (filters, granularity, sample type, normalization), and which view.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// What to look at, and how.
    pub query: Query,
    /// Which view of it.
    pub ask: Ask,
}

/// The views, each with its own options. `limit` is the most rows; all if not given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Ask {
    /// The table of frames.
    Top {
        /// What rows are ordered by.
        sort: Sort,
        /// The most rows.
        limit: Option<usize>,
        /// Only rows that more than chance explains, of one sample type.
        #[serde(default)]
        significant: bool,
    },
    /// The callers and callees of the frames that match.
    Peek {
        /// Matched against each frame's label.
        regex: String,
        /// What nodes are ordered by.
        sort: Sort,
        /// The most nodes.
        limit: Option<usize>,
    },
    /// The callers of the frames that match, as whole chains from the root.
    Roots {
        /// Matched against each frame's label.
        regex: String,
        /// The most rows.
        limit: Option<usize>,
    },
    /// The callers and callees of all frames.
    Tree {
        /// What nodes are ordered by.
        sort: Sort,
        /// The most nodes.
        limit: Option<usize>,
    },
    /// Whole stacks.
    Stacks {
        /// Tell apart stacks whose samples have different labels.
        by_labels: bool,
        /// The most rows.
        limit: Option<usize>,
    },
    /// Whole stacks with their labels, each from the leaf, as pprof's traces.
    Traces {
        /// The most rows.
        limit: Option<usize>,
    },
    /// What each label's values cost.
    Labels {
        /// The most rows of each key.
        limit: Option<usize>,
    },
    /// Source lines of the functions that match.
    List {
        /// Matched against each function's name.
        regex: String,
        /// Where the sources are.
        sources: SourceDirs,
        /// The most functions.
        limit: Option<usize>,
    },
    /// Instructions of the functions that match, of profiles that were loaded with binaries.
    Disasm {
        /// Matched against each function's name in its binary.
        regex: String,
        /// The most functions.
        limit: Option<usize>,
    },
    /// The call graph.
    Graph(GraphOptions),
    /// The page for a browser.
    #[cfg(feature = "html")]
    Page {
        /// What it holds.
        options: PageOptions,
        /// Where the sources are; without them the page has no source lines.
        sources: Option<SourceDirs>,
    },
    /// The diff written as one profile.
    Profile(WriteOptions),
    /// What is in the files.
    Info,
    /// All that a profile, or the diff written as one, has: its samples and tables as they are numbered.
    Raw,
    /// What producers left as comments.
    Comments,
    /// Whether what changed is within limits; the profiles of a side are its runs.
    #[cfg(feature = "check")]
    Check(CheckOptions),
    /// Why the sides differ; the profiles of a side are its runs.
    Explain(ExplainOptions),
    /// Of many builds: the frames by their largest steps.
    Movers {
        /// What steps are of.
        sort: Sort,
        /// The most rows.
        limit: Option<usize>,
    },
    /// Of many builds: all steps from one to another.
    Steps {
        /// What steps are of.
        sort: Sort,
        /// The most rows.
        limit: Option<usize>,
    },
    /// Of many builds: from which on a frame costs something else.
    Shifts {
        /// Of which cost.
        sort: Sort,
        /// The most rows.
        limit: Option<usize>,
        /// Find the cause of each: reads the builds around it again.
        explain: Option<ExplainOptions>,
    },
    /// Of many builds: the page for a browser, with the course of each frame, and flame graphs of before and after.
    #[cfg(feature = "html")]
    Timelines {
        /// Frames by their lasting changes; otherwise by their largest steps.
        lasting: bool,
        /// Of which cost.
        sort: Sort,
        /// The most rows.
        limit: Option<usize>,
        /// What it holds.
        options: PageOptions,
    },
    /// Of many builds: what each frame costs in each.
    Values {
        /// A row for each build and frame, also where a build does not have the frame.
        dense: bool,
        /// The most rows.
        limit: Option<usize>,
    },
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

impl Default for Ask {
    fn default() -> Ask {
        Ask::Top { sort: Sort::default(), limit: None, significant: false }
    }
}

impl std::str::FromStr for Ask {
    type Err = Error;

    /// A view of rows by its name, as many pairs are asked for it: `top`, or `peek=RE` of one with an expression.
    fn from_str(text: &str) -> Result<Ask> {
        View::of_pairs(text)
    }
}

impl Ask {
    /// The same view in this order, where it has a choice, with this many rows at most.
    #[must_use]
    pub fn ordered(mut self, by: Sort, most: Option<usize>) -> Ask {
        if let Ask::Top { sort, .. } | Ask::Tree { sort, .. } | Ask::Peek { sort, .. } = &mut self {
            *sort = by;
        }
        if let Some(limit) = self.limit_mut() {
            *limit = most;
        }
        self
    }

    /// Which view it is.
    pub fn view(&self) -> &'static View {
        match self {
            Ask::Top { .. } => &view::top::VIEW,
            Ask::Peek { .. } => &view::peek::VIEW,
            Ask::Roots { .. } => &view::roots::VIEW,
            Ask::Tree { .. } => &view::tree::VIEW,
            Ask::Stacks { .. } => &view::stacks::VIEW,
            Ask::Traces { .. } => &view::traces::VIEW,
            Ask::Labels { .. } => &view::labels::VIEW,
            Ask::List { .. } => &view::list::VIEW,
            Ask::Disasm { .. } => &view::disasm::VIEW,
            Ask::Graph(_) => &view::graph::VIEW,
            #[cfg(feature = "html")]
            Ask::Page { .. } => &view::page::VIEW,
            Ask::Profile(_) => &view::profile::VIEW,
            Ask::Info => &view::info::VIEW,
            Ask::Raw => &view::raw::VIEW,
            Ask::Comments => &view::comments::VIEW,
            #[cfg(feature = "check")]
            Ask::Check(_) => &view::check::VIEW,
            Ask::Explain(_) => &view::explain::VIEW,
            Ask::Movers { .. } => &view::movers::VIEW,
            Ask::Steps { .. } => &view::steps::VIEW,
            Ask::Shifts { .. } => &view::shifts::VIEW,
            #[cfg(feature = "html")]
            Ask::Timelines { .. } => &view::timelines::VIEW,
            Ask::Values { .. } => &view::values::VIEW,
        }
    }

    /// The view's name.
    pub fn name(&self) -> &'static str {
        self.view().name
    }

    /// The regular expression, of a view that has one.
    fn regex(&self) -> Option<&str> {
        match self {
            Ask::Peek { regex, .. }
            | Ask::Roots { regex, .. }
            | Ask::List { regex, .. }
            | Ask::Disasm { regex, .. } => Some(regex),
            _ => None,
        }
    }

    /// The most rows, where the view has rows.
    pub fn limit_mut(&mut self) -> Option<&mut Option<usize>> {
        match self {
            Ask::Top { limit, .. }
            | Ask::Peek { limit, .. }
            | Ask::Roots { limit, .. }
            | Ask::Tree { limit, .. }
            | Ask::Stacks { limit, .. }
            | Ask::Traces { limit }
            | Ask::Labels { limit }
            | Ask::List { limit, .. }
            | Ask::Disasm { limit, .. }
            | Ask::Movers { limit, .. }
            | Ask::Steps { limit, .. }
            | Ask::Shifts { limit, .. }
            | Ask::Values { limit, .. } => Some(limit),
            #[cfg(feature = "check")]
            Ask::Check(_) => None,
            Ask::Graph(_) | Ask::Profile(_) | Ask::Info | Ask::Explain(_) => None,
            Ask::Raw | Ask::Comments => None,
            #[cfg(feature = "html")]
            Ask::Timelines { limit, .. } => Some(limit),
            #[cfg(feature = "html")]
            Ask::Page { .. } => None,
        }
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
    pub fn asking(&self, ask: Ask) -> Request {
        Request { ask, ..self.clone() }
    }

    /// What to say where the expression of a view matches nothing, most likely by mistake: with the names most like it.
    ///
    /// # Errors
    /// Those of the answer.
    pub fn unmatched(&self, report: &Report, diff: &Diff) -> Result<Option<String>> {
        let (Some(regex), Some(what)) = (self.ask.regex(), self.ask.view().matched) else { return Ok(None) };
        if !report.matches_nothing() {
            return Ok(None);
        }
        if let Ask::Disasm { .. } = self.ask
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
        let of = match &self.ask {
            Ask::Top { significant: true, .. } => " of significant rows",
            _ if self.query.extra_sample_types.is_empty() => "",
            _ => " of several sample types",
        };
        format!("{}{of}", self.ask.name())
    }

    /// The query of what is asked of one sample type.
    ///
    /// # Errors
    /// Several sample types.
    pub fn of_one_type(&self) -> Result<&Query> {
        match self.query.extra_sample_types.is_empty() {
            true => Ok(&self.query),
            false => Err(Error::query(format!("{} shows one sample type at a time", self.ask.name()))),
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
        let view = self.ask.view();
        self.query.check_scope(view.name, view.scope)?;
        work::begin_phase("comparing");
        if view.of == Of::OneType {
            self.of_one_type()?;
        }
        let asked = &Question { query: &self.query, diff, select: &select };
        let most = |limit: &Option<usize>| limit.unwrap_or(usize::MAX);
        match &self.ask {
            Ask::Top { sort, limit, significant } => view::top::answer(asked, *sort, most(limit), *significant),
            Ask::Peek { regex, sort, limit } => view::peek::answer(asked, regex, *sort, most(limit)),
            Ask::Roots { regex, limit } => view::roots::answer(asked, regex, most(limit)),
            Ask::Tree { sort, limit } => view::tree::answer(asked, *sort, most(limit)),
            Ask::Stacks { by_labels, limit } => view::stacks::answer(asked, *by_labels, most(limit)),
            Ask::Traces { limit } => view::traces::answer(asked, most(limit)),
            Ask::Labels { limit } => view::labels::answer(asked, most(limit)),
            Ask::List { regex, sources, limit } => view::list::answer(asked, regex, sources, most(limit)),
            Ask::Disasm { regex, limit } => view::disasm::answer(asked, regex, most(limit)),
            Ask::Graph(options) => view::graph::answer(asked, options),
            #[cfg(feature = "html")]
            Ask::Page { options, sources } => view::page::answer(asked, options, sources.as_ref()),
            Ask::Profile(options) => view::profile::answer(asked, options),
            Ask::Info => Ok(view::info::answer(asked)),
            Ask::Raw => view::raw::answer(asked),
            Ask::Comments => Ok(view::comments::answer(asked)),
            #[cfg(feature = "check")]
            Ask::Check(options) => view::check::answer(asked, options),
            Ask::Explain(options) => view::explain::answer(asked, options),
            #[cfg(feature = "html")]
            Ask::Timelines { .. } => Err(self.of_many()),
            Ask::Movers { .. } | Ask::Steps { .. } | Ask::Shifts { .. } | Ask::Values { .. } => Err(self.of_many()),
        }
    }

    fn of_many(&self) -> Error {
        Error::query(format!("{} are of many builds", self.ask.name()))
    }

    /// The answer of many builds, which were loaded by this request's query, and are loaded again so where that is needed.
    ///
    /// # Errors
    /// A view of a diff; as [`Series::explain`].
    pub fn answer_series(&self, series: &Series, load: &LoadOptions) -> Result<Report> {
        let most = |limit: &Option<usize>| limit.unwrap_or(usize::MAX);
        Ok(Report::Table(match &self.ask {
            Ask::Movers { sort, limit } => view::movers::answer(series, *sort, most(limit)),
            Ask::Steps { sort, limit } => view::steps::answer(series, *sort, most(limit)),
            Ask::Shifts { sort, limit, explain } => {
                view::shifts::answer(series, *sort, most(limit), explain.as_ref(), load)?
            }
            Ask::Values { dense, limit } => view::values::answer(series, *dense, most(limit))?,
            #[cfg(feature = "html")]
            Ask::Timelines { lasting, sort, limit, options } => {
                return view::timelines::answer(series, *lasting, *sort, most(limit), options, load);
            }
            _ => return Err(Error::query(format!("{} is a view of a diff, not of many builds", self.ask.name()))),
        }))
    }
}
