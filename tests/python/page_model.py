"""Shared helpers for the tests of the page.

The expected boxes are computed from the stacks of both sides, without the engine's flame graph. The actual boxes are
recorded from the drawing calls on the canvas in Chromium."""

import base64
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Frame, Page

import pprofdiff

EXAMPLE = Path(__file__).parents[2] / "docs" / "story.ipynb"
ROW = 20
WIDTHS = ("max", "base", "new", "delta")


# Records everything that is painted after the canvas was last cleared.
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


def settle(page: Page | Frame) -> None:
    """Waits until pending changes are painted."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def until(page: Page | Frame, expression: str) -> None:
    """Waits until an expression is true. Playwright's own wait is blocked by the page's content security policy."""
    for _ in range(200):
        if page.evaluate(expression):
            return
        settle(page)
    raise AssertionError(expression)


class Node:
    """An expected box: both values, the four widths, and its children."""

    def __init__(self) -> None:
        self.base = self.new = 0
        self.flat = (0, 0)
        self.width = dict.fromkeys(WIDTHS, 0)
        self.children: dict[str, Node] = {}
        self.order: tuple[bytes, str] = (b"", "")


def tree(d: pprofdiff.Views, sample_type: str, inverted: bool = False) -> Node:
    root = Node()
    # Sorted by name. Functions without a name come first, sorted by their binary.
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
    """Yields all boxes from the root down. Siblings are sorted by the larger side, widest first, then by name."""
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
    """Returns the width of the canvas, and its boxes as (depth, left, width)."""
    # Transfers text, because Playwright takes half a second for ten thousand numbers.
    across, boxes = json.loads(page.evaluate("JSON.stringify([document.getElementById('canvas').clientWidth, boxes])"))
    return across, [(round(y / ROW), x, w) for x, y, w, h, _ in boxes if h == ROW - 1]


def types_of(d: pprofdiff.Views) -> list[str]:
    return [kind for kind, _ in d.sample_types]


def numbers(text: str, signed: bool) -> list[int]:
    """Decodes a column of the page's data."""
    out, value, shift = [], 0, 0
    for byte in base64.b64decode(text):
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            out.append((value >> 1) ^ -(value & 1) if signed else value)
            value, shift = 0, 0
    return out


def data_of(html: str) -> dict[str, Any]:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    assert match
    return json.loads(match[1])


def stacks_in(data: dict[str, Any], raw: dict[str, Any]) -> dict[tuple[str, ...], tuple[int, int]]:
    """Returns the value of each stack in a tree of the page, by its path."""
    sums: dict[tuple[str, ...], list[int]] = {}
    path: list[tuple[str, int, int]] = []
    columns = (numbers(raw[c], c in ("base", "new")) for c in ("what", "depth", "base", "new"))
    for node_id, depth, base, new in zip(*columns, strict=True):
        del path[depth:]
        kind = node_id // 4
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


def box(page: Page, d: pprofdiff.Diff, name: str) -> tuple[float, float]:
    """Returns the position of a function's first box on the unzoomed page."""
    across, _ = painted(page)
    spot = page.locator("#canvas").bounding_box()
    assert spot
    depth, left, width, *_ = next(b for b in boxes_of(tree(d, "cpu"), "max", across) if b[3] == name)
    return spot["x"] + left + width / 2, spot["y"] + depth * ROW + ROW / 2


def bright(page: Page | Frame) -> set[tuple[int, int]]:
    """Returns depth and left edge of the boxes that are not faded."""
    return {(round(y / ROW), round(x)) for x, y, _, h, alpha in page.evaluate("boxes") if alpha == 1 and h == ROW - 1}


PHONE = {"width": 390, "height": 844}
SCREEN = {"width": 1440, "height": 900}


Colour = tuple[float, ...]


def colour(text: str) -> Colour:
    """Parses a colour in the forms that browsers return: `rgb(1, 2, 3)`, `rgba(...)`, `color(srgb 0.1 0.2 0.3)` or
    `#010203`."""
    if text.startswith("#"):
        return tuple(int(text[i : i + 2], 16) for i in (1, 3, 5))
    values = [float(v) for v in re.findall(r"[\d.]+", text)][:3]
    return tuple(255 * v for v in values) if text.startswith("color(srgb") else tuple(values)
