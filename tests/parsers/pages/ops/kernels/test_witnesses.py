"""Witnesses of a kernel's work: which is believed, and why another is refused."""

from __future__ import annotations

from tpuprof.parsers.pages.ops.kernels.witnesses import Statement, use, work

SHAPES = 8.0e9


def test_the_first_witness_that_nothing_contradicts_is_believed() -> None:
    figure = work([("shapes", None), ("count", 3.0), ("operands", 2.0)], 10.0, "nobody counted")
    assert (figure.value, figure.witness, figure.reason) == (3.0, "count", "")


def test_a_count_of_some_grid_steps_is_refused() -> None:
    figure = work([("shapes", SHAPES), ("count", SHAPES * 2.006 / 16)], None, "", SHAPES, 16)
    assert figure.witness == "shapes"
    assert figure.statements[1].refused == "12.5% of what the shapes need: it counts 2 of 16 grid steps"
    no_grid = work([("count", SHAPES / 3)], None, "", SHAPES)
    assert (no_grid.value, no_grid.reason) == (None, "count: 33.3% of what the shapes need")


def test_more_than_the_device_can_do_is_refused() -> None:
    figure = work([("operands", 30.0)], 10.0, "nobody counted")
    assert (figure.value, figure.reason) == (None, "operands: 3 times what the device can do in that time")


def test_the_count_zero_is_no_witness() -> None:
    assert work([("count", 0.0)], 1.0, "nobody counted").reason == "nobody counted"


def test_a_use_below_what_the_shapes_need_is_refused() -> None:
    figure = use([("shapes", 0.12), ("schedule", 0.124), ("trace points", 0.003)], "")
    assert [bool(each.refused) for each in figure.statements] == [False, False, True]
    assert figure.statements[2] == Statement("trace points", 0.003, "2.5% of what the shapes need")


def test_a_use_above_all_is_refused_and_rounding_is_not() -> None:
    assert use([("trace points", 1.2)], "").value is None
    assert use([("shapes", 0.100), ("trace points", 0.096)], "").statements[1].refused == ""
