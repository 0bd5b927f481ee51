//! Source files on this machine, for source listings. Only this module and the loading of profiles read files.
//!
//! Paths in a profile are untrusted, so files are read only below the folders that the user named. A profile cannot
//! make a listing show any other file. Unlike pprof, this module neither opens absolute paths as they are, nor follows
//! `..` to parent folders. The end of a path suffices instead: `/build/7/src/app/names.go` is found as `app/names.go`
//! below a checkout.
//!
//! The content of a folder may also be untrusted, and contain links (`env.go -> /proc/self/environ`). A link is
//! followed only if it leads to a regular file below the same folder.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::diff::list::{SourceCode, SourceText};
use pprofdiff_profile::random::HashMap;

/// The maximum size of a source file. Larger files are not read.
const MAX_BYTES: u64 = 16 << 20;

/// The source folders of both builds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceDirs {
    base: Vec<PathBuf>,
    new: Vec<PathBuf>,
    /// Finds files before the folders are searched. Not serialized.
    #[serde(skip)]
    finder: Option<SourceFinder>,
}

/// Finds source files in another place than a folder, such as a repository.
pub trait FindSource: std::fmt::Debug + Send + Sync {
    /// Returns the text of a file in one side's build, as [`SourceCode::find`]. `None` lets the folders be searched.
    fn find(&self, base: bool, path: &str) -> Option<SourceText>;
}

/// A shared finder. Finders are equal if they share the same allocation.
#[derive(Debug, Clone)]
struct SourceFinder(Arc<dyn FindSource>);

impl PartialEq for SourceFinder {
    fn eq(&self, other: &SourceFinder) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SourceFinder {}

/// The source files below [`SourceDirs`]. Each path is searched once, and each file is read once, whatever paths and
/// links lead to it.
#[derive(Debug)]
pub struct SourceFiles<'d> {
    dirs: &'d SourceDirs,
    texts_by_path: RefCell<HashMap<(bool, String), Option<SourceText>>>,
    /// The contents of files by their real paths.
    texts: RefCell<HashMap<PathBuf, Arc<str>>>,
}

impl SourceDirs {
    /// Searches the base's files below `base`, and the new side's files below `new`. The first folder with the file is
    /// used.
    ///
    /// Below a folder, the whole path is tried first, then the path without its first part, and so on. The last part of
    /// a longer path suffices only if the part before it is the folder's name. Otherwise any `main.go` would match. A
    /// path with `..` is not searched.
    pub fn new(base: Vec<PathBuf>, new: Vec<PathBuf>) -> SourceDirs {
        SourceDirs { base, new, finder: None }
    }

    /// Sets what finds files before the folders are searched.
    #[must_use]
    pub fn with_finder(mut self, finder: impl FindSource + 'static) -> SourceDirs {
        self.finder = Some(SourceFinder(Arc::new(finder)));
        self
    }

    /// Returns the folders of both sides, each once.
    pub fn folders(&self) -> Vec<&Path> {
        let mut folders: Vec<&Path> = Vec::new();
        for folder in self.base.iter().chain(&self.new) {
            if !folders.contains(&folder.as_path()) {
                folders.push(folder);
            }
        }
        folders
    }

    /// Returns the files below the folders.
    pub fn files(&self) -> SourceFiles<'_> {
        SourceFiles { dirs: self, texts_by_path: RefCell::default(), texts: RefCell::default() }
    }
}

impl SourceFiles<'_> {
    fn look(&self, base: bool, path: &str) -> Option<SourceText> {
        if let Some(text) = self.dirs.finder.as_ref().and_then(|finder| finder.0.find(base, path)) {
            return Some(text);
        }
        let path = path.replace('\\', "/");
        let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty() && *p != ".").collect();
        if parts.contains(&"..") {
            return None;
        }
        // On Windows, a path from a drive letter on would lead out of the folder.
        let drive = parts.iter().rposition(|p| p.ends_with(':')).map_or(0, |i| i + 1);
        for dir in if base { &self.dirs.base } else { &self.dirs.new } {
            for first in drive..parts.len() {
                let last_alone = first > 0 && first + 1 == parts.len();
                if last_alone && !is_named(dir, parts[first - 1]) {
                    break;
                }
                let file: PathBuf = parts[first..].iter().collect();
                if let Some(text) = self.read(dir, &file) {
                    return Some(SourceText { place: dir.join(file).display().to_string(), text });
                }
            }
        }
        None
    }

    /// Returns the content of a regular file below a folder. Invalid UTF-8 is replaced. Returns `None` if there is no
    /// such file, if it is larger than [`MAX_BYTES`], or if a link leads out of the folder.
    fn read(&self, dir: &Path, file: &Path) -> Option<Arc<str>> {
        let dir = fs::canonicalize(dir).ok()?;
        let real = fs::canonicalize(dir.join(file)).ok()?;
        let below = real.strip_prefix(&dir).ok()?;
        if let Some(text) = self.texts.borrow().get(&real) {
            return Some(text.clone());
        }
        let file = open(&dir, below).ok()?;
        let meta = file.metadata().ok().filter(|m| m.is_file() && m.len() <= MAX_BYTES)?;
        let mut bytes = Vec::with_capacity(meta.len() as usize);
        file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
        let text: Arc<str> = text.into();
        self.texts.borrow_mut().insert(real, text.clone());
        Some(text)
    }
}

