//! Tests of folded stacks. Files from our own writer are read back unchanged, with one side or two; protobuf is never
//! mistaken for folded text; and no text causes a panic.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use pprofdiff::builder::ProfileBuilder;
use pprofdiff::input::InputFormat;
use pprofdiff::{Compression, Diff, ErrorKind, LoadOptions, Measure, Profile, Query, WriteOptions};
use pprofdiff_report as report;
use proptest::prelude::*;

use crate::oracle;

fn load(bytes: &[u8]) -> pprofdiff::Result<Arc<Profile>> {
    pprofdiff::from_bytes("in", bytes, &LoadOptions::default()).map(Arc::new)
}

fn load_as(bytes: &[u8], format: &str) -> pprofdiff::Result<Arc<Profile>> {
    let options = LoadOptions::default().with_input_format(format)?;
    pprofdiff::from_bytes("in", bytes, &options).map(Arc::new)
}

fn folded(measure: &Measure) -> String {
    let mut out = Vec::new();
    report::folded(&measure.stacks(false), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn measure(diff: &Diff, sample_type: Option<&str>) -> Measure {
    let mut query = Query::default();
    query.sample_type = sample_type.map(str::to_owned);
    diff.measure(&query).unwrap()
}

/// Parses each stack of a text like flame graph tools do: numbers from the end of the line. Omits zeros.
fn values_of_text(text: &str, columns: usize) -> BTreeMap<String, Vec<i64>> {
    let mut stacks = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with("# pprofdiff-folded ")) {
        let mut words: Vec<&str> = line.rsplitn(columns + 1, ' ').collect();
        let stack: Vec<&str> = match words.pop().unwrap() {
            "" => Vec::new(),
            // An empty name is shown as unknown.
            stack => stack.split(';').map(|name| if name.is_empty() { "<unknown>" } else { name }).collect(),
        };
        let sums = stacks.entry(stack.join(";")).or_insert_with(|| vec![0; columns]);
        words.iter().rev().zip(sums.iter_mut()).for_each(|(word, sum)| *sum += word.parse::<i64>().unwrap());
    }
    stacks.retain(|_, sums| sums.iter().any(|&v| v != 0));
    stacks
}

/// Returns the same values from a diff.
fn values_of(diff: &Diff) -> BTreeMap<String, Vec<i64>> {
    let measure = measure(diff, None);
    let stacks = measure.stacks(false);
    let mut values = BTreeMap::new();
    for row in &stacks.rows {
        let frames: Vec<String> = stacks.frames_of(row).iter().map(|&f| stacks.frames.label(f)).collect();
        let value = match stacks.summary.base {
            Some(_) => vec![row.weight.base, row.weight.new],
            None => vec![row.weight.new],
        };
        assert!(values.insert(frames.join(";"), value).is_none(), "twice: {frames:?}");
    }
    values.retain(|_, sums| sums.iter().any(|&v| v != 0));
    values
}

#[test]
fn written_stacks_are_read_back_with_their_totals_and_type() {
    let mut n = 0;
    for name in oracle::pairs() {
        let [base, new] = oracle::raw_pair(&name).map(|bytes| load(&bytes).unwrap());
        let both = Diff::between(base, new.clone()).unwrap();
        for diff in [both, Diff::of_profile(&new).unwrap()] {
            for (kind, unit) in diff.sample_types() {
                let before = measure(&diff, Some(&kind));
                let text = folded(&before);
                let again = Diff::of_profile(&load(text.as_bytes()).unwrap()).unwrap();
                assert_eq!(again.is_two_sided(), diff.is_two_sided(), "{name} {kind}");
                assert_eq!(again.sample_types(), [(kind.clone(), unit)], "{name}");
                let columns = 1 + usize::from(diff.is_two_sided());
                assert_eq!(values_of(&again), values_of_text(&text, columns), "{name} {kind}");
                let after = measure(&again, None);
                if name != "python-full" {
                    // `python-full` has a sample without a stack, which counts in the total but is in no table of
                    // stacks.
                    assert_eq!(after.summary().total, before.summary().total, "{name} {kind}");
                }
                // Writing it again gives the same text, except for the order of equal rows.
                assert_eq!(values_of_text(&folded(&after), columns), values_of_text(&text, columns), "{name} {kind}");
                n += 1;
            }
        }
    }
    assert!(n > 50, "{n}");
}

#[test]
fn two_columns_are_two_sides_only_with_the_folded2_format() {
    let text = b"main;parse 31 33\nmain 8 0\n";
    let one = Diff::of_profile(&load(text).unwrap()).unwrap();
    assert!(!one.is_two_sided());
    assert_eq!(values_of(&one), BTreeMap::from([("main;parse 31".to_owned(), vec![33])]));
    let two = load_as(text, "folded2").unwrap();
    let expected = BTreeMap::from([("main;parse".to_owned(), vec![31, 33]), ("main".to_owned(), vec![8, 0])]);
    assert_eq!(values_of(&Diff::of_profile(&two).unwrap()), expected);
    // The result is a written diff: it opens as with pprof's -diff_base, and cannot be one side of another diff.
    let again = load(&two.to_bytes(&WriteOptions::default()).unwrap()).unwrap();
    assert_eq!(values_of(&Diff::of_profile(&again).unwrap()), expected);
    let error = Diff::between(two.clone(), two).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incompatible, "{error}");
}

