//! Why two sides differ: for people, in at most 15 lines, and as JSON (schema `pprofdiff/1`, kind `explain`).

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::text::TextOptions;
use pprofdiff::explain::{Cause, CauseKind, Explanation, How, Moved, Part, ScaleRule, Verdict};
use pprofdiff::text::harmless;
use pprofdiff::units;

/// The most causes, parts of one, and moved functions that text names.
const MOST_CAUSES: usize = 4;
const MOST_PARTS: usize = 3;
const MOST_MOVED: usize = 3;
/// The longest line of text, about: names are cut to fit.
const LONGEST_NAME: usize = 100;
/// From this part on, one factor explains a change.
const MOSTLY: f64 = 0.85;
/// Background that changed by less than this part of the total is not worth a line.
const BACKGROUND: f64 = 0.02;

/// What a process ends with that ends on a verdict: 0 nothing changed, 1 something did, 3 these samples can't tell.
pub fn explain_exit_code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::None => 0,
        Verdict::Change => 1,
        Verdict::Inconclusive => 3,
    }
}

/// Writes the explanation as one JSON object.
///
/// # Errors
/// The writer's.
pub(crate) fn explain_json(e: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    let mut object = json!({"schema": "pprofdiff/1", "kind": "explain"});
    if let (Value::Object(object), Value::Object(mut own)) = (&mut object, serde_json::to_value(e)?) {
        for causes in ["causes", "suspects"] {
            let Some(Value::Array(causes)) = own.get_mut(causes) else { continue };
            for cause in causes {
                let pattern = cause["evidence"]["pattern"].as_str().map(str::to_owned);
                let label = cause["label"].as_object().map(|l| (l["key"].clone(), l["value"].clone()));
                cause["evidence"]["command"] = json!(command(e, pattern.as_deref(), label));
            }
        }
        object.extend(own);
    }
    serde_json::to_writer_pretty(&mut *out, &object)?;
    writeln!(out)
}

/// The command that shows the stacks of a cause, quoted for a shell.
fn command(e: &Explanation, pattern: Option<&str>, label: Option<(Value, Value)>) -> String {
    let mut words = vec!["pprofdiff".to_owned()];
    match pattern {
        Some(pattern) => words.extend(["peek".to_owned(), quoted(pattern)]),
        None => words.push("top".to_owned()),
    }
    match (e.base.as_slice(), e.new.as_slice()) {
        ([base], [new]) => words.extend([quoted(base), quoted(new)]),
        (base, new) => {
            words.push("--base".to_owned());
            words.extend(base.iter().map(|name| quoted(name)));
            words.push("--new".to_owned());
            words.extend(new.iter().map(|name| quoted(name)));
        }
    }
    words.extend(["--sample-type".to_owned(), quoted(&e.sample_type)]);
    if let Some((Value::String(key), Value::String(value))) = label {
        words.extend(["--tagfocus".to_owned(), quoted(&format!("{key}={value}"))]);
    }
    words.join(" ")
}

/// A word for a shell, as it is if nothing in it needs quotes.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A name that fits a line: of a long one the middle is left out.
fn name(text: &str) -> String {
    let text = harmless(text);
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= LONGEST_NAME {
        return text.into_owned();
    }
    let (head, tail) = (&chars[..LONGEST_NAME / 2], &chars[chars.len() - LONGEST_NAME / 2 + 1..]);
    format!("{}…{}", head.iter().collect::<String>(), tail.iter().collect::<String>())
}

