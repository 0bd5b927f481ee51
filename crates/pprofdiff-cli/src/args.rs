//! The command line: verbs, options, help and examples.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use pprofdiff::delta::{CUMULATIVE, DeltaOptions, OnReset};
use pprofdiff::filter::Filter;
use pprofdiff::graph::{GraphOptions, Rank};
use pprofdiff::input::InputFormat;
use pprofdiff::list::SourceDirs;
use pprofdiff::{Compression, Filters, Granularity, Matching, Normalize, Query, Showing, Sort};
use pprofdiff_report::{Ask, Format, PageOptions, Request, Style};

use crate::baseline::MAX_PROFILES;
use crate::{color_wanted, is_stdin};

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

/// Compares pprof profiles: what changed, with both sides of every number.
#[derive(Parser)]
#[command(name = "pprofdiff", version, about, after_help = EXAMPLES, max_term_width = 110)]
#[command(args_conflicts_with_subcommands = true, subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
#[command(override_usage = "pprofdiff BASE NEW [OPTIONS]\n       pprofdiff VERB ... [OPTIONS]")]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Option<Verb>,
    #[command(flatten)]
    pub diff: TopArgs,
}

#[derive(Subcommand)]
pub enum Verb {
    /// What changed, frame by frame (the default verb)
    Diff(Later<TopArgs>),
    /// The frames of one profile, or of two
    Top(Later<TopArgs>),
    /// The callers and callees of all frames
    Tree(Later<ViewArgs>),
    /// The callers and callees of frames that match
    Peek {
        /// Matched against each frame's name, with its file and line at such granularities
        regex: String,
        #[command(flatten)]
        view: Later<ViewArgs>,
    },
    /// Source lines with their costs, of functions that match
    List {
        /// Matched against each function's name
        regex: String,
        #[command(flatten)]
        sources: SourceArgs,
        #[command(flatten)]
        view: Later<ViewArgs>,
    },
    /// Instructions with their costs, of functions that match; --binary says where the binaries are
    Disasm {
        /// Matched against each function's name in its binary
        regex: String,
        #[command(flatten)]
        view: Later<ViewArgs>,
    },
    /// Whole stacks
    Stacks {
        /// Also tell apart stacks whose samples have different labels, and show those
        #[arg(long)]
        labels: bool,
        #[command(flatten)]
        view: Later<ViewArgs>,
    },
    /// Whole stacks with their labels, from the leaf; what has the same frames and labels adds up
    Traces(Later<ViewArgs>),
    /// What each label's values cost
    Labels(Later<ViewArgs>),
    /// What is in the files: sample types, totals, times, mappings
    Info(Later<InfoArgs>),
    /// All samples, locations and mappings as text, as pprof's
    Raw(Later<RawArgs>),
    /// The comments that producers left, as pprof's
    Comments(Later<RawArgs>),
    /// Add profiles up to one
    Merge(Later<MergeArgs>),
    /// Write a profile in another format: pprof, folded stacks or speedscope
    Convert(Later<ConvertArgs>),
    /// What happened between snapshots of a growing profile (heap, mutex, block)
    Delta(Later<DeltaArgs>),
    /// Why do two sides differ? The few causes, what only moved, and what is noise
    Explain(Later<ExplainArgs>),
    /// Is what changed within limits? For CI: the exit code is 0 for yes, 1 for no, 3 for inconclusive
    Check(Later<CheckArgs>),
    /// Compare many pairs: two directories, two patterns, or a manifest
    Batch(Later<BatchArgs>),
    /// Follow frames along a history of builds, or compare many builds with one base
    Series(Later<SeriesArgs>),
    /// Show profiles in the browser, served by this command to this machine alone: more can be dropped on the page
    #[cfg_attr(not(feature = "serve"), command(hide = true))]
    Serve(Later<ServeArgs>),
    /// Be a server of the Model Context Protocol, on standard input and output: verbs as tools for agents
    #[cfg_attr(not(feature = "mcp"), command(hide = true))]
    Mcp(Later<McpArgs>),
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

/// The options of a verb, listed only when that verb is asked: listing those of all verbs takes longer than a small table.
/// What looks at other verbs builds the command first, see [`whole`].
pub struct Later<T>(pub T);

impl<T: Args> Args for Later<T> {
    fn augment_args(command: Command) -> Command {
        // What the verb is about stands at the verb, and not at the options that verbs share.
        command.defer(|command| {
            let about = command.get_about().cloned().unwrap_or_default();
            T::augment_args(command).about(about).long_about(None)
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Later::<T>::augment_args(command)
    }
}

impl<T: FromArgMatches> FromArgMatches for Later<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Later<T>, clap::Error> {
        T::from_arg_matches(matches).map(Later)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// The command with the options of all verbs.
pub fn whole() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

/// How profiles are loaded: the same for all verbs.
#[derive(Args)]
pub struct LoadArgs {
    /// Most bytes that a profile may inflate to, or a URL answer with [default: PPROFDIFF_MAX_INFLATED of the
    /// environment, or 2 GiB]
    #[arg(long, value_name = "BYTES")]
    pub inflated_limit: Option<u64>,
    /// The format of all profiles [default: each is recognised by its content]
    #[arg(long, value_name = "FORMAT", value_parser = input_formats())]
    pub input_format: Option<String>,
    /// What profiles count that do not say it, such as folded stacks: cpu/nanoseconds [default: samples/count]
    #[arg(long, value_name = "TYPE/UNIT")]
    pub input_type: Option<String>,
    /// Where names of functions and lines are looked up for addresses without names, and instructions: a binary, or a
    /// folder that is searched as pprof searches those of PPROF_BINARY_PATH, which come after it
    #[arg(long, value_name = "PATH")]
    pub binary: Vec<PathBuf>,
    /// The same for the base alone
    #[arg(long, value_name = "PATH")]
    pub base_binary: Vec<PathBuf>,
    /// The same for the new side alone
    #[arg(long, value_name = "PATH")]
    pub new_binary: Vec<PathBuf>,
    /// Use the binaries that are given even if their build ids are not those of the profiles
    #[arg(long)]
    pub any_build: bool,
    /// How long a profile may take to arrive from a URL
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = duration)]
    pub timeout: Duration,
}

#[derive(Args)]
pub struct InputArgs {
    /// BASE and NEW; verbs other than diff also take one FILE. Files, http(s) URLs, or `-` for standard input
    #[arg(value_name = "FILE|URL", num_args = 0..=2)]
    pub files: Vec<PathBuf>,
    /// The files of the base; several are runs of the same program
    #[arg(long, value_name = "FILE|URL", num_args = 1.., conflicts_with = "files")]
    pub base: Vec<PathBuf>,
    /// The files of the new side; several are runs
    #[arg(long, value_name = "FILE|URL", num_args = 1.., conflicts_with = "files")]
    pub new: Vec<PathBuf>,
    #[command(flatten)]
    pub load: LoadArgs,
}

/// A table of frames, or a page, which may have source lines.
#[derive(Args)]
pub struct TopArgs {
    #[command(flatten)]
    pub view: ViewArgs,
    /// Close with what explain says, in a line; on a terminal that is so anyway
    #[arg(long)]
    pub explain: bool,
    /// Leave the rows that more than chance explains: one in twenty of them is noise at most
    #[arg(long)]
    pub significant: bool,
    #[command(flatten)]
    pub sources: SourceArgs,
}

#[derive(Args)]
#[command(next_help_heading = "Sources (for list and --format html; files are read only below these folders)")]
pub struct SourceArgs {
    /// Where the base's sources are
    #[arg(long, value_name = "DIR")]
    pub base_source: Vec<PathBuf>,
    /// Where the new side's sources are [default: of list on a terminal, the working directory]
    #[arg(long, value_name = "DIR")]
    pub new_source: Vec<PathBuf>,
    /// Where the sources of both sides, or of one profile, are
    #[arg(long, value_name = "DIR:...")]
    pub source_path: Option<std::ffi::OsString>,
}

/// How the paths of files are shown.
#[derive(Args)]
pub struct PathArgs {
    /// Cut these prefixes off the paths of files, and versions (`y@v1.2.3`) out of them, so that two checkouts compare
    #[arg(long, value_name = "PREFIX:...", value_delimiter = ':')]
    trim_path: Vec<String>,
}

impl PathArgs {
    /// An empty prefix is none: scripts pass variables that are not set.
    fn trim_path(&self) -> Vec<String> {
        self.trim_path.iter().filter(|prefix| !prefix.is_empty()).cloned().collect()
    }
}

impl SourceArgs {
    /// True if nothing is given.
    pub fn is_empty(&self) -> bool {
        self.base_source.is_empty() && self.new_source.is_empty() && self.source_path.is_none()
    }

