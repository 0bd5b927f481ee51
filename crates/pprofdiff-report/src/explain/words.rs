//! The sentences of `explain`: causes, account, moves, scale and noise, one line each, with a priority per line so that
//! a small budget drops the least important lines first.

use super::markup::Markup;
use super::{command_of, largest_uncounted};
use crate::numbers::{counted, figure as factor, least_growth, p_words};
use pprofdiff::list::CodeChange;
use pprofdiff::units::{self, ColumnUnit};
use pprofdiff_explain::{
    Cause, CauseKind, CausePart, Explanation, HeldState, MainFactor, MoveKind, Moved, NearestCandidate, PlaceOf,
    ProgramShare, Quantity, Remainder, Rewrite, ScaleRule, Verdict,
};

/// Minimum change of the cost of a counted call that a sentence states; smaller changes would be rounded to zero.
const MIN_SHOWN_CHANGE: f64 = 0.0005;
/// Maximum number of causes in text; JSON has all of them.
pub(super) const MAX_CAUSES: usize = 4;
/// Maximum number of parts, and of calling functions of the program, that a cause's sentence lists.
const MAX_PARTS: usize = 3;
/// Maximum number of lines about moved functions.
const MAX_MOVED: usize = 3;

/// Returns true if the cause's function calls one function instead of another: the cause's parts are exactly an added
/// call and a removed call, both by this function.
pub(super) fn is_replaced(cause: &Cause) -> bool {
    let kinds: Vec<CauseKind> = cause.parts.iter().map(|part| part.kind).collect();
    let is_called = |part: &CausePart| part.caller.is_some() && part.caller == cause.function;
    kinds == [CauseKind::Added, CauseKind::Removed] && cause.parts.iter().all(is_called)
}

/// The maximum length of a source line in a sentence, in bytes. Longer file names are left out.
const LONGEST_PLACE: usize = 200;

/// Returns true if the parts of the cause are its function's own cost and callees of the function.
fn is_own_with_callees(cause: &Cause) -> bool {
    let [itself, callees @ ..] = cause.parts.as_slice() else { return false };
    let is_callee = |part: &CausePart| part.caller.is_some() && part.caller == cause.function;
    itself.kind == CauseKind::Own && itself.function == cause.function && callees.iter().all(is_callee)
}

/// Returns true if callees of the cause's function have most of its change, and not more than it.
fn is_sum_of_callees(cause: &Cause) -> bool {
    let callees = cause.parts.iter().filter(|part| part.caller == cause.function);
    let sum: f64 = callees.map(|part| part.delta).sum();
    (0.5..1.25).contains(&(sum / cause.delta))
}

/// Formats a fraction without its sign: `12%`, or below 10% with one decimal, `2.6%`.
pub(super) fn percent(part: f64) -> String {
    let percent = 100.0 * part.abs();
    match percent {
        p if p >= 9.95 => format!("{p:.0}%"),
        p => format!("{p:.1}%"),
    }
}

/// Formats a small part with two digits, and without its sign: `0.02%`.
fn small_percent(part: f64) -> String {
    let percent = 100.0 * part.abs();
    let digits = if percent > 0.0 { (1.0 - percent.log10().floor()).clamp(0.0, 9.0) } else { 0.0 };
    let text = format!("{percent:.*}", digits as usize);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}%")
}

fn signed_percent(part: f64) -> String {
    format!("{}{}", if part < 0.0 { "-" } else { "+" }, percent(part))
}

/// Rounds to two significant digits, for estimates that are no more precise than that.
fn two_digits(x: f64) -> f64 {
    let unit = 10f64.powf(x.abs().max(1e-300).log10().floor() - 1.0);
    (x / unit).round() * unit
}

/// Returns two names without their last component, such as the type that a method belongs to. The last component starts
/// at the last `.` or `:`. Returns `None` unless both names have the same last component and another component before
/// it.
fn owners<'a>(from: &'a str, to: &'a str) -> Option<(&'a str, &'a str)> {
    let same = from.chars().rev().zip(to.chars().rev()).take_while(|(a, b)| a == b);
    let rest = &from[from.len() - same.map(|(c, _)| c.len_utf8()).sum::<usize>()..];
    let end = rest.len() - rest.rfind(['.', ':'])?;
    let prefix = |name: &'a str| name.get(..name.len() - end).map(|prefix| prefix.trim_end_matches(':'));
    let (from, to) = (prefix(from)?, prefix(to)?);
    (!from.is_empty() && !to.is_empty()).then_some((from, to))
}

/// Returns true if the first pair of paths consists of the second pair, each extended by the same further path. The
/// packages of a renamed module extend the module's old and new path in this way.
fn are_below((from, to): (&str, &str), (upper_from, upper_to): (&str, &str)) -> bool {
    fn below<'a>(path: &'a str, upper: &str) -> Option<&'a str> {
        path.strip_prefix(upper).filter(|rest| rest.starts_with(['/', '.', ':']))
    }
    let is_named = !upper_from.is_empty() && !upper_to.is_empty();
    is_named && below(from, upper_from).is_some_and(|rest| below(to, upper_to) == Some(rest))
}

/// The advice for an unknown amount of work.
pub const OPS: &str = "Pass --ops N0,N1 with the number of operations per side";

/// Formats the smallest change that would be detected in a frame with a tenth of the total.
fn smallest_change(e: &Explanation) -> String {
    format!("only a change above {} would be detected", least_growth(e.noise.noticed))
}

/// The subject of a line, most important first. A small budget first drops the lines of the last subjects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Priority {
    /// The verdict, a rewrite, or a cause.
    Answer,
    Warning,
    /// The parts of the difference of the totals, with its p-value.
    Account,
    /// The amount of work on both sides.
    Scale,
    /// The commits, parts or command of a cause, or the number of causes that text does not list.
    Detail,
    Moved,
    Noise,
}

/// One line of the explanation.
pub(super) struct TextLine {
    pub about: Priority,
    pub text: String,
}

