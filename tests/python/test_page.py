"""Tests of the page in a real browser: the drawing of the flame graph, and all interactions."""

import bisect
import json
import os
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import pprofdiff
from conftest import PAIRS, pair, profile
from page_model import (
    EXAMPLE,
    PHONE,
    ROW,
    SCREEN,
    WIDTHS,
    Open,
    box,
    boxes_of,
    data_of,
    painted,
    settle,
    stacks_in,
    tree,
    types_of,
)


@pytest.mark.parametrize("name", PAIRS)
def test_every_box_is_as_wide_as_its_stacks(name: str, show: Open):
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
                page.dispatch_event(f"[data-mode={mode}]", "click")
                settle(page)
                across, drawn = painted(page)
                expected = list(boxes_of(root, mode, across))
                if root.width[mode] == 0:
                    continue
                visible = sorted((depth, left, width) for depth, left, width, *_ in expected if width >= 0.5)
                painted_boxes = {(depth, round(left, 2), round(width, 2)) for depth, left, width in drawn}
                near = (0, 0.01, -0.01)
                for depth, left, width in visible:
                    is_painted = any(
                        (depth, round(left + a, 2), round(width + b, 2)) in painted_boxes for a in near for b in near
                    )
                    assert is_painted, (kind, mode, inverted, depth, left, width)
                # Nothing else is painted. Adjacent thin boxes are joined to strips with the same total width.
                sums: dict[int, float] = {}
                for depth, _, width in drawn:
                    sums[depth] = sums.get(depth, 0) + width
                rows: dict[int, list[float]] = {depth: [] for depth in range(max(sums) + 1)}
                for depth, _, width, *_ in expected:
                    rows.setdefault(depth, []).append(width)
                for depth in range(max(sums) + 1):
                    room = 0.5 + 0.2 * len(rows[depth])
                    assert sums.get(depth, 0) == pytest.approx(sum(rows[depth]), abs=room), (kind, mode, depth)
                # Each box is inside its parent.
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


def test_a_box_shows_both_values(show: Open, story: pprofdiff.Diff):
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
        # Three significant digits. Zeros after the second decimal are removed, as are the zeros of integers.
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
        # Both sides use the unit of the larger value. The delta does too, unless it is small in that unit.
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
        tip = page.evaluate("document.getElementById('tip').innerText").split("\n")
        assert tip[0] == name
        assert tip[1].startswith(change(node.base, node.new)), tip
        mark = "appeared" if node.base == 0 else "vanished" if node.new == 0 else ""
        assert tip[1].endswith(mark or " of total")
        if any(node.flat):
            assert tip[2] == f"itself: {change(*node.flat)}"
            ends += 1
    assert ends > 100


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


def test_the_table_equals_the_top_view(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html())
    rows = page.locator("#table tbody tr")
    names = story.top(100, sort="cum")["name"]
    # Rows with equal cum are sorted by flat, then by name, in both.
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


def test_clicking_a_row_highlights_its_function_in_the_graph(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html())
    page.get_by_role("button", name="logmill/headers.tableInsensitive").click()
    settle(page)
    assert page.inner_text("#details .name") == "logmill/headers.tableInsensitive"
    # Only the function's boxes are not dimmed.
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
    # If the box is thin, the graph zooms in.
    page.fill("#filter", "^runtime.asyncPreempt$")
    page.locator("#table tbody tr").first.click()
    settle(page)
    assert page.is_enabled("#back")
    assert "runtime.asyncPreempt" in " ".join(t[0] for t in page.evaluate("texts"))


def test_search_highlights_matches_and_sums_their_stacks(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html())
    page.keyboard.press("/")
    page.keyboard.type(r"names\.|cleanName")
    settle(page)
    # A stack counts once, even if several of its frames match.
    hit = [r for r in story.stacks() if any(re.search(r"names\.|cleanName", f) for f in r["frames"])]
    base, new = (sum(r[side] for r in hit) / 1e9 for side in ("base", "new"))
    total = page.inner_text("#matched")
    assert total.startswith(f"5 functions: {base:.2f}s → {new:.2f}s, +{new - base:.2f}s"), total
    bright = [b for b in page.evaluate("boxes") if b[4] == 1]
    assert 0 < len(bright) < len(page.evaluate("boxes")) / 4
    page.fill("#search", "NAMES")
    assert page.inner_text("#matched").startswith("0 functions")
    page.fill("#search", "(")
    assert page.inner_text("#matched") == "invalid regular expression"
    page.keyboard.press("Escape")
    settle(page)
    assert page.inner_text("#matched") == ""
    assert all(b[4] == 1 for b in page.evaluate("boxes") if b[3] == ROW - 1)


