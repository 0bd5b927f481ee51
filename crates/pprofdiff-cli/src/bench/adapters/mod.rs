//! What is added to a command so that it writes a profile, and what its output says: a table, with a file a kind of command.

mod any;
mod go_test;
mod node;
mod perf;
mod py_spy;

use std::path::{Path, PathBuf};

use super::process::{Ended, Runner};
use crate::{Failure, Result};

/// A run that is to be made.
pub struct Plan<'a> {
    pub command: &'a [String],
    /// Where its profiles go.
    pub dir: &'a Path,
    /// A place of the side's that its runs share.
    pub binary: &'a Path,
    /// The operations that it is to do, if they are fixed.
    pub operations: Option<u64>,
}

/// What a run left.
pub struct Taken {
    /// Its profiles; the first one is compared.
    pub profiles: Vec<PathBuf>,
    /// The operations that it did, if it says so.
    pub operations: Option<f64>,
}

/// A kind of command.
pub struct Adapter {
    pub name: &'static str,
    /// True of such a command.
    pub is_of: fn(&[String]) -> bool,
    /// The command that writes profiles.
    pub command: fn(&Plan<'_>) -> Vec<String>,
    /// Finds the profiles that the run wrote. The runner starts the commands that convert them.
    pub taken: fn(&Plan<'_>, &Ended, &Runner<'_>) -> Result<Taken>,
    /// Returns the number of operations that every run performs, from the output of the first run.
    pub fixed: fn(&[String], &Ended) -> Option<u64>,
    /// What to do when it fails, by the line that tells why.
    pub advice: fn(&str) -> Option<&'static str>,
}

/// All kinds; the last one is any command's.
const ADAPTERS: [&Adapter; 5] = [&go_test::ADAPTER, &node::ADAPTER, &py_spy::ADAPTER, &perf::ADAPTER, &any::ADAPTER];

pub fn find(command: &[String]) -> &'static Adapter {
    ADAPTERS.into_iter().find(|adapter| (adapter.is_of)(command)).unwrap_or(&any::ADAPTER)
}

/// The variables before a command, as shells and `env` have them, and its own words.
pub fn split_variables(command: &[String]) -> (Vec<(String, String)>, Vec<String>) {
    let rest = if command.first().is_some_and(|word| word == "env") { &command[1..] } else { command };
    let variable = |word: &String| {
        let (name, value) = word.split_once('=')?;
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_name.then(|| (name.to_owned(), value.to_owned()))
    };
    let variables: Vec<(String, String)> = rest.iter().map_while(variable).collect();
    // Options of env are its own.
    let is_plain = rest.get(variables.len()).is_some_and(|word| !word.starts_with('-'));
    if is_plain { (variables.clone(), rest[variables.len()..].to_vec()) } else { (Vec::new(), command.to_vec()) }
}

/// The words of a command that is one text, with the quotes that shells have.
pub fn split_words(text: &str) -> Result<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(chars.next()),
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    match quote {
        Some(quote) => Err(Failure::Message(format!("a {quote} is not closed in: {text}"))),
        None if words.is_empty() => Err(Failure::Message("a side's command is empty".to_owned())),
        None => Ok(words),
    }
}

/// The name of a program without its folders.
fn program(command: &[String]) -> &str {
    let program = command.first().map_or("", String::as_str);
    program.rsplit(['/', '\\']).next().unwrap_or(program).trim_end_matches(".exe")
}

fn path(path: &Path) -> String {
    path.display().to_string()
}

/// Nothing fixes how much is done.
fn unfixed(_: &[String], _: &Ended) -> Option<u64> {
    None
}

/// What it says itself is enough.
fn no_advice(_: &str) -> Option<&'static str> {
    None
}

/// The one profile that a run must have written.
fn written(file: PathBuf, command: &[String]) -> Result<Taken> {
    let is_there = std::fs::metadata(&file).is_ok_and(|about| about.len() > 0);
    if is_there {
        return Ok(Taken { profiles: vec![file], operations: None });
    }
    let program = program(command);
    Err(Failure::Message(format!("{program} wrote no profile to {}", file.display())))
}

#[cfg(test)]
mod tests {
    use super::{split_variables, split_words};

    #[test]
    fn a_text_is_split_as_shells_do() {
        let split = |text: &str| split_words(text).unwrap_or_default().join("|");
        assert_eq!(
            split("  GOGC=50 go test -bench 'A B' \"c \\\" d\" e\\ f '' "),
            "GOGC=50|go|test|-bench|A B|c \" d|e f|"
        );
        assert_eq!(split("a 'b"), "");
        assert_eq!(split(" "), "");
    }

    #[test]
    fn variables_before_a_command_are_its_sides() {
        let split = |text: &str| {
            let (variables, words) = split_variables(&split_words(text).unwrap_or_default());
            format!("{variables:?} {}", words.join(" "))
        };
        assert_eq!(split("env GOGC=50 A= go test"), "[(\"GOGC\", \"50\"), (\"A\", \"\")] go test");
        assert_eq!(split("GOGC=50 go x=y"), "[(\"GOGC\", \"50\")] go x=y");
        assert_eq!(split("env -i A=b go"), "[] env -i A=b go");
        assert_eq!(split("./a=b/run"), "[] ./a=b/run");
    }
}
