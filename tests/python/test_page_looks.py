"""Tests of the page's appearance in a browser: screen, phone and paper, light and dark, colours, tooltips, keys."""

import colorsys
import contextlib
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

import pprofdiff
from conftest import pair, profile
from page_model import EXAMPLE, PHONE, ROW, SCREEN, Colour, Open, box, boxes_of, colour, painted, settle, tree


@pytest.mark.parametrize("size", [SCREEN, PHONE], ids=["screen", "phone"])
def test_the_largest_changes_are_next_to_the_total(show: Open, size: dict[str, int]):
    d = pprofdiff.diff(*pair("go-allocs-ops"))
    page = show(d.to_html(), viewport=size)
    page.click("#about summary")
    for kind, unit in d.sample_types:
        page.select_option("#type", label=f"{kind} ({unit})")
        # In the order of the table: by flat, then by cum, then by name.
        rows = list(d.top(sample_type=kind))
        expected = [[row["name"] for row in rows if sign * row["flat_delta"] > 0][:5] for sign in (1, -1)]
        lists = page.locator("#movers table")
        assert lists.count() == sum(1 for side in expected if side)
        for table, side in zip(lists.all(), filter(None, expected), strict=True):
            buttons = table.get_by_role("button")
            assert [b.get_attribute("title") for b in buttons.all()] == side
            box = table.bounding_box()
            assert box
            assert box["x"] + box["width"] <= size["width"]
    name = page.locator("#movers button").first.get_attribute("title")
    page.locator("#movers button").first.click()
    assert page.locator(".edge-self .name").text_content() == name


@pytest.mark.parametrize("size", [SCREEN, PHONE], ids=["screen", "phone"])
def test_headings_of_the_largest_changes_are_aligned_with_their_columns(
    show: Open, story: pprofdiff.Diff, size: dict[str, int]
):
    page = show(story.to_html(), viewport=size)
    page.click("#about summary")
    for table in page.locator("#movers table").all():
        ends = [
            table.locator(cells).evaluate_all(
                """all => all.map(cell => {
                    const range = document.createRange();
                    range.selectNodeContents(cell);
                    return range.getBoundingClientRect().right;
                })"""
            )
            for cells in ("th:not(.t)", "tbody tr:first-child td:nth-last-child(-n + 2)")
        ]
        assert ends[0] == pytest.approx(ends[1], abs=1)


def test_the_largest_changes_of_the_story(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html())
    assert page.is_hidden("#movers"), "the verdict stands before it"
    page.click("#about summary")
    shown = [row.inner_text().split() for row in page.locator("#movers tbody tr").all()]
    assert shown[0] == ["indexbytebody", "+0.62s", "x5.77", "+32.63%"]
    assert [share[0] for *_, share in shown] == ["+"] * 5 + ["-"] * 5
    one = show(story.new[0].to_html())
    assert "cost most" in one.inner_text("#movers")
    assert one.locator("#movers tbody tr").count() == 5
    # Without changes, the tables are hidden.
    assert show(pprofdiff.diff(story.base, story.base).to_html()).is_hidden("#movers")


def test_the_table_is_copied_as_csv(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html(), permissions=["clipboard-read", "clipboard-write"])
    page.fill("#filter", "names")
    page.click("#csv")
    page.get_by_text(re.compile(r"^Copied: \d+ rows\.$")).wait_for()
    lines = page.evaluate("navigator.clipboard.readText()").splitlines()
    rows = [r for r in story.top(sort="cum") if "names" in r["name"]]
    columns = ["name", "flat_base", "flat_new", "flat_delta", "cum_base", "cum_new", "cum_delta", "status"]
    assert lines[0] == ",".join(columns)
    assert len(lines) == len(rows) + 1 > 3
    assert lines[1:] == [",".join(str(r[c]) for c in columns) for r in rows]


def test_names_are_shortened_from_the_left(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html())
    drawn = {re.sub(r"^[^\w(] ", "", text) for text, *_ in page.evaluate("texts")}
    # As much as there is room for: the whole name, without the path, without text in brackets, or the last part alone.
    assert {"logmill/names.compare", "accesslog.parseHeaders", "slices.Sort", "cleanName"} <= drawn
    # Only names that are still too long are truncated at the end.
    for text in drawn:
        assert not text.startswith(("logmill/", "accesslog.")) or not text.endswith("…"), text


