//! Constants of a chunk: by type and key, where each one is. They are read when an event needs them.

use super::chunk::{Chunk, Cursor, Text};
use super::metadata::{Class, Field, Metadata, POOLS, Places, Pool, Steps};
use crate::error::{Error, ErrorKind, Result};
use crate::random::HashMap;
use crate::work::Pace;

/// How many constants a chunk may have: in any so many, and in a large one so many for each byte. A symbol takes ten bytes and
/// more, a stack hundreds.
const CONSTANTS: usize = 1 << 18;
const BYTES_A_CONSTANT: usize = 8;

pub(super) struct Constants<'m, 't> {
    chunk: &'m Chunk<'t>,
    metadata: &'m Metadata<'t>,
    /// Where each constant begins, by its key.
    pools: [HashMap<u64, usize>; POOLS.len()],
    steps: Steps,
}

/// A frame of a stack.
pub(super) struct Frame {
    /// The key of its method.
    pub method: u64,
    pub line: i32,
}

/// The frames of a stack, from the leaf.
pub(super) struct Frames<'m, 't> {
    class: &'m Class<'t>,
    cursor: Cursor<'t>,
    left: usize,
}

impl<'m, 't> Constants<'m, 't> {
    pub fn read(chunk: &'m Chunk<'t>, metadata: &'m Metadata<'t>) -> Result<Constants<'m, 't>> {
        let (pools, steps) = (std::array::from_fn(|_| HashMap::default()), Steps::for_chunk(chunk.size()));
        let mut constants = Constants { chunk, metadata, pools, steps };
        let mut left = CONSTANTS + chunk.size() / BYTES_A_CONSTANT;
        let mut pace = Pace::default();
        let mut cursor = chunk.constants()?;
        let mut offset = chunk.constants_offset();
        loop {
            let _times = (cursor.long()?, cursor.long()?);
            let at = cursor.offset();
            let delta = cursor.long()?;
            let _is_flush = cursor.byte()?;
            constants.read_pools(&mut cursor, &mut left, &mut pace)?;
            if delta == 0 {
                return Ok(constants);
            }
            // The last constants tell where those before are.
            let before = offset.checked_add(delta).filter(|&before| before < offset);
            let before = before.ok_or_else(|| Error::malformed("constants follow their own").at(at))?;
            cursor = chunk.event_at(before, 1, "the constants before")?;
            if Chunk::end_of(&cursor) > chunk.begin() + usize::try_from(offset).unwrap_or(0) {
                return Err(Error::malformed("constants are within others").at(cursor.offset()));
            }
            offset = before;
        }
    }

    fn read_pools(&mut self, cursor: &mut Cursor<'t>, left: &mut usize, pace: &mut Pace) -> Result<()> {
        for _ in 0..cursor.count()? {
            let at = cursor.offset();
            let id = cursor.long()?;
            let class = self.metadata.class_of(id);
            let class =
                class.ok_or_else(|| Error::malformed(format!("there are constants of no type: {id}")).at(at))?;
            for _ in 0..cursor.count()? {
                pace.step(1);
                let key = cursor.long()? as u64;
                let place = cursor.offset();
                self.metadata
                    .skip(class, cursor, &mut self.steps)
                    .map_err(|e| e.in_record(|| format!("the constant {key} of {}", class.name())))?;
                if let Some(pool) = class.pool {
                    *left = left.checked_sub(1).ok_or_else(|| {
                        Error::new(ErrorKind::Limit, "it has more constants than are read of a chunk of its size")
                            .at(at)
                    })?;
                    // The last one of a key counts, which was read first.
                    self.pools[pool as usize].entry(key).or_insert(place);
                }
            }
        }
        Ok(())
    }

    /// Where the fields of an event are.
    pub fn places(&mut self, class: &Class<'t>, mut cursor: Cursor<'t>) -> Result<Places<'t>> {
        self.metadata.places(class, &mut cursor, &mut self.steps)
    }

    /// Where a constant is; `None` if there is none.
    fn find(&self, pool: Pool, key: u64) -> Option<Cursor<'t>> {
        self.pools[pool as usize].get(&key).map(|&at| self.chunk.cursor_at(at))
    }

    /// Where a field of a constant is; `None` if there is no such constant or field.
    fn place(&mut self, pool: Pool, key: u64, field: Field) -> Result<Option<Cursor<'t>>> {
        let (Some(place), Some(class)) = (self.find(pool, key), self.metadata.class_of_pool(pool)) else {
            return Ok(None);
        };
        Ok(self.places(class, place)?[field as usize])
    }

    /// The key of another constant, in a field of one.
    pub fn key(&mut self, pool: Pool, key: u64, field: Field) -> Result<Option<u64>> {
        Ok(self.place(pool, key, field)?.map(|mut place| place.long()).transpose()?.map(|key| key as u64))
    }

    /// The text in a field of a constant, empty if there is none.
    pub fn text(&mut self, pool: Pool, key: u64, field: Field) -> Result<Vec<u8>> {
        let Some(mut place) = self.place(pool, key, field)? else { return Ok(Vec::new()) };
        let key = match place.text()? {
            Text::Here(text) => return Ok(text.into_owned()),
            Text::Constant(key) => key,
        };
        let Some(mut place) = self.find(Pool::Text, key) else { return Ok(Vec::new()) };
        let at = place.offset();
        match place.text()? {
            Text::Here(text) => Ok(text.into_owned()),
            Text::Constant(_) => Err(Error::malformed("a text that is a constant is one of another").at(at)),
        }
    }

    /// The symbol that a field of a constant names, empty if there is none.
    pub fn symbol(&mut self, pool: Pool, key: u64, field: Field) -> Result<Vec<u8>> {
        match self.key(pool, key, field)? {
            Some(symbol) => self.text(Pool::Symbol, symbol, Field::Text),
            None => Ok(Vec::new()),
        }
    }

    /// The frames of a stack; `None` if there is none of that key.
    pub fn frames(&mut self, key: u64) -> Result<Option<Frames<'m, 't>>> {
        let Some(mut cursor) = self.place(Pool::Stack, key, Field::Frames)? else { return Ok(None) };
        let class = self.metadata.class_of_pool(Pool::Stack);
        let Some(class) = class.and_then(|class| self.metadata.elements(class, Field::Frames)) else { return Ok(None) };
        let left = cursor.count()?;
        Ok(Some(Frames { class, cursor, left }))
    }

    /// The next frame of a stack.
    pub fn next_frame(&mut self, frames: &mut Frames<'m, 't>) -> Result<Option<Frame>> {
        let Some(left) = frames.left.checked_sub(1) else { return Ok(None) };
        frames.left = left;
        let at = frames.cursor.offset();
        let places = self.metadata.places(frames.class, &mut frames.cursor, &mut self.steps)?;
        let method =
            places[Field::Method as usize].ok_or_else(|| Error::malformed("a frame has no method").at(at))?.long()?;
        let line = places[Field::LineNumber as usize].map_or(Ok(0), |mut place| place.int())?;
        Ok(Some(Frame { method: method as u64, line }))
    }
}
