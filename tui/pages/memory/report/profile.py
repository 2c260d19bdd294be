"""The report on memory over time.

CSV is what was in use at each allocator's peak; a call that chooses rows and columns has those of the allocators. The
timeline is in JSON alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.memory.allocators.model import AllocatorProfile, DeviceModuleRuns, MemoryProfilePage
from tpuprof.parsers.pages.memory.key import MEMORY_PROFILE, MODULE_RUNS
from tpuprof.tui.draw.format import UNKNOWN
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.memory.draw import profile
from tpuprof.tui.pages.memory.draw.graph import AXIS
from tpuprof.tui.pages.memory.draw.profile import scene
from tpuprof.tui.pages.memory.fields.allocators import ALLOCATORS, AT_PEAK, TIMELINE, WHY_EMPTY, fragmentation_words
from tpuprof.tui.report.csv import table as csv_table
from tpuprof.tui.report.declared import Block, Declared, Metrics, Section, Values, declared
from tpuprof.tui.report.fields import columns, first, markdown_rows, reasons, table_records
from tpuprof.tui.report.markdown import escaped, fields_table, not_shown, unknown_block
from tpuprof.tui.report.page import Head, ReportRequest
from tpuprof.tui.report.units import words_of_key

_GRAPH_ROWS = 8


@dataclass(frozen=True, slots=True)
class MemoryOverTime:
    """The page, and the runs of compiled modules for the band below the graphs of the text."""

    page: MemoryProfilePage
    runs: Sequence[DeviceModuleRuns]

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*self.page.warnings, *((self.page.why_empty,) if self.page.why_empty else ()))


def read(request: ReportRequest) -> MemoryOverTime:
    """Reads the page."""
    session = request.session(request.run)
    return MemoryOverTime(session.page(MEMORY_PROFILE, request.host), session.page(MODULE_RUNS, request.host))


def declare(content: MemoryOverTime, request: ReportRequest) -> Declared:
    """The allocators, and what was in use at the peak of each."""
    page, most = content.page, request.most_rows
    return Declared(
        Head(f"Memory profile of {request.run.name}", request.run, page.hosts, page.warnings),
        statement="" if page.allocators else page.why_empty or UNKNOWN,
        parts=(Block(lambda: _with_timelines(page, most), lambda: _tables(page, most)), Metrics((WHY_EMPTY,), page)),
        csv=Block(csv=lambda: _csv(page, most), table=lambda: Section(ALLOCATORS, page.allocators)),
        text=lambda pen: _text(content, most, pen),
    )


def _with_timelines(page: MemoryProfilePage, most: int) -> Values:
    """Every allocator with its timeline and what was in use at its peak."""
    records = table_records(ALLOCATORS, page.allocators, range(len(page.allocators)))
    every = here = 0
    for record, allocator in zip(records, page.allocators, strict=True):
        record[TIMELINE.key] = table_records(TIMELINE, allocator, range(len(allocator.time_ps)))
        shown = first(len(allocator.at_peak), most)
        record[AT_PEAK.key] = table_records(AT_PEAK, allocator, shown)
        every, here = every + len(allocator.at_peak), here + len(shown)
    why: dict[str, str] = {}
    for table, prefix in ((ALLOCATORS, ""), (TIMELINE, ".timeline[]"), (AT_PEAK, ".at_peak[]")):
        why |= reasons(table.fields, f"allocators[]{prefix}", {})
    for allocator in page.allocators:
        for key, reason in allocator.unknown.items():
            if key != "at_peak":
                why |= {f"allocators[].{key}": reason, f"allocators[].timeline[].{key}": reason}
    return Values({ALLOCATORS.key: records}, why, rows={f"{ALLOCATORS.key}[].{AT_PEAK.key}": (every, here)})


def _csv(page: MemoryProfilePage, most: int) -> str:
    """What was in use at the peak of each allocator, a row a kind of allocation; bytes are of one of them."""
    shown = ((allocator, first(len(allocator.at_peak), most)) for allocator in page.allocators)
    parts = (columns(AT_PEAK, allocator, rows, AT_PEAK.csv) for allocator, rows in shown)
    return csv_table(AT_PEAK.csv, (row for part in parts for row in zip(*part.values(), strict=True)))


def _tables(page: MemoryProfilePage, most: int) -> list[str]:
    allocators = page.allocators
    if not allocators:
        return []
    lines = ["", *fields_table(ALLOCATORS, markdown_rows(ALLOCATORS, allocators, range(len(allocators))))]
    for allocator in allocators:
        lines += ["", f"## In use at the peak: {escaped(allocator.label)}", ""]
        notes = filter(None, (fragmentation_words(allocator), allocator.flat))
        lines += [line for note in notes for line in (escaped(note), "")]
        whole = len(allocator.at_peak)
        rows = markdown_rows(AT_PEAK, allocator, first(whole, most))
        lines += [*fields_table(AT_PEAK, rows), *not_shown(whole - len(rows))] if rows else []
    unknown = ((f"{each.label}, {words_of_key(key)}", why) for each in allocators for key, why in each.unknown.items())
    return [*lines, *unknown_block(unknown)]


def _text(content: MemoryOverTime, limit: int, pen: Pen) -> list[Line]:
    page = content.page
    if not page.allocators:
        return profile.empty_lines(page, pen)
    lines = pen.wrap_all(page.warnings, "warn", [(" ", "text")])
    for allocator in page.allocators:
        lines += [pen.fit([]), *_allocator_lines(allocator, pen, limit, content.runs)]
    return lines


def _allocator_lines(allocator: AllocatorProfile, pen: Pen, limit: int, runs: Sequence[DeviceModuleRuns]) -> list[Line]:
    rows = len(allocator.at_peak)
    shown = len(first(rows, limit))
    graph, band = scene(allocator, pen.width - AXIS), profile.band_of(allocator, runs)
    curve = int("fragmentation" not in allocator.unknown)
    more = f"  and {counted(rows - shown, 'more kind', 'more kinds')}"
    return [
        *profile.fact_lines(allocator, pen, most=6),
        *profile.graph_block(allocator, graph, _GRAPH_ROWS, pen, band=band, curve=curve),
        *profile.note_lines(allocator, pen),
        profile.table_rule(allocator, pen),
        *profile.table_lines(allocator, 0, max(shown, 1), None, pen),
        *([pen.fit([(more, "dim")])] if shown < rows else []),
    ]


_DECLARED = declared("memory-profile", read, declare, (ALLOCATORS, TIMELINE, AT_PEAK), (WHY_EMPTY,), AT_PEAK)
REPORT = replace(_DECLARED, chosen_table=ALLOCATORS)
