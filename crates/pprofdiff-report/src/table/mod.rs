//! A view's rows as columns: what every output format, and every data frame, is made from.

pub(crate) mod beside;
pub(crate) mod build;
mod data;
pub(crate) mod schema;
mod stored;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::io::{self, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use crate::text::TextOptions;
use crate::view::ViewSpec;

pub use data::{Cell, Data, Lists, Texts};
pub(crate) use schema::ratio;
pub use schema::{Cost, Measured, Role, RunStatistic};
use schema::{Shape, Spec};

use pprofdiff::Sort;
use pprofdiff::random::{HashMap, HashSet};
use pprofdiff::series::Builds;
use pprofdiff::{Pair, Summary};

/// What the rows of a table are: what formats and stored tables know of them. It stands in the file of the view that shows
/// them.
#[derive(Debug)]
#[non_exhaustive]
pub struct Kind {
    /// The name in JSON.
    pub name: &'static str,
    /// What a row is.
    pub row: &'static str,
    /// True if its tables are of these sides: both, or one.
    pub(crate) has_sides: fn(bool) -> bool,
    /// True if a table may be of several sample types side by side.
    pub(crate) several_types: bool,
    /// True if it is of many builds.
    pub(crate) of_builds: bool,
    /// What the first so many are counted of.
    pub(crate) counted: Counted,
    /// The columns, in their order.
    pub(crate) columns: fn(&Shape<'_>) -> Vec<Spec>,
    /// Writes the rows for people.
    pub(crate) text: fn(&Table, &mut dyn Write, TextOptions) -> io::Result<()>,
    /// A row in one line.
    pub(crate) row_label: fn(&Table, usize) -> String,
    /// A row on the axis of a chart, its frames written by a function.
    pub(crate) chart_label: fn(&Table, usize, fn(&str) -> &str) -> String,
}

/// What the first so many rows of a table are counted of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    Rows,
    /// Nodes, each with its callers and callees.
    Nodes,
    /// The rows that have the same text in this column.
    RowsOfEach(&'static str),
}

impl Kind {
    /// What most kinds have in common: rows of one profile or of two, of frames.
    pub(crate) const BASE: Kind = Kind {
        name: "",
        row: "row",
        has_sides: |_| true,
        several_types: true,
        of_builds: false,
        counted: Counted::Rows,
        columns: |_| Vec::new(),
        text: Table::write_beside,
        row_label: Table::label,
        chart_label: |table, row, name| name(&table.label(row)).to_owned(),
    };

    /// What kinds of many builds have in common.
    pub(crate) const OF_BUILDS: Kind =
        Kind { has_sides: |two_sided| !two_sided, several_types: false, of_builds: true, ..Kind::BASE };

    /// The kind of a name in JSON.
    pub fn named(name: &str) -> Option<&'static Kind> {
        ViewSpec::all().iter().flat_map(|view| view.kinds).copied().find(|kind| kind.name == name)
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Kind) -> bool {
        self.name == other.name
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name)
    }
}

/// A named column.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Column {
    /// As in JSON: `flat_base`.
    pub name: Cow<'static, str>,
    /// What it is for. Follows from the table's kind, so it is not stored.
    #[serde(skip)]
    pub role: Role,
    /// One value a row.
    pub data: Data,
}

impl Column {
    /// The value of a row.
    pub fn cell(&self, row: usize) -> Cell<'_> {
        match &self.data {
            Data::Text(t) => t.get(row).map_or(Cell::Missing, Cell::Text),
            Data::Value(v) => Cell::Int(i128::from(v[row])),
            Data::Line(v) => v[row].map_or(Cell::Missing, |v| Cell::Int(i128::from(v))),
            Data::Address(v) => v[row].map_or(Cell::Missing, |v| Cell::Int(i128::from(v))),
            Data::Lists(l) => Cell::List(l, row),
            Data::Ratio(v) => v[row].map_or(Cell::Missing, Cell::Ratio),
        }
    }
}

