"""The hosts of a run compared, in every format: text, JSON, CSV, Markdown; JSON has every step of every core too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.pages.hosts.model import PARTS, HostRow, HostsPage, HostSteps
from tpuprof.parsers.steps.model import StepTime
from tpuprof.tui.draw.format import UNKNOWN, count, duration, percent
from tpuprof.tui.pages.hosts.drawing import hosts as draw_hosts
from tpuprof.tui.pages.hosts.drawing import how_many
from tpuprof.tui.report.csv import Cell
from tpuprof.tui.report.csv import table as csv_table
from tpuprof.tui.report.json import document, head, step_times
from tpuprof.tui.report.markdown import escaped, joined
from tpuprof.tui.report.markdown import table as markdown_table
from tpuprof.tui.report.page import Asked, Look, Report
from tpuprof.tui.report.text import LEAST_WIDTH, heading, render
from tpuprof.tui.report.units import PS_PER_MS, milliseconds

_KEYS = {
    "device_type": "device_type",
    "step_time": "step_time_ms",
    "own_ps": "own_time_ms",
    "slowest_in": "slowest_in_steps",
    "cost_ps": "cost_ms",
    "parts_ps": "breakdown_ms",
    "parts_ps.input": "breakdown_ms.input",
    "idle_percent": "device_idle_percent",
    "input_percent": "input_percent",
    "collective_percent": "collective_percent",
    "wait_percent": "collective_wait_percent",
    "duty_percent": "device_duty_cycle_percent",
    "mxu_percent": "mxu_utilization_percent",
    "hbm_percent": "hbm_utilization_percent",
    "profile_duration_ps": "profile_duration_ms",
}
"""Attribute of a row to its key in JSON."""


def _rows(page: HostsPage, limit: int) -> Sequence[HostRow]:
    return page.rows[:limit] if limit else page.rows


# --- text ----------------------------------------------------------------------------------------------------------


def hosts_text(page: HostsPage, run: Run, look: Look, limit: int = 0) -> str:
    """The whole page under a line that names the run."""
    width, glyphs = max(look.width, LEAST_WIDTH), look.glyphs
    first = heading(f"Hosts of {run.name}", how_many(page), width, glyphs)
    return render([first, *draw_hosts(page, width, glyphs, limit)], look.color)


# --- JSON ----------------------------------------------------------------------------------------------------------


def hosts_json(page: HostsPage, run: Run, limit: int = 0) -> str:
    """The page as JSON text, with a newline at the end."""
    body = {
        "verdict": page.verdict,
        "statement": page.statement,
        "straggler": None if page.straggler is None else page.rows[page.straggler].host,
        "hosts": [_row(row) for row in _rows(page, limit)],
        "left_out": [{"host": out.host, "reason": out.reason} for out in page.left_out],
        "steps": [] if page.steps is None else _steps(page, page.steps),
    }
    reasons = {f"hosts[].{_KEYS[name]}": reason for name, reason in page.unknown.items() if name in _KEYS}
    if "parts_ps.input" in page.unknown:
        reasons["steps[].cores[].input"] = page.unknown["parts_ps.input"]
    reasons["steps[].slowest_host"] = "several hosts take equally long"
    reasons["straggler"] = "no single host holds up the others"
    return document(head("hosts", run, [row.host for row in page.rows], page.warnings), body, reasons)


def _row(row: HostRow) -> dict[str, object]:
    return {
        "host": row.host,
        "device_type": row.device_type,
        "core_count": row.cores,
        "step_time_ms": _step_time(row.step_time),
        "common_steps": row.common_steps,
        "own_time_ms": milliseconds(row.own_ps),
        "slowest_in_steps": row.slowest_in,
        "cost_ms": milliseconds(row.cost_ps),
        "breakdown_ms": None if row.known_parts_ps is None else _parts(row.known_parts_ps),
        "device_idle_percent": row.idle_percent,
        "input_percent": row.input_percent,
        "collective_percent": row.collective_percent,
        "collective_wait_percent": row.wait_percent,
        "device_duty_cycle_percent": row.duty_percent,
        "mxu_utilization_percent": row.mxu_percent,
        "hbm_utilization_percent": row.hbm_percent,
        "profile_duration_ms": milliseconds(row.profile_duration_ps),
        "problems": list(row.problems),
    }


def _step_time(time: StepTime | None) -> dict[str, object] | None:
    return None if time is None else {**step_times(time), "count": time.count, "source": time.source}


def _parts(parts_ps: Sequence[float | None]) -> dict[str, object]:
    return {part: milliseconds(value) for part, value in zip(PARTS, parts_ps, strict=True)}


def _steps(page: HostsPage, steps: HostSteps) -> list[dict[str, object]]:
    """Every step: which host was the slowest, each host's own time, and each core's time taken apart."""
    names = [page.rows[row].host for row in steps.rows]
    duration_ms, own_ms = (steps.duration_ps / PS_PER_MS).T.tolist(), (steps.own_ps / PS_PER_MS).T.tolist()
    is_alone = ((steps.own_ps == steps.own_ps.max(axis=0)).sum(axis=0) == 1).tolist()
    slowest, parts = steps.slowest.tolist(), (steps.parts_ps / PS_PER_MS).tolist()
    is_input_known = [page.rows[steps.rows[host]].input_percent is not None for host in steps.core_hosts.tolist()]
    return [
        {
            "name": name,
            "duration_ms": max(duration_ms[at]),
            "slowest_host": names[slowest[at]] if is_alone[at] else None,
            "hosts": [
                {"host": host, "duration_ms": whole, "own_time_ms": own}
                for host, whole, own in zip(names, duration_ms[at], own_ms[at], strict=True)
            ],
            "cores": [
                {"core": core, **_core_parts(parts[number][at], is_input_known[number])}
                for number, core in enumerate(steps.core_names)
            ],
        }
        for at, name in enumerate(steps.names)
    ]


def _core_parts(parts_ms: Sequence[float], is_input_known: bool) -> dict[str, float | None]:
    named: dict[str, float | None] = dict(zip(PARTS, parts_ms, strict=True))
    return named if is_input_known else {**named, "input": None}


# --- CSV -----------------------------------------------------------------------------------------------------------


def hosts_csv(page: HostsPage, limit: int = 0) -> str:
    """A row a host; headings are the keys of JSON, dotted for objects within objects."""
    rows = [_flat(_row(row)) for row in _rows(page, limit)]
    header = [key for key in _flat(_row(_full(page.rows[0]))) if key not in ("step_time_ms", "breakdown_ms")]
    return csv_table(header, ([row.get(key) for key in header] for row in rows))


def _full(row: HostRow) -> HostRow:
    """A row with every object filled, to tell the headings by."""
    time = row.step_time or StepTime(0, 0, 0, 0, 0, 0, "steps")
    return replace(row, step_time=time, parts_ps=row.parts_ps or (0.0,) * len(PARTS))


def _flat(row: dict[str, object]) -> dict[str, Cell]:
    out: dict[str, Cell] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            out |= {f"{key}.{inner}": item for inner, item in value.items()}
        elif isinstance(value, list):
            out[key] = "; ".join(map(str, value))
        elif value is None or isinstance(value, str | int | float):
            out[key] = value
    return out


# --- Markdown ------------------------------------------------------------------------------------------------------

_HEADER = (
    "host",
    "cores",
    "step, median",
    "longest",
    "own time",
    "slowest in",
    "costs",
    "wait",
    "input",
    "idle",
    "idle of capture",
    "duty",
)


def hosts_markdown(page: HostsPage, run: Run, limit: int = 0) -> str:
    """The verdict, a table of the hosts, where their mean steps go, and what is left out or unknown."""
    rows = _rows(page, limit)
    lines = [f"# Hosts of {escaped(run.name)}", "", escaped(page.statement), ""]
    lines += markdown_table(_HEADER, "l" + "r" * (len(_HEADER) - 1), (_cells(row) for row in rows))
    taken_apart = [row for row in rows if row.parts_ps is not None]
    if taken_apart:
        lines += ["", "## Where a mean step goes", ""]
        cells = ((row.host, *(duration(part) for part in row.known_parts_ps or ())) for row in taken_apart)
        lines += markdown_table(("host", *PARTS), "l" + "r" * len(PARTS), cells)
    if page.left_out or page.warnings:
        lines += ["", "## Notes", ""]
        lines += [f"- {escaped(out.host)} is left out: {escaped(out.reason)}" for out in page.left_out]
        lines += [f"- {escaped(warning)}" for warning in page.warnings]
    if page.unknown:
        lines += ["", "## Unknown", ""]
        lines += [f"- {escaped(_KEYS.get(key, key))}: {escaped(reason)}" for key, reason in page.unknown.items()]
    return joined(lines)


def _cells(row: HostRow) -> tuple[str, ...]:
    time = row.step_time
    return (
        row.host,
        count(row.cores),
        duration(time.median_ps if time else None),
        duration(time.maximum_ps if time else None),
        duration(row.own_ps),
        UNKNOWN if row.slowest_in is None else f"{count(row.slowest_in)} of {count(row.common_steps)}",
        duration(row.cost_ps),
        percent(row.wait_percent),
        percent(row.input_percent),
        percent(row.step_idle_percent),
        percent(row.idle_percent),
        percent(row.duty_percent),
    )


def _read(asked: Asked) -> HostsPage:
    return asked.session(asked.run).hosts()


REPORT = Report(
    read=_read,
    writers={
        "json": lambda page, asked: hosts_json(page, asked.run, asked.most_rows),
        "csv": lambda page, asked: hosts_csv(page, asked.most_rows),
        "md": lambda page, asked: hosts_markdown(page, asked.run, asked.most_rows),
        "text": lambda page, asked: hosts_text(page, asked.run, asked.look, asked.most_rows),
    },
    warnings=lambda page: page.warnings,
)
