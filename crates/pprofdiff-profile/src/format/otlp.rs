//! OpenTelemetry profiles: one `ProfilesData` message (or `ExportProfilesServiceRequest`, whose fields are the same) in
//! protobuf, as the OpenTelemetry eBPF profiler, its collector and async-profiler write it.
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
//! v1.9.0 and v1.10.0; <https://opentelemetry.io/docs/specs/semconv/general/profiles/>; the collector's conversions,
//! `pkg/translator/pprof` of opentelemetry-collector-contrib.
//!
//! Cost: the tables are offsets into the message, and a sample's key is a few numbers, so memory is in proportion to
//! the message, except that `profile.proto` has no table of stacks: what is made is as large as its stacks are when
//! they are written out for each sample, and at most [`LoadOptions::inflated_limit`]. It is written without a builder,
//! whose records would be larger than those of the message, and loaded as any other, which checks it.

use super::InputFormat;
use crate::error::{Error, ErrorKind, Result};
use crate::interner::{Interner, Sequences};
use crate::profile::wire::{Fields, Value, for_each_int, varint};
use crate::profile::{
    About, Header, Label, LabelValue, LoadOptions, Mapping, MessageWriter, NONE, Profile, StringId, Tables, ValueType,
};
use crate::random::{HashMap, HashSet, RandomState};

pub(super) const OTLP: InputFormat = InputFormat {
    name: "otlp",
    about: "OpenTelemetry profiles, from protocol 1.10 on",
    recognises,
    read: |name, data, options| read(name, data, options, CURRENT),
};

pub(super) const OTLP_1_9: InputFormat = InputFormat {
    name: "otlp-1.9",
    about: "OpenTelemetry profiles, protocol 1.8 and 1.9",
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

/// Most sample types of a message: each sample has a number of each, so they cost as much as samples times types.
const MOST_TYPES: usize = 64;

fn read(name: &str, data: Vec<u8>, options: &LoadOptions, named: Numbering) -> Result<Profile> {
    if data.len() > u32::MAX as usize {
        return Err(Error::new(
            ErrorKind::Limit,
            "the message is larger than 4 GiB, which offsets of 32 bits can't reach",
        ));
    }
    let mut message = Message::scan(&data)?;
    let numbering = if options.input_format.is_some() { Some(named) } else { message.numbering()? };
    let made = message.convert(numbering, options)?;
    drop(message);
    drop(data);
    Profile::decode(name, made)
}

/// The beginning must have the outer levels of the message, and either a profile's first field, which is a type made of
/// two numbers, or a dictionary's table of strings or of stacks. Traces, metrics and logs have the same outer levels.
fn recognises(head: &[u8]) -> bool {
    let (mut profiles, mut dictionary) = (false, false);
    let fits = each_field(head, |field, kind, content| match (field, kind) {
        (1, 2) => each_field(content, |field, kind, content| match (field, kind) {
            (2, 2) => each_field(content, |field, kind, content| match (field, kind) {
                (2, 2) => is_profile(content, &mut profiles),
                (1 | 3, 2) => true,
                _ => false,
            }),
            (1 | 3, 2) => true,
            _ => false,
        }),
        (2, 2) => each_field(content, |field, kind, _| {
            dictionary |= field == 5 || field == 7;
            (1..=8).contains(&field) && kind == 2
        }),
        _ => false,
    });
    fits && (profiles || dictionary)
}

/// Of any release, so that older ones can be told what is the matter with them.
fn is_profile(content: &[u8], seen: &mut bool) -> bool {
    each_field(content, |field, kind, content| match (field, kind) {
        (1, 2) => {
            *seen = true;
            each_field(content, |field, kind, _| (1..=3).contains(&field) && kind == 0)
        }
        (3, 1) => true,
        (2..=3 | 5 | 7..=22, 2) | (4..=16 | 19, 0) => true,
        _ => false,
    })
}

/// Calls `f` with the number, the wire type and the content of each field of a message that may be cut off. False if it
/// is no message, or `f` is false.
fn each_field(mut rest: &[u8], mut f: impl FnMut(u64, u64, &[u8]) -> bool) -> bool {
    let cut_off = |rest: &[u8]| rest.len() < 10;
    while !rest.is_empty() {
        let Some((key, n)) = varint(rest) else { return cut_off(rest) };
        rest = &rest[n..];
        let kind = key & 7;
        let len = match (kind, varint(rest)) {
            (0, Some((_, n))) => n as u64,
            (1, _) => 8,
            (5, _) => 4,
            (2, Some((len, n))) => {
                rest = &rest[n..];
                len
            }
            (0 | 2, None) => return cut_off(rest),
            _ => return false,
        };
        let (content, after) = rest.split_at(len.min(rest.len() as u64) as usize);
        if key >> 3 == 0 || !f(key >> 3, kind, content) {
            return false;
        }
        rest = after;
    }
    true
}

/// The dictionary's tables, by their field numbers.
const MAPPINGS: usize = 1;
const LOCATIONS: usize = 2;
const FUNCTIONS: usize = 3;
const STRINGS: usize = 5;
const ATTRIBUTES: usize = 6;
const STACKS: usize = 7;
const TABLES: [&str; 8] = ["", "mapping", "location", "function", "link", "string", "attribute", "stack"];

/// What an attribute is for besides being a label.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Role {
    Label,
    /// Bit of a mapping's flags.
    Flag(u8),
    /// The lowest is taken.
    BuildId(u8),
    Folded,
    Comment,
    DropFrames,
    KeepFrames,
    DocUrl,
}

impl Role {
    /// True if it is said of a whole profile.
    fn is_of_profiles(self) -> bool {
        matches!(self, Role::Comment | Role::DropFrames | Role::KeepFrames | Role::DocUrl)
    }

    fn of(key: &[u8]) -> Role {
        match key {
            b"process.executable.build_id.gnu" => Role::BuildId(0),
            b"process.executable.build_id.go" => Role::BuildId(1),
            b"process.executable.build_id.htlhash" => Role::BuildId(2),
            b"pprof.mapping.has_functions" => Role::Flag(0),
            b"pprof.mapping.has_filenames" => Role::Flag(1),
            b"pprof.mapping.has_line_numbers" => Role::Flag(2),
            b"pprof.mapping.has_inline_frames" => Role::Flag(3),
            b"pprof.location.is_folded" => Role::Folded,
            b"pprof.profile.drop_frames" => Role::DropFrames,
            b"pprof.profile.keep_frames" => Role::KeepFrames,
            b"pprof.profile.doc_url" => Role::DocUrl,
            // The collector numbers comments: `pprof.profile.comment.0`.
            _ => match key.strip_prefix(b"pprof.profile.comment") {
                Some([] | [b'.', ..]) => Role::Comment,
                _ => Role::Label,
            },
        }
    }
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

    fn find_records(&mut self, dictionary: Fields<'a>) -> Result<()> {
        let mut counts = [0usize; 8];
        let mut fields = dictionary.clone();
        while let Some((field, value)) = fields.next().map_err(|e| e.in_record(|| "dictionary".into()))? {
            if (1..8).contains(&field) {
                value.bytes().map_err(|e| e.in_record(|| TABLES[field as usize].to_owned()).at(fields.offset()))?;
                counts[field as usize] += 1;
            }
        }
        // Links are not read.
        self.n_links = std::mem::take(&mut counts[4]) as u64;
        self.tables = counts.map(Vec::with_capacity);
        let mut fields = dictionary;
        loop {
            let start = fields.offset();
            let Some((field, _)) = fields.next()? else { return Ok(()) };
            if (1..8).contains(&field) && field != 4 {
                self.tables[field as usize].push(start as u32);
            }
        }
    }

    /// A record's content; none of an index that stands for nothing in an empty table.
    fn bytes(&self, table: usize, index: u32) -> (&'a [u8], usize) {
        let Some(&start) = self.tables[table].get(index as usize) else { return (&[], 0) };
        let start = start as usize;
        let mut fields = Fields::new(&self.data[start..], start);
        match fields.next() {
            Ok(Some((_, Value::Bytes(bytes)))) => (bytes, fields.offset() - bytes.len()),
            _ => (&[], start),
        }
    }

