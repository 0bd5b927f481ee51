//! The folder of runs. New folders and logs never replace files that `bench` finds there: if a name is taken, it
//! appends a number. `bench` overwrites only `runs.toml`, `sources` and `binaries`. A folder belongs to `bench` if it
//! has a readable `runs.toml`, so `bench` writes that file first.

use std::fs::{self, File};
use std::io::{Error, ErrorKind, Write};
use std::path::{Path, PathBuf};

use pprofdiff::recording::Recording;
use pprofdiff_shell::{Failure, Result};

/// An exclusive upper limit for the number that is appended to a taken name.
const MAX_NAMES: usize = 10_000;
/// The folder for new runs unless the user names another.
pub const DEFAULT_FOLDER: &str = "pprofdiff-runs";
/// The file that keeps the runs out of commits.
const IGNORE_FILE: &str = ".gitignore";

/// Creates the folder for new runs in `dir`: [`DEFAULT_FOLDER`], or with a number if that folder is not free.
///
/// # Errors
/// Fails if the folder can't be created.
pub fn begin_default(dir: &Path) -> Result<PathBuf> {
    let numbered = (2..MAX_NAMES).map(|number| dir.join(format!("{DEFAULT_FOLDER}-{number}")));
    let mut names = [dir.join(DEFAULT_FOLDER)].into_iter().chain(numbered);
    // `begin` says why a folder can't be created if all names are taken.
    let is_free = |path: &PathBuf| match fs::read_dir(path) {
        Ok(_) => is_empty(path).unwrap_or(false) || Recording::read(path).is_ok_and(|r| r.runs.is_empty()),
        Err(e) => e.kind() == ErrorKind::NotFound,
    };
    begin(&names.find(is_free).unwrap_or_else(|| dir.join(DEFAULT_FOLDER)))
}

/// Returns true if a folder has no files, or only the file that `bench` creates first.
fn is_empty(dir: &Path) -> std::io::Result<bool> {
    Ok(fs::read_dir(dir)?.all(|entry| entry.is_ok_and(|entry| entry.file_name() == IGNORE_FILE)))
}

/// Creates the folder for new runs. It accepts an empty folder, and a folder of `bench` that has no runs yet.
///
/// # Errors
/// Fails if the folder has runs, if it has files but no readable `runs.toml`, or if it can't be created.
pub fn begin(into: &Path) -> Result<PathBuf> {
    let wrong = |e: Error| Failure::Message(format!("{}: {e}", into.display()));
    fs::create_dir_all(into).map_err(wrong)?;
    if !is_empty(into).map_err(wrong)? {
        let shown = into.display();
        match Recording::read(into) {
            Ok(recording) if recording.runs.is_empty() => {}
            Ok(_) => {
                return Err(Failure::Message(format!(
                    "{shown} already has runs; add to them with --more {shown}, or choose another folder with --into"
                )));
            }
            Err(_) => {
                return Err(Failure::Message(format!(
                    "{shown} has files that bench did not write; choose an empty or new folder with --into"
                )));
            }
        }
    }
    match File::create_new(into.join(IGNORE_FILE)) {
        Ok(mut file) => file.write_all(b"*\n").map_err(wrong)?,
        // The user's own file stays.
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
        Err(e) => return Err(wrong(e)),
    }
    fs::canonicalize(into).map_err(wrong)
}

/// Creates a folder called `name` in `dir`. Appends a number if the name is taken.
pub fn create(dir: &Path, name: &str) -> Result<PathBuf> {
    first_free(dir, name, "", |path| fs::create_dir(path))
}

/// Creates an empty file called `stem` + `ending` in `dir`. Inserts a number if the name is taken.
pub fn create_file(dir: &Path, stem: &str, ending: &str) -> Result<PathBuf> {
    first_free(dir, stem, ending, |path| File::create_new(path).map(drop))
}

/// Tries names until `make` succeeds. A name is taken if `make` fails with `AlreadyExists`. A separate check before the
/// creation would follow symbolic links.
fn first_free(dir: &Path, stem: &str, ending: &str, make: impl Fn(&Path) -> std::io::Result<()>) -> Result<PathBuf> {
    let mut path = dir.join(format!("{stem}{ending}"));
    for number in 2..MAX_NAMES {
        match make(&path) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => path = dir.join(format!("{stem}-{number}{ending}")),
            Err(e) => return Err(Failure::Message(format!("{}: {e}", path.display()))),
        }
    }
    Err(Failure::Message(format!(
        "{}: all names for {stem} are taken; choose another folder with --into",
        dir.display()
    )))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_taken_name_gets_a_number_and_its_files_stay() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("base-1")).unwrap();
        fs::write(dir.path().join("base-1/mine"), "x").unwrap();
        fs::write(dir.path().join("base-1-2"), "x").unwrap();
        assert_eq!(create(dir.path(), "base-1").ok(), Some(dir.path().join("base-1-3")));
        assert!(dir.path().join("base-1/mine").exists() && dir.path().join("base-1-2").is_file());
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(dir.path().join("elsewhere"), dir.path().join("base-build.txt")).unwrap();
            let created = create_file(dir.path(), "base-build", ".txt");
            assert_eq!(created.ok(), Some(dir.path().join("base-build-2.txt")));
            assert!(!dir.path().join("elsewhere").exists());
        }
    }

    #[test]
    fn a_second_benchmark_gets_a_new_folder_and_git_ignores_both() {
        let dir = tempfile::tempdir().unwrap();
        let name = |path: PathBuf| path.file_name().unwrap().to_owned();
        let first = begin_default(dir.path()).ok().unwrap();
        assert_eq!(name(first.clone()), "pprofdiff-runs");
        assert_eq!(fs::read_to_string(first.join(".gitignore")).unwrap(), "*\n");
        // Until it has runs, the folder is free.
        assert_eq!(name(begin_default(dir.path()).ok().unwrap()), "pprofdiff-runs");
        fs::write(first.join("notes.txt"), "mine").unwrap();
        let second = begin_default(dir.path()).ok().unwrap();
        assert_eq!(name(second.clone()), "pprofdiff-runs-2");
        assert!(second.join(".gitignore").exists() && !first.join("runs.toml").exists());
    }

    #[test]
    fn begin_accepts_only_an_empty_folder_or_a_bench_folder_without_runs() {
        let dir = tempfile::tempdir().unwrap();
        let into = dir.path().join("runs");
        assert!(begin(&into).is_ok() && begin(&into).is_ok());
        fs::create_dir(into.join("base-1")).unwrap();
        assert!(begin(&into).is_err());
        fs::write(into.join("runs.toml"), "x = 1").unwrap();
        assert!(begin(&into).is_err());
        fs::write(into.join("runs.toml"), Recording::new(&["true".to_owned()]).to_toml()).unwrap();
        assert!(begin(&into).is_ok() && into.join("base-1").exists());
    }
}
