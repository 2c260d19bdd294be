"""How the page of the HLO ops of some steps is made: of the steps that cores share, and one pass over their ops."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.base.intervals import no_ints
from tpuprof.parsers.files.core_names import core_label
from tpuprof.parsers.formats.crew import Crew
from tpuprof.parsers.hosts.op_summary import OPS_OF_HOST
from tpuprof.parsers.hosts.reduction import left_out
from tpuprof.parsers.hosts.step_summary import STEP_SPANS_OF_HOST
from tpuprof.parsers.ops.core.ops import OPS_LINE
from tpuprof.parsers.ops.core.sums import core_sums
from tpuprof.parsers.ops.device import device_ordinal, tensor_cores
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.ops.one_op import OpsInSteps, in_steps, together
from tpuprof.parsers.pages.ops.ops import programs_of
from tpuprof.parsers.pages.steps import chosen_steps, common_spans
from tpuprof.parsers.session.files import each_host, opened
from tpuprof.parsers.session.makers.ops.one_op import NO_STEPS_OF_STREAMS
from tpuprof.parsers.session.pages import OPS

if TYPE_CHECKING:
    from tpuprof.parsers.files.places import HostFile
    from tpuprof.parsers.hosts.progress import Meter
    from tpuprof.parsers.session.session import Session


def ops_in_steps(session: Session, host: str | None, steps: str) -> OpsInSteps:
    """See `Session.ops_in_steps`."""
    grid, why = common_spans(session.reduced(STEP_SPANS_OF_HOST, host).summaries)  # the ops are made of them
    page = session.page(OPS, host)
    if page.runs_on != "core":
        grid, why = None, NO_STEPS_OF_STREAMS
    if grid is None or not len(grid):
        hint = "tpuprof-tui report ops without --step has the whole capture"
        raise ProfileError("no_steps", f"The ops of a step are unknown: {why}.", hint, EXIT_NOT_FOUND)
    inside = chosen_steps(steps, grid.names)
    number, files = {name: row for row, name in enumerate(grid.core_names)}, session.run.files(host)

    def work(file: HostFile, meter: Meter) -> list[OpTable]:
        with closing(opened(file, meter)) as trace:
            mine = [
                (plane, number[label])
                for plane in tensor_cores(trace)
                if (label := core_label(file.host, device_ordinal(plane))) in number
            ]
            meter.opened(sum(line.size for plane, _ in mine for line in plane.lines if line.name == OPS_LINE))
            found = []
            with Crew(session.threads) as crew:
                for plane, row in mine:
                    spans = grid.core_start_ps[row, inside], grid.core_end_ps[row, inside]
                    found.append(in_steps(core_sums(plane, spans, no_ints(), meter.chunk, crew=crew)))
            return found

    parts, failed = each_host(files, session.meter(files), work)
    cores = [table for part in parts for table in part]
    table = together(cores)
    warned = replace(page, warnings=(*page.warnings, *left_out(failed)))
    programs = programs_of(table, session.reduced(OPS_OF_HOST, host).summaries)
    return OpsInSteps(warned, grid.names[inside], len(cores), table, programs)
