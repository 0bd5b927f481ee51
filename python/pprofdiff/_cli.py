"""The entry point of the console script."""

# This imports the C half of `signal`. The Python half imports enum and would double Python's startup time.
import _signal
import sys

from . import _native


def main() -> int:
    """Runs the command with the process's arguments and returns the exit code."""
    # Python's handler would only set a flag and raise after the command ends, so the default action is restored. A
    # process that ignores Ctrl-C (nohup) keeps ignoring it.
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    return _native.run(["pprofdiff", *sys.argv[1:]])
