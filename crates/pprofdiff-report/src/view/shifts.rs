//! The view `shifts`: the builds that changed a frame's cost lastingly.

use std::io::{self, Write};
use std::sync::Arc;

use super::{Form, Takes, ViewSpec};
use crate::explain::{answer_lines, answer_markdown, cause_of};
use crate::numbers::{counted_of, signed};
use crate::series::{RUNS, build_columns, frame_columns};
use crate::table::build::costs;
use crate::table::schema::{Holds, build, frame, key, label, spec};
use crate::table::{Cost, Data, ExplainedBuilds, Kind, Measured, Role, Table, Texts};
use crate::text::{TextCell, TextOptions, change_cells, grid, heads};
use pprofdiff::random::HashMap;
use pprofdiff::shared::short_lists::sort_by_key;
use pprofdiff::text::sanitize;
use pprofdiff::{Diff, LoadOptions, Query, Result, Sort, TopRow};
use pprofdiff_explain::{Cause, ExplainOptions};
use pprofdiff_series::{FEWEST_BUILDS, Ranked, Series, Shift, ShiftKind};

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "shifts",
    about: "Show the builds that changed a frame's cost lastingly",
    kinds: &[&SHIFTS],
    forms: &[Form::Text, Form::Json, Form::Rows, Form::Prose, Form::Page],
    takes: &[Takes::Explain],
    ..ViewSpec::OF_BUILDS
};

/// The kind of tables with one lasting change per row.
pub(crate) static SHIFTS: Kind = Kind {
    name: "shifts",
    row: "lasting change",
    columns: |_| {
        let cost = Cost { measured: Measured::Weight, sample_type: 0 };
        let costs = [
            ("before", Role::Base(cost)),
            ("after", Role::New(cost)),
            ("delta", Role::Delta(cost)),
            ("delta_low", Role::DeltaEnd(cost)),
            ("delta_high", Role::DeltaEnd(cost)),
        ];
        let mut all = Vec::from(frame());
        all.extend([label("mapping"), key("kind")]);
        all.extend(["since", "earliest", "latest", "until"].into_iter().flat_map(build));
        all.extend(costs.map(|(name, role)| spec(name, role, Holds::Value)));
        all.push(spec("q", Role::Figure, Holds::Ratio));
        all.push(spec("total_before", Role::Total, Holds::Value));
        all.extend([label("compared"), label("cause")]);
        all
    },
    text: write_shifts,
    chart_label: |table, row, name| table.name_with_build(row, "since", name),
    ..Kind::OF_BUILDS
};

/// Computes the first `limit` lasting changes. If `explain` is set, explains the causes of these changes, which loads
/// the builds around each change again with the options `load`.
pub(crate) fn answer(
    series: &Series,
    sort: Sort,
    limit: usize,
    explain: Option<&ExplainOptions>,
    load: &LoadOptions,
) -> Result<Table> {
    answer_known(series, &series.shifts(sort), limit, explain, load)
}

/// Like [`answer`], for lasting changes that are known. The search for them takes time.
pub(crate) fn answer_known(
    series: &Series,
    shifts: &Ranked<Shift>,
    limit: usize,
    explain: Option<&ExplainOptions>,
    load: &LoadOptions,
) -> Result<Table> {
    let Some(options) = explain else { return Ok(Table::shifts(shifts, limit, &[])) };
    let (causes, explained) = causes_of(series, shifts, limit, load, options)?;
    Ok(Table { explained: Arc::new(explained), ..Table::shifts(shifts, limit, &causes) })
}

/// The causes of rows, each with the builds that were compared to find it, and the explanations of these builds.
type CausesOfRows = (Vec<Option<[String; 2]>>, Vec<ExplainedBuilds>);

