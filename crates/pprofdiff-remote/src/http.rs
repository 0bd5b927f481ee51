//! Fetches pages and sends queries over http or https. An error is a single line.
//!
//! https trusts the certificates of the system, so a company's own certificate authority works.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use pprofdiff::input::{Answer, ServerQuery, ServerRequest, is_loopback};
use pprofdiff::text::{Secrets, redacted, sanitize};
use pprofdiff::{Error, Result};
use ureq::http::{HeaderMap, Response};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body};
use url::{Host, Url};

/// The maximum number of bytes to read from an error response for its message.
const MAX_MESSAGE_BYTES: u64 = 4096;
/// The maximum number of redirects to follow for one request.
const MAX_REDIRECTS: usize = 10;
/// Maximum number of retries when a server is busy, and the initial wait.
const RETRIES: u32 = 4;
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// A client that fetches profiles and reuses its connections.
pub struct Fetcher {
    /// The client for other machines. It uses the proxy of the environment.
    agent: Agent,
    /// The client for servers on this machine. It uses no proxy, because a proxy would send secrets off the
    /// machine.
    direct: Agent,
    pub(crate) timeout: Duration,
    /// The maximum size of an answer in bytes.
    pub(crate) limit: u64,
}

impl Fetcher {
    /// Creates a client that gives up a request after `timeout`, and an answer with more than `limit` bytes.
    pub fn new(timeout: Duration, limit: u64) -> Fetcher {
        let config = || {
            Agent::config_builder()
                .timeout_global(Some(timeout))
                // `follow` writes the error message, with the server's own words.
                .http_status_as_error(false)
                // `follow` handles redirects, because each address has its own proxy and its own secrets.
                .max_redirects(0)
                .max_redirects_will_error(false)
                .user_agent(concat!("pprofdiff/", env!("CARGO_PKG_VERSION")))
                .tls_config(TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build())
        };
        Fetcher { agent: config().build().into(), direct: config().proxy(None).build().into(), timeout, limit }
    }

    /// Returns the client for the host of this address.
    fn agent(&self, url: &str) -> &Agent {
        let is_here = match Url::parse(url).ok().as_ref().and_then(Url::host) {
            Some(Host::Domain(name)) => is_loopback(name),
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.to_canonical().is_loopback(),
            None => false,
        };
        if is_here { &self.direct } else { &self.agent }
    }

    /// Returns the body of the answer, and the secrets of all addresses that led to it. An https address is not
    /// redirected to http.
    ///
    /// # Errors
    /// Fails if the server sends no answer in time, an answer that is longer than the limit, or an error status.
    /// Also fails for a redirect that is not followed. The message contains no secrets of the URL.
    pub fn get(&self, url: &str) -> Result<(Vec<u8>, Secrets)> {
        let mut secrets = Secrets::of_url(url);
        let body = self.follow(url, &mut secrets, self.timeout, self.limit);
        let body = body.map_err(|reason| secrets.redact(&reason).into_owned());
        let body = body.map_err(|reason| Error::io(io::Error::other(reason)).in_input(&redacted(url)))?;
        Ok((body, secrets))
    }

    /// Fetches the profile for a query. All requests together share the timeout of a single page.
    ///
    /// # Errors
    /// Fails like [`Fetcher::get`], or with the server's error message without tokens. Also fails if a token would
    /// leave this machine over plain http.
    pub fn ask(&self, query: &ServerQuery, is_named_by_user: bool) -> Result<(Vec<u8>, Secrets)> {
        let credentials = query.credentials(is_named_by_user, |name| std::env::var(name).ok())?;
        if credentials.has_token() && query.is_plain() && !is_here(query.host()) {
            let host = query.host();
            return Err(Error::query(format!(
                "{host} is not an address of this machine, so no token is sent to it over plain http"
            )));
        }
        let begin = Instant::now();
        let profile = query.fetch(&credentials, self.limit, &|request| {
            let left = self.timeout.saturating_sub(begin.elapsed());
            self.send(request, left).map_err(|reason| Error::io(io::Error::other(reason)))
        })?;
        Ok((profile, query.secrets(&credentials)))
    }

    fn send(&self, request: ServerRequest, left: Duration) -> Result<Answer, String> {
        let late = || {
            let waited = seconds(self.timeout);
            format!("no answer within {waited}; request a shorter period (from=, until=), or raise --timeout")
        };
        let failure = |e: ureq::Error| match e {
            ureq::Error::Timeout(_) => late(),
            // The message of rustls for an answer that is not TLS.
            e if e.to_string().contains("InvalidContentType") => {
                "the server does not use TLS; add +http to the scheme, as in pyroscope+http://HOST".to_owned()
            }
            e => self.reason(e),
        };
        if left.is_zero() {
            return Err(late());
        }
        let agent = self.agent(&request.url);
        let ask = |left: Duration| match &request.body {
            Some(body) => {
                let post = request.headers.iter().fold(agent.post(&request.url), |r, (k, v)| r.header(*k, v));
                post.config().timeout_global(Some(left)).build().send(body)
            }
            None => {
                let get = request.headers.iter().fold(agent.get(&request.url), |r, (k, v)| r.header(*k, v));
                get.config().timeout_global(Some(left)).build().call()
            }
        };
        let mut response = send_with_retries(left, ask).map_err(failure)?;
        let header = |headers: &HeaderMap, name: &str| {
            headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
        };
        let [content_type, location] = ["content-type", "location"].map(|name| header(response.headers(), name));
        let mut answer = Answer { status: response.status().as_u16(), content_type, location, body: Vec::new() };
        if response.status().is_success() {
            let limit = self.limit;
            answer.body = response.body_mut().with_config().limit(limit).read_to_vec().map_err(failure)?;
        } else {
            let _ = response.body_mut().as_reader().take(MAX_MESSAGE_BYTES).read_to_end(&mut answer.body);
        }
        Ok(answer)
    }

