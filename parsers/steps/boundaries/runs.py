"""The runs of HLO modules on a core: the events of its `XLA Modules` line, read once for all who need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, grouped, no_ints, totals
from tpuprof.parsers.base.record import Sized, dataclass
from tpuprof.parsers.formats.xspace.core.api import sum_by_key
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane
from tpuprof.parsers.ops.core.ops import MODULES_LINE
from tpuprof.parsers.ops.device import device_ordinal
from tpuprof.parsers.ops.host_events.events import Ends, HostThread

_STATS = ("_ct", "_c", "run_id")

MINIMUM_RUNS = 3
"""A module must run so often for its periods to count as steps."""

NEARLY_ALL = 0.9
"""What holds for this share of runs, or of steps, holds for all that matter."""


@dataclass(frozen=True, slots=True)
class ModuleRuns(Sized):
    """The runs of modules on one core, in order of start.

    Attributes:
        ordinal: the core's number, which the host's events of launches name too.
        names: the modules' names, each once: ``jit_f(12190760917235803885)``.
        module: int64[n], index of each run's name.
        start_ps, end_ps: int64[n], on the trace's clock.
        run_id: int64[n], -1 for a run without one. Each core counts its own.
        started_by: the links that lead to runs, by their place in this order.
        place: int64[n], where each run lies in the file.
    """

    sized_by = "module"
    ordinal: int
    names: tuple[str, ...]
    module: Int64s
    start_ps: Int64s
    end_ps: Int64s
    run_id: Int64s
    started_by: Ends
    place: Int64s

    def within(self, spans: Sequence[tuple[int, int]]) -> ModuleRuns:
        """The runs that end by the last of some spans, if there are any: ops behind it are not looked at."""
        kept = self.end_ps <= max((end for _, end in spans), default=int(self.end_ps.max(initial=0)))
        module, start, end, run_id = (of[kept] for of in (self.module, self.start_ps, self.end_ps, self.run_id))
        return ModuleRuns(self.ordinal, self.names, module, start, end, run_id, Ends.joined([]), self.place[kept])

    @property
    def module_ps(self) -> Int64s:
        """int64[len(names)]: the time of each module's runs together."""
        return sum_by_key(self.module, self.end_ps - self.start_ps, len(self.names))


def module_runs(plane: Plane, on_chunk: ChunkDone | None = None) -> ModuleRuns:
    """The runs of modules on a core, from all its lines of them; none where it has no such line."""
    numbers: dict[str, int] = {}
    columns, links, count = [(no_ints(),) * 4], [Ends.joined([])], 0
    for line in plane.lines:
        if line.name != MODULES_LINE:
            continue
        events = HostThread.of(line, line.events(_STATS, on_chunk, places=False))
        ids, which = np.unique(events.metadata_id, return_inverse=True)
        named = plane.event_metadata.labels(ids.astype(np.int64))
        module = np.array([numbers.setdefault(name, len(numbers)) for name in named], np.int64)[which]
        columns.append((module, events.start_ps, events.end_ps, events.integers("run_id", -1)))
        ends = events.consumers()
        links.append(Ends(ends.rows + count, ends.kind, ends.id))
        count += len(events)
    module, start, end, run_id = (np.concatenate(column) for column in zip(*columns, strict=True))
    order = np.argsort(start, kind="stable")
    at = np.empty(count, np.int64)
    at[order] = np.arange(count)
    ends = Ends.joined(links)
    return ModuleRuns(
        device_ordinal(plane),
        tuple(numbers),
        module[order],
        start[order],
        end[order],
        run_id[order],
        Ends(at[ends.rows], ends.kind, ends.id),
        order,
    )


def busiest_module(cores: Sequence[ModuleRuns]) -> str | None:
    """The module with the most time over all cores that ran often enough on each.

    Cores that ran no module, such as chips that the program does not use, do not count.
    """
    cores = [core for core in cores if len(core)]
    times = totals(of for core in cores for of in zip(core.names, core.module_ps.tolist(), strict=True))
    ran = [np.bincount(core.module, minlength=len(core.names)).tolist() for core in cores]
    counts = grouped(of for core, each in zip(cores, ran, strict=True) for of in zip(core.names, each, strict=True))
    return busiest_often(times, {name: of for name, of in counts.items() if len(of) == len(cores)})


def busiest_often(times: Mapping[str, float], counts: Mapping[str, Sequence[int]]) -> str | None:
    """The module with the most time of those that ran often enough; `counts` says how often, on each core or host."""
    often = [name for name, of in counts.items() if min(of) >= MINIMUM_RUNS]
    return max(often, key=lambda name: (times[name], name), default=None)
