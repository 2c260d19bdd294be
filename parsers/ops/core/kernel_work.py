"""The work of kernels by their shapes, where the profile's own count can't be.

The compiler counts the FLOPs of a custom call's body once for each branch, whatever its grid: of a kernel with 16 steps
it may count 2. It counts no bytes of one without a cost estimate, and writes 0. The kernel's Mosaic module, which the
profile's HLO holds, says what runs in each step and which blocks are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.ops.device import CUSTOM_CALL, is_kernel
from tpuprof.parsers.ops.op_metadata import TRAFFIC
from tpuprof.parsers.ops.table import OpTable

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.modules import HloModule
    from tpuprof.parsers.formats.hlo.programs import HloModules
    from tpuprof.parsers.formats.mosaic.spec import KernelSpec

LEAST = 0.95
"""A figure below this part of what the shapes need contradicts them; above it, times and estimates are rounded."""

_MOST = 64
"""So many kernels are read, those that take most time: a module takes some 50 ms."""


@dataclass(frozen=True, slots=True)
class KernelWork:
    """What one run of a kernel does by its module.

    Attributes:
        flops: of its matrix products; None where it has none, or numbers decide that it gets when it runs.
        hbm_bytes: that it copies between HBM and the chip; None where they are not known.
    """

    flops: int | None
    hbm_bytes: int | None


def spec_of(module: HloModule | None, name: str) -> KernelSpec | None:
    """What a kernel's module says; None where the program is not there, or has no kernel of that name."""
    from tpuprof.parsers.formats.mosaic.spec import kernel_spec  # noqa: PLC0415 - of programs with kernels

    proto = None if module is None else module.instruction_proto(name)
    return None if module is None or proto is None else kernel_spec(module, proto)


def work_of_spec(spec: KernelSpec) -> KernelWork:
    """The work of a kernel by its module: blocks that its grid copies, and what it copies itself of other arrays."""
    copied = [each.copied_bytes for each in spec.buffers if each.role in ("prefetch", "input", "output")]
    together = None if spec.reason or None in copied else sum(size or 0 for size in copied)
    return KernelWork(spec.matrix_flops.value or None, together or None)


def kernel_rows(table: OpTable) -> list[int]:
    """Rows of the custom calls that are kernels, those with most time first."""
    calls = [row for row, category in enumerate(table.category) if category == CUSTOM_CALL]
    kernels = (row for row in calls if is_kernel(table.expression(row)))
    return sorted(kernels, key=lambda row: -int(table.self_ps[row]))


class KernelWorks:
    """Gives the ops of a profile's cores the work of their kernels; any thread may ask.

    Args:
        programs: finds those of the profile; called where there are kernels.
    """

    def __init__(self, programs: Callable[[], HloModules]) -> None:
        self._programs = programs
        self._known: dict[tuple[bytes, tuple[bytes, ...]], KernelWork] = {}

    def applied(self, table: OpTable) -> OpTable:
        """A table whose kernels have the work that their shapes need, where nobody counted it, or too little of it."""
        rows = kernel_rows(table)
        found = dict(self._works(table, rows)) if rows else {}
        return with_works(table, found) if found else table

    def _works(self, table: OpTable, rows: Iterable[int]) -> Iterator[tuple[int, KernelWork]]:
        """The work of some kernels whose program the profile holds; those that are alike are followed once."""
        programs = self._programs()
        for row in rows:
            program = int(table.program_id[row])
            module = programs.module(program)
            proto = None if module is None else module.instruction_proto(table.name[row])
            if module is None or proto is None:
                continue
            arrays = (proto.shape, *(operand.shape for operand in module.operand_protos(proto) if operand is not None))
            alike = module.backend_config(proto), tuple(shape.SerializeToString() for shape in arrays)
            if alike not in self._known:
                if len(self._known) >= _MOST:
                    continue
                spec = spec_of(module, table.name[row])
                self._known[alike] = KernelWork(None, None) if spec is None else work_of_spec(spec)
            yield row, self._known[alike]


def with_works(table: OpTable, found: Mapping[int, KernelWork]) -> OpTable:
    """A table whose rows have at least the work given for them; that of all occurrences is as often that of a run."""
    flops, model = table.flops.copy(), table.model_flops.copy()
    everything, traffic = table.bytes_accessed.copy(), table.traffic.copy()
    hbm = TRAFFIC.index("hbm")
    for row, work in found.items():
        times = float(table.occurrences[row])
        if work.flops and _is_less(flops[row], work.flops * times):
            model[row] = max(np.nan_to_num(model[row]), work.flops * times)
            flops[row] = work.flops * times
        if work.hbm_bytes and _is_less(traffic[row, hbm], work.hbm_bytes * times):
            traffic[row, hbm] = work.hbm_bytes * times
            everything[row] = max(np.nan_to_num(everything[row]), work.hbm_bytes * times)
    return replace(table, flops=flops, model_flops=model, bytes_accessed=everything, traffic=traffic)


def _is_less(counted: float, needed: float) -> bool:
    return not np.isfinite(counted) or counted < LEAST * needed
