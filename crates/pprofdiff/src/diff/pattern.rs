//! Compiles regular expressions with the syntax and the limits of RE2, which pprof uses. The regex crate does the
//! matching.
//!
//! The two syntaxes differ in a few forms, which are translated:
//!
//! - A brace that does not start a repetition is a literal: `interface {}` is a Go name.
//! - `\<` and `\>` are literal characters, not word boundaries.
//! - `\Q...\E` quotes text.
//! - `\w`, `\d`, `\s` and `\b` match only ASCII.
//! - In a class, `[`, `&&`, `--` and `~~` are literal.
//! - Nested repetitions may multiply to at most 1000.
//!
//! An expression from the user may take any amount of time. An expression from a file is untrusted, and so are the
//! names that it is matched with. [`ForeignPattern`] bounds its cost.

use regex::bytes::{Regex, RegexBuilder};
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

use crate::{Error, Result};

/// Compiles a regular expression. The size of its automaton is limited, so a hostile expression is an error. `option`
/// is the option's name for the error message.
///
/// # Errors
/// Fails if the expression is invalid or exceeds RE2's limits.
pub(crate) fn compile(option: &str, pattern: &str) -> Result<Regex> {
    let re = translate(pattern).and_then(|pattern| {
        let built = RegexBuilder::new(&pattern).size_limit(16 << 20).dfa_size_limit(16 << 20).build();
        built.map_err(|e| last_line(&e.to_string()))
    });
    re.map_err(|why| invalid(option, &why))
}

fn invalid(option: &str, why: &str) -> Error {
    Error::query(format!("the regular expression of {option} is invalid: {why}"))
}

/// The maximum length in bytes of an expression from a file. Expressions that pprof writes have at most a thousand
/// bytes.
const FOREIGN_LENGTH: usize = 4 << 10;
/// The maximum size of its automaton in bytes, about 3,000 states. The longest expression of pprof has 700 states.
const FOREIGN_STATES: usize = 256 << 10;
/// The size in bytes of the cache of a lazy DFA, which stores sets of states, and the number of times that it may be
/// cleared. The two limits bound the cost of an expression: a transition from a cached set by a byte is computed once,
/// and all other work is one step per byte. The longest expression of pprof needs 24 kB for any names.
const FOREIGN_SETS: usize = 512 << 10;
const FOREIGN_RESTARTS: usize = 2;

/// A regular expression from a file, matched against whole names. The limit on its cost applies to all names together,
/// and does not depend on them.
pub(crate) struct ForeignPattern {
    option: &'static str,
    automaton: DFA,
    cache: Cache,
}

impl ForeignPattern {
    /// Compiles the expression. `option` is its name for error messages.
    ///
    /// # Errors
    /// Returns the errors of [`compile`]. Also fails if the expression is too large.
    pub(crate) fn new(option: &'static str, pattern: &str) -> Result<ForeignPattern> {
        let too_large = || Error::query(format!("the regular expression of {option} is too large"));
        if pattern.len() > FOREIGN_LENGTH {
            return Err(too_large());
        }
        let pattern = translate(pattern).map_err(|why| invalid(option, &why))?;
        let tree = syntax::parse_with(&format!("^(?:{pattern})$"), &syntax::Config::new().utf8(false));
        let tree = tree.map_err(|e| invalid(option, &last_line(&e.to_string())))?;
        let config = thompson::Config::new().utf8(false).nfa_size_limit(Some(FOREIGN_STATES));
        let config = config.which_captures(WhichCaptures::None);
        let states = NFA::compiler().configure(config).build_from_hir(&tree).map_err(|_| too_large())?;
        let config = DFA::config().cache_capacity(FOREIGN_SETS).minimum_cache_clear_count(Some(FOREIGN_RESTARTS));
        let automaton = DFA::builder().configure(config).build_from_nfa(states).map_err(|_| too_large())?;
        let cache = automaton.create_cache();
        Ok(ForeignPattern { option, automaton, cache })
    }

