#!/usr/bin/env python3
"""Runs the commands of the start pages with a release artifact and nothing else: `release/try.py KIND [PATH]`.

    release/try.py wheel [FILE]      docs/start.md and docs/notebooks.md in a new virtual environment with this wheel
    release/try.py wheel --installed the same pages with this interpreter, where the wheel is already installed
    release/try.py archive [FILE]    the shell blocks of docs/start.md with the command from this archive
    release/try.py crates            docs/rust.md in empty projects, with the crates as they would be uploaded

PATH defaults to the newest artifact in target/dist. Each page runs in its own directory with two profiles (main.pb.gz
and branch.pb.gz), and its blocks run in order. A block after <!-- install --> installs the artifact itself, and a block
after <!-- not run --> needs something that a page cannot provide. Both are skipped, except for other packages that they
install with pip.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "target" / "dist"
BLOCK = re.compile(r"^(<!-- (?:install|not run) -->\n+)?```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CRATES = [
    "pprofdiff-profile",
    "pprofdiff-symbols",
    "pprofdiff-formats",
    "pprofdiff",
    "pprofdiff-explain",
    "pprofdiff-series",
    "pprofdiff-commits",
    "pprofdiff-report",
    "pprofdiff-page",
]


def blocks(page: str, *languages: str) -> list[tuple[str, str]]:
    """Returns the blocks of a page that run: their language and text."""
    found = BLOCK.findall((ROOT / "docs" / page).read_text())
    runs = [(language, text) for left_out, language, text in found if not left_out and language in languages]
    assert runs, f"docs/{page} has no block of {languages}"
    return runs


def installation(page: str) -> str:
    """Returns the install blocks of a page."""
    return "\n".join(text for kind, _, text in BLOCK.findall((ROOT / "docs" / page).read_text()) if "install" in kind)


def shell(text: str, language: str) -> str:
    """Returns the commands of a block. A console block also contains their output."""
    if language == "console":
        return "\n".join(line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ "))
    return text


def run(*command: str | Path, cwd: Path, path: Path | None = None, input: str | None = None) -> None:
    """Runs a command with `path` and the system's own programs on the search path, and nothing else."""
    env = {"HOME": str(cwd), "PATH": f"{path}:/usr/local/bin:/usr/bin:/bin"} if path else None
    if os.name == "nt" and path:
        env = os.environ | {"PATH": f"{path};{os.environ['PATH']}"}
    subprocess.run(command, cwd=cwd, env=env, input=input, text=True, check=True)


def try_pages(directory: Path, pages: dict[str, list[str]], path: Path, python: str | None) -> None:
    """Runs the blocks of each page."""
    for page, languages in pages.items():
        place = directory / page.removesuffix(".md")
        place.mkdir()
        for side, name in [("base", "main.pb.gz"), ("new", "branch.pb.gz")]:
            shutil.copy(ROOT / "tests" / "corpus" / f"story-cpu.{side}.pb.gz", place / name)
        session = []
        for language, text in blocks(page, *languages):
            if language == "python":
                session.append(text)
            else:
                run("sh", "-eu", "-c", shell(text, language), cwd=place, path=path)
        if session:
            assert python
            run(python, "-W", "error", "-", cwd=place, path=path, input="\n".join(session))
        print(f"tried docs/{page}", flush=True)


def wheel(directory: Path, given: str | None) -> None:
    """Runs the pages of the Python package."""
    pages = {"start.md": ["sh", "console"], "notebooks.md": ["python"]}
    packages = {word for page in pages for word in re.findall(r"^pip install (.*)$", installation(page), re.MULTILINE)}
    others = {word for words in packages for word in words.split()} - {"pprofdiff", "."}  # "." in a clone
    if given == "--installed":
        scripts = Path(sys.executable).parent
    else:
        file = Path(given).resolve() if given else newest("*.whl")
        venv.create(directory / "venv", with_pip=True)
        scripts = directory / "venv" / ("Scripts" if os.name == "nt" else "bin")
        run(scripts / "python", "-m", "pip", "install", "--quiet", "--no-index", file, cwd=directory)
    try_pages(directory, {"start.md": pages["start.md"]}, scripts, None)  # without anything else
    run(scripts / "python", "-m", "pip", "install", "--quiet", *sorted(others), cwd=directory)
    try_pages(directory, {"notebooks.md": pages["notebooks.md"]}, scripts, str(scripts / "python"))


