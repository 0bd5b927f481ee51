"""Type signatures of the extension module. Its docstrings are generated from crates/pprofdiff-python, see
tests/python/test_package.py.
"""

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from os import PathLike
from typing import (
    Any,
    Final,
    Generic,
    Literal,
    Protocol,
    SupportsIndex,
    TypeAlias,
    TypeVar,
    Unpack,
    final,
    overload,
)

import pandas
import polars
import pyarrow
from typing_extensions import Buffer, disjoint_base

from ._widget import FlameGraphWidget
from .types import (
    Build,
    Explained,
    Filters,
    LoadOptions,
    PairSummary,
    Routine,
    RuleCheck,
    Sort,
    TableSummary,
    Verdict,
    ViewAndLoadOptions,
    ViewOptions,
)

__version__: Final[str]

class _Readable(Protocol):
    def read(self) -> Buffer: ...

class _Writable(Protocol):
    def write(self, data: bytes, /) -> object: ...

_Source: TypeAlias = str | PathLike[str] | Buffer | _Readable | Profile
# A Sequence stands for lists and tuples, because a list[str] is not a list[_Source].
_Side: TypeAlias = _Source | Sequence[_Source]
_Paths: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]]
_Compression: TypeAlias = Literal["gzip", "zstd", "none"]
_OnReset: TypeAlias = Literal["error", "pass", "clamp"]
_Pair = TypeVar("_Pair", bound=tuple[_Side, _Side] | Pair, covariant=True)

class PprofError(ValueError):
    """A profile is invalid, or a question about it can't be answered.

    The message is a single line with the input, the record, the byte offset and the reason. Control characters and
    other unprintable characters in it are replaced. The attributes have the exact parts:
    input (str or None: the file's name, or a placeholder for it), record (str or None: such as 'sample 17', counted
    from 0), offset (int or None: in bytes of the inflated data) and detail (str: the reason, without the place).
    advice (str or None) is a shell command that can help; names in it are quoted. It is also attached as a note, so a
    traceback shows it, but the message, which goes to logs, does not contain it.
    """

    input: str | None
    record: str | None
    offset: int | None
    detail: str | None
    advice: str | None

def load(
    source: _Source,
    **options: Unpack[LoadOptions],
) -> Profile:
    """Load a profile: gzip, zstd or uncompressed.

    `source` is a path (str or os.PathLike), a URL (str), bytes (or an object with the buffer protocol), a file
    object (read to its end) or a Profile (returned unchanged). pyroscope:// URLs query a server, see
    docs/sources.md. http://, s3://, gs:// and other URLs need fsspec, and the packages that fsspec requires for the
    scheme. Credentials before the @ of a URL are never shown. Loading validates the whole profile, so views can't
    fail on its content later. Loading options:

    - `input_format`: The format of all profiles. Detected from the content of each profile by default.
    - `input_type`: Sample type of profiles that don't state it, such as folded stacks. Written as
      cpu/nanoseconds; defaults to samples/count.
    - `binary`: Binary or folder for names and instructions of addresses. Folders are searched like those in
      PPROF_BINARY_PATH, which are searched last. If several builds match, the binary with the profile's
      build id is used.
    - `base_binary`: Binary or folder for the base only.
    - `new_binary`: Binary or folder for the new side only.
    - `demangle`: How names are demangled: default, templates, full, none, off. Like pprof's
      -symbolize=demangle=HOW: the default omits parameters and template arguments. off keeps the names in
      the profile.
    - `time`: Part of each recording to read, such as 10s..25s. Either end may be missing. Times count from
      the start of the recording. If the format has them, an end may also be a moment (2026-11-25T10:00:00Z)
      or the name of an event (..GarbageCollection); the first event of that name counts.
    - `base_time`: Part of each recording to read, for the base only. One recording may serve as both sides.
    - `new_time`: Part of each recording to read, for the new side only.
    - `split_at`: Compare the part before a time or event with the part after it. Short for
      `base_time="..AT"` and `new_time="AT.."` together. One recording may serve as both sides.
    - `any_build`: Use binaries even if their build ids differ from the profiles'.
    - `inflated_limit`: Maximum bytes that a profile may inflate to. Defaults to the environment variable
      PPROFDIFF_MAX_INFLATED, or 2 GiB; at most 4 GiB minus one. Also limits the size of a URL's answer.

    A diff that was written as a profile opens as a diff again: its views show both sides.

    Raises PprofError for anything that is not a valid profile, and OSError for system errors.
    """

def diff(
    base: _Side,
    new: _Side,
    *,
    sum: bool = False,
    **options: Unpack[LoadOptions],
) -> Diff:
    """Compare two sides, `base` and `new`.

    Each side is anything that load() accepts, a list or tuple of these, or a pattern of paths such as
    "main-*.pb.gz". Several profiles on a side are runs of one program: values are their means, and top() tests
    which differences exceed noise. With `sum` they are added up instead. Sample types are matched by name, and
    units are converted to the finer one. For the other keywords see load().

    Raises PprofError for an invalid profile, for a written diff (it already has two sides: load() it), for sides
    without a common sample type and for sums beyond int64. Raises OSError for system errors.
    """

def load_runs(folder: str | PathLike[str], **options: Unpack[LoadOptions]) -> Diff:
    """Compare the runs that bench() recorded in a folder with a runs.toml.

    Several runs on a side are compared as in diff(). Binaries saved in the folder are used. For the other keywords
    see load().

    Raises PprofError for a folder without recorded runs, and the same errors as diff().
    """

def merge(
    profiles: Iterable[_Source],
    *,
    weights: Sequence[float] | None = None,
    **options: Unpack[LoadOptions],
) -> Profile:
    """Merge profiles into one by adding their values.

    `profiles` is an iterable of anything that load() accepts. Only sample types that all profiles have are kept, in
    the finest of their units. Durations are added up, and the time is the earliest. Written diffs are merged into
    the diff of both sides' sums. `weights` has one number per profile, by which its values are multiplied: 3 is the
    same as the profile three times. With fractional weights, the sum of each sample type is rounded once.

    Raises PprofError and OSError like diff(), and PprofError for a mix of written diffs and other profiles.
    """

def delta(
    prev: _Source,
    cur: _Source,
    cumulative: Sequence[str] | None = None,
    *,
    on_reset: _OnReset = "error",
    **options: Unpack[LoadOptions],
) -> Profile:
    """Return the change between two snapshots of a cumulative profile, such as Go's heap, mutex and block profiles.

    `prev` (the older) and `cur` are anything that load() accepts. The sample types in `cumulative` are subtracted.
    All other types (gauges) are copied from `cur`. None means the types that are known to be cumulative:
    alloc_objects, alloc_space, contentions, delay, mutex_count, mutex_duration, block_count, block_duration. A
    profile without any of these is rejected. The last comment of the result lists which types were subtracted and
    which were copied. Samples that become zero are dropped, with all data that no other sample uses. The duration
    is the time between the snapshots (None if one of them has no time). All other fields are copied from `cur`.

    A counter that decreased means that the process restarted, and so do missing samples that held more than half of
    the total. With `on_reset="error"` a restart raises PprofError. With "pass" the result is `cur` unchanged, and
    with "clamp" decreased counters count as unchanged. The comment and a UserWarning report both, and also samples
    that disappeared without a restart.

    Raises PprofError also for snapshots in the wrong order, for snapshots with different cumulative sample types
    and for written diffs, and the same errors as load().
    """

