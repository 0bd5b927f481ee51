//! Tests with files that they write themselves, and damage. The tests in `oracle.rs` read recordings that perf wrote.

#![allow(clippy::unwrap_used)]

use super::*;
use pprofdiff_profile::ErrorKind;

const HAVE_IDS: u64 = 1 << 18;
/// The fields of samples: an id, an address, a thread, a time, a CPU, a period, callers.
const SAMPLE: u64 = 1 << 16 | 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 5;

const KERNEL: u64 = -128i64 as u64;
const USER: u64 = -512i64 as u64;

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn halves(halves: &[u32]) -> Vec<u8> {
    halves.iter().flat_map(|half| half.to_le_bytes()).collect()
}

fn text(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(text.len() / 8 * 8 + 8, 0);
    bytes
}

/// Writes the attributes of an event with 72 bytes.
fn event(kind: u32, config: u64, sample: u64) -> Vec<u8> {
    [halves(&[kind, 72]), words(&[config, 1000, sample, 0, HAVE_IDS, 0, 0, 0])].concat()
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = (body.len() + 8) as u16;
    [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), body].concat()
}

/// Writes the fields at the end of records other than samples: thread, time, CPU, id.
fn trailer(time: u64, id: u64) -> Vec<u8> {
    words(&[0, time, 0, id])
}

fn comm(pid: u32, tid: u32, name: &str, misc: u16, time: u64) -> Vec<u8> {
    record(kinds::COMM, misc, &[halves(&[pid, tid]), text(name), trailer(time, 1)].concat())
}

fn fork(pid: u32, parent: u32, time: u64) -> Vec<u8> {
    record(kinds::FORK, 0, &[halves(&[pid, parent, pid, parent]), words(&[time]), trailer(time, 1)].concat())
}

fn mmap(pid: u32, [start, size, offset]: [u64; 3], file: &str, time: u64) -> Vec<u8> {
    let range = words(&[start, size, offset]);
    record(kinds::MMAP, 2, &[halves(&[pid, pid]), range, text(file), trailer(time, 1)].concat())
}

fn sample(id: u64, pid: u32, time: u64, period: u64, chain: &[u64]) -> Vec<u8> {
    let head = [words(&[id, chain[0]]), halves(&[pid, pid]), words(&[time, 3, period, chain.len() as u64])];
    record(kinds::SAMPLE, 2, &[head.concat(), words(chain)].concat())
}

/// Writes a file with events (their ids count from 1), records, and sections by their numbers.
fn file(events: &[Vec<u8>], records: &[Vec<u8>], sections: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let (records, size) = (records.concat(), events.first().map_or(0, Vec::len) + 16);
    let ids: Vec<u64> = (1..=events.len() as u64).collect();
    let from = 104 + (size * events.len()) as u64;
    let data = from + 8 * ids.len() as u64;
    let bits = sections.iter().fold(0, |bits, (number, _)| bits | 1 << number);
    let mut out = file::MAGIC.to_vec();
    let places = [104, size as u64, 104, from - 104, data, records.len() as u64, 0, 0, bits, 0, 0, 0];
    out.extend(words(&places));
    for (event, id) in events.iter().zip(&ids) {
        out.extend([&event[..], &words(&[from + 8 * (id - 1), 8])].concat());
    }
    out.extend([words(&ids), records].concat());
    let mut offset = (out.len() + 16 * sections.len()) as u64;
    for (_, section) in sections {
        out.extend(words(&[offset, section.len() as u64]));
        offset += section.len() as u64;
    }
    sections.iter().for_each(|(_, section)| out.extend(section));
    out
}

/// Writes the same recording in the form that perf writes into a pipe.
fn piped(events: &[Vec<u8>], records: &[Vec<u8>]) -> Vec<u8> {
    let mut out = [file::MAGIC, &words(&[16])].concat();
    for (event, id) in events.iter().zip(1..) {
        out.extend(record(kinds::ATTRIBUTES, 0, &[&event[..], &words(&[id])].concat()));
    }
    out.extend(records.concat());
    out
}

fn clock() -> Vec<u8> {
    event(1, 0, SAMPLE)
}

fn load(bytes: &[u8]) -> Result<Profile> {
    crate::from_bytes("in", bytes, &LoadOptions::default())
}

/// Returns the sample types, and each sample as labels, values and frames from the leaf.
fn shown(p: &Profile) -> Vec<String> {
    let mut shown: Vec<String> = p.sample_types().iter().map(|(kind, unit)| format!("{kind}/{unit}")).collect();
    for sample in p.samples() {
        let labels = sample.labels().map(|label| match label.value {
            LabelValue::Text(text) => format!("{}={}", p.text(label.key), p.text(text)),
            LabelValue::Number(number, _) => format!("{}={number}", p.text(label.key)),
        });
        let values = (0..p.sample_types().len()).map(|i| sample.value(i).to_string());
        let mut row: Vec<String> = labels.chain(values).collect();
        sample.for_each_location(|l| {
            let mapping = p.locations().mapping[l as usize];
            let file = p.mappings().get(mapping as usize).map_or("nothing".to_owned(), |m| p.text(m.file));
            row.push(format!("{file}:{:x}", p.locations().address[l as usize]));
        });
        shown.push(row.join(" "));
    }
    shown
}