#[test]
fn the_input_type_option_sets_the_type_of_plain_text() {
    let options = LoadOptions::default().with_input_type("cpu/nanoseconds").unwrap();
    let types = |text: &[u8]| pprofdiff::from_bytes("in", text, &options).unwrap().sample_types();
    let pair = |kind: &str, unit: &str| vec![(kind.to_owned(), unit.to_owned())];
    assert_eq!(types(b"a 1\n"), pair("cpu", "nanoseconds"));
    // A type in the file takes precedence.
    assert_eq!(types(b"# pprofdiff-folded space/bytes value\na 1\n"), pair("space", "bytes"));
    assert_eq!(types(&oracle::raw_pair("go-mutex")[0]).len(), 2);
    for text in ["cpu", "/", "cpu/", "/ns", ""] {
        let error = LoadOptions::default().with_input_type(text).unwrap_err();
        assert!(error.to_string().contains("cpu/nanoseconds"), "{error}");
    }
}

#[test]
fn compressed_and_streamed_text_give_the_same_profile() {
    let text = b"# pprofdiff-folded cpu/nanoseconds base new\nmain;parse 31 33\n".repeat(2000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&text).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(&*text, 3).unwrap();
    for bytes in [&text, &gzip, &zstd] {
        let streamed = pprofdiff::from_reader("in", &**bytes, &LoadOptions::default()).unwrap();
        for p in [&load(bytes).unwrap(), &Arc::new(streamed)] {
            let diff = Diff::of_profile(p).unwrap();
            assert_eq!(values_of(&diff), BTreeMap::from([("main;parse".to_owned(), vec![62_000, 66_000])]));
        }
        let options = LoadOptions::default().with_inflated_limit(text.len() as u64 - 1).unwrap();
        assert_eq!(pprofdiff::from_bytes("in", bytes, &options).unwrap_err().kind(), ErrorKind::Limit);
    }
}

#[test]
fn protobuf_is_never_mistaken_for_text() {
    // A message that consists almost entirely of valid folded text.
    let mut b = ProfileBuilder::new();
    b.sample_type("samples", "count");
    let text = "\na;b 1\n".repeat(20_000);
    let function = b.function(&text, "", 0);
    let location = b.location(None, 0, &[b.line(function, 0)]).unwrap();
    b.sample(&[location], &[7], &[]).unwrap();
    let built = b.build("built").unwrap();
    let message = built.to_bytes(&WriteOptions::new().with_compression(Compression::None)).unwrap();
    assert_eq!(load(&message).unwrap().total(0), Some(7));
    let messages = oracle::pairs().into_iter().flat_map(|name| oracle::raw_pair(&name)).chain([message]);
    let mut refused = 0;
    for message in messages {
        // Damaged messages give protobuf errors. The first few bytes are too short to identify the format.
        for cut in (32..200).chain((1..20).map(|part| message.len() * part / 20)) {
            let cut = &message[..cut.min(message.len())];
            let (any, pprof) = (load(cut), load_as(cut, "pprof"));
            match (any, pprof) {
                (Err(any), Err(pprof)) => {
                    assert_eq!(any.to_string(), pprof.to_string(), "{:?}", &cut[..cut.len().min(20)])
                }
                (any, pprof) => assert!(any.is_ok() && pprof.is_ok(), "{:?} {:?}", any.err(), pprof.err()),
            }
            refused += 1;
        }
    }
    assert!(refused > 5000);
}

#[test]
fn unknown_formats_are_errors_that_list_the_formats() {
    let error = load(b"Chapter 1\nIt was late.\nAnd dark.\n").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    for format in InputFormat::all() {
        assert!(error.to_string().contains(format.name), "{error}");
    }
}

#[test]
fn long_lines_and_many_names_are_read() {
    let deep = format!("{}leaf 3\n", "f;".repeat(300_000));
    let p = load_as(deep.as_bytes(), "folded").unwrap();
    assert_eq!((p.n_samples(), p.n_functions(), p.total(0)), (1, 2, Some(3)));
    let wide: String = (0..100_000).map(|i| format!("main;f{i} {i}\n")).collect();
    let p = load(wide.as_bytes()).unwrap();
    assert_eq!((p.n_samples(), p.n_functions(), p.total(0)), (100_000, 100_001, Some(4_999_950_000)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(oracle::cases(300)))]

    #[test]
    fn any_line_is_read_or_refused_with_its_number(
        lines in prop::collection::vec(r"[ab;# \t\-\.0-9\r\u{ff}]{0,12}( [0-9]{1,3}){0,2}", 1..8),
        two in any::<bool>(),
    ) {
        let text = lines.join("\n") + "\n";
        match load_as(text.as_bytes(), if two { "folded2" } else { "folded" }) {
            Ok(p) => {
                let diff = Diff::of_profile(&p).unwrap();
                prop_assert_eq!(diff.is_two_sided(), two);
                // The output can be written and read again.
                let written = folded(&measure(&diff, None));
                let expected = values_of_text(&written, 1 + usize::from(two));
                let again = load_as(format!("{written}\n").as_bytes(), if two { "folded2" } else { "folded" }).unwrap();
                prop_assert_eq!(values_of(&Diff::of_profile(&again).unwrap()), expected);
            }
            Err(e) => {
                let record = e.record().unwrap_or_default();
                let number: usize = record.strip_prefix("line ").unwrap_or("0").parse().unwrap();
                let line = text.split('\n').nth(number.wrapping_sub(1));
                prop_assert!(line.is_some_and(|l| !l.trim().is_empty()), "{}", e);
                let offset = e.offset().unwrap() as usize;
                prop_assert!(text[offset..].starts_with(line.unwrap()), "{}", e);
            }
        }
    }
}
