//! Numbers of the check, exact: limits are decimals, medians are whole numbers of halves.
//!
//! Nothing is divided or rounded before a verdict: both sides of a comparison are multiplied out in i128. Only one of
//! them can be too large for that (each function says which), and it saturates, which leaves it the larger one.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// Most digits of a decimal, and most of them behind the point.
const DIGITS: usize = 18;

/// A decimal number: `digits / 10^places`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: i128,
    places: u32,
}

impl Decimal {
    pub(super) const fn whole(value: i64) -> Decimal {
        Decimal { digits: value as i128, places: 0 }
    }

    fn scale(self) -> i128 {
        10_i128.pow(self.places)
    }

    /// For display; verdicts do not use it.
    pub(super) fn to_f64(self) -> f64 {
        self.digits as f64 / self.scale() as f64
    }

    /// Is the value more than this many percent of another (of its magnitude)? The value's side may saturate.
    pub(super) fn is_exceeded_percentage(self, value: Halves, of: Halves) -> bool {
        self.percentage(value) > self.digits.saturating_mul(of.0.abs())
    }

    /// Is the value's magnitude at least this many percent of another?
    pub(super) fn is_reached_by(self, value: Halves, of: Halves) -> bool {
        self.percentage(Halves(value.0.abs())) >= self.digits.saturating_mul(of.0.abs())
    }

    fn percentage(self, value: Halves) -> i128 {
        value.0.saturating_mul(100 * self.scale())
    }

    /// Is the value more than this? Each has its unit's factor, of which one divides the other; so one of them
    /// becomes 1, and the side of the other may saturate.
    pub(super) fn is_exceeded(self, value: Halves, (unit, own): (i128, i128)) -> bool {
        let common = if unit < own { unit } else { own }.max(1);
        let (unit, own) = (unit / common, own / common);
        value.0.saturating_mul(self.scale()).saturating_mul(unit) > (2 * self.digits).saturating_mul(own)
    }
}

impl FromStr for Decimal {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Decimal, &'static str> {
        let (negative, number) = match text.strip_prefix(['+', '-']) {
            Some(number) => (text.starts_with('-'), number),
            None => (false, text),
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        if whole.len() + part.len() == 0 || !whole.bytes().chain(part.bytes()).all(|b| b.is_ascii_digit()) {
            return Err("it is not a decimal number");
        }
        let (whole, part) = (whole.trim_start_matches('0'), part.trim_end_matches('0'));
        if whole.len() + part.len() > DIGITS {
            return Err("it has more than 18 digits");
        }
        let digits = whole.bytes().chain(part.bytes()).fold(0_i128, |n, b| n * 10 + i128::from(b - b'0'));
        Ok(Decimal { digits: if negative { -digits } else { digits }, places: part.len() as u32 })
    }
}

/// A whole number of halves, exact: a median of an even number of runs may lie between two values.
///
/// As JSON a whole number where it is one; else a floating-point number, which beyond 2^52 is the nearest whole one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Halves(i128);

impl Halves {
    /// The median of at least one value, sorted.
    pub(super) fn median(sorted: &[i64]) -> Halves {
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Halves(i128::from(low) + i128::from(high))
    }

    pub(super) fn minus(self, other: Halves) -> Halves {
        Halves(self.0 - other.0)
    }

    /// The number over another, as a quotient of whole numbers: exact, unless the other is so large that twice it is
    /// no int64.
    pub(super) fn over(self, other: i64) -> (i64, i64) {
        match (self.whole(), i64::try_from(self.0).ok().zip(other.checked_mul(2))) {
            (None, Some(doubled)) => doubled,
            _ => (self.round(), other),
        }
    }

    /// Twice the number.
    pub fn twice(self) -> i128 {
        self.0
    }

    /// The number, if it is whole and an int64.
    pub fn whole(self) -> Option<i64> {
        if self.0 % 2 == 0 { i64::try_from(self.0 / 2).ok() } else { None }
    }

    /// The nearest whole number, halves away from zero; at the ends of int64 the end.
    pub fn round(self) -> i64 {
        let away = (self.0.abs() + 1) / 2 * self.0.signum();
        away.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// The nearest floating-point number.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / 2.0
    }
}

impl From<i64> for Halves {
    fn from(value: i64) -> Halves {
        Halves(2 * i128::from(value))
    }
}

impl fmt::Display for Halves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let half = if self.0 % 2 == 0 { "" } else { ".5" };
        write!(f, "{sign}{}{half}", self.0.abs() / 2)
    }
}

impl Serialize for Halves {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.whole() {
            Some(whole) => serializer.serialize_i64(whole),
            None => serializer.serialize_f64(self.to_f64()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Decimal, Halves};

    fn decimal(text: &str) -> Decimal {
        text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn decimals_are_read_exactly() {
        for (text, digits, places) in [
            ("5", 5, 0),
            ("+5", 5, 0),
            ("-0.290", -29, 2),
            (".5", 5, 1),
            ("5.", 5, 0),
            ("000999999999999999999", 999_999_999_999_999_999, 0),
            ("0.000000000000000001", 1, 18),
        ] {
            assert_eq!(decimal(text), Decimal { digits, places }, "{text}");
        }
        for text in ["", "+", ".", "-.", "1.2.3", "+-1", "1000000000000000000", "0.0000000000000000001"] {
            assert!(text.parse::<Decimal>().is_err(), "{text}");
        }
    }

    /// What saturates is still compared rightly.
    #[test]
    fn the_ends_of_all_ranges_compare() {
        let (largest, smallest) = (decimal("999999999999999999"), decimal("0.000000000000000001"));
        let (most, least) = (Halves::from(i64::MAX), Halves::from(i64::MIN));
        assert!(smallest.is_exceeded_percentage(most, most) && !smallest.is_exceeded_percentage(least, most));
        assert!(!largest.is_exceeded_percentage(most, most) && largest.is_exceeded_percentage(most, Halves::from(1)));
        let units = 1_000_000_000_000_000_000_000_000;
        assert!(!largest.is_exceeded(most, (1, units)) && smallest.is_exceeded(most, (units, 1)));
        assert!(
            !smallest.is_exceeded(least, (units, 1)) && decimal("-999999999999999999").is_exceeded(least, (1, units))
        );
    }

    #[test]
    fn halves_print_and_round() {
        for (twice, text, round) in [(0, "0", 0), (3, "1.5", 2), (-3, "-1.5", -2), (-1, "-0.5", -1), (8, "4", 4)] {
            assert_eq!((Halves(twice).to_string().as_str(), Halves(twice).round()), (text, round));
        }
        assert_eq!(Halves::median(&[i64::MAX, i64::MAX]).round(), i64::MAX);
        assert_eq!(Halves::median(&[1, 2, 4, 9]).twice(), 6);
    }
}
