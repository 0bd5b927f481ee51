//! `pprofdiff bench`: takes the runs of two sides in turns until it is decided whether they differ, and explains how.
//!
//! Runs.toml is written anew after each pair, so that nothing that is measured is lost. Worktrees and child processes end
//! with what holds them, however that comes to its end.

mod adapters;
mod machine;
mod process;
mod sides;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pprofdiff::recording::{RUNS_FILE, RecordedRun, Recording};
use pprofdiff::sequential::{ALARMS, Decision, MISSES, Pairs};
use pprofdiff::{Diff, Profile, Source, Work};
use pprofdiff_report::{Ask, Report};

use crate::args::BenchArgs;
use crate::explain::own_runtime;
use crate::git::Commits;
use crate::input::Inputs;
use crate::outputs::Outputs;
use crate::terminal::{AtInterrupt, stop_at_interrupt};
use crate::{Failure, Result, error_line, say, write_to};
use adapters::{Adapter, Plan};
use process::Job;
use sides::Checkout;

const DEFAULT_RUNS: u64 = 20;
const DEFAULT_EFFECT: f64 = 0.02;
/// So many pairs may fail; more is no accident.
const MAX_FAILED: usize = 3;
const SIDES: [&str; 2] = ["base", "new"];

/// Takes runs until it is decided, or until the work is stopped; then explains what is measured.
pub fn run(args: &BenchArgs, work: &Work) -> Result<u8> {
    let format = args.output.format()?;
    args.query.request(Ask::Explain(own_runtime(None)?)).for_format(format)?;
    let inputs = Inputs::new(&args.load, Outputs::new(args.output.path()))?;
    let (dir, mut recording) = recording(args)?;
    {
        let dirs: Vec<PathBuf> = recording.dirs.iter().map(PathBuf::from).collect();
        let checkouts = sides::checkouts(&recording.range, &dirs)?;
        let adapter = adapters::find(&recording.command);
        Bench { args, work, dir: &dir, checkouts: &checkouts, adapter, inputs: &inputs }.take(&mut recording)?;
    }
    // Worktrees are gone, so that a second Ctrl-C may end it at once.
    let is_interrupted = work.is_stopped();
    stop_at_interrupt(&Work::new(), AtInterrupt::Exit);
    let sides = recording.sides(&dir);
    if sides.iter().any(Vec::is_empty) {
        return if is_interrupted { Err(Failure::Interrupted) } else { Err(too_few(&dir)) };
    }
    let [base, new] = sides.map(|side| side.into_iter().map(Source::Path).collect::<Vec<_>>());
    let diff = Diff::load(&base, &new, &inputs.options)?;
    let mut options = own_runtime(None)?;
    options.ops = recording.operations();
    let request = args.query.request(Ask::Explain(options)).for_format(format)?;
    let mut report = request.answer(&diff)?;
    if let Report::Explain(explanation) = &mut report
        && !recording.range.is_empty()
        && !explanation.causes.is_empty()
    {
        match Commits::of_range(Path::new("."), &recording.range) {
            Ok(commits) => commits.rank(&diff, &request.query, explanation)?,
            // A working tree without a change, say.
            Err(Failure::Message(message)) => say(&message),
            Err(e) => return Err(e),
        }
    }
    write_to(args.output.path(), |out| (format.write)(&report, out, args.output.style()))?;
    say(&format!("the runs are in {}; go on with: pprofdiff bench --more {}", dir.display(), dir.display()));
    Ok(0)
}

fn too_few(dir: &Path) -> Failure {
    Failure::Message(format!("no pair of runs was measured; what they wrote is in {}", dir.display()))
}

/// The folder of runs, and what is known of them: a new one, or one that is gone on with.
fn recording(args: &BenchArgs) -> Result<(PathBuf, Recording)> {
    let command: Vec<String> = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (dir, mut recording) = match &args.more {
        Some(dir) => {
            if !command.is_empty() || args.build.is_some() {
                return Err(Failure::Message("--more goes on with the command of the runs; give none".to_owned()));
            }
            (std::fs::canonicalize(dir).unwrap_or_else(|_| dir.clone()), Recording::read(dir)?)
        }
        None => {
            if command.is_empty() {
                return Err(Failure::Message("no command is given; put it behind --".to_owned()));
            }
            let (range, dirs) = sides::named(args)?;
            let into = &args.into;
            let wrong = |e: std::io::Error| Failure::Message(format!("{}: {e}", into.display()));
            if std::fs::read_dir(into).is_ok_and(|mut entries| entries.next().is_some()) {
                let (into, more) = (into.display(), "go on with it by --more, or name another one with --into");
                return Err(Failure::Message(format!("{into} is there, and not empty; {more}")));
            }
            std::fs::create_dir_all(into).map_err(wrong)?;
            let mut recording = Recording::new(&command);
            let full = |dir: &PathBuf| std::fs::canonicalize(dir).unwrap_or_else(|_| dir.clone()).display().to_string();
            recording.range = range;
            recording.dirs = dirs.iter().map(full).collect();
            recording.build = args.build.clone().unwrap_or_default();
            recording.seed = args.seed;
            recording.effect = DEFAULT_EFFECT;
            (std::fs::canonicalize(into).map_err(wrong)?, recording)
        }
    };
    recording.effect = args.effect.unwrap_or(recording.effect);
    if recording.effect <= 0.0 {
        return Err(Failure::Message("--effect is a change that matters, and more than 0%".to_owned()));
    }
    Ok((dir, recording))
}

