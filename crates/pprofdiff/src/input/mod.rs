//! Sources of profiles: files, bytes, fetched content, profiles that are already loaded, and sources that other crates
//! define. The submodules find files by pattern, in pairs, from a manifest, or as the builds of a history.

mod builds;
mod custom;
#[cfg(feature = "files")]
mod groups;
#[cfg(feature = "files")]
mod pairs;
#[cfg(feature = "files")]
mod patterns;
#[cfg(feature = "files")]
mod server;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use builds::{GroupReadings, GroupedBuilds, HistoryBuilds, file_builds, group_readings, sort_builds};
#[doc(hidden)]
pub use builds::{check_history, two_names};
pub use custom::ProfileSource;
#[doc(hidden)]
pub use custom::{Costs, DerivedData, FunctionCost, TypeCosts};
#[cfg(feature = "files")]
pub use groups::Groups;
#[cfg(feature = "files")]
#[doc(hidden)]
pub use groups::{ListedFile, listed_files};
#[cfg(feature = "files")]
pub use pairs::{BatchItem, manifest_pairs};
#[cfg(feature = "files")]
pub use patterns::Finder;
#[cfg(feature = "files")]
#[doc(hidden)]
pub use patterns::{Objects, SIGNS};
#[cfg(feature = "files")]
#[doc(hidden)]
pub use server::{Answer, Credentials, ServerQuery, ServerRequest, Token, is_loopback};

pub use pprofdiff_formats::InputFormat;

use crate::LoadOptions;
use pprofdiff_profile::Profile;
use pprofdiff_profile::parallel;
use pprofdiff_profile::shared::merge_as;
use pprofdiff_profile::text::{Secrets, redacted};
use pprofdiff_profile::{Error, Result};

/// A callback that fetches a source's bytes, for example from a URL, an archive or a database. It runs once each time
/// the profile is loaded, on the thread that loads it.
#[derive(Clone)]
pub struct Fetch(Arc<dyn Fn() -> Result<(Vec<u8>, Secrets)> + Send + Sync>);

impl Fetch {
    /// Creates a source from `fetch`, which returns the bytes or an error that explains the failure.
    pub fn new(fetch: impl Fn() -> Result<Vec<u8>> + Send + Sync + 'static) -> Fetch {
        Fetch(Arc::new(move || Ok((fetch()?, Secrets::default()))))
    }

    /// Creates a source that returns bytes and the secrets of the request. The secrets are redacted from errors about
    /// the bytes, and from the profile.
    pub fn with_secrets(fetch: impl Fn() -> Result<(Vec<u8>, Secrets)> + Send + Sync + 'static) -> Fetch {
        Fetch(Arc::new(fetch))
    }
}

impl fmt::Debug for Fetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fetch")
    }
}

/// The origin of a profile.
///
/// A path always means a file, even if it looks like a URL. The caller decides whether a user's text is a file or a
/// URL, and fetches the URL.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Source {
    /// A file: gzip, zstd or raw.
    Path(PathBuf),
    /// A name for errors and reports, and the content of a profile's file.
    Bytes(String, Vec<u8>),
    /// A name for errors and reports, and a callback that fetches the file's content when the profile is loaded.
    Fetch(String, Fetch),
    /// A profile that is already loaded.
    Profile(Arc<Profile>),
    /// A name for errors and reports, and the sources whose profiles are added up.
    Merged(String, Vec<Source>),
    /// A profile that a crate above this one loads, such as a profile in a store.
    Custom(Arc<dyn ProfileSource>),
}

impl Source {
    /// Loads the profile, unless it is loaded already.
    ///
    /// # Errors
    /// Returns the errors of [`open`](crate::open), of the fetch and of merging. Also returns an error if the options
    /// choose a part of a recording and the profile is already loaded as another part.
    pub fn load(&self, options: &LoadOptions) -> Result<Arc<Profile>> {
        match self {
            Source::Path(path) => crate::open(path, options).map(Arc::new),
            Source::Bytes(name, bytes) => crate::from_bytes(name, bytes, options).map(Arc::new),
            Source::Fetch(name, fetch) => {
                let (bytes, secrets) = (fetch.0)().map_err(|e| e.in_input(&redacted(name)))?;
                let profile = crate::from_bytes(name, &bytes, options);
                Ok(Arc::new(profile.map_err(|e| e.without(&secrets))?.without(&secrets)))
            }
            // The profile may already be loaded as this part of its recording.
            Source::Profile(profile) if options.time.is_none() || profile.window() == options.time.as_ref() => {
                Ok(profile.clone())
            }
            Source::Profile(profile) => Err(Error::query(
                "the profile is already loaded, but a part of a recording is chosen while loading; pass the file's name",
            )
            .in_input(profile.name())),
            Source::Custom(custom) => custom.load(options).map(Arc::new),
            Source::Merged(name, parts) => {
                let profiles =
                    parallel::map(parts, |part| part.load(options)).into_iter().collect::<Result<Vec<_>>>()?;
                let window = profiles.first().and_then(|profile| profile.window().cloned());
                let window = window.filter(|window| profiles.iter().all(|profile| profile.window() == Some(window)));
                merge_as(name, &profiles.iter().map(|profile| &**profile).collect::<Vec<_>>())
                    .map(|merged| Arc::new(merged.with_window(window)))
            }
        }
    }

