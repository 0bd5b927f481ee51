//! `--bisect`: which of several commits did it. Those that reach a cause are the ones to ask, or all if there is none; each
//! question is a bench of the base against a commit between, and halves what remains, so that as few as possible are
//! built.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pprofdiff::Work;
use pprofdiff::recording::Recording;
use pprofdiff::sequential::{FrameChange, MISSES, Pairs};

use super::process::Runner;
use super::taking::{Bench, Limits};
use super::{folder, sides};
use crate::args::{BenchArgs, QueryArgs};
use crate::git::{CommitRange, git};
use crate::input::Inputs;
use crate::{Result, say};

/// How each commit is measured: as the sides were.
pub struct Plan {
    runs: usize,
    time: Option<Duration>,
    query: QueryArgs<false>,
}

impl Plan {
    pub fn new(args: &BenchArgs) -> Plan {
        let runs = args.runs.unwrap_or(super::DEFAULT_RUNS) as usize;
        Plan { runs, time: args.max_time, query: args.query.clone() }
    }

    /// Says which commit did it, or between which ones that is not known.
    pub fn run(
        &self,
        work: &Work,
        inputs: &Inputs,
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
        let mut left = if reaching.is_empty() { all } else { reaching };
        if let [only] = left.as_slice() {
            say(&format!("bisect: {} is the only commit that reaches a cause", name(only)));
            return Ok(());
        }
        // What is asked of each: whether more than half of the change is there already.
        let frame = (!pairs.has_total_changed()).then(|| pairs.changed_frames().into_iter().next()).flatten();
        let Some(change) = frame.as_ref().map(|frame| frame.of_total).or(pairs.change()) else { return Ok(()) };
        while left.len() > 1 {
            let middle = (left.len() - 1) / 2;
            let commit = left[middle];
            say(&format!("bisect: {} commits are left; measuring {}", left.len(), name(commit)));
            match self.is_there(work, inputs, dir, recording, [&base, commit], (frame.as_ref(), change))? {
                Some(true) => left.truncate(middle + 1),
                Some(false) => left = left.split_off(middle + 1),
                None => {
                    let names: Vec<String> = left.iter().map(|commit| name(commit)).collect();
                    say(&format!("bisect: undecided at {}; one of these did it: {}", name(commit), names.join(", ")));
                    return Ok(());
                }
            }
        }
        say(&format!("bisect: {} did it", left.first().map(|commit| name(commit)).unwrap_or_default()));
        Ok(())
    }

    /// Whether a commit has the change already; `None` if that can't be said.
    fn is_there(
        &self,
        work: &Work,
        inputs: &Inputs,
        dir: &Path,
        recording: &Recording,
        [base, commit]: [&str; 2],
        (frame, change): (Option<&FrameChange>, f64),
    ) -> Result<Option<bool>> {
        let dir = folder::create(dir, &format!("bisect-{}", commit.get(..12).unwrap_or(commit)))?;
        let mut asked = Recording::new(&recording.command);
        asked.new_command.clone_from(&recording.new_command);
        asked.range = format!("{base}..{commit}");
        asked.build.clone_from(&recording.build);
        (asked.seed, asked.effect) = (recording.seed, recording.effect);
        let runner = Runner::new(work, self.time);
        let checkouts = sides::checkouts(&runner, &asked.range, &[] as &[PathBuf])?;
        let answer = |pairs: &Pairs| {
            let (low, high) = pairs.interval_of(frame, MISSES)?;
            let (low, high) = if change > 0.0 { (low / change, high / change) } else { (high / change, low / change) };
            if low > 0.5 {
                return Some(true);
            }
            (high < 0.5).then_some(false)
        };
        let limits = Limits { runs: self.runs, time: self.time };
        let mut bench = Bench::new(runner, limits, inputs, &self.query, &dir, &checkouts, &asked)?;
        let pairs = bench.take(&mut asked, &|pairs| answer(pairs).is_some())?;
        Ok(answer(&pairs))
    }
}

/// A commit as people read it.
fn name(commit: &str) -> String {
    let line = git(Path::new("."), ["log", "-1", "--format=%h %s", "--end-of-options", commit]).unwrap_or_default();
    if line.trim().is_empty() { commit.to_owned() } else { line.trim().to_owned() }
}
