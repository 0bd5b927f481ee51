//! The order of stacks by their frames' numbers, root first: by keys of a few frames at a time, so that what many stacks
//! have in common is read once for each of them, and not at each comparison.

use pprofdiff_profile::parallel;

/// Stacks by number, each with a key of its next few frames.
type Keyed = (u64, u32);

/// Of a few stacks the frames are compared, instead of keys made of them.
const FEW: usize = 12;

/// Stacks that are to be ordered.
pub(crate) struct Order<F> {
    stack_of: F,
    /// A frame's number is an item of a stack without so many of its last bits.
    shift: u32,
    /// Of a frame's number in a key, in which 0 is the end.
    bits: u32,
    /// Frames in a key.
    frames: usize,
}

impl<'s, F: Fn(u32) -> &'s [u32] + Sync> Order<F> {
    /// Of stacks whose frames have numbers below `n_frames`, which are the items of a stack less their last `shift` bits.
    pub(crate) fn new(n_frames: usize, shift: u32, stack_of: F) -> Order<F> {
        let bits = usize::BITS - n_frames.leading_zeros();
        Order { stack_of, shift, bits, frames: (u64::BITS / bits.max(1)) as usize }
    }

    /// The stacks 0 to `n` in order; those of the same frames are neighbours.
    pub(crate) fn sorted(&self, n: usize) -> Vec<u32> {
        let mut keyed: Vec<Keyed> = (0..n as u32).map(|stack| (0, stack)).collect();
        self.fill(&mut keyed, 0);
        parallel::sort_unstable_by(&mut keyed, Keyed::cmp);
        self.sort_groups(&mut keyed, parallel::threads());
        keyed.into_iter().map(|(_, stack)| stack).collect()
    }

    /// Orders stacks that are ordered by their first keys, in so many parts at the same time.
    fn sort_groups(&self, keyed: &mut [Keyed], parts: usize) {
        let middle = keyed.len() / 2;
        // Where the group begins that is in the middle.
        let border = keyed.get(middle).map_or(0, |at| keyed.partition_point(|other| other.0 < at.0));
        if parts > 1 && border > 0 {
            let (left, right) = keyed.split_at_mut(border);
            parallel::join(|| self.sort_groups(left, parts / 2), || self.sort_groups(right, parts - parts / 2));
            return;
        }
        let mut open = Vec::new();
        self.push_groups(keyed, 0..keyed.len(), self.frames, &mut open);
        while let Some((range, depth)) = open.pop() {
            let group = &mut keyed[range.clone()];
            if group.len() <= FEW {
                let rest = |stack: u32| (self.stack_of)(stack)[depth..].iter().map(|item| item >> self.shift);
                group.sort_unstable_by(|a, b| rest(a.1).cmp(rest(b.1)));
                continue;
            }
            self.fill(group, depth);
            group.sort_unstable();
            self.push_groups(keyed, range, depth + self.frames, &mut open);
        }
    }

    /// Makes the keys of the frames from a depth on.
    fn fill(&self, keyed: &mut [Keyed], depth: usize) {
        for (key, stack) in keyed {
            let mut items = (self.stack_of)(*stack)[depth..].iter();
            *key = (0..self.frames)
                .fold(0, |key, _| key << self.bits | items.next().map_or(0, |item| u64::from(item >> self.shift) + 1));
        }
    }

    /// Notes the groups of a range that have the same key, and more frames behind it.
    fn push_groups(
        &self,
        keyed: &[Keyed],
        range: std::ops::Range<usize>,
        depth: usize,
        open: &mut Vec<(std::ops::Range<usize>, usize)>,
    ) {
        let mut at = range.start;
        let last = (1 << self.bits) - 1;
        for group in keyed[range].chunk_by(|a, b| a.0 == b.0) {
            if group.len() > 1 && group[0].0 & last != 0 {
                open.push((at..at + group.len(), depth));
            }
            at += group.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Order;

    #[test]
    fn stacks_are_in_the_order_of_their_frames() {
        let mut random = 1u32;
        let mut next = |below: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 8) % below
        };
        for n_frames in [1, 3, 300] {
            let stacks: Vec<Vec<u32>> =
                (0..500).map(|_| (0..next(40)).map(|_| next(n_frames).min(next(n_frames))).collect()).collect();
            let order = Order::new(n_frames as usize, 0, |n| &stacks[n as usize]).sorted(stacks.len());
            let mut wanted: Vec<&Vec<u32>> = stacks.iter().collect();
            wanted.sort();
            assert!(order.iter().map(|&n| &stacks[n as usize]).eq(wanted), "{n_frames} frames");
        }
    }
}
