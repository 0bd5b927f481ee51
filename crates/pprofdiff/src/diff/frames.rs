//! Interns frames: every distinct frame of both sides gets one dense index, so that sums by frame are arrays.
//!
//! Interning takes two steps, so that profiles can be processed in parallel. [`InputFrames`] interns the frames of one
//! profile, and [`Frames::merge`] merges the frames of all profiles by content.
//!
//! Strings are interned first, by their bytes, so that a string that occurs twice in a table gets one number. Frames
//! are then interned by the numbers of their strings, their line and their address. No string is hashed more than once,
//! however many functions or lines share it, so crafted profiles cost no more than others. Texts are references into
//! the profiles' buffers. Only text that a view creates (cleaned paths, label values) is stored here.

mod input;

use std::cmp::Ordering;
use std::hash::BuildHasher;
use std::sync::Arc;

use regex::bytes::Regex;
use serde::{Deserialize, Serialize};

use super::identity::Granularity;
use super::texts;
use crate::{Error, ErrorKind, Result};
pub use input::{Innermost, InputFrames};
use pprofdiff_profile::Profile;
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::columns::{NONE, StringId};
use pprofdiff_profile::interner::{Found, Index, Interner};
use pprofdiff_profile::random::{FastState, HashMap, HashSet};

/// The hasher of frames and texts. All inputs of a view share it, so that their hashes can be compared. It is seeded
/// once per process.
pub type State = FastState;

/// A reference to a part of a profile's buffer, or of the bytes that the table itself stores.
#[derive(Debug, Clone, Copy)]
struct TextRef {
    hash: u64,
    is_stored: bool,
    start: u32,
    len: u32,
}

/// The number of the empty text. It is the first text of every profile, so it is also the first of all profiles
/// together.
const EMPTY: u32 = 0;

/// The content of a frame: the numbers of its texts, its line and its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FrameContent {
    name: u32,
    file: u32,
    mapping: u32,
    line: i64,
    address: u64,
}

impl FrameContent {
    /// Returns true if only the name distinguishes the frame, as at granularity functions.
    #[inline]
    fn is_only_name(&self) -> bool {
        (self.file, self.mapping, self.line, self.address) == (EMPTY, EMPTY, 0, 0)
    }
}

/// Distinct frames by number. A frame that has only a name is looked up by the number of its name. Other frames are
/// hashed.
struct FrameTable {
    frames: Interner<FrameContent, State>,
    /// For each text, the number of the frame that has only this name, or [`NONE`].
    by_name: Vec<u32>,
}

impl FrameTable {
    /// Creates a table with room for one frame per text.
    fn with_capacity(texts: usize, state: State) -> FrameTable {
        let mut frames = Interner::with_capacity(0, state);
        frames.values.reserve(texts);
        FrameTable { frames, by_name: Vec::with_capacity(texts) }
    }

    #[inline]
    fn number(&mut self, frame: FrameContent) -> u32 {
        if !frame.is_only_name() {
            return self.frames.number(frame);
        }
        let name = frame.name as usize;
        if name >= self.by_name.len() {
            self.by_name.resize(name + 1, NONE);
        }
        let number = &mut self.by_name[name];
        if *number == NONE {
            *number = self.frames.push(frame);
        }
        *number
    }
}

/// The distinct texts of one profile's frames, or of profiles that are no longer in memory.
#[derive(Default)]
struct TextTable {
    profile: Option<Arc<Profile>>,
    stored: Vec<u8>,
    texts: Vec<TextRef>,
}

impl TextTable {
    fn get(&self, text: u32) -> &[u8] {
        let t = self.texts[text as usize];
        let buffer = match &self.profile {
            Some(profile) if !t.is_stored => profile.buffer(),
            _ => &self.stored,
        };
        &buffer[t.start as usize..][..t.len as usize]
    }
}

/// Interns texts and frames by content. Each is stored once and has a number.
struct ContentInterner {
    state: State,
    texts: TextTable,
    text_index: Index,
    frames: FrameTable,
}

impl ContentInterner {
    /// Reserves room for `texts` texts and the empty text, because one more text would double a full list.
    fn new(profile: Option<Arc<Profile>>, texts: usize, state: State) -> ContentInterner {
        let frames = FrameTable::with_capacity(texts, state.clone());
        let text_index = Index::with_capacity(texts);
        let texts = TextTable { profile, stored: Vec::new(), texts: Vec::with_capacity(texts + 1) };
        let mut interner = ContentInterner { state, texts, text_index, frames };
        interner.text(b"");
        interner
    }