    /// Returns true if the expression matches the whole name.
    ///
    /// # Errors
    /// Fails if matching exceeds the limit on the cost of all names so far.
    pub(crate) fn is_match(&mut self, name: &[u8]) -> Result<bool> {
        let input = Input::new(name).anchored(Anchored::Yes).earliest(true);
        let result = self.automaton.try_search_fwd(&mut self.cache, &input);
        result
            .map(|end| end.is_some())
            .map_err(|_| Error::query(format!("the regular expression of {} is too expensive to match", self.option)))
    }
}

/// Extracts the reason from a syntax error. The error spans several lines with a caret, and its last line is the
/// reason.
fn last_line(message: &str) -> String {
    message.lines().last().unwrap_or(message).trim().trim_start_matches("error: ").to_owned()
}

/// RE2's limit for repetitions. The counts of nested repetitions are multiplied.
const MAX_REPEATS: u32 = 1000;

/// Counts how often the parts of an expression are repeated. RE2 would expand them that many times.
#[derive(Default)]
struct Repeats {
    /// For each open group, the maximum count in the surrounding group before it was opened.
    open: Vec<u32>,
    /// The maximum count since the last group was opened.
    max: u32,
    /// The count of the last element, to which a repetition applies.
    last: u32,
}

impl Repeats {
    fn single(&mut self) {
        self.last = 1;
        self.max = self.max.max(1);
    }

    fn open(&mut self) {
        self.open.push(std::mem::take(&mut self.max));
    }

    fn close(&mut self) {
        self.last = self.max.max(1);
        self.max = self.last.max(self.open.pop().unwrap_or(0));
    }

    fn times(&mut self, n: u32) -> Result<(), String> {
        self.last = self.last.max(1).saturating_mul(n.max(1));
        self.max = self.max.max(self.last);
        if self.last > MAX_REPEATS {
            return Err(format!("it repeats a part more than {MAX_REPEATS} times"));
        }
        Ok(())
    }
}