fn small() -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let records = vec![
        // The buffer of one CPU, then the buffer of another CPU with earlier records.
        sample(1, 7, 50, 10, &[KERNEL, 0x9000, 0x8001, USER, 0x1105, 0x1203, 0x5555]),
        sample(2, 7, 60, 3, &[USER, 0x1105]),
        sample(1, 8, 70, 5, &[USER, 0x7105, 0x7203]),
        sample(1, 9, 80, 5, &[USER, 0x1105]),
        mmap(u32::MAX, [0x8000, 0x8000, 0x8000], "[kernel.kallsyms]_text", 0),
        comm(7, 7, "main", 1 << 13, 10),
        mmap(7, [0x1000, 0x1000, 0x40], "/bin/main", 20),
        mmap(7, [0x2000, 0x1000, 0], "//anon", 21),
        // Another process maps the same file at another address. A forked process inherits the address.
        mmap(8, [0x7000, 0x1000, 0x40], "/bin/main", 30),
        fork(9, 7, 31),
        record(kinds::LOST, 0, &[words(&[1, 12]), trailer(90, 1)].concat()),
        sample(77, 9, 91, 5, &[USER, 0x1105]),
        sample(1, 9, 92, 6, &[USER, 0x2105, 0x2333]),
    ];
    (vec![clock(), event(2, 5, SAMPLE)], records)
}

#[test]
fn samples_have_frames_in_files_labels_and_values() {
    let (events, records) = small();
    let name = |name: &str| [event(1, 0, SAMPLE), halves(&[1, 8]), text(name)[..8].to_vec(), words(&[1])].concat();
    let described = [halves(&[2, 72]), name("cpu-clk"), name("a:b")].concat();
    let id = [halves(&[u32::MAX]), vec![0xab; 20], vec![2, 0, 0, 0], text("/bin/main")].concat();
    let sections = [(2, record(kinds::BUILD_ID, 1 << 15, &id)), (12, described)];
    let p = load(&file(&events, &records, &sections)).unwrap();
    let expected = [
        "cpu-clk/count",
        "a:b samples/count",
        "comm=main pid=7 tid=7 cpu=3 10 0 [kernel.kallsyms]:9000 [kernel.kallsyms]:8000 /bin/main:1105 /bin/main:1202 nothing:0",
        "comm=main pid=7 tid=7 cpu=3 0 1 /bin/main:1105",
        "comm=:8 pid=8 tid=8 cpu=3 5 0 /bin/main:1105 /bin/main:1202",
        "comm=main pid=9 tid=9 cpu=3 5 0 /bin/main:1105",
        "comm=main pid=9 tid=9 cpu=3 6 0 //anon:0 //anon:0",
    ];
    assert_eq!(shown(&p), expected);
    let main = &p.mappings()[0];
    assert_eq!(
        (p.text(main.file), main.start, main.limit, main.offset),
        ("/bin/main".to_owned(), 0x1000, 0x2000, 0x40)
    );
    assert_eq!(p.text(main.build_id), "ab".repeat(20)[..4]);
    assert_eq!((p.default_sample_type(), p.header().duration_nanos), (Some(0), 42));
    let warnings = p.warnings().join("; ");
    assert!(
        warnings.contains("perf lost 12 records") && warnings.contains("1 samples belong to no event"),
        "{warnings}"
    );
    // The names that perf gives to events without a name.
    let piped = load(&piped(&events, &records)).unwrap();
    assert_eq!(shown(&piped)[..2], ["cpu-clock/nanoseconds", "event 2:0x5 samples/count"]);
    assert_eq!(shown(&piped)[2..], expected[2..]);
}

