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

/// Returns true if a person watches a stream: on a terminal, unless an agent runs this command.
pub fn is_watched(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && !is_agent()
}

/// Returns true if the output should be colored: on a terminal of a person, unless NO_COLOR is set (no-color.org) or
/// TERM is `dumb`.
pub fn color_wanted() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    is_watched(&io::stdout()) && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
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
