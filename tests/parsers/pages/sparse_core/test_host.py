"""What SparseCores do beside TensorCores: sums by step against a twin that looks at every instant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.support.build import PlaneBuilder, trace_of
from tests.support.composed.sparse_cores import BOUND, HEALTHY, UNUSED, sparse_profile
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.ops.offload import offloaded_ops, sparse_ops
from tpuprof.parsers.pages.sparse_core import host

US = 1_000_000
DONE = "%c.call-done = f32[] call-done(%c.call-start)"
START = '%c.call-start = ((), f32[]) call-start(), async_execution_thread="sparsecore"'

Span = tuple[int, int]


def host_of(space: XSpace, steps: host.StepSpans | None = None) -> host.SparseHost:
    return host.sparse_host(trace_of(space), "h", steps)


def spans_profile(work: Sequence[Span], waits: Sequence[Span], sparse: Sequence[Sequence[Span]]) -> XSpace:
    """A TensorCore with ops at some times and with ops that wait at others, and SparseCores; times in picoseconds."""
    core = PlaneBuilder.alone("/device:TPU:0")
    ops = core.line("XLA Ops")
    core.event(ops, core.event_id(START, "c.call-start"), 0, 0)
    for text, spans in (("%fusion.1 = f32[] fusion()", work), (DONE, waits)):
        for start, end in spans:
            core.event(ops, core.event_id(text, text[1:].split(" ")[0]), start, end - start)
    for number, spans in enumerate(sparse):
        beside = PlaneBuilder(core.space, f"/device:TPU:0 SparseCore {number}", 10 + number)
        line = beside.line("Sparse Core Ops")
        for start, end in spans:
            beside.event(line, beside.event_id("%sc.1 = f32[] fusion()", "sc.1"), start, end - start)
    return core.space


some_spans = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 12)).map(lambda pair: (pair[0], pair[0] + pair[1])), max_size=6
)


@settings(max_examples=2 * EXAMPLES)
@given(some_spans, some_spans, st.lists(some_spans, min_size=1, max_size=3), st.lists(st.integers(1, 15), max_size=5))
def test_sums_are_those_of_every_instant(
    work: list[Span], waits: list[Span], sparse: list[list[Span]], lengths: list[int]
) -> None:
    starts = np.cumsum([0, *lengths]).astype(np.int64)
    steps = host.steps_of([str(n) for n in range(len(lengths))], starts[:-1], np.diff(starts), "steps")
    made = host_of(spans_profile(work, waits, sparse), steps if lengths else None)
    assert made.times.shape == (1, len(made.step_names), 5)

    def at(spans: Sequence[Span], instant: int) -> bool:
        return any(start <= instant < end for start, end in spans)

    for step, (start, long) in enumerate(zip(made.start_ps.tolist(), made.duration_ps.tolist(), strict=True)):
        twin = dict.fromkeys((host.WORK, host.SPARSE, host.BOTH, host.WAIT, host.WAIT_BESIDE), 0)
        for instant in range(start, start + long):
            waiting = at(waits, instant)
            working = at(work, instant) and not waiting
            busy = any(at(spans, instant) for spans in sparse)
            for part, is_so in (
                (host.WORK, working),
                (host.SPARSE, busy),
                (host.BOTH, working and busy),
                (host.WAIT, waiting),
                (host.WAIT_BESIDE, waiting and busy),
            ):
                twin[part] += is_so
        times = made.times[0, step].tolist()
        assert times == list(twin.values())
        assert 0 <= times[host.BOTH] <= min(times[host.WORK], times[host.SPARSE])
        assert 0 <= times[host.WAIT_BESIDE] <= min(times[host.WAIT], times[host.SPARSE] - times[host.BOTH])
        assert times[host.WORK] + times[host.WAIT] <= long and times[host.SPARSE] <= long
    assert (made.sparse_times.sum(axis=0)[:, 0] >= made.times[0, :, host.SPARSE]).all()
    inside = sum(wait.wait_ps for wait in made.waits)
    assert inside >= made.times[0, :, host.WAIT].sum() and (inside > 0) == bool(made.times[0, :, host.WAIT].any())


def test_steps_that_follow_each_other_add_up_to_the_whole() -> None:
    space = sparse_profile((HEALTHY, UNUSED), chips=2, step_count=3)
    bounds = np.array([0, 700, 1500, 2500, 3000], np.int64) * US
    parts = host_of(space, host.steps_of("abcd", bounds[:-1], np.diff(bounds), "steps"))
    whole = host_of(space, host.steps_of("w", bounds[:1], bounds[-1:], "steps"))
    assert (parts.times.sum(axis=1) == whole.times[:, 0]).all() and whole.times.any()
    assert (parts.sparse_times.sum(axis=1) == whole.sparse_times[:, 0]).all()


def test_waiting_is_told_by_stats_and_category_too() -> None:
    """By an op that has the stats of an offload and is no start, and by the category of the first SparseCores."""
    space = sparse_profile((UNUSED,), step_count=1)
    core = PlaneBuilder(XSpace(), "/device:TPU:0", 1)
    ops = core.line("XLA Ops")
    core.event(
        ops, core.event_id("%sc.call = f32[] custom-call()", "sc.call"), 0, 5, offload_core_id=0, tc_offload_start_id=1
    )
    core.event(ops, core.event_id("%feed.1 = f32[] infeed()", "feed.1", hlo_category="sparsecorev0 infeed"), 5, 7)
    core.event(
        ops,
        core.event_id("%a.call-start = f32[] call-start()", "a.call-start"),
        20,
        3,
        offload_core_id=0,
        tc_offload_start_id=2,
    )
    core.event(ops, core.event_id("%a.call-done = f32[] call-done(f32[] %a.call-start)", "a.call-done"), 30, 11)
    core.event(ops, core.event_id("%b.call-done = f32[] call-done(%b.call-start)", "b.call-done"), 50, 13)
    space.planes[0].CopyFrom(core.plane)
    waits = host_of(space).waits
    assert [(wait.op, wait.wait_ps) for wait in waits] == [("a.call-done", 11), ("feed.1", 7), ("sc.call", 5)]


def test_names_with_an_x_are_sparse_cores() -> None:
    plain, with_x = (sparse_profile((HEALTHY, HEALTHY), with_x=with_x) for with_x in (False, True))
    assert [plane.name for plane in with_x.planes][1:] == [
        b"/device:TPU:0 SparseCore x0",
        b"/device:TPU:0 SparseCore x1",
    ]
    assert (host_of(plain).times == host_of(with_x).times).all()
    assert host_of(with_x).sparse_cores == host_of(plain).sparse_cores == ("h:0 SparseCore 0", "h:0 SparseCore 1")


def test_all_ops_are_listed_and_the_offloaded_ones_say_for_what() -> None:
    space = sparse_profile(chips=2)
    planes = trace_of(space).planes
    everything, offloaded = sparse_ops(planes), offloaded_ops(planes)
    rows = {
        (parent, name): int(ps)
        for parent, name, ps in zip(everything.parent, everything.name, everything.self_ps, strict=True)
    }
    assert rows == {
        (p, n): int(ps) for p, n, ps in zip(offloaded.parent, offloaded.name, offloaded.self_ps, strict=True)
    }
    for plane in space.planes:
        if b"SparseCore" not in plane.name:
            del plane.lines[:]
    alone = sparse_ops(trace_of(space).planes)
    assert set(alone.parent) == {""} and alone.self_ps.sum() == everything.self_ps.sum()


# --- damaged


def test_sparse_cores_without_tensor_cores() -> None:
    made = host_of(sparse_profile(with_tensor_cores=False))
    assert not made.has_tensor_core.any() and made.waits == ()
    assert (made.times[0, :, host.SPARSE] == 310 * US).all() and not made.times[
        0, :, [host.WORK, host.BOTH, host.WAIT]
    ].any()


def test_without_steps_the_whole_profile_is_one() -> None:
    space = sparse_profile()
    for plane in space.planes:
        kept = [line for line in plane.lines if not line.name.endswith(b"Steps")]
        del plane.lines[:]
        plane.lines.extend(kept)
    made = host_of(space)
    assert made.step_names == ("whole profile",) and made.step_source == "whole profile"
    assert made.times[0, 0, host.SPARSE] == 4 * 310 * US


def test_steps_elsewhere_hold_nothing() -> None:
    far = np.array([10**12], np.int64)
    made = host_of(sparse_profile(), host.steps_of("0", far, np.array([US]), "steps"))
    assert not made.times.any() and made.waits == () and not made.strips.any()


def test_no_op_anywhere_makes_no_step() -> None:
    space = XSpace()
    PlaneBuilder(space, "/device:TPU:3 SparseCore 1", 1)
    made = host_of(space)
    assert made.cores == ("h:3",) and made.step_names == () and len(made.ops) == 0


@given(st.data())
def test_damage_breaks_nothing(data: st.DataObject) -> None:
    """Cut anywhere, or with absurd times: never a negative sum, never more work beside than work."""
    space = sparse_profile((HEALTHY, BOUND), chips=1, step_count=2)
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                if data.draw(st.integers(0, 30)) == 0:
                    event.offset_ps = data.draw(st.integers(-(2**63), 2**63 - 1))
                    event.duration_ps = data.draw(st.integers(-(2**63), 2**63 - 1))
    content = space.SerializeToString()
    content = content[: data.draw(st.integers(len(content) // 2, len(content)))]
    trace = Trace.from_bytes(content)
    if host.has_sparse_cores(trace):
        made = host.sparse_host(trace, "h", None)
        assert (made.times >= 0).all() and (made.sparse_times >= 0).all()
        assert (
            made.times[:, :, host.BOTH] <= np.minimum(made.times[:, :, host.WORK], made.times[:, :, host.SPARSE])
        ).all()