/// Columns of equal length under a header. What was stored as one and is deserialized is checked like any input, so that a
/// table is one wherever it came from.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "stored::Table")]
#[non_exhaustive]
pub struct Table {
    /// What the rows are.
    pub kind: &'static Kind,
    /// What the table is of; of several sample types side by side, the first, which rows are ordered by.
    pub summary: Arc<Summary>,
    /// The other sample types.
    pub beside: Vec<Arc<Summary>>,
    /// The columns, in the order of the JSON schema.
    pub columns: Vec<Column>,
    /// Number of rows before any were cut off.
    pub rows_total: usize,
    /// Which of flat and cum the rows are ordered by; of tables that have neither, nothing.
    pub(crate) sort: Sort,
    /// Of many builds: which they are. `None` in other tables.
    pub builds: Option<Arc<Builds>>,
    /// Of callers and callees: the nodes, for people. Empty in other tables.
    pub(crate) nodes: Nodes,
    pub(crate) len: usize,
}

/// The nodes of callers and callees. Two nodes may have the same label, so rows refer to them by number.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Nodes {
    pub all: Arc<Vec<Node>>,
    pub labels: Texts,
    /// The nodes to show, in order. One without callers and callees has no rows.
    pub shown: Vec<u32>,
    /// The node of each row.
    pub of_row: Vec<u32>,
}

/// What a node of a call graph costs.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Node {
    pub flat: Pair,
    pub cum: Pair,
}

/// The columns of one cost.
#[derive(Clone, Copy)]
pub(crate) struct CostColumns<'a> {
    pub cost: Cost,
    pub base: Option<&'a [i64]>,
    pub new: &'a [i64],
    pub delta: Option<&'a [i64]>,
}

impl CostColumns<'_> {
    /// A row's cost on both sides; of one profile it is on the new one.
    pub fn pair(&self, row: usize) -> Pair {
        Pair { base: self.base.map_or(0, |base| base[row]), new: self.new[row] }
    }
}

impl Table {
    /// The sample types: that of the summary, and those beside it.
    pub fn sample_types(&self) -> Vec<Arc<Summary>> {
        std::iter::once(&self.summary).chain(&self.beside).cloned().collect()
    }

    /// The sample type of a number in [`Cost::sample_type`].
    pub(crate) fn sample_type(&self, number: usize) -> &Arc<Summary> {
        number.checked_sub(1).and_then(|i| self.beside.get(i)).unwrap_or(&self.summary)
    }

