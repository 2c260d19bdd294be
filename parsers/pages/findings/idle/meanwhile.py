"""What the host does while the device is idle, in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.words import shortened
from tpuprof.parsers.ops.host_events.activity import (
    LAUNCHES,
    READS,
    Activity,
    IdleTime,
    is_compilation,
    is_of_program,
    is_of_runtime,
    waits_for_python,
)

EXPLAINS = 0.5
"""A host event that fills at least this share of the gaps is named in titles; less may be a coincidence."""

_WAITING = pattern(
    r"wait|sleep|acquire|until_?ready|futex|\b(poll|select|join|park)\b|ThreadpoolListener::", re.IGNORECASE
)
"""Names of host events in which a thread waits, or runs a pool's work that has no name; they explain nothing."""

_FUNCTION = pattern(r"^\$\S+\.py:\d+ ")
"""Names that the Python tracer gives to functions."""


def is_wait(name: str) -> bool:
    """Whether a thread waits in a host event of this name."""
    return _WAITING.search(name) is not None


def working(gaps: IdleTime) -> Sequence[Activity]:
    """What the host's threads did in the gaps other than wait, by time.

    A function in which the launching thread waits, such as for a checkpoint, is what the next program waits for too.
    """
    own = launcher(gaps)
    return [each for each in gaps.activities if not _WAITING.search(each.name) or _holds_up(each, own)]


def launcher(gaps: IdleTime) -> str | None:
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
    thread = launcher(gaps)
    own, inside = (tuple(each for each in of if each.thread == thread) for of in (gaps.activities, gaps.inside))
    explains = sum(each.overlap_ps for each in own) >= EXPLAINS * gaps.gap_ps
    return replace(gaps, activities=own, inside=inside) if explains else gaps


def but_for_compiling(gaps: IdleTime, compiled_ps: float) -> IdleTime:
    """The gaps without the time in which programs were compiled, which is a cause by itself.

    Args:
        compiled_ps: how much of the gaps that is.
    """
    if compiled_ps < 1:
        return gaps
    left = max(0, gaps.gap_ps - round(compiled_ps))
    other, inside = (
        tuple(each for each in of if not is_compilation(each.name)) for of in (gaps.activities, gaps.inside)
    )
    outside = min(left, max(0, gaps.unlaunched_ps - round(compiled_ps)))
    return replace(gaps, gap_ps=left, count=0, activities=other, inside=inside, unlaunched_ps=outside)


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
            if each.thread != launcher(of) is not None and each.overlap_ps >= EXPLAINS * of.gap_ps > 0
            if not each.marks_step and not _WAITING.search(each.name)
        }
        for of in gaps
    ]
    return len(names) > 1 and bool(set.intersection(*names))


def do_the_same(gaps: Sequence[IdleTime], least: float) -> bool:
    """Whether the launching threads of all hosts run one function of the program in most of their gaps.

    Args:
        least: how often each runs it at least.
    """
    names = set()
    for of in gaps:
        doing = main_activity(of)
        is_its_own = doing is not None and doing.thread == launcher(of) and doing.occurrences >= least
        names.add(doing.name if doing is not None and is_its_own else "")
    return len(names) == 1 and is_of_program(names.pop())


def titled(name: str) -> str:
    """A host event's name for a title: of a long one that the Python tracer gives to a function, the function alone."""
    found = _FUNCTION.match(name)
    return shortened(name) if found is None or shortened(name) == name else shortened(name[found.end() :])


def main_activity(gaps: IdleTime, whole_ps: float | None = None) -> Activity | None:
    """What the host did in most of the gaps' time; None where its events do not say: a step's annotation does not.

    Of what runs inside such an annotation the outermost events count, where no single event explains most.

    Args:
        whole_ps: how long the gaps are, if not as long as `gaps` says.
    """
    least = EXPLAINS * (gaps.gap_ps if whole_ps is None else whole_ps)
    inside = (each for each in gaps.inside if not is_of_runtime(each.name) and not _WAITING.search(each.name))
    known = (*(each for each in working(gaps) if not each.marks_step), *inside)
    return next((each for each in known if each.overlap_ps >= least), None)