    pub fn dirs(&self) -> SourceDirs {
        let both: Vec<PathBuf> = self.source_path.iter().flat_map(std::env::split_paths).collect();
        let with = |own: &[PathBuf]| own.iter().chain(&both).cloned().collect();
        SourceDirs::new(with(&self.base_source), with(&self.new_source))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SortBy {
    Flat,
    Cum,
}

impl From<SortBy> for Sort {
    fn from(by: SortBy) -> Sort {
        match by {
            SortBy::Flat => Sort::Flat,
            SortBy::Cum => Sort::Cum,
        }
    }
}

/// Where an answer goes, and how it is written: the same for all verbs that answer something.
#[derive(Args)]
pub struct OutputArgs {
    /// What to write [default: as the ending of --output says, else text]
    #[arg(long, value_parser = formats())]
    format: Option<String>,
    /// With --format csv, put a ' before texts that a spreadsheet would run as formulas: those that begin with = + - @
    #[arg(long)]
    quote_formulas: bool,
    /// Where to write it [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl OutputArgs {
    /// The file; none if it is standard output.
    pub fn path(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| !is_stdin(path))
    }

    /// The format that is named, or that the output's name asks for.
    pub fn format(&self) -> pprofdiff::Result<&'static Format> {
        match (&self.format, &self.output) {
            (Some(name), _) => Format::named(name),
            (None, Some(path)) => Format::of_path(path),
            (None, None) => Format::named("text"),
        }
    }

