"""GPUs and the host's CPU on the screen and headless: kernels, ops, steps."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.support.app.scene import press, scene, shown
from tests.support.app.stage import check_golden, make_app, ops_tab
from tests.support.gpus import cpu_profile, gpu_profile, session_of
from tests.support.reports import printed
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.ops.framework_ops import FRAMEWORK_OPS
from tpuprof.parsers.pages.ops.kernels.gpu import kernels_page
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.pages.ops.fields.framework_ops import FrameworkOps
from tpuprof.tui.pages.ops.kernels.report import REPORT as KERNELS
from tpuprof.tui.pages.ops.report.framework_ops import REPORT as FRAMEWORK_OPS_REPORT
from tpuprof.tui.pages.ops.table_views import KernelView
from tpuprof.tui.pages.ops.view import HLO


def app_of(space: XSpace, folder: Path, options: AppOptions | None = None) -> TpuprofApp:
    return make_app(session_of(space, folder), options=options)


INSIDE = [("load_batch", 5, 30), ("PjitFunction(step)", 30, 40)]
ON_CPU = [("cublas-gemm.2", 40, 75), ("fusion.1", 75, 90)]


def dry_run() -> XSpace:
    return cpu_profile(4, INSIDE, ON_CPU, hlo=True)


@pytest.mark.parametrize(
    ("name", "made", "keys"),
    [
        ("gpu-kernels", gpu_profile, "3VVj"),
        ("overview-gpu", gpu_profile, ""),
        ("step-gpu", gpu_profile, ("l", "enter")),
        ("overview-cpu", dry_run, ""),
        ("ops-cpu", dry_run, "3vv"),
    ],
)
def test_frames_of_gpus_and_of_a_dry_run(
    name: str, made: Callable[[], XSpace], keys: Sequence[str], tmp_path: Path
) -> None:
    check_golden(f"{name}-80x24", shown(app_of(made(), tmp_path), keys, 80, 24))


async def test_launches_of_a_kernel_become_one_row_and_lead_to_their_op(tmp_path: Path) -> None:
    space = gpu_profile()
    line = space.planes[2].lines[0]
    details = next(key for key, stat in space.planes[2].stat_metadata.items() if stat.name == b"kernel_details")
    for stat in line.events[1].stats:
        if stat.metadata_id == details:
            stat.str_value = b"regs:32 static_shared:0 grid:2048,1,1 block:128,1,1 occ_pct:100"
    async with scene(app_of(space, tmp_path), ["3", "V", "V"]) as (app, pilot):
        view = ops_tab(app).view
        assert isinstance(view, KernelView)
        assert len(view.rows) == 4 and view.status() == "1 of 4"
        await press(pilot, "b")
        assert len(view.rows) == 5 and view.status() == "1 of 5, by shape"
        assert view.reverse().startswith("sorted by ")
        view.search("tanh")
        assert len(view.rows) == 1 and view.selection == "wrapped_tanh"
        await press(pilot, "b", "o")
        assert ops_tab(app).view is not view and ops_tab(app).at == HLO
        assert ops_tab(app).selection == "wrapped_tanh"
        view.show_op(0)
        assert view.selection is not None


def test_a_profile_without_gpus_says_why_it_has_no_kernels(tmp_path: Path) -> None:
    session = session_of(cpu_profile(2, INSIDE, ON_CPU), tmp_path)
    page = json.loads(printed(KERNELS, kernels_page(session.page(OPS)), session.run, "json"))
    assert page["kernels"] == [] and "no GPU is in this profile" in page["unknown"]["kernel_time_ps"]
    source = FrameworkOps(session.page(FRAMEWORK_OPS), session.page(OPS))
    ops = json.loads(printed(FRAMEWORK_OPS_REPORT, source, session.run, "json"))
    assert {op["side"] for op in ops["ops"]} == {"host"}
