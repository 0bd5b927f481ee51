//! Profiles from the query API of a continuous profiler's server. An address such as
//! `pyroscope://HOST/{service_name="shop"}?type=cpu&from=-1h` describes the query; this module builds the requests and
//! interprets the answers.
//!
//! This module does no network I/O. The caller sends a [`ServerRequest`] and passes back the [`Answer`], so the
//! command, Python and tests interpret all answers in the same way. The server merges all profiles that match the
//! selector, and returns the sum in pprof's format.
//!
//! An address without a selector returns the server's catalogue as a profile: each sample is a series, its stack is the
//! service and the type, and its labels are the series' labels. All views can therefore show a catalogue, and two
//! catalogues can be diffed.
//!
//! Redirects are never followed: a token is meant only for the host that the user named, and a login page is not a
//! valid answer.
//!
//! Errors contain no secrets of a request, because its [`Secrets`] redact all of them. The server's text is redacted
//! before it is shortened, because a truncated secret would no longer be recognized.

mod address;
mod pyroscope;

use std::io;

pub use address::is_loopback;

use serde::Deserialize;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use pprofdiff_profile::builder::ProfileBuilder;
use pprofdiff_profile::samples::{Label, LabelValue};
use pprofdiff_profile::shared::inflate_slice;
use pprofdiff_profile::text::Secrets;
use pprofdiff_profile::time::show_time;
use pprofdiff_profile::{Compression, WriteOptions};
use pprofdiff_profile::{Error, Result};

/// The supported servers. Each has its own file, with its scheme and its requests.
const SERVERS: [&Api; 1] = [&pyroscope::API];

/// The environment variable with a token. The variable for a single host adds the host's name as a suffix.
const TOKEN_VARIABLE: &str = "PPROFDIFF_TOKEN";

/// Nanoseconds per millisecond.
const MILLISECOND: i128 = 1_000_000;

/// The maximum number of types to list in an error.
const MAX_LISTED: usize = 20;
/// The maximum number of characters to quote from a server.
const MAX_QUOTED_CHARS: usize = 300;
/// The maximum number of bytes to search for a message in a refusal that is not JSON.
const MAX_REFUSAL_BYTES: usize = 4096;

/// Formats a time in milliseconds since 1970, with the milliseconds unless they are zero.
fn show_millis(millis: i64) -> String {
    show_time(i128::from(millis) * MILLISECOND).replace(".000Z", "Z")
}

/// The requests of one kind of server.
struct Api {
    /// The scheme of the server's addresses.
    scheme: &'static str,
    /// The server's name in errors.
    name: &'static str,
    /// Returns the full names of the profile types that match the selector, or of all types without a selector.
    types: fn(&QuerySession<'_>) -> Result<Vec<String>>,
    /// Returns the sum of all profiles of one type that match the selector, or no bytes if nothing matches.
    profile: fn(&QuerySession<'_>, &str) -> Result<Vec<u8>>,
    /// Returns the labels of all series. The type is a label with the key `type`.
    series: fn(&QuerySession<'_>) -> Result<Vec<ServerSeries>>,
}

/// The labels of one series.
type ServerSeries = Vec<(String, String)>;

/// An HTTP request to send: a POST if it has a body, otherwise a GET. The caller must not follow redirects.
#[derive(Debug)]
#[non_exhaustive]
pub struct ServerRequest {
    /// The URL, with http or https.
    pub url: String,
    /// The names and values of the headers. The value of `Authorization` is a secret.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Option<Vec<u8>>,
}

/// The server's HTTP response, with any status.
#[derive(Debug, Default)]
#[allow(clippy::exhaustive_structs)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The header `Content-Type`, or an empty string.
    pub content_type: String,
    /// The header `Location`, or an empty string.
    pub location: String,
    /// The body.
    pub body: Vec<u8>,
}

/// A query to a continuous profiler's server, parsed from an address.
#[derive(Clone)]
pub struct ServerQuery {
    address: String,
    /// The address without the selector and the parameters.
    server_address: String,
    api: &'static Api,
    /// The scheme, host, port and path of the requests' URL, without a slash at the end.
    origin: String,
    host: String,
    /// True if nobody on the way to the server can read the requests.
    is_private: bool,
    selector: Option<String>,
    profile_type: Option<String>,
    /// The start of the time range, in milliseconds since 1970.
    from: i64,
    /// The end of the time range, in milliseconds since 1970.
    until: i64,
    tenant: Option<String>,
}

impl std::fmt::Debug for ServerQuery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerQuery").field("host", &self.host).finish_non_exhaustive()
    }
}

impl ServerQuery {
    /// Returns true if the text's scheme is a server's, even if the rest of the address is invalid.
    pub fn is_address(text: &str) -> bool {
        address::scheme(text).is_some()
    }

