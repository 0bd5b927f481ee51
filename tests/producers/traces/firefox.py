"""Converts the output of `perf script` to profiles of the Firefox profiler, following the description of its format
(src/types/profile.ts of firefox-devtools/profiler). It replaces samply, which cannot be installed everywhere.

Usage: firefox.py PERF_TEXT own|shared OUT. `own` has all tables in each thread, like version 47 of the format. `shared`
has shared tables, with a table of sources."""

import collections
import json
import re
import sys

HEADER = re.compile(r"(\S.*?)\s+(\d+)/(\d+)\s+([\d.]+):\s+(\d+)\s+(\S+):")
FRAME = re.compile(r"\s*([0-9a-f]+) (.*?)(?:\+0x[0-9a-f]+)?(?: \((\S+)\))?$")


class Table:
    """A table of distinct rows with numbers."""

    def __init__(self):
        self.rows = {}

    def number(self, row):
        return self.rows.setdefault(row, len(self.rows))

    def columns(self, *names):
        return {name: [row[i] for row in self.rows] for i, name in enumerate(names)} | {"length": len(self.rows)}


class Tables:
    """The tables for stacks."""

    def __init__(self, libraries):
        self.libraries = libraries
        self.strings, self.sources, self.resources = Table(), Table(), Table()
        self.functions, self.frames, self.stacks = Table(), Table(), Table()

    def stack(self, frames):
        """Returns the number of a stack of (address, name, binary, file, line), from the root."""
        prefix = None
        for address, name, binary, file, line in frames:
            resource = -1
            if binary:
                library = self.libraries.number(binary)
                resource = self.resources.number((library, self.strings.number(binary.rpartition("/")[2]), None, 1))
            source = self.sources.number((None, self.strings.number(file))) if file else None
            text = self.strings.number(f"0x{address}" if name == "[unknown]" else name)
            function = self.functions.number((text, False, False, resource, source, None, None))
            frame = self.frames.number((int(address, 16), 0, 0, 0, function, None, None, line, None))
            prefix = self.stacks.number((frame, prefix))
        return prefix

    def written(self, is_shared):
        functions = self.functions.columns(
            "name", "isJS", "relevantForJS", "resource", "source", "lineNumber", "columnNumber"
        )
        sources = self.sources.columns("uuid", "filename")
        if not is_shared:
            files = functions.pop("source")
            functions["fileName"] = [None if file is None else sources["filename"][file] for file in files]
        frames = ("address", "inlineDepth", "category", "subcategory", "func", "nativeSymbol", "innerWindowID", "line", "column")
        tables = {
            "stackTable": self.stacks.columns("frame", "prefix"),
            "frameTable": self.frames.columns(*frames),
            "funcTable": functions,
            "resourceTable": self.resources.columns("lib", "name", "host", "type"),
            "nativeSymbols": {"libIndex": [], "address": [], "name": [], "functionSize": [], "length": 0},
            "stringArray": list(self.strings.rows),
        }
        return tables | ({"sources": sources} if is_shared else {})


def samples(text):
    """Yields threads, times in milliseconds, microseconds of work, and frames from the root, for clock events."""
    for block in text.split("\n\n"):
        lines = block.strip("\n").split("\n")
        header = HEADER.match(lines[0].strip())
        if not header or "clock" not in header[6]:
            continue
        frames = []
        for line in lines[1:]:
            if line.startswith("\t"):
                address, name, binary = FRAME.match(line).groups()
                frames.append([address, name, "" if binary == "inlined" else (binary or "").strip("[]"), "", None])
                continue
            # The source position of the previous frame.
            file, _, number = line.strip().removesuffix(" (inlined)").rpartition(":")
            if number.isdigit() and not file.startswith("??"):
                frames[-1][3:] = file, int(number)
        thread = header[1], header[2], int(header[3])
        yield thread, float(header[4]) * 1000, int(header[5]) // 1000, list(reversed(frames))


def main(path, layout, out):
    is_shared = layout == "shared"
    libraries = Table()
    shared = Tables(libraries)
    tables = collections.defaultdict(lambda: shared if is_shared else Tables(libraries))
    rows = collections.defaultdict(list)
    with open(path) as file:
        for thread, time, work, frames in samples(file.read()):
            rows[thread].append((tables[thread].stack(tuple(map(tuple, frames))), time, work))
    begin = min(time for of in rows.values() for _, time, _ in of)
    end = max(time for of in rows.values() for _, time, _ in of)
    threads = []
    for (name, pid, tid), of in rows.items():
        stacks, times, works = (list(column) for column in zip(*of, strict=True))
        # The last sample is idle.
        table = {
            "stack": [*stacks, None],
            "time": [*(round(time - begin, 3) for time in times), end - begin],
            "weight": None,
            "weightType": "samples",
            "threadCPUDelta": [*works, 0],
            "length": len(stacks) + 1,
        }
        thread = {"name": name, "processName": "press", "isMainThread": str(tid) == pid, "pid": pid, "tid": tid}
        markers = {"data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": [], "length": 0}
        own = {} if is_shared else tables[name, pid, tid].written(False)
        threads.append(thread | {"samples": table, "markers": markers} | own)
    libs = [
        {"name": path.rpartition("/")[2], "path": path, "debugName": path, "debugPath": path, "breakpadId": "",
         "codeId": None, "arch": None}
        for path in libraries.rows
    ]  # fmt: skip
    meta = {
        "version": 24,
        "preprocessedProfileVersion": 58 if is_shared else 47,
        "product": "press",
        "interval": 4,
        "startTime": 0,
        "profilingStartTime": 0,
        "profilingEndTime": end - begin,
        "stackwalk": 1,
        "processType": 0,
        "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs"},
        "categories": [{"name": "Other", "color": "grey", "subcategories": ["Other"]}],
        "markerSchema": [],
    }
    profile = {"meta": meta, "libs": libs, "threads": threads}
    if is_shared:
        profile["shared"] = shared.written(True)
    with open(out, "w") as file:
        json.dump(profile, file, separators=(",", ":"), ensure_ascii=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
