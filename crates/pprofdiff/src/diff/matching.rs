//! Matching across builds: which names mean the same function. Compilers number what a programmer gave no name, and the
//! numbers are others in each build. The rules are in `pprofdiff_profile::canonical`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};
pub(crate) use pprofdiff_profile::canonical::{Canonical, Variants, canonical, canonical_of, stable};
use pprofdiff_profile::random::{HashMap, HashSet};

/// Which frames of the two sides are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Matching {
    /// Exact where two profiles are compared as pprof compares them; stable where runs are: in a check, a series, and a
    /// table of several runs.
    #[default]
    Auto,
    /// Those of equal names, as in pprof.
    Exact,
    /// Those whose names are equal without numbers of a run or a build: addresses and counters of generated classes,
    /// hashes of compilers, folders of a release.
    Stable,
    /// Those whose names are equal without what compilers number anew in each build: hashes, clones, closures, generic
    /// instantiations, lines in the names of JavaScript's functions.
    Canonical,
    /// These, and besides: functions that were renamed are the same, and those that one side has inlined are part of
    /// their callers on both. They are found by their neighbours and costs, as `explain` finds them.
    Moved,
}

impl Matching {
    /// All, by their names.
    pub const ALL: [(&'static str, Matching); 5] = [
        ("auto", Matching::Auto),
        ("exact", Matching::Exact),
        ("stable", Matching::Stable),
        ("canonical", Matching::Canonical),
        ("moved", Matching::Moved),
    ];

    /// The name in results.
    pub fn name(self) -> &'static str {
        Matching::ALL[self as usize].0
    }

    /// Returns true if views may show names as they are.
    pub(crate) fn is_exact(self) -> bool {
        matches!(self, Matching::Auto | Matching::Exact)
    }

    /// Decides what `Auto` means for a comparison of two profiles, or of runs.
    pub(crate) fn resolved(self, is_of_runs: bool) -> Matching {
        match self {
            Matching::Auto if is_of_runs => Matching::Stable,
            Matching::Auto => Matching::Exact,
            other => other,
        }
    }

    /// Returns a name as it is matched.
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
        let known = Matching::ALL.iter().find(|(name, _)| *name == text);
        known.map(|(_, matching)| *matching).ok_or_else(|| {
            Error::query(format!("names are matched as exact, stable, canonical or moved, not {text:?}"))
        })
    }
}

/// Names, with what they are called instead.
pub(crate) type Renamed = HashMap<String, String>;

/// What moved between the builds, by canonical names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moves {
    /// Names of the base, with those of the new side.
    pub renamed: Renamed,
    /// Of both: functions that are part of their callers on the other.
    pub folded: [HashSet<String>; 2],
    /// What was found, in words.
    pub told: Vec<String>,
}
