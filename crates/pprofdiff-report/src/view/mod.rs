//! The views: one file each with its descriptor, its columns, its text and its answer. A [`View`] selects a view and
//! its options.

#[cfg(feature = "check")]
pub(crate) mod check;
pub(crate) mod comments;
pub(crate) mod disasm;
pub(crate) mod explain;
pub(crate) mod extension;
pub(crate) mod graph;
pub(crate) mod info;
pub(crate) mod labels;
pub(crate) mod list;
pub(crate) mod movers;
pub(crate) mod peek;
pub(crate) mod profile;
pub(crate) mod ranking;
pub(crate) mod raw;
pub(crate) mod roots;
pub(crate) mod shifts;
pub(crate) mod stacks;
pub(crate) mod steps;
pub(crate) mod top;
pub(crate) mod traces;
pub(crate) mod tree;
pub(crate) mod values;

use serde::{Deserialize, Serialize};

#[cfg(feature = "check")]
use self::check::CheckOptions;
use self::extension::AnyView;
use crate::report::Report;
use crate::table::Kind;
use pprofdiff::graph::GraphOptions;
use pprofdiff::list::SourceDirs;
use pprofdiff::options::Scope;
use pprofdiff::{Diff, Error, LoadOptions, Measure, Query, Result, Selection, Sort, WriteOptions};
use pprofdiff_explain::ExplainOptions;
use pprofdiff_series::Series;
use pprofdiff_series::histories::RankedHistory;

/// The descriptor of a view: one row of a table. It states what the view takes, how `-n` limits it, and the forms of
/// output that show it. Verbs, help, batches, agents and errors ask this row; `refusals` decides from it whether a
/// request is possible.
#[derive(Debug)]
#[non_exhaustive]
pub struct ViewSpec {
    /// The name of the view, and of its verb if it has one.
    pub name: &'static str,
    /// One line of help.
    pub about: &'static str,
    /// The query options that the view supports.
    pub scope: Scope,
    /// The kind of input.
    pub input: ViewInput,
    /// The text that the view's regular expression is matched against, if the view has an expression.
    pub matched: Option<MatchTarget>,
    /// The forms of output that show the view. The view refuses all other formats.
    pub forms: &'static [Form],
    /// How a maximum number of rows limits the view.
    pub limit: RowLimit,
    /// The kinds of tables that the view defines. Empty for a view that is not a table, or that uses another view's
    /// kinds.
    pub(crate) kinds: &'static [&'static Kind],
    /// Builds the view from options that many views share, for verbs and for batches. `None` for views that need other
    /// options.
    pub view: Option<fn(ViewOptions) -> View>,
    /// True if a batch of many pairs accepts this view by name.
    pub(crate) of_pairs: bool,
    /// The options that the view uses, in addition to the expression and the query.
    pub takes: &'static [Takes],
    /// The options of the query that the view refuses although they are in its scope.
    pub refuses: &'static [&'static str],
    /// Describes an option of the view that only rows show, such as ` of significant rows`. Pictures, pages and profiles
    /// refuse the view while it returns a description, which may be empty.
    pub(crate) narrowed: fn(&View) -> Option<&'static str>,
    /// Restores the view from its options as JSON, for views of crates above this one.
    pub(crate) restore: Option<fn(&str) -> serde_json::Result<AnyView>>,
}

/// The options that views share that can be selected by name, with [`ViewSpec::view`].
#[derive(Debug, Clone, Default)]
pub struct ViewOptions {
    /// The regular expression; unused by views without one.
    pub regex: String,
    /// The order of rows.
    pub sort: Sort,
    /// Keeps samples with different labels separate.
    pub by_labels: bool,
    /// The folders of the sources.
    pub sources: SourceDirs,
}

/// An option that only some views use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Takes {
    /// The order of rows.
    Sort,
    /// Separate rows for different labels.
    Labels,
    /// Source folders.
    Sources,
    /// A box for each path to a frame, instead of a box for each frame.
    CallTree,
    /// A row for each build and frame.
    Dense,
    /// An explanation of each row. Any text can end with an explanation in one line.
    Explain,
}

/// The target of a view's regular expression.
#[derive(Debug)]
pub struct MatchTarget {
    /// The noun for a match, such as `frame`.
    pub noun: &'static str,
    /// One sentence of help about the searched text.
    pub about: &'static str,
}

impl MatchTarget {
    /// Frames, matched by their labels.
    pub(crate) const FRAMES: Option<MatchTarget> = Some(MatchTarget {
        noun: "frame",
        about: "Matched against each frame's name, plus file and line if the granularity includes them",
    });
}

/// The input of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ViewInput {
    /// A diff or a profile, with one sample type.
    OneType,
    /// A diff or a profile, with several sample types side by side.
    SeveralTypes,
    /// Many builds.
    Builds,
    /// Many pairs.
    ManyPairs,
}

