//! Charts for notebooks in Vega-Lite 6: the rows of a table as bars, and a series as the timelines of its frames.
//!
//! A chart is a JSON specification that contains its data. Values are in the axis's unit. Names are sanitized and only
//! used as data, never in an expression.
//!
//! pprofdiff only writes the specification, with its units, order and wording. The notebook draws it, and altair can
//! modify it.

use serde_json::{Map, Value, json};

use super::html::notes;
use super::names::{short, shorten};
use super::numbers::{counted_of, growth, share, share_text, signed, total, whole};
use super::palette::{LESS, MORE, hex};
use super::series::header;
use super::table::{Cell, CostColumns, Data, Measured, Role, RunStatistic, Table};
use super::text::inputs;
use super::timelines::{LASTING, Timelines};
use pprofdiff::random::{HashMap, HashSet};
use pprofdiff::text::sanitize;
use pprofdiff::top::SIGNIFICANT;
use pprofdiff::units::ColumnUnit;
use pprofdiff::{Error, Result, Sort};
use pprofdiff_series::{Series, ShiftKind};

const SCHEMA: &str = "https://vega.github.io/schema/vega-lite/v6.json";

/// The colour of changes within chance.
const GREY: &str = "#9aa1ab";
/// The colour of a single profile's bars, which show costs instead of changes.
const ONE: &str = "#c99a4e";
/// The name of changes within chance in the legend.
const CHANCE: &str = "no more than chance";

/// The maximum length in characters of a name on an axis or in a legend.
const ON_AXIS: usize = 48;
/// The maximum length in characters of a name in a tooltip.
const IN_TOOLTIP: usize = 400;
/// The height in pixels of a bar with the gap to the next bar.
const BAR_STEP: u32 = 20;
/// The width and height of a line chart in pixels.
const LINES: [u32; 2] = [640, 280];
/// The maximum number of builds for line charts with point marks. With more builds, the marks would overlap.
const FEW_BUILDS: usize = 60;

/// Converts a value to the unit of an axis. A value in an unknown unit is not converted.
fn scaled(value: f64, unit: ColumnUnit) -> Value {
    unit.scale().map_or(value, |(_, scale)| value / scale).into()
}

/// Formats the title of an axis, such as `flat (s)`. An unknown unit keeps its name from the profile; an empty one is
/// omitted.
fn axis_title(name: &str, unit: ColumnUnit, profile_unit: &str) -> String {
    let unit = unit.scale().map_or_else(|| sanitize(profile_unit).into_owned(), |(symbol, _)| symbol.to_owned());
    if unit.is_empty() { name.to_owned() } else { format!("{name} ({unit})") }
}

/// Returns short labels for an axis. The labels are unique, because the chart identifies rows by their labels: equal
/// short names get a number, as in `name (2)`.
fn labels(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut taken: HashSet<_> = HashSet::default();
    let label = |name: String| {
        let short = shorten(&name, ON_AXIS);
        let mut label = short.clone();
        let mut number = 1;
        while !taken.insert(label.clone()) {
            number += 1;
            label = format!("{short} ({number})");
        }
        label
    };
    names.map(label).collect()
}

/// Returns the chart's title with small lines below it.
fn title(text: &str, below: Vec<String>) -> Value {
    let line = |text: &str| sanitize(text).into_owned();
    let below: Vec<String> = below.iter().map(|text| line(text)).collect();
    json!({"text": line(text), "subtitle": below, "anchor": "start", "limit": LINES[0]})
}

/// Splits a series header into lines at `; ` and appends another line.
fn lines_of(header: &str, last: String) -> Vec<String> {
    header.split("; ").map(str::to_owned).chain([last]).collect()
}

impl Table {
    /// Returns the first `n` rows as a bar chart, in the order of the table: the changes of a diff, or the costs of a
    /// single profile. The bars show the cost that the rows are ordered by. Several sample types become panels side by
    /// side. The result is JSON and contains the data.
    ///
    /// # Errors
    /// Fails for the values of a series. [`series_chart`] shows their timelines instead.
    pub fn to_chart(&self, n: usize) -> Result<String> {
        if self.builds.is_some() && self.costs().iter().all(|costs| costs.delta.is_none()) {
            return Err(Error::query("values of a series cannot be drawn as bars; use plot() of the series"));
        }
        let shown = self.take(&(0..n.min(self.len())).collect::<Vec<_>>());
        let lead = shown.lead_costs().first().map(|costs| costs.cost.measured);
        let labels = labels((0..shown.len()).map(|row| (shown.kind.chart_label)(&shown, row, short)));
        let costs = shown.costs().into_iter().filter(|costs| Some(costs.cost.measured) == lead);
        let mut panels: Vec<Value> = costs.enumerate().map(|(i, costs)| shown.bars(&costs, &labels, i == 0)).collect();
        let mut chart = match panels.len() {
            1 => panels.remove(0),
            _ => json!({"hconcat": panels}),
        };
        chart["$schema"] = SCHEMA.into();
        chart["title"] = self.chart_title(shown.len());
        Ok(chart.to_string())
    }

