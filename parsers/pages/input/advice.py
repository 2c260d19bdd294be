"""Advice on a program's input: a sentence or two on its largest part, with the op to begin with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.ops.host_events.input_events import PRODUCE, TRANSFER, WAIT
from tpuprof.parsers.pages.input.model import InfeedPercent, InputOp, StepWait
from tpuprof.parsers.pages.overview.model import Bottleneck
from tpuprof.parsers.steps.aligned import InputSource

_LONGEST_NAME = 80
"""How many characters of an op's name a sentence shows, those at its end, which says most."""

NO_EVENTS = (
    "The profile holds no input events: no infeed on the device, and no tf.data, Grain or transfer event on the host.",
    "Capture with host_tracer_level=2, and for a loader written in Python with python_tracer_level=1.",
    "Feed the program through tf.data or Grain, which record their stages, or wrap the loader's next() in "
    "jax.profiler.TraceAnnotation('IteratorGetNext').",
    "Mark steps with jax.profiler.StepTraceAnnotation, so that waiting can be distinguished from other idle time.",
)
"""Advice where a profile has nothing about input: what to turn on."""

NO_HOST_EVENTS = (
    "The steps wait for input, and no host event shows for what: capture with host_tracer_level=2, load through "
    "tf.data or Grain, whose stages show here, or put jax.profiler.TraceAnnotation around the loader's own.",
)
_UNKNOWN = "Whether the steps wait for input is unknown, so this is about the largest part of the host's input work."
_APART = (
    "Few steps, if any, have an event that waits for input or sends it: whether the host's input work delays them "
    "is unknown."
)

_PARTS: Mapping[str, str] = {
    "Enqueue": "Handing data to the device takes most of the host's input time, mostly {op}: send fewer and larger "
    "arrays, and hand over the next batch while the device works on this one.",
    "Demanded file read": "Reading files as they are asked for takes most of the host's input time, mostly {op}: "
    "read ahead of the need, with prefetch(tf.data.AUTOTUNE) behind it or a parallel interleave over the files.",
    "Advanced file read": "Reading files takes most of the host's input time although it runs ahead, mostly {op}: "
    "read more files at once (cycle_length and num_parallel_calls of interleave), use a larger read buffer, or bring "
    "the files nearer.",
    "Preprocessing": "Preprocessing takes most of the host's input time, mostly {op}: {hint}.",
    "Unknown": "No op says what the host does for most of its input time: read and preprocess through tf.data or "
    "Grain, whose stages show here, or put jax.profiler.TraceAnnotation around the loader's own.",
    WAIT: "The loader is slower than the device: the program waits in {op}. Give it more workers or threads, let it "
    "prefetch more, or let it do less for each batch.",
    TRANSFER: "Moving data to the device takes most of the input time, mostly {op}: put the next batch on the "
    "device while a step runs (device_put one step ahead, prefetch_to_device), and send small types (uint8, bfloat16), "
    "converting on the device.",
    PRODUCE: "Making batches takes the time, mostly {op}: give it more workers, or less to do for each batch.",
}
_INSIDE = (
    "What the loader does in there is not in the profile: capture with python_tracer_level=1, or load through tf.data "
    "or Grain, whose stages record themselves."
)

_HINTS: Mapping[str, str] = {
    "generator": "it runs Python for one element after the other, so let several generators run under interleave, or "
    "use ops of tf.data",
    "parallelmap": "it is parallel already, so batch before mapping, cache what does not change, or do it offline",
    "map": "set num_parallel_calls=tf.data.AUTOTUNE (in Grain more workers), batch before mapping, or cache what does "
    "not change",
    "shuffle": "take a smaller buffer, and shuffle the names of files instead",
    "batch": "set num_parallel_calls of batch, and hand it elements of one shape",
    "": "run it in parallel (num_parallel_calls=tf.data.AUTOTUNE; in Grain more workers), cache what does not change, "
    "or do it offline",
}
"""What helps a stage, by what its name holds; the first that fits counts."""

_GRAIN = pattern(
    r"(?:\w+MapDataset|Source|Prefetch|Batch|Map|Shuffle)\w*\.(?:__getitem__|_getitem)|\w*DatasetIterator\.__next__|PyGrain"
)
"""How Grain names its stages."""

