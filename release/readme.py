#!/usr/bin/env python3
"""Makes the links of README.md absolute, in place: `release/readme.py [FILE]`. Restore with `git checkout README.md`.

PyPI shows the README without the repository, so relative links are broken there; crates.io resolves them below the
crate's own folder. Releases therefore link to the tag of their version. In the repository the links stay relative, so
that they work in a clone and on every branch.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
LINK = re.compile(r"(!?)\[([^\[\]]+)\]\((?![a-z]+:|#)([^()\s]+)\)")


def absolute(text: str) -> str:
    """Replaces relative links by links into the repository."""
    return LINK.sub(lambda m: f"{m[1]}[{m[2]}]({leads(m[3], picture=bool(m[1]))})", text)


def leads(link: str, picture: bool) -> str:
    """Returns the absolute link: the raw file for a picture, the rendered page for everything else."""
    path = ROOT / link.partition("#")[0]
    if not path.exists():
        sys.exit(f"README.md has a link to {link}, which is not there")
    kind = "raw" if picture else "tree" if path.is_dir() else "blob"
    return f"{PACKAGE['repository']}/{kind}/v{PACKAGE['version']}/{link}"


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit("usage: release/readme.py [FILE]")
    readme = Path(sys.argv[1]) if len(sys.argv) == 2 else ROOT / "README.md"
    readme.write_text(absolute(readme.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
