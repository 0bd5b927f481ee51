"""Tests of the pytest plugin: base profiles, failures, skips, updates, xdist, and the cost of an unused plugin."""

import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

import pprofdiff
from conftest import pair, profile
from pytest_pprofdiff import base_name

pytest_plugins = ["pytester"]

BASE, NEW = pair("story-cpu")


def _run(kilobytes: int) -> bytes:
    """Builds a profile with a sample per 1000 bytes. The appended field is the period."""
    return profile([(["main", "work"], kilobytes * 1000, {})], last=b"\x60\xe8\x07")


class Project:
    """A folder with one test file, and profiles that its tests read."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.folder = pytester.path
        # The settings of the enclosing test session do not apply.
        pytester.makeini("[pytest]\naddopts = -p no:cacheprovider\n")

    def tests(self, source: str) -> None:
        self.pytester.makepyfile(test_it=source)

    def put(self, name: str, content: bytes) -> None:
        (self.folder / name).write_bytes(content)

    def run(self, *arguments: str) -> pytest.RunResult:
        return self.pytester.runpytest_inprocess("-rs", *arguments)

    def update(self, *arguments: str) -> pytest.RunResult:
        return self.run("--pprofdiff-base", "bases", "--pprofdiff-update", *arguments)

    def compare(self, *arguments: str) -> pytest.RunResult:
        return self.run("--pprofdiff-base", "bases", *arguments)

    def files(self) -> list[str]:
        bases = self.folder / "bases"
        return sorted(path.relative_to(bases).as_posix() for path in bases.rglob("*") if path.is_file())


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    return Project(pytester)


def test_a_base_is_written_and_later_profiles_are_compared_with_it(project: Project):
    project.put("cpu.pb.gz", BASE.read_bytes())
    project.tests("""
        def test_cost(assert_no_regression):
            check = assert_no_regression("cpu.pb.gz")
            assert check is None or check.verdict == "pass"
    """)
    done = project.update()
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["*= pprofdiff =*", "wrote 1 base profile to *bases", "  test_it/test_cost.pb.gz"])
    assert project.files() == ["test_it/test_cost.pb.gz"]
    assert pprofdiff.diff(BASE, project.folder / "bases/test_it/test_cost.pb.gz").top(1)[0]["flat_delta"] == 0
    project.compare().assert_outcomes(passed=1)


def test_a_regression_fails_with_the_rule_the_numbers_and_the_cause(project: Project):
    project.put("cpu.pb.gz", BASE.read_bytes())
    project.tests("""
        def test_cost(assert_no_regression):
            assert_no_regression("cpu.pb.gz")
    """)
    project.update()
    project.put("cpu.pb.gz", NEW.read_bytes())
    done = project.compare("--junit-xml=out.xml")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            '>*assert_no_regression("cpu.pb.gz")',
            "E*AssertionError: total>+5%: cpu: 1.90s -> 2.93s  +1.03s  +54.2%  p = 0.005, limit 0.01",
            "E*why: logmill/names.compare (*names.go:19) now calls logmill/names.canonical: +1.39s (+73%)",
            "E*compare: pprofdiff *test_cost.pb.gz cpu.pb.gz",
        ]
    )
    # The traceback ends at the line of the test.
    assert "pytest_pprofdiff" not in done.stdout.str()
    failure = ET.parse(project.folder / "out.xml").find(".//testcase/failure")
    assert failure is not None
    message = failure.get("message")
    assert message is not None
    assert message.startswith("AssertionError: total>+5%: cpu: 1.90s -> 2.93s")
    assert len(message.splitlines()) <= 5
    assert "pytest_pprofdiff" not in (failure.text or "")


def test_the_default_rule_is_not_used_if_rules_are_given(project: Project):
    project.put("new.pb", _run(2000))
    project.tests("""
        import pytest

        def test_total(assert_no_regression):
            assert_no_regression("new.pb", "total>+150%")

        def test_rules(assert_no_regression):
            with pytest.raises(AssertionError, match=r"^flat:any>\\+20%: work: .* p < 0.001, limit 0.01\\n"):
                assert_no_regression("new.pb", ["total>+150%", "flat:any>+20%"])

        def test_options(assert_no_regression):
            assert_no_regression("new.pb", ignore="work", name="ignored")
    """)
    project.update()
    bases = project.folder / "bases/test_it"
    for base in bases.iterdir():
        pprofdiff.load(_run(1000)).write(base)
    done = project.compare()
    # A filter that removes every sample decides nothing.
    done.assert_outcomes(passed=2, skipped=1)
    done.stdout.fnmatch_lines(["SKIPPED * inconclusive: total>+5%*"])


def test_rules_come_from_the_configuration_in_the_root_folder(project: Project):
    project.put("new.pb", _run(1000))
    project.put("pprofdiff.toml", b'[check]\nrules = ["flat:any>+50%"]\n')
    project.tests("""
        def test_cost(assert_no_regression):
            assert_no_regression("new.pb")
    """)
    project.update()
    project.put("new.pb", _run(2000))
    done = project.compare()
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["E*AssertionError: flat:any>+50%: work: *"])


def test_bytes_profiles_and_runs_are_compared(project: Project):
    project.put("one.pb", _run(1000))
    project.tests("""
        from pathlib import Path
        import io
        import pprofdiff

        def test_forms(assert_no_regression):
            one = Path("one.pb")
            forms = {"path": one, "bytes": one.read_bytes(), "file": io.BytesIO(one.read_bytes())}
            for name, form in forms.items():
                assert_no_regression(form, name=name)
            assert_no_regression(pprofdiff.load(one), name="profile")

        def test_runs(assert_no_regression):
            check = assert_no_regression([Path("one.pb")] * 3, strict=True)
            assert check is None or check.verdict == "pass"
    """)
    project.update().assert_outcomes(passed=2)
    forms = [f"test_it/test_forms.{name}.pb.gz" for name in ("bytes", "file", "path", "profile")]
    assert project.files() == [*forms, *(f"test_it/test_runs.{i}.pb.gz" for i in (1, 2, 3))]
    project.compare().assert_outcomes(passed=2)
    # With another number of runs, an update leaves no earlier run behind.
    project.tests("""
        def test_runs(assert_no_regression):
            assert_no_regression("one.pb")
    """)
    project.update()
    assert project.files() == [*forms, "test_it/test_runs.pb.gz"]


def test_an_inconclusive_check_is_a_skip_unless_the_test_fails(project: Project):
    project.put("new.pb", _run(1000))
    project.tests("""
        def test_skipped(assert_no_regression):
            assert_no_regression("new.pb", "total>+10%")

        def test_failed(assert_no_regression):
            assert_no_regression("new.pb", "total>+10%")
            assert False, "the test continues"
    """)
    project.update()
    project.put("new.pb", _run(1150))
    done = project.compare("--junit-xml=out.xml")
    done.assert_outcomes(skipped=1, failed=1)
    done.stdout.fnmatch_lines(["SKIPPED [[]1[]] test_it.py:*: inconclusive: total>+10%: space: *within chance (p = *"])
    skipped = ET.parse(project.folder / "out.xml").find(".//testcase/skipped")
    assert skipped is not None
    assert (skipped.get("message") or "").startswith("inconclusive: total>+10%: ")


def test_missing_bases_are_skips_and_a_missing_folder_is_an_error(project: Project):
    project.put("new.pb", _run(1000))
    project.tests("""
        ran = []

        def test_cost(assert_no_regression):
            ran.append(1)
            assert assert_no_regression("new.pb") is None

        def test_ran(request):
            assert len(ran) == int(request.config.getoption("pprofdiff_base") is not None)

        def test_requested_by_name(request):
            request.getfixturevalue("assert_no_regression")("new.pb")
    """)
    # Without a folder, nothing is recorded.
    done = project.run()
    done.assert_outcomes(passed=1, skipped=2)
    done.stdout.fnmatch_lines(["SKIPPED *no base profiles: pass --pprofdiff-base DIR"])
    done = project.compare()
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["ERROR: --pprofdiff-base: *bases is not a folder; --pprofdiff-update creates it"])
    done = project.run("--pprofdiff-update")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["ERROR: --pprofdiff-update needs --pprofdiff-base DIR*"])
    (project.folder / "bases").mkdir()
    done = project.compare()
    done.assert_outcomes(passed=1, skipped=2)
    done.stdout.fnmatch_lines(["SKIPPED *no base profile *test_cost.pb.gz; --pprofdiff-update writes it"])
    assert project.files() == []


def test_each_profile_of_a_test_has_its_own_name(project: Project):
    project.put("new.pb", _run(1000))
    project.tests("""
        import pytest

        def test_names(assert_no_regression):
            assert_no_regression("new.pb")
            with pytest.raises(ValueError, match="give each one its own name="):
                assert_no_regression("new.pb")
            with pytest.raises(ValueError, match="use letters, digits"):
                assert_no_regression("new.pb", name="../up")
    """)
    project.update().assert_outcomes(passed=1)
    assert project.files() == ["test_it/test_names.pb.gz"]


def test_workers_of_xdist_write_and_compare(project: Project):
    project.put("new.pb", _run(1000))
    project.tests("""
        import pytest

        @pytest.mark.parametrize("size", range(4))
        def test_cost(assert_no_regression, size):
            assert_no_regression("new.pb")
    """)
    done = project.update("-n2")
    done.assert_outcomes(passed=4)
    done.stdout.fnmatch_lines(["wrote 4 base profiles to *bases"])
    assert project.files() == [f"test_it/test_cost-{i}.pb.gz" for i in range(4)]
    project.put("new.pb", _run(2000))
    project.compare("-n2").assert_outcomes(failed=4)
    project.put("new.pb", _run(1060))
    done = project.compare("-n2")
    done.assert_outcomes(skipped=4)
    done.stdout.fnmatch_lines(["SKIPPED *inconclusive: total>+5%*"])


def test_names_of_bases_are_distinct_paths_below_the_folder():
    for nodeid, expected in [
        ("tests/test_a.py::test_b", "tests/test_a/test_b"),
        ("test_a.py::TestB::test_c[d-1]", "test_a/TestB.test_c-d-1"),
        ("../other/test_a.py::test_b", "_/other/test_a/test_b"),
    ]:
        assert base_name(nodeid) == expected
    odd = [f"test_a.py::test_b[{text}]" for text in ("a/b", "a_b", "a b", "../..", "x" * 300, "x" * 301, "ä")]
    names = [base_name(nodeid) for nodeid in odd]
    assert len(set(names)) == len(names)
    for name in names:
        folder, _, file = name.partition("/")
        assert folder == "test_a"
        assert "/" not in file
        assert len(file) < 200


def test_an_unused_plugin_imports_neither_the_package_nor_the_extension(project: Project):
    project.tests("""
        import sys

        def test_modules():
            assert "pytest_pprofdiff" in sys.modules
            assert not [name for name in sys.modules if name.split(".")[0] == "pprofdiff"]
    """)
    project.pytester.runpytest_subprocess().assert_outcomes(passed=1)
    # pytest has already imported everything that the plugin imports.
    code = "import sys, pytest; before = set(sys.modules); import pytest_pprofdiff; print(set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "{'pytest_pprofdiff'}\n"


def test_the_plugin_is_an_entry_point_and_lists_its_fixture(project: Project):
    done = project.run("--help")
    done.stdout.fnmatch_lines(["profiles (pprofdiff):", "  --pprofdiff-base=DIR*", "  --pprofdiff-update*"])
    project.tests("")
    done = project.run("--fixtures")
    done.stdout.fnmatch_lines(["assert_no_regression*", "*A function that fails the test if a profile costs more*"])
