"""What the colours of the uses of FLOPS and HBM say."""

from __future__ import annotations

import numpy as np
import pytest

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.roofline import WORK_COUNT, rates
from tpuprof.tui.draw.spans import StyleKey
from tpuprof.tui.pages.ops.fields.common import roof_style

PEAKS = Peaks(flops_per_second=1e12, hbm=1e12)
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
    of = rates(work, SECOND, SECOND, PEAKS)
    assert (roof_style(of, 0, "compute", kind), roof_style(of, 0, "HBM", kind)) == (of_flops, of_hbm)
