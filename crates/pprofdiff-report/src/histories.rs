//! Several histories of builds as text, Markdown, JSON and CSV: which of them changed most, and since which build.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use crate::json::object;
use crate::markdown::{code, escape};
use crate::numbers::{CostFormat, counted, counted_of};
use crate::style::Style;
use crate::table::{Cell, ExplainedBuilds, Table};
use crate::text::{TextCell, TextOptions, change_cells, grid, heads};
use pprofdiff::text::sanitize;
use pprofdiff::{Pair, Result, Sort};
use pprofdiff_series::histories::{FailedHistory, Histories, RankedHistory};
use pprofdiff_series::{Builds, FEWEST_BUILDS};

/// Several histories, those with the largest lasting change first.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HistoriesReport {
    /// The names of the keys that distinguish the histories.
    pub keys: Vec<String>,
    /// The cost that is followed.
    pub sort: Sort,
    /// The sample type of all histories.
    pub sample_type: String,
    /// The histories.
    pub rows: Vec<HistoryRow>,
    /// The histories that could not be loaded.
    pub failed: Vec<FailedHistory>,
    /// The maximum number of histories in text and Markdown.
    pub limit: usize,
}

/// One of several histories.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HistoryRow {
    /// The values of the keys.
    pub values: Vec<String>,
    /// The answer about this history alone.
    pub table: Table,
    /// The number of lasting changes.
    pub changes: usize,
    /// The largest lasting change.
    pub largest: Option<LargestChange>,
    /// The number of builds that have values.
    builds: usize,
    /// Sentences about lasting changes that the table does not show, such as changes of the total and of costs with
    /// callees, and warnings about the builds, such as builds with the same profile.
    pub notes: Vec<String>,
}

/// The largest lasting change of a history.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LargestChange {
    /// The name of the frame.
    pub frame: String,
    /// The kind of change, such as `step`.
    pub kind: &'static str,
    /// The key of the most likely first build with the change.
    pub since: String,
    /// The keys of the first and the last build that may have introduced the change.
    pub between: [String; 2],
    /// The subject of the commit of the first build.
    pub subject: Option<String>,
    /// The cause of the change, if causes were requested.
    pub cause: Option<String>,
    /// The builds that were compared to find the cause.
    pub compared: Option<String>,
    /// The cost before and after the change.
    pub value: Pair,
    /// The total of the build before the change.
    total: i64,
}

impl HistoriesReport {
    /// Collects the answers about each history, which `answer` returns. `limit` is the maximum number of histories in
    /// text and Markdown.
    ///
    /// # Errors
    /// Returns the errors of `answer`.
    pub fn new(
        histories: &Histories,
        limit: usize,
        answer: impl Fn(&RankedHistory) -> Result<Table>,
    ) -> Result<HistoriesReport> {
        let row = |history: &RankedHistory| {
            let table = answer(history)?;
            // The rows of a table of lasting changes begin with the largest.
            let first = |name: &str| Some(table.text_of(name, 0).to_owned()).filter(|text| !text.is_empty());
            let has_cause = !table.is_empty() && table.column("cause").is_some();
            let [cause, compared] = if has_cause { ["cause", "compared"].map(first) } else { [None, None] };
            Ok(HistoryRow {
                values: history.values.clone(),
                table,
                changes: history.shifts.rows.len(),
                largest: largest(history).map(|change| LargestChange { cause, compared, ..change }),
                notes: notes_of(history),
                builds: history.series.builds.loaded().count(),
            })
        };
        let first = histories.all.first();
        Ok(HistoriesReport {
            keys: histories.keys.clone(),
            sort: histories.sort,
            sample_type: first.map_or_else(String::new, |history| history.series.summary.sample_type.clone()),
            rows: histories.all.iter().map(row).collect::<Result<_>>()?,
            failed: histories.failed.clone(),
            limit,
        })
    }

    /// Returns the histories with a lasting change.
    fn changed(&self) -> &[HistoryRow] {
        let end = self.rows.iter().position(|row| row.largest.is_none()).unwrap_or(self.rows.len());
        &self.rows[..end]
    }

    /// Returns the first line: the number of histories with a lasting change.
    fn head(&self) -> String {
        let failed = match self.failed.len() {
            0 => String::new(),
            n => format!("; {} could not be loaded", counted(n, "other")),
        };
        // The table has own costs, and the notes below it name changes of other costs.
        let others = self.rows.iter().filter(|row| row.largest.is_none() && row.has_other_change()).count();
        let others =
            if others > 0 { format!(", and {others} by the total or by cost with callees") } else { String::new() };
        format!(
            "{} of {} by {} changed lastingly{others}{failed}",
            self.changed().len(),
            counted(self.rows.len(), "history").replace("historys", "histories"),
            sanitize(&self.keys.join(", "))
        )
    }

