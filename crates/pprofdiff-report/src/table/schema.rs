//! The schema of columns: names, roles and types of values. The file of each view lists its columns; this schema builds
//! tables and validates stored ones.

use std::borrow::Cow;
use std::sync::Arc;

use super::Data;
use pprofdiff::Summary;

/// The role of a column, which determines how formats show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Names that identify a row: functions, files, stacks, labels. Names can be long.
    Label,
    /// A short word or a number that identifies or describes a row: a relation, a unit, a build, a line.
    Key,
    /// The number of the build whose key is in the previous column.
    Number,
    /// The status of the row: added, removed, changed or same.
    Status,
    /// A cost of the base, in the unit of its sample type.
    Base(Cost),
    /// A cost of the new side or of a single profile.
    New(Cost),
    /// A cost of the new side minus the cost of the base.
    Delta(Cost),
    /// The ratio of two sample types' costs on the base, such as bytes per object.
    RatioBase(Measured),
    /// The ratio of two sample types' costs on the new side or in a single profile.
    RatioNew(Measured),
    /// An end of a delta's confidence interval.
    DeltaEnd(Cost),
    /// A part of a delta.
    DeltaPart(Cost),
    /// The total that the row's shares refer to.
    Total,
    /// A number without a unit.
    Figure,
    /// A statistic of the runs, for the cost that the rows are ordered by.
    Chance(RunStatistic),
    /// The reason for excluding the row from statistical tests.
    LeftOut,
}

impl Role {
    /// Returns the cost in a column of sides or deltas, or `None` for other columns.
    pub(super) fn cost(self) -> Option<Cost> {
        match self {
            Role::Base(cost) | Role::New(cost) | Role::Delta(cost) => Some(cost),
            _ => None,
        }
    }
}

/// A statistic of the runs; see [`pprofdiff::top::Chance`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunStatistic {
    /// The standard deviation of the base's runs.
    BaseSd,
    /// The standard deviation of the new side's runs.
    NewSd,
    /// The p-value.
    P,
    /// The false discovery rate.
    Q,
}

/// A cost of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cost {
    /// The kind of cost.
    pub measured: Measured,
    /// The index of the sample type among the table's sample types side by side; 0 if it has only one.
    pub sample_type: usize,
}

/// The kind of a row's cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Measured {
    /// The cost of a frame itself.
    Flat,
    /// The cost of a frame and of everything that it calls.
    Cum,
    /// The cost of a row that has a single cost.
    Weight,
}

impl Measured {
    /// Returns the name in columns and heads. Empty for [`Measured::Weight`].
    pub(crate) fn name(self) -> &'static str {
        match self {
            Measured::Flat => "flat",
            Measured::Cum => "cum",
            Measured::Weight => "",
        }
    }
}

/// The type of a column's values. Each variant is the variant of [`Data`] with the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    Text,
    Value,
    Line,
    Address,
    Lists,
    Ratio,
}

impl Holds {
    /// Returns true if the data has this type.
    pub(super) fn fits(self, data: &Data) -> bool {
        self == match data {
            Data::Text(_) => Holds::Text,
            Data::Value(_) => Holds::Value,
            Data::Line(_) => Holds::Line,
            Data::Address(_) => Holds::Address,
            Data::Lists(_) => Holds::Lists,
            Data::Ratio(_) => Holds::Ratio,
        }
    }
}

impl RunStatistic {
    /// Returns the head for people.
    pub(crate) fn head(self) -> &'static str {
        match self {
            RunStatistic::BaseSd => "±base",
            RunStatistic::NewSd => "±new",
            RunStatistic::P => "p",
            RunStatistic::Q => "q",
        }
    }
}

/// The specification of a column.
pub(crate) struct Spec {
    pub name: Cow<'static, str>,
    pub role: Role,
    pub holds: Holds,
}

pub(crate) fn spec(name: &'static str, role: Role, holds: Holds) -> Spec {
    Spec { name: name.into(), role, holds }
}

pub(crate) fn label(name: &'static str) -> Spec {
    spec(name, Role::Label, Holds::Text)
}

pub(crate) fn key(name: &'static str) -> Spec {
    spec(name, Role::Key, Holds::Text)
}

