//! Measures the runs in alternation and decides when there are enough.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pprofdiff::recording::{RUNS_FILE, RecordedRun, Recording, SIDES};
use pprofdiff::sequential::{Pairs, RunCost};
use pprofdiff::{Cancellation, Diff, Profile, Query, Sort, Source};
use pprofdiff_shell::{Failure, Result, error_line, say};

use super::adapters::{self, Adapter, RunPlan};
use super::counts::{self, Counting};
use super::failure_line::telling_line;
use super::layouts::{self, FunctionOrder, Layouts, SetAside};
use super::process::{CommandJob, Ended, OutputKind, Runner};
use super::sides::Checkout;
use super::{folder, machine, messages, saved_inputs};
use crate::BenchOptions;

/// The maximum number of failed pairs. One more failed pair ends the measurement. Without a completed pair, the second
/// failed pair ends it.
const MAX_FAILED: usize = 3;

/// The limits that end a benchmark without a decision.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The maximum number of pairs of runs, including earlier pairs that `--more` continues.
    pub runs: usize,
    /// The maximum time. When it is over, the current build or run is stopped. After the first pair, no pair starts if
    /// the remaining time is shorter than the longest pair so far.
    pub time: Option<Duration>,
}

/// A side: its checkout, its command and the files that its profiles name.
struct BenchSide<'a> {
    checkout: &'a Checkout,
    /// Variables that the command line sets before the command.
    variables: Vec<(String, String)>,
    words: Vec<String>,
    adapter: &'static Adapter,
    /// How the command is counted, instead of timed.
    counting: Option<Counting>,
    /// The sources and the binaries that its profiles name.
    named: [Vec<String>; 2],
}

/// The measurement of two sides.
pub struct Bench<'a> {
    work: &'a Cancellation,
    runner: Runner<'a>,
    options: &'a BenchOptions,
    dir: &'a Path,
    build: String,
    seed: u64,
    /// The question that selects the total and the frames to compare.
    query: Query,
    sides: [BenchSide<'a>; 2],
    /// The layouts, if each pair is linked anew.
    layouts: Option<Layouts>,
    /// The number of samples of each run, if the profiles tell it.
    samples: Vec<f64>,
}

/// Returns the numbers of the recorded pairs. The user may have edited the file, so the numbers may have any gaps.
fn pair_numbers(runs: &[RecordedRun]) -> BTreeSet<u64> {
    runs.iter().map(|run| run.pair).filter(|&pair| pair > 0).collect()
}