    /// Returns the lines about the histories without a lasting change and about failed histories.
    fn notes(&self) -> Vec<String> {
        let names = |rows: &[&HistoryRow]| {
            let mut names: Vec<String> = rows.iter().take(MAX_NAMED).map(|row| row.name()).collect();
            if rows.len() > MAX_NAMED {
                names.push(format!("and {} more", rows.len() - MAX_NAMED));
            }
            names.join(", ")
        };
        let unchanged = || self.rows[self.changed().len()..].iter();
        let quiet: Vec<&HistoryRow> = unchanged().filter(|row| row.builds >= FEWEST_BUILDS).collect();
        let short: Vec<&HistoryRow> = unchanged().filter(|row| row.builds < FEWEST_BUILDS).collect();
        let mut notes = Vec::new();
        if !quiet.is_empty() {
            let of_cost = if self.sort == Sort::Flat { " of own cost" } else { "" };
            notes.push(format!("no lasting change{of_cost}: {}", names(&quiet)));
        }
        for row in self.changed().iter().take(self.limit).chain(quiet.into_iter().take(MAX_NAMED)) {
            notes.extend(row.notes.iter().map(|note| format!("{}: {note}", row.name())));
        }
        if !short.is_empty() {
            let few = names(&short);
            notes.push(format!("too short for a lasting change, which needs {FEWEST_BUILDS} builds: {few}"));
        }
        notes.extend(self.failed.iter().map(|failed| format!("failed: {}: {}", failed.values.join("/"), failed.error)));
        notes
    }
}

/// The maximum number of histories that a note names.
const MAX_NAMED: usize = 20;

impl HistoryRow {
    /// Returns the values of the keys as one text.
    fn name(&self) -> String {
        self.values.join("/")
    }

    /// Returns true if a note states a change of the total or of a cost with callees.
    fn has_other_change(&self) -> bool {
        self.notes.iter().any(|note| note.contains(" changed lastingly "))
    }
}

/// Returns the warnings about a history, without the warnings about a single build.
fn notes_of(history: &RankedHistory) -> Vec<String> {
    let keys: Vec<String> = history.series.builds.all.iter().map(|build| format!("{}: ", build.key)).collect();
    let is_about_build = |warning: &&String| keys.iter().any(|key| warning.starts_with(key));
    history.shifts.summary.warnings.iter().filter(|warning| !is_about_build(warning)).cloned().collect()
}

/// Returns the largest lasting change of a history.
fn largest(history: &RankedHistory) -> Option<LargestChange> {
    let (shift, builds): (_, &Builds) = (history.shifts.rows.first()?, &history.series.builds);
    let key = |build: usize| builds.all.get(build).map_or_else(String::new, |build| build.key.clone());
    Some(LargestChange {
        frame: history.shifts.frames.name(shift.frame),
        kind: shift.kind.name(),
        since: key(shift.build),
        between: shift.between.map(key),
        subject: builds.all.get(shift.build).and_then(|build| build.subject.clone()),
        cause: None,
        compared: None,
        value: shift.value,
        total: shift.total_before,
    })
}

/// Returns the heads of the columns of text and Markdown.
fn columns(report: &HistoriesReport) -> Vec<String> {
    let mut head = report.keys.clone();
    head.extend(heads("", true, ["before", "after", "change"], true));
    head.extend(["kind", "since", "between", "changes", "frame"].map(str::to_owned));
    head
}

/// Returns the cells of a history with a lasting change. Each history has its own unit.
fn cells(row: &HistoryRow, change: &LargestChange) -> Vec<TextCell> {
    let format = CostFormat::for_values(&row.table.summary, true, std::iter::once(change.value));
    let mut cells: Vec<TextCell> = row.values.iter().map(|value| value.as_str().into()).collect();
    cells.extend(change_cells(format, change.value, Some(change.total)));
    let [earliest, latest] = &change.between;
    let between = if earliest == latest { "-".to_owned() } else { format!("{earliest}..{latest}") };
    cells.extend([change.kind.to_owned(), change.since.clone(), between].map(TextCell::from));
    cells.extend([row.changes.to_string(), change.frame.clone()].map(TextCell::from));
    cells
}

/// The sentence that explains the columns.
fn legend(report: &HistoriesReport) -> String {
    let cost = if report.sort == Sort::Flat { "own cost" } else { "cost with callees" };
    format!(
        "{}, {cost}: the largest lasting change of each, with the first build that has it; changes counts all of them",
        sanitize(&report.sample_type)
    )
}

/// Returns the explanation of each history's largest change, after the name of the history and the compared builds.
fn causes(rows: &[HistoryRow], text: impl Fn(&ExplainedBuilds) -> String) -> impl Iterator<Item = [String; 2]> {
    rows.iter().filter_map(move |row| {
        let compared = row.largest.as_ref()?.compared.as_ref()?;
        let explained = row.table.explained.iter().find(|explained| explained.compared == *compared)?;
        Some([format!("explain: {}: {compared}: ", row.name()), text(explained)])
    })
}