def check(
    base: _Side,
    new: _Side,
    fail_on: str | Sequence[str] = ...,
    *,
    config: str | PathLike[str] | None = None,
    floor: float | None = None,
    strict: bool = False,
    paired: bool = False,
    require_power: bool = False,
    same_code: Literal["warn", "fail", "ignore"] | None = None,
    name: str | None = None,
    **options: Unpack[ViewAndLoadOptions],
) -> Check:
    """Check whether the changes are within limits, for CI.

    `base` and `new` are as in diff(). Several profiles on a side are runs of the same program: they are not added
    up, and the medians of the sides are compared. A rule fails if its limit is exceeded and chance alone would
    cause such a difference at most once in a hundred checks. A limit that is exceeded within noise is inconclusive.
    With `strict`, noise is ignored. With `paired`, run i of the new side is compared with run i of the base. With
    `require_power`, the result is inconclusive instead of passed if a growth as large as the limit could have gone
    unnoticed. `same_code` decides about functions whose own cost exceeds a limit on growth although their instructions
    are the same in both builds, for profiles with `binary`: "warn", "fail" or "ignore". The default is `same_code` in
    `config`, or else "warn".

    `fail_on` is a rule or a list: [TYPE:]total>LIMIT or [TYPE:]flat|cum:FRAMES>LIMIT. FRAMES is any (checks each
    frame), each=RE (checks each matching frame) or regex=RE (checks the sum of all matching frames). LIMIT is +5%
    or +10MB (growth), 2GB (new value) or 30% (share of the new total). A limit on a time or size needs its unit.
    `config` is a pprofdiff.toml with rules and exceptions. `floor` is the percentage of the total below which
    frames are ignored; for rules on each frame it defaults to 1. `name` names the program in the reports, and
    replaces the name in `config`. For the other keywords see load() and Views.
    `sample_type` (a single one) applies to rules that do not name one. `normalize` scales each run of the new side
    by a factor, or to the median "total" or "duration" of the base.

    Raises PprofError for invalid rules and for an empty new side, and the same errors as diff().
    """

@overload
def series(
    profiles: str | PathLike[str],
    key: None = None,
    *,
    base: None = None,
    group: str,
    git: str | PathLike[str] | None = None,
    on_error: Literal["collect", "raise"] = "collect",
    **options: Unpack[ViewAndLoadOptions],
) -> Histories: ...
@overload
def series(
    profiles: str | PathLike[str] | Iterable[_Source],
    key: Callable[[Any], object] | None = None,
    *,
    base: _Source | None = None,
    group: None = None,
    git: str | PathLike[str] | None = None,
    on_error: Literal["collect", "raise"] = "collect",
    **options: Unpack[ViewAndLoadOptions],
) -> Series:
    """Follow frames along a history of builds, or compare many builds with one base.

    `profiles` is an iterable of anything that load() accepts, oldest first, or a pattern, or a selection of a store.
    For a pattern such as "builds/*/cpu.pb.gz", the text that * matches is the key of a build, and builds are sorted by
    key (numbers in keys compare as numbers). For a selection of a store such as "fleet/service=api", the builds are the
    values of the remaining key. `key` is a function that returns a build's key for an item of `profiles` or, for a
    pattern, for a path or URL. By default, the key in a list of paths is the differing part of the paths; for
    other items it is the path, the Profile's name or the item's number. Loaded profiles are not kept in
    memory, and an iterable is read a few items ahead.

    With `group`, several histories are followed, such as one per service: series("runs/*/*.pb.gz",
    group="service={1},build={2}") returns Histories. {1} is the text that the first wildcard matched. The key "build",
    or else the last key, is the build. A pattern with several parts that vary needs it.

    With `git`, the keys of the builds are commits, and builds are ordered by the history of the repository in this
    folder. The build that a change came with then has the subject of its commit in `builds`.

    Each build is compared with the previous build, or with `base` if it is given. `base` is anything that load()
    accepts. Its key is "base", and an error in it is raised.

    A build that can't be loaded, or that lacks the sample type, is listed in `errors` with the reason, and does not
    affect the other builds. With on_error="raise" its error is raised. For the other keywords see load() and Views.
    `sample_type` (a single one) defaults to the default type of the first build that loads, and units are converted to
    the finest. `normalize` scales all builds to the first build, by "total" or "duration".

    Raises PprofError for a question that can't be answered, and the error of the first build if all builds fail.
    """

@overload
def pairs(base: str | PathLike[str], new: str | PathLike[str]) -> list[Pair]:
    """Find files that belong together and return them as Pairs for batch(), ordered by name.

    `base` and `new` are two directories, or two patterns. Files with the same path below both directories are compared;
    names that begin with a dot are ignored. In patterns such as pairs("main/*/cpu.pb.gz", "branch/*/cpu.pb.gz"), the
    wildcards `*`, `?`, `[...]` and `**` must match the same text in both paths. fsspec lists the files of URL patterns.
    A file without a partner becomes a Pair with an error, so the number of results matches the number of files.

    `base` alone is a manifest, which is read while pairs are compared: CSV with the columns base, new and optionally
    name, or JSON lines (.jsonl) with the same keys, in which a side can be a list. A side can be a URL.

    Raises PprofError if there is nothing to compare, and OSError for system errors.
    """

@overload
def pairs(base: str | PathLike[str], new: None = None) -> Iterator[Pair]:
    """Find files that belong together and return them as Pairs for batch(), ordered by name.

    `base` and `new` are two directories, or two patterns. Files with the same path below both directories are compared;
    names that begin with a dot are ignored. In patterns such as pairs("main/*/cpu.pb.gz", "branch/*/cpu.pb.gz"), the
    wildcards `*`, `?`, `[...]` and `**` must match the same text in both paths. fsspec lists the files of URL patterns.
    A file without a partner becomes a Pair with an error, so the number of results matches the number of files.

    `base` alone is a manifest, which is read while pairs are compared: CSV with the columns base, new and optionally
    name, or JSON lines (.jsonl) with the same keys, in which a side can be a list. A side can be a URL.

    Raises PprofError if there is nothing to compare, and OSError for system errors.
    """

