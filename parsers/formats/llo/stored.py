"""The schedules of a profile: which it holds, and one of them when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tpuprof.parsers.base.errors import one_part
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.hlo.programs import METADATA_PLANE
from tpuprof.parsers.formats.llo.module import read_schedule
from tpuprof.parsers.formats.llo.schedule import Schedule
from tpuprof.parsers.formats.xspace.metadata import KIND_BYTES, KIND_STR
from tpuprof.parsers.formats.xspace.trace import Trace

FLAG = "--xla_xprof_register_llo_debug_info=true"
"""In ``LIBTPU_INIT_ARGS``: it makes a profile hold the schedules of the programs that ran in it."""

_STAT = "llo_proto"


@dataclass(frozen=True, slots=True)
class StoredSchedule:
    """A schedule that a profile holds, not read yet.

    Attributes:
        instruction: the HLO instruction that it is of, ``mm.1``.
        program: the HLO module with its number in that process, ``jit_step(35)``. The number is not the program id
            that other parts of the profile name.
        data: the encoded schedule.
    """

    instruction: str
    program: str
    data: bytes

    def read(self) -> Schedule:
        """The schedule; errors as for `one_part`."""
        with one_part(f"read the schedule of {printable(self.instruction)}", is_decoder=True):
            return read_schedule(self.data)


def stored_schedules(trace: Trace) -> Iterator[StoredSchedule]:
    """The schedules of a trace in the order of their metadata; none where it was captured without `FLAG`."""
    for plane in trace.planes:
        ids = plane.stat_ids((_STAT,)) if plane.name == METADATA_PLANE else {}
        if not ids:
            continue
        table = plane.event_metadata
        fields = table.stats(np.array(list(ids.values()), np.int64))
        for row in np.flatnonzero(np.isin(fields.kind[0], (KIND_BYTES, KIND_STR))).tolist():
            begin, length = int(fields.value[0, row]), int(fields.length[0, row])
            program, _, instruction = table.name(row).rpartition("::")
            yield StoredSchedule(instruction, program, table.body[begin : begin + length])
