"""What the parity tests of the op pages share: XProf's tables as fields, and our numbers in its units."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.parity.oracle.fields import Comparison, Difference, Value, compare, same
from tests.parity.oracle.golden import files_of
from tests.support.host_events import host_ops
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.hosts.summary import HostSummary, summarise
from tpuprof.parsers.ops.core.ops import COUNTS
from tpuprof.parsers.ops.host_events.ops import HostOps
from tpuprof.parsers.ops.op_metadata import TRAFFIC
from tpuprof.parsers.ops.roofline import Rates, table_rates
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
from tpuprof.parsers.pages.ops.ops import OpsPage

US = 1e6
GIB = 2.0**30

ABSENT = "the profile has no such count, or the device no such peak: XProf shows 0 for what is not known"
NOT_HELD = "our pages do not hold it"
TIED = "ops of one self time stand by name; XProf's stand as in its hash map"
RULES = (
    "XProf 2.24.2 does not read what an event counts, scales to the nominal clock on its op profile alone, leaves "
    "bytes that are not by memory out of its sums, and takes bytes of the host's memory alone for HBM's"
)

_BOUNDS = ("Compute", "HBM", "CMEM Read", "CMEM Write", "VMEM Read", "VMEM Write", "Unknown")

Cells = dict[str, Value]


@cache
def summary_of(path: Path) -> HostSummary:
    """A host of a profile, called as its file; kept, as several tests look at it."""
    return summarise(Trace.open(str(path)), path.name.partition(".xplane.")[0])


@cache
def by_xprofs_rules(path: Path, of_sums: bool = False) -> HostSummary:
    """The same of what XProf reads: counts of metadata alone; with `of_sums`, bytes by memory alone."""
    space = XSpace.FromString(path.read_bytes())
    for plane in space.planes:
        number = {stat.name.decode(): key for key, stat in plane.stat_metadata.items()}
        unread = {number.get(name) for name in COUNTS}
        for event in (event for line in plane.lines for event in line.events):
            for at in reversed(range(len(event.stats))):
                if event.stats[at].metadata_id in unread:
                    del event.stats[at]
        divided = number.get("memory_access_breakdown", 0)
        for op in plane.event_metadata.values():
            if of_sums and divided and all(stat.metadata_id != divided for stat in op.stats):
                op.stats.add(metadata_id=divided, bytes_value=b"")
    return summarise(Trace.from_bytes(space.SerializeToString()), path.name.partition(".xplane.")[0])


def modules_of(path: Path) -> HloModules:
    return HloModules.of(Trace.open(str(path)))


def host_ops_of(path: Path) -> HostOps:
    """What the host's threads ran in a profile."""
    return host_ops(Trace.open(str(path)))


def summaries_of(shared: Path, profile: str) -> list[HostSummary]:
    """Our summaries of the hosts of a profile beside the golden answers."""
    return [summary_of(path) for path in files_of(shared, profile).values()]


def rules_of(shared: Path, profile: str, of_sums: bool = False) -> list[HostSummary]:
    """The same by XProf's rules."""
    return [by_xprofs_rules(path, of_sums) for path in files_of(shared, profile).values()]


def rows_of(table: Any) -> list[dict[str, Any]]:
    """The rows of one of XProf's chart tables, by column."""
    columns = [column["id"] for column in table["cols"]]
    return [dict(zip(columns, (cell.get("v") for cell in row["c"]), strict=True)) for row in table["rows"]]


def table_fields(table: Any, prefix: str) -> Cells:
    """The properties of a chart table, and its cells as ``prefix.row.column``."""
    rows = ((f"{prefix}.{at}", row) for at, row in enumerate(rows_of(table)))
    return {**table.get("p", {}), **{f"{row}.{column}": value for row, of in rows for column, value in of.items()}}


def known(value: float) -> float | None:
    """A number, None for NaN."""
    return None if math.isnan(value) else float(value)


def times(value: float, factor: float) -> float | None:
    """A number in another unit, None for NaN."""
    return None if math.isnan(value) else float(value) * factor


def bandwidth(bytes_per_second: float) -> float | None:
    """XProf's tables speak of GiB/s."""
    return times(bytes_per_second, 1 / GIB)


def bound(rates: Rates, row: int) -> str:
    """What bounds a row, in XProf's letters."""
    ours = rates.bound_name(row)
    return next((theirs for theirs in _BOUNDS if theirs.lower() == ours.lower()), ours)