    /// Parses an address. Its relative times count from `now`, in milliseconds since 1970.
    ///
    /// # Errors
    /// Returns an error that explains the first mistake in the address.
    pub fn parse(address: &str, now: i64) -> Result<ServerQuery> {
        address::parse(address, now)
    }

    /// Returns the token for the server from the variable of its host. Falls back to `PPROFDIFF_TOKEN` if the user
    /// named the host and nobody on the way can read the request.
    ///
    /// # Errors
    /// Returns an error if the token is not a valid header value, or if others could read this host's token on the way.
    pub fn credentials(
        &self,
        is_named_by_user: bool,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Credentials> {
        let token = |name: &str| {
            let secret = variable(name).filter(|secret| !secret.is_empty())?;
            Some(Token { variable: name.to_owned(), secret })
        };
        let host_variable = self.token_variable();
        let host_token = host_variable.as_deref().and_then(token);
        if let (Some(Token { variable, .. }), false) = (&host_token, self.is_private) {
            let (scheme, host) = (self.api.scheme, &self.host);
            return Err(Error::query(format!(
                "the token in {variable} is not sent over plain http, where others can read it; write {scheme}://{host} \
                 for https, or forward the server to a port of this machine"
            )));
        }
        let outdated = match (&host_token, host_variable) {
            (None, Some(name)) => {
                let old_name = outdated_variable(&self.host);
                token(&old_name).filter(|_| old_name != name).map(|_| (old_name, name))
            }
            _ => None,
        };
        let token = host_token.or_else(|| token(TOKEN_VARIABLE).filter(|_| is_named_by_user && self.is_private));
        if let Some(Token { variable, secret }) = &token
            && !secret.bytes().all(|b| b.is_ascii_graphic())
        {
            return Err(Error::query(format!(
                "the token in {variable} has a space or another character that is not valid in a token"
            )));
        }
        Ok(Credentials { token, outdated })
    }

    /// Returns the name of the variable that holds the token of this host only: capitals, with `_` for a dot and `__`
    /// for a hyphen. An IPv6 address has its eight groups, separated by `___`. Returns `None` for a name with an
    /// underscore, a final dot, or a label that is empty or begins or ends with a hyphen.
    ///
    /// In the names that remain, no hyphen is next to a dot. A single `_` is therefore a dot, an even number of `_` are
    /// hyphens, and two hosts never share a variable.
    fn token_variable(&self) -> Option<String> {
        if let Ok(ip) = self.host.parse::<std::net::Ipv6Addr>() {
            let groups = ip.segments().map(|group| format!("{group:X}"));
            return Some(format!("{TOKEN_VARIABLE}_{}", groups.join("___")));
        }
        let is_label = |label: &str| {
            let is_inner = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
            !label.is_empty() && label.bytes().all(is_inner) && !label.starts_with('-') && !label.ends_with('-')
        };
        let is_name = self.host.split('.').all(is_label);
        is_name.then(|| {
            let host = self.host.to_ascii_uppercase().replace('-', "__").replace('.', "_");
            format!("{TOKEN_VARIABLE}_{host}")
        })
    }

    /// Returns true if requests are sent over plain http. A token is then safe only if the requests stay on this
    /// machine, so a caller that sends a token must check that [`ServerQuery::host`] resolves to this machine.
    pub fn is_plain(&self) -> bool {
        self.origin.starts_with("http:")
    }

    /// Returns the host's name without a port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Fetches the profile with `send`, which returns every response without checking its status. A compressed answer
    /// may have at most `limit` bytes after decompression; `send` must limit the bytes that it receives.
    ///
    /// # Errors
    /// Returns the errors of `send`, and a one-line error with advice if the server refuses or has no data. Secrets are
    /// redacted.
    pub fn fetch(
        &self,
        credentials: &Credentials,
        limit: u64,
        send: &dyn Fn(ServerRequest) -> Result<Answer>,
    ) -> Result<Vec<u8>> {
        let secrets = self.secrets(credentials);
        let session = QuerySession { query: self, credentials, secrets: &secrets, limit, send };
        self.fetch_in(&session).map_err(|e| e.without(&secrets))
    }

    /// Collects all secrets that the requests of this query carry.
    pub fn secrets(&self, credentials: &Credentials) -> Secrets {
        let mut secrets = Secrets::of_url(&self.address);
        if let Some(token) = &credentials.token {
            let header = token.header();
            secrets.add(&token.secret);
            secrets.add(header.split_once(' ').map_or(&header, |(_, encoded)| encoded));
            if let Some((_, password)) = token.secret.split_once(':') {
                secrets.add(password);
            }
        }
        secrets
    }

    fn fetch_in(&self, session: &QuerySession<'_>) -> Result<Vec<u8>> {
        if self.selector.is_none() {
            return catalogue(&self.address, (self.api.series)(session)?);
        }
        let profile_type = self.choose_type(|| (self.api.types)(session))?;
        let profile = (self.api.profile)(session, &profile_type)?;
        if profile.is_empty() {
            return Err(self.no_match_error(&format!(" of the type {profile_type}")));
        }
        Ok(profile)
    }

    /// Returns the full name of the requested profile type.
    fn choose_type(&self, types: impl Fn() -> Result<Vec<String>>) -> Result<String> {
        if let Some(whole) = self.profile_type.as_ref().filter(|name| name.matches(':').count() >= 4) {
            return Ok(whole.clone());
        }
        let mut types = types()?;
        types.sort();
        types.dedup();
        if types.is_empty() {
            return Err(self.no_match_error(""));
        }
        let (fits, unknown) = match &self.profile_type {
            None => (types.clone(), String::new()),
            Some(short_name) => {
                (types.iter().filter(|t| is_short_for(short_name, t)).cloned().collect(), format!("type={short_name}"))
            }
        };
        match fits.as_slice() {
            [one] => Ok(one.clone()),
            [] => Err(Error::query(format!("no profile type matches {unknown}; available types: {}", listed(&types)))),
            _ if unknown.is_empty() => {
                Err(Error::query(format!("choose a type with ?type=NAME (a part will do): {}", listed(&fits))))
            }
            several => Err(Error::query(format!("{unknown} matches several types; write one of {}", listed(several)))),
        }
    }

    fn no_match_error(&self, with_type: &str) -> Error {
        let selector = self.selector.as_deref().unwrap_or("{}");
        let (from, until) = (show_millis(self.from), show_millis(self.until));
        Error::query(format!(
            "{selector} matches no profile{with_type} from {from} until {until}; list all series: pprofdiff labels '{}'",
            self.server_address
        ))
    }
}

/// A token and the name of its environment variable.
pub struct Token {
    variable: String,
    secret: String,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("variable", &self.variable).finish_non_exhaustive()
    }
}