/// Returns the columns that identify a frame.
pub(crate) fn frame() -> [Spec; 3] {
    [label("name"), label("file"), spec("line", Role::Key, Holds::Line)]
}

/// Returns the columns of a build: its key and its number.
pub(crate) fn build(name: &'static str) -> [Spec; 2] {
    [key(name), Spec { name: format!("{name}_number").into(), role: Role::Number, holds: Holds::Line }]
}

/// Returns the indexes of the numerator and the denominator of a ratio. A ratio requires exactly two sample types, one
/// of them with the unit `count`, which is the denominator. Returns `None` for any other sample types.
pub(crate) fn ratio(types: &[Arc<Summary>]) -> Option<[usize; 2]> {
    ratio_of(types.iter().map(|s| s.unit.as_str()))
}

fn ratio_of<'a>(units: impl Iterator<Item = &'a str>) -> Option<[usize; 2]> {
    match units.collect::<Vec<_>>()[..] {
        [a, b] => match (a == "count", b == "count") {
            (true, false) => Some([1, 0]),
            (false, true) => Some([0, 1]),
            _ => None,
        },
        _ => None,
    }
}

/// The properties of a table that determine its columns, in addition to its kind.
pub(crate) struct TableShape<'a> {
    pub two_sided: bool,
    /// True for stacks that are distinguished by their labels.
    pub by_labels: bool,
    /// True for frames with statistics of runs.
    pub of_runs: bool,
    /// True for functions whose instructions were compared.
    pub of_code: bool,
    /// The names and units of the sample types side by side. With several, the name of each column of costs starts with
    /// the name of its sample type (`alloc_space_flat_base`), and ratios follow the costs.
    pub types: Vec<(&'a str, &'a str)>,
}

impl<'a> TableShape<'a> {
    /// Returns the shape of a table of these sample types. Only tables of one sample type have statistics of runs.
    pub fn new(types: &'a [Arc<Summary>], by_labels: bool) -> TableShape<'a> {
        let of_runs = types.len() == 1 && types[0].chance.is_some();
        let names = types.iter().map(|s| (s.sample_type.as_str(), s.unit.as_str()));
        TableShape { two_sided: types[0].base.is_some(), by_labels, of_runs, of_code: false, types: names.collect() }
    }

    /// Returns the columns of these costs, followed by the columns of ratios.
    pub fn costs(&self, measured: &[Measured]) -> Vec<Spec> {
        costs(measured, self.two_sided, &self.types)
    }

    /// Returns the column of statuses, or `None` for a single profile, which has no statuses.
    pub fn status(&self) -> Option<Spec> {
        self.two_sided.then(|| spec("status", Role::Status, Holds::Text))
    }
}

/// Returns the columns of costs, followed by the columns of ratios if [`ratio`] permits a ratio.
fn costs(measured: &[Measured], two_sided: bool, types: &[(&str, &str)]) -> Vec<Spec> {
    let mut all = Vec::new();
    for (sample_type, (name_of_type, _)) in types.iter().enumerate() {
        for &measured in measured {
            let cost = Cost { measured, sample_type };
            let sides = match two_sided {
                true => vec![("base", Role::Base(cost)), ("new", Role::New(cost)), ("delta", Role::Delta(cost))],
                false => vec![(if measured == Measured::Weight { "weight" } else { "" }, Role::New(cost))],
            };
            for (side, role) in sides {
                let name = joined(&[measured.name(), side]);
                let name = if types.len() > 1 { joined(&[name_of_type, &name]) } else { name };
                all.push(Spec { name: name.into(), role, holds: Holds::Value });
            }
        }
    }
    if ratio_of(types.iter().map(|(_, unit)| *unit)).is_some() {
        for &measured in measured {
            let sides = match two_sided {
                true => vec![("base", Role::RatioBase(measured)), ("new", Role::RatioNew(measured))],
                false => vec![("", Role::RatioNew(measured))],
            };
            for (side, role) in sides {
                let name = joined(&[measured.name(), "ratio", side]);
                all.push(Spec { name: name.into(), role, holds: Holds::Ratio });
            }
        }
    }
    all
}

/// Joins the non-empty parts with `_`.
fn joined(parts: &[&str]) -> String {
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("_")
}
