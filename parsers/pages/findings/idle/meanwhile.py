"""What the host does while the device is idle, in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.words import short
from tpuprof.parsers.ops.host.activity import LAUNCHES, READS, Activity, IdleTime, is_compilation, waits_for_python

EXPLAINS = 0.5
"""A host event that fills at least this share of the gaps is named in titles; less may be a coincidence."""

_WAITING = pattern(
    r"wait|sleep|acquire|until_?ready|futex|\b(poll|select|join|park)\b|ThreadpoolListener::", re.IGNORECASE
)
"""Names of host events in which a thread waits, or runs a pool's work that has no name; they explain nothing."""


_FUNCTION = pattern(r"^\$\S+\.py:\d+ ")
"""Names that the Python tracer gives to functions."""


def working(gaps: IdleTime) -> Sequence[Activity]:
    """What the host's threads did in the gaps other than wait, by time.

    A function in which the launching thread waits, such as for a checkpoint, is what the next program waits for too.
    """
    launcher = _launcher(gaps)
    return [each for each in gaps.activities if not _WAITING.search(each.name) or _holds_up(each, launcher)]


def _launcher(gaps: IdleTime) -> str | None:
    """The thread that launches programs; None where no event shows it."""
    return next((each.thread for each in gaps.activities if LAUNCHES.search(each.name)), None)


def _holds_up(activity: Activity, launcher: str | None) -> bool:
    """Whether this is a function of the program or of a library in which the launching thread waits.

    Python's own functions that wait say nothing of what for, and reading a result is a cause by itself.
    """
    name = activity.name
    is_function = _FUNCTION.match(name) is not None and not waits_for_python(name) and not READS.search(name)
    return is_function and activity.thread == launcher


def of_launcher(gaps: IdleTime) -> IdleTime:
    """The gaps with what the thread that launches programs did alone, as far as that accounts for most of their time.

    The next program waits for that thread: what others do meanwhile, such as a loader that is always busy, is chance.
    """
    launcher = _launcher(gaps)
    own = tuple(each for each in gaps.activities if each.thread == launcher)
    return replace(gaps, activities=own) if sum(each.overlap_ps for each in own) >= EXPLAINS * gaps.gap_ps else gaps


def but_for_compiling(gaps: IdleTime, compiled_ps: float) -> IdleTime:
    """The gaps without the time in which programs were compiled, which is a cause by itself.

    Args:
        compiled_ps: how much of the gaps that is.
    """
    if compiled_ps < 1:
        return gaps
    left = max(0, gaps.gap_ps - round(compiled_ps))
    other = tuple(each for each in gaps.activities if not is_compilation(each.name))
    outside = min(left, max(0, gaps.unlaunched_ps - round(compiled_ps)))
    return replace(gaps, gap_ps=left, count=0, activities=other, unlaunched_ps=outside)


def reading(gaps: IdleTime) -> Activity | None:
    """The result that the launching thread waits for ahead of each launch; None where it does so in few of the gaps.

    Args:
        gaps: of the launching thread, see `of_launcher`.
    """
    launches = max((each.occurrences for each in gaps.activities if LAUNCHES.search(each.name)), default=0)
    found = next((each for each in gaps.activities if READS.search(each.name)), None)
    return found if found is not None and 2 * found.occurrences >= launches > 0 else None


def behind_one_pool(gaps: Iterable[IdleTime]) -> bool:
    """Whether the same work of a thread that launches nothing fills most of the gaps of each of several hosts.

    Such a thread works ahead, as a loader does. Hosts in lock step that both wait for theirs are as late as the slowest
    of them by chance, now one and now another: one that was faster would have caught up while it waited.
    """
    names = [
        {
            each.name
            for each in of.activities
            if each.thread != _launcher(of) is not None and each.overlap_ps >= EXPLAINS * of.gap_ps > 0
            if not each.marks_step and not _WAITING.search(each.name)
        }
        for of in gaps
    ]
    return len(names) > 1 and bool(set.intersection(*names))


def titled(name: str) -> str:
    """A host event's name for a title: of a long one that the Python tracer gives to a function, the function alone."""
    found = _FUNCTION.match(name)
    return short(name) if found is None or short(name) == name else short(name[found.end() :])


def main_activity(gaps: IdleTime) -> Activity | None:
    """What the host did in most of the gaps' time; None where its events do not say: a step's annotation does not."""
    first = next((each for each in working(gaps) if not each.marks_step), None)
    return first if first is not None and first.overlap_ps >= EXPLAINS * gaps.gap_ps else None
