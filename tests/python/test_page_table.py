"""Tests of the page's table in a real browser: its columns, sorting, and the details pane."""

import base64

import pytest
from playwright.sync_api import Page

import pprofdiff
from conftest import pair
from page_model import EXAMPLE, PHONE, SCREEN, Open, box, data_of, numbers, until

SOURCES = EXAMPLE.parents[1] / "tests" / "producers" / "story"


def heads(page: Page) -> list[str]:
    texts = page.locator("#table thead tr").last.locator("th").all_inner_texts()
    return [text.rstrip(" ↓↑") for text in texts]


def test_columns_can_be_selected(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html(), viewport=SCREEN)
    values = ["base", "new", "delta", "growth", "of total"]
    assert heads(page) == ["function", *values, *values, "status"]
    page.click("#choice summary")
    for column in ("flat: base", "flat: new", "flat: of total", "cum: base", "cum: new", "cum: growth", "status"):
        page.get_by_label(column, exact=True).uncheck()
    assert heads(page) == ["function", "delta", "growth", "delta", "of total"]
    row = page.locator("#table tbody tr").first.locator("td")
    assert row.all_inner_texts() == ["logmill/names.compare", "+0.08s", "+47.1%", "+1.48s", "+77.89%"]
    # The menu closes when it loses the focus. A link contains the columns, also on a phone, and Back removes them.
    page.click("#rows")
    assert page.get_by_label("status").is_hidden()
    link = page.url.partition("#")[2]
    assert "columns=flat_delta.flat_growth.cum_delta.cum_share" in link
    other = show(story.to_html(), f"{link}&tab=functions", viewport=PHONE)
    assert heads(other) == heads(page)
    other.click("#choice summary")
    other.get_by_role("button", name="Default columns").click()
    assert heads(other) == ["function", "delta", "delta"]
    page.focus("#canvas")
    page.keyboard.press("Backspace")
    assert len(heads(page)) == 12
    # A table of only names is valid. Unknown columns are ignored.
    assert heads(show(story.to_html(), "columns=name", viewport=SCREEN)) == ["function"]
    one = show(story.new[0].to_html(), "columns=cum_new.base", viewport=SCREEN)
    assert heads(one) == ["function", "cum"]


def test_every_column_sorts(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html(), viewport=SCREEN)
    rows = {row["name"]: row for row in story.top()}

    def first(column: str, clicks: int = 1) -> list[str]:
        for _ in range(clicks):
            page.click(f"th[data-key={column}] button")
        return page.locator("#table tbody td:first-child").all_inner_texts()[:40]

    for cost in ("flat", "cum"):
        names = first(f"{cost}_growth")
        base, new = ([rows[name][f"{cost}_{side}"] for name in names] for side in ("base", "new"))
        times = [float("inf") if b == 0 else n / b for b, n in zip(base, new, strict=True)]
        assert times == sorted(times, reverse=True)
        assert times[0] == float("inf")
        shares = [abs(rows[name][f"{cost}_delta"]) for name in first(f"{cost}_share")]
        assert shares == sorted(shares, reverse=True)
        shares = [abs(rows[name][f"{cost}_delta"]) for name in first(f"{cost}_share")]
        assert shares == sorted(shares)
    assert page.get_attribute("th[data-key=cum_share]", "aria-sort") == "ascending"
    # The clicked heading keeps the keyboard focus.
    assert page.evaluate("document.activeElement.closest('th').dataset.key") == "cum_share"
    assert "sort=cum_share" in page.url


def in_window(page: Page, where: str) -> bool:
    """Returns true if an element is inside the window and not covered."""
    return page.locator(where).first.evaluate(
        """e => { const r = e.getBoundingClientRect();
        const top = document.elementFromPoint(r.left + 9, r.top + r.height / 2);
        return r.top >= 0 && r.bottom <= innerHeight && e.contains(top); }"""
    )


def test_details_of_a_selection_open_in_place(show: Open, story: pprofdiff.Diff):
    size = {"width": 1280, "height": 800}
    page = show(story.to_html(source_path=SOURCES), viewport=size)
    assert in_window(page, "#open")
    assert page.is_hidden("#edges")
    # A row: its callers, callees and lines are visible, and so is the row, wherever it was.
    row = page.locator("#table tbody tr", has_text="logmill/headers.tableInsensitive").first
    row.evaluate("e => scrollBy(0, e.getBoundingClientRect().bottom - innerHeight + 60)")
    row.click()
    for where in (
        "#edges table",
        "#edges .edge-self",
        "#source details:not([hidden]) summary",
        "#table tr[aria-selected=true] button",
    ):
        assert in_window(page, where), where
    listings = page.locator("#source details:visible b")
    assert listings.all_inner_texts() == ["logmill/headers.tableInsensitive"]
    line = page.locator("#source tr:visible", has_text="names.Same(table[i].name, name)")
    assert [t.strip() for t in line.locator("td").all_text_contents()[:3]] == ["-30ms", "+1.45s", "64"]
    # A box: its details are shown, and the graph keeps its position.
    page.evaluate("scrollTo(0, 200)")
    page.mouse.click(*box(page, story, "logmill/names.Same"))
    assert page.evaluate("scrollY") == 200
    assert page.inner_text("#chosen .name") == "logmill/names.Same"
    assert in_window(page, "#edges .edge-self")
    assert listings.all_inner_texts() == ["logmill/names.Same"]
    # A function without sources names callees with sources, and links to them.
    page.locator("#edges").get_by_role("button", name="logmill/names.compare").click()
    page.locator("#edges").get_by_role("button", name="logmill/names.canonical").click()
    page.locator("#edges").get_by_role("button", name="strings.IndexByte").click()
    assert listings.count() == 0
    page.locator("#source .others").get_by_role("button", name="logmill/headers.Classify").click()
    assert listings.all_inner_texts() == ["logmill/headers.Classify"]
    # Escape closes the pane, a key opens it, and Back and the address include it.
    page.keyboard.press("Escape")
    assert page.is_hidden("#edges")
    assert page.evaluate("document.activeElement.id") == "open"
    page.keyboard.press("e")
    assert in_window(page, "#edges .edge-self")
    assert show(story.to_html(source_path=SOURCES), page.url.partition("#")[2], viewport=size).is_visible("#edges")
    page.go_back()
    until(page, "document.getElementById('open').ariaExpanded === 'false'")


@pytest.mark.parametrize("name", ["story-cpu", "go-heap", "rust-cpu", "go-goroutine"])
def test_significant_changes_are_not_grey(name: str):
    """If the total changed significantly, the frame with most of that change is not grey."""
    d = pprofdiff.diff(*pair(name))
    kind = d.default_sample_type
    assert d.explain(sample_type=kind).account["p"] < 0.05
    data = data_of(d.to_html(sample_type=kind, min_width=0))
    raw = next(t for t in data["types"] if t["type"] == kind)
    delta = int(raw["total"][1]) - int(raw["total"][0])

    def is_grey(bits: str, i: int) -> int:
        return base64.b64decode(bits)[i >> 3] >> (i & 7) & 1

    table = raw["table"]
    base, new = (numbers(table[side], True) for side in ("cum_base", "cum_new"))
    main_rows = [i for i in range(table["rows"]) if (new[i] - base[i]) / delta > 0.5]
    assert main_rows
    assert [i for i in main_rows if is_grey(table["cum_chance"], i)] == []
    assert not is_grey(raw["down"]["chance"], 0), "all of it"
    # Other frames are grey, so the check is not trivial.
    assert any(is_grey(table["cum_chance"], i) for i in range(table["rows"]))
