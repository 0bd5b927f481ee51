//! Texts that a view makes up or collects: each once, and none that is out of proportion to the profiles.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Distinct texts by number. The hasher is seeded by process, and equality is by the bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interner {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    ids: HashTable<u32>,
    state: foldhash::quality::RandomState,
}

impl Interner {
    /// The number of a text; a new one if it has none yet.
    pub(crate) fn id(&mut self, text: &[u8]) -> u32 {
        let Interner { bytes, ends, ids, state } = self;
        let get = |id: u32| &bytes[start(ends, id)..ends[id as usize]];
        match ids.entry(state.hash_one(text), |&id| get(id) == text, |&id| state.hash_one(get(id))) {
            Entry::Occupied(e) => *e.get(),
            Entry::Vacant(e) => {
                let id = ends.len() as u32;
                e.insert(id);
                bytes.extend_from_slice(text);
                ends.push(bytes.len());
                id
            }
        }
    }

    pub(crate) fn get(&self, id: u32) -> &[u8] {
        &self.bytes[start(&self.ends, id)..self.ends[id as usize]]
    }
}

fn start(ends: &[usize], id: u32) -> usize {
    id.checked_sub(1).map_or(0, |before| ends[before as usize])
}

/// Texts up to this length are never shortened.
const SHORT_ENOUGH: usize = 256;

/// What is put together of a profile's texts repeats those that it has once: a few hundred kilobytes could stand for
/// gigabytes. So all of it has at most twice the bytes of the profiles and 32 MiB, or texts from some length on lose their
/// middle. Given the profiles' bytes, the bytes of all texts and their number: the most bytes that each may keep.
pub(crate) fn longest(profiles: usize, all: usize, n: usize) -> usize {
    let most = profiles.saturating_mul(2).saturating_add(32 << 20);
    if all <= most { usize::MAX } else { (most / n.max(1)).max(SHORT_ENOUGH) }
}

/// A text for display, of at most so many bytes: of a longer one the ends, and its number, so that different texts stay
/// different.
pub(crate) fn shortened(text: &[u8], most: usize, number: u32) -> String {
    if text.len() <= most {
        return String::from_utf8_lossy(text).into_owned();
    }
    let ends = most.saturating_sub(48) / 2;
    let [head, tail] = [&text[..ends], &text[text.len() - ends..]].map(String::from_utf8_lossy);
    // A character that is cut in two is left out.
    let (head, tail) = (head.trim_end_matches('\u{fffd}'), tail.trim_start_matches('\u{fffd}'));
    format!("{head}…({} bytes, text {number})…{tail}", text.len())
}

#[cfg(test)]
mod tests {
    use super::{Interner, shortened};

    #[test]
    fn texts_have_one_number_each() {
        let mut texts = Interner::default();
        let ids: Vec<u32> = [&b""[..], b"a", b"", b"ab", b"a"].map(|t| texts.id(t)).to_vec();
        assert_eq!(ids, [0, 1, 0, 2, 1]);
        assert_eq!([0, 1, 2].map(|i| texts.get(i)), [&b""[..], b"a", b"ab"]);
    }

    #[test]
    fn shortened_texts_stay_different_and_whole_characters() {
        let text = "ä".repeat(1000);
        let short = shortened(text.as_bytes(), 257, 7);
        assert!(short.len() <= 257 && short.contains("2000 bytes, text 7") && !short.contains('\u{fffd}'), "{short}");
        assert_ne!(short, shortened(text.as_bytes(), 257, 8));
        assert_eq!(shortened(text.as_bytes(), 2000, 7), text);
    }
}
