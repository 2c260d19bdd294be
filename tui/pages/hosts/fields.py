"""The quantities of a run's hosts, and of the steps that they share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import NamedTuple

import numpy as np

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.hosts.model import PARTS, HostsPage, LeftOut, SharedSteps, StepPartName
from tpuprof.tui.draw.format import count
from tpuprof.tui.draw.spans import ASCII, Glyphs, Span
from tpuprof.tui.draw.table import Cells, by_row, each
from tpuprof.tui.report.fields import ColumnSpec, Field, Metric, Table, attribute, listed, object_table, of_each
from tpuprof.tui.report.units import COUNT, PERCENT, TEXTS, TIME_MS, VERBATIM, Unit

_WHY = "the profile of the host does not say"
_LEAST_WIDTHS = {"ms": 9, "percent": 6, "steps": 6}
"""Cells of columns, by unit or by title, where these are more than the title's."""


def _slowest_cell(page: HostsPage, _: Glyphs, index: int) -> Span:
    """In how many steps a host is the slowest, that of the straggler marked."""
    number = page.rows[index].slowest_in
    return count(number), "bad" if _is_slowest(page, index) else "text" if number else "dim"


def _is_slowest(page: HostsPage, index: int) -> bool:
    return index == (page.straggler if page.rows[index].core is None else page.slowest_core)


def _name_cells(page: HostsPage, glyphs: Glyphs) -> Cells:
    """Hosts by name, and below each its cores; the slowest says so."""
    is_alone = len(page.rows) > 1 and sum(row.core is None for row in page.rows) == 1

    def cell(index: int) -> Span:
        row = page.rows[index]
        if row.core is None and is_alone:
            return "all cores", "strong"
        name = row.label if row.core is None else f"  {row.noun} {row.core}"
        return (name, "strong") if row.core is None else (_marked(page, index, name), "text")

    return each(cell)


def _core_cell(page: HostsPage, _: Glyphs, index: int) -> Span:
    return _marked(page, index, page.rows[index].label), "strong"


def _marked(page: HostsPage, index: int, name: str) -> str:
    return f"{name}, slowest" if _is_slowest(page, index) else name


def name_width(page: HostsPage) -> int:
    """Cells of the longest name in a table of hosts, or of cores."""
    are_cores = all(row.core is not None for row in page.rows)
    cells = (by_row(_core_cell) if are_cores else _name_cells)(page, ASCII)
    return max([4, *(len(text) for text, _ in cells(range(len(page.rows))))])


_of_row = partial(of_each, within="rows")


def _column(unit: Unit, title: str) -> ColumnSpec[HostsPage]:
    """A column of figures, dim where they are unknown."""
    width = max(len(title), *(_LEAST_WIDTHS.get(name, 0) for name in (unit.name, title)))
    return ColumnSpec(title, width, style=lambda value: "dim" if value is None else "text")


def _known(
    name: str, key: str, unit: Unit, meaning: str, title: str = "", null: str = _WHY
) -> tuple[str, Field[HostsPage]]:
    """A field of an attribute of `HostRow`, under which `HostsPage.unknown` says why it is unknown."""
    screen = _column(unit, title) if title else None
    return name, Field(key, unit, _of_row(name), meaning, null, title, screen)


def _step_time(name: str, unit: Unit, meaning: str, title: str = "", heading: str = "") -> tuple[str, Field[HostsPage]]:
    """A field of the summary over a host's own steps."""
    of_row = _of_row(f"step_time.{name}{'_ps' if unit is TIME_MS else ''}")
    screen = _column(unit, title) if title else None
    key, words = f"step_time_ms.{name}", f"{meaning} of its own steps, each up to its own end"
    return "step_time", Field(key, unit, of_row, words, "the host has no steps", heading or title, screen)


def _part(index: int, part: StepPartName) -> tuple[str, Field[HostsPage]]:
    """A field of what a mean common step is made of."""
    read = _of_row(lambda row: None if row.known_parts_ps is None else row.known_parts_ps[index])
    return "parts_ps", Field(
        f"breakdown_ms.{part}", TIME_MS, read, f"of the mean common step: {_PART_WORDS[part]}", _WHY, part
    )


