"""Tests that all objects can be pickled and copied."""

import copy
import pickle

import pytest

import pprofdiff
from conftest import PAIRS, pair


def pickled_copy(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("name", PAIRS)
def test_profiles_can_be_pickled(name: str):
    p = pprofdiff.load(pair(name)[1])
    q = pickled_copy(p)
    assert (q.name, q.to_bytes("none")) == (p.name, p.to_bytes("none"))
    assert q.top().to_dicts() == p.top().to_dicts()
    assert len(pickle.dumps(p)) < len(p.to_bytes("none")) + 1000


def test_diffs_can_be_pickled(story: pprofdiff.Diff):
    for d in (
        story,
        story.filter(focus="canonical", ignore="TrimSpace"),
        story.normalize(0.1).filter(hide="main"),
        story.normalize("total"),
        story.new[0].filter(focus="canonical"),
        pprofdiff.load(story.to_bytes()).filter(focus="canonical"),
        pprofdiff.diff(story.base * 2, story.new),
    ):
        e = pickled_copy(d)
        assert type(e) is type(d)
        assert e.top().to_json() == d.top().to_json()
        assert [p.name for p in e.base + e.new] == [p.name for p in d.base + d.new]


def test_a_shared_profile_is_pickled_once():
    p, q = (pprofdiff.load(path) for path in pair("story-cpu"))
    diffs = pickled_copy([pprofdiff.diff(p, q), pprofdiff.diff(q, p)])
    assert diffs[0].base[0] is diffs[1].new[0]


def test_tables_can_be_pickled(labelled: pprofdiff.Diff):
    tables = [
        labelled.top(),
        labelled.top(granularity="addresses"),
        labelled.stacks(labels=True)[3:7],
        labelled.labels(),
        labelled.normalize(1 / 3).tree(4),
        labelled.peek("main"),
        labelled.new[0].top(0),
    ]
    for table in tables:
        copied = pickled_copy(table)
        assert copied.to_json() == table.to_json()
        assert repr(copied) == repr(table)
        assert copied._repr_html_() == table._repr_html_()


@pytest.mark.parametrize("source", [b"", b"\xff", "no such file", 3])
def test_errors_can_be_pickled(source: object):
    with pytest.raises((pprofdiff.PprofError, OSError, TypeError)) as caught:
        pprofdiff.load(source)
    e = caught.value
    copied = pickled_copy(e)
    assert type(copied) is type(e)
    assert str(copied) == str(e)
    assert vars(copied) == vars(e)


def test_results_can_be_pickled():
    for result in pprofdiff.batch([pair("story-cpu"), (b"", b"")]):
        copied = pickled_copy(result)
        assert copied.pair == result.pair
        assert str(copied.error) == str(result.error)
        assert (copied.diff is None) == (result.diff is None)


def test_diffs_can_be_copied(story: pprofdiff.Diff):
    for copied in (copy.copy(story), copy.deepcopy(story)):
        assert copied.top().to_dicts() == story.top().to_dicts()


@pytest.mark.parametrize("function", ["_rebuild_table", "_rebuild_diff", "_rebuild_profile"])
def test_a_foreign_pickle_is_an_error(function: str):
    arguments = {
        "_rebuild_table": (b"{}",),
        "_rebuild_diff": ([], [], True, b"{}"),
        "_rebuild_profile": ("a", b""),
    }
    with pytest.raises((ValueError, TypeError)):
        getattr(pprofdiff._native, function)(*arguments[function])


def test_flame_graphs_can_be_pickled(story: pprofdiff.Diff):
    graph = story.flamegraph()
    assert pickled_copy(graph)._repr_html_() == graph._repr_html_()
    assert repr(pickled_copy(graph)) == repr(graph)
