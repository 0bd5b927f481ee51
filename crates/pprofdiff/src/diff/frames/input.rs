//! Interns the frames of one profile: maps each location to its frames, and stores frames and texts by content.

use std::sync::Arc;

use hashbrown::HashMap;

use super::{ContentInterner, EMPTY, FrameContent, State, TextTable};
use crate::diff::Query;
use crate::diff::filter::FilterPlan;
use crate::diff::identity::{self, FrameIdentity, Granularity};
use crate::diff::matching::{Matching, RenamedFunctions};
use pprofdiff_profile::Profile;
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::columns::{NONE, StringId};
use pprofdiff_profile::shared::Memo;

/// The frames of one profile, and the list of frames of each location.
pub struct InputFrames {
    pub(super) texts: TextTable,
    /// The input's frames, until they are merged with the frames of other inputs.
    pub(super) frames: Vec<FrameContent>,
    /// The number of frames.
    pub(super) len: usize,
    /// The frames of location `l` are `expanded[first[l]..first[l + 1]]`, innermost first.
    pub(super) first: Vec<u32>,
    pub(super) expanded: Vec<u32>,
    /// The number of names that were made canonical, and the first such name in its original and canonical form.
    pub(crate) matched: (usize, Option<(String, String)>),
}

impl std::fmt::Debug for InputFrames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InputFrames").finish_non_exhaustive()
    }
}

/// A location's innermost frame, and a flag for further frames.
#[derive(Debug, Clone, Copy)]
pub struct Innermost(u32);

impl Innermost {
    /// Indexes of frames are below 2^31, since each frame takes more than two bytes of a message below 4 GiB.
    pub fn new(frame: u32, more: bool) -> Innermost {
        Innermost(frame << 1 | u32::from(more))
    }

    /// Returns the frame's number.
    #[inline(always)]
    pub fn frame(self) -> u32 {
        self.0 >> 1
    }

    /// Returns true if the location has further frames.
    #[inline(always)]
    pub fn has_more(self) -> bool {
        self.0 & 1 != 0
    }

    /// Returns the frame's number times two, plus one if there are further frames.
    #[inline(always)]
    pub(crate) fn to_bits(self) -> u32 {
        self.0
    }
}

impl InputFrames {
    pub(crate) fn new(
        profile: &Arc<Profile>,
        plan: &FilterPlan,
        query: &Query,
        matching: Matching,
        renamed: &RenamedFunctions,
        shifts: &[u64],
        state: &State,
    ) -> InputFrames {
        let granularity = query.granularity;
        let locations = profile.locations();
        let n = locations.len();
        // The capacity covers one name per function. Granularities with lines and addresses produce more frames.
        let mut b = FrameBuilder::new(profile, query, matching, renamed, state);
        let mut first = Vec::with_capacity(n + plan.pseudo().len() + 1);
        let mut expanded = Vec::with_capacity(locations.line_function.len() + n);
        first.push(0);
        // If a frame is determined by its function, each function is interned once.
        let by_function = !matches!(granularity, Granularity::Lines | Granularity::Addresses);
        let mut memo = Memo::new(if by_function { profile.n_functions() } else { 0 });
        for location in checkpointed(0..n as u32) {
            let address = match granularity {
                Granularity::Addresses => identity::shifted_address(profile, shifts, location),
                _ => 0,
            };
            plan.for_each_line(profile, location, |line| {
                let function = locations.line_function[line as usize] as usize;
                if by_function {
                    let cached = memo.get(function);
                    if cached != NONE {
                        expanded.push(cached);
                        return;
                    }
                }
                let identity = identity::identify(profile, granularity, location, Some(line), address);
                let id = b.frame(identity);
                // A function without a name is named by the location's mapping, so its number cannot be reused for
                // other locations.
                if by_function && identity.mapping.is_none() {
                    memo.set(function, id);
                }
                expanded.push(id);
            });
            if expanded.len() as u32 == first[location as usize] {
                expanded.push(b.frame(identity::identify(profile, granularity, location, None, address)));
            }
            first.push(expanded.len() as u32);
        }
        for (name, key) in plan.pseudo() {
            let name: &[u8] = if granularity == Granularity::Files { b"" } else { name };
            let file: &[u8] = if granularity == Granularity::Functions { b"" } else { key };
            let i = &mut b.interner;
            let frame = FrameContent { name: i.text(name), file: i.text(file), mapping: EMPTY, line: 0, address: 0 };
            expanded.push(i.frames.number(frame));
            first.push(expanded.len() as u32);
        }
        let matched = b.matched;
        let ContentInterner { mut texts, frames, .. } = b.interner;
        let frames = frames.frames.values;
        texts.texts.shrink_to_fit();
        expanded.shrink_to_fit();
        InputFrames { texts, len: frames.len(), frames, first, expanded, matched }
    }

