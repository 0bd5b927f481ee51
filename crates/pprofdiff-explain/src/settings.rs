//! The `explain` table of a `pprofdiff.toml`.

use pprofdiff::Result;
use pprofdiff::shared::parse_config;

/// The contents of the table. Other tables are read elsewhere.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Settings {
    pub system: Vec<String>,
    pub background: Vec<String>,
}

impl Settings {
    pub(super) fn from_toml(text: &str) -> Result<Settings> {
        #[derive(serde::Deserialize)]
        struct ExplainConfig {
            #[serde(default)]
            explain: Settings,
        }
        parse_config::<ExplainConfig>(text).map(|file| file.explain)
    }
}
