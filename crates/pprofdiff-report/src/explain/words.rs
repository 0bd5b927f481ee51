//! An explanation in words: what is said, line by line, and what of it goes first where there is little room.

use super::command_of;
use crate::html;
use crate::markdown;
use crate::numbers::{counted, figure as factor, least_growth};
use crate::tokens::tokens;
use pprofdiff::explain::{Cause, CauseKind, Explanation, How, Moved, Part, ScaleRule, Verdict};
use pprofdiff::text::harmless;
use pprofdiff::units::{self, ColumnUnit};

/// The most causes, parts of one, and moved functions that text names.
pub(super) const MOST_CAUSES: usize = 4;
const MOST_PARTS: usize = 3;
const MOST_MOVED: usize = 3;
/// The longest line of text, about: names are cut to fit.
const LONGEST_NAME: usize = 100;
/// From this part on, one factor explains a change.
const MOSTLY: f64 = 0.85;
/// Background that changed by less than this part of the total is not worth a line.
const BACKGROUND: f64 = 0.02;

/// How what is said is written.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Markup {
    Plain,
    Markdown,
    Html,
}

impl Markup {
    /// A name that fits a line: of a long one the middle is left out.
    pub(super) fn name(self, text: &str) -> String {
        let text = short(text);
        match self {
            Markup::Plain => text,
            Markup::Markdown => markdown::code(&text),
            Markup::Html => format!("<code>{}</code>", html::escape(&text)),
        }
    }

    /// Words that are no name; units and sample types come from files.
    pub(super) fn words(self, text: &str) -> String {
        match self {
            Markup::Plain => harmless(text).into_owned(),
            Markup::Markdown => markdown::escape(text),
            Markup::Html => html::escape(text),
        }
    }
}

fn short(text: &str) -> String {
    let text = harmless(text);
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= LONGEST_NAME {
        return text.into_owned();
    }
    let (head, tail) = (&chars[..LONGEST_NAME / 2], &chars[chars.len() - LONGEST_NAME / 2 + 1..]);
    format!("{}…{}", head.iter().collect::<String>(), tail.iter().collect::<String>())
}

/// `12 %`, `2.6 %`; with a sign if it is a change.
fn percent(part: f64) -> String {
    let percent = 100.0 * part.abs();
    match percent {
        p if p >= 9.95 => format!("{p:.0}%"),
        p => format!("{p:.1}%"),
    }
}

fn signed_percent(part: f64) -> String {
    format!("{}{}", if part < 0.0 { "-" } else { "+" }, percent(part))
}

/// Growths from here on are never noticed.
const NOTHING_KNOWN: f64 = 1e5;

/// The least growth of a frame with a tenth of the total that is noticed.
fn noticed(e: &Explanation) -> String {
    least_growth(e.noise.noticed)
}

/// What a line is about. In the order of importance: what there is no room for goes from the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum About {
    Answer,
    Warning,
    Scale,
    Detail,
    Moved,
    Noise,
    Background,
}

/// One line of what is said.
pub(super) struct Line {
    pub about: About,
    pub text: String,
}

/// An explanation in words.
pub(super) struct Words<'a> {
    pub e: &'a Explanation,
    pub markup: Markup,
}

