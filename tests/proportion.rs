//! Memory in proportion: crafted inputs that stand for much more than their size, each loaded and looked at in every
//! way by a child process, whose peak is measured. Linux tells the peak of a process, so it is tested there.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::slice::from_ref;
use std::sync::Arc;

use pprofdiff::check::Rules;
use pprofdiff::delta::{DeltaOptions, delta};
use pprofdiff::explain::ExplainOptions;
use pprofdiff::flame::FlameOptions;
use pprofdiff::graph::GraphOptions;
use pprofdiff::proto::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};
use pprofdiff::{Diff, Granularity, LoadOptions, Query, Sort, WriteOptions};
use pprofdiff_report::{
    self as report, Ask, CsvOptions, Format, Kind, PageOptions, Request, Style, Table, TextOptions, dot, listing_json,
    listing_text, svg,
};
use prost::Message;

/// What every process may take beside the multiple of its input.
const MB: u64 = 1 << 20;
const FLOOR: u64 = 64 * MB;

/// The most that any view may take, as a multiple of the inflated size.
const TIMES: u64 = 4;

/// A crafted profile: name, message that is so many times as large as the name says, what its error says (empty if it
/// loads).
type Case = (&'static str, fn(u64) -> Vec<u8>, &'static str);

/// Is only loaded and made a table of: writing it in all formats takes minutes in a test's build.
const LARGE: &str = "a string table of 1 GB";

const CASES: &[Case] = &[
    ("ten million empty strings", empty_strings, ""),
    (LARGE, large_strings, ""),
    ("a sample of ten million frames", deep_stack, ""),
    ("recursion a million deep", recursion, ""),
    ("40,000 distinct stacks of 300 frames", many_stacks, ""),
    ("a hundred functions that share a name of a megabyte", shared_name, ""),
    ("a hundred addresses in a binary with a path of a megabyte", shared_path, ""),
    ("deep inlining within bounds", inlining_allowed, ""),
    ("deep inlining, 20,000 samples through 20,000 lines", inlining_refused, "of many lines"),
    ("stacks of many short inlined lines", short_inlining, "of many lines"),
    ("ids near 2^64", huge_ids, ""),
    ("a million labels on one sample", labels, ""),
    ("a label of its own on each of 200,000 samples", label_each, ""),
    ("ten thousand labels whose key is a megabyte", long_keys, ""),
    ("a string whose number is 2^31", string_number, "string 2147483648"),
];

