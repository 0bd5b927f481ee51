//! Write the diff as one profile.

use super::{Question, View};
use crate::report::Report;
use pprofdiff::{Result, WriteOptions};

pub(crate) const VIEW: View = View { name: "profile", about: "Write the diff as one profile", ..View::BASE };

pub(crate) fn answer(asked: &Question<'_>, options: &WriteOptions) -> Result<Report> {
    Ok(Report::Profile(asked.diff.to_bytes(asked.query, options)?))
}
