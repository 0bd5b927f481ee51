//! Asks before `--more` runs the commands in a folder's `runs.toml`. The folder may come from a colleague or from CI,
//! so the user sees the commands first and agrees with `--yes` or on the terminal.

use std::io::{Write, stderr, stdin};
use std::path::Path;

use pprofdiff::advice::word;
use pprofdiff::recording::{RUNS_FILE, Recording};
use pprofdiff_shell::{Failure, Result, is_watched, say};

/// Shows the commands of a folder. Asks whether to run them, unless the user passed `--yes` (`is_given`).
///
/// # Errors
/// Fails if the user refuses, if `--yes` is missing and no person watches a terminal, or if the terminal cannot be read.
pub fn ask(dir: &Path, recording: &Recording, is_given: bool) -> Result<()> {
    let (file, commands) = (dir.join(RUNS_FILE), commands(recording));
    let is_terminal = is_watched(&stdin()) && is_watched(&stderr());
    if !is_given && !is_terminal {
        return Err(Failure::Message(format!(
            "{} wants to run {}; add --yes to --more if you trust these commands",
            file.display(),
            commands.join(", and ")
        )));
    }
    for command in &commands {
        say(&format!("{} would run {command}", file.display()));
    }
    if is_given {
        return Ok(());
    }
    let mut answer = String::new();
    write!(stderr(), "pprofdiff: run these commands? [y/N] ")?;
    stderr().flush()?;
    stdin().read_line(&mut answer)?;
    if ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        return Ok(());
    }
    Err(Failure::Message("nothing was run".to_owned()))
}

/// Describes each command that the folder would run, with the folders in which it would run. The build runs on both
/// sides, and so does the command, unless the new side has a command of its own.
fn commands(recording: &Recording) -> Vec<String> {
    let words = |words: &[String]| words.iter().map(|text| word(text)).collect::<Vec<_>>().join(" ");
    let [base_place, new_place, both_places] = match recording.dirs.as_slice() {
        [base, new] if base == new => [(); 3].map(|()| word(base)),
        [base, new] => [word(base), word(new), format!("{} and {}", word(base), word(new))],
        _ => {
            let range = word(&recording.range);
            if recording.range.contains("..") {
                [
                    format!("a checkout of the base of {range}"),
                    format!("a checkout of the new side of {range}"),
                    format!("checkouts of {range}"),
                ]
            } else {
                // A range without `..` compares a commit with the user's working tree, which is not checked out.
                let base = format!("a checkout of {range}");
                let both = format!("{base} and your working tree");
                [base, "your working tree".to_owned(), both]
            }
        }
    };
    let mut all = Vec::new();
    if !recording.build.is_empty() {
        all.push(format!("the build `{}` in {both_places}", recording.build));
    }
    if recording.new_command.is_empty() {
        all.push(format!("`{}` in {both_places}", words(&recording.command)));
    } else {
        all.push(format!("`{}` in {base_place}", words(&recording.command)));
        all.push(format!("`{}` in {new_place}", words(&recording.new_command)));
    }
    all
}

#[cfg(test)]
mod tests {
    use pprofdiff::recording::Recording;

    #[test]
    fn each_command_is_shown_with_the_folders_in_which_it_runs() {
        let list = |words: &[&str]| words.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let mut recording = Recording::default();
        recording.dirs = list(&["old", "new"]);
        recording.build = "make".to_owned();
        recording.command = list(&["./a", "1 2"]);
        assert_eq!(super::commands(&recording), ["the build `make` in old and new", "`./a '1 2'` in old and new"]);
        recording.new_command = list(&["./b"]);
        assert_eq!(super::commands(&recording)[1..], ["`./a '1 2'` in old", "`./b` in new"]);
        recording.dirs = list(&["new", "new"]);
        assert_eq!(super::commands(&recording)[1..], ["`./a '1 2'` in new", "`./b` in new"]);
        (recording.dirs, recording.range) = (Vec::new(), "main".to_owned());
        assert_eq!(
            super::commands(&recording)[1..],
            ["`./a '1 2'` in a checkout of main", "`./b` in your working tree"]
        );
        recording.new_command.clear();
        assert_eq!(super::commands(&recording)[1..], ["`./a '1 2'` in a checkout of main and your working tree"]);
    }
}
