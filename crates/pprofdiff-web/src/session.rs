//! A comparison session: the files, their sides, and the questions about them.
//!
//! In a diff, each file is read once and then answers many questions. A series does not keep its profiles in memory: it
//! reads the files again for each query, and keeps only the result of the last query.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock, OnceLock};

use pprofdiff::filter::Filters;
use pprofdiff::input::{Fetch, file_builds, sort_builds, two_names};
use pprofdiff::options::{Heading, OptionKind, OptionRow, OptionValue, spell};
use pprofdiff::{Diff, Error, LoadOptions, Profile, Query, Result, Sort, Source};
use pprofdiff_report::{Registry, Request, Style, View};
use pprofdiff_series::{BuildOrder, Series, SeriesOptions};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The formats and views of the page.
static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry::standard().with(&pprofdiff_page::ALL));

/// A question about the sides. Its options and filters have the same names as the command's options, with `_` for `-`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Question {
    /// True to add up the files of each side instead of treating them as runs.
    pub sum: bool,
    /// The filters for samples and frames.
    pub filters: Filters,
    /// The query options by name. Flags are booleans, and all other options are texts. An empty text means that the
    /// option is not set.
    #[serde(flatten)]
    pub options: Map<String, Value>,
}

impl Question {
    fn query(&self) -> Result<Query> {
        let mut query = Query::default().with_filters(self.filters.clone());
        for (name, value) in &self.options {
            let option = options().find(|option| option.name == name);
            let option = option.ok_or_else(|| Error::query(format!("the page has no option {name:?}")))?;
            let value = match (value, (option.kind)()) {
                (Value::Bool(on), OptionKind::Flag) => OptionValue::Flag(*on),
                (Value::String(text), _) if text.is_empty() => continue,
                (Value::String(text), OptionKind::Texts(between)) => {
                    OptionValue::Texts(text.split(between).map(str::to_owned).collect())
                }
                (Value::String(text), _) => OptionValue::Texts(vec![text.clone()]),
                _ => return Err(Error::query(format!("{name} can't be {value}"))),
            };
            query.set(option, value)?;
        }
        Ok(query)
    }
}

/// Returns the options that the page offers besides filters.
fn options() -> impl Iterator<Item = OptionRow<Query>> {
    Query::options().filter(|option| option.heading == Heading::Selection)
}

/// The files to compare, by their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionSides {
    /// Two sides of one file or several runs each. With an empty base, a single profile is shown.
    Diff {
        /// The base side.
        base: Vec<usize>,
        /// The new side.
        new: Vec<usize>,
    },
    /// A series of builds, sorted by name.
    Series(Vec<usize>),
    /// A series of builds in the given order.
    Given(Vec<usize>),
}

/// Returns the choices that the page offers for each field of a [`Question`], and the formats for saving. They come
/// from the engine's tables.
pub fn choices() -> Value {
    // The page labels its fields with names without underscores.
    let label = |name: &str, _: Option<&str>| name.replace('_', " ");
    let options = options().map(|option| {
        let (kind, values) = match (option.kind)() {
            OptionKind::Flag => ("flag", Vec::new()),
            OptionKind::Choice(values) => ("choice", values),
            _ => ("text", Vec::new()),
        };
        let about = spell(option.about, label);
        json!({"name": option.name, "about": about, "value": option.value_name, "kind": kind, "values": values})
    });
    let filters = Filters::ALL.iter();
    let filters =
        filters.map(|f| json!({"name": f.name, "about": spell(f.about, label), "value": f.kind.value_name()}));
    let saved_formats = |views: [View; 2]| {
        let mut formats = Vec::new();
        for format in REGISTRY.formats() {
            let is_supported =
                views.iter().any(|view| format.shows(&Request::default().asking(view.clone())).is_some());
            if is_supported {
                let ending = format.extensions[0];
                formats.push(json!({"name": format.name, "about": format.about, "ending": ending}));
            }
        }
        formats
    };
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "options": options.collect::<Vec<_>>(),
        "filters": filters.collect::<Vec<_>>(),
        "diff": saved_formats([table_view(), View::Stacks { by_labels: false, limit: None }]),
        "series": saved_formats([shifts_view(), movers_view()]),
    })
}

/// The maximum number of files.
const MAX_FILES: usize = 10_000;

