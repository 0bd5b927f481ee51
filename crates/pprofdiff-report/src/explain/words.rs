//! An explanation in words: what is said, line by line, and what of it goes first where there is little room.

use super::command_of;
use super::markup::Markup;
use crate::numbers::{counted, figure as factor, least_growth};
use crate::tokens::tokens;
use pprofdiff::explain::{Cause, CauseKind, Explanation, How, Moved, Part, Rewrite, ScaleRule, Verdict, Within};
use pprofdiff::sampling::{Model, Sampling};
use pprofdiff::units::{self, ColumnUnit};

/// The most causes, parts of one, and moved functions that text names.
pub(super) const MAX_CAUSES: usize = 4;
const MAX_PARTS: usize = 3;
const MAX_MOVED: usize = 3;
/// From this part on, one factor explains a change.
const MOSTLY: f64 = 0.85;
/// Consequences that are less than this part of the total are not all that changed.
const CONSEQUENCES: f64 = 0.02;
/// A difference of the totals is certain that is by chance with less than this probability.
pub(super) const SURE: f64 = 0.001;
/// A difference of the totals that is by chance with this probability may be.
const UNSURE: f64 = 0.05;
/// Counts that are spent as time is.
const SPENT: [&str; 5] = ["samples", "sample", "cpu", "cycles", "instructions"];
/// Sample types of waits for locks.
const WAITED: [&str; 4] = ["delay", "park", "lock", "locks"];
/// What sample types begin with that say what there is, and not what was done.
const HELD: [&str; 4] = ["inuse", "live", "goroutine", "threadcreate"];
/// What is less than this part of a difference is not named in its account.
const NAMED: f64 = 0.005;

/// True of calls of one function instead of another: its parts are these.
pub(super) fn is_replaced(cause: &Cause) -> bool {
    let kinds: Vec<CauseKind> = cause.parts.iter().map(|part| part.kind).collect();
    let is_called = |part: &Part| part.caller.is_some() && part.caller == cause.function;
    kinds == [CauseKind::Added, CauseKind::Removed] && cause.parts.iter().all(is_called)
}

/// `12 %`, `2.6 %`; with a sign if it is a change.
pub(super) fn percent(part: f64) -> String {
    let percent = 100.0 * part.abs();
    match percent {
        p if p >= 9.95 => format!("{p:.0}%"),
        p => format!("{p:.1}%"),
    }
}

fn signed_percent(part: f64) -> String {
    format!("{}{}", if part < 0.0 { "-" } else { "+" }, percent(part))
}

/// A number of which no more is known.
fn two_digits(x: f64) -> f64 {
    let unit = 10f64.powf(x.abs().max(1e-300).log10().floor() - 1.0);
    (x / unit).round() * unit
}

/// Returns the parts of two names before what both end with, if neither is empty: the types that methods belong to.
fn owners<'a>(from: &'a str, to: &'a str) -> Option<(&'a str, &'a str)> {
    let same = from.chars().rev().zip(to.chars().rev()).take_while(|(a, b)| a == b);
    let rest = &from[from.len() - same.map(|(c, _)| c.len_utf8()).sum::<usize>()..];
    let end = rest.len() - rest.rfind(['.', ':'])?;
    let prefix = |name: &'a str| name.get(..name.len() - end).map(|prefix| prefix.trim_end_matches(':'));
    let (from, to) = (prefix(from)?, prefix(to)?);
    (!from.is_empty() && !to.is_empty()).then_some((from, to))
}

/// Returns true if two paths are a pair of other paths with the same further path below, as packages of a module are.
fn are_below((from, to): (&str, &str), (upper_from, upper_to): (&str, &str)) -> bool {
    fn below<'a>(path: &'a str, upper: &str) -> Option<&'a str> {
        path.strip_prefix(upper).filter(|rest| rest.starts_with(['/', '.', ':']))
    }
    let is_named = !upper_from.is_empty() && !upper_to.is_empty();
    is_named && below(from, upper_from).is_some_and(|rest| below(to, upper_to) == Some(rest))
}

/// Growths from here on (a tenth becomes a hundred times the whole) are as good as never noticed.
const NOTHING_KNOWN: f64 = 1000.0;

