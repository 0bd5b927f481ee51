//! Names and lines from binaries. google/pprof, built and run live, gives the expected frames for C++, Rust and Go
//! programs; Go's own tools give those for other operating systems. Also tested: which binary is chosen, the warnings
//! if there is no match, and damaged binaries.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use object::{Object, ObjectKind, ObjectSection, ObjectSegment, SectionKind};
use pprofdiff::binary::Binaries;
use pprofdiff::builder::ProfileBuilder;
use pprofdiff::columns::Mapping;
use pprofdiff::{Diff, ErrorKind, LoadOptions, Profile, Query, Source, WriteOptions};

use crate::{golibrary, oracle, tools};

mod code;
mod go;
mod programs;

use programs::{compiled, compiled_otherwise, cpp, parcels};

/// Creates an empty folder for files that a test builds.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("symbols-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn run(folder: &Path, words: &str) -> String {
    let mut words = words.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words.clone()).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A binary as a loader would map it: its mapping, and the offset from its own addresses.
struct LoadedBinary {
    mapping: Mapping,
    slide: u64,
    text: std::ops::Range<u64>,
    build_id: String,
}

/// Maps a binary like a program loader: the segment with the code, in whole pages, at any address if the binary is
/// position-independent.
fn load_binary(binary: &Path) -> LoadedBinary {
    let bytes = std::fs::read(binary).unwrap();
    let object = object::File::parse(&*bytes).unwrap();
    let text = object.sections().filter(|s| s.kind() == SectionKind::Text).max_by_key(|s| s.size()).unwrap();
    let holds = |s: &object::Segment<'_, '_>| (s.address()..s.address() + s.size()).contains(&text.address());
    let segment = object.segments().find(holds).unwrap();
    let page = segment.address() & !0xfff;
    let slide = if object.kind() == ObjectKind::Dynamic { 0x7f00_1234_5000 } else { 0 };
    let size = (segment.size() + 0x1fff) & !0xfff;
    let mapping = Mapping { offset: segment.file_range().0 & !0xfff, ..mapping(page + slide, size) };
    let build_id = object.build_id().unwrap().unwrap_or_default().iter().map(|b| format!("{b:02x}")).collect();
    LoadedBinary { mapping, slide, text: text.address()..text.address() + text.size(), build_id }
}

/// Returns a mapping without a file name or build id.
fn mapping(start: u64, size: u64) -> Mapping {
    let none = ProfileBuilder::new().string("");
    Mapping { start, limit: start + size, offset: 0, file: none, build_id: none, flags: 0 }
}

/// Builds a profile with one mapping and one sample for each address.
fn profile(file: &str, build_id: &str, mapping: Mapping, addresses: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut builder = ProfileBuilder::new();
    builder.sample_type("cpu", "nanoseconds");
    let (file, build_id) = (builder.string(file), builder.string(build_id));
    let mapping = builder.mapping(Mapping { file, build_id, ..mapping });
    for address in addresses {
        let location = builder.location(Some(mapping), address, &[]).unwrap();
        builder.sample(&[location], &[1], &[]).unwrap();
    }
    builder.build("made").unwrap().to_bytes(&WriteOptions::default()).unwrap()
}

/// Returns pseudo-random addresses in the code, the same in each run.
fn pseudo_random_addresses(text: &std::ops::Range<u64>, n: usize) -> impl Iterator<Item = u64> + use<> {
    let (begin, size) = (text.start, text.end - text.start);
    let mut state = 88_172_645_463_325_252u64;
    (0..n).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        begin + state % size
    })
}

/// A frame: name, system name, file, line, column, and first line of the function.
type Frame = (String, String, String, i64, i64, i64);

