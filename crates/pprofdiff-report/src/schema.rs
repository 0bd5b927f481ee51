//! The JSON Schema of all JSON output. It is generated from the descriptors of views, from the table of options, and
//! from the types of explanations, rankings and checks, so it matches the output. Headers, listings and metadata are
//! described here by hand; the schema permits any object as a routine, a profile of `info`, a build or a sample type.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::json::SCHEMA;
use crate::table::Kind;
use crate::table::schema::{Holds, TableShape};
use crate::view;
use pprofdiff::Query;
use pprofdiff::options::{Heading, OptionKind, Reported};
#[cfg(feature = "check")]
use pprofdiff_explain::ExplainedCheck;
use pprofdiff_explain::Explanation;
use pprofdiff_series::fleet::Ranking;

/// Placeholder names and units of two sample types side by side. The second is a count, so that tables have ratios.
const TYPES: [(&str, &str); 2] = [("TYPE", ""), ("TYPE", "count")];

/// Returns the schema `pprofdiff/1`, which describes every object that the formats json and jsonl write.
pub fn json_schema() -> Value {
    let tables = view::STANDARD.iter().flat_map(|view| view.kinds).map(|kind| table(kind));
    let others = [
        object("info", json!({"profiles": {"type": "array", "items": {"type": "object"}}}), &["profiles"]),
        object("list", listing(), &["routines"]),
        object("disasm", listing(), &["routines"]),
        object("histories", histories(), &["keys", "histories", "failed"]),
    ];
    let mut types = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let explain = types.subschema_for::<Explanation>();
    let ranking = types.subschema_for::<Ranking>();
    let typed = [
        of_type("explain", &explain, Value::Object(header(&[true]))),
        of_type("ranking", &ranking, Value::Object(without_sides(header(&[true])))),
        #[cfg(feature = "check")]
        of_type("check", &types.subschema_for::<ExplainedCheck>(), of_check()),
    ];
    let mut defs = types.take_definitions(true);
    // Types other than these three are complete objects inside of an answer, so they permit no further properties. For
    // the three, `of_type` adds the header and forbids further properties.
    let parts = defs.iter_mut().filter(|(name, definition)| {
        definition.get("properties").is_some() && !["Check", "Explanation", "Ranking"].contains(&name.as_str())
    });
    parts.for_each(|(_, definition)| definition["additionalProperties"] = false.into());
    if let Some(evidence) = defs.get_mut("Evidence") {
        let command = "The shell command that shows the stacks, with quoted arguments";
        evidence["properties"]["command"] = json!({"type": "string", "description": command});
    }
    for cause in ["NearestCandidate", "Cause"] {
        let Some(cause) = defs.get_mut(cause) else { continue };
        let piece =
            |kind: &str| json!({"type": "object", "properties": {kind: {"type": "string"}}, "required": [kind]});
        let items = json!({"oneOf": (["name", "amount", "text"].map(piece))});
        cause["properties"]["sentence"] = json!({
            "type": "array", "items": items, "description": "The sentence, split into consecutive pieces",
        });
    }
    let mut failed = object("failed", json!({"error": {"type": "string"}}), &["pair", "error"]);
    failed["description"] = "A pair of a batch that could not be compared".into();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        "description": "The output of the formats json and jsonl. Sums are integers in the sample type's own unit.",
        "anyOf": tables.chain(others).chain(typed).chain([failed]).collect::<Vec<_>>(),
        "$defs": defs,
    })
}

/// Removes the sides from a header, for a ranking, which does not list the files of its pairs.
fn without_sides(mut header: Map<String, Value>) -> Map<String, Value> {
    header.retain(|name, _| !["base", "new"].contains(&name.as_str()));
    header
}

/// Returns the properties that a check has in addition to its type: the header and the exit code. The header has no
/// sample type and no totals, because those are part of the check's rules.
#[cfg(feature = "check")]
fn of_check() -> Value {
    let mut fields = header(&[true]);
    fields
        .retain(|name, _| !name.starts_with("total") && !["sample_type", "unit", "sampling"].contains(&name.as_str()));
    fields.insert("exit_code".to_owned(), json!({"type": "integer"}));
    Value::Object(fields)
}

/// Returns the object for a kind that is serialized from a type. `properties` are the properties that the report adds
/// to those of the type.
fn of_type(kind: &str, type_schema: &Schema, properties: Value) -> Value {
    let mut object = object(kind, properties, &[]);
    object["allOf"] = json!([type_schema]);
    // Permits the properties here and those of the type, and no others.
    object["unevaluatedProperties"] = false.into();
    if let Some(object) = object.as_object_mut() {
        object.remove("additionalProperties");
    }
    object
}

