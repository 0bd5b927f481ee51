//! Any command: `{profile}` in it, or the variable `PPROFDIFF_PROFILE`, names the file that it is to write.

use super::{Adapter, Plan, Taken, no_advice, path, unfixed, written};
use crate::Result;
use crate::bench::process::{Ended, Runner};

pub const ADAPTER: Adapter =
    Adapter { name: "command", is_of: |_| true, command, taken, fixed: unfixed, advice: no_advice };

/// The file of a run; its content says what it is.
pub fn profile(dir: &std::path::Path) -> std::path::PathBuf {
    dir.join("profile")
}

fn command(plan: &Plan<'_>) -> Vec<String> {
    let file = path(&profile(plan.dir));
    plan.command.iter().map(|word| word.replace("{profile}", &file)).collect()
}

fn taken(plan: &Plan<'_>, _: &Ended, _: &Runner<'_>) -> Result<Taken> {
    written(profile(plan.dir), plan.command)
}
