//! The command line: one `Verb` per subcommand, and the arguments of each verb.
//!
//! - `table` turns the engine's option tables into clap arguments.
//! - `sides` has the arguments of verbs that compare two sides or show rows.
//! - `views`, `gates`, `bench`, `store` and `jobs` have the arguments of the views, of `check` and `explain`, of
//!   `bench`, of `store`, and of the other verbs. `formats`, `completions` and `man` have theirs in [`Verb`].
//! - `help` groups the verbs and keeps short help within one screen.

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

use clap::{Command, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Generator;
use clap_complete_nushell::Nushell;

pub use bench::BenchArgs;
pub use gates::{BaselineArgs, CheckArgs, ExplainArgs, GitArgs};
pub use help::{Later, formats};
pub use jobs::{
    BatchArgs, ConvertArgs, DeltaArgs, McpArgs, MergeArgs, SeriesArgs, SeriesOrder, SeriesRows, ServeArgs,
    SnapshotSchedule, converted_formats,
};
pub use sides::SideArgs;
#[cfg(feature = "store")]
pub use store::{StoreAddArgs, StoreArgs, StoreVerb};
pub use table::LoadArgs;
pub use views::{InfoArgs, MORE, OutputArgs, RawArgs, SourceArgs, TopArgs, ViewArgs, ViewVerb};

use crate::REGISTRY;
use help::Unnamed;

/// The end of long help.
const EXAMPLES: &str = "\
Examples:
  pprofdiff main.pb.gz branch.pb.gz                            changed functions, largest change first
  pprofdiff --base a1.pb.gz a2.pb.gz --new b1.pb.gz b2.pb.gz   several runs per side separate changes from noise
  pprofdiff main.pb.gz branch.pb.gz --format html -o report.html --open   flame graph and tables in the browser
  pprofdiff explain main.pb.gz branch.pb.gz                    the causes of the difference
  pprofdiff check main.pb.gz branch.pb.gz --fail-on 'total>+5%'   fail a CI job
  pprofdiff top http://localhost:6060/debug/pprof/heap         one profile, from a URL
  pprofdiff batch main/ branch/                                many pairs, on all cores

To read a file that has the name of a verb, write ./top.
Exit codes: 0 done, 1 a limit is exceeded, a change (`explain --exit-code`), or files without a partner (`batch`), 2 usage or
input error, 3 inconclusive, 4 a rule of `check` matches no frame, 130 Ctrl-C.
Options and examples of a verb: pprofdiff VERB --help. `pprofdiff BASE NEW` takes the options of `pprofdiff diff`.";

/// Compare pprof profiles and see what changed, with both sides of every number
#[derive(Parser)]
#[command(name = "pprofdiff", version, after_long_help = EXAMPLES, max_term_width = 110)]
#[command(args_conflicts_with_subcommands = true, subcommand_value_name = "VERB")]
#[command(override_usage = "pprofdiff BASE NEW [OPTIONS]\n       pprofdiff VERB ... [OPTIONS]")]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Option<Verb>,
    #[command(flatten)]
    pub diff: Unnamed<TopArgs>,
}

#[derive(Subcommand)]
pub enum Verb {
    /// Compare two profiles frame by frame (the default verb)
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
    /// Convert a profile to pprof, folded stacks or speedscope
    Convert(Later<ConvertArgs>),
    /// Subtract two snapshots of a cumulative profile (heap, mutex, block)
    Delta(Later<DeltaArgs>),
    #[command(about = about("explain"))]
    Explain(Later<ExplainArgs>),
    #[command(about = about("check"))]
    Check(Later<CheckArgs>),
    /// Benchmark two commits in alternating runs until the result is clear, and explain it
    Bench(Later<BenchArgs>),
    /// Compare many pairs: two directories, two patterns or a manifest
    Batch(Later<BatchArgs>),
    /// Find the builds at which frames changed, or compare many builds with one base
    Series(Later<SeriesArgs>),
    /// Store profiles by key in Parquet files that polars, DuckDB and Spark can read
    #[cfg(feature = "store")]
    Store(Later<StoreArgs>),
    /// Show profiles in the browser; the server accepts local connections only
    #[cfg_attr(not(feature = "serve"), command(hide = true))]
    Serve(Later<ServeArgs>),
    /// Run an MCP server on stdio that offers the verbs as tools to agents
    #[cfg_attr(not(feature = "mcp"), command(hide = true))]
    Mcp(Later<McpArgs>),
    /// List the output and input formats
    Formats {
        /// Print the JSON Schema of the json and jsonl formats
        #[arg(long)]
        schema: bool,
    },
    /// Print a shell completion script
    Completions {
        #[arg(value_name = "SHELL")]
        shell: CompletedShell,
    },
    /// Write man pages to a folder
    Man {
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
}

/// The shells that `pprofdiff completions` supports.
#[derive(Clone, Copy, ValueEnum)]
pub enum CompletedShell {
    Bash,
    Elvish,
    Fish,
    Nushell,
    #[value(name = "powershell")]
    PowerShell,
    Zsh,
}

impl CompletedShell {
    /// Returns the script that completes the command's options and verbs.
    pub fn script(self) -> Vec<u8> {
        use clap_complete::Shell;
        let shell = match self {
            CompletedShell::Nushell => return script(Nushell),
            CompletedShell::Bash => Shell::Bash,
            CompletedShell::Elvish => Shell::Elvish,
            CompletedShell::Fish => Shell::Fish,
            CompletedShell::PowerShell => Shell::PowerShell,
            CompletedShell::Zsh => Shell::Zsh,
        };
        script(shell)
    }
}

/// Returns the script of a generator. It is written to memory, because clap_complete panics on a closed pipe.
fn script(generator: impl Generator) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(generator, &mut Cli::command(), "pprofdiff", &mut script);
    script
}

/// Returns the help line of the view called `view`. Only views whose verb has its own arguments need it.
fn about(view: &str) -> &'static str {
    REGISTRY.view(view).map_or("", |spec| spec.about)
}

/// Builds the command with the options of all verbs. Parsing avoids that cost, see [`Later`].
pub fn whole() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

/// Lists the long options of all verbs.
pub fn long_options() -> Vec<String> {
    let command = whole();
    let options = command.get_subcommands().flat_map(|verb| verb.get_arguments()).filter_map(|arg| arg.get_long());
    options.map(str::to_owned).collect()
}
