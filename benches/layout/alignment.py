#!/usr/bin/env python3
"""Benchmarks two builds of one loop: the second build has more functions that nothing calls, so the loop is elsewhere.

The loop of programs/loop.c takes longer at one of four addresses. Both commits have the same hot function. Plain
`bench` measures one layout of each and reports a change. `bench --layouts` links each pair anew, and reports the effect
of layout alone. The figures are in docs/layout.md.

    benches/layout/alignment.py [--layouts 20] path/to/pprofdiff
"""

import argparse
import re
import subprocess
import tempfile
from pathlib import Path

SOURCE = (Path(__file__).parent / "programs/loop.c").read_text()
MAKEFILE = "loop: loop.c\n\tcc -O2 -g -ffunction-sections -o loop loop.c\n"
SLOW = 48


def run(words: list[str], folder: Path) -> str:
    """Run a command and return its output."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} fails: {done.stderr}")
    return done.stdout


def source(unused: int) -> str:
    """Return the source with this number of functions that nothing calls."""
    functions = (f'void unused{i}(void) {{ __asm__ volatile(".nops 9"); }}' for i in range(unused))
    return SOURCE.replace("// UNUSED", "\n".join(functions))


def place(unused: int, folder: Path) -> int:
    """Return the distance of the loop from the start of its line of 64 bytes."""
    (folder / "loop.c").write_text(source(unused))
    run(["make", "-B"], folder)
    listing = run(["objdump", "-d", "--disassemble=odd", "loop"], folder)
    return int(re.search(r"([0-9a-f]+):.*\badd +\$0x1,%rax", listing)[1], 16) % 64


def main() -> None:
    """Make both commits and benchmark them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--layouts", default="20")
    parser.add_argument("pprofdiff", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="alignment-") as name:
        folder = Path(name)
        (folder / "Makefile").write_text(MAKEFILE)
        (folder / ".gitignore").write_text("loop\npprofdiff-runs*\n")
        run(["git", "init", "-q", "-b", "main", "."], folder)
        places = {unused: place(unused, folder) for unused in range(8)}
        fast = next(unused for unused, at in places.items() if at != SLOW)
        slow = next(unused for unused, at in places.items() if at == SLOW)
        for subject, unused in (("begin", fast), ("functions that nothing calls", slow)):
            (folder / "loop.c").write_text(source(unused))
            run(["git", "add", "-A"], folder)
            run(["git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", subject], folder)
        print(f"the loop starts {places[fast]} bytes into a line in the base, and {places[slow]} in the new build")
        for options in ([], ["--layouts", args.layouts]):
            words = ["bench", "HEAD~1..HEAD", *options, "--build", "make", "--", "./loop"]
            print(f"\n$ pprofdiff {' '.join(words)}", flush=True)
            done = subprocess.run([args.pprofdiff.resolve(), *words], cwd=folder, capture_output=True, text=True)
            print("\n".join(done.stderr.splitlines()[-8:]), done.stdout, sep="\n", flush=True)


if __name__ == "__main__":
    main()
