//! Frames, interned: every distinct frame of both sides has one dense index, so that sums are arrays.
//!
//! In two steps, so that the profiles need not wait for each other: [`InputFrames`] interns the
//! frames of one profile, and [`Frames::merge`] brings them together by content.
//!
//! Each level is interned once and is a number for the next: strings (by their bytes, so that a
//! string that occurs twice in a table is one), then frames (by their strings' numbers, line and
//! address). So no string is hashed more than once however many functions or lines share it, which
//! keeps crafted profiles as cheap as others. Texts are references into the profiles' buffers; only
//! what a view makes up (cleaned paths, label values) is stored here.

mod input;

use std::cmp::Ordering;
use std::hash::BuildHasher;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::identity::Granularity;
use super::texts;
use crate::{Error, ErrorKind, Result};
pub(crate) use input::{Innermost, InputFrames};
use pprofdiff_profile::Profile;
use pprofdiff_profile::columns::{NONE, StringId};
use pprofdiff_profile::interner::{Found, Index, Interner};
use pprofdiff_profile::random::{FastState, HashMap, HashSet};
use pprofdiff_profile::work::paced;

/// One hasher for all inputs of a view, so that their hashes can be compared. Seeded by process.
pub(crate) type State = FastState;

/// A piece of a profile's buffer, or of the view's own text.
#[derive(Debug, Clone, Copy)]
struct Text {
    hash: u64,
    own: bool,
    start: u32,
    len: u32,
}

/// The number of the empty text: it is the first of every profile, and so of all profiles together.
const EMPTY: u32 = 0;

/// A frame by the numbers of its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Frame {
    name: u32,
    file: u32,
    mapping: u32,
    line: i64,
    address: u64,
}

impl Frame {
    /// True if all frames of this name are one, as at granularity functions.
    #[inline]
    fn is_only_name(&self) -> bool {
        (self.file, self.mapping, self.line, self.address) == (EMPTY, EMPTY, 0, 0)
    }
}

/// Distinct frames by number. One that is only a name is found by the number of its name; hashing is for the others.
struct FrameTable {
    frames: Interner<Frame, State>,
    /// For each text: the number of the frame that has only this name, or [`NONE`].
    by_name: Vec<u32>,
}

impl FrameTable {
    /// With room for frames whose names are the first so many texts.
    fn with_capacity(texts: usize, state: State) -> FrameTable {
        let mut frames = Interner::with_capacity(0, state);
        frames.values.reserve(texts);
        FrameTable { frames, by_name: Vec::with_capacity(texts) }
    }

