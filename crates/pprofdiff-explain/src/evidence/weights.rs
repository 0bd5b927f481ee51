//! Selects the heavy stacks, and finds the longest prefixes that light stacks share with heavy stacks.

use crate::thresholds::{MIN_DEVIANCE_OF_CHANGED_FUNCTION, MIN_PART_OF_CHANGED_FUNCTION};
use std::cmp::Ordering;
use std::hash::BuildHasher;

use pprofdiff::shared::statistics::counts::{deviance, weighted_median};
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::interner::Index;
use pprofdiff_profile::random::RandomState;

/// Maximum number of heaviest stacks, and approximate size of a random sample of the remaining stacks. Both kinds count
/// as heavy. All other stacks are truncated to prefixes of heavy stacks.
const HEAVIEST: usize = 9_000;
const SAMPLE: usize = 1_000;

/// Maximum number of additional stacks that count as heavy, because the cost of their function changed unexpectedly: by
/// the deviance [`MIN_DEVIANCE_OF_CHANGED_FUNCTION`], and the fraction [`MIN_PART_OF_CHANGED_FUNCTION`] of the total,
/// which is half of a cause's minimum. Results for such a function then cover all of its stacks. The heavy stacks alone
/// would be biased: they are the stacks that grew. The number is small compared with the heaviest stacks, because
/// candidates with labels also need memory.
const CHANGED: usize = 2_000;

/// Moves the first items in the order of `compare` whose lengths together fit into `room` to the front, in any order,
/// and returns their number. It is at least 1 if there are items. Unlike sorting, this takes linear time.
pub(crate) fn select_fitting<T>(
    items: &mut [T],
    mut room: usize,
    length: impl Fn(&T) -> usize,
    compare: impl Fn(&T, &T) -> Ordering,
) -> usize {
    // The items before `start` fit, and the items from `end` on do not.
    let (mut start, mut end) = (0, items.len());
    while start < end {
        let middle = start + (end - start) / 2;
        items[start..end].select_nth_unstable_by(middle - start, &compare);
        let all: usize = items[start..=middle].iter().map(&length).sum();
        if all <= room {
            (room, start) = (room - all, middle + 1);
        } else {
            end = middle;
        }
    }
    start.max(items.len().min(1))
}

/// The weight of a distinct stack with its labels, over all runs.
pub(crate) struct Weight {
    /// The values of both sides.
    pub values: [f64; 2],
    /// A number that breaks ties of equal weight.
    pub tie: u64,
    /// The number of its frames.
    pub depth: u16,
    /// The innermost program function, or [`NONE`].
    pub own_function: u32,
}

/// The heavy stacks.
pub(crate) struct ChosenStacks {
    /// The numbers of the stacks, in ascending order.
    pub stacks: Vec<u32>,
    /// By function: true if all stacks with this innermost program function are heavy, even the lightest.
    pub is_whole: Vec<bool>,
}

/// Selects the heaviest stacks, a sample of the remaining stacks, and the stacks of changed functions, with at most
/// `frames` frames together (but at least one stack). Selects all stacks if they are few. `event` is the value of one
/// event. `with` returns, for at most 64 functions and a list of stacks, the functions that each stack contains, as
/// bits.
pub(crate) fn chosen(
    weights: &[Weight],
    frames: usize,
    event: f64,
    with: impl FnOnce(&[u32], &[u32]) -> Vec<u64>,
) -> ChosenStacks {
    let all_frames: usize = weights.iter().map(|weight| usize::from(weight.depth)).sum();
    let (mut order, mut is_whole): (Vec<u32>, Vec<bool>) = ((0..weights.len() as u32).collect(), Vec::new());
    if weights.len() <= HEAVIEST + SAMPLE && all_frames <= frames {
        return ChosenStacks { stacks: order, is_whole };
    }
    let total = [0, 1].map(|side| weights.iter().map(|weight| weight.values[side]).sum::<f64>().max(1e-300));
    let shares: Vec<f64> =
        weights.iter().map(|weight| (weight.values[0] / total[0]).max(weight.values[1] / total[1])).collect();
    let share = |n: u32| shares[n as usize];
    let tie = |n: u32| weights[n as usize].tie;
    let by_share = |&a: &u32, &b: &u32| share(b).total_cmp(&share(a)).then_with(|| tie(a).cmp(&tie(b)));
    if order.len() > HEAVIEST + SAMPLE {
        order.select_nth_unstable_by(HEAVIEST, by_share);
        let light = order.split_off(HEAVIEST);
        let mut is_chosen = vec![false; weights.len()];
        is_whole = choose_changed(weights, &light, event, with, &mut is_chosen);
        // Many light stacks may make up a heavy call, which nothing else would show. Therefore a sample of them is
        // drawn, with probabilities proportional to weight. It is drawn by content, so it is the same for any input
        // order.
        let all: f64 = light.iter().map(|&n| share(n)).sum();
        let chance = |n: u32| share(n) / all.max(1e-300) * SAMPLE as f64;
        // Uses the half of the bits that did not break the tie above.
        let random = |n: u32| (tie(n).rotate_left(32) >> 11) as f64 / (1u64 << 53) as f64;
        let drawn = |&n: &u32| random(n) < chance(n) || is_chosen[n as usize];
        order.extend(light.into_iter().filter(drawn));
    }
    let depth = |n: &u32| usize::from(weights[*n as usize].depth);
    let n_fitting = select_fitting(&mut order, frames, depth, by_share);
    for &left_out in &order[n_fitting..] {
        is_whole.get_mut(weights[left_out as usize].own_function as usize).into_iter().for_each(|is| *is = false);
    }
    order.truncate(n_fitting);
    order.sort_unstable();
    ChosenStacks { stacks: order, is_whole }
}