/// Returns the cause of each of the first `n` lasting changes and the builds that were compared to find it, which are
/// the builds before and after the change. Changes in the same build share one comparison, whose explanation is also
/// returned.
///
/// # Errors
/// Fails like [`Series::explain`], and if measuring the stacks of a cause fails.
fn causes_of(
    series: &Series,
    shifts: &Ranked<Shift>,
    n: usize,
    load: &LoadOptions,
    options: &ExplainOptions,
) -> Result<CausesOfRows> {
    let mut causes = vec![None; n.min(shifts.rows.len())];
    // The explanation of the largest change comes first.
    let mut all_explained: Vec<(usize, ExplainedBuilds)> = Vec::new();
    for point in series.change_points(shifts, RUNS) {
        let rows: Vec<usize> = point.rows.iter().copied().filter(|&row| row < causes.len()).collect();
        if rows.is_empty() {
            continue;
        }
        let query = series.explained_query();
        let diff = series.diff(&point, load)?;
        let explanation = series.explain_diff(&diff, options)?;
        // The change of each function within the stacks of each cause, by the cause's pattern.
        let mut within: HashMap<String, HashMap<String, i64>> = HashMap::default();
        let whole = deltas(&diff, &query, shifts.sort)?;
        for cause in &explanation.causes {
            if let Some(pattern) = &cause.evidence.pattern {
                let focused = query.clone().with_filters(query.filters.clone().with("focus", pattern.as_str())?);
                within.insert(pattern.clone(), deltas(&diff, &focused, shifts.sort)?);
            }
        }
        let compared = series.compared_builds(&point);
        let known = &series.summary.warnings;
        let explained = ExplainedBuilds {
            compared: compared.clone(),
            verdict: explanation.verdict.name().to_owned(),
            lines: answer_lines(&explanation, known, false),
            brief: answer_lines(&explanation, known, true),
            markdown: answer_markdown(&explanation, known),
        };
        all_explained.push((rows[0], explained));
        for row in rows {
            let name = shifts.frames.name(shifts.rows[row].frame);
            let delta = |deltas: &HashMap<String, i64>| deltas.get(&name).copied().unwrap_or(0);
            let below = |cause: &Cause| {
                let part = cause.evidence.pattern.as_ref().and_then(|pattern| within.get(pattern)).map_or(0, delta);
                let all = delta(&whole);
                // The cause explains the row if its stacks have at least half of the function's change.
                all != 0 && part.signum() == all.signum() && part.unsigned_abs() >= all.unsigned_abs() / 2
            };
            causes[row] = Some([cause_of(&explanation, &name, below), compared.clone()]);
        }
    }
    sort_by_key(&mut all_explained, |(row, _)| *row);
    Ok((causes, all_explained.into_iter().map(|(_, explained)| explained).collect()))
}

/// Returns the change of each function's flat or cum cost, whichever `sort` selects, by name.
fn deltas(diff: &Diff, query: &Query, sort: Sort) -> Result<HashMap<String, i64>> {
    let top = pprofdiff_explain::measure(diff, query)?.top(sort);
    let delta = |row: &TopRow| if sort == Sort::Flat { row.flat.delta() } else { row.cum.delta() };
    Ok(top.rows.iter().map(|row| (top.frames.name(row.frame), delta(row))).collect())
}

impl Table {
    /// Builds a table of the first `n` lasting changes. Columns: name, file, line, mapping; kind (step, passed, drift);
    /// since, earliest, latest and until (keys and numbers of builds: the first build with the change, the range of
    /// builds that may have introduced it, and for a passed change the first build without it, for a drift the last
    /// build, otherwise missing); before, after, delta, delta_low and delta_high (the means, or for a drift the ends of
    /// the fitted line, and the 95% interval of their difference); q (the false discovery rate); total_before (the
    /// mean total of the builds before the change); and the compared builds and the cause, if `causes` contains the cause and the builds.
    pub fn shifts(ranked: &Ranked<Shift>, n: usize, causes: &[Option<[String; 2]>]) -> Table {
        let rows = &ranked.rows[..n.min(ranked.rows.len())];
        let build_column = |build: fn(&Shift) -> Option<usize>| build_columns(&ranked.builds, rows.iter().map(build));
        let kinds = [ShiftKind::Step, ShiftKind::Passed, ShiftKind::Drift];
        let names: Texts = kinds.iter().map(|kind| Some(kind.name())).collect();
        let kind = |s: &Shift| kinds.iter().position(|&k| k == s.kind).unwrap_or_default();
        let mut columns = frame_columns(&ranked.frames, rows.iter().map(|s| s.frame));
        columns.push(Data::Text(names.shared(rows.iter().map(kind))));
        columns.extend(build_column(|s| Some(s.build)));
        columns.extend(build_column(|s| Some(s.between[0])));
        columns.extend(build_column(|s| Some(s.between[1])));
        columns.extend(build_column(|s| s.until));
        columns.extend(costs(true, rows.iter().map(|s| s.value)));
        let end = |i: usize| Data::Value(rows.iter().map(|s| s.interval[i].round() as i64).collect());
        columns.extend([end(0), end(1), Data::Ratio(rows.iter().map(|s| Some(s.q)).collect())]);
        columns.push(Data::Value(rows.iter().map(|s| s.total_before).collect()));
        columns.extend([1, 0].map(|i| {
            let text = |row: usize| causes.get(row)?.as_ref().map(|texts| texts[i].as_str());
            Data::Text((0..rows.len()).map(text).collect())
        }));
        Table::new(&SHIFTS, &ranked.summary, columns).of_ranked(ranked)
    }
}

