//! The only accepted differences between our rows and pprof's, with their reasons. Everything not listed here must be
//! equal.
//!
//! Each exception is either a bug of pprof, or a row that only one of the two prints. If a bug regroups frames, pprof
//! gets a profile that does not trigger it, so that all numbers can still be compared.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use crate::command::Entry;
use crate::profile;
use crate::question::Granularity;
use crate::reports::edge;
use crate::rows::Row;

/// The reasons. Every failure prints them, so that nobody investigates an intended difference.
pub const REASONS: [&str; 16] = [
    FILES,
    COLUMNS,
    NAMELESS,
    CONVERTED,
    MERGED_TOTALS,
    MERGED_ROWS,
    VANISHED_ROWS,
    ZERO_EDGES,
    ZERO_LABELS,
    BASE_LABEL,
    EMPTY_STACKS,
    ZERO_STACKS,
    UNTRIMMED,
    RAW_FRAMES,
    RAW_DURATION,
    RAW_BINARY,
];

/// At `files`, pprof drops the name of a function but keeps its start line and its binary, and prints one row for each
/// distinct combination. The cum of a file cannot be computed from such rows, because a stack may pass through several
/// of them.
pub const FILES: &str = "files: pprof splits a file by binary and by the start lines of its functions; it gets a copy of \
                         the profile in which files have neither";

/// At `addresses`, pprof splits lines by column and prints the columns, except with `-noinlines`, although
/// `-showcolumns` exists to request that.
pub const COLUMNS: &str = "addresses: pprof splits lines by columns that were not asked for; it gets a copy of the \
                           profile without columns";

/// pprof treats functions without a name like files at `files`, at every granularity. No producer of the corpus writes
/// such functions with a file, a line or a start line. `generated` does not, either.
pub const NAMELESS: &str = "functions without a name: pprof splits them by binary and start line";

/// If the sides give a sample type in different units, pprof converts the coarser one, and drops each sample whose
/// value of that type is zero, whatever its other values are. The corpus has no such pair. In `generated` the values of
/// a coarser type are never zero.
pub const CONVERTED: &str = "units that differ: pprof drops samples that are zero in the type that it converts";

/// A row with equal sides is `same` for us, and omitted by pprof. In one profile, such a row is a node whose negative
/// values cancel the others.
pub const VANISHED_ROWS: &str = "pprof leaves out nodes whose flat and cum are both zero; so do we in comparing, with the \
                                 edges at such a node";

/// The total of a diff is the sum of the base's absolute values. pprof computes it after merging samples with the same
/// stack and labels, so negative values have already reduced it. A written diff contains merged samples, too.
pub const MERGED_TOTALS: &str = "totals of a diff are not compared where the base has negative values";

/// Samples of one stack that cancel out give a row of zeros in the diff of the files, and no row in the written diff,
/// where they were merged.
pub const MERGED_ROWS: &str = "written diffs: rows in which all is zero are left out";

/// The columns of one side of a diff are zero for frames that exist only on the other side. In pprof's graph of one
/// side, an edge is zero only if negative values of the profile itself cancel it.
pub const ZERO_EDGES: &str = "sides of a diff: rows that are zero on one side are left out of it";

/// Unlike pprof's other reports, `-tags` also lists labels that occur only on samples whose value is zero.
pub const ZERO_LABELS: &str = "labels: sums of zero are left out on both sides of the comparison";

/// `-diff_base` adds a label to the samples of the base, and `-tags` shows it like a label of the profile.
pub const BASE_LABEL: &str = "labels: pprof::base is not a label of the profile (left out in reading -tags)";

/// `-traces` omits samples without frames. They belong to no function, but count in the total.
pub const EMPTY_STACKS: &str = "stacks: the stack without frames is left out";

/// Like `-tags`, `-traces` also lists samples whose value is zero.
pub const ZERO_STACKS: &str = "stacks: sums of zero are left out on both sides of the comparison";

/// If a file contains `drop_frames`, pprof drops these frames at load, while our `raw` shows the file unchanged.
pub const RAW_FRAMES: &str = "raw: one profile that names frames to drop is not compared";

/// We report the duration of the new side for a diff. pprof adds the duration of the base.
pub const RAW_DURATION: &str = "raw: the duration of a diff is not compared";

