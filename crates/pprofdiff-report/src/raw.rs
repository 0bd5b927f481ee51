//! The complete content of a profile as text, line for line as `go tool pprof -raw` prints it, so that tools which read
//! that output can read this one. Locations and mappings of a merged profile, such as a diff, are numbered in the order
//! of their first use, like in pprof. A single profile keeps everything in the file, numbered from 1 in the file's
//! order.
//!
//! The duration is truncated to four characters, like in pprof (`12.3456s` becomes `12.3`). There are three differences
//! to pprof. Times are in UTC instead of local time. A single profile still contains the frames that its `drop_frames`
//! names. The duration of a diff is the new side's duration instead of the sum of both.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::io::{self, Write};

use pprofdiff::Profile;
use pprofdiff::columns::NONE;
use pprofdiff::samples::{Label, LabelValue, Sample};
use pprofdiff::shared::short_lists::sort_by;
use pprofdiff::text::sanitize;

/// Assigns numbers from 1 to locations or mappings, in the order of their first use.
struct RawIds {
    /// The number of each item; 0 for an item that was not used yet.
    of_index: Vec<u32>,
    /// The items with numbers, in the order of their numbers.
    met: Vec<u32>,
}

impl RawIds {
    /// Creates the numbering of `n` items. If `all`, every item has a number from the start, in the order of the items.
    fn new(n: usize, all: bool) -> RawIds {
        let n = n as u32;
        match all {
            true => RawIds { of_index: (1..=n).collect(), met: (0..n).collect() },
            false => RawIds { of_index: vec![0; n as usize], met: Vec::new() },
        }
    }

    /// Returns the number of an item, and assigns the next number to an item without one.
    fn number(&mut self, index: u32) -> u32 {
        let number = &mut self.of_index[index as usize];
        if *number == 0 {
            self.met.push(index);
            *number = self.met.len() as u32;
        }
        *number
    }
}

/// Writes the profile. If `merged`, only locations and mappings in use and the first mapping are written, numbered in
/// the order of their first use.
///
/// # Errors
/// Fails if `out` fails.
pub(crate) fn raw(p: &Profile, merged: bool, out: &mut dyn Write) -> io::Result<()> {
    header(p, out)?;
    let mut locations = RawIds::new(p.n_locations(), !merged);
    let mut line = String::new();
    for sample in p.samples() {
        line.clear();
        // Writing to a String cannot fail.
        sample.for_each_value(|v| {
            let _ = write!(line, " {v:>10}");
        });
        line.push_str(": ");
        sample.for_each_location(|l| {
            let _ = write!(line, "{} ", locations.number(l));
        });
        writeln!(out, "{line}")?;
        labels(p, &sample, out)?;
    }
    writeln!(out, "Locations")?;
    let mut mappings = RawIds::new(p.mappings().len(), !merged);
    if !p.mappings().is_empty() {
        // The first mapping is the main binary. It is listed even if no location uses it.
        mappings.number(0);
    }
    let (columns, functions) = (p.locations(), p.functions());
    let text = |id| p.text(id);
    for (i, &l) in locations.met.iter().enumerate() {
        let location = l as usize;
        let mut start = format!("{:>6}: {:#x} ", i + 1, columns.address[location]);
        if columns.mapping[location] != NONE {
            let _ = write!(start, "M={} ", mappings.number(columns.mapping[location]));
        }
        if columns.folded[location] {
            start.push_str("[F] ");
        }
        if columns.lines(l).is_empty() {
            writeln!(out, "{start}")?;
        }
        for line in columns.lines(l) {
            let (n, f) = (line as usize, columns.line_function[line as usize] as usize);
            let (name, system_name) = (text(functions.name[f]), text(functions.system_name[f]));
            let (file, begins) = (text(functions.file[f]), functions.start_line[f]);
            let (number, column) = (columns.line_number[n], columns.line_column[n]);
            let system = if name == system_name { String::new() } else { format!("({system_name})") };
            writeln!(out, "{start}{}", sanitize(&format!("{name} {file}:{number}:{column} s={begins}{system}")))?;
            start = " ".repeat(13);
        }
    }
    writeln!(out, "Mappings")?;
    for (i, &index) in mappings.met.iter().enumerate() {
        let m = p.mappings()[index as usize];
        let flags = ["[FN]", "[FL]", "[LN]", "[IN]"].iter().enumerate().filter(|(bit, _)| m.flags >> bit & 1 == 1);
        let flags: String = flags.map(|(_, flag)| *flag).collect();
        let names = format!("{} {} {flags}", text(m.file), text(m.build_id));
        writeln!(out, "{}: {:#x}/{:#x}/{:#x} {}", i + 1, m.start, m.limit, m.offset, sanitize(&names))?;
    }
    Ok(())
}

