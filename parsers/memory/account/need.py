"""What is in memory at once, of a compiled module or by an error's text: what the account and all advice stand on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.memory.model import CATEGORIES, Buffer, SpaceMemory

MOST_BUFFERS = 2_000  # buffers of a module that advice looks at, the largest ones; what is beyond them is small change

MARGIN = 0.03  # of what there is: buffers of a changed program are laid out anew

_LEAST_ELSEWHERE = 0.001  # of the peak: smaller buffers beside it make no other moment the peak
_TEMPORARY = tuple(CATEGORIES.index(name) for name in ("temporary", "scoped"))

OomKind = Literal["compile", "load", "runtime", "cache"]
"""When memory ran out: compiling a program, loading it onto the device, allocating while programs run, or when a
serving engine set memory aside for its KV cache."""


KnownRole = Literal["attention", "loss", "optimizer", "parameter", "cache"]
"""What the HLO may say of a buffer, see `memory.batch.structure`."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the HLO says of a module's buffers beyond their sizes and shapes; by their ids in its buffer assignment.

    Attributes:
        batch: how long the batch is now, on one device; None where it is not known.
        grown: of what grows with it, the dimensions that hold it.
        guests: of an output, the bytes of its place that something else takes before the output is there; had the
            output an argument's place, that would need another.
        is_spread: whether chips work on the program together: it has collectives.
        is_read: whether the HLO was looked at; what it does not say then is not guessed from names and ranks.
        layers: into how many equal parts most weights fall, one array a layer; 0 where they do not.
        roles: what buffers are for, of those that the HLO says it of.
        fitting_batch: the largest batch that fits (see `memory.batch.fit`); None where none does, or that is unknown.
    """

    batch: int | None = None
    grown: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    guests: Mapping[int, int] = field(default_factory=dict)
    is_spread: bool = False
    is_read: bool = False
    layers: int = 0
    roles: Mapping[int, KnownRole] = field(default_factory=dict)
    fitting_batch: int | None = None

    def grows(self, buffer: Buffer) -> bool:
        return buffer.logical_buffer is not None and buffer.logical_buffer in self.grown

    def role(self, buffer: Buffer) -> KnownRole | None:
        """What the HLO says that it is for."""
        return None if buffer.logical_buffer is None else self.roles.get(buffer.logical_buffer)

    def guest_bytes(self, buffer: Buffer) -> int:
        """What else takes of an output's place before it."""
        return 0 if buffer.logical_buffer is None else self.guests.get(buffer.logical_buffer, 0)


@dataclass(frozen=True, slots=True)
class Moments:
    """What a compiled module has in memory over the whole program.

    Attributes:
        heap_bytes: int64[points], as in `SpaceMemory`.
        elsewhere: the largest buffers that are not in memory at the peak.
        known: what the HLO says of them.
    """

    heap_bytes: Int64s = field(compare=False)
    elsewhere: tuple[Buffer, ...]
    known: Known = field(default_factory=Known, compare=False)


