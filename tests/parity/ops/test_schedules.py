"""Static schedules of compiled kernels against what XProf's `get_llo_static_analysis` says of them.

Skipped where XProf is not installed: in this interpreter, or in the one that ``TPUPROF_XPROF_PYTHON`` names.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.parity.oracle.live import ask_schedules
from tests.parsers.formats.mosaic.compiled import archive
from tpuprof.parsers.formats.llo.module import read_schedule
from tpuprof.parsers.formats.llo.schedule import UNITS, Schedule
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace

NAMES = ("mm.1", "attention.1", "ragged_gather.1", "spilling.1", "dma_wait.1")
FILES = ("v5e-matmul", "v5e-attention", "v5e-gather", "v5e-spill", "v5e-wait")
SPACES = {2: "vmem", 3: "smem", 4: "sflag"}
XPROFS = ("mxu", "xlu", "vector_alu", "vector_eup", "vector_load", "vector_store", "scalar_alu")


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    space = XSpace()
    plane = space.planes.add(name=b"/host:metadata")
    plane.stat_metadata[1].id, plane.stat_metadata[1].name = 1, b"llo_proto"
    for number, (name, file) in enumerate(zip(NAMES, FILES, strict=True), 1):
        made = plane.event_metadata[number]
        made.id, made.name = number, f"jit_f(1)::{name}".encode()
        made.stats.add(metadata_id=1, bytes_value=archive.stored(f"{file}.llo_module.pb"))
    return ask_schedules(space.SerializeToString(), tmp_path_factory.mktemp("xprof"), NAMES)


@pytest.fixture(params=NAMES)
def asked(request: pytest.FixtureRequest, answers: dict[str, dict[str, Any]]) -> tuple[Schedule, dict[str, Any]]:
    """Our schedule of a kernel, and XProf's answers."""
    file = FILES[NAMES.index(request.param)]
    return read_schedule(archive.stored(f"{file}.llo_module.pb")), answers[request.param]


def test_instructions_and_their_opcodes(asked: tuple[Schedule, dict[str, Any]]) -> None:
    schedule, answer = asked
    told = Counter(each["count"] for each in answer["opcodes"]["top_opcodes"])
    assert answer["opcodes"]["total_instructions"] == len(schedule.instructions)
    _, counts = np.unique(schedule.instructions.opcode, return_counts=True)
    assert told <= Counter(counts.tolist()) and told.total() > 10


def test_slots_of_bundles(asked: tuple[Schedule, dict[str, Any]]) -> None:
    schedule, answer = asked
    assert answer["bundle_util"]["total_bundles"] == schedule.bundles
    for told in answer["bundle_util"]["bundles"]:
        bundle = told["bundle"]
        assert [told[f"{unit}_used"] for unit in XPROFS] == schedule.used[:, bundle].tolist()
        assert tuple(told[f"{unit}_avail"] for unit in XPROFS) == schedule.slots
        assert (told["spill"], told["fill"]) == (schedule.spills[bundle], schedule.fills[bundle])


def test_spills_and_allocations(asked: tuple[Schedule, dict[str, Any]]) -> None:
    schedule, answer = asked
    summary = answer["spills"]["summary"]
    assert summary["static_spill_bundles"] == schedule.spills.sum()
    assert summary["static_fill_bundles"] == schedule.fills.sum()
    ours = Counter((each.space, each.bytes, each.number, each.is_spill) for each in schedule.allocations)
    for told in answer["spills"]["allocations"]:
        space = SPACES.get(told["space"], f"space {told['space']}")
        assert ours[space, told["size"], told["ordinal"], told["is_spill"]] == 1
    assert summary["total_spill_bytes"] == sum(each.bytes for each in schedule.allocations if each.is_spill)


def test_regions(asked: tuple[Schedule, dict[str, Any]]) -> None:
    schedule, answer = asked
    told: list[int] = []
    pending = [answer["region_tree"]["root"]]
    while pending:
        region = pending.pop()
        pending += region["children"][::-1]
        if region["kind"] in ("region", "sub_region"):  # the others stand for a loop or a condition
            told.append(region["num_instructions"])
    counts = Counter(schedule.instructions.region.tolist())
    assert told == [counts[row] for row in range(len(schedule.regions))] and len(UNITS) == len(XPROFS)
