//! Folded stacks, the format of flame graph tools: `root;caller;leaf BASE NEW`, a line a stack.
//!
//! Two columns for a diff, as `difffolded.pl` writes and inferno reads; one for a single profile. A header says so, and
//! what is counted, so that it opens as the same again; only samples of one profile, which readers expect, have none. A
//! semicolon in a frame's name would split it, so it becomes a colon; line breaks and what else is harmful
//! become U+FFFD; and a name that ends in a number of its own (`goroutine 7`), which readers would take for a
//! column, has its last space filled in.

use std::io::{self, Write};

use crate::format::{BASE, Format, all_stacks, unsupported};
use crate::report::Report;
use pprofdiff::FoldedHeader;
use pprofdiff::stacks::Stacks;
use pprofdiff::text::sanitize;

pub(crate) const FORMAT: Format = Format {
    name: "folded",
    extensions: &["folded"],
    about: "stacks for flame graph tools, with a column a side",
    warns: false,
    shows: all_stacks,
    write: |report, out, _| match report {
        Report::Stacks(stacks, _) => folded(stacks, out),
        _ => Err(unsupported()),
    },
    ..BASE
};

/// Writes the stacks in folded form.
///
/// # Errors
/// The writer's.
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

/// A frame's name as a reader of the format understands it.
fn name(label: &str) -> String {
    let name = label.replace(';', ":");
    let name = sanitize(name.trim());
    match name.rsplit_once(char::is_whitespace) {
        Some((start, end)) if end.chars().all(|c| c.is_ascii_digit() || c == '.') => format!("{start}_{end}"),
        _ => name.into_owned(),
    }
}
