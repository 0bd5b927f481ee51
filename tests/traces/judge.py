#!/usr/bin/env python3
"""Reads profiles of other tools in a simple way, and writes their samples. `tests/traces.rs` and `format/oracle.rs`
compare our readers with the result.

The code follows the descriptions of the formats, shares nothing with the readers, and is slow. Usage: judge.py FILE...
writes FILE.expected.json (without .gz) for each FILE: `{"types": [...], "samples": [[stack, labels, values], ...]}`,
with stacks from the root. With `--time FROM..UNTIL` (in seconds from the start of the recording) it only reads that
part, and writes FILE.cut.json, which also contains the `time`, and the nanoseconds until the first event of each name
(`events`). Java recordings are read with `jfr print`, and recordings of CPython with its own reader. `tests/producers/make traces` records the output of `perf report`
and `jeprof` in the same folder."""

import collections
import datetime
import gzip
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
from decimal import Decimal

# The part of a recording to read, in nanoseconds from its start.
WINDOW = [0, 10**18]

# Time of the first event of each name.
EVENTS = {}


def is_read(time):
    """Returns true if an event at this time is inside the window."""
    return WINDOW[0] <= time < WINDOW[1]


def overlap(begin, end):
    """Returns the length of the overlap between an interval and the window."""
    return max(0, min(end, WINDOW[1]) - max(begin, WINDOW[0]))


def note(event, time):
    """Records an event of this name at this time."""
    EVENTS[event] = min(time, EVENTS.get(event, time))


def cpuprofile(text):
    """DevTools: in order of time, each sample lasts until the next one, and the last one until the recording ends."""
    profile = json.loads(text)
    nodes = {node["id"]: node for node in profile["nodes"]}
    parent = {child: node["id"] for node in profile["nodes"] for child in node.get("children", [])}
    time, ticks = 0, []
    for delta, node in zip(profile["timeDeltas"], profile["samples"], strict=True):
        time += delta
        ticks.append((time, node))
    ticks.sort()
    ends = [after[0] * 1000 for after in ticks[1:]] + [(profile["endTime"] - profile["startTime"]) * 1000]
    lasts = [overlap(tick[0] * 1000, end) for tick, end in zip(ticks, ends, strict=True)]
    sums = collections.defaultdict(lambda: [0, 0, 0])
    for (time, node), nanos in zip(ticks, lasts, strict=True):
        is_idle = nodes[node]["callFrame"]["functionName"] == "(idle)"
        stack = []
        while node in parent:
            frame = nodes[node]["callFrame"]
            stack.append(place(frame))
            node = parent[node]
        values = [0, nanos, 0] if is_idle else [int(is_read(time * 1000)), nanos, nanos]
        sums[tuple(reversed(stack)), ()] = [
            a + b for a, b in zip(sums[tuple(reversed(stack)), ()], values, strict=True)
        ]
    return [["samples", "count"], ["wall", "nanoseconds"], ["cpu", "nanoseconds"]], sums


def place(frame):
    """Returns name, file and line (counted from 1)."""
    line = frame["lineNumber"] + 1
    name = frame["functionName"] or "(anonymous)"
    if not frame["functionName"] and frame["url"]:
        _, _, file = frame["url"].rpartition("/node_modules/")
        file = file if file != frame["url"] or file.startswith("node:") else file.rpartition("/")[2]
        name += f" {file}" + (f":{line}:{frame['columnNumber'] + 1}" if line > 0 else "")
    return f"{name} {frame['url']}:{line}"


