"""Runs of kernels and the spans inside them, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.ops.counters.test_samples import plane_of
from tests.support.files.kernels import KernelRun, with_kernels
from tpuprof.parsers.ops.core import calls as module
from tpuprof.parsers.ops.core.calls import CallRuns, StepSpan, _middle_step, _Scopes, core_calls, has_waits, span_kind

RUN = KernelRun()


def calls(*kernels: KernelRun, is_traced: bool = True) -> Sequence[CallRuns]:
    """The kernels of one core."""
    return list(core_calls(plane_of(with_kernels(kernels, is_traced=is_traced))))


@given(st.integers(1, 4), st.integers(0, 2))
def test_what_some_cores_run_alike_is_what_one_runs_so_often(cores: int, untraced: int) -> None:
    (call,), (bare,) = calls(RUN), calls(RUN, is_traced=False)
    joined = module.joined_calls([call] * cores + [bare] * untraced)
    for name in ("traced_ps", "wait_in_ps", "wait_out_ps", "body_ps"):
        assert getattr(joined, name) == cores * getattr(call, name) > 0
    assert joined.waits_in_ps == tuple(cores * ps for ps in call.waits_in_ps) != ()
    assert (joined.grid_steps, joined.step) == (call.grid_steps, call.step)
    assert [each.total_ps for each in joined.parts] == [cores * each.total_ps for each in call.parts]


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


SPAN = st.tuples(st.integers(0, 9), st.integers(1, 5), st.booleans())


@given(st.lists(SPAN, max_size=9))
def test_a_grid_step_goes_from_body_to_body_with_the_spans_inside_it(made: list[tuple[int, int, bool]]) -> None:
    spans = sorted(
        ((begin, begin + length, body) for begin, length, body in made), key=lambda span: (span[0], -span[1])
    )
    begin, finish, body = (np.array([span[column] for span in spans], np.int64) for column in range(3))
    scopes = _Scopes(("wait", "body"), body, begin, finish)
    found = _middle_step(scopes, body, begin, finish, body == 1, np.zeros(len(spans), np.int64))
    steps = sorted(pairwise(end for _, end, is_body in spans if is_body), key=lambda step: step[1] - step[0])
    since, until = steps[len(steps) // 2] if steps else (0, 0)
    inside = [span for span in spans if since <= span[0] and span[1] <= until]
    assert list(found) == [
        StepSpan(
            "body" if is_body else "wait", first - since, last - since, sum(end > first for _, end, _ in inside[:at])
        )
        for at, (first, last, is_body) in enumerate(inside)
    ]
