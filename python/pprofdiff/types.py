"""Type annotations for the keywords of views and for results. No other module imports this file at run time.

Rows of a Table are plain dicts. Their keys depend on the view, see Table.columns.
"""

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal, NotRequired, TypedDict

Sort = Literal["flat", "cum"]
Granularity = Literal["functions", "filefunctions", "files", "lines", "addresses"]
Matching = Literal["auto", "exact", "stable", "canonical", "moved"]
Status = Literal["added", "removed", "changed", "same"]
Verdict = Literal["change", "none", "inconclusive"]


# <options> From the engine's tables: UPDATE_GOLDENS=1 pytest tests/python/test_package.py writes it.
class Filters(TypedDict, total=False):
    """The keywords of Views.filter(), which all views take as well."""

    tagroot: str | None
    """Add the values of these labels as frames at the root."""
    tagleaf: str | None
    """Add the values of these labels as frames at the leaf."""
    focus: str | None
    """Keep only samples with a matching frame."""
    ignore: str | None
    """Drop samples with a matching frame; wins over `focus`."""
    hide: str | None
    """Remove matching frames; their cost moves to the caller."""
    show: str | None
    """Remove the frames that do not match."""
    show_from: str | None
    """Drop frames above the root-most match, and samples without a match."""
    tagfocus: str | None
    """Keep only samples with this label: key=RE, RE, bytes=1kb:1mb."""
    base_tagfocus: str | None
    """Restrict the base to samples with this label, as in `tagfocus`; totals change too."""
    new_tagfocus: str | None
    """Restrict the new side to samples with this label, as in `tagfocus`; totals change too."""
    tagignore: str | None
    """Drop samples with this label."""
    tagshow: str | None
    """Show only labels with a matching key, in views of labels."""
    taghide: str | None
    """Hide labels with a matching key."""
    prune_from: str | None
    """Drop frames below the leaf-most match."""


class ViewOptions(Filters, total=False):
    """The keywords that all views take, as do series() and Batch.tables()."""

    sample_type: str | Sequence[str] | None
    """Sample type, such as cpu or alloc_space."""
    granularity: Granularity | None
    """Unit of a row: functions, filefunctions, files, lines, addresses."""
    noinlines: bool | None
    """Count inlined functions as part of their caller."""
    all_frames: bool | None
    """Keep frames that a profile marks to be dropped."""
    match: Matching | None
    """How names of functions are matched: auto, exact, stable, canonical, moved."""
    trim_path: str | Sequence[str] | None
    """Cut these prefixes off the paths of files."""
    normalize: Literal["total", "duration"] | float | None
    """Scale the new side by total, duration or a factor."""
    unit: str | None
    """Show values in this unit, such as ms or MB."""
    mean: bool | None
    """Divide values of one profile by its first sample type, a count."""
    drop_negative: bool | None
    """Hide frames whose cost fell."""
    hide_below: float | None
    """Hide frames that are below this percent of the total on both sides."""
    relative_percentages: bool | None
    """Compute percentages of the filtered total."""


class LoadOptions(TypedDict, total=False):
    """The keywords of load() and of all that loads."""

    input_format: str | None
    """The format of all profiles."""
    input_type: str | None
    """Sample type of profiles that don't state it, such as folded stacks."""
    binary: str | PathLike[str] | Sequence[str | PathLike[str]] | None
    """Binary or folder for names and instructions of addresses."""
    base_binary: str | PathLike[str] | Sequence[str | PathLike[str]] | None
    """Binary or folder for the base only."""
    new_binary: str | PathLike[str] | Sequence[str | PathLike[str]] | None
    """Binary or folder for the new side only."""
    demangle: Literal["default", "templates", "full", "none", "off"] | None
    """How names are demangled: default, templates, full, none, off."""
    time: str | None
    """Part of each recording to read, such as 10s..25s."""
    base_time: str | None
    """Part of each recording to read, for the base only."""
    new_time: str | None
    """Part of each recording to read, for the new side only."""
    split_at: str | None
    """Compare the part before a time or event with the part after it."""
    any_build: bool | None
    """Use binaries even if their build ids differ from the profiles'."""
    inflated_limit: int | None
    """Maximum bytes that a profile may inflate to."""


