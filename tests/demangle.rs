//! Tests of demangled names. `go tool pprof`, run live, gives the expected names for the symbols of libstdc++, of one of our
//! libraries, and for names of every form.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSymbol};
use pprofdiff::binary::demangled;
use pprofdiff::builder::ProfileBuilder;
use pprofdiff::{Demangle, Diff, LoadOptions, Profile, Query, Sort, WriteOptions};

use crate::{golibrary, tools};

/// Name forms that few libraries contain.
const FORMS: &str = "\
    _ZNKSt3mapIiiEltERKS0_ _ZNK1AIiEltIcEEbv _ZN1AlsIiEEvv _ZNK1AcvPKcEv _ZNK1AcvT_IiEEv _ZN1AptEv _ZN1AclEv _Zli2_sy \
    _ZNO1A1fEv _ZZNK1A1fIiEEvR1BENKUlT_E_clIiEEDaS3_ _ZN12_GLOBAL__N_11fEv.isra.0.cold _Z1fB5cxx11v _ZThn8_N1A1fEi.cold \
    __ZN1A1fEv _GLOBAL__sub_I_x.cc _GLOBAL__I__ZN1A1fEi _GLOBAL__I_a ____Z1fv_block_invoke ___Z1fi_block_invoke_2 \
    main __libc_start_main pkg.F[...] pkg.(*T[go.shape.int]).M.func1 main.(*T).M java.util.List.<init> \
    std::vector<int>::size() f(int) operator<(A,B) a::b)c(d) a::((b) _ZSt _Z _R _ZN1aE1 \
    _ZN4core3fmt5write17h0123456789abcdefE.llvm.77 _ZN4core3fmt5write17h1111111111111111E _ZN1_1a17h0123456789abcdefE \
    _ZN10__CALLSITE4META17h0123456789abcdefE _ZN30_$LT$A$u20$as$u20$b..B$LT$C$GT$$GT$1f17h0123456789abcdefE \
    _RNvC1a1b.llvm.12 _RINvC1a1bTimEE _RNvMC1aINtC1a1SDINtC1c2FnTmEEp6OutputuEL_E1m _RNvMC1aDINtC1c2FnTmEEp6OutputuEL_1m \
    _RNvXC1aDNtC1c8Iteratorp4ItemINtC1a3VechEEL_NtC1a1T1m _RNvMC1aFG_RL0_hEINtC1a3VechE1m _RNvMC1aINtC1a1SKc3c_E1m \
    _RNCINvC1a1bhE0 _RNvMC1aFKCEu1m _RNvMC1aAhj3_1m _RNvNvC1a1bu8caf_dma1c _RNSNvC1a1b6vtable";

