"""How the page of a TPU's kernels is made: of the ops, their runs, and what the compiler counted of their units."""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING

from tpuprof.parsers.base.errors import ProfileError, behind_wall
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import examples, printable
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.hlo.programs import module_of
from tpuprof.parsers.formats.llo.dump import DumpedSchedule, dumped_schedules
from tpuprof.parsers.formats.llo.stored import StoredSchedule, stored_schedules
from tpuprof.parsers.formats.thread_pool import ThreadPool
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane, Trace
from tpuprof.parsers.hosts.reduction import Reduction
from tpuprof.parsers.ops.core.calls import CallRuns, core_calls, merged_calls
from tpuprof.parsers.ops.core.kernel_work import kernel_rows, spec_of
from tpuprof.parsers.ops.core.ops import OPS_LINE, TRACE_ME_LINE
from tpuprof.parsers.ops.device import tensor_cores
from tpuprof.parsers.pages.ops.kernels.call_units import call_units
from tpuprof.parsers.pages.ops.kernels.tpu import TpuKernelsPage, tpu_kernels_page
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.shared.host_files import reading
from tpuprof.parsers.pages.shared.key import MODULES, PageKey, PageSession

if TYPE_CHECKING:
    from tpuprof.parsers.formats.llo.schedule import Schedule
    from tpuprof.parsers.formats.mosaic.spec import KernelSpec
    from tpuprof.parsers.pages.ops.ops import OpsPage


def kernels_of_run(session: PageSession, host: str | None, dump: str | None = None) -> TpuKernelsPage:
    """The kernels that TPU cores ran.

    Args:
        dump: a folder that the compiler dumped schedules into: they are read from there, and not from the profile.

    Raises:
        ProfileError: the dump cannot be read, holds no schedule, or none of these kernels.
    """
    dumped = None if dump is None else dumped_schedules(dump)
    ops = session.page(OPS, host)
    if not any_kernel(ops):
        return tpu_kernels_page(ops, ())
    found = session.reduced(CALLS_OF_HOST, host)
    calls = merged_calls(chain.from_iterable(summary.calls for summary in found.summaries))
    failed = list(found.left_out)
    units = behind_wall("read the counters", lambda: call_units(session, host, ops, failed), failed) or ()
    modules = session.page(MODULES, host)

    def of_program(program: int, name: str) -> KernelSpec | None:
        return spec_of(module_of(modules, program), name)

    wanted = {(call.name, _program(ops, call)) for call in calls[:_MOST_SCHEDULES]}
    schedules = _schedules(session, host, wanted, failed) if dumped is None else _of_dump(dumped, wanted)
    if dump is not None and not schedules:
        raise _of_others(dump, dumped or [])
    return tpu_kernels_page(ops, calls, units, of_program, lambda name, program: schedules.get((name, program)), failed)


_MOST_SCHEDULES = 40
"""Schedules of the kernels with most time: each takes a while to read."""


def _program(ops: OpsPage, call: CallRuns) -> str:
    """Name of the module that a kernel is part of, as its schedule has it."""
    ids = ops.table.program_id.tolist()
    return ops.program[ids.index(call.program_id)].partition("(")[0] if call.program_id in ids else ""


def _schedules(
    session: PageSession, host: str | None, wanted: set[tuple[str, str]], failed: list[str]
) -> dict[tuple[str, str], Schedule]:
    """The compiler's schedules of some kernels, by op and program; none of a name that several programs have.

    Args:
        failed: gets a sentence for each that can't be read.
    """
    found: dict[tuple[str, str], list[StoredSchedule]] = {}
    for file in session.run.files(host)[:1]:  # all hosts run the same programs
        with suppress(ProfileError), reading(file) as trace:
            for stored in behind_wall("find schedules", lambda: list(stored_schedules(trace)), failed) or ():
                key = stored.instruction, stored.program.partition("(")[0]
                if key in wanted:
                    found.setdefault(key, []).append(stored)
    read: dict[tuple[str, str], Schedule] = {}
    for key, (stored, *others) in found.items():
        try:
            read |= {} if others else {key: stored.read()}
        except ProfileError as error:
            failed.append(error.sentence)
    return read


def _of_dump(dumped: list[DumpedSchedule], wanted: set[tuple[str, str]]) -> dict[tuple[str, str], Schedule]:
    """The latest schedule of each kernel in a dump, by op and program, which a schedule need not say."""
    found: dict[tuple[str, str], Schedule] = {}
    for name, program in wanted:
        latest = [each for each in dumped if each.instruction == name][: -_MOST_TRIED - 1 : -1]
        read = (each.read() for each in latest)
        schedule = next((each for each in read if each.program in ("", program)), None)
        if schedule is not None:
            found[name, program] = schedule
    return found


_MOST_TRIED = 20
"""Schedules of one name that are read to find the one of a program."""


def _of_others(dump: str, dumped: list[DumpedSchedule]) -> ProfileError:
    names = list(dict.fromkeys(printable(each.instruction) for each in dumped))
    sentence = f"{printable(dump)} has no schedule of this run's kernels, only of {examples(names)}."
    return ProfileError("no_schedules", sentence, "name the dump of the same program")


def has_tpu_kernels(session: PageSession, host: str | None) -> bool:
    """Whether TPU cores ran any; reads what the pages of ops need."""
    return any_kernel(session.page(OPS, host))


def any_kernel(ops: OpsPage) -> bool:
    """Whether a custom call among some ops is a kernel of a TPU."""
    if ops.runs_on != "core":
        return False
    return bool(kernel_rows(ops.table))


TPU_KERNELS = PageKey(kernels_of_run, is_held=True)
HAS_TPU_KERNELS = PageKey(has_tpu_kernels)


@dataclass(frozen=True, slots=True)
class HostCalls:
    """The kernels of a host, over its cores."""

    host: str
    calls: tuple[CallRuns, ...]


def _needed_bytes(trace: Trace) -> int:
    lines = (line for plane in tensor_cores(trace) for line in plane.lines)
    return sum(line.size for line in lines if line.name in (OPS_LINE, TRACE_ME_LINE))


def _reduce(trace: Trace, file: HostFile, given: None, on_chunk: ChunkDone, threads: int) -> HostCalls:
    def of_core(plane: Plane) -> tuple[CallRuns, ...]:
        return tuple(core_calls(plane, on_chunk))

    with ThreadPool(threads) as pool:
        cores = pool.map(of_core, tensor_cores(trace))
    return HostCalls(file.label, merged_calls(call for core in cores for call in core))


CALLS_OF_HOST = Reduction("kernel-calls", HostCalls, _needed_bytes, _reduce)
"""The kernels of a host."""
