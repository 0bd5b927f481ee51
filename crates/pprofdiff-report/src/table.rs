//! A view's rows as columns: what every output format, and every data frame, is made from.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use pprofdiff::edges::{Edges, Relation};
use pprofdiff::interner::{Found, Index};
use pprofdiff::labels::Labels;
use pprofdiff::series::Builds;
use pprofdiff::stacks::{StackRow, Stacks};
use pprofdiff::{Frames, Pair, Status, Summary, Top};

/// What the rows of a table are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Frames of one profile.
    Top,
    /// Frames of two sides.
    Diff,
    /// Callers and callees of some frames.
    Peek,
    /// Callers and callees of all frames.
    Tree,
    /// Distinct stacks.
    Stacks,
    /// Label values.
    Labels,
    /// Frames of many builds, one row a build and frame.
    Values,
    /// How frames changed from one build to another.
    Steps,
    /// Frames of many builds, each with its largest step.
    Movers,
}

impl Kind {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Top => "top",
            Kind::Diff => "diff",
            Kind::Peek => "peek",
            Kind::Tree => "tree",
            Kind::Stacks => "stacks",
            Kind::Labels => "labels",
            Kind::Values => "values",
            Kind::Steps => "steps",
            Kind::Movers => "movers",
        }
    }
}

/// Strings by their numbers among distinct ones, which columns may share; each may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "stored::Texts")]
pub struct Texts {
    distinct: Arc<Distinct>,
    /// The number of each string; [`MISSING`] if there is none.
    numbers: Vec<u32>,
}

const MISSING: u32 = u32::MAX;

/// Strings in one buffer, by number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Distinct {
    bytes: String,
    /// Where each ends in `bytes`.
    ends: Vec<usize>,
}

impl Distinct {
    fn get(&self, number: u32) -> Option<&str> {
        let i = number as usize;
        let start = i.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.bytes.get(start..*self.ends.get(i)?)
    }

    fn push(&mut self, text: &str) -> u32 {
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len());
        self.ends.len() as u32 - 1
    }
}

/// Strings from this length on are kept once, however many rows have them: a profile has each of its strings once, and
/// must not grow without bound by becoming a table. Looking up shorter ones would cost more than their copies, unless it
/// is the row before that has the same.
const LONG: usize = 256;

impl Texts {
    /// The string at `index`; `None` if it is missing.
    pub fn get(&self, index: usize) -> Option<&str> {
        self.distinct.get(self.numbers[index])
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// All strings in order.
    pub fn iter(&self) -> impl Iterator<Item = Option<&str>> {
        (0..self.len()).map(|i| self.get(i))
    }

    /// The strings of the given rows, without a copy of their bytes.
    pub(super) fn shared(&self, rows: impl Iterator<Item = usize>) -> Texts {
        Texts { distinct: self.distinct.clone(), numbers: rows.map(|i| self.numbers[i]).collect() }
    }
}

impl<S: AsRef<str>> FromIterator<Option<S>> for Texts {
    fn from_iter<I: IntoIterator<Item = Option<S>>>(items: I) -> Texts {
        let items = items.into_iter();
        let mut distinct = Distinct::default();
        let mut numbers = Vec::with_capacity(items.size_hint().0);
        let mut long: HashMap<u64, Vec<u32>> = HashMap::new();
        let state = RandomState::new();
        let mut last = MISSING;
        for item in items {
            let Some(text) = item.as_ref().map(AsRef::as_ref) else {
                numbers.push(MISSING);
                continue;
            };
            if distinct.get(last) != Some(text) {
                let mut alike = (text.len() >= LONG).then(|| long.entry(state.hash_one(text)).or_default());
                let known = alike.iter().flat_map(|alike| alike.iter()).find(|&&n| distinct.get(n) == Some(text));
                last = known.copied().unwrap_or_else(|| {
                    let number = distinct.push(text);
                    alike.iter_mut().for_each(|alike| alike.push(number));
                    number
                });
            }
            numbers.push(last);
        }
        Texts { distinct: Arc::new(distinct), numbers }
    }
}

/// A list of strings in each row, by their numbers in a dictionary of distinct strings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "stored::Lists")]
pub struct Lists {
    /// Row `i` is `ids[ends[i - 1]..ends[i]]`.
    pub ends: Vec<usize>,
    /// Indexes into `dictionary`.
    pub ids: Vec<u32>,
    /// The distinct strings.
    pub dictionary: Arc<Texts>,
}

impl Lists {
    /// The strings of one row.
    pub fn get(&self, row: usize) -> impl DoubleEndedIterator<Item = &str> {
        self.numbers(row).iter().map(|&id| self.dictionary.get(id as usize).unwrap_or_default())
    }