/// Returns the frames of each address, innermost first, in a form that both tools share. Frames without a name and a
/// file are dropped, columns without a line are zeroed, and the leading `./` is removed because Go's paths have it
/// once, twice or not at all.
fn frames(profile: &Profile) -> BTreeMap<u64, Vec<Frame>> {
    let (locations, functions) = (profile.locations(), profile.functions());
    let location_frames = |l: u32| {
        let frame = |line: u32| {
            let (line, f) = (line as usize, locations.line_function[line as usize] as usize);
            let text = |id| profile.text(id);
            let number = locations.line_number[line];
            let column = if number == 0 { 0 } else { locations.line_column[line] };
            let file = text(functions.file[f]);
            let file = file.trim_start_matches("./").to_owned();
            (text(functions.name[f]), text(functions.system_name[f]), file, number, column, functions.start_line[f])
        };
        let has_name = |f: &Frame| !f.0.is_empty() || !f.2.is_empty();
        (locations.address[l as usize], locations.lines(l).map(frame).filter(has_name).collect())
    };
    (0..locations.len() as u32).map(location_frames).collect()
}

fn with(binary: &Path) -> LoadOptions {
    LoadOptions::default().with_binaries(Binaries::new(vec![binary.to_owned()], vec![binary.to_owned()]))
}

/// Builds google/pprof, once.
fn pprof_command() -> &'static Path {
    static PPROF: OnceLock<PathBuf> = OnceLock::new();
    PPROF.get_or_init(|| golibrary::build("symbols").join("oracle"))
}

