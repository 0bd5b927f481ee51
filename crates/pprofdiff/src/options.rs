//! Options as rows of a table: one row is an option on every face. From the rows of a [`Query`](crate::Query) and of a
//! [`Loading`](crate::loading::Loading) come clap's arguments, Python's keywords with their types and docstrings, the
//! questions of the page and of agents, and what a report says of itself.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Demangle, Error, Granularity, Matching, Normalize, Result, TimeSplit, TimeWindow};
use pprofdiff_profile::input::InputFormat;

/// An option of a `T`.
#[derive(Debug)]
#[non_exhaustive]
pub struct OptionRow<T: 'static> {
    /// Its name in Python, JSON and on the page; the command has it with hyphens.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// What else is to be known of it, for long help and docstrings; may be empty.
    pub notes: &'static str,
    /// What stands for its value in help.
    pub value_name: &'static str,
    /// Its type in Python's annotations.
    pub annotation: &'static str,
    /// Under which heading it stands in help.
    pub heading: Heading,
    /// Who is offered it, besides those who ask for all options.
    pub offered: Offered,
    /// Which views take it.
    pub scope: Scope,
    /// How a report says that it was set.
    pub reported: Reported,
    /// What values it takes.
    pub kind: fn() -> OptionKind,
    pub(crate) get: fn(&'static str, &T) -> OptionValue,
    pub(crate) set: fn(&'static str, &mut T, OptionValue) -> Result<()>,
}

impl<T> Clone for OptionRow<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for OptionRow<T> {}

/// Headings of help, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Heading {
    /// What is looked at.
    Selection,
    /// Which samples and frames take part.
    Filters,
    /// How rows are counted and shown.
    Display,
    /// How profiles are read.
    Loading,
    /// How much an input may take.
    Limits,
}

impl Heading {
    /// The heading's words.
    pub fn name(self) -> &'static str {
        match self {
            Heading::Selection => "Selection",
            Heading::Filters => "Filters (pprof's; RE is searched in function, file and binary)",
            Heading::Display => "Output",
            Heading::Loading => "Loading",
            Heading::Limits => "Limits",
        }
    }
}

/// Who is offered an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Offered {
    /// Readers of long help.
    Rarely,
    /// Readers of short help as well.
    Usually,
    /// Agents too, who pay for each option that they read.
    Always,
}

/// Which views take an option: each view takes those up to its own scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Scope {
    /// All views.
    Everything,
    /// Views that show values in rows: stacks, labels, source lines, and those below.
    Rows,
    /// Views of frames: the call graph, and those below.
    Frames,
    /// Views of frames with their sums: callers and callees, and the table of frames.
    Sums,
    /// The table of frames.
    Table,
}

/// How a report says what an option was set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reported {
    /// For machines always, for people where it is set.
    Always,
    /// Where it is set.
    WhenSet,
    /// By other means: in a field or a line of its own, or by the values.
    Elsewhere,
}

/// What values an option takes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionKind {
    /// It is on or off.
    Flag,
    /// Any text.
    Text,
    /// A whole number.
    Count,
    /// A number, or a text that stands for one.
    Number,
    /// Texts, which the command has with this character between them.
    Texts(char),
    /// Paths of files and folders.
    Paths,
    /// One of these words.
    Choice(Vec<&'static str>),
}

/// A value of an option, as it is given and as it is read back.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionValue {
    /// On or off.
    Flag(bool),
    /// Texts; of what takes one text, that one or none.
    Texts(Vec<String>),
    /// Paths.
    Paths(Vec<PathBuf>),
}

impl OptionValue {
    pub(crate) fn one(self) -> Result<Option<String>> {
        match self {
            OptionValue::Texts(mut texts) if texts.len() <= 1 => Ok(texts.pop()),
            _ => Err(Error::query("it takes one text")),
        }
    }

    /// The value in a line, with a list's own character between its texts.
    pub fn text(&self, kind: &OptionKind) -> String {
        let between = if let OptionKind::Texts(between) = kind { *between } else { ',' };
        match self {
            OptionValue::Flag(on) => on.to_string(),
            OptionValue::Texts(texts) => texts.join(&between.to_string()),
            OptionValue::Paths(paths) => {
                paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(":")
            }
        }
    }
}

