"""The rows of the op pages' reports as columns by their dotted JSON key, which CSV takes for its headings as well.

A value is None where it is unknown. `reasons_of` says why: the reason of the key, or a better one that the page
knows, as for a device without a peak.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.op_metadata import TRAFFIC
from tpuprof.parsers.ops.roofline import UNKNOWN_BOUND, WORK, Rates
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
from tpuprof.parsers.pages.ops.op_profile import OpTree
from tpuprof.parsers.pages.ops.ops import UNKNOWN_PROGRAM, OpsPage
from tpuprof.parsers.pages.ops.roofline import RooflinePage, RooflinePoints

Value = str | int | float | None
Columns = Mapping[str, Sequence[Value]]
Rows = NDArray[np.int64]

MEMORIES = {name: name.replace("on_chip", "sram") for name in TRAFFIC}
"""Names of the memories in keys, by their column of traffic; on-chip memory is `sram`, as in XProf."""

NODE_MEMORIES = ("hbm", "on_chip_read", "on_chip_write")
"""The memories that the op profile tells apart."""

NO_FLOPS = "no FLOPs are counted for these ops (those of a while or call count where they run, inside it)"
NO_BYTES = "no bytes are counted for these ops (those of a while or call count where they run, inside it)"
NO_BREAKDOWN = "the profile does not break the bytes of these ops down by memory"
NO_PROGRAM = "the profile does not say which program these ops belong to"
NO_BOUND = "no FLOPs, and no bytes of a memory with a known peak, are counted for these ops"
NO_TIME = "the cores' whole time is not known"
NO_BANDWIDTH = "no bytes are counted for these ops, or the peak of this memory is unknown"
NO_INTENSITY = "no FLOPs are counted for these ops, or no bytes"

_REASONS = {
    "type": "the profile does not tell the type of these ops",
    "program": NO_PROGRAM,
    "program_id": NO_PROGRAM,
    "category": "the profile has no HLO category for these ops",
    "framework_op": "the profile names no framework op for these ops",
    "source": "the profile names no source line for these ops",
    "shape": "the profile gives no shape for the results of these ops",
    "layout": "the profile gives no shape for the results of these ops",
    "expression": "the profile has lost the HLO text of these ops",
    "total_time_ps": NO_TIME,
    "self_time_percent": NO_TIME,
    "cumulative_percent": NO_TIME,
    "time_ps": NO_TIME,
    "time_fraction": NO_TIME,
    "occurrences": "idle time has none",
    "average_time_ps": "these ops have no occurrences",
    "average_self_time_ps": "these ops have no occurrences",
    "dma_stall_percent": "no event of these ops says how long it waited for DMA, or they took no time",
    "flops": NO_FLOPS,
    "model_flops": NO_FLOPS,
    "gflops_per_second": f"{NO_FLOPS}, or they took no time",
    "model_gflops_per_second": f"{NO_FLOPS}, or they took no time",
    "flops_utilization": f"{NO_FLOPS}, or the peak is unknown",
    "bytes_accessed": NO_BYTES,
    "hbm_bytes": NO_BYTES,
    "gigabytes_per_second": f"{NO_BYTES}, or they took no time",
    "hbm_gigabytes_per_second": f"{NO_BYTES}, or they took no time",
    "hbm_bandwidth_utilization": NO_BANDWIDTH,
    "operational_intensity": NO_INTENSITY,
    "hbm_intensity": "no FLOPs are counted for these ops, or no HBM bytes",
    "bound_by": NO_BOUND,
    "roofline_efficiency": NO_BOUND,
    "wasted_fraction": f"{NO_BOUND}; or there is no time at all",
    "main_op": "host ops stem from no HLO op",
    "main_op_program": "host ops stem from no HLO op, or the profile does not say which program it belongs to",
}
for _name in MEMORIES.values():
    _REASONS[f"bandwidth_gigabytes_per_second.{_name}"] = (
        f"{NO_BREAKDOWN if _name != 'hbm' else NO_BYTES}, or they took no time"
    )
    _REASONS[f"bandwidth_utilization.{_name}"] = NO_BANDWIDTH
    _REASONS[f"bytes.{_name}"] = NO_BREAKDOWN if _name != "hbm" else NO_BYTES


def reasons_of(unknown: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Why values of rows are null, by dotted key with the rows' prefix, ``ops[].flops``.

    Args:
        unknown: what the page says; its keys of rows are those of ops, ``ops[].flops_utilization``.
    """
    reasons = {f"{prefix}.{key}": why for key, why in _REASONS.items()}
    for key, why in unknown.items():
        rows, dot, name = key.partition("[].")
        if rows == "ops" and dot:
            reasons[f"{prefix}.{name}"] = why
            if name == "hbm_bandwidth_utilization":
                reasons[f"{prefix}.bandwidth_utilization.hbm"] = why
    return reasons


