#!/usr/bin/env python3
"""Makes the links of README.md absolute, in place: `release/readme.py [FILE]`, and `git checkout README.md` afterwards.

PyPI shows the README without the repository, so a relative link leads nowhere there; crates.io looks for it below the
crate's own folder. What is released has links to the tag of its version. In the repository they stay relative: they
work in a clone, on a branch and on the forge.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
LINK = re.compile(r"(!?)\[([^\[\]]+)\]\((?![a-z]+:|#)([^()\s]+)\)")


def absolute(text: str) -> str:
    """The text with links into the repository instead of relative ones."""
    return LINK.sub(lambda m: f"{m[1]}[{m[2]}]({leads(m[3], picture=bool(m[1]))})", text)


def leads(link: str, picture: bool) -> str:
    """Where a link leads: a picture as it is, all else as the forge shows it."""
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
