"""Tests of `pprofdiff.bench` and `load_runs`, with py-spy on a Python program and with a scripted command."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import pprofdiff


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "cost").write_text("4000\n")
    write = "printf 'main;shop.validate %s\\nmain;shop.load 9000\\n' ${COST:-$(cat cost)} > \"$PPROFDIFF_PROFILE\"\n"
    (tmp_path / "run.sh").write_text(write)
    (tmp_path / "app.py").write_text(APP.format(rounds=1_000_000))
    for words in [["init", "-q"], ["add", "-A"], ["commit", "-qm", "begin"]]:
        git(tmp_path, *words)
    (tmp_path / "cost").write_text("9000\n")
    (tmp_path / "app.py").write_text(APP.format(rounds=5_000_000))
    git(tmp_path, "commit", "-qam", "slower")
    return tmp_path


# py-spy fails if a program ends before the first sample, and does not count idle time.
APP = """
import time

def work(n):
    return sum(i % 7 for i in range(n))

time.sleep(1)
work({rounds})
"""


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True)


def test_a_change_is_decided_and_its_runs_can_be_loaded(repository: Path, capsys: pytest.CaptureFixture[str]):
    d = pprofdiff.bench("HEAD~1..HEAD", "sh 'run.sh'", cwd=repository, effect=0.01)
    assert "a change of the total: +38.5 %" in capsys.readouterr().err
    [row] = [row for row in d.top() if row["name"] == "shop.validate"]
    assert (row["flat_base"], row["flat_new"]) == (4000, 9000)
    again = pprofdiff.load_runs(repository / "pprofdiff-runs")
    assert len(again.base) == len(again.new) >= 5
    assert again.top().to_dicts() == d.top().to_dicts()
    # The command in a cause names the folder instead of each run, also with noise runs and after pickling.
    for explanation in (
        again.explain(),
        again.explain(noise=again.base[:2]),
        pickle.loads(pickle.dumps(again)).explain(),
    ):
        assert explanation.best
        assert explanation.best["evidence"]["command"].split()[3] == str(repository / "pprofdiff-runs")
    unnamed = pprofdiff.diff(again.base, again.new).explain().best
    assert unnamed
    assert unnamed["evidence"]["command"].split()[3] == "--base"
    # Two commands instead of two commits, continued with `more`.
    few = pprofdiff.bench(base_cmd="sh run.sh", new_cmd="COST=1 sh run.sh", runs=2, into="two", cwd=repository)
    assert len(few.base) == 2
    assert len(pprofdiff.bench(more="two", yes=True, runs=4, cwd=repository).base) == 4
    with pytest.raises(pprofdiff.PprofError, match=r"wants to run `sh run\.sh` in .*, and `COST=1 sh run\.sh` in "):
        pprofdiff.bench(more="two", runs=6, cwd=repository)
    assert pprofdiff.bench("HEAD", ["sh", "run.sh"], runs=2, into="tree", cwd=repository).top()


def test_invalid_arguments_are_errors(repository: Path):
    with pytest.raises(pprofdiff.PprofError, match='git: unknown commit "nothing"'):
        pprofdiff.bench("nothing..HEAD", ["sh", "run.sh"], cwd=repository)
    with pytest.raises(pprofdiff.PprofError, match=r"runs\.toml"):
        pprofdiff.load_runs(repository)


def test_an_empty_line_does_not_repeat_the_previous_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    command = tmp_path / "python"
    command.write_text("#!/bin/sh\nprintf 'pprofdiff: one\\n\\npprofdiff: two\\n\\n' >&2\nexit 2\n")
    command.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(command))
    with pytest.raises(pprofdiff.PprofError, match=r"^two$"):
        pprofdiff.bench("a..b", "true")
    assert capsys.readouterr().err == "one\n\ntwo\n\n"


def test_python_is_profiled_by_py_spy(repository: Path, tmp_path: Path):
    spy = [str(Path(sys.executable).with_name("py-spy")), "record", "--rate", "500"]
    tried = subprocess.run(
        [*spy, "-o", tmp_path / "tried.svg", "--", sys.executable, "-c", "import time; time.sleep(1)"],
        capture_output=True,
        text=True,
    )
    if tried.returncode and "ermission" in tried.stderr:
        if "CI" in os.environ:
            return  # The user cannot change the kernel of CI.
        pytest.skip("the kernel does not let py-spy look into a process")
    assert tried.returncode == 0, tried.stderr
    command = [*spy, "--", sys.executable, "app.py"]
    d = pprofdiff.bench("HEAD~1..HEAD", command, runs=2, cwd=repository)
    [row] = [row for row in d.top(granularity="functions") if "work" in row["name"] and "genexpr" not in row["name"]]
    assert row["cum_new"] > 2 * row["cum_base"]
