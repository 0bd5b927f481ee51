//! The next step after an answer: the question that a reader most likely asks next. Agents get it as a call of a tool
//! or as a command.

use pprofdiff::advice::{exactly, typed};
#[cfg(feature = "check")]
use pprofdiff::check::Outcome;

use crate::report::Report;

/// A question about the same inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextStep {
    /// The verb.
    pub verb: &'static str,
    /// The options by their neutral names, with their values. `regex` is the expression of the view.
    pub options: Vec<(&'static str, String)>,
}

impl NextStep {
    fn new(verb: &'static str, options: impl IntoIterator<Item = (&'static str, String)>) -> NextStep {
        NextStep { verb, options: options.into_iter().collect() }
    }
}

impl Report {
    /// Returns the next step after this report as the answer of `verb`: from causes to their stacks, from rows to their
    /// callers, from callers to the source, from the source to a check, and from a check that did not pass to the
    /// causes. The fallback is `top` by cum. `has_sources` is true if the reader has set the folders of sources.
    pub fn next_step(&self, verb: &str, has_sources: bool) -> NextStep {
        let two_sided = self.summary().is_some_and(|s| s.base.is_some());
        match (verb, self) {
            ("info", Report::Info(diff)) if diff.is_two_sided() => NextStep::new("explain", []),
            ("info", _) => NextStep::new("top", []),
            ("explain", Report::Explain(e)) => {
                let sample_type = ("sample_type", e.summary.sample_type.clone());
                let cause = e.causes.first();
                let label = cause.and_then(|cause| cause.label.as_ref());
                let label = label.map(|label| ("tagfocus", format!("{}={}", label.key, label.value)));
                match cause.and_then(|cause| cause.own_pattern()) {
                    Some(pattern) => {
                        let regex = ("regex", typed(&pattern));
                        NextStep::new("peek", [regex, sample_type].into_iter().chain(label))
                    }
                    None => NextStep::new("top", std::iter::once(sample_type).chain(label)),
                }
            }
            ("top" | "diff", Report::Table(table)) if !table.is_empty() => {
                NextStep::new("peek", [("regex", typed(&exactly(&table.label(0))))])
            }
            ("peek", _) => NextStep::new("list", []),
            ("list", Report::Listing(listing))
                if !has_sources && listing.routines.iter().any(|routine| routine.places.1.is_none()) =>
            {
                NextStep::new("list", [("new_source", ".".to_owned())])
            }
            ("list", _) if two_sided => NextStep::new("check", [("fail_on", "total>+5%".to_owned())]),
            #[cfg(feature = "check")]
            ("check", Report::Check(check)) if check.verdict != Outcome::Pass => NextStep::new("explain", []),
            _ => NextStep::new("top", [("sort", "cum".to_owned())]),
        }
    }
}
