//! What is kept of a side when its worktree is gone: the sources and binaries that its profiles name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pprofdiff::list::{SourceCode, SourceDirs};
use pprofdiff::recording::Recording;

use super::sides::Checkout;

/// Larger binaries are no longer looked at by anyone.
const MAX_BINARY_BYTES: u64 = 1 << 30;

/// Copies what is below the side's folder. A file has the whole path that the profile gives it, so that it is found by
/// that; what lies elsewhere (a runtime's) is left where it is.
pub fn keep(dir: &Path, side: usize, checkout: &Checkout, named: &[Vec<String>; 2]) -> io::Result<()> {
    let sources = &Recording::sources(dir)[side];
    let dirs = SourceDirs::new(vec![checkout.dir.clone(), checkout.root.clone()], Vec::new());
    let files = dirs.files();
    for name in &named[0] {
        let (Some(found), Some(path)) = (files.find(true, name), plain(name)) else { continue };
        let path = sources.join(path);
        fs::create_dir_all(path.parent().unwrap_or(sources))?;
        fs::write(path, found.text.as_bytes())?;
    }
    let binaries = &Recording::binaries(dir)[side];
    for name in &named[1] {
        let Ok(real) = fs::canonicalize(checkout.dir.join(name)) else { continue };
        let about = real.metadata()?;
        let is_wanted = real.starts_with(&checkout.root) && about.is_file() && about.len() <= MAX_BINARY_BYTES;
        if let Some(file) = real.file_name().filter(|_| is_wanted) {
            fs::create_dir_all(binaries)?;
            fs::copy(&real, binaries.join(file))?;
        }
    }
    Ok(())
}

/// A path of a profile as one below a folder, as listings look for it.
fn plain(name: &str) -> Option<PathBuf> {
    let name = name.replace('\\', "/");
    let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    // A drive, or the scheme of an address.
    let first = parts.iter().rposition(|part| part.ends_with(':')).map_or(0, |i| i + 1);
    (!parts.contains(&"..") && first < parts.len()).then(|| parts[first..].iter().collect())
}

#[cfg(test)]
mod tests {
    use super::{Path, plain};

    #[test]
    fn no_path_of_a_profile_leads_out_of_the_folder() {
        assert_eq!(plain("/tmp/a/x.go").as_deref(), Some(Path::new("tmp/a/x.go")));
        assert_eq!(plain("file:///tmp/./a.js").as_deref(), Some(Path::new("tmp/a.js")));
        assert_eq!(plain("C:\\a\\b.c").as_deref(), Some(Path::new("a/b.c")));
        assert!(plain("a/../../b").is_none() && plain("").is_none() && plain("/").is_none());
    }
}