#[test]
fn exec_replaces_the_mapped_files_and_mappings_replace_each_other() {
    let main = |pid, time| mmap(pid, [0x1000, 0x3000, 0], "/bin/main", time);
    let sample_at = |pid, time, address| sample(1, pid, time, 1, &[USER, address]);
    let records = [
        main(1, 1),
        sample_at(1, 2, 0x1500),
        // A file that is mapped over the middle of another. The parts on both sides stay mapped.
        mmap(1, [0x2000, 0x1000, 0], "/lib/part", 3),
        sample_at(1, 4, 0x1501),
        sample_at(1, 5, 0x2500),
        sample_at(1, 6, 0x3500),
        fork(2, 1, 7),
        // Mapping a file in the parent does not affect the child.
        mmap(1, [0x1000, 0x3000, 0], "/lib/all", 8),
        sample_at(1, 9, 0x2600),
        sample_at(2, 10, 0x2600),
        comm(2, 2, "other", 1 << 13, 11),
        // Until the new program's first file is mapped, the files of the previous program are used.
        sample_at(2, 12, 0x2700),
        mmap(2, [0x2000, 0x800, 0], "/bin/other", 13),
        sample_at(2, 14, 0x2700),
        sample_at(2, 15, 0x2900),
        comm(2, 2, "third", 1 << 13, 16),
        sample_at(2, 17, 0x2900),
    ];
    let p = load(&file(&[clock()], &records, &[])).unwrap();
    let frames: Vec<String> = shown(&p)[1..].iter().map(|row| row.rsplit(' ').next().unwrap().to_owned()).collect();
    let part = ["/bin/main:1500", "/bin/main:1501", "/lib/part:2500", "/bin/main:3500"];
    assert_eq!(
        frames,
        [
            &part[..],
            &["/lib/all:2600", "/lib/part:2600", "/lib/part:2700", "/bin/other:2700", "/lib/part:2900", "nothing:0"]
        ]
        .concat()
    );
}

#[test]
fn without_call_chains_the_frame_is_the_sampled_address() {
    let bare = event(0, 0, SAMPLE & !(1 << 5));
    let mut sample = sample(1, 7, 5, 4, &[0x1105]);
    sample.truncate(sample.len() - 16);
    sample[6] = sample.len() as u8;
    let records = [mmap(7, [0x1000, 0x1000, 0], "/bin/main", 2), sample];
    let p = load(&file(&[bare], &records, &[])).unwrap();
    assert_eq!(shown(&p), ["cycles/count", "comm=:7 pid=7 tid=7 cpu=3 4 /bin/main:1105"]);
}

