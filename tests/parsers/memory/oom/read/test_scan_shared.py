"""Real out-of-memory texts, with what a careful reader finds in them."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.parsers.memory.oom.read.mutations import STYLES
from tpuprof.parsers.memory.oom.model import OomReport
from tpuprof.parsers.memory.oom.read.scan import scan_log

pytestmark = pytest.mark.shared

GIB, MIB = 1024**3, 1024**2


def gib(value: float) -> int:
    """Bytes of a printed number of GiB."""
    return round(value * GIB)


def mib(value: float) -> int:
    """Bytes of a printed number of MiB."""
    return round(value * MIB)


def reports(shared: Path, name: str) -> tuple[OomReport, ...]:
    """The errors of an example."""
    with (shared / "oom" / name).open("rb") as stream:
        log = scan_log(stream)
    assert log.notes == ()
    assert log.bytes_read == (shared / "oom" / name).stat().st_size
    return log.reports


def bare(report: OomReport) -> OomReport:
    """The report without buffers and reasons."""
    return replace(report, buffers=(), unknown={})


def compile_error(memory_space: str, sentence: str, at_line: int = 1, **figures: Any) -> OomReport:
    return OomReport(kind="compile", memory_space=memory_space, sentence=sentence, at_line=at_line, **figures)


def test_tf1_detection(shared: Path) -> None:
    (report,) = reports(shared, "01_tf1_tpuv3_detection_resnet152_au2018.txt")
    assert bare(report) == compile_error(
        "hbm",
        "Ran out of memory in memory space hbm. Used 17.60G of 16.00G hbm. Exceeded hbm capacity by 1.60G.",
        at_line=3,
        used_bytes=gib(17.6),
        capacity_bytes=gib(16),
        exceeded_bytes=gib(1.6),
        reserved_bytes=mib(528),
        program_bytes=gib(17.08),
        global_bytes=980 * 1024,
        scoped_bytes=mib(5.41),
        hlo_temp_bytes=gib(17.08),
        # of f32[4,128,128,9,18], bf16[4,512,512,64] twice, f32[4,256,256,64]
        padding_bytes=512 * MIB - 42467328 + 2 * 128 * MIB + 64 * MIB,
        utilization=0.928,
        fragmentation=0.003,
        fragmentation_bytes=mib(53.61),
    )
    assert len(report.buffers) == 20
    assert sum(each.size_bytes for each in report.buffers) == (512 + 8 * 256 + 11 * 128) * MIB
    first = report.buffers[0]
    assert (first.name, first.opcode, first.category) == ("fusion.1668", "fusion", "temporary")
    assert (first.shape, first.size_bytes) == ("f32[4,128,128,9,18]{4,3,0,2,1:T(8,128)}", 512 * MIB)
    assert (first.unpadded_bytes, first.padding_bytes) == (42467328, 494403584)
    assert (first.framework_op, first.operator, first.source) == ("one_hot", "OneHot", None)
    assert (first.allocation_type, first.tag) == ("HLO temp", None)
    assert first.label is not None
    assert first.label.endswith('metadata={op_type="OneHot" op_name="one_hot"}')
    assert [each.opcode for each in report.buffers].count("reduce-window") == 15
    second = report.buffers[1]
    assert (second.name, second.opcode, second.framework_op) == ("fusion.20231", "fusion", None)
    assert report.unknown["arguments_bytes"] == report.unknown["output_bytes"]
    assert "says that it is unknown" in report.unknown["arguments_bytes"]


def test_activations_of_a_transformer(shared: Path) -> None:
    (report,) = reports(shared, "compile_libtpu0017_v5e_activations_transformer.txt")
    assert bare(report) == compile_error(
        "hbm",
        "Ran out of memory in memory space hbm. Used 27.81G of 15.75G hbm. Exceeded hbm capacity by 12.06G.",
        program="jit_transformer_train_step",
        used_bytes=gib(27.81),
        capacity_bytes=gib(15.75),
        exceeded_bytes=gib(12.06),
        reserved_bytes=mib(258),
        program_bytes=gib(27.81),
        arguments_bytes=0,
        output_bytes=0,
        shared_bytes=0,
        global_bytes=mib(1.53),
        hlo_temp_bytes=gib(27.81),
        unpadded_bytes=gib(27.55),
        # the two totals are printed alike; the two logits have 64 x 16000 elements of padding each
        padding_bytes=64 * 16000 * (4 + 2),
        utilization=1.0,
        fragmentation=0.009,
        fragmentation_bytes=mib(259.92),
    )
    assert len(report.buffers) == 20
    first = report.buffers[0]
    assert (first.name, first.size_bytes, first.unpadded_bytes) == (
        "fusion.35",
        64 * 2048 * 16000 * 4,
        64 * 2047 * 16000 * 4,
    )
    assert first.source == "train/models.py:64"
    assert first.framework_op == "jit(transformer_train_step)/jit(main)/jvp(jit(log_softmax))/sub"
    fifth = report.buffers[4]
    assert (fifth.name, fifth.size_bytes) == ("fusion.729.remat", 64 * 2048 * 16000 * 2)
    assert fifth.unpadded_bytes == 64 * 2047 * 16000 * 2
    assert [each.opcode for each in report.buffers].count("all-reduce") == 4


def test_params_and_adam(shared: Path) -> None:
    (report,) = reports(shared, "compile_libtpu0017_v5e_params_adam_scan.txt")
    assert (report.used_bytes, report.capacity_bytes) == (gib(38.13), gib(15.75))
    assert (report.unpadded_bytes, report.padding_bytes) == (gib(37.03), 448)
    assert (report.fragmentation, report.fragmentation_bytes) == (0.029, gib(1.1))
    assert (report.global_bytes, report.program) == (round(544.5 * 1024), "jit_transformer_train_step")
    assert [each.size_bytes for each in report.buffers[:13]] == [n * GIB for n in (8, 8, 4, 4, 2, 2, 2, 2, *[1] * 5)]
    constant = next(each for each in report.buffers if each.category == "constant")
    assert (constant.name, constant.opcode) == ("deduplicated constant", None)
    assert (constant.size_bytes, constant.unpadded_bytes, constant.allocation_type) == (512, 64, "global")
    pair = next(each for each in report.buffers if each.name == "copy-start.14")
    assert (pair.size_bytes, pair.opcode) == (512, "copy-start")
    assert pair.shape is not None
    assert pair.shape.startswith("(bf16[8,512,32,128]")
    assert not report.is_cut


def test_scoped_vmem(shared: Path) -> None:
    (report,) = reports(shared, "compile_libtpu0017_v5e_vmem_blocks.txt")
    assert bare(report) == compile_error(
        "vmem",
        "Ran out of memory in memory space vmem while allocating on stack for %shmap_body.2. Scoped"
        " allocation with size 128.00M and limit 16.00M exceeded scoped vmem limit by 112.00M.",
        program="jit__lambda_",
        used_bytes=128 * MIB,
        capacity_bytes=16 * MIB,
        exceeded_bytes=112 * MIB,
        scoped_bytes=128 * MIB,
    )
    (buffer,) = report.buffers
    assert (buffer.name, buffer.category, buffer.size_bytes) == ("shmap_body.2", "scoped", 128 * MIB)
    assert (buffer.opcode, buffer.source, buffer.shape) == ("custom-call", "train/oom_v2.py:38", None)


def test_vmem_windows_with_details_behind(shared: Path) -> None:
    (report,) = reports(shared, "compile_v5e_vmem_blocks.txt")
    assert bare(report) == compile_error(
        "vmem",
        "Ran out of memory in memory space vmem. Used 256.00M of 128.00M vmem. Exceeded vmem capacity by 128.00M.",
        program="jit__lambda_",
        used_bytes=256 * MIB,
        capacity_bytes=128 * MIB,
        exceeded_bytes=128 * MIB,
        program_bytes=256 * MIB,
        scoped_bytes=256 * MIB,
        padding_bytes=0,
    )
    assert [each.name for each in report.buffers] == ["big_block_kernel.1"] * 2
    tags = [each.tag or "" for each in report.buffers]
    assert tags[0].startswith("input window allocation for operator input 0. The window shape is f32[16384,1024],")
    assert tags[1].endswith("This allocation has 2 buffering levels.")
    assert {(each.category, each.shape, each.source) for each in report.buffers} == {
        ("scoped", "u8[134217728]{0}", None)
    }


@pytest.mark.parametrize(
    ("name", "space", "size", "limit", "instruction", "shape"),
    [
        ("libtpu0017_v5e_smem_scratch", "smem", 8 * MIB, MIB, "shmap_body.2", "s32[2097152]{0:T(1024)}"),
        ("v5e_vmem_scratch", "vmem", 160 * MIB, 128 * MIB, "scratch_kernel.1", "f32[40960,1024]{1,0:T(8,128)}"),
    ],
)
def test_scratch(shared: Path, name: str, space: str, size: int, limit: int, instruction: str, shape: str) -> None:
    (report,) = reports(shared, f"compile_{name}.txt")
    assert (report.memory_space, report.used_bytes, report.capacity_bytes) == (space, size, limit)
    assert report.exceeded_bytes == size - limit
    (buffer,) = report.buffers
    assert (buffer.name, buffer.shape, buffer.tag, buffer.category) == (instruction, shape, "scratch operand", "scoped")
    assert (buffer.size_bytes, buffer.unpadded_bytes) == (size, size)


@pytest.mark.parametrize(
    ("name", "used", "capacity"),
    [("compile_v5e_activations_scan.txt", 49.29, 15.75), ("compile_v6e_params_adam_scan.txt", 115.93, 31.25)],
)
def test_newest_short_form(shared: Path, name: str, used: float, capacity: float) -> None:
    (report,) = reports(shared, name)
    assert (report.kind, report.memory_space, report.is_cut, report.buffers) == ("compile", "hbm", False, ())
    assert (report.used_bytes, report.capacity_bytes) == (gib(used), gib(capacity))
    assert report.hlo_temp_bytes is report.arguments_bytes is None
    assert "arguments and temporaries together" in report.unknown["hlo_temp_bytes"]
    assert report.exceeded_bytes == gib(used) - gib(capacity)


def test_quotes_of_people(shared: Path) -> None:
    found = reports(shared, "02_jax_v6e_qwen3_wiki_blocks.txt")
    firsts = [(report.at_line, report.used_bytes, report.exceeded_bytes) for report in found]
    assert firsts == [
        (6, None, gib(13.5) - gib(7.48)),
        (9, gib(35.83), gib(4.59)),
        (17, mib(33.84), mib(1.84)),
        (24, gib(35.21), gib(3.96)),
        (37, gib(31.96), mib(736.97)),
        (53, gib(31.29), mib(46.98)),
        (58, gib(32.37), gib(1.12)),
        (63, gib(31.28), mib(37.55)),
        (68, gib(31.28), mib(33.24)),
        (73, gib(35.56), gib(4.32)),
        (80, gib(32.67), gib(1.42)),
        (88, gib(35.87), gib(4.62)),
        (94, gib(32.10), mib(876.30)),
        (100, gib(36.99), gib(5.74)),
        (105, gib(35.78), gib(4.54)),
        (110, gib(54.36), gib(23.11)),
        (115, gib(38.12), gib(6.87)),
    ]
    assert {report.count for report in found} == {1}
    load = found[0]
    assert (load.kind, load.program, load.requested_bytes) == ("load", "jit__identity_fn", gib(13.5))
    assert (load.free_bytes, load.reserved_bytes) == (gib(7.48), 0)
    assert (found[1].reserved_bytes, found[1].program_bytes, found[1].arguments_bytes) == (
        mib(260),
        gib(30.11),
        gib(5.72),
    )
    assert found[1].is_cut
    assert (found[2].memory_space, found[2].capacity_bytes) == ("vmem", mib(32))
    assert [each.name for each in found[2].buffers] == ["splash_mha_dkv_no_residuals.1"]
    assert (found[3].hlo_temp_bytes, found[3].arguments_bytes, found[3].is_cut) == (gib(29.46), gib(5.72), True)
    # its tables are quoted in a block of their own, behind a line with a file's name
    quoted = found[4]
    assert (quoted.program_bytes, quoted.hlo_temp_bytes) == (gib(26.24), gib(26.23))
    assert (quoted.fragmentation, quoted.fragmentation_bytes) == (0.566, gib(14.84))
    largest, repeated = quoted.buffers
    assert (largest.shape, largest.size_bytes, largest.opcode) == (
        "bf16[8192,151936]",
        8192 * 151936 * 2,
        "custom-call",
    )
    assert (repeated.shape, repeated.size_bytes) == ("bf16[4,2048,12288]", 192 * MIB)
    assert repeated.framework_op == "rematted_computation/mul"
    assert [report.program for report in found[9:12]] == ["jit_train_step"] * 3
    assert found[10].unknown["buffers"] == "the error's text gives no size for 2 of the allocations that it names"


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


@cache
def text_and_report(path: Path) -> tuple[str, OomReport]:
    """An example with one error, and that error."""
    text = path.read_text()
    (report,) = scan_log(io.BytesIO(text.encode())).reports
    return text, report


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", WHOLE)
def test_real_texts_read_the_same_however_they_are_printed(shared: Path, name: str, style: str) -> None:
    text, expected = text_and_report(shared / "oom" / name)
    (report,) = scan_log(io.BytesIO(STYLES[style](text))).reports
    assert replace(report, at_line=1) == replace(expected, at_line=1)
