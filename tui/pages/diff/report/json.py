"""A comparison as JSON, schema ``tpuprof.diff/1``.

- `before`, `after`: `{name, path, hosts, device_type, core_count, simulated, step_count, odd_step_count, unit,
  unit_count, step_time_ms {average, standard_deviation, median, minimum, maximum}, warnings}`
- `verdict`: `{sentence, mark, different_programs}`, with the mark `unknown` for different programs; `basis`: `step`,
  `module run` or `capture`, what times are divided by besides cores
- a change: `{mark, before_ms, after_ms, change_ms, change_fraction, noise_ms}`, in bytes and percent with those keys;
  `mark` is one of `same more less new gone unknown`, `noise` the half-width that two equal runs stay within
- `steps`: changes `{typical, median, mean, minimum, maximum, odd}`
- `classes`, `categories`: `[{name, class, ...change}]`; with `between_cores` the classes add up to the typical step
- `ops`: the largest change first, `[{name, old_name, program, category, class, framework_op, matched_by, hlo_changed,
  occurrences {before, after}, ...change}]`
- `modules`: `[{name, problem, peak {...}, arguments {...}, temporaries {...}}]` in bytes of HBM
- `figures`: `[{key, ...change}]` in percent
- `regression`, where it is asked for: `{allowed_fraction, outcome, sentence}`
"""

from __future__ import annotations

from tpuprof.parsers.diff.model import Change, Diff, NamedChange, OpChange, Side
from tpuprof.parsers.diff.noise import CONFIDENCE
from tpuprof.parsers.diff.regression import Regression
from tpuprof.tui.pages.diff.draw.verdict import headline_mark, verdict
from tpuprof.tui.pages.diff.draw.words import Kind
from tpuprof.tui.report.json import document, schema, step_times
from tpuprof.tui.report.units import PS_PER_MS

_SCALES: dict[Kind, tuple[str, float]] = {"time": ("ms", PS_PER_MS), "bytes": ("bytes", 1.0), "percent": ("percent", 1)}

_ONE_SIDED = "the run has none of it"
_NO_NOISE = "the spread from step to step is unknown"
_NO_FRACTION = "it was nothing before, or is unknown"


def diff_json(diff: Diff, limit: int = 0, regression: Regression | None = None) -> str:
    """The comparison as JSON text, with a newline at the end; at most `limit` ops, 0 for all."""
    head = {
        "schema": schema("diff"),
        "before": _side(diff.before),
        "after": _side(diff.after),
        "warnings": list(diff.warnings),
    }
    steps = diff.steps
    body: dict[str, object] = {
        "verdict": {"sentence": verdict(diff), "mark": headline_mark(diff), "different_programs": bool(diff.different)},
        "basis": diff.basis,
        "confidence": CONFIDENCE,
        "steps": None
        if steps is None
        else {
            "typical": _change(steps.typical),
            "median": _change(steps.median),
            "mean": _change(steps.mean),
            "minimum": _change(steps.minimum),
            "maximum": _change(steps.maximum),
            "odd": _change(steps.odd),
        },
        "total": _change(diff.total),
        "between_cores": _change(diff.between_cores),
        "classes": [_named(item) for item in diff.classes],
        "categories": [_named(item) for item in diff.categories],
        "ops": [_op(op) for op in (diff.ops[:limit] if limit else diff.ops)],
        "modules": [
            {
                "name": module.name,
                "problem": module.problem,
                "peak": _change(module.peak, "bytes"),
                "arguments": _change(module.arguments, "bytes"),
                "temporaries": _change(module.temporaries, "bytes"),
            }
            for module in diff.modules
        ],
        "figures": [{"key": figure.key, **_change(figure.change, "percent")} for figure in diff.figures],
    }
    if regression is not None:
        body["regression"] = {
            "allowed_fraction": regression.allowed,
            "outcome": regression.outcome,
            "sentence": regression.sentence,
        }
    return document(head, body, _reasons(diff))


def _reasons(diff: Diff) -> dict[str, str]:
    """Why something is null, by dotted key."""
    reasons = dict(diff.unknown)
    for side, of in (("before", diff.before), ("after", diff.after)):
        reasons[f"{side}.step_time_ms"] = of.why_no_steps or "the profile has no steps"
        reasons[f"{side}.device_type"] = "no device plane names its type"
    for place in ("ops[]", "categories[]", "classes[]", "between_cores", "total", "steps.odd"):
        reasons |= {f"{place}.{key}_ms": diff.unknown.get("ops", _ONE_SIDED) for key in ("before", "after", "change")}
        reasons[f"{place}.noise_ms"] = _NO_NOISE
        reasons[f"{place}.change_fraction"] = _NO_FRACTION
    for name in ("typical", "median", "mean", "minimum", "maximum"):
        reasons[f"steps.{name}.noise_ms"] = _NO_NOISE
        reasons[f"steps.{name}.change_fraction"] = _NO_FRACTION
    for name in ("peak", "arguments", "temporaries"):
        problem = next((module.problem for module in diff.modules if module.problem), _ONE_SIDED)
        for key in ("before_bytes", "after_bytes", "change_bytes", "change_fraction", "noise_bytes"):
            reasons[f"modules[].{name}.{key}"] = problem
    for side in ("before", "after"):
        whys = {why for key, why in diff.unknown.items() if key.startswith("figures.") and key.endswith(f".{side}")}
        reasons[f"figures[].{side}_percent"] = "; ".join(sorted(whys)) or "the profile does not tell"
        reasons[f"ops[].occurrences.{side}"] = _ONE_SIDED
    reasons["figures[].change_percent"] = "one of the two is unknown"
    reasons["figures[].change_fraction"] = _NO_FRACTION
    reasons["figures[].noise_percent"] = "the figure is of the whole capture"
    reasons["ops[].old_name"] = "the op has the same name in both, or is in one run only"
    reasons["ops[].category"] = "the profile has no HLO category for these ops"
    reasons["ops[].framework_op"] = "the profile names no framework op for these ops"
    return reasons


def _side(side: Side) -> dict[str, object]:
    time = side.step_time
    times = None if time is None else {**step_times(time), "source": time.source}
    return {
        "name": side.name,
        "path": side.path,
        "hosts": list(side.hosts),
        "device_type": side.device_type,
        "core_count": side.core_count,
        "simulated": side.simulated,
        "step_count": len(side.step_ps),
        "odd_step_count": side.odd_count,
        "unit": side.unit_name,
        "unit_count": side.units,
        "step_time_ms": times,
        "warnings": list(side.warnings),
    }


def _change(change: Change, kind: Kind = "time") -> dict[str, object]:
    unit, scale = _SCALES[kind]
    whole = kind == "bytes"

    def scaled(value: float | None) -> float | None:
        return None if value is None else round(value) if whole else value / scale

    return {
        "mark": change.mark,
        f"before_{unit}": scaled(change.before),
        f"after_{unit}": scaled(change.after),
        f"change_{unit}": scaled(change.delta),
        "change_fraction": change.relative,
        f"noise_{unit}": scaled(change.noise),
    }


def _named(item: NamedChange) -> dict[str, object]:
    return {"name": item.name, "class": item.op_class, **_change(item.time)}


def _op(op: OpChange) -> dict[str, object]:
    return {
        "name": op.name,
        "old_name": op.old_name,
        "program": op.program,
        "category": op.category,
        "class": op.op_class,
        "framework_op": op.framework_op or None,
        "matched_by": op.matched_by,
        "hlo_changed": op.text_changed,
        "occurrences": {"before": op.count.before, "after": op.count.after},
        **_change(op.time),
    }
