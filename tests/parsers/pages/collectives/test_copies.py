"""Asynchronous copies: a twin that looks at every picosecond, and the account of the steps that they lie in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import session_at, tpu_plane, write_run
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.parse import read_module_text
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.collectives.host_sums import EXPOSED, HIDDEN, STALLED
from tpuprof.parsers.pages.collectives.page import COLLECTIVES
from tpuprof.parsers.pages.collectives.rows import rows_by
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.pages.shared.copies import is_copy_half, served
from tpuprof.parsers.session.session import Session
from tpuprof.parsers.steps.accounts.owners import Owner
from tpuprof.tui.demo import demo_path


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[str, str, int, int]]:
    """Ops of a core one after the other: what begins and ends copies and a collective, and what works beside them."""
    left = [f"copy-{which}.{number}" for number in range(3) for which in ("start", "done")]
    left += ["all-gather-start.9", "all-gather-done.9", *["fusion.1"] * draw(st.integers(0, 4)), "copy.7"]
    ops, at = [], draw(st.integers(0, 5))
    for name in sorted(draw(st.permutations(left)), key=lambda name: "-done" in name and draw(st.booleans())):
        length = draw(st.integers(1, 9))
        ops.append((name, name.partition(".")[0].replace("fusion", "loop fusion"), at, length))
        at += length + draw(st.integers(0, 3))
    return draw(st.permutations([*ops, ("while.1", "while", 0, 190)] if draw(st.booleans()) else ops))


def _twin(ops: list[tuple[str, str, int, int]], what: str) -> list[int]:
    """Hidden, exposed and other picoseconds of all transfers of this sort whose end comes behind their begin."""
    spans = {name: (at, at + length) for name, _, at, length in ops}
    outer_first = sorted(ops, key=lambda op: "while" not in op[0])
    doing = {at: name for name, _, begin, length in outer_first for at in range(begin, begin + length)}
    out = [0, 0, 0]
    for name, (begin, _) in spans.items():
        if name.startswith(f"{what}-start") and spans[name.replace("start", "done")][0] > begin:
            own = {name, name.replace("start", "done")}
            for at in range(begin, spans[name.replace("start", "done")][1]):
                op = doing.get(at, "")
                out[0 if op in ("fusion.1", "copy.7", "while.1") else 1 if op in own else 2] += 1
    return out


@given(programs())
def test_every_picosecond_is_hidden_exposed_or_neither(
    tmp_path_factory: pytest.TempPathFactory, ops: list[tuple[str, str, int, int]]
) -> None:
    space = XSpace()
    tpu_plane(space, 0, ops, steps=[("0", 0, 200)])
    page = session_at(write_run(tmp_path_factory.mktemp("run"), host=space)).page(COLLECTIVES)
    for of, what in ((page.of_copies, "copy"), (page, "all-gather")):
        parts = of.sums[[HIDDEN, EXPOSED, STALLED]].sum(axis=(1, 2, 3)).tolist()
        assert (parts if len(of.groups) else [0, 0, 0]) == _twin(ops, what)


def _agrees(session: Session, owner: Owner) -> None:
    """What copies expose, and other copies take, is what the account gives that owner."""
    page, table = session.page(COLLECTIVES).of_copies, session.page(OPS).table
    account, cells = session.page(OVERVIEW).account, len(page.cores) * len(page.step_names)
    halves = np.array(list(map(is_copy_half, table.category, table.name)), np.bool_)
    others = np.array([name == "copy" for name in table.classes()], np.bool_) & ~halves
    assert account is not None
    told = next(each.time_ps for each in account.owners if each.owner == owner)
    exposed = (page.sums[EXPOSED].sum() + table.in_steps_ps[others].sum()) / cells
    assert exposed == pytest.approx(told, rel=1e-9)


def test_what_copies_expose_is_in_the_account() -> None:
    _agrees(session_at(demo_path()), "copy")


@pytest.mark.shared
def test_copies_of_a_real_profile_are_exposed(shared: Path) -> None:
    """XProf's `analyze_async_overlap` calls 2,386 of 2,395 exposed, and finds 2.55 % of their time hidden."""
    session = session_at(shared / "profiles" / "tpu-v6e-inference")
    _agrees(session, "host_transfer")
    rows = rows_by(session.page(COLLECTIVES), "copies")
    assert rows.axis == ("host to HBM", "HBM to host") and rows.groups == ("add", "add")
    assert rows.count.tolist() == [3, 3]
    assert rows.hidden_ps.sum() / rows.span_ps.sum() == pytest.approx(0.0255, rel=0.05)
    assert np.isnan(rows.peak).all()


HLO = """HloModule jit_step
ENTRY %main (p: f32[4096]) -> (f32[4096], f32[4096]) {
  %p = f32[4096]{0} parameter(0)
  %made = f32[4096]{0} negate(%p), metadata={op_name="jit(step)/loss/neg"}
  %copy-start.1 = (f32[4096]{0:S(1)}, f32[4096]{0}, u32[]) copy-start(%p)
  %copy-done.1 = f32[4096]{0:S(1)} copy-done(%copy-start.1)
  %turned = f32[4096]{0:S(1)} bitcast(%copy-done.1)
  %read = f32[4096]{0} exponential(%turned), metadata={op_name="jit(step)/mlp/exp"}
  %copy-start.2 = (f32[4096]{0:S(5)}, f32[4096]{0}, u32[]) copy-start(%made)
  %copy-done.2 = f32[4096]{0:S(5)} copy-done(%copy-start.2)
  ROOT %both = (f32[4096]{0}, f32[4096]{0:S(5)}) tuple(%read, %copy-done.2)
}
"""


def test_a_copy_is_for_what_reads_it_else_of_what_made_it() -> None:
    module = HloModule(read_module_text("jit_step", HLO.splitlines()))
    found = [served(module, f"copy-done.{number}") for number in (1, 2, 3)]
    assert found == ["jit(step)/mlp/exp", "jit(step)/loss/neg", ""]
