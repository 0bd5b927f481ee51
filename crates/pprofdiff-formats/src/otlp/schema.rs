//! The messages of the protocol as tables of fields: the name in JSON, the number in protobuf, and whether the value is
//! an index into a table of the dictionary. Fields without a row are not read, and are dropped.

use super::dictionary::{ATTRIBUTES, FUNCTIONS, LOCATIONS, MAPPINGS, STACKS, STRINGS};

/// The encoding of a field's value.
#[derive(Debug, Clone, Copy)]
pub(super) enum FieldKind {
    Int,
    Flag,
    /// A number of 64 bits.
    Fixed,
    Double,
    Text,
    Bytes,
    /// An index into a table of the dictionary.
    Index(usize),
    Message(&'static [FieldSchema]),
    /// A profile, a message whose field numbers differ in 1.8.
    Profile,
}

/// A field of a message.
#[derive(Debug)]
pub(super) struct FieldSchema {
    pub name: &'static str,
    /// The name in 1.8.
    pub old_name: &'static str,
    pub number: u32,
    /// The number in 1.8 and 1.9.
    pub old_number: u32,
    pub kind: FieldKind,
}

const fn field(number: u32, name: &'static str, kind: FieldKind) -> FieldSchema {
    FieldSchema { name, old_name: name, number, old_number: number, kind }
}

/// Describes a field that had another number before 1.10.
const fn moved(number: u32, old_number: u32, name: &'static str, kind: FieldKind) -> FieldSchema {
    FieldSchema { old_number, ..field(number, name, kind) }
}

/// Describes a field that had another name in 1.8.
const fn renamed(number: u32, old_name: &'static str, name: &'static str, kind: FieldKind) -> FieldSchema {
    FieldSchema { old_name, ..field(number, name, kind) }
}

pub(super) static RESOURCE_PROFILES: [FieldSchema; 2] = [
    field(1, "resource", FieldKind::Message(&RESOURCE)),
    field(2, "scopeProfiles", FieldKind::Message(&SCOPE_PROFILES)),
];

static RESOURCE: [FieldSchema; 1] = [field(1, "attributes", FieldKind::Message(&KEY_VALUE))];

static SCOPE_PROFILES: [FieldSchema; 1] = [field(2, "profiles", FieldKind::Profile)];

pub(super) static PROFILE: [FieldSchema; 7] = [
    field(1, "sampleType", FieldKind::Message(&VALUE_TYPE)),
    renamed(2, "sample", "samples", FieldKind::Message(&SAMPLE)),
    field(3, "timeUnixNano", FieldKind::Fixed),
    field(4, "durationNano", FieldKind::Int),
    field(5, "periodType", FieldKind::Message(&VALUE_TYPE)),
    field(6, "period", FieldKind::Int),
    field(11, "attributeIndices", FieldKind::Index(ATTRIBUTES)),
];

/// The profile in 1.8. Its comments (field 7) are dropped.
pub(super) static PROFILE_1_8: [FieldSchema; 7] = [
    field(1, "sampleType", FieldKind::Message(&VALUE_TYPE)),
    field(2, "sample", FieldKind::Message(&SAMPLE)),
    field(3, "timeUnixNano", FieldKind::Fixed),
    field(4, "durationNano", FieldKind::Int),
    field(5, "periodType", FieldKind::Message(&VALUE_TYPE)),
    field(6, "period", FieldKind::Int),
    moved(11, 12, "attributeIndices", FieldKind::Index(ATTRIBUTES)),
];

static VALUE_TYPE: [FieldSchema; 2] =
    [field(1, "typeStrindex", FieldKind::Index(STRINGS)), field(2, "unitStrindex", FieldKind::Index(STRINGS))];

static SAMPLE: [FieldSchema; 4] = [
    field(1, "stackIndex", FieldKind::Index(STACKS)),
    moved(2, 3, "attributeIndices", FieldKind::Index(ATTRIBUTES)),
    moved(4, 2, "values", FieldKind::Int),
    field(5, "timestampsUnixNano", FieldKind::Fixed),
];

/// The dictionary's tables. The table of links is not read.
pub(super) static DICTIONARY: [FieldSchema; 6] = [
    field(MAPPINGS as u32, "mappingTable", FieldKind::Message(&MAPPING)),
    field(LOCATIONS as u32, "locationTable", FieldKind::Message(&LOCATION)),
    field(FUNCTIONS as u32, "functionTable", FieldKind::Message(&FUNCTION)),
    field(STRINGS as u32, "stringTable", FieldKind::Text),
    field(ATTRIBUTES as u32, "attributeTable", FieldKind::Message(&ATTRIBUTE)),
    field(STACKS as u32, "stackTable", FieldKind::Message(&STACK)),
];

static MAPPING: [FieldSchema; 5] = [
    field(1, "memoryStart", FieldKind::Int),
    field(2, "memoryLimit", FieldKind::Int),
    field(3, "fileOffset", FieldKind::Int),
    field(4, "filenameStrindex", FieldKind::Index(STRINGS)),
    field(5, "attributeIndices", FieldKind::Index(ATTRIBUTES)),
];

static LOCATION: [FieldSchema; 4] = [
    field(1, "mappingIndex", FieldKind::Index(MAPPINGS)),
    field(2, "address", FieldKind::Int),
    renamed(3, "line", "lines", FieldKind::Message(&LINE)),
    field(4, "attributeIndices", FieldKind::Index(ATTRIBUTES)),
];

static LINE: [FieldSchema; 3] = [
    field(1, "functionIndex", FieldKind::Index(FUNCTIONS)),
    field(2, "line", FieldKind::Int),
    field(3, "column", FieldKind::Int),
];

static FUNCTION: [FieldSchema; 4] = [
    field(1, "nameStrindex", FieldKind::Index(STRINGS)),
    field(2, "systemNameStrindex", FieldKind::Index(STRINGS)),
    field(3, "filenameStrindex", FieldKind::Index(STRINGS)),
    field(4, "startLine", FieldKind::Int),
];

static ATTRIBUTE: [FieldSchema; 3] = [
    field(1, "keyStrindex", FieldKind::Index(STRINGS)),
    field(2, "value", FieldKind::Message(&ANY_VALUE)),
    field(3, "unitStrindex", FieldKind::Index(STRINGS)),
];

static STACK: [FieldSchema; 1] = [field(1, "locationIndices", FieldKind::Index(LOCATIONS))];

static KEY_VALUE: [FieldSchema; 3] = [
    field(1, "key", FieldKind::Text),
    field(2, "value", FieldKind::Message(&ANY_VALUE)),
    field(3, "keyStrindex", FieldKind::Index(STRINGS)),
];

/// The types of a value. A message sets at most one of them.
pub(super) static ANY_VALUE: [FieldSchema; 8] = [
    field(1, "stringValue", FieldKind::Text),
    field(2, "boolValue", FieldKind::Flag),
    field(3, "intValue", FieldKind::Int),
    field(4, "doubleValue", FieldKind::Double),
    field(5, "arrayValue", FieldKind::Message(&ARRAY_VALUE)),
    field(6, "kvlistValue", FieldKind::Message(&KEY_VALUE_LIST)),
    field(7, "bytesValue", FieldKind::Bytes),
    field(8, "stringValueStrindex", FieldKind::Index(STRINGS)),
];

static ARRAY_VALUE: [FieldSchema; 1] = [field(1, "values", FieldKind::Message(&ANY_VALUE))];

static KEY_VALUE_LIST: [FieldSchema; 1] = [field(1, "values", FieldKind::Message(&KEY_VALUE))];