/// The form of a format's output. Each format has one form, and each view lists the forms that show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// Text for terminals.
    Text,
    /// One JSON document.
    Json,
    /// One JSON object per pair, for many pairs. It shows no view of a single pair.
    Lines,
    /// One table of rows.
    Rows,
    /// Tables and findings among prose, for reviews.
    Prose,
    /// The findings of a check, for CI systems.
    Findings,
    /// All stacks with their costs.
    Stacks,
    /// One profile.
    Profile,
    /// A picture of the call graph.
    Graph,
    /// All calls between addresses.
    Calls,
    /// An interactive page.
    Page,
}

impl Form {
    /// The forms of views that are one table or a list of tables.
    pub(crate) const OF_ROWS: &'static [Form] = &[Form::Text, Form::Json, Form::Rows, Form::Prose];
    /// The forms of views that are neither a table nor only text.
    pub(crate) const TEXT_AND_JSON: &'static [Form] = &[Form::Text, Form::Json];

    /// Returns true for a form that always contains the whole profile, and therefore has no row limit.
    pub fn is_whole(self) -> bool {
        matches!(self, Form::Stacks | Form::Profile | Form::Calls)
    }

    /// Returns true for a form that draws or writes the query itself: it has one sample type, and no options of tables.
    pub(crate) fn is_picture(self) -> bool {
        self.is_whole() || matches!(self, Form::Graph | Form::Page)
    }
}

/// How a maximum number of rows limits a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowLimit {
    /// The view has no rows, and ignores the number.
    None,
    /// It limits rows. The default is the format's.
    Rows,
    /// It limits functions. By default, all are shown.
    Functions,
    /// It limits the nodes of a graph. The default is that of [`GraphOptions`].
    Nodes,
    /// The view refuses the number. The text says what to use instead.
    Refused(&'static str),
}

/// The views of this crate, in the order that help lists them.
pub(crate) static STANDARD: &[&ViewSpec] = &[
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
    &values::VIEW,
];

/// The view of many pairs, which no [`View`] selects.
pub(crate) const RANKING: &ViewSpec = &ranking::VIEW;

impl ViewSpec {
    /// The defaults of a descriptor: a view of one sample type, without an expression and without tables, that only
    /// formats of its own show and that cannot be selected by name.
    pub(crate) const BASE: ViewSpec = ViewSpec {
        name: "",
        about: "",
        scope: Scope::Everything,
        input: ViewInput::OneType,
        matched: None,
        forms: &[],
        limit: RowLimit::None,
        kinds: &[],
        view: None,
        of_pairs: false,
        takes: &[],
        refuses: &[],
        narrowed: |_| None,
        restore: None,
    };

    /// Adds the forms of output that show a view of a crate above this one, its options, and how rows are limited.
    #[must_use]
    pub const fn shown_as(self, forms: &'static [Form], takes: &'static [Takes], limit: RowLimit) -> ViewSpec {
        ViewSpec { forms, takes, limit, ..self }
    }

    /// Returns the error of a view of many builds for a diff.
    pub(crate) fn needs_builds(&self) -> Error {
        Error::query(format!("{} is a view of many builds, not of a diff", self.name))
    }

    /// Returns the error of a view of a diff for many builds.
    pub(crate) fn needs_diff(&self) -> Error {
        Error::query(format!("{} is a view of a diff, not of many builds", self.name))
    }

    /// The defaults of views whose input is many builds and whose output is a table.
    const OF_BUILDS: ViewSpec =
        ViewSpec { input: ViewInput::Builds, forms: Form::OF_ROWS, limit: RowLimit::Rows, ..ViewSpec::BASE };
}

