//! A request says everything that is asked of a diff or a profile; its answer is a [`Report`].
//!
//! A request can be stored and sent: it is what a verb of the command parses to, what a method in Python builds, what a
//! task of an executor carries and what a batch repeats. The inputs are no part of it.

use std::cmp::Reverse;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

#[cfg(feature = "html")]
use crate::courses::Courses;
use crate::format::Format;
#[cfg(feature = "html")]
use crate::page::{PageOptions, page, series_page};
use crate::report::Report;
use crate::series::causes_of;
use crate::table::{Kind, Table};
#[cfg(feature = "check")]
use pprofdiff::check::{How, Rules};
use pprofdiff::explain::ExplainOptions;
use pprofdiff::graph::GraphOptions;
use pprofdiff::random::HashSet;

use pprofdiff::list::SourceDirs;
use pprofdiff::options::Scope;
use pprofdiff::series::Series;
use pprofdiff::{Diff, Error, Granularity, LoadOptions, Measure, Query, Result, Selection, Sort, WriteOptions, work};

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
    Courses {
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

    /// A view of rows by its name, as many pairs are asked for it: `top`, `tree`, `stacks`, `traces`, `labels`, `explain`
    /// or `peek=RE`.
    fn from_str(text: &str) -> Result<Ask> {
        let (sort, limit) = (Sort::default(), None);
        match text.split_once('=').unwrap_or((text, "")) {
            ("top", "") => Ok(Ask::Top { sort, limit, significant: false }),
            ("tree", "") => Ok(Ask::Tree { sort, limit }),
            ("stacks", "") => Ok(Ask::Stacks { by_labels: false, limit }),
            ("traces", "") => Ok(Ask::Traces { limit }),
            ("labels", "") => Ok(Ask::Labels { limit }),
            ("explain", "") => Ok(Ask::Explain(ExplainOptions::default())),
            ("peek", regex) if !regex.is_empty() => Ok(Ask::Peek { regex: regex.to_owned(), sort, limit }),
            _ => Err(Error::query(format!(
                "a view is top, tree, stacks, traces, labels, explain or peek=RE, not {text:?}"
            ))),
        }
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

    /// The view's name.
    pub fn name(&self) -> &'static str {
        match self {
            Ask::Top { .. } => "top",
            Ask::Peek { .. } => "peek",
            Ask::Tree { .. } => "tree",
            Ask::Stacks { .. } => "stacks",
            Ask::Traces { .. } => "traces",
            Ask::Labels { .. } => "labels",
            Ask::List { .. } => "list",
            Ask::Disasm { .. } => "disasm",
            Ask::Graph(_) => "graph",
            #[cfg(feature = "html")]
            Ask::Page { .. } => "page",
            Ask::Profile(_) => "profile",
            Ask::Info => "info",
            Ask::Raw => "raw",
            Ask::Comments => "comments",
            #[cfg(feature = "check")]
            Ask::Check(_) => "check",
            Ask::Explain(_) => "explain",
            Ask::Movers { .. } => "movers",
            Ask::Steps { .. } => "steps",
            Ask::Shifts { .. } => "shifts",
            #[cfg(feature = "html")]
            Ask::Courses { .. } => "courses",
            Ask::Values { .. } => "values",
        }
    }

    /// Which options of a query it takes.
    fn scope(&self) -> Scope {
        match self {
            Ask::Top { .. } => Scope::Table,
            Ask::Peek { .. } | Ask::Tree { .. } => Scope::Sums,
            Ask::Graph(_) => Scope::Frames,
            Ask::List { .. } | Ask::Disasm { .. } | Ask::Stacks { .. } | Ask::Traces { .. } | Ask::Labels { .. } => {
                Scope::Rows
            }
            _ => Scope::Everything,
        }
    }

    /// The most rows, where the view has rows.
    pub fn limit_mut(&mut self) -> Option<&mut Option<usize>> {
        match self {
            Ask::Top { limit, .. }
            | Ask::Peek { limit, .. }
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
            Ask::Courses { limit, .. } => Some(limit),
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
        let (regex, what) = match &self.ask {
            Ask::Peek { regex, .. } => (regex, "frame"),
            Ask::List { regex, .. } | Ask::Disasm { regex, .. } => (regex, "function"),
            _ => return Ok(None),
        };
        if !report.matches_nothing() {
            return Ok(None);
        }
        if let Ask::Disasm { .. } = self.ask
            && let Some(inlined) = diff.only_inlined(regex)?.first()
        {
            let function = &inlined.function;
            return Ok(Some(format!(
                "{function} has no instructions of its own: it is inlined into {}",
                inlined.places()
            )));
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
        let query = &self.query;
        let is_joined = matches!(
            self.ask,
            Ask::Top { .. } | Ask::Peek { .. } | Ask::Tree { .. } | Ask::Stacks { .. } | Ask::Labels { .. }
        );
        query.check_scope(self.ask.name(), self.ask.scope())?;
        work::begin_phase("comparing");
        // An explanation may be asked of a cost and of what counts it.
        if !is_joined && !matches!(self.ask, Ask::Explain(_)) {
            self.of_one_type()?;
        }
        let one = || -> Result<Measure> {
            // An unknown sample type costs nothing.
            diff.find_sample_type(query.sample_type.as_deref())?;
            select(query)?.measure(query.sample_type.as_deref(), query.normalize)
        };
        let most = |limit: &Option<usize>| limit.unwrap_or(usize::MAX);
        Ok(match &self.ask {
            Ask::Top { sort, limit, significant } if self.query.extra_sample_types.is_empty() => {
                let measure = one()?;
                let mut top = match (*significant, measure.summary().is_of_runs()) {
                    (true, _) => measure.top_of_runs(*sort)?,
                    // What is asked for is the table; a run that can't be normalized by itself only hides chance.
                    (false, true) => measure.top_of_runs(*sort).unwrap_or_else(|e| {
                        let mut top = measure.top(*sort);
                        let warning = format!("what runs say is not known: {}", e.detail());
                        Arc::make_mut(&mut top.summary).warnings.push(warning);
                        top
                    }),
                    (false, false) => measure.top(*sort),
                };
                if *significant {
                    top.retain_significant();
                }
                Report::Table(Table::top(&top, most(limit)))
            }
            Ask::Top { significant: true, .. } => {
                return Err(Error::query("significant rows are those of one sample type at a time"));
            }
            Ask::Top { sort, limit, .. } => {
                let tops = self.each(diff, &select, |m| Ok(m.top(*sort)))?;
                Report::Table(Table::tops(&tops, most(limit)))
            }
            Ask::Peek { regex, sort, limit } => {
                let edges = self.each(diff, &select, |m| m.edges(Some(regex), *sort))?;
                Report::Table(Table::all_edges(&edges, Kind::Peek).head(most(limit)))
            }
            Ask::Tree { sort, limit } => {
                let edges = self.each(diff, &select, |m| m.edges(None, *sort))?;
                Report::Table(Table::all_edges(&edges, Kind::Tree).head(most(limit)))
            }
            Ask::Stacks { by_labels, limit } if self.query.extra_sample_types.is_empty() => {
                Report::Stacks(one()?.stacks(*by_labels), most(limit))
            }
            Ask::Stacks { by_labels, limit } => {
                let stacks = self.each(diff, &select, |m| Ok(m.stacks(*by_labels)))?;
                Report::Table(Table::all_stacks(&stacks).head(most(limit)))
            }
            Ask::Traces { limit } => Report::Traces(Table::stacks(&one()?.stacks(true), most(limit))),
            Ask::Labels { limit } => {
                let labels = self.each(diff, &select, |m| Ok(m.labels()))?;
                Report::Table(Table::all_labels(&labels).head(most(limit)))
            }
            Ask::List { regex, sources, limit } => {
                Report::Listing(diff.list(query, regex, &sources.files())?.head(most(limit)))
            }
            Ask::Disasm { regex, limit } => Report::Listing(diff.disasm(query, regex, most(limit))?),
            Ask::Graph(options) => Report::Graph(one()?.graph(options)?),
            #[cfg(feature = "html")]
            Ask::Page { options, sources } => {
                let files = sources.as_ref().map(SourceDirs::files);
                Report::Page(page(diff, query, options, files.as_ref().map(|f| f as &dyn pprofdiff::list::SourceCode))?)
            }
            Ask::Profile(options) => Report::Profile(diff.to_bytes(query, options)?),
            Ask::Info => Report::Info(diff.clone()),
            // A file is shown as it is, also where it says which frames to drop.
            Ask::Raw => match diff.new_side().next().filter(|_| diff.profiles().count() == 1) {
                Some(own) => Report::Raw(own.clone(), false),
                None => Report::Raw(Arc::new(diff.to_profile_as_read(query)?), true),
            },
            Ask::Comments => {
                // Those of one profile are all shown, of several each once.
                let (own, mut known) = (diff.profiles().count() == 1, HashSet::<_>::default());
                let profiles = diff.new_side().chain(diff.base().filter(|_| !own));
                let comments = profiles.flat_map(|profile| profile.comments());
                Report::Comments(comments.filter(|comment| own || known.insert(comment.clone())).collect())
            }
            #[cfg(feature = "check")]
            Ask::Check(options) => Report::Check(options.rules()?.check(diff, query)?),
            Ask::Explain(options) => {
                Report::Explain(Box::new(diff.explain(query, &query.extra_sample_types, options)?))
            }
            #[cfg(feature = "html")]
            Ask::Courses { .. } => return Err(self.of_many()),
            Ask::Movers { .. } | Ask::Steps { .. } | Ask::Shifts { .. } | Ask::Values { .. } => {
                return Err(self.of_many());
            }
        })
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
            Ask::Movers { sort, limit } => Table::movers(&series.movers(*sort), most(limit)),
            Ask::Steps { sort, limit } => Table::steps(&series.steps(*sort), most(limit)),
            Ask::Shifts { sort, limit, explain } => {
                let shifts = series.shifts(*sort);
                let causes = explain.as_ref().map(|options| causes_of(series, &shifts, most(limit), load, options));
                Table::shifts(&shifts, most(limit), &causes.transpose()?.unwrap_or_default())
            }
            Ask::Values { dense: true, limit } => Table::dense_values_of(series)?.head(most(limit)),
            Ask::Values { limit, .. } => Table::values_of(series).head(most(limit)),
            #[cfg(feature = "html")]
            Ask::Courses { lasting, sort, limit, options } => {
                let courses = Courses::new(series, *lasting, *sort, most(limit));
                return Ok(Report::Page(series_page(series, &courses, *sort, options, load)?));
            }
            _ => return Err(Error::query(format!("{} is a view of a diff, not of many builds", self.ask.name()))),
        }))
    }

    /// Makes something of each of the sample types, which share a selection.
    fn each<T>(
        &self,
        diff: &Diff,
        select: impl Fn(&Query) -> Result<Selection>,
        make: impl Fn(&Measure) -> Result<T>,
    ) -> Result<Vec<T>> {
        let first = self.query.sample_type.as_deref();
        let types: Vec<_> = std::iter::once(first)
            .chain(self.query.extra_sample_types.iter().map(|name| Some(name.as_str())))
            .collect();
        // An unknown sample type costs nothing.
        let numbers = types.iter().map(|name| diff.find_sample_type(*name)).collect::<Result<Vec<_>>>()?;
        if let Some(i) = (1..numbers.len()).find(|&i| numbers[..i].contains(&numbers[i])) {
            return Err(Error::query(format!(
                "the sample type {:?} is asked for twice",
                self.query.extra_sample_types[i - 1]
            )));
        }
        let selection = select(&self.query)?;
        types.into_iter().map(|name| make(&selection.measure(name, self.query.normalize)?)).collect()
    }
}
