"""Steps as plain values: their times over all cores, and where one step's time went."""

from __future__ import annotations

from typing import Literal

from tpuprof.parsers.base.record import dataclass

StepSource = Literal["steps", "annotations", "cycle", "modules"]
"""Where step times come from: markers of the `Steps` line, `step_num` annotations of the host, or what is inferred from
the `XLA Modules` line, a cycle of programs or the periods of the busiest one."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """Summary over steps; each step counts with its slowest core.

    Attributes:
        average_ps, median_ps, minimum_ps, maximum_ps: over the steps.
        standard_deviation_ps: standard deviation of the sample (n - 1); 0 for one step, as XProf prints it.
        count: number of steps.
        source: what the steps are taken from.
        note: a sentence on how steps without markers are found; empty for marked steps.
    """

    average_ps: float
    standard_deviation_ps: float
    median_ps: float
    minimum_ps: float
    maximum_ps: float
    count: int
    source: StepSource
    note: str = ""


@dataclass(frozen=True, slots=True)
class GenericBreakdown:
    """Where one step's time went on GPUs, or on the host's CPU, in picoseconds.

    Each moment counts for the most important thing that goes on (`parsers.steps.generic.step_events`); the parts add up
    to the step. `input_ps` is copying from the host to a GPU, and waiting for input while no GPU does anything.
    `device_compute_16bit_ps` is a part of `device_compute_ps`. `host_ops_ps` are ops that ran on the host's CPU, in a
    profile without a device.
    """

    device_compute_ps: float
    device_to_device_ps: float
    device_collectives_ps: float
    input_ps: float
    output_ps: float
    all_other_ps: float
    device_compute_16bit_ps: float = 0.0
    host_ops_ps: float = 0.0
    host_compute_ps: float = 0.0
    kernel_launch_ps: float = 0.0
    compile_ps: float = 0.0


@dataclass(frozen=True, slots=True)
class SparseCoreTime:
    """One step on the SparseCores, in picoseconds: mean time, least compute and mean idle time over them."""

    step_ps: int
    compute_ps: int
    idle_ps: int
