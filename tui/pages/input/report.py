"""The report on the input pipeline: its figures, and the ops as its main table."""

from __future__ import annotations

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.pages.input.input import INPUT
from tpuprof.parsers.pages.input.model import InputPipelinePage
from tpuprof.tui.draw.columns import Cursor
from tpuprof.tui.draw.format import UNKNOWN, duration, percent
from tpuprof.tui.pages.input.fields import BEFORE_OPS, BREAKDOWN, EXPLAINED, OPS, STAGES
from tpuprof.tui.report.declared import Block, Declared, Metrics, Section, declared, drawn_by
from tpuprof.tui.report.fields import metric_reasons, metric_rows
from tpuprof.tui.report.markdown import numbered, table
from tpuprof.tui.report.page import Head, ReportRequest, page_of

_compose = drawn_by("tpuprof.tui.pages.input.drawing:compose_input")


def declare(page: InputPipelinePage, request: ReportRequest) -> Declared:
    """Verdict and what to do, waiting, the host's time by part, the ops, and stages."""
    why: dict[str, str] = {}
    for explained, prefixes in EXPLAINED.items():
        if explained in page.unknown:
            nulls = metric_reasons(BEFORE_OPS)
            why |= {key: page.unknown[explained] for key in nulls if key.startswith(prefixes)}
    ops = Section(OPS, page.ops, "Input ops", request.most_rows)
    shown = replace(page, stages=page.stages[: request.limit or None])
    return Declared(
        Head(f"Input pipeline of {request.run.name}", request.run, page.hosts, page.warnings),
        statement=page.bottleneck.statement,
        parts=(
            Block(markdown=lambda: ["", *numbered(page.next_steps)]),
            Metrics(BEFORE_OPS, page),
            Block(markdown=lambda: ["", "## Waiting for input", "", *table(("figure", "value"), "lr", _figures(page))]),
            Block(markdown=lambda: _host_time(page)),
            ops,
            Section(STAGES, page, limit=request.most_rows),
        ),
        csv=ops,
        text=lambda pen: _compose(shown, pen, None, Cursor()).lines,
        unknown=page.unknown,
        reasons={**why, **page.unknown},
    )


def _host_time(page: InputPipelinePage) -> list[str]:
    if page.breakdown is None:
        return []
    rows = metric_rows(BREAKDOWN, page)
    return ["", "## Host time", "", *table(("part", "time over all threads"), "lr", rows)]


def _figures(page: InputPipelinePage) -> list[tuple[str, str]]:
    time, waiting, worst = page.step_time, page.infeed_percent, page.worst_step
    rows = [("step time, median", duration(None if time is None else time.median_ps))]
    if waiting is None:
        return [*rows, ("share of step time", UNKNOWN)]
    rows += [
        (
            "mean of the steps' shares",
            percent(waiting.average) + f" ± {percent(waiting.standard_deviation)}" * (len(page.steps) > 1),
        ),
        ("range of the steps' shares", f"{percent(waiting.minimum)} – {percent(waiting.maximum)}"),
    ]
    if worst is not None:
        step = page.steps[worst]
        rows.append(("worst step", f"{step.name}: {percent(step.percent_maximum)} on {step.core}"))
    return rows


def read(request: ReportRequest) -> InputPipelinePage:
    """The page of all steps, or of those that are asked for.

    Raises:
        ProfileError: `no_steps`, exit code 3: steps are asked for that nothing marks.
    """
    page, asked = page_of(INPUT)(request), request.options.get("step")
    if asked is not None and page.step_time is None:
        sentence = "The page input can't be shown for one step: no marker says where steps begin in this profile."
        raise ProfileError("no_steps", sentence, f"report ledger --step {printable(asked)}", EXIT_NOT_FOUND)
    return page


REPORT = declared("input", read, declare, (OPS, STAGES), BEFORE_OPS)
