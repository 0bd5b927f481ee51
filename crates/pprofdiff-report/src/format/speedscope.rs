//! Stacks as a file for speedscope.app: a single "sampled" profile, or one per side of a diff. The viewer switches
//! between profiles.
//!
//! The viewer does not support negative weights. Stacks with negative weights are omitted with a warning; stacks that
//! are absent on a side are omitted silently. Stacks are sorted so that stacks with a common beginning are adjacent,
//! which keeps the viewer's "time order" readable.
//!
//! The format supports few units and no sample types. The additional member `pprofdiff`, which the viewer ignores,
//! stores the sample type and the number of sides. Pprofdiff's own reader uses it.

use std::io::{self, Write};

use serde_json::json;

use crate::format::{BASE, Format, folded, unsupported};
use crate::numbers::{share, share_text};
use crate::report::Report;
use crate::shows::{self, Form};
use pprofdiff::Pair;
use pprofdiff::stacks::{StackRow, Stacks};
use pprofdiff::units;

pub(crate) const FORMAT: Format = Format {
    name: "speedscope",
    extensions: &["speedscope.json"],
    about: "stacks for speedscope.app, each side as a profile",
    warns: false,
    leaves_out: |report| [negative_stacks(report), folded::stackless(report)].concat(),
    form: Form::Stacks,
    asks: shows::all_stacks,
    write: |report, out, _| match report {
        Report::Stacks(stacks, _) => speedscope(stacks, out),
        _ => Err(unsupported()),
    },
    ..BASE
};

/// Returns a warning for each side that has negative stacks, with their share of the sum of all stacks' magnitudes.
fn negative_stacks(report: &Report) -> Vec<String> {
    let Report::Stacks(stacks, _) = report else { return Vec::new() };
    let summary = &stacks.summary;
    let left_out = |side: &str, value: fn(Pair) -> i64| {
        let values = stacks.rows.iter().map(|row| value(row.weight));
        let (mut negative, mut magnitude) = (0_i64, 0_i64);
        for value in values {
            negative = negative.saturating_add(value.min(0));
            magnitude = magnitude.saturating_add(value.saturating_abs());
        }
        (negative < 0).then(|| {
            let value = units::show(negative, &summary.unit);
            let part = share_text(share(negative.saturating_abs(), magnitude), false);
            format!("speedscope can't show negative values: omitted stacks of {value}, {part} of {side} by magnitude")
        })
    };
    match summary.base {
        Some(_) => [left_out("base", |p| p.base), left_out("new", |p| p.new)].into_iter().flatten().collect(),
        None => left_out("the profile", |p| p.new).into_iter().collect(),
    }
}

/// Writes the stacks in speedscope's format.
///
/// # Errors
/// Fails if `out` fails.
pub fn speedscope(stacks: &Stacks, out: &mut dyn Write) -> io::Result<()> {
    let s = &stacks.summary;
    let mut rows: Vec<&StackRow> = stacks.rows.iter().collect();
    rows.sort_by(|a, b| stacks.frames_of(a).cmp(stacks.frames_of(b)));
    write!(out, "{{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\",\n \"exporter\": ")?;
    let about = json!({"sample_type": s.sample_type, "unit": s.unit, "two_sided": s.base.is_some()});
    write!(out, "{},\n \"pprofdiff\": {about},\n", json!(concat!("pprofdiff ", env!("CARGO_PKG_VERSION"))))?;
    write!(out, " \"shared\": {{\"frames\": [")?;
    let frames = &stacks.frames;
    for f in 0..frames.len() as u32 {
        let mut frame = json!({"name": frames.label(f)});
        if let Some(file) = frames.file(f) {
            frame = json!({"name": frames.name(f), "file": file});
            if let Some(line) = frames.line(f) {
                frame["line"] = json!(line);
            }
        }
        write!(out, "{}\n  {frame}", if f == 0 { "" } else { "," })?;
    }
    write!(out, "]}},\n \"profiles\": [")?;
    let value: fn(Pair) -> i64 = |p| p.new;
    match s.base {
        Some(_) => {
            profile(stacks, &rows, "base", |p| p.base, out)?;
            write!(out, ",")?;
            profile(stacks, &rows, "new", value, out)?;
        }
        None => profile(stacks, &rows, &s.sample_type, value, out)?,
    }
    // `activeProfileIndex` makes the viewer open the new side first.
    let name = match s.base {
        Some(_) => format!("{} of base and new", s.sample_type),
        None => s.new.paths.join(" + "),
    };
    writeln!(out, "],\n \"activeProfileIndex\": {}, \"name\": {}}}", u8::from(s.base.is_some()), json!(name))
}

fn profile(
    stacks: &Stacks,
    rows: &[&StackRow],
    name: &str,
    value: fn(Pair) -> i64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let unit = match stacks.summary.unit.as_str() {
        supported @ ("nanoseconds" | "microseconds" | "milliseconds" | "seconds" | "bytes") => supported,
        _ => "none",
    };
    let shown = || rows.iter().map(|r| (*r, value(r.weight))).filter(|(_, v)| *v > 0);
    let end: i64 = shown().fold(0, |sum, (_, v)| sum.saturating_add(v));
    write!(
        out,
        "\n  {{\"type\": \"sampled\", \"name\": {}, \"unit\": \"{unit}\", \"startValue\": 0, \"endValue\": {end},\n   \"samples\": [",
        json!(name)
    )?;
    for (i, (row, _)) in shown().enumerate() {
        if i > 0 {
            out.write_all(b",")?;
        }
        serde_json::to_writer(&mut *out, stacks.frames_of(row))?;
    }
    write!(out, "],\n   \"weights\": [")?;
    for (i, (_, v)) in shown().enumerate() {
        write!(out, "{}{v}", if i == 0 { "" } else { "," })?;
    }
    write!(out, "]}}")
}
