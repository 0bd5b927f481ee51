//! The evidence about both sides, before any cause is sought: stacks as rows of numbers, the cost of each row, and the
//! sets of stacks that may be a cause.

pub(super) mod calls;
pub(super) mod costs;
mod labelled;
pub(super) mod labels;
pub(super) mod names;
mod prefixes;
pub(super) mod read;
pub(super) mod recorded;
pub(super) mod rows;
pub(super) mod samples;
mod set_builder;
pub(super) mod sets;
mod stack_chunks;
mod stack_ids;
pub(super) mod weights;
