//! Profiles of a large real program, recorded during the test: the Go compiler, compiling a package of its standard
//! library with and without optimisations.
//!
//! They are about thirty times as large as those of the corpus, with real inlining and deep recursion. They differ
//! between runs and machines, so the engine cannot have been tuned to them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pairs::Pair;
use crate::pprof::go;

const PACKAGE: &str = "go/types";

/// Returns the CPU and heap profiles of the compiler. They are kept for later test runs with the same Go version.
pub fn pairs() -> Vec<Pair> {
    let version: String = go(&["env", "GOVERSION"]).trim().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("compiler-{version}"));
    if !folder.exists() {
        // The folder gets its final name when it is complete, so that an interrupted run leaves no partial profiles.
        let unfinished = folder.with_extension(std::process::id().to_string());
        record(&unfinished.join("base"), &[]);
        record(&unfinished.join("new"), &["-N", "-l"]);
        std::fs::rename(&unfinished, &folder).unwrap();
    }
    let side = |side: &str, kind: &str| -> PathBuf { folder.join(side).join(kind) };
    let pair = |name: &str, kind: &str| Pair::read(name, side("base", kind), side("new", kind));
    vec![pair("compiler-cpu", "cpu.pb.gz"), pair("compiler-heap", "heap.pb.gz")]
}

/// Compiles the package once per profile, because the heap profiler would appear in the CPU profile.
fn record(folder: &Path, options: &[&str]) {
    std::fs::create_dir_all(folder).unwrap();
    let imports = folder.join("importcfg");
    let import = "{{if .Export}}packagefile {{.ImportPath}}={{.Export}}{{end}}";
    std::fs::write(&imports, go(&["list", "-export", "-deps", "-f", import, PACKAGE])).unwrap();
    let sources = go(&["list", "-f", "{{.Dir}}{{range .GoFiles}} {{.}}{{end}}", PACKAGE]);
    let mut sources = sources.split_whitespace();
    let directory = sources.next().unwrap();

    let compile = |profile: &[&str]| {
        let mut command = Command::new("go");
        command.args(["tool", "compile", "-p", PACKAGE, "-o"]).arg(folder.join("object"));
        command.arg("-importcfg").arg(&imports).args(options).args(profile).args(sources.clone());
        let output = command.current_dir(directory).output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        std::fs::remove_file(folder.join("object")).unwrap();
    };
    // The compiler writes a heap profile to a file as legacy text, but to a folder as protobuf.
    let heap = format!("{}/heap/", folder.display());
    compile(&[&format!("-cpuprofile={}", folder.join("cpu.pb.gz").display())]);
    compile(&["-memprofilerate=16384", &format!("-memprofile={heap}")]);
    let written = std::fs::read_dir(&heap).unwrap().next().unwrap().unwrap().path();
    std::fs::rename(written, folder.join("heap.pb.gz")).unwrap();
}