def group_pairs(files: str | PathLike[str] | Iterable[dict[str, Any]], keys: str, base: str, new: str) -> list[Pair]:
    """Find files that belong together by keys and return them as Pairs for batch(), in the natural order of
    the keys that both sides share.

    `files` is a pattern (of paths or URLs), a manifest, or an iterable of dicts. For a pattern, `keys` are templates
    for paths and labels, such as "service={1},version={version}": {1} is the text that the first wildcard matched, and
    {version} is the profile's value of the label "version". For a manifest or dicts, `keys` are columns, such as
    "service,version", in addition to the column "profile". `base` and `new` are the keys of each side: "version=v1", or
    "version=@previous" and "version=@latest". All files of a side are its runs. A group that only one side has becomes
    a Pair with an error.

    Raises PprofError if nothing matches or if the keys or sides are invalid, and OSError for system errors.
    """

def run(args: Sequence[str]) -> int:
    """Run the command. `args` begins with the program's name. Returns the exit code."""

@disjoint_base
class Views:
    """The base class of Profile and Diff: views, filters and writing.

    All views accept the following keywords, and so do series() and the tables of batch(). The filters among them are
    described in filter(). A keyword that does not apply to a view, such as `unit` for series(), raises PprofError.

    - `sample_type`: Sample type, such as cpu or alloc_space. Defaults to the profile's own. Several are
      shown side by side in tables; if one of two is a count, the ratio is shown too.
    - `granularity`: Unit of a row: functions, filefunctions, files, lines, addresses. Defaults to
      functions.
    - `noinlines`: Count inlined functions as part of their caller.
    - `all_frames`: Keep frames that a profile marks to be dropped. These frames match its drop_frames but
      not its keep_frames, such as frames of an allocator.
    - `match`: How names of functions are matched: auto, exact, stable, canonical, moved. exact compares
      whole names, as pprof does. stable ignores numbers of a run or a build: addresses, hashes, generated
      classes. auto is exact for two profiles, and stable in checks, series and tables of runs. canonical
      also ignores clones, closures and generic instances. moved also matches renamed functions, and counts
      functions that one side inlines as part of their callers, as explain does.
    - `trim_path`: Cut these prefixes off the paths of files. Versions of folders (y@v1.2.3) are cut as
      well, so that files of two checkouts match.
    - `normalize`: Scale the new side by total, duration or a factor. total makes both totals equal,
      duration compares rates; a factor is a number such as 0.5, or a quotient such as 1000/3000.
    - `unit`: Show values in this unit, such as ms or MB. auto chooses a unit for each value. By default, a
      column has one unit. JSON and CSV always use the profile's own unit.
    - `mean`: Divide values of one profile by its first sample type, a count. Delays become the mean delay,
      and heap sizes become bytes per object.
    - `drop_negative`: Hide frames whose cost fell. These are frames with a lower flat, or with a lower cum
      and an unchanged flat.
    - `hide_below`: Hide frames that are below this percent of the total on both sides. The limit applies to
      the cost that rows are sorted by: flat, or cum with `sort="cum"`.
    - `relative_percentages`: Compute percentages of the filtered total. By default, they refer to the whole
      profile.

    With several sample types, the columns of costs are prefixed with their sample type ("alloc_space_flat_base"). If
    one of two types is a count, there are also ratios (flat_ratio_base: bytes per object; a float, or None if the count
    is zero).

    Values are int64 in the unit of the sample type. A question that can't be answered raises PprofError.
    """

    @property
    def sample_types(self) -> builtins.list[tuple[str, str]]:
        """The sample types that all profiles have, as a list of (type, unit): [("alloc_space", "bytes"), ...]."""
    @property
    def total(self) -> tuple[int, ...]:
        """The total of the default sample type before filters, after normalize(): (base, new), or (total,) for one
        profile.
        """
    @property
    def default_sample_type(self) -> str | None:
        """The sample type that views show by default: the file's default type if it has one, else its last type."""
    def top(
        self,
        n: int | None = None,
        *,
        sort: Sort = "flat",
        significant: bool = False,
        **options: Unpack[ViewOptions],
    ) -> Table:
        """Return the frames as a Table, ordered by the size of the change in `sort` ("flat": own cost; "cum": cost with
        callees), then by the change in the other cost, then by name. For one profile, the order is by value.

        Columns: name, file, line, address, mapping (None at granularities without them), status, flat_base, flat_new,
        flat_delta, cum_base, cum_new and cum_delta. For one profile: flat and cum, without status. `n` limits the rows.

        With several runs on a side, or with `significant`, there are more columns for the cost in
        `sort`: base_sd and new_sd (standard deviation of the runs), p (probability of such a difference
        between runs of equal builds), q (share of false positives among all rows with a difference at
        least as clear) and left_out (the reason why a frame is not tested: "profiling" or "inlining"
        makes its presence random). They are None if the runs are not sufficient. `significant` keeps
        only rows with q of at most 0.05. It does not need several runs, but detects smaller changes
        with them.

        For two profiles that were loaded with `binary` there is the column code: whether the instructions of
        a function changed ("identical", "relocated", "changed", "inlined differently" or "unknown"). It is
        None if they were not compared, and after the first 100 rows.
        """
    def peek(
        self,
        regex: str,
        n: int | None = None,
        *,
        sort: Sort = "flat",
        **options: Unpack[ViewOptions],
    ) -> Table:
        """Return the callers and callees of the frames that match a regular expression. The expression is searched
        in the names of frames (with file and line at granularities that have them).

        Columns: node, other, relation ("caller" or "callee"), base, new and delta; for one profile weight instead of
        the last three. `n` limits the nodes. The table is empty if nothing matches.
        """
    def roots(self, regex: str, n: int | None = None, **options: Unpack[ViewOptions]) -> Table:
        """Return the call chains to the frames that match a regular expression, as in peek(): each chain from the
        root to the first matching frame.

        The columns are the same as in stacks(). `n` limits the rows. The table is empty if nothing matches.
        """
    def tree(
        self,
        n: int | None = None,
        *,
        sort: Sort = "flat",
        **options: Unpack[ViewOptions],
    ) -> Table:
        """Return the callers and callees of all frames. The columns are the same as in peek()."""
    def stacks(
        self,
        n: int | None = None,
        *,
        labels: bool = False,
        **options: Unpack[ViewOptions],
    ) -> Table:
        """Return whole stacks.

        Columns: frames (a list, root first), base, new, delta and status; for one profile weight instead of the last
        four. With `labels`, stacks are separated by the labels of their samples, and a column labels (a list of
        "key=value") follows frames. `n` limits the rows.
        """
    def labels(
        self,
        n: int | None = None,
        **options: Unpack[ViewOptions],
    ) -> Table:
        """Return the cost of each label value.

        Columns: key, value, unit (for numeric labels), base, new, delta and status; for one profile weight instead of
        the last four. `n` limits the rows of each key.
        """
    def explain(
        self,
        *,
        ops: tuple[float, float] | None = None,
        min_effect: float = 0.002,
        noise: _Side | None = None,
        heap: Profile | Diff | None = None,
        config: str | PathLike[str] | None = None,
        **options: Unpack[ViewAndLoadOptions],
    ) -> Explanation:
        """Explain why the sides differ: the few causes of the difference, cost that only moved, and how much is noise.

        The profiles of a side are runs of the same program and are not added up. With several runs, noise is measured
        between them instead of estimated. `ops` is the number of operations per run on the base and on the new side, if
        known. `min_effect` is the smallest change that counts as a cause, as a fraction of the mean of
        both totals. `noise` has A/A runs: profiles of equal builds (given like a side of diff()), used
        only to estimate noise, and loaded with the keywords of load(). `heap` is a Diff of the heap
        profiles of the same runs: GC cost is attributed to the functions that allocate more, and the
        heaps are explained too. `config` is a pprofdiff.toml whose table [explain] describes the
        program's own runtime. Guarantees and limits: docs/explain.md.

        `sample_type` can name a cost with the type that counts its events. By default, both the memory in use and the
        allocations of a heap profile are explained.

        Raises PprofError for one profile, for a normalization, and for a granularity other than functions.
        """
    def folded(
        self,
        **options: Unpack[ViewOptions],
    ) -> str:
        """Return stacks as text for flame graph tools, one per line: "root;caller;leaf BASE NEW", or "root;caller;leaf
        VALUE" for one profile.
        """
    def to_speedscope(
        self,
        **options: Unpack[ViewOptions],
    ) -> str:
        """Return stacks as JSON for speedscope.app. A diff has two profiles, base and new, which speedscope can switch.
        speedscope does not support negative values, so they are dropped with a warning.
        """
    def callgraph(
        self,
        n: int = 80,
        *,
        sort: Sort | None = None,
        node_fraction: float = 0.005,
        edge_fraction: float = 0.001,
        call_tree: bool = False,
        **options: Unpack[ViewOptions],
    ) -> CallGraph:
        """Return the call graph: the `n` most informative frames (0: no limit) and their calls.

        Frames with cum below `node_fraction` of the total are dropped, and so are calls below `edge_fraction`. For two
        sides, the value that counts is the largest of |base|, |new| and |delta|. The remaining frames are ranked like
        in pprof, or by `sort` ("flat" or "cum"). A dotted call passes through dropped frames. With `call_tree`, each
        path to a frame has its own box.

        A notebook shows the graph as a picture: the text size shows a frame's own cost, and the color its cum. For a
        diff, both show the change (red: more, blue: less, thick border: added, dashed border: removed).
        """
    def list(
        self,
        regex: str,
        *,
        base_source: _Paths | None = None,
        new_source: _Paths | None = None,
        source_path: _Paths | None = None,
        **options: Unpack[ViewOptions],
    ) -> Listing:
        """Return source lines with flat and cum, for the functions whose name matches a regular expression.

        `base_source` and `new_source` are folders (or lists of folders) with the sources of each build. `source_path`
        has the sources of both builds, or of one profile. Files are read only below these folders. A file is found even
        if only the end of its path matches.

        If a file changed between the builds, lines are matched with a text diff, so that a statement is compared with
        its own base cost although its line number changed. Without the sources of both builds, lines are paired by
        their offset in the function, and the notes mention it.

        If the profiles were loaded with `binary`, each line has its instructions (`instructions`).
        """
    def disasm(self, regex: str, **options: Unpack[ViewOptions]) -> Listing:
        """Return instructions with flat and cum, for the functions whose name matches a regular expression.

        The profiles must be loaded with `binary`, each side with the binary of its own build (x86-64 or arm64). The
        instructions of both builds are aligned by operation, registers and the names of called functions, but not by
        address. Instructions are in AT&T syntax, as in objdump, and addresses refer to the binary.

        Values are per address, including inlined code. Missing binaries raise a PprofError that names them.
        """
    def to_html(
        self,
        *,
        min_width: float | None = None,
        max_frames: int | None = None,
        base_source: _Paths | None = None,
        new_source: _Paths | None = None,
        source_path: _Paths | None = None,
        **options: Unpack[ViewOptions],
    ) -> str:
        """Return a self-contained HTML page: summary, explain(), flame graph, table, callers and callees, and call
        graph of every sample type (at most the first hundred). The page loads nothing from the network.

        It shows `sample_type` first. `min_width` is the fraction of the total below which a flame graph box is merged
        with its siblings into "(pruned)". The default is half a pixel after zooming in ten times, and 0 draws every box
        that has room. `max_frames` is the maximum number of boxes in all graphs of the page. Each sample type has two
        graphs. The default is 50,000, which results in a page of a few MB.

        With `base_source`, `new_source` or `source_path`, see list(), the page also lists the source lines of the 20
        functions with the largest change in cum, among the functions with sources.
        """
    def save_html(
        self,
        path: str | PathLike[str],
        *,
        min_width: float | None = None,
        max_frames: int | None = None,
        base_source: _Paths | None = None,
        new_source: _Paths | None = None,
        source_path: _Paths | None = None,
        **options: Unpack[ViewOptions],
    ) -> None:
        """Write to_html() to a path."""
    def flamegraph(
        self,
        *,
        min_width: float | None = None,
        max_frames: int | None = None,
        **options: Unpack[ViewOptions],
    ) -> FlameGraph:
        """Return the flame graph of both sides for one sample type. A notebook shows it, and `.save(path)` writes it
        as a page (.html) or as a picture (.svg).

        The width of a box is the sum, over its stacks, of the larger of both values, so removed code is drawn too. The
        color shows the change, from blue (less) to red (more). For `min_width` and `max_frames` see to_html().
        """
    def filter(self, **filters: Unpack[Filters]) -> Diff:
        """Return the same profiles with filters. The filters have the names and the meaning of pprof's.

        Regular expressions are searched in function names, file names and the name of the binary, or in labels
        ("key=regex", or "regex" on "key:value").

        - `tagroot`: Add the values of these labels as frames at the root.
        - `tagleaf`: Add the values of these labels as frames at the leaf.
        - `focus`: Keep only samples with a matching frame.
        - `ignore`: Drop samples with a matching frame; wins over `focus`.
        - `hide`: Remove matching frames; their cost moves to the caller.
        - `show`: Remove the frames that do not match.
        - `show_from`: Drop frames above the root-most match, and samples without a match.
        - `tagfocus`: Keep only samples with this label: key=RE, RE, bytes=1kb:1mb.
        - `base_tagfocus`: Restrict the base to samples with this label, as in `tagfocus`; totals change too.
        - `new_tagfocus`: Restrict the new side to samples with this label, as in `tagfocus`; totals change too.
        - `tagignore`: Drop samples with this label.
        - `tagshow`: Show only labels with a matching key, in views of labels.
        - `taghide`: Hide labels with a matching key.
        - `prune_from`: Drop frames below the leaf-most match.

        Earlier filters stay in effect unless given again; an empty filter is removed. Totals and percentages remain
        those before filters. If a filter matches nothing, the views' warnings mention it.
        """
    def normalize(self, how: Literal["total", "duration"] | float | None) -> Diff:
        """Return the same profiles with the new side scaled to the base.

        `how` is "total" (makes both totals equal, so that a change is one of shares), "duration" (a change is one of
        rates), a number to multiply the new side by (such as operations of base / operations of new, so that a change
        is per operation), or None (no scaling). A view raises PprofError if scaling is not possible: if a total or
        duration is zero, or for one profile.
        """
    def write(
        self,
        file: str | PathLike[str] | _Writable,
        *,
        compression: _Compression | None = None,
        level: int | None = None,
    ) -> None:
        """Write the profile, or the diff as a profile, to a path or a file object (opened for bytes).

        Another extension of a path selects another format, as the command's -o does: the page (.html), the flame graph
        (.flame.svg) or call graph (.svg) as a picture, or the table (.csv, .json, .md, .txt). An unknown extension
        raises PprofError with all extensions. A path without extension, or any call with `compression` or `level`,
        writes a profile.

        A written diff has the samples of the base negated and labelled: `go tool pprof` shows the numbers of
        -diff_base, and load() opens it as a diff again. Filters and normalization apply. `compression` is "gzip",
        "zstd" or "none". By default the extension decides: .pb.zst uses zstd, .pb is not compressed, and any other uses
        gzip. `level`: gzip 0 to 9 (1 unless given), zstd 1 to 22 (3 unless given).
        """
    def to_bytes(self, compression: _Compression = "gzip", level: int | None = None) -> bytes:
        """Return the profile, or the diff as a profile, as bytes."""
    def to_text(self, *, max_tokens: int | None = None) -> str:
        """Return top() as text, see Table.to_text()."""
    def to_polars(self) -> polars.DataFrame:
        """Return top() as a polars.DataFrame, see Table.to_polars()."""
    def to_pandas(self) -> pandas.DataFrame:
        """Return top() as a pandas.DataFrame, see Table.to_pandas()."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def _repr_html_(self) -> str: ...

@final
class Profile(Views):
    """A loaded and validated profile, returned by load() and merge().

    Its views show one side. The views of a diff that was written as a profile show both sides.
    """

    @property
    def name(self) -> str:
        """The name of the file, or a placeholder: "<bytes>", "<stream>", "merged"."""
    @property
    def n_samples(self) -> int:
        """The number of samples as written, including duplicates."""
    @property
    def totals(self) -> list[int]:
        """The sum of the absolute values of each sample type in `sample_types`, before filters."""
    @property
    def duration(self) -> timedelta | None:
        """The duration of the recording (a datetime.timedelta, truncated to microseconds), or None if the profile
        has no duration.
        """
    @property
    def time(self) -> datetime | None:
        """The time of the recording (a datetime.datetime in UTC, truncated to microseconds), or None if the
        profile has no time.
        """
    @property
    def period(self) -> int:
        """The number of events between two samples, in the unit of period_type."""
    @property
    def period_type(self) -> tuple[str, str] | None:
        """The (type, unit) of the period, or None."""
    @property
    def comments(self) -> list[str]:
        """The comments in the profile."""
    @property
    def doc_url(self) -> str:
        """A link to documentation of the profile's type; "" if the profile has no link."""
    @property
    def mappings(self) -> list[str]:
        """The file names of the mapped binaries."""
    @property
    def warnings(self) -> list[str]:
        """Problems that affect the views, for example missing function names."""
    @property
    def advice(self) -> str | None:
        """A shell command that fixes a warning: it adds missing function names. Names in it are quoted. None if no
        command is needed.
        """
    @property
    def is_diff(self) -> bool:
        """True if the profile is a written diff."""

