"""check() from Python: the same facts as the command's, and p-values as scipy's."""

import json
import pickle
import random
import subprocess
import sys

import pytest
from scipy import stats

import pprofdiff
from conftest import pair, profile


def _runs(values: list[list[int]]) -> list[bytes]:
    """A profile for each list: a function fI for each value, of which zeros are left out."""
    return [profile([([f"f{i}"], v, {}) for i, v in enumerate(run) if v]) for run in values]


def _p_values(base: list[list[int]], new: list[list[int]]) -> tuple[list[float], list[float]]:
    """p and corrected p of each function, in the order of the functions."""
    # A limit that everything exceeds, so that every frame is a finding.
    check = pprofdiff.check(_runs(base), _runs(new), ["flat:any>-100000%"], floor=0)
    found = {f["frame"]: f for f in check.rules[0]["findings"]}
    in_order = [found[f"f{i}"] for i in range(len(base[0]))]
    return [f["p"] for f in in_order], [f["p_adjusted"] for f in in_order]


@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 3), (3, 5), (5, 5), (8, 4), (10, 10)])
def test_p_values_without_ties(n, m):
    rng = random.Random(n * 100 + m)
    frames = 12
    columns = [rng.sample(range(1, 10_000), n + m) for _ in range(frames)]
    base = [[c[i] for c in columns] for i in range(n)]
    new = [[c[n + i] for c in columns] for i in range(m)]
    p, adjusted = _p_values(base, new)
    wanted = [stats.mannwhitneyu(c[:n], c[n:], method="exact").pvalue for c in columns]
    assert p == pytest.approx(wanted, abs=1e-12)
    assert adjusted == pytest.approx(stats.false_discovery_control(wanted), abs=1e-12)


@pytest.mark.parametrize(("n", "m"), [(3, 3), (4, 5)])
def test_p_values_with_ties_are_those_of_all_permutations(n, m):
    rng = random.Random(n)
    columns = [[rng.randint(1, 4) for _ in range(n + m)] for _ in range(8)]
    base = [[c[i] for c in columns] for i in range(n)]
    new = [[c[n + i] for c in columns] for i in range(m)]
    p, adjusted = _p_values(base, new)

    def ranks(x, y):
        return stats.rankdata([*x, *y])[: len(x)].sum()

    def wanted(c):
        done = stats.permutation_test((c[:n], c[n:]), ranks, vectorized=False, n_resamples=10**6, axis=0)
        return done.pvalue

    want = [wanted(c) for c in columns]
    assert p == pytest.approx(want, abs=1e-9)
    assert adjusted == pytest.approx(stats.false_discovery_control(want), abs=1e-9)


@pytest.mark.parametrize("ties", [False, True])
def test_p_values_of_many_runs(ties):
    rng = random.Random(ties)
    n, m = 30, 25
    columns = [[rng.randint(1, 9) + k if ties else rng.randint(1, 10**9) for k in [0] * n + [1] * m] for _ in range(10)]
    base = [[c[i] for c in columns] for i in range(n)]
    new = [[c[n + i] for c in columns] for i in range(m)]
    p, adjusted = _p_values(base, new)
    want = [stats.mannwhitneyu(c[:n], c[n:], method="asymptotic").pvalue for c in columns]
    assert p == pytest.approx(want, rel=1e-9)
    assert adjusted == pytest.approx(stats.false_discovery_control(want), rel=1e-9)


def test_three_against_three_cannot_go_below_a_tenth():
    p, _ = _p_values([[1], [2], [3]], [[100], [200], [300]])
    assert p == [pytest.approx(0.1)]


def test_the_same_facts_as_the_command(tmp_path):
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


@pytest.mark.parametrize("how", ["total", "duration", 0.25])
def test_normalized_values_are_those_of_the_table(how):
    base, new = pair("story-cpu")
    rows = {r["name"]: r for r in pprofdiff.diff(base, new).normalize(how).top()}
    check = pprofdiff.check(base, new, ["flat:any>-100000%"], floor=0, normalize=how)
    found = check.rules[0]["findings"]
    assert len(found) > 20
    for f in found:
        row = rows[f["frame"]]
        assert (f["base"]["values"], f["new"]["values"]) == ([row["flat_base"]], [row["flat_new"]])
    with pytest.raises(pprofdiff.PprofError, match="normalize is total, duration"):
        pprofdiff.check(base, new, ["total>+5%"], normalize="half")


def test_values_are_those_of_the_table():
    base, new = pair("go-heap")
    rows = {r["name"]: r for r in pprofdiff.diff(base, new).top(sample_type="inuse_space")}
    check = pprofdiff.check(base, new, ["inuse_space:cum:any>-100000%"], floor=0)
    found = check.rules[0]["findings"]
    assert {f["frame"] for f in found} == {name for name, r in rows.items() if r["cum_base"] or r["cum_new"]}
    for f in found:
        row = rows[f["frame"]]
        assert (f["base"]["values"], f["new"]["values"]) == ([row["cum_base"]], [row["cum_new"]])


def test_the_configuration(tmp_path):
    base, new = pair("story-cpu")
    config = tmp_path / "limits.toml"
    config.write_text("[check]\nrules = ['total>+5%']\n[[check.allow]]\nrule = 'total>+5%'\nreason = 'a longer run'\n")
    check = pprofdiff.check(base, new, config=config)
    assert check.verdict == "pass"
    assert check.rules[0]["findings"][0]["reason"] == "a longer run"
    with pytest.raises(FileNotFoundError):
        pprofdiff.check(base, new, config=tmp_path / "none.toml")
    config.write_text("[check]\nruler = 3")
    with pytest.raises(pprofdiff.PprofError, match="line 2"):
        pprofdiff.check(base, new, config=config)


def test_what_is_not_understood():
    base, new = pair("story-cpu")
    for rules in [["total"], []]:
        with pytest.raises(pprofdiff.PprofError):
            pprofdiff.check(base, new, rules)
    with pytest.raises(pprofdiff.PprofError, match="floor"):
        pprofdiff.check(base, new, ["flat>+1%"], floor=-1)
    with pytest.raises(FileNotFoundError):
        pprofdiff.check("none", new, ["total>+5%"])
