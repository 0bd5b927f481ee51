//! Tests that compare Java recordings, Firefox profiles and others in `tests/corpus/inputs` with the expected results
//! of `tests/traces/judge.py`, which uses `jfr print` of the JDK and plain parsing. One test also makes a recording
//! with the local JDK.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::InputFormat;
use crate::LoadOptions;
use crate::kit::tree::rows;
use pprofdiff_profile::Profile;

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests")
}

/// Sums of values by stack and labels, without column numbers.
type StackSums = BTreeMap<String, Vec<i64>>;

fn add_samples(p: &Profile, sums: &mut StackSums) {
    let without_column = |frame: &str| {
        let mut parts: Vec<&str> = frame.split(':').collect();
        let is_number = |part: Option<&&str>| part.is_some_and(|part| part.bytes().all(|b| b.is_ascii_digit()));
        if is_number(parts.last()) && is_number(parts.iter().rev().nth(1)) {
            parts.pop();
        }
        parts.join(":")
    };
    // The labels follow the last frame.
    let without_column = |frame: &str| {
        let end = [" thread=", " tid="].iter().filter_map(|label| frame.find(label)).min().unwrap_or(frame.len());
        without_column(&frame[..end]) + &frame[end..]
    };
    for row in rows(p) {
        let (key, values) = row.rsplit_once(": ").unwrap();
        let key = key.split('|').map(without_column).collect::<Vec<_>>().join("|");
        let sums = sums.entry(key).or_insert_with(|| vec![0; p.sample_types().len()]);
        sums.iter_mut().zip(values.split(' ')).for_each(|(sum, value)| *sum += value.parse::<i64>().unwrap());
    }
    sums.retain(|_, sums| sums.iter().any(|&sum| sum != 0));
}

/// Asserts that a profile, or a time window of it, has the expected sample types and sums by stack and labels.
fn assert_is_expected(profile: &Path, expected: &Path) {
    let name = profile.display();
    let expected: serde_json::Value = serde_json::from_slice(&std::fs::read(expected).unwrap()).unwrap();
    let mut options = LoadOptions::default();
    if let Some(time) = expected["time"].as_str() {
        options = options.with_time(time.parse().unwrap());
    }
    let p = crate::open(profile, &options).unwrap();
    assert_eq!(serde_json::json!(p.sample_types()), expected["types"], "{name}");
    let (mut actual, mut expected_sums) = (StackSums::new(), StackSums::new());
    add_samples(&p, &mut actual);
    for row in expected["samples"].as_array().unwrap() {
        let texts = |i: usize| serde_json::from_value::<Vec<String>>(row[i].clone()).unwrap();
        // `rows` omits line 0, and puts a blank before each label.
        let stack: Vec<String> = texts(0).iter().map(|f| f.strip_suffix(" :0").unwrap_or(f).to_owned()).collect();
        let labels: String = texts(1).iter().map(|label| format!(" {label}")).collect();
        let values: Vec<i64> = serde_json::from_value(row[2].clone()).unwrap();
        expected_sums.insert(format!("{}{labels}", stack.join("|")), values);
    }
    assert!(expected_sums.len() > 3, "{name}");
    assert_eq!(actual, expected_sums, "{name}");
}

#[test]
fn recorded_profiles_match_their_expected_results() {
    let inputs = tests().join("corpus/inputs");
    for name in ["press.SIDE.jfr", "sampled.SIDE.jfr", "press.SIDE.firefox.json", "samply.SIDE.firefox.json"] {
        for side in ["base", "new"] {
            let name = name.replace("SIDE", side);
            assert_is_expected(&inputs.join(format!("{name}.gz")), &inputs.join(format!("{name}.expected.json")));
        }
    }
}