/// Symbolizes the profile with google/pprof.
fn symbolize_with_pprof(folder: &Path, binary: &Path, profile: &Path) -> Profile {
    let out = folder.join("judged.pb.gz");
    let output = Command::new(pprof_command())
        .args(["-proto", "-symbolize=local", "-output"])
        .args([&out, binary, profile])
        .env("PPROF_TMPDIR", folder)
        .env("HOME", folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    pprofdiff::open(&out, &LoadOptions::default()).unwrap()
}

/// Checks that `n` addresses have the same frames as in google/pprof.
fn assert_frames_equal_pprofs(folder: &Path, binary: &Path, n: usize) {
    let image = load_binary(binary);
    let bytes = profile(
        &binary.to_string_lossy(),
        &image.build_id,
        image.mapping,
        pseudo_random_addresses(&image.text, n).map(|address| address + image.slide),
    );
    let path = folder.join("profile.pb.gz");
    std::fs::write(&path, &bytes).unwrap();
    let ours = pprofdiff::open(&path, &with(binary)).unwrap();
    assert_eq!(ours.warnings(), Vec::<String>::new());
    let (ours, theirs) = (frames(&ours), frames(&symbolize_with_pprof(folder, binary, &path)));
    assert_eq!(ours.len(), theirs.len());
    let same = |(ours, theirs): (&Frame, &Frame)| {
        // pprof reverses the numbers of closures in v0 names, or leaves such names mangled (see `demangle`).
        let is_known_difference = theirs.0.contains("{closure#") || theirs.0.starts_with("_R");
        (ours.0 == theirs.0 || is_known_difference)
            && (&ours.1, &ours.2, ours.3, ours.4, ours.5) == (&theirs.1, &theirs.2, theirs.3, theirs.4, theirs.5)
    };
    let all_same = |ours: &[Frame], theirs: &[Frame]| ours.len() == theirs.len() && ours.iter().zip(theirs).all(same);
    let differ = ours.iter().find(|(address, frames)| !all_same(frames, &theirs[address]));
    let shown = differ.map(|(address, frames)| format!("{address:x}: {frames:#?}\npprof: {:#?}", theirs[address]));
    assert!(shown.is_none(), "{}: {}", binary.display(), shown.unwrap_or_default());
    let (named, inlined) =
        (ours.values().filter(|f| !f.is_empty()).count(), ours.values().filter(|f| f.len() > 1).count());
    assert!(named > n / 2 && (inlined > n / 10 || binary.ends_with("symbols-only")), "{named} {inlined} of {n}");
}

/// Checks that `n` addresses have the same frames as in the same program with another form of debug information.
fn assert_same(binary: &Path, original: &Path, n: usize) {
    let image = load_binary(original);
    let bytes = profile(
        "/app",
        &image.build_id,
        image.mapping,
        pseudo_random_addresses(&image.text, n).map(|address| address + image.slide),
    );
    let [ours, theirs] = [binary, original].map(|binary| {
        let p = pprofdiff::from_bytes("p", &bytes, &with(binary)).unwrap();
        assert_eq!(p.warnings(), Vec::<String>::new(), "{}", binary.display());
        frames(&p)
    });
    assert_alike(&binary.display().to_string(), &ours, &theirs);
    assert!(ours.values().filter(|f| f.len() > 1 && f[0].3 > 0).count() > n / 10, "{}", binary.display());
}

/// Fails with the first frame that differs.
fn assert_alike(name: &str, ours: &BTreeMap<u64, Vec<Frame>>, theirs: &BTreeMap<u64, Vec<Frame>>) {
    let differ = ours.iter().zip(theirs).find(|(ours, theirs)| ours != theirs);
    assert!(ours.len() == theirs.len() && differ.is_none(), "{name}: {differ:#x?}");
}

fn is_llvm_installed(test: &str) -> bool {
    tools::have("llvm-symbolizer", "--version", "llvm", test)
}

#[test]
#[ignore = "slow; `tests/run all` runs it"]
fn names_and_lines_of_cpp_programs_equal_pprofs() {
    if !is_llvm_installed("symbols::names_and_lines_of_cpp_programs_equal_pprofs") {
        return;
    }
    let folder = folder("cpp");
    // A second compilation unit that differs only in its line numbers, so that an address of one is also valid in the
    // other.
    let source = std::fs::read_to_string(parcels()).unwrap();
    assert!(source.contains("int main("));
    std::fs::write(folder.join("moved.cc"), format!("\n\n\n{}", source.replace("int main(", "void other("))).unwrap();
    for (name, options) in [
        ("dwarf2", "-O2 -gdwarf-2"),
        ("dwarf4", "-O2 -gdwarf-4"),
        ("dwarf5", "-O2 -gdwarf-5"),
        ("fixed-without-id", "-O2 -gdwarf-3 -no-pie -Wl,--build-id=none"),
        ("split", "-O2 -g -gsplit-dwarf moved.cc"),
        ("linked-late", "-O2 -g -flto"),
    ] {
        assert_frames_equal_pprofs(&folder, &cpp(&folder, name, options), 1000);
    }
    for (name, how) in [
        ("packed", "--compress-debug-sections=zlib"),
        ("packed-gnu", "--compress-debug-sections=zlib-gnu"),
        ("symbols-only", "--strip-debug"),
    ] {
        run(&folder, &format!("objcopy {how} dwarf5 {name}"));
        assert_frames_equal_pprofs(&folder, &folder.join(name), 1000);
    }
    run(&folder, "llvm-dwp -e split -o split.dwp");
    for unit in ["moved", "parcels"] {
        std::fs::remove_file(folder.join(format!("split-{unit}.dwo"))).unwrap();
    }
    assert_frames_equal_pprofs(&folder, &folder.join("split"), 1000);
    // The llvm of some distributions cannot read zstd sections, so the expected frames come from the unpacked binary.
    run(&folder, "objcopy --compress-debug-sections=zstd dwarf5 packed-zstd");
    assert_same(&folder.join("packed-zstd"), &folder.join("dwarf5"), 1000);
}

#[test]
fn shared_debug_information_is_complete() {
    if !tools::have("dwz", "--version", "dwz", "symbols::shared_debug_information_is_complete") {
        return;
    }
    let folder = folder("shared");
    let originals = [moved_program(&folder).0, another_build(&folder).0];
    let binaries = ["one", "two"].map(|name| folder.join(name));
    for (original, binary) in originals.iter().zip(&binaries) {
        std::fs::copy(original, binary).unwrap();
    }
    run(&folder, "dwz -m shared one two");
    for (original, binary) in originals.iter().zip(&binaries) {
        let bytes = std::fs::read(binary).unwrap();
        assert!(object::File::parse(&*bytes).unwrap().gnu_debugaltlink().unwrap().is_some());
        assert_same(binary, original, 2000);
    }
}

#[test]
fn names_and_lines_of_rust_and_go_programs_equal_pprofs() {
    if !is_llvm_installed("symbols::names_and_lines_of_rust_and_go_programs_equal_pprofs") {
        return;
    }
    let folder = folder("rust-go");
    let source = "fn main() { let mut words: Vec<String> = std::env::args().collect(); words.sort(); \
                  println!(\"{:?}\", words.iter().map(|w| w.len()).sum::<usize>()); }";
    std::fs::write(folder.join("words.rs"), source).unwrap();
    for (name, options) in [("rust", "-O -g"), ("rust-v0", "-O -g -Csymbol-mangling-version=v0")] {
        run(&folder, &format!("rustc {options} -o {name} words.rs"));
        assert_frames_equal_pprofs(&folder, &folder.join(name), 2000);
    }
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/live/main.go");
    std::fs::copy(program, folder.join("main.go")).unwrap();
    for (name, options) in [("go", ""), ("go-pie", "-buildmode=pie")] {
        run(&folder, &format!("go build {options} -o {name} main.go"));
        assert_frames_equal_pprofs(&folder, &folder.join(name), 2000);
    }
}

#[test]
#[ignore = "slow; `tests/run all` runs it"]
fn names_and_lines_of_programs_for_other_systems_equal_gos_tools() {
    let folder = folder("systems");
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/live/main.go");
    std::fs::copy(program, folder.join("main.go")).unwrap();
    for (system, machine) in [("darwin", "arm64"), ("windows", "amd64"), ("linux", "arm64")] {
        let name = format!("{system}-{machine}");
        let build = format!("env CGO_ENABLED=0 GOOS={system} GOARCH={machine} go build");
        run(&folder, &format!("{build} -o {name} main.go"));
        let symbols = run(&folder, &format!("go tool nm -size {name}"));
        let functions: Vec<(u64, &str)> = symbols
            .lines()
            .filter_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
                [address, size, "T" | "t", name] if size != "0" => {
                    Some((u64::from_str_radix(address, 16).unwrap(), name))
                }
                _ => None,
            })
            .filter(|(_, name)| !name.contains("..") && !name.starts_with("runtime.text") && !name.starts_with("go:"))
            .step_by(7)
            .collect();
        assert!(functions.len() > 300, "{name}: {}", functions.len());
        let bytes = profile("/app", "", mapping(0, 0), functions.iter().map(|f| f.0));
        let frames_of = |name: &str| frames(&pprofdiff::from_bytes("p", &bytes, &with(&folder.join(name))).unwrap());
        let ours = frames_of(&name);
        // The linker compresses debug information. Uncompressed output must give the same frames. Without this check a
        // failure to inflate would go unnoticed, because Go's own tables have almost the same names.
        run(&folder, &format!("{build} -ldflags=-compressdwarf=false -o plain main.go"));
        assert_alike(&name, &ours, &frames_of("plain"));
        let asked: String = functions.iter().map(|f| format!("{:x}\n", f.0)).collect();
        std::fs::write(folder.join("asked"), asked).unwrap();
        std::fs::write(folder.join("ask"), format!("go tool addr2line {name} < asked\n")).unwrap();
        let output = run(&folder, "sh ask");
        let output: Vec<&str> = output.lines().collect();
        assert_eq!(output.len(), 2 * functions.len(), "{name}");
        let (mut lines, mut others) = (0, Vec::new());
        for ((address, function), output) in functions.iter().zip(output.chunks(2)) {
            let stack = &ours[address];
            let outermost = stack.last().unwrap_or_else(|| panic!("{name}: nothing for {function}"));
            // Mach-O adds an underscore to C names, which pprofdiff removes.
            let plain = |name: &str| name.trim_start_matches('_').to_owned();
            assert_eq!(plain(&outermost.1), plain(function), "{name} {address:x}");
            let innermost = &stack[0];
            let place = format!("{}:{}", innermost.2.rsplit('/').next().unwrap(), innermost.3);
            // The DWARF of Mach-O has no lines for compiler-generated code.
            match output[1].ends_with(&place) || (output[1] == "<autogenerated>:1" && place == ":0") {
                true => lines += 1,
                false => others.push((function, place, output[1])),
            }
        }
        // Go's line table and its DWARF may differ where a function is inlined at the first address.
        assert!(lines * 100 >= functions.len() * 97, "{name}: {lines} of {} lines: {others:?}", functions.len());
    }
}