/// A view with its options. `limit` is the maximum number of rows, nodes or functions; `None` shows all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum View {
    /// The table of frames.
    Top {
        /// The order of rows.
        sort: Sort,
        /// The maximum number of rows.
        limit: Option<usize>,
        /// Only rows whose change is significant. Supports one sample type only.
        #[serde(default)]
        significant: bool,
    },
    /// The callers and callees of matching frames.
    Peek {
        /// The expression for frame labels.
        regex: String,
        /// The order of nodes.
        sort: Sort,
        /// The maximum number of nodes.
        limit: Option<usize>,
    },
    /// The callers of matching frames, as whole chains from the root.
    Roots {
        /// The expression for frame labels.
        regex: String,
        /// The maximum number of rows.
        limit: Option<usize>,
    },
    /// The callers and callees of all frames.
    Tree {
        /// The order of nodes.
        sort: Sort,
        /// The maximum number of nodes.
        limit: Option<usize>,
    },
    /// Whole stacks.
    Stacks {
        /// Keeps stacks apart whose samples have different labels.
        by_labels: bool,
        /// The maximum number of rows.
        limit: Option<usize>,
    },
    /// Whole stacks with their labels, each from the leaf, like `-traces` of pprof.
    Traces {
        /// The maximum number of rows.
        limit: Option<usize>,
    },
    /// The cost of each label value.
    Labels {
        /// The maximum number of rows per key.
        limit: Option<usize>,
    },
    /// Source lines of matching functions.
    List {
        /// The expression for function names.
        regex: String,
        /// The folders of the sources.
        sources: SourceDirs,
        /// The maximum number of functions.
        limit: Option<usize>,
    },
    /// Instructions of matching functions, for profiles that were loaded with binaries.
    Disasm {
        /// The expression for function names as they appear in the binary.
        regex: String,
        /// The maximum number of functions.
        limit: Option<usize>,
    },
    /// The call graph.
    Graph(GraphOptions),
    /// The diff written as one profile.
    Profile(WriteOptions),
    /// The metadata of the input files.
    Info,
    /// All samples and tables of a profile, or of the diff merged into one profile, with their numbers.
    Raw,
    /// The comments that producers stored.
    Comments,
    /// A check of all changes against limits. The profiles of a side are its runs.
    #[cfg(feature = "check")]
    Check(CheckOptions),
    /// The causes of the difference between both sides. The profiles of a side are its runs.
    Explain(ExplainOptions),
    /// The frames of many builds, ranked by their largest step.
    Movers {
        /// The cost (flat or cum) that defines the steps.
        sort: Sort,
        /// The maximum number of rows.
        limit: Option<usize>,
    },
    /// All steps between compared builds, which are consecutive unless all are compared with the first.
    Steps {
        /// The cost (flat or cum) that defines the steps.
        sort: Sort,
        /// The maximum number of rows.
        limit: Option<usize>,
    },
    /// The builds where a frame's cost changes lastingly.
    Shifts {
        /// The cost that is searched for changes.
        sort: Sort,
        /// The maximum number of rows.
        limit: Option<usize>,
        /// Explains each shift. This loads the builds around each shift again.
        explain: Option<ExplainOptions>,
    },
    /// The cost of each frame in each build.
    Values {
        /// Adds a row for each build and frame, even where the build does not contain the frame.
        dense: bool,
        /// The maximum number of rows.
        limit: Option<usize>,
    },
    /// A view of a crate above this one.
    Extension(AnyView),
}

impl Default for View {
    fn default() -> View {
        View::Top { sort: Sort::default(), limit: None, significant: false }
    }
}

impl View {
    /// Returns the view with at most `max_rows` rows, and with this order if it takes one ([`Takes::Sort`]). Views
    /// without a limit stay unchanged.
    #[must_use]
    pub fn ordered(mut self, new_sort: Sort, max_rows: Option<usize>) -> View {
        if let Some(sort) = self.sort_mut() {
            *sort = new_sort;
        }
        if let Some(limit) = self.limit_mut() {
            *limit = max_rows;
        }
        self
    }

