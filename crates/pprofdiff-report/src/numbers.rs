//! Formats numbers for people: a row's relative growth, the share of the total that its change has, and costs with one
//! unit per column.
//!
//! Growth and share answer different questions about the same change, so each has its own column or words. All formats
//! use the functions here; the page's script repeats the rules in `data.js`.

use std::io::{self, Write};

use pprofdiff::units::{self, ColumnUnit};
use pprofdiff::{Pair, Side, Summary};

/// The minimum ratio of new to base for showing growth as a factor (`x2`) instead of a percentage.
const FACTOR_FROM: f64 = 2.0;

/// Formats a row's growth relative to its own base: `x5.06` from twice the base on, otherwise `+12.3%` or `-30%`; `new`
/// or `gone` if one side is zero; `0%` without a change. Returns `-` if both sides are zero or a value is negative.
pub fn growth(p: Pair) -> String {
    match (p.base, p.new) {
        (0, 0) => "-".to_owned(),
        (0, 1..) => "new".to_owned(),
        (1.., 0) => "gone".to_owned(),
        (1.., 1..) => growth_of(p.base as f64, p.delta() as f64),
        _ => "-".to_owned(),
    }
}

/// Formats growth like [`growth`] for real numbers. `base` and `base + delta` must be positive.
pub(crate) fn growth_of(base: f64, delta: f64) -> String {
    let times = 1.0 + delta / base;
    if times >= FACTOR_FROM {
        return format!("x{}", three_digits(times));
    }
    let percent = 100.0 * delta / base;
    match percent {
        0.0 => "0%".to_owned(),
        _ if percent.abs() < 0.005 => below_smallest(percent),
        // Cap at 99.99%: a remainder above zero must not be rounded to zero.
        _ if percent < -99.0 => format!("-{}%", two_decimals(percent.abs().min(99.99))),
        _ => format!("{}{}%", if percent > 0.0 { "+" } else { "-" }, three_digits(percent.abs())),
    }
}

/// Returns a value in percent of a total, or `None` if the total is 0.
pub fn share(value: i64, total: i64) -> Option<f64> {
    (total != 0).then(|| 100.0 * value as f64 / total as f64)
}

/// Formats a share: `+4.21%`, `+147.8%`, or unsigned `8.53%`. Returns `-` for `None`.
pub fn share_text(share: Option<f64>, signed: bool) -> String {
    let Some(percent) = share else { return "-".to_owned() };
    let sign = match percent {
        0.0 => return "0%".to_owned(),
        p if p < 0.0 => "-",
        _ if signed => "+",
        _ => "",
    };
    match percent.abs() {
        p if p < 0.005 && signed => below_smallest(percent),
        p if p < 0.005 => "<0.01%".to_owned(),
        p if p < 99.995 => format!("{sign}{p:.2}%"),
        p if p < 999.95 => format!("{sign}{p:.1}%"),
        p => format!("{sign}{p:.0}%"),
    }
}

/// Formats a percentage that would round to zero as `+<0.01%` or `-<0.01%`, so that it does not read as zero.
fn below_smallest(percent: f64) -> String {
    format!("{}<0.01%", if percent > 0.0 { "+" } else { "-" })
}

/// Formats a number of at least 0 with up to three significant digits and at most two decimals, without trailing zeros.
/// Numbers from 99.95 on are rounded to whole numbers, which keep all their digits.
fn three_digits(v: f64) -> String {
    match v {
        v if v < 9.995 => two_decimals(v),
        v if v < 99.95 => format!("{v:.1}").trim_end_matches(".0").to_owned(),
        v => format!("{v:.0}"),
    }
}

