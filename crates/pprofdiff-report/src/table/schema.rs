//! Which columns each kind of table has: their names, their roles, and what they hold. Tables are made by it, and stored
//! ones checked.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Data, Kind};
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
pub(super) enum Holds {
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
pub(super) struct Spec {
    pub name: Cow<'static, str>,
    pub role: Role,
    pub holds: Holds,
}

fn spec(name: &'static str, role: Role, holds: Holds) -> Spec {
    Spec { name: name.into(), role, holds }
}

fn label(name: &'static str) -> Spec {
    spec(name, Role::Label, Holds::Text)
}

fn key(name: &'static str) -> Spec {
    spec(name, Role::Key, Holds::Text)
}

/// A build's key, and its number.
fn build(name: &'static str) -> [Spec; 2] {
    [key(name), Spec { name: format!("{name}_number").into(), role: Role::Number, holds: Holds::Line }]
}

/// Of two sample types of which one counts: the other, and the one that counts. A ratio is of the first by the second.
pub(crate) fn ratio(types: &[Arc<Summary>]) -> Option<[usize; 2]> {
    match types {
        [a, b] => match (a.unit == "count", b.unit == "count") {
            (true, false) => Some([1, 0]),
            (false, true) => Some([0, 1]),
            _ => None,
        },
        _ => None,
    }
}

/// The columns of a table, in their order. `types` are the sample types side by side: of several, each column of costs
/// is named after its own first (`alloc_space_flat_base`), and ratios follow the costs.
pub(super) fn columns(kind: Kind, two_sided: bool, by_labels: bool, types: &[Arc<Summary>]) -> Vec<Spec> {
    let frame = || [label("name"), label("file"), spec("line", Role::Key, Holds::Line)];
    let address = || [spec("address", Role::Key, Holds::Address), label("mapping")];
    let status = || two_sided.then(|| spec("status", Role::Status, Holds::Text));
    let lists = |name| spec(name, Role::Label, Holds::Lists);
    let costs = |measured: &[Measured]| costs(measured, two_sided, types);
    let both = [Measured::Flat, Measured::Cum];
    let mut all = Vec::new();
    match kind {
        Kind::Top | Kind::Diff => {
            all.extend(frame());
            all.extend(address());
            all.extend(status());
            all.extend(costs(&both));
            if types.len() == 1 && types[0].chance.is_some() {
                let statistics = [
                    ("base_sd", RunStatistic::BaseSd),
                    ("new_sd", RunStatistic::NewSd),
                    ("p", RunStatistic::P),
                    ("q", RunStatistic::Q),
                ];
                all.extend(statistics.map(|(name, statistic)| spec(name, Role::Chance(statistic), Holds::Ratio)));
                all.push(spec("left_out", Role::LeftOut, Holds::Text));
            }
        }
        Kind::Peek | Kind::Tree => {
            all.extend([label("node"), label("other"), key("relation")]);
            all.extend(costs(&[Measured::Weight]));
        }
        Kind::Stacks => {
            all.push(lists("frames"));
            all.extend(by_labels.then(|| lists("labels")));
            all.extend(costs(&[Measured::Weight]));
            all.extend(status());
        }
        Kind::Labels => {
            all.extend([key("key"), label("value"), key("unit")]);
            all.extend(costs(&[Measured::Weight]));
            all.extend(status());
        }
        Kind::Causes => {
            all.extend([label("function"), label("caller"), label("callee"), label("label"), key("kind")]);
            all.extend(costs(&[Measured::Weight]));
            all.extend(["factor", "score"].map(|name| spec(name, Role::Figure, Holds::Ratio)));
        }
        Kind::Values => {
            all.extend(build("build"));
            all.extend(frame());
            all.push(label("mapping"));
            all.extend(costs(&both));
        }
        Kind::Shifts => {
            all.extend(frame());
            all.push(label("mapping"));
            all.push(key("kind"));
            all.extend(["since", "earliest", "latest", "until"].into_iter().flat_map(build));
            let cost = Cost { measured: Measured::Weight, sample_type: 0 };
            let costs = [
                ("before", Role::Base(cost)),
                ("after", Role::New(cost)),
                ("delta", Role::Delta(cost)),
                ("delta_low", Role::DeltaEnd(cost)),
                ("delta_high", Role::DeltaEnd(cost)),
            ];
            all.extend(costs.map(|(name, role)| spec(name, role, Holds::Value)));
            all.push(spec("q", Role::Figure, Holds::Ratio));
            all.push(spec("total_before", Role::Total, Holds::Value));
            all.push(label("cause"));
        }
        Kind::Steps | Kind::Movers => {
            all.extend(frame());
            all.push(label("mapping"));
            if kind == Kind::Movers {
                all.extend(["first_seen", "last_seen"].into_iter().flat_map(build));
                all.push(spec("builds", Role::Key, Holds::Line));
            }
            all.extend(["from", "to"].into_iter().flat_map(build));
            all.push(spec("status", Role::Status, Holds::Text));
            for (measured, names) in [
                (Measured::Flat, ["flat_from", "flat_to", "flat_delta"]),
                (Measured::Cum, ["cum_from", "cum_to", "cum_delta"]),
            ] {
                let cost = Cost { measured, sample_type: 0 };
                let roles = [Role::Base(cost), Role::New(cost), Role::Delta(cost)];
                all.extend(names.into_iter().zip(roles).map(|(name, role)| spec(name, role, Holds::Value)));
            }
            all.push(spec("total_from", Role::Total, Holds::Value));
        }
    }
    all
}

/// The columns of costs, then those of ratios.
fn costs(measured: &[Measured], two_sided: bool, types: &[Arc<Summary>]) -> Vec<Spec> {
    let mut all = Vec::new();
    for (sample_type, summary) in types.iter().enumerate() {
        for &measured in measured {
            let cost = Cost { measured, sample_type };
            let sides = match two_sided {
                true => vec![("base", Role::Base(cost)), ("new", Role::New(cost)), ("delta", Role::Delta(cost))],
                false => vec![(if measured == Measured::Weight { "weight" } else { "" }, Role::New(cost))],
            };
            for (side, role) in sides {
                let name = joined(&[measured.name(), side]);
                let name = if types.len() > 1 { joined(&[&summary.sample_type, &name]) } else { name };
                all.push(Spec { name: name.into(), role, holds: Holds::Value });
            }
        }
    }
    if ratio(types).is_some() {
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