/// Translates RE2's syntax to the syntax of the regex crate.
///
/// # Errors
/// Fails if an element is repeated more often than RE2 allows.
fn translate(pattern: &str) -> Result<String, String> {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    let mut repeats = Repeats::default();
    // True inside a class. Its first characters may be `^` and a `]` that does not end the class.
    let mut in_class = false;
    while let Some(c) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix(r"\Q") {
            let (text, after) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
            out.push_str(&regex::escape(text));
            repeats.single();
            rest = after;
            continue;
        }
        let mut taken = c.len_utf8();
        if !in_class {
            match c {
                '(' => repeats.open(),
                ')' => repeats.close(),
                '*' | '+' | '?' | '{' => {}
                _ => repeats.single(),
            }
        }
        match c {
            '\\' => {
                let escaped = rest[1..].chars().next();
                taken += escaped.map_or(0, char::len_utf8);
                match escaped {
                    Some(c @ ('<' | '>')) => out.push(c),
                    Some('w') => out.push_str("[0-9A-Za-z_]"),
                    Some('W') => out.push_str("[^0-9A-Za-z_]"),
                    Some('d') => out.push_str("[0-9]"),
                    Some('D') => out.push_str("[^0-9]"),
                    Some('s') => out.push_str(r"[\t\n\f\r ]"),
                    Some('S') => out.push_str(r"[^\t\n\f\r ]"),
                    Some(c @ ('b' | 'B')) if !in_class => out.extend(["(?-u:\\", c.encode_utf8(&mut [0; 4]), ")"]),
                    _ => {
                        out.push_str(&rest[..taken]);
                        // The braces of a named class are not a repetition.
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
                // A named class such as [:alpha:] ends with :], which does not end the class around it.
                in_class &= out.ends_with(':') && out.rfind("[:").is_some_and(|i| !out[i..].contains(']'));
                out.push(']');
            }
            '&' | '~' if in_class && rest[1..].starts_with(c) => out.extend(['\\', c]),
            '{' if !in_class => match repetition(rest) {
                Some((text, n)) => {
                    repeats.times(n)?;
                    out.push_str(text);
                    taken = text.len();
                }
                None => {
                    repeats.single();
                    out.push_str(r"\{");
                }
            },
            '}' if !in_class => out.push_str(r"\}"),
            c => out.push(c),
        }
        rest = &rest[taken..];
    }
    Ok(out)
}

/// Parses `{2}`, `{2,}` or `{2,5}` at the start of `rest`. Returns the text and the maximum count.
fn repetition(rest: &str) -> Option<(&str, u32)> {
    let end = rest.find('}')?;
    let (low, high) = rest[1..end].split_once(',').unwrap_or((&rest[1..end], ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let max = if high.is_empty() { low } else { high };
    (!low.is_empty() && digits(low) && digits(high)).then(|| (&rest[..=end], max.parse().unwrap_or(u32::MAX)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{ForeignPattern, compile};

    #[test]
    fn expressions_match_as_in_re2() {
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
            (r"^\w+$", "a_1", true),
            (r"^\w+$", "é", false),
            (r"^[\w.]+$", "a.b", true),
            (r"^[^\W\d]+$", "ab", true),
            (r"^[^\W\d]+$", "a1", false),
            (r"a\b", "aé", true),
            (r"^\S+\s\D$", "a b", true),
            (r"^(ab{2}){500}$", "abb", false),
            (r"x{}{a}", "x{}{a}", true),
        ];
        for (pattern, text, matches) in cases {
            assert_eq!(compile("test", pattern).unwrap().is_match(text.as_bytes()), matches, "{pattern} on {text}");
        }
        for invalid in ["(", "a**b(", r"\", "[a", "(?P<n"] {
            let error = compile("focus", invalid).unwrap_err().to_string();
            assert!(error.contains("focus") && !error.contains('\n'), "{error}");
        }
        // RE2 rejects each of these, because a part is repeated too often.
        for many in ["a{1001}", "(a{100}b){11}", "(?:(x|y{2,10}){10}z){11}", "a{99999999999}", "[ab]*a[ab]{60000}"] {
            let error = compile("focus", many).unwrap_err().to_string();
            assert!(error.contains("more than 1000 times"), "{error}");
        }
        for valid in ["a{1000}", "(a{100}b){10}", "(a{1000})(b{1000})|(c*){1000}", "[{1001}]", r"\Qa{1001}\E"] {
            assert!(compile("focus", valid).is_ok(), "{valid}");
        }
    }

    #[test]
    fn expressions_from_files_match_whole_names() {
        for (pattern, name, matches) in [
            ("runtime\\..*|malloc", "runtime.mallocgc", true),
            ("runtime\\..*|malloc", "mallocgc", false),
            ("runtime\\..*|malloc", "malloc", true),
            ("(?i)TC_new", "tc_NEW", true),
            ("", "", true),
            (".*é", "café", true),
        ] {
            assert_eq!(
                ForeignPattern::new("test", pattern).unwrap().is_match(name.as_bytes()).unwrap(),
                matches,
                "{pattern} on {name}"
            );
        }
        for invalid in ["(", "a{1001}", "\\pL{500}", &"a|".repeat(10_000)] {
            assert!(ForeignPattern::new("test", invalid).is_err(), "{invalid:.20}");
        }
    }

    #[test]
    fn hostile_expressions_from_files_fail_after_a_bounded_cost() {
        // The automaton must remember which of the last 300 letters were an a, so nearly every prefix needs a new set
        // of states.
        let mut hostile = ForeignPattern::new("test", "[ab]*a[ab]{300}").unwrap();
        let mut bit = 1_u32;
        let mut letters = std::iter::repeat_with(|| {
            bit = bit.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if bit >> 31 == 0 { b'a' } else { b'b' }
        });
        let tried: usize = (0..10_000)
            .map(|_| letters.by_ref().take(1000).collect::<Vec<_>>())
            .take_while(|name| hostile.is_match(name).is_ok())
            .count();
        assert!(tried < 100, "{tried} names, each of another thousand sets");
        // A harmless expression does not fail after the same number of names.
        let mut usual = ForeignPattern::new("test", "main\\..*|.*alloc.*").unwrap();
        for i in 0..100_000 {
            assert_eq!(usual.is_match(format!("package{i}.reallocate").as_bytes()).ok(), Some(true));
        }
    }
}
