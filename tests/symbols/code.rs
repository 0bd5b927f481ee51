//! Instructions and what they cost: `go tool pprof` and google/pprof say it of each side alone; two builds of one program
//! are aligned; lines open to the instructions that `-weblist` groups under them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use pprofdiff::binary::Binaries;
use pprofdiff::builder::ProfileBuilder;
use pprofdiff::list::{Instruction, LineChange, Listing};
use pprofdiff::{Diff, LoadOptions, Profile, Query, WriteOptions};

use super::{Loaded, cpp, folder, judge, loaded, parcels, run, some, with};

/// A profile of stacks of three addresses, whose values differ.
fn stacks(binary: &Path, at: &Loaded, addresses: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut builder = ProfileBuilder::new();
    builder.sample_type("samples", "count");
    let (file, build_id) = (builder.string(&*binary.to_string_lossy()), builder.string(&at.build_id));
    let mapping = builder.mapping(pprofdiff::columns::Mapping { file, build_id, ..at.mapping });
    let mut locations = BTreeMap::new();
    let mut location = |address: u64| {
        *locations.entry(address).or_insert_with(|| builder.location(Some(mapping), address + at.slide, &[]).unwrap())
    };
    let all: Vec<_> = addresses.into_iter().map(&mut location).collect();
    for (i, stack) in all.windows(3).enumerate() {
        // Recursion counts once.
        let recursive = [stack[0], stack[1], stack[0]];
        let stack = if i % 5 == 0 { &recursive } else { stack };
        builder.sample(stack, &[1 + i as i64 % 7], &[]).unwrap();
    }
    builder.build("made").unwrap().to_bytes(&WriteOptions::default()).unwrap()
}

/// flat and cum of each instruction, of one profile.
type Costs = BTreeMap<u64, (i64, i64)>;

fn costs<'a>(instructions: impl IntoIterator<Item = &'a Instruction>) -> Costs {
    instructions.into_iter().map(|i| (i.new.unwrap(), (i.flat.new, i.cum.new))).collect()
}

/// `         .        12     4a3f20: MOVQ ...`
fn told(line: &str) -> Option<(u64, (i64, i64))> {
    let mut words = line.split_whitespace();
    let mut number = || match words.next()? {
        "." => Some(0),
        word => word.parse().ok(),
    };
    let (flat, cum) = (number()?, number()?);
    let address = words.next()?.strip_suffix(':')?;
    Some((u64::from_str_radix(address, 16).ok()?, (flat, cum)))
}

/// The functions of a binary by address, but for their last bytes: samples there are lost by pprof.
fn functions(folder: &Path, binary: &Path) -> BTreeMap<u64, (u64, String)> {
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let symbols = run(folder, &format!("nm -S {}", binary.display()));
    let parts = symbols.lines().map(|line| line.splitn(4, ' ').collect::<Vec<_>>());
    let function = |parts: Vec<&str>| match parts[..] {
        [address, size, "T" | "t" | "W", name] => {
            Some((number(address), (number(address) + number(size) - 1, name.to_owned())))
        }
        _ => None,
    };
    parts.filter_map(function).collect()
}

/// Holds the costs of all instructions of the functions that match against pprof's.
fn assert_disassembled(folder: &Path, binary: &Path, regex: &str, pprof: &mut Command) {
    let (at, functions) = (loaded(binary), functions(folder, binary));
    let matches = regex::Regex::new(regex).unwrap();
    let is_asked = |a: &u64| {
        let function = functions.range(..=a).next_back();
        function.is_some_and(|(_, (end, name))| a < end && matches.is_match(name))
    };
    let path = folder.join("stacks.pb.gz");
    std::fs::write(&path, stacks(binary, &at, some(&at.text, 100_000).filter(is_asked).take(10_000))).unwrap();
    let profile = Arc::new(Profile::open(&path, &with(binary)).unwrap());
    let listing = Diff::of_profile(&profile).unwrap().disasm(&Query::default(), regex, usize::MAX).unwrap();
    let ours = costs(listing.routines.iter().flat_map(|r| &r.instructions));
    pprof.arg(format!("-disasm={regex}")).arg("-symbolize=local").args([binary, &path]);
    let output = pprof.env("PPROF_TMPDIR", folder).env("HOME", folder).output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    // Go's disassembler splits what it does not know into several.
    let mut theirs: Costs = ours.keys().map(|&address| (address, (0, 0))).collect();
    for (address, (flat, cum)) in output.lines().filter_map(told).filter(|(_, cost)| *cost != (0, 0)) {
        let sums = theirs.range_mut(..=address).next_back().unwrap().1;
        *sums = (sums.0 + flat, sums.1 + cum);
    }
    let sampled = ours.values().filter(|cost| **cost != (0, 0)).count();
    assert!(sampled > 500, "{}: {sampled}", binary.display());
    let differ = ours.iter().find(|(address, cost)| theirs[address] != **cost);
    let shown = differ.map(|(address, cost)| format!("{address:x}: {cost:?}, pprof {:?}", theirs[address]));
    assert_eq!(shown, None, "{} of {sampled} instructions with samples", binary.display());
}

