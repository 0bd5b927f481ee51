//! Tables for people: one unit a column; a row's own growth beside its change's share of the total.
//!
//! Colour (`palette`) is the caller's decision; only a terminal should get it.

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
    about: "for people",
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

/// The heads of columns that are not in the data: what a row grew by itself, and its delta's share of the total.
pub(crate) const GROWTH: &str = "growth";
pub(crate) const OF_TOTAL: &str = "of total";

/// What is said above a table of both sides.
pub(crate) const WHAT_IS_WHICH: &str = "; growth is a row's own, \"of total\" its delta in the base's total";

/// What is said besides where runs say something of the rows.
const WHAT_P_IS: &str = "p is how probable such a change is by chance, ~ where chance explains it";

/// The same where words stand in place of it.
const WHAT_IS_LEFT_OUT: &str = ", profiling or inlining where that decides by chance whether the frame is there";
const WHAT_SPREAD_IS: &str = "± is what runs differ by (standard deviation), ";

/// How text is written.
#[derive(Debug, Clone, Copy, Default)]
pub struct TextOptions {
    /// Colour deltas with ANSI escapes.
    pub color: bool,
    /// Without what a reader knows who has seen the inputs (their names, and what columns are), and of frames without growth
    /// and share, which follow from the rest.
    pub brief: bool,
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

/// The cells of one cost and the heads of their columns, of both sides or of one profile.
pub(crate) struct Cells<'a> {
    pub cost: CostFormat,
    pub summary: &'a Summary,
    /// With growth and share?
    pub full: bool,
}

impl Cells<'_> {
    /// `name: base`, `new`, `delta`, `growth`, `of total`; of one profile the cost's name and `of total`.
    pub fn head(&self, name: &str) -> Vec<String> {
        let (both, full) = (self.summary.base.is_some(), self.full);
        heads(name, both, ["base", "new", "delta"], full)
    }

    pub fn format(&self, p: Pair) -> Vec<Shown> {
        if self.summary.base.is_none() {
            let share = share_text(share(p.new, whole(self.summary)), false);
            return vec![self.cost.sides.format(p.new).into(), share.into()];
        }
        change_cells(self.cost, p, self.full.then(|| whole(self.summary)))
    }
}

/// The heads of the columns that [`change_cells`] fills.
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

/// Both sides, the delta and, given the total, growth and share.
pub(crate) fn change_cells(cost: CostFormat, p: Pair, total: Option<i64>) -> Vec<Shown> {
    let (delta, sign) = (p.delta(), p.delta().signum());
    let mut cells: Vec<Shown> = vec![cost.sides.format(p.base).into(), cost.sides.format(p.new).into()];
    cells.push(Shown { text: signed(delta, cost.delta), sign });
    if let Some(total) = total {
        let shown = [growth(p), share_text(share(delta, total), true)];
        cells.extend(shown.map(|text| Shown { text, sign }));
    }
    cells
}

impl Table {
    /// Writes the table for people: header, then the rows in columns.
    ///
    /// # Errors
    /// The writer's.
    pub fn write_text(&self, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
        if let Some(builds) = &self.builds {
            text_header(out, &self.summary, builds)?;
            return self.write_rows(out, options);
        }
        self.write_header(out, options)?;
        let of = if self.summary.base.is_some() && !options.brief { WHAT_IS_WHICH } else { "" };
        let cost = match (&self.beside[..], self.led().first()) {
            ([_, ..], Some(lead)) if !lead.cost.measured.name().is_empty() => {
                format!(" by {}", lead.cost.measured.name())
            }
            _ => String::new(),
        };
        let ratio = self.ratio_name().map_or_else(String::new, |name| format!("; ratio is {}", sanitize(&name)));
        let runs = match &self.chance_columns()[..] {
            _ if options.brief => String::new(),
            [] => String::new(),
            [_] => format!("\n{WHAT_P_IS}"),
            _ => format!("\n{WHAT_SPREAD_IS}{WHAT_P_IS}"),
        };
        let has_left_out = !options.brief
            && self
                .in_role(Role::LeftOut)
                .is_some_and(|c| matches!(&c.data, Data::Text(t) if t.iter().any(|t| t.is_some())));
        let left_out = if has_left_out { WHAT_IS_LEFT_OUT } else { "" };
        writeln!(out, "{}{cost}{of}{ratio}{runs}{left_out}\n", counted_of(self.len(), self.rows_total, self.kind.row))?;
        self.write_rows(out, options)
    }

    /// The lines above the rows.
    pub(crate) fn write_header(&self, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
        if !options.brief {
            sides(out, &self.summary)?;
        }
        self.sample_types().iter().try_for_each(|s| sample_type(out, s))?;
        settings(out, &self.summary)
    }

    /// The rows alone.
    pub(crate) fn write_rows(&self, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
        (self.kind.text)(self, out, options)
    }