    fn chart_title(&self, shown: usize) -> Value {
        let mut rows = counted_of(shown, self.rows_total, "row");
        if self.ends().next().is_some() {
            rows += "; whiskers: the 95% interval of each change";
        } else if self.in_role(Role::Chance(RunStatistic::Q)).is_some() {
            rows += "; whiskers: the standard deviation of the difference of two runs";
        }
        if let Some(builds) = &self.builds {
            return title(self.kind.name, lines_of(&header(&self.summary, builds), rows));
        }
        let s = &self.summary;
        let sides = match &s.base {
            Some(base) => format!("{} → {}", inputs(base, s.sum), inputs(&s.new, s.sum)),
            None => inputs(&s.new, s.sum),
        };
        let totals: Vec<String> =
            self.sample_types().iter().map(|s| format!("{}: {}", s.sample_type, total(s, "→"))).collect();
        let mut below = vec![sides];
        below.extend(notes(s));
        below.push(rows);
        title(&totals.join("; "), below)
    }

    /// Returns the bars of one cost. Only the first panel has row labels, which apply to all panels.
    fn bars(&self, costs: &CostColumns<'_>, labels: &[String], is_first: bool) -> Value {
        let (format, two_sided) = (self.format(costs), costs.delta.is_some());
        let s = self.sample_type(costs.cost.sample_type);
        let unit = if two_sided { format.delta } else { format.sides };
        let same_type: Vec<CostColumns<'_>> =
            self.costs().into_iter().filter(|c| c.cost.sample_type == costs.cost.sample_type).collect();
        let word = |measured: Measured| if measured == Measured::Weight { "cost" } else { measured.name() };
        let whiskers: Vec<_> = (0..self.len()).map(|row| self.whisker(costs, row)).collect();
        let has_whiskers = whiskers.iter().any(Option::is_some);
        let row_of = |row: usize| {
            let (p, mut values) = (costs.pair(row), Map::new());
            let mut set = |name: &str, value: Value| drop(values.insert(name.to_owned(), value));
            set("label", labels[row].as_str().into());
            set("name", shorten(&(self.kind.chart_label)(self, row, |name| name), IN_TOOLTIP).into());
            if two_sided {
                set("base", scaled(p.base as f64, unit));
                set("new", scaled(p.new as f64, unit));
                set("delta", scaled(p.delta() as f64, unit));
                set("growth", growth(p).into());
                set("change", if self.is_chance(row) { CHANCE } else { change(p.delta()) }.into());
            } else {
                set("value", scaled(p.new as f64, unit));
                set("share", share_text(share(p.new, whole(s)), false).into());
            }
            for costs in &same_type {
                let total = self.total_of(costs.cost, row);
                set(word(costs.cost.measured), self.format(costs).words(costs.pair(row), total, "→").into());
            }
            if let Some([low, high]) = whiskers[row] {
                set("low", scaled(low, unit));
                set("high", scaled(high, unit));
            }
            if has_whiskers {
                // The end of the bar or whisker, so that the text next to it does not overlap the whisker.
                let value = p.delta() as f64;
                let [low, high] = whiskers[row].unwrap_or([value; 2]);
                set("end", scaled(if value < 0.0 { low.min(value) } else { high.max(value) }, unit));
            }
            Value::from(values)
        };
        let (value, text_field) = if two_sided { ("delta", "growth") } else { ("value", "share") };
        let mut axis_name = word(costs.cost.measured).to_owned();
        if !self.beside.is_empty() {
            axis_name = format!("{} {axis_name}", sanitize(&s.sample_type));
        }
        if two_sided {
            axis_name += ": change";
        }
        let mut tips = vec![json!({"field": "name", "type": "nominal", "title": "name"})];
        tips.extend(same_type.iter().map(|costs| {
            let word = word(costs.cost.measured);
            json!({"field": word, "type": "nominal", "title": word})
        }));
        let axis = if is_first { json!({"title": null, "labelLimit": 420, "ticks": false}) } else { Value::Null };
        let y = json!({"field": "label", "type": "nominal", "sort": null, "axis": axis});
        // Leave room for the text at the ends of bars, on either side.
        let scale = if two_sided { json!({"padding": 44}) } else { json!({}) };
        let x = json!({
            "field": value, "type": "quantitative", "scale": scale,
            "title": axis_title(&axis_name, unit, &s.unit),
            "axis": {"gridColor": {"condition": {"test": "datum.value === 0", "value": "#808080"}, "value": "#80808040"}},
        });
        let has_chance = two_sided && self.in_role(Role::Chance(RunStatistic::Q)).is_some();
        let colour = match two_sided {
            true => json!({
                "field": "change", "type": "nominal", "title": null,
                "scale": {"domain": ["less", "more", CHANCE], "range": [hex(LESS.area.light), hex(MORE.area.light), GREY]},
                "legend": if has_chance { json!({"orient": "bottom"}) } else { Value::Null },
            }),
            false => json!({"value": ONE}),
        };
        let mut layers = vec![json!({"mark": "bar", "encoding": {"x": x, "y": y, "color": colour, "tooltip": tips}})];
        if has_whiskers {
            layers.push(json!({
                "transform": [{"filter": "isValid(datum.low)"}],
                "mark": {"type": "rule", "strokeWidth": 1.5, "color": "#808080"},
                "encoding": {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}, "y": y},
            }));
        }
        let side = |either: &str| format!("datum.{value} < 0 ? {either}");
        let end = if has_whiskers { "end" } else { value };
        // The style of labels follows the notebook's theme, including its colour.
        layers.push(json!({
            "mark": {
                "type": "text", "style": "guide-label", "baseline": "middle",
                "align": {"expr": side("'right' : 'left'")}, "dx": {"expr": side("-4 : 4")},
            },
            "encoding": {"x": {"field": end, "type": "quantitative"}, "y": y, "text": {"field": text_field, "type": "nominal"}},
        }));
        let rows: Vec<Value> = (0..self.len()).map(row_of).collect();
        json!({"data": {"values": rows}, "width": 420, "height": {"step": BAR_STEP}, "layer": layers})
    }

    /// Returns true if the table has statistics of runs, and they cannot distinguish the row's change from noise or the
    /// row has none.
    fn is_chance(&self, row: usize) -> bool {
        match self.in_role(Role::Chance(RunStatistic::Q)).map(|c| c.cell(row)) {
            Some(Cell::Ratio(q)) => q > SIGNIFICANT,
            Some(_) => true,
            None => false,
        }
    }

    /// Returns the columns with the ends of the deltas' confidence intervals, the lower end first.
    fn ends(&self) -> impl Iterator<Item = &[i64]> {
        self.columns.iter().filter_map(|column| match (column.role, &column.data) {
            (Role::DeltaEnd(_), Data::Value(ends)) => Some(ends.as_slice()),
            _ => None,
        })
    }

    /// Returns the ends of a row's whisker: the 95% interval of a lasting change, or, for runs, the change plus and
    /// minus one standard deviation of the difference of two runs. Returns `None` if the row has neither an interval
    /// nor the standard deviations of both sides.
    fn whisker(&self, costs: &CostColumns<'_>, row: usize) -> Option<[f64; 2]> {
        if let [Some(low), Some(high)] = [self.ends().next(), self.ends().nth(1)] {
            return Some([low, high].map(|end| end[row] as f64));
        }
        let sd = |statistic: RunStatistic| match self.in_role(Role::Chance(statistic))?.cell(row) {
            Cell::Ratio(sd) => Some(sd),
            _ => None,
        };
        let (both, delta) = (sd(RunStatistic::BaseSd)?.hypot(sd(RunStatistic::NewSd)?), costs.pair(row).delta() as f64);
        Some([delta - both, delta + both])
    }
}

