//! Parca: its query service over HTTP, as `google.api.http` in its published `query.proto` lays it out below `/api`
//! (<https://buf.build/parca-dev/parca>). Answers are JSON, in which a profile is a text in base64.

use serde::Deserialize;

use super::{Api, Series, Session, time};
use crate::base64;
use crate::error::{Error, Result};

pub(super) const API: Api = Api { scheme: "parca", name: "Parca", types, profile, series };

#[derive(Deserialize)]
struct TypesAnswer {
    #[serde(default)]
    types: Vec<Type>,
}

/// As JSON leaves out what is empty.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Type {
    name: String,
    sample_type: String,
    sample_unit: String,
    period_type: String,
    period_unit: String,
    delta: bool,
}

impl Type {
    /// The name that queries begin with.
    fn full_name(self) -> String {
        let Type { name, sample_type, sample_unit, period_type, period_unit, delta } = self;
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

fn types(session: &Session<'_>) -> Result<Vec<String>> {
    let answer: TypesAnswer = get(session, "/api/profiles/types", &window(session, ""))?;
    Ok(answer.types.into_iter().map(Type::full_name).collect())
}

/// Parca does not tell which labels go together: each value of a label, and each type, is a series of its own.
fn series(session: &Session<'_>) -> Result<Vec<Series>> {
    let window = window(session, "");
    let mut all: Vec<Series> = types(session)?.into_iter().map(|name| vec![("type".to_owned(), name)]).collect();
    let labels: LabelsAnswer = get(session, "/api/profiles/labels", &window)?;
    for label in labels.label_names {
        let path = format!("/api/profiles/labels/{}/values", percent_encoded(&label));
        let answer: ValuesAnswer = get(session, &path, &window)?;
        all.extend(answer.label_values.into_iter().map(|value| vec![(label.clone(), value)]));
    }
    Ok(all)
}

fn profile(session: &Session<'_>, profile_type: &str) -> Result<Vec<u8>> {
    let selector = session.query.selector.as_deref().unwrap_or("{}");
    let mut question = vec![
        ("mode".to_owned(), "MODE_MERGE".to_owned()),
        ("report_type".to_owned(), "REPORT_TYPE_PPROF".to_owned()),
        ("merge.query".to_owned(), format!("{profile_type}{selector}")),
    ];
    question.extend(window(session, "merge."));
    let answer: QueryAnswer = get(session, "/api/profiles/query", &question)?;
    base64::decode(answer.pprof.as_bytes())
        .ok_or_else(|| Error::malformed("the profile that the server answers is not base64"))
}

/// The times of a question.
fn window(session: &Session<'_>, prefix: &str) -> Vec<(String, String)> {
    let time = |name: &str, moment| (format!("{prefix}{name}"), time::show(moment));
    vec![time("start", session.query.from), time("end", session.query.until)]
}

fn get<T: for<'de> Deserialize<'de>>(session: &Session<'_>, path: &str, question: &[(String, String)]) -> Result<T> {
    let params: Vec<String> = question.iter().map(|(key, value)| format!("{key}={}", percent_encoded(value))).collect();
    session.json(&format!("{path}?{}", params.join("&")), None)
}

/// A text as a part of a web address.
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
