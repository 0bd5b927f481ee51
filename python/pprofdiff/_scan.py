"""Many profiles as one lazy frame of polars, whose query decides which of them are opened.

Profiles with keys are found when the frame is made. When its query runs, its conditions on keys leave some of them,
which threads load; what they make is filtered and cut at once, and handed on in order.
"""

from . import _native

# As in `typing`, whose import takes longer than that of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike
    from typing import Any, Literal, Unpack

    import polars

    from ._native import _Source
    from .types import ViewAndLoadOptions

# A profile of which the columns of a view are made.
_SAMPLE = b"main;run 1\n"
# Profiles under way, for each core: enough that none waits while the oldest is slow.
_AHEAD = 2


def scan(
    profiles: "str | PathLike[str] | Iterable[_Source | dict[str, Any]]",
    keys: "str | None" = None,
    *,
    view: "Literal['top', 'stacks', 'tree']" = "top",
    on_error: "Literal['collect', 'raise']" = "raise",
    **options: "Unpack[ViewAndLoadOptions]",
) -> "polars.LazyFrame":
    """Profiles as a polars.LazyFrame: the rows of a view of each, beside its keys. Needs polars.

    `profiles` is a pattern (of URLs, too), of whose paths and labels `keys` are made ("service={1},version={version}":
    {1} is what its first sign stands for, {version} the value of that label); a manifest, of which they are columns
    ("service,version", or all that it has); a store, or a part of one ("fleet/service=api"), which has its own; or an
    iterable of whatever load() takes, or of dicts with that as "profile" and keys beside it.

    Columns: the keys (text), profile (its name), sample_type, unit, then those of the view of one profile: see
    Views.top(). A profile has rows for each of its sample types.

    A profile is opened if the query's conditions on keys, and on profile, can be true of it; its rows are made for the
    sample types that conditions on sample_type and unit let through. Only what the query keeps of them stays in memory.

    With `on_error="collect"` a profile that fails is one row, with its keys and with the reason in a column error;
    with "raise" the query fails. The other keywords are those of load() and of all views.

    Raises PprofError for what can't be asked, or if nothing matches; OSError from the system.
    """
    import polars.io.plugins

    if view not in ("top", "stacks", "tree"):
        raise _native.PprofError(f"view is 'top', 'stacks' or 'tree', not {view!r}")
    if on_error not in ("collect", "raise"):
        raise _native.PprofError(f"on_error is 'collect' or 'raise', not {on_error!r}")
    job = _Scan(_keyed(profiles, keys), view, on_error == "collect", options)
    return polars.io.plugins.register_io_source(job, schema=job.schema, is_pure=True)


def _keyed(profiles, keys):
    """Profiles, as load() takes them, each with its keys."""
    if isinstance(profiles, str) or hasattr(profiles, "__fspath__"):
        return _native._listed_files(profiles, keys)
    found = []
    for profile in profiles:
        columns = {}
        if isinstance(profile, dict):
            columns = {name: str(value) for name, value in profile.items() if name != "profile"}
            profile = profile["profile"]
        if keys is not None:
            columns = {name: columns[name] for name in keys.split(",")}
        found.append((profile, columns))
    return found


def _conditions(predicate):
    """The parts of a condition that all have to hold."""
    parts = predicate.meta.pop()
    if len(parts) == 2 and any(predicate.meta.eq(a & b) for a, b in (parts, parts[::-1])):
        return [condition for part in parts for condition in _conditions(part)]
    return [predicate]


def _columns(conditions):
    """Returns the columns that the conditions read, in order."""
    return list(dict.fromkeys(name for condition in conditions for name in condition.meta.root_names()))


def _let_through(frame, conditions):
    """The numbers of the rows of which all conditions are true."""
    if not conditions:
        return range(len(frame))
    # A condition without columns, such as a literal, has one value for all rows. Only a filter repeats it.
    number = "\0"  # in no key
    return frame.with_row_index(number).filter(conditions)[number].to_list()


