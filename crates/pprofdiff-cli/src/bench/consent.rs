//! Asks before `--more` runs the commands in a folder's `runs.toml`. The folder may come from a colleague or from CI, so the
//! user sees the commands first and agrees with `--yes` or on the terminal.

use std::io::{IsTerminal, Write, stderr, stdin};
use std::path::Path;

use pprofdiff::advice::word;
use pprofdiff::recording::{RUNS_FILE, Recording};

use crate::{Failure, Result, say};

/// Shows the commands of a folder and asks whether to run them.
///
/// # Errors
/// Fails if the user refuses, or if `--yes` is missing and there is no terminal to ask on.
pub fn ask(dir: &Path, recording: &Recording, is_given: bool) -> Result<()> {
    let (file, commands) = (dir.join(RUNS_FILE), commands(recording));
    let is_terminal = stdin().is_terminal() && stderr().is_terminal();
    if !is_given && !is_terminal {
        return Err(Failure::Message(format!(
            "{} wants to run {}; add --yes to --more if you trust these commands",
            file.display(),
            commands.join(", and ")
        )));
    }
    for command in &commands {
        say(&format!("{} runs {command}", file.display()));
    }
    if is_given {
        return Ok(());
    }
    let mut answer = String::new();
    write!(stderr(), "pprofdiff: run this? [y/N] ")?;
    stderr().flush()?;
    stdin().read_line(&mut answer)?;
    if ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        return Ok(());
    }
    Err(Failure::Message("nothing was run".to_owned()))
}

/// Describes all commands that the folder would run and the folders in which they would run.
fn commands(recording: &Recording) -> Vec<String> {
    let words = |words: &[String]| words.iter().map(|text| word(text)).collect::<Vec<_>>().join(" ");
    let places = match recording.dirs.as_slice() {
        [base, new] if base == new => format!(" in {}", word(base)),
        [base, new] => format!(" in {} and {}", word(base), word(new)),
        _ => format!(" in checkouts of {}", word(&recording.range)),
    };
    let mut all = Vec::new();
    if !recording.build.is_empty() {
        all.push(format!("the build `{}`", recording.build));
    }
    all.push(format!("`{}`", words(&recording.command)));
    if !recording.new_command.is_empty() {
        all.push(format!("`{}`", words(&recording.new_command)));
    }
    if let Some(last) = all.last_mut() {
        last.push_str(&places);
    }
    all
}