/// Chooses the light stacks of functions that changed: first, stacks with such a function as the innermost program
/// function; then, all other stacks that contain it. For each function, takes all of its stacks or none. Returns, by
/// function, if the first kind was taken.
fn choose_changed(
    weights: &[Weight],
    light: &[u32],
    event: f64,
    with: impl FnOnce(&[u32], &[u32]) -> Vec<u64>,
    is_chosen: &mut [bool],
) -> Vec<bool> {
    let functions = changed(weights, light, event);
    let mut is_whole = vec![false; functions.iter().max().map_or(0, |&last| last as usize + 1)];
    if functions.is_empty() {
        return is_whole;
    }
    // By function: the light stacks that contain it.
    let mut having: Vec<Vec<u32>> = vec![Vec::new(); functions.len()];
    for (&n, mut bits) in light.iter().zip(with(&functions, light)) {
        while bits != 0 {
            having[bits.trailing_zeros() as usize].push(n);
            bits &= bits - 1;
        }
    }
    let mut room = CHANGED;
    for is_own in [true, false] {
        for (&function, having) in functions.iter().zip(&having) {
            let is_open =
                |n: &u32| (!is_own || weights[*n as usize].own_function == function) && !is_chosen[*n as usize];
            let stacks: Vec<u32> = having.iter().copied().filter(is_open).collect();
            let fits = stacks.len() <= room;
            if is_own {
                is_whole[function as usize] = fits;
            }
            if fits && is_whole[function as usize] {
                room -= stacks.len();
                stacks.into_iter().for_each(|n| is_chosen[n as usize] = true);
            }
        }
    }
    is_whole
}

/// Returns the functions whose own cost changed unexpectedly and that have light stacks, at most 64. Functions with the
/// largest change per light stack come first.
fn changed(weights: &[Weight], light: &[u32], event: f64) -> Vec<u32> {
    let owns = || weights.iter().filter(|weight| weight.own_function != NONE);
    let mut costs = vec![([0.0; 2], 0usize); owns().map(|weight| weight.own_function as usize + 1).max().unwrap_or(0)];
    for weight in owns() {
        (0..2).for_each(|side| costs[weight.own_function as usize].0[side] += weight.values[side]);
    }
    for &n in light {
        costs.get_mut(weights[n as usize].own_function as usize).into_iter().for_each(|(_, stacks)| *stacks += 1);
    }
    // The typical ratio of the sides, by the weighted median.
    let on_both = costs.iter().filter(|([b, n], _)| *b > 0.0 && *n > 0.0);
    let scale = weighted_median(on_both.map(|([b, n], _)| (n / b, b * n / (b + n))).collect());
    let [base, new] = costs.iter().fold([0.0; 2], |sum, (values, _)| [sum[0] + values[0], sum[1] + values[1]]);
    let min_change = MIN_PART_OF_CHANGED_FUNCTION * (scale * base + new) / 2.0;
    let change = |[b, n]: [f64; 2]| (n - scale * b).abs();
    let is_unexpected = |v: [f64; 2]| {
        change(v) > min_change && deviance(v[0] / event, v[1] / event, scale) > MIN_DEVIANCE_OF_CHANGED_FUNCTION
    };
    let changed = costs.iter().zip(0..).filter(|((values, stacks), _)| *stacks > 0 && is_unexpected(*values));
    let mut changed: Vec<(f64, u32)> =
        changed.map(|((values, stacks), function)| (change(*values) / *stacks as f64, function)).collect();
    changed.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    changed.into_iter().take(64).map(|(_, function)| function).collect()
}

