//! Tables as text for people. Each column has one unit. Next to a change, the text shows the row's growth and the
//! change's share of the total.
//!
//! The caller decides about colour (`palette`), which only terminals should get.

use std::io::{self, Write};

#[cfg(feature = "check")]
use crate::check::check_text;
use crate::explain::explain_text;
use crate::format::{Each, Format, Item, Style, nothing, unsupported};
use crate::listing::listing_text;
use crate::numbers::{CostFormat, counted_of, extent, growth, share, share_text, signed, total, whole};
use crate::palette;
use crate::raw::raw;
use crate::report::Report;
use crate::series::text_header;
use crate::shown::ShownColumn;
use crate::table::{Cell, Cost, CostColumns, Data, Role, RunStatistic, Table};
use crate::view::ShownBy;
use crate::view::ranking::ranking_text;
use crate::view::top::DIFF;
use crate::view::traces::write_traces;
use pprofdiff::Profile;
use pprofdiff::Sort;
use pprofdiff::sampling::Sampling;
use pprofdiff::text::sanitize;
use pprofdiff::units;
use pprofdiff::{Diff, Normalize, Pair, Side, Summary};

pub(crate) const FORMAT: Format = Format {
    name: "text",
    extensions: &["txt"],
    about: "readable text",
    binary: false,
    limit: Some(20),
    warns: true,
    leaves_out: nothing,
    shows: |request| (request.view.spec().shown_by >= ShownBy::Text).then(|| request.clone()),
    write: |report, out, style| match report {
        Report::Raw(profile, merged) => raw(profile, *merged, out),
        Report::Comments(comments) => comments.iter().try_for_each(|comment| writeln!(out, "{}", sanitize(comment))),
        Report::Listing(listing) => listing_text(listing, out, style.text()),
        Report::Traces(table) => write_traces(table, out, style.text()),
        Report::Info(diff) => info(diff, out),
        Report::Explain(explanation) => explain_text(explanation, out, style),
        Report::Ranking(ranking) => ranking_text(ranking, out, style),
        #[cfg(feature = "check")]
        Report::Check(check) => check_text(check, out, style.text()),
        _ => report.table().ok_or_else(unsupported)?.write_text(out, style.text()),
    },
    each: Some(Each { limit: Some(3), write: write_pair }),
};

/// The head of a computed column with each row's growth.
pub(crate) const GROWTH: &str = "growth";
/// The head of a computed column with the share of the total that each row's delta has, or its cost in a single
/// profile.
pub(crate) const OF_TOTAL: &str = "of total";

/// The note above a two-sided table that explains growth and share.
pub(crate) const GROWTH_LEGEND: &str = "; growth is relative to the row's base, \"of total\" to the base's total";

/// The note about p-values, for tables with runs.
const P_LEGEND: &str = "p is the probability of such a change by chance, ~ marks changes within chance";

/// The note about the words that replace a p-value.
const LEFT_OUT_LEGEND: &str = "; profiling or inlining: the frame's presence is itself random";
/// The note about standard deviations, for tables in which a side has several runs.
const SPREAD_LEGEND: &str = "± is the standard deviation of the runs; ";

/// Options of text.
#[derive(Debug, Clone, Copy, Default)]
pub struct TextOptions {
    /// Colour deltas with ANSI escapes.
    pub color: bool,
    /// Omits the names of the inputs and the legend of the columns, which the reader already knows. In tables of frames
    /// of two sides, and in listings, also omits growth and share, which follow from the other columns.
    pub brief: bool,
}

/// A cell of text, coloured by the sign of the change that it shows; 0 for no colour.
pub(crate) struct TextCell {
    pub text: String,
    pub sign: i64,
}

impl From<String> for TextCell {
    fn from(text: String) -> TextCell {
        TextCell { text, sign: 0 }
    }
}

impl From<&str> for TextCell {
    fn from(text: &str) -> TextCell {
        text.to_owned().into()
    }
}

