"""Modules put together from the texts of a dump, against the proto that the compiler wrote beside them."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.files.dumps import STEM, TEXTS, dumped
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.formats.hlo.files import find_hlo_files, read_hlo_file
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.texts import read_texts
from tpuprof.parsers.memory.model import HBM, VMEM, Buffer, ModuleLabel, SpaceMemory
from tpuprof.parsers.memory.modules.space_memory import module_peaks, space_memory

LABEL = ModuleLabel("jit_train_step", None, "dump")
COLUMNS = ("heap_bytes", "heap_unpadded_bytes", "instructions", "live_ranges", "buffers")
"""What goes by points: what ends at one point of the schedule is freed in an order that the texts don't record."""


def memory_of(folder: Path) -> SpaceMemory:
    (file,) = find_hlo_files(str(folder))
    return space_memory(read_hlo_file(file), LABEL, HBM, None)


def told(space: SpaceMemory) -> list[tuple[object, ...]]:
    """All that is known of each buffer, but for its points, whether it has any, and what a loop fills it with: that is
    read off the uses of instructions, which texts do not say.
    """
    left_out = ("born", "dies")
    known = (space.buffers[row] for row in range(len(space.buffers)))
    rows = [
        row if row.slices is None else replace(row, framework_op=None, source=None, stack=(), slices=None)
        for row in known
    ]
    return sorted(
        (tuple(getattr(row, f.name) for f in fields(Buffer) if f.name not in left_out) for row in rows), key=str
    )


def test_texts_tell_what_the_proto_tells(tmp_path: Path) -> None:
    proto, texts = memory_of(dumped(tmp_path / "a", ".hlo.pb")), memory_of(dumped(tmp_path / "b", *TEXTS))
    for field in fields(SpaceMemory):
        if field.name not in COLUMNS:
            assert getattr(texts, field.name) == getattr(proto, field.name), field.name
    assert proto.peak_bytes == 278604 and proto.peak_instruction == "ynn_fusion"
    assert told(texts) == told(proto)
    assert sum(row.slices is not None for row in map(proto.buffers.__getitem__, range(len(proto.buffers)))) == 3
    assert all(row.slices is None for row in map(texts.buffers.__getitem__, range(len(texts.buffers))))
    assert any(row.stack for row in map(texts.buffers.__getitem__, range(len(texts.buffers))))
    assert texts.points == proto.points == 101
    assert sorted(texts.instructions) == sorted(proto.instructions)
    assert int(texts.heap_bytes.max()) == int(proto.heap_bytes.max())


def test_the_buffer_assignment_alone(tmp_path: Path) -> None:
    """Sizes, shapes and places stay; without live ranges the temporary allocation counts throughout, as it says."""
    proto = memory_of(dumped(tmp_path / "a", ".hlo.pb"))
    alone = memory_of(dumped(tmp_path / "b", "-buffer-assignment.txt"))
    for name in ("total_allocation_bytes", "arguments_bytes", "outputs_bytes", "constants_bytes", "thread_local_bytes"):
        assert getattr(alone, name) == getattr(proto, name), name
    assert alone.peak_bytes == alone.total_allocation_bytes
    assert alone.points == 1
    assert "there is no heap trace" in alone.warnings[0]
    assert "no heap trace" in alone.unknown["peak_instruction"]
    shapes = {row.name: row.shape for row in (alone.buffers[n] for n in range(len(alone.buffers)))}
    assert shapes["ws.1"] == "f32[4,64,64]{2,1,0}"
    assert shapes["tuple.9"] == "(f32[4,64,64]{2,1,0}, f32[])"


@pytest.mark.parametrize("end", [*TEXTS, "-memory-usage-report.txt"])
def test_any_text_of_the_stage_leads_to_the_one_that_tells_most(tmp_path: Path, end: str) -> None:
    (file,) = find_hlo_files(str(dumped(tmp_path, *TEXTS, "-memory-usage-report.txt") / f"{STEM}{end}"))
    assert file.path.endswith("-buffer-assignment.txt")
    assert file.name == "jit_train_step"


