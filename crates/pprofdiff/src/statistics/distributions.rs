//! Quantiles and tails of the normal distribution and of Student's distribution.
//!
//! Student's tail is a finite sum (Abramowitz and Stegun 26.7.3 f.). The crate statrs offers it and digamma, but no
//! trigamma (`gamma`). It would add three crates with 24,000 lines in place of the forty lines here, whose results the
//! tests compare with published tables.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI};

/// Returns the x that a standard normal variable exceeds with probability `p`, which must be below one half.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    bisect(0.0, 40.0, |x| normal_tail(x) < p)
}

/// Returns the probability that a standard normal variable exceeds `x`.
pub fn normal_tail(x: f64) -> f64 {
    0.5 * libm::erfc(x * FRAC_1_SQRT_2)
}

/// Returns the probability that a variable with Student's distribution exceeds `t`, which must not be negative. The
/// result is a difference from 1, so its absolute error is about 1e-16.
pub fn student_tail(t: f64, degrees: u32) -> f64 {
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

/// Returns the x that a variable with Student's distribution exceeds with probability `p`, which must be at most one
/// half. The result is at most 10,000.
pub fn student_quantile(p: f64, degrees: u32) -> f64 {
    bisect(0.0, 1e4, |t| student_tail(t, degrees) < p)
}

/// Returns the point between two numbers at which `is_above` becomes true, by bisection.
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
    fn quantiles_match_published_tables() {
        // Source: Abramowitz and Stegun, tables 26.5 and 26.10.
        for (p, x) in [(0.25, 0.67449), (0.025, 1.95996), (0.005, 2.57583), (1e-4, 3.71902), (1e-6, 4.75342)] {
            near(normal_quantile(p), x, 1e-5);
        }
        for (p, degrees, t) in
            [(0.025, 1, 12.706), (0.025, 2, 4.303), (0.005, 5, 4.032), (0.0005, 20, 3.850), (0.0005, 25, 3.725)]
        {
            near(student_quantile(p, degrees), t, 3e-4);
        }
        // Student's distribution with many degrees of freedom is close to normal.
        near(student_quantile(1e-4, 100_000), 3.7193, 1e-3);
    }

    #[test]
    fn tails_invert_quantiles() {
        for (p, degrees, t) in [(0.025, 1, 12.706), (0.025, 2, 4.303), (0.005, 5, 4.032), (0.0005, 20, 3.850)] {
            near(student_tail(t, degrees) / p, 1.0, 2e-3);
        }
        assert_eq!(student_tail(0.0, 7), 0.5);
    }
}
