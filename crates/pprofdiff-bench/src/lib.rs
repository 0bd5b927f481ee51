//! The runner of `pprofdiff bench`: runs two sides in alternation until the result is clear.
//!
//! ```text
//! checkouts (sides) -> runs in turns (measure, adapters, process, machine) -> decision (pprofdiff::sequential)
//!                   -> sources and binaries (saved_inputs) -> commits in between (bisect)
//! ```
//!
//! [`BenchOptions`] go in, and a folder of runs with its `runs.toml` comes out. This crate explains and checks no runs:
//! the command does that with the folder, like with any other input.
//!
//! `runs.toml` is rewritten after each pair, so an interruption loses only the pair in progress. Worktrees and child
//! processes end with the value that owns them, on every exit path.

mod adapters;
mod bisect;
mod calibrate;
mod consent;
mod counts;
mod failure_line;
mod folder;
mod layouts;
mod machine;
mod measure;
mod messages;
mod orphans;
mod process;
mod saved_inputs;
mod sides;
mod submodules;

use std::path::{Path, PathBuf};
use std::time::Duration;

use pprofdiff::recording::Recording;
use pprofdiff::sequential::{Decision, Pairs};
use pprofdiff::{Cancellation, LoadOptions, Query};
use pprofdiff_shell::terminal::{AtInterrupt, stop_at_interrupt};
use pprofdiff_shell::{Failure, Result, say};

pub use calibrate::{DEFAULT_CALIBRATION_RUNS, calibrate};
pub use counts::{CPROFILE, DEFAULT_COUNTED_RUNS};
pub use folder::DEFAULT_FOLDER;
use measure::Bench;

/// The default of [`BenchOptions::runs`].
pub const DEFAULT_RUNS: u64 = 20;
const DEFAULT_EFFECT: f64 = 0.02;

/// The commands to run, and the limits that end them. Messages name the fields by the options of the command.
#[derive(Clone)]
pub struct BenchOptions {
    /// BASE..NEW, BASE...NEW, or BASE against the working tree.
    pub range: Option<String>,
    /// The folder of the base, instead of a commit.
    pub base_dir: Option<PathBuf>,
    /// The folder of the new side.
    pub new_dir: Option<PathBuf>,
    /// The words of the command for both sides.
    pub command: Vec<String>,
    /// The command for the base, as one quoted string.
    pub base_cmd: Option<String>,
    /// The command for the new side, as one quoted string.
    pub new_cmd: Option<String>,
    /// The shell command to run on each side before the runs.
    pub build: Option<String>,
    /// The smallest change that must be ruled out.
    pub effect: Option<f64>,
    /// The maximum number of runs per side.
    pub runs: usize,
    /// True if calls and instructions are counted instead of timed.
    pub counts: bool,
    /// True if all `runs` are measured, although an earlier pair of counts decides.
    pub all_runs: bool,
    /// The maximum number of layouts, if each pair of runs is linked anew; replaces `runs`.
    pub layouts: Option<usize>,
    /// The maximum time.
    pub max_time: Option<Duration>,
    /// The seed for the order of the two sides.
    pub seed: u64,
    /// The folder for new runs. Defaults to [`DEFAULT_FOLDER`], with a number if it already has runs.
    pub into: Option<PathBuf>,
    /// The folder whose runs are continued.
    pub more: Option<PathBuf>,
    /// True if the commands in the folder of `more` may run without a question.
    pub yes: bool,
    /// The question that selects the total and the frames to compare.
    pub query: Query,
    /// The options for loading the profiles of runs.
    pub load: LoadOptions,
}

/// Measures the runs, and saves the sources and binaries of both sides before their worktrees are removed.
///
/// # Errors
/// Fails if a checkout or a build fails, or if no pair of runs can be measured.
pub fn measure(options: &BenchOptions, work: &Cancellation, dir: &Path, recording: &mut Recording) -> Result<Pairs> {
    let dirs: Vec<PathBuf> = recording.dirs.iter().map(PathBuf::from).collect();
    let runner = process::Runner::new(work, options.max_time);
    // Ctrl-C also stops git during the checkout, so its error is an interruption.
    let checkouts = sides::checkouts(&runner, &recording.range, &dirs)
        .map_err(|e| if work.is_stopped() { Failure::Interrupted } else { e })?;
    let mut bench = Bench::new(runner, options, dir, &checkouts, recording)?;
    let is_counted = !recording.counter.is_empty();
    let min_pairs = if recording.layouts { layouts::MIN_LAYOUTS } else { 0 };
    let is_enough = |pairs: &Pairs| !is_counted && pairs.len() >= min_pairs && pairs.decision() != Decision::Open;
    let pairs = bench.take(recording, &is_enough)?;
    bench.keep();
    if !pairs.is_empty() {
        let verdict = if is_counted { counts::verdict } else { messages::verdict };
        for line in verdict(&pairs, recording.effect) {
            say(&line);
        }
        let too_short = (!is_counted && pairs.decision() == Decision::Open).then(|| bench.too_short(recording.effect));
        too_short.flatten().iter().for_each(|line| say(line));
        for line in layouts::LayoutEffect::of(&recording.runs).iter().flat_map(layouts::LayoutEffect::lines) {
            say(&line);
        }
    }
    Ok(pairs)
}

