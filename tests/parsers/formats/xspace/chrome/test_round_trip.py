"""A profile that is written as a trace and read again has the same ops, runs and steps."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.support.build import PlaneBuilder, host_bytes, session_at
from tests.support.files.chrome import Event, xprof_trace
from tests.support.gpus import gpu_profile
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.session.session import Session

US = 1_000_000

OPS_OF_ONE_PREFIX = (
    "fusion",
    "fusion.1",
    "fusion.10",
    "ynn_fusion",
    "ynn_fusion.1",
    "sort.0",
    "wrapped_tanh",
    "0",
    "7",
)
MODULES = {"jit_step": 7, "jit_step_1": 9, "jit_other": 4}


class Ran(NamedTuple):
    """An op's runs over a profile."""

    name: str
    module: str
    runs: int
    total_ps: int


def opened(data: bytes, folder: str, name: str) -> Session:
    path = Path(folder, name)
    path.write_bytes(data)
    return session_at(path)


def ran(session: Session) -> set[Ran]:
    page = session.page(OPS)
    columns = page.table.name, page.program, page.table.occurrences.tolist(), page.table.total_ps.tolist()
    return {Ran(name, of.partition("(")[0], *more) for name, of, *more in zip(*columns, strict=True)}


def times(session: Session) -> set[tuple[str, int, int]]:
    """The same without the programs, whose names a trace may not have."""
    return {(op.name, op.runs, op.total_ps) for op in ran(session)}


def steps(session: Session) -> list[tuple[str, int]]:
    return [(step.name, step.duration_ps) for step in session.page(OVERVIEW).steps]


Occurrence = tuple[str, str, int, int, int]
"""Op, module, thread, when it begins in its step, and how long it lasts, in microseconds."""


@st.composite
def occurrences(draw: st.DrawFn) -> list[Occurrence]:
    """The runs of ops of a step, one behind the other on each of three threads."""
    free, out = [0, 0, 0], []
    for _ in range(draw(st.integers(1, 25))):
        thread, op = draw(st.integers(0, 2)), draw(st.sampled_from(OPS_OF_ONE_PREFIX))
        begin = free[thread] + draw(st.integers(0, 3))
        free[thread] = begin + draw(st.integers(1, 9))
        out.append((op, draw(st.sampled_from(sorted(MODULES))), thread, begin, free[thread] - begin))
    return out


def on_the_cpu(count: int, of_step: list[Occurrence], numbered: bool) -> XSpace:
    """Steps of a host that runs ops on its threads.

    Args:
        numbered: whether ops name their program's id, as in a profile; a trace hides it.
    """
    space = XSpace()
    if numbered:  # names of programs are the compiled modules'
        metadata = PlaneBuilder(space, "/host:metadata")
        for name, number in MODULES.items():
            metadata.event_id(f"{name}({number})", "", program_id=number)
    host = PlaneBuilder(space, "/host:CPU", 1)
    python, *pool = (host.line(name) for name in ("python", "tf_XLAEigen/1", "tf_XLAEigen/2", "tf_XLAPjRtCpuClient/3"))
    for step in range(count):
        at = 400 * step
        host.event(python, host.event_id("train"), at * US, 300 * US, _r=1, step_num=step + 20)
        for op, module, thread, begin, lasts in of_step:
            stats = {"hlo_op": op, "hlo_module": module} | ({"program_id": MODULES[module]} if numbered else {})
            host.event(pool[thread], host.event_id(op), (at + begin) * US, lasts * US, **stats)
    return space


@settings(max_examples=EXAMPLES // 2)
@given(st.integers(2, 5), occurrences(), st.sampled_from(["", "host0"]), st.booleans())
def test_ops_and_steps_of_a_cpu(count: int, of_step: list[Occurrence], host: str, grouped: bool) -> None:
    expected: dict[tuple[str, str], tuple[int, int]] = {}
    for op, module, _, _, lasts in of_step:
        before = expected.get((op, module), (0, 0))
        expected[op, module] = before[0] + count, before[1] + count * lasts * US
    space = on_the_cpu(count, of_step, numbered=True)
    with tempfile.TemporaryDirectory() as folder:
        profile = opened(space.SerializeToString(), folder, "h.xplane.pb")
        trace = opened(xprof_trace(space, host, grouped), folder, "t.trace.json")
        assert ran(trace) == {Ran(*op, *times) for op, times in expected.items()}
        assert times(trace) == times(profile)
        assert steps(trace) == steps(profile) and len(steps(trace)) == count


@pytest.mark.parametrize("host", ["", "host0"])
def test_ops_of_a_tpu(host: str, tmp_path: Path) -> None:
    data = host_bytes(50 * US, 8)
    profile = opened(data, str(tmp_path), "h.xplane.pb")
    trace = opened(xprof_trace(XSpace.FromString(data), host), str(tmp_path), "t.trace.json")
    assert times(trace) == times(profile) and len(times(trace)) > 0
    assert steps(trace) == steps(profile) and len(steps(trace)) > 0


@pytest.mark.parametrize("host", ["", "worker-1"])
def test_a_gpus_rows_that_xprof_derives_are_no_kernels(host: str, tmp_path: Path) -> None:
    space = gpu_profile()
    document = json.loads(xprof_trace(space, host))
    more: list[Event] = []
    for event in document["traceEvents"]:
        if event.get("ph") == "X" and event["pid"] != 701:
            more.append({**event, "tid": 5})
    for pid in {event["pid"] for event in more}:
        more.append({"ph": "M", "pid": pid, "tid": 5, "name": "thread_name", "args": {"name": "XLA Ops - from #13"}})
    document["traceEvents"] += more
    profile = opened(space.SerializeToString(), str(tmp_path), "h.xplane.pb")
    trace = opened(json.dumps(document).encode(), str(tmp_path), "t.trace.json")
    assert times(trace) == times(profile) and len(times(trace)) == 6


def test_of_two_hosts_the_first_is_read(tmp_path: Path) -> None:
    first, second = (json.loads(xprof_trace(XSpace.FromString(host_bytes(n * US, 6)), f"host{n}")) for n in (50, 90))
    for event in second["traceEvents"]:
        event["pid"] = event.get("pid", 0) + 1000
    both = {"traceEvents": first["traceEvents"] + second["traceEvents"]}
    trace = opened(json.dumps(both).encode(), str(tmp_path), "t.trace.json")
    assert steps(trace) == steps(opened(host_bytes(50 * US, 6), str(tmp_path), "h.xplane.pb"))
    assert any("2 hosts, of which only host50 is read" in warning for warning in trace.page(OVERVIEW).warnings)
