//! The significance level of each rule in a check of several rules.
//!
//! The rules of a check share the error rate [`ALPHA`] by Holm's step-down procedure (S. Holm, "A simple sequentially
//! rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979). The smallest p-value is compared
//! with `ALPHA / m` for `m` tests, the next with `ALPHA / (m - 1)`, and so on until a comparison fails. A check of equal
//! builds therefore fails with a probability of at most `ALPHA`, and a rule that is certain costs the other rules
//! nothing. A simple division by the number of rules (Bonferroni) has the same error rate, but it makes other rules
//! inconclusive more often.

use super::ALPHA;
use pprofdiff_profile::short_lists::sort_by;

/// The test of one rule.
#[derive(Debug, Clone)]
pub(super) struct RuleTest {
    /// The tested hypothesis. Rules with the same hypothesis have the same p-value and count once. An example is
    /// `total>+5%` together with `total>+10ms`: both test whether the total grew.
    pub hypothesis: String,
    /// The smallest p-value of the rule's subjects, corrected for their number.
    pub p: f64,
}

/// Returns the number of different hypotheses, and for each rule the largest p-value with which it may fail, given the
/// p-values of the other rules. `None` stands for a rule that is not tested for chance: it shares nothing, and gets
/// [`ALPHA`].
pub(super) fn levels(tests: &[Option<RuleTest>]) -> (usize, Vec<f64>) {
    let mut distinct: Vec<&RuleTest> = tests.iter().flatten().collect();
    sort_by(&mut distinct, |a, b| a.p.total_cmp(&b.p).then_with(|| a.hypothesis.cmp(&b.hypothesis)));
    distinct.dedup_by(|a, b| a.hypothesis == b.hypothesis);
    let family = distinct.len();
    let level = |test: &RuleTest| {
        let others = distinct.iter().filter(|other| other.hypothesis != test.hypothesis);
        // The level does not depend on the rule's own p-value: `certain` counts the other rules that Holm's procedure
        // rejects first.
        let certain = others.enumerate().take_while(|(i, other)| other.p <= ALPHA / (family - i) as f64).count();
        ALPHA / (family - certain) as f64
    };
    (family, tests.iter().map(|test| test.as_ref().map_or(ALPHA, level)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tests(p_values: &[f64]) -> Vec<Option<RuleTest>> {
        p_values.iter().enumerate().map(|(i, &p)| Some(RuleTest { hypothesis: i.to_string(), p })).collect()
    }

    #[test]
    fn the_levels_reject_the_same_rules_as_holms_procedure() {
        // All combinations of four p-values from 0.001 to 0.012.
        for number in 0..12_usize.pow(4) {
            let p_values: Vec<f64> =
                (0..4).map(|i| (1 + number / 12_usize.pow(i) % 12) as f64 / 1000.0 + f64::from(i) * 1e-9).collect();
            let (family, levels) = levels(&tests(&p_values));
            let mut order: Vec<usize> = (0..family).collect();
            sort_by(&mut order, |a, b| p_values[*a].total_cmp(&p_values[*b]));
            let rejected = order.iter().enumerate().take_while(|(i, r)| p_values[**r] <= ALPHA / (family - i) as f64);
            let mut rejected: Vec<usize> = rejected.map(|(_, r)| *r).collect();
            rejected.sort_unstable();
            let by_level: Vec<usize> = (0..family).filter(|&r| p_values[r] <= levels[r]).collect();
            assert_eq!(by_level, rejected, "{p_values:?} {levels:?}");
        }
    }

    #[test]
    fn certain_and_repeated_and_untested_rules_cost_the_others_nothing() {
        let with = |other: Option<RuleTest>| levels(&[tests(&[0.008]).remove(0), other]).1[0];
        assert_eq!(with(None), ALPHA);
        assert_eq!(with(Some(RuleTest { hypothesis: "0".into(), p: 0.008 })), ALPHA);
        assert_eq!(with(Some(RuleTest { hypothesis: "x".into(), p: 0.0 })), ALPHA);
        assert_eq!(with(Some(RuleTest { hypothesis: "x".into(), p: 1.0 })), ALPHA / 2.0);
    }
}
