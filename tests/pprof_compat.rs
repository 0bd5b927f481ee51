//! Tests of the options of `go tool pprof`, conversion, weights and Git integration. (`conformance` compares the
//! numbers with pprof.)

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn corpus(file: &str) -> String {
    root().join("tests/corpus").join(file).display().to_string()
}

fn temp(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("pprofdiff-compat-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir.join(name)
}

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pprofdiff")).args(args).output().unwrap()
}

fn stdout(args: &[&str]) -> Vec<u8> {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn failure(args: &[&str]) -> String {
    let output = run(args);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && stderr.lines().count() == 1, "{args:?}: {stderr}");
    stderr
}

/// Splits a line into words. B and N stand for two profiles, H for a heap profile.
fn words(line: &str) -> Vec<String> {
    let files = files();
    let named = |word: &str| match word {
        "B" => Some(files[0].clone()),
        "N" => Some(files[1].clone()),
        "H" => Some(files[2].clone()),
        _ => None,
    };
    let word = |word: &str| match word.split_once('=') {
        Some((option, value)) if named(value).is_some() => format!("{option}={}", named(value).unwrap()),
        _ => named(word).unwrap_or_else(|| word.to_owned()),
    };
    line.split(' ').map(word).collect()
}

fn files() -> [String; 3] {
    ["story-cpu.base.pb.gz", "story-cpu.new.pb.gz", "go-heap.new.pb.gz"].map(corpus)
}

#[test]
fn boolean_options_of_pprof_accept_no_other_value() {
    for word in ["-cum=maybe", "-drop_negative=x", "-top=2"] {
        let error = failure(&[word, &corpus("story-cpu.new.pb.gz")]);
        assert!(error.contains("must be on or off"), "{word}: {error}");
    }
}

#[test]
fn pprof_options_with_the_same_meaning_are_accepted() {
    for (pprofs, ours) in [
        ("-top -base B N", "top --base B --new N"),
        ("-top -diff_base=B N", "top B N"),
        ("-base B N", "diff B N"),
        ("N -base B -cum -nodecount=3", "diff B N --sort cum -n 3"),
        ("-text -cum=true -lines B", "top --sort cum --granularity lines B"),
        ("-top -cum=false B", "top B"),
        ("--top --nodecount 4 B", "top -n 4 B"),
        ("-top -sample_index=alloc_space H", "top --sample-type alloc_space H"),
        ("-top -sample_index=1 H", "top --sample-type 1 H"),
        ("-alloc_objects -top H", "top --sample-type alloc_objects H"),
        ("-tree -trim=false B", "tree -n 0 B"),
        ("-peek tableInsensitive -base B N", "peek tableInsensitive B N"),
        ("-list=tableInsensitive B", "list tableInsensitive B"),
        ("peek tableInsensitive -cum -base B N", "peek tableInsensitive --sort cum B N"),
        ("-tags H", "labels H"),
        ("-traces B", "traces B"),
        ("-dot -nodefraction=0.1 B", "top --format dot --node-fraction 0.1 B"),
        ("-svg -nodecount 5 -focus=headers B", "top --format svg -n 5 --focus headers B"),
        ("-callgrind B", "top --format callgrind B"),
        ("-raw B", "raw B"),
        ("-raw -diff_base B N", "raw B N"),
        ("-comments H", "comments H"),
        ("-dot -call_tree B", "top --format dot --call-tree B"),
        (
            "-top -unit ms -drop_negative -relative_percentages -focus headers -base B N",
            "diff --unit ms --drop-negative --relative-percentages --focus headers B N",
        ),
        ("-top -mean -alloc_space H", "top --mean --sample-type alloc_space H"),
        ("-proto -base B N", "diff --format pprof B N"),
        ("-top -normalize -base B N", "diff --normalize total B N"),
        (
            "-top -noinlines -show=logmill -hide main -show_from=. -filefunctions B",
            "top --noinlines --show logmill --hide main --show-from . --granularity filefunctions B",
        ),
        ("-top -symbolize=none -timeout 5 B", "top --demangle off --timeout 5s B"),
        ("-top -symbolize demangle=full B", "top --demangle full B"),
        ("-top -base B N B", "top --base B --new N B --sum"),
        ("-top -n 2 --sort flat -base B N", "top -n 2 --sort flat B N"),
        ("check -base B N --fail-on total>+900%", "check B N --fail-on total>+900%"),
        ("-top --base B --new N", "top B N"),
        ("-top --all_frames B", "top --all-frames B"),
    ] {
        let stdout_of = |line: &str| stdout(&words(line).iter().map(String::as_str).collect::<Vec<_>>());
        assert!(stdout_of(pprofs) == stdout_of(ours), "{pprofs} is not {ours}");
    }
    let (file, files) = (temp("x.json").display().to_string(), files());
    stdout(&["-top", "-output", &file, &files[0]]);
    assert!(
        std::fs::read(&file).unwrap() == stdout(&["top", &files[0]]),
        "-top writes text, whatever the file is called"
    );
}

