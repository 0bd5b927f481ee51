//! OpenTelemetry profiles: messages of every form are written with the crate `opentelemetry-proto`, of the releases
//! that ship the two numberings, and read as a plain conversion says; and what the collector's own library wrote of
//! profiles of the corpus is read as those profiles.

use std::collections::{BTreeMap, BTreeSet};

use otlp_1_8::tonic as old;
use otlp_1_10::tonic as new;
use pprofdiff::samples::{Label, LabelValue};
use pprofdiff::{LoadOptions, Profile};
use prost::Message;

use crate::generated_series::Random;
use crate::oracle;

use new::common::v1::any_value::Value;
use new::common::v1::{AnyValue, ArrayValue, KeyValue, KeyValueList};
use new::profiles::v1development::{
    Function, KeyValueAndUnit, Line, Link, Location, Mapping, Profile as OtlpProfile, ProfilesData, ProfilesDictionary,
    ResourceProfiles, Sample, ScopeProfiles, Stack, ValueType,
};
use new::resource::v1::Resource;

/// Frames from the leaf, and labels.
type Key = (Vec<String>, BTreeSet<String>);

/// What a profile says, without the order of its samples and tables. Values of samples with one key are added up.
#[derive(Debug, PartialEq, Default)]
struct Content {
    types: Vec<(String, String)>,
    samples: BTreeMap<Key, Vec<i64>>,
    time: i64,
    duration: i64,
    period_type: Option<(String, String)>,
    period: i64,
    comments: BTreeSet<String>,
    doc_url: BTreeSet<String>,
}

impl Content {
    fn add(&mut self, key: Key, column: usize, value: i64) {
        let n = self.types.len();
        self.samples.entry(key).or_insert_with(|| vec![0; n])[column] += value;
    }
}

fn content(p: &Profile) -> Content {
    let frame = |l: u32| {
        let (locations, i) = (p.locations(), l as usize);
        let mapping = p.mappings().get(locations.mapping[i] as usize);
        let mapping =
            mapping.map(|m| mapping_text(&p.text(m.file), m.start, m.limit, m.offset, &p.text(m.build_id), m.flags));
        let lines = locations.lines(l).map(|n| {
            let (n, f) = (n as usize, locations.line_function[n as usize] as usize);
            let names = [p.functions().name[f], p.functions().system_name[f], p.functions().file[f]].map(|s| p.text(s));
            line_text(&names, p.functions().start_line[f], locations.line_number[n], locations.line_column[n])
        });
        frame_text(locations.address[i], mapping, &lines.collect::<Vec<_>>(), locations.folded[i])
    };
    let label = |l: Label| match l.value {
        LabelValue::Text(text) => text_label(&p.text(l.key), &p.text(text)),
        LabelValue::Number(v, unit) => number_label(&p.text(l.key), v, &p.text(unit)),
    };
    let doc_url = p.doc_url();
    let mut content = Content {
        types: p.sample_types(),
        samples: BTreeMap::new(),
        time: p.time_nanos(),
        duration: p.duration_nanos(),
        period_type: p.period_type(),
        period: p.period(),
        comments: p.comments().into_iter().collect(),
        doc_url: (!doc_url.is_empty()).then_some(doc_url).into_iter().collect(),
    };
    for sample in p.samples() {
        let mut frames = Vec::new();
        sample.for_each_location(|l| frames.push(frame(l)));
        let key = (frames, sample.labels().map(label).collect());
        (0..content.types.len()).for_each(|t| content.add(key.clone(), t, sample.value(t)));
    }
    content
}

fn mapping_text(file: &str, start: u64, limit: u64, offset: u64, build_id: &str, flags: u8) -> String {
    format!("{file} {start:x}-{limit:x}+{offset:x} {build_id} {flags:04b}")
}

fn line_text(names: &[String; 3], start_line: i64, line: i64, column: i64) -> String {
    format!("{names:?} from {start_line} at {line}:{column}")
}

fn frame_text(address: u64, mapping: Option<String>, lines: &[String], folded: bool) -> String {
    format!("{address:x} of {mapping:?}: {lines:?}{}", if folded { " folded" } else { "" })
}

