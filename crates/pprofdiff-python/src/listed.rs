//! Lists the files that match URL patterns through fsspec: `s3://BUCKET/*/*.pb.gz`.

use std::collections::BTreeSet;
use std::path::Path;

use pprofdiff::input::{Objects, SIGNS};
use pprofdiff::{Error, Result, Source};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::source::{list, url};

/// The URLs of all files below the deepest folder without wildcards of each pattern: `s3://BUCKET/a/`
/// for `s3://BUCKET/a/b*/*.pb.gz`. They are listed in advance, because threads of the engine must not
/// hold Python objects.
pub struct ListedUrls(BTreeSet<String>);

impl ListedUrls {
    /// Lists the files for the patterns that are URLs.
    pub fn new(py: Python<'_>, patterns: &[&Path]) -> PyResult<ListedUrls> {
        // A set, because two patterns may share a folder.
        let mut urls = BTreeSet::new();
        for pattern in patterns.iter().filter_map(|pattern| pattern.to_str()) {
            if url(PyString::new(py, pattern).as_any()).is_none() {
                continue;
            }
            let literal = &pattern[..pattern.find(SIGNS).unwrap_or(pattern.len())];
            let folder = &literal[..literal.rfind('/').map_or(0, |end| end + 1)];
            urls.extend(list(py, folder)?);
        }
        Ok(ListedUrls(urls))
    }
}

impl Objects for ListedUrls {
    fn has(&self, pattern: &str) -> bool {
        pattern.contains("://")
    }

    fn list(&self, prefix: &str, on_url: &mut dyn FnMut(String)) -> Result<()> {
        self.0.iter().filter(|url| url.starts_with(prefix)).for_each(|url| on_url(url.clone()));
        Ok(())
    }

    fn source(&self, url: &str) -> Result<Source> {
        let why = "labels of profiles at URLs can't be keys; load the profiles, or list the files with keys as dicts";
        Err(Error::query(why).in_input(&pprofdiff::text::redacted(url)))
    }
}