#[test]
fn other_pprof_options_name_the_replacement() {
    for (pprofs, message) in [
        (
            "-http=: B",
            "pprofdiff: -http is an option of pprof; here: pprofdiff serve --open FILES shows them in the browser",
        ),
        ("-http localhost:8080 -base B N", "pprofdiff serve --open FILES"),
        ("-web B", "--open"),
        ("-png B", "dot -Tpng"),
        (
            "-top B N",
            "pprofdiff top A B; if A is the program, write pprofdiff top B --binary A; to add up, use pprofdiff merge",
        ),
        ("-top -tree B", "-top and -tree are two views"),
        ("tree -top B", "-top is a view of pprof, and tree a verb of pprofdiff"),
        ("-top -nodefraction=0.1 B", "-n N"),
        ("-top -base B", "is missing"),
        ("-top -base", "-base needs a value"),
        ("-seconds=5 B", "pprofdiff delta URL --seconds"),
        ("-symbolize=local -top B", "--binary PATH"),
        ("--divide_by=2 B", "--normalize"),
        ("-no_such_word B", "see pprofdiff --help"),
    ] {
        let error = failure(&words(pprofs).iter().map(String::as_str).collect::<Vec<_>>());
        assert!(error.contains(message), "{pprofs}: {error}");
    }
}

#[test]
fn any_input_converts_to_any_format() {
    let [base, new, heap] = files();
    let path = |name: &str| temp(name).display().to_string();
    // A profile.proto is kept byte for byte.
    let (bare, packed) = (path("heap.pb"), path("heap.pb.zst"));
    stdout(&["convert", &heap, "-o", &bare]);
    stdout(&["convert", &bare, "-o", &packed]);
    assert_eq!(
        stdout(&["convert", &packed, "-o", "-", "--format", "pprof"]),
        stdout(&["convert", &heap, "-o", "-", "--format", "pprof"])
    );
    // Converting to folded stacks and back keeps the stacks.
    let (folded, again) = (path("heap.folded"), path("again.pb.gz"));
    stdout(&["convert", &heap, "-o", &folded, "--sample-type", "alloc_space"]);
    assert_eq!(
        std::fs::read(&folded).unwrap(),
        stdout(&["stacks", &heap, "--format", "folded", "--sample-type", "alloc_space"])
    );
    stdout(&["convert", &folded, "-o", &again]);
    assert_eq!(stdout(&["convert", &again, "-o", "-", "--format", "folded"]), std::fs::read(&folded).unwrap());
    // Folded stacks of another tool, which do not name their sample type.
    let (text, named) = (path("stacks.txt"), path("named.pb"));
    std::fs::write(&text, "main;parse 12\nmain;write 30\n").unwrap();
    stdout(&["convert", &text, "-o", &named, "--input-type", "cpu/nanoseconds"]);
    assert!(String::from_utf8(stdout(&["info", &named])).unwrap().contains("cpu (nanoseconds): 42ns"));
    // Both sides of a diff.
    let (diff, two, both) = (path("diff.folded"), path("two.pb.gz"), path("both.speedscope.json"));
    stdout(&["stacks", &base, &new, "-o", &diff]);
    stdout(&["convert", &diff, "-o", &two]);
    assert_eq!(stdout(&["stacks", &two, "--format", "folded"]), std::fs::read(&diff).unwrap());
    stdout(&["convert", &two, "-o", &both]);
    let page: serde_json::Value = serde_json::from_slice(&std::fs::read(&both).unwrap()).unwrap();
    assert_eq!(page["profiles"].as_array().unwrap().len(), 2);

    let out = path("x.txt");
    assert!(
        failure(&["convert", &base, "-o", &out])
            .contains("pprof, folded, speedscope, flamegraph; text is a view of a profile: pprofdiff top ")
    );
    assert!(failure(&["convert", &base, "-o", &bare, "--sample-type", "cpu"]).contains("all sample types"));
    assert!(failure(&["convert", &base, "-o", &folded, "--sample-type", "heap"]).contains("there are samples, cpu"));
    assert!(failure(&["convert", &base]).contains("--output"));
}

