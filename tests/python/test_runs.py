"""Tests of several runs per side: means, sums on request, and significant rows."""

import json
import pickle
import shutil
from pathlib import Path

import pytest

import pprofdiff
from conftest import CORPUS, pair

FREIGHT = CORPUS / "faults" / "freight"


def side(build: str) -> list[Path]:
    return [FREIGHT / f"{build}-{i}.cpu.pb.gz" for i in (1, 2, 3)]


def test_values_are_means_of_runs_or_sums_on_request() -> None:
    base, new = side("base"), side("calls")
    of_runs, summed = pprofdiff.diff(base, new), pprofdiff.diff(base, new, sum=True)
    means, sums = (json.loads(d.top(sort="cum").to_json()) for d in (of_runs, summed))
    assert (means["sum"], sums["sum"]) == (False, True)
    assert means["total_base"] == round(sums["total_base"] / 3)
    of_row = {row["name"]: row for row in sums["rows"]}
    for row in means["rows"]:
        for column in ("flat_base", "flat_new", "cum_base", "cum_new"):
            # A mean of three integers never ends in a half, so rounding is unambiguous.
            assert row[column] == round(of_row[row["name"]][column] / 3)
    assert "p" not in sums["rows"][0]
    assert 0 <= means["rows"][0]["p"] <= means["rows"][0]["q"]
    # The repr and a pickled copy show the same table.
    assert "mean of 3 runs" in repr(of_runs)
    assert "sum of 3" in repr(summed)
    for d in (of_runs, summed):
        assert pickle.loads(pickle.dumps(d)).top().to_json() == d.top().to_json()
        assert d.filter(focus="tariff").top().to_json() == d.top(focus="tariff").to_json()


def test_significant_rows_are_those_with_a_small_q() -> None:
    d = pprofdiff.diff(side("base"), side("calls"))
    rows = d.top(sort="cum").to_dicts()
    expected = [row for row in rows if row["q"] is not None and row["q"] <= 0.05]
    assert d.top(sort="cum", significant=True).to_dicts() == expected
    assert expected[0]["name"] == "freight/tariff.Make"
    assert len(expected) < len(rows) / 4
    assert expected[0]["base_sd"] > 0
    # A single run per side has no spread of its own.
    one = pprofdiff.diff(side("base")[0], side("calls")[0])
    assert "q" not in one.top().columns
    (first, *_) = one.top(sort="cum", significant=True).to_dicts()
    assert first["name"] == "freight/tariff.Make"
    assert first["base_sd"] is None
    assert first["q"] <= 0.05
    with pytest.raises(pprofdiff.PprofError, match="are not runs"):
        pprofdiff.diff(side("base"), side("calls"), sum=True).top(significant=True)
    with pytest.raises(pprofdiff.PprofError, match="only one profile"):
        pprofdiff.load(side("base")[0]).top(significant=True)


def test_a_pattern_loads_all_matching_files(tmp_path: Path) -> None:
    base, new = pair("story-cpu")
    for i in range(11):
        shutil.copy(base, tmp_path / f"main-{i}.pb.gz")
        shutil.copy(new, tmp_path / f"branch-{i}.pb.gz")
    d = pprofdiff.diff(str(tmp_path / "main-*.pb.gz"), [str(tmp_path / "branch-[12].pb.gz"), new])
    assert [Path(p.name).name for p in d.base] == [f"main-{i}.pb.gz" for i in range(11)]
    assert [Path(p.name).name for p in d.new] == ["branch-1.pb.gz", "branch-2.pb.gz", new.name]
    with pytest.raises(pprofdiff.PprofError, match=r"no file matches .*none-\*"):
        pprofdiff.diff(str(tmp_path / "none-*.pb.gz"), new)
    # An existing file whose name is a pattern is used as a file.
    odd = tmp_path / "main-[1].pb.gz"
    shutil.copy(new, odd)
    assert pprofdiff.diff(base, str(odd)).new[0].name == str(odd)
