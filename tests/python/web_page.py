"""Shared helpers for the tests of the page for browsers: its folder, the command, and actions on the page."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Page, expect

from conftest import CORPUS, pair

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "page"
COMMAND = Path(sys.executable).with_name("pprofdiff")
BUILDS = sorted((CORPUS / "series").glob("heap-*.pb.gz"))


def command(*arguments: str | Path, cwd: Path) -> tuple[int, bytes, str]:
    """Runs the command, and returns its exit code, output and errors."""
    done = subprocess.run([COMMAND, *arguments], cwd=cwd, capture_output=True)
    return done.returncode, done.stdout, done.stderr.decode()


def drop(page: Page, files: list[Path], place: str = "") -> None:
    """Drops files like a user, on one of the drop areas: the browser receives a drag from outside."""
    session = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(path) for path in files], "dragOperationsMask": 1}
    target = page.locator(f"[data-place='{place}']")
    session.send("Input.dispatchDragEvent", {"type": "dragEnter", "x": 150, "y": 300, "data": data})
    # A report that is being displayed only notices later drag events. A user's drag sends events continuously.
    for _ in range(100):
        session.send("Input.dispatchDragEvent", {"type": "dragOver", "x": 150, "y": 300, "data": data})
        if target.is_visible():
            break
        page.wait_for_timeout(50)
    expect(target).to_be_visible()
    box = target.bounding_box()
    assert box
    spot = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    for kind in ["dragOver", "drop"]:
        session.send("Input.dispatchDragEvent", {"type": kind, **spot, "data": data})
    session.detach()


def total(page: Page) -> str:
    """Returns the total shown in the report."""
    report = page.frame_locator("#report")
    report.locator("#total").wait_for()
    return report.locator("#total").inner_text()


def story_files(tmp_path: Path) -> list[Path]:
    """Copies the files base and new, with an older date for base."""
    base, new = (Path(shutil.copy(path, tmp_path)) for path in pair("story-cpu"))
    os.utime(base, (1_000_000, 1_000_000))
    return [new, base]
