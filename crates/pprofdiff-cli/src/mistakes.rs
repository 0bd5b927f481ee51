//! Explains command lines that cannot be understood, with the command to type instead.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Command, CommandFactory};
use pprofdiff::advice::{operand, word};

use crate::args::{self, Cli};
use crate::pprof_compat::{is_option, most_values};

/// The most files that a suggested command names one by one.
const MAX_FILES: usize = 6;

/// What is wrong with the arguments, if a command can be suggested. `error` is what clap found, if it found anything: an
/// unknown verb is a file's name for it.
pub fn explain(args: &[OsString], error: Option<&clap::Error>) -> Option<String> {
    let [_, first, ..] = args else { return None };
    if let Some(message) = misspelt_verb(args) {
        return Some(message);
    }
    let command = args::whole();
    let verb = first.to_str().and_then(|first| command.find_subcommand(first));
    let (operands, options) = split(&command, &args[if verb.is_some() { 2 } else { 1 }..]);
    let Some(verb) = verb else {
        return unknown_verb(&operands, &options).or_else(|| too_many(error?, &[], &operands, &options));
    };
    let name = verb.get_name();
    let takes_regex = verb.get_positionals().any(|arg| arg.get_id() == "regex");
    if takes_regex && error?.kind() == ErrorKind::MissingRequiredArgument {
        let given = operands.iter().copied().chain(options.iter().copied());
        let given: Vec<String> = given.map(typed).collect();
        let rest = if given.is_empty() { "BASE NEW".to_owned() } else { given.join(" ") };
        return Some(format!("{name} needs an expression before the profiles: pprofdiff {name} REGEX {rest}"));
    }
    // Verbs of two sides have both of these.
    let has_sides = ["base", "files"].iter().all(|id| verb.get_arguments().any(|arg| arg.get_id() == *id));
    if !has_sides {
        return None;
    }
    let (regex, files) = operands.split_at(usize::from(takes_regex).min(operands.len()));
    let words: Vec<String> = std::iter::once(name.to_owned()).chain(regex.iter().map(|r| typed(r))).collect();
    too_many(error?, &words, files, &options)
}

/// Explains an expression that is a file's name and stands where the expression of a view belongs.
pub fn regex_is_file(view: &str, regex: &str, files: &[PathBuf]) -> Option<String> {
    // Before two profiles it is an expression: source files have names as well.
    if files.len() > 1 || !Path::new(regex).is_file() {
        return None;
    }
    let files = files.iter().map(|file| typed(&file.clone().into_os_string())).collect::<Vec<_>>().join(" ");
    let command = format!("pprofdiff {view} REGEX {} {files}", typed(&regex.to_owned().into()));
    Some(format!("{regex:?} is a file, and {view} needs an expression before the profiles: {}", command.trim_end()))
}

/// A first word that is near a verb and no file, and that operands follow.
fn misspelt_verb(args: &[OsString]) -> Option<String> {
    let [_, first, rest @ ..] = args else { return None };
    let typed = first.to_str().filter(|word| !word.starts_with('-') && !Path::new(word).exists())?;
    if !rest.iter().any(|arg| !arg.as_encoded_bytes().starts_with(b"-")) {
        return None;
    }
    let command = Cli::command();
    // `man` takes no profile, and is near to `main`.
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name);
    let near =
        verbs.filter(|verb| *verb != "man").map(|verb| (strsim::osa_distance(verb, &typed.to_lowercase()), verb));
    let (distance, verb) = near.min_by_key(|(distance, _)| *distance)?;
    let most = if verb.len() > 4 { 2 } else { 1 };
    (verb != typed && distance <= most).then(|| format!("unknown verb {typed}; did you mean {verb}?"))
}

/// A first word that is no file either: a verb of another tool, perhaps.
fn unknown_verb(operands: &[&OsString], options: &[&OsString]) -> Option<String> {
    let [first, rest @ ..] = operands else { return None };
    let is_word = |text: &&str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    };
    let verb = first.to_str().filter(|text| is_word(text) && !Path::new(text).exists())?;
    let tail = options.iter().map(|option| format!(" {}", typed(option))).collect::<String>();
    let instead = match rest {
        [one] if Path::new(one).is_file() => format!("to show one profile: pprofdiff top {}{tail}", typed(one)),
        [base, new] => format!("to compare two profiles: pprofdiff {} {}{tail}", typed(base), typed(new)),
        [_, _, ..] => "to compare two profiles: pprofdiff BASE NEW".to_owned(),
        _ => return None,
    };
    Some(format!("unknown verb {verb}, and no file has this name; {instead}; for all verbs: pprofdiff --help"))
}

/// More files than two sides.
fn too_many(error: &clap::Error, words: &[String], files: &[&OsString], options: &[&OsString]) -> Option<String> {
    let is_too_many = matches!(error.kind(), ErrorKind::TooManyValues | ErrorKind::UnknownArgument);
    let [base, new @ ..] = files else { return None };
    if !is_too_many || new.len() < 2 {
        return None;
    }
    let list = |files: &[&OsString]| match files {
        [first, .., last] if files.len() > MAX_FILES => format!("{} ... {}", typed(first), typed(last)),
        files => files.iter().map(|file| typed(file)).collect::<Vec<_>>().join(" "),
    };
    let before: String = words.iter().cloned().chain(options.iter().map(|o| typed(o))).map(|word| word + " ").collect();
    let runs = format!("pprofdiff {before}--base {} --new {}", typed(base), list(new));
    let builds = format!("pprofdiff series {}", list(files));
    Some(format!(
        "{} profiles are given, and two are compared (BASE NEW); to compare several runs of a side: {runs}; to follow builds \
         in their order: {builds}",
        files.len()
    ))
}

/// Operands, and options with their values.
fn split<'a>(command: &Command, args: &'a [OsString]) -> (Vec<&'a OsString>, Vec<&'a OsString>) {
    let (mut operands, mut options, mut values) = (Vec::new(), Vec::new(), 0);
    for arg in args {
        if is_option(arg) {
            values = arg.to_str().map_or(0, |arg| most_values(command, arg));
            options.push(arg);
        } else if values > 0 {
            values -= 1;
            options.push(arg);
        } else {
            operands.push(arg);
        }
    }
    (operands, options)
}

/// An argument as it can be typed again.
fn typed(arg: &OsString) -> String {
    let text = arg.to_string_lossy();
    match text.split_once('=') {
        Some((option, value)) if option.starts_with("--") => format!("{option}={}", word(value)),
        _ if is_option(arg) && word(&text[1..]) == text[1..] => text.into_owned(),
        _ if is_option(arg) && text.starts_with("--") && word(&text[2..]) == text[2..] => text.into_owned(),
        _ if text == "-" => text.into_owned(),
        _ => operand(&text, "FILE"),
    }
}
