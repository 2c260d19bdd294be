"""What keeps a core from running ops: when a host waits for another of its cores, and when it does not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.support.build import tpu_plane, trace_of
from tests.support.host_events import host_of
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.ops.device import is_tensor_core
from tpuprof.parsers.ops.host_events.activity import reading
from tpuprof.parsers.steps.accounts.causes import IdleCauses, causes_of_core
from tpuprof.parsers.steps.boundaries.runs import module_runs
from tpuprof.parsers.steps.launches import Launches

Span = tuple[int, int]

READS = [(0, 100)]
"""The host waits for a result all the time."""


def behind(cores: Sequence[Sequence[Span]], reads: Sequence[Span] = READS) -> list[Span]:
    """When the host waits for the first core's siblings, of the runs of each core and of when it reads."""
    space = XSpace()
    for number, runs in enumerate(cores):
        device = tpu_plane(space, number, [])
        line, module = device.line("XLA Modules"), device.event_id("jit_step(7)")
        for start, end in runs:
            device.event(line, module, start, end - start)
    planes = [plane for plane in trace_of(space).planes if is_tensor_core(plane)]
    own, *others = (module_runs(plane) for plane in planes)
    columns = np.array(reads, np.int64).reshape(-1, 2)
    of_host = IdleCauses(reading=(columns[:, 0], columns[:, 1]))
    found = causes_of_core(of_host, Launches.of(None).of_runs(own), None, 0, others).behind
    return list(zip(found[0].tolist(), found[1].tolist(), strict=True))


@pytest.mark.parametrize(
    ("cores", "reads", "expected"),
    [
        ([[(0, 10), (30, 40)], [(1, 25), (30, 38)]], READS, [(10, 25)]),
        ([[(0, 10)], [(1, 25)], [(2, 30)]], READS, [(10, 30)]),  # until the last of them is done
        ([[(0, 10)], [(1, 25)]], [(15, 40)], [(15, 25)]),  # it did something else first
        ([[(0, 10)], [(1, 25)]], [], []),  # it waits for no result
        ([[(0, 10)], [(12, 25)]], READS, []),  # the other core began it later
        ([[(0, 10)], [(1, 10)]], READS, []),
        ([[], [(1, 25)]], READS, []),  # it has no part in the program
        ([[(0, 10)]], READS, []),
    ],
)
def test_a_core_waits_for_what_its_sibling_began_beside_its_last_program(
    cores: Sequence[Sequence[Span]], reads: Sequence[Span], expected: Sequence[Span]
) -> None:
    assert behind(cores, reads) == expected


def test_only_the_thread_that_launches_reads_for_the_next_program() -> None:
    launcher = [("PjitFunction(step)", 0, 5), ("np.asarray(jax.Array)", 10, 30), ("$log.py:3 write", 40, 50)]
    other = [("np.asarray(jax.Array)", 20, 60)]
    found = reading(host_of(launcher, other))
    assert [column.tolist() for column in found] == [[10], [30]]
    assert [column.tolist() for column in reading(None)] == [[], []]
