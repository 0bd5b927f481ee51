//! The runs themselves, in turns, and when there are enough.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pprofdiff::recording::{RUNS_FILE, RecordedRun, Recording, SIDES};
use pprofdiff::sequential::{Pairs, RunCost};
use pprofdiff::{Diff, Profile, Sort, Source, Work};
use pprofdiff_report::View;

use super::adapters::{self, Adapter, Plan};
use super::process::{Ended, Job, OutputKind, Runner};
use super::sides::Checkout;
use super::telling::telling_line;
use super::{folder, kept, machine, words};
use crate::args::QueryArgs;
use crate::input::Inputs;
use crate::{Failure, Result, error_line, say};

/// So many pairs may fail; more is no accident.
const MAX_FAILED: usize = 3;

/// When to end if nothing is decided.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Pairs of runs.
    pub runs: usize,
    /// The maximum time. When it is over, the current build or run is stopped.
    pub time: Option<Duration>,
}

/// A side: where it is, and what is run there.
struct Side<'a> {
    checkout: &'a Checkout,
    /// Variables before the command's first word.
    variables: Vec<(String, String)>,
    words: Vec<String>,
    adapter: &'static Adapter,
    /// The files that its profiles name: sources, and binaries.
    named: [Vec<String>; 2],
}

pub struct Bench<'a> {
    work: &'a Work,
    runner: Runner<'a>,
    limits: Limits,
    inputs: &'a Inputs,
    query: &'a QueryArgs<false>,
    dir: &'a Path,
    build: String,
    seed: u64,
    sides: [Side<'a>; 2],
}

