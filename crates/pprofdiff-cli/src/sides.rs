//! Paths that stand for several profiles, used in place of a profile: a side of a folder of runs (`RUNS/base`), or the
//! profiles of a store that match some keys (`STORE/service=api/build=123`). The Python binding uses the same functions.

use std::io;
use std::path::{Path, PathBuf};

use pprofdiff::recording::{RecordedSide, Recording, SIDES};
use pprofdiff::{Error, Result, Source};
#[cfg(feature = "store")]
use pprofdiff_store::{StoreSelection, StoredProfile};

/// Returns the side that a path names: the profiles of a store, or a side of a folder of runs. Returns `None` for
/// other paths, and for `RUNS/base` or `RUNS/new` if the path exists.
///
/// # Errors
/// Returns the errors of [`RecordedSide::named`], and an error for an invalid selection of a store.
pub fn named(path: &Path) -> Result<Option<RecordedSide>> {
    #[cfg(feature = "store")]
    if let Some(selection) = StoreSelection::named(path)? {
        let runs = selection.profiles()?.iter().map(StoredProfile::to_source).collect();
        return Ok(Some(RecordedSide::new(selection.name, runs)));
    }
    RecordedSide::named(path)
}

/// Returns true if a path names a side. It does not list the profiles of a store, so [`named`] and [`builds`] may still
/// return an error for the side.
pub fn is_side(path: &Path) -> bool {
    #[cfg(feature = "store")]
    if !matches!(StoreSelection::named(path), Ok(None)) {
        return true;
    }
    !matches!(RecordedSide::named(path), Ok(None))
}

/// Returns the profiles of a side as builds by their keys. For a store, the builds are the values of the open key.
/// Returns `None` for a path that names no side.
///
/// # Errors
/// Returns an error if more than one key is open, and the errors of [`named`].
pub fn builds(path: &Path) -> Result<Option<Vec<(String, Source)>>> {
    #[cfg(feature = "store")]
    if let Some(selection) = StoreSelection::named(path)? {
        return selection.builds().map(Some);
    }
    let files = |side: RecordedSide| side.runs.iter().filter_map(|run| run.path().map(Path::to_owned)).collect();
    Ok(RecordedSide::named(path)?.map(files).map(|files: Vec<PathBuf>| pprofdiff::input::file_builds(&files)))
}

/// Resolves a path to a single profile: a file, or the sum of a side's runs.
///
/// # Errors
/// Returns an error for a folder of runs, because it has two sides, and the errors of [`named`].
pub fn source_of(path: &Path) -> Result<Source> {
    if Recording::is_in(path) {
        let sides = SIDES.map(|side| path.join(side).display().to_string()).join(" or ");
        let why = format!("these are runs of two sides; for one side name {sides}");
        return Err(Error::query(why).in_input(&path.display().to_string()));
    }
    if let Some(side) = named(path)? {
        return Ok(side.to_source());
    }
    match path.is_dir() {
        // Python raises IsADirectoryError for this kind of error.
        true => Err(Error::io(io::Error::new(io::ErrorKind::IsADirectory, folder_advice(path)))
            .in_input(&path.display().to_string())),
        false => Ok(Source::Path(path.to_owned())),
    }
}

/// Returns an error message for a folder where a profile is expected. It suggests a file of the folder.
fn folder_advice(dir: &Path) -> String {
    let entries = std::fs::read_dir(dir).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let is_shown = |path: &PathBuf| {
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        path.is_file() && !is_hidden
    };
    let example = entries
        .filter(is_shown)
        .min()
        .map_or_else(String::new, |file| format!(", such as {}", pprofdiff::advice::word(&file.display().to_string())));
    format!(
        "this is a folder, and one profile is expected; name a profile in it{example}, or compare the folder, as one side \
         with several runs, with another: pprofdiff BASE NEW"
    )
}

/// Resolves a path to a side of a diff: a file, or a side's runs.
///
/// # Errors
/// Returns the errors of [`source_of`].
#[cfg(feature = "mcp")]
pub(crate) fn sources_of(path: &Path) -> Result<Vec<Source>> {
    match named(path)? {
        Some(side) => Ok(side.to_sources()),
        None => Ok(vec![source_of(path)?]),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use pprofdiff::recording::{RUNS_FILE, RecordedRun};

    use super::*;

    #[test]
    fn a_side_of_a_folder_of_runs_stands_for_its_sum() {
        let dir = std::env::temp_dir().join(format!("pprofdiff-sides-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let mut recording = Recording::new(&["a".to_owned()]);
        for side in ["base", "new", "new"] {
            let mut run = RecordedRun::default();
            (run.side, run.profiles) = (side.to_owned(), vec![format!("{side}/cpu.pb.gz")]);
            recording.runs.push(run);
        }
        std::fs::write(dir.join(RUNS_FILE), recording.to_toml()).unwrap();
        assert_eq!(named(&dir.join("new")).unwrap().unwrap().to_sources().len(), 2);
        assert!(matches!(source_of(&dir.join("base/")), Ok(Source::Merged(_, runs)) if runs.len() == 1));
        let ambiguous = source_of(&dir).unwrap_err().to_string();
        assert!(
            ambiguous.contains("name ") && ambiguous.ends_with(&dir.join("new").display().to_string()),
            "{ambiguous}"
        );
        std::fs::create_dir_all(dir.join("runs")).unwrap();
        ["2.pb.gz", "1.pb.gz", ".0"].iter().for_each(|name| std::fs::write(dir.join("runs").join(name), "").unwrap());
        let folder = source_of(&dir.join("runs")).unwrap_err().to_string();
        assert!(folder.contains("this is a folder") && folder.contains("runs/1.pb.gz, or compare"), "{folder}");
        for other in ["x", RUNS_FILE, "sources/base"] {
            let path = dir.join(other);
            assert!(!is_side(&path));
            assert!(matches!(source_of(&path), Ok(Source::Path(kept)) if kept == path));
        }
        // A side stays a side if it cannot be read. Otherwise, messages would say that no file matches.
        assert!(is_side(&dir.join("new")));
        std::fs::write(dir.join(RUNS_FILE), "?").unwrap();
        assert!(is_side(&dir.join("new")) && named(&dir.join("new")).is_err());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