#[test]
fn a_weight_multiplies_a_file() {
    let [base, new, heap] = files();
    let path = |name: &str| temp(name).display().to_string();
    let (weighted, repeated) = (path("weighted.pb"), path("repeated.pb"));
    let merge = |args: &[&str], out: &str| {
        stdout(&[&["merge"], args, &["-o", out]].concat());
        std::fs::read(out).unwrap()
    };
    let rows = |file: &str| stdout(&["stacks", file, "--sample-type", "cpu", "--format", "csv"]);
    let weight = format!("{base}=3");
    merge(&[&base, &new, "--weight", &weight], &weighted);
    merge(&[&base, &base, &base, &new], &repeated);
    assert_eq!(rows(&weighted), rows(&repeated));
    // A pattern weights several files. A weight of 1 changes nothing.
    merge(&[&base, &new, "--weight", "*story-cpu.*.pb.gz=2"], &weighted);
    merge(&[&base, &new, &base, &new], &repeated);
    assert_eq!(rows(&weighted), rows(&repeated));
    assert_eq!(merge(&[&base, &new, "--weight", "*=1"], &weighted), merge(&[&base, &new], &repeated));
    // Fractional weights: the sum of each sample type is rounded once, however small each sample is.
    let info = |file: &str, line: &str| {
        let info_text = String::from_utf8(stdout(&["info", file])).unwrap();
        info_text.lines().find(|l| l.contains(line)).unwrap_or_else(|| panic!("{info_text}")).trim().to_owned()
    };
    merge(&[&base, "--weight", "*=0.1"], &weighted);
    assert_eq!(info(&weighted, "samples (count)"), "sample type  samples (count): 19");
    assert_eq!(info(&weighted, "cpu (nano"), "sample type  cpu (nanoseconds): 190ms  (default)");
    merge(&[&base, &new, "--weight", "*.base.pb.gz=0.25", "--weight", "*.new.pb.gz=0.5"], &weighted);
    // 190 / 4 + 293 / 2.
    assert_eq!(info(&weighted, "samples (count)"), "sample type  samples (count): 194");

    let refused = |weight: &str| failure(&["merge", &heap, "--weight", weight, "-o", "x.pb"]);
    for (weight, message) in [
        ("3", "write it as FILE=3"),
        ("*=x", "x is not a number"),
        ("*=0", "from 0.000001 to 1000000"),
        ("*=-1", "from 0.000001"),
        ("*=NaN", "from 0.000001"),
        ("*=1e9", "to 1000000"),
        ("web*=3", "no input file matches"),
        ("*heap*.pb=3", "no input file matches"),
    ] {
        assert!(refused(weight).contains(message), "{weight}: {}", refused(weight));
    }
    let twice = failure(&["merge", &heap, "--weight", "*=1", "--weight", "*heap*=2", "-o", "x.pb"]);
    assert!(twice.contains("both match"), "{twice}");
    // Sums that overflow after weighting.
    let large = path("large.folded");
    std::fs::write(&large, format!("a {}\n", i64::MAX / 1000)).unwrap();
    let error = failure(&["merge", &large, "--weight", "*=2000.5", "-o", "x.pb"]);
    assert!(error.contains("more than an int64 holds"), "{error}");
}

