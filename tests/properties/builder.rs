//! Rebuilds a message with `ProfileBuilder`, and lists the content of a message for comparisons.

use std::collections::BTreeMap;

use pprofdiff::builder::ProfileBuilder;
use pprofdiff::columns::{self};
use pprofdiff::proto;
use pprofdiff::samples::LabelValue;

/// Converts a mapping of a message for the builder.
pub(super) fn mapping<'m>(
    b: &mut ProfileBuilder,
    m: &proto::Mapping,
    text: impl Fn(i64) -> &'m [u8],
) -> columns::Mapping {
    let flags = [m.has_functions, m.has_filenames, m.has_line_numbers, m.has_inline_frames];
    columns::Mapping {
        start: m.memory_start,
        limit: m.memory_limit,
        offset: m.file_offset,
        file: b.string(text(m.filename)),
        build_id: b.string(text(m.build_id)),
        flags: flags.iter().enumerate().map(|(i, &flag)| u8::from(flag) << i).sum(),
    }
}

/// Adds a message to a builder record by record.
pub(super) fn build(p: &proto::Profile) -> ProfileBuilder {
    let mut b = ProfileBuilder::new();
    let text = |i: i64| p.string_table[i as usize].as_slice();
    let utf8 = |i: i64| std::str::from_utf8(text(i)).unwrap();
    p.sample_type.iter().for_each(|t| b.sample_type(utf8(t.r#type), utf8(t.unit)));
    let mut mappings = BTreeMap::new();
    for m in &p.mapping {
        let made = mapping(&mut b, m, text);
        mappings.insert(m.id, b.mapping(made));
    }
    let functions: BTreeMap<_, _> =
        p.function.iter().map(|f| (f.id, b.function(text(f.name), text(f.filename), f.start_line))).collect();
    let mut locations = BTreeMap::new();
    for l in &p.location {
        let line = |l: &proto::Line| b.line(functions[&l.function_id], l.line).with_column(l.column);
        let lines: Vec<_> = l.line.iter().map(line).collect();
        locations.insert(l.id, b.location(mappings.get(&l.mapping_id).copied(), l.address, &lines).unwrap());
    }
    for s in &p.sample {
        let stack: Vec<_> = s.location_id.iter().map(|id| locations[id]).collect();
        let labels: Vec<_> = s
            .label
            .iter()
            .map(|l| {
                let value = match l.str {
                    0 => LabelValue::Number(l.num, b.string(text(l.num_unit))),
                    _ => LabelValue::Text(b.string(text(l.str))),
                };
                pprofdiff::samples::Label { key: b.string(text(l.key)), value }
            })
            .collect();
        b.sample(&stack, &s.value, &labels).unwrap();
    }
    if let Some(t) = p.period_type {
        b.period(utf8(t.r#type), utf8(t.unit), p.period);
    }
    let [drop, keep, default, url] =
        [p.drop_frames, p.keep_frames, p.default_sample_type, p.doc_url].map(|i| b.string(text(i)));
    let comments = p.comment.iter().map(|&i| b.string(text(i))).collect();
    let header = b.header();
    (header.drop_frames, header.keep_frames, header.default_sample_type, header.doc_url) = (drop, keep, default, url);
    (header.comments, header.time_nanos, header.duration_nanos) = (comments, p.time_nanos, p.duration_nanos);
    b
}

/// Returns the content of a message independent of its ids and string indexes: its header, then each sample.
pub(super) fn all_fields(p: &proto::Profile) -> Vec<String> {
    let text = |i: i64| String::from_utf8_lossy(&p.string_table[i as usize]).into_owned();
    let kind = |t: &proto::ValueType| (text(t.r#type), text(t.unit));
    let location = |id: &u64| {
        let l = p.location.iter().find(|l| l.id == *id).unwrap();
        let mapping = p.mapping.iter().find(|m| m.id == l.mapping_id).map(|m| {
            let named = proto::Mapping { id: 0, filename: 0, build_id: 0, ..*m };
            (named, text(m.filename), text(m.build_id))
        });
        let lines: Vec<_> = l
            .line
            .iter()
            .map(|line| {
                let f = p.function.iter().find(|f| f.id == line.function_id).unwrap();
                let names = (text(f.name), text(f.system_name), text(f.filename));
                (names, f.start_line, line.line, line.column)
            })
            .collect();
        (mapping, l.address, lines)
    };
    let header = (
        p.sample_type.iter().map(kind).collect::<Vec<_>>(),
        p.period_type.as_ref().map(kind),
        p.comment.iter().map(|&i| text(i)).collect::<Vec<_>>(),
        [p.drop_frames, p.keep_frames, p.default_sample_type, p.doc_url].map(text),
        [p.time_nanos, p.duration_nanos, p.period],
    );
    let sample = |s: &proto::Sample| {
        let labels: Vec<_> = s.label.iter().map(|l| (text(l.key), text(l.str), l.num, text(l.num_unit))).collect();
        format!("{:?}", (s.location_id.iter().map(location).collect::<Vec<_>>(), &s.value, labels))
    };
    std::iter::once(format!("{header:?}")).chain(p.sample.iter().map(sample)).collect()
}