/// Returns the name that pprof shows for each symbol.
fn names_in_pprof(names: &[String], folder: &Path) -> BTreeMap<String, String> {
    let mut builder = ProfileBuilder::new();
    builder.sample_type("samples", "count");
    for (address, name) in (1..).zip(names) {
        let function = builder.function(name, "", 0);
        let line = builder.line(function, 0);
        let location = builder.location(None, address, &[line]).unwrap();
        builder.sample(&[location], &[1], &[]).unwrap();
    }
    let [path, out] = ["mangled.pb.gz", "judged.pb.gz"].map(|name| folder.join(name));
    let bytes = builder.build("mangled").unwrap().to_bytes(&WriteOptions::default()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let output = Command::new(golibrary::tool_pprof())
        .args(["-proto", "-symbolize=local", "-output"])
        .args([&out, &path])
        .env("PPROF_TMPDIR", folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let profile = pprofdiff::open(&out, &LoadOptions::default()).unwrap();
    let functions = profile.functions();
    let texts = |ids: &[_]| ids.iter().map(|&id| profile.text(id)).collect::<Vec<_>>();
    texts(&functions.system_name).into_iter().zip(texts(&functions.name)).collect()
}

/// Returns the mangled names of a binary.
fn symbols(path: &Path) -> Vec<String> {
    let bytes = std::fs::read(path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let names = file.symbols().chain(file.dynamic_symbols()).filter_map(|symbol| symbol.name().ok());
    mangled(names)
}

/// Returns the mangled names in the index of a static library: a header of 68 bytes, the number of names, a position for
/// each, and the names.
fn symbols_of_library(path: &Path) -> Vec<String> {
    let bytes = std::fs::read(path).unwrap();
    let size: usize = std::str::from_utf8(&bytes[56..66]).unwrap().trim().parse().unwrap();
    let index = &bytes[68..68 + size];
    let n = u32::from_be_bytes(*index.first_chunk().unwrap()) as usize;
    mangled(String::from_utf8_lossy(&index[4 + 4 * n..]).split('\0'))
}

fn mangled<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let names: BTreeSet<&str> = names.filter(|name| name.starts_with("_Z") || name.starts_with("_R")).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// Returns true for the known differences from pprof.
fn is_known(name: &str, ours: &str) -> bool {
    // pprof parses the number of a closure and the length of the following name as a single number.
    let is_closure = name.starts_with("_R") && ours.contains("{closure#");
    // cpp_demangle cannot parse an expression with a member of a template in `std`, ...
    let is_unread = name == ours && name.contains("XsrSt");
    // ... does not name functions that are local to a default argument, ...
    let is_default = name.contains("Ed_") || name.contains("Ed0_");
    // ... and writes no space between a returned class and the parameters. This occurs only in names of data.
    let is_data = name.starts_with("_ZTIF") || name.starts_with("_ZTSF");
    // Names above the length limit of the demangler stay mangled.
    let is_long = name == ours && name.len() > 4096;
    is_closure || is_unread || is_default || is_data || is_long
}

/// Creates a folder for output.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("demangle").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Checks that all names are equal to pprof's, except for a few known differences.
fn assert_shown(title: &str, names: &[String]) {
    let folder = folder(title);
    let judge = names_in_pprof(names, &folder);
    assert_eq!(judge.len(), names.len(), "{title}");
    let mut n_known = 0;
    for name in names {
        let ours = String::from_utf8(demangled(name.as_bytes()).into_owned()).unwrap();
        if ours != judge[name] {
            assert!(is_known(name, &ours), "{title}: {name}\nours: {ours}\npprof: {}", judge[name]);
            n_known += 1;
        }
    }
    assert!(n_known * 50 <= names.len(), "{title}: {n_known} of {} differ", names.len());
}

#[test]
fn names_equal_pprofs() {
    if !tools::have("go", "version", "golang", "demangle") {
        return;
    }
    let forms: Vec<String> = FORMS.split_whitespace().map(str::to_owned).collect();
    assert_shown("forms", &forms);
    // `tests/run` strips the test program, but not the libraries beside it.
    let libraries = std::fs::read_dir(std::env::current_exe().unwrap().parent().unwrap()).unwrap();
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("libpprofdiff_report-") && name.ends_with(".rlib")
    };
    let library = libraries.map(|entry| entry.unwrap().path()).find(is_ours).unwrap();
    let rust = symbols_of_library(&library);
    assert!(rust.len() > 1000, "{}", rust.len());
    assert_shown("rust", &rust);
    if tools::have("g++", "--version", "g++", "demangle") {
        let path = Command::new("g++").arg("-print-file-name=libstdc++.so.6").output().unwrap().stdout;
        let names = symbols(Path::new(String::from_utf8(path).unwrap().trim()));
        assert!(names.len() > 1000, "{}", names.len());
        assert_shown("libstdc++", &names);
    }
}

/// Returns the rows of `go tool pprof -top` as (flat, cum, name).
fn top_rows(arguments: &[&str], files: &[&Path], folder: &Path) -> Vec<(i64, i64, String)> {
    let mut command = Command::new(golibrary::tool_pprof());
    command.args(["-top", "-trim=false", "-nodecount=1000000"]).args(arguments).args(files);
    let output = command.env("PPROF_TMPDIR", folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let number = |word: &str| word.parse().unwrap();
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (number(words[0]), number(words[3]), words[5..].join(" "))
    };
    let mut rows: Vec<_> = text.lines().skip_while(|line| !line.contains("flat%")).skip(1).map(row).collect();
    rows.sort();
    rows
}

fn our_rows(diff: &Diff) -> Vec<(i64, i64, String)> {
    let top = diff.measure(&Query::default()).unwrap().top(Sort::Flat);
    let row = |row: &pprofdiff::TopRow| {
        (row.flat.new - row.flat.base, row.cum.new - row.cum.base, top.frames.name(row.frame))
    };
    let mut rows: Vec<_> = top.rows.iter().map(row).collect();
    rows.sort();
    rows
}

/// Writes a profile of stacks, leaf first, with mangled function names.
fn write_profile(path: &Path, stacks: &[(&[&str], i64)], drop_frames: &str) {
    let mut builder = ProfileBuilder::new();
    builder.sample_type("samples", "count");
    let drop_frames = builder.string(drop_frames);
    builder.header().drop_frames = drop_frames;
    for (stack, value) in stacks {
        let stack: Vec<_> = stack
            .iter()
            .map(|name| {
                let function = builder.function(name, "", 0);
                let line = builder.line(function, 0);
                builder.location(None, 0, &[line]).unwrap()
            })
            .collect();
        builder.sample(&stack, &[*value], &[]).unwrap();
    }
    let bytes = builder.build("written").unwrap().to_bytes(&WriteOptions::default()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

fn open_profile(path: &Path, demangle: Demangle) -> std::sync::Arc<Profile> {
    let mut options = LoadOptions::default();
    options.demangle = demangle;
    std::sync::Arc::new(pprofdiff::open(path, &options).unwrap())
}

/// Mangled names are merged into one row in the same cases as in pprof, in each of its modes.
#[test]
fn mangled_names_are_merged_into_the_same_rows_as_in_pprof() {
    if !tools::have("go", "version", "golang", "demangle") {
        return;
    }
    let folder = folder("rows");
    let path = folder.join("mangled.pb.gz");
    let stacks: [(&[&str], i64); 6] = [
        (&["_ZNSt6vectorIiSaIiEE9push_backERKi", "main"], 10),
        (&["_ZNSt6vectorIlSaIlEE9push_backERKl", "main"], 5),
        (&["_ZN3app4emit17h0123456789abcdefE", "main"], 4),
        (&["_RNvCs8K9WJNlS7Dz_5trace17multiply_matrices", "main"], 3),
        (&["_Znonsense", "_R", "?foo@Bar@@QEAAXXZ"], 2),
        (&["main.(*T).M", "_Z1fIiEvT_"], 1),
    ];
    write_profile(&path, &stacks, "");
    for (symbolize, mode) in [
        ("-symbolize=local", Demangle::Default),
        ("-symbolize=local:demangle=templates", Demangle::Templates),
        ("-symbolize=local:demangle=full", Demangle::Full),
        ("-symbolize=local:demangle=none", Demangle::None),
        ("-symbolize=none", Demangle::Off),
    ] {
        let theirs = top_rows(&[symbolize], &[&path], &folder);
        assert_eq!(our_rows(&Diff::of_profile(&open_profile(&path, mode)).unwrap()), theirs, "{symbolize}");
    }
}

/// The `drop_frames` of the new side apply to both sides; those of the base are ignored.
#[test]
fn drop_frames_of_the_new_side_apply_to_both_as_in_pprof() {
    if !tools::have("go", "version", "golang", "demangle") {
        return;
    }
    let folder = folder("dropped");
    let [with, without] = ["with.pb.gz", "without.pb.gz"].map(|name| folder.join(name));
    let stacks: [(&[&str], i64); 3] = [(&["malloc", "grow", "main"], 15), (&["free", "main"], 9), (&["malloc"], 1)];
    let more: [(&[&str], i64); 3] = [(&["malloc", "grow", "main"], 18), (&["free", "main"], 9), (&["malloc"], 1)];
    write_profile(&with, &stacks, "malloc|grow");
    write_profile(&without, &more, "");
    for (base, new) in [(&with, &without), (&without, &with)] {
        let base_option = format!("-diff_base={}", base.display());
        let theirs = top_rows(&["-symbolize=none", &base_option], &[new], &folder);
        assert!(!theirs.is_empty());
        let sides = [base, new].map(|path| [open_profile(path, Demangle::Default)]);
        let ours = our_rows(&Diff::new(&sides[0], &sides[1]).unwrap());
        // pprof omits rows whose values cancel out.
        let ours: Vec<_> = ours.into_iter().filter(|(flat, cum, _)| (*flat, *cum) != (0, 0)).collect();
        let theirs: Vec<_> = theirs.into_iter().filter(|(flat, cum, _)| (*flat, *cum) != (0, 0)).collect();
        assert_eq!(ours, theirs);
    }
}
