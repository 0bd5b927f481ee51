//! Limits, exact: decimals, which are compared with whole numbers of halves.
//!
//! Nothing is divided or rounded before a verdict: both sides of a comparison are multiplied out in i128. Only one of
//! them can be too large for that (each function says which), and it saturates, which leaves it the larger one.

use std::str::FromStr;

use crate::runs::Halves;

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
        self.percentage(value) > self.digits.saturating_mul(of.twice().abs())
    }

    /// By how many percent of the other's magnitude the value is above this many. The sign is exact.
    pub(super) fn excess(self, value: Halves, of: Halves) -> f64 {
        let above = self.percentage(value).saturating_sub(self.digits.saturating_mul(of.twice().abs()));
        match of.twice() {
            0 if above <= 0 => -self.to_f64(), // nothing of nothing
            whole => above as f64 / self.scale() as f64 / whole.abs() as f64,
        }
    }

    /// Is the value's magnitude at least this many percent of another?
    pub(super) fn is_reached_by(self, value: Halves, of: Halves) -> bool {
        self.percentage(value.abs()) >= self.digits.saturating_mul(of.twice().abs())
    }

    fn percentage(self, value: Halves) -> i128 {
        value.twice().saturating_mul(100 * self.scale())
    }

    /// Is the value more than this? Each has its unit's factor, of which one divides the other; so one of them
    /// becomes 1, and the side of the other may saturate.
    pub(super) fn is_exceeded(self, value: Halves, (unit, own): (i128, i128)) -> bool {
        let common = if unit < own { unit } else { own }.max(1);
        let (unit, own) = (unit / common, own / common);
        value.twice().saturating_mul(self.scale()).saturating_mul(unit) > (2 * self.digits).saturating_mul(own)
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
}
