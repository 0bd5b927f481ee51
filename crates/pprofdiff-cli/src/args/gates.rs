//! What check and explain take.

use std::path::PathBuf;

use clap::Args;

use super::sides::Sides;
use super::table::{LoadArgs, QueryArgs};
use super::views::OutputArgs;
use crate::baseline::MAX_PROFILES;

const BASELINE: &str = "Baseline";

/// A folder of profiles that takes the place of the base.
#[derive(Args)]
pub struct BaselineArgs {
    /// Compare with a branch's last profiles in this folder
    #[arg(help_heading = BASELINE, long = "baseline", value_name = "DIR", conflicts_with = "base")]
    pub dir: Option<PathBuf>,
    /// The branch that is compared with, and under which profiles are stored
    #[arg(help_heading = BASELINE, long, value_name = "NAME", default_value = "main", value_parser = name, requires = "dir", hide_short_help = true)]
    pub branch: String,
    /// Only profiles with this label; those that are stored get it
    #[arg(help_heading = BASELINE, long, value_name = "KEY=VALUE", value_parser = label, requires = "dir", hide_short_help = true)]
    pub label: Vec<(String, String)>,
    /// Store the new profiles, unless they exceed a limit
    #[arg(help_heading = BASELINE, long, requires = "dir", hide_short_help = true)]
    pub store: bool,
    /// Store them even so, and forget the older ones: what changed is meant to stay
    #[arg(help_heading = BASELINE, long, requires = "dir", hide_short_help = true)]
    pub accept: bool,
    /// The commit of what is stored
    #[arg(help_heading = BASELINE, long, value_name = "ID", value_parser = name, requires = "dir", hide_short_help = true)]
    pub commit: Option<String>,
    /// Its time, as 2026-11-22T11:52:00Z [default: now]
    #[arg(help_heading = BASELINE, long, value_name = "TIME", value_parser = time, requires = "dir", hide_short_help = true)]
    pub commit_time: Option<u64>,
    /// How many profiles of a branch are kept and compared with
    #[arg(help_heading = BASELINE, long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u8).range(1..=MAX_PROFILES as i64), requires = "dir", hide_short_help = true)]
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
    "BASE and NEW, or with --baseline only new ones: files, URLs, `-` for stdin")))]
#[command(mut_arg("sample_type", |a| a.value_name("TYPE").help("Sample type of rules that name none")))]
#[command(mut_arg("normalize", |a| a.help(
    "Scale each run of the new side by total, duration or a factor")))]
pub struct CheckArgs {
    #[command(flatten)]
    pub input: Sides,
    /// A limit such as 'total>+5%', besides those of the configuration
    #[arg(long, value_name = "RULE")]
    pub fail_on: Vec<String>,
    /// Where limits and what is allowed stand [default: pprofdiff.toml, if there is one here]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub config: Option<PathBuf>,
    /// Ignore frames below this part of both totals [default: 1% of each]
    #[arg(long, value_name = "PERCENT")]
    pub floor: Option<String>,
    #[command(flatten)]
    pub baseline: BaselineArgs,
    /// Fail what exceeds a limit, however much chance explains
    #[arg(long)]
    pub strict: bool,
    /// Run i of the new side belongs to run i of the base: what both have in common is no difference
    #[arg(long, conflicts_with = "strict", hide_short_help = true)]
    pub paired: bool,
    /// Inconclusive, not passed, if a growth as large as the limit would have been missed
    #[arg(long, conflicts_with = "strict", hide_short_help = true)]
    pub require_power: bool,
    /// Say why the sides differ also where no rule fails
    #[arg(long, hide_short_help = true)]
    pub explain: bool,
    #[command(flatten)]
    pub git: GitArgs,
    #[command(flatten)]
    pub query: QueryArgs<false>,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Write the findings to this file as well, in the format that its ending says; or what was compared, in a format
    /// that has no findings: a page (.html), a picture (.svg), a diff for pprof (.pb.gz), rows (.csv)
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub report: Vec<PathBuf>,
    #[command(flatten)]
    pub load: LoadArgs,
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

/// Which commits the causes are looked for in.
#[derive(Args)]
pub struct GitArgs {
    /// Name the commit of each cause, of the range A..B of the repository here [default: what its upstream, main or master
    /// lacks]
    #[arg(long = "git", value_name = "RANGE", num_args = 0..=1, default_missing_value = "", hide_short_help = true)]
    pub range: Option<String>,
}

#[derive(Args)]
#[command(after_help = EXPLAIN_HELP)]
#[command(mut_arg("sample_type", |a| a.help(
    "Sample type, alone or with the one that counts it")))]
pub struct ExplainArgs {
    #[command(flatten)]
    pub input: Sides,
    /// Operations that a run of the base and of the new side did
    #[arg(long, value_name = "N0,N1", value_parser = operations)]
    pub ops: Option<(f64, f64)>,
    /// The same from what benchmarks wrote: `go test -bench`, criterion's sample.json, pytest-benchmark's JSON
    #[arg(long, value_names = ["BASE", "NEW"], num_args = 2, conflicts_with = "ops", hide_short_help = true)]
    pub ops_from: Vec<PathBuf>,
    #[command(flatten)]
    pub git: GitArgs,
    /// Minimum change of a cause, of the base's total
    #[arg(long, value_name = "PERCENT", value_parser = percentage, default_value = "0.2%")]
    pub min_effect: f64,
    /// Runs of equal builds, from which only noise is learned: files, or one pattern
    #[arg(long, value_name = "FILE", num_args = 1.., hide_short_help = true)]
    pub noise: Vec<PathBuf>,
    /// Heap profiles of the same runs, a file or pattern a side: garbage collection is theirs who allocate more
    #[arg(long, value_names = ["BASE", "NEW"], num_args = 2, hide_short_help = true)]
    pub with: Vec<PathBuf>,
    /// What is known of your own runtime: the table explain of this file [default: pprofdiff.toml, if there is one here]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub config: Option<PathBuf>,
    /// Text or Markdown of about so many tokens of a language model, the most important first
    #[arg(long, value_name = "TOKENS", hide_short_help = true)]
    pub budget: Option<usize>,
    /// End with 1 if something changed and 3 if these samples can't tell
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
  pprofdiff explain --base main*.pb.gz --new branch*.pb.gz      runs, from which noise is measured
  pprofdiff explain old.pb.gz new.pb.gz --ops 1000,3000         a benchmark that ran 1000 and 3000 times
  pprofdiff explain main.pb.gz branch.pb.gz --noise 'nightly/*.pb.gz'      runs of equal builds show what noise is
  pprofdiff explain cpu0.pb.gz cpu1.pb.gz --with heap0.pb.gz heap1.pb.gz      who makes the garbage
  pprofdiff explain main.pb.gz branch.pb.gz --git main..branch      and which commit did it
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
pub(super) fn percentage(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').unwrap_or(text).trim().parse().ok();
    let part = number.map(|n: f64| n / 100.0).filter(|part| (0.0..1.0).contains(part));
    part.ok_or_else(|| "write it in percent, such as 0.5%".to_owned())
}
