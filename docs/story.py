#!/usr/bin/env python3
"""Executes docs/story.ipynb and stores its output in the file: `docs/story.py [FILE]`.

GitHub shows the stored output. The site executes the notebook again, so it has the interactive flame graphs. The stored
output has their pictures without script instead, because GitHub removes scripts and frames, and because the page's code
would change the file with each of its own changes. Needs the package, polars, nbclient and ipykernel.
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

DOCS = Path(__file__).resolve().parent
# Runs in the kernel before the first cell.
PICTURES = """
import pprofdiff
formatters = get_ipython().display_formatter.formatters
formatters["image/svg+xml"].for_type(pprofdiff.FlameGraph, lambda graph: graph.to_svg())
for kind in (pprofdiff.FlameGraph, pprofdiff.CallGraph):
    formatters["text/html"].for_type(kind, lambda graph: None)
del formatters, kind
"""


def executed() -> str:
    """Returns the notebook with its current output, without times and versions."""
    notebook = nbformat.read(DOCS / "story.ipynb", as_version=4)
    metadata = nbformat.from_dict({key: dict(value) for key, value in notebook.metadata.items()})
    notebook.cells.insert(0, nbformat.v4.new_code_cell(PICTURES))
    NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(DOCS)}}, record_timing=False, kernel_name="python3"
    ).execute()
    del notebook.cells[0]
    for number, cell in enumerate((cell for cell in notebook.cells if cell.cell_type == "code"), 1):
        cell.execution_count = number
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = number
    notebook.metadata = metadata
    return nbformat.writes(notebook, indent=1) + "\n"


if __name__ == "__main__":
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS / "story.ipynb"
    file.write_text(executed())