    /// Returns the descriptor of the view.
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
            View::Values { .. } => &values::VIEW,
            View::Extension(view) => view.spec(),
        }
    }

    /// Returns the name of the view.
    pub fn name(&self) -> &'static str {
        self.spec().name
    }

    /// Returns the regular expression, for views that have one.
    pub fn regex(&self) -> Option<&str> {
        match self {
            View::Peek { regex, .. }
            | View::Roots { regex, .. }
            | View::List { regex, .. }
            | View::Disasm { regex, .. } => Some(regex),
            View::Extension(view) => view.regex(),
            _ => None,
        }
    }

    /// Returns the order of rows for modification, or `None` for views that do not take one.
    fn sort_mut(&mut self) -> Option<&mut Sort> {
        match self {
            View::Top { sort, .. } | View::Tree { sort, .. } | View::Peek { sort, .. } => Some(sort),
            View::Extension(view) => view.sort_mut(),
            _ => None,
        }
    }

    /// Returns the maximum number of rows, nodes or functions for modification, or `None` for views without a limit.
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
            View::Extension(view) => view.limit_mut(),
            _ => None,
        }
    }

    /// Returns the maximum number of rows, nodes or functions, or `None` if all are shown.
    pub(crate) fn limit(&self) -> Option<usize> {
        self.clone().limit_mut().and_then(|limit| *limit)
    }

    /// Computes the answer for a diff or a profile.
    ///
    /// # Errors
    /// Fails if the view is a view of many builds, and where the view fails.
    pub(crate) fn answer(&self, context: &ViewContext<'_>) -> Result<Report> {
        let max_rows = |limit: &Option<usize>| limit.unwrap_or(usize::MAX);
        match self {
            View::Top { sort, limit, significant } => top::answer(context, *sort, max_rows(limit), *significant),
            View::Peek { regex, sort, limit } => peek::answer(context, regex, *sort, max_rows(limit)),
            View::Roots { regex, limit } => roots::answer(context, regex, max_rows(limit)),
            View::Tree { sort, limit } => tree::answer(context, *sort, max_rows(limit)),
            View::Stacks { by_labels, limit } => stacks::answer(context, *by_labels, max_rows(limit)),
            View::Traces { limit } => traces::answer(context, max_rows(limit)),
            View::Labels { limit } => labels::answer(context, max_rows(limit)),
            View::List { regex, sources, limit } => list::answer(context, regex, sources, max_rows(limit)),
            View::Disasm { regex, limit } => disasm::answer(context, regex, max_rows(limit)),
            View::Graph(options) => graph::answer(context, options),
            View::Profile(options) => profile::answer(context, options),
            View::Info => Ok(info::answer(context)),
            View::Raw => raw::answer(context),
            View::Comments => Ok(comments::answer(context)),
            #[cfg(feature = "check")]
            View::Check(options) => check::answer(context, options),
            View::Explain(options) => explain::answer(context, options),
            View::Extension(view) => view.answer(context),
            View::Movers { .. } | View::Steps { .. } | View::Shifts { .. } | View::Values { .. } => {
                Err(self.spec().needs_builds())
            }
        }
    }

    /// Computes the answer for a history, whose lasting changes by `sort` are known.
    pub(crate) fn answer_history(&self, history: &RankedHistory, sort: Sort, load: &LoadOptions) -> Result<Report> {
        match self {
            View::Shifts { sort: by, limit, explain } if *by == sort => {
                let limit = limit.unwrap_or(usize::MAX);
                let (series, known) = (&history.series, &history.shifts);
                shifts::answer_known(series, known, limit, explain.as_ref(), load).map(Report::Table)
            }
            _ => self.answer_series(&history.series, load),
        }
    }

    /// Computes the answer for many builds.
    ///
    /// # Errors
    /// Fails if the view is a view of a diff, and where the view fails.
    pub(crate) fn answer_series(&self, series: &Series, load: &LoadOptions) -> Result<Report> {
        let max_rows = |limit: &Option<usize>| limit.unwrap_or(usize::MAX);
        Ok(Report::Table(match self {
            View::Movers { sort, limit } => movers::answer(series, *sort, max_rows(limit)),
            View::Steps { sort, limit } => steps::answer(series, *sort, max_rows(limit)),
            View::Shifts { sort, limit, explain } => {
                shifts::answer(series, *sort, max_rows(limit), explain.as_ref(), load)?
            }
            View::Values { dense, limit } => values::answer(series, *dense, max_rows(limit))?,
            View::Extension(view) => return view.answer_series(series, load),
            _ => return Err(self.spec().needs_diff()),
        }))
    }
}

/// The inputs for computing a view of a diff.
pub struct ViewContext<'a> {
    /// The query.
    pub query: &'a Query,
    /// The diff or profile.
    pub diff: &'a Diff,
    /// Selects samples and frames, possibly from a cache.
    pub select: &'a dyn Fn(&Query) -> Result<Selection>,
}

impl std::fmt::Debug for ViewContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ViewContext").finish_non_exhaustive()
    }
}

impl ViewContext<'_> {
    /// Computes the costs of the query's first sample type, for views that support only one.
    pub(crate) fn single_measure(&self) -> Result<Measure> {
        let sample_type = self.query.sample_type.as_deref();
        // Look the sample type up first: an unknown name then fails before the expensive selection.
        self.diff.find_sample_type(sample_type)?;
        (self.select)(self.query)?.measure(sample_type, self.query.normalize)
    }

    /// Calls `make` for each sample type of the query. All share one selection. Fails if a sample type does not exist
    /// or is given twice.
    pub(crate) fn per_sample_type<T>(&self, make: impl Fn(&Measure) -> Result<T>) -> Result<Vec<T>> {
        let (first, extra) = (self.query.sample_type.as_deref(), &self.query.extra_sample_types);
        let types: Vec<_> = std::iter::once(first).chain(extra.iter().map(|name| Some(name.as_str()))).collect();
        // Look the sample types up first: an unknown name then fails before the expensive selection.
        let numbers = types.iter().map(|name| self.diff.find_sample_type(*name)).collect::<Result<Vec<_>>>()?;
        if let Some(i) = (1..numbers.len()).find(|&i| numbers[..i].contains(&numbers[i])) {
            return Err(Error::query(format!("sample type {:?} is given twice", extra[i - 1])));
        }
        let selection = (self.select)(self.query)?;
        types.into_iter().map(|name| make(&selection.measure(name, self.query.normalize)?)).collect()
    }
}
