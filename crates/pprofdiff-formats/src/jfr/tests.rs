//! Tests with recordings that they write themselves, in both encodings of integers, and damage. The tests in
//! `oracle.rs` read recordings that a JDK wrote.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;

use super::*;
use crate::kit::tree::rows;
use pprofdiff_profile::ErrorKind;

/// A writer of a chunk.
struct Writer {
    compressed: bool,
    bytes: Vec<u8>,
}

impl Writer {
    fn new(compressed: bool) -> Writer {
        Writer { compressed, bytes: Vec::new() }
    }

    fn number(&mut self, number: i64, width: usize) -> &mut Writer {
        if !self.compressed {
            self.bytes.extend(&number.to_be_bytes()[8 - width..]);
            return self;
        }
        let mut rest = number as u64;
        for _ in 0..8 {
            if rest < 0x80 {
                break;
            }
            self.bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
        self
    }

    fn int(&mut self, number: i64) -> &mut Writer {
        self.number(if self.compressed { number & 0xffff_ffff } else { number }, 4)
    }

    fn long(&mut self, number: i64) -> &mut Writer {
        self.number(number, 8)
    }

    fn byte(&mut self, byte: u8) -> &mut Writer {
        self.bytes.push(byte);
        self
    }

    fn text(&mut self, text: &str) -> &mut Writer {
        if text.is_empty() {
            return self.byte(1);
        }
        self.byte(3).int(text.len() as i64);
        self.bytes.extend(text.as_bytes());
        self
    }

    /// Writes an event around the output of `write`. Its size takes as many bytes as the widest number.
    fn event(&mut self, kind: i64, write: impl FnOnce(&mut Writer)) -> usize {
        let begin = self.bytes.len();
        self.bytes.extend([0; 4]);
        self.long(kind);
        write(self);
        let size = (self.bytes.len() - begin) as u32;
        let padded = [size & 0x7f | 0x80, size >> 7 & 0x7f | 0x80, size >> 14 & 0x7f | 0x80, size >> 21];
        let size = if self.compressed { padded.map(|byte| byte as u8) } else { size.to_be_bytes() };
        self.bytes[begin..begin + 4].copy_from_slice(&size);
        begin
    }
}

/// A type: its id, its name, and its fields (name, type, whether it is a constant, whether it is an array).
type JfrType = (i64, &'static str, &'static [(&'static str, i64, bool, bool)]);

const TYPES: &[JfrType] = &[
    (4, "boolean", &[]),
    (7, "char", &[]),
    (10, "int", &[]),
    (11, "long", &[]),
    (12, "float", &[]),
    (20, "java.lang.String", &[]),
    (21, "java.lang.Class", &[("name", 22, true, false), ("modifiers", 10, false, false)]),
    (22, "jdk.types.Symbol", &[("string", 20, false, false)]),
    (23, "jdk.types.Method", &[("type", 21, true, false), ("name", 22, true, false)]),
    (
        24,
        "jdk.types.StackFrame",
        &[("method", 23, true, false), ("lineNumber", 10, false, false), ("bci", 7, false, false)],
    ),
    (25, "jdk.types.StackTrace", &[("truncated", 4, false, false), ("frames", 24, false, true)]),
    (
        26,
        "java.lang.Thread",
        &[("osName", 20, false, false), ("javaName", 20, false, false), ("load", 12, false, false)],
    ),
    (27, "jdk.types.ThreadState", &[("name", 20, false, false)]),
    (
        101,
        "jdk.ExecutionSample",
        &[
            ("startTime", 11, false, false),
            ("sampledThread", 26, true, false),
            ("stackTrace", 25, true, false),
            ("state", 27, true, false),
        ],
    ),
    (
        102,
        "jdk.ObjectAllocationSample",
        &[
            ("startTime", 11, false, false),
            ("eventThread", 26, true, false),
            ("stackTrace", 25, true, false),
            ("objectClass", 21, true, false),
            ("weight", 11, false, false),
        ],
    ),
    (
        103,
        "jdk.ObjectAllocationInNewTLAB",
        &[
            ("startTime", 11, false, false),
            ("stackTrace", 25, true, false),
            ("objectClass", 21, true, false),
            ("allocationSize", 11, false, false),
            ("tlabSize", 11, false, false),
        ],
    ),
    (
        104,
        "jdk.JavaMonitorEnter",
        &[
            ("startTime", 11, false, false),
            ("duration", 11, false, false),
            ("eventThread", 26, true, false),
            ("stackTrace", 25, true, false),
            ("monitorClass", 21, true, false),
        ],
    ),
    (105, "jdk.CPULoad", &[("startTime", 11, false, false), ("user", 12, false, false)]),
    (
        106,
        "jdk.CPUTimeSample",
        &[
            ("startTime", 11, false, false),
            ("stackTrace", 25, true, false),
            ("failed", 4, false, false),
            ("samplingPeriod", 11, false, false),
            ("biased", 4, false, false),
        ],
    ),
    (
        107,
        "profiler.WallClockSample",
        &[("startTime", 11, false, false), ("stackTrace", 25, true, false), ("samples", 10, false, false)],
    ),
    (
        108,
        "profiler.Malloc",
        &[
            ("startTime", 11, false, false),
            ("stackTrace", 25, true, false),
            ("address", 11, false, false),
            ("size", 11, false, false),
        ],
    ),
    (109, "profiler.Free", &[("startTime", 11, false, false), ("address", 11, false, false)]),
    (110, "shop.Order", &[("startTime", 11, false, false), ("stackTrace", 25, true, false)]),
];

fn metadata(w: &mut Writer, types: &[JfrType]) {
    let mut texts: Vec<String> = [
        "",
        "root",
        "metadata",
        "class",
        "field",
        "name",
        "id",
        "constantPool",
        "true",
        "dimension",
        "1",
        "region",
        "superType",
        "jdk.jfr.Event",
    ]
    .map(str::to_owned)
    .to_vec();
    for (id, name, fields) in types {
        texts.extend([id.to_string(), (*name).to_owned()]);
        texts.extend(fields.iter().flat_map(|(name, class, ..)| [(*name).to_owned(), class.to_string()]));
    }
    w.long(0).long(0).long(1).int(texts.len() as i64);
    texts.iter().for_each(|text| _ = w.text(text));
    let number = |text: &str| texts.iter().position(|t| t == text).unwrap() as i64;
    let begin = |w: &mut Writer, name: &str, attributes: &[(&str, &str)], children: usize| {
        w.int(number(name)).int(attributes.len() as i64);
        attributes.iter().for_each(|(key, value)| _ = w.int(number(key)).int(number(value)));
        w.int(children as i64);
    };
    begin(w, "root", &[], 2);
    begin(w, "metadata", &[], types.len());
    for (id, name, fields) in types {
        let id_text = id.to_string();
        let mut attributes = vec![("name", *name), ("id", &*id_text)];
        attributes.extend((*id > 100).then_some(("superType", "jdk.jfr.Event")));
        begin(w, "class", &attributes, fields.len());
        for (name, class, is_constant, is_array) in *fields {
            let class = class.to_string();
            let mut attributes = vec![("name", *name), ("class", &*class)];
            attributes.extend(is_constant.then_some(("constantPool", "true")));
            attributes.extend(is_array.then_some(("dimension", "1")));
            begin(w, "field", &attributes, 0);
        }
    }
    begin(w, "region", &[], 0);
}

/// Writes a chunk with the types, the pools (type, number of values, the values with their keys), and the events.
fn chunk(
    compressed: bool,
    types: &[JfrType],
    pools: &[(i64, i64, &dyn Fn(&mut Writer))],
    events: &[(i64, &dyn Fn(&mut Writer))],
) -> Vec<u8> {
    let mut w = Writer::new(compressed);
    w.bytes.resize(68, 0);
    for (kind, write) in events {
        w.event(*kind, |w| write(w));
    }
    // Each pool gets constants of its own, which hold the distance to the previous constants.
    let mut previous = 0;
    for (class, n, write) in pools {
        let offset = w.bytes.len() as i64;
        let delta = if previous == 0 { 0 } else { previous - offset };
        previous = w.event(1, |w| {
            w.long(0).long(0).long(delta).byte(0).int(1).long(*class).int(*n);
            write(w);
        }) as i64;
    }
    let offset = w.event(0, |w| metadata(w, types)) as i64;
    let mut header = Writer::new(false);
    header.bytes.extend(b"FLR\0\0\x02\0\x01");
    let size = w.bytes.len() as i64;
    for number in [size, previous, offset, 5_000_000_000, 2_000_000_000, 0, 1_000_000] {
        header.long(number);
    }
    header.int(i64::from(compressed));
    w.bytes[..68].copy_from_slice(&header.bytes);
    w.bytes
}

/// Writes a recording with a stack `main (300) -> run (-1)` of a lambda, a thread, a state, and events that use them.
fn recording(compressed: bool) -> Vec<u8> {
    let symbols = ["a/Main", "main", "a/Main$$Lambda$87+0x00007f2f70007a08/1572", "run", "[[I"];
    chunk(
        compressed,
        TYPES,
        &[
            (22, 5, &|w| (1..).zip(symbols).for_each(|(key, text)| _ = w.long(key).text(text))),
            (21, 3, &|w| [(1, 1), (2, 3), (3, 5)].iter().for_each(|&(key, name)| _ = w.long(key).long(name).int(-1))),
            (23, 2, &|w| {
                [(1, 1, 2), (200, 2, 4)].iter().for_each(|&(key, class, name)| _ = w.long(key).long(class).long(name))
            }),
            (25, 1, &|w| {
                w.long(-7).byte(0).int(2);
                w.long(200).int(-1).number(0, 2).long(1).int(300).number(70, 2);
            }),
            (20, 1, &|w| _ = w.long(9).byte(5).int(1).byte(0xe9)),
            (26, 2, &|w| {
                w.long(1).byte(0).byte(2).long(9).bytes.extend([0; 4]);
                w.long(2).byte(4).int(2).number(0x61, 2).number(0x20ac, 2).byte(0).bytes.extend([0; 4]);
            }),
            (27, 1, &|w| _ = w.long(1).text("STATE_RUNNABLE")),
        ],
        &[
            (101, &|w| _ = w.long(1 << 60).long(1).long(-7).long(1)),
            (101, &|w| _ = w.long(-1).long(2).long(-7).long(1)),
            (105, &|w| w.long(1).bytes.extend([0; 4])),
            (101, &|w| _ = w.long(2).long(1).long(-7).long(1)),
            (102, &|w| _ = w.long(3).long(1).long(-7).long(3).long(1 << 40)),
            (104, &|w| _ = w.long(4).long(1500).long(1).long(0).long(1)),
            (999, &|w| _ = w.long(1500)),
        ],
    )
}

fn load(bytes: &[u8]) -> Result<Profile> {
    crate::from_bytes("in", bytes, &LoadOptions::default())
}

#[test]
fn both_encodings_and_several_chunks_are_read() {
    let stack = "a.Main.main :300|a.Main$$Lambda.run";
    let expected = |times: i64| {
        [
            format!(" thread=é class=a.Main: 0 0 {times} {}", 1_500_000 * times),
            format!("{stack} thread=a€ state=STATE_RUNNABLE: {times} 0 0 0"),
            format!("{stack} thread=é class=int[][]: 0 {} 0 0", times << 40),
            format!("{stack} thread=é state=STATE_RUNNABLE: {} 0 0 0", 2 * times),
        ]
    };
    for compressed in [false, true] {
        let p = load(&recording(compressed)).unwrap();
        let types: Vec<String> = p.sample_types().into_iter().map(|(kind, unit)| format!("{kind}/{unit}")).collect();
        assert_eq!(types, ["samples/count", "alloc_space/bytes", "contentions/count", "delay/nanoseconds"]);
        assert_eq!(rows(&p), expected(1), "compressed: {compressed}");
        assert_eq!((p.header().time_nanos, p.header().duration_nanos), (5_000_000_000, 2_000_000_000));
        assert_eq!(p.default_sample_type(), Some(0));
        let two = [recording(compressed), recording(!compressed)].concat();
        assert_eq!(rows(&load(&two).unwrap()), expected(2));
    }
}

#[test]
fn sampled_allocations_are_left_out_if_all_buffers_are_recorded() {
    let sampled: (i64, &dyn Fn(&mut Writer)) = (102, &|w| _ = w.long(3).long(0).long(0).long(0).long(70));
    let all: (i64, &dyn Fn(&mut Writer)) = (103, &|w| _ = w.long(1).long(0).long(0).long(3).long(500));
    let none: (i64, i64, &dyn Fn(&mut Writer)) = (22, 0, &|_| ());
    for (events, expected) in [(vec![sampled], 70), (vec![all], 500), (vec![sampled, all, sampled], 500)] {
        let p = load(&chunk(true, TYPES, &[none], &events)).unwrap();
        assert_eq!(p.sample_types(), [("alloc_space".to_owned(), "bytes".to_owned())]);
        assert_eq!(rows(&p), [format!(": {expected}")]);
    }
    let error = load(&chunk(true, TYPES, &[none], &[])).unwrap_err();
    assert!(error.to_string().contains("it has no samples, allocations or waits"), "{error}");
}

type Write<'w> = &'w dyn Fn(&mut Writer);

/// Writes a recording of these events without constants, so all stacks are empty.
fn recording_of(compressed: bool, events: &[(i64, Write<'_>)]) -> Vec<u8> {
    chunk(compressed, TYPES, &[(22, 0, &|_| ())], events)
}

fn types(p: &Profile) -> Vec<String> {
    p.sample_types().into_iter().map(|(kind, unit)| format!("{kind}/{unit}")).collect()
}

#[test]
fn cpu_time_samples_count_their_period_and_are_called_samples() {
    // The chunk has a tick per microsecond.
    let cpu = |period: i64, failed: u8, biased: u8| {
        move |w: &mut Writer| _ = w.long(1).long(0).byte(failed).long(period).byte(biased)
    };
    let (usual, late, failed) = (cpu(10_000, 0, 0), cpu(20_000, 0, 1), cpu(10_000, 1, 0));
    let ticked: Write<'_> = &|w| _ = w.long(1).long(0).long(0).long(0);
    for compressed in [false, true] {
        let p = load(&recording_of(compressed, &[(106, &usual), (106, &late), (106, &usual)])).unwrap();
        assert_eq!(types(&p), ["samples/count", "cpu/nanoseconds"]);
        assert_eq!(rows(&p), [" biased=true: 1 20000000", ": 2 20000000"]);
        assert_eq!((p.default_sample_type(), p.warnings()), (Some(1), vec![]));
        let p = load(&recording_of(compressed, &[(101, ticked), (106, &usual), (106, &failed)])).unwrap();
        assert_eq!(types(&p), ["execution_samples/count", "samples/count", "cpu/nanoseconds"]);
        assert_eq!(
            (rows(&p), p.default_sample_type()),
            ([": 0 2 20000000", ": 1 0 0"].map(str::to_owned).to_vec(), Some(2))
        );
        assert!(p.warnings()[0].contains("1 samples of CPU time have no stack"), "{:?}", p.warnings());
    }
}

#[test]
fn a_wall_clock_event_stands_for_several_samples() {
    for compressed in [false, true] {
        let wall = |samples: i64| move |w: &mut Writer| _ = w.long(1).long(0).int(samples);
        let p = load(&recording_of(compressed, &[(107, &wall(5)), (107, &wall(300))])).unwrap();
        assert_eq!((types(&p), rows(&p)), (vec!["wall_samples/count".to_owned()], vec![": 305".to_owned()]));
    }
}

#[test]
fn native_memory_is_in_use_until_it_is_freed() {
    let malloc =
        |time: i64, address: i64, size: i64| move |w: &mut Writer| _ = w.long(time).long(0).long(address).long(size);
    let free = |time: i64, address: i64| move |w: &mut Writer| _ = w.long(time).long(address);
    let (a, b, c) = (malloc(1, 16, 100), malloc(2, 32, 1000), malloc(9, 16, 7));
    let p = load(&recording_of(true, &[(109, &free(5, 16)), (108, &a), (108, &b), (108, &c)])).unwrap();
    let expected = ["alloc_space/bytes", "alloc_objects/count", "inuse_space/bytes", "inuse_objects/count"];
    assert_eq!(types(&p), expected.map(|name| format!("native_{name}")));
    assert_eq!(rows(&p), [": 1107 3 1007 2"]);
    let p = load(&recording_of(true, &[(108, &a), (108, &b)])).unwrap();
    assert_eq!(rows(&p), [": 1100 2"], "without frees, the memory in use is unknown");
}

#[test]
fn a_warning_lists_skipped_event_types_with_stacks() {
    let order: Write<'_> = &|w| _ = w.long(1).long(0);
    let load_of_cpu: Write<'_> = &|w| w.long(1).bytes.extend([0; 4]);
    let ticked: Write<'_> = &|w| _ = w.long(1).long(0).long(0).long(0);
    let p = load(&recording_of(true, &[(101, ticked), (110, order), (105, load_of_cpu), (110, order)])).unwrap();
    assert_eq!(p.warnings(), ["in: events with stacks that are not read: shop.Order (2)"]);
    let error = load(&recording_of(true, &[(110, order), (105, load_of_cpu), (110, order)])).unwrap_err().to_string();
    assert!(error.contains("it has shop.Order (2), jdk.CPULoad (1); record with settings=profile"), "{error}");
    assert!(error.contains("async-profiler"), "{error}");
}

/// A damaged recording is read or refused with an offset, and quickly.
#[test]
fn damaged_recordings_are_read_or_refused_with_an_offset() {
    for compressed in [false, true] {
        let bytes = recording(compressed);
        for end in 4..bytes.len() {
            let error = load(&bytes[..end]).unwrap_err();
            assert!(error.kind() == ErrorKind::Malformed && error.offset().is_some(), "{end}: {error}");
        }
        let refused = Cell::new(0);
        for offset in 4..bytes.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[offset] = byte;
                _ = load(&changed).map_err(|e| {
                    refused.set(refused.get() + 1);
                    let kinds = [ErrorKind::Malformed, ErrorKind::OtherFormat, ErrorKind::Limit];
                    assert!(kinds.contains(&e.kind()), "{offset} {byte}: {e}");
                });
            }
        }
        assert!(refused.get() > bytes.len(), "{}", refused.get());
    }
}

#[test]
fn chunks_that_would_expand_beyond_their_size_are_refused() {
    // Each type holds ten values of the next type; the last type is empty.
    let ten = |class| -> &'static [(&'static str, i64, bool, bool)] {
        Box::leak(vec![("x", class, false, false); 10].into())
    };
    let mut laughs: Vec<JfrType> = TYPES.to_vec();
    laughs.extend((0..12).map(|i| {
        (300 + i, ["l0", "l1", "l2", "l3", "l4", "l5", "l6", "l7", "l8", "l9", "l10", "l11"][i as usize], ten(301 + i))
    }));
    laughs.push((312, "nothing", &[]));
    let mut endless = TYPES.to_vec();
    endless.push((300, "endless", &[("x", 300, false, false)]));
    let mut arrays = TYPES.to_vec();
    arrays.extend([(300, "arrays", &[("x", 301, false, true)][..]), (301, "nothing", &[])]);
    for (types, words) in
        [(laughs, "too many nested values"), (endless, "too deeply"), (arrays, "less than a byte each")]
    {
        let pool: (i64, i64, &dyn Fn(&mut Writer)) = (300, 1, &|w| _ = w.long(1).int(2).long(0));
        let error = load(&chunk(false, &types, &[pool], &[])).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
    // A stack of a million frames, used by many threads and many events.
    let deep: [(i64, i64, &dyn Fn(&mut Writer)); 2] = [
        (26, 50, &|w| (0..50).for_each(|key| w.long(key).byte(0).text(&key.to_string()).bytes.extend([0; 4]))),
        (25, 1, &|w| {
            w.long(1).byte(0).int(1 << 20);
            (0..1 << 20).for_each(|_| _ = w.long(0).int(1).number(0, 2));
        }),
    ];
    let event = |thread: i64| move |w: &mut Writer| _ = w.long(0).long(thread).long(1).long(0);
    let events: Vec<_> = (0..5000).map(|i| event(i % 50)).collect();
    let events: Vec<(i64, &dyn Fn(&mut Writer))> = events.iter().map(|e| (101, e as &dyn Fn(&mut Writer))).collect();
    let error = load(&chunk(true, TYPES, &deep, &events)).unwrap_err();
    assert!(error.kind() == ErrorKind::Limit && error.to_string().contains("altogether"), "{error}");
    // A class with a name of a megabyte, which a thousand method names contain.
    let long = "x".repeat(1 << 20);
    let pools: [(i64, i64, &dyn Fn(&mut Writer)); 4] = [
        (22, 1, &|w| _ = w.long(1).text(&long)),
        (21, 1, &|w| _ = w.long(1).long(1).int(0)),
        (23, 1000, &|w| (0..1000).for_each(|key| _ = w.long(key).long(1).long(2))),
        (25, 1, &|w| {
            w.long(1).byte(0).int(1000);
            (0..1000).for_each(|key| _ = w.long(key).int(1).number(0, 2));
        }),
    ];
    let error = load(&chunk(true, TYPES, &pools, &[(101, &|w| _ = w.long(0).long(0).long(1).long(0))])).unwrap_err();
    assert!(error.kind() == ErrorKind::Limit && error.to_string().contains("names are too long"), "{error}");
}

#[test]
fn unfinished_recordings_and_other_versions_are_refused() {
    let bytes = recording(true);
    let changed = |offset: usize, to: &[u8]| {
        let mut changed = bytes.clone();
        changed[offset..offset + to.len()].copy_from_slice(to);
        load(&changed).unwrap_err().to_string()
    };
    assert!(changed(4, &[0, 1]).contains("version 1.1 of the format"), "{}", changed(4, &[0, 1]));
    assert!(changed(8, &[0; 8]).contains("is incomplete"));
    assert!(changed(16, &[0; 8]).contains("the constants should be at byte 0"));
    assert!(load(&[&bytes[..], b"x"].concat()).unwrap_err().to_string().contains("chunk 1: expected the header"));
}

/// The JDK's own reader agrees with the recordings that these tests write. It reads only compressed integers.
#[test]
fn the_jdk_reads_the_recordings_of_these_tests() {
    use std::process::Command;
    if !crate::oracle::has("jfr") {
        return;
    }
    let path = std::env::temp_dir().join(format!("pprofdiff-{}.jfr", std::process::id()));
    std::fs::write(&path, recording(true)).unwrap();
    let out = Command::new("jfr").args(["print", "--json"]).arg(&path).output().unwrap();
    std::fs::remove_file(&path).unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    let recording: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {out:?}"));
    let events = recording["recording"]["events"].as_array().unwrap();
    let all = |kind: &str| -> Vec<_> { events.iter().filter(|e| e["type"] == kind).map(|e| &e["values"]).collect() };
    let samples = all("jdk.ExecutionSample");
    assert_eq!(samples.len(), 3);
    // `jfr print` sorts events by time.
    for (sample, (field, thread)) in samples.iter().zip([("osName", "a€"), ("javaName", "é"), ("javaName", "é")]) {
        assert_eq!(sample["sampledThread"][field], thread, "{sample}");
        assert_eq!(sample["state"]["name"], "STATE_RUNNABLE");
        let frames = sample["stackTrace"]["frames"].as_array().unwrap();
        assert_eq!(frames[1]["method"]["type"]["name"]["string"], "a/Main");
        assert_eq!((&frames[1]["lineNumber"], &frames[0]["lineNumber"]), (&300.into(), &(-1).into()));
    }
    assert_eq!(all("jdk.ObjectAllocationSample")[0]["weight"], 1i64 << 40);
    assert_eq!(all("jdk.JavaMonitorEnter")[0]["monitorClass"]["name"]["string"], "a/Main");
}
