//! Profiles by query: what a continuous profiler's server is asked for by an address such as
//! `pyroscope://HOST/{service_name="shop"}?type=cpu&from=-1h`, and what its answers mean.
//!
//! Here is no network: the caller sends a [`Request`] and hands back the [`Answer`], so the command, Python and tests share
//! one reading of all answers. The server merges what the selector matches, as a profile in pprof's format.
//!
//! An address without a selector is the server's catalogue, itself a profile: a sample is a series, its stack the service
//! and the type, its labels those of the series. All views show it, and two of them have a difference.
//!
//! No redirect is to be followed: a token is for the host that was named, and a page that asks for a login is no answer.
//! Errors contain no secrets of a request: its [`Secrets`] redact all of them. The server's words are redacted before
//! they are shortened, because a truncated secret would no longer be recognized.

mod address;
mod parca;
mod pyroscope;
mod time;

use std::io;

pub use address::is_loopback;

use serde::Deserialize;

use crate::base64;
use crate::error::{Error, Result};
use crate::profile::builder::ProfileBuilder;
use crate::profile::{Compression, Label, LabelValue, WriteOptions, inflate_slice};
use crate::redact::Secrets;

/// The servers that are known. A file each: its scheme, and how it is asked.
const SERVERS: [&Api; 2] = [&pyroscope::API, &parca::API];

/// The variable of the environment with a token; one for a single host has its name behind it.
const TOKEN_VARIABLE: &str = "PPROFDIFF_TOKEN";

/// Most types that an error lists.
const MAX_LISTED: usize = 20;
/// The maximum number of characters to quote from a server, and of bytes to search in a refusal.
const MAX_WORDS: usize = 300;
const MAX_REFUSAL: usize = 4096;