    /// The strings of one row, by their indexes in `dictionary`.
    pub fn numbers(&self, row: usize) -> &[u32] {
        let start = row.checked_sub(1).map_or(0, |i| self.ends[i]);
        &self.ids[start..self.ends[row]]
    }
}

/// The values of a column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Data {
    /// Strings.
    Text(Texts),
    /// Values, in the unit of the summary.
    Value(Vec<i64>),
    /// Line numbers.
    Line(Vec<Option<i64>>),
    /// Addresses.
    Address(Vec<Option<u64>>),
    /// Lists of strings.
    Lists(Lists),
}

impl Data {
    /// Number of rows.
    fn len(&self) -> usize {
        match self {
            Data::Text(texts) => texts.len(),
            Data::Value(values) => values.len(),
            Data::Line(lines) => lines.len(),
            Data::Address(addresses) => addresses.len(),
            Data::Lists(lists) => lists.ends.len(),
        }
    }
}

/// A named column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// As in JSON: `flat_base`.
    pub name: Cow<'static, str>,
    /// One value a row.
    pub data: Data,
}

/// One value of a table.
pub enum Cell<'a> {
    /// Nothing.
    Missing,
    /// A string.
    Text(&'a str),
    /// A number.
    Int(i128),
    /// A row's list of strings: the column, and the row.
    List(&'a Lists, usize),
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
        }
    }
}

/// Columns of equal length under a header. What was stored as one and is deserialized is checked like any input, so that a
/// table is one wherever it came from.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "stored::Table")]
pub struct Table {
    /// What the rows are.
    pub kind: Kind,
    /// What the table is of.
    pub summary: Arc<Summary>,
    /// The columns, in the order of the JSON schema.
    pub columns: Vec<Column>,
    /// Number of rows before any were cut off.
    pub rows_total: usize,
    /// Of many builds: which they are. `None` in other tables.
    pub builds: Option<Arc<Builds>>,
    /// Of callers and callees: the nodes, for people. Empty in other tables.
    pub(crate) nodes: Nodes,
    len: usize,
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

impl Table {
    pub(super) fn new(kind: Kind, summary: &Arc<Summary>, columns: Vec<Column>, len: usize) -> Table {
        let (summary, builds, nodes) = (summary.clone(), None, Nodes::default());
        Table { kind, summary, columns, rows_total: len, builds, nodes, len }
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

    /// The first `n` rows; of callers and callees the rows of the first `n` nodes, of labels the first `n` of each
    /// key.
    #[must_use]
    pub fn head(&self, n: usize) -> Table {
        let rows: Vec<usize> = match self.kind {
            Kind::Peek | Kind::Tree => {
                let shown = &self.nodes.shown[..n.min(self.nodes.shown.len())];
                let wanted: HashSet<u32> = shown.iter().copied().collect();
                let rows: Vec<usize> = (0..self.len).filter(|&r| wanted.contains(&self.nodes.of_row[r])).collect();
                let mut head = self.take(&rows);
                head.nodes.shown = shown.to_vec();
                return head;
            }
            Kind::Labels => {
                let mut counts: HashMap<Option<&str>, usize> = HashMap::new();
                let keys = self.texts("key");
                let mut within = |row: usize| {
                    let count = counts.entry(keys.and_then(|k| k.get(row))).or_default();
                    *count += 1;
                    *count <= n
                };
                (0..self.len).filter(|&r| within(r)).collect()
            }
            _ => (0..n.min(self.len)).collect(),
        };
        if rows.len() == self.len { self.clone() } else { self.take(&rows) }
    }

    /// The same table without columns.
    fn shallow(&self) -> Table {
        let (summary, builds) = (self.summary.clone(), self.builds.clone());
        Table { columns: Vec::new(), summary, builds, nodes: Nodes::default(), ..*self }
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
            };
            Column { name: c.name.clone(), data }
        });
        let of_row: Vec<u32> = rows.iter().filter_map(|&r| self.nodes.of_row.get(r).copied()).collect();
        let mut seen = HashSet::new();
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
        };
        rows.sort_by(|a, b| if descending { compare(b, a) } else { compare(a, b) });
        Some(self.take(&rows))
    }
}

