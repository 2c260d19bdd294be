"""The report on compiled programs: what each takes at least, as told by its tiles, and as measured where it ran."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_UNREADABLE, ProfileError, behind_wall
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import counted, examples, printable
from tpuprof.parsers.base.words import factor_text
from tpuprof.parsers.formats.hlo.files import program_files
from tpuprof.parsers.memory.model import SpaceMemory
from tpuprof.parsers.pages.program.arrays import ProgramArray, program_arrays
from tpuprof.parsers.pages.program.ops import ProgramOp, ProgramRow, program_rows
from tpuprof.parsers.pages.program.programs import CompiledProgram, programs_of_session, read_program
from tpuprof.parsers.pages.shared.key import Later
from tpuprof.tui.draw.format import UNKNOWN, binary_size, count, duration, share
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Glyphs, Line, small_bar
from tpuprof.tui.draw.table import Cells, each
from tpuprof.tui.report.declared import Declared, Metrics, Section, declared
from tpuprof.tui.report.fields import (
    ColumnSpec,
    Field,
    Metric,
    Table,
    attribute,
    in_order,
    listed,
    metric_rows,
    nested,
    object_table,
)
from tpuprof.tui.report.page import Head, ReportRequest
from tpuprof.tui.report.shared.quantities import FINGERPRINT, told, told_words
from tpuprof.tui.report.units import BYTES, COUNT, COUNTS, NUMBER, TEXT, TIME_MS, TIME_PS, VERBATIM, Unit, plain

_FACTOR = Unit("ratio", plain, lambda value, _: UNKNOWN if value is None else factor_text(value))
_TILES: tuple[Metric[Any], ...] = (
    attribute("iteration", COUNTS, "steps along each axis, the outermost first"),
    Metric("left", COUNTS, lambda tiles: tiles.windows[0], "bounds of a window of the left operand, as written"),
    Metric("right", COUNTS, lambda tiles: tiles.windows[1], "the same of the right one"),
    Metric("result", COUNTS, lambda tiles: tiles.windows[2], "the same of the result"),
    attribute("scoped_bytes", BYTES, "VMEM that the op uses for itself", null="the HLO does not say"),
)
_RAN = "how often it ran in the profile, on all cores"
_MEASURED = "the mean of these runs of its own time, as average_self_time_ps of report ops"
_MEASURED_RUN = "the mean of its runs in the profile, from the first core's start to the last core's end"
_TIMES, _NOT_RUN = "how many times the middle of what is told that is", "no run of it is in a profile here"
_READS: Table[Sequence[Any]] = object_table(
    "reads",
    (
        attribute("name", TEXT, "the operand"),
        attribute("bytes", BYTES, "what is read of it, once"),
        attribute("streams", COUNT, "how often it comes from HBM; 0 where it lies on the chip"),
    ),
)
_LEAST = "what it takes at least: the larger of FLOPs at the peak and bytes at HBM's, op by op"
_TOLD = "what walking the compiler's tiles tells; nobody measured it"
_BAR_CELLS = 8
_MOVED = "that it moves through HBM: arrays once, of a kernel blocks as copied"
_IN_PART = "all of it is told, or none of its ops"
_WHY, _NOT_TOLD = "problem says why", "reason says why"
_REASON = attribute("reason", VERBATIM, "why nothing is claimed of its time; empty where something is")
_FIGURES: tuple[Metric[ProgramRow], ...] = (
    attribute("module", TEXT, "the compiled program", "module", name="name"),
    attribute("origin", VERBATIM, "the file, or the module of a profile, that it comes from"),
    attribute("count", COUNT, "how many programs in the same place are the same", "alike"),
    attribute("chip", VERBATIM, "what it is for", "chip", null=_WHY),
    attribute("bound_ms", TIME_MS, _LEAST, "at least", null=_WHY, name="total.bound_ps"),
    attribute("told_ms", told(TIME_MS), _TOLD, "told", null=_NOT_TOLD),
    attribute("told_in_part_ms", told(TIME_MS), "the same of the ops that are told, where not all are", null=_IN_PART),
    attribute("measured_ms", TIME_MS, _MEASURED_RUN, "measured", null=_NOT_RUN, name="measured.mean_ps"),
    attribute("occurrences", COUNT, "how often it ran in the profile", null=_NOT_RUN, name="measured.runs"),
    attribute("bound_by", TEXT, "compute or HBM, which takes most of it", "bound by", null=_WHY, name="total.bound_by"),
    attribute("compute_ms", TIME_MS, "FLOPs at the peak", "compute", null=_WHY, name="total.compute_ps"),
    attribute("hbm_ms", TIME_MS, "bytes at HBM's peak, each array once", "HBM", null=_WHY, name="total.hbm_ps"),
    attribute("flops", COUNT, "of its matrix products", "FLOPs", null=_WHY, name="total.flops"),
    attribute("hbm_bytes", BYTES, "moved through HBM at least", "HBM bytes", null=_WHY, name="total.hbm_bytes"),
    attribute("fingerprint", nested(FINGERPRINT), "what it is known by", null="its text is cut"),
    _REASON,
    attribute("problem", VERBATIM, "why its figures are unknown; empty where they are not"),
)
_PLAIN_MODULES: Table[Sequence[ProgramRow]] = object_table(
    "modules", _FIGURES, markdown=("module", "count", "bound_ms", "told_ms")
)
_LOOKS: dict[str, ColumnSpec[Any]] = {
    "name": ColumnSpec("op", 24, fixed=True, grows=True),
    "bound_ps": ColumnSpec("at least", 10),
    "told_ps": ColumnSpec("told", 22),
    "measured_ps": ColumnSpec("measured", 9),
    "times": ColumnSpec("of told", 7),
    "trips": ColumnSpec("runs", 5),
    "category": ColumnSpec("kind", 10),
    "streamed_bytes": ColumnSpec("streamed", 10),
    "source": ColumnSpec("source", 28),
}
_OF_RUNS = tuple(_LOOKS)
_OF_FILES = tuple(key for key in _LOOKS if key not in ("measured_ps", "times"))
_PLAIN: Table[Sequence[ProgramOp]] = object_table(
    "ops",
    (
        attribute("name", TEXT, "the instruction", "op"),
        attribute("opcode", TEXT, "what it does, in XLA's words"),
        attribute("category", TEXT, "product, loop (a fusion without one), kernel, collective, or its opcode", "kind"),
        attribute("trips", COUNT, "how often it runs", "runs", null=_NOT_TOLD),
        attribute("bound_ps", TIME_PS, f"{_LEAST}; of one run", "at least", null=_NOT_TOLD),
        attribute("told_ps", told(TIME_PS), f"{_TOLD}; of one run", "told", null=_NOT_TOLD, name="told_ps"),
        attribute("measured_ps", TIME_PS, _MEASURED, "measured", null=_NOT_RUN, name="measured.mean_ps"),
        attribute("times", _FACTOR, _TIMES, "of told", null=f"{_NOT_RUN}, or reason says why"),
        attribute("occurrences", COUNT, _RAN, null=_NOT_RUN, name="measured.runs"),
        _REASON,
        attribute("flops", COUNT, "of its matrix products", "FLOPs"),
        attribute("hbm_bytes", BYTES, _MOVED, "HBM bytes"),
        attribute("streamed_bytes", BYTES, "the same, each array as often as the tiles stream it", "streamed"),
        attribute("streamed_reads", listed(_READS), "the operands that it reads", name="operands_read"),
        attribute("tiles", nested(_TILES), "how it is cut up", null="the HLO does not say"),
        attribute("source", TEXT, "the line that it comes from", "source", null="the compiler does not say"),
    ),
    (
        attribute("told_low_ps", TIME_PS, "the least of what is told", null=_NOT_TOLD, name="told_ps.low"),
        attribute("told_high_ps", TIME_PS, "the most of it", null=_NOT_TOLD, name="told_ps.high"),
    ),
    csv=in_order(
        "name opcode category trips bound_ps told_low_ps told_high_ps measured_ps times occurrences reason flops",
        "hbm_bytes streamed_bytes source",
    ),
    markdown=_OF_RUNS,
)


def _ops_that(key: str, what: str, heading: str) -> Metric[ProgramArray]:
    return Metric(key, TEXT, lambda of: ", ".join(getattr(of, key)) or "none", f"the ops that {what}", heading=heading)


_PLAIN_ARRAYS: Table[Sequence[ProgramArray]] = object_table(
    "arrays",
    (
        attribute("name", TEXT, "the argument, or the instruction that makes it", "array"),
        attribute("shape", TEXT, "its type and dimensions", "shape"),
        attribute("size_bytes", BYTES, "of it, padding included", "size"),
        attribute("moved_bytes", BYTES, "that ops write of it to HBM, and read as often as tiles stream it", "moved"),
        attribute("least_bytes", BYTES, "the same if it were written and read once each time that it is made", "least"),
        attribute("written_bytes", BYTES, "that ops write"),
        attribute("read_bytes", BYTES, "that ops read"),
        attribute("reads", COUNT, "how often ops stream it, or their part of it", "reads"),
        _ops_that("written_by", "write it", "written by"),
        _ops_that("read_by", "read it", "read by"),
        attribute("source", TEXT, "the line that makes it", "source", null="the compiler does not say"),
    ),
    (Field("moved_bar", NUMBER, lambda _, rows: [None for _ in rows], "what is moved, as a bar"),),
    markdown=("name", "shape", "moved_bytes", "least_bytes", "reads", "written_by", "read_by"),
)


def _bars(arrays: Sequence[ProgramArray], glyphs: Glyphs) -> Cells:
    most = max((array.moved_bytes for array in arrays), default=0) or 1
    return each(lambda row: (small_bar(arrays[row].moved_bytes / most, _BAR_CELLS, glyphs)[0], "text"))


_LOOKS_OF_ARRAYS: dict[str, ColumnSpec[Any]] = {
    "name": ColumnSpec("array", 20, fixed=True, grows=True),
    "moved_bar": ColumnSpec("", _BAR_CELLS, cells=_bars, is_left=True, fixed=True, keeps_style=True),
    "moved_bytes": ColumnSpec("moved", 10),
    "least_bytes": ColumnSpec("least", 10),
    "reads": ColumnSpec("reads", 6),
    "read_by": ColumnSpec("read by", 28, is_left=True),
    "shape": ColumnSpec("shape", 28, is_left=True),
}
_LOOKS_OF_MODULES: dict[str, ColumnSpec[Any]] = {
    "module": ColumnSpec("program", 16, fixed=True, grows=True),
    "origin": ColumnSpec("of", 22),
    "bound_ms": ColumnSpec("at least", 10),
    "told_ms": ColumnSpec("told", 22),
    "count": ColumnSpec("alike", 5),
    "bound_by": ColumnSpec("bound by", 8),
    "measured_ms": ColumnSpec("measured", 9),
}


def _drawn(table: Table[Any], looks: dict[str, ColumnSpec[Any]]) -> Table[Any]:
    """A table with columns on the screen, which sort what is told by its upper end."""
    sorts = {field.key: partial(_most_told, field) for field in table.fields if field.unit.words is told_words}
    fields = (replace(field, screen=looks.get(field.key), sort=sorts.get(field.key)) for field in table.fields)
    return replace(table, fields=tuple(fields), screen=tuple(looks))


def _most_told(told: Field[Sequence[Any]], source: Sequence[Any]) -> list[int | None]:
    return [None if band is None else band.high for band in told.read(source, range(len(source)))]


_OPS, _ARRAYS = _drawn(_PLAIN, _LOOKS), _drawn(_PLAIN_ARRAYS, _LOOKS_OF_ARRAYS)
_MODULES = _drawn(_PLAIN_MODULES, _LOOKS_OF_MODULES)
_NEVER_RUN = replace(_OPS, markdown=_OF_FILES, screen=_OF_FILES)
_OF_PROFILES = "tpuprof.parsers.pages.program.measured:"
_times_of, _with_measured = Later(f"{_OF_PROFILES}times_of"), Later(f"{_OF_PROFILES}with_measured")
_slow_words: Callable[..., list[str]] = Later(f"{_OF_PROFILES}slow_words")


_memory_of: Callable[..., SpaceMemory | None] = Later("tpuprof.parsers.pages.program.facts:memory_of_program")
_NO_BUFFERS = "the file has no buffer assignment"
_MEMORY: tuple[Metric[Any], ...] = (
    attribute("needed_bytes", BYTES, "HBM that it needs", "needs", null=_NO_BUFFERS, name="memory.needed_bytes"),
    attribute(
        "headroom_bytes",
        BYTES,
        "what is left of the chip's HBM; negative where it does not fit",
        "to spare",
        null=f"{_NO_BUFFERS}, or nothing says the chip",
        name="memory.headroom_bytes",
    ),
)


class Programs(NamedTuple):
    """The programs of a place, the longest first, the one whose ops and arrays are shown, and what went wrong."""

    rows: Sequence[ProgramRow]
    chosen: ProgramRow
    arrays: Sequence[ProgramArray]
    warnings: tuple[str, ...]
    memory: SpaceMemory | None = None
    simulated: bool = False


def read(request: ReportRequest) -> Programs:
    """Reads the compiled programs of a file, a folder or a profile.

    Raises:
        ProfileError: there is none that can be read, or none of that name.
    """
    device, wanted, failed = request.options.get("device"), request.options.get("module"), list[str]()
    times = None if request.only_hlo else _times_of(request.session(request.run), request.host)
    rows = program_rows(_programs(request, failed), device)
    if not rows:
        if failed:
            raise ProfileError("unreadable", failed[0], "write or copy it again", EXIT_UNREADABLE)
        hint = "dump it with --xla_dump_to=FOLDER"
        raise ProfileError("no_hlo", "There is no compiled program here.", hint, EXIT_NOT_FOUND)
    if times is not None:
        rows = _with_measured(rows, times)
        failed += times.warnings
    chosen = [row for row in rows if wanted is None or wanted in (row.name, row.origin)]
    if not chosen:
        hint = f"one of: {examples([row.name for row in rows], 10)}"
        raise ProfileError("unknown_module", f"There is no module {printable(str(wanted))}.", hint, EXIT_NOT_FOUND)
    return of_program(rows, chosen[0], failed, times is not None and times.simulated)


def of_program(
    rows: Sequence[ProgramRow], row: ProgramRow, warnings: Sequence[str], simulated: bool = False
) -> Programs:
    """The page of one of some programs; `simulated` where the times beside it were composed."""
    failed, arrays = [*warnings], None
    if row.module is not None:
        find = partial(program_arrays, row.module, row.ops)
        arrays = behind_wall(f"tell what {printable(row.name)} moves", find, failed, is_decoder=True)
    find_memory = partial(_memory_of, row.compiled, row.chip)
    memory = behind_wall(f"tell the memory of {printable(row.name)}", find_memory, failed, is_decoder=True)
    return Programs(rows, row, arrays or (), tuple(dict.fromkeys(failed)), memory, simulated)


def _programs(request: ReportRequest, failed: list[str]) -> Iterator[CompiledProgram]:
    """The programs; a sentence on each that can't be read."""
    if not request.only_hlo:
        yield from programs_of_session(request.session(request.run))
        return
    poll = request.options.get("poll", lambda: None)
    for file in program_files(request.run.path):
        poll()
        program = behind_wall(f"read {printable(file.name)}", partial(read_program, file), failed)
        if program is not None:
            yield program


