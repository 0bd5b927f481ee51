//! Tables of what the engine found: frames, callers and callees, stacks, labels.

use std::hash::BuildHasher;
use std::sync::Arc;

use super::data::Distinct;
use super::{Column, Data, Kind, Lists, Node, Nodes, Table, Texts, schema};
use pprofdiff::edges::{Edges, Relation};
use pprofdiff::explain::{Cause, Explanation};
use pprofdiff::interner::{Found, Index};
use pprofdiff::labels::Labels;
use pprofdiff::random::RandomState;
use pprofdiff::stacks::{StackRow, Stacks};
use pprofdiff::top::{Chance, LeftOut, TopRow};
use pprofdiff::work::paced;
use pprofdiff::{Frames, Pair, Sort, Status, Summary, Top};

impl Table {
    /// A table of the columns that its kind has: their data in the order of [`schema::columns`].
    pub(super) fn from_columns(
        kind: Kind,
        types: &[Arc<Summary>],
        by_labels: bool,
        data: impl IntoIterator<Item = Data>,
    ) -> Table {
        let summary = types[0].clone();
        let specs = schema::columns(kind, summary.base.is_some(), by_labels, types);
        let columns = specs.into_iter().zip(data);
        let columns: Vec<Column> =
            columns.map(|(spec, data)| Column { name: spec.name, role: spec.role, data }).collect();
        let len = columns.first().map_or(0, |c| c.data.len());
        let (beside, builds, nodes) = (types[1..].to_vec(), None, Nodes::default());
        Table { kind, summary, beside, columns, rows_total: len, sort: Sort::default(), builds, nodes, len }
    }

    /// A table of one sample type.
    pub(crate) fn new(kind: Kind, summary: &Arc<Summary>, data: Vec<Data>) -> Table {
        Table::from_columns(kind, std::slice::from_ref(summary), false, data)
    }

    /// The first `n` rows of the table of frames. Columns: name, file, line, address, mapping; for two sides status and
    /// `flat_base, flat_new, flat_delta, cum_base, cum_new, cum_delta`, else `flat, cum`; where it says what runs say,
    /// `base_sd, new_sd, p, q, left_out` of the cost that rows are ordered by.
    pub fn top(top: &Top, n: usize) -> Table {
        let two_sided = top.summary.base.is_some();
        let (frames, rows) = (&top.frames, &top.rows[..n.min(top.rows.len())]);
        let text = |f: &dyn Fn(u32) -> Option<String>| Data::Text(rows.iter().map(|r| f(r.frame)).collect());
        let mut data = vec![
            text(&|f| Some(frames.name(f))),
            text(&|f| frames.file(f)),
            Data::Line(rows.iter().map(|r| frames.line(r.frame)).collect()),
            Data::Address(rows.iter().map(|r| frames.address(r.frame)).collect()),
            text(&|f| frames.mapping(f)),
        ];
        if two_sided {
            data.push(statuses(rows.iter().map(|r| r.status)));
        }
        data.extend(costs(two_sided, rows.iter().map(|r| r.flat)));
        data.extend(costs(two_sided, rows.iter().map(|r| r.cum)));
        if let Some(chances) = &top.chances {
            let column = |f: fn(&Chance) -> Option<f64>| {
                Data::Ratio(rows.iter().map(|r| chances.get(r.frame as usize).and_then(f)).collect())
            };
            data.extend([column(|c| c.base_sd), column(|c| c.new_sd), column(|c| c.p), column(|c| c.q)]);
            let left_out = |r: &TopRow| chances.get(r.frame as usize)?.left_out.map(LeftOut::name);
            data.push(Data::Text(rows.iter().map(left_out).collect()));
        }
        let kind = if two_sided { Kind::Diff } else { Kind::Top };
        Table { rows_total: top.rows_total, sort: top.sort, ..Table::new(kind, &top.summary, data) }
    }

    /// Callers and callees, one edge a row, grouped by node. Columns: node, other (in pprof's words on
    /// one line), relation; for two sides `base, new, delta`, else `weight`.
    pub fn edges(of: &Edges, kind: Kind) -> Table {
        let edges = &of.edges;
        let nodes = of.nodes.iter().map(|row| row.frame);
        let (labels, number) =
            dictionary(&of.frames, nodes.clone().chain(edges.iter().flat_map(|e| [e.node, e.other])));
        let label = |f: u32| number[f as usize] as usize;
        let relations: Texts = [Relation::Caller, Relation::Callee].iter().map(|r| Some(r.name())).collect();
        let mut data = vec![
            Data::Text(labels.shared(edges.iter().map(|e| label(e.node)))),
            Data::Text(labels.shared(edges.iter().map(|e| label(e.other)))),
            Data::Text(relations.shared(edges.iter().map(|e| usize::from(e.relation == Relation::Callee)))),
        ];
        data.extend(costs(of.summary.base.is_some(), edges.iter().map(|e| e.weight)));
        let mut number = vec![u32::MAX; of.frames.len()];
        for (i, row) in of.nodes.iter().enumerate() {
            number[row.frame as usize] = i as u32;
        }
        let nodes = Nodes {
            all: Arc::new(of.nodes.iter().map(|r| Node { flat: r.flat, cum: r.cum }).collect()),
            labels: labels.shared(nodes.map(label)),
            shown: (0..of.nodes.len() as u32).collect(),
            of_row: edges.iter().map(|e| number[e.node as usize]).collect(),
        };
        Table { nodes, ..Table::new(kind, &of.summary, data) }
    }

