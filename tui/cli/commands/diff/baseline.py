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
from tpuprof.parsers.base.text import PATHS, nearest_hint, printable
from tpuprof.parsers.base.urls import printable_url
from tpuprof.parsers.files.logdir import Run, is_remote, local_path, open_logdir
from tpuprof.tui.cli.arguments.options import HERE, PROGRAM
from tpuprof.tui.cli.common import existing
from tpuprof.tui.report.output import write_stdout

_MOST_BYTES = 1 << 20  # of a file that is read

Baseline = tuple[str, str]
"""What leads to a run, as `open_logdir` takes it, and the run's name there."""


def run_baseline(args: argparse.Namespace) -> int:
    """Runs the command, and prints the baselines of the logdir: name, run, and what leads to it.

    Raises:
        ProfileError: the path leads to no run, or there is no such baseline (exit code 3).
    """
    query = existing(args.path)
    run = open_logdir(query).find_run(args.run)
    kept = _baselines(run)
    if args.action == "set":
        paths = (path if is_remote(path) else os.path.abspath(local_path(path)) for path in query.split(PATHS))
        kept[args.name] = PATHS.join(paths), run.name
    elif args.action == "remove":
        _baseline_of(run, args.name)
        del kept[args.name]
    if args.action != "list":
        _folder().put(_entry(run), [json.dumps(kept).encode()])
    lines = (f"{name}  {of}  {printable_url(path)}" for name, (path, of) in sorted(kept.items()))
    write_stdout("".join(f"{printable(line)}\n" for line in lines))
    return EXIT_OK


def take_baseline(args: argparse.Namespace) -> None:
    """Puts the run of ``--baseline`` in the place of A, and the path that was given in that of B.

    Raises:
        ProfileError: there is no such baseline, or its run is gone (exit code 3); A is given as well (2).
    """
    if args.after is not None or args.of_before is not None:
        sentence = "--baseline stands for A: one path at most is B."
        raise ProfileError("usage", sentence, "leave A and --before out", EXIT_USAGE)
    args.after = existing(args.before or HERE)
    args.before, args.of_before = _baseline_of(open_logdir(args.after).find_run(args.of_after), args.baseline)
    try:
        open_logdir(args.before).find_run(args.of_before)
    except ProfileError as error:
        if error.exit_code != EXIT_NOT_FOUND:
            raise
        where = f"{printable(args.of_before)} of {printable_url(args.before)}"
        sentence = f"The run of the baseline {args.baseline} is gone: {where}."
        hint = f"{PROGRAM} baseline set {args.baseline} RUN"
        raise ProfileError("baseline_gone", sentence, hint, EXIT_NOT_FOUND) from error


def _baselines(run: Run) -> dict[str, Baseline]:
    """The baselines of a run's logdir, by name; none where the file is damaged."""
    damaged = (ValueError, TypeError, AttributeError)
    with contextlib.suppress(OSError, *damaged), open(_folder().open(_entry(run)), "rb") as file:
        return {name: (str(path), str(of)) for name, (path, of) in json.loads(file.read(_MOST_BYTES)).items()}
    return {}


def _baseline_of(run: Run, name: str) -> Baseline:
    kept = _baselines(run)
    if name not in kept:
        hint = nearest_hint(name, [*kept], f"{PROGRAM} baseline set {name} RUN")
        sentence = f"The logdir of {printable(run.name)} has no baseline {name}."
        raise ProfileError("unknown_baseline", sentence, hint, EXIT_NOT_FOUND)
    return kept[name]


def _folder() -> CacheFolder:
    return CacheFolder("baselines", 0)


def _entry(run: Run) -> str:
    """The file of a logdir: of what is above plugins/profile/RUN, else of the folder that the run lies in."""
    folder = os.path.dirname(run.hosts[0].path if run.hosts else run.path)
    folder = folder if is_remote(folder) else os.path.realpath(folder)
    logdir, *found = folder.rsplit("/plugins/profile/", 1)
    return hashlib.sha256(os.fsencode(logdir if found else os.path.dirname(folder))).hexdigest()[:32]
