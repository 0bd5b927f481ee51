//! The parts of a function's name: the path of its package, its type, and the last name.

use crate::thresholds::MIN_SHARED_PART_OF_WORDS;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Prefix of V8's names for regular expressions.
const REGULAR_EXPRESSION: &str = "RegExp: ";

/// Prefix of names for functions without a name.
const ANONYMOUS: &str = "(anonymous) ";

/// The parts of a name.
#[derive(Debug, PartialEq)]
pub(crate) struct Parts {
    /// The path of its package or module.
    pub package: String,
    /// Receiver or type, and last name, without type arguments. Two versions of a package share these.
    pub local: String,
    /// The receiver or type. Empty for a function without one.
    pub owner: String,
    /// The last name in lower case, because a function's export may change. The last name of a closure includes the
    /// function that contains it. The last name of a method that the language itself calls, such as `__init__`,
    /// includes its type. Empty for names without information, such as `<lambda>`.
    pub last: String,
}

/// Returns the path of a name's package or module.
pub fn package_of(name: &str) -> Cow<'_, str> {
    // Node's `exports.f` names the module's exports, not a package.
    Some(package(name)).filter(|package| package != "exports").unwrap_or_default()
}

/// Returns the package of a name, like [`Parts::of`]. For most names, this borrows a part of the text.
pub(super) fn package(name: &str) -> Cow<'_, str> {
    let (mut tail, mut last, mut is_plain) = (0, b'/', true);
    for (byte, end) in name.bytes().zip(1..) {
        match byte {
            b'[' | b'<' | b']' | b'>' | b':' => is_plain = false,
            // An empty segment, including the first segment of the tail.
            b'.' if matches!(last, b'.' | b'/') => is_plain = false,
            b'/' => tail = end,
            _ => {}
        }
        last = byte;
    }
    if !is_plain || last == b'.' || name.starts_with(ANONYMOUS) {
        return Parts::parse(name).package.into();
    }
    // The package ends before the first segment that is a type, or else before the last segment that names a function.
    let mut begin = tail;
    for (_, end) in name.bytes().zip(1..).skip(tail).filter(|(byte, _)| *byte == b'.') {
        let is_function = begin > tail && name[end..].split('.').all(is_closure);
        if is_type(&name[begin..]) || is_function {
            break;
        }
        begin = end;
    }
    name[..begin].strip_suffix('.').unwrap_or(&name[..begin]).into()
}

/// Returns true if a segment of a path looks like a receiver or a type: it starts with `(` or with an upper-case
/// letter.
fn is_type(segment: &str) -> bool {
    segment.starts_with('(') || segment.starts_with(char::is_uppercase)
}

/// Returns true if a segment of a path is a Go compiler's name for a closure within a function.
fn is_closure(segment: &str) -> bool {
    let number = ["func", "gowrap", "deferwrap"].iter().find_map(|prefix| segment.strip_prefix(prefix));
    // Canonical names contain `#` instead of the number, as in `main.run.func#`.
    !segment.is_empty() && number.unwrap_or(segment).bytes().all(|b| b.is_ascii_digit() || b == b'#')
}

/// Removes all brackets with their content, at any depth.
fn without_arguments(text: &str) -> String {
    let (mut kept, mut depth) = (String::new(), 0usize);
    for c in text.chars() {
        match c {
            '[' | '<' => depth += 1,
            ']' | '>' => depth = depth.saturating_sub(1),
            c if depth == 0 => kept.push(c),
            _ => {}
        }
    }
    kept
}

