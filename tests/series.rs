//! Tests of series of many builds. The sparse table, steps and movers are compared with a plain implementation (a map
//! of each profile's own table) and with `Diff`, for any number of threads and with bad builds in between. Other tests
//! cover the keys and the order of builds.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::generate;
use crate::oracle;
use oracle::Frame;
use pprofdiff::input::Finder;
use pprofdiff::proto::{Function, Line, Location, Profile as Message_, Sample, ValueType};
use pprofdiff::{Diff, ErrorKind, Frames, Granularity, LoadOptions, Normalize, Pair, Query, Sort, Source, Status};
use pprofdiff_explain::{ExplainOptions, Explanation};
use pprofdiff_report::{Table, series_html};
use pprofdiff_series::{Against, BuildOrder, Series, SeriesBuilder, SeriesOptions, Step};
use proptest::prelude::*;
use prost::Message;

fn bytes(key: &str, content: &[u8]) -> (String, Source) {
    (key.to_owned(), Source::Bytes(format!("{key}.pb"), content.to_vec()))
}

fn numbered(contents: &[Vec<u8>]) -> Vec<(String, Source)> {
    contents.iter().enumerate().map(|(i, c)| bytes(&format!("build-{i}"), c)).collect()
}

fn options(against: Against) -> SeriesOptions {
    SeriesOptions::default().with_against(against)
}

fn frame(frames: &Frames, f: u32) -> Frame {
    (frames.name(f), frames.file(f), frames.line(f), frames.address(f), frames.mapping(f))
}

/// (flat, cum) of each frame.
type Plain = BTreeMap<Frame, (i64, i64)>;

