//! The rank tests of two samples (Mann-Whitney, as in benchstat) and of pairs (Wilcoxon), and the correction for
//! multiple tests (Benjamini-Hochberg).
//!
//! Sources: H. B. Mann, D. R. Whitney, Ann. Math. Statist. 18 (1947) 50; F. Wilcoxon, Biometrics Bull. 1 (1945) 80; Y.
//! Benjamini, Y. Hochberg, J. R. Statist. Soc. B 57 (1995) 289.
//!
//! The test of two samples decides no verdict: with three runs per side, its p-value is at least 0.1. The test of pairs
//! is used once per sequence, for the last look of `sequential`.

use super::distributions::normal_tail;

/// The maximum number of runs per side for exact counting of the rank sum's distribution, without ties and with ties.
/// Above it, the distribution is close to normal.
const COUNTED: usize = 50;
const COUNTED_TIES: usize = 25;

/// Returns the two-sided p-value of the hypothesis that both samples come from one distribution. The result is exact if
/// neither sample has more than fifty values, or 25 values with ties.
pub(crate) fn rank_test(a: &[i64], b: &[i64]) -> f64 {
    let (n, m) = (a.len(), b.len());
    let mut all: Vec<(i64, bool)> = a.iter().map(|&v| (v, true)).chain(b.iter().map(|&v| (v, false))).collect();
    all.sort_unstable();
    // The ranks are doubled: the mean ranks of ties then stay integers.
    let mut ranks = Vec::with_capacity(n + m);
    let mut ties = 0.0;
    for tied in all.chunk_by(|x, y| x.0 == y.0) {
        let (first, t) = (ranks.len() + 1, tied.len());
        ranks.extend(std::iter::repeat_n(2 * first + t - 1, t));
        ties += (t * t * t - t) as f64;
    }
    let sum: usize = ranks.iter().zip(&all).filter(|(_, (_, in_a))| *in_a).map(|(rank, _)| rank).sum();
    let max_counted = if ties == 0.0 { COUNTED } else { COUNTED_TIES };
    let p = if n.max(m) <= max_counted { counted(&ranks, n, sum) } else { normal(sum, n, m, ties) };
    p.min(1.0)
}

/// Counts the ways to choose `n` ranks whose sum is at least as extreme as `sum`. Returns twice the smaller tail.
fn counted(ranks: &[usize], n: usize, sum: usize) -> f64 {
    let total: usize = ranks.iter().sum();
    // `ways[k][s]` is the number of choices of k ranks with the sum s.
    let mut ways = vec![vec![0.0; total + 1]; n + 1];
    ways[0][0] = 1.0;
    for &rank in ranks {
        for k in (1..=n).rev() {
            for s in (rank..=total).rev() {
                ways[k][s] += ways[k - 1][s - rank];
            }
        }
    }
    let ways = &ways[n];
    let (below, above): (f64, f64) = (ways[..=sum].iter().sum(), ways[sum..].iter().sum());
    2.0 * below.min(above) / ways.iter().sum::<f64>()
}

/// Returns the two-sided p-value of the hypothesis that differences are symmetric about zero (Wilcoxon's signed ranks).
/// Differences that are zero or not finite are ignored. The result is exact for at most fifty of the other differences.
pub(crate) fn signed_rank_test(differences: &[f64]) -> f64 {
    let mut all: Vec<(f64, bool)> =
        differences.iter().filter(|d| **d != 0.0 && d.is_finite()).map(|d| (d.abs(), *d > 0.0)).collect();
    all.sort_by(|x, y| x.0.total_cmp(&y.0));
    // The ranks are doubled, as in `rank_test`.
    let mut ranks: Vec<usize> = Vec::with_capacity(all.len());
    for tied in all.chunk_by(|x, y| x.0 == y.0) {
        let first = ranks.len() + 1;
        ranks.extend(std::iter::repeat_n(2 * first + tied.len() - 1, tied.len()));
    }
    let sum: usize = ranks.iter().zip(&all).filter(|(_, (_, is_positive))| *is_positive).map(|(rank, _)| rank).sum();
    let total: usize = ranks.iter().sum();
    let extreme = sum.max(total - sum);
    if ranks.len() > COUNTED {
        let variance = ranks.iter().map(|rank| (rank * rank) as f64).sum::<f64>() / 4.0;
        return (2.0 * normal_tail(((extreme as f64 - total as f64 / 2.0 - 1.0) / variance.sqrt()).max(0.0))).min(1.0);
    }
    // `ways[s]` is the number of sign choices with the sum s.
    let mut ways = vec![0.0; total + 1];
    ways[0] = 1.0;
    for &rank in &ranks {
        for s in (rank..=total).rev() {
            ways[s] += ways[s - rank];
        }
    }
    let above: f64 = ways[extreme..].iter().sum();
    (2.0 * above / ways.iter().sum::<f64>()).min(1.0)
}

