//! Folded stacks, the format of flame graph tools: one line per stack, `root;caller;leaf BASE NEW`.
//!
//! A diff has two columns, which `difffolded.pl` writes and inferno reads; a single profile has one. A header line
//! stores the number of sides and the sample type, so that pprofdiff reads the file back unchanged. The header is
//! omitted for sample counts of a single profile, because other readers expect files without a header.
//!
//! Names are changed where a reader would misread them. A semicolon would split a frame, so it becomes a colon. Blanks
//! at both ends are removed. Line breaks and other harmful characters become U+FFFD. The last space of a name that ends
//! in a number (`goroutine 7`) becomes an underscore, because readers would take the number for a column.

use std::io::{self, Write};

use crate::format::{BASE, Format, unsupported};
use crate::numbers::{share, share_text};
use crate::report::Report;
use crate::shows::{self, Form};
use pprofdiff::stacks::Stacks;
use pprofdiff::text::sanitize;
use pprofdiff::units;
use pprofdiff::{FoldedHeader, Normalize, Pair};

pub(crate) const FORMAT: Format = Format {
    name: "folded",
    extensions: &["folded"],
    about: "stacks for flame graph tools, one column per side",
    warns: false,
    leaves_out: stackless,
    form: Form::Stacks,
    asks: shows::all_stacks,
    write: |report, out, _| match report {
        Report::Stacks(stacks, _) => folded(stacks, out),
        _ => Err(unsupported()),
    },
    ..BASE
};

/// Returns a warning for each side with samples that have no stack, which formats of stacks leave out. With filters, there is
/// no warning, because filters select stacks.
pub(super) fn stackless(report: &Report) -> Vec<String> {
    let Report::Stacks(stacks, _) = report else { return Vec::new() };
    let summary = &stacks.summary;
    if !summary.query.filters.set().is_empty() {
        return Vec::new();
    }
    // The mean of several runs and normalized values are rounded in each row.
    let is_exact = !summary.is_of_runs() && summary.query.normalize == Normalize::None;
    let slack = if is_exact { 0 } else { stacks.rows.len() as i64 };
    let left_out = |side: &str, value: fn(Pair) -> i64| {
        let shown = stacks.rows.iter().try_fold(0_i64, |sum, row| {
            let value = value(row.weight);
            // Negative values cancel within a stack, so the difference of the sums is not the cost without a stack.
            if value < 0 { None } else { sum.checked_add(value) }
        })?;
        let total = value(summary.total);
        let rest = total.saturating_sub(shown);
        (rest > slack).then(|| {
            let part = share_text(share(rest, total), false);
            format!("samples without a stack were left out: {}, {part} of {side}", units::show(rest, &summary.unit))
        })
    };
    match summary.base {
        Some(_) => {
            [left_out("the base", |p| p.base), left_out("the new side", |p| p.new)].into_iter().flatten().collect()
        }
        None => left_out("the profile", |p| p.new).into_iter().collect(),
    }
}

/// Writes the stacks in folded form.
///
/// # Errors
/// Fails if `out` fails.
pub fn folded(stacks: &Stacks, out: &mut dyn Write) -> io::Result<()> {
    let names: Vec<String> = (0..stacks.frames.len() as u32).map(|f| name(&stacks.frames.label(f))).collect();
    let summary = &stacks.summary;
    let (kind, unit) = (summary.sample_type.clone(), summary.unit.clone());
    let header = FoldedHeader { kind, unit, two_sided: summary.base.is_some() };
    if header.two_sided || (header.kind.as_str(), header.unit.as_str()) != ("samples", "count") {
        writeln!(out, "{header}")?;
    }
    for row in &stacks.rows {
        for (i, &f) in stacks.frames_of(row).iter().enumerate() {
            if i > 0 {
                out.write_all(b";")?;
            }
            out.write_all(names[f as usize].as_bytes())?;
        }
        match stacks.summary.base {
            Some(_) => writeln!(out, " {} {}", row.weight.base, row.weight.new)?,
            None => writeln!(out, " {}", row.weight.new)?,
        }
    }
    Ok(())
}

/// Returns a frame's name in a form that readers of the format do not misread.
fn name(label: &str) -> String {
    let name = label.replace(';', ":");
    let name = sanitize(name.trim());
    match name.rsplit_once(char::is_whitespace) {
        Some((start, end)) if end.chars().all(|c| c.is_ascii_digit() || c == '.') => format!("{start}_{end}"),
        _ => name.into_owned(),
    }
}
