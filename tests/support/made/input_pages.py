"""Hand-made input pipeline pages with known figures, for tests of drawing, of reports and of the tab."""

from __future__ import annotations

from dataclasses import replace

from tests.support.made.pages import MS, training_overview
from tpuprof.parsers.ops.host_events.input_events import TRANSFER, WAIT
from tpuprof.parsers.pages.input.input import NO_EVENTS, NO_INPUT_OPS, stages_of
from tpuprof.parsers.pages.input.model import InfeedPercent, InputBreakdown, InputOp, InputPipelinePage, StepWait
from tpuprof.parsers.pages.overview.model import Bottleneck


def input_bound_page() -> InputPipelinePage:
    """Six steps on several cores, the fourth waits half its time; tf.data makes the input and Python waits for it."""
    overview = training_overview()
    shares = [(4.0, 1.0, 9.0), (6.0, 2.0, 11.0), (0.0, 0.0, 0.0), (40.0, 30.0, 52.5), (5.0, 0.0, 10.0), (4.0, 4.0, 4.0)]
    steps = tuple(
        StepWait(
            name=step.name,
            duration_ps=step.duration_ps,
            wait_ps=round(step.duration_ps * most / 100),
            percent_average=mean,
            percent_minimum=least,
            percent_maximum=most,
            core=f"demo-vm:{at % 4}" if most else None,
        )
        for at, (step, (mean, least, most)) in enumerate(zip(overview.steps, shares, strict=True))
    )
    root = "Iterator::Root::Prefetch"
    rows: list[tuple[str, str, int, int, int]] = [
        (f"{root}::BatchV2::ParallelMapV2::ParallelInterleaveV4::TFRecord", "Advanced file read", 24, 1020, 1020),
        (f"{root}::BatchV2::ParallelMapV2", "Preprocessing", 24, 1450, 430),
        (root, "Preprocessing", 6, 186, 184),
        ("InfeedEnqueue", "Enqueue", 6, 60, 60),
        (f"{root}::BatchV2", "Preprocessing", 6, 42, 42),
        ("Iterator::Root::TextLine", "Demanded file read", 3, 4, 4),
    ]
    whole = sum(row[4] for row in rows)
    ops = [
        InputOp(name, kind, "input_op", 0, n, total * MS, own * MS, 100 * total / whole, 100 * own / whole)  # type: ignore[arg-type]
        for name, kind, n, total, own in rows
    ]
    ops += [
        InputOp("$loader.py:12 __next__", WAIT, "device_feed", 0, 6, 210 * MS, 200 * MS, 95.454545, 90.909091),
        InputOp("batched_device_put", TRANSFER, "device_feed", 0, 24, 20 * MS, 20 * MS, 9.090909, 9.090909),
    ]
    return InputPipelinePage(
        hosts=overview.hosts,
        step_time=overview.performance.step_time,
        source="host",
        infeed_percent=InfeedPercent(14.416667, 19.137, 9.5, 0.0, 52.5),
        steps=steps,
        breakdown=InputBreakdown(60.0 * MS, 4.0 * MS, 1020.0 * MS, 656.0 * MS, 0.0),
        ops=tuple(ops),
        stages=stages_of(ops),
        bottleneck=overview.bottleneck,
        next_steps=(f"Reading files takes most of the host's input time, {rows[0][0]} before all: read more at once.",),
        unknown={"bottleneck.output_percent": "the program has no outfeed ops"},
        warnings=overview.warnings,
    )


def no_input_page() -> InputPipelinePage:
    """A CPU-only profile: nothing about input, and why."""
    reason = "no device plane in this profile"
    return replace(
        input_bound_page(),
        step_time=None,
        source=None,
        infeed_percent=None,
        steps=(),
        breakdown=None,
        ops=(),
        stages=(),
        bottleneck=Bottleneck("unknown", None, None, None, f"Unknown: {reason}.", ()),
        next_steps=NO_EVENTS,
        unknown={
            "device.step_time_ms": reason,
            "device.infeed_percent": reason,
            "breakdown_us": NO_INPUT_OPS,
            **{f"bottleneck.{key}_percent": reason for key in ("input", "output", "idle")},
        },
    )


def apart_page() -> InputPipelinePage:
    """Steps that are not seen to wait, and transfers only: how a plain JAX program looks that feeds itself at first."""
    page = input_bound_page()
    ops = (replace(page.ops[-1], total_percent=100.0, self_percent=100.0),)
    unknown = "few steps have an event of the host in them"
    return replace(
        page,
        source=None,
        infeed_percent=None,
        steps=tuple(StepWait(step.name, step.duration_ps, None, None, None, None, None) for step in page.steps),
        breakdown=None,
        ops=ops,
        stages=stages_of(ops),
        bottleneck=Bottleneck("unknown", None, None, 8.5, "8.5% of step time is idle.", ()),
        next_steps=("Few steps, if any, are seen to wait for input.",),
        unknown={
            "device.infeed_percent": unknown,
            "breakdown_us": NO_INPUT_OPS,
            "bottleneck.input_percent": unknown,
            "bottleneck.output_percent": unknown,
        },
        warnings=(),
    )


INPUT_PAGES = {"input-bound": input_bound_page, "no-input": no_input_page, "apart": apart_page}