    fn text(&mut self, bytes: &[u8]) -> u32 {
        let hash = self.state.hash_one(bytes);
        let texts = &self.texts;
        let same = |n: u32| texts.texts[n as usize].hash == hash && texts.get(n) == bytes;
        let hash_of = |n: u32| texts.texts[n as usize].hash;
        let entry = self.text_index.find_or_insert(hash, texts.texts.len(), same, hash_of);
        if let Found::New(_) = entry {
            let text = self.texts.place(hash, bytes);
            self.texts.texts.push(text);
        }
        entry.number()
    }
}

impl TextTable {
    /// Returns a reference to bytes in the profile's buffer. Bytes from elsewhere are copied into the table first.
    fn place(&mut self, hash: u64, bytes: &[u8]) -> TextRef {
        let len = bytes.len() as u32;
        if let Some(profile) = &self.profile {
            let (buffer, start) = (profile.buffer().as_ptr_range(), bytes.as_ptr());
            if !bytes.is_empty() && buffer.contains(&start) {
                return TextRef { hash, is_stored: false, start: (start as usize - buffer.start as usize) as u32, len };
            }
        }
        let start = self.stored.len() as u32;
        self.stored.extend_from_slice(bytes);
        TextRef { hash, is_stored: true, start, len }
    }
}

/// Collects the frames of profiles that are not kept in memory. Texts are copied once, however many profiles have them.
pub struct FrameInterner {
    interner: ContentInterner,
    granularity: Granularity,
}

impl std::fmt::Debug for FrameInterner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameInterner").finish_non_exhaustive()
    }
}

impl FrameInterner {
    #[doc(hidden)]
    pub fn new(granularity: Granularity) -> FrameInterner {
        FrameInterner { interner: ContentInterner::new(None, 0, State::default()), granularity }
    }

    /// Adds frames of a view or of another interner, and returns their numbers in this interner.
    ///
    /// # Errors
    /// Fails if the names exceed 4 GiB.
    #[doc(hidden)]
    pub fn add(&mut self, frames: &Frames, ids: impl Iterator<Item = u32>) -> Result<Vec<u32>> {
        // The numbers of the texts, by their number in `frames`. A text that many frames share is hashed once.
        let mut text_numbers = vec![NONE; frames.texts.len()];
        let mut text = |id: u32| {
            if text_numbers[id as usize] == NONE {
                let bytes = frames.text(id);
                if u32::try_from(self.interner.texts.stored.len() + bytes.len()).is_err() {
                    let detail = "the names of the frames of all profiles together are larger than 4 GiB";
                    return Err(Error::new(ErrorKind::Limit, detail));
                }
                text_numbers[id as usize] = self.interner.text(bytes);
            }
            Ok(text_numbers[id as usize])
        };
        let mut contents = Vec::with_capacity(ids.size_hint().0);
        for id in ids {
            let f = frames.frames[id as usize];
            contents.push(FrameContent { name: text(f.name)?, file: text(f.file)?, mapping: text(f.mapping)?, ..f });
        }
        Ok(contents.into_iter().map(|f| self.interner.frames.number(f)).collect())
    }

    /// Adds a function by its name and its binary, and returns its number.
    #[doc(hidden)]
    pub fn add_function(&mut self, name: &[u8], binary: &[u8]) -> u32 {
        let [name, mapping] = [name, binary].map(|text| self.interner.text(text));
        self.interner.frames.number(FrameContent { name, file: EMPTY, mapping, line: 0, address: 0 })
    }

    /// Returns all frames that were added.
    #[doc(hidden)]
    pub fn frames(self) -> Frames {
        let ContentInterner { texts, frames, .. } = self.interner;
        let numbered = (0..texts.texts.len() as u32).map(|i| (0, i)).collect();
        let only = InputFrames {
            texts,
            frames: Vec::new(),
            len: 0,
            first: Vec::new(),
            expanded: Vec::new(),
            matched: (0, None),
        };
        let mut frames = Frames {
            inputs: vec![only],
            texts: numbered,
            frames: frames.frames.values,
            granularity: self.granularity,
            longest_text: usize::MAX,
        };
        frames.limit_labels();
        frames
    }
}

