//! Tests of the formats before `profile.proto`. `go tool pprof -proto`, run live, gives the expected content of real
//! files and of generated files in every form.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use pprofdiff::samples::{Label, LabelValue};
use pprofdiff::{Diff, LoadOptions, Profile, Query};

use crate::generated_series::Random;
use crate::{golibrary, oracle};

/// A frame list (address, mapping, lines) with a label, and the sums of its values.
type Stacks = BTreeMap<String, Vec<i64>>;

/// Returns the content on which pprof and pprofdiff must agree. pprof names unnamed mappings by the path `source`.
fn content(p: &Profile, source: &str) -> (String, Stacks) {
    let text = |id| p.text(id);
    let frame = |l: u32| {
        let (locations, i) = (p.locations(), l as usize);
        let mapping = p.mappings().get(locations.mapping[i] as usize).map(|m| {
            let file = text(m.file).replace(source, "");
            format!("{:x}-{:x}+{:x} {file} {}", m.start, m.limit, m.offset, text(m.build_id))
        });
        let lines = locations.first_line[i] as usize..locations.first_line[i + 1] as usize;
        let line = |n: usize| {
            let f = locations.line_function[n] as usize;
            format!("{}@{}:{}", text(p.functions().name[f]), text(p.functions().file[f]), locations.line_number[n])
        };
        // pprof ignores names and labels in comments. Only Java formats have names for pprof, and those have no
        // addresses.
        let lines = lines.filter(|_| locations.address[i] == 0).map(line).collect::<Vec<_>>().join(",");
        format!("{:x} {mapping:?} {lines}", locations.address[i])
    };
    let label = |l: Label| match l.value {
        LabelValue::Number(v, unit) => Some(format!("{}={v}{}", text(l.key), text(unit))),
        LabelValue::Text(_) => None,
    };
    let mut stacks = Stacks::new();
    for sample in p.samples() {
        let mut frames = Vec::new();
        sample.for_each_location(|l| frames.push(frame(l)));
        let labels: Vec<String> = sample.labels().filter_map(label).collect();
        let sums = stacks.entry(format!("{} [{}]", frames.join(" < "), labels.join(" "))).or_default();
        sums.resize(p.sample_types().len(), 0);
        sums.iter_mut().enumerate().for_each(|(i, sum)| *sum += sample.value(i));
    }
    stacks.retain(|_, sums| sums.iter().any(|&v| v != 0));
    let header = p.header();
    let period = header.period_type.map(|t| (text(t.kind), text(t.unit)));
    let (drop, keep) = (text(header.drop_frames), text(header.keep_frames));
    let head = format!("{:?} {period:?} {} {}\n{drop}\n{keep}", p.sample_types(), header.period, header.duration_nanos);
    (head, stacks)
}

