//! OpenTelemetry profiles: a `ProfilesData` message (or `ExportProfilesServiceRequest`, which has the same fields), as
//! the OpenTelemetry eBPF profiler, its collector and async-profiler write it in protobuf. `combine.rs` reads files
//! with several messages, and JSON.
//!
//! ```text
//! ProfilesData: ResourceProfiles (a resource: attributes) > ScopeProfiles > Profile (one sample type) > Sample
//!               ProfilesDictionary: tables of mappings, locations, functions, strings, attributes, stacks
//! ```
//!
//! All references are indexes into the dictionary. Index 0 means "none", and entry 0 of each table is the zero value.
//!
//! **Numberings.** Protocol 1.10 renumbered the fields of `Sample`, and a message does not record its protocol version:
//!
//! | field | 1.8, 1.9 | 1.10 |
//! |---|---|---|
//! | `stack_index`, number | 1 | 1 |
//! | `values`, packed numbers | 2 | 4 |
//! | `attribute_indices`, packed numbers | 3 | 2 |
//! | `link_index`, number | 4 | 3 |
//! | `timestamps_unix_nano`, packed, 64 bits each | 5 | 5 |
//!
//! The reader infers the numbering. A sample fits a numbering if all of these are true:
//!
//! - its fields have the types in the table above;
//! - its attributes and its link exist in the dictionary;
//! - its repeated numbers are all packed or all unpacked (async-profiler packs none of them);
//! - it has values or timestamps; with both, it has the same number of each.
//!
//! The first sample that fits only one numbering decides. If all samples fit both, but with different meanings, the
//! caller has to name the format. This happens if samples have timestamps, and field 2 has the same number of small
//! numbers.
//!
//! Protocol 1.10 also lets attributes refer to strings of the dictionary (`key_strindex`, `string_value_strindex`). The
//! reader accepts these in both numberings. Protocol 1.9 removed `comment_strindices` from `Profile`, which renumbered
//! the fields after it; the types of these fields show which version a message has. In a 1.8 message without any of
//! these fields, the comments are not found. Releases before 1.8 lack a table of stacks and are not supported.
//!
//! **Conversion.** A profile has one sample type. A sample has one value, or a value for each timestamp, or timestamps
//! that count 1 each; the sum becomes the value. The sample types of all profiles become the sample types of one
//! profile. Samples with the same stack, attributes and resource are merged into one sample with a value for each type,
//! or 0 where there is none. This undoes the collector's own conversion of `profile.proto`, which writes one profile
//! per type.
//!
//! The collector's converter refuses more than one resource. Here the attributes of resources become labels: the
//! profiler of a host writes a resource for each container, and users want to see the whole host, or a single service
//! by `service.name`. The labels are added even if there is only one resource, so that a filter has the same effect on
//! each of several files. If a sample type occurs in two units, the user has to choose one with `--input-type`.
//!
//! A time window selects timestamps and their values; every sample must have timestamps. The recording begins with the
//! first profile, or with the first timestamp if no profile has a start time.
//!
//! Attributes of samples, profiles and resources become labels. Integers become numeric labels with their unit. All
//! other values become text: bytes in hex, lists and maps as in JSON. Attributes of mappings supply the build id
//! (`process.executable.build_id.gnu`, else `.go`, else `.htlhash`). The attributes that the collector's conversion of
//! `profile.proto` adds, such as `pprof.location.is_folded` of locations and `pprof.profile.*` of profiles, are
//! converted back.
//!
//! **Not read:** the time of each sample; links to spans, whose ids occur in no other profile; scopes; other attributes
//! of mappings and locations, such as `profile.frame.type`; the temporality of types; the original payload. Attributes
//! without a value, and integers that are 0 without a unit, are dropped because `profile.proto` cannot represent them
//! as labels.
//!
//! Sources: <https://github.com/open-telemetry/opentelemetry-proto>, `profiles/v1development/profiles.proto` of v1.8.0,
//! v1.9.0, v1.10.0 and v1.11.0, which has the fields of v1.10.0;
//! <https://opentelemetry.io/docs/specs/semconv/general/profiles/>; the collector's conversions,
//! `pkg/translator/pprof` of opentelemetry-collector-contrib.
//!
//! **Cost.** The tables are offsets into the message, and a sample's key is a few numbers, so memory is proportional to
//! the message. The exception is the output: `profile.proto` has no table of stacks, so each sample repeats its stack.
//! The output is limited to [`LoadOptions::inflated_limit`]. It is written directly, because the records of a builder
//! would be larger than the records of the message. It is then loaded like any other profile, which validates it.

