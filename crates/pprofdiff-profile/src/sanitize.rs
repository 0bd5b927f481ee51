//! Untrusted text, made safe to show: every text that reaches a person goes through this one function.
//!
//! Names, units, comments, labels, file names, source lines, error messages and a server's answers are untrusted.
//! They could move the cursor of a terminal and hide lines, reverse the order of letters in a comment, or give commands
//! in a CI log. Formats for machines (JSON, CSV, profiles) keep them exactly.
//!
//! One character is replaced by one other, U+FFFD, so widths and lengths stay. Escaping for HTML, Markdown and the like
//! is each format's own and comes after this.

use std::borrow::Cow;

/// True for characters that must not be shown: control characters (line breaks too), those that change the direction of
/// text, invisible ones, and those that XML can't hold.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
            | '\u{e0000}'..='\u{e007f}')
}

/// The text without anything that a terminal, a viewer or a CI log would act on: harmful characters, and the marks of
/// commands to the runners of GitHub (`::error::`, `##[error]`), Azure and TeamCity, become U+FFFD.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    // Nearly all names are printable ASCII without those marks.
    let is_plain = text.bytes().all(|b| matches!(b, b' '..=b'~')) && !text.contains("##") && !text.contains("::");
    if is_plain {
        return text.into();
    }
    let command = leading_command(text);
    let is_unsafe = |(at, c): (usize, char)| is_harmful(c) || Some(at) == command || is_marked(&text[at..]);
    if !text.char_indices().any(is_unsafe) {
        return text.into();
    }
    text.char_indices().map(|(at, c)| if is_unsafe((at, c)) { '\u{fffd}' } else { c }).collect()
}

/// Where a command of GitHub begins that stands at the start of a line, after blanks: `::name::`, `::name key=value::`.
/// A C++ name such as `::operator new(unsigned long)` is not one.
fn leading_command(text: &str) -> Option<usize> {
    let is_blank = |c: char| c.is_whitespace() || is_harmful(c);
    let line = text.trim_start_matches(is_blank);
    let rest = line.strip_prefix("::")?;
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'))?;
    let is_command = end > 0 && (rest[end..].starts_with(' ') || rest[end..].starts_with("::"));
    (is_command && rest.contains("::")).then_some(text.len() - line.len())
}

/// True at a command that may stand anywhere in a line: `##[error]`, `##vso[task]`, `##teamcity[x]`.
fn is_marked(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("##") else { return false };
    rest.trim_start_matches(|c: char| c.is_ascii_alphabetic()).starts_with('[')
}

#[cfg(test)]
mod tests {
    use super::sanitize;

    #[test]
    fn what_is_obeyed_is_replaced() {
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
