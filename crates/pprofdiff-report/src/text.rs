//! The parts of text for people that need no table: headers, cells, and the grid that aligns them.

use std::io::{self, Write};
use std::ops::Range;

use crate::names::shorten;
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
    /// of two sides, and in listings, also omits growth and share, which follow from the other columns. In checks, omits
    /// the numbers of compared and ignored frames.
    pub brief: bool,
    /// Fits tables into this number of characters: drops the second cost of a table of frames, and shortens names in
    /// the middle. Source lines keep their length.
    pub width: Option<usize>,
}

/// The minimum number of characters for names, however narrow the text is.
const MIN_NAME: usize = 20;
/// The minimum number of characters for names before a table drops a cost to make room for them.
const MIN_NAME_BESIDE_BOTH: usize = 28;

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
    rows: impl FnMut(&mut dyn FnMut(Vec<TextCell>) -> io::Result<()>) -> io::Result<()>,
) -> io::Result<()> {
    fitting_grid(out, options, head, &[], rows)
}

/// Like [`grid`]. If names do not fit into the width of the options, drops groups of columns in the order of
/// `optional`, and says so by their names below the rows.
pub(crate) fn fitting_grid(
    out: &mut dyn Write,
    options: TextOptions,
    head: &[impl AsRef<str>],
    optional: &[(Range<usize>, &str)],
    mut rows: impl FnMut(&mut dyn FnMut(Vec<TextCell>) -> io::Result<()>) -> io::Result<()>,
) -> io::Result<()> {
    let width = |cell: &TextCell| cell.text.chars().count();
    let head = || head.iter().map(|h| TextCell::from(h.as_ref())).collect::<Vec<_>>();
    let mut widths: Vec<usize> = head().iter().map(width).collect();
    let mut longest_name = widths.pop().unwrap_or(0);
    let last = widths.len();
    rows(&mut |row| {
        longest_name = row.get(last).map_or(0, width).max(longest_name);
        widths.iter_mut().zip(&row).for_each(|(widest, cell)| *widest = width(cell).max(*widest));
        Ok(())
    })?;
    let taken = |widths: &[usize]| widths.iter().map(|w| w + 2).sum::<usize>();
    let room_beside = |taken: usize| options.width.map(|width| width.saturating_sub(taken));
    let mut left = taken(&widths);
    let mut dropped: Vec<&(Range<usize>, &str)> = Vec::new();
    for group in optional {
        if room_beside(left).is_some_and(|room| room < longest_name.min(MIN_NAME_BESIDE_BOTH)) {
            left -= taken(&widths[group.0.clone()]);
            dropped.push(group);
        }
    }
    let room = room_beside(left);
    let is_shown = |i: usize| !dropped.iter().any(|(columns, _)| columns.contains(&i));
    let mut line = |mut row: Vec<TextCell>| {
        if let (Some(room), Some(name)) = (room, row.get_mut(last)) {
            name.text = fit_name(&name.text, room.max(MIN_NAME));
        }
        for (i, cell) in row.iter().enumerate().filter(|(i, _)| is_shown(*i)) {
            let pad = widths.get(i).map_or(0, |w| w - width(cell));
            let gap = if i == 0 { "" } else { "  " };
            write!(out, "{gap}{:pad$}{}", "", paint(&cell.text, cell.sign, options))?;
        }
        writeln!(out)
    };
    line(head())?;
    rows(&mut line)?;
    if let (Some(width), false) = (options.width, dropped.is_empty()) {
        let names: Vec<&str> = dropped.iter().map(|(_, name)| *name).collect();
        writeln!(out, "\nleft out to fit into {width} characters per line: {}", names.join(", "))?;
    }
    Ok(())
}

/// The gap before a note that follows a name.
pub(crate) const NOTE_GAP: &str = "   ";

/// Shortens a name in the middle to `room` characters. Keeps its indentation if at least [`MIN_NAME`] characters remain.
/// Omits a note after [`NOTE_GAP`], which repeats numbers of other tables, before it shortens the name.
fn fit_name(name: &str, room: usize) -> String {
    let text = name.trim_start_matches(' ');
    let indentation = (name.len() - text.len()).min(room - MIN_NAME);
    if name.chars().count() <= room {
        return name.to_owned();
    }
    let text = text.split_once(NOTE_GAP).map_or(text, |(label, _)| label);
    format!("{:indentation$}{}", "", shorten(text, room - indentation))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn lines(width: Option<usize>, name: &str) -> Vec<String> {
        let mut out = Vec::new();
        let options = TextOptions { width, ..TextOptions::default() };
        let head = ["flat: base", "new", "cum: base", "new", "frame"];
        fitting_grid(&mut out, options, &head, &[(2..4, "cum")], |push| {
            push(["1.00s", "2.00s", "3.00s", "4.00s", name].map(TextCell::from).into())
        })
        .unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_table_drops_its_second_cost_then_shortens_names_in_the_middle() {
        let name = "github.com/example/store/internal.(*Reader).ReadBlock";
        let wide = lines(None, name);
        assert!(wide.len() == 2 && wide[1].ends_with(&format!("3.00s  4.00s  {name}")), "{wide:?}");
        // A short name leaves room for all columns.
        let short = lines(Some(46), "main.run");
        assert!(short.len() == 2 && short[1].ends_with("4.00s  main.run"), "{short:?}");
        let narrow = lines(Some(60), name);
        assert_eq!(narrow[0], "flat: base    new  frame");
        assert!(
            narrow[1].starts_with("     1.00s  2.00s  github.com/") && narrow[1].ends_with("ReadBlock"),
            "{narrow:?}"
        );
        assert_eq!(narrow[1].chars().count(), 60);
        assert_eq!(narrow[3], "left out to fit into 60 characters per line: cum");
        // With enough room for a readable name, both costs stay.
        let both = lines(Some(74), name);
        assert!(both.len() == 2 && both[1].chars().count() == 74 && both[1].contains('…'), "{both:?}");
    }

    #[test]
    fn a_shortened_name_keeps_its_indentation_while_there_is_room() {
        let name = format!("{:8}{}", "", "x".repeat(50));
        assert_eq!(fit_name(&name, 40), format!("{:8}{}…{}", "", "x".repeat(15), "x".repeat(16)));
        assert_eq!(fit_name(&format!("  main.run{NOTE_GAP}(flat 10ms -> 20ms)"), 25), "  main.run");
        assert_eq!(fit_name(&name, MIN_NAME).trim_start().chars().count(), MIN_NAME);
    }
}