fn write_shifts(table: &Table, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
    let is_history = table.builds.as_ref().is_some_and(|b| b.loaded().count() >= FEWEST_BUILDS);
    if table.rows_total == 0 && is_history {
        let cost = if table.sort == Sort::Flat { "own cost" } else { "cost with callees" };
        return writeln!(
            out,
            "no lasting changes: no frame's {cost} changed for three builds or more beyond the noise between builds;\n\
             changes of single builds are among the steps"
        );
    }
    if table.rows_total == 0 {
        return Ok(());
    }
    // Python moves the causes to the front of the columns. Text then begins with them as well.
    let is_first = table.columns.get(1).is_some_and(|column| column.name == "cause");
    let changes = counted_of(table.len(), table.rows_total, "lasting change");
    if is_first {
        write_causes(table, out, options.brief, "", "\n")?;
    }
    if options.brief && table.is_empty() {
        return Ok(());
    }
    if !options.brief {
        writeln!(
            out,
            "{changes}; growth is relative to the earlier cost, \"of total\" to the earlier total; both are means \
             without noise that all frames share"
        )?;
        writeln!(
            out,
            "95% is the interval of the change; a step stays, a passed change disappeared again, a drift grew gradually\n"
        )?;
    }
    let costs: Vec<_> = table.lead_costs().into_iter().map(|costs| (costs, table.format(&costs))).collect();
    let [(costs, format)] = &costs[..] else { return Ok(()) };
    // A brief text has the numbers, and the build of the change.
    let has_details = !options.brief;
    let mut head = heads("", true, ["before", "after", "change"], has_details);
    let names = ["95%", "kind", "since", "between", "until", "frame"];
    let is_kept = |name: &&str| has_details || ["kind", "since", "frame"].contains(name);
    head.extend(names.into_iter().filter(is_kept).map(str::to_owned));
    grid(out, options, &head, |push| {
        (0..table.len()).try_for_each(|row| {
            let total = has_details.then(|| table.total_of(costs.cost, row));
            let mut cells = change_cells(*format, costs.pair(row), total);
            if has_details {
                let [low, high] = ["delta_low", "delta_high"].map(|end| signed(table.values(end)[row], format.delta));
                cells.push(format!("{low}..{high}").into());
            }
            let (earliest, latest) = (table.text_of("earliest", row), table.text_of("latest", row));
            let between = if earliest == latest { "-".to_owned() } else { format!("{earliest}..{latest}") };
            cells.push(table.text_of("kind", row).into());
            let builds = [table.build("since", row), between, table.build("until", row)];
            cells.extend(builds.into_iter().take(if has_details { 3 } else { 1 }).map(TextCell::from));
            cells.push(table.label(row).into());
            push(cells)
        })
    })?;
    if !is_first {
        write_causes(table, out, options.brief, "\n", "")?;
    }
    Ok(())
}

/// Writes the explanations of changes with the compared builds, between `before` and `after`. They are the answers of
/// `explain` for these builds, so they also contain rewrites and moved cost, which belong to no row.
fn write_causes(table: &Table, out: &mut dyn Write, is_brief: bool, before: &str, after: &str) -> io::Result<()> {
    for (i, explained) in table.shown_explanations().enumerate() {
        let before = if i == 0 { before } else { "\n" };
        let lines = if is_brief { &explained.brief } else { &explained.lines };
        writeln!(out, "{before}explain: {}: {}", sanitize(&explained.compared), lines.join("\n"))?;
    }
    if table.shown_explanations().next().is_none() { Ok(()) } else { write!(out, "{after}") }
}
