//! Regular expressions as pprof's users write them: RE2's syntax, compiled by the regex crate.
//!
//! The two agree but for a few forms, which are translated: a brace that begins no repetition stands
//! for itself (`interface {}` is a Go name), `\<` and `\>` are the characters and no word boundaries,
//! `\Q...\E` quotes, and in a class `[`, `&&`, `--` and `~~` have no meaning of their own.

use regex::bytes::{Regex, RegexBuilder};

use crate::{Error, Result};

/// Compiles one regular expression; its automaton is bounded, so a hostile one is an error. `what` names it in
/// the error.
pub(crate) fn compile(what: &str, pattern: &str) -> Result<Regex> {
    RegexBuilder::new(&translate(pattern))
        .size_limit(16 << 20)
        .dfa_size_limit(16 << 20)
        .build()
        .map_err(|e| Error::query(format!("the regular expression of {what} is no good: {}", one_line(&e.to_string()))))
}

/// regex explains syntax errors over several lines, with a caret; the last line is the reason.
fn one_line(message: &str) -> String {
    message.lines().last().unwrap_or(message).trim().trim_start_matches("error: ").to_owned()
}

fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    // Where we are in a class: its first characters may be `^` and a `]` that does not end it.
    let mut in_class = false;
    while let Some(c) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix(r"\Q") {
            let (text, after) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
            out.push_str(&regex::escape(text));
            rest = after;
            continue;
        }
        let mut taken = c.len_utf8();
        match c {
            '\\' => {
                let escaped = rest[1..].chars().next();
                taken += escaped.map_or(0, char::len_utf8);
                match escaped {
                    Some(c @ ('<' | '>')) => out.push(c),
                    _ => {
                        out.push_str(&rest[..taken]);
                        // A class by name: its braces are none of ours.
                        if let (Some('p' | 'P' | 'x'), Some(end)) = (escaped, rest.find('}'))
                            && rest[2..].starts_with('{')
                        {
                            out.push_str(&rest[2..=end]);
                            taken = end + 1;
                        }
                    }
                }
            }
            '[' if in_class && rest.starts_with("[:") => out.push('['),
            '[' if in_class => out.push_str(r"\["),
            '[' => {
                in_class = true;
                let opening = ["[^]", "[]", "[^", "["].into_iter().find(|o| rest.starts_with(o)).unwrap_or("[");
                taken = opening.len();
                out.push_str(&opening.replace(']', r"\]"));
            }
            ']' => {
                // A named class, [:alpha:], ends in :], which ends no class around it.
                in_class &= out.ends_with(':') && out.rfind("[:").is_some_and(|i| !out[i..].contains(']'));
                out.push(']');
            }
            '&' | '~' if in_class && rest[1..].starts_with(c) => out.extend(['\\', c]),
            '{' if !in_class && !begins_repetition(rest) => out.push_str(r"\{"),
            '}' if !in_class && !ends_repetition(&out) => out.push_str(r"\}"),
            c => out.push(c),
        }
        rest = &rest[taken..];
    }
    out
}

/// `{2}`, `{2,}` or `{2,5}` after something to repeat.
fn begins_repetition(rest: &str) -> bool {
    let Some((inside, _)) = rest[1..].split_once('}') else { return false };
    let (low, high) = inside.split_once(',').unwrap_or((inside, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    !low.is_empty() && digits(low) && digits(high)
}

fn ends_repetition(out: &str) -> bool {
    out.rfind('{').is_some_and(|i| !out[..i].ends_with('\\') && begins_repetition(&format!("{}}}", &out[i..])))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::compile;

    #[test]
    fn what_re2_accepts_means_the_same_here() {
        let cases = [
            (r"interface {}", "f(interface {})", true),
            (r"vector\<int\>", "vector<int>", true),
            (r"\Qa.b{}\E$", "a.b{}", true),
            (r"\Qa.b\E", "axb", false),
            (r"[^[]x", "[x", false),
            (r"[^[]x", "ax", true),
            (r"[]a]+$", "]a", true),
            (r"^[[:alpha:]_]+$", "ab_", true),
            (r"^[[:alpha:]_]+$", "a1", false),
            (r"[a&&b]", "&", true),
            (r"^a{2,3}$", "aaa", true),
            (r"^a{2,3}$", "aaaa", false),
            (r"a{,3}", "a{,3}", true),
            (r"^\p{Lu}+$", "AB", true),
            (r"^\x{41}$", "A", true),
            (r"main\.\(\*T\)\.f", "main.(*T).f", true),
            (r"(?i)MAIN", "main", true),
            (r"go\.shape\.[a-z]+", "x[go.shape.int]", true),
        ];
        for (pattern, text, matches) in cases {
            assert_eq!(compile("test", pattern).unwrap().is_match(text.as_bytes()), matches, "{pattern} on {text}");
        }
        for bad in ["(", "a**b(", r"\", "[a", "(?P<n"] {
            let error = compile("focus", bad).unwrap_err().to_string();
            assert!(error.contains("focus") && !error.contains('\n'), "{error}");
        }
        assert!(compile("focus", "(a{1000}){1000}").is_err());
    }
}
