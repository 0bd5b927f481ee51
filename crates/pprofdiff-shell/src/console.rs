//! Standard output and standard error: results, messages and colors.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use pprofdiff::cancellation::CheckpointedWrite;
use pprofdiff::text::{redacted, sanitize};

use crate::{Result, is_agent, terminal};

/// Prints on standard error the warnings that the output does not contain, see `Format::warns`.
pub fn warn(warnings: &[String]) {
    for warning in warnings {
        say(&format!("warning: {warning}"));
    }
}

/// Prints one line on standard error. Control characters and the secrets in URLs are replaced, because the text may
/// come from files, servers or arguments.
pub fn say(text: &str) {
    terminal::suspend(|| {
        let _ = writeln!(io::stderr(), "pprofdiff: {}", sanitize(&redacted(text)));
    });
}

/// Prints a command that the user can copy, on a line of its own below a message.
pub(crate) fn say_command(command: &str) {
    terminal::suspend(|| {
        let _ = writeln!(io::stderr(), "  {}", sanitize(&redacted(command)));
    });
}

/// Returns true if a person watches a stream: on a terminal, unless an agent runs this command.
pub fn is_watched(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && !is_agent()
}

/// Returns true if standard output should be colored. NO_COLOR (no-color.org) turns color off, and takes precedence over
/// CLICOLOR_FORCE, which forces color. Without both, a
/// terminal that a person watches is colored unless TERM is `dumb`.
pub fn color_wanted() -> bool {
    wants_color(|name| std::env::var(name).ok(), is_watched(&io::stdout()))
}

/// Decides about color from the environment. Empty variables count as unset, and so does `CLICOLOR_FORCE=0`, as in BSD's
/// tools.
fn wants_color(variable: impl Fn(&str) -> Option<String>, is_terminal: bool) -> bool {
    let value = |name| variable(name).filter(|value| !value.is_empty());
    if value("NO_COLOR").is_some() {
        return false;
    }
    let is_forced = value("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    is_forced || is_terminal && value("TERM").is_none_or(|terminal| terminal != "dumb")
}

/// Returns the number of characters per line of standard output: COLUMNS, or else the width of the terminal. `None` if
/// COLUMNS is unset and standard output is no terminal, because other programs expect whole names.
pub fn text_width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|value| value.parse().ok()).filter(|&columns| columns > 0);
    columns.or_else(terminal::width)
}

/// Returns true for the path `-`, which stands for standard input or standard output.
pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Writes to a file, or to standard output.
pub fn write_to(output: Option<&Path>, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    match output.filter(|path| !is_stdin(path)) {
        Some(path) => Ok(pprofdiff::output::write_file(path, write)?),
        None => {
            terminal::cover_phases(true);
            let mut out = BufWriter::new(CheckpointedWrite::new(io::stdout().lock()));
            write(&mut out)?;
            Ok(out.flush()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::wants_color;

    #[test]
    fn variables_decide_about_color_before_the_terminal_does() {
        let wanted = |set: &[(&str, &str)], is_terminal| {
            let variable = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            wants_color(variable, is_terminal)
        };
        assert!(wanted(&[], true) && !wanted(&[], false));
        assert!(!wanted(&[("TERM", "dumb")], true));
        assert!(wanted(&[("CLICOLOR_FORCE", "1")], false));
        assert!(wanted(&[("CLICOLOR_FORCE", "1"), ("TERM", "dumb")], true));
        assert!(!wanted(&[("CLICOLOR_FORCE", "0")], false) && !wanted(&[("CLICOLOR_FORCE", "")], false));
        assert!(!wanted(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], true));
        assert!(wanted(&[("NO_COLOR", "")], true));
    }
}
