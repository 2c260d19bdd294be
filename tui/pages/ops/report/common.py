"""What the reports of the op pages share: their head, the device, and what is unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.tui.draw.format import UNKNOWN, byte_rate, count, duration, percent
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.ops.fields.common import DEVICE, machine_line
from tpuprof.tui.report.fields import metric_rows
from tpuprof.tui.report.page import Content, Head, ReportRequest, page_of
from tpuprof.tui.report.text import SIMULATED
from tpuprof.tui.report.units import words_of_key

NOT_WORTH_SAYING = frozenset({"time_scale"})
"""Keys of what is unknown that text and Markdown pass over: most devices do not scale their clock."""

WARNINGS: Callable[[Any], Sequence[str]] = attrgetter("ops.warnings")  # those of a page that is made of HLO ops


def of_ops(make: Callable[[OpsPage], Content]) -> Callable[[ReportRequest], Content]:
    """Reads what is made of the HLO ops of the host that is asked for, or of all."""
    return lambda request: make(page_of(OPS)(request))


def head(title: str, page: OpsPage, request: ReportRequest) -> Head:
    """Title, hosts, device and warnings."""
    machine = f"ran on: {page.device_type or 'an unknown device'}, {counted(page.core_count, page.runs_on)}"
    return Head(f"{title} of {request.run.name}", request.run, page.hosts, page.warnings, (machine,), page.simulated)


def worth_saying(unknown: Mapping[str, str]) -> dict[str, str]:
    """What is unknown, as Markdown says it."""
    return {key: why for key, why in unknown.items() if key not in NOT_WORTH_SAYING}


# --- Markdown


def time_rows(page: OpsPage) -> list[tuple[str, str]]:
    """How many ops there are, and the time of the cores, as Markdown shows them."""
    idle = percent(100 * page.idle_ps / page.total_ps) if page.total_ps else UNKNOWN
    rows = [("HLO ops", count(len(page))), ("time over all cores", duration(page.total_ps or None))]
    rows.append(("idle, of that time", idle))
    if page.time_scale is not None:
        rows.append(("time at the nominal clock, of time measured", f"{page.time_scale:.3f}"))
    return rows


def peak_rows(page: OpsPage) -> list[tuple[str, str]]:
    """What one core can do at most, as Markdown shows it; on-chip memories where the profile gives their peaks."""
    *peaks, ridge = metric_rows(DEVICE, page)
    on_chip = [(memory, way) for memory in ("VMEM", "CMEM") for way in ("read", "write")]
    rates = ((f"peak {memory} B/s, {way}", getattr(page.peaks, f"{memory.lower()}_{way}")) for memory, way in on_chip)
    return [*peaks, *((label, byte_rate(value)) for label, value in rates if value is not None), ridge]


# --- text


def text_lines(page: OpsPage, lines: Sequence[Line], unknown: Mapping[str, str], pen: Pen) -> list[Line]:
    """A page's own lines below the device, and notes."""
    above = [machine_line(page, pen), *simulated_lines(page, pen)]
    return [*above, *lines, *text_notes(page.warnings, unknown, pen)]


def simulated_lines(page: OpsPage, pen: Pen) -> list[Line]:
    """Says that times are simulated, where they are."""
    return [pen.fit([(SIMULATED, "warn")])] if page.simulated else []


def text_notes(warnings: Sequence[str], unknown: Mapping[str, str], pen: Pen) -> list[Line]:
    """Warnings and reasons for what is unknown."""
    told = ((words_of_key(key), why) for key, why in unknown.items() if key not in NOT_WORTH_SAYING)
    return pen.notes(warnings, told)
