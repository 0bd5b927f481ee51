#!/usr/bin/env python3
"""Builds the source distribution of the Python package, with the crates that it needs: `release/sdist.py [DIR]`.

The distribution installs without a network if Rust, a C compiler and maturin are installed: it contains the crates, and
its .cargo/config.toml refers to them. Building it needs maturin (next to this interpreter or on the path), and the
network or a filled cargo cache.
"""

import gzip
import io
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from readme import absolute

ROOT = Path(__file__).resolve().parents[1]
# Removed from the manifests: tests, which the source distribution does not contain, and their dependencies.
TESTS = re.compile(r"^\[(dev-dependencies|\[(test|bench)\])\][^\n]*\n(?:(?!\[).*\n?)*", re.MULTILINE)


def main(out: Path) -> None:
    """Writes the archive to the folder `out`."""
    with tempfile.TemporaryDirectory() as scratch:
        bare = Path(scratch, "bare")
        maturin = shutil.which("maturin", path=str(Path(sys.executable).parent)) or "maturin"
        subprocess.run([maturin, "sdist", "--out", bare], cwd=ROOT, check=True)
        (archive,) = bare.glob("*.tar.gz")
        with tarfile.open(archive) as tar:
            tar.extractall(scratch, filter="data")
        tree = Path(scratch, archive.name.removesuffix(".tar.gz"))
        for manifest in tree.glob("crates/*/Cargo.toml"):
            manifest.write_text(TESTS.sub("", manifest.read_text()))
        # PyPI shows the copy of the README in PKG-INFO.
        for page in [tree / "README.md", tree / "PKG-INFO"]:
            page.write_text(absolute(page.read_text(encoding="utf-8")), encoding="utf-8")
        # The lock file keeps its versions, without the removed dependencies.
        subprocess.run(["cargo", "metadata", "--format-version", "1"], cwd=tree, check=True, stdout=subprocess.DEVNULL)
        vendor = ["cargo", "vendor", "--locked", "vendor"]  # prints the necessary configuration
        config = subprocess.check_output(vendor, cwd=tree, stderr=subprocess.DEVNULL)
        (tree / ".cargo").mkdir()
        (tree / ".cargo" / "config.toml").write_bytes(config)
        out.mkdir(parents=True, exist_ok=True)
        (out / archive.name).write_bytes(packed(tree))
        print(out / archive.name)


def packed(tree: Path) -> bytes:
    """Writes the tree as a tar.gz without the owner, times and other facts of this machine."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(tree.rglob("*")):
            if path.is_file():
                entry = tar.gettarinfo(path, f"{tree.name}/{path.relative_to(tree).as_posix()}")
                entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, 0, "", ""
                with path.open("rb") as file:
                    tar.addfile(entry, file)
    return gzip.compress(out.getvalue(), mtime=0)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit("usage: release/sdist.py [DIR]")
    main(Path(sys.argv[1]) if len(sys.argv) == 2 else ROOT / "target" / "dist")