def test_a_proto_goes_before_texts(tmp_path: Path) -> None:
    (file,) = find_hlo_files(str(dumped(tmp_path, *TEXTS, ".hlo.pb")))
    assert file.path.endswith(".hlo.pb")


@pytest.mark.parametrize("end", [".txt", "-memory-usage-report.txt"])
def test_what_lacks_the_buffers_says_which_text_has_them(tmp_path: Path, end: str) -> None:
    (file,) = find_hlo_files(str(dumped(tmp_path, end)))
    with pytest.raises(ProfileError, match=r"-buffer-assignment\.txt would, and is not there") as caught:
        read_hlo_file(file)
    assert caught.value.code == "no_buffers"


OF_A_TPU = """BufferAssignment:
allocation 0: size 4096, color 1, preallocated-temp:
 value: <3 fusion.1 @1> (size=2048,offset=0): bf16[8,128]{1,0:T(8,128)(2,1)S(1)}
 value: <4 copy-start{0} @1> (size=2048,offset=2048): bf16[8,100]{1,0:T(8,128)(2,1)S(1)}
allocation 1: size 1024, parameter 2, shape |(f32[2], /*index=1*/bf16[4]{0})| at ShapeIndex {1}, maybe-live-out:
 value: <5 p{1} @0> (size=1024,offset=0): bf16[4]{0:T(1024)}

Total bytes used: 5120 (5.0KiB)

Used values:
<3 fusion.1 @1>
 from instruction: %fusion.1 = bf16[8,128]{1,0:T(8,128)(2,1)S(1)} fusion(%p), kind=kLoop, metadata={op_type="add" \
op_name="jit(f)/say \\"hi\\"/add" source_file="/a/train.py" source_line=7}, \
backend_config={"used_scoped_memory_configs":[{"memory_space":"1","offset":"0","size":"512"}]}
HloLiveRange (max 5):
  BufferLiveRange:
    fusion.1{}:1-3
    copy-start{0}:2-4
"""


def test_the_older_form_has_all_in_one_text() -> None:
    module = HloModule(read_texts("jit_f", OF_A_TPU.splitlines()))
    assert module.name == "jit_f"
    assert module_peaks(module, LABEL).peaks == {HBM: 1024, VMEM: 4096}
    vmem = space_memory(module, LABEL, VMEM, None)
    assert (vmem.scoped_bytes, vmem.scoped_instruction) == (512, "fusion.1")
    assert list(vmem.instructions) == ["fusion.1", "copy-start", "fusion.1", "copy-start"]
    assert vmem.heap_bytes.tolist() == [0, 2048, 4096, 2048, 0]
    first, second = vmem.buffers[0], vmem.buffers[1]
    assert (first.framework_op, first.source) == ('jit(f)/say "hi"/add', "/a/train.py:7")
    assert (first.opcode, first.shape) == ("fusion", "bf16[8,128]{1,0:T(8,128)(2,1)S(1)}")
    assert (second.name, second.unpadded_bytes, second.padding_bytes) == ("copy-start{0}", 1600, 448)
    hbm = space_memory(module, LABEL, HBM, None)
    assert (hbm.arguments_bytes, hbm.aliased_bytes) == (1024, 1024)
    assert hbm.buffers[0].name == "p{1}"


def test_numbers_that_cannot_be_true_change_nothing() -> None:
    lines = [
        f"allocation 0: size {'9' * 18}, preallocated-temp:",
        f" value: <1 a{{{'9' * 9}}} @0> (size=8,offset={'9' * 18}): f32[2]",
        " value: <1 a @0> (size=8,offset=0): f32[2]",
        " value: <2 b{0,0,0} @0> (size=8,offset=0): ((((f32[2",
        "    b{0,0,0}:9-1",
        "    a{}:1-2",
        "99 {file_name_id=1}",
        "FileLocations",
        "1 {file_name_id=999999999 line=3}",
        '  %a = f32[2] add(b), metadata={op_name=5 source_line="x" source_file="\\"}',
    ]
    assert np.all(space_memory(HloModule(read_texts("m", lines)), LABEL, HBM, None).heap_bytes >= 0)
