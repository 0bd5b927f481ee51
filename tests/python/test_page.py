"""The page in a real browser: what it draws, what can be done with it, and that names stay names.

What the page must show is worked out here from the stacks of both sides, without the engine's flame graph: a tree of
dicts. What it does show is what Chromium was told to paint: the calls on its canvas are noted as they are made.
"""

import base64
import bisect
import colorsys
import contextlib
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Frame, Page

import pprofdiff
from conftest import PAIRS, pair, profile

EXAMPLE = Path(__file__).parents[2] / "docs" / "story.ipynb"
ROW = 20
WIDTHS = ("max", "base", "new", "delta")

# Notes what is painted since the canvas was last cleared.
NOTE = """
window.boxes = []; window.texts = []; window.fills = []; window.inks = [];
const paint = CanvasRenderingContext2D.prototype, {clearRect, fillRect, fillText} = paint;
paint.clearRect = function (...a) {
  if (this.canvas.id) { boxes = []; texts = []; fills = []; inks = []; }
  return clearRect.apply(this, a);
};
paint.fillRect = function (...a) {
  if (this.canvas.id) { boxes.push([...a, this.globalAlpha]); fills.push(String(this.fillStyle)); }
  return fillRect.apply(this, a);
};
paint.fillText = function (...a) {
  if (this.canvas.id) { texts.push(a); inks.push([String(this.fillStyle), this.globalAlpha]); }
  return fillText.apply(this, a);
};
"""


Open = Callable[..., Page]


