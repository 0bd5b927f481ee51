//! Rules as people write them: `[TYPE:]total|flat|cum[:any|:each=RE|:regex=RE]>LIMIT`, and `pprofdiff.toml`.

use std::str::FromStr;

use regex::bytes::Regex;
use serde::Deserialize;

use super::exact::Decimal;
use super::{Allow, Rules};
use crate::diff::compile;
use crate::explain::ExplainOptions;
use crate::{Error, Result};
use pprofdiff_profile::units;

/// The default floor, in percent of the total: a rule on each frame ignores frames below it.
pub(super) const FLOOR: Decimal = Decimal::whole(1);

/// What a rule limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cost {
    Total,
    Flat,
    Cum,
}

/// Which frames it is about.
#[derive(Debug, Clone)]
pub(super) enum Subject {
    /// None: the whole profile.
    Whole,
    /// Each frame by itself; those that match, if there is an expression.
    Each(Option<Regex>),
    /// All that match, taken as one.
    Together(Regex),
}

/// How much is too much. Units are as they were written, empty where there is none.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Limit {
    /// Percent of the base's own value that it may grow by.
    Growth(Decimal),
    /// How much it may grow by.
    Increase(Decimal, String),
    /// The largest value.
    Value(Decimal, String),
    /// The largest part of the new side's total, in percent.
    Share(Decimal),
}

/// One rule.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    /// As it was written.
    pub text: String,
    pub sample_type: Option<String>,
    pub cost: Cost,
    pub subject: Subject,
    pub limit: Limit,
    /// Frames below this percentage of the total on both sides are ignored; the floor of [`Rules`] if not given.
    pub floor: Option<Decimal>,
}

impl Rule {
    /// How a limit in a unit of its own compares with values in `unit`: how many of the smallest unit of their family a
    /// value's unit is, and the limit's.
    pub fn factors(&self, unit: &str) -> Result<(i128, i128)> {
        let (Limit::Increase(_, own) | Limit::Value(_, own)) = &self.limit else { return Ok((1, 1)) };
        let known = units::find(unit);
        match (known, units::find(own)) {
            (Some(_), _) if own.is_empty() => Err(self.lacks_unit(unit)),
            _ if own.is_empty() || own == unit => Ok((1, 1)),
            (Some(known), Some(own)) if known.same_family(own) => Ok((known.factor(), own.factor())),
            _ => Err(Error::query(format!("the rule {:?}: a limit in {own} does not fit values in {unit}", self.text))),
        }
    }

    /// A bare number of nanoseconds or bytes is hardly ever what was meant.
    fn lacks_unit(&self, unit: &str) -> Error {
        let is_like = |other: &str| units::find(unit).zip(units::find(other)).is_some_and(|(a, b)| a.same_family(b));
        let usual = ["ms", "MB"].into_iter().find(|usual| is_like(usual)).unwrap_or(unit);
        // The total is no part of itself, so its percentage can only be one of growth.
        let (what, limit) = self.text.rsplit_once('>').unwrap_or((&self.text, ""));
        let limit = limit.trim();
        let plus = if self.cost == Cost::Total && !limit.starts_with(['+', '-']) { "+" } else { "" };
        Error::query(format!(
            "the rule {:?} lacks a unit, and its values are in {unit}; write {what}>{limit}{usual} or \
             {what}>{plus}{limit}%",
            self.text
        ))
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Limit, String> {
        let digits = text.find(|c: char| !(c.is_ascii_digit() || "+-.".contains(c))).unwrap_or(text.len());
        let (number, unit) = (&text[..digits], text[digits..].trim());
        let value: Decimal = number.parse().map_err(|why| {
            format!(
                "{text:?} is no limit ({why}); write +5% or +10MB for growth, 2GB for a value, 30% for a part of the \
                 total"
            )
        })?;
        let grows = number.starts_with(['+', '-']);
        match (grows, unit) {
            (true, "%") => Ok(Limit::Growth(value)),
            (false, "%") => Ok(Limit::Share(value)),
            (_, unit) if !unit.is_empty() && units::find(unit).is_none() => Err(format!("{unit:?} is not a unit")),
            (true, unit) => Ok(Limit::Increase(value, unit.to_owned())),
            (false, unit) => Ok(Limit::Value(value, unit.to_owned())),
        }
    }
}

impl FromStr for Rule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Rule> {
        let invalid = |why: &str| Error::query(format!("the rule {text:?} is invalid: {why}"));
        // A limit has no such sign, an expression may.
        let (what, limit) = text.rsplit_once('>').ok_or_else(|| invalid("it has no limit, such as >+5%"))?;
        let limit: Limit = limit.trim().parse().map_err(|e: String| invalid(&e))?;
        let cost = |word: &str| match word.trim() {
            "total" => Some(Cost::Total),
            "flat" => Some(Cost::Flat),
            "cum" => Some(Cost::Cum),
            _ => None,
        };
        let (first, rest) = what.split_once(':').map_or((what, None), |(first, rest)| (first, Some(rest)));
        let (sample_type, cost, frames) = match (cost(first), rest) {
            (Some(cost), frames) => (None, cost, frames),
            (None, Some(rest)) => {
                let (word, frames) = rest.split_once(':').map_or((rest, None), |(word, frames)| (word, Some(frames)));
                let known = cost(word).ok_or_else(|| invalid("what it limits is total, flat or cum"))?;
                (Some(first.trim().to_owned()), known, frames)
            }
            (None, None) => return Err(invalid("what it limits is total, flat or cum")),
        };
        let expression = |re: &str| compile(&format!("the rule {text:?}"), re);
        let subject = match (cost, frames.map(str::trim)) {
            (Cost::Total, None) => Subject::Whole,
            (Cost::Total, Some(_)) => return Err(invalid("a total has no frames; write flat or cum")),
            (_, None | Some("any")) => Subject::Each(None),
            (_, Some(frames)) => match frames.split_once('=') {
                Some(("regex", re)) => Subject::Together(expression(re)?),
                Some(("each", re)) => Subject::Each(Some(expression(re)?)),
                _ => return Err(invalid("frames are any, each=RE or regex=RE")),
            },
        };
        if matches!((cost, &limit), (Cost::Total, Limit::Share(_))) {
            return Err(invalid("the total is always 100% of itself; write >+5% for growth"));
        }
        Ok(Rule { text: text.trim().to_owned(), sample_type, cost, subject, limit, floor: None })
    }
}