fn text_label(key: &str, text: &str) -> String {
    format!("{key}={text:?}")
}

fn number_label(key: &str, value: i64, unit: &str) -> String {
    format!("{key}={value} {unit}")
}

/// The conversion, said plainly: everything is looked up where it is used.
struct Plain<'a>(&'a ProfilesDictionary);

impl Plain<'_> {
    fn string(&self, index: i32) -> String {
        self.0.string_table[index as usize].clone()
    }

    /// As text; `nested` in a list or a map.
    fn show(&self, value: Option<&AnyValue>, nested: bool) -> String {
        let Some(value) = value.and_then(|v| v.value.as_ref()) else { return "null".to_owned() };
        let text = match value {
            Value::StringValue(text) => text.clone(),
            Value::StringValueStrindex(index) => self.string(*index),
            Value::BoolValue(v) => return v.to_string(),
            Value::IntValue(v) => return v.to_string(),
            Value::DoubleValue(v) => return format!("{v:?}"),
            Value::BytesValue(bytes) => return bytes.iter().map(|b| format!("{b:02x}")).collect(),
            Value::ArrayValue(list) => {
                let items: Vec<String> = list.values.iter().map(|v| self.show(Some(v), true)).collect();
                return format!("[{}]", items.join(","));
            }
            Value::KvlistValue(map) => {
                let item = |kv: &KeyValue| format!("{:?}:{}", self.key(kv), self.show(kv.value.as_ref(), true));
                return format!("{{{}}}", map.values.iter().map(item).collect::<Vec<_>>().join(","));
            }
        };
        if nested { format!("{text:?}") } else { text }
    }

    fn key(&self, kv: &KeyValue) -> String {
        if kv.key_strindex == 0 { kv.key.clone() } else { self.string(kv.key_strindex) }
    }

    fn label(&self, key: &str, value: Option<&AnyValue>, unit: &str) -> Option<String> {
        let known = value.and_then(|v| v.value.as_ref())?;
        if let Value::IntValue(v) = known {
            return (!key.is_empty() && (*v != 0 || !unit.is_empty())).then(|| number_label(key, *v, unit));
        }
        let text = self.show(value, false);
        (!key.is_empty() && !text.is_empty()).then(|| text_label(key, &text))
    }

    /// The attributes that these indexes are of: key, value as text, label.
    fn attributes(&self, indices: &[i32]) -> Vec<(String, String, Option<String>)> {
        let attribute = |index: &i32| {
            let a = &self.0.attribute_table[*index as usize];
            let (key, value) = (self.string(a.key_strindex), a.value.as_ref());
            let label = self.label(&key, value, &self.string(a.unit_strindex));
            (key, self.show(value, false), label)
        };
        // In the order of the table, each once.
        indices.iter().collect::<BTreeSet<_>>().into_iter().map(attribute).collect()
    }

    fn frame(&self, index: i32) -> String {
        let l = &self.0.location_table[index as usize];
        let mapping = (l.mapping_index != 0).then(|| {
            let m = &self.0.mapping_table[l.mapping_index as usize];
            let attributes = self.attributes(&m.attribute_indices);
            let has = |key: &str| attributes.iter().any(|(k, v, _)| k == key && v == "true");
            let flags = ["has_functions", "has_filenames", "has_line_numbers", "has_inline_frames"];
            let flags = (0..4).map(|i| u8::from(has(&format!("pprof.mapping.{}", flags[i]))) << i).sum();
            let ids = ["gnu", "go", "htlhash"].map(|kind| {
                let key = format!("process.executable.build_id.{kind}");
                // In the order in which the mapping names them, and text.
                let named = m.attribute_indices.iter().map(|i| &self.0.attribute_table[*i as usize]);
                let of = named.filter(|a| self.string(a.key_strindex) == key);
                let mut texts = of.filter(|a| {
                    let value = a.value.as_ref().and_then(|v| v.value.as_ref());
                    !matches!(value, None | Some(Value::IntValue(_))) && !self.show(a.value.as_ref(), false).is_empty()
                });
                texts.next().map(|a| self.show(a.value.as_ref(), false))
            });
            let build_id = ids.into_iter().flatten().next().unwrap_or_default();
            let file = self.string(m.filename_strindex);
            mapping_text(&file, m.memory_start, m.memory_limit, m.file_offset, &build_id, flags)
        });
        let lines: Vec<String> = l
            .lines
            .iter()
            .map(|line| {
                let f = &self.0.function_table[line.function_index as usize];
                let names = [f.name_strindex, f.system_name_strindex, f.filename_strindex].map(|s| self.string(s));
                line_text(&names, f.start_line, line.line, line.column)
            })
            .collect();
        let attributes = self.attributes(&l.attribute_indices);
        let folded = attributes.iter().any(|(k, v, _)| k == "pprof.location.is_folded" && v == "true");
        frame_text(l.address, mapping, &lines, folded)
    }

    fn value_type(&self, t: &Option<ValueType>) -> Option<(String, String)> {
        t.as_ref().map(|t| (self.string(t.type_strindex), self.string(t.unit_strindex)))
    }
}

