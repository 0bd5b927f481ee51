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

/// For those who scale values themselves: the symbols of a unit's family, how many of `unit` each is, and which
/// of them shows values that are too small for all. `None` if the unit is unknown.
pub fn family(unit: &str) -> Option<(Vec<(&'static str, f64)>, usize)> {
    let from = find(unit)?;
    let units = from.family.units.iter().map(|u| (u.symbol, u.factor as f64 / from.factor() as f64));
    Some((units.collect(), from.family.default))
}

/// Two decimals, of which a trailing `.00` is cut, and the unit; zero has none.
pub fn format(scaled: Scaled) -> String {
    let digits = format!("{:.2}", scaled.value);
    match digits.strip_suffix(".00").unwrap_or(&digits) {
        "0" | "-0" => "0".to_owned(),
        digits => format!("{digits}{}", scaled.symbol),
    }
}

/// A value in the unit that suits it; one of an unknown unit in digits, all of them.
pub fn show(value: i64, unit: &str) -> String {
    match find(unit) {
        Some(_) => format(scale_auto(value, unit)),
        None => value.to_string(),
    }
}

/// One unit for a whole report, so that its numbers compare at a glance.
#[derive(Clone, Copy)]
pub struct ReportUnit {
    from: Option<Known>,
    to: Option<Known>,
}

impl ReportUnit {
    /// pprof's choice: the unit that suits the smallest non-zero value shown; but if the total suits
    /// another one and is over a hundred times as large, the unit that suits a hundred times it.
    pub fn choose(unit: &str, values: impl Iterator<Item = i64>, total: i64) -> ReportUnit {
        let Some(from) = find(unit) else { return ReportUnit { from: None, to: None } };
        let total = total as f64;
        let smallest = values.filter(|&v| v != 0).map(i64::unsigned_abs).min().map_or(total, |v| v as f64);
        let mut to = suited(smallest, from);
        if to.index != suited(total, from).index && smallest * 100.0 < total {
            to = suited(smallest * 100.0, from);
        }
        ReportUnit { from: Some(from), to: Some(to) }
    }

    /// A value in the unit that was chosen, as text.
    pub fn format(self, value: i64) -> String {
        match (self.from, self.to) {
            (Some(from), Some(to)) => {
                let value = value as f64 * from.factor() as f64 / to.factor() as f64;
                format(Scaled { value, symbol: to.unit().symbol })
            }
            _ => value.to_string(),
        }
    }
}
