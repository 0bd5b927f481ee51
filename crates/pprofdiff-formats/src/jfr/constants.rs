//! The constants of a chunk. The reader first records the position of each constant by type and key, and decodes a
//! constant when an event needs it.
use super::chunk::{Chunk, JfrCursor, JfrText};
use super::metadata::{FieldPositions, JfrClass, JfrField, Metadata, POOLS, Pool, SkipBudget};
use pprofdiff_profile::cancellation::Checkpointer;
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::{Error, ErrorKind, Result};

/// A chunk may have `CONSTANTS + size / BYTES_A_CONSTANT` constants of the kinds that are read, where `size` is its
/// size in bytes. A symbol takes ten bytes or more, a stack hundreds, so real chunks stay far below the limit.
const CONSTANTS: usize = 1 << 18;
const BYTES_A_CONSTANT: usize = 8;

pub(super) struct Constants<'m, 't> {
    chunk: &'m Chunk<'t>,
    metadata: &'m Metadata<'t>,
    /// The offset in the file of each constant of the kinds that are read, by [`Pool`] and key.
    pools: [HashMap<u64, usize>; POOLS.len()],
    steps: SkipBudget,
}

/// A frame of a stack.
pub(super) struct JfrFrame {
    /// The key of the frame's method.
    pub method: u64,
    /// The line, or 0 if the type of frames has no line.
    pub line: i32,
}

/// The frames of a stack, from the leaf.
pub(super) struct JfrFrames<'m, 't> {
    class: &'m JfrClass<'t>,
    cursor: JfrCursor<'t>,
    left: usize,
}

impl<'m, 't> Constants<'m, 't> {
    /// Records the positions of a chunk's constants.
    ///
    /// # Errors
    /// A constant is malformed or has an unknown type, events with constants overlap or are out of order, or a limit is
    /// exceeded.
    pub fn read(chunk: &'m Chunk<'t>, metadata: &'m Metadata<'t>) -> Result<Constants<'m, 't>> {
        let (pools, steps) = (std::array::from_fn(|_| HashMap::default()), SkipBudget::for_chunk(chunk.size()));
        let mut constants = Constants { chunk, metadata, pools, steps };
        let mut left = CONSTANTS + chunk.size() / BYTES_A_CONSTANT;
        let mut pace = Checkpointer::default();
        let mut cursor = chunk.constants()?;
        let mut offset = chunk.constants_offset();
        loop {
            let _times = (cursor.long()?, cursor.long()?);
            let begin = cursor.offset();
            let delta = cursor.long()?;
            let _is_flush = cursor.byte()?;
            constants.read_pools(&mut cursor, &mut left, &mut pace)?;
            if delta == 0 {
                return Ok(constants);
            }
            // Events with constants are a linked list, from the last to the first: each has the distance to the event
            // before it as a negative number, and the first has 0. They must not overlap, so that no byte is read
            // twice.
            let previous = offset.checked_add(delta).filter(|&previous| previous < offset);
            let previous = previous.ok_or_else(|| Error::malformed("constants are out of order").at(begin))?;
            cursor = chunk.event_at(previous, 1, "the previous constants")?;
            if Chunk::end_of(&cursor) > chunk.begin() + usize::try_from(offset).unwrap_or(0) {
                return Err(Error::malformed("constants overlap").at(cursor.offset()));
            }
            offset = previous;
        }
    }

    fn read_pools(&mut self, cursor: &mut JfrCursor<'t>, left: &mut usize, pace: &mut Checkpointer) -> Result<()> {
        for _ in 0..cursor.count()? {
            let begin = cursor.offset();
            let id = cursor.long()?;
            let class = self.metadata.class_of(id);
            let class =
                class.ok_or_else(|| Error::malformed(format!("constants have an unknown type {id}")).at(begin))?;
            for _ in 0..cursor.count()? {
                pace.step(1);
                let key = cursor.long()? as u64;
                let place = cursor.offset();
                self.metadata
                    .skip(class, cursor, &mut self.steps)
                    .map_err(|e| e.in_record(|| format!("constant {key} of {}", class.name())))?;
                if let Some(pool) = class.pool {
                    *left = left.checked_sub(1).ok_or_else(|| {
                        Error::new(ErrorKind::Limit, "it has too many constants for a chunk of its size").at(begin)
                    })?;
                    // The last value of a key counts. Constants are read backwards, so it comes first here.
                    self.pools[pool as usize].entry(key).or_insert(place);
                }
            }
        }
        Ok(())
    }

