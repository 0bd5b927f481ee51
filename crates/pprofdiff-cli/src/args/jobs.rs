//! The arguments of `merge`, `convert`, `batch`, `serve`, `mcp`, `series` and `delta`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use pprofdiff::Compression;
use pprofdiff::delta::{CUMULATIVE, DeltaOptions, OnReset};
use pprofdiff::input::Groups;
use pprofdiff::time::parse_duration;
use pprofdiff_report::View;
use pprofdiff_series::fleet::FDR;

use super::sides::{RowArgs, SideArgs};
use super::table::{LoadArgs, QueryArgs};
use super::views::OutputArgs;
use crate::REGISTRY;

#[derive(Args)]
#[command(after_help = MERGE_EXAMPLES)]
pub struct MergeArgs {
    /// Profiles: files, URLs, or `-` for stdin
    #[arg(value_name = "FILE|URL", required = true)]
    pub files: Vec<PathBuf>,
    /// Multiply the values of the matching files by N; in FILE, * matches any text [default: 1]
    #[arg(long, value_name = "FILE=N", value_parser = weight)]
    pub weight: Vec<(String, f64)>,
    /// Output file; .zst uses zstd, .pb is not compressed, and any other extension uses gzip
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    #[command(flatten)]
    pub load: LoadArgs,
}

const MERGE_EXAMPLES: &str = "\
Examples:
  pprofdiff merge cpu-*.pb.gz -o all.pb.gz
  pprofdiff merge web-*.pb.gz api.pb.gz --weight 'web-*=3' -o default.pgo      for go build -pgo

A weight of 3 is the same as giving the file three times. For PGO, only the ratio of the weights matters.";

/// Parses a weight, `FILE=N`.
fn weight(text: &str) -> Result<(String, f64), String> {
    let (file, number) = text.rsplit_once('=').ok_or("write it as FILE=3")?;
    Ok((file.to_owned(), number.parse().map_err(|_| format!("{number} is not a number"))?))
}

/// Returns true if `pattern` matches all of `name`. In the pattern, `*` matches any text.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(position) = name.find(part) else { return false };
        name = &name[position + part.len()..];
    }
    name.ends_with(last)
}

impl MergeArgs {
    /// Returns the weight of each file.
    pub fn weights(&self) -> Result<Vec<f64>, String> {
        let names: Vec<String> = self.files.iter().map(|file| file.display().to_string()).collect();
        if let Some((pattern, _)) =
            self.weight.iter().find(|(pattern, _)| !names.iter().any(|name| fits(pattern, name)))
        {
            return Err(format!("--weight {pattern}: no input file matches"));
        }
        let weight =
            |name: &String| match self.weight.iter().filter(|(pattern, _)| fits(pattern, name)).collect::<Vec<_>>()[..]
            {
                [] => Ok(1.0),
                [(_, weight)] => Ok(*weight),
                [(one, _), (other, _), ..] => Err(format!("--weight {one} and --weight {other} both match {name}")),
            };
        names.iter().map(weight).collect()
    }
}

/// Returns the formats of `convert`: they write all stacks of a profile.
pub fn converted_formats() -> Vec<&'static str> {
    let forms = REGISTRY.view("stacks").map_or(&[][..], |stacks| stacks.forms);
    let formats = REGISTRY.formats().iter().filter(|format| format.form.is_whole() && forms.contains(&format.form));
    formats.map(|format| format.name).collect()
}

