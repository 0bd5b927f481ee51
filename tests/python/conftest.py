"""Shared fixtures and helpers: the corpus, generated profiles, a browser, the documentation site, and a test whether
other threads can run during a call."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

import pprofdiff
from page_model import NOTE, Open, settle

SKIPPED = os.environ.get("PPROFDIFF_SKIPPED")

# The parent process may ignore Ctrl-C (nohup, a script's `&`), and all child processes would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Timeout for assertions, equal to that of actions. Five seconds are too few for the page's engine on a busy machine.
expect.set_options(timeout=30_000)

# These tests run nightly, with the packages of the group nightly.
collect_ignore = [] if os.environ.get("PPROFDIFF_CLUSTERS") else ["test_clusters.py", "test_spark.py"]


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


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    # Chromium without browser windows needs a third of the CPU time to open a page (0.9 instead of 2.5 s).
    path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if not path:
        pytest.skip("Chromium is missing (apt-get install chromium-headless-shell)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def show(chromium: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens pages. At the end, it fails if the console has messages or a page made a request."""
    messages: list[str] = []
    contexts = []

    def opened(html: str, fragment: str = "", **options: Any) -> Page:
        context = chromium.new_context(**({"viewport": {"width": 1400, "height": 3000}} | options))
        contexts.append(context)
        context.add_init_script(NOTE)
        page = context.new_page()
        file = tmp_path / f"{len(contexts)}.html"
        file.write_text(html)
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda r: messages.append(r.url) if not r.url.startswith(file.as_uri()) else None)
        page.goto(f"{file.as_uri()}#{fragment}")
        settle(page)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert messages == []


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the documentation with docs/make, and returns its folder."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    make = Path(__file__).parents[2] / "docs" / "make"
    environment = os.environ | {"PYTHON": sys.executable}
    made = subprocess.run([make, folder], env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    return folder
