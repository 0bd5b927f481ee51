//! Errors as one line, and their exit codes.

use std::io::{self, IsTerminal};
use std::sync::OnceLock;

use pprofdiff::ErrorKind;

use crate::agent::is_agent;
use crate::console::say_command;
use crate::say;

/// The reason why the command failed. A message is printed as one line.
pub enum Failure {
    /// Any error that the user has to read.
    Message(String),
    /// An error with the commands that the user may have meant, one per line below the message.
    Choice(String, Vec<String>),
    /// The reader of the output closed the pipe (`| head`), which is not an error.
    ClosedPipe,
    /// Interrupted by Ctrl-C, or by the client of a server.
    Interrupted,
}

/// A result whose error is a [`Failure`].
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl From<pprofdiff::Error> for Failure {
    fn from(e: pprofdiff::Error) -> Failure {
        match e.kind() {
            ErrorKind::Interrupted => Failure::Interrupted,
            _ => Failure::Message(error_line(&e)),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Failure {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::Message(e.to_string()),
        }
    }
}

/// Returns an error as one line. A suggested command is shown only on a terminal and to agents. It is kept out of logs,
/// because it contains names from untrusted input.
pub fn error_line(e: &pprofdiff::Error) -> String {
    match e.advice().filter(|_| io::stderr().is_terminal() || is_agent()) {
        Some(command) => format!("{e}: {command}"),
        None if e.kind() == ErrorKind::Query => with_typed_options(&e.spelled(typed_option)),
        None => e.to_string(),
    }
}

/// Returns an option as it is typed in a shell: `--base-time ..AT`. A name with one letter has one hyphen.
pub fn typed_option(name: &str, value: Option<&str>) -> String {
    let value = value.map_or_else(String::new, |value| format!(" {value}"));
    let hyphens = if name.len() == 1 { "-" } else { "--" };
    format!("{hyphens}{}{value}", name.replace('_', "-"))
}

/// Lists the long options of the command, such as `hide-below`.
static OPTIONS: OnceLock<fn() -> Vec<String>> = OnceLock::new();

/// Sets the function that lists the long options of the command. Errors then spell the library's names of options like
/// the command. Only errors call the function, because building all options takes longer than a small answer.
pub fn name_options(options: fn() -> Vec<String>) {
    let _ = OPTIONS.set(options);
}

/// Replaces the library's names of options in an error by their spelling in a shell: `hide_below` by `--hide-below`.
/// Names of a single word stay, because they may be English words; [`pprofdiff::Error::naming_options`] marks those. Only separate words are replaced, since the text
/// may also contain names from profiles.
fn with_typed_options(text: &str) -> String {
    let options = OPTIONS.get().map_or_else(Vec::new, |options| options());
    let names: Vec<(String, &String)> =
        options.iter().filter(|long| long.contains('-')).map(|long| (long.replace('-', "_"), long)).collect();
    let typed = |word: &str| {
        let end = word.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(word.len());
        let (name, rest) = word.split_at(end);
        let is_separate = rest.is_empty() || rest.starts_with(['=', ',', ';']);
        match names.iter().find(|(snake, _)| is_separate && snake == name) {
            Some((_, long)) => format!("--{long}{rest}"),
            None => word.to_owned(),
        }
    };
    text.split(' ').map(typed).collect::<Vec<_>>().join(" ")
}

/// Returns the exit code for a result, and prints the error message if there is one.
pub fn exit_code(result: Result<u8>) -> u8 {
    match result {
        Ok(code) => code,
        Err(Failure::ClosedPipe) => 0,
        Err(Failure::Interrupted) => 130,
        Err(Failure::Message(message)) => {
            say(&message);
            2
        }
        Err(Failure::Choice(message, commands)) => {
            say(&message);
            commands.iter().for_each(|command| say_command(command));
            2
        }
    }
}