/// Formats the cells of one cost and the heads of their columns, for a diff or for a single profile.
pub(crate) struct Cells<'a> {
    pub cost: CostFormat,
    pub summary: &'a Summary,
    /// True if growth and share of a diff are included. A single profile always has shares.
    pub full: bool,
}

impl Cells<'_> {
    /// Returns the heads of the cells: `name: base`, `new`, `delta`, and if `full`, `growth` and `of total`. For a
    /// single profile, returns the cost's name and `of total`.
    pub fn head(&self, name: &str) -> Vec<String> {
        let (both, full) = (self.summary.base.is_some(), self.full);
        heads(name, both, ["base", "new", "delta"], full)
    }

    pub fn format(&self, p: Pair) -> Vec<TextCell> {
        if self.summary.base.is_none() {
            let share = share_text(share(p.new, whole(self.summary)), false);
            return vec![self.cost.sides.format(p.new).into(), share.into()];
        }
        change_cells(self.cost, p, self.full.then(|| whole(self.summary)))
    }
}

/// Returns the heads of the columns that [`change_cells`] fills: those of a diff in the words of `sides`, and `growth`
/// and `of total` if `full`. For a single profile, returns the heads of the cost and its share.
pub(crate) fn heads(name: &str, two_sided: bool, sides: [&str; 3], full: bool) -> Vec<String> {
    if !two_sided {
        return vec![if name.is_empty() { "weight" } else { name }.to_owned(), OF_TOTAL.to_owned()];
    }
    let mut heads = sides.map(str::to_owned).to_vec();
    if !name.is_empty() {
        heads[0] = format!("{name}: {}", heads[0]);
    }
    if full {
        heads.extend([GROWTH, OF_TOTAL].map(str::to_owned));
    }
    heads
}

/// Returns the cells for both sides and the delta, and for growth and share if the total is given.
pub(crate) fn change_cells(cost: CostFormat, p: Pair, total: Option<i64>) -> Vec<TextCell> {
    let (delta, sign) = (p.delta(), p.delta().signum());
    let mut cells: Vec<TextCell> = vec![cost.sides.format(p.base).into(), cost.sides.format(p.new).into()];
    cells.push(TextCell { text: signed(delta, cost.delta), sign });
    if let Some(total) = total {
        let shown = [growth(p), share_text(share(delta, total), true)];
        cells.extend(shown.map(|text| TextCell { text, sign }));
    }
    cells
}

impl Table {
    /// Writes the table for people: a header, then the rows in columns.
    ///
    /// # Errors
    /// Fails if `out` fails.
    pub fn write_text(&self, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
        if let Some(builds) = &self.builds {
            text_header(out, &self.summary, builds)?;
            return self.write_rows(out, options);
        }
        self.write_header(out, options)?;
        let growth_legend = if self.summary.base.is_some() && !options.brief { GROWTH_LEGEND } else { "" };
        let cost = match (&self.beside[..], self.lead_costs().first()) {
            ([_, ..], Some(lead)) if !lead.cost.measured.name().is_empty() => {
                format!(" by {}", lead.cost.measured.name())
            }
            _ => String::new(),
        };
        let ratio = self.ratio_name().map_or_else(String::new, |name| format!("; ratio is {}", sanitize(&name)));
        let runs = match &self.chance_columns()[..] {
            _ if options.brief => String::new(),
            [] => String::new(),
            [_] => format!("\n{P_LEGEND}"),
            _ => format!("\n{SPREAD_LEGEND}{P_LEGEND}"),
        };
        let has_left_out = !options.brief
            && self
                .in_role(Role::LeftOut)
                .is_some_and(|c| matches!(&c.data, Data::Text(t) if t.iter().any(|t| t.is_some())));
        let left_out = if has_left_out { LEFT_OUT_LEGEND } else { "" };
        writeln!(
            out,
            "{}{cost}{growth_legend}{ratio}{runs}{left_out}\n",
            counted_of(self.len(), self.rows_total, self.kind.row)
        )?;
        self.write_rows(out, options)
    }