/// No format takes a file of another one, whatever the order of the table. Folded stacks are weak evidence, so they come
/// last.
#[test]
fn each_recording_is_recognised_by_its_own_format_only() {
    const ENDINGS: [(&str, &str); 18] = [
        (".cpuprofile", "cpuprofile"),
        (".heapprofile", "heapprofile"),
        (".trace.json", "chrome-trace"),
        (".speedscope.json", "speedscope"),
        (".firefox.json", "firefox"),
        (".stackprof.json", "stackprof"),
        (".sampling.bin", "cpython-binary"),
        (".sampling.jsonl", "cpython-jsonl"),
        (".replay.txt", "cpython"),
        (".perf.data", "perf-data"),
        (".perf.txt", "perf-script"),
        (".perf.script.txt", "perf-script"),
        (".perf-folded.txt", "perf-folded"),
        (".py-spy.txt", "py-spy"),
        (".austin.txt", "austin"),
        (".heap", "jemalloc"),
        (".jfr", "jfr"),
        (".otlp", "otlp"),
    ];
    let mut n_files: BTreeMap<&str, u32> = BTreeMap::new();
    for entry in std::fs::read_dir(tests().join("corpus/inputs")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().trim_end_matches(".gz");
        let Some((ending, format)) = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)) else { continue };
        let bytes = std::fs::read(&path).unwrap();
        let text = pprofdiff_profile::shared::inflate_slice(&bytes, u64::from(u32::MAX)).unwrap();
        let head = &text[..text.len().min(crate::table::HEAD)];
        let weak = ["folded", "folded2", "otlp-1.9"];
        let found = InputFormat::all().filter(|f| !weak.contains(&f.name) && (f.recognises)(head)).map(|f| f.name);
        assert_eq!(found.collect::<Vec<_>>(), [*format], "{name}");
        *n_files.entry(ending).or_default() += 1;
    }
    assert_eq!(n_files.len(), ENDINGS.len(), "{n_files:?}");
}

/// Damages `n` recordings of each format at random places, and reads them. Each is read, or refused with the place of the
/// error.
fn damage(n: u32) {
    // A linear congruential generator: the same damage in each run.
    let mut seed = 7u64;
    let mut random = |limit: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % limit.max(1)
    };
    // Each file's part of the damages of its format, in percent.
    const FILES: [(&str, &str, u32); 8] = [
        ("press.base.trace.json", "chrome-trace", 45),
        ("browser.base.trace.json", "chrome-trace", 45),
        ("torch.base.trace.json", "chrome-trace", 10),
        ("press-wall.base.stackprof.json", "stackprof", 50),
        ("flat.base.stackprof.json", "stackprof", 50),
        ("press.base.sampling.bin", "cpython-binary", 50),
        ("plain.base.sampling.bin", "cpython-binary", 50),
        ("press.base.sampling.jsonl", "cpython-jsonl", 100),
    ];
    for (name, format, percent) in FILES {
        let n = n * percent / 100;
        let packed = std::fs::read(tests().join("corpus/inputs").join(format!("{name}.gz"))).unwrap();
        let whole = pprofdiff_profile::shared::inflate_slice(&packed, u64::from(u32::MAX)).unwrap();
        let options = LoadOptions::default().with_input_format(format).unwrap();
        let mut n_read = 0;
        for _ in 0..n {
            let mut bytes = whole.clone();
            let (at, other, size) = (random(bytes.len()), random(bytes.len()), 1 + random(40));
            match random(5) {
                0 => bytes.truncate(at.max(1)),
                1 => (0..=random(3)).for_each(|_| bytes[random(whole.len())] = random(256) as u8),
                // A digit or a character of JSON in the place of another one.
                2 => bytes[at] = b"0123456789,:[]{}\"-."[random(19)],
                3 => _ = bytes.drain(at..(at + size).min(whole.len())),
                _ => _ = bytes.splice(at..at, whole[other..(other + size).min(whole.len())].iter().copied()),
            }
            match crate::from_bytes("in", &bytes, &options) {
                Ok(_) => n_read += 1,
                Err(e) => {
                    // Two errors concern the whole file: a trace without a profile, and values with too large a sum.
                    let is_other = e.kind() == pprofdiff_profile::ErrorKind::OtherFormat;
                    let is_sum = e.to_string().contains("add up to more than an int64 holds");
                    assert!(e.offset().is_some() || is_other || is_sum, "{name}: {e}");
                }
            }
        }
        println!("{name}: {n_read} of {n} damaged files were read");
        // Damage in names and numbers is often readable. Otherwise, the errors say nothing about the whole file.
        assert!((1.max(n / 50)..n / 2).contains(&n_read), "{name}: {n_read} of {n}");
    }
}

#[test]
fn damaged_recordings_are_read_or_refused_with_the_place() {
    damage(100);
}

#[test]
#[ignore = "slow; `tests/run all` runs it"]
fn recordings_with_thousands_of_damages_are_read_or_refused_with_the_place() {
    damage(10_000);
}

