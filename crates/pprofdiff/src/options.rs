//! Options as rows of tables, so that every interface offers the same options. The rows of [`Query`](crate::Query) and
//! [`Loading`](crate::loading::Loading) produce clap's arguments, Python's keywords with their types and docstrings,
//! the options of the page and of agents, and the settings in a report.
//!
//! A row contains facts that hold in every interface. Each interface wraps the texts, spells the names of options in
//! them ([`spell`]), and derives its types from [`OptionKind`].

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Demangle, Error, Granularity, Matching, Normalize, Result, TimeSplit, TimeWindow};
use pprofdiff_formats::InputFormat;
pub use pprofdiff_profile::text::spell;

/// An option of a `T`.
#[derive(Debug)]
#[non_exhaustive]
pub struct OptionRow<T: 'static> {
    /// The name in Python, JSON and on the page. The command line uses hyphens instead of underscores.
    pub name: &'static str,
    /// A one-line description. Names of options stand between backticks, see [`spell`].
    pub about: &'static str,
    /// Additional sentences for long help and docstrings, with names like those in `about`; may be empty.
    pub notes: &'static str,
    /// The placeholder for the value in help.
    pub value_name: &'static str,
    /// Advice for users of a single profile, if the option needs two sides; otherwise empty.
    pub alone: &'static str,
    /// The options that cannot be set together with this option.
    pub conflicts: Conflicts,
    /// The heading in help.
    pub heading: Heading,
    /// The audience of the option, besides readers of complete lists.
    pub offered: Offered,
    /// The views that support the option.
    pub scope: Scope,
    /// How a report mentions that the option was set.
    pub reported: Reported,
    /// The kind of values that the option accepts.
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

/// Headings in help, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Heading {
    /// The values and rows to show.
    Selection,
    /// The samples and frames to include.
    Filters,
    /// How rows are counted and displayed.
    Display,
    /// How profiles are loaded.
    Loading,
    /// Limits on the size of an input.
    Limits,
}

impl Heading {
    /// Returns the text of the heading.
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

/// The audience of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Offered {
    /// Readers of long help.
    Rarely,
    /// Readers of long and short help.
    Usually,
    /// Agents too, which pay for each option that they read.
    Always,
}

/// The views that support an option. Scopes are ordered from general to special: a view supports the options whose
/// scope is at most its own scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Scope {
    /// All views.
    Everything,
    /// Views with values in rows: stacks, labels, source lines, and the views of later scopes.
    Rows,
    /// Views of frames: the call graph, and the views of later scopes.
    Frames,
    /// Views of frames with their sums: callers and callees, and the table of frames.
    Sums,
    /// The table of frames.
    Table,
}

/// How a report mentions the value of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reported {
    /// Always in machine-readable reports; in reports for people only if it is set.
    Always,
    /// Only if it is set.
    WhenSet,
    /// Through a field or line of its own, or through the values.
    Elsewhere,
}

/// The options that an option excludes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conflicts {
    /// Their names.
    pub names: &'static [&'static str],
    /// The reason, as the rest of a sentence that starts with the option.
    pub reason: &'static str,
}

impl Conflicts {
    /// The value of an option that all others can be combined with.
    pub const NONE: Conflicts = Conflicts { names: &[], reason: "" };
}

/// The kind of values that an option accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionKind {
    /// A flag that is on or off.
    Flag,
    /// Any text.
    Text,
    /// A whole number.
    Count,
    /// A number, or one of these words.
    Number(&'static [&'static str]),
    /// Several texts, which the command line separates by this character.
    Texts(char),
    /// Paths of files and folders.
    Paths,
    /// One of these words.
    Choice(Vec<&'static str>),
}

/// A value of an option, for setting it and for reading it back.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionValue {
    /// On or off.
    Flag(bool),
    /// Texts. An option with a single text has zero or one.
    Texts(Vec<String>),
    /// Paths.
    Paths(Vec<PathBuf>),
}

