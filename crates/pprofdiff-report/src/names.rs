//! Prepares names for pictures: replaces harmful characters, shortens, and breaks into lines.

use pprofdiff::text::sanitize;

/// Sanitizes `text` and shortens it to `max_chars` characters. A longer text keeps its beginning and its end, with `…`
/// between them.
pub(super) fn shorten(text: &str, max_chars: usize) -> String {
    let text = sanitize(text);
    let Some((cut, _)) = text.char_indices().nth(max_chars) else { return text.into_owned() };
    let ends = max_chars.saturating_sub(1);
    let head = text[..cut].char_indices().nth(ends / 2).map_or(cut, |(i, _)| i);
    let last = (ends - ends / 2).checked_sub(1).and_then(|n| text.char_indices().rev().nth(n));
    let tail = last.map_or(text.len(), |(i, _)| i);
    format!("{}…{}", &text[..head], &text[tail..])
}

/// Removes the path before a function's package, or the folders before a file's name: everything up to the last slash
/// of the text before the first bracket or space.
pub(super) fn short(name: &str) -> &str {
    // Type parameters and arguments, which follow the name, may also contain slashes.
    let end = name.find(['(', '[', '<', ' ']).filter(|&i| i > 0).unwrap_or(name.len());
    name[..end].rfind('/').map_or(name, |slash| &name[slash + 1..])
}

/// Breaks a name into lines of up to `width` characters, after dots, colons, commas, spaces and slashes. A part without
/// such a separator may be 8 characters longer before it is broken anywhere.
pub(super) fn lines(name: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut length) = (String::new(), 0);
    for part in name.split_inclusive(['.', ':', ',', ' ', '/']) {
        let part_length = part.chars().count();
        if length > 0 && length + part_length > width {
            lines.push(std::mem::take(&mut line));
            length = 0;
        }
        for c in part.chars() {
            if length == width + 8 {
                lines.push(std::mem::take(&mut line));
                length = 0;
            }
            line.push(c);
            length += 1;
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{lines, short, shorten};

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(shorten("abcdefghij", 10), "abcdefghij");
        assert_eq!(shorten("abcdefghijk", 10), "abcd…ghijk");
        assert_eq!(shorten("äöüäöüäöü", 4), "ä…öü");
        for max_chars in 1..12 {
            assert_eq!(shorten("abcdefghijklmnop", max_chars).chars().count(), max_chars);
        }
        assert_eq!(shorten("a\u{0}b\u{202e}c", 10), "a\u{fffd}b\u{fffd}c");
    }

    #[test]
    fn names_lose_the_path_of_their_package_only() {
        for (name, expected) in [
            ("logmill/names.compare", "names.compare"),
            ("slices.Sort[a/b.T]", "slices.Sort[a/b.T]"),
            ("a.b/c.F[x/y.T]", "c.F[x/y.T]"),
            ("operator/(A const&)", "(A const&)"),
            ("/usr/lib/libc.so", "libc.so"),
            ("", ""),
        ] {
            assert_eq!(short(name), expected, "{name}");
        }
    }

    #[test]
    fn lines_add_up_to_the_name() {
        for name in ["a.b.c", "runtime.(*mheap).freeSpan", &"x".repeat(100), "", "std::vector<int>::push_back"] {
            let lines = lines(name, 10);
            assert_eq!(lines.concat(), name);
            assert!(lines.iter().all(|l| l.chars().count() <= 18), "{lines:?}");
        }
    }
}
