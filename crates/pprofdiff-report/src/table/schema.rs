//! What columns are made of: names, roles, and what they hold. Which of them a table has stands in its view's file; tables
//! are made by it, and stored ones checked.

use std::borrow::Cow;
use std::sync::Arc;

use super::Data;
use pprofdiff::Summary;

/// What a column is for, by which formats decide how to show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Names that say what a row is: functions, files, stacks, labels. Of any length.
    Label,
    /// A word or a number that says which: a relation, a unit, a build, a line.
    Key,
    /// The number of the build whose key stands before it.
    Number,
    /// What happened to the row.
    Status,
    /// A cost on the base, in the unit of its sample type.
    Base(Cost),
    /// A cost on the new side, or of the one profile.
    New(Cost),
    /// A cost of the new side minus that of the base.
    Delta(Cost),
    /// The costs of two sample types by each other on the base, such as bytes an object.
    RatioBase(Measured),
    /// The same on the new side, or of the one profile.
    RatioNew(Measured),
    /// An end of the interval in which a delta lies.
    DeltaEnd(Cost),
    /// What the shares of the row are of.
    Total,
    /// A number without a unit.
    Figure,
    /// What the runs say of the cost that the rows are ordered by.
    Chance(RunStatistic),
    /// Why they are not asked of the row.
    LeftOut,
}

impl Role {
    /// The cost that a column of values has.
    pub(super) fn cost(self) -> Option<Cost> {
        match self {
            Role::Base(cost) | Role::New(cost) | Role::Delta(cost) => Some(cost),
            _ => None,
        }
    }
}

/// What runs say, as [`pprofdiff::top::Chance`] has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunStatistic {
    /// The standard deviation of the base's runs.
    BaseSd,
    /// That of the new side's.
    NewSd,
    /// The p-value.
    P,
    /// The false discovery rate.
    Q,
}

/// A cost that rows have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cost {
    /// Which cost.
    pub measured: Measured,
    /// Of which sample type, by its index among those of the table.
    pub sample_type: usize,
}

/// Which cost of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Measured {
    /// A frame's own.
    Flat,
    /// A frame's with all that it called.
    Cum,
    /// The only one that there is.
    Weight,
}

impl Measured {
    /// The name in columns and headings; empty for the only one.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Measured::Flat => "flat",
            Measured::Cum => "cum",
            Measured::Weight => "",
        }
    }
}

/// What the values of a column are.
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
    /// The heading for people.
    pub(crate) fn head(self) -> &'static str {
        match self {
            RunStatistic::BaseSd => "±base",
            RunStatistic::NewSd => "±new",
            RunStatistic::P => "p",
            RunStatistic::Q => "q",
        }
    }
}

/// What a column is to be.
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

/// Which frame a row is of.
pub(crate) fn frame() -> [Spec; 3] {
    [label("name"), label("file"), spec("line", Role::Key, Holds::Line)]
}

/// A build's key, and its number.
pub(crate) fn build(name: &'static str) -> [Spec; 2] {
    [key(name), Spec { name: format!("{name}_number").into(), role: Role::Number, holds: Holds::Line }]
}

/// Of two sample types of which one counts: the other, and the one that counts. A ratio is of the first by the second.
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

/// What decides which columns a table of a kind has.
pub(crate) struct Shape<'a> {
    pub two_sided: bool,
    /// Of stacks: told apart by their labels.
    pub by_labels: bool,
    /// Of frames: with what runs say of them.
    pub of_runs: bool,
    /// The sample types side by side, with their units: of several, each column of costs is named after its own first
    /// (`alloc_space_flat_base`), and ratios follow the costs.
    pub types: Vec<(&'a str, &'a str)>,
}

impl<'a> Shape<'a> {
    /// That of a table of these sample types.
    pub fn new(types: &'a [Arc<Summary>], by_labels: bool) -> Shape<'a> {
        let of_runs = types.len() == 1 && types[0].chance.is_some();
        let names = types.iter().map(|s| (s.sample_type.as_str(), s.unit.as_str()));
        Shape { two_sided: types[0].base.is_some(), by_labels, of_runs, types: names.collect() }
    }

    /// The columns of these costs, then those of ratios.
    pub fn costs(&self, measured: &[Measured]) -> Vec<Spec> {
        costs(measured, self.two_sided, &self.types)
    }

    /// What happened to a row, of two sides.
    pub fn status(&self) -> Option<Spec> {
        self.two_sided.then(|| spec("status", Role::Status, Holds::Text))
    }
}

/// The columns of costs, then those of ratios.
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

/// The parts that are not empty, with `_` between them.
fn joined(parts: &[&str]) -> String {
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("_")
}
