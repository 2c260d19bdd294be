"""Kernels of TPUs: the report in every format, one kernel, those by the size of their blocks, and the view."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from tests.parsers.pages.ops.kernels.made import FLOPS, SPEC
from tests.support.app.scene import Scene, after, app_over, press, scene
from tests.support.app.stage import check_cells, check_golden, frame, ops_tab, settled
from tests.support.build import session_at, write_run
from tests.support.files.kernels import TARGET, US, KernelRun, with_kernels
from tests.support.reports import check_report
from tests.tui.cli.calls import Call
from tests.tui.report.test_reports import LOOK, run_of
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE
from tpuprof.parsers.pages.counters.page import COUNTERS
from tpuprof.parsers.pages.ops.kernels.page import CALLS_OF_HOST
from tpuprof.parsers.pages.ops.kernels.tpu import TpuKernelsPage, tpu_kernels_page
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.pages.ops.kernels.report import REPORT

GOLDEN = Path(__file__).parent / "golden"
RUN = KernelRun(steps=16, wait_y_ps=3 * US, body_ps=900_000, flops=FLOPS // 8)


def tuned(size: int, wait_ps: int) -> KernelRun:
    """A kernel in blocks of some size, each in a program of its own."""
    name = f"mm-bm_{size}-bk_512-"
    return replace(
        RUN, op=f"{name}.1", framework_op=f"jit(tune)/{name}/pallas_call", program=size, wait_y_ps=wait_ps, flops=None
    )


PAGED = KernelRun(
    op="RPA-bq_32-bkvp_64-.3",
    framework_op="jit(step)/jit(ragged_paged_attention)/RPA-bq_32-bkvp_64-/pallas_call",
    text=f"bf16[64,128]{{1,0}} custom-call(s32[256]{{0}} %p, bf16[7007,64]{{1,0}} %kv){TARGET}",
    body_ps=5 * US,
    runs=2,
)
VARIED = (RUN, tuned(128, 5 * US), tuned(512, 1 * US), tuned(256, 3 * US), PAGED)


def made(name: str, folder: Path) -> TpuKernelsPage:
    """A page: of several kernels, of one with its module, without spans, or without kernels."""
    runs = {"varied": VARIED, "module": (RUN,), "untraced": (RUN, PAGED), "none": ()}[name]
    session = session_at(write_run(folder, host0=with_kernels(runs, is_traced=name != "untraced")))
    calls = chain.from_iterable(summary.calls for summary in session.reduced(CALLS_OF_HOST).summaries)
    spec = SPEC if name == "module" else None
    counters = session.page(COUNTERS)
    return tpu_kernels_page(session.page(OPS), list(calls), counters.kernels, lambda _, __: spec)


@pytest.mark.parametrize("name", ["varied", "module", "untraced", "none"])
def test_every_page_is_as_it_was_and_keeps_the_contract(name: str, tmp_path: Path) -> None:
    page = made(name, tmp_path)
    check_report(REPORT, "kernels", page, run_of(page.hosts), GOLDEN / f"kernels-tpu_{name}", {"": LOOK})


def test_one_kernel_by_its_name_and_by_that_of_a_call(call: Call, tmp_path: Path) -> None:
    write_run(tmp_path, host0=with_kernels(VARIED))
    for name in ("ragged_paged_attention", "RPA-bq_32-bkvp_64-.3"):
        document = json.loads(call("report", "kernels", str(tmp_path), "--op", name, "--format", "json").out)
        assert [row["kernel"] for row in document["calls"]] == ["ragged_paged_attention"]
        assert {row["op"] for row in document["spans"]} == {"RPA-bq_32-bkvp_64-.3"}


def test_an_unknown_kernel_names_those_there_are(call: Call, tmp_path: Path) -> None:
    write_run(tmp_path, host0=with_kernels(VARIED))
    found = call("report", "kernels", str(tmp_path), "--op", "paged_attention", code=EXIT_NOT_FOUND)
    assert "ragged_paged_attention" in found.err


def test_csv_of_block_sizes_has_the_fastest_first(call: Call, tmp_path: Path) -> None:
    write_run(tmp_path, host0=with_kernels(VARIED))
    found = call("report", "kernels", str(tmp_path), "--by", "blocks", "--format", "csv")
    head, *rows = found.out.splitlines()
    assert head.startswith("place,slower_percent,why,kernel,block_sizes")
    assert [row.split(",")[0] for row in rows] == ["1", "2", "3"]
    assert ",waits for copies in 32.0 µs longer," in rows[1]
    refused = call("report", "kernels", str(tmp_path), "--by", "op", code=EXIT_USAGE)
    assert "there is shape, blocks" in refused.err


def on_kernels(folder: Path, size: tuple[int, int], options: AppOptions | None = None) -> Scene:
    """A scene over kernels, in their view."""
    (folder / "host0.xplane.pb").write_bytes(with_kernels(VARIED))
    return scene(app_over(folder, options), "3vvvv", *size)


async def test_the_view(tmp_path: Path) -> None:
    async with on_kernels(tmp_path, (80, 24)) as (app, pilot):
        await settled(pilot)
        check_golden("kernels-tpu-80x24", frame(app))
        check_cells(app)
        assert ops_tab(app).selection == "mm-bm_128-bk_512-.1"


async def test_by_block_size_and_back(tmp_path: Path) -> None:
    async with on_kernels(tmp_path, (120, 40)) as (app, pilot):
        text = await after(pilot, "b")
        assert text.index("bm 512") < text.index("bm 256") < text.index("bm 128")
        check_golden("kernels-tpu-sizes-120x40", text)
        await press(pilot, "b")
        assert ops_tab(app).selection == "mm-bm_128-bk_512-.1"
        ops_tab(app).go_to("kernels", "matmul")
        assert ops_tab(app).selection == "matmul.1"


async def test_o_on_a_finding_about_a_kernel_leads_to_it_in_the_view_of_kernels(tmp_path: Path) -> None:
    (tmp_path / "host0.xplane.pb").write_bytes(with_kernels(VARIED))
    async with scene(app_over(tmp_path), ["j", "o"], 120, 40) as (app, pilot):
        await settled(pilot)
        assert "[Kernels]" in frame(app) and ops_tab(app).selection == "mm-bm_128-bk_512-.1"


def test_the_command_of_a_finding_about_a_kernel_shows_that_kernel(call: Call, tmp_path: Path) -> None:
    write_run(tmp_path, host0=with_kernels(VARIED))
    found = json.loads(call("report", "findings", str(tmp_path), "--format", "json").out)["findings"]
    (command,) = [each["next"] for each in found if each["kind"] == "kernel-wait"]
    _, *words = shlex.split(command)
    assert words[:2] == ["report", "kernels"]
    document = json.loads(call(*words, "--format", "json").out)
    assert [row["op"] for row in document["calls"]] == ["mm-bm_128-bk_512-.1"]
