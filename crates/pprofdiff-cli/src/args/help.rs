//! Help: the verbs of `pprofdiff -h` under four headings, and short help that fits one screen for each verb.
//!
//! Short help describes the common options and only names rare options at its end; `--help` describes all of them.
//! The formats have a verb of their own, because their list would fill the screen.

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use pprofdiff::Query;
use pprofdiff::input::InputFormat;
use pprofdiff::options::{Heading, Scope};
use pprofdiff_report::Takes;

use crate::REGISTRY;

/// The width of the list of rare options at the end of short help.
const COLUMNS: usize = 98;

/// The headings of the verbs, in their order, each with its verbs. [`TOOLS`] has all other verbs.
const GROUPS: [(&str, &[&str]); 3] = [
    ("Compare", &["diff", "explain", "batch", "series"]),
    (
        "Look at one profile, or compare two",
        &[
            "top", "tree", "peek", "roots", "list", "disasm", "stacks", "traces", "labels", "info", "raw", "comments",
            "serve",
        ],
    ),
    ("Automate", &["check", "bench", "mcp"]),
];

/// The heading of the verbs that are in none of the [`GROUPS`].
const TOOLS: &str = "Tools";

/// Defers the options of a verb until the command line names that verb, because building the options of all verbs takes
/// longer than printing a small table. Code that inspects other verbs must build the command first, see
/// [`whole`](super::whole).
pub struct Later<T>(pub T);

impl<T: Args> Args for Later<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| {
            // The verb's own help line, not the doc comment of the argument struct, which several verbs may share.
            let about = command.get_about().cloned().unwrap_or_default();
            fit(without_unfit(T::augment_args(command).about(about).long_about(None)))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Later::<T>::augment_args(command)
    }
}

impl<T: FromArgMatches> FromArgMatches for Later<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Later<T>, clap::Error> {
        T::from_arg_matches(matches).map(Later)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// The options of the verb that the command line may omit. The help of the command lists the verbs instead of these
/// options; `pprofdiff diff --help` describes them.
pub struct Unnamed<T>(pub T);

impl<T: Args> Args for Unnamed<T> {
    fn augment_args(command: Command) -> Command {
        let options = "Common options of a verb: pprofdiff VERB -h. All options and examples: pprofdiff VERB --help.\n\
                       `pprofdiff BASE NEW` takes the options of `pprofdiff diff`; `pprofdiff -V` prints the version.";
        let template =
            format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{{after-help}}", verbs(&command));
        T::augment_args(command).help_template(template).after_help(options)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Unnamed::<T>::augment_args(command)
    }
}

impl<T: FromArgMatches> FromArgMatches for Unnamed<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Unnamed<T>, clap::Error> {
        T::from_arg_matches(matches).map(Unnamed)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// Lists the verbs of `command` under their headings, each with its help line.
fn verbs(command: &Command) -> String {
    let verbs: Vec<&Command> = command.get_subcommands().filter(|verb| !verb.is_hide_set()).collect();
    let is_grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let tools = verbs.iter().map(|verb| verb.get_name()).filter(|name| !is_grouped(name)).collect::<Vec<_>>();
    let header = command.get_styles().get_header();
    let mut lines = Vec::new();
    for (heading, names) in GROUPS.iter().copied().chain([(TOOLS, &tools[..])]) {
        lines.push(format!("{header}{heading}:{header:#}"));
        for verb in names.iter().filter_map(|name| verbs.iter().find(|verb| verb.get_name() == *name)) {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            lines.push(format!("  {:<12} {about}", verb.get_name()));
        }
    }
    lines.join("\n")
}

/// Pairs of a verb without a view and an option that the verb rejects, although it shares the option's struct with other
/// verbs. The rows of views state the options that views reject.
const UNFIT: [(&str, &str); 1] = [("batch", "mean")];

/// Hides the options that the verb's view does not support. They still parse, so that the error can name the option.
fn without_unfit(command: Command) -> Command {
    let verb = command.get_name().to_owned();
    let spec = REGISTRY.view(&verb);
    let scope = spec.map_or(Scope::Table, |spec| spec.scope);
    let is_ordered = spec.is_none_or(|spec| spec.view.is_none() || spec.takes.contains(&Takes::Sort));
    let beyond = Query::options().filter(|option| option.scope > scope).map(|option| option.name);
    let unfit = UNFIT.iter().filter(|(name, _)| *name == verb).map(|(_, name)| *name);
    let refused = spec.map_or(&[][..], |spec| spec.refuses).iter().copied();
    let unfit: Vec<&str> = beyond.chain(unfit).chain(refused).chain((!is_ordered).then_some("sort")).collect();
    command.mut_args(|arg| if unfit.contains(&arg.get_id().as_str()) { arg.hide(true) } else { arg })
}

/// Moves the text below the options to long help, and ends short help with the names of the options that it hides.
fn fit(command: Command) -> Command {
    let long_help = command.get_after_help().cloned().unwrap_or_default();
    let hidden = |arg: &&Arg| arg.is_hide_short_help_set() && !arg.is_hide_set();
    let mut groups = [("More:", String::new()), ("Loading:", String::new()), ("Limits:", String::new())];
    for arg in command.get_arguments().filter(hidden) {
        let Some(name) = arg.get_long() else { continue };
        let group = match arg.get_help_heading() {
            Some(heading) if heading == Heading::Loading.name() => 1,
            Some(heading) if heading == Heading::Limits.name() => 2,
            _ => 0,
        };
        let names = &mut groups[group].1;
        let last = names.rsplit('\n').next().unwrap_or_default();
        // The first line starts with the heading.
        let width = last.len() + if names.contains('\n') { 0 } else { groups[group].0.len() };
        let separator = if width + name.len() + 3 > COLUMNS { "\n " } else { "" };
        groups[group].1.push_str(&format!("{separator} --{name}"));
    }
    let lines =
        groups.iter().filter(|(_, names)| !names.is_empty()).map(|(heading, names)| format!("{heading}{names}"));
    let short = lines.collect::<Vec<_>>().join("\n");
    command.after_help(short).after_long_help(long_help)
}

/// Lists the output and input formats, for the verb `formats`.
pub fn formats() -> String {
    let mut text = "Output (--format, or the file extension of --output):\n".to_owned();
    for format in REGISTRY.formats() {
        let endings: Vec<String> = format.extensions.iter().map(|ending| format!(".{ending}")).collect();
        let endings = if endings.is_empty() { String::new() } else { format!(" ({})", endings.join(", ")) };
        text.push_str(&format!("  {:<14} {}{endings}\n", format.name, format.about));
    }
    text.push_str("\nInput (detected by content, or set with --input-format):\n");
    for format in InputFormat::all() {
        text.push_str(&format!("  {:<14} {}\n", format.name, format.about));
    }
    text
}
