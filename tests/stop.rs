//! Tests of cancellation: every verb stops at its next checkpoint with the same error, and leaves no state that changes a
//! later answer. The tests count checkpoints instead of seconds.

use std::sync::Arc;

use pprofdiff::builder::{LocationId, ProfileBuilder};
use pprofdiff::delta::{DeltaComputer, DeltaOptions};
use pprofdiff::graph::GraphOptions;
use pprofdiff::list::SourceDirs;
use pprofdiff::samples::{Label, LabelValue};
use pprofdiff::{
    Cancellation, Compression, Diff, ErrorKind, LoadOptions, Profile, Query, Result, Sort, Source, WriteOptions, merge,
};
use pprofdiff_page::PageView;
use pprofdiff_report::{CheckOptions, Registry, Report, Request, View};
use pprofdiff_series::{Series, SeriesOptions};

const THREADS: u64 = 3;

/// Builds stacks of many functions, so that walking them takes several chunks of work.
fn profile(seed: u64) -> Arc<Profile> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut below = |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % n
    };
    let mut b = ProfileBuilder::new();
    b.sample_type("samples", "count");
    b.sample_type("cpu", "nanoseconds");
    b.period("cpu", "nanoseconds", 10_000_000);
    let (key, values) = (b.string("thread"), ["a", "b", "c"].map(|value| b.string(value)));
    let locations: Vec<LocationId> = (0..3000)
        .map(|i| {
            let function = b.function(format!("pkg{}.f{i}", i % 50), "f.go", 0);
            let line = b.line(function, 1 + i % 40);
            b.location(None, 0, &[line]).unwrap()
        })
        .collect();
    for i in 0..30_000_u64 {
        // Each callee depends on its caller, so that there are calls to count.
        let mut callee = below(7);
        let depth = 10 + below(30);
        let mut stack: Vec<LocationId> = (0..depth)
            .map(|d| {
                callee = (callee * 31 + d * 7 + below(4)) % 3000;
                locations[callee as usize]
            })
            .collect();
        stack.reverse();
        let count = 1 + (i * seed) % 7 + if callee == 77 { seed * 5 } else { 0 };
        let label = Label { key, value: LabelValue::Text(values[(i % 3) as usize]) };
        b.sample(&stack, &[count as i64, count as i64 * 10_000_000], &[label]).unwrap();
    }
    b.header().time_nanos = 1_000_000_000 * seed as i64;
    Arc::new(b.build(&format!("{seed}.pb.gz")).unwrap())
}

type Verb = Box<dyn Fn() -> Result<Vec<u8>> + Sync>;

fn verbs() -> Vec<(&'static str, Verb)> {
    let (base, new) = (profile(1), profile(2));
    let mut verbs: Vec<(&'static str, Verb)> = Vec::new();
    // Formats that are inflated and parsed in different ways.
    let load = |bytes: Vec<u8>| -> Verb {
        Box::new(move || {
            let profile = pprofdiff::from_bytes("in", &bytes, &LoadOptions::default())?;
            Ok(profile.total(0).unwrap_or(0).to_le_bytes().to_vec())
        })
    };
    let packed = |compression| new.to_bytes(&WriteOptions::new().with_compression(compression)).unwrap();
    verbs.push(("load gzip", load(packed(Compression::Gzip))));
    verbs.push(("load zstd", load(packed(Compression::Zstd))));
    let diff = Arc::new(Diff::new(std::slice::from_ref(&base), std::slice::from_ref(&new)).unwrap());
    let single = Arc::new(Diff::of_profile(&new).unwrap());
    let write = |diff: &Diff, view: View, format: &str| -> Result<Vec<u8>> {
        let registry = Registry::standard().with(&pprofdiff_page::ALL);
        let format = registry.format(format)?;
        let report = Request::default().asking(view).for_format(format, &registry)?.answer(diff)?;
        let mut out = Vec::new();
        format.write(&report, &mut out, Default::default()).unwrap();
        Ok(out)
    };
    let (sort, limit) = (Sort::Flat, None);
    verbs.push(("load folded", load(write(&single, View::Stacks { by_labels: false, limit }, "folded").unwrap())));
    let page = View::extension(PageView::default());
    let mut check = CheckOptions::default();
    check.fail_on = vec!["flat:any>+5%".to_owned(), "total>+1%".to_owned()];
    let asks = [
        ("top", View::Top { sort, limit, significant: false }, "json"),
        ("tree", View::Tree { sort, limit: Some(100) }, "json"),
        ("stacks", View::Stacks { by_labels: true, limit }, "json"),
        ("traces", View::Traces { limit }, "text"),
        ("labels", View::Labels { limit }, "json"),
        ("list", View::List { regex: "f1".to_owned(), sources: SourceDirs::default(), limit: Some(5) }, "text"),
        ("graph", View::Graph(GraphOptions::default()), "svg"),
        ("page", page, "html"),
        ("profile", View::Profile(WriteOptions::default()), "pprof"),
        ("check", View::Check(check), "json"),
        ("explain", View::Explain(Default::default()), "json"),
    ];
    for (name, view, format) in asks {
        let diff = diff.clone();
        verbs.push((name, Box::new(move || write(&diff, view.clone(), format))));
    }
    let (a, b) = (base.clone(), new.clone());
    verbs.push(("merge", Box::new(move || merge(&[&*a, &*b, &*a])?.to_bytes(&WriteOptions::default()))));
    let (a, b) = (base.clone(), new.clone());
    verbs.push((
        "delta",
        Box::new(move || {
            let mut options = DeltaOptions::default().with_cumulative(["samples".to_owned()]);
            options = options.with_on_reset(pprofdiff::delta::OnReset::Clamp);
            pprofdiff::delta(&a, &b, &options)?.to_bytes(&WriteOptions::default())
        }),
    ));
    let (a, b) = (packed(Compression::Gzip), base.to_bytes(&WriteOptions::default()).unwrap());
    verbs.push((
        "series",
        Box::new(move || {
            let builds = (0..8)
                .map(|i| (format!("{i}"), Source::Bytes(format!("{i}"), if i < 4 { b.clone() } else { a.clone() })));
            let series = Series::load(builds, &Query::default(), &SeriesOptions::default())?;
            let view = View::Shifts { sort: Sort::Flat, limit: None, explain: None };
            let report = Request::default().asking(view).answer_series(&series, &LoadOptions::default())?;
            let Report::Table(table) = report else { return Ok(Vec::new()) };
            Ok((table.len() as u64).to_le_bytes().to_vec())
        }),
    ));
    verbs
}

fn pool() -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(THREADS as usize).build().unwrap()
}

