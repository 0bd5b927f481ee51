//! Explains mistakes in a command line and suggests a command to type instead.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};
use pprofdiff::advice::{operand, pattern_of, word};
use pprofdiff_report::shared::similar_names;

use crate::args::{self, Cli};
use crate::pprof_compat::{is_long_option, is_option, most_values};

/// The maximum length of a list of files in a suggested command. A longer list is shortened to its first and last file.
const MAX_FILES: usize = 6;

/// Explains the mistake in `args`, if it can suggest a command. `error` is clap's error. It can be `None`, because clap
/// takes an unknown verb for a file name.
pub fn explain(args: &[OsString], error: Option<&clap::Error>) -> Option<String> {
    let [_, first, ..] = args else { return None };
    if let Some(message) = misspelt_verb(args) {
        return Some(message);
    }
    // The value of an unknown option would count as a file.
    if let Some(e) = error.filter(|e| e.kind() == ErrorKind::UnknownArgument && is_option_named(e)) {
        return one_hyphen(args, e);
    }
    let command = args::whole();
    let verb = first.to_str().and_then(|first| command.find_subcommand(first));
    let (operands, options) = split(&command, &args[if verb.is_some() { 2 } else { 1 }..]);
    if let Some(message) = several_heaps(args) {
        return Some(message);
    }
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
    // Only verbs that compare two sides have both arguments.
    let has_sides = ["base", "files"].iter().all(|id| verb.get_arguments().any(|arg| arg.get_id() == *id));
    if !has_sides {
        return None;
    }
    let (regex, files) = operands.split_at(usize::from(takes_regex).min(operands.len()));
    let words: Vec<String> = std::iter::once(name.to_owned()).chain(regex.iter().map(|r| typed(r))).collect();
    too_many(error?, &words, files, &options)
}

/// Returns true if the error names an option, not an operand.
fn is_option_named(e: &clap::Error) -> bool {
    matches!(e.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if word.starts_with('-'))
}

/// Explains a word with one hyphen, such as `-sort`. clap reads it as several options of one letter and names only the
/// unknown letter.
fn one_hyphen(args: &[OsString], e: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(letter)) = e.get(ContextKind::InvalidArg) else { return None };
    let letter = letter.strip_prefix('-').filter(|letter| letter.chars().count() == 1)?;
    let command = args::whole();
    // The text after `-o` and `-n` is their value.
    let has_value = |arg: &str| arg.chars().nth(1).is_some_and(|first| most_values(&command, &format!("-{first}")) > 0);
    let is_word = |arg: &&str| arg.starts_with('-') && !arg.starts_with("--") && arg.len() > 2 && arg.contains(letter);
    let is_misread = |arg: &&str| is_word(arg) && (arg[1..].starts_with(letter) || !has_value(arg));
    let typed = args.iter().skip(1).filter_map(|arg| arg.to_str()).find(is_misread)?;
    let name = typed[1..].split('=').next().unwrap_or_default();
    let advice = match is_long_option(&command, name) {
        true => format!("long options have two hyphens: -{typed}"),
        false => "see pprofdiff --help".to_owned(),
    };
    Some(format!("unexpected argument '{typed}'; {advice}"))
}

/// Explains that a view's expression is missing, if `regex` is the name of a file.
pub fn regex_is_file(view: &str, regex: &str, files: &[PathBuf]) -> Option<String> {
    // If two profiles follow, the word is an expression, which may match a source file of that name.
    if files.len() > 1 || !Path::new(regex).is_file() {
        return None;
    }
    let files = files.iter().map(|file| typed(&file.clone().into_os_string())).collect::<Vec<_>>().join(" ");
    let command = format!("pprofdiff {view} REGEX {} {files}", typed(&regex.to_owned().into()));
    Some(format!("{regex:?} is a file, and {view} needs an expression before the profiles: {}", command.trim_end()))
}

/// Suggests a verb if the first word is similar to a verb, is not a file, and is followed by an operand or by the value
/// of an option.
fn misspelt_verb(args: &[OsString]) -> Option<String> {
    let [_, first, rest @ ..] = args else { return None };
    let typed = first.to_str().filter(|word| !word.starts_with('-') && !Path::new(word).exists())?;
    if !rest.iter().any(|arg| !arg.as_encoded_bytes().starts_with(b"-")) {
        return None;
    }
    let command = Cli::command();
    // `man` takes no profiles, and is similar to `main`.
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name);
    let verb = similar_names(typed, verbs.filter(|verb| *verb != "man")).into_iter().next()?;
    (verb != typed).then(|| format!("unknown verb {typed}; did you mean {verb}?"))
}

/// Explains a first word that is neither a verb nor a file. It may be a verb of another tool.
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

/// Explains that more than two profiles were given to a comparison.
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
    let has_baseline = options.iter().any(|option| {
        option.to_str().is_some_and(|option| option == "--baseline" || option.starts_with("--baseline="))
    });
    // The baseline is the base, so all files are runs of the new side.
    if has_baseline {
        let count = files.len();
        let runs = format!("pprofdiff {before}--new {}", list(files));
        return Some(format!("{count} profiles were given; to compare them as runs with the baseline: {runs}"));
    }
    Some(format!(
        "{} profiles were given, but a comparison takes two (BASE NEW); to compare several runs per side: {runs}; to follow \
         builds in order: {builds}",
        files.len()
    ))
}

/// Explains that `--with` takes one file per side. clap does not report `--with H1 H2 H3 H4`, because it takes H3 and H4 for
/// BASE and NEW. Returns `None` if they can be the sides.
pub fn several_heaps(args: &[OsString]) -> Option<String> {
    let args = args.get(2..).filter(|_| args[1] == "explain")?;
    let start = args.iter().position(|arg| arg == "--with")?;
    let words = args[start + 1..].iter().take_while(|arg| !is_option(arg)).count();
    let is_side = |arg: &OsString| {
        let option = arg.to_str().map(|arg| arg.split_once('=').map_or(arg, |(option, _)| option));
        matches!(option, Some("--base" | "--new"))
    };
    let command = args::whole();
    let operands_precede = !split(command.find_subcommand("explain")?, &args[..start]).0.is_empty();
    // Without sides before or among the options, the last two words are the sides.
    let heaps = if operands_precede || args.iter().any(is_side) { words } else { words.checked_sub(2)? };
    if heaps <= 2 {
        return None;
    }
    let all = &args[start + 1..][..heaps];
    let names: Vec<String> = all.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (base, new) = names.split_at(heaps / 2);
    // A pattern of few letters would match other files.
    let is_precise = |pattern: &str| pattern.chars().filter(|c| c.is_alphanumeric()).count() > 2;
    let pattern = |names: &[&str], others: &[&str]| pattern_of(names, others).filter(|pattern| is_precise(pattern));
    let patterns = pattern(base, new).zip(pattern(new, base)).filter(|_| base.len() == new.len());
    let [base, new] = match &patterns {
        Some((base, new)) => [operand(base, "BASE_HEAPS"), operand(new, "NEW_HEAPS")],
        None => ["BASE_HEAPS".to_owned(), "NEW_HEAPS".to_owned()],
    };
    let others: Vec<String> = args[..start].iter().chain(&args[start + 1 + heaps..]).map(typed).collect();
    Some(format!(
        "--with takes one file or quoted pattern per side, not {heaps} files; for several heap profiles per side: \
         pprofdiff explain --with {base} {new} {}",
        others.join(" ")
    ))
}

/// Splits arguments into operands, and options with their values.
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

/// Quotes an argument so that it can be typed in a shell.
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