/// Returns the folder of runs and its recording: a new one, or with `--more` an existing one.
///
/// # Errors
/// Fails if the options contradict each other, if the folder is not usable, or if the user does not agree to run its
/// commands.
pub fn open(options: &BenchOptions, work: &Cancellation) -> Result<(PathBuf, Recording)> {
    let [command, new_command] = commands(options)?;
    if options.counts && options.more.is_some() {
        let message = "--more continues a folder as it began; its runs.toml tells whether it counts".to_owned();
        return Err(Failure::Message(message));
    }
    let (dir, mut recording) = match &options.more {
        Some(dir) => {
            if !command.is_empty() || options.build.is_some() {
                return Err(Failure::Message(
                    "--more reuses the recorded command; give no command or --build".to_owned(),
                ));
            }
            let recording = Recording::read(dir)?;
            if options.layouts.is_some() && !recording.layouts {
                let dir = dir.display();
                return Err(Failure::Message(format!(
                    "the runs in {dir} have one layout, so --layouts cannot continue them; begin new runs with --into"
                )));
            }
            // Reading the answer can't be cancelled, so Ctrl-C must end the process.
            stop_at_interrupt(work, AtInterrupt::Exit);
            consent::ask(dir, &recording, options.yes)?;
            stop_at_interrupt(work, AtInterrupt::CleanUp);
            (std::fs::canonicalize(dir).unwrap_or_else(|_| dir.clone()), recording)
        }
        None => {
            if options.yes {
                return Err(Failure::Message(
                    "--yes answers the question of --more; name the folder with --more".to_owned(),
                ));
            }
            if command.is_empty() {
                return Err(Failure::Message(
                    "no command is given; put it after --, or set --base-cmd and --new-cmd".to_owned(),
                ));
            }
            let (range, dirs) = sides::named(options)?;
            let into = match &options.into {
                Some(into) => folder::begin(into)?,
                None => folder::begin_default(Path::new(""))?,
            };
            let mut recording = Recording::new(&command);
            let full = |dir: &PathBuf| std::fs::canonicalize(dir).unwrap_or_else(|_| dir.clone()).display().to_string();
            recording.new_command = new_command;
            recording.range = range;
            recording.dirs = dirs.iter().map(full).collect();
            recording.build = options.build.clone().unwrap_or_default();
            recording.seed = options.seed;
            recording.effect = DEFAULT_EFFECT;
            if options.counts {
                recording.counter = counts::counter([recording.command_of(0), recording.command_of(1)])?.to_owned();
                recording.effect = counts::DEFAULT_COUNTED_EFFECT;
            }
            recording.layouts = options.layouts.is_some();
            if recording.layouts {
                layouts::Layouts::new(&recording)?;
            }
            (into, recording)
        }
    };
    recording.effect = options.effect.unwrap_or(recording.effect);
    if recording.effect <= 0.0 {
        return Err(Failure::Message("--effect must be greater than 0%".to_owned()));
    }
    Ok((dir, recording))
}

/// Returns the words of both commands. The words of the new side are empty if both commands are equal.
fn commands(options: &BenchOptions) -> Result<[Vec<String>; 2]> {
    let side_words = |side_command: &Option<String>| {
        side_command.as_ref().map_or_else(|| Ok(options.command.clone()), |text| adapters::split_words(text))
    };
    let [base, new] = [side_words(&options.base_cmd)?, side_words(&options.new_cmd)?];
    if base.is_empty() != new.is_empty() {
        return Err(Failure::Message(
            "only one side has a command; give the other one too, or put a common one after --".to_owned(),
        ));
    }
    Ok(if base == new { [base, Vec::new()] } else { [base, new] })
}