fn expected(data: &ProfilesData) -> Content {
    let plain = Plain(data.dictionary.as_ref().unwrap());
    let profiles: Vec<(&Option<Resource>, &OtlpProfile)> = data
        .resource_profiles
        .iter()
        .flat_map(|r| r.scope_profiles.iter().flat_map(|s| s.profiles.iter().map(|p| (&r.resource, p))))
        .collect();
    let kind = |p: &OtlpProfile| plain.value_type(&p.sample_type).unwrap_or(("samples".into(), "count".into()));
    let mut content = Content::default();
    for (_, p) in &profiles {
        if !content.types.contains(&kind(p)) {
            content.types.push(kind(p));
        }
    }
    let mut periods = BTreeSet::new();
    let times: Vec<(u64, u64)> = profiles.iter().map(|(_, p)| (p.time_unix_nano, p.duration_nano)).collect();
    let start = times.iter().map(|t| t.0).filter(|&t| t != 0).min();
    let end = times.iter().filter(|t| t.0 != 0).map(|t| t.0 + t.1).max();
    let longest = times.iter().map(|t| t.1).max().unwrap_or(0);
    content.time = start.unwrap_or(0) as i64;
    content.duration = start.zip(end).map_or(longest, |(start, end)| end - start) as i64;
    for (resource, p) in profiles {
        let column = content.types.iter().position(|t| *t == kind(p)).unwrap();
        periods.insert((plain.value_type(&p.period_type), p.period));
        let mut common = BTreeSet::new();
        for (key, text, label) in plain.attributes(&p.attribute_indices) {
            let Some(label) = label else { continue };
            let is_text = label == text_label(&key, &text);
            match &key[..] {
                "pprof.profile.comment" if is_text => drop(content.comments.insert(text)),
                "pprof.profile.doc_url" if is_text => drop(content.doc_url.insert(text)),
                "pprof.profile.comment" | "pprof.profile.doc_url" => {}
                _ => drop(common.insert(label)),
            }
        }
        for kv in resource.iter().flat_map(|r| &r.attributes) {
            common.extend(plain.label(&plain.key(kv), kv.value.as_ref(), ""));
        }
        for s in &p.samples {
            let value = if s.values.is_empty() { s.timestamps_unix_nano.len() as i64 } else { s.values.iter().sum() };
            let stack = &plain.0.stack_table[s.stack_index as usize];
            let frames = stack.location_indices.iter().map(|&l| plain.frame(l)).collect();
            let labels = plain.attributes(&s.attribute_indices).into_iter().filter_map(|(.., label)| label);
            content.add((frames, labels.chain(common.iter().cloned()).collect()), column, value);
        }
    }
    periods.remove(&(None, 0));
    if periods.len() == 1 {
        (content.period_type, content.period) = periods.into_iter().next().unwrap();
    }
    content
}

/// Makes messages in which everything occurs that the protocol has.
struct Generator(Random);

