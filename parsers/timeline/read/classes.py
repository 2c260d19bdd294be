"""Names and classes of a plane's events, for all tracks of the plane at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, positions
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.ops.core.ops import Keys
from tpuprof.parsers.ops.device import HOLDS_OPS, op_class
from tpuprof.parsers.ops.op_metadata import TRAFFIC, MetadataStats, OpSource
from tpuprof.parsers.timeline.model import CLASSES, EventNames, SectionKind

_DENSE = 4
"""It makes a table with a place for every id if the largest id is at most this many times their number."""

_FEW = 1 << 10
"""It looks up ids one by one for lines with fewer events."""

# Of what threads and runtimes record under free names. A wait is no work, whoever waits.
_WAITS = pattern(
    rb"(?i)\b(wait|sleep|barrier|idle|poll|park)|(wait|await|sleep|barrier|blockuntil|block_until|dequeue|condvar|acquire)"
)
_MOVES = pattern(rb"(?i)memcpy|memset|transfer|h2d|d2h|copy|infeed|outfeed|linearize")
_TALKS = pattern(rb"(?i)allreduce|all-reduce|allgather|all-gather|reducescatter|reduce-scatter|alltoall|nccl|rccl")
_MULTIPLIES = pattern(rb"(?i)gemm|cutlass|wgrad|dgrad|conv|matmul|dot|sm[0-9]+_xmma|attention|Cijk_")
_NAME_SEEN = 400
"""How many bytes of a name determine its class."""


class PlaneKeys:
    """Turns metadata ids into keys of `EventNames`: rows of the plane's event metadata, then ids without an entry."""

    def __init__(self, plane: Plane) -> None:
        self._ids = plane.event_metadata.ids
        self._lost: dict[int, int] = {}
        self._lookup: NDArray[np.int32] | None = None

    def of(self, ids: Keys) -> NDArray[np.int32]:
        """int32[n]: the keys of some events."""
        rows = self._rows(ids)
        missing = np.flatnonzero(rows < 0)
        if len(missing):
            lost, of = np.unique(ids[missing], return_inverse=True)
            keys = [self._lost.setdefault(number, len(self._ids) + len(self._lost)) for number in lost.tolist()]
            rows[missing] = np.array(keys, np.int32)[of]
        return rows

    def _rows(self, ids: Keys) -> NDArray[np.int32]:
        table = self._ids
        if not len(table) or not len(ids):
            return np.full(len(ids), -1, np.int32)
        last = int(table[-1])
        if len(ids) < _FEW or int(table[0]) < 0 or last > _DENSE * len(table) + 1_000_000:
            return positions(ids, table).astype(np.int32)
        if self._lookup is None:
            self._lookup = np.full(last + 2, -1, np.int32)  # the last place is for all other ids
            self._lookup[table] = np.arange(len(table), dtype=np.int32)
        if int(ids.min()) < 0 or int(ids.max()) > last:
            ids = np.where((ids < 0) | (ids > last), last + 1, ids)
        return self._lookup[ids]

    def lost_names(self) -> tuple[str, ...]:
        """Names of the ids without an entry, in the order of their keys."""
        return tuple(f"event {number}" for number in self._lost)


def event_names(plane: Plane, kind: SectionKind, lost: Sequence[str]) -> EventNames:
    """Names and classes of a plane's events.

    Args:
        lost: names of the keys behind those of the metadata.
    """
    source = OpSource(plane.event_metadata, plane.stat_metadata)
    classes = np.full(len(source.events) + len(lost), CLASSES.index("unknown"), np.uint8)
    if kind in ("core", "sparse_core"):
        unknown = np.full(len(lost), np.nan)
        holds = np.zeros(len(classes), np.bool_)
        work = (np.append(of_rows, unknown) for of_rows in _op_work(source, classes, holds))
        flops, hbm = (of_keys if (of_keys > 0).any() else None for of_keys in work)
        return EventNames(source, tuple(lost), classes, flops, hbm, holds if holds.any() else None)
    for row, name in enumerate(_name_heads(source)):
        classes[row] = CLASSES.index(_kernel_class(name) if kind == "gpu" else _host_class(name))
    if kind == "host":
        classes[len(source.events) :] = CLASSES.index("host")
    return EventNames(source, tuple(lost), classes)


def is_split(category: str) -> bool:
    """Whether an op of this HLO category only starts or awaits what another one ends or began.

    The work that the compiler counts for it happens in between, and not while it runs.
    """
    return category.endswith(("-start", "-done")) or category.startswith("async")


def _name_heads(source: OpSource) -> list[bytes]:
    """The first bytes of each name."""
    table = source.events
    ends = np.minimum(table.name_end, table.name_begin + _NAME_SEEN)
    return [table.body[a:b] for a, b in zip(table.name_begin.tolist(), ends.tolist(), strict=True)]


def _op_work(source: OpSource, classes: NDArray[np.uint8], holds: Bools) -> tuple[Floats, Floats]:
    """Fills in classes of HLO ops and runtime events, and which ops hold others; FLOPs and HBM bytes of one run."""
    table = source.events
    rows: Int64s = np.arange(len(table), dtype=np.int64)
    columns = MetadataStats(source, rows, ("hlo_category", "flops", "memory_access_breakdown"))
    flops = columns.number("flops")
    hbm = columns.memory_access()[:, TRAFFIC.index("hbm")]
    categories = columns.texts("hlo_category")
    for row, (category, head) in enumerate(zip(categories, _name_heads(source), strict=True)):
        if category is not None:
            # an asynchronous op's class follows from its instruction's name; it may be displayed as async-async
            name, is_text, _ = table.name(row)[:_NAME_SEEN].partition(" = ")
            name = name.lstrip("%") if is_text else table.display_name(row) or name
            classes[row] = CLASSES.index(op_class(category, name, flops[row] > 0))
            holds[row] = category in HOLDS_OPS
            if holds[row] or is_split(category):
                flops[row] = hbm[row] = np.nan
        elif _WAITS.search(head):
            classes[row] = CLASSES.index("idle")
    return flops, hbm


def _host_class(name: bytes) -> OpClass:
    """The class of a host thread's event: waiting, moving data, or other work."""
    if _WAITS.search(name):
        return "idle"
    return "copy" if _MOVES.search(name) else "host"


def _kernel_class(name: bytes) -> OpClass:
    """Class of a GPU's kernel or copy, by its name."""
    if _TALKS.search(name):
        return "collective"
    if _MOVES.search(name):
        return "copy"
    return "compute" if _MULTIPLIES.search(name) else "vector"
