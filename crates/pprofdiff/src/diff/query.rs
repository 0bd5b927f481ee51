//! What is asked of a diff: the one table of its options. A row is an option of the command, a keyword of Python and a
//! question of the page; its effect is where the field is read.

use serde::{Deserialize, Serialize};

use super::{Diff, Filters, Granularity, Matching, Normalize, Pair};
use crate::options::{OptionKind, OptionRow, OptionValue, Percent, Reported, Scope, options};
use crate::{Error, Result};
use pprofdiff_profile::units;

options! {
    /// What to look at, and how. Its options are [`Query::options`].
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    #[non_exhaustive]
    pub struct Query, docs query_docs query_keywords, others {
        /// More sample types, side by side with the first, in views of rows.
        extra_sample_types: Vec<String>,
        /// Which samples and frames take part. They see names as they are.
        filters: Filters,
    }

    Selection {
        sample_type: Option<String> = "sample_type" {
            about: "Sample type, such as cpu or alloc_space",
            notes: " That of the profile unless given. Several\n  stand side by side in tables, with the ratio of two of which one counts.",
            value: "TYPE,...",
            annotation: "str | Sequence[str] | None",
            is: Always Everything Elsewhere,
        }
        granularity: Granularity = "granularity" {
            about: "What a row is: functions, filefunctions, files, lines, addresses",
            notes: " Functions unless given.",
            value: "ROWS",
            annotation: "Granularity",
            is: Usually Everything Always,
        }
        no_inlines: bool = "noinlines" {
            about: "Count inlined functions as part of their caller",
            notes: "",
            value: "",
            annotation: "bool",
            is: Rarely Everything Always,
        }
        all_frames: bool = "all_frames" {
            about: "Keep frames that a profile marks to be dropped",
            notes: " They match its drop_frames but not its\n  keep_frames, such as an allocator's.",
            value: "",
            annotation: "bool",
            is: Rarely Everything WhenSet,
        }
        matching: Matching = "match" {
            about: "Which names are the same function: auto, exact, stable, canonical, moved",
            notes: " Exact names are equal,\n  as in pprof. Stable names are equal without numbers of a run or a build: addresses, hashes, generated classes.\n  auto is exact for two profiles, and stable in checks, series and tables of runs. Canonical names are also equal\n  without clones, closures and instances. With moved, renamed functions are the same too, and those that one side\n  has inlined are part of their callers, as explain finds them.",
            value: "HOW",
            annotation: "Matching",
            is: Rarely Everything Always,
        }
        trim_path: Vec<String> = "trim_path" {
            about: "Cut these prefixes off the paths of files",
            notes: " Versions of folders (y@v1.2.3) are cut as well, so\n  that two checkouts compare.",
            value: "PREFIX:...",
            annotation: "str | Sequence[str] | None",
            is: Rarely Everything Always,
        }
        normalize: Normalize = "normalize" {
            about: "Scale the new side by total, duration or a factor",
            notes: " total makes both totals equal, duration\n  compares rates; a factor is a number such as 0.5, or a quotient such as 1000/3000.",
            value: "HOW",
            annotation: "Literal[\"total\", \"duration\"] | float | None",
            is: Always Everything Elsewhere,
        }
    }

    Display {
        unit: Option<String> = "unit" {
            about: "Show values in this unit, such as ms or MB",
            notes: " auto: each value in the unit that suits it. Unless\n  given, a column has one unit; JSON and CSV always have the profile's own.",
            value: "UNIT",
            annotation: "str | None",
            is: Usually Rows Elsewhere,
        }
        mean: bool = "mean" {
            about: "Divide values of one profile by its first sample type, which counts",
            notes: " So a delay becomes\n  the mean of a delay, and a heap bytes an object.",
            value: "",
            annotation: "bool",
            is: Rarely Sums Elsewhere,
        }
        drop_negative: bool = "drop_negative" {
            about: "Leave out frames that fell",
            notes: " Those whose flat fell, or whose cum fell while their flat\n  stayed.",
            value: "",
            annotation: "bool",
            is: Rarely Frames WhenSet,
        }
        hide_below: Percent = "hide_below" {
            about: "Hide frames that are below this percent of the total on both sides",
            notes: " What is compared\n  is the cost that rows are ordered by: flat, or cum with --sort cum (sort=\"cum\").",
            value: "PERCENT",
            annotation: "float",
            is: Always Table WhenSet,
        }
        relative_percentages: bool = "relative_percentages" {
            about: "Take percentages of what filters leave",
            notes: " Without it they are of the whole.",
            value: "",
            annotation: "bool",
            is: Rarely Rows WhenSet,
        }
    }
}