def test_narrow_boxes_are_joined(show: Open, story: pprofdiff.Diff):
    """There are no lines between boxes narrower than a letter, and no dashes around them."""
    page = show(story.to_html(min_width=0))
    page.evaluate("""() => {
        window.lines = []; window.dashed = [];
        const moveTo = Path2D.prototype.moveTo, strokeRect = CanvasRenderingContext2D.prototype.strokeRect;
        Path2D.prototype.moveTo = function (x, y) { lines.push([x, y]); return moveTo.call(this, x, y); };
        CanvasRenderingContext2D.prototype.strokeRect = function (...a) {
            dashed.push(a[2]);
            return strokeRect.apply(this, a);
        };
    }""")
    page.keyboard.press("g")
    settle(page)
    boxes = [b for b in page.evaluate("boxes") if b[3] == ROW - 1]
    narrow = {(round(x + w - 0.5, 2), round(y)) for x, y, w, *_ in boxes if w <= 7}
    wide = {(round(x + w - 0.5, 2), round(y)) for x, y, w, *_ in boxes if w > 7}
    lines = {(round(x, 2), round(y)) for x, y in page.evaluate("lines")}
    assert len(narrow) > 20
    assert lines <= wide
    assert min(page.evaluate("dashed")) > 5


def test_runtime_frames_can_be_folded(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html(min_width=0))
    across, before = painted(page)
    page.keyboard.press("r")
    settle(page)
    assert page.get_attribute("#fold", "aria-pressed") == "true"
    assert "fold=1" in page.url
    _, folded = painted(page)
    assert len(folded) < len(before)
    texts = " ".join(text for text, *_ in page.evaluate("texts"))
    assert "(runtime)" in texts
    # The start function of the program stays. A row without folded frames keeps its width.
    assert "runtime.main" in texts
    assert sum(w for depth, _, w in folded if depth == 4) == pytest.approx(
        sum(w for depth, _, w in before if depth == 4), abs=1
    )
    # No box is below a folded one, and no two folded boxes are adjacent under one frame.
    page.keyboard.press("r")
    settle(page)
    assert painted(page)[1] == before
    # A selected function inside a folded box is shown.
    page.keyboard.press("r")
    page.fill("#filter", "^runtime.mallocgc$")
    page.locator("#table tbody tr").first.click()
    settle(page)
    assert page.get_attribute("#fold", "aria-pressed") == "false"
    del across


def test_the_call_graph_fits_the_window(show: Open, story: pprofdiff.Diff):
    """On a phone, and if it stays readable, it is scaled down. In any case nothing is cut off."""

    def extent(page: Page, selector: str) -> tuple[float, float, float, float]:
        box = page.locator(selector).first.bounding_box()
        assert box
        return box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]

    small = pprofdiff.diff(*pair("go-heap"))
    assert show(small.to_html(), viewport=SCREEN).is_hidden("#fit"), "there is nothing to fit"
    window = {"width": 900, "height": 900}
    for size, d, expected in ((PHONE, story, True), (SCREEN, story, False), (window, small, True)):
        page = show(d.to_html(), "tab=callgraph", viewport=size)
        assert page.get_attribute("#fit", "aria-pressed") == str(expected).lower()
        left, top, right, bottom = extent(page, "#callgraph svg")
        width, height = (
            float(page.get_attribute("#callgraph svg", attribute) or 0) for attribute in ("width", "height")
        )
        if expected:
            assert 0 <= left < right <= size["width"]
            assert (bottom - top) / (right - left) == pytest.approx(height / width, rel=0.01)
        else:
            assert right - left == width > size["width"]
            # The largest change is visible.
            x, y, x2, y2 = extent(page, '#callgraph [data-name="indexbytebody"]')
            a, b, a2, b2 = extent(page, "#callgraph .scroll")
            assert a <= x < x2 <= a2
            assert b <= y < y2 <= b2
        for node in page.locator("#callgraph g.node").all()[:20]:
            box = node.bounding_box()
            assert box
            assert left <= box["x"] < box["x"] + box["width"] <= right
            assert top <= box["y"] < box["y"] + box["height"] <= bottom
        page.click("#fit")
        assert page.get_attribute("#fit", "aria-pressed") == str(not expected).lower()
        assert f"fit={1 - expected}" in page.url
        # The legend is outside the picture, so it is not scaled down.
        assert "frames" in page.inner_text("#callgraph .note")
        assert page.locator("#callgraph svg > text").count() == 0


