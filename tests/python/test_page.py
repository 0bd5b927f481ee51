"""The page in a real browser: what it draws, what can be done with it, and that names stay names.

What the page must show is worked out here from the stacks of both sides, without the engine's flame graph: a tree of
dicts. What it does show is what Chromium was told to paint: the calls on its canvas are noted as they are made.
"""

import base64
import bisect
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Browser, Frame, Page, sync_playwright

import pprofdiff
from conftest import PAIRS, pair, profile

EXAMPLE = Path(__file__).parents[2] / "examples" / "story.ipynb"
ROW = 20
WIDTHS = ("max", "base", "new", "delta")

# Notes what is painted since the canvas was last cleared.
NOTE = """
window.boxes = []; window.texts = [];
const paint = CanvasRenderingContext2D.prototype, {clearRect, fillRect, fillText} = paint;
paint.clearRect = function (...a) { if (this.canvas.id) { boxes = []; texts = []; } return clearRect.apply(this, a); };
paint.fillRect = function (...a) {
  if (this.canvas.id) boxes.push([...a, this.globalAlpha]);
  return fillRect.apply(this, a);
};
paint.fillText = function (...a) { if (this.canvas.id) texts.push(a); return fillText.apply(this, a); };
"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium")
    assert path, "these tests drive Debian's Chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


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
    bases = table.column("base") if two_sided else [0] * len(table)
    for frames, base, new in zip(
        table.column("frames"), bases, table.column("new" if two_sided else "weight"), strict=True
    ):
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

    def text(v: int) -> str:
        return f"{v / 1e9:.2f}".removesuffix(".00") + "s" if v else "0"

    def change(base: int, new: int) -> str:
        sign = "+" if new > base else ""
        percent = f"{sign}{100 * (new - base) / total:.2f}%" if new != base else "0%"
        return f"{text(base)} → {text(new)}, {sign}{text(new - base)} ({percent})"

    ends = 0
    for depth, left, width, name, node in boxes_of(tree(story, "cpu"), "max", across):
        if width < 2:
            continue
        page.mouse.move(spot["x"] + left + width / 2, spot["y"] + depth * ROW + ROW / 2)
        tip = page.inner_text("#tip").split("\n")
        assert tip[0] == name
        assert tip[1].startswith(change(node.base, node.new)), tip
        mark = "appeared" if node.base == 0 else "vanished" if node.new == 0 else ""
        assert tip[1].endswith(mark or ")")
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
    names = story.top(100, sort="cum").column("name")
    # Equal in the value, equal rows stand by name here and there.
    assert page.locator("#table tbody td:first-child").all_inner_texts() == names
    assert rows.nth(0).locator("td").all_inner_texts() == re.split(
        " ", "logmill/names.compare 0.17s 0.25s +0.08s +4.21% 0.20s 1.68s +1.48s +77.89% changed"
    )
    page.click("#more")
    assert rows.count() == 156
    page.click("th[data-key=flat_base] button")
    assert page.get_attribute("th[data-key=flat_base]", "aria-sort") == "descending"
    by_base = sorted(story.top(), key=lambda r: (-r["flat_base"], r["name"]))
    assert rows.nth(0).get_by_role("button").inner_text() == by_base[0]["name"]
    page.click("th[data-key=name] button")
    assert rows.nth(0).get_by_role("button").inner_text() == min(story.top().column("name"))
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
    assert len([b for b in page.evaluate("boxes") if b[4] == 1]) == 1
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
    assert line.locator("td").all_text_contents()[3:8] == ["0.33s", "1.78s", "+1.45s", "64", "64"]
    font, below = (
        line.locator("td").last.evaluate(f"e => getComputedStyle(e).{what}") for what in ("fontFamily", "whiteSpace")
    )
    assert ("Mono" in font, below) == (True, "pre"), "the page's style does not reach it"
    assert page.inner_text("#source .note >> nth=0").startswith("cpu (nanoseconds): the ")
    assert story.to_html(source_path=tmp_path) == story.to_html(trim_path="") == story.to_html()
    assert show(story.to_html()).is_hidden("#source")
    story.save_html(tmp_path / "saved.html", source_path=story_sources)
    assert (tmp_path / "saved.html").read_text() == story.to_html(source_path=story_sources)


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


def test_the_example_notebook(chromium: Browser, tmp_path: Path):
    example = nbformat.read(EXAMPLE, as_version=4)
    assert not any(cell.get("outputs") for cell in example.cells), "the notebook is kept without its output"
    # In a process of its own: this one has Playwright's event loop.
    execute = "import sys, nbformat; from nbclient import NotebookClient; n = nbformat.read(sys.argv[1], 4); "
    execute += "NotebookClient(n, timeout=120, resources={'metadata': {'path': sys.argv[2]}}).execute(); "
    execute += "nbformat.write(n, sys.argv[3])"
    work = tmp_path / "examples"
    work.mkdir()
    (tmp_path / "tests").symlink_to(EXAMPLE.parents[1] / "tests")
    done = subprocess.run(
        [sys.executable, "-c", execute, EXAMPLE, work, tmp_path / "done.ipynb"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    outputs = [o for c in nbformat.read(tmp_path / "done.ipynb", 4).cells for o in c.get("outputs", [])]
    assert [o.output_type for o in outputs] == ["execute_result"] * 8
    shown = "".join(o.data.get("text/html", "") for o in outputs)
    host = tmp_path / "shown.html"
    host.write_text(f"<!doctype html><meta charset=utf-8>{shown}")
    said: list[str] = []
    # A browser paints frames that are in sight.
    page = chromium.new_page(viewport={"width": 1200, "height": 6000})
    page.add_init_script(NOTE)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(host.as_uri())
    assert len(page.frames) == 3
    for frame in page.frames[1:]:
        frame.locator("#canvas").hover(position={"x": 50, "y": 5})
        settle(frame)
        assert len(frame.evaluate("boxes")) > 100
    assert said == []
    assert "logmill/names.canonical" in page.content()
    assert (work / "report.html").stat().st_size > 50_000
    page.close()


def test_the_readme_shows_the_page(chromium: Browser, tmp_path: Path):
    """To take the picture again: PPROFDIFF_BLESS=1 pytest tests/python/test_page.py -k readme."""
    picture = EXAMPLE.parents[1] / "docs" / "report.png"
    if os.environ.get("PPROFDIFF_BLESS"):
        for source, name in zip(pair("story-cpu"), ("main.pb.gz", "branch.pb.gz"), strict=True):
            shutil.copy(source, tmp_path / name)
        command = [sys.executable, "-m", "pprofdiff", "main.pb.gz", "branch.pb.gz", "--format", "html", "-o", "r.html"]
        subprocess.run(command, cwd=tmp_path, check=True)
        page = chromium.new_page(viewport={"width": 1380, "height": 960}, color_scheme="light")
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