/// Returns the object for a kind, with these properties in addition to `schema`, `kind`, `pair` and `keys` of the pair.
/// Of the common ones, `schema` and `kind` are required.
fn object(kind: &str, kind_properties: Value, required: &[&str]) -> Value {
    let mut properties = json!({
        "schema": {"const": SCHEMA}, "kind": {"const": kind}, "pair": {"type": "string"},
        "keys": {"type": "object", "additionalProperties": {"type": "string"}},
    });
    if let (Value::Object(all), Value::Object(kind_properties)) = (&mut properties, kind_properties) {
        all.extend(kind_properties);
    }
    let required: Vec<&str> = ["schema", "kind"].iter().chain(required).copied().collect();
    json!({
        "title": kind, "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    })
}

fn listing() -> Value {
    let mut properties = header(&[false, true]);
    properties.insert("routines".to_owned(), json!({"type": "array", "items": {"type": "object"}}));
    Value::Object(properties)
}

/// Returns the properties of several histories. The table of each history is an object of its kind, without `schema`.
fn histories() -> Value {
    let (text, integer) = (json!({"type": "string"}), json!({"type": "integer"}));
    let mut change = Map::from_iter(
        ["name", "since", "earliest", "latest"]
            .map(|name| (name.to_owned(), text.clone()))
            .into_iter()
            .chain(["before", "after", "delta", "total_before"].map(|name| (name.to_owned(), integer.clone()))),
    );
    change.insert("kind".to_owned(), json!({"enum": ["step", "passed", "drift"]}));
    for name in ["subject", "cause", "compared"] {
        change.insert(name.to_owned(), json!({"type": ["string", "null"]}));
    }
    let names: Vec<&String> = change.keys().collect();
    let change = json!({
        "type": ["object", "null"], "properties": &change, "required": names, "additionalProperties": false,
    });
    let mut series = table(&view::shifts::SHIFTS);
    if let Some(required) = series["required"].as_array_mut() {
        required.retain(|name| name != "schema");
    }
    let of_history = |mut properties: Map<String, Value>| {
        properties.insert("keys".to_owned(), json!({"type": "object", "additionalProperties": {"type": "string"}}));
        let required: Vec<&String> = properties.keys().collect();
        let items = json!({
            "type": "object", "properties": &properties, "required": required, "additionalProperties": false,
        });
        json!({"type": "array", "items": items})
    };
    let notes = json!({"type": "array", "items": {"type": "string"}});
    let properties = [("changes", integer), ("largest", change), ("notes", notes), ("series", series)]
        .map(|(name, value)| (name.to_owned(), value));
    json!({
        "keys": {"type": "array", "items": {"type": "string"}}, "sample_type": {"type": "string"},
        "sort": {"enum": ["flat", "cum"]}, "histories": of_history(Map::from_iter(properties)),
        "failed": of_history(Map::from_iter([("error".to_owned(), text)])),
    })
}

/// Returns the object for a kind of table.
fn table(kind: &Kind) -> Value {
    let sides: Vec<bool> = [false, true].into_iter().filter(|&two_sided| (kind.has_sides)(two_sided)).collect();
    let mut properties = if kind.of_builds { header_of_builds() } else { header(&sides) };
    if kind.several_types {
        properties.insert("sample_types".to_owned(), json!({"type": "array", "items": {"type": "object"}}));
    }
    properties.insert("rows_total".to_owned(), json!({"type": "integer"}));
    properties.insert("rows".to_owned(), json!({"type": "array", "items": row(kind, &sides)}));
    if *kind == view::shifts::SHIFTS {
        properties.insert("explained".to_owned(), explained());
    }
    let mut required = vec!["sample_type", "unit", "warnings", "rows_total", "rows"];
    required.extend(kind.of_builds.then_some("builds"));
    object(kind.name, Value::Object(properties), &required)
}

/// Returns the list of the explanations of lasting changes.
fn explained() -> Value {
    let text = json!({"type": "string"});
    let properties = json!({
        "compared": text, "verdict": {"enum": ["change", "none", "inconclusive"]},
        "lines": {"type": "array", "items": text},
    });
    let items = json!({
        "type": "object", "properties": properties, "required": ["compared", "verdict", "lines"],
        "additionalProperties": false,
    });
    json!({"type": "array", "items": items})
}

/// Returns the object for a row of a table. It permits the columns of every possible table of the kind. Columns that
/// only some of these tables have are optional. Names that contain a sample type are permitted as patterns.
fn row(kind: &Kind, sides: &[bool]) -> Value {
    let (mut columns, mut patterns) = (Map::new(), Map::new());
    let mut required: Option<Vec<String>> = None;
    for (&two_sided, i) in sides.iter().flat_map(|side| (0..8).map(move |i| (side, i))) {
        let (by_labels, of_runs, of_code) = (i & 1 != 0, i & 2 != 0, two_sided && i & 4 != 0);
        let shape = TableShape { two_sided, by_labels, of_runs, of_code, types: TYPES[..1].to_vec() };
        let specs = (kind.columns)(&shape);
        let has = |name: &String| specs.iter().any(|spec| spec.name == name.as_str());
        required = Some(match required {
            Some(names) => names.into_iter().filter(has).collect(),
            None => specs.iter().map(|spec| spec.name.to_string()).collect(),
        });
        columns.extend(specs.iter().map(|spec| (spec.name.to_string(), holds(spec.holds))));
    }
    for &two_sided in sides.iter().filter(|_| kind.several_types) {
        let of_code = two_sided;
        let shape = TableShape { two_sided, by_labels: false, of_runs: false, of_code, types: TYPES.to_vec() };
        for spec in (kind.columns)(&shape) {
            match spec.name.strip_prefix(TYPES[0].0) {
                // The pattern of a cost must not match ratios, which combine both types and carry the name of neither.
                Some(rest) => drop(patterns.insert(format!("^(?!(flat_|cum_)?ratio_).+{rest}$"), holds(spec.holds))),
                None => drop(columns.insert(spec.name.to_string(), holds(spec.holds))),
            }
        }
    }
    // With several sample types, columns of costs have other names, so these names are optional.
    let is_cost = |name: &String| patterns.keys().any(|pattern| pattern.ends_with(&format!("_{name}$")));
    let required: Vec<String> = required.unwrap_or_default().into_iter().filter(|name| !is_cost(name)).collect();
    json!({
        "type": "object", "properties": columns, "patternProperties": patterns, "required": required,
        "additionalProperties": false,
    })
}

/// Returns the JSON type of a column's values.
fn holds(column_type: Holds) -> Value {
    match column_type {
        Holds::Text => json!({"type": ["string", "null"]}),
        Holds::Value => json!({"type": "integer"}),
        Holds::Line | Holds::Address => json!({"type": ["integer", "null"]}),
        Holds::Lists => json!({"type": "array", "items": {"type": "string"}}),
        Holds::Ratio => json!({"type": ["number", "null"]}),
    }
}

/// Returns the properties of a header: the sides, the query, the totals and their statistics. `sides` lists whether the
/// header may be that of a diff (`true`), of a single profile (`false`), or either.
fn header(sides: &[bool]) -> Map<String, Value> {
    let integer = || json!({"type": "integer"});
    let side = json!({
        "type": "object",
        "properties": {
            "paths": {"type": "array", "items": {"type": "string"}}, "stacks": integer(), "duration_nanos": integer(),
            "time_nanos": integer(), "time": {"type": "string"},
        },
        "required": ["paths", "stacks", "duration_nanos", "time_nanos"],
    });
    let mut fields = query_fields();
    for two_sided in sides {
        let (sides, totals): (&[&str], &[&str]) = match two_sided {
            true => (&["base", "new"], &["total_base", "total_new", "total_delta"]),
            false => (&["profile"], &["total"]),
        };
        fields.extend(sides.iter().map(|name| ((*name).to_owned(), side.clone())));
        fields.extend(totals.iter().map(|name| ((*name).to_owned(), integer())));
    }
    let runs = ["total_base_sd", "total_new_sd", "total_p", "total_rank_p"];
    fields.extend(runs.map(|name| (name.to_owned(), json!({"type": ["number", "null"]}))));
    fields.insert(
        "sampling".to_owned(),
        json!({"type": "object", "properties": {"base": sampling(), "new": sampling()}}),
    );
    fields
}

/// Returns the object that describes how a side's values were sampled.
fn sampling() -> Value {
    json!({
        "type": "object",
        "properties": {
            "model": {"enum": ["counted", "exact", "unknown"]}, "by": {"type": "string"}, "event": {"type": "number"},
            "samples": {"type": ["number", "null"]},
        },
        "required": ["model", "by", "event", "samples"],
    })
}

fn header_of_builds() -> Map<String, Value> {
    let mut fields = query_fields();
    fields.insert("builds".to_owned(), json!({"type": "array", "items": {"type": "object"}}));
    fields.insert("order".to_owned(), json!({"enum": ["key", "given", "commits"]}));
    fields.insert("against".to_owned(), json!({"enum": ["previous", "first"]}));
    fields
}

/// Returns the properties that describe the query.
fn query_fields() -> Map<String, Value> {
    let text = || json!({"type": "string"});
    let mut fields = Map::from_iter(["sample_type", "unit"].map(|name| (name.to_owned(), text())));
    let reported = Query::options().filter(|o| o.reported != Reported::Elsewhere && o.heading != Heading::Filters);
    for option in reported {
        let value = match (option.kind)() {
            OptionKind::Flag => json!({"type": "boolean"}),
            OptionKind::Count | OptionKind::Number(_) => json!({"type": ["number", "null"]}),
            OptionKind::Texts(_) | OptionKind::Paths => json!({"type": "array", "items": {"type": "string"}}),
            OptionKind::Choice(values) => json!({"enum": values}),
            _ => text(),
        };
        fields.insert(option.name.to_owned(), value);
    }
    fields.insert("filters".to_owned(), json!({"type": "object", "additionalProperties": {"type": "string"}}));
    fields.insert("normalize".to_owned(), normalize());
    fields.insert("sum".to_owned(), json!({"type": "boolean"}));
    fields.insert("warnings".to_owned(), json!({"type": "array", "items": {"type": "string"}}));
    fields
}

fn normalize() -> Value {
    let properties = json!({"mode": {"type": "string"}, "factor": {"type": "number"}});
    json!({"type": "object", "properties": properties, "required": ["mode"]})
}
