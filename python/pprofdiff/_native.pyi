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
    """A profile is not valid, or a question to it can't be answered.

    The message is one line that says which input, which record, at which byte and what is wrong; control characters
    and what else would not be shown as it is are replaced in it. Its parts are exact:
    input (str or None: the file's name, or what stands for it), record (str or None: such as 'sample 17', counted
    from 0), offset (int or None: bytes into the inflated data) and detail (str: what is wrong, without the place).
    advice (str or None) is a command that helps, to be copied into a shell: names in it are quoted. It is a note of the
    exception too, so a traceback shows it, and the message, which goes to logs, does not.
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
    """Load a profile: gzip, zstd or raw.

    `source` is a path (str or os.PathLike), a URL (str; pyroscope:// and parca:// ask servers for one,
    see docs/sources.md; http://, s3://, gs:// and others need fsspec, each with what fsspec wants for it; what stands
    before its @ is shown nowhere), bytes (or anything with their buffer), a file object (read to its end) or a Profile
    (returned as it is). Loading validates everything, so no view can fail on the content later. How it is loaded:

    - `input_format`: The format of all profiles. Unless given, each is recognised by its content.
    - `input_type`: What profiles count that don't say it, such as folded stacks. Written as cpu/nanoseconds;
      samples/count unless given.
    - `binary`: Where names and instructions of addresses are looked up. A binary, or a folder that is
      searched as pprof searches those of PPROF_BINARY_PATH, which come after it. Of several builds the one with the
      profile's build id is taken.
    - `base_binary`: The same for the base alone.
    - `new_binary`: The same for the new side alone.
    - `demangle`: How names are demangled: default, templates, full, none, off. As pprof's
      -symbolize=demangle=HOW: by default without parameters and template arguments. off keeps the names that the
      profile has.
    - `time`: The time inside each recording that is read, such as 10s..25s. Either end may be missing. Times
      count from the recording's beginning, or are moments (2026-11-25T10:00:00Z) or names of events, the first
      of which counts (..GarbageCollection), where its format has them.
    - `base_time`: The same for the base alone. One recording may be both sides.
    - `new_time`: The same for the new side alone.
    - `split_at`: Compare each recording before a time or event with what comes after it. The same as
      base_time=..AT and new_time=AT.. together. One recording may be both sides.
    - `any_build`: Use given binaries even if their build ids are not the profiles'.
    - `inflated_limit`: Maximum bytes that a profile may inflate to. Unless given that of PPROFDIFF_MAX_INFLATED in
      the environment, or 2 GiB; 4 GiB minus one at most. A URL's answer may be as long.

    A diff that was written as a profile opens as a diff again: its views show both sides.

    Raises PprofError for anything that is not a valid profile, and OSError from the system.
    """

def diff(
    base: _Side,
    new: _Side,
    *,
    sum: bool = False,
    **options: Unpack[LoadOptions],
) -> Diff:
    """Compare two sides, `base` and `new`.

    Each is whatever load() takes, or a list or tuple of such, or a pattern of paths as "main-*.pb.gz": runs of one
    program, of which values are the means, and top() tells what is more than chance. With `sum` they add up
    instead. Sample types are matched by name, and units converted to the finer one. The other keywords are those of
    load().

    Raises PprofError for an invalid profile, for a written diff (which is two sides already: load() it), for
    sides without a common sample type and for values that add up past int64; OSError from the system.
    """

def load_runs(folder: str | PathLike[str], **options: Unpack[LoadOptions]) -> Diff:
    """Compare the runs that bench() took, of the folder with its runs.toml.

    The runs of a side are as those of diff(); binaries that are kept there are used. The other keywords are those of
    load().

    Raises PprofError for a folder without such runs, and as diff().
    """

def merge(
    profiles: Iterable[_Source],
    *,
    weights: Sequence[float] | None = None,
    **options: Unpack[LoadOptions],
) -> Profile:
    """Add profiles up to one.

    `profiles` is an iterable of whatever load() takes. Sample types that all have are kept, in the
    finest of their units; durations add up; the time is the earliest. Written diffs become the diff of both
    sides' sums. With `weights`, a number for each profile, values are multiplied: 3 is the same as the profile
    three times. Of weights that are not whole each sample type's sum is rounded once.

    Raises PprofError and OSError as diff() does, and PprofError for written diffs beside other profiles.
    """

def delta(
    prev: _Source,
    cur: _Source,
    cumulative: Sequence[str] | None = None,
    *,
    on_reset: _OnReset = "error",
    **options: Unpack[LoadOptions],
) -> Profile:
    """What happened between two snapshots of a growing profile, such as Go's heap, mutex and block profiles.

    `prev` (the older) and `cur` are whatever load() takes. The sample types that `cumulative` names are
    subtracted; all others (gauges) are as in `cur`. None stands for those that are known to be cumulative:
    alloc_objects, alloc_space, contentions, delay, mutex_count, mutex_duration, block_count, block_duration; a
    profile that has none of these is refused. The last of the result's comments says which were treated how.
    Samples that come to zero are gone, with all that only they referred to; the duration is the time between the
    snapshots (None if one of them does not say when it was taken), all other fields are those of `cur`.

    A counter that went down means that the process was started anew, and so does it if the samples are gone that
    had counted more than half. With `on_reset="error"` that is a PprofError; with "pass" the result is `cur` as it
    is, with "clamp" such counters count as unchanged, and both are said in the comment and by a UserWarning, as
    are samples that are gone without a restart.

    Raises PprofError also for snapshots in the wrong order or with other cumulative sample types, and for written
    diffs; and as load().
    """

def check(
    base: _Side,
    new: _Side,
    fail_on: Sequence[str] = ...,
    *,
    config: str | PathLike[str] | None = None,
    floor: float | None = None,
    strict: bool = False,
    paired: bool = False,
    require_power: bool = False,
    **options: Unpack[ViewAndLoadOptions],
) -> Check:
    """Is what changed within limits? For CI.

    `base` and `new` are as for diff(), but several profiles on a side are runs of the same program and do not add
    up: the sides' medians are compared. A rule fails if its limit is exceeded and two equal builds would hardly ever
    differ so much: once in a hundred checks. What is exceeded within chance is inconclusive. `strict`: limits alone
    decide. `paired`: run i of the new side belongs to run i of the base. `require_power`: inconclusive, and not
    passed, if a growth as large as the limit would have been missed.

    `fail_on` are rules, [TYPE:]total>LIMIT or [TYPE:]flat|cum:FRAMES>LIMIT. FRAMES are any (each frame by itself),
    each=RE (each that matches) or regex=RE (all that match, taken as one). A LIMIT is +5% or +10MB (growth), 2GB
    (the new value) or 30% (the new value's part of the total); one on a time or size needs its unit. `config` is a
    pprofdiff.toml with rules and what is allowed. `floor` is the percentage of the total below which frames are
    ignored: 1 for rules on each frame unless given. The other keywords are those of load() and of Views:
    `sample_type` (one) is that of rules that name none, `normalize` scales each run of the new side, to the median
    of the base's "total" or "duration", or by a factor.

    Raises PprofError for rules that are not understood, for a new side of which nothing was measured, and as diff()
    does.
    """

def series(
    profiles: str | PathLike[str] | Iterable[_Source],
    key: Callable[[Any], object] | None = None,
    *,
    base: _Source | None = None,
    on_error: Literal["collect", "raise"] = "collect",
    **options: Unpack[ViewAndLoadOptions],
) -> Series:
    """Follow frames along a history of builds, or compare many builds with one base.

    `profiles` is an iterable of whatever load() takes, oldest first, or a pattern: of "builds/*/cpu.pb.gz" what *
    stands for is the build's key, and keys order the builds (numbers in them count as numbers); or a part of a store,
    "fleet/service=api", with the values of the key that is left. `key` gives a
    build's key, from an item of `profiles` or, for a pattern, from a path; unless given it is what tells paths
    from each other, or the item's number. Loaded profiles do not stay in memory, and an iterable is read a few
    items ahead.

    Each build is compared with the one before it; given `base`, which is whatever load() takes and has the key "base",
    with that one, whose error is raised.

    A build that can't be loaded, or does not have the sample type, is in `errors` with its reason and stops
    nothing; with on_error="raise" its error is raised. The other keywords are those of load() and of Views:
    `sample_type` (one) is unless given the default one of the first build that loads, and units are converted to the
    finest; `normalize` scales all builds to the first, by "total" or "duration".

    Raises PprofError for a question that can't be answered, and the error of the first build if none loads.
    """

@overload
def pairs(base: str | PathLike[str], new: str | PathLike[str]) -> list[Pair]:
    """Which files belong together: Pairs for batch(), in the order of their names.

    `base` and `new` are two directories, whose files with the same path below them are compared (names that begin with
    a dot are left out), or two patterns in which `*`, `?`, `[...]` and `**` stand for the same, as in
    pairs("main/*/cpu.pb.gz", "branch/*/cpu.pb.gz"); of URLs, fsspec lists the files. A file without a partner is a Pair
    with an error, so results can be counted against files.

    `base` alone is a manifest, which is read while it is worked on: CSV with the columns base, new and perhaps name, or
    lines of JSON with such keys (.jsonl), where a side may be a list. A side may be a URL.

    Raises PprofError if there is nothing to compare, OSError from the system.
    """

@overload
def pairs(base: str | PathLike[str], new: None = None) -> Iterator[Pair]:
    """Which files belong together: Pairs for batch(), in the order of their names.

    `base` and `new` are two directories, whose files with the same path below them are compared (names that begin with
    a dot are left out), or two patterns in which `*`, `?`, `[...]` and `**` stand for the same, as in
    pairs("main/*/cpu.pb.gz", "branch/*/cpu.pb.gz"); of URLs, fsspec lists the files. A file without a partner is a Pair
    with an error, so results can be counted against files.

    `base` alone is a manifest, which is read while it is worked on: CSV with the columns base, new and perhaps name, or
    lines of JSON with such keys (.jsonl), where a side may be a list. A side may be a URL.

    Raises PprofError if there is nothing to compare, OSError from the system.
    """

def group_pairs(files: str | PathLike[str] | Iterable[dict[str, Any]], keys: str, base: str, new: str) -> list[Pair]:
    """Which files belong together by keys: Pairs for batch(), in the natural order of the keys that both sides share.

    `files` is a pattern (of URLs, too), of whose paths and labels `keys` are made ("service={1},version={version}": {1}
    is what its first sign stands for, {version} the value of that label, of which a profile has one); or a manifest, of
    which they are columns ("service,version"), beside the column profile; or an iterable of dicts of such columns.
    `base` and `new` say what a side's keys are: "version=v1", or "version=@previous" and "version=@latest". All files
    of a side are its runs. What only one side has is a Pair with an error.

    Raises PprofError if nothing matches, or of keys and sides that are none; OSError from the system.
    """

def run(args: Sequence[str]) -> int:
    """The command: arguments (the program's name first) in, exit code out."""

@disjoint_base
class Views:
    """What Profile and Diff have in common: views, filters, and writing.

    All views take these keywords, as do series() and the tables of batch(); the filters among them are described at
    filter(). A view to which one has no meaning, such as `unit` to series(), raises PprofError.

    - `sample_type`: Sample type, such as cpu or alloc_space. Defaults to the profile's own. Several are
      shown side by side in tables; if one of two is a count, the ratio is shown too.
    - `granularity`: Unit of a row: functions, filefunctions, files, lines, addresses. Defaults to functions.
    - `noinlines`: Count inlined functions as part of their caller.
    - `all_frames`: Keep frames that a profile marks to be dropped. These frames match its drop_frames but
      not its keep_frames, such as frames of an allocator.
    - `match`: How names of functions are matched: auto, exact, stable, canonical, moved. exact compares whole names,
      as pprof does. stable ignores numbers of a run or a build: addresses, hashes, generated classes. auto is exact
      for two profiles, and stable in checks, series and tables of runs. canonical also ignores clones, closures and
      generic instances. moved also matches renamed functions, and counts functions that one side inlines as part of
      their callers, as explain does.
    - `trim_path`: Cut these prefixes off the paths of files. Versions of folders (y@v1.2.3) are cut as well, so
      that files of two checkouts match.
    - `normalize`: Scale the new side by total, duration or a factor. total makes both totals equal, duration
      compares rates; a factor is a number such as 0.5, or a quotient such as 1000/3000.
    - `unit`: Show values in this unit, such as ms or MB. auto chooses a unit for each value. By
      default, a column has one unit. JSON and CSV always use the profile's own unit.
    - `mean`: Divide values of one profile by its first sample type, a count. Delays become
      the mean delay, and heap sizes become bytes per object.
    - `drop_negative`: Hide frames whose cost fell. These are frames with a lower flat, or with a lower cum
      and an unchanged flat.
    - `hide_below`: Hide frames that are below this percent of the total on both sides. The limit applies
      to the cost that rows are sorted by: flat, or cum with --sort cum (sort="cum").
    - `relative_percentages`: Compute percentages of the filtered total. By default, they refer to the whole profile.

    Of several sample types the columns of costs are named after their sample type first ("alloc_space_flat_base"), and
    of two of which one counts there are ratios (flat_ratio_base: bytes an object; float, None where there is none).

    Values are int64 in the sample type's own unit. A question that can't be answered raises PprofError.
    """

    @property
    def sample_types(self) -> builtins.list[tuple[str, str]]:
        """The sample types that all profiles have, as (type, unit): [("alloc_space", "bytes"), ...]."""
    @property
    def total(self) -> tuple[int, ...]:
        """The total of the default sample type, before filters: (base, new), as normalize() leaves them; of one profile
        its own alone.
        """
    @property
    def default_sample_type(self) -> str | None:
        """The type that views show unless told otherwise: the file's default if it names one, else the last."""
    def top(
        self,
        n: int | None = None,
        *,
        sort: Sort = "flat",
        significant: bool = False,
        **options: Unpack[ViewOptions],
    ) -> Table:
        """The frames, ordered by the magnitude of the delta of `sort` ("flat": own cost; "cum": with what is
        called), then by that of the other, then by name; of one profile, by the values.

        Columns: name, file, line, address, mapping (None where the granularity has none), status,
        flat_base, flat_new, flat_delta, cum_base, cum_new, cum_delta. Of one profile: flat and cum, no
        status. `n` rows, or all.

        With several runs a side, or with `significant`, also base_sd and new_sd (the standard deviation of the
        runs), p (how probable it is that runs of equal builds differ as much) and q (the part of false ones among
        all rows that differ so clearly), of the cost that `sort` names; None where the runs can't tell, and
        left_out (why they are not asked: "profiling" or "inlining" decides by chance whether the frame is there).
        `significant` leaves the rows with a q of at most 0.05; it needs no runs, but is the sharper with them.
        """
    def peek(
        self,
        regex: str,
        n: int | None = None,
        *,
        sort: Sort = "flat",
        **options: Unpack[ViewOptions],
    ) -> Table:
        """The callers and callees of the frames that match a regular expression, which is searched in their
        names (with file and line where the granularity has them).

        Columns: node, other, relation ("caller" or "callee"), base, new, delta; of one profile weight. The
        rows of `n` nodes, or all. No row if nothing matches.
        """
    def roots(self, regex: str, n: int | None = None, **options: Unpack[ViewOptions]) -> Table:
        """The callers of the frames that match a regular expression, as in peek(): whole chains from the root to the
        first frame that matches.

        Columns as stacks(). `n` rows, or all. No row if nothing matches.
        """
    def tree(
        self,
        n: int | None = None,
        *,
        sort: Sort = "flat",
        **options: Unpack[ViewOptions],
    ) -> Table:
        """The callers and callees of all frames; columns as peek()."""
    def stacks(
        self,
        n: int | None = None,
        *,
        labels: bool = False,
        **options: Unpack[ViewOptions],
    ) -> Table:
        """Whole stacks.

        Columns: frames (a list, root first), base, new, delta, status; of one profile weight. With
        `labels`, stacks whose samples have different labels are told apart, and a column labels (a list
        of "key=value") follows frames. `n` rows, or all.
        """
    def labels(
        self,
        n: int | None = None,
        **options: Unpack[ViewOptions],
    ) -> Table:
        """What the values of each label cost.

        Columns: key, value, unit (of numeric labels only), base, new, delta, status; of one profile weight.
        `n` rows, or all.
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
        """Why the sides differ: the few causes of the difference, what only moved, and how much of it is chance.

        The profiles of a side are runs of the same program, and do not add up: give several to measure the
        noise between runs instead of estimating it. `ops` is how many operations a run of the base and of the
        new side did, if that is known; `min_effect` the least change that is a cause, as a part of the base's
        total; `noise` are runs of equal builds (as a side of diff()), from which only noise is learned, and which the
        keywords of load() say how to load;
        `heap` is a Diff of the heap profiles of the same runs: garbage collection is then theirs who allocate more,
        and the heaps are explained beside;
        `config` is a pprofdiff.toml, whose table explain says what the program's own runtime is. What is
        promised, and what can't be known: docs/explain.md.

        `sample_type` may name a cost with the type that counts it; of a heap both what is in use and what was
        allocated are explained unless it is given.
        Raises PprofError for one profile, a normalization, and a granularity other than functions.
        """
    def folded(
        self,
        **options: Unpack[ViewOptions],
    ) -> str:
        """Stacks as text for flame graph tools, a line each: "root;caller;leaf BASE NEW"; of one profile
        "root;caller;leaf VALUE".
        """
    def to_speedscope(
        self,
        **options: Unpack[ViewOptions],
    ) -> str:
        """Stacks as JSON for speedscope.app: a diff is two profiles, base and new, between which it switches.
        Negative values, which it does not have, are left out with a warning.
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
        """The call graph: the `n` most telling frames (0: any number) and what they call.

        Frames whose cum is less than `node_fraction` of the total are left out, and calls that are less than
        `edge_fraction`; of two sides a value counts by the largest of |base|, |new| and |delta|. Which of the
        others are kept is pprof's choice, or by the value of `sort` ("flat" or "cum"). Where frames between
        two are left out, the call is dotted. With `call_tree` there is a box for each way to a frame.

        A notebook shows it as a picture: letters grow with a frame's own cost and colours stand for its cum; of
        a diff, for the changes (red: more, blue: less, thick border: added, dashed: removed).
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
        """Source lines with their flat and cum, of the functions whose name matches a regular expression.

        `base_source` and `new_source` are folders (or lists of them) with the sources of the two builds,
        `source_path` those of both, or of one profile; files are read only below them, and the end of a path is
        enough to find one.

        Where a file changed between the builds, lines are matched by a text diff, so that a statement meets its
        own base cost although its number shifted. Without the sources of both, lines are paired by their offset in the
        function, and the notes say so.

        Of profiles that were loaded with `binary`, lines open to their instructions (`instructions` of each line).
        """
    def disasm(self, regex: str, **options: Unpack[ViewOptions]) -> Listing:
        """Instructions with their flat and cum, of the functions whose name matches a regular expression.

        The profiles are to be loaded with `binary`, each side with that of its own build (x86-64 or arm64). The
        sequences of both are aligned: operations, registers and the names of what is called are compared, addresses
        are not. Instructions are written as objdump does (AT&T's syntax); an address is the binary's own.

        Values are per address, whatever was inlined there. Missing binaries raise PprofError, which names them.
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
        """The page for a browser, as text: summary, what explain() says, flame graph, table, callers and callees, and
        call graph of every sample type (of more than a hundred, the first), in one file that asks nobody for anything.

        It shows `sample_type` first. `min_width` is the part of the whole below which a box of the graph
        is not drawn by itself but with its siblings as "(pruned)": half a pixel after zooming in ten times,
        unless given; 0 draws all that there is room for. `max_frames` is the most boxes of all the
        page's graphs, two for each sample type: 50,000 unless given, which makes pages of a few MB.

        Given `base_source`, `new_source` or `source_path`, as list() has them, the page also
        lists the source lines of the 20 functions whose cum changed most, of those that have sources.
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
        """The flame graph of both sides, of one sample type, which a notebook shows; `.save(path)` writes it.

        A box is as wide as the sum, over the stacks beneath it, of the larger of their two values: so what
        vanished is drawn too. Its colour is the change, from blue (less) to red (more). `min_width` and
        `max_frames` as to_html().
        """
    def filter(self, **filters: Unpack[Filters]) -> Diff:
        """The same profiles, filtered; the filters have pprof's names and meaning.

        Regular expressions are searched in function names, file names and the binary's name, or in labels
        ("key=regex", or "regex" on "key:value").

        - `tagroot`: Add the values of these labels as frames at the root.
        - `tagleaf`: Add the values of these labels as frames at the leaf.
        - `focus`: Keep only samples with a matching frame.
        - `ignore`: Drop samples with a matching frame; wins over focus.
        - `hide`: Remove matching frames; their cost moves to the caller.
        - `show`: Remove the frames that do not match.
        - `show_from`: Drop frames above the root-most match, and samples without a match.
        - `tagfocus`: Keep only samples with this label: key=RE, RE, bytes=1kb:1mb.
        - `base_tagfocus`: Restrict the base to samples with this label, as in tagfocus; totals change too.
        - `new_tagfocus`: Restrict the new side to samples with this label, as in tagfocus; totals change too.
        - `tagignore`: Drop samples with this label.
        - `tagshow`: Show only labels with a matching key, in views of labels.
        - `taghide`: Hide labels with a matching key.
        - `prune_from`: Drop frames below the leaf-most match.

        Filters that were given before stay, unless given again; an empty one is taken away. Totals and
        percentages stay those before filters. A filter that matches nothing is said in the views' warnings.
        """
    def normalize(self, how: Literal["total", "duration"] | float | None) -> Diff:
        """The same profiles, with the new side scaled to the base.

        `how` is "total" (both totals become equal: what is left is a change of shares), "duration" (a
        change of rates), a number to multiply the new side by (such as operations of base / operations of
        new: a change per operation), or None (as it was). A view raises PprofError where there is nothing
        to scale by: a total or duration of zero, or one profile only.
        """
    def write(
        self,
        file: str | PathLike[str] | _Writable,
        *,
        compression: _Compression | None = None,
        level: int | None = None,
    ) -> None:
        """Write it as a profile, to a path or a file object (opened for bytes).

        A diff holds the base's samples negated and labelled: `go tool pprof` shows the numbers of
        -diff_base, and load() opens it as a diff again. Filters and normalization apply. `compression`
        is "gzip", "zstd" or "none"; unless given, .zst is packed with zstd, .pb not at all and anything
        else with gzip. `level`: gzip 0 to 9 (1 unless given), zstd 1 to 22 (3 unless given).
        """
    def to_bytes(self, compression: _Compression = "gzip", level: int | None = None) -> bytes:
        """What write() would write, as bytes."""
    def to_polars(self) -> polars.DataFrame:
        """top() as a polars.DataFrame, see Table.to_polars()."""
    def to_pandas(self) -> pandas.DataFrame:
        """top() as a pandas.DataFrame, see Table.to_pandas()."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def _repr_html_(self) -> str: ...

@final
class Profile(Views):
    """One loaded, validated profile. Made by load() and merge().

    Its views show one side; those of a diff that was written as a profile show both.
    """

    @property
    def name(self) -> str:
        """The file's name, or what stands for it: "<bytes>", "<stream>", "merged"."""
    @property
    def n_samples(self) -> int:
        """Number of samples, as written (duplicates count)."""
    @property
    def totals(self) -> list[int]:
        """For each of sample_types: the sum of the magnitudes of its values, before any filter."""
    @property
    def duration(self) -> timedelta | None:
        """For how long it was taken (a datetime.timedelta, cut to microseconds), or None if it does not say."""
    @property
    def time(self) -> datetime | None:
        """When it was taken (a datetime.datetime in UTC, cut to microseconds), or None if it does not say."""
    @property
    def period(self) -> int:
        """Events between two samples, in the unit of period_type."""
    @property
    def period_type(self) -> tuple[str, str] | None:
        """The period's (type, unit), or None."""
    @property
    def comments(self) -> list[str]:
        """Free text that the producer left."""
    @property
    def doc_url(self) -> str:
        """A link to documentation of the profile's type; "" if there is none."""
    @property
    def mappings(self) -> list[str]:
        """The file names of the mapped binaries."""
    @property
    def warnings(self) -> list[str]:
        """What to know before trusting a view: for example that there are no function names."""
    @property
    def advice(self) -> str | None:
        """A command that helps against a warning, to be copied into a shell: it adds the names of functions, if there
        are none. Names in it are quoted. None if there is nothing to say.
        """
    @property
    def is_diff(self) -> bool:
        """True if this is a diff that was written as a profile."""

@final
class Diff(Views):
    """Two sides, compared. Made by diff(), and by filter() and normalize() of a Diff or a Profile.

    Every row of its views has both sides, the delta (new - base) and a status ("added", "removed",
    "changed" or "same").
    """

    @property
    def base(self) -> list[Profile]:
        """The profiles of the base; empty if this is one profile, filtered."""
    @property
    def new(self) -> list[Profile]:
        """The profiles of the new side."""

@final
class Pair:
    """Two sides under one name, for batch(). Made by pairs(), or by hand.

    `base` and `new` are as for diff(); the name is the new side's unless given.
    """

    def __new__(cls, base: _Side, new: _Side, name: str | None = None, *, error: Exception | None = None) -> Pair: ...
    @property
    def name(self) -> str:
        """What the sides have in common: the path below both directories, what a pattern's `*` stood for, or as the
        manifest says.
        """
    @property
    def base(self) -> Any:
        """The base, as diff() takes it; None if there is an error."""
    @property
    def new(self) -> Any:
        """The new side, as diff() takes it; None if there is an error."""
    @property
    def error(self) -> Exception | None:
        """Why there is no pair (a file without a partner, a bad line), or None."""

@final
class Result(Generic[_Pair]):
    """What became of one pair of batch(): a diff or a table, or an error."""

    __match_args__: Final = ("pair", "diff", "error")
    def __new__(
        cls, pair: _Pair, diff: Diff | None, error: Exception | None, table: Table | None = None
    ) -> Result[_Pair]: ...
    @property
    def pair(self) -> _Pair:
        """The pair as it was given."""
    @property
    def name(self) -> str:
        """The pair's name; of a pair that is a tuple, that of its new side."""
    @property
    def table(self) -> Table | None:
        """The Table, if tables were asked for; None if the pair failed."""
    @property
    def summary(self) -> PairSummary:
        """The pair in one row, of what tables() gave: name, error (as text), sample_type, unit, total_base, total_new,
        total_delta, frames (how many there are), and of the frame that changed most frame (its name), flat_delta and
        cum_delta. What there is not is None.
        """
    @property
    def diff(self) -> Diff | None:
        """The Diff; None if the pair failed, or if tables were asked for."""
    @property
    def error(self) -> Exception | None:
        """The exception, or None if the pair did not fail."""

@final
class DeltaComputer:
    """What happened in a stream of snapshots of one growing profile.

    `cumulative` and `on_reset` are as for delta(). It keeps 16 bytes and the cumulative values of each sample of
    the last snapshot, and uses its memory again, so it takes no more for a thousand snapshots than for one.
    """

    def __new__(
        cls,
        cumulative: Sequence[str] | None = None,
        *,
        on_reset: _OnReset = "error",
        **options: Unpack[LoadOptions],
    ) -> DeltaComputer: ...
    def start(self, snapshot: _Source) -> None:
        """Take a snapshot (whatever load() takes) as the one before the next, and make nothing of it.

        Raises PprofError and OSError as load() does.
        """
    def update(self, snapshot: _Source, *, on_reset: _OnReset | None = None) -> Profile:
        """What happened since the last snapshot; the first one is passed on as it is (duplicate samples added up,
        zeros gone).

        `snapshot` is whatever load() takes; `on_reset` stands for the computer's own, this time. After an error
        the last snapshot is still the last one.

        Raises as delta() does.
        """
    @property
    def cumulative(self) -> list[str]:
        """The sample types that the last update() subtracted."""
    @property
    def gauges(self) -> list[str]:
        """The sample types that the last update() left as they were in the snapshot."""
    @property
    def reset(self) -> str | None:
        """What went down or was gone at the last update(), so that it was a restart; or None."""
    @property
    def vanished(self) -> int:
        """How many samples had counted something before the last update() and were not in its snapshot. The comment and
        a UserWarning say it too.
        """

@final
class FlameGraph:
    """A flame graph, made by Views.flamegraph(). Notebooks show it in a sandboxed frame."""

    def to_html(self) -> str:
        """The graph as an HTML file that needs nothing else."""
    def save(self, path: str | PathLike[str]) -> None:
        """Write it to a path, as an HTML file for a browser."""
    def widget(self) -> FlameGraphWidget:
        """The graph as a widget, in a notebook: what is chosen in it, by a click or with the arrow keys, comes back as
        `widget.frame` (a name, or None) and `widget.stack` (names, root first); `widget.observe(f, "stack")` calls f
        with each choice.

        Raises ModuleNotFoundError without anywidget: pip install 'pprofdiff[notebook]'.
        """
    def _repr_html_(self) -> str: ...

@final
class CallGraph:
    """A call graph, made by callgraph(). A notebook shows it as a picture; no Graphviz is needed."""

    def to_svg(self) -> str:
        """The picture as an <svg> element: no script, no style sheet, no link; everything from the input is escaped.
        Of very many calls it has the heaviest, and says how many.
        Raises PprofError if there are more than 400 frames.
        """
    def to_dot(self) -> str:
        """The graph in Graphviz's language."""
    def save(self, path: str | PathLike[str]) -> None:
        """Save it as what the path ends in: .svg, or .dot (.gv) for Graphviz."""
    def _repr_svg_(self) -> str | None: ...
    def _repr_html_(self) -> str | None:
        """In a frame that scrolls: most graphs are wider than a notebook."""

@final
class Listing:
    """Source lines or instructions with their costs, made by list() or disasm()."""

    @property
    def routines(self) -> list[Routine]:
        """The functions, each a dict: name, file, base_source and new_source (where the texts were found, or
        None), status, flat_base, flat_new, flat_delta, cum_base, cum_new, cum_delta, notes, and lines, a list of
        dicts: base_line and new_line (None where a build does not have the line), change ("same", "inserted" or
        "deleted"), text and the same costs. Of one profile: source, flat and cum, and line; no status or change.

        Lines of profiles that were loaded with `binary` have instructions, a list of dicts: base_address and
        new_address, change, text, function, file and line (the innermost that it was made of), and the same costs. Made
        by disasm(), functions have them and no lines, and base_binary and new_binary.
        """
    def to_json(self) -> str:
        """The listing as JSON, schema pprofdiff/1."""
    def to_html(self) -> str:
        """The listing as an HTML fragment; everything from the input is escaped."""
    def save(self, path: str | PathLike[str]) -> None:
        """Save it as what the path ends in: .html, .json or .txt."""
    def _repr_html_(self) -> str: ...

@disjoint_base
class Rendered:
    """What Check and Explanation have in common: the answer as text, Markdown and JSON, and the command's exit code."""

    @property
    def exit_code(self) -> int:
        """What the command would end with (explain: with --exit-code): 0 passed or nothing changed, 1 failed or
        changed, 3 inconclusive.
        """
    @property
    def warnings(self) -> list[str]:
        """What a user should know before trusting the verdict."""
    def to_json(self) -> str:
        """The answer as JSON, schema pprofdiff/1, kind check or explain."""
    def to_markdown(self) -> str:
        """The answer as Markdown for a pull request; of a check under 65,000 characters."""
    def _repr_markdown_(self) -> str: ...

@final
class Check(Rendered):
    """What became of the rules of a check, made by check()."""

    @property
    def verdict(self) -> Literal["pass", "fail", "inconclusive"]:
        """One of "pass", "fail" and "inconclusive"; what is allowed passes."""
    @property
    def rules(self) -> list[RuleCheck]:
        """The rules, each a dict: rule, outcome, sample_type, unit, is_of_each, compared, total_base, total_new and
        total_delta (medians), below_floor, floor, too_small, left_out, tau (how much runs differ), detectable (the
        least growth in percent that would have failed) and findings, a list of dicts: frame (None for a total, or
        frames that are taken as one), outcome ("fail", "inconclusive", "allowed" or "pass"), reason, base and new
        (dicts: median, min, max, values), delta (an int, or a float if it is a half, like median), excess, percent, p,
        p_adjusted (corrected for everything that is compared) and runs_needed.
        """

@final
class Ranking:
    """Many pairs by what changed beyond chance, and the causes that several of them share. Made by Batch.ranking()."""

    @property
    def changed(self) -> int:
        """How many pairs changed by more than chance: the first rows of pairs."""
    @property
    def pairs(self) -> Table:
        """One pair a row: first those that changed by more than chance, the largest change by causes first. Columns:
        pair; function and cause (the largest, in words) of one that changed; base, new and delta of its totals; q, the
        least rate of false discoveries at which it changed.
        """
    @property
    def clusters(self) -> Table:
        """One cause a row that several pairs share, the largest change first. Columns: function, callee, caller_package
        (where all agree), pair (that with the largest change), cause (in its words), pairs (how many), base, new and
        delta (summed over them) and share, the delta as a part of all bases' totals.
        """
    @property
    def common(self) -> Table:
        """One function a row whose own cost changed alike in many pairs, in each within chance, the largest first.
        Columns: function, pairs (how many), base (at the new sides' amounts of work), new and delta (summed over them),
        share, the delta as a part of all bases' totals, and q.
        """
    @property
    def failed(self) -> list[tuple[str, str]]:
        """The pairs that could not be compared: their names, and why."""
    def to_dict(self) -> dict[str, Any]:
        """All that is known as a dict, schema pprofdiff/1, kind ranking."""
    def to_json(self) -> str:
        """The same as JSON."""
    def to_markdown(self) -> str:
        """The ranking as Markdown."""
    def to_html(self) -> str:
        """The ranking as a page for a browser, which needs nothing else: each cause and pair opens with its account."""
    def _repr_markdown_(self) -> str: ...

@final
class Explanation(Rendered):
    """Why two sides differ, made by Diff.explain(). A notebook shows the causes with bars of both sides."""

    @property
    def verdict(self) -> Verdict:
        """One of "change", "none" and "inconclusive"."""
    @property
    def causes(self) -> Table:
        """The causes, the largest change first. Columns: function, caller, callee (of the language's runtime, where
        these calls changed), label, kind ("self", "calls", "added" or "removed"); base and new, what a run costs
        in its stacks, of which none is another cause's; delta, what a run of the new side has more than the base
        at its amount of work; factor (None if there was nothing before) and score, which is how far it is from
        chance.
        """
    @property
    def account(self) -> dict[str, Any]:
        """How the difference of the totals adds up, of a mean run: delta = work + causes + consequences + rest; with
        garbage (how much of the consequences that is), by_chance, unexplained, consequences_by_chance and p.
        """
    @property
    def moved(self) -> list[dict[str, Any]]:
        """Cost that has another name now, each a dict: function, from, how, delta, cost, even and inside."""
    @property
    def noise(self) -> dict[str, Any]:
        """How much of a difference is chance: a dict with deviation, noticed, mde, runs and more."""
    @property
    def best(self) -> dict[str, Any] | None:
        """The largest cause as a dict (one of to_dict()["causes"]); where these samples can't tell, what is nearest to
        a cause; None if there is nothing.
        """
    def to_dict(self) -> Explained:
        """All that is known as a dict, schema pprofdiff/1, kind explain: verdict, scale, account, causes, moved,
        suspects, background, noise and more; see docs/explain.md.
        """
    def to_html(self) -> str:
        """What is said as an HTML fragment; everything from the input is escaped."""
    def _repr_html_(self) -> str: ...

@final
class Series:
    """Many builds, frame by frame: made by series().

    Read by polars, pandas, DuckDB and others as values(). A notebook shows what changed for good, or the frames that
    moved most of fewer than six builds and against a base.
    """

    @property
    def builds(self) -> list[Build]:
        """The builds in their order, each a dict: key, path, and either error (why it has no values), or stacks,
        duration_nanos, time_nanos, total (before filters, and normalized) and factor (what its values were
        multiplied by).
        """
    @property
    def errors(self) -> dict[str, str]:
        """The builds that have no values: their keys, and why."""
    def values(self, *, dense: bool = False) -> Table:
        """The table itself: one row a build and frame that it has, build after build, each as top() of its profile.

        `dense` has a row for each build and frame, with 0 where a build does not have the frame: at most 20 million
        rows. Columns: build (its key), build_number (its index in `builds`), name, file, line, mapping (None where
        the granularity has none), flat, cum.
        """
    def movers(self, n: int | None = None, *, sort: Sort = "flat") -> Table:
        """The frames, ordered by the largest step of each: by how much it changed from one build to another.

        `sort` is what steps are of: "flat" (own cost) or "cum" (with what is called). Columns: name, file, line,
        mapping, first_seen and last_seen (the keys of the first and last build that have the frame, with their
        numbers), builds (how many have it), and of its largest step those of steps(). `n` rows, or all.
        """
    def shifts(self, n: int | None = None, *, sort: Sort = "flat", explain: bool = False) -> Table:
        """From which build on a frame costs something else, beyond what builds differ by anyway: the first bad one.

        `sort` is the cost: "flat" (own) or "cum" (with what is called). Columns: name, file, line, mapping, kind
        ("step": it stays; "passed": it went away again; "drift": it came bit by bit), since (the key of the first
        build that has it), earliest and latest (the builds that it may as well have come with), until (the first build
        that it is gone from; of a drift the last), before, after and delta (of the mean), delta_low and delta_high
        (where the delta lies at 95 %), q (the part of false ones among what is as clear, to be 0.05 at most),
        total_before, and cause. A build's number is beside its key, such as since_number. The largest first; `n` rows,
        or all. None of fewer than six builds, or against a base.

        With `explain` causes are looked for, between at most five builds before a change and five after: their
        profiles are read again from their paths; of others (bytes, objects) it raises PprofError.
        """
    def steps(self, n: int | None = None, *, sort: Sort = "flat") -> Table:
        """All steps that change something, the largest first: how a frame changed from one build to the next, or from
        the base to one of the others.

        Columns: name, file, line, mapping, from and to (the builds' keys, with from_number and to_number), status,
        flat_from, flat_to, flat_delta, cum_from, cum_to, cum_delta, and total_from, the earlier build's total, of
        which percentages are. `n` rows, or all.
        """
    def explain(
        self,
        build: str | None = None,
        *,
        runs: int = 5,
        min_effect: float = 0.002,
        **options: Unpack[LoadOptions],
    ) -> Explanation:
        """Why a build differs: of a history from those before it, at most `runs` of them, which are taken for runs
        of one program, as are it and those after it; of builds against a base from the base. Several runs show how
        much builds differ anyway. `build` is its key; unless given, that of the largest lasting change, between
        which and others no build is taken, or else of the largest step. See Diff.explain().

        The profiles are read again from their paths: of others (bytes, objects) it raises PprofError, as for the
        first build and one without values.
        """
    def to_html(self, *, n: int | None = None, sort: Sort = "flat") -> str:
        """The page for a browser, one file that needs nothing else: the course of each frame, and for the build of each
        change flame graphs and tables of before and after.

        Of the first `n` of shifts() (movers() of fewer than six builds, or against a base), 500 at most; the twelve
        largest changes have graphs. The builds around them are read again from their paths: of others (bytes,
        objects) it raises PprofError.
        """
    def save_html(self, path: str | PathLike[str], *, n: int | None = None, sort: Sort = "flat") -> None:
        """Writes to_html() to a path."""
    def plot(self, n: int = 8, *, sort: Sort = "flat") -> Any:
        """The courses of at most `n` frames over the builds, as lines with a rule at each lasting change: of the first
        rows of shifts(), or of movers() where there are none. `sort` is what is drawn: "flat" (own cost) or "cum" (with
        what is called). The result is that of Table.plot().
        """
    def to_polars(self, *, dense: bool = False) -> polars.DataFrame:
        """values() as a polars.DataFrame, see Table.to_polars(); `dense` as in values()."""
    def to_pandas(self, *, dense: bool = False) -> pandas.DataFrame:
        """values() as a pandas.DataFrame, see Table.to_pandas(); `dense` as in values()."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def _repr_html_(self) -> str: ...

@final
class Table:
    """The rows of a view, as columns, under a summary.

    A sequence of dicts with the columns' names for keys: table[0] is a row, table[:3] a Table, and table["name"] a
    column, as a list of str, int, float, list of str, or None where there is none. Polars, pandas, pyarrow, DuckDB and
    others read it through the Arrow C stream interface.
    """

    @property
    def kind(self) -> Literal["top", "diff", "peek", "tree", "stacks", "labels", "values", "movers", "shifts", "steps"]:
        """What the rows are: "top", "diff", "peek", "tree", "stacks" or "labels"; of a series "values", "movers"
        or "steps".
        """
    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
    @property
    def summary(self) -> TableSummary:
        """What the table is of, as the header of to_json(): the sides, sample_type, unit, granularity,
        filters, normalize, warnings and totals; of a series the builds in place of sides and totals.
        """
    @property
    def rows_total(self) -> int:
        """Number of rows before any were cut off."""
    def sort(self, by: str, descending: bool = True) -> Table:
        """Ordered by one column; rows that are equal in it keep their order."""
    def head(self, n: int = 20) -> Table:
        """The first `n` rows; of peek and tree, the rows of the first `n` nodes."""
    def to_dicts(self) -> list[dict[str, Any]]:
        """All rows as dicts."""
    def to_json(self) -> str:
        """The table as JSON, schema pprofdiff/1."""
    def to_csv(self, *, quote_formulas: bool = False) -> str:
        """The table as CSV: a line of column names, then the rows; lists are joined with ";". Texts are exact, and a
        spreadsheet runs those that begin with = + - @ as formulas; quote_formulas puts a ' before them.
        """
    def to_markdown(self) -> str:
        """The table as Markdown, for pull requests: units scaled, with a summary."""
    def plot(self, n: int = 20) -> Any:
        """The first `n` rows as a bar chart, in the order of the table: of two sides how much each changed, with
        whiskers where runs say how much that varies; of one profile what it costs.

        An altair.Chart (or one of altair's compound charts) where altair is installed, else an object with the
        Vega-Lite specification (to_dict(), to_json()), which JupyterLab and VS Code draw as well. Values are in the
        axis's unit. Raises PprofError for Series.values(): Series.plot() draws those.
        """
    def to_polars(self) -> polars.DataFrame:
        """The table as a polars.DataFrame; lists are List(Categorical). Needs polars."""
    def to_pandas(self) -> pandas.DataFrame:
        """The table as a pandas.DataFrame: values int64, ratios float64, line Int64, address UInt64, text string, lists
        object. Needs pandas, but not pyarrow.
        """
    def to_arrow(self) -> pyarrow.Table:
        """The table as a pyarrow.Table. Needs pyarrow."""
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