impl<'a> Bench<'a> {
    pub fn new(
        runner: Runner<'a>,
        limits: Limits,
        inputs: &'a Inputs,
        query: &'a QueryArgs<false>,
        dir: &'a Path,
        checkouts: &'a [Checkout; 2],
        recording: &Recording,
    ) -> Result<Bench<'a>> {
        let side = |i: usize| {
            let (variables, words) = adapters::split_variables(recording.command_of(i));
            if words.is_empty() {
                return Err(Failure::Message("no command is given, only variables".to_owned()));
            }
            let adapter = adapters::find(&words);
            Ok(Side { checkout: &checkouts[i], variables, words, adapter, named: Default::default() })
        };
        let (build, seed) = (recording.build.clone(), recording.seed);
        let sides = [side(0)?, side(1)?];
        Ok(Bench { work: runner.work, runner, limits, inputs, query, dir, build, seed, sides })
    }

    /// Takes runs until `is_enough`, or there are as many as the limits allow, or the work is stopped: what is measured by
    /// then counts.
    pub fn take(&mut self, recording: &mut Recording, is_enough: &dyn Fn(&Pairs) -> bool) -> Result<Pairs> {
        let mut pairs = Pairs::new(recording.effect);
        match self.take_all(recording, &mut pairs, is_enough) {
            Err(Failure::Interrupted) if self.work.is_stopped() => say("interrupted"),
            other => other?,
        }
        Ok(pairs)
    }

    fn take_all(
        &mut self,
        recording: &mut Recording,
        pairs: &mut Pairs,
        is_enough: &dyn Fn(&Pairs) -> bool,
    ) -> Result<()> {
        let limits = self.limits;
        // `runs.toml` marks the folder as ours.
        self.write(recording)?;
        for side in 0..2 {
            self.build_side(side)?;
        }
        let earlier = std::mem::replace(&mut recording.machine, machine::facts());
        recording.versions = self.versions()?;
        let first = self.read_earlier(recording, pairs)?;
        if recording.runs.is_empty() {
            self.warm_up(recording)?;
        }
        let (mut failed, mut last_failure, mut longest) = (0, None, Duration::ZERO);
        let mut pair = first;
        let mut is_planned_end = true;
        while !is_enough(pairs) && pairs.len() < limits.runs {
            let is_short = limits.time.is_some_and(|time| self.runner.elapsed() + longest > time);
            if is_short && !pairs.is_empty() {
                break;
            }
            let (at, runs_before) = (Instant::now(), recording.runs.len());
            match self.take_pair(recording, pair) {
                Ok([base, new]) => pairs.push(&base, &new),
                Err(Failure::Message(message)) => {
                    recording.runs.truncate(runs_before);
                    say(&format!("pair {pair} does not count: {message}"));
                    (failed, last_failure) = (failed + 1, Some(message));
                    if self.runner.is_over() {
                        break;
                    }
                    if failed > MAX_FAILED || pairs.is_empty() && failed > 1 {
                        is_planned_end = false;
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
            machine::mark_disturbed(&mut recording.runs);
            self.write(recording)?;
            say(&words::estimate(pairs, &limits, self.runner.elapsed(), longest));
            pair += 1;
        }
        match last_failure {
            Some(message) if pairs.is_empty() => return Err(Failure::Message(message)),
            _ => {}
        }
        if is_planned_end && !is_enough(pairs) {
            pairs.look_last();
            recording.last_look = pairs.last_look();
        }
        for note in machine::notes(&earlier, recording) {
            say(&format!("note: {note}"));
        }
        self.write(recording)
    }

    /// Adds the pairs that were measured before; the number of the next one.
    fn read_earlier(&mut self, recording: &Recording, pairs: &mut Pairs) -> Result<u64> {
        let next = recording.runs.iter().map(|run| run.pair).max().unwrap_or(0) + 1;
        for pair in 1..next {
            let mut costs = Vec::new();
            for (side, name) in SIDES.iter().enumerate() {
                let Some(run) = recording.runs.iter().find(|run| run.pair == pair && run.side == *name) else {
                    continue;
                };
                let profiles: Vec<PathBuf> = run.profiles.iter().map(|profile| self.dir.join(profile)).collect();
                costs.push(self.cost(side, &profiles, run.operations)?);
            }
            if let [base, new] = costs.as_slice() {
                pairs.push(base, new);
            }
        }
        pairs.looked_last_after(recording.last_look);
        Ok(next)
    }

    /// The first run of each side finds files that no cache has, and how much can be done in a run.
    fn warm_up(&mut self, recording: &mut Recording) -> Result<()> {
        for (side, name) in SIDES.iter().enumerate() {
            let dir = folder::create(self.dir, &format!("{name}-first"))?;
            let ended = self.run_once(recording.fixed_operations, side, &dir)?.2;
            let fixed = (self.sides[side].adapter.fixed)(&self.sides[side].words, &ended);
            recording.fixed_operations = recording.fixed_operations.or(fixed);
            // It is safe to remove: `folder::create` made it for this run.
            let _ = std::fs::remove_dir_all(&dir);
        }
        Ok(())
    }

    /// A run of each side; every second pair in the other order, so that what drifts is on no one's side.
    fn take_pair(&mut self, recording: &mut Recording, pair: u64) -> Result<[RunCost; 2]> {
        let is_turned = (pair + self.seed).is_multiple_of(2);
        let mut costs = [RunCost::default(), RunCost::default()];
        for side in if is_turned { [1, 0] } else { [0, 1] } {
            let dir = folder::create(self.dir, &format!("{}-{pair}", SIDES[side]))?;
            let (mut run, cost, _) = self.run_once(recording.fixed_operations, side, &dir)?;
            run.pair = pair;
            recording.runs.push(run);
            costs[side] = cost;
        }
        Ok(costs)
    }

    fn build_side(&self, side: usize) -> Result<()> {
        if self.build.is_empty() {
            return Ok(());
        }
        let output = folder::create_file(self.dir, &format!("{}-build", SIDES[side]), ".txt")?;
        let shell = if cfg!(windows) { ["cmd", "/C"] } else { ["sh", "-c"] };
        let command = [shell[0], shell[1], &self.build].map(str::to_owned);
        let dir = &self.sides[side].checkout.dir;
        let kind = OutputKind::Log;
        let job = Job { command: &command, dir, variables: &[], output: &output, kind, patience: None };
        let ended = self.runner.run(&job).map_err(|e| match e {
            Failure::Message(message) => Failure::Message(format!("the build of the {} side: {message}", SIDES[side])),
            other => other,
        })?;
        let status = ended.status;
        if status.success() {
            return Ok(());
        }
        let (line, file) = (telling_line(&output), output.display());
        Err(Failure::Message(format!(
            "the build of the {} side failed ({status}): {line}; all of it is in {file}",
            SIDES[side]
        )))
    }

    /// Runs the command of a side once in a new folder. Returns the run, its cost, and its exit.
    fn run_once(&mut self, operations: Option<u64>, side: usize, dir: &Path) -> Result<(RecordedRun, RunCost, Ended)> {
        let wrong = |e: std::io::Error| Failure::Message(format!("{}: {e}", dir.display()));
        let name = SIDES[side];
        let binary = Recording::binaries(self.dir)[side].join("bench.bin");
        std::fs::create_dir_all(binary.parent().unwrap_or(dir)).map_err(wrong)?;
        let this = &self.sides[side];
        let plan = Plan { command: &this.words, dir, binary: &binary, operations };
        let (command, output) = ((this.adapter.command)(&plan), dir.join("output.txt"));
        let mut variables = this.variables.clone();
        variables.push(("PPROFDIFF_PROFILE".to_owned(), dir.join("profile").display().to_string()));
        variables.push(("PPROFDIFF_SIDE".to_owned(), name.to_owned()));
        let (run_dir, kind) = (&this.checkout.dir, OutputKind::Log);
        let job = Job { command: &command, dir: run_dir, variables: &variables, output: &output, kind, patience: None };
        let began = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let watch = machine::Watch::begin();
        let ended = self.runner.run(&job).map_err(|e| match e {
            Failure::Message(message) => Failure::Message(format!("the {name} side: {message}")),
            other => other,
        })?;
        let (status, seconds) = (ended.status, (ended.elapsed.as_secs_f64() * 1000.0).round() / 1000.0);
        let machine = watch.end();
        if !status.success() {
            let line = telling_line(&output);
            let advice = (this.adapter.advice)(&line).map_or_else(String::new, |advice| format!(" ({advice})"));
            let (of, file) = (this.adapter.name, output.display());
            return Err(Failure::Message(format!(
                "{of} failed on the {name} side ({status}): {line}{advice}; all of it is in {file}"
            )));
        }
        let taken = (this.adapter.taken)(&plan, &ended, &self.runner)?;
        let commit = this.checkout.commit.clone();
        let cost = self.cost(side, &taken.profiles, taken.operations)?;
        let below = |file: &PathBuf| file.strip_prefix(self.dir).unwrap_or(file).display().to_string();
        let mut run = RecordedRun::default();
        (run.side, run.commit) = (name.to_owned(), commit);
        run.profiles = taken.profiles.iter().map(below).collect();
        (run.total, run.operations) = (cost.total, taken.operations);
        (run.began, run.seconds, run.machine) = (began, seconds, machine);
        Ok((run, cost, ended))
    }

    /// What a run cost by operation, of the first of its profiles; remembers the files that this names.
    fn cost(&mut self, side: usize, profiles: &[PathBuf], operations: Option<f64>) -> Result<RunCost> {
        let Some(file) = profiles.first() else { return Err(Failure::Message("no profile was written".to_owned())) };
        let profile: Arc<Profile> =
            Source::Path(file.clone()).load(&self.inputs.options).map_err(|e| Failure::Message(error_line(&e)))?;
        let files = profile.functions().file.iter().map(|&id| profile.text(id)).collect();
        for (known, more) in self.sides[side].named.iter_mut().zip([files, profile.mapping_files()]) {
            known.extend(more);
            known.sort();
            known.dedup();
        }
        let top = Diff::of_profile(&profile)?.measure(&self.query.request(View::default()).query)?.top(Sort::Flat);
        let total = top.summary.total.new;
        if total <= 0 {
            return Err(Failure::Message(format!("{}: nothing was measured; let it run longer", file.display())));
        }
        let by_operation = |value: i64| value as f64 / operations.unwrap_or(1.0);
        let mut cost = RunCost::of_total(by_operation(total));
        for row in &top.rows {
            cost.frames.insert(top.frames.name(row.frame), [row.flat.new, row.cum.new].map(by_operation));
        }
        Ok(cost)
    }

    /// What both sides run on.
    fn versions(&self) -> Result<Vec<(String, String, String)>> {
        let [base, new] = [0, 1].map(|side| {
            let Side { checkout, variables, words, .. } = &self.sides[side];
            machine::versions(&checkout.dir, variables, words, &self.build, &self.runner)
        });
        Ok(machine::beside(base?, new?))
    }

    /// Keeps sources and binaries of both sides, so that they can be listed when the worktrees are gone.
    pub fn keep(&self) {
        for (i, side) in self.sides.iter().enumerate() {
            if let Err(e) = kept::keep(self.dir, i, side.checkout, &side.named) {
                say(&format!("the {} side's sources are not kept: {e}", SIDES[i]));
            }
        }
    }

    fn write(&self, recording: &Recording) -> Result<()> {
        let text = recording.to_toml();
        Ok(pprofdiff::output::write_file(self.dir.join(RUNS_FILE), |out| out.write_all(text.as_bytes()))?)
    }
}
