//! The parts of JSON that need no table: the schema's name, and the header that every object starts with.

use serde_json::{Map, Value, json};

use pprofdiff::options::{Heading, OptionKind, OptionValue, Reported};
use pprofdiff::{Query, Side, Summary};

/// The schema of all JSON output.
pub(crate) const SCHEMA: &str = "pprofdiff/1";

fn side(side: &Side) -> Value {
    let mut value = json!({
        "paths": side.paths,
        "stacks": side.samples,
        "duration_nanos": side.duration_nanos,
        "time_nanos": side.time_nanos,
    });
    if let Some(window) = &side.window {
        value["time"] = json!(window);
    }
    value
}

/// Returns the header of one of several sample types side by side.
pub(crate) fn sample_type(s: &Summary) -> Value {
    let mut value = json!({"sample_type": s.sample_type, "unit": s.unit, "factor": s.factor});
    match s.base {
        Some(_) => {
            value["total_base"] = json!(s.total.base);
            value["total_new"] = json!(s.total.new);
            value["total_delta"] = json!(s.total.delta());
        }
        None => value["total"] = json!(s.total.new),
    }
    value
}

/// Returns the value of an option as JSON. A number that is not set or cannot be parsed is null.
fn json_value(value: OptionValue, kind: &OptionKind) -> Value {
    match value {
        OptionValue::Flag(on) => json!(on),
        OptionValue::Texts(texts) if matches!(kind, OptionKind::Texts(_)) => json!(texts),
        OptionValue::Texts(texts) if matches!(kind, OptionKind::Number(_)) => {
            json!(texts.first().and_then(|text| text.parse::<f64>().ok()))
        }
        value => json!(value.text(kind)),
    }
}

/// The fields of an object, in order.
pub(crate) type JsonFields = Vec<(&'static str, Value)>;

/// Creates an object of this kind that starts with a header.
pub(crate) fn object(kind: &str, header: JsonFields) -> Map<String, Value> {
    let first = [("schema", json!(SCHEMA)), ("kind", json!(kind))];
    first.into_iter().chain(header).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the header of a check. A check has several sample types, whose totals are elsewhere, and scales each run by
/// its own factor, so the header contains neither totals nor a factor.
#[cfg(feature = "check")]
pub(crate) fn header_of_check(summary: &Summary) -> JsonFields {
    let mut fields = query_fields(summary);
    let scaled = fields.iter_mut().filter(|(name, _)| *name == "normalize");
    scaled.for_each(|(_, value)| *value = json!({"mode": summary.query.normalize.mode()}));
    fields
}

/// Returns a table's header: the sides, the query and the totals.
pub(crate) fn header(summary: &Summary) -> JsonFields {
    let mut fields = query_fields(summary);
    // Insert the sample type after the sides.
    let types = [("sample_type", json!(summary.sample_type)), ("unit", json!(summary.unit))];
    let sides = if summary.base.is_some() { 2 } else { 1 };
    fields.splice(sides..sides, types);
    let total = summary.total;
    match summary.base {
        Some(_) => fields.extend([
            ("total_base", json!(total.base)),
            ("total_new", json!(total.new)),
            ("total_delta", json!(total.delta())),
        ]),
        None => fields.push(("total", json!(total.new))),
    }
    if let Some(chance) = summary.chance {
        fields.extend([
            ("total_base_sd", json!(chance.base_sd)),
            ("total_new_sd", json!(chance.new_sd)),
            ("total_p", json!(chance.p)),
            ("total_rank_p", json!(chance.rank_p)),
        ]);
    }
    if let Some([base, new]) = &summary.sampling {
        fields.push(("sampling", json!({"base": base, "new": new})));
    }
    fields
}

/// Returns the sides and the query.
fn query_fields(summary: &Summary) -> JsonFields {
    let mut fields = Vec::new();
    match &summary.base {
        Some(base) => fields.extend([("base", side(base)), ("new", side(&summary.new))]),
        None => fields.push(("profile", side(&summary.new))),
    }
    let query = &summary.query;
    let reported = |how: Reported| {
        let fields =
            Query::options().filter(move |option| option.reported == how && option.heading != Heading::Filters);
        fields.map(|option| (option.name, option, json_value(option.get(query), &(option.kind)())))
    };
    let filters = query.filters.set().into_iter().map(|(name, v)| (name.to_owned(), json!(v))).collect();
    fields.extend(reported(Reported::Always).map(|(name, _, value)| (name, value)));
    fields.extend([
        ("filters", Value::Object(filters)),
        ("normalize", json!({"mode": query.normalize.mode(), "factor": summary.factor})),
        ("sum", json!(summary.sum)),
        ("warnings", json!(summary.warnings)),
    ]);
    let set = reported(Reported::WhenSet).filter(|(_, option, _)| option.is_set(query));
    fields.extend(set.map(|(name, _, value)| (name, value)));
    fields
}
