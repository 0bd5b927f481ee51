//! The README's console blocks are real: each command is run, and what it prints must stand below it. Quotes around a
//! word are the shell's.
//!
//! To accept new output: `PPROFDIFF_BLESS=1 cargo test --test readme`.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

#[test]
fn the_readme_shows_what_the_command_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let mut parts = readme.split("```console\n");
    let mut fresh = parts.next().unwrap().to_owned();
    let mut blocks = 0;
    for part in parts {
        let (block, rest) = part.split_once("```").unwrap();
        let command = block.lines().next().unwrap();
        let mut args = command
            .strip_prefix("$ pprofdiff ")
            .expect("a console block begins with its command")
            .split(' ')
            .map(|word| word.trim_matches('\''));
        let output = Command::new(env!("CARGO_BIN_EXE_pprofdiff")).current_dir(&root).args(&mut args).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        fresh.push_str(&format!("```console\n{command}\n{}```{rest}", String::from_utf8(output.stdout).unwrap()));
        blocks += 1;
    }
    assert!(blocks >= 3, "only {blocks} console blocks");
    if std::env::var_os("PPROFDIFF_BLESS").is_some() {
        std::fs::write(&path, fresh).unwrap();
    } else {
        assert!(
            fresh == readme,
            "README.md shows other output; accept it with PPROFDIFF_BLESS=1 cargo test --test readme"
        );
    }
}
