"""Fixtures that open pages in Chromium. conftest.py loads them as a plugin, except for the core tier of tests."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from page_model import NOTE, Open, settle

# Timeout for assertions, equal to that of actions. Five seconds are too few for the page's engine on a busy machine.
expect.set_options(timeout=30_000)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    # Chromium without browser windows needs a third of the CPU time to open a page (0.9 instead of 2.5 s).
    path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if not path:
        pytest.skip("Chromium is missing (apt-get install chromium-headless-shell)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def show(chromium: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens pages. At the end, it fails if the console has messages or a page made a request."""
    messages: list[str] = []
    contexts = []

    def opened(html: str, fragment: str = "", **options: Any) -> Page:
        context = chromium.new_context(**({"viewport": {"width": 1400, "height": 3000}} | options))
        contexts.append(context)
        context.add_init_script(NOTE)
        page = context.new_page()
        file = tmp_path / f"{len(contexts)}.html"
        file.write_text(html)
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda r: messages.append(r.url) if not r.url.startswith(file.as_uri()) else None)
        page.goto(f"{file.as_uri()}#{fragment}")
        settle(page)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert messages == []