const KEYS: [&str; 14] = [
    "thread.name",
    "thread.id",
    "process.executable.name",
    "profile.frame.type",
    "process.executable.build_id.gnu",
    "process.executable.build_id.go",
    "process.executable.build_id.htlhash",
    "pprof.mapping.has_functions",
    "pprof.mapping.has_line_numbers",
    "pprof.location.is_folded",
    "pprof.profile.comment",
    "pprof.profile.doc_url",
    "service.name",
    "länge",
];

/// Where strings begin in the table: the empty one, keys, types and units, and others.
const TYPES: [(&str, &str); 4] = [("cpu", "nanoseconds"), ("samples", "count"), ("off_cpu", "nanoseconds"), ("", "")];

impl Generator {
    fn below(&mut self, n: usize) -> usize {
        self.0.below(n as u64) as usize
    }

    fn several<T>(&mut self, most: usize, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| one(self)).collect()
    }

    /// An index into a table of so many entries. 0 is one of them.
    fn index(&mut self, n: usize) -> i32 {
        self.below(n) as i32
    }

    fn text(&mut self) -> String {
        ["", "main", "run", "a\"b\\c", "naïve\n", "x", "true"][self.below(7)].to_owned()
    }

    fn number(&mut self) -> i64 {
        [0, 1, -1, 127, 128, 300, -40_000, 1 << 40][self.below(8)]
    }

    fn value(&mut self, strings: usize, depth: usize) -> Option<AnyValue> {
        let value = match self.below(if depth < 3 { 11 } else { 8 }) {
            0 => return None,
            1 => None,
            2 => Some(Value::BoolValue(self.0.one_in(2))),
            3 => Some(Value::IntValue(self.number())),
            4 => Some(Value::DoubleValue([0.0, -1.5, 1e300, f64::INFINITY, 0.1][self.below(5)])),
            5 => Some(Value::BytesValue(self.several(3, |g| g.number() as u8))),
            6 => Some(Value::StringValueStrindex(self.index(strings))),
            7 | 10 => Some(Value::StringValue(self.text())),
            8 => Some(Value::ArrayValue(ArrayValue {
                values: self.several(3, |g| g.value(strings, depth + 1).unwrap_or_default()),
            })),
            _ => {
                Some(Value::KvlistValue(KeyValueList { values: self.several(3, |g| g.key_value(strings, depth + 1)) }))
            }
        };
        Some(AnyValue { value })
    }

    fn key_value(&mut self, strings: usize, depth: usize) -> KeyValue {
        let (key, key_strindex) = match self.below(3) {
            0 => (String::new(), self.index(strings)),
            1 => (KEYS[self.below(KEYS.len())].to_owned(), 0),
            _ => (self.text(), 0),
        };
        KeyValue { key, value: self.value(strings, depth), key_strindex }
    }

    fn value_type(&mut self) -> Option<ValueType> {
        // Strings of types stand behind the keys.
        let kind = self.below(TYPES.len() + 1);
        let at = |i: usize| (1 + KEYS.len() + 2 * kind + i) as i32;
        (kind < TYPES.len()).then(|| ValueType { type_strindex: at(0), unit_strindex: at(1) })
    }

    fn sample(&mut self, stacks: usize, attributes: usize, links: usize) -> Sample {
        let (n, shape) = (1 + self.below(3), self.below(3));
        Sample {
            stack_index: self.index(stacks),
            attribute_indices: self.several(3, |g| g.index(attributes)),
            link_index: self.index(links),
            values: if shape == 0 { vec![] } else { (0..n).map(|_| self.number()).collect() },
            timestamps_unix_nano: if shape == 1 { vec![] } else { (0..n).map(|_| self.0.next()).collect() },
        }
    }

    fn message(&mut self) -> ProfilesData {
        let mut string_table = vec![String::new()];
        string_table.extend(KEYS.map(str::to_owned));
        string_table.extend(TYPES.iter().flat_map(|t| [t.0, t.1]).map(str::to_owned));
        string_table.extend(self.several(6, Generator::text));
        let strings = string_table.len();
        let mut attribute_table = vec![KeyValueAndUnit::default()];
        attribute_table.extend(self.several(12, |g| KeyValueAndUnit {
            key_strindex: g.index(1 + KEYS.len()),
            value: g.value(strings, 0),
            unit_strindex: if g.0.one_in(2) { 0 } else { g.index(strings) },
        }));
        let attributes = attribute_table.len();
        let mut mapping_table = vec![Mapping::default()];
        mapping_table.extend(self.several(3, |g| Mapping {
            memory_start: g.below(1 << 20) as u64,
            memory_limit: 1 << 40,
            file_offset: g.below(3) as u64,
            filename_strindex: g.index(strings),
            attribute_indices: g.several(4, |g| g.index(attributes)),
        }));
        let mut function_table = vec![Function::default()];
        function_table.extend(self.several(6, |g| Function {
            name_strindex: g.index(strings),
            system_name_strindex: g.index(strings),
            filename_strindex: g.index(strings),
            start_line: g.number(),
        }));
        let (mappings, functions) = (mapping_table.len(), function_table.len());
        let mut location_table = vec![Location::default()];
        location_table.extend(self.several(8, |g| Location {
            mapping_index: g.index(mappings),
            address: g.0.next() >> g.below(64),
            lines: g.several(3, |g| Line { function_index: g.index(functions), line: g.number(), column: g.number() }),
            attribute_indices: g.several(2, |g| g.index(attributes)),
        }));
        let locations = location_table.len();
        let mut stack_table = vec![Stack::default()];
        stack_table.extend(self.several(6, |g| Stack { location_indices: g.several(9, |g| g.index(locations)) }));
        let link_table = vec![Link::default(), Link { trace_id: vec![7; 16], span_id: vec![8; 8] }];
        let (stacks, links) = (stack_table.len(), link_table.len());
        let profile = |g: &mut Generator| OtlpProfile {
            sample_type: g.value_type(),
            samples: g.several(6, |g| g.sample(stacks, attributes, links)),
            time_unix_nano: [0, 1_700_000_000_000_000_000, 1_700_000_000_000_000_500][g.below(3)],
            duration_nano: [0, 100, 1_000_000_000][g.below(3)],
            period_type: if g.0.one_in(2) { None } else { g.value_type() },
            period: [0, 0, 1, 10_000_000][g.below(4)],
            profile_id: if g.0.one_in(2) { vec![] } else { vec![g.number() as u8; 16] },
            dropped_attributes_count: g.below(2) as u32,
            original_payload_format: if g.0.one_in(2) { String::new() } else { "jfr".to_owned() },
            original_payload: g.several(3, |g| g.number() as u8),
            attribute_indices: g.several(2, |g| g.index(attributes)),
        };
        let scope = |g: &mut Generator| ScopeProfiles {
            scope: (!g.0.one_in(2)).then(Default::default),
            profiles: g.several(3, profile),
            schema_url: g.text(),
        };
        let resource = |g: &mut Generator| ResourceProfiles {
            resource: (!g.0.one_in(4))
                .then(|| Resource { attributes: g.several(3, |g| g.key_value(strings, 0)), ..Resource::default() }),
            scope_profiles: g.several(2, scope),
            schema_url: g.text(),
        };
        ProfilesData {
            resource_profiles: self.several(3, resource),
            dictionary: Some(ProfilesDictionary {
                mapping_table,
                location_table,
                function_table,
                link_table,
                string_table,
                attribute_table,
                stack_table,
            }),
        }
    }
}

