//! The markup of names and amounts in sentences: plain text, Markdown, HTML, or pieces for programs.

use crate::html;
use crate::markdown;
use pprofdiff::text::sanitize;
use serde_json::{Value, json};

/// Maximum number of characters of a name in a sentence, without markup.
const LONGEST_NAME: usize = 100;
/// The control character that marks the start of a name. Sanitized text contains no control characters, so the marks
/// are unambiguous.
const NAME: char = '\u{1}';
/// The control character that marks the start of an amount.
const AMOUNT: char = '\u{2}';
/// The control character that marks the end of a name or an amount.
const END: char = '\u{3}';

/// The output format of a sentence.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Markup {
    Plain,
    Markdown,
    Html,
    /// Plain text with names and amounts between control characters, for [`pieces`].
    Pieces,
}

/// Splits a sentence in [`Markup::Pieces`] into JSON objects with one key each: `name`, `amount`, or `text` for
/// everything else. Empty pieces are omitted.
pub(super) fn pieces(sentence: &str) -> Vec<Value> {
    let mut kind = "text";
    let mut all = Vec::new();
    for piece in sentence.split_inclusive([NAME, AMOUNT, END]) {
        let text = piece.trim_end_matches([NAME, AMOUNT, END]);
        if !text.is_empty() {
            all.push(json!({kind: text}));
        }
        kind = match piece.chars().next_back() {
            Some(NAME) => "name",
            Some(AMOUNT) => "amount",
            _ => "text",
        };
    }
    all
}

impl Markup {
    /// Formats a name. A name above [`LONGEST_NAME`] characters loses its middle.
    pub(super) fn name(self, text: &str) -> String {
        let text = short(text);
        match self {
            Markup::Plain => text,
            Markup::Markdown => markdown::code(&text),
            Markup::Html => format!("<code>{}</code>", html::escape(&text)),
            Markup::Pieces => format!("{NAME}{text}{END}"),
        }
    }

    /// Marks an amount that is already formatted, with its unit and, for a change, its sign.
    pub(super) fn amount(self, text: &str) -> String {
        let text = self.words(text);
        if self == Markup::Pieces { format!("{AMOUNT}{text}{END}") } else { text }
    }

    /// Formats a command in full, so that it can be copied and run.
    pub(super) fn code(self, text: &str) -> String {
        match self {
            Markup::Plain | Markup::Pieces => sanitize(text).into_owned(),
            Markup::Markdown => markdown::code(text),
            Markup::Html => format!("<code>{}</code>", html::escape(text)),
        }
    }

    /// Returns the arrow between the base and the new value.
    pub(super) fn arrow(self) -> &'static str {
        match self {
            Markup::Plain | Markup::Pieces => "->",
            Markup::Markdown | Markup::Html => "→",
        }
    }

    /// Emphasizes text that is already formatted.
    pub(super) fn strong(self, word: &str) -> String {
        match self {
            Markup::Plain | Markup::Pieces => word.to_owned(),
            Markup::Markdown => format!("**{word}**"),
            Markup::Html => format!("<b>{word}</b>"),
        }
    }

    /// Formats other text, such as units and sample types, which come from files and need escaping.
    pub(super) fn words(self, text: &str) -> String {
        match self {
            Markup::Plain | Markup::Pieces => sanitize(text).into_owned(),
            Markup::Markdown => markdown::escape(text),
            Markup::Html => html::escape(text),
        }
    }
}

/// Sanitizes a name and shortens it to [`LONGEST_NAME`] characters by replacing its middle with `…`.
fn short(text: &str) -> String {
    let text = sanitize(text);
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= LONGEST_NAME {
        return text.into_owned();
    }
    let (head, tail) = (&chars[..LONGEST_NAME / 2], &chars[chars.len() - LONGEST_NAME / 2 + 1..]);
    format!("{}…{}", head.iter().collect::<String>(), tail.iter().collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::{Markup, pieces, short};

    #[test]
    fn long_names_are_shortened() {
        assert_eq!(short("main.f"), "main.f");
        assert!(short(&"x".repeat(1000)).chars().count() <= 100);
        assert_eq!(short("a\u{1b}b").matches('\u{1b}').count(), 0);
    }

    #[test]
    fn control_characters_in_a_name_do_not_split_its_piece() {
        let mark = Markup::Pieces;
        let sentence = format!("{} costs {}!", mark.name("a\u{1}b\u{3}c"), mark.amount("+2 \u{2}s"));
        let kinds: Vec<String> =
            pieces(&sentence).iter().filter_map(|p| p.as_object()).flat_map(|piece| piece.keys().cloned()).collect();
        assert_eq!(kinds, ["name", "text", "amount", "text"]);
        assert!(pieces("").is_empty());
    }
}
