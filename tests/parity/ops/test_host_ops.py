"""Host rows of XProf 2.24.2's framework op page, with idle, against ours: every field but those of device rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parity.oracle.fields import Agrees, Difference, Value, compare
from tests.parity.oracle.golden import PROFILES, RUNS, files_of, golden_answer
from tests.parity.oracle.op_fields import host_ops_of, rows_of
from tpuprof.parsers.ops.host_events.ops import HostOps, merge_host_ops

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
    "synthetic-a": {f"0.{field}": Difference(None, NO_THREADS) for field in FIELDS}
}


@pytest.mark.shared
@pytest.mark.parametrize("name", RUNS)
def test_host_rows_are_xprofs_or_differ_for_a_reason(shared: Path, name: str, agrees: Agrees) -> None:
    table = golden_answer(shared, name, "framework_op_stats")[0]
    theirs = fields([row for row in rows_of(table) if row["host_or_device"] == "Host"])
    mine = our_rows(merge_host_ops([host_ops_of(path) for path in files_of(shared, name).values()]))
    specific = SPECIFIC.get(name, {})
    ours = fields(mine) or dict.fromkeys(specific)
    result = compare(theirs, ours, specific)
    assert result.unused_specific(specific) == []
    assert ours.keys() == theirs.keys()
    assert result.compared == len(theirs)
    agrees(result, "framework ops on the host")


@pytest.mark.shared
def test_ratio_of_infeed_enqueues_is_that_of_the_input_pipeline_page(shared: Path) -> None:
    # Five enqueues of 2 ms, 20 ms apart. XProf's page splits 10 ms of enqueue time by it into 90 ms of other input.
    page = golden_answer(shared, "synthetic-h1", "input_pipeline_analyzer")
    ours = host_ops_of(shared / PROFILES["synthetic-h1"])
    split = {key: float(value) for key, value in page[2]["p"].items()}
    assert ours.enqueue_ratio == pytest.approx(0.1, rel=1e-12)
    other = split["enqueue_us"] * (ours.enqueue_interval_ps / ours.enqueue_ps - 1)
    assert other == pytest.approx(sum(split.values()) - split["enqueue_us"], rel=1e-12)
