"""Reads many profiles as one polars LazyFrame. The query decides which profiles are opened.

The profiles and their keys are listed when the frame is created. When the query runs, its conditions on keys select
profiles, which threads load. The rows of each profile are filtered immediately and returned in order.
"""

from . import _native

# Replaces typing.TYPE_CHECKING: importing `typing` takes longer than importing this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike
    from typing import Any, Literal, Unpack

    import polars

    from ._native import _Source
    from .types import ViewAndLoadOptions

# A profile that is loaded only to find the columns of a view.
_SAMPLE = b"main;run 1\n"
# The number of profiles to process ahead, per core. No core waits while the oldest profile is slow.
_AHEAD = 2


def scan(
    profiles: "str | PathLike[str] | Iterable[_Source | dict[str, Any]]",
    keys: "str | None" = None,
    *,
    view: "Literal['top', 'stacks', 'tree']" = "top",
    on_error: "Literal['collect', 'raise']" = "raise",
    **options: "Unpack[ViewAndLoadOptions]",
) -> "polars.LazyFrame":
    """Reads profiles as a polars.LazyFrame with the keys and the rows of a view of each profile. Requires polars.

    `profiles` is one of:

    - A pattern of paths or URLs. `keys` are built from their paths and labels ("service={1},version={version}": {1} is
      the text that the first wildcard matches, {version} the value of this label).
    - A manifest. `keys` are columns of it ("service,version"; default: all columns).
    - A store, or a part of a store ("fleet/service=api"), which has its own keys.
    - An iterable of anything that load() accepts, or of dicts with the profile as "profile" and its keys.

    Columns: the keys (text), profile (its name), sample_type, unit, then the columns of the view of one profile, see
    Views.top(). A profile has rows for each of its sample types.

    A profile is opened only if the query's conditions on its keys and its name can be true. Rows are computed only for
    the sample types that the conditions on sample_type and unit allow. Only the rows that the query keeps stay in
    memory.

    With `on_error="collect"` a failed profile is one row with its keys and the reason in a column error; with "raise"
    the query fails. The other keywords are those of load() and of all views.

    Raises PprofError if an argument is invalid or nothing matches, and OSError from the system.
    """
    import polars.io.plugins

    if view not in ("top", "stacks", "tree"):
        raise _native.PprofError(f"view must be 'top', 'stacks' or 'tree', not {view!r}")
    if on_error not in ("collect", "raise"):
        raise _native.PprofError(f"on_error must be 'collect' or 'raise', not {on_error!r}")
    job = _Scan(_keyed(profiles, keys), view, on_error == "collect", options)
    return polars.io.plugins.register_io_source(job, schema=job.schema, is_pure=True)


def _keyed(profiles, keys):
    """Returns the profiles, as load() accepts them, each with its keys."""
    if isinstance(profiles, str) or hasattr(profiles, "__fspath__"):
        return _native._listed_files(profiles, keys)
    keyed = []
    for profile in profiles:
        columns = {}
        if isinstance(profile, dict):
            columns = {name: str(value) for name, value in profile.items() if name != "profile"}
            profile = profile["profile"]
        if keys is not None:
            columns = {name: columns[name] for name in keys.split(",")}
        keyed.append((profile, columns))
    return keyed


def _conditions(predicate):
    """Splits a condition into the parts that must all be true."""
    parts = predicate.meta.pop()
    if len(parts) == 2 and any(predicate.meta.eq(a & b) for a, b in (parts, parts[::-1])):
        return [condition for part in parts for condition in _conditions(part)]
    return [predicate]


def _columns(conditions):
    """Returns the columns that the conditions read, in order."""
    return list(dict.fromkeys(name for condition in conditions for name in condition.meta.root_names()))


def _matching_rows(frame, conditions):
    """Returns the indices of the rows that satisfy all conditions."""
    if not conditions:
        return range(len(frame))
    # A condition without columns, such as a literal, has one value for all rows. Only a filter repeats it.
    row_number = "\0"  # not the name of any key
    return frame.with_row_index(row_number).filter(conditions)[row_number].to_list()