fn base(functions: u64) -> Profile {
    Profile {
        string_table: vec![Vec::new(), b"cpu".to_vec(), b"count".to_vec(), b"f".to_vec()],
        sample_type: vec![ValueType { r#type: 1, unit: 2 }],
        function: (1..=functions).map(|id| Function { id, name: 3, ..Default::default() }).collect(),
        location: (1..=functions).map(|id| location(id, &[id])).collect(),
        ..Default::default()
    }
}

fn location(id: u64, functions: &[u64]) -> Location {
    let line = functions.iter().map(|&function_id| Line { function_id, line: id as i64, column: 0 }).collect();
    Location { id, line, ..Default::default() }
}

fn sample(locations: Vec<u64>) -> Sample {
    Sample { location_id: locations, value: vec![1], label: vec![] }
}

fn empty_strings(times: u64) -> Vec<u8> {
    let mut bytes = Profile { sample: vec![sample(vec![1])], ..base(1) }.encode_to_vec();
    // Field 6, no bytes.
    bytes.extend([6 << 3 | 2, 0].repeat(times as usize * 10_000_000));
    bytes
}

fn deep_stack(times: u64) -> Vec<u8> {
    let frames = (0..times * 10_000_000).map(|i| 1 + i % 100).collect();
    Profile { sample: vec![sample(frames)], ..base(100) }.encode_to_vec()
}

fn many_stacks(times: u64) -> Vec<u8> {
    let mut random = 1u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        1 + (random >> 33) % 300
    };
    let sample = |_| sample((0..300).map(|_| next()).collect());
    Profile { sample: (0..times * 40_000).map(sample).collect(), ..base(300) }.encode_to_vec()
}

fn recursion(times: u64) -> Vec<u8> {
    let deep = times as usize * 1_000_000;
    Profile { sample: vec![sample(vec![1; deep]), sample(vec![1; deep - 1])], ..base(1) }.encode_to_vec()
}

fn large_strings(_: u64) -> Vec<u8> {
    let mut p = base(16);
    p.string_table.extend((0..16).map(|i| vec![b'a' + i; 64 << 20]));
    p.function.iter_mut().for_each(|f| f.name = 3 + f.id as i64);
    p.sample = (1..=16).map(|l| sample(vec![l])).collect();
    p.encode_to_vec()
}

/// Functions, each in a file of its own, with the name of all.
fn shared_name(times: u64) -> Vec<u8> {
    let mut p = base(times * 100);
    p.string_table[3] = vec![b'x'; 1 << 20];
    for (i, f) in p.function.iter_mut().enumerate() {
        p.string_table.push(format!("{i}.go").into_bytes());
        f.filename = 4 + i as i64;
    }
    p.sample = (1..=times * 100).map(|l| sample(vec![l, times * 100 + 1 - l])).collect();
    p.encode_to_vec()
}

/// Locations without functions, each at an address of its own, in a binary whose path is long.
fn shared_path(times: u64) -> Vec<u8> {
    let mut p = base(times * 100);
    p.string_table[3] = vec![b'x'; 1 << 20];
    p.mapping = vec![Mapping { id: 1, filename: 3, memory_limit: 1 << 40, ..Default::default() }];
    for l in &mut p.location {
        (l.mapping_id, l.address, l.line) = (1, l.id, vec![]);
    }
    p.sample = (1..=times * 100).map(|l| sample(vec![l, times * 100 + 1 - l])).collect();
    p.encode_to_vec()
}

/// A tree of 30 lines of one function each, one byte a location: 30 frames a byte.
fn short_inlining(times: u64) -> Vec<u8> {
    let mut p = base(30);
    p.location = (1..=100).map(|id| location(id, &(1..=30).collect::<Vec<_>>())).collect();
    p.sample = (0..times * 2000).map(|i| sample((0..1000).map(|j| 1 + (i * j) % 100).collect())).collect();
    p.encode_to_vec()
}

fn inlining(samples: u64, lines: u64) -> Vec<u8> {
    let mut p = base(samples);
    p.location.push(location(samples + 1, &vec![1; lines as usize]));
    p.sample = (1..=samples).map(|l| sample(vec![l, samples + 1])).collect();
    p.encode_to_vec()
}

fn inlining_allowed(_: u64) -> Vec<u8> {
    inlining(200, 20_000)
}

fn inlining_refused(times: u64) -> Vec<u8> {
    inlining(times * 20_000, 20_000)
}

fn huge_ids(times: u64) -> Vec<u8> {
    let mut p = base(times * 200_000);
    let huge = |id: u64| u64::MAX - id * 7919;
    p.function.iter_mut().for_each(|f| f.id = huge(f.id));
    for l in &mut p.location {
        (l.id, l.line[0].function_id, l.line[0].line) = (huge(l.id), huge(l.line[0].function_id), l.id as i64);
    }
    p.sample = (1..=times * 200_000).map(|l| sample(vec![huge(l)])).collect();
    p.encode_to_vec()
}

fn labels(times: u64) -> Vec<u8> {
    let label = (1..=times as i64 * 1_000_000).map(|num| Label { key: 3, num, ..Default::default() }).collect();
    Profile { sample: vec![Sample { label, ..sample(vec![1]) }], ..base(1) }.encode_to_vec()
}

fn label_each(times: u64) -> Vec<u8> {
    let label = |num: i64| Label { key: 3, num, ..Default::default() };
    let samples = (1..=times as i64 * 200_000).map(|i| Sample { label: vec![label(i)], ..sample(vec![1]) });
    Profile { sample: samples.collect(), ..base(1) }.encode_to_vec()
}

fn long_keys(times: u64) -> Vec<u8> {
    let mut p = base(1);
    p.string_table.push(vec![b'k'; 1 << 20]);
    let label = |num: i64| Label { key: 4, num, ..Default::default() };
    p.sample = (1..=times as i64 * 10_000).map(|i| Sample { label: vec![label(i)], ..sample(vec![1]) }).collect();
    p.encode_to_vec()
}

fn string_number(_: u64) -> Vec<u8> {
    let mut p = base(1);
    p.function[0].name = 1 << 31;
    p.encode_to_vec()
}

/// The peak of this process in bytes, so far.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// The child: loads what it is told to and looks at it in every way.
#[test]
fn look_at_everything() {
    let Some(path) = std::env::var_os("PPROFDIFF_PROPORTION") else { return };
    let limit = std::env::var("PPROFDIFF_LIMIT").ok().and_then(|l| l.parse().ok());
    let mut options = LoadOptions::default();
    options.inflated_limit = limit.unwrap_or(options.inflated_limit);
    let profile = match pprofdiff::Profile::open(path, &options) {
        Ok(profile) => Arc::new(profile),
        Err(e) => return println!("\npeak error {} {e}", peak()),
    };
    let tell = |what: &str| println!("\npeak {what} {}", peak());
    tell("load");
    let diff = Diff::of_profile(&profile).unwrap();
    let query = Query::default().with_granularity(Granularity::Addresses);
    let sink = &mut std::io::sink();
    let view = diff.measure(&query).unwrap();
    if std::env::var_os("PPROFDIFF_BRIEF").is_some() {
        Table::top(&view.top(Sort::Flat), usize::MAX);
        return tell("check");
    }
    // Every format writes row by row; of text, whose columns are as wide as the widest row, all is made twice.
    let all_formats = |table: &Table, sink: &mut dyn Write| {
        table.write_csv(sink, CsvOptions::default()).unwrap();
        table.write_json(sink).unwrap();
        table.write_markdown(sink).unwrap();
        table.write_text(sink, TextOptions::default()).unwrap();
        table.to_html(20);
    };
    all_formats(&Table::top(&view.top(Sort::Flat), usize::MAX), sink);
    tell("top");
    all_formats(&Table::edges(&view.edges(None, Sort::Cum).unwrap(), Kind::Tree), sink);
    all_formats(&Table::edges(&view.edges(Some("x"), Sort::Cum).unwrap(), Kind::Peek), sink);
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
    // With a node for each way there are as many as frames in all stacks, up to a bound.
    match view.graph(&GraphOptions::default().with_call_tree(true)) {
        Ok(tree) => dot(&tree, sink).unwrap(),
        Err(e) => assert!(e.to_string().contains("ways to frames"), "{e}"),
    }
    tell("call-tree");
    drop(view);
    let raw = Request::default().asking(Ask::Raw).answer(&diff).unwrap();
    (Format::named("text").unwrap().write)(&raw, sink, Style::default()).unwrap();
    drop(raw);
    tell("raw");
    report::page(&diff, &query, &PageOptions::default(), None).unwrap();
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
    both.explain(&Query::default(), &[], &ExplainOptions::default()).unwrap();
    tell("explain");
    let mut rules = Rules::default();
    rules.fail_on("cum:any>+5%").unwrap();
    rules.fail_on("flat:regex=x>+5%").unwrap();
    rules.check(&both, &Query::default()).unwrap();
    tell("check");
}

/// The child of [`causes_take_memory_and_work_in_proportion`]: the profiles of a folder whose names begin with `base` are
/// runs of one side, the others of the other.
#[test]
fn look_for_causes() {
    let Some(folder) = std::env::var_os("PPROFDIFF_CAUSES") else { return };
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let open = |path: &PathBuf| Arc::new(pprofdiff::Profile::open(path, &LoadOptions::default()).unwrap());
    let is_base = |path: &&PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("base");
    let base: Vec<_> = paths.iter().filter(is_base).map(open).collect();
    let new: Vec<_> = paths.iter().filter(|path| !is_base(path)).map(open).collect();
    let diff = Diff::new(&base, &new).unwrap();
    let query = Query::default();
    let tell = |what: &str, of: &str| println!("\npeak {what} {} {of}", peak());
    tell("load", "");
    let view = diff.measure(&query).unwrap();
    Table::labels(&view.labels());
    tell("labels", "");
    Table::stacks(&view.stacks(true), 20);
    tell("stacks-by-labels", "");
    drop(view);
    let e = diff.explain(&query, &[], &ExplainOptions::default()).unwrap();
    tell("explain", &format!("{} {}", e.work, e.left_out.join("; ")));
    let mut rules = Rules::default();
    rules.fail_on("cum:any>+5%").unwrap();
    rules.how.explain = true;
    rules.check(&diff, &query).unwrap();
    tell("check", "");
    report::page(&diff, &query, &PageOptions::default(), None).unwrap();
    tell("page", "");
}

/// What a child said: steps with the peak after each. What one step has freed does not count for the next: glibc gives
/// back large blocks at once as long as nothing moves its thresholds, which it would do itself otherwise.
fn child(input: &Path, limit: Option<u64>, brief: bool) -> Vec<(String, u64, String)> {
    child_of("look_at_everything", "PPROFDIFF_PROPORTION", input, limit, brief)
}

fn child_of(test: &str, name: &str, input: &Path, limit: Option<u64>, brief: bool) -> Vec<(String, u64, String)> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(name, input);
    command.env("MALLOC_MMAP_THRESHOLD_", "131072").env("MALLOC_TRIM_THRESHOLD_", "131072");
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

/// With `PPROFDIFF_TIMES` in the environment the inputs are so many times as large (but for those that are at a bound), and
/// what they take is only told.
#[test]
fn crafted_inputs_take_memory_in_proportion() {
    let times = std::env::var("PPROFDIFF_TIMES").map_or(1, |t| t.parse().unwrap());
    let mut beyond = Vec::new();
    for (i, (name, message, error)) in CASES.iter().enumerate() {
        let path = temporary(&format!("{i}.pb"));
        let bytes = message(times);
        let size = bytes.len() as u64;
        std::fs::write(&path, bytes).unwrap();
        let began = std::time::Instant::now();
        let steps = child(&path, None, *name == LARGE);
        std::fs::remove_file(&path).unwrap();
        let shown: Vec<String> = steps.iter().map(|(what, peak, _)| format!("{what} {}", peak / MB)).collect();
        let (last, peak, said) = steps.last().unwrap();
        println!(
            "{name}: {:.1} MB; peak in MB after {}; {:.1} times the size; {:?}",
            size as f64 / MB as f64,
            shown.join(", "),
            (*peak as f64 - FLOOR as f64).max(0.0) / size as f64,
            began.elapsed()
        );
        let expected = if error.is_empty() { "check" } else { "error" };
        assert!(last == expected && said.contains(error), "{name}: {last} {said}");
        if times == 1 && *peak > TIMES * size + FLOOR {
            beyond.push(format!("{name}: {} MB, of {} MB and {TIMES} times {} MB", peak / MB, FLOOR / MB, size / MB));
        }
    }
    assert!(beyond.is_empty(), "{beyond:#?}");
}

/// Stacks of functions, with keys of labels.
struct Stacks {
    stacks: u64,
    depth: u64,
    /// Of how many functions; each stack has its own if there are as many.
    functions: u64,
    keys: u64,
    /// How many values each key has.
    values: u64,
    sample_types: usize,
    /// Runs of each side, all with other functions.
    runs: u64,
}

const STACKS: Stacks =
    Stacks { stacks: 100, depth: 100, functions: 10_000, keys: 0, values: 2, sample_types: 1, runs: 1 };

impl Stacks {
    /// The stacks of a run of a side; on the new side some functions cost more, by a value of a label as well.
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
        let own = self.functions == self.stacks * self.depth;
        let one = |s: u64| {
            let frame = |d: u64| if own { s * self.depth + d } else { mix(s << 16 | d) % self.functions };
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

/// The most steps that causes may take, and more for each byte: a little beyond the engine's own bound, where it stops trying.
const WORK: u64 = 3 << 25;
const WORK_OF_BYTE: u64 = 96;

/// Labels by functions by stacks, by runs, by sample types: each alone is in the file, and their product is what a search
/// for causes would look at.
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
        let steps = child_of("look_for_causes", "PPROFDIFF_CAUSES", &folder, None, false);
        std::fs::remove_dir_all(&folder).unwrap();
        let shown: Vec<String> = steps.iter().map(|(what, peak, _)| format!("{what} {}", peak / MB)).collect();
        let (_, peak, _) = steps.last().unwrap();
        let (_, _, said) = steps.iter().find(|(what, ..)| what == "explain").unwrap();
        let (work, left_out) = said.split_once(' ').unwrap_or((said, ""));
        println!("{name}: {:.1} MB; peak in MB after {}; work {said}", size as f64 / MB as f64, shown.join(", "));
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

/// Text becomes a profile first, whose records are larger than what the shortest names and lines take.
#[test]
fn folded_stacks_take_memory_in_proportion() {
    let usual = |i: u32| format!("main.main;net/http.(*Server).Serve;handler{};json.Marshal{} 10\n", i % 100, i % 1000);
    let texts: [(&str, String, u64); 4] = [
        ("real stacks", (0..200_000).map(usual).collect(), 3),
        ("the shortest lines", "a 1\n".repeat(2_000_000), 20),
        ("a stack of four million frames", "a;".repeat(4_000_000) + "b 1\n", 20),
        ("names that occur once", (0..600_000).map(|i| format!("{i:x};")).collect::<String>() + "b 1\n", 40),
    ];
    for (name, text, times) in texts {
        let path = temporary("stacks.folded");
        std::fs::write(&path, format!("# pprofdiff-folded samples/count value\n{text}")).unwrap();
        let steps = child(&path, None, true);
        std::fs::remove_file(&path).unwrap();
        let (what, peak, said) = &steps[0];
        assert_eq!(what, "load", "{name}: {said}");
        let size = text.len() as u64;
        println!("{name}: {:.1} MB, peak {} MB", size as f64 / MB as f64, peak / MB);
        assert!(*peak < times * size + FLOOR, "{name}: {} MB, of {times} times {} MB", peak / MB, size / MB);
    }
}

/// Of formats that are read into other records, the shortest that each record may be.
#[test]
fn other_formats_take_memory_in_proportion() {
    let word = |w: u64| w.to_le_bytes();
    let cpu = |samples: u64| -> Vec<u8> {
        let head = [0, 3, 0, 1, 0].into_iter();
        head.chain((0..samples).flat_map(|i| [1, 1, i + 1])).flat_map(word).collect()
    };
    let deep = |frames: u64| -> Vec<u8> {
        let head = [0, 3, 0, 1, 0, 1, frames].into_iter();
        head.chain((0..frames).map(|i| i * 64 + 1)).flat_map(word).collect()
    };
    let heap = "heap profile: 1: 1 [1: 1] @ heap_v2/1\n";
    let lines = |head: &str, line: fn(u64) -> String, n: u64| -> Vec<u8> {
        head.bytes().chain((0..n).flat_map(|i| line(i).into_bytes())).collect()
    };
    let inputs: [(&str, Vec<u8>, u64); 9] = [
        ("gperftools CPU, stacks of a frame each", cpu(500_000), 4),
        ("gperftools CPU, a stack of a million frames", deep(1_000_000), 8),
        (
            "heap, real lines",
            lines(
                heap,
                |i| {
                    format!(
                        "1: {} [1: 64] @ 0x{:x} 0x4012{:02x} 0x403344 0x408a19 0x40a100\n",
                        i % 50 + 1,
                        0x40_0000 + i % 5000,
                        i % 100
                    )
                },
                100_000,
            ),
            4,
        ),
        ("heap, the shortest lines", lines(heap, |i| format!("1: 1[1: 1] @0x{i:x}\n"), 500_000), 4),
        ("counts, the shortest lines", lines("a profile: total 1\n", |i| format!("1 @ 0x{i:x}\n"), 500_000), 4),
        (
            "mappings",
            lines(
                "a profile: total 1\n1 @ 0x5\n--- Memory map: ---\n",
                |i| format!("{:x}-{:x} /bin/program{i}\n", 2 * i, 2 * i + 1),
                300_000,
            ),
            4,
        ),
        (
            "py-spy, real lines",
            lines(
                "",
                |i| format!("<module> (app.py:10);main (app.py:99);parse (parse.py:{});read (io.py:7) 3\n", i % 300),
                100_000,
            ),
            4,
        ),
        ("py-spy, the shortest lines", lines("", |i| format!("a (b:{})\u{20}1\n", i % 1000 + 1), 500_000), 4),
        (
            "Austin, real lines",
            lines(
                "# austin: 3.7.0\n# mode: wall\n",
                |i| {
                    format!(
                        "P21;T0:22;/srv/app.py:<module>:10;/srv/app.py:main:{};/srv/io.py:read:7 1000{}\n",
                        i % 300,
                        i % 10
                    )
                },
                100_000,
            ),
            4,
        ),
    ];
    for (name, bytes, times) in inputs {
        let path = temporary("other.txt");
        std::fs::write(&path, &bytes).unwrap();
        let steps = child(&path, None, true);
        std::fs::remove_file(&path).unwrap();
        let (what, peak, said) = &steps[0];
        assert_eq!(what, "load", "{name}: {said}");
        let size = bytes.len() as u64;
        println!("{name}: {:.1} MB, peak {} MB", size as f64 / MB as f64, peak / MB);
        assert!(*peak < times * size + FLOOR, "{name}: {} MB, of {times} times {} MB", peak / MB, size / MB);
    }
}

/// What other tools save, as it is and as dense as it can be: name, text, how many times its size that may take beside the
/// floor, and what the error says (empty if it loads). Most is beyond four times only where two bytes of text are a call of
/// its own.
#[test]
fn files_of_other_tools_take_memory_in_proportion() {
    let node = |i: u32, size: u32| {
        let at = format!("\"url\":\"file:///srv/app/{}.js\",\"lineNumber\":{},\"columnNumber\":9", i % 50, i % 997);
        format!(
            "{{\"id\":{i},\"callFrame\":{{\"functionName\":\"f{}\",\"scriptId\":\"7\",{at}}},\"selfSize\":{size}",
            i % 999
        )
    };
    let short = |i: u32| format!("{{\"id\":{i},\"callFrame\":{{\"functionName\":\"\"}}");
    let cpu = |nodes: String, samples: String, deltas: String| {
        format!("{{\"nodes\":[{nodes}],\"samples\":[{samples}],\"timeDeltas\":[{deltas}]}}")
    };
    let list = |n: u32, one: &dyn Fn(u32) -> String| (1..=n).map(one).collect::<Vec<_>>().join(",");
    // Each node has the one before as its parent.
    let chain = |n: u32| {
        cpu(
            list(n, &|i| short(i) + &format!(",\"parent\":{}}}", i - 1)).replacen(",\"parent\":0", "", 1),
            list(n, &|i| i.to_string()),
            list(n, &|_| "1".into()),
        )
    };
    let ones = |n: usize| "1,".repeat(n) + "1";
    let heap = |n: usize, open: &str| {
        format!("{{\"head\":{{{}{}{}}}", open.repeat(n), short(1).split_at(1).1.to_owned() + "}", "]}".repeat(n))
    };
    let scope = |profile: String| {
        let frames = "{\"name\":\"a\"},{\"name\":\"b\"}";
        format!("{{\"shared\":{{\"frames\":[{frames}]}},\"profiles\":[{profile}]}}")
    };
    let sampled = |samples: String, weights: String| {
        scope(format!("{{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[{samples}],\"weights\":[{weights}]}}"))
    };
    let perf = |i: u32| {
        format!(
            "web {}/{} 9.1: 250000 cycles:u: \n\t 7f0000{:06x} f{}+0x1 (/usr/lib/a.so)\n\t 12a7 main+0x8 (/srv/web)\n\n",
            i % 9,
            i % 99,
            i,
            i % 999
        )
    };
    let bits = |i: u32| (0..20).map(|bit| if i >> bit & 1 == 1 { "1," } else { "0," }).collect::<String>();
    let texts: Vec<(&str, String, u64, &str)> = vec![
        (
            "cpuprofile: usual",
            cpu(
                list(20_000, &|i| node(i, 0) + "}"),
                list(200_000, &|i| (1 + i % 20_000).to_string()),
                list(200_000, &|i| (100 + i % 9).to_string()),
            ),
            3,
            "",
        ),
        ("cpuprofile: the shortest samples", cpu(short(1) + "}", ones(4_000_000), ones(4_000_000)), 2, ""),
        ("cpuprofile: samples out of order", cpu(short(1) + "}", ones(4_000_000), ones(3_999_999) + ",-1"), 4, ""),
        (
            "cpuprofile: the shortest nodes",
            cpu(list(300_000, &|i| short(i) + "}"), list(300_000, &|i| i.to_string()), ones(299_999)),
            6,
            "",
        ),
        ("cpuprofile: a chain of calls, at the bound", chain(2_800), 4, ""),
        ("cpuprofile: a chain of calls, beyond it", chain(100_000), 4, "altogether"),
        (
            "heapprofile: usual",
            format!(
                "{{\"head\":{},\"children\":[{}]}}}}",
                node(1, 0),
                list(60_000, &|i| node(i, i) + ",\"children\":[]}")
            ),
            3,
            "",
        ),
        (
            "heapprofile: a million levels",
            heap(1_000_000, "\"selfSize\":0,\"callFrame\":{\"functionName\":\"\"},\"children\":[{"),
            4,
            "",
        ),
        ("speedscope: the shortest samples", sampled("[0],".repeat(2_000_000) + "[]", ones(2_000_000)), 3, ""),
        (
            "speedscope: a stack of four million frames",
            sampled("[".to_owned() + &"0,1,".repeat(2_000_000) + "0]", "1".into()),
            40,
            "",
        ),
        (
            "speedscope: stacks that occur once",
            sampled(list(200_000, &|i| format!("[{}0]", bits(i))), ones(199_999)),
            8,
            "",
        ),
        (
            "speedscope: events",
            scope(format!(
                "{{\"type\":\"evented\",\"unit\":\"none\",\"events\":[{}]}}",
                list(400_000, &|i| {
                    let (kind, frame) = if i % 2 == 1 { ("O", i / 2 % 2) } else { ("C", (i - 1) / 2 % 2) };
                    format!("{{\"type\":\"{kind}\",\"frame\":{frame},\"at\":{i}}}")
                })
            )),
            3,
            "",
        ),
        ("perf script: usual", (0..100_000).map(perf).collect(), 3, ""),
        ("perf script: the shortest samples", "a 1 c:\n\t1 a\n".repeat(800_000), 3, ""),
        (
            "perf script: symbols that occur once",
            (0..300_000).map(|i| format!("a 1 c:\n\t1 {i:x}\n")).collect(),
            30,
            "",
        ),
        ("perf script: threads that occur once", (0..300_000).map(|i| format!("a {i} c:\n\t1 a\n")).collect(), 20, ""),
        (
            "perf script: events that occur once",
            (0..20_000).map(|i| format!("a 1 e{i:x}:\n\t1 a\n")).collect(),
            4,
            "altogether",
        ),
        (
            "jemalloc: the shortest stacks",
            "heap_v2/1\n".to_owned() + &"@ 0x1\nt*: 1: 1 [0: 0]\n".repeat(300_000),
            6,
            "",
        ),
        (
            "jemalloc: addresses that occur once",
            "heap_v2/1\n@".to_owned()
                + &(1..600_000).map(|i| format!(" 0x{i:x}")).collect::<String>()
                + "\nt*: 1: 1 [0: 0]\n",
            40,
            "",
        ),
    ];
    let mut beyond = Vec::new();
    for (name, text, times, error) in texts {
        let path = temporary("other-tool");
        std::fs::write(&path, &text).unwrap();
        let steps = child(&path, None, true);
        std::fs::remove_file(&path).unwrap();
        let (what, peak, said) = &steps[0];
        let expected = if error.is_empty() { "load" } else { "error" };
        assert!(what == expected && said.contains(error), "{name}: {what} {said}");
        let size = text.len() as u64;
        let taken = (*peak as f64 - FLOOR as f64).max(0.0) / size as f64;
        println!("{name}: {:.1} MB, peak {} MB, {taken:.1} times beside the floor", size as f64 / MB as f64, peak / MB);
        if *peak >= times * size + FLOOR {
            beyond.push(format!("{name}: {} MB, of {times} times {} MB", peak / MB, size / MB));
        }
    }
    assert!(beyond.is_empty(), "{beyond:#?}");
}

/// The message has a table of stacks, and `profile.proto` has none: what is made of it is as large as the stacks that
/// each sample has, which is no multiple of the message, so that this is what a limit is for
/// (`what_is_made_is_limited`, beside the reader).
#[test]
fn otlp_messages_take_memory_in_proportion() {
    let field = |field: u8, content: &[u8]| {
        let mut out = Vec::new();
        prost::encoding::encode_key(field.into(), prost::encoding::WireType::LengthDelimited, &mut out);
        prost::encoding::encode_varint(content.len() as u64, &mut out);
        out.extend_from_slice(content);
        out
    };
    let numbers = |numbers: &[u64]| {
        let mut out = Vec::new();
        numbers.iter().for_each(|&v| prost::encoding::encode_varint(v, &mut out));
        out
    };
    // A profile of cpu in strings 1 and 2, its samples, and the other records of the dictionary.
    let message = |samples: Vec<u8>, dictionary: Vec<u8>| {
        let profile = [field(1, &[0x08, 1, 0x10, 2]), samples].concat();
        let strings = [field(5, b""), field(5, b"cpu"), field(5, b"count")].concat();
        let dictionary = field(2, &[strings, dictionary].concat());
        [field(1, &field(2, &field(2, &profile))), dictionary].concat()
    };
    let sample = |stack: u64, attributes: &[u64]| {
        let stack = if stack == 0 { vec![] } else { [vec![0x08], numbers(&[stack])].concat() };
        let attributes = if attributes.is_empty() { vec![] } else { field(2, &numbers(attributes)) };
        field(2, &[stack, attributes, field(4, &[1])].concat())
    };
    // Ten frames of 2,000, in stacks that three samples share; an attribute says of which thread each is.
    let usual = || {
        let names = (0..2000).flat_map(|i| field(5, format!("net/http.(*Server).handler{i}").as_bytes()));
        let functions = (0..2000).flat_map(|i| field(3, &[vec![0x08], numbers(&[i + 3])].concat()));
        let line = |i: u64| field(3, &[vec![0x08], numbers(&[i]), vec![0x10], numbers(&[i])].concat());
        let locations = (0..2000).flat_map(|i| field(2, &[vec![0x10], numbers(&[4096 + i]), line(i)].concat()));
        let stack = |i: u64| (0..10).map(|d| (i * 7 + d * d * i) % 2000).collect::<Vec<_>>();
        let stacks = (0..600_000).flat_map(|i| field(7, &field(1, &numbers(&stack(i)))));
        let named = |i: u8| field(2, &field(1, format!("thread {i}").as_bytes()));
        let attributes = (0..100).flat_map(|i| field(6, &[vec![0x08, 1], named(i)].concat()));
        let samples = (0..1_800_000).flat_map(|i| sample(i % 600_000, &[i % 100]));
        let tables = names.chain(functions).chain(locations).chain(stacks).chain(attributes).collect();
        message(samples.collect(), tables)
    };
    let many_profiles = || {
        let of_one = field(2, &field(1, &[0x08, 1, 0x10, 2]));
        [message(vec![], vec![]), field(1, &field(2, &of_one.repeat(4_000_000)))].concat()
    };
    let cases: [(&str, Vec<u8>, u64); 7] = [
        ("real stacks", usual(), 4),
        ("the shortest samples", message(sample(0, &[]).repeat(8_000_000), vec![]), 4),
        (
            "a stack of its own for each",
            message((0..4_000_000).flat_map(|i| sample(i, &[])).collect(), field(7, b"").repeat(4_000_000)),
            5,
        ),
        ("the shortest attributes", message(sample(0, &[]), field(6, b"").repeat(20_000_000)), 4),
        ("the shortest strings", message(sample(0, &[]), field(5, b"").repeat(20_000_000)), 4),
        (
            "the shortest locations, all in a stack",
            message(
                sample(1, &[]),
                [
                    field(2, b"").repeat(6_000_000),
                    field(7, b""),
                    field(7, &field(1, &numbers(&(0..6_000_000).collect::<Vec<_>>()))),
                ]
                .concat(),
            ),
            6,
        ),
        ("profiles without samples", many_profiles(), 5),
    ];
    let mut beyond = Vec::new();
    for (name, data, times) in cases {
        let path = temporary("message.otlp");
        std::fs::write(&path, &data).unwrap();
        let steps = child(&path, None, true);
        std::fs::remove_file(&path).unwrap();
        let (what, peak, said) = &steps[0];
        let size = data.len() as u64;
        println!(
            "{name}: {what} {said} {:.1} MB, peak {} MB, {:.1} times",
            size as f64 / MB as f64,
            peak / MB,
            *peak as f64 / size as f64
        );
        if what != "load" || *peak >= times * size + FLOOR {
            beyond.push(format!("{name}: {what} {said} {} MB, of {times} times {} MB", peak / MB, size / MB));
        }
    }
    assert!(beyond.is_empty(), "{beyond:#?}");
}

#[test]
fn bombs_end_at_the_limit() {
    let zeros = vec![0; 64 * MB as usize];
    let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    member.write_all(&zeros).unwrap();
    // 10 GB in 10 MB.
    let gzip = member.finish().unwrap().repeat(160);
    let zstd = zstd::encode_all(&zeros[..], 3).unwrap().repeat(160);
    for (name, bytes) in [("bomb.gz", gzip), ("bomb.zst", zstd)] {
        let path = temporary(name);
        std::fs::write(&path, &bytes).unwrap();
        let limit = 100 * MB;
        let steps = child(&path, Some(limit), false);
        std::fs::remove_file(&path).unwrap();
        let (what, peak, said) = steps.last().unwrap();
        assert!(what == "error" && said.contains("more than the limit"), "{name}: {what} {said}");
        println!("{name}: {} kB, limit 100 MB, peak {} MB", bytes.len() / 1024, peak / MB);
        assert!(*peak < 2 * limit + FLOOR, "{name}: {} MB", peak / MB);
    }
}
