"""The quantities of the program and its steps under the roofline."""

from __future__ import annotations

from tpuprof.parsers.ops.roofline import WORK
from tpuprof.parsers.pages.ops.roofline import RooflinePoints
from tpuprof.tui.pages.ops.fields.common import (
    NO_BYTES,
    NO_FLOPS,
    NO_TIME,
    PEOPLES_RATES,
    WORK_RATES,
    picked,
    rate_fields,
)
from tpuprof.tui.report.fields import Field, Table
from tpuprof.tui.report.units import TEXT, TIME_PS, WHOLE


def _point_work(key: str, column: str, meaning: str, null: str) -> Field[RooflinePoints]:
    return Field(key, WHOLE, lambda points, rows: points.work[rows, WORK.index(column)], meaning, null)


_POINT_JSON = (
    "name",
    "total_time_ps",
    "flops",
    "bytes_accessed",
    "hbm_bytes",
    *WORK_RATES,
    "hbm_gigabytes_per_second",
)

ROOFLINE_POINTS: Table[RooflinePoints] = Table(
    "steps",
    (
        Field("name", TEXT, lambda points, rows: picked(points.name, rows), "the program, or the step's name"),
        Field(
            "total_time_ps",
            TIME_PS,
            lambda points, rows: [time or None for time in points.total_ps[rows].tolist()],
            "time over all cores",
            null=NO_TIME,
            heading="time over all cores",
        ),
        _point_work("flops", "flops", "FLOPs of all its ops", NO_FLOPS),
        _point_work("bytes_accessed", "bytes_accessed", "bytes that its ops read and write in all memories", NO_BYTES),
        _point_work("hbm_bytes", "hbm", "bytes that its ops read from and write to HBM", NO_BYTES),
        *rate_fields(lambda points: points.rates),
    ),
    len,
    json=_POINT_JSON,
    markdown=("name", "total_time_ps", *PEOPLES_RATES),
    places=("program", "average_step", "steps[]"),
)
