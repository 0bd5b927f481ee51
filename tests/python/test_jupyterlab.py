"""Tests in JupyterLab in a browser, offline: selections in a flame graph reach Python, and charts are drawn."""

import contextlib
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest
from playwright.sync_api import expect

import pprofdiff
from conftest import pair

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROW = 20
TOKEN = secrets.token_hex(16)
# Disables requests for news, updates and extensions.
QUIET = (
    "--LabApp.news_url=None",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """Starts a server on this machine for the folder tmp_path/work, with separate settings. Yields its address."""
    (tmp_path / "work").mkdir()
    own_folders = {
        name: str(tmp_path / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR", "HOME")
    }
    runtime = tmp_path / "runtime"
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", *QUIET]
    command += ["--ServerApp.port=0", f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={tmp_path / 'work'}"]
    log = tmp_path / "log"
    with log.open("w") as out:
        env = os.environ | own_folders | {"JUPYTER_RUNTIME_DIR": str(runtime)}
        server = subprocess.Popen(command, env=env, stdout=out, stderr=out)
    try:
        until = time.monotonic() + 60
        while not (files := list(runtime.glob("jpserver-*.json"))):
            if server.poll() is not None or time.monotonic() > until:
                pytest.fail(f"no server: {log.read_text()}")
            time.sleep(0.1)
        yield json.loads(files[0].read_text())["url"]
    finally:
        server.terminate()
        server.wait(20)


def test_selections_reach_python_and_charts_are_drawn(chromium: "Browser", lab: str, tmp_path: Path):
    base, new = map(str, pair("story-cpu"))
    cells = [
        # altair is disabled, because it loads its script from the web.
        "import re, sys\nsys.modules['altair'] = None\nimport pprofdiff\n"
        f"d = pprofdiff.diff({base!r}, {new!r})\nw = d.flamegraph().widget()\nheard = []\n"
        "w.observe(lambda change: heard.append(w.frame), 'stack')\nw",
        "d.top(5).plot()",
        f"pprofdiff.series([{base!r}, {new!r}]).plot(2)",
        "print(w.frame, w.stack, heard, len(d.peek(re.escape(w.frame)) if w.frame else []), sep='|')",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, tmp_path / "work" / "clicks.ipynb")

    page = chromium.new_page(viewport={"width": 1300, "height": 2400})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{lab}doc/tree/clicks.ipynb?token={TOKEN}")
    cell = page.locator(".jp-CodeCell")
    cell.nth(3).wait_for(timeout=90_000)
    page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for(timeout=90_000)

    def run(number: int) -> None:
        """Runs a cell, again if it had no effect: JupyterLab may still be starting, and may take the focus back."""
        prompt = cell.nth(number).locator(".jp-InputPrompt")
        before = prompt.inner_text()
        for _ in range(20):
            cell.nth(number).locator(".cm-content").click()
            page.keyboard.press("Control+Enter")
            with contextlib.suppress(AssertionError):
                expect(prompt).not_to_have_text(before, timeout=3000)
                return
        pytest.fail(f"cell {number} does not run")

    runs = 3

    def selection() -> list[str]:
        """Returns the selection known to Python: the output of the last cell."""
        nonlocal runs
        runs += 1
        run(3)
        cell.nth(3).locator(".jp-InputPrompt").get_by_text(f"[{runs}]:").wait_for()
        return cell.nth(3).locator(".jp-OutputArea-output").inner_text().strip().split("|")

    for number in range(3):
        run(number)
        cell.nth(number).locator(".jp-InputPrompt").get_by_text(f"[{number + 1}]:").wait_for(timeout=90_000)
    canvas = page.frame_locator("iframe").locator("#canvas")
    canvas.wait_for(timeout=60_000)
    page.locator(".vega-embed canvas, .vega-embed svg").nth(1).wait_for()
    assert selection() == ["None", "[]", "[]", "0"]

    # The seventh box from the root, in a stack that the picture shows. Then its caller, with the keyboard.
    canvas.click(position={"x": 50, "y": 6 * ROW + 5})
    page.frame_locator("iframe").locator("#details .name").get_by_text("logmill/names.Same").wait_for()
    frame, stack, heard, edges = selection()
    assert frame == "logmill/names.Same"
    names = json.loads(stack.replace("'", '"'))
    assert names[-1] == frame
    assert any(row["frames"][: len(names)] == names for row in pprofdiff.diff(base, new).stacks())
    assert (heard, int(edges)) == ("['logmill/names.Same']", len(pprofdiff.diff(base, new).peek(r"\.Same$")))
    canvas.press("ArrowUp")
    frame, stack, heard, _ = selection()
    assert json.loads(stack.replace("'", '"')) == names[:-1]
    assert (frame, heard) == (names[-2], f"['logmill/names.Same', '{names[-2]}']")
    canvas.press("Escape")
    assert selection()[:2] == ["None", "[]"]

    # Bars in the palette's red, and lines in two colours.
    inks = """e => { const {data} = e.getContext('2d').getImageData(0, 0, e.width, e.height), inks = {};
      for (let i = 0; i < data.length; i += 4) {
        const ink = [...data.slice(i, i + 3)].map((v) => v.toString(16).padStart(2, '0')).join('');
        inks[ink] = (inks[ink] ?? 0) + 1;
      }
      return inks; }"""
    bars, lines = (chart.evaluate(inks) for chart in page.locator(".vega-embed canvas").all())
    assert bars["cf4237"] > 1000
    assert min(lines["4c78a8"], lines["f58518"]) > 100
    page.close()
    assert [
        url for url in asked if not url.startswith((lab, lab.replace("http", "ws"), "data:", "blob:", "about:"))
    ] == []


def test_without_anywidget_the_error_names_the_package():
    code = "import sys; sys.modules['anywidget'] = None; import pprofdiff; "
    code += "pprofdiff.load(sys.argv[1]).flamegraph().widget()"
    done = subprocess.run([sys.executable, "-c", code, pair("story-cpu")[0]], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: the widget of a flame graph needs anywidget: pip install anywidget"
    )
