"""How collectives are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof.parsers.session import pages

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.session.pages import Pages
    from tpuprof.tui.pages import Publish


def load(session: Pages, run: Run, host: str | None, publish: Publish) -> None:
    """Tells the page."""
    publish("collectives", session.page(pages.COLLECTIVES, host))


def is_there(session: Pages, host: str | None) -> bool:
    """Whether TensorCores ran an op that moves data to other cores, or to other slices."""
    ops = session.page(pages.OPS, host)
    if ops.runs_on != "core":
        return False
    kinds = zip(ops.op_class, ops.table.category, strict=True)
    if any(name == "collective" and category != "partition-id" for name, category in kinds):
        return True
    return any(
        ops.table.is_across_slices(row, lambda: session.page(pages.MODULES, host)) for row in range(len(ops.table))
    )