# </options>


class ViewAndLoadOptions(ViewOptions, LoadOptions, total=False):
    """The keywords of functions that load profiles and compute views: check(), series(), Views.explain()."""


class InputSide(TypedDict):
    """One side of a Table: its files, the number of its stacks as written, the sum of its durations, and its earliest
    time; and the part of its recording, if it is not the whole recording.
    """

    paths: list[str]
    stacks: int
    duration_nanos: int
    time_nanos: int
    time: NotRequired[str]


class Sampling(TypedDict):
    """The number of samples behind the values of a side: a known number, a complete count, or an unknown number."""

    model: Literal["counted", "exact", "unknown"]
    by: str
    event: float
    samples: float | None


class SidesSampling(TypedDict):
    """The sampling of both sides."""

    base: Sampling
    new: Sampling


class Normalization(TypedDict):
    """The scaling of the new side. A series has a factor for each build."""

    mode: str
    factor: NotRequired[float]


class SampleType(TypedDict):
    """One of several sample types that are shown side by side. Totals are before filters; the new total is scaled by
    the factor.
    """

    sample_type: str
    unit: str
    factor: float
    total_base: NotRequired[int]
    total_new: NotRequired[int]
    total_delta: NotRequired[int]
    total: NotRequired[int]


class Build(TypedDict):
    """A build of a series: its values, or the reason why it has none."""

    key: str
    path: str
    error: NotRequired[str]
    stacks: NotRequired[int]
    duration_nanos: NotRequired[int]
    time_nanos: NotRequired[int]
    total: NotRequired[int]
    factor: NotRequired[float]


class Question(TypedDict):
    """The question that a JSON answer belongs to: its sides and options."""

    base: NotRequired[InputSide]
    new: NotRequired[InputSide]
    granularity: Granularity
    noinlines: bool
    match: Matching
    trim_path: list[str]
    filters: dict[str, str]
    normalize: Normalization
    sum: bool
    warnings: list[str]
    # Present only if the option was used.
    all_frames: NotRequired[bool]
    relative_percentages: NotRequired[bool]
    drop_negative: NotRequired[bool]
    hide_below: NotRequired[float]


class TableSummary(Question):
    """The subject of a Table: two sides, one profile, or builds."""

    profile: NotRequired[InputSide]
    builds: NotRequired[list[Build]]
    order: NotRequired[Literal["key", "given"]]
    against: NotRequired[Literal["previous", "first"]]
    sample_type: str
    unit: str
    # Statistics of the total, present for two sides with several runs and with significant=True.
    total_base_sd: NotRequired[float | None]
    total_new_sd: NotRequired[float | None]
    total_p: NotRequired[float | None]
    total_rank_p: NotRequired[float | None]
    sampling: NotRequired[SidesSampling]
    total_base: NotRequired[int]
    total_new: NotRequired[int]
    total_delta: NotRequired[int]
    total: NotRequired[int]
    sample_types: NotRequired[list[SampleType]]


class PairSummary(TypedDict):
    """A pair of a batch in one row. Missing values are None."""

    name: str
    error: str | None
    sample_type: str | None
    unit: str | None
    total_base: int | None
    total_new: int | None
    total_delta: int | None
    frames: int | None
    frame: str | None
    flat_delta: int | None
    cum_delta: int | None


class Costs(TypedDict):
    """The flat and cum costs of a function or a line, for both sides or for one profile."""

    flat_base: NotRequired[int]
    flat_new: NotRequired[int]
    flat_delta: NotRequired[int]
    cum_base: NotRequired[int]
    cum_new: NotRequired[int]
    cum_delta: NotRequired[int]
    flat: NotRequired[int]
    cum: NotRequired[int]


