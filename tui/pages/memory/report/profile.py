"""Memory over time in every format: text, JSON, CSV, Markdown.

The main table is what was in use at each allocator's peak. The timeline is in JSON alone; one of very many events is
thinned there, to the event with most in use of each stretch, unless all is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.memory.allocators.model import ActiveAllocation, AllocatorProfile, MemoryProfilePage, ModuleRuns
from tpuprof.tui.draw.buffers.sizes import binary_size
from tpuprof.tui.draw.format import UNKNOWN, count, duration, percent
from tpuprof.tui.draw.layout import fit, wrap
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.pages.memory.draw.profile import (
    UNNAMED,
    band_of,
    empty_lines,
    fact_lines,
    graph_block,
    note_lines,
    table_header,
    table_lines,
    table_rule,
)
from tpuprof.tui.pages.memory.draw.profile_graph import AXIS, in_use, scene
from tpuprof.tui.report.csv import table as csv_table
from tpuprof.tui.report.json import document, head
from tpuprof.tui.report.markdown import escaped, joined
from tpuprof.tui.report.markdown import table as markdown_table
from tpuprof.tui.report.page import Asked, Look, Report
from tpuprof.tui.report.text import LEAST_WIDTH, heading, render

MOST_POINTS = 10_000
"""Points of an allocator's timeline where no limit is given."""

TEXT_ROWS = 20
"""Rows of a table in the text report where no limit is given."""

_GRAPH_ROWS = 8

_NO_STAT = "the runtime does not say this of these allocations"
_REASONS = {
    "allocators[].timeline[].stack_bytes": "this event does not say what is reserved",
    "allocators[].timeline[].heap_bytes": "this event does not say what is allocated",
    "allocators[].timeline[].free_bytes": "this event does not say what is free",
    "allocators[].timeline[].fragmentation": "this event does not say how fragmented memory is",
    "allocators[].stack_bytes": "the event at the peak does not say what is reserved",
    "allocators[].heap_bytes": "the event at the peak does not say what is allocated",
    "allocators[].free_bytes": "the event at the peak does not say what is free",
    "allocators[].fragmentation": "the event at the peak does not say how fragmented memory is",
    "allocators[].flat": "memory in use moves, which needs no explanation",
    "allocators[].at_peak_lacks": "the rows at the peak add up to what is in use",
    "why_empty": "there are allocators",
    **{f"allocators[].at_peak[].{key}": _NO_STAT for key in ("framework_op", "region", "data_type", "shape")},
}


# --- text ----------------------------------------------------------------------------------------------------------


def memory_profile_text(
    page: MemoryProfilePage, run: Run, look: Look, limit: int, runs: Sequence[ModuleRuns] = ()
) -> str:
    """Every allocator one below the other, under a line that names the run and its hosts."""
    width, glyphs = max(look.width, LEAST_WIDTH), look.glyphs
    hosts = counted(len(page.hosts), "host") if len(page.hosts) > 3 else ", ".join(page.hosts)
    lines = [heading(f"Memory profile of {run.name}", hosts, width, glyphs)]
    if not page.allocators:
        return render([*lines, *empty_lines(page, width, glyphs)], look.color)
    for warning in page.warnings:
        lines += wrap(warning, width, "warn", glyphs, [(" ", "text")])
    for allocator in page.allocators:
        lines += [fit([], width, glyphs), *_allocator_lines(allocator, width, glyphs, limit, runs)]
    return render(lines, look.color)


def _allocator_lines(
    allocator: AllocatorProfile, width: int, glyphs: Glyphs, limit: int, runs: Sequence[ModuleRuns]
) -> list[Line]:
    """Figures, graph, notes and table of one allocator."""
    rows = len(allocator.at_peak)
    shown = min(rows, limit) if limit else rows
    lines = fact_lines(allocator, width, glyphs, most=6)
    graph = scene(allocator, width - AXIS)
    lines += graph_block(allocator, graph, _GRAPH_ROWS, width, glyphs, band=band_of(allocator, runs))
    lines += note_lines(allocator, width, glyphs)
    lines += [table_rule(allocator, width, glyphs), table_header(allocator, width, glyphs)]
    lines += table_lines(allocator, 0, max(shown, 1), None, width, glyphs)
    if shown < rows:
        more = f"  and {counted(rows - shown, 'more kind', 'more kinds')}; --limit 0 shows all"
        lines.append(fit([(more, "dim")], width, glyphs))
    return lines


