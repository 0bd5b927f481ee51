//! Regular expressions as pprof's users write them: RE2's syntax and limits, compiled by the regex crate.
//!
//! The two agree but for a few forms, which are translated: a brace that begins no repetition stands
//! for itself (`interface {}` is a Go name), `\<` and `\>` are the characters and no word boundaries,
//! `\Q...\E` quotes, `\w`, `\d`, `\s` and `\b` know only ASCII, and in a class `[`, `&&`, `--` and `~~` have no
//! meaning of their own. What is repeated, and what repeats it, are repeated at most 1000 times together.
//!
//! A user's own expression may cost any time. One that comes out of a file is untrusted, as are the names that it is
//! matched with: [`Foreign`] bounds its cost.

use regex::bytes::{Regex, RegexBuilder};
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

use crate::{Error, Result};

/// Compiles one regular expression; its automaton is bounded, so a hostile one is an error. `what` names it in
/// the error.
///
/// # Errors
/// An invalid regular expression, or one beyond RE2's limits.
pub(crate) fn compile(what: &str, pattern: &str) -> Result<Regex> {
    let re = translate(pattern).and_then(|pattern| {
        let built = RegexBuilder::new(&pattern).size_limit(16 << 20).dfa_size_limit(16 << 20).build();
        built.map_err(|e| last_line(&e.to_string()))
    });
    re.map_err(|why| invalid(what, &why))
}

fn invalid(what: &str, why: &str) -> Error {
    Error::query(format!("the regular expression of {what} is invalid: {why}"))
}

/// Bytes of a file's expression. Those that pprof itself writes have at most a thousand.
const FOREIGN_LENGTH: usize = 4 << 10;
/// Bytes of its automaton: about 3,000 states. That of pprof's longest has 700.
const FOREIGN_STATES: usize = 256 << 10;
/// Bytes of the cache of a lazy DFA (sets of states, each computed once), and how often it may be cleared. This bounds
/// the cost of an expression: for each set that fits, and each next byte, one other set is computed once. All else is
/// one step a byte. pprof's longest takes 24 kB, whatever the names.
const FOREIGN_SETS: usize = 512 << 10;
const FOREIGN_RESTARTS: usize = 2;

/// A regular expression that came out of a file, matched with whole names. It counts its cost over all names, and fails
/// beyond a bound that does not depend on them.
pub(crate) struct Foreign {
    what: &'static str,
    automaton: DFA,
    cache: Cache,
}

impl Foreign {
    /// `what` names it in errors.
    ///
    /// # Errors
    /// As [`compile`], or it is too large.
    pub(crate) fn new(what: &'static str, pattern: &str) -> Result<Foreign> {
        let too_large = || Error::query(format!("the regular expression of {what} is too large"));
        if pattern.len() > FOREIGN_LENGTH {
            return Err(too_large());
        }
        let pattern = translate(pattern).map_err(|why| invalid(what, &why))?;
        let tree = syntax::parse_with(&format!("^(?:{pattern})$"), &syntax::Config::new().utf8(false));
        let tree = tree.map_err(|e| invalid(what, &last_line(&e.to_string())))?;
        let config = thompson::Config::new().utf8(false).nfa_size_limit(Some(FOREIGN_STATES));
        let config = config.which_captures(WhichCaptures::None);
        let states = NFA::compiler().configure(config).build_from_hir(&tree).map_err(|_| too_large())?;
        let config = DFA::config().cache_capacity(FOREIGN_SETS).minimum_cache_clear_count(Some(FOREIGN_RESTARTS));
        let automaton = DFA::builder().configure(config).build_from_nfa(states).map_err(|_| too_large())?;
        let cache = automaton.create_cache();
        Ok(Foreign { what, automaton, cache })
    }

    /// Does it match the whole name?
    ///
    /// # Errors
    /// It has cost too much, with this name and those before.
    pub(crate) fn is_match(&mut self, name: &[u8]) -> Result<bool> {
        let input = Input::new(name).anchored(Anchored::Yes).earliest(true);
        let found = self.automaton.try_search_fwd(&mut self.cache, &input);
        found
            .map(|end| end.is_some())
            .map_err(|_| Error::query(format!("the regular expression of {} takes too much work to match", self.what)))
    }
}

