"""How Sphinx makes the site of docs/; `docs/make` builds it.

The pages are plain Markdown, which is read on the forge, too. So what only a site has is added to their text here:
the sidebar, which is the lists of index.md, and where links lead that leave docs/.
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
exclude_patterns = ["gallery"]  # read on the forge alone
nitpicky = True  # a reference to what is not there is a warning; docs/make makes errors of warnings

# Few of the runtime's signatures have types: those of the extension are in its stub.
autodoc_typehints = "none"
myst_heading_anchors = 4  # anchors as the forge has them
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

# Files of the repository are looked up in the checkout, see `_outward`; a docstring speaks of http:// as such.
linkcheck_ignore = [re.escape(REPOSITORY) + "/(blob|tree)/main/.*", "http://$"]

_LINK = re.compile(r"\[([^\[\]]+)\]\(([^()\s]+)\)")


def _outward(page: str, link: str) -> str:
    """Where a link leads: that to a file outside of docs/ to the repository, but a profile comes with the site."""
    path, hash_, anchor = link.partition("#")
    if not path.startswith("../") or path.endswith(".pb.gz"):
        return link
    file = (ROOT / "docs" / path).resolve()
    if not file.exists():
        logging.getLogger(__name__).warning("there is no file %s", path, location=page)
    kind = "tree" if file.is_dir() else "blob"
    return f"{REPOSITORY}/{kind}/main/{file.relative_to(ROOT)}{hash_}{anchor}"


def _sidebar(index: str) -> str:
    """The sidebar out of the lists of index.md: what stands under each heading, by the names that it has there."""
    trees = []
    for section in index.split("\n## ")[1:]:
        caption, _, links = section.partition("\n")
        # The site's own pages are named without their ending; links to elsewhere stay whole.
        targets = [(name, re.sub(r"^([^:]+)[.](md|ipynb)$", r"\1", target)) for name, target in _LINK.findall(links)]
        pages = [f"{name} <{target}>" for name, target in targets]
        trees.append("\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", ""]))
    return "\n".join(trees)


def _read(_app: Sphinx, page: str, source: list[str]) -> None:
    """Makes a page of the forge one of the site."""
    text = _LINK.sub(lambda m: f"[{m[1]}]({_outward(page, m[2])})", source[0])
    text = text.replace("```rust,no_run\n", "```rust\n")  # rustdoc's mark of what is compiled and not run
    if page == "index":
        text += _sidebar(text)
    if page == "numbers":
        measured = (ROOT / "benches" / "README.md").read_text()
        figures = measured.partition("<!-- measured -->")[2].partition("<!-- end -->")[0]
        text = text.replace("<!-- figures -->", figures)
    source[0] = text


def _docstring(_app: Sphinx, what: str, _name: str, _object: object, _options: object, lines: list[str]) -> None:
    """Makes reStructuredText of a docstring, which is plain text with code between single backticks."""
    if what == "module":
        lines.clear()  # the page has words of its own
    text = re.sub(r"`([^`]+)`|([\\*|_])", lambda m: f"``{m[1]}``" if m[1] else f"\\{m[2]}", "\n".join(lines))
    lines[:] = text.split("\n")


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _docstring)
