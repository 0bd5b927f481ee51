"""Signatures of diff_many and its iterator, whose classes are generic only for the type checker."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any, Generic, Literal, TypeVar

from ._native import Pair, Result, _Granularity, _Side, _Sort

_Pair = TypeVar("_Pair", bound=tuple[_Side, _Side] | Pair)

class DiffMany(Iterator[Result[_Pair]], Generic[_Pair]):
    def __init__(self, job: Any, question: Any) -> None: ...
    def __iter__(self) -> DiffMany[_Pair]: ...
    def __next__(self) -> Result[_Pair]: ...
    def collect(self) -> list[Result[_Pair]]: ...
    def tables(
        self,
        n: int | None = None,
        *,
        view: str = "top",
        sort: _Sort = "flat",
        sample_type: str | None = None,
        granularity: _Granularity = "functions",
        noinlines: bool = False,
        trim_path: str | Sequence[str] | None = None,
        normalize: str | float | None = None,
        **filters: str | None,
    ) -> DiffMany[_Pair]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def diff_many(
    pairs: Iterable[_Pair],
    *,
    executor: Executor | None = None,
    workers: int | None = None,
    on_error: Literal["collect", "raise"] = "collect",
    progress: bool = False,
    inflated_limit: int | None = None,
) -> DiffMany[_Pair]: ...