impl Frames {
    /// Returns the name of a frame at granularity functions, and the file of its binary if it has no name.
    #[doc(hidden)]
    pub fn function(&self, frame: u32) -> [&[u8]; 2] {
        let frame = self.frames[frame as usize];
        [frame.name, frame.mapping].map(|text| self.text(text))
    }

    /// Returns true if all frames are functions, as [`FrameInterner::add_function`] adds them.
    #[doc(hidden)]
    pub fn are_functions(&self) -> bool {
        let is_function = |f: &FrameContent| (f.file, f.line, f.address) == (EMPTY, 0, 0);
        self.granularity == Granularity::Functions && self.frames.iter().all(is_function)
    }
}

/// All distinct frames of a view, with the profiles that hold their names.
pub struct Frames {
    inputs: Vec<InputFrames>,
    /// The place of each distinct text: the number of the input, and the text's number in that input.
    texts: Vec<(u32, u32)>,
    /// The frames. Their texts are numbered as in `texts`.
    frames: Vec<FrameContent>,
    granularity: Granularity,
    /// The maximum length in bytes of a text in a label. Longer texts lose their middle.
    longest_text: usize,
}

impl std::fmt::Debug for Frames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frames").field("len", &self.frames.len()).finish_non_exhaustive()
    }
}

/// The serialized form of frames: distinct texts, then for each frame the numbers of its name, file and mapping, its
/// line and its address.
#[derive(Serialize, Deserialize)]
struct StoredFrames {
    granularity: Granularity,
    texts: Vec<Vec<u8>>,
    frames: Vec<(u32, u32, u32, i64, u64)>,
}

impl Serialize for Frames {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let texts = (0..self.texts.len() as u32).map(|id| self.text(id).to_vec()).collect();
        let frames = self.frames.iter().map(|f| (f.name, f.file, f.mapping, f.line, f.address)).collect();
        StoredFrames { granularity: self.granularity, texts, frames }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Frames {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Frames, D::Error> {
        let stored = StoredFrames::deserialize(deserializer)?;
        let n = stored.texts.len();
        if stored.frames.iter().any(|&(name, file, mapping, ..)| [name, file, mapping].iter().any(|&t| t as usize >= n))
        {
            return Err(serde::de::Error::custom("a frame refers to a text that does not exist"));
        }
        // The start of a text is stored in 32 bits.
        if u32::try_from(stored.texts.iter().map(Vec::len).sum::<usize>()).is_err() {
            return Err(serde::de::Error::custom("the names of the frames are larger than 4 GiB"));
        }
        let mut interner = ContentInterner::new(None, 0, State::default());
        for (i, bytes) in stored.texts.iter().enumerate() {
            if interner.text(bytes) as usize != i {
                return Err(serde::de::Error::custom("a text occurs twice, or the first text is not empty"));
            }
        }
        for &(name, file, mapping, line, address) in &stored.frames {
            interner.frames.number(FrameContent { name, file, mapping, line, address });
        }
        let frames = FrameInterner { interner, granularity: stored.granularity }.frames();
        if frames.texts.len() != n || frames.len() != stored.frames.len() {
            return Err(serde::de::Error::custom("a text or a frame occurs twice"));
        }
        Ok(frames)
    }
}

impl Frames {
    /// Merges the inputs' frames. Also returns, for each input, the map from its own indexes to the common indexes.
    pub(crate) fn merge(
        mut inputs: Vec<InputFrames>,
        granularity: Granularity,
        state: &State,
    ) -> (Frames, Vec<Vec<u32>>) {
        // After this, an input's own frames are only referenced by number.
        let input_frames: Vec<Vec<FrameContent>> =
            inputs.iter_mut().map(|input| std::mem::take(&mut input.frames)).collect();
        // Usually, the sides share most of their texts.
        let room = inputs.iter().map(|input| input.texts.texts.len()).max().unwrap_or(0);
        let mut text_index = Index::with_capacity(room + room / 8);
        let mut texts: Vec<(u32, u32)> = Vec::with_capacity(room + room / 8);
        let mut frames = FrameTable::with_capacity(room + room / 8, state.clone());
        let mut translations = Vec::with_capacity(inputs.len());
        let bytes = |(m, i): (u32, u32)| inputs[m as usize].texts.get(i);
        let hash_of = |(m, i): (u32, u32)| inputs[m as usize].texts.texts[i as usize].hash;
        for ((m, input), input_frames) in inputs.iter().enumerate().zip(input_frames) {
            let mut common = Vec::with_capacity(input.texts.texts.len());
            for i in checkpointed(0..input.texts.texts.len() as u32) {
                let place = (m as u32, i);
                let hash = hash_of(place);
                let same = |n: u32| {
                    let other = texts[n as usize];
                    hash_of(other) == hash && bytes(other) == bytes(place)
                };
                let entry = text_index.find_or_insert(hash, texts.len(), same, |n| hash_of(texts[n as usize]));
                if let Found::New(_) = entry {
                    texts.push(place);
                }
                common.push(entry.number());
            }
            let text = |id: u32| common[id as usize];
            let mut translation = Vec::with_capacity(input.len());
            for f in checkpointed(&input_frames) {
                let frame = FrameContent { name: text(f.name), file: text(f.file), mapping: text(f.mapping), ..*f };
                translation.push(frames.number(frame));
            }
            translations.push(translation);
        }
        // The lists grew by doubling, and they live as long as the selection.
        let mut frames = frames.frames.values;
        frames.shrink_to_fit();
        texts.shrink_to_fit();
        let mut frames = Frames { inputs, texts, frames, granularity, longest_text: usize::MAX };
        frames.limit_labels();
        (frames, translations)
    }

