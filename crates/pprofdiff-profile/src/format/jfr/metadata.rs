//! The types of a chunk, as its metadata describe them: a tree of named elements, of which classes and their fields count.

use std::borrow::Cow;

use super::EVENTS;
use super::chunk::{Chunk, Cursor, Text};
use crate::error::{Error, ErrorKind, Result};
use crate::random::HashMap;

/// Declares the fields that are read, under their names in the recording.
macro_rules! fields {
    ($($field:ident $name:literal,)*) => {
        /// A field that is read, or any other.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Field { $($field,)* Other }

        const NAMES: &[(&str, Field)] = &[$(($name, Field::$field),)*];
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

impl Field {
    /// Its name in the recording.
    pub fn name(self) -> &'static str {
        NAMES.get(self as usize).map_or("", |(name, _)| name)
    }
}

/// Where the values of an object's fields are.
pub(super) type Places<'t> = [Option<Cursor<'t>>; NAMES.len() + 1];

pub(super) const NO_PLACE: Places<'static> = [None; NAMES.len() + 1];

/// A kind of constants that are read.
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

/// All kinds, and the types that they are of.
pub(super) const POOLS: [(&str, Pool); 7] = [
    ("jdk.types.StackTrace", Pool::Stack),
    ("jdk.types.Method", Pool::Method),
    ("java.lang.Class", Pool::Class),
    ("jdk.types.Symbol", Pool::Symbol),
    ("java.lang.Thread", Pool::Thread),
    ("jdk.types.ThreadState", Pool::State),
    ("java.lang.String", Pool::Text),
];

/// How a value of a type is written.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Bytes(usize),
    Short,
    Int,
    Long,
    Text,
    Fields,
}

#[derive(Debug)]
pub(super) struct Class<'t> {
    name: Cow<'t, [u8]>,
    shape: Shape,
    fields: Vec<Member>,
    /// Its number in [`EVENTS`].
    pub event: Option<usize>,
    pub pool: Option<Pool>,
}

/// A field of a class.
#[derive(Debug)]
struct Member {
    field: Field,
    /// The id of its type.
    class: i64,
    is_constant: bool,
    is_array: bool,
}

/// The types of a chunk.
#[derive(Debug)]
pub(super) struct Metadata<'t> {
    classes: Vec<Class<'t>>,
    by_id: HashMap<i64, u32>,
    of_pools: [Option<u32>; POOLS.len()],
}

/// A JDK has some 300 types with 3,000 fields, 20,000 elements and 5,000 texts; and classes of programs may be events.
const MAX_TEXTS: usize = 1 << 18;
const MAX_MEMBERS: usize = 1 << 18;
const MAX_CLASSES: usize = 1 << 16;
/// Elements are in one another three levels deep, and objects hardly more.
const MAX_DEPTH: usize = 16;

/// An element whose attributes are read.
struct Open {
    /// How many elements in it are still to come.
    children: usize,
    is_class: bool,
}