def records(columns: Columns) -> list[dict[str, object]]:
    """The rows as objects; keys with a dot make objects within them, at the place of the first such key."""
    plain: list[str] = []
    values: list[Iterable[object]] = []
    groups: dict[str, list[str]] = {}
    for key in columns:
        group, dot, name = key.partition(".")
        if dot:
            groups.setdefault(group, []).append(name)
    for key in columns:
        group, dot, _ = key.partition(".")
        if not dot:
            plain.append(key)
            values.append(columns[key])
        elif group not in plain:
            names = groups[group]
            parts = zip(*(columns[f"{group}.{name}"] for name in names), strict=True)
            plain.append(group)
            values.append([dict(zip(names, part, strict=True)) for part in parts])
    return [dict(zip(plain, row, strict=True)) for row in zip(*values, strict=True)]


def op_columns(page: OpsPage, rows: Rows) -> dict[str, Sequence[Value]]:
    """HLO ops: the table of the ops page."""
    table, rates = page.table, page.rates
    times = table.total_ps[rows]
    with np.errstate(divide="ignore", invalid="ignore"):
        stall = 100 * table.dma_stall_ps[rows] / times
    bandwidths = {
        f"bandwidth_gigabytes_per_second.{name}": numbers(rates.bandwidth[rows, at] / 1e9)
        for at, name in enumerate(MEMORIES.values())
    }
    return {
        **_op_names(page, rows),
        "framework_op": [table.framework_op[row] or None for row in rows.tolist()],
        **_times(table.occurrences[rows], times, table.self_ps[rows]),
        **_shares(page.self_fraction[rows], page.cumulative_fraction[rows]),
        "dma_stall_percent": numbers(stall),
        "flops": counts(table.flops[rows]),
        "model_flops": counts(table.model_flops[rows]),
        "bytes_accessed": counts(table.bytes_accessed[rows]),
        "hbm_bytes": counts(table.hbm_bytes[rows]),
        **_rates(rates, rows),
        "model_gflops_per_second": numbers(rates.model_flops_per_second[rows] / 1e9),
        "gigabytes_per_second": numbers(rates.bytes_per_second[rows] / 1e9),
        **bandwidths,
        **op_texts(table, rows, "shape"),
    }


def framework_op_columns(page: FrameworkOpsPage, ops: OpsPage, rows: Rows) -> dict[str, Sequence[Value]]:
    """Framework ops; figures of work are of device ops alone."""
    picked = rows.tolist()
    main = [int(at) for at in page.main_op[rows]]
    return {
        "name": [page.name[row] for row in picked],
        "type": [page.type[row] or None for row in picked],
        "side": ["host" if is_host else "device" for is_host in page.is_host[rows].tolist()],
        "class": [page.op_class[row] for row in picked],
        **_times(page.occurrences[rows], page.total_ps[rows], page.self_ps[rows]),
        **_shares(page.self_fraction[rows], page.cumulative_fraction[rows]),
        **_rates(page.rates, rows),
        "main_op": [None if at < 0 else ops.table.name[at] for at in main],
        "main_op_program": [None if at < 0 else known_program(ops.program[at]) for at in main],
    }