/// What tables are stored as, and what makes them valid: nothing that a method of theirs relies on is taken on trust. The
/// fields are those of the types of the same names.
mod stored {
    use super::*;

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
    pub(super) struct Table {
        kind: Kind,
        summary: Arc<Summary>,
        columns: Vec<Column>,
        rows_total: usize,
        builds: Option<Arc<Builds>>,
        nodes: Nodes,
        len: usize,
    }

    impl TryFrom<Table> for super::Table {
        type Error = &'static str;

        fn try_from(table: Table) -> Result<super::Table, &'static str> {
            let Table { kind, summary, columns, rows_total, builds, nodes, len } = table;
            let two_sided = summary.base.is_some();
            let sides = match kind {
                Kind::Diff => two_sided,
                Kind::Top | Kind::Values | Kind::Steps | Kind::Movers => !two_sided,
                Kind::Peek | Kind::Tree | Kind::Stacks | Kind::Labels => true,
            };
            if !sides || !columns.iter().map(|c| &*c.name).eq(names(kind, two_sided, &columns)) {
                return Err("the columns are not those of such a table");
            }
            if !columns.iter().all(|c| is_typed(c) && c.data.len() == len) {
                return Err("a column has other values, or another number of them, than the table");
            }
            if builds.is_some() != matches!(kind, Kind::Values | Kind::Steps | Kind::Movers) {
                return Err("the builds are not those of such a table");
            }
            let rows = if matches!(kind, Kind::Peek | Kind::Tree) { len } else { 0 };
            let n = nodes.all.len();
            let mut seen = HashSet::new();
            if nodes.labels.len() != n
                || nodes.of_row.len() != rows
                || !nodes.of_row.iter().all(|&node| (node as usize) < n)
                || !nodes.shown.iter().all(|&node| (node as usize) < n && seen.insert(node))
            {
                return Err("the nodes are not those of the rows");
            }
            Ok(super::Table { kind, summary, columns, rows_total, builds, nodes, len })
        }
    }

    /// The names of the columns that a table has; stacks may have labels.
    fn names(kind: Kind, two_sided: bool, columns: &[Column]) -> Vec<&'static str> {
        let weights: &[&str] = if two_sided { &WEIGHT[1..] } else { &WEIGHT[..1] };
        let status: &[&str] = if two_sided { &["status"] } else { &[] };
        const FRAME: &[&str] = &["name", "file", "line", "mapping"];
        const STEP: &[&str] = &[
            "from",
            "to",
            "status",
            "flat_from",
            "flat_to",
            "flat_delta",
            "cum_from",
            "cum_to",
            "cum_delta",
            "total_from",
        ];
        match kind {
            Kind::Top => vec!["name", "file", "line", "address", "mapping", "flat", "cum"],
            Kind::Diff => {
                let values = ["flat_base", "flat_new", "flat_delta", "cum_base", "cum_new", "cum_delta"];
                [&["name", "file", "line", "address", "mapping"], status, &values].concat()
            }
            Kind::Peek | Kind::Tree => [&["node", "other", "relation"], weights].concat(),
            Kind::Stacks => {
                let labels: &[&str] = if columns.iter().any(|c| c.name == "labels") { &["labels"] } else { &[] };
                [&["frames"], labels, weights, status].concat()
            }
            Kind::Labels => [&["key", "value", "unit"], weights, status].concat(),
            Kind::Values => [&["build"], FRAME, &["flat", "cum"]].concat(),
            Kind::Steps => [FRAME, STEP].concat(),
            Kind::Movers => [FRAME, &["first_seen", "last_seen", "builds"], STEP].concat(),
        }
    }

    /// True if a column has the values that its name says.
    fn is_typed(column: &Column) -> bool {
        match &*column.name {
            "line" | "builds" => matches!(column.data, Data::Line(_)),
            "address" => matches!(column.data, Data::Address(_)),
            "frames" | "labels" => matches!(column.data, Data::Lists(_)),
            "name" | "file" | "mapping" | "status" | "node" | "other" | "relation" | "key" | "value" | "unit"
            | "build" | "from" | "to" | "first_seen" | "last_seen" => matches!(column.data, Data::Text(_)),
            _ => matches!(column.data, Data::Value(_)),
        }
    }
}

