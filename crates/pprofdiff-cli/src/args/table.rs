//! The engine's option tables as clap arguments: loading options and query options.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, StyledStr};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use pprofdiff::loading::Loading;
use pprofdiff::options::{Heading, Offered, OptionKind, OptionRow, OptionValue, Scope, spell};
use pprofdiff::{Query, Result};
use pprofdiff_report::{Request, View};
use pprofdiff_shell::typed_option;

use super::jobs::duration;
use pprofdiff::shared::short_lists::sort_by_key;

/// Converts a row of an option table to a clap argument.
fn arg<T>(option: &OptionRow<T>) -> Arg {
    let arg = Arg::new(option.name)
        .long(option.name.replace('_', "-"))
        .help(spell(option.about, typed_option))
        .long_help(StyledStr::from(option.description(typed_option)))
        .help_heading(option.heading.name())
        .hide_short_help(option.offered == Offered::Rarely || option.heading >= Heading::Loading);
    match (option.kind)() {
        OptionKind::Flag => return arg.action(ArgAction::SetTrue),
        OptionKind::Paths => arg.value_parser(clap::value_parser!(PathBuf)).action(ArgAction::Append),
        OptionKind::Texts(between) => arg.value_delimiter(between).action(ArgAction::Append),
        OptionKind::Choice(names) => arg.value_parser(PossibleValuesParser::new(names)).hide_possible_values(true),
        _ => arg,
    }
    .value_name(option.value_name)
}

/// Sets an option to its value on the command line, if it is given.
fn set<T>(
    option: OptionRow<T>,
    matches: &ArgMatches,
    set: impl FnOnce(OptionRow<T>, OptionValue) -> Result<()>,
) -> Result<(), clap::Error> {
    let name = option.name;
    let value = match (option.kind)() {
        OptionKind::Flag => OptionValue::Flag(matches.get_flag(name)),
        OptionKind::Paths => match matches.get_many::<PathBuf>(name) {
            Some(paths) => OptionValue::Paths(paths.cloned().collect()),
            None => return Ok(()),
        },
        _ => match matches.get_many::<String>(name) {
            Some(texts) => OptionValue::Texts(texts.cloned().collect()),
            None => return Ok(()),
        },
    };
    let typed = matches.get_raw(name).into_iter().flatten().map(OsString::from).collect::<Vec<_>>();
    set(option, value).map_err(|e| {
        let typed = typed.iter().map(|text| text.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let option = name.replace('_', "-");
        clap::Error::raw(ErrorKind::ValueValidation, format!("invalid value '{typed}' for '--{option}': {e}\n"))
    })
}

/// The query options of a verb: all of them, or without `ROWS` only the options that do not need rows of frames.
#[derive(Clone)]
pub struct QueryArgs<const ROWS: bool>(Query);

impl<const ROWS: bool> QueryArgs<ROWS> {
    fn options() -> Vec<OptionRow<Query>> {
        let mut options: Vec<_> = Query::options().filter(|o| ROWS || o.scope == Scope::Everything).collect();
        sort_by_key(&mut options, |option| option.heading);
        options
    }

    /// Returns the first sample type that the user named.
    pub fn sample_type(&self) -> Option<&str> {
        self.0.sample_type.as_deref()
    }

    /// Sets the sample type unless the user named one.
    pub fn set_default_sample_type(&mut self, name: &str) {
        self.0.sample_type.get_or_insert_with(|| name.to_owned());
    }

    /// Returns the request for `view` with these options.
    pub fn request(&self, view: View) -> Request {
        Request { query: self.0.clone(), view }
    }
}

impl<const ROWS: bool> Args for QueryArgs<ROWS> {
    fn augment_args(command: Command) -> Command {
        command.args(Self::options().iter().map(arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const ROWS: bool> FromArgMatches for QueryArgs<ROWS> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut args = QueryArgs(Query::default());
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        Self::options().into_iter().try_for_each(|option| set(option, matches, |o, value| self.0.set(o, value)))
    }
}

/// The engine's loading options.
#[derive(Clone)]
pub struct LoadingArgs(pub Loading);

impl Args for LoadingArgs {
    fn augment_args(command: Command) -> Command {
        command.args(Loading::options().map(|option| arg(&option)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        LoadingArgs::augment_args(command)
    }
}

impl FromArgMatches for LoadingArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<LoadingArgs, clap::Error> {
        let mut args = LoadingArgs(Loading::default());
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        Loading::options().try_for_each(|option| set(option, matches, |o, value| o.set(&mut self.0, value)))
    }
}

/// The loading options of every verb: the engine's, and the command's own.
#[derive(Clone, Args)]
pub struct LoadArgs {
    #[command(flatten)]
    pub profiles: LoadingArgs,
    /// Maximum time to fetch a profile from a URL
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = duration, hide_short_help = true)]
    #[arg(help_heading = Heading::Limits.name())]
    pub timeout: Duration,
}
