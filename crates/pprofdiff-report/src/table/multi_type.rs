//! Several sample types side by side: one table per sample type is built from the same selection, and the tables are
//! joined row by row.
//!
//! A row is in the joined table if it is in at least one of the tables. Its cost is 0 for sample types whose table does
//! not contain it. The rows keep the order of the first table; rows that are missing there follow at the end. If one of
//! two sample types has the unit `count`, the table also contains ratios, such as bytes per object or delay per
//! contention.

use std::sync::Arc;

use super::{Column, Cost, Data, Lists, Measured, NodeCost, Role, Table, TableNodes, Texts, schema::ratio};
use pprofdiff::random::HashMap;
use pprofdiff::shared::short_lists::sort_by_key;
use pprofdiff::{Status, Summary};

/// The identity of a row, in numbers with the same meaning for all sample types of a selection.
pub(crate) type RowKey = Box<[u32]>;

/// The table of one sample type with the identities of its rows.
pub(crate) struct TypePart {
    pub table: Table,
    /// The identity of each row, without duplicates.
    pub keys: Vec<RowKey>,
    /// The frame of each node, for tables of callers and callees. Empty for other tables.
    pub nodes: Vec<u32>,
}

/// Assigns numbers to texts, starting at 0, so that texts can be parts of a [`RowKey`].
#[derive(Default)]
pub(crate) struct TextNumbers(HashMap<String, u32>);

impl TextNumbers {
    pub fn number(&mut self, text: &str) -> u32 {
        let next = self.0.len() as u32;
        match self.0.get(text) {
            Some(&number) => number,
            None => *self.0.entry(text.to_owned()).or_insert(next),
        }
    }
}

/// The row number for a row that a part does not contain.
const MISSING: u32 = u32::MAX;