/// How a server is asked.
struct Api {
    /// What its addresses begin with, and its name.
    scheme: &'static str,
    name: &'static str,
    /// The types of profiles that the selector matches, or that the server has, as its full names.
    types: fn(&Session<'_>) -> Result<Vec<String>>,
    /// The sum of what the selector matches, of one type: a profile, or nothing if nothing matches.
    profile: fn(&Session<'_>, &str) -> Result<Vec<u8>>,
    /// The labels of all series; the type is called `type`.
    series: fn(&Session<'_>) -> Result<Vec<Series>>,
}

/// Labels of one series.
type Series = Vec<(String, String)>;

/// What is to be sent: by POST if there is a body, else by GET. No redirect is to be followed.
#[derive(Debug)]
#[non_exhaustive]
pub struct Request {
    /// The address, with http or https.
    pub url: String,
    /// Names and values of headers. The value of `Authorization` is a secret.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Option<Vec<u8>>,
}

/// What the server answered, whatever its status.
#[derive(Debug, Default)]
#[allow(clippy::exhaustive_structs)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The header `Content-Type`, empty if there is none.
    pub content_type: String,
    /// The header `Location`, empty if there is none.
    pub location: String,
    /// The body.
    pub body: Vec<u8>,
}

/// What is asked of a continuous profiler's server, as an address says it.
#[derive(Clone)]
pub struct ServerQuery {
    address: String,
    /// The address without the selector and what follows it.
    place: String,
    api: &'static Api,
    /// Scheme, host, port and path, without a slash at the end.
    origin: String,
    host: String,
    /// Nobody on the way can read it.
    is_private: bool,
    selector: Option<String>,
    profile_type: Option<String>,
    /// Milliseconds since 1970.
    from: i64,
    until: i64,
    tenant: Option<String>,
}

impl ServerQuery {
    /// True of what is an address by its scheme, be it right or wrong.
    pub fn is_address(text: &str) -> bool {
        address::scheme(text).is_some()
    }

    /// What an address asks for. `now`, in milliseconds since 1970, is what its times are relative to.
    ///
    /// # Errors
    /// What is wrong in it, in a line.
    pub fn parse(address: &str, now: i64) -> Result<ServerQuery> {
        address::parse(address, now)
    }

    /// Returns the token for the server from the variable of its host. Falls back to
    /// `PPROFDIFF_TOKEN` if the user named the host and nobody on the way can read the request.
    ///
    /// # Errors
    /// The token is not a valid header value, or others could read this host's token on the way.
    pub fn credentials(
        &self,
        is_named_by_user: bool,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Credentials> {
        let token = |name: &str| {
            let secret = variable(name).filter(|secret| !secret.is_empty())?;
            Some(Token { variable: name.to_owned(), secret })
        };
        let own_name = self.token_variable();
        let own = own_name.as_deref().and_then(token);
        if let (Some(Token { variable, .. }), false) = (&own, self.is_private) {
            let (scheme, host) = (self.api.scheme, &self.host);
            return Err(Error::query(format!(
                "the token in {variable} is not sent over plain http, where others can read it; write {scheme}://{host} \
                 for https, or forward the server to a port of this machine"
            )));
        }
        let outdated = match (&own, own_name) {
            (None, Some(name)) => {
                let old = outdated_variable(&self.host);
                token(&old).filter(|_| old != name).map(|_| (old, name))
            }
            _ => None,
        };
        let token = own.or_else(|| token(TOKEN_VARIABLE).filter(|_| is_named_by_user && self.is_private));
        if let Some(Token { variable, secret }) = &token
            && !secret.bytes().all(|b| b.is_ascii_graphic())
        {
            return Err(Error::query(format!(
                "the token in {variable} has a blank or another character that no token has"
            )));
        }
        Ok(Credentials { token, outdated })
    }

    /// Returns the name of the variable that holds the token of this host only: capitals, with `_` for a dot and `__`
    /// for a hyphen. An IPv6 address has its eight groups, separated by `___`. Other names, which no public host has,
    /// have no variable.
    ///
    /// A label never begins or ends with a hyphen, so a single `_` is a dot, and an even number of them are hyphens.
    /// Two hosts therefore never share a variable.
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

    /// Returns true if requests are sent over plain http. They are safe only if they stay on this machine, so the host's
    /// name must guarantee that.
    pub fn is_plain(&self) -> bool {
        self.origin.starts_with("http:")
    }

    /// Returns the host's name without a port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Asks for the profile by `send`, which does not judge the answer; `limit` is how many bytes it may be long.
    ///
    /// # Errors
    /// The errors of `send`; a refusal or an empty answer, in a line that says what to do. Secrets are redacted.
    pub fn fetch(
        &self,
        credentials: &Credentials,
        limit: u64,
        send: &dyn Fn(Request) -> Result<Answer>,
    ) -> Result<Vec<u8>> {
        let secrets = self.secrets(credentials);
        let session = Session { query: self, credentials, secrets: &secrets, limit, send };
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

    fn fetch_in(&self, session: &Session<'_>) -> Result<Vec<u8>> {
        if self.selector.is_none() {
            return catalogue(&self.address, (self.api.series)(session)?);
        }
        let profile_type = self.choose_type(|| (self.api.types)(session))?;
        let profile = (self.api.profile)(session, &profile_type)?;
        if profile.is_empty() {
            return Err(self.nothing(&format!(" of the type {profile_type}")));
        }
        Ok(profile)
    }

    /// The full name of the type that is asked for.
    fn choose_type(&self, types: impl Fn() -> Result<Vec<String>>) -> Result<String> {
        if let Some(whole) = self.profile_type.as_ref().filter(|name| name.matches(':').count() >= 4) {
            return Ok(whole.clone());
        }
        let mut types = types()?;
        types.sort();
        types.dedup();
        if types.is_empty() {
            return Err(self.nothing(""));
        }
        let (fits, unknown) = match &self.profile_type {
            None => (types.clone(), String::new()),
            Some(wanted) => {
                (types.iter().filter(|t| is_short_for(wanted, t)).cloned().collect(), format!("type={wanted} "))
            }
        };
        match fits.as_slice() {
            [one] => Ok(one.clone()),
            [] => Err(Error::query(format!("no {unknown}is there; these are: {}", listed(&types)))),
            _ if unknown.is_empty() => {
                Err(Error::query(format!("say which type with ?type=NAME (a part will do): {}", listed(&fits))))
            }
            several => Err(Error::query(format!("{unknown}fits several; write one of {}", listed(several)))),
        }
    }

    fn nothing(&self, of_type: &str) -> Error {
        let selector = self.selector.as_deref().unwrap_or("{}");
        let (from, until) = (time::show(self.from), time::show(self.until));
        Error::query(format!(
            "{selector} matches no profile{of_type} from {from} until {until}; pprofdiff labels '{}' lists what there is",
            self.place
        ))
    }
}

/// A token, and the variable of the environment that it is from.
pub struct Token {
    variable: String,
    secret: String,
}

impl Token {
    /// The value of the header `Authorization`. A colon, which tokens do not have, parts a user from a password.
    fn header(&self) -> String {
        match self.secret.contains(':') {
            true => format!("Basic {}", base64::encode(self.secret.as_bytes())),
            false => format!("Bearer {}", self.secret),
        }
    }
}

/// The credentials of a query.
#[derive(Default)]
pub struct Credentials {
    token: Option<Token>,
    /// A variable that is set and belonged to this host in older versions, but now belongs to another host; and this
    /// host's variable.
    outdated: Option<(String, String)>,
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

/// One query under way.
struct Session<'s> {
    query: &'s ServerQuery,
    credentials: &'s Credentials,
    secrets: &'s Secrets,
    limit: u64,
    send: &'s dyn Fn(Request) -> Result<Answer>,
}

impl Session<'_> {
    /// The body of the answer to what is sent to a path of the server. It has the content type that is asked for, or is an
    /// error.
    fn ask(&self, path: &str, content_type: &'static str, body: Option<Vec<u8>>) -> Result<Vec<u8>> {
        // Profiles are long, and few servers pack what nobody asked them to.
        let mut headers = vec![("Accept", content_type.to_owned()), ("Accept-Encoding", "gzip".to_owned())];
        if body.is_some() {
            headers.push(("Content-Type", content_type.to_owned()));
        }
        let token = self.credentials.token.as_ref();
        headers.extend(token.map(|token| ("Authorization", token.header())));
        headers.extend(self.query.tenant.clone().map(|tenant| ("X-Scope-OrgID", tenant)));
        let answer = (self.send)(Request { url: format!("{}{path}", self.query.origin), headers, body })?;
        let is_asked_for = answer.content_type.starts_with(content_type);
        match answer.status {
            200..=299 if is_asked_for => self.unpacked(answer.body),
            _ => Err(self.refusal(&answer)),
        }
    }

    /// A body as it was before it was packed, if it was.
    fn unpacked(&self, body: Vec<u8>) -> Result<Vec<u8>> {
        // Neither JSON nor a profile begins so.
        if body.starts_with(&[0x1f, 0x8b]) { inflate_slice(&body, self.limit) } else { Ok(body) }
    }

    fn json<T: for<'de> Deserialize<'de>>(&self, path: &str, body: Option<Vec<u8>>) -> Result<T> {
        let answer = self.ask(path, "application/json", body)?;
        serde_json::from_slice(&answer)
            .map_err(|e| Error::malformed(format!("what {}{path} answers is not understood: {e}", self.query.origin)))
    }

    /// What an answer says that is none.
    fn refusal(&self, answer: &Answer) -> Error {
        let (name, origin) = (self.query.api.name, &self.query.origin);
        let words = self.words(&answer.body);
        let said = if words.is_empty() { String::new() } else { format!(": {words}") };
        let strange = || {
            let what = if answer.content_type.is_empty() { "something unnamed" } else { answer.content_type.as_str() };
            let what: String = self.secrets.redact(what).chars().take(MAX_WORDS).collect();
            format!(
                "{origin} answers as no {name} does ({}, {what}); a path of it stands before the selector",
                answer.status
            )
        };
        let text = match answer.status {
            300..=399 => {
                let location: String = self.secrets.redact(&answer.location).chars().take(MAX_WORDS).collect();
                format!(
                    "the server redirects to {location:?}, which is not followed; write the address that it has there"
                )
            }
            // Where several tenants share a server it is not enough to be known.
            401 if words.contains("org id") => format!("the server has several tenants; add tenant=NAME ({words})"),
            401 | 403 => {
                let status = answer.status;
                let refusal = match &self.credentials.token {
                    Some(Token { variable, .. }) => {
                        format!("the server refuses the token of {variable} ({status}{said})")
                    }
                    None => {
                        let variable = self.query.token_variable();
                        let variable = variable.as_deref().unwrap_or(TOKEN_VARIABLE);
                        format!(
                            "the server requires a token ({status}{said}); set {variable} to it, or to user:password"
                        )
                    }
                };
                match &self.credentials.outdated {
                    Some((old, name)) => {
                        format!(
                            "{refusal}; {old} belongs to another host, since hyphens are now __: rename it to {name}"
                        )
                    }
                    None => refusal,
                }
            }
            // What the server itself does not find it says in JSON; Parca's gateway finds no method in two words.
            200..=299 => strange(),
            404 | 405 if !answer.content_type.starts_with("application/json") || words == "Not Found" => strange(),
            status => format!("the server answers {status}{said}"),
        };
        Error::io(io::Error::other(text))
    }

    /// The server's own words in the body of a refusal: the message of JSON, or the first line of what is no page.
    fn words(&self, body: &[u8]) -> String {
        #[derive(Deserialize)]
        struct Refusal {
            message: String,
        }
        let body = self.unpacked(body.to_vec()).unwrap_or_default();
        let words = match serde_json::from_slice::<Refusal>(&body) {
            Ok(refusal) => refusal.message,
            Err(_) => String::from_utf8_lossy(&body[..body.len().min(MAX_REFUSAL)]).into_owned(),
        };
        let words = self.secrets.redact(&words);
        let line = words.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        if line.starts_with(['<', '{']) { String::new() } else { line.chars().take(MAX_WORDS).collect() }
    }
}

/// True if a text is the beginning of a type's full name, or of what follows the first of its parts: `process_cpu`,
/// `process_cpu:cpu` and `cpu` are short for `process_cpu:cpu:nanoseconds:cpu:nanoseconds`.
fn is_short_for(text: &str, name: &str) -> bool {
    let begins = |name: &str| name.strip_prefix(text).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'));
    begins(name) || name.split_once(':').is_some_and(|(_, rest)| begins(rest))
}

fn listed(types: &[String]) -> String {
    let more = types.len().saturating_sub(MAX_LISTED);
    let list = types[..types.len() - more].join(", ");
    if more == 0 { list } else { format!("{list} and {more} more") }
}

/// The labels of a server's series as a profile.
fn catalogue(address: &str, all: Vec<Series>) -> Result<Vec<u8>> {
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
