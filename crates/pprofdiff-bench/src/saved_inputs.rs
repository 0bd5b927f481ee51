//! Saves the sources and binaries that the profiles of a side name, before the worktree of the side is removed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pprofdiff::list::{SourceCode, SourceDirs};
use pprofdiff::recording::Recording;

use super::sides::Checkout;

/// The maximum size of a saved binary.
const MAX_BINARY_BYTES: u64 = 1 << 30;

/// Copies the named files that are inside the side's checkout: `named` has the sources and the binaries. A copied
/// source keeps the full path that the profile records, so a lookup by that path finds it. Files elsewhere, such as the
/// sources of a runtime, are not copied. A binary keeps its file name only, unless several binaries share it.
///
/// # Errors
/// Returns the first error. The files after it are copied nevertheless.
pub fn keep(dir: &Path, side: usize, checkout: &Checkout, named: &[Vec<String>; 2]) -> io::Result<()> {
    let sources = &Recording::sources(dir)[side];
    let dirs = SourceDirs::new(vec![checkout.dir.clone(), checkout.root.clone()], Vec::new());
    let files = dirs.files();
    let mut result = Ok(());
    for name in &named[0] {
        let (Some(source), Some(path)) = (files.find(true, name), plain(name)) else { continue };
        result = result.and(save(&sources.join(path), |path| fs::write(path, source.text.as_bytes())));
    }
    let binaries = &Recording::binaries(dir)[side];
    let mut binaries_to_save = Vec::new();
    for name in &named[1] {
        let Ok(real) = fs::canonicalize(checkout.dir.join(name)) else { continue };
        let Ok(metadata) = real.metadata() else { continue };
        if real.starts_with(&checkout.root) && metadata.is_file() && metadata.len() <= MAX_BINARY_BYTES {
            binaries_to_save.push((name, real));
        }
    }
    for (name, real) in &binaries_to_save {
        let Some(file) = real.file_name() else { continue };
        let is_unique = binaries_to_save.iter().all(|(_, other)| other == real || other.file_name() != Some(file));
        // A lookup tries the file name, and then the path that the profile records.
        let path = if is_unique { file.into() } else { plain(name).unwrap_or_else(|| file.into()) };
        result = result.and(save(&binaries.join(path), |path| fs::copy(real, path).map(drop)));
    }
    result
}

/// Writes a file, and creates its folder.
fn save(path: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    write(path)
}

/// Converts a path from a profile to a relative path, under which listings can find the saved file. Returns `None` for
/// paths with `..` and for empty paths.
fn plain(name: &str) -> Option<PathBuf> {
    let name = name.replace('\\', "/");
    let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    // Skips a drive letter or a URL scheme.
    let first = parts.iter().rposition(|part| part.ends_with(':')).map_or(0, |i| i + 1);
    (!parts.contains(&"..") && first < parts.len()).then(|| parts[first..].iter().collect())
}

#[cfg(test)]
mod tests {
    use super::{Checkout, Path, fs, keep, plain};

    #[test]
    fn each_file_is_saved_even_if_names_collide() -> Result<(), Box<dyn std::error::Error>> {
        let root = std::env::temp_dir().join(format!("pprofdiff-saved-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        for file in ["side/a/app", "side/b/app", "side/tool", "side/sub/x.go", "side/y.go"] {
            fs::create_dir_all(root.join(file).parent().unwrap_or(&root))?;
            fs::write(root.join(file), file)?;
        }
        // The first source can't be written: its folder is a file.
        fs::create_dir_all(root.join("runs/sources/base"))?;
        fs::write(root.join("runs/sources/base/sub"), "")?;
        let named = [&["sub/x.go", "y.go"][..], &["a/app", "b/app", "tool"]];
        let named = named.map(|names| names.iter().map(|&name| name.to_owned()).collect());
        let side = Checkout::from_dir(&root.join("side")).map_err(|_| "no folder")?;
        assert!(keep(&root.join("runs"), 0, &side, &named).is_err());
        assert_eq!(text("runs/sources/base/y.go"), "side/y.go");
        let saved = ["a/app", "b/app", "tool"].map(|file| text(&format!("runs/binaries/base/{file}")));
        assert_eq!(saved, ["side/a/app", "side/b/app", "side/tool"]);
        fs::remove_dir_all(root)?;
        Ok(())
    }

    #[test]
    fn paths_from_a_profile_stay_inside_the_folder() {
        assert_eq!(plain("/tmp/a/x.go").as_deref(), Some(Path::new("tmp/a/x.go")));
        assert_eq!(plain("file:///tmp/./a.js").as_deref(), Some(Path::new("tmp/a.js")));
        assert_eq!(plain("C:\\a\\b.c").as_deref(), Some(Path::new("a/b.c")));
        assert!(plain("a/../../b").is_none() && plain("").is_none() && plain("/").is_none());
    }
}
