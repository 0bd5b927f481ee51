//! The arguments of `check` and `explain`.

use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use pprofdiff::check::SameCode;
use pprofdiff::time::parse_time;

use super::sides::SideArgs;
use super::table::{LoadArgs, QueryArgs};
use super::views::OutputArgs;
use crate::baseline::{MAX_PROFILES, since_1970};

const BASELINE: &str = "Baseline";

/// A directory of profiles that replaces the base.
#[derive(Args)]
pub struct BaselineArgs {
    /// Compare with a branch's last profiles in this directory
    #[arg(help_heading = BASELINE, long = "baseline", value_name = "DIR", conflicts_with = "base")]
    pub dir: Option<PathBuf>,
    /// Branch to compare with, and to store profiles under
    #[arg(help_heading = BASELINE, long, value_name = "NAME", default_value = "main", value_parser = name, requires = "dir", hide_short_help = true)]
    pub branch: String,
    /// Compare only with profiles that have this label; stored profiles get it
    #[arg(help_heading = BASELINE, long, value_name = "KEY=VALUE", value_parser = label, requires = "dir", hide_short_help = true)]
    pub label: Vec<(String, String)>,
    /// Store the new profiles, unless they exceed a limit
    #[arg(help_heading = BASELINE, long, requires = "dir", hide_short_help = true)]
    pub store: bool,
    /// Store the new profiles even if they exceed a limit, and drop older profiles, because the change is intended
    #[arg(help_heading = BASELINE, long, requires = "dir", hide_short_help = true)]
    pub accept: bool,
    /// Commit of the stored profiles
    #[arg(help_heading = BASELINE, long, value_name = "ID", value_parser = name, requires = "dir", hide_short_help = true)]
    pub commit: Option<String>,
    /// Time of that commit, as 2026-11-22T11:52:00Z [default: now]
    #[arg(help_heading = BASELINE, long, value_name = "TIME", value_parser = time, requires = "dir", hide_short_help = true)]
    pub commit_time: Option<u64>,
    /// Number of profiles to keep per branch and labels, and to compare with; a new side with more is kept whole
    #[arg(help_heading = BASELINE, long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u8).range(1..=MAX_PROFILES as i64), requires = "dir", hide_short_help = true)]
    pub keep: u8,
}

/// Parses the name of a branch or commit, or a part of a label.
fn name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > 200 { Err("must have 1 to 200 bytes".to_owned()) } else { Ok(text.to_owned()) }
}

/// Parses a label, `key=value`.
fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as key=value")?;
    Ok((name(key)?, name(value)?))
}

/// Parses a time into seconds since 1970.
fn time(text: &str) -> Result<u64, String> {
    const SECOND: i128 = 1_000_000_000;
    let now = i128::from(since_1970(SystemTime::now())) * SECOND;
    parse_time(text, now).map(|time| (time / SECOND) as u64).map_err(|e| e.to_string())
}

#[derive(Args)]
#[command(after_help = CHECK_HELP)]
#[command(mut_arg("files", |a| a.help(
    "BASE and NEW, or only NEW with --baseline: files, folders, patterns, URLs, `-`")))]
#[command(mut_arg("sample_type", |a| a.value_name("TYPE").help("Sample type for rules that do not name one")))]
#[command(mut_arg("normalize", |a| a.help(
    "Scale each run of the new side by total, duration or a factor")))]
