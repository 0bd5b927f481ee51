//! Where our rows may differ from pprof's, and why. This is the only place: whatever is not said here must be equal.
//!
//! Each exception is either a bug of pprof or a row that only one of the two prints. Where a bug regroups frames, pprof is
//! given a profile that does not set it off, so that all numbers are compared nevertheless.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use crate::command::Entry;
use crate::profile;
use crate::question::Granularity;
use crate::reports::edge;
use crate::rows::Row;

/// The reasons, printed with every failure, so that nobody looks for a difference that is meant.
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

/// At `files` pprof drops the name of a function but keeps its start line and its binary, and prints a file once for
/// every two that differ. A cum cannot be put together from such rows, since a stack may pass through several.
pub const FILES: &str = "files: pprof splits a file by binary and by the start lines of its functions; it gets a copy of \
                         the profile in which files have neither";

/// At `addresses` pprof splits and prints lines with their columns, though not with `-noinlines`, and `-showcolumns` is
/// there to ask for that.
pub const COLUMNS: &str = "addresses: pprof splits lines by columns that were not asked for; it gets a copy of the \
                           profile without columns";

/// What pprof does to files at `files` it does to functions without a name at every granularity. No producer of the
/// corpus writes such functions together with a file, a line or a start line, and neither does `generated`.
pub const NAMELESS: &str = "functions without a name: pprof splits them by binary and start line";

/// Where the sides give a sample type in different units, pprof converts the coarser one, and drops each of its samples
/// that is zero in that type, whatever its other values are. The corpus has no such pair; in `generated` the values of a
/// coarser type are never zero.
pub const CONVERTED: &str = "units that differ: pprof drops samples that are zero in the type that it converts";

/// A row whose two sides are equal is an answer (`same`) for us and nothing for pprof. In one profile, it is a node whose
/// negative values cancel the others out.
pub const VANISHED_ROWS: &str = "pprof leaves out nodes whose flat and cum are both zero; so do we in comparing, with the \
                                 edges at such a node";

/// The total of a diff is the sum of the base's absolute values. pprof takes it when samples of the same stack and labels
/// are already one, so that negative values among them have reduced it. A written diff holds such samples as one too.
pub const MERGED_TOTALS: &str = "totals of a diff are not compared where the base has negative values";

/// Samples of one stack that cancel out are a row of zeros in the diff of the files, and nothing in the written diff, where
/// they were merged.
pub const MERGED_ROWS: &str = "written diffs: rows in which all is zero are left out";

/// The columns of one side of a diff hold zeros for what only the other side has. An edge of pprof's one side is zero
/// only where negative values of the profile itself cancel out.
pub const ZERO_EDGES: &str = "sides of a diff: rows that are zero on one side are left out of it";

/// Unlike all of pprof's other reports, `-tags` also lists what only occurs on samples that are zero in the sample type.
pub const ZERO_LABELS: &str = "labels: sums of zero are left out on both sides of the comparison";

/// `-diff_base` marks the samples of the base with a label, and `-tags` shows the mark as if it were the profile's.
pub const BASE_LABEL: &str = "labels: pprof::base is not a label of the profile (left out in reading -tags)";

/// `-traces` leaves out samples without frames, which are cost of nobody but do count for the total.
pub const EMPTY_STACKS: &str = "stacks: the stack without frames is left out";

/// As with labels, `-traces` also lists samples that are zero in the sample type.
pub const ZERO_STACKS: &str = "stacks: sums of zero are left out on both sides of the comparison";

/// A file has frames that it says to drop, and we show it as it is; pprof drops them as it loads the file.
pub const RAW_FRAMES: &str = "raw: one profile that names frames to drop is not compared";

/// The time that a diff is of is the new side's; pprof adds that of the base.
pub const RAW_DURATION: &str = "raw: the duration of a diff is not compared";

/// pprof invents a binary for a profile that names none.
pub const RAW_BINARY: &str = "raw: of profiles without binaries, the one that pprof invents is left out";

/// All other reports trim this prefix.
pub const UNTRIMMED: &str = "stacks: -traces does not cut /proc/self/cwd/ off file names (done in reading it)";

/// The profile to give to pprof, which is not always the one that our command gets: see [`FILES`] and [`COLUMNS`].
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
    // Tests run at the same time and share the folder, so the copy appears under its name all at once.
    let folders_and_name: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    let name = folders_and_name[folders_and_name.len().saturating_sub(3)..].join("-");
    let (copy, unfinished) = (folder.join(&name), folder.join(format!("{name}.{:?}", std::thread::current().id())));
    std::fs::write(&unfinished, bytes).unwrap();
    std::fs::rename(&unfinished, &copy).unwrap();
    copy
}

/// What is compared of `top` and `peek`: see [`VANISHED_ROWS`].
pub struct Shown {
    pub nodes: Vec<Row>,
    edges: Vec<Row>,
    /// What edges begin with at names that a node that vanishes has in common with one that does not.
    ambiguous: Vec<String>,
}

impl Shown {
    /// The rows of `top` with these sums, and the edges of `peek` with this weight.
    pub fn new(top: &[Entry], [flat, cum]: [&str; 2], peek: &[Entry], weight: &str) -> Shown {
        let (vanished, nodes): (Vec<Row>, Vec<Row>) =
            top.iter().map(|entry| entry.sums(flat, cum)).partition(Row::is_zero);
        let names: HashSet<&str> = nodes.iter().map(|node| node.subject.as_str()).collect();
        let ambiguous = vanished.iter().filter(|node| names.contains(node.subject.as_str()));
        let ambiguous = ambiguous.map(|node| edge(&node.subject, "", "")).collect();
        let edges = peek.iter().filter(|edge| names.contains(edge.text("node").as_str()));
        let edges = edges.map(|entry| entry.edge(weight)).collect();
        Shown { nodes, edges, ambiguous }
    }

    /// The edges to be compared, ours and pprof's. Where a name is ambiguous, `peek` does not tell the edges of the node
    /// that vanishes, which are zero, so such edges are left out.
    pub fn edges(&self, pprofs: Vec<Row>) -> (Vec<Row>, Vec<Row>) {
        let clear = |row: &Row| !row.is_zero() || !self.ambiguous.iter().any(|start| row.subject.starts_with(start));
        (self.edges.iter().filter(|row| clear(row)).cloned().collect(), pprofs.into_iter().filter(clear).collect())
    }
}

/// The stacks with what they cost altogether: pprof lists every sample by itself. See [`EMPTY_STACKS`] and
/// [`ZERO_STACKS`].
pub fn added_up(rows: impl IntoIterator<Item = Row>) -> Vec<Row> {
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for row in rows {
        *sums.entry(row.subject).or_default() += row.numbers[0];
    }
    let rows = sums.into_iter().filter(|(stack, _)| !stack.is_empty());
    without_zeros(rows.map(|(subject, sum)| Row { subject, numbers: vec![sum] }))
}

/// See [`ZERO_EDGES`] and [`ZERO_LABELS`].
pub fn without_zeros(rows: impl IntoIterator<Item = Row>) -> Vec<Row> {
    rows.into_iter().filter(|row| !row.is_zero()).collect()
}
