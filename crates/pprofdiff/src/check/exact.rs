//! Exact comparisons with limits: decimal numbers against whole numbers of halves.
//!
//! Verdicts need no division and no rounding: both sides of a comparison are multiplied out in i128. Only one side can
//! overflow, and each function documents which. The overflowing side saturates, and is still the larger side.

use std::str::FromStr;

use crate::runs::Halves;

/// The maximum number of digits of a decimal, before and after the point together. With more, both sides of a
/// comparison could overflow.
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

    /// Converts to floating point, for display and for the test of chance. Comparisons with limits stay exact.
    pub(super) fn to_f64(self) -> f64 {
        self.digits as f64 / self.scale() as f64
    }

    /// Returns true if `value` exceeds this percentage of the magnitude of `whole`. The product with
    /// `value` may saturate.
    pub(super) fn is_exceeded_percentage(self, value: Halves, whole: Halves) -> bool {
        self.percentage(value) > self.digits.saturating_mul(whole.twice().abs())
    }

    /// Returns the percentage that `value` is of the magnitude of `whole`, minus this percentage. The magnitude is
    /// rounded, while the sign is exact. A value of 0 or less counts as 0 percent of a `whole` of 0; the result is
    /// infinite for a larger value.
    pub(super) fn excess(self, value: Halves, whole: Halves) -> f64 {
        let above = self.percentage(value).saturating_sub(self.digits.saturating_mul(whole.twice().abs()));
        match whole.twice() {
            0 if above <= 0 => -self.to_f64(), // 0 percent of 0
            whole => above as f64 / self.scale() as f64 / whole.abs() as f64,
        }
    }

    /// Returns true if the magnitude of `value` is at least this percentage of the magnitude of `whole`.
    pub(super) fn is_reached_by(self, value: Halves, whole: Halves) -> bool {
        self.percentage(value.abs()) >= self.digits.saturating_mul(whole.twice().abs())
    }

    fn percentage(self, value: Halves) -> i128 {
        value.twice().saturating_mul(100 * self.scale())
    }

    /// Returns true if `value` exceeds this decimal. The pair holds the factor of the value's unit and of the limit's
    /// unit. The larger factor is a multiple of the smaller, so the smaller reduces to 1, and only the product with the
    /// larger may saturate.
    pub(super) fn is_exceeded(self, value: Halves, (unit, limit_unit): (i128, i128)) -> bool {
        let common = if unit < limit_unit { unit } else { limit_unit }.max(1);
        let (unit, limit_unit) = (unit / common, limit_unit / common);
        value.twice().saturating_mul(self.scale()).saturating_mul(unit) > (2 * self.digits).saturating_mul(limit_unit)
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

    /// Saturated products still compare correctly.
    #[test]
    fn saturated_values_compare_correctly() {
        let (largest, smallest) = (decimal("999999999999999999"), decimal("0.000000000000000001"));
        let (highest, lowest) = (Halves::from(i64::MAX), Halves::from(i64::MIN));
        assert!(smallest.is_exceeded_percentage(highest, highest) && !smallest.is_exceeded_percentage(lowest, highest));
        assert!(
            !largest.is_exceeded_percentage(highest, highest)
                && largest.is_exceeded_percentage(highest, Halves::from(1))
        );
        let units = 1_000_000_000_000_000_000_000_000;
        assert!(!largest.is_exceeded(highest, (1, units)) && smallest.is_exceeded(highest, (units, 1)));
        assert!(
            !smallest.is_exceeded(lowest, (units, 1)) && decimal("-999999999999999999").is_exceeded(lowest, (1, units))
        );
    }
}
