//! Views: a file each, with its descriptor, its rows (columns, text) and its answer. Which view is asked, with its options,
//! is an [`View`].

#[cfg(feature = "check")]
pub(crate) mod check;
pub(crate) mod comments;
pub(crate) mod disasm;
pub(crate) mod explain;
pub(crate) mod graph;
pub(crate) mod info;
pub(crate) mod labels;
pub(crate) mod list;
pub(crate) mod movers;
#[cfg(feature = "html")]
pub(crate) mod page;
pub(crate) mod peek;
pub(crate) mod profile;
pub(crate) mod ranking;
pub(crate) mod raw;
pub(crate) mod roots;
pub(crate) mod shifts;
pub(crate) mod stacks;
pub(crate) mod steps;
#[cfg(feature = "html")]
pub(crate) mod timelines;
pub(crate) mod top;
pub(crate) mod traces;
pub(crate) mod tree;
pub(crate) mod values;

use serde::{Deserialize, Serialize};

#[cfg(feature = "html")]
use crate::page::PageOptions;
use crate::report::Report;
#[cfg(feature = "check")]
use crate::request::CheckOptions;
use crate::table::Kind;
use pprofdiff::explain::ExplainOptions;
use pprofdiff::graph::GraphOptions;
use pprofdiff::list::SourceDirs;
use pprofdiff::options::Scope;
use pprofdiff::series::Series;
use pprofdiff::{Diff, Error, LoadOptions, Measure, Query, Result, Selection, Sort, WriteOptions};

/// What is said of a view anywhere: a row of the table of views.
#[derive(Debug)]
#[non_exhaustive]
pub struct ViewSpec {
    /// Its name, which is that of its verb if it has one.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// Which options of a query it takes.
    pub scope: Scope,
    /// What it is of.
    pub of: Of,
    /// What its regular expression is matched against, if it has one.
    pub matched: Option<Matched>,
    /// Which formats show it.
    pub shown_by: ShownBy,
    /// What its tables have for rows; none if it has no tables of its own.
    pub(crate) kinds: &'static [&'static Kind],
    /// The question that is asked by the view's name alone: by its verb, and of many pairs.
    pub view: Option<fn(ViewOptions) -> View>,
    /// True if many pairs are asked for it by name.
    pub(crate) of_pairs: bool,
    /// What it takes of [`ViewOptions`], besides the expression.
    pub takes: &'static [Takes],
}

/// What views take that are asked by name alone.
#[derive(Debug, Clone, Default)]
pub struct ViewOptions {
    /// The regular expression, of a view that has one.
    pub regex: String,
    /// What rows are ordered by.
    pub sort: Sort,
    /// Whether samples with different labels are told apart.
    pub by_labels: bool,
    /// Where the sources are.
    pub sources: SourceDirs,
}

/// An option of [`ViewOptions`] that not all views take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Takes {
    /// An order.
    Sort,
    /// Labels.
    Labels,
    /// Folders of sources.
    Sources,
}

/// What a view's regular expression is matched against.
#[derive(Debug)]
pub struct Matched {
    /// What matches.
    pub what: &'static str,
    /// What of it is searched.
    pub about: &'static str,
}

impl Matched {
    /// Frames by their labels.
    pub(crate) const FRAMES: Option<Matched> = Some(Matched {
        what: "frame",
        about: "Matched against each frame's name, with its file and line at such granularities",
    });
}

/// What a view is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Of {
    /// A diff or a profile, by one sample type.
    OneType,
    /// A diff or a profile, by several sample types side by side.
    SeveralTypes,
    /// Many builds.
    Builds,
    /// Many pairs.
    ManyPairs,
}

/// Which formats show a view, besides those that make another view of its question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ShownBy {
    /// Formats that are made for it: pictures, pages, profiles.
    OwnFormats,
    /// Text.
    Text,
    /// Text and JSON.
    Json,
    /// All formats of rows.
    Rows,
}

/// All views.
static VIEWS: &[&ViewSpec] = &[
    &top::VIEW,
    &tree::VIEW,
    &peek::VIEW,
    &roots::VIEW,
    &list::VIEW,
    &disasm::VIEW,
    &stacks::VIEW,
    &traces::VIEW,
    &labels::VIEW,
    &graph::VIEW,
    #[cfg(feature = "html")]
    &page::VIEW,
    &profile::VIEW,
    &info::VIEW,
    &raw::VIEW,
    &comments::VIEW,
    #[cfg(feature = "check")]
    &check::VIEW,
    &explain::VIEW,
    &ranking::VIEW,
    &movers::VIEW,
    &steps::VIEW,
    &shifts::VIEW,
    #[cfg(feature = "html")]
    &timelines::VIEW,
    &values::VIEW,
];