struct Bench<'a> {
    args: &'a BenchArgs,
    work: &'a Work,
    dir: &'a Path,
    checkouts: &'a [Checkout; 2],
    adapter: &'static Adapter,
    inputs: &'a Inputs,
}

impl Bench<'_> {
    fn take(&self, recording: &mut Recording) -> Result<()> {
        match self.take_all(recording) {
            // What is measured by then is explained.
            Err(Failure::Interrupted) if self.work.is_stopped() => say("interrupted"),
            other => other?,
        }
        Ok(())
    }

    fn take_all(&self, recording: &mut Recording) -> Result<()> {
        let begun = Instant::now();
        let facts = machine::facts();
        for side in 0..2 {
            self.build(&recording.build, side)?;
        }
        if recording.runs.is_empty() {
            // The first run of each side finds files that no cache has, and how much can be done in a run.
            for (side, name) in SIDES.iter().enumerate() {
                let dir = self.dir.join(format!("{name}-first"));
                let output = self.run_once(recording, side, &dir)?.1;
                let fixed = (self.adapter.fixed)(&recording.command, &output);
                recording.fixed_operations = recording.fixed_operations.or(fixed);
                let _ = std::fs::remove_dir_all(&dir);
            }
        }
        let mut pairs = Pairs::new(recording.effect);
        let totals = |recording: &Recording, pair: u64| {
            let of = |side: &str| recording.runs.iter().find(|r| r.pair == pair && r.side == side).map(|r| r.total);
            of("base").zip(of("new"))
        };
        let first = recording.runs.iter().map(|run| run.pair).max().unwrap_or(0) + 1;
        (1..first).filter_map(|pair| totals(recording, pair)).for_each(|(base, new)| pairs.push(base, new));
        let most = self.args.runs.unwrap_or(DEFAULT_RUNS) as usize;
        let (mut failed, mut last_failure) = (0, None);
        let mut longest = Duration::ZERO;
        let mut pair = first;
        let mut decision = pairs.decision();
        while decision == Decision::Open && pairs.len() < most {
            if self.args.time.is_some_and(|time| begun.elapsed() + longest > time) && !pairs.is_empty() {
                break;
            }
            let (at, runs_before) = (Instant::now(), recording.runs.len());
            match self.take_pair(recording, pair) {
                Ok(()) => {}
                Err(Failure::Message(message)) => {
                    recording.runs.truncate(runs_before);
                    say(&format!("pair {pair} does not count: {message}"));
                    (failed, last_failure) = (failed + 1, Some(message));
                    if failed > MAX_FAILED || pairs.is_empty() && failed > 1 {
                        break;
                    }
                    pair += 1;
                    continue;
                }
                Err(e) => {
                    recording.runs.truncate(runs_before);
                    return Err(e);
                }
            }
            longest = longest.max(at.elapsed());
            if let Some((base, new)) = totals(recording, pair) {
                pairs.push(base, new);
            }
            decision = pairs.decision();
            self.write(recording, &facts)?;
            let left = most.saturating_sub(pairs.len()) as f64 * at.elapsed().as_secs_f64();
            say(&format!("{}; at most {left:.0} s left", estimate(&pairs)));
            pair += 1;
        }
        for note in machine::notes(&recording.machine, &facts, &recording.runs) {
            say(&format!("note: {note}"));
        }
        match last_failure {
            Some(message) if pairs.is_empty() => return Err(Failure::Message(message)),
            _ => {}
        }
        say(&verdict(&pairs, decision, recording.effect));
        recording.machine = facts.clone();
        self.write(recording, &facts)
    }

    /// A run of each side; every second pair in the other order, so that what drifts is on no one's side.
    fn take_pair(&self, recording: &mut Recording, pair: u64) -> Result<()> {
        let is_turned = (pair + recording.seed).is_multiple_of(2);
        for side in if is_turned { [1, 0] } else { [0, 1] } {
            let dir = self.dir.join(format!("{}-{pair}", SIDES[side]));
            let (mut run, _) = self.run_once(recording, side, &dir)?;
            run.pair = pair;
            recording.runs.push(run);
        }
        Ok(())
    }

    fn build(&self, build: &str, side: usize) -> Result<()> {
        if build.is_empty() {
            return Ok(());
        }
        let output = self.dir.join(format!("{}-build.txt", SIDES[side]));
        let shell = if cfg!(windows) { ["cmd", "/C"] } else { ["sh", "-c"] };
        let command = [shell[0], shell[1], build].map(str::to_owned);
        let job = Job { command: &command, dir: &self.checkouts[side].dir, variables: Vec::new(), output: &output };
        let status = process::run(&job, self.work)?;
        if status.success() {
            return Ok(());
        }
        let (line, file) = (process::last_line(&output), output.display());
        Err(Failure::Message(format!(
            "the build of the {} side failed ({status}): {line}; all of it is in {file}",
            SIDES[side]
        )))
    }

    /// Runs the command once; the run with its profiles, and what it wrote.
    fn run_once(&self, recording: &Recording, side: usize, dir: &Path) -> Result<(RecordedRun, String)> {
        let wrong = |e: std::io::Error| Failure::Message(format!("{}: {e}", dir.display()));
        // Of a pair that was cut short before.
        let _ = std::fs::remove_dir_all(dir);
        std::fs::create_dir_all(dir).map_err(wrong)?;
        let binary = self.dir.join(format!("{}.bin", SIDES[side]));
        let operations = recording.fixed_operations;
        let plan = Plan { command: &recording.command, dir, binary: &binary, operations };
        let (command, output) = ((self.adapter.command)(&plan), dir.join("output.txt"));
        let variables = vec![
            ("PPROFDIFF_PROFILE", dir.join("profile").display().to_string()),
            ("PPROFDIFF_SIDE", SIDES[side].to_owned()),
        ];
        let job = Job { command: &command, dir: &self.checkouts[side].dir, variables, output: &output };
        let (begun, machine) = (Instant::now(), machine::now());
        let began = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let status = process::run(&job, self.work)?;
        let seconds = (begun.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
        let name = SIDES[side];
        if !status.success() {
            let line = process::last_line(&output);
            return Err(Failure::Message(format!(
                "{} failed on the {name} side ({status}): {line}",
                self.adapter.name
            )));
        }
        let text = String::from_utf8_lossy(&std::fs::read(&output).map_err(wrong)?).into_owned();
        let taken = (self.adapter.taken)(&plan, &text)?;
        let total = self.total(&taken.profiles)? / taken.operations.unwrap_or(1.0);
        let below = |file: &PathBuf| file.strip_prefix(self.dir).unwrap_or(file).display().to_string();
        let mut run = RecordedRun::default();
        run.side = name.to_owned();
        run.commit = self.checkouts[side].commit.clone();
        run.profiles = taken.profiles.iter().map(below).collect();
        (run.total, run.operations) = (total, taken.operations);
        (run.began, run.seconds, run.machine) = (began, seconds, machine);
        Ok((run, text))
    }

    /// The total of what is compared.
    fn total(&self, profiles: &[PathBuf]) -> Result<f64> {
        let Some(file) = profiles.first() else { return Err(Failure::Message("no profile was written".to_owned())) };
        let profile: Arc<Profile> =
            Source::Path(file.clone()).load(&self.inputs.options).map_err(|e| Failure::Message(error_line(&e)))?;
        let query = self.args.query.request(Ask::default()).query;
        let total = Diff::of_profile(&profile)?.measure(&query)?.summary().total.new;
        if total <= 0 {
            return Err(Failure::Message(format!("{}: nothing was measured; let it run longer", file.display())));
        }
        Ok(total as f64)
    }

    fn write(&self, recording: &Recording, facts: &[(String, String)]) -> Result<()> {
        let mut recording = recording.clone();
        recording.machine = facts.to_vec();
        let text = recording.to_toml();
        Ok(pprofdiff::output::write_file(self.dir.join(RUNS_FILE), |out| out.write_all(text.as_bytes()))?)
    }
}

