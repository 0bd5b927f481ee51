//! Texts that mention options. Each interface has its own spelling for an option: `--base-time ..AT` in the command,
//! `base_time="..AT"` in Python. A neutral text has the name between backticks, with or without a value. Two backticks
//! stand for one in the output.

use std::ops::Range;

/// Removes the backticks of a text. Returns the text, and the ranges of the mentions in it.
pub(crate) fn plain(text: &str) -> (String, Vec<Range<usize>>) {
    let mut plain = String::with_capacity(text.len());
    let mut mentions = Vec::new();
    let (mut rest, mut start) = (text, None);
    while let Some((before, after)) = rest.split_once('`') {
        plain.push_str(before);
        rest = match (after.strip_prefix('`'), start.take()) {
            (Some(after), open) => {
                plain.push('`');
                start = open;
                after
            }
            (None, Some(start)) => {
                mentions.push(start..plain.len());
                after
            }
            (None, None) => {
                start = Some(plain.len());
                after
            }
        };
    }
    (plain + rest, mentions)
}

/// Replaces each mention in a text. `spelling` gets the name of the option, and its value if the text has one.
pub(crate) fn replace(
    text: &str,
    mentions: &[Range<usize>],
    spelling: impl Fn(&str, Option<&str>) -> String,
) -> String {
    let mut spelled = String::with_capacity(text.len());
    let mut end = 0;
    for mention in mentions {
        let option = &text[mention.clone()];
        spelled.push_str(&text[end..mention.start]);
        spelled.push_str(&match option.split_once('=') {
            Some((name, value)) => spelling(name, Some(value)),
            None => spelling(option, None),
        });
        end = mention.end;
    }
    spelled + &text[end..]
}

/// Replaces each option in a neutral text by its spelling: `` `sort=cum` `` calls `spelling("sort", Some("cum"))`.
pub fn spell(text: &str, spelling: impl Fn(&str, Option<&str>) -> String) -> String {
    let (text, mentions) = plain(text);
    replace(&text, &mentions, spelling)
}

#[cfg(test)]
mod tests {
    use super::spell;

    #[test]
    fn options_are_spelled_with_and_without_values() {
        let spelling = |name: &str, value: Option<&str>| match value {
            Some(value) => format!("--{name} {value}"),
            None => format!("--{name}"),
        };
        let text = "`split_at` is short for `base_time=..AT`; a=b and ``list`` stay";
        assert_eq!(spell(text, spelling), "--split_at is short for --base_time ..AT; a=b and `list` stay");
        assert_eq!(spell("no option", spelling), "no option");
    }
}