impl ViewSpec {
    /// What most views have in common: they are asked by what has options of its own, of one sample type, and shown by
    /// formats that are made for them.
    pub(crate) const BASE: ViewSpec = ViewSpec {
        name: "",
        about: "",
        scope: Scope::Everything,
        of: Of::OneType,
        matched: None,
        shown_by: ShownBy::OwnFormats,
        kinds: &[],
        view: None,
        of_pairs: false,
        takes: &[],
    };

    /// What tables of many builds have in common.
    const OF_BUILDS: ViewSpec = ViewSpec { of: Of::Builds, shown_by: ShownBy::Rows, ..ViewSpec::BASE };

    /// All views.
    pub fn all() -> &'static [&'static ViewSpec] {
        VIEWS
    }

    /// The view of a name, as many pairs are asked for it: `top`, or `peek=RE` of one with an expression.
    pub(crate) fn of_pairs(text: &str) -> Result<View> {
        let (name, regex) = text.split_once('=').unwrap_or((text, ""));
        let named =
            |spec: &&&ViewSpec| spec.of_pairs && spec.name == name && spec.matched.is_some() != regex.is_empty();
        match ViewSpec::all().iter().find(named).and_then(|spec| spec.view) {
            Some(view) => Ok(view(ViewOptions { regex: regex.to_owned(), ..ViewOptions::default() })),
            None => Err(Error::query(format!("a view is {}, not {text:?}", ViewSpec::names_of_pairs()))),
        }
    }

    /// The names of views that many pairs are asked for.
    pub fn names_of_pairs() -> String {
        let views = ViewSpec::all().iter().filter(|spec| spec.of_pairs);
        let name =
            |spec: &&ViewSpec| if spec.matched.is_some() { format!("{}=RE", spec.name) } else { spec.name.to_owned() };
        views.map(name).collect::<Vec<_>>().join(", ")
    }
}

/// The views, each with its own options. `limit` is the most rows; all if not given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum View {
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

impl Default for View {
    fn default() -> View {
        View::Top { sort: Sort::default(), limit: None, significant: false }
    }
}

impl std::str::FromStr for View {
    type Err = Error;

    /// A view of rows by its name, as many pairs are asked for it: `top`, or `peek=RE` of one with an expression.
    fn from_str(text: &str) -> Result<View> {
        ViewSpec::of_pairs(text)
    }
}

impl View {
    /// The same view in this order, where it has a choice, with this many rows at most.
    #[must_use]
    pub fn ordered(mut self, by: Sort, most: Option<usize>) -> View {
        if let View::Top { sort, .. } | View::Tree { sort, .. } | View::Peek { sort, .. } = &mut self {
            *sort = by;
        }
        if let Some(limit) = self.limit_mut() {
            *limit = most;
        }
        self
    }

