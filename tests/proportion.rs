//! Memory grows in proportion to the input. A child process loads crafted inputs, which represent much more than their
//! size, computes every view, and reports its peak memory. Linux only, because it reports the peak of a process.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

#[path = "proportion/formats.rs"]
mod formats;
#[path = "proportion/profiles.rs"]
mod profiles;
#[path = "proportion/recordings.rs"]
mod recordings;

use std::io::Write;
use std::ops::Div;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::slice::from_ref;
use std::sync::Arc;

use pprofdiff::check::Rules;
use pprofdiff::delta::{DeltaOptions, delta};
use pprofdiff::flame::FlameOptions;
use pprofdiff::graph::GraphOptions;
use pprofdiff::proto::{Label, Sample, ValueType};
use pprofdiff::{Cancellation, Diff, Granularity, LoadOptions, Query, Sort, WriteOptions};
use pprofdiff_explain::ExplainOptions;
use pprofdiff_page::PageOptions;
use pprofdiff_report::{
    self as report, CsvOptions, Registry, Request, Style, Table, TextOptions, View, dot, listing_json, listing_text,
    svg,
};
use profiles::*;
use prost::Message;
use rayon::prelude::*;

/// Memory that every process may take in addition to the multiple of its input.
const MB: u64 = 1 << 20;
const FLOOR: u64 = 64 * MB;

/// Returns true if inputs have the full sizes listed in tests/README.md, as in nightly runs. Otherwise they are half as
/// large.
fn is_whole() -> bool {
    std::env::var_os("PPROFDIFF_CASES").is_some()
}

fn half<T: Div<Output = T> + From<u8>>(n: T) -> T {
    if is_whole() { n } else { n / T::from(2) }
}

/// Returns the memory allowance, halved together with the inputs, except for the 16 MB that a process takes regardless
/// of its input. With the full allowance, a half-size input could use too many bytes per record unnoticed.
fn floor() -> u64 {
    if is_whole() { FLOOR } else { 16 * MB + (FLOOR - 16 * MB) / 2 }
}

/// Maximum memory of any view, as a multiple of the inflated size.
const TIMES: u64 = 4;

/// A crafted profile: its name, a function that builds its message from a multiple of half the named size, and its
/// expected error (empty if it loads).
type Case = (&'static str, fn(u64) -> Vec<u8>, &'static str);

/// This case is only loaded and turned into a table. Writing it in all formats takes minutes in a test build.
const LOADED_ONLY: &str = "a string table of 1 GB";

/// Cases that are never halved: the first tests one of our limits, the second is close to its own.
const NEVER_HALVED: [&str; 2] = ["a sample of ten million frames", "deep inlining within bounds"];

const CASES: &[Case] = &[
    ("ten million empty strings", empty_strings, ""),
    (LOADED_ONLY, large_strings, ""),
    ("a sample of ten million frames", deep_stack, ""),
    ("recursion a million deep", recursion, ""),
    ("40,000 distinct stacks of 300 frames", many_stacks, ""),
    ("a hundred functions that share a name of a megabyte", shared_name, ""),
    ("a hundred addresses in a binary with a path of a megabyte", shared_path, ""),
    ("deep inlining within bounds", inlining_allowed, ""),
    ("deep inlining, 20,000 samples through 20,000 lines", inlining_refused, "locations with many lines are repeated"),
    ("stacks of many short inlined lines", short_inlining, "locations with many lines are repeated"),
    ("ids near 2^64", huge_ids, ""),
    ("a million labels on one sample", labels, ""),
    ("a label of its own on each of 200,000 samples", label_each, ""),
    ("two thousand labels whose key is a megabyte", long_keys, ""),
    ("a string whose number is 2^31", string_number, "string 2147483648"),
];

