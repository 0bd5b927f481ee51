//! Many builds: tables of values, steps and movers, their header, and the table with pictures for notebooks.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

use serde_json::{Value, json};

use super::html::{escape, style};
use super::numbers::{CostFormat, counted, counted_of, growth, share, share_text, signed};
use super::table::{Data, Kind, Measured, Table, Texts, costs, statuses};
use super::text::{GROWTH, OF_TOTAL, Shown, TextOptions, change_cells, grid, heads, settings};
use pprofdiff::series::{Against, Build, Builds, Mover, Order, Ranked, Series, Shift, ShiftKind, Step};
use pprofdiff::text::harmless;
use pprofdiff::{Frames, Normalize, Sort, Summary};

/// The columns that say which frame a row is of: name, file, line, mapping.
fn frame_columns(frames: &Frames, rows: impl Iterator<Item = u32> + Clone) -> Vec<Data> {
    let all = || 0..frames.len() as u32;
    let text = |f: &dyn Fn(u32) -> Option<String>| {
        Data::Text(all().map(f).collect::<Texts>().shared(rows.clone().map(|frame| frame as usize)))
    };
    let line = Data::Line(rows.clone().map(|f| frames.line(f)).collect());
    vec![text(&|f| Some(frames.name(f))), text(&|f| frames.file(f)), line, text(&|f| frames.mapping(f))]
}

/// A column of builds' keys.
fn key_column(builds: &Builds, rows: impl Iterator<Item = usize>) -> Data {
    let keys: Texts = builds.all.iter().map(|b| Some(&b.key)).collect();
    Data::Text(keys.shared(rows))
}

/// Columns of steps: from, to, status, `flat_from, flat_to, flat_delta, cum_from, cum_to, cum_delta, total_from`.
fn step_columns<'a>(builds: &Builds, steps: impl Iterator<Item = &'a Step> + Clone) -> Vec<Data> {
    let mut columns = vec![
        key_column(builds, steps.clone().map(|s| s.from)),
        key_column(builds, steps.clone().map(|s| s.to)),
        statuses(steps.clone().map(|s| s.status)),
    ];
    columns.extend(costs(true, steps.clone().map(|s| s.flat)));
    columns.extend(costs(true, steps.clone().map(|s| s.cum)));
    columns.push(Data::Value(steps.map(|s| builds.all[s.from].total).collect()));
    columns
}

impl Table {
    /// One row a build and frame that it has, build after build, each in the order of its profile's table of frames.
    /// Columns: build (its key), name, file, line, mapping, flat, cum.
    pub fn values_of(series: &Series) -> Table {
        let rows = || series.values().flat_map(|(build, values)| values.iter().map(move |v| (build, v)));
        let mut columns = vec![key_column(&series.builds, rows().map(|(build, _)| build))];
        // Only a vector's iterator can be cloned cheaply.
        let frames: Vec<u32> = rows().map(|(_, v)| v.frame).collect();
        columns.extend(frame_columns(&series.frames, frames.iter().copied()));
        columns.push(Data::Value(rows().map(|(_, v)| v.flat).collect()));
        columns.push(Data::Value(rows().map(|(_, v)| v.cum).collect()));
        Table::new(Kind::Values, &series.summary, columns).of_builds(&series.builds, frames.len())
    }
}

