//! The configuration file `pprofdiff.toml`. Each module reads its own tables.

use crate::{Error, Result};

/// Parses `pprofdiff.toml` into the tables that `T` declares. Errors state the line.
pub fn parse_config<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        Error::query(format!("line {line}: {}", e.message().lines().next().unwrap_or("not TOML")))
    })
}