impl<'a> Bench<'a> {
    pub fn new(
        runner: Runner<'a>,
        options: &'a BenchOptions,
        dir: &'a Path,
        checkouts: &'a [Checkout; 2],
        recording: &Recording,
    ) -> Result<Bench<'a>> {
        let side = |i: usize| {
            let (variables, words) = adapters::split_variables(recording.command_of(i));
            if words.is_empty() {
                return Err(Failure::Message("no command is given, only variables".to_owned()));
            }
            let is_counted = !recording.counter.is_empty();
            let counting = is_counted.then(|| counts::find(&words)).transpose()?;
            let adapter = counting.as_ref().map_or_else(|| adapters::find(&words), |counting| counting.adapter);
            Ok(BenchSide { checkout: &checkouts[i], variables, words, adapter, counting, named: Default::default() })
        };
        counts::check_installed(&recording.counter, &checkouts[0], &runner)?;
        let (build, seed) = (recording.build.clone(), recording.seed);
        let sides = [side(0)?, side(1)?];
        let query = counts::query(&recording.counter, &options.query);
        let mut layouts = if recording.layouts { Some(Layouts::new(recording)?) } else { None };
        if let Some(layouts) = &mut layouts {
            layouts.is_shared = checkouts[0].dir == checkouts[1].dir;
        }
        Ok(Bench { work: runner.work, runner, options, dir, build, seed, query, sides, layouts, samples: Vec::new() })
    }

    /// Measures pairs until `is_enough` returns true, a limit is reached, too many pairs fail, or the work is stopped.
    /// Returns all pairs measured so far, including earlier pairs that `--more` continues.
    ///
    /// # Errors
    /// Fails if a build or a first run fails, or if pairs failed and none was completed.
    pub fn take(&mut self, recording: &mut Recording, is_enough: &dyn Fn(&Pairs) -> bool) -> Result<Pairs> {
        let is_counted = !recording.counter.is_empty();
        let mut pairs = if is_counted { Pairs::of_counts(recording.effect) } else { Pairs::new(recording.effect) };
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
        let runs = self.options.layouts.unwrap_or(self.options.runs);
        let limits = Limits { runs, time: self.options.max_time };
        // Marks the folder as a folder of `bench`.
        self.write(recording)?;
        for side in 0..2 {
            match self.layouts {
                Some(_) => self.check_layouts(recording, side)?,
                None => self.build_side(side)?,
            }
        }
        let earlier = std::mem::replace(&mut recording.machine, machine::facts());
        recording.versions = self.versions()?;
        let first = self.read_earlier(recording, pairs)?;
        let is_counted = !recording.counter.is_empty();
        // Counts need no warm files, but the number of operations of a benchmark.
        if recording.runs.is_empty() && (!is_counted || self.sides[0].adapter.name == "go test -bench") {
            self.warm_up(recording)?;
        }
        let (mut failed, mut last_failure, mut longest) = (0, None, Duration::ZERO);
        let mut pair = first;
        let mut is_planned_end = true;
        while !is_enough(pairs) && pairs.len() < self.max_runs(is_counted, pairs, recording.effect) {
            let is_short = limits.time.is_some_and(|time| self.runner.elapsed() + longest > time);
            if is_short && !pairs.is_empty() {
                break;
            }
            let (started, runs_before) = (Instant::now(), recording.runs.len());
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
            longest = longest.max(started.elapsed());
            machine::mark_disturbed(&mut recording.runs);
            self.write(recording)?;
            if is_counted {
                let is_last = pairs.len() >= self.max_runs(is_counted, pairs, recording.effect);
                say(&counts::estimate(pairs, !is_last));
            } else {
                say(&messages::estimate(pairs, &limits, self.runner.elapsed(), longest));
            }
            pair += 1;
        }
        match last_failure {
            Some(message) if pairs.is_empty() => return Err(Failure::Message(message)),
            _ => {}
        }
        if is_planned_end && !is_counted && !is_enough(pairs) {
            pairs.look_last();
            recording.last_look = pairs.last_look();
        }
        // The load of the machine changes no count.
        for note in machine::notes(&earlier, recording).iter().filter(|_| !is_counted) {
            say(&format!("note: {note}"));
        }
        self.write(recording)
    }

    /// Returns the maximum number of pairs. For counts, it depends on the pairs so far, unless the user set it.
    fn max_runs(&self, is_counted: bool, pairs: &Pairs, effect: f64) -> usize {
        let BenchOptions { runs, all_runs, layouts, .. } = *self.options;
        if is_counted { counts::max_runs(runs, all_runs, pairs, effect) } else { layouts.unwrap_or(runs) }
    }

    /// Adds the pairs of earlier runs. Returns the number of the next pair.
    fn read_earlier(&mut self, recording: &Recording, pairs: &mut Pairs) -> Result<u64> {
        let numbers = pair_numbers(&recording.runs);
        let next = numbers.last().map_or(1, |last| last.saturating_add(1));
        for pair in numbers {
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

    /// Runs each side once without measuring. This fills the file cache and determines how many operations fit into a
    /// run.
    fn warm_up(&mut self, recording: &mut Recording) -> Result<()> {
        for (side, name) in SIDES.iter().enumerate() {
            let dir = folder::create(self.dir, &format!("{name}-first"))?;
            let ended = self.run_once(recording.fixed_operations, side, &dir)?.2;
            let fixed = (self.sides[side].adapter.fixed)(&self.sides[side].words, &ended);
            recording.fixed_operations = recording.fixed_operations.or(fixed);
            // Removing it is safe, because `folder::create` created it for this run.
            let _ = std::fs::remove_dir_all(&dir);
        }
        Ok(())
    }

    /// Runs each side once. Every second pair runs in reverse order, so that drift over time affects both sides
    /// equally.
    fn take_pair(&mut self, recording: &mut Recording, pair: u64) -> Result<[RunCost; 2]> {
        let is_turned = pair.wrapping_add(self.seed).is_multiple_of(2);
        let mut costs = [RunCost::default(), RunCost::default()];
        let order = if is_turned { [1, 0] } else { [0, 1] };
        for side in order {
            self.link(recording, pair, side)?;
            let dir = folder::create(self.dir, &format!("{}-{pair}", SIDES[side]))?;
            let (mut run, cost, _) = self.run_once(recording.fixed_operations, side, &dir)?;
            run.pair = pair;
            if self.layouts.is_some() {
                run.layout = Some(layouts::seed(recording, pair, side));
            }
            recording.runs.push(run);
            costs[side] = cost;
        }
        if self.layouts.is_some() && layouts::is_repeated(pair) {
            for side in [order[1], order[0]] {
                self.link(recording, pair, side)?;
                let dir = folder::create(self.dir, &format!("{}-{pair}-again", SIDES[side]))?;
                let cost = self.run_once(recording.fixed_operations, side, &dir)?.1;
                let run = recording.runs.iter_mut().rev().find(|run| run.side == SIDES[side]);
                run.into_iter().for_each(|run| run.repeated = Some(cost.total));
            }
        }
        Ok(costs)
    }

    /// Links a side for a pair, if the benchmark has layouts.
    fn link(&mut self, recording: &Recording, pair: u64, side: usize) -> Result<()> {
        let Some(layouts) = &mut self.layouts else { return Ok(()) };
        if !layouts.set(side, layouts::seed(recording, pair, side)) || !layouts.is_built(side) {
            return Ok(());
        }
        let BenchSide { checkout, words, .. } = &self.sides[side];
        let _aside = SetAside::new(words, &checkout.dir, &checkout.root)?;
        self.build_side(side)
    }

    /// Links a side with two orders of functions, and refuses a build that ignores the order.
    fn check_layouts(&mut self, recording: &Recording, side: usize) -> Result<()> {
        let BenchSide { checkout, variables, words, .. } = &self.sides[side];
        let go = machine::versions(&checkout.dir, variables, words, &self.build, &self.runner)?;
        go.iter().find(|(name, _)| name == "go").map_or(Ok(()), |(_, version)| Layouts::check_go(version))?;
        if !self.layouts.as_ref().is_some_and(|layouts| layouts.is_built(side)) {
            // `go test` links by itself, from sources that the build may generate.
            self.link(recording, 1, side)?;
            return self.build_side(side);
        }
        let mut orders = [Vec::new(), Vec::new()];
        for (pair, order) in orders.iter_mut().enumerate() {
            self.link(recording, pair as u64, side)?;
            let BenchSide { checkout, words, .. } = &self.sides[side];
            let programs = layouts::programs(words, &checkout.dir, &checkout.root);
            *order = programs.iter().map(|program| FunctionOrder::of(program)).collect::<Result<_>>()?;
        }
        layouts::check_order(side, &orders)
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
        let variables = self.layouts.as_ref().map_or_else(Vec::new, |layouts| layouts.variables(side));
        let job = CommandJob { command: &command, dir, variables: &variables, output: &output, kind, patience: None };
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
            "the build of the {} side failed ({status}): {line}; the full output is in {file}",
            SIDES[side]
        )))
    }

    /// Runs the command of a side once, in the side's checkout. Profiles and output go to `dir`, a new folder. Returns
    /// the run, its cost, and the ended command.
    fn run_once(&mut self, operations: Option<u64>, side: usize, dir: &Path) -> Result<(RecordedRun, RunCost, Ended)> {
        let wrong = |e: std::io::Error| Failure::Message(format!("{}: {e}", dir.display()));
        let name = SIDES[side];
        let mut binary = Recording::binaries(self.dir)[side].join("bench.bin");
        std::fs::create_dir_all(binary.parent().unwrap_or(dir)).map_err(wrong)?;
        let side_state = &self.sides[side];
        let mut words = side_state.words.clone();
        if let Some(layouts) = &self.layouts {
            (binary, words) = (layouts.binary(side, &binary), layouts.command(side, &words));
        }
        let plan = RunPlan { command: &words, dir, binary: &binary, operations };
        let (command, output) = ((side_state.adapter.command)(&plan), dir.join("output.txt"));
        let mut variables = side_state.variables.clone();
        if let Some(counting) = &side_state.counting {
            variables.extend((counting.variables)(dir));
        }
        variables.push(("PPROFDIFF_PROFILE".to_owned(), dir.join("profile").display().to_string()));
        variables.push(("PPROFDIFF_SIDE".to_owned(), name.to_owned()));
        let (run_dir, kind) = (&side_state.checkout.dir, OutputKind::Log);
        let job = CommandJob {
            command: &command,
            dir: run_dir,
            variables: &variables,
            output: &output,
            kind,
            patience: None,
        };
        let began = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let watch = machine::Watch::begin();
        let ended = self.runner.run(&job).map_err(|e| match e {
            Failure::Message(message) => {
                let missing = self.missing_program(side).map_or_else(String::new, |missing| format!("; {missing}"));
                Failure::Message(format!("the {name} side: {message}{missing}"))
            }
            other => other,
        })?;
        let (status, seconds) = (ended.status, (ended.elapsed.as_secs_f64() * 1000.0).round() / 1000.0);
        let machine = watch.end();
        if !status.success() {
            let line = telling_line(&output);
            let advice = (side_state.adapter.advice)(&line).map(str::to_owned).or_else(|| self.missing_program(side));
            let advice = advice.map_or_else(String::new, |advice| format!(" ({advice})"));
            let (adapter_name, file) = (side_state.adapter.name, output.display());
            return Err(Failure::Message(format!(
                "{adapter_name} failed on the {name} side ({status}): {line}{advice}; the full output is in {file}"
            )));
        }
        let taken = (side_state.adapter.taken)(&plan, &ended, &self.runner)?;
        let commit = side_state.checkout.commit.clone();
        let cost = self.cost(side, &taken.profiles, taken.operations)?;
        let relative = |file: &PathBuf| file.strip_prefix(self.dir).unwrap_or(file).display().to_string();
        let mut run = RecordedRun::default();
        (run.side, run.commit) = (name.to_owned(), commit);
        run.profiles = taken.profiles.iter().map(relative).collect();
        (run.total, run.operations) = (cost.total, taken.operations);
        (run.began, run.seconds, run.machine) = (began, seconds, machine);
        Ok((run, cost, ended))
    }

    /// Returns the cost per operation in the first profile of a run, and records the files that this profile names.
    fn cost(&mut self, side: usize, profiles: &[PathBuf], operations: Option<f64>) -> Result<RunCost> {
        let Some(file) = profiles.first() else { return Err(Failure::Message("no profile was written".to_owned())) };
        let profile: Arc<Profile> =
            Source::Path(file.clone()).load(&self.options.load).map_err(|e| Failure::Message(error_line(&e)))?;
        let files = profile.functions().file.iter().map(|&id| profile.text(id)).collect();
        for (named, more) in self.sides[side].named.iter_mut().zip([files, profile.mapping_files()]) {
            named.extend(more);
            named.sort();
            named.dedup();
        }
        let diff = Diff::of_profile(&profile)?;
        let measure = diff.measure(&self.query)?;
        let top = measure.top(Sort::Flat);
        self.samples.extend(measure.sampling()[1].samples);
        let total = top.summary.total.new;
        if total <= 0 {
            return Err(Failure::Message(format!(
                "{}: nothing was measured; let the benchmark run longer",
                file.display()
            )));
        }
        let by_operation = |value: i64| value as f64 / operations.unwrap_or(1.0);
        let mut cost = RunCost::of_total(by_operation(total));
        for row in &top.rows {
            cost.frames.insert(top.frames.name(row.frame), [row.flat.new, row.cum.new].map(by_operation));
        }
        Ok(cost)
    }

    /// Returns the advice to let the command run longer, if its runs have too few samples for the effect.
    pub fn too_short(&self, effect: f64) -> Option<String> {
        let mean = self.samples.iter().sum::<f64>() / self.samples.len() as f64;
        let samples = Some(mean).filter(|_| !self.samples.is_empty());
        messages::too_short(
            samples,
            effect,
            self.options.layouts.unwrap_or(self.options.runs),
            self.sides[0].adapter.name,
        )
    }

    /// Returns why a side's program is missing, if it is a file of the checkout that does not exist there.
    fn missing_program(&self, side: usize) -> Option<String> {
        let BenchSide { checkout, words, .. } = &self.sides[side];
        // Profilers have the program among their own arguments.
        let is_wrapped = ["perf", "py-spy"].contains(&adapters::program(words));
        let may_be_program = |(i, word): &(usize, &String)| {
            word.contains('/') && !word.starts_with(['/', '-']) && (*i == 0 || is_wrapped && word.starts_with("./"))
        };
        let program = words.iter().enumerate().find(may_be_program).map(|(_, word)| word)?;
        if checkout.dir.join(program).exists() {
            return None;
        }
        let name = SIDES[side];
        Some(match self.build.as_str() {
            "" if checkout.commit.is_empty() => {
                format!("{program} does not exist in the {name} folder; add --build 'COMMAND' to build it")
            }
            "" => format!(
                "{program} does not exist in the checkout of the {name} side, which has only committed files; add --build \
                 'COMMAND', such as --build make"
            ),
            build => format!("{program} does not exist on the {name} side after the build ({build})"),
        })
    }

    /// Returns the versions of compilers and runtimes on both sides.
    fn versions(&self) -> Result<Vec<(String, String, String)>> {
        let [base, new] = [0, 1].map(|side| {
            let BenchSide { checkout, variables, words, .. } = &self.sides[side];
            machine::versions(&checkout.dir, variables, words, &self.build, &self.runner)
        });
        Ok(machine::beside(base?, new?))
    }

    /// Saves the sources and binaries of both sides, so that listings still work after the worktrees are removed.
    pub fn keep(&self) {
        for (i, side) in self.sides.iter().enumerate() {
            // The checkout only has the binary with the last layout.
            let binaries = if self.layouts.is_some() { Vec::new() } else { side.named[1].clone() };
            if let Err(e) = saved_inputs::keep(self.dir, i, side.checkout, &[side.named[0].clone(), binaries]) {
                say(&format!("can't save the {} side's sources: {e}", SIDES[i]));
            }
        }
    }

    fn write(&self, recording: &Recording) -> Result<()> {
        let text = recording.to_toml();
        Ok(pprofdiff::output::write_file(self.dir.join(RUNS_FILE), |out| out.write_all(text.as_bytes()))?)
    }
}

#[cfg(test)]
mod tests {
    use super::{RecordedRun, pair_numbers};

    #[test]
    fn reading_earlier_pairs_takes_one_step_per_recorded_pair() {
        let run = |pair| {
            let mut run = RecordedRun::default();
            run.pair = pair;
            run
        };
        let runs = [2, 1, 0, 2, u64::MAX].map(run);
        assert_eq!(Vec::from_iter(pair_numbers(&runs)), [1, 2, u64::MAX]);
    }
}
