"""Tests of the package's types, by mypy: stubs against the extension, typical programs of users, and the plugin."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "pyproject.toml"
# mypy's cache of packages, which it checks by content, for later runs.
MYPY = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "mypy"


def test_stubs_match_the_extension(tmp_path):
    allowed = tmp_path / "allowed"
    allowed.write_text(
        # The package has its own __all__. Names with an underscore serve pickle and _batch.py.
        "pprofdiff._native.__all__\npprofdiff._native._[a-zA-Z].*\n"
        # stubtest treats an alias of a Literal as a call.
        "pprofdiff.types.(Sort|Granularity|Matching|Status|Outcome|Verdict)\n"
        # A class created by anywidget's metaclass, and a name that is deleted after its `except`.
        "pprofdiff._widget.(FlameGraphWidget|e)\n"
        # What makes a class generic is not written in stubs.
        "pprofdiff._native.Result.__class_getitem__\npprofdiff._batch.Batch.__class_getitem__\n"
    )
    command = [sys.executable, "-m", "mypy.stubtest", "pprofdiff", "--mypy-config-file", CONFIG]
    command += ["--allowlist", allowed, "--ignore-unused-allowlist"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_mypy_accepts_typical_user_code(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        """
import io
from pathlib import Path
from typing import Any, assert_type
import polars, pprofdiff

files = ["a", "b"]
d = pprofdiff.diff(files, [Path("c"), b"", io.BytesIO()])
assert_type(d.filter(focus="f").top(3)[0], dict[str, Any])
assert_type(d.top()[:3], pprofdiff.Table)
assert_type(d.to_polars(), polars.DataFrame)
for r in pprofdiff.batch([(files, io.BytesIO())]):
    assert_type(r.pair, tuple[list[str], io.BytesIO])
for s in pprofdiff.batch(zip(files, files, strict=True), on_error="raise"):
    assert_type(s, pprofdiff.Result[tuple[str, str]])
for t in pprofdiff.batch(pprofdiff.pairs("a", "b")).tables(1, focus="f"):
    assert_type(t, pprofdiff.Result[pprofdiff.Pair])
views: list[pprofdiff.Views] = [d, pprofdiff.load(bytearray())]
d.top(sort="name")  # type: ignore[arg-type]
pprofdiff.load(3)  # type: ignore[arg-type]
"""
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", CONFIG, "--cache-dir", MYPY]
    command.append(program)
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_mypy_accepts_the_plugin(tmp_path: Path):
    program = tmp_path / "test_cost.py"
    program.write_text(
        "import pprofdiff\nfrom pytest_pprofdiff import RegressionCheck\n\n"
        "def test_cost(assert_no_regression: RegressionCheck) -> None:\n"
        "    check: pprofdiff.Check | None = assert_no_regression('a', 'total>+5%', strict=True)\n    assert check\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", CONFIG]
    for subject in (["-p", "pytest_pprofdiff"], [program]):
        done = subprocess.run([*command, *subject], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
