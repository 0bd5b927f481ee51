//! Finds names that resemble a mistyped name: functions of a profile, and verbs of the command.

/// The maximum number of names to suggest.
const MAX_NAMES: usize = 3;
/// Names above this length are ignored, because generated names can have thousands of characters.
const MAX_BYTES: usize = 200;

/// Returns up to three names that resemble `text`, the most similar ones first. Case and all characters except letters
/// and digits are ignored. Consecutive words of a name are enough: `tableinsensitve` resembles
/// `headers.tableInsensitive`.
pub fn similar_names<S: AsRef<str> + Ord>(text: &str, names: impl Iterator<Item = S>) -> Vec<S> {
    let text: String = letters(text);
    let near = names.filter_map(|name| Some((edits(&text, name.as_ref())?, name.as_ref().len(), name)));
    let mut near: Vec<_> = near.collect();
    near.sort_unstable();
    near.into_iter().map(|(_, _, name)| name).take(MAX_NAMES).collect()
}

/// Returns the letters and digits in lower case.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns the minimum number of edits between `text` and consecutive words of `name`. `None` if all words differ by
/// too many edits.
fn edits(text: &str, name: &str) -> Option<usize> {
    if text.is_empty() || name.len() > MAX_BYTES {
        return None;
    }
    let words: Vec<String> = words(name).into_iter().map(letters).collect();
    let mut fewest = None;
    for first in 0..words.len() {
        let mut part = String::new();
        for word in &words[first..] {
            part += word;
            let max = max_edits(&part);
            // Longer parts differ even more: a further word adds at least as many letters as allowed edits.
            if part.len() > text.len() + max {
                break;
            }
            let distance = if part.len() + max < text.len() { usize::MAX } else { strsim::osa_distance(&part, text) };
            if distance <= fewest.unwrap_or(max).min(max) {
                fewest = Some(distance);
            }
        }
    }
    fewest
}

/// Returns the maximum number of edits between a mistyped word and the word.
fn max_edits(word: &str) -> usize {
    match word.len() {
        0..3 => 0,
        3..5 => 1,
        5..12 => 2,
        len => len / 4,
    }
}

/// Splits a name at characters that are neither letters nor digits, and before each upper case letter that follows a
/// lower case letter.
fn words(name: &str) -> Vec<&str> {
    let is_start = |(before, c): (char, char)| c.is_uppercase() && before.is_lowercase();
    let parts = name.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    parts
        .flat_map(|part| {
            let pairs = part.char_indices().zip(part.chars().skip(1));
            let starts = pairs.filter(|((_, before), c)| is_start((*before, *c))).map(|((i, c), _)| i + c.len_utf8());
            let ends: Vec<usize> = starts.chain([part.len()]).collect();
            ends.into_iter().scan(0, |start, end| Some(&part[std::mem::replace(start, end)..end])).collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{similar_names, words};

    #[test]
    fn names_with_few_edits_are_similar() {
        let names = ["shop.(*Store).Get", "logmill/headers.tableInsensitive", "main.parseHTTP2Header", "a.b", "top"];
        for (text, expected) in [
            ("tableinsensitve$", &names[1..2]),
            ("Headers.tableInsensitiv", &names[1..2]),
            ("prase", &names[2..3]),
            ("parseHttp2Haeder", &names[2..3]),
            ("Store.Gt", &names[..1]),
            ("tpo", &names[4..]),
            ("no such frame", &[]),
            ("c", &[]),
            ("...", &[]),
            ("", &[]),
        ] {
            assert_eq!(similar_names(text, names.into_iter()), expected, "{text}");
        }
        let long = format!("prase{}", "x".repeat(200));
        assert_eq!(
            similar_names("prase", ["parses", "x.parse", "parse", "prises", &long].into_iter()),
            ["parse", "x.parse", "parses"]
        );
    }

    #[test]
    fn names_consist_of_words() {
        assert_eq!(words("a/b.(*T).parseHTTP2Äther::ö<x>"), ["a", "b", "T", "parse", "HTTP2Äther", "ö", "x"]);
        assert_eq!(words("parseÄther"), ["parse", "Äther"]);
    }
}