#[test]
#[ignore = "slow; `tests/run all` runs it"]
fn every_verb_stops_at_the_next_checkpoint() {
    let pool = pool();
    for (name, verb) in verbs() {
        let run = |work: &Cancellation| pool.install(|| work.run(&verb)).and_then(|result| result);
        let work = Cancellation::new();
        let whole = run(&work).unwrap();
        let polls = work.polls();
        // The inputs have some megabytes, and at most a few hundred kilobytes are processed between two checkpoints.
        assert!(polls >= 10, "{name} polls {polls} times");
        for checkpoint in [0, 1, polls / 4, polls / 2, polls * 9 / 10] {
            let work = Cancellation::new();
            work.stop_at_checkpoint(checkpoint);
            let ended = run(&work);
            assert_eq!(
                ended.map(|_| ()).unwrap_err().kind(),
                ErrorKind::Interrupted,
                "{name}, stopped at {checkpoint} of {polls}"
            );
            // Each thread may reach one more checkpoint, for itself and for its parent task.
            let limit = checkpoint + 2 * THREADS;
            assert!(work.polls() <= limit, "{name}, stopped at {checkpoint} of {polls}: {} polls", work.polls());
        }
        assert!(run(&Cancellation::new()).unwrap() == whole, "{name} says something else after it was stopped");
    }
}

#[test]
#[ignore = "slow; `tests/run all` runs it"]
fn a_cancelled_update_changes_no_state() {
    let (base, new) = (profile(1), profile(2));
    let options = DeltaOptions::default().with_cumulative(["samples".to_owned()]);
    let options = options.with_on_reset(pprofdiff::delta::OnReset::Clamp);
    let bytes =
        |computer: &mut DeltaComputer| computer.update(&new).unwrap().to_bytes(&WriteOptions::default()).unwrap();
    let mut computer = DeltaComputer::new(options.clone());
    computer.start(&base).unwrap();
    let expected = bytes(&mut computer);
    // A computer that has written before reaches checkpoints at other places, so the loop uses new computers.
    let mut computer = DeltaComputer::new(options.clone());
    computer.start(&base).unwrap();
    let work = Cancellation::new();
    work.run(|| computer.update(&new).map(drop)).unwrap().unwrap();
    assert!(work.polls() >= 10, "{}", work.polls());
    for checkpoint in 0..work.polls() {
        let mut computer = DeltaComputer::new(options.clone());
        computer.start(&base).unwrap();
        let work = Cancellation::new();
        work.stop_at_checkpoint(checkpoint);
        assert!(work.run(|| computer.update(&new).map(drop)).is_err(), "stopped at {checkpoint}");
        assert!(bytes(&mut computer) == expected, "stopped at {checkpoint}");
    }
}

#[test]
#[ignore = "slow; `tests/run all` runs it"]
fn work_reports_its_phase() {
    let (base, new) = (profile(1), profile(2));
    let bytes = new.to_bytes(&WriteOptions::default()).unwrap();
    let diff = Diff::new(std::slice::from_ref(&base), &[new]).unwrap();
    let phase = |run: &dyn Fn()| {
        let work = Cancellation::new();
        assert_eq!(work.phase(), None);
        work.run(run).unwrap();
        work.phase()
    };
    let view = |view: View| drop(Request::default().asking(view).answer(&diff).unwrap());
    assert_eq!(phase(&|| drop(pprofdiff::from_bytes("in", &bytes, &LoadOptions::default()))), Some("reading"));
    assert_eq!(phase(&|| view(View::default())), Some("comparing"));
    assert_eq!(phase(&|| view(View::Explain(Default::default()))), Some("explaining"));
    assert_eq!(phase(&|| view(View::extension(PageView::default()))), Some("drawing"));
    assert_eq!(phase(&|| drop(merge(&[&*base, &*base]))), Some("merging"));
}
