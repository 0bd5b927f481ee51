"""Tests that hostile names stay literal text in every view when GitHub renders our Markdown in a comment."""

import html
import os
import re
import subprocess
from pathlib import Path
from random import Random

import cmarkgfm
import pytest

from conftest import CORPUS, profile

ROOT = CORPUS.parents[1]
COMMAND = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug/pprofdiff"

pytestmark = pytest.mark.skipif(not COMMAND.exists(), reason=f"{COMMAND} is not built (cargo build)")

COMMIT = "0123456789abcdef0123456789abcdef01234567"
# Without escaping, each is a link, a mention, an image, a tag or the end of a cell.
SIGNS = [
    "https://evil.example/login",
    "www.evil.example",
    "ftp://evil.example",
    "mailto:x@evil.example",
    "<https://evil.example>",
    "[x](https://evil.example)",
    "![x](https://evil.example/x.png)",
    "<img src=x>",
    "<script>x</script>",
    "<details>",
    "<!-- ",
    "&lt;b&gt;",
    "@octocat",
    "@org/team",
    "#12",
    "org/repo#12",
    "GH-12",
    "gh-12",
    COMMIT,
    "- [ ] x",
    "*b* __b__ ~~s~~",
    "[^1]",
]
ENDS = ["`", "``", "|", "\\", "\\|", "\n", "\r\n| x |", "$", " "]
# The tags that our Markdown produces.
TAGS = {"p", "table", "thead", "tbody", "tr", "th", "td", "code", "strong", "ol", "ul", "li", "h3", "blockquote"}


def names(seed: int) -> list[str]:
    """Returns each sign alone, after a backquote and after a pipe, and mixtures of signs."""
    random = Random(seed)
    mixed = ["".join(random.choices(SIGNS + ENDS, k=random.randint(2, 5))) for _ in range(40)]
    return [before + sign for before in ("", "` ", "| ", "a`b`| ") for sign in SIGNS] + ENDS + mixed


def rendered(*arguments: str) -> str:
    """Renders the Markdown output of a command like GitHub, without the filter for dangerous tags."""
    done = subprocess.run([COMMAND, *arguments, "--format", "markdown"], capture_output=True, text=True)
    assert done.returncode in (0, 1, 3), (arguments, done.stderr)
    return cmarkgfm.github_flavored_markdown_to_html(done.stdout, cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE)


def check(page: str, context: object) -> None:
    tags = set(re.findall(r"<([A-Za-z!][\w-]*)", page))
    assert tags <= TAGS, (context, tags - TAGS, [line for line in page.splitlines() if "href" in line][:3])
    # GitHub recognizes mentions, issues and commits only outside code.
    text = html.unescape(re.sub(r"<[^>]*>", " ", re.sub(r"<code>.*?</code>", "", page, flags=re.DOTALL)))
    match = re.search(r"@[A-Za-z]|#\d|\bgh-\d|\b[0-9a-f]{7,40}\b(?<!\d{7})", text, re.IGNORECASE)
    assert not match, (context, text[max(0, match.start() - 60) : match.end() + 60])


def cells(page: str) -> list[list[str]]:
    """Returns the text of each cell, grouped by row."""

    def text(cell: str) -> str:
        return html.unescape(re.sub(r"<[^>]*>", "", cell)).replace("\u200b", "").strip()

    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    all_cells = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in rows]
    return [[text(cell) for cell in row] for row in all_cells if row]


def shown(name: str) -> str:
    """Returns a name as a person sees it, without control characters of a terminal or viewer."""
    return re.sub(r"[\x00-\x1f]", "\ufffd", name).strip()


def write(folder: Path, name: str, functions: list[str], factor: int, **options: tuple[str, str]) -> str:
    samples = [(["main", f], 10_000_000 * factor * (i + 1), {"key" + f: f}) for i, f in enumerate(functions)]
    samples.append((["main", "other"], 10_000_000_000, {}))
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(profile(samples, **options))
    return str(path)


@pytest.mark.parametrize("seed", range(3))
def test_names_of_frames_and_labels_stay_text_in_every_view(tmp_path: Path, seed: int):
    functions = list(dict.fromkeys(name for name in names(seed) if name.strip()))
    base, new = (write(tmp_path, f"{side}.pb", functions, factor) for side, factor in (("base", 1), ("new", 3)))
    for arguments in [
        ["top", base, new],
        ["top", new],
        ["top", base, new, "--granularity", "lines"],
        ["tree", base, new],
        ["peek", ".", base, new],
        ["roots", ".", new],
        ["stacks", base, new],
        ["stacks", "--labels", new],
        ["traces", new],
        ["labels", base, new],
    ]:
        page = rendered(*arguments, "-n", "0")
        check(page, arguments)
        # The name is complete in a single cell, so no row is broken.
        seen = {cell for row in cells(page) for cell in row}
        missing = [name for name in functions if not any(shown(name) in cell for cell in seen)]
        assert not missing or arguments[0] == "roots", (arguments, missing)
        assert len({len(row) for row in cells(page)}) == 1
    for arguments in [
        ["explain", base, new],
        ["explain", "--base", base, base, "--new", new, new],
        ["check", base, new, "--fail-on", "flat:any>+20%", "--fail-on", "cum:each=.*>+1%", "--explain"],
        ["series", base, new, "--rows", "values", "-n", "0"],
        ["series", base, new, "--rows", "movers", "-n", "0"],
        ["series", base, new, "--rows", "steps", "-n", "0"],
    ]:
        check(rendered(*arguments), arguments)


@pytest.mark.parametrize("sign", [sign for sign in SIGNS if sign != "<!-- "])
def test_sample_types_files_and_builds_stay_text(tmp_path: Path, sign: str):
    for number, name in enumerate((sign, "|`" + sign)):
        folder, file = tmp_path / str(number), name.replace("/", "|")
        sides = [
            write(folder, f"{side}/{file}-{i}.pb", [name], 1 + i, sample_type=(name, name))
            for side in ("base", "new")
            for i in range(2)
        ]
        pairs = [str(folder / "base"), str(folder / "new")]
        for arguments in [
            ["top", sides[0], sides[3]],
            ["explain", sides[0], sides[3]],
            ["explain", sides[0], sides[0]],
            ["check", sides[0], sides[3], "--fail-on", "flat:any>+20%", "--explain"],
            ["check", sides[0], sides[3], "--fail-on", f"flat:each={re.escape(name)}>+20%"],
            ["labels", sides[0], sides[3]],
            ["series", *sides, "--order", "given", "--rows", "values"],
            ["series", *sides, "--order", "given", "--rows", "shifts"],
            ["batch", *pairs, "--rank"],
        ]:
            check(rendered(*arguments), arguments)
