//! Tables for people: one unit for all numbers, signed percentages of the base's total.
//!
//! Colour (`palette`) is the caller's decision; only a terminal should get it.

use std::collections::HashMap;
use std::io::{self, Write};

use crate::format::{Format, rows, unsupported};
use crate::listing::listing_text;
use crate::report::Report;
use crate::request::Ask;
use crate::table::{Cell, Kind, Table};
use crate::{palette, percent_of_base};
use pprofdiff::Profile;
use pprofdiff::harmless;
use pprofdiff::units::{self, ReportUnit};
use pprofdiff::{Diff, Normalize, Pair, Side, Summary};

pub(crate) const FORMAT: Format = Format {
    name: "text",
    extensions: &["txt"],
    about: "for people",
    binary: false,
    limit: Some(20),
    warns: true,
    shows: |request| match request.ask {
        Ask::List { .. } | Ask::Info => Some(request.clone()),
        _ => rows(request),
    },
    write: |report, out, style| match report {
        Report::Listing(listing) => listing_text(listing, out, style.text()),
        Report::Traces(table) => table.write_traces(out, style.text()),
        Report::Info(diff) => info(diff, out),
        _ => report.table().ok_or_else(unsupported)?.write_text(out, style.text()),
    },
};

/// How text is written.
#[derive(Debug, Clone, Copy, Default)]
pub struct TextOptions {
    /// Colour deltas with ANSI escapes.
    pub color: bool,
}

/// A text cell that may be coloured by the sign of what it shows.
pub(crate) struct Shown {
    pub text: String,
    pub sign: i64,
}

impl From<String> for Shown {
    fn from(text: String) -> Shown {
        Shown { text, sign: 0 }
    }
}

impl From<&str> for Shown {
    fn from(text: &str) -> Shown {
        text.to_owned().into()
    }
}

/// Formats the values of one table.
struct Numbers<'a> {
    unit: ReportUnit,
    summary: &'a Summary,
}

impl Numbers<'_> {
    fn value(&self, v: i64) -> Shown {
        self.unit.format(v).into()
    }

    fn delta(&self, v: i64) -> Shown {
        let text = self.unit.format(v);
        Shown { text: if v > 0 { format!("+{text}") } else { text }, sign: v.signum() }
    }

    fn percent(&self, v: i64) -> Shown {
        let two_sided = self.summary.base.is_some();
        let text = match percent_of_base(v, self.summary) {
            Some(p) if two_sided => signed_percent(p),
            Some(p) => format!("{p:.2}%"),
            None => "-".to_owned(),
        };
        Shown { text, sign: if two_sided { v.signum() } else { 0 } }
    }

    /// The cells of one value: base, new, delta and percent; or value and percent.
    fn pair(&self, p: Pair) -> Vec<Shown> {
        if self.summary.base.is_some() {
            vec![self.value(p.base), self.value(p.new), self.delta(p.delta()), self.percent(p.delta())]
        } else {
            vec![self.value(p.new), self.percent(p.new)]
        }
    }
}

/// `+12.34%`; `+0.00%` would hide the sign's reason, so zero has none.
pub(crate) fn signed_percent(p: f64) -> String {
    if p == 0.0 { "0%".to_owned() } else { format!("{p:+.2}%") }
}

impl Table {
    /// Writes the table for people: header, then the rows in columns.
    ///
    /// # Errors
    /// The writer's.
    pub fn write_text(&self, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
        if let Some(builds) = &self.builds {
            return self.write_builds(builds, out, options);
        }
        header(out, &self.summary)?;
        let what = match self.kind {
            Kind::Top | Kind::Diff => "frames",
            Kind::Peek | Kind::Tree => "edges",
            Kind::Stacks => "stacks",
            Kind::Labels => "label values",
            Kind::Values | Kind::Steps | Kind::Movers => "rows",
        };
        let shown = if self.len() < self.rows_total {
            format!("{} of {}", self.len(), self.rows_total)
        } else {
            self.rows_total.to_string()
        };
        let of = if self.summary.base.is_some() { "; percentages are of the base's total" } else { "" };
        writeln!(out, "{shown} {what}{of}\n")?;
        self.write_rows(out, options)
    }

