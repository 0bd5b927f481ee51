//! Filters as the user sets them, with pprof's names and meaning. `plan` applies them to a profile.

mod compiled;
mod names;
mod plan;

use serde::{Deserialize, Serialize};

pub(crate) use compiled::Compiled;
use compiled::non_empty;
pub(crate) use plan::{FilterPlan, Filtered};

use super::query::Query;
use crate::options::{Conflicts, Heading, Offered, OptionKind, OptionRow, OptionValue, Reported, Scope};
use crate::{Error, Result};

/// Declares the filters in the order in which they apply. Each filter becomes a field of [`Filters`] and an element of
/// [`Filters::ALL`], which the command and Python use to define their options.
macro_rules! filters {
    ($($name:ident: $kind:ident $offered:ident, $about:literal;)*) => {
        /// Filters as the user sets them. Their names and their meaning are pprof's.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        #[non_exhaustive]
        pub struct Filters {
            $(#[doc = concat!($about, ".")] pub $name: Option<String>,)*
        }

        impl Filters {
            /// All filters, in the order in which they apply.
            pub const ALL: &'static [Filter] = &[$(Filter {
                name: stringify!($name),
                about: $about,
                kind: FilterKind::$kind,
                offered: Offered::$offered,
                get: |filters| &filters.$name,
                get_mut: |filters| &mut filters.$name,
            }),*];
        }
    };
}

filters! {
    tagroot: Keys Rarely, "Add the values of these labels as frames at the root";
    tagleaf: Keys Rarely, "Add the values of these labels as frames at the leaf";
    focus: Frames Always, "Keep only samples with a matching frame";
    ignore: Frames Always, "Drop samples with a matching frame; wins over `focus`";
    hide: Frames Rarely, "Remove matching frames; their cost moves to the caller";
    show: Frames Always, "Remove the frames that do not match";
    show_from: Frames Rarely, "Drop frames above the root-most match, and samples without a match";
    tagfocus: Labels Always, "Keep only samples with this label: key=RE, RE, bytes=1kb:1mb";
    base_tagfocus: Labels Rarely, "Restrict the base to samples with this label, as in `tagfocus`; totals change too";
    new_tagfocus: Labels Rarely, "Restrict the new side to samples with this label, as in `tagfocus`; totals change too";
    tagignore: Labels Rarely, "Drop samples with this label";
    tagshow: LabelKeys Rarely, "Show only labels with a matching key, in views of labels";
    taghide: LabelKeys Rarely, "Hide labels with a matching key";
    prune_from: Frames Rarely, "Drop frames below the leaf-most match";
}

/// An element of [`Filters::ALL`], with the data that the command and Python need to define an option.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Filter {
    /// The name, as in pprof.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The property of samples that the filter matches.
    pub kind: FilterKind,
    offered: Offered,
    get: fn(&Filters) -> &Option<String>,
    get_mut: fn(&mut Filters) -> &mut Option<String>,
}

/// The property of samples that a filter matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterKind {
    /// A regular expression that is searched in function names, file names and the file name of the mapped binary.
    Frames,
    /// The labels of samples: `key=regex`, `regex` on `key:value`, or a range of a numeric label, as in
    /// `bytes=32kb:1mb`, `:64kb`, `4mb:`.
    Labels,
    /// A regular expression that is searched in the keys of labels.
    LabelKeys,
    /// Keys of labels, separated by commas.
    Keys,
}

impl FilterKind {
    /// Returns the placeholder for a value in help.
    pub fn value_name(self) -> &'static str {
        match self {
            FilterKind::Frames | FilterKind::LabelKeys => "RE",
            FilterKind::Labels => "[KEY=]RE|RANGE",
            FilterKind::Keys => "KEY,...",
        }
    }
}

impl Filter {
    /// Returns the filter with this name, if there is one.
    pub fn named(name: &str) -> Option<&'static Filter> {
        Filters::ALL.iter().find(|f| f.name == name)
    }

    /// Returns the filter's value, if it is set. As in pprof, an empty value means not set, because scripts may pass
    /// unset variables.
    pub fn value(self, filters: &Filters) -> Option<&str> {
        non_empty((self.get)(filters))
    }

    /// Sets the filter's value. `None` and an empty value clear it.
    pub fn set(self, filters: &mut Filters, value: Option<String>) {
        *(self.get_mut)(filters) = value.filter(|v| !v.is_empty());
    }

    /// Returns the filter as an option of a query.
    pub(super) fn option(&self) -> OptionRow<Query> {
        OptionRow {
            name: self.name,
            about: self.about,
            notes: "",
            value_name: self.kind.value_name(),
            alone: "",
            conflicts: Conflicts::NONE,
            heading: Heading::Filters,
            offered: self.offered,
            scope: Scope::Everything,
            reported: Reported::WhenSet,
            kind: || OptionKind::Text,
            get: |name, query| {
                let value = Filter::named(name).and_then(|filter| filter.value(&query.filters));
                OptionValue::Texts(value.map(str::to_owned).into_iter().collect())
            },
            set: |name, query, value| {
                let value = value.one()?;
                if let Some(filter) = Filter::named(name) {
                    filter.set(&mut query.filters, value);
                }
                Ok(())
            },
        }
    }
}

impl Filters {
    /// Sets a filter by its name ([`Filters::ALL`]).
    ///
    /// # Errors
    /// Fails if no filter has this name.
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Result<Filters> {
        let filter = Filter::named(name).ok_or_else(|| Error::query(format!("there is no filter {name:?}")))?;
        filter.set(&mut self, Some(value.into()));
        Ok(self)
    }

    /// Returns the filters that are set as (name, value), in the order in which they apply.
    pub fn set(&self) -> Vec<(&'static str, &str)> {
        Filters::ALL.iter().filter_map(|f| f.value(self).map(|v| (f.name, v))).collect()
    }

    /// Returns true if a filter of this kind is set.
    pub(crate) fn has(&self, kind: FilterKind) -> bool {
        Filters::ALL.iter().any(|f| f.kind == kind && f.value(self).is_some())
    }

    /// Checks the expressions before any profile is loaded.
    ///
    /// # Errors
    /// Fails on an invalid regular expression or range.
    pub fn check(&self) -> Result<()> {
        Compiled::new(self, false, false).map(drop)
    }
}
