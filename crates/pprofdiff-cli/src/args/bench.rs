//! The arguments of `bench`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::gates::{BaselineArgs, ExplainArgs, GitArgs, percentage};
use super::jobs::duration;
use super::sides::SideArgs;
use super::table::{LoadArgs, QueryArgs};
use super::views::OutputArgs;

#[derive(Args)]
#[command(after_help = BENCH_HELP)]
pub struct BenchArgs {
    /// BASE..NEW, BASE...NEW (from the merge base), or BASE against the working tree
    #[arg(value_name = "BASE..NEW", conflicts_with_all = ["base_dir", "new_dir", "more"])]
    pub range: Option<String>,
    /// Directory of the base, instead of a commit
    #[arg(long, value_name = "DIR", requires = "new_dir", conflicts_with = "more", hide_short_help = true)]
    pub base_dir: Option<PathBuf>,
    /// Directory of the new side
    #[arg(long, value_name = "DIR", requires = "base_dir", hide_short_help = true)]
    pub new_dir: Option<PathBuf>,
    /// Command for the base instead of CMD, as one quoted string; NAME=value before it sets a variable
    #[arg(long, value_name = "CMD", conflicts_with = "more", hide_short_help = true)]
    pub base_cmd: Option<String>,
    /// Command for the new side instead of CMD
    #[arg(long, value_name = "CMD", conflicts_with = "more", hide_short_help = true)]
    pub new_cmd: Option<String>,
    /// Shell command to run on each side before the runs
    #[arg(long, value_name = "CMD")]
    pub build: Option<String>,
    /// Stop once any change larger than this is ruled out [default: 2%]
    #[arg(long, value_name = "PERCENT", value_parser = percentage)]
    pub effect: Option<f64>,
    /// Maximum number of runs per side [default: 20; of counts 1 or 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub runs: Option<u64>,
    /// Count instructions (of Python: calls) instead of timing
    #[arg(long)]
    pub counts: bool,
    /// Measure this machine by equal runs, and advise a command for CI
    #[arg(long, conflicts_with_all = ["range", "new_dir", "base_cmd", "new_cmd", "effect", "more", "counts", "bisect", "fail_on", "config", "baseline", "report"], hide_short_help = true)]
    pub calibrate: bool,
    /// Link each pair of runs anew, in another order, up to N times
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(5..=1000), conflicts_with_all = ["runs", "counts", "calibrate"])]
    pub layouts: Option<u64>,
    /// Stop after this time, even during a checkout, a build or a run (5m)
    #[arg(long, value_name = "TIME", value_parser = duration, hide_short_help = true)]
    pub max_time: Option<Duration>,
    /// Seed for the order of the two sides
    #[arg(long, value_name = "N", default_value_t = 1, hide_short_help = true)]
    pub seed: u64,
    /// Directory for the profiles and runs.toml. Defaults to pprofdiff-runs, or pprofdiff-runs-2 if that has runs
    #[arg(long, value_name = "RUNS", conflicts_with = "more", hide_short_help = true)]
    pub into: Option<PathBuf>,
    /// Continue the runs in this directory
    #[arg(long, value_name = "RUNS", hide_short_help = true)]
    pub more: Option<PathBuf>,
    /// Run the commands in the --more directory without asking
    #[arg(long, requires = "more", hide_short_help = true)]
    pub yes: bool,
    /// Measure commits in between, to find the commit that made the change
    #[arg(long)]
    pub bisect: bool,
    /// Exit like `check`: fail if a limit such as 'total>+5%' is exceeded
    #[arg(long, value_name = "RULE")]
    pub fail_on: Vec<String>,
    /// Exit like `check`, with the limits in this file
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub config: Option<PathBuf>,
    /// Exit like `check --baseline`: compare with a branch's last profiles in this directory
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub baseline: Option<PathBuf>,
    /// Store the new side's profiles in the baseline, unless they exceed a limit
    #[arg(long, requires = "baseline", hide_short_help = true)]
    pub store: bool,
    /// Branch to compare with, and to store profiles under
    #[arg(long, value_name = "NAME", default_value = "main", requires = "baseline", hide_short_help = true)]
    pub branch: String,
    /// Also write this file: a page (.html), the findings (.md) or a diff (.pb.gz)
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub report: Vec<PathBuf>,
    #[command(flatten)]
    pub query: QueryArgs<false>,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub load: LoadArgs,
    /// The benchmark: go test -bench, node, py-spy, perf, or any command with {profile}
    #[arg(last = true, value_name = "CMD", num_args = 1..)]
    pub command: Vec<OsString>,
}

impl BenchArgs {
    /// Returns the baseline arguments of `check` that correspond to the arguments of `bench`.
    pub fn baseline(&self, commit: Option<String>) -> BaselineArgs {
        BaselineArgs {
            dir: self.baseline.clone(),
            branch: self.branch.clone(),
            label: Vec::new(),
            store: self.store,
            accept: false,
            commit,
            commit_time: None,
            keep: 20,
        }
    }
}

impl ExplainArgs {
    /// Returns the arguments for explaining a directory of runs.
    pub fn for_runs(input: SideArgs, git: GitArgs, args: &BenchArgs) -> ExplainArgs {
        ExplainArgs {
            input,
            ops: None,
            ops_from: Vec::new(),
            git,
            min_effect: None,
            noise: Vec::new(),
            with: Vec::new(),
            config: args.config.clone(),
            exit_code: false,
            undecided_total: false,
            query: args.query.clone(),
            output: args.output.clone(),
            load: args.load.clone(),
        }
    }
}

const BENCH_HELP: &str = "\
Examples:
  pprofdiff bench main..branch -- go test -bench Parse ./parser
  pprofdiff bench HEAD --build 'npm ci' -- node bench.js         HEAD against uncommitted changes
  pprofdiff bench v1.4..v1.5 --build make -- perf record -g ./app input
  pprofdiff bench main..branch -- ./run --cpuprofile {profile}   or write the file $PPROFDIFF_PROFILE
  pprofdiff bench --base-dir old --new-dir new --effect 1% --max-time 10m -- py-spy record -- python3 app.py
  pprofdiff bench --base-cmd './app -old {profile}' --new-cmd 'GOGC=50 ./app {profile}'   two commands
  pprofdiff bench main..branch --fail-on 'total>+5%' --bisect -o report.html -- node bench.js
  pprofdiff bench main..branch --layouts 20 --build make -- perf record ./app   is it the code or its layout?
  pprofdiff bench --more pprofdiff-runs --runs 40                continue these runs
  pprofdiff explain pprofdiff-runs                               explain them again

The sides run in turns until a change of the total or of a function is certain, or one larger than --effect is ruled
out. Ctrl-C stops and reports the runs so far. Exit codes: 0 done, 2 usage or input error, 130 if Ctrl-C came before the
first pair of runs; with limits those of `check`.";
