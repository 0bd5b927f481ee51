//! Tests of malformed input. In the tables, each row has one mutation with the expected message and byte offset.
//! Another test truncates a real profile at every byte.

#![allow(clippy::unwrap_used)]

mod regressions;

use std::io::Write;

use pprofdiff::proto::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};
use pprofdiff::{Diff, ErrorKind, LoadOptions, Query, Sort};
use pprofdiff_report::Table;
use prost::Message;

/// Returns a small valid profile: one type, one mapping, one function, one location, one sample with a label.
fn valid() -> Profile {
    let strings = ["", "cpu", "nanoseconds", "f", "f.go", "key", "value"];
    Profile {
        string_table: strings.iter().map(|s| s.as_bytes().to_vec()).collect(),
        sample_type: vec![ValueType { r#type: 1, unit: 2 }],
        mapping: vec![Mapping { id: 1, ..Default::default() }],
        function: vec![Function { id: 1, name: 3, filename: 4, ..Default::default() }],
        location: vec![Location {
            id: 1,
            mapping_id: 1,
            line: vec![Line { function_id: 1, line: 7, column: 0 }],
            ..Default::default()
        }],
        sample: vec![Sample {
            location_id: vec![1],
            value: vec![5],
            label: vec![Label { key: 5, str: 6, ..Default::default() }],
        }],
        time_nanos: 1,
        ..Default::default()
    }
}

fn load(bytes: &[u8]) -> pprofdiff::Result<pprofdiff::Profile> {
    pprofdiff::from_bytes("in.pb", bytes, &LoadOptions::default())
}

/// Returns the offset of a record of the valid profile. prost writes the tables in the order of their field numbers.
fn offset_of(bytes: &[u8], field: u64, nth: usize) -> u64 {
    let (mut offset, mut seen) = (0, 0);
    while offset < bytes.len() {
        let key = u64::from(bytes[offset]);
        if key >> 3 == field {
            if seen == nth {
                return offset as u64;
            }
            seen += 1;
        }
        offset += if key & 7 == 2 {
            2 + usize::from(bytes[offset + 1])
        } else {
            1 + bytes[offset + 1..].iter().position(|b| b < &128).unwrap() + 1
        };
    }
    panic!("no record {nth} of field {field}");
}

/// Name, mutation, record that the error must name, message, and field number of the table whose record contains the
/// offset (0 skips this check).
type Row = (&'static str, fn(&mut Profile), &'static str, &'static str, u64);

#[test]
fn each_mutation_is_reported_with_its_record_and_offset() {
    let rows: &[Row] = &[
        ("no sample type", |p| p.sample_type.clear(), "", "no sample types that describe them", 2),
        (
            "too few values",
            |p| p.sample[0].value.clear(),
            "sample 0",
            "it has 0 values, but there are 1 sample types",
            2,
        ),
        (
            "too many values",
            |p| p.sample[0].value.push(1),
            "sample 0",
            "it has 2 values, but there are 1 sample types",
            2,
        ),
        ("dangling location", |p| p.sample[0].location_id[0] = 9, "sample 0", "location id 9, which does not exist", 2),
        (
            "location id 0 in a sample",
            |p| p.sample[0].location_id[0] = 0,
            "sample 0",
            "location id 0, which does not exist",
            2,
        ),
        ("mapping id 0", |p| p.mapping[0].id = 0, "mapping 0", "mapping has the reserved id 0", 3),
        ("mapping twice", |p| p.mapping.push(p.mapping[0]), "mapping 1", "mapping id 1 occurs twice", 3),
        ("location id 0", |p| p.location[0].id = 0, "location 0", "location has the reserved id 0", 4),
        ("location twice", |p| p.location.push(p.location[0].clone()), "location 1", "location id 1 occurs twice", 4),
        ("function id 0", |p| p.function[0].id = 0, "function 0", "function has the reserved id 0", 5),
        (
            "function id 0, unused",
            |p| p.function.push(Function::default()),
            "function 1",
            "function has the reserved id 0",
            5,
        ),
        ("function twice", |p| p.function.push(p.function[0]), "function 1", "function id 1 occurs twice", 5),
        (
            "sparse function twice",
            |p| p.function.extend([Function { id: 1 << 40, ..p.function[0] }; 2]),
            "function 2",
            "function id 1099511627776 occurs twice",
            5,
        ),
        (
            "dangling function",
            |p| p.location[0].line[0].function_id = 3,
            "location 0",
            "function id 3, which does not exist",
            4,
        ),
        (
            "line without function",
            |p| p.location[0].line[0].function_id = 0,
            "location 0",
            "function id 0, which does not exist",
            4,
        ),
        (
            "function name out of range",
            |p| p.function[0].name = 7,
            "function 0",
            "its name is string 7, but there are 7 strings",
            5,
        ),
        (
            "negative string",
            |p| p.function[0].filename = -1,
            "function 0",
            "its file name is string that is negative or huge",
            5,
        ),
        ("mapping file out of range", |p| p.mapping[0].filename = 99, "mapping 0", "its file name is string 99", 3),
        ("sample type out of range", |p| p.sample_type[0].unit = 8, "sample type 0", "its unit is string 8", 1),
        ("label key out of range", |p| p.sample[0].label[0].key = 7, "sample 0", "a label's key is string 7", 2),
        ("label value out of range", |p| p.sample[0].label[0].str = 7, "sample 0", "a label's value is string 7", 2),
        ("label unit out of range", |p| p.sample[0].label[0].num_unit = 7, "sample 0", "a label's unit is string 7", 2),
        (
            "first string not empty",
            |p| p.string_table[0] = b"x".to_vec(),
            "string 0",
            "the first string must be empty",
            6,
        ),
        (
            "values past int64",
            |p| p.sample = vec![Sample { value: vec![i64::MIN], ..Default::default() }],
            "",
            "more than an int64 holds",
            0,
        ),
    ];
    for (name, mutate, record, message, field) in rows {
        let mut profile = valid();
        mutate(&mut profile);
        let bytes = profile.encode_to_vec();
        let error = load(&bytes).err().unwrap_or_else(|| panic!("{name}: accepted"));
        assert_eq!(error.kind(), ErrorKind::Malformed, "{name}");
        assert!(error.to_string().contains(message), "{name}: {error}");
        assert!(error.to_string().starts_with("in.pb: "), "{name}: {error}");
        assert_eq!(error.record().unwrap_or_default(), *record, "{name}: {error}");
        if *field != 0 {
            // The offset may be inside the record, at the wrong field.
            let nth = record.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
            let (start, offset) = (offset_of(&bytes, *field, nth), error.offset().unwrap());
            let end = start + 2 + u64::from(bytes[start as usize + 1]);
            assert!((start..end).contains(&offset), "{name}: {error}: the record is at {start}..{end}");
        }
    }
    load(&valid().encode_to_vec()).unwrap();
}

/// The valid profile with bytes appended: name, bytes, message, and offset from the end of the valid profile.
#[test]
fn each_malformed_wire_form_is_reported_at_its_byte() {
    let rows: &[(&str, &[u8], &str, u64)] = &[
        ("wire type 3", &[0x0b], "wire type 3 is not used", 0),
        ("wire type 4", &[0x14], "wire type 4 is not used", 0),
        ("wire type 6", &[0xf8 | 6, 0x07], "wire type 6 is not used", 0),
        ("wire type 7", &[0x0f], "wire type 7 is not used", 0),
        ("field 0", &[0x00, 0x00], "field number 0 does not exist", 0),
        ("key cut off", &[0x80], "the data ends inside a number", 0),
        ("value cut off", &[0x48, 0xff], "the data ends inside a number", 1),
        ("eleven bytes", &[0x60, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1], "longer than 10 bytes", 1),
        ("length past the end", &[0x12, 0x05, 0x00], "a field of 5 bytes does not fit into the 1 bytes", 2),
        (
            "length of 2^63",
            &[0x12, 128, 128, 128, 128, 128, 128, 128, 128, 128, 1],
            "does not fit into the 0 bytes",
            11,
        ),
        ("fixed64 cut off", &[0xf9, 0x07, 1, 2, 3], "a field of 8 bytes does not fit into the 3 bytes", 2),
        ("fixed32 cut off", &[0xfd, 0x07, 1], "a field of 4 bytes does not fit into the 1 bytes", 2),
        ("sample as a number", &[0x10, 0x05], "not encoded as one (wrong wire type)", 0),
        ("duration as a string", &[0x52, 0x01, 0x31], "a number is not encoded as one (wrong wire type)", 0),
        ("two profiles", &[0x48, 0x05], "two profiles are concatenated", 0),
        ("nested: sample's values as fixed32", &[0x12, 0x05, 0x15, 1, 2, 3, 4], "wrong wire type", 2),
        ("nested: packed numbers cut off", &[0x12, 0x03, 0x0a, 0x01, 0x80], "the packed numbers are malformed", 2),
        ("nested: label as a number", &[0x12, 0x02, 0x18, 0x01], "not encoded as one (wrong wire type)", 2),
        ("nested: line cut off", &[0x22, 0x04, 0x08, 0x09, 0x22, 0x05], "does not fit", 6),
        ("drop_frames out of range", &[0x38, 0x63], "drop_frames is string 99", u64::MAX),
        ("comment out of range", &[0x6a, 0x01, 0x63], "a comment is string 99", u64::MAX),
        ("default type out of range", &[0x70, 0x63], "the default sample type is string 99", u64::MAX),
    ];
    let valid = valid().encode_to_vec();
    for (name, tail, message, offset) in rows {
        let bytes = [&valid[..], tail].concat();
        let error = load(&bytes).err().unwrap_or_else(|| panic!("{name}: accepted"));
        assert!(error.to_string().contains(message), "{name}: {error}");
        if *offset != u64::MAX {
            assert_eq!(error.offset(), Some(valid.len() as u64 + offset), "{name}: {error}");
        }
    }
}

#[test]
fn oddities_that_pprof_accepts_are_accepted() {
    let accepted: &[(&str, fn(&mut Profile))] = &[
        ("a location without lines", |p| p.location[0].line.clear()),
        ("mapping id 0", |p| p.location[0].mapping_id = 0),
        ("a dangling mapping id", |p| p.location[0].mapping_id = 42),
        ("a sample without locations", |p| p.sample[0].location_id.clear()),
        ("no samples", |p| p.sample.clear()),
        ("strings that are not UTF-8", |p| p.string_table[3] = vec![0xff, 0xfe]),
        ("a string twice", |p| p.string_table.push(b"cpu".to_vec())),
        ("an empty string again", |p| p.string_table.push(Vec::new())),
        ("an empty label", |p| p.sample[0].label.push(Label::default())),
        ("ids near 2^64", |p| (p.location[0].id, p.sample[0].location_id[0]) = (u64::MAX, u64::MAX)),
    ];
    for (name, mutate) in accepted {
        let mut profile = valid();
        mutate(&mut profile);
        let loaded = load(&profile.encode_to_vec()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let diff = Diff::of_profile(&loaded.into()).unwrap();
        Table::top(&diff.measure(&Query::default()).unwrap().top(Sort::Flat), usize::MAX);
    }
    // The last value of a scalar wins. A ten-byte number may have bits past the 64th.
    let last = [&valid().encode_to_vec()[..], &[0x50, 3, 0x50, 4]].concat();
    assert_eq!(load(&last).unwrap().duration_nanos(), 4);
    let long = [&valid().encode_to_vec()[..], &[0x60, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0x7f]].concat();
    assert_eq!(load(&long).unwrap().period(), -1);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn damaged_compression_is_reported() {
    let raw = valid().encode_to_vec();
    let packed = gzip(&raw);
    let n = packed.len();
    let message = |bytes: &[u8]| load(bytes).err().unwrap().to_string();
    let changed = |offset: usize| {
        let mut bytes = packed.clone();
        bytes[offset] ^= 0x55;
        bytes
    };
    assert!(message(&[]).contains("the input is empty"));
    assert!(message(&gzip(&[])).contains("not a profile"));
    assert!(message(&changed(n - 8)).contains("checksum (CRC-32) is wrong"));
    assert!(message(&changed(n - 4)).contains("gzip length is wrong"));
    assert!(message(&changed(2)).contains("compression method that does not exist"));
    assert!(message(&[&packed[..], b"trailing"].concat()).contains("not gzip follow the gzip data"));
    assert!(message(&[0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3]).contains("the zstd data is damaged or cut off"));
    assert!(message(b"<!DOCTYPE html><html>").contains("in.pb: "));
    // Consecutive gzip members form one profile.
    let members = [gzip(&raw[..20]), gzip(&raw[20..])].concat();
    assert_eq!(load(&members).unwrap().n_samples(), 1);
    // A gzip header with all optional fields.
    let mut header = vec![0x1f, 0x8b, 8, 2 | 4 | 8 | 16, 0, 0, 0, 0, 0, 255, 3, 0, b'x', b'y', b'z'];
    header.extend(b"name\0comment\0");
    let mut crc = flate2::Crc::new();
    crc.update(&header);
    let with_sum = |sum: u16| [&header[..], &sum.to_le_bytes(), &packed[10..]].concat();
    assert_eq!(load(&with_sum(crc.sum() as u16)).unwrap().n_samples(), 1);
    assert!(message(&with_sum(crc.sum() as u16 ^ 1)).contains("checksum of the gzip header is wrong"));
    let mut reserved = packed.clone();
    reserved[3] |= 0x40;
    assert!(message(&reserved).contains("the gzip header has flags that are reserved"));
    // Skippable zstd frames may come first, and between other frames.
    let options = pprofdiff::WriteOptions::default().with_compression(pprofdiff::Compression::Zstd);
    let zstd = load(&raw).unwrap().to_bytes(&options).unwrap();
    let skipped = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"123"].concat();
    assert_eq!(load(&[&skipped[..], &skipped, &zstd, &skipped].concat()).unwrap().n_samples(), 1);
    assert!(message(&skipped).contains("not a profile"));
}

/// Files are inflated at once and pipes block by block, with two different libraries. Both must agree on which bytes
/// are valid gzip.
#[test]
fn files_and_pipes_agree_on_gzip() {
    let packed = gzip(&valid().encode_to_vec());
    let (body, trailer) = packed.split_at(packed.len() - 8);
    let mut cases = vec![
        packed.clone(),
        [&packed[..], &packed].concat(),
        [&packed[..], &gzip(&[])].concat(),
        [&packed[..], &[0; 8]].concat(),
        [&packed[..], trailer].concat(),
        [body, b"between", trailer].concat(),
        [body, trailer, body, b"between", trailer].concat(),
    ];
    cases.extend((0..packed.len()).map(|n| packed[..n].to_vec()));
    for offset in 0..packed.len() {
        for bit in 0..8 {
            cases.push(packed.clone());
            cases.last_mut().unwrap()[offset] ^= 1 << bit;
        }
    }
    let outcome_of = |loaded: pprofdiff::Result<pprofdiff::Profile>| match loaded {
        Ok(profile) => {
            format!("{} samples, total {}", profile.n_samples(), profile.samples().map(|s| s.value(0)).sum::<i64>())
        }
        Err(error) => error.to_string(),
    };
    let mut accepted = 0;
    for case in cases {
        let at_once = outcome_of(load(&case));
        assert_eq!(
            at_once,
            outcome_of(pprofdiff::from_reader("in.pb", &case[..], &LoadOptions::default())),
            "{case:x?}"
        );
        accepted += usize::from(at_once.contains("total"));
    }
    // Accepted are the file itself, the file twice, the file with an empty member, and changes in unused header fields.
    assert!((3..100).contains(&accepted), "{accepted} accepted");
}

#[test]
fn the_inflated_limit_applies_to_every_compression() {
    let raw = valid().encode_to_vec();
    let zstd = load(&raw)
        .unwrap()
        .to_bytes(&pprofdiff::WriteOptions::default().with_compression(pprofdiff::Compression::Zstd));
    for bytes in [raw.clone(), gzip(&raw), zstd.unwrap()] {
        let with_limit = |limit: usize| {
            let options = LoadOptions::default().with_inflated_limit(limit as u64)?;
            pprofdiff::from_bytes("in", &bytes, &options)
        };
        assert!(with_limit(raw.len()).is_ok());
        assert_eq!(with_limit(raw.len() - 1).err().unwrap().kind(), ErrorKind::Limit);
        // The maximum limit: offsets are 32 bits wide.
        assert!(with_limit((4 << 30) - 1).is_ok());
        let error = with_limit(4 << 30).err().unwrap();
        assert!(error.kind() == ErrorKind::Query && error.to_string().contains("at most 4294967295 bytes"), "{error}");
    }
}

#[test]
fn unnamed_frames_show_how_to_get_names() {
    let profile = |binary: &str, lines: Vec<Line>| Profile {
        sample_type: vec![ValueType { r#type: 1, unit: 1 }],
        sample: vec![Sample { location_id: vec![1], value: vec![1], ..Default::default() }],
        mapping: vec![Mapping { id: 1, memory_limit: 9, filename: 2, ..Default::default() }],
        location: vec![Location { id: 1, mapping_id: 1, address: 3, line: lines, ..Default::default() }],
        function: vec![Function { id: 1, name: 1, ..Default::default() }],
        string_table: ["", "cpu", binary].map(|t| t.as_bytes().to_vec()).to_vec(),
        ..Default::default()
    };
    for (binary, name, operands) in [
        ("/usr/bin/x", "cpu.pb.gz", "cpu.pb.gz --binary /usr/bin/x"),
        ("/opt/my app; reboot", "$(reboot).pb.gz", "'$(reboot).pb.gz' --binary '/opt/my app; reboot'"),
        ("-http=:80", "-", "PROFILE --binary ./-http=:80"),
        ("", "<bytes>", "PROFILE --binary BINARY"),
        ("a\u{1b}[2J", "it's", "'it'\\''s' --binary BINARY"),
    ] {
        let p = profile(binary, Vec::new()).load(name).unwrap();
        let warnings = p.warnings();
        assert!(warnings[0].starts_with(&format!("{name}: no function names, only addresses")), "{warnings:?}");
        assert!(!warnings[0].contains("pprofdiff convert"), "{warnings:?}");
        assert_eq!(p.advice().unwrap(), format!("pprofdiff convert {operands} -o named.pb.gz"));
    }
    let line = Line { function_id: 1, ..Default::default() };
    let named = profile("/usr/bin/x", vec![line]).load("named").unwrap();
    assert_eq!((named.warnings(), named.advice()), (Vec::new(), None));
}

#[test]
fn passwords_in_urls_are_not_part_of_a_name() {
    let url = "https://user:secret@host/heap";
    let named = |name: &str, e: &pprofdiff::Error| {
        assert_eq!((name, e.input()), ("https://***@host/heap", Some("https://***@host/heap")));
        assert!(!e.to_string().contains("secret"), "{e}");
    };
    let (options, empty) = (LoadOptions::default(), valid().encode_to_vec());
    named(
        pprofdiff::from_bytes(url, &empty, &options).unwrap().name(),
        &pprofdiff::from_bytes(url, b"x", &options).unwrap_err(),
    );
    named(
        pprofdiff::from_reader(url, &empty[..], &options).unwrap().name(),
        &pprofdiff::from_reader(url, &b"x"[..], &options).unwrap_err(),
    );
    // The URL is used as a path, which does not exist.
    named(
        &pprofdiff::Source::Path(url.into()).name(),
        &pprofdiff::Source::Path(url.into()).load(&options).unwrap_err(),
    );
    let keys = pprofdiff::input::file_builds(&["https://u:secret@h/x".into(), "https://v:other@h/y".into()]);
    assert_eq!(keys.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["x", "y"]);
}

/// Small inputs of each JSON format, with most of the members that pprofdiff reads.
const JSON: [&str; 7] = [
    r#"{"nodes":[{"id":1,"callFrame":{"functionName":"(root)","url":""},"children":[2]},{"id":2,"hitCount":1,
        "callFrame":{"functionName":"f","url":"u","lineNumber":1,"columnNumber":2}}],
        "startTime":0,"endTime":10,"samples":[1,2],"timeDeltas":[1,2]}"#,
    r#"{"head":{"callFrame":{"functionName":"(root)","url":""},"selfSize":0,"id":1,"children":[
        {"callFrame":{"functionName":"f","url":"u","lineNumber":1,"columnNumber":2},"selfSize":5,
        "children":[{"callFrame":{"functionName":"g","url":"u"},"selfSize":7,"children":[]}]}]}}"#,
    r#"{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[
        {"name":"f","file":"a","line":1,"col":2},{"name":"g"}]},"profiles":[
        {"type":"sampled","name":"x","unit":"seconds","startValue":0,"endValue":3,"samples":[[0,1]],"weights":[3]},
        {"type":"evented","name":"y","unit":"seconds","startValue":0,"endValue":3,"events":[
        {"type":"O","frame":0,"at":1},{"type":"C","frame":0,"at":2}]}]}"#,
    r#"{"meta":{"preprocessedProfileVersion":57,"startTime":5,"profilingStartTime":10,"profilingEndTime":15,
        "sampleUnits":{"threadCPUDelta":"ns"}},"libs":[{"name":"l","path":"/l","codeId":"ab"}],
        "shared":{"stringArray":["f","g"],"funcTable":{"name":[0,1],"resource":[-1,-1]},
        "frameTable":{"func":[0,1],"line":[3,null]},"stackTable":{"frame":[0,1],"prefix":[null,0]}},
        "threads":[{"name":"t","processName":"p","pid":1,"tid":2,"samples":{"stack":[0,1],"time":[10,11],
        "weight":[1,2],"weightType":"samples","threadCPUDelta":[5,6]}}]}"#,
    r#"{"traceEvents":[{"name":"thread_name","ph":"M","pid":1,"tid":2,"ts":0,"args":{"name":"main"}},
        {"name":"Profile","cat":"c","ph":"P","id":"0x1","pid":1,"tid":2,"ts":5,"args":{"data":{"startTime":4}}},
        {"name":"ProfileChunk","cat":"c","ph":"P","id":"0x1","pid":1,"tid":3,"ts":9,"args":{"data":{"endTime":14,"cpuProfile":{
        "nodes":[{"id":1,"callFrame":{"functionName":"(root)"}},{"id":2,"parent":1,"callFrame":{"functionName":"f",
        "url":"u","lineNumber":1,"columnNumber":2}}],"samples":[2]},"timeDeltas":[3]}}}]}"#,
    r#"{"mode":"wall","interval":1000,"gc_samples":0,"missed_samples":0,"frames":{
        "5":{"name":"f","file":"a.rb","line":3,"samples":2},"-7":{"name":"g","file":"a.rb","line":9,"samples":0}},
        "raw":[2,-7,5,2],"raw_lines":[2,9,4,2],"raw_timestamp_deltas":[1000,1100]}"#,
    r#"{"resourceProfiles":[{"resource":{"attributes":[{"key":"k","value":{"stringValue":"v"}}]},"scopeProfiles":[
        {"profiles":[{"sampleType":{"typeStrindex":1,"unitStrindex":2},"periodType":{"typeStrindex":1,"unitStrindex":2},
        "period":"7","timeUnixNano":"5","durationNano":"6","samples":[{"stackIndex":1,"attributeIndices":[1],
        "values":["10"]}]}]}]}],"dictionary":{"stringTable":["","cpu","nanoseconds","main","file","key"],
        "functionTable":[{},{"nameStrindex":3,"filenameStrindex":4,"startLine":"1"}],
        "mappingTable":[{},{"filenameStrindex":4,"memoryStart":"1","memoryLimit":"9"}],
        "locationTable":[{},{"mappingIndex":1,"address":"5","lines":[{"functionIndex":1,"line":"2","column":"3"}]}],
        "stackTable":[{},{"locationIndices":[1]}],
        "attributeTable":[{},{"keyStrindex":5,"value":{"intValue":"4"},"unitStrindex":2}]}}"#,
];

