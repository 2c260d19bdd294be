"""Host rows of XProf 2.24.2's framework op page, with idle, against ours: every field but those of device rows."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.parity.fields import Difference, Value, compare
from tpuprof.parsers.host_ops import HostOps, host_ops
from tpuprof.parsers.xspace.trace import Trace

PROFILES = {
    "synthetic-a": ("golden/synthetic-a/host0.xplane.pb", 1),
    "synthetic-b": ("golden/synthetic-b/host0.xplane.pb", 0),
    "synthetic-c": ("golden/synthetic-c/host0.xplane.pb", 0),
    "synthetic-h1": ("golden/synthetic-h1/host0.xplane.pb", 6),
    "tpu-v6e-inference": ("profiles/tpu-v6e-inference/plugins/profile/run/host0.xplane.pb", 2),
}
"""File of each profile, and the host rows in XProf's table."""

IDLE = "IDLE"
FIELDS = (
    "operation",
    "type",
    "occurrences",
    "total_time",
    "avg_time",
    "total_self_time",
    "avg_self_time",
    "host_total_self_time_percent",
    "Host_cumulative_total_self_time_percent",
    "eager",
)

NO_THREADS = "XProf has an idle row of 0 for a host plane whose threads ran no op"


def xprof_rows(path: Path) -> list[dict[str, Value]]:
    raw = path.read_bytes()
    table: Any = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)[0]
    columns = [column["id"] for column in table["cols"]]
    rows = [dict(zip(columns, (cell["v"] for cell in row["c"]), strict=True)) for row in table["rows"]]
    return [row for row in rows if row["host_or_device"] == "Host"]


def our_rows(ops: HostOps) -> list[dict[str, Value]]:
    """The same fields out of ours, with the idle row where there are threads to be idle."""
    rows: list[tuple[str, str, int, int, int, bool]] = list(
        zip(
            ops.name,
            ops.type,
            ops.occurrences.tolist(),
            ops.total_ps.tolist(),
            ops.self_ps.tolist(),
            ops.is_eager.tolist(),
            strict=True,
        )
    )
    if ops.threads:
        rows.append((IDLE, IDLE, 0, ops.idle_ps, ops.idle_ps, False))
    found: list[dict[str, Value]] = []
    cumulative = 0
    for name, kind, count, total, self_ps, eager in sorted(rows, key=lambda row: (-row[4], row[0])):
        cumulative += self_ps
        values: tuple[Value, ...] = (
            name,
            kind,
            count,
            total / 1e6,
            total / 1e6 / count if count else 0,
            self_ps / 1e6,
            self_ps / 1e6 / count if count else 0,
            self_ps / ops.whole_ps,
            cumulative / ops.whole_ps,
            "Eager" if eager else "Function",
        )
        found.append(dict(zip(FIELDS, values, strict=True)))
    return found


def fields(rows: list[dict[str, Value]]) -> dict[str, Value]:
    """Flat: ``0.operation``, ``0.type``, … in order of the table."""
    return {f"{at}.{field}": row[field] for at, row in enumerate(rows) for field in FIELDS}


SPECIFIC: dict[str, dict[str, Difference]] = {
    "synthetic-a": {f"0.{field}": Difference(None, NO_THREADS) for field in FIELDS},
}


@pytest.mark.shared
@pytest.mark.parametrize("name", PROFILES)
def test_host_rows_are_xprofs_or_differ_for_a_reason(
    shared: Path, name: str, record_property: Callable[[str, object], None]
) -> None:
    path, count = PROFILES[name]
    file = shared / "golden" / name / "framework_op_stats.json"
    theirs = fields(xprof_rows(file if file.exists() else file.with_suffix(".json.gz")))
    mine = our_rows(host_ops(Trace.open(str(shared / path))))
    specific = SPECIFIC.get(name, {})
    ours = fields(mine) or dict.fromkeys(specific)
    result = compare(theirs, ours, specific)
    assert result.unexplained == []
    assert result.unused_specific(specific) == []
    assert ours.keys() == theirs.keys()
    assert result.compared == len(theirs) == count * len(FIELDS)
    record_property("parity", ("framework ops on the host", result.compared, result.equal, result.explained))


@pytest.mark.shared
def test_ratio_of_infeed_enqueues_is_that_of_the_input_pipeline_page(shared: Path) -> None:
    # Five enqueues of 2 ms, 20 ms apart. XProf's page splits 10 ms of enqueue time by it into 90 ms of other input.
    file = shared / "golden" / "synthetic-h1" / "input_pipeline_analyzer.json"
    page: Any = json.loads(file.read_bytes())
    ours = host_ops(Trace.open(str(shared / PROFILES["synthetic-h1"][0])))
    split = {key: float(value) for key, value in page[2]["p"].items()}
    assert ours.enqueue_ratio == pytest.approx(0.1, rel=1e-12)
    other = split["enqueue_us"] * (ours.enqueue_interval_ps / ours.enqueue_ps - 1)
    assert other == pytest.approx(sum(split.values()) - split["enqueue_us"], rel=1e-12)