    /// The rows alone.
    pub(crate) fn write_rows(&self, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
        let numbers = Numbers { unit: self.report_unit(), summary: &self.summary };
        match self.kind {
            Kind::Top | Kind::Diff => self.write_top(out, options, &numbers),
            Kind::Peek | Kind::Tree => self.write_edges(out, options, &numbers),
            Kind::Stacks => self.write_stacks(out, options, &numbers),
            Kind::Labels => self.write_labels(out, options, &numbers),
            // Tables of builds were written above.
            Kind::Values | Kind::Steps | Kind::Movers => Ok(()),
        }
    }

    /// The unit for all numbers of this table.
    pub(crate) fn report_unit(&self) -> ReportUnit {
        let names: &[&str] = match self.kind {
            Kind::Top | Kind::Values => &["flat", "cum"],
            Kind::Diff | Kind::Steps | Kind::Movers => &["flat_delta", "cum_delta"],
            _ if self.summary.base.is_some() => &["delta"],
            _ => &["weight"],
        };
        let columns: Vec<&[i64]> = names.iter().map(|name| self.values(name)).collect();
        // As pprof: a row counts by its flat value, or if that is zero by its cum value.
        let of_row = |row: usize| columns.iter().map(|c| c[row]).find(|&v| v != 0).unwrap_or(0);
        let total = self.summary.total;
        ReportUnit::choose(&self.summary.unit, (0..self.len()).map(of_row), total.base.max(total.new))
    }

    /// A row's value of both sides, from columns named in the manner of `flat`, `flat_base`, `flat_new`.
    pub(crate) fn pair(&self, one: &str, base: &str, new: &str, row: usize) -> Pair {
        let get = |name: &str| self.values(name).get(row).copied();
        match get(one) {
            Some(new) => Pair { base: 0, new },
            None => Pair { base: get(base).unwrap_or(0), new: get(new).unwrap_or(0) },
        }
    }

    pub(crate) fn weight(&self, row: usize) -> Pair {
        self.pair("weight", "base", "new", row)
    }

    /// A row of the table of frames in one line: `name file:line`, as pprof.
    pub fn label(&self, row: usize) -> String {
        let text = |name: &str| self.texts(name).and_then(|t| t.get(row)).unwrap_or_default();
        let number = |name: &str| match self.column(name).map(|c| c.cell(row)) {
            Some(Cell::Int(v)) => Some(v),
            _ => None,
        };
        let (name, file) = (text("name"), text("file"));
        let mut label = number("address").map(|a| format!("{a:016x} ")).unwrap_or_default();
        label.push_str(name);
        if !file.is_empty() && file != name {
            label.push_str(&format!(" {file}"));
        }
        if let Some(line) = number("line") {
            label.push_str(&format!(":{line}"));
        }
        label
    }

    fn write_top(&self, out: &mut dyn Write, options: TextOptions, numbers: &Numbers<'_>) -> io::Result<()> {
        let two_sided = self.summary.base.is_some();
        let head: &[&str] = if two_sided {
            &["flat: base", "new", "delta", "%", "cum: base", "new", "delta", "%", "status", "frame"]
        } else {
            &["flat", "flat%", "cum", "cum%", "frame"]
        };
        grid(out, options, head, |push| {
            (0..self.len()).try_for_each(|row| {
                let mut cells = numbers.pair(self.pair("flat", "flat_base", "flat_new", row));
                cells.extend(numbers.pair(self.pair("cum", "cum_base", "cum_new", row)));
                if let Some(status) = self.texts("status") {
                    cells.push(status.get(row).unwrap_or_default().into());
                }
                cells.push(self.label(row).into());
                push(cells)
            })
        })
    }