impl Token {
    /// Returns the value of the header `Authorization`. A colon, which tokens never contain, separates a user from a
    /// password.
    fn header(&self) -> String {
        match self.secret.contains(':') {
            true => format!("Basic {}", BASE64_STANDARD.encode(self.secret.as_bytes())),
            false => format!("Bearer {}", self.secret),
        }
    }
}

/// The credentials for a query.
#[derive(Default)]
pub struct Credentials {
    token: Option<Token>,
    /// A variable that is set and belonged to this host in older versions, but now belongs to another host; and the
    /// name of this host's current variable.
    outdated: Option<(String, String)>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl Credentials {
    /// Returns true if there is a token to send.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }
}

/// Returns the variable of a host in older versions, which did not tell hyphens from dots.
fn outdated_variable(host: &str) -> String {
    let host = host.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    format!("{TOKEN_VARIABLE}_{}", host.collect::<String>())
}

/// A query in progress.
struct QuerySession<'s> {
    query: &'s ServerQuery,
    credentials: &'s Credentials,
    secrets: &'s Secrets,
    limit: u64,
    send: &'s dyn Fn(ServerRequest) -> Result<Answer>,
}

impl QuerySession<'_> {
    /// Sends a request to a path of the server and returns the body of its answer. Returns an error unless the status
    /// is 2xx and the answer has the requested content type.
    fn ask(&self, path: &str, content_type: &'static str, body: Option<Vec<u8>>) -> Result<Vec<u8>> {
        // Profiles are large, and few servers compress them unless the request allows it.
        let mut headers = vec![("Accept", content_type.to_owned()), ("Accept-Encoding", "gzip".to_owned())];
        if body.is_some() {
            headers.push(("Content-Type", content_type.to_owned()));
        }
        let token = self.credentials.token.as_ref();
        headers.extend(token.map(|token| ("Authorization", token.header())));
        headers.extend(self.query.tenant.clone().map(|tenant| ("X-Scope-OrgID", tenant)));
        let answer = (self.send)(ServerRequest { url: format!("{}{path}", self.query.origin), headers, body })?;
        let has_requested_type = answer.content_type.starts_with(content_type);
        match answer.status {
            200..=299 if has_requested_type => self.decompressed(answer.body),
            _ => Err(self.refusal(&answer)),
        }
    }

    /// Decompresses a body if it is gzip.
    fn decompressed(&self, body: Vec<u8>) -> Result<Vec<u8>> {
        // Neither JSON nor an uncompressed profile starts with these bytes.
        if body.starts_with(&[0x1f, 0x8b]) { inflate_slice(&body, self.limit) } else { Ok(body) }
    }

    fn json<T: for<'de> Deserialize<'de>>(&self, path: &str, body: Option<Vec<u8>>) -> Result<T> {
        let answer = self.ask(path, "application/json", body)?;
        serde_json::from_slice(&answer)
            .map_err(|e| Error::malformed(format!("can't parse the answer of {}{path}: {e}", self.query.origin)))
    }

    /// Returns the error for a response that is not a valid answer.
    fn refusal(&self, answer: &Answer) -> Error {
        let (name, origin) = (self.query.api.name, &self.query.origin);
        let reply = self.message_of(&answer.body);
        let reason = if reply.is_empty() { String::new() } else { format!(": {reply}") };
        let wrong_server = || {
            let content_type =
                if answer.content_type.is_empty() { "no content type" } else { answer.content_type.as_str() };
            let content_type: String = self.secrets.redact(content_type).chars().take(MAX_QUOTED_CHARS).collect();
            format!(
                "{origin} does not answer like {name} ({}, {content_type}); put the server's path, if any, before the selector",
                answer.status
            )
        };
        let text = match answer.status {
            300..=399 => {
                let location: String = self.secrets.redact(&answer.location).chars().take(MAX_QUOTED_CHARS).collect();
                format!(
                    "the server redirects to {location:?}, which is not followed; use the address that it redirects to"
                )
            }
            // A server that several tenants share may also reject a request with valid credentials.
            401 if reply.contains("org id") => format!("the server has several tenants; add tenant=NAME ({reply})"),
            401 | 403 => {
                let status = answer.status;
                let refusal = match &self.credentials.token {
                    Some(Token { variable, .. }) => {
                        format!("the server refuses the token of {variable} ({status}{reason})")
                    }
                    None => {
                        let variable = self.query.token_variable();
                        let variable = variable.as_deref().unwrap_or(TOKEN_VARIABLE);
                        format!(
                            "the server requires a token ({status}{reason}); set {variable} to it, or to user:password"
                        )
                    }
                };
                match &self.credentials.outdated {
                    Some((old, name)) => {
                        format!(
                            "{refusal}; {old} belongs to another host because hyphens are now __: rename it to {name}"
                        )
                    }
                    None => refusal,
                }
            }
            200..=299 => wrong_server(),
            // Servers report their own 404 errors as JSON. A gateway answers an unknown method with `Not Found`.
            404 | 405 if !answer.content_type.starts_with("application/json") || reply == "Not Found" => wrong_server(),
            status => format!("the server answers {status}{reason}"),
        };
        Error::io(io::Error::other(text))
    }

    /// Returns the server's message from the body of a refusal: the first line of the JSON message, or of a text that
    /// is neither HTML nor JSON.
    fn message_of(&self, body: &[u8]) -> String {
        #[derive(Deserialize)]
        struct ServerRefusal {
            message: String,
        }
        let body = self.decompressed(body.to_vec()).unwrap_or_default();
        let message = match serde_json::from_slice::<ServerRefusal>(&body) {
            Ok(refusal) => refusal.message,
            Err(_) => String::from_utf8_lossy(&body[..body.len().min(MAX_REFUSAL_BYTES)]).into_owned(),
        };
        let message = self.secrets.redact(&message);
        let line = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        if line.starts_with(['<', '{']) { String::new() } else { line.chars().take(MAX_QUOTED_CHARS).collect() }
    }
}

