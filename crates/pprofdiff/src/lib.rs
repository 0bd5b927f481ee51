//! Compares pprof profiles: what changed between two of them, with both sides of every number.
//!
//! ```no_run
//! use pprofdiff::{Diff, LoadOptions, Query, Sort};
//!
//! # fn main() -> pprofdiff::Result<()> {
//! let diff = Diff::open(&["main.pb.gz".as_ref()], &["branch.pb.gz".as_ref()], &LoadOptions::default())?;
//! let view = diff.view(&Query::default())?;
//! let top = view.top(Sort::Cum);
//! for row in top.rows.iter().take(10) {
//!     println!("{} -> {} ({:+})  {}", row.cum.base, row.cum.new, row.cum.delta(), top.frames.name(row.frame));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Three floors, of which a lower one never knows a higher one: the profile (bytes to validated
//! columns, and back), the diff (two sides to ordered rows), and [`report`] (rows to text, JSON, CSV,
//! Markdown, HTML, folded stacks). On top of the diff stands the [`Gate`], which says whether a change is
//! within limits. Beside the diff, on the same floor and knowing nothing of it, is the
//! [`delta`](delta()) of two snapshots of a growing profile. The crate starts no thread: inside a rayon pool of the caller's
//! (`pool.install(|| ...)`) it uses that pool, elsewhere it works on the calling thread.

mod advice;
mod batch;
mod delta;
mod diff;
mod error;
mod gate;
mod harmless;
mod output;
mod pairs;
mod parallel;
mod profile;
mod redact;
pub mod report;
mod series;
mod sources;
mod units;

pub use batch::{Batch, Source, diff_many, map_pairs};
pub use delta::{CUMULATIVE, Delta, DeltaComputer, OnReset, Policy, Reset, Treatment, delta};
pub use diff::{
    Call, Diff, Edge, Edges, Filters, Flame, FlameFrame, FlameNode, FlameOptions, Frames, Granularity, Graph,
    GraphOptions, LabelRow, Labels, Line, LineChange, Listing, Normalize, Pair, Pruned, Query, Rank, Relation, Routine,
    Side, Sort, SourceText, Sources, StackRow, Stacks, Status, Summary, Top, TopRow, View, Widths,
};
pub use error::{Error, ErrorKind, Result};
pub use gate::{Check, Finding, Gate, Halves, Outcome, RuleCheck, Runs};
pub use harmless::harmless;
pub use output::write_file;
pub use pairs::{NamedPair, directory_pairs, find_pairs, manifest_pairs, pattern_pairs};
pub use profile::{Compression, Label, LabelValue, LoadOptions, Profile, Sample, StringId, WriteOptions, merge, proto};
pub use redact::redacted;
pub use series::{
    Against, Build, Builds, FrameValue, Mover, Order, Ranked, Series, SeriesBuilder, SeriesOptions, Step, file_builds,
    pattern_builds, series, sort_builds,
};
pub use sources::SourceDirs;