/// Returns the peak memory of this process so far, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// The child process: loads the given file and computes every view.
#[test]
fn compute_every_view() {
    let Some(path) = std::env::var_os("PPROFDIFF_PROPORTION") else { return };
    let limit = std::env::var("PPROFDIFF_LIMIT").ok().and_then(|l| l.parse().ok());
    let mut options = LoadOptions::default();
    options.inflated_limit = limit.unwrap_or(options.inflated_limit);
    let profile = match pprofdiff::open(path, &options) {
        Ok(profile) => Arc::new(profile),
        Err(e) => return println!("\npeak error {} {e}", peak()),
    };
    let tell = |step: &str| println!("\npeak {step} {}", peak());
    tell("load");
    let diff = Diff::of_profile(&profile).unwrap();
    let query = Query::default().with_granularity(Granularity::Addresses);
    let sink = &mut std::io::sink();
    let view = diff.measure(&query).unwrap();
    if std::env::var_os("PPROFDIFF_BRIEF").is_some() {
        Table::top(&view.top(Sort::Flat), usize::MAX);
        return tell("check");
    }
    // All formats but text write row by row. Text columns are as wide as the widest row, so text is formatted twice.
    let all_formats = |table: &Table, sink: &mut dyn Write| {
        table.write_csv(sink, CsvOptions::default()).unwrap();
        table.write_json(sink).unwrap();
        table.write_markdown(sink).unwrap();
        table.write_text(sink, TextOptions::default()).unwrap();
        table.to_html(20);
    };
    all_formats(&Table::top(&view.top(Sort::Flat), usize::MAX), sink);
    tell("top");
    all_formats(&Table::tree(&view.edges(None, Sort::Cum).unwrap()), sink);
    all_formats(&Table::peek(&view.edges(Some("x"), Sort::Cum).unwrap()), sink);
    tell("tree");
    let stacks = view.stacks(false);
    all_formats(&Table::stacks(&stacks, usize::MAX), sink);
    tell("stacks");
    report::folded(&stacks, sink).unwrap();
    report::speedscope(&stacks, sink).unwrap();
    tell("folded");
    drop(stacks);
    view.flame(&FlameOptions::default());
    tell("flame");
    let graph = view.graph(&GraphOptions::default()).unwrap();
    dot(&graph, sink).unwrap();
    svg(&graph).unwrap();
    tell("graph");
    drop(graph);
    // A call tree has as many nodes as all stacks have frames, up to a limit.
    match view.graph(&GraphOptions::default().with_call_tree(true)) {
        Ok(tree) => dot(&tree, sink).unwrap(),
        Err(e) => assert!(e.to_string().contains("the call tree has more than"), "{e}"),
    }
    tell("call-tree");
    drop(view);
    let raw = Request::default().asking(View::Raw).answer(&diff).unwrap();
    Registry::standard().format("text").unwrap().write(&raw, sink, Style::default()).unwrap();
    drop(raw);
    tell("raw");
    pprofdiff_page::page(&diff, &query, &PageOptions::default(), None).unwrap();
    tell("page");
    diff.to_bytes(&query, &WriteOptions::default()).unwrap();
    tell("write");
    let view = diff.measure(&query).unwrap();
    all_formats(&Table::labels(&view.labels()), sink);
    tell("labels");
    all_formats(&Table::stacks(&view.stacks(true), 20), sink);
    tell("stacks-by-labels");
    drop(view);
    let listing = diff.list(&query, ".", &()).unwrap();
    listing_text(&listing, sink, TextOptions::default()).unwrap();
    listing_json(&listing, sink).unwrap();
    report::to_html_page(&listing);
    drop(listing);
    tell("list");
    let policy = DeltaOptions::default().with_cumulative(vec!["cpu".to_owned()]);
    delta(&profile, &profile, &policy).unwrap().to_bytes(&WriteOptions::default()).unwrap();
    tell("delta");
    let both = Diff::new(from_ref(&profile), from_ref(&profile)).unwrap();
    pprofdiff_explain::explain(&both, &Query::default(), &[], &ExplainOptions::default()).unwrap();
    tell("explain");
    let mut rules = Rules::default();
    rules.fail_on("cum:any>+5%").unwrap();
    rules.fail_on("flat:regex=x>+5%").unwrap();
    pprofdiff_explain::check(&rules, &ExplainOptions::default(), &both, &Query::default()).unwrap();
    tell("check");
}

