"""Tests of causes on the page in a real browser: the summary, the highlighted stacks, and grey values within chance."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page

import pprofdiff
from conftest import pair, profile
from page_model import (
    EXAMPLE,
    PHONE,
    ROW,
    SCREEN,
    Box,
    Node,
    Open,
    box,
    boxes_of,
    bright,
    colour,
    painted,
    settle,
    tree,
)


def test_the_page_starts_with_the_sentences_of_explain(show: Open, story: pprofdiff.Diff):
    command = [sys.executable, "-m", "pprofdiff", "explain", *pair("story-cpu")]
    text = subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
    page = show(story.to_html())
    panel = page.inner_text("#why")
    # All lines except the indented ones (the command and the parts of causes). The account is a picture.
    head, *lines = [line.replace("->", "→") for line in text if not line.startswith(" ")]
    (account,) = [line for line in lines if line.startswith("Total ")]
    lines.remove(account)
    assert len(lines) == 4
    assert all(line in panel for line in lines), panel
    assert head.removeprefix("cpu: ") in page.inner_text("#total")
    total, consequences, remainder = re.fullmatch(
        r"T(otal .*\)): the causes .*; GC, scheduling and locks changed by (\S+)\. "
        r"The remainder of (\S+) is within noise\.",
        account,
    ).groups()
    assert "t" + total in panel
    assert f"GC, scheduling and locks: {consequences}" in panel
    assert f"remainder: {remainder}, within noise" in panel
    top, graph = (page.locator(where).bounding_box() for where in ("#why", "#flame"))
    assert top
    assert graph
    assert top["y"] < graph["y"]
    # Each sample type has its own summary.
    page.select_option("#type", label="samples (count)")
    assert page.locator("#why .whole b:visible").all_inner_texts() == ["190", "293"]
    assert page.locator("#why h2:visible").count() == 1
    # Without a comparison, or without functions to explain, there is no summary.
    for html in (story.new[0].to_html(), story.to_html(granularity="lines"), story.new[0].flamegraph().to_html()):
        other = show(html)
        assert other.is_hidden("#why")
        assert other.is_hidden("#grey")


def bars(page: Page) -> list[tuple[str, float, float]]:
    """Returns the visible rows of the account: their kind, and the start and end of their bars."""
    rows = page.locator("#why [data-type]:not([hidden]) .account > li:not(.others)")
    return rows.evaluate_all(
        """all => all.map(li => {
            const r = li.querySelector('rect').getBBox();
            return [li.className, r.x, r.x + r.width];
        })"""
    )


@pytest.mark.parametrize("size", [SCREEN, PHONE], ids=["screen", "phone"])
@pytest.mark.parametrize("name", ["story-cpu", "go-heap", "go-mutex", "go-allocs-ops"])
def test_the_account_is_a_picture(show: Open, name: str, size: dict[str, int]):
    """Each bar starts at the end of the previous one. Together they lead from the total of one side to that of the
    other."""
    d = pprofdiff.diff(*pair(name))
    page = show(d.to_html(sample_type=d.default_sample_type), viewport=size)
    rows = bars(page)
    assert rows[0][0] == rows[-1][0] == "whole"
    (_, _, base), (_, _, new) = rows[0], rows[-1]
    account = d.explain(sample_type=d.default_sample_type).account
    scale = (new - base) / account["delta"]
    position = base
    parts = [row for row in rows[1:-1] if row[0] != "candidate"]
    assert parts
    for kind, begin, end in parts:
        assert min(abs(begin - position), abs(end - position)) < 1.5, (kind, begin, end, position)
        position = end if abs(begin - position) < abs(end - position) else begin
    assert position == pytest.approx(new, abs=2)
    causes = sum((e - b) * (1 if k == "more" else -1) for k, b, e in parts if k in ("more", "less"))
    assert causes == pytest.approx(account["causes"] * abs(scale), abs=3) or scale < 0
    # The whole account fits on the first screen, also on a phone, and nothing overflows.
    spot = page.locator("#summary").bounding_box()
    assert spot
    assert spot["y"] + spot["height"] <= size["height"]
    assert spot["x"] + spot["width"] <= size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


def test_selecting_a_cause_highlights_it_in_all_views(show: Open, story: pprofdiff.Diff):
    sources = EXAMPLE.parents[1] / "tests" / "producers" / "story"
    page = show(story.to_html(source_path=sources), viewport=SCREEN)
    page.click("#why button[data-cause='0']:visible")
    name = "logmill/names.canonical"
    assert page.inner_text(".edge-self .name") == name
    row = page.locator("#table tr[aria-selected=true]")
    assert row.get_by_role("button").inner_text() == name
    assert page.get_attribute("#callgraph .chosen", "data-name") == name
    inside = """([inner, outer]) => {
        const [a, b] = [inner, outer].map(where => document.querySelector(where).getBoundingClientRect());
        return a.top >= b.top && a.bottom <= b.bottom + 1 && a.left >= b.left && a.right <= b.right + 1;
    }"""
    assert page.evaluate(inside, ["#callgraph .chosen", "#callgraph .scroll"])
    assert page.evaluate(inside, ["#table tr[aria-selected=true] button", "#functions .scroll"])
    # Back undoes the selection, and forward restores it.
    page.go_back()
    page.wait_for_function("!document.querySelector('#why [aria-pressed=true]')")
    assert page.locator("#table tr[aria-selected=true]").count() == 0
    page.go_forward()
    page.wait_for_function("document.querySelector('#why [aria-pressed=true]')")
    assert page.locator("#table tr[aria-selected=true]").count() == 1


def test_inconclusive_samples_show_the_best_candidate(show: Open):
    d = pprofdiff.diff(*pair("gperftools-cpu"))
    assert d.explain().verdict == "inconclusive"
    best = d.explain().best
    assert best
    page = show(d.to_html(min_width=0))
    assert "These samples are inconclusive" in page.inner_text("#why .verdict:visible")
    button = page.locator("#why .candidate button:visible")
    assert best["function"] in button.inner_text()
    every = bright(page)
    button.click()
    settle(page)
    assert 1 < len(bright(page)) < len(every)
    assert page.inner_text(".edge-self .name") == best["function"]


def test_too_few_samples_still_give_a_page(show: Open, tmp_path: Path):
    """The base has a single event, so no change can be detected."""
    files = [tmp_path / "base.folded", tmp_path / "new.folded"]
    for file, text in zip(files, ("main;a 1\n", "main;a 2\nmain;b 1\n"), strict=True):
        file.write_text(text)
    page = show(pprofdiff.diff(*files).to_html())
    titles = page.eval_on_selector_all("td[title]", "cells => cells.map(cell => cell.title)")
    assert any("these samples cannot distinguish it from noise" in title for title in titles), titles


def test_a_page_explains_a_few_sample_types(show: Open):
    d = pprofdiff.diff(*pair("go-heap"))
    page = show(d.to_html())
    assert page.locator("#why [data-type]").count() == len(d.sample_types) == 4
    # A normalized page determines the scale by itself.
    scaled = pprofdiff.diff(*pair("go-heap-ops")).normalize(1 / 3)
    page = show(scaled.to_html(sample_type="alloc_space"))
    assert "main.splitFields (heapops.go:61) now allocates in main.copyRest" in page.inner_text("#why")
    assert "3.00 times as much work" in page.inner_text("#why")
    tip = page.locator("#table td.chance[title*='x3']")
    assert tip.count() > 0


def stacks_through(root: Node, caller: str, function: str, across: float, inverted: bool) -> set[tuple[int, int]]:
    """Returns the boxes above and below those of a function with a certain caller."""
    boxes = set()
    above: list[Box] = []
    inside = -1
    drawn = [b for b in boxes_of(root, "max", across) if b[2] >= 1]
    for drawn_box in drawn:
        depth, left, _, name, node = drawn_box
        del above[depth:]
        above.append(drawn_box)
        if depth <= inside:
            inside = -1
        called = caller in node.children if inverted else depth > 0 and above[depth - 1][3] == caller
        if name == function and called and inside < 0:
            inside = depth
            boxes |= {(b[0], round(b[1])) for b in above}
        if inside >= 0:
            boxes.add((depth, round(left)))
    return boxes


def test_a_cause_highlights_its_stacks(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html(min_width=0))
    every = bright(page)
    first = page.get_by_role("button", name="1. logmill/names.compare (names.go:19) now calls logmill/names.canonical")
    for inverted in (False, True):
        if inverted:
            page.keyboard.press("Escape")
            page.click("#inverted")
        first.click()
        settle(page)
        across, _ = painted(page)
        root = tree(story, "cpu", inverted)
        expected = stacks_through(root, "logmill/names.compare", "logmill/names.canonical", across, inverted)
        assert 5 < len(expected) < len(every) / 2
        seen = bright(page)
        wide = {b[:2] for b in ((d, round(x), w) for d, x, w, *_ in boxes_of(root, "max", across)) if b[2] >= 1}
        assert seen & wide == expected
    page.click("#inverted")
    settle(page)
    assert first.get_attribute("aria-pressed") == "true"
    assert "cause=0" in page.url
    # A link restores the selection, and a search replaces it. A second click, Escape and Reset clear it.
    other = show(story.to_html(min_width=0), page.url.partition("#")[2])
    assert bright(other) == bright(page)
    for end in ("click", "Escape", "reset", "search"):
        assert first.get_attribute("aria-pressed") == "true", end
        match end:
            case "click":
                first.click()
            case "Escape":
                page.keyboard.press("Escape")
            case "reset":
                page.click("#reset")
            case "search":
                page.fill("#search", "no such function")
                page.fill("#search", "")
        settle(page)
        assert first.get_attribute("aria-pressed") == "false", end
        assert bright(page) == every, end
        first.focus()
        page.keyboard.press("Enter")
        settle(page)
    assert first.get_attribute("aria-pressed") == "true"


def test_own_cost_is_highlighted_without_callees(show: Open):
    stacks = {("main", "f", f"g{i}"): (40, 40) for i in range(9)} | {("main", "f"): (90, 400)}
    stacks |= {("main", f"h{i}"): (40, 40) for i in range(9)}
    # Each sample is an event.
    sides = (profile([(list(stack), 8, {}) for stack, n in stacks.items() for _ in range(n[i])]) for i in (0, 1))
    page = show(pprofdiff.diff(*sides).to_html(min_width=0))
    page.click("#why button:has-text('f itself has more')")
    settle(page)
    assert {depth for depth, _ in bright(page)} == {0, 1, 2}
    assert len(bright(page)) == 3


def test_values_within_chance_are_grey(show: Open, story: pprofdiff.Diff):
    html = story.to_html(min_width=0)

    def chroma(page: Page, name: str) -> int:
        across, _ = painted(page)
        x, y = next(
            (round(left), depth * ROW)
            for depth, left, _, n, _ in boxes_of(tree(story, "cpu"), "max", across)
            if n == name
        )
        fills = zip(*page.evaluate("[boxes, fills]"), strict=True)
        colours = {(round(left), round(top)): colour(fill) for (left, top, _, h, _), fill in fills if h == ROW - 1}
        rgb = colours[x, y]
        return max(rgb) - min(rgb)

    chance, changed = "logmill/stats.quantile", "logmill/names.canonical"
    cells = "#table tr:has(button:text-is('%s')) td"
    page = show(html)
    switch = page.get_by_role("button", name="Grey noise")
    assert switch.get_attribute("aria-pressed") == "true"
    assert chroma(page, chance) < 15 < 90 < chroma(page, changed)
    assert "within noise" in page.inner_text("#legend")
    # Delta, growth and share of flat and of cum. The box shows cum.
    greyed = page.locator(cells % chance + ".chance")
    delta, why = greyed.nth(-3).text_content(), greyed.nth(-3).get_attribute("title")
    assert delta
    assert why
    assert re.fullmatch(re.escape(delta) + r": within noise; .* by more than ±\d+% is significant", why), why
    assert page.locator(cells % changed + ".chance").count() == 0
    page.mouse.move(*box(page, story, chance))
    assert page.inner_text("#tip .note >> nth=-1") == why
    page.keyboard.press("g")
    settle(page)
    assert switch.get_attribute("aria-pressed") == "false"
    assert chroma(page, chance) > 15
    assert page.locator("#table .chance").count() == 0
    assert "within noise" not in page.inner_text("#legend")
    # The reason is still shown, and a link keeps the setting.
    assert page.locator(cells % chance + ".less").last.get_attribute("title") == why
    assert chroma(show(html, page.url.partition("#")[2]), chance) > 15
    switch.click()
    settle(page)
    assert chroma(page, chance) < 15
