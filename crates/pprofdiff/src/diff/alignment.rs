//! Aligns two sequences: the source lines of two builds, or the instructions of a function.
//!
//! Items are compared by their keys, and paired items keep their order on both sides. The maximum work is known before
//! the alignment starts, and it is bounded.

use std::hash::Hash;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// The maximum number of pairs of changed items that one answer compares: 50,000 on each side, or the same product
/// spread over several sequences. In the worst case (64 to 2000 distinct items in random order) this takes about a
/// second, and memory for a few numbers per item. The common prefix and suffix of the sequences are free.
pub(super) const MAX_PAIRS: u64 = 2_500_000_000;

/// The index of an item in the base and in the new side, `None` on a side without it.
pub(super) type AlignedRow = (Option<u32>, Option<u32>);

/// Aligns two sequences of keys. Each item is in one row, in the order of both sides. If items were replaced, the old
/// items come first. Subtracts the number of pairs of changed items from `left`, and returns `None` if it exceeds
/// `left`.
pub(super) fn align<K: Eq + Hash>(base: &[K], new: &[K], left: &mut u64) -> Option<Vec<AlignedRow>> {
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

    /// Draws rows as text: `=` for a pair, `-` and `+` for items of one side.
    fn drawn(base: &str, new: &str) -> String {
        let [base, new] = [base, new].map(|keys| keys.split(' ').collect::<Vec<_>>());
        let rows = align(&base, &new, &mut MAX_PAIRS.clone()).unwrap_or_default();
        let row = |row: &AlignedRow| match *row {
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
    fn items_keep_their_order_and_old_items_come_first() {
        assert_eq!(drawn("push mov call ret", "push mov call ret"), "=push =mov =call =ret");
        assert_eq!(drawn("push mov call ret", "push lea mov call pop ret"), "=push +lea =mov =call +pop =ret");
        assert_eq!(drawn("push shl call ret", "push mul add call ret"), "=push -shl +mul +add =call =ret");
        assert_eq!(drawn("a", "b"), "-a +b");
    }

    #[test]
    fn common_prefix_and_suffix_are_free() {
        let keys = |middle: u32| -> Vec<u32> { (0..1000).chain([middle]).chain(0..1000).collect() };
        let mut left = 1;
        let rows = align(&keys(5000), &keys(6000), &mut left);
        assert_eq!((rows.map(|r| r.len()), left), (Some(2002), 0));
        assert_eq!(align(&keys(5000), &keys(6000), &mut left), None);
        assert_eq!(align(&keys(5000), &keys(5000), &mut left).map(|r| r.len()), Some(2001));
    }

    /// 100,000 instructions with almost nothing in common exceed the bound. If only a part of them moved, all are
    /// aligned.
    #[test]
    fn sequences_over_the_bound_are_not_aligned() {
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
