//! `pprofdiff bench`: runs two sides in alternation until the result is clear, then explains the difference. The crate
//! pprofdiff-bench runs them. After the runs, `explain` or `check` reads the folder like any other input.

mod end;

use std::path::PathBuf;

use pprofdiff::Cancellation;
use pprofdiff::sequential::Decision;
use pprofdiff_bench::{BenchOptions, CPROFILE, DEFAULT_CALIBRATION_RUNS, DEFAULT_COUNTED_RUNS, DEFAULT_RUNS};
use pprofdiff_report::View;
use pprofdiff_shell::terminal::{AtInterrupt, stop_at_interrupt};
use pprofdiff_shell::{Failure, Outputs, Result, say, write_to};

use crate::args::BenchArgs;
use crate::input::Inputs;

/// Measures runs until the result is clear, a limit is reached or `work` is stopped. Then explains or checks the runs,
/// and with `--bisect` looks for the commit that made a change. Returns the exit code.
pub fn run(mut args: BenchArgs, work: &Cancellation) -> Result<u8> {
    end::check_args(&args)?;
    if args.calibrate {
        check_calibration(&args)?;
    }
    let outputs = Outputs::new(args.report.iter().map(PathBuf::as_path).chain(args.output.path()));
    let inputs = Inputs::new(&args.load, outputs)?;
    let mut options = options(&args, inputs);
    if args.calibrate {
        let runs = args.runs.unwrap_or(DEFAULT_CALIBRATION_RUNS) as usize;
        let (lines, dir) = pprofdiff_bench::calibrate(&BenchOptions { runs, ..options }, work)?;
        write_to(args.output.path(), |out| lines.iter().try_for_each(|line| writeln!(out, "{line}")))?;
        say(&format!("the runs are in {}", dir.display()));
        return Ok(0);
    }
    let (dir, mut recording) = pprofdiff_bench::open(&options, work)?;
    if recording.counter.is_empty() && args.runs == Some(1) {
        return Err(Failure::Message("--runs must be at least 2: one timed run shows nothing".to_owned()));
    }
    if args.runs.is_none() && !recording.counter.is_empty() {
        options.runs = DEFAULT_COUNTED_RUNS as usize; // with --more, only the folder says that it is counted
    }
    let pairs = pprofdiff_bench::measure(&options, work, &dir, &mut recording)?;
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
    let is_bisected = args.bisect;
    if recording.counter == CPROFILE {
        args.query.set_default_sample_type("calls");
    }
    let (code, candidates) = end::answer(args, &dir, &recording, pairs.has_total_changed())?;
    say(&format!("the runs are in {}; continue with: pprofdiff bench --more {}", dir.display(), dir.display()));
    match is_bisected {
        true if has_changed && !is_interrupted => {
            options.bisect(work, &dir, &recording, &pairs, &candidates)?;
        }
        true if has_changed => say("--bisect: interrupted before the search for the commit"),
        true => say("--bisect: no change is certain, so there is no commit to look for"),
        false => {}
    }
    Ok(code)
}

/// Rejects output formats for a calibration, which writes lines of text. Clap rejects the other options without effect.
fn check_calibration(args: &BenchArgs) -> Result<()> {
    let format = args.output.format()?;
    match format.name {
        "text" => Ok(()),
        name => {
            Err(Failure::Message(format!("--calibrate writes text, not {name}; omit --format, and end -o in .txt")))
        }
    }
}

/// Returns the options of the runner that the arguments set.
fn options(args: &BenchArgs, inputs: Inputs) -> BenchOptions {
    BenchOptions {
        range: args.range.clone(),
        base_dir: args.base_dir.clone(),
        new_dir: args.new_dir.clone(),
        command: args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        base_cmd: args.base_cmd.clone(),
        new_cmd: args.new_cmd.clone(),
        build: args.build.clone(),
        effect: args.effect,
        runs: args.runs.unwrap_or(if args.counts { DEFAULT_COUNTED_RUNS } else { DEFAULT_RUNS }) as usize,
        counts: args.counts,
        all_runs: args.runs.is_some(),
        layouts: args.layouts.map(|layouts| layouts as usize),
        max_time: args.max_time,
        seed: args.seed,
        into: args.into.clone(),
        more: args.more.clone(),
        yes: args.yes,
        query: args.query.request(View::default()).query,
        load: inputs.options,
    }
}