/// Joins the tables of several sample types. `parts` must not be empty, and its tables must be of the same kind. If
/// `grouped`, rows whose keys share their first number stay together.
pub(crate) fn join(parts: Vec<TypePart>, grouped: bool) -> Table {
    let types: Vec<Arc<Summary>> = parts.iter().map(|part| part.table.summary.clone()).collect();
    let rows_of = rows(&parts, grouped);
    let first = &parts[0].table;
    let by_labels = first.column("labels").is_some();
    let mut costs: HashMap<(Cost, CostSide), Vec<i64>> = HashMap::default();
    let mut columns: Vec<Data> = Vec::new();
    // The columns of costs are adjacent. Columns before and after them apply to all sample types.
    let is_cost = |c: &Column| matches!(c.role, Role::Base(_) | Role::New(_) | Role::Delta(_));
    let mut behind = Vec::new();
    for (i, column) in first.columns.iter().enumerate() {
        match column.role {
            Role::Status if costs.is_empty() => columns.push(joined_statuses(&parts, i, &rows_of)),
            Role::Status => behind.push(joined_statuses(&parts, i, &rows_of)),
            _ if is_cost(column) => {
                for (sample_type, part) in parts.iter().enumerate() {
                    if let Some((cost, side)) = side_of(column.role, sample_type) {
                        costs.insert((cost, side), joined_values(part, i, &rows_of[sample_type]));
                    }
                }
            }
            _ => columns.push(joined_labels(&parts, i, &rows_of)),
        }
    }
    let measured: Vec<Measured> = first.costs().iter().map(|c| c.cost.measured).collect();
    let mut ratios = Vec::new();
    if let Some([numerator, denominator]) = ratio(&types) {
        for (&measured, side) in measured.iter().flat_map(|m| [(m, CostSide::Base), (m, CostSide::New)]) {
            let values = |sample_type| costs.get(&(Cost { measured, sample_type }, side));
            if let (Some(numerator), Some(denominator)) = (values(numerator), values(denominator)) {
                let ratio = |(&numerator, &denominator): (&i64, &i64)| {
                    (denominator != 0).then(|| numerator as f64 / denominator as f64)
                };
                ratios.push(Data::Ratio(numerator.iter().zip(denominator).map(ratio).collect()));
            }
        }
    }
    for sample_type in 0..parts.len() {
        for &measured in &measured {
            for side in [CostSide::Base, CostSide::New, CostSide::Delta] {
                columns.extend(costs.remove(&(Cost { measured, sample_type }, side)).map(Data::Value));
            }
        }
    }
    columns.extend(ratios);
    columns.extend(behind);
    let nodes = nodes(&parts, &rows_of);
    Table { nodes, ..Table::from_columns(first.kind, &types, by_labels, columns) }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum CostSide {
    Base,
    New,
    Delta,
}

/// Returns the cost and side of a column of a part, with the sample type's index in the joined table. Returns `None`
/// for columns that are not costs.
fn side_of(role: Role, sample_type: usize) -> Option<(Cost, CostSide)> {
    let (cost, side) = match role {
        Role::Base(cost) => (cost, CostSide::Base),
        Role::New(cost) => (cost, CostSide::New),
        Role::Delta(cost) => (cost, CostSide::Delta),
        _ => return None,
    };
    Some((Cost { sample_type, ..cost }, side))
}

/// Returns, for each part, the part's row for each row of the joined table, or [`MISSING`].
fn rows(parts: &[TypePart], grouped: bool) -> Vec<Vec<u32>> {
    let mut number: HashMap<&RowKey, usize> = HashMap::default();
    let mut keys: Vec<&RowKey> = Vec::new();
    for key in parts.iter().flat_map(|part| &part.keys) {
        number.entry(key).or_insert_with(|| {
            keys.push(key);
            keys.len() - 1
        });
    }
    let mut order: Vec<usize> = (0..keys.len()).collect();
    if grouped {
        let mut groups: HashMap<u32, usize> = HashMap::default();
        for key in &keys {
            let next = groups.len();
            groups.entry(key[0]).or_insert(next);
        }
        sort_by_key(&mut order, |&row| groups[&keys[row][0]]);
    }
    let part_rows = |part: &TypePart| {
        let mut part_row = vec![MISSING; keys.len()];
        part.keys.iter().enumerate().for_each(|(row, key)| part_row[number[key]] = row as u32);
        order.iter().map(|&row| part_row[row]).collect()
    };
    parts.iter().map(part_rows).collect()
}

/// Returns a column of costs for the rows of the joined table. A row that the part does not contain costs 0.
fn joined_values(part: &TypePart, column: usize, rows: &[u32]) -> Vec<i64> {
    let Data::Value(values) = &part.table.columns[column].data else { return vec![0; rows.len()] };
    rows.iter().map(|&row| values.get(row as usize).copied().unwrap_or(0)).collect()
}

/// Combines the statuses that the sample types report for each row. A row is added or removed if all sample types that
/// contain the row agree on it, and unchanged if all of them report an unchanged cost.
fn joined_statuses(parts: &[TypePart], column: usize, rows_of: &[Vec<u32>]) -> Data {
    let texts: Vec<Option<&Texts>> = parts
        .iter()
        .map(|part| match &part.table.columns[column].data {
            Data::Text(texts) => Some(texts),
            _ => None,
        })
        .collect();
    let status = |row: usize| {
        let (mut base, mut new, mut same) = (false, false, true);
        for (texts, rows) in texts.iter().zip(rows_of) {
            let status = if rows[row] == MISSING { None } else { texts.and_then(|t| t.get(rows[row] as usize)) };
            match status {
                Some("added") => (new, same) = (true, false),
                Some("removed") => (base, same) = (true, false),
                Some("same") => (base, new) = (true, true),
                Some(_) => (base, new, same) = (true, true, false),
                None => {}
            }
        }
        match (base, new) {
            (false, _) => Status::Added,
            (true, false) => Status::Removed,
            (true, true) if same => Status::Same,
            (true, true) => Status::Changed,
        }
    };
    super::build::statuses((0..rows_of[0].len()).map(status))
}

/// Returns the labels of each row from the first sample type that contains the row.
fn joined_labels(parts: &[TypePart], column: usize, rows_of: &[Vec<u32>]) -> Data {
    let data = |part: usize| &parts[part].table.columns[column].data;
    let first = |row: usize| {
        let part = rows_of.iter().position(|rows| rows[row] != MISSING).unwrap_or(0);
        (part, rows_of[part][row] as usize)
    };
    let rows = || (0..rows_of[0].len()).map(first);
    match data(0) {
        Data::Line(_) => {
            Data::Line(rows().map(|(part, row)| if let Data::Line(v) = data(part) { v[row] } else { None }).collect())
        }
        Data::Address(_) => Data::Address(
            rows().map(|(part, row)| if let Data::Address(v) = data(part) { v[row] } else { None }).collect(),
        ),
        Data::Lists(_) => {
            let all: Vec<&Lists> = (0..parts.len())
                .filter_map(|part| if let Data::Lists(lists) = data(part) { Some(lists) } else { None })
                .collect();
            let mut offsets = vec![0];
            for lists in &all {
                offsets.push(offsets[offsets.len() - 1] + lists.dictionary.len() as u32);
            }
            let texts = all.iter().flat_map(|lists| lists.dictionary.iter());
            let mut joined = Lists { dictionary: Arc::new(texts.collect()), ..Lists::default() };
            for (part, row) in rows() {
                joined.ids.extend(all[part].numbers(row).iter().map(|&id| offsets[part] + id));
                joined.ends.push(joined.ids.len());
            }
            Data::Lists(joined)
        }
        _ => Data::Text(
            rows().map(|(part, row)| if let Data::Text(t) = data(part) { t.get(row) } else { None }).collect(),
        ),
    }
}

/// Returns the nodes of callers and callees, each with the costs and the label of the first sample type that contains
/// it.
fn nodes(parts: &[TypePart], rows_of: &[Vec<u32>]) -> TableNodes {
    let mut number: HashMap<u32, u32> = HashMap::default();
    let (mut all, mut labels): (Vec<NodeCost>, Vec<Option<&str>>) = (Vec::new(), Vec::new());
    for part in parts {
        for (i, &frame) in part.nodes.iter().enumerate() {
            number.entry(frame).or_insert_with(|| {
                all.push(part.table.nodes.all[i]);
                labels.push(part.table.nodes.labels.get(i));
                all.len() as u32 - 1
            });
        }
    }
    let of_row = (0..rows_of[0].len()).filter_map(|row| {
        let (part, rows) = parts.iter().zip(rows_of).find(|(_, rows)| rows[row] != MISSING)?;
        number.get(&part.keys[rows[row] as usize][0]).copied()
    });
    let of_row = if all.is_empty() { Vec::new() } else { of_row.collect() };
    let shown = (0..all.len() as u32).collect();
    TableNodes { all: Arc::new(all), labels: labels.into_iter().collect(), shown, of_row }
}