_HOST_COLUMN: ColumnSpec[HostsPage] = ColumnSpec("host", 4, cells=_name_cells, fixed=True)
_CORE_COLUMN: ColumnSpec[HostsPage] = ColumnSpec("core", 4, cells=by_row(_core_cell), fixed=True)
_NAMES = _of_row("host")
_HOST = Field("host", VERBATIM, _NAMES, "its name", "", "host", _HOST_COLUMN, lambda page: np.arange(len(page.rows)))
_SLOWEST = "in how many common steps its own time is longer than that of every other host"
_SLOWEST_IN = _of_row("slowest_in")
_SLOWEST_COLUMN = ColumnSpec("slowest", 7, cells=by_row(_slowest_cell))
_OWN = "mean time of a common step in which its slowest core does not wait for other cores"
_COST = "mean over the common steps of how much longer its own time is than the next slowest host's"
_IDLE_OF_CAPTURE = "time of the capture in which its cores ran no op"
_INPUT = "share of the mean step in infeed ops, or idle while the host waits for input; mean over its cores"
_WAIT = "share of the mean step that it waits for other cores: in collectives, at barriers and at the step's end"
_COLLECTIVE = "share of the mean step in collectives, or waiting for other cores elsewhere"
_PART_WORDS: Mapping[StepPartName, str] = {
    "compute": "computing ops, and copies within the device",
    "input": "in infeed ops, or idle while the host waits for input",
    "output": "in outfeed ops",
    "transfer": "sending to the host, receiving from it, and copying host memory",
    "collective": "in collectives, as long as on the core that waits least",
    "wait": "waiting for other cores: in collectives, at barriers and at the step's end",
    "idle": "no op, and no wait for input or other cores",
}
_GROUP = "the number of its group: only cores of one group wait for each other; --group takes it"
_JSON = (
    ("host", _HOST),
    ("group", Field("group", COUNT, _of_row("group"), _GROUP, screen=ColumnSpec("group", 5))),
    _known("device_type", "device_type", VERBATIM, "the type of its device"),
    _known("cores", "core_count", COUNT, "its TensorCores or GPUs", "cores", null=""),
    _step_time("average", TIME_MS, "mean", "step", "step, mean"),
    _step_time("standard_deviation", TIME_MS, "standard deviation"),
    _step_time("median", TIME_MS, "median", "median", "step, median"),
    _step_time("minimum", TIME_MS, "the shortest"),
    _step_time("maximum", TIME_MS, "the longest", "longest"),
    _step_time("count", COUNT, "number", "steps"),
    _step_time("source", VERBATIM, "whether marked or inferred, the origin"),
    _known("common_steps", "common_steps", COUNT, "steps that it shares with all other hosts", null=""),
    _known("own_ps", "own_time_ms", TIME_MS, _OWN, "own time"),
    ("slowest_in", Field("slowest_in_steps", COUNT, _SLOWEST_IN, _SLOWEST, _WHY, "slowest in", _SLOWEST_COLUMN)),
    _known("cost_ps", "cost_ms", TIME_MS, _COST, "costs"),
    *(_part(index, part) for index, part in enumerate(PARTS)),
    _known("idle_percent", "device_idle_percent", PERCENT, _IDLE_OF_CAPTURE, "idle of capture"),
    _known("input_percent", "input_percent", PERCENT, _INPUT, "input"),
    _known("collective_percent", "collective_percent", PERCENT, _COLLECTIVE),
    _known("wait_percent", "collective_wait_percent", PERCENT, _WAIT, "wait"),
    _known("duty_percent", "device_duty_cycle_percent", PERCENT, "duty cycle of its chips", "duty"),
    _known("mxu_percent", "mxu_utilization_percent", PERCENT, "use of the matrix units, by hardware counters", "MXU"),
    _known("hbm_percent", "hbm_utilization_percent", PERCENT, "use of HBM bandwidth, by hardware counters", "HBM"),
    _known("profile_duration_ps", "profile_duration_ms", TIME_MS, "how long was profiled"),
    _known("problems", "problems", TEXTS, "what is wrong with its file, or missing from it", null=""),
)
"""The fields of JSON in its order, each with the attribute of `HostRow` that it is of."""

KEYS = {
    **{name: field.key for name, field in _JSON},
    **{"step_time": "step_time_ms", "parts_ps": "breakdown_ms", "parts_ps.input": "breakdown_ms.input"},
    "busy_percent": "busy_percent",
}
"""What `HostsPage.unknown` says why by, and the key in JSON."""

_STEP_METRICS = ("average", "standard_deviation", "median", "minimum", "maximum", "count", "source")
_IDLE = "share of the mean step without any op and without waiting for input or other cores"
_BUSY = "share of the capture in which an op ran on its cores; of a GPU, on a stream"
_BUSY_FIELD = _known("busy_percent", "busy_percent", PERCENT, _BUSY, "busy")[1]
_OTHERS = (
    Field("label", VERBATIM, _of_row("label"), "its name, and its group where there are several", heading="host"),
    _BUSY_FIELD,
    _known("step_idle_percent", "step_idle_percent", PERCENT, _IDLE, "idle")[1],
)

