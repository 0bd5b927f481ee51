//! Charts for notebooks, in Vega-Lite 6: the rows of a table as bars, a series as the timelines of its frames.
//!
//! A chart is a JSON object that says what to draw, with the data in it. Values are in the axis's unit; names are data
//! only, never part of an expression, and harmless.
//!
//! Charts are made here and drawn elsewhere: a specification has our units, order and words, and whoever has altair
//! changes it.

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
use pprofdiff::series::{Series, ShiftKind};
use pprofdiff::text::sanitize;
use pprofdiff::top::SIGNIFICANT;
use pprofdiff::units::ColumnUnit;
use pprofdiff::{Error, Result, Sort};

const SCHEMA: &str = "https://vega.github.io/schema/vega-lite/v6.json";

/// What is no more than chance, and the bars of one profile, which neither grow nor shrink.
const GREY: &str = "#9aa1ab";
const ONE: &str = "#c99a4e";
const CHANCE: &str = "no more than chance";

/// Characters of a name on an axis or in a legend, and in a tooltip.
const ON_AXIS: usize = 48;
const IN_TOOLTIP: usize = 400;
/// Pixels.
const BAR_STEP: u32 = 20;
const LINES: [u32; 2] = [640, 280];
/// From so many builds on their points would run together.
const FEW_BUILDS: usize = 60;

/// A value in the unit of an axis.
fn scaled(value: f64, unit: ColumnUnit) -> Value {
    unit.scale().map_or(value, |(_, of)| value / of).into()
}

/// `flat (s)`; what no unit is known of has the name that the profile gives it.
fn axis_title(what: &str, unit: ColumnUnit, own: &str) -> String {
    let unit = unit.scale().map_or_else(|| sanitize(own).into_owned(), |(symbol, _)| symbol.to_owned());
    if unit.is_empty() { what.to_owned() } else { format!("{what} ({unit})") }
}

/// Names for an axis: short, and no two the same, so that each stands for itself.
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

/// The chart's title, and small lines below it.
fn title(text: &str, below: Vec<String>) -> Value {
    let line = |text: &str| sanitize(text).into_owned();
    let below: Vec<String> = below.iter().map(|text| line(text)).collect();
    json!({"text": line(text), "subtitle": below, "anchor": "start", "limit": LINES[0]})
}

/// What a series is of, in lines, and the last of them.
fn lines_of(header: &str, last: String) -> Vec<String> {
    header.split("; ").map(str::to_owned).chain([last]).collect()
}

impl Table {
    /// The first `n` rows as a bar chart, in the order of the table: of two sides how much each changed, of one profile what
    /// it costs. Of several sample types, beside each other. As JSON; the data are in it.
    ///
    /// # Errors
    /// The values of a series, which are no bars: [`series_chart`] shows their timelines.
    pub fn to_chart(&self, n: usize) -> Result<String> {
        if self.builds.is_some() && self.costs().iter().all(|costs| costs.delta.is_none()) {
            return Err(Error::query("the values of a series are drawn by the plot() of the series, as courses"));
        }
        let shown = self.take(&(0..n.min(self.len())).collect::<Vec<_>>());
        let lead = shown.led().first().map(|costs| costs.cost.measured);
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
            rows += "; whiskers: where 95 of 100 such changes lie";
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

    /// The bars of one cost.
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
                // Where what is written beside a bar is not crossed out.
                let value = p.delta() as f64;
                let [low, high] = whiskers[row].unwrap_or([value; 2]);
                set("end", scaled(if value < 0.0 { low.min(value) } else { high.max(value) }, unit));
            }
            Value::from(values)
        };
        let (value, said) = if two_sided { ("delta", "growth") } else { ("value", "share") };
        let mut what = word(costs.cost.measured).to_owned();
        if !self.beside.is_empty() {
            what = format!("{} {what}", sanitize(&s.sample_type));
        }
        if two_sided {
            what += ": change";
        }
        let mut tips = vec![json!({"field": "name", "type": "nominal", "title": "name"})];
        tips.extend(same_type.iter().map(|costs| {
            let word = word(costs.cost.measured);
            json!({"field": word, "type": "nominal", "title": word})
        }));
        let axis = if is_first { json!({"title": null, "labelLimit": 420, "ticks": false}) } else { Value::Null };
        let y = json!({"field": "label", "type": "nominal", "sort": null, "axis": axis});
        // Room for what stands at the ends of bars, which may go either way.
        let scale = if two_sided { json!({"padding": 44}) } else { json!({}) };
        let x = json!({
            "field": value, "type": "quantitative", "scale": scale,
            "title": axis_title(&what, unit, &s.unit),
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
        // In the colour of labels, which follows the notebook's theme.
        layers.push(json!({
            "mark": {
                "type": "text", "style": "guide-label", "baseline": "middle",
                "align": {"expr": side("'right' : 'left'")}, "dx": {"expr": side("-4 : 4")},
            },
            "encoding": {"x": {"field": end, "type": "quantitative"}, "y": y, "text": {"field": said, "type": "nominal"}},
        }));
        let rows: Vec<Value> = (0..self.len()).map(row_of).collect();
        json!({"data": {"values": rows}, "width": 420, "height": {"step": BAR_STEP}, "layer": layers})
    }

    /// True of a row that runs do not tell from noise.
    fn is_chance(&self, row: usize) -> bool {
        match self.in_role(Role::Chance(RunStatistic::Q)).map(|c| c.cell(row)) {
            Some(Cell::Ratio(q)) => q > SIGNIFICANT,
            Some(_) => true,
            None => false,
        }
    }

    /// The ends of the intervals in which deltas lie.
    fn ends(&self) -> impl Iterator<Item = &[i64]> {
        self.columns.iter().filter_map(|column| match (column.role, &column.data) {
            (Role::DeltaEnd(_), Data::Value(ends)) => Some(ends.as_slice()),
            _ => None,
        })
    }

    /// Where a delta lies: of a lasting change at 95 %, of runs by how much that of two of them varies (its standard
    /// deviation). `None` where nothing says so.
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

/// The leaf and its callers, as many as there is room for.
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

/// The timelines of at most `n` frames over the builds, as lines, with a rule at each lasting change: of the largest lasting
/// changes, or of the frames that moved most where there are none. As JSON; the data are in it.
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
    // A frame may have changed more than once; its timeline is the same in all its rows.
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
        let (Some(kind), Some(at), i) = (row.kind, column_of(row.to), place[&row.frame]) else { continue };
        let (base, new) = (unit.format(row.value.base), unit.format(row.value.new));
        let delta = signed(row.value.delta(), deltas);
        let mut said = json!({
            "build": keys[at], "frame": legend[i], "name": shorten(&names[i], IN_TOOLTIP), "kind": kind.name(),
            "cost": format!("{base} → {new}  {delta}  {}", growth(row.value)),
        });
        if kind != ShiftKind::Drift && row.between[0] != row.between[1] {
            let ends = row.between.map(|build| column_of(build).map_or("", |column| keys[column].as_str()));
            said["between"] = format!("{} to {}", ends[0], ends[1]).into();
        }
        changes.push(said);
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
    let what = match timelines.what {
        LASTING => "the largest lasting changes",
        _ => "the frames that moved most",
    };
    json!({
        "$schema": SCHEMA,
        "title": title(
            &format!("{what}, by {cost}"),
            lines_of(&header(s, &series.builds), counted_of(timelines.rows.len(), timelines.of, timelines.what)),
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