pub struct CheckArgs {
    #[command(flatten)]
    pub input: SideArgs,
    /// Limit such as 'total>+5%'; the limits in the configuration apply, too
    #[arg(long, value_name = "RULE")]
    pub fail_on: Vec<String>,
    /// Configuration file with limits and exceptions [default: pprofdiff.toml in the current directory, if it exists]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub config: Option<PathBuf>,
    /// Ignore frames below this share of both totals [default: 1% of each]
    #[arg(long, value_name = "PERCENT")]
    pub floor: Option<String>,
    /// Name of the program in the report, to tell the reports of several programs apart
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub name: Option<String>,
    /// Add the findings that fail to the allow-list of the configuration, so that only new findings fail
    #[arg(long, hide_short_help = true)]
    pub accept_findings: bool,
    #[command(flatten)]
    pub baseline: BaselineArgs,
    /// Fail if a limit is exceeded, even if noise can explain the change
    #[arg(long)]
    pub strict: bool,
    /// Pair run i of the new side with run i of the base, which cancels noise that both share
    #[arg(long, conflicts_with = "strict", hide_short_help = true)]
    pub paired: bool,
    /// Report inconclusive instead of passed if a growth as large as the limit could have gone unnoticed
    #[arg(long, conflicts_with = "strict", hide_short_help = true)]
    pub require_power: bool,
    /// Slower functions with the same code: warn, fail, or ignore. Applies to limits on flat growth.
    /// Needs the binaries of both sides (--binary, or --base-binary and --new-binary) [default: same_code in the
    /// configuration, or warn]
    #[arg(long, value_name = "OUTCOME", value_parser = same_code(), hide_short_help = true, hide_possible_values = true)]
    pub same_code: Option<SameCode>,
    /// Explain why the sides differ even if no rule fails
    #[arg(long, hide_short_help = true)]
    pub explain: bool,
    #[command(flatten)]
    pub git: GitArgs,
    #[command(flatten)]
    pub query: QueryArgs<false>,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Also write this file, in the format of its extension: the findings (.md, .json), or the comparison as a page
    /// (.html), a picture (.svg), a diff for pprof (.pb.gz) or rows (.csv)
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub report: Vec<PathBuf>,
    #[command(flatten)]
    pub load: LoadArgs,
}

/// Returns the parser of `--same-code`.
fn same_code() -> impl TypedValueParser<Value = SameCode> {
    PossibleValuesParser::new(SameCode::ALL.map(SameCode::name)).map(|name| SameCode::named(&name).unwrap_or_default())
}

const CHECK_HELP: &str = "\
A rule is [TYPE:]total>LIMIT, or [TYPE:]flat|cum:FRAMES>LIMIT. FRAMES is any (checks each frame), each=RE (checks each
matching frame) or regex=RE (checks the sum of all matching frames). LIMIT is +5% or +10MB (growth), 2GB (new value), or
30% (share of the new total). A limit on a time or size needs its unit.

Examples:
  pprofdiff check main.pb.gz branch.pb.gz --fail-on 'total>+5%' --fail-on 'flat:regex=^encoding/>+10%'
  pprofdiff check main.pb.gz branch.pb.gz --fail-on 'cum:any>+20%' --floor 2%
  pprofdiff check --base main*.pb.gz --new branch*.pb.gz --fail-on 'alloc_space:total>+10MB' --format markdown
  pprofdiff check --baseline profiles cpu.pb.gz --fail-on 'total>+5%' --store --commit \"$SHA\"      on main
  pprofdiff check --baseline profiles cpu.pb.gz --fail-on 'total>+5%'      on a branch

Several files on a side are runs of the same program, and their medians are compared. A rule fails if its limit is
exceeded and chance alone would cause such a difference at most once in a hundred checks, whatever the number of rules.
A difference that chance can explain is inconclusive.
Exit codes: 0 pass, 1 regression (outranks the others), 2 usage or input error, 3 inconclusive, 4 a rule matches no frame.";

/// The range of commits to search for causes.
#[derive(Args)]
pub struct GitArgs {
    /// Name the commit of each cause, from the range A..B of the repository in the current directory [default: commits
    /// that are not in the upstream, main or master branch]
    #[arg(long = "git", value_name = "RANGE", num_args = 0..=1, default_missing_value = "", hide_short_help = true)]
    pub range: Option<String>,
}

