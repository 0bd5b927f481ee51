//! The evidence about both sides, before any cause is sought: stacks as rows of numbers, the cost of each row, and the
//! sets of stacks that may be a cause.

pub(super) mod calls;
pub(super) mod costs;
pub(super) mod labels;
mod light;
mod making;
pub(super) mod names;
mod numbering;
mod pieces;
pub(super) mod read;
pub(super) mod recorded;
pub(super) mod rows;
pub(super) mod samples;
pub(super) mod sets;
pub(super) mod weights;
