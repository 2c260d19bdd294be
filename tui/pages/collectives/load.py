"""How collectives are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.ops.table import OpTable
    from tpuprof.parsers.session.pages import Pages
    from tpuprof.tui.pages import Tell


def load(session: Pages, run: Run, host: str | None, tell: Tell) -> None:
    """Tells the page."""
    tell("collectives", session.collectives(host))


def is_there(session: Pages, host: str | None) -> bool:
    """Whether TensorCores ran an op that moves data to other cores, or to other slices."""
    ops = session.op_profile(host).ops
    if ops.runs_on != "core":
        return False
    kinds = zip(ops.op_class, ops.table.category, strict=True)
    return any(name == "collective" and category != "partition-id" for name, category in kinds) or any(
        _is_across(session, host, ops.table, row) for row in range(len(ops.table))
    )


def _is_across(session: Pages, host: str | None, table: OpTable, row: int) -> bool:
    """Whether an op sends to other slices or receives from them; only for such as may does it ask the compiled HLO."""
    from tpuprof.parsers.ops.device import HOST_TRANSFER, is_across_slices  # noqa: PLC0415 - numpy, not at start

    category = table.category[row] or ""
    if not HOST_TRANSFER.match(category):
        return False
    found = (modules.module(int(table.program_id[row])) for modules in session.modules(host))
    module = next((module for module in found if module is not None), None)
    proto = None if module is None else module.instruction_proto(table.name[row])
    attributes = None if proto is None else proto.frontend_attributes.map
    return is_across_slices(category, table.expression(row), table.framework_op[row], attributes)
