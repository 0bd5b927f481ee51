//! Filters, with pprof's names and meaning, as a user gives them; `plan` is what becomes of a profile by them.

mod compiled;
mod names;
mod plan;

use serde::{Deserialize, Serialize};

pub(crate) use compiled::Compiled;
use compiled::given;
pub(crate) use plan::{FilterPlan, Filtered};

use super::query::Query;
use crate::options::{Heading, Offered, OptionKind, OptionRow, OptionValue, Reported, Scope};
use crate::{Error, Result};

/// Describes the filters once, in the order in which they apply: each becomes a field of [`Filters`] and a row of
/// [`Filters::ALL`], from which the command and Python make their options.
macro_rules! filters {
    ($($name:ident: $kind:ident $offered:ident, $about:literal;)*) => {
        /// Filters as a user gives them. The names and the meaning are pprof's.
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

        /// The filters as a list for docstrings.
        #[doc(hidden)]
        #[macro_export]
        macro_rules! filter_docs {
            () => { concat!($("\n- `", stringify!($name), "`: ", $about, "."),*) };
        }

        /// The filters as keywords of a signature.
        #[doc(hidden)]
        #[macro_export]
        macro_rules! filter_keywords {
            () => { concat!($(", ", stringify!($name), "=None"),*) };
        }
    };
}

filters! {
    tagroot: Keys Rarely, "Make the values of these labels frames at the root";
    tagleaf: Keys Rarely, "Make the values of these labels frames at the leaf";
    focus: Frames Always, "Keep only samples with a matching frame";
    ignore: Frames Always, "Drop samples with a matching frame; wins over focus";
    hide: Frames Rarely, "Remove matching frames; their cost moves to the caller";
    show: Frames Always, "Remove the frames that do not match";
    show_from: Frames Rarely, "Drop what is above the root-most match, and samples without one";
    tagfocus: Labels Always, "Keep only samples with this label: key=RE, RE, bytes=1kb:1mb";
    base_tagfocus: Labels Rarely, "Let the base be its samples with this label, as in tagfocus; totals are theirs";
    new_tagfocus: Labels Rarely, "Let the new side be its samples with this label, as in tagfocus; totals are theirs";
    tagignore: Labels Rarely, "Drop samples with this label";
    tagshow: LabelKeys Rarely, "Show only the labels whose key matches, where labels are shown";
    taghide: LabelKeys Rarely, "Show no label whose key matches";
    prune_from: Frames Rarely, "Drop what is below the leaf-most match";
}

/// One of [`Filters::ALL`]: what the command and Python need to offer it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Filter {
    /// pprof's name for it.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// What it is matched against.
    pub kind: FilterKind,
    offered: Offered,
    get: fn(&Filters) -> &Option<String>,
    get_mut: fn(&mut Filters) -> &mut Option<String>,
}

/// What a filter is matched against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterKind {
    /// A regular expression on function names, file names and the mapped binary's file name, unanchored.
    Frames,
    /// The labels of samples: `key=regex`, `regex` on `key:value`, or a range of a numeric label, as in
    /// `bytes=32kb:1mb`, `:64kb`, `4mb:`.
    Labels,
    /// A regular expression on the keys of labels, unanchored.
    LabelKeys,
    /// Keys of labels, with commas between them.
    Keys,
}

impl FilterKind {
    /// What stands for its value in help.
    pub fn value_name(self) -> &'static str {
        match self {
            FilterKind::Frames | FilterKind::LabelKeys => "RE",
            FilterKind::Labels => "[KEY=]RE|RANGE",
            FilterKind::Keys => "KEY,...",
        }
    }
}

impl Filter {
    /// The filter of a name, if there is one.
    pub fn named(name: &str) -> Option<&'static Filter> {
        Filters::ALL.iter().find(|f| f.name == name)
    }

    /// Its value, where it is set. An empty one is none, as in pprof: scripts pass variables that are not set.
    pub fn value(self, filters: &Filters) -> Option<&str> {
        given((self.get)(filters))
    }

    /// Sets it; `None` and an empty value take it away.
    pub fn set(self, filters: &mut Filters, value: Option<String>) {
        *(self.get_mut)(filters) = value.filter(|v| !v.is_empty());
    }

    /// As an option of a query.
    pub(super) fn option(&self) -> OptionRow<Query> {
        OptionRow {
            name: self.name,
            about: self.about,
            notes: "",
            value_name: self.kind.value_name(),
            annotation: "str | None",
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
    /// With a filter, by its name ([`Filters::ALL`]).
    ///
    /// # Errors
    /// There is no filter of that name.
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Result<Filters> {
        let filter = Filter::named(name).ok_or_else(|| Error::query(format!("there is no filter {name:?}")))?;
        filter.set(&mut self, Some(value.into()));
        Ok(self)
    }

    /// The filters that are set, by name, in the order in which they apply.
    pub fn set(&self) -> Vec<(&'static str, &str)> {
        Filters::ALL.iter().filter_map(|f| f.value(self).map(|v| (f.name, v))).collect()
    }

    /// True if one of a kind is set.
    pub(crate) fn has(&self, kind: FilterKind) -> bool {
        Filters::ALL.iter().any(|f| f.kind == kind && f.value(self).is_some())
    }

    /// Says what is wrong with the expressions before anything is looked at.
    ///
    /// # Errors
    /// An invalid regular expression or range.
    pub fn check(&self) -> Result<()> {
        Compiled::new(self, false, false).map(drop)
    }
}
