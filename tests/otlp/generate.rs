//! Generates random messages in both numberings.

use super::*;

/// Generates messages that use every feature of the protocol.
pub(super) struct Generator(pub(super) Random);

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

/// Types and units. In the string table they come after the empty string and the keys, before other strings.
const TYPES: [(&str, &str); 4] = [("cpu", "nanoseconds"), ("samples", "count"), ("off_cpu", "nanoseconds"), ("", "")];

impl Generator {
    fn below(&mut self, n: usize) -> usize {
        self.0.below(n as u64) as usize
    }

    fn several<T>(&mut self, limit: usize, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(limit + 1)).map(|_| one(self)).collect()
    }

    /// Returns an index into a table of `n` entries. 0 is a valid index.
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
        // In the string table, types follow the keys.
        let kind = self.below(TYPES.len() + 1);
        let text_index = |i: usize| (1 + KEYS.len() + 2 * kind + i) as i32;
        (kind < TYPES.len()).then(|| ValueType { type_strindex: text_index(0), unit_strindex: text_index(1) })
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

    pub(super) fn message(&mut self) -> ProfilesData {
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

/// Converts a message to the previous release, whose values cannot refer to strings.
pub(super) fn to_previous_release(data: &ProfilesData) -> old::profiles::v1development::ProfilesData {
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
        // Without a field after the comments, 1.8 cannot be distinguished from 1.9.
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
