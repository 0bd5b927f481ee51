"""Compares pprof profiles: what changed, with both sides of every number.

    import pprofdiff

    d = pprofdiff.diff("main.pb.gz", "branch.pb.gz")
    d.top(20, sort="cum")
    d.filter(focus="parse").peek("tokenize")
    d.write("diff.pb.gz")

`load` opens one profile, `merge` adds some up, `batch` compares many pairs (`pairs` and `group_pairs` find them) over
all cores, or on the workers of an executor; `delta` and `deltas` say what happened between snapshots of a growing
profile. A view (top, peek, tree, stacks, labels) is a Table: a sequence of dicts that polars, pandas, pyarrow and
DuckDB read as well. `callgraph` draws who calls whom, `list` shows source lines with what they cost, `flamegraph` and
`save_html` are the pictures. `check` says whether what changed is within limits. `series` follows frames along a
history of builds, or compares many builds with one base; `scan` is the rows of many profiles, for polars. `bench`
runs a benchmark of two commits until it is decided whether they differ, and `load_runs` reads its runs again.
"""

# Nothing else is imported here: the command goes through this file too, and should start at once.
from ._batch import Batch, batch
from ._bench import bench
from ._deltas import deltas
from ._native import (
    CallGraph,
    Check,
    DeltaComputer,
    Diff,
    Explanation,
    FlameGraph,
    Listing,
    Pair,
    PprofError,
    Profile,
    Ranking,
    Rendered,
    Result,
    Series,
    Table,
    Views,
    __version__,
    check,
    delta,
    diff,
    group_pairs,
    load,
    load_runs,
    merge,
    pairs,
    series,
)
from ._scan import scan

__all__ = [
    "Batch",
    "CallGraph",
    "Check",
    "DeltaComputer",
    "Diff",
    "Explanation",
    "FlameGraph",
    "Listing",
    "Pair",
    "PprofError",
    "Profile",
    "Ranking",
    "Rendered",
    "Result",
    "Series",
    "Table",
    "Views",
    "__version__",
    "batch",
    "bench",
    "check",
    "delta",
    "deltas",
    "diff",
    "group_pairs",
    "load",
    "load_runs",
    "merge",
    "pairs",
    "scan",
    "series",
]
