"""The mean step by block and layer: it adds up, whatever the ops are, and what is unknown stays a row."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.support.build import present, session_at, tpu_plane
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.ops.table import merge_tables
from tpuprof.parsers.pages.overview.model import OP_ACCOUNTS
from tpuprof.parsers.pages.overview.model_use.blocks import NO_LAYER, NO_OP, model_blocks, places_of
from tpuprof.parsers.pages.overview.model_use.hlo_flow import Placed
from tpuprof.parsers.pages.overview.model_use.names import BLOCKS
from tpuprof.parsers.pages.overview.model_use.page import MODEL
from tpuprof.parsers.pages.shared.key import SUMMARIES
from tpuprof.parsers.session.session import Session
from tpuprof.tui.demo import demo_path


@cache
def demo() -> Session:
    return session_at(demo_path())


PHASES = ("", "forward", "backward", "recomputed")


@given(st.data())
@settings(max_examples=EXAMPLES)
def test_rows_add_up_to_the_step(data: st.DataObject) -> None:
    """Whatever block each op is in: to the step's time, its ops, its FLOPs and its bytes."""
    session = demo()
    of_ops, use = present(session.page(OP_ACCOUNTS)), session.page(MODEL).use
    table = merge_tables([summary.table for summary in session.page(SUMMARIES)])
    choice = st.builds(
        Placed, st.sampled_from((*BLOCKS, None)), st.sampled_from(PHASES), st.sampled_from((None, "a", "b_2"))
    )
    few = data.draw(st.lists(choice, min_size=1, max_size=12))
    places = [few[row % len(few)] for row in range(len(table))]
    found = model_blocks(of_ops, table, places, use.cores or 0, 20, use.peak)
    step = present(use.step_ps)
    for rows in (found.blocks, found.layers):
        assert math.fsum(row.time_ps for row in rows) == pytest.approx(step, rel=1e-12)
        assert math.fsum(row.fraction for row in rows) == pytest.approx(1.0, rel=1e-12)
        assert math.fsum(row.flops or 0.0 for row in rows) == pytest.approx(present(use.step_flops), rel=1e-9)
        assert sum(row.ops for row in rows) == int((of_ops.owner_ps.sum(axis=1) > 0).sum())
        unknown = math.fsum(row.time_ps for row in rows if row.block == "unknown")
        wanted = [number for number, place in enumerate(places) if place.block in (None, "unknown")]
        assert unknown == pytest.approx(float(of_ops.owner_ps[wanted].sum()), rel=1e-9, abs=1e-3), "it is not spread"
    assert len({(row.block, row.phase) for row in found.blocks}) == len(found.blocks)
    assert len({(row.layer, row.block) for row in found.layers}) == len(found.layers)


def test_layers_are_in_the_order_of_their_numbers() -> None:
    session = demo()
    of_ops = present(session.page(OP_ACCOUNTS))
    table = merge_tables([summary.table for summary in session.page(SUMMARIES)])
    layers = (
        "h_1/layer_3",
        "h_2/layer_5",
        "h_10/layer_0",
        "layers",
        "layers_0",
        "layers_2",
        "layers_10",
        "x_" + "9" * 5000,
    )
    places = [Placed("mlp", "", layers[-1 - row % len(layers)]) for row in range(len(table))]
    found = model_blocks(of_ops, table, places, 4, 20, None).layers
    assert [row.layer for row in found] == [*layers, NO_LAYER]


def test_without_a_peak_or_counts_flops_are_unknown() -> None:
    session = demo()
    of_ops = present(session.page(OP_ACCOUNTS))
    table = merge_tables([summary.table for summary in session.page(SUMMARIES)])
    places = [Placed("mlp")] * len(table)
    (row, none) = model_blocks(of_ops, table, places, 4, 20, None).blocks
    assert row.flops is row.peak_fraction is None and row.hbm_bytes and none.block == NO_OP and none.hbm_bytes is None
    bare = replace(table, traffic=np.full_like(table.traffic, np.nan))
    assert model_blocks(of_ops, bare, places, 4, 20, 1e14).blocks[0].hbm_bytes is None


def test_a_profile_without_steps_has_no_blocks(tmp_path: Path) -> None:
    path = tmp_path / "host0.xplane.pb"
    space = XSpace()
    tpu_plane(space, 0, [("fusion.1", "loop fusion", 0, 4000)])
    path.write_bytes(space.SerializeToString())
    page = session_at(path).page(MODEL)
    assert not page.blocks and not page.layers
    assert set(page.unknown) == {"blocks"} and isinstance(page.samples, str)


def test_a_layer_that_is_named_from_a_loop_on_is_the_same() -> None:
    table = merge_tables([summary.table for summary in demo().page(SUMMARIES)])
    names = {"a/layers": 0, "layers": 1, "b/h_1": 2, "c/h_1": 3, "h_1": 4}
    full = [f"jit(s)/jvp({name})/mlp/dot_general:" for name in names]
    some = replace(table.take(np.arange(5)), framework_op=tuple(full))
    assert [place.layer for place in places_of(some, lambda _: None)] == [
        "a/layers",
        "a/layers",
        "b/h_1",
        "c/h_1",
        "h_1",
    ]
