//! `pprofdiff bench`: runs two sides in alternation until the result is clear, then explains the difference.
//!
//! ```text
//! checkouts (sides) -> runs in turns (measure, adapters, process, machine) -> decision (pprofdiff::sequential)
//!                   -> sources and binaries (saved_inputs) -> explain or check of the folder (end)
//!                   -> commits in between (bisect)
//! ```
//!
//! `runs.toml` is rewritten after each pair, so an interruption loses only the pair in progress. Worktrees and child
//! processes end with the value that owns them, on every exit path. After the runs, `explain` or `check` reads the
//! folder like any other input.

mod adapters;
mod bisect;
mod consent;
mod end;
mod failure_line;
mod folder;
mod machine;
mod measure;
mod messages;
mod orphans;
mod process;
mod saved_inputs;
mod sides;
mod submodules;

use std::path::{Path, PathBuf};

use pprofdiff::Cancellation;
use pprofdiff::recording::Recording;
use pprofdiff::sequential::{Decision, Pairs};

use crate::args::BenchArgs;
use crate::input::Inputs;
use crate::outputs::Outputs;
use crate::terminal::{AtInterrupt, stop_at_interrupt};
use crate::{Failure, Result, say};
use measure::Bench;

const DEFAULT_RUNS: u64 = 20;
const DEFAULT_EFFECT: f64 = 0.02;

/// Measures runs until the result is clear, a limit is reached or `work` is stopped. Then explains or checks the runs,
/// and with `--bisect` looks for the commit that made a change. Returns the exit code.
pub fn run(args: BenchArgs, work: &Cancellation) -> Result<u8> {
    end::check_args(&args)?;
    let outputs = Outputs::new(args.report.iter().map(PathBuf::as_path).chain(args.output.path()));
    let inputs = Inputs::new(&args.load, outputs)?;
    let (dir, mut recording) = recording(&args, work)?;
    let pairs = measure(&args, work, &inputs, &dir, &mut recording)?;
    let is_interrupted = work.is_stopped();
    if is_interrupted || !args.bisect {
        // The worktrees are already removed and no bisection follows, so Ctrl-C may end the process without cleanup.
        stop_at_interrupt(&Cancellation::new(), AtInterrupt::Exit);
    }
    if recording.sides(&dir).iter().any(Vec::is_empty) {
        let nothing =
            format!("no pair of runs was completed; the output of the attempted runs is in {}", dir.display());
        return Err(if is_interrupted { Failure::Interrupted } else { Failure::Message(nothing) });
    }
    let has_changed = pairs.decision() == Decision::Change;
    let bisected = args.bisect.then(|| bisect::BisectPlan::new(&args));
    let (code, candidates) = end::answer(args, &dir, &recording, pairs.has_total_changed())?;
    say(&format!("the runs are in {}; continue with: pprofdiff bench --more {}", dir.display(), dir.display()));
    match bisected {
        Some(plan) if has_changed && !is_interrupted => {
            plan.run(work, &inputs, &dir, &recording, &pairs, &candidates)?;
        }
        Some(_) if has_changed => say("--bisect: interrupted before the search for the commit"),
        Some(_) => say("--bisect: no change is certain, so there is no commit to look for"),
        None => {}
    }
    Ok(code)
}

/// Measures the runs, and saves the sources and binaries of both sides before their worktrees are removed.
fn measure(
    args: &BenchArgs,
    work: &Cancellation,
    inputs: &Inputs,
    dir: &Path,
    recording: &mut Recording,
) -> Result<Pairs> {
    let dirs: Vec<PathBuf> = recording.dirs.iter().map(PathBuf::from).collect();
    let runner = process::Runner::new(work, args.max_time);
    // Ctrl-C also stops git during the checkout, so its error is an interruption.
    let checkouts = sides::checkouts(&runner, &recording.range, &dirs)
        .map_err(|e| if work.is_stopped() { Failure::Interrupted } else { e })?;
    let limits = measure::Limits { runs: args.runs.unwrap_or(DEFAULT_RUNS) as usize, time: args.max_time };
    let mut bench = Bench::new(runner, limits, inputs, &args.query, dir, &checkouts, recording)?;
    let pairs = bench.take(recording, &|pairs| pairs.decision() != Decision::Open)?;
    bench.keep();
    if !pairs.is_empty() {
        for line in messages::verdict(&pairs, recording.effect) {
            say(&line);
        }
    }
    Ok(pairs)
}

/// Returns the folder of runs and its recording: a new one, or with `--more` an existing one.
fn recording(args: &BenchArgs, work: &Cancellation) -> Result<(PathBuf, Recording)> {
    let [command, new_command] = commands(args)?;
    let (dir, mut recording) = match &args.more {
        Some(dir) => {
            if !command.is_empty() || args.build.is_some() {
                return Err(Failure::Message(
                    "--more reuses the recorded command; give no command or --build".to_owned(),
                ));
            }
            let recording = Recording::read(dir)?;
            // Reading the answer can't be cancelled, so Ctrl-C must end the process.
            stop_at_interrupt(work, AtInterrupt::Exit);
            consent::ask(dir, &recording, args.yes)?;
            stop_at_interrupt(work, AtInterrupt::CleanUp);
            (std::fs::canonicalize(dir).unwrap_or_else(|_| dir.clone()), recording)
        }
        None => {
            if command.is_empty() {
                return Err(Failure::Message(
                    "no command is given; put it after --, or set --base-cmd and --new-cmd".to_owned(),
                ));
            }
            let (range, dirs) = sides::named(args)?;
            let into = folder::begin(&args.into)?;
            let mut recording = Recording::new(&command);
            let full = |dir: &PathBuf| std::fs::canonicalize(dir).unwrap_or_else(|_| dir.clone()).display().to_string();
            recording.new_command = new_command;
            recording.range = range;
            recording.dirs = dirs.iter().map(full).collect();
            recording.build = args.build.clone().unwrap_or_default();
            recording.seed = args.seed;
            recording.effect = DEFAULT_EFFECT;
            (into, recording)
        }
    };
    recording.effect = args.effect.unwrap_or(recording.effect);
    if recording.effect <= 0.0 {
        return Err(Failure::Message("--effect must be greater than 0%".to_owned()));
    }
    Ok((dir, recording))
}

/// Returns the words of both commands. The words of the new side are empty if both commands are equal.
fn commands(args: &BenchArgs) -> Result<[Vec<String>; 2]> {
    let common: Vec<String> = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let side_words = |side_command: &Option<String>| {
        side_command.as_ref().map_or_else(|| Ok(common.clone()), |text| adapters::split_words(text))
    };
    let [base, new] = [side_words(&args.base_cmd)?, side_words(&args.new_cmd)?];
    if base.is_empty() != new.is_empty() {
        return Err(Failure::Message(
            "only one side has a command; give the other one too, or put a common one after --".to_owned(),
        ));
    }
    Ok(if base == new { [base, Vec::new()] } else { [base, new] })
}
