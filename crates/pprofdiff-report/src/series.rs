//! Many builds: tables of values, steps, movers and lasting changes with their causes, and their header.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

use serde_json::{Value, json};

use super::explain::cause_of;
use super::html::escape;
use super::numbers::{CostFormat, counted, counted_of, share, share_text};
use super::table::{Cell, Data, Kind, Table, Texts, costs, statuses};
use super::text::{OF_TOTAL, Shown, TextOptions, change_cells, grid, heads, settings};
use pprofdiff::explain::{Cause, ExplainOptions};
use pprofdiff::random::{HashMap, HashSet};
use pprofdiff::series::{
    Against, Build, Builds, FEWEST_BUILDS, FrameValue, Mover, Order, Ranked, Series, Shift, ShiftKind, Step,
};
use pprofdiff::text::sanitize;
use pprofdiff::{Diff, Error, Frames, Granularity, LoadOptions, Normalize, Query, Result, Sort, Summary, TopRow};

/// The columns that say which frame a row is of: name, file, line, mapping.
fn frame_columns(frames: &Frames, rows: impl Iterator<Item = u32> + Clone) -> Vec<Data> {
    let all = || 0..frames.len() as u32;
    let text = |f: &dyn Fn(u32) -> Option<String>| {
        Data::Text(all().map(f).collect::<Texts>().shared(rows.clone().map(|frame| frame as usize)))
    };
    let line = Data::Line(rows.clone().map(|f| frames.line(f)).collect());
    vec![text(&|f| Some(frames.name(f))), text(&|f| frames.file(f)), line, text(&|f| frames.mapping(f))]
}

/// Columns of builds: their keys, and their numbers. Of rows without a build both are missing.
fn build_columns(builds: &Builds, rows: impl Iterator<Item = Option<usize>> + Clone) -> [Data; 2] {
    // The key behind all others is that of no build.
    let keys: Texts = builds.all.iter().map(|b| Some(&b.key)).chain([None]).collect();
    let keys = keys.shared(rows.clone().map(|build| build.unwrap_or(builds.all.len())));
    [Data::Text(keys), Data::Line(rows.map(|build| build.map(|build| build as i64)).collect())]
}

/// Columns of steps: from and to with their numbers, status, `flat_from, flat_to, flat_delta, cum_from, cum_to,
/// cum_delta, total_from`.
fn step_columns<'a>(builds: &Builds, steps: impl Iterator<Item = &'a Step> + Clone) -> Vec<Data> {
    let mut columns = Vec::new();
    columns.extend(build_columns(builds, steps.clone().map(|s| Some(s.from))));
    columns.extend(build_columns(builds, steps.clone().map(|s| Some(s.to))));
    columns.push(statuses(steps.clone().map(|s| s.status)));
    columns.extend(costs(true, steps.clone().map(|s| s.flat)));
    columns.extend(costs(true, steps.clone().map(|s| s.cum)));
    columns.push(Data::Value(steps.map(|s| builds.all[s.from].total).collect()));
    columns
}

impl Table {
    /// One row a build and frame that it has, build after build, each in the order of its profile's table of frames.
    /// Columns: build and build_number (its key, and its index in [`Builds::all`]), name, file, line, mapping, flat, cum.
    pub fn values_of(series: &Series) -> Table {
        let rows = || series.values().flat_map(|(build, values)| values.iter().map(move |v| (build, *v)));
        Table::of_values(series, rows().map(|(build, _)| build).collect(), rows().map(|(_, v)| v))
    }

    /// As [`Table::values_of`], with one row a build and frame that any build has, in the order of the frames: 0 where a
    /// build does not have it.
    ///
    /// # Errors
    /// More than 20 million rows.
    pub fn dense_values_of(series: &Series) -> Result<Table> {
        let (builds, n) = (series.builds.loaded().count(), series.frames.len());
        if builds.saturating_mul(n) > MAX_DENSE {
            return Err(Error::query(format!(
                "a dense table of {builds} builds with {n} frames has more than {MAX_DENSE} rows; leave out dense, or \
                 filter frames"
            )));
        }
        let mut all: Vec<FrameValue> = Vec::with_capacity(builds * n);
        for (_, values) in series.values() {
            let start = all.len();
            all.extend((0..n as u32).map(FrameValue::absent));
            values.iter().for_each(|v| all[start + v.frame as usize] = *v);
        }
        let builds = series.values().flat_map(|(build, _)| std::iter::repeat_n(build, n)).collect();
        Ok(Table::of_values(series, builds, all.into_iter()))
    }

