"""The op pages as plain text, drawn by the functions that draw the screen."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
from tpuprof.parsers.pages.ops.op_profile import OpProfilePage
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.parsers.pages.ops.roofline import RooflinePage
from tpuprof.tui.draw.format import count, duration, percent
from tpuprof.tui.draw.layout import fit, wrap
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.draw.table import Column, chosen_columns, header_line, row_lines
from tpuprof.tui.pages.ops.card import machine_line
from tpuprof.tui.pages.ops.columns import framework_op_columns, hlo_op_columns, roofline_columns
from tpuprof.tui.pages.ops.roofline import figures, plot
from tpuprof.tui.pages.ops.tree import whole_tree
from tpuprof.tui.report.text_report import LEAST_WIDTH, heading, render

PLOT_HEIGHT = 20


def ops_text(page: OpsPage, run: Run, width: int, glyphs: Glyphs, limit: int = 0, color: bool = False) -> str:
    """The table of HLO ops; at most `limit` rows, 0 for all."""
    width = max(width, LEAST_WIDTH)
    lines = _head(f"HLO ops of {run.name}", page, width, glyphs)
    lines += _table(hlo_op_columns(page, glyphs), range(len(page)), limit, width, glyphs)
    return render([*lines, *_notes(page, width, glyphs)], color)


def op_profile_text(
    page: OpProfilePage, run: Run, width: int, glyphs: Glyphs, limit: int = 0, color: bool = False
) -> str:
    """The op profile by program, every node open; at most `limit` children a node, 0 for all."""
    width = max(width, LEAST_WIDTH)
    lines = _head(f"Op profile of {run.name}", page.ops, width, glyphs)
    lines += wrap(page.headline, width, "strong", glyphs)
    lines += whole_tree(page, page.by_program, width, glyphs, limit)
    return render([*lines, *_notes(page.ops, width, glyphs)], color)


def framework_ops_text(
    page: FrameworkOpsPage, ops: OpsPage, run: Run, width: int, glyphs: Glyphs, limit: int = 0, color: bool = False
) -> str:
    """The tables of framework ops on the device and on the host; at most `limit` rows each, 0 for all."""
    width = max(width, LEAST_WIDTH)
    lines = _head(f"Framework ops of {run.name}", ops, width, glyphs)
    columns = framework_op_columns(page, glyphs)
    for side, is_host, idle, whole in (
        ("Device", False, page.device_idle_ps, page.device_total_ps),
        ("Host", True, page.host_idle_ps, page.host_total_ps),
    ):
        rows = [row for row in range(len(page)) if bool(page.is_host[row]) == is_host]
        words = f"{side}: {counted(len(rows), 'op')}"
        if whole:
            words += f", {duration(idle, glyphs.name == 'ascii')} idle ({percent(100 * idle / whole)})"
        lines.append(fit([(words, "title")], width, glyphs))
        if rows:
            lines += _table(columns, rows, limit, width, glyphs)
    return render([*lines, *_notes(page, width, glyphs)], color)


def roofline_text(page: RooflinePage, run: Run, width: int, glyphs: Glyphs, limit: int = 0, color: bool = False) -> str:
    """Peaks, the plot, and the table of ops; at most `limit` rows, 0 for all."""
    width = max(width, LEAST_WIDTH)
    lines = _head(f"Roofline of {run.name}", page.ops, width, glyphs, machine=False)
    lines += figures(page, width, glyphs)
    lines += plot(page, width, PLOT_HEIGHT, glyphs)
    lines += _table(roofline_columns(page.ops, glyphs), range(len(page.ops)), limit, width, glyphs)
    return render([*lines, *_notes(page, width, glyphs)], color)


def _head(title: str, ops: OpsPage, width: int, glyphs: Glyphs, machine: bool = True) -> list[Line]:
    hosts = counted(len(ops.hosts), "host") if len(ops.hosts) > 3 else ", ".join(ops.hosts)
    lines = [heading(title, hosts, width, glyphs)]
    if machine:
        lines.append(machine_line(ops, width, glyphs))
    if ops.simulated:
        lines.append(fit([("SIMULATED: the times of this profile are composed, not measured", "warn")], width, glyphs))
    return lines


def _table(columns: Sequence[Column], rows: Sequence[int], limit: int, width: int, glyphs: Glyphs) -> list[Line]:
    shown = chosen_columns(columns, width)
    kept = rows[:limit] if limit else rows
    lines = [header_line(shown, width, glyphs, "self"), *row_lines(shown, kept, None, width, glyphs)]
    if len(kept) < len(rows):
        lines.append(fit([(f"  + {count(len(rows) - len(kept))} more", "dim")], width, glyphs))
    return lines


def _notes(page: OpsPage | FrameworkOpsPage | RooflinePage, width: int, glyphs: Glyphs) -> list[Line]:
    """Warnings and reasons for what is unknown."""
    warnings = page.ops.warnings if isinstance(page, RooflinePage) else page.warnings
    lines: list[Line] = []
    for warning in warnings:
        lines += wrap(warning, width, "text", glyphs, [(" ! ", "warn")])
    for key, reason in page.unknown.items():
        if key == "time_scale":  # most devices do not scale their clock
            continue
        lines += wrap(f"{key.rpartition('.')[2]}: {reason}", width, "dim", glyphs, [(" ? ", "dim")])
    return lines
