//! The view `ranking`: many pairs in one answer, ranked by significant change, with the causes that several pairs
//! share.

use super::{Form, ViewInput, ViewSpec};
use crate::ranking::{COMMON, PAIRS, SHARED};

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "ranking",
    about: "Rank many pairs by significant change, with the causes that several pairs share",
    input: ViewInput::ManyPairs,
    forms: &[Form::Text, Form::Json, Form::Rows, Form::Lines, Form::Prose, Form::Page],
    kinds: &[&PAIRS, &SHARED, &COMMON],
    ..ViewSpec::BASE
};