impl OptionValue {
    pub(crate) fn one(self) -> Result<Option<String>> {
        match self {
            OptionValue::Texts(mut texts) if texts.len() <= 1 => Ok(texts.pop()),
            _ => Err(Error::query("must be a single text")),
        }
    }

    /// Formats the value in one line. Texts are joined by the separator of their kind, or by a comma if the kind has
    /// none. Paths are joined by a colon.
    pub fn text(&self, kind: &OptionKind) -> String {
        let separator = if let OptionKind::Texts(separator) = kind { *separator } else { ',' };
        match self {
            OptionValue::Flag(on) => on.to_string(),
            OptionValue::Texts(texts) => texts.join(&separator.to_string()),
            OptionValue::Paths(paths) => {
                paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(":")
            }
        }
    }
}

impl<T> OptionRow<T> {
    /// Returns the description with all its sentences, in one line. `spelling` formats names of options, see [`spell`].
    pub fn description(&self, spelling: impl Fn(&str, Option<&str>) -> String) -> String {
        let notes = if self.notes.is_empty() { String::new() } else { format!(" {}", self.notes) };
        spell(&format!("{}.{notes}", self.about), spelling)
    }

    /// Rejects the option if an option that it conflicts with is set, too. `options` are all options of `target`.
    pub(crate) fn check_conflicts(&self, options: &[OptionRow<T>], target: &T) -> Result<()>
    where
        T: Default,
    {
        let Conflicts { names, reason } = self.conflicts;
        let is_conflict = |option: &&OptionRow<T>| names.contains(&option.name) && option.is_set(target);
        if !self.is_set(target) || !options.iter().any(|option| is_conflict(&option)) {
            return Ok(());
        }
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let names = match names.split_last() {
            Some((last, first)) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
            _ => names.concat(),
        };
        Err(Error::naming_options(&format!("`{}` {reason}; remove {names}", self.name)))
    }

    /// Returns the error for the option without a base side, if the option needs two sides and is set.
    pub(crate) fn check_alone(&self, target: &T) -> Result<()>
    where
        T: Default,
    {
        match self.alone {
            advice if !advice.is_empty() && self.is_set(target) => {
                let name = self.name;
                Err(Error::naming_options(&format!("`{name}` is for a comparison of two sides; {advice}")))
            }
            _ => Ok(()),
        }
    }

    /// Returns the current value in `target`.
    pub fn get(&self, target: &T) -> OptionValue {
        (self.get)(self.name, target)
    }

    /// Returns true if the value differs from the default.
    pub fn is_set(&self, target: &T) -> bool
    where
        T: Default,
    {
        self.get(target) != self.get(&T::default())
    }

    /// Sets the value.
    ///
    /// # Errors
    /// Fails if the option does not accept the value.
    pub fn set(&self, target: &mut T, value: OptionValue) -> Result<()> {
        (self.set)(self.name, target, value)
    }

    /// Returns `name=value`, or only the name of a flag.
    pub fn setting(&self, target: &T) -> String {
        match self.get(target) {
            OptionValue::Flag(_) => self.name.to_owned(),
            value => format!("{}={}", self.name, value.text(&(self.kind)())),
        }
    }
}

/// The type of a struct field that an option sets.
pub(crate) trait OptionField: Sized {
    fn kind() -> OptionKind;
    fn from_value(value: OptionValue) -> Result<Self>;
    fn to_value(&self) -> OptionValue;
}

impl OptionField for bool {
    fn kind() -> OptionKind {
        OptionKind::Flag
    }

    fn from_value(value: OptionValue) -> Result<bool> {
        match value {
            OptionValue::Flag(on) => Ok(on),
            _ => Err(Error::query("must be on or off")),
        }
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Flag(*self)
    }
}

impl OptionField for Option<String> {
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

impl OptionField for Option<TimeWindow> {
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

impl OptionField for Option<TimeSplit> {
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

impl OptionField for Option<u64> {
    fn kind() -> OptionKind {
        OptionKind::Count
    }