/// The least growth of a frame with a tenth of the total that is noticed.
fn noticed(e: &Explanation) -> String {
    least_growth(e.noise.noticed)
}

/// What a line is about. In the order of importance: what there is no room for goes from the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Priority {
    Answer,
    Warning,
    Scale,
    Account,
    Detail,
    Moved,
    Noise,
}

/// One line of what is said.
pub(super) struct Line {
    pub about: Priority,
    pub text: String,
}

/// An explanation in words.
pub(super) struct ExplanationText<'a> {
    pub e: &'a Explanation,
    pub markup: Markup,
}

impl ExplanationText<'_> {
    pub(super) fn total(&self, value: f64) -> String {
        self.markup.amount(&units::show_real(value, &self.e.summary.unit))
    }

    /// A change as a part of the base's total; of a base without any, what it is.
    fn share(&self, part: f64) -> String {
        if self.e.total.0 == 0.0 { "new".to_owned() } else { signed_percent(part) }
    }

    pub(super) fn amount(&self, value: f64) -> String {
        self.markup.amount(&format!(
            "{}{}",
            if value < 0.0 { "-" } else { "+" },
            units::show_real(value.abs(), &self.e.summary.unit)
        ))
    }

    /// What changed, as a sentence without its end.
    fn sentence(&self, cause: &Cause) -> String {
        let up = cause.delta >= 0.0;
        let function = cause.function.as_deref().map_or_else(|| "all of it".to_owned(), |f| self.markup.name(f));
        let more = if up { "more" } else { "less" };
        let costs = match self.verb(cause) {
            verb @ ("allocates" | "holds" | "has") => format!("{verb} {more}"),
            _ => format!("costs {more}"),
        };
        if let Some(callee) = cause.callee.as_deref().map(|f| self.markup.name(f)) {
            let (base, new) = (cause.evidence.base.value, cause.evidence.new.value);
            // Where stacks were cut, calls may be among what is gone.
            return match self.e.pruned == 0 {
                true if base <= 0.0 => format!("{function} now {} {callee}", self.calls(cause)),
                true if new <= 0.0 => format!("{function} no longer {} {callee}", self.calls(cause)),
                _ => self.spends(cause, &function, more, &callee),
            };
        }
        if let [came, went] = cause.parts.as_slice()
            && is_replaced(cause)
            && let (Some(came_to), Some(went_to)) = (&came.function, &went.function)
        {
            let (came_to, went_to) = (self.markup.name(came_to), self.markup.name(went_to));
            let values = [came, went].map(|part| self.amount(part.delta));
            return format!("{function} calls {came_to} ({}) instead of {went_to} ({})", values[0], values[1]);
        }
        match (cause.kind, cause.caller.as_deref().map(|f| self.markup.name(f))) {
            // Who holds a lock or waits for it, and not what it does.
            (CauseKind::Own, _) if self.is_delay(cause) => {
                format!("waits at {function} cost {more}")
            }
            (CauseKind::Own, Some(caller)) => match (self.verb(cause), up) {
                ("spends", true) => format!("{function} itself {costs} (called more by {caller}, or slower)"),
                ("spends", false) => format!("{function} itself {costs} (called less by {caller}, or faster)"),
                _ => format!("{function} itself {costs}, called by {caller}"),
            },
            (CauseKind::Own, None) => format!("{function} itself {costs}"),
            (CauseKind::Calls, Some(caller)) => self.spends(cause, &caller, more, &function),
            // Of several callees, which are its parts.
            (CauseKind::Calls, None)
                if cause.function.is_some() && cause.parts.iter().any(|part| part.caller == cause.function) =>
            {
                format!("{function} {} {more} in what it calls", self.verb(cause))
            }
            (CauseKind::Calls, None) => format!("{function} {costs}{}", self.called(cause)),
            (CauseKind::Added, Some(caller)) => format!("{caller} now {} {function}", self.calls(cause)),
            (CauseKind::Added, None) if !self.tells_calls(cause) => format!("{function} now {}", self.verb(cause)),
            (CauseKind::Added, None) => format!("{function} is new"),
            (CauseKind::Removed, Some(caller)) => format!("{caller} no longer {} {function}", self.calls(cause)),
            (CauseKind::Removed, None) if !self.tells_calls(cause) => {
                format!("{function} no longer {}", self.verb(cause))
            }
            (CauseKind::Removed, None) => format!("{function} is gone"),
        }
    }

    /// Whether a call that came or went is what the samples tell: where memory or waits are counted, it may have been there
    /// without any.
    fn tells_calls(&self, cause: &Cause) -> bool {
        matches!(self.verb(cause), "spends" | "has")
    }

    /// What a caller does now, or no longer does, with what it calls.
    fn calls(&self, cause: &Cause) -> String {
        if self.tells_calls(cause) { "calls".to_owned() } else { format!("{} in", self.verb(cause)) }
    }

    /// What a caller has more or less of in what it calls.
    fn spends(&self, cause: &Cause, caller: &str, more: &str, callee: &str) -> String {
        format!("{caller} {} {more} in {callee}{}", self.verb(cause), self.called(cause))
    }

    /// What a function does with what is measured.
    fn verb(&self, cause: &Cause) -> &'static str {
        match self.e.summary.sample_type.as_str() {
            kind if kind.starts_with("alloc") => "allocates",
            kind if HELD.iter().any(|held| kind.starts_with(held)) => "holds",
            kind if kind.contains("contention") => "waits",
            "space" if self.e.scale.rule == ScaleRule::Level => "holds",
            _ if self.is_delay(cause) => "waits",
            _ if self.is_spent() => "spends",
            _ => "has",
        }
    }

    /// Whether what is measured is time, or is sampled as time passes.
    fn is_spent(&self) -> bool {
        SPENT.contains(&self.e.summary.sample_type.as_str()) || self.is_time()
    }

    /// How that may be, where nothing counts calls.
    fn called(&self, cause: &Cause) -> &'static str {
        match (self.verb(cause), cause.delta >= 0.0) {
            ("spends", true) => " (called more, or slower)",
            ("spends", false) => " (called less, or faster)",
            _ => "",
        }
    }

    /// Which functions of the program come to a library's, unless the sentence has named the one that does.
    fn program(&self, cause: &Cause) -> String {
        let shown = match cause.program.as_slice() {
            [] => return String::new(),
            [first, ..] if cause.caller.as_ref() == Some(&first.function) => return String::new(),
            [first, ..] if first.delta / cause.delta > MOSTLY => {
                return format!(", for {}", self.markup.name(&first.function));
            }
            more => &more[..more.len().min(MAX_PARTS)],
        };
        let one = |within: &Within| format!("{} ({})", self.markup.name(&within.function), self.amount(within.delta));
        format!(", for {}", shown.iter().map(one).collect::<Vec<_>>().join(", "))
    }

    fn is_time(&self) -> bool {
        units::find(&self.e.summary.unit).zip(units::find("ns")).is_some_and(|(unit, ns)| unit.same_family(ns))
    }

    /// True if time is waited for: of what is a time, only waits are counted beside it; or its name says so.
    fn is_delay(&self, cause: &Cause) -> bool {
        self.is_time() && (cause.split.is_some() || WAITED.contains(&self.e.summary.sample_type.as_str()))
    }

    pub(super) fn cause(&self, cause: &Cause) -> String {
        let change = format!("{} ({})", self.amount(cause.delta), self.share(cause.share));
        let times = cause.factor.filter(|f| *f > 0.0).map_or_else(String::new, |f| format!(", x{}", factor(f)));
        if cause.function.is_none() && cause.label.is_none() {
            let all = if self.e.causes.len() > 1 { "all else" } else { "all" };
            let why = match cause.delta > 0.0 {
                true => "grew alike: more live data, or a leak in proportion",
                false => "shrank alike: less live data",
            };
            return format!("{all} of it {why}: {change}{times}");
        }
        if let Some(label) = &cause.label {
            let place = cause.function.as_deref().map_or_else(String::new, |f| format!(" in {}", self.markup.name(f)));
            let label = self.markup.name(&format!("{}={}", label.key, label.value));
            let others = if self.e.causes.len() == 1 { "; other values of the label did not change" } else { "" };
            return format!("{label}{place}: {change}{times}{others}");
        }
        let split = cause.split.map_or_else(String::new, |split| {
            let (count, unit) = (split.count_factor, split.unit_factor);
            let is_long = self.is_delay(cause);
            let (many, large, size) =
                if is_long { ("many waits", "long", "length") } else { ("many", "large", "size") };
            let factors = format!("{} x as {many}, each {} x as {large}", factor(count), factor(unit));
            let explains =
                |what: &str, part: f64| format!(". The {what} explains {}: {factors}", percent(part.min(1.0)));
            let lock = |more: &str, less: &str| match (is_long, cause.delta > 0.0) {
                (false, _) => String::new(),
                (true, true) => format!(": {more}"),
                (true, false) => format!(": {less}"),
            };
            match () {
                () if split.count > MOSTLY => {
                    explains("count", split.count)
                        + &lock("the lock is taken more often", "the lock is taken less often")
                }
                () if split.unit > MOSTLY => {
                    explains(size, split.unit)
                        + &lock(
                            "the lock is held longer, or more wait for it",
                            "the lock is held for less time, or fewer wait for it",
                        )
                }
                () => format!(". {factors}"),
            }
        });
        let garbage = cause
            .garbage
            .filter(|garbage| garbage.abs() > NAMED * cause.delta.abs())
            .map_or_else(String::new, |garbage| {
                format!("; about {} of garbage collection besides", self.amount(two_digits(garbage)))
            });
        format!("{}{}: {change}{times}{split}{garbage}", self.sentence(cause), self.program(cause))
    }

    pub(super) fn parts(&self, parts: &[Part]) -> String {
        let of = |p: &Part| p.function.as_deref().map_or_else(String::new, |f| self.markup.name(f));
        let one = |p: &Part| format!("{} {}", of(p), self.amount(p.delta));
        let shown: Vec<String> = parts.iter().take(MAX_PARTS).map(one).collect();
        format!("of it {}", shown.join(", "))
    }

    pub(super) fn moved(&self, m: &Moved) -> String {
        let (function, from) = (self.markup.name(&m.function), self.markup.name(&m.from));
        let total = self.e.total.0;
        let inside = m.inside.as_deref().map_or_else(String::new, |f| format!(" inside {}", self.markup.name(f)));
        let sum = if m.even { ", no change in sum" } else { "" };
        match (m.how, m.cost) {
            (How::Renamed, Some((base, new))) => {
                let (base, new) = (self.total(base), self.total(new));
                format!("{from} is now called {function}: {base} {} {new}{sum}", self.markup.arrow())
            }
            (How::Replaced, _) => {
                let size = if total > 0.0 { format!(": {}", percent(m.delta / total)) } else { String::new() };
                format!("{function} in place of {from}{inside}{size}{sum}")
            }
            // What else has it is not one function.
            (How::Shift, _) if m.inside.as_ref() == Some(&m.from) => {
                format!("{function} has more{inside}: {}{sum}", percent(m.delta / total))
            }
            (How::Shift, _) if m.inside.as_ref() == Some(&m.function) => {
                format!("{from} has less{inside}: {}{sum}", percent(m.delta / total))
            }
            (how, _) => {
                let total = if how == How::Outlined { self.e.total.1 } else { total };
                let size = if total > 0.0 { format!(": {}", percent(m.delta / total)) } else { String::new() };
                format!("{from}'s cost is now {function}'s ({}){inside}{size}{sum}", how.name())
            }
        }
    }

    /// Returns a line for each package with another path, and for each other function that moved or was replaced.
    fn all_moved(&self) -> Vec<String> {
        let mut packages: Vec<((&str, &str), Vec<&Moved>)> = Vec::new();
        for m in &self.e.moved {
            let of = match &m.packages {
                Some((from, to)) => Some((from.as_str(), to.as_str())),
                None if m.how == How::Renamed => owners(&m.from, &m.function),
                None => None,
            };
            let known = of.and_then(|of| packages.iter_mut().find(|(paths, _)| *paths == of));
            match known {
                Some((_, functions)) => functions.push(m),
                None => packages.push((of.unwrap_or(("", "")), vec![m])),
            }
        }
        // The packages of a module move with it.
        let uppers: Vec<(&str, &str)> = packages.iter().map(|(paths, _)| *paths).collect();
        for i in (0..packages.len()).rev() {
            let upper = uppers.iter().position(|upper| are_below(packages[i].0, *upper));
            if let Some(upper) = upper.and_then(|upper| packages.iter().position(|(paths, _)| *paths == uppers[upper]))
            {
                let functions = std::mem::take(&mut packages[i].1);
                packages[upper].1.extend(functions);
                packages[i].0 = ("", "");
            }
        }
        packages.retain(|(_, functions)| !functions.is_empty());
        let line = |((from, to), functions): &((&str, &str), Vec<&Moved>)| match functions.as_slice() {
            [m] if m.how == How::Replaced => format!("Replaced: {}", self.moved(m)),
            [m] => format!("Moved: {}", self.moved(m)),
            functions => {
                let functions = counted(functions.len(), "function");
                format!("Moved: {} is now called {}: {functions}", self.markup.name(from), self.markup.name(to))
            }
        };
        packages.iter().map(line).collect()
    }

    /// What was rewritten, as a whole.
    pub(super) fn rewrite(&self, of: &Rewrite) -> String {
        let (base, new) = (self.total(of.cost.0), self.total(of.cost.1));
        let functions = counted(of.gone, "function");
        let what = match (of.from.as_str(), of.to.as_str()) {
            (from, to) if from.is_empty() || to.is_empty() => match &of.below {
                Some(caller) => format!("what {} calls", self.markup.name(caller)),
                None => "what some functions call".to_owned(),
            },
            (from, to) if from == to => self.markup.name(from),
            (from, to) => format!("{} is now {}", self.markup.name(from), self.markup.name(to)),
        };
        format!("Rewritten: {what}: {base} {} {new}; {functions} gone, {} new.", self.markup.arrow(), of.came)
    }

    /// What is said where there is no cause.
    pub(super) fn verdict(&self) -> Option<String> {
        let (e, noticed) = (self.e, noticed(self.e));
        let is_known = e.noise.noticed < NOTHING_KNOWN;
        match e.verdict {
            Verdict::Change => None,
            Verdict::None if e.moved.is_empty() && e.rewrite.is_none() && is_known => {
                Some(format!("No change. A frame with 10% of the total would have been noticed from {noticed}."))
            }
            Verdict::None if e.moved.is_empty() && e.rewrite.is_none() => Some("No change.".to_owned()),
            Verdict::None => {
                let is_replaced = e.moved.iter().any(|moved| moved.how == How::Replaced);
                let what = match is_replaced {
                    true => "No change in sum, but other functions have the cost.",
                    false => "Nothing changed but where cost is counted.",
                };
                let noticed = format!(" A frame with 10% of the total would have been noticed from {noticed}.");
                Some(what.to_owned() + if is_known { &noticed } else { "" })
            }
            Verdict::Inconclusive if self.is_uncounted() => Some(self.uncounted()),
            Verdict::Inconclusive if self.is_exact() && e.suspects.is_empty() => Some(format!(
                "The counts differ, but no cause stands out from how much snapshots differ.{}",
                self.candidate()
            )),
            Verdict::Inconclusive if e.rewrite.is_some() && e.suspects.is_empty() => Some(
                "Much was rewritten, so these samples can't tell whether the same work costs more or less. Give --ops."
                    .to_owned(),
            ),
            Verdict::Inconclusive => Some(match e.suspects.first() {
                Some(suspect) => {
                    let scale = factor(e.total.1 / e.total.0.max(f64::MIN_POSITIVE));
                    format!("Either {scale} times as much work, or {}. Give --ops.", self.cause(suspect))
                }
                None if !e.account.by_chance && e.account.p.is_some_and(|p| p < SURE) => format!(
                    "The whole changed, x{}, but these samples can't tell which part of it.{}",
                    factor(e.total.1 / e.total.0.max(f64::MIN_POSITIVE)),
                    self.candidate()
                ),
                None if is_known => format!(
                    "These samples can't tell: a frame with 10% of the total would have been noticed only from \
                     {noticed}.{}",
                    self.candidate()
                ),
                None => format!("These samples can't tell.{}", self.candidate()),
            }),
        }
    }

    /// Returns true if the number of samples is not known on one of the sides, and no further runs show the noise.
    pub(super) fn is_uncounted(&self) -> bool {
        !self.e.noise.is_replicated()
            && self.e.summary.sampling.iter().flatten().any(|side| side.model == Model::Unknown)
    }

    /// Returns true for complete counts, in which nothing was sampled, of too few snapshots to show how much they differ.
    pub(super) fn is_exact(&self) -> bool {
        let is_exact = |sides: &[Sampling; 2]| sides.iter().all(|side| side.model == Model::Exact);
        !self.e.noise.is_replicated() && self.e.summary.sampling.as_ref().is_some_and(is_exact)
    }

    /// The answer where the number of samples is not known: the largest change of the table, without any chance.
    fn uncounted(&self) -> String {
        let largest = match &self.e.candidate {
            Some(candidate) => format!(" The largest change is: {}.", self.cause(&candidate.cause)),
            None => String::new(),
        };
        format!("The number of samples is not known, so these values can't tell a change from chance.{largest}")
    }

    /// The line about the sampling model of both sides.
    fn sampling(&self) -> Option<String> {
        let [base, new] = self.e.summary.sampling.as_ref()?.each_ref().map(|side| side.to_words());
        let words = |words: &str| self.markup.words(words);
        Some(match base == new {
            true => format!("Samples: {}.", words(&base)),
            false => format!("Samples: base {}; new side {}.", words(&base), words(&new)),
        })
    }

    /// What comes nearest to a cause, and what would show whether it is one.
    fn candidate(&self) -> String {
        let Some(candidate) = &self.e.candidate else { return String::new() };
        let runs = candidate.runs.map_or_else(|| "more than 20 runs".to_owned(), |runs| format!("about {runs} runs"));
        format!(" Nearest to a cause: {}; {runs} a side would tell.", self.cause(&candidate.cause))
    }

    pub(super) fn scale(&self) -> String {
        let scale = &self.e.scale;
        let (times, agree, of) = (factor(scale.factor), scale.agree, scale.of);
        let rest = if self.e.verdict == Verdict::None { "; per unit of work nothing changed" } else { "" };
        // Without a function that could tell, equal sides are equal by all that they have.
        let agree = if of == 0 { String::new() } else { format!(" ({agree} of {of} frames agree)") };
        match scale.rule {
            ScaleRule::Same => format!("Both sides did the same work{agree}."),
            // Where runs of a side differ as much, so may machines.
            ScaleRule::Agree
                if self.e.account.p.is_some_and(|p| p > UNSURE) && self.e.noise.runs.0.min(self.e.noise.runs.1) > 1 =>
            {
                format!(
                    "The new side did {times} times as much work, or ran on another machine: runs of a side differ as much\
                    {agree}{rest}."
                )
            }
            // What allocates as often again works as often again; what takes as long again may just be slower.
            ScaleRule::Agree if self.is_spent() => {
                let how = if scale.factor > 1.0 { "slower" } else { "faster" };
                let rest = if rest.is_empty() { "" } else { "; nothing else changed" };
                format!(
                    "The new side did {times} times as much work, or all of it became {how} alike{agree}{rest}. --ops tells \
                     which."
                )
            }
            ScaleRule::Agree => {
                format!("The new side did {times} times as much work, another number of operations{agree}{rest}.")
            }
            ScaleRule::Unknown => {
                let read = if (scale.factor - 1.0).abs() < 1e-6 {
                    "the same".to_owned()
                } else {
                    format!("{times} times as much")
                };
                format!("How much work was done is not known; it is read as {read}{agree}. Give --ops.")
            }
            ScaleRule::Level => "What is in use is compared as it is.".to_owned(),
            ScaleRule::Given => format!("{times} times as many operations were given{agree}{rest}."),
        }
    }

    /// What the difference of the totals adds up from; nothing if there is none.
    pub(super) fn account(&self) -> Option<String> {
        let (e, account) = (self.e, &self.e.account);
        let parts = [account.work, account.causes, account.consequences, account.rest];
        let most = parts.iter().fold(account.delta.abs(), |most, part| most.max(part.abs()));
        let named = |part: f64| part.abs() > NAMED * most;
        if most <= 0.0 {
            return None;
        }
        let mut said = Vec::new();
        if named(account.work) {
            said.push(format!("{} times the work {}", factor(e.scale.factor), self.amount(account.work)));
        }
        match e.causes.as_slice() {
            [] => {}
            [_] => said.push(format!("the cause {}", self.amount(account.causes))),
            _ => said.push(format!("the causes {}", self.amount(account.causes))),
        }
        if named(account.consequences) {
            let all = if self.is_all_consequences() { ", which are all that changed" } else { "" };
            said.push(format!("GC, scheduling and locks {}{all}", self.amount(account.consequences)));
        }
        let chance = match () {
            () if self.is_uncounted() => "of which chance is not known",
            () if (self.is_rest_chance() || self.is_exact()) && account.unexplained => "which no cause explains",
            () if self.is_rest_chance() => "within chance",
            () => "more than chance",
        };
        said.push(match named(account.rest) {
            true => format!("the rest {}, {chance}", self.amount(account.rest)),
            false => "nothing else".to_owned(),
        });
        let times = match e.total {
            (base, new) if base > 0.0 && new > 0.0 => format!("x{}", factor(new / base)),
            _ => String::new(),
        };
        // Complete counts differ for certain; runs of other programs say only how unusual that is.
        let p = account.p.filter(|_| !self.is_exact()).map_or_else(String::new, |p| match p {
            p if p < 0.001 => ", p < 0.001".to_owned(),
            p => format!(", p {p:.3}"),
        });
        Some(format!("{} in all ({times}{p}): {}.", self.amount(account.delta), said.join("; ")).replace(" ()", ""))
    }

    /// True if nothing changed but garbage collection, scheduling and locks.
    pub(super) fn is_all_consequences(&self) -> bool {
        let (e, account) = (self.e, &self.e.account);
        e.causes.is_empty()
            && account.by_chance
            && !account.consequences_by_chance
            && account.rest.abs() < 0.5 * account.consequences.abs()
            && account.consequences.abs() > CONSEQUENCES * e.total.0.max(e.total.1)
    }

    /// True if the rest of the account is no more than chance.
    pub(super) fn is_rest_chance(&self) -> bool {
        let account = &self.e.account;
        // Without a cause the rest is what the totals differ by, which has a test of its own.
        account.by_chance || self.e.causes.is_empty() && account.p.is_some_and(|p| p > UNSURE)
    }

    /// How large a change would be noticed, and how many samples say so.
    fn noise(&self) -> String {
        let sampling = self.sampling().map_or_else(String::new, |sampling| format!(" {sampling}"));
        format!("{}{sampling}", self.noticeable())
    }

    fn noticeable(&self) -> String {
        let noise = &self.e.noise;
        if self.is_uncounted() {
            return format!(
                "How large a change is noticed from {} + {} runs is not known.",
                noise.runs.0, noise.runs.1
            );
        }
        let chance = match noise.noticed < NOTHING_KNOWN {
            true => format!(
                "by chance a frame with 10% of the total differs by {}, and is noticed from {}",
                percent(noise.deviation),
                noticed(self.e)
            ),
            false => "too little was measured to notice anything".to_owned(),
        };
        match noise.runs {
            (m0, m1) if noise.learned > 0 => {
                let learned = counted(noise.learned, "run");
                format!("{m0} + {m1} runs, noise between {learned} of equal builds: {chance}.")
            }
            (m0, m1) if m0 > 1 && m1 > 1 => format!("{m0} + {m1} runs: {chance}."),
            (1, 1) => format!("Noise is estimated from this pair's other frames: {chance}."),
            (m0, m1) => format!("{m0} + {m1} runs, noise estimated from other frames: {chance}."),
        }
    }

    /// All that is said, in the order in which it is read: causes, what they add up to, what moved, the scale, noise.
    pub(super) fn lines(&self) -> Vec<Line> {
        let e = self.e;
        let mut lines = Vec::new();
        let mut say = |about: Priority, text: String| lines.push(Line { about, text });
        e.summary
            .warnings
            .iter()
            .take(1)
            .for_each(|w| say(Priority::Warning, format!("warning: {}", self.markup.words(w))));
        if let Some(verdict) = self.verdict() {
            say(Priority::Answer, verdict);
        }
        e.rewrite.iter().for_each(|rewrite| say(Priority::Answer, self.rewrite(rewrite)));
        for (i, cause) in e.causes.iter().take(MAX_CAUSES).enumerate() {
            say(Priority::Answer, format!("{}. {}.", i + 1, self.cause(cause)));
            if let Some(commits) = &cause.commits {
                say(Priority::Detail, format!("   {}", self.commits(commits)));
            }
            if !cause.parts.is_empty() && !is_replaced(cause) {
                say(Priority::Detail, format!("   {}", self.parts(&cause.parts)));
            }
            if i == 0 {
                let command = self.markup.code(&command_of(e, cause));
                say(Priority::Detail, format!("   {command}"));
            }
        }
        if e.causes.len() > MAX_CAUSES {
            let more = counted(e.causes.len() - MAX_CAUSES, "more cause");
            say(Priority::Detail, format!("   {more} in the JSON"));
        }
        self.account().into_iter().for_each(|account| say(Priority::Account, account));
        let moved = self.all_moved();
        moved.iter().take(MAX_MOVED).for_each(|moved| say(Priority::Moved, format!("{moved}.")));
        say(Priority::Scale, self.scale());
        say(Priority::Noise, self.noise());
        lines
    }

    /// The sample type with the totals of both sides.
    pub(super) fn head(&self, arrow: &str) -> String {
        let kind = self.markup.words(&self.e.summary.sample_type);
        let totals = [self.e.total.0, self.e.total.1];
        // Both in one unit; what has none need not be whole.
        let unit = units::find(&self.e.summary.unit)
            .map(|_| ColumnUnit::for_values(&self.e.summary.unit, totals.map(|v| v as i64).into_iter()));
        let [base, new] = totals.map(|v| match unit {
            Some(unit) => self.markup.words(&unit.format(v.round() as i64)),
            None => self.total(v),
        });
        let kind = self.markup.strong(&kind);
        format!("{kind}: {base} {arrow} {new}")
    }
}