mod attributes;
mod combine;
mod convert;
mod dictionary;
mod recognise;
mod samples;
mod schema;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::timed;

use crate::InputFormat;
use crate::LoadOptions;
use attributes::AttributeRole;
use combine::combine;
use pprofdiff_profile::Profile;
use pprofdiff_profile::columns::StringId;
use pprofdiff_profile::interner::{Interner, Sequences};
use pprofdiff_profile::random::{HashMap, RandomState};
use pprofdiff_profile::samples::{Label, LabelValue};
use pprofdiff_profile::shared::wire::{Fields, for_each_int};
use pprofdiff_profile::{Error, ErrorKind, Result};
use recognise::recognises;

pub(crate) const OTLP: InputFormat = InputFormat {
    name: "otlp",
    about: "OpenTelemetry profiles in protobuf or JSON, from protocol 1.10 on",
    has_times: true,
    has_events: false,
    recognises,
    read: |name, data, options| read(name, data, options, CURRENT),
};

pub(crate) const OTLP_1_9: InputFormat = InputFormat {
    name: "otlp-1.9",
    about: "OpenTelemetry profiles, protocol 1.8 and 1.9",
    has_times: true,
    has_events: false,
    // `otlp` recognises both formats, and then infers which one it is.
    recognises: |_| false,
    read: |name, data, options| read(name, data, options, BEFORE),
};

/// The field numbers of a sample that changed in protocol 1.10.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Numbering {
    values: u64,
    attributes: u64,
    link: u64,
}

const CURRENT: Numbering = Numbering { attributes: 2, link: 3, values: 4 };
const BEFORE: Numbering = Numbering { values: 2, attributes: 3, link: 4 };

fn read(name: &str, mut data: Vec<u8>, options: &LoadOptions, named: Numbering) -> Result<Profile> {
    let mut named = options.input_format.map(|_| named);
    let combined = combine(&data, named, options.inflated_limit)?;
    let is_combined = combined.is_some();
    if let Some(message) = combined {
        (data, named) = (message, Some(CURRENT));
    }
    if data.len() > u32::MAX as usize {
        return Err(Error::new(ErrorKind::Limit, "the message is larger than 4 GiB, the limit for offsets of 32 bits"));
    }
    let mut message = OtlpMessage::scan(&data)?;
    let numbering = if named.is_some() { named } else { message.numbering()? };
    // Offsets in a combined message are not offsets in the file, so errors must not report them.
    let converted =
        message.convert(numbering, options).map_err(|e| if is_combined { e.of_part(None, None) } else { e })?;
    drop(message);
    drop(data);
    Profile::decode(name, converted)
}

/// An OTLP message: the positions of its records, and its decoded attributes. All records are validated once, and are
/// decoded again when they are needed.
struct OtlpMessage<'a> {
    data: &'a [u8],
    /// The offset of each record's field in `data`. The tables are in the order of their field numbers in the
    /// dictionary.
    tables: [Vec<u32>; 8],
    n_links: u64,
    /// The offset of each profile's field, and the index of its resource.
    profiles: Vec<(u32, u32)>,
    /// The labels of each distinct resource.
    resources: Sequences<Label, RandomState>,
    /// For each attribute of the dictionary, the index in `attributes` of its label and role. 0 means that the
    /// attribute is ignored.
    attribute_ids: Vec<u32>,
    attributes: Interner<(Label, AttributeRole), RandomState>,
    /// Strings that were not in the dictionary. Their ids follow the ids of the dictionary's strings.
    texts: Sequences<u8, RandomState>,
    /// Maps strings of the dictionary to their ids in `texts`. Each text of a label or type then has a single id.
    canonical: HashMap<u32, StringId>,
    /// The bytes of text that may still be made from attribute values such as lists. Values may refer to long strings
    /// again and again.
    room: usize,
}

