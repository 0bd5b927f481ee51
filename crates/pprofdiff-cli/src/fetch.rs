//! A profile over http or https: the bytes, or one line that says why there are none.

use std::path::Path;
use std::time::Duration;

#[cfg(not(feature = "network"))]
use crate::Result;

/// Why what net/http/pprof serves under a URL can't be subtracted, as far as the URL tells: who finds out from the
/// answer may have waited half a minute for it.
pub fn not_cumulative(url: &str) -> Option<&'static str> {
    let (address, query) = url.split_once(['?', '#']).unwrap_or((url, ""));
    let mut parts = address.trim_end_matches('/').rsplit('/');
    match (parts.next()?, parts.next()?) {
        ("profile", "pprof") => Some("a CPU profile is of the time in which it is taken"),
        ("goroutine" | "threadcreate", "pprof") => {
            Some("it counts what there is, and not from the start of the process")
        }
        (_, "pprof") if query.split('&').any(|word| word.starts_with("seconds=")) => {
            Some("with seconds= in the URL the server subtracts already")
        }
        _ => None,
    }
}

/// The URL that a path on the command line really is.
pub fn url(path: &Path) -> Option<&str> {
    path.to_str().filter(|p| p.starts_with("http://") || p.starts_with("https://"))
}

#[cfg(feature = "network")]
pub use network::Fetcher;

#[cfg(feature = "network")]
mod network {
    use std::time::Duration;

    use pprofdiff::redacted;
    use ureq::Agent;
    use ureq::tls::{RootCerts, TlsConfig};

    use super::seconds;
    use crate::{Failure, Result};

    /// Fetches from one place, again and again over one connection.
    pub struct Fetcher {
        agent: Agent,
        timeout: Duration,
        /// Most bytes of an answer.
        limit: u64,
    }

    impl Fetcher {
        pub fn new(timeout: Duration, limit: u64) -> Fetcher {
            let config = Agent::config_builder()
                .timeout_global(Some(timeout))
                // We say it in our words.
                .http_status_as_error(false)
                .user_agent(concat!("pprofdiff/", env!("CARGO_PKG_VERSION")))
                .tls_config(TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build());
            Fetcher { agent: config.build().into(), timeout, limit }
        }

        pub fn get(&self, url: &str) -> Result<Vec<u8>> {
            let failure = |e: ureq::Error| {
                let reason = match e {
                    ureq::Error::Timeout(_) => format!("no answer within {}", seconds(self.timeout)),
                    ureq::Error::BodyExceedsLimit(limit) => {
                        format!("the answer is longer than the limit of {limit} bytes")
                    }
                    ureq::Error::Io(e) => e.to_string(),
                    e => e.to_string(),
                };
                // The reason may repeat the URL.
                Failure::Message(redacted(&format!("{url}: {reason}")).into_owned())
            };
            let mut response = self.agent.get(url).call().map_err(failure)?;
            let status = response.status();
            let body = response.body_mut().with_config().limit(self.limit);
            if !status.is_success() {
                // The server's own words, if it has some.
                let text = body.lossy_utf8(true).read_to_string().unwrap_or_default();
                let said: String = text.lines().next().unwrap_or_default().trim().chars().take(200).collect();
                let said = if said.is_empty() || said.starts_with('<') { String::new() } else { format!(": {said}") };
                return Err(Failure::Message(format!("{}: the server answers {status}{said}", redacted(url))));
            }
            body.read_to_vec().map_err(failure)
        }
    }
}

/// What stands in its place in a build without the feature `network`.
#[cfg(not(feature = "network"))]
pub struct Fetcher;

#[cfg(not(feature = "network"))]
impl Fetcher {
    pub fn new(_: Duration, _: u64) -> Fetcher {
        Fetcher
    }

    pub fn get(&self, url: &str) -> Result<Vec<u8>> {
        let url = pprofdiff::redacted(url);
        Err(crate::Failure::Message(format!("{url}: this build reads no URLs (it has no feature \"network\")")))
    }
}

/// A time as people write it.
#[cfg(feature = "network")]
pub fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds.fract() == 0.0 { format!("{seconds:.0} s") } else { format!("{seconds:.3} s") }
}

#[cfg(test)]
mod tests {
    use super::not_cumulative;

    #[test]
    fn the_path_tells_what_counts_from_the_start() {
        let at = |rest: &str| not_cumulative(&format!("http://localhost:6060/{rest}")).is_none();
        for path in ["heap", "allocs?gc=1", "mutex", "block", "heap/", "heap?debug=0"] {
            assert!(at(&format!("debug/pprof/{path}")), "{path}");
        }
        for path in ["profile", "profile?seconds=5", "profile/", "goroutine", "threadcreate", "heap?gc=1&seconds=30"] {
            assert!(!at(&format!("debug/pprof/{path}")), "{path}");
            assert!(!at(&format!("internal/pprof/{path}")), "{path}");
        }
        // What another server calls so may be anything.
        assert!(at("profile") && at("goroutine?seconds=1") && at("") && not_cumulative("http://pprof").is_none());
    }
}
