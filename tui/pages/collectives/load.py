"""How collectives are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.session.pages import Pages
    from tpuprof.tui.pages import Tell


def load(session: Pages, run: Run, host: str | None, tell: Tell) -> None:
    """Tells the page."""
    tell("collectives", session.collectives(host))


def is_there(session: Pages, host: str | None) -> bool:
    """Whether TensorCores ran an op that moves data to other cores, or to other slices."""
    from tpuprof.parsers.ops.device import HOST_TRANSFER  # noqa: PLC0415 - numpy, not at start

    ops = session.op_profile(host).ops
    if ops.runs_on != "core":
        return False
    kinds = zip(ops.op_class, ops.table.category, strict=True)
    return any(
        (name == "collective" and category != "partition-id") or HOST_TRANSFER.match(category or "")
        for name, category in kinds
    )
