//! `pprofdiff serve`: opens the files of the command line in the page that pprofdiff-web serves.

use std::path::PathBuf;

use pprofdiff::recording::Recording;
use pprofdiff_shell::{Outputs, Result};
use pprofdiff_web::{ServeOptions, Session, SessionSides};

use crate::args::ServeArgs;
use crate::{Inputs, one_stdin};

/// Serves until the process ends.
pub fn run(args: &ServeArgs) -> Result<()> {
    let inputs = Inputs::without_base(&args.load, Outputs::default())?;
    let mut session = Session::new(inputs.options.clone());
    let recorded = match args.sides.files.as_slice() {
        [dir] if Recording::is_in(dir) => Some(Recording::read_sides(dir)?),
        _ => None,
    };
    let (base, new) = if let Some([base, new]) = &recorded {
        (base.iter().collect(), new.iter().collect())
    } else if args.sides.base.is_empty() && args.sides.new.is_empty() {
        match args.sides.files.as_slice() {
            [base, new] => (vec![base], vec![new]),
            files => (Vec::new(), files.iter().collect()),
        }
    } else {
        (args.sides.base.iter().collect(), args.sides.new.iter().collect())
    };
    one_stdin(base.iter().chain(&new).copied())?;
    let is_alone = base.is_empty();
    let mut add = |side: Vec<&PathBuf>| -> Result<Vec<usize>> {
        // Without a base, a recorded side is loaded as one profile, the sum of its runs. With a base, each run is a
        // profile.
        let sources =
            if is_alone { side.iter().map(|path| inputs.source(path)).collect() } else { inputs.sources(side) };
        sources?.into_iter().map(|source| Ok(session.add(source)?)).collect()
    };
    let (base, new) = (add(base)?, add(new)?);
    let named = !new.is_empty();
    if named {
        session.plan(match base.is_empty() && new.len() > 1 {
            true => SessionSides::Series(new),
            false => SessionSides::Diff { base, new },
        });
    }
    let limit = usize::try_from(inputs.options.inflated_limit).unwrap_or(usize::MAX);
    pprofdiff_web::serve(session, ServeOptions { port: args.port, open: args.open, limit })
}