# --- JSON ----------------------------------------------------------------------------------------------------------


def memory_profile_json(page: MemoryProfilePage, run: Run, whole: bool = False) -> str:
    """The page as JSON text, with a newline at the end.

    Args:
        whole: the timeline has a point for every event; else at most `MOST_POINTS`.
    """
    points = [_points(one, None if whole else MOST_POINTS) for one in page.allocators]
    notes = [
        f"the timeline of {one.label} has {len(at):,} points for {counted(len(one.time_ps), 'event')}, each the one"
        " with most in use of its stretch; --limit 0 gives all"
        for one, at in zip(page.allocators, points, strict=True)
        if len(at) < len(one.time_ps)
    ]
    reasons = {**_REASONS}
    for allocator in page.allocators:
        for key, why in allocator.unknown.items():
            if key != "at_peak":
                reasons[f"allocators[].{key}"] = why
                reasons[f"allocators[].timeline[].{key}"] = why
    body = {
        "allocators": [_allocator(one, at) for one, at in zip(page.allocators, points, strict=True)],
        "why_empty": page.why_empty,
    }
    return document(head("memory-profile", run, page.hosts, [*page.warnings, *notes]), body, reasons)


def _points(allocator: AllocatorProfile, most: int | None) -> Int64s:
    """Events of the timeline, ascending: all of them, or that with most in use of each of so many stretches."""
    total = len(allocator.time_ps)
    if most is None or total <= most:
        return np.arange(total, dtype=np.int64)
    borders = np.arange(most + 1, dtype=np.int64) * total // most
    used = in_use(allocator, 0, total)
    best = np.repeat(np.maximum.reduceat(used, borders[:-1]), np.diff(borders))
    at = np.flatnonzero(used == best).astype(np.int64)
    stretch = np.searchsorted(borders, at, side="right")
    last: Int64s = at[np.append(stretch[1:] != stretch[:-1], True)]
    return last


def _allocator(allocator: AllocatorProfile, points: Int64s) -> dict[str, object]:
    at = allocator.peak_index
    has_peak = "peak_bytes" not in allocator.unknown
    return {
        "id": allocator.id,
        "label": allocator.label,
        "host": allocator.host,
        "capacity_bytes": allocator.capacity_bytes,
        "peak_bytes": allocator.peak_bytes if has_peak else None,
        "peak_time_ps": allocator.peak_time_ps,
        "lifetime_peak_bytes": allocator.lifetime_peak_bytes,
        "stack_bytes": _known(int(allocator.stack_bytes[at])),
        "heap_bytes": _known(int(allocator.heap_bytes[at])),
        "free_bytes": _known(int(allocator.free_bytes[at])),
        "fragmentation": _share(float(allocator.fragmentation[at])),
        "allocations": allocator.allocations,
        "deallocations": allocator.deallocations,
        "flat": allocator.flat,
        "at_peak_lacks": allocator.unknown.get("at_peak"),
        "timeline": [
            {
                "time_ps": time,
                "stack_bytes": _known(stack),
                "heap_bytes": _known(heap),
                "free_bytes": _known(free),
                "fragmentation": _share(fragmentation),
            }
            for time, stack, heap, free, fragmentation in zip(
                allocator.time_ps[points].tolist(),
                allocator.stack_bytes[points].tolist(),
                allocator.heap_bytes[points].tolist(),
                allocator.free_bytes[points].tolist(),
                allocator.fragmentation[points].tolist(),
                strict=True,
            )
        ],
        "at_peak": [
            {
                "framework_op": row.framework_op,
                "occurrences": row.occurrences,
                "allocated_bytes": row.allocated_bytes,
                "requested_bytes": row.requested_bytes,
                "region": row.region,
                "data_type": row.data_type,
                "shape": row.shape,
            }
            for row in allocator.at_peak
        ],
    }


def _known(size: int) -> int | None:
    return None if size < 0 else size


def _share(fraction: float) -> float | None:
    return None if math.isnan(fraction) else fraction


# --- CSV and Markdown ----------------------------------------------------------------------------------------------

_COLUMNS = (
    "host",
    "allocator",
    "framework_op",
    "occurrences",
    "allocated_bytes",
    "requested_bytes",
    "region",
    "data_type",
    "shape",
)