#[test]
fn each_side_costs_what_pprof_disassembles() {
    let folder = folder("disasm");
    for (name, options) in [("movable", "-O2 -g"), ("fixed", "-O1 -no-pie")] {
        assert_disassembled(&folder, &cpp(&folder, name, options), ".", &mut Command::new(judge()));
    }
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/live/main.go");
    std::fs::copy(program, folder.join("main.go")).unwrap();
    for (name, env) in [("go", ""), ("go-arm64", "GOARCH=arm64")] {
        run(&folder, &format!("env CGO_ENABLED=0 {env} go build -o {name} main.go"));
        // pprof matches what it prints of a frame, which begins with the address.
        let packages = r"\b(main|bufio|strconv|strings)\.";
        assert_disassembled(&folder, &folder.join(name), packages, Command::new("go").args(["tool", "pprof"]));
    }
}

/// What `-weblist` has under each line of a file: the instructions with their costs.
fn grouped(html: &str) -> BTreeMap<(String, i64), Costs> {
    let mut all: BTreeMap<(String, i64), Costs> = BTreeMap::new();
    for part in html.split("class=\"filename\">").skip(1) {
        let file = part.split('<').next().unwrap();
        for line in part.split("<span class=line>").skip(1) {
            let number: i64 = line.split('<').next().unwrap().trim().parse().unwrap();
            let code = line.split_once("<span class=asm>").map_or("", |(_, code)| code);
            let costs: Costs = code.lines().filter_map(told).collect();
            all.entry((file.to_owned(), number)).or_default().extend(costs);
        }
    }
    all.retain(|_, costs| !costs.is_empty());
    all
}

#[test]
fn lines_open_to_what_weblist_groups() {
    let folder = folder("weblist");
    let binary = cpp(&folder, "parcels", "-O1 -g");
    let (at, functions) = (loaded(&binary), functions(&folder, &binary));
    let own = functions.iter().filter(|(_, (_, name))| name.contains("parcels"));
    let addresses = own.flat_map(|(&from, &(to, _))| (from..to).step_by(3));
    let path = folder.join("stacks.pb.gz");
    std::fs::write(&path, stacks(&binary, &at, addresses)).unwrap();
    let profile = Arc::new(Profile::open(&path, &with(&binary)).unwrap());
    let listing = Diff::of_profile(&profile).unwrap().list(&Query::default(), "parcels::", &()).unwrap();
    let mut ours: BTreeMap<(String, i64), Costs> = BTreeMap::new();
    for r in &listing.routines {
        for l in r.lines.iter().filter(|l| !l.instructions.is_empty()) {
            let key = (r.file.clone().unwrap(), l.new.unwrap());
            ours.entry(key).or_default().extend(costs(&l.instructions));
        }
    }
    let page = folder.join("page.html");
    let mut pprof = Command::new(judge());
    pprof.args(["-weblist=parcels::", "-symbolize=local", "-output"]).args([&page, &binary, &path]);
    let output = pprof.env("PPROF_TMPDIR", &folder).env("HOME", &folder).output().unwrap();
    eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    let theirs = grouped(&std::fs::read_to_string(&page).unwrap());
    let n: usize = ours.values().map(|c| c.len()).sum();
    let m: usize = theirs.values().map(|c| c.len()).sum();
    eprintln!("{} lines {n}, {} lines {m}", ours.len(), theirs.len());
    for (key, costs) in &ours {
        if theirs.get(key) != Some(costs) {
            eprintln!("{key:?} {costs:x?}\n theirs {:x?}", theirs.get(key));
        }
    }
    for key in theirs.keys().filter(|key| !ours.contains_key(key)) {
        eprintln!("only theirs {key:?} {:?}", theirs[key].len());
    }
}
