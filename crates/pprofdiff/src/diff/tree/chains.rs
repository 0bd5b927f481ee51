//! Builds the tree from entries: sorts the entries by their frames, adds them to the tree, and stores their sums in
//! this order.

use super::super::order::StackOrder;
use super::StackTree;
use super::build::Entries;
use super::growing::Growing;
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::parallel;

impl StackTree {
    /// Builds the tree of these entries. Returns `None` if it exceeds `room` bytes. The caller fills in `totals`.
    pub(super) fn of_entries(entries: &Entries, n_frames: usize, room: usize) -> Option<StackTree> {
        let order = StackOrder::new(n_frames, 1, |entry| entries.steps(entry)).sorted(entries.len());
        let growing = Growing::grow(entries, &order, n_frames, room)?;
        let chains = growing.chains(order.len());
        let Growing { steps, arrivals, calls, mut changes, .. } = growing;
        changes.sort_unstable();
        let (n, n_columns, words) = (order.len(), entries.n_columns, entries.words());
        let (mut values, mut cancelled) = (vec![0; n * n_columns], vec![Vec::new(); n_columns]);
        let columns: Vec<_> = (0..).zip(values.chunks_mut(n.max(1)).zip(&mut cancelled)).collect();
        parallel::each(columns, |(column, (values, cancelled)): (usize, (&mut [i64], &mut Vec<(u32, u32)>))| {
            for ((i, &entry), sum) in checkpointed(order.iter().enumerate()).zip(values) {
                *sum = entries.values[entry as usize * n_columns + column];
                let is_present = entries.present[entry as usize * words + column / 64] >> (column % 64) & 1 != 0;
                if *sum == 0 && is_present {
                    cancelled.push((column as u32, i as u32));
                }
            }
        });
        Some(StackTree {
            steps,
            arrivals,
            chains,
            edges: calls.into_pairs(),
            changes,
            n_entries: n,
            values,
            cancelled: cancelled.concat(),
            totals: Vec::new(),
            is_two_sided: false,
        })
    }
}