    #[inline]
    fn number(&mut self, frame: Frame) -> u32 {
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

/// The distinct texts of one profile's frames, or of profiles that are gone.
#[derive(Default)]
struct Texts {
    profile: Option<Arc<Profile>>,
    own: Vec<u8>,
    texts: Vec<Text>,
}

impl Texts {
    fn get(&self, text: u32) -> &[u8] {
        let t = self.texts[text as usize];
        let buffer = match &self.profile {
            Some(profile) if !t.own => profile.buffer(),
            _ => &self.own,
        };
        &buffer[t.start as usize..][..t.len as usize]
    }
}

/// Texts and frames by content: each is kept once, and has a number.
struct ContentInterner {
    state: State,
    texts: Texts,
    text_index: Index,
    frames: FrameTable,
}

impl ContentInterner {
    /// Reserves room for `texts` texts and the empty text, because one more text would double a full list.
    fn new(profile: Option<Arc<Profile>>, texts: usize, state: State) -> ContentInterner {
        let frames = FrameTable::with_capacity(texts, state.clone());
        let text_index = Index::with_capacity(texts);
        let texts = Texts { profile, own: Vec::new(), texts: Vec::with_capacity(texts + 1) };
        let mut interner = ContentInterner { state, texts, text_index, frames };
        interner.text(b"");
        interner
    }

    fn text(&mut self, bytes: &[u8]) -> u32 {
        let hash = self.state.hash_one(bytes);
        let texts = &self.texts;
        let same = |n: u32| texts.texts[n as usize].hash == hash && texts.get(n) == bytes;
        let hash_of = |n: u32| texts.texts[n as usize].hash;
        let found = self.text_index.find_or_insert(hash, texts.texts.len(), same, hash_of);
        if let Found::New(_) = found {
            let text = self.texts.place(hash, bytes);
            self.texts.texts.push(text);
        }
        found.number()
    }
}

impl Texts {
    /// A reference to bytes that lie in the profile's buffer, or else a copy of them.
    fn place(&mut self, hash: u64, bytes: &[u8]) -> Text {
        let len = bytes.len() as u32;
        if let Some(profile) = &self.profile {
            let (buffer, start) = (profile.buffer().as_ptr_range(), bytes.as_ptr());
            if !bytes.is_empty() && buffer.contains(&start) {
                return Text { hash, own: false, start: (start as usize - buffer.start as usize) as u32, len };
            }
        }
        let start = self.own.len() as u32;
        self.own.extend_from_slice(bytes);
        Text { hash, own: true, start, len }
    }
}

/// Frames of profiles that are not kept: what they are called is copied, once however many profiles have it.
pub(crate) struct FrameInterner {
    interner: ContentInterner,
    granularity: Granularity,
}

impl FrameInterner {
    pub(crate) fn new(granularity: Granularity) -> FrameInterner {
        FrameInterner { interner: ContentInterner::new(None, 0, State::default()), granularity }
    }

    /// The numbers that these frames of a view, or of another interner, have here.
    ///
    /// # Errors
    /// More than 4 GiB of names.
    pub(crate) fn add(&mut self, frames: &Frames, wanted: impl Iterator<Item = u32>) -> Result<Vec<u32>> {
        // By the text's number there; a text that many frames share is hashed once.
        let mut known = vec![NONE; frames.texts.len()];
        let mut text = |id: u32| {
            if known[id as usize] == NONE {
                let bytes = frames.text(id);
                if u32::try_from(self.interner.texts.own.len() + bytes.len()).is_err() {
                    let detail = "the names of the frames of all profiles together are larger than 4 GiB";
                    return Err(Error::new(ErrorKind::Limit, detail));
                }
                known[id as usize] = self.interner.text(bytes);
            }
            Ok(known[id as usize])
        };
        let mut found = Vec::with_capacity(wanted.size_hint().0);
        for id in wanted {
            let f = frames.frames[id as usize];
            found.push(Frame { name: text(f.name)?, file: text(f.file)?, mapping: text(f.mapping)?, ..f });
        }
        Ok(found.into_iter().map(|f| self.interner.frames.number(f)).collect())
    }

    /// The number of a function that is known by its name, or else by its binary.
    #[cfg(feature = "store")]
    pub(crate) fn add_function(&mut self, name: &[u8], binary: &[u8]) -> u32 {
        let [name, mapping] = [name, binary].map(|text| self.interner.text(text));
        self.interner.frames.number(Frame { name, file: EMPTY, mapping, line: 0, address: 0 })
    }

    /// All that was added.
    pub(crate) fn frames(self) -> Frames {
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

#[cfg(feature = "store")]
impl Frames {
    /// The name of a frame at granularity functions, and the binary's file where it has none.
    pub(crate) fn function(&self, frame: u32) -> [&[u8]; 2] {
        let frame = self.frames[frame as usize];
        [frame.name, frame.mapping].map(|text| self.text(text))
    }

    /// True if all are functions, as [`FrameInterner::add_function`] adds them.
    pub(crate) fn are_functions(&self) -> bool {
        let is_function = |f: &Frame| (f.file, f.line, f.address) == (EMPTY, 0, 0);
        self.granularity == Granularity::Functions && self.frames.iter().all(is_function)
    }
}

/// All distinct frames of a view, with the profiles that hold their names.
pub struct Frames {
    inputs: Vec<InputFrames>,
    /// Where each distinct text is first found: input, and index there.
    texts: Vec<(u32, u32)>,
    /// With texts numbered as in `texts`.
    frames: Vec<Frame>,
    granularity: Granularity,
    /// Most bytes that a label has of a text; longer ones lose their middle.
    longest_text: usize,
}

impl std::fmt::Debug for Frames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frames").field("len", &self.frames.len()).finish_non_exhaustive()
    }
}

/// Frames as they are stored: distinct texts, then each frame by the numbers of its name, file and mapping, its line
/// and its address.
#[derive(Serialize, Deserialize)]
struct Stored {
    granularity: Granularity,
    texts: Vec<Vec<u8>>,
    frames: Vec<(u32, u32, u32, i64, u64)>,
}

impl Serialize for Frames {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let texts = (0..self.texts.len() as u32).map(|id| self.text(id).to_vec()).collect();
        let frames = self.frames.iter().map(|f| (f.name, f.file, f.mapping, f.line, f.address)).collect();
        Stored { granularity: self.granularity, texts, frames }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Frames {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Frames, D::Error> {
        let stored = Stored::deserialize(deserializer)?;
        let n = stored.texts.len();
        if stored.frames.iter().any(|&(name, file, mapping, ..)| [name, file, mapping].iter().any(|&t| t as usize >= n))
        {
            return Err(serde::de::Error::custom("a frame refers to a text that is not there"));
        }
        // Where a text begins is a number of 32 bits.
        if u32::try_from(stored.texts.iter().map(Vec::len).sum::<usize>()).is_err() {
            return Err(serde::de::Error::custom("the names of the frames are larger than 4 GiB"));
        }
        let mut interner = ContentInterner::new(None, 0, State::default());
        for (i, bytes) in stored.texts.iter().enumerate() {
            if interner.text(bytes) as usize != i {
                return Err(serde::de::Error::custom("texts occur twice, or the first is not the empty one"));
            }
        }
        for &(name, file, mapping, line, address) in &stored.frames {
            interner.frames.number(Frame { name, file, mapping, line, address });
        }
        let frames = FrameInterner { interner, granularity: stored.granularity }.frames();
        if frames.texts.len() != n || frames.len() != stored.frames.len() {
            return Err(serde::de::Error::custom("texts or frames occur twice"));
        }
        Ok(frames)
    }
}

impl Frames {
    /// Brings the inputs' frames together. Also gives each input's translation from its own
    /// indexes to the common ones.
    pub(crate) fn merge(
        mut inputs: Vec<InputFrames>,
        granularity: Granularity,
        state: &State,
    ) -> (Frames, Vec<Vec<u32>>) {
        // From here on, an input's own frames are only referenced by number.
        let own: Vec<Vec<Frame>> = inputs.iter_mut().map(|input| std::mem::take(&mut input.frames)).collect();
        // The sides have most texts in common.
        let room = inputs.iter().map(|input| input.texts.texts.len()).max().unwrap_or(0);
        let mut text_index = Index::with_capacity(room + room / 8);
        let mut texts: Vec<(u32, u32)> = Vec::with_capacity(room + room / 8);
        let mut frames = FrameTable::with_capacity(room + room / 8, state.clone());
        let mut translations = Vec::with_capacity(inputs.len());
        let bytes = |(m, i): (u32, u32)| inputs[m as usize].texts.get(i);
        let hash_of = |(m, i): (u32, u32)| inputs[m as usize].texts.texts[i as usize].hash;
        for ((m, input), own) in inputs.iter().enumerate().zip(own) {
            let mut common = Vec::with_capacity(input.texts.texts.len());
            for i in paced(0..input.texts.texts.len() as u32) {
                let place = (m as u32, i);
                let hash = hash_of(place);
                let same = |n: u32| {
                    let other = texts[n as usize];
                    hash_of(other) == hash && bytes(other) == bytes(place)
                };
                let found = text_index.find_or_insert(hash, texts.len(), same, |n| hash_of(texts[n as usize]));
                if let Found::New(_) = found {
                    texts.push(place);
                }
                common.push(found.number());
            }
            let text = |id: u32| common[id as usize];
            let mut translation = Vec::with_capacity(input.len());
            for f in paced(&own) {
                let frame = Frame { name: text(f.name), file: text(f.file), mapping: text(f.mapping), ..*f };
                translation.push(frames.number(frame));
            }
            translations.push(translation);
        }
        // The lists grew by doubling, and live as long as the selection.
        let mut frames = frames.frames.values;
        frames.shrink_to_fit();
        texts.shrink_to_fit();
        let mut frames = Frames { inputs, texts, frames, granularity, longest_text: usize::MAX };
        frames.limit_labels();
        (frames, translations)
    }

    fn limit_labels(&mut self) {
        // Of profiles that are not kept there are the texts alone.
        let size = |texts: &Texts| texts.profile.as_ref().map_or(texts.own.len(), |p| p.inflated_size());
        let profiles = self.inputs.iter().map(|m| size(&m.texts)).sum();
        let lengths = self.frames.iter().flat_map(|f| [f.name, f.file, f.mapping]).map(|text| self.text(text).len());
        self.longest_text = texts::longest(profiles, lengths.fold(0, usize::saturating_add), 3 * self.frames.len());
    }

    /// What to know of labels before trusting them.
    pub(crate) fn warning(&self) -> Option<String> {
        let most = self.longest_text;
        (most != usize::MAX).then(|| {
            format!(
                "many frames share very long texts; where a frame is named in one line, texts of more than {most} bytes lose their middle"
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

    /// Number of distinct frames. Some may have no row in a view, since no sample has them.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The granularity that the frames were made at.
    pub fn granularity(&self) -> Granularity {
        self.granularity
    }

    /// What a frame is called, for display: the function, at granularity `files` the file, and without
    /// symbols the binary in brackets, or `<unknown>`.
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

    /// What rows are ordered by after their values: name, then file, then line, then address.
    pub(crate) fn order(&self, frame: u32) -> impl Ord + '_ {
        let f = &self.frames[frame as usize];
        let text = |id: u32| Ordered { id, bytes: self.text(id) };
        (text(f.name), text(f.file), f.line, f.address, text(f.mapping))
    }

    /// The bytes of a frame's name; empty where there is none.
    #[cfg(feature = "list")]
    pub(crate) fn name_bytes(&self, frame: u32) -> &[u8] {
        self.text(self.frames[frame as usize].name)
    }

    /// The file's path, where the granularity has one and the profile tells it.
    pub fn file(&self, frame: u32) -> Option<String> {
        some_text(self.text(self.frames[frame as usize].file))
    }

    /// The line number, where the granularity has one and the profile tells it.
    pub fn line(&self, frame: u32) -> Option<i64> {
        Some(self.frames[frame as usize].line).filter(|&line| line != 0)
    }

    /// The address, at granularity `addresses`.
    pub fn address(&self, frame: u32) -> Option<u64> {
        Some(self.frames[frame as usize].address).filter(|&address| address != 0)
    }

    /// The mapped binary's file, for a frame that has neither name nor file.
    pub fn mapping(&self, frame: u32) -> Option<String> {
        some_text(self.text(self.frames[frame as usize].mapping))
    }

    /// The frame on one line, in pprof's words: `address name file:line`. Where many frames share very long texts,
    /// those lose their middle here, and the view warns of it.
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

    /// Returns the names of functions that only files of libraries define. At granularity functions, frames have no file, so
    /// the profiles' own tables are asked. Costs nothing unless a profile has a file of a library.
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
            for (&name, file) in paced(functions.name.iter().zip(&functions.file)) {
                *only_libraries.entry(profile.string(name)).or_insert(true) &= files[file];
            }
        }
        only_libraries.into_iter().filter(|(_, is_library)| *is_library).map(|(name, _)| name).collect()
    }

    /// The numbers of the texts of a frame's name and file.
    pub(crate) fn texts_of(&self, frame: u32) -> (u32, u32) {
        let f = &self.frames[frame as usize];
        (f.name, f.file)
    }

    /// A text by its number, shortened as in [`Frames::label`].
    pub(crate) fn short(&self, text: u32) -> String {
        texts::shortened(self.text(text), self.longest_text, text)
    }
}

/// The last part of a binary's path.
fn binary(mapping: &[u8]) -> &[u8] {
    mapping.rsplit(|&b| b == b'/').find(|part| !part.is_empty()).unwrap_or(b"/")
}

/// A text that knows another occurrence of itself by its number: a million frames may share one of a megabyte.
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
