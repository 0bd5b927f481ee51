"""The command as pip installs it."""

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

import pprofdiff
from conftest import CORPUS, pair

SCRIPT = shutil.which("pprofdiff", path=sysconfig.get_path("scripts"))
BASE, NEW = map(str, pair("story-cpu"))


@pytest.fixture(params=["script", "module"])
def command(request: pytest.FixtureRequest) -> list[str]:
    if request.param == "module":
        return [sys.executable, "-m", "pprofdiff"]
    assert SCRIPT is not None
    return [SCRIPT]


def run(command: list[str], *arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60, **options)


def test_a_diff(command: list[str]):
    done = run(command, BASE, NEW)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.rstrip() == repr(pprofdiff.diff(BASE, NEW))


def test_version_and_help(command: list[str]):
    assert run(command, "--version").stdout == f"pprofdiff {pprofdiff.__version__}\n"
    done = run(command, "--help")
    assert done.returncode == 0
    assert "pprofdiff BASE NEW" in done.stdout
    assert "__main__" not in done.stdout


@pytest.mark.parametrize(
    "arguments", [[], ["none", BASE], [BASE, NEW, "--sort", "name"], [str(CORPUS / "README.md"), NEW]]
)
def test_errors_are_one_line_and_2(command: list[str], arguments: list[str]):
    done = run(command, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("pprofdiff: ")
    assert done.stderr.count("\n") == 1


def test_stdin_and_output(command: list[str], tmp_path: Path):
    with Path(BASE).open("rb") as file:
        done = run(command, "-", NEW, "--format", "json", "-o", str(tmp_path / "out.json"), stdin=file)
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "out.json").stat().st_size > 1000


@pytest.mark.skipif(os.name == "nt", reason="a shell's pipes")
def test_a_closed_pipe_is_no_error(command: list[str]):
    script = '"$@" | head -1; exit ${PIPESTATUS[0]}'
    arguments = [*command, "stacks", BASE, NEW, "-n", "0"]
    done = subprocess.run(["bash", "-c", script, "bash", *arguments], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send")
def test_ctrl_c(command: list[str]):
    with subprocess.Popen([*command, "top", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        time.sleep(0.5)  # it waits for its input
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    # What shells show as 130.
    assert (child.returncode, errors) == (-signal.SIGINT, b"")


@pytest.mark.skipif(os.name == "nt", reason="a name of bytes")
def test_a_name_that_is_not_utf_8(command: list[str], tmp_path: Path):
    name = os.fsencode(tmp_path) + b"/\xff.pb.gz"
    shutil.copy(os.fsencode(BASE), name)
    done = subprocess.run([*command, "top", name, "--format", "json"], capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
