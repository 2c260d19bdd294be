"""The report on block sizes over the runs of a log folder, as autotuning leaves them: one table by device time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_OK, EXIT_UNREADABLE, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted, examples, printable
from tpuprof.parsers.base.urls import printable_url
from tpuprof.parsers.base.words import shortened, time
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.pages.ops.kernels.over_runs import RunVariant, variants_of_runs
from tpuprof.tui.draw.layout import cut_words
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.ops.kernels.fields import FASTEST, VARIANTS
from tpuprof.tui.report.declared import Declared, Metrics, Section
from tpuprof.tui.report.fields import Field, Metric, Rows, Table, attribute, in_order, named, of_each
from tpuprof.tui.report.page import Head, ReportRequest
from tpuprof.tui.report.units import COUNT, TEXT, VERBATIM


@dataclass(frozen=True)
class Sweep:
    """The kernels with blocks of several sizes, over all runs of a folder; then runs of which none is compared."""

    path: str
    runs: Sequence[Run]
    rows: tuple[RunVariant, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(f"{printable(row.run)}: {row.why_not}" for row in self.rows if row.is_unread)

    @property
    def statement(self) -> str:
        """Which blocks the kernel with most time is fastest in, in a sentence."""
        compared = [row.variant for row in self.rows if row.variant is not None]
        if not compared:
            return f"{counted(len(self.runs), 'run')}: no kernel ran with blocks of several sizes."
        best = compared[0].kernel
        group = [each for each in compared if (each.kernel.kernel, each.kernel.arrays) == (best.kernel, best.arrays)]
        words = (
            f"{shortened(best.kernel)} is fastest in blocks of {best.block_sizes}: {time(best.runs.median_ps or 0)} in "
        )
        words += f"run {printable(best.run)}"
        return f"{words}; the slowest of {len(group)} takes {1 + group[-1].slower:.2f} times as long."


def covers(request: ReportRequest) -> bool:
    """Whether a call is about all runs of a folder: it has several, and none is named."""
    return request.run_name is None and len(request.logdir.runs) > 1


def read(request: ReportRequest) -> Sweep:
    """Reads the kernels of every run, or what the cache has of them.

    Raises:
        ProfileError: `usage`, exit code 2, where an option is for one run; `unknown_op`, 3, where `--op` names no
            kernel with blocks of several sizes.
    """
    wanted = request.options.get("op")
    of_one = {"host": request.host, "core": request.core, "dump": request.options.get("dump")}
    for option, given in of_one.items():
        if given is not None:
            sentence = (
                f"--by blocks compares the runs of {printable_url(request.logdir.query)}, and --{option} is for one."
            )
            raise ProfileError("usage", sentence, f"name a run: --run {request.logdir.runs[0].name}", EXIT_USAGE)
    runs = sorted(request.logdir.runs, key=lambda run: (run.time, run.name))
    cache = request.session(runs[0]).cache
    rows = variants_of_runs(runs, request.logdir.query, cache, request.session, wanted and wanted.removeprefix("%"))
    if wanted is not None and all(row.variant is None for row in rows):
        sentence = f"No kernel {printable(wanted)} ran with blocks of several sizes."
        raise ProfileError("unknown_op", sentence, "leave --op out to see those there are", EXIT_NOT_FOUND)
    return Sweep(request.logdir.query, runs, rows)


_NONE = "no kernel of the run is compared (why says why)"


def _of_variant(field: Field[Any]) -> Field[Any]:
    """A field of the table of one run's block sizes, for rows of which some are runs without any."""

    def read(items: Sequence[RunVariant], rows: Rows) -> list[Any]:
        there = [items[row].variant for row in rows]
        values = iter(field.read([each for each in there if each is not None], range(len(there) - there.count(None))))
        return [None if each is None else next(values) for each in there]

    look = field.screen
    if look is not None and field.key in _WIDTHS:
        look = replace(look, width=_WIDTHS[field.key], fixed=False, grows=False)
    return replace(field, read=read, null=f"{field.null}; or {_NONE}" if field.null else _NONE, screen=look)


_WIDTHS = {"kernel": 16, "block_sizes": 16}
"""Cells of columns that leave room for the run's name."""


_FIELDS: tuple[Field[Any], ...] = (
    named("run", TEXT, of_each("run"), "the run's name", "run", 20, fixed=True, grows=True),
    *(_of_variant(field) for field in VARIANTS.fields if field.key != "why"),
    named("why", TEXT, of_each(lambda row: row.why_not if row.variant is None else row.variant.why),
          "what takes longer than in the fastest; of a run of which no kernel is compared, why not", "why", 38,
          null=FASTEST, cut=cut_words, words=lambda value, _: value or FASTEST),
)  # fmt: skip

OVER_RUNS: Table[Sequence[RunVariant]] = Table(
    "variants_of_runs",
    _FIELDS,
    len,
    json=tuple(field.key for field in _FIELDS),
    markdown=in_order(
        "place run kernel block_sizes grid runs median_time_ps p90_time_ps slower_percent wait_in_percent vmem_bytes",
        "roof_percent why op",
    ),
    screen=in_order(
        "place run block_sizes median_time_ps slower_percent kernel why wait_in_percent p90_time_ps vmem_bytes",
        "roof_percent runs grid parameters",
    ),
)

METRICS: tuple[Metric[Sweep], ...] = (
    attribute("statement", VERBATIM, "what to know of the kernels, in a sentence"),
    Metric("compared_runs", COUNT, lambda page: len(page.runs), "runs of the folder", heading="runs"),
)


def declare(page: Sweep, request: ReportRequest) -> Declared:
    """The answer, and a row for each kernel of each run."""
    table = Section(OVER_RUNS, page.rows, "Which block size", request.most_rows)
    runs = counted(len(page.runs), "run")
    title = f"Block sizes in {printable_url(page.path)}"
    return Declared(
        Head(title, request.run, (), page.warnings, (), False, runs, lists_hosts=False),
        statement=page.statement,
        parts=(Metrics(METRICS, page), table),
        csv=table,
        text=lambda pen: _text(page, request, pen),
    )


def _text(page: Sweep, request: ReportRequest, pen: Pen) -> list[Line]:
    """The answer and the kernels; then the other runs by the reason why none of theirs is compared."""
    compared = [row for row in page.rows if row.variant is not None]
    why: dict[str, list[str]] = {}
    for row in page.rows:
        if row.variant is None and not row.is_unread:
            why.setdefault(row.why_not, []).append(row.run)
    others = [f"{examples(names)}: {printable(words)}" for words, names in why.items()]
    lines = pen.wrap(page.statement, "strong", [(" ", "text")])
    lines += Section(OVER_RUNS, compared, "", request.most_rows).lines(pen, "") if compared else []
    return [*lines, *pen.notes((*page.warnings, *others), ())]


def exit_code(page: Sweep) -> int:
    """4 where no run can be read."""
    return EXIT_UNREADABLE if page.rows and all(row.is_unread for row in page.rows) else EXIT_OK
