"""Steps that are made of the runs of programs, on cores, GPUs and the host's CPU alike, where nothing marks any."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.base.intervals import Intervals, no_ints
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.ops.host_events.events import HostEvents
from tpuprof.parsers.steps.boundaries.markers import CoreSteps, inferred_steps
from tpuprof.parsers.steps.boundaries.runs import ModuleRuns, busiest_module
from tpuprof.parsers.steps.model import StepSource
from tpuprof.parsers.steps.requests.requests import has_requests
from tpuprof.parsers.steps.requests.serving import step_cycle
from tpuprof.parsers.steps.requests.waiting import waits_for_requests, waits_in_words


@dataclass(frozen=True, slots=True)
class FoundSteps:
    """The steps of cores that share programs, and where they come from.

    Attributes:
        of_cores: of each core.
        note: what to say about them, or of cores without markers beside marked ones; without steps, why there are none.
        unasked: when a program that serves waits for requests, which is in no step.
    """

    of_cores: Sequence[CoreSteps]
    source: StepSource
    note: str = ""
    unasked: Intervals = (no_ints(), no_ints())

    @property
    def is_numbered(self) -> bool:
        return self.source in ("steps", "annotations")


def steps_of_programs(
    cores: Sequence[ModuleRuns], host: HostEvents | None, why: str, shift_ps: int = 0
) -> FoundSteps | None:
    """The cycles of programs, or the times from one end of the busiest one to the next; None where none runs often.

    Args:
        cores: the runs of each core.
        host: whose requests have no cycles.
        why: why the program's own steps are not taken.
        shift_ps: what to add to the devices' times to compare them with the host's.
    """
    cycle = None if has_requests(host) else step_cycle(cores)
    if cycle is not None:
        note = f"{why}: a step is inferred from the cycle of programs {cycle.words()}"
        return FoundSteps([cycle.steps(runs) for runs in cores], "cycle", note)
    busiest = busiest_module(cores)
    if busiest is None:
        return None
    unasked = waits_for_requests(host, cores, shift_ps)
    note = f"{why}: a step is taken as the time from one end of {busiest.partition('(')[0]} to the next"
    note += waits_in_words(unasked, cores)
    steps = [inferred_steps(runs, busiest).without(unasked) for runs in cores]
    return FoundSteps(steps, "modules", note, unasked)
