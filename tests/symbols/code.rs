//! Tests of instructions and their costs. `go tool pprof` and google/pprof give the expected costs of each side. Two
//! builds of one program are aligned, and source lines expand to the same instructions as in `-weblist`.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use pprofdiff::builder::ProfileBuilder;
use pprofdiff::list::{LineChange, ListedInstruction, Routine};
use pprofdiff::{Diff, LoadOptions, Query, WriteOptions};
use pprofdiff_report::{Request, View};

use super::programs::{compiled, compiled_otherwise, cpp};
use super::{LoadedBinary, folder, load_binary, pprof_command, pseudo_random_addresses, run, with};
use crate::golibrary;

/// Builds a profile of stacks with three addresses and varying values. If `recursive`, some stacks contain an address
/// twice.
fn stacks(binary: &Path, image: &LoadedBinary, addresses: impl IntoIterator<Item = u64>, recursive: bool) -> Vec<u8> {
    let mut builder = ProfileBuilder::new();
    builder.sample_type("samples", "count");
    let (file, build_id) = (builder.string(&*binary.to_string_lossy()), builder.string(&image.build_id));
    let mapping = builder.mapping(pprofdiff::columns::Mapping { file, build_id, ..image.mapping });
    let mut locations = BTreeMap::new();
    let mut location = |address: u64| {
        *locations
            .entry(address)
            .or_insert_with(|| builder.location(Some(mapping), address + image.slide, &[]).unwrap())
    };
    let all: Vec<_> = addresses.into_iter().map(&mut location).collect();
    for (i, stack) in all.windows(3).enumerate() {
        let twice = [stack[0], stack[1], stack[0]];
        let stack = if recursive && i % 5 == 0 { &twice } else { stack };
        builder.sample(stack, &[1 + i as i64 % 7], &[]).unwrap();
    }
    builder.build("made").unwrap().to_bytes(&WriteOptions::default()).unwrap()
}

/// flat and cum of each instruction, for one profile.
type Costs = BTreeMap<u64, (i64, i64)>;

fn costs<'a>(instructions: impl IntoIterator<Item = &'a ListedInstruction>) -> Costs {
    instructions.into_iter().map(|i| (i.new.unwrap(), (i.flat.new, i.cum.new))).collect()
}

/// Parses a line such as `         .        12     4a3f20: MOVQ ...`
fn parse_line(line: &str) -> Option<(u64, (i64, i64))> {
    let mut words = line.split_whitespace();
    let mut number = || match words.next()? {
        "." => Some(0),
        word => word.parse().ok(),
    };
    let (flat, cum) = (number()?, number()?);
    let address = words.next()?.strip_suffix(':')?;
    Some((u64::from_str_radix(address, 16).ok()?, (flat, cum)))
}

/// Returns the functions of a binary by address, without their last bytes, because pprof loses samples there.
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

