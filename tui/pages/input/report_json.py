"""The input pipeline page as JSON.

Beside what the documentation fixes: `ops[].group` tells XProf's input ops (`input_op`) from the events that hand input
to the device (`device_feed`); percentages are of the self time of the op's own group. `stages` has the same rows in the
order of the pipeline, each below the one that it feeds. `device.input_source` says what waiting is told by.
"""

from __future__ import annotations

from dataclasses import asdict

from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.pages.input.model import NO_CORE_WAITS, InputBreakdown, InputOp, InputPipelinePage, StepWait
from tpuprof.tui.report.json import document, head, step_time_record
from tpuprof.tui.report.units import PS_PER_MS, milliseconds

_PS_PER_US = 1e6
_PARTS = ("enqueue", "demanded_file_read", "advanced_file_read", "preprocessing", "unclassified")


def input_json(page: InputPipelinePage, run: Run, limit: int = 0) -> str:
    """The page as JSON text, with a newline at the end; at most `limit` ops, 0 for all."""
    rows = slice(limit or None)
    body = {
        "device": {
            "step_time_ms": step_time_record(page.step_time),
            "infeed_percent": page.infeed_percent and asdict(page.infeed_percent),
            "max_infeed": [{"step": step.name, "core": step.core} for step in page.steps],
            "input_source": page.source,
        },
        "steps": [_step(step) for step in page.steps],
        "breakdown_us": _breakdown(page.breakdown),
        "bottleneck": {**asdict(page.bottleneck), "next_steps": list(page.bottleneck.next_steps)},
        "next_steps": list(page.next_steps),
        "op_count": len(page.ops),
        "ops": [_op(op) for op in page.ops[rows]],
        "stages": [
            {"name": page.ops[stage.op].name, "label": stage.label, "depth": stage.depth} for stage in page.stages[rows]
        ],
    }
    return document(head("input", run, page.hosts, page.warnings), body, _reasons(page))


def _reasons(page: InputPipelinePage) -> dict[str, str]:
    waiting = page.unknown.get("device.infeed_percent", NO_CORE_WAITS)
    keys = ("wait_ms", "infeed_percent_average", "infeed_percent_minimum", "infeed_percent_maximum", "core")
    return {
        **page.unknown,
        **{f"steps[].{key}": waiting for key in keys},
        "device.max_infeed[].core": waiting,
        "device.input_source": page.unknown.get("device.infeed_percent", "the program has no infeed ops"),
        **{f"breakdown_us.{part}": page.unknown.get("breakdown_us", "") for part in _PARTS},
    }


def _step(step: StepWait) -> dict[str, object]:
    return {
        "name": step.name,
        "duration_ms": step.duration_ps / PS_PER_MS,
        "wait_ms": milliseconds(step.wait_ps),
        "infeed_percent_average": step.percent_average,
        "infeed_percent_minimum": step.percent_minimum,
        "infeed_percent_maximum": step.percent_maximum,
        "core": step.core,
    }


def _breakdown(breakdown: InputBreakdown | None) -> dict[str, object]:
    if breakdown is None:
        return dict.fromkeys(_PARTS)
    return {part: getattr(breakdown, f"{part}_ps") / _PS_PER_US for part in _PARTS}


def _op(op: InputOp) -> dict[str, object]:
    return {
        "name": op.name,
        "count": op.occurrences,
        "total_time_ms": op.total_ps / PS_PER_MS,
        "total_time_percent": op.total_percent,
        "self_time_ms": op.self_ps / PS_PER_MS,
        "self_time_percent": op.self_percent,
        "category": op.category,
        "group": op.group,
    }