/// Syntax errors are explained over several lines, with a caret; the last line is the reason.
fn last_line(message: &str) -> String {
    message.lines().last().unwrap_or(message).trim().trim_start_matches("error: ").to_owned()
}

/// The most that RE2 repeats something: counts multiply with those of what is around it.
const MAX_REPEATS: u32 = 1000;

/// How often what stands in the groups that are open is repeated. RE2 would write it out as often.
#[derive(Default)]
struct Repeats {
    /// Of each open group: the most that something in it is repeated.
    open: Vec<u32>,
    /// The most since the last group was opened.
    most: u32,
    /// Of what stands last, which a repetition is of.
    last: u32,
}

impl Repeats {
    fn single(&mut self) {
        self.last = 1;
        self.most = self.most.max(1);
    }

    fn open(&mut self) {
        self.open.push(std::mem::take(&mut self.most));
    }

    fn close(&mut self) {
        self.last = self.most.max(1);
        self.most = self.last.max(self.open.pop().unwrap_or(0));
    }

    fn times(&mut self, n: u32) -> Result<(), String> {
        self.last = self.last.max(1).saturating_mul(n.max(1));
        self.most = self.most.max(self.last);
        if self.last > MAX_REPEATS {
            return Err(format!("it repeats something more than {MAX_REPEATS} times"));
        }
        Ok(())
    }
}

/// # Errors
/// What is repeated more often than RE2 allows.
fn translate(pattern: &str) -> Result<String, String> {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    let mut repeats = Repeats::default();
    // Where we are in a class: its first characters may be `^` and a `]` that does not end it.
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
                        // A class by name: its braces are not a repetition.
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

/// `{2}`, `{2,}` or `{2,5}` at the beginning of what is left, and how often it repeats.
fn repetition(rest: &str) -> Option<(&str, u32)> {
    let end = rest.find('}')?;
    let (low, high) = rest[1..end].split_once(',').unwrap_or((&rest[1..end], ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let most = if high.is_empty() { low } else { high };
    (!low.is_empty() && digits(low) && digits(high)).then(|| (&rest[..=end], most.parse().unwrap_or(u32::MAX)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Foreign, compile};

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
        // As in RE2, each of these alone is one too many.
        for many in ["a{1001}", "(a{100}b){11}", "(?:(x|y{2,10}){10}z){11}", "a{99999999999}", "[ab]*a[ab]{60000}"] {
            let error = compile("focus", many).unwrap_err().to_string();
            assert!(error.contains("more than 1000 times"), "{error}");
        }
        for most in ["a{1000}", "(a{100}b){10}", "(a{1000})(b{1000})|(c*){1000}", "[{1001}]", r"\Qa{1001}\E"] {
            assert!(compile("focus", most).is_ok(), "{most}");
        }
    }

    #[test]
    fn expressions_of_files_match_whole_names_like_others() {
        for (pattern, name, matches) in [
            ("runtime\\..*|malloc", "runtime.mallocgc", true),
            ("runtime\\..*|malloc", "mallocgc", false),
            ("runtime\\..*|malloc", "malloc", true),
            ("(?i)TC_new", "tc_NEW", true),
            ("", "", true),
            (".*é", "café", true),
        ] {
            assert_eq!(
                Foreign::new("test", pattern).unwrap().is_match(name.as_bytes()).unwrap(),
                matches,
                "{pattern} on {name}"
            );
        }
        for invalid in ["(", "a{1001}", "\\pL{500}", &"a|".repeat(10_000)] {
            assert!(Foreign::new("test", invalid).is_err(), "{invalid:.20}");
        }
    }

    #[test]
    fn expressions_of_files_give_up() {
        // Which of the last 300 letters were an a: as many sets of states as there are beginnings of the name.
        let mut hostile = Foreign::new("test", "[ab]*a[ab]{300}").unwrap();
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
        // And one that does not, after as many names.
        let mut usual = Foreign::new("test", "main\\..*|.*alloc.*").unwrap();
        for i in 0..100_000 {
            assert_eq!(usual.is_match(format!("package{i}.reallocate").as_bytes()).ok(), Some(true));
        }
    }
}