/// Returns the program, and a profile recorded as if the program were at `/opt/parcels`.
fn moved_program(folder: &Path) -> (PathBuf, LoadedBinary, Vec<u8>) {
    relocate(compiled(), folder)
}

/// Like [`moved_program`], for another build of the program.
fn another_build(folder: &Path) -> (PathBuf, LoadedBinary, Vec<u8>) {
    relocate(compiled_otherwise(), folder)
}

fn relocate(built: &Path, folder: &Path) -> (PathBuf, LoadedBinary, Vec<u8>) {
    let binary = folder.join(built.file_name().unwrap());
    std::fs::copy(built, &binary).unwrap();
    let image = load_binary(&binary);
    let bytes = profile(
        "/opt/parcels",
        &image.build_id,
        image.mapping,
        pseudo_random_addresses(&image.text, 50).map(|a| a + image.slide),
    );
    (binary, image, bytes)
}

fn names(profile: &Profile) -> usize {
    frames(profile).values().filter(|f| !f.is_empty()).count()
}

#[test]
fn binaries_are_searched_as_pprof_searches_them() {
    let folder = folder("search");
    let (binary, image, bytes) = moved_program(&folder);
    let id = image.build_id;
    let load = |place: &Path| {
        let binaries = Binaries::default().with_folders(vec![folder.join("nothing"), place.to_owned()]);
        pprofdiff::from_bytes("p", &bytes, &LoadOptions::default().with_binaries(binaries)).unwrap()
    };
    let named = names(&load(&folder));
    assert!(named > 40, "{named}");
    for place in [
        format!("{id}/any name"),
        id.clone(),
        format!("{}/{}.debug", &id[..2], &id[2..]),
        "parcels".to_owned(),
        "opt/parcels".to_owned(),
    ] {
        let root = folder.join("root");
        let _ = std::fs::remove_dir_all(&root);
        std::fs::create_dir_all(root.join(&place).parent().unwrap()).unwrap();
        std::fs::copy(&binary, root.join(&place)).unwrap();
        assert_eq!(names(&load(&root)), named, "{place}");
    }
    // A folder that is given as a binary is searched in the same way.
    let p = pprofdiff::from_bytes("p", &bytes, &with(&folder.join("root"))).unwrap();
    assert_eq!((names(&p), p.warnings()), (named, Vec::new()));
    // Debug information may be in a separate file, found by build id or by the name in the binary.
    run(&folder, "objcopy --only-keep-debug parcels parcels.debug");
    run(&folder, "objcopy --strip-all --add-gnu-debuglink=parcels.debug parcels stripped");
    assert_eq!(frames(&pprofdiff::from_bytes("p", &bytes, &with(&folder.join("stripped"))).unwrap()), frames(&p));
    std::fs::create_dir_all(folder.join(format!("debug/{}", &id[..2]))).unwrap();
    std::fs::rename(folder.join("parcels.debug"), folder.join(format!("debug/{}/{}.debug", &id[..2], &id[2..])))
        .unwrap();
    let stripped = Binaries::new(Vec::new(), vec![folder.join("stripped"), folder.join("debug")]);
    let options = LoadOptions::default().with_binaries(stripped);
    let without_symbols = |p: &Profile| {
        frames(p).into_values().map(|f| f.into_iter().map(|f| (f.2, f.3)).collect()).collect::<Vec<Vec<_>>>()
    };
    assert_eq!(without_symbols(&pprofdiff::from_bytes("p", &bytes, &options).unwrap()), without_symbols(&p));
}