def declare(page: Programs, request: ReportRequest) -> Declared:
    """The chosen program, all programs, and the chosen one's ops."""
    row, most = page.chosen, request.most_rows
    ops = Section(_NEVER_RUN if row.measured is None else _OPS, row.ops, f"Ops of {row.name}", most)
    slow = [] if row.measured is None else _slow_words(row.ops)
    said = (*_statement(row), *_fits(page.memory), *_moved(page.arrays), *slow)
    statement = f"{'. '.join(said)}."
    arrays = Section(_ARRAYS, page.arrays, f"Arrays of {row.name}, and what ops move of them", most)
    return Declared(
        Head(f"Program {row.name}", request.run, (), page.warnings, (), page.simulated, row.chip or row.origin),
        statement=statement,
        metrics=lambda: [*metric_rows(_FIGURES, row), *metric_rows(_MEMORY, page)],
        parts=(
            Metrics(_FIGURES, row),
            Metrics(_MEMORY, page),
            Section(_MODULES, page.rows, "Modules", most),
            ops,
            arrays,
        ),
        csv=ops,
        text=lambda pen: _text(page, statement, (ops, arrays), pen),
        reasons=dict.fromkeys(("chip", "bound_ms"), row.problem) | {"told_ms": row.reason or row.problem},
    )