@final
class Diff(Views):
    """A comparison of two sides, returned by diff(), and by filter() and normalize() of a Diff or a Profile.

    The rows of its views have the values of both sides and the delta (new - base). Except in peek() and
    tree(), they also have a status ("added", "removed", "changed" or "same"). A Diff that filter() or
    normalize() returns for a Profile shows as many sides as the Profile.
    """

    @property
    def base(self) -> list[Profile]:
        """The profiles of the base; empty for a single profile."""
    @property
    def new(self) -> list[Profile]:
        """The profiles of the new side."""

@final
class Pair:
    """Two sides with a common name, for batch(). Created by pairs(), or directly.

    `base` and `new` are as in diff(). The name defaults to the name of the new side. `keys` become columns in tables of
    many pairs.
    """

    def __new__(
        cls,
        base: _Side,
        new: _Side,
        name: str | None = None,
        *,
        error: Exception | None = None,
        keys: dict[str, str] | None = None,
    ) -> Pair: ...
    @property
    def name(self) -> str:
        """The name of the pair: the path below both directories, the text that the pattern's `*` matched,
        the name in the manifest, or for group_pairs() the keys that both sides share.
        """
    @property
    def base(self) -> Any:
        """The base, as diff() accepts it; None if there is an error."""
    @property
    def new(self) -> Any:
        """The new side, as diff() accepts it; None if there is an error."""
    @property
    def error(self) -> Exception | None:
        """The reason why the pair can't be compared (a file without a partner, an invalid line), or None."""
    @property
    def keys(self) -> dict[str, str]:
        """The parts that vary between the pairs, as a dict of texts in order: the keys of group_pairs(), with _base and
        _new for those that differ between the sides, or key_1 for the first wildcard of a pattern. Empty for
        directories and manifests.
        """