#[test]
fn compressed_records_are_read_and_limited() {
    let (events, records) = small();
    // perf flushes the zstd stream, and never ends it.
    let pack = |bytes: &[u8]| {
        let mut packer = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        std::io::Write::write_all(&mut packer, bytes).unwrap();
        std::io::Write::flush(&mut packer).unwrap();
        packer.get_ref().clone()
    };
    let packed = pack(&records.concat());
    // The compressed data may be split between records anywhere.
    let (a, b) = packed.split_at(packed.len() / 2);
    let older = |bytes: &[u8]| record(kinds::COMPRESSED, 0, bytes);
    let newer = |bytes: &[u8]| {
        record(kinds::COMPRESSED2, 0, &[words(&[bytes.len() as u64]), bytes.to_vec(), vec![0; 5]].concat())
    };
    let plain = load(&file(&events, &records, &[])).unwrap();
    for packed in [[older(a), older(b)], [newer(a), newer(b)]] {
        let bytes = file(&events, &packed, &[]);
        assert_eq!(shown(&load(&bytes).unwrap()), shown(&plain));
        let options = LoadOptions::default().with_inflated_limit(records.concat().len() as u64 - 1).unwrap();
        let error = crate::from_bytes("in", &bytes, &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    }
    let error = load(&file(&events, &[older(a)], &[])).unwrap_err().to_string();
    assert!(error.contains("the zstd data is damaged or cut off"), "{error}");
    let twice = pack(&older(&pack(&records.concat())));
    let error = load(&file(&events, &[older(&twice)], &[])).unwrap_err().to_string();
    assert!(error.contains("compressed records are nested"), "{error}");
}

#[test]
fn whole_records_are_read_if_perf_record_was_killed() {
    let (events, records) = small();
    let mut bytes = file(&events, &records, &[]);
    bytes[48..56].copy_from_slice(&[0; 8]);
    let p = load(&bytes[..bytes.len() - 5]).unwrap();
    assert_eq!(shown(&p).len(), 6);
    assert!(p.warnings().iter().any(|warning| warning.contains("perf record was interrupted")));
}

#[test]
fn recordings_that_only_perf_can_read_are_refused_with_advice() {
    let error = |bytes: &[u8]| {
        let error = load(bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OtherFormat, "{error}");
        assert!(error.advice().is_some_and(|command| command.starts_with("perf script -i in")), "{error}");
        error.to_string()
    };
    let some = || vec![comm(1, 1, "a", 0, 1)];
    let lbr = [halves(&[0, 80]), words(&[0, 1, SAMPLE | 1 << 11, 0, HAVE_IDS, 0, 0, 0, 1 << 11])].concat();
    for (bytes, words) in [
        (file(&[event(0, 0, SAMPLE | 1 << 13)], &some(), &[]), "recorded with --call-graph dwarf"),
        (file(&[lbr], &some(), &[]), "recorded with --call-graph lbr"),
        (file(&[clock()], &some(), &[(24, Vec::new())]), "in other files of its directory"),
        (file(&[clock()], &[record(kinds::AUXTRACE, 0, &words(&[0; 5]))], &[]), "processor traces"),
        (b"2ELIFREP\0\0\0\0\0\0\0\x68".to_vec(), "the other byte order"),
        (b"PERFFILE\x68\0".to_vec(), "an old perf"),
    ] {
        assert!(error(&bytes).contains(words), "{}", error(&bytes));
    }
}

/// Tests a wrong value in each field of the header, and a cut at every byte.
#[test]
fn damaged_files_are_errors() {
    let (events, records) = small();
    let whole = file(&events, &records, &[]);
    let with = |offset: usize, word: u64| {
        let mut bytes = whole.clone();
        bytes[offset..offset + 8].copy_from_slice(&word.to_le_bytes());
        load(&bytes).unwrap_err().to_string()
    };
    for (offset, word, words) in [
        (8, 20, "its header has 20 bytes"),
        (16, 0, "bytes, but only"),
        (16, 1 << 60, "bytes, but only"),
        (24, 1 << 60, "a section should have 176 bytes at byte"),
        (24, u64::MAX, "a section should have 176 bytes at byte"),
        (32, 1 << 60, "a section should have 1152921504606846976 bytes at byte 104"),
        (32, 0, "it has no events"),
        (40, u64::MAX, "it was cut off"),
        (48, 1 << 60, "it was cut off"),
        // The ids of the first event.
        (104 + 72, 1 << 60, "a section should have 8 bytes"),
        (104 + 80, 1 << 60, "a section should have"),
    ] {
        assert!(with(offset, word).contains(words), "{offset}: {}", with(offset, word));
    }
    let described = file(&events, &records, &[(12, halves(&[u32::MAX, 72]))]);
    assert!(load(&described).unwrap_err().to_string().contains("expected 72 bytes"));
    let bytes = |records: &[Vec<u8>]| load(&file(&events, records, &[])).unwrap_err().to_string();
    let mut long = sample(1, 7, 5, 4, &[0x1105]);
    long[56..64].copy_from_slice(&(1u64 << 60).to_le_bytes());
    assert!(bytes(&[long]).contains("bytes, but only 8 are left"));
    assert!(bytes(&[vec![9, 0, 0, 0, 2, 0, 4, 0]]).contains("a record is smaller than its header"));
    let counts = [halves(&[1, 72]), words(&[0, 1, 1 << 4, 1 << 3, HAVE_IDS, 0, 0, 0])].concat();
    let counted = record(kinds::SAMPLE, 2, &words(&[1 << 60, 1]));
    let error = load(&file(&[counts], &[counted], &[])).unwrap_err().to_string();
    assert!(error.contains("bytes, but only 8 are left"), "{error}");
    for whole in [file(&events, &records, &[]), piped(&events, &records)] {
        assert!(load(&whole).is_ok());
        // A piped recording may end between any two records.
        (0..whole.len()).for_each(|end| drop(load(&whole[..end])));
    }
    let sum = [sample(1, 7, 5, i64::MAX as u64, &[0x1105]), sample(1, 7, 6, 1, &[0x1105])];
    assert!(bytes(&sum).contains("more than an int64 holds"));
}

/// Tests files that are small but could require much work or memory.
#[test]
fn work_is_bounded_by_the_size() {
    let limit = |bytes: &[u8]| {
        let error = load(bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        error.to_string()
    };
    // Each event uses all bytes of the file as ids.
    let mut bytes = file(&vec![clock(); 100], &[], &[]);
    let size = bytes.len() as u64;
    for event in 0..100 {
        let offset = 104 + 88 * event + 72;
        bytes[offset..offset + 16].copy_from_slice(&words(&[0, size]));
    }
    assert!(limit(&bytes).contains("too many ids"));
    // Each child shares the files of its parent, and maps one more.
    let map_file = |pid, start| mmap(pid, [start, 16, 0], "x", 1);
    let mut records: Vec<Vec<u8>> = (0..2000).map(|i| map_file(1, 16 * i)).collect();
    records.extend((2..1000).flat_map(|pid| [fork(pid, 1, 1), map_file(pid, 0)]));
    assert!(limit(&file(&[clock()], &records, &[])).contains("too many files"));
    // Each event adds a sample type, and each sample has a value for each type.
    let events: Vec<Vec<u8>> = (0..3000).map(|i| event(4, i, SAMPLE)).collect();
    let records: Vec<Vec<u8>> = (1..=3000).map(|i| sample(i, 7, i, 1, &[0x1105])).collect();
    assert!(limit(&file(&events, &records, &[])).contains("frames and values"));
}