def time_cells(ops: OpTable | FrameworkOpsPage, row: int) -> Cells:
    """Occurrences, and times in microseconds."""
    total, own, count = int(ops.total_ps[row]), int(ops.self_ps[row]), int(ops.occurrences[row])
    return {
        "occurrences": count,
        "total_time": total / US,
        "avg_time": total / US / count,
        "total_self_time": own / US,
        "avg_self_time": own / US / count,
    }


def stall_cell(table: OpTable, row: int) -> float | None:
    """The share of an op's time that it waited for DMA."""
    return times(table.dma_stall_ps[row], 1 / max(int(table.total_ps[row]), 1))


def work_cells(rates: Rates, row: int) -> Cells:
    """What work was done how fast, and what bounds it."""
    return {
        "measured_flop_rate": times(rates.flops_per_second[row], 1e-9),
        "model_flop_rate": times(rates.model_flops_per_second[row], 1e-9),
        "measured_memory_bw": bandwidth(rates.bytes_per_second[row]),
        "operational_intensity": known(rates.operational_intensity[row]),
        "bound_by": bound(rates, row),
    }


def source_cells(table: OpTable) -> list[str]:
    """The HTML that XProf makes of each op's source line and its stack, from our texts."""
    return [
        f"<div class='source-info-cell' title='{_escaped(stack)}'>{_escaped(source)}</div>" if source else ""
        for source, stack in zip(table.texts("source"), table.texts("source_stack"), strict=True)
    ]


def _escaped(text: str) -> str:
    return html.escape(text).replace("&#x27;", "&#39;")


def keyed(names: Iterable[str]) -> list[str]:
    """Names made distinct: the second of a name gets ``#2``."""
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return out


def by_key(rows: Sequence[Cells], template: str) -> dict[str, Cells]:
    """Rows by a key made of their cells, ``{program_id}/{operation}``."""
    return dict(zip(keyed(map(template.format_map, rows)), rows, strict=True))


def flat(rows: Mapping[str, Mapping[str, Value]]) -> Cells:
    """Rows as fields: ``row: column``."""
    return {f"{key}: {column}": value for key, row in rows.items() for column, value in row.items()}


def absent(theirs: Mapping[str, Value], ours: Mapping[str, Value]) -> dict[str, Difference]:
    """Zeros of XProf's for what the profile does not record: None in our pages."""
    return {
        key: Difference(None, ABSENT)
        for key, value in theirs.items()
        if key in ours and value == 0 and ours[key] is None
    }


def as_measured(page: OpsPage) -> OpsPage:
    """The page in times as measured, which XProf scales to the nominal clock on its op profile alone."""
    table = replace(page.table, normalized_ps=page.table.total_ps.astype(np.float64))
    return replace(page, table=table, rates=table_rates(table, page.peaks), time_scale=None)


def with_hosts_bytes(page: OpsPage) -> OpsPage:
    """The page with the bytes of ops that move none to or from the device's memories as HBM's."""
    traffic, moved = page.table.traffic.copy(), page.table.bytes_accessed
    rows = (traffic == 0).all(axis=1) & (moved > 0)
    traffic[rows, TRAFFIC.index("hbm")] = moved[rows]
    return replace(page, table=replace(page.table, traffic=traffic))


def explained(theirs: Cells, ours: Cells, rule: Cells, why: str = RULES) -> dict[str, Difference]:
    """Fields in which XProf says what its rules give, and not what we say."""
    return {
        key: Difference(ours[key], why)
        for key, value in rule.items()
        if key in theirs and key in ours and same(theirs[key], value) and not same(theirs[key], ours[key])
    }


def tied(rows: Mapping[str, Cells]) -> dict[str, Difference]:
    """The ranks of rows that another one equals in self time."""
    count = Counter(row["total_self_time"] for row in rows.values())
    return {
        f"{key}: rank": Difference(row["rank"], TIED) for key, row in rows.items() if count[row["total_self_time"]] > 1
    }


def columns(theirs: Iterable[str], names: Sequence[str], difference: Difference) -> dict[str, Difference]:
    """One statement for a column of all rows."""
    return {key: difference for key in theirs if key.rpartition(": ")[2] in names}


def outcome(
    theirs: Mapping[str, Value], ours: Mapping[str, Value], differences: Mapping[str, Difference]
) -> Comparison:
    """Compares, and calls rows that only our page has unexplained."""
    result = compare(theirs, ours, differences)
    result.unexplained += [f"{key}: only ours, {ours[key]!r}" for key in ours if key not in theirs]
    return result