/// Returns a hash of a stack that depends on its content only. It can be forged, but it only decides which stacks are
/// heavy.
pub(crate) fn tie(frames: &[u32]) -> u64 {
    let step = |h: u64, x: u32| (h ^ u64::from(x)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    mix(frames.iter().fold(1, |h, &frame| step(h, frame)))
}

/// Mixes a number: every bit of the result depends on every bit of `x` (the end of splitmix64).
pub(crate) fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The prefixes of heavy stacks, by hash. If a prefix is present, all shorter prefixes are present. Therefore a binary
/// search finds the longest prefix that another stack shares.
pub(crate) struct StackPrefixes {
    index: Index,
    hashes: Vec<u64>,
    /// By prefix: the prefix without its last frame, or [`NONE`]; and a stack with this prefix.
    shorter: Vec<u32>,
    stack_of: Vec<u32>,
    /// The stack that was added last, and the hash and number of each of its prefixes.
    last: Vec<u32>,
    last_prefixes: Vec<(u64, u32)>,
    /// Secret, so that nobody can create a profile with colliding prefixes.
    key: u64,
}

impl StackPrefixes {
    /// Creates an empty list with room for `n` prefixes.
    pub(crate) fn with_capacity(n: usize) -> StackPrefixes {
        let key = RandomState::new().hash_one(0u8) | 1;
        StackPrefixes {
            index: Index::with_capacity(n),
            hashes: Vec::with_capacity(n),
            shorter: Vec::with_capacity(n),
            stack_of: Vec::with_capacity(n),
            last: Vec::new(),
            last_prefixes: Vec::new(),
            key,
        }
    }

    fn next(&self, hash: u64, frame: u32) -> u64 {
        let product = u128::from(hash ^ u64::from(frame)) * u128::from(self.key);
        (product as u64 ^ (product >> 64) as u64).wrapping_add(0x9e37_79b9_7f4a_7c15)
    }

    /// Adds a stack with its number, and returns its longest prefix, the stack itself ([`NONE`] for an empty stack).
    /// Stacks are added in order: a prefix that the last stack lacks is new. Therefore the order of prefixes is the
    /// order of their frames.
    pub(crate) fn add(&mut self, number_of_stack: u32, stack: &[u32]) -> u32 {
        let common = self.last.iter().zip(stack).take_while(|(a, b)| a == b).count();
        self.last.truncate(common);
        self.last_prefixes.truncate(common);
        let (mut hash, mut number) = self.last_prefixes.last().copied().unwrap_or((0, NONE));
        for &frame in &stack[common..] {
            hash = self.next(hash, frame);
            let shorter = std::mem::replace(&mut number, self.hashes.len() as u32);
            self.index.insert_new(hash, number, |n| self.hashes[n as usize]);
            self.hashes.push(hash);
            self.shorter.push(shorter);
            self.stack_of.push(number_of_stack);
            self.last.push(frame);
            self.last_prefixes.push((hash, number));
        }
        number
    }

    /// Returns the number of prefixes.
    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Returns the prefix without its last frame; [`NONE`] for a prefix of one frame.
    pub(crate) fn shorter(&self, prefix: u32) -> u32 {
        self.shorter[prefix as usize]
    }

    /// Returns the number of a stack with this prefix.
    pub(crate) fn stack(&self, prefix: u32) -> u32 {
        self.stack_of[prefix as usize]
    }

    /// Returns the length of the longest prefix that a stack (root first) shares with a heavy stack, and the prefix's
    /// number. The length is 0 if they share none; the number is then meaningless.
    pub(crate) fn longest(&self, stack: &[u32], hashes: &mut Vec<u64>) -> (usize, u32) {
        hashes.clear();
        // Hashes are computed only for the lengths that the search tests.
        let mut number = |length: usize| {
            for &frame in stack.get(hashes.len()..length).unwrap_or_default() {
                hashes.push(self.next(hashes.last().copied().unwrap_or(0), frame));
            }
            let hash = hashes[length - 1];
            self.index.find(hash, |n| self.hashes[n as usize] == hash)
        };
        let (mut low, mut high) = ((0, 0), stack.len());
        while low.0 < high {
            let middle = (low.0 + high).div_ceil(2);
            match number(middle) {
                Some(n) => low = (middle, n),
                None => high = middle - 1,
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::{ChosenStacks, NONE, StackPrefixes, Weight, chosen, mix, select_fitting};

    #[test]
    fn selection_chooses_the_leading_items_of_the_sorted_list_that_fit() {
        for seed in 0..500u64 {
            let random = |i: u64| mix(seed << 16 | i);
            let item = |i: u64| (random(i) % 9, i, (random(i) >> 20) as usize % 6);
            let mut items: Vec<(u64, u64, usize)> = (0..random(1000) % 40).map(item).collect();
            let room = random(1001) as usize % 120;
            let mut expected = items.clone();
            expected.sort_unstable();
            let mut sum = 0;
            let fits = |item: &&(u64, u64, usize)| {
                sum += item.2;
                sum <= room
            };
            expected.truncate(expected.iter().take_while(fits).count().max(1));
            let n = select_fitting(&mut items, room, |item| item.2, Ord::cmp);
            let mut selected = items[..n].to_vec();
            selected.sort_unstable();
            assert_eq!(selected, expected, "{seed}");
        }
    }

    #[test]
    fn changed_functions_keep_all_stacks_or_all_of_their_own() {
        let weight = |n: u32, own_function: u32, v: [f64; 2]| Weight {
            values: v,
            tie: mix(u64::from(n)),
            depth: 1,
            own_function,
        };
        let heavy = (0..9_000).map(|n| weight(n, 40, [1000.0; 2]));
        let new = |function: u32| if function == 0 { 40.0 } else { 10.0 };
        let light = (0..20_000).map(|n| weight(9_000 + n, n % 40, [10.0, new(n % 40)]));
        let weights: Vec<Weight> = heavy.chain(light).collect();
        // The number of functions per case whose stacks contain the changed function (500 each), and the expected
        // number of chosen stacks of the second function.
        for (n_with, expected_of_second) in [(1, 0..100), (2, 500..501), (5, 0..100)] {
            let ChosenStacks { stacks, is_whole } = chosen(&weights, usize::MAX, 1.0, |functions, light| {
                assert_eq!(functions, [0]);
                light.iter().map(|&n| u64::from(weights[n as usize].own_function < n_with)).collect()
            });
            let n_chosen =
                |function: u32| stacks.iter().filter(|&&n| weights[n as usize].own_function == function).count();
            assert_eq!((n_chosen(40), n_chosen(0), &is_whole[..]), (9_000, 500, &[true][..]), "{n_with}");
            assert!(expected_of_second.contains(&n_chosen(1)), "{n_with}: {}", n_chosen(1));
        }
    }

    #[test]
    fn longest_prefix_equals_a_direct_comparison() {
        let stack = |seed: u64| -> Vec<u32> {
            let length = 1 + mix(seed) % 12;
            (0..length).map(|i| (mix(seed << 8 | i) % 3) as u32).collect()
        };
        let mut heavy: Vec<Vec<u32>> = (1..40).map(stack).collect();
        heavy.sort();
        let mut prefixes = StackPrefixes::with_capacity(0);
        for (stack, number) in heavy.iter().zip(0..) {
            prefixes.add(number, stack);
        }
        for seed in 100..1000 {
            let light = stack(seed);
            let shared = |other: &Vec<u32>| light.iter().zip(other).take_while(|(a, b)| a == b).count();
            let expected = heavy.iter().map(shared).max().unwrap_or(0);
            let (length, number) = prefixes.longest(&light, &mut Vec::new());
            assert_eq!(length, expected, "{light:?}");
            assert!(length == 0 || heavy[prefixes.stack(number) as usize].starts_with(&light[..length]), "{light:?}");
            // Without its last frame, it must be the next shorter prefix.
            let shorter = prefixes.longest(&light[..length.saturating_sub(1)], &mut Vec::new());
            assert!(length < 2 || shorter == (length - 1, prefixes.shorter(number)), "{light:?}");
            assert!(length != 1 || prefixes.shorter(number) == NONE);
        }
    }
}
