"""Tests of zooming and moving on the page in a real browser: wheel, pinch, drag, keys and the map."""

import pytest
from playwright.sync_api import Page

import pprofdiff
from conftest import profile
from page_model import PHONE, ROW, SCREEN, Open, boxes_of, painted, settle, tree, until


def span(page: Page) -> tuple[float, float]:
    """Returns the visible part of the graph, which is in the address after a short delay."""
    page.evaluate("() => new Promise(done => setTimeout(done, 70))")
    text = page.evaluate("new URLSearchParams(location.hash.slice(1)).get('span') ?? '0_1'")
    begin, _, end = text.partition("_")
    return float(begin), float(end)


def wheel(page: Page, by: float) -> None:
    page.keyboard.down("Control")
    page.mouse.wheel(0, by)
    page.keyboard.up("Control")
    settle(page)


def pinch(page: Page, x: float, y: float, factor: float) -> None:
    """Emulates two fingers that start 80 pixels apart."""
    fingers = page.context.new_cdp_session(page)

    def touch(kind: str, apart: float) -> None:
        points = [{"x": x + side * apart, "y": y, "id": i} for i, side in enumerate((-0.5, 0.5))]
        event = {"type": kind, "touchPoints": [] if kind == "touchEnd" else points}
        fingers.send("Input.dispatchTouchEvent", event)

    touch("touchStart", 80)
    touch("touchMove", 80 * factor)
    touch("touchEnd", 0)
    settle(page)


