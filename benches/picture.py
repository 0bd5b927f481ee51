#!/usr/bin/env python3
"""Draws docs/speed.svg, the picture of README.md, from the figures of benches/README.md: `benches/picture.py [FILE]`.

It measures nothing. After a new measurement, draw the picture again; a test compares it with fresh output. The picture
is an SVG file with text, so that it is sharp at every size and follows the reader's dark mode.
"""

import re
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OURS = "pprofdiff"
# Sizes in pixels. The picture is as wide as a README on GitHub.
WIDTH, NAMES, VALUES = 800, 232, 92
BAR, GAP, HEAD = 18, 8, 34
STYLE = (
    "text{font:13px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2328}"
    ".head{font-weight:600}.note{font-size:11px;fill:#59636e}.ours{fill:#0969da}.peer{fill:#afb8c1}"
    "@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.note{fill:#9198a1}.ours{fill:#4493f8}.peer{fill:#656c76}}"
)


def cells(text: str, first: str) -> list[str]:
    """Returns the cells of the row of a table whose first cell starts with `first`."""
    rows = [line for line in text.splitlines() if line.startswith(f"| {first}")]
    if len(rows) != 1:
        sys.exit(f"benches/README.md has {len(rows)} rows that start with {first!r}, not one")
    return [cell.strip() for cell in rows[0].strip("|").split("|")]


def panels(text: str) -> list[tuple[str, str, list[tuple[str, float]]]]:
    """Returns the title, the note and the bars (name, seconds) of each part of the picture."""
    _, _, pairs = text.partition("| wall s / CPU s / peak MiB")
    date = re.search(r"<!-- measured -->\s+(\S+), 2 cores", text)[1]
    programs = [
        ("`pprofdiff A B`", OURS),
        ("Rust: prost and a HashMap", "prost and a hash map (Rust)"),
        ("Python: protobuf", "protobuf and dictionaries (Python)"),
        ("`go tool pprof -top", "go tool pprof -top -diff_base"),
    ]
    top = [(name, float(cells(pairs, first)[2].split(" /")[0])) for first, name in programs]
    _, _, deltas = text.partition("## Deltas")
    deltas, _, _ = deltas.partition("\n## ")
    measured = re.search(r"`delta.py 3`, (\S+):", deltas)[1]
    programs = [
        ("all, one thread", f"{OURS}, one thread"),
        ("fastdelta", "fastdelta (dd-trace-go)"),
        ("Go library", "pprof's Go library"),
    ]
    delta = [(name, float(cells(deltas, first)[1].split()[0]) / 1000) for first, name in programs]
    return [
        ("Compare two profiles of 50,000 samples", f"whole processes, wall time, two cores, {date}", top),
        ("Subtract heap snapshots of 50,000 samples", f"per snapshot, from gzip to gzip, {measured}", delta),
    ]


def shown(seconds: float) -> str:
    """Returns a duration with two digits or more."""
    return f"{seconds:.2g} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def draw(text: str) -> str:
    """Returns the picture."""
    drawn, y = [], 0
    parts = panels(text)
    for title, note, bars in parts:
        slowest = max(seconds for _, seconds in bars)
        y += 20
        drawn.append(f'<text class="head" x="0" y="{y}">{escape(title)}</text>')
        drawn.append(f'<text class="note" x="{WIDTH}" y="{y}" text-anchor="end">{escape(note)}</text>')
        y += HEAD - 20
        for name, seconds in bars:
            length = max(2.0, (WIDTH - NAMES - VALUES) * seconds / slowest)
            kind, weight = ("ours", ' class="head"') if name.startswith(OURS) else ("peer", "")
            drawn.append(f'<text{weight} x="{NAMES - 8}" y="{y + 14}" text-anchor="end">{escape(name)}</text>')
            drawn.append(f'<rect class="{kind}" x="{NAMES}" y="{y}" width="{length:.1f}" height="{BAR}" rx="2"/>')
            drawn.append(f'<text{weight} x="{NAMES + length + 8:.1f}" y="{y + 14}">{shown(seconds)}</text>')
            y += BAR + GAP
        y += 10
    summary = "; ".join(f"{title}: " + ", ".join(f"{n} {shown(s)}" for n, s in bars) for title, _, bars in parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}" role="img">'
        f"<title>{escape(summary)}</title><style>{STYLE}</style>\n" + "\n".join(drawn) + "\n</svg>\n"
    )


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit("usage: benches/picture.py [FILE]")
    file = Path(sys.argv[1]) if len(sys.argv) == 2 else ROOT / "docs" / "speed.svg"
    file.write_text(draw((ROOT / "benches" / "README.md").read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