    fn limit_labels(&mut self) {
        // If the profiles are not kept, only the texts count.
        let size = |texts: &TextTable| texts.profile.as_ref().map_or(texts.stored.len(), |p| p.inflated_size());
        let profiles = self.inputs.iter().map(|m| size(&m.texts)).sum();
        let lengths = self.frames.iter().flat_map(|f| [f.name, f.file, f.mapping]).map(|text| self.text(text).len());
        self.longest_text = texts::longest(profiles, lengths.fold(0, usize::saturating_add), 3 * self.frames.len());
    }

    /// Returns a warning if labels are shortened.
    pub(crate) fn warning(&self) -> Option<String> {
        let max_len = self.longest_text;
        (max_len != usize::MAX).then(|| {
            format!(
                "many frames share very long texts; in one-line labels of frames, texts of more than {max_len} bytes lose their middle"
            )
        })
    }

    pub(crate) fn input(&self, index: usize) -> &InputFrames {
        &self.inputs[index]
    }

    fn text(&self, id: u32) -> &[u8] {
        let (m, i) = self.texts[id as usize];
        self.inputs[m as usize].texts.get(i)
    }

    /// Returns the number of distinct frames. Some frames have no row in a view, because no sample contains them.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns true if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns the granularity of the frames.
    pub fn granularity(&self) -> Granularity {
        self.granularity
    }

    /// Returns the display name of a frame: its function, or its file if it has no function name, as at granularity
    /// `files`. A frame with neither is shown as the binary in brackets, or as `<unknown>`.
    pub fn name(&self, frame: u32) -> String {
        let f = &self.frames[frame as usize];
        let (name, file, mapping) = (self.text(f.name), self.text(f.file), self.text(f.mapping));
        if !name.is_empty() {
            return lossy(name);
        }
        if !file.is_empty() || f.line != 0 {
            return lossy(file);
        }
        if mapping.is_empty() {
            return "<unknown>".to_owned();
        }
        format!("[{}]", lossy(binary(mapping)))
    }

    /// Returns the key that sorts rows with equal values: name, then file, then line, then address.
    #[doc(hidden)]
    pub fn order(&self, frame: u32) -> impl Ord + '_ {
        let f = &self.frames[frame as usize];
        let text = |id: u32| Ordered { id, bytes: self.text(id) };
        (text(f.name), text(f.file), f.line, f.address, text(f.mapping))
    }

    /// Returns the bytes of a frame's name, empty for a frame without a name.
    #[cfg(feature = "list")]
    pub(crate) fn name_bytes(&self, frame: u32) -> &[u8] {
        self.text(self.frames[frame as usize].name)
    }

    /// Returns the file's path, if the granularity includes files and the profile records it.
    pub fn file(&self, frame: u32) -> Option<String> {
        some_text(self.text(self.frames[frame as usize].file))
    }

    /// Returns the line number, if the granularity includes lines and the profile records it.
    pub fn line(&self, frame: u32) -> Option<i64> {
        Some(self.frames[frame as usize].line).filter(|&line| line != 0)
    }