impl Query {
    /// All options: the fields, then the filters.
    pub fn options() -> impl Iterator<Item = OptionRow<Query>> {
        let fields = Query::FIELDS.iter().map(|option| match option.name {
            // The first is the field's, see `set`.
            "sample_type" => OptionRow { kind: || OptionKind::Texts(','), ..*option },
            _ => *option,
        });
        fields.chain(Filters::ALL.iter().map(|filter| filter.option()))
    }

    /// The option of a name.
    pub fn option(name: &str) -> Option<OptionRow<Query>> {
        Query::options().find(|option| option.name == name)
    }

    /// Sets an option. Of several sample types the first is that of the query, and the others stand beside it.
    ///
    /// # Errors
    /// A value that the option does not take.
    pub fn set(&mut self, option: OptionRow<Query>, value: OptionValue) -> Result<()> {
        match value {
            OptionValue::Texts(mut types) if option.name == "sample_type" => {
                self.extra_sample_types = types.split_off(types.len().min(1));
                option.set(self, OptionValue::Texts(types))
            }
            value => option.set(self, value),
        }
    }

    /// What was set, each in a word, as reports say it to people.
    pub fn settings(&self) -> Vec<String> {
        let set = Query::options().filter(|option| option.reported != Reported::Elsewhere && option.is_set(self));
        set.map(|option| option.setting(self)).collect()
    }

    /// Says where an option has no meaning, rather than to pass over it. `what` is a view that takes options of this scope.
    ///
    /// # Errors
    /// Such an option is set.
    pub fn check_scope(&self, what: &str, scope: Scope) -> Result<()> {
        match Query::options().find(|option| option.scope > scope && option.is_set(self)) {
            Some(option) => Err(Error::query(format!("{what} knows no {}", option.name))),
            None => Ok(()),
        }
    }

    /// Without the options that not all views take.
    #[must_use]
    pub fn of_any_view(mut self) -> Query {
        for option in Query::options().filter(|option| option.scope != Scope::Everything) {
            let usual = option.get(&Query::default());
            // What a default has is a value of the option.
            let _ = option.set(&mut self, usual);
        }
        self
    }

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

    /// Keeps the frames that match a profile's drop_frames, or drops them.
    #[must_use]
    pub fn with_all_frames(mut self, all_frames: bool) -> Self {
        self.all_frames = all_frames;
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

    /// With the new side scaled.
    #[must_use]
    pub fn with_normalize(mut self, normalize: Normalize) -> Self {
        self.normalize = normalize;
        self
    }

    /// With values divided by those of the first sample type, or not.
    #[must_use]
    pub fn with_mean(mut self, mean: bool) -> Self {
        self.mean = mean;
        self
    }

    /// True if a cost is too small on both sides to be shown, each side by its own total.
    pub(super) fn hides(&self, cost: Pair, total: Pair) -> bool {
        let percent = |cost: i64, total: i64| match total {
            0 => 0.0,
            total => 100.0 * cost.unsigned_abs() as f64 / total.unsigned_abs() as f64,
        };
        percent(cost.base, total.base).max(percent(cost.new, total.new)) < self.hide_below.0
    }

    /// What can't be asked of a diff.
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
