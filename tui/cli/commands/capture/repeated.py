"""Captures again and again: to watch a long job, and to keep only the run in which a step got slow."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from statistics import median

from tpuprof.parsers.base.errors import Cancelled, ProfileError
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.capture.model import CaptureResult
from tpuprof.parsers.capture.written import remove_written
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.session import pages
from tpuprof.parsers.session.session import Session
from tpuprof.tui.cli.arguments.capture import Condition
from tpuprof.tui.cli.common import note
from tpuprof.tui.draw.format import duration

_MOST_FAILURES = 3
_MOST_NAMED = 3  # files that stay, in one note
_PAUSE_SECONDS = 2.0
PASSING = ("no_server", "no_answer", "another_session", "connection_lost", "deadline")
"""Failures that may be over a moment later."""

Capture = Callable[[], CaptureResult]


def tried(capture: Capture, retries: int, pause: Callable[[float], None] = time.sleep) -> CaptureResult:
    """Captures, and again where it fails for a reason that may pass.

    Raises:
        ProfileError: it failed each time, or for another reason.
    """
    for left in range(retries, -1, -1):
        try:
            return capture()
        except ProfileError as error:
            if not left or error.code not in PASSING:
                raise
            note(f"{error.sentence} Trying again, {left} left.")
            pause(_PAUSE_SECONDS)
    raise AssertionError("the last try returns or raises")


def repeated(
    capture: Capture,
    every_seconds: int,
    keep: int,
    condition: Condition | None,
    tell: Callable[[CaptureResult], None],
    pause: Callable[[float], None] = time.sleep,
) -> str | None:
    """Captures every so often, until the condition holds or the user ends it.

    It removes runs of its own, and no others: the oldest beyond `keep`, and with a condition those that do not meet it.
    What others put into such a run's folder, or changed there, stays, and a note names it.

    Args:
        keep: most runs; 0 for all.
        tell: called with every run that is kept.

    Returns:
        The path of the run that met the condition; None where the user ended it.

    Raises:
        ProfileError: nothing came several times in a row.
        Cancelled: the user ended it before there was a run.
    """
    made: deque[CaptureResult] = deque()
    steps: list[float] = []
    failures = 0
    while True:
        began = time.monotonic()
        try:
            result = capture()
            failures = 0
            met = condition is not None and _is_met(condition, result.run_path, steps)
            if condition is None or met:
                tell(result)
                made.append(result)
            else:
                _remove(result)
            if met:
                return result.run_path
            while keep and len(made) > keep:
                _remove(made.popleft())
            pause(max(0.0, every_seconds - (time.monotonic() - began)))
        except ProfileError as error:
            failures += 1
            if failures == _MOST_FAILURES:
                raise
            note(f"{error.sentence} The next one in {every_seconds} s.")
            pause(every_seconds)
        except (KeyboardInterrupt, Cancelled):
            if not made and not steps:
                raise Cancelled from None
            return None


def step_time(run_path: str) -> float | None:
    """Median step time of a run in picoseconds; None where it has no steps."""
    time_of_steps = Session(open_logdir(run_path).find_run(None)).page(pages.OVERVIEW).performance.step_time
    return None if time_of_steps is None else float(time_of_steps.median_ps)


def _is_met(condition: Condition, run_path: str, steps: list[float]) -> bool:
    """Whether a run meets the condition; its step joins the others where it does not."""
    step_ps = step_time(run_path)
    if step_ps is None:
        note(f"{os.path.basename(run_path)}: it has no steps to judge")
        return False
    met = condition.holds(step_ps, steps)
    usual = f", usually {duration(median(steps))}" if steps else ""
    note(f"{os.path.basename(run_path)}: a step takes {duration(step_ps)}{usual}{'' if met else '; not kept'}")
    if not met:
        steps.append(step_ps)
    return met


def _remove(result: CaptureResult) -> None:
    """Removes what a capture wrote, and says what else is in its folder."""
    left = remove_written(result.files)
    if left:
        run, names = (
            os.path.basename(result.run_path),
            ", ".join(printable(os.path.basename(path)) for path in left[:_MOST_NAMED]),
        )
        more = f" and {counted(len(left) - _MOST_NAMED, 'more file')}" if len(left) > _MOST_NAMED else ""
        note(f"{run} is kept: it has files that this capture did not write, or that changed since: {names}{more}")
