"""Sphinx configuration for the documentation site. `docs/make` builds it.

The pages are plain Markdown that can also be read on GitHub. This file adds the parts that only the site needs: the
sidebar, which is built from the lists in index.md, and the targets of links to files outside docs/. For agents, it
writes each page as Markdown beside its HTML (`start.md` beside `start.html`), and `llms.txt`, which lists them.
"""

import inspect
import json
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


def _site_form(page: str, text: str) -> str:
    """Converts a page from its GitHub form to that of the site."""
    text = _LINK.sub(lambda m: f"[{m[1]}]({_outward(page, m[2])})", text)
    text = text.replace("```rust,no_run\n", "```rust\n")  # rustdoc's mark for code that is compiled but not run
    if page == "numbers":
        measured = (ROOT / "benches" / "README.md").read_text()
        figures = measured.partition("<!-- measured -->")[2].partition("<!-- end -->")[0]
        text = text.replace("<!-- figures -->", figures)
    return text


def _read(_app: Sphinx, page: str, source: list[str]) -> None:
    """Converts a page before Sphinx parses it."""
    text = _site_form(page, source[0])
    source[0] = text + _sidebar(text) if page == "index" else text


def _notebook_as_markdown(notebook: str) -> str:
    """Returns the cells of a notebook without their output."""
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(notebook)["cells"]]
    return "\n\n".join(text if kind == "markdown" else f"```python\n{text}\n```" for kind, text in cells) + "\n"


def _signature(value: object) -> str:
    """Returns the parameters of a function or class, or nothing if its extension module does not state them."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = [parameter for name, parameter in signature.parameters.items() if name != "self"]
    return str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


def _reference() -> str:
    """Returns the docstrings of the package, for the Markdown form of api.md."""
    parts = []
    for name in sorted(set(pprofdiff.__all__) - {"__version__"}):
        value = getattr(pprofdiff, name)
        members = [("##", name, value)]
        if inspect.isclass(value):
            public = [member for member in vars(value) if not member.startswith("_")]
            members += [("###", f"{name}.{member}", getattr(value, member)) for member in public]
        # An attribute that is a number or a text has only the docstring of its type.
        described = [(*part, inspect.getdoc(part[2])) for part in members if not isinstance(part[2], str | int | float)]
        parts += [f"{level} {path}\n\n`{path}{_signature(v)}`\n\n{doc}" for level, path, v, doc in described if doc]
    return "\n\n".join(parts) + "\n"


def _as_markdown(page: str) -> str:
    """Returns a page as Markdown, with links to the Markdown form of other pages."""
    source = ROOT / "docs" / f"{page}.md"
    text = source.read_text() if source.exists() else _notebook_as_markdown(source.with_suffix(".ipynb").read_text())
    text = re.sub(r"```\{eval-rst\}\n.*?```\n", lambda _: _reference(), _site_form(page, text), flags=re.DOTALL)
    text = re.sub(r"^<!-- (?:install|not run|measured|end) -->\n+", "", text, flags=re.MULTILINE)
    # Pictures and profiles are at other places of the site, with names that Sphinx chooses.
    text = re.sub(r"\]\((?:\.\./)([^()\s]+\.pb\.gz)\)", rf"]({REPOSITORY}/raw/main/\1)", text)
    text = re.sub(r"\]\(([a-z-]+\.(?:png|svg))\)", rf"]({REPOSITORY}/raw/main/docs/\1)", text)
    return re.sub(r"\]\(([a-z-]+)\.ipynb(#[^)]*)?\)", lambda m: f"]({m[1]}.md{m[2] or ''})", text)


def _summary(markdown: str) -> str:
    """Returns the first sentence of a page, as one line without "After this page you can"."""
    paragraph = next(part for part in markdown.split("\n\n")[1:] if part[0].isalnum())
    sentence = re.split(r"(?<=[.])\s", _LINK.sub(r"\1", " ".join(paragraph.split())), maxsplit=1)[0]
    shortened = re.sub(r"^After this page (?:you can )?", "", sentence)
    return sentence if shortened == sentence else shortened[0].upper() + shortened[1:]


def _write_for_agents(app: Sphinx, failure: Exception | None) -> None:
    """Writes the pages as Markdown, and llms.txt (llmstxt.org) with a line for each."""
    if failure or app.builder.name != "html":
        return
    site = Path(app.outdir)
    pages = {page: _as_markdown(page) for page in sorted(app.env.found_docs)}
    for page, text in pages.items():
        (site / f"{page}.md").write_text(text)
    title, _, index = pages["index"].partition("\n")
    lines = [title, "", f"> {_summary(pages['index'])}", ""]
    for section in index.split("\n## ")[1:]:
        caption, _, links = section.partition("\n")
        lines += [f"## {caption}", ""]
        for name, target in _LINK.findall(links):
            page = target.removesuffix(".md")
            described = f": {_summary(pages[page])}" if page in pages else ""
            lines.append(f"- [{name}]({target}){described}")
        lines.append("")
    (site / "llms.txt").write_text("\n".join(lines))


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
    app.connect("build-finished", _write_for_agents)