    pub fn style(&self) -> Style {
        let color = self.path().is_none() && color_wanted();
        Style { color, quote_formulas: self.quote_formulas, ..Style::default() }
    }
}

/// The formats of inputs, as clap shows them.
fn input_formats() -> PossibleValuesParser {
    let formats = InputFormat::all().map(|f| PossibleValue::new(f.name).help(f.about));
    PossibleValuesParser::new(formats.collect::<Vec<_>>())
}

/// Those of answers.
fn formats() -> PossibleValuesParser {
    let formats = Format::all().iter().map(|f| PossibleValue::new(f.name).help(f.about));
    PossibleValuesParser::new(formats.collect::<Vec<_>>())
}

/// What to look at, and how: the same for all verbs.
#[derive(Args)]
pub struct QueryArgs {
    /// Sample type, such as cpu or alloc_space [default: the profile's]; of several, tables have them side by side, and
    /// the ratio of two of which one counts
    #[arg(long, value_name = "TYPE,...", value_delimiter = ',')]
    sample_type: Vec<String>,
    /// What a row stands for
    #[arg(long, default_value = "functions",
          value_parser = PossibleValuesParser::new(Granularity::ALL.iter().map(|(name, _)| *name)))]
    granularity: String,
    #[command(flatten)]
    paths: PathArgs,
    /// Count inlined functions as part of the one they were inlined into
    #[arg(long)]
    noinlines: bool,
    /// Which names mean the same function: equal ones; equal without what a compiler numbers in each build; or these,
    /// renamed functions, and those that one side has inlined
    #[arg(long = "match", default_value = "exact",
          value_parser = PossibleValuesParser::new(Matching::ALL.iter().map(|(name, _)| *name)))]
    matching: String,
    /// Scale the new side: to the base's `total`, by `duration`, or by a factor such as 0.5 or 1000/3000
    #[arg(long, value_name = "total|duration|FACTOR")]
    normalize: Option<Normalize>,
    #[command(flatten)]
    filters: FilterArgs,
}

impl QueryArgs {
    /// The request of a view.
    pub fn request(&self, ask: Ask) -> pprofdiff::Result<Request> {
        let (sample_type, beside) = match self.sample_type.split_first() {
            Some((first, others)) => (Some(first.clone()), others.to_vec()),
            None => (None, Vec::new()),
        };
        let mut query = Query::default();
        query.sample_type = sample_type;
        query.granularity = self.granularity.parse()?;
        query.no_inlines = self.noinlines;
        query.matching = self.matching.parse()?;
        query.trim_path = self.paths.trim_path();
        query.normalize = self.normalize.unwrap_or_default();
        query.filters = self.filters.0.clone();
        Ok(Request { query, beside, ask })
    }
}

#[derive(Args)]
pub struct ViewArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// Add up the files of a side [default: they are runs, and values are their means]
    #[arg(long)]
    pub sum: bool,
    /// Rows to show, 0 for all [default: 20 in text and Markdown, 80 nodes of a call graph, all elsewhere]
    #[arg(short = 'n', value_name = "N")]
    pub n: Option<usize>,
    /// Order by the change of flat (own cost) or of cum (with what it calls) [default: flat; of a call graph, pprof's
    /// choice of the most telling nodes]
    #[arg(long, value_enum)]
    pub sort: Option<SortBy>,
    #[command(flatten)]
    pub query: QueryArgs,
    #[command(flatten)]
    pub showing: ShowingArgs,
    #[command(flatten)]
    pub graph: GraphArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Write a page and show it in the browser
    #[arg(long)]
    pub open: bool,
    /// In a page, the part of the whole below which a box of the flame graph is not drawn; 0 draws what there is room for
    #[arg(long, value_name = "PART", value_parser = part, default_value_t = PageOptions::default().min_width)]
    pub min_width: f64,
    /// In a page, the most boxes of all its flame graphs
    #[arg(long, value_name = "N", default_value_t = PageOptions::default().max_frames)]
    pub max_frames: usize,
}

fn part(text: &str) -> Result<f64, String> {
    let part = text.parse().ok().filter(|part| (0.0..=1.0).contains(part));
    part.ok_or_else(|| "a part of the whole is a number from 0 to 1".to_owned())
}

/// How rows are reckoned and shown, as pprof's options say it.
#[derive(Args)]
pub struct ShowingArgs {
    /// Show values in this unit, such as ms or MB, or with auto each in the one that suits it [default: one a column;
    /// in JSON and CSV always the profile's own]
    #[arg(long, value_name = "UNIT")]
    unit: Option<String>,
    /// Of one profile: divide by its first sample type, which counts (the mean of a delay, bytes an object)
    #[arg(long)]
    mean: bool,
    /// Leave out frames that fell
    #[arg(long)]
    drop_negative: bool,
    /// Totals and percentages of what filters leave, and not of the whole
    #[arg(long)]
    relative_percentages: bool,
}

