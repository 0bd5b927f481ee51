//! The syntax of rules, `[TYPE:]total|flat|cum[:any|:each=RE|:regex=RE]>LIMIT`, and the `check` table of
//! `pprofdiff.toml`.

use std::str::FromStr;

use regex::bytes::Regex;
use serde::Deserialize;

use super::exact::Decimal;
use super::{Allow, Rules, SameCode};
use crate::config::parse_config;
use crate::diff::compile;
use crate::{Error, Result};
use pprofdiff_profile::units;

/// The default floor of rules on each frame, in percent of the total: such a rule ignores frames below it. Groups of
/// frames have no default floor.
pub(super) const FLOOR: Decimal = Decimal::whole(1);

/// The cost that a rule limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleCost {
    Total,
    Flat,
    Cum,
}

/// The frames that a rule compares.
#[derive(Debug, Clone)]
pub(super) enum Subject {
    /// The whole profile, without frames.
    Whole,
    /// Each frame separately. With an expression, only the frames that match it.
    Each(Option<Regex>),
    /// All frames that match, compared as a group.
    Together(Regex),
}

/// The limit of a rule. A number with a sign limits the change from the base, a number without a sign limits the new
/// side alone. Units are kept as they were typed; a bare number has an empty unit.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Limit {
    /// The maximum growth in percent of the base's value. Below 0, it demands a reduction.
    Growth(Decimal),
    /// The maximum growth in a unit. Below 0, it demands a reduction.
    Increase(Decimal, String),
    /// The maximum value of the new side.
    Value(Decimal, String),
    /// The maximum part of the new side's total, in percent.
    Share(Decimal),
}

/// One rule.
#[derive(Debug, Clone)]
pub(super) struct CheckRule {
    /// The text of the rule.
    pub text: String,
    pub sample_type: Option<String>,
    pub cost: RuleCost,
    pub subject: Subject,
    pub limit: Limit,
    /// The floor in percent of the total: frames and groups below it on both sides are ignored. `None` uses the floor
    /// of [`Rules`].
    pub floor: Option<Decimal>,
    /// True if the rule may match no frame.
    pub optional: bool,
}

impl CheckRule {
    /// Returns the factors that make the limit comparable with values in `unit`: the size of the values' unit and of
    /// the limit's unit, in the smallest unit of their family. Both are 1 for limits in percent, for equal units, and
    /// for a bare number if `unit` is unknown.
    ///
    /// # Errors
    /// Returns an error if the limit has another unit that does not convert to `unit`, or if it lacks a unit and `unit`
    /// has a known size.
    pub fn factors(&self, unit: &str) -> Result<(i128, i128)> {
        let (Limit::Increase(_, written) | Limit::Value(_, written)) = &self.limit else { return Ok((1, 1)) };
        let values = units::find(unit);
        match (values, units::find(written)) {
            (Some(_), _) if written.is_empty() => Err(self.lacks_unit(unit)),
            _ if written.is_empty() || written == unit => Ok((1, 1)),
            (Some(values), Some(written)) if values.same_family(written) => Ok((values.factor(), written.factor())),
            _ => Err(Error::query(format!(
                "the rule {:?}: a limit in {written} does not fit values in {unit}",
                self.text
            ))),
        }
    }

