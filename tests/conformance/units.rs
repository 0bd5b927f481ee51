//! Formats numbers with units like pprof, for the values of numeric labels.

use crate::pprof::{Version, version};

/// pprof's units and their factors. If a value and the requested unit belong to different families, pprof uses the
/// default unit of the value's family.
const FAMILIES: [(&str, &[(&str, &[&str], f64)]); 2] = [
    (
        "B",
        &[
            ("B", &["b", "byte"], 1.0),
            ("kB", &["kb", "kbyte", "kilobyte"], 1024.0),
            ("MB", &["mb", "mbyte", "megabyte"], 1048576.0),
            ("GB", &["gb", "gbyte", "gigabyte"], 1073741824.0),
        ],
    ),
    (
        "s",
        &[
            ("ns", &["ns", "nanosecond"], 1.0),
            ("us", &["us", "microsecond", "\u{3bc}s"], 1e3),
            ("ms", &["ms", "millisecond"], 1e6),
            ("s", &["s", "sec", "second"], 1e9),
            ("hrs", &["hr", "hour"], 3600e9),
        ],
    ),
];

/// The unit in which all numbers of a `-tags` report are integers: times become nanoseconds, bytes stay bytes because
/// they cannot be converted, and other values are printed unchanged.
pub const WHOLE: &str = "nanoseconds";

/// Returns a sum in `unit` as the integer that pprof prints with unit [`WHOLE`].
pub fn whole(value: i64, unit: &str) -> i64 {
    convert(value, unit, WHOLE).0 as i64
}

/// Formats `value` in `unit`, converted to `shown_in`, with at most two decimals.
pub fn scaled(value: i64, unit: &str, shown_in: &str) -> String {
    let (number, unit) = convert(value, unit, shown_in);
    let digits = format!("{number:.2}");
    match digits.trim_end_matches(".00") {
        "0" | "-0" => "0".into(),
        digits => format!("{digits}{unit}"),
    }
}

fn convert(value: i64, unit: &str, shown_in: &str) -> (f64, String) {
    for (default, units) in FAMILIES {
        let Some(from) = find(units, unit) else { continue };
        let to = find(units, shown_in).or_else(|| find(units, default)).unwrap();
        return (value as f64 * from.2 / to.2, to.0.into());
    }
    match shown_in {
        "count" | "sample" | "unit" | "minimum" | "auto" => (value as f64, String::new()),
        _ => (value as f64, shown_in.into()),
    }
}

type Unit = (&'static str, &'static [&'static str], f64);

fn find(units: &'static [Unit], name: &str) -> Option<Unit> {
    let name = name.to_lowercase();
    // The toolchain's pprof measures the length in bytes, and `μs` has three.
    let length = if version() == Version::Newest { name.chars().count() } else { name.len() };
    let singular = match length > 2 {
        true => name.strip_suffix('s').unwrap_or(&name),
        false => &name,
    };
    units.iter().copied().find(|(_, aliases, _)| aliases.contains(&singular))
}

/// Returns true if pprof converts this unit to others, so a report may use another unit than the file.
pub fn has_family(unit: &str) -> bool {
    FAMILIES.iter().any(|(_, units)| find(units, unit).is_some())
}

/// Returns the finer of two units of one sample type. A diff converts both sides to it.
pub fn finer(left: &str, right: &str) -> String {
    let factor = |unit| FAMILIES.iter().find_map(|(_, units)| find(units, unit)).map_or(1.0, |entry| entry.2);
    if factor(right) < factor(left) { right.into() } else { left.into() }
}
