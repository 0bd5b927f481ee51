//! The types of a chunk: reads their description, a tree of named elements, and skips or locates values of these types.
//!
//! In the description, a type is an element called `class`. In the code, a type is a [`JfrClass`].

use std::borrow::Cow;

use super::EVENTS;
use super::chunk::{Chunk, JfrCursor, JfrText};
use pprofdiff_profile::random::HashMap;
use pprofdiff_profile::{Error, ErrorKind, Result};

/// Declares the fields that are read, with their names in the recording.
macro_rules! fields {
    ($($field:ident $name:literal,)*) => {
        /// A field that is read, or `Other` for any other field.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum JfrField { $($field,)* Other }

        const NAMES: &[(&str, JfrField)] = &[$(($name, JfrField::$field),)*];
    };
}

fields! {
    StartTime "startTime",
    EventThread "eventThread",
    SampledThread "sampledThread",
    StackTrace "stackTrace",
    State "state",
    Duration "duration",
    SamplingPeriod "samplingPeriod",
    Failed "failed",
    Biased "biased",
    Samples "samples",
    Address "address",
    Size "size",
    Weight "weight",
    TlabSize "tlabSize",
    AllocationSize "allocationSize",
    ObjectClass "objectClass",
    MonitorClass "monitorClass",
    ParkedClass "parkedClass",
    Frames "frames",
    Method "method",
    LineNumber "lineNumber",
    Type "type",
    Name "name",
    Text "string",
    JavaName "javaName",
    OsName "osName",
}

impl JfrField {
    /// Returns the field's name in the recording.
    pub fn name(self) -> &'static str {
        NAMES.get(self as usize).map_or("", |(name, _)| name)
    }
}

/// The positions of an object's values, by [`JfrField`]. A position is `None` if the type has no such field. The values
/// of all fields that are not read share the last element.
pub(super) type FieldPositions<'t> = [Option<JfrCursor<'t>>; NAMES.len() + 1];

pub(super) const NO_POSITIONS: FieldPositions<'static> = [None; NAMES.len() + 1];

/// A kind of constants that are read. JFR calls the constants of one type a constant pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Pool {
    Stack,
    Method,
    Class,
    Symbol,
    Thread,
    State,
    Text,
}

/// The name of the type of each kind of constants, in the order of [`Pool`].
pub(super) const POOLS: [(&str, Pool); 7] = [
    ("jdk.types.StackTrace", Pool::Stack),
    ("jdk.types.Method", Pool::Method),
    ("java.lang.Class", Pool::Class),
    ("jdk.types.Symbol", Pool::Symbol),
    ("java.lang.Thread", Pool::Thread),
    ("jdk.types.ThreadState", Pool::State),
    ("java.lang.String", Pool::Text),
];

/// The encoding of the values of a type.
#[derive(Debug, Clone, Copy)]
enum ValueShape {
    /// This many bytes, never compressed.
    Bytes(usize),
    /// Compressed, or two bytes, as the chunk's header specifies.
    Short,
    /// Compressed, or four bytes.
    Int,
    /// Compressed, or eight bytes.
    Long,
    /// A byte with the encoding, then the text ([`JfrCursor::text`]).
    Text,
    /// An object: the values of all fields, one after the other.
    Fields,
}

/// A type: of events, of constants, or of values in them.
#[derive(Debug)]
pub(super) struct JfrClass<'t> {
    name: Cow<'t, [u8]>,
    shape: ValueShape,
    fields: Vec<Member>,
    /// The index in [`EVENTS`], or `None` for a type that is not an event that is read.
    pub event: Option<usize>,
    /// The kind of the constants of this type, or `None` if they are not read.
    pub pool: Option<Pool>,
}

/// A field of a type.
#[derive(Debug)]
struct Member {
    field: JfrField,
    /// The id of the field's type.
    class: i64,
    /// True if the value is the key of a constant, which is a long, and not the constant itself.
    is_constant: bool,
    is_array: bool,
}

