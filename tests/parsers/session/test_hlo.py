"""Compiled modules without a profile: which paths lead to them, and what a session of them has."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.demo.profile.hlo_module import MODULES, Module
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.pages.memory.key import MEMORY, MEMORY_PROFILE, MODULE_RUNS
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.session.hlo import NO_ALLOCATORS, HloSession, leads_to_hlo, open_hlo, open_hlo_beside
from tpuprof.tui.demo import demo_path

PROTO = Module("jit_eval_step").proto_bytes


def test_runs_beside_are_known_by_their_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once, wherever the program was started."""
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "module_0001.jit_f.cl_1.after_optimizations.hlo.pb").write_bytes(PROTO)
    for folder, path in ((tmp_path, "a"), (tmp_path / "b", "../a")):
        monkeypatch.chdir(folder)
        assert [run.path for run in open_hlo_beside(path, as_text=True).runs] == [f"{tmp_path}/a", f"{tmp_path}/b"]
    with pytest.raises(ProfileError) as caught:
        leads_to_hlo(str(tmp_path))
    assert f"{tmp_path}/a holds compiled modules" in caught.value.hint


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A folder as --xla_dump_to writes it."""
    (tmp_path / "module_0001.jit_eval_step.cl_1.before_optimizations.hlo.pb").write_bytes(PROTO[:0])
    (tmp_path / "module_0001.jit_eval_step.cl_1.after_optimizations.hlo.pb").write_bytes(PROTO)
    return tmp_path


def test_a_dump_leads_to_its_modules(dump: Path) -> None:
    assert leads_to_hlo(str(dump))
    session = HloSession(open_hlo(str(dump)).find_run(), "TPU v5e")
    page = session.page(MEMORY).page()
    assert [module.module.name for module in page.modules] == ["jit_eval_step"]
    space = session.page(MEMORY).space(page.modules[0].module, 0)
    assert space.peak_bytes == Module("jit_eval_step").facts["peak_memory_in_bytes"]
    assert space.capacity is not None
    assert session.page(MEMORY_PROFILE).why_empty == NO_ALLOCATORS
    assert session.page(MODULE_RUNS) == ()
    with pytest.raises(ProfileError, match="compiled programs that have not run"):
        session.page(OVERVIEW)


@pytest.mark.parametrize("name", ["m.hlo_proto.pb", "m.hlo.pb", "m", "m.pb", "m.bin"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_file_of_any_name(tmp_path: Path, name: str, packed: bool) -> None:
    path = tmp_path / (name + (".gz" if packed else ""))
    path.write_bytes(gzip.compress(PROTO) if packed else PROTO)
    assert leads_to_hlo(str(path))
    assert len(open_hlo(str(path)).find_run().name)


def test_a_profile_does_not_lead_to_hlo(tmp_path: Path) -> None:
    assert not leads_to_hlo(demo_path())
    folder = tmp_path / "plugins" / "profile" / "run"
    folder.mkdir(parents=True)
    (folder / "demo.xplane.pb").write_bytes(gzip.decompress(Path(demo_path()).read_bytes()))
    (folder / "jit_f(1).hlo_proto.pb").write_bytes(PROTO)
    assert not leads_to_hlo(str(folder))


def test_what_is_neither_says_what_is_wrong_with_it_as_a_profile(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="does not exist"):
        leads_to_hlo(str(tmp_path / "nowhere"))
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(ProfileError):
        leads_to_hlo(str(tmp_path))
    (tmp_path / "module_0001.jit_f.before_optimizations.txt").write_text("HloModule jit_f")
    with pytest.raises(ProfileError, match="texts do not hold the buffer assignment") as raised:
        leads_to_hlo(str(tmp_path))
    assert "xla_dump_hlo_as_proto" in raised.value.hint
    with pytest.raises(ProfileError) as nothing:
        open_hlo(str(MODULES.parent))
    assert nothing.value.exit_code == EXIT_NOT_FOUND