/// The first `n` movers as an HTML fragment, each with a picture of its values. Everything from the input is
/// escaped.
pub fn series_html(series: &Series, sort: Sort, n: usize) -> String {
    let movers = series.movers(sort);
    let shown = &movers.rows[..n.min(movers.rows.len())];
    let table = Table::movers(&movers, n);
    let measured = if sort == Sort::Flat { Measured::Flat } else { Measured::Cum };
    let steps = table.costs().into_iter().find(|c| c.cost.measured == measured);
    let Some((steps, cost)) = steps.map(|steps| (steps, table.format(&steps))) else { return String::new() };
    let histories = series.history(&shown.iter().map(|m| m.frame).collect::<Vec<_>>(), sort);
    let what = if sort == Sort::Flat { "flat" } else { "cum" };
    let mut html = format!(
        "{}<div class=\"pprofdiff\">{}<table><thead><tr>",
        style(),
        html_header(&series.summary, &series.builds)
    );
    let heads = ["frame", "", "from → to", "before", "after", "step", GROWTH, OF_TOTAL, "first seen", "last seen"];
    for (i, head) in heads.into_iter().enumerate() {
        let class = if matches!(i, 0..=2 | 8 | 9) { " class=\"w\"" } else { "" };
        let head = if i == 1 { format!("{what} over builds") } else { head.to_owned() };
        let _ = write!(html, "<th{class}>{head}</th>");
    }
    html.push_str("</tr></thead><tbody>");
    let key = |build: usize| escape(&series.builds.all[build].key);
    for (row, (m, course)) in shown.iter().zip(&histories).enumerate() {
        let value = m.step.value(sort);
        let delta = value.delta();
        let class = ["less", "", "more"][(delta.signum() + 1) as usize];
        let share = share_text(share(delta, table.total_of(steps.cost, row)), true);
        let steps = if m.step.from == m.step.to {
            String::new()
        } else {
            format!("{} → {}", key(m.step.from), key(m.step.to))
        };
        let at = series.builds.loaded().position(|b| std::ptr::eq(b, &series.builds.all[m.step.to]));
        let _ = write!(
            html,
            "<tr><td class=\"t\">{}</td><td class=\"w\">{}</td><td class=\"w\">{steps}</td><td>{}</td><td>{}</td>\
             <td class=\"{class}\">{}</td><td class=\"{class}\">{}</td><td class=\"{class}\">{}</td><td class=\"w\">{}</td><td class=\"w\">{}</td></tr>",
            escape(&table.label(row)),
            picture(course, at.unwrap_or(0), class),
            cost.sides.format(value.base),
            cost.sides.format(value.new),
            signed(delta, cost.delta),
            escape(&growth(value)),
            escape(&share),
            key(m.first),
            key(m.last)
        );
    }
    html.push_str("</tbody></table>");
    if shown.len() < movers.rows.len() {
        let _ = write!(
            html,
            "<div class=\"note\">{}, by their largest step of {what}</div>",
            counted_of(shown.len(), movers.rows.len(), "frame")
        );
    }
    html.push_str("</div>");
    html
}

impl Table {
    /// The first `n` rows, one a step. Columns: name, file, line, mapping, from and to (the builds' keys), status (added, removed or
    /// changed), `flat_from, flat_to, flat_delta, cum_from, cum_to, cum_delta`, and `total_from`, the earlier build's
    /// total.
    pub fn steps(ranked: &Ranked<Step>, n: usize) -> Table {
        let rows = &ranked.rows[..n.min(ranked.rows.len())];
        let mut columns = frame_columns(&ranked.frames, rows.iter().map(|s| s.frame));
        columns.extend(step_columns(&ranked.builds, rows.iter()));
        Table::new(Kind::Steps, &ranked.summary, columns).of_builds(&ranked.builds, ranked.rows.len())
    }
}

impl Table {
    /// The first `n` rows, one a frame. Columns: those of steps, for the frame's largest; before them first_seen and last_seen (the
    /// builds' keys), and builds (how many have it).
    pub fn movers(ranked: &Ranked<Mover>, n: usize) -> Table {
        let rows = &ranked.rows[..n.min(ranked.rows.len())];
        let mut columns = frame_columns(&ranked.frames, rows.iter().map(|m| m.frame));
        columns.push(key_column(&ranked.builds, rows.iter().map(|m| m.first)));
        columns.push(key_column(&ranked.builds, rows.iter().map(|m| m.last)));
        columns.push(Data::Line(rows.iter().map(|m| Some(m.builds as i64)).collect()));
        columns.extend(step_columns(&ranked.builds, rows.iter().map(|m| &m.step)));
        Table::new(Kind::Movers, &ranked.summary, columns).of_builds(&ranked.builds, ranked.rows.len())
    }
}

impl Table {
    /// The first `n` rows, one a lasting change. Columns: name, file, line, mapping; kind (step, passed, drift); since, earliest,
    /// latest and until (the builds' keys: the first that has the change, those that it may as well have come with, the
    /// first that it is gone from, of a drift the last); before, after, delta, delta_low and delta_high (of the mean, and
    /// where its change lies at 95 %), q (the part of false ones among what is as clear), and total_before.
    pub fn shifts(ranked: &Ranked<Shift>, n: usize) -> Table {
        let rows = &ranked.rows[..n.min(ranked.rows.len())];
        let keys = || ranked.builds.all.iter().map(|b| Some(&b.key));
        let of = |build: fn(&Shift) -> usize| key_column(&ranked.builds, rows.iter().map(build));
        // The key that is behind all of them is of those that stay.
        let until: Texts = keys().chain([None]).collect();
        let until = until.shared(rows.iter().map(|s| s.until.unwrap_or(ranked.builds.all.len())));
        let kinds = [ShiftKind::Step, ShiftKind::Passed, ShiftKind::Drift];
        let names: Texts = kinds.iter().map(|kind| Some(kind.name())).collect();
        let kind = |s: &Shift| kinds.iter().position(|&k| k == s.kind).unwrap_or_default();
        let mut columns = frame_columns(&ranked.frames, rows.iter().map(|s| s.frame));
        columns.push(Data::Text(names.shared(rows.iter().map(kind))));
        columns.extend([of(|s| s.build), of(|s| s.between[0]), of(|s| s.between[1]), Data::Text(until)]);
        columns.extend(costs(true, rows.iter().map(|s| s.value)));
        let end = |i: usize| Data::Value(rows.iter().map(|s| s.interval[i].round() as i64).collect());
        columns.extend([end(0), end(1), Data::Ratio(rows.iter().map(|s| Some(s.q)).collect())]);
        let before = |s: &Shift| ranked.builds.loaded_before(s.build).map_or(0, |b| b.total);
        columns.push(Data::Value(rows.iter().map(before).collect()));
        Table::new(Kind::Shifts, &ranked.summary, columns).of_builds(&ranked.builds, ranked.rows.len())
    }