class Instruction(Costs):
    """An instruction of a Listing: its address in the binary (for two sides the address in each, or None if a side
    lacks it), and the innermost function, file and line that it was compiled from (None if the binary does not have
    them).
    """

    base_address: NotRequired[int | None]
    new_address: NotRequired[int | None]
    change: NotRequired[Literal["same", "inserted", "deleted"]]
    address: NotRequired[int | None]
    text: str
    function: str | None
    file: str | None
    line: int | None


class SourceLine(Costs):
    """A line of a Listing. For two sides, its line number in each (None if missing); for one profile, `line`."""

    base_line: NotRequired[int | None]
    new_line: NotRequired[int | None]
    change: NotRequired[Literal["same", "inserted", "deleted", "unknown"]]
    line: NotRequired[int | None]
    text: str | None
    instructions: NotRequired[list[Instruction]]


class Routine(Costs):
    """A function of a Listing: the location of its sources or binaries (None if they were not found), its costs, and
    its lines or instructions. `code` is the difference between the instructions of both builds; it is None for lines.
    """

    name: str
    file: str | None
    base_source: NotRequired[str | None]
    new_source: NotRequired[str | None]
    status: NotRequired[Status]
    source: NotRequired[str | None]
    base_binary: NotRequired[str | None]
    new_binary: NotRequired[str | None]
    binary: NotRequired[str | None]
    code: dict[str, Any] | None
    notes: list[str]
    lines: list[SourceLine]
    instructions: NotRequired[list[Instruction]]


class Runs(TypedDict):
    """The values of one side over its runs. The median of an even number of runs may be a half."""

    median: float
    min: int
    max: int
    values: list[int]


Outcome = Literal["pass", "allowed", "inconclusive", "unmatched", "fail"]


class Place(TypedDict):
    """The source location of a function."""

    file: str
    line: int


class Finding(TypedDict):
    """A rule's finding for one subject. `frame` is None for a total, and for frames taken as one. `excess` is the
    distance of the new side's median above the largest value that the limit allows, in the values' unit. `p_adjusted`
    is corrected for all frames that the rule compares; a finding fails at the rule's `p_limit` or less. `runs_needed`
    is the number of runs per side with which a growth within chance would become significant. `within` is the frame
    with the same outcome whose stacks contain this frame's. `code` is the difference between the instructions of both
    builds, if they were compared.
    """

    code: NotRequired[dict[str, Any]]
    frame: str | None
    outcome: Outcome
    place: Place | None
    within: str | None
    reason: str | None
    base: Runs
    new: Runs
    delta: float
    excess: float
    percent: float | None
    p: float | None
    p_adjusted: float | None
    runs_needed: int | None


class RuleCheck(TypedDict):
    """The result of a rule. Totals are medians of a side's runs. `floor` is in percent of the total, and `below_floor`
    is the number of frames below it. `too_small` is the number of compared frames that do not fail, but vary by chance
    by more than the limit. `p_limit` is 0.01, or less if several rules (`family`) share it; it is None for rules
    that are not tested for chance. `why` exists for a rule that fails, and has the causes related to it.
    """

    rule: str
    outcome: Outcome
    sample_type: str
    unit: str
    sampling: list[Sampling]
    is_of_each: bool
    compared: int
    total_base: float
    total_new: float
    total_delta: float
    below_floor: int
    floor: float
    too_small: int
    left_out: int
    tau: float
    detectable: float | None
    p_limit: float | None
    family: int
    findings: list[Finding]
    why: NotRequired["Explained"]


class Explained(Question):
    """The dict that Explanation.to_dict() returns; docs/explain.md describes its parts."""

    schema: str
    kind: Literal["explain"]
    sample_type: str
    unit: str
    sampling: SidesSampling
    total_base: int
    total_new: int
    total_delta: int
    verdict: Verdict
    scale: dict[str, Any]
    account: dict[str, Any]
    causes: list[dict[str, Any]]
    rewrite: dict[str, Any] | None
    moved: list[dict[str, Any]]
    suspects: list[dict[str, Any]]
    candidate: dict[str, Any] | None
    background: float
    noise: dict[str, Any]
    runtime: dict[str, str]
    pruned: int
    also: NotRequired[list["Explained"]]
