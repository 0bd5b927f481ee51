//! Queries Grafana Pyroscope 1.0 and later. Its querier speaks Connect (<https://connectrpc.com/docs/protocol/>): a
//! request is a POST with a JSON or protobuf message, and the answer has the same encoding.
//!
//! The protobuf answer to `SelectMergeProfile` is a `profile.proto` message, used unchanged.

use serde::Deserialize;
use serde_json::json;

use super::{Api, QuerySession, ServerSeries};
use pprofdiff_profile::shared::wire::{Fields, put};
use pprofdiff_profile::{Error, Result};

pub(super) const API: Api = Api { scheme: "pyroscope", name: "Pyroscope", types, profile, series };

/// The label of a series that holds the full name of its profile type.
const TYPE_LABEL: &str = "__profile_type__";

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

/// A label of a series. JSON omits empty fields.
#[derive(Deserialize)]
struct LabelPair {
    #[serde(default)]
    name: String,
    #[serde(default)]
    value: String,
}

fn fetch_series(session: &QuerySession<'_>, names: &[&str]) -> Result<SeriesAnswer> {
    let query = session.query;
    let matchers: Vec<&str> = query.selector.as_deref().into_iter().collect();
    let request =
        json!({ "matchers": matchers, "labelNames": names, "start": query.from, "end": query.until }).to_string();
    session.json("/querier.v1.QuerierService/Series", Some(request.into_bytes()))
}

fn types(session: &QuerySession<'_>) -> Result<Vec<String>> {
    let pairs = fetch_series(session, &[TYPE_LABEL])?.labels_set.into_iter().flat_map(|set| set.labels);
    Ok(pairs.filter(|pair| pair.name == TYPE_LABEL).map(|pair| pair.value).collect())
}

fn series(session: &QuerySession<'_>) -> Result<Vec<ServerSeries>> {
    let shown_name = |name: String| match name.as_str() {
        TYPE_LABEL => Some("type".to_owned()),
        // Other labels that begin with two underscores are parts of the type or internal to the server.
        internal if internal.starts_with("__") => None,
        _ => Some(name),
    };
    let to_series =
        |set: LabelSet| set.labels.into_iter().filter_map(|pair| Some((shown_name(pair.name)?, pair.value))).collect();
    Ok(fetch_series(session, &[])?.labels_set.into_iter().map(to_series).collect())
}

fn profile(session: &QuerySession<'_>, profile_type: &str) -> Result<Vec<u8>> {
    let query = session.query;
    let mut request = Vec::new();
    put::bytes(&mut request, 1, profile_type.as_bytes());
    put::bytes(&mut request, 2, query.selector.as_deref().unwrap_or_default().as_bytes());
    put::int(&mut request, 3, query.from as u64);
    put::int(&mut request, 4, query.until as u64);
    let answer = session.ask("/querier.v1.QuerierService/SelectMergeProfile", "application/proto", Some(request))?;
    // A query that matches nothing returns a profile without samples.
    let mut fields = Fields::new(&answer, 0);
    let sample = 2;
    loop {
        match fields.next().map_err(|_| Error::malformed("the server's answer is not a profile"))? {
            Some((field, _)) if field == sample => return Ok(answer),
            Some(_) => {}
            None => return Ok(Vec::new()),
        }
    }
}
