"""Why ops take longer than at their roof: causes add up to the loss, and each op's loss has the right one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.parsers.pages.findings.build import Op, evidence, grid, modules, product, with_
from tests.support.build import present
from tpuprof.parsers.pages.findings.budget import budget
from tpuprof.parsers.pages.findings.finding import Evidence
from tpuprof.parsers.pages.findings.ops.losses import CAUSES, LossCause, losses
from tpuprof.parsers.steps.step_account import tpu_account

LOST = 1e9


def by_cause(of: Evidence) -> dict[LossCause, float]:
    whole = present(budget(of, tpu_account(of.grid)))
    return {loss.cause: loss.time_ps / LOST for loss in losses(whole, LOST, [])}


def half_at_the_peak(name: str, category: str, scope: str = "") -> Op:
    """An op that takes twice what its FLOPs need at the peak of 100 TFLOP/s: 20 runs of 10 µs."""
    return Op(name, category, 200, flops=round(5e-6 * 100e12), scope=scope)


def test_sizes_that_do_not_fill_the_unit_and_passes_come_first() -> None:
    steps = grid({"compute": 10.0}, steps=20, cores=1)
    ops = [half_at_the_peak("dot.1", "convolution fusion")]
    one = evidence(steps, ops, total=200, cores=1)
    small = by_cause(with_(one, modules=[modules(product(512, 256, 100))]))
    padded = by_cause(with_(one, modules=[modules(product(512, 256, 160))]))
    precise = by_cause(with_(one, modules=[modules(product(512, 256, 256, kind=11, precision=2))]))
    full = by_cause(with_(one, modules=[modules(product(512, 256, 256))]))
    assert small["small_dimensions"] > 0.2
    assert padded["padding"] > 0.2
    assert precise["precision"] == pytest.approx(1.0)
    assert set(full) == {"unreachable", "unexplained_compute"}
    assert full["unreachable"] == pytest.approx(1 / 9)


@pytest.mark.parametrize(
    ("category", "scope", "cause"),
    [
        ("while", "", "loops"),
        ("gather", "", "latency"),
        ("custom fusion", "jit(step)/threefry2x32", "random_bits"),
        ("loop fusion", "", "unexplained_compute"),
    ],
)
def test_what_an_op_does_says_why_it_is_slow(category: str, scope: str, cause: LossCause) -> None:
    steps = grid({"vector": 10.0, "compute": 10.0}, steps=20, cores=1)
    found = by_cause(evidence(steps, [half_at_the_peak("op.1", category, scope)], total=400, cores=1))
    assert max(found, key=lambda of: found[of]) == cause


OPS = st.builds(
    Op,
    st.sampled_from(["a.1", "b.2", "dot.1"]),
    st.sampled_from(["while", "gather", "loop fusion", "convolution fusion", "copy", "infeed", "custom-call"]),
    st.integers(1, 300),
    flops=st.integers(0, 10**9),
    hbm=st.integers(0, 10**7),
)


@given(st.lists(OPS, min_size=1, max_size=3, unique_by=lambda op: op.name), st.floats(1.0, 1e15))
@settings(max_examples=EXAMPLES)
def test_causes_add_up_to_the_loss_and_none_is_negative(ops: list[Op], lost: float) -> None:
    of = evidence(grid({"compute": 50.0}, cores=1), ops, cores=1)
    whole = present(budget(of, tpu_account(of.grid)))
    found = losses(whole, lost, [])
    assert [loss.cause for loss in found] == sorted(
        (loss.cause for loss in found), key=lambda cause: -next(one.time_ps for one in found if one.cause == cause)
    )
    assert all(loss.time_ps >= 0 and loss.ops > 0 and loss.cause in CAUSES for loss in found)
    assert not found or sum(loss.time_ps for loss in found) == pytest.approx(lost)
    assert losses(whole, 0.0, []) == ()