impl ShowingArgs {
    pub fn showing(&self) -> Showing {
        Showing::default()
            .with_unit(self.unit.clone())
            .with_mean(self.mean)
            .with_drop_negative(self.drop_negative)
            .with_relative_percentages(self.relative_percentages)
    }
}

#[derive(Args)]
#[command(next_help_heading = "Call graph (--format dot and svg)")]
pub struct GraphArgs {
    /// Leave out nodes whose cum is less than this part of the total
    #[arg(long, value_name = "F", default_value_t = GraphOptions::default().node_fraction)]
    node_fraction: f64,
    /// Leave out calls that are less than this part of the total
    #[arg(long, value_name = "F", default_value_t = GraphOptions::default().edge_fraction)]
    edge_fraction: f64,
    /// A box for each way to a frame; also of callgrind
    #[arg(long)]
    pub call_tree: bool,
}

/// An option for each of the engine's filters.
pub struct FilterArgs(Filters);

impl Args for FilterArgs {
    fn augment_args(command: Command) -> Command {
        let option = |f: &Filter| {
            let long = f.name.replace('_', "-");
            Arg::new(f.name).long(long).value_name(f.kind.value_name()).help(f.about)
        };
        command
            .next_help_heading("Filters (regular expressions on function, file and binary; as in pprof, in this order)")
            .args(Filters::ALL.iter().map(option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        FilterArgs::augment_args(command)
    }
}

impl FromArgMatches for FilterArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<FilterArgs, clap::Error> {
        let mut args = FilterArgs(Filters::default());
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for filter in Filters::ALL {
            filter.set(&mut self.0, matches.get_one::<String>(filter.name).cloned());
        }
        Ok(())
    }
}

#[derive(Args)]
pub struct InfoArgs {
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Args)]
pub struct RawArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// Where to write it [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Args)]
#[command(after_help = MERGE_EXAMPLES)]
pub struct MergeArgs {
    /// The profiles: files, http(s) URLs, or `-` for standard input
    #[arg(value_name = "FILE|URL", required = true)]
    pub files: Vec<PathBuf>,
    /// Multiply the values of a file; in FILE, * stands for any text, so that one weight may be of several [default: 1]
    #[arg(long, value_name = "FILE=N", value_parser = weight)]
    pub weight: Vec<(String, f64)>,
    /// Where to write the sum; .zst is packed with zstd, .pb not at all, anything else with gzip
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    #[command(flatten)]
    pub load: LoadArgs,
}

const MERGE_EXAMPLES: &str = "\
Examples:
  pprofdiff merge cpu-*.pb.gz -o all.pb.gz
  pprofdiff merge web-*.pb.gz api.pb.gz --weight 'web-*=3' -o default.pgo      for go build -pgo

A weight of 3 is the same as the file three times. Only the ratio of weights counts for PGO.";

/// `FILE=N`.
fn weight(text: &str) -> Result<(String, f64), String> {
    let (file, number) = text.rsplit_once('=').ok_or("write it as FILE=3")?;
    Ok((file.to_owned(), number.parse().map_err(|_| format!("{number} is no number"))?))
}

/// True if a pattern, in which `*` stands for any text, fits the whole name.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(last)
}

impl MergeArgs {
    /// The weight of each file.
    pub fn weights(&self) -> Result<Vec<f64>, String> {
        let names: Vec<String> = self.files.iter().map(|file| file.display().to_string()).collect();
        if let Some((pattern, _)) =
            self.weight.iter().find(|(pattern, _)| !names.iter().any(|name| fits(pattern, name)))
        {
            return Err(format!("--weight {pattern}: none of the files is called so"));
        }
        let weight =
            |name: &String| match self.weight.iter().filter(|(pattern, _)| fits(pattern, name)).collect::<Vec<_>>()[..]
            {
                [] => Ok(1.0),
                [(_, weight)] => Ok(*weight),
                [(one, _), (other, _), ..] => Err(format!("--weight {one} and --weight {other} are both of {name}")),
            };
        names.iter().map(weight).collect()
    }
}

/// The formats that a profile converts to.
pub const CONVERTED: [&str; 3] = ["pprof", "folded", "speedscope"];

#[derive(Args)]
#[command(after_help = CONVERT_EXAMPLES)]
pub struct ConvertArgs {
    /// The profile: a file, an http(s) URL, or `-` for standard input
    #[arg(value_name = "FILE|URL")]
    pub file: PathBuf,
    /// Where to write it: the ending says the format (.pb.gz, .pb, .pb.zst; .folded; .speedscope.json)
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// What to write, if the ending does not say it
    #[arg(long, value_parser = PossibleValuesParser::new(CONVERTED))]
    pub format: Option<String>,
    /// The sample type of folded stacks and of speedscope, which have one [default: the profile's]
    #[arg(long, value_name = "TYPE")]
    pub sample_type: Option<String>,
    #[command(flatten)]
    pub load: LoadArgs,
}

