"""When a core and a chip work. The shares are XProf 2.24.2's answers for the same profiles."""

from __future__ import annotations

import pytest

from tests.support.build import tpu_plane, trace_of
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.steps.boundaries.duty import ChipDuty

Op = tuple[str, str, int, int]
"""Name, HLO category, begin and end."""

WHILE = ("while.1", "while", 0, 100)
FUSION = ("fusion.9", "loop fusion", 0, 100)


def waits(begin: int, end: int) -> Op:
    """An op that waits for an asynchronous one."""
    return ("async-done.1", "async-done", begin, end)


def duty(*cores: list[Op]) -> tuple[ChipDuty, ...]:
    """The duty of the one chip that the cores sit on, over a module of 100 ps."""
    space = XSpace()
    for at, ops in enumerate(cores):
        spans = [(name, category, begin, end - begin) for name, category, begin, end in ops]
        plane = tpu_plane(space, at, spans, modules=[("jit(7)", 0, 100)])
        plane.stat("core_details", b"\x20\x03")  # local_chip_id 3
    return summarise(trace_of(space), "host0").duty


@pytest.mark.parametrize(
    ("ops", "active"),
    [
        ([WHILE, ("fusion.1", "loop fusion", 0, 30), ("fusion.2", "loop fusion", 60, 100)], 100),
        ([WHILE, ("fusion.1", "loop fusion", 0, 30), waits(30, 60), ("fusion.2", "loop fusion", 60, 100)], 70),
        ([FUSION, waits(30, 60)], 70),
        ([waits(0, 60), ("fusion.9", "loop fusion", 40, 100)], 60),
        ([waits(0, 60)], 0),
    ],
    ids=["loop", "loop that waits", "op that waits", "op that begins while another waits", "nothing but waiting"],
)
def test_one_core(ops: list[Op], active: int) -> None:
    assert duty(ops) == (ChipDuty(active, 100, 0, "chip 3"),)


@pytest.mark.parametrize(
    ("first", "second", "active"),
    [([FUSION, waits(30, 60)], [FUSION], 100), ([FUSION, waits(30, 60)], [FUSION, waits(50, 80)], 90)],
)
def test_a_chip_works_while_one_of_its_cores_does(first: list[Op], second: list[Op], active: int) -> None:
    assert duty(first, second) == (ChipDuty(active, 100, 0, "chip 3"),)
