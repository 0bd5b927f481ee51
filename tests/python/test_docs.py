"""Tests of the documentation: its links, the site, and each step of the start pages."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token
from playwright.sync_api import Browser

import pprofdiff
from conftest import pair

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def parse(page: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(page.read_text())


def links(page: Path) -> Iterator[str]:
    for token in parse(page):
        for child in token.children or []:
            yield from (str(child.attrs[name]) for name in ("href", "src") if name in child.attrs)


def anchors(page: Path) -> set[str]:
    """Returns the anchors of a page, as GitHub derives them from headings. Repeated headings get a number."""
    counts: dict[str, int] = {}
    tokens = parse(page)
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            title = "".join(child.content for child in inline.children or [])
            anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            counts[anchor] = counts.get(anchor, -1) + 1
    return {anchor if n == 0 else f"{anchor}-{n}" for anchor, count in counts.items() for n in range(count + 1)}


def test_links_have_existing_targets():
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "*.md"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")[:-1]
    pages = [ROOT / name for name in names if (ROOT / name).exists()]
    known_anchors = {page: anchors(page) for page in pages}
    checked, broken = 0, []
    for page in pages:
        for link in links(page):
            if re.match(r"[a-z]+:", link):
                continue
            checked += 1
            path, _, anchor = link.partition("#")
            file = (page.parent / unquote(path)).resolve() if path else page
            if not file.exists() or (anchor and anchor not in known_anchors.get(file, ())):
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert broken == []
    assert checked > 100


def test_links_of_a_released_readme_are_absolute(tmp_path: Path):
    """PyPI and crates.io show the README without the repository."""
    released = Path(shutil.copy(ROOT / "README.md", tmp_path))
    subprocess.run([sys.executable, ROOT / "release" / "readme.py", released], check=True)
    before, after = list(links(ROOT / "README.md")), list(links(released))
    assert len(before) == len(after) > 20
    for was, now in zip(before, after, strict=True):
        kind = "raw" if was.endswith((".png", ".svg")) else "blob"
        link = f"https://github.com/pprofdiff/pprofdiff/{kind}/v{pprofdiff.__version__}/{was}"
        assert now == (was if was.startswith(("https:", "#")) else link)


def test_the_picture_of_the_readme_shows_the_measured_figures(tmp_path: Path):
    """To draw it again: benches/picture.py."""
    fresh = tmp_path / "speed.svg"
    subprocess.run([sys.executable, ROOT / "benches" / "picture.py", fresh], check=True)
    assert (DOCS / "speed.svg").read_text() == fresh.read_text()
    readme = (ROOT / "README.md").read_text()
    (alternative,) = re.findall(r"!\[([^]]*)\]\(docs/speed\.svg\)", readme)
    figures = re.findall(r"[\d.]+ m?s\b", alternative)
    assert len(figures) == 5
    drawn = set(re.findall(r">([\d.]+ m?s)<", fresh.read_text()))
    assert set(figures) <= drawn, "the text for readers who do not see the picture"


def test_the_site_has_each_page(site: Path):
    for page in [*DOCS.glob("*.md"), *DOCS.glob("*.ipynb")]:
        assert f"{page.stem}.html" in (site / "index.html").read_text(), "no page is left out of the sidebar"
        assert (site / f"{page.stem}.html").exists()
    reference = (site / "api.html").read_text()
    for name in set(pprofdiff.__all__) - {"__version__"}:
        assert f'id="pprofdiff.{name}"' in reference


def test_forms_for_issues_have_the_shape_that_github_reads():
    forms = ROOT / ".github" / "ISSUE_TEMPLATE"
    for file in forms.glob("*.yml"):
        form = yaml.safe_load(file.read_text())
        if file.name == "config.yml":
            assert all(set(link) == {"name", "url", "about"} for link in form["contact_links"])
            continue
        assert {"name", "description", "body"} <= set(form), file
        asked = [part for part in form["body"] if part["type"] != "markdown"]
        assert len({part["id"] for part in asked}) == len(asked), file
        assert all(part["attributes"]["label"] for part in asked), file
        assert any(part.get("validations", {}).get("required") for part in asked), file
    updates = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text())["updates"]
    assert {update["package-ecosystem"] for update in updates} == {"cargo", "github-actions", "pip"}


def test_agents_find_each_page_as_markdown(site: Path):
    listed = (site / "llms.txt").read_text()
    entries = dict(re.findall(r"^- \[[^]]+\]\(([^)]+)\): (\S.*)$", listed, re.MULTILINE))
    assert listed.startswith("# pprofdiff\n\n> pprofdiff compares profiles")
    for page in [*DOCS.glob("*.md"), *DOCS.glob("*.ipynb")]:
        markdown = site / f"{page.stem}.md"
        text = markdown.read_text()
        assert text.startswith("# "), page
        if page.stem != "index":
            assert 20 < len(entries[markdown.name]) < 300, page
        for link in links(markdown):
            path = link.partition("#")[0]
            assert re.match(r"[a-z]+:", link) or path == "" or (site / path).exists(), f"{page}: {link}"
    reference = (site / "api.md").read_text()
    for name in set(pprofdiff.__all__) - {"__version__"}:
        assert f"\n## {name}\n" in reference
    assert "```python\nimport pprofdiff" in (site / "story.md").read_text()
    assert "eval-rst" not in reference
    assert re.findall(r"<!-- \w", (site / "start.md").read_text()) == []


@pytest.mark.parametrize("width", [1440, 390], ids=["screen", "phone"])
def test_the_site_needs_no_network_and_fits(chromium: Browser, site: Path, width: int):
    page = chromium.new_page(viewport={"width": width, "height": 900})
    asked: list[str] = []
    messages: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    for file in sorted(site.glob("*.html")):
        page.goto(file.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), file.name
    assert messages == []
    # Opened from a file, the page may not read the pages for excerpts, and the browser logs that. The results are
    # complete.
    page.goto(f"{site.as_uri()}/search.html?q=garbage")
    page.locator(".search li a", has_text="Find out why two profiles differ").first.wait_for()
    assert [url for url in asked if not url.startswith((site.as_uri(), "data:", "about:"))] == []
    page.close()


def steps(page: Path, language: str) -> list[str]:
    """Returns the blocks of a page in a language, except those that a preceding comment excludes."""
    tokens = parse(page)
    return [
        block.content
        for before, block in pairwise(tokens)
        if block.type == "fence" and block.info == language
        if before.content.strip() not in ("<!-- install -->", "<!-- not run -->")
    ]


def test_the_example_of_pairs_by_keys_works(tmp_path: Path):
    for build, source in zip(("122", "123"), pair("story-cpu"), strict=True):
        for service, run in (("api", 1), ("api", 2), ("web", 1)):
            target = tmp_path / "prof" / service / f"{build}-{run}.pb.gz"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    [example] = [cell for cell in steps(DOCS / "bulk.md", "python") if "pprofdiff.group_pairs(" in cell]
    command = [sys.executable, "-W", "error", "-c", f"import pprofdiff\n{example}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    starts = [line.split()[0] for line in done.stdout.splitlines() if line.startswith(("api ", "web "))]
    assert starts == ["api", "web"], done.stdout
    assert "names.canonical" in done.stdout


@pytest.mark.parametrize("name", ["start", "notebooks"])
def test_each_step_of_a_start_page_works(tmp_path: Path, name: str):
    for source, target in zip(pair("story-cpu"), ("main", "branch"), strict=True):
        shutil.copy(source, tmp_path / f"{target}.pb.gz")
    commands, cells = (steps(DOCS / f"{name}.md", language) for language in ("sh", "python"))
    assert commands or cells
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["bash", "-ec", "\n".join(commands)], cwd=tmp_path, env=os.environ | {"PATH": path}, check=True)
    subprocess.run([sys.executable, "-W", "error", "-c", "\n".join(cells)], cwd=tmp_path, check=True)
    assert (tmp_path / "report.html").stat().st_size > 50_000
