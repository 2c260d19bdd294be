"""Who holds a device's memory: the largest source lines of a device memory profile, for the pages that ask."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import percent_of
from tpuprof.parsers.memory.live_arrays import AllocationGroup, By, Holders, short_device
from tpuprof.tui.draw.format import binary_size, percent
from tpuprof.tui.draw.pen import Pen, clean
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.report.fields import Table, attribute, object_table
from tpuprof.tui.report.units import BYTES, COUNT, TEXT, VERBATIM

MOST_NAMED = 3
_MOST_LINES = 8
NAMELESS: dict[By, str] = {
    **dict.fromkeys(("source", "function", "stack"), "(no traceback)"),
    "device": "(no device)",
    "kind": "(kind unknown)",
}
"""What a group without a name is called."""


def group_name(group: AllocationGroup, by: By, with_folder: bool = True) -> str:
    """What a group is called: a source line with its function, a stack from its innermost own call out."""
    if not group.title:
        return NAMELESS[by]
    place = group.source.rpartition(":")[0] if by == "function" and group.source else group.source
    place = place if with_folder else os.path.basename(place)
    parts = {"source": (place, group.function), "function": (group.title, place), "stack": (place, group.title)}
    return " ".join(filter(None, parts.get(by, (group.title,))))


HOLDERS: Table[Sequence[AllocationGroup]] = object_table(
    "groups",
    (
        attribute("source", TEXT, "the innermost source line on the stack outside libraries", null="no traceback"),
        attribute("function", TEXT, "the function that this line is in", null="no traceback, or several functions"),
        attribute("count", COUNT, "buffers that are alive", name="total.count"),
        attribute("size_bytes", BYTES, "their total size", name="total.size_bytes"),
    ),
)

METRICS = (
    attribute("name", VERBATIM, "the device memory profile", name="page.name"),
    attribute("device", VERBATIM, "the device that this is of", null="the file names no device"),
    attribute("count", COUNT, "buffers that are alive on it", name="total.count"),
    attribute("size_bytes", BYTES, "their total size", name="total.size_bytes"),
)


def totals(held: Holders) -> str:
    """``7.43 GiB live on TPU_0 in 212 buffers``."""
    where = f" on {short_device(held.device)}" if held.device else ""
    return f"{binary_size(held.total.size_bytes)} live{where} in {counted(held.total.count, 'buffer')}"


def in_a_line(held: Holders, ascii_only: bool = False) -> str:
    """All that and the largest source lines, in one line."""
    named = [
        f"{clean(group_name(group, 'source', False), ascii_only)} {binary_size(group.total.size_bytes)}"
        for group in held.groups[:MOST_NAMED]
    ]
    words = totals(held).rpartition(" in ")[0] if named else totals(held)
    return ": ".join(filter(None, (words, ", ".join(named))))


def lines(held: Holders, remark: str, pen: Pen) -> list[Line]:
    """A section of a report."""
    fullest = ", the fullest device" if held.device and not held.is_named and len(held.page.devices) > 1 else ""
    drawn = [pen.rule("Who holds it", f"{held.page.name}{fullest}")]
    drawn += pen.narrower(1).wrap(f"{totals(held)}. {remark}", "text", [(" ", "text")])
    for group in held.groups[:_MOST_LINES]:
        name = pen.text(group_name(group, "source", pen.width >= 100))
        size, share = group.total.size_bytes, percent(percent_of(group.total.size_bytes, held.total.size_bytes), 0)
        metrics = f" {binary_size(size):>9} {share:>5} "
        drawn.append(pen.fit([(metrics, "strong"), (f" {name} ({group.total.count:,})", "text")]))
    rest = held.groups[_MOST_LINES:]
    if rest:
        more = binary_size(sum(group.total.size_bytes for group in rest))
        drawn.append(pen.fit([(f"   and {counted(len(rest), 'source line')} more, {more}", "dim")]))
    return drawn


def markdown_rows(held: Holders, limit: int) -> list[list[Any]]:
    """The largest source lines, all for a limit of 0: size, share, count, line and function."""
    return [
        [
            binary_size(group.total.size_bytes),
            percent(percent_of(group.total.size_bytes, held.total.size_bytes), 0),
            f"{group.total.count:,}",
            group_name(group, "source"),
        ]
        for group in held.groups[: limit or None]
    ]
