"""The command, as the console script calls it."""

import signal
import sys

from . import _native


def main() -> int:
    """Run the command with the process's arguments; the exit code."""
    # Python would note Ctrl-C and act on it after the command has ended. A process that was told to
    # ignore it (nohup) goes on ignoring it.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.run(["pprofdiff", *sys.argv[1:]])