    /// Writes the lines above the rows: the inputs (unless the text is brief), the totals, settings and warnings.
    pub(crate) fn write_header(&self, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
        if !options.brief {
            sides(out, &self.summary)?;
        }
        self.sample_types().iter().try_for_each(|s| sample_type(out, s))?;
        settings(out, &self.summary)
    }

    /// Writes the rows alone.
    pub(crate) fn write_rows(&self, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
        (self.kind.text)(self, out, options)
    }

    /// Returns the costs of the first sample type, starting with the leading cost, which is the cost that the rows are
    /// ordered by. Only the leading cost is shown with growth and share, because a terminal is too narrow for both.
    pub(crate) fn lead_costs(&self) -> Vec<CostColumns<'_>> {
        let mut costs: Vec<_> = self.costs().into_iter().filter(|c| c.cost.sample_type == 0).collect();
        if self.sort == Sort::Cum {
            costs.reverse();
        }
        costs
    }

    /// Returns the format of a cost of the rows. All costs of one sample type have the same format, so flat and cum
    /// share one unit.
    pub(crate) fn format(&self, costs: &CostColumns<'_>) -> CostFormat {
        let summary = self.sample_type(costs.cost.sample_type);
        let all: Vec<_> = self.costs().into_iter().filter(|c| c.cost.sample_type == costs.cost.sample_type).collect();
        let pairs = all.iter().flat_map(|costs| (0..self.len()).map(|row| costs.pair(row)));
        CostFormat::for_values(summary, costs.delta.is_some(), pairs)
    }

    /// Formats a row of a table of frames in one line, like pprof: `address name file:line`, without the parts that the
    /// row lacks.
    pub fn label(&self, row: usize) -> String {
        let number = |name: &str| match self.column(name).map(|c| c.cell(row)) {
            Some(Cell::Int(v)) => Some(v),
            _ => None,
        };
        let (name, file) = (self.text_of("name", row), self.text_of("file", row));
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

    pub(crate) fn cells(&self, costs: &CostColumns<'_>, full: bool) -> Cells<'_> {
        Cells { cost: self.format(costs), summary: &self.summary, full }
    }

    /// Returns the run statistics to show: the p-value, and the standard deviation of each side whose column has
    /// values. Empty for tables without statistics.
    pub(crate) fn chance_columns(&self) -> Vec<RunStatistic> {
        let all = [RunStatistic::BaseSd, RunStatistic::NewSd, RunStatistic::P].into_iter();
        all.filter(|&statistic| {
            let column = self.in_role(Role::Chance(statistic)).map(|c| &c.data);
            matches!(column, Some(Data::Ratio(v)) if statistic == RunStatistic::P || v.iter().any(Option::is_some))
        })
        .collect()
    }

    /// Writes several sample types side by side: for each, the cost that the rows are ordered by, then the ratio.
    pub(crate) fn write_beside(&self, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
        let columns: Vec<_> = self.shown_columns().into_iter().filter(ShownColumn::is_number).collect();
        let mut head: Vec<String> = columns.iter().map(|c| self.short_head(c)).collect();
        head.push(self.kind.row.to_owned());
        grid(out, options, &head, |push| {
            (0..self.len()).try_for_each(|row| {
                let number = |c| self.number(c, row).map_or_else(|| "".into(), |(text, sign)| TextCell { text, sign });
                let mut cells: Vec<TextCell> = columns.iter().map(number).collect();
                cells.push((self.kind.row_label)(self, row).into());
                push(cells)
            })
        })
    }

    /// Returns the head of a column like [`heads`]: only the first column of a sample type has the sample type's name.
    fn short_head(&self, column: &ShownColumn<'_>) -> String {
        let two_sided = self.summary.base.is_some();
        let sample_type = |cost: Cost| self.sample_type(cost.sample_type).sample_type.as_str();
        match column.column.role {
            _ if column.is_made() => column.head.clone(),
            Role::Base(cost) => format!("{}: base", sample_type(cost)),
            Role::New(cost) if !two_sided => sample_type(cost).to_owned(),
            Role::Figure => column.head.clone(),
            Role::RatioBase(_) => "ratio: base".to_owned(),
            Role::RatioNew(_) if !two_sided => "ratio".to_owned(),
            Role::New(_) | Role::RatioNew(_) => "new".to_owned(),
            _ => "delta".to_owned(),
        }
    }
}

/// Writes one of many pairs: a line with the total, the warnings, and the rows of the pair's table. For a pair without
/// a table, only writes that it failed.
fn write_pair(item: &Item<'_>, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let Ok(table) = item.result else { return writeln!(out, "{}  failed", sanitize(item.name)) };
    let s = &table.summary;
    writeln!(out, "{}  {} {}", sanitize(item.name), sanitize(&s.sample_type), total(s, "->"))?;
    s.warnings.iter().try_for_each(|w| writeln!(out, "    warning: {}", sanitize(w)))?;
    if *table.kind != DIFF || !table.beside.is_empty() {
        return table.write_rows(out, style.text());
    }
    let costs = table.lead_costs();
    let [lead, other] = &costs[..] else { return Ok(()) };
    let (lead_format, other_format) = (table.format(lead), table.format(other));
    let names = [lead, other].map(|c| c.cost.measured.name());
    for row in 0..table.len() {
        let words = lead_format.words(lead.pair(row), whole(s), "->");
        let rest = signed(other.pair(row).delta(), other_format.delta);
        writeln!(out, "    {} {words}  {} {rest}  {}", names[0], names[1], sanitize(&table.label(row)))?;
    }
    Ok(())
}

/// Writes the header of a report with one sample type that is not a table, such as a listing.
pub(crate) fn header(out: &mut dyn Write, s: &Summary, options: TextOptions) -> io::Result<()> {
    if !options.brief {
        sides(out, s)?;
    }
    sample_type(out, s)?;
    settings(out, s)
}

fn sides(out: &mut dyn Write, s: &Summary) -> io::Result<()> {
    if let Some(base) = &s.base {
        writeln!(out, "base  {}", side(base, s.sum))?;
        writeln!(out, "new   {}", side(&s.new, s.sum))?;
    } else {
        writeln!(out, "{}", side(&s.new, s.sum))?;
    }
    Ok(())
}

fn sample_type(out: &mut dyn Write, s: &Summary) -> io::Result<()> {
    writeln!(out, "{} ({}): {}", sanitize(&s.sample_type), sanitize(&s.unit), total(s, "->"))?;
    if s.query.normalize != Normalize::None {
        writeln!(out, "normalized by {}: new x {}", s.query.normalize.mode(), s.factor)?;
    }
    Ok(())
}

/// Writes the lines of a header about the user's settings and about warnings.
pub(crate) fn settings(out: &mut dyn Write, s: &Summary) -> io::Result<()> {
    let settings = s.query.settings();
    if !settings.is_empty() {
        writeln!(out, "{}", sanitize(&settings.join("  ")))?;
    }
    s.warnings.iter().try_for_each(|w| writeln!(out, "warning: {}", sanitize(w)))
}

fn side(s: &Side, sum: bool) -> String {
    let mut text = inputs(s, sum);
    text.push_str(&format!("  {}", extent(s)));
    if s.duration_nanos != 0 {
        text.push_str(&format!(" in {}", units::show(s.duration_nanos, "nanoseconds")));
    }
    if s.paths.len() > 1 {
        text.push_str(" together");
    }
    text
}

/// Returns the names of a side's inputs, abbreviated if there are more than three, with their combination (sum or mean)
/// and the time window that was read.
pub fn inputs(side: &Side, sum: bool) -> String {
    let paths = &side.paths;
    let between = if sum { " + " } else { ", " };
    let list = match &paths[..] {
        [single] => single.clone(),
        [first, .., last] if paths.len() > 3 => format!("{first} ... {last}"),
        _ => paths.join(between),
    };
    let list = sanitize(&list);
    let mut text = match (paths.len(), sum) {
        (1, _) => list.into_owned(),
        (n, true) => format!("sum of {n}: {list}"),
        (n, false) => format!("mean of {n} runs: {list}"),
    };
    if let Some(window) = &side.window {
        text.push_str(&format!(" ({})", sanitize(window)));
    }
    text
}

/// Sanitizes a text, and colours it by the sign of a change if the options ask for colour.
pub(crate) fn paint(text: &str, sign: i64, options: TextOptions) -> String {
    let text = sanitize(text);
    if options.color { palette::paint(&text, sign) } else { text.into_owned() }
}

/// Writes cells in columns, all right-aligned except the last, below the heads. `rows` passes each row to its argument.
/// It is called twice, first to measure widths and then to write, and must produce the same rows both times. That way
/// no row is stored: the text of a row can be a hundred times larger than its data.
pub(crate) fn grid(
    out: &mut dyn Write,
    options: TextOptions,
    head: &[impl AsRef<str>],
    mut rows: impl FnMut(&mut dyn FnMut(Vec<TextCell>) -> io::Result<()>) -> io::Result<()>,
) -> io::Result<()> {
    let width = |cell: &TextCell| cell.text.chars().count();
    let head = || head.iter().map(|h| TextCell::from(h.as_ref())).collect::<Vec<_>>();
    let mut widths: Vec<usize> = head().iter().map(width).collect();
    widths.pop();
    rows(&mut |row| {
        widths.iter_mut().zip(&row).for_each(|(widest, cell)| *widest = width(cell).max(*widest));
        Ok(())
    })?;
    let mut line = |row: Vec<TextCell>| {
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

/// The maximum number of sample types of a profile whose sampling is shown. The limit bounds a quadratic cost: finding
/// the sampling of one sample type compares it with all others.
pub(crate) const MAX_SAMPLING: usize = 100;

/// Writes the metadata of a profile, or of each profile of a diff, for people.
///
/// # Errors
/// Fails if `out` fails.
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
    let note = if p.is_diff() { "  (a written diff; totals include both sides)" } else { "" };
    writeln!(
        out,
        "{}{}{note}",
        if side == "profile" { String::new() } else { format!("{side:<6}") },
        sanitize(p.name())
    )?;
    let default = p.default_sample_type();
    for (i, (kind, unit)) in p.sample_types().into_iter().enumerate() {
        let total = units::show(p.total(i).unwrap_or(0), &unit);
        let note = if Some(i) == default { "  (default)" } else { "" };
        writeln!(out, "  sample type  {} ({}): {total}{note}", sanitize(&kind), sanitize(&unit))?;
    }
    for (i, (kind, _)) in p.sample_types().into_iter().enumerate().take(MAX_SAMPLING) {
        let words = Sampling::of_profile(p, i).to_words();
        writeln!(out, "  sampling     {}: {}", sanitize(&kind), sanitize(&words))?;
    }
    writeln!(out, "  stacks       {}", p.n_samples())?;
    writeln!(out, "  locations    {}", p.n_locations())?;
    writeln!(out, "  functions    {}", p.n_functions())?;
    if let Some(window) = p.window() {
        writeln!(out, "  part         {}", sanitize(window.as_str()))?;
    }
    if p.duration_nanos() != 0 {
        writeln!(out, "  duration     {}", duration(p.duration_nanos()))?;
    }
    if let Some((kind, unit)) = p.period_type() {
        writeln!(out, "  period       {} {} of {}", p.period(), sanitize(&unit), sanitize(&kind))?;
    }
    if p.time_nanos() != 0
        && let Ok(time) = jiff::Timestamp::from_nanosecond(i128::from(p.time_nanos()))
    {
        writeln!(out, "  time         {time:.0}")?;
    }
    for file in p.mapping_files().into_iter().filter(|f| !f.is_empty()) {
        writeln!(out, "  mapping      {}", sanitize(&file))?;
    }
    for (name, value) in
        [("documentation", p.doc_url())].into_iter().chain(p.comments().into_iter().map(|c| ("comment", c)))
    {
        if !value.is_empty() {
            writeln!(out, "  {name:<12} {}", sanitize(&value))?;
        }
    }
    p.warnings().iter().try_for_each(|w| writeln!(out, "  warning: {}", sanitize(w)))
}