#[derive(Args)]
#[command(after_help = CONVERT_EXAMPLES)]
pub struct ConvertArgs {
    /// Profile: a file, a URL, or `-` for stdin
    #[arg(value_name = "FILE|URL")]
    pub file: PathBuf,
    /// Output file; the extension sets the format (.pb.gz, .pb, .pb.zst, .folded, .speedscope.json, .flame.svg)
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Output format, if the extension does not set it
    #[arg(long, value_parser = PossibleValuesParser::new(converted_formats()))]
    pub format: Option<String>,
    /// Sample type to write as folded, speedscope or flamegraph, which hold a single type [default: the profile's]
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
  pprofdiff convert cpu.pb.gz -o cpu.flame.svg                                the flame graph as a picture

Converting to pprof loses nothing. Two-sided input (a written diff, folded stacks with two numbers) stays two-sided.";

#[derive(Args)]
#[command(after_help = BATCH_HELP)]
#[command(mut_arg("n", |a| a.help("Rows per pair, 0 for all [default: 3 in text, 100 in jsonl, all elsewhere]")))]
#[command(mut_arg("sort", |a| a.default_value("flat")))]
pub struct BatchArgs {
    /// Two directories, two patterns (quoted), two profiles, or one manifest
    #[arg(value_name = "BASE NEW|MANIFEST", num_args = 1..=2, required = true)]
    pub pairs: Vec<String>,
    /// Fetch the URLs in a manifest; without this option they are errors
    #[arg(long, hide_short_help = true)]
    pub allow_urls: bool,
    /// Add up the files of a side [default: treat them as runs and show their means]
    #[arg(long, hide_short_help = true)]
    pub sum: bool,
    /// Pair the files of one pattern by keys: service={1},version={2}
    ///
    /// {1} is the text that the first wildcard matched, and {host} is the profile's value of the label "host". In a manifest
    /// (CSV, or JSON lines with a column "profile"), keys are columns: service,version. --base and --new give the keys
    /// of each side; all files of a side are its runs, or are added up with --sum. Add a key for anything that may
    /// differ otherwise, such as the host or kernel: only profiles with equal keys are compared, and --rank reports
    /// what the changes share.
    #[arg(long, value_name = "KEYS", requires_all = ["base", "new"])]
    group: Option<String>,
    /// With --group: keys of the base, such as version=v1 or version=@previous
    #[arg(long, value_name = "KEY=VALUE", requires = "group", hide_short_help = true)]
    base: Option<String>,
    /// With --group: keys of the new side, such as version=v2 or version=@latest
    #[arg(long, value_name = "KEY=VALUE", requires = "group", hide_short_help = true)]
    new: Option<String>,
    #[command(flatten)]
    rows: RowArgs,
    #[arg(long, value_name = "VIEW", default_value = "top", value_parser = pair_view, help = views())]
    view: View,
    /// Rank pairs by change beyond noise, with the causes they share
    #[arg(long, conflicts_with = "view")]
    pub rank: bool,
    /// With --rank: accepted share of false positives among the pairs reported as changed
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
  pprofdiff batch main/ branch/                                  pairs the files with the same relative path
  pprofdiff batch 'main/*/cpu.pb.gz' 'branch/*/cpu.pb.gz'        pairs the files for which * is the same
  pprofdiff batch 'prof/*/*/*.pb.gz' --group service={1},version={2} --base version=v1 --new version=v2 --rank
  pprofdiff batch pairs.csv --format jsonl -o diffs.jsonl        columns base, new, name; or lines of JSON with these
                                                                 keys in pairs.jsonl

A pair that fails is reported and does not stop the others; the exit code is then 2. It is 1 if all pairs were compared,
but some files lack a partner on the other side, as in `diff -r`. Ctrl-C stops the batch and keeps the finished pairs,
also in the file of -o; the exit code is then 130.";

fn pair_view(text: &str) -> pprofdiff::Result<View> {
    REGISTRY.pair_view(text)
}

fn views() -> String {
    format!("View to show for each pair: {}", REGISTRY.pair_view_names())
}

impl BatchArgs {
    /// Returns the keys that pair the files, if `--group` is given.
    pub fn groups(&self) -> Option<Groups> {
        Some(Groups::new(self.group.as_ref()?, self.base.as_ref()?, self.new.as_ref()?))
    }

    /// Returns the maximum number of rows in a ranking's tables, or `None` if `-n` is not given.
    pub fn ranked_rows(&self) -> Option<usize> {
        self.rows.n.map(|n| if n == 0 { usize::MAX } else { n })
    }