    /// Returns the path if the source is a file.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Source::Path(path) => Some(path),
            _ => None,
        }
    }

    /// Returns the profile's name in errors and reports, without a URL's password.
    pub fn name(&self) -> String {
        match self {
            Source::Path(path) => redacted(&path.to_string_lossy()).into_owned(),
            Source::Bytes(name, _) | Source::Fetch(name, _) | Source::Merged(name, _) => redacted(name).into_owned(),
            Source::Profile(profile) => profile.name().to_owned(),
            Source::Custom(custom) => redacted(&custom.name()).into_owned(),
        }
    }

    /// Returns a copy of a fetched, merged or custom source, which can be loaded again later. Returns `None` for a
    /// file, because its path is enough, and for bytes and loaded profiles, because a copy would keep them in memory.
    pub fn again(&self) -> Option<Source> {
        match self {
            Source::Path(_) | Source::Bytes(..) | Source::Profile(_) => None,
            lazy => Some(lazy.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn merged_source_loads_the_sum_under_its_own_name() {
        let bytes = |value: i64| {
            let mut b = pprofdiff_profile::builder::ProfileBuilder::new();
            b.sample_type("cpu", "nanoseconds");
            b.sample(&[], &[value], &[]).and_then(|()| b.build("a")).and_then(|p| p.to_bytes(&Default::default()))
        };
        let parts = [3, 4].map(|value| Source::Bytes("part".to_owned(), bytes(value).unwrap_or_default()));
        let source = Source::Merged("runs/base".to_owned(), parts.into());
        let profile = source.load(&LoadOptions::default());
        let total = |p: &Profile| p.samples().map(|sample| sample.value(0)).sum::<i64>();
        assert_eq!(profile.map(|p| (p.name().to_owned(), total(&p))).ok(), Some(("runs/base".to_owned(), 7)));
        assert_eq!((source.name().as_str(), source.path()), ("runs/base", None));
    }

    #[test]
    fn fetch_runs_on_each_load_and_its_errors_name_the_source() {
        let fetch_count = Arc::new(AtomicU32::new(0));
        let counter = fetch_count.clone();
        let fetch = Fetch::new(move || match counter.fetch_add(1, Ordering::Relaxed) {
            0 => Ok(vec![0x32, 0]),
            1 => Ok(vec![0xff]),
            _ => Err(Error::query("nobody is there")),
        });
        let source = Source::Fetch("http://user:secret@host/x".to_owned(), fetch);
        let options = LoadOptions::default();
        assert_eq!((fetch_count.load(Ordering::Relaxed), source.name().as_str()), (0, "http://***@host/x"));
        // The smallest valid profile is one empty string.
        assert!(source.load(&options).is_ok_and(|p| p.name() == "http://***@host/x" && p.n_samples() == 0));
        let broken = source.clone().load(&options).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(broken.starts_with("http://***@host/x: "), "{broken}");
        let failed = source.load(&options).err().map(|e| e.to_string());
        assert_eq!(failed.as_deref(), Some("http://***@host/x: nobody is there"));
        assert_eq!(fetch_count.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn secrets_of_a_request_are_masked_in_its_profile_and_errors() {
        let load = |bytes: &'static [u8]| {
            let fetch = Fetch::with_secrets(move || {
                let mut secrets = Secrets::default();
                secrets.add("s3cret-of-24-bytes-or-so");
                Ok((bytes.to_vec(), secrets))
            });
            Source::Fetch("http://host/x".to_owned(), fetch).load(&LoadOptions::default())
        };
        let profile = load(b"main;GET /x?t=s3cret-of-24-bytes-or-so 10\nmain;other 5\n");
        let names = |p: &Profile| {
            (1..p.n_strings() as u32).map(|id| p.text(pprofdiff_profile::columns::StringId(id))).collect()
        };
        let names: Vec<String> = profile.map(|p| names(&p)).unwrap_or_default();
        assert!(names.iter().any(|name| name == "GET /x?t=************************"), "{names:?}");
        let error = load(b"main;f 1\ns3cret-of-24-bytes-or-so\n").err().map(|e| e.to_string()).unwrap_or_default();
        assert!(!error.is_empty() && !error.contains("s3cret"), "{error}");
    }
}
