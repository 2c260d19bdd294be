"""Real out-of-memory texts, whose reports `tests/parity/fence` has, are read alike however they are printed."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from tests.parsers.memory.oom.read.mutations import STYLES
from tpuprof.parsers.memory.oom.read.scan import scan_log

pytestmark = pytest.mark.shared

WHOLE = (
    "01_tf1_tpuv3_detection_resnet152_au2018.txt",
    "compile_libtpu0017_v5e_activations_transformer.txt",
    "compile_libtpu0017_v5e_params_adam_scan.txt",
    "compile_libtpu0017_v5e_smem_scratch.txt",
    "compile_libtpu0017_v5e_vmem_blocks.txt",
    "compile_v5e_activations_scan.txt",
    "compile_v5e_vmem_blocks.txt",
    "compile_v5e_vmem_scratch.txt",
    "compile_v6e_params_adam_scan.txt",
)


@pytest.mark.parametrize("name", WHOLE)
def test_real_texts_read_the_same_however_they_are_printed(shared: Path, name: str) -> None:
    text = (shared / "oom" / name).read_text()
    (expected,) = scan_log(io.BytesIO(text.encode())).reports
    for style, printed in STYLES.items():
        (report,) = scan_log(io.BytesIO(printed(text))).reports
        assert replace(report, at_line=1) == replace(expected, at_line=1), style