impl Parts {
    /// Parses names of Go (`a.b/c.(*T).M`), Rust and C++ (`a::T::m`, `<a::T as b::U>::m`), Java (`a.b.T.m`), and names
    /// without a package.
    pub(crate) fn parse(name: &str) -> Parts {
        // V8 names a regular expression by its text, which is not a path.
        if name.starts_with(REGULAR_EXPRESSION) {
            let (package, local) = (REGULAR_EXPRESSION.to_owned(), name.to_owned());
            return Parts { package, last: local.clone(), owner: String::new(), local };
        }
        // The file is all that identifies a function without a name.
        if let Some(file) = name.strip_prefix(ANONYMOUS) {
            let (last, local) = (name.to_owned(), name.to_owned());
            return Parts { package: file.to_owned(), owner: String::new(), last, local };
        }
        // A trait's implementation belongs to its type.
        let implemented = name.strip_prefix('<').and_then(|rest| {
            let (owner, method) = rest.rsplit_once(">::")?;
            let owner = owner.split_once(" as ").map_or(owner, |(owner, _)| owner).trim_start_matches(['&', '*']);
            Some(format!("{owner}::{method}"))
        });
        let name = without_arguments(implemented.as_deref().unwrap_or(name));
        let is_path = name.contains("::");
        // The tail: everything after the last slash, or all of a module path.
        let (head, tail) = match name.rfind('/').filter(|_| !is_path) {
            Some(slash) => name.split_at(slash + 1),
            None => ("", name.as_str()),
        };
        let separator = if is_path { "::" } else { "." };
        let segments: Vec<&str> = tail.split(separator).filter(|segment| !segment.is_empty()).collect();
        // A closure belongs to the function that contains it, which follows a package or a type.
        let closures = segments.iter().skip(2).rev().take_while(|segment| is_closure(segment)).count();
        let end = segments.len().saturating_sub(1 + closures);
        let begin = segments.iter().position(|segment| is_type(segment)).unwrap_or(end).min(end);
        let trimmed = |segments: &[&str]| -> Vec<String> {
            segments.iter().map(|segment| segment.trim_matches(['(', ')', '*']).to_owned()).collect()
        };
        let package = format!("{head}{}", segments[..begin].join(separator));
        let (owner, last) = (trimmed(&segments[begin..end]).join("."), trimmed(&segments[end..]).join("."));
        let local = trimmed(&segments[begin..]).join(".");
        // Many types have methods that the language itself calls, so these need their type.
        let is_of_language = last.starts_with("__") && last.ends_with("__") || last.starts_with("operator");
        let last = if is_of_language { local.clone() } else { last };
        Parts { package, owner, last: last.to_lowercase(), local }
    }

    /// Returns true if only the function's own package can call this Go function or method.
    pub(super) fn is_private_in_go(&self) -> bool {
        let name = self.local.strip_prefix(&self.owner).unwrap_or(&self.local).trim_start_matches('.');
        name.starts_with(|c: char| c.is_lowercase() || c == '_')
    }

    /// Returns true if two functions may implement the same method of an interface, as methods of two types. Then
    /// equal names and callers prove nothing. An interface cannot have a method that is private in two packages.
    pub(crate) fn may_implement(&self, other: &Parts, is_go: bool) -> bool {
        let are_methods = !self.owner.is_empty() && !other.owner.is_empty();
        let is_private = is_go && self.package != other.package && self.is_private_in_go() && other.is_private_in_go();
        are_methods && (&self.package, &self.owner) != (&other.package, &other.owner) && !is_private
    }

    /// Returns the words of the last name. For example, `readGeneric` and `read_generic` have two words.
    fn words(&self) -> BTreeSet<String> {
        let name = self.local.strip_prefix(&self.owner).unwrap_or(&self.local);
        // Compiler-generated names of closures are equal by accident.
        let name = name.split('.').filter(|segment| !is_closure(segment)).collect::<Vec<_>>().join(".");
        let (mut words, mut word, mut before) = (BTreeSet::new(), String::new(), ' ');
        for c in name.chars().chain([' ']) {
            let is_next = before.is_lowercase() && c.is_uppercase() || before.is_ascii_digit() != c.is_ascii_digit();
            if (is_next || !c.is_alphanumeric()) && !word.is_empty() {
                words.insert(std::mem::take(&mut word));
            }
            word.extend(c.is_alphanumeric().then_some(c).into_iter().flat_map(char::to_lowercase));
            before = c;
        }
        words
    }

    /// Returns true if two last names are similar: they are equal, or the words of one include all words of the other
    /// name, or they share more than half of their words.
    pub(crate) fn is_alike(&self, other: &Parts) -> bool {
        let (words, other_words) = (self.words(), other.words());
        let shared = words.intersection(&other_words).count();
        let all = words.len() + other_words.len() - shared;
        !self.last.is_empty() && self.last == other.last
            || shared > 0
                && (shared == words.len().min(other_words.len())
                    || shared as f64 > MIN_SHARED_PART_OF_WORDS * all as f64)
    }
}

/// Returns the segments of a path without its version. Paths with equal segments differ at most by version.
pub(super) fn segments(path: &str) -> Vec<&str> {
    path.split(['/', '.', '%', ':']).filter(|part| !part.is_empty() && !is_version(part)).collect()
}

