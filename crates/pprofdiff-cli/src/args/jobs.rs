//! What verbs take that write profiles, or work on many: merge, convert, delta, batch, series, serve, mcp.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use pprofdiff::Compression;
use pprofdiff::delta::{CUMULATIVE, DeltaOptions, OnReset};
use pprofdiff::fleet::FDR;
use pprofdiff::input::Groups;
use pprofdiff_report::{View, ViewSpec};

use super::sides::{Rows, Sides};
use super::table::{LoadArgs, QueryArgs};
use super::views::OutputArgs;

#[derive(Args)]
#[command(after_help = MERGE_EXAMPLES)]
pub struct MergeArgs {
    /// The profiles: files, URLs, or `-` for standard input
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
    /// The profile: a file, a URL, or `-` for standard input
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
#[command(mut_arg("n", |a| a.help("Rows a pair, 0 for all [default: 3 in text, 100 in jsonl, all elsewhere]")))]
#[command(mut_arg("sort", |a| a.default_value("flat")))]
pub struct BatchArgs {
    /// Two directories, two patterns (quoted), two profiles, or one manifest
    #[arg(value_name = "BASE NEW|MANIFEST", num_args = 1..=2, required = true)]
    pub pairs: Vec<String>,
    /// Fetch URLs that the manifest names; without it they are errors
    #[arg(long, hide_short_help = true)]
    pub allow_urls: bool,
    /// Add up the files of a side [default: they are runs, and values are their means]
    #[arg(long, hide_short_help = true)]
    pub sum: bool,
    /// Pair the files of one pattern by keys: service={1},version={2}
    ///
    /// {1} is what the first * stands for, {host} the value of that label, of which a profile has one. Of a manifest, CSV or
    /// lines of JSON with a column profile, keys are columns: service,version. --base and --new say the keys of either side;
    /// all its files are its runs, or add up (--sum). What is not asked about but may differ, such as a host or kernel, is a
    /// key as well: then like is compared with like, and --rank says what all share.
    #[arg(long, value_name = "KEYS", requires_all = ["base", "new"])]
    group: Option<String>,
    /// With --group: the keys of the base, version=v1 or version=@previous
    #[arg(long, value_name = "KEY=VALUE", requires = "group", hide_short_help = true)]
    base: Option<String>,
    /// With --group: the keys of the new side, version=v2 or version=@latest
    #[arg(long, value_name = "KEY=VALUE", requires = "group", hide_short_help = true)]
    new: Option<String>,
    #[command(flatten)]
    rows: Rows,
    #[arg(long, value_name = "VIEW", default_value = "top", help = views())]
    view: View,
    /// Rank pairs by what changed beyond chance; name what several share
    #[arg(long, conflicts_with = "view")]
    pub rank: bool,
    /// With --rank: how many of the pairs said to have changed may be so by chance
    #[arg(long, value_name = "RATE", default_value_t = FDR, requires = "rank", hide_short_help = true)]
    pub fdr: f64,
    #[command(flatten)]
    pub query: QueryArgs<true>,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub load: LoadArgs,
}

const BATCH_HELP: &str = "\
Examples:
  pprofdiff batch main/ branch/                                  files with the same path below both
  pprofdiff batch 'main/*/cpu.pb.gz' 'branch/*/cpu.pb.gz'        where * stands for the same
  pprofdiff batch 'prof/*/*/*.pb.gz' --group service={1},version={2} --base version=v1 --new version=v2 --rank
  pprofdiff batch pairs.csv --format jsonl -o diffs.jsonl        columns base, new, name; or lines of JSON with these
                                                                 keys in pairs.jsonl

A pair that fails is named with its reason and stops no other; the exit code then is 2 at the end. Ctrl-C ends the job
with what is done, in the file of -o as well; the exit code then is 130.";

fn views() -> String {
    format!("What to show of each pair: {}", ViewSpec::names_of_pairs())
}

impl BatchArgs {
    /// The keys by which files are paired, if they are.
    pub fn groups(&self) -> Option<Groups> {
        Some(Groups::new(self.group.as_ref()?, self.base.as_ref()?, self.new.as_ref()?))
    }

    /// Returns the maximum number of rows in a ranking's tables, or `None` if `-n` is not given.
    pub fn ranked_rows(&self) -> Option<usize> {
        self.rows.n.map(|n| if n == 0 { usize::MAX } else { n })
    }

    /// What is asked of each pair, with so many rows unless others are given.
    pub fn view(&self, usual: Option<usize>) -> View {
        self.view.clone().ordered(self.rows.sort(), self.rows.limit(usual))
    }
}

#[derive(Args)]
#[command(mut_arg("files", |a| a.num_args(0..).help(
    "BASE and NEW, one profile, or the builds of a series; files, URLs, or `-` for standard input")))]
#[command(mut_arg("base", |a| a.requires("new")))]
#[command(mut_arg("new", |a| a.requires("base")))]
pub struct ServeArgs {
    #[command(flatten)]
    pub sides: Sides,
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
    /// Load URLs that an agent names; without it they are errors
    #[arg(long)]
    pub allow_urls: bool,
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
#[command(mut_arg("sort", |a| a.default_value("flat").help("Look at flat (own cost) or at cum (with what is called)")))]
pub struct SeriesArgs {
    /// A pattern (quoted), or files and URLs: a profile a build
    #[arg(value_name = "PATTERN|FILE|URL", required = true)]
    pub builds: Vec<PathBuf>,
    /// Compare each build with this profile, not with the one before it
    #[arg(long, value_name = "FILE|URL")]
    pub base: Option<PathBuf>,
    /// The order of the builds [default: key]
    #[arg(long, value_enum, default_value = "key", hide_default_value = true, hide_short_help = true)]
    pub order: SeriesOrder,
    /// What a row is [default: shifts; movers of less than six builds]
    #[arg(long, value_enum)]
    pub rows: Option<SeriesRows>,
    /// Of values: also rows of builds that do not have the frame
    #[arg(long)]
    pub dense: bool,
    #[command(flatten)]
    pub shown: Rows,
    /// Of shifts: the cause of each; of movers and steps: that of the largest
    ///
    /// Causes of a shift are found between at most five builds before it and five after. Of movers and steps the table
    /// closes with that of the largest change, in a line.
    #[arg(long)]
    pub explain: bool,
    #[command(flatten)]
    pub query: QueryArgs<false>,
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

/// How long something takes: a number with its unit.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
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
