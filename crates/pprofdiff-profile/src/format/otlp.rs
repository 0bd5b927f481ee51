//! OpenTelemetry profiles: a `ProfilesData` message (or `ExportProfilesServiceRequest`, whose fields are the same), as the
//! OpenTelemetry eBPF profiler, its collector and async-profiler write it in protobuf; or several, and JSON (`combine.rs`).
//!
//! ```text
//! ProfilesData: ResourceProfiles (a resource: attributes) > ScopeProfiles > Profile (one sample type) > Sample
//!               ProfilesDictionary: tables of mappings, locations, functions, strings, attributes, stacks
//! ```
//!
//! Everything refers to the dictionary by index. Index 0 means "none", and entry 0 of each table is the zero value.
//!
//! **Numberings.** Protocol 1.10 renumbered the fields of `Sample`, and a message does not say which it is in:
//!
//! | field | 1.8, 1.9 | 1.10 |
//! |---|---|---|
//! | `stack_index`, number | 1 | 1 |
//! | `values`, packed numbers | 2 | 4 |
//! | `attribute_indices`, packed numbers | 3 | 2 |
//! | `link_index`, number | 4 | 3 |
//! | `timestamps_unix_nano`, packed, 64 bits each | 5 | 5 |
//!
//! A sample fits a numbering if its fields have the types that this says, its attributes and its link are in the
//! tables, its repeated numbers are all packed or all not (async-profiler packs none), and it has values or timestamps,
//! and as many of one as of the other if it has both. The first sample that fits only one numbering decides. If all fit
//! both and mean something else in each, the caller has to name one: that happens to samples that have timestamps, and
//! in field 2 as many small numbers. 1.10 also lets attributes refer to strings of the dictionary (`key_strindex`,
//! `string_value_strindex`), which are read in both. 1.9 left `comment_strindices` out of `Profile`, which moved the
//! fields behind it, and their types tell: without any of them its comments are not found. Releases before 1.8 have no
//! table of stacks, and are not read.
//!
//! **What becomes what.** A profile has one sample type, and a sample a value, or one for each timestamp, or timestamps
//! that count 1 each: their sum is the value. The types of all profiles stand side by side. Samples of one stack, with
//! the same attributes and the same resource, are one sample, with a value of each type, 0 where there is none: so the
//! collector's own conversion of `profile.proto`, a profile for each type, is undone. It refuses more than one
//! resource; here the attributes of resources are labels, since the profiler of a host writes a resource for each
//! container, and what is wanted of it is the host, or by `service.name` one service. They are labels even if there is
//! only one resource, so that a filter by them does the same to each of several files. Only a type that is there in two
//! units can't stand beside itself, and has to be chosen by `--input-type`.
//!
//! Of a part of a recording, timestamps within it are read, each with its value; all samples must have some. The recording
//! begins with the first profile, or with the first timestamp if no profile says when it began.
//!
//! Attributes of samples, profiles and resources become labels: numeric ones if they are integers, with their unit,
//! else text: bytes in hex, lists and maps as in JSON. Attributes of mappings give the build id
//! (`process.executable.build_id.gnu`, else `.go`, else `.htlhash`) and, like `pprof.location.is_folded` of locations
//! and `pprof.profile.*` of profiles, what the conversion of `profile.proto` put there.
//!
//! **What is lost:** when each sample was taken; links to spans, whose ids occur in no other profile; scopes; other
//! attributes of mappings and locations, such as `profile.frame.type`; the temporality of types; the original payload.
//! Attributes without a value, and integers that are 0 without a unit, since `profile.proto` has no labels of them.
//!
//! Facts: <https://github.com/open-telemetry/opentelemetry-proto>, `profiles/v1development/profiles.proto` of v1.8.0,
//! v1.9.0, v1.10.0 and v1.11.0, which has the fields of v1.10.0; <https://opentelemetry.io/docs/specs/semconv/general/profiles/>; the collector's conversions,
//! `pkg/translator/pprof` of opentelemetry-collector-contrib.
//!
//! Cost: the tables are offsets into the message, and a sample's key is a few numbers, so memory is in proportion to
//! the message, except that `profile.proto` has no table of stacks: what is made is as large as its stacks are when
//! they are written out for each sample, and at most [`LoadOptions::inflated_limit`]. It is written without a builder,
//! whose records would be larger than those of the message, and loaded as any other, which checks it.

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
pub(super) use tests::timed;

