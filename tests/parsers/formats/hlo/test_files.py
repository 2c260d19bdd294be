"""HLO modules in files: found by name, read whole or refused with a sentence, however the file is damaged."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.parsers.formats.hlo.test_modules import small
from tests.support.files.reading import inflations
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_UNREADABLE, ProfileError
from tpuprof.parsers.formats.hlo import files as files_module
from tpuprof.parsers.formats.hlo.files import LARGEST_BYTES, HloFile, find_hlo_files, read_hlo_file
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.proto import hlo_pb2

AFTER = "after_optimizations"


def whole() -> hlo_pb2.HloProto:
    """A module with a buffer assignment."""
    proto = small()
    proto.buffer_assignment.logical_buffers.add(id=1, size=20480).defined_at.instruction_id = 21
    allocation = proto.buffer_assignment.buffer_allocations.add(index=0, size=20480, maybe_live_out=True)
    allocation.assigned.add(logical_buffer_id=1, offset=0, size=20480)
    return proto


def write(path: Path, data: bytes | None = None) -> Path:
    path.write_bytes(whole().SerializeToString() if data is None else data)
    return path


def only(path: Path) -> HloFile:
    (found,) = find_hlo_files(str(path))
    return found


def refused(path: Path) -> ProfileError:
    with pytest.raises(ProfileError) as caught:
        read_hlo_file(only(path))
    return caught.value


# --- finding


def has_assignment(module: HloModule) -> bool:
    return len(module.proto.buffer_assignment.buffer_allocations) > 0


def test_a_run_folder_gives_its_programs_in_natural_order(tmp_path: Path) -> None:
    for name in ("jit_b(10).hlo_proto.pb", "jit_b(9).hlo_proto.pb", "jit_a.hlo_proto.pb.gz", "odd (x)(7).hlo_proto.pb"):
        write(tmp_path / name)
    for name in ("host.xplane.pb", "._jit_a.hlo_proto.pb", "x.hlo_proto.pb.bak", "notes.txt", ".hlo_proto.pb"):
        write(tmp_path / name)
    (tmp_path / "jit_folder(3).hlo_proto.pb").mkdir()
    (tmp_path / "gone(4).hlo_proto.pb").symlink_to(tmp_path / "nothing")
    found = find_hlo_files(str(tmp_path))
    assert [(file.name, file.program_id, file.stage) for file in found] == [
        ("jit_a", None, ""),
        ("jit_b", 9, ""),
        ("jit_b", 10, ""),
        ("odd (x)", 7, ""),
    ]
    assert all(file.size_bytes == len(whole().SerializeToString()) for file in found)
    assert os.path.basename(found[1].path) == "jit_b(9).hlo_proto.pb"


def test_stages_of_a_dump_are_one_module_and_the_one_with_buffers_is_read(tmp_path: Path) -> None:
    bare = small().SerializeToString()
    for stage in (
        "before_optimizations",
        "after_optimizations_before_buffer_assignment",
        "after_optimizations_after_buffer_assignment",
        "after_codegen",
        "0003.fusion.after_pipeline-start.before_dce",
    ):
        write(tmp_path / f"module_0001.jit_f.cl_9.{stage}.hlo.pb", bare)
    write(tmp_path / f"module_0001.jit_f.cl_9.{AFTER}.hlo.pb")
    write(tmp_path / f"module_0010.jit_f.cl_9.{AFTER}.hlo.pb")
    write(tmp_path / "module_0002.jit_g.1.after_codegen.hlo.pb", bare)
    write(tmp_path / "1700000000.module_0002.jit_h.sm_8.0_gpu_after_optimizations.hlo.pb")
    write(tmp_path / "module_0001.jit_f.cl_9.after_optimizations-memory-usage-report.pb")
    write(tmp_path / "module_0001.jit_f.cl_9.after_optimizations.txt")
    found = find_hlo_files(str(tmp_path))
    assert [(file.name, file.stage, file.program_id) for file in found] == [
        ("jit_h", "0_gpu_after_optimizations", None),
        ("jit_f", AFTER, None),
        ("jit_g.1", "after_codegen", None),
        ("jit_f", AFTER, None),
    ]
    assert has_assignment(read_hlo_file(found[1]))
    assert not has_assignment(read_hlo_file(found[2]))


def test_the_stage_with_buffers_wins_whatever_its_name(tmp_path: Path) -> None:
    bare = small().SerializeToString()
    write(tmp_path / f"module_0001.jit_f.{AFTER}.hlo.pb", bare)
    write(tmp_path / "module_0001.jit_f.before_optimizations.hlo.pb", bare)
    write(tmp_path / "module_0001.jit_f.something_else.hlo.pb")
    write(tmp_path / "module_0002.jit_g.before_optimizations.hlo.pb", bare)
    write(tmp_path / "module_0002.jit_g.after_codegen.hlo.pb", bare)
    write(tmp_path / "module_0003.jit_h.before_optimizations.hlo.pb", b"\x0a")
    write(tmp_path / "module_0003.jit_h.after_codegen.hlo.pb", b"")
    write(tmp_path / f"module_0003.jit_h.{AFTER}.hlo.pb", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f")
    assert [(file.name, file.stage) for file in find_hlo_files(str(tmp_path))] == [
        ("jit_f", "something_else"),
        ("jit_g", "after_codegen"),
        ("jit_h", AFTER),
    ]


def test_a_file_named_itself_is_taken_whatever_its_name(tmp_path: Path) -> None:
    assert only(write(tmp_path / "jit_step(12).hlo_proto.pb")).program_id == 12
    assert only(write(tmp_path / f"jit_step({2**64}).hlo_proto.pb")).program_id is None
    for name, called in (("step.pb.gz", "step"), ("step", "step"), (".pb", ".pb"), ("a.b.pb", "a.b")):
        assert only(write(tmp_path / name)).name == called
    assert only(write(tmp_path / "module_0001.jit_f.after_codegen.hlo.pb")).stage == "after_codegen"
    assert read_hlo_file(only(tmp_path / "step")).name == "jit_step"


def test_what_has_no_module_says_so(tmp_path: Path) -> None:
    assert find_hlo_files(str(tmp_path)) == ()
    cases = {
        str(tmp_path / "nothing"): ("not_found", "does not exist.", EXIT_NOT_FOUND),
        str(tmp_path / "a\0b"): ("not_found", "does not exist.", EXIT_NOT_FOUND),
        "/dev/null": ("not_a_file", "is neither a file nor a folder.", EXIT_UNREADABLE),
    }
    for path, (code, end, exit_code) in cases.items():
        with pytest.raises(ProfileError) as caught:
            find_hlo_files(path)
        assert (caught.value.code, caught.value.exit_code) == (code, exit_code)
        assert caught.value.sentence.endswith(end)
        assert "\0" not in caught.value.sentence


def test_text_dumps_are_named_as_such(tmp_path: Path) -> None:
    text = write(tmp_path / "module_0001.jit_f.before_optimizations.txt", b"HloModule jit_f")
    for path in (tmp_path, text):
        with pytest.raises(ProfileError, match=r"such texts do not hold the buffer assignment\.") as caught:
            find_hlo_files(str(path))
        assert caught.value.code == "text_dump"
        assert "--xla_dump_hlo_as_proto" in caught.value.hint


@given(st.text(min_size=1, max_size=80, alphabet="module_01.jitcl()sm9afterbefore_gpbhloz \n\u202e\x1b"))
@settings(max_examples=2 * EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_odd_names_are_taken(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name.strip('.') or 'x'}.hlo.pb"
    write(path)
    assert only(path).name
    assert len(find_hlo_files(str(tmp_path))) == 1
    path.unlink()


# --- reading


@pytest.mark.parametrize("zipped", [False, True])
def test_each_kind_of_message_is_read(tmp_path: Path, zipped: bool) -> None:
    kinds = {"proto": whole().SerializeToString(), "module": small().hlo_module.SerializeToString()}
    for kind, data in kinds.items():
        path = write(tmp_path / f"{kind}.pb", gzip.compress(data) if zipped else data)
        module = read_hlo_file(only(path))
        assert module.name == "jit_step"
        assert module.instruction("fusion.1") is not None
        assert has_assignment(module) == (kind != "module")


def test_a_file_is_read_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "_CHUNK", 100)
    for data in (whole().SerializeToString(), gzip.compress(whole().SerializeToString())):
        assert read_hlo_file(only(write(tmp_path / "x.pb", data))).name == "jit_step"


@pytest.mark.parametrize(
    ("data", "code", "sentence"),
    [
        (b"", "empty_file", "x.pb is empty."),
        (b"\0" * 5000, "corrupt", "its 5,000 bytes do not read as an HloProto."),
        (b"not a protobuf", "corrupt", "x.pb is damaged or not an HLO module: its 14 bytes"),
        (b"\x0a\x00", "corrupt", "damaged or not an HLO module"),
        (b"\x1f\x8b", "truncated", "its gzip stream ends early, after 0 bytes"),
        (b"\x1f\x8b" + b"\xff" * 100, "corrupt", "its gzip stream breaks after 0 bytes"),
        (gzip.compress(b"", mtime=0), "corrupt", "damaged or not an HLO module"),
        (gzip.compress(whole().SerializeToString(), mtime=0)[:-20], "truncated", "its gzip stream ends early"),
        (whole().SerializeToString()[:-1], "corrupt", "damaged or not an HLO module"),
        (whole().SerializeToString()[:200], "corrupt", "damaged or not an HLO module"),
    ],
)
def test_damage_is_a_sentence(tmp_path: Path, data: bytes, code: str, sentence: str) -> None:
    error = refused(write(tmp_path / "x.pb", data))
    assert (error.code, error.exit_code) == (code, EXIT_UNREADABLE)
    assert sentence in error.sentence
    assert error.hint


def test_a_file_past_two_gib_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "x.pb")
    os.truncate(path, 3 * 2**30)  # takes no room on the disk
    monkeypatch.setattr(files_module, "_content", lambda *_: pytest.fail("it was read"))
    error = refused(path)
    assert error.code == "too_large"
    assert "it has 3,221,225,472 bytes, and a protobuf message ends at 2 GiB." in error.sentence
    os.truncate(write(path, b""), LARGEST_BYTES)
    assert refused(path).code == "corrupt"  # a hole from its first byte on


def test_a_gzip_bomb_goes_no_further_than_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "_GZIP_FLOOR", 100_000)
    monkeypatch.setattr(files_module, "_CHUNK", 10_000)
    path = write(tmp_path / "x.pb.gz", gzip.compress(b"\x0a" * 30_000_000))
    grown = inflations(monkeypatch)
    error = refused(path)
    assert (error.code, "it inflates to more than" in error.sentence) == ("too_large", True)
    assert grown
    assert sum(grown) <= 200 * path.stat().st_size + 10_000


def test_a_pipe_does_not_hold_the_reader_up(tmp_path: Path) -> None:
    path = tmp_path / "jit_f(1).hlo_proto.pb"
    file = only(write(path))
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ProfileError, match=r"is not a regular file\."):
        read_hlo_file(file)
    assert find_hlo_files(str(tmp_path)) == ()
    path.unlink()
    with pytest.raises(ProfileError, match=r"does not exist\."):
        read_hlo_file(file)


# --- as programs


def test_files_are_programs_like_those_of_a_trace(tmp_path: Path) -> None:
    for name in ("jit_a(7).hlo_proto.pb", "jit_b(1).hlo_proto.pb", "jit_c.hlo_proto.pb", "jit_d.hlo_proto.pb"):
        write(tmp_path / name)
    write(tmp_path / "bad(8).hlo_proto.pb", b"nothing")
    files = find_hlo_files(str(tmp_path))
    found = HloModules.from_files([*files, files[1]])
    assert dict(found.names) == {0: "jit_c", 1: "jit_b", 2: "jit_d", 3: "jit_a", 7: "jit_a", 8: "bad"}
    assert {key: file.program_id for key, file in found.files.items()} == {0: None, 1: 1, 2: None, 3: 7, 7: 7, 8: 8}
    module = found.module(7)
    assert module is not None and found.module(7) is module
    assert found.problem(7) is None
    assert found.module(8) is None
    assert found.problem(8) == (
        "bad(8).hlo_proto.pb is damaged or not an HLO module: its 7 bytes do not read as an HloProto."
    )
    assert found.problem(9) == "None of the files holds the compiled HLO of program 9."
    (tmp_path / "jit_b(1).hlo_proto.pb").unlink()
    assert (found.problem(1) or "").endswith("jit_b(1).hlo_proto.pb does not exist.")
    assert not HloModules.from_files(()).names