class _Scan:
    """The arguments of scan(). Polars calls it for each run of a query, with the query's columns and conditions."""

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
        fixed = ["profile", "sample_type", "unit"] + ["error"] * collects
        self.rows = self.answer(_native.load(_SAMPLE, input_format="folded"), None).to_polars().schema
        names = list(dict.fromkeys(name for _, keys in profiles for name in keys))
        if reserved := [name for name in names if name in fixed or name in self.rows]:
            raise _native.PprofError(f"a key can't be called {reserved[0]!r}, which is already a column of the frame")
        self.schema = polars.Schema({**dict.fromkeys([*names, *fixed], polars.String), **self.rows})
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
        selected = list(self.schema if with_columns is None else with_columns) or ["profile"]
        conditions = [] if predicate is None else _conditions(predicate)
        after_cut = conditions if n_rows is not None else []
        read = list(dict.fromkeys([*selected, *_columns(after_cut)]))
        query = _Query(self, read, [] if after_cut else conditions)
        cores = os.cpu_count() or 1
        indices = iter(_matching_rows(self.keys, query.on_keys))
        pool = ThreadPoolExecutor(cores)
        try:
            window = [pool.submit(query.rows, index) for index in islice(indices, _AHEAD * cores)]
            while window and n_rows != 0:
                frame = window.pop(0).result()
                window += [pool.submit(query.rows, index) for index in islice(indices, 1)]
                if n_rows is not None:
                    frame = frame.head(n_rows)
                    n_rows -= len(frame)
                yield (frame.filter(after_cut) if after_cut else frame).select(selected)
        finally:
            # Polars may drop a query in a thread of this pool. The thread cannot wait for itself.
            pool.shutdown(wait=False, cancel_futures=True)

    def answer(self, profile, sample_type):
        """Computes the view of a profile for a sample type, or for the default type if it is None."""
        return _native._Question(self.view, None, "flat", {**self.ask, "sample_type": sample_type}).answer(profile)


class _Query:
    """The parts of a query for each profile: its columns, and its conditions on keys, on sample types and on other
    columns.
    """

    def __init__(self, scan, selected, conditions):
        self.scan = scan
        self.selected = selected
        self.conditions = conditions
        keys = {*scan.keys.columns}
        types = keys | {"sample_type", "unit"}
        columns = [(condition, {*condition.meta.root_names()}) for condition in conditions]
        self.on_keys = [condition for condition, names in columns if names <= keys]
        self.on_types = [condition for condition, names in columns if not names <= keys and names <= types]
        self.rest = [condition for condition, names in columns if not names <= types]
        self.computed = list(dict.fromkeys([*selected, *_columns(self.rest)]))

    def rows(self, index):
        """Returns the rows of one profile."""
        import polars

        scan = self.scan
        keys = scan.keys.row(index, named=True)
        try:
            profile = _native.load(scan.profiles[index], **scan.load)
            tables = []
            for sample_type, unit in self.types(keys, profile):
                texts = {**keys, "sample_type": sample_type, "unit": unit}
                constants = {n: polars.lit(texts.get(n), polars.String) for n in self.computed if n not in scan.rows}
                table = scan.answer(profile, sample_type).to_polars()
                tables.append(table.with_columns(**constants).select(self.computed))
        except Exception as e:
            if not scan.collects:
                raise
            failed = polars.DataFrame([{**keys, "error": str(e)}], schema=scan.schema)
            return failed[list(_matching_rows(failed, self.conditions))].select(self.selected)
        rows = polars.concat(tables or [polars.DataFrame(schema=scan.schema).select(self.computed)])
        return (rows.filter(self.rest) if self.rest else rows).select(self.selected)

    def types(self, keys, profile):
        """Returns the sample types to compute, with their units: the profile's types that the `sample_type` of scan()
        and the conditions allow. If the profile lacks all requested types, keeps their names, so that the view fails
        with an error about them.
        """
        import polars

        types = profile.sample_types
        if (requested := self.scan.types) is not None:
            types = [pair for pair in types if pair[0] in requested] or [(name, None) for name in requested]
        rows = [{**keys, "sample_type": name, "unit": unit} for name, unit in types] if self.on_types else []
        schema = dict.fromkeys([*keys, "sample_type", "unit"], polars.String)
        return [types[i] for i in _matching_rows(polars.DataFrame(rows, schema), self.on_types)] if rows else types