    fn of_values(series: &Series, builds: Vec<usize>, values: impl Iterator<Item = FrameValue> + Clone) -> Table {
        let mut columns = Vec::from(build_columns(&series.builds, builds.iter().map(|&build| Some(build))));
        // Only a vector's iterator can be cloned cheaply.
        let frames: Vec<u32> = values.clone().map(|v| v.frame).collect();
        columns.extend(frame_columns(&series.frames, frames.iter().copied()));
        columns.push(Data::Value(values.clone().map(|v| v.flat).collect()));
        columns.push(Data::Value(values.map(|v| v.cum).collect()));
        Table::new(Kind::Values, &series.summary, columns).of_builds(&series.builds, frames.len())
    }
}

/// Builds on each side of a change that are taken for runs of one program: enough to tell what builds differ by anyway.
pub const RUNS: usize = 5;

/// Rows of a dense table, which take some 60 bytes each.
const MAX_DENSE: usize = 20_000_000;

impl Table {
    /// The first `n` rows, one a step. Columns: name, file, line, mapping, from and to (the builds' keys; from_number and
    /// to_number are their indexes in [`Builds::all`]), status (added, removed or changed), `flat_from, flat_to,
    /// flat_delta, cum_from, cum_to, cum_delta`, and `total_from`, the earlier build's total.
    pub fn steps(ranked: &Ranked<Step>, n: usize) -> Table {
        let rows = &ranked.rows[..n.min(ranked.rows.len())];
        let mut columns = frame_columns(&ranked.frames, rows.iter().map(|s| s.frame));
        columns.extend(step_columns(&ranked.builds, rows.iter()));
        Table::new(Kind::Steps, &ranked.summary, columns).of_ranked(ranked)
    }
}

impl Table {
    /// The first `n` rows, one a frame. Columns: those of steps, for the frame's largest; before them first_seen and
    /// last_seen (the builds' keys, with their numbers), and builds (how many have it).
    pub fn movers(ranked: &Ranked<Mover>, n: usize) -> Table {
        let rows = &ranked.rows[..n.min(ranked.rows.len())];
        let mut columns = frame_columns(&ranked.frames, rows.iter().map(|m| m.frame));
        columns.extend(build_columns(&ranked.builds, rows.iter().map(|m| Some(m.first))));
        columns.extend(build_columns(&ranked.builds, rows.iter().map(|m| Some(m.last))));
        columns.push(Data::Line(rows.iter().map(|m| Some(m.builds as i64)).collect()));
        columns.extend(step_columns(&ranked.builds, rows.iter().map(|m| &m.step)));
        Table::new(Kind::Movers, &ranked.summary, columns).of_ranked(ranked)
    }
}

/// The causes of the first `n` lasting changes, found between the builds before and after each.
///
/// # Errors
/// As [`Series::explain`].
pub(crate) fn causes_of(
    series: &Series,
    shifts: &Ranked<Shift>,
    n: usize,
    load: &LoadOptions,
    options: &ExplainOptions,
) -> Result<Vec<Option<String>>> {
    let mut causes = vec![None; n.min(shifts.rows.len())];
    for point in series.change_points(shifts, RUNS) {
        let rows: Vec<usize> = point.rows.iter().copied().filter(|&row| row < causes.len()).collect();
        if rows.is_empty() {
            continue;
        }
        let query =
            series.summary.query.clone().with_granularity(Granularity::Functions).with_normalize(Normalize::None);
        let diff = series.diff(&point, load)?;
        let explanation = diff.explain(&query, &[], options)?;
        // What each function costs more within the stacks of a cause, worked out where it is asked for.
        let mut within: HashMap<String, HashMap<String, i64>> = HashMap::default();
        let whole = deltas(&diff, &query, shifts.sort)?;
        for cause in &explanation.causes {
            if let Some(pattern) = &cause.evidence.pattern {
                let focused = query.clone().with_filters(query.filters.clone().with("focus", pattern.as_str())?);
                within.insert(pattern.clone(), deltas(&diff, &focused, shifts.sort)?);
            }
        }
        for row in rows {
            let name = shifts.frames.name(shifts.rows[row].frame);
            let delta = |deltas: &HashMap<String, i64>| deltas.get(&name).copied().unwrap_or(0);
            let below = |cause: &Cause| {
                let part = cause.evidence.pattern.as_ref().and_then(|pattern| within.get(pattern)).map_or(0, delta);
                let all = delta(&whole);
                // Most of what it changed.
                all != 0 && part.signum() == all.signum() && part.unsigned_abs() >= all.unsigned_abs() / 2
            };
            causes[row] = Some(cause_of(&explanation, &name, below));
        }
    }
    Ok(causes)
}

