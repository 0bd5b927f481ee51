"""Type signatures of batch() and its iterator. The classes are generic only for the type checker."""

from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from types import ModuleType
from typing import Any, Generic, Literal, Protocol, TypeVar, Unpack

from ._native import Pair, Ranking, Result, _Side
from .types import LoadOptions, Sort, ViewOptions

_Pair = TypeVar("_Pair", bound=tuple[_Side, _Side] | Pair)

class _Client(Protocol):
    """Dask's Client."""

    def get_executor(self, **kwargs: Any) -> Any: ...

class Batch(Iterator[Result[_Pair]], Generic[_Pair]):
    def __init__(self, job: Any, question: Any) -> None: ...
    def __iter__(self) -> Batch[_Pair]: ...
    def __next__(self) -> Result[_Pair]: ...
    def collect(self) -> list[Result[_Pair]]: ...
    def tables(
        self, n: int | None = None, *, view: str = "top", sort: Sort = "flat", **options: Unpack[ViewOptions]
    ) -> Batch[_Pair]: ...
    def ranking(self, *, fdr: float = 0.05, **options: Unpack[ViewOptions]) -> Ranking: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def batch(
    pairs: Iterable[_Pair],
    *,
    sum: bool = False,
    executor: Executor | _Client | ModuleType | None = None,
    workers: int | None = None,
    on_error: Literal["collect", "raise"] = "collect",
    progress: bool = False,
    **options: Unpack[LoadOptions],
) -> Batch[_Pair]: ...
