//! Profiles in an object store that speaks S3's protocol, by name and by pattern: `s3://BUCKET/KEY`.
//!
//! Who asks, and where, says the environment, as for AWS's own tools: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and
//! `AWS_SESSION_TOKEN` (without which requests are not signed, for buckets that anyone may read), `AWS_REGION`, and
//! `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL` of another server.

use std::sync::Arc;

use pprofdiff::input::{Fetch, Objects, SIGNS};
use pprofdiff::{Error, Result, Source};

use crate::Inputs;
use crate::fetch::{Fetcher, begins_with};

const SCHEME: &str = "s3://";

/// True of an object's URL, a pattern of such, or what they begin with.
pub fn is_address(text: &str) -> bool {
    begins_with(text, SCHEME)
}

/// True of what stands for several objects.
pub fn is_pattern(text: &str) -> bool {
    is_address(text) && (text.contains(SIGNS) || text.ends_with('/'))
}

/// The bucket and the key, or the beginning of a key.
fn parts(address: &str) -> Result<(&str, &str)> {
    let (bucket, key) = address[SCHEME.len()..].split_once('/').unwrap_or((&address[SCHEME.len()..], ""));
    // What is asked is a path of an URL, in which these lead elsewhere.
    let leads_away = key.split('/').any(|part| [".", ".."].contains(&part)) || key.starts_with('/');
    let is_name = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    match bucket.is_empty() || !bucket.chars().all(is_name) || !bucket.contains(|c: char| c.is_ascii_alphanumeric()) {
        true => Err(Error::query(format!("{bucket:?} is no bucket, as in s3://BUCKET/KEY"))),
        false if leads_away => {
            Err(Error::query("a key with . or .. as a part, or that begins with /, can't be asked for"))
        }
        false => Ok((bucket, key)),
    }
}

impl Objects for Inputs {
    fn has(&self, pattern: &str) -> bool {
        is_address(pattern)
    }

    fn list(&self, prefix: &str, found: &mut dyn FnMut(String)) -> Result<()> {
        let (bucket, key) = parts(prefix).map_err(|e| e.in_input(prefix))?;
        if bucket.len() == prefix.len() - SCHEME.len() {
            return Err(Error::query("a bucket has no pattern; such as s3://BUCKET/*/cpu.pb.gz").in_input(prefix));
        }
        // As the pattern writes it, which is compared with what is found.
        let scheme = &prefix[..SCHEME.len()];
        self.fetcher
            .list_objects(bucket, key, &mut |key| found(format!("{scheme}{bucket}/{key}")))
            .map_err(|e| e.in_input(prefix))
    }

    fn source(&self, url: &str) -> Result<Source> {
        source(&self.fetcher, url)
    }
}

/// The profile of an object, fetched when it is loaded.
///
/// # Errors
/// What is no object's URL.
pub fn source(fetcher: &Arc<Fetcher>, address: &str) -> Result<Source> {
    let (bucket, key) = parts(address).map_err(|e| e.in_input(address))?;
    if key.is_empty() {
        return Err(Error::query("the name of a bucket, without a key: s3://BUCKET/KEY").in_input(address));
    }
    let (fetcher, bucket, key) = (fetcher.clone(), bucket.to_owned(), key.to_owned());
    Ok(Source::Fetch(address.to_owned(), Fetch::new(move || fetcher.object(&bucket, &key))))
}

#[cfg(feature = "network")]
mod network {
    use std::env::var;
    use std::time::Duration;

    use pprofdiff::{Error, Result, work};
    use rusty_s3::actions::{GetObject, ListObjectsV2, S3Action};
    use rusty_s3::{Bucket, Credentials, UrlStyle};
    use xmlparser::{ElementEnd, Token, Tokenizer};

    use crate::fetch::Fetcher;

    /// How long a request is valid: it is sent at once, but clocks differ.
    const VALID: Duration = Duration::from_secs(900);

    impl Fetcher {
        /// An object's content.
        pub(super) fn object(&self, name: &str, key: &str) -> Result<Vec<u8>> {
            let (bucket, credentials) = (bucket(name)?, credentials());
            self.signed(GetObject::new(&bucket, credentials.as_ref(), key).sign(VALID).as_str(), credentials.is_some())
        }

