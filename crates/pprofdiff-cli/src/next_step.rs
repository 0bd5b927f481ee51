//! The next step after an answer as a command, for agents that run this command. People know `--help`, and see no such
//! line.

use pprofdiff::Query;
use pprofdiff::advice::{operand, typed, word};
use pprofdiff::loading::Loading;
use pprofdiff::options::{OptionRow, OptionValue};
use pprofdiff_report::{Form, Format, Report, tokens};
use pprofdiff_series::Series;
use pprofdiff_shell::{is_agent, say};

use crate::REGISTRY;
use crate::args::{LoadArgs, OutputArgs, SeriesArgs, SideArgs};

/// The parts of the command line that was run, for suggestions that repeat them.
pub struct AnsweredCommand<'a> {
    pub verb: &'a str,
    /// The expression of the view.
    pub regex: Option<&'a str>,
    pub input: &'a SideArgs,
    pub query: &'a Query,
    pub load: &'a LoadArgs,
    /// True if folders with sources are given.
    pub has_sources: bool,
}

/// The verbs whose answers have a next step. They are the tools of the MCP server, which suggests the same steps.
const VERBS: [&str; 6] = ["info", "explain", "top", "peek", "list", "check"];

/// Returns true if an agent reads the answer as text on standard output.
fn is_read_by_agent(format: &Format, output: &OutputArgs) -> bool {
    is_agent() && format.form == Form::Text && output.path().is_none()
}

/// Shows the command on standard error, so that standard output is the answer alone. `left` is the number of tokens
/// that the answer left of its budget; a command that needs more is not shown.
fn suggest(command: &str, left: usize) {
    let line = format!("next: {command}");
    if tokens(&line) + tokens("pprofdiff: \n") <= left {
        say(&line);
    }
}

/// Suggests the next step to an agent.
pub fn suggest_next(asked: &AnsweredCommand<'_>, report: &Report, format: &Format, output: &OutputArgs, left: usize) {
    if is_read_by_agent(format, output) && VERBS.contains(&asked.verb) {
        suggest(&next_command(asked, report), left);
    }
}

/// Suggests to an agent to explain the largest change of a series.
pub fn suggest_explanation(series: &Series, args: &SeriesArgs, format: &Format) {
    if !is_read_by_agent(format, &args.output) {
        return;
    }
    if let Some(point) = series.largest_change(args.shown.sort(), 1) {
        let before = if args.base.is_some() { 0 } else { series.builds.loaded_before(point.build) };
        let sides = [(before, "BASE"), (point.build, "NEW")];
        let sides = sides.map(|(build, placeholder)| operand(&series.builds.all[build].path, placeholder));
        suggest(&format!("pprofdiff explain {}", sides.join(" ")), usize::MAX);
    }
}

/// Returns the next step with the inputs and the options of the answered command that also apply to it.
fn next_command(asked: &AnsweredCommand<'_>, report: &Report) -> String {
    let step = report.next_step(asked.verb, asked.has_sources);
    let mut words = vec!["pprofdiff".to_owned(), step.verb.to_owned()];
    let spec = REGISTRY.view(step.verb);
    if spec.is_some_and(|spec| spec.matched.is_some()) {
        let regex = step.options.iter().find(|(name, _)| *name == "regex").map(|(_, regex)| regex.as_str());
        words.extend(regex.or(asked.regex).map(|regex| word(&typed(regex))));
    }
    words.extend(inputs(asked.input));
    for (name, value) in step.options.iter().filter(|(name, _)| *name != "regex") {
        words.extend([format!("--{}", name.replace('_', "-")), word(value)]);
    }
    let is_new = |name: &str| step.options.iter().all(|(other, _)| *other != name);
    for option in Query::options().filter(|option| is_new(option.name)) {
        let applies =
            |spec: &pprofdiff_report::ViewSpec| option.scope <= spec.scope && !spec.refuses.contains(&option.name);
        if spec.is_some_and(applies) {
            push_option(&mut words, &option, asked.query);
        }
    }
    Loading::options().for_each(|option| push_option(&mut words, &option, &asked.load.profiles.0));
    words.join(" ")
}

/// Returns the inputs as words.
fn inputs(input: &SideArgs) -> Vec<String> {
    match (&input.files[..], &input.base[..], &input.new[..]) {
        ([base, new], _, _) => vec![operand(&base.to_string_lossy(), "BASE"), operand(&new.to_string_lossy(), "NEW")],
        ([one], _, _) => vec![operand(&one.to_string_lossy(), "FILE")],
        (_, base, new) => {
            let sides = [("--base", base, "BASE"), ("--new", new, "NEW")];
            let side = |(option, files, placeholder): (&str, &[std::path::PathBuf], &str)| {
                let files = files.iter().map(|file| operand(&file.to_string_lossy(), placeholder));
                std::iter::once(option.to_owned()).chain(files).collect::<Vec<_>>()
            };
            sides.into_iter().filter(|(_, files, _)| !files.is_empty()).flat_map(side).collect()
        }
    }
}

/// Adds an option that is set, as it is typed.
fn push_option<T: Default>(words: &mut Vec<String>, option: &OptionRow<T>, options: &T) {
    if !option.is_set(options) {
        return;
    }
    let name = format!("--{}", option.name.replace('_', "-"));
    match option.get(options) {
        OptionValue::Flag(_) => words.push(name),
        value => words.push(format!("{name}={}", word(&value.text(&(option.kind)())))),
    }
}