    /// What is said of it anywhere.
    pub fn spec(&self) -> &'static ViewSpec {
        match self {
            View::Top { .. } => &top::VIEW,
            View::Peek { .. } => &peek::VIEW,
            View::Roots { .. } => &roots::VIEW,
            View::Tree { .. } => &tree::VIEW,
            View::Stacks { .. } => &stacks::VIEW,
            View::Traces { .. } => &traces::VIEW,
            View::Labels { .. } => &labels::VIEW,
            View::List { .. } => &list::VIEW,
            View::Disasm { .. } => &disasm::VIEW,
            View::Graph(_) => &graph::VIEW,
            #[cfg(feature = "html")]
            View::Page { .. } => &page::VIEW,
            View::Profile(_) => &profile::VIEW,
            View::Info => &info::VIEW,
            View::Raw => &raw::VIEW,
            View::Comments => &comments::VIEW,
            #[cfg(feature = "check")]
            View::Check(_) => &check::VIEW,
            View::Explain(_) => &explain::VIEW,
            View::Movers { .. } => &movers::VIEW,
            View::Steps { .. } => &steps::VIEW,
            View::Shifts { .. } => &shifts::VIEW,
            #[cfg(feature = "html")]
            View::Timelines { .. } => &timelines::VIEW,
            View::Values { .. } => &values::VIEW,
        }
    }

    /// The view's name.
    pub fn name(&self) -> &'static str {
        self.spec().name
    }

    /// The regular expression, of a view that has one.
    pub fn regex(&self) -> Option<&str> {
        match self {
            View::Peek { regex, .. }
            | View::Roots { regex, .. }
            | View::List { regex, .. }
            | View::Disasm { regex, .. } => Some(regex),
            _ => None,
        }
    }

    /// The most rows, where the view has rows.
    pub fn limit_mut(&mut self) -> Option<&mut Option<usize>> {
        match self {
            View::Top { limit, .. }
            | View::Peek { limit, .. }
            | View::Roots { limit, .. }
            | View::Tree { limit, .. }
            | View::Stacks { limit, .. }
            | View::Traces { limit }
            | View::Labels { limit }
            | View::List { limit, .. }
            | View::Disasm { limit, .. }
            | View::Movers { limit, .. }
            | View::Steps { limit, .. }
            | View::Shifts { limit, .. }
            | View::Values { limit, .. } => Some(limit),
            #[cfg(feature = "html")]
            View::Timelines { limit, .. } => Some(limit),
            _ => None,
        }
    }

    /// The answer of a diff or a profile.
    pub(crate) fn answer(&self, asked: &Question<'_>) -> Result<Report> {
        let most = |limit: &Option<usize>| limit.unwrap_or(usize::MAX);
        let of_many = || Error::query(format!("{} are of many builds", self.name()));
        match self {
            View::Top { sort, limit, significant } => top::answer(asked, *sort, most(limit), *significant),
            View::Peek { regex, sort, limit } => peek::answer(asked, regex, *sort, most(limit)),
            View::Roots { regex, limit } => roots::answer(asked, regex, most(limit)),
            View::Tree { sort, limit } => tree::answer(asked, *sort, most(limit)),
            View::Stacks { by_labels, limit } => stacks::answer(asked, *by_labels, most(limit)),
            View::Traces { limit } => traces::answer(asked, most(limit)),
            View::Labels { limit } => labels::answer(asked, most(limit)),
            View::List { regex, sources, limit } => list::answer(asked, regex, sources, most(limit)),
            View::Disasm { regex, limit } => disasm::answer(asked, regex, most(limit)),
            View::Graph(options) => graph::answer(asked, options),
            #[cfg(feature = "html")]
            View::Page { options, sources } => page::answer(asked, options, sources.as_ref()),
            View::Profile(options) => profile::answer(asked, options),
            View::Info => Ok(info::answer(asked)),
            View::Raw => raw::answer(asked),
            View::Comments => Ok(comments::answer(asked)),
            #[cfg(feature = "check")]
            View::Check(options) => check::answer(asked, options),
            View::Explain(options) => explain::answer(asked, options),
            #[cfg(feature = "html")]
            View::Timelines { .. } => Err(of_many()),
            View::Movers { .. } | View::Steps { .. } | View::Shifts { .. } | View::Values { .. } => Err(of_many()),
        }
    }

    /// The answer of many builds.
    pub(crate) fn answer_series(&self, series: &Series, load: &LoadOptions) -> Result<Report> {
        let most = |limit: &Option<usize>| limit.unwrap_or(usize::MAX);
        Ok(Report::Table(match self {
            View::Movers { sort, limit } => movers::answer(series, *sort, most(limit)),
            View::Steps { sort, limit } => steps::answer(series, *sort, most(limit)),
            View::Shifts { sort, limit, explain } => {
                shifts::answer(series, *sort, most(limit), explain.as_ref(), load)?
            }
            View::Values { dense, limit } => values::answer(series, *dense, most(limit))?,
            #[cfg(feature = "html")]
            View::Timelines { lasting, sort, limit, options } => {
                return timelines::answer(series, *lasting, *sort, most(limit), options, load);
            }
            _ => return Err(Error::query(format!("{} is a view of a diff, not of many builds", self.name()))),
        }))
    }
}

/// What is asked of a diff.
pub(crate) struct Question<'a> {
    pub query: &'a Query,
    pub diff: &'a Diff,
    pub select: &'a dyn Fn(&Query) -> Result<Selection>,
}

impl Question<'_> {
    /// The one sample type that is asked for.
    pub fn one(&self) -> Result<Measure> {
        let sample_type = self.query.sample_type.as_deref();
        // An unknown sample type costs nothing.
        self.diff.find_sample_type(sample_type)?;
        (self.select)(self.query)?.measure(sample_type, self.query.normalize)
    }

    /// Makes something of each of the sample types, which share a selection.
    pub fn each<T>(&self, make: impl Fn(&Measure) -> Result<T>) -> Result<Vec<T>> {
        let (first, extra) = (self.query.sample_type.as_deref(), &self.query.extra_sample_types);
        let types: Vec<_> = std::iter::once(first).chain(extra.iter().map(|name| Some(name.as_str()))).collect();
        // An unknown sample type costs nothing.
        let numbers = types.iter().map(|name| self.diff.find_sample_type(*name)).collect::<Result<Vec<_>>>()?;
        if let Some(i) = (1..numbers.len()).find(|&i| numbers[..i].contains(&numbers[i])) {
            return Err(Error::query(format!("the sample type {:?} is asked for twice", extra[i - 1])));
        }
        let selection = (self.select)(self.query)?;
        types.into_iter().map(|name| make(&selection.measure(name, self.query.normalize)?)).collect()
    }
}
