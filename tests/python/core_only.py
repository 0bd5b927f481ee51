"""Hides the packages that the group `core` of pyproject.toml does not install.

.ci/run has all packages in one environment, so without this the core tests could use one that a newcomer's `tests/run`
does not install."""

import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any


def _name(requirement: str) -> str:
    match = re.match(r"[\w.-]+", requirement)
    assert match, requirement
    return re.sub(r"[-_.]+", "-", match.group()).lower()


def core_distributions() -> set[str]:
    """Returns the names of the packages of the group, with all that they require."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    names = {"pprofdiff", "pip", "setuptools"}
    to_do = [_name(requirement) for requirement in project["dependency-groups"]["core"]]
    while to_do:
        name = to_do.pop()
        if name in names:
            continue
        names.add(name)
        try:
            requirements = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # for another platform or an older Python
        to_do += [_name(requirement) for requirement in requirements if "extra ==" not in requirement]
    return names


class CoreOnly:
    """The usual finder of modules, without those of other packages."""

    @staticmethod
    def find_distributions(*args: Any, **options: Any) -> Any:
        return PathFinder.find_distributions(*args, **options)

    @staticmethod
    def invalidate_caches() -> None:
        PathFinder.invalidate_caches()

    def __init__(self) -> None:
        core = core_distributions()
        owners = importlib.metadata.packages_distributions()
        self.hidden = {module for module, names in owners.items() if not core & {_name(name) for name in names}}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        is_hidden = fullname.partition(".")[0] in self.hidden
        return None if is_hidden else PathFinder.find_spec(fullname, path, target)


def hide_other_packages() -> None:
    sys.meta_path[sys.meta_path.index(PathFinder)] = CoreOnly()
