//! Tests that compare our reader with `perf script`, for recordings of the corpus and for recordings made by the test.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::LoadOptions;
use pprofdiff_profile::Profile;
use pprofdiff_profile::columns::NONE;
use pprofdiff_profile::samples::LabelValue;
use pprofdiff_symbols::{Binaries, Binary};

const KERNEL: &str = "([kernel.kallsyms])";

const PROGRAM: &str = "\
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile double kept;
#define FUNCTION __attribute__((noinline)) static void
FUNCTION press(int n) { for (int i = 0; i < n; i++) kept += i * 1.5; kept = 0; }
FUNCTION touch(int n) { char *p = malloc(n << 12); memset(p, 1, n << 12); kept += p[n]; free(p); kept = 1; }
FUNCTION work(int n) { for (int i = 0; i < n; i++) { press(1000000); touch(300); } kept = 2; }
int main(int n, char **words) {
  if (n > 1) { work(4); return 0; }
  if (fork() == 0) { work(6); _exit(0); }
  if (fork() == 0) execl(words[0], \"again\", \"x\", (char *)0);
  work(8);
  while (wait(0) > 0) {}
  return 0;
}
";

/// A temporary folder, which is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("pprofdiff-perf-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn run(&self, words: &str) -> Output {
        Command::new("sh").args(["-c", words]).current_dir(&self.0).output().unwrap()
    }

    /// Builds a program and records it with perf. Returns false if perf is missing or the kernel does not allow it.
    fn record(&self, options: &str, file: &str) -> bool {
        std::fs::write(self.0.join("press.c"), PROGRAM).unwrap();
        let built = self.run("cc -g -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -o press press.c");
        assert!(built.status.success(), "{built:?}");
        let recorded = self.run(&format!("perf record -q {options} ./press"));
        if !recorded.status.success() || !self.0.join(file).exists() {
            let line =
                "format::perf_data: perf is missing, or the kernel does not let it (apt-get install linux-perf)\n";
            std::io::stderr().write_all(format!("SKIPPED {line}").as_bytes()).unwrap();
            if let (Some(list), None) = (std::env::var_os("PPROFDIFF_SKIPPED"), std::env::var_os("CI")) {
                std::fs::OpenOptions::new().append(true).open(list).unwrap().write_all(line.as_bytes()).unwrap();
            }
            return false;
        }
        true
    }

    fn script(&self, file: &str, fields: &str) -> String {
        let output =
            self.run(&format!("perf script -i {file} --no-inline -F comm,pid,tid,time,period,event,ip,{fields}"));
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Sums of values by event, labels and frames from the leaf.
type PerfSums = BTreeMap<String, i64>;

/// Parses the output of `perf script`. `frame` formats a frame from its address, whether this is a return address, and
/// the rest of the line.
fn printed(text: &str, frame: impl Fn(u64, bool, &str) -> String) -> PerfSums {
    let mut sums = PerfSums::new();
    // A text with frames on the lines of their samples does not contain blank lines.
    let end = if text.contains("\n\n") { "\n\n" } else { "\n" };
    for sample in text.split(end).filter(|sample| !sample.trim().is_empty()) {
        let mut lines = sample.lines();
        let mut words: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
        // The CPU is in brackets.
        let cpu = words.get(2).and_then(|word| word.strip_prefix('[')?.strip_suffix(']')?.parse::<u32>().ok());
        words.retain(|word| !word.starts_with('['));
        let &[comm, ids, _, period, event, ref frame_words @ ..] = &words[..] else { panic!("{sample}") };
        let (pid, tid) = ids.split_once('/').unwrap();
        let mut key = format!("{} comm={comm} pid={pid} tid={tid}", event.trim_end_matches(':'));
        key += &cpu.map_or(String::new(), |cpu| format!(" cpu={cpu}"));
        // Without stacks, the frame is on the line of its sample.
        let header_frame = (!frame_words.is_empty()).then(|| frame_words.join(" "));
        let mut previous = None;
        for line in header_frame.as_deref().into_iter().chain(lines) {
            let (address, rest) = line.trim().split_once(' ').unwrap();
            let address = u64::from_str_radix(address, 16).unwrap();
            // The kernel's addresses are above all others. The address where it was entered is not a return address.
            let is_return = previous.is_some_and(|previous: u64| previous >> 63 == address >> 63);
            key += &format!(" | {}", frame(address, is_return, rest));
            previous = Some(address);
        }
        *sums.entry(key).or_default() += period.parse::<i64>().unwrap();
    }
    sums
}

/// Returns the same sums of a profile. `frame` formats a location.
fn read(p: &Profile, frame: impl Fn(&Profile, u32) -> String) -> PerfSums {
    let mut sums = PerfSums::new();
    for sample in p.samples() {
        let mut labels = String::new();
        for label in sample.labels() {
            let value = match label.value {
                LabelValue::Text(text) => p.text(text),
                LabelValue::Number(number, _) => number.to_string(),
            };
            labels += &format!(" {}={value}", p.text(label.key));
        }
        sample.for_each_location(|location| labels += &format!(" | {}", frame(p, location)));
        for (i, (event, _)) in p.sample_types().iter().enumerate().filter(|(i, _)| sample.value(*i) != 0) {
            *sums.entry(format!("{event}{labels}")).or_default() += sample.value(i);
        }
    }
    sums
}

fn is_nothing(rest: &str) -> bool {
    rest.contains("([unknown])")
}

/// Formats a location as perf does: the address of a kernel location, or the offset in the file, and the file.
fn place(p: &Profile, location: u32, mask: u64) -> String {
    let mapping = match p.locations().mapping[location as usize] {
        NONE => return "nothing".to_owned(),
        mapping => &p.mappings()[mapping as usize],
    };
    let (file, address) = (p.text(mapping.file), p.locations().address[location as usize]);
    let is_kernel = file.starts_with("[kernel.");
    let offset = if is_kernel { address } else { address - mapping.start + mapping.offset };
    format!("{:x} ({file})", offset & mask)
}

fn printed_place(address: u64, is_return: bool, rest: &str, mask: u64) -> String {
    if is_nothing(rest) {
        return "nothing".to_owned();
    }
    // For a piped recording, perf also prints symbols that were not requested.
    let file = rest.rsplit_once(' ').map_or(rest, |(_, file)| file);
    format!("{:x} {file}", (address - u64::from(is_return)) & mask)
}

fn open(path: &Path) -> Profile {
    crate::open(path, &LoadOptions::default()).unwrap()
}

#[test]
fn recordings_match_perf_script() {
    let folder = Folder::new("script");
    for (options, case) in [
        ("-e cpu-clock,task-clock,page-faults -F 2000 -g -o it.data", "three events"),
        ("-e cpu-clock -c 1000000 -o it.data", "a fixed period without stacks"),
        ("-e cpu-clock:u,page-faults:u -F 2000 -g -z -o it.data", "packed"),
        ("-e cpu-clock,page-faults -F 2000 -g -o - > it.data", "piped"),
        ("-e cpu-clock --sample-cpu -F 2000 -g -o it.data", "CPUs"),
        ("-e cpu-clock --buildid-mmap -F 2000 -g -o it.data", "build ids in the records of mapped files"),
    ] {
        if !folder.record(options, "it.data") {
            return;
        }
        // Our reader of the text finds the same events with the same totals.
        let text = folder.run("perf script -i it.data -F +pid").stdout;
        let [data, text] =
            [open(&folder.0.join("it.data")), crate::from_bytes("text", &text, &LoadOptions::default()).unwrap()];
        let totals = |p: &Profile| {
            let types = p.sample_types().into_iter().enumerate().map(|(i, event)| (event, p.total(i)));
            types.collect::<BTreeMap<_, _>>()
        };
        assert_eq!(totals(&data), totals(&text), "{case}");
        let script = folder.script("it.data", if options.contains("cpu ") { "cpu,dso" } else { "dso" });
        // Without stacks, perf prints addresses of the process. Only the offset in the page is comparable.
        let mask = if script.contains("\n\n") { u64::MAX } else { 0xfff };
        let actual = read(&data, |p, location| place(p, location, mask));
        let expected = printed(&script, |address, is_return, rest| printed_place(address, is_return, rest, mask));
        assert!(expected.len() > 3, "{case}: {}", expected.len());
        assert_eq!(actual, expected, "{case}");
        std::fs::remove_file(folder.0.join("it.data")).unwrap();
    }
}

#[test]
fn recordings_of_the_corpus_match_perf_script() {
    let inputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/inputs");
    for side in ["base", "new"] {
        let mut script = String::new();
        let packed = std::fs::File::open(inputs.join(format!("clocks.{side}.perf.script.txt.gz"))).unwrap();
        flate2::read::GzDecoder::new(packed).read_to_string(&mut script).unwrap();
        let actual = read(&open(&inputs.join(format!("clocks.{side}.perf.data.gz"))), |p, l| place(p, l, u64::MAX));
        let expected = printed(&script, |address, is_return, rest| printed_place(address, is_return, rest, u64::MAX));
        assert!(expected.len() > 20, "{}", expected.len());
        assert_eq!(actual, expected, "{side}");
    }
}

/// samply's conversion of a recording has the same clock samples, with offsets in files and with names for kernel
/// frames.
#[test]
fn samply_reads_the_same_samples() {
    let inputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/inputs");
    for side in ["base", "new"] {
        let data = open(&inputs.join(format!("clocks.{side}.perf.data.gz")));
        let samply = open(&inputs.join(format!("samply.{side}.firefox.json.gz")));
        let in_file = |p: &Profile, location: u32| match place(p, location, u64::MAX) {
            place if place.ends_with(KERNEL) => KERNEL.to_owned(),
            place => place,
        };
        let is_samples = |line: &str| !line.starts_with("page-faults") && !line.starts_with("cpu ");
        // Threads are identified by the process id. samply also treats the address where the kernel interrupted a
        // program as a return address.
        let key = |line: &str, interrupted: u64| {
            let (labels, frames) = line.split_once(" | ").unwrap_or((line, ""));
            let mut key = labels.split_once(" tid=").unwrap().1.split([' ', '.']).next().unwrap().to_owned();
            let mut is_after_kernel = false;
            for frame in frames.split(" | ") {
                let (address, file) = frame.split_once(' ').unwrap_or((frame, ""));
                key += &match u64::from_str_radix(address, 16) {
                    Ok(address) if is_after_kernel => format!(" | {:x} {file}", address - interrupted),
                    _ => format!(" | {frame}"),
                };
                is_after_kernel = frame == KERNEL;
            }
            key
        };
        let sums = |p: &Profile, period: i64, interrupted: u64| {
            let mut sums = PerfSums::new();
            for (line, value) in read(p, in_file).iter().filter(|(line, _)| is_samples(line)) {
                assert_eq!(value % period, 0, "{line}");
                *sums.entry(key(line, interrupted)).or_default() += value / period;
            }
            sums
        };
        let expected = sums(&data, 2_004_008, 1);
        assert!(expected.len() > 15 && expected.values().sum::<i64>() > 100, "{}", expected.len());
        assert_eq!(sums(&samply, 1, 0), expected, "{side}");
        let program = samply.mappings().iter().find(|m| samply.text(m.file) == "/press/press").unwrap();
        assert_eq!(samply.text(program.build_id), data.text(data.mappings()[0].build_id));
    }
}

/// A window up to the first sample of the clock, or from it, matches the output of `perf script` before or after this
/// line.
#[test]
fn a_window_ends_at_the_first_sample_of_an_event() {
    let inputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/inputs");
    let mut script = String::new();
    let packed = std::fs::File::open(inputs.join("clocks.base.perf.script.txt.gz")).unwrap();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut script).unwrap();
    // The end of the sample before the event.
    let (before, after) = script.split_at(script[..script.find(" cpu-clock:").unwrap()].rfind("\n\n").unwrap() + 2);
    for (window, printed_part) in [("..cpu-clock", before), ("cpu-clock..", after)] {
        let options = LoadOptions::default().with_time(window.parse().unwrap());
        let p = crate::open(inputs.join("clocks.base.perf.data.gz"), &options).unwrap();
        let expected =
            printed(printed_part, |address, is_return, rest| printed_place(address, is_return, rest, u64::MAX));
        assert!(expected.len() >= 4, "{}", expected.len());
        assert_eq!(read(&p, |p, l| place(p, l, u64::MAX)), expected, "{window}");
        let text = crate::from_bytes("text", script.as_bytes(), &options).unwrap();
        let totals = |p: &Profile| {
            let types = p.sample_types().into_iter().enumerate().map(|(i, event)| (event, p.total(i)));
            types.collect::<BTreeMap<_, _>>()
        };
        assert_eq!(totals(&text), totals(&p), "{window}");
    }
    let options = LoadOptions::default().with_time("..instructions".parse().unwrap());
    let error = crate::open(inputs.join("clocks.base.perf.data.gz"), &options).unwrap_err();
    assert_eq!(error.detail(), "it has no event \"instructions\", but these: cpu-clock, page-faults");
}

