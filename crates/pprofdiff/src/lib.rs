//! Compares pprof profiles: what changed between two of them, with both sides of every number.
//!
//! ```no_run
//! use pprofdiff::{Diff, LoadOptions, Query, Sort};
//!
//! # fn main() -> pprofdiff::Result<()> {
//! let diff = Diff::open(&["main.pb.gz".as_ref()], &["branch.pb.gz".as_ref()], &LoadOptions::default())?;
//! let measure = diff.measure(&Query::default())?;
//! let top = measure.top(Sort::Cum);
//! for row in top.rows.iter().take(10) {
//!     println!("{} -> {} ({:+})  {}", row.cum.base, row.cum.new, row.cum.delta(), top.frames.name(row.frame));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The middle layer of pprofdiff: profiles are read by `pprofdiff-profile`, of which callers find here what they
//! need, and what is found is written by `pprofdiff-report`. A [`Diff`] is two sides, a [`Selection`] what filters
//! leave of them, a [`Measure`] one sample type of that, from which tables, graphs and listings are made. A [`Gate`]
//! says whether a change is within limits, a [`Series`] follows many builds. The crate starts no thread: inside a
//! rayon pool of the caller's (`pool.install(|| ...)`) it uses that pool, elsewhere it works on the calling thread.

mod batch;
mod diff;
#[cfg(feature = "gate")]
mod gate;
mod series;
#[cfg(feature = "list")]
mod sources;

#[cfg(feature = "files")]
pub use batch::map_pairs;
pub use batch::{Batch, diff_many};
pub use diff::{
    Call, Diff, Edge, Edges, Filter, FilterKind, Filters, Flame, FlameFrame, FlameNode, FlameOptions, Frames,
    Granularity, Graph, GraphOptions, LabelRow, Labels, MatchedStacks, Measure, Normalize, Pair, ProfileSums, Pruned,
    Query, Rank, Relation, Selection, Side, Sort, StackRow, Stacks, Status, Summary, Top, TopRow, Widths,
};
#[cfg(feature = "list")]
pub use diff::{Line, LineChange, Listing, Routine, SourceText, Sources};
#[cfg(feature = "gate")]
pub use gate::{Check, Finding, Gate, Halves, Outcome, RuleCheck, Runs};
#[cfg(feature = "files")]
pub use pprofdiff_profile::input::{
    NamedPair, directory_pairs, file_builds, find_pairs, manifest_pairs, pattern_builds, pattern_pairs, sort_builds,
};
#[cfg(feature = "files")]
pub use pprofdiff_profile::write_file;
pub use pprofdiff_profile::{
    BuilderLine, CUMULATIVE, Compression, Delta, DeltaComputer, Error, ErrorKind, FunctionId, Label, LabelValue,
    LoadOptions, LocationId, MappingId, OnReset, Policy, Profile, ProfileBuilder, Reset, Result, Sample, Source,
    StringId, Treatment, WriteOptions, columns, delta, harmless, input, is_harmful, merge, proto, redacted, units,
};
pub use series::{
    Against, Build, Builds, FrameValue, Mover, Order, Ranked, Series, SeriesBuilder, SeriesOptions, Step, series,
};
#[cfg(feature = "list")]
pub use sources::{SourceDirs, SourceFiles};

#[doc(hidden)]
pub use pprofdiff_profile::interner;
