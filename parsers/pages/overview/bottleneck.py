"""What limits a program: waiting for input, output and idle time, and the verdict in its words; all of one time."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.findings.budget import IDLE_OWNERS
from tpuprof.parsers.pages.overview import model
from tpuprof.parsers.pages.overview.ledger import MeanStep
from tpuprof.parsers.pages.overview.verdict import WAITS_FOR_HOST, Verdict
from tpuprof.parsers.steps.aligned import InputSource
from tpuprof.parsers.steps.xprof_view import XprofBreakdown

NO_INPUT_EVENTS = (
    "it shows as idle time, as the program has no infeed ops and few steps contain a host event that waits for input "
    "or sends input"
)
NO_OUTFEED = "the program has no outfeed ops"


def bottleneck_of(
    steps: Sequence[model.Step],
    table: OpTable,
    source: InputSource | None,
    account: MeanStep | None,
    unknown: dict[str, str],
    numbered: bool = False,
) -> model.Bottleneck:
    """What limits the steps; unknown without steps.

    Args:
        source: what the time that steps wait for input is measured by.
        account: that of the steps; None without any.
        unknown: receives the reasons for unknown figures, by JSON key.
        numbered: whether the host's annotations number steps.
    """
    has_parts = any(isinstance(step.breakdown, XprofBreakdown) for step in steps)
    if account is None or not has_parts or not any(step.duration_ps for step in steps):
        keys = ("performance.device_duty_cycle_percent", "performance.step_time_ms")
        reason = next((unknown[key] for key in keys if key in unknown), "no step time")
        return unknown_bottleneck(reason, unknown, _marking_advice(table, numbered))
    outfeed = None
    if "outfeed" in table.category or source == "infeed":
        outfeed = model.percent_of_steps(steps, "outfeed_ps")
        outfeed *= account.step_ps / account.period_ps if account.steps_lie_apart else 1.0
    else:
        unknown["bottleneck.output_percent"] = NO_OUTFEED
    if source is None:
        unknown["bottleneck.input_percent"] = NO_INPUT_EVENTS
    return of_account(account, source is not None, outfeed)


def of_account(account: MeanStep, knows_input: bool, output_percent: float | None) -> model.Bottleneck:
    """What limits the steps, in shares of the time that the verdict is about."""
    waits = 100 * account.verdict.input_fraction if knows_input else None
    return told(
        account.verdict, waits, output_percent, 100 * account.share("compile", *IDLE_OWNERS), account.steps_lie_apart
    )


def told(
    verdict: Verdict,
    input_percent: float | None,
    output_percent: float | None,
    idle_percent: float,
    steps_lie_apart: bool,
) -> model.Bottleneck:
    """What limits the steps in the words of their verdict, so that no page says another than the overview."""
    kind: model.Classification = "device"
    if input_percent is not None and input_percent >= model.HIGHLY_INPUT_BOUND:
        kind = "host"
    elif verdict.kind in WAITS_FOR_HOST:
        kind = "host" if 100 * (verdict.fraction or 0.0) >= model.HIGHLY_INPUT_BOUND else "both"
    elif input_percent is not None and input_percent >= model.MODERATELY_INPUT_BOUND:
        kind = "both"
    elif verdict.kind == "untraced" or (verdict.kind == "unknown" and idle_percent >= model.MODERATELY_INPUT_BOUND):
        kind = "unknown"
    advice = (verdict.next_step,) if verdict.next_step else ()
    return model.Bottleneck(
        kind, input_percent, output_percent, idle_percent, verdict.statement, advice, steps_lie_apart
    )


def unknown_bottleneck(reason: str, unknown: dict[str, str], advice: tuple[str, ...] = ()) -> model.Bottleneck:
    """Nothing is known, for a reason; `unknown` receives it for each figure."""
    for key in ("input_percent", "output_percent", "idle_percent"):
        unknown[f"bottleneck.{key}"] = reason
    return model.Bottleneck("unknown", None, None, None, f"Whether it waits for input is unknown: {reason}.", advice)


def _marking_advice(table: OpTable, numbered: bool) -> tuple[str, ...]:
    if not len(table):
        return ()
    if numbered:
        return ("Profile for longer: the capture holds too few of the steps that the program marks.",)
    return ("Mark steps with jax.profiler.StepTraceAnnotation, or profile for longer than one step.",)