    /// Returns the address, at granularity `addresses`. Returns `None` for an address of 0.
    pub fn address(&self, frame: u32) -> Option<u64> {
        Some(self.frames[frame as usize].address).filter(|&address| address != 0)
    }

    /// Returns the file of the mapped binary, for a frame without a name and without a file.
    pub fn mapping(&self, frame: u32) -> Option<String> {
        some_text(self.text(self.frames[frame as usize].mapping))
    }

    /// Returns true if an expression of a view matches the frame's label, or the function's name alone: at granularity
    /// `lines`, the label of `main.parse` ends with its file and line, and `parse$` is meant for the function.
    pub(crate) fn is_match(&self, regex: &Regex, frame: u32) -> bool {
        let has_place = matches!(self.granularity, Granularity::Lines | Granularity::Addresses);
        regex.is_match(self.label(frame).as_bytes()) || has_place && regex.is_match(self.name(frame).as_bytes())
    }

    /// Returns the frame on one line in pprof's format: `address name file:line`. If many frames share very long texts,
    /// these texts lose their middle, and the view warns about it.
    pub fn label(&self, frame: u32) -> String {
        let f = &self.frames[frame as usize];
        let [name, file] = [f.name, f.file].map(|id| self.short(id));
        let mut parts = Vec::with_capacity(3);
        if f.address != 0 {
            parts.push(format!("{:016x}", f.address));
        }
        let has_name = !name.is_empty();
        if has_name {
            parts.push(name);
        }
        if f.line != 0 {
            parts.push(format!("{file}:{}", f.line));
        } else if !file.is_empty() {
            parts.push(file);
        } else if !has_name {
            let mapping = self.text(f.mapping);
            parts.push(match mapping.is_empty() {
                true => self.name(frame),
                false => format!("[{}]", texts::shortened(binary(mapping), self.longest_text, f.mapping)),
            });
        }
        parts.join(" ")
    }

    /// Returns the names of functions that are only defined in files of libraries. Frames at granularity functions have
    /// no file, so this reads the function tables of the profiles. It costs nothing unless a profile has a file of a
    /// library.
    pub(crate) fn library_functions(&self, is_library: impl Fn(&str) -> bool) -> HashSet<&[u8]> {
        let mut only_libraries: HashMap<&[u8], bool> = HashMap::default();
        for profile in self.inputs.iter().filter_map(|input| input.texts.profile.as_deref()) {
            let functions = profile.functions();
            let mut files: HashMap<StringId, bool> = HashMap::default();
            functions.file.iter().for_each(|&file| {
                files.entry(file).or_insert_with(|| is_library(&profile.text(file)));
            });
            if !files.values().any(|is_library| *is_library) {
                continue;
            }
            for (&name, file) in checkpointed(functions.name.iter().zip(&functions.file)) {
                *only_libraries.entry(profile.string(name)).or_insert(true) &= files[file];
            }
        }
        only_libraries.into_iter().filter(|(_, is_library)| *is_library).map(|(name, _)| name).collect()
    }

    /// Returns the numbers of the texts of a frame's name and file.
    pub(crate) fn texts_of(&self, frame: u32) -> (u32, u32) {
        let f = &self.frames[frame as usize];
        (f.name, f.file)
    }

    /// Returns a text by its number, shortened as in [`Frames::label`].
    pub(crate) fn short(&self, text: u32) -> String {
        texts::shortened(self.text(text), self.longest_text, text)
    }
}

/// Returns the last part of a binary's path.
fn binary(mapping: &[u8]) -> &[u8] {
    mapping.rsplit(|&b| b == b'/').find(|part| !part.is_empty()).unwrap_or(b"/")
}

/// A text that compares equal by its number. This avoids comparing bytes if a million frames share a text of a
/// megabyte.
struct Ordered<'a> {
    id: u32,
    bytes: &'a [u8],
}

impl Ord for Ordered<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.id == other.id { Ordering::Equal } else { self.bytes.cmp(other.bytes) }
    }
}

impl PartialOrd for Ordered<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ordered<'_> {
    fn eq(&self, other: &Self) -> bool {
        // Distinct texts have distinct numbers.
        self.id == other.id
    }
}

impl Eq for Ordered<'_> {}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn some_text(bytes: &[u8]) -> Option<String> {
    (!bytes.is_empty()).then(|| lossy(bytes))
}