@final
class Histories:
    """Several histories of builds, such as one per service; returned by series() with `group`. The histories with the
    largest lasting change come first.

    `histories["api"]` is the Series of one of them, and iterating yields the names. A name consists of the values of
    the keys, joined by a slash.
    """

    @property
    def ranking(self) -> list[dict[str, Any]]:
        """The histories as a list of dicts, the largest lasting change first. Keys: the keys of the group, changes (the
        number of lasting changes), and of the largest one name (of the frame), kind, since (the most likely first build
        with it), before, after and delta. These are None without a lasting change of a frame's own cost. The key notes
        is a list of sentences about lasting changes of the total and of costs with callees that own costs do not show,
        and of warnings, such as that builds are the same profile.
        """
    @property
    def failed(self) -> list[tuple[str, str]]:
        """The histories that could not be loaded, as a list of (name, reason)."""
    def to_text(self) -> str:
        """Return the ranking as text."""
    def to_markdown(self) -> str:
        """Return the ranking as a Markdown table."""
    def to_json(self) -> str:
        """Return the ranking and the lasting changes of each history as JSON."""
    def __getitem__(self, key: str, /) -> Series: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...

@final
class Result(Generic[_Pair]):
    """The result for one pair of batch(): a diff or a table, or an error."""

    __match_args__: Final = ("pair", "diff", "error")
    def __new__(
        cls, pair: _Pair, diff: Diff | None, error: Exception | None, table: Table | None = None
    ) -> Result[_Pair]: ...
    @property
    def pair(self) -> _Pair:
        """The pair as given."""
    @property
    def name(self) -> str:
        """The pair's name. For a tuple, it is the name of the new side."""
    @property
    def table(self) -> Table | None:
        """The Table, if tables were requested; None if the pair failed."""
    @property
    def summary(self) -> PairSummary:
        """The result of tables() as one row: name, the pair's keys, error (as text), sample_type, unit, total_base,
        total_new, total_delta, frames (their number), and frame (name), flat_delta and cum_delta of the frame with the
        largest change. Missing values are None.
        """
    @property
    def diff(self) -> Diff | None:
        """The Diff; None if the pair failed, or if tables were requested."""
    @property
    def error(self) -> Exception | None:
        """The exception; None if the pair succeeded."""

