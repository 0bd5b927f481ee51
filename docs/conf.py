"""Sphinx configuration for the documentation site. `docs/make` builds it.

The pages are plain Markdown that can also be read on GitHub. This file adds the parts that only the site needs: the
sidebar, which is built from the lists in index.md, and the targets of links to files outside docs/.
"""

import re
import tomllib
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

import pprofdiff

ROOT = Path(__file__).resolve().parents[1]
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]

project = "pprofdiff"
release = pprofdiff.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns = ["gallery"]  # only readable on GitHub
nitpicky = True  # warns about missing references; docs/make turns warnings into errors

# Few signatures have types at run time: the types of the extension are in its stub.
autodoc_typehints = "none"
myst_heading_anchors = 4  # the same anchors as on GitHub
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 120

html_theme = "furo"
html_title = f"pprofdiff {release}"
html_static_path = html_css_files = ["site.css"]
html_show_copyright = False
html_theme_options = {
    "source_repository": REPOSITORY,
    "source_branch": "main",
    "source_directory": "docs/",
}
copybutton_prompt_text = "$ "

# Links to the repository are checked in the checkout (see `_outward`). A docstring mentions `http://` alone.
linkcheck_ignore = [re.escape(REPOSITORY) + "/(blob|tree)/main/.*", "http://$"]

_LINK = re.compile(r"\[([^\[\]]+)\]\(([^()\s]+)\)")


def _outward(page: str, link: str) -> str:
    """Returns the target of a link. Files outside docs/ link to the repository, but profiles are copied to the site."""
    path, hash_, anchor = link.partition("#")
    if not path.startswith("../") or path.endswith(".pb.gz"):
        return link
    file = (ROOT / "docs" / path).resolve()
    if not file.exists():
        logging.getLogger(__name__).warning("there is no file %s", path, location=page)
    kind = "tree" if file.is_dir() else "blob"
    return f"{REPOSITORY}/{kind}/main/{file.relative_to(ROOT)}{hash_}{anchor}"


def _sidebar(index: str) -> str:
    """Returns the sidebar: the links under each heading of index.md, with their names."""
    trees = []
    for section in index.split("\n## ")[1:]:
        caption, _, links = section.partition("\n")
        # Pages of the site are listed without their extension. Other links are unchanged.
        targets = [(name, re.sub(r"^([^:]+)[.](md|ipynb)$", r"\1", target)) for name, target in _LINK.findall(links)]
        pages = [f"{name} <{target}>" for name, target in targets]
        trees.append("\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", ""]))
    return "\n".join(trees)


def _read(_app: Sphinx, page: str, source: list[str]) -> None:
    """Converts a page from its GitHub form to that of the site."""
    text = _LINK.sub(lambda m: f"[{m[1]}]({_outward(page, m[2])})", source[0])
    text = text.replace("```rust,no_run\n", "```rust\n")  # rustdoc's mark for code that is compiled but not run
    if page == "index":
        text += _sidebar(text)
    if page == "numbers":
        measured = (ROOT / "benches" / "README.md").read_text()
        figures = measured.partition("<!-- measured -->")[2].partition("<!-- end -->")[0]
        text = text.replace("<!-- figures -->", figures)
    source[0] = text


def _docstring(_app: Sphinx, what: str, _name: str, _object: object, _options: object, lines: list[str]) -> None:
    """Converts a docstring (plain text with code in single backticks) to reStructuredText."""
    if what == "module":
        lines.clear()  # the page has its own introduction
    text = re.sub(r"`([^`]+)`|([\\*|_])", lambda m: f"``{m[1]}``" if m[1] else f"\\{m[2]}", "\n".join(lines))
    lines[:] = text.split("\n")


def setup(app: Sphinx) -> None:
    """Registers the callbacks with Sphinx."""
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _docstring)
