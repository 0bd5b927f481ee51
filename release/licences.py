#!/usr/bin/env python3
"""Writes release/THIRD-PARTY.txt: the licences of all crates that are linked into the command and the wheel. The
licences require that the texts are distributed with both.

The file contains each licence file of each crate, including those of bundled sources (C code, Unicode tables). Tools
that recognize licences by their text (cargo-about 0.9) write an empty template if they do not know a text, as for
chrono, libm and the crates for Windows. cargo-deny checks which licences are allowed (deny.toml).
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# The released packages, and their target systems.
SHIPPED = ["pprofdiff-cli", "pprofdiff-python"]
SYSTEMS = ["unknown-linux-gnu", "unknown-linux-musl", "apple-darwin", "pc-windows-msvc"]
TARGETS = [f"{processor}-{system}" for processor in ["x86_64", "aarch64"] for system in SYSTEMS]
LICENCE = re.compile(r"(?i)\b(un)?licen[cs]e|^copying|^copyright|^notice")
INTRODUCTION = """\
Licences of what is linked into pprofdiff, beside its own (MIT or Apache-2.0).

All programs that Rust compiles contain its standard library: MIT or Apache-2.0, copyright of the Rust project's
contributors. The command for Linux also contains musl libc: MIT, copyright 2005-2020 Rich Felker and others.
The texts of both licences stand below.
"""


# The licence of crates without a licence file. It requires no notice; the text is here for the reader.
ZERO_CLAUSE_BSD = """\
Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL
IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF
THIS SOFTWARE."""


def linked() -> list[dict[str, Any]]:
    """Returns the crates that are linked for any target, and those that generate linked code, sorted by name."""
    metadata = ["cargo", "metadata", "--format-version", "1", "--locked"]
    packages = json.loads(subprocess.check_output(metadata, cwd=ROOT))["packages"]
    tree = ["cargo", "tree", "--locked", "--edges", "normal", "--prefix", "none", "--no-dedupe", "--target"]
    shipped = [word for name in SHIPPED for word in ("--package", name)]
    found = set()
    for target in TARGETS:
        lines = subprocess.check_output([*tree, target, *shipped], cwd=ROOT, text=True).splitlines()
        found |= {" ".join(line.split()[:2]) for line in lines}
    others = [p for p in packages if p["source"] and f"{p['name']} v{p['version']}" in found]
    return sorted(others, key=lambda package: (package["name"], package["version"]))


def texts(package: dict[str, Any]) -> Iterator[str]:
    """Returns the licence texts of a crate."""
    folder = Path(package["manifest_path"]).parent
    files = sorted(p for p in folder.rglob("*") if p.suffix not in (".rs", ".html") and LICENCE.search(p.name))
    found = [file.read_text(encoding="utf-8").strip("\n") for file in files if file.is_file()]
    # zstd may be used under BSD or GPL; we use BSD.
    found = [text for text in found if "GNU GENERAL PUBLIC LICENSE" not in text]
    if not found:
        if package["license"] == "0BSD":
            words = "\n" + ZERO_CLAUSE_BSD
        else:
            assert "MIT" in package["license"], f"{package['name']} has no licence file"
            _, words = (ROOT / "LICENSE-MIT").read_text().strip("\n").split("\n", 1)
        found = [f"Copyright (c) {', '.join(package['authors'])}\n{words}"]
    yield from found


def main() -> None:
    """Writes the file: all crates, then each distinct text below the names of its crates."""
    packages = linked()
    users: dict[str, list[str]] = {}
    first: dict[str, str] = {}
    for package in packages:
        for text in texts(package):
            words = " ".join(text.split())  # line breaks do not matter
            first.setdefault(words, text)
            named = users.setdefault(words, [])
            if package["name"] not in named:
                named.append(package["name"])
    parts = [INTRODUCTION, *(f"{p['name']} {p['version']}: {p['license']}" for p in packages)]
    for words, names in users.items():
        parts += ["\n" + "=" * 80, ", ".join(names), "", first[words]]
    out = ROOT / "release" / "THIRD-PARTY.txt"
    out.write_text("\n".join(parts) + "\n", encoding="utf-8", newline="\n")
    print(f"{out}: {len(packages)} crates, {len(users)} texts")


if __name__ == "__main__":
    main()
