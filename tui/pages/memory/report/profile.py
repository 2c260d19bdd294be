"""The report on memory over time.

The main table is what was in use at each allocator's peak. The timeline is in JSON alone; one of very many events is
thinned there, to the event with most in use of each stretch, unless all is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.memory.allocators.model import AllocatorProfile, MemoryProfilePage, ModuleRuns
from tpuprof.tui.draw.format import UNKNOWN
from tpuprof.tui.draw.layout import fit, wrap
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.pages.memory.draw import profile
from tpuprof.tui.pages.memory.draw.profile_graph import AXIS, in_use, scene
from tpuprof.tui.pages.memory.fields.allocators import ALLOCATORS, AT_PEAK, TIMELINE, WHY_EMPTY, fragmentation_words
from tpuprof.tui.report.csv import table as csv_table
from tpuprof.tui.report.fields import (
    columns,
    figure_reasons,
    figure_values,
    first,
    markdown_rows,
    reasons,
    table_records,
)
from tpuprof.tui.report.json import document, head
from tpuprof.tui.report.markdown import escaped, fields_table, joined, page_head
from tpuprof.tui.report.page import Asked, Report
from tpuprof.tui.report.text import page_heading, page_text

MOST_POINTS = 10_000
"""Points of an allocator's timeline where no limit is given."""

TEXT_ROWS = 20
"""Rows of a table in the text report where no limit is given."""

_GRAPH_ROWS = 8