fn header(p: &Profile, out: &mut dyn Write) -> io::Result<()> {
    p.comments().iter().try_for_each(|comment| writeln!(out, "Comment: {}", sanitize(comment)))?;
    if !p.doc_url().is_empty() {
        writeln!(out, "Doc: {}", sanitize(&p.doc_url()))?;
    }
    let (kind, unit) = p.period_type().unwrap_or_default();
    writeln!(out, "PeriodType: {} {}\nPeriod: {}", sanitize(&kind), sanitize(&unit), p.period())?;
    if p.time_nanos() != 0
        && let Ok(time) = jiff::Timestamp::from_nanosecond(i128::from(p.time_nanos()))
    {
        writeln!(out, "Time: {} +0000 UTC", time.to_string().replace('T', " ").trim_end_matches('Z'))?;
    }
    if p.duration_nanos() != 0 {
        writeln!(out, "Duration: {}", duration(p.duration_nanos()).chars().take(4).collect::<String>())?;
    }
    writeln!(out, "Samples:")?;
    let default = p.text(p.header().default_sample_type);
    let types = p.sample_types().into_iter().map(|(kind, unit)| {
        let mark = if kind == default { "[dflt]" } else { "" };
        format!("{kind}/{unit}{mark}")
    });
    writeln!(out, "{}", sanitize(types.collect::<Vec<_>>().join(" ").trim()))
}

/// Formats a duration like Go: `350ms`, `1.5s`, `1h2m3.5s`.
fn duration(nanos: i64) -> String {
    let (sign, n) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
    let second = 1_000_000_000;
    // Exact decimals without trailing zeros.
    let decimal = |value: u64, unit: u64| {
        let digits = format!("{}.{:09}", value / unit, value % unit * (second / unit));
        digits.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let text = match n {
        0..1_000 => format!("{n}ns"),
        1_000..1_000_000 => format!("{}µs", decimal(n, 1_000)),
        1_000_000..1_000_000_000 => format!("{}ms", decimal(n, 1_000_000)),
        _ => {
            let (minutes, seconds) = (n / (60 * second), decimal(n % (60 * second), second));
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    };
    format!("{sign}{text}")
}

/// Writes the labels of a sample: one line of texts and one line of numbers, each sorted.
fn labels(p: &Profile, sample: &Sample<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut all: Vec<Label> = sample.all_labels().collect();
    let is_number = |label: &Label| matches!(label.value, LabelValue::Number(..));
    // The sort order includes the text after a key, as in pprof: `a b:[` sorts before `a:[`.
    let word = |label: &Label| p.string(label.key).iter().chain(b":[");
    // Skip comparing a key with itself, because keys can be long.
    let order = |a: &Label, b: &Label| if a.key == b.key { Ordering::Equal } else { word(a).cmp(word(b)) };
    sort_by(&mut all, |a, b| is_number(a).cmp(&is_number(b)).then_with(|| order(a, b)));
    for line in all.chunk_by(|a, b| is_number(a) == is_number(b)) {
        let mut text = String::new();
        for values in line.chunk_by(|a, b| order(a, b).is_eq()) {
            let has_units =
                values.iter().any(|l| matches!(l.value, LabelValue::Number(_, u) if !p.string(u).is_empty()));
            let between = if text.is_empty() { "" } else { " " };
            let _ = write!(text, "{between}{}:[", p.text(values[0].key));
            for (i, label) in values.iter().enumerate() {
                text.push_str(if i == 0 { "" } else { " " });
                let _ = match label.value {
                    LabelValue::Text(value) => write!(text, "{}", p.text(value)),
                    LabelValue::Number(n, unit) if has_units => write!(text, "{n} {}", p.text(unit)),
                    LabelValue::Number(n, _) => write!(text, "{n}"),
                };
            }
            text.push(']');
        }
        writeln!(out, "                {}", sanitize(&text))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn durations_match_gos_format() {
        let second = 1_000_000_000;
        for (nanos, text) in [
            (1, "1ns"),
            (1_500, "1.5µs"),
            (350_000_000, "350ms"),
            (second, "1s"),
            (90 * second + second / 2, "1m30.5s"),
            (3_600 * second, "1h0m0s"),
            (-2 * second, "-2s"),
        ] {
            assert_eq!(duration(nanos), text);
        }
    }
}
