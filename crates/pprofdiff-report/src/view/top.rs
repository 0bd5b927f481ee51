//! The table of frames.

use std::sync::Arc;

use super::{Of, Question, ShownBy, View};
use crate::report::Report;
use crate::request::Ask;
use crate::table::Table;
use pprofdiff::options::Scope;
use pprofdiff::{Error, Result, Sort};

pub(crate) const VIEW: View = View {
    name: "top",
    about: "Show the frames of one profile, or of two",
    scope: Scope::Table,
    of: Of::SeveralTypes,
    matched: None,
    shown_by: ShownBy::Rows,
    of_pairs: Some(|_| Ask::Top { sort: Sort::default(), limit: None, significant: false }),
};

pub(crate) fn answer(asked: &Question<'_>, sort: Sort, limit: usize, significant: bool) -> Result<Report> {
    if !asked.query.extra_sample_types.is_empty() {
        // A row that only one of them hides would seem to cost nothing by it.
        if significant || asked.query.hide_below != Default::default() {
            let what = if significant { "significant rows are those" } else { "hide_below hides rows" };
            return Err(Error::query(format!("{what} of one sample type at a time")));
        }
        let tops = asked.each(|measure| Ok(measure.top(sort)))?;
        return Ok(Report::Table(Table::tops(&tops, limit)));
    }
    let measure = asked.one()?;
    let mut top = match (significant, measure.summary().is_of_runs()) {
        (true, _) => measure.top_of_runs(sort)?,
        // What is asked for is the table; a run that can't be normalized by itself only hides chance.
        (false, true) => measure.top_of_runs(sort).unwrap_or_else(|e| {
            let mut top = measure.top(sort);
            let warning = format!("what runs say is not known: {}", e.detail());
            Arc::make_mut(&mut top.summary).warnings.push(warning);
            top
        }),
        (false, false) => measure.top(sort),
    };
    if significant {
        top.retain_significant();
    }
    Ok(Report::Table(Table::top(&top, limit)))
}
