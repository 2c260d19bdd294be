"""``tpuprof-tui diff A B``: what changed from A to B, on the screen or as a report."""

from __future__ import annotations

import argparse
import os

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.session.live_arrays import leads_to_arrays, sibling_arrays
from tpuprof.tui.cli import common
from tpuprof.tui.cli.arguments.diff import EXAMPLE
from tpuprof.tui.cli.common import existing
from tpuprof.tui.report.page import check_keys


def run_diff(args: argparse.Namespace) -> int:
    """Runs the command.

    Returns:
        The exit code: 0, or with `--fail-on-regression` 6 where steps got slower.

    Raises:
        ProfileError: a path leads to no profile (exit code 3) or to one that can't be read (4); both are the same run
            (2); with `--fail-on-regression`, nothing can be said of the steps (4), once the report is written.
    """
    check_keys(args.keys, args.format)
    config = common.configured(args)
    if (paths := _arrays(args)) is not None:
        from tpuprof.tui.cli.commands.diff import arrays  # noqa: PLC0415 - numpy

        return arrays.compare_arrays(args, paths)
    from tpuprof.tui.cli.commands.diff import runs  # noqa: PLC0415 - numpy and protobuf

    return runs.compare_runs(args, config)


def _arrays(args: argparse.Namespace) -> tuple[str, str] | None:
    """Two device memory profiles where A, or A and B, lead to such; None where neither does.

    Raises:
        ProfileError: only one of them does, or A has but one, or options are for runs; exit code 2.
    """
    given = [existing(path) for path in (args.before, args.after) if path is not None]
    found = [leads_to_arrays(path) for path in given]
    if not any(found):
        return None
    of_runs = [name for name in ("run_a", "run_b", "host") if getattr(args, name) is not None]
    if of_runs:
        option = of_runs[0].replace("_", "-")
        raise ProfileError("usage", f"--{option} is for runs, not for device memory profiles.", EXAMPLE, EXIT_USAGE)
    if len(found) == 1:
        folder = [*sibling_arrays(given[0])[:2]] if os.path.isdir(given[0]) else []
        if len(folder) < 2:
            sentence = f"{printable(given[0])} is one device memory profile; name another one to compare it with."
            raise ProfileError("one_run", sentence, EXAMPLE, EXIT_USAGE)
        found = [*folder[::-1]]
    if None in found:
        other = printable(given[found.index(None)])
        sentence = f"A device memory profile is compared with another one, and {other} is not one."
        raise ProfileError("usage", sentence, EXAMPLE, EXIT_USAGE)
    before, after = (path for path in found if path is not None)
    if os.path.realpath(before) == os.path.realpath(after):
        sentence = f"A and B are the same file, {printable(before)}."
        raise ProfileError("same_run", sentence, EXAMPLE, EXIT_USAGE)
    return before, after
