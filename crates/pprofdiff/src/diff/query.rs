//! What is asked of a diff: sample type, granularity, filters, scale, and how rows are shown.

use serde::{Deserialize, Serialize};

use super::identity::Granularity;
use super::matching::Matching;
use super::normalize::Normalize;
use super::{Diff, Filters};
use crate::{Error, Result};
use pprofdiff_profile::units;

/// What to look at, and how.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Query {
    /// The sample type's name; the default one if not given.
    pub sample_type: Option<String>,
    /// What a row stands for.
    pub granularity: Granularity,
    /// Count inlined functions as part of the one they were inlined into.
    pub no_inlines: bool,
    /// Prefixes to cut off the paths of files, the first that fits. Given any, versions of folders (`y@v1.2.3`) are cut
    /// as well, so that two checkouts compare; without, paths are pprof's. Where no files are shown it changes nothing.
    pub trim_path: Vec<String>,
    /// Which samples and frames take part. They see names as they are.
    pub filters: Filters,
    /// How the new side is scaled.
    pub normalize: Normalize,
    /// Which frames of the two sides are the same.
    #[serde(default)]
    pub matching: Matching,
    /// How rows are reckoned and shown, as pprof's options say it.
    #[serde(default)]
    pub showing: Showing,
}

/// How rows are reckoned and shown, as pprof's options say it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Showing {
    /// The unit in which people are shown values that convert to it ([`AUTO`](pprofdiff_profile::units::AUTO): each in the
    /// one that suits it). Unless given, a column has the unit that suits its largest value. Data have the profile's own.
    pub unit: Option<String>,
    /// Totals and percentages are of what filters leave, and not of the whole.
    pub relative_percentages: bool,
    /// Without frames whose flat fell, or whose cum fell while their flat stayed.
    pub drop_negative: bool,
    /// Of one profile: values are divided by those of its first sample type, which counts them, and cut to whole numbers.
    pub mean: bool,
}

impl Showing {
    /// With a unit.
    #[must_use]
    pub fn with_unit(mut self, unit: Option<String>) -> Self {
        self.unit = unit;
        self
    }

    /// With percentages of what filters leave, or not.
    #[must_use]
    pub fn with_relative_percentages(mut self, relative_percentages: bool) -> Self {
        self.relative_percentages = relative_percentages;
        self
    }

    /// Without what fell, or with it.
    #[must_use]
    pub fn with_drop_negative(mut self, drop_negative: bool) -> Self {
        self.drop_negative = drop_negative;
        self
    }

    /// With means, or sums.
    #[must_use]
    pub fn with_mean(mut self, mean: bool) -> Self {
        self.mean = mean;
        self
    }

    /// What can't be shown of a diff.
    pub(super) fn check(&self, diff: &Diff) -> Result<()> {
        if self.mean && diff.is_two_sided() {
            return Err(Error::query(
                "mean is of one profile; of two, ask for both sample types: the table has the ratio of which one counts",
            ));
        }
        match &self.unit {
            Some(unit) if unit != units::AUTO && units::find(unit).is_none() => {
                let known = units::symbols().collect::<Vec<_>>().join(", ");
                Err(Error::query(format!("there is no unit {unit:?}; there are auto, {known}")))
            }
            _ => Ok(()),
        }
    }
}

impl Query {
    /// With a sample type, by its name.
    #[must_use]
    pub fn with_sample_type(mut self, name: impl Into<String>) -> Self {
        self.sample_type = Some(name.into());
        self
    }

    /// With rows of another granularity.
    #[must_use]
    pub fn with_granularity(mut self, granularity: Granularity) -> Self {
        self.granularity = granularity;
        self
    }

    /// With inlined functions as part of their caller, or not.
    #[must_use]
    pub fn with_no_inlines(mut self, no_inlines: bool) -> Self {
        self.no_inlines = no_inlines;
        self
    }

    /// With these prefixes cut off the paths of files.
    #[must_use]
    pub fn with_trim_path(mut self, prefixes: Vec<String>) -> Self {
        self.trim_path = prefixes;
        self
    }

    /// With filters.
    #[must_use]
    pub fn with_filters(mut self, filters: Filters) -> Self {
        self.filters = filters;
        self
    }

    /// With names matched across builds.
    #[must_use]
    pub fn with_matching(mut self, matching: Matching) -> Self {
        self.matching = matching;
        self
    }

    /// With rows reckoned and shown as pprof's options say it.
    #[must_use]
    pub fn with_showing(mut self, showing: Showing) -> Self {
        self.showing = showing;
        self
    }

    /// With the new side scaled.
    #[must_use]
    pub fn with_normalize(mut self, normalize: Normalize) -> Self {
        self.normalize = normalize;
        self
    }
}