@final
class DeltaComputer:
    """Computes deltas from a stream of snapshots of one cumulative profile.

    `cumulative` and `on_reset` have the same meaning as in delta(). The object keeps 16 bytes per sample of the last
    snapshot, and its cumulative values. It reuses its memory, so a thousand snapshots need no more memory than one.
    """

    def __new__(
        cls,
        cumulative: Sequence[str] | None = None,
        *,
        on_reset: _OnReset = "error",
        **options: Unpack[LoadOptions],
    ) -> DeltaComputer: ...
    def start(self, snapshot: _Source) -> None:
        """Set the snapshot that the next update() subtracts, without computing a delta.

        `snapshot` is anything that load() accepts. Raises PprofError and OSError like load().
        """
    def update(self, snapshot: _Source, *, on_reset: _OnReset | None = None) -> Profile:
        """Return the change since the last snapshot as a Profile. The first snapshot is returned unchanged, except that
        duplicate samples are added up and zeros are dropped.

        `snapshot` is anything that load() accepts. `on_reset` overrides the computer's own policy for this call. After
        an error, the last snapshot stays the same.

        Raises the same errors as delta().
        """
    @property
    def cumulative(self) -> list[str]:
        """The sample types that the last update() subtracted."""
    @property
    def gauges(self) -> list[str]:
        """The sample types that the last update() copied unchanged from the snapshot."""
    @property
    def reset(self) -> str | None:
        """The counters that decreased or disappeared in the last update(), which shows a restart; None if there was no
        restart.
        """
    @property
    def vanished(self) -> int:
        """The number of samples that had counted something before the last update() and are missing in its
        snapshot. The profile's comment and a UserWarning report it too.
        """

@final
class FlameGraph:
    """A flame graph, returned by Views.flamegraph(). Notebooks show it in a sandboxed frame."""

    def to_html(self) -> str:
        """Return the graph as a self-contained HTML file."""
    def to_svg(self) -> str:
        """Return the graph as an <svg> element without scripts, with the same boxes down to a width of one pixel and a
        tooltip for each box.
        """
    def save(self, path: str | PathLike[str]) -> None:
        """Save the graph in the format of the path's extension: .html for the interactive page, or .svg for a picture
        without scripts.
        """
    def widget(self) -> FlameGraphWidget:
        """Return the graph as a notebook widget. The frame that the user selects, with a click or the arrow keys, is
        available as `widget.frame` (a name, or None) and `widget.stack` (names, root first). `widget.observe(f,
        "stack")` calls f on each selection.

        Raises ModuleNotFoundError without anywidget: pip install anywidget.
        """
    def _repr_html_(self) -> str: ...

@final
class CallGraph:
    """A call graph, returned by callgraph(). Notebooks show it as a picture, without Graphviz."""

    def to_svg(self) -> str:
        """Return the picture as an <svg> element without scripts, style sheets or links. All text from the input is
        escaped. A graph with very many calls shows only the heaviest calls, and reports how many.

        Raises PprofError for more than 400 frames.
        """
    def to_dot(self) -> str:
        """Return the graph in Graphviz's DOT language."""
    def save(self, path: str | PathLike[str]) -> None:
        """Save the graph in the format of the path's extension: .svg, or .dot (.gv) for Graphviz."""
    def _repr_svg_(self) -> str | None: ...
    def _repr_html_(self) -> str | None:
        """A scrolling frame, because most graphs are wider than a notebook."""

@final
class Listing:
    """Source lines or instructions with their costs, returned by list() or disasm()."""

    @property
    def routines(self) -> list[Routine]:
        """The functions, as a list of dicts. Keys: name, file, base_source and new_source (the location of the source
        text, or None), status, flat_base, flat_new, flat_delta, cum_base, cum_new, cum_delta, notes and lines. Lines
        are a list of dicts: base_line and new_line (None if a build lacks the line), change ("same", "inserted",
        "deleted", or "unknown" without the sources), text and the same costs. A listing of a single profile has source,
        flat and cum, and lines have line; there is no status or change.

        If the profiles were loaded with `binary`, lines have instructions, a list of dicts: base_address and
        new_address, change, text, function, file and line (of the innermost inlined function), and the same costs. In
        listings of disasm(), the functions have instructions, their lines are an empty list, and
        base_binary and new_binary take the place of base_source and new_source.
        """
    def to_json(self) -> str:
        """Return the listing as JSON, schema pprofdiff/1."""
    def to_text(self, *, max_tokens: int | None = None) -> str:
        """Return the listing as text. With max_tokens (at least 50), the text has at most that many tokens, counted
        as by the command's --budget: the lines that changed most, and the number of omitted lines. A copy that was
        pickled keeps the first lines instead.
        """
    def to_html(self) -> str:
        """Return the listing as an HTML fragment. All text from the input is escaped."""
    def save(self, path: str | PathLike[str]) -> None:
        """Save the listing in the format of the path's extension: .html, .json or .txt."""
    def _repr_html_(self) -> str: ...

@disjoint_base
class Rendered:
    """The base class of Check and Explanation: the answer as text, Markdown and JSON, and the command's exit code."""

    @property
    def exit_code(self) -> int:
        """The exit code of the command (for explain: with --exit-code): 0 passed or unchanged, 1 failed or changed, 3
        inconclusive, 4 a rule matches no frame.
        """
    @property
    def warnings(self) -> list[str]:
        """Problems that affect the verdict."""
    def to_json(self) -> str:
        """Return the answer as JSON, schema pprofdiff/1, kind check or explain."""
    def to_text(self, *, max_tokens: int | None = None) -> str:
        """Return the answer as text, most important parts first. With max_tokens (at least 50), the text has at most
        that many tokens, counted as by the command's --budget: the parts that fit, and the number of omitted parts.
        A copy that was pickled keeps the first lines instead.
        """
    def to_markdown(self) -> str:
        """Return the answer as Markdown for a pull request. A check has less than 65,000 characters."""
    def save(self, path: str | PathLike[str]) -> None:
        """Save the answer in the format of the path's extension: .txt, .md or .json. A check also writes .xml (JUnit),
        .sarif and .github (annotations of a workflow).
        """
    def _repr_markdown_(self) -> str: ...