def trace(text):
    """DevTools (`SamplesHandler`): the pieces of a profile have its process and its id; the rest is like above."""
    file = json.loads(text, parse_float=Decimal)
    events = file["traceEvents"] if isinstance(file, dict) else file
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    calls = {e["args"]["Python id"]: e for e in events if e.get("cat") == "python_function"}
    if calls:
        return torch(calls, threads, processes)
    heads = [event for event in events if event["name"] == "Profile"]
    began = min(head["ts"] for head in heads)
    for event in events:
        if event["ph"] != "M":
            note(event["name"], (event["ts"] - began) * 1000)
    sums = collections.defaultdict(lambda: [0, 0, 0])
    for head in heads:
        key = head["pid"], head["id"]
        pieces = [e for e in events if e["name"] == "ProfileChunk" and (e["pid"], e["id"]) == key]
        pieces = [piece["args"]["data"] for piece in sorted(pieces, key=lambda piece: piece["ts"])]
        nodes = {n["id"]: n for piece in pieces for n in piece.get("cpuProfile", {}).get("nodes", [])}
        samples = [s for piece in pieces for s in piece.get("cpuProfile", {}).get("samples", [])]
        time, ticks = head["ts"] - began, []
        for delta, node in zip([d for piece in pieces for d in piece.get("timeDeltas", [])], samples, strict=True):
            time += delta
            ticks.append((time * 1000, node))
        ticks.sort()
        ends = [piece["endTime"] for piece in pieces if "endTime" in piece]
        if ends:
            end = (head["ts"] - began + ends[-1] - head["args"]["data"]["startTime"]) * 1000
        else:
            end = ticks[-1][0] + (ticks[-1][0] - ticks[0][0]) // (len(ticks) - 1)
        names = threads.get((head["pid"], head["tid"])), processes.get(head["pid"])
        labels = [f"{key}={name}" for key, name in zip(("thread", "process"), names, strict=True) if name]
        labels += [f"pid={head['pid']}", f"tid={head['tid']}"]
        for (time, node), after in zip(ticks, [tick[0] for tick in ticks[1:]] + [end], strict=True):
            nanos = overlap(time, after)
            is_idle = nodes[node]["callFrame"]["functionName"] == "(idle)"
            stack = []
            while "parent" in nodes[node]:
                stack.append(place({"url": "", "lineNumber": -1, "columnNumber": -1} | nodes[node]["callFrame"]))
                node = nodes[node]["parent"]
            values = [0, nanos, 0] if is_idle else [int(is_read(time)), nanos, nanos]
            row = sums[tuple(reversed(stack)), tuple(labels)]
            row[:] = [a + b for a, b in zip(row, values, strict=True)]
    return [["samples", "count"], ["wall", "nanoseconds"], ["cpu", "nanoseconds"]], sums


def torch(calls, threads, processes):
    """Time in a call is its duration without the calls that name it as their parent. Our reader uses times instead."""
    began = min(whole(call["ts"], 1000) for call in calls.values())
    sums = collections.defaultdict(lambda: [0, 0])
    rows = {}
    for number, call in calls.items():
        stack, at = [], number
        while at in calls:
            name = re.sub(r" at 0x[0-9a-f]+>$", ">", calls[at]["name"])
            match = re.fullmatch(r"(.*?)\((\d+)\): (.*)", name)
            file, line, name = match.groups() if match else ("", 0, name)
            stack.append(f"{name} {file}:{line}")
            at = calls[at]["args"].get("Python parent id")
        labels = [("thread", threads.get((call["pid"], call["tid"]))), ("process", processes.get(call["pid"]))]
        labels = [f"{k}={v}" for k, v in [*labels, ("pid", call["pid"]), ("tid", call["tid"])] if v]
        rows[number] = sums[tuple(reversed(stack)), tuple(labels)]
    for number, call in calls.items():
        begin = whole(call["ts"], 1000) - began
        nanos = overlap(begin, begin + whole(call["dur"], 1000))
        rows[number][0] += is_read(begin)
        rows[number][1] += nanos
        if (parent := call["args"].get("Python parent id")) in calls:
            rows[parent][1] -= nanos
    return [["calls", "count"], ["wall", "nanoseconds"]], sums


