//! The adapter for any other command. The placeholder `{profile}` in the command, or the variable `PPROFDIFF_PROFILE`,
//! names the profile to write.

use pprofdiff_shell::{Failure, Result};

use super::{Adapter, RunPlan, Taken, no_advice, path, program, unfixed, written};
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
    written(profile(plan.dir), plan.command).map_err(|e| match e {
        Failure::Message(message) => Failure::Message(format!("{message}; {}", how_to_profile(plan.command))),
        other => other,
    })
}

/// Returns the next step after a command that wrote no profile, by the kind of the command.
fn how_to_profile(command: &[String]) -> String {
    let (name, words) = (program(command), shell_words::join(command));
    if name.starts_with("python") || name == "pypy" {
        return format!("record it with py-spy (-- py-spy record -- {words}), or count its calls with --counts");
    }
    if name == "go" && command.get(1).is_some_and(|word| word == "test") {
        return "run a benchmark of go test (-bench NAME), which writes profiles".to_owned();
    }
    if name == "go" {
        return "write the profile to the file in $PPROFDIFF_PROFILE with pprof.StartCPUProfile".to_owned();
    }
    if name == "java" {
        return "write a recording with java -XX:StartFlightRecording=filename={profile}".to_owned();
    }
    if let "npm" | "npx" | "yarn" | "pnpm" | "deno" | "bun" = name {
        return format!("start the script with node, which writes a profile, instead of {name}");
    }
    format!(
        "record it with perf (-- perf record -g {words}), count its instructions with --counts, or let it write a profile to \
         the file in $PPROFDIFF_PROFILE or {{profile}}"
    )
}

#[cfg(test)]
mod tests {
    use super::{super::split_words, how_to_profile};

    #[test]
    fn the_next_step_without_a_profile_fits_the_command() {
        for (command, expected) in [
            ("./shop 20000", "perf record -g ./shop 20000"),
            ("python3 app.py", "py-spy record -- python3 app.py"),
            ("go test ./...", "-bench NAME"),
            ("go run .", "pprof.StartCPUProfile"),
            ("java -jar a.jar", "-XX:StartFlightRecording=filename={profile}"),
            ("npm run bench", "with node"),
        ] {
            let advice = how_to_profile(&split_words(command).unwrap_or_default());
            assert!(advice.contains(expected), "{advice}");
        }
    }
}
