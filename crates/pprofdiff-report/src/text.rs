//! The parts of text for people that need no table: headers, cells, and the grid that aligns them.

use std::io::{self, Write};

use crate::numbers::{CostFormat, extent, growth, share, share_text, signed, total, whole};
use crate::palette;
use pprofdiff::text::sanitize;
use pprofdiff::units;
use pprofdiff::{Normalize, Pair, Side, Summary};

/// The head of a computed column with each row's growth.
pub(crate) const GROWTH: &str = "growth";
/// The head of a computed column with the share of the total that each row's delta has, or its cost in a single
/// profile.
pub(crate) const OF_TOTAL: &str = "of total";

/// The note above a two-sided table that explains growth and share.
pub(crate) const GROWTH_LEGEND: &str = "; growth is relative to the row's base, \"of total\" to the base's total";

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

/// Writes the header of a report with one sample type that is not a table, such as a listing.
pub(crate) fn header(out: &mut dyn Write, s: &Summary, options: TextOptions) -> io::Result<()> {
    if !options.brief {
        sides(out, s)?;
    }
    sample_type(out, s)?;
    settings(out, s)
}

/// Writes the names of the inputs.
pub(crate) fn sides(out: &mut dyn Write, s: &Summary) -> io::Result<()> {
    // A table about many pairs names them in its rows.
    if s.new.paths.is_empty() {
        return Ok(());
    }
    if let Some(base) = &s.base {
        writeln!(out, "base  {}", side(base, s.sum))?;
        writeln!(out, "new   {}", side(&s.new, s.sum))?;
    } else {
        writeln!(out, "{}", side(&s.new, s.sum))?;
    }
    Ok(())
}

/// Writes the total of a sample type, and how it is normalized.
pub(crate) fn sample_type(out: &mut dyn Write, s: &Summary) -> io::Result<()> {
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