def stackprof(text):
    """Reads the stacks with their lengths and numbers, and the time before each sample."""
    file = json.loads(text)
    kind = {"wall": "wall", "cpu": "cpu", "object": "alloc_objects"}[file["mode"]]
    one = file["interval"] * (1 if kind == "alloc_objects" else 1000)
    sums = collections.defaultdict(lambda: [0, 0])

    def shown(frame, line):
        return f"{frame['name']} {frame['file']}:{line or 0}"

    raw, lines, deltas = file.get("raw"), file.get("raw_lines"), iter(file.get("raw_timestamp_deltas", []))
    if raw is None:
        for frame in file["frames"].values():
            row = sums[(shown(frame, frame.get("line")),), ()]
            row[:] = [row[0] + frame["samples"], row[1] + frame["samples"] * one]
    at, time = 0, 0
    while raw and at < len(raw):
        places = range(at + 1, at + 1 + raw[at])
        frames = [(file["frames"][str(raw[place])], place) for place in places]
        stack = tuple(shown(frame, lines[place] if lines else frame.get("line")) for frame, place in frames)
        for _ in range(raw[places.stop]):
            begin, time = time, time + next(deltas) * 1000
            row = sums[stack, ()]
            row[0] += is_read(time)
            row[1] += overlap(begin, time) if kind == "wall" else one * is_read(time)
        at = places.stop + 1
    return [["samples", "count"], [kind, "count" if kind == "alloc_objects" else "nanoseconds"]], sums


# Prints what CPython's own reader finds in a recording: about it, and then one line per stack.
REPLAY = """
import json, sys
from profiling.sampling.binary_reader import BinaryReader
from profiling.sampling.collector import Collector, extract_lineno
class Printer(Collector):
    def collect(self, stack_frames, timestamps_us=None):
        for interpreter in stack_frames:
            for thread in interpreter.threads:
                frames = self._filter_internal_frames(thread.frame_info)
                frames = [(f.funcname, f.filename, extract_lineno(f.location)) for f in reversed(frames or [])]
                print(json.dumps([thread.thread_id, thread.status, timestamps_us, frames]))
    def export(self, filename):
        pass
with BinaryReader(sys.argv[1]) as reader:
    print(json.dumps(reader.get_info()))
    reader.replay_samples(Printer())
"""

MODES = ["wall", "cpu", "gil", "wall", "exception"]


def sampling_bin(data):
    """Reads a recording of CPython's profiling.sampling with its own reader (`python3.15`)."""
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(data)
        file.flush()
        printed = subprocess.run(["python3.15", "-c", REPLAY, file.name], check=True, capture_output=True).stdout
    about, *records = map(json.loads, printed.splitlines())
    main = {tid for tid, status, _, _ in records if status & 1 << 5}
    sums = collections.defaultdict(lambda: [0, 0])
    for tid, _, times, frames in records:
        labels = (["thread=MainThread"] if tid in main else []) + [f"tid={tid}"]
        stack = tuple(f"{name} {file if file != '~' or line else ''}:{line}" for name, file, line in frames)
        n = sum(is_read((time - about["start_time_us"]) * 1000) for time in times) if stack else 0
        row = sums[stack, tuple(labels)]
        row[:] = [row[0] + n, row[1] + n * about["sample_interval_us"] * 1000]
    return [["samples", "count"], [MODES[about["mode"]], "nanoseconds"]], sums


def sampling_jsonl(text):
    """Reads the sums of frames."""
    records = [json.loads(line) for line in text.splitlines()]
    strings = {s["str_id"]: s["value"] for r in records if r["type"] == "string_table" for s in r["strings"]}
    frames = {f["frame_id"]: f for r in records if r["type"] == "frame_table" for f in r["frames"]}
    one = records[0]["sample_interval_usec"] * 1000
    sums = collections.defaultdict(lambda: [0, 0])
    for entry in (entry for r in records if r["type"] == "agg" for entry in r["entries"]):
        frame = frames[entry["frame_id"]]
        file, line = strings[frame["path_str_id"]], frame["line"]
        row = sums[(f"{strings[frame['func_str_id']]} {file if file != '~' or line else ''}:{line}",), ()]
        row[:] = [row[0] + entry["self"], row[1] + entry["self"] * one]
    return [["samples", "count"], [records[0]["mode"], "nanoseconds"]], sums


def heapprofile(text):
    """Returns the size of each node."""
    sums = collections.defaultdict(lambda: [0])
    todo = [(json.loads(text)["head"], ())]
    while todo:
        node, stack = todo.pop()
        sums[stack, ()][0] += node["selfSize"]
        todo += [(child, (*stack, place(child["callFrame"]))) for child in node["children"]]
    return [["inuse_space", "bytes"]], sums