#[test]
fn debug_link_of_a_binary_without_a_build_id_is_checked_by_its_checksum() {
    let folder = folder("checksum");
    let (_, _, bytes) = moved_program(&folder);
    run(&folder, "objcopy --remove-section=.note.gnu.build-id parcels bare");
    assert_eq!(load_binary(&folder.join("bare")).build_id, "");
    run(&folder, "objcopy --only-keep-debug bare bare.debug");
    run(&folder, "objcopy --strip-all --add-gnu-debuglink=bare.debug bare stripped");
    let load = || names(&pprofdiff::from_bytes("p", &bytes, &with(&folder.join("stripped"))).unwrap());
    assert!(load() > 40, "{}", load());
    // Another build, also without a build id: its functions may be anywhere else.
    let mut other = std::fs::read(folder.join("bare.debug")).unwrap();
    other.push(0);
    std::fs::write(folder.join("bare.debug"), other).unwrap();
    assert_eq!(load(), 0);
}

#[test]
fn another_build_is_refused() {
    let folder = folder("builds");
    let (binary, image, bytes) = moved_program(&folder);
    let (other, other_image, new) = another_build(&folder);
    let refused = pprofdiff::from_bytes("p.pb", &bytes, &with(&other)).unwrap_err();
    let error = refused.to_string();
    assert_eq!(refused.kind(), ErrorKind::Incompatible);
    for part in ["p.pb: ", "/opt/parcels", &image.build_id, &other_image.build_id, "--any-build"] {
        assert!(error.contains(part), "{error}");
    }
    let both = vec![other.clone(), binary.clone()];
    let insisted = Binaries::new(Vec::new(), vec![other.clone()]).with_any_build(true);
    let load = |binaries| pprofdiff::from_bytes("p", &bytes, &LoadOptions::default().with_binaries(binaries)).unwrap();
    assert!(names(&load(insisted)) > 0);
    // The binaries of both sides may be given in any order. Each side takes the binary with its build id.
    let sides = [&bytes, &new].map(|b| [Source::Bytes("side".to_owned(), b.clone())]);
    let options = LoadOptions::default().with_binaries(Binaries::new(both.clone(), both));
    let diff = Diff::load(&sides[0], &sides[1], &options).unwrap();
    let alone = [(&bytes, &binary), (&new, &other)]
        .map(|(b, binary)| frames(&pprofdiff::from_bytes("p", b, &with(binary)).unwrap()));
    let together = [diff.base().next().unwrap(), diff.new_side().next().unwrap()].map(|p| frames(p));
    assert_eq!(together, alone);
    // Without build ids, each side needs its own binary.
    let anonymous = |bytes: &[u8], image: &LoadedBinary| {
        let p = pprofdiff::from_bytes("p", bytes, &LoadOptions::default()).unwrap();
        let addresses = p.locations().address.clone();
        [Source::Bytes("side".to_owned(), profile("", "", image.mapping, addresses))]
    };
    let options = LoadOptions::default().with_binaries(Binaries::new(vec![binary], vec![other]));
    let diff = Diff::load(&anonymous(&bytes, &image), &anonymous(&new, &other_image), &options).unwrap();
    assert_eq!([diff.base().next().unwrap(), diff.new_side().next().unwrap()].map(|p: &Arc<Profile>| frames(p)), alone);
}