def memory_profile_csv(page: MemoryProfilePage) -> str:
    """What was in use at the peak of each allocator, a row a kind of allocation; bytes are of one of them."""
    rows = (
        (
            allocator.host,
            allocator.id,
            row.framework_op,
            row.occurrences,
            row.allocated_bytes,
            row.requested_bytes,
            row.region,
            row.data_type,
            row.shape,
        )
        for allocator in page.allocators
        for row in allocator.at_peak
    )
    return csv_table(_COLUMNS, rows)


def memory_profile_markdown(page: MemoryProfilePage, run: Run) -> str:
    """A table of the allocators, what was in use at the peak of each, and what is unknown with the reasons."""
    lines = [f"# Memory profile of {escaped(run.name)}", "", f"- hosts: {escaped(', '.join(page.hosts))}"]
    lines += [f"- warning: {escaped(warning)}" for warning in page.warnings]
    if not page.allocators:
        return joined([*lines, "", escaped(page.why_empty or UNKNOWN)])
    header = ("allocator", "peak", "at", "capacity", "lifetime peak of the heap", "stack", "heap", "fragmentation")
    lines += ["", *markdown_table((*header, "allocations", "freed"), "l" + "r" * 9, map(_cells, page.allocators))]
    for allocator in page.allocators:
        lines += ["", f"## In use at the peak: {escaped(allocator.label)}", ""]
        lines += [escaped(allocator.flat), ""] if allocator.flat else []
        titles = ("in use at the peak", "total", "count", "size", "region", "type", "shape")
        if allocator.at_peak:
            lines += markdown_table(titles, "lrrrlll", map(_row, allocator.at_peak))
    if any(allocator.unknown for allocator in page.allocators):
        lines += ["", "## Unknown", ""]
    for allocator in page.allocators:
        lines += [
            f"- {escaped(allocator.label)}, {escaped(key)}: {escaped(why)}" for key, why in allocator.unknown.items()
        ]
    return joined(lines)


def _cells(allocator: AllocatorProfile) -> tuple[str, ...]:
    at = allocator.peak_index
    return (
        allocator.label,
        UNKNOWN if "peak_bytes" in allocator.unknown else binary_size(allocator.peak_bytes),
        duration(allocator.peak_time_ps, digits=4),
        binary_size(allocator.capacity_bytes),
        binary_size(allocator.lifetime_peak_bytes),
        binary_size(_known(int(allocator.stack_bytes[at]))),
        binary_size(_known(int(allocator.heap_bytes[at]))),
        percent(100 * float(allocator.fragmentation[at])),
        count(allocator.allocations),
        count(allocator.deallocations),
    )


def _row(row: ActiveAllocation) -> tuple[str, ...]:
    return (
        row.framework_op or UNNAMED,
        binary_size(row.occurrences * row.allocated_bytes),
        count(row.occurrences),
        binary_size(row.allocated_bytes),
        row.region or "-",
        row.data_type or "-",
        row.shape or "-",
    )


@dataclass(frozen=True, slots=True)
class MemoryOverTime:
    """The page, and the runs of compiled modules for the band below the graphs of the text."""

    page: MemoryProfilePage
    runs: Sequence[ModuleRuns]


def _read(asked: Asked) -> MemoryOverTime:
    session = asked.session(asked.run)
    return MemoryOverTime(session.memory_profile(asked.host), session.module_runs(asked.host))


def _limited(content: MemoryOverTime, asked: Asked) -> MemoryProfilePage:
    """The page with as many rows at each allocator's peak as are asked for."""
    page, limit = content.page, asked.limit
    if not limit:
        return page
    return replace(page, allocators=tuple(replace(one, at_peak=one.at_peak[:limit]) for one in page.allocators))


def _text(content: MemoryOverTime, asked: Asked) -> str:
    limit = TEXT_ROWS if asked.limit is None else asked.limit
    return memory_profile_text(content.page, asked.run, asked.look, limit, content.runs)


REPORT = Report(
    read=_read,
    writers={
        "json": lambda content, asked: memory_profile_json(_limited(content, asked), asked.run, asked.limit == 0),
        "csv": lambda content, asked: memory_profile_csv(_limited(content, asked)),
        "md": lambda content, asked: memory_profile_markdown(_limited(content, asked), asked.run),
        "text": _text,
    },
    warnings=lambda content: (*content.page.warnings, *((content.page.why_empty,) if content.page.why_empty else ())),
)
