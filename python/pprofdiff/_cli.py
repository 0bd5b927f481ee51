"""The command, as the console script calls it."""

# The C half of `signal`: the other half imports enum and with it as much again as all of Python's start.
import _signal
import sys

from . import _native


def main() -> int:
    """Run the command with the process's arguments; the exit code."""
    # Python would note Ctrl-C and act on it after the command has ended. A process that was told to
    # ignore it (nohup) goes on ignoring it.
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    return _native.run(["pprofdiff", *sys.argv[1:]])
