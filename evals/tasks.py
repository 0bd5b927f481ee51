"""The tasks: pairs of profiles from tests/corpus and from tests/commits.rs, each with its right answer."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "tests" / "corpus"

# tests/commits.rs writes its cases there: cargo test -p pprofdiff-cli --test engine evals -- --ignored
COMMITS = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "tmp" / "evals-commits"

# Endings that tell the tools the format of a file.
_ENDINGS = (".pb.gz", ".txt.gz", ".folded.gz", ".cpuprofile.gz")


@dataclass
class Task:
    """A pair of profiles and its right answer."""

    name: str
    group: str
    base: list[Path]
    new: list[Path]
    # function, label, commit or none. "none" means that no code costs more or less: the right answer names no cause.
    asks: str
    # Accepted functions: the guilty function, and its callers and callees that show the change just as well.
    functions: list[str] = field(default_factory=list)
    label: tuple[str, str] | None = None
    sample_type: str | None = None
    # For commits: the repository, its branch, the guilty commit, the accepted places (file, first and last line).
    repository: Path | None = None
    branch: str = ""
    commit: str = ""
    places: list[tuple[str, int, int]] = field(default_factory=list)

    def stage(self, folder: Path) -> tuple[list[str], list[str]]:
        """Copies the files to a folder under names that don't give the answer away, and returns these names."""
        sides: list[list[str]] = []
        for side, files in (("main", self.base), ("branch", self.new)):
            ending = next(ending for ending in _ENDINGS if files[0].name.endswith(ending))
            several = len(files) > 1
            names = [f"{side}-{i}{ending}" if several else f"{side}{ending}" for i in range(1, len(files) + 1)]
            for file, name in zip(files, names, strict=True):
                shutil.copyfile(file, folder / name)
            sides.append(names)
        if self.repository:
            _git(folder, "init", "-q", "-b", "branch")
            _git(folder, "fetch", "-q", str(self.repository), self.branch)
            _git(folder, "reset", "-q", "--hard", "FETCH_HEAD")
            _git(folder, "branch", "main", "HEAD~20")
        return sides[0], sides[1]


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "advice.detachedHead=false", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def _faults() -> Iterator[Task]:
    folder = CORPUS / "faults"
    for row in json.loads((folder / "truth.json").read_text()):
        program, fault, kind = row["program"], row["fault"], row["profile"]
        for reading, runs in (("1", [1]), ("2", [2]), ("3", [3]), ("runs", [1, 2, 3])):
            files = [[folder / program / f"{build}-{i}.{kind}.pb.gz" for i in runs] for build in ("base", fault)]
            label = tuple(row["label"]) if "label" in row else None
            functions = row.get("functions", [])
            yield Task(
                name=f"faults/{program}-{fault}-{kind}-{reading}",
                group="faults, three runs per side" if len(runs) > 1 else "faults, one run per side",
                base=files[0],
                new=files[1],
                asks="label" if label else "function" if functions else "none",
                functions=functions,
                label=label,
                sample_type="alloc_space" if kind == "heap" else None,
            )


def _upgrades() -> Iterator[Task]:
    folder = CORPUS / "upgrades"
    files = sorted(path for path in folder.iterdir() if path.name != "truth.json")
    for row in json.loads((folder / "truth.json").read_text()):
        pair, kind = row["pair"], row["kind"]
        if pair.startswith("loops"):
            step = int(pair.removeprefix("loops"))
            begins = (f"loops{step}.", f"loops{step + 1}.")
        else:
            begins = (f"{pair}.a", f"{pair}.b")
        base, new = (
            [path for path in files if path.name.startswith(begin) and f".{kind}." in path.name] for begin in begins
        )
        functions = row.get("functions", [])
        yield Task(
            name=f"upgrades/{pair}-{kind}",
            group="upgrades and locks",
            base=base,
            new=new,
            asks="function" if functions else "none",
            functions=functions,
            sample_type="alloc_space" if kind == "heap" else None,
        )


def _story() -> Iterator[Task]:
    base, new = (CORPUS / f"story-cpu.{side}.pb.gz" for side in ("base", "new"))
    functions = ["logmill/names.canonical", "logmill/names.compare"]
    yield Task("story", "story", [base], [new], asks="function", functions=functions)


def _commits(folder: Path) -> Iterator[Task]:
    if not (folder / "truth.json").is_file():
        return
    repository = folder / "git"
    for row in json.loads((folder / "truth.json").read_text()):
        branch = row["branch"]
        base, new = (folder / f"{branch}.{side}.pb.gz" for side in ("base", "new"))
        task = Task(f"commits/{branch}", "commits", [base], [new], asks="none", repository=repository, branch=branch)
        if row["guilty"]:
            log = _git(repository, "log", "--format=%H %s", f"{branch}~20..{branch}")
            commits = {subject: commit for commit, subject in (line.split(" ", 1) for line in log.splitlines())}
            task.asks = "commit"
            task.commit = commits[row["guilty"]]
            task.functions = [place["function"] for place in row["functions"]]
            task.functions += [row["library"]] if row["library"] else []
            task.places = [(place["file"], *place["lines"]) for place in row["functions"]]
            task.places += _changed_lines(repository, task.commit, branch)
        else:
            task.group = "commits, none guilty"
        yield task


def _changed_lines(repository: Path, commit: str, branch: str) -> list[tuple[str, int, int]]:
    """Returns the lines of a commit, in its own numbers and, where `git blame` still finds them, in the branch's."""
    places = []
    names = _git(repository, "diff", "--name-only", f"{commit}~", commit).splitlines()
    for name in names:
        for line in _git(repository, "diff", "-U0", f"{commit}~", commit, "--", name).splitlines():
            if line.startswith("@@"):
                first, _, count = line.split("+")[1].split(" ")[0].partition(",")
                places.append((name, int(first), int(first) + max(int(count or 1), 1) - 1))
    for name in _git(repository, "ls-tree", "-r", "--name-only", branch).splitlines():
        blame = _git(repository, "blame", "--line-porcelain", branch, "--", name)
        for line in blame.splitlines():
            if line.startswith(commit):
                number = int(line.split(" ")[2])
                places.append((name, number, number))
    return places


def all_tasks(commits: Path = COMMITS) -> list[Task]:
    """Returns all tasks. Those with commits need the cases that tests/commits.rs writes."""
    return [*_story(), *_faults(), *_upgrades(), *_commits(commits)]
