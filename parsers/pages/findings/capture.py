"""Findings about the capture itself: no device events, and memory that is nearly full."""

from __future__ import annotations

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import share, size, time
from tpuprof.parsers.pages.findings.finding import Evidence, Finding, JumpTarget, Kind, Need

NEARLY_FULL = 0.95
"""From this share of HBM on, a little more fails: fragmentation and the next program's temporaries need some."""

NO_DEVICE = Kind(
    "no-device",
    "a capture without device events",
    advice=(
        "Capture again while the device works: tpuprof-tui capture HOST:PORT --duration 2s --device-tracer-level "
        "1; in JAX jax.profiler.ProfileOptions().device_tracer_level = 1."
    ),
    rank=1,
    of_capture=True,
)


def no_device_events(evidence: Evidence) -> Finding | None:
    """Why there is nothing to say of the device."""
    if not evidence.no_device:
        return None
    title, *sentences = evidence.no_device.split("\n")
    basis = "Without device events, what the device did is unknown."
    return NO_DEVICE.of_unknown_worth(title, "capture", basis, sentences, JumpTarget("timeline"))


def why_no_device(
    core_count: int, launched: int | None, host_events: bool, compiling_ps: int = 0, on_cpu: int = 0, runs: int = 0
) -> str:
    """The title of the finding, and a sentence behind it on each line.

    Args:
        core_count: device planes.
        launched: programs that the host launched meanwhile; None where there is no host plane.
        host_events: whether any thread of the host has events.
        compiling_ps: how long the host traced, lowered and compiled programs meanwhile.
        on_cpu: programs that it ran on its own CPU.
        runs: runs of programs on the device planes.
    """
    if runs:
        title = "Programs ran on the device, but no op was recorded"
        lost = (
            f"The profile has {counted(runs, 'run')} of programs on {counted(core_count, 'core')}, but no event on an "
        )
        return f"{title}\n{lost}XLA Ops line: the tracer did not record ops, or they were lost."
    if core_count:
        title = "The device planes hold no events"
        planes = f"The profile has planes for {core_count} {'core' if core_count == 1 else 'cores'}, but no op on them."
    else:
        title = "Only the host was traced: no device plane"
        planes = (
            "The profile has no device plane: the machine has no accelerator, another process holds the chip "
            "(capture from "
        )
        planes += "that one's server), or the device tracer was off (device_tracer_level = 1 turns it on)."
    if not host_events:
        return "\n".join((title, planes, "The host has no events either: the capture may have been empty."))
    if on_cpu:
        why = f"The host ran programs on its own CPU {counted(on_cpu, 'time')}, but their ops left no events: "
        why += "JAX releases from 2025 on record them."
    elif launched:
        why = f"The host launched programs {launched:,} times, so the device did work: its tracer was "
        why += (
            "off, or its events were lost because the capture was too long for the device's buffer. A few steps "
            "are enough."
        )
    else:
        why = (
            "The host launched no program during the capture: it may have had no work, or another process drives "
            "the chip."
        )
    if compiling_ps > 0:
        why += f" It compiled for {time(compiling_ps)}: capture later, after the first steps."
    return "\n".join((title, planes, why))


ALLOCATOR = Need(
    "no allocator event on the host shows how full the memory was",
    lambda of: of.memory is not None or not len(of.table),
)
MEMORY_FULL = Kind(
    "memory-full",
    "a nearly full HBM",
    advice="Little more fits: shard or offload state, or recompute activations, before you grow the batch.",
    rank=2,
    needs=(ALLOCATOR,),
    page="memory-profile",
    of_capture=True,
)


def memory_nearly_full(evidence: Evidence) -> Finding | None:
    """The device's memory is so full that a little more fails."""
    memory = evidence.memory
    if memory is None or memory[0] < NEARLY_FULL * memory[1]:
        return None
    return MEMORY_FULL.of_unknown_worth(
        f"HBM is {share(memory[0] / memory[1])} full",
        "capture" if evidence.grid is None else "step",
        "A full HBM costs no time by itself; how much more a larger program would need is unknown.",
        (
            f"Buffers and programs take {size(memory[0])} of {size(memory[1])} at the peak, according to the "
            "allocator's events.",
        ),
        JumpTarget("memory"),
    )