/// Formats a value. Duplicates the `nth` member of all objects, with another value the second time.
fn with_twice(value: &serde_json::Value, nth: &mut i64) -> String {
    use serde_json::Value;
    match value {
        Value::Array(all) => format!("[{}]", all.iter().map(|v| with_twice(v, nth)).collect::<Vec<_>>().join(",")),
        Value::Object(members) => {
            let mut texts = Vec::new();
            for (key, value) in members {
                *nth -= 1;
                let is_twice = *nth == 0;
                texts.push(format!("{key:?}:{}", with_twice(value, nth)));
                if is_twice {
                    let other = match value {
                        Value::Number(n) => (n.as_i64().unwrap() + 1).to_string(),
                        Value::String(text) if text.parse::<i64>().is_ok() => "\"3\"".to_owned(),
                        Value::String(_) => "\"other\"".to_owned(),
                        Value::Array(_) => "[]".to_owned(),
                        _ => "{}".to_owned(),
                    };
                    texts.push(format!("{key:?}:{other}"));
                }
            }
            format!("{{{}}}", texts.join(","))
        }
        other => other.to_string(),
    }
}

#[test]
fn a_duplicate_json_key_is_an_error_or_is_not_read() {
    let content = |text: &str| {
        let profile = pprofdiff::from_bytes("in", text.as_bytes(), &LoadOptions::default())?;
        Ok::<_, pprofdiff::Error>(profile.buffer().to_vec())
    };
    for text in JSON {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        let expected = content(&value.to_string()).unwrap_or_else(|e| panic!("{e}: {text}"));
        let (mut n_refused, mut n_same) = (0, 0);
        for nth in 1.. {
            let mut left = nth;
            let twice = with_twice(&value, &mut left);
            if left > 0 {
                break;
            }
            match content(&twice) {
                Ok(actual) => {
                    assert_eq!(actual, expected, "{twice}");
                    n_same += 1;
                }
                Err(e) => {
                    assert!(
                        e.to_string().contains("occurs twice in one object") && e.offset().is_some(),
                        "{e}: {twice}"
                    );
                    n_refused += 1;
                }
            }
        }
        assert!(n_refused > 8 && n_refused > 3 * n_same, "{n_refused} refused, {n_same} not read: {text}");
    }
}

