//! Spells options in messages as keywords. Messages of the engine that several interfaces share write some options as
//! the command does, such as `--binary`.
//!
//! `tests/keywords.rs` includes and tests this file, which therefore does not depend on Python.

use std::borrow::Cow;
use std::sync::Arc;

use pprofdiff::loading::Loading;
use pprofdiff::{Query, Summary};
use pprofdiff_explain::Explanation;

/// The options with a value in messages, such as `--normalize total`.
const WITH_VALUE: [&str; 5] = ["normalize", "input_type", "same_code", "sample_type", "name"];

/// Replaces the options of a message with keywords: `(--binary)` becomes `(binary=)`, and `use --normalize total`
/// becomes `use normalize="total"`. Words that are not options stay as they are.
pub fn keywords(text: &str) -> Cow<'_, str> {
    if !text.contains("--") {
        return Cow::Borrowed(text);
    }
    let (mut spelled, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once("--") {
        let end = after.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(after.len());
        let (name, tail) = (after[..end].replace('-', "_"), &after[end..]);
        let begins_word = spelled.len() + before.len() == 0 || before.ends_with([' ', '(']);
        spelled.push_str(before);
        rest = tail;
        if !begins_word || tail.starts_with(|c: char| c.is_alphanumeric() || "=/_".contains(c)) || !is_keyword(&name) {
            spelled.push_str("--");
            spelled.push_str(&after[..end]);
            continue;
        }
        spelled.push_str(&name);
        spelled.push('=');
        let Some(value) = tail.strip_prefix(' ').filter(|_| WITH_VALUE.contains(&&*name)) else { continue };
        // Values with blanks are quoted for the shell.
        let quoted = value.strip_prefix('\'').and_then(|value| value.split_once('\''));
        let (value, after) = match quoted {
            Some(quoted) => quoted,
            None => value.split_at(value.find([' ', ',', ';', ')']).unwrap_or(value.len())),
        };
        if !value.is_empty() {
            spelled.push_str(&format!("{value:?}"));
            rest = after;
        }
    }
    Cow::Owned(spelled + rest)
}

/// Returns the summary with the options in its warnings spelled as keywords.
pub fn in_keywords(summary: &Arc<Summary>) -> Arc<Summary> {
    if !summary.warnings.iter().any(|warning| warning.contains("--")) {
        return summary.clone();
    }
    let mut spelled = Summary::clone(summary);
    spelled.warnings.iter_mut().for_each(|warning| *warning = keywords(warning).into_owned());
    Arc::new(spelled)
}

/// Returns the explanation, with all its sample types, with the options in its warnings spelled as keywords.
pub fn explained_in_keywords(explanation: &Explanation) -> Explanation {
    let mut spelled = explanation.clone();
    spelled.summary = in_keywords(&spelled.summary);
    spelled.also = spelled.also.iter().map(explained_in_keywords).collect();
    spelled
}

fn is_keyword(name: &str) -> bool {
    let mut known = Query::options().map(|row| row.name).chain(Loading::options().map(|row| row.name));
    ["ops", "same_code", "name"].contains(&name) || known.any(|known| known == name)
}
