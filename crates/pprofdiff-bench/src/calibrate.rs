//! `--calibrate`: measures equal sides, so that users know before their first benchmark what chance alone moves on this
//! machine, how many runs find a change, and whether counting is possible.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pprofdiff::Cancellation;
use pprofdiff::advice::word;
use pprofdiff::recording::Recording;
use pprofdiff::sequential::{MAX_RUNS_TO_FIND, Pairs};
use pprofdiff_shell::{Failure, Result, say};

use super::measure::Bench;
use super::process::{CommandJob, OutputKind, Runner, lines};
use super::sides::Checkout;
use super::{BenchOptions, counts, folder};

/// The default number of runs per side.
pub const DEFAULT_CALIBRATION_RUNS: u64 = 10;
/// The changes whose numbers of runs are stated.
const CHANGES: [f64; 3] = [0.02, 0.05, 0.1];
/// The largest advised number of timed runs per side.
const MAX_ADVISED_RUNS: usize = 40;
/// The longest counted run, and the largest difference between equal counted runs, that make counting the advice.
const MAX_COUNTED_SECONDS: f64 = 120.0;
const MAX_COUNTED_DIFFERENCE: f64 = 0.005;

/// The maximum number of counted pairs, and the time after which no further pair is counted. One pair does not show how
/// much others differ: pairs of equal builds in Go differed by 0.3 % and by 4.9 %.
const COUNTED_PAIRS: usize = 5;
const MAX_COUNTING_TIME: Duration = Duration::from_secs(60);

/// Counted pairs of equal sides.
struct Counted {
    counter: String,
    seconds: f64,
    pairs: usize,
    /// The largest change of the total or of a function in a pair, as a part of the total.
    difference: f64,
}

/// Measures equal sides in the folder that the options name. Returns the lines of the report, and the folder of runs.
///
/// # Errors
/// Fails for options that name two sides, and if no pair of runs can be measured.
pub fn calibrate(options: &BenchOptions, work: &Cancellation) -> Result<(Vec<String>, PathBuf)> {
    let BenchOptions { range, new_dir, base_cmd, new_cmd, more, .. } = options;
    if [range, base_cmd, new_cmd].iter().any(|text| text.is_some()) || new_dir.is_some() || more.is_some() {
        let message = "--calibrate compares the current folder with itself; give only the command";
        return Err(Failure::Message(message.to_owned()));
    }
    if options.counts {
        let message = "--calibrate tries counting by itself; omit --counts";
        return Err(Failure::Message(message.to_owned()));
    }
    if options.command.is_empty() {
        return Err(Failure::Message("no command is given; put it after --".to_owned()));
    }
    let dir = match &options.into {
        Some(into) => folder::begin(into)?,
        None => folder::begin_default(Path::new(""))?,
    };
    let mut recording = recording(options);
    let runner = Runner::new(work, options.max_time);
    let checkouts = [Checkout::from_dir(Path::new("."))?, Checkout::from_dir(Path::new("."))?];
    let mut bench = Bench::new(runner, options, &dir, &checkouts, &recording)?;
    // A command that writes no profile can't be timed by function, but it may be possible to count it.
    let timed = match bench.take(&mut recording, &|_| false) {
        Ok(pairs) if pairs.len() < 3 => {
            Err(format!("{} pairs of runs show no noise; at least 3 are needed", pairs.len()))
        }
        Ok(pairs) => Ok(pairs),
        Err(Failure::Message(message)) => Err(message),
        Err(e) => return Err(e),
    };
    let seconds = recording.runs.iter().map(|run| run.seconds).sum::<f64>() / recording.runs.len().max(1) as f64;
    say("counting the same command");
    let counted = count(options, work, &dir);
    if work.is_stopped() {
        return Err(Failure::Interrupted);
    }
    if let (Err(reason), Err(_)) = (&timed, &counted) {
        return Err(Failure::Message(reason.clone()));
    }
    let mut lines = match &timed {
        Ok(pairs) => timing_lines(pairs, seconds),
        Err(reason) => vec![format!("Timing: not possible: {reason}")],
    };
    lines.extend(counting_lines(counted.as_ref(), seconds));
    lines.extend(hardware_line(work));
    lines.extend(advice(options, timed.as_ref().ok(), counted.as_ref().ok()));
    Ok((lines, dir))
}