    fn write_labels(&self, out: &mut dyn Write, options: TextOptions, numbers: &Numbers<'_>) -> io::Result<()> {
        let two_sided = self.summary.base.is_some();
        let head: &[&str] =
            if two_sided { &["base", "new", "delta", "%", "status", "label"] } else { &["weight", "%", "label"] };
        let text = |name: &str, row: usize| self.texts(name).and_then(|t| t.get(row));
        grid(out, options, head, |push| {
            (0..self.len()).try_for_each(|row| {
                let mut cells = numbers.pair(self.weight(row));
                if two_sided {
                    cells.push(text("status", row).unwrap_or_default().into());
                }
                let value = text("value", row).unwrap_or_default();
                let value = match (value.parse(), text("unit", row)) {
                    (Ok(number), Some(unit)) => units::show(number, unit),
                    _ => value.to_owned(),
                };
                cells.push(format!("{} = {value}", text("key", row).unwrap_or_default()).into());
                push(cells)
            })
        })
    }

    fn write_stacks(&self, out: &mut dyn Write, options: TextOptions, numbers: &Numbers<'_>) -> io::Result<()> {
        let two_sided = self.summary.base.is_some();
        for row in 0..self.len() {
            let cells = numbers.pair(self.weight(row));
            let cells: Vec<String> = cells.iter().map(|c| paint(&c.text, c.sign, options)).collect();
            let status = self.texts("status").and_then(|t| t.get(row)).unwrap_or_default();
            if two_sided {
                writeln!(out, "{} -> {}  {} ({})  {status}", cells[0], cells[1], cells[2], cells[3])?;
            } else {
                writeln!(out, "{} ({})", cells[0], cells[1])?;
            }
            for column in ["labels", "frames"] {
                if let Some(Cell::List(lists, row)) = self.column(column).map(|c| c.cell(row)) {
                    let indent = if column == "labels" { "  # " } else { "    " };
                    lists.get(row).try_for_each(|text| writeln!(out, "{indent}{}", harmless(text)))?;
                }
            }
        }
        Ok(())
    }

    /// Blocks as pprof's: labels, then the value and the frames from the leaf.
    fn write_traces(&self, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
        const RULER: &str = "-----------+-------------------------------------------------------";
        let numbers = Numbers { unit: self.report_unit(), summary: &self.summary };
        header(out, &self.summary)?;
        let two_sided = self.summary.base.is_some();
        if two_sided {
            writeln!(out, "{:>10} {:>10} {:>11}", "base", "new", "delta")?;
        }
        for row in 0..self.len() {
            writeln!(out, "{RULER}")?;
            let list = |column: &str| match self.column(column).map(|c| c.cell(row)) {
                Some(Cell::List(lists, row)) => Some(lists.get(row)),
                _ => None,
            };
            for label in list("labels").into_iter().flatten() {
                // As a whole: what a CI runner takes for a command may have a `=` in it.
                let label = harmless(label);
                let (key, value) = label.split_once('=').unwrap_or((&label, ""));
                writeln!(out, "{key:>10}:  {value}")?;
            }
            let weight = self.weight(row);
            let value = match two_sided {
                true => {
                    let (base, new) = (numbers.value(weight.base).text, numbers.value(weight.new).text);
                    let delta = numbers.delta(weight.delta());
                    // Padded first: what colours a text has no width.
                    format!("{base:>10} {new:>10} {}", paint(&format!("{:>11}", delta.text), delta.sign, options))
                }
                false => format!("{:>10}", numbers.value(weight.new).text),
            };
            let frames: Vec<&str> = list("frames").into_iter().flatten().collect();
            let indent = if two_sided { 33 } else { 10 };
            for (i, frame) in frames.iter().rev().enumerate() {
                match i {
                    0 => writeln!(out, "{value}   {}", harmless(frame))?,
                    _ => writeln!(out, "{:indent$}   {}", "", harmless(frame))?,
                }
            }
        }
        writeln!(out, "{RULER}")?;
        if self.len() < self.rows_total {
            writeln!(out, "{} of {} stacks", self.len(), self.rows_total)?;
        }
        Ok(())
    }

