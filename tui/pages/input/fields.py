"""The quantities of the input pipeline page.

Percentages of ops are of the self time of the op's own group: XProf's input ops (`input_op`), or the events that hand
input to the device (`device_feed`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tpuprof.parsers.pages.input.model import NO_CORE_WAITS, InputOp, InputPipelinePage, StepWait
from tpuprof.tui.draw.format import duration
from tpuprof.tui.report.fields import NO_REASON, Field, Figure, Table, attribute, listed, nested, object_table
from tpuprof.tui.report.quantities import BOTTLENECK, STEP_TIME
from tpuprof.tui.report.units import COUNT, NUMBER, PERCENT, TEXTS, TIME_MS, TIME_PS, VERBATIM, Unit, divided

TIME_US = Unit("us", divided(1e6), duration)


def _percent(key: str, meaning: str, name: str = "") -> Figure[Any]:
    return attribute(key, PERCENT, meaning, null=NO_CORE_WAITS, name=name)


INFEED_PERCENT = (
    attribute("average", PERCENT, "mean over the steps"),
    attribute("standard_deviation", PERCENT, "of the sample; 0 for one step"),
    attribute("median", PERCENT, "the step in the middle"),
    attribute("minimum", PERCENT, "the step that waits least"),
    attribute("maximum", PERCENT, "the step that waits most"),
)
_CORE = attribute("core", VERBATIM, "the core that waits most, as host:ordinal", null=NO_CORE_WAITS)
MAX_INFEED: Table[Sequence[StepWait]] = object_table(
    "max_infeed", (attribute("step", VERBATIM, "the step's name", name="name"), _CORE)
)
STEPS: Table[Sequence[StepWait]] = object_table(
    "steps",
    (
        attribute("name", VERBATIM, "the step's name"),
        attribute("duration_ms", TIME_MS, "of its slowest core", name="duration_ps"),
        attribute("wait_ms", TIME_MS, "waiting on the core that waits most", null=NO_CORE_WAITS, name="wait_ps"),
        _percent("infeed_percent_average", "of its duration, mean over the cores", "percent_average"),
        _percent("infeed_percent_minimum", "of its duration, on the core that waits least", "percent_minimum"),
        _percent("infeed_percent_maximum", "of its duration, on the core that waits most", "percent_maximum"),
        _CORE,
    ),
)


def _part(key: str, heading: str, meaning: str) -> Figure[InputPipelinePage]:
    def read(page: InputPipelinePage) -> float | None:
        return None if page.breakdown is None else getattr(page.breakdown, f"{key}_ps")

    return Figure(f"breakdown_us.{key}", TIME_US, read, meaning, NO_REASON, heading)


BREAKDOWN = (
    _part("enqueue", "enqueue", "handing data to the device, over all threads"),
    _part("demanded_file_read", "on-demand file read", "files read when their data is asked for"),
    _part("advanced_file_read", "advanced file read", "files read ahead, with a prefetch, interleave or cache"),
    _part("preprocessing", "preprocessing", "making batches of what is read"),
    _part("unclassified", "unclassified", "other ops of the pipeline"),
)
BEFORE_OPS: tuple[Figure[InputPipelinePage], ...] = (
    attribute("device.step_time_ms", nested(STEP_TIME), "times of the steps", null=NO_REASON, name="step_time"),
    attribute(
        "device.infeed_percent",
        nested(INFEED_PERCENT),
        "share of a step's time that it waits for input, on the core that waits most",
        null=NO_REASON,
        name="infeed_percent",
    ),
    attribute("device.max_infeed", listed(MAX_INFEED), "which core waits most, a row a step", name="steps"),
    attribute(
        "device.input_source",
        VERBATIM,
        "what tells waiting: time in infeed ops, or idle time while the host waits for input or sends it",
        null="the program has no infeed ops",
        name="source",
    ),
    attribute("steps", listed(STEPS), "in order of time"),
    *BREAKDOWN,
    *BOTTLENECK,
    attribute("next_steps", TEXTS, "what to do about the input, the most useful first"),
    Figure("op_count", COUNT, lambda page: len(page.ops), "rows of the op table"),
)
"""Figures that stand before the ops in JSON."""

EXPLAINED = {
    "device.infeed_percent": ("steps[].", "device.max_infeed[].", "device.input_source"),
    "breakdown_us": ("breakdown_us.",),
}
"""What the page says of these goes for all keys that begin so."""

OPS: Table[Sequence[InputOp]] = object_table(
    "ops",
    (
        attribute("name", VERBATIM, "the op's name", "op"),
        attribute("count", COUNT, "how often it ran", "count", name="occurrences"),
        attribute("total_time_ms", TIME_MS, "over all threads, the ops inside it included", "total", name="total_ps"),
        attribute("total_time_percent", PERCENT, "of its group's self time", "total %", name="total_percent"),
        attribute("self_time_ms", TIME_MS, "over all threads, without the ops inside it", "self", name="self_ps"),
        attribute("self_time_percent", PERCENT, "of its group's self time", "self %", name="self_percent"),
        attribute("category", VERBATIM, "what the op does", "category"),
        attribute("group", VERBATIM, "input_op: as XProf lists them; device_feed: hands input to the device"),
    ),
    (
        attribute("total_time_ps", TIME_PS, "over all threads, the ops inside it included", name="total_ps"),
        attribute("self_time_ps", TIME_PS, "over all threads, without the ops inside it", name="self_ps"),
    ),
    csv=(
        *("name", "category", "group", "count"),
        *("total_time_ps", "total_time_percent", "self_time_ps", "self_time_percent"),
    ),
    markdown=(
        *("name", "category", "count"),
        *("total_time_ms", "total_time_percent", "self_time_ms", "self_time_percent"),
    ),
)
STAGES: Table[InputPipelinePage] = Table(
    "stages",
    (
        Field(
            "name", VERBATIM, lambda page, rows: [page.ops[page.stages[row].op].name for row in rows], "the op's name"
        ),
        Field(
            "label",
            VERBATIM,
            lambda page, rows: [page.stages[row].label for row in rows],
            "its name without that of the stage around it",
        ),
        Field(
            "depth",
            NUMBER,
            lambda page, rows: [page.stages[row].depth for row in rows],
            "how many stages it feeds, directly or not",
        ),
    ),
    lambda page: len(page.stages),
    ("name", "label", "depth"),
)
"""The same ops in the order of the pipeline, each below the one that it feeds."""
