//! Adapters: a table with one file per kind of command. An adapter adds the options that make the command write a
//! profile, and reads the results from its output.

mod any;
mod go_test;
mod node;
mod perf;
mod py_spy;

use std::path::{Path, PathBuf};

use pprofdiff_shell::{Failure, Result};

use super::process::{Ended, Runner};

/// A run to perform.
pub struct RunPlan<'a> {
    pub command: &'a [String],
    /// The folder for the profiles of the run.
    pub dir: &'a Path,
    /// The path for the binary that the command builds. All runs of the side share it.
    pub binary: &'a Path,
    /// The number of operations to perform, if it is fixed.
    pub operations: Option<u64>,
}

/// The results of a run.
pub struct Taken {
    /// The profiles. The first one is compared.
    pub profiles: Vec<PathBuf>,
    /// The number of operations that the run performed, if it reports them.
    pub operations: Option<f64>,
}

/// A kind of command, and how to profile it.
pub struct Adapter {
    pub name: &'static str,
    /// Returns true if the adapter handles the command.
    pub handles: fn(&[String]) -> bool,
    /// Returns the command with the options that make it write profiles.
    pub command: fn(&RunPlan<'_>) -> Vec<String>,
    /// Finds the profiles that the run wrote. The runner starts the commands that convert them.
    pub taken: fn(&RunPlan<'_>, &Ended, &Runner<'_>) -> Result<Taken>,
    /// Returns the number of operations that every run performs, from the output of the first run.
    pub fixed: fn(&[String], &Ended) -> Option<u64>,
    /// Returns advice for a failure, given the error line.
    pub advice: fn(&str) -> Option<&'static str>,
}

/// All adapters. The last one handles every command.
const ADAPTERS: [&Adapter; 5] = [&go_test::ADAPTER, &node::ADAPTER, &py_spy::ADAPTER, &perf::ADAPTER, &any::ADAPTER];

pub use any::command as with_profile;
pub use go_test::{fixed as go_fixed, handles as is_go_benchmark, has as go_has};

pub fn find(command: &[String]) -> &'static Adapter {
    ADAPTERS.into_iter().find(|adapter| (adapter.handles)(command)).unwrap_or(&any::ADAPTER)
}

/// Splits the leading variable assignments from a command, as shells and `env` do.
pub fn split_variables(command: &[String]) -> (Vec<(String, String)>, Vec<String>) {
    let rest = if command.first().is_some_and(|word| word == "env") { &command[1..] } else { command };
    let variable = |word: &String| {
        let (name, value) = word.split_once('=')?;
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_name.then(|| (name.to_owned(), value.to_owned()))
    };
    let variables: Vec<(String, String)> = rest.iter().map_while(variable).collect();
    // An option such as `-i` after the variables belongs to `env`, so the command stays whole.
    let is_plain = rest.get(variables.len()).is_some_and(|word| !word.starts_with('-'));
    if is_plain { (variables.clone(), rest[variables.len()..].to_vec()) } else { (Vec::new(), command.to_vec()) }
}

/// Splits a command line into words, like a shell that expands nothing.
pub fn split_words(text: &str) -> Result<Vec<String>> {
    match shell_words::split(text) {
        Ok(words) if words.is_empty() => Err(Failure::Message("a side's command is empty".to_owned())),
        Ok(words) => Ok(words),
        Err(_) => Err(Failure::Message(format!("a quote is not closed in: {text}"))),
    }
}

/// Returns the name of the program without its folders.
pub fn program(command: &[String]) -> &str {
    let program = command.first().map_or("", String::as_str);
    program.rsplit(['/', '\\']).next().unwrap_or(program).trim_end_matches(".exe")
}

pub fn path(path: &Path) -> String {
    path.display().to_string()
}

/// Returns `None`: the amount of work per run is not fixed.
fn unfixed(_: &[String], _: &Ended) -> Option<u64> {
    None
}

/// Returns `None`: the command's own error message needs no advice.
fn no_advice(_: &str) -> Option<&'static str> {
    None
}

/// Returns the single profile of a run, or an error if the file is missing or empty.
pub fn written(file: PathBuf, command: &[String]) -> Result<Taken> {
    let is_written = std::fs::metadata(&file).is_ok_and(|metadata| metadata.len() > 0);
    if is_written {
        return Ok(Taken { profiles: vec![file], operations: None });
    }
    let program = program(command);
    Err(Failure::Message(format!("{program} wrote no profile to {}", file.display())))
}

#[cfg(test)]
mod tests {
    use super::{split_variables, split_words};

    #[test]
    fn a_command_line_is_split_like_in_a_shell() {
        let split = |text: &str| split_words(text).unwrap_or_default().join("|");
        assert_eq!(
            split("  GOGC=50 go test -bench 'A B' \"c \\\" d\" e\\ f '' "),
            "GOGC=50|go|test|-bench|A B|c \" d|e f|"
        );
        // In double quotes, a backslash escapes only characters that are special there. A comment ends the command.
        assert_eq!(split(r#"grep "\d+\$" 'a\b' # digits"#), r"grep|\d+$|a\b");
        assert_eq!(split("a 'b"), "");
        assert_eq!(split(" "), "");
    }

    #[test]
    fn leading_assignments_are_split_from_the_command() {
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
