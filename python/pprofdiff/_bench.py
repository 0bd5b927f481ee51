"""Runs of two sides of a benchmark, as the command takes them: in a process of its own, which Ctrl-C ends orderly."""

import sys

from . import _native

# As in `typing`, whose import takes longer than that of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

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
    max_time: "str | None" = None,
    seed: "int | None" = None,
    sample_type: "str | None" = None,
    into: "str | PathLike[str] | None" = None,
    more: "str | PathLike[str] | None" = None,
    yes: bool = False,
    cwd: "str | PathLike[str] | None" = None,
) -> "Diff":
    """Run a benchmark of two sides in turns until it is decided whether they differ, as `pprofdiff bench` does.

    `commits` is "BASE..NEW", or "BASE" against what is not committed, in the repository of `cwd`; `command` is the
    benchmark, as words or as one text. In place of commits there may be two folders, or two commands. `effect` is the
    change that matters, 0.02 for 2 %; `runs` and `max_time` ("5m") say when to end in any case. Profiles go to the
    folder `into`, from which load_runs() reads them again; `more` adds runs to such a folder. It executes the
    commands in the folder's runs.toml, so it needs `yes=True`: a folder from somebody else may name any command.

    Progress and what is decided are printed to standard error. Ctrl-C ends with what is measured.

    Returns the diff of all runs. Raises PprofError for what the command refuses, KeyboardInterrupt if too little was
    measured by then.
    """
    import os
    import shlex
    import signal
    import subprocess
    from pathlib import Path

    words = [sys.executable, "-m", "pprofdiff", "bench"]
    options = {
        "--base-dir": base_dir,
        "--new-dir": new_dir,
        "--base-cmd": base_cmd,
        "--new-cmd": new_cmd,
        "--build": build,
        "--effect": None if effect is None else f"{100 * effect}%",
        "--runs": runs,
        "--max-time": max_time,
        "--seed": seed,
        "--sample-type": sample_type,
        "--into": into,
        "--more": more,
    }
    words += [] if commits is None else [commits]
    for name, value in options.items():
        words += [] if value is None else [f"{name}={os.fspath(value) if isinstance(value, os.PathLike) else value}"]
    benchmark = shlex.split(command) if isinstance(command, str) else [os.fspath(word) for word in command]
    words += ["--yes"] if yes else []
    words += ["--", *benchmark] if benchmark else []

    said = ""
    # In a session of its own: a terminal's Ctrl-C comes to us alone, and what we pass on ends it once.
    with subprocess.Popen(
        words,
        cwd=cwd,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        is_ended = False
        while not is_ended:
            try:
                for line in process.stderr or ():
                    said = line.removeprefix("pprofdiff: ").rstrip("\n") or said
                    print(said, file=sys.stderr)
                process.wait()
                is_ended = True
            except KeyboardInterrupt:
                process.send_signal(signal.SIGINT)
    if process.returncode == 130:
        raise KeyboardInterrupt
    if process.returncode != 0:
        raise _native.PprofError(said)
    return _native.load_runs(Path(cwd or ".") / (more or into or "pprofdiff-runs"))
