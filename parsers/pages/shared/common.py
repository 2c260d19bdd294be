"""What several pages say about a run's hosts: the device, and what is missing or odd."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tpuprof.parsers.base.errors import Damage
from tpuprof.parsers.base.text import counted, examples, printable
from tpuprof.parsers.base.words import NO_DEVICE, REPORTED
from tpuprof.parsers.hosts.op_summary import OpSummary
from tpuprof.parsers.ops.core.sums import ModuleHoles, joined_holes
from tpuprof.parsers.ops.device import DeviceInfo, merge_devices

ExecutionUnit = Literal["core", "GPU", "host thread"]
"""What ops run on: their times are sums over all of these."""

NO_OPS = "no XLA Ops line in this profile"


def why_no_ops(summaries: Sequence[OpSummary]) -> str:
    """Why there are no ops, or empty when there are."""
    if any(len(summary.table) for summary in summaries):
        return ""
    if any(summary.core_count for summary in summaries):
        return NO_OPS
    if any(summary.gpu_count for summary in summaries):
        return "no kernel ran on a GPU in this profile"
    return NO_DEVICE


def runs_on(summaries: Sequence[OpSummary]) -> ExecutionUnit:
    """What ran the ops: TensorCores, else GPUs, else the host's threads; cores where nothing did."""
    if any(summary.core_count for summary in summaries):
        return "core"
    if any(summary.gpu_count for summary in summaries):
        return "GPU"
    return "host thread" if any(summary.thread_count for summary in summaries) else "core"


def execution_unit_count(summaries: Sequence[OpSummary]) -> int:
    """How many of these there are."""
    count = {"core": "core_count", "GPU": "gpu_count", "host thread": "thread_count"}[runs_on(summaries)]
    return sum(getattr(summary, count) for summary in summaries)


def device_of(summaries: Sequence[OpSummary]) -> DeviceInfo | None:
    """The device as the hosts' planes describe it; each figure comes from the first host that has it."""
    return merge_devices([summary.device for summary in summaries if summary.device is not None])[0]


def damage_of(summary: OpSummary) -> Damage | None:
    """What is wrong with a host's file, where a part of it could not be read."""
    codes = {problem.code for problem in summary.problems}
    return "cut off" if "truncated" in codes else "damaged" if "damaged" in codes else None


def complaints(summary: OpSummary) -> list[str]:
    """Sentences on what is wrong with a host's file, and on what its profiler reported."""
    sentences = [problem.sentence for problem in summary.problems]
    return sentences + [REPORTED + text for text in summary.warnings]


def warnings_of(
    summaries: Sequence[OpSummary], remarks: Sequence[str] = (), clocks: Sequence[tuple[str, ...]] | None = None
) -> tuple[str, ...]:
    """Plain sentences about the profile itself: what is damaged, left out or missing.

    Args:
        clocks: `HostSummary.clocks` of each host, for pages on which events of the host and of devices meet.
    """
    of_clocks = [()] * len(summaries) if clocks is None else clocks
    sentences = [
        sentence
        for summary, differ in zip(summaries, of_clocks, strict=True)
        for sentence in (*complaints(summary), *summary.remarks, *differ)
    ]
    if len(summaries) > 1:
        sentences += merge_devices([summary.device for summary in summaries if summary.device is not None])[1]
    sentences += remarks
    on_host = [summary.host for summary in summaries if summary.thread_count]
    if on_host:
        where = ", ".join(on_host)
        sentences.append(
            f"no device plane: the ops are those that XLA ran on the CPU of {where}, on the host's threads"
        )
    without = [
        summary.host
        for summary in summaries
        if not summary.core_count and not summary.gpu_count and not summary.thread_count
    ]
    if without:
        sentences.append(f"no device plane on {', '.join(without)}: no accelerator there, or the device tracer was off")
    return tuple(dict.fromkeys(sentences))


_MOST_HOLES = 3
"""Modules that lost ops that have a sentence each."""


def holes_in_words(summaries: Sequence[OpSummary]) -> tuple[str, ...]:
    """A sentence for each module with runs whose ops were not recorded, the one with most such runs first."""
    holes = joined_holes(of for summary in summaries for of in summary.holes)
    ordered = sorted(holes, key=lambda of: -(of.without_ops + of.lacking_some))
    having = [summary for summary in summaries if summary.holes]
    cores = sum(summary.core_count for summary in having)
    where = f" on {counted(cores, 'core')}" if cores > 1 or len(having) < len(summaries) else ""
    where += f" of {examples([summary.host for summary in having])}" if len(having) < len(summaries) else ""
    words = [_hole_in_words(of, where) for of in ordered[:_MOST_HOLES]]
    more = f"runs of {counted(len(holes) - _MOST_HOLES, 'other module')} lost ops too"
    return (*words, *[more] * (len(holes) > _MOST_HOLES))


def _hole_in_words(of: ModuleHoles, where: str) -> str:
    name = printable(of.module.partition("(")[0])
    if of.without_ops == of.runs:
        return f"no run of {name}{where} has ops ({of.runs:,}): they were not recorded, so its idle time is unknown"
    whole = of.runs - of.without_ops - of.lacking_some
    have = [f"{of.without_ops:,} {'has' if of.without_ops == 1 else 'have'} no ops"] * (of.without_ops > 0)
    such = f", such as {examples(of.lost[:2])}" if of.lost else ""
    have += [f"{of.lacking_some:,} {'lacks' if of.lacking_some == 1 else 'lack'} some{such}"] * (of.lacking_some > 0)
    return (
        f"of {counted(of.runs, 'run')} of {name}{where}, {' and '.join(have)}: the profiler lost them; figures are of "
        f"the {whole:,} whole runs"
    )
