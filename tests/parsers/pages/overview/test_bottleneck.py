"""What limits a program: shares of waiting, and the verdict, which no page contradicts."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.pages.findings.build import Op, table
from tpuprof.parsers.pages.overview.bottleneck import NO_INPUT_EVENTS, NO_OUTFEED, bottleneck_of
from tpuprof.parsers.pages.overview.ledger import MeanStep, OwnerTime
from tpuprof.parsers.pages.overview.model import Step
from tpuprof.parsers.pages.overview.verdict import WAITS_FOR_HOST, Verdict, VerdictKind
from tpuprof.parsers.steps.aligned import InputSource
from tpuprof.parsers.steps.xprof_view import XprofBreakdown

STEP = 1000
NOTHING = XprofBreakdown(*[0.0] * 12)
FUSION = Op("fusion.1", "loop fusion", 10)
OUTFEED = Op("outfeed.1", "outfeed", 1)
TABLES = {False: table([FUSION]), True: table([FUSION, OUTFEED])}
PERCENT = st.sampled_from([0.0, 0.1, 4.9, 5.0, 19.9, 20.0, 60.0])
VERDICT = Verdict("compute-bound", 0.4, "", "Compute ops take it all.", "Look at the largest ops.")


def steps_of(breakdown: XprofBreakdown) -> list[Step]:
    return [Step(str(at), at, at * STEP, STEP, breakdown) for at in range(4)]


def account_of(verdict: Verdict, idle: float = 0.0, between: float = 0.0) -> MeanStep:
    """Steps that are idle for this share of their time, and lie apart by that part of a step."""
    owner = OwnerTime("host", idle * STEP, idle, between * STEP, "", 0.0, "", 0.0)
    return MeanStep(STEP, STEP * (1 + between), (owner,), (), (), (), (), verdict, {})


@given(
    st.fixed_dictionaries(dict.fromkeys(("infeed", "outfeed", "idle", "held"), PERCENT)),
    st.sampled_from([None, "infeed", "host"]),
    st.booleans(),
    st.sampled_from(get_args(VerdictKind)),
    st.sampled_from([0.0, 0.25]),
)
def test_the_words_are_the_verdicts_and_nothing_contradicts_them(
    percent: dict[str, float], source: InputSource | None, has_outfeed: bool, kind: VerdictKind, between: float
) -> None:
    fraction, of_input = None if kind == "unknown" else percent["held"] / 100, percent["infeed"] / 100
    verdict = replace(VERDICT, kind=kind, fraction=fraction, input_fraction=of_input)
    unknown: dict[str, str] = {}
    steps = steps_of(replace(NOTHING, outfeed_ps=percent["outfeed"] * STEP / 100 * (1 + between)))
    idle = percent["idle"] / 100 * (1 + between)
    account = account_of(verdict, max(0.0, idle - between), between)
    percent["idle"] = 100 * (max(0.0, idle - between) + between) / (1 + between)
    found = bottleneck_of(steps, TABLES[has_outfeed], source, account, unknown)
    waits = None if source is None else percent["infeed"]
    sends = percent["outfeed"] if has_outfeed or source == "infeed" else None
    assert found.idle_percent == pytest.approx(percent["idle"])
    for value, expected in ((found.input_percent, waits), (found.output_percent, sends)):
        assert value is None if expected is None else value == pytest.approx(expected)
    assert unknown == {
        **({} if waits is not None else {"bottleneck.input_percent": NO_INPUT_EVENTS}),
        **({} if sends is not None else {"bottleneck.output_percent": NO_OUTFEED}),
    }
    assert (found.statement, found.next_steps) == (verdict.statement, (verdict.next_step,))
    held = percent["held"] if kind in WAITS_FOR_HOST else 0.0
    is_host = max(held, waits or 0.0) >= 20
    assert (found.classification == "host") == is_host
    assert (found.classification == "both") == (not is_host and (kind in WAITS_FOR_HOST or (waits or 0.0) >= 5))
    assert found.classification != "unknown" or kind in ("untraced", "unknown")
    at_most = waits if waits is not None else percent["idle"] if percent["idle"] < 5 else None
    assert found.is_input_bound is (None if at_most is None else at_most >= 5)


@pytest.mark.parametrize(("has_ops", "advice"), [(True, 1), (False, 0)])
def test_without_steps_everything_is_unknown(has_ops: bool, advice: int) -> None:
    unknown: dict[str, str] = {}
    found = bottleneck_of([], table([FUSION] if has_ops else []), None, None, unknown)
    assert (found.classification, found.statement) == (
        "unknown",
        "Whether it waits for input is unknown: no step time.",
    )
    assert len(found.next_steps) == advice
    assert unknown == {f"bottleneck.{key}_percent": "no step time" for key in ("input", "output", "idle")}
    unknown = {"performance.device_duty_cycle_percent": "no device plane in this profile"}
    found = bottleneck_of([], table([]), None, None, unknown)
    assert found.statement == "Whether it waits for input is unknown: no device plane in this profile."


def test_steps_without_a_breakdown_do_not_hide_the_others() -> None:
    steps = [*steps_of(replace(NOTHING, outfeed_ps=0.2 * STEP)), Step("late", 4, 4 * STEP, STEP, None)]
    found = bottleneck_of(steps, table([FUSION]), "infeed", account_of(VERDICT), {})
    assert found.output_percent == pytest.approx(16.0)  # of all steps' time
