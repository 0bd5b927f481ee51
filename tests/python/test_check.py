"""Tests of check(): the same results as from the command."""

import json
import pickle
import subprocess
import sys

import pytest

import pprofdiff
from conftest import pair, profile


def _run(kilobytes: int) -> bytes:
    """Builds a profile with a sample per 1000 bytes. The appended field is the period."""
    return profile([(["main", "work"], kilobytes * 1000, {})], last=b"\x60\xe8\x07")


def test_growth_within_chance_is_inconclusive():
    base, new, twice = (_run(kb) for kb in (1000, 1150, 2000))
    check = pprofdiff.check(base, new, ["total>+10%"])
    finding = check.rules[0]["findings"][0]
    assert (check.verdict, check.exit_code) == ("inconclusive", 3)
    assert finding["p"] == finding["p_adjusted"] > 0.01
    assert finding["runs_needed"] > 2
    assert pprofdiff.check(base, new, ["total>+10%"], strict=True).verdict == "fail"
    assert pprofdiff.check(base, twice, ["total>+10%"]).verdict == "fail"
    passed = pprofdiff.check(base, base, ["total>+10%"])
    assert passed.verdict == "pass"
    assert passed.rules[0]["detectable"] > 10
    assert pprofdiff.check(base, base, ["total>+10%"], require_power=True).verdict == "inconclusive"


def test_pairing_removes_noise_that_runs_share():
    base = [_run(kb) for kb in (1000, 1500, 700)]
    new = [_run(kb) for kb in (1250, 1875, 875)]
    assert pprofdiff.check(base, new, ["total>+10%"]).verdict == "inconclusive"
    assert pprofdiff.check(base, new, ["total>+10%"], paired=True).verdict == "fail"
    with pytest.raises(pprofdiff.PprofError, match="same number of runs on both sides"):
        pprofdiff.check(base, new[:2], ["total>+10%"], paired=True)


def test_check_gives_the_same_results_as_the_command(tmp_path):
    base, new = pair("story-cpu")
    rules = ["total>+5%", "flat:any>+10%", "cum:regex=^logmill/names>+50ms"]
    check = pprofdiff.check(base, new, rules)
    assert (check.verdict, check.exit_code) == ("fail", 1)
    fail_on = [arg for rule in rules for arg in ("--fail-on", rule)]
    for kind, ours in [("json", check.to_json()), ("markdown", check.to_markdown()), ("text", f"{check!r}\n")]:
        command = [sys.executable, "-m", "pprofdiff", "check", base, new, *fail_on, "--format", kind]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, ours)
    facts = json.loads(check.to_json())
    assert (check.rules, check.warnings) == (facts["rules"], facts["warnings"])
    again = pickle.loads(pickle.dumps(check))
    assert (again.to_json(), again.verdict, repr(again)) == (check.to_json(), "fail", repr(check))
    assert (again.exit_code, again.rules) == (1, check.rules)
    assert isinstance(again, pprofdiff.Rendered)


def test_a_check_is_written_for_ci_systems_as_by_the_command(tmp_path):
    base, new = map(str, pair("story-cpu"))
    check = pprofdiff.check(base, new, ["total>+5%"])
    again = pickle.loads(pickle.dumps(check))
    contents = {"junit.xml": check.to_junit(), "x.sarif": check.to_sarif(), "x.github": check.to_github()}
    contents |= {"x.md": check.to_markdown(), "x.json": check.to_json(), "x.txt": check.to_text()}
    for name, content in contents.items():
        command = [sys.executable, "-m", "pprofdiff", "check", base, new, "--fail-on", "total>+5%", "-o", name]
        assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 1
        assert (tmp_path / name).read_text() == content
        (tmp_path / name).unlink()
        again.save(tmp_path / name)
        assert (tmp_path / name).read_text() == content
    with pytest.raises(pprofdiff.PprofError, match=r"x\.html: .*\.txt, \.md, \.json, \.xml, \.sarif or \.github"):
        check.save(tmp_path / "x.html")
    explanation = pprofdiff.diff(base, new).explain()
    explanation.save(tmp_path / "why.md")
    assert (tmp_path / "why.md").read_text() == explanation.to_markdown()
    with pytest.raises(pprofdiff.PprofError, match=r"x\.sarif: the file name must end in \.txt, \.md or \.json"):
        explanation.save(tmp_path / "x.sarif")


def test_a_single_rule_is_a_string():
    base, new = pair("story-cpu")
    alone, listed = (pprofdiff.check(base, new, rule) for rule in ("total>+5%", ["total>+5%"]))
    assert alone.to_json() == listed.to_json()
    with pytest.raises(TypeError, match="fail_on"):
        pprofdiff.check(base, new, 5)


@pytest.mark.parametrize("how", ["total", "duration", 0.25])
def test_normalized_values_equal_the_table(how):
    base, new = pair("story-cpu")
    rows = {r["name"]: r for r in pprofdiff.diff(base, new).normalize(how).top()}
    check = pprofdiff.check(base, new, ["flat:any>-100000%"], floor=0, normalize=how, strict=True)
    findings = check.rules[0]["findings"]
    assert len(findings) > 20
    for f in findings:
        row = rows[f["frame"]]
        assert (f["base"]["values"], f["new"]["values"]) == ([row["flat_base"]], [row["flat_new"]])
    with pytest.raises(pprofdiff.PprofError, match="normalize must be total, duration"):
        pprofdiff.check(base, new, ["total>+5%"], normalize="half")


def test_values_equal_the_table():
    base, new = pair("go-heap")
    rows = {r["name"]: r for r in pprofdiff.diff(base, new).top(sample_type="inuse_space")}
    check = pprofdiff.check(base, new, ["inuse_space:cum:any>-100000%"], floor=0, strict=True)
    findings = check.rules[0]["findings"]
    assert {f["frame"] for f in findings} == {name for name, r in rows.items() if r["cum_base"] or r["cum_new"]}
    for f in findings:
        row = rows[f["frame"]]
        assert (f["base"]["values"], f["new"]["values"]) == ([row["cum_base"]], [row["cum_new"]])


def test_the_configuration_file_sets_rules_and_allowed_frames(tmp_path):
    base, new = pair("story-cpu")
    config = tmp_path / "limits.toml"
    config.write_text("[check]\nrules = ['total>+5%']\n[[check.allow]]\nrule = 'total>+5%'\nreason = 'a longer run'\n")
    check = pprofdiff.check(base, new, config=config, strict=True)
    assert check.verdict == "pass"
    assert check.rules[0]["findings"][0]["reason"] == "a longer run"
    with pytest.raises(FileNotFoundError):
        pprofdiff.check(base, new, config=tmp_path / "none.toml")
    config.write_text("[check]\nruler = 3")
    with pytest.raises(pprofdiff.PprofError, match="line 2"):
        pprofdiff.check(base, new, config=config)


def test_invalid_rules_and_options_are_errors():
    base, new = pair("story-cpu")
    for rules in [["total"], []]:
        with pytest.raises(pprofdiff.PprofError):
            pprofdiff.check(base, new, rules)
    with pytest.raises(pprofdiff.PprofError, match="floor"):
        pprofdiff.check(base, new, ["flat>+1%"], floor=-1)
    with pytest.raises(FileNotFoundError):
        pprofdiff.check("none", new, ["total>+5%"])


def test_an_unknown_outcome_of_same_code_is_an_error() -> None:
    with pytest.raises(pprofdiff.PprofError, match='same_code must be "warn", "fail" or "ignore"'):
        pprofdiff.check(b"", b"", ["total>+5%"], same_code="never")  # type: ignore[arg-type]
