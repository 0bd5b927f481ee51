#!/usr/bin/env python3
"""Builds the archive of the command for a target: `release/archive.py TARGET [DIR]`.

The archive contains the command, man pages, completions, README, CHANGELOG and all licences, including those of linked
crates (release/THIRD-PARTY.txt, written by release/licences.py). A second file has the SHA-256 of the archive. The
script runs the command that it built, so programs for TARGET must run on this machine. The same commit and compiler
give the same bytes if Cargo's home has the same path, because panic messages contain that path.
"""

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

from readme import absolute

ROOT = Path(__file__).resolve().parents[1]
# The licences of linked crates.
THIRD_PARTY = ROOT / "release" / "THIRD-PARTY.txt"
# File names of completions by shell, as each shell expects them.
COMPLETIONS = {
    "bash": "pprofdiff.bash",
    "zsh": "_pprofdiff",
    "fish": "pprofdiff.fish",
    "powershell": "_pprofdiff.ps1",
    "elvish": "pprofdiff.elv",
    "nushell": "pprofdiff.nu",
}


def main(target: str, out: Path) -> None:
    """Writes archive and checksum into `out`."""
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    if not THIRD_PARTY.exists():
        sys.exit(f"{THIRD_PARTY} is missing, without which nothing may be shipped: release/licences.py writes it")
    command = build(target)
    files = {command.name: command.read_bytes()}
    for path in [*(ROOT / n for n in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"]), THIRD_PARTY]:
        files[path.name] = path.read_bytes()
    files["README.md"] = absolute(files["README.md"].decode()).encode()
    with tempfile.TemporaryDirectory() as pages:
        subprocess.run([command, "man", pages], check=True)
        files |= {f"man/{page.name}": page.read_bytes() for page in sorted(Path(pages).iterdir())}
    for shell, name in COMPLETIONS.items():
        files[f"completions/{name}"] = subprocess.check_output([command, "completions", shell])

    folder = f"pprofdiff-v{version}-{target}"
    out.mkdir(parents=True, exist_ok=True)
    if "windows" in target:
        archive = out / f"{folder}.zip"
        archive.write_bytes(zipped(folder, files))
    else:
        archive = out / f"{folder}.tar.gz"
        archive.write_bytes(tarred(folder, files, command.name))
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    (out / f"{archive.name}.sha256").write_text(f"{digest}  {archive.name}\n", newline="\n")
    print(archive)


def build(target: str) -> Path:
    """Compiles the command and returns its path."""
    flags = ["--release", "--locked", "-p", "pprofdiff-cli", "--target", target]
    subprocess.run(["cargo", "build", *flags], cwd=ROOT, check=True)
    directory = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return directory / target / "release" / ("pprofdiff.exe" if "windows" in target else "pprofdiff")


def tarred(folder: str, files: dict[str, bytes], command: str) -> bytes:
    """Writes the files as a tar.gz without the owner, times and other facts of this machine."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mode = len(content), 0o755 if name == command else 0o644
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(out.getvalue(), mtime=0)


def zipped(folder: str, files: dict[str, bytes]) -> bytes:
    """Writes the files as a zip without the times and other facts of this machine."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(f"{folder}/{name}"), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: release/archive.py TARGET [DIR]")
    main(sys.argv[1], Path(sys.argv[2] if len(sys.argv) == 3 else ROOT / "target" / "dist"))
