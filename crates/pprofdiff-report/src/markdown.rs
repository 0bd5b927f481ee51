//! Text in Markdown: escapes, and names as code.

use pprofdiff::text::sanitize;

/// Sanitizes text and escapes it for Markdown: Markdown's special characters and HTML's brackets become literal, and
/// GitHub does not turn parts of the text into mentions or links to issues, commits or addresses.
pub(crate) fn escape(text: &str) -> String {
    unlinked(&literal(text), true)
}

/// Inserts a zero-width space into each part of a text that GitHub would link. GitHub looks for links after it has
/// resolved backslashes and entities, so escaping does not help (github/cmark-gfm#181). `has_references` is false in a
/// `<code>` tag: there GitHub links addresses, but no mentions, issues or commits.
fn unlinked(text: &str, has_references: bool) -> String {
    let bytes = text.as_bytes();
    let is_word = |offset: usize| bytes.get(offset).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let starts = |offset: usize, sign: &str| {
        bytes.get(offset..offset + sign.len()).is_some_and(|part| part.eq_ignore_ascii_case(sign.as_bytes()))
    };
    let mut out = String::with_capacity(text.len());
    let mut commit = 0..0;
    for (offset, c) in text.char_indices() {
        if c.is_ascii_hexdigit() && (offset == 0 || !is_word(offset - 1)) {
            let digits = bytes[offset..].iter().take_while(|b| b.is_ascii_hexdigit()).count();
            let has_letter = bytes[offset..offset + digits].iter().any(u8::is_ascii_alphabetic);
            let is_commit = (COMMIT_DIGITS..=40).contains(&digits) && (has_letter || digits == 40);
            commit = offset..if is_commit && !is_word(offset + digits) { offset + digits } else { offset };
        }
        let is_address = c == '@' || starts(offset, "://") || offset >= 2 && starts(offset - 2, "www.");
        let is_reference = c == '#' || offset >= 2 && starts(offset - 2, "gh-");
        let is_long = commit.contains(&(offset + 1)) && (offset + 1 - commit.start) % (COMMIT_DIGITS - 1) == 0;
        out.push(c);
        if is_address || has_references && (is_reference || is_long) {
            out.push_str("&#8203;");
        }
    }
    out
}

/// The minimum number of hexadecimal digits that GitHub links as a commit.
const COMMIT_DIGITS: usize = 7;

/// Sanitizes text and escapes Markdown's special characters and HTML's brackets.
fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in sanitize(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '~' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

/// Formats a name as code, where GitHub links nothing. A backquote would end the code, and a pipe would end a table
/// cell, so names with either are wrapped in an HTML tag instead. Markdown is still interpreted inside that tag, so
/// the name is escaped.
pub(crate) fn code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let text = sanitize(text);
    if text.contains(['`', '|']) {
        return format!("<code>{}</code>", unlinked(&literal(&text), false));
    }
    format!("`{text}`")
}