        /// Names the keys that begin so, of a thousand in each answer.
        pub(super) fn list_objects(&self, name: &str, prefix: &str, found: &mut dyn FnMut(String)) -> Result<()> {
            let (bucket, credentials) = (bucket(name)?, credentials());
            let mut next: Option<String> = None;
            loop {
                work::poll();
                let mut list = ListObjectsV2::new(&bucket, credentials.as_ref());
                list.with_prefix(prefix);
                if let Some(token) = &next {
                    list.with_continuation_token(token.clone());
                }
                let body = self.signed(list.sign(VALID).as_str(), credentials.is_some())?;
                let invalid =
                    |why: &dyn std::fmt::Display| Error::malformed(format!("it is no list of a bucket: {why}"));
                let text = std::str::from_utf8(&body).map_err(|e| invalid(&e))?;
                if is_deep(text) {
                    return Err(invalid(&"its elements lie deep in each other"));
                }
                let page = ListObjectsV2::parse_response(text).map_err(|e| invalid(&e))?;
                page.contents.into_iter().filter(|object| object.key.starts_with(prefix)).for_each(|o| found(o.key));
                match page.next_continuation_token {
                    None => return Ok(()),
                    token if token == next => return Err(invalid(&"it goes on where it was")),
                    token => next = token,
                }
            }
        }

        /// What is behind a signed URL, which no error repeats.
        fn signed(&self, url: &str, is_by_someone: bool) -> Result<Vec<u8>> {
            self.body(url).map_err(|reason| {
                let shown = &url[..url.find('?').unwrap_or(url.len())];
                let advice = match reason.contains(" 403 ") && !is_by_someone {
                    true => "; nobody asked: no AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are set, which by AWS's own tools \
                             are: eval \"$(aws configure export-credentials --format env)\"",
                    false => "",
                };
                Error::io(std::io::Error::other(reason.replace(url, shown) + advice))
            })
        }
    }

    /// True of elements in which the parser, which calls itself for each, would run out of stack. A list is four deep.
    fn is_deep(text: &str) -> bool {
        let mut depth = 0;
        work::paced(Tokenizer::from(text)).any(|token| {
            match token {
                Ok(Token::ElementEnd { end: ElementEnd::Open, .. }) => depth += 1,
                Ok(Token::ElementEnd { end: ElementEnd::Close(..), .. }) => depth -= 1,
                _ => {}
            }
            depth > 32
        })
    }

    fn credentials() -> Option<Credentials> {
        Credentials::from_env().filter(|known| !known.key().is_empty())
    }

    /// A bucket where the environment says that it is. AWS wants its name before the host, other servers in the path; so
    /// does a certificate, of a name with a dot.
    fn bucket(name: &str) -> Result<Bucket> {
        let set = |names: &[&str]| names.iter().find_map(|name| var(name).ok().filter(|value| !value.is_empty()));
        let region = set(&["AWS_REGION", "AWS_DEFAULT_REGION"]).unwrap_or_else(|| "us-east-1".to_owned());
        let own = set(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]);
        let style = if own.is_some() || name.contains('.') { UrlStyle::Path } else { UrlStyle::VirtualHost };
        // Behind an address without a slash at its end, its last part would be replaced.
        let endpoint = own.map_or_else(
            || format!("https://s3.{region}.amazonaws.com/"),
            |own| format!("{}/", own.trim_end_matches('/')),
        );
        let invalid = |why: &dyn std::fmt::Display| {
            Error::query(format!("the address of the object store (AWS_ENDPOINT_URL_S3, AWS_REGION) is invalid: {why}"))
        };
        let endpoint = endpoint.parse().map_err(|e| invalid(&e))?;
        Bucket::new(endpoint, style, name.to_owned(), region).map_err(|e| invalid(&e))
    }
}

#[cfg(not(feature = "network"))]
impl Fetcher {
    fn object(&self, _: &str, _: &str) -> Result<Vec<u8>> {
        Err(Error::query("this build reads no object stores (it has no feature \"network\")"))
    }

    fn list_objects(&self, bucket: &str, key: &str, _: &mut dyn FnMut(String)) -> Result<()> {
        self.object(bucket, key).map(drop)
    }
}