def archive(directory: Path, given: str | None) -> None:
    """Runs the pages of the command."""
    file = Path(given).resolve() if given else newest("pprofdiff-v*.tar.gz")
    if file.is_dir():
        (file,) = [f for f in file.iterdir() if f.name.endswith((".tar.gz", ".zip"))]
    shutil.unpack_archive(file, directory)
    (folder,) = directory.iterdir()
    for name in ["LICENSE-MIT", "THIRD-PARTY.txt", "man/pprofdiff.1", "completions/_pprofdiff"]:
        assert (folder / name).stat().st_size > 100, name
    try_pages(directory, {"start.md": ["sh", "console"]}, folder, None)


def crates(directory: Path, given: str | None) -> None:
    """Runs the page of the library: each program of docs/rust.md in its own project."""
    named = [word for name in CRATES for word in ("-p", name)]
    subprocess.run(["cargo", "package", "--quiet", "--locked", "--no-verify", *named], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    patches = []
    for name in CRATES:
        (file,) = (target / "package").glob(f"{name}-[0-9]*.crate")
        shutil.unpack_archive(file, directory, "gztar", filter="data")
        patches.append(f'{name} = {{ path = "{directory / file.stem}" }}')
    version = re.search(r"-(\d[^-]*)\.crate", file.name).group(1)
    project = directory / "project"
    (project / "src" / "bin").mkdir(parents=True)
    added = " ".join(re.findall(r"^cargo add (.*)$", installation("rust.md"), re.MULTILINE))
    names = [word.rpartition("/")[2] for word in added.split() if word != "--path"]  # with paths in a clone
    needs = "\n".join(f'{name} = "{version if name in CRATES else "*"}"' for name in names)
    (project / "Cargo.toml").write_text(
        f'[package]\nname = "project"\nedition = "2024"\n[dependencies]\n{needs}\n[patch.crates-io]\n'
        + "\n".join(patches)
    )
    corpus = ROOT / "tests" / "corpus"
    for side, name in [("base", "main.pb.gz"), ("new", "branch.pb.gz")]:
        shutil.copy(corpus / f"story-cpu.{side}.pb.gz", project / name)
        # The examples with heap profiles and with many pairs.
        shutil.copy(corpus / f"go-heap.{side}.pb.gz", project / f"heap-{name}")
        folder = project / name.removesuffix(".pb.gz")
        folder.mkdir()
        shutil.copy(corpus / f"story-cpu.{side}.pb.gz", folder / "logmill.pb.gz")
    (project / "builds").mkdir()
    for build in (corpus / "series").glob("block-*.pb.gz"):
        shutil.copy(build, project / "builds")
    (project / "pprofdiff.toml").write_text("[explain]\nsystem = ['^acme/rpc']\n")
    programs = [text for _, text in blocks("rust.md", "rust") if "fn main" in text]
    for number, text in enumerate(programs):
        (project / "src" / "bin" / f"block{number}.rs").write_text(text)
    for number in range(len(programs)):
        run("cargo", "run", "--quiet", "--bin", f"block{number}", cwd=project)
    # The smaller build compiles the first program.
    [(_, manifest)] = blocks("rust.md", "toml")
    reduced = directory / "reduced"
    (reduced / "src").mkdir(parents=True)
    manifest = re.sub(r'path = "[^"]*"', f'version = "{version}"', manifest)
    (reduced / "Cargo.toml").write_text(f"{manifest}\n[patch.crates-io]\n" + "\n".join(patches))
    (reduced / "src" / "main.rs").write_text(programs[0])
    run("cargo", "build", "--quiet", cwd=reduced)
    print(f"tried docs/rust.md: {len(programs)} programs, and the smaller build")


def newest(pattern: str) -> Path:
    """Returns the newest artifact."""
    return max(DIST.glob(pattern), key=lambda f: f.stat().st_mtime)


if __name__ == "__main__":
    kinds = {"wheel": wheel, "archive": archive, "crates": crates}
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in kinds:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as scratch:
        kinds[sys.argv[1]](Path(scratch).resolve(), sys.argv[2] if len(sys.argv) == 3 else None)
