//! Lists and fetches objects in a store with the S3 protocol.
//!
//! The environment provides credentials and addresses, with the variables of AWS's own tools: `AWS_ACCESS_KEY_ID`,
//! `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN` (if they are missing, requests are not signed, which works for
//! public buckets), `AWS_REGION` or `AWS_DEFAULT_REGION`, and `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL` for other
//! servers.

use std::env::var;
use std::time::{Duration, Instant};

use pprofdiff::text::Secrets;
use pprofdiff::{Error, ErrorKind, Result, cancellation};
use rusty_s3::actions::{GetObject, ListObjectsV2, S3Action};
use rusty_s3::{Bucket, Credentials, UrlStyle};
use xmlparser::{ElementEnd, Token, Tokenizer};

use crate::Fetcher;

/// The validity of a signature. Requests are sent at once, but clocks differ.
const VALID: Duration = Duration::from_secs(900);

/// Limits of a list: its pages (of up to a thousand keys), the bytes of one page, and the bytes of all keys.
/// Without them, a server could send pages forever, even empty ones.
const MAX_PAGES: usize = 10_000;
const MAX_PAGE_BYTES: u64 = 64 << 20;
const MAX_KEY_BYTES: usize = 256 << 20;

impl Fetcher {
    /// Fetches an object. Returns its content and the secrets of the request.
    pub fn object(&self, name: &str, key: &str) -> Result<(Vec<u8>, Secrets)> {
        let (bucket, credentials) = (bucket(name)?, credentials());
        let url = GetObject::new(&bucket, credentials.as_ref(), key).sign(VALID);
        let secrets = secrets(url.as_str(), credentials.as_ref());
        Ok((self.signed(url.as_str(), credentials.as_ref(), self.timeout, self.limit)?, secrets))
    }

    /// Calls `on_key` with each key that begins with `prefix`. All pages together share the timeout of one profile.
    pub fn list_objects(&self, name: &str, prefix: &str, on_key: &mut dyn FnMut(String)) -> Result<()> {
        let (bucket, credentials) = (bucket(name)?, credentials());
        let begin = Instant::now();
        let mut page = |number: usize, next: Option<&str>| {
            let left = self.timeout.saturating_sub(begin.elapsed());
            if left.is_zero() {
                let detail = format!(
                    "the list is not complete after {number} pages and {} s; list fewer keys with a longer prefix, or \
                     raise --timeout",
                    self.timeout.as_secs_f64()
                );
                return Err(Error::io(std::io::Error::other(detail)));
            }
            let mut list = ListObjectsV2::new(&bucket, credentials.as_ref());
            list.with_prefix(prefix);
            if let Some(token) = next {
                list.with_continuation_token(token.to_owned());
            }
            let (url, limit) = (list.sign(VALID), self.limit.min(MAX_PAGE_BYTES));
            let body = self.signed(url.as_str(), credentials.as_ref(), left, limit)?;
            parse_page(&body).map_err(|e| e.without(&secrets(url.as_str(), credentials.as_ref())))
        };
        each_key(&mut page, &mut |key| {
            if key.starts_with(prefix) {
                on_key(key);
            }
        })
    }

    /// Fetches a signed URL. Errors do not contain the URL.
    fn signed(&self, url: &str, by: Option<&Credentials>, time: Duration, limit: u64) -> Result<Vec<u8>> {
        self.body(url, &secrets(url, by), time, limit).map_err(|reason| {
            let advice = match reason.contains(" 403 ") && by.is_none() {
                true => {
                    "; the request was not signed; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, for example \
                     with: eval \"$(aws configure export-credentials --format env)\""
                }
                false => "",
            };
            Error::io(std::io::Error::other(reason + advice))
        })
    }
}

/// Collects all secrets in a request to an object store.
fn secrets(url: &str, by: Option<&Credentials>) -> Secrets {
    let mut secrets = Secrets::of_url(url);
    // Messages name the object, so nothing is lost if the whole query is hidden.
    if let Some((_, query)) = url.split_once('?') {
        secrets.add(query);
    }
    if let Some(by) = by {
        [Some(by.key()), Some(by.secret()), by.token()].into_iter().flatten().for_each(|part| secrets.add(part));
    }
    secrets
}

/// The keys on a page of a list, and the continuation token of the next page.
type ListPage = (Vec<String>, Option<String>);