struct SessionFile {
    source: Source,
    /// The profile, after it has been read as part of a side.
    profile: OnceLock<Arc<Profile>>,
}

impl SessionFile {
    /// Returns the profile, and reads it on first use. Two sessions may both read it if they need it at the same time.
    /// A lock could deadlock: while a pool thread holds it and waits for parallel work, the thread may execute another
    /// session's request, which would wait for the same lock.
    fn read(&self, load: &LoadOptions) -> Result<&Arc<Profile>> {
        if let Some(profile) = self.profile.get() {
            return Ok(profile);
        }
        let profile = self.source.load(load)?;
        Ok(self.profile.get_or_init(|| profile))
    }
}

enum OpenComparison {
    Diff(Diff),
    Series { builds: Vec<(String, Source)>, order: BuildOrder, read: Option<Box<(Query, Series)>> },
}

/// A comparison session with its files, sides and answers; see the module comment.
#[derive(Default)]
pub struct Session {
    files: Vec<Arc<SessionFile>>,
    /// The current or planned sides.
    sides: Option<SessionSides>,
    open: Option<OpenComparison>,
    load: LoadOptions,
}

impl Session {
    /// Creates a session without files. Files will be read with these options.
    pub fn new(load: LoadOptions) -> Session {
        Session { load, ..Session::default() }
    }

    /// Returns a session with the same files and planned sides. Both sessions share the profiles that either of them
    /// reads.
    pub fn fork(&self) -> Session {
        Session { files: self.files.clone(), sides: self.sides.clone(), open: None, load: self.load.clone() }
    }

    /// Returns a session with the same options but without files.
    pub fn fork_empty(&self) -> Session {
        Session::new(self.load.clone())
    }

    /// Adds a file without reading it, and returns its number.
    ///
    /// # Errors
    /// Fails if there are too many files.
    pub fn add(&mut self, source: Source) -> Result<usize> {
        if self.files.len() >= MAX_FILES {
            return Err(Error::query(format!("there are already {MAX_FILES} files, which is the maximum")));
        }
        let source = match source {
            // A series clones its sources for each question, so share the bytes instead of copying them.
            Source::Bytes(name, bytes) => {
                let bytes = Arc::new(bytes);
                Source::Fetch(name, Fetch::new(move || Ok(bytes.to_vec())))
            }
            other => other,
        };
        self.files.push(Arc::new(SessionFile { source, profile: OnceLock::new() }));
        Ok(self.files.len() - 1)
    }

    /// Returns the names of the files.
    pub fn names(&self) -> Vec<String> {
        self.files.iter().map(|file| file.source.name()).collect()
    }

    /// Returns the current or planned sides.
    pub fn sides(&self) -> Option<&SessionSides> {
        self.sides.as_ref()
    }

    /// Sets the planned sides without reading any file.
    pub fn plan(&mut self, sides: SessionSides) {
        self.sides = Some(sides);
    }

