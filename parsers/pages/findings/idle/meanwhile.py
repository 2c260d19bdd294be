"""What the host does while the device is idle, in words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tpuprof.parsers.ops.host.activity import Activity, IdleTime

EXPLAINS = 0.5
"""A host event that fills at least this share of the gaps is named in titles; less may be a coincidence."""

_WAITING = re.compile(r"wait|sleep|acquire|until_?ready|futex|\b(poll|select|join|park)\b", re.IGNORECASE)
"""Names of host events in which a thread itself waits; they explain nothing."""


def working(gaps: IdleTime) -> Sequence[Activity]:
    """What the host's threads did in the gaps other than wait, by time."""
    return [activity for activity in gaps.activities if not _WAITING.search(activity.name)]


def main_activity(gaps: IdleTime) -> Activity | None:
    """What the host did in most of the gaps' time; None where its events do not say."""
    first = next(iter(working(gaps)), None)
    return first if first is not None and first.overlap_ps >= EXPLAINS * gaps.gap_ps else None