_OF_GRAIN: Mapping[str, str] = {
    "Demanded file read": "Reading elements from the source takes most of the host's input time, mostly {op}: give "
    "Grain more threads and a larger buffer (grain.ReadOptions), or several workers (mp_prefetch).",
    "Preprocessing": "Preprocessing in Grain takes most of the host's input time, mostly {op}: {hint}.",
    WAIT: "Grain is slower than the device: the program waits in {op}. Give it more threads and a larger buffer "
    "(grain.ReadOptions), several workers (mp_prefetch), or let it do less for each batch.",
}
_HINTS_OF_GRAIN: Mapping[str, str] = {
    "shuffle": "shuffle indices and not elements",
    "batch": "hand it elements of one shape, and batch in the workers",
    "": "give it more threads and a larger buffer (grain.ReadOptions), or several workers (mp_prefetch), cache what "
    "does not change, or do it offline",
}
"""The same where Grain reads and preprocesses."""

MUCH_WAITING = 20.0
"""A step that waits for this share of its time, in percent, is worth a sentence where most steps wait less."""


def advice_of(
    parts: Mapping[str, float],
    ops: Sequence[InputOp],
    bottleneck: Bottleneck,
    source: InputSource | None,
    steps: Sequence[StepWait],
    infeed: InfeedPercent | None,
) -> tuple[str, ...]:
    """What to do, most useful first.

    Args:
        parts: the breakdown: time by XProf's categories; empty where it is unknown.
        ops: all rows of the op table.
        source: what the time that steps wait is measured by.
        infeed: how the steps wait; None where it is unknown.
    """
    if bottleneck.is_input_bound is False:
        return _nothing_to_do(bottleneck, steps, infeed)
    if not ops and source is None:
        return NO_EVENTS[:-1] if steps else NO_EVENTS
    part = _largest(parts, ops)
    if bottleneck.input_percent is not None:
        return _about(part or "Unknown", ops) if ops else NO_HOST_EVENTS
    if not steps:
        return (_UNKNOWN, *_about(part or "Unknown", ops))
    return (_APART, *(_about(part, ops) if part is not None and part in parts else ()))


def _nothing_to_do(bottleneck: Bottleneck, steps: Sequence[StepWait], infeed: InfeedPercent | None) -> tuple[str, ...]:
    told = " ".join((bottleneck.statement, *bottleneck.next_steps))
    waits = bottleneck.classification in ("host", "both")
    words = f"{told} No event says that the host is at input then." if waits else f"Little to gain here. {told}"
    if infeed is None or infeed.maximum < MUCH_WAITING or infeed.median >= infeed.maximum / 2:
        return (words,)
    worst = max(steps, key=lambda step: step.percent_maximum or 0.0).name
    stands = f"Step {worst} stands out: it waits {infeed.maximum:.1f}% of its time, the median step "
    return (words, f"{stands}{infeed.median:.1f}%. See what the host did before it.")


def _about(part: str, ops: Sequence[InputOp]) -> tuple[str, ...]:
    """Advice on one part, with the op to begin with."""
    name = _name_in(part, ops)
    if name is None:
        return (_PARTS["Unknown"],)
    stage = name.rpartition("::")[2].lower()
    is_grain = any(_GRAIN.match(op.name) for op in ops)
    hint = next(hint for word, hint in (_HINTS_OF_GRAIN if is_grain else _HINTS).items() if word in stage)
    words = (_OF_GRAIN if is_grain else _PARTS).get(part, _PARTS[part])
    is_traced = any(op.name.startswith("$") and ":" in op.name for op in ops)
    return (words.format(op=name, hint=hint), *([_INSIDE] if part == WAIT and not (is_traced or is_grain) else []))


def _largest(parts: Mapping[str, float], ops: Sequence[InputOp]) -> str | None:
    """The part to begin with: moving data where that takes longer than waiting for it, else what makes the data."""
    feeding = {kind: sum(op.self_ps for op in ops if op.category == kind) for kind in (WAIT, TRANSFER, PRODUCE)}
    if feeding[TRANSFER] > max(feeding[WAIT], *parts.values(), 0):
        return TRANSFER
    if any(parts.values()):
        return max(parts, key=lambda part: parts[part])
    best = max(feeding, key=lambda kind: feeding[kind])
    return best if feeding[best] else None


def _name_in(part: str, ops: Sequence[InputOp]) -> str | None:
    """The op of a part with the most self time; one that only waits for the stage before it (prefetch) comes last."""
    rows = [op for op in ops if op.category == part and op.self_ps > 0]
    if not rows:
        return None
    name = max(rows, key=lambda op: (not op.name.endswith("::Prefetch"), op.self_ps)).name
    return name if len(name) <= _LONGEST_NAME else f"...{name[-_LONGEST_NAME:]}"
