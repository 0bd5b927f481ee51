"""A notebook, executed; its output is escaped and needs no script."""

import re
from html.parser import HTMLParser

import nbformat
import pytest
from nbclient import NotebookClient

import pprofdiff
from conftest import pair, profile

EVIL = "<script>alert(1)</script>"


class Checker(HTMLParser):
    """Notes the tags, and whether all are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.open.append(tag)
        assert {name for name, _ in attrs} <= {"class"}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check(html: str) -> None:
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    assert checker.tags <= {"style", "div", "span", "b", "table", "thead", "tbody", "tr", "th", "td"}


@pytest.fixture(scope="module")
def evil() -> pprofdiff.Diff:
    base = profile([([EVIL, "a & b", "'\""], 10, {EVIL: EVIL})])
    new = profile([([EVIL, "a & b"], 20, {EVIL: EVIL}), ([EVIL], 5, {})])
    return pprofdiff.diff(pprofdiff.load(base), new)


def test_html_is_escaped(evil: pprofdiff.Diff):
    filtered = evil.filter(focus="script|<b>")
    tables = [evil.top(), evil.tree(), evil.stacks(labels=True), evil.labels(), filtered.top()]
    for shown in (evil, evil.base[0], filtered, filtered.normalize("total"), *tables):
        html = shown._repr_html_()
        check(html)
        assert "alert(1)" not in html or "&lt;script&gt;alert(1)" in html
    assert "&lt;script&gt;" in evil._repr_html_()


def test_html_of_real_profiles(story: pprofdiff.Diff, labelled: pprofdiff.Diff):
    for d in (story, labelled, labelled.new[0]):
        for shown in (d, d.top(granularity="lines"), d.tree(), d.stacks(labels=True), d.labels()):
            html = shown._repr_html_()
            check(html)
            assert "prefers-color-scheme:dark" in html
            assert not re.search(r"https?://(?!\S*go)", html)


def test_a_notebook(tmp_path):
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
