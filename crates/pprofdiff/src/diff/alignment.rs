//! Which parts of two sequences belong together: the source lines of two builds, or a function's instructions.
//!
//! Parts are compared by their keys, and what is paired keeps its order on both sides. Work is bounded by what it may
//! take at most, which is known before it begins.

use std::hash::Hash;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// How many pairs of changed parts are compared for an answer (50,000 on each side, or as much in several sequences):
/// about a second in the worst case, of 64 to 2000 distinct parts in random order, and memory for a few numbers a part.
/// What both sequences begin and end with is free.
pub(super) const MAX_PAIRS: u64 = 2_500_000_000;

/// The index of a part in the base and in the new side, if it has one there.
pub(super) type Row = (Option<u32>, Option<u32>);

/// Aligns two sequences of keys: each part is in one row, in the order of both sides, and where one was replaced, the
/// old ones come first. `None` if there are more pairs of changed parts than are `left`, from which they are taken.
pub(super) fn align<K: Eq + Hash>(base: &[K], new: &[K], left: &mut u64) -> Option<Vec<Row>> {
    let prefix = base.iter().zip(new).take_while(|(b, n)| b == n).count();
    let (base_rest, new_rest) = (&base[prefix..], &new[prefix..]);
    let suffix = base_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(b, n)| b == n).count();
    let pairs = ((base_rest.len() - suffix) as u64).saturating_mul((new_rest.len() - suffix) as u64);
    *left = left.checked_sub(pairs)?;
    let number = |i: usize| Some(i as u32);
    let mut rows = Vec::with_capacity(new.len());
    for op in capture_diff_slices(Algorithm::Myers, base, new) {
        let (_, old, new) = op.as_tag_tuple();
        if let DiffOp::Equal { .. } = op {
            rows.extend(old.map(number).zip(new.map(number)));
        } else {
            rows.extend(old.map(|i| (number(i), None)));
            rows.extend(new.map(|i| (None, number(i))));
        }
    }
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows as people draw them: `=` for a pair, `-` and `+` for parts of one side.
    fn drawn(base: &str, new: &str) -> String {
        let [base, new] = [base, new].map(|keys| keys.split(' ').collect::<Vec<_>>());
        let rows = align(&base, &new, &mut MAX_PAIRS.clone()).unwrap_or_default();
        let row = |row: &Row| match *row {
            (Some(b), Some(n)) => {
                assert_eq!(base[b as usize], new[n as usize]);
                format!("={}", base[b as usize])
            }
            (Some(b), None) => format!("-{}", base[b as usize]),
            (None, Some(n)) => format!("+{}", new[n as usize]),
            (None, None) => "nothing".to_owned(),
        };
        rows.iter().map(row).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn parts_keep_their_order_and_old_ones_come_first() {
        assert_eq!(drawn("push mov call ret", "push mov call ret"), "=push =mov =call =ret");
        assert_eq!(drawn("push mov call ret", "push lea mov call pop ret"), "=push +lea =mov =call +pop =ret");
        assert_eq!(drawn("push shl call ret", "push mul add call ret"), "=push -shl +mul +add =call =ret");
        assert_eq!(drawn("a", "b"), "-a +b");
    }

    #[test]
    fn what_both_begin_and_end_with_is_free() {
        let keys = |middle: u32| -> Vec<u32> { (0..1000).chain([middle]).chain(0..1000).collect() };
        let mut left = 1;
        let rows = align(&keys(5000), &keys(6000), &mut left);
        assert_eq!((rows.map(|r| r.len()), left), (Some(2002), 0));
        assert_eq!(align(&keys(5000), &keys(6000), &mut left), None);
        assert_eq!(align(&keys(5000), &keys(5000), &mut left).map(|r| r.len()), Some(2001));
    }

    /// 100,000 instructions that have next to nothing in common are more than the bound; those of which a part moved
    /// are aligned, all of them.
    #[test]
    fn long_sequences_stay_in_bounds() {
        let long: Vec<u32> = (0..100_000).collect();
        let reversed: Vec<u32> = long.iter().rev().copied().collect();
        assert_eq!(align(&long, &reversed, &mut MAX_PAIRS.clone()), None);
        let mut moved = long.clone();
        moved[30_000..70_000].rotate_left(100);
        let rows = align(&long, &moved, &mut MAX_PAIRS.clone()).unwrap_or_default();
        let paired = rows.iter().filter(|(b, n)| b.is_some() && n.is_some()).count();
        assert!(rows.len() + paired == 200_000 && paired == 99_900, "{} rows, {paired} of them pairs", rows.len());
    }
}
