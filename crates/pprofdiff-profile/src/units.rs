//! Units of measurement: conversion and printing.
//!
//! The tables and rules (aliases, powers of 1024 for bytes, a plural `s`) are pprof's, so numbers print like in pprof.
//! Factors are integers in each family's smallest unit, so a merge can convert values to a finer unit exactly.

/// A unit: its symbol, its aliases, and its size in the family's smallest unit.
#[derive(Debug)]
struct UnitEntry {
    symbol: &'static str,
    aliases: &'static [&'static str],
    factor: i128,
}

/// A family of units that convert into each other.
#[doc(hidden)]
#[derive(Debug)]
pub struct Family {
    units: &'static [UnitEntry],
    /// The unit for values that are less than 1 in every unit, such as 0, and for conversion to a unit of another
    /// family. pprof uses the same units: bytes, seconds and GCU.
    default: usize,
}

const fn unit(symbol: &'static str, aliases: &'static [&'static str], factor: i128) -> UnitEntry {
    UnitEntry { symbol, aliases, factor }
}

static FAMILIES: [Family; 3] = [
    Family {
        units: &[
            unit("B", &["b", "byte"], 1),
            unit("kB", &["kb", "kbyte", "kilobyte"], 1 << 10),
            unit("MB", &["mb", "mbyte", "megabyte"], 1 << 20),
            unit("GB", &["gb", "gbyte", "gigabyte"], 1 << 30),
            unit("TB", &["tb", "tbyte", "terabyte"], 1 << 40),
            unit("PB", &["pb", "pbyte", "petabyte"], 1 << 50),
        ],
        default: 0,
    },
    Family {
        units: &[
            unit("ns", &["ns", "nanosecond"], 1),
            unit("us", &["μs", "µs", "us", "microsecond"], 1_000),
            unit("ms", &["ms", "millisecond"], 1_000_000),
            unit("s", &["s", "sec", "second"], 1_000_000_000),
            unit("hrs", &["hour", "hr"], 3_600_000_000_000),
        ],
        default: 3,
    },
    Family {
        units: &[
            unit("n*GCU", &["nanogcu"], 1),
            unit("u*GCU", &["microgcu"], 1_000),
            unit("m*GCU", &["milligcu"], 1_000_000),
            unit("GCU", &["gcu"], 1_000_000_000),
            unit("k*GCU", &["kilogcu"], 1_000_000_000_000),
            unit("M*GCU", &["megagcu"], 1_000_000_000_000_000),
            unit("G*GCU", &["gigagcu"], 1_000_000_000_000_000_000),
            unit("T*GCU", &["teragcu"], 1_000_000_000_000_000_000_000),
            unit("P*GCU", &["petagcu"], 1_000_000_000_000_000_000_000_000),
        ],
        default: 3,
    },
];

/// A known unit: its family and its index in the family.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Known {
    family: &'static Family,
    index: usize,
}

/// Finds a unit by one of its aliases, in upper or lower case, and with a plural `s` if it is longer than two
/// characters. Returns `None` for units that pprof does not know either (`count`, `objects`).
#[doc(hidden)]
pub fn find(name: &str) -> Option<Known> {
    let name = name.to_lowercase();
    let name = if name.chars().count() > 2 { name.strip_suffix('s').unwrap_or(&name) } else { &name };
    FAMILIES.iter().find_map(|family| {
        let index = family.units.iter().position(|u| u.aliases.contains(&name))?;
        Some(Known { family, index })
    })
}

impl Known {
    fn unit(self) -> &'static UnitEntry {
        &self.family.units[self.index]
    }

    /// Returns true if the two units convert into each other.
    pub fn same_family(self, other: Known) -> bool {
        std::ptr::eq(self.family, other.family)
    }

    /// Returns the size of the unit in the family's smallest unit.
    pub fn factor(self) -> i128 {
        self.unit().factor
    }
}

/// A value with the unit for showing it.
#[derive(Debug, Clone, Copy)]
pub struct Scaled {
    /// The value, in the unit of `symbol`.
    pub value: f64,
    /// The symbol of the unit.
    pub symbol: &'static str,
}

/// Returns the best unit for a value: the largest unit that gives a value of at least 1, or else the family's default.
fn best_unit(value: f64, from: Known) -> Known {
    let smallest = value.abs() * from.factor() as f64;
    let index = from.family.units.iter().rposition(|u| smallest / u.factor as f64 >= 1.0);
    Known { family: from.family, index: index.unwrap_or(from.family.default) }
}

