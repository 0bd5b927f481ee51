//! Derivatives of the log gamma function, for the mean and the variance of the logs of estimated variances.
//!
//! Source: Abramowitz and Stegun 6.3.18 and 6.4.11, for large arguments.

use super::distributions::bisect;

/// Returns the derivative of the log of the gamma function.
pub(crate) fn digamma(x: f64) -> f64 {
    let (mut x, mut below) = (x, 0.0);
    while x < 6.0 {
        below += 1.0 / x;
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    x.ln() - 0.5 / x - y * (1.0 / 12.0 - y * (1.0 / 120.0 - y / 252.0)) - below
}

/// Returns the derivative of [`digamma`].
pub(crate) fn trigamma(x: f64) -> f64 {
    let (mut x, mut below) = (x, 0.0);
    while x < 6.0 {
        below += 1.0 / (x * x);
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    1.0 / x + y / 2.0 + y / x * (1.0 / 6.0 - y * (1.0 / 30.0 - y / 42.0)) + below
}

/// Returns the argument at which [`trigamma`] has this value.
pub(crate) fn trigamma_inverse(value: f64) -> f64 {
    bisect(1e-6, 1e6, |x| trigamma(x) < value)
}

/// Returns the variance of the log of an estimated variance with these degrees of freedom.
pub(crate) fn log_variance(degrees: f64) -> f64 {
    trigamma(degrees / 2.0)
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    fn near(a: f64, b: f64, by: f64) {
        assert!((a - b).abs() <= by * b.abs().max(1.0), "{a} is not {b}");
    }

    #[test]
    fn the_gamma_functions_match_published_tables() {
        // Source: Abramowitz and Stegun, table 6.1. The expected `trigamma(0.5)` is half of pi squared.
        near(digamma(1.0), -0.577_215_664_9, 1e-8);
        near(digamma(1.5), 0.036_489_973_9, 1e-8);
        near(trigamma(0.5), PI * PI / 2.0, 1e-7);
        near(trigamma(1.0), PI * PI / 6.0, 1e-7);
        near(trigamma_inverse(trigamma(2.5)), 2.5, 1e-9);
    }
}