class _Scan:
    """What scan() was asked for; polars calls it with what a query leaves, once for each run of the query."""

    def __init__(self, profiles, view, collects, options):
        import polars

        loading = {name for heading, name, *_ in _native._options() if heading == "Loading"}
        self.load = {name: value for name, value in options.items() if name in loading}
        self.ask = {name: value for name, value in options.items() if name not in loading}
        _native._check_loading(self.load)
        types = self.ask.pop("sample_type", None)
        self.types = [types] if isinstance(types, str) else types
        self.view = view
        self.collects = collects

        self.profiles = [profile for profile, _ in profiles]
        own = ["profile", "sample_type", "unit"] + ["error"] * collects
        self.rows = self.answer(_native.load(_SAMPLE, input_format="folded"), None).to_polars().schema
        names = list(dict.fromkeys(name for _, keys in profiles for name in keys))
        if taken := [name for name in names if name in own or name in self.rows]:
            raise _native.PprofError(f"a key can't be called {taken[0]!r}, which is a column of its own")
        self.schema = polars.Schema({**dict.fromkeys([*names, *own], polars.String), **self.rows})
        columns = {name: [keys.get(name) for _, keys in profiles] for name in names}
        columns["profile"] = [_native.Pair(profile, profile).name for profile in self.profiles]  # without passwords
        self.keys = polars.DataFrame(columns, schema=dict.fromkeys(columns, polars.String))

    def __call__(self, with_columns, predicate, n_rows, batch_size) -> "Iterator[polars.DataFrame]":
        """Yields the requested rows, profile by profile in order.

        Polars pushes down conditions that it can decide row by row. It pushes down both parts of
        `head(n).filter(...)`. The source must then apply `head` first: rows that the conditions exclude still count
        towards `n`, so no profile can be skipped because of the conditions.
        """
        import os
        from concurrent.futures import ThreadPoolExecutor
        from itertools import islice

        # A query that only counts rows requests no columns, but a frame without columns has no rows.
        wanted = list(self.schema if with_columns is None else with_columns) or ["profile"]
        conditions = [] if predicate is None else _conditions(predicate)
        after_cut = conditions if n_rows is not None else []
        read = list(dict.fromkeys([*wanted, *_columns(after_cut)]))
        query = _Query(self, read, [] if after_cut else conditions)
        cores = os.cpu_count() or 1
        places = iter(_let_through(self.keys, query.of_keys))
        pool = ThreadPoolExecutor(cores)
        try:
            window = [pool.submit(query.rows, place) for place in islice(places, _AHEAD * cores)]
            while window and n_rows != 0:
                frame = window.pop(0).result()
                window += [pool.submit(query.rows, place) for place in islice(places, 1)]
                if n_rows is not None:
                    frame = frame.head(n_rows)
                    n_rows -= len(frame)
                yield (frame.filter(after_cut) if after_cut else frame).select(wanted)
        finally:
            # Polars may drop a query in a thread of this pool. The thread cannot wait for itself.
            pool.shutdown(wait=False, cancel_futures=True)

    def answer(self, profile, sample_type):
        """The view of a profile, by a sample type."""
        return _native._Question(self.view, None, "flat", {**self.ask, "sample_type": sample_type}).answer(profile)


class _Query:
    """What a query leaves of each profile: columns, and rows by conditions on keys, on sample types and on the rest."""

    def __init__(self, scan, wanted, conditions):
        self.scan = scan
        self.wanted = wanted
        self.conditions = conditions
        keys = {*scan.keys.columns}
        types = keys | {"sample_type", "unit"}
        columns = [(condition, {*condition.meta.root_names()}) for condition in conditions]
        self.of_keys = [condition for condition, names in columns if names <= keys]
        self.of_types = [condition for condition, names in columns if not names <= keys and names <= types]
        self.rest = [condition for condition, names in columns if not names <= types]
        self.asked = list(dict.fromkeys([*wanted, *_columns(self.rest)]))

    def rows(self, place):
        """Those of one profile."""
        import polars

        scan = self.scan
        keys = scan.keys.row(place, named=True)
        try:
            profile = _native.load(scan.profiles[place], **scan.load)
            tables = []
            for sample_type, unit in self.types(keys, profile):
                texts = {**keys, "sample_type": sample_type, "unit": unit}
                alike = {n: polars.lit(texts.get(n), polars.String) for n in self.asked if n not in scan.rows}
                table = scan.answer(profile, sample_type).to_polars()
                tables.append(table.with_columns(**alike).select(self.asked))
        except Exception as e:
            if not scan.collects:
                raise
            failed = polars.DataFrame([{**keys, "error": str(e)}], schema=scan.schema)
            return failed[list(_let_through(failed, self.conditions))].select(self.wanted)
        rows = polars.concat(tables or [polars.DataFrame(schema=scan.schema).select(self.asked)])
        return (rows.filter(self.rest) if self.rest else rows).select(self.wanted)

    def types(self, keys, profile):
        """The sample types of a profile, with their units."""
        import polars

        types = profile.sample_types
        if (of := self.scan.types) is not None:
            types = [known for known in types if known[0] in of] or [(name, None) for name in of]
        rows = [{**keys, "sample_type": name, "unit": unit} for name, unit in types] if self.of_types else []
        schema = dict.fromkeys([*keys, "sample_type", "unit"], polars.String)
        return [types[at] for at in _let_through(polars.DataFrame(rows, schema), self.of_types)] if rows else types
