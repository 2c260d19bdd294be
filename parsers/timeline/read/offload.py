"""Copies between a device and its host's memory, each from the op that starts it to the op that waits for it.

The rules that recognise and pair ops are those of XProf's ``Host Offload Ops`` (`host_offload_utils.cc`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Int64s
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.ops.op_metadata import OpSource

OFFLOAD_NAME = "Host Offload Ops"

_HOST_MEMORY = b"S(5)"
_ENDS = (b"-start", b"-done")
_OFFLOADS = tuple(what + end for what in (b"copy", b"dynamic-slice", b"dynamic-update-slice") for end in _ENDS)


@dataclass(frozen=True, slots=True)
class Offloads:
    """The copies by start; longer ones come first.

    Attributes:
        names: such as ``offload-copy.2``.
        start, end: int64[n], picoseconds.
        name: int32[n]; index in `names`.
    """

    names: tuple[str, ...]
    start: Int64s
    end: Int64s
    name: NDArray[np.int32]


def offloads(source: OpSource, start: Int64s, end: Int64s, key: NDArray[np.int32]) -> Offloads:
    """Pairs the ops that start copies with those that wait for them.

    Where several copies of one name are under way, the first to begin is the first to end.

    Args:
        source: the ops' metadata.
        start, end: int64[n], of the ops in order of time.
        key: int32[n], rows of the metadata; those beyond it are no copies.
    """
    names, of_key, starts = _copies(source)
    ops = np.flatnonzero(key < len(of_key)) if names else np.zeros(0, np.intp)
    ops = ops[of_key[key[ops]] >= 0]
    # a copy of no time ends where it begins; the op that starts it comes first all the same
    ops = ops[np.lexsort((~starts[key[ops]], start[ops], of_key[key[ops]]))]
    label = of_key[key[ops]]
    first, last = _paired(label, starts[key[ops]])
    begins = start[ops[first]]
    ends = np.maximum(begins, end[ops[last]])
    order = np.lexsort((-ends, begins))
    return Offloads(names, begins[order], ends[order], label[first][order])


def _copies(source: OpSource) -> tuple[tuple[str, ...], NDArray[np.int32], Bools]:
    """Names of the copies, which of them each row's op is part of (-1 for none), and whether it starts it."""
    table = source.events
    of_row, starts = np.full(len(table), -1, np.int32), np.zeros(len(table), np.bool_)
    index: dict[bytes, int] = {}
    for row in np.flatnonzero(table.display_end > table.display_begin).tolist():
        name = table.body[table.display_begin[row] : table.display_end[row]]
        if not any(word in name for word in _OFFLOADS):
            continue
        if table.body.find(_HOST_MEMORY, table.name_begin[row], table.name_end[row]) < 0:
            continue
        begins = _ENDS[0] in name
        number = name.rpartition(b".")[2] if b"." in name else b"0"
        stem = name.partition(_ENDS[0] if begins else _ENDS[1])[0]
        of_row[row] = index.setdefault(b"offload-%b.%b" % (stem, number), len(index))
        starts[row] = begins
    return tuple(text(name) for name in index), of_row, starts


def _paired(label: NDArray[np.int32], is_start: Bools) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pairs the starts and ends of each label, first come, first served; leaves out ends that nothing started.

    Args:
        label: int32[n], ascending, each label's events in order of time.

    Returns:
        Places of the starts and of the ends.
    """
    if not len(label):
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    opens = np.flatnonzero(np.append(True, label[1:] != label[:-1]))
    of = np.cumsum(np.append(False, label[1:] != label[:-1]))
    under_way = np.cumsum(np.where(is_start, 1, -1))
    under_way -= np.append(0, under_way)[opens][of]
    # an end that takes the count to a new low had no start; each label far below the one before keeps lows apart
    floor = -of * (2 * len(label) + 2)
    depth = under_way + floor
    lowest = np.minimum(np.append(0, np.minimum.accumulate(depth)[:-1]), floor)
    ends = np.flatnonzero(~is_start & (depth >= lowest))
    begins = np.flatnonzero(is_start)
    before_label = np.searchsorted(begins, opens)
    ends_before_label = np.searchsorted(ends, opens)
    rank = np.arange(len(ends)) - ends_before_label[of[ends]]
    return begins[before_label[of[ends]] + rank], ends