def contrast(a: Colour, b: Colour) -> float:
    """Returns WCAG 2.2's contrast ratio."""

    def luminance(c: Colour) -> float:
        linear = [v / 255 / 12.92 if v / 255 <= 0.04045 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in c]
        return sum(part * v for part, v in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    dark, light = sorted((luminance(a), luminance(b)))
    return (light + 0.05) / (dark + 0.05)


def over(paper: Colour, paint: Colour, alpha: float) -> Colour:
    return tuple(p + (q - p) * alpha for p, q in zip(paper, paint, strict=True))


def style(page: Page, where: str, css_property: str) -> str:
    return page.locator(where).first.evaluate(f"e => getComputedStyle(e).{css_property}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_call_graph_is_light_or_dark_as_the_page(show: Open, story: pprofdiff.Diff, scheme: str):
    page = show(story.to_html(), color_scheme=scheme)
    card = colour(style(page, "#callgraph", "backgroundColor"))
    assert colour(style(page, "#callgraph svg > rect", "fill")) == card
    graph = page.locator("#callgraph")
    ink = colour(style(page, "#callgraph .node text", "fill"))
    fills = graph.locator(".node rect").evaluate_all("all => all.map(e => getComputedStyle(e).fill)")
    assert len(set(fills)) > 10
    assert min(contrast(colour(fill), ink) for fill in [*fills, style(page, "#callgraph svg > rect", "fill")]) >= 4.5
    names = graph.locator(".node").evaluate_all("all => all.map(e => e.dataset.name)")
    fill_of = {name: colour(fill) for name, fill in zip(names, fills, strict=True)}
    red, _, blue = fill_of["logmill/names.compare"]
    assert red > blue + 30
    red, _, blue = fill_of["logmill/accesslog.cleanName"]
    assert blue > red + 20


def unreadable(page: Page) -> list[tuple[str, float]]:
    """Returns the texts on the canvas with a contrast below 4.5 to their background."""
    paper = colour(style(page, "#flame", "backgroundColor"))
    painted = page.evaluate("[boxes, fills, texts, inks]")
    low_contrast = []
    for (text, x, y), (ink, alpha) in zip(painted[2], painted[3], strict=True):
        below = paper
        for (left, top, width, height, opaque), fill in zip(painted[0], painted[1], strict=True):
            if left <= x < left + width and top <= y < top + height and not fill.startswith("[object"):
                below = over(below, colour(fill), opaque)
        ratio = contrast(over(below, colour(ink), alpha), below)
        if ratio < 4.5:
            low_contrast.append((text, ratio))
    return low_contrast


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_on_the_canvas_have_enough_contrast(show: Open, story: pprofdiff.Diff, scheme: str):
    page = show(story.to_html(), color_scheme=scheme)
    assert len(page.evaluate("texts")) > 30
    assert unreadable(page) == []
    page.mouse.click(*box(page, story, "logmill/names.canonical"))
    settle(page)
    assert len({b[4] for b in page.evaluate("boxes")}) > 1, "callers are not told from what is zoomed in on"
    assert unreadable(page) == []
    page.click("[data-mode=delta]")
    page.fill("#search", "strings")
    settle(page)
    assert len({b[4] for b in page.evaluate("boxes")}) > 1
    assert unreadable(page) == []
    for where in (".less", ".more", ".names", "#why .notes"):
        around = colour(style(page, "#summary", "backgroundColor"))
        assert contrast(colour(style(page, where, "color")), around) >= 4.5, where
    one = show(story.new[0].to_html(), color_scheme=scheme)
    assert unreadable(one) == []


def test_colours_show_the_direction_of_a_change(show: Open):
    """The colour shows the direction even if only a small part of the box changed."""
    stacks = {("main", "up"): (90_000, 90_300), ("main", "down"): (70_000, 69_800), ("main", "same"): (900, 900)}
    stacks |= {("main", "both", "x"): (50_000, 50_100), ("main", "both", "y"): (50_000, 49_850)}
    sides = (profile([(list(stack), both[i], {}) for stack, both in stacks.items()]) for i in (0, 1))
    d = pprofdiff.diff(*sides)
    page = show(d.to_html(min_width=0), "grey=0")
    page.click("[data-mode=delta]")
    settle(page)
    across = page.evaluate("document.getElementById('canvas').clientWidth")
    shown = {
        (round(y / ROW), round(x)): colour(fill)
        for (x, y, _, h, _), fill in zip(*page.evaluate("[boxes, fills]"), strict=True)
        if h == ROW - 1
    }
    redder = {}
    for depth, left, width, name, _ in boxes_of(tree(d, "space"), "delta", across):
        if width:
            red, _, blue = shown[depth, round(left)]
            redder[name] = red - blue
    assert set(redder) == {"all", "main", "up", "down", "both", "x", "y"}
    assert min(redder[name] for name in ("all", "main", "up", "x")) > 15, redder
    assert max(redder[name] for name in ("down", "both", "y")) < -15, redder
    # The whole box grew, or only a part.
    assert redder["up"] == redder["x"] > redder["main"]
    assert "net direction" in page.inner_text("#legend")


def test_a_tooltip_always_matches_the_box_under_the_pointer(show: Open, story: pprofdiff.Diff):
    """After any change under a resting pointer, the tooltip equals that of a new pointer, or is hidden."""
    page = show(story.to_html(), viewport=SCREEN)
    spot = page.locator("#canvas").bounding_box()
    assert spot
    point = spot["x"] + 60, spot["y"] + 7 * ROW + 5

    def tip_text() -> str:
        settle(page)
        return page.inner_text("#tip") if page.is_visible("#tip") else ""

    def agree(step: str) -> None:
        settle(page)
        before = tip_text()
        page.mouse.move(1, 1)
        assert tip_text() == "", step
        page.mouse.move(*point)
        assert before in ("", tip_text()), step
        seen.add(before)

    seen: set[str] = set()
    page.mouse.move(*point)
    assert tip_text()
    page.mouse.down()
    page.mouse.up()
    agree("zoomed in")
    actions: list[tuple[str, Callable[[], Any]]] = [
        ("zoomed out", lambda: page.keyboard.press("Backspace")),
        ("another width", lambda: page.keyboard.press("2")),
        ("another width", lambda: page.keyboard.press("4")),
        ("inverted", lambda: page.keyboard.press("i")),
        ("upside down", lambda: page.keyboard.press("f")),
        ("the right way up", lambda: page.keyboard.press("f")),
        ("another type", lambda: page.select_option("#type", index=0)),
        ("walked", lambda: (page.focus("#canvas"), page.keyboard.press("ArrowDown"), page.keyboard.press("Enter"))),
        ("all", lambda: page.keyboard.press("0")),
        ("searched", lambda: page.fill("#search", "names|strings|runtime")),
        ("a function found", lambda: page.evaluate("document.querySelector('#table tbody button').click()")),
        ("what that opened is closed", lambda: page.keyboard.press("e")),
        ("keys", lambda: page.evaluate("document.getElementById('help').click()")),
        ("no keys", lambda: page.keyboard.press("Escape")),
        ("another size", lambda: page.set_viewport_size({"width": 1000, "height": 800})),
        ("scrolled", lambda: page.evaluate("scrollTo(0, 60)")),
        ("scrolled away", lambda: page.evaluate("scrollTo(0, 600)")),
        ("scrolled back", lambda: page.evaluate("scrollTo(0, 0)")),
        ("another view", lambda: page.evaluate("location.hash = 'width=base&inverted=1'")),
        ("nothing there", lambda: page.evaluate("location.hash = 'width=delta&zoom=3'")),
    ]
    for step, act in actions:
        act()
        agree(step)
    assert len(seen - {""}) >= 5
    page.keyboard.press("0")
    page.mouse.move(*point)
    assert tip_text()
    page.keyboard.press("Escape")
    assert tip_text() == ""


def test_switches_look_like_switches(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html())
    looks = "e => [getComputedStyle(e, '::before').width, getComputedStyle(e, '::before').backgroundImage]"
    for key, name in (("i", "By callee"), ("f", "Root below")):
        switch = page.get_by_role("button", name=name, exact=True)
        off = switch.evaluate(looks)
        assert (switch.get_attribute("aria-pressed"), off[0]) == ("false", "26px")
        page.keyboard.press(key)
        on = switch.evaluate(looks)
        assert (switch.get_attribute("aria-pressed"), on[0]) == ("true", "26px")
        assert on != off
        assert "by callee" in page.inner_text("#legend"), "without the switches, on paper"


def test_the_printed_page_has_legend_and_graph(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html(), "theme=dark&inverted=1", viewport={"width": 1440, "height": 500})
    page.evaluate(
        "addEventListener('beforeprint', () => { window.printed = [boxes.length, document.documentElement.className,"
        " getComputedStyle(document.body).colorScheme || document.documentElement.dataset.theme,"
        " canvas.width, canvas.height, document.getElementById('extent').offsetHeight]; })"
    )
    before = painted(page)
    deepest = max(y for _, y, *_ in page.evaluate("boxes"))
    assert page.locator("#view").evaluate("v => v.scrollHeight > v.clientHeight"), "all of it is in sight anyway"
    assert len(page.pdf()) > 50_000
    _, name, theme, width, height, extent = page.evaluate("printed")
    assert name == "printing"
    assert "light" in theme
    assert (width, height) == (2000, 2 * extent)
    settle(page)
    assert painted(page) == before
    # Elements on the printed page.
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert max(y for _, y, *_ in page.evaluate("boxes")) > deepest
    for selector in ("#legend", "#canvas", "#movers", "#table", "#callgraph svg"):
        assert page.is_visible(selector), selector
    for selector in ("#search", "#inverted", "#tip", "#help"):
        assert page.is_hidden(selector), selector
    for selector in ("#legend .ramp", "#legend .gone", "#legend .came"):
        assert style(page, selector, "printColorAdjust") == "exact", selector
    shown = page.locator("#canvas").bounding_box()
    width, height = page.evaluate("[canvas.width, canvas.height]")
    assert shown
    assert shown["height"] / shown["width"] == pytest.approx(height / width, rel=0.01)
    assert page.locator("#view").evaluate("v => v.scrollHeight <= v.clientHeight + 1")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.get_attribute("html", "data-theme") == "dark"


def test_long_source_lines_are_wrapped_on_paper(show: Open, story: pprofdiff.Diff):
    """Paper cannot be scrolled, so long lines are wrapped."""
    sources = EXAMPLE.parents[1] / "tests" / "producers" / "story"
    page = show(story.to_html(source_path=sources), viewport={"width": 718, "height": 1000})
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    for table in page.locator("#source table").all():
        box = table.bounding_box()
        assert box
        assert box["x"] + box["width"] <= 718


def test_the_help_lists_all_keys(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html())
    page.focus("#canvas")
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    assert keys.is_visible()
    listed_keys = keys.locator("kbd").all_inner_texts()
    # Every key in the title of a control, and those of the canvas.
    titles = page.locator("[title]").evaluate_all("all => all.map(e => e.title)")
    named = {m[1].strip() for title in titles if (m := re.search(r"\(([^ ()]+)\)$", title))}
    assert len(named) >= 9
    assert named | {"/", "Arrows", "Enter", "Esc"} <= set(listed_keys)
    # The open help captures the keys.
    page.keyboard.press("2")
    assert page.get_attribute("[data-mode=max]", "aria-pressed") == "true"
    page.keyboard.press("Escape")
    assert keys.is_hidden()
    assert page.evaluate("document.activeElement.id") == "canvas"
    page.click("#help")
    assert keys.is_visible()
    keys.get_by_role("button", name="Close").click()
    assert keys.is_hidden()
    assert "1" not in show(story.new[0].to_html()).locator("#keys kbd").all_text_contents()


# The sixteen colours of xterm, without black, white and grey.
XTERM = {
    31: (205, 0, 0),
    32: (0, 205, 0),
    33: (205, 205, 0),
    34: (0, 0, 238),
    35: (205, 0, 205),
    36: (0, 205, 205),
    91: (255, 0, 0),
    92: (0, 255, 0),
    93: (255, 255, 0),
    94: (92, 92, 255),
    95: (255, 0, 255),
    96: (0, 255, 255),
}


def test_less_and_more_look_the_same_everywhere(chromium: Browser, show: Open, story: pprofdiff.Diff):
    main, terminal = pty.openpty()
    command = [sys.executable, "-m", "pprofdiff", *pair("story-cpu")]
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"}
    with subprocess.Popen(command, stdout=terminal, env=environment) as process:
        os.close(terminal)
        written = b""
        # On Linux, reading from a terminal without writers is an error.
        with contextlib.suppress(OSError):
            while chunk := os.read(main, 1 << 16):
                written += chunk
    os.close(main)
    assert process.returncode == 0
    codes = {
        direction: {int(code) for code in re.findall(rf"\x1b\[(\d+)m{sign}[\d.]+", written.decode())}
        for direction, sign in (("less", "-"), ("more", r"\+"))
    }

    def hue(c: Colour) -> float:
        return 360 * colorsys.rgb_to_hsv(*(v / 255 for v in c))[0]

    for scheme in ("light", "dark"):
        page = show(story.to_html(), color_scheme=scheme)
        notebook = chromium.new_page(color_scheme=scheme)
        notebook.set_content(story._repr_html_())
        for direction in ("less", "more"):
            of_page = colour(style(page, f"#table .{direction}", "color"))
            assert colour(style(notebook, f"td.{direction}", "color")) == of_page
            (code,) = codes[direction]
            apart = {other: abs((hue(rgb) - hue(of_page) + 180) % 360 - 180) for other, rgb in XTERM.items()}
            assert apart[code] == min(apart.values()), (direction, scheme, code)
        notebook.close()