use super::InputFormat;
use crate::error::{Error, ErrorKind, Result};
use crate::interner::{Interner, Sequences};
use crate::profile::wire::{Fields, for_each_int};
use crate::profile::{Label, LabelValue, LoadOptions, Profile, StringId};
use crate::random::{HashMap, RandomState};
use attributes::Role;
use combine::combine;
use recognise::recognises;

pub(super) const OTLP: InputFormat = InputFormat {
    name: "otlp",
    about: "OpenTelemetry profiles in protobuf or JSON, from protocol 1.10 on",
    has_times: true,
    has_events: false,
    recognises,
    read: |name, data, options| read(name, data, options, CURRENT),
};

pub(super) const OTLP_1_9: InputFormat = InputFormat {
    name: "otlp-1.9",
    about: "OpenTelemetry profiles, protocol 1.8 and 1.9",
    has_times: true,
    has_events: false,
    // `otlp` is recognised, and then looks which of them it is.
    recognises: |_| false,
    read: |name, data, options| read(name, data, options, BEFORE),
};

/// The numbers of those fields of a sample that changed.
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
    if let Some(made) = combined {
        (data, named) = (made, Some(CURRENT));
    }
    if data.len() > u32::MAX as usize {
        return Err(Error::new(
            ErrorKind::Limit,
            "the message is larger than 4 GiB, which offsets of 32 bits can't reach",
        ));
    }
    let mut message = Message::scan(&data)?;
    let numbering = if named.is_some() { named } else { message.numbering()? };
    // Places in what was made of several are not those of the file.
    let made = message.convert(numbering, options).map_err(|e| if is_combined { e.of_part(None, None) } else { e })?;
    drop(message);
    drop(data);
    Profile::decode(name, made)
}

/// The message: where its records are, and what its attributes say. Records of tables are read again when they are
/// wanted; they were all checked once.
struct Message<'a> {
    data: &'a [u8],
    /// Where the field of each record begins, by table.
    tables: [Vec<u32>; 8],
    n_links: u64,
    /// Where the field of each profile begins, and the number of its resource.
    profiles: Vec<(u32, u32)>,
    resources: Sequences<Label, RandomState>,
    /// The number of what each attribute says, and what that is: a label, and what else it is for. 0 is for nothing.
    said: Vec<u32>,
    attributes: Interner<(Label, Role), RandomState>,
    /// Strings that are not of the dictionary. Their ids follow those of the dictionary's.
    texts: Sequences<u8, RandomState>,
    /// Those that stand for strings of the dictionary: a text of a label or of a type has one id, wherever it is from.
    canonical: HashMap<u32, StringId>,
    /// How much more text may be made of values that are none: they may refer to long strings again and again.
    room: usize,
}

const NOTHING: Label = Label { key: StringId::EMPTY, value: LabelValue::Text(StringId::EMPTY) };

impl<'a> Message<'a> {
    /// Finds all records, and checks those of the dictionary.
    fn scan(data: &'a [u8]) -> Result<Message<'a>> {
        let mut message = Message {
            data,
            tables: Default::default(),
            n_links: 0,
            profiles: Vec::new(),
            resources: Sequences::default(),
            said: Vec::new(),
            attributes: Interner::default(),
            texts: Sequences::default(),
            canonical: HashMap::default(),
            room: (1 << 20) + data.len(),
        };
        let (mut fields, mut dictionary) = (Fields::new(data, 0), None);
        let mut begun = false;
        loop {
            let next = fields.next().map_err(|e| if begun { e } else { e.prefixed("this is no OTLP message: ") })?;
            let Some((field, value)) = next else { break };
            if field == 2 {
                let content = fields.message(value).map_err(|e| e.in_record(|| "dictionary".into()))?;
                if dictionary.replace(content).is_some() {
                    let detail = "two messages are concatenated here; separate them, and give them as two files";
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

/// The number in a field of 64 bits that begins and ends at these offsets.
fn fixed64(data: &[u8], start: usize, end: usize) -> Option<u64> {
    let bytes = data.get(start..end)?;
    let is_64 = bytes.first()? & 7 == 1;
    bytes.last_chunk().filter(|_| is_64).map(|chunk| u64::from_le_bytes(*chunk))
}

fn too_large() -> Error {
    Error::malformed("the values add up to more than an int64 holds")
}