def whole(number, scale):
    """Converts a number of larger units to an integer, rounded."""
    return int((Decimal(number) * scale).to_integral_value(rounding="ROUND_HALF_UP"))


def speedscope(text):
    """Reads samples by weight, and events by the time between them."""
    powers = {"seconds": 9, "milliseconds": 6, "microseconds": 3, "nanoseconds": 0}
    file = json.loads(text, parse_float=Decimal)
    names = [f"{f['name']} {f.get('file') or ''}:{f.get('line') or 0}" for f in file["shared"]["frames"]]
    sums = collections.defaultdict(lambda: [0])
    starts = [whole(p.get("startValue") or 0, 10 ** powers[p["unit"]]) for p in file["profiles"]]
    for profile, start in zip(file["profiles"], starts, strict=True):
        scale = 10 ** powers[profile["unit"]]
        labels = (f"profile={profile['name']}",) if len(file["profiles"]) > 1 else ()
        if profile["type"] == "sampled":
            time = start - min(starts)
            for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
                end = time + whole(weight, scale)
                sums[tuple(names[f] for f in stack), labels][0] += overlap(time, end)
                time = end
            continue
        stack, before = [], None
        for event in profile["events"]:
            if stack:
                sums[tuple(stack), labels][0] += overlap(before, whole(event["at"], scale) - min(starts))
            before = whole(event["at"], scale) - min(starts)
            if event["type"] == "O":
                stack.append(names[event["frame"]])
            else:
                assert stack.pop() == names[event["frame"]]
    return [["time", "nanoseconds"]], sums


HEADER = re.compile(r"(\S.*?)\s+(\d+)/(\d+)\s+([\d.]+):\s+(\d+)\s+(\S+):\s*(.*)")
FRAME = re.compile(r"\s*[0-9a-f]+ (.*?)(?:\+0x[0-9a-f]+)?(?: \((\S+)\))?$")


def perf_script(text):
    """Reads blocks of lines, each of which is a sample."""
    types, blocks, first = [], [], None
    for line in text.splitlines():
        header = HEADER.match(line.strip()) if not line.startswith("\t") else None
        if header:
            comm, pid, tid, time, period, event, rest = header.groups()
            time = whole(time, 10**9)
            first = time if first is None else first
            note(event, time - first)
            if event not in types:
                types.append(event)
            period = int(period) if is_read(time - first) else 0
            blocks.append((event, (f"comm={comm}", f"pid={pid}", f"tid={tid}"), period, [rest] if rest else []))
        elif line.startswith("\t"):
            blocks[-1][3].append(line)
        elif line.strip():
            blocks[-1][3][-1] += "\0" + line.strip()
    sums = collections.defaultdict(lambda: [0] * len(types))
    for event, labels, period, lines in blocks:
        stack = []
        for line in reversed(lines):
            line, _, source = line.partition("\0")
            name, binary = FRAME.match(line).groups()
            source = source.removesuffix(" (inlined)")
            file, _, number = source.rpartition(":")
            if not number.isdigit() or file == "??":
                file, number = "", 0
            if name == "[unknown]":
                binary = binary.strip("[]").rsplit("/")[-1]
                name = "[unknown]" if binary == "unknown" else f"[{binary}]"
            stack.append(f"{name} {file}:{number}")
        sums[tuple(stack), labels][types.index(event)] += period
    clocks = ("cpu-clock", "task-clock")
    return [[t, "nanoseconds" if t.split(":")[0] in clocks else "count"] for t in types], sums