    /// Returns the frames of a location, innermost first, as indexes of this input.
    #[inline]
    pub fn expand(&self, location: u32) -> &[u32] {
        let l = location as usize;
        &self.expanded[self.first[l] as usize..self.first[l + 1] as usize]
    }

    /// Returns the innermost frame of each location. This table is half as large as the full expansion, which matters
    /// because the inner loops wait for it.
    pub(crate) fn innermost(&self) -> Vec<Innermost> {
        let innermost = self.first.windows(2).map(|w| Innermost::new(self.expanded[w[0] as usize], w[1] - w[0] > 1));
        innermost.collect()
    }

    /// Returns the second innermost frame of each location and a flag for further frames, or zero for locations with
    /// one frame. Nearly all inlined locations have exactly two frames, so this avoids a lookup of the full expansion.
    pub(crate) fn second(&self) -> Vec<Innermost> {
        let second = |w: &[u32]| match w[1] - w[0] {
            0 | 1 => Innermost(0),
            n => Innermost::new(self.expanded[w[0] as usize + 1], n > 2),
        };
        self.first.windows(2).map(second).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// The maximum length in characters of a name in an example.
const MAX_EXAMPLE_CHARS: usize = 200;

/// Interns the frames of one profile.
struct FrameBuilder<'a> {
    profile: &'a Arc<Profile>,
    trim: &'a [String],
    interner: ContentInterner,
    /// The text of each string of the profile, by the string's number.
    text_of: Memo,
    path_of: HashMap<StringId, u32, State>,
    /// The matching of names. It is exact if names do not distinguish frames.
    matching: Matching,
    /// The new names of renamed functions, by canonical name.
    renamed: &'a RenamedFunctions,
    name_of: HashMap<StringId, u32, State>,
    matched: (usize, Option<(String, String)>),
}

impl<'a> FrameBuilder<'a> {
    fn new(
        profile: &'a Arc<Profile>,
        query: &'a Query,
        matching: Matching,
        renamed: &'a RenamedFunctions,
        state: &State,
    ) -> FrameBuilder<'a> {
        FrameBuilder {
            profile,
            trim: &query.trim_path,
            interner: ContentInterner::new(Some(profile.clone()), profile.n_functions(), state.clone()),
            text_of: Memo::new(profile.n_strings()),
            path_of: HashMap::with_hasher(state.clone()),
            matching: if query.granularity == Granularity::Files { Matching::Exact } else { matching },
            renamed,
            name_of: HashMap::with_hasher(state.clone()),
            matched: (0, None),
        }
    }

    fn frame(&mut self, i: FrameIdentity) -> u32 {
        let frame = FrameContent {
            name: self.name(i.name),
            file: self.path(i.file),
            mapping: self.name(i.mapping.unwrap_or(StringId::EMPTY)),
            line: i.line,
            address: i.address,
        };
        self.interner.frames.number(frame)
    }

    fn string(&mut self, id: StringId) -> u32 {
        match self.text_of.get(id.index()) {
            NONE => {
                let text = self.interner.text(self.profile.string(id));
                self.text_of.set(id.index(), text);
                text
            }
            text => text,
        }
    }

    /// Returns the text of a function's name in its matched form. A renamed function has its new name.
    fn name(&mut self, id: StringId) -> u32 {
        if self.matching.is_exact() {
            return self.string(id);
        }
        if let Some(&text) = self.name_of.get(&id) {
            return text;
        }
        let name = self.profile.text(id);
        let canonical = self.matching.name_of(&name);
        let text = if let Some(renamed) = self.renamed.get(&*canonical) {
            self.interner.text(renamed.as_bytes())
        } else if canonical == name {
            self.string(id)
        } else {
            let text = self.interner.text(canonical.as_bytes());
            self.matched.0 += 1;
            let start = |text: &str| text.chars().take(MAX_EXAMPLE_CHARS).collect();
            self.matched.1.get_or_insert_with(|| (start(&name), start(&canonical)));
            text
        };
        self.name_of.insert(id, text);
        text
    }

    fn path(&mut self, id: StringId) -> u32 {
        if id == StringId::EMPTY {
            return self.string(id);
        }
        if let Some(&text) = self.path_of.get(&id) {
            return text;
        }
        let path = self.profile.string(id);
        let shown = identity::file_path(path, self.trim);
        let text = if *shown == *path { self.string(id) } else { self.interner.text(&shown) };
        self.path_of.insert(id, text);
        text
    }
}