/// The same message as the release before has it, which has no references to strings in values.
fn before(data: &ProfilesData) -> old::profiles::v1development::ProfilesData {
    use old::profiles::v1development as v1_8;
    let d = data.dictionary.as_ref().unwrap();
    let plain = Plain(d);
    let kind = |t: &Option<ValueType>| {
        t.as_ref().map(|t| v1_8::ValueType {
            type_strindex: t.type_strindex,
            unit_strindex: t.unit_strindex,
            aggregation_temporality: 1,
        })
    };
    let sample = |s: &Sample| v1_8::Sample {
        stack_index: s.stack_index,
        values: s.values.clone(),
        attribute_indices: s.attribute_indices.clone(),
        link_index: s.link_index,
        timestamps_unix_nano: s.timestamps_unix_nano.clone(),
    };
    let profile = |p: &OtlpProfile| v1_8::Profile {
        sample_type: kind(&p.sample_type),
        sample: p.samples.iter().map(sample).collect(),
        time_unix_nano: p.time_unix_nano,
        duration_nano: p.duration_nano,
        period_type: kind(&p.period_type),
        period: p.period,
        comment_strindices: vec![],
        // Without one of the fields behind the comments, 1.8 can't be told from 1.9.
        profile_id: vec![5; 16],
        dropped_attributes_count: p.dropped_attributes_count,
        original_payload_format: p.original_payload_format.clone(),
        original_payload: p.original_payload.clone(),
        attribute_indices: p.attribute_indices.clone(),
    };
    let attribute = |kv: &KeyValue| old::common::v1::KeyValue {
        key: plain.key(kv),
        value: kv.value.as_ref().map(|v| value_before(&plain, v)),
    };
    let scope = |s: &ScopeProfiles| v1_8::ScopeProfiles {
        profiles: s.profiles.iter().map(profile).collect(),
        ..Default::default()
    };
    let resource = |r: &ResourceProfiles| v1_8::ResourceProfiles {
        resource: r.resource.as_ref().map(|r| old::resource::v1::Resource {
            attributes: r.attributes.iter().map(attribute).collect(),
            ..Default::default()
        }),
        scope_profiles: r.scope_profiles.iter().map(scope).collect(),
        ..Default::default()
    };
    let location = |l: &Location| v1_8::Location {
        mapping_index: l.mapping_index,
        address: l.address,
        line: l
            .lines
            .iter()
            .map(|l| v1_8::Line { function_index: l.function_index, line: l.line, column: l.column })
            .collect(),
        attribute_indices: l.attribute_indices.clone(),
    };
    let mapping = |m: &Mapping| v1_8::Mapping {
        memory_start: m.memory_start,
        memory_limit: m.memory_limit,
        file_offset: m.file_offset,
        filename_strindex: m.filename_strindex,
        attribute_indices: m.attribute_indices.clone(),
    };
    let function = |f: &Function| v1_8::Function {
        name_strindex: f.name_strindex,
        system_name_strindex: f.system_name_strindex,
        filename_strindex: f.filename_strindex,
        start_line: f.start_line,
    };
    let of_table = |a: &KeyValueAndUnit| v1_8::KeyValueAndUnit {
        key_strindex: a.key_strindex,
        value: a.value.as_ref().map(|v| value_before(&plain, v)),
        unit_strindex: a.unit_strindex,
    };
    v1_8::ProfilesData {
        resource_profiles: data.resource_profiles.iter().map(resource).collect(),
        dictionary: Some(v1_8::ProfilesDictionary {
            mapping_table: d.mapping_table.iter().map(mapping).collect(),
            location_table: d.location_table.iter().map(location).collect(),
            function_table: d.function_table.iter().map(function).collect(),
            link_table: vec![v1_8::Link::default(); d.link_table.len()],
            string_table: d.string_table.clone(),
            attribute_table: d.attribute_table.iter().map(of_table).collect(),
            stack_table: d
                .stack_table
                .iter()
                .map(|s| v1_8::Stack { location_indices: s.location_indices.clone() })
                .collect(),
        }),
    }
}

