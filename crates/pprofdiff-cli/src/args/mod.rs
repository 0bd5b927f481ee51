//! The command line: verbs, and what each takes. The options of the engine's tables are in `table`, those of views in
//! `views`, of checks and explanations in `gates`, of other verbs in `jobs`; `help` makes short help fit a screen.

mod gates;
mod help;
mod jobs;
mod table;
mod views;

use std::path::PathBuf;

use clap::{Command, CommandFactory, Parser, Subcommand};

pub use gates::{BaselineArgs, CheckArgs, ExplainArgs};
pub use help::{Later, formats};
pub use jobs::{
    BatchArgs, CONVERTED, ConvertArgs, DeltaArgs, McpArgs, MergeArgs, Schedule, SeriesArgs, SeriesOrder, SeriesRows,
    ServeArgs,
};
pub use table::LoadArgs;
pub use views::{InfoArgs, InputArgs, RawArgs, SourceArgs, TopArgs, ViewArgs, limited};

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
  pprofdiff delta heap1.pb.gz heap2.pb.gz -o delta.pb.gz   what happened between two snapshots of a growing profile
  pprofdiff delta http://localhost:6060/debug/pprof/heap --seconds 30 -o delta.pb.gz
  pprofdiff check main.pb.gz branch.pb.gz --fail-on 'total>+5%'   for CI
  pprofdiff explain main.pb.gz branch.pb.gz            the causes, and what is noise
  pprofdiff batch main/ branch/                        many pairs, over all cores
  pprofdiff series 'builds/*/cpu.pb.gz'                which frames moved most along a history, and when

A file that is named like a verb is written ./top. Exit codes: 0 done, 2 usage or input error; of check, and of explain --exit-code, also 1 and 3.";

/// Compare pprof profiles: what changed, with both sides of every number
#[derive(Parser)]
#[command(name = "pprofdiff", version, about, after_long_help = EXAMPLES, max_term_width = 110)]
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
    /// Show the frames of one profile, or of two
    Top(Later<TopArgs>),
    /// Show the callers and callees of all frames
    Tree(Later<ViewArgs>),
    /// Show the callers and callees of frames that match
    Peek {
        /// Matched against each frame's name, with its file and line at such granularities
        regex: String,
        #[command(flatten)]
        view: Later<ViewArgs>,
    },
    /// Show source lines with their costs, of functions that match
    List {
        /// Matched against each function's name
        regex: String,
        #[command(flatten)]
        sources: SourceArgs,
        #[command(flatten)]
        view: Later<ViewArgs>,
    },
    /// Show instructions with their costs, of functions that match; --binary says where the binaries are
    Disasm {
        /// Matched against each function's name in its binary
        regex: String,
        #[command(flatten)]
        view: Later<ViewArgs>,
    },
    /// Show whole stacks
    Stacks {
        /// Also tell apart stacks whose samples have different labels, and show those
        #[arg(long)]
        labels: bool,
        #[command(flatten)]
        view: Later<ViewArgs>,
    },
    /// Show whole stacks with their labels, from the leaf; what has the same frames and labels adds up
    Traces(Later<ViewArgs>),
    /// Show what each label's values cost
    Labels(Later<ViewArgs>),
    /// Show what is in the files: sample types, totals, times, mappings
    Info(Later<InfoArgs>),
    /// Print all samples, locations and mappings as text, as pprof does
    Raw(Later<RawArgs>),
    /// Print the profile's comments
    Comments(Later<RawArgs>),
    /// Merge profiles into one
    Merge(Later<MergeArgs>),
    /// Write a profile in another format: pprof, folded stacks or speedscope
    Convert(Later<ConvertArgs>),
    /// Subtract snapshots of a growing profile (heap, mutex, block): what happened between them
    Delta(Later<DeltaArgs>),
    /// Explain why two sides differ: the few causes, what only moved, and what is noise
    Explain(Later<ExplainArgs>),
    /// Check changes against limits, for CI: exits with 0 for pass, 1 for fail, 3 for inconclusive
    Check(Later<CheckArgs>),
    /// Compare many pairs: two directories, two patterns, or a manifest
    Batch(Later<BatchArgs>),
    /// Follow frames along a history of builds, or compare many builds with one base
    Series(Later<SeriesArgs>),
    /// Show profiles in the browser, served to this machine alone; more can be dropped on the page
    #[cfg_attr(not(feature = "serve"), command(hide = true))]
    Serve(Later<ServeArgs>),
    /// Run an MCP server on stdio: verbs as tools for agents
    #[cfg_attr(not(feature = "mcp"), command(hide = true))]
    Mcp(Later<McpArgs>),
    /// List the formats of answers and of profiles
    Formats,
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

/// The command with the options of all verbs.
pub fn whole() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn short_help_fits_a_screen() {
        let mut command = whole();
        let mut too_long = Vec::new();
        let mut measure = |name: &str, help: String| {
            let lines = help.lines().count();
            if lines > 40 {
                too_long.push(format!("{name}: {lines} lines"));
            }
        };
        measure("pprofdiff", command.render_help().to_string());
        for verb in command.get_subcommands_mut() {
            let name = verb.get_name().to_owned();
            measure(&name, verb.render_help().to_string());
        }
        assert!(too_long.is_empty(), "{too_long:?}");
    }
}