#[test]
fn profiles_of_a_baseline_use_the_base_binaries() {
    let folder = folder("baseline");
    let (base, new) = (moved_program(&folder), another_build(&folder));
    std::fs::write(folder.join("base.pb"), base.2).unwrap();
    std::fs::write(folder.join("new.pb"), new.2).unwrap();
    let command = env!("CARGO_BIN_EXE_pprofdiff");
    let binaries = "--base-binary parcels --new-binary other";
    // The stored profile has addresses only.
    run(&folder, &format!("{command} check base.pb --baseline store --store --fail-on total>+10%"));
    let check = format!("{command} check new.pb --baseline store {binaries} --fail-on total>+10%");
    let report: serde_json::Value =
        serde_json::from_str(&run(&folder, &format!("{check} --format json --report checked.folded"))).unwrap();
    assert_eq!(
        (report["base"]["paths"].as_array().unwrap().len(), report["warnings"].to_string()),
        (1, "[]".to_owned())
    );
    run(&folder, &format!("{command} base.pb new.pb {binaries} -o compared.folded"));
    let [checked, compared] =
        ["checked", "compared"].map(|name| std::fs::read_to_string(folder.join(format!("{name}.folded"))).unwrap());
    assert!(compared.contains("parcels::"), "{compared}");
    assert_eq!(checked, compared);
}

