//! `--bisect`: finds the commit that made the change. The candidates are the first-parent commits of the range that
//! reach a cause directly, or all first-parent commits if none does. Each step benchmarks the base against the middle
//! candidate and drops half of the candidates, so few commits are built.

use std::path::{Path, PathBuf};

use pprofdiff::Cancellation;
use pprofdiff::recording::Recording;
use pprofdiff::sequential::{FrameChange, MISSES, Pairs};
use pprofdiff_shell::git::{CommitRange, git};
use pprofdiff_shell::{Result, say};

use super::measure::Bench;
use super::process::Runner;
use super::{folder, sides};
use crate::BenchOptions;

impl BenchOptions {
    /// Reports the commit that made the change, or the candidates that remain if a step is inconclusive. Measures each
    /// commit with the settings of the original benchmark.
    ///
    /// # Errors
    /// Fails if a commit cannot be measured.
    pub fn bisect(
        &self,
        work: &Cancellation,
        dir: &Path,
        recording: &Recording,
        pairs: &Pairs,
        candidates: &[String],
    ) -> Result<()> {
        if !recording.range.contains("..") {
            say("--bisect: there are no commits between a commit and the working tree");
            return Ok(());
        }
        let range = CommitRange::resolve(Path::new("."), &recording.range)?;
        let (base, tip) = (range.base, range.tip.unwrap_or_default());
        let between = format!("{base}..{tip}");
        let listed = git(Path::new("."), ["rev-list", "--reverse", "--first-parent", "--end-of-options", &between])?;
        let all: Vec<&str> = listed.lines().collect();
        let reaching: Vec<&str> = all.iter().copied().filter(|commit| candidates.iter().any(|c| c == commit)).collect();
        let (mut candidates_left, reason) =
            if reaching.is_empty() { (all, "in the range") } else { (reaching, "that reaches a cause") };
        match candidates_left.as_slice() {
            [] => {
                say(&format!("bisect: {between} has no commits"));
                return Ok(());
            }
            [only] => {
                say(&format!("bisect: {} is the only commit {reason}", name(only)));
                return Ok(());
            }
            _ => {}
        }
        // Each step tests whether the commit already has more than half of the change of the total, or of the function
        // that changed most if the total is undecided.
        let frame = (!pairs.has_total_changed()).then(|| pairs.changed_frames().into_iter().next()).flatten();
        let Some(change) = frame.as_ref().map(|frame| frame.of_total).or(pairs.change()) else { return Ok(()) };
        while candidates_left.len() > 1 {
            let middle = (candidates_left.len() - 1) / 2;
            let commit = candidates_left[middle];
            say(&format!("bisect: {} commits are left; measuring {}", candidates_left.len(), name(commit)));
            match self.has_change(work, dir, recording, [&base, commit], (frame.as_ref(), change))? {
                Some(true) => candidates_left.truncate(middle + 1),
                Some(false) => candidates_left = candidates_left.split_off(middle + 1),
                None => {
                    let names: Vec<String> = candidates_left.iter().map(|commit| name(commit)).collect();
                    say(&format!(
                        "bisect: undecided at {}; one of these commits made the change: {}",
                        name(commit),
                        names.join(", ")
                    ));
                    return Ok(());
                }
            }
        }
        say(&format!(
            "bisect: {} made the change",
            candidates_left.first().map(|commit| name(commit)).unwrap_or_default()
        ));
        Ok(())
    }

    /// Returns whether a commit already has more than half of the change, or `None` if the measurement is inconclusive.
    fn has_change(
        &self,
        work: &Cancellation,
        dir: &Path,
        recording: &Recording,
        [base, commit]: [&str; 2],
        (frame, change): (Option<&FrameChange>, f64),
    ) -> Result<Option<bool>> {
        let dir = folder::create(dir, &format!("bisect-{}", commit.get(..12).unwrap_or(commit)))?;
        let mut step = Recording::new(&recording.command);
        step.new_command.clone_from(&recording.new_command);
        step.range = format!("{base}..{commit}");
        step.build.clone_from(&recording.build);
        (step.seed, step.effect, step.layouts) = (recording.seed, recording.effect, recording.layouts);
        step.counter.clone_from(&recording.counter);
        let runner = Runner::new(work, self.max_time);
        let checkouts = sides::checkouts(&runner, &step.range, &[] as &[PathBuf])?;
        let answer = |pairs: &Pairs| {
            let (low, high) = pairs.interval_of(frame, MISSES)?;
            let (low, high) = if change > 0.0 { (low / change, high / change) } else { (high / change, low / change) };
            if low > 0.5 {
                return Some(true);
            }
            (high < 0.5).then_some(false)
        };
        let mut bench = Bench::new(runner, self, &dir, &checkouts, &step)?;
        let pairs = bench.take(&mut step, &|pairs| answer(pairs).is_some())?;
        Ok(answer(&pairs))
    }
}

/// Returns a readable name of a commit: its short id and subject.
fn name(commit: &str) -> String {
    let line = git(Path::new("."), ["log", "-1", "--format=%h %s", "--end-of-options", commit]).unwrap_or_default();
    if line.trim().is_empty() { commit.to_owned() } else { line.trim().to_owned() }
}
