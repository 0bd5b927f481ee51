//! Grafana Pyroscope, 1.0 and later: its querier speaks Connect (<https://connectrpc.com/docs/protocol/>), so a question is a
//! POST with a message as JSON or protobuf, and the answer comes in the same encoding.
//!
//! `SelectMergeProfile` in protobuf answers with a `profile.proto` as it is.

use serde::Deserialize;
use serde_json::json;

use super::{Api, Series, Session};
use crate::error::{Error, Result};
use crate::profile::wire::{Fields, put};

pub(super) const API: Api = Api { scheme: "pyroscope", name: "Pyroscope", types, profile, series };

/// The label of a series with the full name of its type.
const TYPE: &str = "__profile_type__";

#[derive(Deserialize)]
struct SeriesAnswer {
    #[serde(default, rename = "labelsSet")]
    labels_set: Vec<LabelSet>,
}

#[derive(Deserialize)]
struct LabelSet {
    #[serde(default)]
    labels: Vec<LabelPair>,
}

/// As JSON leaves out what is empty.
#[derive(Deserialize)]
struct LabelPair {
    #[serde(default)]
    name: String,
    #[serde(default)]
    value: String,
}

fn ask_series(session: &Session<'_>, names: &[&str]) -> Result<SeriesAnswer> {
    let query = session.query;
    let matchers: Vec<&str> = query.selector.as_deref().into_iter().collect();
    let question =
        json!({ "matchers": matchers, "labelNames": names, "start": query.from, "end": query.until }).to_string();
    session.json("/querier.v1.QuerierService/Series", Some(question.into_bytes()))
}

fn types(session: &Session<'_>) -> Result<Vec<String>> {
    let pairs = ask_series(session, &[TYPE])?.labels_set.into_iter().flat_map(|set| set.labels);
    Ok(pairs.filter(|pair| pair.name == TYPE).map(|pair| pair.value).collect())
}

fn series(session: &Session<'_>) -> Result<Vec<Series>> {
    let own_name = |name: String| match name.as_str() {
        TYPE => Some("type".to_owned()),
        // Parts of the type, and what the server keeps for itself.
        internal if internal.starts_with("__") => None,
        _ => Some(name),
    };
    let of_set =
        |set: LabelSet| set.labels.into_iter().filter_map(|pair| Some((own_name(pair.name)?, pair.value))).collect();
    Ok(ask_series(session, &[])?.labels_set.into_iter().map(of_set).collect())
}

fn profile(session: &Session<'_>, profile_type: &str) -> Result<Vec<u8>> {
    let query = session.query;
    let mut question = Vec::new();
    put::bytes(&mut question, 1, profile_type.as_bytes());
    put::bytes(&mut question, 2, query.selector.as_deref().unwrap_or_default().as_bytes());
    put::int(&mut question, 3, query.from as u64);
    put::int(&mut question, 4, query.until as u64);
    let answer = session.ask("/querier.v1.QuerierService/SelectMergeProfile", "application/proto", Some(question))?;
    // What matches nothing is a profile without samples.
    let mut fields = Fields::new(&answer, 0);
    let sample = 2;
    loop {
        match fields.next().map_err(|_| Error::malformed("what the server answers is not a profile"))? {
            Some((field, _)) if field == sample => return Ok(answer),
            Some(_) => {}
            None => return Ok(Vec::new()),
        }
    }
}