/// What each function costs more or less on the new side, by name.
fn deltas(diff: &Diff, query: &Query, sort: Sort) -> Result<HashMap<String, i64>> {
    let top = diff.measure(query)?.top(sort);
    let delta = |row: &TopRow| if sort == Sort::Flat { row.flat.delta() } else { row.cum.delta() };
    Ok(top.rows.iter().map(|row| (top.frames.name(row.frame), delta(row))).collect())
}

impl Table {
    /// The first `n` rows, one a lasting change. Columns: name, file, line, mapping; kind (step, passed, drift); since,
    /// earliest, latest and until (the builds' keys, with their numbers: the first that has the change, those that it may
    /// as well have come with, the first that it is gone from, of a drift the last); before, after, delta, delta_low and
    /// delta_high (of the mean, and where its change lies at 95 %), q (the part of false ones among what is as clear),
    /// total_before, and the cause that is known of each row.
    pub fn shifts(ranked: &Ranked<Shift>, n: usize, causes: &[Option<String>]) -> Table {
        let rows = &ranked.rows[..n.min(ranked.rows.len())];
        let of = |build: fn(&Shift) -> Option<usize>| build_columns(&ranked.builds, rows.iter().map(build));
        let kinds = [ShiftKind::Step, ShiftKind::Passed, ShiftKind::Drift];
        let names: Texts = kinds.iter().map(|kind| Some(kind.name())).collect();
        let kind = |s: &Shift| kinds.iter().position(|&k| k == s.kind).unwrap_or_default();
        let mut columns = frame_columns(&ranked.frames, rows.iter().map(|s| s.frame));
        columns.push(Data::Text(names.shared(rows.iter().map(kind))));
        columns.extend(of(|s| Some(s.build)));
        columns.extend(of(|s| Some(s.between[0])));
        columns.extend(of(|s| Some(s.between[1])));
        columns.extend(of(|s| s.until));
        columns.extend(costs(true, rows.iter().map(|s| s.value)));
        let end = |i: usize| Data::Value(rows.iter().map(|s| s.interval[i].round() as i64).collect());
        columns.extend([end(0), end(1), Data::Ratio(rows.iter().map(|s| Some(s.q)).collect())]);
        let before = |s: &Shift| ranked.builds.all.get(ranked.builds.loaded_before(s.build)).map_or(0, |b| b.total);
        columns.push(Data::Value(rows.iter().map(before).collect()));
        columns.push(Data::Text((0..rows.len()).map(|row| causes.get(row).and_then(Option::as_deref)).collect()));
        Table::new(Kind::Shifts, &ranked.summary, columns).of_ranked(ranked)
    }

    /// The rows of lasting changes for people.
    fn write_shifts(&self, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
        let is_history = self.builds.as_ref().is_some_and(|b| b.loaded().count() >= FEWEST_BUILDS);
        if self.rows_total == 0 && is_history {
            return writeln!(
                out,
                "no lasting changes: no frame costs something else in three builds or more, beyond what builds differ by\n\
                 anyway; single builds are among the steps"
            );
        }
        if self.rows_total == 0 {
            return Ok(());
        }
        let found = counted_of(self.len(), self.rows_total, "lasting change");
        writeln!(out, "{found}; growth is a row's own, \"of total\" its change in the total of the build before")?;
        writeln!(
            out,
            "± is where 95 of 100 such changes lie; a step stays, what passed went away again, a drift came bit by bit\n"
        )?;
        let costs: Vec<_> = self.led().into_iter().map(|costs| (costs, self.format(&costs))).collect();
        let [(costs, format)] = &costs[..] else { return Ok(()) };
        let text = |name: &str, row: usize| self.texts(name).and_then(|t| t.get(row)).unwrap_or_default();
        let mut head = heads("", true, ["before", "after", "change"], true);
        head.extend(["±", "kind", "since", "between", "until", "frame"].map(str::to_owned));
        grid(out, options, &head, |push| {
            (0..self.len()).try_for_each(|row| {
                let mut cells = change_cells(*format, costs.pair(row), Some(self.total_of(costs.cost, row)));
                let half = self.values("delta_high")[row].saturating_sub(self.values("delta_low")[row]) / 2;
                cells.push(format.delta.format(half).into());
                let (earliest, latest) = (text("earliest", row), text("latest", row));
                let between = if earliest == latest { "-".to_owned() } else { format!("{earliest}..{latest}") };
                cells.push(text("kind", row).into());
                cells.extend([self.build("since", row), between, self.build("until", row)].map(Shown::from));
                cells.push(self.label(row).into());
                push(cells)
            })
        })?;
        // Rows that came together mostly have one cause.
        let mut said: HashSet<_> = HashSet::default();
        for row in (0..self.len()).filter(|&row| !text("cause", row).is_empty()) {
            let cause = (text(if text("kind", row) == "drift" { "until" } else { "since" }, row), text("cause", row));
            if said.insert(cause) {
                let before = if said.len() == 1 { "\n" } else { "" };
                writeln!(out, "{before}explain: {}: {}", sanitize(cause.0), sanitize(cause.1))?;
            }
        }
        Ok(())
    }

