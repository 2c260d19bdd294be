"""Which runs a comparison is of: one of each side, or several launches."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.logdir import Logdir, Run, names_several
from tpuprof.parsers.pages.shared.split_runs import are_of_one_capture, whole_captures
from tpuprof.parsers.session.live_arrays import leads_to_arrays


def compared_runs(
    paths: Sequence[str], logdirs: Sequence[Logdir], names: tuple[str | None, str | None] = (None, None)
) -> tuple[list[Run], list[Run]]:
    """The runs of both sides: those named, or all launches of a pattern; of one logdir the newest and the one before.

    Args:
        paths, logdirs: of A and, where it is another one, of B.
        names: of a run of A and of B, or the beginnings of names.

    Raises:
        ProfileError: there is no such run (exit code 3), no run before it, or a run is on both sides (2).
    """
    path, first, (name, other) = paths[0], logdirs[0], names
    if len(paths) > 1 or (name is not None and other is not None):
        before, after = _launches(path, first, name), _launches(paths[-1], logdirs[-1], other)
    elif name is not None:
        before, after = [first.find_run(name)], [first.find_run()]
    else:
        after = [first.find_run(other)]
        before = [_run_before(path, first, after[0])]
    _refuse_same(before, after, first.runs)
    return before, after


def _launches(path: str, logdir: Logdir, name: str | None) -> list[Run]:
    """All runs of a pattern, the oldest first; of anything else one: the run of that name, or the newest."""
    if name is not None or not names_several(path):
        return [logdir.find_run(name)]
    return sorted(whole_captures(logdir.runs), key=lambda run: (run.time, run.name))


def _run_before(path: str, logdir: Logdir, after: Run) -> Run:
    """The run of a logdir before another one; `one_run` if there is none."""
    rest = [run for run in logdir.runs if run.time < after.time and not are_of_one_capture(run, after)]
    if not rest:
        sentence = f"{printable(path)} holds no run older than {printable(after.name)} to compare it with."
        raise ProfileError("one_run", sentence, "tpuprof-tui diff BEFORE AFTER", EXIT_USAGE)
    return rest[0]


def refuse_arrays(paths: Iterable[str]) -> None:
    """Raises an error, exit code 3, where a path leads to a device memory profile."""
    for path in filter(None, map(leads_to_arrays, (path for path in paths if not names_several(path)))):
        sentence = f"{printable(path)} is a device memory profile; only runs are compared here."
        hint = "pprof -diff_base before.prof after.prof compares two; tpuprof-tui memory.prof opens one"
        raise ProfileError("only_arrays", sentence, hint, EXIT_NOT_FOUND)


def _refuse_same(before: Sequence[Run], after: Sequence[Run], known: Sequence[Run]) -> None:
    """Raises an error, exit code 2, where a run is on both sides; `known` are the runs that the hint names."""
    places = {os.path.realpath(run.path) for run in before}
    same = [run for run in after if os.path.realpath(run.path) in places]
    if same:
        sentence = f"A and B are the same run, {printable(same[0].name)}."
        if len(before) > 1 or len(after) > 1:
            sentence = f"{printable(same[0].name)} is a launch of both A and B."
        names = ", ".join(printable(run.name) for run in known[:4])
        which = "only run is" if len(known) == 1 else "runs are"
        raise ProfileError("same_run", sentence, f"--before and --after; the {which} {names}", EXIT_USAGE)