const NOTHING: Label = Label { key: StringId::EMPTY, value: LabelValue::Text(StringId::EMPTY) };

impl<'a> OtlpMessage<'a> {
    /// Finds all records, and validates the records of the dictionary.
    fn scan(data: &'a [u8]) -> Result<OtlpMessage<'a>> {
        let mut message = OtlpMessage {
            data,
            tables: Default::default(),
            n_links: 0,
            profiles: Vec::new(),
            resources: Sequences::default(),
            attribute_ids: Vec::new(),
            attributes: Interner::default(),
            texts: Sequences::default(),
            canonical: HashMap::default(),
            room: (1 << 20) + data.len(),
        };
        let (mut fields, mut dictionary) = (Fields::new(data, 0), None);
        let mut begun = false;
        loop {
            let next =
                fields.next().map_err(|e| if begun { e } else { e.prefixed("this is not an OTLP message: ") })?;
            let Some((field, value)) = next else { break };
            if field == 2 {
                let content = fields.message(value).map_err(|e| e.in_record(|| "dictionary".into()))?;
                if dictionary.replace(content).is_some() {
                    let detail = "the file contains two concatenated messages; split it into two files";
                    return Err(Error::malformed(detail).at(fields.offset()));
                }
            }
            begun = true;
        }
        if let Some(dictionary) = dictionary {
            message.find_records(dictionary)?;
        }
        message.check_tables()?;
        let (mut fields, mut number) = (Fields::new(data, 0), 0);
        while let Some((field, value)) = fields.next()? {
            if field == 1 {
                let content = fields.message(value);
                let read = content.and_then(|content| message.resource_profiles(content));
                read.map_err(|e| e.in_record(|| format!("resource {number}")).at(fields.offset()))?;
                number += 1;
            }
        }
        Ok(message)
    }

    fn resource_profiles(&mut self, content: Fields<'a>) -> Result<()> {
        let mut labels = Vec::new();
        let mut fields = content.clone();
        while let Some((field, value)) = fields.next()? {
            if field != 1 {
                continue;
            }
            let mut resource = fields.message(value)?;
            while let Some((field, value)) = resource.next()? {
                if field == 1 {
                    let label = self.key_value(resource.message(value)?)?;
                    labels.extend(Some(label).filter(|l| *l != NOTHING));
                }
            }
        }
        let resource = self.resources.number(&labels);
        let mut fields = content;
        while let Some((field, value)) = fields.next()? {
            if field != 2 {
                continue;
            }
            let mut scope = fields.message(value)?;
            loop {
                let start = scope.offset();
                let Some((field, value)) = scope.next()? else { break };
                if field == 2 {
                    value.bytes()?;
                    self.profiles.push((start as u32, resource));
                }
            }
        }
        Ok(())
    }
}

/// Calls `f` with each number of a repeated field.
fn each_number(mut fields: Fields<'_>, field: u64, mut f: impl FnMut(u64) -> Result<()>) -> Result<()> {
    while let Some((number, value)) = fields.next()? {
        if number == field {
            for_each_int(value, &mut f)?;
        }
    }
    Ok(())
}

/// Returns the 64-bit number in the field between these offsets, if the field has that wire type.
fn fixed64(data: &[u8], start: usize, end: usize) -> Option<u64> {
    let bytes = data.get(start..end)?;
    let is_64 = bytes.first()? & 7 == 1;
    bytes.last_chunk().filter(|_| is_64).map(|chunk| u64::from_le_bytes(*chunk))
}

fn too_large() -> Error {
    Error::malformed("the values add up to more than an int64 holds")
}
