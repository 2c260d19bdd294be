"""The figures above the roofline: what has no point, and why."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.build import PlaneBuilder, StatInput
from tests.support.made.op_pages import HBM, PEAKS, READ, traffic
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.roofline import WORK_COUNT, rates
from tpuprof.parsers.pages.ops.ops import ops_page
from tpuprof.parsers.pages.ops.roofline import roofline_page
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import BLOCK, StyleKey, plain
from tpuprof.tui.pages.ops.details.roofline import metrics
from tpuprof.tui.pages.ops.fields.common import roof_style

COPY: dict[str, StatInput] = {"hlo_category": "copy", "bytes_accessed": 500}
BROKEN_DOWN: dict[str, StatInput] = {
    "hlo_category": "loop fusion",
    "flops": 10_000,
    "memory_access_breakdown": traffic((READ, HBM, 500)),
}
WHOLE: dict[str, StatInput] = {"hlo_category": "loop fusion", "flops": 10_000, "bytes_accessed": 500}
WITHOUT_BYTES: dict[str, StatInput] = {"hlo_category": "loop fusion", "flops": 10_000}
SLOW: dict[str, StatInput] = {"hlo_category": "loop fusion", "flops": 1, "bytes_accessed": 1}


def words(*ops: dict[str, StatInput]) -> str:
    """The figures over ops of 1 µs each."""
    space = XSpace()
    plane = PlaneBuilder(space, "/device:TPU:0", 1)
    for name, value in PEAKS.items():
        plane.stat(name, value)
    line = plane.line("XLA Ops")
    for at, stats in enumerate(ops):
        plane.event(line, plane.event_id(f"%op.{at} = f32[8] op()", f"op.{at}", **stats), at * 10**6, 10**6)
    host = summarise(Trace.from_bytes(space.SerializeToString()), "host0")
    page = roofline_page(ops_page([host]), [host])
    assert np.isfinite(page.ops.table.hbm_bytes).tolist() == [stats is not WITHOUT_BYTES for stats in ops], (
        "all bytes are HBM's where they are not broken down"
    )
    return "\n".join(plain(line) for line in metrics(page, Pen(200, BLOCK)))


def test_ops_with_flops_and_bytes_of_any_kind_have_a_point() -> None:
    assert "not plotted" not in words(WHOLE, BROKEN_DOWN)


def test_what_keeps_an_op_off_the_plot_is_named() -> None:
    said = words(COPY, WHOLE, WITHOUT_BYTES, SLOW)
    assert "not plotted: 1 without FLOPs (25.0%), 1 without bytes (25.0%), 1 below 100 MFLOP/s (25.0%)" in said


# --- colours

ROOFS = Peaks(flops_per_second=1e12, hbm=1e12)
SECOND = np.array([1e12])


@pytest.mark.parametrize(
    ("flops", "hbm", "kind", "of_flops", "of_hbm"),
    [
        (0.9, 0.2, "compute", "good", "text"),
        (0.5, 0.2, "compute", "warn", "text"),
        (0.1, 0.05, "compute", "bad", "text"),
        (0.001, 0.9, "copy", "text", "good"),  # a copy needs no FLOPS
        (0.001, 0.1, "copy", "text", "bad"),
        (0.0, 0.07, "collective", "text", "text"),  # nothing of the network is known here
        (1.2, 0.1, "compute", "dim", "dim"),  # more than the device can do
        (np.nan, np.nan, "unknown", "dim", "dim"),
    ],
)
def test_the_resource_that_bounds_an_op_alone_has_a_colour(
    flops: float, hbm: float, kind: OpClass, of_flops: StyleKey, of_hbm: StyleKey
) -> None:
    work = np.full((1, WORK_COUNT), np.nan)
    work[0, 0], work[0, 3] = flops * 1e12, hbm * 1e12
    of = rates(work, SECOND, SECOND, ROOFS)
    assert (roof_style(of, 0, "compute", kind), roof_style(of, 0, "HBM", kind)) == (of_flops, of_hbm)