def _fits(memory: SpaceMemory | None) -> Iterator[str]:
    """Whether its buffers fit, in words."""
    room = None if memory is None else memory.headroom_bytes
    if memory is not None and room is None:
        yield f"It needs {binary_size(memory.needed_bytes)} of HBM"
    elif room is not None:
        yield f"It fits with {binary_size(room)} to spare" if room >= 0 else f"It does not fit by {binary_size(-room)}"


def _statement(row: ProgramRow) -> list[str]:
    """A program in sentences without points: what it takes at least, what is told and was measured, or why nothing."""
    total = row.total
    if total is None or total.bound_ps is None or total.compute_ps is None:
        work = [] if total is None else [f"Its products have {count(total.flops)} FLOPs"]
        part = [f"All figures are of a part of it: {row.reason}"] if row.reason else []
        return [f"How long it takes is unknown: {row.problem}", *part, *work]
    compute, hbm = duration(total.compute_ps), duration(total.hbm_ps)
    said = [f"It takes at least {duration(total.bound_ps)}: {compute} of compute, {hbm} of HBM traffic"]
    if not total.bound_ps:
        said = [
            "No least time of it is certain: each op runs in a branch or an unknown number of times, or beside others"
        ]
    if row.most_of_peak is not None:
        said.append(f"So it comes to at most {share(row.most_of_peak)} of the peak FLOP/s")
    if row.told is not None:
        said.append(f"The compiler's tiles tell {told_words(row.told, False)}")
    if (ran := row.measured) is not None:
        said.append(f"It took {duration(ran.mean_ps)}, the mean of {counted(ran.runs, 'run')}")
    if row.reason:
        said.append(f"Nothing is told of its whole time ({row.reason})")
    if (band := row.told_in_part) is not None:
        said.append(f"The ops of which something is told take {told_words(band, False)} together")
    return said


def _moved(arrays: Sequence[ProgramArray]) -> list[str]:
    """What all arrays together move."""
    moved, least = (sum(getattr(array, key) for array in arrays) for key in ("moved_bytes", "least_bytes"))
    words = f"{binary_size(moved)} move through HBM, {binary_size(least)} if each array were written and read once"
    return [words] if arrays else []


def _text(page: Programs, statement: str, tables: Sequence[Section[Any]], pen: Pen) -> list[Line]:
    others = f"of {counted(len(page.rows), 'program')}; --module picks another"
    said = [statement, *([others] if len(page.rows) > 1 else [])]
    lines = [line for table in tables for line in table.lines(pen, "")]
    return [*pen.wrap_all(said, "text", [(" ", "text")]), *lines, *pen.notes(page.warnings, ())]


REPORT = declared("program", read, declare, (_MODULES, _OPS, _ARRAYS), (*_FIGURES, *_MEMORY), csv_table=_OPS)
