//! Queries Parca's query service over HTTP. The `google.api.http` options in its published `query.proto` define the
//! paths below `/api` (<https://buf.build/parca-dev/parca>). Answers are JSON, with profiles as base64 text.

use serde::Deserialize;

use super::{Api, QuerySession, ServerSeries, time};
use crate::base64;
use crate::error::{Error, Result};

pub(super) const API: Api = Api { scheme: "parca", name: "Parca", types, profile, series };

#[derive(Deserialize)]
struct TypesAnswer {
    #[serde(default)]
    types: Vec<ProfileType>,
}

/// A profile type. JSON omits empty fields.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct ProfileType {
    name: String,
    sample_type: String,
    sample_unit: String,
    period_type: String,
    period_unit: String,
    delta: bool,
}

impl ProfileType {
    /// Returns the type's name as queries use it.
    fn full_name(self) -> String {
        let ProfileType { name, sample_type, sample_unit, period_type, period_unit, delta } = self;
        let delta = if delta { ":delta" } else { "" };
        format!("{name}:{sample_type}:{sample_unit}:{period_type}:{period_unit}{delta}")
    }
}

#[derive(Deserialize)]
struct LabelsAnswer {
    #[serde(default, rename = "labelNames")]
    label_names: Vec<String>,
}

#[derive(Deserialize)]
struct ValuesAnswer {
    #[serde(default, rename = "labelValues")]
    label_values: Vec<String>,
}

#[derive(Deserialize)]
struct QueryAnswer {
    #[serde(default)]
    pprof: String,
}

fn types(session: &QuerySession<'_>) -> Result<Vec<String>> {
    let answer: TypesAnswer = get(session, "/api/profiles/types", &window(session, ""))?;
    Ok(answer.types.into_iter().map(ProfileType::full_name).collect())
}

/// Returns each label value and each type as a separate series, because Parca does not report the labels of a series.
fn series(session: &QuerySession<'_>) -> Result<Vec<ServerSeries>> {
    let window = window(session, "");
    let mut all: Vec<ServerSeries> = types(session)?.into_iter().map(|name| vec![("type".to_owned(), name)]).collect();
    let labels: LabelsAnswer = get(session, "/api/profiles/labels", &window)?;
    for label in labels.label_names {
        let path = format!("/api/profiles/labels/{}/values", percent_encoded(&label));
        let answer: ValuesAnswer = get(session, &path, &window)?;
        all.extend(answer.label_values.into_iter().map(|value| vec![(label.clone(), value)]));
    }
    Ok(all)
}

fn profile(session: &QuerySession<'_>, profile_type: &str) -> Result<Vec<u8>> {
    let selector = session.query.selector.as_deref().unwrap_or("{}");
    let mut params = vec![
        ("mode".to_owned(), "MODE_MERGE".to_owned()),
        ("report_type".to_owned(), "REPORT_TYPE_PPROF".to_owned()),
        ("merge.query".to_owned(), format!("{profile_type}{selector}")),
    ];
    params.extend(window(session, "merge."));
    let answer: QueryAnswer = get(session, "/api/profiles/query", &params)?;
    base64::decode(answer.pprof.as_bytes())
        .ok_or_else(|| Error::malformed("the profile in the server's answer is not base64"))
}

/// Returns the parameters for the query's time range.
fn window(session: &QuerySession<'_>, prefix: &str) -> Vec<(String, String)> {
    let time = |name: &str, moment| (format!("{prefix}{name}"), time::show(moment));
    vec![time("start", session.query.from), time("end", session.query.until)]
}

fn get<T: for<'de> Deserialize<'de>>(session: &QuerySession<'_>, path: &str, params: &[(String, String)]) -> Result<T> {
    let params: Vec<String> = params.iter().map(|(key, value)| format!("{key}={}", percent_encoded(value))).collect();
    session.json(&format!("{path}?{}", params.join("&")), None)
}

/// Percent-encodes a text for use in a URL.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
