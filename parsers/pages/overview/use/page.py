"""The page on how a model runs: its use of the peak, its blocks and layers, its goodput, its memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.pages.overview.use.blocks import BlockRow
from tpuprof.parsers.pages.overview.use.goodput import Goodput
from tpuprof.parsers.pages.overview.use.memory_blocks import MemoryRow
from tpuprof.parsers.pages.overview.use.model_use import ModelUse
from tpuprof.parsers.pages.overview.use.samples import Samples
from tpuprof.parsers.steps.model import StepTime


@dataclass(frozen=True, slots=True)
class ModelPage:
    """How a model runs.

    Attributes:
        hosts: names of the hosts that the figures cover.
        use: what of the peak it uses.
        blocks, layers: the mean step by block and pass, and by layer and block; each adds up to it. Empty if unknown.
        goodput: the share of the time that it trained.
        samples: tokens or samples of a step by its compiled program, or why these are unknown.
        step_time: how long steps take; None without any.
        memory: blocks at the peak of `module`, the step's program; they add up to `peak_bytes`.
        warnings: about the profile itself.
        simulated: the profile says of itself that its times were composed, not measured.
        unknown: why `blocks` or `memory` is empty.
    """

    hosts: tuple[str, ...]
    use: ModelUse
    blocks: tuple[BlockRow, ...]
    layers: tuple[BlockRow, ...]
    goodput: Goodput
    samples: Samples | str
    step_time: StepTime | None
    memory: tuple[MemoryRow, ...]
    module: str | None
    peak_bytes: int | None
    warnings: tuple[str, ...]
    simulated: bool
    unknown: Mapping[str, str] = field(default_factory=dict)
