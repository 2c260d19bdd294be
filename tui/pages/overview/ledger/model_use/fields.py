"""The quantities of the page on how a model runs, besides those of the waterfall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tpuprof.parsers.pages.overview.model_use.blocks import NO_LAYER, ROW_WORDS, BlockRow
from tpuprof.tui.report.fields import NO_REASON, Metric, Table, attribute, object_table
from tpuprof.tui.report.units import BYTES, COUNT, SHARE_PERCENT, TEXT, TIME_MS, VERBATIM, Unit, plain


def _big(value: float | None, _: bool = False) -> str:
    """A large number in few digits: ``1.23e+15``."""
    return "n/a" if value is None else f"{value:.4g}"


FLOPS = Unit("count", plain, _big)


def _amount(value: float | None, _: bool = False) -> str:
    """A number of tokens or samples, without decimals if it is large: ``63,371``."""
    return "n/a" if value is None else f"{value:,.0f}" if value >= _MANY else f"{value:.4g}"


_MANY = 1_000
RATE = Unit("count a second", plain, _amount)
TOKENS = Unit("count", plain, _amount)


def largest_op(row: BlockRow) -> str | None:
    """The op with most of a block's time."""
    return row.largest[0][0] if row.largest else None


_NOT_COUNTED = "the FLOPs of these ops are not counted, or no op ran"
_NO_BYTES = "the bytes of these ops are not counted, or no op ran"
_NO_PHASE = "the optimizer is in no pass, and other ops may not name theirs"
_BLOCKS = "; ".join(f"{block}: {words}" for block, words in ROW_WORDS.items())
_BLOCK = attribute("block", VERBATIM, _BLOCKS)
_FIGURES: tuple[Metric[BlockRow], ...] = (
    attribute("time_ms", TIME_MS, "of the mean step; over all rows they add up to it", "of a step"),
    attribute("percent", SHARE_PERCENT, "its share of the mean step", "share", name="fraction"),
    attribute("flops", FLOPS, "in a step, over all cores; over all rows they add up to step_flops", null=_NOT_COUNTED),
    attribute(
        "peak_percent",
        SHARE_PERCENT,
        "these FLOPs as a share of what the cores could compute at their peak in that time",
        "of the peak",
        null=_NOT_COUNTED,
        name="peak_fraction",
    ),
    attribute("hbm_bytes", BYTES, "to and from HBM in a step, over all cores", "HBM", null=_NO_BYTES),
    attribute("uncounted_ms", TIME_MS, "the part of it in ops of unknown work", "not counted"),
    attribute("ops", COUNT, "distinct ops", "ops"),
    Metric("op", TEXT, largest_op, "the op with most of the time", "no op ran", "most in"),
    attribute(
        "by_name_ms",
        TIME_MS,
        "the part of it in ops whose names give the block; other ops are assigned by what they compute and by "
        "their neighbours",
        "by name",
    ),
)
_SHOWN = ("time_ms", "percent", "flops", "peak_percent", "hbm_bytes", "by_name_ms")

BLOCKS: Table[Sequence[BlockRow]] = object_table(
    "blocks",
    (
        _BLOCK,
        attribute("pass", TEXT, "forward, backward or recomputed, by names", "pass", null=_NO_PHASE, name="phase"),
        *_FIGURES,
    ),
    csv=("block", "pass", *(metric.key for metric in _FIGURES)),
    markdown=("block", "pass", *_SHOWN),
)
LAYERS: Table[Sequence[BlockRow]] = object_table(
    "layers",
    (
        attribute("layer", VERBATIM, f"by names; those that a loop runs over are one; {NO_LAYER}: in none"),
        _BLOCK,
        *_FIGURES,
    ),
    csv=("layer", "block", *(metric.key for metric in _FIGURES)),
    markdown=("layer", "block", *_SHOWN),
)


def _of_steps(key: str, unit: Unit, name: str, meaning: str, heading: str) -> Metric[Any]:
    """A figure of the steps; None where the profile has no steps."""
    return attribute(key, unit, meaning, heading, null=NO_REASON, name=f"model.step_time.{name}")


_DEVIATION = "standard deviation of the steps: how far they spread"
PAGE_METRICS: tuple[Metric[Any], ...] = (
    _of_steps("step_median_ms", TIME_MS, "median_ps", "median of the steps", "median step"),
    _of_steps("step_minimum_ms", TIME_MS, "minimum_ps", "the shortest step", "shortest step"),
    _of_steps("step_maximum_ms", TIME_MS, "maximum_ps", "the longest step", "longest step"),
    _of_steps("step_deviation_ms", TIME_MS, "standard_deviation_ps", _DEVIATION, "standard deviation"),
    _of_steps("step_count", COUNT, "count", "number of steps", "steps"),
)
