//! Lists the call chains that lead to functions that match a pattern: from the root to the first match, with the values
//! of both sides.
//!
//! A sample counts once, for the chain that ends at the first matching frame from the root. If a package calls itself,
//! this is the call that entered it.

use super::stacks::Stacks;
use super::{Measure, pattern};
use crate::Result;
use pprofdiff_profile::random::HashMap;

/// The exact sum of a chain on a side, or `None` if the side does not have the chain.
type SideSum = Option<i64>;

impl Measure {
    /// Returns the chains of callers that end at a frame with a matching label (see
    /// [`Frames::label`](super::Frames::label)), as stacks.
    ///
    /// # Errors
    /// Fails on an invalid regular expression.
    pub fn roots(&self, regex: &str) -> Result<Stacks> {
        let regex = pattern::compile("roots", regex)?;
        let frames = self.frames();
        let matches: Vec<bool> = (0..frames.len() as u32).map(|frame| frames.is_match(&regex, frame)).collect();
        let sums = |base: bool| {
            let mut sums: HashMap<Vec<u32>, i64> = HashMap::default();
            self.for_each_stack(base, |value, stack| {
                if let Some(last) = stack.iter().position(|&frame| matches[frame as usize]) {
                    let chain = &stack[..=last];
                    match sums.get_mut(chain) {
                        Some(sum) => *sum += value,
                        None => drop(sums.insert(chain.to_vec(), value)),
                    }
                }
            });
            sums
        };
        let (base, new) = self.sides(sums);
        let mut chains: HashMap<Vec<u32>, (SideSum, SideSum)> =
            base.into_iter().map(|(chain, sum)| (chain, (Some(sum), None))).collect();
        for (chain, sum) in new {
            chains.entry(chain).or_default().1 = Some(sum);
        }
        Ok(Stacks::of_chains(self, chains))
    }
}