/// An explanation in words.
pub(super) struct ExplanationText<'a> {
    pub e: &'a Explanation,
    pub markup: Markup,
    /// True to write source files with their folders.
    pub has_folders: bool,
}

impl<'a> ExplanationText<'a> {
    pub(super) fn new(e: &'a Explanation, markup: Markup) -> ExplanationText<'a> {
        ExplanationText { e, markup, has_folders: false }
    }
}

impl ExplanationText<'_> {
    /// Formats the name of the function that contains the cause's source line, followed by the line:
    /// `main.FindLoops (loops.go:212)`. Other functions, and script functions whose names contain the line, get their name
    /// only.
    fn placed(&self, cause: &Cause, of: PlaceOf, function: &str) -> String {
        let name = self.markup.name(function);
        match &cause.place {
            Some(place) if cause.place_of() == of && !function.contains(&place.short()) => {
                let line = if self.has_folders { format!("{}:{}", place.file, place.line) } else { place.short() };
                match line.len() > LONGEST_PLACE {
                    true => name,
                    false => format!("{name} ({})", self.markup.words(&line)),
                }
            }
            _ => name,
        }
    }

    pub(super) fn total(&self, value: f64) -> String {
        self.markup.amount(&units::show_real(value, &self.e.summary.unit))
    }

    /// Formats a change as a percentage of the base's total, or `new` if the base's total is 0. Counts are exact, so small
    /// changes keep two digits.
    fn share(&self, part: f64) -> String {
        if self.e.counts_each_event() && part != 0.0 && part.abs() < 0.000_95 {
            return format!("{}{}", if part < 0.0 { "-" } else { "+" }, small_percent(part));
        }
        if self.e.total.0 == 0.0 { "new".to_owned() } else { signed_percent(part) }
    }

    /// Formats a ratio. A ratio of exact counts that would be rounded to 1.00 keeps two digits of its distance from 1.
    fn ratio(&self, ratio: f64) -> String {
        let distance = (ratio - 1.0).abs();
        match self.e.counts_each_event() && distance > 0.0 && distance < 0.005 {
            true => format!("{:.*}", (1.0 - distance.log10().floor()) as usize, ratio),
            false => factor(ratio),
        }
    }

    pub(super) fn amount(&self, value: f64) -> String {
        self.markup.amount(&format!(
            "{}{}",
            if value < 0.0 { "-" } else { "+" },
            units::show_real(value.abs(), &self.e.summary.unit)
        ))
    }

    /// Formats a cause as a sentence without a full stop and without the cause's amount, which [`Self::cause`] adds. If
    /// one call replaced another, the sentence contains the amounts of both calls.
    fn sentence(&self, cause: &Cause) -> String {
        let up = cause.delta >= 0.0;
        let function = cause.function.as_deref();
        let function = function.map_or_else(|| "everything".to_owned(), |f| self.placed(cause, PlaceOf::Function, f));
        let more = if up { "more" } else { "less" };
        let costs = match self.verb(cause) {
            "allocates" | "holds" | "has" => self.verb_more(cause, more),
            _ => format!("costs {more}"),
        };
        if let Some(callee) = cause.callee.as_deref().map(|f| self.markup.name(f)) {
            let (base, new) = (cause.evidence.base.value, cause.evidence.new.value);
            // If stacks were truncated, the call may exist on both sides without being recorded, so do not claim a new
            // or removed call.
            return match self.e.pruned == 0 {
                true if base <= 0.0 => format!("{function} now {} {callee}", self.calls(cause)),
                true if new <= 0.0 => format!("{function} no longer {} {callee}", self.calls(cause)),
                _ => self.spends(cause, &function, more, &callee),
            };
        }
        if let Some((wrapped, caller)) = cause.wraps.as_deref().zip(cause.caller.as_deref()) {
            let (wrapped, caller) = (self.markup.name(wrapped), self.placed(cause, PlaceOf::Caller, caller));
            let now = if up { "now" } else { "no longer" };
            return format!("{caller} {now} calls {wrapped} through {function}; cost of {function} besides {wrapped}");
        }
        if let [came, went] = cause.parts.as_slice()
            && is_replaced(cause)
            && let (Some(came_to), Some(went_to)) = (&came.function, &went.function)
        {
            let (came_to, went_to) = (self.markup.name(came_to), self.markup.name(went_to));
            let values = [came, went].map(|part| self.amount(part.delta));
            return format!("{function} calls {came_to} ({}) instead of {went_to} ({})", values[0], values[1]);
        }
        match (cause.kind, cause.caller.as_deref().map(|f| self.placed(cause, PlaceOf::Caller, f))) {
            // The plain table shows the function's own cost without the functions of the runtime.
            (CauseKind::Own, caller) if is_own_with_callees(cause) && !self.e.is_delay(cause) => {
                let callees: Vec<&str> = cause.parts[1..].iter().filter_map(|part| part.function.as_deref()).collect();
                let callees = match callees.as_slice() {
                    [callee] => self.markup.name(callee),
                    [] => "library functions that it calls".to_owned(),
                    _ => "its callees".to_owned(),
                };
                let caller = caller.map_or_else(String::new, |caller| match (self.verb(cause), up) {
                    ("spends", true) => format!(" (called more by {caller}, or slower)"),
                    ("spends", false) => format!(" (called less by {caller}, or faster)"),
                    _ => format!(", called by {caller}"),
                });
                format!("{function} itself, with {callees}, {costs}{caller}")
            }
            // A wait for a lock costs the time of other holders, not of this function's own work.
            (CauseKind::Own, _) if self.e.is_delay(cause) => {
                format!("waits at {function} cost {more}")
            }
            (CauseKind::Own, Some(caller)) if cause.calls.is_some() => {
                format!("{function} itself {costs}, called by {caller}")
            }
            (CauseKind::Own, Some(caller)) => match (self.verb(cause), up) {
                ("spends", true) => format!("{function} itself {costs} (called more by {caller}, or slower)"),
                ("spends", false) => format!("{function} itself {costs} (called less by {caller}, or faster)"),
                _ => format!("{function} itself {costs}, called by {caller}"),
            },
            (CauseKind::Own, None) => format!("{function} itself {costs}"),
            (CauseKind::Calls, Some(caller)) => self.spends(cause, &caller, more, &function),
            // Several callees changed; they are the parts of this cause.
            (CauseKind::Calls, None) if cause.function.is_some() && is_sum_of_callees(cause) => {
                format!("{function} {} in its callees", self.verb_more(cause, more))
            }
            (CauseKind::Calls, None) => format!("{function} {costs}{}", self.called(cause)),
            (CauseKind::Added, Some(caller)) => format!("{caller} now {} {function}", self.calls(cause)),
            (CauseKind::Added, None) if !self.tells_calls(cause) => format!("{function} now {}", self.does(cause)),
            (CauseKind::Added, None) => format!("{function} is new"),
            (CauseKind::Removed, Some(caller)) => format!("{caller} no longer {} {function}", self.calls(cause)),
            (CauseKind::Removed, None) if !self.tells_calls(cause) => {
                format!("{function} no longer {}", self.does(cause))
            }
            (CauseKind::Removed, None) => format!("{function} is gone"),
        }
    }