/// The lines that there is room for, in their order: the least important go first, the last of equals before the others.
/// What is left begins with the answer, however long that is.
pub(super) fn within(mut lines: Vec<Line>, head: &str, budget: Option<usize>) -> Vec<Line> {
    let Some(budget) = budget else { return lines };
    let size = |lines: &[Line]| tokens(head) + lines.iter().map(|l| tokens(&l.text) + 1).sum::<usize>();
    while lines.len() > 1 && size(&lines) > budget {
        remove_least(&mut lines);
    }
    lines
}

/// Keeps at most `most` lines in their order, and removes the least important lines first, like [`within`].
pub(super) fn most_important(mut lines: Vec<Line>, most: usize) -> Vec<Line> {
    while lines.len() > most.max(1) {
        remove_least(&mut lines);
    }
    lines
}

fn remove_least(lines: &mut Vec<Line>) {
    let least = (0..lines.len()).max_by_key(|&i| (lines[i].about, i)).unwrap_or(0);
    lines.remove(least);
}

#[cfg(test)]
mod tests {
    use super::{are_below, owners, percent, two_digits};

    #[test]
    fn numbers_fit_a_line() {
        assert_eq!([0.023, 0.999, 0.5, 1.2].map(percent), ["2.3%", "100%", "50%", "120%"]);
        let rounded = [-362.86, 0.0456, 0.0].map(|x| format!("{:.3}", two_digits(x)));
        assert_eq!(rounded, ["-360.000", "0.046", "0.000"]);
        assert_eq!(owners("a.(*Old).x", "a.(*New).x"), Some(("a.(*Old)", "a.(*New)")));
        assert_eq!(owners("main.a", "main.b"), None);
        assert!(are_below(("a/kv/page", "b/a/kv/page"), ("a/kv", "b/a/kv")));
        assert!(!are_below(("a/kvs", "b/a/kvs"), ("a/kv", "b/a/kv")));
    }
}
