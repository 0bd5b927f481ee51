//! The tools that agents can call, and their descriptions.

use std::sync::LazyLock;

use clap::{Arg, ArgAction, Command};
use pprofdiff::Query;
use pprofdiff::loading::Loading;
use pprofdiff::options::{Offered, Scope};
use pprofdiff_report::Registry;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// The default token budget, and the smallest budget, which has room for a verdict and the next step.
pub const BUDGET: u64 = 2000;
pub const LEAST_BUDGET: u64 = 100;

/// A verb that agents can call.
pub struct ToolSpec {
    /// The name of the tool.
    pub tool: &'static str,
    /// The name of the verb.
    pub verb: &'static str,
    /// The description, if it differs from the verb's help.
    about: Option<&'static str>,
    /// The options of the tool besides `diff` and `budget`, by their clap ids.
    options: &'static [&'static str],
    /// The option table whose options the tool also offers. Only options marked for agents are included, because an
    /// agent pays for each option it reads.
    table: Options,
}

/// The option table of a tool.
pub enum Options {
    /// None, because the few useful options of the tool are listed explicitly.
    None,
    Loading,
    /// The query options that the view of the verb supports.
    Query,
}

/// The views of the tools.
static VIEWS: LazyLock<Registry> = LazyLock::new(Registry::standard);

/// The maximum number of values that an option's schema lists.
const MAX_VALUES: usize = 8;

pub const TOOL_SPECS: [ToolSpec; 8] = [
    ToolSpec {
        tool: "load",
        verb: "info",
        about: Some("Load two sides, or one profile as new. Lists contents; names the diff"),
        options: &["base", "new"],
        table: Options::Loading,
    },
    ToolSpec { tool: "explain", verb: "explain", about: None, options: &["ops"], table: Options::Query },
    ToolSpec {
        tool: "top",
        verb: "top",
        about: None,
        options: &["sort", "significant", "granularity"],
        table: Options::Query,
    },
    ToolSpec { tool: "peek", verb: "peek", about: None, options: &["regex"], table: Options::Query },
    ToolSpec {
        tool: "list",
        verb: "list",
        about: None,
        options: &["regex", "base_source", "new_source", "source_path"],
        table: Options::Query,
    },
    ToolSpec {
        tool: "check",
        verb: "check",
        about: Some("Check changes against limits."),
        options: &["fail_on", "floor", "strict", "same_code"],
        table: Options::Query,
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
    /// Returns the names of the tool's options, without `diff` and `budget`.
    pub fn names(&self) -> Vec<&'static str> {
        let mut names = self.options.to_vec();
        match self.table {
            Options::None => {}
            Options::Loading => {
                names.extend(Loading::options().filter(|o| o.offered == Offered::Always).map(|o| o.name));
            }
            Options::Query => {
                let view = VIEWS.view(self.verb);
                let scope = view.map_or(Scope::Everything, |view| view.scope);
                let refused = view.map_or(&[][..], |view| view.refuses);
                let offered = Query::options().filter(|o| o.offered == Offered::Always && o.scope <= scope);
                names.extend(offered.map(|o| o.name).filter(|name| !refused.contains(name)));
            }
        }
        names
    }

    /// Returns true if the tool works on a loaded diff.
    pub fn needs_diff(&self) -> bool {
        !["load", "series", "batch"].contains(&self.tool)
    }

    /// Returns the tool's description for agents, with the help and the values of the verb's options. An agent reads
    /// all tools and pays for each word, so an option that several tools share is described only in the first tool.
    pub fn described(&self, cli: &Command, described: &mut Vec<String>) -> Option<Tool> {
        let verb = cli.find_subcommand(self.verb)?;
        let mut properties = JsonObject::new();
        if self.needs_diff() {
            properties.insert("diff".to_owned(), json!({"type": "string", "description": "Name that load returned"}));
        }
        properties.extend(self.arguments(verb).map(|arg| (arg.get_id().to_string(), property(arg))));
        let about = format!("Maximum tokens, from {LEAST_BUDGET} [default: {BUDGET}]");
        let budget = json!({"type": "integer", "description": about});
        properties.insert("budget".to_owned(), budget);
        for (name, property) in &mut properties {
            let option = format!("{name}: {}", property["type"]);
            match property {
                Value::Object(property) if described.contains(&option) => drop(property.remove("description")),
                _ => described.push(option),
            }
        }
        let needed = ["diff", "new", "regex", "builds", "pairs"].into_iter();
        let required: Vec<&str> = needed.filter(|name| properties.contains_key(*name)).collect();
        let schema = json!({"type": "object", "properties": properties, "required": required});
        let Value::Object(schema) = schema else { return None };
        let about = self.about.map(str::to_owned).or_else(|| verb.get_about().map(ToString::to_string));
        let mut about = about.unwrap_or_default();
        // The syntax of rules is in the first paragraph below the options of `check`.
        let below = verb.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        if let Some(more) = below.split("\n\n").next().filter(|more| !more.is_empty() && !more.starts_with("Example")) {
            about = format!("{about} {}", more.replace('\n', " "));
        }
        let tool = Tool::new(self.tool, about, schema);
        Some(tool.with_annotations(ToolAnnotations::new().read_only(true)))
    }

    /// Returns the verb's options that the tool offers, in the tool's order.
    pub fn arguments<'a>(&'a self, verb: &'a Command) -> impl Iterator<Item = &'a Arg> {
        self.names().into_iter().filter_map(|name| verb.get_arguments().find(|arg| arg.get_id() == name))
    }
}

/// Returns the JSON Schema of an option.
pub fn property(arg: &Arg) -> Value {
    let about = arg.get_help().map(ToString::to_string).unwrap_or_default();
    // Drops defaults and details, which are for readers of the help.
    let about = about.split([';', '[']).next().unwrap_or_default().trim_end();
    // Help spells other options like a shell, and agents know them by their names.
    let about = about.split(' ').map(|word| word.strip_prefix("--").map_or(word.to_owned(), |o| o.replace('-', "_")));
    let about = about.collect::<Vec<_>>().join(" ");
    let values: Vec<String> = arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    // Omits long lists of values. The error for a wrong format lists all formats anyway.
    let values = if values.len() > MAX_VALUES { Vec::new() } else { values };
    // Help lists the values after a colon.
    let about = if values.is_empty() { &*about } else { about.split(':').next().unwrap_or_default() };
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
