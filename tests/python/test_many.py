"""diff_many: in order, bounded, and one bad pair stops nothing."""

import itertools
from collections.abc import Iterator

import pytest

import pprofdiff
from conftest import CORPUS, PAIRS, pair


def test_results_come_in_order():
    pairs = [pair(name) for name in PAIRS] * 4
    results = list(pprofdiff.diff_many(pairs))
    assert [r.pair for r in results] == pairs
    for result, (base, new) in zip(results, pairs, strict=True):
        assert result.error is None
        assert [p.name for p in (*result.diff.base, *result.diff.new)] == [str(base), str(new)]
    assert results[0].diff.top().to_dicts() == pprofdiff.diff(*pairs[0]).top().to_dicts()


def test_a_bad_pair_is_an_item():
    good = pair("go-mutex")
    pairs = [good, ("none", good[1]), good, (b"\xff", good[1]), 3, (good[0], None), ([], good[1]), good]
    results = list(pprofdiff.diff_many(pairs))
    kinds = [type(r.error) for r in results]
    error = pprofdiff.PprofError
    none = type(None)
    assert kinds == [none, FileNotFoundError, none, error, TypeError, TypeError, error, none]
    for result, given in zip(results, pairs, strict=True):
        assert result.pair is given
        assert (result.diff is None) == (result.error is not None)
    assert "FileNotFoundError" in repr(results[1])


def test_collect_gives_what_is_left():
    pairs = [pair("go-mutex"), (b"\xff", pair("go-mutex")[1]), pair("story-cpu")]
    results = pprofdiff.diff_many(pairs)
    assert next(results).error is None
    left = results.collect()
    assert [r.pair for r in left] == pairs[1:]
    assert [r.error is None for r in left] == [False, True]
    assert results.collect() == []
    with pytest.raises(pprofdiff.PprofError):
        pprofdiff.diff_many(pairs, on_error="raise").collect()


def test_on_error_raise():
    good = pair("go-mutex")
    results = pprofdiff.diff_many([good, good, (b"\xff", good[1]), good], on_error="raise")
    assert next(results).diff is not None
    assert next(results).diff is not None
    with pytest.raises(pprofdiff.PprofError):
        next(results)
    assert list(results) == []
    with pytest.raises(pprofdiff.PprofError, match="'collect' or 'raise'"):
        pprofdiff.diff_many([], on_error="ignore")


def test_pairs_are_read_a_few_ahead():
    read = 0

    def pairs() -> Iterator[tuple]:
        nonlocal read
        while True:
            read += 1
            yield pair("go-mutex")

    ahead = 0
    for i, result in enumerate(itertools.islice(pprofdiff.diff_many(pairs()), 200)):
        assert result.error is None
        ahead = max(ahead, read - i)
    assert ahead < 2 * 256  # two for each core
    assert read < 200 + 2 * 256


def test_what_the_pairs_raise_comes_in_its_turn():
    def pairs() -> Iterator[tuple]:
        yield pair("go-mutex")
        yield pair("go-mutex")
        raise LookupError("no more")

    results = pprofdiff.diff_many(pairs())
    assert next(results).error is None
    assert next(results).error is None
    with pytest.raises(LookupError):
        next(results)
    assert list(results) == []


def test_an_interrupt_of_the_pairs_comes_at_once():
    def pairs() -> Iterator[tuple]:
        yield pair("go-mutex")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        next(pprofdiff.diff_many(pairs()))


def test_sources_of_all_kinds():
    base, new = pair("go-heap")
    loaded = pprofdiff.load(base)
    wanted = pprofdiff.diff(base, new).top().to_dicts()
    with new.open("rb") as file:
        pairs = [(loaded, new), (base.read_bytes(), file), ([base], (new,))]
        results = list(pprofdiff.diff_many(pairs))
    assert [r.diff.top().to_dicts() for r in results] == [wanted] * 3
    assert results[0].diff.base[0] is loaded


def test_it_may_be_left_early():
    results = pprofdiff.diff_many(itertools.repeat(pair("story-cpu")))
    next(results)
    del results
    assert pprofdiff.load(CORPUS / "story-cpu.base.pb.gz").n_samples == 156


def test_no_pairs_and_no_iterable():
    assert list(pprofdiff.diff_many([])) == []
    with pytest.raises(TypeError):
        pprofdiff.diff_many(3)


def test_matching():
    match next(pprofdiff.diff_many([pair("go-mutex")])):
        case pprofdiff.Result(_, pprofdiff.Diff() as d, None):
            assert len(d.top()) > 0
        case other:
            pytest.fail(repr(other))
    assert pprofdiff.Result[tuple[str, str]]


def test_the_limit():
    (result,) = pprofdiff.diff_many([pair("go-heap")], inflated_limit=10)
    assert isinstance(result.error, pprofdiff.PprofError)