    fn record(&self, table: usize, index: u32) -> Fields<'a> {
        let (bytes, origin) = self.bytes(table, index);
        Fields::new(bytes, origin)
    }

    /// An index that was read: 0 is always one.
    fn index(&self, table: usize, v: u64) -> Result<u32> {
        let n = self.tables[table].len();
        if v < n as u64 || v == 0 {
            return Ok(v as u32);
        }
        let what = TABLES[table];
        Err(Error::malformed(format!("it refers to {what} {}, and there are {n}", v as i64)))
    }

    fn string_index(&self, v: u64) -> Result<StringId> {
        self.index(STRINGS, v).map(StringId)
    }

    /// The string that was made or found outside the dictionary.
    fn text(&mut self, bytes: &[u8]) -> StringId {
        if bytes.is_empty() {
            return StringId::EMPTY;
        }
        StringId(self.n_strings() as u32 + self.texts.number(bytes))
    }

    /// The id of a label's or a type's text that is a string of the dictionary. Each is looked at once.
    fn canonical(&mut self, v: u64) -> Result<StringId> {
        let id = self.string_index(v)?;
        if let Some(&known) = self.canonical.get(&id.0) {
            return Ok(known);
        }
        let text = self.text(self.bytes(STRINGS, id.0).0);
        self.canonical.insert(id.0, text);
        Ok(text)
    }

    fn n_strings(&self) -> usize {
        self.tables[STRINGS].len().max(1)
    }

    fn check_tables(&mut self) -> Result<()> {
        if !self.bytes(STRINGS, 0).0.is_empty() {
            return Err(Error::malformed("string 0 is not empty").at(self.bytes(STRINGS, 0).1));
        }
        self.attributes.number((NOTHING, Role::Label));
        self.said = Vec::with_capacity(self.tables[ATTRIBUTES].len());
        for index in 0..self.tables[ATTRIBUTES].len() as u32 {
            let record = self.record(ATTRIBUTES, index);
            let at = record.offset();
            let said = self.attribute(record);
            self.said.push(said.map_err(|e| e.in_record(|| format!("attribute {index}")).at(at))?);
        }
        for table in [MAPPINGS, LOCATIONS, FUNCTIONS, STACKS] {
            for index in 0..self.tables[table].len() as u32 {
                let record = self.record(table, index);
                let at = record.offset();
                let check = match table {
                    MAPPINGS => self.check_mapping(record),
                    LOCATIONS => self.check_location(record),
                    FUNCTIONS => self.check_function(record),
                    _ => each_number(record, 1, |v| self.index(LOCATIONS, v).map(|_| ())),
                };
                check.map_err(|e| e.in_record(|| format!("{} {index}", TABLES[table])).at(at))?;
            }
        }
        Ok(())
    }

    fn check_mapping(&self, record: Fields<'a>) -> Result<()> {
        let [_, _, _, file] = record.clone().numbers()?;
        self.string_index(file)?;
        each_number(record, 5, |v| self.index(ATTRIBUTES, v).map(|_| ()))
    }

    fn check_location(&self, record: Fields<'a>) -> Result<()> {
        let [mapping, _] = record.clone().numbers()?;
        self.index(MAPPINGS, mapping)?;
        let mut fields = record.clone();
        while let Some((field, value)) = fields.next()? {
            if field == 3 {
                let [function, _, _] = fields.message(value)?.numbers()?;
                self.index(FUNCTIONS, function)?;
            }
        }
        each_number(record, 4, |v| self.index(ATTRIBUTES, v).map(|_| ()))
    }

    fn check_function(&self, record: Fields<'a>) -> Result<()> {
        let [name, system_name, file, _] = record.numbers()?;
        [name, system_name, file].into_iter().try_for_each(|v| self.string_index(v).map(|_| ()))
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

    /// An attribute of the dictionary: key, value and unit, where key and unit are strings of the dictionary.
    fn attribute(&mut self, mut fields: Fields<'a>) -> Result<u32> {
        let (mut key, mut unit, mut content) = (0, 0, None);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => key = value.varint()?,
                2 => content = Some(fields.message(value)?),
                3 => unit = value.varint()?,
                _ => {}
            }
        }
        let (key, unit) = (self.canonical(key)?, self.canonical(unit)?);
        let label = self.label(key, content, unit)?;
        let role = Role::of(self.string(key));
        Ok(if label == NOTHING { 0 } else { self.attributes.number((label, role)) })
    }

    /// An attribute that brings its own key.
    fn key_value(&mut self, mut fields: Fields<'a>) -> Result<Label> {
        let (mut key, mut content) = (StringId::EMPTY, None);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => key = self.text(value.bytes()?),
                2 => content = Some(fields.message(value)?),
                3 if value.varint()? != 0 => key = self.canonical(value.varint()?)?,
                _ => {}
            }
        }
        self.label(key, content, StringId::EMPTY)
    }

    fn label(&mut self, key: StringId, content: Option<Fields<'a>>, unit: StringId) -> Result<Label> {
        let value = match content {
            Some(content) => self.value(content, unit)?,
            None => NOTHING.value,
        };
        // profile.proto can't tell these from a label without a value.
        let is_nothing = [NOTHING.value, LabelValue::Number(0, StringId::EMPTY)].contains(&value);
        Ok(if is_nothing || key == StringId::EMPTY { NOTHING } else { Label { key, value } })
    }

    /// A value as a label has it.
    fn value(&mut self, content: Fields<'a>, unit: StringId) -> Result<LabelValue> {
        let Some(last) = last_value(content)? else { return Ok(NOTHING.value) };
        Ok(match last.field {
            1 => LabelValue::Text(self.text(last.value.bytes()?)),
            3 => LabelValue::Number(last.value.int()?, unit),
            8 => LabelValue::Text(self.canonical(last.value.varint()?)?),
            _ => {
                let mut text = String::new();
                self.show(&last, &mut text, 0)?;
                self.room = self.room.saturating_sub(text.len());
                LabelValue::Text(self.text(text.as_bytes()))
            }
        })
    }

    /// Writes a value as text. What is nested deeper than people read is left out, which also bounds the recursion.
    fn show(&self, one: &AnyValue<'a>, out: &mut String, depth: u32) -> Result<()> {
        const DEPTH: u32 = 8;
        let value = one.value;
        match one.field {
            1 => self.quote(value.bytes()?, out)?,
            8 => self.quote(self.bytes(STRINGS, self.string_index(value.varint()?)?.0).0, out)?,
            2 => out.push_str(if value.varint()? != 0 { "true" } else { "false" }),
            3 => out.push_str(&value.int()?.to_string()),
            4 => match fixed64(self.data, one.start, one.fields.offset()) {
                Some(bits) => out.push_str(&format!("{:?}", f64::from_bits(bits))),
                None => return Err(Error::malformed("a fraction is not encoded as one (wrong wire type)")),
            },
            7 => value.bytes()?.iter().for_each(|byte| out.push_str(&format!("{byte:02x}"))),
            _ if depth == DEPTH => {
                value.bytes()?;
                out.push_str("...");
            }
            _ => {
                let (begin, end) = if one.field == 5 { ('[', ']') } else { ('{', '}') };
                out.push(begin);
                let (mut items, mut separator) = (one.fields.message(value)?, "");
                while let Some((field, value)) = items.next()? {
                    if field != 1 {
                        continue;
                    }
                    out.push_str(std::mem::replace(&mut separator, ","));
                    let item = items.message(value)?;
                    let item = if one.field == 5 { Some(item) } else { self.show_key(item, out)? };
                    match item.map_or(Ok(None), last_value)? {
                        Some(last) => self.show(&last, out, depth + 1)?,
                        None => out.push_str("null"),
                    }
                }
                out.push(end);
            }
        }
        Ok(())
    }

    /// Writes the key of an entry of a map, and returns its value.
    fn show_key(&self, mut entry: Fields<'a>, out: &mut String) -> Result<Option<Fields<'a>>> {
        let (mut key, mut content) = (&b""[..], None);
        while let Some((field, value)) = entry.next()? {
            match field {
                1 => key = value.bytes()?,
                2 => content = Some(entry.message(value)?),
                3 if value.varint()? != 0 => key = self.bytes(STRINGS, self.string_index(value.varint()?)?.0).0,
                _ => {}
            }
        }
        self.quote(key, out)?;
        out.push(':');
        Ok(content)
    }

    fn quote(&self, bytes: &[u8], out: &mut String) -> Result<()> {
        if out.len() + bytes.len() > self.room {
            let detail = "the values of attributes are too large when the strings that they refer to are put in";
            return Err(Error::new(ErrorKind::Limit, detail));
        }
        out.push_str(&format!("{:?}", String::from_utf8_lossy(bytes)));
        Ok(())
    }

    /// Which numbering the samples are in; none if they are the same in both.
    fn numbering(&self) -> Result<Option<Numbering>> {
        let (mut scratch, mut differ) = (Vec::new(), false);
        for profile in 0..self.profiles.len() {
            let mut fields = self.profile(profile);
            let mut number = 0u64;
            while let Some((field, value)) = fields.next()? {
                if field != 2 {
                    continue;
                }
                let sample = fields.message(value)?;
                let start = sample.offset();
                let mut fits = |n: Numbering| self.sample(sample.clone(), n, true, &mut scratch);
                match (fits(CURRENT), fits(BEFORE)) {
                    (Ok(_), Ok(_)) => {}
                    (Ok(_), Err(_)) => return Ok(Some(CURRENT)),
                    (Err(_), Ok(_)) => return Ok(Some(BEFORE)),
                    (Err(current), Err(before)) => {
                        let detail = format!(
                            "it fits no numbering of OTLP profiles: not that of protocol 1.10 ({}), nor the one before \
                             it ({}); to insist on one, name it: --input-format otlp or --input-format otlp-1.9",
                            current.detail(),
                            before.detail(),
                        );
                        let record = || format!("profile {profile}, sample {number}");
                        return Err(Error::malformed(detail).in_record(record).at(start));
                    }
                }
                if !differ {
                    let mut sample = sample.clone();
                    while let Some((field, _)) = sample.next()? {
                        differ |= (2..=4).contains(&field);
                    }
                }
                number += 1;
            }
        }
        if differ {
            let detail = "the samples fit two numberings of OTLP profiles, and mean something else in each; name the \
                          one that they were written in: --input-format otlp (protocol 1.10 and later) or \
                          --input-format otlp-1.9 (1.8 and 1.9)";
            return Err(Error::malformed(detail));
        }
        Ok(None)
    }

    fn profile(&self, number: usize) -> Fields<'a> {
        let start = self.profiles[number].0 as usize;
        let mut fields = Fields::new(&self.data[start..], start);
        let message = fields.next().ok().flatten().and_then(|(_, value)| fields.message(value).ok());
        message.unwrap_or(Fields::new(&[], start))
    }

    /// A sample's stack and value; what its attributes say goes to `attributes`. `strict` is for telling numberings
    /// apart: a writer packs all repeated numbers, as most do, or none, as async-profiler, and links are in the table.
    fn sample(
        &self,
        mut fields: Fields<'a>,
        numbering: Numbering,
        strict: bool,
        attributes: &mut Vec<u32>,
    ) -> Result<(u32, i64)> {
        attributes.clear();
        let (mut stack, mut sum, mut n_values, mut n_times, mut packed) = (0, 0i64, 0u64, 0u64, None);
        loop {
            let start = fields.offset();
            let Some((field, value)) = fields.next()? else { break };
            let is_repeated = field == 5 || field == numbering.values || field == numbering.attributes;
            if strict && is_repeated {
                let is_packed = matches!(value, Value::Bytes(_));
                if packed.replace(is_packed).is_some_and(|before| before != is_packed) {
                    return Err(Error::malformed("some of its numbers are packed and some are not"));
                }
            }
            if field == 1 {
                stack = self.index(STACKS, value.varint()?)?;
            } else if field == 5 {
                n_times += match value {
                    Value::Bytes(bytes) if bytes.len() % 8 == 0 => bytes.len() as u64 / 8,
                    Value::Fixed if fixed64(self.data, start, fields.offset()).is_some() => 1,
                    _ => return Err(Error::malformed("its timestamps are not numbers of 64 bits")),
                };
            } else if field == numbering.values {
                for_each_int(value, |v| {
                    n_values += 1;
                    sum = sum.checked_add(v as i64).ok_or_else(too_large)?;
                    Ok(())
                })?;
            } else if field == numbering.attributes {
                self.said_of(value, attributes)?;
            } else if field == numbering.link {
                let link = value.varint()?;
                if strict && link != 0 && link >= self.n_links {
                    return Err(Error::malformed(format!("it refers to link {link}, and there are {}", self.n_links)));
                }
            }
        }
        match (n_values, n_times) {
            (0, 0) => Err(Error::malformed("it has no values and no timestamps")),
            (0, _) => Ok((stack, n_times as i64)),
            (_, 0) => Ok((stack, sum)),
            _ if n_values == n_times => Ok((stack, sum)),
            _ => Err(Error::malformed(format!(
                "it has {n_values} values and {n_times} timestamps, which must be as many, unless there are only \
                 values or only timestamps"
            ))),
        }
    }

    /// What an occurrence of attribute indices says.
    fn said_of(&self, value: Value<'a>, attributes: &mut Vec<u32>) -> Result<()> {
        for_each_int(value, |v| {
            let index = self.index(ATTRIBUTES, v)?;
            attributes.extend(self.said.get(index as usize).filter(|said| **said != 0));
            Ok(())
        })
    }

    /// The message as `profile.proto`.
    fn convert(&mut self, numbering: Option<Numbering>, options: &LoadOptions) -> Result<Vec<u8>> {
        let given = (self.text(options.input_type.0.as_bytes()), self.text(options.input_type.1.as_bytes()));
        let (mut types, mut about, mut samples) = (Types::default(), Abouts::default(), Samples::default());
        let mut of_profile = Vec::with_capacity(self.profiles.len());
        for number in 0..self.profiles.len() {
            let record = || format!("profile {number}");
            let head =
                self.head(number, numbering).map_err(|e| e.in_record(record).at(self.profiles[number].0 as usize))?;
            about.add(self, &head);
            let said = &self.attributes.values;
            let attributes = head.attributes.iter().filter(|&&a| !said[a as usize].1.is_of_profiles());
            let context: Vec<u32> = std::iter::once(self.profiles[number].1).chain(attributes.copied()).collect();
            of_profile.push((types.number(head.kind.unwrap_or(given))?, samples.contexts.number(&context)));
        }
        let columns = types.columns(self, given)?;
        for (number, (kind, context)) in of_profile.into_iter().enumerate() {
            if let Some(column) = columns.of_type[kind as usize] {
                self.add_samples(number, numbering.unwrap_or(CURRENT), column, context, &mut samples)?;
            }
        }
        self.write(&columns.types, &about.finish(), &samples, options)
    }

    fn add_samples(
        &self,
        profile: usize,
        numbering: Numbering,
        column: u32,
        context: u32,
        samples: &mut Samples,
    ) -> Result<()> {
        let (mut attributes, mut key) = (Vec::new(), Vec::new());
        let mut fields = self.profile(profile);
        let mut number = 0u64;
        while let Some((field, value)) = fields.next()? {
            if field != 2 {
                continue;
            }
            let mut add = || {
                let sample = fields.message(value)?;
                let start = sample.offset();
                let (stack, value) = self.sample(sample, numbering, false, &mut attributes).map_err(|e| e.at(start))?;
                attributes.sort_unstable();
                attributes.dedup();
                key.clear();
                key.extend_from_slice(&[context, stack]);
                key.extend_from_slice(&attributes);
                samples.add(&key, column, value).map_err(|e| e.at(start))
            };
            add().map_err(|e| e.in_record(|| format!("profile {profile}, sample {number}")))?;
            number += 1;
        }
        Ok(())
    }

    /// Everything of a profile but its samples.
    fn head(&mut self, number: usize, numbering: Option<Numbering>) -> Result<Head> {
        let mut fields = self.profile(number);
        let mut head = Head::default();
        // Protocol 1.8 has comments in field 7, and the fields behind them one further, where they are of other types.
        let (mut field_7, mut field_11, mut field_12, mut is_1_8) = (Vec::new(), Vec::new(), Vec::new(), false);
        loop {
            let start = fields.offset();
            let Some((field, value)) = fields.next()? else { break };
            match (field, value) {
                (1 | 5, _) => {
                    let [kind, unit] = fields.message(value)?.numbers()?;
                    let read = Some((self.canonical(kind)?, self.canonical(unit)?));
                    if field == 1 { head.kind = read } else { head.period_type = read }
                }
                (3, _) => {
                    head.time = fixed64(self.data, start, fields.offset()).ok_or_else(|| not_a_time().at(start))?
                }
                (4, _) => head.duration = value.varint()?,
                (6, _) => head.period = value.int()?,
                (7, _) => field_7.push(value),
                (8, Value::Bytes(_)) | (9, Value::Varint(_)) => is_1_8 = true,
                (11, _) => field_11.push(value),
                (12, Value::Bytes(_)) => {
                    field_12.push(value);
                    is_1_8 = true;
                }
                _ => {}
            }
        }
        is_1_8 &= numbering != Some(CURRENT);
        for value in if is_1_8 { field_12 } else { field_11 } {
            self.said_of(value, &mut head.attributes)?;
        }
        for value in field_7.into_iter().filter(|_| is_1_8) {
            for_each_int(value, |v| {
                head.comments.push(self.canonical(v)?);
                Ok(())
            })?;
        }
        head.attributes.sort_unstable();
        head.attributes.dedup();
        Ok(head)
    }

    fn write(
        &self,
        types: &[(StringId, StringId)],
        header: &Header,
        samples: &Samples,
        options: &LoadOptions,
    ) -> Result<Vec<u8>> {
        let mut writer = MessageWriter::default();
        writer.begin(self, types.iter().copied());
        let mut values = vec![0; types.len()];
        let mut last_stack = None;
        for number in 0..samples.keys.len() as u32 {
            let (key, context) = samples.key(number);
            if last_stack.replace(key[1]) != Some(key[1]) {
                writer.begin_stack();
                each_number(self.record(STACKS, key[1]), 1, |location| {
                    writer.location(location as u32);
                    Ok(())
                })?;
            }
            values.fill(0);
            samples.values(number, |column, value| values[column as usize] = value);
            let attributes = key[2..].iter().chain(&context[1..]).map(|&a| self.attributes.values[a as usize].0);
            let resource = self.resources.get(context[0]).iter().copied();
            writer.sample(&values, attributes.chain(resource));
            if writer.ended().len() as u64 > options.inflated_limit {
                let detail = format!(
                    "the samples are more than the limit of {} bytes when the stacks that they share are written out \
                     for each; set a higher limit",
                    options.inflated_limit
                );
                return Err(Error::new(ErrorKind::Limit, detail));
            }
        }
        writer.finish(self, &About { header, duration_nanos: header.duration_nanos, comment: None });
        Ok(writer.into_message())
    }

    /// Calls `f` with the role and the label of each attribute of a record that says something.
    fn attributes_of(&self, record: Fields<'a>, field: u64, mut f: impl FnMut(Role, LabelValue)) {
        // The table was checked.
        let _ = each_number(record, field, |v| {
            if let Some(&said) = self.said.get(v as usize).filter(|said| **said != 0) {
                let (label, role) = self.attributes.values[said as usize];
                f(role, label.value);
            }
            Ok(())
        });
    }

    fn is_true(&self, value: LabelValue) -> bool {
        matches!(value, LabelValue::Text(text) if self.string(text) == b"true")
    }
}

