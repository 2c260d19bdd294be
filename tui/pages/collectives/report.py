"""The report on collectives."""

from __future__ import annotations

from typing import Any

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.pages.collectives.model import NO_PARTNERS, ONE_STEP, CollectivesPage, Rows
from tpuprof.parsers.pages.collectives.page import COLLECTIVES
from tpuprof.parsers.pages.collectives.rows import By, above_peak, rows_by, single, why_unknown
from tpuprof.parsers.pages.shared.steps import chosen_steps
from tpuprof.tui.pages.collectives.fields import COPIES, GROUPS, SINGLE, CollectiveRows
from tpuprof.tui.pages.collectives.figures import METRICS, SLICES, STEPS, slice_table, steps_of
from tpuprof.tui.report.declared import Block, Declared, Metrics, Section, declared, drawn_by
from tpuprof.tui.report.fields import Table, metric_rows, order
from tpuprof.tui.report.page import Head, ReportRequest, page_of


def groups_of(page: CollectivesPage, by: By = "all", steps: slice | None = None) -> CollectiveRows:
    """The groups with most exposed time first, the mean of some steps or of all."""
    return _sorted(GROUPS, CollectiveRows(rows_by(page, by, steps), are_groups=True))


def _asked_groups(page: CollectivesPage, request: ReportRequest, by: By) -> CollectiveRows:
    steps = request.options.get("step")
    if steps is None:
        return groups_of(page, by)
    if not page.has_steps or not page.step_names:
        hint = "tpuprof-tui report collectives without --step has the whole capture"
        raise ProfileError(
            "no_steps", "The collectives of a step are unknown: the profile has none.", hint, EXIT_NOT_FOUND
        )
    return groups_of(page, by, chosen_steps(steps, page.step_names))


def _sorted(table: Table[CollectiveRows], shown: CollectiveRows) -> CollectiveRows:
    places = order(table, shown, "exposed", descending=True)

    def taken(column: Any) -> Any:  # noqa: ANN401 - an array or a tuple, as it was
        return tuple(column[row] for row in places.tolist()) if isinstance(column, tuple) else column[places]

    columns = {name: taken(getattr(shown.rows, name)) for name in Rows.__slots__ if name != "cores"}
    return replace(shown, rows=replace(shown.rows, **columns))


_lines = drawn_by("tpuprof.tui.pages.collectives.drawing:report_lines")


def declare(page: CollectivesPage, request: ReportRequest) -> Declared:
    """The answer, groups, single collectives, copies, collectives between slices, and steps."""
    by: By = request.options.get("by") or "all"
    if by == "op" and request.options.get("step") is not None:
        sentence = "Rows by op are means over all steps: --step can't choose some of them."
        raise ProfileError("usage", sentence, "--step with --by all", EXIT_USAGE)
    groups = _asked_groups(page, request, "all" if by in ("copies", "op") else by)
    each = _sorted(SINGLE, CollectiveRows(single(page), are_groups=False))
    listed = (SINGLE, each) if by == "op" else (GROUPS, groups)
    shown = Section(*listed, "Collectives", request.most_rows)
    copies = Section(COPIES, _asked_groups(page, request, "copies"), "Asynchronous copies", request.most_rows)
    why = {figure.key: page.why_none for figure in METRICS if figure.null and figure.read(page) is None}
    if not page.has_steps and not page.why_none:
        why["step_time_ms"] = ONE_STEP
    if page.lacks_partners and not page.why_none:
        why["waiting_time_ms"] = NO_PARTNERS
    for table, rows in ((GROUPS, groups.rows), (SINGLE, each.rows)):
        why |= {f"{table.key}[].{key}": reason for key, reason in why_unknown(page, rows).items()}
    title, ran_on = f"Collectives of {request.run.name}", [f"ran on: {page.device_type}"] if page.device_type else ()
    return Declared(
        Head(title, request.run, page.hosts, page.warnings, ran_on, log_line=page.log_line),
        statement=page.statement,
        metrics=lambda: metric_rows(METRICS, page),
        parts=(
            Metrics(METRICS, page),
            Section(GROUPS, groups),
            Block(markdown=shown.markdown),
            Section(SINGLE, each, limit=request.most_rows),
            copies,
            Section(SLICES, slice_table(page), "Between slices"),
            Section(STEPS, steps_of(page), "Steps"),
        ),
        csv=copies if by == "copies" else shown,
        text=lambda pen: _lines(page, shown, copies, pen),
        notes=(*page.notes, *above_peak(groups.rows)),
        unknown=why_unknown(page, groups.rows),
        reasons={key: reason for key, reason in why.items() if reason},
    )


REPORT = declared("collectives", page_of(COLLECTIVES), declare, (GROUPS, SINGLE, COPIES, SLICES, STEPS), METRICS)