impl<T> OptionRow<T> {
    /// Its value.
    pub fn get(&self, of: &T) -> OptionValue {
        (self.get)(self.name, of)
    }

    /// True if another value than the usual one is set.
    pub fn is_set(&self, of: &T) -> bool
    where
        T: Default,
    {
        self.get(of) != self.get(&T::default())
    }

    /// Sets it.
    ///
    /// # Errors
    /// A value that the option does not take.
    pub fn set(&self, of: &mut T, value: OptionValue) -> Result<()> {
        (self.set)(self.name, of, value)
    }

    /// `name=value`, or the name alone of what is on.
    pub fn setting(&self, of: &T) -> String {
        match self.get(of) {
            OptionValue::Flag(_) => self.name.to_owned(),
            value => format!("{}={}", self.name, value.text(&(self.kind)())),
        }
    }
}

/// The type of a field that an option sets.
pub(crate) trait Field: Sized {
    fn kind() -> OptionKind;
    fn from_value(value: OptionValue) -> Result<Self>;
    fn to_value(&self) -> OptionValue;
}

impl Field for bool {
    fn kind() -> OptionKind {
        OptionKind::Flag
    }

    fn from_value(value: OptionValue) -> Result<bool> {
        match value {
            OptionValue::Flag(on) => Ok(on),
            _ => Err(Error::query("it is on or off")),
        }
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Flag(*self)
    }
}

impl Field for Option<String> {
    fn kind() -> OptionKind {
        OptionKind::Text
    }

    fn from_value(value: OptionValue) -> Result<Option<String>> {
        value.one()
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Texts(self.iter().cloned().collect())
    }
}

impl Field for Option<TimeWindow> {
    fn kind() -> OptionKind {
        OptionKind::Text
    }

    fn from_value(value: OptionValue) -> Result<Option<TimeWindow>> {
        value.one()?.map(|text| text.parse()).transpose()
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Texts(self.iter().map(|window| window.as_str().to_owned()).collect())
    }
}

impl Field for Option<TimeSplit> {
    fn kind() -> OptionKind {
        OptionKind::Text
    }

    fn from_value(value: OptionValue) -> Result<Option<TimeSplit>> {
        value.one()?.map(|text| text.parse()).transpose()
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Texts(self.iter().map(|split| split.as_str().to_owned()).collect())
    }
}

impl Field for Option<u64> {
    fn kind() -> OptionKind {
        OptionKind::Count
    }

    fn from_value(value: OptionValue) -> Result<Option<u64>> {
        let number = |text: String| text.parse().map_err(|_| Error::query(format!("{text:?} is no whole number")));
        value.one()?.map(number).transpose()
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Texts(self.iter().map(u64::to_string).collect())
    }
}

impl Field for Option<&'static InputFormat> {
    fn kind() -> OptionKind {
        OptionKind::Choice(InputFormat::all().map(|format| format.name).collect())
    }

    fn from_value(value: OptionValue) -> Result<Option<&'static InputFormat>> {
        value.one()?.map(|name| InputFormat::named(&name)).transpose()
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Texts(self.iter().map(|format| format.name.to_owned()).collect())
    }
}

impl Field for Vec<String> {
    fn kind() -> OptionKind {
        OptionKind::Texts(':')
    }

    /// An empty text is none: scripts pass variables that are not set.
    fn from_value(value: OptionValue) -> Result<Vec<String>> {
        match value {
            OptionValue::Texts(texts) => Ok(texts.into_iter().filter(|text| !text.is_empty()).collect()),
            _ => Err(Error::query("it takes texts")),
        }
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Texts(self.clone())
    }
}

impl Field for Vec<PathBuf> {
    fn kind() -> OptionKind {
        OptionKind::Paths
    }

    fn from_value(value: OptionValue) -> Result<Vec<PathBuf>> {
        match value {
            OptionValue::Paths(paths) => Ok(paths),
            _ => Err(Error::query("it takes paths")),
        }
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Paths(self.clone())
    }
}

