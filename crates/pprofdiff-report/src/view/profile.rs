//! Write the diff as one profile.

use super::{Of, Question, ShownBy, View};
use crate::report::Report;
use pprofdiff::options::Scope;
use pprofdiff::{Result, WriteOptions};

pub(crate) const VIEW: View = View {
    name: "profile",
    about: "Write the diff as one profile",
    scope: Scope::Everything,
    of: Of::OneType,
    matched: None,
    shown_by: ShownBy::OwnFormats,
    of_pairs: None,
};

pub(crate) fn answer(asked: &Question<'_>, options: &WriteOptions) -> Result<Report> {
    Ok(Report::Profile(asked.diff.to_bytes(asked.query, options)?))
}
