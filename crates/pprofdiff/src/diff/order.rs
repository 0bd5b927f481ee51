//! Sorts stacks by their frames' numbers, root first. It compares keys that contain several frames each, so that a
//! prefix that many stacks share is read once per stack, and not in each comparison.

use pprofdiff_profile::parallel;

/// A stack's number, after the key of its next frames.
type Keyed = (u64, u32);

/// Groups up to this size are sorted by comparing frames directly, without keys.
const FEW: usize = 12;

/// Sorts stacks by their frames.
pub struct StackOrder<F> {
    stack_of: F,
    /// The number of low bits of an item in a stack that are not part of the frame's number.
    shift: u32,
    /// The number of bits of a frame in a key. The value 0 marks the end of a stack.
    bits: u32,
    /// The number of frames in a key.
    frames: usize,
}

impl<F> std::fmt::Debug for StackOrder<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StackOrder").finish_non_exhaustive()
    }
}

impl<'s, F: Fn(u32) -> &'s [u32] + Sync> StackOrder<F> {
    /// Prepares sorting. Frames have numbers below `n_frames`, and an item of a stack is a frame's number shifted left
    /// by `shift` bits.
    pub fn new(n_frames: usize, shift: u32, stack_of: F) -> StackOrder<F> {
        let bits = usize::BITS - n_frames.leading_zeros();
        StackOrder { stack_of, shift, bits, frames: (u64::BITS / bits.max(1)) as usize }
    }

    /// Returns the stacks 0 to `n` in order. Stacks with equal frames are neighbours.
    pub fn sorted(&self, n: usize) -> Vec<u32> {
        let mut keyed: Vec<Keyed> = (0..n as u32).map(|stack| (0, stack)).collect();
        self.fill(&mut keyed, 0);
        parallel::sort_unstable_by(&mut keyed, Keyed::cmp);
        self.sort_groups(&mut keyed, parallel::threads());
        keyed.into_iter().map(|(_, stack)| stack).collect()
    }

    /// Completes the order of stacks that are sorted by their first keys, with `parts` parallel tasks.
    fn sort_groups(&self, keyed: &mut [Keyed], parts: usize) {
        let middle = keyed.len() / 2;
        // The start of the group that contains the middle.
        let border = keyed.get(middle).map_or(0, |group| keyed.partition_point(|other| other.0 < group.0));
        if parts > 1 && border > 0 {
            let (left, right) = keyed.split_at_mut(border);
            parallel::join(|| self.sort_groups(left, parts / 2), || self.sort_groups(right, parts - parts / 2));
            return;
        }
        let mut pending = Vec::new();
        self.push_groups(keyed, 0..keyed.len(), self.frames, &mut pending);
        while let Some((range, depth)) = pending.pop() {
            let group = &mut keyed[range.clone()];
            if group.len() <= FEW {
                let rest = |stack: u32| (self.stack_of)(stack)[depth..].iter().map(|item| item >> self.shift);
                group.sort_unstable_by(|a, b| rest(a.1).cmp(rest(b.1)));
                continue;
            }
            self.fill(group, depth);
            group.sort_unstable();
            self.push_groups(keyed, range, depth + self.frames, &mut pending);
        }
    }

    /// Computes the keys of the frames from `depth` on.
    fn fill(&self, keyed: &mut [Keyed], depth: usize) {
        for (key, stack) in keyed {
            let mut items = (self.stack_of)(*stack)[depth..].iter();
            *key = (0..self.frames)
                .fold(0, |key, _| key << self.bits | items.next().map_or(0, |item| u64::from(item >> self.shift) + 1));
        }
    }

    /// Adds the groups of a range that share a key and have further frames after it.
    fn push_groups(
        &self,
        keyed: &[Keyed],
        range: std::ops::Range<usize>,
        depth: usize,
        pending: &mut Vec<(std::ops::Range<usize>, usize)>,
    ) {
        let mut start = range.start;
        let last = (1 << self.bits) - 1;
        for group in keyed[range].chunk_by(|a, b| a.0 == b.0) {
            if group.len() > 1 && group[0].0 & last != 0 {
                pending.push((start..start + group.len(), depth));
            }
            start += group.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StackOrder;

    #[test]
    fn stacks_are_sorted_by_their_frames() {
        let mut random = 1u32;
        let mut next = |below: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 8) % below
        };
        for n_frames in [1, 3, 300] {
            let stacks: Vec<Vec<u32>> =
                (0..500).map(|_| (0..next(40)).map(|_| next(n_frames).min(next(n_frames))).collect()).collect();
            let order = StackOrder::new(n_frames as usize, 0, |n| &stacks[n as usize]).sorted(stacks.len());
            let mut expected: Vec<&Vec<u32>> = stacks.iter().collect();
            expected.sort();
            assert!(order.iter().map(|&n| &stacks[n as usize]).eq(expected), "{n_frames} frames");
        }
    }
}