@final
class Check(Rendered):
    """The findings of a check, returned by check()."""

    @property
    def verdict(self) -> Literal["pass", "fail", "inconclusive", "unmatched"]:
        """The verdict: "pass", "fail", "inconclusive" or "unmatched" (a rule without frames). Allowed changes pass."""
    @property
    def rules(self) -> list[RuleCheck]:
        """The rules as a list of dicts. Keys: rule, outcome, sample_type, unit, is_of_each, compared, total_base,
        total_new and total_delta (medians), below_floor, floor, too_small, left_out, tau (the variation between runs),
        detectable (the smallest growth in percent that would have failed), p_limit (the largest p_adjusted that
        fails), family (the number of rules that share the error rate) and findings. Findings are a list of dicts with
        the keys frame (None for a total, or for frames checked as a sum), outcome ("fail", "inconclusive", "allowed" or
        "pass"), reason, base and new (dicts: median, min, max, values), delta (an int, or a float for a half, like
        median), excess, percent, p, p_adjusted (corrected for the frames of the rule), runs_needed, and code (the
        difference between the instructions of both builds) if it was compared.
        """
    def to_junit(self) -> str:
        """Return the findings as JUnit XML, one test case per rule."""
    def to_sarif(self) -> str:
        """Return the findings as SARIF, for code scanning."""
    def to_github(self) -> str:
        """Return the findings as annotations of a GitHub workflow. Print them in a step of the workflow."""
    def _lines(self) -> list[tuple[str, str, list[str], list[str]]]:
        """Returns the rules as tuples of lines: rule, outcome, findings, causes. The pytest plugin shows them."""

@final
class Ranking:
    """Many pairs ranked by their changes beyond chance, and the causes that several of them share. Returned by
    Batch.ranking().
    """

    @property
    def changed(self) -> int:
        """The number of pairs that changed beyond chance. They are the first rows of `pairs`."""
    @property
    def pairs(self) -> Table:
        """The pairs as a Table, one row per pair. Pairs that changed beyond chance come first, ordered by the
        change that causes explain (causes_delta). Columns: pair, function and cause (the largest cause as text, for
        pairs that changed), base, new and delta (totals), causes_delta (the sum of the changes of the pair's
        causes) and q (the smallest false discovery rate at which the pair counts as changed).
        """
    @property
    def clusters(self) -> Table:
        """The causes that several pairs share as a Table, one row per cause, largest change first. Columns: function,
        callee, caller_package (if all pairs agree), pair (the pair with the largest change), cause (as text), pairs
        (their number), base, new and delta (summed over the pairs) and share (delta divided by the sum of all base
        totals).
        """
    @property
    def common(self) -> Table:
        """The functions whose own cost changed alike in many pairs, although the change is within chance in each
        of them. One row per function, largest change first. Columns: function, pairs (their number), base
        (scaled to the new sides' amounts of work), new and delta (summed over the pairs), share (delta divided
        by the sum of all base totals) and q.
        """
    @property
    def failed(self) -> list[tuple[str, str]]:
        """The pairs that could not be compared, as a list of (name, reason)."""
    def to_dict(self) -> dict[str, Any]:
        """Return the whole ranking as a dict, schema pprofdiff/1, kind ranking."""
    def to_json(self) -> str:
        """Return the whole ranking as JSON."""
    def to_text(self, *, max_tokens: int | None = None) -> str:
        """Return the ranking as text. With max_tokens (at least 50), the text has at most that many tokens, counted
        as by the command's --budget: the first rows of each table, and the number of omitted rows.
        """
    def to_markdown(self) -> str:
        """Return the ranking as Markdown."""
    def to_html(self) -> str:
        """Return the ranking as a self-contained HTML page. Each shared cause and each changed pair
        expands to its explanation.
        """
    def _repr_markdown_(self) -> str: ...

@final
class Explanation(Rendered):
    """The explanation of a difference, returned by Diff.explain() and Series.explain(). A notebook shows
    it as bars from the base's total to the new side's total: each cause has a bar.
    """

    @property
    def verdict(self) -> Verdict:
        """The verdict: "change", "none" or "inconclusive"."""
    @property
    def causes(self) -> Table:
        """The causes as a Table, largest change first. Columns: function, caller, callee (a function of the language's
        runtime, if calls to it changed), label, kind ("self", "calls", "added" or "removed"), base and new (the cost of
        a run in the cause's stacks, which no other cause shares), delta (the cost of a run of the new side beyond the
        base at the same amount of work), factor (None if the cost was zero before) and score (the distance from
        chance).
        """
    @property
    def account(self) -> dict[str, Any]:
        """The parts of the difference of the totals, for a mean run: delta = work + causes + consequences + rest.
        A dict that also has garbage (the part of the consequences due to garbage collection), by_chance,
        unexplained, consequences_by_chance and p.
        """
    @property
    def moved(self) -> list[dict[str, Any]]:
        """Cost that only moved to another function or to another name, as a list of dicts: function, from,
        how, delta, cost, even and inside.
        """
    @property
    def noise(self) -> dict[str, Any]:
        """The noise of the comparison, as a dict with deviation, noticed, mde, runs and more."""
    @property
    def best(self) -> dict[str, Any] | None:
        """The largest cause as a dict, like an item of to_dict()["causes"]. If the samples are inconclusive, the most
        likely cause; None if there is no candidate.
        """
    def to_dict(self) -> Explained:
        """Return the whole explanation as a dict, schema pprofdiff/1, kind explain: verdict, scale, account, causes,
        moved, suspects, background, noise and more; see docs/explain.md.
        """
    def to_html(self) -> str:
        """Return the explanation as an HTML fragment. All text from the input is escaped."""
    def _repr_html_(self) -> str: ...

