//! Tables: the rows of a view as columns. Formats of rows and data frames are made from tables.

pub(crate) mod build;
mod data;
pub(crate) mod multi_type;
pub(crate) mod schema;
mod stored;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::io::{self, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use crate::text::TextOptions;
use crate::view;

pub use data::{Cell, Data, Lists, Texts};
pub(crate) use schema::ratio;
pub use schema::{Cost, Measured, Role, RunStatistic};
use schema::{Spec, TableShape};

use pprofdiff::Sort;
use pprofdiff::random::{HashMap, HashSet};
use pprofdiff::{Pair, Summary};
use pprofdiff_series::Builds;

/// A kind of table: the properties of tables that formats and the validation of stored tables need. It is defined in
/// the file of its view.
#[derive(Debug)]
#[non_exhaustive]
pub struct Kind {
    /// The name in JSON.
    pub name: &'static str,
    /// The noun for a row, such as `frame`.
    pub row: &'static str,
    /// Returns true if tables of this kind can be two-sided (for the argument `true`) or one-sided (for `false`).
    pub(crate) has_sides: fn(bool) -> bool,
    /// True if a table can show several sample types side by side.
    pub(crate) several_types: bool,
    /// True for tables of many builds.
    pub(crate) of_builds: bool,
    /// The things that a maximum number of rows counts.
    pub(crate) limit_unit: LimitUnit,
    /// Returns the columns, in order.
    pub(crate) columns: fn(&TableShape<'_>) -> Vec<Spec>,
    /// True if text shows the rows of each of many pairs in one line each instead of a grid.
    pub(crate) has_pair_lines: bool,
    /// Writes the rows for people.
    pub(crate) text: fn(&Table, &mut dyn Write, TextOptions) -> io::Result<()>,
    /// Formats a row in one line.
    pub(crate) row_label: fn(&Table, usize) -> String,
    /// Formats a row for the axis of a chart. The last argument shortens or keeps the names of frames.
    pub(crate) chart_label: fn(&Table, usize, fn(&str) -> &str) -> String,
}

/// The things that a maximum number of rows counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitUnit {
    Rows,
    /// Nodes of the call graph. A table keeps all callers and callees of a shown node, each in a row of its own.
    Nodes,
    /// The rows of each group. A group has the same text in the column with this name.
    RowsOfEach(&'static str),
}

impl Kind {
    /// The defaults of a kind: a table of one profile or of a diff, with one or several sample types.
    pub(crate) const BASE: Kind = Kind {
        name: "",
        row: "row",
        has_sides: |_| true,
        several_types: true,
        of_builds: false,
        limit_unit: LimitUnit::Rows,
        columns: |_| Vec::new(),
        has_pair_lines: false,
        text: Table::write_beside,
        row_label: Table::label,
        chart_label: |table, row, name| name(&table.label(row)).to_owned(),
    };

    /// The defaults of kinds for many builds.
    pub(crate) const OF_BUILDS: Kind =
        Kind { has_sides: |two_sided| !two_sided, several_types: false, of_builds: true, ..Kind::BASE };

    /// Returns the kind with this name in JSON.
    pub fn named(name: &str) -> Option<&'static Kind> {
        view::STANDARD.iter().flat_map(|view| view.kinds).copied().find(|kind| kind.name == name)
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
    /// The name in JSON, such as `flat_base`.
    pub name: Cow<'static, str>,
    /// The role. It follows from the table's kind, so it is not stored.
    #[serde(skip)]
    pub role: Role,
    /// The values, one per row.
    pub data: Data,
}

impl Column {
    /// Returns the value of a row.
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

/// Columns of equal length under a header. Deserializing a table validates it like any other input, so every table is
/// valid.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "stored::StoredTable")]
#[non_exhaustive]
pub struct Table {
    /// The kind of the rows.
    pub kind: &'static Kind,
    /// The summary of the sample type. With several sample types side by side, it belongs to the first, which orders
    /// the rows.
    pub summary: Arc<Summary>,
    /// The summaries of the further sample types side by side. Empty with a single sample type.
    pub beside: Vec<Arc<Summary>>,
    /// The columns, in the order of the JSON schema.
    pub columns: Vec<Column>,
    /// The number of rows before truncation.
    pub rows_total: usize,
    /// The cost (flat or cum) that rows are ordered by. Meaningless for tables without both.
    pub(crate) sort: Sort,
    /// The builds, for tables of many builds; `None` for other tables.
    pub builds: Option<Arc<Builds>>,
    /// The nodes of tables of callers and callees, for people. Empty in other tables.
    pub(crate) nodes: TableNodes,
    /// The explanations of lasting changes. Empty without explanations, and in other tables.
    pub(crate) explained: Arc<Vec<ExplainedBuilds>>,
    /// The number of rows.
    pub(crate) len: usize,
}

/// The nodes of callers and callees. Rows refer to nodes by number, because two nodes can have the same label.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct TableNodes {
    /// The costs of all nodes, including nodes that are not shown.
    pub all: Arc<Vec<NodeCost>>,
    /// The label of each node in `all`.
    pub labels: Texts,
    /// The nodes to show, in order. This list is needed because a node without callers and callees has no rows.
    pub shown: Vec<u32>,
    /// The node of each row.
    pub of_row: Vec<u32>,
}

/// The explanation of the builds before and after a lasting change, in words. Tables are serialized, and explanations
/// cannot be deserialized, so this contains only the sentences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExplainedBuilds {
    /// The compared builds: `b12..b14 -> b15..b17`.
    pub compared: String,
    /// The verdict as JSON spells it.
    pub verdict: String,
    /// The lines for text, starting with the totals.
    pub lines: Vec<String>,
    /// The lines for text within a budget.
    pub brief: Vec<String>,
    /// The lines as Markdown.
    pub markdown: String,
}

/// The costs of a node of a call graph.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct NodeCost {
    pub flat: Pair,
    pub cum: Pair,
}