fn value_before(plain: &Plain<'_>, value: &AnyValue) -> old::common::v1::AnyValue {
    use old::common::v1 as common;
    use old::common::v1::any_value::Value as Old;
    let item = |v: &AnyValue| value_before(plain, v);
    let value = value.value.as_ref().map(|value| match value {
        Value::StringValue(v) => Old::StringValue(v.clone()),
        Value::StringValueStrindex(v) => Old::StringValue(plain.string(*v)),
        Value::BoolValue(v) => Old::BoolValue(*v),
        Value::IntValue(v) => Old::IntValue(*v),
        Value::DoubleValue(v) => Old::DoubleValue(*v),
        Value::BytesValue(v) => Old::BytesValue(v.clone()),
        Value::ArrayValue(v) => Old::ArrayValue(common::ArrayValue { values: v.values.iter().map(item).collect() }),
        Value::KvlistValue(v) => {
            let entry = |kv: &KeyValue| common::KeyValue { key: plain.key(kv), value: kv.value.as_ref().map(item) };
            Old::KvlistValue(common::KeyValueList { values: v.values.iter().map(entry).collect() })
        }
    });
    common::AnyValue { value }
}

fn load(bytes: &[u8], format: Option<&str>) -> pprofdiff::Result<Profile> {
    let options = LoadOptions::default();
    let options = format.map_or(Ok(options.clone()), |format| options.with_input_format(format))?;
    Profile::from_bytes("in", bytes, &options)
}

