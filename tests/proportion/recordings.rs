//! Recordings whose events refer to tables or are much shorter than their converted form: JFR, Firefox, perf.data.

use std::io::Read;

use super::{FLOOR, MB, child, floor, half, temporary};

/// Reads a recording of the corpus.
fn read_recording(name: &str) -> Vec<u8> {
    let path = format!("{}/../../tests/corpus/inputs/{name}.gz", env!("CARGO_MANIFEST_DIR"));
    let mut bytes = Vec::new();
    flate2::read::MultiGzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Returns a recording of one chunk with uncompressed integers, and its shortest event repeated `times` times.
fn jfr_of_one_event(times: usize) -> Vec<u8> {
    let mut bytes = read_recording("written-plain.jfr");
    let number =
        |offset: usize, n: usize| bytes[offset..offset + n].iter().fold(0u64, |number, &b| number << 8 | u64::from(b));
    let size = number(8, 8) as usize;
    let mut events = Vec::new();
    let mut offset = 68;
    while offset < size {
        let length = number(offset, 4) as usize;
        // The first two types of events are metadata.
        if number(offset + 4, 8) > 1 {
            events.push(&bytes[offset..offset + length]);
        }
        offset += length;
    }
    let event = events.into_iter().min_by_key(|event| event.len()).unwrap().to_vec();
    bytes.truncate(size);
    bytes.extend(event.repeat(times));
    let size = bytes.len() as u64;
    bytes[8..16].copy_from_slice(&size.to_be_bytes());
    bytes
}

fn list(n: usize, one: impl Fn(usize) -> String) -> String {
    (0..n).map(one).collect::<Vec<_>>().join(",")
}

/// Returns a profile of one thread: stacks as frames with their callers, samples as stack indexes.
fn firefox(functions: usize, stacks: (String, String), samples: String) -> Vec<u8> {
    let meta = "\"meta\":{\"interval\":1,\"startTime\":1,\"preprocessedProfileVersion\":57}";
    let names = list(functions, |i| format!("\"f{i}\""));
    let numbers = list(functions, |i| i.to_string());
    let tables = format!(
        "\"stringArray\":[{names}],\"funcTable\":{{\"name\":[{numbers}]}},\"frameTable\":{{\"func\":[{numbers}]}},\
         \"stackTable\":{{\"frame\":[{}],\"prefix\":[{}]}}",
        stacks.0, stacks.1
    );
    let thread = format!("{{\"name\":\"T\",\"pid\":1,\"tid\":2,\"samples\":{{\"stack\":[{samples}]}},{tables}}}");
    format!("{{{meta},\"libs\":[],\"threads\":[{thread}]}}").into_bytes()
}

fn words(words: impl IntoIterator<Item = u64>) -> Vec<u8> {
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = (body.len() + 8) as u16;
    [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), body].concat()
}

/// Returns perf data in pipe format: one event type, whose samples have an address, a thread, a time and callers; then
/// records.
fn perf_data(records: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    const SAMPLE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 5;
    let event = record(64, 0, &words([1 | 72 << 32, 0, 1000, SAMPLE, 0, 1 << 18, 0, 0, 0, 1]));
    [b"PERFILE2".to_vec(), words([16]), event].into_iter().chain(records).collect::<Vec<_>>().concat()
}

fn sample(thread: u64, chain: &[u64]) -> Vec<u8> {
    let head = [chain[0], thread << 32 | thread, 5, chain.len() as u64];
    record(9, 2, &words(head.into_iter().chain(chain.iter().copied())))
}

fn mapped(process: u64, start: u64, size: u64, name: &str) -> Vec<u8> {
    let mut body = words([process << 32 | process, start, size, 0]);
    body.extend(name.as_bytes());
    body.resize(body.len() / 8 * 8 + 8, 0);
    // The trailer of records that are not samples: thread and time.
    body.extend(words([0, 1]));
    record(1, 2, &body)
}

fn fork(process: u64, parent: u64) -> Vec<u8> {
    record(7, 0, &words([parent << 32 | process, parent << 32 | process, 1, 0, 1]))
}