/// Computes a column with the plain implementation.
fn plain(message: &Message_, kind: &str, granularity: Granularity, no_inlines: bool) -> Option<Plain> {
    let column = message.sample_type.iter().position(|t| oracle::string(message, t.r#type) == kind)?;
    let stacks = oracle::stacks(message, column, granularity, no_inlines);
    Some(oracle::top(&[], &stacks).into_iter().map(|(f, (flat, cum))| (f, (flat.1, cum.1))).collect())
}

/// A step in comparable form: frame, from, to, flat before and after, cum before and after, status.
type PlainStep = (Frame, usize, usize, (i64, i64), (i64, i64), &'static str);

fn plain_steps(columns: &[(usize, Plain)], against: Against) -> BTreeSet<PlainStep> {
    let mut steps = BTreeSet::new();
    for (i, (to, after)) in columns.iter().enumerate().skip(1) {
        let (from, before) = &columns[if against == Against::First { 0 } else { i - 1 }];
        for f in before.keys().chain(after.keys()) {
            let (b, a) = (before.get(f), after.get(f));
            let status = match (b, a) {
                (None, _) => "added",
                (_, None) => "removed",
                _ => "changed",
            };
            let (b, a) = (b.copied().unwrap_or_default(), a.copied().unwrap_or_default());
            if b != a {
                steps.insert((f.clone(), *from, *to, (b.0, a.0), (b.1, a.1), status));
            }
        }
    }
    steps
}

fn step_of(s: &Series, step: &Step) -> PlainStep {
    let pair = |p: Pair| (p.base, p.new);
    (frame(&s.frames, step.frame), step.from, step.to, pair(step.flat), pair(step.cum), step.status.name())
}

/// Compares everything in a series with the plain columns.
fn check_series(s: &Series, columns: &[(usize, Plain)]) {
    let got: Vec<(usize, Plain)> = s
        .values()
        .map(|(build, values)| {
            let column: Plain = values.iter().map(|v| (frame(&s.frames, v.frame), (v.flat, v.cum))).collect();
            assert_eq!(column.len(), values.len(), "a frame has two values in one build");
            (build, column)
        })
        .collect();
    assert_eq!(got, columns);

    let expected = plain_steps(columns, s.builds.against);
    for sort in [Sort::Flat, Sort::Cum] {
        let size = |flat: (i64, i64), cum: (i64, i64)| {
            if sort == Sort::Flat { oracle::size(flat, cum) } else { oracle::size(cum, flat) }
        };
        let steps = s.steps(sort);
        assert_eq!(steps.rows.len(), expected.len(), "steps occur twice");
        assert_eq!(steps.rows.iter().map(|step| step_of(s, step)).collect::<BTreeSet<_>>(), expected);
        let order = |step: &Step| {
            let (f, _, to, flat, cum, _) = step_of(s, step);
            (size(flat, cum), to, oracle::row_order(f))
        };
        assert!(steps.rows.is_sorted_by_key(order), "steps are out of order");

        let movers = s.movers(sort);
        let frames: BTreeSet<&Frame> = columns.iter().flat_map(|(_, c)| c.keys()).collect();
        assert_eq!(movers.rows.len(), frames.len());
        for m in &movers.rows {
            let f = frame(&s.frames, m.frame);
            let has: Vec<usize> = columns.iter().filter(|(_, c)| c.contains_key(&f)).map(|(build, _)| *build).collect();
            assert_eq!((m.first, m.last, m.builds), (has[0], has[has.len() - 1], has.len()), "{f:?}");
            let mut own_steps: Vec<&PlainStep> = expected.iter().filter(|w| w.0 == f).collect();
            own_steps.sort_by_key(|w| (size(w.3, w.4), w.2));
            match own_steps.first() {
                Some(largest) => assert_eq!(step_of(s, &m.step), **largest),
                None => assert_eq!((m.step.from, m.step.to, m.step.status), (m.first, m.last, Status::Same)),
            }
        }
        let order = |step: &Step| {
            let (f, _, _, flat, cum, _) = step_of(s, step);
            (size(flat, cum), oracle::row_order(f))
        };
        assert!(movers.rows.is_sorted_by_key(|m| order(&m.step)), "movers are out of order");
    }
}

/// Returns everything in a series as text.
fn everything(s: &Series) -> String {
    let mut out = Vec::new();
    for sort in [Sort::Flat, Sort::Cum] {
        Table::steps(&s.steps(sort), usize::MAX).write_json(&mut out).unwrap();
        Table::movers(&s.movers(sort), usize::MAX).write_json(&mut out).unwrap();
        out.extend(series_html(s, sort, 7).into_bytes());
    }
    Table::values_of(s).write_json(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn in_pool<T: Send>(threads: usize, f: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(f)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(oracle::cases(200)) })]

    #[test]
    fn generated_builds_agree_with_the_plain_implementation(
        recipes in prop::collection::vec((generate::recipe(), 0_u8..8), 1..7),
        granularity in 0_usize..4,
        no_inlines: bool,
        first: bool,
        threads in 1_usize..4,
    ) {
        let against = if first { Against::First } else { Against::Previous };
        let granularity = Granularity::ALL[granularity].1;
        let query = Query::default().with_sample_type("alpha").with_granularity(granularity).with_no_inlines(no_inlines);
        // One in eight builds is broken.
        let messages: Vec<_> = recipes.iter().map(|(r, broken)| (*broken > 0).then(|| generate::profile(r))).collect();
        let contents: Vec<Vec<u8>> =
            messages.iter().map(|m| m.as_ref().map_or(b"\x1f\x8b broken".to_vec(), |m| m.encode_to_vec())).collect();
        let columns: Vec<(usize, Plain)> = messages
            .iter()
            .enumerate()
            .filter_map(|(i, m)| Some((i, plain(m.as_ref()?, "alpha", granularity, no_inlines).unwrap())))
            .collect();
        let made = in_pool(threads, || Series::load(numbered(&contents), &query, &options(against)));
        if columns.is_empty() || (first && messages[0].is_none()) {
            let error = made.unwrap_err();
            prop_assert_eq!(error.input(), Some("build-0.pb"));
            return Ok(());
        }
        let made = made.unwrap();
        check_series(&made, &columns);
        for (i, (build, message)) in made.builds.all.iter().zip(&messages).enumerate() {
            prop_assert_eq!(&build.key, &format!("build-{i}"));
            prop_assert_eq!(build.error.is_none(), message.is_some());
        }
        prop_assert_eq!(made.errors().len(), messages.iter().filter(|m| m.is_none()).count());
        // A stored series that is read again is equal.
        let stored: Series = serde_json::from_slice(&serde_json::to_vec(&made).unwrap()).unwrap();
        prop_assert_eq!(everything(&stored), everything(&made));
    }
}

fn snapshots(kind: &str) -> Vec<(String, Source)> {
    Finder::default().builds(oracle::corpus().join(format!("series/{kind}-*.pb.gz")).to_str().unwrap()).unwrap()
}

#[test]
fn steps_equal_the_diffs_of_consecutive_builds() {
    for (kind, sample_type) in [("heap", "alloc_space"), ("mutex", "delay"), ("goroutine", "goroutine")] {
        for against in [Against::Previous, Against::First] {
            for normalize in [Normalize::None, Normalize::Total] {
                // A series is normalized to its first build. Only comparisons with that build can therefore equal a
                // normalized diff.
                if normalize == Normalize::Total && against == Against::Previous {
                    continue;
                }
                let query = Query::default().with_sample_type(sample_type).with_normalize(normalize);
                let s = Series::load(snapshots(kind), &query, &options(against)).unwrap();
                let load = |i: usize| {
                    let path = &s.builds.all[i].path;
                    Arc::new(pprofdiff::open(path, &LoadOptions::default()).unwrap())
                };
                let steps = s.steps(Sort::Flat);
                let mut seen = 0;
                for to in 1..s.builds.all.len() {
                    let from = if against == Against::First { 0 } else { to - 1 };
                    let top = Diff::new(&[load(from)], &[load(to)]).unwrap().measure(&query).unwrap().top(Sort::Flat);
                    let of_diff: Vec<_> = top
                        .rows
                        .iter()
                        .filter(|r| r.flat.delta() != 0 || r.cum.delta() != 0)
                        .map(|r| (frame(&top.frames, r.frame), r.flat, r.cum, r.status))
                        .collect();
                    let of_series: Vec<_> = steps
                        .rows
                        .iter()
                        .filter(|s| s.to == to)
                        .map(|r| (frame(&s.frames, r.frame), r.flat, r.cum, r.status))
                        .collect();
                    // The order is the same, too.
                    assert_eq!(of_series, of_diff, "{kind} {to}");
                    assert_eq!(top.summary.total.new, s.builds.all[to].total);
                    assert_eq!(top.summary.total.base, s.builds.all[from].total);
                    seen += of_diff.len();
                }
                assert_eq!(seen, steps.rows.len());
                assert!(seen > 20, "{kind}: only {seen} steps");
            }
        }
    }
}

#[test]
fn each_build_has_the_same_rows_as_its_own_table() {
    let query = Query::default().with_sample_type("alloc_space");
    let s = Series::load(snapshots("heap"), &query, &SeriesOptions::default()).unwrap();
    let mut expected = Vec::new();
    for (key, source) in snapshots("heap") {
        let profile = source.load(&LoadOptions::default()).unwrap();
        let top = Diff::of_profile(&profile).unwrap().measure(&query).unwrap().top(Sort::Flat);
        expected.extend(top.rows.iter().map(|r| (key.clone(), top.frames.name(r.frame), r.flat.new, r.cum.new)));
    }
    let table = Table::values_of(&s);
    let text = |column: &str, row| match table.column(column).unwrap().cell(row) {
        pprofdiff_report::Cell::Text(text) => text.to_owned(),
        _ => unreachable!(),
    };
    let (flat, cum) = (table.values("flat"), table.values("cum"));
    let got: Vec<_> =
        (0..table.len()).map(|row| (text("build", row), text("name", row), flat[row], cum[row])).collect();
    assert_eq!(got, expected);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads_or_batches() {
    let query = Query::default();
    // Some builds are broken, and there are far more builds than fit a window.
    let mut builds = Vec::new();
    for (i, (_, source)) in (0..8).flat_map(|_| snapshots("heap")).enumerate() {
        let source = if i % 7 == 3 { Source::Bytes(format!("bad {i}"), vec![0xff]) } else { source };
        builds.push((i.to_string(), source));
    }
    let make = || everything(&Series::load(builds.clone(), &query, &SeriesOptions::default()).unwrap());
    let alone = make();
    for threads in [1, 2, 7] {
        assert!(in_pool(threads, make) == alone, "other with {threads} threads");
    }
    // The result does not depend on the batches in which builds are added.
    let mut builder = SeriesBuilder::new(&query, &SeriesOptions::default()).unwrap();
    builds.iter().for_each(|b| builder.add(std::slice::from_ref(b)).unwrap());
    assert!(everything(&builder.finish().unwrap()) == alone);
}

/// Builds a profile from stacks (names root first, separated by `;`) with one value each.
fn profile(kind: &str, unit: &str, stacks: &[(&str, i64)]) -> Vec<u8> {
    let mut p = Message_ { string_table: vec![Vec::new()], ..Message_::default() };
    let mut string = |text: &str| {
        p.string_table.push(text.as_bytes().to_vec());
        p.string_table.len() as i64 - 1
    };
    p.sample_type = vec![ValueType { r#type: string(kind), unit: string(unit) }];
    let mut id = 0;
    for (stack, value) in stacks {
        let mut ids = Vec::new();
        for name in stack.split(';') {
            id += 1;
            p.function.push(Function { id, name: string(name), ..Function::default() });
            p.location.push(Location {
                id,
                line: vec![Line { function_id: id, ..Line::default() }],
                ..Location::default()
            });
            ids.insert(0, id);
        }
        p.sample.push(Sample { location_id: ids, value: vec![*value], ..Sample::default() });
    }
    p.encode_to_vec()
}

fn cpu(stacks: &[(&str, i64)]) -> Vec<u8> {
    profile("cpu", "nanoseconds", stacks)
}

/// Returns (name, from, to, flat delta) of all steps.
fn steps(s: &Series) -> Vec<(String, String, String, i64)> {
    let key = |build: usize| s.builds.all[build].key.clone();
    let rows = s.steps(Sort::Flat).rows;
    rows.iter().map(|r| (s.frames.name(r.frame), key(r.from), key(r.to), r.flat.delta())).collect()
}

fn owned_rows(rows: &[(&str, &str, &str, i64)]) -> Vec<(String, String, String, i64)> {
    rows.iter().map(|(a, b, c, v)| ((*a).to_owned(), (*b).to_owned(), (*c).to_owned(), *v)).collect()
}

#[test]
fn a_bad_build_is_reported_and_its_neighbours_are_compared() {
    let written = {
        let side = |c: &[u8]| [Arc::new(pprofdiff::from_bytes("x", c, &LoadOptions::default()).unwrap())];
        let diff = Diff::new(&side(&cpu(&[("a", 1)])), &side(&cpu(&[("a", 2)]))).unwrap();
        diff.to_bytes(&Query::default(), &pprofdiff::WriteOptions::default()).unwrap()
    };
    let builds = vec![
        bytes("broken first", b"\x1f\x8b broken"),
        bytes("1", &cpu(&[("main;a", 10), ("main;b", 5)])),
        bytes("broken", b"\xff"),
        bytes("heap", &profile("space", "bytes", &[("a", 1)])),
        bytes("no time", &profile("cpu", "bytes", &[("a", 1)])),
        ("missing".to_owned(), Source::Path("no/such/file.pb".into())),
        bytes("written", &written),
        bytes("1", &cpu(&[("main;a", 99)])),
        bytes("huge", &cpu(&[("a", i64::MAX / 2 + 1)])),
        bytes("2", &cpu(&[("main;a", 30), ("main;c", 7)])),
    ];
    let s = Series::load(builds.clone(), &Query::default(), &SeriesOptions::default()).unwrap();
    assert_eq!(s.builds.loaded().map(|b| b.key.as_str()).collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(
        steps(&s),
        owned_rows(&[("a", "1", "2", 20), ("c", "1", "2", 7), ("b", "1", "2", -5), ("main", "1", "2", 0)])
    );
    let reasons = [
        "broken first.pb: ",
        "broken.pb: ",
        "heap.pb: there is no sample type \"cpu\"; there are space",
        "no time.pb: its unit, bytes, can't be converted to the first build's unit, nanoseconds",
        "no/such/file.pb: ",
        "written.pb: this is a written diff",
        "1.pb: there is another build with the key \"1\"",
        "huge.pb: its values add up to more than half the range of an int64",
    ];
    assert_eq!(s.errors().len(), reasons.len());
    for ((build, error), reason) in s.errors().iter().zip(reasons) {
        let text = s.builds.all[*build].error.as_deref().unwrap();
        assert_eq!(text, error.to_string());
        assert!(text.starts_with(reason), "{text}");
    }
    // The text lists all reasons, one per line.
    let mut text = Vec::new();
    Table::movers(&s.movers(Sort::Flat), usize::MAX)
        .write_text(&mut text, pprofdiff_report::TextOptions::default())
        .unwrap();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.lines().filter(|l| l.starts_with("failed: ")).count(), reasons.len(), "{text}");

    // A bad base is an error.
    let error = Series::load(builds, &Query::default(), &options(Against::First)).unwrap_err();
    assert_eq!(error.input(), Some("broken first.pb"));
    // It is also an error if all builds are bad.
    let error = Series::load([bytes("x", b"\xff"), bytes("y", b"\xff")], &Query::default(), &SeriesOptions::default());
    assert_eq!(error.unwrap_err().input(), Some("x.pb"));
    let error = Series::load([], &Query::default(), &SeriesOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Query);
}

#[test]
fn values_are_converted_to_the_finest_unit() {
    let build_in = |unit: &str, v: i64| profile("cpu", unit, &[("a", v)]);
    let builds = [
        bytes("ms", &build_in("milliseconds", 3)),
        bytes("us", &build_in("microseconds", 2_500)),
        bytes("s", &build_in("seconds", 1)),
        bytes("too large", &build_in("seconds", i64::MAX / 1_500_000)),
        bytes("msec", &build_in("ms", 4)),
    ];
    let s = Series::load(builds, &Query::default(), &SeriesOptions::default()).unwrap();
    assert_eq!(s.summary.unit, "microseconds");
    let flat: Vec<i64> = s.values().map(|(_, values)| values[0].flat).collect();
    assert_eq!(flat, [3_000, 2_500, 1_000_000, 4_000]);
    assert_eq!(s.builds.loaded().map(|b| b.total).collect::<Vec<_>>(), flat);
    // Unknown units are equal only if their names are.
    let builds =
        [bytes("a", &build_in("widgets", 1)), bytes("b", &build_in("widgets", 3)), bytes("c", &build_in("gadgets", 3))];
    let s = Series::load(builds, &Query::default(), &SeriesOptions::default()).unwrap();
    assert_eq!(steps(&s), owned_rows(&[("a", "a", "b", 2)]));
}

#[test]
fn builds_are_normalized_to_the_first() {
    let builds = [
        bytes("1", &cpu(&[("a", 50), ("b", 50)])),
        bytes("nothing", &cpu(&[])),
        bytes("2", &cpu(&[("a", 150), ("b", 50)])),
        bytes("3", &cpu(&[("a", 100), ("b", 300)])),
    ];
    let query = Query::default().with_normalize(Normalize::Total);
    let s = Series::load(builds, &query, &SeriesOptions::default()).unwrap();
    assert_eq!(
        s.builds.loaded().map(|b| (b.total, b.factor)).collect::<Vec<_>>(),
        [(100, 1.0), (100, 0.5), (100, 0.25)]
    );
    assert!(s.builds.all[1].error.as_deref().unwrap().contains("can't normalize by total"));
    assert_eq!(
        steps(&s),
        owned_rows(&[("a", "2", "3", -50), ("b", "2", "3", 50), ("a", "1", "2", 25), ("b", "1", "2", -25)])
    );
}

#[test]
fn filters_apply_and_warn_if_they_match_nothing() {
    let builds = [bytes("1", &cpu(&[("main;a", 1)])), bytes("2", &cpu(&[("main;b", 2), ("main;c", 4)]))];
    let focus = |re: &str| Query::default().with_filters(pprofdiff::Filters::default().with("focus", re).unwrap());
    let s = Series::load(builds.clone(), &focus("^b$"), &SeriesOptions::default()).unwrap();
    assert!(s.summary.warnings.contains(&"1: focus \"^b$\" matched nothing".to_owned()), "{:?}", s.summary.warnings);
    assert_eq!(steps(&s), owned_rows(&[("b", "1", "2", 2), ("main", "1", "2", 0)]));
    // Percentages still refer to the total of all samples.
    assert_eq!(s.builds.all[1].total, 6);
    let s = Series::load(builds.clone(), &focus("^d$"), &SeriesOptions::default()).unwrap();
    assert!(s.summary.warnings.contains(&"focus \"^d$\" matched nothing".to_owned()), "{:?}", s.summary.warnings);
    assert!(s.movers(Sort::Flat).rows.is_empty());
    let no_labels = Query::default().with_granularity(Granularity::Addresses);
    for bad in [focus("("), no_labels, Query::default().with_normalize(Normalize::Factor(2.0))] {
        let e = Series::load(builds.clone(), &bad, &SeriesOptions::default()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Query);
    }
}

#[test]
fn patterns_sort_keys_in_natural_order() {
    let dir = std::env::temp_dir().join(format!("pprofdiff-series-{}", std::process::id()));
    for (i, build) in ["build-9", "build-10", "build-2"].into_iter().enumerate() {
        std::fs::create_dir_all(dir.join(build)).unwrap();
        std::fs::write(dir.join(build).join("cpu.pb"), cpu(&[("a", i as i64 + 1)])).unwrap();
    }
    let builds = Finder::default().builds(dir.join("build-*/cpu.pb").to_str().unwrap()).unwrap();
    let options = SeriesOptions::default().with_order(BuildOrder::Key);
    let s = Series::load(builds, &Query::default(), &options).unwrap();
    assert_eq!(s.builds.all.iter().map(|b| b.key.as_str()).collect::<Vec<_>>(), ["2", "9", "10"]);
    assert_eq!(steps(&s), owned_rows(&[("a", "2", "9", -2), ("a", "9", "10", 1)]));
    assert!(Finder::default().builds(dir.join("none-*").to_str().unwrap()).is_err());
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_step_is_explained_by_the_builds_around_it() {
    let dir = std::env::temp_dir().join(format!("pprofdiff-series-explain-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = |i: usize| dir.join(format!("{i}.pb"));
    // `parse` costs twice as much from the sixth build on. The other functions vary a little.
    for i in 0..9 {
        let work = 900 + 13 * (i as i64 * 5 % 7);
        let parse = if i < 5 { 400 } else { 800 } + 7 * (i as i64 * 3 % 5);
        let stacks = [("main;work", work), ("main;parse", parse), ("main;write", 500 + i as i64)];
        std::fs::write(path(i), profile("samples", "count", &stacks)).unwrap();
    }
    let load = |from: usize, to: usize, against: Against| {
        let sources = (from..to).map(|i| (i.to_string(), Source::Path(path(i))));
        Series::load(sources, &Query::default(), &options(against)).unwrap()
    };
    let explain_build = |s: &Series, build: usize, runs: usize| {
        s.explain(&s.change_point(build, runs)?, &LoadOptions::default(), &ExplainOptions::default())
    };
    let s = load(0, 9, Against::Previous);
    let step = s.largest_change(Sort::Flat, 3).unwrap().build;
    assert_eq!(s.builds.all[step].key, "5");
    let why = explain_build(&s, step, 3).unwrap();
    assert_eq!((why.summary.new.paths.len(), why.noise.runs), (3, (3, 3)));
    let function = |e: &Explanation| e.causes.first().and_then(|c| c.function.clone());
    assert_eq!((why.causes.len(), function(&why).as_deref()), (1, Some("parse")));
    // There are fewer runs near the ends. Without a change there is no cause.
    let last = explain_build(&s, 8, 3).unwrap();
    assert_eq!((last.noise.runs, last.causes.len()), ((3, 1), 0));
    assert_eq!(explain_build(&s, 1, 3).unwrap().noise.runs, (1, 3));
    assert_eq!(explain_build(&s, 1, usize::MAX).unwrap().noise.runs, (1, 8), "as many as there are");
    let against = load(4, 7, Against::First);
    let why = explain_build(&against, 2, 3).unwrap();
    assert_eq!((why.noise.runs, function(&why).as_deref()), ((1, 1), Some("parse")));
    let moved = Query::default().with_matching(pprofdiff::Matching::Moved);
    let refused = SeriesBuilder::new(&moved, &options(Against::Previous)).err().unwrap().to_string();
    assert!(refused.contains("exact, stable or canonical"), "{refused}");
    for (build, runs, message) in [(0, 3, "nothing comes before it"), (3, 0, "no runs"), (99, 3, "no values")] {
        let error = explain_build(&s, build, runs).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(explain_build(&s, step, 1).unwrap_err().to_string().contains("4.pb"), "the profiles are gone");
    assert!(load_equal().largest_change(Sort::Flat, 3).is_none());
}

/// Returns a series of three equal builds.
fn load_equal() -> Series {
    let same = profile("samples", "count", &[("main", 10)]);
    Series::load(numbered(&[same.clone(), same.clone(), same]), &Query::default(), &options(Against::Previous)).unwrap()
}

#[test]
fn stored_series_are_checked() {
    let builds = [bytes("1", &cpu(&[("a", 1), ("b", 2)])), bytes("2", &cpu(&[("a", 3)]))];
    let s = Series::load(builds, &Query::default(), &SeriesOptions::default()).unwrap();
    let stored = serde_json::to_string(&s).unwrap();
    assert!(serde_json::from_str::<Series>(&stored).is_ok());
    for (from, to) in [
        ("\"frame\":1", "\"frame\":7"),
        ("\"frame\":1", "\"frame\":0"),
        ("[1,[{\"frame\"", "[2,[{\"frame\""),
        ("[1,[{\"frame\"", "[0,[{\"frame\""),
        ("\"frames\":[[", "\"frames\":[[99,1,1,0,0],["),
    ] {
        assert!(stored.contains(from), "{from} is not in {stored}");
        assert!(serde_json::from_str::<Series>(&stored.replacen(from, to, 1)).is_err(), "{from} as {to}");
    }
}

#[test]
fn keys_and_names_are_escaped_in_html() {
    let evil = "<script>alert('1')</script>";
    let s =
        Series::load([bytes(evil, &cpu(&[(evil, 1)])), bytes("2", &cpu(&[]))], &Query::default(), &Default::default());
    let s = s.unwrap();
    for html in [
        series_html(&s, Sort::Flat, 5),
        Table::movers(&s.movers(Sort::Cum), usize::MAX).to_html(5),
        Table::values_of(&s).to_html(5),
    ] {
        assert!(html.contains("&lt;script&gt;") && !html.contains("<script"), "{html}");
    }
}