BREAKDOWN = ("label", *(f"breakdown_ms.{part}" for part in PARTS))  # what Markdown shows of where a mean step goes

HOSTS: Table[HostsPage] = Table(
    "hosts",
    (*(field for _, field in _JSON), *_OTHERS),
    lambda page: len(page.rows),
    json=tuple(field.key for _, field in _JSON),
    markdown=(
        *("label", "core_count", "step_time_ms.median", "step_time_ms.maximum", "own_time_ms", "slowest_in_steps"),
        *("cost_ms", "collective_wait_percent", "input_percent", "step_idle_percent", "device_idle_percent"),
        "device_duty_cycle_percent",
    ),
    screen=(
        *("host", "own_time_ms", "slowest_in_steps", "step_time_ms.median", "collective_wait_percent"),
        *("input_percent", "step_idle_percent", "step_time_ms.maximum", "step_time_ms.count", "cost_ms", "core_count"),
        *("device_duty_cycle_percent", "mxu_utilization_percent", "hbm_utilization_percent", "device_idle_percent"),
    ),
)

LISTED: Table[HostsPage] = Table(
    "hosts",
    HOSTS.fields,
    HOSTS.length,
    json=(),
    screen=(
        *("host", "busy_percent", "step_time_ms.average", "collective_wait_percent", "input_percent", "own_time_ms"),
        *("step_idle_percent", "slowest_in_steps", "cost_ms", "step_time_ms.median", "step_time_ms.maximum"),
        *("step_time_ms.count", "core_count", "device_duty_cycle_percent", "mxu_utilization_percent"),
        "hbm_utilization_percent",
    ),
)
"""Hosts and their cores in one list."""

_OF_CORES = (
    *("group", "device_type", "busy_percent", *(f"step_time_ms.{name}" for name in _STEP_METRICS), "common_steps"),
    *("own_time_ms", "slowest_in_steps", "cost_ms", *(f"breakdown_ms.{part}" for part in PARTS), "input_percent"),
    *("collective_percent", "collective_wait_percent", "step_idle_percent"),
)
_OWN_STEPS = ("breakdown_ms.", "input_", "collective_", "step_idle_")
"""What keys begin with that are of a core's own steps where its host is not compared with the others."""


def _of_core(field: Field[HostsPage]) -> Field[HostsPage]:
    if not field.key.startswith(_OWN_STEPS):
        return field
    return replace(field, meaning=f"{field.meaning}; of its own steps where its host is not compared with the others")


_LOST = "steps left out because this core lost ops in them"
_CORE, _NO_CHIP = "its host and number, as --core takes it", "the profile does not say its chip"
CORES: Table[HostsPage] = Table(
    "cores",
    (
        Field("core", VERBATIM, _of_row("label"), _CORE, heading="core", screen=_CORE_COLUMN),
        Field("host", VERBATIM, _NAMES, "the name of its host"),
        Field("chip", COUNT, _of_row("chip"), "the number of its chip", _NO_CHIP),
        *map(_of_core, HOSTS.chosen(_OF_CORES)),
        Field("lost_steps", TEXTS, _of_row(lambda row: list(row.lost_steps)), _LOST),
    ),
    HOSTS.length,
    markdown=(
        *("core", "busy_percent", "step_time_ms.average", "own_time_ms", "slowest_in_steps", "cost_ms"),
        *("collective_wait_percent", "input_percent", "step_idle_percent"),
    ),
    screen=("core", "group", *LISTED.screen[1:12]),
)
"""Of a page whose rows are cores (`of_cores`)."""


def of_cores(page: HostsPage) -> HostsPage:
    """The page with a row a core instead of a row a host."""
    return replace(page, rows=page.cores, unknown=page.cores_unknown)


def with_cores(page: HostsPage) -> HostsPage:
    """The page with its cores as further rows."""
    slowest = None if page.slowest_core is None else len(page.rows) + page.slowest_core
    return replace(page, rows=(*page.rows, *page.cores), slowest_core=slowest)


def how_many(page: HostsPage) -> str:
    """``4 hosts, 2 left out``."""
    broken = f", {len(page.left_out):,} left out" if page.left_out else ""
    return f"{counted(page.host_count, 'host')}{broken}"


LEFT_OUT: Table[Sequence[LeftOut]] = object_table(
    "left_out", (attribute("host", VERBATIM, "its name"), attribute("reason", VERBATIM, "why it is left out"))
)