def roofline_op_columns(page: RooflinePage, rows: Rows) -> dict[str, Sequence[Value]]:
    """HLO ops under the roof."""
    ops = page.ops
    table = ops.table
    return {
        **_op_names(ops, rows),
        "framework_op": [table.framework_op[row] or None for row in rows.tolist()],
        **_times(table.occurrences[rows], table.total_ps[rows], table.self_ps[rows]),
        "self_time_percent": numbers(100 * ops.self_fraction[rows]),
        "flops": counts(table.flops[rows]),
        "bytes_accessed": counts(table.bytes_accessed[rows]),
        "hbm_bytes": counts(table.hbm_bytes[rows]),
        **_rates(ops.rates, rows),
        "hbm_gigabytes_per_second": numbers(ops.rates.bandwidth[rows, 0] / 1e9),
    }


def roofline_point_columns(points: RooflinePoints) -> dict[str, Sequence[Value]]:
    """The program or the steps under the roof."""
    rows = np.arange(len(points))
    work = points.work
    return {
        "name": points.name,
        "total_time_ps": [time or None for time in points.total_ps.tolist()],
        "flops": counts(work[:, WORK.index("flops")]),
        "bytes_accessed": counts(work[:, WORK.index("bytes_accessed")]),
        "hbm_bytes": counts(work[:, WORK.index("hbm")]),
        **_rates(points.rates, rows),
        "hbm_gigabytes_per_second": numbers(points.rates.bandwidth[:, 0] / 1e9),
    }


def node_columns(page: OpsPage, tree: OpTree) -> dict[str, Sequence[Value]]:
    """The nodes of an op profile's tree, without the texts that ops alone have."""
    table = page.table
    used = {name: tree.rates.bandwidth_utilization[:, TRAFFIC.index(name)] for name in NODE_MEMORIES}
    moved = {name: tree.work[:, WORK.index(name)] for name in NODE_MEMORIES}
    category: list[Value] = []
    for kind, name, row in zip(tree.kind, tree.name, tree.row.tolist(), strict=True):
        category.append(table.category[row] if row >= 0 else name if kind == "category" else None)
    return {
        "name": (f"by_{tree.by}", *tree.name[1:]),
        "kind": tree.kind,
        "category": category,
        "occurrences": _node_occurrences(page, tree),
        "time_ps": [int(tree.time_ps[0]) or None, *tree.time_ps[1:].tolist()],
        "time_fraction": numbers(tree.time_fraction),
        "flops_utilization": numbers(tree.rates.flops_utilization),
        **{f"bandwidth_utilization.{MEMORIES[name]}": numbers(values) for name, values in used.items()},
        "flops": counts(tree.work[:, WORK.index("flops")]),
        **{f"bytes.{MEMORIES[name]}": counts(values) for name, values in moved.items()},
        "wasted_fraction": numbers(tree.wasted_fraction),
    }


def _node_occurrences(page: OpsPage, tree: OpTree) -> list[Value]:
    """Those of all ops under each node, the root as well; None for idle time."""
    found: list[Value] = [int(page.table.occurrences.sum()), *tree.occurrences[1:].tolist()]
    return [None if kind == "idle" else number for kind, number in zip(tree.kind, found, strict=True)]


def op_texts(table: OpTable, rows: Rows, shape: str) -> dict[str, Sequence[Value]]:
    """What the profile's event metadata tells of ops; `shape` is the key for their results' shapes."""
    return {
        "source": _texts(table.texts("source", rows)),
        shape: _texts(table.texts("shape_with_layout", rows)),
        "expression": _texts(map(table.expression, rows.tolist())),
    }


def device(page: OpsPage) -> dict[str, Value]:
    """What the device can do at most, one core of it; a peak is None where the profile does not give it."""
    peaks = page.peaks
    return {
        "type": page.device_type,
        "cores": page.core_count,
        "peak_gflops_per_second": _giga(peaks.flops_per_second),
        **{f"peak_{key}_gigabytes_per_second": _giga(_peak(peaks, name)) for name, key in MEMORIES.items()},
        "ridge_point": peaks.ridge_point,
    }


