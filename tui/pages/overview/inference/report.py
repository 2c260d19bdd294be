"""The report on inference: latencies as its main table, then models or modules."""

from __future__ import annotations

from typing import Any

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import nearest_hint, printable
from tpuprof.parsers.base.words import significant
from tpuprof.parsers.pages.overview.inference import INFERENCE
from tpuprof.parsers.pages.shared.latencies import OFFERED, InferencePage
from tpuprof.tui.draw.columns import Cursor
from tpuprof.tui.draw.format import count
from tpuprof.tui.pages.overview.inference.fields import BEFORE_ROWS, LAUNCHED, MODELS, MODULES, NOTE, OFFERS, ROWS
from tpuprof.tui.report.declared import Block, Declared, Metrics, Section, declared, drawn_by
from tpuprof.tui.report.page import Head, ReportRequest, page_of
from tpuprof.tui.report.shared.quantities import LATENCIES, latencies

_compose = drawn_by("tpuprof.tui.pages.overview.inference.drawing:compose")


def declare(page: InferencePage, request: ReportRequest) -> Declared:
    """What a session is, its latency, the launches, models or modules."""
    facts = [f"{page.source}: {page.subject}, {count(page.sessions)}"] if page.source is not None else []
    facts += [f"per second: {significant(page.sessions_per_second)}"] if page.sessions_per_second is not None else []
    sessions = Section(LATENCIES, latencies(page.percentiles, page.average), "Latency")
    people: list[Section[Any]] = [sessions]
    if page.launches is not None:
        title = f"From launch to end, {count(page.launches.count)} of {count(page.launches.of)} runs"
        people.append(Section(LAUNCHED, latencies(page.launches.percentiles, page.launches.average), title))
    if page.source == "requests":
        people.append(Section(MODELS, page.rows, "Models", request.most_rows))
    modules = Section(MODULES, page.modules, "Modules", request.most_rows)
    most = request.limit or None
    shown = replace(page, rows=page.rows[:most], modules=page.modules[:most])
    return Declared(
        Head(f"Inference latency of {request.run.name}", request.run, page.hosts, page.warnings, facts),
        statement=page.note,
        parts=(
            *(Block(markdown=section.markdown) for section in people),
            Metrics(BEFORE_ROWS, page),
            Section(ROWS, page.rows, limit=request.most_rows),
            modules,
            Section(OFFERS, page.offers),
            Metrics((NOTE,), page),
        ),
        csv=sessions,
        text=lambda pen: _compose(shown, pen, None, Cursor()).lines,
        unknown=page.unknown,
    )


def read(request: ReportRequest) -> InferencePage:
    """The page, its sessions the spans of the annotation that is asked for.

    Raises:
        ProfileError: the profile offers no annotation of that name.
    """
    page, name = page_of(INFERENCE)(request), request.options.get("requests")
    chosen = page.chosen(name)
    if chosen is not None:
        return chosen
    offered = ", ".join(printable(offer.subject) for offer in page.offers)
    offers = f"offers {offered}" if offered else f"offers none: {OFFERED}"
    what = "has request events" if page.source == "requests" else offers
    sentence = f"No annotation {printable(name or '')} can be used as requests: the profile {what}."
    names = [offer.subject or "" for offer in page.offers]
    hint = nearest_hint(name or "", names, "report inference without --requests lists them")
    raise ProfileError("not_found", sentence, hint, EXIT_NOT_FOUND)


REPORT = declared("inference", read, declare, (LATENCIES, ROWS, MODULES, OFFERS), (*BEFORE_ROWS, NOTE))