    /// Returns the positions of an event's fields.
    pub fn places(&mut self, class: &JfrClass<'t>, mut cursor: JfrCursor<'t>) -> Result<FieldPositions<'t>> {
        self.metadata.places(class, &mut cursor, &mut self.steps)
    }

    /// Returns the position of a constant, or `None` if the key is unknown.
    fn find(&self, pool: Pool, key: u64) -> Option<JfrCursor<'t>> {
        self.pools[pool as usize].get(&key).map(|&offset| self.chunk.cursor_at(offset))
    }

    /// Returns the position of a constant's field, or `None` if the constant or the field does not exist.
    fn place(&mut self, pool: Pool, key: u64, field: JfrField) -> Result<Option<JfrCursor<'t>>> {
        let (Some(place), Some(class)) = (self.find(pool, key), self.metadata.class_of_pool(pool)) else {
            return Ok(None);
        };
        Ok(self.places(class, place)?[field as usize])
    }

    /// Returns the key of another constant, from a field of a constant, or `None` if the constant or the field does not
    /// exist.
    pub fn key(&mut self, pool: Pool, key: u64, field: JfrField) -> Result<Option<u64>> {
        Ok(self.place(pool, key, field)?.map(|mut place| place.long()).transpose()?.map(|key| key as u64))
    }

    /// Returns the text in a field of a constant. The field may have the key of a constant with the text. Returns an
    /// empty text if the constant, the field, or the constant with the text does not exist.
    ///
    /// # Errors
    /// The text is malformed, or the constant with the text refers to yet another constant.
    pub fn text(&mut self, pool: Pool, key: u64, field: JfrField) -> Result<Vec<u8>> {
        let Some(mut place) = self.place(pool, key, field)? else { return Ok(Vec::new()) };
        let key = match place.text()? {
            JfrText::Here(text) => return Ok(text.into_owned()),
            JfrText::Constant(key) => key,
        };
        let Some(mut place) = self.find(Pool::Text, key) else { return Ok(Vec::new()) };
        let begin = place.offset();
        match place.text()? {
            JfrText::Here(text) => Ok(text.into_owned()),
            JfrText::Constant(_) => Err(Error::malformed("a text constant refers to another constant").at(begin)),
        }
    }

    /// Returns the text of the symbol whose key is in a field of a constant, or an empty text if the constant, the
    /// field or the symbol does not exist.
    pub fn symbol(&mut self, pool: Pool, key: u64, field: JfrField) -> Result<Vec<u8>> {
        match self.key(pool, key, field)? {
            Some(symbol) => self.text(Pool::Symbol, symbol, JfrField::Text),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the frames of a stack, or `None` if the key is unknown or the type of stacks has no array of frames.
    pub fn frames(&mut self, key: u64) -> Result<Option<JfrFrames<'m, 't>>> {
        let Some(mut cursor) = self.place(Pool::Stack, key, JfrField::Frames)? else { return Ok(None) };
        let pool = self.metadata.class_of_pool(Pool::Stack);
        let Some(class) = pool.and_then(|pool| self.metadata.elements(pool, JfrField::Frames)) else { return Ok(None) };
        let left = cursor.count()?;
        Ok(Some(JfrFrames { class, cursor, left }))
    }

    /// Returns the next frame of a stack, or `None` after the last one.
    ///
    /// # Errors
    /// The frame is malformed, or the type of frames has no method.
    pub fn next_frame(&mut self, frames: &mut JfrFrames<'m, 't>) -> Result<Option<JfrFrame>> {
        let Some(left) = frames.left.checked_sub(1) else { return Ok(None) };
        frames.left = left;
        let begin = frames.cursor.offset();
        let places = self.metadata.places(frames.class, &mut frames.cursor, &mut self.steps)?;
        let method = places[JfrField::Method as usize]
            .ok_or_else(|| Error::malformed("a frame has no method").at(begin))?
            .long()?;
        let line = places[JfrField::LineNumber as usize].map_or(Ok(0), |mut place| place.int())?;
        Ok(Some(JfrFrame { method: method as u64, line }))
    }
}