    fn reason(&self, e: ureq::Error) -> String {
        match e {
            ureq::Error::Timeout(_) => format!("no answer within {}", seconds(self.timeout)),
            ureq::Error::BodyExceedsLimit(limit) => format!("the answer is longer than the limit of {limit} bytes"),
            e => e.to_string(),
        }
    }

    /// Returns the body of the answer, or an error message without `secrets`. Follows redirects, except from https
    /// to http.
    pub(crate) fn body(&self, url: &str, secrets: &Secrets, time: Duration, limit: u64) -> Result<Vec<u8>, String> {
        let mut secrets = secrets.clone();
        let body = self.follow(url, &mut secrets, time, limit);
        body.map_err(|reason| secrets.redact(&reason).into_owned())
    }

    fn follow(&self, url: &str, secrets: &mut Secrets, time: Duration, limit: u64) -> Result<Vec<u8>, String> {
        let begin = Instant::now();
        let failure = |e| self.reason(e);
        let mut url = url.to_owned();
        for _ in 0..=MAX_REDIRECTS {
            let agent = self.agent(&url);
            let ask = |left: Duration| agent.get(&url).config().timeout_global(Some(left)).build().call();
            let mut response = send_with_retries(time.saturating_sub(begin.elapsed()), ask).map_err(failure)?;
            let status = response.status();
            let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
            if let (301 | 302 | 303 | 307 | 308, Some(location)) = (status.as_u16(), header("location")) {
                url = redirected(&url, location)?;
                *secrets = std::mem::take(secrets).and(&Secrets::of_url(&url));
                continue;
            }
            if status.is_success() {
                return response.body_mut().with_config().limit(limit).read_to_vec().map_err(failure);
            }
            let region = header("x-amz-bucket-region");
            let region = region.filter(|_| status.is_redirection() || status.as_u16() == 400);
            let region = region.map_or_else(String::new, |is| format!("; the bucket is in {}", sanitize(is)));
            // The server may explain the error in the body.
            let mut text = Vec::new();
            let _ = response.body_mut().as_reader().take(MAX_MESSAGE_BYTES).read_to_end(&mut text);
            // Hides the secrets before the text is shortened, because a truncated secret is not recognized.
            let text = secrets.redact(&String::from_utf8_lossy(&text)).into_owned();
            return Err(format!("the server answers {status}{}{region}", server_message(&text)));
        }
        Err(format!("the server redirects more than {MAX_REDIRECTS} times"))
    }
}

/// Resolves the `location` to which `url` redirects.
///
/// # Errors
/// Fails if the address is invalid, is neither http nor https, or leads from https to http.
fn redirected(url: &str, location: &str) -> Result<String, String> {
    let next = Url::parse(url).and_then(|url| url.join(location));
    let next = next.map_err(|e| format!("the server redirects to an invalid address: {e}"))?;
    match next.scheme() {
        "https" => Ok(next.into()),
        "http" if !is_https(url) => Ok(next.into()),
        "http" => Err("the server redirects from https to http, which is not followed".to_owned()),
        scheme => Err(format!("the server redirects to a {scheme} address, which is not followed")),
    }
}

/// Returns true for an https address, with its scheme in any case.
fn is_https(url: &str) -> bool {
    const SECURE: &str = "https://";
    url.get(..SECURE.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(SECURE))
}

/// Returns true if all addresses of `host` belong to this machine. A name server may resolve even `localhost` to
/// another machine.
fn is_here(host: &str) -> bool {
    use std::net::ToSocketAddrs;
    (host, 0).to_socket_addrs().is_ok_and(|mut addresses| addresses.all(|address| address.ip().is_loopback()))
}

/// Returns the server's own error message: the first line, or the message element of an object store's answer.
fn server_message(text: &str) -> String {
    let store_message = || text.split_once("<Message>")?.1.split_once("</Message>").map(|(message, _)| message);
    let line = store_message().unwrap_or_else(|| text.lines().next().unwrap_or_default()).trim();
    match line.is_empty() || line.starts_with('<') {
        true => String::new(),
        false => format!(": {}", line.chars().take(200).collect::<String>()),
    }
}

/// Sends a request. Repeats it if the server is busy (status 429 or 503), after the time that the server gives or
/// after a wait that doubles each time.
fn send_with_retries(
    time: Duration,
    ask: impl Fn(Duration) -> Result<Response<Body>, ureq::Error>,
) -> Result<Response<Body>, ureq::Error> {
    let begin = Instant::now();
    let mut tries = 0;
    loop {
        let response = ask(time.saturating_sub(begin.elapsed()))?;
        let retry_after =
            response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse::<u32>().ok());
        let wait = retry_after.map_or(FIRST_WAIT * (1 << tries), |seconds| Duration::from_secs(seconds.into()));
        let is_busy = [429, 503].contains(&response.status().as_u16());
        if !is_busy || tries == RETRIES || begin.elapsed() + wait >= time {
            return Ok(response);
        }
        std::thread::sleep(wait);
        tries += 1;
    }
}

/// Formats a duration for messages.
fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds.fract() == 0.0 { format!("{seconds:.0} s") } else { format!("{seconds:.3} s") }
}