def test_zoom_can_be_undone_and_is_stored_in_the_fragment(show: Open, story: pprofdiff.Diff):
    html = story.to_html(min_width=0)
    page = show(html)
    before = painted(page)
    page.mouse.click(*box(page, story, "logmill/names.Same"))
    settle(page)
    across, drawn = painted(page)
    # The box and its ancestors take the whole width.
    assert [(0, across)] * 7 == [(x, w) for depth, x, w in sorted(drawn) if depth <= 6]
    zoomed, address = drawn, page.url
    assert "zoom=" in address
    page.click("#back")
    settle(page)
    assert painted(page) == before
    # Back also undoes other choices. Consecutive typing is one step, and fast input is not lost.
    page.click("[data-mode=base]")
    page.fill("#search", "names")
    page.locator("#search").press_sequentially("x")
    page.locator("#table tbody tr").nth(3).click()
    chosen = page.inner_text(".edge-self .name")
    page.focus("#canvas")
    page.keyboard.press("Backspace")
    assert page.input_value("#search") == "namesx"
    page.keyboard.press("Backspace")
    assert page.input_value("#search") == ""
    page.keyboard.press("Backspace")
    page.keyboard.press("i")
    assert page.get_attribute("[data-mode=max]", "aria-pressed") == "true"
    page.wait_for_function("history.state.steps === 1 && location.hash.includes('inverted=1')")
    page.go_back()
    page.wait_for_function("document.getElementById('inverted').ariaPressed === 'false'")
    assert painted(page) == before
    assert chosen
    # The fragment restores the view in another window.
    other = show(html, address.partition("#")[2] + "&width=base&theme=dark")
    assert other.get_attribute("[data-mode=base]", "aria-pressed") == "true"
    assert other.get_attribute("html", "data-theme") == "dark"
    other.click("[data-mode=max]")
    settle(other)
    assert painted(other)[1] == zoomed
    # An invalid fragment gives the default view for its invalid parts.
    wrong = show(html, "zoom=99999999&type=none&width=wide&sort=x&fn=-7&theme=%3Cscript%3E&nothing")
    assert painted(wrong) == before


def test_the_keyboard_moves_zooms_and_switches(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html())
    page.focus("#canvas")
    for _ in range(6):
        page.keyboard.press("ArrowDown")
    # The widest stack, six frames from the root.
    node, name = tree(story, "cpu"), ""
    for _ in range(6):
        name, node = min(node.children.items(), key=lambda c: (-c[1].width["max"], c[0]))
    assert page.inner_text("#details .name") == name
    page.keyboard.press("Enter")
    settle(page)
    assert "zoom=" in page.url
    page.keyboard.press("ArrowUp")
    assert page.inner_text("#details .name") == "logmill/headers.tableInsensitive"
    # Consecutive keyboard moves are one step for Back, and the zoom before them is another.
    page.keyboard.press("Backspace")
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
    # Everything clickable can be reached by keyboard: table rows contain buttons.
    page.locator("#table tbody button").first.focus()
    page.keyboard.press("Enter")
    assert page.inner_text("#details .name") == "logmill/names.compare"


def test_a_stack_can_be_copied(show: Open, story: pprofdiff.Diff):
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


def test_switching_the_sample_type_keeps_the_selected_stack(show: Open):
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


def test_light_and_dark_schemes_can_be_switched(show: Open, story: pprofdiff.Diff):
    html = story.to_html()
    for scheme, least, limit in (("light", 200, 256), ("dark", 0, 60)):
        page = show(html, color_scheme=scheme)
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert all(least <= int(v) < limit for v in re.findall(r"\d+", colour)), colour
        page.keyboard.press("t")
        page.keyboard.press("t")
        assert page.get_attribute("html", "data-theme") == "light"


def test_resizing_the_window_redraws_the_graph(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html())
    for width in (700, 1700):
        page.set_viewport_size({"width": width, "height": 800})
        settle(page)
        settle(page)
        across, drawn = painted(page)
        assert width - 100 < across < width
        assert max(w for _, _, w in drawn) == across


def test_pruned_boxes_are_merged_and_reported(show: Open, story: pprofdiff.Diff):
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
    match = re.match(r"(\d+) of 121 stacks \((\d+)% of the width\) are in \(pruned\) boxes", page.inner_text("#pruned"))
    assert match
    assert 0 < int(match[1]) < 121
    assert int(match[2]) == pytest.approx(100 * raw["pruned"]["share"], abs=1)
    assert any(t[0].startswith("(pruned)") for t in page.evaluate("texts"))
    assert len(data_of(story.to_html(max_frames=20))["types"][1]["down"]["what"]) < 60


def test_the_page_of_one_profile(show: Open, story: pprofdiff.Diff):
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