/// Calls `on_key` with the keys of all pages. `page` fetches a page by its number and its continuation token.
///
/// # Errors
/// Fails if `page` fails, if the list is too long, or if a continuation token repeats.
fn each_key(
    page: &mut dyn FnMut(usize, Option<&str>) -> Result<ListPage>,
    on_key: &mut dyn FnMut(String),
) -> Result<()> {
    let too_long = |limit_name: String| {
        Error::new(
            ErrorKind::Limit,
            format!("the list has more than {limit_name}; list fewer keys with a longer prefix"),
        )
    };
    let (mut next, mut bytes): (Option<String>, usize) = (None, 0);
    for number in 0..MAX_PAGES {
        cancellation::checkpoint();
        let (keys, token) = page(number, next.as_deref())?;
        for key in keys {
            bytes += key.len() + size_of::<String>();
            if bytes > MAX_KEY_BYTES {
                return Err(too_long(format!("{MAX_KEY_BYTES} bytes of keys")));
            }
            on_key(key);
        }
        match token {
            None => return Ok(()),
            token if token == next => return Err(invalid(&"its continuation token repeats")),
            token => next = token,
        }
    }
    Err(too_long(format!("{MAX_PAGES} pages")))
}

fn parse_page(body: &[u8]) -> Result<ListPage> {
    let text = std::str::from_utf8(body).map_err(|e| invalid(&e))?;
    if is_deep(text) {
        return Err(invalid(&"its elements are nested too deeply"));
    }
    let page = ListObjectsV2::parse_response(text).map_err(|e| invalid(&e))?;
    Ok((page.contents.into_iter().map(|object| object.key).collect(), page.next_continuation_token))
}

fn invalid(why: &dyn std::fmt::Display) -> Error {
    Error::malformed(format!("this is not a list of a bucket: {why}"))
}

/// Returns true if elements are nested so deeply that the parser, which is recursive, could overflow the stack. A
/// valid list is four levels deep.
fn is_deep(text: &str) -> bool {
    let mut depth = 0;
    cancellation::checkpointed(Tokenizer::from(text)).any(|token| {
        match token {
            Ok(Token::ElementEnd { end: ElementEnd::Open, .. }) => depth += 1,
            Ok(Token::ElementEnd { end: ElementEnd::Close(..), .. }) => depth -= 1,
            _ => {}
        }
        depth > 32
    })
}

fn credentials() -> Option<Credentials> {
    Credentials::from_env().filter(|credentials| !credentials.key().is_empty())
}

/// Returns the bucket at the address in the environment. AWS expects the bucket's name in the host name, and other
/// servers expect it in the path. A name with a dot also goes in the path, because it would not match the
/// certificate.
fn bucket(name: &str) -> Result<Bucket> {
    let set = |names: &[&str]| names.iter().find_map(|name| var(name).ok().filter(|value| !value.is_empty()));
    let region = set(&["AWS_REGION", "AWS_DEFAULT_REGION"]).unwrap_or_else(|| "us-east-1".to_owned());
    let custom_endpoint = set(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]);
    let style = if custom_endpoint.is_some() || name.contains('.') { UrlStyle::Path } else { UrlStyle::VirtualHost };
    // Without the trailing slash, joining a path would replace the last part of the address.
    let endpoint = custom_endpoint.map_or_else(
        || format!("https://s3.{region}.amazonaws.com/"),
        |custom_endpoint| format!("{}/", custom_endpoint.trim_end_matches('/')),
    );
    let invalid = |why: &dyn std::fmt::Display| {
        Error::query(format!("the address of the object store (AWS_ENDPOINT_URL_S3, AWS_REGION) is invalid: {why}"))
    };
    let endpoint = endpoint.parse().map_err(|e| invalid(&e))?;
    Bucket::new(endpoint, style, name.to_owned(), region).map_err(|e| invalid(&e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_with_too_many_pages_or_keys_is_an_error() {
        // Every page names a next page. The pages have no keys in the first case, and a long key in the second.
        for (key, pages, error) in [
            (None, MAX_PAGES, "the list has more than 10000 pages; list fewer keys"),
            (Some("k".repeat(1 << 20)), 256, "the list has more than 268435456 bytes of keys"),
        ] {
            let (mut n_pages, mut n_keys) = (0, 0);
            let mut page = |number: usize, next: Option<&str>| {
                assert_eq!(next.map(str::to_owned), number.checked_sub(1).map(|before| before.to_string()));
                n_pages += 1;
                Ok((key.iter().cloned().collect(), Some(number.to_string())))
            };
            let listed = each_key(&mut page, &mut |_| n_keys += 1).err().map(|e| e.to_string()).unwrap_or_default();
            assert!(listed.contains(error), "{listed}");
            assert_eq!((n_pages, n_keys), (pages, key.map_or(0, |_| pages - 1)));
        }
    }
}