    /// Returns true if a sentence may say that a call was added or removed. In profiles of memory, states or waits, a
    /// call without samples may still exist: it just did not allocate, hold or wait.
    fn tells_calls(&self, cause: &Cause) -> bool {
        matches!(self.verb(cause), "spends" | "has")
    }

    /// Returns the words between a caller and a callee that was added or removed: `calls`, or `allocates in` if a
    /// missing sample does not mean a missing call.
    fn calls(&self, cause: &Cause) -> String {
        if self.tells_calls(cause) { "calls".to_owned() } else { format!("{} in", self.does(cause)) }
    }

    /// Formats the change between a caller and its callee: `a spends more in b (called more, or slower)`.
    fn spends(&self, cause: &Cause, caller: &str, more: &str, callee: &str) -> String {
        format!("{caller} {} in {callee}{}", self.verb_more(cause, more), self.called(cause))
    }

    /// Returns the verb, with an object for `holds`: `allocates`, `holds memory`.
    fn does(&self, cause: &Cause) -> String {
        match self.verb(cause) {
            "holds" => format!("holds {}", self.held()),
            verb => verb.to_owned(),
        }
    }

    /// Returns the verb with `more` or `less`: `spends more`, `holds less memory`.
    fn verb_more(&self, cause: &Cause, more: &str) -> String {
        match self.verb(cause) {
            "holds" => {
                let is_countable = self.e.held_state() != HeldState::Memory;
                let more = if more == "less" && is_countable { "fewer" } else { more };
                format!("holds {more} {}", self.held())
            }
            verb => format!("{verb} {more}"),
        }
    }

