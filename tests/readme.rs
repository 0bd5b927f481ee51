//! Checks the console blocks of README.md and docs/: each command is run, and its output must equal the text below it.
//! Words may be quoted as in a shell. Commands with `main.pb.gz` (on the start pages) run in a folder where it and
//! `branch.pb.gz` are the two profiles of the story. All other commands run in the root of the repository.
//!
//! To accept new output: `UPDATE_GOLDENS=1 cargo test -p pprofdiff-cli --test command readme::`.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns README.md and the pages of docs/.
fn pages(root: &Path) -> Vec<PathBuf> {
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> = docs.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    pages.push(root.join("README.md"));
    pages.sort();
    pages
}

/// Creates a folder with the profiles of the start pages.
fn start(root: &Path) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("pprofdiff-start-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, side) in [("main", "base"), ("branch", "new")] {
        let profile = root.join(format!("tests/corpus/story-cpu.{side}.pb.gz"));
        std::fs::copy(profile, folder.join(format!("{name}.pb.gz"))).unwrap();
    }
    folder
}

/// Returns the text of a page with the current output of its commands, and the number of commands.
fn fresh(root: &Path, start: &Path, text: &str) -> (String, usize) {
    let mut parts = text.split("```console\n");
    let mut fresh = parts.next().unwrap().to_owned();
    let mut blocks = 0;
    for part in parts {
        let (block, rest) = part.split_once("```").unwrap();
        let command = block.lines().next().unwrap();
        let args = command.strip_prefix("$ pprofdiff ").expect("a console block begins with its command");
        let args = args.split(' ').map(|word| word.trim_matches('\''));
        let folder = if command.contains(" main.pb.gz") { start } else { root };
        let output = Command::new(env!("CARGO_BIN_EXE_pprofdiff")).current_dir(folder).args(args).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        fresh.push_str(&format!("```console\n{command}\n{}```{rest}", String::from_utf8(output.stdout).unwrap()));
        blocks += 1;
    }
    (fresh, blocks)
}

#[test]
fn the_pages_show_the_current_output_of_their_commands() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let start = start(&root);
    let mut shown = 0;
    let mut stale = Vec::new();
    for page in pages(&root) {
        let text = std::fs::read_to_string(&page).unwrap();
        let (fresh, blocks) = fresh(&root, &start, &text);
        shown += blocks;
        if fresh == text {
            continue;
        }
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            std::fs::write(&page, fresh).unwrap();
        } else {
            stale.push(page);
        }
    }
    std::fs::remove_dir_all(start).unwrap();
    assert!(shown >= 6, "only {shown} console blocks");
    assert!(stale.is_empty(), "{stale:?} show other output; the first lines of tests/readme.rs say how to accept it");
}
