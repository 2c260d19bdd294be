"""The order of rows in the op tables: by any column, unknown figures last, ties as they were (by self time)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.ops.op_metadata import TRAFFIC
from tpuprof.parsers.ops.roofline import Rates
from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
from tpuprof.parsers.pages.ops.ops import OpsPage

TEXT_KEYS = frozenset({"name", "category", "program", "framework", "type", "side", "bound", "remat"})
"""Columns whose natural order goes up; all others show the largest first."""

_BANDWIDTHS = {
    "hbm_rate": "hbm",
    "cmem_read": "cmem_read",
    "cmem_write": "cmem_write",
    "chip_read": "on_chip_read",
    "chip_write": "on_chip_write",
}


def hlo_op_order(page: OpsPage, key: str, descending: bool) -> Int64s:
    """Rows of the ops page in the order of a column (`tui.pages.ops.columns` names them).

    Raises:
        KeyError: there is no such column.
    """
    table = page.table
    texts = {"name": table.name, "program": page.program, "framework": table.framework_op}
    if key in texts:
        return _order(_ranks(texts[key]), descending)
    if key == "category":
        return _order(_ranks([category or "" for category in table.category]), descending)
    if key == "remat":
        marked = [
            ".remat" in name or "rematted_computation" in scope
            for name, scope in zip(table.name, table.framework_op, strict=True)
        ]
        return _order(np.array(marked, np.float64), descending)
    total = np.maximum(table.total_ps, 1)
    columns = {
        "self": table.self_ps,
        "cumulative": -page.cumulative_fraction,
        "total": table.total_ps,
        "count": table.occurrences,
        "average": table.self_ps / np.maximum(table.occurrences, 1),
        "stall": table.dma_stall_ps / total,
    }
    return _order(columns[key] if key in columns else rate_column(page.rates, key), descending)


def framework_op_order(page: FrameworkOpsPage, key: str, descending: bool) -> Int64s:
    """Rows of the framework ops page in the order of a column.

    Raises:
        KeyError: there is no such column.
    """
    if key in ("name", "type"):
        return _order(_ranks(page.name if key == "name" else page.type), descending)
    columns = {
        "self": page.self_ps,
        "cumulative": -page.cumulative_fraction,
        "total": page.total_ps,
        "count": page.occurrences,
        "side": page.is_host,
    }
    return _order(columns[key] if key in columns else rate_column(page.rates, key), descending)


def rate_column(rates: Rates, key: str) -> NDArray[np.float64]:
    """One of the columns that come from rates, float64[n].

    Raises:
        KeyError: there is no such column.
    """
    if key in _BANDWIDTHS:
        bandwidth: NDArray[np.float64] = rates.bandwidth[:, TRAFFIC.index(_BANDWIDTHS[key])]
        return bandwidth
    if key == "bound":
        return np.where(rates.bound_by < 0, np.nan, rates.bound_by)
    return {
        "flops": rates.flops_utilization,
        "hbm": rates.bandwidth_utilization[:, 0],
        "flops_rate": rates.flops_per_second,
        "model_rate": rates.model_flops_per_second,
        "all_rate": rates.bytes_per_second,
        "intensity": rates.operational_intensity,
        "roof": rates.efficiency,
    }[key]


def _ranks(texts: Sequence[str]) -> Int64s:
    """The place of each text among the distinct ones, in alphabetical order."""
    rank = {text: at for at, text in enumerate(sorted(set(texts)))}
    return np.array(list(map(rank.__getitem__, texts)), np.int64)


def _order(values: NDArray[Any], descending: bool) -> Int64s:
    """Ties stay as they are; what is unknown comes last. (Doubles tell picoseconds apart for two hours.)"""
    numbers = values.astype(np.float64)
    numbers = np.where(np.isnan(numbers), np.inf, -numbers if descending else numbers)
    return np.argsort(numbers, kind="stable").astype(np.int64)
