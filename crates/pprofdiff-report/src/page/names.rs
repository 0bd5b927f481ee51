//! The names that a page shows: each once, and nothing in them that people can't see.

use std::borrow::Cow;
use std::fmt::Write;
use std::hash::BuildHasher;

use pprofdiff::Frames;
use pprofdiff::random::{HashMap, HashSet, RandomState};
use pprofdiff::text::{is_harmful, sanitize};

/// Bytes of a name that the page has at most; longer ones are machines talking to machines.
const LONGEST_NAME: usize = 16 << 10;
/// From so many bytes of names on, a name has less of them.
const MANY_NAMES: usize = 4 << 20;
const SHORT_NAME: usize = 256;

/// The frames of all views of a page, each once. Frames are interned from the profiles' tables, whatever the sample type,
/// so one frame has one number in all views of one diff; those of several diffs are the same by their names.
#[derive(Default)]
pub(super) struct Names {
    /// Of the diff that is looked at.
    ids: HashMap<u32, u64>,
    pub(super) texts: Vec<String>,
    bytes: usize,
    /// By label, file and mapping, of all diffs, which are long: two hashes with random keys stand for them. A diff that has
    /// two of the same has a second number for it.
    known: HashMap<[u64; 2], u64>,
    hashers: [RandomState; 2],
    /// Which of them the diff that is looked at has.
    taken: HashSet<u64>,
}

impl Names {
    /// What follows is of another diff.
    pub(super) fn of_next_diff(&mut self) {
        self.ids.clear();
        self.taken.clear();
    }

    pub(super) fn id(&mut self, frames: &Frames, frame: u32) -> u64 {
        if let Some(&id) = self.ids.get(&frame) {
            return id;
        }
        let label = frames.label(frame);
        let key = self.hashers.each_ref().map(|h| h.hash_one((&label, frames.file(frame), frames.mapping(frame))));
        let id = match self.known.get(&key) {
            Some(&id) if self.taken.insert(id) => id,
            _ => {
                let most = if self.bytes < MANY_NAMES { LONGEST_NAME } else { SHORT_NAME };
                let name = visible_to(&label, most).into_owned();
                self.bytes += name.len();
                self.texts.push(name);
                let id = self.texts.len() as u64 - 1;
                self.known.entry(key).or_insert(id);
                self.taken.insert(id);
                id
            }
        };
        self.ids.insert(frame, id);
        id
    }
}

/// Text as it can be shown to people and nothing else: what is harmful is spelled out; too long a name is cut.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    visible_to(text, LONGEST_NAME)
}

fn visible_to(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most && !text.contains(is_harmful) {
        return sanitize(text);
    }
    let mut out = String::with_capacity(text.len().min(most));
    for (at, c) in text.char_indices() {
        if at >= most {
            let _ = write!(out, "… ({} bytes)", text.len());
            break;
        }
        match c {
            c if is_harmful(c) => {
                let _ = write!(out, "⟨U+{:04X}⟩", c as u32);
            }
            c => out.push(c),
        }
    }
    sanitize(&out).into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn what_is_not_seen_is_spelled_out() {
        assert_eq!(visible("a\0b\u{202e}c\u{7f}\u{85}"), "a⟨U+0000⟩b⟨U+202E⟩c⟨U+007F⟩⟨U+0085⟩");
        assert_eq!(visible("naïve→ 名前"), "naïve→ 名前");
        assert_eq!(visible(&"é".repeat(10_000)).chars().count(), 8192 + "… (20000 bytes)".chars().count());
    }
}
