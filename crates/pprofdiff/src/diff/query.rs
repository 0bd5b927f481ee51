//! The options of a diff, in one table. Each row is an option of the command, a keyword in Python and a field of the
//! web page. The code that reads a field implements the option's effect.

use serde::{Deserialize, Serialize};

use super::{Diff, Filters, Granularity, Matching, Normalize, Pair};
use crate::options::{OptionKind, OptionRow, OptionValue, Percent, Reported, Scope, options};
use crate::{Error, Result};
use pprofdiff_profile::units;

options! {
    /// The options of a view: what it shows and how. [`Query::options`] lists them.
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    #[non_exhaustive]
    pub struct Query, others {
        /// Additional sample types, shown next to the first one in views of rows.
        extra_sample_types: Vec<String>,
        /// Filters that select samples and frames. They match the original names, before `match` changes any.
        filters: Filters,
    }

    Selection {
        sample_type: Option<String> = "sample_type" {
            about: "Sample type, such as cpu or alloc_space",
            notes: "Defaults to the profile's own. Several are shown side by side in tables; if one of two is a count, the ratio is shown too.",
            value: "TYPE,...",
            is: Always Everything Elsewhere,
        }
        granularity: Granularity = "granularity" {
            about: "Unit of a row: functions, filefunctions, files, lines, addresses",
            notes: "Defaults to functions.",
            value: "ROWS",
            is: Usually Everything Always,
        }
        no_inlines: bool = "noinlines" {
            about: "Count inlined functions as part of their caller",
            notes: "",
            value: "",
            is: Rarely Everything Always,
        }
        all_frames: bool = "all_frames" {
            about: "Keep frames that a profile marks to be dropped",
            notes: "These frames match its drop_frames but not its keep_frames, such as frames of an allocator.",
            value: "",
            is: Rarely Everything WhenSet,
        }
        matching: Matching = "match" {
            about: "How names of functions are matched: auto, exact, stable, canonical, moved",
            notes: "exact compares whole names, as pprof does. stable ignores numbers of a run or a build: addresses, hashes, generated classes. auto is exact for two profiles, and stable in checks, series and tables of runs. canonical also ignores clones, closures and generic instances. moved also matches renamed functions, and counts functions that one side inlines as part of their callers, as explain does.",
            value: "HOW",
            is: Rarely Everything Always,
        }
        trim_path: Vec<String> = "trim_path" {
            about: "Cut these prefixes off the paths of files",
            notes: "Versions of folders (y@v1.2.3) are cut as well, so that files of two checkouts match.",
            value: "PREFIX:...",
            is: Rarely Everything Always,
        }
        normalize: Normalize = "normalize" {
            about: "Scale the new side by total, duration or a factor",
            notes: "total makes both totals equal, duration compares rates; a factor is a number such as 0.5, or a quotient such as 1000/3000.",
            value: "HOW",
            is: Always Everything Elsewhere,
        }
    }

    Display {
        unit: Option<String> = "unit" {
            about: "Show values in this unit, such as ms or MB",
            notes: "auto chooses a unit for each value. By default, a column has one unit. JSON and CSV always use the profile's own unit.",
            value: "UNIT",
            is: Usually Rows Elsewhere,
        }
        mean: bool = "mean" {
            about: "Divide values of one profile by its first sample type, a count",
            notes: "Delays become the mean delay, and heap sizes become bytes per object.",
            value: "",
            is: Rarely Sums Elsewhere,
        }
        drop_negative: bool = "drop_negative" {
            about: "Hide frames whose cost fell",
            notes: "These are frames with a lower flat, or with a lower cum and an unchanged flat.",
            value: "",
            is: Rarely Frames WhenSet,
        }
        hide_below: Percent = "hide_below" {
            about: "Hide frames that are below this percent of the total on both sides",
            notes: "The limit applies to the cost that rows are sorted by: flat, or cum with `sort=cum`.",
            value: "PERCENT",
            is: Always Table WhenSet,
        }
        relative_percentages: bool = "relative_percentages" {
            about: "Compute percentages of the filtered total",
            notes: "By default, they refer to the whole profile.",
            value: "",
            is: Rarely Rows WhenSet,
        }
    }
}

impl Query {
    /// Returns all options: the fields, then the filters.
    pub fn options() -> impl Iterator<Item = OptionRow<Query>> {
        let fields = Query::FIELDS.iter().map(|option| match option.name {
            // The field holds only the first type, see `set`.
            "sample_type" => OptionRow { kind: || OptionKind::Texts(','), ..*option },
            _ => *option,
        });
        fields.chain(Filters::ALL.iter().map(|filter| filter.option()))
    }

