"""The Python package's calls, one at a time and on demand: what `benches/src/bin/inprocess.rs` is for Rust.

`inprocess.py BASE NEW [BASE NEW ...]` reads names of works from standard input, a line each, and answers each
with the seconds of wall and CPU time that it took.
"""

import functools
import sys
import time

import numpy

import pprofdiff

PAIRS = list(zip(sys.argv[1::2], sys.argv[2::2], strict=True))


def top() -> None:
    """The table of functions of the first pair."""
    pprofdiff.diff(*PAIRS[0]).top()


def many() -> None:
    """The diffs of all pairs."""
    for result in pprofdiff.batch(PAIRS, on_error="raise"):
        assert result.diff


def tops() -> None:
    """The diffs of all pairs, and the table of functions of each."""
    for result in pprofdiff.batch(PAIRS, on_error="raise"):
        result.diff.top()


@functools.cache
def stacks() -> pprofdiff.Table:
    """All stacks of the first pair; checked: polars must read what is there."""
    table = pprofdiff.diff(*PAIRS[0]).stacks()
    frame, last = table.to_polars(), table[len(table) - 1]
    assert frame.height == len(table)
    assert frame.row(-1, named=True) == last
    return table


@functools.cache
def columns() -> list[numpy.ndarray]:
    """The columns of stacks() as they lie in memory."""
    chunks = [chunk for column in stacks().to_arrow().columns for chunk in column.chunks]
    buffers = [buffer for chunk in chunks for buffer in chunk.buffers() if buffer is not None]
    return [numpy.frombuffer(buffer, numpy.uint8) for buffer in buffers]


def polars() -> None:
    """All stacks as a polars frame."""
    stacks().to_polars()


def copy() -> None:
    """The limit of that: copying the columns once."""
    [column.copy() for column in columns()]


def main() -> None:
    """Answer."""
    works = {work.__name__: work for work in (top, many, tops, polars, copy)}
    for line in sys.stdin:
        work = works[line.strip()]
        if work in (polars, copy):
            columns()
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        print(time.perf_counter() - wall, time.process_time() - cpu, flush=True)


main()
