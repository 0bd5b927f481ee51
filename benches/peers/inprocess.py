"""Runs calls of the Python package one at a time on demand, like `benches/src/bin/inprocess.rs` does for Rust.

`inprocess.py BASE NEW [BASE NEW ...]` reads the name of a task per line from standard input, runs it, and prints its
wall and CPU time in seconds.
"""

import functools
import sys
import time

import numpy

import pprofdiff

PAIRS = list(zip(sys.argv[1::2], sys.argv[2::2], strict=True))


def top() -> None:
    """Builds the table of functions of the first pair."""
    pprofdiff.diff(*PAIRS[0]).top()


def many() -> None:
    """Builds the diffs of all pairs."""
    for result in pprofdiff.batch(PAIRS, on_error="raise"):
        assert result.diff


def tops() -> None:
    """Builds the diffs of all pairs, and the table of functions of each."""
    for result in pprofdiff.batch(PAIRS, on_error="raise"):
        result.diff.top()


@functools.cache
def stacks() -> pprofdiff.Table:
    """Returns all stacks of the first pair, after checking that polars reads the same row count and last row."""
    table = pprofdiff.diff(*PAIRS[0]).stacks()
    frame, last = table.to_polars(), table[len(table) - 1]
    assert frame.height == len(table)
    assert frame.row(-1, named=True) == last
    return table


@functools.cache
def columns() -> list[numpy.ndarray]:
    """Returns the columns of stacks() as they are in memory."""
    chunks = [chunk for column in stacks().to_arrow().columns for chunk in column.chunks]
    buffers = [buffer for chunk in chunks for buffer in chunk.buffers() if buffer is not None]
    return [numpy.frombuffer(buffer, numpy.uint8) for buffer in buffers]


def polars() -> None:
    """Converts all stacks to a polars frame."""
    stacks().to_polars()


def copy() -> None:
    """Copies the columns once: the lower bound for polars()."""
    [column.copy() for column in columns()]


def main() -> None:
    """Answers requests until the end of the input."""
    works = {work.__name__: work for work in (top, many, tops, polars, copy)}
    for line in sys.stdin:
        work = works[line.strip()]
        if work in (polars, copy):
            columns()
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        print(time.perf_counter() - wall, time.process_time() - cpu, flush=True)


main()
