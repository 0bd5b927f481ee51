"""Tests of the page on a phone: views as tabs, a table of three columns, the call graph as a path."""

import pytest

import pprofdiff
from page_model import EXAMPLE, PHONE, ROW, SCREEN, Open, settle


def test_on_a_phone_the_table_has_three_columns(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html(), "tab=functions", viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    heads = page.locator("#table thead tr").last.locator("th").all_inner_texts()
    assert [h.rstrip(" ↓") for h in heads] == ["function", "delta", "delta"]
    row = page.locator("#table tbody tr").first.locator("td")
    assert row.all_inner_texts() == ["logmill/names.compare", "+0.08s", "+1.48s"]
    # No number is cut off or wrapped.
    cut = """cells => cells.filter(c => c.scrollWidth > c.clientWidth || c.getBoundingClientRect().right > innerWidth
        || c.getClientRects().length > 1 || getComputedStyle(c).whiteSpace !== 'nowrap').map(c => c.textContent)"""
    assert page.locator("#table td:not(.t)").evaluate_all(cut) == []
    assert page.locator("#table tr.rest").count() == 0
    row.first.click()
    rest = page.locator("#table tr.rest")
    assert rest.inner_text().split("\n")[:2] == [
        "flat 170ms → 250ms, +80ms, +47.1%, +4.21% of total", "cum 0.20s → 1.68s, +1.48s, x8.4, +77.89% of total",
    ]  # fmt: skip
    # Only one row is expanded at a time.
    page.locator("#table tbody tr[data-frame]").nth(3).click()
    assert rest.count() == 1
    assert "0.44s → 1.82s" in rest.inner_text()
    # At the width of a screen, all columns are shown as usual.
    page.set_viewport_size(SCREEN)
    settle(page)
    assert page.locator("#table thead tr").last.locator("th").nth(1).inner_text() == "base"
    assert rest.count() == 0


def test_on_a_phone_views_are_tabs(show: Open, story: pprofdiff.Diff):
    sources = EXAMPLE.parents[1] / "tests" / "producers" / "story"
    page = show(story.to_html(source_path=sources), viewport=PHONE)
    views = ["flame", "functions", "neighbours", "callgraph", "source"]

    def seen() -> list[str]:
        return [view for view in views if page.is_visible(f"#{view}")]

    tabs = page.get_by_role("navigation", name="Views").get_by_role("button")
    assert tabs.all_inner_texts() == ["Flame graph", "Table", "Callers", "Call graph", "Source"]
    for tab, view in zip(tabs.all(), views, strict=True):
        tab.click()
        assert seen() == [view]
        assert tab.get_attribute("aria-pressed") == "true"
    # A selection in one view applies to all views.
    tabs.nth(1).click()
    page.locator("#table tbody tr", has_text="logmill/names.Same").first.click()
    tabs.nth(2).click()
    assert page.inner_text(".edge-self .name") == "logmill/names.Same"
    tabs.nth(3).click()
    assert page.get_attribute("#callgraph .chosen", "data-name") == "logmill/names.Same"
    tabs.nth(0).click()
    settle(page)
    assert page.inner_text("#details .name") == "logmill/names.Same"
    # Each choice is a step for Back. The address contains the last.
    for view in ("callgraph", "neighbours", "functions"):
        page.go_back()
        page.wait_for_function("view => document.querySelector('main').dataset.tab === view", arg=view)
    page.go_back()
    page.wait_for_function("!document.querySelector('tr.rest')")
    other = show(story.to_html(source_path=sources), "tab=callgraph", viewport=PHONE)
    assert other.is_visible("#callgraph")
    assert other.is_hidden("#flame")
    # A screen has room for all views. Callers and source lines are shown there.
    page.set_viewport_size(SCREEN)
    settle(page)
    assert seen() == ["flame", "functions", "callgraph"]
    page.click("#open")
    assert seen() == views
    assert page.is_hidden("#tabs")


@pytest.mark.parametrize(("size", "view"), [(PHONE, "tab=source"), (SCREEN, "pane=1")], ids=["phone", "screen"])
def test_source_lines_start_with_their_changes(show: Open, story: pprofdiff.Diff, size: dict[str, int], view: str):
    sources = EXAMPLE.parents[1] / "tests" / "producers" / "story"
    page = show(story.to_html(source_path=sources), view, viewport=size)
    routine = page.locator("#source details").filter(has_text="logmill/headers.tableInsensitive in")
    line = routine.locator("tr", has_text="names.Same(table[i].name, name)")
    assert routine.locator("th").all_text_contents() == [
        *("flat: delta", "cum: delta", "line", "source"), *("flat: base", "new", "cum: base", "new"),
        *("growth", "of total", "line: base"),
    ]  # fmt: skip
    cells = [text.strip() for text in line.locator("td").all_text_contents()]
    assert cells[:4] == ["-30ms", "+1.45s", "64", "if names.Same(table[i].name, name) {"]
    assert cells[6:] == ["0.33s", "1.78s", "x5.39", "+76.32%", "64"]
    for cell in line.locator("td").all()[:3]:
        box = cell.bounding_box()
        assert box
        assert box["x"] + box["width"] <= size["width"]


def test_the_call_graph_opens_on_the_heaviest_changed_path(show: Open, story: pprofdiff.Diff):
    path = ["runtime.main", "main.main", "main.run"]
    path += ["logmill/headers.Classify", "logmill/headers.tableInsensitive", "logmill/names.Same"]
    path += ["logmill/names.compare", "logmill/names.canonical", "strings.IndexByte"]
    page = show(story.to_html(), "tab=callgraph", viewport=PHONE)
    items = page.locator("#path li")
    assert items.get_by_role("button").all_inner_texts()[: len(path)] == path
    assert "0 → 1.39s" in items.nth(7).inner_text()
    items.nth(7).click()
    assert page.get_attribute("#callgraph .chosen", "data-name") == path[7]
    page.set_viewport_size(SCREEN)
    settle(page)
    assert page.is_hidden("#path")
    marked = page.locator("#callgraph g.path").evaluate_all("all => all.map(g => g.dataset.name)")
    assert set(path) <= set(marked)
    # The frames of the path are marked, and their text uses the font that the boxes were measured with.
    letters = "all => [...new Set(all.map(text => getComputedStyle(text).fontFamily))]"
    assert len(page.locator("#callgraph g.node text").evaluate_all(letters)) == 1
    assert len(marked) < 15


def test_a_touch_leaves_no_tooltip(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html(), viewport=PHONE, has_touch=True, is_mobile=True)
    page.locator("#canvas").tap(position={"x": 40, "y": 5 * ROW + 5})
    settle(page)
    assert page.is_hidden("#tip")
    assert page.inner_text("#details .name") == "logmill/headers.tableInsensitive"
