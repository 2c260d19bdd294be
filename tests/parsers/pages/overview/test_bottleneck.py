"""The verdict in words, at the edges of what counts as waiting for input, for results, for cores or for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.pages.findings.build import Op, table
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.overview.bottleneck import NO_INPUT_EVENTS, NO_OUTFEED, bottleneck_of
from tpuprof.parsers.pages.overview.model import Bottleneck, Share, Step, TopOp
from tpuprof.parsers.steps.aligned import InputSource
from tpuprof.parsers.steps.xprof_view import XprofBreakdown

STEP = 1000
NOTHING = XprofBreakdown(*[0.0] * 12)
FUSION = Op("fusion.1", "loop fusion", 10)
OUTFEED = Op("outfeed.1", "outfeed", 1)
TOP = TopOp("jit(f)/layer_0/add", "add", "vector", "loop fusion", 60.0, 60.0, 600, 4, None)
SHARES = (Share("vector", 930, 0.93), Share("idle", 70, 0.07))


def steps_of(breakdown: XprofBreakdown, lengths: Sequence[int] = (STEP,) * 4) -> list[Step]:
    return [Step(str(at), at, at * STEP, length, breakdown) for at, length in enumerate(lengths)]


def verdict(
    breakdown: XprofBreakdown = NOTHING,
    source: InputSource | None = "infeed",
    ops: OpTable | None = None,
    lengths: Sequence[int] = (STEP,) * 4,
    shares: Sequence[Share] = SHARES,
    top_ops: Sequence[TopOp] = (TOP,),
) -> tuple[Bottleneck, dict[str, str]]:
    """The bottleneck of steps with one breakdown, and what is unknown."""
    unknown: dict[str, str] = {}
    rows = table([FUSION]) if ops is None else ops
    return bottleneck_of(steps_of(breakdown, lengths), rows, source, shares, top_ops, unknown), unknown


def infeed(percent: float) -> XprofBreakdown:
    return replace(NOTHING, infeed_ps=percent * STEP / 100)


@pytest.mark.parametrize(
    ("percent", "kind", "words"),
    [
        (0.0, "device", "not input-bound: only 0.0% of step time"),
        (4.9, "device", "not input-bound: only 4.9% of step time"),
        (5.0, "both", "moderately input-bound: 5.0% of step time"),
        (19.9, "both", "moderately input-bound: 19.9% of step time"),
        (20.0, "host", "highly input-bound: 20.0% of step time"),
        (100.0, "host", "highly input-bound: 100.0% of step time"),
    ],
)
@pytest.mark.parametrize("source", ["infeed", "host"])
def test_input_bound_from_5_and_20_percent(source: InputSource, percent: float, kind: str, words: str) -> None:
    found, _ = verdict(infeed(percent), source)
    assert found.classification == kind
    assert found.input_percent == pytest.approx(percent)
    assert words in found.statement
    assert ("Reduce the input time first" in found.next_steps[0]) == (kind == "host")


@pytest.mark.parametrize(
    ("percent", "how"), [(4.9, ""), (5.0, "moderately"), (19.9, "moderately"), (20.0, "highly"), (60.0, "highly")]
)
def test_output_bound_from_5_and_20_percent(percent: float, how: str) -> None:
    breakdown = replace(NOTHING, outfeed_ps=percent * STEP / 100)
    found, unknown = verdict(breakdown, None, table([FUSION, OUTFEED]))
    assert found.output_percent == pytest.approx(percent)
    assert ("output-bound" in found.statement) == bool(how)
    assert not how or f"It is {how} output-bound: {percent}% of step time sends results" in found.statement
    assert (found.classification, found.input_percent) == ("device", None)
    assert unknown == {"bottleneck.input_percent": NO_INPUT_EVENTS}


def test_without_outfeed_ops_only_infeed_tells_that_there_is_no_output() -> None:
    by_host, unknown = verdict(infeed(30), "host")
    assert (by_host.output_percent, unknown) == (None, {"bottleneck.output_percent": NO_OUTFEED})
    by_infeed, unknown = verdict(infeed(30), "infeed")
    assert (by_infeed.output_percent, unknown) == (0.0, {})


@pytest.mark.parametrize(("percent", "is_said"), [(2.9, False), (3.0, True), (50.0, True)])
def test_idle_time_for_other_reasons_is_said_from_3_percent(percent: float, is_said: bool) -> None:
    found, _ = verdict(replace(infeed(10), idle_ps=percent * STEP / 100))
    assert (f"{percent}% of step time is idle for other reasons than input" in found.statement) == is_said
    assert any("Idle time" in advice for advice in found.next_steps) == is_said


# --- nothing is known about input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("idle", "kind", "words"),
    [
        (0.0, "device", "The program is not input-bound: its cores are idle for only 0.0% of step time."),
        (0.01, "device", "idle for less than 0.1% of step time."),
        (4.9, "device", "idle for only 4.9% of step time."),
        (5.0, "unknown", "5.0% of step time is idle; how much of that waits for input is unknown."),
        (80.0, "unknown", "80.0% of step time is idle; how much of that waits for input is unknown."),
    ],
)
def test_without_input_events_little_idle_time_rules_input_out(idle: float, kind: str, words: str) -> None:
    found, unknown = verdict(replace(NOTHING, idle_ps=idle * STEP / 100), None)
    assert found.classification == kind
    assert (found.input_percent, found.output_percent) == (None, None)
    assert found.idle_percent == pytest.approx(idle)
    assert words in found.statement
    assert "Vector ops take 93.0% of device time; the top op, layer_0/add, 60.0% of op time." in found.statement
    assert unknown == {"bottleneck.input_percent": NO_INPUT_EVENTS, "bottleneck.output_percent": NO_OUTFEED}


@pytest.mark.parametrize(
    ("idle", "advice"),
    [
        (1.0, ("Look at layer_0/add first.",)),
        (10.0, ("Look at layer_0/add first.", "Then at the idle time between ops.")),
        (93.0, ("Idle time first: see what the host does in the gaps.", "Look at layer_0/add first.")),
    ],
)
def test_what_takes_more_time_comes_first(idle: float, advice: tuple[str, ...]) -> None:
    assert verdict(replace(NOTHING, idle_ps=idle * STEP / 100), None)[0].next_steps == advice


def test_steps_without_ops_have_no_verdict() -> None:
    found, _ = verdict(NOTHING, None, table([]), shares=(), top_ops=())
    assert found.classification == "unknown"
    assert found.statement.startswith("The steps hold no op events.")
    assert found.next_steps == ()


@pytest.mark.parametrize(("has_ops", "advice"), [(True, 1), (False, 0)])
def test_without_steps_everything_is_unknown(has_ops: bool, advice: int) -> None:
    unknown: dict[str, str] = {}
    found = bottleneck_of([], table([FUSION] if has_ops else []), None, SHARES, (TOP,), unknown)
    assert (found.classification, found.statement) == (
        "unknown",
        "Whether it waits for input is unknown: no step time.",
    )
    assert len(found.next_steps) == advice
    assert unknown == {f"bottleneck.{key}_percent": "no step time" for key in ("input", "output", "idle")}
    unknown = {"performance.device_duty_cycle_percent": "no device plane in this profile"}
    found = bottleneck_of([], table([]), None, (), (), unknown)
    assert found.statement == "Whether it waits for input is unknown: no device plane in this profile."


# --- what else is said ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("compute", "sync", "waits", "is_said"),
    [(4.0, 2.0, 0.0, True), (4.0, 1.9, 0.0, False), (4.0, 6.0, 4.0, True), (4.0, 6.0, 4.1, False)],
)
def test_all_reduces_are_named_from_6_percent_beyond_what_waits_for_input(
    compute: float, sync: float, waits: float, is_said: bool
) -> None:
    reduces = {"all_reduce_compute_ps": compute * STEP / 100, "all_reduce_sync_ps": sync * STEP / 100}
    found, _ = verdict(replace(infeed(waits), **reduces))
    sentence = f"All-reduces take {compute + sync:.1f}%: {sync}% waits for other cores, {compute}% is the work."
    assert (sentence in found.statement) == is_said
    assert ("All-reduces" in found.statement) == is_said


def test_all_reduces_are_named_where_input_is_unknown() -> None:
    found, _ = verdict(replace(NOTHING, all_reduce_compute_ps=0.06 * STEP), None)
    assert found.statement.endswith(" All-reduces take 6.0%: 0.0% waits for other cores, 6.0% is the work.")


@pytest.mark.parametrize(
    ("percent", "words"),
    [
        (0.0, ""),
        (0.1, " 0.1% of step time waits for the SparseCore."),
        (9.9, " 9.9% of step time waits for the SparseCore."),
        (10.0, " 10.0% of step time waits for the SparseCore. It is the place to start."),
    ],
)
def test_waiting_for_the_sparse_core_is_named(percent: float, words: str) -> None:
    found, _ = verdict(replace(NOTHING, sparse_core_ps=percent * STEP / 100))
    assert found.statement.endswith(words)
    assert ("SparseCore" in found.statement) == bool(words)


@pytest.mark.parametrize(
    ("lengths", "words"),
    [
        ([100, 100, 100, 100, 115], "Step 4 takes 1.15 times the median step: see"),
        ([100, 100, 100, 100, 114], ""),
        ([100, 100, 100, 200], ""),
        ([100] * 9 + [150, 200], "Step 10 takes 2.00 times the median step (2 steps are slow): see"),
        ([100] * 8 + [150, 160, 200], ""),
        ([100, 100, 200], ""),
    ],
    ids=["just slow", "not slow", "one of four", "two of eleven", "three of eleven", "three steps"],
)
def test_a_few_slow_steps_are_pointed_at_after_the_first_advice(lengths: list[int], words: str) -> None:
    found, _ = verdict(replace(infeed(1), idle_ps=0.1 * STEP), lengths=lengths)
    assert bool([advice for advice in found.next_steps if "times the median" in advice]) == bool(words)
    assert not words or found.next_steps[1].startswith(words)


def test_steps_without_a_breakdown_do_not_hide_the_others() -> None:
    steps = [*steps_of(infeed(20)), Step("late", 4, 4 * STEP, STEP, None)]
    found = bottleneck_of(steps, table([FUSION]), "infeed", SHARES, (TOP,), {})
    assert found.input_percent == pytest.approx(16.0)  # of all steps' time


@given(
    st.floats(0, STEP), st.floats(0, STEP), st.floats(0, STEP), st.sampled_from([None, "infeed", "host"]), st.booleans()
)
def test_percentages_are_those_of_step_time_and_unknown_ones_say_why(
    waits: float, outfeed: float, idle: float, source: InputSource | None, has_outfeed: bool
) -> None:
    breakdown = replace(NOTHING, infeed_ps=waits, outfeed_ps=outfeed, idle_ps=idle)
    found, unknown = verdict(breakdown, source, TABLES[has_outfeed])
    values = {"input": found.input_percent, "output": found.output_percent, "idle": found.idle_percent}
    parts = {"input": waits, "output": outfeed, "idle": idle}
    assert unknown.keys() == {f"bottleneck.{key}_percent" for key, value in values.items() if value is None}
    for key, value in values.items():
        assert value is None or value == pytest.approx(100 * parts[key] / STEP)
    assert found.statement and all(found.next_steps)
    assert (found.input_percent is None) == (source is None)


TABLES = {False: table([FUSION]), True: table([FUSION, OUTFEED])}
