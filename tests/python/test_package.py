"""Tests of the package itself: stub and docstrings, the stable ABI, and a fast import."""

import ast
import importlib.metadata
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pprofdiff
from conftest import pair
from pprofdiff import _native

ROOT = Path(__file__).parents[2]
# The stub in the repository. The installed one is a copy.
STUB = ROOT / "python/pprofdiff/_native.pyi"


def _docstrings(tree: ast.Module) -> dict[str, str]:
    """Returns the docstrings of the extension module by qualified name, for the stub."""
    docstrings = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            docstrings[node.name] = getattr(_native, node.name).__doc__
            for member in getattr(node, "body", []):
                if isinstance(member, ast.FunctionDef) and not member.name.startswith("__"):
                    runtime = inspect.getattr_static(getattr(_native, node.name), member.name)
                    docstrings[f"{node.name}.{member.name}"] = runtime.__doc__
    return {name: inspect.cleandoc(doc) for name, doc in docstrings.items() if doc}


def _with_docstrings(source: str, docstrings: dict[str, str]) -> str:
    """Returns the stub with its docstrings replaced."""
    lines = source.splitlines()
    nodes: list[tuple[str, ast.ClassDef | ast.FunctionDef]] = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            nodes.append((node.name, node))
            nodes += [(f"{node.name}.{m.name}", m) for m in node.body if isinstance(m, ast.FunctionDef)]
    for name, node in sorted(nodes, key=lambda n: -n[1].lineno):
        if name not in docstrings:
            continue
        indent = " " * (node.col_offset + 4)
        doc = [f'{indent}"""{docstrings[name]}'.replace("\n", f"\n{indent}").replace(f"\n{indent}\n", "\n\n")]
        doc[-1] += f'\n{indent}"""' if "\n" in docstrings[name] else '"""'
        first = node.body[0]
        if ast.get_docstring(node) is not None:
            lines[first.lineno - 1 : first.end_lineno] = doc
        elif isinstance(node, ast.ClassDef):
            above = min(n.lineno for n in [first, *getattr(first, "decorator_list", [])]) - 1
            lines[above:above] = doc
        else:
            # A body of `...` is replaced with the docstring.
            assert first.end_lineno is not None
            lines[first.lineno - 1] = lines[first.lineno - 1].removesuffix(" ...")
            lines[first.lineno : first.lineno] = doc
    return "\n".join(lines) + "\n"


def test_the_stub_has_the_docstrings_of_the_extension():
    source = STUB.read_text()
    docstrings = _docstrings(ast.parse(source))
    assert len(docstrings) > 40
    if os.environ.get("UPDATE_GOLDENS"):
        STUB.write_text(_with_docstrings(source, docstrings))
        subprocess.run([sys.executable, "-m", "ruff", "format", "-q", STUB], check=True)
        source = STUB.read_text()
    stub = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            stub[node.name] = ast.get_docstring(node)
            members = [m for m in node.body if isinstance(m, ast.FunctionDef)]
            stub |= {f"{node.name}.{m.name}": ast.get_docstring(m) for m in members}
    for name, doc in docstrings.items():
        hint = "UPDATE_GOLDENS=1 pytest tests/python/test_package.py writes the stub's docstrings"
        assert stub.get(name) == doc, f"{name}: {hint}"


# Option classes in types.py, with the headings of the engine's tables that their keys come from.
CLASSES = {
    "Filters(TypedDict, total=False)": (["Filters"], "The keywords of Views.filter(), which all views take as well."),
    "ViewOptions(Filters, total=False)": (
        ["Selection", "Display"],
        "The keywords that all views take, as do series() and Batch.tables().",
    ),
    "LoadOptions(TypedDict, total=False)": (["Loading", "Limits"], "The keywords of load() and of all that loads."),
}


def test_option_classes_equal_the_engines_tables():
    blocks = []
    for head, (headings, doc) in CLASSES.items():
        lines = [f"class {head}:", f'    """{doc}"""', ""]
        for heading, name, annotation, about in _native._options():
            if heading in headings:
                lines += [f"    {name}: {annotation}", f'    """{about}."""']
        blocks.append("\n".join(lines) + "\n\n\n")
    types = STUB.with_name("types.py")
    first, last = types.read_text().split("# <options>"), types.read_text().split("# </options>")
    note = first[1].splitlines()[0]
    expected = f"{first[0]}# <options>{note}\n{''.join(blocks).rstrip()}\n\n\n# </options>{last[1]}"
    if os.environ.get("UPDATE_GOLDENS"):
        types.write_text(expected)
    assert types.read_text() == expected, "UPDATE_GOLDENS=1 pytest tests/python/test_package.py writes types.py"


def test_everything_public_has_a_docstring():
    for name in pprofdiff.__all__:
        member = getattr(pprofdiff, name)
        assert name == "__version__" or member.__doc__, name
        if inspect.isclass(member):
            for key in vars(member):
                assert key.startswith("_") or key in vars(pprofdiff.PprofError) or getattr(member, key).__doc__


def test_the_wheel_uses_the_stable_abi():
    wheel = importlib.metadata.distribution("pprofdiff").read_text("WHEEL")
    assert wheel is not None
    assert re.findall(r"^Tag: (\w+-\w+)-", wheel, re.M) == ["cp311-abi3"]
    assert ".abi3." in Path(_native.__file__).name


def modules_of(code: str) -> list[str]:
    """Returns the modules that this code imports in a fresh interpreter, without those loaded at startup."""
    code = f"before = set(sys.modules); {code}; print(*sorted(set(sys.modules) - before))"
    command = [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()


PACKAGE = ["pprofdiff", *(f"pprofdiff.{name}" for name in ("_batch", "_bench", "_deltas", "_native", "_scan"))]


def test_importing_the_package_imports_only_its_own_modules():
    assert modules_of("import pprofdiff") == PACKAGE


@pytest.mark.parametrize("arguments", [["--version"], ["info", pair("go-mutex")[0]], [*pair("go-mutex")]])
def test_the_command_imports_only_its_own_modules(arguments: list[str]):
    run = f"from pprofdiff._cli import main; sys.argv[1:] = {[str(a) for a in arguments]!r}; assert main() == 0"
    assert modules_of(run) == sorted([*PACKAGE, "pprofdiff._cli"])


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", pprofdiff.__version__)
