//! The adapter for any other command. The placeholder `{profile}` in the command, or the variable `PPROFDIFF_PROFILE`,
//! names the profile to write.

use pprofdiff_shell::Result;

use super::{Adapter, RunPlan, Taken, no_advice, path, unfixed, written};
use crate::process::{Ended, Runner};

pub const ADAPTER: Adapter =
    Adapter { name: "command", handles: |_| true, command, taken, fixed: unfixed, advice: no_advice };

/// Returns the profile of a run. It has no file extension, because its format is detected by content.
pub fn profile(dir: &std::path::Path) -> std::path::PathBuf {
    dir.join("profile")
}

/// Returns the command with the path of the profile in place of `{profile}`.
pub fn command(plan: &RunPlan<'_>) -> Vec<String> {
    let file = path(&profile(plan.dir));
    plan.command.iter().map(|word| word.replace("{profile}", &file)).collect()
}

fn taken(plan: &RunPlan<'_>, _: &Ended, _: &Runner<'_>) -> Result<Taken> {
    written(profile(plan.dir), plan.command)
}