#[test]
fn otlp_messages_do_not_share_strings() {
    let message = |names: &str| {
        format!(
            r#"{{"resourceProfiles":[{{"scopeProfiles":[{{"profiles":[{{"sampleType":{{"typeStrindex":1,"unitStrindex":2}},
            "samples":[{{"stackIndex":1,"values":["10"]}}]}}]}}]}}],"dictionary":{{"stringTable":["","cpu","nanoseconds"{names}],
            "functionTable":[{{}},{{"nameStrindex":3}}],"locationTable":[{{}},{{"lines":[{{"functionIndex":1}}]}}],
            "stackTable":[{{}},{{"locationIndices":[1]}}]}}}}"#
        )
    };
    let (first, second) = (message(r#","first""#), message(""));
    let error = load(format!("{first}\n{second}\n").as_bytes()).unwrap_err().to_string();
    assert!(error.contains("message 1") && error.contains("it refers to string 3, but there are 3"), "{error}");
    // An attribute has one value, so several values are ambiguous.
    let several = r#"{"resourceProfiles":[{"resource":{"attributes":[{"key":"k","value":{"stringValue":"v","intValue":"1"}}]}}]}"#;
    let error = load(several.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("a value has several types"), "{error}");
}

#[test]
#[ignore = "slow; `tests/run all` runs it"]
fn a_real_profile_cut_off_at_any_byte_is_an_error() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
    let packed = std::fs::read(corpus.join("rust-cpu.new.pb.gz")).unwrap();
    assert!(packed.len() < 50_000);
    for n in 0..packed.len() {
        assert!(load(&packed[..n]).is_err(), "cut off at byte {n}, it passes as complete");
    }
    // Without compression, a truncation between two fields cannot be detected. The accepted part must at least be a
    // valid profile.
    let raw = load(&packed).unwrap();
    let raw = raw.to_bytes(&pprofdiff::WriteOptions::default().with_compression(pprofdiff::Compression::None)).unwrap();
    let mut accepted = 0;
    for n in 0..raw.len() {
        if let Ok(p) = load(&raw[..n]) {
            accepted += 1;
            let diff = Diff::of_profile(&p.into()).unwrap();
            diff.measure(&Query::default()).unwrap().stacks(true);
        }
    }
    assert!(accepted < 12, "{accepted} prefixes of the raw message are accepted");
}
