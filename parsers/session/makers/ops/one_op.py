"""How the page of one op is made: of the table of all ops, the steps, and the single runs of the op."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.files.core_names import core_label
from tpuprof.parsers.formats.crew import Crew
from tpuprof.parsers.hosts.reduction import left_out
from tpuprof.parsers.hosts.step_summary import STEP_SPANS_OF_HOST
from tpuprof.parsers.ops.core.ops import OPS_LINE
from tpuprof.parsers.ops.core.runs import OpRuns, ProgramOp, core_runs, joined_runs
from tpuprof.parsers.ops.device import device_ordinal, tensor_cores
from tpuprof.parsers.ops.host.events import read_threads
from tpuprof.parsers.ops.streams import devices
from tpuprof.parsers.ops.streams.attribution import OP_STATS
from tpuprof.parsers.pages.ops.one_op import SPARSE, FoundOp, FoundRuns, OpPage, find_op, op_page
from tpuprof.parsers.pages.ops.ops import with_offloaded
from tpuprof.parsers.pages.steps import common_spans
from tpuprof.parsers.session.files import each_host, opened
from tpuprof.parsers.session.pages import OPS

if TYPE_CHECKING:
    from tpuprof.parsers.files.places import HostFile
    from tpuprof.parsers.formats.xspace.trace import ChunkDone, Trace
    from tpuprof.parsers.hosts.progress import Meter
    from tpuprof.parsers.session.session import Session

NO_STEPS_OF_STREAMS = "only TPU cores have times by step"


def op_runs(session: Session, host: str | None, name: str | None, module: str | None) -> FoundRuns:
    """See `Session.op_runs`."""
    page = session.page(OPS, host)
    found = find_op(with_offloaded(page), name, module)
    if found.main >= len(page):
        return FoundRuns(found, (), why_none=SPARSE)
    return FoundRuns(found, *_runs(session, host, found))


def one_op(session: Session, host: str | None, name: str | None, module: str | None) -> OpPage:
    """See `Session.op`."""
    grid, why = common_spans(session.reduced(STEP_SPANS_OF_HOST, host).summaries)  # the ops are made of them
    those = op_runs(session, host, name, module)
    found, runs, failed, page = those.found, those.runs, those.failed, those.found.page
    if those.why_none:
        return op_page(found, (), None, those.why_none, those.why_none)
    warned = replace(found.page, warnings=(*found.page.warnings, *left_out(failed)))
    if page.runs_on != "core":
        grid, why = None, NO_STEPS_OF_STREAMS
    return op_page(replace(found, page=warned), runs, grid, why, "")


def _runs(session: Session, host: str | None, found: FoundOp) -> tuple[list[OpRuns], list[ProfileError]]:
    """The runs on every device of every host; hosts that can't be read any more are left out."""
    table = found.page.table
    wanted = frozenset((int(table.program_id[row]), table.name[row]) for row in found.rows)
    files = session.run.files(host)

    def work(file: HostFile, meter: Meter) -> list[OpRuns]:
        with closing(opened(file, meter)) as trace:
            cores = tensor_cores(trace)
            meter.opened(sum(line.size for plane in cores for line in plane.lines if line.name == OPS_LINE))
            if not cores:
                return _of_streams(trace, file, wanted, meter.chunk)
            with Crew(session.threads) as crew:
                return crew.map(
                    lambda plane: core_runs(plane, core_label(file.host, device_ordinal(plane)), wanted, meter.chunk),
                    cores,
                )

    parts, failed = each_host(files, session.meter(files), work)
    return [runs for part in parts for runs in part], failed


def _of_streams(trace: Trace, file: HostFile, wanted: frozenset[ProgramOp], on_chunk: ChunkDone) -> list[OpRuns]:
    """The runs on GPUs, or on the host's CPU."""
    host = devices.runs_on_cpu(trace)
    if host is not None:
        cpu = devices.cpu_device(trace, host, list(read_threads(host, OP_STATS, on_chunk)))
        found = [] if cpu is None else [cpu]
    else:
        found = list(devices.read_gpus(trace, (), on_chunk))
    runs = []
    for device in found:
        ops = device.attribution.ops
        chosen = np.array([number for number, each in enumerate(ops) if (each.program, each.name) in wanted], np.int64)
        parts = []
        for stream, numbers in zip(device.streams, device.attribution.numbers, strict=True):
            mine = np.flatnonzero(np.isin(numbers, chosen))
            parts.append((stream.start_ps[mine], stream.end_ps[mine]))
        label = file.host if device.is_host else core_label(file.host, device_ordinal(device.plane))
        runs.append(joined_runs(label, parts))
    return runs