#[test]
fn a_missing_binary_is_a_warning_with_its_name_and_build_id() {
    let folder = folder("missing");
    let (_, image, bytes) = moved_program(&folder);
    let words = format!("/opt/parcels, build id {}", image.build_id);
    let warning = |options: &LoadOptions| pprofdiff::from_bytes("p.pb", &bytes, options).unwrap().warnings();
    let warnings = warning(&LoadOptions::default());
    assert!(warnings.len() == 1 && warnings[0].contains(&words) && warnings[0].contains("--binary"), "{warnings:?}");
    let empty = folder.join("empty");
    std::fs::create_dir(&empty).unwrap();
    let warnings = warning(&with(&empty));
    assert!(warnings.len() == 1 && warnings[0].contains(&words) && warnings[0].contains("not found"), "{warnings:?}");
    // A file with the right name but another build id is not used. The warning names its build id.
    let (other, other_image, _) = another_build(&folder);
    std::fs::copy(other, empty.join("parcels")).unwrap();
    let warnings = warning(&with(&empty));
    assert!(
        warnings.len() == 1 && warnings[0].contains(&words) && warnings[0].contains(&other_image.build_id),
        "{warnings:?}"
    );
    for (given, kind, message) in [
        (folder.join("nowhere"), ErrorKind::Io, "nowhere"),
        (PathBuf::from("/dev/zero"), ErrorKind::Query, "regular file"),
        (parcels(), ErrorKind::Malformed, "ELF"),
    ] {
        let error = pprofdiff::from_bytes("p", &bytes, &with(&given)).unwrap_err();
        assert!(error.kind() == kind && error.to_string().contains(message), "{error}");
    }
}

#[test]
fn legacy_profiles_are_symbolized() {
    let folder = folder("older");
    let (binary, image, _) = moved_program(&folder);
    let stacks: Vec<String> =
        pseudo_random_addresses(&image.text, 40).map(|a| format!("1: 100 [2: 200] @ {:#x}", a + image.slide)).collect();
    let m = image.mapping;
    let text = format!(
        "heap profile: 40: 4000 [80: 8000] @ heap_v2/1\n{}\n\nMAPPED_LIBRARIES:\n{:x}-{:x} r-xp {:08x} 08:01 7 {}\n",
        stacks.join("\n"),
        m.start,
        m.limit,
        m.offset,
        binary.display()
    );
    let path = folder.join("heap.txt");
    std::fs::write(&path, text).unwrap();
    let ours = pprofdiff::open(&path, &with(&binary)).unwrap();
    assert!(names(&ours) > 30, "{}", names(&ours));
    if is_llvm_installed("symbols::legacy_profiles_are_symbolized") {
        assert_eq!(frames(&ours), frames(&symbolize_with_pprof(&folder, &binary, &path)));
    }
}

#[test]
fn opentelemetry_profiles_are_symbolized_like_profile_proto() {
    let folder = folder("otlp");
    let (binary, image, as_pprof) = moved_program(&folder);
    let expected = pprofdiff::from_bytes("pprof", &as_pprof, &with(&binary)).unwrap();
    let addresses: Vec<String> = frames(&expected).keys().map(u64::to_string).collect();
    let (m, n) = (image.mapping, addresses.len());
    let message = serde_json::json!({
        "resourceProfiles": [{"scopeProfiles": [{"profiles": [{"samples":
            (1..=n).map(|i| serde_json::json!({"stackIndex": i, "values": [1]})).collect::<Vec<_>>()}]}]}],
        "dictionary": {
            "stringTable": ["", "process.executable.build_id.gnu", image.build_id, "/opt/elsewhere"],
            "attributeTable": [{}, {"keyStrindex": 1, "value": {"stringValueStrindex": 2}}],
            "mappingTable": [{}, {"memoryStart": m.start.to_string(), "memoryLimit": m.limit.to_string(),
                "fileOffset": m.offset.to_string(), "filenameStrindex": 3, "attributeIndices": [1]}],
            "locationTable": std::iter::once(serde_json::json!({}))
                .chain(addresses.iter().map(|a| serde_json::json!({"mappingIndex": 1, "address": a}))).collect::<Vec<_>>(),
            "stackTable": (0..=n).map(|i| serde_json::json!({"locationIndices": [i]})).collect::<Vec<_>>(),
        },
    });
    let ours = pprofdiff::from_bytes("otlp", message.to_string().as_bytes(), &with(&binary)).unwrap();
    assert!(names(&ours) > 20, "{}", names(&ours));
    let mut our_frames = frames(&ours);
    our_frames.remove(&0); // the location that stands for none
    assert_eq!(our_frames, frames(&expected));
}

