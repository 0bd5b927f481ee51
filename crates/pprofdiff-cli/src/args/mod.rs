//! The command line: verbs, and what each takes. The options of the engine's tables are in `table`, what verbs of two
//! sides or of rows share in `sides`, the options of views in `views`, of bench in `bench`, of checks and explanations in `gates`, of other verbs in `jobs`; `help` makes short help fit a screen.

mod bench;
mod gates;
mod help;
mod jobs;
mod sides;
#[cfg(feature = "store")]
mod store;
mod table;
mod views;

use std::path::PathBuf;

use clap::{Command, CommandFactory, Parser, Subcommand};
use pprofdiff_report::ViewSpec;

pub use bench::BenchArgs;
pub use gates::{BaselineArgs, CheckArgs, ExplainArgs, GitArgs};
pub use help::{Later, formats};
pub use jobs::{
    BatchArgs, CONVERTED, ConvertArgs, DeltaArgs, McpArgs, MergeArgs, Schedule, SeriesArgs, SeriesOrder, SeriesRows,
    ServeArgs,
};
pub use sides::Sides;
#[cfg(feature = "store")]
pub use store::{StoreAddArgs, StoreArgs, StoreVerb};
pub use table::{LoadArgs, QueryArgs};
pub use views::{InfoArgs, RawArgs, SourceArgs, TopArgs, ViewArgs, ViewVerb};

use help::Unnamed;

const EXAMPLES: &str = "\
Examples:
  pprofdiff main.pb.gz branch.pb.gz                    what changed, by each function's own cost
  pprofdiff main.pb.gz branch.pb.gz --sort cum         with what it calls
  pprofdiff peek tableInsensitive main.pb.gz branch.pb.gz   its callers and callees, both sides
  pprofdiff list names.compare main.pb.gz branch.pb.gz --base-source main/ --new-source branch/
  pprofdiff disasm names.compare main.pb.gz branch.pb.gz --base-binary main/app --new-binary branch/app
  pprofdiff main.pb.gz branch.pb.gz --format svg -o callgraph.svg
  pprofdiff old.pb.gz new.pb.gz --sample-type alloc_space --normalize 1000/3000
  pprofdiff --base a1.pb.gz a2.pb.gz --new b1.pb.gz b2.pb.gz  several runs a side: means, and what is more than chance
  pprofdiff old.pb.gz new.pb.gz --format json | jq '.rows[0]'
  pprofdiff old.pb.gz new.pb.gz --format pprof -o diff.pb.gz && go tool pprof -top diff.pb.gz
  pprofdiff old.pb.gz new.pb.gz --format html -o report.html --open   flame graph and table in a browser
  pprofdiff top heap.pb.gz                             one profile
  pprofdiff top http://localhost:6060/debug/pprof/heap   files may be URLs
  pprofdiff labels pyroscope://localhost:4040          or queries of a continuous profiler (docs/sources.md)
  pprofdiff delta heap1.pb.gz heap2.pb.gz -o delta.pb.gz   what happened between two snapshots of a growing profile
  pprofdiff delta http://localhost:6060/debug/pprof/heap --seconds 30 -o delta.pb.gz
  pprofdiff check main.pb.gz branch.pb.gz --fail-on 'total>+5%'   for CI
  pprofdiff explain main.pb.gz branch.pb.gz            the causes, and what is noise
  pprofdiff batch main/ branch/                        many pairs, over all cores
  pprofdiff series 'builds/*/cpu.pb.gz'                which frames moved most along a history, and when

A file that is named like a verb is written ./top. Exit codes: 0 done, 2 usage or input error; of check, and of explain --exit-code, also 1 and 3.";

/// Compare pprof profiles: what changed, with both sides of every number
#[derive(Parser)]
#[command(name = "pprofdiff", version, after_long_help = EXAMPLES, max_term_width = 110)]
#[command(args_conflicts_with_subcommands = true, subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
#[command(override_usage = "pprofdiff BASE NEW [OPTIONS]\n       pprofdiff VERB ... [OPTIONS]")]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Option<Verb>,
    #[command(flatten)]
    pub diff: Unnamed<TopArgs>,
}

#[derive(Subcommand)]
pub enum Verb {
    /// Show what changed, frame by frame (the default verb)
    Diff(Later<TopArgs>),
    #[command(about = about("top"))]
    Top(Later<TopArgs>),
    #[command(flatten)]
    View(ViewVerb),
    #[command(about = about("info"))]
    Info(Later<InfoArgs>),
    #[command(about = about("raw"))]
    Raw(Later<RawArgs>),
    #[command(about = about("comments"))]
    Comments(Later<RawArgs>),
    /// Merge profiles into one
    Merge(Later<MergeArgs>),
    /// Write a profile in another format: pprof, folded stacks or speedscope
    Convert(Later<ConvertArgs>),
    /// Subtract snapshots of a growing profile (heap, mutex, block)
    Delta(Later<DeltaArgs>),
    #[command(about = about("explain"))]
    Explain(Later<ExplainArgs>),
    #[command(about = about("check"))]
    Check(Later<CheckArgs>),
    /// Run a benchmark of two commits in turns until it is decided, and explain
    Bench(Later<BenchArgs>),
    /// Compare many pairs: two directories, two patterns, or a manifest
    Batch(Later<BatchArgs>),
    /// Follow frames along a history of builds, or compare many builds with one base
    Series(Later<SeriesArgs>),
    /// Keep profiles by keys in Parquet files, which polars, DuckDB and Spark read
    #[cfg(feature = "store")]
    Store(Later<StoreArgs>),
    /// Show profiles in the browser, served to this machine alone
    #[cfg_attr(not(feature = "serve"), command(hide = true))]
    Serve(Later<ServeArgs>),
    /// Run an MCP server on stdio: verbs as tools for agents
    #[cfg_attr(not(feature = "mcp"), command(hide = true))]
    Mcp(Later<McpArgs>),
    /// List the formats of answers and of profiles
    Formats {
        /// Print the JSON Schema of what the formats json and jsonl write
        #[arg(long)]
        schema: bool,
    },
    /// Print a script that completes pprofdiff's words in a shell
    Completions {
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Write manual pages into a folder: one of the command, and one of each verb
    Man {
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
}

/// What the verb of a view does that has options of its own.
fn about(view: &str) -> &'static str {
    ViewSpec::all().iter().find(|known| known.name == view).map_or("", |view| view.about)
}

/// The command with the options of all verbs.
pub fn whole() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}
