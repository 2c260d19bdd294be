"""The memory page: modules of hosts and files, each once; what is missing; which capacity counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.demo.profile.hlo_module import Module
from tests.support.build import PlaneBuilder, session_at, tpu_plane, trace_of
from tests.support.made.compiled import add_modules, compiled_modules, demo_modules, memory_over_time
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, Cancelled, ProfileError
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.memory.model import HBM, VMEM, Capacity, ModuleLabel
from tpuprof.parsers.pages.memory.compiled import (
    CompiledModules,
    ModuleSource,
    files_in_run,
    first_space,
    reported_capacity,
)
from tpuprof.parsers.pages.memory.key import MEMORY

TRAIN = "jit_train_step(1)"


def test_modules_are_found_by_name_and_id() -> None:
    compiled = compiled_modules()
    assert compiled.find("jit_train_step") == compiled.find(TRAIN) == ModuleLabel("jit_train_step", 1, "host0")
    with pytest.raises(ProfileError, match="no module jit_step") as raised:
        compiled.find("jit_step")
    assert raised.value.exit_code == EXIT_NOT_FOUND
    assert TRAIN in raised.value.hint


def test_a_damaged_module_comes_last_and_says_why() -> None:
    space = XSpace()
    add_modules(space, jit_bad=b"\xff\xff\xff", jit_eval_step=Module("jit_eval_step").proto_bytes)
    compiled = CompiledModules([ModuleSource.of(trace_of(space), "host0")])
    page = compiled.page()
    assert [module.module.name for module in page.modules] == ["jit_eval_step", "jit_bad"]
    assert page.modules[1].problem == (
        "The compiled HLO of jit_bad is damaged: its 3 bytes do not read as an HloProto."
    )
    with pytest.raises(ProfileError, match="jit_bad is damaged"):
        compiled.space(page.modules[1].module, HBM)


def test_memory_of_the_host_is_not_called_a_device_s() -> None:
    space = XSpace()
    add_modules(space, jit_f=Module("jit_eval_step").proto_bytes)
    PlaneBuilder(space, "/host:CPU", 3)
    source = ModuleSource.of(trace_of(space), "host0")
    assert source.platform == "CPU"
    asked: list[int] = []

    def reported() -> Capacity:
        asked.append(1)
        return Capacity(1, "never")

    compiled = CompiledModules([source], reported)
    assert compiled.page().warnings == ("host0 has no device: its modules use the host's memory",)
    space_of_host = compiled.space(compiled.find("jit_f"), HBM)
    assert space_of_host.capacity is None
    assert space_of_host.name == "host memory"
    assert not asked, "no device, no allocator to ask"


def test_the_device_s_type_tells_the_capacity_and_else_its_allocator() -> None:
    said = Capacity(8 << 30, "reported by the allocator")
    known = CompiledModules([ModuleSource("host0", demo_modules(), (), "TPU v5e", "TPU")], lambda: said)
    assert known.space(known.find(TRAIN), HBM).capacity != said
    unknown = CompiledModules([ModuleSource("host0", demo_modules(), (), "TPU v99", "TPU")], lambda: said)
    assert unknown.space(unknown.find(TRAIN), HBM).capacity == said
    assert unknown.space(unknown.find(TRAIN), VMEM).capacity is None
    assert unknown.space(unknown.find(TRAIN), VMEM).unknown["capacity"]
    assert reported_capacity(memory_over_time().allocators) == said
    assert reported_capacity(()) is None


def test_the_last_space_is_made_once() -> None:
    compiled = compiled_modules()
    label = compiled.find(TRAIN)
    assert compiled.space(label, HBM) is compiled.space(label, HBM)
    assert compiled.space(label, VMEM).space == VMEM


def test_the_work_ends_where_it_is_to() -> None:
    def stop() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        CompiledModules([ModuleSource("host0", demo_modules())], poll=stop).page()


@pytest.mark.parametrize(("peaks", "space"), [({}, 0), ({0: 5, 1: 3}, 0), ({1: 3, 4: 2}, 1)])
def test_the_space_that_is_shown_first(peaks: dict[int, int], space: int) -> None:
    assert first_space(peaks) == space


def test_files_beside_a_profile_join_in_without_repeating_it(tmp_path: Path) -> None:
    folder = tmp_path / "plugins" / "profile" / "run"
    folder.mkdir(parents=True)
    space = XSpace()
    add_modules(space, jit_eval_step=Module("jit_eval_step").proto_bytes)
    tpu_plane(space, 0, [("add", "loop fusion", 0, 10)])
    (folder / "host0.xplane.pb").write_bytes(space.SerializeToString())
    (folder / "jit_eval_step(1).hlo_proto.pb").write_bytes(Module("jit_eval_step").proto_bytes)
    (folder / "jit_train_step(5).hlo_proto.pb").write_bytes(Module("jit_train_step").proto_bytes)
    page = session_at(tmp_path).page(MEMORY).page()
    assert [(str(module.module), module.module.origin) for module in page.modules] == [
        ("jit_train_step(5)", "jit_train_step(5).hlo_proto.pb"),
        ("jit_eval_step(1)", "host0"),
    ]
    assert files_in_run(str(tmp_path)) is None