const USER: u64 = -512i64 as u64;

#[test]
fn recordings_take_memory_in_proportion() {
    let program = || vec![mapped(1, 0, 1 << 40, "/srv/web")];
    let usual = |i: u64| {
        let mut chain = vec![USER];
        chain.extend((0..20).map(|depth| 4096 + depth * (i % 97) + depth * depth * 64));
        sample(1, &chain)
    };
    let inputs: Vec<(&str, Vec<u8>, u64, &str)> = vec![
        ("jfr: real chunks", read_recording("press.base.jfr").repeat(half(200)), 1, ""),
        ("jfr: an event three million times", jfr_of_one_event(half(3_000_000)), 1, ""),
        (
            "firefox: usual",
            firefox(
                5000,
                (
                    list(half(100_000), |i| (i * 7 % 5000).to_string()),
                    list(half(100_000), |i| if i < 50 { "null".into() } else { (i - 50).to_string() }),
                ),
                list(half(4_000_000), |i| (i * 31 % 1000).to_string()),
            ),
            2,
            "",
        ),
        (
            "firefox: the shortest samples",
            firefox(1, ("0".into(), "null".into()), "0,".repeat(half(16_000_000)) + "0"),
            1,
            "",
        ),
        (
            "firefox: stacks that occur once",
            firefox(
                1,
                ("0,".repeat(half(999_999)) + "0", "null,".repeat(half(999_999)) + "null"),
                list(half(1_000_000), |i| i.to_string()),
            ),
            6,
            "",
        ),
        (
            "firefox: a chain of calls, each with a sample",
            firefox(
                1,
                ("0,".repeat(99_999) + "0", "null,".to_owned() + &list(99_999, |i| i.to_string())),
                list(100_000, |i| i.to_string()),
            ),
            4,
            "altogether",
        ),
        ("perf.data: usual", perf_data(program().into_iter().chain((0..half(200_000)).map(usual))), 1, ""),
        (
            "perf.data: a sample of its own for each thread, of one frame",
            perf_data(program().into_iter().chain((0..half(600_000)).map(|i| sample(i, &[1])))),
            5,
            "",
        ),
        (
            "perf.data: addresses that occur once",
            perf_data(program().into_iter().chain((0..half(3200)).map(|i| {
                let chain: Vec<u64> = (0..1000).map(|n| if n == 0 { USER } else { 64 + 8 * (1000 * i + n) }).collect();
                sample(1, &chain)
            }))),
            8,
            "",
        ),
        (
            "perf.data: files that are mapped once",
            perf_data((1..half(300_000)).flat_map(|i| [mapped(1, 16 * i, 16, "x"), sample(1, &[USER, 16 * i])])),
            2,
            "",
        ),
        (
            "perf.data: processes with many files in common",
            perf_data(
                (0..1000)
                    .map(|i| mapped(1, 16 * i, 16, "x"))
                    .chain((2..100_000).flat_map(|process| [fork(process, 1), mapped(process, 8, 16, "x")])),
            ),
            2,
            "share too many files",
        ),
    ];
    let mut beyond = Vec::new();
    for (name, bytes, times, error) in inputs {
        let path = temporary("recording");
        std::fs::write(&path, &bytes).unwrap();
        let steps = child(&path, None, true);
        std::fs::remove_file(&path).unwrap();
        let (step, peak, detail) = &steps[0];
        let expected = if error.is_empty() { "load" } else { "error" };
        assert!(step == expected && detail.contains(error), "{name}: {step} {detail}");
        let size = bytes.len() as u64;
        let floor = if error.is_empty() { floor() } else { FLOOR };
        let taken = (*peak as f64 - floor as f64).max(0.0) / size as f64;
        println!("{name}: {:.1} MB, peak {} MB, {taken:.1} times beside the floor", size as f64 / MB as f64, peak / MB);
        if *peak >= times * size + floor {
            beyond.push(format!("{name}: {} MB, of {times} times {} MB", peak / MB, size / MB));
        }
    }
    assert!(beyond.is_empty(), "{beyond:#?}");
}
