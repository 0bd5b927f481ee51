//! Files of URLs that stand for several, as fsspec lists them: `s3://BUCKET/*/*.pb.gz`.

use std::collections::BTreeSet;
use std::path::Path;

use pprofdiff::input::{Objects, SIGNS};
use pprofdiff::{Error, Result, Source};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::source::{list, url};

/// The URLs of all files whose URLs begin as some patterns do. They are listed first, since a thread of the engine holds no
/// Python object.
pub struct Listed(BTreeSet<String>);

impl Listed {
    /// Lists what those of some patterns that are URLs begin with.
    pub fn new(py: Python<'_>, patterns: &[&Path]) -> PyResult<Listed> {
        // Once, where two patterns begin alike.
        let mut urls = BTreeSet::new();
        for pattern in patterns.iter().filter_map(|pattern| pattern.to_str()) {
            if url(PyString::new(py, pattern).as_any()).is_none() {
                continue;
            }
            let literal = &pattern[..pattern.find(SIGNS).unwrap_or(pattern.len())];
            let folder = &literal[..literal.rfind('/').map_or(0, |end| end + 1)];
            urls.extend(list(py, folder)?);
        }
        Ok(Listed(urls))
    }
}

impl Objects for Listed {
    fn has(&self, pattern: &str) -> bool {
        pattern.contains("://")
    }

    fn list(&self, prefix: &str, found: &mut dyn FnMut(String)) -> Result<()> {
        self.0.iter().filter(|url| url.starts_with(prefix)).for_each(|url| found(url.clone()));
        Ok(())
    }

    fn source(&self, url: &str) -> Result<Source> {
        let why = "a label of what a URL stands for is no key: load it, or list files with keys as dicts";
        Err(Error::query(why).in_input(&pprofdiff::text::redacted(url)))
    }
}