/// Returns the two-sided p-value by the normal approximation, with corrections for ties and for continuity.
fn normal(sum: usize, n: usize, m: usize, ties: f64) -> f64 {
    let (n, m) = (n as f64, m as f64);
    let u = sum as f64 / 2.0 - n * (n + 1.0) / 2.0;
    let u = u.max(n * m - u);
    let variance = n * m / 12.0 * (n + m + 1.0 - ties / ((n + m) * (n + m - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    2.0 * normal_tail(((u - n * m / 2.0 - 0.5) / variance.sqrt()).max(0.0))
}

/// Returns the q-value of each p-value: the smallest false discovery rate at which that test is a discovery.
pub fn false_discoveries(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_unstable_by(|&i, &j| p[j].total_cmp(&p[i]));
    let mut out = vec![1.0; p.len()];
    let mut smallest = 1.0_f64;
    for (i, &index) in order.iter().enumerate() {
        let rank = p.len() - i;
        smallest = smallest.min(p[index] * p.len() as f64 / rank as f64);
        out[index] = smallest;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_samples_have_known_values() {
        // Three against three, fully separated: 2 of the 20 ways to choose three of six.
        assert!((rank_test(&[1, 2, 3], &[4, 5, 6]) - 0.1).abs() < 1e-12);
        assert!((rank_test(&[4, 5, 6], &[1, 2, 3]) - 0.1).abs() < 1e-12);
        assert!((rank_test(&[1, 2, 3, 4, 5], &[6, 7, 8, 9, 10]) - 2.0 / 252.0).abs() < 1e-12);
        assert_eq!(rank_test(&[7, 7], &[7, 7, 7]), 1.0);
        assert_eq!(rank_test(&[7; 15], &[7; 15]), 1.0);
    }

    #[test]
    fn pairs_have_known_values() {
        // Five ranks have 32 sign choices, and 2 are as extreme. Three ranks have 8 sign choices, and 4 are as extreme.
        assert!((signed_rank_test(&[1.0, 2.0, 3.0, 4.0, 5.0]) - 2.0 / 32.0).abs() < 1e-12);
        assert!((signed_rank_test(&[-1.0, 2.0, 3.0, 0.0]) - 0.5).abs() < 1e-12);
        // Two equal differences share the mean of their ranks. Exchanging all signs gives the same result.
        assert!((signed_rank_test(&[-1.0, -1.0, 2.0, 10.0]) - 10.0 / 16.0).abs() < 1e-12);
        assert!((signed_rank_test(&[-1.0, -2.0, -3.0, -4.0, -5.0]) - 2.0 / 32.0).abs() < 1e-12);
        assert!((signed_rank_test(&[-2.0, 2.0]) - 1.0).abs() < 1e-12 && signed_rank_test(&[]) >= 1.0);
        // Fifty differences are counted exactly; 51 use the normal distribution. The expected values are exact counts.
        let mixed = |n: i32| (0..n).map(|i| f64::from(if i % 3 == 0 { -2 * i } else { 2 * i + 1 })).collect::<Vec<_>>();
        assert!((signed_rank_test(&mixed(51)) - 0.026_167).abs() < 1e-6);
        assert!((signed_rank_test(&mixed(52)) - 0.055_980).abs() < 1e-3);
    }

    #[test]
    fn exact_counts_and_the_normal_approximation_agree() {
        let (a, b): (Vec<i64>, Vec<i64>) = ((0..10).map(|i| 3 * i).collect(), (0..10).map(|i| 3 * i + 10).collect());
        let small = rank_test(&a, &b);
        let (a, b): (Vec<i64>, Vec<i64>) = ((0..11).map(|i| 3 * i).collect(), (0..10).map(|i| 3 * i + 10).collect());
        assert!((small - rank_test(&a, &b)).abs() < 0.05, "{small} {}", rank_test(&a, &b));
    }
}