fn amount(value: f64, unit: &str) -> String {
    let text = units::show_real(value.abs(), unit);
    format!("{}{text}", if value < 0.0 { "-" } else { "+" })
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

fn factor(x: f64) -> String {
    if x >= 9.95 {
        format!("{x:.0}")
    } else if x >= 0.095 {
        format!("{x:.2}")
    } else {
        format!("{x:.3}")
    }
}

/// What changed, as a sentence without its end.
fn sentence(function: Option<&str>, caller: Option<&str>, kind: CauseKind, up: bool) -> String {
    let function = function.map_or_else(|| "all of it".to_owned(), name);
    let (more, dearer) = if up { ("more often", "dearer") } else { ("less often", "cheaper") };
    match (kind, caller.map(name)) {
        (CauseKind::Own, Some(caller)) => {
            format!("{function} itself costs {}, or {caller} calls it {more}", if up { "more" } else { "less" })
        }
        (CauseKind::Own, None) => format!("{function} itself costs {}", if up { "more" } else { "less" }),
        (CauseKind::Calls, Some(caller)) => format!("{caller} calls {function} {more}, or it got {dearer}"),
        (CauseKind::Calls, None) => format!("{function} is called {more}, or it got {dearer}"),
        (CauseKind::Added, Some(caller)) => format!("{caller} now calls {function}"),
        (CauseKind::Added, None) => format!("{function} is new"),
        (CauseKind::Removed, Some(caller)) => format!("{caller} no longer calls {function}"),
        (CauseKind::Removed, None) => format!("{function} is gone"),
    }
}

fn cause_text(cause: &Cause, e: &Explanation) -> String {
    let change = format!("{} ({})", amount(cause.delta, &e.unit), signed_percent(cause.share));
    let times = cause.factor.filter(|f| *f > 0.0).map_or_else(String::new, |f| format!(", x{}", factor(f)));
    let up = cause.delta >= 0.0;
    if let Some(label) = &cause.label {
        let place = cause.function.as_deref().map_or_else(String::new, |f| format!(" in {}", name(f)));
        let label = format!("{}={}", name(&label.key), name(&label.value));
        return format!("{label}{place}: {change}{times}; other values of the label did not change");
    }
    let text = sentence(cause.function.as_deref(), cause.caller.as_deref(), cause.kind, up);
    let split = cause.split.map_or_else(String::new, |split| {
        let (count, unit) = (split.count_factor, split.unit_factor);
        let factors = format!("{} x as many, each {} x as large", factor(count), factor(unit));
        match () {
            () if split.count > MOSTLY => format!(". The count explains {}: {factors}", percent(split.count.min(1.0))),
            () if split.unit > MOSTLY => format!(". The size explains {}: {factors}", percent(split.unit.min(1.0))),
            () => format!(". {factors}"),
        }
    });
    format!("{text}: {change}{times}{split}")
}

fn parts_text(parts: &[Part], unit: &str) -> String {
    let one = |p: &Part| format!("{} {}", p.function.as_deref().map_or_else(String::new, name), amount(p.delta, unit));
    let shown: Vec<String> = parts.iter().take(MOST_PARTS).map(one).collect();
    format!("of it {}", shown.join(", "))
}

fn moved_text(m: &Moved, e: &Explanation) -> String {
    let (function, from) = (name(&m.function), name(&m.from));
    let size = if e.total.0 > 0.0 { format!(": {}", percent(m.delta / e.total.0)) } else { String::new() };
    let inside = m.inside.as_deref().map_or_else(String::new, |f| format!(" inside {}", name(f)));
    match m.how {
        How::Renamed => format!("{from} is now called {function}{size}, no change in sum"),
        how => format!("{from}'s cost is now {function}'s ({}){inside}{size}, no change in sum", how.name()),
    }
}

/// Writes the explanation for people, in at most 15 lines: causes, what moved, the scale, the background, noise.
///
/// # Errors
/// The writer's.
pub(crate) fn explain_text(e: &Explanation, out: &mut dyn Write, options: TextOptions) -> io::Result<()> {
    let bold = |text: String| if options.color { format!("\x1b[1m{text}\x1b[0m") } else { text };
    e.warnings.iter().take(1).try_for_each(|w| writeln!(out, "warning: {}", harmless(w)))?;
    let total = |value: f64| units::show_real(value, &e.unit);
    let kind = harmless(&e.sample_type).into_owned();
    let (base, new) = (total(e.total.0), total(e.total.1));
    writeln!(out, "{kind}: {base} -> {new}")?;
    let limit = percent(e.noise.mde);
    match e.verdict {
        Verdict::Change => {}
        Verdict::None if e.moved.is_empty() && e.noise.mde < 1.0 => {
            let text = format!("No change. A frame with 10% of the total would have been noticed from +-{limit}.");
            writeln!(out, "{}", bold(text))?;
        }
        Verdict::None => writeln!(out, "{}", bold("Nothing changed but where cost is counted.".to_owned()))?,
        Verdict::Inconclusive if !e.suspects.is_empty() => {
            let suspect = cause_text(&e.suspects[0], e);
            let scale = factor(e.total.1 / e.total.0.max(f64::MIN_POSITIVE));
            let text = format!("Either {scale} times as much work, or {suspect}. Give --ops.");
            writeln!(out, "{}", bold(text))?;
        }
        Verdict::Inconclusive => {
            let text = format!("These samples can't tell: less than +-{limit} of the total is noise here.");
            writeln!(out, "{}", bold(text))?;
        }
    }
    for (i, cause) in e.causes.iter().take(MOST_CAUSES).enumerate() {
        writeln!(out, "{}", bold(format!("{}. {}.", i + 1, cause_text(cause, e))))?;
        if !cause.parts.is_empty() {
            writeln!(out, "   {}", parts_text(&cause.parts, &e.unit))?;
        }
    }
    if e.causes.len() > MOST_CAUSES {
        writeln!(out, "{} more causes are in the JSON", e.causes.len() - MOST_CAUSES)?;
    }
    e.moved.iter().take(MOST_MOVED).try_for_each(|m| writeln!(out, "Moved: {}.", moved_text(m, e)))?;
    let scale = &e.scale;
    let (times, agree, of) = (factor(scale.factor), scale.agree, scale.of);
    let rest = if e.verdict == Verdict::None { "; per unit of work nothing changed" } else { "" };
    match scale.rule {
        ScaleRule::Same => writeln!(out, "Both sides did the same work ({agree} of {of} frames agree).")?,
        ScaleRule::Agree => {
            writeln!(
                out,
                "The new side did {times} times as much work, another number of operations ({agree} of {of} frames agree){rest}."
            )?;
        }
        ScaleRule::Given => {
            writeln!(out, "{times} times as many operations were given ({agree} of {of} frames agree){rest}.")?
        }
    }
    if e.background.abs() > BACKGROUND {
        let share = signed_percent(e.background);
        let why = if e.causes.is_empty() { "no cause of its own is known" } else { "a consequence" };
        writeln!(out, "GC, scheduling and locks {share}: {why}.")?;
    }
    let tau = percent(e.noise.tau);
    let (m0, m1) = e.noise.runs;
    if m0 > 1 && m1 > 1 {
        writeln!(out, "{m0} + {m1} runs: a frame differs by {tau} between them; least change to be noticed {limit}.")
    } else {
        writeln!(out, "Noise is estimated from this pair's other frames ({tau}); least change to be noticed {limit}.")
    }
}

#[cfg(test)]
mod tests {
    use super::{factor, name, percent, quoted};

    #[test]
    fn words_for_a_shell_are_quoted() {
        assert_eq!(quoted("a/b-c.pb.gz"), "a/b-c.pb.gz");
        assert_eq!(quoted("-a"), "'-a'");
        assert_eq!(quoted(r"^main\.\(\*T\)$"), r"'^main\.\(\*T\)$'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn numbers_and_names_fit_a_line() {
        assert_eq!([0.023, 0.999, 0.5, 1.2].map(percent), ["2.3%", "100%", "50%", "120%"]);
        assert_eq!([21.4, 1.5, 0.04].map(factor), ["21", "1.50", "0.040"]);
        assert_eq!(name("main.f"), "main.f");
        assert!(name(&"x".repeat(1000)).chars().count() <= 100);
        assert_eq!(name("a\u{1b}b").matches('\u{1b}').count(), 0);
    }
}