    /// A build with its number, for people.
    fn build(&self, name: &str, row: usize) -> String {
        let number = match self.column(&format!("{name}_number")).map(|c| c.cell(row)) {
            Some(Cell::Int(number)) => number,
            _ => return "-".to_owned(),
        };
        let key = self.texts(name).and_then(|keys| keys.get(row)).unwrap_or_default();
        format!("{key} #{number}")
    }

    fn of_ranked<T>(self, ranked: &Ranked<T>) -> Table {
        let mut table = self.of_builds(&ranked.builds, ranked.rows.len());
        table.sort = ranked.sort;
        table
    }

    fn of_builds(mut self, builds: &Arc<Builds>, rows_total: usize) -> Table {
        self.builds = Some(builds.clone());
        self.rows_total = rows_total;
        self
    }

    /// The rows of a series for people.
    pub(super) fn write_builds(
        &self,
        builds: &Arc<Builds>,
        out: &mut dyn Write,
        options: TextOptions,
    ) -> io::Result<()> {
        text_header(out, &self.summary, builds)?;
        let text = |name: &str, row: usize| self.texts(name).and_then(|t| t.get(row)).unwrap_or_default();
        let shown = |what: &str| counted_of(self.len(), self.rows_total, what);
        if self.kind == Kind::Values {
            writeln!(out, "{}; \"of total\" is of each build's\n", shown("value"))?;
            let totals: HashMap<&str, i64> = builds.loaded().map(|b| (b.key.as_str(), b.total)).collect();
            let costs: Vec<_> = self.costs().into_iter().map(|costs| (costs, self.format(&costs))).collect();
            return grid(out, options, &["flat", OF_TOTAL, "cum", OF_TOTAL, "build", "frame"], |push| {
                (0..self.len()).try_for_each(|row| {
                    let key = text("build", row);
                    let total = totals.get(key).copied().unwrap_or(0);
                    let mut cells: Vec<Shown> = Vec::with_capacity(6);
                    for (costs, format) in &costs {
                        let v = costs.new[row];
                        cells.push(format.sides.format(v).into());
                        cells.push(share_text(share(v, total), false).into());
                    }
                    cells.extend([key.into(), self.label(row).into()]);
                    push(cells)
                })
            });
        }
        if self.kind == Kind::Shifts {
            return self.write_shifts(out, options);
        }
        let rows = match self.kind {
            Kind::Movers if self.rows_total == 1 => "1 frame by its largest step".to_owned(),
            Kind::Movers => format!("{} by their largest step", shown("frame")),
            _ => shown("step"),
        };
        writeln!(out, "{rows}; growth is a row's own, \"of total\" its step in the earlier build's total\n")?;
        let costs: Vec<_> = self.led().into_iter().map(|costs| (costs, self.format(&costs))).collect();
        let [first, second] = &costs[..] else { return Ok(()) };
        let sides = ["before", "after", "step"];
        let mut head = heads(first.0.cost.measured.name(), true, sides, true);
        head.extend(heads(second.0.cost.measured.name(), true, sides, false));
        head.extend(["from", "to"].map(str::to_owned));
        let seen: &[(&str, &str)] = match self.kind {
            Kind::Movers => &[("first", "first_seen"), ("last", "last_seen")],
            _ => &[("status", "status")],
        };
        head.extend(seen.iter().map(|(head, _)| (*head).to_owned()));
        head.push("frame".to_owned());
        grid(out, options, &head, |push| {
            (0..self.len()).try_for_each(|row| {
                let mut cells = change_cells(first.1, first.0.pair(row), Some(self.total_of(first.0.cost, row)));
                cells.extend(change_cells(second.1, second.0.pair(row), None));
                let still = text("from", row) == text("to", row);
                cells.extend(["from", "to"].map(|name| match still {
                    true => "-".into(),
                    false => Shown::from(self.build(name, row)),
                }));
                cells.extend(seen.iter().map(|(_, name)| Shown::from(text(name, row))));
                cells.push(self.label(row).into());
                push(cells)
            })
        })
    }
}

