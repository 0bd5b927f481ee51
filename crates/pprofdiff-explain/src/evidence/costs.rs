//! The cost of each frame including its callees, by side.

use super::rows::StackRows;
use pprofdiff_profile::cancellation::checkpointed;

/// By frame: the values of both sides. A recursive frame counts once per stack.
pub(crate) struct FrameCosts(Vec<[f64; 2]>);

impl FrameCosts {
    pub(crate) fn new(rows: &StackRows) -> FrameCosts {
        let mut costs = vec![[0.0; 2]; rows.names.len()];
        let mut seen = vec![u32::MAX; rows.names.len()];
        for (i, row) in checkpointed(rows.rows.iter().enumerate()) {
            for &frame in rows.stack(i) {
                let frame = frame as usize;
                if seen[frame] != i as u32 {
                    seen[frame] = i as u32;
                    costs[frame][0] += row.values[0];
                    costs[frame][1] += row.values[1];
                }
            }
        }
        FrameCosts(costs)
    }

    pub(crate) fn cost(&self, frame: u32, side: usize) -> f64 {
        self.0[frame as usize][side]
    }

    /// Returns the frames that only one side has, with their cost.
    pub(crate) fn only(&self, side: usize) -> impl Iterator<Item = (f64, u32)> {
        let one_sided = self.0.iter().zip(0..).filter(move |(v, _)| v[side] > 0.0 && v[1 - side] <= 0.0);
        one_sided.map(move |(v, frame)| (v[side], frame))
    }

    /// Returns the frames that a side has.
    pub(crate) fn on(&self, side: usize) -> impl Iterator<Item = u32> {
        (0..).zip(&self.0).filter(move |(_, v)| v[side] > 0.0).map(|(frame, _)| frame)
    }
}