@dataclass(frozen=True, slots=True)
class Need:
    """What advice stands on, whether from an error's text or from a compiled module; None for what is unknown.

    Attributes:
        memory_space: ``hbm``, ``vmem``, ….
        used_bytes, capacity_bytes: what is needed in all, and what there is.
        arguments_bytes, outputs_bytes, aliased_bytes, temporaries_bytes: as in `SpaceMemory`.
        fragmentation_bytes: gaps between buffers.
        buffers: what is known to be in memory at the peak.
        is_whole: whether these are all buffers, or only the largest.
        kind: when memory ran out; None for a compiled module.
        program: the module's name.
        requested_bytes, free_bytes: what could not be had at once, and how much was free.
        exceeded_bytes: by how much the need is too large, as an error says it, or with the gaps between buffers of a
            module, negative where it fits.
        is_scoped_limit: whether `capacity_bytes` is the compiler's limit for scoped memory, which a flag can raise,
            and not what the chip has.
        moments: the whole program, where a compiled module says it.
        wanted_tokens, fitting_tokens: of a serving engine's cache: those of the longest request, and how many fit.
    """

    memory_space: str
    used_bytes: int | None
    capacity_bytes: int | None
    arguments_bytes: int | None
    outputs_bytes: int | None
    aliased_bytes: int | None
    temporaries_bytes: int | None
    fragmentation_bytes: int | None
    buffers: tuple[Buffer, ...]
    is_whole: bool
    kind: OomKind | None = None
    program: str | None = None
    requested_bytes: int | None = None
    free_bytes: int | None = None
    exceeded_bytes: int | None = None
    is_scoped_limit: bool = False
    moments: Moments | None = None
    wanted_tokens: int | None = None
    fitting_tokens: int | None = None

    @property
    def known(self) -> Known:
        """What the HLO says; nothing where there is none."""
        return Known() if self.moments is None else self.moments.known

    def is_met(self, saving: float) -> bool:
        """Whether it fits once so much is saved; not of a need that fits already, or whose size is unknown."""
        over, there = self.over_bytes, self.capacity_bytes
        if over is None or over <= 0:
            return False
        if self.memory_space != "hbm":  # a kernel that takes its memory's last byte does not fit
            return saving > over
        if there is None:
            return saving >= over
        return fits(there + over - saving, there)

    @property
    def over_bytes(self) -> int | None:
        """By how much the need is too large, negative where it fits; None where unknown."""
        if self.exceeded_bytes is not None:  # the other two are rounded to 10 MiB where there are GiB of them
            return self.exceeded_bytes
        return None if self.used_bytes is None or self.capacity_bytes is None else self.used_bytes - self.capacity_bytes


def fits(need_bytes: float, there_bytes: float) -> bool:
    """Whether what a changed program should need fits, gaps between buffers included.

    It is laid out anew then, for which a part of the memory is left free.
    """
    return need_bytes <= (1 - MARGIN) * there_bytes


def largest_at(memory: SpaceMemory, point: int) -> list[int]:
    """Rows of the largest buffers at a point, the largest first."""
    rows = memory.at(point)
    largest: list[int] = rows[np.argsort(-memory.live_ranges.size_bytes[rows], kind="stable")[:MOST_BUFFERS]].tolist()
    return largest


def moments_of(memory: SpaceMemory, point: int, known: Known | None = None) -> Moments:
    """The whole program, with the largest buffers that are not in memory at a point."""
    rows = elsewhere(memory, point)
    return Moments(memory.heap_bytes, tuple(memory.buffers[row] for row in rows), known or Known())


def elsewhere(memory: SpaceMemory, point: int) -> list[int]:
    """Rows of the largest buffers that are not in memory at a point, the largest first."""
    ranges = memory.live_ranges
    away = (ranges.born > point) | (ranges.dies <= point)
    rows = np.flatnonzero(away & (ranges.size_bytes >= _LEAST_ELSEWHERE * memory.peak_bytes))
    largest: list[int] = rows[np.argsort(-ranges.size_bytes[rows], kind="stable")[:MOST_BUFFERS]].tolist()
    return largest


def need_of_memory(page: SpaceMemory, known: Known | None = None) -> Need:
    """What is in memory at the peak of a compiled module, the largest buffers first.

    Args:
        known: what the module's HLO says besides, see `memory.batch`.
    """
    position = page.peak_position
    rows = page.at(position)
    sizes = page.live_ranges.size_bytes[rows]
    largest = largest_at(page, position)
    temporary = np.isin(page.live_ranges.category[rows], _TEMPORARY)
    return Need(
        memory_space=page.name.lower(),
        used_bytes=int(page.heap_bytes[position]),
        capacity_bytes=None if page.capacity is None else page.capacity.size_bytes,
        exceeded_bytes=None if page.headroom_bytes is None else -page.headroom_bytes,
        arguments_bytes=page.arguments_bytes,
        outputs_bytes=page.outputs_bytes,
        aliased_bytes=page.aliased_bytes,
        temporaries_bytes=int(sizes[temporary].sum()),
        fragmentation_bytes=max(0, page.total_allocation_bytes - page.peak_bytes),
        buffers=tuple(page.buffers[row] for row in largest),
        is_whole=len(largest) == len(rows),
        moments=moments_of(page, position, known),
        program=page.module.name,
    )
