//! The frames that changed in a series, each with its timeline over the builds, for notebooks and the page.

use std::fmt::Write as _;
use std::sync::Arc;

use super::html::{escape, style};
use super::numbers::{CostFormat, counted_of, growth, share, share_text, signed};
use super::series::html_header;
use super::text::{GROWTH, OF_TOTAL};
use pprofdiff::{Pair, Sort, Summary};
use pprofdiff_series::{Ranked, Shift};
use pprofdiff_series::{Series, ShiftKind};

/// The noun for a row that is a lasting change.
pub const LASTING: &str = "lasting change";

/// A frame's change and its timeline.
#[derive(Debug)]
pub struct FrameTimeline {
    /// Index in [`Series::frames`].
    pub frame: u32,
    /// The kind of a lasting change; `None` for a step, which may be noise.
    pub kind: Option<ShiftKind>,
    /// The last build before the change. For a drift, the first build with growth.
    pub from: usize,
    /// The first build with the change. For a drift, the last build of the series. Equal to `from` if nothing changed.
    pub to: usize,
    /// The range of builds that may have introduced the change.
    pub between: [usize; 2],
    /// For a change that passed, the first build without it; `None` for all others.
    pub until: Option<usize>,
    /// The cost before and after: both builds' values for a step, means for a lasting change, and for a drift the ends
    /// of the fitted line.
    pub value: Pair,
    /// The total before the change: of a build for a step, the mean of builds for a lasting change.
    pub total_before: i64,
    /// The 95% confidence interval of the change; `None` for a step.
    pub interval: Option<[f64; 2]>,
    /// The cost in each build that has values; 0 where the build does not contain the frame.
    pub values: Vec<i64>,
}

/// The frames that changed most.
#[derive(Debug)]
pub struct Timelines {
    /// The changes, largest first.
    pub rows: Vec<FrameTimeline>,
    /// The number of rows before truncation.
    pub rows_total: usize,
    /// All lasting changes, if the rows are lasting changes.
    pub shifts: Option<Ranked<Shift>>,
    /// The noun for a row.
    pub row_noun: &'static str,
    /// The summary of the series, with warnings about omitted data.
    pub summary: Arc<Summary>,
}

impl Timelines {
    /// Returns the first `n` lasting changes if `lasting`, otherwise the first `n` frames by their largest step. `sort`
    /// selects the cost (flat or cum).
    pub fn new(series: &Series, lasting: bool, sort: Sort, n: usize) -> Timelines {
        if lasting {
            let shifts = series.shifts(sort);
            let timeline = |s: &Shift| FrameTimeline {
                frame: s.frame,
                kind: Some(s.kind),
                from: if s.kind == ShiftKind::Drift { s.build } else { series.builds.loaded_before(s.build) },
                to: if s.kind == ShiftKind::Drift { s.until.unwrap_or(s.build) } else { s.build },
                between: s.between,
                until: s.until.filter(|_| s.kind == ShiftKind::Passed),
                value: s.value,
                total_before: s.total_before,
                interval: Some(s.interval),
                values: Vec::new(),
            };
            let rows = shifts.rows.iter().take(n).map(timeline).collect();
            let timelines = Timelines {
                rows,
                rows_total: shifts.rows.len(),
                row_noun: LASTING,
                summary: shifts.summary.clone(),
                shifts: Some(shifts),
            };
            return timelines.with_values(series, sort);
        }
        let movers = series.movers(sort);
        let timeline = |m: &pprofdiff_series::Mover| FrameTimeline {
            frame: m.frame,
            kind: None,
            from: m.step.from,
            to: m.step.to,
            between: [m.step.to; 2],
            until: None,
            value: m.step.value(sort),
            total_before: series.builds.all[m.step.from].total,
            interval: None,
            values: Vec::new(),
        };
        let rows: Vec<FrameTimeline> = movers.rows.iter().take(n).map(timeline).collect();
        let timelines = Timelines {
            rows,
            rows_total: movers.rows.len(),
            shifts: None,
            row_noun: "frame",
            summary: series.summary.clone(),
        };
        timelines.with_values(series, sort)
    }

    fn with_values(mut self, series: &Series, sort: Sort) -> Timelines {
        // A frame may have several changes. Compute its values once.
        let mut frames: Vec<u32> = self.rows.iter().map(|row| row.frame).collect();
        frames.sort_unstable();
        frames.dedup();
        let values = series.history(&frames, sort);
        for row in &mut self.rows {
            row.values = frames.binary_search(&row.frame).map(|i| values[i].clone()).unwrap_or_default();
        }
        self
    }
}

