//! What bench takes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::gates::percentage;
use super::jobs::duration;
use super::table::{LoadArgs, QueryArgs};
use super::views::OutputArgs;

#[derive(Args)]
#[command(after_help = BENCH_HELP)]
pub struct BenchArgs {
    /// The commits to compare, BASE..NEW; BASE alone is compared with the working tree
    #[arg(value_name = "BASE..NEW", conflicts_with_all = ["base_dir", "new_dir", "more"])]
    pub range: Option<String>,
    /// The base's folder, without git
    #[arg(long, value_name = "DIR", requires = "new_dir", conflicts_with = "more")]
    pub base_dir: Option<PathBuf>,
    /// The new side's folder
    #[arg(long, value_name = "DIR", requires = "base_dir", hide_short_help = true)]
    pub new_dir: Option<PathBuf>,
    /// Run this in a shell on each side first
    #[arg(long, value_name = "CMD")]
    pub build: Option<String>,
    /// The change that matters: no more runs are taken once a larger one is ruled out
    #[arg(long, value_name = "PERCENT", value_parser = percentage)]
    pub effect: Option<f64>,
    /// The most runs of a side [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=1000))]
    pub runs: Option<u64>,
    /// Begin no pair of runs after so long (5m)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub time: Option<Duration>,
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
    #[command(flatten)]
    pub query: QueryArgs<false>,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub load: LoadArgs,
    /// The benchmark: go test -bench, node, py-spy record, perf record, or any command with {profile} in it
    #[arg(last = true, value_name = "CMD", num_args = 1..)]
    pub command: Vec<OsString>,
}

const BENCH_HELP: &str = "\
Examples:
  pprofdiff bench main..branch -- go test -bench Parse ./parser
  pprofdiff bench HEAD --build 'npm ci' -- node bench.js         HEAD against what is not committed
  pprofdiff bench v1.4..v1.5 --build make -- perf record -g ./app input
  pprofdiff bench main..branch -- ./run --cpuprofile {profile}   or the file of $PPROFDIFF_PROFILE
  pprofdiff bench --base-dir old --new-dir new --effect 1% --time 10m -- python3 -m py_spy record -- python3 app.py
  pprofdiff bench --more pprofdiff-runs --runs 40                go on
  pprofdiff explain pprofdiff-runs                               say it again

Runs are taken in turns until a change of the total is certain, or one larger than --effect is ruled out. Ctrl-C ends with
what is measured. Exit codes: 0 done, 2 usage or input error, 130 if too little was measured before Ctrl-C.";
