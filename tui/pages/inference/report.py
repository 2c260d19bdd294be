"""The inference page in every format: text, JSON, CSV, Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.pages.inference import PERCENTILES, InferencePage, Latency, LatencyRow, Launches, Percentile
from tpuprof.tui.draw.format import count, duration, percent, significant
from tpuprof.tui.pages.inference.drawing import inference as draw_inference
from tpuprof.tui.report.csv import table as csv_table
from tpuprof.tui.report.json import document, head
from tpuprof.tui.report.markdown import escaped, joined
from tpuprof.tui.report.markdown import table as markdown_table
from tpuprof.tui.report.page import Asked, Look, Report
from tpuprof.tui.report.text import LEAST_WIDTH, heading, render
from tpuprof.tui.report.units import milliseconds

# --- text ----------------------------------------------------------------------------------------------------------


def inference_text(page: InferencePage, run: Run, look: Look) -> str:
    """The whole page under a line that names the run and its hosts."""
    width, glyphs = max(look.width, LEAST_WIDTH), look.glyphs
    hosts = counted(len(page.hosts), "host") if len(page.hosts) > 3 else ", ".join(page.hosts)
    first = heading(f"Inference latency of {run.name}", hosts, width, glyphs)
    return render([first, *draw_inference(page, width, glyphs)], look.color)


# --- JSON ----------------------------------------------------------------------------------------------------------


def inference_json(page: InferencePage, run: Run) -> str:
    """The page as JSON text, with a newline at the end."""
    body = {
        "source": page.source,
        "subject": page.subject,
        "is_training": page.is_training,
        "sessions": page.sessions,
        "batches": page.batches,
        "sessions_per_second": page.sessions_per_second,
        "average": None if page.average is None else _latency(page.average),
        "minimum_ms": milliseconds(page.minimum_ps),
        "maximum_ms": milliseconds(page.maximum_ps),
        "percentiles": _percentiles(page.percentiles),
        "launches": None if page.launches is None else _launches(page.launches),
        "rows": [_row(row) for row in page.rows],
        "note": page.note,
    }
    return document(head("inference", run, page.hosts, page.warnings), body, page.unknown)


def _percentiles(percentiles: Sequence[Percentile], queued: bool = False) -> list[dict[str, object]]:
    return [{"percentile": one.percentile, **_latency(one.latency, queued)} for one in percentiles]


def _launches(launches: Launches) -> dict[str, object]:
    return {
        "count": launches.count,
        "of": launches.of,
        "average": _latency(launches.average, queued=True),
        "percentiles": _percentiles(launches.percentiles, queued=True),
    }


def _latency(latency: Latency, queued: bool = False) -> dict[str, object]:
    """A latency's parts; time in the device's queue only for launches."""
    parts: dict[str, object] = {
        "total_ms": milliseconds(latency.total_ps),
        "host_ms": milliseconds(latency.host_ps),
        "device_ms": milliseconds(latency.device_ps),
        "communication_ms": milliseconds(latency.communication_ps),
    }
    return {**parts, "queued_ms": milliseconds(latency.queued_ps)} if queued else parts


def _row(row: LatencyRow) -> dict[str, object]:
    return {
        "name": row.name,
        "runs": row.runs,
        "average_ms": milliseconds(row.average_ps),
        "minimum_ms": milliseconds(row.minimum_ps),
        "maximum_ms": milliseconds(row.maximum_ps),
        "percentiles": [
            {"percentile": percentile, "total_ms": milliseconds(size)}
            for percentile, size in zip(PERCENTILES, row.percentiles_ps, strict=True)
        ],
        "total_ms": milliseconds(row.total_ps),
        "time_fraction": row.fraction,
        "cores": row.cores,
    }


# --- CSV -----------------------------------------------------------------------------------------------------------

_COLUMNS = ("percentile", "total_ms", "host_ms", "device_ms", "communication_ms")


def inference_csv(page: InferencePage) -> str:
    """The percentiles; the average stands last, with ``average`` for a percentile."""
    rows: list[tuple[str | float, Latency]] = [(one.percentile, one.latency) for one in page.percentiles]
    if page.average is not None:
        rows.append(("average", page.average))
    cells = (
        (name, *(milliseconds(getattr(one, f"{part}_ps")) for part in ("total", "host", "device", "communication")))
        for name, one in rows
    )
    return csv_table(_COLUMNS, cells)


# --- Markdown ------------------------------------------------------------------------------------------------------


def inference_markdown(page: InferencePage, run: Run) -> str:
    """What a session is, its latency, the launches, models or modules, and what is unknown with the reasons."""
    lines = [f"# Inference latency of {escaped(run.name)}", "", f"- hosts: {escaped(', '.join(page.hosts))}"]
    if page.source is not None:
        lines.append(f"- {page.source}: {escaped(page.subject)}, {count(page.sessions)}")
    if page.sessions_per_second is not None:
        lines.append(f"- per second: {significant(page.sessions_per_second)}")
    lines += [f"- warning: {escaped(warning)}" for warning in page.warnings]
    lines += ["", escaped(page.note), ""]
    if page.average is not None:
        lines += ["## Latency", "", *_latency_table(page.average, page.percentiles)]
    if page.launches is not None:
        known = f"{count(page.launches.count)} of {count(page.launches.of)} runs"
        lines += ["", f"## From launch to end, {known}", ""]
        lines += _latency_table(page.launches.average, page.launches.percentiles, queued=True)
    if page.rows:
        kind = "module" if page.source == "module runs" else "model"
        lines += ["", f"## {kind.capitalize()}s", "", *_row_table(page.rows, kind)]
    if page.unknown:
        lines += ["", "## Unknown", ""]
        lines += [f"- {escaped(key)}: {escaped(reason)}" for key, reason in page.unknown.items()]
    return joined(lines)


def _latency_table(average: Latency, percentiles: Sequence[Percentile], queued: bool = False) -> list[str]:
    named = [(f"{one.percentile:g}%", one.latency) for one in percentiles] + [("average", average)]
    parts = ("total", "host", *(("queued",) if queued else ()), "device", "communication")
    rows = ((name, *(duration(getattr(one, f"{part}_ps")) for part in parts)) for name, one in named)
    return markdown_table(("", *parts), "l" + "r" * len(parts), rows)


def _row_table(rows: Sequence[LatencyRow], kind: str) -> list[str]:
    sizes = [f"{percentile:g}%" for percentile in PERCENTILES]
    has_cores = any(row.cores is not None for row in rows)
    header = (kind, "share", "runs", "average", *sizes, "longest", *(("cores",) if has_cores else ()))
    cells = (
        (
            row.name,
            percent(100 * row.fraction),
            count(row.runs),
            duration(row.average_ps),
            *(duration(size) for size in row.percentiles_ps),
            duration(row.maximum_ps),
            *((count(row.cores),) if has_cores else ()),
        )
        for row in rows
    )
    return markdown_table(header, "l" + "r" * (len(header) - 1), cells)


def _read(asked: Asked) -> InferencePage:
    return asked.session(asked.run).inference(asked.host)


def _limited(page: InferencePage, asked: Asked) -> InferencePage:
    """The page with as many models or modules as are asked for."""
    return replace(page, rows=page.rows[: asked.limit]) if asked.limit else page


REPORT = Report(
    read=_read,
    writers={
        "json": lambda page, asked: inference_json(_limited(page, asked), asked.run),
        "csv": lambda page, asked: inference_csv(_limited(page, asked)),
        "md": lambda page, asked: inference_markdown(_limited(page, asked), asked.run),
        "text": lambda page, asked: inference_text(_limited(page, asked), asked.run, asked.look),
    },
    warnings=lambda page: page.warnings,
)