/// `12 builds by key, 01 to 12; each is compared with the one before`.
pub(super) fn extent(builds: &Builds) -> String {
    let good = builds.loaded();
    let ends = [good.clone().next(), good.clone().next_back()].map(|b| b.map_or("", |b| &b.key));
    let n = builds.all.len();
    let order = match builds.order {
        Order::Key => "by key",
        Order::Given => "in the order given",
    };
    let failed = match builds.failed().count() {
        0 => String::new(),
        failed => format!(" ({failed} failed)"),
    };
    format!("{}{failed} {order}, {} to {}", counted(n, "build"), ends[0], ends[1])
}

fn compared(builds: &Builds) -> String {
    match (builds.against, builds.all.first()) {
        (Against::First, Some(first)) => format!("each is compared with {}", first.key),
        _ => "each is compared with the one before".to_owned(),
    }
}

/// The totals of the first and of the last build that have values.
fn totals(s: &Summary) -> (String, i64) {
    let cost = CostFormat::in_unit(&s.unit, true, std::iter::once(s.total));
    (format!("{} from the first to the last", cost.change(s.total, "->")), s.total.delta())
}

/// What is said of a normalized series.
fn normalized(s: &Summary, builds: &Builds) -> Option<String> {
    let to = builds.loaded().next().map_or("", |b| &b.key);
    (s.query.normalize != Normalize::None).then(|| format!("normalized by {} to {to}", s.query.normalize.mode()))
}

/// Builds and totals in one line.
pub(super) fn header(s: &Summary, builds: &Builds) -> String {
    let totals = totals(s).0.replace("->", "→");
    format!("{} ({}): {totals}; {}, {}", s.sample_type, s.unit, extent(builds), compared(builds))
}

fn text_header(out: &mut dyn Write, s: &Summary, builds: &Builds) -> io::Result<()> {
    writeln!(out, "{}; {}", sanitize(&extent(builds)), sanitize(&compared(builds)))?;
    writeln!(out, "{} ({}): {}", sanitize(&s.sample_type), sanitize(&s.unit), totals(s).0)?;
    normalized(s, builds).map_or(Ok(()), |n| writeln!(out, "{}", sanitize(&n)))?;
    settings(out, s)?;
    builds.failed().try_for_each(|b| writeln!(out, "failed: {}", sanitize(&failure(b))))
}

/// A build that failed, and why.
pub(super) fn failure(build: &Build) -> String {
    let error = build.error.as_deref().unwrap_or_default();
    if error.contains(&build.key) { error.to_owned() } else { format!("{}: {error}", build.key) }
}

pub(super) fn html_header(s: &Summary, builds: &Builds) -> String {
    let (total, delta) = totals(s);
    let class = ["less", "", "more"][(delta.signum() + 1) as usize];
    let mut html = format!(
        "<div>{}; {}</div><div><b>{}</b> ({}): <span class=\"{class}\">{}</span></div>",
        escape(&extent(builds)),
        escape(&compared(builds)),
        escape(&s.sample_type),
        escape(&s.unit),
        escape(&total.replace("->", "→"))
    );
    let mut notes: Vec<String> = builds.failed().map(|b| format!("failed: {}", failure(b))).collect();
    notes.extend(normalized(s, builds));
    notes.extend(s.query.settings());
    notes.extend(s.warnings.iter().map(|w| format!("warning: {w}")));
    for note in notes {
        let _ = write!(html, "<div class=\"note\">{}</div>", escape(&note));
    }
    html
}

/// A build, as JSON has it.
fn build_json(b: &Build) -> Value {
    match &b.error {
        Some(error) => json!({"key": b.key, "path": b.path, "error": error}),
        None => json!({
            "key": b.key,
            "path": b.path,
            "samples": b.samples,
            "duration_nanos": b.duration_nanos,
            "time_nanos": b.time_nanos,
            "total": b.total,
            "factor": b.factor,
        }),
    }
}

/// The builds as a JSON list: each an object with key, path and either error, or samples, duration_nanos, time_nanos,
/// total and factor.
pub fn builds_json(builds: &Builds) -> String {
    Value::from(builds.all.iter().map(build_json).collect::<Vec<_>>()).to_string()
}

/// The fields of a JSON header that say which builds a table is of, in place of its sides.
pub(super) fn builds_header(builds: &Builds) -> Vec<(&'static str, Value)> {
    let order = match builds.order {
        Order::Key => "key",
        Order::Given => "given",
    };
    let against = match builds.against {
        Against::Previous => "previous",
        Against::First => "first",
    };
    vec![("builds", builds.all.iter().map(build_json).collect()), ("order", json!(order)), ("against", json!(against))]
}
