"""Tests of the page of a ranking, which shows the summary of many pairs and expands each pair. It has no script."""

import pytest
from playwright.sync_api import expect

import pprofdiff
from conftest import pair
from page_model import PHONE, SCREEN, Open
from test_page_access import violations

STRANGE = '<img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def ranking() -> pprofdiff.Ranking:
    story = pair("story-cpu")
    pairs = [
        pprofdiff.Pair(*story, "api"),
        pprofdiff.Pair(*story, STRANGE),
        pprofdiff.Pair(*story, "shop"),
        pprofdiff.Pair(story[0], story[0], "idle"),
        pprofdiff.Pair("none", story[0], "gone"),
    ]
    return pprofdiff.batch(pairs).ranking()


def test_pairs_expand_to_their_explanation(show: Open, ranking: pprofdiff.Ranking):
    page = show(ranking.to_html(), viewport=SCREEN)
    rows = ranking.pairs.to_dicts()
    assert page.title().startswith(f"{ranking.changed} of {len(rows)} pairs changed")
    assert ranking.changed == 3
    shown = page.locator("section[aria-labelledby=pairs] :is(summary, .pair) > .of").all_inner_texts()
    assert shown == [row["pair"] for row in rows]
    assert page.locator("section[aria-labelledby=pairs] > details").count() == ranking.changed
    # The explanation of a pair equals that of the pair alone.
    page.click("summary:has-text('api') >> nth=-1")
    opened = page.locator("[open] .account").first
    alone = pprofdiff.diff(*pair("story-cpu")).explain()
    assert alone.causes.to_dicts()[0]["function"] in opened.inner_text()
    assert "Could not be compared" in page.inner_text("main")
    assert "none" in page.inner_text("section:last-child li")


def test_a_shared_cause_links_to_its_pairs(show: Open, ranking: pprofdiff.Ranking):
    page = show(ranking.to_html(), viewport=SCREEN)
    (first, *_) = ranking.clusters.to_dicts()
    summary = page.locator("section[aria-labelledby=shared] summary").first
    assert first["function"] in summary.inner_text()
    assert "3 pairs" in summary.inner_text()
    summary.click()
    page.click("section[aria-labelledby=shared] a:has-text('shop')")
    expect(page.locator("details:has(summary:has-text('shop')) .account >> nth=-1")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(show: Open, ranking: pprofdiff.Ranking, scheme: str):
    for viewport in (SCREEN, PHONE):
        page = show(ranking.to_html().replace("<details>", "<details open>"), viewport=viewport, color_scheme=scheme)
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_on_a_phone_each_sentence_has_the_width_of_its_row(show: Open, ranking: pprofdiff.Ranking):
    page = show(ranking.to_html(), viewport=PHONE)
    rows = "section[aria-labelledby=pairs] :is(summary, .pair)"
    assert page.locator(f"{rows} > :last-child").count() == len(ranking.pairs)
    widths = page.evaluate(
        f"[...document.querySelectorAll('{rows}')].map(row => [row.clientWidth, row.lastElementChild.clientWidth])"
    )
    assert all(text > 0.8 * row for row, text in widths), widths
