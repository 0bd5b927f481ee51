//! The verbs that agents can call, and how each is described to them.

use clap::{Arg, ArgAction, Command};
use pprofdiff::Query;
use pprofdiff::loading::Loading;
use pprofdiff::options::{Offered, Scope};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// Tokens of an answer, where none are given, and the fewest, in which a verdict and the next step have room.
pub const BUDGET: u64 = 2000;
pub const LEAST_BUDGET: u64 = 100;

/// A verb that agents can call.
pub struct ToolSpec {
    pub tool: &'static str,
    pub verb: &'static str,
    /// What it does, if it is not what the verb's help says.
    about: Option<&'static str>,
    /// What it takes besides a diff and a budget, by the names that clap knows them by.
    options: &'static [&'static str],
    /// Whose options it takes as well, of those that agents are offered: an agent pays for each.
    table: Options,
}

/// A table of options.
pub enum Options {
    /// Of what is rarely asked, the few options that matter are named.
    None,
    Loading,
    /// Those that a view of this scope takes.
    Query(Scope),
}

/// The most values of an option that its schema lists.
const MAX_VALUES: usize = 8;

pub const TOOL_SPECS: [ToolSpec; 8] = [
    ToolSpec {
        tool: "load",
        verb: "info",
        about: Some(
            "Load two sides, or one profile as new: what is in the files, and the name that other tools take as diff",
        ),
        options: &["base", "new"],
        table: Options::Loading,
    },
    ToolSpec {
        tool: "explain",
        verb: "explain",
        about: None,
        options: &["ops"],
        table: Options::Query(Scope::Everything),
    },
    ToolSpec {
        tool: "top",
        verb: "top",
        about: None,
        options: &["sort", "significant", "granularity"],
        table: Options::Query(Scope::Table),
    },
    ToolSpec { tool: "peek", verb: "peek", about: None, options: &["regex"], table: Options::Query(Scope::Sums) },
    ToolSpec {
        tool: "list",
        verb: "list",
        about: None,
        options: &["regex", "base_source", "new_source", "source_path"],
        table: Options::Query(Scope::Rows),
    },
    ToolSpec {
        tool: "check",
        verb: "check",
        about: Some("Is what changed within limits?"),
        options: &["fail_on", "floor", "strict"],
        table: Options::Query(Scope::Everything),
    },
    ToolSpec {
        tool: "series",
        verb: "series",
        about: None,
        options: &["builds", "base", "rows", "sort", "sample_type", "focus"],
        table: Options::None,
    },
    ToolSpec {
        tool: "batch",
        verb: "batch",
        about: None,
        options: &["pairs", "view", "sort", "sample_type", "focus"],
        table: Options::None,
    },
];

impl ToolSpec {
    /// The names of what it takes, besides a diff and a budget.
    pub fn names(&self) -> Vec<&'static str> {
        let mut names = self.options.to_vec();
        match self.table {
            Options::None => {}
            Options::Loading => {
                names.extend(Loading::options().filter(|o| o.offered == Offered::Always).map(|o| o.name));
            }
            Options::Query(scope) => {
                let offered = Query::options().filter(|o| o.offered == Offered::Always && o.scope <= scope);
                names.extend(offered.map(|o| o.name));
            }
        }
        names
    }

    /// True of what is asked of a loaded diff.
    pub fn is_of_diff(&self) -> bool {
        !["load", "series", "batch"].contains(&self.tool)
    }

    /// The tool as agents see it: help and values of the verb's own options. An agent has all tools before it, and pays for
    /// each word, so that what an option is stands at the first tool that has it.
    pub fn described(&self, cli: &Command, known: &mut Vec<String>) -> Option<Tool> {
        let verb = cli.find_subcommand(self.verb)?;
        let mut properties = JsonObject::new();
        if self.is_of_diff() {
            properties.insert("diff".to_owned(), json!({"type": "string", "description": "What load called it"}));
        }
        properties.extend(self.arguments(verb).map(|arg| (arg.get_id().to_string(), property(arg))));
        let about = format!("Maximum tokens of the answer, from {LEAST_BUDGET} [default: {BUDGET}]");
        let budget = json!({"type": "integer", "description": about});
        properties.insert("budget".to_owned(), budget);
        for (name, property) in &mut properties {
            let option = format!("{name}: {}", property["type"]);
            match property {
                Value::Object(property) if known.contains(&option) => drop(property.remove("description")),
                _ => known.push(option),
            }
        }
        let needed = ["diff", "new", "regex", "builds", "pairs"].into_iter();
        let required: Vec<&str> = needed.filter(|name| properties.contains_key(*name)).collect();
        let schema = json!({"type": "object", "properties": properties, "required": required});
        let Value::Object(schema) = schema else { return None };
        let about = self.about.map(str::to_owned).or_else(|| verb.get_about().map(ToString::to_string));
        let mut about = about.unwrap_or_default();
        // How rules are written stands below the options of check, before its examples.
        let below = verb.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        if let Some(more) = below.split("\n\n").next().filter(|more| !more.is_empty() && !more.starts_with("Examples"))
        {
            about = format!("{about} {}", more.replace('\n', " "));
        }
        let tool = Tool::new(self.tool, about, schema);
        Some(tool.with_annotations(ToolAnnotations::new().read_only(true)))
    }

    /// The verb's options that the tool has, in the tool's order.
    pub fn arguments<'a>(&'a self, verb: &'a Command) -> impl Iterator<Item = &'a Arg> {
        self.names().into_iter().filter_map(|name| verb.get_arguments().find(|arg| arg.get_id() == name))
    }
}

/// An option as JSON Schema has it.
pub fn property(arg: &Arg) -> Value {
    let about = arg.get_help().map(ToString::to_string).unwrap_or_default();
    // Defaults and what follows from them are for who reads the help.
    let about = about.split([';', '[']).next().unwrap_or_default().trim_end();
    let values: Vec<String> = arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    // A wrong name of a format is answered with all of them.
    let values = if values.len() > MAX_VALUES { Vec::new() } else { values };
    // Help has them after a colon.
    let about = if values.is_empty() { about } else { about.split(':').next().unwrap_or_default() };
    let mut property = match arg.get_action() {
        ArgAction::SetTrue => json!({"type": "boolean"}),
        ArgAction::Append if arg.get_value_delimiter().is_none() => {
            json!({"type": "array", "items": {"type": "string"}})
        }
        _ if values.is_empty() => json!({"type": "string"}),
        _ => json!({"type": "string", "enum": values}),
    };
    property["description"] = json!(about);
    property
}
