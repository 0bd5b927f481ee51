//! Where profiles come from: files, bytes, and what is loaded already; files by pattern, in pairs, in manifests, or as the
//! builds of a history.

#[cfg(feature = "files")]
mod builds;
#[cfg(feature = "files")]
mod pairs;

use std::path::PathBuf;
use std::sync::Arc;

#[cfg(feature = "files")]
pub use builds::{file_builds, pattern_builds, sort_builds};
#[cfg(feature = "files")]
pub use pairs::{NamedPair, directory_pairs, find_pairs, manifest_pairs, pattern_pairs};

use crate::error::Result;
use crate::profile::{LoadOptions, Profile};
use crate::redact::redacted;

/// Where a profile comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// A file: gzip, zstd or raw.
    Path(PathBuf),
    /// The content of such a file, and a name for it in errors and reports.
    Bytes(String, Vec<u8>),
    /// A profile that is loaded already.
    Profile(Arc<Profile>),
}

impl Source {
    /// Loads the profile, unless it is loaded already.
    ///
    /// # Errors
    /// As [`Profile::open`].
    pub fn load(&self, options: &LoadOptions) -> Result<Arc<Profile>> {
        match self {
            Source::Path(path) => Profile::open(path, options).map(Arc::new),
            Source::Bytes(name, bytes) => Profile::from_bytes(name, bytes, options).map(Arc::new),
            Source::Profile(profile) => Ok(profile.clone()),
        }
    }

    /// What the profile is called in errors and reports; without a URL's password.
    pub fn name(&self) -> String {
        match self {
            Source::Path(path) => redacted(&path.to_string_lossy()).into_owned(),
            Source::Bytes(name, _) => redacted(name).into_owned(),
            Source::Profile(profile) => profile.name().to_owned(),
        }
    }
}
