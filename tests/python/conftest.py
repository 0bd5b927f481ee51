"""Shared fixtures and helpers: the tiers of tests, the corpus, generated profiles, the documentation site, and a test
whether other threads can run during a call."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

import pprofdiff

SKIPPED = os.environ.get("PPROFDIFF_SKIPPED")

# The parent process may ignore Ctrl-C (nohup, a script's `&`), and all child processes would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The command shortens its tables to COLUMNS characters, which pytest may set.
os.environ.pop("COLUMNS", None)
os.unsetenv("COLUMNS")  # readline sets it without os.environ

# The files that tests/run needs for every change. The packages of the group core are enough for them.
CORE = {
    "test_arrow.py",
    "test_batch.py",
    "test_check.py",
    "test_cli.py",
    "test_delta.py",
    "test_explain.py",
    "test_load.py",
    "test_markdown.py",
    "test_package.py",
    "test_pickle.py",
    "test_pictures.py",
    "test_processes.py",
    "test_pytest_plugin.py",
    "test_robust.py",
    "test_runs.py",
    "test_series.py",
    "test_table.py",
    "test_threads.py",
    "test_views.py",
}
TIER = os.environ.get("PPROFDIFF_TESTS", "all")  # core, rest or all, see tests/run
FILES = {path.name for path in Path(__file__).parent.glob("test_*.py")}
collect_ignore = sorted({"core": FILES - CORE, "rest": CORE, "all": set()}[TIER])
if not os.environ.get("PPROFDIFF_CLUSTERS"):
    collect_ignore += ["test_clusters.py", "test_spark.py"]  # nightly, with the packages of the group nightly
if TIER == "core":
    from core_only import hide_other_packages

    hide_other_packages()
else:
    pytest_plugins = ["browser"]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Lists the skipped tests with their reasons, for the summary of tests/run."""
    in_worker = "PYTEST_XDIST_WORKER" in os.environ  # A worker reports to the main process, which writes the list.
    if report.skipped and not hasattr(report, "wasxfail") and SKIPPED and not in_worker:
        assert isinstance(report.longrepr, tuple)  # file, line, reason
        with Path(SKIPPED).open("a") as file:
            file.write(f"{report.nodeid}: {report.longrepr[2].removeprefix('Skipped: ')}\n")


CORPUS = Path(__file__).parents[1] / "corpus"
PAIRS = sorted(path.name.removesuffix(".base.pb.gz") for path in CORPUS.glob("*.base.pb.gz"))


def pair(name: str) -> tuple[Path, Path]:
    """Returns the two files of a pair of the corpus."""
    return CORPUS / f"{name}.base.pb.gz", CORPUS / f"{name}.new.pb.gz"


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    return varint(number << 3 | 2) + varint(len(value)) + value


def profile(
    samples: Iterable[tuple[list[str], int, dict[str, str]]],
    *,
    sample_type: tuple[str, str] = ("space", "bytes"),
    last: bytes = b"",
) -> bytes:
    """Builds a raw profile from (stack, root first; value; labels), with one function per frame."""
    strings = [""]
    functions: list[str] = []

    def index(table: list[str], text: str) -> int:
        if text not in table:
            table.append(text)
        return table.index(text)

    out = _field(1, b"".join(_field(i, index(strings, text)) for i, text in enumerate(sample_type, 1)))
    for stack, value, labels in samples:
        ids = [index(functions, name) + 1 for name in reversed(stack)]
        pairs = [_field(1, index(strings, k)) + _field(2, index(strings, v)) for k, v in labels.items()]
        sample = b"".join([*(_field(1, i) for i in ids), _field(2, value), *(_field(3, p) for p in pairs)])
        out += _field(2, sample)
    for i, name in enumerate(functions, 1):
        out += _field(4, _field(1, i) + _field(4, _field(1, i)))
        out += _field(5, _field(1, i) + _field(2, index(strings, name)))
    return out + b"".join(_field(6, s.encode("utf-8", "surrogateescape")) for s in strings) + last


def lets_others_run(work: Callable[[], object]) -> bool:
    """Returns true if another Python thread makes progress while `work` runs.

    One of thirty calls is enough, because a busy machine may give the other thread no core. The thread ticks a thousand
    times per second if it can run. Work that keeps the GIL allows only one or two ticks, at its start and end."""
    ticks, done = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.wait(0.001):
            ticks += 1

    def ticks_meanwhile() -> int:
        before = ticks
        work()
        return ticks - before

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        return any(ticks_meanwhile() > 3 for _ in range(30))
    finally:
        done.set()
        thread.join()


@pytest.fixture(scope="session")
def story() -> pprofdiff.Diff:
    return pprofdiff.diff(*pair("story-cpu"))


@pytest.fixture(scope="session")
def labelled() -> pprofdiff.Diff:
    return pprofdiff.diff(*pair("go-labels-cpu"))


@pytest.fixture
def program(tmp_path: Path) -> tuple[Path, bytes]:
    """Builds a program, and a heap profile of addresses in its functions `work` and `main`."""
    source = tmp_path / "app.c"
    source.write_text("int work(int n) { return n * 7; }\nint main(int n, char **v) { return work(n); }\n")
    app = tmp_path / "app"
    subprocess.run(["cc", "-g", "-O0", "-no-pie", "-o", app, source], check=True)
    nm = subprocess.run(["nm", app], capture_output=True, text=True, check=True).stdout
    symbols = {name: int(address, 16) for address, _, name in re.findall(r"^(\w+) (T) (work|main)$", nm, re.M)}
    page = symbols["work"] & ~0xFFF
    text = (
        f"heap profile: 1: 5 [1: 5] @ heap_v2/1\n1: 5 [1: 5] @ {symbols['work'] + 4:#x} {symbols['main'] + 8:#x}\n\n"
        f"MAPPED_LIBRARIES:\n{page:x}-{page + 0x1000:x} r-xp {page - 0x400000:08x} 08:01 7 /opt/app\n"
    )
    return app, text.encode()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the documentation with docs/make, and returns its folder."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    make = Path(__file__).parents[2] / "docs" / "make"
    environment = os.environ | {"PYTHON": sys.executable}
    made = subprocess.run([make, folder], env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    return folder