fn two_decimals(v: f64) -> String {
    let digits = format!("{v:.2}");
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a count with its noun: `1 frame`, `2 frames`.
pub fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// Formats a truncated count, `3 of 29 frames`, or a complete one, `29 frames`.
pub fn counted_of(shown: usize, all: usize, noun: &str) -> String {
    if shown < all { format!("{shown} of {}", counted(all, noun)) } else { counted(all, noun) }
}

/// Describes the size of a side: its number of stacks, and the number of samples if a sample type counts them.
pub fn extent(side: &Side) -> String {
    let stacks = counted(side.samples, "stack");
    match side.counted {
        Some(1) => format!("{stacks}, 1 sample"),
        Some(n) => format!("{stacks}, {n} samples"),
        None => stacks,
    }
}

/// Formats the standard deviation of runs relative to their mean: `3.1%`, or `12%` from 10% on. Returns `-` without a
/// deviation or if the mean is 0.
pub(crate) fn spread_text(deviation: Option<f64>, mean: i64) -> String {
    match deviation {
        Some(deviation) if mean != 0 => match 100.0 * deviation / (mean as f64).abs() {
            percent if percent >= 9.95 || percent == 0.0 => format!("{percent:.0}%"),
            percent => format!("{percent:.1}%"),
        },
        _ => "-".to_owned(),
    }
}

/// Formats the smallest growth that would have been detected: `+4.2%`, `+31%`, `x12`. `factor` is the ratio minus one.
pub(crate) fn least_growth(factor: f64) -> String {
    match 100.0 * factor {
        percent if percent < 9.95 => format!("+{percent:.1}%"),
        percent if percent < 899.5 => format!("+{percent:.0}%"),
        percent => format!("x{:.0}", 1.0 + percent / 100.0),
    }
}

/// Formats a p-value in a sentence: `p = 0.003`, or `p < 0.001`.
pub(crate) fn p_words(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

/// Formats a p-value in a column: `0.003`, or `<0.001`.
pub(crate) fn p_text(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { format!("{p:.3}") }
}

/// Writes all digits of a number in one call, because tables consist mostly of numbers. Almost all numbers fit into 64
/// bits, and formatting those takes a third of the time.
pub(crate) fn write_integer(out: &mut dyn Write, value: i128) -> io::Result<()> {
    match i64::try_from(value) {
        Ok(value) => Ok(serde_json::to_writer(out, &value)?),
        Err(_) => out.write_all(value.to_string().as_bytes()),
    }
}

/// Returns the total that shares refer to: the base's total, or the total of a single profile.
pub fn whole(s: &Summary) -> i64 {
    if s.base.is_some() { s.total.base } else { s.total.new }
}

/// Formats a number, with a plus sign if it is positive.
pub fn signed(value: i64, unit: ColumnUnit) -> String {
    format!("{}{}", if value > 0 { "+" } else { "" }, unit.format(value))
}

/// Deltas get a smaller unit of their own if the magnitude of each is below this value in the unit of the sides.
const SMALL: f64 = 0.1;

/// Formats costs. Both sides and the delta share one unit, chosen for the values shown, so that equal values read the
/// same. Deltas get a smaller unit if all of them are below `SMALL` in that unit, unless a delta equals a side (as
/// for added and removed rows). If the query sets a unit of the same kind, sides and deltas are always in that unit.
#[derive(Debug, Clone, Copy)]
pub struct CostFormat {
    /// The unit of both sides.
    pub sides: ColumnUnit,
    /// The unit of the delta.
    pub delta: ColumnUnit,
    two_sided: bool,
}

impl CostFormat {
    /// Creates a format for the values of a table with this summary.
    pub fn new(s: &Summary, shown: impl Iterator<Item = Pair> + Clone) -> CostFormat {
        CostFormat::for_values(s, s.base.is_some(), shown)
    }

    /// Creates a format in the query's unit, or in a unit that fits the values. The table may be two-sided although its
    /// summary is not, or the reverse.
    pub fn for_values(s: &Summary, two_sided: bool, shown: impl Iterator<Item = Pair> + Clone) -> CostFormat {
        match s.query.unit.as_deref().and_then(|to| ColumnUnit::asked(&s.unit, to)) {
            Some(unit) => CostFormat { sides: unit, delta: unit, two_sided },
            None => CostFormat::in_unit(&s.unit, two_sided, shown),
        }
    }

    /// Creates a format in a unit that fits the values, whose own unit is `unit`.
    pub fn in_unit(unit: &str, two_sided: bool, shown: impl Iterator<Item = Pair> + Clone) -> CostFormat {
        let sides = ColumnUnit::for_values(unit, shown.clone().flat_map(|p| [p.base, p.new]));
        let deltas = shown.clone().map(Pair::delta);
        let in_sides = |delta: i64| sides.scale().map_or(f64::INFINITY, |(_, unit)| delta.abs() as f64 / unit);
        let is_side = |p: Pair| p.delta() != 0 && [p.base, p.new].iter().any(|v| v.abs() == p.delta().abs());
        let are_small = deltas.clone().all(|delta| in_sides(delta) < SMALL) && !shown.clone().any(is_side);
        CostFormat { sides, delta: if are_small { ColumnUnit::for_values(unit, deltas) } else { sides }, two_sided }
    }

    /// Formats both sides, delta and growth: `3.88s -> 19.65s  +15.77s  x5.06`.
    pub fn change(self, p: Pair, arrow: &str) -> String {
        let (base, new) = (self.sides.format(p.base), self.sides.format(p.new));
        format!("{base} {arrow} {new}  {}  {}", signed(p.delta(), self.delta), growth(p))
    }

    /// Formats a change with its share, `3.88s -> 19.65s  +15.77s  x5.06  +147.8% of total`, or the cost of a single
    /// profile, `0.25s (8.53%)`. Returns `0` if both sides of a diff are zero. Omits a diff's share if `total` is 0.
    pub fn words(self, p: Pair, total: i64, arrow: &str) -> String {
        match (self.two_sided, share(p.delta(), total)) {
            (true, _) if p == Pair::default() => "0".to_owned(),
            (true, None) => self.change(p, arrow),
            (true, share) => format!("{}  {} of total", self.change(p, arrow), share_text(share, true)),
            (false, share) => format!("{} ({})", self.sides.format(p.new), share_text(share, false)),
        }
    }
}

/// Formats a ratio of two sample types in the unit of the first. Returns `-` for `None`.
pub(crate) fn ratio_text(ratio: Option<f64>, unit: &str) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| units::show_real(ratio, unit))
}