#[test]
fn generated_messages_are_read_as_a_plain_conversion_says_in_both_numberings() {
    // By numbering: how many were recognised, and how many fit both.
    let mut outcomes = [[0; 2]; 2];
    for seed in 0..u64::from(oracle::cases(4000)) {
        let data = Generator(Random(seed)).message();
        let mut expected = expected(&data);
        // The header has one.
        let urls = std::mem::take(&mut expected.doc_url);
        let encoded = [(data.encode_to_vec(), "otlp"), (before(&data).encode_to_vec(), "otlp-1.9")];
        for ((bytes, name), outcomes) in encoded.iter().zip(&mut outcomes) {
            let same = |p: Profile| {
                let mut read = content(&p);
                let url = std::mem::take(&mut read.doc_url);
                assert!(url.is_subset(&urls) && url.is_empty() == urls.is_empty(), "{seed} {name}: {url:?}");
                assert_eq!(read, expected, "{seed} {name}");
            };
            same(load(bytes, Some(name)).unwrap_or_else(|e| panic!("{seed} {name}: {e}")));
            if data.resource_profiles.is_empty() {
                continue;
            }
            match load(bytes, None) {
                Ok(p) => {
                    same(p);
                    outcomes[0] += 1;
                }
                Err(e) => {
                    assert!(e.to_string().contains("two numberings"), "{seed} {name}: {e}");
                    outcomes[1] += 1;
                }
            }
        }
    }
    println!("recognised, fit both: {outcomes:?}");
    assert!(outcomes.iter().all(|[known, both]| known > both && *both > 0), "{outcomes:?}");
}

/// What the collector's library wrote of a profile of the corpus, and that profile.
const WRITTEN: [&str; 4] = ["cpp-cpu.base", "go-heap.new", "go-labels-cpu.new", "gperftools-heap.new"];

fn written(name: &str, format: &str) -> Vec<u8> {
    oracle::gunzip(&std::fs::read(oracle::corpus().join(format!("inputs/{name}.{format}.gz"))).unwrap())
}

#[test]
fn what_the_collectors_library_writes_of_profiles_is_read_as_those_profiles() {
    for name in WRITTEN {
        let of_corpus = std::fs::read(oracle::corpus().join(format!("{name}.pb.gz"))).unwrap();
        let mut expected = content(&load(&of_corpus, None).unwrap());
        let resource = text_label("service.name", "demo");
        expected.samples = std::mem::take(&mut expected.samples)
            .into_iter()
            .map(|((frames, mut labels), values)| {
                labels.insert(resource.clone());
                ((frames, labels), values)
            })
            .collect();
        for format in ["otlp", "otlp-1.9"] {
            for named in [None, Some(format)] {
                let p = load(&written(name, format), named).unwrap_or_else(|e| panic!("{name} {format}: {e}"));
                assert_eq!(content(&p), expected, "{name} {format}");
            }
            // The other numbering does not fit.
            let other = if format == "otlp" { "otlp-1.9" } else { "otlp" };
            assert!(load(&written(name, format), Some(other)).is_err(), "{name} {format} as {other}");
        }
    }
}

#[test]
fn a_real_message_that_is_cut_off_or_damaged_never_panics() {
    let whole = written("go-heap.new", "otlp");
    let mut random = Random(7);
    for end in 0..whole.len() {
        let _ = load(&whole[..end], Some("otlp"));
        let mut damaged = whole.clone();
        damaged[end] ^= 1 << random.below(8);
        for format in [None, Some("otlp"), Some("otlp-1.9")] {
            let _ = load(&damaged, format);
        }
    }
    assert!(load(&whole[..whole.len() - 1], None).is_err());
}
