"""Tests that hostile names and sources stay text on the page in a real browser, and that the content security policy
blocks scripts."""

from pathlib import Path

from playwright.sync_api import Browser

import pprofdiff
from conftest import profile
from page_model import Open, settle

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
    assert "<img src=x" in page.inner_text("#names")


def test_hostile_names_of_causes_stay_text(show: Open):
    # Each sample is an event.
    ordinary = [(["main", f"f{i}"], 8, {}) for i in range(20)] * 40
    added = [([caller, name], 8, {}) for caller, name in zip(HOSTILE, list(HOSTILE)[1:], strict=False)] * 150
    added += [(["main", MARKUP], 8, {})] * 400
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


def test_the_content_security_policy_blocks_injected_scripts(chromium: Browser, tmp_path: Path, story: pprofdiff.Diff):
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
