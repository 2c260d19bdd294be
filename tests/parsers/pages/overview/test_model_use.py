"""MFU, HFU, and where the rest of the peak goes: by hand on made steps, and against the ops' own counts on the demo."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.support.build import present, session_at, tpu_plane
from tpuprof.parsers.base.words import NO_TIMED_STEPS
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.overview.accounts_of_ops import NOT_IN_STEPS
from tpuprof.parsers.pages.overview.model import OP_ACCOUNTS, OVERVIEW
from tpuprof.parsers.pages.overview.model_use.model_use import NO_COUNT, NO_PEAK, ModelUse, model_use, with_given
from tpuprof.parsers.pages.overview.model_use.page import MODEL_USE
from tpuprof.parsers.session.session import Session

STEPS = 4
STEP = 10_000
PEAK = 1e14
"""Of `tpu_plane`: what 1000 FLOPs, the count of each of its ops, take 10 ps at; 500 bytes take 500 ps."""


def session_of(folder: Path, again: str = "fusion.2.remat") -> Session:
    """Steps of a core: ops of 4000 and 2000 ps, a collective, a copy, and 2500 ps without an op."""
    space, ops = XSpace(), []
    for step in range(STEPS):
        at = step * STEP
        ops += [("fusion.1", "loop fusion", at, 4000), (again, "loop fusion", at + 4000, 2000)]
        ops += [("all-reduce.1", "all-reduce", at + 6000, 1000), ("copy.1", "copy", at + 7000, 500)]
    steps = [(str(step), step * STEP, (step + 1) * STEP) for step in range(STEPS)]
    modules = [("jit_f(7)", step * STEP, step * STEP + 7500) for step in range(STEPS)]
    tpu_plane(space, 0, ops, steps=steps, modules=modules)
    path = folder / "host0.xplane.pb"
    path.write_bytes(space.SerializeToString())
    return session_at(path)


def fractions(use: ModelUse) -> dict[str, float]:
    found = {part.part: part.fraction for part in use.parts}
    assert math.fsum(found.values()) == pytest.approx(1.0, abs=1e-12)
    assert math.fsum(part.time_ps for part in use.parts) == pytest.approx(use.step_ps)
    return {name: round(fraction, 9) for name, fraction in found.items() if name != "idle"}


def test_the_peak_is_divided_down_to_mfu(tmp_path: Path) -> None:
    use = session_of(tmp_path).page(MODEL_USE)
    assert fractions(use) == {
        "collectives": 0.1,
        "copies": 0.05,
        "below_roof": 0.5,
        "memory": 0.098,
        "recomputed": 0.001,
        "mfu": 0.001,
    }
    assert use.hfu == pytest.approx(0.002) and use.mfu == pytest.approx(0.001) and use.uncounted == 0
    assert (use.cores, use.peak, use.step_ps) == (1, PEAK, STEP) and not use.unknown
    assert use.step_flops == pytest.approx(2000) and use.model_flops == pytest.approx(1000) and not use.is_given


def test_without_recomputed_ops_both_are_the_same(tmp_path: Path) -> None:
    use = session_of(tmp_path, "fusion.2").page(MODEL_USE)
    assert use.hfu == use.mfu == pytest.approx(0.002) and "recomputed" not in fractions(use)


@pytest.mark.parametrize(("given", "other"), [(500, 0.0005), (1000, 0.0), (2000, -0.001)])
def test_given_flops_are_held_against_what_ran(given: float, other: float, tmp_path: Path) -> None:
    use = with_given(session_of(tmp_path).page(MODEL_USE), given, 5)
    found = fractions(use)
    assert use.mfu == pytest.approx(given / 1e6) == found["mfu"] and use.is_given
    assert found["other"] == pytest.approx(other, abs=1e-9) and found["recomputed"] == 0.001
    assert use.hfu == pytest.approx(0.002), "which is counted as before"
    assert use.tokens_per_second == pytest.approx(5 / 1e-8)


def test_more_passes_than_the_model_asks_for_are_no_mfu(tmp_path: Path) -> None:
    session = session_of(tmp_path)
    of_ops = present(session.page(OP_ACCOUNTS))
    of_ops.model_part[:] = 0.25
    use = model_use(session.page(OVERVIEW).account, of_ops, PEAK)
    assert use.mfu == pytest.approx(0.00025) and fractions(use)["passes"] == pytest.approx(0.00075)


def test_what_is_unknown_has_its_reason(tmp_path: Path) -> None:
    session = session_of(tmp_path)
    account, of_ops = session.page(OVERVIEW).account, present(session.page(OP_ACCOUNTS))
    of_ops.flops_part[:] = 0
    cases = [
        (model_use(None, None, PEAK), NO_TIMED_STEPS),
        (model_use(account, of_ops, None), NO_PEAK),
        (model_use(account, None, PEAK), NOT_IN_STEPS),
        (model_use(account, of_ops, PEAK), NO_COUNT),
    ]
    for use, why in cases:
        assert use.hfu is use.mfu is use.step_flops is use.model_flops is use.uncounted is None and not use.parts
        assert set(use.unknown.values()) == {why}
        given = with_given(use, 2000, None)
        assert (given.mfu is None) == (why in (NO_TIMED_STEPS, NO_PEAK)), "which needs the peak and the step alone"
        assert given.hfu is None and "hfu" in given.unknown and "model_flops" not in given.unknown