/// Checks that all instructions of the matching functions have the same costs as in pprof.
fn assert_disassembled(folder: &Path, binary: &Path, regex: &str, pprof: &mut Command) {
    let (image, functions) = (load_binary(binary), functions(folder, binary));
    let matches = regex::Regex::new(regex).unwrap();
    let is_asked = |a: &u64| {
        let function = functions.range(..=a).next_back();
        function.is_some_and(|(_, (end, name))| a < end && matches.is_match(name))
    };
    let path = folder.join("stacks.pb.gz");
    std::fs::write(
        &path,
        stacks(binary, &image, pseudo_random_addresses(&image.text, 100_000).filter(is_asked).take(4000), true),
    )
    .unwrap();
    let profile = Arc::new(pprofdiff::open(&path, &with(binary)).unwrap());
    let listing = Diff::of_profile(&profile).unwrap().disasm(&Query::default(), regex, usize::MAX).unwrap();
    let ours = costs(listing.routines.iter().flat_map(|r| &r.instructions));
    pprof.arg(format!("-disasm={regex}")).arg("-symbolize=local").args([binary, &path]);
    let output = pprof.env("PPROF_TMPDIR", folder).output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    // Go's disassembler splits unknown instructions into several.
    let mut theirs: Costs = ours.keys().map(|&address| (address, (0, 0))).collect();
    for (address, (flat, cum)) in output.lines().filter_map(parse_line).filter(|(_, cost)| *cost != (0, 0)) {
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
#[ignore = "slow; `tests/run all` runs it"]
fn instruction_costs_equal_pprofs_disassembly() {
    let folder = folder("disasm");
    let fixed = cpp(&folder, "fixed", "-O1 -no-pie");
    for binary in [compiled_otherwise(), &fixed] {
        assert_disassembled(&folder, binary, ".", Command::new(pprof_command()).env("HOME", &folder));
    }
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/live/main.go");
    std::fs::copy(program, folder.join("main.go")).unwrap();
    for (name, env) in [("go", ""), ("go-arm64", "GOARCH=arm64")] {
        run(&folder, &format!("env CGO_ENABLED=0 {env} go build -o {name} main.go"));
        // pprof matches its printed form of a frame, which starts with the address.
        let packages = r"\b(main|bufio|strconv|strings)\.";
        assert_disassembled(&folder, &folder.join(name), packages, &mut Command::new(golibrary::tool_pprof()));
    }
}

/// Returns the instructions with their costs that `-weblist` shows under each line of a file.
fn instructions_by_line(html: &str) -> BTreeMap<(String, i64), Costs> {
    let mut all: BTreeMap<(String, i64), Costs> = BTreeMap::new();
    for part in html.split("class=\"filename\">").skip(1) {
        let file = part.split('<').next().unwrap();
        for line in part.split("<span class=line>").skip(1) {
            let number: i64 = line.split('<').next().unwrap().trim().parse().unwrap();
            let code = line.split_once("<span class=asm>").map_or("", |(_, code)| code);
            let costs: Costs = code.lines().filter_map(parse_line).collect();
            all.entry((file.to_owned(), number)).or_default().extend(costs);
        }
    }
    all.retain(|_, costs| !costs.is_empty());
    all
}

#[test]
fn lines_expand_to_the_same_instructions_as_in_weblist() {
    let folder = folder("weblist");
    let binary = compiled();
    let (image, functions) = (load_binary(binary), functions(&folder, binary));
    let own_functions = functions.iter().filter(|(_, (_, name))| name.contains("parcels"));
    let addresses = own_functions.flat_map(|(&from, &(to, _))| (from..to).step_by(3));
    let path = folder.join("stacks.pb.gz");
    // Unlike -disasm, -weblist counts recursion twice.
    std::fs::write(&path, stacks(binary, &image, addresses, false)).unwrap();
    let profile = Arc::new(pprofdiff::open(&path, &with(binary)).unwrap());
    let listing = Diff::of_profile(&profile).unwrap().list(&Query::default(), "parcels::", &()).unwrap();
    let mut ours: BTreeMap<(String, i64), Costs> = BTreeMap::new();
    for r in listing.routines.iter().filter(|r| r.file.as_ref().is_some_and(|file| file.ends_with("/parcels.cc"))) {
        for l in r.lines.iter().filter(|l| !l.instructions.is_empty()) {
            let key = (r.file.clone().unwrap(), l.new.unwrap());
            ours.entry(key).or_default().extend(costs(&l.instructions));
        }
    }
    let page = folder.join("page.html");
    let mut pprof = Command::new(pprof_command());
    pprof.args(["-weblist=parcels::", "-symbolize=local", "-output"]).args([&page, binary, &path]);
    let output = pprof.env("PPROF_TMPDIR", &folder).env("HOME", &folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut theirs = instructions_by_line(&std::fs::read_to_string(&page).unwrap());
    // It also contains lines of the standard library whose names include ours.
    theirs.retain(|(file, _), _| file.ends_with("/parcels.cc"));
    assert!(theirs.len() > 30 && theirs.values().any(|costs| costs.len() > 30), "{}", theirs.len());
    for (line, costs) in &theirs {
        // pprof also shows instructions around each sample, including those of functions without samples.
        let mut instructions = ours.get(line).cloned().unwrap_or_default();
        costs.iter().filter(|(_, cost)| **cost == (0, 0)).for_each(|(&a, &cost)| {
            instructions.entry(a).or_insert(cost);
        });
        let differ = instructions.iter().find(|(a, cost)| costs.get(a) != Some(cost));
        assert!(
            differ.is_none() && instructions.len() == costs.len(),
            "{line:?}: {differ:x?}, {} {}",
            instructions.len(),
            costs.len()
        );
    }
    assert!(ours.keys().all(|line| theirs.contains_key(line)));
}

/// Compiles a C program. Each build has its own file `name` in the folder.
fn compile_c(folder: &Path, name: &str, code: &str) -> PathBuf {
    std::fs::write(folder.join(format!("{name}.c")), code).unwrap();
    run(folder, &format!("gcc -O1 -g -fno-inline -o {name} {name}.c"));
    folder.join(name)
}

/// Builds a profile with one sample for each address of a function.
fn samples_of(folder: &Path, binary: &Path, function: &str) -> Vec<u8> {
    let image = load_binary(binary);
    let all = functions(folder, binary);
    let (&from, &(to, _)) = all.iter().find(|(_, (_, name))| name == function).unwrap();
    super::profile(&binary.to_string_lossy(), &image.build_id, image.mapping, (from..=to).map(|a| a + image.slide))
}

const OLD: &str = "int sum(int *v, int n) { int s = 0; for (int i = 0; i < n; i++) s += v[i]; return s; }\n\
                   int work(int *v, int n) {\n  int s = sum(v, n);\n  return s ^ 5;\n}\n\
                   int main(int n, char **v) { return work((int *)v, n); }\n";

/// Returns the code of the new build. A function before `work` moves all addresses, and `work` has one more call.
fn new_code() -> String {
    let added = OLD.replace("return s ^ 5;", "s += sum(v, n / 2);\n  return s ^ 5;");
    format!("int before(int n) {{ return n * 3; }}\n{added}")
}

fn builds(name: &str) -> (PathBuf, [PathBuf; 2], Diff) {
    let folder = folder(name);
    let binaries = [compile_c(&folder, "old", OLD), compile_c(&folder, "new", &new_code())];
    let profiles = binaries.each_ref().map(|binary| {
        let bytes = samples_of(&folder, binary, "work");
        Arc::new(pprofdiff::from_bytes("p", &bytes, &with(binary)).unwrap())
    });
    let [base, new] = profiles;
    (folder, binaries, Diff::between(base, new).unwrap())
}

/// Functions that are inlined everywhere have no code of their own. The error names the functions that contain it.
#[test]
fn functions_that_are_only_inlined_name_their_callers() {
    let folder = folder("only-inlined");
    let inline = OLD.replace("int sum(", "static inline __attribute__((always_inline)) int sum(");
    let binary = compile_c(&folder, "inlined", &inline);
    let bytes = samples_of(&folder, &binary, "work");
    let diff = Diff::of_profile(&Arc::new(pprofdiff::from_bytes("p", &bytes, &with(&binary)).unwrap())).unwrap();
    let unmatched = |view: View| {
        let request = Request { view, ..Request::default() };
        request.unmatched(&request.answer(&diff).unwrap(), &diff).unwrap()
    };
    let disasm = |regex: &str| View::Disasm { regex: regex.to_owned(), limit: None };
    assert_eq!(unmatched(disasm("^sum$")).unwrap(), "sum has no instructions of its own: it is inlined into work");
    assert_eq!(unmatched(disasm("^work$")), None);
    assert!(unmatched(disasm("^summ$")).unwrap().starts_with("no function matches"));
    let notes = |regex: &str| diff.list(&Query::default(), regex, &()).unwrap().routines[0].notes.join(";");
    assert!(notes("^sum$").contains("inlined everywhere in the samples, into work"), "{}", notes("^sum$"));
    assert!(!notes("^work$").contains("inlined"), "{}", notes("^work$"));
}

#[test]
fn two_builds_are_aligned() {
    let (_, binaries, diff) = builds("builds");
    let listing = diff.disasm(&Query::default(), "^work$", usize::MAX).unwrap();
    let [work] = &listing.routines[..] else { panic!("{:?}", listing.routines) };
    let places = binaries.each_ref().map(|b| Some(b.display().to_string()));
    assert_eq!(work.places, places.into());
    let texts = |change: LineChange| -> Vec<&str> {
        work.instructions.iter().filter(|i| i.change == change).map(|i| &*i.text).collect()
    };
    let (same, inserted) = (texts(LineChange::Same), texts(LineChange::Inserted));
    let calls = |all: &[&str]| all.iter().filter(|text| text.starts_with("call ") && text.ends_with("<sum>")).count();
    assert_eq!((calls(&same), calls(&inserted)), (1, 1), "{:#?}", work.instructions);
    assert!(same.iter().any(|text| text.starts_with("xor $0x5,")) && same.contains(&"ret"));
    // Each byte is a sample, so the cost of an instruction is its length, on each side that contains it.
    let mut last = (None, None);
    for i in &work.instructions {
        let (base, new) = (i.base.is_some(), i.new.is_some());
        assert!((i.flat.base > 0) == base && (i.flat.new > 0) == new && (base || new), "{i:?}");
        assert_eq!(base && new, i.change == LineChange::Same);
        assert!(!(base && new) || i.base != i.new, "nothing moved: {i:?}");
        assert!(i.base.is_none_or(|a| last.0 < Some(a)) && i.new.is_none_or(|a| last.1 < Some(a)));
        last = (i.base.or(last.0), i.new.or(last.1));
    }
    let sum = |value: fn(&ListedInstruction) -> i64| work.instructions.iter().map(value).sum::<i64>();
    assert_eq!((work.flat.base, work.flat.new), (sum(|i| i.flat.base), sum(|i| i.flat.new)));
    // The instructions below source lines have the same sums. Each line is aligned separately, because without a source
    // corresponding lines are unknown.
    let listing = diff.list(&Query::default(), "^work$", &()).unwrap();
    let under: Vec<&ListedInstruction> = listing.routines[0].lines.iter().flat_map(|l| &l.instructions).collect();
    let sum = |value: fn(&ListedInstruction) -> i64| under.iter().map(|i| value(i)).sum::<i64>();
    assert_eq!((work.flat.base, work.flat.new), (sum(|i| i.flat.base), sum(|i| i.flat.new)));
}

/// Only one side has samples. The code of the other side is shown as well.
#[test]
fn code_without_samples_is_found() {
    let (folder, [old, new], _) = builds("unsampled");
    let [base, new] = [(&old, "main"), (&new, "work")].map(|(binary, function)| {
        let bytes = samples_of(&folder, binary, function);
        Arc::new(pprofdiff::from_bytes("p", &bytes, &with(binary)).unwrap())
    });
    let listing = Diff::between(base, new).unwrap().disasm(&Query::default(), "^work$", usize::MAX).unwrap();
    let work = &listing.routines[0];
    assert_eq!((work.status.name(), work.flat.base), ("added", 0));
    let ret = work.instructions.iter().find(|i| i.text == "ret").unwrap();
    assert!(ret.change == LineChange::Same && ret.base.is_some() && ret.base != ret.new, "{ret:?}");
}

#[test]
fn missing_binaries_are_named_by_side() {
    let (folder, [old, new], _) = builds("missing");
    let open = |binary: &Path, options: &LoadOptions| {
        let bytes = samples_of(&folder, binary, "work");
        Arc::new(pprofdiff::from_bytes("p", &bytes, options).unwrap())
    };
    let (unnamed, named) = (LoadOptions::default(), with(&new));
    let refused = |diff: &Diff| diff.disasm(&Query::default(), "work", 1).unwrap_err().to_string();
    let words = |binary: &Path| format!("{}, build id {}", binary.display(), load_binary(binary).build_id);
    let base = Diff::between(open(&old, &unnamed), open(&new, &named)).unwrap();
    assert_eq!(
        refused(&base),
        format!(
            "the instructions are in binaries that are missing: of the base {}; name them with --base-binary and \
             --new-binary, or --binary for both",
            words(&old)
        )
    );
    let both = refused(&Diff::between(open(&old, &unnamed), open(&new, &unnamed)).unwrap());
    assert!(both.contains(&words(&old)) && both.contains(&format!("of the new side {}", words(&new))), "{both}");
    let one = refused(&Diff::of_profile(&open(&new, &unnamed)).unwrap());
    assert!(one.ends_with(&format!("missing: {}; name them with --binary", words(&new))), "{one}");
    // The same error appears for a profile that already has names.
    let named = open(&new, &named).to_bytes(&WriteOptions::default()).unwrap();
    let named = Arc::new(pprofdiff::from_bytes("p", &named, &unnamed).unwrap());
    let one = refused(&Diff::of_profile(&named).unwrap());
    assert!(one.contains(&words(&new)), "{one}");
    // Its source lines are listed without instructions.
    let listing = Diff::of_profile(&named).unwrap().list(&Query::default(), "work", &()).unwrap();
    assert!(listing.routines[0].lines.iter().all(|l| l.instructions.is_empty()));
}

/// Two static functions with the same name in different files. They are paired by file, and each has its own
/// instructions.
#[test]
fn functions_with_the_same_name_are_paired_by_file() {
    let folder = folder("names");
    for (file, times) in [("a", 3), ("b", 5)] {
        let code =
            format!("static int cmp(int x) {{\n  return x * {times};\n}}\nint {file}(int x) {{ return cmp(x); }}\n");
        std::fs::write(folder.join(format!("{file}.c")), code).unwrap();
    }
    std::fs::write(
        folder.join("main.c"),
        "int a(int); int b(int);\nint main(int n, char **v) { return a(n) + b(n); }\n",
    )
    .unwrap();
    // The new build links the files in the opposite order.
    let build = |name: &str, files: &str| {
        run(&folder, &format!("gcc -O1 -g -fno-inline -fno-ipa-icf -o {name} main.c {files}"));
        folder.join(name)
    };
    let open = |binary: &Path| {
        let (image, all) = (load_binary(binary), functions(&folder, binary));
        let addresses = all.iter().filter(|(_, (_, name))| name == "cmp").map(|(&from, _)| from + image.slide);
        let bytes = super::profile(&binary.to_string_lossy(), &image.build_id, image.mapping, addresses);
        Arc::new(pprofdiff::from_bytes("p", &bytes, &with(binary)).unwrap())
    };
    let diff = Diff::between(open(&build("old", "a.c b.c")), open(&build("new", "b.c a.c"))).unwrap();
    let listing = diff.disasm(&Query::default(), "^cmp$", usize::MAX).unwrap();
    assert_eq!(listing.routines.len(), 2);
    for r in &listing.routines {
        assert!(
            (r.flat.base, r.flat.new) == (1, 1) && r.instructions.iter().all(|i| i.change == LineChange::Same),
            "{r:#?}"
        );
    }
    let lines = diff.list(&Query::default(), "^cmp$", &()).unwrap();
    let under = |r: &Routine| r.lines.iter().map(|l| l.instructions.len()).sum::<usize>();
    assert_eq!(lines.routines.iter().map(under).collect::<Vec<_>>(), [1, 1], "the line of each, but for its ret");
}

/// A renamed file, and a processor whose code cannot be decoded: the lines are still listed.
#[test]
fn lines_are_listed_even_without_instructions() {
    let folder = folder("renamed");
    let binaries = [compile_c(&folder, "x1", OLD), compile_c(&folder, "y1", OLD)];
    let [base, new] = binaries.each_ref().map(|binary| {
        Arc::new(pprofdiff::from_bytes("p", &samples_of(&folder, binary, "work"), &with(binary)).unwrap())
    });
    let listing = Diff::between(base, new).unwrap().list(&Query::default(), "^work$", &()).unwrap();
    let code: Vec<&ListedInstruction> = listing.routines[0].lines.iter().flat_map(|l| &l.instructions).collect();
    assert!(code.len() > 2 && code.iter().all(|i| i.change == LineChange::Same), "{code:#?}");

    let mut other = std::fs::read(&binaries[0]).unwrap();
    other[18] = 243; // RISC-V
    let path = folder.join("other");
    std::fs::write(&path, other).unwrap();
    let bytes = samples_of(&folder, &binaries[0], "work");
    let profile = Arc::new(pprofdiff::from_bytes("p", &bytes, &with(&path)).unwrap());
    let diff = Diff::of_profile(&profile).unwrap();
    let listing = diff.list(&Query::default(), "^work$", &()).unwrap();
    assert!(listing.routines[0].lines.iter().all(|l| l.instructions.is_empty()));
    assert!(listing.summary.warnings[0].contains("it is for Riscv64"), "{:?}", listing.summary.warnings);
    assert!(diff.disasm(&Query::default(), "work", 1).unwrap_err().to_string().contains("it is for Riscv64"));
}

/// Samples in a missing library are not attributed to the program, although the program is available.
#[test]
fn samples_of_a_missing_library_are_not_attributed_to_the_program() {
    let folder = folder("library");
    let binary = compile_c(&folder, "app", OLD);
    let image = load_binary(&binary);
    let (&work, _) =
        functions(&folder, &binary).iter().find(|(_, (_, name))| name == "work").map(|(a, f)| (a, f.clone())).unwrap();
    let open = |in_work: bool| {
        let mut builder = ProfileBuilder::new();
        builder.sample_type("samples", "count");
        let [app, lib, none] = ["/opt/app", "/lib/libx.so", ""].map(|text| builder.string(text));
        let app = builder.mapping(pprofdiff::columns::Mapping { file: app, build_id: none, ..image.mapping });
        let elsewhere = super::mapping(0x5000_0000, 0x10_0000);
        let lib = builder.mapping(pprofdiff::columns::Mapping { file: lib, build_id: none, ..elsewhere });
        let mut sample = |mapping, address| {
            let location = builder.location(Some(mapping), address, &[]).unwrap();
            builder.sample(&[location], &[1], &[]).unwrap();
        };
        sample(lib, 0x5000_1000);
        if in_work {
            sample(app, work + image.slide);
        }
        let bytes = builder.build("made").unwrap().to_bytes(&WriteOptions::default()).unwrap();
        Arc::new(pprofdiff::from_bytes("p", &bytes, &with(&binary)).unwrap())
    };
    let listing = Diff::between(open(false), open(true)).unwrap().disasm(&Query::default(), "work", 9).unwrap();
    assert_eq!((listing.routines.len(), listing.routines[0].flat.new), (1, 1));
    assert!(listing.summary.warnings.iter().any(|w| w.contains("/lib/libx.so")), "{:?}", listing.summary.warnings);
    let of_lib = Diff::of_profile(&open(false)).unwrap().disasm(&Query::default(), ".", 9);
    assert!(of_lib.unwrap_err().to_string().contains("/lib/libx.so"));
}
