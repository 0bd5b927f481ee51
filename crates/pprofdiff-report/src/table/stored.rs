//! The stored form of tables and its validation. Every property that methods of tables rely on is checked. Each type
//! has the same fields as the type in `table` that it is named after (`StoredTexts` for `Texts`).
//!
//! The checks run during deserialization (`serde(try_from)`), so every deserialized table is valid.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;

use super::data::{DistinctTexts, MISSING};
use super::schema::TableShape;
use super::{Data, ExplainedBuilds, Kind, LimitUnit, TableNodes};
use pprofdiff::Sort;
use pprofdiff::Summary;
use pprofdiff::random::HashSet;
use pprofdiff_series::Builds;

#[derive(Deserialize)]
pub(super) struct StoredTexts {
    distinct: Arc<DistinctTexts>,
    numbers: Vec<u32>,
}

impl TryFrom<StoredTexts> for super::Texts {
    type Error = &'static str;

    fn try_from(StoredTexts { distinct, numbers }: StoredTexts) -> Result<super::Texts, &'static str> {
        let (n, ends) = (distinct.ends.len(), &distinct.ends);
        let contiguous = ends.is_sorted() && ends.last().copied().unwrap_or(0) == distinct.bytes.len();
        if !contiguous || !ends.iter().all(|&end| distinct.bytes.is_char_boundary(end)) {
            return Err("strings overlap or leave gaps");
        }
        if numbers.iter().any(|&number| number != MISSING && number as usize >= n) {
            return Err("a row refers to a string that does not exist");
        }
        Ok(super::Texts { distinct, numbers })
    }
}

#[derive(Deserialize)]
pub(super) struct StoredLists {
    ends: Vec<usize>,
    ids: Vec<u32>,
    dictionary: Arc<super::Texts>,
}

impl TryFrom<StoredLists> for super::Lists {
    type Error = &'static str;

    fn try_from(StoredLists { ends, ids, dictionary }: StoredLists) -> Result<super::Lists, &'static str> {
        if !ends.is_sorted() || ends.last().copied().unwrap_or(0) != ids.len() {
            return Err("lists overlap or leave gaps");
        }
        if ids.iter().any(|&id| id as usize >= dictionary.len()) {
            return Err("a list refers to a string that does not exist");
        }
        Ok(super::Lists { ends, ids, dictionary })
    }
}

#[derive(Deserialize)]
struct StoredColumn {
    name: Cow<'static, str>,
    data: Data,
}

#[derive(Deserialize)]
pub(super) struct StoredTable {
    kind: String,
    summary: Arc<Summary>,
    beside: Vec<Arc<Summary>>,
    columns: Vec<StoredColumn>,
    rows_total: usize,
    sort: Sort,
    builds: Option<Arc<Builds>>,
    nodes: TableNodes,
    explained: Arc<Vec<ExplainedBuilds>>,
    len: usize,
}

impl TryFrom<StoredTable> for super::Table {
    type Error = &'static str;

    fn try_from(table: StoredTable) -> Result<super::Table, &'static str> {
        let StoredTable { kind, summary, beside, columns, rows_total, sort, builds, nodes, explained, len } = table;
        let two_sided = summary.base.is_some();
        let kind = Kind::named(&kind).ok_or("unknown kind of table")?;
        let sides = (kind.has_sides)(two_sided) && (kind.several_types || beside.is_empty());
        let by_labels = columns.iter().any(|c| c.name == "labels");
        let types: Vec<Arc<Summary>> = std::iter::once(&summary).chain(&beside).cloned().collect();
        let of_code = columns.iter().any(|c| c.name == "code");
        let specs = (kind.columns)(&TableShape { of_code, ..TableShape::new(&types, by_labels) });
        let same_sides = beside.iter().all(|s| s.base.is_some() == two_sided);
        if !sides || !same_sides || !columns.iter().map(|c| &c.name).eq(specs.iter().map(|s| &s.name)) {
            return Err("the columns do not match the kind of table");
        }
        if !columns.iter().zip(&specs).all(|(c, s)| s.holds.fits(&c.data) && c.data.len() == len) {
            return Err("a column has the wrong type or length");
        }
        if builds.is_some() != kind.of_builds {
            return Err("the builds do not match the kind of table");
        }
        let rows = if kind.limit_unit == LimitUnit::Nodes { len } else { 0 };
        let n = nodes.all.len();
        let mut seen: HashSet<_> = HashSet::default();
        if nodes.labels.len() != n
            || nodes.of_row.len() != rows
            || !nodes.of_row.iter().all(|&node| (node as usize) < n)
            || !nodes.shown.iter().all(|&node| (node as usize) < n && seen.insert(node))
        {
            return Err("the nodes do not match the rows");
        }
        let with_roles = columns.into_iter().zip(specs).map(|(StoredColumn { name, data }, s)| (name, s.role, data));
        let columns = with_roles.map(|(name, role, data)| super::Column { name, role, data }).collect();
        Ok(super::Table { kind, summary, beside, columns, rows_total, sort, builds, nodes, explained, len })
    }
}