#[derive(Args)]
#[command(after_help = EXPLAIN_HELP)]
#[command(mut_arg("sample_type", |a| a.help(
    "Sample type, alone or with the type that counts its events")))]
pub struct ExplainArgs {
    #[command(flatten)]
    pub input: SideArgs,
    /// Operations per run on each side, to compare cost per operation
    #[arg(long, value_name = "N0,N1", value_parser = operations)]
    pub ops: Option<(f64, f64)>,
    /// Read the operations from benchmark results: `go test -bench`, criterion's sample.json, pytest-benchmark's JSON
    #[arg(long, value_names = ["BASE", "NEW"], num_args = 2, conflicts_with = "ops", hide_short_help = true)]
    pub ops_from: Vec<PathBuf>,
    #[command(flatten)]
    pub git: GitArgs,
    /// Minimum change of a cause, as a share of the mean of both totals at equal work [default: 0.2%; of counted runs
    /// the effect in their runs.toml]
    #[arg(long, value_name = "PERCENT", value_parser = percentage)]
    pub min_effect: Option<f64>,
    /// A/A runs: profiles of equal builds, used only to estimate noise; files, or one pattern
    #[arg(long, value_name = "FILE", num_args = 1.., hide_short_help = true)]
    pub noise: Vec<PathBuf>,
    /// Heap profiles of the same runs, one file or pattern per side. GC cost is attributed to the functions that
    /// allocate more
    #[arg(long, value_names = ["BASE", "NEW"], num_args = 2, hide_short_help = true)]
    pub with: Vec<PathBuf>,
    /// Describe your own runtime in the [explain] table of this file [default: pprofdiff.toml in the current directory,
    /// if it exists]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub config: Option<PathBuf>,
    /// Exit with 1 if something changed and 3 if the samples are inconclusive
    #[arg(long, hide_short_help = true)]
    pub exit_code: bool,
    /// True if `bench` found no change of the total in the same runs.
    #[arg(skip)]
    pub undecided_total: bool,
    #[command(flatten)]
    pub query: QueryArgs<false>,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub load: LoadArgs,
}

const EXPLAIN_HELP: &str = "\
Examples:
  pprofdiff explain main.pb.gz branch.pb.gz
  pprofdiff explain --base main*.pb.gz --new branch*.pb.gz      several runs per side, to measure noise
  pprofdiff explain old.pb.gz new.pb.gz --ops 1000,3000         the benchmark ran 1000 and 3000 times
  pprofdiff explain main.pb.gz branch.pb.gz --noise 'nightly/*.pb.gz'      measure noise in runs of equal builds
  pprofdiff explain cpu0.pb.gz cpu1.pb.gz --with heap0.pb.gz heap1.pb.gz      attribute garbage collection
  pprofdiff explain main.pb.gz branch.pb.gz --git main..branch      name the commits
  pprofdiff explain main.pb.gz branch.pb.gz --format json

Several files on a side are runs of the same program and are not added up. Deltas are per run of the new side, after
accounting for the amount of work. Guarantees and limits: docs/explain.md.
Exit codes: 0 done, 2 usage or input error; with --exit-code also 1 change, 3 inconclusive.";

/// Parses the number of operations of both sides, `1000,3000`.
fn operations(text: &str) -> Result<(f64, f64), String> {
    let number = |text: &str| text.trim().parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
    let both = text.split_once(',').and_then(|(base, new)| Some((number(base)?, number(new)?)));
    both.ok_or_else(|| "write the operations of both sides as 1000,3000".to_owned())
}

/// Parses a percentage from 0 to below 100, with or without `%`, into a fraction.
pub(super) fn percentage(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').unwrap_or(text).trim().parse().ok();
    let part = number.map(|n: f64| n / 100.0).filter(|part| (0.0..1.0).contains(part));
    part.ok_or_else(|| "write a percentage from 0% to below 100%, such as 0.5%".to_owned())
}
