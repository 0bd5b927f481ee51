//! Programs of tests with the Go library (google/pprof's profile package), built with the copy of it that the Go
//! distribution brings for `go tool pprof`, so nothing is fetched.

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

/// A folder with the program `oracle`: tests/NAME/main.go and the library.
pub fn build(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-oracle-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.join("profile")).unwrap();
    let root = go(&folder, &["env", "GOROOT"]);
    let library = Path::new(root.trim()).join("src/cmd/vendor/github.com/google/pprof/profile");
    for entry in std::fs::read_dir(&library).unwrap_or_else(|e| panic!("{}: {e}", library.display())) {
        let path = entry.unwrap().path();
        std::fs::copy(&path, folder.join("profile").join(path.file_name().unwrap())).unwrap();
    }
    std::fs::write(folder.join("go.mod"), "module github.com/google/pprof\n\ngo 1.24\n").unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(name).join("main.go");
    std::fs::copy(program, folder.join("main.go")).unwrap();
    go(&folder, &["build", "-o", "oracle", "."]);
    folder
}
