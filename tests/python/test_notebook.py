"""Tests in a notebook: its output is escaped and needs no script."""

import inspect
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient

import pprofdiff
from conftest import pair, profile

ROOT = Path(__file__).parents[2]
EVIL = "<script>alert(1)</script>"
# A sample at the first location, with the value 3.
SAMPLE = b"\x12\x06\x0a\x01\x01\x12\x01\x03"


DRAWN = {"rect", "line"}
TEXT = {"style", "div", "span", "b", "p", "ol", "li", "details", "summary", "code", "svg"}


class Checker(HTMLParser):
    """Records the tags, and checks that all are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.open.append(tag)
        assert {name for name, _ in attrs} <= (
            {"x", "width", "x1", "x2", "y1", "y2"} if tag in DRAWN else {"class", "aria-hidden"}
        )

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check(html: str) -> None:
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    assert checker.tags <= TEXT | DRAWN | {"table", "thead", "tbody", "tr", "th", "td"}


@pytest.fixture(scope="module")
def evil() -> pprofdiff.Diff:
    base = profile([([EVIL, "a & b", "'\""], 10, {EVIL: EVIL})])
    new = profile([([EVIL, "a & b"], 20, {EVIL: EVIL}), ([EVIL], 5, {})])
    return pprofdiff.diff(pprofdiff.load(base), new)


def test_html_of_hostile_names_is_escaped(evil: pprofdiff.Diff):
    filtered = evil.filter(focus="script|<b>")
    tables = [evil.top(), evil.tree(), evil.stacks(labels=True), evil.labels(), filtered.top()]
    for shown in (evil, evil.base[0], filtered, filtered.normalize("total"), *tables):
        html = shown._repr_html_()
        check(html)
        assert "alert(1)" not in html or "&lt;script&gt;alert(1)" in html
    assert "&lt;script&gt;" in evil._repr_html_()


def test_html_of_real_profiles_is_well_formed(story: pprofdiff.Diff, labelled: pprofdiff.Diff):
    for d in (story, labelled, labelled.new[0]):
        for shown in (d, d.top(granularity="lines"), d.tree(), d.stacks(labels=True), d.labels()):
            html = shown._repr_html_()
            check(html)
            assert "prefers-color-scheme:dark" in html
            assert not re.search(r"https?://(?!\S*go)", html)


def test_a_diff_starts_with_its_account(story: pprofdiff.Diff, evil: pprofdiff.Diff):
    """Diffs and explanations show the account picture above the table. A single profile has nothing to explain."""
    html = story._repr_html_()
    assert html.index('class="account"') < html.index("<table>")
    picture = re.search(r'<ol class="account">.*</ol>', html, re.S)
    assert picture
    on_page = re.findall(r'<ol class="account">.*?</ol>(?=<ul)', story.to_html(), re.S)
    # On the page, the causes are buttons.
    button = r"<(/?)button[^>]*?( class=\"what\")?(?: title=[^>]*)?>"
    assert picture[0] in [re.sub(button, r"<\1span\2>", other) for other in on_page]
    assert 'class="more"' in picture[0]
    assert picture[0] in story.explain().to_html()
    # The account uses the same filters as the table and, if possible, the same scale.
    assert 'class="account"' in story.filter(focus="names").normalize("total")._repr_html_()
    for other in (story.new[0], story.top(), pprofdiff.diff(story.base, story.new).filter(tagroot="x")):
        check(other._repr_html_())
    assert 'class="account"' not in story.new[0]._repr_html_()
    # It is omitted if it would take seconds.
    for samples, leads in ((90_000, True), (110_000, False)):
        sides = [profile([(["f"], 10, {})], last=SAMPLE * (samples - 1)) for _ in range(2)]
        assert ('class="account"' in pprofdiff.diff(*sides)._repr_html_()) == leads
    check(evil.explain()._repr_html_())
    check(evil._repr_html_())


def test_keyword_arguments_are_completed(story: pprofdiff.Diff):
    """IPython's completer, without Jedi, reads them from the signature."""
    shell = InteractiveShell.instance()
    shell.Completer.use_jedi = False
    shell.user_ns |= {"d": story, "pprofdiff": pprofdiff}
    for text, expected in (
        ("d.filter(fo", {"focus="}),
        ("d.filter(tag", {"tagfocus=", "tagignore=", "tagroot=", "tagleaf=", "tagshow=", "taghide="}),
        ("d.top(sa", {"sample_type="}),
        ("d.top(so", {"sort="}),
        ("d.explain(min", {"min_effect="}),
        ("d.flamegraph(gr", {"granularity="}),
        ("pprofdiff.load(input", {"input_format=", "input_type="}),
        ("pprofdiff.diff(any", {"any_build="}),
    ):
        with provisionalcompleter():
            assert expected <= {completion.text for completion in shell.Completer.completions(text, len(text))}, text
    # Exactly the accepted keywords, in the order of the engine's tables.
    filters = [name for name in inspect.signature(story.filter).parameters if name != "filters"]
    for name in filters:
        story.filter(**{name: ""})
    with pytest.raises(TypeError) as refused:
        story.filter(none="")
    assert str(refused.value).endswith("the options are " + ", ".join(filters))
    assert not story.filter.__doc__.startswith("filter(")


