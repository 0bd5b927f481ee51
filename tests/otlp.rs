//! Tests of OpenTelemetry profiles. Messages of every form are written with the crate `opentelemetry-proto`, in the
//! releases for both field numberings, and must be read as a plain conversion gives. Messages that the collector's own
//! library wrote from profiles of the corpus must be read as these profiles.

mod generate;

use std::collections::{BTreeMap, BTreeSet};

use otlp_1_8::tonic as old;
use otlp_1_10::tonic as new;
use pprofdiff::samples::{Label, LabelValue};
use pprofdiff::{LoadOptions, Profile};
use prost::Message;

use crate::generated_series::Random;
use crate::oracle;

use generate::{Generator, to_previous_release};
use new::common::v1::any_value::Value;
use new::common::v1::{AnyValue, ArrayValue, KeyValue, KeyValueList};
use new::profiles::v1development::{
    Function, KeyValueAndUnit, Line, Link, Location, Mapping, Profile as OtlpProfile, ProfilesData, ProfilesDictionary,
    ResourceProfiles, Sample, ScopeProfiles, Stack, ValueType,
};
use new::resource::v1::Resource;

/// Frames from the leaf, and labels.
type Key = (Vec<String>, BTreeSet<String>);

/// The content of a profile, independent of the order of its samples and tables. Values of samples with the same key
/// are added up.
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

/// A plain conversion, which looks up everything where it is used.
struct Plain<'a>(&'a ProfilesDictionary);

impl Plain<'_> {
    fn string(&self, index: i32) -> String {
        self.0.string_table[index as usize].clone()
    }

    /// Formats a value as text. `nested` is set inside a list or a map.
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
        let content = value.and_then(|v| v.value.as_ref())?;
        if let Value::IntValue(v) = content {
            return (!key.is_empty() && (*v != 0 || !unit.is_empty())).then(|| number_label(key, *v, unit));
        }
        let text = self.show(value, false);
        (!key.is_empty() && !text.is_empty()).then(|| text_label(key, &text))
    }

    /// Returns the attributes with these indexes: key, value as text, label.
    fn attributes(&self, indices: &[i32]) -> Vec<(String, String, Option<String>)> {
        let attribute = |index: &i32| {
            let a = &self.0.attribute_table[*index as usize];
            let (key, value) = (self.string(a.key_strindex), a.value.as_ref());
            let label = self.label(&key, value, &self.string(a.unit_strindex));
            (key, self.show(value, false), label)
        };
        // In the order of the table, without duplicates.
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
                // The first build id that the mapping lists and that is text.
                let named = m.attribute_indices.iter().map(|i| &self.0.attribute_table[*i as usize]);
                let candidates = named.filter(|a| self.string(a.key_strindex) == key);
                let mut texts = candidates.filter(|a| {
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

fn load(bytes: &[u8], format: Option<&str>) -> pprofdiff::Result<Profile> {
    // A function without a name would get the linker's name. The plain conversion does not do that, so demangling is
    // off.
    let mut options = LoadOptions::default();
    options.demangle = pprofdiff::Demangle::Off;
    let options = format.map_or(Ok(options.clone()), |format| options.with_input_format(format))?;
    pprofdiff::from_bytes("in", bytes, &options)
}

#[test]
fn generated_messages_equal_a_plain_conversion_in_both_numberings() {
    // For each numbering: the number of recognised messages, and of messages that fit both.
    let mut outcomes = [[0; 2]; 2];
    for seed in 0..u64::from(oracle::cases(4000)) {
        let data = Generator(Random(seed)).message();
        let mut expected = expected(&data);
        // The header holds only one URL.
        let urls = std::mem::take(&mut expected.doc_url);
        let encoded = [(data.encode_to_vec(), "otlp"), (to_previous_release(&data).encode_to_vec(), "otlp-1.9")];
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
    assert!(outcomes.iter().all(|[recognised, both]| recognised > both && *both > 0), "{outcomes:?}");
}

/// Profiles of the corpus that the collector's library converted.
const WRITTEN: [&str; 4] = ["cpp-cpu.base", "go-heap.new", "go-labels-cpu.new", "gperftools-heap.new"];

fn written_by_collector(name: &str, format: &str) -> Vec<u8> {
    oracle::gunzip(&std::fs::read(oracle::corpus().join(format!("inputs/{name}.{format}.gz"))).unwrap())
}

#[test]
fn profiles_converted_by_the_collectors_library_are_read_unchanged() {
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
                let p =
                    load(&written_by_collector(name, format), named).unwrap_or_else(|e| panic!("{name} {format}: {e}"));
                assert_eq!(content(&p), expected, "{name} {format}");
            }
            // Reading the message with the field numbers of the other version fails.
            let other = if format == "otlp" { "otlp-1.9" } else { "otlp" };
            assert!(load(&written_by_collector(name, format), Some(other)).is_err(), "{name} {format} as {other}");
        }
    }
}

#[test]
#[ignore = "slow; `tests/run all` runs it"]
fn a_truncated_or_damaged_message_never_panics() {
    let whole = written_by_collector("go-heap.new", "otlp");
    let mut random = Random(7);
    // Nightly runs truncate at each byte.
    let step = if oracle::cases(1) > 1 { 1 } else { 3 };
    for end in (0..whole.len()).step_by(step) {
        let _ = load(&whole[..end], Some("otlp"));
        let mut damaged = whole.clone();
        damaged[end] ^= 1 << random.below(8);
        for format in [None, Some("otlp"), Some("otlp-1.9")] {
            let _ = load(&damaged, format);
        }
    }
    assert!(load(&whole[..whole.len() - 1], None).is_err());
}