/// Formats a number without a unit: as a whole number from 9.95 on, with two decimals from 0.095 on and for 0, and with
/// three decimals below.
pub(crate) fn figure(x: f64) -> String {
    match x.abs() {
        a if a >= 9.95 => format!("{x:.0}"),
        a if a >= 0.095 || a == 0.0 => format!("{x:.2}"),
        _ => format!("{x:.3}"),
    }
}

/// Formats the total of a single profile, or both totals with their delta and growth. With a p-value, appends it, and
/// with a rank test also appends that test's p-value and the standard deviations of both sides' runs.
pub fn total(s: &Summary, arrow: &str) -> String {
    let cost = CostFormat::new(s, std::iter::once(s.total));
    if s.base.is_none() {
        return cost.sides.format(s.total.new);
    }
    let change = cost.change(s.total, arrow);
    let Some(chance) = s.chance else { return change };
    let Some(p) = chance.p.map(p_words) else { return change };
    let Some(rank_p) = chance.rank_p else { return format!("{change}  {p}") };
    let spread = [(chance.base_sd, s.total.base), (chance.new_sd, s.total.new)].map(|(sd, mean)| spread_text(sd, mean));
    format!("{change}  {p} (Mann-Whitney {rank_p:.3}; runs differ by {} and {})", spread[0], spread[1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::WriteCounter;

    #[test]
    fn integers_are_exact_and_written_in_one_call() {
        for value in [0, -1, 1965, i64::MIN.into(), i64::MAX.into(), u64::MAX.into(), i128::MIN, i128::MAX] {
            let mut out = WriteCounter::default();
            assert!(write_integer(&mut out, value).is_ok());
            assert_eq!((out.calls, String::from_utf8(out.written)), (1, Ok(value.to_string())));
        }
    }

    #[test]
    fn figures_have_two_or_three_digits() {
        assert_eq!([21.4, 1.5, 0.04, 0.0].map(figure), ["21", "1.50", "0.040", "0.00"]);
    }

    #[test]
    fn growth_is_relative_to_the_rows_own_base() {
        let max = i64::MAX / 2;
        for (base, new, expected) in [
            (388, 1965, "x5.06"),
            (100, 200, "x2"),
            (100, 199, "+99%"),
            (1000, 1999, "+99.9%"),
            (100, 112, "+12%"),
            (1000, 1123, "+12.3%"),
            (100, 70, "-30%"),
            (10_000, 9_947, "-0.53%"),
            (100_000, 1, "-99.99%"),
            (1_000_000, 1, "-99.99%"),
            (1, 1234, "x1234"),
            (10, 123, "x12.3"),
            (max - 1, max, "+<0.01%"),
            (max, max - 1, "-<0.01%"),
            (0, 5, "new"),
            (5, 0, "gone"),
            (5, 5, "0%"),
            (0, 0, "-"),
            (-5, 5, "-"),
            (5, -5, "-"),
            (0, -5, "-"),
        ] {
            assert_eq!(growth(Pair { base, new }), expected, "{base} {new}");
        }
    }

    #[test]
    fn shares_are_relative_to_the_total() {
        for (value, total, signed, expected) in [
            (1577, 1067, true, "+147.8%"),
            (8, 190, true, "+4.21%"),
            (8, 190, false, "4.21%"),
            (-1, 190, true, "-0.53%"),
            (-1, 190, false, "-0.53%"),
            (1, 1, true, "+100.0%"),
            (50, 1, true, "+5000%"),
            (1, 1 << 40, true, "+<0.01%"),
            (-1, 1 << 40, true, "-<0.01%"),
            (1, 1 << 40, false, "<0.01%"),
            (0, 190, true, "0%"),
            (5, 0, true, "-"),
        ] {
            assert_eq!(share_text(share(value, total), signed), expected, "{value} of {total}");
        }
    }

    #[test]
    fn a_count_of_one_is_singular() {
        assert_eq!((counted(1, "frame"), counted(2, "frame")), ("1 frame".into(), "2 frames".into()));
        assert_eq!(counted_of(1, 1, "stack"), "1 stack");
        assert_eq!(counted_of(1, 2, "stack"), "1 of 2 stacks");
    }
}
