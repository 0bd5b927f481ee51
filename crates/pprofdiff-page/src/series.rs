//! The page of a series: the timeline of each frame that changed, and for each change point the graphs and tables of
//! the builds before and after. A change point takes the place of a sample type on the page of a diff.

use serde_json::{Value, json};

use crate::columns::PageNumbers;
use crate::names::{PageNames, visible};
use crate::page::{
    MANY_SAMPLES, MAX_EXPLAINED, PICTURES, Page, PageOptions, PageViews, add_omissions, assemble, mark_chance,
    sample_type, settings, side,
};
use crate::views::pair;
use pprofdiff::shared::short_lists::sort_by_key;
use pprofdiff::{LoadOptions, Result, Sort, cancellation, units};
use pprofdiff_explain::Explanation;
use pprofdiff_report::shared::{FrameTimeline, LASTING, LayoutBudget, Timelines, builds_extent, counted};
use pprofdiff_report::{RUNS, failed_builds};
use pprofdiff_series::{Builds, ChangePoint, Series};

/// The maximum number of change points with graphs. The largest changes are kept.
const MAX_POINTS: usize = 12;
/// The maximum number of rows on a page.
const MAX_ROWS: usize = 500;
/// The maximum number of values in all timelines of a page together, unless a single row has more.
const MAX_VALUES: usize = 2_000_000;

/// Builds the page of a series. Loads the builds around each change point again from their paths.
///
/// # Errors
/// Fails like [`Series::diff`] and [`measure`](pprofdiff_explain::measure) for a change point of the page, and if
/// nothing changed in a series with a single build.
pub(crate) fn series_page(
    series: &Series,
    timelines: &Timelines,
    sort: Sort,
    options: &PageOptions,
    load: &LoadOptions,
) -> Result<Page> {
    let builds = &series.builds;
    let n = builds.loaded().count();
    let max_rows = MAX_ROWS.min(MAX_VALUES / n.max(1)).max(1);
    let rows = &timelines.rows[..timelines.rows.len().min(max_rows)];
    // The change points of the largest changes, or the first and last builds if nothing changed. Rows are in order of
    // size, so the first row of a point tells how large its largest change is.
    let change_points = change_points(series, timelines);
    let mut points: Vec<&ChangePoint> = change_points.iter().filter(|p| p.rows.first() < Some(&rows.len())).collect();
    sort_by_key(&mut points, |point| point.rows.first().copied());
    let omitted = points.len().saturating_sub(MAX_POINTS);
    points.truncate(MAX_POINTS);
    let ends = if points.is_empty() { Some(series.ends(RUNS)?) } else { None };
    points.extend(&ends);
    let largest = points.first().copied();
    sort_by_key(&mut points, |point| point.build);

    let query = series.summary.query.clone();
    let share = options.max_frames / (2 * points.len().max(1));
    let (mut names, mut parts, mut explained) = (PageNames::default(), Vec::new(), Vec::<(usize, Explanation)>::new());
    let (mut budget, mut depth, mut shown, mut sides) = (LayoutBudget::for_pictures(PICTURES), 0, 0, Value::Null);
    let frames: Vec<u64> = rows.iter().map(|row| names.id(&series.frames, row.frame)).collect();
    for (i, point) in points.iter().enumerate() {
        let diff = series.diff(point, load)?;
        names.of_next_diff();
        let selection = pprofdiff_explain::select(&diff, &query)?;
        let view = selection.measure(query.sample_type.as_deref(), query.normalize)?;
        let is_largest = largest.is_some_and(|largest| std::ptr::eq(largest, *point));
        let is_explained = is_largest || diff.n_samples() <= MANY_SAMPLES || explained.len() + 1 < MAX_EXPLAINED;
        let number = diff.find_sample_type(query.sample_type.as_deref())?;
        let explanation = is_explained
            .then(|| pprofdiff_explain::explain_types(&selection, &[number], 1, &options.explain).pop())
            .flatten();
        let explanation = explanation.map(|(_, explanation)| explanation);
        cancellation::begin_phase("drawing");
        if !options.only_flame {
            selection.build_tree();
        }
        let mut views = PageViews::from_measure(&view, share, options);
        views.draw(&mut budget);
        let mut part = sample_type(&view, &views, &mut names);
        if let Some(explanation) = &explanation {
            mark_chance(&mut part, &view, &views, explanation);
        }
        let s = view.summary();
        part["base"] = s.base.as_ref().map(|base| side(base, s.sum)).unwrap_or_default();
        part["new"] = side(&s.new, s.sum);
        part["type"] = place(builds, point).into();
        part["label"] = label(builds, point).into();
        if is_largest {
            (shown, depth) = (i, views.depth() + 1);
            sides = json!([part["base"], part["new"]]);
        }
        explained.extend(explanation.map(|e| (i, e)));
        parts.push(part);
    }
    let mut warnings = series_warnings(builds, timelines, rows.len(), [points.len(), omitted]);
    add_omissions(&explained, &mut warnings);
    let summary = &timelines.summary;
    let data = json!({
        "base": sides[0],
        "new": sides[1],
        "settings": settings(summary),
        "warnings": warnings,
        "shown": shown,
        "courses": timelines_json(series, timelines, sort, &frames, &points),
    });
    let title = format!("{}: {}", visible(&summary.sample_type), visible(&builds_extent(builds)));
    Ok(assemble(title, data, parts, &explained, names, "", depth))
}

