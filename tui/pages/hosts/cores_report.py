"""The cores of a run side by side."""

from __future__ import annotations

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.hosts.model import HostsPage
from tpuprof.parsers.session import pages
from tpuprof.tui.pages.hosts.fields import CORE_METRICS, CORES, KEYS, of_cores
from tpuprof.tui.pages.hosts.report import null_objects
from tpuprof.tui.report.declared import Declared, Head, Metrics, Section, declared, drawn_by
from tpuprof.tui.report.page import ReportRequest, page_of

_lines = drawn_by("tpuprof.tui.pages.hosts.drawing:cores")


def declare(page: HostsPage, request: ReportRequest) -> Declared:
    """Which core is slowest, and a table of them."""
    listed, hosts = of_cores(page), [row.host for row in page.rows]
    cores, number = Section(CORES, listed, "Cores", request.most_rows), counted(len(page.cores), "core")
    return Declared(
        Head(f"Cores of {request.run.name}", request.run, hosts, page.warnings, covers=number),
        statement=page.cores_statement,
        parts=(Metrics(CORE_METRICS, page), null_objects(cores)),
        csv=cores,
        text=lambda pen: _lines(page, pen, request.most_rows),
        unknown={KEYS.get(key, key): why for key, why in listed.unknown.items()},
        reasons={f"cores[].{KEYS[name]}": why for name, why in listed.unknown.items() if name in KEYS},
    )


REPORT = declared("cores", page_of(pages.HOSTS), declare, (CORES,), CORE_METRICS)