/// Converts a value to its best unit. An unknown unit has an empty symbol, as in pprof.
pub fn scale_auto(value: i64, unit: &str) -> Scaled {
    match find(unit) {
        Some(from) => {
            let to = best_unit(value as f64, from);
            Scaled { value: value as f64 * from.factor() as f64 / to.factor() as f64, symbol: to.unit().symbol }
        }
        None => Scaled { value: value as f64, symbol: "" },
    }
}

/// Converts a value like pprof's `Scale(value, from, to)`, which pprof's range filters use. Returns the value and the
/// name of the resulting unit.
pub fn convert(value: i64, from: &str, to: &str) -> (f64, String) {
    match (find(from), find(to)) {
        (Some(from), to) => {
            let default = Known { family: from.family, index: from.family.default };
            let to = to.filter(|to| to.same_family(from)).unwrap_or(default);
            (value as f64 * from.factor() as f64 / to.factor() as f64, to.unit().symbol.to_owned())
        }
        (None, _) => match to {
            "count" | "sample" | "unit" | "minimum" | "auto" => (value as f64, String::new()),
            _ => (value as f64, to.to_owned()),
        },
    }
}

/// Returns the units of a unit's family, for callers that scale values themselves: the symbol of each unit and its size
/// in `unit`, and the index of the unit for values that are too small for all others. Returns `None` if the unit is
/// unknown.
#[doc(hidden)]
pub fn family(unit: &str) -> Option<(Vec<(&'static str, f64)>, usize)> {
    let from = find(unit)?;
    let units = from.family.units.iter().map(|u| (u.symbol, u.factor as f64 / from.factor() as f64));
    Some((units.collect(), from.family.default))
}

/// Formats a value with two decimals and its unit. Omits a trailing `.00`, and the unit of zero.
pub fn format(scaled: Scaled) -> String {
    with_symbol(format!("{:.2}", scaled.value), scaled.symbol)
}

/// Formats like [`format`], but values less than 1 with three significant digits. Omits trailing zeros after the second
/// decimal.
fn format_significant(scaled: Scaled) -> String {
    let decimals = match scaled.value.abs() {
        v if v < 0.01 => 5,
        v if v < 0.1 => 4,
        v if v < 1.0 => 3,
        _ => 2,
    };
    let mut digits = format!("{:.decimals$}", scaled.value);
    let min_len = digits.len() - (decimals - 2);
    digits.truncate(digits.trim_end_matches('0').len().max(min_len));
    with_symbol(digits, scaled.symbol)
}

fn with_symbol(digits: String, symbol: &str) -> String {
    match digits.strip_suffix(".00").unwrap_or(&digits) {
        "0" | "-0" => "0".to_owned(),
        digits => format!("{digits}{symbol}"),
    }
}

/// Formats a value in its best unit. A value with an unknown unit is formatted with all its digits.
pub fn show(value: i64, unit: &str) -> String {
    match find(unit) {
        Some(_) => format(scale_auto(value, unit)),
        None => value.to_string(),
    }
}

/// Formats like [`show`], for values that need not be integers. A value with an unknown unit is rounded to two
/// decimals.
pub fn show_real(value: f64, unit: &str) -> String {
    format(match find(unit) {
        Some(from) => {
            let to = best_unit(value, from);
            Scaled { value: value * from.factor() as f64 / to.factor() as f64, symbol: to.unit().symbol }
        }
        None => Scaled { value, symbol: "" },
    })
}

/// The unit name that selects the best unit for each value.
#[doc(hidden)]
pub const AUTO: &str = "auto";

/// Iterates over a name of each unit that [`find`] accepts: its symbol, or else an alias. pprof prints `n*GCU`, but does
/// not read it.
#[doc(hidden)]
pub fn names() -> impl Iterator<Item = &'static str> {
    let name = |unit: &UnitEntry| if find(unit.symbol).is_some() { unit.symbol } else { unit.aliases[0] };
    FAMILIES.iter().flat_map(move |family| family.units.iter().map(name))
}

/// The minimum value to show in a column's unit. Smaller values would print as zero or nearly zero, so they use their
/// own best unit.
const MIN_IN_COLUMN_UNIT: f64 = 0.005;

/// A common unit for a column of numbers, which makes them easy to compare.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct ColumnUnit {
    from: Option<Known>,
    /// The column's unit; `None` to use the best unit for each value.
    to: Option<Known>,
    /// True if the user chose the unit, so that all values use it.
    is_explicit: bool,
}