/// Returns the recordings of each format with times: the corpus files with expected windows, a recording of perf, and
/// generated OTLP messages.
fn timed() -> Vec<(String, Vec<u8>)> {
    let inputs = tests().join("corpus/inputs");
    let names = std::fs::read_dir(&inputs).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let cut = names.filter_map(|name| name.strip_suffix(".cut.json").map(|name| format!("{name}.gz")));
    let mut all: Vec<_> = cut.map(|name| (name.clone(), std::fs::read(inputs.join(name)).unwrap())).collect();
    assert_eq!(all.len(), 17);
    all.push(("perf-data".to_owned(), std::fs::read(inputs.join("clocks.base.perf.data.gz")).unwrap()));
    let message = |numbering: &str| (numbering.to_owned(), crate::otlp::timed(numbering));
    all.extend(["otlp", "otlp-1.9"].map(message));
    all
}

#[test]
fn time_windows_match_their_expected_results() {
    let inputs = tests().join("corpus/inputs");
    for (name, _) in timed().iter().filter(|(name, _)| name.ends_with(".gz")) {
        let cut = name.replace(".gz", ".cut.json");
        assert_is_expected(&inputs.join(name), &inputs.join(cut));
    }
}

/// Reads a recording up to the first event of each name, and from it, by the name and by the expected time. Returns the
/// number of events with samples on both sides.
fn assert_events(name: &str, bytes: &[u8], judged: &Path) -> usize {
    let judged: serde_json::Value = serde_json::from_slice(&std::fs::read(judged).unwrap()).unwrap();
    let load = |window: String| {
        let options = LoadOptions::default().with_time(window.parse().unwrap());
        let mut sums = StackSums::new();
        match crate::from_bytes(name, bytes, &options) {
            Ok(p) => add_samples(&p, &mut sums),
            Err(e) => assert!(e.detail().starts_with("no sample is within"), "{name} {window}: {e}"),
        }
        sums
    };
    let mut n_divided = 0;
    for (event, nanos) in judged["events"].as_object().into_iter().flatten() {
        let short = event.rsplit('.').next().unwrap();
        // The expected time of events before the first sample is negative.
        let nanos = nanos.as_i64().unwrap().max(0);
        let [before, after] = [load(format!("..{nanos}ns")), load(format!("{nanos}ns.."))];
        for event in [event, short] {
            assert_eq!(load(format!("..{event}")), before, "{name} {event}");
            assert_eq!(load(format!("{event}..")), after, "{name} {event}");
        }
        n_divided += usize::from(!before.is_empty() && !after.is_empty());
    }
    n_divided
}

#[test]
fn events_split_recordings_at_their_expected_times() {
    let inputs = tests().join("corpus/inputs");
    let mut n_divided = BTreeMap::new();
    for (name, bytes) in timed().into_iter().filter(|(name, _)| name.ends_with(".gz")) {
        let n = assert_events(&name, &bytes, &inputs.join(name.replace(".gz", ".cut.json")));
        n_divided.insert(name, n);
    }
    n_divided.retain(|_, n| *n > 0);
    let expected = [
        ("browser.base.trace.json.gz", 4),
        ("press.base.jfr.gz", 6),
        ("press.base.trace.json.gz", 1),
        ("sampled.base.jfr.gz", 5),
    ];
    assert_eq!(n_divided, expected.map(|(name, n)| (name.to_owned(), n)).into());
}

#[test]
fn formats_without_events_list_the_formats_with_events() {
    let mut formats_without_events = Vec::new();
    for (name, bytes) in timed() {
        let options = LoadOptions::default().with_time("..nothing".parse().unwrap());
        let e = crate::from_bytes(&name, &bytes, &options).unwrap_err();
        if let Some((format, formats)) = e.detail().split_once(" has no named events; these formats have them: ") {
            formats_without_events.push(format.rsplit(' ').next().unwrap().to_owned());
            assert_eq!(formats, "jfr, perf-data, chrome-trace, firefox, perf-script");
        } else {
            assert!(e.detail().starts_with("it has no event"), "{name}: {e}");
        }
    }
    formats_without_events.sort();
    formats_without_events.dedup();
    // Both numberings are called otlp, because the window is checked before the numbering is inferred.
    assert_eq!(formats_without_events, ["cpuprofile", "cpython-binary", "otlp", "speedscope", "stackprof"]);
}

