//! Programs of tests with google/pprof's packages, built with the copy of them that the Go distribution brings for
//! `go tool pprof`, so nothing is fetched.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// What the other tests of conformance say where there is no Go: these fail.
fn go(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("go").current_dir(folder).env("GOFLAGS", "-mod=mod").args(arguments).output();
    let output =
        output.unwrap_or_else(|e| panic!("cannot run `go`: {e}; install Go 1.24 or later (https://go.dev/dl/)"));
    assert!(output.status.success(), "go {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap_or_else(|e| panic!("{}: {e}", from.display())) {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &to) } else { std::fs::copy(&path, to).map(|_| ()).unwrap() }
    }
}

/// The packages, kept for the next run with the same Go: its cache has what they are compiled to by their folder.
fn packages() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let told = go(temporary, &["env", "GOVERSION", "GOROOT"]);
        let (version, root) = told.split_once('\n').unwrap();
        let folder = temporary.join(format!("google-pprof-{}", version.replace(|c: char| !c.is_ascii_alphanumeric(), "_")));
        if folder.exists() {
            return folder;
        }
        // Under another name until it is complete, so that an interrupted run leaves nothing half made.
        let unfinished = folder.with_extension(std::process::id().to_string());
        let _ = std::fs::remove_dir_all(&unfinished);
        let vendored = Path::new(root.trim()).join("src/cmd/vendor/github.com");
        copy(&vendored.join("google/pprof"), &unfinished);
        copy(&vendored.join("ianlancetaylor/demangle"), &unfinished.join("demangle"));
        let demangle = "github.com/ianlancetaylor/demangle";
        let module = format!(
            "module github.com/google/pprof\n\ngo 1.24\n\nrequire {demangle} v0.0.0\n\nreplace {demangle} => ./demangle\n"
        );
        std::fs::write(unfinished.join("go.mod"), module).unwrap();
        std::fs::write(unfinished.join("demangle/go.mod"), format!("module {demangle}\n\ngo 1.24\n")).unwrap();
        // Another process may have been first.
        assert!(std::fs::rename(&unfinished, &folder).is_ok() || folder.exists(), "{}", folder.display());
        folder
    })
}

/// The program of `go tool pprof`. Asked through `go`, a question takes 0.3 s of processor and not 0.01: it makes sure each time
/// that the program is as its source says.
pub fn tool_pprof() -> &'static Path {
    static PPROF: OnceLock<PathBuf> = OnceLock::new();
    PPROF.get_or_init(|| go(Path::new(env!("CARGO_TARGET_TMPDIR")), &["tool", "-n", "pprof"]).trim().into())
}

/// A folder with the program `oracle`: tests/NAME/main.go with the packages.
pub fn build(name: &str) -> PathBuf {
    let packages = packages();
    let own = format!("{name}-{}", std::process::id());
    let folder = packages.join(&own);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(name).join("main.go");
    std::fs::copy(program, folder.join("main.go")).unwrap();
    go(packages, &["build", "-o", &format!("{own}/oracle"), &format!("./{own}")]);
    folder
}
