//! Short help: one screen a verb. What is rarely used is named at its end and described by `--help`; formats have a verb of
//! their own.

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use pprofdiff::Query;
use pprofdiff::input::InputFormat;
use pprofdiff::options::{Heading, Scope};
use pprofdiff_report::{Format, Takes, ViewSpec};

/// Columns of the names that stand at the end of short help.
const COLUMNS: usize = 98;

/// The options of a verb, listed only when that verb is asked: listing those of all verbs takes longer than a small table.
/// What looks at other verbs builds the command first, see [`whole`](super::whole).
pub struct Later<T>(pub T);

impl<T: Args> Args for Later<T> {
    fn augment_args(command: Command) -> Command {
        // What the verb is about stands at the verb, and not at the options that verbs share.
        command.defer(|command| {
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

/// The options of the verb that need not be named: short help of the command has room for the verbs.
pub struct Unnamed<T>(pub T);

impl<T: Args> Args for Unnamed<T> {
    fn augment_args(command: Command) -> Command {
        let options = "Options: pprofdiff VERB -h, of pprofdiff BASE NEW: pprofdiff diff -h; with examples: --help";
        T::augment_args(command).mut_args(|arg| arg.hide_short_help(true)).after_help(options)
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

/// What some verbs would refuse that share their options with others, besides what is beyond their view's scope.
const UNFIT: [(&str, &str); 3] = [("explain", "granularity"), ("explain", "normalize"), ("batch", "mean")];

/// Leaves out of help what the verb's view does not take; who gives it all the same is told so.
fn without_unfit(command: Command) -> Command {
    let verb = command.get_name().to_owned();
    let spec = ViewSpec::all().iter().find(|spec| spec.name == verb);
    let scope = spec.map_or(Scope::Table, |spec| spec.scope);
    let is_ordered = spec.is_none_or(|spec| spec.view.is_none() || spec.takes.contains(&Takes::Sort));
    let beyond = Query::options().filter(|option| option.scope > scope).map(|option| option.name);
    let unfit = UNFIT.iter().filter(|(of, _)| *of == verb).map(|(_, name)| *name);
    let unfit: Vec<&str> = beyond.chain(unfit).chain((!is_ordered).then_some("sort")).collect();
    command.mut_args(|arg| if unfit.contains(&arg.get_id().as_str()) { arg.hide(true) } else { arg })
}

/// Moves to long help what follows the options, and names at the end of short help those that it hides.
fn fit(command: Command) -> Command {
    let below = command.get_after_help().cloned().unwrap_or_default();
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
        // What is behind the heading is on its line.
        let width = last.len() + if names.contains('\n') { 0 } else { groups[group].0.len() };
        let between = if width + name.len() + 3 > COLUMNS { "\n " } else { "" };
        groups[group].1.push_str(&format!("{between} --{name}"));
    }
    let lines =
        groups.iter().filter(|(_, names)| !names.is_empty()).map(|(heading, names)| format!("{heading}{names}"));
    let short = lines.collect::<Vec<_>>().join("\n");
    command.after_help(short).after_long_help(below)
}

/// The formats, as the verb `formats` lists them.
pub fn formats() -> String {
    let mut text = "Output (--format, or by the ending of --output):\n".to_owned();
    for format in Format::all() {
        let endings: Vec<String> = format.extensions.iter().map(|ending| format!(".{ending}")).collect();
        let endings = if endings.is_empty() { String::new() } else { format!(" ({})", endings.join(", ")) };
        text.push_str(&format!("  {:<14} {}{endings}\n", format.name, format.about));
    }
    text.push_str("\nInput (recognised by content, or named by --input-format):\n");
    for format in InputFormat::all() {
        text.push_str(&format!("  {:<14} {}\n", format.name, format.about));
    }
    text
}
