//! Recognizes addresses among the inputs: URLs, queries to a continuous profiler, and objects in a store. The crate
//! pprofdiff-remote fetches them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

#[cfg(not(feature = "network"))]
pub use offline::NoFetcher as Fetcher;
use pprofdiff::Source;
use pprofdiff::input::{Fetch, ServerQuery};
use pprofdiff::loading::Loading;
use pprofdiff::text::{Secrets, redacted};
#[cfg(feature = "network")]
pub use pprofdiff_remote::Fetcher;

use crate::bucket;

/// Returns the reason why the profile of a net/http/pprof URL can't be subtracted, as far as the URL shows it.
/// Reporting this early avoids waiting up to half a minute for the answer.
pub fn not_cumulative(url: &str) -> Option<&'static str> {
    let (address, query) = url.split_once(['?', '#']).unwrap_or((url, ""));
    let mut parts = address.trim_end_matches('/').rsplit('/');
    match (parts.next()?, parts.next()?) {
        ("profile", "pprof") => Some("a CPU profile covers only the time while it is recorded"),
        ("goroutine" | "goroutineleak" | "threadcreate", "pprof") => {
            Some("it counts what currently exists, and not from the start of the process")
        }
        (_, "pprof") if query.split('&').any(|word| word.starts_with("seconds=")) => {
            Some("with seconds= in the URL the server already subtracts")
        }
        _ => None,
    }
}

/// Returns the URL if a path on the command line is an http or https URL, a query to a continuous profiler, or the
/// address of an object.
pub fn url(path: &Path) -> Option<&str> {
    page_url(path).or_else(|| path.to_str().filter(|text| ServerQuery::is_address(text) || bucket::is_address(text)))
}

/// Returns the URL if a path on the command line is an http or https URL.
pub fn page_url(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| begins_with(text, "http://") || begins_with(text, SECURE))
}

/// Returns true if `text` begins with `scheme`, ignoring case.
pub fn begins_with(text: &str, scheme: &str) -> bool {
    text.get(..scheme.len()).is_some_and(|s| s.eq_ignore_ascii_case(scheme))
}

const SECURE: &str = "https://";

/// Returns the profile of a URL. The profile is fetched when it is loaded. A token that is valid for any host is sent
/// to a continuous profiler only if the user named the URL.
///
/// # Errors
/// Fails if the address of a query or of an object is invalid.
pub fn source(fetcher: &Arc<Fetcher>, url: &str, is_named_by_user: bool) -> pprofdiff::Result<Source> {
    if bucket::is_address(url) {
        return bucket::source(fetcher, url);
    }
    let (fetcher, shown, address) = (fetcher.clone(), redacted(url).into_owned(), url.to_owned());
    let fetch = if ServerQuery::is_address(url) {
        // Fixes the current time now, so that loading the source twice fetches the same period.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as i64);
        let query = ServerQuery::parse(url, now).map_err(|e| e.in_input(&shown).without(&Secrets::of_url(url)))?;
        Fetch::with_secrets(move || fetcher.ask(&query, is_named_by_user))
    } else {
        Fetch::with_secrets(move || fetcher.get(&address))
    };
    Ok(Source::Fetch(shown, fetch))
}

/// Returns the profile for an address of a continuous profiler, loaded like in [`run`](crate::run). The Python package
/// uses it, because it has no HTTP client. Returns `None` for other addresses.
///
/// # Errors
/// Fails if the address is invalid.
pub fn server_source(address: &str) -> Option<pprofdiff::Result<Source>> {
    /// The same value as the default of `--timeout`.
    const TIMEOUT: Duration = Duration::from_secs(60);
    ServerQuery::is_address(address).then(|| {
        let limit = Loading::default().to_options()?.inflated_limit;
        source(&Arc::new(Fetcher::new(TIMEOUT, limit)), address, true)
    })
}

/// The replacement for builds without the network, which only returns errors.
#[cfg(not(feature = "network"))]
mod offline {
    use std::time::Duration;

    use pprofdiff::input::ServerQuery;
    use pprofdiff::text::{Secrets, redacted};
    use pprofdiff::{Error, Result};

    pub struct NoFetcher;

    impl NoFetcher {
        pub fn new(_: Duration, _: u64) -> NoFetcher {
            NoFetcher
        }

        pub fn get(&self, url: &str) -> Result<(Vec<u8>, Secrets)> {
            let detail = "this build can't read URLs (feature \"network\" is off)";
            Err(Error::query(detail).in_input(&redacted(url)))
        }

        pub fn ask(&self, _: &ServerQuery, _: bool) -> Result<(Vec<u8>, Secrets)> {
            Err(Error::query("this build can't query servers (feature \"network\" is off)"))
        }

        pub fn object(&self, _: &str, _: &str) -> Result<(Vec<u8>, Secrets)> {
            Err(Error::query("this build can't read object stores (feature \"network\" is off)"))
        }

        pub fn list_objects(&self, bucket: &str, key: &str, _: &mut dyn FnMut(String)) -> Result<()> {
            self.object(bucket, key).map(drop)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::not_cumulative;

    #[test]
    fn the_path_shows_whether_a_profile_counts_from_the_start() {
        let is_cumulative = |rest: &str| not_cumulative(&format!("http://localhost:6060/{rest}")).is_none();
        for path in ["heap", "allocs?gc=1", "mutex", "block", "heap/", "heap?debug=0"] {
            assert!(is_cumulative(&format!("debug/pprof/{path}")), "{path}");
        }
        for path in [
            "profile",
            "profile?seconds=5",
            "profile/",
            "goroutine",
            "goroutineleak",
            "threadcreate",
            "heap?gc=1&seconds=30",
        ] {
            assert!(!is_cumulative(&format!("debug/pprof/{path}")), "{path}");
            assert!(!is_cumulative(&format!("internal/pprof/{path}")), "{path}");
        }
        // Another server may use these names for anything.
        assert!(
            is_cumulative("profile")
                && is_cumulative("goroutine?seconds=1")
                && is_cumulative("")
                && not_cumulative("http://pprof").is_none()
        );
    }
}