@dataclass(frozen=True, slots=True)
class MemoryOverTime:
    """The page, and the runs of compiled modules for the band below the graphs of the text."""

    page: MemoryProfilePage
    runs: Sequence[ModuleRuns]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to warn of, and why there is nothing."""
        return (*self.page.warnings, *((self.page.why_empty,) if self.page.why_empty else ()))


def read(asked: Asked) -> MemoryOverTime:
    """Reads the page."""
    session = asked.session(asked.run)
    return MemoryOverTime(session.memory_profile(asked.host), session.module_runs(asked.host))


def _rows(allocator: AllocatorProfile, asked: Asked) -> range:
    return first(len(allocator.at_peak), asked.most_rows)


def json(content: MemoryOverTime, asked: Asked) -> str:
    """Every allocator with its timeline and what was in use at its peak."""
    page = content.page
    points = [_points(allocator, None if asked.limit == 0 else MOST_POINTS) for allocator in page.allocators]
    notes = [
        f"the timeline of {allocator.label} has {len(shown):,} points for {counted(len(allocator.time_ps), 'event')},"
        " each the one with most in use of its stretch; --limit 0 gives all"
        for allocator, shown in zip(page.allocators, points, strict=True)
        if len(shown) < len(allocator.time_ps)
    ]
    records = table_records(ALLOCATORS, page.allocators, range(len(page.allocators)))
    for record, allocator, shown in zip(records, page.allocators, points, strict=True):
        record[TIMELINE.key] = table_records(TIMELINE, allocator, shown)
        record[AT_PEAK.key] = table_records(AT_PEAK, allocator, _rows(allocator, asked))
    why = figure_reasons((WHY_EMPTY,))
    for table, prefix in ((ALLOCATORS, ""), (TIMELINE, ".timeline[]"), (AT_PEAK, ".at_peak[]")):
        why |= reasons(table.fields, f"allocators[]{prefix}", {})
    for allocator in page.allocators:
        for key, reason in allocator.unknown.items():
            if key != "at_peak":
                why |= {f"allocators[].{key}": reason, f"allocators[].timeline[].{key}": reason}
    body = {ALLOCATORS.key: records, **figure_values((WHY_EMPTY,), page)}
    return document(head("memory-profile", asked.run, page.hosts, [*page.warnings, *notes]), body, why)


def _points(allocator: AllocatorProfile, most: int | None) -> Int64s:
    """Events of the timeline, ascending: all of them, or that with most in use of each of so many stretches."""
    total = len(allocator.time_ps)
    if most is None or total <= most:
        return np.arange(total, dtype=np.int64)
    borders = np.arange(most + 1, dtype=np.int64) * total // most
    used = in_use(allocator, 0, total)
    best = np.repeat(np.maximum.reduceat(used, borders[:-1]), np.diff(borders))
    largest = np.flatnonzero(used == best).astype(np.int64)
    stretch = np.searchsorted(borders, largest, side="right")
    last: Int64s = largest[np.append(stretch[1:] != stretch[:-1], True)]
    return last


def csv(content: MemoryOverTime, asked: Asked) -> str:
    """What was in use at the peak of each allocator, a row a kind of allocation; bytes are of one of them."""
    parts = (columns(AT_PEAK, allocator, _rows(allocator, asked), AT_PEAK.csv) for allocator in content.page.allocators)
    return csv_table(AT_PEAK.csv, (row for part in parts for row in zip(*part.values(), strict=True)))


def markdown(content: MemoryOverTime, asked: Asked) -> str:
    """A table of the allocators, what was in use at the peak of each, and what is unknown with the reasons."""
    page, allocators = content.page, content.page.allocators
    lines = page_head(f"Memory profile of {asked.run.name}", page.hosts, warnings=page.warnings)
    if not allocators:
        return joined([*lines, "", escaped(page.why_empty or UNKNOWN)])
    lines += ["", *fields_table(ALLOCATORS, markdown_rows(ALLOCATORS, allocators, range(len(allocators))))]
    for allocator in allocators:
        lines += ["", f"## In use at the peak: {escaped(allocator.label)}", ""]
        notes = filter(None, (fragmentation_words(allocator), allocator.flat))
        lines += [line for note in notes for line in (escaped(note), "")]
        rows = markdown_rows(AT_PEAK, allocator, _rows(allocator, asked))
        lines += fields_table(AT_PEAK, rows) if rows else []
    if any(allocator.unknown for allocator in allocators):
        lines += ["", "## Unknown", ""]
    for allocator in allocators:
        label = escaped(allocator.label)
        lines += [f"- {label}, {escaped(key)}: {escaped(why)}" for key, why in allocator.unknown.items()]
    return joined(lines)


def text(content: MemoryOverTime, asked: Asked) -> str:
    """Every allocator one below the other, under a line that names the run and its hosts."""
    page, glyphs = content.page, asked.look.glyphs
    limit = TEXT_ROWS if asked.limit is None else asked.limit

    def lines(width: int) -> list[Line]:
        drawn = [page_heading(f"Memory profile of {asked.run.name}", page.hosts, width, glyphs)]
        if not page.allocators:
            return [*drawn, *profile.empty_lines(page, width, glyphs)]
        for warning in page.warnings:
            drawn += wrap(warning, width, "warn", glyphs, [(" ", "text")])
        for allocator in page.allocators:
            drawn += [fit([], width, glyphs), *_allocator_lines(allocator, width, glyphs, limit, content.runs)]
        return drawn

    return page_text(lines, asked.look)


def _allocator_lines(
    allocator: AllocatorProfile, width: int, glyphs: Glyphs, limit: int, runs: Sequence[ModuleRuns]
) -> list[Line]:
    rows = len(allocator.at_peak)
    shown = len(first(rows, limit))
    lines = profile.fact_lines(allocator, width, glyphs, most=6)
    graph = scene(allocator, width - AXIS)
    curve = int("fragmentation" not in allocator.unknown)
    band = profile.band_of(allocator, runs)
    lines += profile.graph_block(allocator, graph, _GRAPH_ROWS, width, glyphs, band=band, curve=curve)
    lines += profile.note_lines(allocator, width, glyphs)
    lines.append(profile.table_rule(allocator, width, glyphs))
    lines += profile.table_lines(allocator, 0, max(shown, 1), None, width, glyphs)
    if shown < rows:
        more = f"  and {counted(rows - shown, 'more kind', 'more kinds')}; --limit 0 shows all"
        lines.append(fit([(more, "dim")], width, glyphs))
    return lines


REPORT = Report(
    read=read,
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    tables=(ALLOCATORS, TIMELINE, AT_PEAK),
    csv_table=AT_PEAK,
    figures=(WHY_EMPTY,),
    warnings=lambda content: content.warnings,
)