fn percent(part: f64) -> String {
    format!("{:+.1} %", 100.0 * part)
}

/// What is known by now.
fn estimate(pairs: &Pairs) -> String {
    let runs = pairs.len();
    let mean = pairs.change().map_or_else(String::new, |change| format!(", {}", percent(change)));
    let interval = pairs.interval(MISSES);
    let range = interval.map_or_else(String::new, |(low, high)| format!(" ({} to {})", percent(low), percent(high)));
    format!("{runs} + {runs} runs{mean}{range}")
}

fn verdict(pairs: &Pairs, decision: Decision, effect: f64) -> String {
    let (runs, change) = (pairs.len(), pairs.change().map_or_else(String::new, percent));
    let between = |alpha: f64| {
        pairs.interval(alpha).map_or_else(String::new, |(low, high)| format!(", {} to {}", percent(low), percent(high)))
    };
    match decision {
        Decision::Change => format!("a change of the total: {change}{} ({runs} + {runs} runs)", between(ALARMS)),
        Decision::NoLargerChange => {
            let largest = 100.0 * effect;
            format!(
                "no change of the total larger than {largest:.1} %: {change}{} ({runs} + {runs} runs)",
                between(MISSES)
            )
        }
        Decision::Open => format!("undecided: {change}{} ({runs} + {runs} runs)", between(MISSES)),
    }
}