    /// The costs of the first sample type: first the one that the rows are ordered by. Both with growth and share
    /// would be wider than a terminal, so only the first has them.
    pub(crate) fn led(&self) -> Vec<CostColumns<'_>> {
        let mut costs: Vec<_> = self.costs().into_iter().filter(|c| c.cost.sample_type == 0).collect();
        if self.sort == Sort::Cum {
            costs.reverse();
        }
        costs
    }

    /// How a cost of the rows is formatted: what costs itself and with what it calls in one unit.
    pub(crate) fn format(&self, costs: &CostColumns<'_>) -> CostFormat {
        let summary = self.sample_type(costs.cost.sample_type);
        let all: Vec<_> = self.costs().into_iter().filter(|c| c.cost.sample_type == costs.cost.sample_type).collect();
        let pairs = all.iter().flat_map(|costs| (0..self.len()).map(|row| costs.pair(row)));
        CostFormat::for_values(summary, costs.delta.is_some(), pairs)
    }

    /// A row of the table of frames in one line: `name file:line`, as pprof.
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

    /// What runs say of rows that is shown: how much they differ, unless there is one a side, and the p-value.
    pub(crate) fn chance_columns(&self) -> Vec<RunStatistic> {
        let all = [RunStatistic::BaseSd, RunStatistic::NewSd, RunStatistic::P].into_iter();
        all.filter(|&statistic| {
            let column = self.in_role(Role::Chance(statistic)).map(|c| &c.data);
            matches!(column, Some(Data::Ratio(v)) if statistic == RunStatistic::P || v.iter().any(Option::is_some))
        })
        .collect()
    }

    /// Several sample types side by side: of each the cost that the rows are ordered by, then the ratio.
    pub(crate) fn write_beside(&self, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
        let columns: Vec<_> = self.shown_columns().into_iter().filter(ShownColumn::is_number).collect();
        let mut head: Vec<String> = columns.iter().map(|c| self.short_head(c)).collect();
        head.push(self.kind.row.to_owned());
        grid(out, options, &head, |push| {
            (0..self.len()).try_for_each(|row| {
                let number = |c| self.number(c, row).map_or_else(|| "".into(), |(text, sign)| Shown { text, sign });
                let mut cells: Vec<Shown> = columns.iter().map(number).collect();
                cells.push((self.kind.row_label)(self, row).into());
                push(cells)
            })
        })
    }

    /// A heading as [`heads`] has them: what it is of stands over the first of its columns.
    fn short_head(&self, column: &ShownColumn<'_>) -> String {
        let two_sided = self.summary.base.is_some();
        let of = |cost: Cost| self.sample_type(cost.sample_type).sample_type.as_str();
        match column.column.role {
            _ if column.is_made() => column.head.clone(),
            Role::Base(cost) => format!("{}: base", of(cost)),
            Role::New(cost) if !two_sided => of(cost).to_owned(),
            Role::Figure => column.head.clone(),
            Role::RatioBase(_) => "ratio: base".to_owned(),
            Role::RatioNew(_) if !two_sided => "ratio".to_owned(),
            Role::New(_) | Role::RatioNew(_) => "new".to_owned(),
            _ => "delta".to_owned(),
        }
    }
}

/// Writes one of many pairs: a line, and below it what moved most.
fn write_pair(item: &Item<'_>, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let Ok(table) = item.result else { return writeln!(out, "{}  failed", sanitize(item.name)) };
    let s = &table.summary;
    writeln!(out, "{}  {} {}", sanitize(item.name), sanitize(&s.sample_type), total(s, "->"))?;
    s.warnings.iter().try_for_each(|w| writeln!(out, "    warning: {}", sanitize(w)))?;
    if *table.kind != DIFF || !table.beside.is_empty() {
        return table.write_rows(out, style.text());
    }
    let costs = table.led();
    let [lead, other] = &costs[..] else { return Ok(()) };
    let (by, beside) = (table.format(lead), table.format(other));
    let names = [lead, other].map(|c| c.cost.measured.name());
    for row in 0..table.len() {
        let words = by.words(lead.pair(row), whole(s), "->");
        let rest = signed(other.pair(row).delta(), beside.delta);
        writeln!(out, "    {} {words}  {} {rest}  {}", names[0], names[1], sanitize(&table.label(row)))?;
    }
    Ok(())
}

/// The lines above the source lines and tables of one sample type.
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

/// The lines of a header that say what a user set, and should know.
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

/// The names of a side's inputs, cut short where there are many; what several of them are, and which part was read.
pub(crate) fn inputs(side: &Side, sum: bool) -> String {
    let paths = &side.paths;
    let between = if sum { " + " } else { ", " };
    let list = match &paths[..] {
        [one] => one.clone(),
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

pub(crate) fn paint(text: &str, sign: i64, options: TextOptions) -> String {
    let text = sanitize(text);
    if options.color { palette::paint(&text, sign) } else { text.into_owned() }
}

/// Writes cells in columns, all right-aligned but the last. `rows` makes all rows and is asked twice, for their widths and
/// to be written, so that none is held: a row of text can be a hundred times what it is made of.
pub(crate) fn grid(
    out: &mut dyn Write,
    options: TextOptions,
    head: &[impl AsRef<str>],
    mut rows: impl FnMut(&mut dyn FnMut(Vec<Shown>) -> io::Result<()>) -> io::Result<()>,
) -> io::Result<()> {
    let width = |cell: &Shown| cell.text.chars().count();
    let head = || head.iter().map(|h| Shown::from(h.as_ref())).collect::<Vec<_>>();
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

/// The maximum number of sample types whose sampling is shown: each is compared with all others.
pub(crate) const MAX_SAMPLING: usize = 100;

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