    /// Reads a file of a side, unless it has already been read.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn read(&self, file: usize) -> Result<()> {
        self.profile(file).map(drop)
    }

    fn profile(&self, file: usize) -> Result<Arc<Profile>> {
        let file = self.files.get(file).ok_or_else(|| Error::query("there is no such file"))?;
        file.read(&self.load).cloned()
    }

    /// Sets the sides and returns their sample types with units. Files of a diff are read now if necessary, and files
    /// of a series when a question is asked.
    ///
    /// Builds with two different names have no common order ([`two_names`]). In this case, the result lists the files
    /// of each name under `names`, and the sides do not change.
    ///
    /// # Errors
    /// Fails if the new side has no files, if several new files have no base, if a file cannot be read, or if the sides
    /// cannot be compared. The previous comparison then stays open.
    pub fn compare(&mut self, sides: &SessionSides) -> Result<Value> {
        if let SessionSides::Series(files) = sides {
            let mut builds = self.builds(files)?;
            sort_builds(&mut builds);
            if let Some(names) = two_names(builds.iter().map(|(key, _)| key.as_str())) {
                let groups = names.map(|places| {
                    let builds: Vec<_> = places.into_iter().map(|place| &builds[place]).collect();
                    let ends =
                        builds.first().zip(builds.last()).map(|(first, last)| format!("{} to {}", first.0, last.0));
                    json!({"name": ends, "files": builds.iter().map(|(_, file)| file).collect::<Vec<_>>()})
                });
                return Ok(json!({"types": [], "names": groups}));
            }
        }
        if self.open.is_none() || self.sides.as_ref() != Some(sides) {
            self.open = Some(self.open_sides(sides)?);
            self.sides = Some(sides.clone());
        }
        let types = match &self.open {
            Some(OpenComparison::Diff(diff)) => diff.sample_types(),
            // The types of a series are known after it is read, and its report contains them.
            _ => Vec::new(),
        };
        Ok(json!({"types": types}))
    }

    /// Returns the keys of builds with the numbers of their files.
    fn builds(&self, files: &[usize]) -> Result<Vec<(String, usize)>> {
        let names = files.iter().map(|&file| Some(PathBuf::from(self.files.get(file)?.source.name())));
        let names = names.collect::<Option<Vec<_>>>().ok_or_else(|| Error::query("there is no such file"))?;
        Ok(file_builds(&names).into_iter().map(|(key, _)| key).zip(files.iter().copied()).collect())
    }

    /// Reads the files of the sides and opens the comparison.
    fn open_sides(&self, sides: &SessionSides) -> Result<OpenComparison> {
        Ok(match sides {
            SessionSides::Diff { base, new } => {
                let side = |files: &[usize]| files.iter().map(|&file| self.profile(file)).collect::<Result<Vec<_>>>();
                let (base, new) = (side(base)?, side(new)?);
                OpenComparison::Diff(match (base.as_slice(), new.as_slice()) {
                    (_, []) => return Err(Error::query("there is nothing to compare: the new side has no file")),
                    ([], [one]) => Diff::of_profile(one)?,
                    ([], _) => return Err(Error::query("several profiles need a base; or open them as a series")),
                    (base, new) => Diff::new(base, new)?,
                })
            }
            SessionSides::Series(files) | SessionSides::Given(files) => {
                let mut builds = self.builds(files)?;
                let order = if let SessionSides::Given(_) = sides { BuildOrder::Given } else { BuildOrder::Key };
                if order == BuildOrder::Key {
                    sort_builds(&mut builds);
                }
                let source = |(key, file): (String, usize)| (key, self.files[file].source.clone());
                OpenComparison::Series { builds: builds.into_iter().map(source).collect(), order, read: None }
            }
        })
    }

    /// Answers a question in the given format. `html` returns the report. Other formats return the table, the picture,
    /// the profile or the stacks.
    ///
    /// # Errors
    /// Fails if the question is invalid, if the format cannot represent the answer, or if there is nothing to compare.
    pub fn answer(&mut self, question: &Question, format: &str) -> Result<Vec<u8>> {
        let (format, query) = (REGISTRY.format(format)?, question.query()?);
        let request = |view: View| Request { query: query.clone(), view }.for_format(format, &REGISTRY);
        let report = match &mut self.open {
            None => return Err(Error::query("there is nothing to compare yet")),
            Some(OpenComparison::Diff(diff)) => {
                let diff = if question.sum { diff.clone().summed() } else { diff.clone() };
                let stacks = || request(View::Stacks { by_labels: false, limit: None });
                request(table_view()).or_else(|_| stacks())?.answer(&diff)?
            }
            Some(OpenComparison::Series { builds, order, read }) => {
                if read.as_ref().is_none_or(|read| read.0 != query) {
                    let options = SeriesOptions::default().with_load(self.load.clone()).with_order(*order);
                    *read = None;
                    let series = Series::load(builds.iter().cloned(), &query, &options)?;
                    *read = Some(Box::new((query.clone(), series)));
                }
                let Some(read) = read else { return Err(Error::query("the series could not be read")) };
                let series = &read.1;
                let view = if series.is_history() { shifts_view() } else { movers_view() };
                request(view)?.answer_series(series, &self.load)?
            }
        };
        let mut out = Vec::new();
        format.write(&report, &mut out, Style { quote_formulas: true, ..Style::default() }).map_err(Error::io)?;
        Ok(out)
    }
}

fn table_view() -> View {
    View::Top { sort: Sort::Flat, limit: None, significant: false }
}

fn shifts_view() -> View {
    View::Shifts { sort: Sort::Flat, limit: None, explain: None }
}

fn movers_view() -> View {
    View::Movers { sort: Sort::Flat, limit: None }
}