/// The types of a chunk.
#[derive(Debug)]
pub(super) struct Metadata<'t> {
    classes: Vec<JfrClass<'t>>,
    /// Indexes into `classes`, by the id of the type.
    by_id: HashMap<i64, u32>,
    /// The index into `classes` for each [`Pool`], or `None` if the chunk has no such type.
    pool_classes: [Option<u32>; POOLS.len()],
}

/// Limits for the texts, the fields of all types together, and the types of one chunk's description. A JDK has some 300
/// types with 3,000 fields, 20,000 elements and 5,000 texts. Programs may add event types of their own.
const MAX_TEXTS: usize = 1 << 18;
const MAX_MEMBERS: usize = 1 << 18;
const MAX_CLASSES: usize = 1 << 16;
/// The maximum depth of elements and of objects. Elements are nested five levels deep (root, metadata, class, field,
/// annotation).
const MAX_DEPTH: usize = 16;

/// An element whose children are being read.
struct OpenElement {
    /// The number of children still to read.
    children: usize,
    is_class: bool,
}

impl<'t> Metadata<'t> {
    /// Reads the description of a chunk's types: a list of texts, then the tree of elements, which refer to the texts
    /// by number.
    pub fn read(chunk: &Chunk<'t>) -> Result<Metadata<'t>> {
        let mut cursor = chunk.metadata()?;
        let _times_and_number = (cursor.long()?, cursor.long()?, cursor.long()?);
        let texts = read_texts(&mut cursor)?;
        let mut metadata =
            Metadata { classes: Vec::new(), by_id: HashMap::default(), pool_classes: [None; POOLS.len()] };
        let mut open: Vec<OpenElement> = Vec::new();
        let mut n_members = 0;
        loop {
            let is_in_class = open.last().is_some_and(|element| element.is_class);
            let element = metadata.read_element(&mut cursor, &texts, is_in_class, &mut n_members)?;
            if open.len() == MAX_DEPTH {
                return Err(Error::new(ErrorKind::Limit, "the description of its types is nested too deeply")
                    .at(cursor.offset()));
            }
            open.push(element);
            while open.last().is_some_and(|element| element.children == 0) {
                open.pop();
            }
            match open.last_mut() {
                Some(element) => element.children -= 1,
                None => return Ok(metadata),
            }
        }
    }

    /// Reads an element up to its children. A `class` adds a type, and a `field` directly inside a `class` adds a field
    /// to the type that was added last. All other elements are ignored.
    fn read_element(
        &mut self,
        cursor: &mut JfrCursor<'t>,
        texts: &[Cow<'t, [u8]>],
        is_in_class: bool,
        n_members: &mut usize,
    ) -> Result<OpenElement> {
        let begin = cursor.offset();
        let text = |cursor: &mut JfrCursor<'t>| {
            let begin = cursor.offset();
            let number = cursor.int()?;
            let text = usize::try_from(number).ok().and_then(|number| texts.get(number));
            text.ok_or_else(|| Error::malformed(format!("unknown text {number}: there are {}", texts.len())).at(begin))
        };
        let name = text(cursor)?;
        let (mut id, mut class, mut name_value) = (None, None, None);
        let (mut is_constant, mut is_array) = (false, false);
        for _ in 0..cursor.count()? {
            let (key, value) = (text(cursor)?, text(cursor)?);
            let number = || std::str::from_utf8(value).ok().and_then(|number| number.parse().ok());
            match &**key {
                b"id" => id = number(),
                b"class" => class = number(),
                b"name" => name_value = Some(value),
                b"constantPool" => is_constant = **value == *b"true",
                b"dimension" => is_array = **value != *b"0",
                _ => {}
            }
        }
        let is_class = **name == *b"class";
        let name_value = name_value.cloned().unwrap_or_default();
        if is_class {
            let id = id.ok_or_else(|| Error::malformed("a type has no id").at(begin))?;
            if self.classes.len() == MAX_CLASSES {
                return Err(Error::new(ErrorKind::Limit, format!("it has more than {MAX_CLASSES} types")).at(begin));
            }
            if self.by_id.insert(id, self.classes.len() as u32).is_some() {
                return Err(Error::malformed(format!("two types have the id {id}")).at(begin));
            }
            let class = JfrClass::named(name_value);
            if let Some(pool) = class.pool {
                self.pool_classes[pool as usize] = Some(self.classes.len() as u32);
            }
            self.classes.push(class);
        } else if let (true, Some(within)) = (is_in_class && **name == *b"field", self.classes.last_mut()) {
            *n_members += 1;
            if *n_members > MAX_MEMBERS {
                return Err(
                    Error::new(ErrorKind::Limit, format!("its types have more than {MAX_MEMBERS} fields")).at(begin)
                );
            }
            let class = class.ok_or_else(|| Error::malformed("a field has no type").at(begin))?;
            let named = NAMES.iter().find(|(name, _)| *name.as_bytes() == *name_value);
            let field = named.map_or(JfrField::Other, |&(_, field)| field);
            within.fields.push(Member { field, class, is_constant, is_array });
        }
        Ok(OpenElement { children: cursor.count()?, is_class })
    }

    /// Returns the type with an id, or `None` if the id is unknown.
    pub fn class_of(&self, id: i64) -> Option<&JfrClass<'t>> {
        self.by_id.get(&id).map(|&number| &self.classes[number as usize])
    }

