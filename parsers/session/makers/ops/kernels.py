"""How the page of a TPU's kernels is made: of the ops, their runs, and what the compiler counted of their units."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from tpuprof.parsers.formats.mosaic.spec import KernelSpec, kernel_spec
from tpuprof.parsers.ops.core.calls import is_kernel, merged_calls
from tpuprof.parsers.ops.device import CUSTOM_CALL
from tpuprof.parsers.pages.ops.kernels.host import CALLS_OF_HOST
from tpuprof.parsers.pages.ops.kernels.tpu import TpuKernelsPage, tpu_kernels_page
from tpuprof.parsers.session.pages import COUNTERS, HAS_COUNTERS, MODULES, OPS

if TYPE_CHECKING:
    from tpuprof.parsers.pages.ops.ops import OpsPage
    from tpuprof.parsers.session.session import Session


def tpu_kernels(session: Session, host: str | None) -> TpuKernelsPage:
    """The kernels that TPU cores ran."""
    ops = session.page(OPS, host)
    if not any_kernel(ops):
        return tpu_kernels_page(ops, ())
    found = session.reduced(CALLS_OF_HOST, host)
    calls = merged_calls(chain.from_iterable(summary.calls for summary in found.summaries))
    units = session.page(COUNTERS, host).kernels if session.page(HAS_COUNTERS, host) else ()
    modules = session.page(MODULES, host)

    def spec_of(program: int, name: str) -> KernelSpec | None:
        module = next((found for each in modules if (found := each.module(program)) is not None), None)
        proto = None if module is None else module.instruction_proto(name)
        return None if module is None or proto is None else kernel_spec(module, proto)

    return tpu_kernels_page(ops, calls, units, spec_of)


def has_tpu_kernels(session: Session, host: str | None) -> bool:
    """Whether TPU cores ran any; reads what the pages of ops need."""
    return any_kernel(session.page(OPS, host))


def any_kernel(ops: OpsPage) -> bool:
    """Whether a custom call among some ops is a kernel of a TPU."""
    if ops.runs_on != "core":
        return False
    calls = (row for row, category in enumerate(ops.table.category) if category == CUSTOM_CALL)
    return any(is_kernel(ops.table.expression(row).encode()) for row in calls)