/// The dictionary as the writer of `profile.proto` wants it. Indexes are those of the dictionary, but of mappings,
/// which have no entry for none there.
impl Tables for Message<'_> {
    fn sizes(&self) -> [usize; 4] {
        let n = |table: usize| self.tables[table].len();
        [self.n_strings() + self.texts.len(), n(FUNCTIONS).max(1), n(MAPPINGS).saturating_sub(1), n(LOCATIONS).max(1)]
    }

    fn string(&self, id: StringId) -> &[u8] {
        match id.0.checked_sub(self.n_strings() as u32) {
            Some(text) => self.texts.get(text),
            None => self.bytes(STRINGS, id.0).0,
        }
    }

    fn function(&self, index: u32) -> ([StringId; 3], i64) {
        let [name, system_name, file, line] = self.record(FUNCTIONS, index).numbers().unwrap_or_default();
        ([name, system_name, file].map(|s| StringId(s as u32)), line as i64)
    }

    fn mapping(&self, index: u32) -> Mapping {
        let record = self.record(MAPPINGS, index + 1);
        let [start, limit, offset, file] = record.clone().numbers().unwrap_or_default();
        let (mut flags, mut build_id, mut best) = (0, StringId::EMPTY, u8::MAX);
        self.attributes_of(record, 5, |role, value| match (role, value) {
            (Role::Flag(bit), _) => flags |= u8::from(self.is_true(value)) << bit,
            (Role::BuildId(rank), LabelValue::Text(text)) if rank < best => (best, build_id) = (rank, text),
            _ => {}
        });
        Mapping { start, limit, offset, file: StringId(file as u32), build_id, flags }
    }

    fn location(&self, index: u32) -> (u32, u64, bool) {
        let record = self.record(LOCATIONS, index);
        let [mapping, address] = record.clone().numbers().unwrap_or_default();
        let mut folded = false;
        self.attributes_of(record, 4, |role, value| folded |= role == Role::Folded && self.is_true(value));
        (if mapping == 0 { NONE } else { mapping as u32 - 1 }, address, folded)
    }

    fn for_each_line(&self, location: u32, mut f: impl FnMut(u32, i64, i64)) {
        let mut fields = self.record(LOCATIONS, location);
        while let Ok(Some((field, value))) = fields.next() {
            if let (3, Ok(line)) = (field, fields.message(value)) {
                let [function, line, column] = line.numbers().unwrap_or_default();
                f(function as u32, line as i64, column as i64);
            }
        }
    }
}