/// A part of the total, in percent: `1%`, `0.5%` or the number alone.
pub(super) fn percent(text: &str) -> Result<Decimal> {
    let number = text.trim().trim_end_matches('%').trim_end();
    let value = number.parse().ok().filter(|v: &Decimal| (0.0..=100.0).contains(&v.to_f64()));
    value.ok_or_else(|| Error::query(format!("a floor is a part of the total such as 1%, not {text:?}")))
}

/// `pprofdiff.toml`. Other tables than `check` are for others.
#[derive(Deserialize)]
struct File {
    check: Option<Settings>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    sample_type: Option<String>,
    floor: Option<String>,
    #[serde(default)]
    rules: Vec<Entry>,
    #[serde(default)]
    allow: Vec<Excuse>,
}

/// A rule by itself, or with what is said of it alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Text(String),
    Table(RuleTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    fail_on: String,
    sample_type: Option<String>,
    floor: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Excuse {
    frame: Option<String>,
    rule: Option<String>,
    reason: String,
}

/// Reads a `pprofdiff.toml`.
pub(crate) fn toml<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    ::toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        Error::query(format!("line {line}: {}", e.message().lines().next().unwrap_or("not TOML")))
    })
}

pub(super) fn from_toml(text: &str) -> Result<Rules> {
    let file: File = toml(text)?;
    // What it says of the program's own runtime, for the causes of what fails.
    let explain = ExplainOptions::default().with_config(text)?;
    let mut rules = Rules { explain, ..Rules::default() };
    let Some(settings) = file.check else { return Ok(rules) };
    rules.sample_type = settings.sample_type;
    rules.floor = settings.floor.as_deref().map(percent).transpose()?;
    for entry in settings.rules {
        let own = match entry {
            Entry::Text(fail_on) => RuleTable { fail_on, sample_type: None, floor: None },
            Entry::Table(own) => own,
        };
        let mut rule: Rule = own.fail_on.parse()?;
        rule.sample_type = rule.sample_type.or(own.sample_type);
        rule.floor = own.floor.as_deref().map(percent).transpose()?;
        rules.rules.push(rule);
    }
    for Excuse { frame, rule, reason } in settings.allow {
        if frame.is_none() && rule.is_none() || reason.trim().is_empty() {
            return Err(Error::query("what is allowed has a frame or a rule, and a reason"));
        }
        let frame = frame.map(|re| Ok((compile("what is allowed", &re)?, re))).transpose()?;
        rules.allow.push(Allow { frame, rule, reason });
    }
    Ok(rules)
}
