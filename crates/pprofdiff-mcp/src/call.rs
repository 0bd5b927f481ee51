//! Converts a tool call to command-line words, and determines the next step that an answer suggests.

use clap::{Arg, Command};
use pprofdiff::advice::word;
use pprofdiff::text::sanitize;
use pprofdiff_report::{Report, missing_sources};
use rmcp::model::JsonObject;
use serde_json::{Value, json};

use super::tool::{TOOL_SPECS, ToolSpec, property};

/// A tool call without the server's own arguments (`diff` and `budget`).
pub struct ToolCall {
    /// The tool.
    pub spec: &'static ToolSpec,
    /// The arguments by name.
    pub arguments: JsonObject,
}

impl ToolCall {
    /// Returns a call of the tool with this name, if there is such a tool.
    pub fn new(tool: &str, arguments: impl IntoIterator<Item = (&'static str, Value)>) -> Option<ToolCall> {
        let spec = TOOL_SPECS.iter().find(|spec| spec.tool == tool)?;
        let arguments = arguments.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Some(ToolCall { spec, arguments })
    }

    /// Copies the arguments of `other` that this tool supports and that are not set yet.
    pub fn asking_as(mut self, other: &ToolCall) -> ToolCall {
        for (name, value) in &other.arguments {
            if self.spec.names().contains(&name.as_str()) && !self.arguments.contains_key(name) {
                self.arguments.insert(name.clone(), value.clone());
            }
        }
        self
    }

    /// Checks that the tool supports the arguments and their types.
    ///
    /// # Errors
    /// Fails with a message that names the argument.
    pub fn check(&self, cli: &Command) -> Result<(), String> {
        let tool = self.spec.tool;
        let verb = cli.find_subcommand(self.spec.verb);
        for (name, value) in &self.arguments {
            let Some(arg) = self.argument(verb, name) else {
                let supported = self.spec.names().join(", ");
                let diff = if self.spec.needs_diff() { "diff, " } else { "" };
                return Err(format!("{tool} does not support {name:?}; it supports {diff}budget, {supported}"));
            };
            let schema = property(arg);
            let fits = match (schema["type"].as_str(), value) {
                (_, Value::Null) => true,
                (Some("boolean"), value) => value.is_boolean(),
                // A list with one element may be written as the element.
                (Some("array"), Value::Array(values)) => values.iter().all(|value| text(value).is_some()),
                (_, value) => text(value).is_some(),
            };
            if !fits {
                let schema = schema["type"].as_str().unwrap_or_default();
                return Err(format!("{name} must be of type {schema}, not {value}"));
            }
        }
        Ok(())
    }

    /// Returns the verb's option with this name, if the tool offers it.
    fn argument<'a>(&'a self, verb: Option<&'a Command>, name: &str) -> Option<&'a Arg> {
        self.spec.arguments(verb?).find(|arg| arg.get_id() == name)
    }

    /// Returns the verb and its options as words. Positional arguments come last. Drops unknown names, and values
    /// other than text, numbers, lists of both, and `true`.
    pub fn words(&self, cli: &Command) -> Vec<String> {
        let verb = cli.find_subcommand(self.spec.verb);
        let (mut words, mut positional) = (vec![self.spec.verb.to_owned()], Vec::new());
        for (name, value) in &self.arguments {
            let Some(arg) = self.argument(verb, name) else { continue };
            let texts = match value {
                Value::Bool(set) => {
                    words.extend(arg.get_long().filter(|_| *set).map(|long| format!("--{long}")));
                    continue;
                }
                Value::Array(values) => values.iter().filter_map(text).collect(),
                value => Vec::from_iter(text(value)),
            };
            for text in texts {
                match arg.get_long() {
                    Some(long) => words.push(format!("--{long}={text}")),
                    // An expression or path that begins with a dash would look like an option.
                    None if text.starts_with('-') && name == "regex" => positional.push(format!("\\{text}")),
                    None if text.starts_with('-') => positional.push(format!("./{text}")),
                    None => positional.push(text),
                }
            }
        }
        words.append(&mut positional);
        words
    }

    /// Returns the shell command for these inputs.
    pub fn command(&self, cli: &Command, inputs: &str) -> String {
        let quoted = |text: &String| match text.split_once('=') {
            Some((option, value)) if option.starts_with("--") => format!("{option}={}", word(value)),
            None if text.starts_with("--") => text.clone(),
            _ => word(text),
        };
        let words: Vec<String> = self.words(cli).iter().map(quoted).collect();
        format!("pprofdiff {} {inputs}", words.join(" ")).trim_end().to_owned()
    }

    /// Returns three forms of the next step for the last line of an answer, from the shortest to the longest: the tool
    /// alone, the call, and the call with the shell command.
    pub fn next_steps(&self, cli: &Command, diff: Option<&str>, inputs: &str) -> Vec<String> {
        let mut arguments = JsonObject::from_iter(diff.map(|name| ("diff".to_owned(), json!(name))));
        arguments.extend(self.arguments.clone());
        let tool = format!("Next: {}", self.spec.tool);
        let call = format!("{tool} {}", Value::Object(arguments));
        let shell = format!("{call} or in a shell: {}", self.command(cli, inputs));
        [tool, call, shell].iter().map(|line| format!("\n{}\n", sanitize(line))).collect()
    }
}

/// Returns a value as it would be typed.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the next step after an answer as a call.
fn next(call: &ToolCall, report: &Report) -> Option<ToolCall> {
    let step = report.next_step(call.spec.tool, call.arguments.contains_key("new_source"));
    let value = |(name, text): (&'static str, String)| match name {
        "fail_on" | "new_source" => (name, json!([text])),
        name => (name, json!(text)),
    };
    ToolCall::new(step.verb, step.options.into_iter().map(value)).map(|step| step.asking_as(call))
}

/// Returns the possible endings of an answer, from the shortest to the longest. Each has the next step. If sources are
/// missing, the longer endings also have a hint to the options for source folders. An agent needs the hint more than
/// the shell command, so only the longest ending has the shell command.
pub fn endings(cli: &Command, call: &ToolCall, report: &Report, diff: &str, inputs: &str) -> Vec<String> {
    let mut endings = next(call, report).map_or_else(Vec::new, |step| step.next_steps(cli, Some(diff), inputs));
    let hint = match report {
        Report::Listing(listing) => missing_sources(listing, ["base_source", "new_source", "source_path"]),
        _ => None,
    };
    if let (Some(hint), [_, call, shell]) = (hint, &mut endings[..]) {
        *shell = format!("\n{hint}\n{shell}");
        let hinted = format!("\n{hint}\n{call}");
        endings.insert(2, hinted);
    }
    endings
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_leading_dash_is_escaped_in_expressions_and_paths() {
        let verb = |name, arg| Command::new(name).arg(Arg::new(arg).num_args(1..));
        let verbs = [verb("peek", "regex"), verb("series", "builds"), verb("batch", "pairs")];
        let command = Command::new("pprofdiff").subcommands(verbs);
        let last =
            |tool, name, value: Value| ToolCall::new(tool, [(name, value)]).unwrap().words(&command).pop().unwrap();
        assert_eq!(last("peek", "regex", json!("-x")), "\\-x");
        assert_eq!(last("series", "builds", json!(["-x*.pb.gz"])), "./-x*.pb.gz");
        assert_eq!(last("batch", "pairs", json!("-x.csv")), "./-x.csv");
        assert_eq!(last("batch", "pairs", json!("x-.csv")), "x-.csv");
    }
}