def firefox(text):
    """Reads each sample with the tables of its thread, or the shared tables of all threads."""
    profile = json.loads(text, parse_float=Decimal)
    shared = profile.get("shared", {})
    sums = collections.defaultdict(lambda: [0, 0])
    first = min(time for thread in profile["threads"] for time in thread["samples"]["time"])
    began = profile["meta"].get("profilingStartTime", first)
    for thread in profile["threads"]:
        tables = shared | thread
        strings, functions, frames = (tables[t] for t in ("stringArray", "funcTable", "frameTable"))
        is_micro = profile["meta"]["sampleUnits"]["threadCPUDelta"] == "µs"

        def shown(frame, tables=tables, strings=strings, functions=functions, frames=frames):
            function = frames["func"][frame]
            name, resource = strings[functions["name"][function]], functions["resource"][function]
            if re.fullmatch(r"0x[0-9a-f]+", name):
                name = "[unknown]" if resource < 0 else f"[{profile['libs'][tables['resourceTable']['lib'][resource]]['name']}]"
            if "source" in functions:
                source = functions["source"][function]
                file = None if source is None else tables["sources"]["filename"][source]
            else:
                file = functions["fileName"][function]
            return f"{name} {'' if file is None else strings[file]}:{frames['line'][frame] or 0}"

        markers = thread["markers"]
        for name, start, data in zip(markers["name"], markers["startTime"], markers["data"], strict=True):
            if start is not None:
                note(strings[name], whole(start - began, 10**6))
                if strings[name] == "UserTiming":
                    note(data["name"] if isinstance(data["name"], str) else strings[data["name"]], EVENTS[strings[name]])
        samples, labels = thread["samples"], []
        for key, member in [("thread", "name"), ("process", "processName"), ("pid", "pid"), ("tid", "tid")]:
            labels.append(f"{key}={thread[member]}")
        for i, stack in enumerate(samples["stack"]):
            time = samples["time"][i] - began
            if stack is None or not is_read(whole(time, 10**6)):
                continue
            path, at = [], stack
            while at is not None:
                path.append(shown(tables["stackTable"]["frame"][at]))
                at = tables["stackTable"]["prefix"][at]
            row = sums[tuple(reversed(path)), tuple(labels)]
            row[0] += 1 if samples["weight"] is None else samples["weight"][i]
            row[1] += samples["threadCPUDelta"][i] * (1000 if is_micro else 1) if i else 0
    return [["samples", "count"], ["cpu", "nanoseconds"]], sums


def jfr(data):
    """Reads the output of `jfr print` of the JDK for each event."""
    events = [event for _, chunk in chunks(data) for event in printed(chunk)]
    began = min(start for start, _ in chunks(data))
    kinds = {event["type"].removeprefix("jdk.") for event in events}
    is_exact = not kinds.isdisjoint({"ObjectAllocationInNewTLAB", "ObjectAllocationOutsideTLAB"})
    allocated = "alloc_space"
    # For each event: its sample types, and the values that it adds to them.
    adds = {
        "ExecutionSample": {"samples": lambda _: 1},
        "NativeMethodSample": {"native_samples": lambda _: 1},
        "ObjectAllocationInNewTLAB": {allocated: lambda e: e["tlabSize"]},
        "ObjectAllocationOutsideTLAB": {allocated: lambda e: e["allocationSize"]},
        "JavaMonitorEnter": {"contentions": lambda _: 1, "delay": lambda e: iso_nanos(e["duration"])},
        "ThreadPark": {"parks": lambda _: 1, "park": lambda e: iso_nanos(e["duration"])},
    }
    if not is_exact:
        adds["ObjectAllocationSample"] = {allocated: lambda e: e["weight"]}
    units = {"alloc_space": "bytes", "delay": "nanoseconds", "park": "nanoseconds"}
    order = ["samples", "native_samples", allocated, "contentions", "delay", "parks", "park"]
    types = [t for t in order if any(t in adds[kind] for kind in kinds & adds.keys())]
    sums = collections.defaultdict(lambda: [0] * len(types))
    for event in events:
        kind, values = event["type"].removeprefix("jdk."), event["values"]
        note(event["type"], since_1970(values["startTime"]) - began)
        if kind not in adds or not is_read(since_1970(values["startTime"]) - began):
            continue
        thread = values.get("eventThread") or values.get("sampledThread")
        class_ = next((values[c] for c in ("objectClass", "monitorClass", "parkedClass") if values.get(c)), None)
        labels = {
            "thread": thread and (thread["javaName"] or thread["osName"]),
            "state": values.get("state"),
            "class": class_ and source_class(class_["name"]),
        }
        stack = []
        for frame in reversed((values["stackTrace"] or {"frames": []})["frames"]):
            method = frame["method"]
            within = source_class(method["type"]["name"])
            # Native frames, as async-profiler writes them, have no class.
            name = f"{within}.{method['name']}" if within else method["name"]
            stack.append(f"{name} :{max(frame['lineNumber'], 0)}")
        key = tuple(stack), tuple(f"{k}={v}" for k, v in labels.items() if v)
        for t, amount in adds[kind].items():
            sums[key][types.index(t)] += amount(values)
    return [[t, units.get(t, "count")] for t in types], sums


