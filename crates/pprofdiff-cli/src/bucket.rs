//! Addresses of profiles in an object store, by name or by pattern: `s3://BUCKET/KEY`.

use std::sync::Arc;

use pprofdiff::input::{Fetch, Objects, SIGNS};
use pprofdiff::text::Secrets;
use pprofdiff::{Error, Result, Source};

use crate::Inputs;
use crate::fetch::{Fetcher, begins_with};

const SCHEME: &str = "s3://";

/// Returns true for the URL, the pattern or the prefix of an object.
pub fn is_address(text: &str) -> bool {
    begins_with(text, SCHEME)
}

/// Returns true if the text is a pattern or a prefix, which can match several objects.
pub fn is_pattern(text: &str) -> bool {
    is_address(text) && (text.contains(SIGNS) || text.ends_with('/'))
}

/// Names the address in an error, without its secrets: a malformed address may contain a password.
fn named(e: Error, address: &str) -> Error {
    e.in_input(address).without(&Secrets::of_url(address))
}

/// Splits an address into the bucket and the key, or the prefix of a key.
fn parts(address: &str) -> Result<(&str, &str)> {
    let (bucket, key) = address[SCHEME.len()..].split_once('/').unwrap_or((&address[SCHEME.len()..], ""));
    // The key becomes part of a URL path, where `.`, `..` and a slash at the start would lead to another object.
    let leads_away = key.split('/').any(|part| [".", ".."].contains(&part)) || key.starts_with('/');
    let is_name = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    match bucket.is_empty() || !bucket.chars().all(is_name) || !bucket.contains(|c: char| c.is_ascii_alphanumeric()) {
        true => Err(Error::query(format!("{bucket:?} is not a bucket name; write s3://BUCKET/KEY"))),
        false if leads_away => Err(Error::query("a key must not begin with / or have . or .. as a part")),
        false => Ok((bucket, key)),
    }
}

impl Objects for Inputs {
    fn has(&self, pattern: &str) -> bool {
        is_address(pattern)
    }

    fn list(&self, prefix: &str, on_key: &mut dyn FnMut(String)) -> Result<()> {
        let (bucket, key) = parts(prefix).map_err(|e| named(e, prefix))?;
        if bucket.len() == prefix.len() - SCHEME.len() {
            return Err(Error::query(
                "wildcards are not allowed in the bucket name; put them in the key: s3://BUCKET/*/cpu.pb.gz",
            )
            .in_input(prefix));
        }
        // Keeps the pattern's spelling of the scheme (`S3://`), because the addresses are compared with the pattern.
        let scheme = &prefix[..SCHEME.len()];
        self.fetcher
            .list_objects(bucket, key, &mut |key| on_key(format!("{scheme}{bucket}/{key}")))
            .map_err(|e| e.in_input(prefix))
    }

    fn source(&self, url: &str) -> Result<Source> {
        source(&self.fetcher, url)
    }
}

/// Returns the profile of an object. The object is fetched when the profile is loaded.
///
/// # Errors
/// Fails if the address is not the URL of an object.
pub fn source(fetcher: &Arc<Fetcher>, address: &str) -> Result<Source> {
    let (bucket, key) = parts(address).map_err(|e| named(e, address))?;
    if key.is_empty() {
        return Err(Error::query("the key is missing; write s3://BUCKET/KEY").in_input(address));
    }
    let (fetcher, bucket, key) = (fetcher.clone(), bucket.to_owned(), key.to_owned());
    Ok(Source::Fetch(address.to_owned(), Fetch::with_secrets(move || fetcher.object(&bucket, &key))))
}