/// Returns true if `text` is a prefix of a type's full name that ends at a colon, with or without the name's first
/// part. `process_cpu`, `process_cpu:cpu` and `cpu` are all short for `process_cpu:cpu:nanoseconds:cpu:nanoseconds`.
fn is_short_for(text: &str, name: &str) -> bool {
    let begins = |name: &str| name.strip_prefix(text).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'));
    begins(name) || name.split_once(':').is_some_and(|(_, rest)| begins(rest))
}

fn listed(types: &[String]) -> String {
    let more = types.len().saturating_sub(MAX_LISTED);
    let list = types[..types.len() - more].join(", ");
    if more == 0 { list } else { format!("{list} and {more} more") }
}

/// Converts the labels of a server's series to a profile.
fn catalogue(address: &str, all: Vec<ServerSeries>) -> Result<Vec<u8>> {
    let mut b = ProfileBuilder::new();
    b.sample_type("series", "count");
    for series in all {
        let value =
            |keys: [&str; 2]| series.iter().find(|(key, _)| keys.contains(&key.as_str())).map(|(_, value)| value);
        let mut stack = Vec::new();
        for part in [value(["type", "type"]), value(["service_name", "job"])].into_iter().flatten() {
            let function = b.function(part, "", 0);
            let line = b.line(function, 0);
            stack.push(b.location(None, 0, &[line])?);
        }
        let labels =
            series.iter().map(|(key, value)| Label { key: b.string(key), value: LabelValue::Text(b.string(value)) });
        let labels: Vec<Label> = labels.collect();
        b.sample(&stack, &[1], &labels)?;
    }
    b.build(address)?.to_bytes(&WriteOptions::new().with_compression(Compression::None))
}

#[cfg(test)]
mod tests;