@final
class Series:
    """Many builds, frame by frame; returned by series().

    Polars, pandas, DuckDB and others read it as values(). A notebook shows the lasting changes. For fewer than six
    builds, or with a base, it shows the frames with the largest steps instead.
    """

    @property
    def builds(self) -> list[Build]:
        """The builds in order, as a list of dicts. Keys: key, path, and either error (the reason why the build
        failed), or stacks, duration_nanos, time_nanos, total (before filters, normalized) and factor (by which
        its values were multiplied).
        """
    @property
    def errors(self) -> dict[str, str]:
        """The failed builds: their keys, with the reasons."""
    def values(self, *, dense: bool = False) -> Table:
        """Return the values as a Table: one row per build and frame, build after build, with the values of top() of the
        build's profile.

        With `dense`, builds that lack a frame have rows with 0, up to 20 million rows. Columns: build (its key),
        build_number (its index in `builds`), name, file, line, mapping (None at granularities without them), flat and
        cum.
        """
    def movers(self, n: int | None = None, *, sort: Sort = "flat") -> Table:
        """Return the frames as a Table, ordered by the largest step of each frame: its change from one build to
        the next.

        `sort` is the cost that counts: "flat" (own cost) or "cum" (cost with callees). Columns: name, file, line,
        mapping, first_seen and last_seen (the keys of the first and last build with the frame, with their numbers),
        builds (the number of builds with the frame), and the columns of steps() for the largest step. `n` limits the
        rows.
        """
    def shifts(self, n: int | None = None, *, sort: Sort = "flat", explain: bool = False) -> Table:
        """Return the lasting changes as a Table, largest first: for each, the build since which a frame costs more or
        less, beyond the usual variation between builds. `since` is the most likely first bad build.

        `sort` is the cost that counts: "flat" (own cost) or "cum" (cost with callees). Columns: name, file, line,
        mapping, kind ("step": the change stays; "passed": it went away again; "drift": it came gradually), since (the
        key of that build), earliest and latest (the range of builds that may have introduced the change),
        until (the first build without the change; for a drift the last build), before, after and delta (means),
        delta_low and delta_high (the 95 % interval of the delta), q (the share of false positives among changes that
        are at least as clear, at most 0.05), total_before (the mean total of the builds before the change) and cause.
        The number of a build is in an additional column, such as since_number. `n` limits the rows. With fewer than six
        builds, or with a base, the table is empty.

        With `explain`, the cause is the second column. It is determined from at most five builds before a change and
        five after it. Their profiles are read again from their paths, so bytes and objects raise PprofError.
        """
    def steps(self, n: int | None = None, *, sort: Sort = "flat") -> Table:
        """Return all steps as a Table, largest first: the changes of a frame from one build to the next, or from
        the base to another build.

        Columns: name, file, line, mapping, from and to (the keys of the builds, with from_number and to_number),
        status, flat_from, flat_to, flat_delta, cum_from, cum_to, cum_delta and total_from (the total of the earlier
        build, which percentages refer to). `n` limits the rows.
        """
    def explain(
        self,
        build: str | None = None,
        *,
        runs: int = 5,
        min_effect: float = 0.002,
        **options: Unpack[LoadOptions],
    ) -> Explanation:
        """Explain why a build differs from the builds before it, or from the base. See Diff.explain().

        `build` is the key of the build. It defaults to the build of the largest lasting change, and if there is none,
        to the build of the largest step. In a history, at most `runs` builds before it are treated as runs of one
        program, and so are the build and the builds after it. Several runs show how much builds vary
        anyway. Without `build`, builds beyond another lasting change of similar size are not used.

        The profiles are read again from their paths. Bytes and objects raise PprofError, and so do the first build and
        failed builds.
        """
    def to_html(self, *, n: int | None = None, sort: Sort = "flat") -> str:
        """Return a self-contained HTML page: charts of each frame over the builds, and for each change, flame
        graphs and tables of the builds before and after it.

        The page has the first `n` rows of shifts(), at most 500; for fewer than six builds or with a base, it has rows
        of movers(). The twelve largest changes have flame graphs. The builds around them are read again from their
        paths, so bytes and objects raise PprofError.
        """
    def save_html(self, path: str | PathLike[str], *, n: int | None = None, sort: Sort = "flat") -> None:
        """Write to_html() to a path."""
    def plot(self, n: int = 8, *, sort: Sort = "flat") -> Any:
        """Draw at most `n` frames over the builds as a line chart, with a rule at each lasting change. The frames
        are the first rows of shifts(), or of movers() if there are no shifts. `sort` is the cost to draw:
        "flat" (own cost) or "cum" (cost with callees). Returns the same kind of object as Table.plot().
        """
    def to_polars(self, *, dense: bool = False) -> polars.DataFrame:
        """Return values() as a polars.DataFrame, see Table.to_polars(); `dense` as in values()."""
    def to_pandas(self, *, dense: bool = False) -> pandas.DataFrame:
        """Return values() as a pandas.DataFrame, see Table.to_pandas(); `dense` as in values()."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def _repr_html_(self) -> str: ...

@final
class Table:
    """The rows of a view as columns, with a summary.

    A table is a sequence of dicts whose keys are the column names. table[0] is a row, table[:3] is a Table, and
    table["name"] is a column: a list of str, int, float or list of str, with None for missing values. Polars, pandas,
    pyarrow, DuckDB and others read a table through the Arrow C stream interface.
    """

    @property
    def kind(self) -> Literal["top", "diff", "peek", "tree", "stacks", "labels", "values", "movers", "shifts", "steps"]:
        """The kind of the rows: "top", "diff", "peek", "tree", "stacks", "traces", "labels" or "causes";
        for a series "values", "movers", "steps" or "shifts"; for a ranking "pairs", "shared_causes" or
        "common_changes".
        """
    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
    @property
    def summary(self) -> TableSummary:
        """The header of to_json() as a dict: the sides, sample_type, unit, granularity, filters, normalize,
        warnings and totals. For a series, it has the builds instead of sides and totals.
        """
    @property
    def rows_total(self) -> int:
        """The number of rows before the limit was applied."""
    def sort(self, by: str, descending: bool = True) -> Table:
        """Return the table sorted by one column. Rows with equal values keep their order."""
    def head(self, n: int = 20) -> Table:
        """Return the first `n` rows. For peek and tree, return the rows of the first `n` nodes, and for
        labels the first `n` rows of each key.
        """
    def to_dicts(self) -> list[dict[str, Any]]:
        """Return all rows as dicts."""
    def to_json(self) -> str:
        """Return the table as JSON, schema pprofdiff/1."""
    def to_csv(self, *, quote_formulas: bool = False) -> str:
        """Return the table as CSV, with a header line of column names. Lists are joined with ";". Text is written
        unchanged, but a spreadsheet runs text that begins with = + - @ as a formula; quote_formulas puts a ' before
        such text.
        """
    def to_text(self, *, max_tokens: int | None = None) -> str:
        """Return all rows as text, as the command prints them. With max_tokens (at least 50), the text has at most that
        many tokens, counted as by the command's --budget: the first rows, and the number of omitted rows.
        """
    def to_markdown(self) -> str:
        """Return the table as Markdown for pull requests, with scaled units and a summary."""
    def plot(self, n: int = 20) -> Any:
        """Draw the first `n` rows as a bar chart, in the order of the table. For two sides, bars show the changes, with
        whiskers for the variation between runs. For one profile, bars show the costs.

        Returns an altair.Chart (or a compound chart) if altair is installed, and otherwise an object with the Vega-Lite
        specification (to_dict(), to_json()), which JupyterLab and VS Code can draw too. Values are in the axis's unit.
        Raises PprofError for Series.values(); use Series.plot() instead.
        """
    def to_polars(self) -> polars.DataFrame:
        """Return the table as a polars.DataFrame, with lists as List(Categorical). Needs polars."""
    def to_pandas(self) -> pandas.DataFrame:
        """Return the table as a pandas.DataFrame, with values as int64, ratios as float64, line as Int64, address as
        UInt64, text as string and lists as object. Needs pandas, but not pyarrow.
        """
    def to_arrow(self) -> pyarrow.Table:
        """Return the table as a pyarrow.Table. Needs pyarrow."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: SupportsIndex, /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice, /) -> Table: ...
    @overload
    def __getitem__(self, index: str, /) -> list[Any]: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def _repr_html_(self) -> str: ...