fn recording(options: &BenchOptions) -> Recording {
    let mut recording = Recording::new(&options.command);
    let here = std::fs::canonicalize(".").unwrap_or_default().display().to_string();
    recording.dirs = vec![here.clone(), here];
    recording.build = options.build.clone().unwrap_or_default();
    (recording.seed, recording.effect) = (options.seed, options.effect.unwrap_or(super::DEFAULT_EFFECT));
    recording
}

/// Counts pairs of equal sides. The error is the reason why counting is not possible.
fn count(options: &BenchOptions, work: &Cancellation, dir: &Path) -> std::result::Result<Counted, String> {
    let text = |e: Failure| match e {
        Failure::Message(message) => message,
        _ => "interrupted".to_owned(),
    };
    let mut recording = recording(options);
    recording.build.clear();
    let commands = [recording.command_of(0), recording.command_of(1)];
    recording.counter = counts::counter(commands).map_err(text)?.to_owned();
    recording.effect = counts::DEFAULT_COUNTED_EFFECT;
    let options = BenchOptions { runs: COUNTED_PAIRS, all_runs: true, ..options.clone() };
    let runner = Runner::new(work, options.max_time);
    let dir = folder::create(dir, "counts").map_err(text)?;
    let here = || Checkout::from_dir(Path::new(".")).map_err(text);
    let checkouts = [here()?, here()?];
    let mut bench = Bench::new(runner, &options, &dir, &checkouts, &recording).map_err(text)?;
    let begun = Instant::now();
    let is_enough = |pairs: &Pairs| !pairs.is_empty() && begun.elapsed() > MAX_COUNTING_TIME;
    let pairs = bench.take(&mut recording, &is_enough).map_err(text)?;
    let seconds = recording.runs.iter().map(|run| run.seconds).sum::<f64>() / recording.runs.len().max(1) as f64;
    // The changes of pairs of equal runs vary around 0, so their range bounds most of them.
    let difference = pairs.spread().max(pairs.largest_change());
    Ok(Counted { counter: recording.counter, seconds, pairs: pairs.len(), difference })
}

/// Formats a part with two significant digits.
fn percent(part: f64) -> String {
    match 100.0 * part {
        p if p >= 9.95 => format!("{p:.0} %"),
        p if p >= 0.095 => format!("{p:.1} %"),
        p if p <= 0.0 => "0 %".to_owned(),
        p if p < 0.0001 => "less than 0.0001 %".to_owned(),
        p => format!("{p:.4} %"),
    }
}

fn duration(seconds: f64) -> String {
    if seconds >= 10.0 { format!("{seconds:.0} s") } else { format!("{seconds:.2} s") }
}

fn runs(runs: Option<usize>) -> String {
    match runs {
        Some(runs) => format!("{runs} runs"),
        None => format!("more than {MAX_RUNS_TO_FIND} runs"),
    }
}

/// The table of timing: what chance moves, and the number of runs that find a change.
fn timing_lines(pairs: &Pairs, seconds: f64) -> Vec<String> {
    let noise = pairs.noise();
    // 95 % of differences between two runs are within this.
    let chance = |deviation: f64| percent(1.96 * deviation);
    let mut lines = vec![
        format!("Timing: {} pairs of equal runs of {} each", pairs.len(), duration(seconds)),
        format!(
            "  chance alone moves one run against another by up to {} of the total (19 of 20 pairs),",
            chance(noise.total)
        ),
        match noise.tenth {
            Some(tenth) => format!("  and a function with a tenth of the total by up to {} of its cost", chance(tenth)),
            None => "  and no function is large enough to tell how functions vary".to_owned(),
        },
        "  runs per side that find a change nine times in ten:".to_owned(),
        format!("    {:<8} {:<22} {}", "change", "of the total", "of a function with a tenth of it"),
    ];
    for change in CHANGES {
        let of_total = runs(pairs.runs_to_find(change));
        let of_tenth = noise.tenth.map_or_else(|| "unknown".to_owned(), |_| runs(pairs.runs_to_find_in_tenth(change)));
        lines.push(format!("    {:<8} {of_total:<22} {of_tenth}", percent(change).replace(".0", "")));
    }
    lines
}