pub(crate) fn histories_text(report: &HistoriesReport, out: &mut dyn Write, style: Style) -> io::Result<()> {
    writeln!(out, "{}", report.head())?;
    let changed = report.changed();
    let shown = &changed[..changed.len().min(report.limit)];
    if !shown.is_empty() {
        writeln!(out, "{}", legend(report))?;
        if shown.len() < changed.len() {
            writeln!(out, "{}", counted_of(shown.len(), changed.len(), "row"))?;
        }
        writeln!(out)?;
        grid(out, TextOptions { width: None, ..style.text() }, &columns(report), |push| {
            shown
                .iter()
                .filter_map(|row| Some((row, row.largest.as_ref()?)))
                .try_for_each(|(row, c)| push(cells(row, c)))
        })?;
        let subjects = shown.iter().filter_map(|row| {
            let change = row.largest.as_ref()?;
            Some(format!("{}: {}: {}", row.name(), change.since, change.subject.as_ref()?))
        });
        for (i, line) in subjects.enumerate() {
            writeln!(out, "{}{}", if i == 0 { "\n" } else { "" }, sanitize(&line))?;
        }
        for [head, lines] in causes(shown, |explained| explained.lines.join("\n")) {
            writeln!(out, "\n{}{lines}", sanitize(&head))?;
        }
    }
    for (i, note) in report.notes().iter().enumerate() {
        writeln!(out, "{}{}", if i == 0 { "\n" } else { "" }, sanitize(note))?;
    }
    Ok(())
}

pub(crate) fn histories_markdown(report: &HistoriesReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "**{}**\n", escape(&report.head()))?;
    let changed = report.changed();
    if !changed.is_empty() {
        writeln!(out, "{}\n", escape(&legend(report)))?;
        let head = columns(report);
        writeln!(out, "| {} |", head.iter().map(|name| escape(name)).collect::<Vec<_>>().join(" | "))?;
        writeln!(out, "|{}", "---|".repeat(head.len()))?;
        for (row, change) in changed.iter().take(report.limit).filter_map(|row| Some((row, row.largest.as_ref()?))) {
            let mut cells: Vec<String> = cells(row, change).iter().map(|cell| escape(&cell.text)).collect();
            if let Some(frame) = cells.last_mut() {
                *frame = code(&change.frame);
            }
            writeln!(out, "| {} |", cells.join(" | "))?;
        }
        writeln!(out)?;
        let shown = &changed[..changed.len().min(report.limit)];
        for [head, lines] in causes(shown, |explained| explained.markdown.clone()) {
            writeln!(out, "{}{lines}", escape(&head))?;
        }
    }
    report.notes().iter().try_for_each(|note| writeln!(out, "> {}\n", escape(note)))
}

/// Writes one object with the keys, and for each history its keys, its largest lasting change, and its whole table.
pub(crate) fn histories_json(report: &HistoriesReport, out: &mut dyn Write) -> io::Result<()> {
    let keys = |values: &[String]| -> Value {
        report.keys.iter().cloned().zip(values.iter().map(|value| json!(value))).collect::<Map<String, Value>>().into()
    };
    let row = |row: &HistoryRow| {
        let largest = row.largest.as_ref().map(|change| {
            json!({
                "name": change.frame, "kind": change.kind, "since": change.since, "earliest": change.between[0],
                "latest": change.between[1], "subject": change.subject, "cause": change.cause,
                "compared": change.compared, "before": change.value.base,
                "after": change.value.new, "delta": change.value.delta(), "total_before": change.total,
            })
        });
        let table = &row.table;
        let mut object: Map<String, Value> = table.header().into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
        object.insert("kind".to_owned(), json!(table.kind.name));
        object.insert("rows_total".to_owned(), json!(table.rows_total));
        object.insert("rows".to_owned(), (0..table.len()).map(|i| row_json(table, i)).collect());
        json!({"keys": keys(&row.values), "changes": row.changes, "largest": largest, "notes": row.notes, "series": object})
    };
    let failed = |failed: &FailedHistory| json!({"keys": keys(&failed.values), "error": failed.error});
    let sort = if report.sort == Sort::Flat { "flat" } else { "cum" };
    let header = vec![
        ("keys", json!(report.keys)),
        ("sample_type", json!(report.sample_type)),
        ("sort", json!(sort)),
        ("histories", report.rows.iter().map(row).collect()),
        ("failed", report.failed.iter().map(failed).collect()),
    ];
    serde_json::to_writer_pretty(&mut *out, &object("histories", header))?;
    writeln!(out)
}

/// Returns a row as an object.
fn row_json(table: &Table, row: usize) -> Value {
    let cell = |cell: Cell<'_>| match cell {
        Cell::Missing => Value::Null,
        Cell::Text(text) => json!(text),
        Cell::Int(v) => i64::try_from(v).map_or_else(|_| json!(v as f64), |v| json!(v)),
        Cell::Ratio(v) => json!(v),
        Cell::List(lists, row) => lists.get(row).map(|text| json!(text)).collect(),
    };
    table.columns.iter().map(|column| (column.name.to_string(), cell(column.cell(row)))).collect::<Map<_, _>>().into()
}