/// Converts a file with pprof.
fn convert_with_pprof(path: &Path, folder: &Path) -> Profile {
    let out = folder.join("judged.pb.gz");
    let output = Command::new(golibrary::tool_pprof())
        .args(["-proto", "-symbolize=none", "-output"])
        .args([&out, path])
        .env("PPROF_TMPDIR", folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
    pprofdiff::open(&out, &LoadOptions::default()).unwrap()
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Fails with the first few differences.
fn assert_same(name: &str, ours: &(String, Stacks), judge: &(String, Stacks)) {
    assert_eq!(ours.0, judge.0, "{name}");
    let other: Vec<_> = ours.1.iter().filter(|(k, v)| judge.1.get(*k) != Some(v)).take(3).collect();
    let missing: Vec<_> = judge.1.iter().filter(|(k, v)| ours.1.get(*k) != Some(v)).take(3).collect();
    assert!(other.is_empty() && missing.is_empty(), "{name}\nours: {other:#?}\npprof's: {missing:#?}");
}

#[test]
fn real_files_have_the_same_values_as_in_pprof() {
    let folder = folder("legacy-real");
    let mut n = 0;
    for entry in std::fs::read_dir(oracle::corpus().join("legacy")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        let ours = content(&pprofdiff::open(&path, &LoadOptions::default()).unwrap(), &name);
        assert!(ours.1.len() > 1, "{name} has {} stacks", ours.1.len());
        assert_same(&name, &ours, &content(&convert_with_pprof(&path, &folder), &name));
        n += 1;
    }
    assert!(n >= 5, "{n}");
}

/// Sums the first type by label texts and frame names from the root, without the runtime's frames at the leaf.
fn sums_by_name(p: &Profile) -> BTreeMap<(Vec<String>, Vec<String>), i64> {
    let name = |l: u32| {
        let lines = p.locations().lines(l);
        let text_of = |n: u32| {
            let f = p.locations().line_function[n as usize] as usize;
            let (name, file) = (p.text(p.functions().name[f]), p.text(p.functions().file[f]));
            format!("{name} {file}:{}", p.locations().line_number[n as usize])
        };
        lines.rev().map(text_of).collect::<Vec<_>>()
    };
    let mut sums = BTreeMap::new();
    for sample in p.samples() {
        let mut locations = Vec::new();
        sample.for_each_location(|l| locations.push(l));
        let mut frames: Vec<String> = locations.iter().rev().flat_map(|&l| name(l)).collect();
        // Go's message omits this frame.
        frames.retain(|f| f != "runtime.goexit :0");
        while frames.len() > 1 && frames.last().is_some_and(|f| f.starts_with("runtime.")) {
            frames.pop();
        }
        let text = |l: Label| match l.value {
            LabelValue::Text(v) => Some(format!("{}={}", p.text(l.key), p.text(v))),
            LabelValue::Number(..) => None,
        };
        let mut labels: Vec<String> = sample.labels().filter_map(text).collect();
        labels.sort();
        *sums.entry((labels, frames)).or_default() += sample.value(0);
    }
    sums.retain(|_, sum| *sum != 0);
    sums
}

/// The text and the message were written at the same moment.
#[test]
fn names_and_labels_in_go_comments_equal_those_of_its_message() {
    let text = oracle::corpus().join("legacy/go-goroutine.debug1.txt");
    let text = pprofdiff::open(&text, &LoadOptions::default()).unwrap();
    let message = pprofdiff::open(oracle::corpus().join("go-goroutine.base.pb.gz"), &LoadOptions::default()).unwrap();
    let (mut ours, mut theirs) = (sums_by_name(&text), sums_by_name(&message));
    // The goroutine that writes the profile is at another place each time.
    let writes = |frames: &[String]| frames.iter().any(|f| f.starts_with("runtime/pprof.writeGoroutine"));
    ours.retain(|(_, frames), _| !writes(frames));
    theirs.retain(|(_, frames), _| !writes(frames));
    assert!(ours.len() > 3, "{}", ours.len());
    oracle::assert_same(&ours, &theirs, "goroutines");
}

fn pick<T: Copy>(random: &mut Random, all: &[T]) -> T {
    all[random.below(all.len() as u64) as usize]
}

/// Returns addresses inside the mappings, before them, and outside of all.
fn stack(random: &mut Random) -> Vec<u64> {
    let parts = [0x40_1000, 0x40_1000, 0x7f00_0000, 0x7f00_8000, 0x1000, 0x7fff_0000_0000];
    (0..1 + random.below(6)).map(|_| pick(random, &parts) + 16 * random.below(20) + 1).collect()
}

fn addresses(random: &mut Random) -> String {
    stack(random).iter().map(|a| format!(" 0x{a:x}")).collect()
}

/// Lists of mappings in all forms, including those that pprof corrects.
const MAPS: [&str; 7] = [
    "",
    "00401000-00480000 r-xp 00001000 08:01 12 /usr/bin/program\n7f000000-7f010000 r-xp 00000000 08:01 13 /lib/libc.so.6\n\
     7f010000-7f020000 rw-p 00000000 00:00 0\nffff0000-ffff1000 r-xp 00000000 00:00 0 [vdso]\n",
    "7f004000-7f010000 r-xp 00004000 08:01 13 /lib/libc.so.6\n00400000-00480000 r-xp 00000000 08:01 12 /usr/bin/program\n",
    "build=/usr\n\n0x400000-0x480000 $build/bin/program (@0) abc123\n0x7f000000-0x7f008000 $build/lib/a.so (@100)\n\
     0x7f008000-0x7f010000 $build/lib/a.so (@8100)\n",
    "I0101 file.cc:12] 400000-401100: /usr/bin/program\nI0101 file.cc:12] 401100-402000: /usr/bin/program\nnothing here\n",
    "200000-400000 rwxp 00000000 00:00 0 /anon_hugepage (deleted)\n400000-480000 r-xp 00000000 08:01 12 /usr/bin/program\n",
    "7f004000-7f020000 r-xp 00004000 08:01 13 /lib/a.so\n7f000000-7f005000 r-xp 00000000 08:01 14 /lib/b.so\n1000-1100 /lib/c.so\n",
];

/// The header line of a mapping list that ends the samples in all formats.
const MEMORY_MAP: &str = "--- Memory map: ---";

fn maps(random: &mut Random, begin: &str) -> String {
    match pick(random, &MAPS) {
        "" => String::new(),
        text => format!("\n{begin}\n{text}"),
    }
}

fn heap(random: &mut Random, kind: &str, freed: bool) -> String {
    let mut text =
        format!("heap profile: 31: 4711 [ {}: {}] @ {kind}\n", 31 + 9 * u64::from(freed), 4711 + 99 * u64::from(freed));
    for _ in 0..30 {
        let (count, size) = (random.below(5), 1 + random.below(100_000));
        let all = (count + random.below(9), size + random.below(5000));
        let used = if count == 0 { "0: 0".to_owned() } else { format!("{count}: {}", count * size) };
        let allocated = if all.0 == 0 { "0: 0".to_owned() } else { format!("{}: {}", all.0, all.0 * all.1) };
        writeln!(text, "{used} [{allocated}] @{}", addresses(random)).unwrap();
        if random.below(4) == 0 {
            text += "# a comment\n\n";
        }
    }
    text + &maps(random, "MAPPED_LIBRARIES:")
}

fn contention(random: &mut Random, head: &str) -> String {
    let mut text = format!("{head}\n");
    for _ in 0..30 {
        writeln!(text, "{} {} @{}", random.below(1 << 40), random.below(1000), addresses(random)).unwrap();
    }
    text + &maps(random, MEMORY_MAP)
}

fn threads(random: &mut Random, with_start: bool) -> String {
    let mut text = if with_start { "--- threadz 1 ---\n\n".to_owned() } else { String::new() };
    for i in 0..20 {
        writeln!(text, "--- Thread 7f79{i:x} (name: main/{i}) stack: ---").unwrap();
        let mut stack = stack(random);
        if random.below(2) == 0 {
            stack.insert(1, stack[0]);
        }
        match random.below(4) {
            0 if i > 0 => text += "    [same as previous thread]\n",
            1 => stack.iter().for_each(|a| writeln!(text, "  0x{a:x} in f(int)").unwrap()),
            _ => writeln!(text, "  PC: {}", stack.iter().map(|a| format!("0x{a:x} ")).collect::<String>()).unwrap(),
        }
    }
    text + "---- no stack trace for 3 other threads\n" + &maps(random, MEMORY_MAP)
}

fn count(random: &mut Random, kind: &str) -> String {
    let mut text = format!("# by a test\n{kind} profile: total 31\n");
    for _ in 0..30 {
        writeln!(text, "{} @{}\n#\t0x1\tmain.main+0x1\t/src/main.go:3\n", random.below(9), addresses(random)).unwrap();
    }
    text + &maps(random, MEMORY_MAP)
}

/// Writes stacks with `handlers` common second frames, some with their leaf twice.
fn cpu(random: &mut Random, size: usize, little: bool, java: bool, handlers: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut word = |v: u64| match little {
        true => bytes.extend_from_slice(&v.to_le_bytes()[..size]),
        false => bytes.extend_from_slice(&v.to_be_bytes()[8 - size..]),
    };
    [0, 3, u64::from(java), 10_000, 0].into_iter().for_each(&mut word);
    for i in 0..70 {
        let mut stack: Vec<u64> = stack(random).iter().map(|a| a & 0x7fff_ffff).collect();
        if random.below(2) == 0 {
            // Repeats the leaf as the first return address.
            stack.insert(1, stack[0]);
        }
        if i % 50 != 7 {
            (0..handlers).for_each(|h| stack.insert(1, 0x40_1501 + h as u64));
        }
        if java {
            stack.iter_mut().for_each(|a| *a = *a % 7 + 1);
        }
        word(1 + random.below(20));
        word(stack.len() as u64);
        stack.into_iter().for_each(&mut word);
    }
    [0, 1, 0].into_iter().for_each(&mut word);
    let text = if java { JAVA_LOCATIONS.to_owned() } else { maps(random, MEMORY_MAP) };
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

/// Locations of addresses 1 to 7, without 6.
const JAVA_LOCATIONS: &str = "
 0x00000001 com.example.Parser.read (Parser.java:121)
 0x00000002 com.example.Main.run (Main.java:17)
 0x00000003 com.example.Main.run (Other.java:18)
 0x00000004 memcpy (/usr/lib/libc.so.6)
 0x00000005 [generated stub/JIT]
 0x00000007 GC
 0x00000099 com.example.Unused.f (Unused.java:1)
";

fn java(random: &mut Random, head: &str) -> String {
    let mut text = format!("{head}\n");
    for _ in 0..30 {
        let stack: String = stack(random).iter().map(|a| format!(" 0x{:08x}", a % 7 + 1)).collect();
        writeln!(text, "  {} {} @{stack}", 1 + random.below(1 << 30), 1 + random.below(90)).unwrap();
    }
    text + JAVA_LOCATIONS
}

#[test]
fn generated_files_of_every_form_have_the_same_values_as_in_pprof() {
    let mut random = Random(17);
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for kind in [
        "heap_v2/524288",
        "heap_v2/1",
        "heapz_v2/1000",
        "heap/1048576",
        "heapprofile",
        "growthz",
        "growth",
        "fragmentationz",
    ] {
        for freed in [false, true] {
            files.push((format!("{kind} freed {freed}"), heap(&mut random, kind, freed).into()));
        }
    }
    for head in [
        "--- contentionz 1 ---\ncycles/second = 3201000000\nsampling period = 100\nms since reset = 16502830\ndiscarded samples = 0",
        "--- contentionz 1 ---\nsampling period = 0x10",
        "--- mutex:\ncycles/second=2445406713\nsampling period=5",
        "--- contention:\ncycles/second=2445406713",
        "--- contention:",
    ] {
        files.push((head.to_owned(), contention(&mut random, head).into()));
    }
    for with_start in [false, true] {
        files.push((format!("threads {with_start}"), threads(&mut random, with_start).into()));
    }
    for kind in ["goroutine", "threadcreate", "my/own"] {
        files.push((kind.to_owned(), count(&mut random, kind).into()));
    }
    for (size, little) in [(4, true), (4, false), (8, true), (8, false)] {
        for handlers in 0..4 {
            let name = format!("cpu, words of {size} bytes, little {little}, {handlers} handlers");
            files.push((name, cpu(&mut random, size, little, false, handlers)));
        }
        files.push((format!("Java's cpu, {size} {little}"), cpu(&mut random, size, little, true, 0)));
    }
    for head in [
        "--- heapz 1 ---\nformat = java\nresolution = bytes",
        "--- contentionz 1 ---\nformat = java\nresolution = microseconds\nsampling period = 100\nms since reset = 6019923",
        "--- contentionz 1 ---\nresolution = nanoseconds",
    ] {
        files.push((format!("Java's {head}"), java(&mut random, head).into()));
    }
    let folder = folder("legacy-made");
    let path = folder.join("made");
    for (name, bytes) in &files {
        std::fs::write(&path, bytes).unwrap();
        let source = path.display().to_string();
        let ours = pprofdiff::open(&path, &LoadOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let ours = content(&ours, &source);
        assert!(ours.1.len() > 3, "{name} has {} stacks", ours.1.len());
        assert_same(name, &ours, &content(&convert_with_pprof(&path, &folder), &source));
    }
    assert!(files.len() > 45, "{}", files.len());
}

#[test]
fn errors_name_the_line() {
    let options = LoadOptions::default();
    let error = |bytes: &[u8]| match pprofdiff::from_bytes("in", bytes, &options) {
        Ok(_) => panic!("it is read: {}", String::from_utf8_lossy(bytes)),
        Err(e) => e.to_string(),
    };
    let heap = "heap profile: 3: 48 [7: 112] @ heap_v2/524288\n";
    for (text, words) in [
        (format!("{heap}3: 48 [7: 112] @ 0x4\nx\n"), "line 3: \"x\" is not a sample of a heap profile"),
        (format!("{heap}3: 48 @ 0x4\n"), "line 2: \"3: 48 @ 0x4\" is not a sample"),
        (format!("{heap}0: 48 [7: 112] @ 0x4\n"), "bytes without objects"),
        (format!("{heap}1: 99999999999999999999 [7: 112] @ 0x4\n"), "more than an int64 holds"),
        (format!("{heap}1: 9 [7: 112] @ 0x40000000000000000\n"), "an address of more than 64 bits"),
        (format!("{heap}1: 1 [1: 9223372036854775807] @ 0x4\n").repeat(1), "int64"),
        ("heap profile: 3: 48 [7: 112] @ heap_v2/99999999999999999999\n".into(), "the sampling rate"),
        ("heap profile: 3: 48 [7: 112] @ heap_v9/5\n".into(), "unknown kind of heap profile heap_v9"),
        ("goroutine profile: total 3\n1 @ 0x4\n1 @ y\n".into(), "line 3: \"1 @ y\" is not a sample"),
        ("goroutine profile: total 3\n99999999999999999999 @ 0x4\n".into(), "int64"),
        ("--- mutex:\ncycles/second=x\n1 2 @ 0x3\n".into(), "line 2: \"cycles/second=x\" is not set to a number"),
        ("--- mutex:\nsampling period=9223372036854775807\n1 2 @ 0x3\n".into(), "line 3"),
        ("--- mutex:\nformat=9\n1 2 @ 0x3\n".into(), "is an unknown attribute"),
        ("--- mutex:\n1 @ 0x3\n".into(), "line 2: \"1 @ 0x3\" is not a sample"),
        ("--- threadz 1 ---\n\n--- Thread x\n".into(), "line 3: \"--- Thread x\" is not a thread"),
        ("--- heapz 1 ---\nformat = cobol\n".into(), "line 2: \"format = cobol\" is an unknown attribute"),
        ("--- heapz 1 ---\nformat = java\nresolution = bytes\n 5 0 @ 0x1\n".into(), "bytes without objects"),
    ] {
        let error = error(text.as_bytes());
        assert!(error.contains(words), "{text:?}: {error}");
    }
    let whole = cpu(&mut Random(3), 8, true, false, 0);
    for cut in [41, 48, 60, 204] {
        let error = error(&whole[..cut]);
        assert!(error.contains("sample ") && error.contains("truncated?"), "{cut}: {error}");
    }
    let mut many = whole[..40].to_vec();
    many.extend([1u64, u64::MAX].iter().flat_map(|w| w.to_le_bytes()));
    assert!(error(&many).contains("18446744073709551615 addresses"), "{}", error(&many));
    let mut much = whole[..40].to_vec();
    much.extend([u64::MAX, 1, 5].iter().flat_map(|w| w.to_le_bytes()));
    assert!(error(&much).contains("int64"), "{}", error(&much));
}

/// pprof refuses the pair, so it converts each dump alone
/// (`generated_files_of_every_form_have_the_same_values_as_in_pprof`).
#[test]
fn a_dump_before_the_first_free_has_the_types_of_the_others() {
    let mut random = Random(7);
    let mut dump = |name: &str, freed| {
        let text = heap(&mut random, "heapprofile", freed);
        pprofdiff::from_bytes(name, text.as_bytes(), &LoadOptions::default()).unwrap()
    };
    let (before, after) = (Arc::new(dump("before", false)), Arc::new(dump("after", true)));
    let kinds = |types: &[(String, String)]| types.iter().map(|(kind, _)| kind.clone()).collect::<Vec<_>>();
    assert_eq!(kinds(&before.sample_types()), ["objects", "space"]);
    let four = ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"];
    let total = |diff: &Diff, kind: &str| {
        let mut query = Query::default();
        query.sample_type = Some(kind.to_owned());
        let total = diff.measure(&query).unwrap().summary().total;
        [total.base, total.new]
    };
    let [objects, space] = [0, 1].map(|i| before.total(i).unwrap());
    let [forwards, backwards] =
        [(&before, &after), (&after, &before)].map(|(base, new)| Diff::between(base.clone(), new.clone()).unwrap());
    assert_eq!(kinds(&forwards.sample_types()), four);
    assert_eq!(kinds(&backwards.sample_types()), four);
    for (i, kind) in four.iter().enumerate() {
        let of_before = if kind.ends_with("objects") { objects } else { space };
        assert_eq!(total(&forwards, kind), [of_before, after.total(i).unwrap()], "{kind}");
        assert_eq!(total(&backwards, kind), [after.total(i).unwrap(), of_before], "{kind}");
    }
    // The default type is that of the dump with four types.
    assert_eq!(forwards.measure(&Query::default()).unwrap().summary().sample_type, "inuse_space");
    // One side may mix both kinds, and they can be merged.
    let mixed = Diff::new(&[before.clone(), after.clone()], std::slice::from_ref(&after)).unwrap();
    assert_eq!(kinds(&mixed.sample_types()), four);
    let merged = pprofdiff::merge(&[&*before, &*after]).unwrap();
    assert_eq!(merged.total(3), Some(space + after.total(3).unwrap()));
    // Alone, the dump keeps its types.
    assert_eq!(kinds(&Diff::between(before.clone(), before).unwrap().sample_types()), ["objects", "space"]);
}
