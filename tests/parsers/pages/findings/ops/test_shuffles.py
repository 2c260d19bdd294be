"""Debug prints and data that is only put elsewhere: what must be found, and what must not."""

from __future__ import annotations

import pytest

from tests.parsers.pages.findings.build import US, Op, evidence, found, grid, the
from tpuprof.parsers.ops.device import op_class
from tpuprof.parsers.pages.findings.finding import Evidence, JumpTarget


def printing(scope: str, share: float = 5) -> Evidence:
    """Steps of 100 microseconds, so many of them in a transfer to the host from this scope."""
    steps = grid({"compute": 100 - share, "host": share}, host_transfer=share)
    return evidence(steps, [Op("recv-done.4", "host recv-done", 20 * share, scope=scope)])


@pytest.mark.parametrize("scope", ["loss/debug_callback", "debug_print", "while/body/debug_print[fmt=loss]"])
def test_debug_prints_are_told_from_other_transfers(scope: str) -> None:
    finding = the("debug-print", printing(scope))
    assert finding.title.startswith("Debug prints delay the step: ")
    assert finding.worth_ps == pytest.approx(5 * US) and finding.place == JumpTarget("timeline", "recv-done.4")
    assert finding.basis.endswith("Untested on hardware: such ops are recognised as XProf's source does.")
    assert found("host-offload", printing(scope)) is None


@pytest.mark.parametrize("scope", ["metrics/io_callback", "debug_print_head/mul", "my_debug_callback/pure_callback"])
def test_other_callbacks_are_no_debug_prints(scope: str) -> None:
    assert found("debug-print", printing(scope)) is None
    assert the("host-offload", printing(scope)).worth_ps == pytest.approx(5 * US)


def test_a_short_print_is_none() -> None:
    assert found("debug-print", printing("debug_print", 0.9)) is None


def test_the_rest_of_the_transfers_stays_what_it_is() -> None:
    ops = [
        Op("recv-done.4", "host recv-done", 100, scope="debug_print"),
        Op("recv-done.5", "host recv-done", 80, scope="io_callback"),
    ]
    proof = evidence(grid({"compute": 91, "host": 9}, host_transfer=9), ops)
    assert the("debug-print", proof).worth_ps == pytest.approx(5 * US)
    assert the("host-offload", proof).worth_ps == pytest.approx(4 * US)


def moving(category: str, share: float = 6) -> Evidence:
    """Steps of 100 microseconds, so many of them in an op of this category at a third of HBM's peak."""
    op = Op("op.4", category, 20 * share, hbm=round(share * US * 1000e9 / 1e12 / 3))
    return evidence(grid({"compute": 100 - share, op_class(category): share}), [op])


@pytest.mark.parametrize("category", ["concatenate", "pad", "reverse", "slice", "sort"])
def test_data_that_is_only_put_elsewhere(category: str) -> None:
    finding = the("shuffle", moving(category))
    assert finding.title == "Rearranging data takes 6.0%, mostly op.4"
    assert finding.worth_ps == pytest.approx(6 * US) and not finding.is_estimate


@pytest.mark.parametrize("category", ["loop fusion", "gather", "dynamic-slice", "dynamic-update-slice", "reduce"])
def test_what_computes_or_loops_need_is_no_shuffle(category: str) -> None:
    assert found("shuffle", moving(category)) is None


def test_a_little_of_it_is_none() -> None:
    assert found("shuffle", moving("pad", 2.9)) is None
