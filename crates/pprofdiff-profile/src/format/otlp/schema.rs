//! The messages of the protocol as tables: names in JSON, numbers in protobuf, and which numbers are places in a table of
//! the dictionary. Of everything that is read; what is not read has no row, and is dropped.

use super::dictionary::{ATTRIBUTES, FUNCTIONS, LOCATIONS, MAPPINGS, STACKS, STRINGS};

/// How a field's value is written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Int,
    Flag,
    /// 64 bits.
    Fixed,
    Double,
    Text,
    Bytes,
    /// A place in a table.
    Index(usize),
    Message(&'static [Field]),
    /// A message of which 1.8 has other numbers.
    Profile,
}

/// A field of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub name: &'static str,
    /// Its name before 1.9.
    pub old_name: &'static str,
    pub number: u32,
    /// Its number in 1.8 and 1.9.
    pub before: u32,
    pub kind: Kind,
}

const fn field(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { name, old_name: name, number, before: number, kind }
}

/// A field that had another number in 1.9.
const fn moved(number: u32, before: u32, name: &'static str, kind: Kind) -> Field {
    Field { before, ..field(number, name, kind) }
}

/// A field that had another name in 1.8.
const fn renamed(number: u32, old_name: &'static str, name: &'static str, kind: Kind) -> Field {
    Field { old_name, ..field(number, name, kind) }
}

pub(super) static RESOURCE_PROFILES: [Field; 2] =
    [field(1, "resource", Kind::Message(&RESOURCE)), field(2, "scopeProfiles", Kind::Message(&SCOPE_PROFILES))];

static RESOURCE: [Field; 1] = [field(1, "attributes", Kind::Message(&KEY_VALUE))];

static SCOPE_PROFILES: [Field; 1] = [field(2, "profiles", Kind::Profile)];

pub(super) static PROFILE: [Field; 7] = [
    field(1, "sampleType", Kind::Message(&VALUE_TYPE)),
    renamed(2, "sample", "samples", Kind::Message(&SAMPLE)),
    field(3, "timeUnixNano", Kind::Fixed),
    field(4, "durationNano", Kind::Int),
    field(5, "periodType", Kind::Message(&VALUE_TYPE)),
    field(6, "period", Kind::Int),
    field(11, "attributeIndices", Kind::Index(ATTRIBUTES)),
];

/// As 1.8 has it. Its comments (7) are dropped.
pub(super) static PROFILE_1_8: [Field; 7] = [
    field(1, "sampleType", Kind::Message(&VALUE_TYPE)),
    field(2, "sample", Kind::Message(&SAMPLE)),
    field(3, "timeUnixNano", Kind::Fixed),
    field(4, "durationNano", Kind::Int),
    field(5, "periodType", Kind::Message(&VALUE_TYPE)),
    field(6, "period", Kind::Int),
    moved(11, 12, "attributeIndices", Kind::Index(ATTRIBUTES)),
];

static VALUE_TYPE: [Field; 2] =
    [field(1, "typeStrindex", Kind::Index(STRINGS)), field(2, "unitStrindex", Kind::Index(STRINGS))];

static SAMPLE: [Field; 4] = [
    field(1, "stackIndex", Kind::Index(STACKS)),
    moved(2, 3, "attributeIndices", Kind::Index(ATTRIBUTES)),
    moved(4, 2, "values", Kind::Int),
    field(5, "timestampsUnixNano", Kind::Fixed),
];

/// The dictionary's tables, of which links are not read.
pub(super) static DICTIONARY: [Field; 6] = [
    field(MAPPINGS as u32, "mappingTable", Kind::Message(&MAPPING)),
    field(LOCATIONS as u32, "locationTable", Kind::Message(&LOCATION)),
    field(FUNCTIONS as u32, "functionTable", Kind::Message(&FUNCTION)),
    field(STRINGS as u32, "stringTable", Kind::Text),
    field(ATTRIBUTES as u32, "attributeTable", Kind::Message(&ATTRIBUTE)),
    field(STACKS as u32, "stackTable", Kind::Message(&STACK)),
];

static MAPPING: [Field; 5] = [
    field(1, "memoryStart", Kind::Int),
    field(2, "memoryLimit", Kind::Int),
    field(3, "fileOffset", Kind::Int),
    field(4, "filenameStrindex", Kind::Index(STRINGS)),
    field(5, "attributeIndices", Kind::Index(ATTRIBUTES)),
];

static LOCATION: [Field; 4] = [
    field(1, "mappingIndex", Kind::Index(MAPPINGS)),
    field(2, "address", Kind::Int),
    renamed(3, "line", "lines", Kind::Message(&LINE)),
    field(4, "attributeIndices", Kind::Index(ATTRIBUTES)),
];

static LINE: [Field; 3] =
    [field(1, "functionIndex", Kind::Index(FUNCTIONS)), field(2, "line", Kind::Int), field(3, "column", Kind::Int)];

static FUNCTION: [Field; 4] = [
    field(1, "nameStrindex", Kind::Index(STRINGS)),
    field(2, "systemNameStrindex", Kind::Index(STRINGS)),
    field(3, "filenameStrindex", Kind::Index(STRINGS)),
    field(4, "startLine", Kind::Int),
];

static ATTRIBUTE: [Field; 3] = [
    field(1, "keyStrindex", Kind::Index(STRINGS)),
    field(2, "value", Kind::Message(&ANY_VALUE)),
    field(3, "unitStrindex", Kind::Index(STRINGS)),
];

static STACK: [Field; 1] = [field(1, "locationIndices", Kind::Index(LOCATIONS))];

static KEY_VALUE: [Field; 3] = [
    field(1, "key", Kind::Text),
    field(2, "value", Kind::Message(&ANY_VALUE)),
    field(3, "keyStrindex", Kind::Index(STRINGS)),
];

/// The types of a value. A message sets at most one of them.
pub(super) static ANY_VALUE: [Field; 8] = [
    field(1, "stringValue", Kind::Text),
    field(2, "boolValue", Kind::Flag),
    field(3, "intValue", Kind::Int),
    field(4, "doubleValue", Kind::Double),
    field(5, "arrayValue", Kind::Message(&ARRAY_VALUE)),
    field(6, "kvlistValue", Kind::Message(&KEY_VALUE_LIST)),
    field(7, "bytesValue", Kind::Bytes),
    field(8, "stringValueStrindex", Kind::Index(STRINGS)),
];

static ARRAY_VALUE: [Field; 1] = [field(1, "values", Kind::Message(&ANY_VALUE))];

static KEY_VALUE_LIST: [Field; 1] = [field(1, "values", Kind::Message(&KEY_VALUE))];
