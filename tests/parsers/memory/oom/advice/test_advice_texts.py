"""What is said about real error texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tpuprof.parsers.memory.oom.advice.advice import advise
from tpuprof.parsers.memory.oom.advice.rule import FITS
from tpuprof.parsers.memory.oom.model import Advice, OomReport
from tpuprof.parsers.memory.oom.read.scan import scan_log
from tpuprof.parsers.memory.oom.triage import need_of_report

pytestmark = pytest.mark.shared


def reports(path: Path) -> tuple[OomReport, ...]:
    """The errors in a text."""
    with path.open("rb") as stream:
        return scan_log(stream).reports


def first_of(folder: Path, name: str) -> tuple[Advice, ...]:
    """Advice about the first error of a text."""
    return advise(need_of_report(reports(folder / "oom" / name)[0]))


def test_every_error_with_figures_gets_advice(shared: Path) -> None:
    seen = 0
    for path in sorted((shared / "oom").glob("*.txt")):
        for report in reports(path):
            if report.used_bytes is not None or report.requested_bytes is not None:
                found = advise(need_of_report(report))
                has_parts = report.hlo_temp_bytes or report.arguments_bytes or report.buffers
                assert found or (report.requested_bytes is None and not has_parts), path.name
                assert all(len(advice.sentence) < 200 for advice in found)
                seen += 1
    assert seen >= 20


def test_tensorflow(shared: Path) -> None:
    found = first_of(shared, "01_tf1_tpuv3_detection_resnet152_au2018.txt")
    assert [advice.kind for advice in found] == ["batch", "bf16", "remat", "padding", "padding"]
    assert found[3].sentence.startswith("12.6x padding of f32[4,128,128,9,18], tile (8,128)")


def test_kernels(shared: Path) -> None:
    for name in ("v5e_vmem_blocks", "v5e_vmem_scratch", "libtpu0017_v5e_smem_scratch", "libtpu0017_v5e_vmem_blocks"):
        found = first_of(shared, f"compile_{name}.txt")
        assert {advice.kind for advice in found} == {"scoped"}
        is_known = not name.endswith("0017_v5e_vmem_blocks")  # its text does not list the blocks
        assert (FITS in found[0].how) == is_known == (found[0].saving_bytes is not None)