const CONVERT_EXAMPLES: &str = "\
Examples:
  pprofdiff convert stacks.txt -o cpu.pb.gz --input-type cpu/nanoseconds      folded stacks for go tool pprof
  pprofdiff convert heap.pb.gz -o heap.speedscope.json --sample-type alloc_space
  pprofdiff convert cpu.pb.gz -o - --format folded | flamegraph.pl > cpu.svg

A profile.proto keeps all that it has. Of two sides (a written diff, folded stacks with two numbers) the result has both.";

#[derive(Args)]
#[command(after_help = BATCH_HELP)]
pub struct BatchArgs {
    /// Two directories, two patterns (quoted), two profiles of which one is an http(s) URL, or one manifest
    #[arg(value_name = "BASE NEW|MANIFEST", num_args = 1..=2, required = true)]
    pub pairs: Vec<String>,
    /// Fetch what the manifest names by http(s) URLs; without it they are errors of their pairs
    #[arg(long)]
    pub allow_urls: bool,
    /// Rows a pair, 0 for all [default: 3 in text, all elsewhere]
    #[arg(short = 'n', value_name = "N")]
    n: Option<usize>,
    /// What to show of each pair
    #[arg(long, value_name = "top|tree|stacks|traces|labels|explain|peek=RE", default_value = "top")]
    view: Ask,
    /// Order by the change of flat (own cost) or of cum (with what it calls)
    #[arg(long, value_enum, default_value = "flat")]
    sort: SortBy,
    #[command(flatten)]
    pub query: QueryArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub load: LoadArgs,
}

const BATCH_HELP: &str = "\
Examples:
  pprofdiff batch main/ branch/                                  files with the same path below both
  pprofdiff batch 'main/*/cpu.pb.gz' 'branch/*/cpu.pb.gz'        where * stands for the same
  pprofdiff batch pairs.csv --format jsonl -o diffs.jsonl        columns base, new, name; or lines of JSON with these
                                                                 keys in pairs.jsonl

A pair that fails is named with its reason and stops no other; the exit code then is 2 at the end. Ctrl-C ends the job
with what is done, in the file of -o as well; the exit code then is 130.";

impl BatchArgs {
    /// What is asked of each pair, with so many rows unless others are given.
    pub fn ask(&self, usual: Option<usize>) -> Ask {
        self.view.clone().ordered(self.sort.into(), limited(self.n, usual))
    }
}

#[derive(Args)]
pub struct ServeArgs {
    /// BASE and NEW, one profile, or the builds of a series; files, http(s) URLs, or `-` for standard input
    #[arg(value_name = "FILE|URL")]
    pub files: Vec<PathBuf>,
    /// The files of the base; several are runs of the same program
    #[arg(long, value_name = "FILE|URL", num_args = 1.., conflicts_with = "files", requires = "new")]
    pub base: Vec<PathBuf>,
    /// The files of the new side; several are runs
    #[arg(long, value_name = "FILE|URL", num_args = 1.., conflicts_with = "files", requires = "base")]
    pub new: Vec<PathBuf>,
    /// The port of 127.0.0.1 [default: one that is free]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Show the page in the browser at once
    #[arg(long)]
    pub open: bool,
    #[command(flatten)]
    pub load: LoadArgs,
}

#[derive(Args)]
pub struct McpArgs {
    /// Load http(s) URLs that an agent names; without it they are errors
    #[arg(long)]
    pub allow_urls: bool,
}

