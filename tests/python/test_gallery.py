"""Tests of the gallery: pages of the corpus, built with the command in the documentation."""

import re
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser, expect

MAKE = Path(__file__).parents[2] / "docs" / "gallery" / "make"


def test_the_gallery_can_be_built(chromium: Browser, tmp_path: Path):
    subprocess.run([sys.executable, MAKE, tmp_path / "gallery"], check=True)
    pages = sorted(path.name for path in (tmp_path / "gallery").glob("*.html"))
    assert pages == [
        *("go-cpu.html", "go-heap.html", "go-lock.html", "index.html", "node-cpu.html", "rust-cpu.html", "series.html")
    ]
    index = (tmp_path / "gallery" / "index.html").read_text()
    assert sorted(re.findall(r'href="(.*?)"', index)) == sorted(set(pages) - {"index.html"})
    page = chromium.new_page()
    page.goto((tmp_path / "gallery" / "index.html").as_uri())
    for name in sorted(set(pages) - {"index.html"}):
        page.click(f"a[href='{name}']")
        expect(page.locator("#total")).to_be_visible()
        if name != "series.html":
            expect(page.locator("#why .account .whole:visible")).to_have_count(2)
        page.go_back()
    page.close()