    fn class(&self, id: i64, cursor: &JfrCursor<'t>) -> Result<&JfrClass<'t>> {
        self.class_of(id).ok_or_else(|| Error::malformed(format!("unknown type {id}")).at(cursor.offset()))
    }

    /// Skips an object and returns the positions of its values.
    pub fn places(
        &self,
        class: &JfrClass<'t>,
        cursor: &mut JfrCursor<'t>,
        steps: &mut SkipBudget,
    ) -> Result<FieldPositions<'t>> {
        let mut positions = NO_POSITIONS;
        for member in &class.fields {
            positions[member.field as usize] = Some(*cursor);
            self.skip_member(member, cursor, steps, 0)?;
        }
        Ok(positions)
    }

    fn skip_member(
        &self,
        member: &Member,
        cursor: &mut JfrCursor<'t>,
        steps: &mut SkipBudget,
        depth: usize,
    ) -> Result<()> {
        let (count, begin) = (if member.is_array { cursor.count()? } else { 1 }, cursor.offset());
        let class = if member.is_constant { None } else { Some(self.class(member.class, cursor)?) };
        for _ in 0..count {
            match class {
                None => _ = cursor.long()?,
                Some(class) => self.skip_at(class, cursor, steps, depth + 1)?,
            }
        }
        if member.is_array && cursor.offset() - begin < count {
            return Err(Error::malformed(format!("{count} elements take less than a byte each")).at(begin));
        }
        steps.take(count)
    }

    /// Skips a value of a type, with all values inside it.
    pub fn skip(&self, class: &JfrClass<'t>, cursor: &mut JfrCursor<'t>, steps: &mut SkipBudget) -> Result<()> {
        self.skip_at(class, cursor, steps, 0)
    }