/// The child process of [`causes_take_memory_and_work_in_proportion`]. Profiles in the folder whose names begin with
/// `base` are runs of the base side. All others are runs of the new side.
#[test]
fn explain_causes() {
    let Some(folder) = std::env::var_os("PPROFDIFF_CAUSES") else { return };
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let open = |path: &PathBuf| Arc::new(pprofdiff::open(path, &LoadOptions::default()).unwrap());
    let is_base = |path: &&PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("base");
    let base: Vec<_> = paths.iter().filter(is_base).map(open).collect();
    let new: Vec<_> = paths.iter().filter(|path| !is_base(path)).map(open).collect();
    let diff = Diff::new(&base, &new).unwrap();
    let query = Query::default();
    let tell = |step: &str, detail: &str| println!("\npeak {step} {} {detail}", peak());
    tell("load", "");
    let view = diff.measure(&query).unwrap();
    Table::labels(&view.labels());
    tell("labels", "");
    Table::stacks(&view.stacks(true), 20);
    tell("stacks-by-labels", "");
    drop(view);
    let e = pprofdiff_explain::explain(&diff, &query, &[], &ExplainOptions::default()).unwrap();
    tell("explain", &format!("{} {}", e.work, e.left_out.join("; ")));
    let mut rules = Rules::default();
    rules.fail_on("cum:any>+5%").unwrap();
    rules.policy.explain = true;
    pprofdiff_explain::check(&rules, &ExplainOptions::default(), &diff, &query).unwrap();
    tell("check", "");
    pprofdiff_page::page(&diff, &query, &PageOptions::default(), None).unwrap();
    tell("page", "");
}

/// Runs the child process and returns its steps, each with the peak memory after it and a message. The malloc settings
/// make glibc return large blocks at once, so memory freed by one step does not count for the next.
fn child(input: &Path, limit: Option<u64>, brief: bool) -> Vec<(String, u64, String)> {
    child_of("compute_every_view", "PPROFDIFF_PROPORTION", input, limit, brief)
}

fn child_of(test: &str, name: &str, input: &Path, limit: Option<u64>, brief: bool) -> Vec<(String, u64, String)> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(name, input);
    // Measures the memory that the program keeps, not the memory that the allocator caches per thread.
    command
        .env("MALLOC_MMAP_THRESHOLD_", "131072")
        .env("MALLOC_TRIM_THRESHOLD_", "131072")
        .env("MALLOC_ARENA_MAX", "2");
    if brief {
        command.env("PPROFDIFF_BRIEF", "");
    }
    if let Some(limit) = limit {
        command.env("PPROFDIFF_LIMIT", limit.to_string());
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |l: &str| {
        let mut words = l.strip_prefix("peak ")?.splitn(3, ' ');
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?, words.next().unwrap_or_default().to_owned()))
    };
    text.lines().filter_map(line).collect()
}

fn temporary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("proportion-{}-{name}", std::process::id()))
}

/// If `PPROFDIFF_TIMES` is set, the inputs are larger by that factor (except inputs that test a limit), and the memory
/// is only printed.
#[test]
fn crafted_inputs_take_memory_in_proportion() {
    let times = std::env::var("PPROFDIFF_TIMES").map_or(1, |t| t.parse().unwrap());
    // Runs one child per core, because the children take most of the time.
    let beyond = |(i, (name, message, error)): (usize, &Case)| {
        let path = temporary(&format!("{i}.pb"));
        let (halves, floor) =
            if NEVER_HALVED.contains(name) { (2, FLOOR) } else { (if is_whole() { 2 } else { 1 }, floor()) };
        let bytes = message(halves * times);
        let size = bytes.len() as u64;
        std::fs::write(&path, bytes).unwrap();
        let began = std::time::Instant::now();
        let steps = child(&path, None, *name == LOADED_ONLY);
        std::fs::remove_file(&path).unwrap();
        let shown: Vec<String> = steps.iter().map(|(step, peak, _)| format!("{step} {}", peak / MB)).collect();
        let (last, peak, detail) = steps.last().unwrap();
        println!(
            "{name}: {:.1} MB; peak in MB after {}; {:.1} times the size; {:?}",
            size as f64 / MB as f64,
            shown.join(", "),
            (*peak as f64 - floor as f64).max(0.0) / size as f64,
            began.elapsed()
        );
        let expected = if error.is_empty() { "check" } else { "error" };
        assert!(last == expected && detail.contains(error), "{name}: {last} {detail}");
        let is_beyond = times == 1 && *peak > TIMES * size + floor;
        is_beyond.then(|| format!("{name}: {} MB, of {} MB and {TIMES} times {} MB", peak / MB, floor / MB, size / MB))
    };
    let beyond: Vec<String> = CASES.par_iter().enumerate().filter_map(beyond).collect();
    assert!(beyond.is_empty(), "{beyond:#?}");
}