/// Functions of the program and of the kernel get the names that perf prints. For other files, only the file is
/// compared.
#[test]
fn binaries_give_the_names_that_perf_prints() {
    let folder = Folder::new("names");
    if !folder.record("-e cpu-clock,page-faults -F 2000 -g -o it.data", "it.data") {
        return;
    }
    let kernel = folder.0.join("kernel");
    std::fs::write(&kernel, std::fs::read("/proc/kallsyms").unwrap()).unwrap();
    // Only root can see the kernel's addresses.
    let is_seen = Binary::open(&kernel).is_ok();
    let kernel = Some(kernel).filter(|_| is_seen);
    let binaries = Binaries::new(Vec::new(), [folder.0.join("press")].into_iter().chain(kernel).collect());
    let options = LoadOptions::default().with_binaries(binaries).with_time("0..1h".parse().unwrap());
    let p = crate::open(folder.0.join("it.data"), &options).unwrap();
    // Naming functions builds a new profile, which must keep the time window.
    assert_eq!(p.window(), options.time.as_ref());
    let actual = read(&p, |p, location| {
        let lines = p.locations().lines(location);
        let name = |line: u32| p.text(p.functions().name[p.locations().line_function[line as usize] as usize]);
        let names: Vec<String> = lines.map(name).collect();
        match place(p, location, 0).split_once(' ') {
            // Other files are also named if they exist at their recorded path.
            Some((_, file)) if !(file.ends_with("/press)") || is_seen && file == KERNEL) => file.to_owned(),
            _ => names.join(" inlined in "),
        }
    });
    let expected = printed(&folder.script("it.data", "sym,dso"), |_, _, rest| match rest.rsplit_once(' ').unwrap() {
        _ if is_nothing(rest) => "[unknown]".to_owned(),
        (name, file) if file.ends_with("/press)") || is_seen && file == KERNEL => name.to_owned(),
        (_, file) => file.to_owned(),
    });
    assert!(expected.keys().any(|key| key.contains("| work | main |")), "{expected:?}");
    assert_eq!(actual, expected);
    let program = &p.mappings()[0];
    assert!(p.text(program.file).ends_with("/press") && p.text(program.build_id).len() == 40);
}

/// Recordings that need perf are refused, and the command in the advice works.
#[test]
fn recordings_with_dwarf_stacks_are_refused_with_a_working_command() {
    let folder = Folder::new("dwarf");
    if !folder.record("-e cpu-clock --call-graph dwarf,1024 -F 500 -o it.data", "it.data") {
        return;
    }
    let bytes = std::fs::read(folder.0.join("it.data")).unwrap();
    let error = crate::from_bytes("it.data", &bytes, &LoadOptions::default()).unwrap_err();
    assert!(error.to_string().contains("recorded with --call-graph dwarf"), "{error}");
    assert_eq!(error.advice(), Some("perf script -i it.data -F +pid,+srcline > profile.txt"));
    let converted = folder.run(error.advice().unwrap());
    assert!(converted.status.success(), "{converted:?}");
    assert!(open(&folder.0.join("profile.txt")).total(0) > Some(0));
}