    /// Blocks in pprof's manner: the callers, the node with its flat and cum, the callees.
    fn write_edges(&self, out: &mut dyn Write, options: TextOptions, numbers: &Numbers<'_>) -> io::Result<()> {
        let two_sided = self.summary.base.is_some();
        let head: &[&str] =
            if two_sided { &["base", "new", "delta", "%", "  frame"] } else { &["weight", "%", "  frame"] };
        let mut rows_of: HashMap<u32, Vec<usize>> = HashMap::new();
        for (row, &node) in self.nodes.of_row.iter().enumerate() {
            rows_of.entry(node).or_default().push(row);
        }
        let text = |column: &str, row: usize| self.texts(column).and_then(|t| t.get(row)).unwrap_or_default();
        grid(out, options, head, |push| {
            for (i, &number) in self.nodes.shown.iter().enumerate() {
                if i > 0 {
                    push(Vec::new())?;
                }
                let rows = rows_of.get(&number).map_or(&[][..], Vec::as_slice);
                let edges = |relation: &'static str, word: &'static str| {
                    rows.iter().filter(move |&&row| text("relation", row) == relation).map(move |&row| {
                        let mut cells = numbers.pair(self.weight(row));
                        cells.push(format!("    {word} {}", text("other", row)).into());
                        cells
                    })
                };
                edges("caller", "from").try_for_each(&mut *push)?;
                let node = &self.nodes.all[number as usize];
                let label = self.nodes.labels.get(number as usize).unwrap_or_default();
                let flat = numbers.pair(node.flat);
                let own = if two_sided {
                    format!("flat {} -> {}, {}", flat[0].text, flat[1].text, flat[2].text)
                } else {
                    format!("flat {}", flat[0].text)
                };
                let mut cells = numbers.pair(node.cum);
                cells.push(format!("  {label}   ({own})").into());
                push(cells)?;
                edges("callee", "calls").try_for_each(&mut *push)?;
            }
            Ok(())
        })
    }
}

/// The lines above every table.
pub(crate) fn header(out: &mut dyn Write, s: &Summary) -> io::Result<()> {
    if let Some(base) = &s.base {
        writeln!(out, "base  {}", side(base))?;
        writeln!(out, "new   {}", side(&s.new))?;
    } else {
        writeln!(out, "{}", side(&s.new))?;
    }
    let number = |v: i64| units::show(v, &s.unit);
    let total = s.total;
    let (kind, unit) = (harmless(&s.sample_type), harmless(&s.unit));
    match (&s.base, percent_of_base(total.delta(), s)) {
        (None, _) => writeln!(out, "{kind} ({unit}): {}", number(total.new))?,
        (Some(_), percent) => {
            let sign = if total.delta() > 0 { "+" } else { "" };
            let percent = percent.map_or_else(|| "the base is zero".to_owned(), signed_percent);
            let (base, new, delta) = (number(total.base), number(total.new), number(total.delta()));
            writeln!(out, "{kind} ({unit}): {base} -> {new}, {sign}{delta} ({percent})")?;
        }
    }
    if s.normalize != Normalize::None {
        writeln!(out, "normalized by {}: new x {}", s.normalize.mode(), s.factor)?;
    }
    settings(out, s)
}

/// The lines of a header that say what a user set, and should know.
pub(crate) fn settings(out: &mut dyn Write, s: &Summary) -> io::Result<()> {
    let mut settings: Vec<String> = s.filters.iter().map(|(name, v)| format!("{name}={v}")).collect();
    if s.granularity != pprofdiff::Granularity::Functions {
        settings.insert(0, format!("granularity={}", s.granularity.name()));
    }
    if s.no_inlines {
        settings.push("noinlines".to_owned());
    }
    if !s.trim_path.is_empty() {
        settings.push(format!("trim_path={}", s.trim_path.join(":")));
    }
    if !settings.is_empty() {
        writeln!(out, "{}", harmless(&settings.join("  ")))?;
    }
    s.warnings.iter().try_for_each(|w| writeln!(out, "warning: {}", harmless(w)))
}

fn side(s: &Side) -> String {
    let mut text = list_of_inputs(&s.paths);
    text.push_str(&format!("  {} samples", s.samples));
    if s.duration_nanos != 0 {
        text.push_str(&format!(" in {}", units::show(s.duration_nanos, "nanoseconds")));
    }
    text
}

