//! Builds test programs that use google/pprof's packages. The packages are copied from the Go distribution, which
//! contains them for `go tool pprof`, so nothing is downloaded.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Runs `go`. Without Go, the tests fail with the same message as the conformance tests.
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

/// Returns a copy of the packages. It is kept for later runs with the same Go version, because Go caches compiled
/// packages by folder.
fn packages() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let output = go(temporary, &["env", "GOVERSION", "GOROOT"]);
        let (version, root) = output.split_once('\n').unwrap();
        let folder = temporary.join(format!("google-pprof-{}", version.replace(|c: char| !c.is_ascii_alphanumeric(), "_")));
        if folder.exists() {
            return folder;
        }
        // The folder gets its final name when it is complete, so that an interrupted run leaves no partial copy.
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
        // Another process may have created it first.
        assert!(std::fs::rename(&unfinished, &folder).is_ok() || folder.exists(), "{}", folder.display());
        folder
    })
}

/// Returns the binary of `go tool pprof`. Running it through `go` takes 0.3 s of CPU time instead of 0.01 s, because
/// `go` checks each time whether the binary is up to date.
pub fn tool_pprof() -> &'static Path {
    static PPROF: OnceLock<PathBuf> = OnceLock::new();
    PPROF.get_or_init(|| go(Path::new(env!("CARGO_TARGET_TMPDIR")), &["tool", "-n", "pprof"]).trim().into())
}

/// Builds tests/NAME/main.go with the packages, and returns the folder that contains the program `oracle`.
pub fn build(name: &str) -> PathBuf {
    let packages = packages();
    let folder_name = format!("{name}-{}", std::process::id());
    let folder = packages.join(&folder_name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(name).join("main.go");
    std::fs::copy(program, folder.join("main.go")).unwrap();
    go(packages, &["build", "-o", &format!("{folder_name}/oracle"), &format!("./{folder_name}")]);
    folder
}