    /// The first `n` stacks, one a row. Columns: frames (root first, in pprof's words), with `by_labels` labels (sorted
    /// `key=value`); for two sides `base, new, delta, status`, else `weight`.
    pub fn stacks(stacks: &Stacks, n: usize) -> Table {
        let two_sided = stacks.summary.base.is_some();
        let rows = &stacks.rows[..n.min(stacks.rows.len())];
        let (texts, number) = dictionary(&stacks.frames, rows.iter().flat_map(|r| stacks.frames_of(r).iter().copied()));
        let mut lists = Lists { dictionary: Arc::new(texts), ..Lists::default() };
        for row in paced(rows) {
            lists.ids.extend(stacks.frames_of(row).iter().map(|&f| number[f as usize]));
            lists.ends.push(lists.ids.len());
        }
        let mut data = vec![Data::Lists(lists)];
        if stacks.by_labels {
            data.push(Data::Lists(label_lists(stacks, rows)));
        }
        data.extend(costs(two_sided, rows.iter().map(|r| r.weight)));
        if two_sided {
            data.push(statuses(rows.iter().map(|r| r.status)));
        }
        let types = std::slice::from_ref(&stacks.summary);
        Table { rows_total: stacks.rows.len(), ..Table::from_columns(Kind::Stacks, types, stacks.by_labels, data) }
    }

    /// One label value a row. Columns: key, value, unit (of numbers only); for two sides
    /// `base, new, delta, status`, else `weight`.
    pub fn labels(labels: &Labels) -> Table {
        let two_sided = labels.summary.base.is_some();
        let rows = &labels.rows;
        let mut data = vec![
            Data::Text(rows.iter().map(|r| Some(labels.key(r))).collect()),
            Data::Text(rows.iter().map(|r| Some(labels.value(r))).collect()),
            Data::Text(rows.iter().map(|r| labels.unit(r)).collect()),
        ];
        data.extend(costs(two_sided, rows.iter().map(|r| r.weight)));
        if two_sided {
            data.push(statuses(rows.iter().map(|r| r.status)));
        }
        Table::new(Kind::Labels, &labels.summary, data)
    }

    /// One cause a row, the largest change first. Columns: function, caller, callee, label (`key=value`), kind; `base, new`
    /// (of a run), `delta` (what a run of the new side has more than the base at its amount of work), factor (none if there was nothing before), score.
    pub fn causes(of: &Explanation) -> Table {
        let text = |f: &dyn Fn(&Cause) -> Option<String>| Data::Text(of.causes.iter().map(f).collect());
        let value = |f: &dyn Fn(&Cause) -> f64| Data::Value(of.causes.iter().map(|c| f(c).round() as i64).collect());
        let data = vec![
            text(&|c| c.function.clone()),
            text(&|c| c.caller.clone()),
            text(&|c| c.callee.clone()),
            text(&|c| c.label.as_ref().map(|l| format!("{}={}", l.key, l.value))),
            text(&|c| Some(c.kind.name().to_owned())),
            value(&|c| c.evidence.base.value),
            value(&|c| c.evidence.new.value),
            value(&|c| c.delta),
            Data::Ratio(of.causes.iter().map(|c| c.factor).collect()),
            Data::Ratio(of.causes.iter().map(|c| Some(c.score)).collect()),
        ];
        Table::new(Kind::Causes, &of.summary, data)
    }
}

/// One cost of both sides and its delta, or of a single profile.
pub(crate) fn costs(two_sided: bool, pairs: impl Iterator<Item = Pair> + Clone) -> Vec<Data> {
    let column = |f: fn(Pair) -> i64| Data::Value(pairs.clone().map(f).collect());
    match two_sided {
        true => vec![column(|p| p.base), column(|p| p.new), column(Pair::delta)],
        false => vec![column(|p| p.new)],
    }
}

/// What happened to each row.
pub(crate) fn statuses(statuses: impl Iterator<Item = Status>) -> Data {
    const ALL: [Status; 4] = [Status::Added, Status::Removed, Status::Changed, Status::Same];
    let names: Texts = ALL.iter().map(|s| Some(s.name())).collect();
    let number = |status: Status| ALL.iter().position(|&s| s == status).unwrap_or_default();
    Data::Text(names.shared(statuses.map(number)))
}

/// The labels of frames as a dictionary: distinct strings, and each frame's number.
fn dictionary(frames: &Frames, used: impl Iterator<Item = u32>) -> (Texts, Vec<u32>) {
    let mut numbers = vec![u32::MAX; frames.len()];
    let mut distinct = Distinct::default();
    let mut known = Index::default();
    let state = RandomState::new();
    for f in paced(used) {
        if numbers[f as usize] != u32::MAX {
            continue;
        }
        let label = frames.label(f);
        let text = |n: u32| distinct.get(n).unwrap_or_default();
        let hash = state.hash_one(&*label);
        let found = known.find_or_insert(hash, distinct.ends.len(), |n| text(n) == label, |n| state.hash_one(text(n)));
        if let Found::New(_) = found {
            distinct.push(&label);
        }
        numbers[f as usize] = found.number();
    }
    let all = (0..distinct.ends.len() as u32).collect();
    (Texts { distinct: Arc::new(distinct), numbers: all }, numbers)
}

/// The labels of stacks.
fn label_lists(stacks: &Stacks, rows: &[StackRow]) -> Lists {
    let mut number = vec![u32::MAX; stacks.n_labels()];
    let mut shown: Vec<u32> = Vec::new();
    let mut lists = Lists::default();
    for row in paced(rows) {
        for &label in stacks.label_numbers_of(row) {
            let slot = &mut number[label as usize];
            if *slot == u32::MAX {
                *slot = shown.len() as u32;
                shown.push(label);
            }
            lists.ids.push(*slot);
        }
        lists.ends.push(lists.ids.len());
    }
    lists.dictionary = Arc::new(shown.iter().map(|&label| Some(stacks.label(label))).collect());
    lists
}
