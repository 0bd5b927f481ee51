//! Commands that a person may copy into a shell. Names in them are untrusted: each is one word, whatever it
//! holds, and none is taken for an option.

use crate::sanitize::is_harmful;

/// The command that writes the profile again, with the names of functions from the binary.
pub(crate) fn symbolize(binary: &str, profile: &str) -> String {
    let (binary, profile) = (operand(binary, "BINARY"), operand(profile, "PROFILE"));
    format!("pprofdiff convert {profile} --binary {binary} -o named.pb.gz")
}

/// A file's name as one word for a POSIX shell, which is no option; the placeholder for what is not a file's name (`-`,
/// `<bytes>`) or can't be typed.
pub fn operand(name: &str, placeholder: &str) -> String {
    let typed = |c: char| c.is_alphanumeric() || c.is_ascii_graphic() || c == ' ';
    if name.is_empty() || name == "-" || name.starts_with('<') || !name.chars().all(typed) {
        return placeholder.to_owned();
    }
    if name.starts_with('-') { word(&format!("./{name}")) } else { word(name) }
}

/// A text as one word for a POSIX shell, as it is if nothing in it needs quotes.
pub fn word(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-./:@%+,=".contains(&b);
    let is_plain = !text.is_empty() && !text.starts_with(['-', '=']) && text.bytes().all(plain);
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// An expression that only this name matches.
pub fn exactly(name: &str) -> String {
    format!("^{}$", regex::escape(name))
}

/// An expression that only these names match.
pub fn exactly_any(names: &[String]) -> String {
    match names {
        [name] => exactly(name),
        names => format!("^({})$", names.iter().map(|name| regex::escape(name)).collect::<Vec<_>>().join("|")),
    }
}

/// An expression as it can be typed: what can't be is any character.
pub fn typed(pattern: &str) -> String {
    let typed = |c: char| match c {
        '\n' => r"\n".to_owned(), // which a dot does not match
        c if is_harmful(c) => '.'.to_string(),
        c => c.to_string(),
    };
    pattern.chars().map(typed).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{exactly, operand, symbolize, typed, word};

    #[test]
    fn names_are_operands() {
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
    fn what_is_no_name_is_a_placeholder() {
        for name in ["", "-", "<bytes>", "a\nb", "a\u{1b}[2Jb", "a\u{202e}b", "a\u{fffd}b"] {
            assert_eq!(operand(name, "PROFILE"), "PROFILE", "{name:?}");
        }
    }

    /// A shell is the oracle.
    #[cfg(unix)]
    #[test]
    fn a_shell_sees_one_word() {
        for name in ["a b", "$(touch x)", "`id`", "a'b", "''", "a;b", "a\\", "~", "*", "!x", "ä", "a\"b", "#a", "{a,b}"]
        {
            let script = format!("printf '%s|' {}", operand(name, "PROFILE"));
            let said = Command::new("sh").args(["-c", &script]).output().map(|o| o.stdout);
            assert_eq!(said.ok(), Some(format!("{name}|").into_bytes()));
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
