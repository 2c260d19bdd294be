"""Runs of kernels and the spans inside them, by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.parsers.ops.counters.test_samples import plane_of
from tests.support.files.kernels import NS, US, KernelRun, with_kernels
from tpuprof.parsers.ops.core.calls import CallPart, CallRuns, core_calls, has_waits, merged_calls, span_kind

RUN = KernelRun()


def calls(*kernels: KernelRun, is_traced: bool = True) -> Sequence[CallRuns]:
    """The kernels of one core."""
    return list(core_calls(plane_of(with_kernels(kernels, is_traced=is_traced))))


def test_what_a_kernel_waits_for() -> None:
    (call,) = calls(RUN)
    steps = RUN.runs * RUN.steps
    assert call.duration_ps.tolist() == [RUN.time_ps] * RUN.runs
    assert (call.program_id, call.name, call.grid_steps) == (7, "matmul.1", 4)
    assert call.traced_ps == RUN.runs * RUN.time_ps
    assert call.wait_in_ps == steps * (RUN.wait_x_ps + RUN.wait_y_ps)
    assert call.waits_in_ps == (steps * RUN.wait_x_ps, steps * RUN.wait_y_ps)
    assert call.wait_out_ps == RUN.runs * 500 * NS
    assert call.body_ps == steps * (RUN.body_ps + 4 * NS)
    assert call.parts[0] == CallPart("ep_wait_in", 2 * steps, call.wait_in_ps)
    assert call.part(call.wait_in_ps) == pytest.approx(steps * 6.01 * US / call.traced_ps)


def test_one_grid_step_begins_where_the_body_before_it_ends() -> None:
    (call,) = calls(RUN)
    assert [(span.name, span.depth) for span in call.step] == [
        ("ep_wait_in", 0),
        ("ep_wait_in", 0),
        ("ep_run_kernel", 0),
        ("acc", 1),
    ]
    assert call.step[-2].end_ps == RUN.step_ps and call.step[0].start_ps > 0


def test_kernels_of_several_cores_add_up() -> None:
    (one, other) = calls(RUN, KernelRun(op="matmul.2", steps=6))
    joined = merged_calls([one, other])
    assert [call.name for call in joined] == ["matmul.2", "matmul.1"]  # by time
    (merged,) = merged_calls([one, one])
    assert merged.grid_steps == 4 and merged.waits_in_ps == tuple(2 * ps for ps in one.waits_in_ps)


def test_without_spans_nothing_is_known_of_waits() -> None:
    (call,) = calls(RUN, is_traced=False)
    assert (call.traced_ps, call.parts, call.step, call.grid_steps) == (0, (), (), 0)
    assert call.part(call.wait_in_ps) is None
    assert not has_waits(plane_of(with_kernels(is_traced=False))) and has_waits(plane_of(with_kernels()))


def test_the_count_zero_is_none() -> None:
    (call,) = calls(KernelRun(flops=5))
    assert call.flops == 5 and np.isnan(call.hbm_bytes)
    assert np.isnan(calls(KernelRun(flops=0))[0].flops)


def test_what_the_compiler_calls_by_itself_is_no_kernel() -> None:
    own = KernelRun(op="custom-call.3", text='f32[8] custom-call(f32[8] %a), custom_call_target="ConcatBitcast"')
    assert [call.name for call in calls(RUN, own)] == ["matmul.1"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ep_wait_in", "wait in"),
        ("ep_wait_out", "wait out"),
        ("ep_finalize", "wait out"),
        ("dma_wait", "wait in"),
        ("ep_copy_in", "copies"),
        ("ep_initialize_0", "copies"),
        ("ep_run_kernel", "body"),
        ("awaiting", "scope"),
    ],
)
def test_kinds_of_spans(name: str, kind: str) -> None:
    assert span_kind(name) == kind
