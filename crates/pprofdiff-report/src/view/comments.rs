//! The view `comments`: the comments that producers stored in profiles.

use super::{Form, ViewContext, ViewSpec};
use crate::report::Report;
use pprofdiff::random::HashSet;

pub(crate) const VIEW: ViewSpec =
    ViewSpec { name: "comments", about: "Print the profile's comments", forms: &[Form::Text], ..ViewSpec::BASE };

pub(crate) fn answer(context: &ViewContext<'_>) -> Report {
    let diff = context.diff;
    // Show all comments of a single profile, but each distinct comment of several profiles once.
    let (is_single, mut seen) = (diff.profiles().count() == 1, HashSet::<_>::default());
    let profiles = diff.new_side().chain(diff.base().filter(|_| !is_single));
    let comments = profiles.flat_map(|profile| profile.comments());
    Report::Comments(comments.filter(|comment| is_single || seen.insert(comment.clone())).collect())
}
