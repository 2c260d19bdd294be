"""Which chip a dump's modules are for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parsers.memory.oom.test_dumps import V6E, dump_of
from tpuprof.parsers.memory.modules.target import device_of, stem_of
from tpuprof.parsers.pages.memory.key import MEMORY
from tpuprof.parsers.session.hlo import HloSession, open_hlo


def test_a_dump_says_it_for_the_memory_page_too(tmp_path: Path) -> None:
    folder = dump_of("points_padded", tmp_path / "dump")
    (path,) = folder.glob("*.after_optimizations.hlo.pb")
    assert device_of(str(path)) == "TPU v6e"
    (run,) = open_hlo(str(folder)).runs
    compiled = HloSession(run).page(MEMORY)
    assert [source.device_type for source in compiled.sources] == ["TPU v6e"]
    assert [source.device_type for source in HloSession(run, "TPU v5p").page(MEMORY).sources] == ["TPU v5p"]


@pytest.mark.parametrize("data", [b"", b"\x12", V6E[:5], b"\xff" * 40])
def test_what_is_cut_off_says_nothing(tmp_path: Path, data: bytes) -> None:
    (path,) = dump_of("points_padded", tmp_path / "dump", data).glob("*.after_optimizations.hlo.pb")
    assert device_of(str(path)) is None


def test_a_file_of_no_dump_is_its_own_stem() -> None:
    assert stem_of("a/model.hlo_proto.pb") == "a/model.hlo_proto.pb" and device_of("a/model.hlo_proto.pb") is None


@pytest.mark.parametrize(
    ("said", "chip"),
    [
        ("version: TPU_VERSION_GHOSTLITE", "TPU v6e"),
        ("version: TPU_VERSION_VIPERFISH", "TPU v5p"),
        ('version: TPU_VERSION_VIPERFISH\n  variant: "lite"', "TPU v5e"),
        ("version: TPU_VERSION_NEXT", None),
    ],
)
def test_a_dump_of_texts_says_it_too(tmp_path: Path, said: str, chip: str | None) -> None:
    stem = str(tmp_path / "module_0001.jit_f.cl_9")
    Path(f"{stem}.target_arguments.txt").write_text(f"tpu_topology_args {{\n  {said}\n}}\n")
    assert device_of(f"{stem}.after_codegen.txt") == chip
