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
/// sources of a runtime, are not copied.
pub fn keep(dir: &Path, side: usize, checkout: &Checkout, named: &[Vec<String>; 2]) -> io::Result<()> {
    let sources = &Recording::sources(dir)[side];
    let dirs = SourceDirs::new(vec![checkout.dir.clone(), checkout.root.clone()], Vec::new());
    let files = dirs.files();
    for name in &named[0] {
        let (Some(source), Some(path)) = (files.find(true, name), plain(name)) else { continue };
        let path = sources.join(path);
        fs::create_dir_all(path.parent().unwrap_or(sources))?;
        fs::write(path, source.text.as_bytes())?;
    }
    let binaries = &Recording::binaries(dir)[side];
    for name in &named[1] {
        let Ok(real) = fs::canonicalize(checkout.dir.join(name)) else { continue };
        let metadata = real.metadata()?;
        let is_wanted = real.starts_with(&checkout.root) && metadata.is_file() && metadata.len() <= MAX_BINARY_BYTES;
        if let Some(file) = real.file_name().filter(|_| is_wanted) {
            fs::create_dir_all(binaries)?;
            fs::copy(&real, binaries.join(file))?;
        }
    }
    Ok(())
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
    use super::{Path, plain};

    #[test]
    fn paths_from_a_profile_stay_inside_the_folder() {
        assert_eq!(plain("/tmp/a/x.go").as_deref(), Some(Path::new("tmp/a/x.go")));
        assert_eq!(plain("file:///tmp/./a.js").as_deref(), Some(Path::new("tmp/a.js")));
        assert_eq!(plain("C:\\a\\b.c").as_deref(), Some(Path::new("a/b.c")));
        assert!(plain("a/../../b").is_none() && plain("").is_none() && plain("/").is_none());
    }
}