impl ColumnUnit {
    /// Returns the best unit for the largest value in the column, so that this value has at least three significant
    /// digits. pprof derives a single unit for the whole report from the smallest value and the total, which shows
    /// seconds of difference between hours as `0.02hrs`.
    pub fn for_values(unit: &str, shown: impl Iterator<Item = i64>) -> ColumnUnit {
        let Some(from) = find(unit) else { return ColumnUnit { from: None, to: None, is_explicit: false } };
        let largest = shown.map(i64::unsigned_abs).max().unwrap_or(0);
        ColumnUnit { from: Some(from), to: Some(best_unit(largest as f64, from)), is_explicit: false }
    }

    /// Returns the unit that the user chose, if values in `unit` convert to it. [`AUTO`] uses the best unit for each
    /// value.
    pub fn asked(unit: &str, to: &str) -> Option<ColumnUnit> {
        let from = find(unit)?;
        let to = if to == AUTO { None } else { Some(find(to).filter(|to| to.same_family(from))?) };
        Some(ColumnUnit { from: Some(from), to, is_explicit: true })
    }

    /// Returns the unit's symbol and its size in the values' unit, for callers that scale values themselves. Returns
    /// `None` if the values' unit is unknown, or if each value has its own best unit.
    pub fn scale(self) -> Option<(&'static str, f64)> {
        let (from, to) = (self.from?, self.to?);
        Some((to.unit().symbol, to.factor() as f64 / from.factor() as f64))
    }

    /// Formats a value in the column's unit, with at least three significant digits if it has them. A value that would
    /// be nearly 0 uses its best unit instead. If the user chose the unit, all values have two decimals, as in pprof.
    pub fn format(self, value: i64) -> String {
        let Some(from) = self.from else { return value.to_string() };
        let to = self.to.unwrap_or_else(|| best_unit(value as f64, from));
        let in_unit = |to: Known| Scaled {
            value: value as f64 * from.factor() as f64 / to.factor() as f64,
            symbol: to.unit().symbol,
        };
        if self.is_explicit {
            return format(in_unit(to));
        }
        let scaled = in_unit(to);
        let to = if scaled.value.abs() < MIN_IN_COLUMN_UNIT { best_unit(value as f64, from) } else { to };
        format_significant(in_unit(to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(unit: &str, values: &[i64]) -> Vec<String> {
        let unit = ColumnUnit::for_values(unit, values.iter().copied());
        values.iter().map(|&v| unit.format(v)).collect()
    }

    #[test]
    fn the_largest_value_of_a_column_decides_its_unit() {
        let second = 1_000_000_000;
        assert_eq!(column("nanoseconds", &[54_310_000_000, -12 * second]), ["54.31s", "-12s"]);
        assert_eq!(column("nanoseconds", &[28_834 * second, -58 * second]), ["8.01hrs", "-0.0161hrs"]);
        assert_eq!(column("nanoseconds", &[2_076_818_260, 260]), ["2.08s", "260ns"]);
        // Values less than one have three significant digits.
        let small = [second, second / 2, 139_000_000, 20_000_000, 5_123_456, 4_999_999];
        assert_eq!(column("nanoseconds", &small), ["1s", "0.50s", "0.139s", "0.02s", "0.00512s", "5ms"]);
        assert_eq!(column("nanoseconds", &[0, i64::MIN]), ["0", "-2562047.79hrs"]);
        assert_eq!(column("bytes", &[-3 << 19, 1]), ["-1.50MB", "1B"]);
        assert_eq!(column("count", &[2_076_818, 1]), ["2076818", "1"]);
        assert_eq!(column("nanoseconds", &[]), [""; 0]);
    }

    #[test]
    fn each_offered_unit_is_found() {
        let factors = names().map(|name| find(name).map(Known::factor));
        let expected = FAMILIES.iter().flat_map(|family| family.units.iter().map(|unit| Some(unit.factor)));
        assert!(factors.eq(expected), "{:?}", names().collect::<Vec<_>>());
    }

    #[test]
    fn an_explicit_unit_applies_to_all_values() {
        let asked = |unit: &str, to: &str| {
            ColumnUnit::asked(unit, to).map(|unit| [1_500_000, 1].map(|v| unit.format(v)).join(" "))
        };
        assert_eq!(asked("nanoseconds", "ms").as_deref(), Some("1.50ms 0"));
        assert_eq!(asked("bytes", "kilobytes").as_deref(), Some("1464.84kB 0"));
        assert_eq!(asked("nanoseconds", AUTO).as_deref(), Some("1.50ms 1ns"));
        assert!(asked("nanoseconds", "MB").is_none() && asked("count", "MB").is_none());
    }
}