/// Returns the warnings of a series' page. `rows` is the number of rows on the page, and `points` are the numbers of
/// shown and omitted change points.
fn series_warnings(builds: &Builds, timelines: &Timelines, rows: usize, points: [usize; 2]) -> Vec<String> {
    let warnings = timelines.summary.warnings.iter().map(|w| visible(w).into_owned());
    let failed = failed_builds(builds).into_iter().map(|line| visible(&format!("failed: {line}")).into_owned());
    let mut warnings: Vec<String> = warnings.chain(failed).collect();
    let [shown, omitted] = points;
    if omitted > 0 {
        let all = shown + omitted;
        warnings.push(format!("the page has graphs of the {shown} largest of {all} changes"));
    }
    if rows < timelines.rows_total {
        let all_rows = counted(timelines.rows_total, timelines.row_noun);
        warnings.push(format!("the page has the {rows} largest of {all_rows}"));
    }
    warnings
}

/// Returns the values of all builds, for the page's script. `frames` has the ids of the rows to show.
fn timelines_json(
    series: &Series,
    timelines: &Timelines,
    sort: Sort,
    frames: &[u64],
    points: &[&ChangePoint],
) -> Value {
    let (builds, summary) = (&series.builds, &timelines.summary);
    let column_of = |build: usize| builds.all[..build].iter().filter(|b| b.error.is_none()).count();
    let part_of = |row: usize| points.iter().position(|point| point.rows.contains(&row));
    let row = |(i, (row, frame)): (usize, (&FrameTimeline, &u64))| {
        json!({
            "frame": frame,
            "kind": row.kind.map(|kind| kind.name()),
            "from": column_of(row.from),
            "to": column_of(row.to),
            "between": row.between.map(column_of),
            "until": row.until.map(column_of),
            "value": pair(row.value),
            "total": row.total_before.to_string(),
            "interval": row.interval,
            "values": row.values.iter().copied().collect::<PageNumbers>().base64(),
            "part": part_of(i),
        })
    };
    json!({
        "extent": visible(&builds_extent(builds)),
        "of": timelines.rows_total,
        "cost": if sort == Sort::Flat { "flat" } else { "cum" },
        "lasting": timelines.row_noun == LASTING,
        "type": visible(&summary.sample_type),
        "units": units::family(&summary.unit),
        "keys": builds.loaded().map(|b| visible(&b.key)).collect::<Vec<_>>(),
        "numbers": series.values().map(|(build, _)| build).collect::<Vec<_>>(),
        "total": builds.loaded().next().map_or(0, |b| b.total).to_string(),
        "rows": timelines.rows.iter().zip(frames).enumerate().map(row).collect::<Vec<_>>(),
    })
}

/// Returns the name of a change point's build: `b25 #25`. If the new side starts at another build, as for a drift,
/// returns the names of the base side's first build and of the point's build.
fn place(builds: &Builds, point: &ChangePoint) -> String {
    let name = |build: usize| format!("{} #{build}", visible(&builds.all[build].key));
    match (point.sides[0].first(), point.sides[1].first()) {
        (Some(&first), Some(&begin)) if begin != point.build => format!("{} → {}", name(first), name(point.build)),
        _ => name(point.build),
    }
}

/// Returns the name of a change point in the list: `b25 #25, 3 changes`, or `first and last builds` instead of a number
/// of changes if nothing changed.
fn label(builds: &Builds, point: &ChangePoint) -> String {
    let changes = match point.rows.len() {
        0 => "first and last builds".to_owned(),
        n => counted(n, "change"),
    };
    format!("{}, {changes}", place(builds, point))
}

/// Returns the builds with changes, each with the indexes of the rows that changed in it. A step belongs to
/// the later of its two builds. Steps without a change are skipped, and steps to a build that cannot be compared with
/// earlier builds.
fn change_points(series: &Series, timelines: &Timelines) -> Vec<ChangePoint> {
    if let Some(shifts) = &timelines.shifts {
        return series.change_points(shifts, RUNS);
    }
    let mut points: Vec<ChangePoint> = Vec::new();
    for (i, row) in timelines.rows.iter().enumerate().filter(|(_, row)| row.from != row.to) {
        match points.iter_mut().find(|point| point.build == row.to) {
            Some(point) => point.rows.push(i),
            None => points.extend(series.change_point(row.to, RUNS).ok().map(|point| point.with_rows(vec![i]))),
        }
    }
    points
}