/// The most rows, of what was given (0: all) and what is usual.
pub fn limited(given: Option<usize>, usual: Option<usize>) -> Option<usize> {
    given.or(usual).filter(|&n| n > 0)
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SeriesRows {
    /// A row a lasting change: from which build on a frame costs something else, beyond what builds differ by anyway
    Shifts,
    /// A row a frame: its largest step, and the builds in which it was first and last seen
    Movers,
    /// A row a step: how a frame changed from one build to another
    Steps,
    /// A row a build and frame: the table that all else is made from
    Values,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SeriesOrder {
    /// By their keys, in which numbers count as numbers: build-9 comes before build-10
    Key,
    /// As their files are named
    Given,
}

#[derive(Args)]
#[command(after_help = SERIES_HELP)]
pub struct SeriesArgs {
    /// A pattern (quoted), or files and http(s) URLs: a profile a build
    #[arg(value_name = "PATTERN|FILE|URL", required = true)]
    pub builds: Vec<PathBuf>,
    /// Compare each build with this profile, and not with the build before it. `-` is standard input
    #[arg(long, value_name = "FILE|URL")]
    pub base: Option<PathBuf>,
    /// The order of the builds [default: key]
    #[arg(long, value_enum, default_value = "key", hide_default_value = true)]
    pub order: SeriesOrder,
    /// What to show of them [default: shifts; movers of fewer than six builds, and with --base]
    #[arg(long, value_enum)]
    pub rows: Option<SeriesRows>,
    /// Of values: a row for each build and frame, also where a build does not have the frame
    #[arg(long)]
    pub dense: bool,
    /// Rows to show, 0 for all [default: 20 in text and Markdown, all elsewhere]
    #[arg(short = 'n', value_name = "N")]
    pub n: Option<usize>,
    /// Which cost is looked at: flat (own) or cum (with what is called)
    #[arg(long, value_enum, default_value = "flat")]
    pub sort: SortBy,
    /// Of shifts: the cause of each, found between at most five builds before it and five after. Of movers and steps: close with
    /// that of the largest change, in a line
    #[arg(long)]
    pub explain: bool,
    #[command(flatten)]
    pub query: QueryArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub load: LoadArgs,
}

const SERIES_HELP: &str = "\
Examples:
  pprofdiff series 'builds/*/cpu.pb.gz'                    which build was the first bad one
  pprofdiff series builds/*/cpu.pb.gz --sort cum -n 5      the part in which the paths differ is the key
  pprofdiff series 'branches/*/cpu.pb.gz' --base main.pb.gz   each against one base
  pprofdiff series 'builds/*/cpu.pb.gz' --explain          and why
  pprofdiff series 'builds/*/cpu.pb.gz' -o history.html    the course of each frame, and flame graphs
  pprofdiff series 'builds/*/cpu.pb.gz' --rows values --format csv -o values.csv   build x frame

What * stands for is the build's key. A build that fails is named with its reason, and its neighbours are compared with
each other; the exit code then is 2 at the end. Percentages are of the total of the build that a step begins from.";

/// A folder of profiles that takes the place of the base.
#[derive(Args)]
#[command(next_help_heading = "Baseline")]
pub struct BaselineArgs {
    /// Compare with the last profiles of a branch that are stored in this folder; the files are the new side's
    #[arg(long = "baseline", value_name = "DIR", conflicts_with = "base")]
    pub dir: Option<PathBuf>,
    /// The branch that is compared with, and under which profiles are stored
    #[arg(long, value_name = "NAME", default_value = "main", value_parser = name, requires = "dir")]
    pub branch: String,
    /// Only profiles with this label; those that are stored get it
    #[arg(long, value_name = "KEY=VALUE", value_parser = label, requires = "dir")]
    pub label: Vec<(String, String)>,
    /// Store the new profiles, unless the check fails
    #[arg(long, requires = "dir")]
    pub store: bool,
    /// Store them even so, and forget the older ones: what changed is meant to stay
    #[arg(long, requires = "dir")]
    pub accept: bool,
    /// The commit of what is stored
    #[arg(long, value_name = "ID", value_parser = name, requires = "dir")]
    pub commit: Option<String>,
    /// Its time, as 2026-11-22T11:52:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = time, requires = "dir")]
    pub time: Option<u64>,
    /// How many profiles of a branch are kept and compared with
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u8).range(1..=MAX_PROFILES as i64), requires = "dir")]
    pub keep: u8,
}

/// What a user calls a branch or a commit.
fn name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > 200 { Err("it has 1 to 200 bytes".to_owned()) } else { Ok(text.to_owned()) }
}

/// `key=value`.
fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as key=value")?;
    Ok((name(key)?, name(value)?))
}

/// A point in time, in seconds since 1970.
fn time(text: &str) -> Result<u64, String> {
    let parsed = text.parse::<jiff::Timestamp>().ok().and_then(|time| u64::try_from(time.as_second()).ok());
    parsed.ok_or_else(|| "write it as 2026-11-22T11:52:00Z".to_owned())
}

#[derive(Args)]
#[command(after_help = CHECK_HELP)]
#[command(mut_arg("files", |a| a.help(
    "BASE and NEW, or with --baseline only new ones: files, http(s) URLs, or `-` for standard input")))]
#[command(mut_arg("sample_type", |a| a.value_name("TYPE").help("Sample type of rules that name none [default: the profile's]")))]
#[command(mut_arg("normalize", |a| a.help(
    "Scale each run of the new side: to the base's `total`, by `duration`, or by a factor such as 0.5 or 1000/3000")))]
pub struct CheckArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// A limit, see below; besides those of the configuration
    #[arg(long, value_name = "RULE")]
    pub fail_on: Vec<String>,
    /// Where limits and what is allowed stand [default: pprofdiff.toml, if there is one here]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Ignore frames below this part of the total on both sides [default: 1% for rules on each frame]
    #[arg(long, value_name = "PERCENT")]
    pub floor: Option<String>,
    #[command(flatten)]
    pub baseline: BaselineArgs,
    /// Limits alone decide: what exceeds one fails, however much of that chance explains
    #[arg(long)]
    pub strict: bool,
    /// Run i of the new side belongs to run i of the base: what both have in common is no difference
    #[arg(long, conflicts_with = "strict")]
    pub paired: bool,
    /// Inconclusive, not passed, if a growth as large as the limit would have been missed
    #[arg(long, conflicts_with = "strict")]
    pub require_power: bool,
    /// Say why the sides differ also where no rule fails
    #[arg(long)]
    pub explain: bool,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Write the findings to this file as well, in the format that its ending says; or what was compared, in a format
    /// that has no findings: a page (.html), a picture (.svg), a diff for pprof (.pb.gz), rows (.csv)
    #[arg(long, value_name = "FILE")]
    pub report: Vec<PathBuf>,
    #[command(flatten)]
    pub query: QueryArgs,
}

