"""The quantities of the input pipeline page.

Percentages of ops are of the self time of the op's own group: XProf's input ops (`input_op`), or the events that hand
input to the device (`device_feed`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.pages.input.model import NO_CORE_WAITS, InputOp, InputPipelinePage, StepWait
from tpuprof.tui.draw.format import duration
from tpuprof.tui.report.fields import NO_REASON, Field, Metric, Table, attribute, listed, nested, object_table, of_each
from tpuprof.tui.report.shared.quantities import BOTTLENECK, STEP_COUNT, STEP_TIME, STEP_TIMES
from tpuprof.tui.report.units import COUNT, NUMBER, PERCENT, TEXTS, TIME_MS, TIME_PS, VERBATIM, Unit, divided

if TYPE_CHECKING:
    from tpuprof.tui.report.describe import Section

TIME_US = Unit("us", divided(1e6), duration)

INFEED_PERCENT = (
    attribute(
        "average", PERCENT, "XProf's: mean of the steps' shares, in which a long step counts as much as a short one"
    ),
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
        attribute("duration_ms", TIME_MS, "of its slowest core"),
        attribute("wait_ms", TIME_MS, "waiting for input, on the core that waits most", null=NO_CORE_WAITS),
        *(
            attribute(f"infeed_{name}", PERCENT, f"of its duration, {where}", null=NO_CORE_WAITS, name=name)
            for name, where in (
                ("percent_average", "mean over the cores"),
                ("percent_minimum", "on the core that waits least"),
                ("percent_maximum", "on the core that waits most"),
            )
        ),
        _CORE,
    ),
)


def _part(key: str, heading: str, meaning: str) -> Metric[InputPipelinePage]:
    return attribute(f"breakdown_us.{key}", TIME_US, meaning, heading, null=NO_REASON, name=f"breakdown.{key}_ps")


BREAKDOWN = (
    _part("enqueue", "enqueue", "passing data to the device, over all threads"),
    _part("demanded_file_read", "on-demand file read", "files read when their data is asked for"),
    _part("advanced_file_read", "advanced file read", "files read ahead, with a prefetch, interleave or cache"),
    _part("preprocessing", "preprocessing", "making batches from the data"),
    _part("unclassified", "unclassified", "other ops of the pipeline"),
)
_WAITING = "share of a step's time that it waits for input, on the core that waits most"
_SOURCE = "how waiting is measured: time in infeed ops, or idle time while the host waits for input or sends it"
BEFORE_OPS: tuple[Metric[InputPipelinePage], ...] = (
    attribute("device.step_time_ms", STEP_TIME, "times of the steps", null=NO_REASON, name="step_time"),
    attribute("device.infeed_percent", nested(INFEED_PERCENT), _WAITING, null=NO_REASON, name="infeed_percent"),
    attribute("device.max_infeed", listed(MAX_INFEED), "which core waits most, one row per step", name="steps"),
    attribute("device.input_source", VERBATIM, _SOURCE, null="the program has no infeed ops", name="source"),
    attribute("steps", listed(STEPS), "in order of time"),
    *BREAKDOWN,
    *BOTTLENECK,
    attribute("next_steps", TEXTS, "what to do about the input, the most useful first"),
    Metric("op_count", COUNT, lambda page: len(page.ops), "rows of the op table"),
)
"""Figures that stand before the ops in JSON."""

EXPLAINED = {
    "device.infeed_percent": ("steps[].", "device.max_infeed[].", "device.input_source"),
    "breakdown_us": ("breakdown_us.",),
}
"""What the page says of these goes for all keys that begin so."""

_TOTAL, _SELF = "over all threads, the ops inside it included", "over all threads, without the ops inside it"
_TIMES = ("total_time_ms", "total_time_percent", "self_time_ms", "self_time_percent")
OPS: Table[Sequence[InputOp]] = object_table(
    "ops",
    (
        attribute("name", VERBATIM, "the op's name", "op"),
        attribute("count", COUNT, "how often it ran", "count", name="occurrences"),
        attribute("total_time_ms", TIME_MS, _TOTAL, "total", name="total_ps"),
        attribute("total_time_percent", PERCENT, "of its group's self time", "total %", name="total_percent"),
        attribute("self_time_ms", TIME_MS, _SELF, "self", name="self_ps"),
        attribute("self_time_percent", PERCENT, "of its group's self time", "self %", name="self_percent"),
        attribute("category", VERBATIM, "what the op does", "category", name="kind"),
        attribute("group", VERBATIM, "input_op: as XProf lists them; device_feed: hands input to the device"),
    ),
    (
        attribute("total_time_ps", TIME_PS, _TOTAL, name="total_ps"),
        attribute("self_time_ps", TIME_PS, _SELF, name="self_ps"),
    ),
    csv=("name", "category", "group", "count", *(key.replace("_ms", "_ps") for key in _TIMES)),
    markdown=("name", "category", "count", *_TIMES),
)


_NAME = "the op's name"
STAGES: Table[InputPipelinePage] = Table(
    "stages",
    (
        Field("name", VERBATIM, lambda page, rows: [page.ops[page.stages[row].op].name for row in rows], _NAME),
        Field("label", VERBATIM, of_each("label", "stages"), "its name without the name of the enclosing stage"),
        Field("depth", NUMBER, of_each("depth", "stages"), "how many stages it feeds, directly or not"),
    ),
    lambda page: len(page.stages),
)
"""The same ops in the order of the pipeline, each below the one that it feeds."""


def sections(page: InputPipelinePage) -> list[Section]:
    """All figures of the page by what they are about."""
    time, waiting = page.step_time, page.infeed_percent
    steps, shares = BEFORE_OPS[:2]
    of_page: list[tuple[Metric[Any], Any]] = [(figure, page) for figure in (*BREAKDOWN, *BOTTLENECK[:4])]
    return [
        (
            "Step time",
            [(figure, time) for figure in (*STEP_TIMES, STEP_COUNT)] if time is not None else [(steps, page)],
        ),
        (
            "Share of each step that waits for input, on the core that waits most",
            [(figure, waiting) for figure in INFEED_PERCENT] if waiting is not None else [(shares, page)],
        ),
        ("The host's time for input", of_page[: len(BREAKDOWN)]),
        ("Bottleneck", of_page[len(BREAKDOWN) :]),
    ]
