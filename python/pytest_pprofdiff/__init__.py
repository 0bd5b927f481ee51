"""The pytest plugin: `--pprofdiff-base DIR`, `--pprofdiff-update`, and the fixture `assert_no_regression`.

pytest imports this module in every session of an environment with pprofdiff. It is a package of its own because an
import of `pprofdiff` loads the extension module, which the fixture does only when a test uses it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    import pprofdiff

__all__ = ["RegressionCheck", "assert_no_regression"]

# The rule of a call without rules, in a project without a pprofdiff.toml.
DEFAULT_RULE = "total>+5%"
FAILURES = {"fail", "unmatched"}
# The most bytes of a file name, without its ending. File systems allow 255.
MAX_NAME = 180
# Reasons why a test compared nothing or decided nothing. Such a test is skipped if it passes otherwise.
UNDECIDED = pytest.StashKey[list[str]]()
# The property of a test that wrote a base profile. xdist sends properties to the process that prints the summary.
UPDATED = "pprofdiff_updated"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options."""
    group = parser.getgroup("pprofdiff", "profiles (pprofdiff)")
    group.addoption(
        "--pprofdiff-base",
        metavar="DIR",
        help="compare the profiles of tests that use assert_no_regression with the base profiles in DIR",
    )
    group.addoption(
        "--pprofdiff-update",
        action="store_true",
        help="write the base profiles of the selected tests to --pprofdiff-base, and compare nothing",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Checks the options. Only sessions with a folder of base profiles get the hooks that run for each test."""
    base, update = config.getoption("pprofdiff_base"), config.getoption("pprofdiff_update")
    if base is None:
        if update:
            raise pytest.UsageError("--pprofdiff-update needs --pprofdiff-base DIR, the folder to write to")
        return
    folder = config.invocation_params.dir / base
    if not update and not folder.is_dir():
        raise pytest.UsageError(f"--pprofdiff-base: {folder} is not a folder; --pprofdiff-update creates it")
    config.pluginmanager.register(_Comparing(folder, update), "pprofdiff-comparing")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips the tests of profiles in a session without base profiles, before they record anything."""
    if config.getoption("pprofdiff_base") is None:
        reason = pytest.mark.skip(reason="no base profiles: pass --pprofdiff-base DIR")
        for item in items:
            if "assert_no_regression" in getattr(item, "fixturenames", ()):
                item.add_marker(reason)


class _Comparing:
    """The hooks of a session that compares or writes profiles."""

    def __init__(self, folder: Path, update: bool) -> None:
        self.folder, self.update = folder, update

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Reports a test that passes without a decision as skipped.

        The test itself continues after such a comparison, so that a later one can still fail.
        """
        report = yield
        reasons = item.stash.get(UNDECIDED, None)
        if reasons and report.when == "call" and report.passed:
            report.outcome = "skipped"
            report.longrepr = (str(item.path), (item.location[1] or 0) + 1, f"Skipped: {'; '.join(reasons)}")
        return report

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Lists the base profiles that were written."""
        if self.update:
            reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
            called = [report for report in reports if report.when == "call"]
            files = [value for report in called for name, value in report.user_properties if name == UPDATED]
            terminalreporter.section("pprofdiff")
            terminalreporter.line(f"wrote {len(files)} base profile{'' if len(files) == 1 else 's'} to {self.folder}")
            for file in files:
                terminalreporter.line(f"  {os.path.relpath(str(file), self.folder)}")


class RegressionCheck:
    """The value of the fixture `assert_no_regression`: a function that compares a profile with the test's base."""

    def __init__(self, node: pytest.Item) -> None:
        self._node = node
        self._names: set[str] = set()

    def __repr__(self) -> str:
        # pytest prints the values of fixtures above a failure.
        return f"<compares profiles of {self._node.nodeid}>"

    def __call__(
        self,
        profile: Any,
        fail_on: str | Sequence[str] | None = None,
        *,
        name: str | None = None,
        config: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> pprofdiff.Check | None:
        """Fails the test if the profile exceeds a limit, compared with the base profile of this test.

        `profile` is anything that pprofdiff.load() accepts, such as a path, bytes or a Profile. A list of them is runs.
        `fail_on` is a rule or a list of rules. Rules and exceptions also come from `config`, by default from the
        pprofdiff.toml in pytest's root folder. Without both, the rule is total>+5%. `name` distinguishes several
        profiles of one test. For the other keywords see pprofdiff.check().

        Returns the Check, or None if there is nothing to compare with. A test without a base profile, and a test with
        an inconclusive check, continues, and counts as skipped if it passes.
        """
        __tracebackhide__ = True
        comparing = self._node.config.pluginmanager.get_plugin("pprofdiff-comparing")
        if comparing is None:
            # pytest skips a test that names the fixture. This one got it from request.getfixturevalue().
            pytest.skip("no base profiles: pass --pprofdiff-base DIR")
        base = self._base_of(comparing.folder, name)
        runs = list(profile) if isinstance(profile, list | tuple) else [profile]
        if comparing.update:
            _write(base, runs, options)
            self._node.user_properties.append((UPDATED, f"{base}.pb.gz"))
            return None
        files = _files_of(base)
        if not files:
            self._undecided(f"no base profile {base}.pb.gz; --pprofdiff-update writes it")
            return None
        return self._check(files, runs, fail_on, config, options)

    def _check(
        self,
        files: list[Path],
        runs: list[Any],
        fail_on: str | Sequence[str] | None,
        config: str | os.PathLike[str] | None,
        options: dict[str, Any],
    ) -> pprofdiff.Check:
        __tracebackhide__ = True
        import pprofdiff

        rules = [fail_on] if isinstance(fail_on, str) else list(fail_on or ())
        if config is None and (default := self._node.config.rootpath / "pprofdiff.toml").is_file():
            config = default
        if not rules and config is None:
            rules = [DEFAULT_RULE]
        check = pprofdiff.check(files, runs, rules, config=config, **options)
        if check.verdict in FAILURES:
            raise AssertionError(_failure(check, files, runs))
        if check.verdict == "inconclusive":
            undecided = [lines for lines in check._lines() if lines[1] == "inconclusive"]
            self._undecided(f"inconclusive: {'; '.join(_headline(rule, found) for rule, _, found, _ in undecided)}")
        return check

    def _undecided(self, reason: str) -> None:
        self._node.stash.setdefault(UNDECIDED, []).append(reason)

    def _base_of(self, folder: Path, name: str | None) -> Path:
        """Returns the path of the test's base profile, without the ending."""
        if name is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", name):
            raise ValueError(f"name={name!r}: use letters, digits, _ and -, beginning with a letter")
        if (name or "") in self._names:
            raise ValueError("this test has already compared a profile of this name; give each one its own name=")
        self._names.add(name or "")
        path = folder / base_name(self._node.nodeid)
        return path.with_name(f"{path.name}.{name}") if name else path


@pytest.fixture
def assert_no_regression(request: pytest.FixtureRequest) -> RegressionCheck:
    """A function that fails the test if a profile costs more than the base profile of this test.

    For example `assert_no_regression("cpu.pb.gz", "flat:any>+20%")`. The base profiles are in --pprofdiff-base.
    """
    return RegressionCheck(request.node)


def base_name(nodeid: str) -> str:
    """Returns the path of a test's base profile below the folder, without the ending.

    `tests/test_a.py::TestB::test_c[d-1]` becomes `tests/test_a/TestB.test_c-d-1`. A hash of the test's id follows if
    other characters had to be replaced or if the name is too long, so that each test has its own file.
    """
    path, *names = nodeid.split("::")
    folders = [re.sub(r"[^\w.-]", "_", part).lstrip(".") or "_" for part in path.removesuffix(".py").split("/")]
    function, bracket, parameters = ".".join(names).partition("[")
    plain = function + (f"-{parameters.removesuffix(']')}" if bracket else "")
    safe = re.sub(r"[^A-Za-z0-9_.=+-]", "_", plain)
    if safe != plain or len(safe) > MAX_NAME:
        from hashlib import sha256

        safe = f"{safe[:MAX_NAME]}-{sha256(nodeid.encode()).hexdigest()[:8]}"
    return "/".join([*folders, safe])


def _files_of(base: Path) -> list[Path]:
    """Returns the base profiles: one file, or one for each run (`test_c.1.pb.gz`, `test_c.2.pb.gz`)."""
    number = re.compile(re.escape(base.name) + r"(?:\.(\d+))?\.pb\.gz")
    found = [(number.fullmatch(path.name), path) for path in base.parent.glob("*.pb.gz")]
    return [path for _, path in sorted((int(match[1] or 0), path) for match, path in found if match)]


def _write(base: Path, runs: list[Any], options: dict[str, Any]) -> None:
    """Writes the runs as base profiles, and then removes the files of earlier runs."""
    import pprofdiff
    from pprofdiff.types import LoadOptions

    loading = {key: value for key, value in options.items() if key in LoadOptions.__annotations__}
    profiles = [run if isinstance(run, pprofdiff.Profile) else pprofdiff.load(run, **loading) for run in runs]
    base.parent.mkdir(parents=True, exist_ok=True)
    numbers = [""] if len(profiles) == 1 else [f".{i}" for i in range(1, len(profiles) + 1)]
    files = [base.with_name(f"{base.name}{number}.pb.gz") for number in numbers]
    for file, profile in zip(files, profiles, strict=True):
        profile.write(file)
    for stale in set(_files_of(base)) - set(files):
        stale.unlink()


def _headline(rule: str, findings: list[str]) -> str:
    return f"{rule}: {findings[0]}" if findings else rule


def _failure(check: pprofdiff.Check, files: list[Path], runs: list[Any]) -> str:
    """Returns the message: each failed or unmatched rule with its worst finding and the causes, and how to see more."""
    lines = []
    for rule, outcome, findings, causes in check._lines():
        if outcome in FAILURES:
            lines.append(_headline(rule, findings))
            lines += [f"  and {finding}" for finding in findings[1:]]
            lines += [f"  why: {cause}" for cause in causes]
    paths = [str(run) for run in runs if isinstance(run, str | os.PathLike)]
    if len(paths) == len(runs):
        import shlex

        base, new = ([str(file) for file in files], paths)
        sides = [*base, *new] if len(base) == len(new) == 1 else ["--base", *base, "--new", *new]
        lines.append(f"  compare: pprofdiff {shlex.join(sides)}")
    else:
        lines.append(f"  base: {', '.join(map(str, files))}")
    return "\n".join(lines)