/// Each format with `has_times` is tested here.
#[test]
fn two_adjoining_windows_add_up_to_the_whole() {
    for (name, bytes) in timed() {
        let load = |time: Option<String>| {
            let options = LoadOptions::default();
            let options = time.map_or(options.clone(), |time| options.with_time(time.parse().unwrap()));
            crate::from_bytes(&name, &bytes, &options)
        };
        let (whole, mut expected) = (load(None).unwrap(), StackSums::new());
        add_samples(&whole, &mut expected);
        let mut n_divided = 0;
        for end in ["0.7ms", "3ms", "5ms", "50ms", "100.5ms", "181200us", "333ms", "500ms", "2.51s", "5s", "9s", "1m"] {
            let (mut sums, mut duration, mut n_parts) = (StackSums::new(), 0, 0);
            for part in [format!("..{end}"), format!("{end}..")] {
                match load(Some(part)) {
                    Ok(part) => {
                        assert_eq!(part.sample_types(), whole.sample_types(), "{name} {end}");
                        assert_eq!(part.default_sample_type(), whole.default_sample_type(), "{name} {end}");
                        add_samples(&part, &mut sums);
                        (duration, n_parts) = (duration + part.duration_nanos(), n_parts + 1);
                    }
                    Err(e) => assert!(e.detail().contains("no sample is within"), "{name} {end}: {e}"),
                }
            }
            assert_eq!(sums, expected, "{name} {end}");
            if n_parts == 2 {
                n_divided += 1;
                assert!([0, duration].contains(&whole.duration_nanos()) && duration > 0, "{name} {end}");
            }
        }
        assert!(n_divided >= 3, "{name}");
    }
    let formats = InputFormat::all().filter(|format| format.has_times).map(|format| format.name).collect::<Vec<_>>();
    let expected =
        "jfr perf-data cpython-binary otlp otlp-1.9 cpuprofile chrome-trace speedscope firefox stackprof perf-script";
    assert_eq!(formats.join(" "), expected);
}

#[test]
fn formats_without_times_list_the_formats_with_times() {
    let options = LoadOptions::default().with_time("1s..2s".parse().unwrap());
    for (text, format) in [("\x32\0", "pprof"), ("a;b 1\n", "folded")] {
        let named = options.clone().with_input_format(format).unwrap();
        for options in [&options, &named] {
            let error = crate::from_bytes("in", text.as_bytes(), options).unwrap_err().to_string();
            let message = format!("in: cannot select a time window: {format} does not record when");
            assert!(
                error.starts_with(&message)
                    && error.contains("these formats do: jfr, perf-data, cpython-binary, otlp,"),
                "{error}"
            );
        }
    }
}

/// Records a program with the local JDK, and compares the recording with the output of the JDK's own reader.
#[test]
fn a_new_recording_matches_the_output_of_the_jdk() {
    if !["java", "javac", "jfr", "python3"].into_iter().all(has) {
        return;
    }
    let folder = std::env::temp_dir().join(format!("pprofdiff-recording-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let programs = tests().join("producers/traces");
    let run = |command: &mut Command| {
        let output = command.current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    run(Command::new("javac").args(["-g", "-d", "."]).arg(programs.join("Press.java")));
    for settings in ["press", "sampled"] {
        let settings = programs.join(format!("{settings}.jfc"));
        let start = format!(
            "-XX:StartFlightRecording=filename=made.jfr,settings={},+jdk.GarbageCollection#enabled=true",
            settings.display()
        );
        run(Command::new("java").args(["-Xmx128m", &start, "-cp", ".", "Press", "4"]));
        run(Command::new("python3").arg(tests().join("traces/judge.py")).arg("made.jfr"));
        assert_is_expected(&folder.join("made.jfr"), &folder.join("made.jfr.expected.json"));
        run(Command::new("python3").arg(tests().join("traces/judge.py")).args(["--time", "0..1000", "made.jfr"]));
        let bytes = std::fs::read(folder.join("made.jfr")).unwrap();
        assert!(assert_events("made.jfr", &bytes, &folder.join("made.jfr.cut.json")) > 2);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Returns false if a program is missing. The test is then skipped, with a line for the summary of `tests/run`; in CI
/// it fails.
pub(crate) fn has(program: &str) -> bool {
    is_installed(program, "default-jdk-headless")
}

/// Like [`has`], for a program of another package.
pub(crate) fn is_installed(program: &str, package: &str) -> bool {
    use std::io::Write;
    if Command::new(program).arg("--version").output().is_ok() {
        return true;
    }
    assert!(std::env::var_os("CI").is_none(), "CI lacks {program}");
    let line = format!("format::oracle: {program} is missing (apt-get install {package})\n");
    std::io::stderr().write_all(format!("SKIPPED {line}").as_bytes()).unwrap();
    if let Some(list) = std::env::var_os("PPROFDIFF_SKIPPED") {
        std::fs::OpenOptions::new().append(true).open(list).unwrap().write_all(line.as_bytes()).unwrap();
    }
    false
}