/// pprof invents a binary for a profile without binaries.
pub const RAW_BINARY: &str = "raw: of profiles without binaries, the one that pprof invents is left out";

/// All other reports trim this prefix.
pub const UNTRIMMED: &str = "stacks: -traces does not cut /proc/self/cwd/ off file names (done in reading it)";

/// The profile for pprof, which may differ from the one for our command: see [`FILES`] and [`COLUMNS`].
pub struct ForPprof {
    whole: PathBuf,
    with_files_alone: PathBuf,
    without_columns: PathBuf,
}

impl ForPprof {
    pub fn new(path: &Path) -> ForPprof {
        let bytes = profile::inflated(path);
        ForPprof {
            whole: path.into(),
            with_files_alone: copy("with-files-alone", path, profile::with_files_alone(&bytes)),
            without_columns: match profile::without_columns(&bytes) {
                same if same == bytes => path.into(),
                changed => copy("without-columns", path, changed),
            },
        }
    }

    pub fn at(&self, granularity: Granularity) -> &Path {
        match granularity {
            Granularity::Files => &self.with_files_alone,
            Granularity::Addresses => &self.without_columns,
            _ => &self.whole,
        }
    }
}

fn copy(kind: &str, path: &Path, bytes: Vec<u8>) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(kind);
    std::fs::create_dir_all(&folder).unwrap();
    // Tests run in parallel and share the folder, so the copy gets its final name when it is complete.
    let folders_and_name: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    let name = folders_and_name[folders_and_name.len().saturating_sub(3)..].join("-");
    let (copy, unfinished) = (folder.join(&name), folder.join(format!("{name}.{:?}", std::thread::current().id())));
    std::fs::write(&unfinished, bytes).unwrap();
    std::fs::rename(&unfinished, &copy).unwrap();
    copy
}

/// The compared rows of `top` and `peek`: see [`VANISHED_ROWS`].
pub struct ComparedRows {
    pub nodes: Vec<Row>,
    edges: Vec<Row>,
    /// Prefixes of edges of names that occur both in a vanished node and in a remaining one.
    ambiguous: Vec<String>,
}

impl ComparedRows {
    /// Takes the rows of `top` with these sums, and the edges of `peek` with this weight.
    pub fn new(top: &[Entry], [flat, cum]: [&str; 2], peek: &[Entry], weight: &str) -> ComparedRows {
        let (vanished, nodes): (Vec<Row>, Vec<Row>) =
            top.iter().map(|entry| entry.sums(flat, cum)).partition(Row::is_zero);
        let names: HashSet<&str> = nodes.iter().map(|node| node.subject.as_str()).collect();
        let ambiguous = vanished.iter().filter(|node| names.contains(node.subject.as_str()));
        let ambiguous = ambiguous.map(|node| edge(&node.subject, "", "")).collect();
        let edges = peek.iter().filter(|edge| names.contains(edge.text("node").as_str()));
        let edges = edges.map(|entry| entry.edge(weight)).collect();
        ComparedRows { nodes, edges, ambiguous }
    }

    /// Returns the edges to compare, ours and pprof's. If a name is ambiguous, `peek` does not distinguish the edges of
    /// the vanished node, which are zero, so these edges are omitted.
    pub fn edges(&self, pprofs: Vec<Row>) -> (Vec<Row>, Vec<Row>) {
        let clear = |row: &Row| !row.is_zero() || !self.ambiguous.iter().any(|start| row.subject.starts_with(start));
        (self.edges.iter().filter(|row| clear(row)).cloned().collect(), pprofs.into_iter().filter(clear).collect())
    }
}

/// Sums the rows by stack, because pprof lists every sample separately. See [`EMPTY_STACKS`] and [`ZERO_STACKS`].
pub fn added_up(rows: impl IntoIterator<Item = Row>) -> Vec<Row> {
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for row in rows {
        *sums.entry(row.subject).or_default() += row.numbers[0];
    }
    let rows = sums.into_iter().filter(|(stack, _)| !stack.is_empty());
    without_zeros(rows.map(|(subject, sum)| Row { subject, numbers: vec![sum] }))
}

/// Removes rows of zeros: see [`ZERO_EDGES`] and [`ZERO_LABELS`].
pub fn without_zeros(rows: impl IntoIterator<Item = Row>) -> Vec<Row> {
    rows.into_iter().filter(|row| !row.is_zero()).collect()
}
