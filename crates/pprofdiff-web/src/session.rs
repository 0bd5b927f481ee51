//! What a person is comparing: files, which of them stand on which side, and questions asked of them.
//!
//! Files are read once and asked often. Of a series only the packed files are kept: it is read anew for each query, as
//! everywhere.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use pprofdiff::filter::Filters;
use pprofdiff::input::{Fetch, file_builds, sort_builds, two_names};
use pprofdiff::options::{Heading, OptionKind, OptionRow, OptionValue};
use pprofdiff::series::{Order, Series, SeriesOptions};
use pprofdiff::{Diff, Error, LoadOptions, Profile, Query, Result, Sort, Source};
use pprofdiff_report::{Format, Request, Style, View};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What is asked of the sides, in the words of the command's options.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Question {
    /// Add up the files of a side, instead of taking them as runs.
    pub sum: bool,
    /// Which samples and frames take part.
    pub filters: Filters,
    /// The options of a query by their names: switches as booleans, all else as texts, of which an empty one is none.
    #[serde(flatten)]
    pub options: Map<String, Value>,
}

impl Question {
    fn query(&self) -> Result<Query> {
        let mut query = Query::default().with_filters(self.filters.clone());
        for (name, value) in &self.options {
            let option = options().find(|option| option.name == name);
            let option = option.ok_or_else(|| Error::query(format!("the page asks for no {name:?}")))?;
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

/// The options that the page asks for, besides filters.
fn options() -> impl Iterator<Item = OptionRow<Query>> {
    Query::options().filter(|option| option.heading == Heading::Selection)
}

/// Which files are compared, by their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sides {
    /// Two sides, each of one file or of several runs; without a base one profile by itself.
    Diff {
        /// The side that is compared with.
        base: Vec<usize>,
        /// The other.
        new: Vec<usize>,
    },
    /// Builds, in the order of their names.
    Series(Vec<usize>),
    /// Builds, in this order.
    Given(Vec<usize>),
}

/// What the page offers for each field of a [`Question`] and as formats to save, from the tables of the engine.
pub fn choices() -> Value {
    let options = options().map(|option| {
        let (kind, values) = match (option.kind)() {
            OptionKind::Flag => ("flag", Vec::new()),
            OptionKind::Choice(values) => ("choice", values),
            _ => ("text", Vec::new()),
        };
        json!({"name": option.name, "about": option.about, "value": option.value_name, "kind": kind, "values": values})
    });
    let filters = Filters::ALL.iter();
    let filters = filters.map(|f| json!({"name": f.name, "about": f.about, "value": f.kind.value_name()}));
    let saved = |asks: [View; 2]| {
        let mut formats = Vec::new();
        for format in Format::all() {
            let can = asks.iter().any(|view| (format.shows)(&Request::default().asking(view.clone())).is_some());
            if can {
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
        "diff": saved([table(), View::Stacks { by_labels: false, limit: None }]),
        "series": saved([lasting(), steps()]),
    })
}

/// The largest number of files.
const MAX_FILES: usize = 10_000;

struct File {
    source: Source,
    /// Once it was read as part of a side.
    profile: OnceLock<Arc<Profile>>,
}

impl File {
    /// The profile. Two sessions that ask for it at once may both read it: one that waited for the other could be a
    /// thread that helps out within the other's own work.
    fn read(&self, load: &LoadOptions) -> Result<&Arc<Profile>> {
        if let Some(profile) = self.profile.get() {
            return Ok(profile);
        }
        let profile = self.source.load(load)?;
        Ok(self.profile.get_or_init(|| profile))
    }
}

enum Open {
    Diff(Diff),
    Series { builds: Vec<(String, Source)>, order: Order, read: Option<Box<(Query, Series)>> },
}

/// Files, sides and answers; see the module.
#[derive(Default)]
pub struct Session {
    files: Vec<Arc<File>>,
    /// What is compared, or is to be.
    sides: Option<Sides>,
    open: Option<Open>,
    load: LoadOptions,
}

impl Session {
    /// A session without files; each is read with these options.
    pub fn new(load: LoadOptions) -> Session {
        Session { load, ..Session::default() }
    }

    /// Another session with the same files, which are read once for both, and the same plan.
    pub fn fork(&self) -> Session {
        Session { files: self.files.clone(), sides: self.sides.clone(), open: None, load: self.load.clone() }
    }

    /// Another session, with the same options and without files.
    pub fn fork_empty(&self) -> Session {
        Session::new(self.load.clone())
    }

    /// Takes a file; its number. It is not read yet.
    ///
    /// # Errors
    /// Too many files.
    pub fn add(&mut self, source: Source) -> Result<usize> {
        if self.files.len() >= MAX_FILES {
            return Err(Error::query(format!("there are {MAX_FILES} files already, which is the most")));
        }
        let source = match source {
            // A series hands its files on with each question: not the bytes themselves.
            Source::Bytes(name, bytes) => {
                let bytes = Arc::new(bytes);
                Source::Fetch(name, Fetch::new(move || Ok(bytes.to_vec())))
            }
            other => other,
        };
        self.files.push(Arc::new(File { source, profile: OnceLock::new() }));
        Ok(self.files.len() - 1)
    }

    /// What the files are called.
    pub fn names(&self) -> Vec<String> {
        self.files.iter().map(|file| file.source.name()).collect()
    }

    /// What is compared, or is to be.
    pub fn sides(&self) -> Option<&Sides> {
        self.sides.as_ref()
    }

    /// Says what is to be compared, without reading it yet.
    pub fn plan(&mut self, sides: Sides) {
        self.sides = Some(sides);
    }

    /// Reads a file of a side, unless that has been done.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(&self, file: usize) -> Result<()> {
        self.profile(file).map(drop)
    }

    fn profile(&self, file: usize) -> Result<Arc<Profile>> {
        let file = self.files.get(file).ok_or_else(|| Error::query("there is no such file"))?;
        file.read(&self.load).cloned()
    }

    /// Says what is compared, and returns which sample types there are, each with its unit. Files of sides are read if they
    /// were not; those of a series when something is asked. Builds of two names have no order ([`two_names`]): the `names` that
    /// are returned then say which files are which, and nothing is opened.
    ///
    /// # Errors
    /// A side without files; what is wrong with a file; sides that can't be compared. What was compared before still is.
    pub fn compare(&mut self, sides: &Sides) -> Result<Value> {
        if let Sides::Series(files) = sides {
            let mut builds = self.builds(files)?;
            sort_builds(&mut builds);
            if let Some(names) = two_names(builds.iter().map(|(key, _)| key.as_str())) {
                let named = names.map(|places| {
                    let builds: Vec<_> = places.into_iter().map(|place| &builds[place]).collect();
                    let ends =
                        builds.first().zip(builds.last()).map(|(first, last)| format!("{} to {}", first.0, last.0));
                    json!({"name": ends, "files": builds.iter().map(|(_, file)| file).collect::<Vec<_>>()})
                });
                return Ok(json!({"types": [], "names": named}));
            }
        }
        if self.open.is_none() || self.sides.as_ref() != Some(sides) {
            self.open = Some(self.opened(sides)?);
            self.sides = Some(sides.clone());
        }
        let types = match &self.open {
            Some(Open::Diff(diff)) => diff.sample_types(),
            // Known when it is read, and its page has them.
            _ => Vec::new(),
        };
        Ok(json!({"types": types}))
    }

    /// The keys of builds, with the numbers of their files.
    fn builds(&self, files: &[usize]) -> Result<Vec<(String, usize)>> {
        let names = files.iter().map(|&file| Some(PathBuf::from(self.files.get(file)?.source.name())));
        let names = names.collect::<Option<Vec<_>>>().ok_or_else(|| Error::query("there is no such file"))?;
        Ok(file_builds(&names).into_iter().map(|(key, _)| key).zip(files.iter().copied()).collect())
    }

    fn opened(&self, sides: &Sides) -> Result<Open> {
        Ok(match sides {
            Sides::Diff { base, new } => {
                let side = |files: &[usize]| files.iter().map(|&file| self.profile(file)).collect::<Result<Vec<_>>>();
                let (base, new) = (side(base)?, side(new)?);
                Open::Diff(match (base.as_slice(), new.as_slice()) {
                    (_, []) => return Err(Error::query("there is nothing to compare: the new side has no file")),
                    ([], [one]) => Diff::of_profile(one)?,
                    ([], _) => return Err(Error::query("several profiles need a base, or are a series of builds")),
                    (base, new) => Diff::new(base, new)?,
                })
            }
            Sides::Series(files) | Sides::Given(files) => {
                let mut builds = self.builds(files)?;
                let order = if let Sides::Given(_) = sides { Order::Given } else { Order::Key };
                if order == Order::Key {
                    sort_builds(&mut builds);
                }
                let source = |(key, file): (String, usize)| (key, self.files[file].source.clone());
                Open::Series { builds: builds.into_iter().map(source).collect(), order, read: None }
            }
        })
    }

    /// The answer to a question, in a format: of `html` the report, of others the table, the picture, the profile or the
    /// stacks.
    ///
    /// # Errors
    /// A question without an answer; a format that can't hold it; nothing to compare.
    pub fn answer(&mut self, question: &Question, format: &str) -> Result<Vec<u8>> {
        let (format, query) = (Format::named(format)?, question.query()?);
        let request = |view: View| Request { query: query.clone(), view }.for_format(format);
        let report = match &mut self.open {
            None => return Err(Error::query("there is nothing to compare yet")),
            Some(Open::Diff(diff)) => {
                let diff = if question.sum { diff.clone().summed() } else { diff.clone() };
                let stacks = || request(View::Stacks { by_labels: false, limit: None });
                request(table()).or_else(|_| stacks())?.answer(&diff)?
            }
            Some(Open::Series { builds, order, read }) => {
                if read.as_ref().is_none_or(|read| read.0 != query) {
                    let options = SeriesOptions::default().with_load(self.load.clone()).with_order(*order);
                    *read = None;
                    let series = Series::load(builds.iter().cloned(), &query, &options)?;
                    *read = Some(Box::new((query.clone(), series)));
                }
                let Some(read) = read else { return Err(Error::query("the series could not be read")) };
                let series = &read.1;
                let view = if series.is_history() { lasting() } else { steps() };
                request(view)?.answer_series(series, &self.load)?
            }
        };
        let mut out = Vec::new();
        (format.write)(&report, &mut out, Style { quote_formulas: true, ..Style::default() }).map_err(Error::io)?;
        Ok(out)
    }
}

fn table() -> View {
    View::Top { sort: Sort::Flat, limit: None, significant: false }
}

fn lasting() -> View {
    View::Shifts { sort: Sort::Flat, limit: None, explain: None }
}

fn steps() -> View {
    View::Movers { sort: Sort::Flat, limit: None }
}
