//! Distributions: quantiles and tails of the normal and of Student's.
//!
//! Student's tail is a finite sum (Abramowitz and Stegun 26.7.3 f.). The crate statrs has it and digamma, but no trigamma
//! (`gamma`), in three crates and 24,000 lines for forty of ours, which tables check.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI};

/// The x that a standard normal variable exceeds with probability `p` below one half.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    bisect(0.0, 40.0, |x| normal_tail(x) < p)
}

/// The probability that a standard normal variable exceeds `x`.
pub(crate) fn normal_tail(x: f64) -> f64 {
    0.5 * libm::erfc(x * FRAC_1_SQRT_2)
}

/// The probability that a variable with Student's distribution exceeds `t`, which is not negative. Far out it is what
/// the sum leaves, so to about 1e-16.
pub(crate) fn student_tail(t: f64, degrees: u32) -> f64 {
    let angle = (t / f64::from(degrees).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let even = degrees.is_multiple_of(2);
    let mut term = if even { 1.0 } else { cos };
    let mut sum = if degrees == 1 { 0.0 } else { term };
    let mut k = if even { 2 } else { 3 };
    while k < degrees {
        term *= cos * cos * f64::from(k - 1) / f64::from(k);
        sum += term;
        k += 2;
    }
    let inside = if even { sin * sum } else { FRAC_2_PI * (angle + sin * sum) };
    ((1.0 - inside) / 2.0).max(0.0)
}

/// The x that a variable with Student's distribution exceeds with probability `p`.
pub(crate) fn student_quantile(p: f64, degrees: u32) -> f64 {
    bisect(0.0, 1e4, |t| student_tail(t, degrees) < p)
}

/// Where a condition becomes true between two numbers.
pub(crate) fn bisect(mut low: f64, mut high: f64, is_above: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if is_above(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64, by: f64) {
        assert!((a - b).abs() <= by * b.abs().max(1.0), "{a} is not {b}");
    }

    #[test]
    fn quantiles_are_those_of_tables() {
        // Abramowitz and Stegun, tables 26.5 and 26.10.
        for (p, x) in [(0.25, 0.67449), (0.025, 1.95996), (0.005, 2.57583), (1e-4, 3.71902), (1e-6, 4.75342)] {
            near(normal_quantile(p), x, 1e-5);
        }
        for (p, degrees, t) in
            [(0.025, 1, 12.706), (0.025, 2, 4.303), (0.005, 5, 4.032), (0.0005, 20, 3.850), (0.0005, 25, 3.725)]
        {
            near(student_quantile(p, degrees), t, 3e-4);
        }
        // A normal variable is Student's with many degrees.
        near(student_quantile(1e-4, 100_000), 3.7193, 1e-3);
    }

    #[test]
    fn tails_are_those_of_quantiles() {
        for (p, degrees, t) in [(0.025, 1, 12.706), (0.025, 2, 4.303), (0.005, 5, 4.032), (0.0005, 20, 3.850)] {
            near(student_tail(t, degrees) / p, 1.0, 2e-3);
        }
        assert_eq!(student_tail(0.0, 7), 0.5);
    }
}