def agrees(page: Page, d: pprofdiff.Diff) -> None:
    """Checks that each visible box is painted at its position."""
    begin, end = span(page)
    across, drawn = painted(page)
    painted_boxes = {(depth, round(x), round(w)) for depth, x, w in drawn}
    seen = 0
    for depth, left, width, *_ in boxes_of(tree(d, "cpu"), "max", across):
        x, x2 = ((edge / across - begin) / (end - begin) * across for edge in (left, left + width))
        x, x2 = max(0, x), min(across, x2)
        if x2 - x >= 2:
            near = [(depth, round(x) + i, round(x2 - x) + j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
            assert painted_boxes.intersection(near), (depth, x, x2 - x)
            seen += 1
    assert seen > 20


def test_the_flame_graph_zooms_and_moves(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html(min_width=0), viewport=SCREEN)
    assert page.is_hidden("#map")
    spot = page.locator("#canvas").bounding_box()
    assert spot
    across, before = painted(page)
    x, y = spot["x"] + 300, spot["y"] + 4 * ROW + 10
    page.mouse.move(x, y)
    # A wheel alone scrolls the page.
    page.mouse.wheel(0, 90)
    until(page, "scrollY === 90")
    page.evaluate("scrollTo(0, 0)")
    settle(page)
    assert span(page) == (0, 1)
    # With Ctrl, the wheel zooms around the pointer.
    wheel(page, -200)
    begin, end = span(page)
    assert 0.2 < end - begin < 0.5
    assert begin + (end - begin) * 300 / across == pytest.approx(300 / across, abs=1e-6)
    assert page.evaluate("[scrollY, devicePixelRatio, visualViewport.scale]") == [0, 1, 1]
    agrees(page, story)
    # A drag moves the graph, and does not count as a click.
    page.mouse.down()
    page.mouse.move(x - 60, y, steps=3)
    page.mouse.move(x - 100, y)
    page.mouse.up()
    moved = span(page)
    assert moved[0] - begin == pytest.approx(100 / across * (end - begin), abs=1e-6)
    assert page.inner_text("#details .name") == "all"
    agrees(page, story)
    # An address restores the view. Zoom and move are one step for Back.
    again = show(story.to_html(min_width=0), page.url.partition("#")[2], viewport=SCREEN)
    assert painted(again) == painted(page)
    page.keyboard.press("Backspace")
    settle(page)
    assert painted(page) == (across, before)
    assert page.is_disabled("#back")
    # A click still zooms to the whole box.
    wheel(page, -200)
    page.mouse.click(x, y)
    settle(page)
    assert span(page) == (0, 1)
    assert "zoom=" in page.url
    # Zooming out beyond a box shows its surroundings.
    for _ in range(8):
        wheel(page, 100)
    assert painted(page)[1] == before


def test_the_keyboard_zooms_and_moves(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html(min_width=0), viewport=SCREEN)
    page.keyboard.press("+")
    assert span(page) == (pytest.approx(1 / 6), pytest.approx(5 / 6))
    page.focus("#canvas")
    page.keyboard.press("Shift+ArrowRight")
    assert span(page) == (pytest.approx(0.3), pytest.approx(0.3 + 2 / 3))
    agrees(page, story)
    page.keyboard.press("-")
    assert span(page) == (0, 1)
    # Keys zoom around the selection. Moving it out of sight scrolls the graph.
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "+", "+"):
        page.keyboard.press(key)
    begin, end = span(page)
    node = max((b for b in boxes_of(tree(story, "cpu"), "max", 1) if b[0] == 4), key=lambda b: b[2])
    middle = node[1] + node[2] / 2
    assert (middle - begin) / (end - begin) == pytest.approx(middle)
    for _ in range(4):
        page.keyboard.press("+")
    page.keyboard.press("ArrowRight")
    assert span(page) == (0, 1)
    page.keyboard.press("+")
    page.keyboard.press("0")
    assert span(page) == (0, 1)
    assert page.is_disabled("#reset")


def test_the_map_shows_the_visible_part(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html(min_width=0), "span=0.25_0.5", viewport=SCREEN)

    def frame() -> tuple[float, float]:
        """Returns the part of the map inside its frame."""
        inside, outside = (page.locator(where).bounding_box() for where in ("#map .here", "#map canvas"))
        assert inside
        assert outside
        return (inside["x"] - outside["x"]) / outside["width"], inside["width"] / outside["width"]

    assert frame() == (pytest.approx(0.25, abs=0.01), pytest.approx(0.25, abs=0.01))
    # The map starts with the root, which is as wide as the map.
    painted = page.evaluate("""() => {
        const map = document.querySelector('#map canvas'), { width } = map;
        const row = map.getContext('2d').getImageData(0, 0, width, 1).data;
        return row.filter((part, i) => i % 4 === 3 && part > 0).length / width;
    }""")
    assert painted > 0.99
    page.locator("#map").scroll_into_view_if_needed()
    spot = page.locator("#map").bounding_box()
    assert spot
    page.mouse.move(spot["x"] + 0.6 * spot["width"], spot["y"] + 5)
    page.mouse.down()
    assert span(page) == (pytest.approx(0.475, abs=0.005), pytest.approx(0.725, abs=0.005))
    page.mouse.move(spot["x"] + spot["width"], spot["y"] + 5)
    page.mouse.up()
    assert span(page) == (0.75, 1)
    settle(page)
    assert frame() == (pytest.approx(0.75, abs=0.01), pytest.approx(0.25, abs=0.01))
    agrees(page, story)
    # After zooming to a box, the map shows the position of the box.
    page.keyboard.press("0")
    page.focus("#canvas")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    settle(page)
    node = max((b for b in boxes_of(tree(story, "cpu"), "max", 1) if b[0] == 2), key=lambda b: b[2])
    assert frame() == (pytest.approx(node[1], abs=0.01), pytest.approx(node[2], abs=0.01))
    # For a stack deeper than the window, the map is visible from the start and scrolls with it.
    deep = profile([([f"f{i}" for i in range(80)], 10, {})])
    page = show(pprofdiff.load(deep).to_html(), viewport=SCREEN)
    here, whole = (page.locator(where).bounding_box() for where in ("#map .here", "#map canvas"))
    assert here
    assert whole
    assert here["height"] < 0.5 * whole["height"]
    page.locator("#map").click(position={"x": 50, "y": whole["height"] - 3})
    settle(page)
    assert page.evaluate("(v => v.scrollTop + v.clientHeight >= v.scrollHeight - 1)(document.getElementById('view'))")


def test_two_fingers_zoom(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html(min_width=0), viewport=PHONE, has_touch=True, is_mobile=True)
    page.locator("#canvas").scroll_into_view_if_needed()
    spot = page.locator("#canvas").bounding_box()
    assert spot
    pinch(page, spot["x"] + spot["width"] / 2, spot["y"] + 60, 3)
    begin, end = span(page)
    assert end - begin == pytest.approx(1 / 3, rel=0.05)
    assert begin + (end - begin) / 2 == pytest.approx(0.5, abs=0.05)
    assert page.evaluate("visualViewport.scale") == 1
    agrees(page, story)
    page.click("[data-tab=callgraph]")
    before = page.evaluate("document.querySelector('#callgraph svg').getBoundingClientRect().width")
    page.locator("#callgraph svg").scroll_into_view_if_needed()
    spot = page.locator("#callgraph .scroll").bounding_box()
    assert spot
    pinch(page, spot["x"] + 150, spot["y"] + 60, 2)
    after = page.evaluate("document.querySelector('#callgraph svg').getBoundingClientRect().width")
    assert after == pytest.approx(2 * before, rel=0.05)


def test_the_call_graph_zooms_and_moves(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html(), viewport=SCREEN)
    scroll = page.locator("#callgraph .scroll")
    scroll.scroll_into_view_if_needed()
    place = """() => {
        const s = document.querySelector("#callgraph .scroll"), r = s.firstElementChild.getBoundingClientRect();
        return [r.left, r.top, r.width, s.scrollLeft, s.scrollTop]; }"""
    spot = scroll.bounding_box()
    assert spot
    x, y = spot["x"] + 400, spot["y"] + 150
    page.mouse.move(x, y)
    left, top, width, *_ = page.evaluate(place)
    wheel(page, -60)
    left2, top2, width2, *_ = page.evaluate(place)
    assert width2 > 1.2 * width
    assert (x - left2) / width2 == pytest.approx((x - left) / width, abs=0.002)
    assert (y - top2) / width2 == pytest.approx((y - top) / width, abs=0.002)
    # A drag moves the graph, and selects nothing.
    *_, before, above = page.evaluate(place)
    page.mouse.down()
    page.mouse.move(x + 70, y + 40, steps=3)
    page.mouse.up()
    assert page.evaluate(place)[3:] == [pytest.approx(before - 70, abs=2), pytest.approx(above - 40, abs=2)]
    assert page.locator("#callgraph .chosen").count() == 0
    # Buttons and keys do the same, and the address contains the view.
    page.click("#smaller")
    scroll.focus()
    page.keyboard.press("-")
    page.keyboard.press("-")
    smaller = page.evaluate(place)[2]
    assert smaller < width
    assert span(page) == (0, 1), "the keys are the flame graph's elsewhere"
    assert "scale=" in page.url
    assert show(story.to_html(), page.url.partition("#")[2], viewport=SCREEN).evaluate(place)[2] == smaller
    page.click("#fit")
    assert page.evaluate(place)[2] <= spot["width"]
    assert "scale=" not in page.url