    /// Returns the view of each pair. Its tables have `usual` rows unless `-n` is given.
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
    pub sides: SideArgs,
    /// Port on 127.0.0.1 [default: any free port]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Open the page in the browser
    #[arg(long)]
    pub open: bool,
    #[command(flatten)]
    pub load: LoadArgs,
}

#[derive(Args)]
pub struct McpArgs {
    /// Load URLs that an agent requests; without this option they are errors
    #[arg(long)]
    pub allow_urls: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SeriesRows {
    /// One row per lasting change: the build since which a frame costs more or less, beyond the usual variation
    Shifts,
    /// One row per frame: its largest step, and the builds in which it was first and last seen
    Movers,
    /// One row per step: the change of a frame from one build to the next
    Steps,
    /// One row per build and frame: the data behind all other tables
    Values,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SeriesOrder {
    /// Sort by key, comparing numbers as numbers: build-9 comes before build-10
    Key,
    /// Keep the order of the arguments
    Given,
}

#[derive(Args)]
#[command(after_help = SERIES_HELP)]
#[command(mut_arg("sort", |a| a.default_value("flat").help("Follow flat (own cost) or cum (cost with callees)")))]
pub struct SeriesArgs {
    /// A quoted pattern, or files and URLs: one profile per build
    #[arg(value_name = "PATTERN|FILE|URL", required = true)]
    pub builds: Vec<PathBuf>,
    /// Compare each build with this profile instead of the previous build
    #[arg(long, value_name = "FILE|URL")]
    pub base: Option<PathBuf>,
    /// Order of the builds [default: key]
    #[arg(long, value_enum, default_value = "key", hide_default_value = true, hide_short_help = true)]
    pub order: SeriesOrder,
    /// Follow one history per service: service={1},build={2}
    ///
    /// {1} is the text that the first wildcard matched. The key "build", or else the last key, is the build; files with equal
    /// other keys are one history. In a manifest (CSV, or JSON lines with a column "profile"), keys are columns:
    /// service,build. Histories are ranked by their largest lasting change. JSON and CSV also have the rows of each.
    #[arg(long, value_name = "KEYS", conflicts_with_all = ["base", "order"])]
    pub group: Option<String>,
    /// Order the builds by the history of their commits, from the repository in DIR [default: the current directory]
    ///
    /// The keys of the builds must be commits, with 7 to 40 digits. The first build with each change is shown with the
    /// subject of its commit.
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".", require_equals = true,
        conflicts_with_all = ["base", "order"])]
    pub git: Option<PathBuf>,
    /// Kind of rows [default: shifts; movers with --base or fewer than six builds]
    #[arg(long, value_enum)]
    pub rows: Option<SeriesRows>,
    /// With --rows values: also write rows for builds that lack the frame
    #[arg(long, hide_short_help = true)]
    pub dense: bool,
    #[command(flatten)]
    pub shown: RowArgs,
    /// Add causes: of each shift, or of the largest change
    ///
    /// The cause of a shift is determined from at most five builds before it and five builds after it. For other rows,
    /// one line below the table explains the largest change. With --group, the text explains the largest shift of each
    /// history, and JSON has the causes of all shifts.
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
  pprofdiff series 'builds/*/cpu.pb.gz'                    find the first bad build
  pprofdiff series builds/*/cpu.pb.gz --sort cum -n 5      the part in which the paths differ is the key
  pprofdiff series 'branches/*/cpu.pb.gz' --base main.pb.gz   compare each with one base
  pprofdiff series 'builds/*/cpu.pb.gz' --explain          explain the changes
  pprofdiff series 'runs/*/*.pb.gz' --group service={1},build={2}   which service changed most, and since which build
  pprofdiff series 'runs/*/*.pb.gz' --group service={1},build={2} --explain   and why
  pprofdiff series 'builds/*.pb.gz' --git                  * is a commit: order by history, name the first bad commit
  pprofdiff series 'builds/*/cpu.pb.gz' -o history.html    charts of each frame, and flame graphs
  pprofdiff series 'builds/*/cpu.pb.gz' --rows values --format csv -o values.csv   one row per build and frame

The text that * matches is the key of the build. A build that fails is reported, its two neighbours are compared with
each other, and the exit code is 2. Percentages are shares of the total of the build before the step.";

/// Parses a duration above zero.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let parsed = parse_duration(text).map_err(|e| e.to_string())?;
    if parsed.is_zero() { Err("must be greater than zero".to_owned()) } else { Ok(parsed) }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnResetArg {
    /// Fail with an error
    Error,
    /// Write the new snapshot unchanged
    Pass,
    /// Treat decreased counters as unchanged
    Clamp,
}

#[derive(Args)]
#[command(after_help = DELTA_EXAMPLES)]
pub struct DeltaArgs {
    /// Snapshots, oldest first, or one http(s) URL to take them from; `-` is stdin
    #[arg(value_name = "SNAPSHOT|URL", required = true)]
    pub snapshots: Vec<PathBuf>,
    /// Output file; with several deltas, {index} is the number of the delta, from 1. .zst uses zstd, .pb is not
    /// compressed, and any other extension uses gzip
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Sample types that count from the start of the process; other types are copied from the newer snapshot. At least
    /// one of the default types must exist, and all of the types given here
    #[arg(long, value_name = "TYPE,...", value_delimiter = ',', default_values = CUMULATIVE.iter().copied())]
    cumulative: Vec<String>,
    /// Action if the process restarted, which shows as a counter that decreased or as missing samples that held more
    /// than half of the total
    #[arg(long, value_enum, default_value = "error")]
    on_reset: OnResetArg,
    #[arg(long, value_name = "N", help = level_help())]
    pub level: Option<u32>,
    /// Take a snapshot from URL, and a second one N seconds later
    #[arg(long, value_name = "N", conflicts_with_all = ["every", "count"], value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
    /// Take snapshots from URL repeatedly at this interval (30s, 5m)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    every: Option<Duration>,
    /// Stop after N deltas [default: continue until Ctrl-C]
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
    format!("Compression level: {}, {}", about("gzip", Compression::Gzip), about("zstd", Compression::Zstd))
}

const DELTA_EXAMPLES: &str = "\
Examples:
  pprofdiff delta heap1.pb.gz heap2.pb.gz -o delta.pb.gz
  pprofdiff delta heap*.pb.gz -o 'delta-{index}.pb.gz'      one delta per pair of consecutive snapshots
  pprofdiff delta http://localhost:6060/debug/pprof/heap --seconds 30 -o delta.pb.gz
  pprofdiff delta http://localhost:6060/debug/pprof/mutex --every 30s --count 10 -o 'mutex-{index}.pb.gz'

While snapshots are taken from a URL, the newest one is also kept next to OUT, unless OUT is -. If the next snapshot
fails, or after Ctrl-C, no data is lost.";

/// When to take snapshots from a URL.
#[derive(Clone, Copy)]
pub struct SnapshotSchedule {
    pub every: Duration,
    /// The number of deltas; `None` means no limit.
    pub count: Option<u64>,
}

impl DeltaArgs {
    pub fn options(&self) -> DeltaOptions {
        let on_reset = match self.on_reset {
            OnResetArg::Error => OnReset::Error,
            OnResetArg::Pass => OnReset::Pass,
            OnResetArg::Clamp => OnReset::Clamp,
        };
        // The default types need not all exist, but the types that the user gave must.
        let is_default = self.cumulative == CUMULATIVE;
        let options = DeltaOptions::default().with_on_reset(on_reset);
        if is_default { options } else { options.with_cumulative(&self.cumulative) }
    }

    pub fn schedule(&self) -> Option<SnapshotSchedule> {
        match (self.seconds, self.every) {
            (Some(seconds), _) => Some(SnapshotSchedule { every: Duration::from_secs(seconds), count: Some(1) }),
            (None, every) => every.map(|every| SnapshotSchedule { every, count: self.count }),
        }
    }
}