/// The names of a side's inputs, cut short where there are many.
pub(crate) fn list_of_inputs(paths: &[String]) -> String {
    let list = match paths {
        [one] => one.clone(),
        [first, .., last] if paths.len() > 3 => format!("{first} ... {last} ({} files)", paths.len()),
        _ => paths.join(" + "),
    };
    harmless(&list).into_owned()
}

fn paint(text: &str, sign: i64, options: TextOptions) -> String {
    let text = harmless(text);
    if options.color { palette::paint(&text, sign) } else { text.into_owned() }
}

/// Writes cells in columns, all right-aligned but the last. `rows` makes all rows and is asked twice, for their widths and
/// to be written, so that none is held: a row of text can be a hundred times what it is made of.
pub(crate) fn grid(
    out: &mut dyn Write,
    options: TextOptions,
    head: &[&str],
    mut rows: impl FnMut(&mut dyn FnMut(Vec<Shown>) -> io::Result<()>) -> io::Result<()>,
) -> io::Result<()> {
    let width = |cell: &Shown| cell.text.chars().count();
    let head = || head.iter().map(|&h| Shown::from(h)).collect::<Vec<_>>();
    let mut widths: Vec<usize> = head().iter().map(width).collect();
    widths.pop();
    rows(&mut |row| {
        widths.iter_mut().zip(&row).for_each(|(widest, cell)| *widest = width(cell).max(*widest));
        Ok(())
    })?;
    let mut line = |row: Vec<Shown>| {
        for (i, cell) in row.iter().enumerate() {
            let pad = widths.get(i).map_or(0, |w| w - width(cell));
            let gap = if i == 0 { "" } else { "  " };
            write!(out, "{gap}{:pad$}{}", "", paint(&cell.text, cell.sign, options))?;
        }
        writeln!(out)
    };
    line(head())?;
    rows(&mut line)
}

/// What a profile, or each profile of a diff, consists of; for people.
///
/// # Errors
/// The writer's.
pub fn info(diff: &Diff, out: &mut dyn Write) -> io::Result<()> {
    for (i, (side, p)) in diff.profiles().enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        profile_info(side, p, out)?;
    }
    Ok(())
}

fn profile_info(side: &str, p: &Profile, out: &mut dyn Write) -> io::Result<()> {
    let duration = |nanos: i64| units::show(nanos, "nanoseconds");
    let note = if p.is_diff() { "  (a written diff: totals are of both sides)" } else { "" };
    writeln!(
        out,
        "{}{}{note}",
        if side == "profile" { String::new() } else { format!("{side:<6}") },
        harmless(p.name())
    )?;
    let default = p.default_sample_type();
    for (i, (kind, unit)) in p.sample_types().into_iter().enumerate() {
        let total = units::show(p.total(i).unwrap_or(0), &unit);
        let note = if Some(i) == default { "  (default)" } else { "" };
        writeln!(out, "  sample type  {} ({}): {total}{note}", harmless(&kind), harmless(&unit))?;
    }
    writeln!(out, "  samples      {}", p.n_samples())?;
    writeln!(out, "  locations    {}", p.n_locations())?;
    writeln!(out, "  functions    {}", p.n_functions())?;
    if p.duration_nanos() != 0 {
        writeln!(out, "  duration     {}", duration(p.duration_nanos()))?;
    }
    if let Some((kind, unit)) = p.period_type() {
        writeln!(out, "  period       {} {} of {}", p.period(), harmless(&unit), harmless(&kind))?;
    }
    if p.time_nanos() != 0
        && let Ok(time) = jiff::Timestamp::from_nanosecond(i128::from(p.time_nanos()))
    {
        writeln!(out, "  time         {time:.0}")?;
    }
    for file in p.mapping_files().into_iter().filter(|f| !f.is_empty()) {
        writeln!(out, "  mapping      {}", harmless(&file))?;
    }
    for (name, value) in
        [("documentation", p.doc_url())].into_iter().chain(p.comments().into_iter().map(|c| ("comment", c)))
    {
        if !value.is_empty() {
            writeln!(out, "  {name:<12} {}", harmless(&value))?;
        }
    }
    p.warnings().iter().try_for_each(|w| writeln!(out, "  warning: {}", harmless(w)))
}
