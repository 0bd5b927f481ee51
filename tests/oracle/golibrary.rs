//! Programs of tests with google/pprof's packages, built with the copy of them that the Go distribution brings for
//! `go tool pprof`, so nothing is fetched.

use std::path::{Path, PathBuf};
use std::process::Command;

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

/// A folder with the program `oracle`: tests/NAME/main.go and the packages.
pub fn build(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-oracle-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let root = go(&folder, &["env", "GOROOT"]);
    let vendored = Path::new(root.trim()).join("src/cmd/vendor/github.com");
    copy(&vendored.join("google/pprof"), &folder);
    copy(&vendored.join("ianlancetaylor/demangle"), &folder.join("demangle"));
    let demangle = "github.com/ianlancetaylor/demangle";
    let module = format!(
        "module github.com/google/pprof\n\ngo 1.24\n\nrequire {demangle} v0.0.0\n\nreplace {demangle} => ./demangle\n"
    );
    std::fs::write(folder.join("go.mod"), module).unwrap();
    std::fs::write(folder.join("demangle/go.mod"), format!("module {demangle}\n\ngo 1.24\n")).unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(name).join("main.go");
    std::fs::copy(program, folder.join("main.go")).unwrap();
    go(&folder, &["build", "-o", "oracle", "."]);
    folder
}