/// A part of the whole in percent, written as `0.5` or `0.5%`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Percent(pub f64);

impl std::str::FromStr for Percent {
    type Err = Error;

    fn from_str(text: &str) -> Result<Percent> {
        let number = text.trim().strip_suffix('%').unwrap_or(text).trim().parse().ok();
        let percent = number.filter(|percent| (0.0..=100.0).contains(percent)).map(Percent);
        percent
            .ok_or_else(|| Error::query(format!("a part of the whole is 0 to 100 percent, such as 0.5, not {text:?}")))
    }
}

/// The type has a text for each value.
macro_rules! by_text {
    ($($type:ty: $kind:expr, $text:expr;)*) => {$(
        impl Field for $type {
            fn kind() -> OptionKind {
                $kind
            }

            fn from_value(value: OptionValue) -> Result<$type> {
                value.one()?.map_or_else(|| Ok(<$type>::default()), |text| text.parse())
            }

            fn to_value(&self) -> OptionValue {
                let text: fn(&$type) -> String = $text;
                OptionValue::Texts(vec![text(self)])
            }
        }
    )*};
}

by_text! {
    Granularity: OptionKind::Choice(Granularity::ALL.iter().map(|(name, _)| *name).collect()),
        |granularity| granularity.name().to_owned();
    Matching: OptionKind::Choice(Matching::ALL.iter().map(|(name, _)| *name).collect()),
        |matching| matching.name().to_owned();
    Demangle: OptionKind::Choice(Demangle::ALL.iter().map(|(name, _)| *name).collect()),
        |mode| mode.name().to_owned();
    Percent: OptionKind::Number, |percent| percent.0.to_string();
    Normalize: OptionKind::Number, |how| match how {
        Normalize::Factor(factor) => factor.to_string(),
        _ => how.mode().to_owned(),
    };
}

/// Describes the options of a struct once: each row becomes a field of it and a row of its `FIELDS`. `$docs` is a macro
/// of the rows as lines of a docstring, `$keywords` one of them as Python's signatures have them; `$others` are fields that
/// are no options.
macro_rules! options {
    (
        $(#[$attribute:meta])*
        pub struct $target:ident, docs $docs:ident $keywords:ident, others { $($(#[$other_attribute:meta])* $other:ident: $other_type:ty,)* }
        $($heading:ident {$(
            $field:ident: $type:ty = $name:literal {
                about: $about:literal,
                notes: $notes:literal,
                value: $value:literal,
                annotation: $annotation:literal,
                is: $offered:ident $scope:ident $reported:ident,
            }
        )*})*
    ) => {
        $(#[$attribute])*
        pub struct $target {
            $($(#[doc = concat!($about, ".")] pub $field: $type,)*)*
            $($(#[$other_attribute])* pub $other: $other_type,)*
        }

        impl $target {
            /// The options that are fields.
            pub(crate) const FIELDS: &'static [$crate::options::OptionRow<$target>] = &[$($($crate::options::OptionRow {
                name: $name,
                about: $about,
                notes: $notes,
                value_name: $value,
                annotation: $annotation,
                heading: $crate::options::Heading::$heading,
                offered: $crate::options::Offered::$offered,
                scope: $crate::options::Scope::$scope,
                reported: $crate::options::Reported::$reported,
                kind: <$type as $crate::options::Field>::kind,
                get: |_, of| $crate::options::Field::to_value(&of.$field),
                set: |_, of, value| {
                    of.$field = $crate::options::Field::from_value(value)?;
                    Ok(())
                },
            },)*)*];
        }

        /// The options as a list for docstrings.
        #[doc(hidden)]
        #[macro_export]
        macro_rules! $docs {
            () => { concat!($($("\n- `", $name, "`: ", $about, ".", $notes),*),*) };
        }

        /// The options as keywords of a signature.
        #[doc(hidden)]
        #[macro_export]
        macro_rules! $keywords {
            () => { concat!($($(", ", $name, "=None"),*),*) };
        }
    };
}
pub(crate) use options;
