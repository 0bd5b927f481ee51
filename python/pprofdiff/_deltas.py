"""The deltas of a stream of snapshots, as a Python generator."""

from . import _native

# Replaces typing.TYPE_CHECKING: importing `typing` takes longer than importing this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Unpack

    from ._native import Profile, _OnReset, _Source
    from .types import LoadOptions


def deltas(
    snapshots: "Iterable[_Source]",
    cumulative: "Sequence[str] | None" = None,
    *,
    on_reset: "_OnReset" = "error",
    **options: "Unpack[LoadOptions]",
) -> "Iterator[Profile]":
    """Computes the change between each snapshot of a cumulative profile and the next one, as delta() does.

    `snapshots` is an iterable of anything that load() accepts, oldest first; n snapshots give n - 1 deltas. Only one
    snapshot is in memory at a time, plus digests and counters of the previous one.

    With `on_reset="error"` a restart of the process raises PprofError. With "pass" and "clamp", the stream continues.
    The other keywords are the keywords of load(). Raises the errors of delta().
    """
    computer = _native.DeltaComputer(cumulative, on_reset=on_reset, **options)
    started = False
    for snapshot in snapshots:
        if started:
            yield computer.update(snapshot)
        else:
            computer.start(snapshot)
            started = True