    fn from_value(value: OptionValue) -> Result<Option<u64>> {
        let number = |text: String| text.parse().map_err(|_| Error::query(format!("{text:?} is not a whole number")));
        value.one()?.map(number).transpose()
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Texts(self.iter().map(u64::to_string).collect())
    }
}

impl OptionField for Option<&'static InputFormat> {
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

impl OptionField for Vec<String> {
    fn kind() -> OptionKind {
        OptionKind::Texts(':')
    }

    /// Ignores empty texts, because scripts pass unset variables as empty arguments.
    fn from_value(value: OptionValue) -> Result<Vec<String>> {
        match value {
            OptionValue::Texts(texts) => Ok(texts.into_iter().filter(|text| !text.is_empty()).collect()),
            _ => Err(Error::query("must be texts")),
        }
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Texts(self.clone())
    }
}

impl OptionField for Vec<PathBuf> {
    fn kind() -> OptionKind {
        OptionKind::Paths
    }

    fn from_value(value: OptionValue) -> Result<Vec<PathBuf>> {
        match value {
            OptionValue::Paths(paths) => Ok(paths),
            _ => Err(Error::query("must be paths")),
        }
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Paths(self.clone())
    }
}

/// A percentage from 0 to 100, written as `0.5` or `0.5%`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Percent(pub f64);

impl std::str::FromStr for Percent {
    type Err = Error;

    fn from_str(text: &str) -> Result<Percent> {
        let number = text.trim().strip_suffix('%').unwrap_or(text).trim().parse().ok();
        let percent = number.filter(|percent| (0.0..=100.0).contains(percent)).map(Percent);
        percent.ok_or_else(|| Error::query(format!("must be a percentage from 0 to 100, such as 0.5, not {text:?}")))
    }
}

/// Implements [`OptionField`] for types that convert to and from a text. Without a text, the value is the default.
macro_rules! by_text {
    ($($type:ty: $kind:expr, $text:expr;)*) => {$(
        impl OptionField for $type {
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
    Percent: OptionKind::Number(&[]), |percent| percent.0.to_string();
    Normalize: OptionKind::Number(&["total", "duration"]), |how| match how {
        Normalize::Factor(factor) => factor.to_string(),
        _ => how.mode().to_owned(),
    };
}

/// Declares the options of a struct: each row becomes a field of the struct and a row of its `FIELDS`. `$others` are
/// fields that are not options.
macro_rules! options {
    (
        $(#[$attribute:meta])*
        pub struct $target:ident, others { $($(#[$other_attribute:meta])* $other:ident: $other_type:ty,)* }
        $($heading:ident {$(
            $field:ident: $type:ty = $name:literal {
                about: $about:literal,
                notes: $notes:literal,
                value: $value:literal,
                is: $offered:ident $scope:ident $reported:ident,
                $(alone: $alone:literal,)?
                $(conflicts: [$($conflict:literal),+] $reason:literal,)?
            }
        )*})*
    ) => {
        $(#[$attribute])*
        pub struct $target {
            $($(#[doc = concat!($about, ".")] pub $field: $type,)*)*
            $($(#[$other_attribute])* pub $other: $other_type,)*
        }

        impl $target {
            /// The options that are fields of the struct.
            pub(crate) const FIELDS: &'static [$crate::options::OptionRow<$target>] = &[$($($crate::options::OptionRow {
                name: $name,
                about: $about,
                notes: $notes,
                value_name: $value,
                alone: concat!($($alone)?),
                conflicts: $crate::options::Conflicts { names: &[$($($conflict),+)?], reason: concat!($($reason)?) },
                heading: $crate::options::Heading::$heading,
                offered: $crate::options::Offered::$offered,
                scope: $crate::options::Scope::$scope,
                reported: $crate::options::Reported::$reported,
                kind: <$type as $crate::options::OptionField>::kind,
                get: |_, target| $crate::options::OptionField::to_value(&target.$field),
                set: |_, target, value| {
                    target.$field = $crate::options::OptionField::from_value(value)?;
                    Ok(())
                },
            },)*)*];
        }
    };
}
pub(crate) use options;