const CHECK_HELP: &str = "\
A rule is [TYPE:]total>LIMIT, or [TYPE:]flat|cum:FRAMES>LIMIT. FRAMES are any (each frame by itself), each=RE (each that
matches) or regex=RE (all that match, taken as one). A LIMIT is +5% or +10MB (growth), 2GB (the new value), or 30% (the
new value's part of the total); one on a time or size needs its unit.

Examples:
  pprofdiff check main.pb.gz branch.pb.gz --fail-on 'total>+5%' --fail-on 'flat:regex=^encoding/>+10%'
  pprofdiff check main.pb.gz branch.pb.gz --fail-on 'cum:any>+20%' --floor 2%
  pprofdiff check --base main*.pb.gz --new branch*.pb.gz --fail-on 'alloc_space:total>+10MB' --format markdown
  pprofdiff check --baseline profiles cpu.pb.gz --fail-on 'total>+5%' --store --commit \"$SHA\"      on main
  pprofdiff check --baseline profiles cpu.pb.gz --fail-on 'total>+5%'      on a branch

Several files on a side are runs of the same program, whose medians are compared. A rule fails if its limit is exceeded
and two equal builds would hardly ever differ so much: once in a hundred checks. What chance explains is inconclusive.
Exit codes: 0 pass, 1 regression (outranks inconclusive), 2 usage or input error, 3 inconclusive.";

#[derive(Args)]
#[command(after_help = EXPLAIN_HELP)]
#[command(mut_arg("sample_type", |a| a.help(
    "Sample type, alone or with the one that counts it [default: the profile's; of a heap alloc_space]")))]
pub struct ExplainArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// How many operations a run of the base and of the new side did; without, the scale is found from the frames
    #[arg(long, value_name = "N0,N1", value_parser = operations)]
    pub ops: Option<(f64, f64)>,
    /// The same from what benchmarks wrote: `go test -bench`, criterion's sample.json, pytest-benchmark's JSON
    #[arg(long, value_names = ["BASE", "NEW"], num_args = 2, conflicts_with = "ops")]
    pub ops_from: Vec<PathBuf>,
    /// The least change that is a cause, in percent of the base's total
    #[arg(long, value_name = "PERCENT", value_parser = percentage, default_value = "0.2%")]
    pub min_effect: f64,
    /// Runs of equal builds, from which only noise is learned: files, or one pattern
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub noise: Vec<PathBuf>,
    /// What is known of your own runtime: the table explain of this file [default: pprofdiff.toml, if there is one here]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Text or Markdown of about so many tokens of a language model, the most important first
    #[arg(long, value_name = "TOKENS")]
    pub budget: Option<usize>,
    /// End with 1 if something changed and 3 if these samples can't tell
    #[arg(long)]
    pub exit_code: bool,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub query: QueryArgs,
}

const EXPLAIN_HELP: &str = "\
Examples:
  pprofdiff explain main.pb.gz branch.pb.gz
  pprofdiff explain --base main*.pb.gz --new branch*.pb.gz      runs, from which noise is measured
  pprofdiff explain old.pb.gz new.pb.gz --ops 1000,3000         a benchmark that ran 1000 and 3000 times
  pprofdiff explain main.pb.gz branch.pb.gz --noise 'nightly/*.pb.gz'      runs of equal builds show what noise is
  pprofdiff explain main.pb.gz branch.pb.gz --format json

Several files on a side are runs of the same program and do not add up. Deltas are those of a run of the new side, beside
the amount of work. What is promised, and when explain can't know: docs/explain.md.
Exit codes: 0 done, 2 usage or input error; with --exit-code also 1 change, 3 inconclusive.";

/// Two numbers of operations.
fn operations(text: &str) -> Result<(f64, f64), String> {
    let number = |text: &str| text.trim().parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
    let both = text.split_once(',').and_then(|(base, new)| Some((number(base)?, number(new)?)));
    both.ok_or_else(|| "write the operations of both sides as 1000,3000".to_owned())
}

/// A part of the whole, written in percent.
fn percentage(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').unwrap_or(text).trim().parse().ok();
    let part = number.map(|n: f64| n / 100.0).filter(|part| (0.0..1.0).contains(part));
    part.ok_or_else(|| "write it in percent, such as 0.5%".to_owned())
}