def chunks(data):
    """Yields the start time of each chunk of a recording, from its header, and the chunk, which is a recording by
    itself."""
    at = 0
    while at < len(data):
        size, _, _, start = struct.unpack_from(">4q", data, at + 8)
        yield start, data[at : at + size]
        at += size


def printed(chunk):
    """Returns the events of a chunk. Chunks are printed separately, because `jfr` (JDK 17) applies the clock of the
    first chunk with the same events to all chunks. The clocks of our chunks differ by up to 0.2 microseconds."""
    with tempfile.NamedTemporaryFile(suffix=".jfr") as file:
        file.write(chunk)
        file.flush()
        words = ["jfr", "print", "--json", "--stack-depth", "2048", file.name]
        return json.loads(subprocess.run(words, check=True, capture_output=True).stdout)["recording"]["events"]


def since_1970(text):
    """Parses a time such as 2026-11-25T10:00:00.123456789+01:00."""
    day, fraction, zone = re.fullmatch(r"([^.]+?)(\.\d+)?([+-]\d\d:\d\d|Z)", text).groups()
    seconds = datetime.datetime.fromisoformat(day + zone.replace("Z", "+00:00")).timestamp()
    return int(seconds) * 10**9 + whole(fraction or 0, 10**9)


def iso_nanos(text):
    """Parses a duration such as PT1M2.5S."""
    minutes, seconds = re.fullmatch(r"PT(?:(\d+)M)?(?:([\d.]+)S)?", text).groups()
    return int(Decimal(minutes or 0) * 60 * 10**9 + Decimal(seconds or 0) * 10**9)


def source_class(name):
    """Returns a name as in the source, without the numbers that a JVM assigns."""
    if name.startswith("["):
        element = name.lstrip("[")
        letters = {"Z": "boolean", "B": "byte", "C": "char", "S": "short"}
        letters |= {"I": "int", "J": "long", "F": "float", "D": "double"}
        inner = letters.get(element) or source_class(element[1:-1])
        return inner + "[]" * (len(name) - len(element))
    name = re.sub(r"[+/]0x.*", "", name)
    name = re.sub(r"\$\$Lambda\$\d+$", "$$Lambda", name)
    name = re.sub(r"((?:Method|Constructor)Accessor|\$Proxy)\d+$", r"\1", name)
    return name.replace("/", ".")


def main(paths):
    """Writes the expected content of each file."""
    readers = {
        ".jfr": jfr,
        ".firefox.json": firefox,
        ".cpuprofile": cpuprofile,
        ".heapprofile": heapprofile,
        ".speedscope.json": speedscope,
        ".perf.txt": perf_script,
        ".trace.json": trace,
        ".stackprof.json": stackprof,
        ".sampling.bin": sampling_bin,
        ".sampling.jsonl": sampling_jsonl,
    }
    time = {}
    if paths[0] == "--time":
        WINDOW[:] = [whole(end, 10**9) for end in paths[1].split("..")]
        time, paths = {"time": "s..".join(paths[1].split("..")) + "s"}, paths[2:]
    for path in map(pathlib.Path, paths):
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        name = path.name.removesuffix(".gz")
        read = next(read for ending, read in readers.items() if name.endswith(ending))
        types, sums = read(data if read in (jfr, sampling_bin) else data.decode())
        rows = sorted([list(stack), list(labels), values] for (stack, labels), values in sums.items() if any(values))
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        head = json.dumps(time | ({"events": EVENTS} if time and EVENTS else {}) | {"types": types})[:-1]
        EVENTS.clear()
        ending = ".cut.json" if time else ".expected.json"
        path.with_name(name + ending).write_text(f'{head}, "samples": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main(sys.argv[1:])