/// Returns the first `n` lasting changes as an HTML fragment with a picture of each timeline. A series that is not a
/// history shows the `n` frames with the largest steps instead. All text from the input is escaped.
pub fn series_html(series: &Series, sort: Sort, n: usize) -> String {
    let lasting = series.is_history();
    let timelines = Timelines::new(series, lasting, sort, n);
    let cost = CostFormat::in_unit(&series.summary.unit, true, timelines.rows.iter().map(|row| row.value));
    let flat_or_cum = if sort == Sort::Flat { "flat" } else { "cum" };
    let mut html = format!("{}<div class=\"pprofdiff\">{}", style(), html_header(&timelines.summary, &series.builds));
    let key = |build: usize| escape(&series.builds.all[build].key);
    if !timelines.rows.is_empty() {
        html.push_str("<table><thead><tr>");
        let timeline = format!("{flat_or_cum} over builds");
        let since = if lasting { "since" } else { "from → to" };
        for (i, head) in
            ["frame", &timeline, since, "before", "after", "change", GROWTH, OF_TOTAL, "what"].into_iter().enumerate()
        {
            if i < 8 || lasting {
                let _ = write!(html, "<th{}>{head}</th>", if matches!(i, 0..=2 | 8) { " class=\"w\"" } else { "" });
            }
        }
        html.push_str("</tr></thead><tbody>");
    }
    for row in &timelines.rows {
        let delta = row.value.delta();
        let class = ["less", "", "more"][(delta.signum() + 1) as usize];
        let since = match (row.kind, row.from == row.to) {
            (Some(ShiftKind::Drift), _) | (None, false) => format!("{} → {}", key(row.from), key(row.to)),
            (None, true) => String::new(),
            _ if row.between[0] == row.between[1] => key(row.to),
            _ => format!("{} ({}..{})", key(row.to), key(row.between[0]), key(row.between[1])),
        };
        let interval_title = row.interval.map_or_else(String::new, |interval| {
            let [low, high] = interval.map(|end| signed(end.round() as i64, cost.delta));
            format!(" title=\"95% interval: {low} to {high}\"")
        });
        let column = series.builds.loaded().position(|b| std::ptr::eq(b, &series.builds.all[row.to]));
        let _ = write!(
            html,
            "<tr><td class=\"t\">{}</td><td class=\"w\">{}</td><td class=\"w\">{since}</td><td>{}</td><td>{}</td>\
             <td class=\"{class}\"{interval_title}>{}</td><td class=\"{class}\">{}</td><td class=\"{class}\">{}</td>",
            escape(&series.frames.label(row.frame)),
            picture(&row.values, column.unwrap_or(0), class),
            cost.sides.format(row.value.base),
            cost.sides.format(row.value.new),
            signed(delta, cost.delta),
            escape(&growth(row.value)),
            escape(&share_text(share(delta, row.total_before), true)),
        );
        if let Some(kind) = row.kind {
            let until = row.until.map_or_else(String::new, |until| format!(" at {}", key(until)));
            let _ = write!(html, "<td class=\"w\">{}{until}</td>", kind.name());
        }
        html.push_str("</tr>");
    }
    if !timelines.rows.is_empty() {
        html.push_str("</tbody></table>");
    }
    if timelines.rows.len() < timelines.rows_total || timelines.rows_total == 0 {
        let order = if lasting { "by size" } else { "by largest step" };
        let shown = counted_of(timelines.rows.len(), timelines.rows_total, timelines.row_noun);
        let _ = write!(html, "<div class=\"note\">{shown}, {order} in {flat_or_cum}</div>");
    }
    html.push_str("</div>");
    html
}

/// The maximum number of points in a picture. With more builds, each point shows the largest value of several
/// consecutive builds.
const POINTS: usize = 120;

/// Draws the values of a frame as a line on an axis that includes zero, with a dot at the change. `step` is the index
/// of the build with the change in `values_by_build`.
fn picture(values_by_build: &[i64], step: usize, class: &str) -> String {
    let builds_per_point = values_by_build.len().div_ceil(POINTS).max(1);
    let values: Vec<f64> = values_by_build
        .chunks(builds_per_point)
        .map(|chunk| chunk.iter().copied().max_by_key(|v| v.unsigned_abs()).unwrap_or(0) as f64)
        .collect();
    let (low, high) = values.iter().fold((0.0, 0.0), |(low, high): (f64, f64), &v| (low.min(v), high.max(v)));
    let (width, height) = (120.0, 18.0);
    let x = |i: usize| 2.0 + (width - 4.0) * i as f64 / (values.len().max(2) - 1) as f64;
    let y = |v: f64| if high == low { height - 2.0 } else { 2.0 + (height - 4.0) * (high - v) / (high - low) };
    let line =
        values.iter().enumerate().map(|(i, &v)| format!("{:.1},{:.1}", x(i), y(v))).collect::<Vec<_>>().join(" ");
    let i = (step / builds_per_point).min(values.len().saturating_sub(1));
    let dot = values.get(i).map_or_else(String::new, |&v| {
        format!("<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2\" fill=\"currentColor\"/>", x(i), y(v))
    });
    format!(
        "<svg width=\"{width}\" height=\"{height}\" aria-hidden=\"true\"><polyline points=\"{line}\" fill=\"none\" \
         stroke=\"currentColor\" stroke-opacity=\".7\"/>{dot}</svg>"
    )
}
