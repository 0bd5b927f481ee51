//! Views: a file each, with its descriptor and its answer. Which view is asked, with its options, is an
//! [`Ask`](crate::Ask).

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

use crate::request::Ask;
use pprofdiff::options::Scope;
use pprofdiff::{Diff, Error, Measure, Query, Result, Selection};

/// What is said of a view anywhere.
#[derive(Debug)]
#[non_exhaustive]
pub struct View {
    /// Its name, which is that of its verb if it has one.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// Which options of a query it takes.
    pub scope: Scope,
    /// What it is of.
    pub of: Of,
    /// What its regular expression is matched against, if it has one.
    pub matched: Option<&'static str>,
    /// Which formats show it.
    pub shown_by: ShownBy,
    /// What is asked of each of many pairs, with the expression if it has one; `None` if it is not asked of many.
    pub(crate) of_pairs: Option<fn(&str) -> Ask>,
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
static VIEWS: &[&View] = &[
    &top::VIEW,
    &peek::VIEW,
    &roots::VIEW,
    &tree::VIEW,
    &stacks::VIEW,
    &traces::VIEW,
    &labels::VIEW,
    &list::VIEW,
    &disasm::VIEW,
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
    &movers::VIEW,
    &steps::VIEW,
    &shifts::VIEW,
    #[cfg(feature = "html")]
    &timelines::VIEW,
    &values::VIEW,
];

impl View {
    /// All views.
    pub fn all() -> &'static [&'static View] {
        VIEWS
    }

    /// The view of a name, as many pairs are asked for it: `top`, or `peek=RE` of one with an expression.
    pub(crate) fn of_pairs(text: &str) -> Result<Ask> {
        let (name, regex) = text.split_once('=').unwrap_or((text, ""));
        let named = |view: &&&View| view.name == name && view.matched.is_some() != regex.is_empty();
        match View::all().iter().find(named).and_then(|view| view.of_pairs) {
            Some(ask) => Ok(ask(regex)),
            None => Err(Error::query(format!("a view is {}, not {text:?}", View::names_of_pairs()))),
        }
    }

    /// The names of views that many pairs are asked for.
    pub fn names_of_pairs() -> String {
        let views = View::all().iter().filter(|view| view.of_pairs.is_some());
        let name =
            |view: &&View| if view.matched.is_some() { format!("{}=RE", view.name) } else { view.name.to_owned() };
        views.map(name).collect::<Vec<_>>().join(", ")
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
