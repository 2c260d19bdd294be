"""Schedules: of compiled kernels against what the compiler's texts say, made ones for damage, profiles and dumps."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.parsers.formats.mosaic.compiled import archive
from tests.support.files.wire import field
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, Damaged, ProfileError
from tpuprof.parsers.formats.llo import dump
from tpuprof.parsers.formats.llo.dump import DUMP_ARGS, dumped_schedules
from tpuprof.parsers.formats.llo.module import LARGEST, read_schedule
from tpuprof.parsers.formats.llo.schedule import UNITS, LloAllocation, Origin, Schedule
from tpuprof.parsers.formats.llo.stored import stored_schedules
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.source import FileSource, open_source
from tpuprof.parsers.formats.xspace.trace import Trace

COMPILED = ["v5e-matmul", "v5e-attention", "v5e-gather", "v5e-spill", "v5e-wait", "v6e-matmul"]


def compiled(name: str) -> Schedule:
    return read_schedule(archive.stored(f"{name}.llo_module.pb"))


# --- compiled kernels


@pytest.mark.parametrize("name", COMPILED)
def test_units_are_used_as_the_compilers_text_says(name: str) -> None:
    schedule, said = compiled(name), archive.said(name)
    assert schedule.bundles == said.bundles == schedule.used.shape[1]
    assert schedule.slots == tuple(said.slots[unit] for unit in UNITS)
    assert schedule.used.sum(axis=1).tolist() == [said.used[unit] for unit in UNITS]
    assert (schedule.spills.sum(), schedule.fills.sum()) == (said.used["VSTORE:SPILL"], said.used["VLOAD:FILL"])


@pytest.mark.parametrize("name", COMPILED)
def test_allocations_are_those_of_the_compilers_text(name: str) -> None:
    schedule, said = compiled(name), archive.said(name)
    listed = Counter((space, size, label.endswith("_spill")) for label, space, size in said.allocations)
    found = Counter((each.space, each.bytes, each.is_spill) for each in schedule.allocations if each.space == "vmem")
    assert found and found <= listed
    assert sum(n for (space, *_), n in (listed - found).items() if space == "vmem") == 1  # its internal scratch
    spilled = [size for label, space, size in said.allocations if label.endswith("_spill") and space == "vmem"]
    assert schedule.spill_bytes == sum(spilled)


def test_a_matmul_has_its_loop_its_lines_and_its_scopes() -> None:
    schedule = compiled("v5e-matmul")
    assert (schedule.instruction, schedule.program) == ("mm.1", "jit_matmul")
    regions = schedule.regions
    assert (regions.kind[0], int(regions.parent[0])) == ("program", -1)
    body = regions.kind.index("loop body")
    assert int(regions.turns[body]) == 16 * 16 * 8 + 2  # the pipeline starts and ends beside the steps of the grid
    pushes = schedule.instructions.opcode == 193  # vector_matmul_packed
    (row,) = set(schedule.instructions.origin[pushes].tolist())
    assert schedule.origins[row] == Origin(("kernels.py:15", "kernels.py:24"), ("dot",))
    # 16 rows of 128 by 128 numbers are pushed at a time: 8 pushes are a product of 128 by 128 by 128
    assert pushes.sum() * 2 * 16 * 128 * 128 == 2 * 128**3


def test_shares_are_of_slots() -> None:
    schedule = compiled("v5e-spill")
    assert schedule.shares() == pytest.approx(schedule.used.sum(axis=1) / np.array(schedule.slots) / schedule.bundles)
    assert schedule.shares()[UNITS.index("MXU")] == 0 and (schedule.shares()[UNITS.index("EUP")] or 0) > 0.3


# --- made ones


def signed(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def instruction(number: int, opcode: int, bundle: int) -> bytes:
    return field(1, field(1, field(1, number) + field(2, opcode) + field(4, signed(bundle)) + field(8, 3)))


def region(members: bytes, begin: int, end: int, number: int = 0) -> bytes:
    return members + field(5, begin) + field(6, end) + field(7, number)


def use(counts: list[bytes]) -> bytes:
    return b"".join(field(row + 1, field(1, data) + field(2, 2)) for row, data in enumerate(counts))


def looped(bounds: bytes, *inside: bytes) -> bytes:
    body = region(b"".join(inside) or instruction(7, 50, 1), 1, 3, 9)
    return field(1, field(2, field(1, region(b"", 0, 1)) + field(4, body) + bounds))


def module(top: bytes, counts: bytes = bytes((1, 2, 0, 1)), more: bytes = b"") -> bytes:
    return field(1, b"k.1") + field(2, top) + field(6, use([counts] * 7)) + field(10, b"jit_f") + more


def turns_of(*bounds: bytes) -> list[int]:
    member = b""
    for each in reversed(bounds):
        member = looped(each, member) if member else looped(each)
    turns: list[int] = read_schedule(module(region(member, 0, 4))).regions.turns.tolist()
    return turns


def test_turns_are_those_of_all_loops_around() -> None:
    three, two = field(8, field(1, 1) + field(2, 8) + field(3, 3)), field(8, field(1, 0) + field(2, 2) + field(3, 1))
    assert turns_of(three) == [1, 1, 3]
    assert turns_of(three, two) == [1, 1, 3, 3, 6]
    assert turns_of(three, b"") == [1, 1, 3, 3, -1]
    assert turns_of(b"", two) == [1, 1, -1, -1, -1]
    for wrong in (field(8, field(2, 8)), field(8, field(1, 9) + field(2, 8) + field(3, 1)), field(8, field(3, 0))):
        assert turns_of(wrong) == [1, 1, -1]


def test_places_behind_the_last_bundle_are_the_last() -> None:
    schedule = read_schedule(module(region(instruction(1, 50, 99) + instruction(2, 50, -5), 2, 900)))
    assert schedule.instructions.bundle.tolist() == [3, 0]


def test_a_bundle_is_of_the_innermost_region_that_stands_in_it() -> None:
    inner = field(1, field(4, region(instruction(3, 50, 1), 0, 4)))
    schedule = read_schedule(module(region(instruction(1, 50, 0) + instruction(2, 50, 1) + inner, 0, 4)))
    assert schedule.owner.tolist() == [0, 1, 1, 1]  # none stands in the last two


def test_origins_and_allocations_are_read() -> None:
    frame = field(1, 0) + field(2, 12)
    origin = field(1, field(1, frame) + field(2, 2) + field(3, bytes((1, 9))) + field(4, bytes((1, 5))))
    texts = b"".join(field(2, text) for text in (b"k.py", b"scope", b"add"))
    held = field(8, field(1, 45) + field(5, field(1, 2) + field(4, 4096) + field(5, 3) + field(10, 1)))
    other = field(8, field(1, 45) + field(5, field(1, 77) + field(4, 8)))
    top = region(instruction(1, 50, 0) + instruction(2, 50, 1), 0, 4)
    schedule = read_schedule(module(top, more=field(12, origin + texts) + held + held + other))
    assert schedule.origins == (Origin(("k.py:12",), ("scope", "")),)
    assert schedule.instructions.origin.tolist() == [0, -1]
    assert schedule.allocations == (LloAllocation("vmem", 4096, 3, True), LloAllocation("space 77", 8, 0, False))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no program"),
        (field(2, b""), "which slots"),
        (module(region(b"", 0, 4))[:-3], "cut or damaged"),
        (module(field(1, b"\x0a\xff")), "cut or damaged"),
        (module(b"") + field(6, field(1, field(1, b"\1\2")) + field(2, field(1, b"\1"))), "different numbers"),
    ],
)
def test_what_is_no_schedule_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(Damaged, match=reason):
        read_schedule(data)


def test_regions_that_are_nested_without_end_are_refused() -> None:
    inner = region(b"", 0, 1)
    for _ in range(300):
        inner = region(field(1, field(4, inner)), 0, 1)
    with pytest.raises(Damaged, match="nested too deep"):
        read_schedule(module(inner))


# --- profiles and dumps


def profile(name: str, data: bytes) -> Trace:
    space = XSpace()
    plane = space.planes.add(name=b"/host:metadata")
    plane.stat_metadata[3].name = b"llo_proto"
    plane.event_metadata[9].id = 9
    plane.event_metadata[9].name = name.encode()
    plane.event_metadata[9].stats.add(metadata_id=3, bytes_value=data)
    plane.event_metadata[10].name = b"jit_f(7)"
    return Trace.from_bytes(space.SerializeToString())


def test_a_profile_holds_schedules_by_program_and_instruction() -> None:
    (held,) = stored_schedules(profile("jit_f(7)::k.1", module(region(b"", 0, 4))))
    assert (held.instruction, held.program) == ("k.1", "jit_f(7)")
    schedule = held.read()
    assert isinstance(schedule, Schedule) and schedule.bundles == 4
    (broken,) = stored_schedules(profile("jit_f(7)::k\x1b.1", b"\xff"))
    with pytest.raises(ProfileError, match=r"the schedule of k\u241b\.1: a message in it is cut or damaged"):
        broken.read()
    assert not list(stored_schedules(Trace.from_bytes(XSpace(hostnames=[b"host"]).SerializeToString())))


def put(folder: Path, name: str, data: bytes = b"") -> None:
    (folder / name).write_bytes(data)


def test_a_dump_lists_its_kernels_and_reads_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = module(region(b"", 0, 4))
    for name in ("20-mm.1-70-llo_module.pb", "10-mm.1-70-llo_module.pb", "10-a-b.2-7-x-100-llo_module.pb"):
        put(tmp_path, name, good)
    for name in ("10-TLP-70-llo_module.pb", "10-<late-finalization>-65-llo_module.pb", "10-mm.1-72-final_bundles.txt"):
        put(tmp_path, name, b"x" * 1000)
    opened: list[str] = []

    def counted(path: str) -> FileSource:
        opened.append(path)
        return open_source(path)

    monkeypatch.setattr(dump, "open_source", counted)
    found = dumped_schedules(str(tmp_path))
    assert [(each.instruction, each.time_ns) for each in found] == [("a-b.2-7-x", 10), ("mm.1", 10), ("mm.1", 20)]
    assert not opened and found[1].size == len(good)
    assert found[1].read().bundles == 4 and len(opened) == 1


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ([], "holds no dump of a TPU compiler."),
        (["notes.txt"], "holds no dump of a TPU compiler."),
        (["10-mm.1-72-final_bundles.txt"], "without the schedule of any kernel (…-llo_module.pb)."),
        (["10-TLP-70-llo_module.pb"], "holds no dump of a TPU compiler."),
    ],
)
def test_a_folder_without_schedules_says_how_to_get_them(tmp_path: Path, names: list[str], sentence: str) -> None:
    for name in names:
        put(tmp_path, name)
    with pytest.raises(ProfileError) as caught:
        dumped_schedules(str(tmp_path))
    assert caught.value.sentence.endswith(sentence) and DUMP_ARGS in caught.value.hint


def test_a_dump_that_is_damaged_missing_or_too_large_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "10-mm.1-70-llo_module.pb", b"\xff\xff")
    (found,) = dumped_schedules(str(tmp_path))
    with pytest.raises(ProfileError, match=r"the schedule in 10-mm\.1-70-llo_module\.pb: a message in it"):
        found.read()
    os.truncate(found.path, LARGEST + 1)
    (large,) = dumped_schedules(str(tmp_path))
    with pytest.raises(ProfileError, match="too large"):
        large.read()
    with pytest.raises(Damaged, match="are not read"):
        read_schedule(bytes(LARGEST + 1))
    os.remove(found.path)
    with pytest.raises(ProfileError) as caught:
        found.read()
    assert caught.value.exit_code == EXIT_NOT_FOUND
    with pytest.raises(ProfileError) as caught:
        dumped_schedules(str(tmp_path / "nowhere"))
    assert caught.value.exit_code == EXIT_NOT_FOUND