#[test]
fn a_call_tree_has_a_box_for_each_path() {
    let file = temp("ways.folded").display().to_string();
    std::fs::write(&file, "main 100\nmain;a;work 10\nmain;b;work 5\nmain;b;c;work 3\n").unwrap();
    let dot = |args: &[&str]| {
        let whole = ["top", &file, "--format", "dot", "--node-fraction", "0", "--edge-fraction", "0"];
        let text = String::from_utf8(stdout(&[&whole[..], args].concat())).unwrap();
        let calls: Vec<String> = text.lines().filter(|line| line.contains(" -> N")).map(str::to_owned).collect();
        let boxes = text.lines().filter(|line| line.starts_with('N') && !line.contains(" -> N")).count();
        let dotted = calls.iter().filter(|call| call.contains("style=dotted")).count();
        (boxes, calls.len(), dotted)
    };
    assert_eq!(dot(&["-n", "0"]), (5, 6, 0));
    assert_eq!(dot(&["-n", "0", "--call-tree"]), (7, 6, 0));
    // main and two paths to work; the functions in between are omitted.
    assert_eq!(dot(&["-n", "3", "--call-tree", "--sort", "flat"]), (3, 2, 2));
    let callgrind = String::from_utf8(stdout(&["top", &file, "--format", "callgrind", "--call-tree"])).unwrap();
    assert_eq!(callgrind.matches("calls=").count(), 6, "{callgrind}");
    let error = failure(&["top", &file, "--call-tree"]);
    assert!(error.contains("--format dot, svg or callgrind"), "{error}");
    // More paths than the limit for memory: each of 700 stacks adds 400 paths.
    let many: String = (0..700).map(|i| format!("f{i};{} 1\n", vec!["g"; 400].join(";"))).collect();
    std::fs::write(&file, many).unwrap();
    let error = failure(&["top", &file, "--format", "dot", "--call-tree"]);
    assert!(error.contains("nodes; --focus on some frames"), "{error}");
}

/// The recipe of docs/command.md, run by git in a temporary repository.
#[test]
fn git_diffs_profiles_with_the_documented_configuration() {
    let page = std::fs::read_to_string(root().join("docs/command.md")).unwrap();
    let section = page.split("\n## ").find(|section| section.starts_with("Profiles in git\n")).unwrap();
    let blocks: Vec<&str> = section.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
    let [recipe, comparison] = blocks[..] else { panic!("two blocks of commands, not {blocks:?}") };

    let repository = temp("repository");
    std::fs::create_dir_all(&repository).unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_pprofdiff")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let shell = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-ec", script]).current_dir(&repository).env("PATH", &path);
        // Ignores the Git configuration of the user and the system.
        command.env("HOME", &repository).env("GIT_CONFIG_NOSYSTEM", "1").env_remove("GIT_DIR");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let [base, new, _] = files();
    let commit = "git add . && git -c user.name=a -c user.email=a@b.c commit -qm";
    shell("git init -q .");
    shell(recipe);
    shell(&format!("cp {base} default.pgo && {commit} base"));
    shell(&format!("cp {new} default.pgo"));
    let row = |file: &str| {
        let csv = String::from_utf8(stdout(&["top", file, "--format", "csv"])).unwrap();
        csv.lines().find(|line| line.starts_with("logmill/headers.tableInsensitive,")).unwrap().to_owned()
    };
    let changed = [format!("-{}", row(&base)), format!("+{}", row(&new))];
    let compared = shell(comparison);
    assert!(compared.contains("logmill/headers.tableInsensitive") && compared.contains("1.90s -> 2.93s"), "{compared}");
    let worked_on = shell("git diff");
    shell(&format!("{commit} new"));
    for shown in [worked_on, shell("git log -1 -p"), shell("git show HEAD")] {
        assert!(changed.iter().all(|line| shown.lines().any(|l| l == line)), "{shown}");
    }
}
