//! Matches functions across builds by name. Compilers number functions that have no name in the source, such as
//! closures, and these numbers differ between builds. The rules are in `pprofdiff_profile::canonical`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};
pub(crate) use pprofdiff_profile::canonical::{canonical, canonical_of, stable};
use pprofdiff_profile::random::{HashMap, HashSet};

/// The rule that decides which frames of the two sides are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Matching {
    /// Exact for a comparison of two profiles, as in pprof. Stable for runs: in checks, series, and tables of several
    /// runs.
    #[default]
    Auto,
    /// Frames with equal names are the same, as in pprof.
    Exact,
    /// Ignores numbers in names that belong to a run or a build: addresses and counters of generated classes, compiler
    /// hashes, folders of a release.
    Stable,
    /// Ignores everything in names that compilers number anew in each build: hashes, clones, closures, generic
    /// instantiations, and lines in names of JavaScript functions.
    Canonical,
    /// Like `Canonical`. In addition, renamed functions are the same, and functions that one side has inlined count as
    /// part of their callers on both sides. `explain`'s rules find them by their neighbours and costs.
    Moved,
}

impl Matching {
    /// All values, with their names.
    pub const ALL: [(&'static str, Matching); 5] = [
        ("auto", Matching::Auto),
        ("exact", Matching::Exact),
        ("stable", Matching::Stable),
        ("canonical", Matching::Canonical),
        ("moved", Matching::Moved),
    ];

    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        Matching::ALL[self as usize].0
    }

    /// Returns true if views may show names unchanged.
    pub(crate) fn is_exact(self) -> bool {
        matches!(self, Matching::Auto | Matching::Exact)
    }

    /// Resolves `Auto` for a comparison of two profiles, or of runs.
    pub(crate) fn resolved(self, is_of_runs: bool) -> Matching {
        match self {
            Matching::Auto if is_of_runs => Matching::Stable,
            Matching::Auto => Matching::Exact,
            other => other,
        }
    }

    /// Returns a name in its matched form.
    pub(crate) fn name_of(self, name: &str) -> Cow<'_, str> {
        match self {
            Matching::Auto | Matching::Exact => Cow::Borrowed(name),
            Matching::Stable => stable(name),
            Matching::Canonical | Matching::Moved => canonical(name),
        }
    }
}

impl std::str::FromStr for Matching {
    type Err = Error;

    fn from_str(text: &str) -> Result<Matching> {
        let entry = Matching::ALL.iter().find(|(name, _)| *name == text);
        entry.map(|(_, matching)| *matching).ok_or_else(|| {
            Error::query(format!("unknown matching {text:?}; choose auto, exact, stable, canonical or moved"))
        })
    }
}

/// New names of functions, by old name.
pub(crate) type RenamedFunctions = HashMap<String, String>;

/// Functions that were renamed or inlined between the builds, by canonical names.
#[derive(Debug, Clone, Default)]
pub struct Moves {
    /// Names in the base, with their names on the new side.
    pub renamed: RenamedFunctions,
    /// For each side, the functions that are part of their callers on the opposite side.
    pub folded: [HashSet<String>; 2],
    /// Descriptions of these functions for warnings.
    pub warnings: Vec<String>,
}
