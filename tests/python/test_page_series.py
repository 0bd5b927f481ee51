"""Tests of the page of a series in a real browser: timelines of changed frames, and the graphs around a change."""

from pathlib import Path

import pprofdiff
from conftest import profile
from page_model import Open, settle


def history_of(folder: Path, n: int = 24) -> pprofdiff.Series:
    """Builds a history in which work steps up at 10, and <b>parse</b> costs more from 16 to 20."""
    for i in range(n):
        costs = {f"f{k}": 300 + (i * 7 + k * 11) % 23 for k in range(12)}
        costs["work"] = (1000 if i >= 10 else 500) + (i * 5) % 17
        costs["<b>parse</b>"] = (800 if 16 <= i < 20 else 400) + (i * 3) % 13
        (folder / f"{i:02}.pb").write_bytes(profile([(["main", name], cost, {}) for name, cost in costs.items()]))
    return pprofdiff.series(str(folder / "*.pb"))


def test_timelines_of_a_series(show: Open, tmp_path: Path):
    s = history_of(tmp_path)
    page = show(s.to_html())
    rows = page.locator("#courses tbody tr")
    shifts = s.shifts().to_dicts()
    assert [rows.nth(i).locator("button").inner_text() for i in range(rows.count())] == [r["name"] for r in shifts]
    assert [rows.nth(i).locator("td").nth(8).inner_text() for i in range(2)] == ["step", "passed, gone at 20 #20"]
    # The largest change is selected first, with the graphs of the builds around it.
    assert rows.nth(0).get_attribute("aria-selected") == "true"
    assert page.locator("#type").evaluate("e => e.selectedOptions[0].textContent") == "10 #10, 1 change"
    assert page.locator("#sides .path").all_text_contents()[0].endswith("09.pb")
    # Another frame shows the graphs of its own change, highlights itself there, and is part of the address.
    rows.nth(1).locator("button").click()
    settle(page)
    assert page.locator("#type").evaluate("e => e.selectedOptions[0].textContent") == "16 #16, 1 change"
    assert page.locator("#details .name").inner_text() == "<b>parse</b>"
    assert page.locator("#sides .path").all_text_contents()[1].startswith("mean of 4 runs")
    assert "course=1" in page.evaluate("location.hash")
    before, after = (shifts[1][side] for side in ("before", "after"))
    course = page.locator("#course")
    assert f"{before}B → {after}B" in course.inner_text()
    # The pointer shows the value of a build.
    box = course.locator("svg").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] - 9, box["y"] + 40)
    last = next(row["flat"] for row in s.values() if row["build"] == "23" and row["name"] == "<b>parse</b>")
    assert f"23 #23: {last}B" in course.inner_text()
    # Selecting a change in the list shows the timeline of that change.
    page.locator("#type").select_option(label="10 #10, 1 change")
    settle(page)
    assert page.locator("#courses tr[aria-selected=true] button").inner_text() == "work"
    rows.nth(1).locator("button").click()
    settle(page)
    again = show(s.to_html(), page.evaluate("location.hash.slice(1)"))
    assert again.locator("#courses tr[aria-selected=true] button").inner_text() == "<b>parse</b>"


def test_timelines_without_a_lasting_change(show: Open, tmp_path: Path):
    for i in range(8):
        (tmp_path / f"{i}.pb").write_bytes(profile([(["main", f"f{k}"], 900 + (i * 7 + k) % 5, {}) for k in range(9)]))
    page = show(pprofdiff.series(str(tmp_path / "*.pb")).to_html())
    assert "No frame's cost changed" in page.locator("#courses").inner_text()
    assert (
        page.locator("#type").evaluate("e => e.selectedOptions[0].textContent") == "0 #0 → 7 #7, first and last builds"
    )
    # For few builds, or against a base, the largest steps are shown.
    few = pprofdiff.series([tmp_path / f"{i}.pb" for i in range(3)], base=tmp_path / "7.pb")
    page = show(few.to_html())
    assert page.locator("#courses tbody tr").count() == len(few.movers())
    assert page.locator("#sides .path").all_text_contents()[0].endswith("7.pb")
