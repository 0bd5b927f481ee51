//! What bench takes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::gates::{BaselineArgs, ExplainArgs, GitArgs, percentage};
use super::jobs::duration;
use super::sides::Sides;
use super::table::{LoadArgs, QueryArgs};
use super::views::OutputArgs;

#[derive(Args)]
#[command(after_help = BENCH_HELP)]
pub struct BenchArgs {
    /// BASE..NEW, BASE...NEW (from the merge base), or BASE against the working tree
    #[arg(value_name = "BASE..NEW", conflicts_with_all = ["base_dir", "new_dir", "more"])]
    pub range: Option<String>,
    /// The base's folder, without git
    #[arg(long, value_name = "DIR", requires = "new_dir", conflicts_with = "more", hide_short_help = true)]
    pub base_dir: Option<PathBuf>,
    /// The new side's folder
    #[arg(long, value_name = "DIR", requires = "base_dir", hide_short_help = true)]
    pub new_dir: Option<PathBuf>,
    /// What the base runs, in place of CMD: words with quotes; NAME=value before them sets a variable
    #[arg(long, value_name = "CMD", conflicts_with = "more", hide_short_help = true)]
    pub base_cmd: Option<String>,
    /// What the new side runs, in place of CMD
    #[arg(long, value_name = "CMD", conflicts_with = "more", hide_short_help = true)]
    pub new_cmd: Option<String>,
    /// Run this in a shell on each side first
    #[arg(long, value_name = "CMD")]
    pub build: Option<String>,
    /// End when a change larger than this is ruled out [default: 2%]
    #[arg(long, value_name = "PERCENT", value_parser = percentage)]
    pub effect: Option<f64>,
    /// The most runs of a side [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=1000))]
    pub runs: Option<u64>,
    /// Stop after this time, even during a checkout, a build or a run (5m)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub max_time: Option<Duration>,
    /// Which side begins, and how they take turns
    #[arg(long, value_name = "N", default_value_t = 1, hide_short_help = true)]
    pub seed: u64,
    /// The folder that profiles and runs.toml go to
    #[arg(
        long,
        value_name = "RUNS",
        default_value = "pprofdiff-runs",
        conflicts_with = "more",
        hide_short_help = true
    )]
    pub into: PathBuf,
    /// Go on with the runs of this folder
    #[arg(long, value_name = "RUNS")]
    pub more: Option<PathBuf>,
    /// Run the commands in the --more folder without asking
    #[arg(long, requires = "more", hide_short_help = true)]
    pub yes: bool,
    /// Measure commits between, to find the one that made a change
    #[arg(long)]
    pub bisect: bool,
    /// End as check does: a limit such as 'total>+5%'
    #[arg(long, value_name = "RULE")]
    pub fail_on: Vec<String>,
    /// The same with the limits of this file
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub config: Option<PathBuf>,
    /// The same against a branch's last profiles in this folder, as check --baseline
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub baseline: Option<PathBuf>,
    /// Store the new side's profiles there, unless they exceed a limit
    #[arg(long, requires = "baseline", hide_short_help = true)]
    pub store: bool,
    /// The branch that is compared with, and under which profiles are stored
    #[arg(long, value_name = "NAME", default_value = "main", requires = "baseline", hide_short_help = true)]
    pub branch: String,
    /// Write to this file as well: a page (.html), the findings (.md), a diff (.pb.gz)
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub report: Vec<PathBuf>,
    #[command(flatten)]
    pub query: QueryArgs<false>,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub load: LoadArgs,
    /// The benchmark: go test -bench, node, py-spy, perf, or any with {profile} in it
    #[arg(last = true, value_name = "CMD", num_args = 1..)]
    pub command: Vec<OsString>,
}

impl BenchArgs {
    /// What check is to know of the store.
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
    /// What bench explains: a folder of runs.
    pub fn of(input: Sides, git: GitArgs, args: &BenchArgs) -> ExplainArgs {
        ExplainArgs {
            input,
            ops: None,
            ops_from: Vec::new(),
            git,
            min_effect: 0.002,
            noise: Vec::new(),
            with: Vec::new(),
            config: args.config.clone(),
            budget: None,
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
  pprofdiff bench HEAD --build 'npm ci' -- node bench.js         HEAD against what is not committed
  pprofdiff bench v1.4..v1.5 --build make -- perf record -g ./app input
  pprofdiff bench main..branch -- ./run --cpuprofile {profile}   or the file of $PPROFDIFF_PROFILE
  pprofdiff bench --base-dir old --new-dir new --effect 1% --max-time 10m -- py-spy record -- python3 app.py
  pprofdiff bench --base-cmd './app -old {profile}' --new-cmd 'GOGC=50 ./app {profile}'   two commands, here
  pprofdiff bench main..branch --fail-on 'total>+5%' --bisect -o report.html -- node bench.js
  pprofdiff bench --more pprofdiff-runs --runs 40                go on
  pprofdiff explain pprofdiff-runs                               say it again

Runs are taken in turns until a change of the total or of a function is certain, or one larger than --effect is ruled out.
Ctrl-C ends with what is measured. Exit codes: 0 done, 2 usage or input error, 130 if too little was measured before
Ctrl-C; with limits those of check.";