    /// Returns the option with this name.
    pub fn option(name: &str) -> Option<OptionRow<Query>> {
        Query::options().find(|option| option.name == name)
    }

    /// Sets an option. If the value is a list of sample types, the first becomes the type of the query, and the rest
    /// become `extra_sample_types`.
    ///
    /// # Errors
    /// Fails if the option does not accept the value.
    pub fn set(&mut self, option: OptionRow<Query>, value: OptionValue) -> Result<()> {
        match value {
            OptionValue::Texts(mut types) if option.name == "sample_type" => {
                self.extra_sample_types = types.split_off(types.len().min(1));
                option.set(self, OptionValue::Texts(types))
            }
            value => option.set(self, value),
        }
    }

    /// Returns the options that are set, each as a short text for reports.
    pub fn settings(&self) -> Vec<String> {
        let set = Query::options().filter(|option| option.reported != Reported::Elsewhere && option.is_set(self));
        set.map(|option| option.setting(self)).collect()
    }

    /// Rejects options that have no effect in a view, so that they are not silently ignored. `view` is a name for the
    /// error message, and `scope` is the scope of options that the view supports.
    ///
    /// # Errors
    /// Fails if an option outside the scope is set.
    pub fn check_scope(&self, view: &str, scope: Scope) -> Result<()> {
        match Query::options().find(|option| option.scope > scope && option.is_set(self)) {
            Some(option) => Err(Error::naming_options(&format!("{view} does not support `{}`", option.name))),
            None => Ok(()),
        }
    }

    /// Resets the options that only some views support.
    #[must_use]
    pub fn without_view_options(mut self) -> Query {
        for option in Query::options().filter(|option| option.scope != Scope::Everything) {
            let default = option.get(&Query::default());
            // A default is always a valid value of its option.
            let _ = option.set(&mut self, default);
        }
        self
    }

    /// Sets the sample type, by its name.
    #[must_use]
    pub fn with_sample_type(mut self, name: impl Into<String>) -> Self {
        self.sample_type = Some(name.into());
        self
    }

    /// Sets the granularity of the rows.
    #[must_use]
    pub fn with_granularity(mut self, granularity: Granularity) -> Self {
        self.granularity = granularity;
        self
    }

    /// Sets whether inlined functions count as part of their caller.
    #[must_use]
    pub fn with_no_inlines(mut self, no_inlines: bool) -> Self {
        self.no_inlines = no_inlines;
        self
    }

    /// Sets whether frames that match a profile's drop_frames are kept.
    #[must_use]
    pub fn with_all_frames(mut self, all_frames: bool) -> Self {
        self.all_frames = all_frames;
        self
    }

    /// Sets the prefixes to cut off the paths of files.
    #[must_use]
    pub fn with_trim_path(mut self, prefixes: Vec<String>) -> Self {
        self.trim_path = prefixes;
        self
    }

    /// Sets the filters.
    #[must_use]
    pub fn with_filters(mut self, filters: Filters) -> Self {
        self.filters = filters;
        self
    }

    /// Sets how names are matched across builds.
    #[must_use]
    pub fn with_matching(mut self, matching: Matching) -> Self {
        self.matching = matching;
        self
    }

    /// Sets how the new side is scaled.
    #[must_use]
    pub fn with_normalize(mut self, normalize: Normalize) -> Self {
        self.normalize = normalize;
        self
    }

    /// Sets whether values are divided by the values of the first sample type.
    #[must_use]
    pub fn with_mean(mut self, mean: bool) -> Self {
        self.mean = mean;
        self
    }

    /// Returns true if a cost is below `hide_below` percent on both sides. Each side is compared with its own total.
    pub(super) fn hides(&self, cost: Pair, total: Pair) -> bool {
        let percent = |cost: i64, total: i64| match total {
            0 => 0.0,
            total => 100.0 * cost.unsigned_abs() as f64 / total.unsigned_abs() as f64,
        };
        percent(cost.base, total.base).max(percent(cost.new, total.new)) < self.hide_below.0
    }

    /// Rejects options that do not apply to this diff, and unknown units.
    pub(super) fn check(&self, diff: &Diff) -> Result<()> {
        if self.mean && diff.is_two_sided() {
            return Err(Error::naming_options(
                "`mean` needs a single profile; for two, pass both sample types: if one is a count, the table shows the ratio",
            ));
        }
        match &self.unit {
            Some(unit) if unit != units::AUTO && units::find(unit).is_none() => {
                let names = units::names().collect::<Vec<_>>().join(", ");
                Err(Error::query(format!("there is no unit {unit:?}; choose auto, {names}")))
            }
            _ => Ok(()),
        }
    }
}