    fn skip_at(
        &self,
        class: &JfrClass<'t>,
        cursor: &mut JfrCursor<'t>,
        steps: &mut SkipBudget,
        depth: usize,
    ) -> Result<()> {
        steps.take(1)?;
        match class.shape {
            ValueShape::Bytes(n) => _ = cursor.bytes(n)?,
            ValueShape::Short => _ = cursor.short()?,
            ValueShape::Int => _ = cursor.int()?,
            ValueShape::Long => _ = cursor.long()?,
            ValueShape::Text => {
                let begin = cursor.offset();
                skip_text(cursor)?;
                // Skipping a text takes time for each byte, so each eight bytes cost one step more.
                steps.take((cursor.offset() - begin) / 8)?;
            }
            ValueShape::Fields if depth == MAX_DEPTH => {
                return Err(Error::new(ErrorKind::Limit, "its types are nested too deeply").at(cursor.offset()));
            }
            ValueShape::Fields => {
                for member in &class.fields {
                    self.skip_member(member, cursor, steps, depth)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the type of the elements of an array field. Returns `None` if the field does not exist, if it is not an
    /// array or is an array of constants, or if its type is unknown.
    pub fn elements(&self, class: &JfrClass<'t>, field: JfrField) -> Option<&JfrClass<'t>> {
        let member = class.fields.iter().find(|member| member.field == field)?;
        (member.is_array && !member.is_constant).then(|| self.class_of(member.class)).flatten()
    }

    /// Returns the type of a kind of constants, or `None` if the chunk has no such type.
    pub fn class_of_pool(&self, pool: Pool) -> Option<&JfrClass<'t>> {
        self.pool_classes[pool as usize].map(|number| &self.classes[number as usize])
    }
}

impl<'t> JfrClass<'t> {
    fn named(name: Cow<'t, [u8]>) -> JfrClass<'t> {
        let shape = match &*name {
            b"boolean" | b"byte" => ValueShape::Bytes(1),
            b"char" | b"short" => ValueShape::Short,
            b"int" => ValueShape::Int,
            b"long" => ValueShape::Long,
            b"float" => ValueShape::Bytes(4),
            b"double" => ValueShape::Bytes(8),
            b"java.lang.String" => ValueShape::Text,
            _ => ValueShape::Fields,
        };
        let event = EVENTS.iter().position(|event| *event.name.as_bytes() == *name);
        let pool = POOLS.iter().find(|(type_name, _)| *type_name.as_bytes() == *name).map(|&(_, pool)| pool);
        JfrClass { name, shape, fields: Vec::new(), event, pool }
    }

    /// Returns true if the type has this field.
    pub fn has(&self, field: JfrField) -> bool {
        self.fields.iter().any(|member| member.field == field)
    }

    pub fn full_name(&self) -> &[u8] {
        &self.name
    }

    /// Returns the type's name, quoted and shortened for an error.
    pub fn name(&self) -> String {
        crate::table::quoted(&self.name)
    }
}

fn read_texts<'t>(cursor: &mut JfrCursor<'t>) -> Result<Vec<Cow<'t, [u8]>>> {
    let begin = cursor.offset();
    let count = cursor.count()?;
    if count > MAX_TEXTS {
        return Err(Error::new(ErrorKind::Limit, format!("its types have more than {MAX_TEXTS} texts")).at(begin));
    }
    (0..count)
        .map(|_| match cursor.text()? {
            JfrText::Here(text) => Ok(text),
            JfrText::Constant(_) => Err(Error::malformed("a text in the types must not be a constant").at(begin)),
        })
        .collect()
}

/// Skips a text. A UTF-16 text is not decoded, because decoding allocates memory.
fn skip_text(cursor: &mut JfrCursor<'_>) -> Result<()> {
    let mut copy = *cursor;
    // Encoding 4 is UTF-16. Each of its units is a short, which may be compressed.
    if copy.byte()? == 4 {
        for _ in 0..copy.count()? {
            copy.short()?;
        }
        *cursor = copy;
        return Ok(());
    }
    cursor.text().map(|_| ())
}

/// The number of steps that may still be used to skip values. A value of any type costs one step, an element of a field
/// (or a field that is not an array) costs one step, and each eight bytes of a text in any encoding cost one step.
///
/// A small chunk may describe a huge number of values: each type may consist of a hundred fields of the next type, and
/// many constants may have a large type.
#[derive(Debug)]
pub(super) struct SkipBudget(usize);

/// A chunk may use `STEPS + size * STEPS_A_BYTE` steps, where `size` is its size in bytes.
const STEPS: usize = 1 << 20;
const STEPS_A_BYTE: usize = 16;

impl SkipBudget {
    /// Returns the limit for a chunk of `size` bytes.
    pub fn for_chunk(size: usize) -> SkipBudget {
        SkipBudget(STEPS.saturating_add(size.saturating_mul(STEPS_A_BYTE)))
    }

    fn take(&mut self, n: usize) -> Result<()> {
        match self.0.checked_sub(n) {
            Some(left) => self.0 = left,
            None => {
                let detail = "it has too many nested values for a chunk of its size";
                return Err(Error::new(ErrorKind::Limit, detail));
            }
        }
        Ok(())
    }
}