fn counting_lines(counted: std::result::Result<&Counted, &String>, seconds: f64) -> Vec<String> {
    match counted {
        Ok(Counted { counter, seconds: counted, pairs, difference }) => {
            let slower = match seconds {
                0.0 => String::new(),
                seconds => format!(" ({:.0} times as long)", counted / seconds.max(1e-3)),
            };
            let unit = if counter == counts::CPROFILE { "calls" } else { "instructions" };
            vec![
                format!("Counting {unit} with {counter}: possible; a run takes {}{slower}", duration(*counted)),
                match pairs {
                    1 => format!(
                        "  two equal runs differ by {} of the total; other pairs may differ more, and counting them takes too long",
                        percent(*difference)
                    ),
                    n => format!("  {n} pairs of equal runs differ by up to {} of the total", percent(*difference)),
                },
            ]
        }
        Err(reason) => vec![format!("Counting: not possible: {reason}")],
    }
}

/// Tells whether the processor counts instructions for perf. Most virtual machines hide these counters. `None` without perf.
fn hardware_line(work: &Cancellation) -> Option<String> {
    let runner = Runner::new(work, Some(Duration::from_secs(10)));
    let output = tempfile::NamedTempFile::new().ok()?;
    let command = ["perf", "stat", "-x,", "-e", "instructions:u", "true"].map(str::to_owned);
    let (output, kind, dir) = (output.path(), OutputKind::Log, Path::new("."));
    let job = CommandJob { command: &command, dir, variables: &[], output, kind, patience: None };
    let is_ok = runner.run(&job).ok()?.status.success();
    let has_counter = is_ok && lines(output).any(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let state = if has_counter {
        "the processor counts instructions for perf"
    } else {
        "not available here, as in most virtual machines"
    };
    Some(format!("Hardware counters: {state}"))
}

/// Returns the recommended command line for CI.
fn advice(options: &BenchOptions, pairs: Option<&Pairs>, counted: Option<&Counted>) -> Vec<String> {
    let command = shell_words::join(&options.command);
    let build = options.build.as_ref().map_or_else(String::new, |build| format!(" --build {}", word(build)));
    let bench = |arguments: &str| format!("  pprofdiff bench origin/main...HEAD{build} {arguments} -- {command}");
    let is_good =
        |counted: &&Counted| counted.seconds <= MAX_COUNTED_SECONDS && counted.difference <= MAX_COUNTED_DIFFERENCE;
    if let Some(counted) = counted.filter(is_good) {
        // Three runs per side see differences between equal runs; without such differences, one is enough.
        let is_repeated = counted.difference > counts::DEFAULT_COUNTED_EFFECT || counted.pairs < 2;
        let runs = if is_repeated { "--counts --runs 5" } else { "--counts" };
        return vec!["For CI:".to_owned(), bench(&format!("{runs} --fail-on 'total>+1%'"))];
    }
    let found = CHANGES.iter().filter_map(|&change| Some((change, pairs?.runs_to_find(change)?)));
    let found = found.filter(|(_, runs)| *runs <= MAX_ADVISED_RUNS).min_by_key(|(change, _)| (change * 1e6) as u64);
    match found {
        Some((change, runs)) => {
            let percent = 100.0 * change;
            let runs = runs.max(super::DEFAULT_RUNS as usize);
            vec![
                "For CI:".to_owned(),
                bench(&format!("--runs {runs} --effect {percent}% --fail-on 'total>+{percent}%'")),
            ]
        }
        None => vec![format!(
            "For CI: this machine is too noisy: {MAX_ADVISED_RUNS} runs per side do not find a change of 10 %. Use a quieter \
             machine, or let the benchmark run longer"
        )],
    }
}