@pytest.mark.parametrize("name", PAIRS)
def test_no_page_of_the_corpus_logs_to_the_console(show: Open, name: str):
    """Visits all sample types, both directions, and the details of boxes and rows. `show` fails if the console has
    messages."""
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


def test_a_call_graph_is_shown_and_contains_no_script(show: Open, story: pprofdiff.Diff):
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


def test_source_lines_are_included_if_there_are_sources(show: Open, story: pprofdiff.Diff, tmp_path: Path):
    story_sources = EXAMPLE.parents[1] / "tests" / "producers" / "story"
    page = show(story.to_html(base_source=story_sources, new_source=[story_sources]))
    listed = page.locator("#source details")
    assert 5 < listed.count() <= 20
    routine = listed.filter(has_text="logmill/headers.tableInsensitive in")
    line = routine.locator("tr", has_text="names.Same(table[i].name, name)")
    assert line.locator("td").all_text_contents()[3:10] == ["0.33s", "1.78s", "+1.45s", "x5.39", "+76.32%", "64", "64"]
    font, below = (
        line.locator("td").last.evaluate(f"e => getComputedStyle(e).{css_property}")
        for css_property in ("fontFamily", "whiteSpace")
    )
    assert ("Mono" in font, below) == (True, "pre"), "the page's style does not reach it"
    assert page.inner_text("#source .note >> nth=0").startswith("cpu (nanoseconds): the ")
    assert story.to_html(source_path=tmp_path) == story.to_html(trim_path="") == story.to_html()
    assert show(story.to_html()).is_hidden("#source")
    story.save_html(tmp_path / "saved.html", source_path=story_sources)
    assert (tmp_path / "saved.html").read_text() == story.to_html(source_path=story_sources)


def test_source_lines_expand_to_their_instructions(show: Open, program: tuple[Path, bytes]):
    app, heap = program
    both = pprofdiff.diff(heap, heap, binary=[app])
    page = show(both.to_html(source_path=app.parent), "tab=source", viewport=PHONE)
    work = page.locator("#source details").filter(has_text="work in")
    line = work.locator("tr", has_text="return n * 7")
    code = work.locator("tr", has_text="push %rbp")
    assert (line.is_visible(), code.is_visible()) == (True, False)
    line.locator("input").click()
    assert code.is_visible()
    # The columns of instructions are aligned with those of the line.
    cells = [row.locator("td").nth(2).bounding_box() for row in (line, code)]
    assert cells[0]
    assert cells[1]
    assert abs(cells[0]["x"] - cells[1]["x"]) < 1
    page.set_viewport_size(SCREEN)
    page.click("#open")
    assert code.is_visible()
    line.locator("label").click()
    assert not code.is_visible()
    assert page.locator("#source details").filter(has_text="main in").locator("tr.code:visible").count() == 0


def test_the_readme_shows_the_page(chromium: Browser, tmp_path: Path):
    """To update the picture: UPDATE_GOLDENS=1 pytest tests/python/test_page.py -k readme."""
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
        page.keyboard.press("e")
        page.evaluate("scrollTo(0, 0)")
        page.mouse.move(0, 0)
        settle(page)
        picture.parent.mkdir(exist_ok=True)
        page.screenshot(path=picture)
        page.close()
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < 200_000
    assert "](docs/report.png)" in (picture.parents[1] / "README.md").read_text()


def test_save_and_the_command_write_the_same_page(tmp_path: Path, story: pprofdiff.Diff):
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
    assert len(html.encode()) - len(data[1].encode()) < 140_000


def test_a_page_without_changes_has_no_boxes(show: Open, story: pprofdiff.Diff):
    page = show(pprofdiff.diff(story.base, story.base).to_html())
    page.click("[data-mode=delta]")
    settle(page)
    assert page.evaluate("texts")[0][0] == "No stack changed."
    assert page.evaluate("boxes") == []
    empty = show(pprofdiff.load(profile([])).to_html())
    assert empty.evaluate("texts")[0][0] == "There are no stacks here."


def test_a_normalized_page_shows_scaled_values(show: Open):
    d = pprofdiff.diff(*pair("go-heap-ops")).normalize(1 / 3)
    page = show(d.to_html(min_width=0))
    assert "0.3333333333333333" in page.inner_text("#notes")
    across, drawn = painted(page)
    kind = d.default_sample_type
    assert kind
    painted_boxes = {(depth, round(x), round(w)) for depth, x, w in drawn}
    for depth, left, width, *_ in boxes_of(tree(d, kind), "max", across):
        if width >= 1:
            assert any(
                (depth, round(left) + i, round(width) + j) in painted_boxes for i in (-1, 0, 1) for j in (-1, 0, 1)
            )
