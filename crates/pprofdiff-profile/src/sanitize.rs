//! Makes untrusted text safe to show. Every text that reaches a person goes through [`sanitize`].
//!
//! Names, units, comments, labels, file names, source lines, error messages and a server's answers are untrusted. They
//! could move a terminal's cursor to hide lines, reverse the order of characters in a comment, or issue commands in a
//! CI log. Machine-readable formats (JSON, CSV, profiles) keep such texts exactly.
//!
//! Each harmful character is replaced by U+FFFD, so the number of characters does not change. Formats such as HTML and
//! Markdown apply their own escaping afterwards.

use std::borrow::Cow;

/// Returns true for characters that must not be shown: control characters (including line breaks), characters that
/// change the text direction, invisible characters, and characters that XML cannot represent.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
            | '\u{e0000}'..='\u{e007f}')
}

/// Replaces everything with U+FFFD that a terminal, a viewer or a CI log would act on: harmful characters, and the
/// markers of commands for the runners of GitHub (`::error::`, `##[error]`), Azure and TeamCity.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    // Fast path: nearly all names are printable ASCII without these markers.
    let is_plain = text.bytes().all(|b| matches!(b, b' '..=b'~')) && !text.contains("##") && !text.contains("::");
    if is_plain {
        return text.into();
    }
    let command = leading_command(text);
    let is_unsafe = |(index, c): (usize, char)| is_harmful(c) || Some(index) == command || is_marked(&text[index..]);
    if !text.char_indices().any(is_unsafe) {
        return text.into();
    }
    text.char_indices().map(|(index, c)| if is_unsafe((index, c)) { '\u{fffd}' } else { c }).collect()
}

/// Returns the position of a GitHub command at the start of the text, after whitespace and harmful characters:
/// `::name::` or `::name key=value::`. A runner reads commands at the start of a line only, and only the start of the
/// text can become one, because line breaks are replaced. A C++ name such as `::operator new(unsigned long)` is not a
/// command.
fn leading_command(text: &str) -> Option<usize> {
    let is_blank = |c: char| c.is_whitespace() || is_harmful(c);
    let line = text.trim_start_matches(is_blank);
    let rest = line.strip_prefix("::")?;
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'))?;
    let is_command = end > 0 && (rest[end..].starts_with(' ') || rest[end..].starts_with("::"));
    (is_command && rest.contains("::")).then_some(text.len() - line.len())
}

/// Returns true if the text starts with a command that may occur anywhere in a line: `##[error]`, `##vso[task]`,
/// `##teamcity[x]`.
fn is_marked(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("##") else { return false };
    rest.trim_start_matches(|c: char| c.is_ascii_alphabetic()).starts_with('[')
}

#[cfg(test)]
mod tests {
    use super::sanitize;

    #[test]
    fn control_characters_and_ci_commands_are_replaced() {
        for (text, shown) in [
            ("plain", "plain"),
            ("naïve→ 名前", "naïve→ 名前"),
            ("a\0b\x1b[31mc\u{202e}d\u{7f}\u{9b}e\r\n", "a�b�[31mc�d��e��"),
            ("a\u{2028}b\u{ad}c\u{200b}", "a�b�c�"),
            ("::error file=a,line=1::b", "�:error file=a,line=1::b"),
            (" \t::stop-commands::x", " ��:stop-commands::x"),
            ("\u{feff}::debug::x", "��:debug::x"),
            ("a ##[add-mask]b ###vso[task]c ##teamcity[d", "a �#[add-mask]b #�#vso[task]c �#teamcity[d"),
            ("std::vector<int>::at", "std::vector<int>::at"),
            ("::operator new(unsigned long)", "::operator new(unsigned long)"),
            ("::main", "::main"),
            ("a::error::b", "a::error::b"),
            ("C## [x]", "C## [x]"),
        ] {
            assert_eq!(sanitize(text), shown, "{text:?}");
            assert_eq!(sanitize(shown), shown, "twice is once");
            assert_eq!(sanitize(text).chars().count(), text.chars().count());
        }
    }
}
