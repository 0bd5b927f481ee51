//! Units of measurement: which belong together, and how they convert and print.
//!
//! The tables and the rules (aliases, powers of 1024 for bytes, a plural `s`) are pprof's, so that
//! numbers print alike. Factors are integers of each family's smallest unit, so converting to a finer
//! unit is exact.

/// One unit: how it prints, what it is also called, and how many of the family's smallest it is.
struct Unit {
    symbol: &'static str,
    aliases: &'static [&'static str],
    factor: i128,
}

/// Units that convert into each other.
pub struct Family {
    units: &'static [Unit],
    /// The unit in which values are shown that are too small for all others (pprof: seconds, bytes).
    default: usize,
}

const fn unit(symbol: &'static str, aliases: &'static [&'static str], factor: i128) -> Unit {
    Unit { symbol, aliases, factor }
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

/// A unit that is known, by its family and its place in it.
#[derive(Clone, Copy)]
pub struct Known {
    family: &'static Family,
    index: usize,
}

/// Looks a unit up by any of its names; `None` if pprof does not know it either (`count`, `objects`).
pub fn find(name: &str) -> Option<Known> {
    let name = name.to_lowercase();
    let name = if name.chars().count() > 2 { name.strip_suffix('s').unwrap_or(&name) } else { &name };
    FAMILIES.iter().find_map(|family| {
        let index = family.units.iter().position(|u| u.aliases.contains(&name))?;
        Some(Known { family, index })
    })
}

impl Known {
    fn unit(self) -> &'static Unit {
        &self.family.units[self.index]
    }

    /// True if the two convert into each other.
    pub fn same_family(self, other: Known) -> bool {
        std::ptr::eq(self.family, other.family)
    }

    /// How many of the family's smallest unit this is.
    pub fn factor(self) -> i128 {
        self.unit().factor
    }
}

/// A value and the unit it is shown in.
#[derive(Clone, Copy)]
pub struct Scaled {
    /// In the unit of `symbol`.
    pub value: f64,
    /// How the unit prints.
    pub symbol: &'static str,
}

/// The unit that suits a value: the largest in which it is at least 1.
fn suited(value: f64, from: Known) -> Known {
    let smallest = value.abs() * from.factor() as f64;
    let index = from.family.units.iter().rposition(|u| smallest / u.factor as f64 >= 1.0);
    Known { family: from.family, index: index.unwrap_or(from.family.default) }
}

/// A value in the unit that suits it. An unknown unit has no symbol, as in pprof.
pub fn scale_auto(value: i64, unit: &str) -> Scaled {
    match find(unit) {
        Some(from) => {
            let to = suited(value as f64, from);
            Scaled { value: value as f64 * from.factor() as f64 / to.factor() as f64, symbol: to.unit().symbol }
        }
        None => Scaled { value: value as f64, symbol: "" },
    }
}

/// `Scale(value, from, to)` of pprof, which its range filters compare with: the value in unit `to`,
/// and the name of the unit that came out of it.
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

/// For callers that scale values themselves: the symbols of a unit's family, how many of `unit` each is, and which
/// of them shows values that are too small for all. `None` if the unit is unknown.
pub fn family(unit: &str) -> Option<(Vec<(&'static str, f64)>, usize)> {
    let from = find(unit)?;
    let units = from.family.units.iter().map(|u| (u.symbol, u.factor as f64 / from.factor() as f64));
    Some((units.collect(), from.family.default))
}

/// Two decimals, of which a trailing `.00` is cut, and the unit; zero has none.
pub fn format(scaled: Scaled) -> String {
    with_symbol(format!("{:.2}", scaled.value), scaled.symbol)
}

/// As [`format`], but less than 1 with three significant digits, of which zeros beyond the second decimal are cut.
fn format_significant(scaled: Scaled) -> String {
    let decimals = match scaled.value.abs() {
        v if v < 0.01 => 5,
        v if v < 0.1 => 4,
        v if v < 1.0 => 3,
        _ => 2,
    };
    let mut digits = format!("{:.decimals$}", scaled.value);
    let least = digits.len() - (decimals - 2);
    digits.truncate(digits.trim_end_matches('0').len().max(least));
    with_symbol(digits, scaled.symbol)
}

fn with_symbol(digits: String, symbol: &str) -> String {
    match digits.strip_suffix(".00").unwrap_or(&digits) {
        "0" | "-0" => "0".to_owned(),
        digits => format!("{digits}{symbol}"),
    }
}

/// A value in the unit that suits it; one of an unknown unit in digits, all of them.
pub fn show(value: i64, unit: &str) -> String {
    match find(unit) {
        Some(_) => format(scale_auto(value, unit)),
        None => value.to_string(),
    }
}

/// As [`show`], of a value that need not be whole; of an unknown unit with two decimals.
pub fn show_real(value: f64, unit: &str) -> String {
    format(match find(unit) {
        Some(from) => {
            let to = suited(value, from);
            Scaled { value: value * from.factor() as f64 / to.factor() as f64, symbol: to.unit().symbol }
        }
        None => Scaled { value, symbol: "" },
    })
}

/// Asks for the unit that suits each value by itself.
pub const AUTO: &str = "auto";

/// All units, as they print.
pub fn symbols() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().flat_map(|family| family.units.iter().map(|unit| unit.symbol))
}

/// What is less in a column's unit is shown in the unit that suits it: it would be zero, or nearly.
const LEAST: f64 = 0.005;

/// One unit for a column of numbers, so that they compare at a glance.
#[derive(Clone, Copy)]
pub struct ColumnUnit {
    from: Option<Known>,
    /// `None`: that which suits each value.
    to: Option<Known>,
    /// Asked for, so that no value is shown in another one.
    asked: bool,
}

impl ColumnUnit {
    /// The unit that suits the largest of the values shown, which so has at least three significant digits. pprof takes
    /// one for a whole report, from the smallest value and the total: seconds of difference between hours become
    /// `0.02hrs`.
    pub fn for_values(unit: &str, shown: impl Iterator<Item = i64>) -> ColumnUnit {
        let Some(from) = find(unit) else { return ColumnUnit { from: None, to: None, asked: false } };
        let largest = shown.map(i64::unsigned_abs).max().unwrap_or(0);
        ColumnUnit { from: Some(from), to: Some(suited(largest as f64, from)), asked: false }
    }

    /// The unit that a user asks for, if values of `unit` convert to it; [`AUTO`] is none for all.
    pub fn asked(unit: &str, to: &str) -> Option<ColumnUnit> {
        let from = find(unit)?;
        let to = if to == AUTO { None } else { Some(find(to).filter(|to| to.same_family(from))?) };
        Some(ColumnUnit { from: Some(from), to, asked: true })
    }

    /// For callers that scale values themselves: how the unit prints, and how many of the values' own it is. `None` if
    /// theirs is unknown, or if each value has a unit of its own.
    pub fn scale(self) -> Option<(&'static str, f64)> {
        let (from, to) = (self.from?, self.to?);
        Some((to.unit().symbol, to.factor() as f64 / from.factor() as f64))
    }

    /// A value in the column's unit, as text, with at least three significant digits where it has them; one that would be
    /// nearly 0 is shown in the unit that suits it. In a unit that was asked for all values have two decimals, as in pprof.
    pub fn format(self, value: i64) -> String {
        let Some(from) = self.from else { return value.to_string() };
        let to = self.to.unwrap_or_else(|| suited(value as f64, from));
        let in_unit = |to: Known| Scaled {
            value: value as f64 * from.factor() as f64 / to.factor() as f64,
            symbol: to.unit().symbol,
        };
        if self.asked {
            return format(in_unit(to));
        }
        let scaled = in_unit(to);
        let to = if scaled.value.abs() < LEAST { suited(value as f64, from) } else { to };
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
        // Three significant digits of what is less than one.
        let small = [second, second / 2, 139_000_000, 20_000_000, 5_123_456, 4_999_999];
        assert_eq!(column("nanoseconds", &small), ["1s", "0.50s", "0.139s", "0.02s", "0.00512s", "5ms"]);
        assert_eq!(column("nanoseconds", &[0, i64::MIN]), ["0", "-2562047.79hrs"]);
        assert_eq!(column("bytes", &[-3 << 19, 1]), ["-1.50MB", "1B"]);
        assert_eq!(column("count", &[2_076_818, 1]), ["2076818", "1"]);
        assert_eq!(column("nanoseconds", &[]), [""; 0]);
    }

    #[test]
    fn a_unit_that_is_asked_for_is_that_of_all_values() {
        let asked = |unit: &str, to: &str| {
            ColumnUnit::asked(unit, to).map(|unit| [1_500_000, 1].map(|v| unit.format(v)).join(" "))
        };
        assert_eq!(asked("nanoseconds", "ms").as_deref(), Some("1.50ms 0"));
        assert_eq!(asked("bytes", "kilobytes").as_deref(), Some("1464.84kB 0"));
        assert_eq!(asked("nanoseconds", AUTO).as_deref(), Some("1.50ms 1ns"));
        assert!(asked("nanoseconds", "MB").is_none() && asked("count", "MB").is_none());
    }
}
