//! What is known of both sides before anything is said of them: stacks as rows of numbers, what each costs, and the sets of
//! them that may be a cause.

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