impl Words<'_> {
    pub(super) fn total(&self, value: f64) -> String {
        self.markup.words(&units::show_real(value, &self.e.unit))
    }

    /// A change as a part of the base's total; of a base without any, what it is.
    fn share(&self, part: f64) -> String {
        if self.e.total.0 == 0.0 { "new".to_owned() } else { signed_percent(part) }
    }

    fn amount(&self, value: f64) -> String {
        format!("{}{}", if value < 0.0 { "-" } else { "+" }, self.total(value.abs()))
    }

    /// What changed, as a sentence without its end.
    fn sentence(&self, cause: &Cause) -> String {
        let up = cause.delta >= 0.0;
        let function = cause.function.as_deref().map_or_else(|| "all of it".to_owned(), |f| self.markup.name(f));
        let (more, dearer) = if up { ("more often", "dearer") } else { ("less often", "cheaper") };
        let costs = if up { "costs more" } else { "costs less" };
        match (cause.kind, cause.caller.as_deref().map(|f| self.markup.name(f))) {
            (CauseKind::Own, Some(caller)) => format!("{function} itself {costs}, or {caller} calls it {more}"),
            (CauseKind::Own, None) => format!("{function} itself {costs}"),
            (CauseKind::Calls, Some(caller)) => format!("{caller} calls {function} {more}, or it got {dearer}"),
            (CauseKind::Calls, None) => format!("{function} is called {more}, or it got {dearer}"),
            (CauseKind::Added, Some(caller)) => format!("{caller} now calls {function}"),
            (CauseKind::Added, None) => format!("{function} is new"),
            (CauseKind::Removed, Some(caller)) => format!("{caller} no longer calls {function}"),
            (CauseKind::Removed, None) => format!("{function} is gone"),
        }
    }

    pub(super) fn cause(&self, cause: &Cause) -> String {
        let change = format!("{} ({})", self.amount(cause.delta), self.share(cause.share));
        let times = cause.factor.filter(|f| *f > 0.0).map_or_else(String::new, |f| format!(", x{}", factor(f)));
        if let Some(label) = &cause.label {
            let place = cause.function.as_deref().map_or_else(String::new, |f| format!(" in {}", self.markup.name(f)));
            let label = self.markup.name(&format!("{}={}", label.key, label.value));
            return format!("{label}{place}: {change}{times}; other values of the label did not change");
        }
        let split = cause.split.map_or_else(String::new, |split| {
            let (count, unit) = (split.count_factor, split.unit_factor);
            let factors = format!("{} x as many, each {} x as large", factor(count), factor(unit));
            match () {
                () if split.count > MOSTLY => {
                    format!(". The count explains {}: {factors}", percent(split.count.min(1.0)))
                }
                () if split.unit > MOSTLY => format!(". The size explains {}: {factors}", percent(split.unit.min(1.0))),
                () => format!(". {factors}"),
            }
        });
        format!("{}: {change}{times}{split}", self.sentence(cause))
    }

    pub(super) fn parts(&self, parts: &[Part]) -> String {
        let of = |p: &Part| p.function.as_deref().map_or_else(String::new, |f| self.markup.name(f));
        let one = |p: &Part| format!("{} {}", of(p), self.amount(p.delta));
        let shown: Vec<String> = parts.iter().take(MOST_PARTS).map(one).collect();
        format!("of it {}", shown.join(", "))
    }

    pub(super) fn moved(&self, m: &Moved) -> String {
        let (function, from) = (self.markup.name(&m.function), self.markup.name(&m.from));
        let total = self.e.total.0;
        let size = if total > 0.0 { format!(": {}", percent(m.delta / total)) } else { String::new() };
        let inside = m.inside.as_deref().map_or_else(String::new, |f| format!(" inside {}", self.markup.name(f)));
        match m.how {
            How::Renamed => format!("{from} is now called {function}{size}, no change in sum"),
            how => format!("{from}'s cost is now {function}'s ({}){inside}{size}, no change in sum", how.name()),
        }
    }

    /// What is said where there is no cause.
    pub(super) fn verdict(&self) -> Option<String> {
        let (e, noticed) = (self.e, noticed(self.e));
        let is_known = e.noise.noticed < NOTHING_KNOWN;
        match e.verdict {
            Verdict::Change => None,
            Verdict::None if e.moved.is_empty() && is_known => {
                Some(format!("No change. A frame with 10% of the total would have been noticed from {noticed}."))
            }
            Verdict::None if is_known => Some(format!(
                "Nothing changed but where cost is counted. A frame with 10% of the total would have been noticed from \
                 {noticed}."
            )),
            Verdict::None => Some("Nothing changed but where cost is counted.".to_owned()),
            Verdict::Inconclusive => Some(match e.suspects.first() {
                Some(suspect) => {
                    let scale = factor(e.total.1 / e.total.0.max(f64::MIN_POSITIVE));
                    format!("Either {scale} times as much work, or {}. Give --ops.", self.cause(suspect))
                }
                None if is_known => format!(
                    "These samples can't tell: a frame with 10% of the total would have been noticed only from {noticed}."
                ),
                None => "These samples can't tell.".to_owned(),
            }),
        }
    }

    pub(super) fn scale(&self) -> String {
        let scale = &self.e.scale;
        let (times, agree, of) = (factor(scale.factor), scale.agree, scale.of);
        let rest = if self.e.verdict == Verdict::None { "; per unit of work nothing changed" } else { "" };
        let agree = format!("({agree} of {of} frames agree)");
        match scale.rule {
            ScaleRule::Same => format!("Both sides did the same work {agree}."),
            ScaleRule::Agree => {
                format!("The new side did {times} times as much work, another number of operations {agree}{rest}.")
            }
            ScaleRule::Given => format!("{times} times as many operations were given {agree}{rest}."),
        }
    }

    fn noise(&self) -> String {
        let noise = &self.e.noise;
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
            _ => format!("Noise is estimated from this pair's other frames: {chance}."),
        }
    }

    /// All that is said, in the order in which it is read: causes, what moved, the scale, the background, noise.
    pub(super) fn lines(&self) -> Vec<Line> {
        let e = self.e;
        let mut lines = Vec::new();
        let mut say = |about: About, text: String| lines.push(Line { about, text });
        e.warnings.iter().take(1).for_each(|w| say(About::Warning, format!("warning: {}", self.markup.words(w))));
        if let Some(verdict) = self.verdict() {
            say(About::Answer, verdict);
        }
        for (i, cause) in e.causes.iter().take(MOST_CAUSES).enumerate() {
            say(About::Answer, format!("{}. {}.", i + 1, self.cause(cause)));
            if !cause.parts.is_empty() {
                say(About::Detail, format!("   {}", self.parts(&cause.parts)));
            }
            if i == 0 {
                let command = match self.markup {
                    Markup::Plain => harmless(&command_of(e, cause)).into_owned(),
                    Markup::Markdown => markdown::code(&command_of(e, cause)),
                    Markup::Html => format!("<code>{}</code>", html::escape(&command_of(e, cause))),
                };
                say(About::Detail, format!("   {command}"));
            }
        }
        if e.causes.len() > MOST_CAUSES {
            say(About::Detail, format!("{} more causes are in the JSON", e.causes.len() - MOST_CAUSES));
        }
        e.moved.iter().take(MOST_MOVED).for_each(|m| say(About::Moved, format!("Moved: {}.", self.moved(m))));
        say(About::Scale, self.scale());
        if e.background.abs() > BACKGROUND {
            let share = self.share(e.background);
            let why = if e.causes.is_empty() { "no cause of its own is known" } else { "a consequence" };
            say(About::Background, format!("GC, scheduling and locks {share}: {why}."));
        }
        say(About::Noise, self.noise());
        lines
    }

    /// The sample type with the totals of both sides.
    pub(super) fn head(&self, arrow: &str) -> String {
        let kind = self.markup.words(&self.e.sample_type);
        let totals = [self.e.total.0, self.e.total.1];
        // Both in one unit; what has none need not be whole.
        let unit =
            units::find(&self.e.unit).map(|_| ColumnUnit::of(&self.e.unit, totals.map(|v| v as i64).into_iter()));
        let [base, new] = totals.map(|v| match unit {
            Some(unit) => self.markup.words(&unit.format(v.round() as i64)),
            None => self.total(v),
        });
        let kind = match self.markup {
            Markup::Plain => kind,
            Markup::Markdown => format!("**{kind}**"),
            Markup::Html => format!("<b>{kind}</b>"),
        };
        format!("{kind}: {base} {arrow} {new}")
    }
}

/// The lines that there is room for, in their order: the least important go first, the last of equals before the others.
/// What is left begins with the answer, however long that is.
pub(super) fn within(mut lines: Vec<Line>, head: &str, budget: Option<usize>) -> Vec<Line> {
    let Some(budget) = budget else { return lines };
    let size = |lines: &[Line]| tokens(head) + lines.iter().map(|l| tokens(&l.text) + 1).sum::<usize>();
    while lines.len() > 1 && size(&lines) > budget {
        let least = (0..lines.len()).max_by_key(|&i| (lines[i].about, i)).unwrap_or(0);
        lines.remove(least);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{percent, short};

    #[test]
    fn numbers_and_names_fit_a_line() {
        assert_eq!([0.023, 0.999, 0.5, 1.2].map(percent), ["2.3%", "100%", "50%", "120%"]);
        assert_eq!(short("main.f"), "main.f");
        assert!(short(&"x".repeat(1000)).chars().count() <= 100);
        assert_eq!(short("a\u{1b}b").matches('\u{1b}').count(), 0);
    }
}