/// A field of a value, of which there is one of several.
struct AnyValue<'a> {
    field: u64,
    value: Value<'a>,
    /// Where the field begins, and the fields after it.
    start: usize,
    fields: Fields<'a>,
}

/// The last field counts. Others are passed over before anything is made of them, which may be large.
fn last_value(mut fields: Fields<'_>) -> Result<Option<AnyValue<'_>>> {
    let mut last = None;
    loop {
        let start = fields.offset();
        let Some((field, value)) = fields.next()? else { return Ok(last) };
        if (1..=8).contains(&field) {
            last = Some(AnyValue { field, value, start, fields: fields.clone() });
        }
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

fn not_a_time() -> Error {
    Error::malformed("field 3 is not a time; is this of a release of the protocol before 1.8? Those are not read")
}

fn too_large() -> Error {
    Error::malformed("the values add up to more than an int64 holds")
}

/// A type and its unit.
type Kind = (StringId, StringId);

/// A profile without its samples.
#[derive(Default)]
struct Head {
    kind: Option<Kind>,
    time: u64,
    duration: u64,
    period_type: Option<Kind>,
    period: i64,
    comments: Vec<StringId>,
    attributes: Vec<u32>,
}

/// The samples, added up where they are the same. Flat arrays: samples may be as short as five bytes.
#[derive(Default)]
struct Samples {
    /// A resource, and the attributes of a profile.
    contexts: Sequences<u32, RandomState>,
    /// A context, a stack, and attributes.
    keys: Sequences<u32, RandomState>,
    /// The first value of each key, as a place in `values`.
    first: Vec<u32>,
    values: Vec<SampleValue>,
}

struct SampleValue {
    value: i64,
    column: u32,
    /// Where the key's next value is: there is one of each type at most.
    next: u32,
}

impl Samples {
    fn add(&mut self, key: &[u32], column: u32, value: i64) -> Result<()> {
        let number = self.keys.number(key) as usize;
        if number == self.first.len() {
            self.first.push(NONE);
        }
        let mut at = self.first[number];
        while at != NONE {
            let known = &mut self.values[at as usize];
            if known.column == column {
                known.value = known.value.checked_add(value).ok_or_else(too_large)?;
                return Ok(());
            }
            at = known.next;
        }
        self.values.push(SampleValue { value, column, next: self.first[number] });
        self.first[number] = self.values.len() as u32 - 1;
        Ok(())
    }

    /// A sample's key, and its context.
    fn key(&self, number: u32) -> (&[u32], &[u32]) {
        let key = self.keys.get(number);
        (key, self.contexts.get(key[0]))
    }

    fn values(&self, number: u32, mut f: impl FnMut(u32, i64)) {
        let mut at = self.first[number as usize];
        while at != NONE {
            let value = &self.values[at as usize];
            f(value.column, value.value);
            at = value.next;
        }
    }
}

/// The distinct sample types, in the order in which they come.
#[derive(Default)]
struct Types {
    numbers: HashMap<Kind, u32>,
    types: Vec<Kind>,
}

/// Those that are read.
struct Columns {
    types: Vec<Kind>,
    /// By number of all types; none of one that was not chosen.
    of_type: Vec<Option<u32>>,
}

impl Types {
    fn number(&mut self, kind: Kind) -> Result<u32> {
        let next = self.types.len();
        let number = *self.numbers.entry(kind).or_insert(next as u32);
        if number as usize == next {
            if next == MOST_TYPES {
                return Err(Error::new(ErrorKind::Limit, format!("there are more than {MOST_TYPES} sample types")));
            }
            self.types.push(kind);
        }
        Ok(number)
    }

    /// All, but of a type that is there in several units only the given one.
    fn columns(&self, message: &Message<'_>, given: Kind) -> Result<Columns> {
        let mut columns = Columns { types: Vec::new(), of_type: Vec::new() };
        for &kind in &self.types {
            let alike: Vec<Kind> = self.types.iter().copied().filter(|other| other.0 == kind.0).collect();
            let is_read = alike.len() == 1 || kind == given;
            if !is_read && !alike.contains(&given) {
                return Err(ambiguous(message, &alike));
            }
            columns.of_type.push(is_read.then_some(columns.types.len() as u32));
            columns.types.extend(is_read.then_some(kind));
        }
        Ok(columns)
    }
}

fn ambiguous(message: &Message<'_>, types: &[Kind]) -> Error {
    let text = |id| String::from_utf8_lossy(message.string(id));
    let types: Vec<String> = types.iter().map(|t| format!("{}/{}", text(t.0), text(t.1))).collect();
    let detail = "which can't stand side by side; choose one: --input-type";
    Error::malformed(format!("there are profiles of {}, {detail} {}", types.join(" and of "), types[0]))
}

/// What the profiles say of themselves, as one. Times span all of them; a period stands only if all that have one have
/// the same.
#[derive(Default)]
struct Abouts {
    header: Header,
    start: u64,
    end: u64,
    longest: u64,
    periods: Vec<(Option<Kind>, i64)>,
}

impl Abouts {
    fn add(&mut self, message: &Message<'_>, head: &Head) {
        if head.time != 0 {
            let end = head.time.saturating_add(head.duration);
            self.start = if self.start == 0 { head.time } else { self.start.min(head.time) };
            self.end = self.end.max(end);
        }
        self.longest = self.longest.max(head.duration);
        let period = (head.period_type, head.period);
        if period != (None, 0) && self.periods.len() < 2 && !self.periods.contains(&period) {
            self.periods.push(period);
        }
        self.header.comments.extend_from_slice(&head.comments);
        for &attribute in &head.attributes {
            let (label, role) = message.attributes.values[attribute as usize];
            let LabelValue::Text(text) = label.value else { continue };
            let h = &mut self.header;
            match role {
                Role::Comment => h.comments.push(text),
                Role::DropFrames => h.drop_frames = text,
                Role::KeepFrames => h.keep_frames = text,
                Role::DocUrl => h.doc_url = text,
                _ => {}
            }
        }
    }

    fn finish(mut self) -> Header {
        let mut seen: HashSet<_> = HashSet::default();
        self.header.comments.retain(|comment| seen.insert(*comment));
        if let [(kind, period)] = self.periods[..] {
            self.header.period_type = kind.map(|(kind, unit)| ValueType { kind, unit });
            self.header.period = period;
        }
        let duration = if self.start == 0 { self.longest } else { self.end - self.start };
        let nanos = |v: u64| i64::try_from(v).unwrap_or(i64::MAX);
        (self.header.time_nanos, self.header.duration_nanos) = (nanos(self.start), nanos(duration));
        self.header
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::profile::wire::put;

    // Messages by hand: fields, with the least that makes them.

    fn int(field: u32, v: u64) -> Vec<u8> {
        let mut out = Vec::new();
        put::varint(&mut out, u64::from(field << 3));
        put::varint(&mut out, v);
        out
    }

    fn bytes(field: u32, content: impl AsRef<[u8]>) -> Vec<u8> {
        let mut out = Vec::new();
        put::bytes(&mut out, field, content.as_ref());
        out
    }

    fn fixed(field: u32, v: u64) -> Vec<u8> {
        let mut out = Vec::new();
        put::varint(&mut out, u64::from(field << 3 | 1));
        out.extend_from_slice(&v.to_le_bytes());
        out
    }

    fn packed(field: u32, numbers: &[i64]) -> Vec<u8> {
        let mut out = Vec::new();
        numbers.iter().for_each(|&v| put::varint(&mut out, v as u64));
        bytes(field, out)
    }

    fn times(n: u64) -> Vec<u8> {
        bytes(5, (1..=n).flat_map(u64::to_le_bytes).collect::<Vec<u8>>())
    }

    /// A message of its resources and its dictionary's fields.
    fn message(resources: &[Vec<u8>], dictionary: &[Vec<u8>]) -> Vec<u8> {
        let resources: Vec<u8> = resources.iter().flat_map(|r| bytes(1, r)).collect();
        [resources, bytes(2, dictionary.concat())].concat()
    }

    /// A resource of profiles in one scope.
    fn resource(attributes: &[Vec<u8>], profiles: &[Vec<u8>]) -> Vec<u8> {
        let attributes: Vec<u8> = attributes.iter().flat_map(|a| bytes(1, a)).collect();
        let profiles: Vec<u8> = profiles.iter().flat_map(|p| bytes(2, p)).collect();
        [bytes(1, attributes), bytes(2, profiles)].concat()
    }

    fn profile(kind: u64, unit: u64, samples: &[Vec<u8>]) -> Vec<u8> {
        let samples: Vec<u8> = samples.iter().flat_map(|s| bytes(2, s)).collect();
        [bytes(1, [int(1, kind), int(2, unit)].concat()), samples].concat()
    }

    /// Strings: 1 cpu, 2 ns, 3 count, 4 main, 5 leaf, 6 thread, 7 depth, 8 binary, 9 the key of a build id. Stacks: 1
    /// leaf < main, 2 main. Attributes: 1 thread=a, 2 depth=7 count.
    fn dictionary() -> Vec<Vec<u8>> {
        let strings =
            ["", "cpu", "ns", "count", "main", "leaf", "thread", "depth", "binary", "process.executable.build_id.go"];
        let strings = strings.iter().map(|s| bytes(5, s));
        let function = |name| bytes(3, int(1, name));
        let location =
            |f| bytes(2, [int(1, 1), int(2, 16 * f), bytes(3, [int(1, f), int(2, 10 + f)].concat())].concat());
        let attribute = |key, value: Vec<u8>, unit| bytes(6, [int(1, key), bytes(2, value), int(3, unit)].concat());
        let mapping = [int(1, 1), int(2, 0x1000), int(4, 8), packed(5, &[3])].concat();
        let mut all = vec![bytes(1, ""), bytes(1, mapping), bytes(2, ""), location(1), location(2)];
        all.extend([bytes(3, ""), function(4), function(5), bytes(4, ""), bytes(4, ""), bytes(6, "")]);
        all.extend([attribute(6, bytes(1, "a"), 0), attribute(7, int(3, 7), 3), attribute(9, bytes(1, "id1"), 0)]);
        all.extend([bytes(7, ""), bytes(7, packed(1, &[2, 1])), bytes(7, packed(1, &[1]))]);
        all.extend(strings);
        all
    }

    fn one(samples: &[Vec<u8>]) -> Vec<u8> {
        message(&[resource(&[], &[profile(1, 2, samples)])], &dictionary())
    }

    fn load_as(data: &[u8], format: Option<&str>) -> Result<Profile> {
        let options = LoadOptions::default();
        let options = format.map_or(Ok(options.clone()), |format| options.with_input_format(format))?;
        Profile::from_bytes("in", data, &options)
    }

    /// A line for each sample: names from the leaf, values, and labels.
    fn lines(p: &Profile) -> Vec<String> {
        let sample = |s: crate::samples::Sample<'_>| {
            let mut names = Vec::new();
            s.for_each_location(|l| {
                let of = p.locations().lines(l).map(|i| p.locations().line_function[i as usize]);
                names.extend(of.map(|f| p.text(p.functions().name[f as usize])));
            });
            let values: Vec<i64> = (0..p.sample_types().len()).map(|t| s.value(t)).collect();
            let labels = s.labels().map(|l| match l.value {
                LabelValue::Text(text) => format!(" {}={}", p.text(l.key), p.text(text)),
                LabelValue::Number(v, unit) => format!(" {}={v}{}", p.text(l.key), p.text(unit)),
            });
            format!("{} {values:?}{}", names.join("<"), labels.collect::<String>())
        };
        p.samples().map(sample).collect()
    }

    #[test]
    fn samples_have_stacks_values_and_labels_in_both_numberings() {
        let current = [
            [int(1, 1), packed(2, &[1, 2]), int(3, 0), packed(4, &[5])].concat(),
            [int(1, 2), packed(4, &[2, 3]), times(2)].concat(),
            [int(1, 1), packed(2, &[2, 1]), times(3)].concat(),
            packed(4, &[-4]),
        ];
        let before = [
            [int(1, 1), packed(2, &[5]), packed(3, &[1, 2]), int(4, 0)].concat(),
            [int(1, 2), packed(2, &[2, 3]), times(2)].concat(),
            [int(1, 1), packed(3, &[2, 1]), times(3)].concat(),
            packed(2, &[-4]),
        ];
        for (samples, name) in [(current, "otlp"), (before, "otlp-1.9")] {
            for format in [None, Some(name)] {
                let p = load_as(&one(&samples), format).unwrap();
                assert_eq!(p.sample_types(), [("cpu".to_owned(), "ns".to_owned())]);
                let expected = ["leaf<main [8] thread=a depth=7count", "main [5]", " [-4]"];
                assert_eq!(lines(&p), expected, "{name} {format:?}");
                let mapping = p.mappings()[0];
                assert_eq!((p.text(mapping.file), p.text(mapping.build_id)), ("binary".to_owned(), "id1".to_owned()));
                assert_eq!((mapping.start, mapping.limit), (1, 0x1000));
                assert_eq!(p.locations().address, [0x20, 0x10]);
            }
        }
    }

    /// The numbering that samples are read in, or the error.
    fn numbering(samples: &[Vec<u8>]) -> Result<Option<Numbering>> {
        Message::scan(&one(samples))?.numbering()
    }

    #[test]
    fn the_numbering_is_told_by_the_types_of_fields() {
        let s = |fields: &[Vec<u8>]| fields.concat();
        for (samples, expected) in [
            (vec![packed(4, &[5])], Some(CURRENT)),
            (vec![packed(2, &[5])], Some(BEFORE)),
            (vec![s(&[packed(2, &[1]), packed(4, &[5])])], Some(CURRENT)),
            (vec![s(&[packed(2, &[1]), packed(3, &[1])])], Some(BEFORE)),
            // Attributes of 1.10 or values of 1.9, as many as timestamps; the link tells, wherever it is.
            (vec![s(&[packed(2, &[1]), times(1)]), s(&[int(3, 1), packed(2, &[1]), times(1)])], Some(CURRENT)),
            (vec![s(&[packed(2, &[1]), times(1)]), s(&[int(4, 1), packed(2, &[1]), times(1)])], Some(BEFORE)),
            // Not as many: these are attributes. No such attribute: these are values.
            (vec![s(&[packed(2, &[1, 2]), times(1)])], Some(CURRENT)),
            (vec![s(&[packed(2, &[1, 4]), times(2)])], Some(BEFORE)),
            // The same in both.
            (vec![times(3)], None),
            (vec![], None),
        ] {
            assert_eq!(numbering(&samples).unwrap(), expected, "{samples:?}");
        }
        let both = [s(&[int(1, 1), packed(2, &[1]), times(1)])];
        for (samples, words) in [
            (&both[..], "--input-format otlp (protocol 1.10 and later) or --input-format otlp-1.9 (1.8 and 1.9)"),
            (&[int(1, 1)], "sample 0: it fits no numbering of OTLP profiles"),
            (&[s(&[packed(3, &[1]), packed(4, &[1])])], "name it: --input-format otlp or --input-format otlp-1.9"),
        ] {
            let error = load_as(&one(samples), None).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        assert_eq!(lines(&load_as(&one(&both), Some("otlp")).unwrap()), ["leaf<main [1] thread=a"]);
        assert_eq!(lines(&load_as(&one(&both), Some("otlp-1.9")).unwrap()), ["leaf<main [1]"]);
        // Numbers that are not packed, as async-profiler writes them.
        let unpacked = [s(&[int(1, 1), int(2, 1), int(2, 2), int(4, 5)])];
        assert_eq!(lines(&load_as(&one(&unpacked), None).unwrap()), ["leaf<main [5] thread=a depth=7count"]);
        let unpacked = [s(&[int(1, 1), int(2, 1), int(3, 2), fixed(5, 1)])];
        assert_eq!(lines(&load_as(&one(&unpacked), None).unwrap()), ["leaf<main [1] depth=7count"]);
    }

    #[test]
    fn profiles_of_one_message_stand_side_by_side() {
        let sample =
            |stack, attributes: &[i64], value| [int(1, stack), packed(2, attributes), packed(4, &[value])].concat();
        let attribute = |key: &str, value: &str| [bytes(1, key), bytes(2, bytes(1, value))].concat();
        let of = |service: &str, profiles: &[Vec<u8>]| resource(&[attribute("service.name", service)], profiles);
        let cpu = profile(1, 2, &[sample(1, &[1], 10), sample(2, &[], 20), sample(1, &[1], 1)]);
        let count = profile(1, 3, &[sample(2, &[], 3)]);
        let data = |resources: &[Vec<u8>]| message(resources, &dictionary());
        // Another name for the second type: thread/count.
        let threads = profile(6, 3, &[sample(2, &[], 2), sample(1, &[2], 4)]);
        let p = load_as(&data(&[of("a", &[cpu.clone(), threads.clone()]), of("b", &[threads])]), None).unwrap();
        assert_eq!(p.sample_types(), [("cpu".into(), "ns".into()), ("thread".into(), "count".into())]);
        assert_eq!(
            lines(&p),
            [
                "leaf<main [11, 0] thread=a service.name=a",
                "main [20, 2] service.name=a",
                "leaf<main [0, 4] depth=7count service.name=a",
                "main [0, 2] service.name=b",
                "leaf<main [0, 4] depth=7count service.name=b",
            ]
        );
        // The same resource again is the same resource.
        let p =
            load_as(&data(&[of("a", std::slice::from_ref(&cpu)), of("a", std::slice::from_ref(&cpu))]), None).unwrap();
        assert_eq!(lines(&p), ["leaf<main [22] thread=a service.name=a", "main [40] service.name=a"]);
        // One type in two units is a choice.
        let both = data(&[of("a", &[cpu, count])]);
        let error = load_as(&both, None).unwrap_err().to_string();
        assert!(error.contains("cpu/ns and of cpu/count") && error.contains("--input-type cpu/ns"), "{error}");
        let options = LoadOptions::default().with_input_type("cpu/count").unwrap();
        let p = Profile::from_bytes("in", &both, &options).unwrap();
        assert_eq!(lines(&p), ["main [3] service.name=a"]);
    }

    #[test]
    fn what_profiles_say_of_themselves_is_brought_together() {
        let about = |time, duration, period| {
            let kind = bytes(5, [int(1, 1), int(2, 2)].concat());
            [profile(1, 2, &[]), fixed(3, time), int(4, duration), kind, int(6, period)].concat()
        };
        let load = |profiles: &[Vec<u8>]| load_as(&message(&[resource(&[], profiles)], &dictionary()), None).unwrap();
        let p = load(&[about(1000, 50, 7), about(980, 30, 7)]);
        assert_eq!((p.time_nanos(), p.duration_nanos(), p.period()), (980, 70, 7));
        assert_eq!(p.period_type(), Some(("cpu".into(), "ns".into())));
        let p = load(&[about(1000, 50, 7), about(0, 99, 8)]);
        assert_eq!((p.time_nanos(), p.duration_nanos(), p.period(), p.period_type()), (1000, 50, 0, None));
        let p = load(&[about(0, 99, 7), about(u64::MAX, u64::MAX, 7)]);
        assert_eq!((p.time_nanos(), p.duration_nanos()), (i64::MAX, 0));
        // A profile that does not say what it counts.
        let data = message(&[resource(&[], &[bytes(2, packed(4, &[3]))])], &dictionary());
        let options = LoadOptions::default().with_input_type("allocs/bytes").unwrap();
        let p = Profile::from_bytes("in", &data, &options.with_input_format("otlp").unwrap()).unwrap();
        assert_eq!(p.sample_types(), [("allocs".to_owned(), "bytes".to_owned())]);
    }

    #[test]
    fn profiles_of_protocols_1_8_and_1_9_differ_behind_field_7() {
        let head = |fields: &[Vec<u8>]| [profile(1, 2, &[packed(2, &[3])]), fields.concat()].concat();
        let load = |fields: &[Vec<u8>]| {
            let data = message(&[resource(&[], &[head(fields)])], &dictionary());
            load_as(&data, None).map(|p| (lines(&p), p.comments()))
        };
        let (labelled, plain) = (vec![" [3] thread=a".to_owned()], vec![" [3]".to_owned()]);
        let id = || [0; 16];
        let comments = vec!["leaf".to_owned(), "cpu".to_owned()];
        let payload = "text";
        // 1.9: id 7, dropped 8, format 9, payload 10, attributes 11. 1.8 has comments 7, and all others one further.
        for (fields, expected) in [
            (
                vec![bytes(7, id()), int(8, 1), bytes(9, payload), bytes(10, payload), packed(11, &[1])],
                (&labelled, vec![]),
            ),
            (vec![packed(11, &[1])], (&labelled, vec![])),
            (vec![packed(7, &[5, 1]), packed(12, &[1])], (&labelled, comments.clone())),
            (vec![packed(7, &[5, 1]), bytes(8, id()), bytes(11, payload)], (&plain, comments.clone())),
            (vec![packed(7, &[5, 1]), int(9, 4), bytes(10, payload), bytes(11, payload)], (&plain, comments.clone())),
        ] {
            assert_eq!(load(&fields).unwrap(), (expected.0.clone(), expected.1), "{fields:?}");
        }
    }

    /// What an attribute of a value becomes, as `lines` shows it; a message of the dictionary's own numbers.
    fn shown(value: Vec<u8>, unit: u64) -> Result<String> {
        let mut dictionary = dictionary();
        dictionary.push(bytes(6, [int(1, 6), bytes(2, value), int(3, unit)].concat()));
        let sample = [int(1, 2), packed(2, &[4]), packed(4, &[1])].concat();
        let p = load_as(&message(&[resource(&[], &[profile(1, 2, &[sample])])], &dictionary), None)?;
        Ok(lines(&p)[0].replacen("main [1]", "", 1))
    }

    #[test]
    fn values_of_attributes_are_numbers_or_text() {
        let list = |items: &[Vec<u8>]| bytes(5, items.iter().flat_map(|i| bytes(1, i)).collect::<Vec<u8>>());
        let entry = |key: &str, value: &[u8]| bytes(1, [bytes(1, key), bytes(2, value)].concat());
        let double = |v: f64| fixed(4, v.to_bits());
        for (value, unit, expected) in [
            (bytes(1, "text"), 3, " thread=text"),
            (int(3, -5i64 as u64), 3, " thread=-5count"),
            (int(3, 0), 3, " thread=0count"),
            (int(3, 0), 0, ""),
            (bytes(1, ""), 0, ""),
            (vec![], 0, ""),
            (int(8, 5), 0, " thread=leaf"),
            (int(2, 1), 0, " thread=true"),
            (int(2, 0), 0, " thread=false"),
            (double(1.5), 0, " thread=1.5"),
            (double(f64::NAN), 0, " thread=NaN"),
            (double(1e300), 0, " thread=1e300"),
            (bytes(7, [0xab, 0]), 0, " thread=ab00"),
            (list(&[]), 0, " thread=[]"),
            (
                list(&[bytes(1, "a\"b"), int(3, 1), int(2, 1), vec![], int(8, 4)]),
                0,
                " thread=[\"a\\\"b\",1,true,null,\"main\"]",
            ),
            (
                bytes(6, [entry("k", &int(3, 1)), entry("", &list(&[double(0.5)]))].concat()),
                0,
                " thread={\"k\":1,\"\":[0.5]}",
            ),
            (bytes(6, bytes(1, int(3, 5))), 0, " thread={\"leaf\":null}"),
            // The last of several counts.
            ([bytes(1, "x"), int(3, 4), bytes(1, "y")].concat(), 0, " thread=y"),
        ] {
            assert_eq!(shown(value.clone(), unit).unwrap(), expected, "{value:?}");
        }
        let mut deep = int(3, 1);
        for _ in 0..2000 {
            deep = list(&[deep]);
        }
        assert_eq!(shown(deep, 0).unwrap(), " thread=[[[[[[[[...]]]]]]]]");
        // Strings that values refer to, again and again.
        let again = list(&vec![int(8, 10); 100_000]);
        let mut dictionary = dictionary();
        dictionary.extend([bytes(5, "long".repeat(10_000)), bytes(6, [int(1, 6), bytes(2, again)].concat())]);
        let error = load_as(&message(&[resource(&[], &[])], &dictionary), Some("otlp")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    }

    #[test]
    fn attributes_of_profiles_mappings_and_locations_undo_the_conversion_of_pprof() {
        let mut dictionary = dictionary();
        let base = 10;
        let keys = [
            "process.executable.build_id.gnu",
            "process.executable.build_id.htlhash",
            "pprof.mapping.has_functions",
            "pprof.mapping.has_inline_frames",
            "pprof.location.is_folded",
            "pprof.profile.comment.0",
            "pprof.profile.drop_frames",
            "pprof.profile.doc_url",
        ];
        dictionary.extend(keys.map(|key| bytes(5, key)));
        let value =
            |key: &str| if key.contains("pprof.profile") || key.contains("id.") { bytes(1, key) } else { int(2, 1) };
        dictionary.extend((base..).zip(keys).map(|(i, key)| bytes(6, [int(1, i), bytes(2, value(key))].concat())));
        // Attributes 4 to 11 are these.
        dictionary.push(bytes(1, packed(5, &[5, 3, 4, 6, 7])));
        dictionary.push(bytes(2, [int(1, 2), int(2, 99), packed(4, &[8])].concat()));
        dictionary.push(bytes(7, packed(1, &[3])));
        let head = [profile(1, 2, &[[int(1, 3), packed(4, &[1])].concat()]), packed(11, &[1, 9, 10, 11])].concat();
        let p = load_as(&message(&[resource(&[], &[head])], &dictionary), None).unwrap();
        let mapping = p.mappings()[1];
        assert_eq!((p.text(mapping.build_id), mapping.flags), (keys[0].to_owned(), 0b1001));
        assert!(p.locations().folded[0]);
        assert_eq!((p.comments(), p.doc_url()), (vec![keys[5].to_owned()], keys[7].to_owned()));
        assert_eq!((p.text(p.header().drop_frames), lines(&p)), (keys[6].to_owned(), vec![" [1] thread=a".to_owned()]));
    }

    #[test]
    fn errors_name_the_record_and_what_is_wrong() {
        let s = |fields: &[Vec<u8>]| one(&[fields.concat()]);
        let with = |record: Vec<u8>| {
            let mut dictionary = dictionary();
            dictionary.push(record);
            message(&[resource(&[], &[profile(1, 2, &[packed(4, &[1])])])], &dictionary)
        };
        for (data, words) in [
            (s(&[int(1, 3), packed(4, &[1])]), "profile 0, sample 0: it refers to stack 3, and there are 3"),
            (s(&[int(1, -1i64 as u64), packed(4, &[1])]), "it refers to stack -1, and there are 3"),
            (s(&[packed(2, &[4]), packed(4, &[1])]), "it refers to attribute 4, and there are 4"),
            (s(&[int(1, 1)]), "it has no values and no timestamps"),
            (s(&[packed(4, &[1, 2]), times(3)]), "it has 2 values and 3 timestamps"),
            (s(&[packed(4, &[1]), bytes(5, [0; 7])]), "its timestamps are not numbers of 64 bits"),
            (s(&[packed(4, &[i64::MAX, 1])]), "add up to more than an int64 holds"),
            (s(&[packed(4, &[1]), bytes(3, "")]), "a number is not encoded as one"),
            (s(&[bytes(1, ""), packed(4, &[1])]), "a number is not encoded as one"),
            (one(&[packed(4, &[i64::MAX]), packed(4, &[1])]), "profile 0, sample 1: the values add up"),
            (
                one(&[packed(4, &[i64::MAX]), [int(1, 1), packed(4, &[1])].concat()]),
                "add up to more than an int64 holds",
            ),
            (with(bytes(1, int(4, 10))), "mapping 2: it refers to string 10, and there are 10"),
            (with(bytes(1, packed(5, &[4]))), "mapping 2: it refers to attribute 4"),
            (with(bytes(2, int(1, 2))), "location 3: it refers to mapping 2"),
            (with(bytes(2, bytes(3, int(1, 3)))), "location 3: it refers to function 3"),
            (with(bytes(2, int(3, 1))), "location 3: a message or string is not encoded as one"),
            (with(bytes(3, int(3, 1 << 40))), "function 3: it refers to string 1099511627776"),
            (with(bytes(6, int(1, 10))), "attribute 4: it refers to string 10"),
            (with(bytes(6, bytes(2, int(8, 10)))), "attribute 4: it refers to string 10"),
            (with(bytes(6, bytes(2, int(4, 1)))), "attribute 4: a fraction is not encoded as one"),
            (with(bytes(7, packed(1, &[1, 3]))), "stack 3: it refers to location 3"),
            (with(int(7, 1)), "stack: a message or string is not encoded as one"),
            (one(&[]).repeat(2), "two messages are concatenated"),
            (message(&[], &[bytes(5, "x")]), "string 0 is not empty"),
            (message(&[resource(&[], &[bytes(1, int(1, 99))])], &[]), "profile 0: it refers to string 99"),
            (
                message(&[resource(&[], &[[profile(0, 0, &[]), packed(3, &[1])].concat()])], &[]),
                "profile 0: field 3 is not a time; is this of a release of the protocol before 1.8?",
            ),
            (b"\x0a\xff".to_vec(), "this is no OTLP message"),
        ] {
            let error = load_as(&data, Some("otlp")).unwrap_err().to_string();
            assert!(error.contains(words), "{words}: {error}");
        }
        let many = |n: u64| {
            let strings = (0..n + 1).map(|i| bytes(5, if i == 0 { String::new() } else { i.to_string() }));
            let profiles: Vec<Vec<u8>> = (0..n).map(|i| profile(i + 1, 0, &[packed(4, &[1])])).collect();
            load_as(&message(&[resource(&[], &profiles)], &strings.collect::<Vec<_>>()), Some("otlp"))
        };
        assert_eq!(many(64).unwrap().sample_types().len(), 64);
        assert_eq!(many(65).unwrap_err().kind(), ErrorKind::Limit);
    }

    #[test]
    fn what_is_made_is_limited() {
        // A deep stack, which many samples share.
        let mut dictionary = dictionary();
        dictionary.push(bytes(7, packed(1, &[1; 1000])));
        dictionary.extend((0..1000).map(|i| bytes(6, [int(1, 6), bytes(2, int(3, i + 1))].concat())));
        let samples: Vec<Vec<u8>> =
            (0..1000).map(|i| [int(1, 3), packed(2, &[i + 4]), packed(4, &[1])].concat()).collect();
        let data = message(&[resource(&[], &[profile(1, 2, &samples)])], &dictionary);
        assert_eq!(load_as(&data, None).unwrap().n_samples(), 1000);
        let options = LoadOptions::default().with_inflated_limit(500_000).unwrap();
        let error = Profile::from_bytes("in", &data, &options).unwrap_err();
        assert!(error.kind() == ErrorKind::Limit && error.to_string().contains("500000 bytes"), "{error}");
    }

    #[test]
    fn it_is_recognised_by_its_structure() {
        let whole = one(&[packed(4, &[1])]);
        let plain = message(&[resource(&[], &[profile(1, 2, &[])])], &[]);
        let dictionary_first = [bytes(2, dictionary().concat()), bytes(1, "")].concat();
        for data in [&whole[..], &plain[..], &dictionary_first[..]] {
            assert!(recognises(data), "{data:?}");
        }
        // Cut off anywhere behind the type of the first profile.
        (20..whole.len()).for_each(|end| assert!(recognises(&whole[..end]), "{end}"));
        let span = [bytes(1, [7; 16]), bytes(2, [8; 8]), bytes(5, "GET /"), int(6, 1), fixed(7, 9)].concat();
        let spans = bytes(1, [bytes(1, ""), bytes(2, bytes(2, span))].concat());
        let log = bytes(1, bytes(2, bytes(2, [fixed(1, 9), int(2, 3)].concat())));
        let metric = bytes(1, bytes(2, bytes(2, [bytes(1, "name"), bytes(7, "x")].concat())));
        let pprof = [bytes(1, [int(1, 1), int(2, 2)].concat()), bytes(2, [packed(1, &[1]), packed(2, &[5])].concat())];
        for data in [&spans[..], &log[..], &metric[..], &pprof.concat()[..], &pprof[1][..], b"{}", b"", b"\x0a"] {
            assert!(!recognises(data), "{data:?}");
        }
    }

    #[test]
    fn no_cut_and_no_flipped_byte_panics() {
        let samples = [
            [int(1, 1), packed(2, &[1, 2]), int(3, 0), packed(4, &[5, 6]), times(2)].concat(),
            [int(1, 2), packed(4, &[2])].concat(),
        ];
        let whole = one(&samples);
        let read = |data: &[u8]| {
            for format in ["otlp", "otlp-1.9"] {
                let _ = load_as(data, Some(format));
            }
            let _ = load_as(data, None);
        };
        (0..whole.len()).for_each(|end| read(&whole[..end]));
        for at in 0..whole.len() {
            for flip in [0x01, 0x02, 0x07, 0x08, 0x40, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] ^= flip;
                read(&damaged);
            }
        }
    }
}
