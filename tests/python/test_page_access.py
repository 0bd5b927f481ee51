"""Tests of the page's accessibility: axe's rules, contrast, focus, reduced motion."""

from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
from playwright.sync_api import Page

import pprofdiff
from conftest import pair
from page_model import EXAMPLE, PHONE, SCREEN, Open, settle

AXE = next(Path(axe_playwright_python.__file__).parent.rglob("axe.min.js")).read_text()
SOURCES = EXAMPLE.parents[1] / "tests" / "producers" / "story"


def violations(page: Page, only: str = "") -> list[tuple[str, Any]]:
    """Returns the violated axe rules (including a contrast of 4.5) with their places, or checks a single rule. Only
    three of the hundreds of similar table rows are checked."""
    settle(page)
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    options = {"resultTypes": ["violations"]} | ({"runOnly": [only]} if only else {})
    result = page.evaluate("options => axe.run({exclude: [['tbody tr:nth-child(n+4)']]}, options)", options)
    return [(v["id"], [node["target"] for node in v["nodes"]][:3]) for v in result["violations"]]


@pytest.mark.parametrize(("scheme", "only"), [("light", ""), ("dark", "color-contrast")], ids=["light", "dark"])
def test_axe_finds_nothing(show: Open, story: pprofdiff.Diff, scheme: str, only: str):
    """The dark scheme differs only in colours, so only contrast is checked there.

    Without reduced motion, axe could see a button in a transition between two backgrounds."""
    html = story.to_html(source_path=SOURCES)
    look = {"color_scheme": scheme, "reduced_motion": "reduce"}
    page = show(html, "cause=0&fn=5", viewport=SCREEN, **look)
    for opener in ("#about summary", "#open", "#choice summary"):
        page.click(opener)
    assert violations(page, only) == []
    page.click("#choice summary")
    page.fill("#search", "names")
    assert violations(page, only) == []
    page = show(html, "fn=5&span=0.2_0.6", viewport=PHONE, **look)
    for tab in page.locator("#tabs button").all():
        tab.click()
        assert violations(page, only) == [], tab.inner_text()
    for other in (pprofdiff.diff(*pair("go-goroutine")).to_html(), story.new[0].to_html()):
        assert violations(show(other, viewport=SCREEN, **look), only) == []


def test_axe_detects_planted_violations(show: Open, story: pprofdiff.Diff):
    """A pale text and a button without a name must be found."""
    page = show(story.to_html(), viewport=SCREEN)
    page.evaluate("""() => {
        const pale = document.getElementById('rows'), button = document.createElement('button');
        pale.attributeStyleMap.set('color', '#bbbbbb');
        document.querySelector('#functions .bar').append(button);
    }""")
    assert {"color-contrast", "button-name"} <= {rule for rule, _ in violations(page)}


def test_every_control_shows_its_focus(show: Open, story: pprofdiff.Diff):
    page = show(story.to_html(source_path=SOURCES), viewport=SCREEN)
    page.keyboard.press("Tab")
    seen = []
    for _ in range(40):
        element, width, style = page.evaluate(
            "() => { const e = document.activeElement, s = getComputedStyle(e);"
            " return [e.id || e.className || e.tagName, parseFloat(s.outlineWidth), s.outlineStyle]; }"
        )
        if element == "BODY":
            break
        seen.append(element)
        assert width >= 2, element
        assert style != "none", element
        page.keyboard.press("Tab")
    assert {"type", "theme", "help", "search", "canvas", "inverted", "fold", "filter", "csv"} <= set(seen)


def test_reduced_motion_disables_transitions(show: Open, story: pprofdiff.Diff):
    moving = """() => [...document.querySelectorAll('*')].filter(e => {
        const s = getComputedStyle(e);
        return s.transitionDuration !== '0s' || s.animationName !== 'none' || s.scrollBehavior === 'smooth';
    }).length"""
    assert show(story.to_html(), reduced_motion="reduce").evaluate(moving) == 0
    assert show(story.to_html(), reduced_motion="no-preference").evaluate(moving) > 0
