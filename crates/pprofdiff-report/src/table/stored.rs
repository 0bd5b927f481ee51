//! What tables are stored as, and what makes them valid: nothing that a method of theirs relies on is taken on trust. The
//! fields are those of the types of the same names.
//!
//! It is checked where it becomes a type (`serde(try_from)`), so a table is valid wherever it came from.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;

use super::data::{Distinct, MISSING};
use super::schema::Shape;
use super::{Counted, Data, Kind, Nodes};
use pprofdiff::Sort;
use pprofdiff::Summary;
use pprofdiff::random::HashSet;
use pprofdiff::series::Builds;

#[derive(Deserialize)]
pub(super) struct Texts {
    distinct: Arc<Distinct>,
    numbers: Vec<u32>,
}

impl TryFrom<Texts> for super::Texts {
    type Error = &'static str;

    fn try_from(Texts { distinct, numbers }: Texts) -> Result<super::Texts, &'static str> {
        let (n, ends) = (distinct.ends.len(), &distinct.ends);
        let apart = ends.is_sorted() && ends.last().copied().unwrap_or(0) == distinct.bytes.len();
        if !apart || !ends.iter().all(|&end| distinct.bytes.is_char_boundary(end)) {
            return Err("strings do not lie one behind the other");
        }
        if numbers.iter().any(|&number| number != MISSING && number as usize >= n) {
            return Err("a row refers to a string that is not there");
        }
        Ok(super::Texts { distinct, numbers })
    }
}

#[derive(Deserialize)]
pub(super) struct Lists {
    ends: Vec<usize>,
    ids: Vec<u32>,
    dictionary: Arc<super::Texts>,
}

impl TryFrom<Lists> for super::Lists {
    type Error = &'static str;

    fn try_from(Lists { ends, ids, dictionary }: Lists) -> Result<super::Lists, &'static str> {
        if !ends.is_sorted() || ends.last().copied().unwrap_or(0) != ids.len() {
            return Err("lists do not lie one behind the other");
        }
        if ids.iter().any(|&id| id as usize >= dictionary.len()) {
            return Err("a list refers to a string that is not there");
        }
        Ok(super::Lists { ends, ids, dictionary })
    }
}

#[derive(Deserialize)]
struct Column {
    name: Cow<'static, str>,
    data: Data,
}

#[derive(Deserialize)]
pub(super) struct Table {
    kind: String,
    summary: Arc<Summary>,
    beside: Vec<Arc<Summary>>,
    columns: Vec<Column>,
    rows_total: usize,
    sort: Sort,
    builds: Option<Arc<Builds>>,
    nodes: Nodes,
    len: usize,
}

impl TryFrom<Table> for super::Table {
    type Error = &'static str;

    fn try_from(table: Table) -> Result<super::Table, &'static str> {
        let Table { kind, summary, beside, columns, rows_total, sort, builds, nodes, len } = table;
        let two_sided = summary.base.is_some();
        let kind = Kind::named(&kind).ok_or("there is no such kind of table")?;
        let sides = (kind.has_sides)(two_sided) && (kind.several_types || beside.is_empty());
        let by_labels = columns.iter().any(|c| c.name == "labels");
        let types: Vec<Arc<Summary>> = std::iter::once(&summary).chain(&beside).cloned().collect();
        let specs = (kind.columns)(&Shape::new(&types, by_labels));
        let same_sides = beside.iter().all(|s| s.base.is_some() == two_sided);
        if !sides || !same_sides || !columns.iter().map(|c| &c.name).eq(specs.iter().map(|s| &s.name)) {
            return Err("the columns are not those of such a table");
        }
        if !columns.iter().zip(&specs).all(|(c, s)| s.holds.fits(&c.data) && c.data.len() == len) {
            return Err("a column has other values, or another number of them, than the table");
        }
        if builds.is_some() != kind.of_builds {
            return Err("the builds are not those of such a table");
        }
        let rows = if kind.counted == Counted::Nodes { len } else { 0 };
        let n = nodes.all.len();
        let mut seen: HashSet<_> = HashSet::default();
        if nodes.labels.len() != n
            || nodes.of_row.len() != rows
            || !nodes.of_row.iter().all(|&node| (node as usize) < n)
            || !nodes.shown.iter().all(|&node| (node as usize) < n && seen.insert(node))
        {
            return Err("the nodes are not those of the rows");
        }
        let with_roles = columns.into_iter().zip(specs).map(|(Column { name, data }, s)| (name, s.role, data));
        let columns = with_roles.map(|(name, role, data)| super::Column { name, role, data }).collect();
        Ok(super::Table { kind, summary, beside, columns, rows_total, sort, builds, nodes, len })
    }
}
