//! The configuration file `pprofdiff.toml`. Each module reads its own tables.

use crate::{Error, Result};

/// The tables of all modules. An unknown name is an error, because a mistyped table would turn its rules off.
const TABLES: [&str; 2] = ["check", "explain"];

/// Parses `pprofdiff.toml` into the tables that `T` declares. Errors state the line.
pub fn parse_config<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    let all: toml::Table = parse(text)?;
    if let Some(name) = all.keys().find(|name| !TABLES.contains(&name.as_str())) {
        return Err(Error::query(format!(
            "{name:?} is outside of the tables [check] and [explain]; rules belong to [check]"
        )));
    }
    parse(text)
}

fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        Error::query(format!("line {line}: {}", e.message().lines().next().unwrap_or("not TOML")))
    })
}