def test_the_example_notebook_runs(tmp_path):
    base, new = map(str, pair("story-cpu"))
    cells = [
        f"import pprofdiff\nd = pprofdiff.diff({base!r}, {new!r})\nd",
        "d.new[0]",
        "d.top(5, sort='cum')",
        "d.stacks(3)",
        f"pprofdiff.load({profile([([EVIL], 1, {})])!r})",
        "print(d)",
        "d.to_polars().height, d.to_pandas().shape",
        "pprofdiff.load(b'')",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=120, allow_errors=True, kernel_name="python3").execute()
    outputs = [cell.outputs for cell in notebook.cells]
    for output in outputs[:5]:
        assert [o.output_type for o in output] == ["execute_result"]
        check(output[0].data["text/html"])
    assert "indexbytebody" in outputs[0][0].data["text/html"]
    assert "indexbytebody" in outputs[0][0].data["text/plain"]
    assert EVIL not in outputs[4][0].data["text/html"]
    assert "indexbytebody" in outputs[5][0].text
    assert outputs[6][0].data["text/plain"] == "(156, (156, 12))"
    assert [o.ename for o in outputs[7]] == ["PprofError"]


def test_the_story_has_the_output_of_its_cells(tmp_path):
    """`docs/story.py` writes the output. The output of polars depends on its version, so it is not compared."""
    fresh = tmp_path / "story.ipynb"
    subprocess.run([sys.executable, ROOT / "docs" / "story.py", fresh], check=True)
    stored, current = (nbformat.read(path, as_version=4) for path in (ROOT / "docs" / "story.ipynb", fresh))
    assert [cell.source for cell in stored.cells] == [cell.source for cell in current.cells]
    # The size of a flame graph contains the script of the page, which changes often.
    without_size = [re.sub(r"\d+ kB", "N kB", json.dumps(cell.get("outputs"))) for cell in stored.cells]
    for cell, old, new in zip(stored.cells, without_size, current.cells, strict=True):
        if "polars" not in cell.source:
            new = re.sub(r"\d+ kB", "N kB", json.dumps(new.get("outputs")))
            assert old == new, f"docs/story.py writes the output of {cell.source!r}"
    with_output = [cell for cell in stored.cells if cell.get("outputs")]
    assert len(with_output) == 8
    assert (ROOT / "docs" / "story.ipynb").stat().st_size < 300_000
    text = (ROOT / "docs" / "story.ipynb").read_text()
    assert "<script" not in text
    assert "<iframe" not in text