    /// The costs of the rows in the order of their columns: all of a sample type, then those of the next.
    pub(crate) fn costs(&self) -> Vec<CostColumns<'_>> {
        let mut costs: Vec<CostColumns<'_>> = Vec::new();
        let mut base = None;
        for column in &self.columns {
            let Data::Value(values) = &column.data else { continue };
            match column.role {
                Role::Base(_) => base = Some(values.as_slice()),
                Role::New(cost) => costs.push(CostColumns { cost, base: base.take(), new: values, delta: None }),
                Role::Delta(_) => costs.iter_mut().last().map_or((), |last| last.delta = Some(values)),
                _ => {}
            }
        }
        costs
    }

    /// The column of a role.
    pub(crate) fn in_role(&self, role: Role) -> Option<&Column> {
        self.columns.iter().find(|c| c.role == role)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The column of a name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// The values of a column of values; empty if it is none.
    pub fn values(&self, name: &str) -> &[i64] {
        match self.column(name).map(|c| &c.data) {
            Some(Data::Value(v)) => v,
            _ => &[],
        }
    }

    /// The strings of a column of strings.
    pub(crate) fn texts(&self, name: &str) -> Option<&Texts> {
        match self.column(name).map(|c| &c.data) {
            Some(Data::Text(t)) => Some(t),
            _ => None,
        }
    }

    /// The string of a row in a column of strings; empty if there is none.
    pub(crate) fn text_of(&self, name: &str, row: usize) -> &str {
        self.texts(name).and_then(|texts| texts.get(row)).unwrap_or_default()
    }

    /// The first `n` rows; of callers and callees the rows of the first `n` nodes, of labels the first `n` of each
    /// key.
    #[must_use]
    pub fn head(&self, n: usize) -> Table {
        let rows: Vec<usize> = match self.kind.counted {
            Counted::Nodes => {
                let shown = &self.nodes.shown[..n.min(self.nodes.shown.len())];
                let wanted: HashSet<u32> = shown.iter().copied().collect();
                let rows: Vec<usize> = (0..self.len).filter(|&r| wanted.contains(&self.nodes.of_row[r])).collect();
                let mut head = self.take(&rows);
                head.nodes.shown = shown.to_vec();
                return head;
            }
            Counted::RowsOfEach(column) => {
                let mut counts: HashMap<Option<&str>, usize> = HashMap::default();
                let keys = self.texts(column);
                let mut within = |row: usize| {
                    let count = counts.entry(keys.and_then(|k| k.get(row))).or_default();
                    *count += 1;
                    *count <= n
                };
                (0..self.len).filter(|&r| within(r)).collect()
            }
            Counted::Rows => (0..n.min(self.len)).collect(),
        };
        if rows.len() == self.len { self.clone() } else { self.take(&rows) }
    }

    /// The same table without columns.
    fn shallow(&self) -> Table {
        let (summary, beside, builds) = (self.summary.clone(), self.beside.clone(), self.builds.clone());
        Table { columns: Vec::new(), summary, beside, builds, nodes: Nodes::default(), ..*self }
    }

    /// The given rows, in the given order.
    #[must_use]
    pub fn take(&self, rows: &[usize]) -> Table {
        let columns = self.columns.iter().map(|c| {
            let data = match &c.data {
                Data::Text(t) if rows.len() == self.len => Data::Text(t.shared(rows.iter().copied())),
                Data::Text(t) => Data::Text(rows.iter().map(|&r| t.get(r)).collect()),
                Data::Value(v) => Data::Value(rows.iter().map(|&r| v[r]).collect()),
                Data::Line(v) => Data::Line(rows.iter().map(|&r| v[r]).collect()),
                Data::Address(v) => Data::Address(rows.iter().map(|&r| v[r]).collect()),
                Data::Lists(l) => {
                    let mut taken = Lists { dictionary: l.dictionary.clone(), ..Lists::default() };
                    for &r in rows {
                        let start = r.checked_sub(1).map_or(0, |i| l.ends[i]);
                        taken.ids.extend_from_slice(&l.ids[start..l.ends[r]]);
                        taken.ends.push(taken.ids.len());
                    }
                    Data::Lists(taken)
                }
                Data::Ratio(v) => Data::Ratio(rows.iter().map(|&r| v[r]).collect()),
            };
            Column { name: c.name.clone(), role: c.role, data }
        });
        let of_row: Vec<u32> = rows.iter().filter_map(|&r| self.nodes.of_row.get(r).copied()).collect();
        let mut seen: HashSet<_> = HashSet::default();
        let shown = of_row.iter().copied().filter(|&node| seen.insert(node)).collect();
        let nodes = Nodes { all: self.nodes.all.clone(), labels: self.nodes.labels.clone(), shown, of_row };
        Table { columns: columns.collect(), len: rows.len(), nodes, ..self.shallow() }
    }

    /// Ordered by one column; rows that are equal in it keep their order. `None` if there is no such column.
    pub fn sort(&self, column: &str, descending: bool) -> Option<Table> {
        let data = &self.column(column)?.data;
        let mut rows: Vec<usize> = (0..self.len).collect();
        let compare = |&a: &usize, &b: &usize| match data {
            Data::Text(t) => t.get(a).cmp(&t.get(b)),
            Data::Value(v) => v[a].cmp(&v[b]),
            Data::Line(v) => v[a].cmp(&v[b]),
            Data::Address(v) => v[a].cmp(&v[b]),
            Data::Lists(l) => l.get(a).cmp(l.get(b)),
            // No ratio is NaN, and where there is none it comes before all others.
            Data::Ratio(v) => v[a].partial_cmp(&v[b]).unwrap_or(Ordering::Equal),
        };
        rows.sort_by(|a, b| if descending { compare(b, a) } else { compare(a, b) });
        let sort = match self.column(column)?.role.cost().map(|cost| cost.measured) {
            Some(Measured::Flat) => Sort::Flat,
            Some(Measured::Cum) => Sort::Cum,
            _ => self.sort,
        };
        Some(Table { sort, ..self.take(&rows) })
    }
}