/// Returns the name of a stack: the leaf, preceded by its nearest callers as long as their names fit about [`ON_AXIS`]
/// bytes. `…` replaces the other callers. Empty for a table without stacks.
pub(crate) fn stack_name(table: &Table, row: usize, name: fn(&str) -> &str) -> String {
    let Some(Data::Lists(lists)) = table.column("frames").map(|c| &c.data) else { return String::new() };
    let (mut stack, mut rest) = (String::new(), lists.numbers(row).len());
    for frame in lists.get(row).rev() {
        let frame = shorten(name(frame), IN_TOOLTIP);
        if !stack.is_empty() && stack.len() + frame.len() > ON_AXIS {
            break;
        }
        stack = if stack.is_empty() { frame } else { format!("{frame} › {stack}") };
        rest -= 1;
    }
    if rest > 0 { format!("… › {stack}") } else { stack }
}

fn change(delta: i64) -> &'static str {
    if delta < 0 { "less" } else { "more" }
}

/// Returns a line chart of up to `n` frames over the builds, with a rule at each lasting change. It shows the frames
/// with the largest lasting changes, or, if nothing changed lastingly, the frames that moved most. The result is JSON
/// and contains the data.
pub fn series_chart(series: &Series, sort: Sort, n: usize) -> String {
    let mut timelines = Timelines::new(series, series.is_history(), sort, n);
    if timelines.rows.is_empty() {
        timelines = Timelines::new(series, false, sort, n);
    }
    let s = &timelines.summary;
    let unit = ColumnUnit::for_values(&s.unit, timelines.rows.iter().flat_map(|row| row.values.iter().copied()));
    let deltas = ColumnUnit::for_values(&s.unit, timelines.rows.iter().map(|row| row.value.delta()));
    let builds: Vec<usize> = series.values().map(|(build, _)| build).collect();
    let keys = labels(series.builds.loaded().map(|b| b.key.clone()));
    // A frame can have several changes, but its timeline is drawn once.
    let (mut place, mut lines) = (HashMap::<_, _>::default(), Vec::new());
    for row in &timelines.rows {
        place.entry(row.frame).or_insert_with(|| {
            lines.push(row);
            lines.len() - 1
        });
    }
    let names: Vec<String> = lines.iter().map(|row| series.frames.label(row.frame)).collect();
    let legend = labels(names.iter().map(|name| short(name).to_owned()));
    let (mut points, mut changes) = (Vec::new(), Vec::new());
    for (i, row) in lines.iter().enumerate() {
        for (column, &value) in row.values.iter().enumerate() {
            points.push(json!({
                "build": keys[column], "frame": legend[i], "name": shorten(&names[i], IN_TOOLTIP),
                "value": scaled(value as f64, unit), "cost": unit.format(value),
            }));
        }
    }
    let column_of = |build: usize| builds.iter().position(|&b| b == build);
    for row in &timelines.rows {
        let (Some(kind), Some(column), i) = (row.kind, column_of(row.to), place[&row.frame]) else { continue };
        let (base, new) = (unit.format(row.value.base), unit.format(row.value.new));
        let delta = signed(row.value.delta(), deltas);
        let mut change = json!({
            "build": keys[column], "frame": legend[i], "name": shorten(&names[i], IN_TOOLTIP), "kind": kind.name(),
            "cost": format!("{base} → {new}  {delta}  {}", growth(row.value)),
        });
        if kind != ShiftKind::Drift && row.between[0] != row.between[1] {
            let ends = row.between.map(|build| column_of(build).map_or("", |column| keys[column].as_str()));
            change["between"] = format!("{} to {}", ends[0], ends[1]).into();
        }
        changes.push(change);
    }
    let tips = |fields: &[&str]| -> Vec<Value> {
        fields.iter().map(|field| json!({"field": field, "type": "nominal"})).collect()
    };
    let cost = if sort == Sort::Flat { "flat" } else { "cum" };
    let x = json!({
        "field": "build", "type": "ordinal", "sort": null, "title": "build", "scale": {"domain": keys},
        "axis": {"labelOverlap": true, "labelAngle": -40},
    });
    let colour = json!({
        "field": "frame", "type": "nominal", "title": null, "sort": null, "scale": {"domain": legend},
        "legend": {"orient": "bottom", "direction": "vertical", "labelLimit": LINES[0], "symbolType": "stroke"},
    });
    let subject = match timelines.row_noun {
        LASTING => "the largest lasting changes",
        _ => "the frames that moved most",
    };
    json!({
        "$schema": SCHEMA,
        "title": title(
            &format!("{subject}, by {cost}"),
            lines_of(&header(s, &series.builds), counted_of(timelines.rows.len(), timelines.rows_total, timelines.row_noun)),
        ),
        "width": LINES[0],
        "height": LINES[1],
        "layer": [
            {
                "data": {"values": changes},
                "mark": {"type": "rule", "strokeDash": [4, 3], "strokeWidth": 2},
                "encoding": {"x": x, "color": colour, "tooltip": tips(&["build", "name", "kind", "cost", "between"])},
            },
            {
                "data": {"values": points},
                "mark": {"type": "line", "point": builds.len() <= FEW_BUILDS},
                "encoding": {
                    "x": x,
                    "y": {"field": "value", "type": "quantitative", "title": axis_title(cost, unit, &s.unit)},
                    "color": colour,
                    "tooltip": tips(&["build", "name", "cost"]),
                },
            },
        ],
    })
    .to_string()
}