/// Columns for one value of both sides, or of a single profile.
pub(super) fn pair_columns(
    names: [&'static str; 4],
    two_sided: bool,
    pairs: impl Iterator<Item = Pair> + Clone,
) -> Vec<Column> {
    let value = |name: &'static str, f: fn(Pair) -> i64| Column {
        name: name.into(),
        data: Data::Value(pairs.clone().map(f).collect()),
    };
    let [one, base, new, delta] = names;
    if two_sided {
        vec![value(base, |p| p.base), value(new, |p| p.new), value(delta, Pair::delta)]
    } else {
        vec![value(one, |p| p.new)]
    }
}

pub(super) fn status_column(statuses: impl Iterator<Item = Status>) -> Column {
    const ALL: [Status; 4] = [Status::Added, Status::Removed, Status::Changed, Status::Same];
    let names: Texts = ALL.iter().map(|s| Some(s.name())).collect();
    let number = |status: Status| ALL.iter().position(|&s| s == status).unwrap_or_default();
    Column { name: "status".into(), data: Data::Text(names.shared(statuses.map(number))) }
}

/// The labels of frames as a dictionary: distinct strings, and each frame's number.
fn dictionary(frames: &Frames, used: impl Iterator<Item = u32>) -> (Texts, Vec<u32>) {
    let mut numbers = vec![u32::MAX; frames.len()];
    let mut distinct = Distinct::default();
    let mut known = Index::default();
    let state = RandomState::new();
    for f in used {
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

impl Table {
    /// The first `n` rows of the table of frames. Columns: name, file, line, address, mapping; for two sides status and
    /// `flat_base, flat_new, flat_delta, cum_base, cum_new, cum_delta`, else `flat, cum`.
    pub fn top(top: &Top, n: usize) -> Table {
        let two_sided = top.summary.base.is_some();
        let (frames, rows) = (&top.frames, &top.rows[..n.min(top.rows.len())]);
        let text = |name: &'static str, f: &dyn Fn(u32) -> Option<String>| Column {
            name: name.into(),
            data: Data::Text(rows.iter().map(|r| f(r.frame)).collect()),
        };
        let mut columns = vec![
            text("name", &|f| Some(frames.name(f))),
            text("file", &|f| frames.file(f)),
            Column { name: "line".into(), data: Data::Line(rows.iter().map(|r| frames.line(r.frame)).collect()) },
            Column {
                name: "address".into(),
                data: Data::Address(rows.iter().map(|r| frames.address(r.frame)).collect()),
            },
            text("mapping", &|f| frames.mapping(f)),
        ];
        if two_sided {
            columns.push(status_column(rows.iter().map(|r| r.status)));
        }
        let flat = ["flat", "flat_base", "flat_new", "flat_delta"];
        columns.extend(pair_columns(flat, two_sided, rows.iter().map(|r| r.flat)));
        columns.extend(pair_columns(
            ["cum", "cum_base", "cum_new", "cum_delta"],
            two_sided,
            rows.iter().map(|r| r.cum),
        ));
        let kind = if two_sided { Kind::Diff } else { Kind::Top };
        Table { rows_total: top.rows.len(), ..Table::new(kind, &top.summary, columns, rows.len()) }
    }
}

const WEIGHT: [&str; 4] = ["weight", "base", "new", "delta"];

impl Table {
    /// Callers and callees, one edge a row, grouped by node. Columns: node, other (in pprof's words on
    /// one line), relation; for two sides `base, new, delta`, else `weight`.
    pub fn edges(of: &Edges, kind: Kind) -> Table {
        let edges = &of.edges;
        let nodes = of.nodes.iter().map(|row| row.frame);
        let (labels, number) =
            dictionary(&of.frames, nodes.clone().chain(edges.iter().flat_map(|e| [e.node, e.other])));
        let label = |f: u32| number[f as usize] as usize;
        let relations: Texts = [Relation::Caller, Relation::Callee].iter().map(|r| Some(r.name())).collect();
        let text = |name: &'static str, texts: Texts| Column { name: name.into(), data: Data::Text(texts) };
        let mut columns = vec![
            text("node", labels.shared(edges.iter().map(|e| label(e.node)))),
            text("other", labels.shared(edges.iter().map(|e| label(e.other)))),
            text("relation", relations.shared(edges.iter().map(|e| usize::from(e.relation == Relation::Callee)))),
        ];
        columns.extend(pair_columns(WEIGHT, of.summary.base.is_some(), edges.iter().map(|e| e.weight)));
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
        Table { nodes, ..Table::new(kind, &of.summary, columns, edges.len()) }
    }
}

impl Table {
    /// The first `n` stacks, one a row. Columns: frames (root first, in pprof's words), with `by_labels` labels (sorted
    /// `key=value`); for two sides `base, new, delta, status`, else `weight`.
    pub fn stacks(stacks: &Stacks, n: usize) -> Table {
        let two_sided = stacks.summary.base.is_some();
        let rows = &stacks.rows[..n.min(stacks.rows.len())];
        let (texts, number) = dictionary(&stacks.frames, rows.iter().flat_map(|r| stacks.frames_of(r).iter().copied()));
        let mut lists = Lists { dictionary: Arc::new(texts), ..Lists::default() };
        for row in rows {
            lists.ids.extend(stacks.frames_of(row).iter().map(|&f| number[f as usize]));
            lists.ends.push(lists.ids.len());
        }
        let mut columns = vec![Column { name: "frames".into(), data: Data::Lists(lists) }];
        if stacks.by_labels {
            columns.push(Column { name: "labels".into(), data: Data::Lists(labels_column(stacks, rows)) });
        }
        columns.extend(pair_columns(WEIGHT, two_sided, rows.iter().map(|r| r.weight)));
        if two_sided {
            columns.push(status_column(rows.iter().map(|r| r.status)));
        }
        Table { rows_total: stacks.rows.len(), ..Table::new(Kind::Stacks, &stacks.summary, columns, rows.len()) }
    }
}

fn labels_column(stacks: &Stacks, rows: &[StackRow]) -> Lists {
    let mut number = vec![u32::MAX; stacks.n_labels()];
    let mut shown: Vec<u32> = Vec::new();
    let mut lists = Lists::default();
    for row in rows {
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

impl Table {
    /// One label value a row. Columns: key, value, unit (of numbers only); for two sides
    /// `base, new, delta, status`, else `weight`.
    pub fn labels(labels: &Labels) -> Table {
        let two_sided = labels.summary.base.is_some();
        let rows = &labels.rows;
        let mut columns = vec![
            Column { name: "key".into(), data: Data::Text(rows.iter().map(|r| Some(labels.key(r))).collect()) },
            Column { name: "value".into(), data: Data::Text(rows.iter().map(|r| Some(labels.value(r))).collect()) },
            Column { name: "unit".into(), data: Data::Text(rows.iter().map(|r| labels.unit(r)).collect()) },
        ];
        columns.extend(pair_columns(WEIGHT, two_sided, rows.iter().map(|r| r.weight)));
        if two_sided {
            columns.push(status_column(rows.iter().map(|r| r.status)));
        }
        Table::new(Kind::Labels, &labels.summary, columns, rows.len())
    }
}