@pytest.fixture
def show(chromium: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens a page; at the end, nothing may have been said on the console, and nothing asked of anyone."""
    said: list[str] = []
    contexts = []

    def opened(html: str, fragment: str = "", **options: Any) -> Page:
        context = chromium.new_context(**({"viewport": {"width": 1400, "height": 3000}} | options))
        contexts.append(context)
        context.add_init_script(NOTE)
        page = context.new_page()
        file = tmp_path / f"{len(contexts)}.html"
        file.write_text(html)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda r: said.append(r.url) if not r.url.startswith(file.as_uri()) else None)
        page.goto(f"{file.as_uri()}#{fragment}")
        settle(page)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert said == []


def settle(page: Page | Frame) -> None:
    """Waits until what was asked for is painted."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


class Node:
    """A box as the stacks say it: both values, the four widths, and what is beneath."""

    def __init__(self) -> None:
        self.base = self.new = 0
        self.flat = (0, 0)
        self.width = dict.fromkeys(WIDTHS, 0)
        self.children: dict[str, Node] = {}
        self.order: tuple[bytes, str] = (b"", "")


def tree(d: pprofdiff.Views, sample_type: str, inverted: bool = False) -> Node:
    root = Node()
    # By name; functions without one stand first, by their binary.
    order = {
        r["name"]: (b"" if r["mapping"] else r["name"].encode(), r["mapping"] or "")
        for r in d.top(sample_type=sample_type)
    }
    table = d.stacks(sample_type=sample_type)
    two_sided = "base" in table.columns
    bases = table["base"] if two_sided else [0] * len(table)
    for frames, base, new in zip(table["frames"], bases, table["new" if two_sided else "weight"], strict=True):
        widths = dict(zip(WIDTHS, (max(abs(base), abs(new)), abs(base), abs(new), abs(new - base)), strict=True))
        node = root
        path = [root]
        for name in reversed(frames) if inverted else frames:
            node = node.children.setdefault(name, Node())
            node.order = order[name]
            path.append(node)
        for node in path:
            node.base, node.new = node.base + base, node.new + new
            node.width = {mode: node.width[mode] + widths[mode] for mode in WIDTHS}
        path[-1].flat = (path[-1].flat[0] + base, path[-1].flat[1] + new)
    return root


Box = tuple[int, float, float, str, Node]  # depth, left, width, name, node


def boxes_of(root: Node, mode: str, across: float) -> Iterator[Box]:
    """All boxes from the root down: siblings by the larger side, widest first, then by name."""
    scale = across / root.width[mode] if root.width[mode] else 0
    todo: list[Box] = [(0, 0, across, "all", root)]
    while todo:
        depth, left, width, name, node = todo.pop()
        yield depth, left, width, name, node
        order = sorted(node.children.items(), key=lambda c: (-c[1].width["max"], c[1].order))
        for child_name, child in order:
            todo.append((depth + 1, left, child.width[mode] * scale, child_name, child))
            left += child.width[mode] * scale


def painted(page: Page) -> tuple[float, list[tuple[int, float, float]]]:
    """How wide the canvas is, and its boxes: (depth, left, width)."""
    across = page.evaluate("document.getElementById('canvas').clientWidth")
    return across, [(round(y / ROW), x, w) for x, y, w, h, _ in page.evaluate("boxes") if h == ROW - 1]


def types_of(d: pprofdiff.Views) -> list[str]:
    return [kind for kind, _ in d.sample_types]


@pytest.mark.parametrize("name", PAIRS)
def test_every_box_is_painted_as_wide_as_its_stacks_say(name: str, show: Open):
    d = pprofdiff.diff(*pair(name))
    page = show(d.to_html(min_width=0))
    compared = 0
    for kind in types_of(d):
        page.select_option("#type", label=next(f"{t} ({unit})" for t, unit in d.sample_types if t == kind))
        for inverted in (False, True):
            if (page.get_attribute("#inverted", "aria-pressed") == "true") != inverted:
                page.click("#inverted")
            root = tree(d, kind, inverted)
            for mode in WIDTHS:
                page.click(f"[data-mode={mode}]")
                settle(page)
                across, drawn = painted(page)
                expected = list(boxes_of(root, mode, across))
                if root.width[mode] == 0:
                    continue
                visible = sorted((depth, left, width) for depth, left, width, *_ in expected if width >= 0.5)
                at = {(depth, round(left, 2), round(width, 2)) for depth, left, width in drawn}
                near = (0, 0.01, -0.01)
                for depth, left, width in visible:
                    found = any((depth, round(left + a, 2), round(width + b, 2)) in at for a in near for b in near)
                    assert found, (kind, mode, inverted, depth, left, width)
                # Nothing else is painted: thin boxes side by side are strips, which add up to what they stand for.
                for depth in range(max(depth for depth, *_ in drawn) + 1):
                    sum_drawn = sum(width for at, _, width in drawn if at == depth)
                    in_row = [width for at, _, width, *_ in expected if at == depth]
                    assert sum_drawn == pytest.approx(sum(in_row), abs=0.5 + 0.2 * len(in_row)), (kind, mode, depth)
                # A box lies within the one it hangs from.
                row_of: dict[int, list[tuple[float, float]]] = {}
                for depth, left, width in sorted(drawn):
                    row_of.setdefault(depth, []).append((left, width))
                for depth, left, width in drawn:
                    above = row_of[depth - 1] if depth else [(0.0, across)]
                    x, w = above[bisect.bisect(above, (left + 0.01, across)) - 1]
                    assert x - 0.01 <= left, (kind, mode, depth, left, width)
                    assert left + width <= x + w + 0.01, (kind, mode, depth, left, width)
                compared += len(visible)
    assert compared > 40


def test_a_box_tells_both_values(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html(min_width=0))
    across, _ = painted(page)
    spot = page.locator("#canvas").bounding_box()
    assert spot
    total = story.top().summary["total_base"]

    def unit_of(v: int) -> tuple[str, float]:
        return ("s", 1e9) if v >= 1e9 else ("ms", 1e6)

    def text(v: int, unit: tuple[str, float]) -> str:
        symbol, scaled = unit[0], v / unit[1]
        digits = 2 if abs(scaled) >= 1 else 3
        # Three significant digits; zeros beyond the second decimal are cut, and those of whole numbers.
        return re.sub(r"\.00$|(?<=\.\d\d)0$", "", f"{scaled:.{digits}f}") + symbol if v else "0"

    def growth(base: int, new: int) -> str:
        if not base or not new:
            return "new" if new else "gone"
        if new == base:
            return "0%"
        if new >= 2 * base:
            return f"x{new / base:.3g}"
        return f"{100 * (new - base) / base:+.3g}%"

    def change(base: int, new: int) -> str:
        if not base and not new:
            return "0"
        sign = "+" if new > base else ""
        share = f"{sign}{100 * (new - base) / total:.2f}%" if new != base else "0%"
        # Both sides in the unit of the larger; so is the delta, unless it is small in it.
        unit = of_delta = unit_of(max(base, new))
        if abs(new - base) < unit[1] / 10 and 0 not in (base, new):
            of_delta = unit_of(abs(new - base))
        sides = f"{text(base, unit)} → {text(new, unit)}"
        return f"{sides}, {sign}{text(new - base, of_delta)}, {growth(base, new)}, {share} of total"

    ends = 0
    for depth, left, width, name, node in boxes_of(tree(story, "cpu"), "max", across):
        if width < 2:
            continue
        page.mouse.move(spot["x"] + left + width / 2, spot["y"] + depth * ROW + ROW / 2)
        tip = page.inner_text("#tip").split("\n")
        assert tip[0] == name
        assert tip[1].startswith(change(node.base, node.new)), tip
        mark = "appeared" if node.base == 0 else "vanished" if node.new == 0 else ""
        assert tip[1].endswith(mark or " of total")
        if any(node.flat):
            assert tip[2] == f"of which itself: {change(*node.flat)}"
            ends += 1
    assert ends > 100


def numbers(text: str, signed: bool) -> list[int]:
    """A column of the page's data, read again."""
    out, value, shift = [], 0, 0
    for byte in base64.b64decode(text):
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            out.append((value >> 1) ^ -(value & 1) if signed else value)
            value, shift = 0, 0
    return out


def data_of(html: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    assert found
    return json.loads(found[1])


def stacks_in(data: dict[str, Any], raw: dict[str, Any]) -> dict[tuple[str, ...], tuple[int, int]]:
    """The value of each stack that ends somewhere in a tree of the page, by its path."""
    sums: dict[tuple[str, ...], list[int]] = {}
    path: list[tuple[str, int, int]] = []
    columns = (numbers(raw[c], c in ("base", "new")) for c in ("what", "depth", "base", "new"))
    for what, depth, base, new in zip(*columns, strict=True):
        del path[depth:]
        kind = what // 4
        name = ("all", "(pruned)", *data["names"])[kind]
        parent = path[-1] if path else ("", 0, 0)
        path.append((name, parent[1] - base, parent[2] - new))
        key = tuple(name for name, *_ in path[1:])
        sums[key] = [path[-1][1], path[-1][2]]
        if key:
            above = sums[key[:-1]]
            above[0] -= path[-1][1]
            above[1] -= path[-1][2]
    return {key: (base, new) for key, (base, new) in sums.items() if base or new}


@pytest.mark.parametrize("name", PAIRS)
def test_every_stack_of_both_inputs_is_in_the_page(name: str):
    d = pprofdiff.diff(*pair(name))
    data = data_of(d.to_html(min_width=0))
    for raw in data["types"]:
        assert raw["down"]["pruned"]["stacks"] == 0
        expected: dict[tuple[str, ...], tuple[int, int]] = {}
        for row in d.stacks(sample_type=raw["type"]):
            base, new = expected.get(tuple(row["frames"]), (0, 0))
            expected[tuple(row["frames"])] = (base + row["base"], new + row["new"])
        assert stacks_in(data, raw["down"]) == expected
        assert stacks_in(data, raw["up"]) == {path[::-1]: value for path, value in expected.items()}


def test_the_table_is_the_table(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html())
    rows = page.locator("#table tbody tr")
    names = story.top(100, sort="cum")["name"]
    # Rows that are equal in cum are ordered by flat, then by name, here and there.
    assert page.locator("#table tbody td:first-child").all_inner_texts() == names
    assert rows.nth(0).locator("td").all_inner_texts() == re.split(
        " ", "logmill/names.compare 0.17s 0.25s +0.08s +47.1% +4.21% 0.20s 1.68s +1.48s x8.4 +77.89% changed"
    )
    page.click("#more")
    assert rows.count() == 156
    page.click("th[data-key=flat_base] button")
    assert page.get_attribute("th[data-key=flat_base]", "aria-sort") == "descending"
    by_base = sorted(story.top(), key=lambda r: (-r["flat_base"], r["name"]))
    assert rows.nth(0).get_by_role("button").inner_text() == by_base[0]["name"]
    page.click("th[data-key=name] button")
    assert rows.nth(0).get_by_role("button").inner_text() == min(story.top()["name"])
    page.fill("#filter", r"^logmill/names\.")
    assert page.inner_text("#rows") == "4 of 156 functions"
    assert rows.count() == 4
    page.fill("#filter", "(")
    assert page.get_attribute("#filter", "aria-invalid") == "true"


def test_a_row_finds_its_function_in_the_graph(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html())
    page.get_by_role("button", name="logmill/headers.tableInsensitive").click()
    settle(page)
    assert page.inner_text("#details .name") == "logmill/headers.tableInsensitive"
    # All boxes are dimmed but those of the function.
    assert len([b for b in page.evaluate("boxes") if b[3] == ROW - 1 and b[4] == 1]) == 1
    assert page.locator("tr[aria-selected=true]").count() == 1
    edges = page.locator("#edges table")
    peek = story.peek("tableInsensitive")
    for table, relation in ((edges.nth(0), "caller"), (edges.nth(1), "callee")):
        expected = [r["other"] for r in peek if r["relation"] == relation]
        assert table.get_by_role("button").all_inner_texts() == expected
    assert edges.nth(1).locator("tbody tr").nth(0).locator("td").all_inner_texts()[1:] == ["0.29s", "1.76s", "+1.47s"]
    edges.nth(1).get_by_role("button", name="logmill/names.Same").click()
    assert page.inner_text(".edge-self .name") == "logmill/names.Same"
    # One that is thin is zoomed in on, as far as it takes.
    page.fill("#filter", "^runtime.asyncPreempt$")
    page.locator("#table tbody tr").first.click()
    settle(page)
    assert page.is_enabled("#back")
    assert "runtime.asyncPreempt" in " ".join(t[0] for t in page.evaluate("texts"))


def test_search(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html())
    page.keyboard.press("/")
    page.keyboard.type(r"names\.|cleanName")
    settle(page)
    # A stack counts once, however many of its frames match.
    hit = [r for r in story.stacks() if any(re.search(r"names\.|cleanName", f) for f in r["frames"])]
    base, new = (sum(r[side] for r in hit) / 1e9 for side in ("base", "new"))
    total = page.inner_text("#matched")
    assert total.startswith(f"5 functions: {base:.2f}s → {new:.2f}s, +{new - base:.2f}s"), total
    bright = [b for b in page.evaluate("boxes") if b[4] == 1]
    assert 0 < len(bright) < len(page.evaluate("boxes")) / 4
    page.fill("#search", "NAMES")
    assert page.inner_text("#matched").startswith("0 functions")
    page.fill("#search", "(")
    assert page.inner_text("#matched") == "not a regular expression"
    page.keyboard.press("Escape")
    settle(page)
    assert page.inner_text("#matched") == ""
    assert all(b[4] == 1 for b in page.evaluate("boxes") if b[3] == ROW - 1)


def box(page: Page, d: pprofdiff.Diff, name: str) -> tuple[float, float]:
    """Where the first box of a function is, on the unzoomed page."""
    across, _ = painted(page)
    spot = page.locator("#canvas").bounding_box()
    assert spot
    depth, left, width, *_ = next(b for b in boxes_of(tree(d, "cpu"), "max", across) if b[3] == name)
    return spot["x"] + left + width / 2, spot["y"] + depth * ROW + ROW / 2


def test_zoom_back_and_the_fragment(show: Open, story: pprofdiff.Diff):
    html = story.to_html(min_width=0)
    page = show(html)
    before = painted(page)
    page.mouse.click(*box(page, story, "logmill/names.Same"))
    settle(page)
    across, drawn = painted(page)
    # It and all above it take the whole width.
    assert [(0, across)] * 7 == [(x, w) for depth, x, w in sorted(drawn) if depth <= 6]
    zoomed, address = drawn, page.url
    assert "zoom=" in address
    page.click("#back")
    settle(page)
    assert painted(page) == before
    # The fragment brings the view back, in another window.
    other = show(html, address.partition("#")[2] + "&width=base&theme=dark")
    assert other.get_attribute("[data-mode=base]", "aria-pressed") == "true"
    assert other.get_attribute("html", "data-theme") == "dark"
    other.click("[data-mode=max]")
    settle(other)
    assert painted(other)[1] == zoomed
    # One that somebody got wrong is the view at the start, as far as it is wrong.
    wrong = show(html, "zoom=99999999&type=none&width=wide&sort=x&fn=-7&theme=%3Cscript%3E&nothing")
    assert painted(wrong) == before


def test_the_keyboard(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html())
    page.focus("#canvas")
    for _ in range(6):
        page.keyboard.press("ArrowDown")
    # The widest stack, six frames in.
    node, name = tree(story, "cpu"), ""
    for _ in range(6):
        name, node = min(node.children.items(), key=lambda c: (-c[1].width["max"], c[0]))
    assert page.inner_text("#details .name") == name
    page.keyboard.press("Enter")
    settle(page)
    assert "zoom=" in page.url
    page.keyboard.press("ArrowUp")
    assert page.inner_text("#details .name") == "logmill/headers.tableInsensitive"
    page.keyboard.press("Backspace")
    page.keyboard.press("2")
    assert page.get_attribute("[data-mode=base]", "aria-pressed") == "true"
    page.keyboard.press("f")
    settle(page)
    assert page.get_attribute("#upward", "aria-pressed") == "true"
    assert max(y for _, y, _, h, _ in page.evaluate("boxes") if h == ROW - 1) == page.evaluate("boxes")[0][1]
    page.keyboard.press("i")
    assert page.get_attribute("#inverted", "aria-pressed") == "true"
    page.keyboard.press("0")
    assert page.is_disabled("#reset")
    page.keyboard.press("t")
    assert page.get_attribute("html", "data-theme") == "dark"
    # Everything that can be clicked can be reached: the table's rows are buttons.
    page.locator("#table tbody button").first.focus()
    page.keyboard.press("Enter")
    assert page.inner_text("#details .name") == "logmill/names.compare"


def test_copy_a_stack(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html(), permissions=["clipboard-read", "clipboard-write"])
    page.mouse.click(*box(page, story, "logmill/names.Same"))
    page.click("#copy")
    page.get_by_text("Copied: 6 frames.").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").split("\n") == [
        "runtime.main",
        "main.main",
        "main.run",
        "logmill/headers.Classify",
        "logmill/headers.tableInsensitive",
        "logmill/names.Same",
    ]


def test_switching_the_sample_type_stays_at_the_stack(show: Open):
    d = pprofdiff.diff(*pair("go-heap"))
    page = show(d.to_html(sample_type="alloc_objects"))
    assert page.locator("#type option:checked").inner_text() == "alloc_objects (count)"
    page.focus("#canvas")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    name = page.inner_text("#details .name")
    totals = d.top(sample_type="inuse_space").summary
    page.select_option("#type", label="inuse_space (bytes)")
    settle(page)
    assert page.inner_text("#details .name") == name
    assert f"{totals['total_base'] / 2**20:.2f}MB" in page.inner_text("#total")
    assert page.locator("#table tbody tr").count() == len(d.top(sample_type="inuse_space"))
    assert "type=inuse_space" in page.url


def test_light_and_dark(show: Open, story: pprofdiff.Diff):
    html = story.to_html()
    for scheme, least, most in (("light", 200, 256), ("dark", 0, 60)):
        page = show(html, color_scheme=scheme)
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert all(least <= int(v) < most for v in re.findall(r"\d+", colour)), colour
        page.keyboard.press("t")
        page.keyboard.press("t")
        assert page.get_attribute("html", "data-theme") == "light"


def test_a_window_of_another_size(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html())
    for width in (700, 1700):
        page.set_viewport_size({"width": width, "height": 800})
        settle(page)
        settle(page)
        across, drawn = painted(page)
        assert width - 100 < across < width
        assert max(w for _, _, w in drawn) == across


def test_what_is_pruned_is_gathered_and_said(show: Open, story: pprofdiff.Diff):
    html = story.to_html(min_width=0.05)
    data = data_of(html)
    raw = next(t for t in data["types"] if t["type"] == "cpu")["down"]
    kept, whole = stacks_in(data, raw), tree(story, "cpu")
    gone = {path: value for path, value in kept.items() if path[-1] == "(pruned)"}
    assert len(gone) > 5
    assert tuple(map(sum, zip(*kept.values(), strict=True))) == (whole.base, whole.new)
    for path, value in gone.items():
        node = whole
        for name in path[:-1]:
            node = node.children[name]
        missing = [c for n, c in node.children.items() if not any(k[: len(path)] == (*path[:-1], n) for k in kept)]
        assert value == (sum(c.base for c in missing), sum(c.new for c in missing))
    page = show(html)
    said = re.match(r"(\d+) of 121 stacks \((\d+)% of the width\) are in \(pruned\) boxes", page.inner_text("#pruned"))
    assert said
    assert 0 < int(said[1]) < 121
    assert int(said[2]) == pytest.approx(100 * raw["pruned"]["share"], abs=1)
    assert any(t[0].startswith("(pruned)") for t in page.evaluate("texts"))
    assert len(data_of(story.to_html(max_frames=20))["types"][1]["down"]["what"]) < 60


def test_one_profile(show: Open, story: pprofdiff.Diff):
    p = story.new[0]
    page = show(p.to_html(min_width=0))
    across, drawn = painted(page)
    expected = [b for b in boxes_of(tree(p, "cpu"), "new", across) if b[2] >= 0.5]
    assert len(drawn) >= len(expected) > 100
    for (depth, left, width), b in zip(sorted(drawn), sorted(b[:3] for b in expected), strict=False):
        assert (depth, left, width) == (b[0], pytest.approx(b[1], abs=0.01), pytest.approx(b[2], abs=0.01))
    assert page.is_hidden("#width-mode")
    assert page.inner_text("#total") == "2.93s"
    assert page.locator("#table tbody tr").first.locator("td").all_inner_texts()[1:] == ["0", "0%", "2.91s", "99.32%"]
    page.locator("#table tbody tr").first.click()
    assert "2.91s (99.32%)" in page.inner_text("#details")


MARKUP = "</script><img src=x onerror=window.pwned=1>"
HOSTILE = {
    MARKUP: MARKUP,
    "<!--<script>": "<!--<script>",
    "\"'`&amp;${1}{style}{data}": "\"'`&amp;${1}{style}{data}",
    "nul\0bell\x07\n": "nul⟨U+0000⟩bell⟨U+0007⟩⟨U+000A⟩",
    "\u202egnp.exe\u2066": "⟨U+202E⟩gnp.exe⟨U+2066⟩",
    "\udcff\udcfe bad": "\ufffd\ufffd bad",
    "__proto__": "__proto__",
    "x" * 10_000: "x" * 10_000,
}


def test_hostile_names_stay_text(show: Open, tmp_path: Path):
    base = [([*HOSTILE], 10, {MARKUP: MARKUP}), (list(HOSTILE)[::-1], 7, {})]
    new = [([*HOSTILE], 30, {MARKUP: MARKUP}), *(([name], 5, {}) for name in HOSTILE)]
    file = tmp_path / "<img src=x onerror=window.pwned=2>.pb"
    file.write_bytes(profile(base))
    d = pprofdiff.diff(file, profile(new))
    # The values of labels are names as well.
    rooted = d.filter(tagroot=MARKUP, ignore="no such <script>alert(1)</script>")
    for html in (d.to_html(min_width=0), rooted.to_html(), d.flamegraph().to_html()):
        assert html.count("<img") == 0
        assert html.count("</script>") == 2
        page = show(html)
        assert page.evaluate("window.pwned") is None
        assert page.locator("img").count() == 0
    page = show(d.to_html(min_width=0))
    assert set(page.locator("#table tbody td:first-child").all_text_contents()) == set(HOSTILE.values())
    texts = [t[0] for t in page.evaluate("texts")]
    for shown in HOSTILE.values():
        page.locator("#table tbody button").get_by_text(shown[:60]).first.click()
        assert page.text_content("#details .name") == shown
        assert page.text_content(".edge-self .name") == shown
        assert any(shown[:12] in text for text in texts)
    assert "<img src=x" in page.inner_text("#sides")


def test_hostile_names_of_causes_stay_text(show: Open):
    # Each sample is an event.
    ordinary = [(["main", f"f{i}"], 8, {}) for i in range(20)] * 40
    added = [([caller, name], 8, {}) for caller, name in zip(HOSTILE, list(HOSTILE)[1:], strict=False)] * 150
    html = pprofdiff.diff(profile(ordinary), profile(ordinary + added)).to_html(min_width=0)
    assert html.count("<img") == 0
    assert html.count("</script>") == 2
    page = show(html)
    causes = page.locator("#why button")
    assert causes.count() >= 4
    assert any(MARKUP in text for text in causes.all_text_contents())
    for cause in causes.filter(visible=True).all():
        cause.click()
        settle(page)
        bright = [t[0] for t, (_, alpha) in zip(*page.evaluate("[texts, inks]"), strict=True)]
        assert bright
        assert page.inner_text("#matched") == "", "it is too thin"
    assert page.evaluate("window.pwned") is None
    assert page.locator("img").count() == 0


def test_the_page_opens_with_what_explain_says(show: Open, story: pprofdiff.Diff):
    command = [sys.executable, "-m", "pprofdiff", "explain", *pair("story-cpu")]
    said = subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
    page = show(story.to_html())
    panel = page.inner_text("#why")
    # All of it but the command and the parts of causes, which are indented.
    lines = [line.replace("->", "→") for line in said if not line.startswith(" ")]
    assert len(lines) == 6
    assert all(line in panel for line in lines), panel
    top, graph = (page.locator(where).bounding_box() for where in ("#why", "#flame"))
    assert top
    assert graph
    assert top["y"] < graph["y"]
    # Each sample type has its own.
    page.select_option("#type", label="samples (count)")
    assert "samples: 190 → 293" in page.inner_text("#why").replace("\xa0", " ")
    assert page.locator("#why h2:visible").count() == 1
    # Where there is nothing to compare, or to explain by functions, there is none.
    for html in (story.new[0].to_html(), story.to_html(granularity="lines"), story.flamegraph().to_html()):
        other = show(html)
        assert other.is_hidden("#why")
        assert other.is_hidden("#grey")


@pytest.mark.parametrize("name", PAIRS)
def test_no_page_of_the_corpus_complains(show: Open, name: str):
    """All sample types, both directions, and what is told of boxes and rows; `show` fails if the console has a word."""
    page = show(pprofdiff.diff(*pair(name)).to_html(), viewport={"width": 1400, "height": 900})
    for kind in page.locator("#type option").all():
        page.select_option("#type", kind.get_attribute("value"))
        settle(page)
        spot = page.locator("#canvas").bounding_box()
        assert spot
        for _ in range(2):
            for row in range(6):
                page.mouse.move(spot["x"] + 100 + 200 * row, spot["y"] + row * ROW + 5)
                settle(page)
            page.keyboard.press("i")


def test_samples_that_can_not_tell_have_a_page(show: Open, tmp_path: Path):
    """The base has no more than an event, so that there is no size at which a change would be told from chance."""
    files = [tmp_path / "base.folded", tmp_path / "new.folded"]
    for file, text in zip(files, ("main;a 1\n", "main;a 2\nmain;b 1\n"), strict=True):
        file.write_text(text)
    page = show(pprofdiff.diff(*files).to_html())
    titles = page.eval_on_selector_all("td[title]", "cells => cells.map(cell => cell.title)")
    assert any("these samples can't tell it from chance" in title for title in titles), titles


def test_a_page_explains_a_few_sample_types(show: Open):
    d = pprofdiff.diff(*pair("go-heap"))
    page = show(d.to_html())
    assert page.locator("#why [data-type]").count() == len(d.sample_types) == 4
    # A normalized page finds the scale by itself.
    scaled = pprofdiff.diff(*pair("go-heap-ops")).normalize(1 / 3)
    page = show(scaled.to_html(sample_type="alloc_space"))
    assert "main.splitFields now calls main.copyRest" in page.inner_text("#why")
    assert "2.99 times as much work" in page.inner_text("#why")
    tip = page.locator("#table td.chance[title*='x2.99']")
    assert tip.count() > 0


def bright(page: Page) -> set[tuple[int, int]]:
    """Depth and left edge of the boxes that are not faded."""
    return {(round(y / ROW), round(x)) for x, y, _, h, alpha in page.evaluate("boxes") if alpha == 1 and h == ROW - 1}


def stacks_through(root: Node, caller: str, function: str, across: float, inverted: bool) -> set[tuple[int, int]]:
    """The boxes above and below those of a function that a caller calls."""
    found = set()
    above: list[Box] = []
    inside = -1
    drawn = [b for b in boxes_of(root, "max", across) if b[2] >= 1]
    for box in drawn:
        depth, left, _, name, node = box
        del above[depth:]
        above.append(box)
        if depth <= inside:
            inside = -1
        called = caller in node.children if inverted else depth > 0 and above[depth - 1][3] == caller
        if name == function and called and inside < 0:
            inside = depth
            found |= {(b[0], round(b[1])) for b in above}
        if inside >= 0:
            found.add((depth, round(left)))
    return found


def test_a_cause_points_out_its_stacks(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html(min_width=0))
    every = bright(page)
    first = page.get_by_role("button", name="1. logmill/names.compare now calls logmill/names.canonical")
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
    # A link brings it back; the search takes its place; a second click, Escape and Reset take it away.
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


def test_a_function_that_costs_more_itself_is_pointed_out_without_what_it_calls(show: Open):
    stacks = {("main", "f", f"g{i}"): (40, 40) for i in range(9)} | {("main", "f"): (90, 400)}
    stacks |= {("main", f"h{i}"): (40, 40) for i in range(9)}
    # Each sample is an event.
    sides = (profile([(list(stack), 8, {}) for stack, n in stacks.items() for _ in range(n[i])]) for i in (0, 1))
    page = show(pprofdiff.diff(*sides).to_html(min_width=0))
    page.click("#why button:has-text('f itself costs more')")
    settle(page)
    assert {depth for depth, _ in bright(page)} == {0, 1, 2}
    assert len(bright(page)) == 3


def test_what_is_chance_is_grey(show: Open, story: pprofdiff.Diff):
    html = story.to_html(min_width=0)

    def chroma(page: Page, name: str) -> int:
        across, _ = painted(page)
        x, y = next(
            (round(left), depth * ROW)
            for depth, left, _, n, _ in boxes_of(tree(story, "cpu"), "max", across)
            if n == name
        )
        fills = zip(*page.evaluate("[boxes, fills]"), strict=True)
        at = {(round(left), round(top)): colour(fill) for (left, top, _, h, _), fill in fills if h == ROW - 1}
        rgb = at[x, y]
        return max(rgb) - min(rgb)

    chance, changed = "logmill/stats.quantile", "logmill/names.canonical"
    cells = "#table tr:has(button:text-is('%s')) td"
    page = show(html)
    switch = page.get_by_role("button", name="Grey chance")
    assert switch.get_attribute("aria-pressed") == "true"
    assert chroma(page, chance) < 15 < 90 < chroma(page, changed)
    assert "no more than chance" in page.inner_text("#legend")
    # Its delta, growth and share, of flat and of cum; cum is what the box has.
    greyed = page.locator(cells % chance + ".chance")
    delta, why = greyed.nth(-3).text_content(), greyed.nth(-3).get_attribute("title")
    assert delta
    assert why
    assert re.fullmatch(re.escape(delta) + r": no more than chance here; .* by ±\d+%", why), why
    assert page.locator(cells % changed + ".chance").count() == 0
    page.mouse.move(*box(page, story, chance))
    assert page.inner_text("#tip .note >> nth=-1") == why
    page.keyboard.press("g")
    settle(page)
    assert switch.get_attribute("aria-pressed") == "false"
    assert chroma(page, chance) > 15
    assert page.locator("#table .chance").count() == 0
    assert "no more than chance" not in page.inner_text("#legend")
    # The reason is told all the same, and a link remembers.
    assert page.locator(cells % chance + ".less").last.get_attribute("title") == why
    assert chroma(show(html, page.url.partition("#")[2]), chance) > 15
    switch.click()
    settle(page)
    assert chroma(page, chance) < 15


def test_a_call_graph_that_comes_along_is_shown_and_does_nothing(show: Open, story: pprofdiff.Diff):
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>window.pwned = 1</script>'
    svg += '<rect width="5" height="5" fill="#123456"/><text>a &lt;b&gt;</text></svg>'
    html = story.to_html()
    data = data_of(html)
    del data["types"][0]["callgraph"]
    data["types"][1]["callgraph"] = {"svg": svg, "frames": []}
    block = re.search(r'id="data">(.*?)</script>', html, re.S)
    assert block
    page = show(html.replace(block[1], json.dumps(data).replace("<", "\\u003c")))
    assert page.is_visible("#callgraph rect")
    assert page.text_content("#callgraph text") == "a <b>"
    assert page.evaluate("window.pwned") is None
    page.select_option("#type", index=0)
    assert page.is_hidden("#callgraph")
    assert page.is_hidden("#source")


def test_the_call_graph_of_each_sample_type_is_in_the_page(show: Open):
    d = pprofdiff.diff(*pair("go-heap"))
    page = show(d.to_html())
    for name, unit in d.sample_types:
        page.select_option("#type", label=f"{name} ({unit})")
        drawn = re.findall(r'data-name="(.*?)"', d.callgraph(sample_type=name).to_svg())
        assert len(drawn) > 3
        shown = page.locator("#callgraph g.node")
        assert shown.evaluate_all("nodes => nodes.map(n => n.dataset.name)") == [unescape(n) for n in drawn]
        for i in {0, len(drawn) // 2, len(drawn) - 1}:
            shown.nth(i).click()
            assert page.text_content(".edge-self .name") == unescape(drawn[i])
            assert page.locator("#callgraph g.chosen").count() == 1
    assert "callgraph" not in data_of(d.flamegraph().to_html())["types"][0]
    assert show(pprofdiff.load(profile([])).to_html()).is_hidden("#callgraph")


def test_source_lines_come_along_where_there_are_sources(show: Open, story: pprofdiff.Diff, tmp_path: Path):
    story_sources = EXAMPLE.parents[1] / "tests" / "producers" / "story"
    page = show(story.to_html(base_source=story_sources, new_source=[story_sources]))
    listed = page.locator("#source details")
    assert 5 < listed.count() <= 20
    routine = listed.filter(has_text="logmill/headers.tableInsensitive in")
    line = routine.locator("tr", has_text="names.Same(table[i].name, name)")
    assert line.locator("td").all_text_contents()[3:10] == ["0.33s", "1.78s", "+1.45s", "x5.39", "+76.32%", "64", "64"]
    font, below = (
        line.locator("td").last.evaluate(f"e => getComputedStyle(e).{what}") for what in ("fontFamily", "whiteSpace")
    )
    assert ("Mono" in font, below) == (True, "pre"), "the page's style does not reach it"
    assert page.inner_text("#source .note >> nth=0").startswith("cpu (nanoseconds): the ")
    assert story.to_html(source_path=tmp_path) == story.to_html(trim_path="") == story.to_html()
    assert show(story.to_html()).is_hidden("#source")
    story.save_html(tmp_path / "saved.html", source_path=story_sources)
    assert (tmp_path / "saved.html").read_text() == story.to_html(source_path=story_sources)


def test_lines_open_to_their_instructions(show: Open, program: tuple[Path, bytes]):
    app, heap = program
    both = pprofdiff.diff(heap, heap, binary=[app])
    page = show(both.to_html(source_path=app.parent), viewport=PHONE)
    work = page.locator("#source details").filter(has_text="work in")
    line = work.locator("tr", has_text="return n * 7")
    code = work.locator("tr", has_text="push %rbp")
    assert (line.is_visible(), code.is_visible()) == (True, False)
    line.locator("input").click()
    assert code.is_visible()
    # What lies before the costs of the line lies before those of its instructions.
    cells = [row.locator("td").nth(2).bounding_box() for row in (line, code)]
    assert cells[0]
    assert cells[1]
    assert abs(cells[0]["x"] - cells[1]["x"]) < 1
    page.set_viewport_size(SCREEN)
    settle(page)
    assert code.is_visible()
    line.locator("label").click()
    assert not code.is_visible()
    assert page.locator("#source details").filter(has_text="main in").locator("tr.code:visible").count() == 0


def test_hostile_sources_stay_text(show: Open, story: pprofdiff.Diff, tmp_path: Path):
    file = tmp_path / "headers" / "table.go"
    file.parent.mkdir()
    text = f"{MARKUP} <!-- {{data}} {{script}}\0\u202e\n"
    file.write_text(text * 99)
    page = show(story.to_html(source_path=tmp_path))
    line = page.locator("#source tr", has_text="1.78s").locator("td").last
    assert line.text_content() == text.strip().replace("\0", "\ufffd").replace("\u202e", "\ufffd").join(["  ", ""])
    assert page.evaluate("window.pwned") is None
    assert page.locator("img").count() == 0


def test_the_policy_holds_even_if_a_name_got_through(chromium: Browser, tmp_path: Path, story: pprofdiff.Diff):
    file = tmp_path / "page.html"
    file.write_text(story.to_html().replace("<main>", "<main><img src=x onerror=window.pwned=1>"))
    page = chromium.new_page()
    answered: list[str] = []
    refused: list[str | None] = []
    page.on("requestfinished", lambda r: answered.append(r.url))
    page.on("requestfailed", lambda r: refused.append(r.failure))
    page.goto(file.as_uri())
    page.evaluate(
        """() => { const s = document.createElement('script'); s.textContent = 'window.pwned = 2';
        document.body.append(s); document.body.insertAdjacentHTML('beforeend', '<b style="color:red">x</b>'); }"""
    )
    tried = page.evaluate("fetch('data:text/plain,x').then(() => 'fetched', () => 'refused')")
    assert (page.evaluate("window.pwned"), tried) == (None, "refused")
    assert answered == [file.as_uri()]
    assert set(refused) == {"csp"}
    assert page.evaluate("getComputedStyle(document.body.lastElementChild).color") != "rgb(255, 0, 0)"
    page.close()


def test_a_notebooks_frame(chromium: Browser, tmp_path: Path, story: pprofdiff.Diff):
    graph = story.flamegraph()
    host = tmp_path / "notebook.html"
    host.write_text(f"<!doctype html><title>host</title><script>secret = 1</script>{graph._repr_html_()}")
    said: list[str] = []
    page = chromium.new_page()
    page.add_init_script(NOTE)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda r: said.append(r.url) if r.url != host.as_uri() else None)
    page.goto(host.as_uri())
    assert page.get_attribute("iframe", "sandbox") == "allow-scripts"
    frame = page.frames[1]
    # Has it painted anew: what a frame paints first may come before the notes are taken.
    frame.locator("#canvas").hover(position={"x": 50, "y": 5})
    settle(frame)
    assert frame.locator("#functions").is_hidden()
    assert frame.locator("#type option").count() == 1
    assert len(frame.evaluate("boxes")) > 100
    assert frame.evaluate("document.documentElement.scrollHeight <= innerHeight"), "not all of it is in sight"
    frame.locator("#canvas").click(position={"x": 50, "y": 6 * ROW + 5})
    assert frame.inner_text("#details .name") == "logmill/names.Same"
    frame.click("#back")
    frame.click("#copy")
    frame.get_by_text("Copied: 6 frames.").wait_for()
    assert said == []
    # What runs in it has no way out.
    assert frame.evaluate("(() => { try { return parent.secret; } catch { return 'refused'; } })()") == "refused"
    page.close()


def test_what_is_chosen_is_told_to_a_notebook_only(chromium: Browser, tmp_path: Path, story: pprofdiff.Diff):
    graph = story.flamegraph()
    graph.save(tmp_path / "graph.html")
    for frame, told in ((graph._repr_html_(), 1), ('<iframe src="graph.html" width="900" height="700"></iframe>', 0)):
        host = tmp_path / "host.html"
        listen = "<script>heard = []; onmessage = (e) => heard.push(e.data.stack);</script>"
        host.write_text(f"<!doctype html><meta charset=utf-8>{listen}{frame}")
        page = chromium.new_page()
        page.goto(host.as_uri())
        inside = page.frames[1]
        inside.locator("#canvas").click(position={"x": 50, "y": 6 * ROW + 5})
        assert inside.inner_text("#details .name") == "logmill/names.Same"
        # Read from a box up to the root, a stack begins with the root as well.
        inside.click("#inverted")
        inside.locator("#canvas").click(position={"x": 50, "y": 2 * ROW + 5})
        settle(page)
        chosen = inside.inner_text("#details .name")
        heard = [stack for stack in page.evaluate("heard") if stack]
        assert len(heard) == 2 * told
        if told:
            assert heard[0][-1] == "logmill/names.Same"
            assert (heard[1][0], len(heard[1])) == (chosen, 2)
        page.close()


def test_the_example_notebook(chromium: Browser, site: Path):
    cells = json.loads(EXAMPLE.read_text())["cells"]
    assert not any(cell.get("outputs") for cell in cells), "the notebook is kept without its output"
    said: list[str] = []
    # A browser paints frames that are in sight.
    page = chromium.new_page(viewport={"width": 1200, "height": 12000})
    page.add_init_script(NOTE)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((site / "story.html").as_uri())
    shown = page.locator(".cell_output")
    assert shown.count() == sum(cell["cell_type"] == "code" for cell in cells) - 1  # a saved page shows nothing
    assert len(page.frames) == 3
    for frame in page.frames[1:]:
        frame.locator("#canvas").hover(position={"x": 50, "y": 5})
        settle(frame)
        assert len(frame.evaluate("boxes")) > 100
    assert said == []
    assert "logmill/names.canonical" in page.content()
    assert (EXAMPLE.parent / "report.html").stat().st_size > 50_000
    page.close()


def test_the_readme_shows_the_page(chromium: Browser, tmp_path: Path):
    """To take the picture again: UPDATE_GOLDENS=1 pytest tests/python/test_page.py -k readme."""
    picture = EXAMPLE.parents[1] / "docs" / "report.png"
    if os.environ.get("UPDATE_GOLDENS"):
        for source, name in zip(pair("story-cpu"), ("main.pb.gz", "branch.pb.gz"), strict=True):
            shutil.copy(source, tmp_path / name)
        command = [sys.executable, "-m", "pprofdiff", "main.pb.gz", "branch.pb.gz", "--format", "html", "-o", "r.html"]
        subprocess.run(command, cwd=tmp_path, check=True)
        page = chromium.new_page(viewport={"width": 1280, "height": 960}, color_scheme="light")
        page.goto((tmp_path / "r.html").as_uri())
        page.locator("#table tbody tr").nth(3).click()
        page.keyboard.press("0")
        page.evaluate("scrollTo(0, 0)")
        page.mouse.move(0, 0)
        settle(page)
        picture.parent.mkdir(exist_ok=True)
        page.screenshot(path=picture)
        page.close()
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < 200_000
    assert "](docs/report.png)" in (picture.parents[1] / "README.md").read_text()


def test_saved_and_written_by_the_command_it_is_the_same(tmp_path: Path, story: pprofdiff.Diff):
    base, new = pair("story-cpu")
    story.save_html(tmp_path / "saved.html", sample_type="samples", min_width=0.01)
    command = [sys.executable, "-m", "pprofdiff", base, new, "--sample-type", "samples", "--min-width", "0.01"]
    subprocess.run([*command, "--format", "html", "-o", tmp_path / "command.html"], check=True)
    written = (tmp_path / "command.html").read_text()
    assert (tmp_path / "saved.html").read_text() == written
    assert written == story.to_html(sample_type="samples", min_width=0.01)
    graph = story.flamegraph(sample_type="samples")
    graph.save(tmp_path / "graph.html")
    assert (tmp_path / "graph.html").read_text() == graph.to_html()
    assert "FlameGraph of" in repr(graph)
    with pytest.raises(pprofdiff.PprofError, match="min_width"):
        story.to_html(min_width=2)
    with pytest.raises(FileNotFoundError):
        story.save_html(tmp_path / "none" / "page.html")


PHONE = {"width": 390, "height": 844}
SCREEN = {"width": 1440, "height": 900}


@pytest.mark.parametrize("size", [SCREEN, PHONE], ids=["screen", "phone"])
def test_what_moved_most_stands_beside_the_total(show: Open, size: dict[str, int]):
    d = pprofdiff.diff(*pair("go-allocs-ops"))
    page = show(d.to_html(), viewport=size)
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
            assert box["y"] + box["height"] <= size["height"], "not on the first screen"
    name = page.locator("#movers button").first.get_attribute("title")
    page.locator("#movers button").first.click()
    assert page.inner_text(".edge-self .name") == name


@pytest.mark.parametrize("size", [SCREEN, PHONE], ids=["screen", "phone"])
def test_heads_of_what_moved_most_stand_over_their_columns(show: Open, story: pprofdiff.Diff, size: dict[str, int]):
    page = show(story.to_html(), viewport=size)
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


def test_what_moved_most_of_the_story(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html())
    shown = [row.inner_text().split() for row in page.locator("#movers tbody tr").all()]
    assert shown[0] == ["indexbytebody", "+0.62s", "x5.77", "+32.63%"]
    assert [share[0] for *_, share in shown] == ["+"] * 5 + ["-"] * 5
    one = show(story.new[0].to_html())
    assert "cost most" in one.inner_text("#movers")
    assert one.locator("#movers tbody tr").count() == 5
    # Nothing moved, nothing is said.
    assert show(pprofdiff.diff(story.base, story.base).to_html()).is_hidden("#movers")


def test_on_a_phone_changes_come_first(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html(), viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    heads = page.locator("#table thead tr").last.locator("th").all_inner_texts()
    assert [h.rstrip(" ↓") for h in heads] == [
        *("function", "delta", "delta"), *("base", "new", "growth", "of total") * 2, "status"
    ]  # fmt: skip
    row = page.locator("#table tbody tr").first.locator("td")
    assert row.all_inner_texts() == re.split(
        " ", "logmill/names.compare +0.08s +1.48s 0.17s 0.25s +47.1% +4.21% 0.20s 1.68s x8.4 +77.89% changed"
    )
    for cell in row.all()[:3]:
        box = cell.bounding_box()
        assert box
        assert box["x"] + box["width"] <= PHONE["width"]
    row.first.click()
    assert page.locator("#edges th").all_inner_texts()[1:4] == ["delta", "base", "new"]
    # Turned to a screen's width, all columns stand as they do there.
    page.set_viewport_size(SCREEN)
    settle(page)
    assert page.locator("#table thead tr").last.locator("th").nth(1).inner_text() == "base"


def test_on_a_phone_source_lines_begin_with_their_changes(show: Open, story: pprofdiff.Diff):
    sources = EXAMPLE.parents[1] / "tests" / "producers" / "story"
    page = show(story.to_html(source_path=sources), viewport=PHONE)
    routine = page.locator("#source details").filter(has_text="logmill/headers.tableInsensitive in")

    def head_and_line() -> list[list[str]]:
        line = routine.locator("tr", has_text="names.Same(table[i].name, name)")
        return [routine.locator("th").all_text_contents(), [t.strip() for t in line.locator("td").all_text_contents()]]

    text = "if names.Same(table[i].name, name) {"
    head, line = head_and_line()
    assert head == [
        *("flat: delta", "cum: delta", "line", "source"), *("flat: base", "new", "cum: base", "new"),
        *("growth", "of total", "line: base"),
    ]  # fmt: skip
    assert line[:4] == ["-30ms", "+1.45s", "64", text]
    assert line[6:] == ["0.33s", "1.78s", "x5.39", "+76.32%", "64"]
    for cell in routine.locator("tr", has_text="names.Same(table[i].name").locator("td").all()[:3]:
        box = cell.bounding_box()
        assert box
        assert box["x"] + box["width"] <= PHONE["width"]
    page.set_viewport_size(SCREEN)
    settle(page)
    head, line = head_and_line()
    assert head == [
        *("flat: base", "new", "delta"), *("cum: base", "new", "delta", "growth", "of total"),
        *("line: base", "new", "source"),
    ]  # fmt: skip
    assert line[3:] == ["0.33s", "1.78s", "+1.45s", "x5.39", "+76.32%", "64", "64", text]


def test_the_call_graph_is_fitted(show: Open, story: pprofdiff.Diff):
    """On a phone, or if it stays readable; as a whole in any case: nothing of it is cut off."""

    def extent(page: Page, what: str) -> tuple[float, float, float, float]:
        found = page.locator(what).first.bounding_box()
        assert found
        return found["x"], found["y"], found["x"] + found["width"], found["y"] + found["height"]

    small = pprofdiff.diff(*pair("go-heap"))
    assert show(small.to_html(), viewport=SCREEN).is_hidden("#fit"), "there is nothing to fit"
    window = {"width": 900, "height": 900}
    for size, d, expected in ((PHONE, story, True), (SCREEN, story, False), (window, small, True)):
        page = show(d.to_html(), viewport=size)
        assert page.get_attribute("#fit", "aria-pressed") == str(expected).lower()
        left, top, right, bottom = extent(page, "#callgraph svg")
        width, height = (float(page.get_attribute("#callgraph svg", what) or 0) for what in ("width", "height"))
        if expected:
            assert 0 <= left < right <= size["width"]
            assert (bottom - top) / (right - left) == pytest.approx(height / width, rel=0.01)
        else:
            assert right - left == width > size["width"]
            # What changed most is in sight.
            x, y, x2, y2 = extent(page, '#callgraph [data-name="logmill/names.compare"]')
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
        # Its legend is text of the page, which does not shrink with it.
        assert "frames" in page.inner_text("#callgraph .note")
        assert page.locator("#callgraph svg > text").count() == 0


Colour = tuple[float, ...]


def colour(text: str) -> Colour:
    """A colour as the browser says it: `rgb(1, 2, 3)`, `rgba(...)`, `color(srgb 0.1 0.2 0.3)` or `#010203`."""
    if text.startswith("#"):
        return tuple(int(text[i : i + 2], 16) for i in (1, 3, 5))
    values = [float(v) for v in re.findall(r"[\d.]+", text)][:3]
    return tuple(255 * v for v in values) if text.startswith("color(srgb") else tuple(values)


def contrast(a: Colour, b: Colour) -> float:
    """WCAG 2.2's contrast ratio."""

    def luminance(c: Colour) -> float:
        linear = [v / 255 / 12.92 if v / 255 <= 0.04045 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in c]
        return sum(part * v for part, v in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    dark, light = sorted((luminance(a), luminance(b)))
    return (light + 0.05) / (dark + 0.05)


def over(paper: Colour, paint: Colour, alpha: float) -> Colour:
    return tuple(p + (q - p) * alpha for p, q in zip(paper, paint, strict=True))


def style(page: Page, where: str, what: str) -> str:
    return page.locator(where).first.evaluate(f"e => getComputedStyle(e).{what}")


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
    """The texts on the canvas whose contrast with what is below them is less than 4.5."""
    paper = colour(style(page, "#flame", "backgroundColor"))
    painted = page.evaluate("[boxes, fills, texts, inks]")
    found = []
    for (text, x, y), (ink, alpha) in zip(painted[2], painted[3], strict=True):
        below = paper
        for (left, top, width, height, opaque), fill in zip(painted[0], painted[1], strict=True):
            if left <= x < left + width and top <= y < top + height and not fill.startswith("[object"):
                below = over(below, colour(fill), opaque)
        ratio = contrast(over(below, colour(ink), alpha), below)
        if ratio < 4.5:
            found.append((text, ratio))
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_are_readable(show: Open, story: pprofdiff.Diff, scheme: str):
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
    for where in (".less", ".more", "#notes", ".when"):
        around = colour(style(page, "#summary", "backgroundColor"))
        assert contrast(colour(style(page, where, "color")), around) >= 4.5, where
    one = show(story.new[0].to_html(), color_scheme=scheme)
    assert unreadable(one) == []


def test_what_changed_shows_its_direction(show: Open):
    """By its colour, however little of a box it is that changed."""
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
    # All of it rose, or a part.
    assert redder["up"] == redder["x"] > redder["main"]
    assert "which way" in page.inner_text("#legend")


def test_a_tooltip_tells_what_is_there(show: Open, story: pprofdiff.Diff):
    """After whatever happened under a mouse that rests: what it would be told, had it come just now, or nothing."""
    page = show(story.to_html(), viewport=SCREEN)
    spot = page.locator("#canvas").bounding_box()
    assert spot
    at = spot["x"] + 60, spot["y"] + 7 * ROW + 5

    def told() -> str:
        settle(page)
        return page.inner_text("#tip") if page.is_visible("#tip") else ""

    def agree(what: str) -> None:
        settle(page)
        before = told()
        page.mouse.move(1, 1)
        assert told() == "", what
        page.mouse.move(*at)
        assert before in ("", told()), what
        seen.add(before)

    seen: set[str] = set()
    page.mouse.move(*at)
    assert told()
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
        ("keys", lambda: page.evaluate("document.getElementById('help').click()")),
        ("no keys", lambda: page.keyboard.press("Escape")),
        ("another size", lambda: page.set_viewport_size({"width": 1000, "height": 800})),
        ("scrolled", lambda: page.evaluate("scrollTo(0, 60)")),
        ("scrolled away", lambda: page.evaluate("scrollTo(0, 600)")),
        ("scrolled back", lambda: page.evaluate("scrollTo(0, 0)")),
        ("another view", lambda: page.evaluate("location.hash = 'width=base&inverted=1'")),
        ("nothing there", lambda: page.evaluate("location.hash = 'width=delta&zoom=3'")),
    ]
    for what, act in actions:
        act()
        agree(what)
    assert len(seen - {""}) > 5
    page.keyboard.press("0")
    page.mouse.move(*at)
    assert told()
    page.keyboard.press("Escape")
    assert told() == ""


def test_a_finger_leaves_no_tooltip(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html(), viewport=PHONE, has_touch=True, is_mobile=True)
    page.locator("#canvas").tap(position={"x": 40, "y": 5 * ROW + 5})
    settle(page)
    assert page.is_hidden("#tip")
    assert page.inner_text("#details .name") == "logmill/headers.tableInsensitive"


def test_switches_look_like_switches(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html())
    looks = "e => [getComputedStyle(e, '::before').width, getComputedStyle(e, '::before').backgroundImage]"
    for key, name in (("i", "Inverted"), ("f", "Flame")):
        switch = page.get_by_role("button", name=name, exact=True)
        off = switch.evaluate(looks)
        assert (switch.get_attribute("aria-pressed"), off[0]) == ("false", "26px")
        page.keyboard.press(key)
        on = switch.evaluate(looks)
        assert (switch.get_attribute("aria-pressed"), on[0]) == ("true", "26px")
        assert on != off
        assert "inverted" in page.inner_text("#legend"), "without the switches, on paper"


def test_paper_has_legend_and_graph(show: Open, story: pprofdiff.Diff):
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
    # What stands on the paper.
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert max(y for _, y, *_ in page.evaluate("boxes")) > deepest
    for what in ("#legend", "#canvas", "#movers", "#table", "#callgraph svg"):
        assert page.is_visible(what), what
    for what in ("#search", "#inverted", "#tip", "#help"):
        assert page.is_hidden(what), what
    for what in ("#legend .ramp", "#legend .gone", "#legend .came"):
        assert style(page, what, "printColorAdjust") == "exact", what
    shown = page.locator("#canvas").bounding_box()
    width, height = page.evaluate("[canvas.width, canvas.height]")
    assert shown
    assert shown["height"] / shown["width"] == pytest.approx(height / width, rel=0.01)
    assert page.locator("#view").evaluate("v => v.scrollHeight <= v.clientHeight + 1")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.get_attribute("html", "data-theme") == "dark"


def test_paper_is_as_wide_as_source_lines(show: Open, story: pprofdiff.Diff):
    """A line that is too long is broken: on paper nobody can move it."""
    sources = EXAMPLE.parents[1] / "tests" / "producers" / "story"
    page = show(story.to_html(source_path=sources), viewport={"width": 718, "height": 1000})
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    for table in page.locator("#source table").all():
        box = table.bounding_box()
        assert box
        assert box["x"] + box["width"] <= 718


def test_the_keys_are_told(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html())
    page.focus("#canvas")
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    assert keys.is_visible()
    told = keys.locator("kbd").all_inner_texts()
    # Every key that a control's title names, and those of the canvas.
    titles = page.locator("[title]").evaluate_all("all => all.map(e => e.title)")
    named = {m[1].strip() for title in titles if (m := re.search(r"\(([^ ()]+)\)$", title))}
    assert len(named) >= 9
    assert named | {"/", "Arrows", "Enter", "Esc"} <= set(told)
    # It keeps the keys to itself.
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


# The sixteen colours as xterm has them, without black, white and grey.
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
        # Linux ends a terminal that nobody writes to any more with an error.
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
            assert colour(style(notebook, f".{direction}", "color")) == of_page
            (code,) = codes[direction]
            apart = {other: abs((hue(rgb) - hue(of_page) + 180) % 360 - 180) for other, rgb in XTERM.items()}
            assert apart[code] == min(apart.values()), (direction, scheme, code)
        notebook.close()


def test_the_page_is_small(story: pprofdiff.Diff):
    html = story.to_html()
    data = re.search(r'id="data">(.*?)</script>', html, re.S)
    assert data
    assert len(html.encode()) - len(data[1].encode()) < 100_000


def test_where_nothing_changed_there_is_nothing_to_draw(show: Open, story: pprofdiff.Diff):
    page = show(pprofdiff.diff(story.base, story.base).to_html())
    page.click("[data-mode=delta]")
    settle(page)
    assert page.evaluate("texts")[0][0] == "No stack changed."
    assert page.evaluate("boxes") == []
    empty = show(pprofdiff.load(profile([])).to_html())
    assert empty.evaluate("texts")[0][0] == "There are no stacks here."


def test_a_normalized_page(show: Open):
    d = pprofdiff.diff(*pair("go-heap-ops")).normalize(1 / 3)
    page = show(d.to_html(min_width=0))
    assert "0.3333333333333333" in page.inner_text("#notes")
    across, drawn = painted(page)
    kind = d.default_sample_type
    assert kind
    at = {(depth, round(x), round(w)) for depth, x, w in drawn}
    for depth, left, width, *_ in boxes_of(tree(d, kind), "max", across):
        if width >= 1:
            assert any((depth, round(left) + i, round(width) + j) in at for i in (-1, 0, 1) for j in (-1, 0, 1))


def history_of(folder: Path, n: int = 24) -> pprofdiff.Series:
    """Builds in which work steps up at 10, and <b>parse</b> costs more from 16 to 20."""
    for i in range(n):
        costs = {f"f{k}": 300 + (i * 7 + k * 11) % 23 for k in range(12)}
        costs["work"] = (1000 if i >= 10 else 500) + (i * 5) % 17
        costs["<b>parse</b>"] = (800 if 16 <= i < 20 else 400) + (i * 3) % 13
        (folder / f"{i:02}.pb").write_bytes(profile([(["main", name], cost, {}) for name, cost in costs.items()]))
    return pprofdiff.series(str(folder / "*.pb"))


def test_courses_of_a_series(show: Open, tmp_path: Path):
    s = history_of(tmp_path)
    page = show(s.to_html())
    rows = page.locator("#courses tbody tr")
    shifts = s.shifts().to_dicts()
    assert [rows.nth(i).locator("button").inner_text() for i in range(rows.count())] == [r["name"] for r in shifts]
    assert [rows.nth(i).locator("td").nth(8).inner_text() for i in range(2)] == ["step", "passed, gone at 20 #20"]
    # The largest change is shown first, with the graphs of the builds around it.
    assert rows.nth(0).get_attribute("aria-selected") == "true"
    assert page.locator("#type").evaluate("e => e.selectedOptions[0].textContent") == "10 #10, 1 change"
    assert page.locator("#sides .path").all_inner_texts()[0].endswith("09.pb")
    # Another frame brings those of its own change, finds it there, and is in the address.
    rows.nth(1).locator("button").click()
    settle(page)
    assert page.locator("#type").evaluate("e => e.selectedOptions[0].textContent") == "16 #16, 1 change"
    assert page.locator("#details .name").inner_text() == "<b>parse</b>"
    assert page.locator("#sides .path").all_inner_texts()[1].startswith("mean of 4 runs")
    assert "course=1" in page.evaluate("location.hash")
    before, after = (shifts[1][side] for side in ("before", "after"))
    course = page.locator("#course")
    assert f"{before}B → {after}B" in course.inner_text()
    # The pointer says what a build costs.
    box = course.locator("svg").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] - 9, box["y"] + 40)
    last = next(row["flat"] for row in s.values() if row["build"] == "23" and row["name"] == "<b>parse</b>")
    assert f"23 #23: {last}B" in course.inner_text()
    # The list of changes brings the course of its change.
    page.locator("#type").select_option(label="10 #10, 1 change")
    settle(page)
    assert page.locator("#courses tr[aria-selected=true] button").inner_text() == "work"
    rows.nth(1).locator("button").click()
    settle(page)
    again = show(s.to_html(), page.evaluate("location.hash.slice(1)"))
    assert again.locator("#courses tr[aria-selected=true] button").inner_text() == "<b>parse</b>"


def test_courses_without_a_change(show: Open, tmp_path: Path):
    for i in range(8):
        (tmp_path / f"{i}.pb").write_bytes(profile([(["main", f"f{k}"], 900 + (i * 7 + k) % 5, {}) for k in range(9)]))
    page = show(pprofdiff.series(str(tmp_path / "*.pb")).to_html())
    assert "No frame costs something else" in page.locator("#courses").inner_text()
    assert (
        page.locator("#type").evaluate("e => e.selectedOptions[0].textContent") == "0 #0 → 7 #7, first and last builds"
    )
    # Of few builds, and against a base, the largest steps.
    few = pprofdiff.series([tmp_path / f"{i}.pb" for i in range(3)], base=tmp_path / "7.pb")
    page = show(few.to_html())
    assert page.locator("#courses tbody tr").count() == len(few.movers())
    assert page.locator("#sides .path").all_inner_texts()[0].endswith("7.pb")