/// The addresses share a name of a megabyte. Hashing it again for each address would take 18 ms each.
#[test]
fn a_long_shared_name_is_hashed_once() {
    let folder = folder("long");
    let time = |len: usize| {
        let f = format!("f{}", "x".repeat(len));
        let text = format!(
            "int {f}(int x) {{\n{}return x; }}\nint main() {{ return {f}(1); }}\n",
            "x = x * 3 + 1;\n".repeat(900)
        );
        std::fs::write(folder.join("long.c"), text).unwrap();
        run(&folder, "gcc -g -O0 -o long long.c");
        let (binary, image) = (folder.join("long"), load_binary(&folder.join("long")));
        let addresses = (image.text.start..image.text.end).map(|a| a + image.slide);
        let bytes = profile("/opt/long", "", image.mapping, addresses);
        let start = Instant::now();
        let named = pprofdiff::from_bytes("p", &bytes, &with(&binary)).unwrap();
        let taken = start.elapsed();
        let has_lines = |&location: &u32| !named.locations().lines(location).is_empty();
        let n = (0..named.n_locations() as u32).filter(has_lines).count();
        assert!(n > 6000, "{n}");
        taken
    };
    let (short, long) = (time(1), time(1 << 20));
    assert!(long < short * 20 + Duration::from_secs(2), "{long:?} with a long name, {short:?} with a short one");
}

/// A binary that is truncated or changed anywhere gives all names, fewer names, or an error. The profile is always
/// valid.
#[test]
fn damaged_binaries_give_fewer_names_or_an_error() {
    let folder = folder("damaged");
    moved_program(&folder);
    run(&folder, "objcopy --compress-debug-sections=zlib parcels packed");
    let original = folder.join("packed");
    let (image, good) = (load_binary(&original), std::fs::read(&original).unwrap());
    let bytes =
        profile("/opt/packed", "", image.mapping, pseudo_random_addresses(&image.text, 30).map(|a| a + image.slide));
    let damaged = folder.join("damaged");
    let mut refused = 0;
    let n = oracle::cases(130) as usize;
    for (i, place) in pseudo_random_addresses(&(0..good.len() as u64), n).enumerate() {
        let mut binary = good.clone();
        // The headers and tables at the beginning and the end of the file are the most fragile, so most changes are
        // there.
        let place = [place as usize, place as usize % 0x400, good.len() - 1 - place as usize % 0x2000][i % 3];
        match i % 4 {
            0 => binary.truncate(place.max(1)),
            1 => binary[place] = 0xff,
            2 => binary[place] = binary[place].wrapping_add(1),
            _ => binary[place] ^= 0x80,
        }
        std::fs::write(&damaged, &binary).unwrap();
        match pprofdiff::from_bytes("p", &bytes, &with(&damaged)) {
            Ok(p) => {
                let diff = Diff::of_profile(&Arc::new(p)).unwrap();
                // Disassembly may return instructions or an error, but must not panic.
                let _ = diff.disasm(&Query::default(), ".", 3);
            }
            Err(e) => {
                refused += 1;
                assert_eq!(e.kind(), ErrorKind::Malformed, "{e}");
                assert!(e.to_string().contains("damaged: "), "{e}");
            }
        }
    }
    assert!((n / 40..n - n / 40).contains(&refused), "{refused}");
}
