"""The deltas of a stream of snapshots, as a generator: Python says that better."""

from . import _native

# As in `typing`, whose import takes longer than that of this package.
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
    """What happened between each two snapshots of a growing profile that follow each other, as delta() says it.

    `snapshots` is an iterable of whatever load() takes, oldest first; for n of them there are n - 1 deltas. One
    snapshot is held at a time, and only digests and counters of the one before.

    The other keywords are those of load(). Raises as delta() does.
    """
    computer = _native.DeltaComputer(cumulative, on_reset=on_reset, **options)
    started = False
    for snapshot in snapshots:
        if started:
            yield computer.update(snapshot)
        else:
            computer.start(snapshot)
            started = True
