//! Stable sorts for lists that are short or sorted once per answer. The standard library compiles its sort anew for each type and order, about 6 KB each.
//! These functions sort places with one compiled copy, and then move the items there: the command is 0.3 MB smaller.
//! Comparisons are indirect calls, so lists of samples and stacks use the standard library's sorts.

use std::cmp::Ordering;

/// Sorts a short list by an order.
pub fn sort_by<T>(items: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let mut places: Vec<usize> = (0..items.len()).collect();
    sort_places(&mut places, &mut |a, b| compare(&items[a], &items[b]));
    move_to(items, &mut places);
}

/// Sorts a short list by a key, which is computed for each comparison.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], mut key: impl FnMut(&T) -> K) {
    sort_by(items, |a, b| key(a).cmp(&key(b)));
}

/// Sorts a short list by a key, which is computed once for each item.
pub fn sort_by_cached_key<T, K: Ord>(items: &mut [T], key: impl FnMut(&T) -> K) {
    let keys: Vec<K> = items.iter().map(key).collect();
    let mut places: Vec<usize> = (0..items.len()).collect();
    sort_places(&mut places, &mut |a, b| keys[a].cmp(&keys[b]));
    move_to(items, &mut places);
}

#[inline(never)]
fn sort_places(places: &mut [usize], compare: &mut dyn FnMut(usize, usize) -> Ordering) {
    places.sort_by(|&a, &b| compare(a, b));
}

/// Moves the item at `places[i]` to `i`, for each `i`. Each cycle of places is moved by swaps, and marked as done.
fn move_to<T>(items: &mut [T], places: &mut [usize]) {
    for start in 0..items.len() {
        let mut to = start;
        while places[to] != start {
            let from = std::mem::replace(&mut places[to], to);
            items.swap(to, from);
            to = from;
        }
        places[to] = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_sorted_like_the_standard_librarys() {
        let mut state = 1u64;
        for n in 0..200 {
            let items: Vec<(u64, usize)> = (0..n)
                .map(|i| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 60, i)
                })
                .collect();
            let (mut ours, mut theirs) = (items.clone(), items);
            sort_by_key(&mut ours, |item| item.0);
            theirs.sort_by_key(|item| item.0);
            assert_eq!(ours, theirs);
            sort_by_cached_key(&mut ours, |item| item.1);
            assert!(ours.is_sorted_by_key(|item| item.1));
            sort_by(&mut ours, |a, b| b.1.cmp(&a.1));
            assert!(ours.is_sorted_by_key(|item| std::cmp::Reverse(item.1)));
        }
    }
}