/// A generator of profiles with stacks of functions and with label keys.
struct Stacks {
    stacks: u64,
    depth: u64,
    /// Number of functions. If it equals the number of stacks, each stack has its own function.
    functions: u64,
    keys: u64,
    /// Number of values of each key.
    values: u64,
    sample_types: usize,
    /// Number of runs per side. Each run has other functions.
    runs: u64,
}

const STACKS: Stacks =
    Stacks { stacks: 100, depth: 100, functions: 10_000, keys: 0, values: 2, sample_types: 1, runs: 1 };

impl Stacks {
    /// Builds the profile of one run. On the new side some functions cost more, also for one value of a label.
    fn message(&self, run: u64, is_new: bool) -> Vec<u8> {
        let mix = |x: u64| {
            let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            x ^ (x >> 31)
        };
        let mut p = base(self.functions);
        p.sample_type = vec![ValueType { r#type: 1, unit: 2 }; self.sample_types];
        let mut text = |text: String| {
            p.string_table.push(text.into_bytes());
            p.string_table.len() as i64 - 1
        };
        let keys: Vec<i64> = (0..self.keys).map(|i| text(format!("key{i}"))).collect();
        let values: Vec<i64> = (0..self.values).map(|i| text(format!("v{i}"))).collect();
        let types: Vec<i64> = (0..self.sample_types).map(|i| text(format!("type{i}"))).collect();
        let names: Vec<i64> = (0..self.functions).map(|i| text(format!("main.f{i}.{run}"))).collect();
        p.function.iter_mut().zip(names).for_each(|(f, name)| f.name = name);
        p.sample_type.iter_mut().zip(types).for_each(|(t, name)| t.r#type = name);
        let has_own_functions = self.functions == self.stacks * self.depth;
        let one = |s: u64| {
            let frame = |d: u64| if has_own_functions { s * self.depth + d } else { mix(s << 16 | d) % self.functions };
            let frames: Vec<u64> = (0..self.depth).map(|d| 1 + frame(d)).collect();
            let of_key = |i: u64| (s >> (i % 5)) % self.values;
            let slow = frames.iter().filter(|&&f| f % 100 == 3).count() as u32 + u32::from(of_key(1) == 1);
            let value = 100 + mix(s) % 900 + mix(s << 1 | u64::from(is_new)) % 30;
            let value = (value << if is_new { slow.min(9) } else { 0 }) as i64;
            let label = |i: u64| Label { key: keys[i as usize], str: values[of_key(i) as usize], ..Default::default() };
            let label = (0..self.keys).map(label).collect();
            Sample { location_id: frames, value: vec![value; self.sample_types], label }
        };
        p.sample = (0..self.stacks).map(one).collect();
        p.encode_to_vec()
    }
}

/// Maximum steps for the search for causes, plus a maximum per byte. Both are a little above the engine's own limits,
/// where it gives up.
const WORK: u64 = 3 << 25;
const WORK_OF_BYTE: u64 = 96;

/// Combines labels, functions, stacks, runs and sample types. The file size is the sum of them, but a naive search for
/// causes would visit their product.
#[test]
fn causes_take_memory_and_work_in_proportion() {
    let labels = |keys, values| Stacks { keys, values, ..STACKS };
    let shared = |stacks, depth, functions| Stacks { stacks, depth, functions, ..STACKS };
    let cases: &[(&str, Stacks, bool)] = &[
        ("2,000 keys on 100 stacks of 100 functions", labels(2000, 2), true),
        ("40 keys on 2,000 stacks of the same functions", Stacks { keys: 40, ..shared(2000, 100, 150) }, true),
        ("one key on 6,000 stacks of the same functions", Stacks { keys: 1, ..shared(6000, 60, 400) }, false),
        ("four keys and much that changed", Stacks { keys: 4, values: 3, ..shared(3000, 60, 400) }, false),
        ("stacks that change all over", shared(8000, 60, 400), false),
        ("200 runs a side of functions of their own", Stacks { runs: 200, ..shared(30, 5, 150) }, false),
        ("50 sample types, 100 keys", Stacks { keys: 100, sample_types: 50, ..shared(100, 50, 5000) }, true),
    ];
    let mut beyond = Vec::new();
    for (name, stacks, leaves_out) in cases {
        let folder = temporary("causes");
        std::fs::create_dir_all(&folder).unwrap();
        let mut size = 0;
        for (run, side) in (0..stacks.runs).flat_map(|run| ["base", "new"].map(|side| (run, side))) {
            let bytes = stacks.message(run, side == "new");
            size += bytes.len() as u64;
            std::fs::write(folder.join(format!("{side}{run}.pb")), bytes).unwrap();
        }
        let steps = child_of("explain_causes", "PPROFDIFF_CAUSES", &folder, None, false);
        std::fs::remove_dir_all(&folder).unwrap();
        let shown: Vec<String> = steps.iter().map(|(step, peak, _)| format!("{step} {}", peak / MB)).collect();
        let (_, peak, _) = steps.last().unwrap();
        let (_, _, detail) = steps.iter().find(|(step, ..)| step == "explain").unwrap();
        let (work, left_out) = detail.split_once(' ').unwrap_or((detail, ""));
        println!("{name}: {:.1} MB; peak in MB after {}; work {detail}", size as f64 / MB as f64, shown.join(", "));
        assert_eq!(left_out.contains("keys were left out"), *leaves_out, "{name}: {left_out}");
        if *peak > TIMES * size + FLOOR {
            beyond.push(format!("{name}: {} MB, of {} MB and {TIMES} times {} MB", peak / MB, FLOOR / MB, size / MB));
        }
        if work.parse::<u64>().unwrap() > WORK + WORK_OF_BYTE * size {
            beyond.push(format!("{name}: {work} steps for {size} bytes"));
        }
    }
    assert!(beyond.is_empty(), "{beyond:#?}");
}

/// Builds a profile with one stack of 4 million frames of one function. The stack costs more on the new side.
fn deep_recursion(is_new: bool) -> Vec<u8> {
    let mut p = base(60);
    p.string_table[1] = b"samples".to_vec();
    let first = p.string_table.len() as i64;
    p.string_table.extend((0..60).map(|i| format!("main.f{i}").into_bytes()));
    p.string_table.push(b"main.go".to_vec());
    for (function, name) in p.function.iter_mut().zip(first..) {
        (function.name, function.filename, function.start_line) = (name, first + 60, function.id as i64);
    }
    let sample = |location_id: Vec<u64>, value: i64| Sample { location_id, value: vec![value], label: Vec::new() };
    p.sample = (2..=60).map(|id| sample(vec![id], 1000 + id as i64 % 7)).collect();
    p.sample.push(sample(vec![1; 4_000_000], if is_new { 20_000 } else { 2000 }));
    p.encode_to_vec()
}

/// The child process of [`the_line_of_a_cause_takes_memory_and_work_in_proportion`].
#[test]
fn explain_deep_recursion() {
    let Some(folder) = std::env::var_os("PPROFDIFF_DEEP") else { return };
    let path = |side: &str| Path::new(&folder).join(side);
    let diff = Diff::open(path("base"), path("new"), &LoadOptions::default()).unwrap();
    println!("\npeak load {}", peak());
    let work = Cancellation::new();
    let explain = || pprofdiff_explain::explain(&diff, &Query::default(), &[], &ExplainOptions::default());
    let e = work.run(explain).unwrap().unwrap();
    let place = e.causes.first().and_then(|cause| cause.place.as_ref()).map(|place| place.short());
    println!("\npeak explain {} {}", peak(), place.unwrap_or_else(|| format!("no place: {:?}", e.causes)));
}

/// The search for the source line of a cause visits each frame of each stack, and a frame takes a byte. The search must not store them.
#[test]
fn the_line_of_a_cause_takes_memory_and_work_in_proportion() {
    let folder = temporary("deep");
    std::fs::create_dir_all(&folder).unwrap();
    let mut size = 0;
    for (side, is_new) in [("base", false), ("new", true)] {
        let bytes = deep_recursion(is_new);
        size += bytes.len() as u64;
        std::fs::write(folder.join(side), bytes).unwrap();
    }
    let began = std::time::Instant::now();
    let steps = child_of("explain_deep_recursion", "PPROFDIFF_DEEP", &folder, None, false);
    std::fs::remove_dir_all(&folder).unwrap();
    let (step, peak, place) = steps.last().unwrap();
    println!("{:.1} MB; {step}: {} MB, {place}, {:?}", size as f64 / MB as f64, peak / MB, began.elapsed());
    assert_eq!((step.as_str(), place.as_str()), ("explain", "main.go:1"));
    assert!(*peak <= TIMES * size + FLOOR, "{} MB, of {} MB", peak / MB, size / MB);
}

/// Maximum memory of a check of two profiles in which each name is a stack, as a multiple of their size.
const TIMES_OF_NAMES: u64 = 9;

/// Maximum checkpoints of such a check. There is one for 2^14 rows, and the check visits all rows about fifty times
/// (1,968 checkpoints). A loop over all rows for each name would take thousands of times as many.
const POLLS_OF_NAMES: u64 = 4_000;

/// Builds a profile of `n` one-frame stacks. A third of the functions differ on the new side.
fn names(n: u64, is_new: bool) -> Vec<u8> {
    let mut p = base(n);
    let first = p.string_table.len() as i64;
    let side = |i: u64| u64::from(is_new && i.is_multiple_of(3));
    p.string_table.extend((0..n).map(|i| format!("name{i}_{}", side(i)).into_bytes()));
    p.function.iter_mut().zip(first..).for_each(|(function, name)| function.name = name);
    let value = |i: u64| vec![(1 + i % 7 + u64::from(is_new)) as i64];
    p.sample = (0..n).map(|i| Sample { location_id: vec![1 + i], value: value(i), label: Vec::new() }).collect();
    p.encode_to_vec()
}

/// The child process of [`a_check_of_many_names_takes_memory_and_work_in_proportion`].
#[test]
fn check_names() {
    let Some(folder) = std::env::var_os("PPROFDIFF_NAMES") else { return };
    let path = |side: &str| Path::new(&folder).join(side);
    let diff = Diff::open(path("base"), path("new"), &LoadOptions::default()).unwrap();
    for (rule, outcome) in [("flat:any>+20%", "passed"), ("total>+5%", "failed")] {
        let mut rules = Rules::default();
        rules.fail_on(rule).unwrap();
        rules.policy.explain = true;
        let work = Cancellation::new();
        let check = work
            .run(|| pprofdiff_explain::check(&rules, &ExplainOptions::default(), &diff, &Query::default()))
            .unwrap()
            .unwrap();
        assert!(check.rules[0].why.is_some() || outcome == "failed", "{rule}");
        println!("\npeak {outcome} {} {}", peak(), work.polls());
    }
}

/// Each name is a frame, a row, a function and a stack, so the check keeps several copies of it.
#[test]
fn a_check_of_many_names_takes_memory_and_work_in_proportion() {
    let folder = temporary("names");
    std::fs::create_dir_all(&folder).unwrap();
    let mut size = 0;
    for (side, is_new) in [("base", false), ("new", true)] {
        let bytes = names(300_000, is_new);
        size += bytes.len() as u64;
        std::fs::write(folder.join(side), bytes).unwrap();
    }
    let steps = child_of("check_names", "PPROFDIFF_NAMES", &folder, None, false);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(steps.len(), 2, "{steps:?}");
    for (step, peak, polls) in steps {
        println!("{:.1} MB; {step}: {} MB, {polls} checkpoints", size as f64 / MB as f64, peak / MB);
        assert!(polls.parse::<u64>().unwrap() <= POLLS_OF_NAMES, "{step}: {polls} checkpoints");
        let limit = TIMES_OF_NAMES * size + FLOOR;
        assert!(peak <= limit, "{step}: {} MB, and at most {} MB", peak / MB, limit / MB);
    }
}
