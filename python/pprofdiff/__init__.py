"""Compares pprof profiles: shows what changed, with the values of both sides.

import pprofdiff

d = pprofdiff.diff("main.pb.gz", "branch.pb.gz")
d.top(20, sort="cum")
d.filter(focus="parse").peek("tokenize")
d.write("diff.pb.gz")

`load` opens a profile and `merge` adds profiles up. `batch` compares many pairs (found by `pairs` and `group_pairs`) on
all cores, or on the workers of an executor. `delta` and `deltas` compute the change between snapshots of a cumulative
profile. A view (top, peek, tree, stacks, labels) is a Table: a sequence of dicts that polars, pandas, pyarrow and
DuckDB can also read. `callgraph` shows callers and callees as a graph, `list` shows source lines with their costs, and
`flamegraph` and `save_html` create pictures. `check` decides whether changes are within limits. `series` follows frames
along a history of builds, or compares many builds with one base. `scan` reads the rows of many profiles into polars.
`bench` runs a benchmark of two commits until it is clear whether they differ, and `load_runs` loads its runs again.
"""

# Import nothing else here: the command also imports this file and must start fast.
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
    Histories,
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
    "Histories",
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
