"""Findings about the capture itself: no device events, and memory that is nearly full."""

from __future__ import annotations

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import share, size, time
from tpuprof.parsers.pages.findings.finding import ADVICE, Evidence, Finding, JumpTarget

NEARLY_FULL = 0.95
"""From this share of HBM on, a little more fails: fragmentation and the next program's temporaries need some."""


def no_device_events(evidence: Evidence) -> Finding | None:
    """Why there is nothing to say of the device."""
    if not evidence.no_device:
        return None
    title, *sentences = evidence.no_device.split("\n")
    return Finding(
        "no-device",
        title,
        None,
        "capture",
        None,
        None,
        False,
        "Without device events nothing tells what the device did.",
        tuple(sentences),
        ADVICE["no-device"],
        JumpTarget("timeline"),
    )


def why_no_device(
    core_count: int, launched: int | None, host_events: bool, compiling_ps: int = 0, on_cpu: int = 0
) -> str:
    """The title of the finding, and a sentence behind it on each line.

    Args:
        core_count: device planes.
        launched: programs that the host launched meanwhile; None where there is no host plane.
        host_events: whether any thread of the host has events.
        compiling_ps: how long the host traced, lowered and compiled programs meanwhile.
        on_cpu: programs that it ran on its own CPU.
    """
    if core_count:
        title = "The device planes hold no events"
        planes = f"The profile has planes of {core_count} {'core' if core_count == 1 else 'cores'}, and no op on them."
    else:
        title = "Only the host was traced: no device plane"
        planes = "The profile has no device plane: no accelerator there, another process holds the chip (capture from "
        planes += "that one's server), or the device tracer was off (device_tracer_level = 1 turns it on)."
    if not host_events:
        return "\n".join((title, planes, "The host left no events either: the capture may have been empty."))
    if on_cpu:
        why = (
            f"The host ran programs on its own CPU meanwhile, {counted(on_cpu, 'time')}, and their ops left no events: "
        )
        why += "JAX of 2025 and later records them."
    elif launched:
        why = f"The host launched programs {launched:,} times meanwhile, so the device was at work: its tracer was "
        why += "off, or its events were lost, as in captures that are too long for the device's buffer: a few steps do."
    else:
        why = "The host launched no program meanwhile: nothing was to do, perhaps, or another process drives the chip."
    if compiling_ps > 0:
        why += f" It compiled for {time(compiling_ps)}: capture later, when the first steps have run."
    return "\n".join((title, planes, why))


def memory_nearly_full(evidence: Evidence) -> Finding | None:
    """The device's memory is so full that a little more fails."""
    memory = evidence.memory
    if memory is None or memory[0] < NEARLY_FULL * memory[1]:
        return None
    return Finding(
        "memory-full",
        f"HBM is {share(memory[0] / memory[1])} full",
        None,
        "capture" if evidence.grid is None else "step",
        None,
        None,
        False,
        "It costs no time by itself; what the program would need to grow is not known.",
        (f"Buffers and programs take {size(memory[0])} of {size(memory[1])} at the peak, by the allocator's events.",),
        ADVICE["memory-full"],
        JumpTarget("memory"),
    )
