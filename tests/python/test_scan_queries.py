"""scan(): a query that polars pushes into the scan returns the same answer as the query over all rows.

1,000 random queries, each a chain of steps with random conditions. A failure names its seed.
"""

import random
from collections.abc import Callable

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import pprofdiff

QUERIES = 1_000
# The number of queries per test. Small tests fail early, and pytest can run them in parallel.
PER_TEST = 50
BUILDS = 8
BROKEN = 3
TEXTS = {
    "build": [str(build) for build in range(BUILDS + 1)],
    "host": ["a", "b", "c"],
    "sample_type": ["samples", "cpu"],
    "unit": ["count", "none"],
    "name": ["main", "a", "b", "none"],
}
COUNTS = {"flat": 160, "cum": 300}


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> list[pl.LazyFrame]:
    """Returns a scan of files, a scan with a bad profile, and a scan of a view of stacks."""
    folder = tmp_path_factory.mktemp("scan")
    listed = []
    for build in range(BUILDS):
        path = folder / f"{build}.folded"
        path.write_text(f"main;a {100 + build}\nmain;b {50 + build}\n")
        host = {"host": "ab"[build % 2]} if build < BUILDS - 1 else {}
        listed.append({"profile": path, "build": build, **host})
    broken = folder / "broken.pb.gz"
    broken.write_bytes(b"no profile")
    failing = [*listed[:BROKEN], {"profile": broken, "build": BUILDS, "host": "a"}, *listed[BROKEN:]]
    return [
        pprofdiff.scan(listed),
        pprofdiff.scan(failing, on_error="collect"),
        pprofdiff.scan(listed, view="tree"),
    ]


def text_condition(random: random.Random, name: str, columns: list[str]) -> pl.Expr:
    column, value, other = pl.col(name), random.choice(TEXTS[name]), pl.col(random.choice(columns))
    return random.choice(
        [
            lambda: column == value,
            lambda: column != value,
            lambda: column >= value,
            lambda: column.is_in(random.choices(TEXTS[name], k=2)),
            lambda: column.str.starts_with(value[0]),
            lambda: column.str.len_chars() == random.choice([1, 4]),
            lambda: column.is_null(),
            lambda: column.eq_missing(pl.lit(None, pl.String)),
            lambda: column.fill_null("a") == value,
            lambda: pl.concat_str(column, pl.lit("x")) == f"{value}x",
            # Conditions that compare rows with each other.
            lambda: column == column.max(),
            lambda: column != column.shift(1),
            lambda: column.is_first_distinct(),
            lambda: column.n_unique() > 2,
            lambda: column == column.min().over(other),
        ]
    )()


def count_condition(random: random.Random, name: str) -> pl.Expr:
    column, value = pl.col(name), random.randrange(COUNTS[name])
    return random.choice(
        [
            lambda: column > value,
            lambda: column.is_between(value, value + 60),
            lambda: column % 2 == 0,
            lambda: (column + column) < 2 * value,
            lambda: column > column.mean(),
            lambda: column.rank("ordinal") <= 7,
            lambda: column.cum_sum() < 5 * value,
        ]
    )()


def condition(random: random.Random, columns: list[str], depth: int = 2) -> pl.Expr:
    def part() -> pl.Expr:
        return condition(random, columns, depth - 1)

    if depth and random.random() < 0.5:
        return random.choice(
            [
                lambda: part() & part(),
                lambda: part() & part(),
                lambda: part() | part(),
                lambda: part() ^ part(),
                lambda: ~part(),
                lambda: pl.when(part()).then(part()).otherwise(part()),
                lambda: pl.any_horizontal(part(), part()),
            ]
        )()
    literals = [pl.lit(True), pl.lit(True), pl.lit(False), pl.lit(None, pl.Boolean), pl.lit("a") == pl.lit("a")]
    names = [name for name in (*TEXTS, *COUNTS) if name in columns]
    if not names or random.random() < 0.15:
        return random.choice([*literals, pl.len() > 3])
    name = random.choice(names)
    return text_condition(random, name, columns) if name in TEXTS else count_condition(random, name)


def step(random: random.Random, columns: list[str]) -> tuple[Callable[[pl.LazyFrame], pl.LazyFrame], list[str]]:
    """Returns one step of a query over these columns, and the columns that remain after it."""
    n = random.randrange(12)
    parts = [condition(random, columns) for _ in range(random.choice([1, 1, 2]))]
    some = random.sample(columns, random.randint(1, len(columns)))
    kinds: list[Callable] = [
        *[lambda: (lambda frame: frame.filter(*parts), columns)] * 5,
        *[lambda: (lambda frame: frame.head(n), columns)] * 3,
        lambda: (lambda frame: frame.tail(n), columns),
        lambda: (lambda frame: frame.slice(n // 3, n), columns),
        lambda: (lambda frame: frame.select(some), some),
        lambda: (lambda frame: frame.with_row_index("place").filter(pl.col("place") % 3 != 1).drop("place"), columns),
        lambda: (lambda frame: frame.sort(columns, nulls_last=True, maintain_order=True), columns),
        lambda: (lambda frame: frame.unique(some, keep="first", maintain_order=True), columns),
        lambda: (lambda frame: frame.with_columns(twice=parts[0]).filter("twice").drop("twice"), columns),
        lambda: (lambda frame: pl.concat([frame.head(n), frame.filter(*parts)]), columns),
    ]
    if "flat" in columns:
        kinds.append(lambda: (lambda frame: frame.with_columns(pl.col("flat") * 2 + 1), columns))
        kinds.append(lambda: (lambda frame: frame.rename({"flat": "cost"}).rename({"cost": "flat"}), columns))
    return random.choice(kinds)()


def query(random: random.Random, columns: list[str]) -> Callable[[pl.LazyFrame], pl.LazyFrame]:
    steps = []
    for _ in range(random.randint(1, 4)):
        one, columns = step(random, columns)
        steps.append(one)
    if random.random() < 0.15:
        steps.append(lambda frame: frame.select(pl.len()))

    def run(frame: pl.LazyFrame) -> pl.LazyFrame:
        for one in steps:
            frame = one(frame)
        return frame

    return run


def answer(ask: Callable[[pl.LazyFrame], pl.LazyFrame], frame: pl.LazyFrame) -> pl.DataFrame | type[Exception]:
    try:
        return ask(frame).collect()
    except pl.exceptions.PolarsError as e:
        return type(e)


@pytest.mark.parametrize("first", range(0, QUERIES, PER_TEST))
def test_pushed_down_queries_equal_queries_over_all_rows(frames: list[pl.LazyFrame], first: int):
    whole = [frame.collect() for frame in frames]
    answered = 0
    for seed in range(first, first + PER_TEST):
        frame, rows = frames[seed % len(frames)], whole[seed % len(frames)]
        ask = query(random.Random(seed), rows.columns)
        pushed, unpushed = answer(ask, frame), answer(ask, rows.lazy())
        if isinstance(pushed, pl.DataFrame) and isinstance(unpushed, pl.DataFrame):
            answered += 1
            try:
                assert_frame_equal(pushed, unpushed)
            except AssertionError as e:
                raise AssertionError(f"query {seed}:\n{ask(frame).explain()}\n{e}") from None
        else:
            assert pushed is unpushed, f"query {seed}: {pushed}, and {unpushed} of all rows"
    assert answered > PER_TEST // 2