def _straggler(page: HostsPage) -> str | None:
    return None if page.straggler is None else page.rows[page.straggler].host


def _slowest(page: HostsPage) -> str | None:
    return None if page.slowest_core is None else page.cores[page.slowest_core].label


CORE_METRICS: tuple[Metric[HostsPage], ...] = (
    attribute("statement", VERBATIM, "whether one core delays the others, in a sentence", name="cores_statement"),
    Metric("slowest", VERBATIM, _slowest, "the core that is slowest", "the cores are even, or can't be compared"),
)
METRICS: tuple[Metric[HostsPage], ...] = (
    attribute("verdict", VERBATIM, "straggler, even, uneven, independent or unknown"),
    attribute("statement", VERBATIM, "the verdict in a sentence"),
    Metric("straggler", VERBATIM, _straggler, "the host that delays the others", "no single host delays the others"),
)


# --- the common steps


class StepHost(NamedTuple):
    """A step on one host; times in picoseconds."""

    host: str
    duration_ps: int
    own_ps: int


class StepCore(NamedTuple):
    """A step on one core, its time in picoseconds by what the core does; None where it is unknown."""

    core: str
    parts_ps: dict[StepPartName, int | None]


class SharedStep(NamedTuple):
    """A step that all hosts share, as long as on the slowest core of all.

    The slowest host is the one with the longest own time, None where several have it.
    """

    group: int
    name: str
    duration_ps: int
    slowest_host: str | None
    hosts: Sequence[StepHost]
    cores: Sequence[StepCore]


def steps_of(page: HostsPage) -> list[SharedStep]:
    """Every common step, on each host, and on each core taken apart; those of the largest group first."""
    return [step for steps in page.every_step for step in _steps_of(page, steps)]


def _steps_of(page: HostsPage, steps: SharedSteps) -> Iterator[SharedStep]:
    names = [page.rows[row].host for row in steps.rows]
    is_alone = ((steps.done_ps == steps.done_ps.max(axis=0)).sum(axis=0) == 1).tolist()
    slowest = [names[host] if alone else None for host, alone in zip(steps.slowest.tolist(), is_alone, strict=True)]
    times = zip(steps.duration_ps.T.tolist(), steps.own_ps.T.tolist(), strict=True)
    hosts = [list(map(StepHost, names, durations, owns)) for durations, owns in times]
    durations, groups = steps.duration_ps.max(axis=0).tolist(), repeat(steps.group)
    return map(SharedStep, groups, steps.names, durations, slowest, hosts, _cores_of(page, steps))


def _cores_of(page: HostsPage, steps: SharedSteps) -> list[list[StepCore]]:
    """Every step on each core, without the time of input where it is unknown."""
    is_input_known = [page.rows[steps.rows[host]].input_percent is not None for host in steps.core_hosts.tolist()]
    return [
        [
            StepCore(name, {**dict(zip(PARTS, parts, strict=True)), **({} if is_known else {"input": None})})
            for name, is_known, parts in zip(steps.core_names, is_input_known, cores, strict=True)
        ]
        for cores in steps.parts_ps.swapaxes(0, 1).tolist()
    ]


def _part_of_core(part: StepPartName) -> Metric[StepCore]:
    null = "how long it waits for input is unknown" if part == "input" else ""
    return Metric(part, TIME_MS, lambda core: core.parts_ps[part], _PART_WORDS[part], null)


_STEP_HOSTS: Table[Sequence[StepHost]] = object_table(
    "hosts",
    (
        attribute("host", VERBATIM, "its name"),
        attribute("duration_ms", TIME_MS, "how long its step takes"),
        attribute("own_time_ms", TIME_MS, "that without waiting", name="own_ps"),
    ),
)
_STEP_CORES: Table[Sequence[StepCore]] = object_table(
    "cores", (attribute("core", VERBATIM, "its host and number"), *map(_part_of_core, PARTS))
)
_SEVERAL = "several hosts take equally long"
STEPS: Table[Sequence[SharedStep]] = object_table(
    "steps",
    (
        attribute("group", COUNT, "the number of the group of cores whose step it is"),
        attribute("name", VERBATIM, "its name, or number"),
        attribute("duration_ms", TIME_MS, "how long it takes on the slowest core of all hosts compared"),
        attribute("slowest_host", VERBATIM, "the host with the longest own time", null=_SEVERAL),
        attribute("hosts", listed(_STEP_HOSTS), "on each host"),
        attribute("cores", listed(_STEP_CORES), "on each core"),
    ),
)