    /// Returns the error for a limit without a unit. A bare number of nanoseconds or bytes is rarely intended.
    fn lacks_unit(&self, unit: &str) -> Error {
        let is_like = |other: &str| units::find(unit).zip(units::find(other)).is_some_and(|(a, b)| a.same_family(b));
        let usual = ["ms", "MB"].into_iter().find(|usual| is_like(usual)).unwrap_or(unit);
        // A rule on the total cannot limit a part of the total, so its percentage must be a growth with a sign.
        let (subject, limit) = self.text.rsplit_once('>').unwrap_or((&self.text, ""));
        let limit = limit.trim();
        let plus = if self.cost == RuleCost::Total && !limit.starts_with(['+', '-']) { "+" } else { "" };
        Error::query(format!(
            "the rule {:?} lacks a unit, and its values are in {unit}; write {subject}>{limit}{usual} or \
             {subject}>{plus}{limit}%",
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
                "{text:?} is not a limit ({why}); write +5% or +10MB for growth, 2GB for a value, 30% for a part of \
                 the total"
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

impl FromStr for CheckRule {
    type Err = Error;

    fn from_str(text: &str) -> Result<CheckRule> {
        let invalid = |why: &str| Error::query(format!("the rule {text:?} is invalid: {why}"));
        // An expression may contain `>`, while a limit cannot, so the last `>` separates the two.
        let (subject, limit) = text.rsplit_once('>').ok_or_else(|| invalid("it lacks a limit, such as >+5%"))?;
        let limit: Limit = limit.trim().parse().map_err(|e: String| invalid(&e))?;
        let cost = |word: &str| match word.trim() {
            "total" => Some(RuleCost::Total),
            "flat" => Some(RuleCost::Flat),
            "cum" => Some(RuleCost::Cum),
            _ => None,
        };
        let (first, rest) = subject.split_once(':').map_or((subject, None), |(first, rest)| (first, Some(rest)));
        let (sample_type, cost, frames) = match (cost(first), rest) {
            (Some(cost), frames) => (None, cost, frames),
            (None, Some(rest)) => {
                let (word, frames) = rest.split_once(':').map_or((rest, None), |(word, frames)| (word, Some(frames)));
                let cost = cost(word).ok_or_else(|| invalid("it must limit total, flat or cum"))?;
                (Some(first.trim().to_owned()), cost, frames)
            }
            (None, None) => return Err(invalid("it must limit total, flat or cum")),
        };
        let expression = |re: &str| compile(&format!("the rule {text:?}"), re);
        let subject = match (cost, frames.map(str::trim)) {
            (RuleCost::Total, None) => Subject::Whole,
            (RuleCost::Total, Some(_)) => return Err(invalid("total does not take frames; write flat or cum")),
            (_, None | Some("any")) => Subject::Each(None),
            (_, Some(frames)) => match frames.split_once('=') {
                Some(("regex", re)) => Subject::Together(expression(re)?),
                Some(("each", re)) => Subject::Each(Some(expression(re)?)),
                _ => return Err(invalid("frames must be any, each=RE or regex=RE")),
            },
        };
        if matches!((cost, &limit), (RuleCost::Total, Limit::Share(_))) {
            return Err(invalid("the total is always 100% of itself; write >+5% for growth"));
        }
        Ok(CheckRule { text: text.trim().to_owned(), sample_type, cost, subject, limit, floor: None, optional: false })
    }
}

/// Parses a part of the total from 0 to 100 percent: `1%`, `0.5%` or a bare number.
pub(super) fn percent(text: &str) -> Result<Decimal> {
    let number = text.trim().trim_end_matches('%').trim_end();
    let value = number.parse().ok().filter(|v: &Decimal| (0.0..=100.0).contains(&v.to_f64()));
    value.ok_or_else(|| Error::query(format!("a floor must be a percentage of the total such as 1%, not {text:?}")))
}

/// The maximum length of a check's name in bytes.
const MAX_NAME: usize = 100;

/// Checks the name of a check. It is a part of an id with slashes in SARIF.
pub(super) fn checked_name(name: &str) -> Result<String> {
    let is_bad = |c: char| c == '/' || c.is_control();
    if name.trim().is_empty() || name.len() > MAX_NAME || name.contains(is_bad) {
        return Err(Error::query(format!(
            "the name of a check must have 1 to {MAX_NAME} bytes without / and control characters, not {name:?}"
        )));
    }
    Ok(name.trim().to_owned())
}

/// The contents of `pprofdiff.toml`. Tables other than `check` are read elsewhere.
#[derive(Deserialize)]
struct CheckConfig {
    check: Option<CheckSettings>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckSettings {
    name: Option<String>,
    sample_type: Option<String>,
    floor: Option<String>,
    same_code: Option<SameCode>,
    #[serde(default)]
    rules: Vec<RuleEntry>,
    #[serde(default)]
    allow: Vec<Excuse>,
}

/// An entry of the list of rules: a bare rule, or a table with a rule and its own options.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a rule is a text such as \"total>+5%\", or a table with fail_on, and optionally sample_type, floor and \
                 optional"
)]
enum RuleEntry {
    Text(String),
    Table(RuleTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    fail_on: String,
    sample_type: Option<String>,
    floor: Option<String>,
    #[serde(default)]
    optional: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Excuse {
    frame: Option<String>,
    rule: Option<String>,
    sample_type: Option<String>,
    name: Option<String>,
    reason: String,
}

pub(super) fn from_toml(text: &str) -> Result<Rules> {
    let file: CheckConfig = parse_config(text)?;
    let mut rules = Rules::default();
    let Some(settings) = file.check else { return Ok(rules) };
    rules.sample_type = settings.sample_type;
    rules.floor = settings.floor.as_deref().map(percent).transpose()?;
    rules.same_code = settings.same_code;
    rules.name = settings.name.as_deref().map(checked_name).transpose()?;
    for entry in settings.rules {
        let table = match entry {
            RuleEntry::Text(fail_on) => RuleTable { fail_on, sample_type: None, floor: None, optional: false },
            RuleEntry::Table(table) => table,
        };
        let mut rule: CheckRule = table.fail_on.parse()?;
        rule.sample_type = rule.sample_type.or(table.sample_type);
        rule.floor = table.floor.as_deref().map(percent).transpose()?;
        rule.optional = table.optional;
        rules.rules.push(rule);
    }
    for Excuse { frame, rule, sample_type, name, reason } in settings.allow {
        if frame.is_none() && rule.is_none() || reason.trim().is_empty() {
            return Err(Error::query("each entry of the allow-list needs a frame or a rule, and a reason"));
        }
        let frame = frame.map(|re| Ok((compile("the allow-list", &re)?, re))).transpose()?;
        let name = name.as_deref().map(checked_name).transpose()?;
        rules.allow.push(Allow { frame, rule, sample_type, name, reason });
    }
    Ok(rules)
}
