"""The deltas of a stream of snapshots, as a generator: Python says that better."""

from . import _native

# As in `typing`, whose import takes longer than that of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ._native import Profile, _OnReset, _Paths, _Source


def deltas(
    snapshots: "Iterable[_Source]",
    cumulative: "Sequence[str] | None" = None,
    *,
    on_reset: "_OnReset" = "error",
    inflated_limit: int | None = None,
    input_format: str | None = None,
    input_type: str | None = None,
    binary: "_Paths | None" = None,
) -> "Iterator[Profile]":
    """What happened between each two snapshots of a growing profile that follow each other, as delta() says it.

    `snapshots` is an iterable of whatever load() takes, oldest first; for n of them there are n - 1 deltas. One
    snapshot is held at a time, and only digests and counters of the one before.

    Raises as delta() does.
    """
    computer = _native.DeltaComputer(
        cumulative,
        on_reset=on_reset,
        inflated_limit=inflated_limit,
        input_format=input_format,
        input_type=input_type,
        binary=binary,
    )
    started = False
    for snapshot in snapshots:
        if started:
            yield computer.update(snapshot)
        else:
            computer.start(snapshot)
            started = True