/// The values of one cost. `base` and `delta` are `None` for a single profile and for columns that the table lacks.
#[derive(Clone, Copy)]
pub(crate) struct CostColumns<'a> {
    pub cost: Cost,
    pub base: Option<&'a [i64]>,
    pub new: &'a [i64],
    pub delta: Option<&'a [i64]>,
}

impl CostColumns<'_> {
    /// Returns a row's cost on both sides. A single profile is the new side, with 0 on the base.
    pub fn pair(&self, row: usize) -> Pair {
        Pair { base: self.base.map_or(0, |base| base[row]), new: self.new[row] }
    }
}

impl Table {
    /// Returns the summaries of all sample types.
    pub fn sample_types(&self) -> Vec<Arc<Summary>> {
        std::iter::once(&self.summary).chain(&self.beside).cloned().collect()
    }

    /// Returns the summary for the value of a [`Cost::sample_type`], or the first summary if there is no such sample
    /// type.
    pub(crate) fn sample_type(&self, number: usize) -> &Arc<Summary> {
        number.checked_sub(1).and_then(|i| self.beside.get(i)).unwrap_or(&self.summary)
    }

    /// Returns the costs of the rows in the order of their columns. The columns of one cost must be adjacent: base,
    /// new, delta.
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

    /// Returns the first column with this role, or `None`.
    pub(crate) fn in_role(&self, role: Role) -> Option<&Column> {
        self.columns.iter().find(|c| c.role == role)
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the table has zero rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the column with this name, or `None`.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// Returns the values of a column of values, or an empty slice for other columns.
    pub fn values(&self, name: &str) -> &[i64] {
        match self.column(name).map(|c| &c.data) {
            Some(Data::Value(v)) => v,
            _ => &[],
        }
    }

    /// Returns the strings of a column of strings, or `None` for other columns and unknown names.
    pub(crate) fn texts(&self, name: &str) -> Option<&Texts> {
        match self.column(name).map(|c| &c.data) {
            Some(Data::Text(t)) => Some(t),
            _ => None,
        }
    }

    /// Returns the string of a row in a column of strings, or an empty string if the string or the column is missing.
    pub(crate) fn text_of(&self, name: &str, row: usize) -> &str {
        self.texts(name).and_then(|texts| texts.get(row)).unwrap_or_default()
    }

    /// Returns the first `n` rows. For callers and callees it returns the rows of the first `n` nodes, and for labels
    /// the first `n` rows of each key.
    #[must_use]
    pub fn head(&self, n: usize) -> Table {
        let rows: Vec<usize> = match self.kind.limit_unit {
            LimitUnit::Nodes => {
                let shown = &self.nodes.shown[..n.min(self.nodes.shown.len())];
                let shown_nodes: HashSet<u32> = shown.iter().copied().collect();
                let rows: Vec<usize> = (0..self.len).filter(|&r| shown_nodes.contains(&self.nodes.of_row[r])).collect();
                let mut head = self.take(&rows);
                head.nodes.shown = shown.to_vec();
                return head;
            }
            LimitUnit::RowsOfEach(column) => {
                let mut counts: HashMap<Option<&str>, usize> = HashMap::default();
                let keys = self.texts(column);
                let mut within = |row: usize| {
                    let count = counts.entry(keys.and_then(|k| k.get(row))).or_default();
                    *count += 1;
                    *count <= n
                };
                (0..self.len).filter(|&r| within(r)).collect()
            }
            LimitUnit::Rows => (0..n.min(self.len)).collect(),
        };
        if rows.len() == self.len { self.clone() } else { self.take(&rows) }
    }

    /// Iterates over the explanations of changes that have a row.
    pub(crate) fn shown_explanations(&self) -> impl Iterator<Item = &ExplainedBuilds> {
        let has_row =
            |explained: &&ExplainedBuilds| (0..self.len).any(|row| self.text_of("compared", row) == explained.compared);
        self.explained.iter().filter(has_row)
    }

    /// Copies the table without its columns and nodes.
    fn shallow(&self) -> Table {
        let (summary, beside, builds) = (self.summary.clone(), self.beside.clone(), self.builds.clone());
        let explained = self.explained.clone();
        Table { columns: Vec::new(), summary, beside, builds, nodes: TableNodes::default(), explained, ..*self }
    }

    /// Returns a table of these rows, in this order. Nodes without one of these rows are no longer shown.
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
        let nodes = TableNodes { all: self.nodes.all.clone(), labels: self.nodes.labels.clone(), shown, of_row };
        Table { columns: columns.collect(), len: rows.len(), nodes, ..self.shallow() }
    }

    /// Returns the table sorted by one column, or `None` if the column does not exist. The sort is stable. Missing
    /// values precede all others in ascending order.
    pub fn sort(&self, column: &str, descending: bool) -> Option<Table> {
        let data = &self.column(column)?.data;
        let mut rows: Vec<usize> = (0..self.len).collect();
        let compare = |&a: &usize, &b: &usize| match data {
            Data::Text(t) => t.get(a).cmp(&t.get(b)),
            Data::Value(v) => v[a].cmp(&v[b]),
            Data::Line(v) => v[a].cmp(&v[b]),
            Data::Address(v) => v[a].cmp(&v[b]),
            Data::Lists(l) => l.get(a).cmp(l.get(b)),
            // A ratio is never NaN.
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
