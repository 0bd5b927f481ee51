//! A profile over http or https: the bytes, or one line that says why there are none.
//!
//! https trusts what the system trusts (the platform's certificates), so a company's own authority works.

use std::path::Path;
#[cfg(not(feature = "network"))]
use std::time::Duration;

#[cfg(feature = "network")]
pub use network::Fetcher;

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
    let is_scheme = |text: &str, scheme: &str| text.get(..scheme.len()).is_some_and(|s| s.eq_ignore_ascii_case(scheme));
    path.to_str().filter(|text| is_scheme(text, "http://") || is_scheme(text, SECURE))
}

const SECURE: &str = "https://";

#[cfg(feature = "network")]
mod network {
    use std::io::{self, Read};
    use std::time::Duration;

    use pprofdiff::text::redacted;

    use pprofdiff::{Error, Result};
    use ureq::Agent;
    use ureq::tls::{RootCerts, TlsConfig};

    use super::SECURE;

    /// Most bytes of an answer that is an error which are read for the server's own words.
    const MAX_MESSAGE_BYTES: u64 = 4096;

    /// Fetches profiles; from one place, again and again over one connection.
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

        /// The body of the answer. What begins with https is not redirected to http.
        ///
        /// # Errors
        /// No answer in time, one that is longer than the limit, or one that says no; without passwords of the URL.
        pub fn get(&self, url: &str) -> Result<Vec<u8>> {
            self.body(url).map_err(|reason| {
                // The reason may repeat the URL.
                Error::io(io::Error::other(redacted(&reason).into_owned())).in_input(&redacted(url))
            })
        }

        fn body(&self, url: &str) -> Result<Vec<u8>, String> {
            let is_secure = url.get(..SECURE.len()).is_some_and(|s| s.eq_ignore_ascii_case(SECURE));
            let failure = |e: ureq::Error| match e {
                ureq::Error::Timeout(_) => format!("no answer within {}", seconds(self.timeout)),
                ureq::Error::BodyExceedsLimit(limit) => format!("the answer is longer than the limit of {limit} bytes"),
                ureq::Error::RequireHttpsOnly(_) => {
                    "it is redirected from https to http, which is not followed".to_owned()
                }
                e => e.to_string(),
            };
            let request = self.agent.get(url).config().https_only(is_secure).build();
            let mut response = request.call().map_err(failure)?;
            let status = response.status();
            if !status.is_success() {
                // The server's own words, if it has some.
                let mut text = Vec::new();
                let _ = response.body_mut().as_reader().take(MAX_MESSAGE_BYTES).read_to_end(&mut text);
                let text = String::from_utf8_lossy(&text);
                let said: String = text.lines().next().unwrap_or_default().trim().chars().take(200).collect();
                let said = if said.is_empty() || said.starts_with('<') { String::new() } else { format!(": {said}") };
                return Err(format!("the server answers {status}{said}"));
            }
            response.body_mut().with_config().limit(self.limit).read_to_vec().map_err(failure)
        }
    }

    /// A time as people write it.
    fn seconds(time: Duration) -> String {
        let seconds = time.as_secs_f64();
        if seconds.fract() == 0.0 { format!("{seconds:.0} s") } else { format!("{seconds:.3} s") }
    }
}

/// Of a build without the network: says so instead of fetching.
#[cfg(not(feature = "network"))]
pub struct Fetcher;

#[cfg(not(feature = "network"))]
impl Fetcher {
    pub fn new(_: Duration, _: u64) -> Fetcher {
        Fetcher
    }

    pub fn get(&self, url: &str) -> pprofdiff::Result<Vec<u8>> {
        let detail = "this build reads no URLs (it has no feature \"network\")";
        Err(pprofdiff::Error::query(detail).in_input(&pprofdiff::text::redacted(url)))
    }
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
