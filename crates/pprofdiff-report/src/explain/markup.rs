//! How sentences are written: plain, as Markdown, as HTML, or in pieces for programs.

use crate::html;
use crate::markdown;
use pprofdiff::text::sanitize;
use serde_json::{Value, json};

/// The longest name in a line of text.
const LONGEST_NAME: usize = 100;
/// Where a piece begins that is a name, and one that is an amount; and where either ends.
const NAME: char = '\u{1}';
const AMOUNT: char = '\u{2}';
const END: char = '\u{3}';

/// How what is said is written.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Markup {
    Plain,
    Markdown,
    Html,
    /// Names and amounts stand between control characters, of which no text has any; for [`pieces`].
    Pieces,
}

/// A sentence as a program reads it: each piece under what it is, a `name`, an `amount` or `text` between them.
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
    /// A name that fits a line: of a long one the middle is left out.
    pub(super) fn name(self, text: &str) -> String {
        let text = short(text);
        match self {
            Markup::Plain => text,
            Markup::Markdown => markdown::code(&text),
            Markup::Html => format!("<code>{}</code>", html::escape(&text)),
            Markup::Pieces => format!("{NAME}{text}{END}"),
        }
    }

    /// A value with its unit, and with its sign if it is a change.
    pub(super) fn amount(self, text: &str) -> String {
        let text = self.words(text);
        if self == Markup::Pieces { format!("{AMOUNT}{text}{END}") } else { text }
    }

    /// What may be copied and run, whole.
    pub(super) fn code(self, text: &str) -> String {
        match self {
            Markup::Plain | Markup::Pieces => sanitize(text).into_owned(),
            Markup::Markdown => markdown::code(text),
            Markup::Html => format!("<code>{}</code>", html::escape(text)),
        }
    }

    /// Between what was and what is.
    pub(super) fn arrow(self) -> &'static str {
        match self {
            Markup::Plain | Markup::Pieces => "->",
            Markup::Markdown | Markup::Html => "→",
        }
    }

    /// What leads a line; it is written already.
    pub(super) fn strong(self, word: &str) -> String {
        match self {
            Markup::Plain | Markup::Pieces => word.to_owned(),
            Markup::Markdown => format!("**{word}**"),
            Markup::Html => format!("<b>{word}</b>"),
        }
    }

    /// Words that are no name; units and sample types come from files.
    pub(super) fn words(self, text: &str) -> String {
        match self {
            Markup::Plain | Markup::Pieces => sanitize(text).into_owned(),
            Markup::Markdown => markdown::escape(text),
            Markup::Html => html::escape(text),
        }
    }
}

/// A name that fits a line of text.
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
    fn names_fit_a_line() {
        assert_eq!(short("main.f"), "main.f");
        assert!(short(&"x".repeat(1000)).chars().count() <= 100);
        assert_eq!(short("a\u{1b}b").matches('\u{1b}').count(), 0);
    }

    /// Whatever a profile calls its functions and units.
    #[test]
    fn a_name_is_one_piece() {
        let mark = Markup::Pieces;
        let said = format!("{} costs {}!", mark.name("a\u{1}b\u{3}c"), mark.amount("+2 \u{2}s"));
        let kinds: Vec<String> =
            pieces(&said).iter().filter_map(|piece| piece.as_object()).flat_map(|of| of.keys().cloned()).collect();
        assert_eq!(kinds, ["name", "text", "amount", "text"]);
        assert!(pieces("").is_empty());
    }
}
