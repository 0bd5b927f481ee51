//! Print the profile's comments.

use super::{Question, ShownBy, ViewSpec};
use crate::report::Report;
use pprofdiff::random::HashSet;

pub(crate) const VIEW: ViewSpec =
    ViewSpec { name: "comments", about: "Print the profile's comments", shown_by: ShownBy::Text, ..ViewSpec::BASE };

pub(crate) fn answer(asked: &Question<'_>) -> Report {
    let diff = asked.diff;
    // Those of one profile are all shown, of several each once.
    let (own, mut known) = (diff.profiles().count() == 1, HashSet::<_>::default());
    let profiles = diff.new_side().chain(diff.base().filter(|_| !own));
    let comments = profiles.flat_map(|profile| profile.comments());
    Report::Comments(comments.filter(|comment| own || known.insert(comment.clone())).collect())
}