    /// The rows of lasting changes for people.
    fn write_shifts(&self, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
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
                let until = text("until", row);
                let until = if until.is_empty() { "-" } else { until };
                cells.extend([text("kind", row), text("since", row), &between, until].map(Shown::from));
                cells.push(self.label(row).into());
                push(cells)
            })
        })
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
            let totals: std::collections::HashMap<&str, i64> =
                builds.loaded().map(|b| (b.key.as_str(), b.total)).collect();
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
                cells.extend(["from", "to"].map(|name| Shown::from(if still { "-" } else { text(name, row) })));
                cells.extend(seen.iter().map(|(_, name)| Shown::from(text(name, row))));
                cells.push(self.label(row).into());
                push(cells)
            })
        })
    }
}

/// `12 builds by key, 01 to 12; each is compared with the one before`.
fn extent(builds: &Builds) -> String {
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
    (s.normalize != Normalize::None).then(|| format!("normalized by {} to {to}", s.normalize.mode()))
}

/// Builds and totals in one line.
pub(super) fn header(s: &Summary, builds: &Builds) -> String {
    let totals = totals(s).0.replace("->", "→");
    format!("{} ({}): {totals}; {}, {}", s.sample_type, s.unit, extent(builds), compared(builds))
}

fn text_header(out: &mut dyn Write, s: &Summary, builds: &Builds) -> io::Result<()> {
    writeln!(out, "{}; {}", harmless(&extent(builds)), harmless(&compared(builds)))?;
    writeln!(out, "{} ({}): {}", harmless(&s.sample_type), harmless(&s.unit), totals(s).0)?;
    normalized(s, builds).map_or(Ok(()), |n| writeln!(out, "{}", harmless(&n)))?;
    settings(out, s)?;
    builds.failed().try_for_each(|b| writeln!(out, "failed: {}", harmless(&failure(b))))
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
    notes.extend(s.filters.iter().map(|(name, v)| format!("{name}={v}")));
    notes.extend(s.warnings.iter().map(|w| format!("warning: {w}")));
    for note in notes {
        let _ = write!(html, "<div class=\"note\">{}</div>", escape(&note));
    }
    html
}

/// Above this many builds a picture shows the largest value of several that follow each other.
const POINTS: usize = 120;

/// The values of a frame as a line, from zero up (or down), with a dot at its largest step.
fn picture(course: &[i64], step: usize, class: &str) -> String {
    let of_point = course.len().div_ceil(POINTS).max(1);
    let values: Vec<f64> = course
        .chunks(of_point)
        .map(|chunk| chunk.iter().copied().max_by_key(|v| v.unsigned_abs()).unwrap_or(0) as f64)
        .collect();
    let (low, high) = values.iter().fold((0.0, 0.0), |(low, high): (f64, f64), &v| (low.min(v), high.max(v)));
    let (width, height) = (120.0, 18.0);
    let x = |i: usize| 2.0 + (width - 4.0) * i as f64 / (values.len().max(2) - 1) as f64;
    let y = |v: f64| if high == low { height - 2.0 } else { 2.0 + (height - 4.0) * (high - v) / (high - low) };
    let line =
        values.iter().enumerate().map(|(i, &v)| format!("{:.1},{:.1}", x(i), y(v))).collect::<Vec<_>>().join(" ");
    let i = (step / of_point).min(values.len().saturating_sub(1));
    let dot = values.get(i).map_or_else(String::new, |&v| {
        format!("<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2\" fill=\"currentColor\"/>", x(i), y(v))
    });
    format!(
        "<svg width=\"{width}\" height=\"{height}\" aria-hidden=\"true\"><polyline points=\"{line}\" fill=\"none\" \
         stroke=\"currentColor\" stroke-opacity=\".7\"/>{dot}</svg>"
    )
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
