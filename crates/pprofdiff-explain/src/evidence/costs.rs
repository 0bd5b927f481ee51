//! The cost of each frame including its callees, by side.

use super::rows::StackRows;
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::columns::NONE;

/// The values of a frame while they are added up, and the last row that was added.
#[derive(Clone, Copy)]
struct FrameCost {
    values: [f64; 2],
    last: u32,
}

/// By frame: the values of both sides. A recursive frame counts once per stack.
pub(crate) struct FrameCosts(Vec<[f64; 2]>);

impl FrameCosts {
    pub(crate) fn new(rows: &StackRows) -> FrameCosts {
        let mut costs = vec![FrameCost { values: [0.0; 2], last: NONE }; rows.names.len()];
        for (row, i) in checkpointed(rows.rows.iter().zip(0..)) {
            for &frame in rows.stacks.get(row.stack) {
                let cost = &mut costs[frame as usize];
                if cost.last != i {
                    *cost =
                        FrameCost { values: [cost.values[0] + row.values[0], cost.values[1] + row.values[1]], last: i };
                }
            }
        }
        FrameCosts(costs.into_iter().map(|cost| cost.values).collect())
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
