"""Runs the two sides of a benchmark with the command, in a separate process that Ctrl-C stops cleanly."""

import sys

from . import _native

# Replaces typing.TYPE_CHECKING: importing `typing` takes longer than importing this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from pathlib import Path

    from ._native import Diff


def bench(
    commits: "str | None" = None,
    command: "str | Sequence[str]" = (),
    *,
    base_dir: "str | PathLike[str] | None" = None,
    new_dir: "str | PathLike[str] | None" = None,
    base_cmd: "str | None" = None,
    new_cmd: "str | None" = None,
    build: "str | None" = None,
    effect: "float | None" = None,
    runs: "int | None" = None,
    layouts: "int | None" = None,
    max_time: "str | None" = None,
    seed: "int | None" = None,
    sample_type: "str | None" = None,
    into: "str | PathLike[str] | None" = None,
    more: "str | PathLike[str] | None" = None,
    yes: bool = False,
    cwd: "str | PathLike[str] | None" = None,
) -> "Diff":
    """Runs a benchmark of two sides alternately until it is clear whether they differ, as `pprofdiff bench` does.

    `commits` is "BASE..NEW", or "BASE" to compare with uncommitted changes, in the repository of `cwd`; `command` is
    the benchmark, as a list of words or as one text. Instead of commits you can pass two folders or two commands.
    `effect` is the smallest change that matters (0.02 means 2 %); `runs` and `max_time` ("5m") limit the benchmark.
    With `layouts` instead of `runs`, each pair of runs is linked anew, with the functions in another order.
    Profiles are written to the folder `into`; load_runs() loads them again. `more` adds runs to such a folder. It
    executes the commands in the folder's runs.toml, so it requires `yes=True`: a folder from somebody else may name any
    command.

    Progress and the result are printed to standard error. Ctrl-C stops the benchmark and keeps the finished runs.

    Returns the diff of all runs. Raises PprofError if the command fails, and KeyboardInterrupt if Ctrl-C comes before
    the first pair of runs is complete.
    """
    import os
    import shlex
    import signal
    import subprocess
    from pathlib import Path

    folder = more or into or _free_folder(Path(cwd or "."))
    words = [sys.executable, "-m", "pprofdiff", "bench"]
    options = {
        "--base-dir": base_dir,
        "--new-dir": new_dir,
        "--base-cmd": base_cmd,
        "--new-cmd": new_cmd,
        "--build": build,
        "--effect": None if effect is None else f"{100 * effect}%",
        "--runs": runs,
        "--layouts": layouts,
        "--max-time": max_time,
        "--seed": seed,
        "--sample-type": sample_type,
        "--into": into if into or more else folder,
        "--more": more,
    }
    words += [] if commits is None else [commits]
    for name, value in options.items():
        words += [] if value is None else [f"{name}={os.fspath(value) if isinstance(value, os.PathLike) else value}"]
    benchmark = shlex.split(command) if isinstance(command, str) else [os.fspath(word) for word in command]
    words += ["--yes"] if yes else []
    words += ["--", *benchmark] if benchmark else []

    message = ""
    # The command gets its own session, so that a terminal's Ctrl-C reaches only this Python process, which forwards it.
    # Otherwise the command would receive each Ctrl-C twice.
    with subprocess.Popen(
        words,
        cwd=cwd,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        has_ended = False
        while not has_ended:
            try:
                for line in process.stderr or ():
                    text = line.removeprefix("pprofdiff: ").rstrip("\n")
                    message = text or message
                    print(text, file=sys.stderr)
                process.wait()
                has_ended = True
            except KeyboardInterrupt:
                process.send_signal(signal.SIGINT)
    if process.returncode == 130:
        raise KeyboardInterrupt
    if process.returncode != 0:
        raise _native.PprofError(message)
    return _native.load_runs(Path(cwd or ".") / folder)


def _free_folder(parent: "Path") -> str:
    """Returns the default folder for new runs in `parent`, with a number if the folder already has files."""
    name, number = "pprofdiff-runs", 1
    while any(path.name != ".gitignore" for path in (parent / name).glob("*")):
        number += 1
        name = f"pprofdiff-runs-{number}"
    return name
