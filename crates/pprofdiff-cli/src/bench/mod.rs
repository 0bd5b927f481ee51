//! `pprofdiff bench`: takes the runs of two sides in turns until it is decided whether they differ, and explains how.
//!
//! ```text
//! checkouts (sides) -> runs in turns (taking, adapters, process, machine) -> decided (pprofdiff::sequential)
//!                   -> sources and binaries (kept) -> explain or check of the folder (end) -> commits between (bisect)
//! ```
//!
//! Runs.toml is written anew after each pair, so that nothing that is measured is lost. Worktrees and child processes end
//! with what holds them, however that comes to its end. What follows the runs is what any verb makes of their folder.

mod adapters;
mod bisect;
mod consent;
mod end;
mod folder;
mod kept;
mod machine;
mod orphans;
mod process;
mod sides;
mod submodules;
mod taking;
mod telling;
mod words;

use std::path::{Path, PathBuf};

use pprofdiff::Work;
use pprofdiff::recording::Recording;
use pprofdiff::sequential::{Decision, Pairs};

use crate::args::BenchArgs;
use crate::input::Inputs;
use crate::outputs::Outputs;
use crate::terminal::{AtInterrupt, stop_at_interrupt};
use crate::{Failure, Result, say};
use taking::Bench;

const DEFAULT_RUNS: u64 = 20;
const DEFAULT_EFFECT: f64 = 0.02;

/// Takes runs until it is decided, or until the work is stopped; then explains what is measured.
pub fn run(args: BenchArgs, work: &Work) -> Result<u8> {
    end::check_args(&args)?;
    let inputs = Inputs::new(&args.load, Outputs::new(args.output.path()))?;
    let (dir, mut recording) = recording(&args, work)?;
    let pairs = measure(&args, work, &inputs, &dir, &mut recording)?;
    let is_interrupted = work.is_stopped();
    if is_interrupted || !args.bisect {
        // Worktrees are gone, so that a second Ctrl-C may end it at once.
        stop_at_interrupt(&Work::new(), AtInterrupt::Exit);
    }
    if recording.sides(&dir).iter().any(Vec::is_empty) {
        let nothing = format!("no pair of runs was measured; what they wrote is in {}", dir.display());
        return Err(if is_interrupted { Failure::Interrupted } else { Failure::Message(nothing) });
    }
    let has_changed = pairs.decision() == Decision::Change;
    let bisected = args.bisect.then(|| bisect::Plan::new(&args));
    let (code, candidates) = end::answer(args, &dir, &recording, pairs.has_total_changed())?;
    say(&format!("the runs are in {}; go on with: pprofdiff bench --more {}", dir.display(), dir.display()));
    match bisected {
        Some(plan) if has_changed && !is_interrupted => {
            plan.run(work, &inputs, &dir, &recording, &pairs, &candidates)?;
        }
        Some(_) => say("--bisect: no change is certain, so there is no commit to look for"),
        None => {}
    }
    Ok(code)
}

/// Takes the runs, and keeps what is needed of both sides when their worktrees are gone.
fn measure(args: &BenchArgs, work: &Work, inputs: &Inputs, dir: &Path, recording: &mut Recording) -> Result<Pairs> {
    let dirs: Vec<PathBuf> = recording.dirs.iter().map(PathBuf::from).collect();
    let runner = process::Runner::new(work, args.max_time);
    // Ctrl-C also stops git during the checkout, so its error is an interruption.
    let checkouts = sides::checkouts(&runner, &recording.range, &dirs)
        .map_err(|e| if work.is_stopped() { Failure::Interrupted } else { e })?;
    let limits = taking::Limits { runs: args.runs.unwrap_or(DEFAULT_RUNS) as usize, time: args.max_time };
    let mut bench = Bench::new(runner, limits, inputs, &args.query, dir, &checkouts, recording)?;
    let pairs = bench.take(recording, &|pairs| pairs.decision() != Decision::Open)?;
    bench.keep();
    if !pairs.is_empty() {
        for line in words::verdict(&pairs, recording.effect) {
            say(&line);
        }
    }
    Ok(pairs)
}

/// The folder of runs, and what is known of them: a new one, or one that is gone on with.
fn recording(args: &BenchArgs, work: &Work) -> Result<(PathBuf, Recording)> {
    let [command, new_command] = commands(args)?;
    let (dir, mut recording) = match &args.more {
        Some(dir) => {
            if !command.is_empty() || args.build.is_some() {
                return Err(Failure::Message("--more goes on with the command of the runs; give none".to_owned()));
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
                    "no command is given; put it behind --, or name --base-cmd and --new-cmd".to_owned(),
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
        return Err(Failure::Message("--effect is a change that matters, and more than 0%".to_owned()));
    }
    Ok((dir, recording))
}

/// The words of the commands of both sides; the new side's are empty if they are the base's.
fn commands(args: &BenchArgs) -> Result<[Vec<String>; 2]> {
    let common: Vec<String> = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let of_side =
        |own: &Option<String>| own.as_ref().map_or_else(|| Ok(common.clone()), |text| adapters::split_words(text));
    let [base, new] = [of_side(&args.base_cmd)?, of_side(&args.new_cmd)?];
    if base.is_empty() != new.is_empty() {
        return Err(Failure::Message(
            "one side has a command, and the other none; put one for both behind --".to_owned(),
        ));
    }
    Ok(if base == new { [base, Vec::new()] } else { [base, new] })
}
