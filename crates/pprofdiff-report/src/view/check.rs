//! The view `check`: changes checked against limits, for CI.

use super::{Form, ViewContext, ViewSpec};
use crate::report::Report;
use pprofdiff::Result;
use pprofdiff::check::{CheckPolicy, Rules};
use pprofdiff_explain::ExplainOptions;
use serde::{Deserialize, Serialize};

pub(crate) const VIEW: ViewSpec = ViewSpec {
    name: "check",
    about: "Check changes against limits, for CI; the exit code is the outcome",
    forms: &[Form::Text, Form::Json, Form::Prose, Form::Findings],
    ..ViewSpec::BASE
};

pub(crate) fn answer(context: &ViewContext<'_>, options: &CheckOptions) -> Result<Report> {
    let (rules, explain) = options.rules()?;
    Ok(Report::Check(pprofdiff_explain::check(&rules, &explain, context.diff, context.query)?))
}

/// The limits of a check as users write them. [`Rules`] is the parsed form.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CheckOptions {
    /// The text of a `pprofdiff.toml`.
    pub config: Option<String>,
    /// Rules in addition to the configuration's.
    pub fail_on: Vec<String>,
    /// The share of the total below which frames are ignored, such as `0.5%`.
    pub floor: Option<String>,
    /// The name of the checked program, instead of the name in the configuration.
    #[serde(default)]
    pub name: Option<String>,
    /// How limits are applied.
    #[serde(default, rename = "how")]
    pub policy: CheckPolicy,
}

impl CheckOptions {
    /// Parses the options into rules, and the options of the search for the causes of failed rules.
    ///
    /// # Errors
    /// Fails on an invalid configuration, rule or floor.
    pub fn rules(&self) -> Result<(Rules, ExplainOptions)> {
        let (mut rules, mut explain) = (Rules::default(), ExplainOptions::default());
        if let Some(text) = &self.config {
            rules = Rules::from_toml(text)?;
            // The explanation of failed rules needs the functions that the file declares as the program's runtime.
            explain = explain.with_config(text)?;
        }
        self.fail_on.iter().try_for_each(|rule| rules.fail_on(rule))?;
        self.floor.as_ref().map_or(Ok(()), |floor| rules.set_floor(floor))?;
        self.name.as_ref().map_or(Ok(()), |name| rules.set_name(name))?;
        rules.policy = self.policy;
        Ok((rules, explain))
    }
}