/// Returns the module of a path, as far as paths show it: a host with an owner, or else the first segment.
pub(crate) fn module(path: &str) -> Vec<&str> {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let owner = rest.split('/').next().filter(|_| first.contains('.') && !rest.is_empty());
    match owner {
        Some(owner) => vec![first, owner],
        None => vec![path.split(['/', '.', ':']).next().unwrap_or_default()],
    }
}

/// Returns true for `v2`, and for `2ev2` (Go's symbols write a dot as `2e`).
fn is_version(part: &str) -> bool {
    let part = part.strip_prefix("2e").unwrap_or(part);
    part.strip_prefix('v').is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::{Parts, package, segments};

    #[test]
    fn names_split_into_package_and_local_name() {
        let joined_parts = |name: &str| {
            let Parts { package, local, last, .. } = Parts::parse(name);
            [package, local, last].join(" | ")
        };
        let cases = [
            ("gopkg.in/yaml%2ev2.(*parser).parse", "gopkg.in/yaml%2ev2 | parser.parse | parse"),
            ("gopkg.in/yaml.v3.Unmarshal", "gopkg.in/yaml.v3 | Unmarshal | unmarshal"),
            ("main.sum[go.shape.int]", "main | sum | sum"),
            // The name of a closure includes the function that contains it.
            ("a/b.run.func1", "a/b | run.func1 | run.func1"),
            ("a/b.(*T).run.func1.2", "a/b | T.run.func1.2 | run.func1.2"),
            ("main.func1", "main | func1 | func1"),
            ("main.run.func#", "main | run.func# | run.func#"),
            ("<lambda>", " |  | "),
            ("github.com/a/b.(*T[...]).M", "github.com/a/b | T.M | m"),
            ("pulldown_cmark::parse::Parser::next", "pulldown_cmark::parse | Parser.next | next"),
            ("<a::b::T<X> as core::iter::Iterator>::next", "a::b | T.next | next"),
            ("java.util.HashMap.get", "java.util | HashMap.get | get"),
            ("parseXml", " | parseXml | parsexml"),
            ("(anonymous) a/b.js", "a/b.js | (anonymous) a/b.js | (anonymous) a/b.js"),
            ("Markdown.__call__", " | Markdown.__call__ | markdown.__call__"),
        ];
        cases.iter().for_each(|(name, expected)| assert_eq!(joined_parts(name), *expected));
        let odd = [
            "a/b.c.D.e",
            "a/b.(*t).m",
            "a.b/c",
            "a/",
            "",
            "a..b",
            ".a",
            "a.",
            "a/.b.c",
            "A.b",
            "a.b.c",
            "f(int) const",
            "RegExp: a.b/C",
            "(anonymous namespace)::f",
            "a.(anonymous) b",
            "a/b.F.func1.2",
        ];
        for name in cases.iter().map(|(name, _)| *name).chain(odd) {
            assert_eq!(package(name), Parts::parse(name).package, "{name}");
        }
        let is_version_of = |a: &str, b: &str| segments(a) == segments(b);
        assert!(is_version_of("gopkg.in/yaml%2ev2", "gopkg.in/yaml%2ev3"));
        assert!(is_version_of("encoding/json", "encoding/json/v2") && !is_version_of("a/b", "a/c"));
    }

    #[test]
    fn names_with_mostly_equal_words_are_alike() {
        let are_alike = |a: &str, b: &str| Parts::parse(a).is_alike(&Parts::parse(b));
        for (a, b) in [
            ("getDiagnostics", "getDiagnostics2"),
            ("a::scan_list_marker", "a::scan_list_marker_with_indent"),
            ("a.T.Read", "b.U.read"),
            ("main.readAll", "main.read_all"),
        ] {
            assert!(are_alike(a, b) && are_alike(b, a), "{a} {b}");
        }
        for (a, b) in [
            ("main.Work2", "main.Work3"),
            ("a.arrayMergeSpans", "a.hashmapMergeSpans"),
            ("ids.Generate", "store.(*DB).Insert"),
            ("main.read.func1", "main.write.func1"),
            ("<lambda>", "<lambda>"),
        ] {
            assert!(!are_alike(a, b) && !are_alike(b, a), "{a} {b}");
        }
    }
}
