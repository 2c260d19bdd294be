"""``tpuprof-tui baseline``: runs that others of their logdir are compared with, by name; and ``--baseline NAME``.

Baselines are kept in the user's cache folder, a file a logdir, and nothing is written beside a run. A baseline says
where its run is. It holds no figures, which would be those of an older version of this program.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os

from tpuprof.parsers.base.cache import CacheFolder
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_OK, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import nearest_hint, printable
from tpuprof.parsers.base.urls import printable_url
from tpuprof.parsers.files.logdir import Run, is_remote, open_logdir
from tpuprof.tui.cli.arguments.options import HERE, PROGRAM
from tpuprof.tui.cli.common import existing
from tpuprof.tui.report.output import write_stdout


def run_baseline(args: argparse.Namespace) -> int:
    """Runs the command, and prints the baselines of the logdir: their names, and where their runs lie.

    Raises:
        ProfileError: the path leads to no run, or there is no such baseline (exit code 3).
    """
    run = open_logdir(existing(args.path)).find_run(args.run)
    kept = _baselines(run)
    if args.action == "set":
        kept[args.name] = run.path if is_remote(run.path) else os.path.abspath(run.path)
    elif args.action == "remove":
        _baseline_of(run, args.name)
        del kept[args.name]
    if args.action != "list":
        _folder().put(_entry(run), [json.dumps(kept).encode()])
    write_stdout("".join(f"{printable(name)}  {printable_url(path)}\n" for name, path in sorted(kept.items())))
    return EXIT_OK


def take_baseline(args: argparse.Namespace) -> None:
    """Puts the run of ``--baseline`` in the place of A, and the path that was given in that of B.

    Raises:
        ProfileError: there is no such baseline (exit code 3); A is given as well (2).
    """
    if args.after is not None or args.of_before is not None:
        sentence = "--baseline stands for A: one path at most is B."
        raise ProfileError("usage", sentence, "leave A and --before out", EXIT_USAGE)
    args.after = existing(args.before or HERE)
    args.before = _baseline_of(open_logdir(args.after).find_run(args.of_after), args.baseline)


def _baseline_of(run: Run, name: str) -> str:
    kept = _baselines(run)
    if name not in kept:
        sentence = f"The logdir of {printable(run.name)} has no baseline {printable(name)}."
        hint = nearest_hint(name, [*kept], f"{PROGRAM} baseline set NAME RUN")
        raise ProfileError("unknown_baseline", sentence, hint, EXIT_NOT_FOUND)
    return kept[name]


def _baselines(run: Run) -> dict[str, str]:
    """Where the baselines of a run's logdir lie, by name; none where the file is damaged."""
    with (
        contextlib.suppress(OSError, ValueError, AttributeError),
        open(_folder().open(_entry(run)), "rb") as file,
    ):
        return {name: str(path) for name, path in json.load(file).items()}
    return {}


def _folder() -> CacheFolder:
    return CacheFolder("baselines", 0)


def _entry(run: Run) -> str:
    """The name of a logdir's file, by the folder that its runs lie in."""
    folder = os.path.dirname(run.hosts[0].path if run.hosts else run.path)
    above = os.path.dirname(folder if is_remote(folder) else os.path.realpath(folder))
    return hashlib.sha256(os.fsencode(above)).hexdigest()[:32]
