"""What the host does while the device is idle, in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tpuprof.parsers.ops.host.activity import Activity, IdleTime

EXPLAINS = 0.5
"""A host event that fills at least this share of the gaps is named in titles; less may be a coincidence."""

_WAITING = re.compile(
    r"wait|sleep|acquire|until_?ready|futex|\b(poll|select|join|park)\b|ThreadpoolListener::", re.IGNORECASE
)
"""Names of host events in which a thread waits, or runs a pool's work that has no name; they explain nothing."""


def working(gaps: IdleTime) -> Sequence[Activity]:
    """What the host's threads did in the gaps other than wait, by time."""
    return [activity for activity in gaps.activities if not _WAITING.search(activity.name)]


_LAUNCHES = re.compile(
    r"LoadedExecutable::Execute\Z|PjitFunction\(|ExecuteReplicated|SyncTensorsGraph|ExecuteComputation"
)
"""Names of host events in which a thread launches programs."""

_READS = re.compile(
    r"block_until_?ready|np\.asarray|__array__|device_get|TransferFromDevice|ToLiteral|copy_to_host|[ .]item\Z"
)
"""Names of host events in which a thread waits for a result of the device and fetches it."""


def of_launcher(gaps: IdleTime) -> IdleTime:
    """The gaps with what the thread that launches programs did alone, as far as that accounts for most of their time.

    The next program waits for that thread: what others do meanwhile, such as a loader that is always busy, is chance.
    """
    launcher = next((each.thread for each in gaps.activities if _LAUNCHES.search(each.name)), None)
    own = tuple(each for each in gaps.activities if each.thread == launcher)
    return replace(gaps, activities=own) if sum(each.overlap_ps for each in own) >= EXPLAINS * gaps.gap_ps else gaps


def reading(gaps: IdleTime) -> Activity | None:
    """The result that the launching thread waits for ahead of each launch; None where it does so in few of the gaps.

    Args:
        gaps: of the launching thread, see `of_launcher`.
    """
    launches = max((each.occurrences for each in gaps.activities if _LAUNCHES.search(each.name)), default=0)
    found = next((each for each in gaps.activities if _READS.search(each.name)), None)
    return found if found is not None and 2 * found.occurrences >= launches > 0 else None


def main_activity(gaps: IdleTime) -> Activity | None:
    """What the host did in most of the gaps' time; None where its events do not say."""
    first = next(iter(working(gaps)), None)
    return first if first is not None and first.overlap_ps >= EXPLAINS * gaps.gap_ps else None
