#!/usr/bin/env python3
"""Removes information about the machine and the folder from a perf.data file. Usage: perf_data.py FILE FOLDER OUT.

Of the sections after the records, only build ids and event names are kept. FOLDER becomes /press in file paths."""

import pathlib
import re
import struct
import sys

KEPT = [2, 12]
SECTIONS = 72  # Offset of the section bits in the header.

name, folder, out = sys.argv[1:]
data = pathlib.Path(name).read_bytes()
from_, size = struct.unpack_from("<2Q", data, 40)
(bits,) = struct.unpack_from("<Q", data, SECTIONS)
places = {}
for n, number in enumerate(number for number in range(64) if bits >> number & 1):
    places[number] = struct.unpack_from("<2Q", data, from_ + size + 16 * n)
sections = [data[places[number][0] :][: places[number][1]] for number in KEPT]
written = bytearray(data[: from_ + size])
struct.pack_into("<4Q", written, SECTIONS, sum(1 << number for number in KEPT), 0, 0, 0)
at = len(written) + 16 * len(KEPT)
for section in sections:
    written += struct.pack("<2Q", at, len(section))
    at += len(section)
written += b"".join(sections)


def shorter(match):
    """Returns a shorter path. Paths are padded with zeros, so a shorter path gets more padding."""
    return (b"/press" + match[1]).ljust(len(match[0]), b"\0")


path = re.escape(folder.encode()) + rb"([^\0]*)\0"
pathlib.Path(out).write_bytes(re.sub(path, shorter, bytes(written)))
