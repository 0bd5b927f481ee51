//! Builds shell commands for people to copy. Names in the commands are untrusted, so each name becomes exactly one
//! word, and a file name ([`operand`]) never becomes an option.

use crate::sanitize::is_harmful;

/// Returns the command that rewrites a profile with function names from the binary.
pub(crate) fn symbolize(binary: &str, profile: &str) -> String {
    let (binary, profile) = (operand(binary, "BINARY"), operand(profile, "PROFILE"));
    format!("pprofdiff convert {profile} --binary {binary} -o named.pb.gz")
}

/// Returns a file name as one word for a POSIX shell that is never an option. Returns the placeholder if the name is
/// not a file name (`-`, `<bytes>`) or contains characters that cannot be typed.
pub fn operand(name: &str, placeholder: &str) -> String {
    let is_typable = |c: char| c.is_alphanumeric() || c.is_ascii_graphic() || c == ' ';
    if name.is_empty() || name == "-" || name.starts_with('<') || !name.chars().all(is_typable) {
        return placeholder.to_owned();
    }
    if name.starts_with('-') { word(&format!("./{name}")) } else { word(name) }
}

/// Returns a text as one word for a POSIX shell, with quotes only if necessary. The crate shell-words leaves `!`, `^`
/// and braces without quotes, and interactive shells expand them.
pub fn word(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-./:@%+,=".contains(&b);
    let is_plain = !text.is_empty() && !text.starts_with(['-', '=']) && text.bytes().all(plain);
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Returns a regular expression that matches only this name.
pub fn exactly(name: &str) -> String {
    format!("^{}$", regex::escape(name))
}

/// Returns a regular expression that matches only these names.
pub fn exactly_any(names: &[String]) -> String {
    match names {
        [name] => exactly(name),
        names => format!("^({})$", names.iter().map(|name| regex::escape(name)).collect::<Vec<_>>().join("|")),
    }
}

/// Makes a regular expression typable: writes a line break as `\n`, and replaces each other character that cannot be
/// typed with a dot.
pub fn typed(pattern: &str) -> String {
    let type_char = |c: char| match c {
        '\n' => r"\n".to_owned(), // a dot does not match a line break
        c if is_harmful(c) => '.'.to_string(),
        c => c.to_string(),
    };
    pattern.chars().map(type_char).collect()
}

/// Returns the length in bytes of the common prefix of two character sequences.
fn common_prefix_len(a: impl Iterator<Item = char>, b: impl Iterator<Item = char>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
}

/// Returns a file pattern that matches all of `names` and none of `others`. In each part of a path, `*` replaces the
/// characters that differ. Returns `None` if the pattern would also match one of `others`, if the paths in `names`
/// differ in depth, or if a name contains a wildcard.
pub fn pattern_of(names: &[&str], others: &[&str]) -> Option<String> {
    let parts: Vec<Vec<&str>> = names.iter().map(|name| name.split('/').collect()).collect();
    let (first, rest) = parts.split_first()?;
    if rest.iter().any(|parts| parts.len() != first.len()) || names.iter().any(|name| name.contains(['*', '?', '['])) {
        return None;
    }
    let ends = |index: usize| {
        let part = first[index];
        let prefix =
            rest.iter().map(|parts| common_prefix_len(part.chars(), parts[index].chars())).min().unwrap_or(part.len());
        let suffix = rest
            .iter()
            .map(|parts| common_prefix_len(part.chars().rev(), parts[index].chars().rev()))
            .min()
            .unwrap_or(0);
        // The common prefix and suffix must not overlap in the shortest name.
        let shortest = parts.iter().map(|parts| parts[index].len()).min().unwrap_or(0);
        let suffix = suffix.min(shortest - prefix);
        let end = part.len() - suffix;
        (&part[..prefix], part.get(end..).unwrap_or_default(), rest.iter().all(|parts| parts[index] == part))
    };
    let pattern: Vec<_> = (0..first.len()).map(ends).collect();
    let matches = |name: &&str| {
        let parts: Vec<&str> = name.split('/').collect();
        let fits = |(part, (prefix, suffix, is_equal)): (&&str, &(&str, &str, bool))| match is_equal {
            true => part == prefix,
            false => part.len() >= prefix.len() + suffix.len() && part.starts_with(prefix) && part.ends_with(suffix),
        };
        parts.len() == pattern.len() && parts.iter().zip(&pattern).all(fits)
    };
    let text = |(prefix, suffix, is_equal): &(&str, &str, bool)| match is_equal {
        true => (*prefix).to_owned(),
        false => format!("{prefix}*{suffix}"),
    };
    let is_only = !others.iter().any(matches);
    is_only.then(|| pattern.iter().map(text).collect::<Vec<_>>().join("/"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{exactly, operand, pattern_of, symbolize, typed, word};

    #[test]
    fn a_pattern_matches_all_names_and_no_others() {
        for (names, others, pattern) in [
            (&["a/b-1.cpu.gz", "a/c-22.cpu.gz"][..], &["a/b-1.heap.gz"][..], Some("a/*.cpu.gz")),
            (&["1/x/cpu", "22/y/cpu"], &["1/x/heap", "cpu"], Some("*/*/cpu")),
            (&["ab", "ab"], &["abc"], Some("ab")),
            (&["aba", "ababa"], &[], Some("aba*")),
            (&["x-é1", "x-è1"], &["y"], Some("x-*1")),
            // The pattern would match another name, paths differ in depth, or names contain wildcards.
            (&["a1", "a2"], &["a3"], None),
            (&["a/b", "a"], &[], None),
            (&["a*", "ab"], &[], None),
        ] {
            assert_eq!(pattern_of(names, others).as_deref(), pattern, "{names:?}");
        }
    }

    #[test]
    fn file_names_become_quoted_operands() {
        assert_eq!(symbolize("/bin/x", "a b"), "pprofdiff convert 'a b' --binary /bin/x -o named.pb.gz");
        assert_eq!(symbolize("", "-x.heap"), "pprofdiff convert ./-x.heap --binary BINARY -o named.pb.gz");
    }

    #[test]
    fn a_typed_expression_still_matches_its_name() {
        for name in ["main.(*T).f", "a\x1b[2J\u{202e}b", "a\nb\r\n"] {
            let pattern = typed(&exactly(name));
            assert!(regex::Regex::new(&pattern).is_ok_and(|re| re.is_match(name)), "{pattern:?}");
            assert!(!pattern.contains(crate::sanitize::is_harmful), "{pattern:?}");
        }
    }

    #[test]
    fn texts_that_are_not_file_names_become_placeholders() {
        for name in ["", "-", "<bytes>", "a\nb", "a\u{1b}[2Jb", "a\u{202e}b", "a\u{fffd}b"] {
            assert_eq!(operand(name, "PROFILE"), "PROFILE", "{name:?}");
        }
    }

    /// Runs a shell to check the quoting.
    #[cfg(unix)]
    #[test]
    fn a_shell_reads_each_name_as_one_word() {
        for name in ["a b", "$(touch x)", "`id`", "a'b", "''", "a;b", "a\\", "~", "*", "!x", "ä", "a\"b", "#a", "{a,b}"]
        {
            let script = format!("printf '%s|' {}", operand(name, "PROFILE"));
            let output = Command::new("sh").args(["-c", &script]).output().map(|o| o.stdout);
            assert_eq!(output.ok(), Some(format!("{name}|").into_bytes()));
        }
        assert_eq!(operand("-http=:80", "PROFILE"), "./-http=:80");
        for (text, quoted) in [
            ("a/b-c.pb.gz", "a/b-c.pb.gz"),
            ("-a", "'-a'"),
            (r"^main\.\(\*T\)$", r"'^main\.\(\*T\)$'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(word(text), quoted);
        }
    }
}
