"""Tests of the page in a notebook's frame, in a real browser: its permissions, and its messages to the notebook."""

import json
from pathlib import Path

from playwright.sync_api import Browser

import pprofdiff
from page_model import EXAMPLE, NOTE, ROW, bright, settle


def test_the_page_works_in_a_notebooks_frame(chromium: Browser, tmp_path: Path, story: pprofdiff.Diff):
    graph = story.flamegraph()
    host = tmp_path / "notebook.html"
    host.write_text(f"<!doctype html><title>host</title><script>secret = 1</script>{graph._repr_html_()}")
    messages: list[str] = []
    page = chromium.new_page()
    page.add_init_script(NOTE)
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda r: messages.append(r.url) if r.url != host.as_uri() else None)
    page.goto(host.as_uri())
    assert page.get_attribute("iframe", "sandbox") == "allow-scripts"
    frame = page.frames[1]
    # Repaints the frame, because its first paint may precede the recording.
    frame.locator("#canvas").hover(position={"x": 50, "y": 5})
    settle(frame)
    assert frame.locator("#functions").is_hidden()
    assert frame.locator("#type option").count() == 1
    assert len(frame.evaluate("boxes")) > 100
    assert frame.evaluate("document.documentElement.scrollHeight <= innerHeight"), "not all of it is in sight"
    frame.locator("#canvas").click(position={"x": 50, "y": 6 * ROW + 5})
    assert frame.inner_text("#details .name") == "logmill/names.Same"
    frame.click("#copy")
    frame.get_by_text("Copied: 6 frames.").wait_for()
    # Back works although the frame has no address.
    frame.click("#back")
    assert frame.inner_text("#details .name") == "all"
    assert frame.is_disabled("#back")
    # The page starts with the account, whose causes highlight their stacks, and has the switch for noise.
    assert frame.locator("#why .account .whole:visible").count() == 2
    frame.locator("#why [data-cause='0']").click()
    settle(frame)
    assert 1 < len(bright(frame)) < len(frame.evaluate("boxes")) / 2
    frame.locator("#why [data-cause='0']").click()
    settle(frame)
    colours = frame.evaluate("new Set(fills).size")
    frame.click("#grey")
    settle(frame)
    assert frame.evaluate("new Set(fills).size") > colours
    frame.click("#grey")
    assert messages == []
    # Scripts in the frame cannot access the notebook.
    assert frame.evaluate("(() => { try { return parent.secret; } catch { return 'refused'; } })()") == "refused"
    page.close()


def test_selections_are_sent_to_notebooks_only(chromium: Browser, tmp_path: Path, story: pprofdiff.Diff):
    graph = story.flamegraph()
    graph.save(tmp_path / "graph.html")
    for frame, times in ((graph._repr_html_(), 1), ('<iframe src="graph.html" width="900" height="1000"></iframe>', 0)):
        host = tmp_path / "host.html"
        listen = "<script>heard = []; onmessage = (e) => heard.push(e.data.stack);</script>"
        host.write_text(f"<!doctype html><meta charset=utf-8>{listen}{frame}")
        page = chromium.new_page()
        page.goto(host.as_uri())
        inside = page.frames[1]
        inside.locator("#canvas").click(position={"x": 50, "y": 6 * ROW + 5})
        assert inside.inner_text("#details .name") == "logmill/names.Same"
        # In the inverted graph, the reported stack starts at the root, too.
        inside.click("#inverted")
        inside.locator("#canvas").click(position={"x": 50, "y": 2 * ROW + 5})
        settle(page)
        chosen = inside.inner_text("#details .name")
        heard = [stack for stack in page.evaluate("heard") if stack]
        assert len(heard) == 2 * times
        if times:
            assert heard[0][-1] == "logmill/names.Same"
            assert (heard[1][0], len(heard[1])) == (chosen, 2)
        page.close()


def test_the_example_notebook(chromium: Browser, site: Path):
    messages: list[str] = []
    # Browsers only paint visible frames.
    page = chromium.new_page(viewport={"width": 1200, "height": 12000})
    page.add_init_script(NOTE)
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    cells = json.loads(EXAMPLE.read_text())["cells"]
    page.goto((site / "story.html").as_uri())
    shown = page.locator(".cell_output")
    assert shown.count() == sum(cell["cell_type"] == "code" for cell in cells) - 1  # A saved page has no output.
    assert len(page.frames) == 3
    for frame in page.frames[1:]:
        frame.locator("#canvas").hover(position={"x": 50, "y": 5})
        settle(frame)
        assert len(frame.evaluate("boxes")) > 100
    assert messages == []
    assert "logmill/names.canonical" in page.content()
    assert (EXAMPLE.parent / "report.html").stat().st_size > 50_000
    page.close()
