//! Scales sums. A side's value is the mean over its runs. The new side can be normalized to the base, so that runs of
//! different length compare.
//!
//! Each exact sum is scaled and rounded once. pprof rounds every sample, so its sums can differ by half a unit per
//! sample. The mean over runs is also a scale, so all views support it.

use serde::{Deserialize, Serialize};

use super::Pair;
use crate::{Error, Result};

/// The rule for scaling the new side.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Normalize {
    /// Does not scale.
    #[default]
    None,
    /// Makes both totals equal, so that the remaining change is a change of shares. Totals are taken before filters, as
    /// in pprof.
    Total,
    /// Scales by the durations of the two sides, so that the remaining change is a change of rates.
    Duration,
    /// Scales by a factor, such as operations of base / operations of new. The remaining change is then per operation.
    Factor(f64),
}

impl Normalize {
    /// Returns the mode's name in results.
    pub fn mode(self) -> &'static str {
        match self {
            Normalize::None => "none",
            Normalize::Total => "total",
            Normalize::Duration => "duration",
            Normalize::Factor(_) => "factor",
        }
    }
}

impl std::str::FromStr for Normalize {
    type Err = Error;

    fn from_str(s: &str) -> Result<Normalize> {
        match s {
            "none" => Ok(Normalize::None),
            "total" => Ok(Normalize::Total),
            "duration" => Ok(Normalize::Duration),
            _ => {
                // A quotient documents the origin of the factor: operations of base / operations of new.
                let number = |s: &str| s.trim().parse::<f64>().ok();
                let factor = match s.split_once('/') {
                    Some((n, d)) => number(n).zip(number(d)).map(|(n, d)| n / d),
                    None => number(s),
                };
                let factor = factor.ok_or_else(|| {
                    Error::query(format!(
                        "normalize must be total, duration or a factor for the new side (such as 0.5 or 1000/3000), not {s:?}"
                    ))
                })?;
                Ok(Normalize::Factor(factor))
            }
        }
    }
}

/// A factor, exact if possible.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// A factor of 1.
    One,
    /// An exact quotient. Its denominator is an int64 times the number of runs.
    Ratio(i64, i128),
    /// A rounded factor.
    Factor(f64),
}

impl Scale {
    /// Returns the scale that turns a sum over runs into their mean.
    pub(crate) fn mean(runs: usize) -> Scale {
        if runs == 1 { Scale::One } else { Scale::Ratio(1, runs as i128) }
    }

    /// Returns the scale for the new side's sum, given the sums, durations and numbers of runs of both sides. All runs
    /// of a side are scaled equally.
    ///
    /// # Errors
    /// Returns an error if a sum or duration to normalize by is 0, if the two have opposite signs, or if the given
    /// factor is not a positive finite number.
    pub fn new(mode: Normalize, sums: (i64, i64), durations: (i64, i64), runs: [usize; 2]) -> Result<Scale> {
        let ratio = |quantity: &str, (base, new): (i64, i64)| {
            if base == 0 || new == 0 {
                let side = if base == 0 { "base" } else { "new side" };
                return Err(Error::query(format!(
                    "can't normalize by {quantity}: the {quantity} of the {side} is zero"
                )));
            }
            if (base < 0) != (new < 0) {
                return Err(Error::query(format!(
                    "can't normalize by {quantity}: {base} and {new} have opposite signs"
                )));
            }
            // The ratio of the two means, divided by the new side's runs: (base / m) / (new / n) / n.
            Ok(Scale::Ratio(base, i128::from(new) * runs[0] as i128))
        };
        match mode {
            Normalize::None => Ok(Scale::mean(runs[1])),
            Normalize::Total => ratio("total", sums),
            Normalize::Duration => ratio("duration", durations),
            Normalize::Factor(f) if f.is_finite() && f > 0.0 => Ok(Scale::Factor(f / runs[1] as f64)),
            Normalize::Factor(f) => {
                Err(Error::query(format!("the normalization factor must be a positive number, not {f}")))
            }
        }
    }

    /// Returns the factor, rounded if necessary.
    pub fn factor(self) -> f64 {
        match self {
            Scale::One => 1.0,
            Scale::Ratio(n, d) => n as f64 / d as f64,
            Scale::Factor(f) => f,
        }
    }

    /// Returns the scaled value, rounded half away from zero. Saturates; [`Scale::check`] excludes saturation for a
    /// view.
    pub fn apply(self, value: i64) -> i64 {
        match self {
            Scale::One => value,
            Scale::Ratio(n, d) => {
                let product = i128::from(value) * i128::from(n);
                let (product, negative, d) = (product.unsigned_abs(), (product < 0) != (d < 0), d.unsigned_abs());
                let whole = product / d;
                let rest = product - whole * d;
                let rounded = (whole + u128::from(rest >= d - rest)) as i128;
                let signed = if negative { -rounded } else { rounded };
                i64::try_from(signed).unwrap_or(if signed < 0 { i64::MIN } else { i64::MAX })
            }
            // `as` saturates, and `round` rounds half away from zero.
            Scale::Factor(f) => (value as f64 * f).round() as i64,
        }
    }

    /// Returns an error if the scaled sums of both sides together could overflow. `base` and `new` are sums of
    /// magnitudes. Unscaled sums cannot overflow.
    pub(crate) fn check(self, base: i64, new: i64) -> Result<()> {
        let scaled = new as f64 * self.factor().abs();
        if self != Scale::One && scaled + base as f64 >= i64::MAX as f64 {
            return Err(Error::query(format!("scaled by {}, the new side no longer fits an int64", self.factor())));
        }
        Ok(())
    }
}

/// The scales of both sides' sums.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scales {
    pub base: Scale,
    pub new: Scale,
}

impl Scales {
    pub(crate) const ONE: Scales = Scales { base: Scale::One, new: Scale::One };

    /// Returns the scale of one side.
    pub(crate) fn for_side(self, base: bool) -> Scale {
        if base { self.base } else { self.new }
    }

    pub(crate) fn apply(self, sums: Pair) -> Pair {
        Pair { base: self.base.apply(sums.base), new: self.new.apply(sums.new) }
    }
}

#[cfg(test)]
mod tests {
    use super::Scale;

    #[test]
    fn ratios_are_exact_and_round_half_away_from_zero() {
        let big = (1i64 << 53) + 1;
        assert_eq!(Scale::Ratio(big, big.into()).apply(big), big);
        let (max, runs) = (i64::MAX, 1 << 31);
        assert_eq!(Scale::Ratio(max, i128::from(max) * runs).apply(max), 1 << 32);
        assert_eq!(Scale::Ratio(1, 2).apply(3), 2);
        assert_eq!(Scale::Ratio(1, 2).apply(-3), -2);
        assert_eq!(Scale::Ratio(-1, 2).apply(3), -2);
        assert_eq!(Scale::Ratio(1, 3).apply(4), 1);
        assert_eq!(Scale::Factor(0.5).apply(-3), -2);
        assert_eq!(Scale::Ratio(i64::MAX, 1).apply(i64::MIN), i64::MIN);
    }
}
