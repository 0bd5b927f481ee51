//! Builds tables and their columns from the results of the engine.

use std::hash::BuildHasher;
use std::sync::Arc;

use super::data::DistinctTexts;
use super::schema::TableShape;
use super::{Column, Data, Kind, Table, TableNodes, Texts};
use pprofdiff::cancellation::checkpointed;
use pprofdiff::interner::{Found, Index};
use pprofdiff::random::RandomState;
use pprofdiff::{Frames, Pair, Sort, Status, Summary};

impl Table {
    /// Builds a table from the data of its columns, in the order that its kind defines. `types` must not be empty.
    pub(crate) fn from_columns(
        kind: &'static Kind,
        types: &[Arc<Summary>],
        by_labels: bool,
        data: impl IntoIterator<Item = Data>,
    ) -> Table {
        let summary = types[0].clone();
        let specs = (kind.columns)(&TableShape::new(types, by_labels));
        let columns = specs.into_iter().zip(data);
        let columns: Vec<Column> =
            columns.map(|(spec, data)| Column { name: spec.name, role: spec.role, data }).collect();
        let len = columns.first().map_or(0, |c| c.data.len());
        let (beside, builds, nodes) = (types[1..].to_vec(), None, TableNodes::default());
        let (sort, explained) = (Sort::default(), Arc::default());
        Table { kind, summary, beside, columns, rows_total: len, sort, builds, nodes, explained, len }
    }

    /// Builds a table of one sample type.
    pub(crate) fn new(kind: &'static Kind, summary: &Arc<Summary>, data: Vec<Data>) -> Table {
        Table::from_columns(kind, std::slice::from_ref(summary), false, data)
    }
}

/// Returns the columns of one cost: both sides and the delta, or the value of a single profile.
pub(crate) fn costs(two_sided: bool, pairs: impl Iterator<Item = Pair> + Clone) -> Vec<Data> {
    let column = |f: fn(Pair) -> i64| Data::Value(pairs.clone().map(f).collect());
    match two_sided {
        true => vec![column(|p| p.base), column(|p| p.new), column(Pair::delta)],
        false => vec![column(|p| p.new)],
    }
}

/// Returns the column of statuses.
pub(crate) fn statuses(statuses: impl Iterator<Item = Status>) -> Data {
    const ALL: [Status; 4] = [Status::Added, Status::Removed, Status::Changed, Status::Same];
    let names: Texts = ALL.iter().map(|s| Some(s.name())).collect();
    let number = |status: Status| ALL.iter().position(|&s| s == status).unwrap_or_default();
    Data::Text(names.shared(statuses.map(number)))
}

/// Returns the labels of the `used` frames as a dictionary: the distinct labels, and for each frame the number of its
/// label. Frames that are not used have the number `u32::MAX`.
pub(crate) fn dictionary(frames: &Frames, used: impl Iterator<Item = u32>) -> (Texts, Vec<u32>) {
    let mut numbers = vec![u32::MAX; frames.len()];
    let mut distinct = DistinctTexts::default();
    let mut index = Index::default();
    let state = RandomState::new();
    for f in checkpointed(used) {
        if numbers[f as usize] != u32::MAX {
            continue;
        }
        let label = frames.label(f);
        let text = |n: u32| distinct.get(n).unwrap_or_default();
        let hash = state.hash_one(&*label);
        let entry = index.find_or_insert(hash, distinct.ends.len(), |n| text(n) == label, |n| state.hash_one(text(n)));
        if let Found::New(_) = entry {
            distinct.push(&label);
        }
        numbers[f as usize] = entry.number();
    }
    let all = (0..distinct.ends.len() as u32).collect();
    (Texts { distinct: Arc::new(distinct), numbers: all }, numbers)
}
