//! Two profiles with any options, any view, every format: an answer or an error, and the same answer twice.

use crate::shared::{Choices, compute_view, load};
use pprofdiff::Diff;

pub fn run(data: &[u8]) {
    let (options, rest) = data.split_at(data.len().min(32));
    let mut rest = Choices(rest);
    let parts = rest.parts(2);
    let (Some(base), new) = (load("base", parts[0]), load("new", parts[1])) else { return };
    let diff = match new {
        Some(new) => Diff::new(&[base], &[new]),
        None => Diff::of_profile(&base),
    };
    if let Ok(diff) = diff {
        compute_view(&diff, &mut Choices(options));
    }
}