impl SourceCode for SourceFiles<'_> {
    fn find(&self, base: bool, path: &str) -> Option<SourceText> {
        let key = (base, path.to_owned());
        if let Some(text) = self.texts_by_path.borrow().get(&key) {
            return text.clone();
        }
        let text = self.look(base, path);
        self.texts_by_path.borrow_mut().insert(key, text.clone());
        text
    }
}

/// Returns true if `name` is the folder's name, even if the folder was given as `.`.
fn is_named(dir: &Path, name: &str) -> bool {
    let full = fs::canonicalize(dir);
    full.as_deref().unwrap_or(dir).file_name().is_some_and(|n| n == name)
}

/// Opens a file below a folder step by step, and follows no link, so a link that is created in the meantime cannot lead
/// out of the folder. Opening a pipe does not block.
#[cfg(unix)]
fn open(dir: &Path, below: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut handle = rustix::fs::open(dir, flags | OFlags::DIRECTORY, Mode::empty())?;
    let mut parts = below.components().peekable();
    while let Some(part) = parts.next() {
        let flags = if parts.peek().is_some() { flags | OFlags::DIRECTORY } else { flags };
        handle = rustix::fs::openat(&handle, part.as_os_str(), flags, Mode::empty())?;
    }
    Ok(handle.into())
}

/// Opens a file below a folder. A link that is created at this moment can still lead out of it.
#[cfg(not(unix))]
fn open(dir: &Path, below: &Path) -> io::Result<File> {
    File::open(dir.join(below))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::SourceDirs;
    use crate::list::SourceCode;

    #[test]
    fn a_file_is_found_by_the_end_of_its_path_and_only_below_the_folders() {
        let root = std::env::temp_dir().join(format!("pprofdiff-sources-{}", std::process::id()));
        let checkout = root.join("app");
        std::fs::create_dir_all(checkout.join("names")).unwrap();
        std::fs::write(checkout.join("names/names.go"), "names").unwrap();
        std::fs::write(checkout.join("main.go"), "main").unwrap();
        std::fs::write(root.join("secret"), "secret").unwrap();
        let sources = SourceDirs::new(vec![], vec![checkout.clone()]);
        let files = sources.files();
        let find = |path: &str| files.find(false, path).map(|t| t.text.to_string());
        let names = Some("names".to_owned());
        for path in ["names/names.go", "app/names/names.go", "/build/7/names/names.go", r"C:\src\names\names.go"] {
            assert_eq!(find(path), names, "{path}");
        }
        // The last part alone could belong to any program.
        assert_eq!(find("/src/app/main.go").as_deref(), Some("main"));
        assert_eq!(find("main.go").as_deref(), Some("main"));
        let secret = root.join("secret").display().to_string();
        for path in ["/src/other/main.go", "../secret", "names/../../secret", &secret, "", "names", "/", "a\0b"] {
            assert_eq!(find(path), None, "{path}");
        }
        assert!(files.find(true, "main.go").is_none());
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    #[cfg(unix)]
    fn links_do_not_lead_out_of_the_folders() {
        use std::os::unix::fs::symlink;
        let root = std::env::temp_dir().join(format!("pprofdiff-links-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        let app = root.join("app");
        std::fs::create_dir_all(app.join("src")).unwrap();
        std::fs::create_dir_all(root.join("apple")).unwrap();
        for file in ["app/src/main.go", "secret.go", "apple/secret.go"] {
            std::fs::write(root.join(file), file).unwrap();
        }
        let inside = app.join("src");
        let links = [
            ("env.go", "/proc/self/environ"),
            ("up.go", "../secret.go"),
            ("twice.go", "up.go"),
            ("beside.go", "../apple/secret.go"),
            ("out", ".."),
            ("tty.go", "/dev/tty"),
            ("loop.go", "loop.go"),
            ("within.go", "src/main.go"),
            ("whole", inside.to_str().unwrap()),
        ];
        for (link, to) in links {
            symlink(to, app.join(link)).unwrap();
        }
        assert!(std::process::Command::new("mkfifo").arg(app.join("pipe.go")).status().unwrap().success());
        // The folder itself may be reached through a link, because the user named it.
        symlink("app", root.join("link")).unwrap();
        for folder in [app.clone(), root.join("link"), root.join("apple/../app")] {
            let sources = SourceDirs::new(vec![folder.clone()], vec![]);
            let files = sources.files();
            let find = |path: &str| files.find(true, path).map(|t| (t.place, t.text.to_string()));
            let text = |path: &str| files.find(true, path).map(|t| t.text).unwrap();
            for path in ["src/main.go", "within.go", "whole/main.go"] {
                assert!(std::sync::Arc::ptr_eq(&text(path), &text("/any/src/main.go")), "{path} is read once more");
                let (place, text) = find(path).unwrap_or_else(|| panic!("{path} is not found"));
                assert_eq!((place, text.as_str()), (folder.join(path).display().to_string(), "app/src/main.go"));
            }
            let secrets = ["env.go", "up.go", "twice.go", "beside.go", "out/secret.go", "out/app/src/main.go/../x"];
            for path in secrets.iter().chain(&["tty.go", "loop.go", "pipe.go", "src", "out"]) {
                assert_eq!(find(path), None, "{path}");
            }
        }
        // A link that is created after the path was resolved.
        for path in ["out/secret.go", "up.go", "within.go", "whole/main.go"] {
            assert!(super::open(&app, path.as_ref()).is_err(), "{path}");
        }
        assert!(super::open(&app, "src/main.go".as_ref()).is_ok());
        std::fs::remove_dir_all(root).unwrap();
    }
}