impl<'t> Metadata<'t> {
    pub fn read(chunk: &Chunk<'t>) -> Result<Metadata<'t>> {
        let mut cursor = chunk.metadata()?;
        let _times_and_number = (cursor.long()?, cursor.long()?, cursor.long()?);
        let texts = read_texts(&mut cursor)?;
        let mut metadata = Metadata { classes: Vec::new(), by_id: HashMap::default(), of_pools: [None; POOLS.len()] };
        let mut open: Vec<Open> = Vec::new();
        let mut n_members = 0;
        loop {
            let is_in_class = open.last().is_some_and(|element| element.is_class);
            let element = metadata.read_element(&mut cursor, &texts, is_in_class, &mut n_members)?;
            if open.len() == MAX_DEPTH {
                return Err(Error::new(ErrorKind::Limit, "its types are described too deeply").at(cursor.offset()));
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

    /// Reads an element up to those that are in it.
    fn read_element(
        &mut self,
        cursor: &mut Cursor<'t>,
        texts: &[Cow<'t, [u8]>],
        is_in_class: bool,
        n_members: &mut usize,
    ) -> Result<Open> {
        let begin = cursor.offset();
        let text = |cursor: &mut Cursor<'t>| {
            let at = cursor.offset();
            let number = cursor.int()?;
            let found = usize::try_from(number).ok().and_then(|number| texts.get(number));
            found
                .ok_or_else(|| Error::malformed(format!("there is no text {number}: there are {}", texts.len())).at(at))
        };
        let name = text(cursor)?;
        let (mut id, mut class, mut own_name) = (None, None, None);
        let (mut is_constant, mut is_array) = (false, false);
        for _ in 0..cursor.count()? {
            let (key, value) = (text(cursor)?, text(cursor)?);
            let number = || std::str::from_utf8(value).ok().and_then(|number| number.parse().ok());
            match &**key {
                b"id" => id = number(),
                b"class" => class = number(),
                b"name" => own_name = Some(value),
                b"constantPool" => is_constant = **value == *b"true",
                b"dimension" => is_array = **value != *b"0",
                _ => {}
            }
        }
        let is_class = **name == *b"class";
        let own_name = own_name.cloned().unwrap_or_default();
        if is_class {
            let id = id.ok_or_else(|| Error::malformed("a type has no id").at(begin))?;
            if self.classes.len() == MAX_CLASSES {
                return Err(Error::new(ErrorKind::Limit, format!("it has more than {MAX_CLASSES} types")).at(begin));
            }
            if self.by_id.insert(id, self.classes.len() as u32).is_some() {
                return Err(Error::malformed(format!("there are two types of id {id}")).at(begin));
            }
            let class = Class::named(own_name);
            if let Some(pool) = class.pool {
                self.of_pools[pool as usize] = Some(self.classes.len() as u32);
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
            let known = NAMES.iter().find(|(name, _)| *name.as_bytes() == *own_name);
            let field = known.map_or(Field::Other, |&(_, field)| field);
            within.fields.push(Member { field, class, is_constant, is_array });
        }
        Ok(Open { children: cursor.count()?, is_class })
    }

    pub fn class_of(&self, id: i64) -> Option<&Class<'t>> {
        self.by_id.get(&id).map(|&number| &self.classes[number as usize])
    }

    fn class(&self, id: i64, cursor: &Cursor<'t>) -> Result<&Class<'t>> {
        self.class_of(id).ok_or_else(|| Error::malformed(format!("there is no type {id}")).at(cursor.offset()))
    }

    /// Goes over an object, and notes where the fields are that are read.
    pub fn places(&self, class: &Class<'t>, cursor: &mut Cursor<'t>, steps: &mut Steps) -> Result<Places<'t>> {
        let mut places = NO_PLACE;
        for member in &class.fields {
            places[member.field as usize] = Some(*cursor);
            self.skip_member(member, cursor, steps, 0)?;
        }
        Ok(places)
    }

    fn skip_member(&self, member: &Member, cursor: &mut Cursor<'t>, steps: &mut Steps, depth: usize) -> Result<()> {
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

    /// Goes over a value of a type.
    pub fn skip(&self, class: &Class<'t>, cursor: &mut Cursor<'t>, steps: &mut Steps) -> Result<()> {
        self.skip_at(class, cursor, steps, 0)
    }

    fn skip_at(&self, class: &Class<'t>, cursor: &mut Cursor<'t>, steps: &mut Steps, depth: usize) -> Result<()> {
        steps.take(1)?;
        match class.shape {
            Shape::Bytes(n) => _ = cursor.bytes(n)?,
            Shape::Short => _ = cursor.short()?,
            Shape::Int => _ = cursor.int()?,
            Shape::Long => _ = cursor.long()?,
            Shape::Text => {
                let begin = cursor.offset();
                skip_text(cursor)?;
                // Two bytes of a character may have to be looked at.
                steps.take((cursor.offset() - begin) / 8)?;
            }
            Shape::Fields if depth == MAX_DEPTH => {
                return Err(Error::new(ErrorKind::Limit, "its types are in one another too deeply").at(cursor.offset()));
            }
            Shape::Fields => {
                for member in &class.fields {
                    self.skip_member(member, cursor, steps, depth)?;
                }
            }
        }
        Ok(())
    }

    /// The type of the elements of an array, if that is what a field of a class is.
    pub fn elements(&self, class: &Class<'t>, field: Field) -> Option<&Class<'t>> {
        let member = class.fields.iter().find(|member| member.field == field)?;
        (member.is_array && !member.is_constant).then(|| self.class_of(member.class)).flatten()
    }

    /// The type of a kind of constants.
    pub fn class_of_pool(&self, pool: Pool) -> Option<&Class<'t>> {
        self.of_pools[pool as usize].map(|number| &self.classes[number as usize])
    }
}

impl<'t> Class<'t> {
    fn named(name: Cow<'t, [u8]>) -> Class<'t> {
        let shape = match &*name {
            b"boolean" | b"byte" => Shape::Bytes(1),
            b"char" | b"short" => Shape::Short,
            b"int" => Shape::Int,
            b"long" => Shape::Long,
            b"float" => Shape::Bytes(4),
            b"double" => Shape::Bytes(8),
            b"java.lang.String" => Shape::Text,
            _ => Shape::Fields,
        };
        let event = EVENTS.iter().position(|event| *event.name.as_bytes() == *name);
        let pool = POOLS.iter().find(|(of, _)| *of.as_bytes() == *name).map(|&(_, pool)| pool);
        Class { name, shape, fields: Vec::new(), event, pool }
    }

    /// Returns true if the class has this field.
    pub fn has(&self, field: Field) -> bool {
        self.fields.iter().any(|member| member.field == field)
    }

    pub fn full_name(&self) -> &[u8] {
        &self.name
    }

    /// Its name, as far as an error has room for it.
    pub fn name(&self) -> String {
        super::super::quoted(&self.name)
    }
}

fn read_texts<'t>(cursor: &mut Cursor<'t>) -> Result<Vec<Cow<'t, [u8]>>> {
    let at = cursor.offset();
    let count = cursor.count()?;
    if count > MAX_TEXTS {
        return Err(Error::new(ErrorKind::Limit, format!("its types have more than {MAX_TEXTS} texts")).at(at));
    }
    (0..count)
        .map(|_| match cursor.text()? {
            Text::Here(text) => Ok(text),
            Text::Constant(_) => Err(Error::malformed("a text of a type is a constant").at(at)),
        })
        .collect()
}

/// Goes over a text without making one.
fn skip_text(cursor: &mut Cursor<'_>) -> Result<()> {
    let mut copy = *cursor;
    if copy.byte()? == 4 {
        for _ in 0..copy.count()? {
            copy.short()?;
        }
        *cursor = copy;
        return Ok(());
    }
    cursor.text().map(|_| ())
}

/// How many values may still be passed over: types may hold nothing but a hundred others in turn, and many constants may refer
/// to a large one.
#[derive(Debug)]
pub(super) struct Steps(usize);

const STEPS: usize = 1 << 20;
const STEPS_A_BYTE: usize = 16;

impl Steps {
    /// For a chunk of so many bytes.
    pub fn for_chunk(size: usize) -> Steps {
        Steps(STEPS.saturating_add(size.saturating_mul(STEPS_A_BYTE)))
    }

    fn take(&mut self, n: usize) -> Result<()> {
        match self.0.checked_sub(n) {
            Some(left) => self.0 = left,
            None => {
                let detail = "it has more values in one another than are read of a chunk of its size";
                return Err(Error::new(ErrorKind::Limit, detail));
            }
        }
        Ok(())
    }
}
