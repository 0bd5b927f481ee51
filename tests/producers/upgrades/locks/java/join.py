"""Joins two folded files of async-profiler (number of waits and nanoseconds by stack) to pprof's contention text for
Java.

async-profiler's converter writes only one of the two values per file. Usage: join.py TIMES.folded NANOSECONDS.folded
>OUT.txt"""

import re
import sys
from pathlib import Path


def read(file):
    """Returns the stacks of a file with their values, without the marks for how a frame was compiled."""
    found = {}
    for line in Path(file).read_text().splitlines():
        stack, value = line.rsplit(" ", 1)
        stack = tuple(re.sub(r"_\[.\]$", "", name) for name in stack.split(";"))
        found[stack] = found.get(stack, 0) + int(value)
    return found


times, nanoseconds = (read(file) for file in sys.argv[1:3])
if times.keys() != nanoseconds.keys():
    sys.exit("join.py: the files are not of one recording")
frames = {}
print("--- contentionz 1 ---\nformat = java\nresolution = nanoseconds\nsampling period = 1")
for stack, count in sorted(times.items()):
    addresses = [frames.setdefault(name, len(frames) + 1) for name in reversed(stack)]
    print(nanoseconds[stack], count, "@", *map(hex, addresses))
print()
for name, address in frames.items():
    print(hex(address), name)