/// How long something takes: a number with its unit.
fn duration(text: &str) -> Result<Duration, String> {
    let parsed = text.parse::<jiff::SignedDuration>().map_err(|_| "write it as 30s, 500ms or 1m30s".to_owned())?;
    Duration::try_from(parsed).ok().filter(|d| !d.is_zero()).ok_or_else(|| "it must be longer than nothing".to_owned())
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnResetArg {
    /// End with an error
    Error,
    /// Write the new snapshot as it is
    Pass,
    /// Counters that went down count as unchanged
    Clamp,
}

#[derive(Args)]
#[command(after_help = DELTA_EXAMPLES)]
pub struct DeltaArgs {
    /// The snapshots, oldest first, or one http(s) URL to take them from. `-` is standard input
    #[arg(value_name = "SNAPSHOT|URL", required = true)]
    pub snapshots: Vec<PathBuf>,
    /// Where to write the delta; of several, {index} is their number, from 1. .zst is packed with zstd, .pb not at all,
    /// anything else with gzip
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// The sample types that count from the start of the process; all others are taken from the newer snapshot. Of
    /// those that are known one must occur, of those that are given all
    #[arg(long, value_name = "TYPE,...", value_delimiter = ',', default_values = CUMULATIVE.iter().copied())]
    cumulative: Vec<String>,
    /// What to do when the process was started anew: a counter went down, or the samples are gone that had counted more
    /// than half
    #[arg(long, value_enum, default_value = "error")]
    on_reset: OnResetArg,
    #[arg(long, value_name = "N", help = level_help())]
    pub level: Option<u32>,
    /// Take a snapshot from URL, and another one so many seconds later
    #[arg(long, value_name = "N", conflicts_with_all = ["every", "count"], value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
    /// Take snapshots from URL again and again, at such intervals (30s, 5m)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    every: Option<Duration>,
    /// Write so many deltas, then end [default: go on until Ctrl-C]
    #[arg(long, value_name = "N", requires = "every", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    pub load: LoadArgs,
}

fn level_help() -> String {
    let about = |name: &str, packing: Compression| {
        let levels = packing.levels();
        format!("{name} {} to {} [default: {}]", levels.start(), levels.end(), packing.default_level())
    };
    format!("How hard to pack: {}, {}", about("gzip", Compression::Gzip), about("zstd", Compression::Zstd))
}

const DELTA_EXAMPLES: &str = "\
Examples:
  pprofdiff delta heap1.pb.gz heap2.pb.gz -o delta.pb.gz
  pprofdiff delta heap*.pb.gz -o 'delta-{index}.pb.gz'      one delta for each two that follow each other
  pprofdiff delta http://localhost:6060/debug/pprof/heap --seconds 30 -o delta.pb.gz
  pprofdiff delta http://localhost:6060/debug/pprof/mutex --every 30s --count 10 -o 'mutex-{index}.pb.gz'

While snapshots are taken from a URL, the last one is kept beside OUT: should the next one fail to come, or Ctrl-C be
pressed, nothing that was taken is lost.";

/// When to take snapshots from a URL.
#[derive(Clone, Copy)]
pub struct Schedule {
    pub every: Duration,
    /// Number of deltas; without end if not given.
    pub count: Option<u64>,
}

impl DeltaArgs {
    pub fn options(&self) -> DeltaOptions {
        let on_reset = match self.on_reset {
            OnResetArg::Error => OnReset::Error,
            OnResetArg::Pass => OnReset::Pass,
            OnResetArg::Clamp => OnReset::Clamp,
        };
        // The known names need not occur; names that were given must.
        let known = self.cumulative == CUMULATIVE;
        let options = DeltaOptions::default().with_on_reset(on_reset);
        if known { options } else { options.with_cumulative(&self.cumulative) }
    }

    pub fn schedule(&self) -> Option<Schedule> {
        match (self.seconds, self.every) {
            (Some(seconds), _) => Some(Schedule { every: Duration::from_secs(seconds), count: Some(1) }),
            (None, every) => every.map(|every| Schedule { every, count: self.count }),
        }
    }
}

impl ViewArgs {
    /// The format that is named, or that the output's name asks for; to be opened, it is a page.
    pub fn format(&self) -> pprofdiff::Result<&'static Format> {
        if self.open && self.output.format.is_none() { Format::named("html") } else { self.output.format() }
    }

    pub fn sort(&self) -> Sort {
        self.sort.map_or(Sort::default(), Sort::from)
    }

    /// The most rows in a format.
    pub fn limit(&self, format: &Format) -> Option<usize> {
        limited(self.n, format.limit)
    }

    pub fn graph_options(&self) -> GraphOptions {
        let mut options = GraphOptions::default();
        options.node_count = self.n.unwrap_or(options.node_count);
        options.node_fraction = self.graph.node_fraction;
        options.edge_fraction = self.graph.edge_fraction;
        options.call_tree = self.graph.call_tree;
        options.rank = match self.sort {
            None => Rank::Entropy,
            Some(SortBy::Flat) => Rank::Flat,
            Some(SortBy::Cum) => Rank::Cum,
        };
        options
    }
}
