//! Two profiles with any options, any view, every format: an answer or an error, and the same answer twice.

use crate::inputs::{Inputs, pairs, part};
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

/// Returns each real pair with each view.
pub fn seeds() -> Inputs {
    let mut seeds = Vec::new();
    for (name, [base, new]) in pairs() {
        for view in 0..10 {
            // The options read by `Choices::query`, then the view, the sort order, the number of rows, and a fraction.
            let mut options = [0; 32];
            options[..11].copy_from_slice(&[0, 0, 0, view, 0, view, 0, 200, 10, 129, b'.']);
            seeds.push((format!("{name}-{view}"), [&options, &*part(&base), &new].concat()));
        }
    }
    seeds
}