def device_reasons() -> dict[str, str]:
    """Why figures of `device` are null."""
    reasons = {
        f"device.peak_{name}_gigabytes_per_second": f"the device plane gives no peak of {name.replace('_', ' ')}"
        for name in MEMORIES.values()
    }
    return {
        **reasons,
        "device.type": "no device plane names its type",
        "device.peak_gflops_per_second": "the device plane gives no peak FLOPS",
        "device.peak_hbm_gigabytes_per_second": "the device plane gives no peak HBM bandwidth",
        "device.ridge_point": "the device plane lacks the peak FLOPS or the peak HBM bandwidth",
    }


def first(count: int, limit: int) -> Rows:
    """The first `limit` of so many rows, all for 0."""
    return np.arange(min(count, limit) if limit else count)


def framework_rows(page: FrameworkOpsPage, limit: int) -> Rows:
    """At most `limit` rows of each side, all for 0."""
    sides = [np.flatnonzero(page.is_host == side) for side in (False, True)]
    return np.concatenate([side[:limit] if limit else side for side in sides])


def roofline_rows(page: RooflinePage, limit: int) -> Rows:
    """At most `limit` rows of the ops that count, all for 0."""
    rows = np.flatnonzero(page.counts)
    return rows[:limit] if limit else rows


def numbers(values: NDArray[np.float64]) -> list[Value]:
    """Figures; None for what is not finite."""
    found: list[Value] = values.tolist()
    known = np.isfinite(values)
    return found if known.all() else [value if is_known else None for value, is_known in zip(found, known, strict=True)]


def counts(values: NDArray[np.float64]) -> list[Value]:
    """Counts, whole numbers as such while a double tells each from the next one; None for what is not finite."""
    return [_whole(value) for value in values.tolist()]


def _whole(value: float) -> Value:
    if value.is_integer():
        return int(value) if abs(value) < 2**53 else value
    return value if math.isfinite(value) else None


def _op_names(page: OpsPage, rows: Rows) -> dict[str, Sequence[Value]]:
    picked = rows.tolist()
    ids = page.table.program_id[rows].tolist()
    return {
        "name": [page.table.name[row] for row in picked],
        "program": [known_program(page.program[row]) for row in picked],
        "program_id": [number or None for number in ids],
        "category": [page.table.category[row] or None for row in picked],
        "class": [page.op_class[row] for row in picked],
    }


def _times(occurrences: Rows, total_ps: Rows, self_ps: Rows) -> dict[str, Sequence[Value]]:
    with np.errstate(divide="ignore", invalid="ignore"):
        average, average_self = total_ps / occurrences, self_ps / occurrences
    return {
        "occurrences": occurrences.tolist(),
        "total_time_ps": total_ps.tolist(),
        "self_time_ps": self_ps.tolist(),
        "average_time_ps": numbers(average),
        "average_self_time_ps": numbers(average_self),
    }


def _shares(self_fraction: NDArray[np.float64], cumulative: NDArray[np.float64]) -> dict[str, Sequence[Value]]:
    return {
        "self_time_percent": numbers(100 * self_fraction),
        "cumulative_percent": numbers(100 * cumulative),
    }


def _rates(rates: Rates, rows: Rows) -> dict[str, Sequence[Value]]:
    """What all pages tell of work and time."""
    names = rates.bound_names()
    return {
        "gflops_per_second": numbers(rates.flops_per_second[rows] / 1e9),
        "flops_utilization": numbers(rates.flops_utilization[rows]),
        "hbm_bandwidth_utilization": numbers(rates.bandwidth_utilization[rows, 0]),
        "operational_intensity": numbers(rates.operational_intensity[rows]),
        "hbm_intensity": numbers(rates.hbm_intensity[rows]),
        "bound_by": [None if rates.bound_by[row] == UNKNOWN_BOUND else names[row] for row in rows.tolist()],
        "roofline_efficiency": numbers(rates.efficiency[rows]),
    }


def known_program(name: str) -> str | None:
    """A program's name, None for the stand-in of a program that is not known."""
    return None if name == UNKNOWN_PROGRAM else name


def _texts(values: Iterable[str]) -> list[Value]:
    return [value or None for value in values]


def _peak(peaks: Peaks, name: str) -> float | None:
    value: float | None = getattr(peaks, name)
    return value


def _giga(value: float | None) -> float | None:
    return None if value is None else value / 1e9