    /// Returns the object of the verb `holds`: goroutines, threads, objects, or memory for all other sample types.
    fn held(&self) -> &'static str {
        match self.e.held_state() {
            HeldState::Goroutines => "goroutines",
            HeldState::Threads => "threads",
            HeldState::Objects => "objects",
            HeldState::Memory => "memory",
        }
    }

    /// Returns the verb for the quantity that the sample type measures; `has` if the quantity is not known.
    fn verb(&self, cause: &Cause) -> &'static str {
        match self.e.quantity(cause) {
            Quantity::Allocated => "allocates",
            Quantity::Held => "holds",
            Quantity::Waited => "waits",
            Quantity::Spent => "spends",
            Quantity::Other => "has",
        }
    }

    /// Returns the two possible reasons for a change of CPU work or time, because such profiles do not count calls.
    /// Empty for other sample types.
    fn called(&self, cause: &Cause) -> &'static str {
        match (self.verb(cause), cause.delta >= 0.0) {
            // The calls were counted, so a sentence of their own tells.
            _ if cause.calls.is_some() => "",
            ("spends", true) => " (called more, or slower)",
            ("spends", false) => " (called less, or faster)",
            _ => "",
        }
    }

    /// Formats the functions of the program that call a changed library function: only the first if it accounts for
    /// most of the change, otherwise up to [`MAX_PARTS`] with their amounts. Empty if the first is the caller, which
    /// the sentence already names.
    fn program(&self, cause: &Cause) -> String {
        let shown = match cause.program.as_slice() {
            [] => return String::new(),
            [first, ..] if cause.caller.as_ref() == Some(&first.function) => return String::new(),
            more => match cause.main_program() {
                Some(first) => return format!(", for {}", self.placed(cause, PlaceOf::Program, &first.function)),
                None => &more[..more.len().min(MAX_PARTS)],
            },
        };
        let one =
            |within: &ProgramShare| format!("{} ({})", self.markup.name(&within.function), self.amount(within.delta));
        format!(", for {}", shown.iter().map(one).collect::<Vec<_>>().join(", "))
    }

    /// Names the functions of other causes that the amount excludes.
    fn without(&self, cause: &Cause) -> String {
        let shown = cause.without.iter().take(MAX_PARTS).map(|function| self.markup.name(function));
        let shown = shown.collect::<Vec<_>>().join(", ");
        match cause.without.len() {
            0 => String::new(),
            1..=MAX_PARTS => format!(", without {shown}"),
            _ => format!(", without {shown} and others"),
        }
    }

    pub(super) fn cause(&self, cause: &Cause) -> String {
        let change = format!("{} ({})", self.amount(cause.delta), self.share(cause.share));
        let times = cause.factor.filter(|f| *f > 0.0).map_or_else(String::new, |f| format!(", x{}", self.ratio(f)));
        if cause.function.is_none() && cause.label.is_none() {
            let all = if self.e.causes.len() > 1 { "everything else" } else { "everything" };
            let why = match cause.delta > 0.0 {
                true => "grew by the same factor (more live data, or a leak in proportion)",
                false => "shrank by the same factor (less live data)",
            };
            return format!("{all} {why}: {change}{times}");
        }
        if let Some(label) = &cause.label {
            let place = cause.function.as_deref().map_or_else(String::new, |f| format!(" in {}", self.markup.name(f)));
            let label = self.markup.name(&format!("{}={}", label.key, label.value));
            let others = if self.e.causes.len() == 1 { "; other values of the label did not change" } else { "" };
            return format!("{label}{place}: {change}{times}{others}");
        }
        let split = cause.split.map_or_else(String::new, |split| {
            let (count, unit) = (split.count_factor, split.unit_factor);
            let is_long = self.e.is_delay(cause);
            let (many, large, size) =
                if is_long { ("many waits", "long", "length") } else { ("many", "large", "size") };
            let factors =
                |many, but| format!("{} times as {many}, {but}each {} times as {large}", factor(count), factor(unit));
            let without_part = |but| factors(if is_long { "many waits" } else { "many objects" }, but);
            // If the factors pull in opposite directions, the larger one alone explains more than the change.
            let explains = |quantity: &str, part: f64| match part > 1.005 {
                true => format!(". {}", without_part("but ")),
                false => format!(". The {quantity} explains {}: {}", percent(part), factors(many, "")),
            };
            let lock = |more: &str, less: &str| match (is_long, cause.delta > 0.0) {
                (false, _) => String::new(),
                (true, true) => format!(": {more}"),
                (true, false) => format!(": {less}"),
            };
            match split.main_factor() {
                Some(MainFactor::Count) => {
                    explains("count", split.count) + &lock("waits are more frequent", "waits are less frequent")
                }
                Some(MainFactor::Unit) => {
                    explains(size, split.unit)
                        + &lock(
                            "the lock is held longer, or more wait for it",
                            "the lock is held for less time, or fewer wait for it",
                        )
                }
                None => format!(". {}", without_part("")),
            }
        });
        let garbage = cause.listed_garbage().map_or_else(String::new, |garbage| {
            format!(", plus about {} of garbage collection", self.amount(two_digits(garbage)))
        });
        let code = self.code(cause);
        let split = split + &self.counted_calls(cause);
        let (sentence, program, without) = (self.sentence(cause), self.program(cause), self.without(cause));
        format!("{sentence}{program}{without}: {change}{times}{split}{garbage}{code}")
    }

    fn calls_in_words(&self, calls: f64) -> String {
        self.markup.amount(&units::show_real(calls, "count"))
    }

    /// Formats a number of calls: `once`, `300 times`.
    fn times_in_words(&self, calls: f64) -> String {
        if calls == 1.0 { "once".to_owned() } else { format!("{} times", self.calls_in_words(calls)) }
    }

    /// Describes the counted calls of a cause: `. Called 5.0 times as often (30000 -> 150000), each 3.0% cheaper`. Empty if
    /// calls were not counted.
    fn counted_calls(&self, cause: &Cause) -> String {
        let Some(calls) = &cause.calls else { return String::new() };
        let calls_of = |n: f64| self.calls_in_words(n);
        let work = if self.e.scale.is_equal() { "" } else { ", for the same work" };
        let each = match calls.unit_factor {
            Some(unit) if (unit - 1.0).abs() < MIN_SHOWN_CHANGE => ", each at the same cost".to_owned(),
            Some(unit) if unit > 1.995 => format!(", each {} times as expensive", factor(unit)),
            Some(unit) => {
                format!(", each {} {}", percent(unit - 1.0), if unit > 1.0 { "more expensive" } else { "cheaper" })
            }
            None => String::new(),
        };
        let [base, new] = [calls.base, calls.new].map(calls_of);
        let arrow = self.markup.arrow();
        match calls.count_factor {
            None if calls.base <= 0.0 => format!(". Called {}", self.times_in_words(calls.new)),
            None => format!(". It was called {}", self.times_in_words(calls.base)),
            Some(_) if calls.base == calls.new && work.is_empty() => {
                format!(". Called as often ({}){each}", self.times_in_words(calls.new))
            }
            Some(count) if (0.5..1.995).contains(&count) => {
                let more = if count > 1.0 { "more" } else { "less" };
                format!(". Called {} {more} often ({base} {arrow} {new}){work}{each}", percent(count - 1.0))
            }
            Some(count) => format!(". Called {} times as often ({base} {arrow} {new}){work}{each}", factor(count)),
        }
    }

    /// Describes the difference between the function's instructions in both builds. Empty if it is unknown. With equal
    /// instructions, lists the possible reasons, because samples do not distinguish them.
    fn code(&self, cause: &Cause) -> String {
        let names = |names: &[String]| names.iter().map(|name| self.markup.name(name)).collect::<Vec<_>>().join(", ");
        match &cause.code {
            Some(code) if code.is_same() => {
                "; its instructions are the same in both builds, so it may run more often, on other data, at another \
                 address, or on a busier machine"
                    .to_owned()
            }
            Some(CodeChange::Changed { differing, instructions, gained, lost, within }) => {
                let differing = format!("({differing} of {instructions})");
                let mut text = match within {
                    Some(f) => {
                        format!("; it is inlined into {}, whose instructions changed {differing}", self.markup.name(f))
                    }
                    None => format!("; its instructions changed {differing}"),
                };
                for (verb, inlined) in [("now inlines", gained), ("no longer inlines", lost)] {
                    if !inlined.is_empty() {
                        text += &format!("; {verb} {}", names(inlined));
                    }
                }
                text
            }
            _ => String::new(),
        }
    }

    /// Formats the first [`MAX_PARTS`] parts of a cause with their amounts.
    pub(super) fn parts(&self, parts: &[CausePart]) -> String {
        let name = |p: &CausePart| p.function.as_deref().map_or_else(String::new, |f| self.markup.name(f));
        let itself = |p: &CausePart| if p.kind == CauseKind::Own && p.caller.is_none() { " itself" } else { "" };
        let one = |p: &CausePart| format!("{}{} {}", name(p), itself(p), self.amount(p.delta));
        let shown: Vec<String> = parts.iter().take(MAX_PARTS).map(one).collect();
        format!("including {}", shown.join(", "))
    }

    /// Formats one move of cost: a rename, a replacement, or cost that is now counted elsewhere.
    pub(super) fn moved(&self, m: &Moved) -> String {
        let (function, from) = (self.markup.name(&m.function), self.markup.name(&m.from));
        let inside = m.inside.as_deref().map_or_else(String::new, |f| format!(" inside {}", self.markup.name(f)));
        let sum = match m.even {
            true if self.e.scale.is_equal() => ", the sum changed within noise",
            true => ", the sum per unit of work changed within noise",
            false => "",
        };
        // The total is 0 if the other side has all of the cost; then a percentage makes no sense.
        let total = if m.how == MoveKind::Outlined { self.e.total.1 } else { self.e.total.0 };
        let side = if m.how == MoveKind::Outlined { "new total" } else { "base's total" };
        let size = if total > 0.0 { format!(": {} of the {side}", percent(m.delta / total)) } else { String::new() };
        match (m.how, m.cost) {
            (MoveKind::Renamed, Some((base, new))) => {
                let (base, new) = (self.total(base), self.total(new));
                format!("{from} is now called {function}: {base} {} {new}{sum}", self.markup.arrow())
            }
            (MoveKind::Replaced, _) => format!("{function} replaces {from}{inside}{size}{sum}"),
            (MoveKind::Outlined, cost) => match (&m.callee, cost) {
                (Some(callee), _) => format!("{from} now calls {} through {function}{size}", self.markup.name(callee)),
                (None, cost) => {
                    let size = if cost.is_some() { self.together(cost) } else { size };
                    format!("the cost of {from} is now in {function} (outlined){size}")
                }
            },
            (MoveKind::Inlined, cost) => match (&m.callee, cost) {
                (Some(callee), _) => {
                    format!("{function} now calls {} without {from} in between{size}", self.markup.name(callee))
                }
                (None, cost) => {
                    let size = if cost.is_some() { self.together(cost) } else { size };
                    format!("the cost of {from} is now in {function} (inlined){size}")
                }
            },
            // The other function is unknown, because cost moved from or to several functions. The common caller
            // (`inside`) stands in its place, so the sentence names one function and this caller.
            (MoveKind::Shift, _) if m.inside.as_ref() == Some(&m.from) => {
                format!("{function} {}{inside}{size}{sum}", self.costs("more"))
            }
            (MoveKind::Shift, _) if m.inside.as_ref() == Some(&m.function) => {
                format!("{from} {}{inside}{size}{sum}", self.costs("less"))
            }
            (how, _) => format!("the cost of {from} is now in {function} ({}){inside}{size}{sum}", how.name()),
        }
    }

    /// Returns the verb of a function whose cost moved: `costs more`, or for a state such as goroutines `has more`.
    fn costs(&self, more: &str) -> String {
        if self.e.is_spent() { format!("costs {more}") } else { format!("has {more}") }
    }

    /// Formats the own costs of a caller and the functions that are parts of it together, on both sides.
    fn together(&self, cost: Option<(f64, f64)>) -> String {
        let costs = |(base, new)| (self.total(base), self.total(new));
        cost.map(costs)
            .map_or_else(String::new, |(base, new)| format!(": together {base} {} {new}", self.markup.arrow()))
    }

    /// Returns one line per package or type that was renamed with several functions, and one line per other function
    /// that moved or was replaced.
    fn all_moved(&self) -> Vec<String> {
        let mut packages: Vec<((&str, &str), Vec<&Moved>)> = Vec::new();
        // The sentence of a cause names its wrapper with the function behind it.
        let is_told = |m: &&Moved| {
            let is_same = |cause: &Cause| cause.wraps == m.callee && cause.function.as_ref() == Some(&m.function);
            m.callee.is_some() && self.e.causes.iter().any(is_same)
        };
        for m in self.e.moved.iter().filter(|m| !is_told(m)) {
            let paths = match &m.packages {
                Some((from, to)) => Some((from.as_str(), to.as_str())),
                None if m.how == MoveKind::Renamed => owners(&m.from, &m.function),
                None => None,
            };
            let package = paths.and_then(|paths| packages.iter_mut().find(|(other, _)| *other == paths));
            match package {
                Some((_, functions)) => functions.push(m),
                None => packages.push((paths.unwrap_or(("", "")), vec![m])),
            }
        }
        // The packages below a renamed package or module were renamed with it, so they share its line.
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
            [m] if m.how == MoveKind::Replaced => self.moved(m),
            [m] => format!("Moved: {}", self.moved(m)),
            functions => {
                let functions = counted(functions.len(), "function");
                format!("Moved: {} is now called {}: {functions}", self.markup.name(from), self.markup.name(to))
            }
        };
        packages.iter().map(line).collect()
    }

    /// Formats the part of the program that was rewritten, with its cost on both sides.
    pub(super) fn rewrite(&self, rewrite: &Rewrite) -> String {
        let (base, new) = (self.total(rewrite.cost.0), self.total(rewrite.cost.1));
        let part = match (rewrite.from.as_str(), rewrite.to.as_str()) {
            (from, to) if from.is_empty() || to.is_empty() => match &rewrite.below {
                Some(caller) => format!("the callees of {}", self.markup.name(caller)),
                None => "the callees of several functions".to_owned(),
            },
            (from, to) if from == to => format!("parts of {}", self.markup.name(from)),
            (from, to) => format!("{} is now {}", self.markup.name(from), self.markup.name(to)),
        };
        let costs = match (rewrite.gone, rewrite.came) {
            // The functions of a side are counted only if they have enough samples.
            (0, _) | (_, 0) => format!("{base} {} {new} in functions that only one side has", self.markup.arrow()),
            (1, came) => format!("1 function ({base}) was replaced by {came} ({new})"),
            (gone, came) => format!("{gone} functions ({base}) were replaced by {came} ({new})"),
        };
        format!("Rewritten: {part}: {costs}.")
    }

    /// Returns the verdict in words, or `None` for a change, which the causes describe.
    pub(super) fn verdict(&self) -> Option<String> {
        let (e, detectable) = (self.e, smallest_change(self.e));
        let limit = match e.noise.detects_nothing() {
            _ if e.counts_each_event() => String::new(),
            true => String::new(),
            false => format!(" In a frame with 10% of the total, {detectable}."),
        };
        match e.verdict {
            Verdict::Change => None,
            Verdict::None if e.counts_each_event() && !e.is_exact() && e.moved.is_empty() => Some(
                "No function changed by more than --min-effect and by more than the runs of a side differ.".to_owned(),
            ),
            Verdict::None if e.is_exact() && e.counts_each_event() && e.moved.is_empty() => {
                let limit = small_percent(e.noise.mde);
                let is_equal = e.account.is_empty();
                Some(match is_equal {
                    true => format!("The totals are equal, and no function changed by more than {limit} of the total."),
                    false => format!("No function changed by more than {limit} of the total."),
                })
            }
            Verdict::None if e.moved.is_empty() && e.rewrite.is_none() => Some(format!("No change detected.{limit}")),
            Verdict::None => {
                let is_replaced = e.moved.iter().any(|moved| moved.how == MoveKind::Replaced);
                let verdict = match is_replaced {
                    true => "Functions were replaced by others; no other change was detected.",
                    false => "Cost moved between functions; no other change was detected.",
                };
                Some(format!("{verdict}{limit}"))
            }
            Verdict::Inconclusive if self.e.is_uncounted() => Some(self.uncounted()),
            Verdict::Inconclusive if e.is_exact() && e.counts_each_event() && e.suspects.is_empty() => Some(format!(
                "The counts differ, but no single cause has more than {} of the total.",
                small_percent(e.noise.mde)
            )),
            Verdict::Inconclusive if self.e.is_exact() && e.suspects.is_empty() => Some(format!(
                "The counts differ, but no single cause exceeds the usual difference between two snapshots.{}",
                self.candidate()
            )),
            // The sentence about the amount of work says what to pass.
            Verdict::Inconclusive if e.rewrite.is_some() && e.suspects.is_empty() => Some(
                "Much of the code was rewritten, so these samples do not show whether the same work costs more or less."
                    .to_owned(),
            ),
            Verdict::Inconclusive => Some(match e.suspects.first() {
                Some(suspect) => {
                    let scale = factor(e.total.1 / e.total.0.max(f64::MIN_POSITIVE));
                    format!("Either {scale} times as much work, or {}. {OPS} to tell which.", self.cause(suspect))
                }
                None if e.is_total_certain() => format!(
                    "The total changed (x{}), but these samples do not show which part of it.{}",
                    factor(e.total.1 / e.total.0.max(f64::MIN_POSITIVE)),
                    self.candidate()
                ),
                None if e.differs_only_in_total() => {
                    let p = e.account.p.map_or_else(String::new, p_words);
                    let runs = match e.noise.runs {
                        (1, 1) => "one run per side does".to_owned(),
                        (base, new) => format!("{base} + {new} runs do"),
                    };
                    format!(
                        "These samples are inconclusive: the total changed ({p}), but {runs} not show which frame \
                         changed.{limit}{}",
                        self.candidate()
                    )
                }
                None => format!("These samples are inconclusive.{limit}{}", self.candidate()),
            }),
        }
    }

    /// Returns the verdict if the number of samples is unknown. It names the best candidate, if there is one, as the
    /// largest change, without a statement about chance.
    fn uncounted(&self) -> String {
        let largest = match &self.e.candidate {
            Some(candidate) => format!(" Largest change: {}.", self.cause(&candidate.cause)),
            None => String::new(),
        };
        format!("The number of samples is unknown, so a change cannot be told from noise.{largest}")
    }

    /// Returns the sentence about the sampling model of both sides, or `None` if the summary has none.
    fn sampling(&self) -> Option<String> {
        let [base, new] = self.e.summary.sampling.as_ref()?.each_ref();
        let words = |words: &str| self.markup.words(words);
        if let (Some(base_samples), Some(new_samples)) = (base.samples, new.samples)
            && base.by == new.by
            && base_samples != new_samples
        {
            return Some(format!("Samples: {base_samples:.0} (base), {new_samples:.0} (new), {}.", words(&base.by)));
        }
        let [base, new] = [base.to_words(), new.to_words()];
        Some(match base == new {
            true => format!("Samples: {}.", words(&base)),
            false => format!("Samples: {} (base); {} (new).", words(&base), words(&new)),
        })
    }

    /// Formats the change that comes closest to a cause, with the number of runs that would decide. Empty without such
    /// a change.
    fn candidate(&self) -> String {
        let Some(candidate) = &self.e.candidate else { return String::new() };
        let runs = match candidate.runs {
            Some(runs) => format!("About {runs} runs"),
            None => format!("More than {} runs", NearestCandidate::MAX_RUNS),
        };
        format!(" Best candidate: {}. {runs} per side would decide.", self.cause(&candidate.cause))
    }

    /// Returns the sentence about the amount of work on both sides.
    pub(super) fn scale(&self) -> String {
        let scale = &self.e.scale;
        let (times, agree, frames) = (factor(scale.factor), scale.agree, scale.of);
        let unchanged = if self.e.verdict == Verdict::None { " Per unit of work nothing changed." } else { "" };
        // `frames` counts the functions with enough events to estimate a factor. Without any, omit "0 of 0 frames
        // agree".
        let agree = if frames == 0 { String::new() } else { format!(" ({agree} of {frames} frames agree)") };
        if let Some(other) = &scale.disputed {
            let own = match scale.is_equal() {
                true => "equal work on both sides".to_owned(),
                false => format!("{times} times as much work"),
            };
            let how = if scale.rule == ScaleRule::Unknown { "assumed here" } else { "shown here" };
            let other_how = if other.rule == ScaleRule::Unknown { "is compared at" } else { "shows" };
            let kind = self.markup.words(&other.sample_type);
            let other_times = match (other.factor - 1.0).abs() < 0.005 {
                true => "equal work".to_owned(),
                false => format!("{} times as much", factor(other.factor)),
            };
            return format!(
                "The amount of work is not certain: {own} is {how}{agree}, but {kind} {other_how} \
                 {other_times}. {OPS} to tell which."
            );
        }
        match scale.rule {
            ScaleRule::Same => format!("Both sides did the same amount of work{agree}."),
            ScaleRule::Agree if self.e.is_work_within_runs() => {
                format!(
                    "The new side did {times} times as much work, or ran on a different machine{agree}. Runs of one side \
                     differ as much.{unchanged}"
                )
            }
            // Twice the time is either twice the work or slower code. Other quantities, such as allocations, do not
            // depend on the speed of the code.
            ScaleRule::Agree if self.e.is_spent() => {
                let how = if scale.factor > 1.0 { "slower" } else { "faster" };
                let unchanged = if unchanged.is_empty() { "" } else { " Nothing else changed." };
                format!(
                    "The new side did {times} times as much work, or all code became {how} by the same factor{agree}. \
                     {OPS} to tell which.{unchanged}"
                )
            }
            ScaleRule::Agree => {
                format!(
                    "The new side did {times} times as much work: its number of operations differs{agree}.{unchanged}"
                )
            }
            ScaleRule::Unknown => {
                let assumed = if scale.is_equal() {
                    "the same on both sides".to_owned()
                } else {
                    format!("{times} times as much on the new side")
                };
                format!("The amount of work is unknown and assumed to be {assumed}{agree}. {OPS}.")
            }
            ScaleRule::Level => format!("{} is compared as measured, without scaling.", self.state()),
            ScaleRule::Counted => {
                let Some(calls) = &scale.calls else { return String::new() };
                let (function, times) = (self.markup.name(&calls.function), self.times_in_words(calls.new));
                format!("Both sides did the same amount of work: {function} was called {times}.")
            }
            ScaleRule::Given if scale.is_equal() && self.e.counts_each_event() => {
                format!("Both sides did the same number of operations{agree}.")
            }
            ScaleRule::Given => {
                format!("The new side did {times} times as many operations, as given{agree}.{unchanged}")
            }
        }
    }

    /// Returns the subject of a sentence about a sample type that measures a state.
    fn state(&self) -> &'static str {
        match self.held() {
            "goroutines" => "The number of goroutines",
            "threads" => "The number of threads",
            "objects" => "The number of objects",
            _ => "Memory in use",
        }
    }

    /// Formats the parts of the difference of the totals, and whether the remainder is noise. Returns `None` if the
    /// totals are equal and all parts are 0.
    pub(super) fn account(&self) -> Option<String> {
        let (e, account) = (self.e, &self.e.account);
        if account.is_empty() {
            return None;
        }
        let mut listed = Vec::new();
        if account.is_listed(account.work) {
            let explains = if e.scale.disputed.is_some() { "would explain" } else { "explains" };
            listed.push(format!("{} times the work {explains} {}", factor(e.scale.factor), self.amount(account.work)));
        }
        match e.causes.as_slice() {
            [] => {}
            [_] => listed.push(format!("the cause explains {}", self.amount(account.causes))),
            _ => listed.push(format!("the causes explain {}", self.amount(account.causes))),
        }
        if account.is_listed(account.consequences) {
            let all = if e.is_all_consequences() { ", which is all that changed" } else { "" };
            listed.push(format!("GC, scheduling and locks changed by {}{all}", self.amount(account.consequences)));
        }
        let ratio = match e.total {
            (base, new) if base > 0.0 && new > 0.0 => format!("x{}", self.ratio(new / base)),
            _ => String::new(),
        };
        // Exact counts differ for certain. Their p-value only shows how unusual the difference is among runs of other
        // programs, so omit it.
        // Runs of counts show their noise, and a p-value of counts that all runs repeat says nothing.
        let has_p = !self.e.is_exact() && !self.e.counts_each_event();
        let p = account.p.filter(|_| has_p).map_or_else(String::new, |p| {
            // The user's number of operations divides the totals.
            let of_operations = e.scale.rule == ScaleRule::Given && !e.scale.is_equal();
            format!(", {}{}", p_words(p), if of_operations { " per operation" } else { "" })
        });
        let total = format!("Total {} ({ratio}{p})", self.amount(account.delta)).replace(" ()", "").replace("(, ", "(");
        let listed = if listed.is_empty() { String::new() } else { format!(": {}", listed.join("; ")) };
        Some(format!("{total}{listed}. {}", self.remainder(account.is_listed(account.rest), !listed.is_empty())))
    }

    /// Returns the sentence about the remainder of the account, which no part explains.
    fn remainder(&self, is_listed: bool, has_parts: bool) -> String {
        if !is_listed {
            return "Nothing else changed.".to_owned();
        }
        // Without other parts the remainder is the difference of the totals, which the sentence before states.
        let remainder = match has_parts {
            true => format!("The remainder of {}", self.amount(self.e.account.rest)),
            false => "The difference".to_owned(),
        };
        match self.e.remainder() {
            Remainder::Unknown => format!("{remainder} may be noise: the number of samples is unknown."),
            Remainder::Unexplained if self.e.is_work_within_runs() => {
                format!("{remainder} has no known cause; runs of one side differ as much.")
            }
            Remainder::Unexplained if self.e.may_runs_differ_as_much() => {
                format!("{remainder} has no known cause; runs of equal builds may differ as much.")
            }
            Remainder::Unexplained => format!("{remainder} has no known cause."),
            Remainder::Noise => format!("{remainder} is within noise."),
            Remainder::Real => format!("{remainder} is larger than noise."),
            Remainder::Small => format!("The remainder is {}.", self.amount(self.e.account.rest)),
            Remainder::Rewritten => format!("{remainder} is mostly in the rewritten code."),
        }
    }

    /// Returns the line about noise: its source, the smallest detectable change, and the sampling model.
    fn noise(&self) -> String {
        let sampling = self.sampling().map_or_else(String::new, |sampling| format!(" {sampling}"));
        format!("{}{sampling}", self.noise_floor())
    }

    fn noise_floor(&self) -> String {
        let noise = &self.e.noise;
        let (base_runs, new_runs) = noise.runs;
        if self.e.is_exact() && self.e.counts_each_event() {
            return format!(
                "Nothing was sampled, so there is no sampling error: each change above {} of the total is listed \
                 (--min-effect). Record 3 runs per side to see whether runs differ.",
                small_percent(noise.mde)
            );
        }
        if self.e.is_uncounted() {
            return format!("Noise is unknown: {base_runs} + {new_runs} runs, without a number of samples.");
        }
        let source = match noise.runs {
            _ if noise.learned > 0 => {
                format!("Noise is measured between {} of equal builds.", counted(noise.learned, "run"))
            }
            (m0, m1) if m0 > 1 && m1 > 1 => format!("Noise is measured between the {m0} + {m1} runs."),
            (1, 1) => "Noise is estimated from this pair's other frames.".to_owned(),
            (m0, m1) => format!("Noise is estimated from other frames of the {m0} + {m1} runs."),
        };
        // With one run per side, the noise is only estimated. In 38 of 42 comparisons of upgrades, three runs per side
        // lowered the floor. In the others, runs differed by more than the estimate.
        let is_pair = noise.runs == (1, 1) && noise.learned == 0;
        if noise.detects_nothing() {
            let advice = if is_pair { " Record for longer, or record 3 runs per side." } else { "" };
            let why = match self.e.is_total_certain() {
                true => "Most frames changed, so their noise is unknown.",
                false => "Too little was measured to detect a change.",
            };
            return format!("{source} {why}{advice}");
        }
        let advice = if is_pair {
            " Record 3 runs per side: they measure the noise, and usually detect smaller changes."
        } else {
            ""
        };
        if self.e.counts_each_event() {
            let noise = match noise.deviation < 0.000_05 {
                true => "Most functions counted the same in all runs of a side.".to_owned(),
                false => format!("A frame with 10% of the total varies by about {}.", small_percent(noise.deviation)),
            };
            return format!("{source} {noise}");
        }
        let deviation = percent(noise.deviation);
        // A verdict without causes has stated the smallest change already.
        let limit = match self.verdict() {
            Some(verdict) if verdict.contains(&smallest_change(self.e)) => String::new(),
            _ => format!(", so {}", smallest_change(self.e)),
        };
        format!("{source} A frame with 10% of the total varies by about {deviation} by chance{limit}.{advice}")
    }

    /// Returns all lines in reading order: the first warning, the verdict, a rewrite, the causes with their details,
    /// account, moves, scale, noise.
    pub(super) fn lines(&self) -> Vec<TextLine> {
        let e = self.e;
        let mut lines = Vec::new();
        let mut add = |about: Priority, text: String| lines.push(TextLine { about, text });
        e.summary
            .warnings
            .iter()
            .take(1)
            .for_each(|w| add(Priority::Warning, format!("warning: {}", self.markup.words(w))));
        if let Some(verdict) = self.verdict() {
            add(Priority::Answer, verdict);
        }
        if e.is_uncounted() {
            for (i, cause) in largest_uncounted(e).take(MAX_CAUSES).enumerate() {
                if i > 0 {
                    add(Priority::Answer, format!("Next: {}.", self.cause(cause)));
                }
                if !cause.parts.is_empty() && !is_replaced(cause) {
                    add(Priority::Detail, format!("   {}", self.parts(&cause.parts)));
                }
                if i == 0 {
                    add(Priority::Detail, format!("   {}", self.markup.code(&command_of(e, cause))));
                }
            }
            let others = largest_uncounted(e).count().saturating_sub(MAX_CAUSES);
            if others > 0 {
                add(Priority::Detail, format!("   {} in the JSON", counted(others, "more change")));
            }
        }
        e.rewrite.iter().for_each(|rewrite| add(Priority::Answer, self.rewrite(rewrite)));
        for (i, cause) in e.causes.iter().take(MAX_CAUSES).enumerate() {
            add(Priority::Answer, format!("{}. {}.", i + 1, self.cause(cause)));
            if let Some(commits) = &cause.commits {
                add(Priority::Detail, format!("   {}", self.commits(cause, commits)));
            }
            if !cause.parts.is_empty() && !is_replaced(cause) {
                add(Priority::Detail, format!("   {}", self.parts(&cause.parts)));
            }
            if i == 0 {
                let command = self.markup.code(&command_of(e, cause));
                add(Priority::Detail, format!("   {command}"));
            }
        }
        if e.causes.len() > MAX_CAUSES {
            let more = counted(e.causes.len() - MAX_CAUSES, "more cause");
            add(Priority::Detail, format!("   {more} in the JSON"));
        }
        self.account().into_iter().for_each(|account| add(Priority::Account, account));
        let moved = self.all_moved();
        moved.iter().take(MAX_MOVED).for_each(|moved| add(Priority::Moved, format!("{moved}.")));
        add(Priority::Scale, self.scale());
        add(Priority::Noise, self.noise());
        lines
    }

    /// Formats the sample type with the totals of both sides.
    pub(super) fn head(&self, arrow: &str) -> String {
        let kind = self.markup.words(&self.e.summary.sample_type);
        let totals = [self.e.total.0, self.e.total.1];
        // Both totals share one unit and are rounded to integers. A total in an unknown unit may have a fraction, so it
        // is not rounded.
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

/// Keeps at most `count` lines, but at least one, in their order. Drops the least important lines first, and the last
/// of equally important lines.
pub(super) fn most_important(mut lines: Vec<TextLine>, count: usize) -> Vec<TextLine> {
    while lines.len() > count.max(1) {
        remove_least(&mut lines);
    }
    lines
}

fn remove_least(lines: &mut Vec<TextLine>) {
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
