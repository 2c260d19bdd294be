"""The hosts of a run compared, of which JSON has every step of every core too; and its cores side by side."""

from __future__ import annotations

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.hosts.hosts import HOSTS as PAGE
from tpuprof.parsers.pages.hosts.hosts import hosts_in_steps
from tpuprof.parsers.pages.hosts.model import HostsPage
from tpuprof.tui.pages.hosts import fields
from tpuprof.tui.pages.hosts.fields import HOSTS, KEYS, how_many
from tpuprof.tui.report.declared import Block, Declared, Metrics, Section, Values, declared, drawn_by
from tpuprof.tui.report.fields import table_records
from tpuprof.tui.report.markdown import main_table
from tpuprof.tui.report.page import Head, ReportRequest

_lines = drawn_by("tpuprof.tui.pages.hosts.drawing:hosts")
_core_lines = drawn_by("tpuprof.tui.pages.hosts.drawing:cores")


def declare(page: HostsPage, request: ReportRequest) -> Declared:
    """The verdict, the hosts, where their mean steps go, those that are left out, and every common step."""
    names, title = list(dict.fromkeys(row.host for row in page.rows)), f"Hosts of {request.run.name}"
    hosts = Section(HOSTS, page, "Hosts", request.most_rows)
    why = {f"hosts[].{KEYS[name]}": reason for name, reason in page.unknown.items() if name in KEYS}
    if "parts_ps.input" in page.unknown:
        why["steps[].cores[].input"] = page.unknown["parts_ps.input"]
    return Declared(
        Head(title, request.run, names, page.warnings, covers=how_many(page)),
        statement=page.statement,
        parts=(
            Metrics(fields.METRICS, page),
            _null_objects(hosts),
            Block(markdown=lambda: _breakdown(hosts)),
            Section(fields.LEFT_OUT, page.left_out),
            Section(fields.STEPS, fields.steps_of(page)),
        ),
        csv=hosts,
        text=lambda pen: _lines(page, pen, request.most_rows),
        notes=_left_out(page),
        unknown={KEYS.get(key, key): reason for key, reason in page.unknown.items()},
        reasons=why,
    )


def _left_out(page: HostsPage) -> list[str]:
    return [f"{out.host} is left out: {out.reason}" for out in page.left_out]


def _null_objects(rows: Section[HostsPage]) -> Block:
    """A table whose objects of times are null in JSON where all times in them are."""

    def json() -> Values:
        records = table_records(rows.table, rows.source, rows.shown)
        for record in records:
            for key in ("step_time_ms", "breakdown_ms"):
                times = record[key]
                if isinstance(times, dict) and set(times.values()) == {None}:
                    record[key] = None
        return rows.holding(records)

    return Block(json, rows.markdown)


def _breakdown(hosts: Section[HostsPage]) -> list[str]:
    """Where a mean step of the hosts goes whose steps can be taken apart."""
    known = {row for row, host in enumerate(hosts.source.rows) if host.parts_ps is not None}
    shown = [row for row in hosts.shown if row in known]
    return main_table("Where a mean step goes", HOSTS, hosts.source, shown, len(known), fields.BREAKDOWN)


def read(request: ReportRequest) -> HostsPage:
    """The hosts over all steps, or over those that are asked for."""
    session, steps = request.session(request.run), request.options.get("step")
    return session.page(PAGE) if steps is None else hosts_in_steps(session, steps)


REPORT = declared("hosts", read, declare, (HOSTS, fields.LEFT_OUT, fields.STEPS), fields.METRICS)


def declare_cores(page: HostsPage, request: ReportRequest) -> Declared:
    """Which core is slowest, and a table of them."""
    page = replace(page, warnings=(*page.warnings, *_left_out(page)))
    listed, hosts = fields.of_cores(page), list(dict.fromkeys(row.host for row in page.rows))
    cores, number = Section(fields.CORES, listed, "Cores", request.most_rows), counted(len(page.cores), "core")
    return Declared(
        Head(f"Cores of {request.run.name}", request.run, hosts, page.warnings, covers=number),
        statement=page.cores_statement,
        parts=(Metrics(fields.CORE_METRICS, page), _null_objects(cores)),
        csv=cores,
        text=lambda pen: _core_lines(page, pen, request.most_rows),
        unknown={KEYS.get(key, key): why for key, why in listed.unknown.items()},
        reasons={f"cores[].{KEYS[name]}": why for name, why in listed.unknown.items() if name in KEYS},
    )


CORES_REPORT = declared("cores", read, declare_cores, (fields.CORES,), fields.CORE_METRICS)
